"""The same question has the same answer at the command line, over HTTP and by a tool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from archivist import Bank
from archivist.capture.service import CaptureOverrides
from archivist.edges import views
from archivist.errors import NotFoundError
from tests.commands import Command
from tests.edges.http_server import serving
from tests.samples import MISSING_MODULE, agent_log

Ask = Callable[..., Any]


@pytest.fixture
def ask(bank_cli: Command, project: Path) -> Ask:
    """Return the JSON that a command prints in a project whose bank knows something of every kind."""

    def ask(*words: str) -> Any:
        ran = bank_cli(*words)
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    ask("lessons", "add", "Round invoices half up", "--tag", "money", "--json")
    log = agent_log(project.parent / "s-1.jsonl", MISSING_MODULE, session="s-1")
    ask("run", "finish", str(log), "--json")
    ask("knowledge", "set", "convention", "rounding", "half up", "--json")
    ask("episodes", "log", "Fix it", "--agent", "ada", "--action", "failed", "--approach", "guess", "--json")
    ask("stream", "log", "Rounded invoices", "--cycle", "3", "--json")
    return ask


@pytest.fixture
def http(ask: Ask, project: Path) -> Iterator[httpx.Client]:  # noqa: ARG001 it fills the bank
    """Come in over HTTP to the same bank."""
    with serving(project, "--quiet") as served, served.client() as client:
        yield client


def test_a_brief_is_the_same_in_every_door(ask: Ask, http: httpx.Client) -> None:
    for fields in (
        {},
        {"format": "known-issues"},
        {"task": "Round the invoice"},
        {"domain": "code"},
        {"repo": "billing", "format": "yaml"},
    ):
        words = [word for name, value in fields.items() for word in (f"--{name}", value)]
        by_command = ask("brief", *words, "--json")
        assert bool(by_command["lessons"]) is not bool(by_command["why_no_lesson"])
        assert http.post("/api/brief", json=fields).json() == by_command
        if "format" not in fields and "domain" not in fields:
            by_tool = ask("tools", "call", "brief", json.dumps(fields))
            assert by_tool == {
                "text": by_command["text"],
                "lessons": [lesson["id"] for lesson in by_command["lessons"]],
            }


@pytest.mark.req("N9")
def test_every_door_means_the_project_of_the_folder_whatever_is_asked(
    bank_cli: Command, project: Path
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    for name in (project.name, "vase"):
        log = agent_log(project.parent / f"{name}.jsonl", MISSING_MODULE, session=name)
        assert bank_cli("run", "finish", str(log), "--repo", name).code == 0
    bank_cli("lessons", "add", "Round invoices half up", "--repo", project.name, "--domain", "code")
    with serving(project, "--quiet") as served, served.client() as client:
        asked: list[dict[str, Any]] = [{}, {"task": "Run the checks"}, {"domain": "code"}]
        for fields in (*asked, {"domain": "review", "role": "qa"}):
            words = [word for name, value in fields.items() for word in (f"--{name}", value)]
            by_command = bank_cli("brief", *words)
            told = client.post("/api/brief", json=fields).json()
            assert ("Round invoices" in by_command.out) is ("role" not in fields), (fields, by_command.err)
            with Bank.open(project) as bank:
                by_python = bank.brief(**fields)
            assert by_command.out == told["text"] == by_python.text
            assert told["why_no_lesson"] == by_python.why_no_lesson
            why = by_python.why_no_lesson
            assert by_command.err == (f"nothing to tell: {why}\n" if why else "")
            if "domain" not in fields:
                assert client.post("/api/tools/brief", json=fields).json()["text"] == told["text"]
        answer = client.post("/api/tools/brief", json={"repo": "nobody"}).json()
        assert (answer["text"], "this is about nobody" in answer["why_no_lesson"]) == ("", True)


def test_a_run_is_started_by_the_same_brief(ask: Ask, http: httpx.Client) -> None:
    by_command = ask("run", "start", "--run", "r-1", "--task", "Round the invoice", "--json")
    over_http = http.post("/api/runs", json={"run": "r-2", "task": "Round the invoice"}).json()
    assert by_command.keys() == over_http.keys()
    names = [[lesson["id"] for lesson in each["lessons"]] for each in (by_command, over_http)]
    assert names[0] == names[1] != []
    # The fence names the brief's record; the rest of the text is the same.
    assert by_command["text"].splitlines()[1:] == over_http["text"].splitlines()[1:]


# A command, the route of the same, and the key of the answer there; without one it is the whole answer.
SAME = [
    (["lessons", "show", "m-001"], "/api/lessons/m-001", "lesson"),
    (["lessons", "history", "m-001"], "/api/lessons/m-001/history", "history"),
    (["recall", "round invoices"], "/api/recall?query=round+invoices", "hits"),
    (["episodes", "show", "s-1"], "/api/runs/s-1", "run"),
    (["episodes", "failures"], "/api/memory/episodes", "episodes"),
    (["knowledge", "list"], "/api/memory/knowledge", "knowledge"),
    (["stream", "list"], "/api/stream", "entries"),
    (["audit", "report"], "/api/audit/report", "lessons"),
    (["core", "show"], "/api/core", ""),
]


def test_a_record_has_the_same_view_in_both_doors(ask: Ask, http: httpx.Client) -> None:
    for words, path, key in SAME:
        by_command = ask(*words, "--json")
        answer = http.get(path).json()
        over_http = answer[key] if key else answer
        assert over_http == by_command or over_http in by_command.values(), words


def test_the_parts_of_a_score_are_the_same_a_few_seconds_later(bank: Bank) -> None:
    told = bank.lessons.add("Round invoices half up")

    def hits_after(seconds: int) -> list[views.View]:
        with Bank.open(bank.path, clock=lambda: told.created + timedelta(seconds=seconds)) as later:
            return [views.hit_view(hit) for hit in later.recall("round invoices").hits]

    assert hits_after(1) == hits_after(4) == hits_after(8) != []


@pytest.mark.req("N9")
def test_a_run_that_nobody_started_is_finished_by_its_log_alone(
    ask: Ask, bank_cli: Command, project: Path
) -> None:
    assert ask("status", "--json")["runs"] == 1
    refused = bank_cli("run", "finish", "--run", "r-none")
    assert (refused.code, "no run 'r-none'" in refused.err, "name its log" in refused.err) == (3, True, True)
    with Bank.open(project) as bank, pytest.raises(NotFoundError):
        bank.runs.finish(overrides=CaptureOverrides(run="r-none"))
    with serving(project, "--quiet") as served, served.client() as client:
        assert client.post("/api/runs/r-none/finish", json={}).status_code == 404
        event = {"type": "review.verdict", "data": {"archetype": "guardian", "findings": []}}
        assert client.post("/api/runs/r-2/finish", json={"events": [event]}).status_code == 200
        assert client.post("/api/runs/r-2/finish", json={}).status_code == 200
    log = agent_log(project.parent / "s-3.jsonl", MISSING_MODULE, session="s-3")
    assert bank_cli("run", "finish", "--run", "r-3", str(log)).code == 0


@pytest.mark.req("N9")
def test_a_run_that_is_finished_in_another_project_than_it_was_started_in_is_told(
    bank_cli: Command, project: Path
) -> None:
    assert bank_cli("run", "start", "--run", "Q1", "--repo", "vs").code == 0
    log = agent_log(project.parent / "q.jsonl", MISSING_MODULE, session="q")
    done = bank_cli("run", "finish", "--run", "Q1", "--repo", "vss", str(log))
    assert "Q1 was started in project vs, and is filed under vss, as it was named" in done.err
    again = bank_cli("run", "finish", "--run", "Q1", "--repo", "vss", str(log))
    assert "was started" not in again.err
