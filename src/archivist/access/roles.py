"""Decide which role a session has; the one place that does.

Whoever starts the session says it: `ARCHIVIST_ROLE`, the role in `ARCHIVIST_ACTOR`, or the agent that the
client was told to be. Else the user's setting `core.roles` says it by folder or by client. No file of a
repository decides it.
"""

import os
from pathlib import Path

from archivist.records.words import ActorKind

# In these names only people and the archivist speak.
_RESERVED = (ActorKind.HUMAN.value, ActorKind.ARCHIVIST.value, "user")
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u03b1\u03bf\u03c5\u0131", "aeopcyxisaoui"
)
_LONGEST = 100


def session_role(rules: str, *, client: str = "", agent: str = "", folder: str = "") -> str:
    """Return the role of a session in a folder; empty for none.

    `rules` are the value of `core.roles`, and `agent` is what the client says that it was started as. Of
    the folders that hold the session's the innermost counts, and any of them before the client.
    """
    actor = f"{os.environ.get('ARCHIVIST_ACTOR', '')}::".split(":")
    named = os.environ.get("ARCHIVIST_ROLE", "").strip() or actor[2].strip() or agent.strip()
    if named:
        return named if is_role(named) else ""
    found: list[tuple[int, str]] = []
    for rule in rules.split(","):
        key, _, role = (part.strip() for part in rule.rpartition("="))
        if "/" in key or key.startswith("~"):
            place = os.path.realpath(Path(key).expanduser())
            if folder and Path(os.path.realpath(folder)).is_relative_to(place):
                found.append((len(place), role))
        elif key and (client == key or client.startswith(f"{key}-")):
            # Over MCP clients add to their names: `codex-mcp-client`.
            found.append((0, role))
    return max(found, default=(0, ""))[1]


def is_role(name: str) -> bool:
    """Say whether a session may have a role of this name: a short one that is no person's."""
    return len(name) <= _LONGEST and ":" not in name and not is_reserved_role(name)


def is_reserved_role(role: str) -> bool:
    """Say whether only people and the archivist speak in a name, or in one that looks the same."""
    import unicodedata

    # Other letters that look alike, and marks that nobody sees, make no other name.
    plain = unicodedata.normalize("NFKC", role).casefold().partition(":")[0].strip()
    return not role.isprintable() or plain.translate(_LOOKALIKES) in _RESERVED
