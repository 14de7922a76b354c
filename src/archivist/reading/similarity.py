"""Decide what a new statement is to an old one: known, the same, a contradiction, or different.

A statement is known only when every sentence of it is in the old one, word by word. It is the same when the
sentences of one are among those of the other, with the same words in the same order.
What is only near is named, and saved beside: a reversal has the same words, too.
Contradictions are looked for in the first sentences, by one difference that rules the other out: a negation,
an opposite, another amount, another choice, swapped sides; in the same words in another order; and in a
sentence that ends what the other one says ("we no longer use X; use Y").
In freer words most are not recognised, and are saved beside the entry.

bench/workspace_rules.py prints precision and recall on the pairs that these rules were written with and on
pairs that were not seen. Rules of thrice the size were a little better on the first, and far worse on the
second: mean F1 0.96 and 0.25, against 0.93 and 0.47.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.same_words import (
    CONTRACTION,
    NUMERALS,
    SENTENCE,
    cut_ending,
    find_turn,
    have_same_code,
    have_same_words,
)

# The cosine of the bundled table and the share of the shorter statement's words from which two are alike.
COSINE = 0.70
SHARED_WORDS = 0.45
# Statements that are less near are about different things, whatever they deny.
_CONFLICT_COSINE = 0.5
_CONFLICT_WORDS = 0.5
# More words in the place of others are another sentence, not another choice.
_MAX_REPLACED = 3
_BEGINNING = 100
_STEM_CHARACTERS = 6
_ALSO = lazy_pattern(r"(?:^|\n\n)Also \[\d{4}-\d{2}-\d{2}\]:\s+")
_TOKEN = lazy_pattern(r"\d+(?:[.,:]\d+)*|[^\W_]+(?:[-_./'][^\W_]+)*[+#]*")
# Words that end what follows them, and words that end what stands before them.
_ENDS_NEXT = lazy_pattern(
    r"\b(?:no longer|stop(?:s|ped)?(?= \w{1,20}ing\b)|instead of|rather than|in place of|g[ai]ve up|rid of"
    r"|(?:replac|revers|revok|retir|supersed|deprecat)(?:es?|ed|ing)|(?:dropp|abandon|revert)(?:ed|ing)?|drops?"
    r"|(?:away|mov(?:e|ed|ing)|switch(?:ed|ing)?|migrat(?:e|ed|ing))(?: [^\s,]{1,40}){0,5} from)\b",
    re.IGNORECASE,
)
_ENDS_LAST = lazy_pattern(
    r"\b(?:is|are|was|were|been|be|gets?|got)(?: now)? (?:no longer|deprecated|dropped|removed|replaced"
    r"|superseded|abandoned|retired|reversed|reverted|revoked|obsolete|gone)\b|\bany ?(?:more|longer)\b",
    re.IGNORECASE,
)
# Words between what is chosen and what is not: their two sides have opposite signs.
_BETWEEN = lazy_pattern(
    r"\b(?:instead of|rather than|in place of|in favou?r of)\b|,? (?:and|but) not\b|, not\b|\bover\b",
    re.IGNORECASE,
)
_CHOOSES = lazy_pattern(
    r"\b(?:us(?:e|es|ed|ing)|cho(?:o?se|osing|sen)|pick(?:s|ed)?|prefer(?:s|red)?|favou?r(?:s|ed)?|adopt(?:s|ed)?|keep|kept"
    r"|select(?:s|ed)?|opt(?:ed)? for|settled? on|standardi[sz]ed? on|(?:go|going|gone|went) (?:with|for))\b",
    re.IGNORECASE,
)
_REJECTS = lazy_pattern(
    r"\b(?:never|(?:do|must|should|shall|will) not|(?:do|must|should|wo)n[\u2019']t|avoid|no longer"
    r"|stop(?:s|ped)?|(?:drop|reject|abandon|ban)(?:s|p?ed|n?ed|p?ing|n?ing)?)\b",
    re.IGNORECASE,
)
_REASON = lazy_pattern(
    r"\b(?:because|since|so that|due to|as (?:it|they|we|this|that)|which)\b", re.IGNORECASE
)
_SCOPE_WORDS = frozenset(
    ("for", "in", "on", "at", "between", "as", "when", "with", "from", "to", "by", "inside", "during", "if")
)
# `X over Y` alone is a choice; in longer sentences `over` has other meanings.
_SHORT_CHOICE = 6
_CLAUSE_END = lazy_pattern(r",|\b(?:and|but|with|by|because|since|so)\b", re.IGNORECASE)
_ENDING_SENTENCES = 6
_SENTENCE_CHARACTERS = 400
_UNWRITTEN = frozenset(("", "a", "an", "the", "we", "and", "+", "&", "-"))


class Likeness(StrEnum):
    """What one statement is to another."""

    KNOWN = "known"
    MEANING = "meaning"
    CONFLICT = "conflict"
    DIFFERENT = "different"


class Comparison(NamedTuple):
    """How two statements compare, with a score and the reason."""

    likeness: Likeness
    score: float
    reason: str


class Statement(NamedTuple):
    """A decision or lesson: its title and its text."""

    title: str
    text: str

    @property
    def whole(self) -> str:
        """Return title and text."""
        if self.begins_with_title:
            return self.text
        return f"{self.title}. {self.text}" if self.text else self.title

    @property
    def begins_with_title(self) -> bool:
        """Say whether the text starts with the title, and not only with a word that starts like its last."""
        behind = self.text[len(self.title) :][:1]
        return self.text.startswith(self.title) and not (self.title and behind.isalnum())


def compare(old: Statement, new: Statement, cosine: float) -> Comparison:
    """Return what a new statement is to an old one; `cosine` is the cosine of their vectors."""
    # An entry is its original statement, and each addition that was merged into it later.
    text, *later = _ALSO.split(old.text)
    parts = [Statement(old.title, text.strip()), *(Statement("", each.strip()) for each in later)]
    if any(_covers(part, new) for part in parts):
        return Comparison(Likeness.KNOWN, 1.0, "the same words")
    is_reversed, why = _find_reversed_choice(parts[0], new)
    conflict = find_conflict(old, new, cosine) or _find_reversal(parts[0], new, cosine) or why
    conflict = conflict or find_turn(parts[0].whole, new.whole)
    if conflict:
        return Comparison(Likeness.CONFLICT, cosine, conflict)
    if is_reversed or not _is_near(old, new, cosine):
        return Comparison(Likeness.DIFFERENT, cosine, "")
    if _rejects_same(old, new) or have_same_words(old.whole, new.whole):
        return Comparison(Likeness.MEANING, cosine, f"the same in other words ({cosine:.2f})")
    return Comparison(Likeness.DIFFERENT, cosine, f"much alike ({cosine:.2f})")


def _rejects_same(old: Statement, new: Statement) -> bool:
    """Say whether both are against the same thing: then neither negations nor the order set them apart."""
    rejected, also = ({side.things for side in _read_sides(each) if not side.is_for} for each in (old, new))
    return bool(rejected & also) and have_same_code(old.whole, new.whole)


def _covers(old: Statement, new: Statement) -> bool:
    """Say whether an old statement contains every sentence of a new one, in the same order.

    Both must start alike: a sentence from the middle of an entry may depend on the one before it.
    """
    known, asked = _plain_sentences(old), _plain_sentences(new)
    rest = iter(known)
    return asked[:1] == known[:1] and all(sentence in rest for sentence in asked)


@lru_cache(maxsize=4096)
def _plain_sentences(statement: Statement) -> tuple[tuple[str, ...], ...]:
    """Return the words of each sentence without articles and punctuation; no other two words are equal."""
    found = []
    for sentence in SENTENCE.split(statement.whole):
        words = [word.rstrip(".,;:!\"'`)").lstrip("\"'`(") for word in sentence.split()]
        # A capital at the start of a sentence says nothing; `US` and `plan A` are names.
        if words and (words[0] in ("A", "I") or words[0][1:].islower()):
            words[0] = words[0].lower()
        plain = tuple(word for word in words if word not in _UNWRITTEN)
        found += [plain] if plain else []
    return tuple(found)


# What a sentence says

# The size of a unit, by its stem, in seconds or bytes; a month counts as 30 days, a year as 12 months.
_UNITS = {
    "ms": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "minut": 60, "h": 3600, "hour": 3600, "day": 86400,
    "week": 604800, "month": 2592000, "year": 31104000, "kb": 1e3, "mb": 1e6, "gb": 1e9,
}  # fmt: skip


def _stem(word: str) -> str:
    """Cut the usual endings, and long words to their beginning: `config` is `configuration`."""
    word = NUMERALS.get(word.lower(), word.lower())
    stem = cut_ending(word, ("ing", "ies", "ed", "es", "s", "e", "y"))
    return word if stem == word and word[0].isdigit() else stem[:_STEM_CHARACTERS]


def _stems(words: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words.split())


_FUNCTION_WORDS = _stems(
    "a an the we our i you your it its they is are be been was were and or of to in on at by for from with "
    "as into that this which has have had do does did will would must should may can could need when if so "
    "because since then only all any every each use using while than up down out most least still now always "
    "also but other there"
)
# Words that say that something is so, or how much of it, but not of what.
_FAINT_WORDS = _stems(
    "limit last expire valid kept keep retention raise lower set take live put go come "
    "run get make made work happen store require allow"
)
_NEGATIONS = _stems(
    "not no longer never cannot avoid stop instead without unless dropped left replaced off nor"
)
# The stems, or their beginnings, of two words of which only one can hold.
_OPPOSITES = (
    "enabl/disabl allow/forbid requir/option need/option mandat/option on/off public/privat manual/automa "
    "hand/automa hand/genera keep/delet keep/remov keep/strip includ/exclud accept/reject befor/after "
    "sync/async strict/lenien tab/spac open/clos any/onl commit/ignor"
)
# Choices, and properties of which a thing has exactly one.
_EXCLUSIVE = _stems(
    "use choose chose pick picked adopt prefer switched go written write migrated store kept save put return "
    "default primary main minimum maximum level branch version limit size format language live belong"
)
_LINKS = ("is", "are", "in", "on", "as", "to", "with")
_RELATIONS = ("over", "befor", "after", "than", "from", "to", "not", "depend")


class _Sentence(NamedTuple):
    """The words of a sentence without articles, their stems, and what of them is compared."""

    words: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]
    amounts: dict[float, str]
    is_negated: bool


# A number after one of these names a thing, and measures nothing.
_NAMED_BY_NUMBER = frozenset(
    ("number", "no", "nr", "item", "step", "issue", "rule", "point", "part", "ticket")
)


@lru_cache(maxsize=8192)
def _read_sentence(text: str) -> _Sentence:
    words = _TOKEN.findall(CONTRACTION.sub(" not", text))
    stems = [_stem(word) for word in words]
    amounts = {}
    for before, word, stem, unit in zip(["", *stems], words, stems, [*stems, ""][1:], strict=False):
        if before in _NAMED_BY_NUMBER:
            continue
        is_one = word in ("a", "an") and unit in _UNITS and len(unit) > 2
        number = re.fullmatch(r"\d+(?:\.\d+)?", "1" if is_one else stem.replace(",", "").replace(":", "."))
        if number:
            written = f"{word} {unit}" if unit in _UNITS else word
            amounts[float(number[0]) * _UNITS.get(unit, 1)] = written
    kept = [at for at, word in enumerate(words) if word.lower() not in ("a", "an", "the", "we", "our")]
    content = frozenset(stems) - _FUNCTION_WORDS - _NEGATIONS
    # What a reason denies does not deny what it is the reason for.
    end = next((at for at, stem in enumerate(stems) if at and stem in ("becaus", "sinc")), len(stems))
    is_negated = not _NEGATIONS.isdisjoint(stems[:end])
    return _Sentence(
        tuple(words[at] for at in kept), tuple(stems[at] for at in kept), content, amounts, is_negated
    )


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words that carry its meaning."""
    return _read_sentence(text).content


