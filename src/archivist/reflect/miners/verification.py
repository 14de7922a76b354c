"""To be filled."""

from __future__ import annotations

from archivist.reflect.candidates import Candidate
from archivist.reflect.miners.material import Material


def mine_verification(material: Material) -> list[Candidate]:
    """Return nothing yet."""
    return []
