"""A scripted coding agent, run as a process of its own: real commands, real edits, a log of both.

It knows one trade, mending a small repository, and nothing about the repository: how the tests are run it
learns by trying, by reading the project's notes, or from the brief in its prompt. What it writes down is what
the commands really printed. It may make only so many calls, as a real one may use only so many turns.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
WHOLE_SUITE = "python -m unittest discover -s tests -t ."
_IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"\s*<\w+>")
_TEST = re.compile(r"tests/\w+\.py::test_(?P<name>\w+)")
_USAGE_ERROR = 4
_TERMINATED = 143
# What a programmer would see at once in the code: the mistake behind each test, and its correction.
_MISTAKES = {
    "total_takes_the_discount_off": ("return sum(prices)", "return sum(prices) - discount"),
    "tax_is_rounded_up": ("return net * rate // 100", "return -(-net * rate // 100)"),
    "an_empty_cart_costs_nothing_to_ship": ("return 5", "return 5 if prices else 0"),
}


class OutOfCallsError(Exception):
    """The agent has used up its calls."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gave back."""

    output: str
    exit_code: int = 0
    is_timeout: bool = False


class Log(Protocol):
    """Somewhere to write what happens."""

    def begin(self, prompt: str) -> None:
        """Write how the run began."""

    def call(self, tool: str, given: Mapping[str, str], answer: Answer, seconds: float) -> None:
        """Write a tool call and what came back."""

    def end(self, subtype: str, words: str) -> None:
        """Write how the run ended."""


class ClaudeCodeLog:
    """Lines as `claude -p --output-format stream-json` prints them."""

    def __init__(self, path: Path, session: str, repo: Path) -> None:
        self._path = path
        self._session = session
        self._repo = repo
        self._calls = 0

    def begin(self, prompt: str) -> None:
        """Write the opening line and the prompt."""
        self._write(
            "system", subtype="init", cwd=str(self._repo), model="claude-sonnet-4-5", tools=["Bash", "Edit"]
        )
        self._write("user", message={"role": "user", "content": prompt})

    def call(self, tool: str, given: Mapping[str, str], answer: Answer, seconds: float) -> None:
        """Write the assistant's line and the user's line that answers it."""
        self._calls += 1
        name = f"toolu_{self._calls:03d}"
        use = {"type": "tool_use", "id": name, "name": tool, "input": dict(given)}
        self._write(
            "assistant", message={"role": "assistant", "model": "claude-sonnet-4-5", "content": [use]}
        )
        is_error = answer.exit_code != 0
        frame = f"Exit code {answer.exit_code}\n" if is_error else ""
        result = {
            "type": "tool_result",
            "tool_use_id": name,
            "content": frame + answer.output,
            "is_error": is_error,
        }
        self._write(
            "user",
            message={"role": "user", "content": [result]},
            tool_use_result={"durationMs": round(seconds * 1000)},
        )

    def end(self, subtype: str, words: str) -> None:
        """Write the result line."""
        said = [{"type": "text", "text": words}]
        self._write("assistant", message={"role": "assistant", "model": "claude-sonnet-4-5", "content": said})
        is_error = subtype != "success"
        self._write("result", subtype=subtype, is_error=is_error, result=words, num_turns=self._calls)

    def _write(self, kind: str, **fields: Any) -> None:
        line = {"type": kind, "session_id": self._session, "timestamp": _now(), **fields}
        _append(self._path, line)


class StreamLog:
    """Lines of Archivist's own stream, for an agent whose provider no log format names."""

    def __init__(self, path: Path, session: str, repo: Path, provider: str) -> None:
        self._path = path
        self._session = session
        self._repo = repo
        self._provider = provider
        self._seq = 0

    def begin(self, prompt: str) -> None:
        """Write what the run is, and the prompt."""
        episode = {
            "id": self._session,
            "provider": self._provider,
            "project": self._repo.name,
            "started": _now(),
        }
        _append(self._path, {"episode": episode})
        self._write(kind="message", role="user", text=prompt)

    def call(self, tool: str, given: Mapping[str, str], answer: Answer, seconds: float) -> None:
        """Write a tool call and what came back."""
        self._write(
            kind="tool_call",
            tool=tool,
            text=given.get("command", ""),
            output=answer.output,
            exit_code=answer.exit_code,
            is_error=answer.exit_code != 0,
            duration_s=seconds,
        )

    def end(self, subtype: str, words: str) -> None:
        """Write how it ended."""
        status = "success" if subtype == "success" else "failed"
        self._write(kind="finish", name=status, text=words)

    def _write(self, **fields: Any) -> None:
        self._seq += 1
        _append(self._path, {"run": self._session, "seq": self._seq, "time": _now(), **fields})


