"""Answer a question that holds an error with the calls that failed with it, and the lessons about those."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads
from archivist.recall.query import Query
from archivist.recall.results import DEFAULT_LIMIT, Hit, RecallResult, remedy_first, text_of
from archivist.recall.scoring import Relevance, Score
from archivist.records.episode import Episode
from archivist.records.event import Event
from archivist.records.words import Status
from archivist.service import BankService
from archivist.store.filters import any_of, contains_text, equals, not_equals, one_of
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# What people put around an error, or leave at its end.
_AROUND = " \t\n\"'`“”.:;,!?"
# Shorter words stand in any output.
_SHORTEST = 4
# A line with one of these words may be what a program printed; any other is a question.
_ERROR_LINE = re.compile(
    r"\b(?:errors?|fatal|panic|fail(?:ed|ure)?|exception|traceback|cannot|can't|could not|unable|no such"
    r"|not (?:found|recognized|permitted|registered)|refused|denied|exceeded|undefined|unexpected|expected)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
# To read all outputs takes 1 ms a thousand events, so a question is not taken for one.
_QUESTION = re.compile(r"(?i)(?:how|why|what|when|where|which|who|does|did|is|are|was|were|should)\b")
# What is an error wherever it stands: TS2554, ERR_INVALID_URL, SIGABRT, ENOENT. A class has too many errors.
_CODE = re.compile(
    r"\b(?:[A-Z]{1,6}-?\d{3,5}|SIG[A-Z]{2,6}"
    r"|E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|NOTEMPTY|ADDRINUSE|CONN[A-Z]+|NOTFOUND|TIMEDOUT|PIPE|MFILE|BUSY)"
    r"|(?=[A-Z0-9]*_)(?=[A-Z0-9_]*(?:ERR|FAIL|INVALID|DENIED|REFUSED|TIMEOUT|EXCEEDED))[A-Z0-9_]+)\b"
)
# Of a pasted output so many of the last lines are looked for, and so many codes.
_LINES, _CODES = 3, 3
# An error may have come hundreds of times; the last ones are told, and the lessons that cite one of them.
_CANDIDATES = 100
_TOLD = 3
_CERTAIN = Score(1.0, 0.0, 0.0, 1.0, Relevance(1.0))


class FailingCalls(BankService):
    """What tools printed is searched only when asked: an error asks for it."""

    @reads(Layer.LESSONS)
    def answer_errors(self, query: Query, found: RecallResult) -> RecallResult:
        """Return what was found, with the failing calls that printed the error of the question before it.

        A word is looked for if the first hit does not have it, a text without an error if there is no hit.
        """
        only = query._replace(text="", repo="", kinds=(), limit=None, preset=None, window=0)
        shows_calls, shows_lessons = (not query.kinds or kind in query.kinds for kind in ("event", "lesson"))
        if only != Query() or not (shows_calls or shows_lessons):
            return found
        first = found.hits[0].text.casefold() if found.hits else ""
        errors = [each for each in find_errors(query.text) if " " in each or each.casefold() not in first]
        whole = query.text.strip(_AROUND)
        if not found.hits and len(whole) >= _SHORTEST:
            errors.append(whole)
        calls, lessons = self._find(errors, query)
        hits = [*(calls[:_TOLD] if shows_calls else ()), *(lessons if shows_lessons else ())]
        known = {hit.id for hit in hits}
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        rest = (hit for hit in found.hits if hit.id not in known)
        return found._replace(hits=(*hits, *rest)[:limit])

    @reads(Layer.LESSONS)
    def find_calls(self, output: str, repo: str = "") -> list[Hit]:
        """Return the latest calls that failed with the error of an output."""
        return self._find(find_errors(output), Query(text=output, repo=repo))[0][:_TOLD]

    def _find(self, errors: list[str], query: Query) -> tuple[list[Hit], list[Hit]]:
        """Return the calls that printed the first of the errors that any did, and the lessons on them."""
        if not errors:
            return [], []
        asked = self._bank.searches.keep_apart(query)
        with self._bank.reading() as reader:
            calls = _find_calls(reader, errors, asked)
            return calls, _find_lessons(reader, calls) if calls else []


def find_errors(text: str) -> list[str]:
    """Return the errors that a text holds, the most telling first: its last error lines, then its codes.

    A text of one word may be any error.
    """
    lines = [line.strip(_AROUND) for line in text.splitlines()]
    errors = [
        line for line in lines if " " in line and _ERROR_LINE.search(line) and not _QUESTION.match(line)
    ]
    codes = list(dict.fromkeys(_CODE.findall(text)))
    word = text.strip(_AROUND)
    is_word = len(word) >= _SHORTEST and not re.search(r"\s", word)
    return [word] if is_word else [*errors[: -_LINES - 1 : -1], *codes[:_CODES]]


def _find_lessons(reader: Reader, calls: list[Hit]) -> list[Hit]:
    """Return the lessons in force that cite one of these calls."""
    cites = any_of(*((contains_text("evidence", json.dumps(call.id)),) for call in calls[:_CANDIDATES]))
    live = one_of("status", (Status.ACTIVE, Status.CANDIDATE)), equals("is_waiting", 0)
    order = ("-frequency", "number")
    rows = reader.select_fields("lesson", ("id",), cites, *live, order=order, limit=_TOLD)
    lessons = reader.records("lesson", [str(name) for (name,) in rows]).values()
    return [
        Hit(
            kind="lesson",
            id=lesson.id,
            name=lesson.short_id,
            text=text_of("lesson", lesson),
            score=1.0,
            time=lesson.last_seen,
            why=_CERTAIN,
            notes=("such a call is in its evidence",),
            provenance=lesson.provenance,
            repo=lesson.repo,
            headline=remedy_first(lesson),
        )
        for lesson in lessons
    ]


def _find_calls(reader: Reader, errors: list[str], asked: Query) -> list[Hit]:
    """Return the failing calls that printed the first of the errors that any printed, the latest first."""
    printed = any_of(*((contains_text("output", error),) for error in errors))
    conditions = equals("is_error", 1), not_equals("tool", ""), printed
    found = reader.select(Event, *conditions, order=("-time",), limit=_CANDIDATES)
    outputs = [event.output.lower() for event in found]
    said = next((each.lower() for each in errors if any(each.lower() in text for text in outputs)), "")
    events = [event for event, text in zip(found, outputs, strict=True) if said in text]
    runs = reader.records("episode", [event.run for event in events])
    provenances = reader.run_provenances(runs)
    hits = []
    for event in events:
        run = runs.get(event.run)
        repo = run.project if isinstance(run, Episode) else ""
        if repo in asked.other_repos or (asked.repo and repo != asked.repo):
            continue
        line = next((each for each in event.output.splitlines() if said in each.lower()), "")
        hits.append(
            Hit(
                kind="event",
                id=event.id,
                name=event.id,
                text=text_of("event", event),
                score=1.0,
                time=event.time,
                why=_CERTAIN,
                notes=(f"the call failed with: {shorten_line(line, 300)}",) if line else (),
                provenance=provenances.get(event.run),
                repo=repo,
            )
        )
    return hits
