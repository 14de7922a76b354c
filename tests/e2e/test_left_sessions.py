"""A session that the user left in the normal way ended well, whatever the client notes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e import client_homes
from tests.e2e.conftest import Setup


def _leave(log: Path, *words: str) -> None:
    """Add what Claude Code notes when the user types a command of its own."""
    last = json.loads(log.read_text().splitlines()[-1])
    common = {name: last[name] for name in ("sessionId", "cwd", "version", "isSidechain", "timestamp")}
    with log.open("a") as file:
        for at, text in enumerate(words):
            message = {"role": "user", "content": text}
            is_meta = {"isMeta": True} if "caveat" in text else {}
            file.write(
                json.dumps({"type": "user", "uuid": f"q{at}", **common, "message": message, **is_meta})
            )
            file.write("\n")


@pytest.mark.parametrize("command", ["/exit", "/quit", "/logout"])
@pytest.mark.parametrize("has_output", [True, False])
def test_leaving_a_session_aborts_nothing(
    command: str, has_output: bool, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    log = client_homes.claude_code(fresh_home, app)
    name = command.removeprefix("/")
    noted = [
        "<local-command-caveat>Caveat: these messages are of local commands.</local-command-caveat>",
        f"<command-name>{command}</command-name><command-message>{name}</command-message>",
        "<local-command-stdout>See you!</local-command-stdout>",
    ]
    _leave(log, *(noted if has_output else noted[:2]))
    assert run(app, "setup").code == 0
    (episode,) = json.loads(run(app, "episodes", "list", "--json").out)["episodes"]
    assert episode["status"] == "success"
