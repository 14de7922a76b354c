"""Cold memory: transcripts captured on demand, summed up, and read line by line."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import InputError, NotFoundError
from archivist.recall.query import Query
from archivist.records import Episode, Event
from archivist.workspace import transcripts_service as cold
from archivist.workspace.files_service import Topology
from archivist.workspace.transcripts_service import Transcript, Transcripts
from tests.workspace.sessions import Session

WHEN = datetime(2026, 11, 1, 9, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a transcripts folder with one session, one text that is no log, and an empty file."""
    path = tmp_path / "agent-transcripts"
    path.mkdir()
    session = Session("s-one")
    session.user("Fix the engine")
    session.sh("pytest -q", "KeyError: 'state_id'", 1)
    session.say("The key is `ghp_" + "a1B2" * 9 + "`")
    session.sh("pytest -q", "1 passed")
    session.end()
    session.write(path / "one.jsonl")
    (path / "broken.jsonl").write_text("no json\nat all\n")
    (path / "empty.jsonl").write_bytes(b"")
    (path / "notes.txt").write_text("no transcript\n")
    return path


@pytest.fixture
def desk(bank: Bank, folder: Path) -> Transcripts:
    """Return the desk of that folder."""
    return Transcripts(bank, Topology(folder.parent))


@pytest.mark.req("W9")
@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_transcripts_as_cursor_writes_them_are_captured_searched_and_shown(
    desk: Transcripts, bank: Bank, folder: Path, ending: str
) -> None:
    said = [
        ("user", "<user_query>\nSharpen the plough\n</user_query>"),
        ("assistant", "The plough needs oil."),
    ]
    rows = (
        json.dumps({"role": role, "message": {"content": [{"type": "text", "text": words}]}})
        for role, words in said
    )
    plain = "\n\n".join(f"{role}:\n{words}" for role, words in said)
    (folder / f"plough.{ending}").write_text("\n".join(rows) if ending == "jsonl" else plain)
    taken = desk.capture(["plough"])
    assert ([each.task for each in taken.captured], taken.problems) == (["Sharpen the plough"], ())
    hit = bank.recall(Query("plough oil", kinds=("event",))).hits[0]
    assert "needs oil" in hit.text
    shown = desk.lines_at_event(hit.id)
    assert shown.transcript.name == f"plough.{ending}"
    assert any("needs oil" in line for number, line in shown.lines if number == shown.marked)


@pytest.mark.req("W9")
def test_transcripts_are_captured_once_and_summed_up(desk: Transcripts, bank: Bank, folder: Path) -> None:
    shelf = desk.scan_folder()
    assert {each.name: each.outcome for each in shelf.transcripts} == {"one.jsonl": "not captured"}
    assert shelf.others == (
        ("broken.jsonl", "not a log of a known format"),
        ("empty.jsonl", "it is empty"),
        ("notes.txt", "not a log of a known format"),
    )
    taken = desk.capture()
    assert [each.name for each in taken.captured] == ["one.jsonl"]
    assert taken.problems == ("broken.jsonl: not a log of a known format", "empty.jsonl: it is empty")
    assert taken.others == ("notes.txt",)
    told = desk.find("one")
    assert (told.outcome, told.task, [run.id for run in told.runs]) == (
        "success",
        "Fix the engine",
        ["s-one"],
    )
    assert told.first == WHEN + timedelta(seconds=10)
    assert told.size_bytes == (folder / "one.jsonl").stat().st_size
    before = bank.doctor.status()["events"]
    # Not even opened: what is as large and as old as it was is unchanged.
    seen = (folder / "one.jsonl").stat()
    again = desk.capture()
    assert (again.captured, again.unchanged, again.events) == ((), 1, 0)
    assert (folder / "one.jsonl").stat().st_atime_ns == seen.st_atime_ns
    assert bank.doctor.status()["events"] == before


@pytest.mark.req("W9")
def test_a_transcript_that_grew_is_captured_again(desk: Transcripts, folder: Path) -> None:
    desk.capture(["one"])
    with (folder / "one.jsonl").open("a") as stream:
        line = {"role": "user", "content": "one more thing"}
        stream.write(json.dumps({"type": "user", "session_id": "s-one", "message": line}) + "\n")
    assert desk.find("one.jsonl").outcome == "not captured"
    assert desk.capture(["one"]).events > 0
    assert desk.find("one").runs


