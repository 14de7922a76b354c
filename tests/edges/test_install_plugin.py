"""The plugin folder, and the doctor who looks at the whole chain from a client to the bank."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Ran

from archivist import Bank, Episode, __version__
from archivist.edges.cli.banks import doctor
from archivist.edges.cli.install import install, uninstall
from archivist.edges.cli.session import Session
from archivist.edges.install import plugin
from archivist.errors import InputError
from archivist.paths import home_folder
from archivist.tools.functions import select_tools
from tests.banks import lay_bank
from tests.conftest import TickingClock

PORTABLE = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
MANIFEST = {
    "$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords",
    "extensions",
}  # fmt: skip


def _run(command: Any, *words: str) -> Ran:
    return CliRunner().invoke(command, list(words), obj=Session("", ""), standalone_mode=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the plugin in it."""
    made = tmp_path / "archivist-plugin"
    assert _run(install, "plugin", str(made)).exit_code == 0
    return made


def test_a_plugin_folder_serves_claude_code_and_the_portable_format(folder: Path) -> None:
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        ".archivist-plugin.json",
        ".claude-plugin/plugin.json",
        ".codex/agents/archivist.toml",
        ".mcp.json",
        "agents/archivist.md",
        "com.github.copilot/hooks/hooks.json",
        "hooks/hooks.json",
        "mcp.json",
        "plugin.json",
        "skills/archivist-memory/SKILL.md",
    ]
    claude, portable = (
        json.loads((folder / name).read_text()) for name in (".claude-plugin/plugin.json", "plugin.json")
    )
    assert (
        (claude["name"], claude["version"])
        == ("archivist", __version__)
        == (portable["name"], portable["version"])
    )
    assert portable["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert set(portable) <= MANIFEST
    hooks = json.loads((folder / "hooks/hooks.json").read_text())
    assert list(hooks) == ["description", "hooks"]
    assert hooks["hooks"]["SessionEnd"][0]["hooks"][0]["command"] == "archivist hook claude-code session-end"
    servers = [json.loads((folder / name).read_text())["mcpServers"] for name in (".mcp.json", "mcp.json")]
    assert (
        servers[0] == servers[1] == {"archivist": {"type": "stdio", "command": "archivist", "args": ["mcp"]}}
    )


def _front_matter(path: Path) -> dict[str, str]:
    head = path.read_text().split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())


@pytest.mark.req("A19")
def test_the_archivists_prompt_and_skill_name_tools_that_exist(folder: Path) -> None:
    skill, agent = folder / "skills/archivist-memory/SKILL.md", folder / "agents/archivist.md"
    assert _front_matter(skill)["name"] == skill.parent.name
    assert set(_front_matter(skill)) <= PORTABLE
    assert set(_front_matter(agent)) == {"name", "description"}
    assert len(_front_matter(skill)["description"]) < 1_024
    # The plugin's server offers the default set: nobody is told to call what is not there.
    known = {tool.name for tool in select_tools("default")}
    for path in (skill, agent):
        named = set(re.findall(r"`([a-z]+_[a-z_]+|brief|recall)`", path.read_text()))
        assert named - known == set()
        assert "lesson_add" in named
    said = agent.read_text()
    for word in ("at most five", "IF … THEN …", "`evidence`", "`importance`", "not written a second time"):
        assert word in said.replace("\n   ", " ")


@pytest.mark.req("A19")
def test_codex_has_the_same_subagent_in_its_own_form(folder: Path) -> None:
    theirs = tomllib.loads((folder / ".codex/agents/archivist.toml").read_text())
    ours = folder / "agents/archivist.md"
    assert set(theirs) == {"name", "description", "developer_instructions"}
    assert {name: theirs[name] for name in ("name", "description")} == _front_matter(ours)
    assert ours.read_text().endswith(theirs["developer_instructions"])


def test_the_same_again_changes_nothing_and_what_was_changed_is_left(folder: Path) -> None:
    again = _run(install, "plugin", str(folder))
    assert again.stdout == ""
    mine = folder / "agents" / "archivist.md"
    mine.write_text("my own words\n")
    assert _run(uninstall, "plugin", str(folder)).exit_code == 0
    assert [path for path in folder.rglob("*") if path.is_file()] == [mine]


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("mine", "file"):
        ran = _run(install, "plugin", str(tmp_path / name))
        assert isinstance(ran.exception, InputError)
        assert "has other contents" in ran.exception.message
    dry = _run(install, "plugin", str(tmp_path / "new"), "--dry-run")
    assert (dry.exit_code, (tmp_path / "new").exists()) == (0, False)
    assert dry.stdout.count("--- /dev/null") == len({*plugin.plugin_files(), ".archivist-plugin.json"})


@pytest.mark.parametrize("was_there", [True, False])
def test_uninstalling_a_plugin_removes_the_folder_that_installing_made(
    tmp_path: Path, was_there: bool
) -> None:
    folder = tmp_path / "new"
    if was_there:
        folder.mkdir()
    for _ in range(2):
        assert _run(install, "plugin", str(folder)).exit_code == 0
    assert _run(uninstall, "plugin", str(folder)).exit_code == 0
    assert folder.exists() is was_there
    assert tmp_path.exists()


