"""Logs of sessions that go from folder to folder, and what their project is told afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archivist import Bank
from tests.e2e.client_homes import make_repository

REQUIRED = "build: error: the following arguments are required: --evil"
# The folder that a call was made in, its line, output, and whether it failed.
Call = tuple[Path, str, str, bool]


def moving_log(path: Path, began: Path, calls: Sequence[Call]) -> Path:
    """Write the log of a session of Claude Code that began in a folder."""
    lines = [(began, {"type": "user", "message": {"role": "user", "content": "Make the build pass"}})]
    for number, (folder, command, output, failed) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        said = f"Exit code 2\n{output}" if failed else output
        got = {"type": "tool_result", "tool_use_id": f"t{number}", "content": said, "is_error": failed}
        lines.append((folder, {"type": "assistant", "message": {"role": "assistant", "content": [use]}}))
        lines.append((folder, {"type": "user", "message": {"role": "user", "content": [got]}}))
    moment = datetime.now(UTC)
    rows = [
        {
            **line, "cwd": str(folder), "sessionId": path.stem, "uuid": f"{path.stem}-{number}",
            "timestamp": (moment + timedelta(seconds=number)).isoformat(), "isSidechain": False,
        }
        for number, (folder, line) in enumerate(lines)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def failing_build(folder: Path, before: str = "./build", after: str = "./build --evil 7") -> list[Call]:
    """Return the calls of a build that fails without an argument, and then works."""
    return [(folder, before, REQUIRED, True), (folder, after, "12 passed", False)]


def make_desk(folder: Path) -> Path:
    """Make the user's repository and a stranger's beside each other."""
    make_repository(folder / "shop", "https://github.com/me/shop.git")
    make_repository(folder / "ev", "https://github.com/mallory/ev.git")
    return folder


def told_in(bank: Bank, folder: Path) -> str:
    """Return all that a session in a folder is told of the build."""
    with Bank.open(bank.path, folder=folder) as here:
        briefed = here.sessions.brief_session("", "", folder=folder).text + here.brief(task="./build").text
        return briefed + here.briefs.heal(REQUIRED, command="./build").text
