"""Hooks, as the clients call them: each client's own events and answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank, projects
from archivist.capture.clean import FENCE_CLOSE, fence, strip_briefs
from archivist.edges.hook_events import CLIENTS
from archivist.edges.hooks import dialects
from archivist.files import hook_log
from archivist.files.git import keep_out_of_git
from archivist.paths import bank_file, project_of_folder, state_folder
from archivist.records import Brief, Episode
from tests.banks import bytes_of, fresh_bank, lay_bank
from tests.conftest import Command, Ran
from tests.samples import MISSING_MODULE, agent_log

ERROR = "Exit code 1\nE   ModuleNotFoundError: No module named 'freezegun'"
TESTS = "python -m pytest tests -q"
README = "It ends with exit code 1 and ModuleNotFoundError: No module named 'freezegun' unless it is there."

Hook = Callable[..., Ran]


FAILED = {"textResultForLlm": f"{ERROR}\n<shellId: 0 completed with exit code 1>"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder without a bank, whose own name is the project's: it is the same in every test."""
    folder = tmp_path / "mill"
    folder.mkdir()
    return folder


@pytest.fixture
def hook(project: Path, archivist: Command, archivist_process: Command) -> Hook:
    """Call a hook with an event, or with whatever bytes are given."""

    def call(client: str, event: str, said: dict[str, Any] | bytes = b"", **environment: str) -> Ran:
        raw = said if isinstance(said, bytes) else json.dumps({"cwd": str(project), **said}).encode()
        # At an end the work is handed over to a process that the hook's own is doubled for.
        run = archivist_process if event in ("stop", "session-end") else archivist
        return run("hook", client, *([event] if event else []), stdin=raw, **environment)

    return call


@pytest.fixture
def learnt(project: Path) -> Path:
    """Return a project whose bank has learnt in two runs that a module is missing."""
    keep_out_of_git(lay_bank(project, _learnt(_name(project))))
    return project


@cache
def _learnt(name: str) -> bytes:
    """Return the file of a bank that has learnt from two runs of a project: once, since it is much work."""
    with tempfile.TemporaryDirectory() as folder:
        with fresh_bank(folder) as bank:
            for session in ("s-1", "s-2"):
                log = Path(folder, f"{session}.jsonl")
                bank.runs.finish(agent_log(log, MISSING_MODULE, session=session, project=name))
            assert "freezegun" in bank.lessons.get("m-001").summary
            list(bank.vectors.embed_waiting())
        return bytes_of(bank)


def _name(project: Path) -> str:
    return project_of_folder(str(project))


def _context(ran: Ran) -> str:
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    found: str = answer.get("hookSpecificOutput", answer)["additionalContext"]
    return found


def _log(project: Path) -> list[str]:
    return hook_log.read_log(state_folder(bank_file(project)))


# What each client says and hears

START: dict[str, dict[str, Any]] = {
    "claude-code": {"session_id": "n-1", "hook_event_name": "SessionStart", "source": "startup"},
    "codex": {
        "session_id": "n-1", "transcript_path": None, "hook_event_name": "SessionStart", "model": "gpt-x",
        "permission_mode": "default", "source": "startup",
    },
    "cursor": {"conversation_id": "n-1", "generation_id": "g", "hook_event_name": "sessionStart"},
    "gemini": {"session_id": "n-1", "hook_event_name": "SessionStart", "source": "startup"},
    "vscode": {"sessionId": "n-1", "hookEventName": "SessionStart", "source": "new"},
    "copilot": {"sessionId": "n-1", "timestamp": 1795036979622, "source": "new", "initialPrompt": "Test"},
    "opencode": {"session_id": "n-1"},
}  # fmt: skip


@pytest.mark.req("A12", "F12")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_is_told_at_its_start_in_its_clients_own_form(
    client: str, hook: Hook, learnt: Path
) -> None:
    event: dict[str, Any] = {
        **START[client],
        "workspace_roots": [str(learnt)],
        "field_of_tomorrow": {"x": [1]},
    }
    ran = hook(client, "session-start", event)
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    if client == "cursor":
        assert list(answer) == ["additional_context"]
        text = answer["additional_context"]
    elif client in ("copilot", "opencode"):
        assert list(answer) == ["additionalContext"]
        text = answer["additionalContext"]
    else:
        assert list(answer) == ["hookSpecificOutput"]
        assert list(answer["hookSpecificOutput"]) == ["hookEventName", "additionalContext"]
        assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        text = answer["hookSpecificOutput"]["additionalContext"]
    assert "`pip install freezegun`" in text
    assert text.startswith("<!-- archivist:brief ")
    assert strip_briefs(text) == ""
    with Bank.open(learnt) as bank:
        assert bank.runs.episode("n-1").project == _name(learnt)
        assert (_log(learnt), bank.runs.episode("n-1").status.value) == ([], "running")
        # As in the client's log.
        assert bank.runs.episode("n-1").agent == {"copilot": "copilot-cli", "gemini": "gemini-cli"}.get(
            client, client
        )


