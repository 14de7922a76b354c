"""An erasure that is interrupted after its rows are erased is finished by the next call, whatever it is."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from archivist import Bank
from archivist.config import Config, StoreRules
from archivist.edges.hooks import follow_up
from archivist.errors import BankError, BankLockedError
from archivist.exchange import service as exchange
from archivist.files.jsonl import write_lines
from archivist.forget import service
from archivist.forget.unfinished_service import open_key
from archivist.store.erasure import ERASED
from archivist.store.ledger import RECEIPT_KIND
from tests.banks import fresh_bank
from tests.commands import PROGRAM
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

# Put together at run time, so that no file of the tests holds it.
PARTS = ("Periwinkle", "Ocelot", "8836")
SECRET = " ".join(PARTS)


def _holders(*folders: Path, text: str = SECRET) -> list[str]:
    needle = text.lower().encode()
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in files if needle in path.read_bytes().lower())


def _interrupt(bank: Bank, monkeypatch: pytest.MonkeyPatch, *names: str, matching: str = SECRET) -> None:
    """Erase, but stop between the rows and the files."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(service, "clean_files", stop)
        bank.erasure.erase(names, matching="" if names else matching)
    bank.close()


@pytest.fixture
def told(tmp_path: Path) -> Bank:
    """Open a bank that holds the secret, in an export and in a share folder too."""
    bank = fresh_bank(tmp_path / "memory")
    bank.lessons.add("Run the linter first")
    bank.lessons.add(f"Never print {SECRET} in a log")
    bank.exchange.export(tmp_path / "out")
    bank.exchange.share(tmp_path / "share")
    return bank


