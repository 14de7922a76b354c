"""Bad and huge logs through the command line, each in a process whose peak memory is measured."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.records import Event
from archivist.store.filters import equals
from tests.banks import lay_bank

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_PEAK_MB = 300
MANY_EVENTS = 200_000
MANY_EVENTS_LIMIT_S = 90.0
HUGE_OUTPUT_BYTES = 100 * 1024**2
# Both formats allow one stream after another: 64 GiB of nothing are made in no time.
BOMB_PIECE_BYTES = 16 * 1024**2
BOMB_PIECES = 4096
BOMB_LIMIT_S = 20.0
PARTLY = 7
REFUSED = 4

# The high-water mark of this process alone: what getrusage tells includes the one that forked it.
_MEASURED = """
import sys
from archivist.edges.cli.main import main
try:
    main(sys.argv[2:])
finally:
    with open("/proc/self/status") as status, open(sys.argv[1], "w") as peak:
        peak.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)


@dataclass(frozen=True)
class Measured:
    """What a command printed, how it ended, and what it took."""

    code: int
    out: str
    err: str
    seconds: float

    def json(self) -> Any:
        """Read what it printed."""
        return json.loads(self.out)


Archivist = Callable[..., Measured]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder with a bank."""
    folder = tmp_path / "project"
    lay_bank(folder)
    return folder


@pytest.fixture
def measured(place: Path, tmp_path: Path) -> Archivist:
    """Run a command within the memory that it may take."""

    def run(*words: str) -> Measured:
        peak = tmp_path / "peak"
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, str(peak), *words], cwd=place, capture_output=True, timeout=150
        )
        seconds = time.monotonic() - started
        assert int(peak.read_text()) / 1024 <= MAX_PEAK_MB
        return Measured(done.returncode, done.stdout.decode(), done.stderr.decode(), seconds)

    return run


def _session(name: str, *messages: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session that begins, works and ends well."""
    common = {"session_id": name, "cwd": "/home/ada/code/shop"}
    yield {"type": "system", "subtype": "init", "model": "claude-sonnet-4-5", **common}
    yield {"type": "user", "message": {"role": "user", "content": "Mend the cart"}, **common}
    for message in messages:
        yield {**message, **common}
    yield {"type": "result", "subtype": "success", "is_error": False, "result": "Done", **common}


