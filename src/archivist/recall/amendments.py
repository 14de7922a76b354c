"""Put scored documents in order: what was replaced below its replacement, later words above earlier ones.

A memory that gives an amended decision second place gives the wrong answer, however well the old words fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from archivist.recall.lexical import SILENT
from archivist.recall.scoring import Score
from archivist.store.results import IndexedDocument

# Of so many first hits it is asked whether they speak of the same thing.
COMPARED = 10
# A later word must be at least this share as relevant as the earlier one above which it is put.
_LEAST_SHARE = 0.3
# An amendment holds at least this share of the question's words that the earlier text holds, or one of them
# and another common word. Two texts of which so large a share is common say the same thing anew.
_ASKED_SHARE = 0.5
_COMMON_WORDS = 2
_SAME_SHARE = 0.6
_SHORT = 4
# Whether the past is asked for shows at once; what follows is a pasted log.
_QUESTION = 500

# How people say that something is not as it was: by a word, or by several, which are looked for where the
# seldomest of them stands.
_CHANGE_WORDS = [
    "amend", "amended", "amends", "anymore", "canceled", "cancelled", "changed", "correction", "cut",
    "decreased", "deprecated", "dropped", "gone", "increased", "instead", "lowered", "migrated", "moved",
    "now", "overrule", "overrules", "raised", "reduced", "removed", "renamed", "replaced", "replaces",
    "replacing", "reverted", "supersede", "supersedes", "switched", "updated",
]  # fmt: skip
_SELDOMEST = [
    "after", "here", "limits", "longer", "make", "more", "out", "rather", "rolled", "take", "takes",
    "today", "took", "went",
]  # fmt: skip
_CHANGED, _MAY_TELL_CHANGE = frozenset(_CHANGE_WORDS), frozenset(_SELDOMEST)
_CHANGE = re.compile(
    r"""\b(?: no\ (?:longer|more) | any\ more | from\ (?:here|today)\ on | after\ all | rolled\ back
      | takes?\ over | (?:is|are)\ out | off\ limits | rather\ than | went\ back\ to | make\ it
      | took\b.{1,40}\bout )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Who asks what happened wants it as it was; who asks how it is, as it is now.
_OF_THE_PAST = re.compile(
    r"\b(?:did(?! (?:\w+ ){1,2}(?:decide|agree|settle|choose)\b)|was|were|had|used to|ago|yesterday|first"
    r"|originally|initially|previously|earlier|before)\b"
    r"|\bha(?:s|ve)\b(?=.*(?:ed|en|one|ade|ent|ost|ound|ought)\b)(?!.*\b(?:decided|agreed|settled|chosen)\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]{2,}")
_ENDINGS = (frozenset(("ies", "ied", "ing")), frozenset(("ed", "es")), frozenset(("e", "s", "y")))


class RecordText(NamedTuple):
    """What a document says and where: only words of one place can amend each other."""

    text: str
    place: str = ""


def rank_by_score(scored: Mapping[int, Score]) -> list[int]:
    """Return the places by their scores, equal ones in a stable order."""
    return sorted(scored, key=lambda place: (-round(scored[place].total, 9), place))


def pairs_to_compare(order: Sequence[int], documents: Mapping[int, IndexedDocument]) -> list[tuple[int, int]]:
    """Return the pairs (newer, older) among the first hits that could be words on one subject."""
    pairs = []
    for one, other in combinations(order[:COMPARED], 2):
        later = _is_later(documents[one], documents[other])
        if documents[one].kind == documents[other].kind and later is not None:
            pairs.append((one, other) if later else (other, one))
    return pairs


def apply_amendments(
    order: Sequence[int],
    scored: Mapping[int, Score],
    texts: Mapping[int, RecordText],
    pairs: Sequence[tuple[int, int]],
    question: str,
) -> tuple[list[int], dict[int, int]]:
    """Return the order in which a later word that amends an earlier one stands right above it.

    The pairs are (newer, older). The second value says for each document that was amended which one did it.
    """
    if _OF_THE_PAST.search(question[:_QUESTION]):
        return list(order), {}
    asked = _stems(_words(question))
    words = {place: _words(each.text) for place, each in texts.items()}
    stems = {place: _stems(each) for place, each in words.items()}
    speak_of_change = {place for place, each in texts.items() if _mentions_change(words[place], each.text)}
    amendments = []
    for newer, older in pairs:
        common = stems[newer] & stems[older]
        asked_too = len(common & asked)
        is_amended = newer in speak_of_change and (
            asked_too >= max(1.0, _ASKED_SHARE * len(stems[older] & asked))
            or (asked_too and len(common) >= _COMMON_WORDS)
        )
        either = len(stems[newer]) + len(stems[older]) - len(common)
        is_said_anew = len(common) >= _SAME_SHARE * either and len(common) > 1
        if (
            (is_amended or is_said_anew)
            and texts[newer].place == texts[older].place
            and scored[newer].relevance >= _LEAST_SHARE * scored[older].relevance
        ):
            amendments.append((newer, older))
    replaced = {older: newer for newer, older in reversed(amendments)}
    return _reorder_pairs(order, amendments), replaced


def demote_superseded(order: Sequence[int], documents: Mapping[int, IndexedDocument]) -> list[int]:
    """Return the order in which what was superseded stands below what superseded it."""
    if not any(documents[place].superseded_by for place in order):
        return list(order)
    by_record = {(documents[place].kind, documents[place].record): place for place in order}
    result: dict[int, None] = {}
    for place in order:
        # What superseded it, what superseded that, and so on: the last of them first.
        chain = [place]
        while (
            newer := by_record.get((documents[chain[-1]].kind, documents[chain[-1]].superseded_by))
        ) is not None:
            if newer in chain or newer in result:
                break
            chain.append(newer)
        result.update(dict.fromkeys(reversed(chain)))
    return list(result)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _stems(words: set[str]) -> frozenset[str]:
    """Return the telling ones of some words without their endings, so that the forms of a word are one."""
    return frozenset([_stem(word) if len(word) > _SHORT else word for word in words - SILENT])


def _stem(word: str) -> str:
    for size, endings in zip((3, 2, 1), _ENDINGS, strict=True):
        if word[-size:] in endings:
            return word[:-size]
    return word


def _mentions_change(words: set[str], text: str) -> bool:
    if not words.isdisjoint(_CHANGED):
        return True
    return not words.isdisjoint(_MAY_TELL_CHANGE) and _CHANGE.search(text) is not None


def _reorder_pairs(order: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the order in which the first of each pair stands above the second, moved no further than needed.

    One move may undo another; what is newer than all comes to rest first, so that the rounds end.
    """
    result = list(order)
    for _ in result:
        is_settled = True
        for newer, older in pairs:
            if result.index(newer) > result.index(older):
                result.remove(newer)
                result.insert(result.index(older), newer)
                is_settled = False
        if is_settled:
            break
    return result


def _is_later(one: IndexedDocument, other: IndexedDocument) -> bool | None:
    """Say whether one is later than the other; None when it cannot be known."""
    if one.thread and one.thread == other.thread:
        return one.position > other.position
    if one.time is None or other.time is None or one.time == other.time:
        return None
    return one.time > other.time
