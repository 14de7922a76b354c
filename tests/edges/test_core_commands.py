"""The commands about core memory, proposals and working memory, as real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from tests.conftest import Command

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "core.md"
CODER = ("--actor", "agent:coder:research")


def _json(ran: Any) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


@pytest.mark.req("C1")
def test_core_is_shown_rendered_updated_and_appended_to(bank_cli: Command) -> None:
    assert bank_cli("core", "render").out == ""
    assert "all    0       10000" in bank_cli("core", "show").out
    assert bank_cli("core", "update", "status", "Sprint 2").out == "## Status\nSprint: Sprint 2\n"
    made = _json(bank_cli("core", "append", "blockers", "- #84 waits", "--json"))
    assert made["content"]["blockers"] == ["- #84 waits"]
    bank_cli("core", "append", "threads", '{"id": 84, "summary": "Headless", "roles": ["ops"]}')
    bank_cli(*CODER, "core", "update", "roleState", '{"nextAction": "prototype"}')
    seen = _json(bank_cli(*CODER, "core", "show", "--json"))
    assert (seen["role"], seen["role_state"]["next_action"]) == ("research", "prototype")
    assert (seen["status"]["sprint"], seen["threads"][0]["id"]) == ("Sprint 2", "84")
    assert seen["tokens"] == sum(block["tokens"] for block in seen["blocks"])
    assert _json(bank_cli("core", "render", "--json"))["text"] == bank_cli("core", "render").out
    assert bank_cli("core", "take-out", "blockers", "- #84 waits", "--json").code == 0
    assert bank_cli("core", "close-thread", "84").out == "threads is empty\n"


def test_a_text_may_begin_with_a_dash_or_come_from_stdin(bank_cli: Command) -> None:
    bank_cli("core", "adopt", "rules", "- hold\n- help", "--reason", "- first")
    assert bank_cli("core", "update", "lessons", "-", stdin=b"- ask early\n").code == 0
    assert bank_cli("core", "render").out == "## Rules\n- hold\n- help\n\n## Lessons\n- ask early\n"


@pytest.mark.req("C10")
def test_a_proposal_is_added_shown_decided_and_rolled_back(bank_cli: Command) -> None:
    bank_cli("lessons", "add", "Ask once")
    added = bank_cli(
        *CODER, "proposals", "add", "rules", "- Ask once", "--reason", "why", "--evidence", "m-001"
    )
    assert added.out == "p-001  why\n--- rules before\n+++ rules after p-001\n@@ -0,0 +1 @@\n+- Ask once\n"
    listed = _json(bank_cli("proposals", "list", "--json"))["proposals"]
    assert [(each["id"], each["status"]) for each in listed] == [("p-001", "open")]
    shown = bank_cli("proposals", "show", "p-001").out
    assert "evidence    m-001: Ask once" in shown
    assert "+- Ask once" in shown
    issue = _json(bank_cli("proposals", "issue", "p-001", "--json"))
    assert issue["title"] == "Proposal p-001: change rules"
    assert bank_cli("proposals", "issue", "p-001").out.startswith(issue["title"] + "\n\nwhy\n")
    assert bank_cli("proposals", "accept", "p-001").out == "p-001  rules: accepted\n"
    again = bank_cli("proposals", "accept", "p-001")
    assert (again.code, "p-001 was accepted" in again.err) == (4, True)
    assert bank_cli("proposals", "roll-back", "p-001", "--comment", "no").out == "p-001  rules: rolled back\n"
    assert bank_cli("core", "render").out == ""
    assert bank_cli("proposals", "list").out.count("p-001") == 0
    assert "rolled back" in bank_cli("proposals", "list", "--all").out
    assert _json(bank_cli("proposals", "show", "p-001", "--json"))["comment"] == "no"
    assert _json(bank_cli("proposals", "rules", "--json")) == {"proposals": []}
    bank_cli("proposals", "add", "playbook", "x", "--reason", "y")
    assert _json(bank_cli("proposals", "reject", "p-002", "--json"))["status"] == "rejected"
    assert bank_cli("verify").code == 0


@pytest.mark.req("C10", "M8")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*CODER, "core", "update", "rules", "x"), 9, "may not write core of 'rules'"),
        ((*CODER, "core", "adopt", "rules", "x", "--reason", "y"), 9, "may not decide proposals of 'rules'"),
        ((*CODER, "core", "update", "role_state", "x", "--role", "ops"), 9, "write core of 'role_state:ops'"),
        (("core", "update", "role_state", "x"), 4, "no role is given"),
        (("core", "update", "nothing", "x"), 4, "no section 'nothing'"),
        (("core", "append", "sprint", "x"), 4, "'sprint' is no list"),
        (("core", "update", "status", '{"sprnt": 1}'), 4, "unknown field 'sprnt'"),
        (("core", "update", "status", "x" * 5_000), 4, "too many"),
        (("core", "close-thread", "x"), 3, "no thread 'x'"),
        (("core", "adopt", "status", "x", "--reason", "y"), 2, "'status' is not one of"),
        (("proposals", "accept", "p-9"), 3, "no proposal 'p-9'"),
        (("proposals", "add", "rules", "x"), 2, "--reason"),
        (("proposals", "add", "rules", "x", "--reason", "y", "--evidence", "z"), 4, "evidence 'z'"),
        (("working", "show"), 9, "may not read working"),
        (("--actor", "orchestrator:coder", "working", "plan", "x"), 9, "may not write working"),
        (("--actor", "agent:coder", "working", "context", "k"), 2, "give a VALUE"),
    ],
)  # fmt: skip
def test_what_is_refused_says_why_with_its_exit_code(
    bank_cli: Command, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = bank_cli(*words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "hint: " in ran.err or code == 2


@pytest.mark.req("M1")
def test_an_agent_keeps_its_working_memory_over_processes(
    bank_cli: Command, archivist_process: Command
) -> None:
    def working(*words: str) -> Any:
        return archivist_process("--actor", "agent:coder", "working", *words)

    assert (working("show").out, working("show").err) == ("", "working memory is empty\n")
    assert _json(working("show", "--json")) == {"working": None}
    working("plan", "Port the parser")
    working("constraint", "No new dependencies")
    working("constraint", "Stay offline")
    working("constraint", "Stay offline", "--lift")
    working("context", "pr", "12")
    working("context", "branch", "main")
    working("context", "branch", "--drop")
    assert working("note", "- tests live in t/").out == (
        "Plan: Port the parser\nConstraints:\n- No new dependencies\n"
        "Notes:\n- - tests live in t/\nContext:\n- pr: 12\n"
    )
    assert _json(working("show", "--json"))["working"]["context"] == {"pr": 12}
    hidden, unknown = bank_cli("lessons", "history", "coder"), bank_cli("lessons", "history", "nobody")
    assert (hidden.code, hidden.err) == (3, unknown.err.replace("nobody", "coder"))
    assert _json(working("clear", "--json")) == {"cleared": True}
    assert working("clear").err == "working memory was empty\n"


@pytest.mark.usefixtures("bank_cli")
def test_the_guide_prints_what_its_commands_print(project: Path) -> None:
    text = GUIDE.read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == text.count("```sh") == 5
    environment = {**os.environ, "LOGNAME": "ada"}
    for commands, shown in blocks:
        ran = subprocess.run(
            ["sh", "-e", "-c", commands], cwd=project, env=environment, capture_output=True, text=True
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert _undated(ran.stdout) == _undated(shown)
    with Bank.open(project) as bank:
        assert bank.ledger.verify().is_whole


def _undated(text: str) -> str:
    return re.sub(r"\d{4}-\d{2}-\d{2}", "DATE", text)


def test_null_takes_a_key_out_of_the_context(bank_cli: Command) -> None:
    agent = ("--actor", "agent:coder", "working", "context")
    bank_cli(*agent, "branch", "main")
    assert _json(bank_cli(*agent, "n", "0", "--json"))["working"]["context"] == {"branch": "main", "n": 0}
    assert _json(bank_cli(*agent, "branch", "null", "--json"))["working"]["context"] == {"n": 0}


@pytest.mark.req("C10")
def test_a_decided_proposal_is_written_out_as_decided(bank_cli: Command) -> None:
    bank_cli("core", "adopt", "rules", "- hold", "--reason", "first")
    text = bank_cli("proposals", "issue", "p-001").out
    assert "To decide" not in text
    assert "Accepted on" in text
