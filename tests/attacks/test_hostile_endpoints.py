"""An embedding endpoint that is silent, slow, endless or another one stops nobody: words answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from archivist import Bank
from archivist.config import Config, RecallRules
from archivist.errors import EmbedderError
from archivist.recall.embedders import endpoint
from archivist.recall.embedders.endpoint import EndpointEmbedder
from tests.edges.http_server import serving

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_ENDLESS = b" " * 65536


@dataclass
class Endpoint:
    """A server of embeddings that misbehaves as it is told."""

    url: str = ""
    manner: str = "well"
    dimensions: int = 16
    asked: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: socket.socket) -> None:
        head, _, body = connection.recv(1 << 20).partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < size:
            body += connection.recv(1 << 20)
        texts = json.loads(body)["input"]
        self.asked += texts
        with suppress(OSError):
            self.misbehave(connection, texts)

    def misbehave(self, connection: socket.socket, texts: list[str]) -> None:
        rows = [{"index": n, "embedding": [0.1 + n] * self.dimensions} for n in range(len(texts))]
        found = json.dumps({"data": rows}).encode()
        match self.manner:
            case "silent":
                self.is_over.wait(60)
            case "dripping":
                connection.sendall(_HEAD + b"Content-Length: 999999\r\n\r\n")
                while not self.is_over.wait(0.1):
                    connection.sendall(b" ")
            case "dripping headers":
                connection.sendall(_HEAD)
                while not self.is_over.wait(0.1):
                    connection.sendall(b"X-More: 1\r\n")
            case "endless":
                connection.sendall(_HEAD + b"\r\n")
                while not self.is_over.is_set():
                    connection.sendall(_ENDLESS)
            case "nested":
                deep = b'{"data": ' + b"[" * 200_000
                connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % len(deep) + deep)
            case "huge number":
                many = b'{"data": [{"index": 0, "embedding": [1%s]}]}' % (b"0" * 400)
                connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % len(many) + many)
            case _:
                connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % len(found) + found)


@contextmanager
def listening() -> Iterator[Endpoint]:
    found = Endpoint()
    with socket.create_server(("127.0.0.1", 0)) as server:
        found.url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(
                        target=_close_after, args=(found.answer, connection), daemon=True
                    ).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield found
        finally:
            found.is_over.set()
            server.shutdown(socket.SHUT_RDWR)


def _close_after(answer: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with connection:
        answer(connection)


@pytest.fixture
def hostile() -> Iterator[Endpoint]:
    with listening() as found:
        yield found


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shorter than a user would."""
    monkeypatch.setattr(endpoint, "QUESTION_S", 0.8)
    monkeypatch.setattr(endpoint, "_QUEUE_S", 0.2)


@pytest.mark.req("N7")
@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ("silent", "no answer within"),
        ("dripping", "no answer within"),
        ("dripping headers", "no answer within"),
        ("endless", "more than"),
        ("nested", "an unusable answer"),
        ("huge number", "an unusable answer"),
    ],
)
def test_a_question_waits_a_bounded_time_and_the_next_ones_not_at_all(
    hostile: Endpoint, manner: str, said: str
) -> None:
    hostile.manner = manner
    embedder = EndpointEmbedder(hostile.url, "words")
    began = time.monotonic()
    with pytest.raises(EmbedderError, match=said):
        embedder.embed_query("first")
    assert time.monotonic() - began < 3
    hostile.manner, began = "well", time.monotonic()
    # Another connection to a bank opens its own embedder for the same endpoint.
    for asks in (embedder.embed_query, EndpointEmbedder(hostile.url, "words").embed_query):
        with pytest.raises(EmbedderError, match=said):
            asks("second")
    assert time.monotonic() - began < 0.3
    assert "second" not in hostile.asked


