"""Erasure as a user does it: real processes, and every raw byte looked at afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.samples import agent_log

# Put together at run time, so that no file of the tests holds it. No pattern of ours takes it for a secret.
PARTS = ("Marmalade", "Quokka", "7741")
SECRET = " ".join(PARTS)

_HOLD = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN")
db.execute("SELECT count(*) FROM lessons").fetchall()
print("holding", flush=True)
sys.stdin.readline()
"""

_AS_NOBODY = """
import os, sys, urllib.parse
os.environ["ARCHIVIST_TRUST__FOLDERS"] = sys.argv[1]
import archivist.store.sqlite.store, archivist.store.sqlite.erase, archivist.core.proposals_service
import archivist.forget.service, archivist.exchange.service
from archivist import Bank
from archivist.errors import BankReadOnlyError
os.environ["ARCHIVIST_HOME"] = "/nonexistent"
os.setgid(65534); os.setuid(65534)
bank = Bank.open(sys.argv[1], create=False)
for call in (lambda: bank.erasure.find_erasure_targets(["m-001"]), lambda: bank.erasure.erase(["m-001"])):
    try:
        call()
    except BankReadOnlyError as error:
        print(error.code)
print(bank.erasure.prune().runs)
"""


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


def _holding(*folders: Path) -> list[str]:
    """Return the files that hold the secret, or its first word, in any case."""
    needles = [SECRET.lower().encode(), PARTS[1].lower().encode()]
    return [
        path.name
        for path in _files(*folders)
        if any(needle in path.read_bytes().lower() for needle in needles)
    ]


@pytest.fixture
def told(project: Path, archivist: Command, tmp_path: Path) -> Path:
    """Make a bank that holds the secret in every place, and return the folder of its export and share."""
    outside = tmp_path / "outside"
    calls = [
        (f"grep -r '{SECRET}' .", f"src/a.py: {SECRET.upper()}\n" * 40, False),
        ("make deploy", f'Error: token "{SECRET}" refused', True),
    ]
    log = agent_log(tmp_path / "log.jsonl", calls, prompt=f"Find where {SECRET} is used")
    steps = [
        ("init",),
        ("capture", str(log)),
        ("lessons", "add", f"Never write {SECRET} into a file", "--tag", PARTS[1].lower()),
        ("lessons", "add", "Run the linter first"),
        ("lessons", "edit", "m-002", "--detail", f"once it printed {SECRET}"),
        ("lessons", "edit", "m-002", "--detail", "once it printed a key"),
        ("reflect",),
        ("doctor", "--reindex"),
        ("export", str(outside / "out")),
        ("share", str(outside / "share")),
    ]
    for step in steps:
        assert archivist(*step).code in (0, 1), step
    assert {"memory.db", "lessons.jsonl"} <= set(_holding(project / ".archivist", outside))
    return outside


@pytest.mark.req("N6")
def test_no_byte_of_an_erased_text_is_left_anywhere(told: Path, project: Path, archivist: Command) -> None:
    done = archivist("erase", "--matching", SECRET, "--yes", "--json")
    receipt = json.loads(done.out)
    assert (done.code, receipt["is_clean"]) == (0, True), done.out + done.err
    removed = {each["place"]: each["removed"] for each in receipt["places"]}
    assert removed["lessons"] == 1
    assert removed["events"] >= 2
    assert removed["ledger payloads"] >= 3
    assert removed["vectors"] > 0
    assert removed["text index"] > 0
    assert sum(count for place, count in removed.items() if place.startswith(str(told))) >= 2
    assert _holding(project / ".archivist", told) == []
    assert archivist("verify").code == 0
    assert "Never write [erased] into a file" in archivist("lessons", "list").out
    assert json.loads(archivist("recall", PARTS[1], "--json").out)["hits"] == []
    assert archivist("doctor").out.count("ok  ") >= 2
    again = archivist("erase", "--matching", SECRET, "--yes")
    assert again.code == 0
    assert "nothing was found" in again.out


@pytest.mark.req("N6")
def test_a_lesson_goes_by_its_id(told: Path, project: Path, archivist: Command) -> None:
    assert archivist("erase", "m-001", "--yes").code == 0
    assert archivist("lessons", "show", "m-001").code == 3
    assert archivist("verify").code == 0
    assert b"Never write" not in b"".join(path.read_bytes() for path in _files(project / ".archivist", told))
    again = archivist("erase", "m-001", "--yes")
    assert (again.code, "nothing was found" in again.out) == (0, True)


def test_without_a_terminal_a_yes_is_needed(told: Path, archivist: Command) -> None:
    asked = archivist("erase", "--matching", SECRET)
    assert asked.code == 2
    assert "hint: --yes" in asked.err
    assert _holding(told)
    assert archivist("erase").code == 2
    assert archivist("prune", "--dry-run", "--yes").code == 2


def test_an_unknown_id_is_exit_code_3(told: Path, archivist: Command) -> None:
    assert archivist("erase", "m-404", "--yes").code == 3
    assert archivist("erase", "nobody#3", "--yes").code == 3
    assert told.is_dir()


@pytest.mark.req("N6")
def test_another_process_that_reads_is_reported_and_the_next_erasure_finishes(
    told: Path, project: Path, archivist: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = project / ".archivist" / "memory.db"
    monkeypatch.setenv("ARCHIVIST_STORE__BUSY_TIMEOUT_S", "1")
    reader = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(bank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "holding\n"
        done = archivist("erase", "--matching", SECRET, "--yes")
        assert done.code == 7, done.out + done.err
        assert "another process uses the bank" in done.out
        assert _holding(told) == []
    finally:
        reader.communicate("\n")
    assert archivist("erase", "--matching", SECRET, "--yes").code == 0
    assert _holding(project / ".archivist", told) == []


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become somebody without permission")
def test_a_bank_that_cannot_be_written_is_refused_and_can_be_planned_for(
    project: Path, archivist: Command
) -> None:
    archivist("init")
    archivist("lessons", "add", f"About {SECRET}")
    folder = project / ".archivist"
    for path in (*_files(folder), folder, project):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for parent in project.parents:
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):  # noqa: S108
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(project)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "bank_read_only\nbank_read_only\n0\n", done.stderr
    assert _holding(folder) == ["memory.db"]


@pytest.mark.req("M9")
def test_pruning_is_a_dry_run_until_yes(project: Path, archivist: Command, tmp_path: Path) -> None:
    archivist("init")
    log = tmp_path / "stream.jsonl"
    lines = [
        {"episode": {"id": "old", "started": "2020-01-01T00:00:00Z", "finished": "2020-01-01T01:00:00Z"}},
        *({"run": "old", "seq": seq, "kind": "log", "text": f"Old entry {seq}"} for seq in range(1, 4)),
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    archivist("capture", str(log))
    waits = json.loads(archivist("prune", "--json").out)
    assert (waits["runs"], waits["kept"]) == (0, {"waiting for reflection": 1})
    archivist("reflect")
    # The last run says how many there were, and is kept.
    archivist("run", "start", "--run", "new")
    archivist("run", "finish", "--run", "new")
    said = archivist("prune")
    assert "would delete 1 run and 3 events" in said.out
    assert "hint: --yes" in said.err
    assert "deleted 1 run and 3 events" in archivist("prune", "--yes").out
    assert json.loads(archivist("status", "--json").out)["events"] == 0
    assert archivist("verify").code == 0
    assert "files known already  1" in archivist("capture", str(log)).out
    assert json.loads(archivist("status", "--json").out)["events"] == 0
    assert project.is_dir()
