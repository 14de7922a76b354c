"""What a new statement is to an old one: known, the same and more, its contradiction, or neither.

Known is only what says nothing new: each of its sentences stands in the old one, term by term. The guide has
the figures for the pairs of `tests/workspace/spoken_pairs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

from archivist.workspace.contradiction import compare_terms, find_contradiction
from archivist.workspace.overviews import strip_markup
from archivist.workspace.terms import (
    Term,
    TermKind,
    content_terms,
    parse_terms,
    sentence_meaning,
    split_sentences,
)

FUZZY = 88.0
COSINE = 0.80
SHARED = 0.45
# A short statement that stands whole in a longer one is the same, though the longer one says more.
CONTAINED = 0.75
CONTAINED_COSINE = 0.60
_CONTAINED_WORDS = 5
# What two texts must share for their entries to be one although their titles differ.
_AGREED_WORDS = 3
_AGREED = 0.6
_MAX_SENTENCES = 8
_MAX_KNOWN_SENTENCES = 200
_ALSO = re.compile(r"(?:^|\n\n)Also \[\d{4}-\d{2}-\d{2}\]:\s+")


class Likeness(StrEnum):
    """What one statement is to another."""

    EXACT = "exact"
    KNOWN = "known"
    MEANING = "meaning"
    CONFLICT = "conflict"
    DIFFERENT = "different"


class Comparison(NamedTuple):
    """How two statements stand to each other, how surely, and why."""

    likeness: Likeness
    score: float
    reason: str


class Statement(NamedTuple):
    """Something learnt: its title, and what it says."""

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
        """Say whether the text says the title at its start, and not only a word that begins like its last."""
        behind = self.text[len(self.title) :][:1]
        return self.text.startswith(self.title) and not (self.title and behind.isalnum())


def compare(old: Statement, new: Statement, cosine: float) -> Comparison:
    """Say what a new statement is to an old one; `cosine` is how near their vectors are."""
    for part in _parts(old):
        if _collapse_spaces(part.whole) == _collapse_spaces(new.whole):
            return Comparison(Likeness.EXACT, 1.0, "the same words")
    if any(covers_statement(part, new) for part in _parts(old)):
        return Comparison(Likeness.KNOWN, 1.0, "the same, but for its form")
    against = find_conflict(old, new)
    if against:
        return Comparison(Likeness.CONFLICT, cosine, against)
    is_contrary = _is_negated(old) != _is_negated(new)
    if not is_contrary and _is_near(old, new, cosine) and not _is_other_subject(old, new):
        return Comparison(Likeness.MEANING, cosine, f"the same in other words ({cosine:.2f})")
    return Comparison(Likeness.DIFFERENT, cosine, "")


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


@lru_cache(maxsize=2048)
def _parts(statement: Statement) -> tuple[Statement, ...]:
    """Return what an entry said first, and what was merged into it later, each by itself."""
    first, *later = _ALSO.split(statement.text)
    return (Statement(statement.title, first.strip()), *(Statement("", each.strip()) for each in later))


def covers_statement(old: Statement, new: Statement) -> bool:
    """Say whether an old statement says all of a new one, in the same order.

    It must begin alike: a sentence from the middle of an entry may hold only for what stands before it.
    """
    there, asked = _sentence_meanings(old), _sentence_meanings(new)
    if not there or not asked or asked[0] != there[0]:
        return False
    place = 0
    for each in asked:
        try:
            place = there.index(each, place)
        except ValueError:
            return False
    return True


@lru_cache(maxsize=4096)
def _sentence_meanings(statement: Statement) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return what each sentence says; the title only where the text does not begin with it."""
    titles, texts = split_sentences(statement.title), split_sentences(statement.text)
    if texts and strip_markup(texts[0]).strip(" .#-*>") == statement.title:
        titles = ()
    found = [sentence_meaning(each) for each in (*titles, *texts)]
    told = [each for place, each in enumerate(found) if each and (place == 0 or each != found[place - 1])]
    return tuple(told[:_MAX_KNOWN_SENTENCES]) if len(told) <= _MAX_KNOWN_SENTENCES else ()


# Nearness