def _first_sentence(statement: Statement) -> _Sentence:
    # The beginning of a long sentence says what it is about, and its end often why.
    sentence = statement.title or SENTENCE.split(statement.text)[0]
    return _read_sentence(sentence[:_BEGINNING].rsplit(" ", 1)[0] if len(sentence) > _BEGINNING else sentence)


def _subjects(stems: Iterable[str]) -> set[str]:
    """Return the words that say what a sentence is about."""
    plain = _FUNCTION_WORDS | _FAINT_WORDS
    return {stem for stem in stems if stem not in plain and stem not in _UNITS and not stem[0].isdigit()}


def _share(first: _Sentence, second: _Sentence) -> float:
    fewest = min(len(first.content), len(second.content))
    return len(first.content & second.content) / max(1, fewest)


# The same, or a contradiction


def _is_near(old: Statement, new: Statement, cosine: float) -> bool:
    if cosine < COSINE or _share(_read_sentence(old.whole), _read_sentence(new.whole)) < SHARED_WORDS:
        return False
    is_one_rejection = _rejects_same(old, new)
    # What ends something that the old one names is not the same, also where it is no clear contradiction.
    over = {end.thing for end in _read_endings(new)} - {end.thing for end in _read_endings(old)}
    if over & _read_sentence(old.whole).content and not is_one_rejection:
        return False
    first, second = _first_sentence(old), _first_sentence(new)
    amounts, others = set(first.amounts), set(second.amounts)
    is_negated_alone = first.is_negated != second.is_negated and not is_one_rejection
    if is_negated_alone or (amounts - others and others - amounts):
        return False
    # An importer is not an exporter.
    place = _find_replaced(first, second)
    if place is None:
        return True
    own, other = _subjects(first.stems[place[0]]), _subjects(second.stems[place[1]])
    return not (own - _NEGATIONS and other - _NEGATIONS)