@pytest.mark.req("N7")
@pytest.mark.usefixtures("_quick")
def test_an_endpoint_is_asked_again_after_a_while(hostile: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "REST_S", 0.2)
    hostile.manner = "silent"
    embedder = EndpointEmbedder(hostile.url, "words")
    with pytest.raises(EmbedderError):
        embedder.embed_query("first")
    hostile.manner = "well"
    time.sleep(0.3)
    assert len(embedder.embed_query("second")) == 16


@pytest.mark.req("N7")
@pytest.mark.usefixtures("_quick")
def test_one_question_at_a_time_waits_and_the_others_go_on_by_words(hostile: Endpoint) -> None:
    hostile.manner = "silent"

    def ask(text: str) -> float:
        began = time.monotonic()
        with pytest.raises(EmbedderError):
            EndpointEmbedder(hostile.url, "words").embed_query(text)
        return time.monotonic() - began

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(ask, "first")
        time.sleep(0.3)
        others = [pool.submit(ask, f"other {number}") for number in range(7)]
        assert max(other.result() for other in others) < 0.5 < first.result() + 0.2
    assert hostile.asked == ["first"]


@pytest.mark.req("N7")
def test_the_same_question_is_sent_once(hostile: Endpoint) -> None:
    embedder = EndpointEmbedder(hostile.url, "words")
    assert embedder.embed_query("one") == embedder.embed_query("one")
    assert hostile.asked == ["one"]


@pytest.mark.req("N7")
def test_a_silent_endpoint_stops_no_reader_of_a_server(project: Path, hostile: Endpoint) -> None:
    with Bank.open(project, create=True) as bank:
        bank.lessons.add("Run `make lint` before a commit")
    hostile.manner = "silent"
    settings = (f"recall.embedder=endpoint:{hostile.url}", "recall.endpoint_model=words")
    with serving(project, settings=settings) as server, ThreadPoolExecutor(8) as pool:
        secret = server.token("agent:a")

        def get(path: str) -> tuple[int, float]:
            began = time.monotonic()
            headers = {"Authorization": f"Bearer {secret}"}
            status = httpx.get(server.url + path, headers=headers, timeout=60).status_code
            return status, time.monotonic() - began

        assert get("/api/status")[0] == 200
        asked = [pool.submit(get, f"/api/recall?query=lint+{number}") for number in range(6)]
        time.sleep(0.3)
        seen = [get(path) for path in ("/api/status", "/api/lessons", "/api/status")]
        assert [status for status, _ in seen] == [200] * 3
        assert max(seconds for _, seconds in seen) < 4
        assert {each.result()[0] for each in asked} == {200}
        assert max(each.result()[1] for each in asked) < 12


@pytest.mark.req("N7")
def test_an_endpoint_that_changes_its_vectors_length_is_not_searched_until_all_are_made_again(
    project: Path, hostile: Endpoint
) -> None:
    rules = RecallRules(embedder=f"endpoint:{hostile.url}", endpoint_model="words")
    config = Config(recall=rules)
    with Bank.open(project, create=True, config=config) as bank:
        bank.lessons.add("Run `make lint` before a commit")
        assert sum(bank.vectors.embed_waiting()) > 0
        assert bank.recall("what about lint?").problem == ""
    hostile.dimensions = 3
    with Bank.open(project, config=config) as bank:
        found = bank.recall("when do I lint?")
        assert (len(found.hits), "3 dimensions, the bank has those of 16" in found.problem) == (1, True)
        bank.lessons.add("Ask Ada about the release")
        with pytest.raises(EmbedderError, match="3 dimensions"):
            list(bank.vectors.embed_waiting())
        told = next(check.text for check in bank.doctor.health() if check.name == "vectors")
        assert "3 dimensions" in told
        assert told.endswith("archivist doctor --reindex")
        bank.doctor.reindex()
        assert bank.recall("when do I lint again?").problem == ""
        list(bank.vectors.embed_waiting())
        found = bank.recall("and when to lint now?")
        assert (len(found.hits) >= 1, found.problem, found.embedder != "") == (True, "", True)
        assert not bank.store.find_damage()
