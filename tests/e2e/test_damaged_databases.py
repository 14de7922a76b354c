"""A client's database of which a part cannot be read is named by every command that reads it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e import client_homes
from tests.e2e.conftest import Setup


def _damage(database: Path, how: str) -> None:
    with closing(sqlite3.connect(database)) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = database.read_bytes()
    if how == "no database":
        database.write_bytes(b"X" * len(data))
    else:
        # All but the first page, which names the tables.
        database.write_bytes(data[:4096] + b"X" * (len(data) - 4096))


@pytest.mark.parametrize("how", ["no database", "pages"])
@pytest.mark.parametrize("client", ["opencode", "cursor"])
def test_a_damaged_database_is_told_by_setup_and_doctor(
    client: str, how: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app)
    database = getattr(client_homes, client)(fresh_home, app)
    assert run(app, "setup", "--yes", "--client", client).code == 0
    assert run(app, "doctor").code == 0
    _damage(database, how)
    dry = run(app, "setup", "--dry-run")
    assert (dry.code, str(database) in dry.out) == (7, True), dry.out
    again = run(app, "setup", "--yes")
    assert (again.code, str(database) in again.err) == (7, True), again.err
    doctor = run(app, "doctor", "--json")
    (line,) = [check for check in json.loads(doctor.out)["checks"] if check["name"] == client]
    assert (doctor.code, line["ok"]) == (1, False)
    assert database.name in line["text"]


def test_a_database_is_not_captured_as_a_log_but_by_setup(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    database = client_homes.opencode(fresh_home, app)
    assert run(app, "init").code == 0
    for words in (("--format", "opencode"), ()):
        done = run(app, "capture", *words, str(database))
        assert done.code != 0
        assert "is a database and no log" in done.err
        assert "hint: archivist setup takes this repository's sessions" in done.err


def test_the_doctor_says_of_which_client_no_wishes_are_learnt(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.opencode(fresh_home, app)
    client_homes.codex(fresh_home, app, 1)
    run(app, "setup", "--yes")
    checks = {each["name"]: each["text"] for each in json.loads(run(app, "doctor", "--json").out)["checks"]}
    assert "learnt from its log, but no wishes, since it does not say what was typed" in checks["opencode"]
    assert "wishes" not in checks["codex"]
