"""The role of a session: decided in one place, so that every door begins with the same core memory."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from archivist import Bank
from archivist.access.roles import session_role
from tests.conftest import Command

COMMAND = str(Path(sys.executable).parent / "archivist")
PLAYBOOKS = {"ops": "Drain the queue before a deploy", "qa": "Write the failing test first"}


@pytest.fixture
def dispatched(bank_cli: Command) -> Command:
    """Return the command in a project whose roles have playbooks, and a state."""
    for role, text in PLAYBOOKS.items():
        assert bank_cli("core", "adopt", "playbook", text, "--role", role, "--reason", "agreed").code == 0
        state = json.dumps({"workingOn": f"the {role} backlog"})
        assert bank_cli("core", "update", "roleState", state, "--role", role).code == 0
    assert bank_cli("core", "update", "status", "Ship the parser").code == 0
    return bank_cli


def _told_roles(text: str) -> set[str]:
    assert "Ship the parser" in text
    told = {role for role, playbook in PLAYBOOKS.items() if playbook in text}
    assert told == {role for role in PLAYBOOKS if f"the {role} backlog" in text}
    return told


def _start(
    run: Command, project: Path, client: str = "claude-code", said: Any = None, **environment: str
) -> str:
    event = {"session_id": "s-1", "cwd": str(project), "source": "startup", **(said or {})}
    ran = run("hook", client, "session-start", stdin=json.dumps(event).encode(), **environment)
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    return str(answer.get("hookSpecificOutput", answer)["additionalContext"])


@pytest.mark.req("C1", "C6")
def test_a_session_that_a_hook_starts_is_told_its_roles_playbook(dispatched: Command, project: Path) -> None:
    assert _told_roles(_start(dispatched, project)) == set()
    assert _told_roles(_start(dispatched, project, ARCHIVIST_ROLE="ops")) == {"ops"}
    assert _told_roles(_start(dispatched, project, ARCHIVIST_ACTOR="agent:coder:qa")) == {"qa"}
    assert _told_roles(_start(dispatched, project, said={"agent_type": "qa"})) == {"qa"}
    # Whoever starts the session knows better than the client's settings.
    told = _start(dispatched, project, said={"agent_type": "qa"}, ARCHIVIST_ROLE="ops")
    assert _told_roles(told) == {"ops"}
    # A subagent has a role of its own.
    event = json.dumps({"session_id": "s-1", "cwd": str(project), "agent_id": "a-1", "agent_type": "qa"})
    ran = dispatched("hook", "claude-code", "subagent-start", stdin=event.encode(), ARCHIVIST_ROLE="ops")
    assert _told_roles(json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]) == {"qa"}


@pytest.mark.req("C1", "C6")
def test_a_setting_of_the_user_maps_clients_and_folders_to_roles(dispatched: Command, project: Path) -> None:
    (project / "infra").mkdir()
    rules = f"claude-code=qa, gemini=qa,{project}/infra=ops"
    assert dispatched("config", "set", "core.roles", rules).code == 0
    assert _told_roles(_start(dispatched, project)) == {"qa"}
    assert _told_roles(_start(dispatched, project, "gemini")) == {"qa"}
    assert _told_roles(_start(dispatched, project, "codex")) == set()
    assert _told_roles(_start(dispatched, project / "infra")) == {"ops"}
    refused = dispatched("config", "set", "core.roles", "qa")
    assert "expected CLIENT=ROLE or FOLDER=ROLE" in refused.err
    # No repository says who works in it.
    (project / ".archivist" / "config.toml").write_text('[core]\nroles = "codex=ops"\n')
    assert "core.roles may not be set by a project" in dispatched("status").err
    assert "Drain the queue" not in dispatched("hook", "codex", "session-start", stdin=b"{}").out


@pytest.mark.req("C1", "C6")
def test_every_door_begins_with_the_same_core(dispatched: Command, project: Path) -> None:
    def core_of(text: str) -> str:
        assert _told_roles(text) == {"ops"}
        return text[text.index("# Core memory") : text.index("the ops backlog")]

    role = {"ARCHIVIST_ROLE": "ops"}
    told = core_of(_start(dispatched, project, **role))
    for words in (("run", "start", "--run", "r-1"), ("brief",), ("brief", "--task", "deploy it")):
        assert core_of(dispatched(*words, **role).out) == told
    assert core_of(dispatched("run", "start", "--run", "r-2", "--role", "ops").out) == told

    async def ask(environment: dict[str, str]) -> list[Any]:
        server = StdioServerParameters(
            command=COMMAND, args=["mcp", "--tools", "all"], cwd=project, env={**os.environ, **environment}
        )
        async with Client(server) as client:
            calls: Any = (("brief", {"task": "deploy it"}), ("core_memory_read", {}))
            return [(await client.call_tool(*call)).structured_content["text"] for call in calls]

    brief, read = asyncio.run(ask(role))
    assert core_of(brief) == told
    assert _told_roles(read) == {"ops"}
    dispatched("config", "set", "core.roles", f"{project}=ops")
    assert core_of(asyncio.run(ask({}))[0]) == told


@pytest.mark.req("C6")
def test_the_cycle_of_a_session_is_its_roles(dispatched: Command, project: Path) -> None:
    _start(dispatched, project, ARCHIVIST_ROLE="ops")
    _start(dispatched, project, said={"session_id": "s-2"})
    follow_up = [sys.executable, "-m", "archivist.edges.hooks.follow_up", "end", "claude-code"]
    for session in ("s-1", "s-2"):
        done = subprocess.run([*follow_up, session, "", str(project), str(project)], cwd=project, check=True)
        assert done.returncode == 0
    with Bank.open(project) as bank:
        assert [(entry.role, entry.cycle) for entry in bank.stream.recent()] == [
            ("claude-code", 2),
            ("ops", 1),
        ]


def test_roles_are_names_that_are_nobody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("human", "Archivist", "hum\u0430n", "a:b", "x" * 200, "a\nb"):
        assert session_role("codex=qa", client="codex", agent=name) == ""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    rules = f"{tmp_path}=outer,{inner}=inner,codex=qa"
    assert session_role(rules, client="codex", folder=str(inner)) == "inner"
    assert session_role(rules, client="codex", folder=str(tmp_path / "a")) == "outer"
    assert session_role(rules, client="codex-mcp-client", folder="/") == "qa"
    assert session_role(rules, client="codexical", folder="/") == ""
    monkeypatch.setenv("ARCHIVIST_ACTOR", "agent:coder:dev")
    assert session_role(rules, client="codex", agent="x") == "dev"
