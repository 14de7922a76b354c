"""Work on the marks around what is told. Apart from briefs, whose choosing a cold process need not load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.brief.select import RenderedBrief


def fence_brief(brief: RenderedBrief) -> RenderedBrief:
    """Put a brief between marks that name it, so that a transcript which holds it is never learnt from."""
    if not brief.text:
        return brief
    from archivist.capture.fence import fence

    names = [each.name for each in brief.chosen]
    return brief._replace(text=fence(brief.text, brief.brief_id or "unrecorded", names))
