"""Texts that a pattern may take long to refuse, made from the pattern's own parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random
from re import _constants as code
from re import _parser as parser
from typing import Any, NamedTuple

_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)
_CLASSES = {
    code.CATEGORY_SPACE: r"\s", code.CATEGORY_NOT_SPACE: r"\S", code.CATEGORY_WORD: r"\w",
    code.CATEGORY_NOT_WORD: r"\W", code.CATEGORY_DIGIT: r"\d", code.CATEGORY_NOT_DIGIT: r"\D",
}  # fmt: skip
# One of each kind that patterns tell apart. All fit into a byte, so that patterns of bytes get them too.
_TRIED = "a1 -/.,\"'`x\t!#=<>(){}[]:;_A\n\\é|*&@~%+?$^\r\x00"
# More than this often is as good as without end.
_MANY = 20
# So many texts are tried for a pattern; the designed ones first, then parts in chance order.
_MOST_TEXTS = 400
_ENDS = ("\x00", "", "\n", "\n\x00", " !")


class Attack(NamedTuple):
    """A text of any length: a start, a part that is repeated, an end."""

    start: str
    unit: str
    end: str

    def text(self, length: int) -> str:
        """Return the text with about so many characters."""
        return self.start + self.unit * (length // len(self.unit)) + self.end


@cache
def _are_members(text: str) -> frozenset[str]:
    return frozenset(character for character in _TRIED if re.match(text, character))


def _class_members(items: Sequence[Any]) -> list[str]:
    """Return the characters of a class that are worth a try."""
    members: list[str] = []
    is_negated = False
    for kind, value in items:
        if kind is code.NEGATE:
            is_negated = True
        elif kind is code.LITERAL:
            members.append(chr(value))
        elif kind is code.RANGE:
            within = [character for character in _TRIED if value[0] <= ord(character) <= value[1]]
            members += [chr(value[0]), chr(value[1]), *within]
        else:
            members += sorted(_are_members(_CLASSES[value]))
    if is_negated:
        return [character for character in _TRIED if character not in members] or ["\xff"]
    return members


def _sample(nodes: Any, rng: Random, times: int) -> str:
    """Return a text that parts of a pattern match, each repeated about so many times."""
    text = ""
    for kind, value in nodes:
        if kind is code.LITERAL:
            text += chr(value)
        elif kind is code.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif kind is code.ANY:
            text += rng.choice("a ")
        elif kind is code.IN:
            text += rng.choice(_class_members(value))
        elif kind in _REPEATS:
            least, greatest, inner = value
            often = min(_MANY, max(least, min(greatest, times)))
            text += "".join(_sample(inner, rng, times) for _ in range(often))
        elif kind is code.SUBPATTERN:
            text += _sample(value[3], rng, times)
        elif kind is code.ATOMIC_GROUP:
            text += _sample(value, rng, times)
        elif kind is code.BRANCH:
            text += _sample(rng.choice(value[1]), rng, times)
        elif kind is code.ASSERT and value[0] > 0:
            # What must follow is mostly what is matched next.
            text += _sample(value[1], rng, times) if rng.random() < 0.3 else ""
    return text


def _inner_parts(kind: Any, value: Any) -> list[Any]:
    """Return the sequences inside a part of a pattern."""
    if kind in _REPEATS:
        return [value[2]]
    if kind is code.SUBPATTERN:
        return [value[3]]
    if kind is code.ATOMIC_GROUP:
        return [value]
    if kind is code.BRANCH:
        return list(value[1])
    if kind in (code.ASSERT, code.ASSERT_NOT):
        return [value[1]]
    if kind is code.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    return []


def _repeated_parts(nodes: Any, start: str, rng: Random) -> Iterator[tuple[str, Any, Any]]:
    """Yield, for each part that may be repeated, what matches before it, itself, and what comes after it."""
    nodes = list(nodes)
    for place, (kind, value) in enumerate(nodes):
        if kind in _REPEATS and value[1] > _MANY:
            yield start, value[2], nodes[place + 1 :]
        for inner in _inner_parts(kind, value):
            yield from _repeated_parts(inner, start, rng)
        start += _sample([(kind, value)], rng, 1)


def _pieces(nodes: Any) -> Iterator[str]:
    """Yield the characters and words that a pattern tells apart."""
    word = ""
    for kind, value in [*nodes, (code.AT, None)]:
        if kind is code.LITERAL:
            word += chr(value)
            yield chr(value)
            continue
        if len(word) > 1:
            yield word
        word = ""
        if kind is code.NOT_LITERAL:
            yield chr(value)
        elif kind is code.IN:
            yield from _class_members(value)[:6]
        for inner in _inner_parts(kind, value):
            yield from _pieces(inner)


def _attacks(tree: Any, rng: Random) -> Iterator[Attack]:
    """Yield the designed texts, then parts of the pattern in chance order."""
    starts, units = {""}, set()
    # Samples differ: one may end where another one is matched on.
    for times in (1, 1, 2, 0):
        for start, part, rest in _repeated_parts(tree, "", rng):
            unit, miss = _sample(part, rng, 1) or "a", _sample(rest, rng, times)[:-1]
            starts.add(start)
            units |= {unit, start + unit, start + unit + miss, start, miss}
            yield Attack(start, unit, miss + "\x00")
            yield Attack("", start + unit + miss, "\x00")
            yield Attack(start + unit, start or unit, "\x00")
        whole = _sample(tree, rng, times)
        units |= {whole, whole[:-1], whole[1:]}
    pieces = sorted({*_pieces(tree), *"a1 -/.\n\t\"'(<[\\"})
    yield from (Attack("", unit, "\x00") for unit in pieces)
    known, begun = sorted(units), sorted(starts)
    while True:
        unit = "".join(rng.choices(pieces, k=rng.randint(1, 3)))
        unit = rng.choice((unit, unit + rng.choice(known), rng.choice(known) + unit))
        yield Attack(rng.choice(begun), unit, rng.choice(_ENDS))


def find_attacks(text: str | bytes, flags: int) -> list[Attack]:
    """Return the texts to try on a pattern."""
    tree = parser.parse(text, flags)
    return list(dict.fromkeys(islice(_attacks(tree, Random(1)), _MOST_TEXTS)))  # noqa: S311
