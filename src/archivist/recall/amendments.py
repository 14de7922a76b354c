"""Put scored documents in order: superseded ones below their successors, amendments above what they amend.

A memory that ranks an outdated decision above its amendment gives the wrong answer, however well the old
words match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import SILENT
from archivist.recall.results import RecordText
from archivist.recall.scoring import Score
from archivist.store.results import IndexedDocument

# The first hits, which are compared in pairs.
COMPARED = 10
# An amendment must be at least this share as relevant as the earlier text.
_LEAST_SHARE = 0.3
# The share of the shorter sentence that both must have: where a word tells of change, and where another value
# does.
_FAINT_SHARE, _VALUE_SHARE = 0.25, 0.5
_MOST_SENTENCES = 6
# A sentence with more words than this states no single thing; a number of more digits is a name.
_MOST_WORDS = 18
_MOST_DIGITS = 4
_STEM = 6
# A question says at its beginning what it is about; what follows may be a pasted log.
_QUESTION = 500
_LONG_QUESTION = 240

# How people say that something has changed: by the stem of a word, or by a phrase. Faint ones also tell of
# work that was done, and need more in common.
_CHANGED = lazy_pattern(
    r"\b(?:amend|supersed|overrul|overrid|rescind|retract|revok|obsolet|deprecat|revis|replac|revert"
    r"|abandon|scrap"
    r"|ditch|withdr[ae]w|correction|discontinu|instead|anymore|switch(?:ed"
    r"|ing)?\ (?:[\w-]+\ ){0,4}(?:to|over|from)\b"
    r"|sunset|phas(?:ed|ing)\ out|void)\w*"
    r"|\b(?:no\ (?:longer|more)|any\ more|from\ (?:here|today|now)\ on|from\ now|as\ of|effective|after\ all"
    r"|rolled\ back|takes?\ over|(?:is|are)\ (?:out|gone|dead|off)|off\ limits|rather\ than|w[ae]nt\ back\ to"
    r"|make\ (?:it|that)|in\ (?:place|favou?r)\ of|takes?\ precedence|scratch\ that|chang(?:ed"
    r"|e)\ (?:of|my|our)\ "
    r"(?:mind|plan)|on\ second\ thought|used\ to|previously|formerly|not\b.{1,40}\bbut|took\b.{1,40}\bout"
    r"|new\ (?:rule|policy|decision|default|limit|plan)|stop(?:ped)?\ using|update\ to)\b",
    re.IGNORECASE | re.VERBOSE,
    longest=2000,
)
_FAINTLY_CHANGED = lazy_pattern(
    r"(?<!^)\bnow\b|\b(?:changed|updated|moved|migrated|dropped|removed|cancell?ed|renamed|lowered"
    r"|raised|increased"
    r"|decreased|reduced|bumped|shifted|swapped|cut|extended|shortened|tightened|relaxed|retired"
    r"|upgraded|downgraded"
    r"|converted|adopted|postponed|delayed|rescheduled|doubled|halved|gone|turns\ out)\b",
    re.IGNORECASE | re.VERBOSE,
    longest=2000,
)
# A question about what happened wants the old state; any other the present one.
_OF_THE_PAST = lazy_pattern(
    r"\b(?:used to|ago|yesterday|at first|original(?:ly)?|initial(?:ly)?|previous(?:ly)?|formerly"
    r"|earlier|back then"
    r"|before(?=\W*$)|before (?:the (?:change|switch|move|migration|update)|that|it\b|we (?:chang"
    r"|switch|mov))"
    r"|in the beginning|in the past|history of|last (?:week|month|year|time))\b",
    re.IGNORECASE,
    longest=_QUESTION,
)
# These tell of the past too, unless the question is about what was decided.
_PAST_TENSE = lazy_pattern(r"\b(?:did|was|were|had)\b", re.IGNORECASE, longest=_QUESTION)
_DECIDED = lazy_pattern(
    r"\b(?:decid|decision|agree|settl|chos|choos|conclu|plan|polic|rule|conven|current|still|now\b"
    r"|latest|say\b|said)",
    re.IGNORECASE,
    longest=_QUESTION,
)
# A point within a name or a number ends no sentence.
_SENTENCE = lazy_pattern(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?\n]?", longest=_QUESTION)
# What an agent says while it works replaces nothing.
_PROGRESS = lazy_pattern(
    r"(?:\w+: )?(?:I[\u2019'](?:ll|m)|I (?:will|am)|let me|let[\u2019']s|now\b|next\b|first\b|good\b"
    r"|done\b|all\b.*\bpass)",
    re.IGNORECASE,
    longest=_QUESTION,
)
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?![^\W_])|[^\W_]{2,}")
_NEGATED = lazy_pattern(
    r"\b(?:not|never|no|without|stop|avoid|cannot|don|doesn|isn|aren|won|forbidden|banned|optional"
    r"|disabled|off)\b"
    r"|\bby itself\b",
    re.IGNORECASE,
)
# What is said in addition replaces nothing.
_ADDED = lazy_pattern(r"\b(?:too|also|as well|additionally|in addition|besides|likewise)\b", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ed", "es", "er", "s")
_NUMERALS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20",
    "thirty": "30", "half": "0.5", "twice": "2", "once": "1",
}  # fmt: skip
_DATES = frozenset((
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue",
    "wed", "thu", "fri", "sat", "sun",
))  # fmt: skip
# Words that say that something is so, but not of what.
_FAINT = frozenset((
    "use", "used", "using", "keep", "kept", "set", "take", "taken", "make", "made", "run", "go", "goes",
    "went", "put", "live", "lives", "need", "needs", "want", "default", "always", "every", "each",
    "per", "new", "old", "also", "still", "now", "later", "earlier", "first", "last", "only",
))  # fmt: skip
# What follows one of these is a choice.
_LINKS = frozenset((
    "-is", "-are", "-be", "-to", "-on", "-in", "-at", "-with", "-via", "-by", "-as", "-use", "-uses", "-used",
    "-using", "-from", "-than", "-default",
))  # fmt: skip


class _Statement(NamedTuple):
    """What a text says: the stems of its words, its numbers with the words behind them.

    `order` also has its other words, behind a dash.
    """

    order: tuple[str, ...]
    stems: frozenset[str]
    numbers: dict[str, str]
    is_negated: bool


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
) -> tuple[list[int], dict[int, tuple[int, str]]]:
    """Move each text that amends an earlier one right above it.

    The pairs are (newer, older). The second value maps each amended document to its amendment and the reason.
    """
    asked = _read_statement(question).stems
    amendments: dict[tuple[int, int], str] = {}
    for newer, older in pairs:
        if (
            texts[newer].place == texts[older].place
            and scored[newer].relevance >= _LEAST_SHARE * scored[older].relevance
            and (reason := find_amendment(texts[newer].text, texts[older].text, asked))
        ):
            amendments[newer, older] = reason
    replaced = {older: (newer, reason) for (newer, older), reason in reversed(amendments.items())}
    # Who asks for the past gets the old state first.
    return (list(order) if _asks_for_past(question) else _reorder_pairs(order, list(amendments))), replaced


def find_amendment(newer: str, older: str, asked: frozenset[str]) -> str:
    """Return why a later text replaces an earlier one, for a question with these stems; else an empty text.

    The later one must answer as much of the question. Sentences are compared: two long texts have many words
    in common, and one of them always tells of change.
    """
    new, old = _read_statement(newer), _read_statement(older)
    answered = asked & old.stems
    common = new.stems & old.stems
    if not answered or not common:
        return ""
    lacking = answered - new.stems
    is_answered = 2 * len(lacking) <= len(answered)
    is_short = max(len(new.stems), len(old.stems)) <= _MOST_WORDS
    if is_short and (len(common) > 1 or is_answered) and (found := _find_change(newer)):
        return f"it says “{found}”"
    if not (is_answered or len(common) > 1) or _is_addition(newer):
        return ""
    earlier = [each for each in _read_sentences(older) if not common.isdisjoint(each[1].stems)]
    for sentence, statement in _read_sentences(newer) if earlier else ():
        if common.isdisjoint(statement.stems):
            continue
        for _, other in earlier:
            reason = _compare_sentences(
                sentence, statement, other, asked, is_answered=is_answered, is_whole=not lacking
            )
            if reason:
                return reason
    return ""


def _compare_sentences(
    newer: str, new: _Statement, old: _Statement, asked: frozenset[str], *, is_answered: bool, is_whole: bool
) -> str:
    """Return why a sentence replaces an earlier one; its text is needed for the words of change."""
    common = new.stems & old.stems
    if not common:
        return ""
    asked_too, asked_before = len(common & asked), len(old.stems & asked)
    shared = len(common) / min(len(new.stems), len(old.stems))
    is_near = shared >= _FAINT_SHARE
    # Two names in common are the subject too, where the earlier text answers the question.
    is_same_subject = is_answered or (len(common) > 1 and asked_before)
    if is_near and is_same_subject and (found := _find_change(newer)):
        return f"it says “{found}”"
    if not asked_too or not is_answered:
        return ""
    if is_near and (found := _find_change(newer, is_faint=True)):
        return f"it says “{found}”"
    # Without a word of change, another word in the question's place is another thing.
    is_sure = shared >= _VALUE_SHARE and len(common) > 1
    return _find_other_value(new, old, is_sure=is_sure) if is_near and is_whole else ""


@lru_cache(maxsize=1024)
def _find_change(text: str, *, is_faint: bool = False) -> str:
    found = (_FAINTLY_CHANGED if is_faint else _CHANGED).search(text)
    return found[0].lower() if found else ""


@lru_cache(maxsize=512)
def _is_addition(text: str) -> bool:
    return _ADDED.search(text) is not None


@lru_cache(maxsize=512)
def _split_sentences(text: str) -> tuple[str, ...]:
    found = (each.strip() for each in _SENTENCE.findall(text))
    return tuple(each for each in found if each)[:_MOST_SENTENCES]


@lru_cache(maxsize=512)
def _read_sentences(text: str) -> tuple[tuple[str, _Statement], ...]:
    """Return the sentences of a text that state a single thing, and what they say."""
    read = ((each, _read_statement(each)) for each in _split_sentences(text) if not _PROGRESS.match(each))
    return tuple((each, statement) for each, statement in read if 0 < len(statement.stems) <= _MOST_WORDS)


def _find_other_value(new: _Statement, old: _Statement, *, is_sure: bool) -> str:
    """Return how two statements about one subject differ: by a number, a negation, or another thing."""
    if new.numbers and old.numbers and not new.numbers.keys() & old.numbers.keys():
        units, others = set(new.numbers.values()), set(old.numbers.values())
        # Two numbers of different things do not contradict each other.
        if units & others or "" in units | others:
            return f"{', '.join(new.numbers)} against {', '.join(old.numbers)}"
    own, other = new.stems - old.stems, old.stems - new.stems
    if is_sure and new.is_negated != old.is_negated:
        return "only one of them is negated"
    if len(own) == len(other) == 1 and _is_predicate(new, old) and _is_predicate(old, new):
        return f"“{min(own)}” in the place of “{min(other)}”"
    return ""


def _is_predicate(one: _Statement, other: _Statement) -> bool:
    """Say whether the only own word of a statement follows a link, and describes no common word."""
    at = next(place for place, stem in enumerate(one.order) if stem in one.stems - other.stems)
    return at > 0 and one.order[at - 1] in _LINKS and not "".join(one.order[at + 1 : at + 2]).isalpha()


def _asks_for_past(question: str) -> bool:
    """Say whether the question's own sentence asks for an earlier state."""
    sentences = _split_sentences(question)
    asked = [each for each in sentences if each.endswith("?")]
    if not asked and len(question) > _LONG_QUESTION:
        # A description, not a question: what it tells of the past is its own.
        return False
    own = asked[-1] if asked else (*sentences, "")[0]
    if _OF_THE_PAST.search(own):
        return True
    return _PAST_TENSE.search(own) is not None and _DECIDED.search(own) is None


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


@lru_cache(maxsize=2048)
def _read_statement(text: str) -> _Statement:
    """Return what a text says, without stop words."""
    order: list[str] = []
    numbers: dict[str, str] = {}
    unit_of = ""
    for word in _TOKEN.findall(text):
        lowered = word.lower()
        number = _NUMERALS.get(lowered, lowered)
        stem = stem_word(lowered)
        if number[0].isdigit() and len(number) <= _MOST_DIGITS:
            unit_of = number
            numbers[number] = ""
        elif unit_of:
            unit = "date" if stem[:3] in _DATES else stem
            numbers[unit_of], unit_of = (unit if lowered not in SILENT else ""), ""
        is_content = not number[0].isdigit() and lowered not in SILENT and lowered not in _FAINT
        order.append(stem if is_content else f"-{lowered}")
    stems = frozenset(stem for stem in order if stem[0] != "-")
    return _Statement(tuple(order), stems, numbers, _NEGATED.search(text) is not None)


@lru_cache(maxsize=4096)
def stem_word(word: str) -> str:
    """Return a word's beginning without its ending, so that the forms of a word are equal."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
            break
    return word[:3] + word[3:_STEM].rstrip("eiy")


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
