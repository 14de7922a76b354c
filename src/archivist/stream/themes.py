"""What comes up again and again without being an obstacle: themes, and numbers that rise or fall."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from archivist.records import Entry
from archivist.stream.insight_text import (
    Insight,
    cycles_of,
    describe_roles,
    format_cycles,
    labels_of,
    make_insight,
    quote_entry,
    roles_of,
    shorten,
    unique_entries,
)
from archivist.stream.obstacles import split_sentences, words_of
from archivist.stream.timelines import stems_of

_LEAST_CYCLES = 3
# Several entries of one cycle are one occasion, but two cycles with three entries are a theme too.
_LEAST_ENTRIES, _LEAST_OCCASIONS = 3, 2
_MOST_THEMES = 2
_MOST_TRENDS = 2
_SHOWN = 5
_CLAUSES = re.compile(r"[,:;()]\s?|\s[\u2014\u2013-]\s")
_WORD = re.compile(r"[^\W\d_][\w./'-]*\w")
_NUMBER = re.compile(r"(?<![\w#./:-])(\d{1,9}(?:[.,]\d{1,9})?)(?=\s?(%|[^\W\d_]+))(?![\d./:])")
# Slot 5 is not slot 3.
_NUMBERED = re.compile(r"\b([^\W\d_]{3,})[ -]?(\d{1,9})\b")
# What is counted stands in the same words, at least so many of them.
_LEAST_SHARED = 2


class Mention(NamedTuple):
    """Two words that stand side by side in an entry, as they are compared and as they were written."""

    pair: tuple[str, str]
    said: str
    entry: Entry


class Reading(NamedTuple):
    """A number in an entry: its value, what is counted, the words around it, and what else has a number."""

    value: float
    written: str
    unit: str
    words: frozenset[str]
    names: dict[str, str]
    entry: Entry


def theme_insights(entries: Sequence[Entry], new: Collection[str]) -> list[Insight]:
    """Return the subjects that three entries or more of several cycles name, the most frequent first."""
    found: dict[tuple[str, str], list[Mention]] = {}
    for entry in entries:
        for mention in _read_mentions(entry):
            found.setdefault(mention.pair, []).append(mention)
    themes = [
        mentions
        for mentions in found.values()
        if _is_worth_telling(unique_entries(each.entry for each in mentions), new)
    ]
    themes.sort(key=lambda mentions: -len(cycles_of(each.entry for each in mentions)))
    told: list[Insight] = []
    seen: set[str] = set()
    for mentions in themes:
        cluster = unique_entries(each.entry for each in mentions)
        # The entries of a theme are told once, by whichever pair of words.
        if sum(entry.id in seen for entry in cluster) * 2 < len(cluster):
            seen.update(entry.id for entry in cluster)
            told.append(_theme_insight(mentions[0].said, cluster))
    return told[:_MOST_THEMES]


def _is_worth_telling(cluster: Sequence[Entry], new: Collection[str]) -> bool:
    """Say whether a theme is new: when it first has its entries, and when it has as many more."""
    before = [entry for entry in cluster if entry.id not in new]
    fresh = [entry for entry in cluster if entry.id in new]
    return bool(fresh) and _is_theme(cluster) and (not _is_theme(before) or _is_theme(fresh))


def _is_theme(cluster: Sequence[Entry]) -> bool:
    return len(cluster) >= _LEAST_ENTRIES and len(cycles_of(cluster)) >= _LEAST_OCCASIONS


def _theme_insight(name: str, cluster: Sequence[Entry]) -> Insight:
    cycles = cycles_of(cluster)
    return make_insight(
        cluster,
        f"theme: “{name}” in {len(cluster)} entries of {len(cycles)} cycles",
        f"In {format_cycles(cycles)}: {'; '.join(map(quote_entry, cluster[-_SHOWN:]))}.",
        f"Worked on by {describe_roles(cluster)}." if len(roles_of(cluster)) > 1 else "",
        tags=("theme",),
    )


def _read_mentions(entry: Entry) -> Iterator[Mention]:
    """Yield the pairs of neighbouring words of what was done; words that say little do not count."""
    for clause in _CLAUSES.split(" ".join(entry.action.split())):
        words = [match for match in _WORD.finditer(clause) if words_of(match[0])]
        for one, other in pairwise(words):
            first, second = (min(stems_of(each[0])) for each in (one, other))
            if first != second:
                yield Mention((first, second), clause[one.start() : other.end()], entry)


def trend_insights(entries: Sequence[Entry], new: Collection[str]) -> list[Insight]:
    """Return what was counted in three cycles or more and only rose, or only fell."""
    series: list[list[Reading]] = []
    for reading in (reading for entry in entries for reading in _read_numbers(entry)):
        home = next((each for each in series if _is_same_count(reading, each)), None)
        if home is None:
            series.append([reading])
        elif home[-1].entry.id != reading.entry.id:
            home.append(reading)
    found = []
    for each in series:
        values = [reading.value for reading in each]
        steps = [later - earlier for earlier, later in pairwise(values)]
        is_steady = all(step > 0 for step in steps) or all(step < 0 for step in steps)
        if len(cycles_of(r.entry for r in each)) >= _LEAST_CYCLES and is_steady and each[-1].entry.id in new:
            found.append(_trend_insight(each))
    return found[:_MOST_TRENDS]


def _is_same_count(reading: Reading, series: Sequence[Reading]) -> bool:
    last = series[-1]
    is_other = any(last.names.get(word, number) != number for word, number in reading.names.items())
    return reading.unit == last.unit and not is_other and len(reading.words & last.words) >= _LEAST_SHARED


def _trend_insight(series: Sequence[Reading]) -> Insight:
    cluster = unique_entries(reading.entry for reading in series)
    values = " → ".join(reading.written for reading in series)
    last = cluster[-1]
    verb = "rises" if series[-1].value > series[0].value else "falls"
    return make_insight(
        cluster,
        f"{verb}, {values}: “{shorten(last.action)}”",
        f"In {format_cycles(cycles_of(cluster))}, last {quote_entry(last)}.",
        f"It began with {quote_entry(cluster[0])}.",
        tags=("trend",),
        importance=10,
        about=labels_of(last),
    )


def _read_numbers(entry: Entry) -> Iterator[Reading]:
    for text in split_sentences(entry):
        for match in _NUMBER.finditer(text):
            rest = f"{text[: match.start()]} {text[match.end() :]}"
            unit = match[2].lower().rstrip("s")
            words, names = stems_of(rest), {word.lower(): number for word, number in _NUMBERED.findall(rest)}
            if len(words) >= _LEAST_SHARED:
                yield Reading(float(match[1].replace(",", "")), match[1], unit, words, names, entry)
