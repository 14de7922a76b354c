"""The events of runs go out when asked for, come back, and can be erased from the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from archivist.exchange.files import LessonFormat
from archivist.records import Event
from tests.banks import fresh_bank
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log


def _log(path: Path, run: str, output: str) -> Path:
    return agent_log(path, [("make", output, True), ("make all", "built", False)], session=run)


def _events(bank: Bank) -> list[Event]:
    with bank.reading() as reader:
        return reader.select(Event, order=("run", "seq"))


@pytest.mark.req("N10")
def test_events_go_out_when_asked_for_and_come_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with fresh_bank(tmp_path / "one") as bank:
        for run in ("r-1", "r-2"):
            bank.runs.capture_file(_log(tmp_path / f"{run}.jsonl", run, "boom"))
        assert "events.jsonl" not in bank.exchange.export(out)
        assert not (out / "events.jsonl").exists()
        told = _events(bank)
        assert bank.exchange.export(out, has_events=True)["events.jsonl"] == len(told) > 2
        back = bank.exchange.import_files([out / "events.jsonl", out / "episodes.jsonl"], is_approved=True)
        assert not back.created
        assert _events(bank) == told
        # The next export to the same folder keeps them up to date.
        bank.runs.capture_file(_log(tmp_path / "r-3.jsonl", "r-3", "boom"))
        assert bank.exchange.export(out)["events.jsonl"] > len(told)
        told = _events(bank)
    with fresh_bank(tmp_path / "two") as other:
        files = sorted(each for each in out.iterdir() if each.stat().st_size)
        done = other.exchange.import_files(files)
        assert (done.problems, done.created["events"], done.created["episodes"]) == ((), len(told), 3)
        assert _events(other) == told
        assert not other.exchange.import_files(files).created
        assert not [*other.reflections.reflect_waiting()]


@pytest.mark.req("N10")
def test_what_reflections_noted_on_runs_comes_back_when_it_is_vouched_for(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "one") as bank:
        for run in ("r-1", "r-2", "r-3"):
            bank.runs.finish(_log(tmp_path / f"{run}.jsonl", run, "boom"))
        bank.exchange.export(tmp_path / "out")
        told = {each.id: (each.number, each.extra["reflection"]) for each in bank.runs.episodes()}
    assert sorted(number for number, _ in told.values() if number) == [1, 2, 3]
    files = [tmp_path / "out" / "episodes.jsonl"]
    with fresh_bank(tmp_path / "two") as other:
        assert other.exchange.import_files(files).left == {"notes of runs": 3}
        assert not any(each.number or "reflection" in each.extra for each in other.runs.episodes())
        assert not other.exchange.import_files(files, is_approved=True).left
        assert {each.id: (each.number, each.extra["reflection"]) for each in other.runs.episodes()} == told


def test_a_file_changes_no_event_that_the_bank_captured(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "one") as bank:
        bank.runs.capture_file(_log(tmp_path / "a.jsonl", "r-1", "boom"))
        told = _events(bank)
        bank.exchange.export(tmp_path / "out", has_events=True)
        path = tmp_path / "out" / "events.jsonl"
        path.write_text(path.read_text().replace("boom", "bang"))
        files = [path, tmp_path / "out" / "episodes.jsonl"]
        for is_approved in (False, True):
            bank.exchange.import_files(files, is_approved=is_approved)
        assert _events(bank) == told


def test_a_bad_event_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"run": "r", "seq": 1, "kind": "dance"}) + "\n")
    with fresh_bank(tmp_path / "one") as bank:
        (problem,) = bank.exchange.import_files([path]).problems
    assert "dance" in problem.reason


def test_erasing_reaches_the_exported_events(archivist: Command, project: Path) -> None:
    archivist("init")
    _log(project / "a.jsonl", "r-1", "Marmalade 7741")
    _log(project / "b.jsonl", "r-2", "boom")
    archivist("capture", "a.jsonl", "b.jsonl")
    assert "events.jsonl" in archivist("export", "out", "--events").out
    path = project / "out" / "events.jsonl"
    assert "Marmalade" in path.read_text()
    assert archivist("erase", "--matching", "Marmalade 7741", "--yes").code == 0
    assert "Marmalade" not in path.read_text()
    assert archivist("erase", "r-2", "--yes").code == 0
    assert {json.loads(line)["run"] for line in path.read_text().splitlines()} == {"r-1"}


@pytest.mark.req("A3")
def test_an_export_comes_back_without_loss(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "one") as bank:
        for number, project in enumerate(("billing", "other", "billing", "other", "other", "billing")):
            # Only the first two runs meet the failure, so that later ones count as unseen.
            calls = (
                MISSING_MODULE if number < 2 else [("make", "built", False), ("pytest -q", "1 passed", False)]
            )
            log = agent_log(tmp_path / f"{number}.jsonl", calls, session=f"s-{number}", project=project)
            bank.runs.finish(log)
        bank.exchange.export(tmp_path / "out", shape=LessonFormat.REFLECTIVE)
    lines = [json.loads(line) for line in (tmp_path / "out" / "lessons.jsonl").read_text().splitlines()]
    assert sorted(line["runsSinceLastSeen"] for line in lines) == [2, 2]
    assert all(line["evidence"]["runLogPaths"] for line in lines)
    with fresh_bank(tmp_path / "two") as other:
        files = [each for each in (tmp_path / "out").iterdir() if each.stat().st_size]
        other.exchange.import_files(sorted(files), is_approved=True)
        other.exchange.export(tmp_path / "back", shape=LessonFormat.REFLECTIVE)
    for path in (tmp_path / "out").iterdir():
        assert (tmp_path / "back" / path.name).read_text() == path.read_text()