def _is_near(old: Statement, new: Statement, cosine: float) -> bool:
    if fuzz.token_sort_ratio(" ".join(sorted(_words(old))), " ".join(sorted(_words(new)))) >= FUZZY:
        return True
    first, second = _words(old), _words(new)
    fewest = min(len(first), len(second))
    shared = len(first & second) / fewest if fewest else 0.0
    is_within = shared >= CONTAINED and cosine >= CONTAINED_COSINE and fewest >= _CONTAINED_WORDS
    return is_within or (cosine >= COSINE and shared >= SHARED)


@lru_cache(maxsize=4096)
def _words(statement: Statement) -> frozenset[str]:
    parts = (*split_sentences(statement.title), *split_sentences(statement.text))
    return frozenset(term.form for part in parts for term in content_terms(part))


def _is_other_subject(old: Statement, new: Statement) -> bool:
    """Say whether two near statements are about two things: an importer and an exporter.

    Each begins with something that the other does not have. Where a single word is exchanged, it is another
    thing; else it may be other words for the same, when what follows agrees.
    """
    first, second = _opening_terms(old), _opening_terms(new)
    between = compare_terms(first, second)
    mine, yours = (
        [term for term in left if term.form not in _words(other)]
        for left, other in ((between.old, new), (between.new, old))
    )
    if not mine or not yours:
        return False
    if _is_one_exchanged(first, second):
        return True
    return not _do_bodies_agree(old, new)


def _opening_terms(statement: Statement) -> tuple[Term, ...]:
    found = split_sentences(statement.title or statement.text)
    return content_terms(found[0]) if found else ()


def _is_negated(statement: Statement) -> bool:
    found = split_sentences(statement.title or statement.text)[:1]
    return sum(term.sort is TermKind.NEGATION for part in found for term in parse_terms(part)) % 2 == 1


def _is_one_exchanged(first: Sequence[Term], second: Sequence[Term]) -> bool:
    mine, yours = ([term.form for term in each] for each in (first, second))
    codes = SequenceMatcher(None, mine, yours, autojunk=False).get_opcodes()
    changes = [code for code in codes if code[0] != "equal"]
    return len(changes) == 1 and changes[0][2] - changes[0][1] == changes[0][4] - changes[0][3] == 1


def _do_bodies_agree(old: Statement, new: Statement) -> bool:
    first, second = (
        {term.form for part in _body_sentences(each) for term in content_terms(part)} for each in (old, new)
    )
    fewest = min(len(first), len(second))
    return fewest >= _AGREED_WORDS and len(first & second) >= _AGREED * fewest


def _body_sentences(statement: Statement) -> tuple[str, ...]:
    found = split_sentences(statement.text)
    return found[1:] if found and statement.title and statement.begins_with_title else found


# Contradictions


def find_conflict(old: Statement, new: Statement) -> str:
    """Say in what two statements contradict each other; empty when they do not.

    Every sentence is compared with every other, since what changed may be said in any of them, but one below
    a title only where the titles are about the same.
    """
    if not _words(old) & _words(new):
        return ""
    for first in _compared_sentences(old):
        for second in _compared_sentences(new):
            found = find_contradiction(first, second)
            if found and (_is_title(first, old, second, new) or _is_same_subject(old, new, first, second)):
                return found
    return ""


def _compared_sentences(statement: Statement) -> tuple[str, ...]:
    found = dict.fromkeys((*split_sentences(statement.title), *split_sentences(statement.text)))
    return tuple(each for each in found if _says_enough(each))[:_MAX_SENTENCES]


def _says_enough(sentence: str) -> bool:
    return sum(term.sort is not TermKind.FILLER for term in parse_terms(sentence)) >= 2


def _is_title(first: str, old: Statement, second: str, new: Statement) -> bool:
    return first in split_sentences(old.title)[:1] and second in split_sentences(new.title)[:1]


def _is_same_subject(old: Statement, new: Statement, first: str, second: str) -> bool:
    """Say whether the titles leave it open that two sentences are about the same."""
    slot = {term.form for part in (first, second) for term in content_terms(part)}
    mine, yours = (
        {term.form for part in split_sentences(one.title) for term in content_terms(part)}
        - _words(other)
        - slot
        for one, other in ((old, new), (new, old))
    )
    return not (mine and yours)
