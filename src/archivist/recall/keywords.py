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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from math import ceil
from typing import NamedTuple

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


class _IndexedLesson(NamedTuple):
    """A lesson as the index knows it: `size` is its number of words, without those of its tags."""

    key: str
    size: int
    categories: frozenset[str]

    def is_other(self, category: str) -> bool:
        """Say whether it is of categories, and of other ones."""
        return bool(category and self.categories) and category not in self.categories


class KeywordIndex:
    """Lessons by their words, to find the one that a text repeats without comparing every lesson."""

    def __init__(self, overlap: Overlap) -> None:
        self._overlap = overlap
        self._lessons: list[_IndexedLesson] = []
        # By word the places of the lessons that have it, and by stem the words that have that.
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._forms: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, key: str, text: str, tags: Iterable[str] = (), *, is_reviewed: bool = False) -> None:
        """Add a lesson; the tags of a reviewed one are the categories of its findings.

        Of equally good matches the one that was added first wins.
        """
        words = keywords(text)
        categories = frozenset(tag.casefold() for tag in tags) if is_reviewed else frozenset()
        place = len(self._lessons)
        self._lessons.append(_IndexedLesson(key, len(words), categories))
        for word in words.union(*map(keywords, tags)):
            if word not in self._places:
                self._forms[stem_word(word)].add(word)
            self._places[word].append(place)

    def find(self, text: str, category: str = "") -> Match | None:
        """Return the lesson that contains most of a text's words, the shortest of those, or None."""
        wanted, category = keywords(text), category.strip().casefold()
        common_words = Counter(chain.from_iterable(self._places.get(word, ()) for word in wanted))
        for lesson, common in self._most_common(common_words, self._overlap.of_finding * len(wanted)):
            is_near = common >= _SAME_WORDS * max(len(wanted), lesson.size)
            if common >= self._overlap.of_lesson * lesson.size and (is_near or not lesson.is_other(category)):
                return Match(lesson.key, common / len(wanted))
        # Else the shortest that contains the text in fewer words.
        stems = _subject_stems(wanted)
        forms = (self._forms.get(stem, ()) for stem in stems)
        places = ({place for word in words for place in self._places[word]} for words in forms)
        common_stems = Counter(chain.from_iterable(places))
        for lesson, common in self._most_common(common_stems, _least_contained(len(stems))):
            if not lesson.is_other(category):
                return Match(lesson.key, common / len(stems))
        return None

    def _most_common(self, counts: Counter[int], least: float) -> Iterator[tuple[_IndexedLesson, int]]:
        """Yield the lessons with the most words in common, of equal ones the shortest and then the first."""
        enough = (
            (-common, self._lessons[place].size, place) for place, common in counts.items() if common >= least
        )
        for common, _, place in sorted(enough):
            yield self._lessons[place], -common
