"""What differs on macOS and Windows, as far as it can be tried without them: paths, quoting, locks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import clients, entries
from archivist.edges.install.clients import InstallLocation
from archivist.files import write


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        ("darwin", "Library/Application Support/Code/User"),
        ("win32", "AppData/Roaming/Code/User"),
        ("linux", ".config/Code/User"),
    ],
)
def test_vscode_is_found_in_the_home_of_each_system(
    system: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    for name in ("APPDATA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    written = [each.path for each in clients.targets("vscode", InstallLocation(tmp_path, is_user=True))]
    assert tmp_path / folder / "mcp.json" in written


@pytest.mark.parametrize(
    "command",
    [
        "archivist hook codex stop",
        "archivist.exe hook codex stop",
        r"C:\Tools\archivist.exe hook codex stop",
        r'"C:\Program Files\Archivist\archivist.exe" hook codex stop',
        '"/Users/ada/Library/Application Support/bin/archivist" hook codex stop',
    ],
)
def test_our_hook_is_known_by_the_paths_of_each_system(command: str) -> None:
    (call,) = entries.calls_in({"type": "command", "command": command})
    assert (call.words, call.is_alone) == (("hook", "codex", "stop"), True)


def test_hooks_need_no_quoting_in_any_shell(tmp_path: Path) -> None:
    """The command lines have letters, digits, dashes and single blanks only: sh, cmd and PowerShell agree."""
    for client in CLIENTS:
        for target in clients.targets(client, InstallLocation(tmp_path)):
            for hook in target.hooks:
                assert all(word.replace("-", "").isalnum() for word in hook.words)


def test_files_are_written_where_there_are_no_advisory_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    with write.lock_folder(tmp_path), write.queue_at_folder(tmp_path, 1):
        write.replace_file(tmp_path / "notes.md", b"one\n")
        write.replace_file(tmp_path / "notes.md", b"two\n")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir() if path.is_file()] == [
        ("notes.md", b"two\n")
    ]