def _call(
    number: int, command: str, output: str, *, is_error: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": is_error}
    return (
        {"type": "assistant", "message": {"role": "assistant", "content": [use]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    )


def _lines(values: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def _events(place: Path, run: str) -> list[Event]:
    with Bank.open(place, create=False) as bank, bank.reading() as reader:
        return reader.select(Event, equals("run", run), order=("seq",))


GOOD = _lines(_session("good", *_call(1, "make", "ok"), *_call(2, "make check", "ok")))


# Damage


def test_a_log_cut_in_the_middle_of_a_line_gives_what_came_before(
    measured: Archivist, place: Path, tmp_path: Path
) -> None:
    cut = GOOD[: GOOD.index(b"make check") + 4]
    done = measured("capture", _written(tmp_path / "cut.jsonl", cut), "--json")
    assert (done.code, done.json()["skipped"]) == (PARTLY, 1)
    assert "its 2 events were read; left out: line 5: cut short: the log ends in the middle of it" in done.err
    assert [event.text for event in _events(place, "good") if event.tool] == ["make"]
    assert done.json()["episode"]["status"] == "partial"


def test_a_document_cut_short_gives_the_steps_that_are_whole(measured: Archivist, tmp_path: Path) -> None:
    steps = [{"step_id": number, "source": "agent", "message": f"step {number}"} for number in range(1, 4)]
    whole = {
        "schema_version": "ATIF-v1.4",
        "session_id": "cut",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
    }
    text = json.dumps(whole).encode()
    done = measured("capture", _written(tmp_path / "cut.json", text[: text.rindex(b"step 3")]), "--json")
    assert (done.code, done.json()["events"], done.json()["skipped"]) == (PARTLY, 2, 1)
    assert "cut short" in done.err


@pytest.mark.parametrize("encode", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_compressed_log_cut_short_does_no_harm(
    measured: Archivist, tmp_path: Path, encode: Callable[[bytes], bytes]
) -> None:
    # Text that does not shrink, so that half of the file holds something.
    noise = os.urandom(400_000).hex()
    packed = encode(_lines(_session("packed", *_call(1, "make", "ok"), *_call(2, "xxd", noise))))
    done = measured("capture", _written(tmp_path / "cut.log", packed[: len(packed) // 2]), "--json")
    assert done.code in (PARTLY, REFUSED)
    assert "cut or damaged" in done.err


def test_lines_of_other_encodings_and_control_characters_are_read_or_skipped(
    measured: Archivist, place: Path, tmp_path: Path
) -> None:
    odd = [
        json.dumps({**_call(7, "ls", "café ☃")[0], "session_id": "good"}, ensure_ascii=False).encode(),
        json.dumps({**_call(7, "ls", "café")[1], "session_id": "good"}, ensure_ascii=False).encode("latin-1"),
        b'{"type": "user", "session_id": "good", "message": {"content": "lone \\ud800 half"}}',
        b"\x00\x00\x00\x00",
        b"\xff\xfe\xfd not text at all",
        b"null",
        b"[1, 2]",
        b'"text"',
        b'{"type": null, "message": null}',
        b'{"type": "user", "session_id": "good", "message": null}',
        b'{"type": "assistant", "session_id": "good", "message": {"content": [null, {"type": "tool_use"}]}}',
        b'{"type": "brand-new-record", "session_id": "good"}',
        b"[" * 5000,
    ]
    lines = GOOD.splitlines()
    content = b"\n".join([*lines[:-1], *odd, lines[-1]])
    done = measured("capture", _written(tmp_path / "odd.jsonl", content), "--json")
    assert done.code == PARTLY
    assert done.json()["episode"]["status"] == "success"
    assert done.json()["skipped"] == 7
    for reason in ("not JSON", "not a JSON object", "no record type", "'brand-new-record'"):
        assert reason in done.err
    outputs = [event.output for event in _events(place, "good") if event.text == "ls"]
    assert outputs == ["caf�"]


def test_a_log_in_utf_16_is_read(measured: Archivist, place: Path, tmp_path: Path) -> None:
    done = measured("capture", _written(tmp_path / "wide.jsonl", GOOD.decode().encode("utf-16")), "--json")
    assert done.code == 0
    assert [event.text for event in _events(place, "good") if event.tool] == ["make", "make check"]


def test_parents_in_a_circle_and_a_clock_that_runs_backwards_are_taken(
    measured: Archivist, tmp_path: Path
) -> None:
    common = {"sessionId": "circle", "isSidechain": True, "type": "user"}
    lines = [
        {
            **common,
            "uuid": uuid,
            "parentUuid": parent,
            "timestamp": f"2026-01-01T00:00:{30 - place:02d}Z",
            "message": {"role": "user", "content": f"words {place}"},
        }
        for place, (uuid, parent) in enumerate([("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")])
    ]
    done = measured("capture", _written(tmp_path / "circle.jsonl", _lines(lines)), "--json")
    assert (done.code, done.json()["events"]) == (0, 4)
    for each in done.json()["runs"]:
        assert each["episode"]["startedAt"] <= each["episode"]["finishedAt"]


def test_what_is_no_log_at_all_is_refused_with_a_hint(measured: Archivist, tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF" + os.urandom(5000), b"just some words\n" * 100):
        done = measured("capture", _written(tmp_path / "other.bin", content))
        assert (done.code, done.out) == (REFUSED, "")
        assert "hint: " in done.err


# Size


@pytest.mark.parametrize("encode", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_bomb_is_refused_before_it_is_unpacked(
    measured: Archivist, tmp_path: Path, encode: Callable[[bytes], bytes]
) -> None:
    bomb = encode(GOOD) + encode(bytes(BOMB_PIECE_BYTES)) * BOMB_PIECES
    done = measured("capture", _written(tmp_path / "bomb.log", bomb))
    assert done.code in (PARTLY, REFUSED)
    assert "unpacks too far" in done.err
    assert done.seconds < BOMB_LIMIT_S


def test_an_output_of_a_hundred_megabytes_in_one_line_keeps_its_ends(
    measured: Archivist, place: Path, tmp_path: Path
) -> None:
    path = tmp_path / "huge.jsonl"
    lines = GOOD.splitlines(keepends=True)
    head, tail = json.dumps(_call(9, "cat all", "<middle>")[1]).split("<middle>")
    with path.open("wb") as log:
        log.writelines(lines[:-1])
        log.write(json.dumps({**_call(9, "cat all", "")[0], "session_id": "good"}).encode() + b"\n")
        log.write(head.encode() + b"first words ")
        for _ in range(HUGE_OUTPUT_BYTES >> 20):
            log.write(b"0123456789abcdef" * (1 << 16))
        log.write(b" last words" + tail.encode() + b"\n" + lines[-1])
    done = measured("capture", str(path), "--json")
    assert done.code == 0, done.err
    (event,) = [event for event in _events(place, "good") if event.text == "cat all"]
    assert event.output.startswith("first words 0123")
    assert event.output.endswith("last words")
    assert "characters left out" in event.output
    assert len(event.output) < 20_000
    assert measured("reflect", "--pending").code == 0


def test_two_hundred_thousand_events_are_captured_and_reflected_on(
    measured: Archivist, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("w", encoding="utf-8") as log:
        log.write(json.dumps({"episode": {"id": "long", "project": "shop"}}) + "\n")
        for number in range(1, MANY_EVENTS + 1):
            event = {"run": "long", "seq": number, "kind": "tool_call", "tool": "Bash", "exit_code": 0}
            log.write(json.dumps({**event, "text": f"ls part-{number % 50}", "output": "a.py"}) + "\n")
    done = measured("capture", str(path), "--json")
    assert done.code == 0, done.err
    assert done.json()["events"] == MANY_EVENTS
    reflected = measured("reflect", "--pending", "--json")
    assert [run["run"] for run in reflected.json()["runs"]] == ["long"]
    assert done.seconds + reflected.seconds < MANY_EVENTS_LIMIT_S


# The same again


def test_the_same_log_and_a_longer_one_make_one_run_without_doubles(
    measured: Archivist, place: Path, tmp_path: Path
) -> None:
    path = tmp_path / "growing.jsonl"
    lines = GOOD.splitlines(keepends=True)
    first = measured("capture", _written(path, b"".join(lines[:4])), "--json").json()
    again = measured("capture", str(path), "--json").json()
    assert (first["runs"][0]["unchanged"], again["runs"][0]["unchanged"]) == (False, True)
    longer = measured("capture", _written(path, GOOD), "--json").json()
    moved = measured("capture", _written(tmp_path / "moved.jsonl.gz", gzip.compress(GOOD)), "--json").json()
    assert {each["episode"]["id"] for each in (first, again, longer, moved)} == {"good"}
    events = _events(place, "good")
    assert [event.text for event in events if event.tool] == ["make", "make check"]
    assert len({event.seq for event in events}) == len(events)
    with Bank.open(place, create=False) as bank:
        assert len(bank.runs.episodes()) == 1
        assert bank.ledger.verify().is_whole


# Several at once


def _waiting(place: Path, folder: Path, runs: int, calls: int) -> set[str]:
    """Let runs with failures wait for reflection; return their names."""
    failed = "bash: line 1: jq: command not found"
    for number in range(runs):
        steps = [
            line for call in range(calls) for line in _call(call, f"jq . {call}.json", failed, is_error=True)
        ]
        _written(folder / f"run-{number:02d}.jsonl", _lines(_session(f"run-{number:02d}", *steps)))
    with Bank.open(place, create=False) as bank:
        for path in sorted(folder.glob("run-*.jsonl")):
            bank.runs.capture_file(path)
        return {waiting.run for waiting in bank.reflections.waiting_runs()}


def _reflecting(place: Path) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).parent / "archivist"), "reflect", "--pending", "--json"]
    return subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_processes_reflecting_at_once_share_the_runs_between_them(place: Path, tmp_path: Path) -> None:
    waiting = _waiting(place, tmp_path, runs=40, calls=20)
    both = [_reflecting(place) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    done = [run["run"] for out, _ in answers for run in json.loads(out)["runs"]]
    assert sorted(done) == sorted(waiting)
    with Bank.open(place, create=False) as bank:
        assert bank.reflections.waiting_runs() == []
        assert all("reflection" in episode.extra for episode in bank.runs.episodes())
        assert bank.ledger.verify().is_whole


def test_a_reflection_killed_midway_is_taken_up_again_when_its_lease_has_passed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVIST_REFLECT__LEASE_S", "1.0")
    # Long enough a run that the process is still at it when it is killed.
    waiting = _waiting(place, tmp_path, runs=2, calls=4_000)
    process = _reflecting(place)
    with Bank.open(place, create=False) as bank:
        while not any(each.holder for each in bank.reflections.waiting_runs()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left = {each.run for each in bank.reflections.waiting_runs()}
        assert left == waiting
        deadline = time.monotonic() + 30
        while bank.reflections.waiting_runs() and time.monotonic() < deadline:
            time.sleep(0.2)
            following = _reflecting(place)
            following.communicate(timeout=30)
            assert following.returncode == 0
        assert bank.reflections.waiting_runs() == []
        assert all("reflection" in episode.extra for episode in bank.runs.episodes())
        assert bank.ledger.verify().is_whole
