"""Lines of files that others wrote: a wrong value in any field costs its line, which is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import pytest

from archivist import Bank
from archivist.edges.install.plugin import plan_install, plan_uninstall, user_modified_files
from archivist.errors import InputError
from archivist.exchange.files import audit_line
from archivist.exchange.outbox_service import Outbox, ServerResponse
from archivist.exchange.share import to_shared_line
from archivist.files.hook_log import read_log
from archivist.paths import bank_file, state_folder
from archivist.records import Brief, Entry, Episode, Event, Lesson, Tally, Verdict, shapes
from archivist.records.kinds import record_type
from archivist.records.plain import from_plain, to_plain, types_of
from archivist.workspace.skill_files import saving_agent
from archivist.workspace.skills_service import read_skill
from archivist.workspace.topology import WorkspaceScope
from tests.commands import Command

_CLONE = "01M7V5NY2RGQ0H46041P9V6TFF"
_DEEP: Any = "end"
for _ in range(200):
    _DEEP = [{"a": _DEEP}]
_WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**63, 10**400, 1e308, "", "\0", "\ud800", "x" * 5000, [], {}, [[]], [{}],
    [None], [1], {"": None}, {"a": [1]}, _DEEP, "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00",
)  # fmt: skip


def _plain_of(kind: Any) -> Any:
    """Return a plain value of a type, with something in every field."""
    if get_origin(kind) in (tuple, dict):
        return [_plain_of(get_args(kind)[0])] if get_origin(kind) is tuple else {"a": {"b": [1]}}
    if kind not in (str, int, float, bool, datetime) and get_args(kind):
        return _plain_of(next(part for part in get_args(kind) if part is not NoneType))
    if is_dataclass(kind):
        hints: dict[str, Any] = types_of(kind)  # type: ignore[arg-type]
        return {each.name: _plain_of(hints[each.name]) for each in fields(kind)}
    if issubclass(kind, StrEnum):
        return next(iter(kind)).value
    known = {str: "kiln", datetime: "2026-01-02T03:04:05Z"}
    return known[kind] if kind in known else kind(1)


def _record(kind: type[Any], **changes: object) -> Any:
    return from_plain(kind, {**_plain_of(kind), **changes})


def _lines() -> Iterator[dict[str, Any]]:
    """Yield a line of every shape that is imported."""
    lesson, tally = _record(Lesson), Tally()
    yield shapes.to_cross_run(lesson, tally, 1)
    yield shapes.to_reflective(lesson, tally, 1)
    yield {
        "memoryType": "episodic", "id": "o-1", "description": "Heat the kiln", "createdAt": "2026-01-02",
        "scope": "project", "tags": ["kiln"], "importance": "high",
        "content": {"outcome": "failure", "errorMessage": "cold"},
        "source": "user", "status": "archived", "accessCount": 1, "lastAccessedAt": "2026-01-02",
    }  # fmt: skip
    yield shapes.to_episode_line(_record(Episode))
    yield shapes.to_stream_line(_record(Entry))
    yield to_plain(_record(Event))
    yield audit_line(_record(Brief), {})
    yield audit_line(_record(Verdict), {})
    for shape in shapes.SHAPES:
        yield shapes.to_line(_record(record_type(shape.name)))


def _shared_lines() -> Iterator[dict[str, Any]]:
    yield to_shared_line(_record(Lesson))
    for kind in (Brief, Verdict):
        yield {"kind": kind.__name__.lower(), **to_plain(_record(kind))}


def _mutations(value: Any) -> Iterator[Any]:
    """Yield a value with one wrong value in each of its places, and with each one missing."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, item in items:
        for wrong in _WRONG:
            yield {**value, key: wrong} if isinstance(value, dict) else [wrong, *value[1:]]
        if isinstance(value, dict):
            yield {name: each for name, each in items if name != key}
        if isinstance(item, dict | list):
            for inner in _mutations(item):
                yield {**value, key: inner} if isinstance(value, dict) else [inner]


def _write(path: Path, line: dict[str, Any]) -> int:
    mutated = [json.dumps(each) for each in _mutations(line)]
    path.parent.mkdir(parents=True, exist_ok=True)
    # The last line is whole: what stands before it must not end the reading.
    path.write_text("\n".join((*mutated, json.dumps(line))) + "\n")
    return len(mutated)


