"""Put scored documents in order: superseded ones below their successors, amendments above what they amend.

A memory that ranks an outdated decision above its amendment gives the wrong answer, however well the old
words match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import extract_terms
from archivist.recall.results import RecordText
from archivist.recall.scoring import Score
from archivist.recall.statements import (
    asks,
    can_replace,
    drop_label,
    explain_change,
    find_statement,
    is_code,
    is_question,
    read_change,
    read_label,
    read_signs,
    read_statement,
    says_change,
    share_of_words,
    split_sentences,
    weigh,
)
from archivist.store.results import IndexedDocument

# Each of the first hits is compared with later texts among so many: an amendment often has other words than
# the question, and stands below texts about something else.
COMPARED, REACHED = 10, 24
# What is amended answers nearly as well as the best hit, its amendment less, and both share words.
_LEAST_OLDER, _LEAST_NEWER, _LEAST_SHARED = 0.6, 0.25, 0.2
_SURELY_SHARED, _SHARED_IN_LONG = 0.34, 0.5
# From the first sum of signs on a later text stands above an earlier one, from the second on it replaces it.
_LATER, _IN_LONG, _REPLACES, _REPLACES_IN_LONG = 0.0, 0.8, 1.0, 1.6
# A question says at its beginning what it is about; what follows may be a pasted log.
_QUESTION = 500
_LONG_QUESTION = 240
_SHORTEST_NAME = 2
_LEAST_COMMON = 2

# A question for the past wants the old state; any other the present one.
_OF_THE_PAST = lazy_pattern(
    r"\b(?i:used? to|ago|yesterday|at first|original(?:ly)?|initial(?:ly)?|previous(?:ly)?|former(?:ly)?"
    r"|earlier|back then|the old|in the beginning|in the past|history of|last (?:week|month|year|time)"
    r"|before (?:the (?:change|switch|move|migration|update)|(?:that|it)(?=\W*$)"
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
    r"|latest|replac|supersed|instead\b|say\b|said|go with\b|went with\b|pick|end up)",
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


def pairs_to_compare(
    order: Sequence[int],
    documents: Mapping[int, IndexedDocument],
    scored: Mapping[int, Score],
    question: str,
) -> list[tuple[int, int]]:
    """Return the pairs (newer, older) of one kind that are both relevant, the older among the first hits."""
    reach = REACHED if asks_what_holds(question) else COMPARED
    best = max((scored[place].relevance for place in order[:COMPARED]), default=0.0)
    least = _LEAST_NEWER * best
    # Retiring a lesson changes its time: a superseded one may be the later one, and amends nothing.
    near = [
        place
        for place in order[:reach]
        if scored[place].relevance >= least and not documents[place].superseded_by
    ]
    pairs = []
    for older in order[:COMPARED]:
        if scored[older].relevance < _LEAST_OLDER * best:
            continue
        pairs += [(newer, older) for newer in near if is_later(documents[newer], documents[older])]
    return pairs


def is_later(newer: IndexedDocument, older: IndexedDocument) -> bool:
    """Say whether a document of the same kind stands later in its thread, or is of a later time."""
    if newer.kind != older.kind:
        return False
    if newer.thread and newer.thread == older.thread:
        return newer.position > older.position
    return newer.time is not None and older.time is not None and newer.time > older.time


def asks_what_holds(question: str) -> bool:
    """Say whether a question asks for what holds now."""
    sentence = _asked_sentence(question)
    return asks(sentence) and _asked_time(sentence) == "present"


def asks_for_end(question: str) -> bool:
    """Say whether a question may have its answer in what ended; a mere topic has not."""
    return asks_what_holds(question) and is_question(_asked_sentence(question))


def own_words(text: str, question: str) -> list[str]:
    """Return the words of what a text says of a question that the question does not have."""
    asked = _asked_sentence(question) or question
    known = {*_telling_words(asked)}
    return [word for word in _telling_words(find_statement(text, asked)) if word not in known]


@lru_cache(maxsize=512)
def _telling_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in extract_terms(text).words if len(word) > _SHORTEST_NAME)


class _Excerpt(NamedTuple):
    """What a text says of what is asked: all of a short text, or one sentence of a long one."""

    statement: str
    is_short: bool
    stems: frozenset[str]
    label: str


@lru_cache(maxsize=512)
def _read_excerpt(text: str, asked: str) -> _Excerpt | None:
    if is_code(text):
        return None
    statement = find_statement(text, asked)
    return _Excerpt(statement, statement == text, read_statement(statement).stems, read_label(statement))


def apply_amendments(
    order: Sequence[int],
    scored: Mapping[int, Score],
    texts: Mapping[int, RecordText],
    pairs: Sequence[tuple[int, int]],
    question: str,
    ends: Collection[tuple[int, int]] = (),
) -> tuple[list[int], dict[int, Amendment]]:
    """Move each text that amends an earlier one right above it.

    The pairs are (newer, older); of `ends` the newer is known to tell of the end of what the older names. The
    second value is what each amended document is amended by.
    """
    found: dict[int, Amendment] = {}
    moved: list[tuple[int, int]] = []
    sentence = _asked_sentence(question)
    time, asked = _asked_time(sentence), sentence or question
    # Who describes a task wants what holds now.
    does_ask = asks(sentence)
    may_move = does_ask and time != "open"
    first = set(order[:COMPARED])
    excerpts = {place: _read_excerpt(texts[place].text, asked) for pair in pairs for place in pair}
    for newer, older in pairs:
        later, earlier = excerpts[newer], excerpts[older]
        if later is None or earlier is None or texts[newer].place != texts[older].place:
            continue
        is_short, is_end = later.is_short and earlier.is_short, (newer, older) in ends
        said, stems = (later.statement, earlier.statement), (later.stems, earlier.stems)
        if later.label and later.label == earlier.label:
            said = drop_label(said[0]), drop_label(said[1])
            stems = read_statement(said[0]).stems, read_statement(said[1]).stems
        shared = 1.0 if is_end else share_of_words(*stems)
        least = (_LEAST_SHARED if may_move else _SURELY_SHARED) if is_short else _SHARED_IN_LONG
        if shared < least or not (may_move or read_change(said[0]).is_told):
            continue
        new, old = scored[newer].relevance, scored[older].relevance
        signs = read_signs(*said, asked, new / old if old else 1.0)
        signs["ended"] = max(signs["ended"], float(is_end))
        total = weigh(signs)
        is_one_thing = is_end or not read_change(said[0]).is_begun or _is_of_one_thing(*stems)
        if not (is_one_thing or is_question(sentence)):
            continue
        surely = _REPLACES if is_short else _REPLACES_IN_LONG
        is_sure = is_one_thing and shared >= _SURELY_SHARED and total >= surely
        is_said = says_change(*said, signs, is_short=is_short)
        # Who states or demands something does not ask what holds now.
        is_meant = (is_said and (is_sure or does_ask)) or (does_ask and newer in first)
        if not is_meant or (is_end and not is_sure) or not can_replace(*said):
            continue
        if is_sure and time == "past":
            moved.append((older, newer))
        elif time == "present" and (is_sure or total >= (_LATER if is_short else _IN_LONG)):
            moved.append((newer, older))
        elif not is_sure:
            continue
        if is_said and (older not in found or is_sure > found[older].is_sure):
            found[older] = Amendment(newer, explain_change(*said, asked), is_sure)
    order = [*order, *dict.fromkeys(newer for newer, _ in moved if newer not in order)]
    return _reorder_pairs(order, moved), found


def _is_of_one_thing(new: frozenset[str], old: frozenset[str]) -> bool:
    """Say whether two statements share more than a word, or say hardly more than the one that they share.

    Who says what holds from now on may speak of another thing: "never bump the version" replaces no "use
    version 1.105", though they share a word. Who says that something was changed names it.
    """
    return len(new & old) >= _LEAST_COMMON or (bool(new & old) and max(len(new - old), len(old - new)) <= 1)


@lru_cache(maxsize=64)
def _asked_sentence(question: str) -> str:
    """Return the sentence that asks; of a long description, which asks nothing, an empty text."""
    sentences = split_sentences(question)
    asked = [each for each in sentences if each.endswith("?")]
    if not asked and len(question) > _LONG_QUESTION:
        return ""
    return asked[-1] if asked else (*sentences, "")[0]


@lru_cache(maxsize=64)
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
