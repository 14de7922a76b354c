"""Find what two sentences say against each other: an opposite, another amount, another choice, a swap.

A false alarm holds up what somebody wants to save, so a difference counts only where the rest is the same and
it stands where one thing rules out another: behind `use`, behind `the default … is`, in a pair of opposites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from archivist.workspace.terms import Term, TermKind, content_terms, form_of, parse_terms, words_in

_TELLING = (TermKind.WORD, TermKind.NUMBER, TermKind.AMOUNT)
_MOST_REPLACED = 3
_MOST_EXTRA = 1
_SAME_AMOUNT = 0.05
# How much of the longer sentence both must share for an opposite to be about the same.
_SHARED = 0.5


def _stems(spelt: str) -> frozenset[str]:
    return frozenset(form_of(word) for word in spelt.split())


def _pairs(spelt: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(form_of(word) for word in pair.split("/")) for pair in spelt.split())


_OPPOSITES = _pairs(
    "enable/disable allow/forbid on/off required/optional need/optional mandatory/optional include/exclude "
    "before/after true/false keep/delete kept/delete accept/reject increase/decrease raise/lower "
    "higher/lower more/less upgrade/downgrade above/below tabs/spaces commit/ignore always/sometimes"
)
# Words that describe: before a noun they name two things, `public endpoints` and `private endpoints`.
_DESCRIBING = _pairs(
    "public/private sync/async synchronous/asynchronous local/remote manual/automatic manually/automatically "
    "strict/lenient lazy/eager mutable/immutable open/closed sequential/parallel global/local first/last "
    "safe/unsafe stateful/stateless ascending/descending encrypted/plain signed/unsigned internal/external "
    "short/long fast/slow sorted/unsorted"
)
# Words for a thing going wrong: beside one of them a negation is another way to say the same.
_FAILING = _stems(
    "break broke broken fail failure hang crash leak lose lost miss missing error wrong slow block stuck "
    "stale flaky corrupt drop deny denied empty"
)
# Words that say how much is meant, not what.
_WEAK = _stems(
    "always must may might can could will would use adopt choose longer still only all every any each have"
)
# What is said of a thing that is no more: `no longer works`.
_ENDED = _stems("work apply hold exist valid true run supported there")
_CHOOSING = _stems(
    "use choose adopt adopted pick picked prefer preferred select selected switch switched migrate "
    "migrated standardise standardised standardize standardized default go went"
)
_KEEPING = _stems("store stored keep kept save saved put")
_SINGLE = _stems(
    "default primary main only sole single official preferred canonical standard minimum maximum min max "
    "latest"
)
# What a thing has one of.
_SLOTS = _SINGLE | _stems(
    "level branch version name owner port region format limit timeout size language encoding zone timezone "
    "licence license mode url path host database store engine provider framework manager protocol order "
    "priority interval ttl lifetime unit type backend driver editor formatter linter runner shell "
    "registry bucket currency target locale count depth width length indent prefix suffix charset quota "
    "schedule cadence budget"
)
_LASTING = _stems("expire expired expires valid last lasts live lifetime ttl kept keep hold")
_RIVALS = tuple(
    frozenset(form_of(word) for word in group.split())
    for group in (
        "milliseconds seconds minutes hours days weeks months years",
        "bytes kb mb gb tb kib mib gib kilobytes megabytes gigabytes",
        "utc jst gmt cet cest est edt pst pdt ist local",
        "json xml yaml toml csv protobuf msgpack avro parquet",
        "cents euros dollars yen pounds",
        "snake kebab camel pascal",
        "postgresql mysql mariadb mongodb sqlite oracle cassandra dynamodb",
        "rest graphql grpc soap",
        "utf-8 utf-16 latin-1 ascii",
        "http https",
        "english german french spanish italian japanese chinese korean",
        "uuids ulids integers strings floats",
    )
)
# Verbs of which one thing may do several.
_ALSO = _stems("support accept allow read parse handle offer provide include have know test cover contain")
_ASYMMETRIC = _stems(
    "over before than depend need call import own extend inherit wrap contain override trigger block "
    "precede follow beat replace produce consume"
) | {"over", "before", "than", "not"}
_QUALIFYING = words_in(
    "in on for when if during with from of at under unless while via within across inside outside by as"
)


class Difference(NamedTuple):
    """What two sentences share, and what of each the other does not have, by the terms' forms."""

    shared: Counter[str]
    old: list[Term]
    new: list[Term]


