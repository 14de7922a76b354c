"""Taking logs in: once, whole, and again when they have grown."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from archivist import Bank
from archivist.capture.service import CaptureOverrides
from archivist.errors import InputError
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Lesson
from archivist.records.run_words import UNREAD
from archivist.store.filters import equals
from tests.samples import agent_log, finding, reviewed, run_lines, write_jsonl


def _log(path: Path, calls: int, *, is_ended: bool = False) -> Path:
    steps = [(f"make step-{number}", f"done {number}", False) for number in range(calls)]
    return agent_log(path, steps, is_ended=is_ended)


def _calls(bank: Bank, run: str) -> list[str]:
    with bank.reading() as reader:
        events = reader.select(Event, equals("run", run), equals("kind", EventKind.TOOL_CALL), order=("seq",))
        return [event.text for event in events]


@pytest.mark.req("A1", "N9")
def test_a_log_becomes_an_episode_with_events_that_waits_for_reflection(bank: Bank, tmp_path: Path) -> None:
    taken = bank.runs.capture_file(_log(tmp_path / "a.jsonl", 3, is_ended=True))
    (episode,) = taken.episodes
    assert (episode.id, episode.status, episode.project) == ("s-1", EpisodeStatus.SUCCESS, "billing")
    assert episode.usage is not None
    assert episode.usage.cost_usd == 0.5
    assert _calls(bank, "s-1") == ["make step-0", "make step-1", "make step-2"]
    assert [each.run for each in bank.reflections.waiting_runs()] == ["s-1"]
    assert bank.ledger.verify().is_whole


def test_the_same_file_again_changes_nothing(bank: Bank, tmp_path: Path) -> None:
    path = _log(tmp_path / "a.jsonl", 3)
    bank.runs.capture_file(path)
    entries = bank.ledger.verify().entries
    assert bank.runs.capture_file(path).is_unchanged
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    assert bank.runs.capture_file(copy).is_unchanged
    assert bank.ledger.verify().entries == entries


def test_a_longer_version_adds_what_is_new(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bank.runs.capture_file(_log(path, 2))
    again = bank.runs.capture_file(_log(path, 4, is_ended=True))
    assert again.is_unchanged is False
    assert again.changed < again.events + 2
    assert _calls(bank, "s-1") == [f"make step-{number}" for number in range(4)]
    assert bank.doctor.status()["runs"] == 1
    assert bank.runs.episode("s-1").status is EpisodeStatus.SUCCESS


def test_the_caller_may_know_better(bank: Bank, tmp_path: Path) -> None:
    path = _log(tmp_path / "a.jsonl", 1, is_ended=True)
    taken = bank.runs.capture_file(
        path, overrides=CaptureOverrides(run="mine", project="o/r", status=EpisodeStatus.FAILED)
    )
    (episode,) = taken.episodes
    assert (episode.id, episode.project, episode.status) == ("mine", "o/r", EpisodeStatus.FAILED)
    again = bank.runs.capture_file(path, overrides=CaptureOverrides(outcomes={"s-1": EpisodeStatus.PARTIAL}))
    assert again.episodes[0].status is EpisodeStatus.PARTIAL


def test_what_cannot_be_read_is_counted(bank: Bank, tmp_path: Path) -> None:
    path = _log(tmp_path / "a.jsonl", 2)
    path.write_text(path.read_text() + '{"type": "assistant", "mess')
    taken = bank.runs.capture_file(path)
    assert taken.skipped == 1
    assert len(taken.reasons) == 1


_FIXTURES = Path(__file__).parents[1] / "fixtures" / "capture"


def _records(bank: Bank) -> list[object]:
    with bank.reading() as reader:
        return [*reader.select(Episode, order=("id",)), *reader.select(Event, order=("run", "seq"))]


@pytest.mark.req("A1", "N9")
@pytest.mark.parametrize("name", sorted(path.name for path in _FIXTURES.iterdir()))
@pytest.mark.parametrize("share", [0.6, 0.95, "broken line"])
def test_a_damaged_copy_takes_nothing_from_a_run_that_is_known(
    bank: Bank, tmp_path: Path, name: str, share: float | str
) -> None:
    data = (_FIXTURES / name).read_bytes()
    bank.runs.capture_file(_FIXTURES / name)
    before = _records(bank)
    if isinstance(share, float):
        damaged = data[: int(len(data) * share)]
    else:
        *before_it, line, last = data.splitlines(keepends=True) if data.count(b"\n") > 1 else (data, b"")
        damaged = b"".join([*before_it, line[: len(line) // 2] + b"\n", last])
    (tmp_path / name).write_bytes(damaged)
    with suppress(InputError):
        bank.runs.capture_file(tmp_path / name)
    assert _records(bank) == before
    assert bank.ledger.verify().is_whole


def test_a_cut_copy_says_so_and_the_whole_log_after_it_counts(bank: Bank, tmp_path: Path) -> None:
    whole = _log(tmp_path / "a.jsonl", 3, is_ended=True)
    cut = tmp_path / "b.jsonl"
    cut.write_bytes(whole.read_bytes()[:-300])
    first = bank.runs.capture_file(cut)
    assert (first.is_cut, first.shorter) == (True, ())
    assert first.episodes[0].status is EpisodeStatus.PARTIAL
    assert UNREAD in first.episodes[0].extra
    (episode,) = bank.runs.capture_file(whole).episodes
    assert (episode.status, UNREAD in episode.extra) == (EpisodeStatus.SUCCESS, False)
    cut.write_bytes(whole.read_bytes()[:-310])
    again = bank.runs.capture_file(cut)
    assert (again.shorter, again.changed) == (("s-1",), 0)
    assert _calls(bank, "s-1") == [f"make step-{number}" for number in range(3)]
    known = CaptureOverrides(status=EpisodeStatus.FAILED)
    assert bank.runs.capture_file(cut, overrides=known).episodes[0].status is EpisodeStatus.FAILED


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00\xff" * 50, b"{}", b"[]"])
def test_a_file_of_no_known_format_is_refused(bank: Bank, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError):
        bank.runs.capture_file(path)
    assert bank.doctor.status()["runs"] == 0


@pytest.mark.req("N9")
def test_a_captured_run_is_written_as_atif_and_read_back(bank: Bank, tmp_path: Path) -> None:
    bank.runs.capture_file(_log(tmp_path / "a.jsonl", 3, is_ended=True))
    out = bank.runs.to_atif("s-1")
    assert str(out["schema_version"]).startswith("ATIF-v1.")
    path = tmp_path / "run.atif.json"
    path.write_text(json.dumps(out))
    taken = bank.runs.capture_file(path, overrides=CaptureOverrides(run="back"))
    assert taken.episodes[0].id == "back"
    assert _calls(bank, "back") == _calls(bank, "s-1")


# One way in


def _review(path: Path, run: str) -> Path:
    found = [
        {"severity": "bug", "description": "SQL is built from strings in the search"},
        {"severity": "warning", "description": "Missing null checks in response handlers"},
    ]
    return write_jsonl(path, run_lines(run, *found))


def _summaries(bank: Bank) -> list[str]:
    with bank.reading() as reader:
        return sorted(lesson.summary for lesson in reader.select(Lesson))


@pytest.mark.req("F3", "N9")
def test_captured_reviews_teach_the_same_when_they_are_reflected_on_and_when_they_are_finished(
    bank: Bank, tmp_path: Path
) -> None:
    bank.runs.capture_file(_review(tmp_path / "a.jsonl", "r-1"))
    list(bank.reflections.reflect_waiting())
    learnt = _summaries(bank)
    assert len(learnt) == 2
    done = bank.runs.finish(_review(tmp_path / "b.jsonl", "r-2"))
    assert [len(run.updated) for run in done.runs] == [2]
    assert _summaries(bank) == learnt


def test_reviews_of_one_run_in_several_files_are_one_run(bank: Bank, tmp_path: Path) -> None:
    logs = [_review(tmp_path / name, "r-1") for name in ("guardian.jsonl", "skeptic.jsonl")]
    logs[1].write_text(
        logs[1].read_text().replace("Missing null checks in response handlers", "Two writers race")
    )
    (run,) = bank.runs.finish(*logs).runs
    assert (run.run, run.events) == ("r-1", 2 * len(run_lines("r-1")))
    assert len(run.created) == 3


@pytest.mark.req("F12")
def test_a_run_is_finished_by_its_name_alone(bank: Bank) -> None:
    bank.runs.start_run("r-1", task="Do it")
    (run,) = bank.runs.finish(overrides=CaptureOverrides(run="r-1")).runs
    assert (run.events, run.outcome.status, run.aged.was_counted) == (0, "skipped", True)
    assert bank.runs.episode("r-1").status is EpisodeStatus.SUCCESS


@pytest.mark.req("N7")
def test_a_run_whose_name_is_a_secret_is_found_again_under_its_redacted_name(bank: Bank) -> None:
    name = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    bank.runs.start_run(name, task=f"use {name}")
    episode, events = reviewed(name, finding("Missing null checks"))
    done = bank.runs.finish_run(episode, events)
    assert done.run == "[redacted:github-token]"
    assert bank.runs.episode(name).id == done.run
    assert bank.doctor.status()["runs"] == 1
