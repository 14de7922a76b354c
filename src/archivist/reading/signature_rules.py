"""Find the rules worth trying on an output, given the words that it holds."""

from collections.abc import Iterator
from typing import NamedTuple

from archivist.reading.rules import RULES
from archivist.reading.rules.rule import MessageRule

# Letters and digits in lower case, everything else a space.
_SEPARATED = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256)
)


class NeedleRules(NamedTuple):
    """One needle: the words it is made of, and the rules to try on its lines."""

    needle: str
    words: frozenset[bytes]
    rules: tuple[MessageRule, ...]


def matching_needles(text: str) -> Iterator[NeedleRules]:
    """Yield the needles that can be in the text, given its words: hundreds of searches become a few."""
    present = frozenset(words_of(text))
    yield from BY_WORD[b""]
    for word in TRIGGERS & present:
        for entry in BY_WORD[word]:
            if entry.words <= present:
                yield entry


def words_of(text: str) -> list[bytes]:
    """Return the words of a text in lower case."""
    return text.encode("ascii", "replace").translate(_SEPARATED).split()


def index_rules(rules: tuple[MessageRule, ...]) -> dict[bytes, tuple[NeedleRules, ...]]:
    """Return the needles with their rules, each under a word that an output holding the needle must have."""
    by_needle: dict[str, list[MessageRule]] = {}
    for rule in rules:
        for needle in rule.needles:
            by_needle.setdefault(needle, []).append(rule)
    found: dict[bytes, list[NeedleRules]] = {b"": []}
    for needle, those in by_needle.items():
        whole = _whole_words(needle)
        trigger = max(whole, key=lambda word: (len(word), word), default=b"")
        found.setdefault(trigger, []).append(NeedleRules(needle.removeprefix("~"), whole, tuple(those)))
    return {word: tuple(entries) for word, entries in found.items()}


def _whole_words(needle: str) -> frozenset[bytes]:
    """Return the words that the needle holds whole: not one cut off, nor the last, unless it is alone."""
    whole = words_of(needle)
    if needle.startswith("~"):
        whole = whole[1:]
    inner = frozenset(word for word in whole[:-1] if len(word) > 1)
    return inner or frozenset(word for word in whole if len(word) > 1)


BY_WORD = index_rules(RULES)
TRIGGERS = frozenset(BY_WORD)
