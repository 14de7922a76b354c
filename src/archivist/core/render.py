"""Write core memory as text, and fit it into a brief.

A session's start does this while an agent waits, so it works on plain fields: making the classes of blocks
took a cold process 20 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archivist.brief.render import NOTICE
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
# Where the content of a block keeps which of its lines an agent wrote, each with the agent's name.
SAID_BY = "said_by"
_TITLE = "# Core memory\n\n"
_REST = "\nCut to fit: core_memory_read, or `archivist core render`, has the rest.\n"


def render_section(section: str, role: str, content: Mapping[str, Any], actor: str = "") -> str:
    """Return a block as text for a prompt, the lines of agents marked; an empty text for an empty block.

    `actor` is who wrote it last: it counts where a block does not say who wrote its lines.
    """
    names = read_speakers(section, content, actor)
    lines = [
        line if said not in names else f"{line} ({names[said]})" for said, line in _lines(section, content)
    ]
    if not any(map(str.strip, lines)):
        return ""
    title = section.replace("_", " ").capitalize() + (f" ({role})" if role else "")
    return "\n".join((f"## {title}", *lines, ""))


def read_speakers(section: str, content: Mapping[str, Any], actor: str) -> dict[str, str]:
    """Return the lines of a block that agents wrote, each with the agent's name."""
    if section in GUARDED_SECTIONS:
        return {}
    if (said := content.get(SAID_BY)) is not None:
        return {str(line): str(name) for line, name in said}
    # Blocks of older versions say only who wrote last.
    kind, _, rest = actor.partition(":")
    agent = f"agent {rest.partition(':')[0]}".rstrip() if kind == "agent" else ""
    return dict.fromkeys(spoken_lines(section, content), agent) if agent else {}


def spoken_lines(section: str, content: Mapping[str, Any]) -> list[str]:
    """Return the lines of a block that somebody wrote, without dates, roles and the names of its fields."""
    return [said for said, _ in _lines(section, content) if said.strip()]


def _lines(section: str, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a block: what was written, and the whole line as it is shown."""
    lines: list[tuple[str, str]] = []
    if section in GUARDED_SECTIONS:
        return [(line, line) for line in str(content.get("text", "")).split("\n")]
    if section == "lessons":
        # Agents write lessons without approval, so a lesson must not be able to open another block.
        # Each line that may be shown as one gets its mark: U+2028 and its like end lines too.
        text = "\n".join(str(content.get("text", "")).splitlines())
        return [(line, line) for line in _HEADING.sub(r"\1\\\2", text).split("\n")]
    if section == "threads":
        for thread in content.get("items") or ():
            roles, updated = ", ".join(thread.get("roles") or ()), str(thread.get("last_update") or "")[:10]
            marks = "; ".join(filter(None, (roles, updated)))
            said = f"- {thread.get('id', '')}: {thread.get('summary', '')}"
            lines.append((said, f"{said} ({marks})" if marks else said))
        return lines
    for name in _FIELDS[section]:
        label, value = name.replace("_", " ").capitalize(), content.get(name)
        if isinstance(value, list | tuple) and value:
            lines += [("", f"{label}:"), *((f"- {item}", f"- {item}") for item in value)]
        elif value:
            lines.append((f"{label}: {value}", f"{label}: {value}"))
    return lines


def visible_blocks(role: str) -> list[str]:
    """Return the ids of the blocks that a role sees, in display order: the shared ones, and its own."""
    names = []
    for section in SECTIONS:
        names += [section] if section != "role_state" else []
        names += [f"{section}:{role}"] if role and section not in SHARED_SECTIONS else []
    return names


def fit_core(texts: Mapping[str, str], most: int) -> str:
    """Return the texts of blocks, by their ids in display order, in so many characters at most.

    Playbook and rules are the user's. The others hold what agents write: they stand below the notice. They
    change, so they are kept before the long texts; what is cut says where the rest is.
    """
    whole = _join_blocks(texts)
    if not texts or len(whole) <= most:
        return whole if texts else ""
    left = most - len(_TITLE) - len(NOTICE) - 2 - len(_REST)
    kept: dict[str, str] = {}
    for name in sorted(texts, key=lambda name: (name.startswith(GUARDED_SECTIONS), len(texts[name]))):
        # A block is cut at the end of a line; its title alone says nothing.
        cut = texts[name] if len(texts[name]) < left else texts[name][: max(0, left)].rpartition("\n")[0]
        if "\n" not in cut:
            break
        kept[name] = cut if cut.endswith("\n") else f"{cut}\n"
        left -= len(kept[name]) + 1
    if not kept:
        return ""
    return _join_blocks({name: kept[name] for name in texts if name in kept}) + _REST


def _join_blocks(texts: Mapping[str, str]) -> str:
    own = [text for name, text in texts.items() if name.startswith(GUARDED_SECTIONS)]
    others = [text for name, text in texts.items() if not name.startswith(GUARDED_SECTIONS)]
    return _TITLE + "\n".join((*own, *([f"{NOTICE}\n", *others] if others else ())))
