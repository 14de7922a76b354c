"""Work on the marks around what is told. Apart from briefs, whose choosing a cold process need not load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.brief.select import Told


def fenced(told: Told) -> Told:
    """Put a brief between marks that name it, so that a transcript which holds it is never learnt from."""
    if not told.text:
        return told
    from archivist.capture.fence import fence

    names = [each.name for each in told.chosen]
    return told._replace(text=fence(told.text, told.brief_id or "unrecorded", names))
