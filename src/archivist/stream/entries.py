"""The stream's rules: what an entry refers to, how large it is, and which cycles a question names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from archivist.errors import InputError, RecordError
from archivist.text import estimate_tokens

# A later cycle than anybody counts to.
MAX_CYCLE = (1 << 31) - 1
# Nobody skips so many cycles: it is ten times what is hot, and a digit too many in what anybody types. Such a
# number would archive everything at once, and every later cycle would be counted from there.
MOST_SKIPPED = 1_000
ACTION_CHARACTERS = 2_000
CONTENT_CHARACTERS = 20_000

_NUMBER = re.compile(r"(?<![\w&/#])#(\d{1,7})\b")
_PULL = re.compile(
    r"\b(?:PRs?|pull[ -]requests?)[ \t]*#?\d{1,7}\b(?:[ \t]*(?:,|and|&|or|/)[ \t]*#\d{1,7}\b)*", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")
_OF_DECISIONS = re.compile(r"\b(?:deci(?:de|ded|sions?)|cho(?:se|ose|sen|ice)|settled? on)\b", re.IGNORECASE)
# Of the most relevant answer's relevance: what fits as well as it, and what is an answer at all.
_FITS_ALIKE = 0.8
_FITS_AT_ALL = 0.5
_TAG = re.compile(r"(issue|pr)[-_ #]{0,2}(\d{1,7})", re.IGNORECASE)
# Who asks for reflections gets them as they come; else they stand behind what they were made of.
_OF_REFLECTIONS = re.compile(r"\b(?:reflect\w*|insights?|recurr?\w*|patterns?)\b", re.IGNORECASE)
_CYCLE = re.compile(
    r"""(?:\b(?P<how>since|after|from|before|until|up\ to)\ +)?
        \b(?:(?P<word>cycles?)\ *\#?|C)(?P<first>\d{1,9})\b
        (?:\ *(?:-|\u2013|to|through|until|and)\ *(?:cycle\ +|C)?(?P<last>\d{1,9})\b)?""",
    re.IGNORECASE | re.VERBOSE,
)


class References(NamedTuple):
    """The issues and pull requests that something speaks of."""

    issues: tuple[int, ...] = ()
    prs: tuple[int, ...] = ()


class QuestionFilters(NamedTuple):
    """What a question narrows itself to by its own words; None where it says nothing.

    `is_certain` when its cycles cannot be anything else: C99 may be a language.
    """

    cycles: tuple[int | None, int | None] | None = None
    issue: int | None = None
    type: str = ""
    is_certain: bool = False
    is_of_reflections: bool = False


def estimate_entry_tokens(*texts: str) -> int:
    """Return about how many tokens texts take, as briefs count them."""
    return estimate_tokens(" ".join(text for text in texts if text))


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
        if told := _TAG.fullmatch(tag):
            (found_issues if told[1].lower() == "issue" else found_prs)[int(told[2])] = None
    # A number that is a pull request in one place is one wherever it is only a number.
    given = set(issues)
    told_issues = tuple(number for number in found_issues if number in given or number not in found_prs)
    return References(tuple(each for each in told_issues if each), tuple(each for each in found_prs if each))


def parse_question(question: str) -> QuestionFilters:
    """Return what a question names: cycles (`cycle 150`, `since cycle 20`), one issue, decisions."""
    numbers = set(find_references(question).issues)
    issue = numbers.pop() if len(numbers) == 1 else None
    told, cycle = _OF_DECISIONS.search(question), _CYCLE.search(question)
    return QuestionFilters(
        _parse_cycles(question),
        issue,
        "decision" if told else "",
        is_certain=bool(cycle and cycle["word"]),
        is_of_reflections=_OF_REFLECTIONS.search(question) is not None,
    )


def asks_about_role(question: str, role: str) -> bool:
    """Say whether a question asks what a role did: `what did qa do`, `done by ops`."""
    name = re.escape(role)
    form = (
        rf"\b(?:did|has|had|does|by)\s+(?:the\s+)?{name}(?!\w)"
        rf"|(?<!\w){name}(?:['\u2019]s)?\s+(?:do|did|log|say|said|report|work|ship)(?:s|ed|ged|ped|ing)?\b"
    )
    return re.search(form, question, re.IGNORECASE) is not None


def validate_cycle_step(cycle: int, latest: int | None) -> int:
    """Return a cycle, or raise RecordError when it leaps too far beyond all that were begun or logged.

    An empty stream may begin anywhere.
    """
    if latest is not None and cycle > latest + MOST_SKIPPED:
        raise RecordError(
            f"cycle: {cycle} is {cycle - latest} above the latest, {latest}",
            hint=f"at most {MOST_SKIPPED} may be skipped; archivist stream import takes entries as they are",
        )
    return cycle


def cycles_after_removal(begun: Mapping[str, int], removed: int, latest: int | None) -> dict[str, int]:
    """Return the cycles that roles have begun once an entry of a cycle is gone.

    Where that cycle stood apart from all before it, what was counted from it is forgotten with it.
    """
    below = [number for number in begun.values() if number < removed]
    if removed <= max([latest or 0, *below]) + 1:
        return dict(begun)
    return {role: number for role, number in begun.items() if number < removed}


def select_relevant(relevances: Sequence[float]) -> list[int]:
    """Return the places of those that answer, in the order given, but the most relevant ones first.

    Recency and importance settle between answers that fit alike; they make no answer of what hardly fits.
    """
    best = max(relevances, default=0.0)
    fit = [place for place, relevance in enumerate(relevances) if relevance >= _FITS_ALIKE * best]
    rest = [place for place, relevance in enumerate(relevances) if place not in fit]
    return [*fit, *(place for place in rest if relevances[place] >= _FITS_AT_ALL * best)]


def validate_cycle_range(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """Return a range of cycles, or raise InputError when it ends before it begins."""
    for cycle in (first, last):
        if cycle is not None and (isinstance(cycle, bool) or not isinstance(cycle, int)):
            raise InputError(f"cycle: {cycle!r} is not a whole number")
    if first is not None and last is not None and first > last:
        raise InputError(
            f"cycles {first} to {last}: the first comes after the last", hint=f"ask for {last} to {first}"
        )
    return first, last


def validate_importance(importance: int) -> int:
    """Return the least importance that is asked for, or raise InputError when nothing can have it."""
    if isinstance(importance, bool) or not isinstance(importance, int) or not 1 <= importance <= 10:
        raise InputError(f"importance: {importance!r} is not a whole number between 1 and 10")
    return importance


def _parse_cycles(question: str) -> tuple[int | None, int | None] | None:
    told = _CYCLE.search(question)
    if told is None:
        return None
    first = int(told["first"])
    match (told["how"] or "").lower():
        case "since" | "from" if told["last"] is None:
            return first, None
        case "after":
            return first + 1, None
        case "before":
            return None, first - 1
        case "until" | "up to":
            return None, first
    last = int(told["last"] or first)
    return (first, last) if first <= last else (last, first)
