"""Compare wishes: whether two are the same, or contradict each other. Then the later one holds.

A wish often names what it rules out ("pnpm, not npm"). What is left is compared as any two statements are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.reading.similarity import Statement, content_stems, find_conflict
from archivist.records import Lesson, LessonType, Source
from archivist.records.lesson import REQUEST_KEY

_LONGEST_WISH = 300
# The words that rule something out, in the languages that wishes are read in.
_RULED_OUT = lazy_pattern(
    r"(?:(?:[,\uff0c] ?(?:and |und |et |y )?| and | und | et | y )(?:not|nicht|pas|no)(?!\w)"
    r"|[,\uff0c]? ?(?<!\w)(?:instead of|rather than|statt|anstatt|anstelle von|au lieu de|plutôt que"
    r"|en lugar de|en vez de)"
    r"|[,\uff0c]? ?(?:不用|不要用|不在|不是|而不是|代替|替代)) ?"
    r"(?:in |on |to |from |use |dans |en |im |von )?(?P<what>[^\s,\uff0c]{2,60})",
    re.IGNORECASE,
    longest=_LONGEST_WISH,
)
# The statements are compared in English, and of another language only these words matter to that.
_POLARITY = {
    " always ": lazy_pattern(r"\b(?:immer|stets|toujours|siempre)\b|总是|始终|一律", re.IGNORECASE),
    " not ": lazy_pattern(
        r"\b(?:niemals|nie|nicht|keine?n?|ne (?=\w+ )|jamais|nunca|jamás)\b|永远不要|不要|绝不|别",
        re.IGNORECASE,
    ),
}
# What follows the rule itself is a reason or an addition.
_CLAUSE = lazy_pattern(r"[^,;\uff0c\uff1b]*", longest=_LONGEST_WISH)
# Two numbers contradict each other where they measure something; else they name two things.
_NUMBERS = lazy_pattern(r"'[\d.,:]+' against '[\d.,:]+'")
_MEASURE = lazy_pattern(
    r"\b(?:under|below|above|over|most|least|maximum|max|minimum|min|limit|port|version|width|timeout|level"
    r"|python|node|java|to|with|after|every|within|than|at|of|v)[ =:]{1,2}\d(?!\d* of\b)"
    r"|\d ?(?:%|ms\b|s\b|[kmg]b\b|(?:second|minute|hour|day|week|space|line|column|character|word|test|commit"
    r"|retr|time|review|people|approval)\w{0,3}\b)",
    re.IGNORECASE,
    longest=_LONGEST_WISH,
)
# The share of the other wish that one must repeat to rule out what it names.
_SHARED = 0.5


def find_contradicted(wish: Lesson | Candidate, others: Iterable[Lesson]) -> list[Lesson]:
    """Return the wishes that cannot hold together with one, whatever projects they are of."""
    if wish.type is not LessonType.PREFERENCE or _is_request(wish):
        return []
    return [
        other
        for other in others
        if other.type is LessonType.PREFERENCE
        and not _is_request(other)
        and contradicts(_words_of(wish), _words_of(other))
    ]


def _is_request(wish: Lesson | Candidate) -> bool:
    """Say whether it is what the user often asks for: it rules nothing out."""
    return f"|{REQUEST_KEY}" in wish.key if isinstance(wish, Candidate) else wish.is_request


def standing_of(wish: Lesson) -> tuple[bool, str]:
    """Order wishes by which of them holds: one that a person wrote or approved, else the latest."""
    said = wish.last_seen or wish.edited
    return wish.confirmed or wish.source is Source.MANUAL, said.isoformat()


def wish_likeness(first: Lesson | Candidate, second: Lesson | Candidate) -> float:
    """Return the share of the words of two wishes that both have: one other word is another wish."""
    ours, theirs = (content_stems(_words_of(wish)) for wish in (first, second))
    return len(ours & theirs) / max(1, len(ours | theirs))


def _words_of(wish: Lesson | Candidate) -> str:
    return wish_words(wish.summary, wish.remedies)


def wish_words(summary: str, remedies: Sequence[str]) -> str:
    """Return what a wish asks for, without the marks of its summary."""
    return remedies[0] if remedies else summary


def contradicts(first: str, second: str) -> bool:
    """Say whether one of two wishes rules the other out; both are rules without their marks."""
    pair = _divide(first), _divide(second)
    for (asked, denied), (other_asked, other_denied) in (pair, pair[::-1]):
        other = content_stems(other_asked) - other_denied
        rest = other - denied
        if denied and denied <= other and len(rest & content_stems(asked)) >= _SHARED * len(rest):
            return True
    old, new = (Statement("", _in_english(asked)) for asked, _ in pair)
    # The words decide: the vectors of two short rules about one thing are near.
    conflict = find_conflict(old, new, 1.0)
    if _NUMBERS.fullmatch(conflict):
        return all(_MEASURE.search(asked) for asked, _ in pair)
    return bool(conflict)


@lru_cache(maxsize=4096)
def _in_english(text: str) -> str:
    for english, pattern in _POLARITY.items():
        text = pattern.sub(english, text)
    return text


@lru_cache(maxsize=4096)
def _divide(wish: str) -> tuple[str, frozenset[str]]:
    """Return what a wish asks for, and the stems of what it rules out."""
    found = _RULED_OUT.search(wish)
    # A wish that begins with its negation asks for nothing else.
    if found is None or not found.start():
        clause = _CLAUSE.match(wish)
        return (clause[0] if clause else wish), frozenset()
    rest = wish[found.end() :]
    kept = wish[: found.start()] + (rest if not rest.startswith((",", "\uff0c")) else "")
    return kept, content_stems(found["what"])