# The doctor


@pytest.fixture
def clinic(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a project with a bank."""
    lay_bank(project)
    monkeypatch.chdir(project)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return project


def _checks(*words: str) -> dict[str, tuple[bool, str]]:
    ran = _run(doctor, "--json", *words)
    return {each["name"]: (each["ok"], each["text"]) for each in json.loads(ran.stdout)["checks"]}


@pytest.mark.usefixtures("clinic")
def test_without_a_client_the_chain_is_well_and_says_how_to_begin() -> None:
    found = _checks()
    assert all(is_well for is_well, _ in found.values())
    assert found["clients"][1] == "nothing is installed yet: archivist setup connects the clients"
    assert found["capture"][1] == "no run was captured yet"
    assert found["writing"] == (True, "the bank can be written")


@pytest.mark.usefixtures("clinic")
def test_a_command_that_is_not_on_the_path_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _run(install, "claude-code")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = _checks()
    assert found["clients"] == (True, "claude-code (project)")
    assert (found["command"][0], "is not on PATH" in found["command"][1]) == (False, True)


def test_settings_that_lack_a_part_or_are_broken_are_named(clinic: Path) -> None:
    _run(install, "claude-code")
    (clinic / ".mcp.json").unlink()
    assert _checks()["clients"] == (
        False,
        "claude-code is installed only in part: archivist install claude-code --project",
    )
    (clinic / ".claude/settings.json").write_text("{")
    assert (_checks()["clients"][0], "unexpected end" in _checks()["clients"][1]) == (False, True)


def test_a_hook_that_fails_is_told(clinic: Path) -> None:
    _run(install, "codex")
    assert re.fullmatch(r"answers in \d+ ms: nothing, see the line brief", _checks()["firing"][1])
    # A project's refused settings are passed over; the user's own must be right.
    (clinic / ".archivist" / "config.toml").write_text("[breif]\n")
    assert _checks()["firing"][0]
    home_folder().mkdir(parents=True, exist_ok=True)
    (home_folder() / "config.toml").write_text("[breif]\n")
    is_well, text = _checks()["firing"]
    assert (is_well, text.startswith("it failed: "), "unknown key 'breif'" in text) == (False, True, True)


def test_the_real_hook_answers_the_doctor(clinic: Path) -> None:
    with Bank.open(clinic) as bank:
        bank.lessons.add("Prefer small commits")
        list(bank.vectors.embed_waiting())
    _run(install, "claude-code")
    found = _checks()
    assert re.fullmatch(r"answers in \d+ ms: a brief", found["firing"][1])
    with Bank.open(clinic) as bank:
        assert bank.runs.episodes() == []


def test_the_doctor_starts_the_server_as_the_settings_name_it(clinic: Path) -> None:
    _run(install, "claude-code")
    settings = clinic / ".mcp.json"
    assert _checks()["server"][0]
    settings.write_text(settings.read_text().replace('"mcp"', '"mcp", "--tools", "nope"'))
    is_well, text = _checks()["server"]
    assert (is_well, "archivist mcp --tools nope does not start" in text, "nope" in text) == (
        False,
        True,
        True,
    )


def test_the_doctor_runs_the_program_that_clients_find(
    clinic: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert clinic.is_dir()
    _run(install, "claude-code")
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "archivist").symlink_to("/usr/bin/false")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "first"), os.environ["PATH"]]))
    found = _checks()
    assert [found[name][0] for name in ("command", "firing", "server", "claude-code")] == [False] * 4
    assert found["firing"][1] == "it failed: exit code 1 (claude-code)"
    assert "told at no event" in found["claude-code"][1]


@pytest.mark.req("N7")
@pytest.mark.parametrize("how", ["on the path", "in the settings"])
def test_the_doctor_starts_no_program_of_a_repository(
    clinic: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=clinic, check=True)
    _run(install, "claude-code")
    planted = clinic / "node_modules" / ".bin" / "archivist"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    planted.chmod(0o755)
    if how == "on the path":
        monkeypatch.setenv("PATH", os.pathsep.join([str(planted.parent), os.environ["PATH"]]))
    else:
        for name in (".mcp.json", ".claude/settings.json"):
            text = (clinic / name).read_text()
            text = text.replace('"archivist hook', f'"{planted} hook').replace(
                '"archivist",', f'"{planted}",'
            )
            (clinic / name).write_text(text)
    found = _checks()
    assert not (tmp_path / "started").exists()
    assert not all(is_well for is_well, _ in found.values())
    if how == "on the path":
        assert f"{planted} is not yours: it was not started" in found["firing"][1]


def test_the_doctor_says_what_came_in_last(clinic: Path, clock: TickingClock) -> None:
    with Bank.open(clinic) as bank:
        bank.runs.record_episode(Episode(id="s-7", finished=clock.now))
    assert _checks()["capture"] == (True, "the last run, s-7, ended 2026-04-03 14:00 UTC")
