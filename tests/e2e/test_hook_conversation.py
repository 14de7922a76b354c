"""A conversation of a client with its hooks, by real processes: what one session learns, the next is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.files import hook_log
from archivist.paths import bank_file, state_folder
from tests.conftest import Command

TESTS = "python -m pytest tests -q"
FAILURE = (
    "Exit code 1\nImportError while loading conftest 'tests/conftest.py'.\ntests/conftest.py:1: in <module>\n"
    "    import freezegun\nE   ModuleNotFoundError: No module named 'freezegun'"
)
CALLS = [
    (TESTS, FAILURE, True),
    ("pip install freezegun", "Successfully installed freezegun-1.5.1", False),
    (TESTS, "....\n4 passed in 0.12s", False),
]
REFUSED = "Exit code 1\npsycopg2.OperationalError: could not connect to server: Connection refused"
STARTED = [
    (TESTS, REFUSED, True),
    ("make db-up", "db started", False),
    (TESTS, "....\n4 passed in 0.12s", False),
]
DEADLINE_S = 60


class Transcript:
    """A session's log as Claude Code writes it: one line at a time, each pointing at the one before."""

    def __init__(self, path: Path, session: str, folder: Path, agent: str = "") -> None:
        self.path = path
        self._agent = {"isSidechain": True, "agentId": agent} if agent else {}
        self._session = session
        self._folder = folder
        self._lines = 0

    def write(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        """Append one line."""
        self._lines += 1
        line = {
            "type": kind,
            "uuid": f"{self._session}-{self._lines}",
            "parentUuid": f"{self._session}-{self._lines - 1}" if self._lines > 1 else None,
            "sessionId": self._session,
            "timestamp": f"2026-11-15T06:00:{self._lines:02d}.000Z",
            "cwd": str(self._folder),
            "gitBranch": "main",
            "version": "2.1.325",
            "userType": "external",
            "isSidechain": False,
            "message": message,
            **self._agent,
            **more,
        }
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def call(self, command: str, output: str, is_error: bool) -> None:
        """Append a call of the shell and what came back."""
        name = f"toolu_{self._lines}"
        usage = {"input_tokens": 12, "output_tokens": 40, "cache_read_input_tokens": 9000}
        use = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
        reply = {"id": f"msg_{self._lines}", "type": "message", "role": "assistant", "model": "claude-opus-5"}
        self.write("assistant", {**reply, "content": [use], "stop_reason": "tool_use", "usage": usage})
        result = {"type": "tool_result", "tool_use_id": name, "content": output, "is_error": is_error}
        printed = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        self.write("user", {"role": "user", "content": [result]}, toolUseResult=printed)


Fire = Callable[..., str]


def _state(project: Path) -> Path:
    return state_folder(bank_file(project))


@pytest.fixture
def shop(tmp_path: Path, archivist: Command) -> Path:
    """Return a project with an empty bank."""
    folder = tmp_path / "shop"
    folder.mkdir()
    assert archivist("init", cwd=folder).code == 0
    return folder


@pytest.fixture
def fire(shop: Path, archivist_process: Command) -> Fire:
    """Fire an event of Claude Code as it does: the command and its words, the event on stdin."""

    def call(moment: str, event: str, session: str, transcript: Path, **more: Any) -> str:
        said = {
            "session_id": session,
            "transcript_path": str(transcript),
            "cwd": str(shop),
            "hook_event_name": event,
            "permission_mode": "default",
            **more,
        }
        done = archivist_process("hook", "claude-code", moment, cwd=shop, stdin=json.dumps(said).encode())
        assert (done.code, done.err) == (0, "")
        if not done.out:
            return ""
        answer = json.loads(done.out)["hookSpecificOutput"]
        assert answer["hookEventName"] == event
        text: str = answer["additionalContext"]
        return text

    return call


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s until {what}"
        time.sleep(0.05)


def _lessons(shop: Path) -> list[str]:
    with Bank.open(shop, create=False) as bank:
        return [text for _, text in bank.lessons.lesson_names().values()]


def _has_ended(shop: Path, run: str) -> bool:
    with Bank.open(shop, create=False) as bank:
        known = [episode for episode in bank.runs.episodes() if episode.id == run]
        return bool(known) and known[0].number is not None and not bank.reflections.waiting_runs()


@pytest.mark.req("A12", "F12", "N9")
@pytest.mark.parametrize(
    ("calls", "word", "lesson", "remedy"),
    [
        (
            CALLS,
            "freezegun",
            "`freezegun` is not installed: `pip install freezegun`",
            "pip install freezegun",
        ),
        (STARTED, "db-up", "Connection refused”): run `make db-up` first", "make db-up"),
    ],
    ids=["installed", "started"],
)
def test_what_the_first_session_learnt_arrives_in_the_second(
    shop: Path,
    fire: Fire,
    tmp_path: Path,
    calls: list[tuple[str, str, bool]],
    word: str,
    lesson: str,
    remedy: str,
) -> None:
    first = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    assert fire("session-start", "SessionStart", "s-1", first.path, source="startup") == ""
    prompt = "Run the tests and make them pass"
    assert fire("prompt", "UserPromptSubmit", "s-1", first.path, prompt=prompt) == ""
    first.write("user", {"role": "user", "content": prompt})
    for command, output, is_error in calls:
        first.call(command, output, is_error)
        if is_error:
            failed = {"tool_name": "Bash", "tool_input": {"command": command}, "error": output}
            assert fire("tool-failure", "PostToolUseFailure", "s-1", first.path, **failed) == ""
    started = time.monotonic()
    assert fire("session-end", "SessionEnd", "s-1", first.path, reason="prompt_input_exit") == ""
    assert time.monotonic() - started < 10
    # The client tells of the end before it has written the last line.
    last = {"id": "msg_z", "type": "message", "role": "assistant", "model": "claude-opus-5"}
    said = [{"type": "text", "text": "All tests pass now."}]
    first.write("assistant", {**last, "content": said, "stop_reason": "end_turn"})

    _until(lambda: any(word in text for text in _lessons(shop)), "the first session was learnt from")
    _until(lambda: _has_ended(shop, "s-1"), "the work on the first session was done")
    with Bank.open(shop, create=False) as bank:
        assert (bank.runs.episode("s-1").status.value, bank.runs.episode("s-1").project) == (
            "success",
            "shop",
        )

    second = tmp_path / "s-2.jsonl"
    told = fire("session-start", "SessionStart", "s-2", second, source="startup")
    assert lesson in told
    beside = {"tool_name": "Bash", "tool_input": {"command": TESTS}, "error": calls[0][1]}
    assert f"worked in 1 run: `{remedy}`" in fire(
        "tool-failure", "PostToolUseFailure", "s-2", second, **beside
    )
    assert fire("tool-failure", "PostToolUseFailure", "s-2", second, **beside) == ""
    helper = fire("subagent-start", "SubagentStart", "s-2", second, agent_id="a1", agent_type="Explore")
    # It makes a few calls: what one run met is not likely to be among them.
    assert remedy not in helper
    assert hook_log.read_log(_state(shop)) == []


def test_what_was_told_is_not_learnt_from(shop: Path, fire: Fire, tmp_path: Path) -> None:
    with Bank.open(shop) as bank:
        bank.lessons.add("Ask the quartermaster before the harvest begins")
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    told = fire("session-start", "SessionStart", "s-1", log.path, source="startup")
    assert "quartermaster" in told
    log.write("user", {"role": "user", "content": f"<system-reminder>\n{told}</system-reminder>\nGo on"})
    for command, output, is_error in CALLS:
        log.call(command, output, is_error)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    _until(lambda: _has_ended(shop, "s-1"), "the session was taken in")
    with Bank.open(shop) as bank, bank.reading() as reader:
        from archivist.records import Event

        assert [event for event in reader.select(Event) if "quartermaster" in event.text] == []


def test_a_session_that_goes_on_is_taken_in_again_and_counted_once(
    shop: Path, fire: Fire, tmp_path: Path
) -> None:
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    log.write("user", {"role": "user", "content": "Make the tests pass"})
    log.call(*CALLS[0])
    fire("stop", "Stop", "s-1", log.path, stop_hook_active=False)
    _until(lambda: _has_ended(shop, "s-1"), "the first turn was taken in")
    for call in CALLS[1:]:
        log.call(*call)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    _until(lambda: any("freezegun" in text for text in _lessons(shop)), "the rest was taken in")
    with Bank.open(shop) as bank:
        assert [episode.id for episode in bank.runs.episodes()] == ["s-1"]
        assert bank.runs.episode("s-1").number == 1


def test_the_summary_tells_of_the_whole_session(shop: Path, fire: Fire, tmp_path: Path) -> None:
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    log.write("user", {"role": "user", "content": "Make the tests pass"})
    log.call(*CALLS[0])
    fire("stop", "Stop", "s-1", log.path, stop_hook_active=False)
    _until(lambda: _has_ended(shop, "s-1"), "the first turn was taken in")
    assert _summary(shop, "s-1").endswith("At the end `pytest` still failed.")
    for call in CALLS[1:]:
        log.call(*call)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    _until(lambda: "still failed" not in _summary(shop, "s-1"), "the summary was written anew")


def _summary(shop: Path, run: str) -> str:
    with Bank.open(shop, create=False) as bank:
        return bank.runs.episode(run).summary


def test_a_log_that_comes_late_is_still_taken_in(shop: Path, fire: Fire, tmp_path: Path) -> None:
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    time.sleep(1.5)
    log.write("user", {"role": "user", "content": "Make the tests pass"})
    for call in CALLS:
        log.call(*call)
    _until(lambda: any("freezegun" in text for text in _lessons(shop)), "the late log was learnt from")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300_000])
