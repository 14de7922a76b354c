"""Write core memory as text, and fit it into a brief.

A session's start does this while an agent waits, so it works on plain fields: making the classes of blocks
took a cold process 20 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archivist.cold_start import lazy_pattern

# In display order; those that are guarded, and those that are the same for every role.
SECTIONS = ("playbook", "rules", "status", "threads", "role_state", "lessons")
GUARDED_SECTIONS = ("playbook", "rules")
SHARED_SECTIONS = ("status", "threads")
_FIELDS = {
    "status": ("sprint", "in_progress", "blockers", "recently_shipped"),
    "role_state": ("last_action", "next_action", "working_on"),
}
# Lines that Markdown reads as a heading or a horizontal rule.
_HEADING = lazy_pattern(r"(?m)^( {0,3})(#{1,6}(?=\s|$)|=+(?=\s*$)|-{2,}(?=\s*$))")
_TITLE = "# Core memory\n\n"
_REST = "\nCut to fit: core_memory_read, or `archivist core render`, has the rest.\n"


def render_section(section: str, role: str, content: Mapping[str, Any]) -> str:
    """Return a block as text for a prompt; an empty text for an empty block."""
    lines: list[str] = []
    if section in GUARDED_SECTIONS:
        lines = [str(content.get("text", ""))]
    elif section == "lessons":
        # Agents write lessons without approval, so a lesson must not be able to open another block.
        lines = [_HEADING.sub(r"\1\\\2", str(content.get("text", "")))]
    elif section == "threads":
        for thread in content.get("items") or ():
            roles, updated = ", ".join(thread.get("roles") or ()), str(thread.get("last_update") or "")[:10]
            marks = "; ".join(filter(None, (roles, updated)))
            said = f"- {thread.get('id', '')}: {thread.get('summary', '')}"
            lines.append(f"{said} ({marks})" if marks else said)
    else:
        for name in _FIELDS[section]:
            label, value = name.replace("_", " ").capitalize(), content.get(name)
            if isinstance(value, list | tuple) and value:
                lines += [f"{label}:", *(f"- {item}" for item in value)]
            elif value:
                lines.append(f"{label}: {value}")
    body = "\n".join(lines)
    if not body.strip():
        return ""
    title = section.replace("_", " ").capitalize()
    return f"## {title} ({role})\n{body}\n" if role else f"## {title}\n{body}\n"


def visible_blocks(role: str) -> list[str]:
    """Return the ids of the blocks that a role sees, in display order: the shared ones, and its own."""
    names = []
    for section in SECTIONS:
        names += [section] if section != "role_state" else []
        names += [f"{section}:{role}"] if role and section not in SHARED_SECTIONS else []
    return names


def fit_core(texts: Mapping[str, str], most: int) -> str:
    """Return the texts of blocks, by their ids in display order, in so many characters at most.

    Status, threads, state and lessons, which change, are kept before the long texts; what is cut says where
    the rest is.
    """
    whole = _TITLE + "\n".join(texts.values())
    if not texts or len(whole) <= most:
        return whole if texts else ""
    left = most - len(_TITLE) - len(_REST)
    kept: dict[str, str] = {}
    for name in sorted(texts, key=lambda name: (name.startswith(GUARDED_SECTIONS), len(texts[name]))):
        # A block is cut at the end of a line; its title alone says nothing.
        cut = texts[name] if len(texts[name]) < left else texts[name][: max(0, left)].rpartition("\n")[0]
        if "\n" in cut:
            kept[name] = cut if cut.endswith("\n") else f"{cut}\n"
            left -= len(kept[name]) + 1
    if not kept:
        return ""
    shown = "\n".join(kept[name] for name in texts if name in kept)
    return f"{_TITLE}{shown}{_REST}"