class Agent:
    """The tools, each call of which goes into the log."""

    def __init__(self, repo: Path, log: Log, calls: int, limit_s: float) -> None:
        self._repo = repo
        self._log = log
        self._left = calls
        self._limit_s = limit_s

    def bash(self, command: str) -> Answer:
        """Run a command, and stop it when it takes too long."""
        started = time.monotonic()
        child = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._repo,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate(timeout=self._limit_s)
            answer = Answer(output, child.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 15)
            output, _ = child.communicate()
            answer = Answer(
                f"Command timed out after {self._limit_s:g}s\n{output}", _TERMINATED, is_timeout=True
            )
        return self._logged("Bash", {"command": command}, answer, started)

    def edit(self, file: str, old: str, new: str) -> Answer:
        """Replace one piece of a file."""
        started = time.monotonic()
        path = self._repo / file
        text = path.read_text("utf-8")
        answer = Answer("String to replace not found in file.", 1)
        if old in text:
            path.write_text(text.replace(old, new, 1), "utf-8")
            answer = Answer(f"The file {path} has been updated.")
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        return self._logged("Edit", given, answer, started)

    def _logged(self, tool: str, given: Mapping[str, str], answer: Answer, started: float) -> Answer:
        self._log.call(tool, given, answer, time.monotonic() - started)
        self._left -= 1
        if self._left == 0:
            raise OutOfCallsError
        return answer


def mend(agent: Agent, brief: str, task: str) -> str:
    """Make the test that the task names pass: run it, read, edit, run it again."""
    test = _TEST.search(task)
    mistake = _MISTAKES[test["name"]] if test else ("", "")
    where = test.group() if test else ""
    command = told_command(brief, "pytest") or "python -m pytest -q"
    answer = agent.bash(f"{command} {where}")
    if answer.exit_code == _USAGE_ERROR:
        agent.bash("ls -a")
        notes = agent.bash("cat CONTRIBUTING.md")
        command = told_command(notes.output, "pytest") or command
        agent.bash(f"{command} {where}")
    agent.bash("cat cart.py")
    agent.edit("cart.py", *mistake)
    answer = agent.bash(f"{command} {where}")
    return "success" if answer.exit_code == 0 else "error_during_execution"


def verify(agent: Agent, brief: str, provider: str) -> str:
    """See whether the suite passes: as a whole, or in parts when the brief warns this provider."""
    is_warned = any(
        provider in line and "unittest" in line and "timed out" in line for line in brief.splitlines()
    )
    if is_warned:
        parts = agent.bash("ls tests").output.split()
        names = [part.removesuffix(".py") for part in parts if part.startswith("test_")]
        answers = [agent.bash(f"python -m unittest tests.{name}") for name in names]
    else:
        answers = [agent.bash(WHOLE_SUITE)]
        if answers[0].is_timeout:
            answers = [agent.bash(WHOLE_SUITE)]
    is_good = all(answer.exit_code == 0 for answer in answers)
    return "success" if is_good else "error_during_execution"


def told_command(text: str, program: str) -> str:
    """Return the last whole command for a program that a text shows in backticks."""
    shown = [each for each in _IN_BACKTICKS.findall(text) if program in each.split()]
    # A brief leaves out what belonged to another run: `pytest <test>`.
    return _PLACEHOLDER.sub("", shown[-1]) if shown else ""


def main() -> int:
    """Work on one task and leave a log; exit 1 when it was not done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=["mend", "verify"])
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--brief", default="", help="what memory says, put before the task")
    parser.add_argument("--provider", default="claude-code")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--limit-s", type=float, default=60.0)
    given = parser.parse_args()
    log: Log = ClaudeCodeLog(given.log, given.session, given.repo)
    if given.provider != "claude-code":
        log = StreamLog(given.log, given.session, given.repo, given.provider)
    log.begin(f"{given.brief}\n{given.task}" if given.brief else given.task)
    agent = Agent(given.repo, log, given.calls, given.limit_s)
    try:
        how = (
            mend(agent, given.brief, given.task)
            if given.job == "mend"
            else verify(agent, given.brief, given.provider)
        )
    except OutOfCallsError:
        how = "error_max_turns"
    log.end(how, "Done." if how == "success" else "Not done.")
    return 0 if how == "success" else 1


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, **ENVIRONMENT, "PATH": path}


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _append(path: Path, line: Mapping[str, object]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())
