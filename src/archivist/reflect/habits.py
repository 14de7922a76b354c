"""Find what a user asks for again, run after run, by the words that come back.

A habit has a word of its own (a draft, the changelog, a test board), however it is asked for: that word comes
back in run after run, beside the task, in one clause of each. What the work is about comes back too, but
a run begins with it or speaks of it again and again. So nothing here has to know what users ask for, or in
which language. Figures: docs/decisions/0021-what-works.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.lessons.contradiction import contradicts
from archivist.reading.similarity import content_stems
from archivist.reflect.request_words import own_stems, request_stems
from archivist.reflect.requests import (
    ABOUT_PRODUCT,
    CLAUSE_END,
    CLAUSE_JOINS,
    CLAUSE_MARKS,
    Request,
    are_alike,
    is_denied,
    without_opening,
)

# What is told was typed in so many of the latest runs, or of all in this share, and still is.
_LEAST_RUNS = 3
_LATELY = 20
_LEAST_SHARE = 0.1
_MOST_TOLD = 4
# A bare "commit" says little: where, and what with it, differs each time.
_BARE = content_stems("commit push merge rebase deploy")
_BARE_SHARE = 1 / 3
# A word is a habit's if it does not begin the task in so many of its runs, and if a run says it in so few
# clauses, which share so much; or in more clauses that are nearly the same.
_BESIDE_SHARE = 0.65
_MOST_CLAUSES = 1.3
_LEAST_SHARED = 0.35
_NEARLY_SAME = 0.5
_LEAST_OF_SAME = 4
# Two words stand for one habit if so many of their clauses are the same.
_SAME_CLAUSES = 0.5
_LONGEST_CLAUSE = 14
# Behind such a word stands what one run was about, if no other run has the words.
_BEFORE_PARTICULARS = frozenset(("for", "of", "about", "für", "pour", "para", "per"))
# What is said last in so many of the runs that ask for it is asked at the end.
_LAST_SHARE = 2 / 3
# How something is to be done belongs to what is asked for.
_REQUEST_END = lazy_pattern(
    rf"{CLAUSE_MARKS}|,\s(?!(?:as|against|to|into|for|with|in|on|onto|from|at|by|under|only|without|when|once"
    rf"|after|not|never)\b)|{CLAUSE_JOINS}"
)
# What switches checks off or brings something in is said anew each time; what only says when is no request.
_NOT_TOLD = lazy_pattern(
    r"\s*+(?:disable|skip|ignore|bypass|allow|approve|force|override|install|download|trust|turn|switch"
    r"|when|whenever|if|while|once|unless|wenn|falls|sobald|quand|lorsque|dès que|cuando|quando)\b",
    re.IGNORECASE,
)
_POLITE_END = lazy_pattern(
    r"(?<![\s,])[\s,]{1,5}(?:please|pls|plz|bitte|stp|svp|por favor|per favore|thanks|thx)\W*$", re.IGNORECASE
)


class Habit(NamedTuple):
    """What the user asks for again: typical words, the runs that ask for it, and whether they do so last."""

    words: str
    runs: tuple[str, ...]
    is_at_end: bool = False


class _Clause(NamedTuple):
    run: str
    request: Request
    words: str
    stems: frozenset[str]
    is_head: bool


def select_habits(asked: Mapping[str, Sequence[Request]]) -> list[Habit]:
    """Choose what the user asks for again, most first, from what each run asked for, the newest run first."""
    runs = tuple(asked)
    habits = []
    for clauses in _group_clauses(_clauses_of(asked)):
        words = _typical_words(clauses)
        asking = {clause.run for clause in clauses}
        # Where the very same is mostly asked for, runs that only touch on it do not count.
        same = {run for run, requests in asked.items() if any(asks_for(each, words) for each in requests)}
        if len(same & asking) >= max(_LEAST_RUNS, len(asking) / 2):
            asking = same
        if _is_asked_again(words, asking, runs):
            last = {each.run for each in clauses if each.request.is_last and not each.request.is_in_task}
            is_at_end = len(last & asking) >= _LAST_SHARE * len(asking)
            habits.append(Habit(words, tuple(run for run in runs if run in asking), is_at_end))
    # Of two that cannot hold together, the one that was asked for last.
    holding: list[Habit] = []
    for habit in sorted(habits, key=lambda habit: runs.index(habit.runs[0])):
        if not any(contradicts(habit.words, later.words) for later in holding):
            holding.append(habit)
    told: list[Habit] = []
    named: set[str] = set()
    for habit in sorted(holding, key=lambda habit: -len(habit.runs)):
        stems = own_stems(habit.words)
        if 2 * len(stems & named) < len(stems):
            told.append(habit)
            named |= stems
    return told[:_MOST_TOLD]


def _clauses_of(asked: Mapping[str, Sequence[Request]]) -> Iterator[_Clause]:
    rules = [(run, each.words) for run, requests in asked.items() for each in requests if each.is_rule]
    for run, requests in asked.items():
        for request in requests:
            # A rule that comes back is told as one.
            if request.is_rule and any(at != run and are_alike(words, request.words) for at, words in rules):
                continue
            ends = CLAUSE_END if request.is_head else _REQUEST_END
            for place, clause in enumerate(ends.split(request.words)):
                words = without_opening(clause.strip())
                is_short = len(words.split()) <= _LONGEST_CLAUSE
                if is_short and not _NOT_TOLD.match(words) and (stems := own_stems(words)):
                    yield _Clause(run, request, words, stems, request.is_head and not place)


def _group_clauses(clauses: Iterable[_Clause]) -> Iterator[list[_Clause]]:
    """Yield for each habit the clauses that ask for it, one a run."""
    with_stem: dict[str, dict[str, list[_Clause]]] = {}
    for clause in clauses:
        for stem in clause.stems:
            with_stem.setdefault(stem, {}).setdefault(clause.run, []).append(clause)
    groups: list[tuple[dict[str, _Clause], list[float]]] = []
    for _, by_run in sorted(with_stem.items(), key=lambda item: (-len(item[1]), item[0])):
        beside_task = sum(not all(clause.is_head for clause in said) for said in by_run.values())
        if len(by_run) < _LEAST_RUNS or beside_task < max(2, _BESIDE_SHARE * len(by_run)):
            continue
        clauses_per_run = sum(len({each.words.lower() for each in said}) for said in by_run.values())
        asked = {run: min(said, key=lambda clause: clause.is_head) for run, said in by_run.items()}
        group, rates = next((each for each in groups if _are_one_habit(each[0], asked)), ({}, []))
        if not rates:
            groups.append((group, rates))
        rates.append(clauses_per_run / len(by_run))
        for run, clause in asked.items():
            group.setdefault(run, clause)
    for group, rates in groups:
        asking = _of_one_sign(list(group.values()))
        shared = _share_in_common(asking)
        is_said_once = sum(rates) / len(rates) <= _MOST_CLAUSES and shared >= _LEAST_SHARED
        is_same = shared >= _NEARLY_SAME and len(asking) >= _LEAST_OF_SAME
        of_product = sum(ABOUT_PRODUCT.search(clause.words) is not None for clause in asking)
        if (is_said_once or is_same) and 2 * of_product < len(asking):
            yield asking


def _are_one_habit(group: Mapping[str, _Clause], asked: Mapping[str, _Clause]) -> bool:
    same = sum(group.get(run) is clause for run, clause in asked.items())
    return same >= _SAME_CLAUSES * min(len(group), len(asked))


def _of_one_sign(clauses: Sequence[_Clause]) -> list[_Clause]:
    """Return the clauses that ask for something, or those that forbid it: whichever are more."""
    by_sign: dict[bool, list[_Clause]] = {}
    for clause in clauses:
        by_sign.setdefault(is_denied(clause.words), []).append(clause)
    return max(by_sign.values(), key=len)


def _share_in_common(clauses: Sequence[_Clause]) -> float:
    """Return how much of the shorter one two of the clauses have in common, on average."""
    shares = [len(a.stems & b.stems) / min(len(a.stems), len(b.stems)) for a, b in combinations(clauses, 2)]
    return sum(shares) / max(1, len(shares))


def _typical_words(clauses: Sequence[_Clause]) -> str:
    """Return the user's own words that have most in common with those of the other runs."""
    counts = Counter(stem for clause in clauses for stem in clause.stems)
    # One word alone may be the end of a sentence.
    sayings = [each.words for each in clauses]
    sayings += [each.request.words for each in clauses if " " not in each.words]
    typed = Counter(words.lower() for words in sayings)

    def typicality(words: str) -> tuple[bool, bool, bool, float, int, int]:
        stems, times = own_stems(words), typed[words.lower()]
        shared = sum(counts[stem] - 1 for stem in stems) / (2 + len(stems))
        # One word says little, unless most runs say no more; so does what ends with a word of any sentence.
        is_usual = 2 * times >= len(clauses)
        is_whole = bool(own_stems(words.split()[-1]))
        return (
            not words.endswith("?"),
            is_usual or " " in words,
            is_usual or is_whole,
            shared,
            times,
            -len(words),
        )

    best = max(sayings, key=typicality)
    polite = _POLITE_END.search(best)
    words = (best[: polite.start()] if polite else best).split()
    kept = len(words)
    # "Start a helper for the stock" says what one run was about.
    while kept > 1 and not any(counts[stem] > 1 for stem in own_stems(words[kept - 1])):
        kept -= 1
    is_particular = kept < len(words) and words[kept].lower() in _BEFORE_PARTICULARS
    return " ".join(words[:kept] if is_particular and kept > 1 else words)


def asks_for(request: Request, words: str) -> bool:
    """Say whether a request holds all that the words of a habit ask for."""
    is_same_sign = is_denied(words) == is_denied(request.words)
    return is_same_sign and request_stems(words) <= request_stems(request.words)


def _is_asked_again(words: str, asking: Collection[str], runs: Sequence[str]) -> bool:
    """Say whether so many runs ask for something, of all runs newest first, that the next one may too."""
    if request_stems(words) <= _BARE and len(asking) < _BARE_SHARE * len(runs):
        return False
    lately = sum(run in asking for run in runs[:_LATELY])
    is_frequent = lately >= _LEAST_RUNS or len(asking) >= max(_LEAST_RUNS, _LEAST_SHARE * len(runs))
    return is_frequent and any(run in asking for run in runs[: -(-len(runs) // 2)])
