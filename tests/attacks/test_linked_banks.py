"""A clone holds a link in the place of its bank: no command and no hook acts on what the link leads to."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from archivist.edges.cli.group import cli
from archivist.edges.hook_events import CLIENTS
from archivist.paths import real_place, state_folder
from tests.commands import Command
from tests.samples import MISSING_MODULE, agent_log

PLAN_OF_API = "The secret plan of api"
EVENTS = ("session-start", "prompt", "tool-failure", "subagent-start", "stop", "session-end")
# Hooks are called below, with events; what models may be asked holds for all projects of the user.
ELSEWHERE = ("hook", "model forbid")
OPTIONS = (
    "setup --undo --yes", "setup --undo --yes --json", "setup --undo --dry-run", "setup --yes --user",
    "uninstall all --user", "uninstall all --local", "install claude-code --user",
    "config set brief.holdout 0.9", "config set reflect.enabled false", "config unset brief.holdout",
    "trust --remove", "trust --yes", "trust --show", "salvage --replace", "doctor --reindex",
    "erase --matching plan --yes", "prune --yes --days 1", "restore LOG --accept", "share . --trust x",
    "capture LOG", "run finish LOG", "lessons claim api", "workspace save api Text --create",
)  # fmt: skip


def folder_link(clone: Path, api: Path, _home: Path) -> None:
    (clone / ".archivist").symlink_to(os.path.relpath(api / ".archivist", clone))


def file_link(clone: Path, api: Path, _home: Path) -> None:
    (clone / ".archivist").mkdir()
    (clone / ".archivist" / "memory.db").symlink_to(api / ".archivist" / "memory.db")


def home_link(clone: Path, _api: Path, home: Path) -> None:
    (clone / ".archivist").symlink_to(home / ".archivist")


def broken_link(clone: Path, api: Path, _home: Path) -> None:
    (clone / ".archivist").symlink_to(api.with_name("gone") / ".archivist")


LINKS = (folder_link, file_link, home_link, broken_link)


@pytest.fixture
def api(tmp_path: Path, home: Path, archivist: Command) -> Path:
    """Return a project whose bank and client settings setup made, on a machine with a global bank."""
    for name in (".claude", ".codex", ".gemini"):
        (home / name).mkdir(parents=True)
    folder = tmp_path / "api"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    assert archivist("init", "--global", cwd=folder).code == 0
    assert archivist("lessons", "add", "A global plan", "--global", cwd=folder).code == 0
    assert archivist("setup", "--yes", cwd=folder).code == 0
    assert archivist("lessons", "add", PLAN_OF_API, cwd=folder).code == 0
    assert archivist("config", "set", "brief.holdout", "0.2", cwd=folder).code == 0
    return folder


def _snapshot(*folders: Path) -> dict[str, bytes]:
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    # Reading the global bank makes SQLite's shared memory, which holds nothing.
    kept = (path for path in files if not path.name.endswith(("-shm", "-wal")))
    return {str(path): path.read_bytes() for path in kept}


def _leaf_commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaf_commands(command, (*words, name))
        else:
            given = [_sample(each) for each in command.params if each.required]
            is_asked = any("--yes" in each.opts for each in command.params)
            yield (*words, name, *(word for sample in given for word in sample), *(["--yes"] * is_asked))


def _sample(parameter: click.Parameter) -> list[str]:
    kind = parameter.type
    if isinstance(kind, click.Choice):
        value = str(next(iter(kind.choices)))
    elif isinstance(kind, click.types.IntParamType):
        value = "1"
    else:
        value = "LOG" if isinstance(kind, click.Path) else "m-001"
    many = max(1, parameter.nargs)
    is_option = isinstance(parameter, click.Option)
    return [*([parameter.opts[0]] if is_option else []), *([value] * many)]


def _events(clone: Path, log: Path) -> dict[str, object]:
    return {
        "cwd": str(clone), "session_id": "n-1", "conversation_id": "n-1", "prompt": "the plan of api",
        "workspace_roots": [str(clone)], "tool_name": "Bash", "error": "Exit code 1\nplan failed",
        "tool_input": {"command": "plan"}, "transcript_path": str(log), "source": "startup",
    }  # fmt: skip


@pytest.mark.req("N7")
@pytest.mark.parametrize("link", LINKS)
def test_no_command_acts_through_a_link_that_a_clone_holds(
    link: Callable[[Path, Path, Path], None],
    api: Path,
    home: Path,
    tmp_path: Path,
    archivist: Command,
    archivist_process: Command,
) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    link(clone, api, home)
    log = tmp_path / "log.jsonl"
    agent_log(log, MISSING_MODULE)
    before = _snapshot(api, home)
    listed = [*(" ".join(words) for words in _leaf_commands(cli)), *OPTIONS]
    for line in listed:
        if line in ELSEWHERE:
            continue
        run = archivist_process if line == "mcp" else archivist
        ran = run(*(str(log) if word == "LOG" else word for word in line.split()), cwd=clone)
        changed = {path for path, held in _snapshot(api, home).items() if before.get(path) != held}
        assert (changed, before.keys() - _snapshot(api, home).keys()) == (set(), set()), (line, ran)
        assert PLAN_OF_API not in ran.out + ran.err, line
        if line in OPTIONS:
            assert (ran.code, "is a link" in ran.err, ran.out) == (5, True, ""), (line, ran)
    for client in CLIENTS:
        for event in EVENTS:
            run = archivist_process if event in ("stop", "session-end") and client == "codex" else archivist
            ran = run("hook", client, event, cwd=clone, stdin=json.dumps(_events(clone, log)).encode())
            assert PLAN_OF_API not in ran.out
    assert _snapshot(api, home) == before
    assert PLAN_OF_API in archivist("brief", cwd=api).out


@pytest.mark.req("N7")
@pytest.mark.parametrize("link", LINKS)
def test_the_state_of_a_linked_bank_is_nobody_elses(
    link: Callable[[Path, Path, Path], None], tmp_path: Path, home: Path
) -> None:
    api, clone = tmp_path / "api", tmp_path / "clone"
    (api / ".archivist").mkdir(parents=True)
    clone.mkdir()
    link(clone, api, home)
    file = clone / ".archivist" / "memory.db"
    assert real_place(file) == file
    assert state_folder(file).name.startswith("clone-")


@pytest.mark.req("N7")
def test_in_a_folder_that_the_shell_resolved_it_says_which_project_is_undone(
    api: Path, tmp_path: Path, archivist: Command
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "pkg").symlink_to(api)
    ran = archivist("uninstall", "all", "--dry-run", cwd=clone / "pkg")
    assert f"about {api}" in ran.err, ran
    ran = archivist("setup", "--undo", "--dry-run", cwd=clone / "pkg")
    assert f"Delete    {api / '.archivist' / 'memory.db'}" in ran.out, ran


@pytest.mark.req("N7")
def test_a_bank_that_a_pull_replaced_by_a_link_is_not_deleted_with_another(
    api: Path, tmp_path: Path, home: Path, archivist: Command
) -> None:
    own = tmp_path / "own"
    subprocess.run(["git", "init", "-q", str(own)], check=True)
    assert archivist("setup", "--yes", cwd=own).code == 0
    (own / ".archivist").rename(tmp_path / "moved")
    folder_link(own, api, home)
    before = _snapshot(api, home)
    ran = archivist("setup", "--undo", "--yes", cwd=own)
    assert (ran.code, "is a link" in ran.err) == (5, True)
    assert _snapshot(api, home) == before
