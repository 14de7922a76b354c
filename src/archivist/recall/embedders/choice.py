"""Open the embedder that the configuration names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import ConfigError

if TYPE_CHECKING:
    from archivist.config import RecallRules
    from archivist.recall.embedders import Embedder

NONE = "none"


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
