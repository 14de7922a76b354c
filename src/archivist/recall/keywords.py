"""Compare texts by their keywords, without comparing every pair.

A finding F is the lesson L again when two shares are large enough:

    |F ∩ L| ÷ |F|  ≥ 50 %   half of what the finding says is what the lesson says (the documented rule), and
    |F ∩ L| ÷ |L|  ≥ 40 %   it says a good part of the lesson.

The denominator of the documented rule is the finding, as in ArcheFlow's own matching. Alone it would merge a
finding of two words into every long lesson that contains one of them. A wrong merge loses a lesson for good,
a missed one only leaves one candidate too many; hence the second share. Tags count as matching words of the
lesson, but not in its size.

A reviewer who meets a long lesson again says it in fewer words, and they are too few of it. Such a finding
is the lesson again when the lesson holds all of its words, of six and more 80 %: whatever else is found at
the same place brings a word of its own. Here the forms of a word are equal, and the words by which anything
is said to be missing or wrong do not count.

The category of a finding is part of the match: under another category only nearly the same words, 80 % of
both, are the same finding. Reviewers seldom agree on categories, so that nothing but the words would do.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from math import ceil
from operator import or_
from typing import Any, NamedTuple

from archivist.text import stem_word

# The share of the words that two texts of different categories must have in common.
_SAME_WORDS = 0.8
# The documented rule drops words below three characters.
_WORD = re.compile(r"[^\W_]{3,}")

# A finding that a lesson contains has at least so many words; with many words one may be another.
_LEAST_CONTAINED = 3
_MANY_WORDS = 6
# Words by which a finding says of anything that it is missing or wrong.
_SUBJECTLESS = frozenset([
    "absent", "incorrect", "invalid", "lack", "lacking", "lacks", "miss", "misses", "missing", "need",
    "needs", "never", "none", "show", "shown", "shows", "use", "used", "uses", "using", "wrong",
])  # fmt: skip

# The row of the lessons that have a category; no category has this name.
_ANY = ""

STOP_WORDS = frozenset([
    "about", "after", "all", "also", "and", "any", "are", "because", "been", "before", "being", "but",
    "can", "cannot", "could", "did", "does", "doing", "done", "each", "for", "from", "had", "has", "have",
    "how", "into", "its", "itself", "just", "may", "might", "more", "most", "must", "not", "off", "once",
    "only", "other", "our", "out", "over", "own", "same", "shall", "she", "should", "some", "such", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "too",
    "under", "until", "very", "was", "were", "what", "when", "where", "which", "while", "who", "why",
    "will", "with", "would", "you", "your",
])  # fmt: skip


class Overlap(NamedTuple):
    """The common share of the finding and of the lesson from which on they are the same."""

    of_finding: float = 0.5
    of_lesson: float = 0.4


class Match(NamedTuple):
    """The lesson that a finding repeats, and the share of the finding's words that it contains."""

    key: str
    share: float


