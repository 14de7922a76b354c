"""`archivist mcp --http` keeps out whom the other door keeps out, and nobody takes more than his share."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from archivist import Bank
from archivist.edges.mcp.http_app import MAX_SESSIONS, Sessions
from archivist.edges.server.checks import Refusal
from archivist.edges.server.listening import listen
from archivist.records import Actor, ActorKind
from tests.banks import fresh_bank
from tests.edges.mcp_server import ACCEPTED, INITIALIZE, served, token

_SILENCE_S = 1.0
_PATIENCE_S = 20
_LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    """Open the bank that is served."""
    with fresh_bank(tmp_path_factory.mktemp("mcp-safety"), actor=Actor(ActorKind.HUMAN, "ada")) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(bank: Bank) -> Iterator[str]:
    """Serve the bank for all tests of this file, to clients that must not dawdle."""
    with served(bank, "127.0.0.1:0", settings=(f"server.silence_s={_SILENCE_S}",)) as url:
        yield url


def _line(url: str) -> closing[socket.socket]:
    host, _, port = url.removeprefix("http://").removesuffix("/mcp").partition(":")
    return closing(socket.create_connection((host, int(port)), timeout=_PATIENCE_S))


def _post(headers: dict[str, str], body: str, *, length: int | None = None) -> bytes:
    given = {**ACCEPTED, "Host": "127.0.0.1", **headers, "Content-Length": str(length or len(body))}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", body]
    return "\r\n".join(lines).encode()


def _all(line: socket.socket) -> bytes:
    return b"".join(iter(lambda: line.recv(65_536), b""))


def _session(http: httpx2.Client, url: str) -> dict[str, str]:
    opened = http.post(url, json=INITIALIZE)
    assert opened.status_code == 200, opened.text
    return {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-06-18"}


def test_what_is_answered_on_a_connection_is_sent_at_once() -> None:
    with closing(listen("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with closing(accepted):
            # By this asyncio tells that it may turn the waiting for company off.
            assert accepted.proto == socket.IPPROTO_TCP


# Who, and how often


def test_who_guesses_at_tokens_is_refused(bank: Bank) -> None:
    with served(bank, "127.0.0.1:0") as url, httpx2.Client(headers=ACCEPTED) as http:
        answers = [
            http.post(url, headers={"Authorization": f"Bearer arch_{number}"}, json=INITIALIZE)
            for number in range(3)
        ]
        assert {(each.status_code, each.json()["code"]) for each in answers} == {(401, "bad_token")}
        assert http.post(url, headers=token(bank, "agent:w1"), json=INITIALIZE).status_code == 200


def test_every_answer_is_kept_from_caches_and_sniffers(bank: Bank, url: str) -> None:
    with httpx2.Client(headers={**ACCEPTED, **token(bank, "agent:w1")}) as http:
        for answer in (http.post(url, json=INITIALIZE), http.post(url, headers={"Host": "evil"}, json={})):
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Cache-Control" in answer.headers
            assert "Server" not in answer.headers


# How it comes


def test_a_body_that_stops_is_not_waited_for(bank: Bank, url: str) -> None:
    with _line(url) as line:
        line.sendall(_post({**token(bank, "agent:w1"), "Connection": "close"}, "{", length=100))
        told = _all(line)
    assert told.startswith(b"HTTP/1.1 408")
    assert b"too_slow" in told


@pytest.mark.parametrize("body", [[INITIALIZE], {"id": 1}, {"jsonrpc": "2.0", "id": 1}, 5])
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_what_is_no_message_is_refused_in_one_line(bank: Bank, url: str, body: Any, version: str) -> None:
    headers = {**ACCEPTED, **token(bank, "agent:w1"), "MCP-Protocol-Version": version}
    answer = httpx2.post(url, headers=headers, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert "pydantic" not in answer.text
    assert len(answer.text) < 200


# Sessions and streams


def test_a_token_has_so_many_sessions_and_the_longest_unused_goes_first(bank: Bank, url: str) -> None:
    with httpx2.Client(headers={**ACCEPTED, **token(bank, "agent:many")}) as http:
        first, second = _session(http, url), _session(http, url)
        with httpx2.Client(headers={**ACCEPTED, **token(bank, "agent:one")}) as other:
            others = _session(other, url)
            assert http.post(url, headers=first, json=_LISTING).status_code == 200
            last = [_session(http, url) for _ in range(MAX_SESSIONS - 1)][-1]
            assert http.post(url, headers=second, json=_LISTING).status_code == 404
            for session in (first, last):
                assert http.post(url, headers=session, json=_LISTING).status_code == 200
            assert other.post(url, headers=others, json=_LISTING).status_code == 200


def test_sessions_that_are_all_in_use_leave_no_room() -> None:
    sessions = Sessions(limit=2)
    for name in ("a", "b"):
        assert sessions.add("kit", name) is None
    with sessions.track_request("kit", "a"):
        sessions.check_room("kit")
        with sessions.track_request("kit", "b"), pytest.raises(Refusal) as refused:
            sessions.check_room("kit")
        assert (refused.value.status, refused.value.code) == (429, "too_many_sessions")
        assert sessions.add("kit", "c") == "b"
    sessions.remove("kit", "a")
    assert sessions.add("kit", "d") is None


def test_a_stream_ends_with_the_token_that_opened_it(bank: Bank, url: str) -> None:
    held, other = (bank.tokens.create(f"agent:{name}") for name in ("gone", "stays"))
    streams: list[httpx2.Response] = []
    with httpx2.Client(headers=ACCEPTED, timeout=_PATIENCE_S) as http:
        for each in (held, other):
            http.headers["Authorization"] = f"Bearer {each.secret}"
            asked = {**_session(http, url), "Accept": "text/event-stream"}
            streams.append(http.send(http.build_request("GET", url, headers=asked), stream=True))
            assert streams[-1].status_code == 200
        bank.tokens.revoke(held.token.id)
        began = time.monotonic()
        for _ in streams[0].iter_bytes():
            pass
        assert time.monotonic() - began < 10
        assert not streams[1].is_closed
        streams[1].close()