def test_folders_below_and_compressed_logs_count(desk: Transcripts, folder: Path) -> None:
    (folder / "deep").mkdir()
    data = (folder / "one.jsonl").read_bytes().replace(b"s-one", b"s-two")
    (folder / "deep" / "two.jsonl.gz").write_bytes(gzip.compress(data))
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    desk.capture(["two"])
    assert desk.find("s-two").name == "deep/two.jsonl.gz"
    assert desk.read_range("two", "1").lines[0][1].startswith('{"type": "system"')


@pytest.mark.req("W9")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_format_that_capture_reads_is_a_transcript(
    desk: Transcripts, bank: Bank, folder: Path, pack: Callable[[bytes], bytes]
) -> None:
    ending = "" if pack is bytes else ".gz"
    said = [
        {"role": "system", "content": "You solve it."},
        {"role": "user", "content": "Mend the parser"},
        {"role": "assistant", "content": "Look.\n\n```bash\nls -la src\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    ]
    document = {
        "instance_id": "x-1",
        "info": {"exit_status": "Submitted", "submission": "", "mini_version": "1.0"},
        "messages": said,
        "trajectory_format": "mini-swe-agent-1",
    }
    (folder / f"x-1.traj.json{ending}").write_bytes(pack(json.dumps(document, indent=1).encode()))
    assert f"x-1.traj.json{ending}" in [each.name for each in desk.scan_folder().transcripts]
    assert desk.capture(["x-1"]).events > 0
    found = desk.find("x-1")
    assert "Mend the parser" in found.task
    with bank.reading() as reader:
        event = next(each for each in reader.select(Event) if each.text.strip() == "ls -la src")
    marked = desk.lines_at_event(event.id)
    assert dict(marked.lines)[marked.marked or 0].count("ls -la src") == 1


@pytest.mark.req("W9")
def test_the_latest_is_told_by_the_times_inside_then_by_the_name_then_by_the_file(
    desk: Transcripts, folder: Path
) -> None:
    data = (folder / "one.jsonl").read_bytes()
    for name, run in (("20251222__150214-a.jsonl", b"s-a"), ("2027-01-05-b.jsonl", b"s-b")):
        (folder / name).write_bytes(data.replace(b"s-one", run))
    for path in folder.iterdir():
        os.utime(path, (2_000_000_000, 2_000_000_000))
    os.utime(folder / "one.jsonl", (1_900_000_000, 1_900_000_000))
    names = ["one.jsonl", "2027-01-05-b.jsonl", "20251222__150214-a.jsonl"]
    assert [each.name for each in desk.scan_folder().transcripts] == names
    desk.capture(["one"])
    assert [each.name for each in desk.scan_folder().transcripts] == [names[1], names[0], names[2]]
    timeless = Transcript("x.traj", 1, 2_000_000_000 * 10**9, (Episode(id="x"),))
    assert cold.latest_first([timeless, *desk.scan_folder().transcripts])[-1] is timeless


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("20251222__150214-call", datetime(2025, 12, 22, 15, 2, 14, tzinfo=UTC)),
        ("session-2025-12-05T07-45-57-649Z", datetime(2025, 12, 5, 7, 45, 57, tzinfo=UTC)),
        ("old__runs__20251211-regex-log", datetime(2025, 12, 11, tzinfo=UTC)),
        ("20251399-x-20250101", datetime(2025, 1, 1, tzinfo=UTC)),
        ("20250230", None),
        ("marshmallow-1343", None),
        ("a1b2-120251222", None),
    ],
)
def test_a_name_tells_its_date(name: str, moment: datetime | None) -> None:
    assert cold.date_in(name) == moment


@given(st.text(max_size=40))
def test_any_name_has_a_stem_and_a_date_or_none(name: str) -> None:
    found = Transcript(name or "x", 1, 1)
    assert found.timestamp is not None
    assert len(found.stem) <= len(found.name)


