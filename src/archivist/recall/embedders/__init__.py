"""How texts become vectors: one protocol; a bundled table, a local encoder, an endpoint.

Every vector has unit length, so that a dot product is the cosine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from archivist.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archivist.config import RecallRules


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def name(self) -> str:
        """Return kind, model and version in one word: vectors of one name can be compared."""

    @property
    def dimensions(self) -> int:
        """Return the length of its vectors."""

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of one text; zeros for a text without any known word."""

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""


def open_embedder(rules: RecallRules, bank_folder: Path) -> Embedder | None:
    """Return the configured embedder, or None for words alone; a relative folder lies beside the bank."""
    kind, _, where = rules.embedder.partition(":")
    match kind:
        case "none":
            return None
        case "static":
            from archivist.recall.embedders.static import StaticEmbedder

            return StaticEmbedder()
        case "onnx":
            from archivist.recall.embedders.onnx import OnnxEmbedder

            return OnnxEmbedder(bank_folder / Path(where).expanduser())
        case "endpoint":
            from archivist.recall.embedders.endpoint import EndpointEmbedder

            if not rules.endpoint_model:
                raise ConfigError(
                    "recall.endpoint_model is not set", hint="archivist config set recall.endpoint_model NAME"
                )
            key = os.environ.get(rules.endpoint_key_variable, "") if rules.endpoint_key_variable else ""
            return EndpointEmbedder(where, rules.endpoint_model, key)
    raise ConfigError(
        f"recall.embedder: {rules.embedder!r} is not an embedder",
        hint="write static, none, onnx:FOLDER or endpoint:URL",
    )


def changed_dimensions(embedder: Embedder, stored: int) -> EmbedderError:
    """Return the error that vectors of another length than the stored ones cannot be compared with them."""
    return EmbedderError(
        f"{embedder.name} gives vectors of {embedder.dimensions} dimensions, the bank has those of {stored}",
        hint="archivist doctor --reindex makes all of them again",
    )
