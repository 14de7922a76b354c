"""A shell that stays open goes on where it was sent to: what it meets in another repository stays there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.edges.hooks.dialects import DIALECTS
from tests.attacks.moving_sessions import REQUIRED, make_desk, told_in

pytestmark = pytest.mark.req("N5", "M8")
FAILS = "./build"
WORKS = "./build --evil 7"


def _hook_log(path: Path, client: str, folder: Path, calls: Sequence[Mapping[str, object]]) -> Path:
    """Write what our hooks keep of a session whose client has no log of its own."""
    rows: list[Mapping[str, object]] = [{"moment": "note-prompt", "prompt": "Make the build pass"}]
    for number, call in enumerate(calls):
        output = {FAILS: REQUIRED, WORKS: "12 passed"}.get(str(call["command"]), "")
        given = {key: value for key, value in call.items() if key != "shell_cwd"}
        stated = {"shell_cwd": call["shell_cwd"]} if "shell_cwd" in call else {}
        rows.append({
            "moment": "note-tool", "id": f"{path.stem}-{number}", "tool": "run_in_terminal", "input": given,
            "output": output, "exit_code": 2 if output == REQUIRED else 0, **stated,
        })  # fmt: skip
    moment = datetime.now(UTC)
    head = {"hook": client, "session": path.stem, "cwd": str(folder)}
    lines = [
        {**head, **row, "time": (moment + timedelta(seconds=at)).isoformat()} for at, row in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _copilot_log(path: Path, folder: Path, calls: Sequence[Mapping[str, object]]) -> Path:
    rows: list[tuple[str, Mapping[str, object]]] = [
        ("session.start", {"sessionId": path.stem, "context": {"cwd": str(folder)}}),
        ("user.message", {"content": "Make the build pass"}),
    ]
    for number, call in enumerate(calls):
        output = {FAILS: REQUIRED, WORKS: "12 passed"}.get(str(call["command"]), "")
        code = 2 if output == REQUIRED else 0
        start = {"toolCallId": f"c{number}", "toolName": "bash", "arguments": call}
        result = {"content": f"{output}\n<exited with exit code {code}>"}
        rows.append(("tool.execution_start", start))
        rows.append((
            "tool.execution_complete", {"toolCallId": f"c{number}", "success": True, "result": result}
        ))  # fmt: skip
    moment = datetime.now(UTC)
    lines = [
        {
            "type": kind,
            "data": data,
            "id": f"e{at}",
            "timestamp": (moment + timedelta(seconds=at)).isoformat(),
        }
        for at, (kind, data) in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _told(tmp_path: Path, client: str, calls: Sequence[Mapping[str, object]], *, nested: bool = False) -> str:
    """Return what a session in the user's repository is told after two with these calls."""
    work = make_desk(tmp_path / "work")
    shop = work / "shop"
    if nested:
        (shop / "vendor").mkdir()
        (work / "ev").rename(shop / "vendor" / "ev")
    with Bank.open(shop, create=True) as bank:
        for number in range(2):
            log = tmp_path / f"s-{number}.jsonl"
            made = (
                _copilot_log(log, shop, calls) if client == "copilot" else _hook_log(log, client, shop, calls)
            )
            bank.runs.finish(made)
        return told_in(bank, shop)


def _in_one_shell(*commands: str, shell: str = "") -> list[dict[str, object]]:
    named = {shell: "m"} if shell else {}
    return [{"command": command, **named} for command in (*commands, FAILS, WORKS)]


CLIENTS = [("cursor", ""), ("vscode", ""), ("copilot", ""), ("copilot", "sessionId"), ("copilot", "shellId")]


@pytest.mark.parametrize(("client", "shell"), CLIENTS)
def test_what_a_shell_meets_in_the_project_is_told(tmp_path: Path, client: str, shell: str) -> None:
    assert WORKS in _told(tmp_path, client, _in_one_shell("cd .", "source ./env.sh", shell=shell))


@pytest.mark.parametrize(("client", "shell"), CLIENTS)
@pytest.mark.parametrize(
    "left",
    [
        "cd ../ev", "pushd ../ev", "source ../ev/env.sh", ". ../ev/env.sh", 'eval "$(../ev/activate)"',
        "export PATH=$PWD/../ev/bin:$PATH", "alias build=../ev/build", "build() { ../ev/build; }",
        "export CDPATH=..; cd ev",
    ],
)  # fmt: skip
def test_after_a_shell_has_left_nothing_of_it_is_told(
    tmp_path: Path, client: str, shell: str, left: str
) -> None:
    assert "evil" not in _told(tmp_path, client, _in_one_shell(left, shell=shell))


@pytest.mark.parametrize("client", ["cursor", "vscode"])
def test_a_repository_inside_of_the_project_is_left_as_well(tmp_path: Path, client: str) -> None:
    assert "evil" not in _told(tmp_path, client, _in_one_shell("cd vendor/ev"), nested=True)


def test_a_shell_that_came_back_is_told_of(tmp_path: Path) -> None:
    assert WORKS in _told(tmp_path, "vscode", _in_one_shell("cd ../ev", "cd ../shop"))


def test_the_folder_that_cursor_states_for_a_call_is_kept(tmp_path: Path) -> None:
    event = {"workspace_roots": [str(tmp_path)], "cwd": str(tmp_path / "ev"), "tool_name": "Shell"}
    cursor = DIALECTS["cursor"]
    line = cursor.log_line("note-tool", event, cursor.read(event))
    assert (line["cwd"], line["shell_cwd"]) == (str(tmp_path), str(tmp_path / "ev"))


def test_the_folder_that_cursor_states_for_a_call_counts(tmp_path: Path) -> None:
    ev = str(tmp_path / "work" / "ev")
    calls = [{**call, "shell_cwd": ev} for call in _in_one_shell()]
    assert "evil" not in _told(tmp_path, "cursor", calls)
