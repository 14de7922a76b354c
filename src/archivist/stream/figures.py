"""Find figures that rise or fall: one subject and its number in several cycles, whatever stands around.

A figure is a number with a unit or a name beside it, or a time of day. Its subject is a word of the same
title or the number of the same issue; which language it is in does not matter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from archivist.recall.keywords import STOP_WORDS
from archivist.records import Entry, EntryType
from archivist.stream.complaints import is_retold
from archivist.stream.insight_text import Insight, labels_of, make_insight, quote_entry, quote_text
from archivist.stream.timelines import stems_of

_LEAST_READINGS = 3
# A figure that ends this near to where it began shows nothing; a time of day has no zero to compare with.
_LEAST_CHANGE, _LEAST_MINUTES = 0.1, 20
# One thing seldom changes more from one report to the next.
_MOST_STEP = 5
_SAME_WHOLE = 1.5
# A figure turned where it went back by this share of the larger value; few readings only go to and fro.
_LEAST_TURN, _LEAST_TURNING = 0.2, 4
_SHOWN = 6
_MOST_FIGURES = 3
_MOST_AROUND = 4
_CLOCK = "time of day"
_LABEL = re.compile(r"(?:PR )?#\d+|\b[A-Z][A-Z0-9]+-\d+")
_VALUE = r"\d{1,3}(?:[, \u00a0\u202f]\d{3})+(?!\d)|\d{1,9}(?:[.,]\d{1,4})?"
_NUMBER = re.compile(
    r"(?<![\w:.,/-])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?![\d:])"
    r"|(?:(?P<before>(?<!\w)[^\W\d_]\w{0,39})(?P<colon>:?) +)?(?<![\w#./:,-])"
    rf"(?P<value>{_VALUE})(?![\d:])"
    rf"(?: ?(?P<of>of|von|de|di|van|av|sur|/) ?(?P<whole>{_VALUE})(?![\d/.])"
    r"| ?(?P<unit>%|(?:[kM] )?[^\W\d_]+(?:/[^\W\d_]+)?)|(?![\w/]))"
)
_CLAUSE_END = re.compile(r"[,;()]\s|\.\s|\s[\u2013\u2014-]\s")
_NO_WORD = re.compile(r"[^\w\s'\u2019-]|\b\d\S*")
_THOUSANDS = re.compile(r"[, \u00a0\u202f](?=\d{3}\b)")


class Reading(NamedTuple):
    """A number in an entry: its value, as it was written, its unit, and what the words around it name.

    `near` are the words of its clause, `words` also those of the title; `place` is where it stands.
    """

    value: float
    written: str
    unit: str
    whole: float
    near: frozenset[str]
    words: frozenset[str]
    place: int
    entry: Entry


def figure_insights(entries: Sequence[Entry], new: Collection[str]) -> list[Insight]:
    """Return the figures that rose or fell and have a new reading, those with most readings first."""
    # Most readings first; of two words for the same ones, that which stands next to the numbers.
    ranked = [
        ((-len(series), sum(key not in each.near for each in series), -len(stems_of(name)), name), series)
        for key, series in _find_series(entries)
        for name in [_name_series(key, series)]
    ]
    found: list[tuple[str, list[Reading]]] = []
    for (*_, name), series in sorted(ranked, key=lambda each: each[0]):
        spots = {(each.entry.id, each.value) for each in series}
        if name and not any(spots & {(e.entry.id, e.value) for e in other} for _, other in found):
            found.append((name, series))
    told = [each for each in found if any(reading.entry.id in new for reading in each[1])]
    return [_tell_series(name, series, entries) for name, series in told][:_MOST_FIGURES]


def _find_series(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Reading]]]:
    """Yield the readings of one unit that rise or fall, each time with the word or label that they share."""
    series: dict[tuple[str, str], dict[str, Reading]] = {}
    named: Counter[str] = Counter()
    for entry in entries:
        labels = frozenset(labels_of(entry))
        named.update(stems_of(_LABEL.sub(" ", entry.action)))
        # What is decided is a goal or a limit.
        if entry.type is EntryType.DECISION or is_retold(entry):
            continue
        for reading in _read_numbers(entry):
            for key in sorted((reading.words - stems_of(reading.unit)) | labels):
                known = series.setdefault((reading.unit, key), {})
                last = known.get(entry.id)
                # The number in the clause of the subject is the subject's.
                if last is None or (key in reading.near and key not in last.near):
                    known[entry.id] = reading
    is_typed = any(entry.type is EntryType.OBSERVATION for entry in entries)
    for (_, key), readings in series.items():
        chosen = _prefer_observed([*readings.values()], is_typed=is_typed)
        # A word that most entries have without such a number is not what the number measures.
        is_subject = key not in named or 2 * len(readings) >= named[key]
        # One of them may say what it measures in another clause.
        is_near = key not in named or sum(key not in reading.near for reading in chosen) < 2
        # “Server room”, “server disk”: a word that stands with another one each time is no subject.
        rest = [reading.near - {key} for reading in chosen]
        is_one = key not in named or not all(rest) or len(frozenset().union(*rest)) < sum(map(len, rest))
        if is_subject and is_near and is_one and _is_steady(chosen):
            yield key, chosen


def _prefer_observed(readings: list[Reading], *, is_typed: bool) -> list[Reading]:
    """Return the readings that were observed, all where few were; none where most were somebody's work."""
    seen = [each for each in readings if each.entry.type is EntryType.OBSERVATION]
    if len({each.entry.cycle for each in seen}) >= _LEAST_READINGS:
        return seen
    if not is_typed:
        return readings
    # What somebody's work is said to give counts once it is observed.
    known = readings[: readings.index(seen[-1]) + 1] if seen else []
    return known if 2 * len(seen) >= len(known) else []