def keywords(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without stop words and words below three characters."""
    words = frozenset(_WORD.findall(text.lower()))
    # A text of stop words only is compared by them.
    return words - STOP_WORDS or words


def says_nothing(text: str) -> bool:
    """Say whether a text has no words but stop words."""
    words = frozenset(_WORD.findall(text.lower()))
    return bool(words) and words <= STOP_WORDS


def is_other_category(category: str, known: Iterable[str]) -> bool:
    """Say whether a finding's category is none of those that are known, where both are given."""
    names = {name.strip().casefold() for name in known} - {""}
    return bool(names) and bool(category.strip()) and category.strip().casefold() not in names


def matches(
    finding: frozenset[str],
    lesson: frozenset[str],
    tags: frozenset[str],
    overlap: Overlap,
    *,
    is_other_category: bool = False,
) -> bool:
    """Say whether two texts say the same, by the share of their words."""
    if is_other_category:
        return len(finding & lesson) >= _SAME_WORDS * max(len(finding), len(lesson))
    common = len(finding & (lesson | tags))
    return bool(common) and common >= max(overlap.of_finding * len(finding), overlap.of_lesson * len(lesson))


def repeats(
    finding: frozenset[str],
    lesson: frozenset[str],
    tags: frozenset[str],
    overlap: Overlap,
    *,
    is_other_category: bool = False,
) -> bool:
    """Say whether a finding repeats a lesson, by the rule above: it may say the same in fewer words."""
    if is_other_category or matches(finding, lesson, tags, overlap):
        return matches(finding, lesson, tags, overlap, is_other_category=is_other_category)
    stems = _subject_stems(finding)
    return len(stems & set(map(stem_word, lesson | tags))) >= _least_contained(len(stems))


def _subject_stems(words: frozenset[str]) -> frozenset[str]:
    """Return what a finding is about, each word without its ending."""
    return frozenset(map(stem_word, words - _SUBJECTLESS))


def _least_contained(count: int) -> int:
    """Return how many of a finding's words a lesson must hold to contain it."""
    if count < _LEAST_CONTAINED:
        return _LEAST_CONTAINED
    return count if count < _MANY_WORDS else ceil(_SAME_WORDS * count)


class KeywordIndex:
    """Lessons by their words, to find the one that a text repeats without comparing every lesson.

    Every word has a row of bits, one for each lesson. Adding the rows of a text's words with carries counts
    the common words of all lessons at once, 64 lessons in one machine operation.
    """

    def __init__(self, overlap: Overlap) -> None:
        self._overlap = overlap
        self._keys: list[str] = []
        self._by_word = _BitRows()
        # By stem the words that have it.
        self._forms: defaultdict[str, set[str]] = defaultdict(set)
        self._by_size = _BitRows()
        self._by_category = _BitRows()

    def add(self, key: str, text: str, tags: Iterable[str] = (), *, is_reviewed: bool = False) -> None:
        """Add a lesson; the tags of a reviewed one are the categories of its findings.

        Of equally good matches the one that was added first wins.
        """
        words = keywords(text)
        place = len(self._keys)
        self._keys.append(key)
        for category in {tag.casefold() for tag in tags} if is_reviewed else ():
            self._by_category.places[category].append(place)
            self._by_category.places[_ANY].append(place)
        self._by_size.places[len(words)].append(place)
        for tag in tags:
            words |= keywords(tag)
        places = self._by_word.places
        for word in words:
            if word not in places:
                self._forms[stem_word(word)].add(word)
            places[word].append(place)

    def find(self, text: str, category: str = "") -> Match | None:
        """Return the lesson that contains most of a text's words, the shortest of those, or None."""
        wanted = keywords(text)
        if not wanted or not self._keys:
            return None
        category = category.strip().casefold()
        others = self._by_category.row(_ANY) & ~self._by_category.row(category) if category else 0
        sums = _column_sums([self._by_word.row(word) for word in wanted])
        least = max(1, ceil(self._overlap.of_finding * len(wanted)))
        for common in range(min(len(wanted), (1 << len(sums)) - 1), least - 1, -1):
            holders = _columns_with(sums, common, len(self._keys))
            if not holders:
                continue
            for size in sorted(self._by_size.places):
                if common < self._overlap.of_lesson * size:
                    break
                found = holders & self._by_size.row(size)
                if common < _SAME_WORDS * max(len(wanted), size):
                    found &= ~others
                if found:
                    return Match(self._keys[(found & -found).bit_length() - 1], common / len(wanted))
        return self._find_containing(wanted, others)

    def _find_containing(self, wanted: frozenset[str], others: int) -> Match | None:
        """Return the shortest lesson that contains a finding in fewer words, or None."""
        stems = _subject_stems(wanted)
        least = _least_contained(len(stems))
        forms = (self._forms.get(stem, ()) for stem in stems)
        rows = [reduce(or_, map(self._by_word.row, words), 0) for words in forms]
        sums = _column_sums(rows)
        for common in range(min(len(stems), (1 << len(sums)) - 1), least - 1, -1):
            found = _columns_with(sums, common, len(self._keys)) & ~others
            for size in sorted(self._by_size.places) if found else ():
                if shortest := found & self._by_size.row(size):
                    return Match(self._keys[(shortest & -shortest).bit_length() - 1], common / len(stems))
        return None


class _BitRows:
    """Rows of bits by name, built from the places added so far when a row is read."""

    def __init__(self) -> None:
        self.places: defaultdict[Any, list[int]] = defaultdict(list)
        self._rows: dict[Any, tuple[int, int]] = {}

    def row(self, name: object) -> int:
        places = self.places.get(name)
        if not places:
            return 0
        row, taken = self._rows.get(name, (0, 0))
        if taken < len(places):
            fresh = bytearray(places[-1] // 8 + 1)
            for place in places[taken:]:
                fresh[place // 8] |= 1 << place % 8
            row |= int.from_bytes(fresh, "little")
            self._rows[name] = row, len(places)
        return row


def _columns_with(sums: list[int], wanted: int, count: int) -> int:
    """Return the columns, of so many, whose sum is the wanted one."""
    columns = (1 << count) - 1
    for place, digit in enumerate(sums):
        columns &= digit if wanted >> place & 1 else ~digit
    return columns


def _column_sums(rows: Iterable[int]) -> list[int]:
    """Add bits column by column; the result's rows are the binary digits of each column's sum."""
    digits: list[int] = []
    for row in rows:
        carry = row
        for place, digit in enumerate(digits):
            if not carry:
                break
            digits[place], carry = digit ^ carry, digit & carry
        if carry:
            digits.append(carry)
    return digits
