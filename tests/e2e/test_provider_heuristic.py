"""One provider's harness stops a heavy command where another lets it finish, and the next run is steered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.e2e import scripted_agent

AGENT = Path(scripted_agent.__file__)
TASK = "See whether the suite passes."
# Ten parts of a tenth of a second: never done within the limit as a whole, easily one by one.
PARTS = 10
PART = """import time
import unittest


class Part(unittest.TestCase):
    def test_it(self) -> None:
        time.sleep(0.1)
"""
LIMITS_S = {"claude-code": 0.95, "minimal": 30.0}


@pytest.fixture
def repo(tmp_path: Path, archivist: Command) -> Path:
    """Make a repository with a heavy suite and a bank."""
    folder = tmp_path / "millstone"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").touch()
    for number in range(PARTS):
        (folder / "tests" / f"test_part_{number}.py").write_text(PART, "utf-8")
    assert archivist("init", cwd=folder).code == 0
    return folder


def _work(repo: Path, provider: str, session: str, brief: str = "") -> tuple[bool, Path]:
    """Let the provider's agent work; return whether it did the task, and its log."""
    log = repo.parent / f"{session}.jsonl"
    words = ["verify", "--repo", str(repo), "--log", str(log), "--session", session, "--task", TASK]
    limits = ["--provider", provider, "--limit-s", str(LIMITS_S[provider]), "--brief", brief]
    done = subprocess.run(
        [sys.executable, str(AGENT), *words, *limits], timeout=90, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0, log


def _learn(archivist: Command, repo: Path, *logs: Path) -> None:
    for words in (("capture", *map(str, logs)), ("reflect", "--pending")):
        done = archivist(*words, cwd=repo)
        assert done.code == 0, done.err


def _lessons(archivist: Command, repo: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(archivist("lessons", "list", "--json", cwd=repo).out)["lessons"]
    return listed


@pytest.mark.req("A18")
def test_a_provider_that_times_out_where_another_does_well_is_steered(archivist: Command, repo: Path) -> None:
    for number in range(3):
        for provider, is_expected in (("minimal", True), ("claude-code", False)):
            is_done, log = _work(repo, provider, f"{provider}-{number}")
            assert is_done is is_expected
            _learn(archivist, repo, log)

    (quirk,) = [each for each in _lessons(archivist, repo) if each["category"] == "provider_quirk"]
    assert (quirk["scope"], quirk["provider"], quirk["repo"]) == ("provider", "claude-code", "millstone")
    assert quirk["status"] == "active"
    for word in ("unittest", "timed out", "claude-code", "minimal"):
        assert word in quirk["summary"]
    shown = {event.split("#")[0] for event in quirk["evidence"]["events"]}
    assert {"claude-code-1", "claude-code-2"} <= shown

    assert quirk["summary"] not in archivist("brief", "--task", TASK, "--provider", "minimal", cwd=repo).out
    told = archivist("brief", "--task", TASK, "--provider", "claude-code", cwd=repo).out
    assert quirk["summary"] in told
    is_done, log = _work(repo, "claude-code", "claude-code-told", told)
    assert is_done
    assert scripted_agent.WHOLE_SUITE not in log.read_text("utf-8").split(TASK, 1)[1]

    _learn(archivist, repo, log)
    (after,) = [each for each in _lessons(archivist, repo) if each["category"] == "provider_quirk"]
    assert "claude-code-told" not in after["runs"]


def _write_run(folder: Path, name: str, provider: str, *, has_timed_out: bool) -> Path:
    """Write a run that calls `bun run test:all` once."""
    log = folder / f"{name}.jsonl"
    slow: dict[str, object] = {
        "output": "Command timed out after 2m 0.0s",
        "exit_code": 143,
        "duration_ms": 120_000,
    }
    quick: dict[str, object] = {"output": "812 pass 0 fail", "exit_code": 0, "duration_ms": 95_000}
    call = {
        "kind": "tool_call",
        "tool": "bash",
        "text": "bun run test:all",
        **(slow if has_timed_out else quick),
    }
    start = f"2026-11-{10 + int(name[1:])}T10:0"
    events: list[dict[str, object]] = [
        {"kind": "message", "role": "user", "text": f"Get the suite green ({name})"},
        call,
        {"kind": "finish", "name": "failed" if has_timed_out else "success"},
    ]
    lines: list[dict[str, object]] = [
        {"episode": {"id": name, "project": "mill", "provider": provider, "kind": "subagent_run"}}
    ]
    lines += [{"run": name, "seq": at, "time": f"{start}{at}:00Z", **each} for at, each in enumerate(events)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return log


@pytest.mark.req("A12", "A18")
def test_a_subagents_query_by_tool_and_tag_names_the_time_out_and_offers_no_slow_command(
    archivist: Command, tmp_path: Path
) -> None:
    repo = tmp_path / "mill"
    repo.mkdir()
    assert archivist("init", cwd=repo).code == 0
    runs = {"c1": True, "m1": False, "c2": True, "m2": False, "c3": True}
    providers = {"c": "claude-code", "m": "minimal"}
    logs = [
        _write_run(tmp_path, name, providers[name[0]], has_timed_out=is_slow)
        for name, is_slow in runs.items()
    ]
    _learn(archivist, repo, *logs)

    def told(provider: str, *more: str) -> str:
        words = ("brief", "--for", "subagent", "--repo", "mill", "--provider", provider, *more)
        return archivist(*words, cwd=repo).out

    for more in (("--tool", "bash", "--tag", "timeout"), ("--tool", "bun"), ()):
        brief = told("claude-code", *more)
        assert "`bun run test:all` timed out 3 times with claude-code" in brief
        assert "Commands here" not in brief
    for more in (("--tool", "bash", "--tag", "timeout"), (), ("--max", "9", "--budget", "2000")):
        brief = told("minimal", *more)
        assert "timed out" not in brief
        assert "Commands here: test `bun run test:all`" in brief
    issues = archivist("brief", "--provider", "minimal", "--format", "known-issues", cwd=repo).out
    assert "timed out" not in issues


@pytest.mark.req("A18")
def test_a_command_that_is_too_slow_for_everybody_is_no_providers_quirk(
    archivist: Command, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS_S, "minimal", LIMITS_S["claude-code"])
    for number in range(2):
        logs = [_work(repo, provider, f"{provider}-{number}")[1] for provider in LIMITS_S]
        _learn(archivist, repo, *logs)
    assert [each for each in _lessons(archivist, repo) if each["category"] == "provider_quirk"] == []
