"""What a new statement is to an old one: the same, the same in other words, its contradiction, or neither.

The thresholds are measured on the pairs of `tests/unit/workspace/statement_pairs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

FUZZY = 88.0
COSINE = 0.80
SHARED = 0.45
# A short statement that stands whole in a longer one is the same, though the longer one says more.
CONTAINED = 0.75
CONTAINED_COSINE = 0.60
_CONTAINED_WORDS = 5
_TELLING_TEXT = 6
# How much of two sentences must be the same for their difference to be a contradiction.
SUBJECT = 0.65
CHANGED_SUBJECT = 0.55
_MAX_SENTENCES = 8
_MAX_REPLACED = 4
_FRAME_WORDS = 3

_WORD = re.compile(r"[^\W_](?:[\w.+#@/-]*\w)?", re.UNICODE)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n{2,}|\n(?=[-*] )")
_NUMBER = re.compile(r"v?\d[\d.,]*(?:[a-z]{1,3}|%)?")
_SHORTENED = re.compile(r"\b(\w+)n[\u2019']t\b")


def _set_of(spelt: str) -> frozenset[str]:
    return frozenset(spelt.split())


_STOP = _set_of(
    "a an the and or of to in on at by for from with as is are was were be been being it its this that these "
    "those we our us you your they their them i he she which who what when where while than then so such "
    "has have had having do does did will would can could may might shall should must need needs needed "
    "all every each any some only just also very more most one two up out into over under about because "
    "otherwise else there here now still"
)
_NEGATIONS = _set_of(
    "not never no avoid avoids avoiding without stop stopped cannot don doesn didn won shouldn mustn isn "
    "aren wasn couldn wouldn nobody nothing neither nor longer forbid forbids forbidden refuse"
)
_OPPOSITES = {
    frozenset(pair.split("/"))
    for pair in _set_of(
        "enable/disable enabled/disabled enables/disables allow/forbid allowed/forbidden always/never on/off "
        "required/optional mandatory/optional public/private sync/async synchronous/asynchronous add/remove "
        "include/exclude before/after true/false keep/remove keep/delete local/remote manual/automatic "
        "strict/lenient lazy/eager mutable/immutable must/optional accept/reject commit/ignore open/closed "
        "increase/decrease higher/lower more/less start/stop use/avoid enable/avoid prefer/avoid "
        "sequential/parallel global/local first/last upgrade/downgrade safe/unsafe stateful/stateless"
    )
}
_CHOOSING = _set_of(
    "chose choose chosen choosing use uses used using adopt adopted adopts pick picked prefer preferred "
    "select selected switch switched migrate migrated store stored keep kept standardise standardised "
    "standardize standardized go went"
)
_BEING = _set_of("is are was were be equals becomes to")


class Likeness(StrEnum):
    """What one statement is to another."""

    EXACT = "exact"
    FUZZY = "fuzzy"
    MEANING = "meaning"
    CONFLICT = "conflict"
    DIFFERENT = "different"


class Compared(NamedTuple):
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
        if self.text.startswith(self.title):
            return self.text
        return f"{self.title}. {self.text}" if self.text else self.title


def compare(old: Statement, new: Statement, cosine: float) -> Compared:
    """Say what a new statement is to an old one; `cosine` is how near their vectors are."""
    if folded(old.whole) == folded(new.whole) or _is_same_text(old.text, new.text):
        return Compared(Likeness.EXACT, 1.0, "the same words")
    against = conflict(old, new)
    if against:
        return Compared(Likeness.CONFLICT, cosine, against)
    ratio = fuzz.token_sort_ratio(folded(old.whole), folded(new.whole))
    if ratio >= FUZZY:
        return Compared(Likeness.FUZZY, ratio / 100, f"{ratio:.0f} % the same words")
    shared = containment(old.whole, new.whole)
    is_within = (
        shared >= CONTAINED
        and cosine >= CONTAINED_COSINE
        and min(len(telling(old.whole)), len(telling(new.whole))) >= _CONTAINED_WORDS
    )
    if is_within or (cosine >= COSINE and shared >= SHARED):
        return Compared(Likeness.MEANING, cosine, f"the same in other words ({cosine:.2f})")
    return Compared(Likeness.DIFFERENT, cosine, "")


def _is_same_text(old: str, new: str) -> bool:
    """Say whether two texts are the same, and long enough to say the same under any title."""
    return len(words(old)) >= _TELLING_TEXT and words(old) == words(new)


def folded(text: str) -> str:
    """Return a text with nothing but its words, in small letters."""
    return " ".join(words(text))


def containment(old: str, new: str) -> float:
    """Return how much of the shorter text's telling words is in the longer."""
    first, second = telling(old), telling(new)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def novel(old: str, new: str) -> frozenset[str]:
    """Return the telling words that only the new text has."""
    return telling(new) - telling(old)


