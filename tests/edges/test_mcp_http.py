"""`archivist mcp --http` as a real process: several clients at once, tokens, and what is refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from archivist import Bank
from archivist.edges.mcp.serving import parse_address
from archivist.errors import InputError
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind
from tests.banks import fresh_bank
from tests.edges.mcp_server import ACCEPTED, COMMAND, INITIALIZE, served, token


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    """Open the bank that is served."""
    with fresh_bank(tmp_path / "served", actor=Actor(ActorKind.HUMAN, "ada")) as opened:
        yield opened


@pytest.fixture
def url(bank: Bank) -> Iterator[str]:
    """Serve the bank on a port that the system chose."""
    with served(bank, "127.0.0.1:0") as url:
        yield url


async def add_lessons(url: str, headers: dict[str, str], era: str, summaries: list[str]) -> str:
    """Add lessons as one client, and say as whom the knowledge was refused, if it was."""
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        for summary in summaries:
            assert not (await client.call_tool("lesson_add", {"summary": summary})).is_error
        fact = {"category": "convention", "key": era, "value": "absolute"}
        (said,) = (await client.call_tool("knowledge_put", fact)).content
        assert isinstance(said, TextContent)
        return said.text


def test_two_clients_at_once_lose_nothing_and_act_as_their_tokens_say(bank: Bank, url: str) -> None:
    first = ["Cache the compiled regex", "Close the file handle", "Quote the shell words"]
    second = ["Pin the Docker image", "Index the foreign keys", "Freeze the clock in tests"]

    async def both() -> tuple[str, str]:
        return await asyncio.gather(
            add_lessons(url, token(bank, "agent:w1:maker"), "auto", first),
            add_lessons(url, token(bank, "orchestrator:lead"), "legacy", second),
        )

    refused, allowed = asyncio.run(both())
    assert refused.startswith("agent:w1:maker may not write knowledge")
    assert '"key": "legacy"' in allowed
    by_actor: dict[str, set[str]] = {}
    for lesson in bank.lessons.query(Query()):
        by_actor.setdefault(str(lesson.actor), set()).add(lesson.summary)
    assert by_actor == {"agent:w1:maker": set(first), "orchestrator:lead": set(second)}
    assert [str(each.entry.actor) for each in bank.ledger.denials()] == ["agent:w1:maker"]


def test_nobody_comes_in_without_a_token_that_holds(bank: Bank, url: str, tmp_path: Path) -> None:
    revoked = bank.tokens.create("agent:gone", name="gone").secret
    bank.tokens.revoke("gone")
    with fresh_bank(tmp_path / "other") as other:
        foreign = other.tokens.create("human:ada").secret
    wrong = ["Bearer nope", f"Bearer {revoked}", f"Bearer {foreign}", f"Basic {foreign}", "Bearer x" * 999]
    with httpx2.Client(headers=ACCEPTED) as http:
        for value in wrong:
            answer = http.post(url, headers={"Authorization": value}, json=INITIALIZE)
            assert answer.status_code == 401, value[:30]
            assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        assert http.post(url, json=INITIALIZE).status_code == 401
        assert http.post(url, headers=token(bank, "agent:w1"), json=INITIALIZE).status_code == 200


def test_a_token_that_is_revoked_ends_a_session_that_is_open(bank: Bank, url: str) -> None:
    issued = bank.tokens.create("agent:w1", name="short-lived")
    with httpx2.Client(headers={**ACCEPTED, "Authorization": f"Bearer {issued.secret}"}) as http:
        opened = http.post(url, json=INITIALIZE)
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-06-18"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert http.post(url, headers=session, json=listing).status_code == 200
        stolen = token(bank, "agent:w2")
        assert http.post(url, headers={**session, **stolen}, json=listing).status_code == 404
        bank.tokens.revoke("short-lived")
        assert http.post(url, headers=session, json=listing).status_code == 401


def test_what_is_no_request_is_refused_plainly(bank: Bank, url: str) -> None:
    hello = json.dumps(INITIALIZE)
    cases: list[tuple[dict[str, str], str, int]] = [
        ({"Host": "evil.example"}, hello, 403),
        ({"Origin": "http://evil.example"}, hello, 403),
        ({"Content-Type": "text/plain"}, hello, 400),
        ({"MCP-Protocol-Version": "1999-01-01"}, hello, 400),
        ({"Mcp-Session-Id": "nobody"}, hello, 404),
        ({}, "{", 400),
        ({}, "[]", 400),
        ({}, "[" * 50_000, 400),
        ({}, " " * 5_000_000, 413),
    ]
    with httpx2.Client(headers={**ACCEPTED, **token(bank, "agent:w1")}) as http:
        for headers, body, status in cases:
            answer = http.post(url, headers=headers, content=body)
            assert answer.status_code == status, (headers, body[:20], answer.text)
            assert "Traceback" not in answer.text
        assert http.post(url, json=INITIALIZE).status_code == 200
        assert http.get(url.replace("/mcp", "/other")).status_code == 404


def test_a_bank_that_has_gone_is_said_to_be_so(bank: Bank, url: str) -> None:
    held = token(bank, "agent:w1")
    for file in bank.path.parent.glob("memory.db*"):
        file.unlink()
    answer = httpx2.post(url, headers={**ACCEPTED, **held}, json=INITIALIZE)
    assert answer.status_code == 503
    assert "archivist init" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:7778", ("127.0.0.1", 7778)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        (":7778", ("127.0.0.1", 7778)),
        ("7778", ("127.0.0.1", 7778)),
        ("127.9.9.9:1", ("127.9.9.9", 1)),
    ],
)
def test_places_on_this_machine_are_understood(text: str, place: tuple[str, int]) -> None:
    assert parse_address(text) == place


@pytest.mark.parametrize(
    "text",
    ["", ":", "host", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "::1:80", "10.0.0.1:80", "*:80", "٣"],
)
def test_other_places_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_address(text)
    assert caught.value.hint


def test_a_port_that_is_taken_is_named(bank: Bank, url: str) -> None:
    place = url.removeprefix("http://").removesuffix("/mcp")
    host, _, port = place.partition(":")
    done: Any = subprocess.run(
        [COMMAND, "mcp", "--http", place], cwd=bank.root, capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 4
    assert f"cannot listen at {host} port {port}" in done.stderr.decode()


def test_a_write_that_waits_keeps_nobody_from_reading(bank: Bank, url: str) -> None:
    held, other = token(bank, "agent:w1"), token(bank, "agent:w2")
    bank.lessons.add("Run make db-up before the tests")
    writing = apsw.Connection(str(bank.path))

    def asked(name: str, arguments: dict[str, Any], headers: dict[str, str]) -> httpx2.Response:
        with httpx2.Client(headers={**ACCEPTED, **headers}, timeout=60) as http:
            opened = http.post(url, json=INITIALIZE).headers["Mcp-Session-Id"]
            session = {"Mcp-Session-Id": opened, "MCP-Protocol-Version": "2025-06-18"}
            call = {"name": name, "arguments": arguments}
            request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            return http.post(url, headers=session, json=request)

    with ThreadPoolExecutor(1) as pool:
        writing.execute("BEGIN IMMEDIATE")
        waiting = pool.submit(asked, "lesson_add", {"summary": "Waited for"}, held)
        for name, given in (("recall", {"query": "tests"}), ("brief", {"task": "tests"})):
            assert "db-up" in asked(name, given, other).text
        wrong = httpx2.post(url, headers={**ACCEPTED, "Authorization": "Bearer no"}, json=INITIALIZE)
        assert wrong.status_code == 401
        assert not waiting.done()
        writing.execute("ROLLBACK")
        assert "Waited for" in waiting.result(30).text
    writing.close()


def test_any_of_this_machines_addresses_is_served_by_its_own_name(bank: Bank) -> None:
    with served(bank, "127.0.0.2:0") as url:
        assert url.startswith("http://127.0.0.2:")
        for host, status in (("127.0.0.2:1", 200), ("localhost:1", 200), ("10.0.0.3:1", 403)):
            headers = {**ACCEPTED, **token(bank, "agent:w1"), "Host": host}
            assert httpx2.post(url, headers=headers, json=INITIALIZE).status_code == status


def test_a_stream_that_is_open_when_the_server_ends_is_ended_quietly(bank: Bank) -> None:
    said: list[bytes] = []
    with httpx2.Client(headers=token(bank, "agent:w1")) as http, served(bank, "127.0.0.1:0", said) as url:
        opened = http.post(url, headers=ACCEPTED, json=INITIALIZE).headers["Mcp-Session-Id"]
        session = {"Mcp-Session-Id": opened, "MCP-Protocol-Version": "2025-06-18"}
        request = http.build_request("GET", url, headers={**session, "Accept": "text/event-stream"})
        stream = http.send(request, stream=True)
        assert stream.status_code == 200
    assert b"archivist: MCP at" in said[0]
    assert b"ASGI" not in said[0]
