"""A repeated write that a busy bank comes between: what was done is answered, and is done once."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import apsw
import httpx
import pytest

from tests.edges.http_server import Served, serving

ATTEMPTS = 60
HELD_S = 1.0


def _post(client: httpx.Client, key: str) -> httpx.Response:
    return client.post("/api/lessons", headers={"Idempotency-Key": key}, json={"summary": f"Lesson of {key}"})


def _caught(served: Served, client: httpx.Client, key: str) -> httpx.Response | None:
    """Post a lesson, and hold the bank between its being written and its answer's being kept, if one can."""
    other = apsw.Connection(str(served.folder / ".archivist" / "memory.db"))
    answers: list[httpx.Response] = []
    count = "SELECT count(*) FROM lessons"
    before = other.execute(count).fetchone()
    asking = Thread(target=lambda: answers.append(_post(client, key)))
    asking.start()
    try:
        while asking.is_alive() and other.execute(count).fetchone() == before:
            pass
        other.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        asking.join()
        return None
    kept = other.execute("SELECT count(*) FROM answers WHERE status = 0").fetchone() == (0,)
    if not kept:
        time.sleep(HELD_S)
    other.execute("ROLLBACK")
    asking.join()
    other.close()
    return None if kept else answers[0]


@pytest.mark.req("M6")
def test_what_was_done_is_answered_and_done_once_though_the_bank_was_busy(tmp_path: Path) -> None:
    with (
        serving(tmp_path, settings=("store.busy_timeout_s=0.2",)) as served,
        served.client() as client,
    ):
        found = ((f"key-{number}", _caught(served, client, f"key-{number}")) for number in range(ATTEMPTS))
        key, answer = next((key, answer) for key, answer in found if answer is not None)
        assert answer.status_code == 201
        deadline = time.monotonic() + 20
        while (again := _post(client, key)).status_code == 409 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json() == answer.json()