def conflict(old: Statement, new: Statement) -> str:
    """Say in what two statements contradict each other; empty when they do not.

    Titles are compared with titles, and every sentence with every other, since what changed may be said in
    either.
    """
    if old.title and new.title:
        found = _contradiction(old.title, new.title)
        if found:
            return found
    for first in _sentences(old):
        for second in _sentences(new):
            found = _contradiction(first, second)
            if found:
                return found
    return ""


def _sentences(statement: Statement) -> list[str]:
    parts = [statement.title, *_SENTENCE.split(statement.text)]
    return [part.strip() for part in parts if len(part.split()) > 2][:_MAX_SENTENCES]


def _contradiction(old: str, new: str) -> str:
    first, second = words(old), words(new)
    if first == second:
        return ""
    return _opposite(first, second) or _changed(first, second)


def _opposite(first: Sequence[str], second: Sequence[str]) -> str:
    """Find a negation or an opposite between sentences that are about the same."""
    mine, yours = _stems(first), _stems(second)
    if _likeness(mine, yours) < SUBJECT:
        return ""
    for pair in _OPPOSITES:
        left, right = tuple(pair)
        for one, other in ((left, right), (right, left)):
            if one in first and other in second and one not in second and other not in first:
                return f"{one!r} against {other!r}"
    if bool(_NEGATIONS & set(first)) != bool(_NEGATIONS & set(second)):
        found = sorted(_NEGATIONS & (set(first) ^ set(second)))
        return f"{found[0]!r} stands in one of them only"
    return ""


def _changed(first: Sequence[str], second: Sequence[str]) -> str:
    """Find one value or choice in the place of another, in sentences that are otherwise the same."""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    codes = matcher.get_opcodes()
    if _swapped(first, second):
        return "the two sides are swapped"
    changes = [code for code in codes if code[0] != "equal"]
    if not changes or any(code[0] != "replace" for code in changes[:1]):
        return ""
    _, a, b, c, d = changes[0]
    before, after = first[a:b], second[c:d]
    if len(before) > _MAX_REPLACED or len(after) > _MAX_REPLACED:
        return ""
    rest = frozenset(_stems(first)) - frozenset(_stems(before))
    other = frozenset(_stems(second)) - frozenset(_stems(after))
    if not rest or len(rest & other) / max(len(rest), len(other)) < CHANGED_SUBJECT:
        return ""
    if set(_stems(before)) & set(_stems(after)):
        return ""
    is_value = _numbers(before) and _numbers(after) and _unnumbered(before) == _unnumbered(after)
    is_choice = bool(set(first[max(0, a - 1) : a]) & (_CHOOSING | _BEING)) or _is_object(first, a)
    equal_words = sum(code[2] - code[1] for code in codes if code[0] == "equal")
    is_framed = len(rest & other) >= 2 or (len(changes) == 1 and equal_words >= _FRAME_WORDS)
    if is_value or (is_choice and is_framed):
        return f"{' '.join(before)!r} against {' '.join(after)!r}"
    return ""


def _is_object(sentence: Sequence[str], place: int) -> bool:
    """Say whether what stands there is what was chosen: `store sessions in …`."""
    return sentence[0] in _CHOOSING and place >= len(sentence) - 2


def _swapped(first: Sequence[str], second: Sequence[str]) -> bool:
    """Say whether two sentences have the same words but `x over y` the other way round."""
    if sorted(first) != sorted(second) or "over" not in first:
        return False
    place, other = first.index("over"), second.index("over")
    return first[:place][-1:] == second[other + 1 : other + 2] and first[:place][-1:] != second[:other][-1:]


def _unnumbered(found: Sequence[str]) -> list[str]:
    return [word for word in found if not _NUMBER.fullmatch(word)]


def _numbers(found: Sequence[str]) -> bool:
    return any(_NUMBER.fullmatch(word) for word in found)


def _likeness(first: Sequence[str], second: Sequence[str]) -> float:
    mine, yours = frozenset(first), frozenset(second)
    if len(mine & yours) < 2 or not mine or not yours:
        return 0.0
    return len(mine & yours) / max(len(mine), len(yours))


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters; `don't` as `don not`."""
    return tuple(_WORD.findall(_SHORTENED.sub(r"\1n not", text.casefold())))


@lru_cache(maxsize=4096)
def telling(text: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's meaning."""
    return frozenset(_stems(words(text)))


def _stems(found: Sequence[str]) -> tuple[str, ...]:
    skipped = _STOP | _NEGATIONS
    return tuple(_stem(word) for word in found if word not in skipped and word not in _OPPOSED)


_OPPOSED = frozenset(word for pair in _OPPOSITES for word in pair)


def _stem(word: str) -> str:
    """Cut the commonest endings: enough to see that `clients` are a `client`."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word.removesuffix("e") if len(word) > 4 else word
