"""Embed with the bundled table: the vector of a text is the sum of its words' rows, at unit length.

The file, with little-endian numbers: the header (magic, digest, rows, dimensions, bytes of vocabulary); for
each row its piece's end in the vocabulary (uint32); each row's scale (float32, with the weight of the piece);
the vocabulary, pieces in byte order; the rows (int8). Nothing is parsed at start: a query reads only the
pages that its words need, without numpy.

Text is split into words, and words into pieces, the way an uncased BERT does. Only letters and digits count:
punctuation does not say what a text is about. A word that is in the vocabulary stays whole (`GitHub`); any
other is split at its case and digits (`getUserName`, `utf8`), so that an identifier means what its parts
mean, and only then into pieces.
"""

from __future__ import annotations

import mmap
import re
import struct
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate, chain
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_WORD = 100

_ASCII_WORD = r"[A-Za-z0-9]+"
# Ideographs stand alone; marks that follow a letter belong to its word until they are stripped.
_IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f"
_ANY_WORD = rf"[{_IDEOGRAPHS}]|(?:(?![_{_IDEOGRAPHS}])\w|[\u0300-\u036f])+"
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+"
# Compiled at first use: compiling the pattern for every script takes longer than a query in ASCII.
_compiled = cache(re.compile)

Find = Callable[[bytes], int]
BUNDLED = Path(__file__).with_name("table.bin")
HEADER = struct.Struct("<8s8sIII")
MAGIC = b"ARCHTAB1"
# Limits of the caches of a long-lived process, and of the rows that are summed at once.
CACHED_WORDS = 100_000
CACHED_TEXTS = 256
BLOCK = 16_384
# The weight of a word without any piece, about that of the rarest.
_UNKNOWN_WORD = 1.6


@cache
def open_bundled() -> StaticEmbedder:
    """Return the bundled table, opened once."""
    return StaticEmbedder()


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


