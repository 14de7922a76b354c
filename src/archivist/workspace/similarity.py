"""Decide what a new statement is to an old one: known, the same, a contradiction, or different.

A statement is known only when it says nothing new: each of its sentences is in the old one, term by term. It
contradicts the old one where one difference remains and only one of the two can hold: an opposite, another
amount, another choice, swapped sides. A false alarm blocks a save, so the rest must be the same.

bench/workspace_rules.py prints precision and recall on the labelled pairs, beside a comparison of word sets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from archivist.workspace.documents import strip_markup
from archivist.workspace.terms import (
    CONTENT,
    Meaning,
    Term,
    TermKind,
    content_terms,
    form_of,
    parse_terms,
    sentence_meaning,
    split_sentences,
    word_set,
)

# Cosine of the bundled table from which two statements can be the same in other words.
COSINE = 0.80
# How much of the shorter statement both must share.
SHARED_WORDS = 0.45
# A short statement that is part of a longer one is the same, although the longer one says more.
CONTAINED_WORDS = 0.75
CONTAINED_COSINE = 0.60
_MIN_CONTAINED_WORDS = 5
# What two texts must share for their entries to be one although their titles differ.
_MIN_AGREED_WORDS = 3
_AGREED_WORDS = 0.6
# Every sentence is compared with every other: eight of each are 64 comparisons for a pair.
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
    parts = _merged_parts(old)
    if any(_collapse_spaces(part.whole) == _collapse_spaces(new.whole) for part in parts):
        return Comparison(Likeness.EXACT, 1.0, "the same words")
    if any(_covers(part, new) for part in parts):
        return Comparison(Likeness.KNOWN, 1.0, "the same, but for its form")
    conflict = find_conflict(old, new)
    if conflict:
        return Comparison(Likeness.CONFLICT, cosine, conflict)
    # A negated statement that is near must never be merged into its opposite.
    is_contrary = _is_negated(old) != _is_negated(new)
    fewest = min(len(_words(old)), len(_words(new)))
    shared = len(_words(old) & _words(new)) / fewest if fewest else 0.0
    is_contained = shared >= CONTAINED_WORDS and fewest >= _MIN_CONTAINED_WORDS
    is_near = cosine >= (CONTAINED_COSINE if is_contained else COSINE) and shared >= SHARED_WORDS
    if is_near and not is_contrary and not _has_other_subject(old, new):
        return Comparison(Likeness.MEANING, cosine, f"the same in other words ({cosine:.2f})")
    return Comparison(Likeness.DIFFERENT, cosine, "")


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


@lru_cache(maxsize=2048)
def _merged_parts(statement: Statement) -> tuple[Statement, ...]:
    """Return the original statement of an entry, and each addition that was merged into it later."""
    first, *later = _ALSO.split(statement.text)
    return (Statement(statement.title, first.strip()), *(Statement("", each.strip()) for each in later))


def _covers(old: Statement, new: Statement) -> bool:
    """Say whether an old statement contains every sentence of a new one, in the same order.

    Both must start alike: a sentence from the middle of an entry may depend on the one before it.
    """
    known, asked = _sentence_meanings(old), _sentence_meanings(new)
    if not known or not asked or asked[0] != known[0]:
        return False
    rest = iter(known)
    return all(meaning in rest for meaning in asked)


@lru_cache(maxsize=4096)
def _sentence_meanings(statement: Statement) -> tuple[Meaning, ...]:
    """Return the meaning of each sentence; the title only where the text does not start with it."""
    titles, texts = split_sentences(statement.title), split_sentences(statement.text)
    if texts and strip_markup(texts[0]).strip(" .#-*>") == statement.title:
        titles = ()
    found = [sentence_meaning(sentence) for sentence in (*titles, *texts)]
    unique = [each for at, each in enumerate(found) if each and (at == 0 or each != found[at - 1])]
    return tuple(unique) if len(unique) <= _MAX_KNOWN_SENTENCES else ()


# Same meaning


def _forms(sentences: Sequence[str]) -> frozenset[str]:
    return frozenset(term.form for sentence in sentences for term in content_terms(sentence))


@lru_cache(maxsize=4096)
def _words(statement: Statement) -> frozenset[str]:
    return _forms((*split_sentences(statement.title), *split_sentences(statement.text)))


def _first_sentence(statement: Statement) -> str:
    return next(iter(split_sentences(statement.title or statement.text)), "")


def _is_negated(statement: Statement) -> bool:
    return _count_negations(parse_terms(_first_sentence(statement))) % 2 == 1


def _count_negations(terms: Sequence[Term]) -> int:
    return sum(term.kind is TermKind.NEGATION for term in terms)


def _has_other_subject(old: Statement, new: Statement) -> bool:
    """Say whether two near statements are about two things, such as an importer and an exporter.

    Each starts with a word that the other does not have. Where a single word is replaced, it is another
    thing; otherwise it may be other words for the same thing, when the rest of the text agrees.
    """
    first, second = content_terms(_first_sentence(old)), content_terms(_first_sentence(new))
    between = _compare_terms(first, second)
    has_own = any(term.form not in _words(new) for term in between.old)
    if not has_own or all(term.form in _words(old) for term in between.new):
        return False
    changes = _changes(first, second)
    if len(changes) == 1 and len(changes[0].old) == len(changes[0].new) == 1:
        return True
    bodies = []
    for statement in (old, new):
        sentences = split_sentences(statement.text)
        has_title = sentences and statement.title and statement.begins_with_title
        bodies.append(_forms(sentences[1:] if has_title else sentences))
    fewest = min(map(len, bodies))
    return fewest < _MIN_AGREED_WORDS or len(bodies[0] & bodies[1]) < _AGREED_WORDS * fewest


class _Change(NamedTuple):
    """A place where two sequences of terms differ."""

    start: int
    old: Sequence[Term]
    new: Sequence[Term]


def _changes(old: Sequence[Term], new: Sequence[Term]) -> list[_Change]:
    first, second = ([term.form for term in terms] for terms in (old, new))
    codes = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    return [_Change(i1, old[i1:i2], new[j1:j2]) for tag, i1, i2, j1, j2 in codes if tag != "equal"]


class _Difference(NamedTuple):
    """The forms that two sentences share, and the terms that only one of them has."""

    shared: Counter[str]
    old: list[Term]
    new: list[Term]


def _compare_terms(first: Sequence[Term], second: Sequence[Term]) -> _Difference:
    """Compare the terms of two sentences, each as often as it occurs."""
    counts = [Counter(term.form for term in terms) for terms in (first, second)]
    shared = counts[0] & counts[1]
    leftovers = []
    for terms, count in zip((first, second), counts, strict=True):
        left, over = [], count - shared
        # From the end: of a term that occurs twice, the first is the one that both sentences have.
        for term in reversed(terms):
            if over[term.form] > 0:
                over[term.form] -= 1
                left.append(term)
        leftovers.append(left[::-1])
    return _Difference(shared, *leftovers)


# Contradictions


def _stems(words: str) -> frozenset[str]:
    return frozenset(form_of(word) for word in words.split())


def _pairs(words: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(form_of(word) for word in pair.split("/")) for pair in word_set(words))


_OPPOSITES = _pairs(
    "enable/disable allow/forbid on/off need/optional mandatory/optional include/exclude before/after "
    "true/false keep/delete kept/delete accept/reject increase/decrease raise/lower higher/lower "
    "more/less upgrade/downgrade above/below tabs/spaces commit/ignore always/sometimes"
)
# Before a noun these words name two things: `public endpoints` and `private endpoints` can both exist.
_DESCRIBING = _pairs(
    "public/private sync/async synchronous/asynchronous local/remote manual/automatic "
    "manually/automatically strict/lenient lazy/eager mutable/immutable open/closed sequential/parallel "
    "global/local first/last safe/unsafe stateful/stateless ascending/descending encrypted/plain "
    "signed/unsigned internal/external short/long fast/slow sorted/unsorted"
)
# A word behind one of these says where or when a sentence holds: `in staging`, `for videos`.
_QUALIFYING = word_set(
    "in on for when if during with from of at under unless while via within across inside outside by as"
)
# Words that say how strictly a rule holds, not what it says.
_MODAL = _stems(
    "always must may might can could will would use adopt choose longer still only all every any each have"
)
_ENDED = _stems("work apply hold exist valid true run supported there")
_CHOOSING = _stems(
    "use choose adopt adopted pick picked prefer preferred select selected switch switched migrate "
    "migrated standardise standardised standardize standardized default go went"
)
_STORING = _stems("store stored keep kept save saved put")
_SINGLE = _stems(
    "default primary main only sole single official preferred canonical standard minimum maximum min max "
    "latest"
)
# Properties of which a thing has exactly one.
_PROPERTIES = _SINGLE | _stems(
    "level branch version name owner port region format limit timeout size language encoding zone timezone "
    "licence license mode url path host database store engine provider framework manager protocol order "
    "priority interval ttl lifetime unit type backend driver editor formatter linter runner shell "
    "registry bucket currency target locale count depth width length indent prefix suffix charset quota "
    "schedule cadence budget"
)
_LASTING = _stems("expire expired expires valid last lasts live lifetime ttl kept keep hold")
_ALTERNATIVES = tuple(
    _stems(group)
    for group in (
        "milliseconds seconds minutes hours days weeks months years",
        "bytes kb mb gb tb kib mib gib kilobytes megabytes gigabytes",
        "utc jst gmt cet cest est edt pst pdt ist local",
        "json xml yaml toml csv protobuf msgpack avro parquet",
        "cents euros dollars yen pounds",
        "snake kebab camel pascal",
        "utf-8 utf-16 latin-1 ascii",
        "english german french spanish italian japanese chinese korean",
        "postgresql mysql mariadb mongodb sqlite oracle cassandra dynamodb",
        "rest graphql grpc soap",
        "http https",
        "uuids ulids integers strings floats",
    )
)
# Verbs whose subject can do several things: a parser that reads XML may also read JSON.
_INCLUSIVE = _stems(
    "support accept allow read parse handle offer provide include have know test cover contain"
)
_ASYMMETRIC = _stems(
    "over before than depend need call import own extend inherit wrap contain override trigger block "
    "precede follow beat replace produce consume"
) | {"not"}
_MEASURING = word_set("to at of after for within under over than by")
_SWAPPED = "the two sides are swapped"
# More words in the place of others are another sentence, not another choice.
_MAX_REPLACED = 3
# Amounts that differ by less are the same: 30 days are a month.
_SAME_AMOUNT = 0.05
# The share of the longer sentence that both must have for an opposite to be about the same thing.
_SHARED_TERMS = 0.5


def find_conflict(old: Statement, new: Statement) -> str:
    """Return how two statements contradict each other; empty when they do not.

    The difference may be in any sentence, so each is compared with every other; below different titles a
    sentence may be about something else.
    """
    if not _words(old) & _words(new):
        return ""
    titles = [_forms(split_sentences(statement.title)) for statement in (old, new)]
    own = (titles[0] - _words(new), titles[1] - _words(old))
    for first in _compared_sentences(old):
        for second in _compared_sentences(new):
            found = _contradict(first, second)
            compared = _forms((first, second))
            if found and not (own[0] - compared and own[1] - compared):
                return found
    return ""


def _compared_sentences(statement: Statement) -> list[str]:
    found = dict.fromkeys((*split_sentences(statement.title), *split_sentences(statement.text)))
    return list(found)[:_MAX_SENTENCES]


def _contradict(old: str, new: str) -> str:
    if _forms((old,)).isdisjoint(_forms((new,))):
        return ""
    first, second = parse_terms(old), parse_terms(new)
    if [term.form for term in first] == [term.form for term in second]:
        return ""
    between = _compare_terms(content_terms(old), content_terms(new))
    return (
        _find_swap(first, second, between)
        or _find_opposite(first, second, between)
        or _find_other_amount(first, second, between)
        or _find_other_choice(first, second)
    )


def _find_swap(first: Sequence[Term], second: Sequence[Term], between: _Difference) -> str:
    """Find `x over y` in one and `y over x` in the other sentence, which have the same words."""
    if between.old or between.new:
        return ""
    ends = [(_behind(terms, "from"), _behind(terms, "to")) for terms in (first, second)]
    if ends[0][0] and ends[0] == ends[1][::-1] and ends[0][0] != ends[0][1]:
        return _SWAPPED
    for relation in _ASYMMETRIC:
        left, right = _sides(first, relation)
        other_left, other_right = _sides(second, relation)
        gone, come = left - other_left, other_left - left
        if gone and come and right - other_right == come and other_right - right == gone:
            return _SWAPPED
    return ""


def _behind(terms: Sequence[Term], word: str) -> tuple[str, ...]:
    """Return the content terms between the only occurrence of a word and the next relation."""
    forms = [term.form for term in terms]
    if forms.count(word) != 1:
        return ()
    found: list[str] = []
    for term in terms[forms.index(word) + 1 :]:
        if term.kind is TermKind.RELATION:
            break
        found += [term.form] if term.kind in CONTENT else []
    return tuple(found)


def _sides(terms: Sequence[Term], relation: str) -> tuple[Counter[str], Counter[str]]:
    """Return the content terms before and behind a relation; `y after x` is `x before y`."""
    forms = [term.form for term in terms]
    is_reversed = relation == "before" and "after" in forms and "before" not in forms
    word = "after" if is_reversed else relation
    if forms.count(word) != 1:
        return Counter(), Counter()
    at = forms.index(word)
    before, behind = (
        Counter(term.form for term in part if term.kind in CONTENT) for part in (terms[:at], terms[at + 1 :])
    )
    # `x is needed by y` and `x is needed for y` are reversed.
    is_passive = forms[at + 1 : at + 2] in (["by"], ["for"])
    return (behind, before) if is_passive != is_reversed else (before, behind)


def _find_opposite(first: Sequence[Term], second: Sequence[Term], between: _Difference) -> str:
    """Find a negation or an opposite between sentences about the same thing."""
    forms = [{term.form for term in terms} for terms in (first, second)]
    pairs = [
        (left, right)
        for pair in (*_OPPOSITES, *_DESCRIBING)
        for left, right in (pair, pair[::-1])
        if left in forms[0] - forms[1] and right in forms[1] - forms[0]
        if pair in _OPPOSITES or not (_describes(first, left) and _describes(second, right))
    ]
    # `Enable x before y` and `disable x after y` can both hold: two pairs are no contradiction.
    pair = pairs[0] if len(pairs) == 1 else ()
    negated = [_count_negations(terms) % 2 == 1 for terms in (first, second)]
    if bool(pair) == (negated[0] != negated[1]):
        return ""
    content = [[term.form for term in terms if term.kind in CONTENT] for terms in (first, second)]
    if "before" in pair and not between.old and not between.new and content[0] != content[1]:
        # `x before y` and `y after x` mean the same.
        return ""
    # `npm test no longer works` negates any statement about `npm test`.
    is_ended = any(term.form == "longer" for term in (*between.old, *between.new))
    ignored = _MODAL | frozenset(pair) | (_ENDED if is_ended else frozenset())
    if not _is_same_topic(first, second, between, ignored):
        return ""
    if pair:
        one, other = (
            next(term.written for term in terms if term.form == form)
            for terms, form in zip((first, second), pair, strict=True)
        )
        return f"{one!r} against {other!r}"
    terms = first if negated[0] else second
    word = next(term.written for term in terms if term.kind is TermKind.NEGATION)
    return f"{word!r} is in one of them only"


def _describes(terms: Sequence[Term], form: str) -> bool:
    """Say whether a word only describes the noun behind it, and was not chosen with a verb such as `use`."""
    at = [term.form for term in terms].index(form)
    is_chosen = at > 0 and terms[at - 1].form in _CHOOSING
    return not is_chosen and any(term.kind is TermKind.WORD for term in terms[at + 1 : at + 2])


def _is_same_topic(
    first: Sequence[Term], second: Sequence[Term], between: _Difference, ignored: frozenset[str]
) -> bool:
    """Say whether at most one word that counts is in one sentence only, and enough words are in both."""
    own = [
        (term, whole)
        for terms, whole in ((between.old, first), (between.new, second))
        for term in terms
        if term.kind is TermKind.WORD and term.form not in ignored
    ]
    if len(own) > 1:
        return False
    for term, whole in own:
        at = whole.index(term)
        near = [each.form for each in whole[max(0, at - 2) : at] if each.kind is not TermKind.FILLER]
        if near and near[-1] in _QUALIFYING:
            return False
    shared = sum(count for form, count in between.shared.items() if form not in ignored)
    longest = max(
        sum(term.kind in CONTENT and term.form not in ignored for term in terms) for terms in (first, second)
    )
    return shared >= 1 and shared >= _SHARED_TERMS * longest


def _find_other_amount(first: Sequence[Term], second: Sequence[Term], between: _Difference) -> str:
    """Find another amount in sentences that are otherwise the same."""
    amounts = [
        [term for term in terms if term.kind is not TermKind.WORD] for terms in (between.old, between.new)
    ]
    if any(len(terms) != 1 for terms in amounts):
        return ""
    (old,), (new,) = amounts
    if old.kind is not new.kind:
        return ""
    if old.kind is TermKind.AMOUNT:
        (value, unit), (other_value, other_unit) = old.form.split(), new.form.split()
        least, most = sorted((abs(float(value)), abs(float(other_value))))
        is_other = unit == other_unit and most - least > _SAME_AMOUNT * most
    else:
        is_other = _is_measured(first, old) and _is_measured(second, new)
    if not is_other or not _is_same_topic(first, second, between, _MODAL | _LASTING):
        return ""
    return f"{old.written!r} against {new.written!r}"


def _is_measured(terms: Sequence[Term], number: Term) -> bool:
    """Say whether a number is a value, and not part of a name such as `Python 3.11` or `step 4`."""
    at = terms.index(number)
    behind = terms[at + 1 : at + 3]
    is_count = bool(behind) and behind[0].kind is TermKind.WORD and behind[0].is_plural
    # `5 retries for mail` counts something, `HTTP 429 means trouble` does not.
    if is_count and not (len(behind) > 1 and behind[1].kind is TermKind.WORD):
        return True
    before = [term for term in terms[:at] if term.kind is not TermKind.FILLER]
    if not before:
        return False
    if before[-1].kind is TermKind.BEING or before[-1].form in _MEASURING:
        return True
    return before[-1].form in _PROPERTIES and any(term.kind is not TermKind.WORD for term in before[:-1])


def _find_other_choice(first: Sequence[Term], second: Sequence[Term]) -> str:
    """Find one thing in the place of another where only one is possible and the rest is the same."""
    old, new = ([term for term in terms if term.kind is not TermKind.FILLER] for terms in (first, second))
    changes = _changes(old, new)
    if len(changes) != 1 or max(len(changes[0].old), len(changes[0].new)) > _MAX_REPLACED:
        return ""
    change = changes[0]
    if not all(any(term.kind in CONTENT for term in terms) for terms in (change.old, change.new)):
        return ""
    before, behind = old[: change.start], old[change.start + len(change.old) :]
    if not _is_exclusive(before, change, behind):
        return ""
    one, other = (" ".join(term.written for term in terms) for terms in (change.old, change.new))
    return f"{one!r} against {other!r}"


def _is_exclusive(before: Sequence[Term], change: _Change, behind: Sequence[Term]) -> bool:
    forms, later = ([term.form for term in terms] for terms in (before, behind))
    is_single_word = len(change.old) == 1 or len(change.new) == 1
    # `x is the default …`: there is only one.
    is_linked = bool(behind) and (behind[0].kind is TermKind.BEING or later[0] == "as")
    if is_linked and is_single_word and _SINGLE & set(later[1:3]):
        return not any(term.kind in CONTENT for term in before[:-1])
    # Before a noun that both have, a word only describes it: `unit tests` and `integration tests`.
    if not before or (behind and behind[0].kind in CONTENT):
        return False
    has_context = any(term.kind in CONTENT and term.form not in _CHOOSING for term in (*before, *behind))
    # `Use the importer for …` and `use the exporter for …` are about two things that both exist.
    is_choice = bool(_CHOOSING & set(forms[-2:])) and has_context and not change.old[0].is_definite
    is_value = before[-1].kind is TermKind.BEING and bool(_PROPERTIES & set(forms))
    is_place = bool(_STORING & set(forms)) and forms[-1] in ("in", "on", "as", "to") and not behind
    is_alternative = (
        len(change.old) == len(change.new) == 1
        and not _INCLUSIVE & set(forms)
        and any(
            {change.old[0].form.casefold(), change.new[0].form.casefold()} <= group for group in _ALTERNATIVES
        )
    )
    return is_choice or is_value or is_place or (forms[-1] == "as" and not behind) or is_alternative