def _find_replaced(first: _Sentence, second: _Sentence) -> tuple[slice, slice] | None:
    """Return the only place where two sentences have different words, and few of them."""
    codes = SequenceMatcher(None, first.stems, second.stems, autojunk=False).get_opcodes()
    changes = [code for code in codes if code[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace":
        return None
    _, start, end, other_start, other_end = changes[0]
    is_short = max(end - start, other_end - other_start) <= _MAX_REPLACED
    return (slice(start, end), slice(other_start, other_end)) if is_short else None


def find_conflict(old: Statement, new: Statement, cosine: float) -> str:
    """Return how the first sentences of two statements contradict each other; empty when they do not."""
    first, second = _first_sentence(old), _first_sentence(new)
    if _share(first, second) < _CONFLICT_WORDS:
        return ""
    if _is_swapped(first.stems, second.stems):
        return "the two sides are swapped"
    # How many words each sentence has to itself: the fewer, the surer both are about the same thing.
    fewest, most = sorted(
        len(_subjects(own)) for own in (first.content - second.content, second.content - first.content)
    )
    if cosine >= _CONFLICT_COSINE and fewest <= 1:
        if most == 0 and first.is_negated != second.is_negated:
            return "only one of them is negated"
        opposites = _find_opposites(first, second)
        if opposites:
            return opposites
        amounts, others = first.amounts, second.amounts
        if fewest == 0 and 0 < len(amounts) == len(others) and amounts.keys().isdisjoint(others):
            return _oppose(amounts.values(), others.values())
    return _find_other_choice(first, second)


class _Side(NamedTuple):
    """What a statement is for or against: the things, their words, and what they are for."""

    is_for: bool
    is_choice: bool
    words: str
    things: frozenset[str]
    scope: frozenset[str]


@lru_cache(maxsize=4096)
def _read_sides(statement: Statement) -> tuple[_Side, ...]:
    found = []
    for at, sentence in enumerate(SENTENCE.split(statement.whole)[:_ENDING_SENTENCES]):
        text = _REASON.split(sentence[:_SENTENCE_CHARACTERS])[0]
        chooses, is_for = bool(_CHOOSES.search(text)), not _REJECTS.search(text)
        # Behind the first sentence only what is said as a choice counts; the rest is about its reasons.
        if at and is_for and not chooses:
            continue
        between = _BETWEEN.search(text)
        if between and between[0].lower() == "over" and not (chooses or len(text.split()) < _SHORT_CHOICE):
            between = None
        parts = [text] if between is None else [text[: between.start()], text[between.end() :]]
        sides = [_read_side(part, is_for=is_for == (number == 0)) for number, part in enumerate(parts)]
        scope = frozenset().union(*(side.scope for side in sides))
        is_choice = chooses or not is_for or between is not None
        found += [side._replace(scope=scope, is_choice=is_choice) for side in sides if side.things]
    return tuple(found)


def _read_side(text: str, *, is_for: bool) -> _Side:
    """Read the things of a part of a sentence, and their scope, which follows a word such as `for`."""
    parts: tuple[list[str], list[str]] = ([], [])
    is_scope = False
    for word, stem in zip(*_read_sentence(text)[:2], strict=True):
        if word.lower() in _SCOPE_WORDS or _CHOOSES.fullmatch(word):
            is_scope = word.lower() in _SCOPE_WORDS
        elif (
            stem not in _NEGATIONS
            and (_subjects((stem,)) or stem[0].isdigit())
            and not _REJECTS.fullmatch(word)
        ):
            parts[is_scope].append(word)
    # `tests run in Docker` has its choice behind the preposition only.
    words = parts[0] or parts[1]
    things, scope = (frozenset(map(_stem, each)) for each in (words, parts[1]))
    return _Side(is_for, False, " ".join(words), things, scope - things)


def _find_reversed_choice(old: Statement, new: Statement) -> tuple[bool, str]:
    """Say whether one statement is for what the other is against, and why that is a contradiction.

    There is no reason where the new one is an exception: narrower in what it names, or for something else.
    """
    clashes = [
        (one, other)
        for one in _read_sides(old)
        for other in _read_sides(new)
        if one.is_for != other.is_for and (one.things <= other.things or other.things <= one.things)
        if one.is_choice and other.is_choice
    ]
    for one, other in clashes:
        shared = 2 * len(one.scope & other.scope) >= min(len(one.scope), len(other.scope))
        is_within = not other.scope or (shared and one.scope)
        if (other.things <= one.things and is_within) or len({each.is_for for each, _ in clashes}) > 1:
            return True, f"one is for {other.words!r}, the other is against it"
    return bool(clashes), ""


class _Ending(NamedTuple):
    """What a sentence ends: the words that say so, the thing, its clause, and the whole sentence."""

    phrase: str
    thing: str
    ended: set[str]
    topic: set[str]


@lru_cache(maxsize=4096)
def _read_endings(statement: Statement) -> tuple[_Ending, ...]:
    found = []
    for sentence in SENTENCE.split(statement.whole)[:_ENDING_SENTENCES]:
        text = sentence[:_SENTENCE_CHARACTERS]
        topic = _subjects(_read_sentence(text).stems)
        for pattern, is_next in ((_ENDS_NEXT, True), (_ENDS_LAST, False)):
            for phrase in pattern.finditer(text):
                side = text[phrase.end() :] if is_next else text[: phrase.start()]
                clause = _CLAUSE_END.split(side)[0 if is_next else -1]
                stems = [stem for stem in _read_sentence(clause).stems if stem in topic - _NEGATIONS]
                if stems:
                    said = phrase[0].split()
                    words = f"{said[0]} … {said[-1]}" if len(said) > 3 else phrase[0]
                    found.append(_Ending(words.lower(), stems[0 if is_next else -1], set(stems), topic))
    return tuple(found)


def _find_reversal(old: Statement, new: Statement, cosine: float) -> str:
    """Return the words with which a new statement ends what the old one says; empty where both end it."""
    first = _first_sentence(old)
    if first.is_negated:
        return ""
    subjects = _subjects(first.stems)
    over = {end.thing for end in _read_endings(old)}
    for end in _read_endings(new):
        is_about = 2 * len(subjects & end.topic) >= len(subjects) and (
            end.ended <= subjects or subjects <= end.topic
        )
        # Reasons differ, so the vectors of a reversal may be far; two shared words are then enough.
        is_near = cosine >= _CONFLICT_COSINE or len(subjects & end.topic) > 1
        if is_about and is_near and end.thing in subjects - over:
            return f"it says “{end.phrase}”"
    return ""


def _oppose(one: Iterable[str], other: Iterable[str]) -> str:
    return f"{' '.join(one).lower()!r} against {' '.join(other).lower()!r}"


def _is_swapped(first: Sequence[str], second: Sequence[str]) -> bool:
    """Say whether `x over y` is in one and `y over x` in the other sentence, which have the same words."""
    for relation in _RELATIONS if _subjects(first) == _subjects(second) else ():
        if first.count(relation) == second.count(relation) == 1:
            at, other_at = first.index(relation), second.index(relation)
            left, other_left = _subjects(first[:at]), _subjects(second[:other_at])
            if (left - other_left) & set(second[other_at:]) and (other_left - left) & set(first[at:]):
                return True
    return False


def _find_opposites(first: _Sentence, second: _Sentence) -> str:
    own = [word for word, stem in zip(first.words, first.stems, strict=True) if stem not in second.stems]
    other = [word for word, stem in zip(second.words, second.stems, strict=True) if stem not in first.stems]
    for pair in _OPPOSITES.split():
        for left, right in (pair.split("/"), pair.split("/")[::-1]):
            one = [word for word in own if _stem(word).startswith(left)]
            two = [word for word in other if _stem(word).startswith(right)]
            if one and two:
                return _oppose(one, two)
    return ""


def _find_other_choice(first: _Sentence, second: _Sentence) -> str:
    """Find one thing in the place of another where only one is possible and the rest is the same."""
    place = _find_replaced(first, second)
    if place is None:
        return ""
    before, behind = first.stems[: place[0].start], first.stems[place[0].stop :]
    words = first.words[place[0]], second.words[place[1]]
    # Before a noun that both have, a word only describes it: `unit tests` and `integration tests`.
    if behind and behind[0] not in _FUNCTION_WORDS:
        return ""
    # After a word that only describes it, or alone behind a verb, another thing is no other choice.
    if (before and before[-1] not in _FUNCTION_WORDS | _EXCLUSIVE) or not _subjects(
        before + behind
    ) - _EXCLUSIVE:
        return ""
    is_named = all(any(word[0].isupper() or word[0].isdigit() for word in each) for each in words)
    is_exclusive = not _EXCLUSIVE.isdisjoint(before or behind[:4]) or (
        before[-1:] == ("from",) or (is_named and before[-1:] and before[-1] in _LINKS)
    )
    return _oppose(*words) if is_exclusive and all(_subjects(map(_stem, each)) for each in words) else ""
