"""The stream's rules: references in texts, limits, the filters in a question's words, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from archivist.capture.clean import Cleaner
from archivist.capture.redaction import clean_text, validate_name
from archivist.errors import BankDamagedError, InputError, RecordError
from archivist.records import Block, Entry
from archivist.records.plain import canonical_json
from archivist.records.tier_words import CoreSection
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

# Cycles fit a 32-bit integer in every client.
MAX_CYCLE = (1 << 31) - 1
ACTION_CHARACTERS = 2_000
CONTENT_CHARACTERS = 20_000
# A setting of the bank: how far the stream was reflected on.
_MARKER = "stream_reflected"

_NUMBER = re.compile(r"(?<![\w&/#])#(\d{1,7})\b")
_PULL = re.compile(
    r"\b(?:PR|pull[ -]request)"
    r"(?:[ \t]*#?\d{1,7}\b|s[ \t]*#?\d{1,7}\b(?:[ \t]*(?:,|and|&|or|/)[ \t]*#\d{1,7}\b)*)",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_OF_DECISIONS = re.compile(r"\b(?:deci(?:de|ded|sions?)|cho(?:se|ose|sen|ice)|settled? on)\b", re.IGNORECASE)
_TAG = re.compile(r"(issue|pr)[-_ #]{0,2}(\d{1,7})", re.IGNORECASE)
# A question with these words asks how an issue stands: its latest entries answer it.
_OF_STATE = re.compile(
    r"\b(?:what(?:['\u2019]s| is| are)|who is) (?:still )?"
    r"(?:blocking|holding|keeping|happening|going on|new|up|left|open)\b"
    r"|\bhow (?:do|does|is|are|bad|many|much|old|far)\b.{0,200}\b(?:stand|now|today|currently|going)\b"
    r"|^\W*(?:is|are) .{1,200}\b(?:fixed|done|solved|renewed|installed|supported|green|working"
    r"|now|still|yet)\b"
    r"|\b(?:status|state|latest|progress|news) (?:of|on|about|with)\b|\bwhere (?:do|does|are|is)\b"
    r"|\bwhat happened (?:to|with|on)\b|\bwhat about\W*(?:PR\W*)?#|\b(?:is|are) (?:PR )?#\d"
    r"|^\W*(?:PR |issue )?#\d+\W*$",
    re.IGNORECASE,
)
# A question with these words asks for reflections; else they come after the entries.
_OF_REFLECTIONS = re.compile(r"\b(?:reflect\w*|insights?|recurr?\w*|patterns?)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:did|does|has|have|by)\s+(?:the\s+)?([\w-]+)", re.IGNORECASE)
_CYCLE = re.compile(
    r"""(?:\b(?P<how>since|after|from|before|until|up\ to)\ +)?
        \b(?:(?P<word>cycles?)\ *\#?|C)(?P<first>\d{1,9})\b
        (?:\ *(?:-|\u2013|to|through|until|and)\ *(?:cycle\ +|C)?(?P<last>\d{1,9})\b)?""",
    re.IGNORECASE | re.VERBOSE,
)


class References(NamedTuple):
    """The issues and pull requests that a text refers to."""

    issues: tuple[int, ...] = ()
    prs: tuple[int, ...] = ()


class Marker(NamedTuple):
    """How far the stream was reflected on, and the sprint at that time with the place where it began."""

    seq: int = 0
    cycle: int = 0
    sprint: str = ""
    sprint_seq: int = 0


class QuestionFilters(NamedTuple):
    """The filters in a question's words; None where it names none.

    `issues` and `prs` are all that it refers to, `issue` is the one where it names one alone.
    `who` is a word that may be the role that did what is asked for; `is_certain` is true when its cycles
    cannot mean anything else: C99 may be a language.
    """

    cycles: tuple[int | None, int | None] | None = None
    issue: int | None = None
    type: str = ""
    is_certain: bool = False
    is_of_reflections: bool = False
    is_of_state: bool = False
    issues: tuple[int, ...] = ()
    prs: tuple[int, ...] = ()
    who: str = ""


def find_references(
    *texts: str, issues: Iterable[int] = (), prs: Iterable[int] = (), tags: Iterable[str] = ()
) -> References:
    """Return the references given, those that texts name (`#84`, `PR #12`) and those in tags (`issue-84`)."""
    found_issues, found_prs = dict.fromkeys(issues), dict.fromkeys(prs)
    for text in texts:
        for pull in _PULL.findall(text):
            found_prs.update(dict.fromkeys(int(number) for number in _DIGITS.findall(pull)))
        found_issues.update(dict.fromkeys(int(number) for number in _NUMBER.findall(_PULL.sub(" ", text))))
    for tag in tags:
        if named := _TAG.fullmatch(tag):
            (found_issues if named[1].lower() == "issue" else found_prs)[int(named[2])] = None
    # A number that is a pull request in one place is one wherever it is only a number.
    given = set(issues)
    only_issues = (number for number in found_issues if number in given or number not in found_prs)
    return References(tuple(filter(None, only_issues)), tuple(filter(None, found_prs)))


def parse_question(question: str) -> QuestionFilters:
    """Return what a question names: cycles (`cycle 150`, `since cycle 20`), one issue, decisions."""
    named = find_references(question)
    issue = named.issues[0] if len(named.issues) == 1 else None
    cycle = _CYCLE.search(question)
    cycles: tuple[int | None, int | None] | None = None
    if cycle is not None:
        first, last = int(cycle["first"]), int(cycle["last"] or cycle["first"])
        cycles = min(first, last), max(first, last)
        if cycle["how"] and not cycle["last"]:
            word = cycle["how"].lower()
            after, before = first + (word == "after"), first - (word == "before")
            cycles = (after, None) if word in ("since", "from", "after") else (None, before)
    return QuestionFilters(
        cycles,
        issue,
        "decision" if _OF_DECISIONS.search(question) else "",
        is_certain=bool(cycle and cycle["word"]),
        is_of_reflections=_OF_REFLECTIONS.search(question) is not None,
        is_of_state=_OF_STATE.search(question) is not None,
        issues=named.issues,
        prs=named.prs,
        who=who[1] if (who := _WHO.search(question)) else "",
    )


def validate_cycle_range(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """Return a range of cycles, or raise InputError when it ends before it begins."""
    for cycle in (first, last):
        if cycle is not None and (isinstance(cycle, bool) or not isinstance(cycle, int)):
            raise InputError(f"cycle: {cycle!r} is not a whole number")
    if first is not None and last is not None and first > last:
        hint = f"ask for {last} to {first}"
        raise InputError(f"cycles {first} to {last}: the first comes after the last", hint=hint)
    return first, last


def validate_importance(importance: int) -> int:
    """Return a minimum importance, or raise InputError when it is not between 1 and 10."""
    if isinstance(importance, bool) or not isinstance(importance, int) or not 1 <= importance <= 10:
        raise InputError(f"importance: {importance!r} is not a whole number between 1 and 10")
    return importance


def marker_of(reader: Reader) -> Marker | None:
    """Return how far the stream was reflected on; None before its first entry."""
    noted = reader.json_setting(_MARKER)
    try:
        return Marker(**noted) if noted else None
    except TypeError as error:
        raise BankDamagedError("", f"settings {_MARKER!r}: {error}") from error


def set_marker(writer: Writer, marker: Marker) -> None:
    """Note how far the stream was reflected on."""
    writer.set_setting(_MARKER, canonical_json(marker._asdict()))


def latest_cycle(reader: Reader) -> int | None:
    """Return the latest cycle of the stream; None when it is empty."""
    rows = reader.select_fields(Entry, ("cycle",), order=("-cycle",), limit=1)
    return int(rows[0][0]) if rows else None


def last_seq(reader: Reader) -> int:
    """Return the last place in the stream that was ever taken."""
    rows = reader.select_fields(Entry, ("seq",), order=("-seq",), limit=1)
    marker = marker_of(reader)
    # The places of erased entries are not reused: they were reflected on.
    return max(int(rows[0][0]) if rows else 0, marker.seq if marker else 0)


def current_sprint(reader: Reader) -> str:
    """Return the sprint that the status in core memory names."""
    status = reader.get(Block, CoreSection.STATUS.value)
    return str(status.content.get("sprint") or "") if status else ""


def clean_entry(entry: Entry) -> Entry:
    """Return an entry without secrets, with its references and its size."""
    if entry.cycle > MAX_CYCLE:
        raise RecordError(f"cycle: {entry.cycle} is above {MAX_CYCLE}")
    action, content = clean_text(entry.action), clean_text(entry.content)
    if not action.strip():
        raise RecordError("action: missing or empty")
    found = find_references(action, content, issues=entry.issues, prs=entry.prs, tags=entry.tags)
    return replace(
        entry,
        id=clean_text(entry.id),
        action=action,
        content=content,
        role=validate_name("role", entry.role),
        run=clean_text(entry.run),
        tags=tuple(clean_text(tag) for tag in entry.tags),
        extra=Cleaner().clean(entry.extra),
        issues=found.issues,
        prs=found.prs,
        tokens=entry.tokens or estimate_tokens(f"{action} {content}".strip()),
    )
