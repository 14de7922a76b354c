"""A server that runs while others write its bank, and what it prints of the requests that it gets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.edges.http_server import serving

KEY = "ghp_" + "Zq8" * 12


def _log(path: Path, words: random.Random) -> Path:
    lines = (
        {
            "run": path.stem,
            "seq": seq,
            "kind": "log",
            "text": " ".join(f"w{words.randrange(5000)}" for _ in range(60)),
        }
        for seq in range(60)
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.req("N5")
def test_a_full_check_finds_no_damage_in_what_another_process_wrote(
    project: Path, tmp_path: Path, archivist_process: Command
) -> None:
    words = random.Random(1)  # noqa: S311
    with serving(project, settings=("server.connections=1",)) as server, server.client() as client:
        for number in range(4):
            assert client.get("/api/recall", params={"query": f"w{number}"}).status_code == 200
            log = _log(tmp_path / f"r-{number}.jsonl", words)
            assert archivist_process("capture", str(log), cwd=project).code == 0
        checks = client.get("/api/health", params={"full": "true"}).json()["checks"]
    assert next(check for check in checks if check["name"] == "ledger")["is_well"], checks[0]


@pytest.mark.req("N5")
def test_a_secret_in_a_path_is_not_printed(project: Path) -> None:
    with serving(project) as server:
        with server.client() as client:
            assert client.get(f"/api/lessons/{KEY}").status_code == 404
            assert client.get(f"/{KEY}").status_code == 404
        _, noted = server.stop()
    assert ("/api/lessons/" in noted, KEY in noted) == (True, False)
