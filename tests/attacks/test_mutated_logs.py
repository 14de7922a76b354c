"""Broken logs of every format are taken or refused with one line: no traceback, no stall, a whole bank."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import ArchivistError, InputError
from archivist.records import Episode, Event
from tests.attacks.mutations import SAMPLES, Mutator
from tests.commands import Command

MOST_CPU_S = 5.0


def _make_repositories(folder: Path) -> list[str]:
    """Make two repositories, so that a run can work in a second one."""
    names = []
    for name in ("shop", "till"):
        git = folder / name / ".git"
        (git / "refs").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        names.append(str(folder / name))
    return names


def _take(bank: Bank, path: Path) -> str:
    """Take one log in and learn from it; return what a traceback would have said, or how long it took."""
    started = time.process_time()
    try:
        bank.runs.capture_file(path)
    except InputError:
        pass
    except Exception as error:  # noqa: BLE001 each that is left is a finding
        return f"capture: {type(error).__name__}: {str(error)[:200]}"
    for result in bank.reflections.reflect_waiting():
        if getattr(result, "error", ""):
            return f"reflect: {result}"[:300]
    spent = time.process_time() - started
    return f"{spent:.1f} s" if spent > MOST_CPU_S else ""


def _talk(bank: Bank, session: str, turns: list[object]) -> str:
    try:
        bank.conversations.add(session, turns)  # type: ignore[arg-type]
        bank.conversations.finish(session, project="shop")
    except ArchivistError:
        pass
    except Exception as error:  # noqa: BLE001 each that is left is a finding
        return f"conversation: {type(error).__name__}: {str(error)[:200]}"
    return ""


def _attack(bank: Bank, folder: Path, numbers: range) -> list[str]:
    folders = _make_repositories(folder)
    problems = []
    for number in numbers:
        mutator = Mutator(f"15-{number}", folders)
        name, data = mutator.make_log()
        path = folder / f"{number}-{name}"
        path.write_bytes(data)
        if problem := _take(bank, path):
            problems.append(f"{number} {name}: {problem}")
        else:
            path.unlink()
        if number % 500 == 0 and not bank.ledger.verify().is_whole:
            problems.append(f"up to {number}: {bank.ledger.verify().problems}")
        if number % 10 == 0 and (problem := _talk(bank, f"s-{number}", mutator.make_turns())):
            problems.append(f"{number}: {problem}")
    return problems


def _assert_whole(bank: Bank) -> None:
    assert bank.ledger.verify().is_whole


@pytest.mark.req("N5")
def test_broken_logs_are_taken_or_refused(bank: Bank, tmp_path: Path) -> None:
    assert _attack(bank, tmp_path, range(150)) == []
    _assert_whole(bank)


@pytest.mark.soak
@pytest.mark.req("N5")
def test_five_thousand_broken_logs_are_taken_or_refused(bank: Bank, tmp_path: Path) -> None:
    assert _attack(bank, tmp_path, range(150, 5_150)) == []
    _assert_whole(bank)


def _session_in(folders: list[str]) -> bytes:
    """Return a log of Claude Code in which each record names its folder."""
    template = {"type": "user", "sessionId": "s-1", "timestamp": "2026-04-03T14:00:00Z"}
    records = [
        {
            **template,
            "uuid": f"u-{number}",
            "cwd": cwd,
            "message": {"role": "user", "content": f"Do {number}"},
        }
        for number, cwd in enumerate(folders)
    ]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.req("N5")
@pytest.mark.parametrize(
    "second", ["/srv/\0", "\0", "/\ud800", "/" + "a" * 5_000, "{own}/\0", "{own}/" + "b" * 300]
)
def test_a_folder_that_cannot_exist_ends_no_capture(archivist: Command, tmp_path: Path, second: str) -> None:
    own, other = _make_repositories(tmp_path / "code")
    assert archivist("init").code == 0
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(_session_in([own, second.replace("{own}", own), other, own]))
    (logs / "b.jsonl").write_bytes((SAMPLES / "claude-code-native.jsonl").read_bytes())
    done = archivist("capture", str(logs))
    assert (done.code, done.err) == (0, f"taken for sessions of yours: the logs in {logs}\n")
    assert archivist("reflect").code == 0
    assert "s-1" in archivist("episodes", "list", "--json").out


@pytest.mark.req("N5")
def test_a_folder_of_odd_files_is_captured_to_its_end(archivist: Command, tmp_path: Path) -> None:
    assert archivist("init").code == 0
    logs = tmp_path / "logs"
    (logs / "deep").mkdir(parents=True)
    good = (SAMPLES / "claude-code-native.jsonl").read_bytes()
    (logs / "z-good.jsonl").write_bytes(good)
    os.mkfifo(logs / "fifo.jsonl")
    (logs / "loop").symlink_to(logs)
    (logs / "a.jsonl").symlink_to(logs / "b.jsonl")
    (logs / "b.jsonl").symlink_to(logs / "a.jsonl")
    (logs / "gone.jsonl").symlink_to(logs / "nothing")
    (logs / "empty.jsonl").write_bytes(b"")
    (logs / "bomb.jsonl.gz").write_bytes(gzip.compress(b'{"type": "user", "x": "' + b"a" * 30_000_000))
    Path(os.fsdecode(bytes(logs) + b"/bad-\xff\xfe.jsonl")).write_bytes(good)
    started = time.process_time()
    done = archivist("capture", str(logs))
    assert time.process_time() - started < MOST_CPU_S
    assert (done.code, "Traceback" in done.err) == (7, False), done.err
    assert archivist("reflect").code == 0
    assert archivist("verify").code == 0


@pytest.mark.req("N5")
def test_a_pipe_is_refused_at_once(archivist: Command, tmp_path: Path) -> None:
    assert archivist("init").code == 0
    os.mkfifo(tmp_path / "fifo.jsonl")
    done = archivist("capture", str(tmp_path / "fifo.jsonl"))
    assert (done.code, "is no regular file" in done.err) == (4, True), done.err


@pytest.mark.req("N5")
def test_of_events_with_one_number_the_last_is_kept_and_the_ledger_is_whole(bank: Bank) -> None:
    said = [Event(run="r-1", seq=1, name="note", text=text) for text in ("first", "last")]
    bank.capture(Episode(id="r-1"), said)
    with bank.reading() as reader:
        assert [event.text for event in reader.select(Event)] == ["last"]
    assert bank.ledger.verify().is_whole
