"""Decide whether two statements have the same words in the same relations: who, whom, when, and whether not.

Vectors and shares of words cannot see that a statement was turned round: `A calls B` has the words of
`B calls A`. So the words are compared in their order. Only a clause that may stand in front or behind,
and the voice of a verb, may differ. What is in doubt counts as another statement, which is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.programs import words_of

SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|\u3002|[;:]\s+|(?<!\s)\s++[\u2014\u2013-]\s+|\n+")
CONTRACTION = lazy_pattern(r"n[\u2019']t\b")
NUMERALS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30",
}  # fmt: skip
_MOST_CHARACTERS = 2_000
_LEAST_WORDS = 2

_ELISION = lazy_pattern(r"\b([cdjlmnst]|qu)[\u2019'](?=\w)", re.IGNORECASE)
# Punctuation around a word; what stands before a dot file, and operators, belong to it.
_AROUND = "\"'`()[]{}\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb*,;:?\uff0c\u3001\u3002"
_JOINS = frozenset(("", "+", "&", "-", "\u2013", "\u2014", "/", "\u2026"))
_OPERATOR = lazy_pattern(r"[<>=!~^|&+*/%?-]+")
_CLAUSE = lazy_pattern(r"[,;:](?=\s)|\s(?=(?:and|but|or)\s)")
# A clause that may stand before or behind the rest of its sentence.
_FRONT = r"(?:if|when|after|before|because|since|unless|until|without|in|on|with|for|at|during|while|once)"
_FRONTED = lazy_pattern(rf"{_FRONT}\s", re.IGNORECASE)
_FRONTED_CLAUSE = lazy_pattern(rf"\A({_FRONT}\s[^,]{{1,200}}),\s(.*?)[.!]?\Z", re.IGNORECASE | re.DOTALL)
_LISTED = lazy_pattern(r",|\s(?:and|or|und|oder|et|ou|y|o|e)(?=\s)")


_DENIES = words_of(
    "not no never none nor neither cannot nothing nobody without hardly rarely seldom barely scarcely "
    "nicht nie niemals kein keine keinen keinem keiner keines nichts ohne kaum selten weder "
    "ne n pas jamais aucun aucune sans ni rarement nunca jamás sin ningún ninguno ninguna nada tampoco "
    "non mai senza nessun nessuno nessuna não sem nem nenhum nenhuma niet geen nooit zonder "
    "bez nigdy ikke inte aldrig не нет без никогда"
)
_LIMITS = words_of("only unless except until nur außer seulement sauf solo sólo salvo solamente")
# Words of grammar. Those that say who does what to whom, when, or whether at all are not among them.
_GRAMMAR = words_of(
    "a an the we our i you your it its they them their is are be been has have had having do does did will "
    "would must shall should of in on at for with as that this these those which all any every each so then "
    "if when there also always please and or but der die das den dem des ein eine einen und wir ist sind "
    "le la les l un une et est sont el los las y es son lo gli i e o os"
)
_BE = words_of("is are be been")
_MODALS = words_of("must shall should")
_ARTICLES = words_of("a an the der die das den dem ein eine le la les un une el los las il lo")
_PREPOSITIONS = words_of("of in on at for with as to from by before after over into under")
_PARTICIPLE = lazy_pattern(r"[a-z]{2,20}ed|run|set|sent|read|put", re.IGNORECASE)
_IRREGULAR = {
    "kept": "keep", "built": "build", "written": "write", "made": "make", "held": "hold", "given": "give",
    "found": "find", "taken": "take", "done": "do", "sent": "send", "chosen": "choose", "chose": "choose",
}  # fmt: skip
_ENDINGS = ["uration", "ations", "ation", "ions", "ing", "ion", "ies", "ed", "es", "ly", "s", "e", "y"]
_DOUBLED = ("bb", "dd", "gg", "mm", "nn", "pp", "rr", "tt")
# What may not change when the words of a statement change places: then somebody turned it round.
_FRAME = (_GRAMMAR | _DENIES | _LIMITS | _PREPOSITIONS) - _ARTICLES
_BETWEEN = words_of("be been never not always only")


class _Word(NamedTuple):
    """A word as it is compared: by its stem; code, numbers and operators letter by letter."""

    stem: str
    exact: str = ""

    def is_same(self, other: _Word) -> bool:
        """Say whether two words are one."""
        if self.exact or other.exact:
            return (self.exact or self.stem) == (other.exact or other.stem)
        return self.stem == other.stem


class _Words(NamedTuple):
    """The words of each sentence in a fixed order, and its words of grammar."""

    sentences: tuple[tuple[_Word, ...], ...]
    frame: tuple[str, ...]

    @property
    def all(self) -> tuple[_Word, ...]:
        """Return the words of all sentences."""
        return tuple(word for sentence in self.sentences for word in sentence)


def have_same_words(one: str, other: str) -> bool:
    """Say whether the sentences of one text are among those of the other, word by word and in their order."""
    shorter, longer = sorted((_read_words(one), _read_words(other)), key=lambda words: len(words.sentences))
    if len(shorter.all) < _LEAST_WORDS or max(len(one), len(other)) > _MOST_CHARACTERS:
        return False
    rest = iter(longer.sentences)
    return all(
        # One more word can turn a sentence round in any language: “… is wrong”, “… ungern”.
        any(len(own) == len(each) and all(map(_Word.is_same, own, each)) for each in rest)
        for own in shorter.sentences
    )


def have_same_code(one: str, other: str) -> bool:
    """Say whether two texts name the same code, numbers and operators, in whatever order."""
    named = [Counter(word.exact for word in _read_words(text).all if word.exact) for text in (one, other)]
    return named[0] == named[1]


def find_turn(one: str, other: str) -> str:
    """Return how one text turns the other round; empty where it does not, or where that is in doubt."""
    first, second = _read_words(one), _read_words(other)
    words, others = first.all, second.all
    plain, plain_others = ([_key(word) for word in each if word.stem != "not"] for each in (words, others))
    if len(plain) < _LEAST_WORDS or max(len(one), len(other)) > _MOST_CHARACTERS:
        return ""
    if plain == plain_others and len(words) != len(others):
        return "only one of them is negated"
    pairs = [pair for pair in zip(words, others, strict=False) if not pair[0].is_same(pair[1])]
    if (
        len(words) == len(others)
        and len(pairs) == 1
        and all(_OPERATOR.fullmatch(each.exact) for each in pairs[0])
    ):
        return f"{pairs[0][0].exact!r} against {pairs[0][1].exact!r}"
    sides = [Counter(map(_key, each)) for each in (words, others)]
    is_moved = Counter(first.sentences) == Counter(second.sentences)
    if sides[0] == sides[1] and pairs and not is_moved and first.frame == second.frame:
        return "" if _sort_lists(one) == _sort_lists(other) else "the same words in another order"
    return ""


def _key(word: _Word) -> str:
    return word.exact or word.stem


@lru_cache(maxsize=8192)
def _read_words(text: str) -> _Words:
    sentences, frame = [], []
    for sentence in SENTENCE.split(_plain(text)):
        found: list[_Word] = []
        # A phrase in front instead of behind turns nothing round.
        frame += ["|"] if _FRONTED.match(sentence) else []
        for clause in _CLAUSE.split(_FRONTED_CLAUSE.sub(r"\2 \1", sentence)):
            spoken = clause.split()
            frame += [word for word in map(str.lower, spoken) if word in _FRAME]
            for at, word in enumerate(_move_verb(spoken)):
                read = _read_word(word, is_first=not at)
                # `ne … pas` and `ohne … nie` are each one denial where nothing stands between.
                if read is not None and not (read.stem == "not" and found and found[-1].stem == "not"):
                    found.append(read)
        sentences += [tuple(found)] if found else []
    return _Words(tuple(sentences), tuple(frame))


def _plain(text: str) -> str:
    return _ELISION.sub(r"\1 ", CONTRACTION.sub(" not", text[:_MOST_CHARACTERS]))


def _move_verb(words: Sequence[str]) -> list[str]:
    """Put the verb first that stands behind what it is done to: `logs are kept` is `keep logs`."""
    lower = [word.lower() for word in words]
    for at, word in enumerate(lower[:-1]):
        end = at + 1
        while end < len(lower) - 1 and lower[end] in _BETWEEN:
            end += 1
        done = lower[end].rstrip(".!")
        is_passive = word in _BE | _MODALS and (done in _IRREGULAR or _PARTICIPLE.fullmatch(done))
        is_alone = word in _MODALS and "be" not in lower[at:end] and lower[end + 1 : end + 2]
        if at and (is_passive or (is_alone and lower[end + 1] in _PREPOSITIONS)):
            return [*words[at + 1 : end + 1], *words[:at], *words[end + 1 :]]
    return list(words)


def _read_word(word: str, *, is_first: bool) -> _Word | None:
    """Return a word as it is compared; None for what is only grammar."""
    bare = word.strip(_AROUND)
    bare = bare.rstrip(".!") if bare.strip(".!") and bare != "!=" else bare
    bare = bare.strip(_AROUND) or bare
    lower = bare.lower()
    if bare in _JOINS:
        return None
    if lower in _DENIES:
        return _Word("not")
    if lower in _LIMITS:
        return _Word("", "only")
    # `US`, `userId` and `plan A` are names.
    is_name = bare[1:] != bare[1:].lower() or (len(bare) == 1 and bare.isupper() and not is_first)
    if is_name or not bare.replace("'", "").replace("-", "").isalpha():
        return _Word("", bare)
    if lower in _GRAMMAR:
        return None
    if lower in NUMERALS:
        return _Word("", NUMERALS[lower])
    # Scripts without spaces between words, and their endings, are compared as they stand.
    return _Word(_stem(lower)) if lower[0] < "\u0500" else _Word("", bare)


def _stem(word: str) -> str:
    """Cut the usual endings of a word."""
    word = _IRREGULAR.get(word, word)
    stem = cut_ending(word, _ENDINGS)
    return stem[:-1] if stem != word and stem.endswith(_DOUBLED) else stem


def cut_ending(word: str, endings: Sequence[str]) -> str:
    """Return a word without the first of these endings that it has, where three letters stay."""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending)
    return word


def _sort_lists(text: str) -> list[list[str]]:
    """Return the words of a text with the items of each list in one order, where an item is one word."""
    found = []
    for sentence in SENTENCE.split(_plain(text)):
        items = [
            [_key(read) for word in part.split() if (read := _read_word(word, is_first=False))]
            for part in _LISTED.split(sentence)
        ]
        heads, tails = items[0][:-1], items[-1][1:]
        is_list = len(items) > 1 and all(len(item) == 1 for item in items[1:-1])
        middle = [items[0][-1:], *items[1:-1], items[-1][:1]]
        found.append([*heads, *(str(each) for each in sorted(middle)), *tails] if is_list else [str(items)])
    return found
