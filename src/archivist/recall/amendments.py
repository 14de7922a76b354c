"""Put scored documents in order: superseded ones below their successors, amendments above what they amend.

A memory that ranks an outdated decision above its amendment gives the wrong answer, however well the old
words match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.recall.results import RecordText
from archivist.recall.scoring import Score
from archivist.recall.statements import (
    explain_change,
    find_statement,
    is_code,
    read_signs,
    says_change,
    share_of_words,
    split_sentences,
    weigh,
)
from archivist.store.results import IndexedDocument

# The first hits, which are compared in pairs.
COMPARED = 10
# What is amended answers nearly as well as the best hit, its amendment less, and both share words.
_LEAST_OLDER, _LEAST_NEWER, _LEAST_SHARED = 0.6, 0.25, 0.2
_SURELY_SHARED = 0.34
# A later text that is not nearly as relevant needs more.
_NEARLY, _CLEARLY = 0.7, 0.2
# From the first sum of signs on a later text stands above an earlier one, from the second on it replaces it.
_LATER, _REPLACES, _REPLACES_IN_LONG = 0.0, 1.0, 1.6
# A question says at its beginning what it is about; what follows may be a pasted log.
_QUESTION = 500
_LONG_QUESTION = 240

# A question for the past wants the old state; any other the present one.
_OF_THE_PAST = lazy_pattern(
    r"\b(?i:used? to|ago|yesterday|at first|original(?:ly)?|initial(?:ly)?|previous(?:ly)?|former(?:ly)?"
    r"|earlier|back then|the old|in the beginning|in the past|history of|last (?:week|month|year|time)"
    r"|before (?:the (?:change|switch|move|migration|update)|that|it"
    r"|(?:we|they) (?:changed|switched|moved)))\b"
    r"|\b[Bb]efore(?: [A-Z]\S*)?(?=\W*$)",
    longest=_QUESTION,
)
# These tell of the past too, unless the question is about what was decided.
# In German "was" is "what".
_PAST_TENSE = lazy_pattern(
    r"\b(?:did|was(?! (?:ist|sind|gilt|wir|wird|wurde|haben|\w+en (?:wir|sie|die))\b)|were|had)\b",
    re.IGNORECASE,
    longest=_QUESTION,
)
_UNTIL = lazy_pattern(r"\b(?:until|till|before)\b", re.IGNORECASE, longest=_QUESTION)
_DECIDED = lazy_pattern(
    r"\b(?:decid|decision|agree|settl|chos|choos|conclu|plan|polic|rule|conven|current|still|now\b"
    r"|latest|say\b|said|go with\b|went with\b|pick|end up)",
    re.IGNORECASE,
    longest=_QUESTION,
)


class Amendment(NamedTuple):
    """The later document, and why it replaces the earlier one, or may."""

    newer: int
    reason: str
    is_sure: bool


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
) -> tuple[list[int], dict[int, Amendment]]:
    """Move each text that amends an earlier one right above it.

    The pairs are (newer, older). The second value is what each amended document is amended by.
    """
    best = max((scored[place].relevance for place in order[:COMPARED]), default=0.0)
    found: dict[int, Amendment] = {}
    moved: list[tuple[int, int]] = []
    sentence = _asked_sentence(question)
    time, asked = _asked_time(sentence), sentence or question
    for newer, older in pairs:
        new, old = scored[newer].relevance, scored[older].relevance
        is_near = old >= _LEAST_OLDER * best and new >= _LEAST_NEWER * best
        if not is_near or texts[newer].place != texts[older].place:
            continue
        later, earlier = (find_statement(texts[place].text, asked) for place in (newer, older))
        shared = share_of_words(later, earlier)
        if shared < _LEAST_SHARED or is_code(later) or is_code(earlier):
            continue
        signs = read_signs(later, earlier, asked, new / old if old else 1.0)
        total = weigh(signs)
        # A sentence of a long text tells less than a text of one sentence.
        is_short = (later, earlier) == (texts[newer].text, texts[older].text)
        is_sure = shared >= _SURELY_SHARED and total >= (_REPLACES if is_short else _REPLACES_IN_LONG)
        least = _LATER if new >= _NEARLY * old else _CLEARLY
        if is_sure and time == "past":
            moved.append((older, newer))
        elif time == "present" and (is_sure or (is_short and total >= least)):
            moved.append((newer, older))
        elif not is_sure:
            continue
        is_better = older not in found or is_sure > found[older].is_sure
        if is_better and says_change(later, earlier, signs, is_short=is_short):
            found[older] = Amendment(newer, explain_change(later, earlier, asked), is_sure)
    return _reorder_pairs(order, moved), found


def _asked_sentence(question: str) -> str:
    """Return the sentence that asks; of a long description, which asks nothing, an empty text."""
    sentences = split_sentences(question)
    asked = [each for each in sentences if each.endswith("?")]
    if not asked and len(question) > _LONG_QUESTION:
        return ""
    return asked[-1] if asked else (*sentences, "")[0]


def _asked_time(sentence: str) -> Literal["present", "past", "open"]:
    """Say for which state a sentence asks; what happened once is open."""
    is_past = _PAST_TENSE.search(sentence) is not None
    if _OF_THE_PAST.search(sentence) or (is_past and _UNTIL.search(sentence)):
        return "past"
    return "open" if is_past and _DECIDED.search(sentence) is None else "present"


def demote_superseded(order: Sequence[int], documents: Mapping[int, IndexedDocument]) -> list[int]:
    """Return the order with superseded documents below their successors."""
    if not any(documents[place].superseded_by for place in order):
        return list(order)
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


def find_repeats(
    order: Sequence[int], documents: Mapping[int, IndexedDocument], texts: Mapping[int, RecordText]
) -> list[int]:
    """Return what repeats a better hit word for word, as far as the texts are known."""
    seen: set[tuple[str, str, int]] = set()
    repeats = []
    for place in order:
        if (text := texts.get(place)) is not None:
            said = documents[place].kind, text.shown or text.text, documents[place].length
            if said in seen:
                repeats.append(place)
            seen.add(said)
    return repeats


def spread_threads(order: Sequence[int], documents: Mapping[int, IndexedDocument]) -> list[int]:
    """Move what stands beside a better hit in its thread behind the others, for a broad question."""
    taken: set[tuple[str, int]] = set()
    first: list[int] = []
    later: list[int] = []
    for place in order:
        thread, position = documents[place].thread, documents[place].position
        is_beside = bool(thread) and not taken.isdisjoint(
            (thread, position + step) for step in (-2, -1, 1, 2)
        )
        (later if is_beside else first).append(place)
        taken.add((thread, position))
    return first + later


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
