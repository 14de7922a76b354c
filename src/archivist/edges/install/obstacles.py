"""Find what keeps hooks from running although every setting of ours is in its place."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from archivist.edges.install import jsonc
from archivist.errors import ArchivistError

_PATIENCE_S = 10
_SWITCH = "disableAllHooks"


def find_disabling_file(root: Path, home: Path | None) -> str:
    """Return the file by which Claude Code runs no hooks at all; an empty text when none says so."""
    for path in _claude_settings(root, home):
        said = _read_switch(path)
        if said is not None:
            return str(path) if said else ""
    return ""


def is_foreign_program(place: str) -> bool:
    """Say whether a command of our name is somebody else's: ours says its name and version."""
    try:
        ran = subprocess.run(  # noqa: S603 the command that the clients' settings name
            [place, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return not ran.stdout.startswith(b"archivist, version ")


def _claude_settings(root: Path, home: Path | None) -> Iterator[Path]:
    """Yield the files in the order in which the client believes them."""
    yield root / ".claude" / "settings.local.json"
    yield root / ".claude" / "settings.json"
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    if own or home is not None:
        folder = Path(own).expanduser() if own else Path(home or "") / ".claude"
        yield folder / "settings.json"


def _read_switch(path: Path) -> bool | None:
    """Return what a file says about all hooks; None when it says nothing that can be read."""
    try:
        said = jsonc.parse(path.read_text("utf-8-sig"), str(path)).to_plain()
    except (OSError, ValueError, ArchivistError):
        return None
    switch = said.get(_SWITCH) if isinstance(said, dict) else None
    return switch if isinstance(switch, bool) else None
