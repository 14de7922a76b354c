"""A log whose first lines are damaged is still one of its format."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archivist.capture.formats import LogOrigin, SkippedRecord, recognise
from archivist.capture.json_stream import preview_log
from archivist.records import Event

FIXTURES = Path(__file__).parents[1] / "fixtures" / "capture"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda line: line[: len(line) // 2],
    "cut in a number": lambda _: b'{"sequence": 12',
    "its end is left": lambda line: line[len(line) // 2 :],
    "other bytes": lambda _: b"\x8f\x00\x00\xffPK\x03",
    "a warning": lambda _: b"Warning: the telemetry endpoint cannot be reached",
    "a number": lambda _: b"17",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "name",
    ["claude-code-native.jsonl", "claude-code-stream.jsonl", "codex-rollout.jsonl", "copilot-cli.jsonl",
     "gemini-cli.jsonl", "hooks.jsonl", "archeflow.jsonl", "stream.jsonl"],
)  # fmt: skip
def test_a_damaged_first_line_costs_itself(name: str, damage: str) -> None:
    whole = (FIXTURES / name).read_bytes()
    first, rest = whole.split(b"\n", 1)
    adapter = recognise(whole, name)
    # A format is known by what its lines say: what stood in the first line alone is lost with it.
    damaged = DAMAGE[damage](first) + b"\n" + rest
    assert recognise(damaged, name) is adapter
    found = list(adapter.read(io.BytesIO(damaged), LogOrigin(name)))
    skipped = [each for each in found if isinstance(each, SkippedRecord)]
    good = [each for each in adapter.read(io.BytesIO(rest), LogOrigin(name)) if isinstance(each, Event)]
    assert [each.where for each in skipped][:1] == ["line 1"]
    assert len([each for each in found if isinstance(each, Event)]) == len(good) > 0


def test_documents_over_several_lines_are_no_lines() -> None:
    for name in ("atif.json", "cursor.json", "gemini-cli.json", "opencode.json", "openhands.json"):
        value = json.loads((FIXTURES / name).read_bytes())
        for indent in (None, 1):
            head = json.dumps(value, indent=indent).encode()[: 64 * 1024]
            assert recognise(head, name).name == name.removesuffix(".json")
    listed = b'[\n{"a": 1},\n{"a": 2}\n]\n'
    assert [each["a"] for each in preview_log(listed).objects] == [1, 2]
    assert preview_log(b'{"trajectory": [\n{"a": 1}\n]}').document == {"trajectory": [{"a": 1}]}
    assert preview_log(b"") == preview_log(b"no log\nat all\n")
