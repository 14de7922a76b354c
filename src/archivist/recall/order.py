"""Put scored documents in order: what was replaced below its replacement, later words above earlier ones.

A memory that gives an amended decision second place gives the wrong answer, however well the old words fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from archivist.recall.lexical import terms
from archivist.recall.merits import Score
from archivist.stores.answers import Placed

# Of so many first hits it is asked whether they speak of the same thing.
COMPARED = 10
# A later word must be at least this share as relevant as the earlier one above which it is put.
_LEAST_SHARE = 0.4
# By so many spreads two texts are nearer than any two: on one subject, and saying the same.
_SAME_SUBJECT = 2.0
_SAME_WORDS = 5.5
_STEM = 5

# How people say that something is not as it was.
_CHANGE = re.compile(
    r"""\b(?: instead | no\ (?:longer|more) | any\ ?more | from\ now\ on | now | after\ all | actually
      | correction
      | changed? | switch(?:ed|ing)? | mov(?:e|ed|ing)\ to | migrat(?:e|ed|ing) | replac(?:e|ed|es|ing)
      | renam(?:e|ed) | remov(?:e|ed) | dropp?(?:ed)? | deprecated? | lower(?:ed)? | rais(?:e|ed) | increased?
      | decreased? | reduced? | updated? | revert(?:ed)? | rolled\ back | takes?\ over | (?:is|are)\ out
      | off\ limits | decided | settled | supersedes? | overrules? | amend(?:s|ed)? | rather\ than | postponed
      | cancell?ed | (?:went\ )?back\ to | gone | follows? )\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a document says and where: only words of one place can amend each other."""

    text: str
    place: str = ""


def ranked(scored: Mapping[int, Score]) -> list[int]:
    """Return the places by their scores, equal ones in a stable order."""
    return sorted(scored, key=lambda place: (-round(scored[place].total, 9), place))


def pairs_to_compare(order: Sequence[int], placed: Mapping[int, Placed]) -> list[tuple[int, int]]:
    """Return the pairs (newer, older) among the first hits that could be words on one subject."""
    pairs = []
    for one, other in combinations(order[:COMPARED], 2):
        later = _later(placed[one], placed[other])
        if placed[one].kind == placed[other].kind and later is not None:
            pairs.append((one, other) if later else (other, one))
    return pairs


def amended(
    order: Sequence[int],
    scored: Mapping[int, Score],
    said: Mapping[int, Said],
    likeness: Mapping[tuple[int, int], float],
    question: str,
) -> tuple[list[int], dict[int, int]]:
    """Return the order in which a later word that amends an earlier one stands right above it.

    `likeness` says by how many spreads each pair (newer, older) is more alike than any two texts. The second
    value says for each document that was amended which one did it.
    """
    asked = _stems(question)
    stems = {place: _stems(each.text) for place, each in said.items()}
    speak_of_change = {place for place, each in said.items() if _CHANGE.search(each.text)}
    result = list(order)
    replaced: dict[int, int] = {}
    for (newer, older), alike in likeness.items():
        common = stems[newer] & stems[older]
        is_amended = newer in speak_of_change and (
            not common.isdisjoint(asked) or (bool(common) and alike >= _SAME_SUBJECT)
        )
        if (
            (is_amended or alike >= _SAME_WORDS)
            and said[newer].place == said[older].place
            and scored[newer].relevance >= _LEAST_SHARE * scored[older].relevance
        ):
            replaced.setdefault(older, newer)
            _put_above(result, newer, older)
    return result, replaced


def superseded(order: Sequence[int], placed: Mapping[int, Placed]) -> list[int]:
    """Return the order in which what was superseded stands below what superseded it."""
    by_record = {(placed[place].kind, placed[place].record): place for place in order}
    result = list(order)
    for older in order:
        newer = by_record.get((placed[older].kind, placed[older].superseded_by))
        if newer is not None:
            _put_above(result, newer, older)
    return result


def _stems(text: str) -> frozenset[str]:
    """Return the telling words of a text, each cut to its beginning, so that its forms are one."""
    return frozenset(word[:_STEM] for word in terms(text).words)


def _put_above(order: list[int], newer: int, older: int) -> None:
    if order.index(newer) > order.index(older):
        order.remove(newer)
        order.insert(order.index(older), newer)


def _later(one: Placed, other: Placed) -> bool | None:
    """Say whether one is later than the other; None when it cannot be known."""
    if one.thread and one.thread == other.thread:
        return one.position > other.position
    if one.time is None or other.time is None or one.time == other.time:
        return None
    return one.time > other.time