def find_contradiction(old: str, new: str) -> str:
    """Say in what two sentences contradict each other; empty when they do not."""
    if _form_set(old).isdisjoint(_form_set(new)):
        return ""
    first, second = parse_terms(old), parse_terms(new)
    if _forms(first) == _forms(second):
        return ""
    between = compare_terms(content_terms(old), content_terms(new))
    return (
        _find_swap(first, second, between)
        or _find_opposite(first, second, between)
        or _find_other_amount(first, second, between)
        or _find_other_choice(first, second)
    )


@lru_cache(maxsize=8192)
def _form_set(sentence: str) -> frozenset[str]:
    return frozenset(term.form for term in content_terms(sentence))


def compare_terms(first: Sequence[Term], second: Sequence[Term]) -> Difference:
    """Compare the telling terms of two texts, each as often as it stands there."""
    mine, yours = Counter(_forms(first)), Counter(_forms(second))
    shared = mine & yours
    return Difference(shared, _leftover_terms(first, mine - shared), _leftover_terms(second, yours - shared))


def _leftover_terms(found: Sequence[Term], over: Counter[str]) -> list[Term]:
    """Return the terms that are over, from the end: of two, the first is the one that both have."""
    left, over = [], over.copy()
    for term in reversed(found):
        if over[term.form] > 0:
            over[term.form] -= 1
            left.append(term)
    return left[::-1]


def _forms(found: Iterable[Term]) -> list[str]:
    return [term.form for term in found]


# Order


def _find_swap(first: Sequence[Term], second: Sequence[Term], between: Difference) -> str:
    """Find `x over y` in one and `y over x` in the other, of sentences with the same words."""
    if between.old or between.new:
        return ""
    mine, yours = _from_and_to(first), _from_and_to(second)
    if mine and yours and mine == yours[::-1] and mine[0] != mine[1]:
        return "the two sides are swapped"
    for relation in _ASYMMETRIC:
        left, right = _sides(first, relation)
        other_left, other_right = _sides(second, relation)
        gone, come = left - other_left, other_left - left
        if gone and come and right - other_right == come and other_right - right == gone:
            return "the two sides are swapped"
    return ""


