"""Banks on a PostgreSQL server from the command line: set-up, moving there and back, sharing."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import psycopg
import pytest

from archivist import Bank
from archivist.store import move
from archivist.store.sqlite.store import SqliteStore
from archivist.trust import note_server_bank
from tests.banks import lay_bank
from tests.commands import Command
from tests.postgres import new_database, shared_database, shared_server


def _fill(archivist: Command, **environment: str) -> None:
    for words in (
        ("lessons", "add", "Use tabs in the Makefile, since spaces break make", "--tag", "build"),
        ("lessons", "edit", "m-001", "--summary", "Use tabs in every Makefile"),
        ("lessons", "add", "Run the linter before the tests \u00e9\u4e2d"),
        ("knowledge", "set", "test", "command", "pytest -q"),
        ("stream", "log", "Mended the build", "--importance", "7"),
        ("brief", "--task", "mend the build", "--run", "r1"),
    ):
        assert archivist(*words, **environment).code == 0, words


def _export(archivist: Command, folder: Path, **environment: str) -> dict[str, bytes]:
    assert archivist("export", str(folder), **environment).code == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.req("C12")
def test_a_bank_goes_to_the_server_and_back_without_loss(bank_cli: Command, tmp_path: Path) -> None:
    _fill(bank_cli)
    before = _export(bank_cli, tmp_path / "before")
    held = bank_cli("status", "--json").out
    server = {"ARCHIVIST_STORE": shared_database()}
    assert bank_cli("store", "init", **server).code == 0
    moved = json.loads(bank_cli("store", "move", "server", "--json", **server).out)
    assert moved["bank"].startswith("postgresql://")
    assert bank_cli("verify", **server).code == 0
    assert _export(bank_cli, tmp_path / "there", **server) == before
    assert bank_cli("status", "--json", **server).out == held
    assert "m-001" in bank_cli("recall", "makefile", **server).out
    assert bank_cli("store", "move", "server", **server).code == 4
    # The folder says where its memory is when the server is not named.
    assert "ARCHIVIST_STORE" in bank_cli("status").err
    assert bank_cli("store", "move", "file", **server).code == 0
    assert bank_cli("verify").code == 0
    assert _export(bank_cli, tmp_path / "back") == before
    assert bank_cli("status", "--json").out == held


def test_a_bank_may_have_any_name_on_the_server(bank_cli: Command) -> None:
    server = {"ARCHIVIST_STORE": shared_database()}
    assert bank_cli("lessons", "add", "Use tabs in the Makefile").code == 0
    for begins in ("a%20b", "a#b?c", "team@shop", "\u00fc/\u4e2d"):
        name = begins + uuid.uuid4().hex
        assert bank_cli("store", "move", "server", "--as", name, **server).code == 0
        shown = json.loads(bank_cli("store", "status", "--json", **server).out)
        assert (shown["bank"].endswith(f"#{name}"), shown["rows"]["lessons"]) == (True, 1)
        assert bank_cli("store", "move", "file", **server).code == 0


def test_a_move_that_is_killed_goes_on_where_it_was(
    bank_cli: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(bank_cli)
    server = {"ARCHIVIST_STORE": shared_database()}
    with monkeypatch.context() as patch:
        patch.setattr(move._Copy, "copy_index", _kill)
        assert bank_cli("store", "move", "server", **server).code != 0
    # Nothing has changed for the folder.
    assert bank_cli("store", "status").out.count("SQLite") == 1
    assert bank_cli("store", "move", "server", **server).code == 0
    assert bank_cli("verify", **server).code == 0
    assert not (project / ".archivist" / "memory.db").exists()


def _kill(*_words: object) -> object:
    raise ZeroDivisionError


def test_a_bank_that_changes_while_it_is_copied_is_not_moved(tmp_path: Path) -> None:
    from archivist.errors import StateError
    from tests.samples import WHEN

    source = Bank.open(lay_bank(tmp_path / "a.db"))
    target = SqliteStore.open(tmp_path / "b.db", create=True)
    source.lessons.add("Use tabs")
    steps = move.copy_bank(source.store, target, WHEN)  # type: ignore[arg-type]
    next(steps)
    with Bank.open(source.path) as other:
        other.lessons.add("Use spaces")
    with pytest.raises(StateError, match="changed while"):
        list(steps)
    source.close()
    target.close()


def test_every_command_works_on_a_server(archivist: Command, project: Path) -> None:
    server = {"ARCHIVIST_STORE": shared_database()}
    made = archivist("init", **server)
    assert made.out.startswith("Made a bank: postgresql://")
    assert not (project / ".archivist").exists()
    _fill(archivist, **server)
    assert "Makefile" in archivist("brief", "--task", "edit the Makefile", **server).out
    assert "pytest -q" in archivist("recall", "how to test", **server).out
    assert archivist("doctor", "--reindex", **server).code in (0, 1)
    assert "PostgreSQL" in archivist("doctor", **server).out
    erased = archivist("erase", "--matching", "linter before", "--yes", **server)
    assert erased.code == 0, erased
    assert "linter before" not in archivist("lessons", "list", "--all", **server).out
    assert archivist("undo", "m-001", **server).code == 0
    assert archivist("verify", **server).code == 0
    refused = archivist("backup", "copy.db", **server)
    assert (refused.code, "pg_dump" in refused.err, "store move" in refused.err) == (5, True, True)
    for words in (("restore", "copy.db"), ("salvage",)):
        refused = archivist(*words, **server)
        assert refused.code == 4, words
        assert "pg_" in refused.err
    assert archivist("trust", **server).code == 0
    assert archivist("init", **server).out.startswith("There is a bank already: postgresql://")


def test_folders_share_a_bank_by_its_name_and_else_have_their_own(archivist: Command, tmp_path: Path) -> None:
    server = {"ARCHIVIST_STORE": shared_database()}
    name = f"team-{uuid.uuid4().hex}"
    folders = [tmp_path / word for word in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:2]:
        assert archivist("init", "--as", name, cwd=folder, **server).code == 0
    archivist("init", cwd=folders[2], **server)
    archivist("lessons", "add", "Use tabs", cwd=folders[0], **server)
    lists = [archivist("lessons", "list", cwd=folder, **server).out for folder in folders]
    assert ["Use tabs" in text for text in lists] == [True, True, False]
    assert archivist("init", "--as", name, cwd=folders[2], **server).code == 4
    assert archivist("init", "--as", name, cwd=tmp_path).code == 4


@pytest.mark.req("M8")
def test_all_banks_are_searched_but_one_that_is_gone(archivist: Command, tmp_path: Path) -> None:
    server = {"ARCHIVIST_STORE": new_database(shared_server())}
    here, gone = tmp_path / "here", tmp_path / "gone"
    for folder in (here, gone):
        folder.mkdir()
        assert archivist("init", cwd=folder, **server).code == 0
        assert archivist("lessons", "add", "Use tabs in the Makefile", cwd=folder, **server).code == 0
    note_server_bank(gone / ".archivist/memory.db", "dropped")
    found = archivist("recall", "makefile", "--bank", "all", cwd=here, **server)
    assert (found.code, "m-001" in found.out, "#dropped" in found.err) == (0, True, True)
    assert archivist("recall", "makefile", "--bank", "here,gone", cwd=here, **server).code == 5
    down = {"ARCHIVIST_STORE": "postgresql://postgres@127.0.0.1:1/x"}
    refused = archivist("recall", "makefile", "--bank", "all", cwd=here, **down)
    assert (refused.code, refused.err.count("cannot be used")) == (5, 1)


def test_a_repository_names_no_server_and_no_bank(
    bank_cli: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".archivist" / "config.toml").write_text('[store]\nurl = "postgresql://evil.test/x"\n')
    refused = bank_cli("status")
    assert (refused.code, "may not be set by a project" in refused.err) == (4, True)
    (project / ".archivist" / "config.toml").unlink()
    # What lies in the folder says nothing about the server's banks either.
    monkeypatch.setenv("ARCHIVIST_STORE", shared_database())
    (project / ".archivist" / "bank").write_text("somebody-elses")
    assert "SQLite" in bank_cli("store", "status").out


def test_a_password_is_in_no_file_and_in_no_answer(archivist: Command) -> None:
    word = uuid.uuid4().hex
    url = f"postgresql://ada:{word}@127.0.0.1:1/x"
    refused = archivist("config", "set", "--global", "store.url", url)
    assert (refused.code, word in refused.err + refused.out) == (4, False)
    for words in (("config", "store.url"), ("config",), ("init",), ("store", "init")):
        said = archivist(*words, ARCHIVIST_STORE=url)
        assert word not in said.out + said.err, words


@pytest.mark.parametrize("sign", ["[", "#", "/", "?", "%", " ", "@"])
def test_a_password_that_must_be_encoded_is_said_so_and_not_shown(archivist: Command, sign: str) -> None:
    url = f"postgresql://ada:s3cr{sign}3t@127.0.0.1:1/x"
    for words in (("store", "status"), ("store", "init"), ("init",)):
        said = archivist(*words, ARCHIVIST_STORE=url)
        assert (said.code, "%25" in said.err) == (4, True), words
        assert "3cr" not in said.out + said.err
        assert "3t" not in said.out + said.err


def test_a_server_that_is_down_is_said_with_what_to_do(archivist: Command) -> None:
    down = {"ARCHIVIST_STORE": "postgresql://postgres@127.0.0.1:1/x"}
    for words in (("init",), ("status",), ("store", "init")):
        said = archivist(*words, **down)
        assert said.code == 5, words
        assert "cannot be used" in said.err
        assert "hint: " in said.err
    assert archivist("store", "init").code == 4
    refused = archivist("status", ARCHIVIST_STORE="mysql://127.0.0.1/x")
    assert (refused.code, "no such store" in refused.err) == (4, True)


def test_the_server_is_described_where_no_bank_is(archivist: Command, tmp_path: Path) -> None:
    url = new_database(shared_server())
    before = archivist("store", "status", cwd=tmp_path, ARCHIVIST_STORE=url)
    assert (before.code, "archivist store init makes them" in before.out) == (1, True)
    assert archivist("store", "init", cwd=tmp_path, ARCHIVIST_STORE=url).code == 0
    after = archivist("store", "status", "--json", cwd=tmp_path, ARCHIVIST_STORE=url)
    shown = json.loads(after.out)
    assert (after.code, shown["bank"], shown["ok"]) == (0, None, True)
    assert shown["bytes"] > 0
    down = archivist("store", "status", cwd=tmp_path, ARCHIVIST_STORE="postgresql://postgres@127.0.0.1:1/x")
    assert (down.code, "cannot be used" in down.err) == (5, True)
    assert "no bank at" in archivist("store", "status", cwd=tmp_path).err


def test_only_the_owner_sets_a_server_up_and_others_are_told(archivist: Command, tmp_path: Path) -> None:
    url = new_database(shared_server())
    role = f"guest_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        guest = {"ARCHIVIST_STORE": url.replace("postgres@", f"{role}@")}
        refused = archivist("store", "init", cwd=tmp_path, **guest)
        assert (refused.code, "the role that owns" in refused.err) == (5, True)
        assert "#'" not in refused.err
        assert archivist("store", "init", cwd=tmp_path, ARCHIVIST_STORE=url).code == 0
        owner.execute(f"GRANT USAGE ON SCHEMA archivist TO {role}")
        owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA archivist TO {role}")
    again = archivist("store", "init", cwd=tmp_path, **guest)
    assert (again.code, "nothing to do" in again.out) == (0, True)
    assert archivist("init", cwd=tmp_path, **guest).code == 0
    assert archivist("lessons", "add", "Use tabs in the Makefile", cwd=tmp_path, **guest).code == 0
    assert "m-001" in archivist("recall", "makefile", cwd=tmp_path, **guest).out


def test_hooks_answer_from_a_server_and_say_nothing_when_it_is_down(
    archivist: Command, project: Path
) -> None:
    server = {"ARCHIVIST_STORE": new_database(shared_server())}
    archivist("init", **server)
    archivist("lessons", "add", "Use tabs in the Makefile", **server)
    event = json.dumps({"session_id": "s1", "cwd": str(project), "hook_event_name": "SessionStart"}).encode()
    said = archivist("hook", "claude-code", "session-start", stdin=event, **server)
    assert "Use tabs" in said.out
    note_server_bank(project / ".archivist" / "memory.db", "elsewhere")
    down = archivist(
        "hook", "claude-code", "session-start", stdin=event, ARCHIVIST_STORE="postgresql://127.0.0.1:1/x"
    )
    assert (down.code, "Use tabs" in down.out) == (0, False)
