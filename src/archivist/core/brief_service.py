"""Core memory for a brief: read and fitted without the classes of blocks, since a session waits for it."""

from __future__ import annotations

import json

from archivist.access.rights import Layer, reads
from archivist.core.render import fit_core, render_section, visible_blocks
from archivist.service import BankService
from archivist.store.filters import one_of
from archivist.text import CHARACTERS_PER_TOKEN


class CoreBriefs(BankService):
    """What briefs and sessions begin with."""

    @reads(Layer.CORE)
    def brief_text(self, role: str = "", *, most: int | None = None) -> str:
        """Return core memory within `brief.core_tokens`, or in fewer characters; nothing without any."""
        limit = self._bank.config.brief.core_tokens * CHARACTERS_PER_TOKEN
        names = visible_blocks(role.strip() or self._bank.actor.role)
        with self._bank.reading() as reader:
            fields = ("id", "section", "role", "content", "actor")
            rows = {row[0]: row[1:] for row in reader.select_fields("block", fields, one_of("id", names))}
        found = {name: rows[name] for name in names if name in rows}
        texts = {
            name: text
            for name, (section, role, content, actor) in found.items()
            if (text := render_section(section, role, json.loads(content), actor))
        }
        return fit_core(texts, limit if most is None else min(limit, most))