class StaticEmbedder:
    """The bundled embedder: no model, no download, a fast first vector."""

    def __init__(self, path: Path = BUNDLED) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            magic, digest, rows, dimensions, vocabulary = HEADER.unpack_from(self._map)
        except (OSError, ValueError, struct.error) as error:
            raise EmbedderError(f"the embedding table {str(path)!r} cannot be read: {error}") from error
        self._rows, self.dimensions = int(rows), int(dimensions)
        self._scales_at = HEADER.size + 4 * self._rows
        self._pieces_at = self._scales_at + 4 * self._rows
        self._table_at = self._pieces_at + vocabulary
        if magic != MAGIC or len(self._map) != self._table_at + self._rows * self.dimensions:
            raise EmbedderError(f"{str(path)!r} is no embedding table", hint="install the package again")
        # Another table gives other vectors.
        self.name = f"static-{digest.hex()[:8]}"
        # A new record is embedded for every query until its vector is in the bank.
        self._by_numpy = lru_cache(CACHED_TEXTS)(self._embed_with_numpy)
        self._pieces_of = lru_cache(CACHED_WORDS)(lambda word: pieces_of(word, self._find))

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of one text, without importing numpy; zeros when no word is known."""
        if "numpy" in sys.modules:
            return self._by_numpy(text)
        total = [0.0] * self.dimensions
        row_of = struct.Struct(f"{self.dimensions}b")
        for word in words_of(text):
            for row in pieces_of(word, self._find):
                (scale,) = struct.unpack_from("<f", self._map, self._scales_at + 4 * row)
                values = row_of.unpack_from(self._map, self._table_at + row * self.dimensions)
                total = [sum_ + scale * value for sum_, value in zip(total, values, strict=True)]
        length = sqrt(sum(value * value for value in total))
        return [value / length for value in total] if length else total

    def _embed_with_numpy(self, text: str) -> tuple[float, ...]:
        import numpy as np

        rows = [row for word in words_of(text) for row in pieces_of(word, self._find)]
        if not rows:
            return (0.0,) * self.dimensions
        table, scales = self._arrays
        total = scales[rows].astype(np.float64) @ table[rows].astype(np.float64)
        length = float(np.sqrt(total @ total))
        found: list[float] = (total / length if length else total).tolist()
        return tuple(found)

    def has_word(self, word: str) -> bool:
        """Say whether the vocabulary has a word as a whole: a common word with a vector of its own."""
        return len(pieces_of(word, self._find)) == 1

    def has_known_words(self, text: str) -> bool:
        """Say whether any part of a text's words is in the vocabulary: mere pieces are near to anything."""
        return any(self._find(fold(part)) >= 0 for word in words_of(text) for part in (word, *parts_of(word)))

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        import numpy as np

        table, scales = self._arrays
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for owner, text in enumerate(texts):
            rows = np.array([*chain.from_iterable(map(self._word_rows, words_of(text)))], np.intp)
            # Block by block, because the rows of one long text may not fit into memory.
            for first in range(0, len(rows), BLOCK):
                block = rows[first : first + BLOCK]
                vectors[owner] += scales.take(block) @ table.take(block, axis=0).astype("f4")
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.where(lengths > 0, lengths, 1)[:, None]
        return vectors

    def compare_words(self, asked: Sequence[str], said: Sequence[str]) -> list[tuple[float, float]]:
        """Return each asked word's weight in the table, and its cosine with the nearest said word.

        What is rare in all texts weighs more. A cosine is at least 0.
        """
        import numpy as np

        wanted, had = self._sum_pieces(asked), self._sum_pieces(said)
        weights, lengths = (np.sqrt(np.einsum("ij,ij->i", each, each)) for each in (wanted, had))
        near = (wanted @ had.T) / np.outer(np.where(weights, weights, 1), np.where(lengths, lengths, 1))
        nearest = np.max(near, axis=1, initial=0.0)
        return [*zip(np.where(weights, weights, _UNKNOWN_WORD).tolist(), nearest.tolist(), strict=True)]

    def _sum_pieces(self, words: Collection[str]) -> NDArray[np.float32]:
        """Return one row for each word, not at unit length; zeros for a word without any piece."""
        import numpy as np

        table, scales = self._arrays
        pieces = [self._pieces_of(word) for word in words]
        rows = np.array([*chain.from_iterable(pieces)], np.intp)
        vectors = np.zeros((len(pieces), self.dimensions), np.float32)
        known = [owner for owner, own in enumerate(pieces) if own]
        if known:
            starts = [0, *accumulate(len(own) for own in pieces if own)][:-1]
            vectors[known] = np.add.reduceat(scales[rows, None] * table[rows].astype("f4"), starts)
        return vectors

    def _find(self, piece: bytes) -> int:
        row = bisect_left(range(self._rows), piece, key=self._piece)
        return row if row < self._rows and self._piece(row) == piece else -1

    def _piece(self, row: int) -> bytes:
        if row:
            start, end = struct.unpack_from("<II", self._map, HEADER.size + 4 * row - 4)
        else:
            start, (end,) = 0, struct.unpack_from("<I", self._map, HEADER.size)
        return self._map[self._pieces_at + start : self._pieces_at + end]

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return the table and the scales of its rows."""
        import numpy as np

        table = np.frombuffer(self._map, np.int8, self._rows * self.dimensions, self._table_at)
        scales = np.frombuffer(self._map, "<f4", self._rows, self._scales_at)
        return table.reshape(self._rows, self.dimensions), scales

    @cached_property
    def _word_rows(self) -> Callable[[str], list[int]]:
        """Return the function that finds the rows of a word through a dict of all pieces, for many texts."""
        pieces = {self._piece(row): row for row in range(self._rows)}
        return lru_cache(CACHED_WORDS)(lambda word: pieces_of(word, lambda piece: pieces.get(piece, -1)))