def test_an_event_names_itself_when_the_call_does_not(hook: Hook, learnt: Path) -> None:
    assert "freezegun" in _context(hook("claude-code", "", START["claude-code"]))
    assert "freezegun" in _context(hook("vscode", "", START["vscode"]))
    assert "freezegun" in _context(hook("gemini", "SessionStart", START["gemini"]))
    assert hook("claude-code", "", {"hook_event_name": "PreToolUse", "session_id": "x"}).out == ""
    assert _log(learnt) == []


@pytest.mark.parametrize("client", ["claude-code", "vscode"])
@pytest.mark.usefixtures("learnt")
def test_copilot_is_answered_by_its_own_hooks_alone(client: str, hook: Hook, project: Path) -> None:
    """It runs the hooks of these clients too, and takes no answer in their form."""
    said = {**START[client], "timestamp": "2026-11-18T21:24:52.320Z"}
    ran = hook(client, "session-start", said, COPILOT_CLI="1")
    assert (ran.code, ran.out) == (0, "{}\n" if client == "vscode" else "")
    with Bank.open(project) as bank, bank.reading() as reader:
        assert reader.select(Brief) == []
    assert "freezegun" in _context(hook(client, "session-start", START[client], COPILOT_CLI="1"))
    assert "freezegun" in _context(hook("vscode", "session-start", {**said, "sessionId": "n-2"}))


@pytest.mark.usefixtures("learnt")
def test_after_compaction_the_session_is_told_again(hook: Hook) -> None:
    first = _context(hook("claude-code", "session-start", START["claude-code"]))
    again = _context(hook("claude-code", "session-start", {**START["claude-code"], "source": "compact"}))
    assert first.splitlines()[1:] == again.splitlines()[1:]


@pytest.mark.parametrize(
    ("client", "answer"),
    [
        ("claude-code", {"error": ERROR, "tool_name": "Bash"}),
        (
            "codex",
            {
                "tool_name": "shell",
                "tool_response": f"Exit code: 1\nWall time: 0.2 seconds\nOutput:\n{ERROR}",
            },
        ),
        ("codex", {"tool_name": "Bash", "tool_response": ERROR.partition("\n")[2]}),
        ("codex", {"tool_response": json.dumps({"output": ERROR, "metadata": {"exit_code": 1}})}),
        ("gemini", {"tool_response": {"llmContent": f"{ERROR}\nExit Code: 1", "returnDisplay": "x"}}),
        ("vscode", {"tool_response": f"{ERROR}\nCommand exited with code 1"}),
        ("codex", {"tool_response": {"isError": True, "content": [{"type": "text", "text": ERROR}]}}),
        ("codex", {"tool_response": [{"type": "text", "text": ERROR}]}),
        ("codex", {"tool_input": {"cmd": TESTS}, "tool_response": f"Exit code: 1\nOutput:\n{ERROR}"}),
        (
            "codex",
            {
                "tool_input": {"cmd": ["bash", "-lc", TESTS]},
                "tool_response": f"Exit code: 1\nOutput:\n{ERROR}",
            },
        ),
        ("gemini", {"tool_response": [{"type": "text", "text": ERROR, "is_error": True}], "tool_input": {}}),
        ("copilot", {"toolArgs": json.dumps({"command": TESTS}), "toolResult": FAILED}),
        ("copilot", {"toolName": "bash", "toolArgs": {"command": TESTS}, "toolResult": FAILED}),
        ("opencode", {"tool_name": "bash", "tool_response": {"output": ERROR, "exit_code": 1}}),
        ("copilot", {"toolName": "bash", "toolArgs": {"command": TESTS}, "error": ERROR}),
        ("copilot", {"toolName": "bash", "toolArgs": {"command": TESTS}, "error": {"message": ERROR}}),
    ],
)
@pytest.mark.req("A12")
def test_beside_an_error_stands_what_worked(
    client: str, answer: dict[str, Any], hook: Hook, learnt: Path
) -> None:
    said = {"session_id": "n-1", "sessionId": "n-1", "tool_input": {"command": TESTS}, **answer}
    text = _context(hook(client, "tool-error" if "toolName" in said else "tool-failure", said))
    assert "worked in 2 runs: `pip install freezegun`" in text
    with Bank.open(learnt) as bank, bank.reading() as reader:
        assert [brief.run for brief in reader.select(Brief)] == ["n-1"]


