"""Where installing writes: files that are not committed, all clients at once, nothing that cannot work."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import PROGRAM, Command
from tests.e2e.client_homes import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a commit."""
    return make_repository(tmp_path / "app")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_committed_hooks_of_a_linked_worktree_say_where_codex_reads_them(
    archivist: Command, repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    archivist("init", cwd=repository)
    ran = archivist("install", "codex", cwd=tmp_path / "tree")
    assert ran.code == 0
    assert (tmp_path / "tree" / ".codex" / "hooks.json").is_file()
    assert f"it reads the hooks of {repository} alone" in ran.err
    assert "nothing is installed yet" in archivist("doctor", cwd=tmp_path / "tree").out
    assert "alone" not in archivist("install", "codex", cwd=repository).err


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "cursor", "vscode"])
def test_local_settings_are_not_seen_by_git_and_come_out_again(
    client: str, archivist: Command, repository: Path
) -> None:
    before = _files(repository)
    done = archivist("install", client, "--local", cwd=repository)
    assert (done.code, git(repository, "status", "--porcelain", "-uall")) == (0, "")
    assert "installed already" in archivist("install", client, "--local", cwd=repository).err
    assert "settings.json" not in done.out or client == "gemini"
    assert archivist("uninstall", client, "--local", cwd=repository).code == 0
    assert _files(repository) == before


def test_a_file_that_was_there_stays_visible_to_git(archivist: Command, repository: Path) -> None:
    (repository / ".mcp.json").write_text("{}\n")
    archivist("install", "claude-code", "--local", cwd=repository)
    assert git(repository, "status", "--porcelain") == "?? .mcp.json\n"


def test_hooks_in_a_file_that_git_sees_are_warned_of(archivist: Command, repository: Path) -> None:
    (repository / ".gemini").mkdir()
    (repository / ".gemini" / "settings.json").write_text("{}\n")
    line = f"gemini: {repository}/.gemini/settings.json was there, and git sees it with our hooks"
    assert line in archivist("install", "gemini", "--local", cwd=repository).err
    archivist("uninstall", "gemini", "--local", cwd=repository)
    (repository / ".gitignore").write_text(".gemini/\n")
    assert line not in archivist("install", "gemini", "--local", cwd=repository).err


def test_an_exclusion_goes_with_our_hooks_though_the_file_stays(archivist: Command, repository: Path) -> None:
    listed = (repository / ".git" / "info" / "exclude").read_bytes()
    archivist("install", "codex", "--local", cwd=repository)
    hooks = repository / ".codex" / "hooks.json"
    settings = json.loads(hooks.read_text())
    settings["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "notify-send done"}]})
    hooks.write_text(json.dumps(settings))
    archivist("uninstall", "codex", "--local", cwd=repository)
    assert "notify-send" in hooks.read_text()
    assert (repository / ".git" / "info" / "exclude").read_bytes() == listed


def test_where_nothing_is_installed_uninstalling_all_says_so(archivist: Command, repository: Path) -> None:
    done = archivist("uninstall", "all", cwd=repository)
    assert (done.code, done.err) == (0, f"no client is installed for {repository}\n")


def test_committed_settings_are_not_changed_locally(archivist: Command, repository: Path) -> None:
    (repository / ".gemini").mkdir()
    (repository / ".gemini" / "settings.json").write_text("{}\n")
    git(repository, "add", ".")
    refused = archivist("install", "gemini", "--local", cwd=repository)
    assert (refused.code, "is committed" in refused.err, "--user" in refused.err) == (4, True, True)


def test_another_worktree_keeps_its_local_settings_out_of_git(
    archivist: Command, repository: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    for folder in (repository, tree):
        archivist("install", "codex", "--local", cwd=folder)
    archivist("uninstall", "codex", "--local", cwd=repository)
    assert git(tree, "status", "--porcelain", "-uall") == ""
    archivist("uninstall", "codex", "--local", cwd=tree)
    assert b"archivist" not in (repository / ".git" / "info" / "exclude").read_bytes()


def test_all_means_the_clients_that_are_used_here(archivist: Command, repository: Path, home: Path) -> None:
    bare = "/usr/bin:/bin"
    none = archivist("install", "all", cwd=repository, PATH=bare)
    assert (none.code, "no client was found" in none.err) == (4, True)
    for folder in (".codex", ".gemini"):
        (home / folder).mkdir(parents=True)
    before = _files(repository)
    assert archivist("install", "all", "--local", cwd=repository, PATH=bare).code == 0
    assert (repository / ".codex" / "hooks.json").is_file()
    assert (repository / ".gemini" / "settings.json").is_file()
    assert not (repository / ".claude").exists()
    assert archivist("uninstall", "all", "--local", cwd=repository).code == 0
    assert _files(repository) == before


def test_without_the_sdk_no_server_is_installed(repository: Path, tmp_path: Path) -> None:
    """A process in which the SDK cannot be found, as after a plain `pip install`."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    for client in ("claude-code", "gemini"):
        done = subprocess.run(
            [PROGRAM, "install", client, "--local"],
            cwd=repository,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, b"pip install 'archivist-memory[mcp]'" in done.stderr) == (0, True)
    assert not (repository / ".mcp.json").exists()
    assert "mcpServers" not in json.loads((repository / ".gemini" / "settings.json").read_text())


@pytest.mark.parametrize("event", ["SessionStart", "Stop", "Notification"])
def test_a_bare_program_that_is_fed_an_event_answers_it(event: str, project: Path) -> None:
    """Some versions of Claude Code do not know a hook's list of arguments, and call the program alone."""
    given = json.dumps({"hook_event_name": event, "session_id": "s", "cwd": str(project)}).encode()
    done = subprocess.run([PROGRAM], input=given, cwd=project, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_hooks_with_a_list_of_arguments_are_brought_up_to_date(archivist: Command, repository: Path) -> None:
    handler = {"type": "command", "command": "archivist", "args": ["hook", "claude-code", "stop"]}
    settings = repository / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}}))
    archivist("install", "claude-code", cwd=repository)
    (group,) = json.loads(settings.read_text())["hooks"]["Stop"]
    assert group["hooks"][0]["command"] == "archivist hook claude-code stop"