def test_a_log_that_cannot_be_named_is_noted(shop: Path, fire: Fire, path: str) -> None:
    fire("session-start", "SessionStart", "s-1", shop, source="startup")
    fire("session-end", "SessionEnd", "s-1", shop, transcript_path=path)
    _until(lambda: bool(hook_log.read_log(_state(shop))), "it was noted")
    assert "claude-code after end: " in hook_log.read_log(_state(shop))[-1]
    _until(lambda: _status(shop, "s-1") == "partial", "the session was closed")


def _status(shop: Path, run: str) -> str:
    with Bank.open(shop, create=False) as bank:
        return bank.runs.episode(run).status.value


def _hurry(name: str, *words: str) -> None:
    """Do what was handed over, with less patience."""
    code = (
        f"import sys; from archivist.edges.hooks import follow_up as a; a.{name} = 0.3; a.main(sys.argv[1:])"
    )
    subprocess.run([sys.executable, "-c", code, *words], check=True)


def test_a_turn_without_a_log_is_noted(shop: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "never.jsonl")
    _hurry("_LONGEST_WAIT_S", "end", "claude-code", "s-1", missing, str(shop), str(shop))
    assert hook_log.read_log(_state(shop)) == []
    _hurry("_LONGEST_WAIT_S", "stop", "claude-code", "s-1", missing, str(shop), str(shop))
    assert "claude-code after stop: no log at " in hook_log.read_log(_state(shop))[-1]


