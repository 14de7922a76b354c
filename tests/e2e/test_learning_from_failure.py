"""A scripted agent mends a repository over several runs, and what one run learns the next one is told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.records import Event, Lesson
from tests.conftest import Command
from tests.e2e import scripted_agent

AGENT = Path(scripted_agent.__file__)
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "learn-from-runs.md"
# The suite asks for a coverage plugin that is not there: any newcomer's first command fails.
REFUSED = "unrecognized arguments: --cov=cart"
REMEDY = "python -m pytest -q -o addopts="
NEWCOMER_CALLS = 8
SHORT_CALLS = 5

FILES = {
    "pytest.ini": "[pytest]\naddopts = --cov=cart\n",
    "conftest.py": "",
    "CONTRIBUTING.md": f"Tests report their coverage. Without the coverage plugin: `{REMEDY}`\n",
    "cart.py": (
        "def total(prices: list[int], discount: int = 0) -> int:\n    return sum(prices)\n\n\n"
        "def tax(net: int, rate: int) -> int:\n    return net * rate // 100\n\n\n"
        "def shipping(prices: list[int]) -> int:\n    return 5\n"
    ),
    "tests/test_cart.py": (
        "from cart import shipping, tax, total\n\n\n"
        "def test_total_takes_the_discount_off() -> None:\n    assert total([3, 4], discount=2) == 5\n\n\n"
        "def test_tax_is_rounded_up() -> None:\n    assert tax(101, 10) == 11\n\n\n"
        "def test_an_empty_cart_costs_nothing_to_ship() -> None:\n    assert shipping([]) == 0\n"
    ),
}
TASKS = [
    f"Make tests/test_cart.py::test_{name} pass."
    for name in ("total_takes_the_discount_off", "tax_is_rounded_up", "an_empty_cart_costs_nothing_to_ship")
]


@pytest.fixture
def repo(tmp_path: Path, archivist: Command) -> Path:
    """Make a repository with three failing tests and a bank."""
    folder = tmp_path / "cartwheel"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert archivist("init", cwd=folder).code == 0
    return folder


def _work(
    repo: Path, session: str, task: str, *, brief: str = "", calls: int = NEWCOMER_CALLS
) -> tuple[bool, Path]:
    """Let the agent work; return whether it did the task, and its log."""
    log = repo.parent / f"{session}.jsonl"
    words = ["mend", "--repo", str(repo), "--log", str(log), "--session", session, "--task", task]
    limits = ["--calls", str(calls), "--brief", brief]
    done = subprocess.run(
        [sys.executable, str(AGENT), *words, *limits], timeout=60, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0, log


def _learn(archivist: Command, repo: Path, log: Path) -> Any:
    """Capture a log and reflect on it, as a hook or a person would."""
    captured = archivist("capture", str(log), "--json", cwd=repo)
    assert captured.code == 0, captured.err
    reflected = archivist("reflect", "--pending", "--json", cwd=repo)
    assert reflected.code == 0, reflected.err
    return json.loads(reflected.out)


def _learn_from_two_runs(archivist: Command, repo: Path) -> None:
    for number, task in enumerate(TASKS[:2], 1):
        is_done, log = _work(repo, f"run-{number}", task)
        assert is_done
        assert REFUSED in log.read_text("utf-8")
        _learn(archivist, repo, log)


@pytest.mark.req("A17", "N1")
def test_the_third_run_is_told_and_avoids_what_the_first_two_met(archivist: Command, repo: Path) -> None:
    assert archivist("brief", "--task", TASKS[0], cwd=repo).out == ""
    _learn_from_two_runs(archivist, repo)

    told = archivist("brief", "--task", TASKS[2], "--run", "run-3", cwd=repo).out
    assert REFUSED in told
    assert f"`{REMEDY} <test>`" in told
    assert REMEDY in archivist("run", "start", "--run", "run-3", "--task", TASKS[2], cwd=repo).out

    untold = shutil.copytree(repo, repo.parent / "untold" / "cartwheel")
    is_done_untold, log_untold = _work(untold, "run-3-untold", TASKS[2], calls=SHORT_CALLS)
    assert not is_done_untold
    assert REFUSED in log_untold.read_text("utf-8")

    is_done, log = _work(repo, "run-3", TASKS[2], brief=told, calls=SHORT_CALLS)
    assert is_done
    answers = [
        line for line in map(json.loads, log.read_text("utf-8").splitlines()) if "tool_use_result" in line
    ]
    assert answers
    assert REFUSED not in json.dumps(answers)
    suite = subprocess.run([sys.executable, *REMEDY.split()[1:]], cwd=repo, capture_output=True, text=True)
    assert suite.returncode == 0, suite.stdout

    finished = archivist("run", "finish", str(log), "--run", "run-3", "--json", cwd=repo)
    (run,) = json.loads(finished.out)["runs"]
    assert [verdict["effect"] for verdict in run["verdicts"]] == ["helpful"]


@pytest.mark.req("A17", "N1")
def test_the_lesson_says_what_failed_what_helped_and_where_it_was_seen(
    archivist: Command, repo: Path
) -> None:
    _learn_from_two_runs(archivist, repo)
    with Bank.open(repo, create=False) as bank, bank.reading() as reader:
        (lesson,) = reader.select(Lesson)
        seen = {event.id: event for event in reader.select(Event)}
    assert (lesson.status, lesson.runs, lesson.repo) == ("active", ("run-1", "run-2"), "cartwheel")
    assert lesson.rule.startswith("IF ")
    assert REMEDY in lesson.rule
    shown = [seen[name] for name in lesson.evidence.events]
    assert {event.run for event in shown} == {"run-1", "run-2"}
    assert any(REFUSED in event.output for event in shown)
    assert any(REMEDY in event.text and event.exit_code == 0 for event in shown)


@pytest.mark.req("N3")
def test_a_brief_in_a_prompt_is_stripped_and_nothing_is_learnt_from_it(
    archivist: Command, repo: Path
) -> None:
    _learn_from_two_runs(archivist, repo)
    before = archivist("lessons", "list", "--all", cwd=repo).out
    told = archivist("brief", "--task", TASKS[2], "--run", "run-3", cwd=repo).out
    _, log = _work(repo, "run-3", TASKS[2], brief=told)
    assert REFUSED in log.read_text("utf-8")

    learnt = _learn(archivist, repo, log)
    assert (learnt["created"], learnt["updated"]) == (0, 0)
    assert archivist("lessons", "list", "--all", cwd=repo).out == before
    with Bank.open(repo, create=False) as bank, bank.reading() as reader:
        assert bank.runs.episode("run-3").task.strip() == TASKS[2]
        texts = [f"{event.text}\n{event.output}" for event in reader.select(Event) if event.run == "run-3"]
    assert texts
    assert not [text for text in texts if REFUSED in text or "Project Lessons" in text]


def test_the_guides_python_example_runs(
    archivist: Command, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, log = _work(repo, "run-1", TASKS[0])
    log.rename(repo / log.name)
    monkeypatch.chdir(repo)
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    exec(compile(block, GUIDE.name, "exec"), {})  # noqa: S102
    assert "reflection_complete" in capsys.readouterr().out
    assert REMEDY in archivist("brief", "--task", TASKS[1], cwd=repo).out
