"""Nobody waits for who does something else: lanes, large logs, other processes, a bank that goes away."""

from __future__ import annotations

import gzip
import json
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import httpx
import pytest

from archivist import Bank
from archivist.config import Config, StoreRules
from archivist.edges.server import banks as lanes
from archivist.edges.server.banks import BankPool, PoolLane
from archivist.edges.server.checks import Refusal
from archivist.errors import BankLockedError
from archivist.files.packed import exceeds_unpacked_size
from archivist.records import Actor, ActorKind
from archivist.store.sqlite.schema import MIGRATIONS, Migration
from archivist.store.sqlite.store import SqliteStore
from tests.edges.http_server import ADA, Served, serving

_LINE = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "try it again " * 400}}
# Far beyond what an answer takes, far below what the others do.
_SOON_S = 4.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one bank for all tests of this file."""
    with serving(
        tmp_path_factory.mktemp("lanes"), "--quiet", settings=("server.max_unpacked_mb=20",)
    ) as served:
        yield served


def _log(megabytes: int, session: str) -> bytes:
    line = json.dumps({**_LINE, "sessionId": session}).encode() + b"\n"
    return gzip.compress(line * (megabytes * 1024 * 1024 // len(line)))


def test_reads_go_on_while_another_process_keeps_everybody_from_writing(served: Served) -> None:
    db = apsw.Connection(str(served.folder / ".archivist" / "memory.db"))
    with served.client() as client, ThreadPoolExecutor(8) as pool:
        token = client.headers["Authorization"]
        db.execute("BEGIN IMMEDIATE")
        try:
            writes = [
                pool.submit(
                    httpx.post,
                    f"{served.url}/api/stream",
                    json={"action": f"did {number}"},
                    headers={"Authorization": token},
                    timeout=60,
                )
                for number in range(8)
            ]
            time.sleep(0.5)
            began = time.monotonic()
            for _ in range(5):
                assert client.get("/api/status").status_code == 200
                assert client.post("/api/brief", json={"task": "anything"}).status_code == 200
                assert client.post("/api/tools/lesson_query", json={}).status_code == 200
            assert time.monotonic() - began < _SOON_S
            assert not any(write.done() for write in writes)
        finally:
            db.execute("ROLLBACK")
            db.close()
        assert {write.result().status_code for write in writes} == {201}


def test_reads_go_on_while_the_whole_bank_is_checked_that_another_process_writes(served: Served) -> None:
    db = apsw.Connection(str(served.folder / ".archivist" / "memory.db"))
    with served.client("agent:kit") as client, ThreadPoolExecutor(5) as pool:
        headers = {"Authorization": client.headers["Authorization"]}
        db.execute("BEGIN IMMEDIATE")
        try:
            asked = f"{served.url}/api/health?full=true"
            checks = [pool.submit(httpx.get, asked, headers=headers, timeout=60) for _ in range(5)]
            time.sleep(0.2)
            began = time.monotonic()
            assert client.get("/api/lessons?limit=1").status_code == 200
            answers = [check.result() for check in checks]
            assert time.monotonic() - began < _SOON_S
        finally:
            db.execute("ROLLBACK")
            db.close()
    told = [answer.json()["checks"] for answer in answers if answer.status_code == 200]
    busy = [answer.json()["code"] for answer in answers if answer.status_code != 200]
    assert told
    assert set(busy) <= {"busy"}
    writing = next(each for each in told[0] if each["name"] == "writing")
    assert not writing["is_well"]
    assert "'.archivist/memory.db' was locked by another process" in writing["text"]
    assert not [each for checks in told for each in checks if str(served.folder) in each["text"]]


def test_reads_and_writes_go_on_while_large_logs_are_read(served: Served) -> None:
    logs = [_log(5, f"large-{number}") for number in range(4)]
    with served.client() as client, ThreadPoolExecutor(4) as pool:
        token = client.headers["Authorization"]
        uploads = [
            pool.submit(
                httpx.post,
                f"{served.url}/api/capture?name={number}.jsonl",
                content=log,
                headers={"Authorization": token},
                timeout=120,
            )
            for number, log in enumerate(logs)
        ]
        time.sleep(0.3)
        slowest = 0.0
        while not all(upload.done() for upload in uploads):
            began = time.monotonic()
            assert client.post("/api/brief", json={"task": "anything"}).status_code == 200
            slowest = max(slowest, time.monotonic() - began)
            # A write may wait for one batch of the log's events, not for the log.
            assert client.post("/api/stream", json={"action": "meanwhile"}).status_code == 201
        assert {upload.result().status_code for upload in uploads} == {201}
    assert slowest < _SOON_S


def test_a_log_that_unpacks_to_too_much_is_refused_and_nothing_of_it_taken(served: Served) -> None:
    with served.client() as client:
        for path in ("/api/capture", "/api/runs/bomb/log"):
            refused = client.post(path, content=_log(30, "bomb"))
            assert (refused.status_code, refused.json()["code"]) == (413, "too_large"), refused.text
            assert "20 MB" in refused.json()["detail"]
        assert client.get("/api/runs/bomb").status_code == 404


def test_what_a_file_unpacks_to_is_known_without_unpacking_more(tmp_path: Path) -> None:
    packed, plain, cut = tmp_path / "packed", tmp_path / "plain", tmp_path / "cut"
    packed.write_bytes(gzip.compress(b"x" * 1_000_000))
    plain.write_bytes(b"x" * 1_000)
    cut.write_bytes(packed.read_bytes()[:500])
    assert exceeds_unpacked_size(packed, 999_999)
    assert not exceeds_unpacked_size(packed, 1_000_000)
    assert (exceeds_unpacked_size(plain, 999), exceeds_unpacked_size(plain, 1_000)) == (True, False)
    assert not exceeds_unpacked_size(cut, 2_000_000)


def test_a_bank_that_was_taken_away_is_not_written_to(tmp_path: Path) -> None:
    with serving(tmp_path / "p", "--quiet") as served, served.client() as client:
        assert client.post("/api/stream", json={"action": "one"}).status_code == 201
        shutil.rmtree(served.folder / ".archivist")
        for answer in (
            client.post("/api/stream", json={"action": "two"}),
            client.get("/api/health"),
            httpx.get(f"{served.url}/health"),
            client.get("/api/status"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "no_bank")
        Bank.open(served.folder, create=True, actor=ADA).close()
        assert client.get("/api/status").status_code == 503


def test_a_bank_that_newer_code_upgraded_is_neither_read_nor_written(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "p", "--quiet", settings=("server.poll_s=0.2",)) as served,
        served.client() as client,
    ):
        assert client.post("/api/stream", json={"action": "one"}).status_code == 201
        assert client.get("/api/lessons").status_code == 200
        later = Migration("add telepathy", lambda _db: None)
        SqliteStore.open(served.folder / ".archivist" / "memory.db", migrations=(*MIGRATIONS, later)).close()
        for answer in (
            client.get("/api/lessons"),
            client.post("/api/stream", json={"action": "two"}),
            client.post("/api/capture", content=b"{}"),
            client.get("/api/health?full=true"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "bank_too_new")
        # Who looks for news finds the same at each look.
        time.sleep(1.5)
        _, noted = served.stop()
    assert noted.count("events: ") == 1


def test_a_lane_that_is_full_says_so_and_the_others_go_on(bank: Bank) -> None:
    actor = Actor(ActorKind.HUMAN, "ada")
    banks = BankPool(lambda: Bank.open(bank.path), 1)
    inside, end = threading.Event(), threading.Event()

    def hold() -> None:
        with banks.borrow(actor, PoolLane.LOG):
            inside.set()
            end.wait(30)

    holding = threading.Thread(target=hold)
    holding.start()
    inside.wait(30)

    def wait() -> None:
        with banks.borrow(actor, PoolLane.LOG):
            return

    waiting = [threading.Thread(target=wait) for _ in range(100)]
    for each in waiting:
        each.start()
    deadline = time.monotonic() + 30
    refusal = None
    while refusal is None and time.monotonic() < deadline:
        if sum(banks._waiting.values()) < 100:
            time.sleep(0.01)
            continue
        with pytest.raises(Refusal) as refused, banks.borrow(actor, PoolLane.LOG):
            pass
        refusal = refused.value
    assert refusal is not None
    assert (refusal.status, refusal.code) == (503, "busy")
    with banks.borrow(actor, PoolLane.READ) as reader, banks.borrow(actor, PoolLane.WRITE) as writer:
        writer.lessons.add("Freeze the clock")
        assert reader.lessons.get("m-001").summary == "Freeze the clock"
    end.set()
    for each in (holding, *waiting):
        each.join(30)
    banks.close()


def test_who_waits_to_write_waits_once(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    patience_s = 1.0
    monkeypatch.setitem(lanes._TIMEOUT_S, PoolLane.WRITE, patience_s)
    config = Config(store=StoreRules(busy_timeout_s=patience_s))
    banks = BankPool(lambda: Bank.open(bank.path, config=config), 1)
    for lane in (PoolLane.WRITE, PoolLane.READ):
        with banks.borrow(ADA, lane):
            pass
    other = apsw.Connection(str(bank.path))

    def write(number: int) -> float:
        began = time.monotonic()
        with pytest.raises((BankLockedError, Refusal)), banks.borrow(ADA, PoolLane.WRITE) as writer:
            writer.lessons.add(f"Write {number}")
        return time.monotonic() - began

    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(8) as pool:
        took = list(pool.map(write, range(8)))
    other.execute("ROLLBACK")
    other.close()
    assert max(took) < 1.8 * patience_s
    with banks.borrow(ADA, PoolLane.WRITE) as writer:
        assert writer.lessons.add("Write at last").summary == "Write at last"
    banks.close()


def test_a_bank_and_its_folder_are_their_owners_alone(tmp_path: Path) -> None:
    Bank.open(tmp_path / "deep" / "project", create=True).close()
    folder = tmp_path / "deep" / "project" / ".archivist"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "memory.db").stat().st_mode) == 0o600