@pytest.mark.parametrize(
    ("client", "answer", "silence"),
    [
        ("claude-code", {"error": ERROR, "is_interrupt": True}, ""),
        ("claude-code", {"error": ""}, ""),
        ("codex", {"tool_response": "Exit code: 0\nOutput:\n4 passed"}, ""),
        (
            "codex",
            {"tool_response": {"output": "no such thing as exit code 1", "metadata": {"exit_code": 0}}},
            "",
        ),
        ("codex", {"tool_response": None}, ""),
        ("gemini", {"tool_response": {"llmContent": "4 passed"}}, "{}\n"),
        ("vscode", {"tool_response": 7}, "{}\n"),
        (
            "codex",
            {"tool_name": "read_file", "tool_input": {"path": "README.md"}, "tool_response": README},
            "",
        ),
        ("codex", {"tool_input": {"command": "cat README.md"}, "tool_response": README}, ""),
        ("codex", {"tool_input": {"command": "rg freezegun"}, "tool_response": ERROR.partition("\n")[2]}, ""),
        ("codex", {"tool_response": f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{ERROR}"}, ""),
        ("codex", {"tool_response": '{"error": "No module named \'freezegun\'"}'}, ""),
        ("gemini", {"tool_input": {"path": "a"}, "tool_response": {"llmContent": ERROR}}, "{}\n"),
        ("copilot", {"toolResult": {"textResultForLlm": "4\n<shellId: 0 completed with exit code 0>"}}, ""),
    ],
)
def test_what_did_not_fail_is_not_answered(
    client: str, answer: dict[str, Any], silence: str, hook: Hook, learnt: Path
) -> None:
    ran = hook(client, "tool-failure", {"session_id": "n-1", "tool_input": {"command": TESTS}, **answer})
    assert (ran.code, ran.out, _log(learnt)) == (0, silence, [])


@pytest.mark.req("A12")
def test_a_prompt_brings_up_what_was_not_told_yet(hook: Hook, learnt: Path) -> None:
    with Bank.open(learnt) as bank:
        for text in (
            "Invoice rounding follows the tax office: round half up",
            "Deploys wait for the nightly backup",
        ):
            bank.lessons.add(text)
    prompt = {
        "session_id": "n-1",
        "prompt": "Why is the rounding of an invoice off by a cent? Round it right.",
    }
    told = _context(hook("claude-code", "prompt", prompt))
    assert ("tax office" in told, "backup" in told, "freezegun" in told) == (True, False, False)
    assert hook("claude-code", "prompt", prompt).out == ""
    assert "tax office" in _context(hook("claude-code", "prompt", {**prompt, "session_id": "n-2"}))
    assert hook("codex", "prompt", {**prompt, "session_id": "n-3", "prompt": ""}).out == ""
    assert hook("gemini", "BeforeAgent", {**prompt, "prompt": "Something else entirely"}).out == "{}\n"


@pytest.mark.req("A12")
def test_a_subagent_is_told_in_the_name_of_its_own_run(hook: Hook, learnt: Path) -> None:
    said = {"session_id": "n-1", "agent_id": "a7", "agent_type": "Explore"}
    ran = hook("claude-code", "subagent-start", said)
    assert "freezegun" in _context(ran)
    assert json.loads(ran.out)["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
    with Bank.open(learnt) as bank, bank.reading() as reader:
        assert [brief.run for brief in reader.select(Brief)] == ["n-1.a7"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("event", ["stop", "session-end"])
@pytest.mark.usefixtures("learnt")
def test_the_end_is_answered_with_nothing(client: str, event: str, hook: Hook) -> None:
    ran = hook(client, event, {"session_id": "n-1", "sessionId": "n-1", "stop_hook_active": False})
    is_json = client in ("gemini", "vscode") and event in ("stop", "session-end")
    assert (ran.code, ran.out) == (0, "{}\n" if is_json else "")


# What nobody must notice


def test_without_a_bank_nothing_is_said_and_nothing_is_made(hook: Hook, project: Path) -> None:
    for event in ("session-start", "prompt", "tool-failure", "subagent-start", "stop", "session-end"):
        ran = hook("claude-code", event, {"session_id": "n-1", "prompt": "x y z", "error": ERROR})
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert list(project.iterdir()) == []


def test_without_a_bank_the_global_one_speaks(hook: Hook, archivist: Command) -> None:
    archivist("init", "--global")
    archivist("lessons", "add", "--global", "Answer in plain English")
    assert "plain English" in _context(hook("claude-code", "session-start", START["claude-code"]))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"   ", b"{", b"not json", b"[1, 2]", b"null", b'"text"', b"\xff\xfe\x00", b'{"a":' * 5_000,
        b'{"session_id": 7, "cwd": ["x"], "prompt": {}, "error": 3, "tool_input": "x"}',
        b'{"cwd": "/no/such/folder", "session_id": "\\ud800", "prompt": "\\u0000"}',
        b'{"session_id": "' + b"x" * 100_000 + b'", "prompt": "' + b"word " * 100_000 + b'"}',
        b"x" * (17 * 1024 * 1024),
    ],
    ids=range(13),
)  # fmt: skip
@pytest.mark.parametrize("event", ["session-start", "prompt", "tool-failure"])
@pytest.mark.usefixtures("learnt")
def test_no_input_makes_a_hook_fail(raw: bytes, event: str, hook: Hook) -> None:
    ran = hook("claude-code", event, raw)
    assert (ran.code, ran.err) == (0, "")
    assert not ran.out or json.loads(ran.out)


def test_what_went_wrong_is_kept_for_the_doctor(hook: Hook, learnt: Path, archivist: Command) -> None:
    hook("claude-code", "session-start", b"oops")
    hook("nobody", "session-start", {})
    hook("claude-code", "sesion-start", {"session_id": "n"})
    lines = [line.partition(" ")[2] for line in _log(learnt)]
    assert lines[0].startswith("claude-code session-start: JSONDecodeError")
    assert lines[1].startswith("nobody session-start: ValueError: no client 'nobody': one of claude-code")
    assert lines[2] == "claude-code sesion-start: ValueError: no event 'sesion-start'"
    ran = archivist("doctor")
    assert (ran.code, "warn  failures     the last hook to fail" in ran.out) == (1, True)
    (state_folder(bank_file(learnt)) / "hooks.log").unlink()
    assert "ok    failures     no hook has failed" in archivist("doctor").out


@pytest.mark.usefixtures("learnt")
def test_copilot_is_told_beside_a_prompt(hook: Hook) -> None:
    said = {"sessionId": "n-1", "timestamp": 1, "prompt": "freezegun is not installed: pip install freezegun"}
    answer = json.loads(hook("copilot", "prompt", said).out)
    assert list(answer) == ["additionalContext"]
    assert "freezegun" in answer["additionalContext"]


@pytest.mark.parametrize("event", ["PreCompact", "MessageDisplay", "beforeShellExecution"])
def test_an_event_that_is_nothing_to_us_is_no_failure(event: str, hook: Hook, learnt: Path) -> None:
    ran = hook("claude-code", event, {"session_id": "n-1", "hook_event_name": event})
    assert (ran.code, ran.out, _log(learnt)) == (0, "", [])


def test_the_log_of_failures_stays_small(tmp_path: Path, clock: Any) -> None:
    for number in range(600):
        hook_log.log_failure(tmp_path, f"number {number}\n" + "x" * 1_000, clock())
    size = (tmp_path / hook_log.FILE_NAME).stat().st_size
    assert 0 < size <= hook_log.MOST_BYTES
    when, text = hook_log.last_failure(tmp_path)
    assert when == clock.now
    assert text.startswith("number 599 xxx")
    (tmp_path / hook_log.FILE_NAME).write_text("half a li")
    assert hook_log.last_failure(tmp_path) == (None, "")


def test_a_bank_that_cannot_be_written_still_tells(hook: Hook, learnt: Path) -> None:
    if os.getuid() == 0:
        db = learnt / ".archivist" / "memory.db"
        import apsw

        holder = apsw.Connection(str(db))
        holder.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        try:
            told = _context(hook("claude-code", "session-start", START["claude-code"]))
        finally:
            holder.execute("ROLLBACK")
            holder.close()
        assert time.monotonic() - started < 20
    else:
        (learnt / ".archivist").chmod(0o500)
        (learnt / ".archivist" / "memory.db").chmod(0o400)
        told = _context(hook("claude-code", "session-start", START["claude-code"]))
    assert ("freezegun" in told, "unrecorded" in told) == (True, True)


def test_a_damaged_bank_is_noted_and_nobody_waits(hook: Hook, learnt: Path) -> None:
    (learnt / ".archivist" / "memory.db").write_bytes(b"no bank at all" * 100)
    told = _context(hook("claude-code", "session-start", START["claude-code"]))
    assert (strip_briefs(told), "run `archivist doctor`" in told) == ("", True)
    assert "is not a bank" in _log(learnt)[-1]


def test_a_bad_configuration_is_noted(hook: Hook, learnt: Path) -> None:
    (learnt / ".archivist" / "config.toml").write_text("[breif]\n")
    told = _context(hook("claude-code", "session-start", START["claude-code"]))
    assert ("run `archivist doctor`" in told, "freezegun" in told, "breif" in told) == (True, True, False)
    assert "breif" in _log(learnt)[-1]


def test_a_user_without_a_home_is_served(learnt: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "ARCHIVIST_HOME")}
    environment["ARCHIVIST_TRUST__FOLDERS"] = str(learnt)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "archivist"), "hook", "claude-code", "session-start"],
        input=json.dumps({"cwd": str(learnt), "session_id": "n-1"}).encode(),
        env=environment,
        capture_output=True,
    )
    assert (done.returncode, b"freezegun" in done.stdout) == (0, True)


