"""The plugin folder: Claude Code's form and the portable one, made from the same hooks, server and texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from archivist import __version__
from archivist.edges.install import changes as changing
from archivist.edges.install.changes import InstallChange
from archivist.edges.install.clients import client_hooks, server_entry
from archivist.edges.install.entries import PROGRAM
from archivist.errors import InputError
from archivist.files.parse import parse_json

_DESCRIPTION = "A memory that lets coding agents learn from their own runs."
_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
_SKILL = "archivist-memory"
# The digests of the files that we wrote: a name alone does not say whether the user has changed a file.
_RECORD = ".archivist-plugin.json"
# The entry of the record that says that the folder was not there before.
_MADE = "."


def plugin_files() -> dict[str, str]:
    """Return the plugin's files by their paths in its folder."""
    here = Path(__file__).parent
    about = {
        "name": PROGRAM,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": {"name": "The Archivist authors"},
        "license": "Apache-2.0",
        "keywords": ["memory", "lessons", "hooks", "mcp"],
    }
    servers = {"mcpServers": {PROGRAM: server_entry()}}
    agent = (here / "agent.md").read_text("utf-8")
    # Codex wants the fields of the front matter, and the text as instructions.
    _, head, text = agent.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    # A JSON string is a basic string of TOML; the text has no "'''" and stays legible as a literal one.
    named = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())
    return {
        ".claude-plugin/plugin.json": _to_json({**about, "displayName": "Archivist"}),
        ".mcp.json": _to_json(servers),
        "hooks/hooks.json": _to_json({"description": _DESCRIPTION, "hooks": _hooks_of("claude-code")}),
        f"skills/{_SKILL}/SKILL.md": (here / "skill.md").read_text("utf-8"),
        f"agents/{PROGRAM}.md": agent,
        f".codex/agents/{PROGRAM}.toml": f"{named}developer_instructions = '''\n{text.lstrip()}'''\n",
        "plugin.json": _to_json({"$schema": f"{_SCHEMAS}/plugin.schema.json", **about}),
        "mcp.json": _to_json({"$schema": f"{_SCHEMAS}/mcp.schema.json", **servers}),
        "com.github.copilot/hooks/hooks.json": _to_json({"hooks": _hooks_of("vscode")}),
    }


def plan_install(folder: Path) -> list[InstallChange]:
    """Return what would be written into a folder; refuse one that has other contents.

    A file that the user has changed, or created where ours would be, stays.
    """
    digests = _read_record(folder)
    if not digests and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} has other contents", hint="name a folder that is new or empty")
    wanted = {name: text.encode("utf-8") for name, text in plugin_files().items()}
    changes = [_plan_change(folder / name, digests.get(name), data) for name, data in wanted.items()]
    hashes = {name: sha256(data).hexdigest() for name, data in wanted.items()}
    made = {_MADE: "by install"} if _MADE in digests or not folder.exists() else {}
    record = _to_json(hashes | made).encode("utf-8")
    return [*changes, InstallChange(folder / _RECORD, _read(folder / _RECORD), record)]


def plan_uninstall(folder: Path) -> list[InstallChange]:
    """Return what would be removed: the files that we wrote and nobody has changed."""
    digests = _read_record(folder)
    if not digests:
        return []
    changes = [_plan_change(folder / name, digests[name], None) for name in plugin_files() if name in digests]
    return [*changes, InstallChange(folder / _RECORD, _read(folder / _RECORD), None)]


def user_modified_files(changes: Sequence[InstallChange], folder: Path) -> list[Path]:
    """Return the files among the changes that stay as the user has made them."""
    ours = {folder / name: (None, text.encode("utf-8")) for name, text in plugin_files().items()}
    return [each.path for each in changes if each.path in ours and each.after not in ours[each.path]]


def write_plugin(changes: Sequence[InstallChange], folder: Path) -> None:
    """Make all the changes or none, and remove folders that are empty then."""
    is_made = _MADE in _read_record(folder)
    changing.apply_changes(changes)
    for change in changes:
        if change.after is None:
            parents = change.path.relative_to(folder).parents
            changing.remove_empty(folder / parent for parent in parents if parent.name or is_made)


def _plan_change(path: Path, digest: str | None, after: bytes | None) -> InstallChange:
    before = _read(path)
    is_ours = before is None or sha256(before).hexdigest() == digest
    return InstallChange(path, before, after if is_ours else before)


def _read_record(folder: Path) -> dict[str, str]:
    """Return the digests of the files that we wrote into a folder; none for a folder that is not ours."""
    try:
        record = parse_json(_read(folder / _RECORD) or b"", _RECORD)
    except InputError:
        return {}
    return {name: str(digest) for name, digest in record.items()} if isinstance(record, dict) else {}


def _read(path: Path) -> bytes | None:
    return changing.read_file(path) if path.is_file() else None


def _hooks_of(client: str) -> dict[str, list[object]]:
    return {hook.event: [hook.entry] for hook in client_hooks(client)}


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