def _find_turn(series: Sequence[Reading]) -> int:
    """Return where the last stretch of a series begins, if it rose and then fell once, or fell and rose."""
    values = [reading.value for reading in series]
    steps = [later > earlier for earlier, later in pairwise(values) if later != earlier]
    is_single = sum(a is not b for a, b in pairwise(steps)) == 1
    if len(series) < _LEAST_TURNING or not is_single or not _is_measure(series[0].unit):
        return 0
    at = values.index(max(values) if steps[0] else min(values))
    least = _LEAST_MINUTES if series[0].unit == _CLOCK else _LEAST_TURN * max(values[at], values[-1])
    return at if abs(values[-1] - values[at]) >= least else 0


def _is_steady(series: Sequence[Reading]) -> bool:
    if len({reading.entry.cycle for reading in series}) < _LEAST_READINGS:
        return False
    stretch = series[_find_turn(series) :]
    steps = [later.value - earlier.value for earlier, later in pairwise(stretch)]
    net, most = stretch[-1].value - stretch[0].value, max(reading.value for reading in stretch)
    least = _LEAST_MINUTES if series[0].unit == _CLOCK else _LEAST_CHANGE * most
    # Sprint 1, sprint 2, sprint 3: the number is a name.
    is_count = set(steps) == {1} and len(series[0].unit) > 1
    is_jump = any(max(a.value, b.value) > _MOST_STEP * min(a.value, b.value) for a, b in pairwise(series))
    is_other = any(max(a.whole, b.whole) > _SAME_WHOLE * min(a.whole, b.whole) for a, b in pairwise(series))
    along = sum(step * net > 0 for step in steps)
    is_along = along * 3 >= 2 * len(steps) if _is_measure(series[0].unit) else along == len(steps)
    return abs(net) >= least > 0 and is_along and not (is_count or is_jump or is_other)


def _is_measure(unit: str) -> bool:
    """Say whether a unit measures: how many of something went wrong each time is no measure."""
    return unit in ("of", "%", "", _CLOCK) or len(unit) < 4 or not unit.isalpha()


def _tell_series(name: str, series: Sequence[Reading], entries: Sequence[Entry]) -> Insight:
    turn = _find_turn(series)
    first, last = series[turn], series[-1]
    verb = "moved" if first.unit == _CLOCK else "rose" if last.value > first.value else "fell"
    before = f", after {series[0].written} in cycle {series[0].entry.cycle}" if turn else ""
    values = " → ".join(reading.written for reading in (series[0], *series[1:][-_SHOWN:]))
    values += f" {last.unit}" if last.unit.isalpha() and last.unit not in last.written.lower() else ""
    stems = stems_of(name)
    between = [entry for entry in entries if first.entry.seq < entry.seq]
    is_typed = {entry.type for entry in entries} >= {EntryType.ACTION, EntryType.OBSERVATION}
    cluster = [reading.entry for reading in series]
    labels = frozenset.intersection(*(frozenset(labels_of(entry)) for entry in cluster))
    named = {label for entry in cluster for label in labels_of(entry)}
    acted = [
        entry
        for entry in between
        if entry.type is not EntryType.OBSERVATION
        and (stems & stems_of(f"{entry.action} {entry.content}") or named & {*labels_of(entry)})
    ]
    since = [entry for entry in acted if is_typed and entry.seq > last.entry.seq][-1:]
    return make_insight(
        cluster,
        f"{name} {verb} from {first.written} to {last.written} between cycles {first.entry.cycle} and"
        f" {last.entry.cycle}{before} ({values})",
        f"{' → '.join(f'cycle {entry.cycle}: {quote_text(entry.action)}' for entry in cluster)}.",
        "No action or decision since the first of them names it." if is_typed and not acted else "",
        *(f"Since then: {quote_entry(entry)}." for entry in since),
        quoted=since,
        tags=("trend",),
        importance=10,
        about=labels,
    )