def test_the_bank_is_found_from_below_and_by_name(hook: Hook, learnt: Path) -> None:
    below = learnt / "src" / "deep"
    below.mkdir(parents=True)
    assert "freezegun" in _context(hook("claude-code", "session-start", {"cwd": str(below)}))
    named = hook("claude-code", "session-start", {"cwd": "/"}, ARCHIVIST_BANK=str(learnt))
    assert "freezegun" in _context(named)
    beside = hook("claude-code", "session-start", {"cwd": "/nowhere"}, CLAUDE_PROJECT_DIR=str(learnt))
    assert "freezegun" in _context(beside)


# Which repository it is


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a repository whose bank has learnt, and which its folder names."""
    folder = tmp_path / "shop"
    folder.mkdir()
    _git(folder, "init")
    _git(folder, "commit", "--allow-empty", "-m", "begin")
    with Bank.open(folder, create=True) as bank:
        for session in ("s-1", "s-2"):
            bank.runs.finish(
                agent_log(tmp_path / f"{session}.jsonl", MISSING_MODULE, session=session, project="shop")
            )
        list(bank.vectors.embed_waiting())
    return folder


def _begun(hook: Hook, folder: Path, bank: Path, **environment: str) -> str:
    """Begin a session in a folder; it is told, and filed under the project that is returned."""
    ran = hook("claude-code", "session-start", {**START["claude-code"], "cwd": str(folder)}, **environment)
    assert "freezegun" in _context(ran)
    with Bank.open(bank) as opened:
        return opened.runs.episode("n-1").project


def test_a_renamed_project_is_still_the_same_once_it_is_trusted(
    hook: Hook, shop: Path, tmp_path: Path, archivist: Command
) -> None:
    renamed = shop.rename(tmp_path / "store-2")
    assert hook("claude-code", "session-start", {**START["claude-code"], "cwd": str(renamed)}).out == ""
    assert archivist("trust", str(renamed), "--yes").code == 0
    assert _begun(hook, renamed, renamed) == "shop"


def test_a_linked_folder_is_what_it_links_to(hook: Hook, shop: Path, tmp_path: Path) -> None:
    (shop / "src").mkdir()
    for name, target in (("here", shop), ("below", shop / "src")):
        link = tmp_path / name
        link.symlink_to(target)
        assert _begun(hook, link, shop) == "shop"


@pytest.mark.parametrize("where", [".claude/worktrees/fix-1", "../fix-1"])
def test_a_worktree_belongs_to_its_repository(hook: Hook, shop: Path, where: str) -> None:
    with Bank.open(shop) as bank:
        bank.capture(Episode(id="other", project="till"), ())
    _git(shop, "worktree", "add", where)
    below = shop / where / "src"
    below.mkdir()
    assert _begun(hook, below, shop) == "shop"


def test_a_worktree_that_the_repository_does_not_know_is_not_believed(
    hook: Hook, shop: Path, tmp_path: Path
) -> None:
    feigned = tmp_path / "feigned"
    feigned.mkdir()
    (feigned / ".git").write_text(f"gitdir: {shop}/.git/worktrees/fix-1\n")
    _git(shop, "worktree", "add", "../fix-1")
    ran = hook("claude-code", "session-start", {**START["claude-code"], "cwd": str(feigned)})
    assert (ran.code, ran.out) == (0, "")


def test_a_repository_in_a_workspace_is_known_by_its_remote(hook: Hook, tmp_path: Path) -> None:
    workspace = tmp_path / "ground"
    clone = workspace / "shop-of-ada"
    clone.mkdir(parents=True)
    _git(clone, "init")
    _git(clone, "remote", "add", "origin", "git@example.org:acme/shop.git")
    with Bank.open(workspace, create=True) as bank:
        for session in ("s-1", "s-2"):
            log = tmp_path / f"{session}.jsonl"
            bank.runs.finish(agent_log(log, MISSING_MODULE, session=session, project="shop"))
        bank.capture(Episode(id="other", project="till"), ())
        with bank.transaction() as writer:
            projects.claim_name(writer, "shop", clone, workspace)
    assert _begun(hook, clone, workspace) == "shop"
    again = workspace / "elsewhere"
    again.mkdir()
    _git(again, "init")
    _git(again, "remote", "add", "origin", "https://example.org/acme/shop")
    assert _begun(hook, again, workspace) == "shop"
    ran = hook("claude-code", "session-start", {**START["claude-code"], "cwd": str(workspace)})
    assert (ran.code, ran.out) == (0, "")


def test_the_one_repository_of_a_workspace_is_not_the_workspace(hook: Hook, tmp_path: Path) -> None:
    workspace = tmp_path / "ground"
    (workspace / "till").mkdir(parents=True)
    with Bank.open(workspace, create=True) as bank:
        bank.capture(Episode(id="other", project="till"), ())
    hook("claude-code", "session-start", {**START["claude-code"], "cwd": str(workspace)})
    with Bank.open(workspace) as bank:
        assert bank.runs.episode("n-1").project == "ground"


def test_two_repositories_of_one_name_do_not_hear_of_each_other(hook: Hook, tmp_path: Path) -> None:
    workspace = tmp_path / "ground"
    for name in ("one", "two"):
        (workspace / name / "api").mkdir(parents=True)
        _git(workspace / name / "api", "init")
    with Bank.open(workspace, create=True) as bank:
        for session in ("s-1", "s-2"):
            log = agent_log(tmp_path / f"{session}.jsonl", MISSING_MODULE, session=session, project="api")
            log.write_text(log.read_text().replace("/home/x/api", str(workspace / "one" / "api")))
            bank.runs.finish(log)
    begin = {**START["claude-code"], "session_id": "n-2", "cwd": str(workspace / "two" / "api")}
    assert hook("claude-code", "session-start", begin) == Ran(0, "", "")
    assert _begun(hook, workspace / "one" / "api", workspace) == "api"
    with Bank.open(workspace) as bank:
        assert bank.runs.episode("n-2").project == "two/api"


# Whose bank it is


def test_a_broken_global_bank_does_not_mute_the_projects(hook: Hook, learnt: Path, home: Path) -> None:
    (home / ".archivist").mkdir(parents=True, exist_ok=True)
    (home / ".archivist" / "memory.db").write_bytes(os.urandom(4096))
    assert "freezegun" in _context(hook("claude-code", "session-start", START["claude-code"]))
    assert "claude-code session-start, the global bank: " in _log(learnt)[-1]
    assert "is not a bank" in _log(learnt)[-1]


@pytest.mark.req("N7")
def test_a_bank_that_is_not_accepted_is_silent_also_where_it_is_named(
    hook: Hook, learnt: Path, home: Path
) -> None:
    (home / ".archivist" / "trusted.json").unlink()
    before = _files_below(home), _files_below(learnt)
    for named in ("", str(learnt)):
        for event in ("session-start", "prompt", "tool-failure", "subagent-start", "stop", "session-end"):
            said = {**START["claude-code"], "prompt": README, "error": ERROR, "transcript_path": "x"}
            assert hook("claude-code", event, said, ARCHIVIST_BANK=named) == Ran(0, "", "")
    assert (_files_below(home), _files_below(learnt)) == before
    said = {**START["claude-code"], "cwd": str(learnt)}
    told = hook("claude-code", "session-start", said, ARCHIVIST_TRUST__FOLDERS=f"/none, {learnt.parent}")
    assert "freezegun" in _context(told)


def _files_below(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def test_a_named_bank_that_is_not_there_is_noted(hook: Hook, home: Path, archivist: Command) -> None:
    home.mkdir(exist_ok=True)
    ran = hook("claude-code", "session-start", START["claude-code"], ARCHIVIST_BANK="/nonexistent")
    assert (ran.code, ran.out) == (0, "")
    assert "no bank at '/nonexistent'" in hook_log.read_log(home / ".archivist")[-1]
    assert "no bank at '/nonexistent'" in archivist("doctor").out


def test_a_folder_that_is_none_is_noted(hook: Hook, learnt: Path) -> None:
    ran = hook("claude-code", "session-start", {**START["claude-code"], "cwd": "a\0b"})
    assert (ran.code, ran.out) == (0, "")
    assert "null" in _log(learnt)[-1]


# What a client hears when nothing can be said


@pytest.mark.parametrize("client", ["gemini", "vscode"])
@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"x" * (17 * 1024 * 1024)], ids=range(4))
@pytest.mark.usefixtures("learnt")
def test_who_wants_json_gets_it_always(client: str, raw: bytes, hook: Hook) -> None:
    ran = hook(client, "session-start", raw)
    assert (ran.code, ran.out, ran.err) == (0, "{}\n", "")


@pytest.mark.parametrize("words", ["hook gemini session-start >&-", "hook gemini session-start <&-"])
@pytest.mark.usefixtures("learnt")
def test_a_closed_stream_is_no_failure(words: str, project: Path) -> None:
    program = Path(sys.executable).parent / "archivist"
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{program}' {words}"], input=b"{}", cwd=project, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_words_that_are_off_are_noted_also_behind_a_named_bank(learnt: Path, archivist: Command) -> None:
    for words in (["foo", "bar"], [], ["claude-code", "--loud"], ["codex", "stop", "now"]):
        ran = archivist("--bank", str(learnt), "hook", *words)
        assert (ran.code, ran.out) == (0, "")
    assert "no client 'foo'" in _log(learnt)[0]


def test_what_is_recorded_as_told_was_told(hook: Hook, learnt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVIST_BRIEF__BUDGET_TOKENS", "200000")
    with Bank.open(learnt) as bank:
        for number in range(5):
            bank.lessons.add(f"{'abcde'[number] * 5} " + f"w{number}ord " * 325)
    told = _context(hook("claude-code", "session-start", START["claude-code"]))
    with Bank.open(learnt) as bank, bank.reading() as reader:
        (brief,) = reader.select(Brief)
        assert brief.lessons
        summaries = [
            bank.lessons.get(each).summary.removeprefix(f"{learnt.name}: ") for each in brief.lessons
        ]
        assert [summary[:60] for summary in summaries if summary not in told] == []


def test_a_session_named_by_far_too_much_is_not_handed_over(hook: Hook, learnt: Path) -> None:
    hook("claude-code", "session-end", {"session_id": "z" * 100_000, "transcript_path": "x"})
    assert "the session's name has 100000 characters" in _log(learnt)[-1]


def test_a_hook_imports_no_more_than_it_needs(learnt: Path) -> None:
    """Hold what a cold process loads: the standard library, apsw and ours, and of those the light ones."""
    heavy = {
        "click", "numpy", "msgspec", "rapidfuzz", "ruamel", "inspect", "asyncio", "subprocess", "logging",
        "archivist.edges.cli.group", "archivist.capture.formats", "archivist.recall.service",
        "archivist.audit", "archivist.tools.functions", "archivist.records.tiers", "archivist.records.layers",
    }  # fmt: skip
    # From Python 3.13 on, making any dataclass with slots takes it.
    heavy -= {"inspect"} if sys.version_info >= (3, 13) else set()
    code = (
        "import io, json, sys\nfrom archivist.edges.cli.main import main\n"
        "class Given:\n    buffer = io.BytesIO(sys.argv[2].encode())\n"
        "sys.stdin = Given\nmain(['hook', 'claude-code', sys.argv[1]])\n"
        f"loaded = {heavy!r} & set(sys.modules)\n"
        "print('IMPORTED', *sorted(name for name in loaded if sys.modules[name].__spec__))"
    )
    events = {"session-start": {}, "prompt": {"prompt": "install the freezegun module"}}
    for event, more in events.items():
        said = json.dumps({"cwd": str(learnt), "session_id": "n-1", **more})
        command = [sys.executable, "-c", code, event, said]
        done = subprocess.run(command, cwd=learnt, capture_output=True, text=True, check=True)
        assert done.stdout.rpartition("IMPORTED")[2].split() == []
        assert event == "prompt" or "freezegun" in done.stdout


def test_an_error_that_nobody_met_makes_no_class_that_it_does_not_need(learnt: Path) -> None:
    """Neither the records' classes, nor OpenSSL, nor annotations that are compiled from texts."""
    heavy = {
        "hashlib", "tomllib", "archivist.records.lesson", "archivist.records.episode",
        "archivist.brief.service", "archivist.brief.liveness_service",
    }  # fmt: skip
    code = (
        "import io, sys\nfrom typing import ForwardRef\nfrom archivist.edges.cli.main import main\n"
        "class Given:\n    buffer = io.BytesIO(sys.argv[1].encode())\n"
        "sys.stdin = Given\nmain(['hook', 'claude-code', 'tool-failure'])\n"
        "ours = [module for name, module in sys.modules.items() if name.startswith('archivist')]\n"
        "made = [each for module in ours for each in vars(module).values()"
        " if isinstance(each, type) and issubclass(each, tuple) and hasattr(each, '_fields')]\n"
        "print(*(each.__name__ for each in made"
        " if any(isinstance(kind, ForwardRef) for kind in each.__annotations__.values())))\n"
        f"print('IMPORTED', *sorted({heavy!r} & set(sys.modules)))"
    )
    event = {
        "cwd": str(learnt),
        "session_id": "n-2",
        "tool_name": "Bash",
        "tool_input": {"command": "make it"},
    }
    said = json.dumps({**event, "error": "Exit code 2\nzsh: segmentation violation at 0x7f, core kept"})
    command = [sys.executable, "-c", code, said]
    done = subprocess.run(command, cwd=learnt, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["IMPORTED"]


# The pure parts


@given(st.text(max_size=400), st.integers(120, 400))
def test_a_cut_text_is_short_and_still_fenced(text: str, limit: int) -> None:
    whole = fence(text, "b-1", ["m-001"])
    cut = dialects.truncate_fenced(whole, limit)
    assert len(cut.encode("utf-16-le", "surrogatepass")) // 2 <= limit
    assert cut.rstrip("\n").endswith(FENCE_CLOSE)
    assert cut == whole or "…" in cut


plain = st.none() | st.booleans() | st.integers() | st.text()
fields = st.sampled_from(["error", "output", "exit_code", "metadata", "content", "success"]) | st.text()


@given(st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(fields, inner), max_leaves=8))
def test_any_answer_of_a_tool_can_be_read(response: object) -> None:
    assert isinstance(dialects.response_failure(response), str)


