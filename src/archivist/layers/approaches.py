"""Choose the approach of the next attempt: by what was tried at the task, and what works elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from archivist.audit.analytics import ApproachResult, expected_chance, fold_approach
from archivist.reading.similarity import content_stems
from archivist.records.layers import Fact

# The category of knowledge under which the approach that worked is kept, by the task's parent and its kind.
CONVENTION = "convention"
_SHARED_WORDS = 2
_KIND_WORDS = 6
_KIND_CHARACTERS = 80


def are_alike(one: str, other: str) -> bool:
    """Say whether two titles share two words that say what they are about, and half of the shorter's."""
    words, others = content_stems(one), content_stems(other)
    shared = len(words & others)
    return words == others or (shared >= _SHARED_WORDS and 2 * shared >= min(len(words), len(others)))


def advise(approach: str) -> str:
    """Return the words with which a convention names the approach that worked."""
    return f"use `{approach}`"


def convention_key(title: str, home: str, known: Iterable[Fact]) -> str:
    """Return the key of what a task taught: below its home, by its kind; tasks alike share one."""
    words = [word for word in re.findall(r"\w+", title.lower()) if content_stems(word)]
    kind = "-".join(words[:_KIND_WORDS])[:_KIND_CHARACTERS]
    alike = (fact.key for fact in known if are_alike(title, _kind_in(fact, home)))
    return next(alike, f"{home}/{kind}" if kind else home)


def _kind_in(fact: Fact, home: str) -> str:
    """Return the words of a convention's kind of task; nothing for one of another home."""
    below = fact.key.removeprefix(f"{home}/")
    return below.replace("-", " ") if below != fact.key else ""


def find_advised(title: str, home: str, offered: Sequence[str], known: Sequence[Fact]) -> str:
    """Return the offered approach that a convention of the task's home names, first one for tasks alike."""
    own = [fact for fact in known if fact.key == home or fact.key.startswith(f"{home}/")]
    for fact in sorted(own, key=lambda fact: not are_alike(title, _kind_in(fact, home))):
        for approach in offered:
            if fact.value == approach or advise(approach) in fact.value:
                return approach
    return ""


def choose_approach(
    planned: Sequence[str], tried: Sequence[ApproachResult], similar: Iterable[ApproachResult], advised: str
) -> tuple[str, str]:
    """Return the planned approach of the next attempt, and why.

    One that was not tried at the task comes first: what is known to work, what worked for similar tasks, then
    the order of the plan, and last what only failed for similar tasks. After them what was tried is repeated.
    """
    here = {fold_approach(each.approach): each for each in tried}
    counts: dict[str, Counter[str]] = {}
    for each in similar:
        counted = counts.setdefault(fold_approach(each.approach), Counter())
        counted.update(completed=each.completed, failed=each.failed)

    def rank(approach: str) -> tuple[int, str]:
        name = fold_approach(approach)
        own, met = here.get(name), counts.get(name, Counter())
        elsewhere = expected_chance(met["completed"], met["failed"])
        if own is not None and own.completed > own.failed:
            return 0, "it worked before"
        if own is None and approach == advised:
            return 1, "known to work"
        if own is None and elsewhere > 0.5:
            return 2, "it worked for similar tasks"
        if own is None:
            last = 4 if elsewhere < 0.5 else 3
            return last, "another approach failed" if here else "first choice"
        return (6 if own.failed else 5), "each was tried before"

    if not planned:
        return "", "tried before" if tried else "first attempt"
    best = min(planned, key=lambda approach: rank(approach)[0])
    return best, rank(best)[1]
