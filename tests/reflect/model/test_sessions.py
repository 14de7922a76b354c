"""A session that ends is read by the model in the process that nobody waits for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from archivist.files import hook_log
from archivist.paths import bank_file, state_folder
from archivist.reflect.model.questions import account, lessons
from tests.commands import Command
from tests.reflect.model import replay
from tests.reflect.model.replay import serve_replies
from tests.reflect.model.runs import GOOD
from tests.samples import MISSING_MODULE, agent_log


def _follow_up(project: Path, log: Path, **settings: str) -> None:
    words = ["end", "claude-code", "s-1", str(log), str(project), str(project)]
    subprocess.run(
        [sys.executable, "-m", "archivist.edges.hooks.follow_up", *words],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), **settings},
        check=True,
        timeout=120,
    )


def _dated_log(path: Path, project: Path) -> Path:
    """Write a log of a session in a folder whose lines have times, as clients write them."""
    from datetime import UTC, datetime

    text = agent_log(path, MISSING_MODULE).read_text().replace("/home/x/billing", str(project))
    lines = [json.loads(line) for line in text.splitlines()]
    now = datetime.now(UTC).isoformat()
    path.write_text("".join(json.dumps({**line, "timestamp": now}) + "\n" for line in lines))
    return path


def test_the_detached_process_reads_the_session_with_the_model(
    bank_cli: Command, project: Path, tmp_path: Path
) -> None:
    found = replay.openai_reply(lessons.QUESTION.tool, {"lessons": [{**GOOD, "refines": "m-001"}]})
    told = replay.openai_reply(account.QUESTION.tool, {"outcome": []})
    with serve_replies(found, told) as server:
        settings = {"ARCHIVIST_MODEL__NAME": "openai:m", "ARCHIVIST_MODEL__URL": server.url}
        assert bank_cli("model", "allow", "--yes", **settings).code == 0
        _follow_up(project, _dated_log(tmp_path / "s-1.jsonl", project), **settings)
    assert len(server.requests) == 2
    listed = json.loads(bank_cli("lessons", "list", "--json").out)["lessons"]
    assert [lesson["summary"] for lesson in listed] == [GOOD["summary"]]


def test_a_model_that_is_gone_costs_the_session_nothing(
    bank_cli: Command, project: Path, tmp_path: Path
) -> None:
    with serve_replies() as server:
        settings = {
            "ARCHIVIST_MODEL__NAME": "openai:m",
            "ARCHIVIST_MODEL__URL": server.url,
            "ARCHIVIST_MODEL__ATTEMPTS": "1",
        }
        assert bank_cli("model", "allow", "--yes", **settings).code == 0
    _follow_up(project, _dated_log(tmp_path / "s-1.jsonl", project), **settings)
    listed = json.loads(bank_cli("lessons", "list", "--json").out)["lessons"]
    assert any("freezegun" in lesson["summary"] for lesson in listed)
    logged = "".join(hook_log.read_log(state_folder(bank_file(project))))
    assert "the language model was asked no further: no connection" in logged
