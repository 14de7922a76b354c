"""Answer a question that is itself an error with the calls that failed with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads
from archivist.recall.query import Query
from archivist.recall.results import DEFAULT_LIMIT, Hit, RecallResult, text_of
from archivist.recall.scoring import Relevance, Score
from archivist.records.episode import Episode
from archivist.records.event import Event
from archivist.service import BankService
from archivist.store.filters import contains_text, equals, not_equals
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# What people put around an error, or leave at its end.
_AROUND = " \t\n\"'`“”.:;,!?"
# Shorter words stand in any output.
_SHORTEST = 4
# An error may have come hundreds of times; the last ones are told.
_CANDIDATES = 100
_TOLD = 3


class FailingCalls(BankService):
    """What tools printed is searched only when asked: an error asks for it."""

    @reads(Layer.LESSONS)
    def answer_errors(self, query: Query, found: RecallResult) -> RecallResult:
        """Return what was found, with the failing calls that printed the whole question before it.

        They are looked for when nothing was found, or not the one word that the question is. The text index
        holds only the beginning of an output, so the outputs themselves are read.
        """
        said = " ".join(query.text.split()).strip(_AROUND)
        is_word = " " not in said and not any(said.casefold() in hit.text.casefold() for hit in found.hits)
        only = query._replace(text="", repo="", limit=None, preset=None, window=0)
        if len(said) < _SHORTEST or only != Query() or not (is_word or not found.hits):
            return found
        asked = self._bank.searches.keep_apart(query)
        with self._bank.reading() as reader:
            hits = _find_calls(reader, said, asked)
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        return found._replace(hits=(*hits[:_TOLD], *found.hits)[:limit])


def _find_calls(reader: Reader, said: str, asked: Query) -> list[Hit]:
    conditions = equals("is_error", 1), not_equals("tool", ""), contains_text("output", said)
    events = reader.select(Event, *conditions, order=("-time",), limit=_CANDIDATES)
    runs = reader.records("episode", [event.run for event in events])
    provenances = reader.run_provenances(runs)
    hits = []
    for event in events:
        run = runs.get(event.run)
        repo = run.project if isinstance(run, Episode) else ""
        if repo in asked.other_repos or (asked.repo and repo != asked.repo):
            continue
        line = next((each for each in event.output.splitlines() if said.lower() in each.lower()), "")
        hits.append(
            Hit(
                kind="event",
                id=event.id,
                name=event.id,
                text=text_of("event", event),
                score=1.0,
                time=event.time,
                why=Score(1.0, 0.0, 0.0, 1.0, Relevance(1.0)),
                notes=(f"the call failed with: {shorten_line(line, 300)}",) if line else (),
                provenance=provenances.get(event.run),
                repo=repo,
            )
        )
    return hits