def test_a_session_is_told_what_is_for_its_provider_the_harness(
    archivist: Command, hook: Hook, project: Path
) -> None:
    assert archivist("init", cwd=project).code == 0
    for provider, summary in (
        ("gemini-cli", "Split the suite"),
        ("google", "Name the file"),
        ("codex", "No"),
    ):
        words = ("lessons", "add", summary, "--scope", "provider", "--provider", provider, "--repo", "mill")
        assert archivist(*words, cwd=project).code == 0
    told = hook("gemini", "session-start", {"session_id": "s-1"}).out
    assert ("Split the suite" in told, "Name the file" in told, "No" in told) == (True, False, False), told


@pytest.mark.parametrize(
    "form",
    [
        "<hook_context>{}</hook_context>\n\n{}",
        "{1}\n\n<hook_context>{0}</hook_context>",
        "&lt;hook_context&gt;{}&lt;/hook_context&gt;\n\n{}",
        "{1}\n<hook_context>{0}",
    ],
)
def test_what_gemini_hands_back_of_a_brief_is_no_part_of_the_prompt(
    form: str, hook: Hook, learnt: Path
) -> None:
    assert learnt.is_dir()
    about = "freezegun is not installed: pip install freezegun"
    event = {"session_id": "n-1", "hook_event_name": "BeforeAgent"}
    prompt = form.format(about, "Rename the parser")
    assert hook("gemini", "prompt", {**event, "prompt": prompt}).out == "{}\n"
    asked = form.format("Rename the parser", about)
    assert "freezegun" in hook("gemini", "prompt", {**event, "prompt": asked}).out