def test_a_broken_global_bank_does_not_stop_the_learning(
    shop: Path, fire: Fire, tmp_path: Path, home: Path
) -> None:
    (home / ".archivist").mkdir(parents=True, exist_ok=True)
    (home / ".archivist" / "memory.db").write_bytes(os.urandom(4096))
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    log.write("user", {"role": "user", "content": "Make the tests pass"})
    for call in CALLS:
        log.call(*call)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    _until(lambda: any("freezegun" in text for text in _lessons(shop)), "the session was learnt from")
    assert "claude-code after end, the global bank: " in hook_log.read_log(_state(shop))[-1]


@pytest.mark.parametrize("content", [None, b"\xff\xfe not a log"])
@pytest.mark.parametrize("client", ["cursor", "gemini", "vscode", "codex"])
def test_a_session_that_has_ended_does_not_run_for_ever(
    shop: Path, client: str, content: bytes | None, tmp_path: Path
) -> None:
    said = {"session_id": "n-1", "sessionId": "n-1", "conversation_id": "n-1", "cwd": str(shop)}
    if content is not None:
        log = tmp_path / "log"
        log.write_bytes(content)
        said["transcript_path"] = str(log)
    program = str(Path(sys.executable).parent / "archivist")
    for moment in ("session-start", "stop", "session-end"):
        words = [program, "hook", client, moment]
        subprocess.run(words, input=json.dumps(said).encode(), cwd=shop, check=True, capture_output=True)
    _until(lambda: _status(shop, "n-1") == "partial", "the session was closed")


def test_work_that_waits_too_long_is_noted(shop: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no lock there")
    import fcntl

    _state(shop).mkdir(parents=True, exist_ok=True)
    with (_state(shop) / hook_log.LOCK_NAME).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _hurry("_LOCK_WAIT_S", "end", "codex", "n-1", "", str(shop), str(shop))
    assert "codex after end: another process held hooks.lock" in hook_log.read_log(_state(shop))[-1]


@pytest.mark.parametrize("content", [None, b"", b"{}\n" * 3, b"\xff\xfe not a log"])
def test_a_log_that_is_missing_or_no_log_harms_nothing(
    shop: Path, fire: Fire, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "gone.jsonl"
    if content is None:
        _hurry("_LONGEST_WAIT_S", "end", "claude-code", "s-1", str(path), str(shop), str(shop))
    else:
        path.write_bytes(content)
        fire("session-end", "SessionEnd", "s-1", path, reason="other")
    lock = _state(shop) / hook_log.LOCK_NAME
    _until(lock.exists, "the work began")
    fire("session-start", "SessionStart", "s-2", path, source="startup")
    if content:
        _until(lambda: bool(hook_log.read_log(_state(shop))), "the log was refused")
        assert "claude-code after end" in hook_log.read_log(_state(shop))[-1]


def test_what_a_subagent_did_is_taken_in_as_a_run_of_its_own(shop: Path, fire: Fire, tmp_path: Path) -> None:
    log = Transcript(tmp_path / "s-1.jsonl", "s-1", shop)
    log.write("user", {"role": "user", "content": "Let somebody make the tests pass"})
    log.call("git status", "nothing to commit", False)
    folder = tmp_path / "s-1" / "subagents"
    folder.mkdir(parents=True)
    helper = Transcript(folder / "agent-a1.jsonl", "s-1", shop, agent="a1")
    helper.write("user", {"role": "user", "content": "Make the tests pass"})
    for call in CALLS:
        helper.call(*call)
    fire("session-end", "SessionEnd", "s-1", log.path, reason="other")
    _until(lambda: any("freezegun" in text for text in _lessons(shop)), "the subagent was learnt from")
    with Bank.open(shop) as bank:
        assert (bank.runs.episode("s-1.a1").parent, bank.runs.episode("s-1").parent) == ("s-1", "")
