"""Put scored documents in order: superseded ones below their successors, amendments above what they amend.

A memory that ranks an outdated decision above its amendment gives the wrong answer, however well the old
words match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import SILENT
from archivist.recall.results import RecordText
from archivist.recall.scoring import Score
from archivist.store.results import IndexedDocument

# The first hits, which are compared in pairs.
COMPARED = 10
# An amendment must be at least this share as relevant as the earlier text.
_LEAST_SHARE = 0.3
# An amendment contains at least this share of the question's words in the earlier text, or one of them and
# another common word. Two texts with so large a common share say the same thing again.
_ASKED_SHARE = 0.5
_COMMON_WORDS = 2
_SAME_SHARE = 0.6
# Shorter words keep their endings.
_SHORT = 4
# A question about the past says so at its beginning; what follows may be a pasted log.
_QUESTION = 500

# How people say that something has changed: by a word, or by a phrase, which is searched for only where its
# rarest word occurs.
_CHANGED = frozenset((
    "amend", "amended", "amends", "anymore", "canceled", "cancelled", "changed", "correction", "cut",
    "decreased", "deprecated", "dropped", "gone", "increased", "instead", "lowered", "migrated", "moved",
    "now", "overrule", "overrules", "raised", "reduced", "removed", "renamed", "replaced", "replaces",
    "replacing", "reverted", "supersede", "supersedes", "switched", "updated",
))  # fmt: skip
_MAY_TELL_CHANGE = frozenset((
    "after", "here", "limits", "longer", "make", "more", "out", "rather", "rolled", "take", "takes",
    "today", "took", "went",
))  # fmt: skip
_CHANGE = re.compile(
    r"""\b(?: no\ (?:longer|more) | any\ more | from\ (?:here|today)\ on | after\ all | rolled\ back
      | takes?\ over | (?:is|are)\ out | off\ limits | rather\ than | went\ back\ to | make\ it
      | took\b.{1,40}\bout )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# A question about what happened wants the old state; any other the present one.
_OF_THE_PAST = lazy_pattern(
    r"\b(?:did(?! (?:\w+ ){1,2}(?:decide|agree|settle|choose)\b)|was|were|had|used to|ago|yesterday|first"
    r"|originally|initially|previously|earlier|before)\b"
    r"|\bha(?:s|ve)\b(?=.*(?:ed|en|one|ade|ent|ost|ound|ought)\b)(?!.*\b(?:decided|agreed|settled|chosen)\b)",
    re.IGNORECASE,
    longest=_QUESTION,
)
_WORD = re.compile(r"[^\W_]{2,}")
_ENDINGS = (frozenset(("ies", "ied", "ing")), frozenset(("ed", "es")), frozenset(("e", "s", "y")))


def rank_by_score(scored: Mapping[int, Score]) -> list[int]:
    """Return the places by score, equal ones in a stable order."""
    return sorted(scored, key=lambda place: (-round(scored[place].total, 9), place))


def pairs_to_compare(order: Sequence[int], documents: Mapping[int, IndexedDocument]) -> list[tuple[int, int]]:
    """Return the pairs (newer, older) of one kind among the first hits, where it is known which is newer."""
    pairs = []
    for first, second in combinations(order[:COMPARED], 2):
        one, other = documents[first], documents[second]
        if one.thread and one.thread == other.thread:
            is_newer = one.position > other.position
        elif one.time is None or other.time is None or one.time == other.time:
            continue
        else:
            is_newer = one.time > other.time
        if one.kind == other.kind:
            pairs.append((first, second) if is_newer else (second, first))
    return pairs


def apply_amendments(
    order: Sequence[int],
    scored: Mapping[int, Score],
    texts: Mapping[int, RecordText],
    pairs: Sequence[tuple[int, int]],
    question: str,
) -> tuple[list[int], dict[int, int]]:
    """Move each text that amends an earlier one right above it.

    The pairs are (newer, older). The second value maps each amended document to its amendment.
    """
    if _OF_THE_PAST.search(question):
        return list(order), {}
    asked = _stems(set(_WORD.findall(question.lower())))
    words = {place: set(_WORD.findall(each.text.lower())) for place, each in texts.items()}
    stems = {place: _stems(each) for place, each in words.items()}
    speak_of_change = {
        place
        for place, each in words.items()
        if each & _CHANGED or (each & _MAY_TELL_CHANGE and _CHANGE.search(texts[place].text))
    }
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
    """Return the order with superseded documents below their successors."""
    by_record = {(documents[place].kind, documents[place].record): place for place in order}
    result: dict[int, None] = {}
    for place in order:
        # Its successor, the successor of that, and so on: the last of them first.
        chain = [place]
        while (
            newer := by_record.get((documents[chain[-1]].kind, documents[chain[-1]].superseded_by))
        ) is not None:
            if newer in chain or newer in result:
                break
            chain.append(newer)
        result.update(dict.fromkeys(reversed(chain)))
    return list(result)


def _stems(words: set[str]) -> frozenset[str]:
    """Return words without stop words and endings, so that the forms of a word are equal."""
    stems = set()
    for word in words - SILENT:
        endings = zip((3, 2, 1), _ENDINGS, strict=True) if len(word) > _SHORT else ()
        size = next((size for size, known in endings if word[-size:] in known), 0)
        stems.add(word[: len(word) - size])
    return frozenset(stems)


def _reorder_pairs(order: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Move the first of each pair above the second, no further than needed.

    One move may undo another; the newest of all settles first, so that the rounds end.
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
