"""The folder in which a server's tool ran a command, whatever the tool calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from archivist.records.run_words import FOLDER
from tests.samples import agent_log


@pytest.mark.req("M8", "N5")
@pytest.mark.parametrize("name", ["cwd", "projectPath", "root", "repo_path", "workspaceFolder", "uri"])
def test_the_path_beside_a_command_is_its_folder(bank: Bank, tmp_path: Path, name: str) -> None:
    log = agent_log(tmp_path / "s.jsonl", [("npm test", "12 passed", False)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    call = next(line for line in lines if line["type"] == "assistant")["message"]["content"][0]
    call["name"] = "mcp__ide__execute_terminal_command"
    call["input"] |= {name: ("file://" if name == "uri" else "") + "/home/x/other", "shell": "/bin/bash"}
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    bank.runs.capture_file(log)
    (event,) = (each for each in bank.runs.events("s-1", range(4)) if each.tool.startswith("mcp"))
    assert event.extra[FOLDER] == "/home/x/other"
