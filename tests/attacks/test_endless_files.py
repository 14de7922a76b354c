"""A link to a device without an end, and a pipe that nobody writes to: no door reads either."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import PROGRAM, Command

# Every option and argument by which a command reads a file of somebody else's.
DOORS = {
    "brief": "brief --for healer --error {}",
    "import": "import {}",
    "capture": "capture {}",
    "outcomes": "capture log.jsonl --outcomes {}",
    "finish": "run finish {}",
    "extract": "extract {}",
    "stream": "stream import {}",
    "knowledge": "knowledge import {}",
    "bank pages": "archive import-bank {}",
    "items": "workspace save team --create --from {}",
    "skill": "workspace skills save deploy --scope team --create --from {}",
    "restore": "restore {}",
    "salvage": "--bank {} salvage",
    "bank": "--bank {} status",
}
STDIN = {
    "brief": "brief --for healer --error -",
    "erase": "erase --yes --matching -",
    "fact": "knowledge set fact long -",
    "items": "workspace save team --create --from -",
}


def _make(kind: str, project: Path) -> str:
    path = project / "given.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    (project / "log.jsonl").write_text('{"run": "r", "seq": 0, "kind": "log", "text": "hello"}\n')
    return str(path)


@pytest.mark.req("N5")
@pytest.mark.parametrize("kind", ["/dev/zero", "pipe"])
@pytest.mark.parametrize("door", DOORS)
def test_no_door_reads_a_file_without_an_end(
    archivist_process: Command, project: Path, door: str, kind: str
) -> None:
    given = _make(kind, project)
    assert archivist_process("init").code == 0
    ran = archivist_process(*DOORS[door].format(given).split())
    assert ran.code not in (0, 1), ran.out
    assert "given.jsonl" in ran.err or kind in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.req("N5")
@pytest.mark.parametrize("door", STDIN)
def test_stdin_is_read_to_a_limit(archivist: Command, project: Path, door: str) -> None:
    assert archivist("init").code == 0
    with Path("/dev/zero").open("rb") as endless:
        ran = subprocess.run(
            ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", PROGRAM, *STDIN[door].split()],
            cwd=project, stdin=endless, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
    assert (ran.returncode, b"is larger than" in ran.stderr) == (4, True), ran.stderr


@pytest.mark.req("N5")
@pytest.mark.parametrize("kind", ["/dev/zero", "pipe"])
def test_share_reads_no_file_without_an_end_in_its_own_name(
    archivist_process: Command, project: Path, kind: str
) -> None:
    assert archivist_process("init").code == 0
    assert archivist_process("lessons", "add", "Mine").code == 0
    assert archivist_process("share", "shared").code == 0
    (own,) = (project / "shared" / "lessons").glob("*.jsonl")
    own.unlink()
    Path(_make(kind, project)).rename(own)
    ran = archivist_process("share", "shared")
    reason = "is no regular file" if kind == "pipe" else "leaves its repository"
    assert (ran.code, reason in ran.err, own.name in ran.err) == (4, True, True)


@pytest.mark.req("N5")
@pytest.mark.parametrize("kind", ["/dev/zero", "pipe"])
def test_erase_names_a_file_without_an_end_and_goes_on(
    archivist_process: Command, project: Path, kind: str
) -> None:
    assert archivist_process("init").code == 0
    assert archivist_process("lessons", "add", "Mine is a zebra").code == 0
    assert archivist_process("export", "out").code == 0
    Path(_make(kind, project)).rename(project / "out" / "given.jsonl")
    ran = archivist_process("erase", "--yes", "--matching", "zebra")
    reason = "is no regular file" if kind == "pipe" else "leaves its repository"
    assert (ran.code, "given.jsonl" in ran.out, reason in ran.out) == (7, True, True)
    assert "zebra" not in (project / "out" / "lessons.jsonl").read_text()


@pytest.mark.req("N5")
def test_a_pipe_of_the_workspace_is_not_waited_for(archivist_process: Command, project: Path) -> None:
    assert archivist_process("init").code == 0
    os.mkfifo(project / "progress.md")
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").symlink_to("/dev/zero")
    assert "settings.json" in archivist_process("install", "claude-code", "--project").err
    assert archivist_process("reflect").code == 0
