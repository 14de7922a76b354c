"""How texts become vectors: one protocol; a bundled table, a local encoder, an endpoint.

Every vector is of unit length, so that a dot product is the cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Something that turns texts into vectors of unit length."""

    @property
    def name(self) -> str:
        """Return what makes its vectors comparable: kind, model and version in one word."""
        ...

    @property
    def dimensions(self) -> int:
        """Return how long its vectors are."""
        ...

    def embed_query(self, text: str) -> Sequence[float]:
        """Return one text's vector; of a text without any known word, zeros."""
        ...

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, many at once."""
        ...