def _name_series(key: str, series: Sequence[Reading]) -> str:
    """Return the words that most titles of a series share; else the label that all entries share."""
    labels = frozenset.intersection(*(frozenset(labels_of(reading.entry)) for reading in series))
    titles = [_LABEL.sub(".", reading.entry.action) for reading in series]
    return find_shared_name(titles, key, series[0].unit) or next(iter(sorted(labels)), "")


def find_shared_name(titles: Sequence[str], key: str = "", unit: str = "") -> str:
    """Return the words in a row that most titles share, without numbers; an empty text where none are.

    One with the word `key` comes first.
    """
    counts = Counter(stem for title in titles for stem in stems_of(title))
    shared = {stem for stem, count in counts.items() if 2 * count > len(titles)} - stems_of(unit)
    having = [stems_of(title) for title in titles]
    best: dict[str, tuple[bool, int, int, int]] = {}
    for part in (part for title in titles for part in _NO_WORD.split(title)):
        run: list[str] = []
        for word in (*part.split(), "."):
            stems = stems_of(word)
            if word != "." and (stems <= shared if stems else run):
                run.append(word)
                continue
            telling = [at for at, each in enumerate(run) if stems_of(each)]
            name = " ".join(run[telling[0] : telling[-1] + 1]) if telling else ""
            if name and name not in best:
                stems = stems_of(name)
                count = sum(stems <= each for each in having)
                best[name] = key in stems, count * len(stems), count, sum(name in each for each in titles)
            run = []
    name = _widen_name(max(best, key=lambda each: best[each], default=""), titles)
    return name[:1].upper() + name[1:]


def _widen_name(name: str, titles: Sequence[str]) -> str:
    """Return a name with the few words around it that most titles have: “events per day”."""
    texts = [f" {' '.join(title.split())} ".lower() for title in titles]
    for part in (part for title in titles for part in _NO_WORD.split(title)):
        if not name or name not in part:
            continue
        before, found, after = (text.split() for text in part.partition(name))
        before, after = before[-_MOST_AROUND:], after[:_MOST_AROUND]
        wider = [
            " ".join((*before[first:], *found, *after[:last]))
            for first in range(len(before) + 1)
            for last in range(len(after), -1, -1)
            # What says something of its own is not part of a name.
            if not any(map(stems_of, (*before[first:], *after[:last])))
            and not any(
                len(word) < 3 or word.lower() in STOP_WORDS
                for word in (*before[first : first + 1], *after[:last][-1:])
            )
        ]
        counts = {each: sum(f" {each} ".lower() in text for text in texts) for each in wider}
        known = (each for each in wider if 2 * counts[each] > len(texts))
        if (best := max(known, key=len, default=name)) != name:
            return best
    return name


def _read_numbers(entry: Entry) -> Iterable[Reading]:
    """Yield the numbers of an entry that count something: a share, or with a unit or a plural beside them."""
    title = stems_of(_LABEL.sub(" ", entry.action))
    text = _LABEL.sub(" ", f"{entry.action}. {entry.content}")
    ends = [0, *(match.end() for match in _CLAUSE_END.finditer(text)), len(text)]
    for match in _NUMBER.finditer(text):
        at = match.start("value") if match["value"] else match.start()
        begin, end = max(e for e in ends if e <= at), min(e for e in ends if e > at)
        # “Cold start: 2.3 s”: what a lone number belongs to stands in the clause before.
        near = stems_of(text[begin:end]) or stems_of(text[: match.start()])
        if match["hour"]:
            minutes = int(match["hour"]) * 60 + int(match["minute"])
            yield Reading(minutes, match[0], _CLOCK, 0, near, near | title, at, entry)
            continue
        before, unit = (match["before"] or "").lower(), (match["unit"] or "").lower()
        unit = "" if unit in STOP_WORDS else unit
        is_named = before.endswith("s") or match["colon"] or "." in match["value"]
        if not match["whole"] and not unit and not is_named:
            continue
        written = match["value"]
        if match["whole"]:
            unit, written = "of", f"{match['value']} {match['of']} {match['whole']}"
        elif unit and (len(unit) < 4 or not unit.isalpha()):
            written = text[match.start("value") : match.end("unit")]
        value, whole = _number(match["value"]), _number(match["whole"] or "0")
        names = frozenset([before]) if before and not unit else frozenset()
        yield Reading(value, written, unit, whole, near | names, near | names | title, at, entry)


def _number(written: str) -> float:
    return float(_THOUSANDS.sub("", written).replace(",", "."))
