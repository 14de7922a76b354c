"""Live events: every change whoever made it, messages, resume without loss or doubling, many listeners."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from archivist import Bank
from archivist.bank import Bank as Opened
from archivist.config import ServerRules
from archivist.edges.http.events import EventHub, EventPosition
from tests.edges.http_server import ADA, Served, serving
from tests.edges.test_http import _run_that_lacked_a_module

_PATIENCE_S = 20.0
_QUICK = ("server.poll_s=0.05", "server.heartbeat_s=0.2", "server.events_kept=20")


class Heard(NamedTuple):
    """An event as a listener gets it."""

    id: str
    name: str
    data: dict[str, object]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one bank for all tests of this file."""
    with serving(tmp_path_factory.mktemp("events"), "--quiet", settings=_QUICK) as served:
        yield served


class Listener:
    """Somebody who listens in a thread, from a place on."""

    def __init__(self, served: Served, last_id: str = "", actor: str = "human:ada") -> None:
        self.heard: list[Heard] = []
        self.beats = 0
        self._client = served.client(actor)
        self._last_id = last_id
        self._has_begun = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        assert self._has_begun.wait(_PATIENCE_S)
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over = True
        self._thread.join(_PATIENCE_S)
        self._client.close()

    def _listen(self) -> None:
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        fields: dict[str, str] = {}
        with self._client.stream("GET", "/api/events", headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self._has_begun.set()
                if self._is_over:
                    return
                if line.startswith(":"):
                    self.beats += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    self.heard.append(Heard(fields["id"], fields["event"], json.loads(fields["data"])))
                    fields = {}

    def wait(self, is_enough: Callable[[list[Heard]], bool]) -> list[Heard]:
        until = time.monotonic() + _PATIENCE_S
        while not is_enough(self.heard):
            assert time.monotonic() < until, self.heard[-3:]
            time.sleep(0.02)
        return list(self.heard)


def _last(served: Served) -> int:
    with Bank.open(served.folder) as bank, bank.reading() as reader:
        return reader.last_entry()


def test_every_change_is_told_whoever_made_it(served: Served) -> None:
    with Listener(served) as listener, served.client("agent:kit") as kit, Bank.open(served.folder) as other:
        other.lessons.add("by another process")
        kit.post("/api/stream", json={"action": "by a client"}).raise_for_status()
        heard = listener.wait(
            lambda all_: len([h for h in all_ if h.data["kind"] in ("lesson", "entry")]) >= 2
        )
        told = [(h.name, h.data["verb"], h.data["kind"], h.data["actor"]) for h in heard]
        assert ("change", "add", "lesson", "human") in told
        assert ("change", "log", "entry", "agent:kit") in told
        assert all(h.id == str(h.data["seq"]) for h in heard)
        listener.wait(lambda _all: listener.beats >= 2)


@pytest.mark.req("A11")
def test_live_messages_come_with_the_changes_before_them(served: Served) -> None:
    with Listener(served) as listener, served.client() as client:
        for number in range(2):
            log = _run_that_lacked_a_module(f"told-{number}")
            client.post("/api/capture", content=log).raise_for_status()
        client.post("/api/reflect", json={}).raise_for_status()
        heard = listener.wait(lambda all_: [h.name for h in all_].count("reflection_complete") >= 2)
    names = [h.name for h in heard]
    assert (
        names.index("reflection_start") < names.index("memories_added") < names.index("reflection_complete")
    )
    places = [EventPosition(*map(int, h.id.split("."))) for h in heard]
    assert places == sorted(set(places))
    added = heard[names.index("memories_added")]
    lessons = [int(h.id) for h in heard if h.name == "change" and h.data["kind"] == "lesson"]
    assert min(lessons) <= int(str(added.data["seq"]))


@pytest.mark.req("A11")
def test_live_messages_of_another_process_are_told_too(served: Served, tmp_path: Path) -> None:
    log = tmp_path / "run.traj"
    with Listener(served) as listener, Bank.open(served.folder) as other:
        for number in range(2):
            log.write_bytes(_run_that_lacked_a_module(f"elsewhere-{number}"))
            other.runs.capture_file(log)
        assert len(list(other.reflections.reflect_waiting())) == 2
        heard = listener.wait(lambda all_: [h.name for h in all_].count("reflection_complete") >= 2)
    told = [h for h in heard if h.name == "reflection_complete"]
    assert [h.data["run"] for h in told] == ["elsewhere-0", "elsewhere-1"]
    assert [h.name for h in heard].count("reflection_start") == 2
    places = [EventPosition(*map(int, h.id.split("."))) for h in heard]
    assert places == sorted(set(places))


def test_who_comes_back_gets_what_he_missed_once(served: Served) -> None:
    first = _last(served)
    with Bank.open(served.folder) as bank:
        for number in range(30):
            bank.lessons.add(f"missed {number}")
        with Listener(served, str(first)) as listener:
            for number in range(30):
                bank.lessons.add(f"live {number}")
            heard = listener.wait(lambda all_: len(all_) >= 60)
        # Somewhere in the middle, from what is kept and from what is only in the ledger.
        for last_id in (heard[9].id, heard[45].id, heard[-1].id):
            with Listener(served, last_id) as again:
                bank.lessons.add("the end")
                rest = again.wait(lambda all_: bool(all_) and int(all_[-1].id) == _last(served))
                assert [int(h.id) for h in rest] == list(range(int(last_id) + 1, _last(served) + 1))
    assert [int(h.id) for h in heard[:60]] == list(range(first + 1, first + 61))


def test_a_place_beyond_everything_is_the_end(served: Served) -> None:
    with Listener(served, "999999999") as listener, Bank.open(served.folder) as bank:
        time.sleep(0.2)
        bank.lessons.add("after the end")
        (heard,) = listener.wait(lambda all_: len(all_) >= 1)
        assert int(heard.id) == _last(served)
    with served.client() as client:
        for bad in ("x", "-1", "1.2.3", "1e9", "9" * 30):
            answer = client.get("/api/events", headers={"Last-Event-ID": bad})
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_event_id")


@pytest.mark.req("M8")
def test_what_somebody_may_not_know_of_is_not_told(served: Served) -> None:
    with (
        Listener(served, actor="human:ada") as ada,
        Listener(served, actor="agent:ann") as ann,
        Listener(served, actor="agent:kit") as kit,
        served.client("agent:kit") as client,
        Bank.open(served.folder) as bank,
    ):
        client.post("/api/working/notes", json={"text": "mine"}).raise_for_status()
        bank.lessons.add("for all")
        kit.wait(lambda all_: {h.data["kind"] for h in all_} >= {"working", "lesson"})
        for each in (ada, ann):
            each.wait(lambda all_: "lesson" in [h.data["kind"] for h in all_])
        kinds = {who: {h.data["kind"] for h in who.heard} for who in (ada, ann, kit)}
        # Each listener came with a token that was made for him, after the one before had begun to listen.
        assert kinds[ada] == {"token", "lesson"}
        assert kinds[ann] == {"lesson"}
        assert kinds[kit] == {"working", "lesson"}


def test_many_idle_listeners_cost_little_and_who_left_is_noticed(served: Served) -> None:
    token = served.token("human:ada")
    request = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    lines = []
    try:
        for _ in range(200):
            line = socket.create_connection(served.address, timeout=_PATIENCE_S)
            lines.append(line)
            line.sendall(request)
        for line in lines:
            assert b"200 OK" in line.recv(4096)
        began, spent = time.monotonic(), _cpu_s(served)
        time.sleep(2)
        share = (_cpu_s(served) - spent) / (time.monotonic() - began)
        # With a heartbeat each 0.2 s, seventy times as often as by default.
        assert share < 0.9
        assert _sockets(served) >= 200
        for line in lines[:100]:
            line.shutdown(socket.SHUT_WR)
        _wait_until(lambda: _sockets(served) < 150)
    finally:
        for line in lines:
            line.close()
    _wait_until(lambda: _sockets(served) < 50)
    with served.client() as client:
        assert client.get("/api/status").status_code == 200


def test_more_listeners_than_allowed_are_refused(tmp_path: Path) -> None:
    with (
        serving(tmp_path, settings=("server.max_listeners=2", "server.heartbeat_s=0.2")) as served,
        Listener(served),
        Listener(served),
        served.client() as client,
    ):
        answer = client.get("/api/events")
        assert (answer.status_code, answer.json()["code"]) == (503, "too_many_listeners")


def test_a_token_that_ends_ends_its_stream(served: Served) -> None:
    with Bank.open(served.folder, actor=ADA) as bank:
        issued = bank.tokens.create("agent:kit")
        headers = {"Authorization": f"Bearer {issued.secret}"}
        with httpx.stream("GET", f"{served.url}/api/events", headers=headers, timeout=_PATIENCE_S) as heard:
            lines = heard.iter_lines()
            assert next(lines).startswith("retry")
            bank.tokens.revoke(issued.token.id)
            for _ in lines:
                continue


def test_what_is_kept_is_no_more_than_asked_for(tmp_path: Path) -> None:
    async def play(bank: Opened) -> list[str]:
        happenings = EventHub(bank, bank, ServerRules(events_kept=5, poll_s=0.01))
        await happenings.start()
        watching = asyncio.create_task(happenings.watch())
        begin = happenings.latest_position
        with Bank.open(bank.path, actor=ADA) as other, other.transaction():
            for number in range(12):
                other.announce("memory_highlight", number=number)
        place = begin
        told: list[str] = []
        while len(told) < 5:
            found, place = await happenings.events_after(place, 1)
            told += [each.text.decode() for each in found]
        watching.cancel()
        return told

    with Bank.open(tmp_path, create=True, actor=ADA) as bank:
        told = asyncio.run(play(bank))
    assert ['"number":' + str(n) in text for n, text in zip(range(7, 12), told, strict=True)] == [True] * 5


def _wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def _cpu_s(served: Served) -> float:
    fields = Path(f"/proc/{served.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _sockets(served: Served) -> int:
    found = 0
    for each in Path(f"/proc/{served.process.pid}/fd").iterdir():
        try:
            found += str(each.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


def test_a_listener_without_a_token_is_refused(served: Served) -> None:
    assert httpx.get(f"{served.url}/api/events").status_code == 401
    with closing(socket.create_connection(served.address)):
        pass