@pytest.mark.parametrize(
    "call",
    [
        lambda bank, _: bank.brief(),
        lambda bank, _: bank.doctor.status(),
        lambda bank, _: bank.doctor.health(),
        lambda bank, folder: bank.exchange.share(folder / "other"),
        lambda bank, folder: bank.exchange.export(folder / "other"),
        lambda bank, folder: bank.stream.export(folder / "stream.jsonl"),
        lambda bank, _: bank.erasure.prune(is_dry_run=False),
        lambda bank, _: bank.erasure.erase(matching="something else"),
    ],
    ids=["any call", "status", "doctor", "share", "export", "stream export", "prune", "erase"],
)
@pytest.mark.parametrize("names", [(), ("m-002",)], ids=["a text", "a lesson"])
def test_the_next_call_finishes_it(
    told: Bank,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Bank, Path], object],
    names: tuple[str, ...],
) -> None:
    _interrupt(told, monkeypatch, *names)
    assert len(_holders(tmp_path / "out", tmp_path / "share")) == 2
    with Bank.open(tmp_path / "memory", create=False) as bank:
        call(bank, tmp_path)
        assert bank.erasure.unfinished_erasures() == []
        assert bank.ledger.verify().is_whole
    assert _holders(tmp_path) == []
    assert list((tmp_path / "home" / ".archivist" / "erasures").iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("brief",),
        ("recall", "linter"),
        ("lessons", "list"),
        ("lessons", "add", "Use tabs"),
        ("stream", "log", "Deployed"),
        ("capture", "run.jsonl"),
        ("reflect", "--pending"),
        ("verify",),
        ("backup", "copy.db"),
        ("restore", "before.db"),
        ("doctor", "--reindex"),
    ],
    ids=" ".join,
)
def test_the_next_command_finishes_it_and_says_so(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archivist: Command, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "memory"
    agent_log(folder / "run.jsonl", MISSING_MODULE)
    with fresh_bank(tmp_path / "before") as before:
        before.doctor.back_up(folder / "before.db")
    _interrupt(told, monkeypatch)
    ran = archivist(*words, cwd=folder)
    assert ran.code == 0, ran.err
    assert "finished the interrupted erasure" in ran.err
    assert _holders(tmp_path) == []
    assert list((tmp_path / "home" / ".archivist" / "erasures").iterdir()) == []
    assert archivist("verify", cwd=folder).code == 0


def test_a_hook_does_not_wait_for_it_and_what_follows_a_turn_finishes_it(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archivist: Command
) -> None:
    _interrupt(told, monkeypatch)
    folder = tmp_path / "memory"
    event = json.dumps({"session_id": "s-1", "cwd": str(folder), "source": "startup"})
    assert archivist("hook", "claude-code", "session-start", cwd=folder, stdin=event.encode()).code == 0
    assert len(_holders(tmp_path / "out", tmp_path / "share")) == 2
    follow_up.main(("stop", "claude-code", "s-1", "", str(folder), str(folder)))
    assert _holders(tmp_path) == []


def test_a_bank_with_one_is_whole_and_one_with_anything_else_in_its_place_is_not(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt(told, monkeypatch)
    with Bank.open(tmp_path / "memory", create=False, is_hasty=True) as bank:
        assert bank.store.find_damage() == []
        for noted in ('{"id": "x"}', "[1]", "[", '["x"]'):
            with bank.transaction() as writer:
                writer.set_setting("unfinished_erasures", noted)
            (damage,) = bank.store.find_damage()
            assert damage.where == "settings 'unfinished_erasures'"
    # What the setting cannot say stops no command.
    with Bank.open(tmp_path / "memory", create=False) as bank:
        assert "Run the linter first" in bank.brief().text


def test_salvage_carries_it_over_finishes_it_and_names_the_copy_that_still_holds_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archivist: Command
) -> None:
    folder, word = tmp_path / "memory", "zyxq" + "".join(PARTS[:2]).lower()
    with fresh_bank(folder) as bank:
        bank.lessons.add("Run the linter first")
        bank.lessons.add(f"Never print {word} in a log")
        bank.exchange.share(tmp_path / "share")
        _interrupt(bank, monkeypatch, matching=word)
    ran = archivist("salvage", "--replace", cwd=folder)
    assert ran.code == 0, ran.err
    assert "finished the interrupted erasure" in ran.err
    holders = _holders(tmp_path, text=word)
    assert all(name.startswith("memory.db.damaged-") and name in ran.err for name in holders)
    # The index of the file that was kept still had the word, or this test says nothing.
    assert holders
    assert archivist("verify", cwd=folder).code == 0


@pytest.mark.parametrize("words", [("restore", "copy.db"), ("salvage", "--replace")], ids=" ".join)
def test_an_erasure_removes_the_copy_that_a_killed_command_left(
    told: Bank, tmp_path: Path, archivist: Command, words: tuple[str, ...]
) -> None:
    told.doctor.back_up(tmp_path / "memory" / "copy.db")
    told.close()
    command = [PROGRAM, *words]
    points = str(Path(__file__).parent / "kill_points")
    steps = tmp_path / "steps"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((points, os.environ.get("PYTHONPATH", "")))}
    folder = tmp_path / "memory"
    subprocess.run(command, cwd=folder, env={**environment, "KILL_COUNT": str(steps)}, check=True)
    kept = set((folder / ".archivist").iterdir())
    # Somewhere in the middle of the work the copy lies there; where, the number of steps does not say.
    for step in range(int(steps.read_text()), 0, -20):
        subprocess.run(command, cwd=folder, env={**environment, "KILL_AT": str(step)}, check=False)
        left = [path for path in (folder / ".archivist").iterdir() if path.is_dir()]
        for path in set((folder / ".archivist").iterdir()) - kept - {*left}:
            if path.name.startswith("memory.db."):
                path.unlink()
        if any(_holders(path) for path in left):
            break
    assert any(_holders(path) for path in left)
    (folder / "copy.db").unlink()
    for path in kept:
        if path.name.startswith("memory.db."):
            path.unlink()
    archivist("erase", "--matching", SECRET, "--yes", cwd=folder)
    assert _holders(folder) == []


