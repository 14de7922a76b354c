"""A write that is sent again by its key: it is done once, whatever came between it and its answer."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import httpx
import pytest

from archivist import Bank
from tests.edges.http_server import ADA, Served, serving
from tests.samples import MISSING_MODULE, agent_log

CLIENTS = 6
ROUNDS = 4


def _post(client: httpx.Client, key: str) -> httpx.Response:
    entry = {"action": "did", "content": key, "importance": 5}
    return client.post("/api/stream", headers={"Idempotency-Key": key}, json=entry)


def _until_killed(served: Served, client: httpx.Client, prefix: str) -> list[str]:
    """Post from many at once until the server is killed in the middle; return all that was sent."""
    sent: list[str] = []

    def post(worker: int) -> None:
        for number in range(10_000):
            key = f"{prefix}-{worker}-{number}"
            sent.append(key)
            try:
                assert _post(client, key).status_code == 201
            except httpx.TransportError:
                return

    workers = [threading.Thread(target=post, args=(worker,)) for worker in range(CLIENTS)]
    for each in workers:
        each.start()
    time.sleep(0.5)
    served.process.send_signal(signal.SIGKILL)
    served.process.communicate()
    for each in workers:
        each.join()
    return sent


@pytest.mark.req("M6")
def test_what_a_killed_server_did_is_not_done_again(tmp_path: Path) -> None:
    sent: list[str] = []
    with serving(tmp_path) as first:
        secret = first.token("human:ada")
    for number in range(ROUNDS):
        with serving(tmp_path) as served:
            head = {"Authorization": f"Bearer {secret}"}
            with httpx.Client(base_url=served.url, headers=head, timeout=60) as client:
                sent += _until_killed(served, client, f"round-{number}")
    with (
        serving(tmp_path) as served,
        httpx.Client(base_url=served.url, headers=head, timeout=60) as client,
    ):
        for key in sent:
            assert _post(client, key).status_code == 201
        with Bank.open(tmp_path, actor=ADA) as bank:
            assert {each.content for each in bank.stream.recent(limit=100_000)} == set(sent)
            db = apsw.Connection(str(bank.path), flags=apsw.SQLITE_OPEN_READONLY)
            written = Counter(content for (content,) in db.execute("SELECT content FROM entries"))
            db.close()
    assert set(written.values()) == {1}


def test_a_key_is_free_at_once_when_a_busy_bank_refused_its_work(tmp_path: Path) -> None:
    with serving(tmp_path, settings=("store.busy_timeout_s=0.2",)) as served, served.client() as client:
        with Bank.open(tmp_path, actor=ADA) as other, other.transaction():
            refused = _post(client, "k")
        assert (refused.status_code, refused.json()["code"]) == (503, "bank_locked")
        done = _post(client, "k")
        assert (done.status_code, "idempotency-replayed" in done.headers) == (201, False)
        assert _post(client, "k").headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("kind", ["capture", "reflect"])
def test_what_takes_long_is_answered_the_same_to_all_who_send_it_at_once(tmp_path: Path, kind: str) -> None:
    log = agent_log(tmp_path / "log.jsonl", MISSING_MODULE, session="s-1").read_bytes()
    with serving(tmp_path) as served, served.client() as client:
        send: dict[str, Callable[[], httpx.Response]] = {
            "capture": lambda: client.post("/api/capture", content=log, headers={"Idempotency-Key": "k"}),
            "reflect": lambda: client.post("/api/reflect", json={}, headers={"Idempotency-Key": "r"}),
        }
        if kind == "reflect":
            send["capture"]()
        answers: list[httpx.Response] = []
        senders = [threading.Thread(target=lambda: answers.append(send[kind]())) for _ in range(4)]
        for each in senders:
            each.start()
        for each in senders:
            each.join()
    assert {each.status_code for each in answers} == {201 if kind == "capture" else 200}
    assert len({each.text for each in answers}) == 1
    assert sum("idempotency-replayed" in each.headers for each in answers) == 3


def test_a_key_makes_nothing_wait_that_only_reads(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k"}
    asked = {"/api/brief": {"task": "x"}, "/api/heal": {"error": "x"}, "/api/tools/recall": {"query": "x"}}
    with (
        serving(tmp_path, settings=("store.busy_timeout_s=20",)) as served,
        served.client() as client,
        served.client("agent:kit") as agent,
        Bank.open(tmp_path, actor=ADA) as other,
        other.transaction(),
    ):
        began = time.monotonic()
        for path, body in asked.items():
            assert client.post(path, json=body, headers=key).status_code == 200
        fact = {"category": "c", "key": "k", "value": "v"}
        assert agent.post("/api/tools/knowledge_put", json=fact, headers=key).status_code == 403
        assert time.monotonic() - began < 10


def test_saving_files_by_a_key_holds_up_nobody(tmp_path: Path) -> None:
    items = [{"text": f"Decided to use tool {number}", "kind": "decision"} for number in range(60)]
    body = {"scope": "acme", "items": items, "create": True}
    with serving(tmp_path) as served, served.client() as client, served.client() as other:
        answers: list[httpx.Response] = []
        saving = threading.Thread(
            target=lambda: answers.append(
                client.post("/api/workspace/save", json=body, headers={"Idempotency-Key": "s"})
            )
        )
        saving.start()
        waits: list[float] = []
        while saving.is_alive():
            began = time.monotonic()
            assert _post(other, f"beside-{len(waits)}").status_code == 201
            waits.append(time.monotonic() - began)
        saving.join()
        assert answers[0].status_code == 200, answers[0].text
        again = client.post("/api/workspace/save", json=body, headers={"Idempotency-Key": "s"})
        assert (again.json(), again.headers["idempotency-replayed"]) == (answers[0].json(), "true")
    assert len(waits) > 3