def _from_and_to(found: Sequence[Term]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what stands behind `from` and behind `to`."""
    ends: dict[str, tuple[str, ...]] = {}
    forms = _forms(found)
    for word in ("from", "to"):
        if forms.count(word) != 1:
            return None
        behind = found[forms.index(word) + 1 :]
        stop = next((at for at, term in enumerate(behind) if term.sort is TermKind.RELATION), len(behind))
        ends[word] = tuple(term.form for term in behind[:stop] if term.sort in _TELLING)
    return ends["from"], ends["to"]


def _sides(found: Sequence[Term], relation: str) -> tuple[Counter[str], Counter[str]]:
    """Return the telling terms before and behind a relation; `y after x` is `x before y`."""
    forms = _forms(found)
    is_reversed = relation == "before" and "after" in forms and "before" not in forms
    word = "after" if is_reversed else relation
    if forms.count(word) != 1:
        return Counter(), Counter()
    place = forms.index(word)
    sides = [
        Counter(term.form for term in part if term.sort in _TELLING)
        for part in (found[:place], found[place + 1 :])
    ]
    # `x is needed by y`, `x is needed for y`: the other way round.
    is_passive = forms[place + 1 : place + 2] in (["by"], ["for"])
    before, behind = sides[::-1] if is_passive != is_reversed else sides
    return before, behind


# Opposites


def _find_opposite(first: Sequence[Term], second: Sequence[Term], between: Difference) -> str:
    """Find a negation or an opposite between sentences that are about the same."""
    pair = _opposite_pair(first, second)
    negated = [sum(term.sort is TermKind.NEGATION for term in each) % 2 == 1 for each in (first, second)]
    is_negated = negated[0] != negated[1]
    if bool(pair) == is_negated:
        return ""
    is_moved = not between.old and not between.new and _content_forms(first) != _content_forms(second)
    if is_moved and "before" in pair:
        # `x before y` and `y after x` are the same.
        return ""
    is_over = any(term.form == "longer" for term in (*between.old, *between.new))
    skipped = _WEAK | frozenset(pair) | (_ENDED if is_over else frozenset())
    old, new = (
        [term for term in left if _is_significant(term, skipped)] for left in (between.old, between.new)
    )
    if is_negated and any(term.form in _FAILING for term in (*between.old, *between.new)):
        return ""
    if not _is_about_the_same(first, second, between, old, new, skipped):
        return ""
    if pair:
        one, other = (
            next(t.said for t in each if t.form == form)
            for each, form in zip((first, second), pair, strict=True)
        )
        return f"{one!r} against {other!r}"
    word = next(term.said for term in (first if negated[0] else second) if term.sort is TermKind.NEGATION)
    return f"{word!r} stands in one of them only"


def _content_forms(found: Sequence[Term]) -> list[str]:
    return [term.form for term in found if term.sort in _TELLING]


def _opposite_pair(first: Sequence[Term], second: Sequence[Term]) -> tuple[str, ...]:
    """Return the only pair of opposites: `enable x before y` and `disable x after y` may both hold."""
    mine, yours = set(_forms(first)), set(_forms(second))
    found = []
    for pair in _OPPOSITES | _DESCRIBING:
        one, other = sorted(pair)
        for left, right in ((one, other), (other, one)):
            is_there = left in mine and right in yours and left not in yours and right not in mine
            if is_there and not (
                pair in _DESCRIBING and _describes(first, left) and _describes(second, right)
            ):
                found.append((left, right))
    return found[0] if len(found) == 1 else ()


def _describes(found: Sequence[Term], form: str) -> bool:
    """Say whether a word only tells one thing from another: it stands before a noun, and not behind `use`."""
    place = _forms(found).index(form)
    behind = found[place + 1 : place + 2]
    is_chosen = place > 0 and found[place - 1].form in _CHOOSING
    return bool(behind) and behind[0].sort is TermKind.WORD and not is_chosen


def _is_significant(term: Term, skipped: frozenset[str]) -> bool:
    return term.sort is TermKind.WORD and term.form not in skipped


def _is_about_the_same(
    first: Sequence[Term],
    second: Sequence[Term],
    between: Difference,
    old: Sequence[Term],
    new: Sequence[Term],
    skipped: frozenset[str] = frozenset(),
) -> bool:
    """Say whether what only one sentence has is too little to make it another subject."""
    if old and new:
        return False
    extra, whole = (old, first) if old else (new, second)
    if len(extra) > _MOST_EXTRA or any(_is_qualifying(term, whole) for term in extra):
        return False
    shared = sum(count for form, count in between.shared.items() if form not in skipped)
    longest = max(
        sum(term.sort in _TELLING and term.form not in skipped for term in each) for each in (first, second)
    )
    return shared >= 1 and shared >= _SHARED * longest


def _is_qualifying(term: Term, whole: Sequence[Term]) -> bool:
    """Say whether a term tells where or when a sentence holds: `in staging`, `for videos`."""
    place = whole.index(term)
    before = [each for each in whole[max(0, place - 2) : place] if each.sort is not TermKind.FILLER]
    return bool(before) and before[-1].form in _QUALIFYING


# Amounts


def _find_other_amount(first: Sequence[Term], second: Sequence[Term], between: Difference) -> str:
    """Find another amount of the same, in sentences that are otherwise the same."""
    old, new = (
        [term for term in left if _is_significant(term, _WEAK)] for left in (between.old, between.new)
    )
    mine, yours = (
        [term for term in left if term.sort is not TermKind.WORD] for left in (between.old, between.new)
    )
    if len(mine) != 1 or len(yours) != 1 or mine[0].sort is not yours[0].sort:
        return ""
    if mine[0].sort is TermKind.AMOUNT:
        if not _do_amounts_differ(mine[0].form, yours[0].form):
            return ""
        old, new = ([term for term in left if term.form not in _LASTING] for left in (old, new))
        is_meant = True
    else:
        is_meant = _is_measured(first, mine[0]) and _is_measured(second, yours[0])
    if not is_meant or not _is_about_the_same(first, second, between, old, new, _WEAK | _LASTING):
        return ""
    return f"{mine[0].said!r} against {yours[0].said!r}"


def _do_amounts_differ(one: str, other: str) -> bool:
    """Say whether two amounts measure the same and differ: thirty days are a month."""
    (value, kind), (other_value, other_kind) = one.split(), other.split()
    least, most = sorted((abs(float(value)), abs(float(other_value))))
    return kind == other_kind and most - least > _SAME_AMOUNT * most


def _is_measured(found: Sequence[Term], number: Term) -> bool:
    """Say whether a number is a value, and not part of a name such as `Python 3.11` or `step 4`."""
    place = found.index(number)
    behind = found[place + 1 : place + 3]
    is_counting = bool(behind) and behind[0].sort is TermKind.WORD and behind[0].is_plural
    # `5 retries for mail` counts, `HTTP 429 means trouble` does not.
    if is_counting and not (len(behind) > 1 and behind[1].sort is TermKind.WORD):
        return True
    before = [term for term in found[:place] if term.sort is not TermKind.FILLER]
    if not before:
        return False
    if before[-1].sort is TermKind.BEING or before[-1].form in words_in(
        "to at of after for within under over than by"
    ):
        return True
    return before[-1].form in _SLOTS and any(term.sort is not TermKind.WORD for term in before[:-1])


# Choices


def _find_other_choice(first: Sequence[Term], second: Sequence[Term]) -> str:
    """Find one thing in the place of another where only one can be, the rest being equal."""
    mine, yours = ([term for term in each if term.sort is not TermKind.FILLER] for each in (first, second))
    matcher = SequenceMatcher(None, _forms(mine), _forms(yours), autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace":
        return ""
    _, start, stop, other_start, other_stop = changes[0]
    old, new = mine[start:stop], yours[other_start:other_stop]
    if max(len(old), len(new)) > _MOST_REPLACED:
        return ""
    if not any(term.sort in _TELLING for term in old) or not any(term.sort in _TELLING for term in new):
        return ""
    before, behind = mine[:start], mine[stop:]
    if _is_exclusive(before, old, new, behind):
        return f"{_join_terms(old)!r} against {_join_terms(new)!r}"
    return ""


def _join_terms(found: Sequence[Term]) -> str:
    return " ".join(term.said for term in found)


def _is_exclusive(
    before: Sequence[Term], old: Sequence[Term], new: Sequence[Term], behind: Sequence[Term]
) -> bool:
    # What goes before a noun that both have only describes that: `unit tests`, `integration tests`.
    is_thing = not behind or behind[0].sort not in _TELLING
    if _is_unique_slot(before, behind) and (len(old) == 1 or len(new) == 1):
        return True
    if not before or not is_thing:
        return False
    forms = _forms(before)
    has_frame = any(term.sort in _TELLING and term.form not in _CHOOSING for term in (*before, *behind))
    is_choice = bool(_CHOOSING & set(forms[-2:])) and not old[0].is_definite and has_frame
    is_value = before[-1].sort is TermKind.BEING and bool(_SLOTS & set(forms))
    is_place = bool(_KEEPING & set(forms)) and forms[-1] in ("in", "on", "as", "to") and not behind
    is_manner = forms[-1] == "as" and not behind
    return is_choice or is_value or is_place or is_manner or _is_rival(forms, old, new)


def _is_unique_slot(before: Sequence[Term], behind: Sequence[Term]) -> bool:
    """Say whether the sentence goes on with `… is the default …`: of which there is one."""
    forms = _forms(behind)
    is_linked = bool(behind) and (behind[0].sort is TermKind.BEING or forms[0] == "as")
    return (
        is_linked
        and bool(_SINGLE & set(forms[1:3]))
        and not any(term.sort in _TELLING for term in before[:-1])
    )


def _is_rival(before: Sequence[str], old: Sequence[Term], new: Sequence[Term]) -> bool:
    if len(old) != 1 or len(new) != 1 or _ALSO & set(before):
        return False
    mine, yours = old[0].form.casefold(), new[0].form.casefold()
    return any(mine in group and yours in group for group in _RIVALS)
