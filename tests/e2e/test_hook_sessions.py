"""Clients whose own log does not say what tools answered: the hooks' events are the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.files import hook_log
from archivist.paths import bank_file, state_folder
from archivist.records import Event
from archivist.store.filters import equals
from tests.conftest import Command

DEADLINE_S = 60
TESTS = "python -m pytest tests -q"
FAILURE = (
    "ImportError while loading conftest 'tests/conftest.py'.\ntests/conftest.py:1: in <module>\n"
    "    import freezegun\nE   ModuleNotFoundError: No module named 'freezegun'"
)
CALLS = [
    (TESTS, FAILURE, 1),
    ("pip install freezegun", "Successfully installed freezegun-1.5.1", 0),
    (TESTS, "....\n4 passed in 0.12s", 0),
]
ASKED = "Run the tests and make them pass"


class Cursor:
    """What Cursor says to its hooks."""

    name, start, prompt = "cursor", "sessionStart", "beforeSubmitPrompt"
    ends: tuple[tuple[str, dict[str, str]], ...] = (
        ("stop", {"status": "completed"}),
        ("sessionEnd", {"reason": "completed"}),
    )

    def event(self, folder: Path, session: str) -> dict[str, Any]:
        """Return the fields of every event; the transcript of its CLI is null."""
        return {"conversation_id": session, "workspace_roots": [str(folder)], "transcript_path": None}

    def call(self, number: int, command: str, output: str, code: int) -> tuple[str, dict[str, Any]]:
        """Return the event after a command."""
        made = {"tool_name": "Shell", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}
        if number == 0:
            return "postToolUseFailure", {**made, "error_message": f"Exit code {code}\n{output}"}
        return "postToolUse", {**made, "tool_output": json.dumps({"exitCode": code, "stdout": output})}

    def told(self, answer: str) -> str:
        """Return the text that the model is given."""
        text: str = json.loads(answer)["additional_context"]
        return text


class VsCode:
    """What VS Code says to its hooks; its transcript names the calls, and no answer."""

    name, start, prompt = "vscode", "SessionStart", "UserPromptSubmit"
    ends: tuple[tuple[str, dict[str, str]], ...] = (("Stop", {}),)

    def event(self, folder: Path, session: str) -> dict[str, Any]:
        """Return the fields of every event."""
        return {"sessionId": session, "cwd": str(folder), "transcript_path": str(folder / "no.jsonl")}

    def call(self, number: int, command: str, output: str, code: int) -> tuple[str, dict[str, Any]]:
        """Return the event after a command."""
        made = {"tool_name": "run_in_terminal", "tool_input": {"command": command}}
        said = f"{output}\n\nCommand exited with code {code}\n" if code else output
        return "PostToolUse", {**made, "tool_use_id": f"t{number}", "tool_response": said}

    def told(self, answer: str) -> str:
        """Return the text that the model is given."""
        text: str = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
        return text


Fire = Callable[..., str]


@pytest.fixture
def shop(tmp_path: Path, archivist: Command) -> Path:
    """Return a project with an empty bank."""
    folder = tmp_path / "shop"
    folder.mkdir()
    assert archivist("init", cwd=folder).code == 0
    return folder


@pytest.fixture(params=[Cursor(), VsCode()], ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Cursor | VsCode:
    """Return each client in turn."""
    found: Cursor | VsCode = request.param
    return found


@pytest.fixture
def fire(shop: Path, archivist_process: Command, client: Cursor | VsCode) -> Fire:
    """Fire an event as the client does: the installed command, the event on stdin."""

    def call(event: str, session: str, **more: Any) -> str:
        said = {**client.event(shop, session), "hook_event_name": event, **more}
        done = archivist_process("hook", client.name, event, cwd=shop, stdin=json.dumps(said).encode())
        assert (done.code, done.err) == (0, "")
        return done.out

    return call


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s until {what}"
        time.sleep(0.05)


def _is_learnt(shop: Path, session: str) -> bool:
    with Bank.open(shop, create=False) as bank:
        known = [episode for episode in bank.runs.episodes() if episode.id == session]
        is_ended = bool(known) and known[0].number is not None and not bank.reflections.waiting_runs()
        return is_ended and bool(bank.lessons.lesson_names())


@pytest.mark.req("A12", "F12", "N9")
def test_a_session_that_only_hooks_told_of_is_a_run_with_its_failures_and_lessons(
    shop: Path, client: Cursor | VsCode, fire: Fire
) -> None:
    empty = ("", "{}\n")
    assert fire(client.start, "s-1") in empty
    # Hooks of the project and of the user both fire.
    for _ in range(2):
        assert fire(client.prompt, "s-1", prompt=ASKED) in empty
    for number, (command, output, code) in enumerate(CALLS):
        event, made = client.call(number, command, output, code)
        for _ in range(2):
            assert fire(event, "s-1", **made) in empty
    for event, made in client.ends:
        assert fire(event, "s-1", **made) in empty
    _until(lambda: _is_learnt(shop, "s-1"), "the session was learnt from")
    with Bank.open(shop, create=False) as bank:
        run = bank.runs.episode("s-1")
        assert (run.status.value, run.project, run.agent, run.task) == ("success", "shop", client.name, ASKED)
        with bank.reading() as reader:
            events = reader.select(Event, equals("run", "s-1"), order=("seq",))
        calls = [event for event in events if event.tool]
        assert [(event.text, event.is_error) for event in calls] == [
            (command, bool(code)) for command, _, code in CALLS
        ]
        assert "No module named 'freezegun'" in calls[0].output
    assert "`pip install freezegun`" in client.told(fire(client.start, "s-2"))


@pytest.mark.req("N7")
def test_what_the_hooks_keep_of_a_session_holds_no_secret(
    shop: Path, client: Cursor | VsCode, fire: Fire
) -> None:
    password, token = "Tr0ub4dor" + "-x9-Qz", "gh" + "p_" + "a1B2" * 9
    fire(client.prompt, "s-1", prompt=f"log in with password: {password}")
    event, made = client.call(1, f"export GITHUB_TOKEN={token}", f"DB_PASSWORD={password}", 0)
    fire(event, "s-1", **made)
    kept = hook_log.session_log(state_folder(bank_file(shop)), "s-1").read_text()
    assert "[redacted:" in kept
    assert password not in kept
    assert token not in kept


def test_what_a_session_said_later_is_added_and_nothing_is_kept_of_a_strangers_bank(
    shop: Path, client: Cursor | VsCode, fire: Fire, archivist: Command
) -> None:
    fire(client.prompt, "s-1", prompt=ASKED)
    for turn in range(2):
        for number, (command, output, code) in enumerate(CALLS, 1):
            event, made = client.call(number + 10 * turn, command, output, code)
            fire(event, "s-1", **made)
        fire(client.ends[0][0], "s-1")

        def has_calls(count: int) -> bool:
            with Bank.open(shop, create=False) as bank, bank.reading() as reader:
                events = reader.select(Event, equals("run", "s-1"))
            return sum(bool(event.tool) for event in events) == count

        _until(lambda many=3 * (turn + 1): has_calls(many), "the turn was captured")  # type: ignore[misc]
    kept = hook_log.session_log(state_folder(bank_file(shop)), "s-1")
    assert kept.stat().st_mode & 0o077 == 0
    assert archivist("trust", "--remove", cwd=shop).code == 0
    size = kept.stat().st_size if kept.exists() else 0
    fire(client.prompt, "s-1", prompt=ASKED)
    assert (kept.stat().st_size if kept.exists() else 0) == size
