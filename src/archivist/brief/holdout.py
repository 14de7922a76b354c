"""Withhold a share of the lessons by lot, so that what they do can be measured against runs without them."""

from __future__ import annotations


def is_withheld(run: str, lesson: str, share: float) -> bool:
    """Say whether a run is not told a lesson. The lot falls once for each pair, whoever asks and when."""
    if share <= 0 or not run:
        return False
    from archivist.cold_start import blake2b

    lot = blake2b(f"{run}\x00{lesson}".encode("utf-8", "replace"), digest_size=8, person=b"hold-out").digest()
    return int.from_bytes(lot) < share * 2**64
