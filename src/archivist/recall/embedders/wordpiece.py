"""Split text into words and words into vocabulary pieces, the way an uncased BERT does.

Only letters and digits count: punctuation does not say what a text is about. A word that is in the vocabulary
stays whole (`GitHub`); any other is split at its case and digits (`getUserName`, `utf8`), so that an
identifier means what its parts mean, and only then into pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

LONGEST_WORD = 100

_ASCII_WORD = r"[A-Za-z0-9]+"
# Ideographs stand alone; marks that follow a letter belong to its word until they are stripped.
_IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f"
_ANY_WORD = rf"[{_IDEOGRAPHS}]|(?:(?![_{_IDEOGRAPHS}])\w|[\u0300-\u036f])+"
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+"
# Compiled at first use: compiling the pattern for every script takes longer than a query in ASCII.
_compiled = cache(re.compile)

Find = Callable[[bytes], int]


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order and as they are written."""
    words: list[str] = _compiled(_ASCII_WORD if text.isascii() else _ANY_WORD).findall(text)
    return words


def pieces_of(word: str, find: Find) -> list[int]:
    """Return the rows of a word's pieces; `find` returns a piece's row, or -1.

    A part with an unknown piece has no rows, and neither has a word that is too long to be one.
    """
    if len(word) > LONGEST_WORD:
        return []
    row = find(fold(word))
    if row >= 0:
        return [row]
    return [row for part in parts_of(word) for row in _longest_matches(fold(part), find)]


def parts_of(word: str) -> Iterator[str]:
    """Yield the parts of a word, split at its case and digits."""
    bare = word if word.isascii() else _strip_marks(word)
    return (part.group() for part in _compiled(_PART).finditer(bare))


def fold(word: str) -> bytes:
    """Return a word as the vocabulary writes it."""
    lowered = word.lower()
    if not lowered.isascii():
        lowered = _strip_marks(lowered)
    return lowered.encode("utf-8", "replace")


def _strip_marks(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")


def _longest_matches(part: bytes, find: Find) -> list[int]:
    rows: list[int] = []
    start = 0
    while start < len(part):
        lead = b"##" if start else b""
        for end in range(len(part), start, -1):
            row = find(lead + part[start:end])
            if row >= 0:
                break
        else:
            return []
        rows.append(row)
        start = end
    return rows
