"""What every capture adapter promises, over the same small logs and over damaged and random ones."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archivist.capture.formats import (
    ADAPTERS,
    Adapter,
    LogOrigin,
    SkippedRecord,
    adapter_named,
    read_log,
    recognise,
)
from archivist.errors import InputError
from archivist.records import Episode, EpisodeKind, Event, EventKind
from archivist.records.plain import from_plain, to_plain

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FIXTURES = Path(__file__).parents[1] / "fixtures" / "capture"
LOGS = {
    "archeflow.jsonl": "archeflow",
    "atif.json": "atif",
    "claude-code-native.jsonl": "claude-code",
    "claude-code-stream.jsonl": "claude-code",
    "codex-bare.jsonl": "codex",
    "codex-rollout.jsonl": "codex",
    "copilot-cli.jsonl": "copilot-cli",
    "cursor.json": "cursor",
    "gemini-cli.json": "gemini-cli",
    "gemini-cli.jsonl": "gemini-cli",
    "hooks.jsonl": "hooks",
    "mini-swe-agent-1.traj.json": "mini-swe-agent",
    "mini-swe-agent-2.traj.json": "mini-swe-agent",
    "opencode.json": "opencode",
    "openhands-sdk.jsonl": "openhands",
    "openhands.json": "openhands",
    "stream.jsonl": "stream",
    "swe-agent.traj": "swe-agent",
    "vscode.jsonl": "vscode",
}
CALLS = (EventKind.TOOL_CALL, EventKind.EDIT)
each_log = pytest.mark.parametrize("log", LOGS)
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)


def content(log: str) -> bytes:
    return (FIXTURES / log).read_bytes()


def read(log: str, data: bytes, origin: LogOrigin | None = None) -> list[Event | Episode | SkippedRecord]:
    return list(adapter_named(LOGS[log]).read(io.BytesIO(data), origin or LogOrigin(log)))


def events_of(found: list[Event | Episode | SkippedRecord]) -> list[Event]:
    return [each for each in found if isinstance(each, Event)]


def episodes_of(found: list[Event | Episode | SkippedRecord]) -> list[Episode]:
    return [each for each in found if isinstance(each, Episode)]


@each_log
def test_is_recognised_by_its_content_whatever_it_is_called(log: str) -> None:
    assert recognise(content(log), "session.bin").name == LOGS[log]


@each_log
def test_is_recognised_when_a_long_head_is_cut(log: str) -> None:
    assert recognise(content(log)[:64_000] + b"\n", log).name == LOGS[log]


def test_an_unknown_log_is_refused_with_the_formats_that_are_known() -> None:
    with pytest.raises(InputError) as refused:
        recognise(b'{"greeting": "hello"}\n', "notes.json")
    assert "claude-code" in refused.value.hint
    assert "swe-agent" in refused.value.hint


@each_log
def test_is_read_whole_and_the_main_run_comes_last(log: str) -> None:
    found = read(log, content(log))
    assert not [each for each in found if isinstance(each, SkippedRecord)]
    assert isinstance(found[-1], Episode)
    assert found[-1].kind is EpisodeKind.ORCHESTRATOR_RUN
    runs = {episode.id for episode in episodes_of(found)}
    assert {event.run for event in events_of(found)} <= runs
    assert all(episode.parent in runs for episode in episodes_of(found) if episode.parent)


@each_log
def test_every_event_has_a_number_of_its_own(log: str) -> None:
    ids = [event.id for event in events_of(read(log, content(log)))]
    assert len(ids) == len(set(ids))


@each_log
def test_events_and_episodes_survive_the_way_through_plain_json(log: str) -> None:
    for each in read(log, content(log)):
        if not isinstance(each, SkippedRecord):
            assert from_plain(type(each), json.loads(json.dumps(to_plain(each)))) == each


@each_log
def test_the_caller_names_run_and_project(log: str) -> None:
    if log == "archeflow.jsonl":
        pytest.skip("its events name their run themselves")
    data = content(log).replace(b'{"id": "run-9",', b'{"id": "mine",')
    found = read(log, data, LogOrigin(log, run="mine", project="farm/yard"))
    main = episodes_of(found)[-1]
    assert (main.id, main.project, main.trajectories) == ("mine", "farm/yard", (log,))


@each_log
def test_a_shorter_version_of_the_log_has_the_same_ids(log: str) -> None:
    """Whatever was read of a log while it grew keeps its name, so that reading it again updates it."""
    data = content(log)
    whole = {event.id: event for event in events_of(read(log, data))}
    main = episodes_of(read(log, data))[-1].id
    for share in (0.5, 0.7, 0.9):
        part = read(log, data[: int(len(data) * share)])
        assert main in {episode.id for episode in episodes_of(part)} or not events_of(part)
        for event in events_of(part):
            later = whole[event.id]
            assert (event.tool, event.text) == (later.tool, later.text) or event.kind is EventKind.FINISH


@each_log
def test_packed_and_marked_and_recoded_logs_read_the_same(log: str, tmp_path: Path) -> None:
    plain = read(log, content(log))
    text = content(log).decode()
    versions = {
        "gz": gzip.compress(content(log)),
        "zst": zstd.compress(content(log)),
        "bom": b"\xef\xbb\xbf" + content(log),
        "crlf": text.replace("\n", "\r\n").encode(),
        "utf16": text.encode("utf-16"),
    }
    for name, data in versions.items():
        path = tmp_path / f"log.{name}"
        path.write_bytes(data)
        assert list(read_log(path, LogOrigin(log))) == plain, name


@each_log
def test_a_log_cut_anywhere_still_gives_what_came_before(log: str) -> None:
    data = content(log)
    for end in range(0, len(data), 97):
        found = read(log, data[:end])
        assert len(events_of(found)) <= len(events_of(read(log, data)))


@each_log
def test_bytes_that_are_no_utf_8_cost_only_themselves(log: str) -> None:
    data = content(log)
    spoilt = data.replace(b"test", b"te\xff\xfet").replace(b"run", b"r\xc3n")
    assert events_of(read(log, spoilt)) or log in ("stream.jsonl", "archeflow.jsonl", "openhands.json")


@each_log
def test_flipped_bytes_never_raise(log: str) -> None:
    data = content(log)
    chance = random.Random(7)  # noqa: S311
    for _ in range(60):
        spoilt = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        read(log, bytes(spoilt))


@each_log
def test_missing_and_null_and_wrong_values_never_raise(log: str) -> None:
    chance = random.Random(11)  # noqa: S311
    lines = content(log).splitlines() if log.endswith("jsonl") else [content(log)]
    for wrong in (None, 0, "", [], {}, True, -1.5, [None], {"x": None}, "2026-99-99", 1 << 70):
        for _ in range(6):
            data = b"\n".join(json.dumps(_spoilt(json.loads(line), wrong, chance)).encode() for line in lines)
            read(log, data)


def _spoilt(value: Any, wrong: object, chance: random.Random) -> Any:
    if chance.random() < 0.08:
        return wrong
    if isinstance(value, dict):
        return {key: _spoilt(each, wrong, chance) for key, each in value.items()}
    if isinstance(value, list):
        return [_spoilt(each, wrong, chance) for each in value]
    return value


WORDS = (
    "type",
    "message",
    "content",
    "role",
    "user",
    "assistant",
    "system",
    "result",
    "tool_use",
    "tool_result",
    "id",
    "uuid",
    "tool_use_id",
    "parentUuid",
    "sessionId",
    "isSidechain",
    "agentId",
    "timestamp",
    "payload",
    "response_item",
    "event_msg",
    "function_call",
    "function_call_output",
    "call_id",
    "output",
    "arguments",
    "steps",
    "agent",
    "source",
    "tool_calls",
    "observation",
    "results",
    "messages",
    "info",
    "extra",
    "actions",
    "trajectory",
    "history",
    "action",
    "state",
    "kind",
    "ActionEvent",
    "ObservationEvent",
    "run",
    "seq",
    "run_id",
    "review.verdict",
    "fix.applied",
    "data",
    "findings",
    "episode",
    "subagent_trajectories",
    "session_meta",
    "input",
    "name",
    "usage",
    "metrics",
    "is_error",
    "subtype",
    "init",
    "cause",
    "args",
    "extras",
    "command",
    "path",
    "2026-01-01T00:00:00Z",
    "2025-01-01T00:00:00Z",
    "token_count",
    "schema_version",
    "ATIF-v1.8",
    "parts",
    "sessionID",
    "toolCalls",
    "gemini",
    "$set",
    "session.start",
    "tool.execution_start",
    "tool.execution_complete",
    "toolCallId",
    "composerId",
    "bubbles",
    "toolFormerData",
    "requests",
    "sessionId",
    "response",
    "k",
    "v",
    "hook",
    "moment",
    "session",
    "note-tool",
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text(max_size=12)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(WORDS), inner, max_size=7)
    ),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(WORDS), values, max_size=8)
fuzzed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def drain(adapter: Adapter, data: bytes) -> None:
    adapter.recognises(data[:65536])
    for each in adapter.read(io.BytesIO(data), LogOrigin("x")):
        assert isinstance(each, Event | Episode | SkippedRecord)


@each_adapter
@fuzzed
@given(data=st.binary(max_size=400))
def test_random_bytes_never_raise(adapter: Adapter, data: bytes) -> None:
    drain(adapter, data)


@each_adapter
@fuzzed
@given(rows=st.lists(objects, max_size=6))
def test_random_records_never_raise(adapter: Adapter, rows: list[dict[str, Any]]) -> None:
    drain(adapter, "\n".join(map(json.dumps, rows)).encode())


@each_adapter
@fuzzed
@given(
    rows=st.lists(objects, max_size=6),
    key=st.sampled_from(["steps", "messages", "trajectory", "history", ""]),
    rest=objects,
)
def test_random_documents_never_raise(
    adapter: Adapter, rows: list[dict[str, Any]], key: str, rest: dict[str, Any]
) -> None:
    drain(adapter, json.dumps({**rest, key: rows} if key else rows).encode())


@each_log
@fuzzed
@given(data=st.data())
def test_spliced_logs_never_raise(log: str, data: st.DataObject) -> None:
    whole = content(log)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    stuffing = data.draw(st.binary(max_size=20))
    drain(adapter_named(LOGS[log]), whole[:start] + stuffing + whole[end:])


def test_a_cycle_of_parents_is_read_like_any_other_log() -> None:
    row: Callable[..., dict[str, Any]] = partial(dict, type="assistant", isSidechain=True, sessionId="s")
    said = {"role": "assistant", "content": [{"type": "text", "text": "round and round"}]}
    rows = [row(uuid="a", parentUuid="b", message=said), row(uuid="b", parentUuid="a", message=said)]
    found = read("claude-code-native.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert len(events_of(found)) == 2


def test_a_clock_that_goes_backwards_gives_no_negative_duration() -> None:
    data = (
        content("codex-rollout.jsonl")
        .replace(b"08:00:08", b"07:00:08")
        .replace(b"Wall time: 0.2500 seconds\\n", b"")
    )
    found = read("codex-rollout.jsonl", data)
    assert all(event.duration_s is None or event.duration_s >= 0 for event in events_of(found))
    main = episodes_of(found)[-1]
    assert main.started is not None
    assert main.finished is not None
    assert main.started <= main.finished
