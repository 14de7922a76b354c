"""A model's server that sends what no model sends: bounded, paid for, and no error that nobody expects."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from archivist.config import ModelRules
from archivist.errors import ModelAnswerError, ModelError
from archivist.reflect.budget import Spending
from archivist.reflect.model import metered_service, transport_service
from archivist.reflect.model.caller_service import ModelCaller, configured_endpoint
from archivist.reflect.model.questions import lessons

TIMEOUT_S = 1.0


@dataclass
class Purse:
    """A meter that refuses nothing."""

    reserved: list[Spending] = field(default_factory=list)
    settled: list[Spending] = field(default_factory=list)

    def reserve(self, wanted: Spending) -> str:
        self.reserved.append(wanted)
        return str(len(self.reserved))

    def settle(self, name: str, actual: Spending) -> None:
        assert int(name) == len(self.reserved)
        self.settled.append(actual)


@dataclass
class Server:
    """A server that sends these bytes, then repeats some as long as it is asked."""

    port: int = 0
    sends: bytes = b""
    repeats: bytes = b""
    pause_s: float = 0.0
    heads: list[bytes] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head, _, body = connection.recv(1 << 20).partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            while len(body) < size:
                body += connection.recv(1 << 20)
            self.heads.append(head)
            connection.sendall(self.sends)
            while self.repeats and not self.is_over.wait(self.pause_s):
                connection.sendall(self.repeats)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made.port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=made.answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield made
        made.is_over.set()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metered_service, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv("SOME_MODEL_KEY", "sk-" + "not-to-be-seen")


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    # The server closes after an answer and says so: else a client may ask on a connection that is gone.
    size = f"Content-Length: {len(body)}"
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", "Connection: close", size, *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


def completion(
    arguments: str = '{"lessons": []}', usage: Any = None, tool: str = lessons.QUESTION.tool, **other: Any
) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    value = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps({**value, "usage": usage, **other}).encode()


def ask(server: Server, purse: Purse) -> Any:
    url = f"http://127.0.0.1:{server.port}/v1"
    rules = ModelRules(
        name="openai:m", url=url, timeout_s=TIMEOUT_S, attempts=2, key_variable="SOME_MODEL_KEY", input_usd=1
    )
    endpoint = configured_endpoint(rules)
    assert endpoint is not None
    # What takes the import of the client is not the server's time.
    return ModelCaller(endpoint, rules, purse).ask(lessons.QUESTION, "<record>\n#1 `make`\n</record>")


BODIES = {
    "nested": b"[" * 200_000,
    "not UTF-8": b'{"id": "\xff\xfe"}',
    "null": b"null",
    "odd choices": b'{"choices": [1]}',
    "no time": completion(created=10**17),
    "odd usage": completion(usage=[]),
    "words as usage": completion(usage={"prompt_tokens": "many", "completion_tokens": "few"}),
    "another tool": completion(tool="remove_all"),
    "arguments": completion("{not json"),
    "nested arguments": completion("[" * 100_000),
}


@pytest.mark.req("A9")
@pytest.mark.parametrize("name", BODIES)
def test_what_is_no_answer_is_an_error_that_is_settled(server: Server, name: str) -> None:
    server.sends, purse = response(BODIES[name]), Purse()
    with pytest.raises((ModelError, ModelAnswerError)):
        ask(server, purse)
    assert len(purse.settled) == len(purse.reserved) == len(server.heads) <= 2


@pytest.mark.req("A9")
@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize("count", [-(10**9), 0, 10**30, 10**400])
def test_a_wrong_usage_neither_gives_budget_back_nor_uses_up_the_day(server: Server, count: int) -> None:
    usage, purse = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": 0}, Purse()
    server.sends = response(completion(usage=usage))
    with suppress(ModelError):
        ask(server, purse)
    (wanted,), (actual,) = purse.reserved, purse.settled
    assert 0 < actual.tokens <= 20 * wanted.tokens
    assert actual.micro_usd > 0


@pytest.mark.req("A9")
def test_a_dripping_answer_takes_no_longer_than_configured(server: Server) -> None:
    server.sends = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n"
    server.repeats, server.pause_s, purse = b" ", 0.1, Purse()
    with pytest.raises(ModelError, match="no answer within 1 s"):
        ask(server, purse)
    began = time.monotonic()
    with pytest.raises(ModelError, match="no answer within 1 s"):
        ask(server, purse)
    assert time.monotonic() - began < 2 * TIMEOUT_S + 2
    assert purse.settled == purse.reserved


@pytest.mark.req("A9")
def test_an_endless_answer_is_not_read_to_its_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_service, "MOST_BYTES", 100_000)
    server.sends, server.repeats = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" " * 4096
    purse = Purse()
    with pytest.raises(ModelError, match="more than 100,000 bytes"):
        ask(server, purse)
    assert purse.settled == purse.reserved


@pytest.mark.req("A9")
def test_a_packed_answer_is_not_unpacked(server: Server) -> None:
    server.sends = response(gzip.compress(b" " * 10_000_000), "Content-Encoding: gzip")
    with pytest.raises(ModelError, match="packed"):
        ask(server, Purse())
    assert b"accept-encoding: identity" in server.heads[0].lower()


@pytest.mark.req("A9")
def test_neither_key_nor_prompt_follows_a_redirect(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.3)
        place = f"http://127.0.0.1:{other.getsockname()[1]}/v1/chat/completions"
        server.sends = response(b"", f"Location: {place}", status="307 Temporary Redirect")
        with pytest.raises(ModelError, match="307"):
            ask(server, Purse())
        with pytest.raises(TimeoutError):
            other.accept()


@pytest.mark.req("A9")
@pytest.mark.parametrize(("status", "asked"), [("401 No", 1), ("429 Slow", 2), ("500 Broken", 2)])
def test_a_refusal_is_not_repeated_without_end(server: Server, status: str, asked: int) -> None:
    server.sends = response(b"{}", "Retry-After: nan", status=status)
    with pytest.raises(ModelError):
        ask(server, Purse())
    assert len(server.heads) == asked