def test_neither_the_bank_nor_the_key_holds_the_text_meanwhile(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt(told, monkeypatch)
    assert _holders(tmp_path / "home") == []
    with Bank.open(tmp_path / "memory", create=False, is_hasty=True) as bank:
        (erasure,) = bank.erasure.unfinished_erasures()
        with bank.reading() as reader:
            kept = reader.setting("unfinished_erasures").lower()
        assert not any(part.lower() in kept or part.encode().hex() in kept for part in PARTS)
        with open_key(erasure) as opened:
            assert opened is not None
            assert opened.texts == (SECRET,)
            # It is held now, as by a process that works on it.
            assert bank.erasure.finish_erasures() == []


def test_the_doctor_says_what_was_finished_and_the_ledger_has_its_receipt(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt(told, monkeypatch)
    with Bank.open(tmp_path / "memory", create=False, is_hasty=True) as bank:
        (erasure,) = bank.erasure.unfinished_erasures()
        check = next(each for each in bank.doctor.health() if each.name == "erasure")
        assert check.is_well
        assert check.text == f"finished the interrupted erasure {erasure.id}"
        again = next(each for each in bank.doctor.health() if each.name == "erasure")
        assert again.text == "nothing is left to clean"
        with bank.reading() as reader:
            payloads = [json.loads(payload or "{}") for _, payload in reader.ledger(kind=RECEIPT_KIND)]
    assert payloads[-1]["is_clean"]
    assert str(tmp_path / "out" / "lessons.jsonl") in {place["place"] for place in payloads[-1]["places"]}


def test_without_its_key_it_is_told_until_the_text_is_erased_again(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archivist: Command
) -> None:
    _interrupt(told, monkeypatch)
    folder = tmp_path / "memory"
    for key in (tmp_path / "home" / ".archivist" / "erasures").iterdir():
        key.unlink()
    for _ in range(2):
        told_again = archivist("doctor", cwd=folder)
        assert "its key is gone: erase the text again" in told_again.out
        assert told_again.code == 1
    assert archivist("erase", "--matching", SECRET, "--yes", cwd=folder).code == 0
    assert "nothing is left to clean" in archivist("doctor", cwd=folder).out
    assert _holders(tmp_path) == []


def test_a_lesson_is_erased_from_files_even_without_the_key(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt(told, monkeypatch, "m-002")
    for key in (tmp_path / "home" / ".archivist" / "erasures").iterdir():
        key.unlink()
    with Bank.open(tmp_path / "memory", create=False) as bank:
        bank.doctor.status()
    assert _holders(tmp_path) == []


def test_a_home_that_cannot_be_written_does_not_stop_an_erasure(told: Bank, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".archivist"
    home.mkdir(parents=True, exist_ok=True)
    (home / "erasures").write_text("not a folder")
    assert told.erasure.erase(matching=SECRET).is_clean
    assert told.erasure.unfinished_erasures() == []
    told.close()
    assert _holders(tmp_path) == []


def test_nothing_is_erased_between_what_an_export_reads_and_what_it_writes(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def write_slowly(path: Path, values: Iterable[Mapping[str, object]], **_options: object) -> int:
        hasty = Config(store=StoreRules(busy_timeout_s=0.05))
        with Bank.open(tmp_path / "memory", create=False, config=hasty) as other:
            try:
                other.erasure.erase(matching=SECRET)
            except BankLockedError as error:
                refused.append(error.code)
        return write_lines(path, values)

    with monkeypatch.context() as patched:
        patched.setattr(exchange, "write_lines", write_slowly)
        written = told.exchange.export(tmp_path / "slow")
    assert len(refused) == len(written)
    assert told.erasure.erase(matching=SECRET).is_clean
    told.close()
    assert _holders(tmp_path) == []


def test_a_file_whose_writing_was_interrupted_is_cleaned(
    told: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_stop(path: Path, _: object, **_options: object) -> int:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"id": "x", "description": SECRET}) + "\n")
        raise BankError("the disk is gone")

    with monkeypatch.context() as patched, pytest.raises(BankError):
        patched.setattr(exchange, "write_lines", write_and_stop)
        told.exchange.export(tmp_path / "cut")
    assert told.erasure.erase(matching=SECRET).is_clean
    assert ERASED in (tmp_path / "cut" / "lessons.jsonl").read_text()
    told.close()
