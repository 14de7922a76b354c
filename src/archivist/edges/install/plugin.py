"""The plugin folder: Claude Code's form and the portable one, made from the same hooks, server and texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from archivist import __version__
from archivist.edges.install.changes import Change
from archivist.edges.install.clients import claude_hooks, server, vscode_hooks
from archivist.edges.install.entries import PROGRAM, Hook
from archivist.errors import InputError

_DESCRIPTION = "A memory that lets coding agents learn from their own runs."
_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
_SKILL = "archivist-memory"


def files() -> dict[str, str]:
    """Return the plugin's files by their paths in its folder."""
    here = Path(__file__).parent
    about = {
        "name": PROGRAM,
        "version": __version__,
        "description": _DESCRIPTION,
        "license": "Apache-2.0",
        "keywords": ["memory", "lessons", "hooks", "mcp"],
    }
    servers = {"mcpServers": {PROGRAM: server()}}
    return {
        ".claude-plugin/plugin.json": _json({**about, "displayName": "Archivist"}),
        ".mcp.json": _json(servers),
        "hooks/hooks.json": _json({"description": _DESCRIPTION, "hooks": _by_event(claude_hooks())}),
        f"skills/{_SKILL}/SKILL.md": (here / "skill.md").read_text("utf-8"),
        f"agents/{PROGRAM}.md": (here / "agent.md").read_text("utf-8"),
        "plugin.json": _json({"$schema": f"{_SCHEMAS}/plugin.schema.json", **about}),
        "mcp.json": _json({"$schema": f"{_SCHEMAS}/mcp.schema.json", **servers}),
        "com.github.copilot/hooks/hooks.json": _json({"hooks": _by_event(vscode_hooks())}),
    }


def to_install(folder: Path) -> list[Change]:
    """Return what would be written into a folder; one that holds something else is refused."""
    found = []
    for name, text in files().items():
        path = folder / name
        before = path.read_bytes() if path.is_file() else None
        found.append(Change(path, before, text.encode("utf-8")))
    is_ours = any(change.before is not None for change in found)
    if folder.exists() and not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} holds something else", hint="name a folder that is new or empty")
    return found


def to_uninstall(folder: Path) -> list[Change]:
    """Return what would be removed: our files, as far as nobody has changed them."""
    found = []
    for name, text in files().items():
        path = folder / name
        before = path.read_bytes() if path.is_file() else None
        found.append(Change(path, before, None if before == text.encode("utf-8") else before))
    return found


def write(changes: Sequence[Change], folder: Path) -> None:
    """Make the changes, and leave no empty folder behind."""
    for change in changes:
        if change.action == "unchanged":
            continue
        try:
            if change.after is None:
                change.path.unlink()
                continue
            change.path.parent.mkdir(parents=True, exist_ok=True)
            change.path.write_bytes(change.after)
        except OSError as error:
            raise InputError(
                f"{str(change.path)!r} cannot be written: {error.strerror}", hint="name another folder"
            ) from None
    if folder.is_dir():
        inner = [each for each in folder.rglob("*") if each.is_dir()]
        for each in sorted(inner, key=lambda path: len(path.parts), reverse=True):
            if not any(each.iterdir()):
                each.rmdir()


def _by_event(hooks: Sequence[Hook]) -> dict[str, list[object]]:
    return {hook.event: [hook.entry] for hook in hooks}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