@pytest.mark.req("W9")
def test_raw_lines_come_back_without_secrets(desk: Transcripts) -> None:
    shown = desk.read_range("one.jsonl", "2-3")
    assert [number for number, _ in shown.lines] == [2, 3]
    assert json.loads(shown.lines[0][1])["message"]["content"] == "Fix the engine"
    (found,) = desk.search_lines("one", "THE KEY IS").lines
    assert "[redacted:" in found[1]
    assert "ghp_" not in found[1]
    assert desk.read_range("one", "900-").lines == ()
    with pytest.raises(InputError, match=r"'broken\.jsonl' is not a transcript: not a log of a known format"):
        desk.read_range("broken.jsonl", "1-9")


@pytest.mark.req("W9")
def test_an_event_leads_to_its_line(desk: Transcripts, bank: Bank) -> None:
    desk.capture(["one"])
    with bank.reading() as reader:
        events = reader.select(Event, order=("seq",))
    calls = [event for event in events if event.tool == "Bash"]
    first, second = (desk.lines_at_event(event.id).marked for event in calls)
    # The same command twice: the moment tells which line is whose.
    assert (first, second) == (3, 6)
    with pytest.raises(NotFoundError):
        desk.lines_at_event("s-one#99")


def test_a_folder_that_is_not_there_has_no_transcripts(bank: Bank, tmp_path: Path) -> None:
    desk = Transcripts(bank, Topology(tmp_path))
    assert desk.scan_folder().transcripts == ()
    assert desk.capture().captured == ()
    with pytest.raises(NotFoundError, match="no transcript 'one'"):
        desk.find("one")


def test_a_run_that_was_erased_is_no_longer_told_of(desk: Transcripts, bank: Bank) -> None:
    desk.capture(["one"])
    bank.erasure.erase(["s-one"])
    assert desk.find("one.jsonl").outcome == "not captured"


# The policies


@pytest.mark.parametrize(("text", "span"), [("3", (3, 3)), ("3-5", (3, 5)), (" 3-3 ", (3, 3))])
def test_a_range_of_lines_is_read(text: str, span: tuple[int, int]) -> None:
    assert cold.parse_range(text) == span


@pytest.mark.parametrize("text", ["", "x", "0", "5-3", "-3", "1-2-3", "1,2", "3.5", "²"])
def test_another_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a range of lines"):
        cold.parse_range(text)


@given(st.lists(st.text(max_size=5)), st.integers(1, 30), st.integers(0, 30))
def test_between_is_a_slice_with_numbers(lines: list[str], first: int, more: int) -> None:
    found = list(cold.lines_between(iter(lines), first, first + more))
    assert [line for _, line in found] == lines[first - 1 : first + more]
    assert [number for number, _ in found] == list(range(first, first + len(found)))


def test_a_name_that_fits_several_transcripts_is_refused() -> None:
    found = [Transcript("a/x.jsonl", 1, 1), Transcript("b/x.jsonl", 1, 1)]
    with pytest.raises(InputError, match="2 transcripts are called 'x'"):
        cold.find_transcript(found, "x")
    assert cold.find_transcript(found, "b/x.jsonl") is found[1]


def test_a_transcript_of_several_runs_is_told_by_its_main_one() -> None:
    child = Episode(id="c", parent="r", task="part", started=WHEN - timedelta(hours=1))
    main = Episode(id="r", task="whole", started=WHEN, finished=WHEN + timedelta(hours=1))
    told = Transcript("x.jsonl", 5, 1, (child, main))
    assert (told.main, told.task) == (main, "whole")
    assert (told.first, told.last) == (WHEN - timedelta(hours=1), WHEN + timedelta(hours=1))


@pytest.mark.parametrize("line", ["", "[" * 100_000, "nonsense", "[]", "12", '"needle here"'])
def test_a_line_that_is_no_record_does_not_stop_the_search(line: str) -> None:
    event = Event(run="r", seq=1, text="needle here", time=WHEN)
    good = json.dumps({"timestamp": WHEN.isoformat(), "text": "a needle here"})
    assert cold.find_event_line(event, [line, good]) == 2
    assert cold.find_event_line(Event(run="r", seq=1), [line, good]) is None