@pytest.mark.parametrize("is_approved", [False, True])
@pytest.mark.parametrize("line", [*_lines()], ids=lambda line: "-".join([*line][:3]))
def test_an_imported_line_with_a_wrong_value_is_named(
    bank: Bank, tmp_path: Path, line: dict[str, Any], is_approved: bool
) -> None:
    count = _write(tmp_path / "lines.jsonl", line)
    done = bank.exchange.import_files([tmp_path / "lines.jsonl"], is_approved=is_approved)
    # Nobody vouches: audit records are left, and not read.
    assert count // 5 < len(done.problems) + done.left.get("audit records", 0) <= count + 1
    assert all(problem.number and problem.reason for problem in done.problems)
    bank.exchange.export(tmp_path / "out", has_events=True)
    files = sorted(path for path in (tmp_path / "out").glob("*.jsonl") if path.stat().st_size)
    assert not bank.exchange.import_files(files, is_approved=is_approved).problems


@pytest.mark.parametrize("line", [*_shared_lines()], ids=lambda line: "-".join([*line][:3]))
def test_a_shared_line_with_a_wrong_value_is_named(bank: Bank, tmp_path: Path, line: dict[str, Any]) -> None:
    folder = tmp_path / "shared"
    count = _write(folder / ("audit" if "kind" in line else "lessons") / f"{_CLONE}.jsonl", line)
    for trusted in ((), (_CLONE,)):
        done = bank.exchange.share(folder, trust=trusted)
        assert count // 5 < len(done.problems) <= count
        assert all(problem.number and problem.reason for problem in done.problems)


_SKILL = {
    "name": "kiln",
    "description": "Heat it",
    "license": "MIT",
    "compatibility": "any",
    "allowed-tools": "Bash",
    "metadata": {"saved-by": "ada"},
}


def test_a_skill_with_a_wrong_value_is_listed_with_its_problem() -> None:
    for fields_ in _mutations(_SKILL):
        head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields_.items())
        text = f"---\n{head}---\n\nHeat the kiln.\n"
        for client in ("", "codex"):
            skill = read_skill(text, "w/_skills/kiln/SKILL.md", WorkspaceScope("w"), client)
            assert isinstance(skill.description, str)
        assert isinstance(saving_agent(text), str)


@pytest.mark.parametrize("record", [*_WRONG, *({".": wrong, "plugin.json": wrong} for wrong in _WRONG)])
def test_a_plugin_folder_with_a_wrong_record_is_another_or_stays(tmp_path: Path, record: object) -> None:
    for name in (".archivist-plugin.json", "plugin.json"):
        (tmp_path / name).write_text(json.dumps(record))
    plan_uninstall(tmp_path)
    with suppress(InputError):
        changes = plan_install(tmp_path)
        assert user_modified_files(changes, tmp_path) == [tmp_path / "plugin.json"]


@pytest.mark.parametrize(
    "body", [*(json.dumps(wrong).encode() for wrong in _WRONG), b"[" * 9_000, b'{"text":']
)
def test_a_server_that_answers_anything_is_no_server_of_ours(body: bytes) -> None:
    class Answering(Outbox):
        status = 200

        def request(self, *_: Any, **__: Any) -> ServerResponse:
            return ServerResponse(self.status, body)

    outbox = Answering("https://team.example", "arch_token")
    for status in (200, 500):
        outbox.status = status
        assert outbox.brief("r-1", "kiln", "codex", 0.0) is None
        with suppress(InputError):
            assert isinstance(outbox.call("GET", "/api/me"), dict)


@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_what_a_program_printed_however_deep_is_no_failure_of_a_hook(
    archivist: Command, project: Path, client: str
) -> None:
    archivist("init")
    printed = '{"a": ' + "[" * 9_000 + "}"
    said = {"session_id": "n-1", "tool_name": "Bash", "tool_input": {"command": "make"}, "cwd": str(project)}
    event = json.dumps({**said, "tool_response": printed, "tool_output": printed})
    assert archivist("hook", client, "tool-failure", stdin=event.encode()).code == 0
    assert read_log(state_folder(bank_file(project))) == []


def test_no_secret_stays_in_what_a_line_of_the_stream_has_beside_its_fields(
    bank: Bank, tmp_path: Path
) -> None:
    line = shapes.to_stream_line(_record(Entry, extra={"note": {"password": "xK9$mQ2vR7pL4wZ8"}}))
    (tmp_path / "stream.jsonl").write_text(json.dumps(line))
    bank.exchange.import_files([tmp_path / "stream.jsonl"], is_approved=True)
    with bank.reading() as reader:
        (entry,) = reader.select(Entry)
    assert entry.extra == {"note": {"password": "[redacted:password]"}}
