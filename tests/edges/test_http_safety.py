"""Who is kept out: strangers, other sites, other banks, the ended and the too large."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.edges.http.guard import BrowserSessions
from archivist.edges.server.checks import host_of, is_own_host, is_own_origin
from tests.banks import fresh_bank
from tests.conftest import TickingClock
from tests.edges.http_server import ADA, Served, serving

_PATIENCE_S = 20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one bank for all tests of this file."""
    with serving(tmp_path_factory.mktemp("safety"), settings=("server.max_body_mb=1",)) as served:
        yield served


def _code(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


def _raw(served: Served, request: bytes, *, is_ended: bool = True) -> bytes:
    """Send bytes as they are, and return all that comes back."""
    with closing(socket.create_connection(served.address, timeout=_PATIENCE_S)) as line:
        line.sendall(request)
        if is_ended:
            # It may have hung up already.
            with suppress(OSError):
                line.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: line.recv(65_536), b""))
        except ConnectionResetError:
            # It hung up on what was still being sent.
            return b""


def _get(served: Served, *headers: str, path: str = "/api/status") -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers, "", ""]
    return _raw(served, "\r\n".join(lines).encode("latin-1"), is_ended=False)


# Tokens


def test_nothing_is_told_without_a_token(served: Served) -> None:
    for path in ("/", "/api/status", "/openapi.json", "/api/nothing", "/api/events"):
        response = httpx.get(served.url + path)
        assert _code(response) == (401, "no_token")
        assert response.headers["www-authenticate"] == "Bearer"


def test_a_probe_needs_no_token_and_is_told_nothing_else(served: Served) -> None:
    answer = httpx.get(f"{served.url}/health")
    assert (answer.status_code, answer.json()) == (200, {"is_well": True})
    assert httpx.head(f"{served.url}/health").status_code == 200
    for response in (httpx.post(f"{served.url}/health"), httpx.get(f"{served.url}/health/")):
        assert _code(response) == (401, "no_token")
    assert _code(httpx.get(f"{served.url}/health", headers={"Host": "evil.example"}))[0] == 403


@pytest.mark.parametrize(
    "shown",
    ["", "Bearer", "Basic YTpi", "Bearer arch_x", "arch_x", "Bearer " + "x" * 5000, "bearer \xff"],
)
def test_what_is_no_token_lets_nobody_in(served: Served, shown: str) -> None:
    headers = {b"Authorization": shown.encode("latin-1")}
    assert _code(httpx.get(f"{served.url}/api/status", headers=headers)) == (401, "bad_token")


def test_the_tokens_of_other_banks_and_of_the_past_let_nobody_in(served: Served, tmp_path: Path) -> None:
    def shown(secret: str) -> tuple[int, str]:
        return _code(httpx.get(f"{served.url}/api/status", headers={"Authorization": f"Bearer {secret}"}))

    with fresh_bank(tmp_path / "other", actor=ADA) as other:
        assert shown(other.tokens.create("human:ada").secret) == (401, "bad_token")
    expired = served.token("agent:kit", expires_days=1e-7)
    time.sleep(0.05)
    assert shown(expired) == (401, "token_expired")
    with Bank.open(served.folder, actor=ADA) as bank:
        issued = bank.tokens.create("agent:kit")
        with httpx.Client(headers={"Authorization": f"Bearer {issued.secret}"}) as client:
            assert client.get(f"{served.url}/api/status").status_code == 200
            bank.tokens.revoke(issued.token.id)
            assert _code(client.get(f"{served.url}/api/status")) == (401, "token_revoked")


def test_the_link_lets_browsers_in_while_the_server_runs(tmp_path: Path) -> None:
    with serving(tmp_path) as served, httpx.Client() as browser:
        first = browser.get(served.link)
        cookie = first.headers["set-cookie"]
        assert (first.status_code, first.headers["location"]) == (303, "/")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert browser.get(f"{served.url}/api/status").status_code == 200
        assert httpx.get(served.link).headers["set-cookie"] != cookie
        assert _code(httpx.get(f"{served.url}/open?key=guess")) == (401, "bad_link")
        name = cookie.partition("=")[0]
        assert name == f"archivist-{served.address[1]}"
        assert _code(httpx.get(f"{served.url}/", cookies={name: "guess"})) == (401, "bad_token")
        foreign = {"Origin": "https://evil.example"}
        assert _code(browser.post(f"{served.url}/api/lessons", json={"summary": "x"}, headers=foreign)) == (
            403,
            "foreign_origin",
        )


def test_a_browsers_session_ends_with_time_and_the_link_starts_another(clock: TickingClock) -> None:
    browsers = BrowserSessions(ADA, clock)
    link = browsers.create_link()
    key = browsers.redeem_link(link)
    assert key is not None
    clock.now += timedelta(hours=11)
    assert browsers.find_session(key) is not None
    clock.now += timedelta(hours=1)
    assert browsers.find_session(key) is None
    another = browsers.redeem_link(link)
    assert another is not None
    assert browsers.find_session(another) is not None
    assert BrowserSessions(ADA, clock).redeem_link(link) is None


# Hosts and origins


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7777",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "10.0.0.7",
        "",
        "a@127.0.0.1",
    ],
)
def test_another_name_for_this_machine_is_refused(served: Served, host: str) -> None:
    request = f"GET /api/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert b"403 Forbidden" in _raw(served, request.encode(), is_ended=False)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1"]
)
def test_pages_of_other_sites_are_refused(served: Served, origin: str) -> None:
    with served.client() as client:
        assert _code(client.get("/api/status", headers={"Origin": origin})) == (403, "foreign_origin")
        assert client.get("/api/status", headers={"Origin": served.url}).status_code == 200
        crossed = {"Sec-Fetch-Site": "cross-site"}
        assert _code(client.get("/api/status", headers=crossed)) == (403, "foreign_origin")
        answer = client.options("/api/lessons", headers={"Origin": served.url})
        assert not [name for name in answer.headers if name.startswith("access-control")]


@given(st.text(max_size=30))
def test_only_what_this_machine_is_called_is_its_host(text: str) -> None:
    is_ours = is_own_host(text, allowed_hosts=(), is_beyond_loopback=False)
    if is_ours:
        assert host_of(text) == "localhost" or host_of(text).startswith(("127.", "::1", "0:", "::ffff:127."))
    assert not is_own_host(f"{text}.evil.example", allowed_hosts=(), is_beyond_loopback=True)


def test_beyond_this_machine_addresses_and_known_names_are_hosts() -> None:
    assert is_own_host("10.0.0.7:7777", allowed_hosts=(), is_beyond_loopback=True)
    assert not is_own_host("10.0.0.7:7777", allowed_hosts=(), is_beyond_loopback=False)
    assert is_own_host("Memory.Example:443", allowed_hosts=("memory.example",), is_beyond_loopback=False)
    assert not is_own_host("memory.example:port", allowed_hosts=("memory.example",), is_beyond_loopback=False)
    assert is_own_origin("https://memory.example", "memory.example", ("http", "https"))
    assert not is_own_origin("ftp://memory.example", "memory.example", ("http", "https"))
    assert not is_own_origin("https://127.0.0.1:7777", "127.0.0.1:7777", ("http",))


# Headers


def test_doubled_headers_are_refused(served: Served) -> None:
    token = f"Authorization: Bearer {served.token('human:ada')}"
    assert b"200 OK" in _get(served, token)
    assert b"double_header" in _get(served, token, token)
    assert b"double_header" in _get(served, token, "Origin: http://127.0.0.1", "Origin: http://127.0.0.1")
    twice = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b" 400 " in _raw(served, twice, is_ended=False).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: odd\r\n\r\n",
        b"POST /api/lessons HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"nonsense\r\n\r\n",
    ],
)
def test_broken_requests_are_refused_and_leave_the_server_well(served: Served, request_bytes: bytes) -> None:
    answer = _raw(served, request_bytes)
    status = answer.split(b"\r\n")[0]
    assert answer == b"" or b" 4" in status, answer
    assert b"Traceback" not in answer
    assert b"200 OK" in _get(served, f"Authorization: Bearer {served.token('human:ada')}")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        "GET /caf\xe9 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 70_000,
    ],
)
def test_what_is_no_http_is_told_so(served: Served, request_bytes: bytes) -> None:
    answer = _raw(served, request_bytes, is_ended=False)
    assert b" 400 " in answer.split(b"\r\n")[0]


def test_a_target_with_our_host_is_read_as_its_path(served: Served) -> None:
    token = f"Authorization: Bearer {served.token('human:ada')}"
    assert b"200 OK" in _get(served, token, path="http://127.0.0.1/api/status")
    assert b'"lessons"' in _get(served, token, path=f"{served.url}/api/lessons?limit=1")
    assert b'"name":"archivist"' in _get(served, token, path="http://localhost")
    assert b"unknown_host" in _get(served, token, path="http://evil.example/api/status")
    assert b" 404 " in _get(served, token, path="ftp://127.0.0.1/api/status").split(b"\r\n")[0]


def test_what_is_sent_back_cannot_hold_a_header(served: Served) -> None:
    with served.client() as client:
        answer = client.get("/api/lessons/x%0d%0aSet-Cookie:%20a=b")
        assert answer.status_code == 404
        assert "set-cookie" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


# Sizes


def test_a_body_that_is_too_large_is_refused_before_it_is_read(served: Served) -> None:
    token = served.token("human:ada")
    head = (
        f"POST /api/lessons HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
    )
    claimed = _raw(served, f"{head}Content-Length: 99999999\r\n\r\n".encode(), is_ended=False)
    assert b"413" in claimed.split(b"\r\n")[0]
    assert b"too_large" in claimed

    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 65_536

    with served.client() as client:
        try:
            status, code = _code(
                client.post("/api/lessons", content=pieces(), headers={"Content-Type": "application/json"})
            )
        except httpx.WriteError:
            # The server had hung up before all was sent, as it may.
            status, code = 413, "too_large"
        assert (status, code) == (413, "too_large")
        assert client.get("/api/status").status_code == 200


def test_a_body_that_ends_early_does_nothing(served: Served) -> None:
    token = served.token("human:ada")
    body = b'{"summary": "half of a lesson"}'
    head = (
        f"POST /api/lessons HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: half\r\nContent-Length: {len(body) + 10}\r\n\r\n"
    )
    assert b" 2" not in _raw(served, head.encode() + body).split(b"\r\n")[0]
    with served.client() as client:
        found = client.get("/api/lessons", params={"text": "half of a lesson"}).json()["lessons"]
        assert "half of a lesson" not in [each["summary"] for each in found]


# What is left behind


def test_nothing_secret_is_noted_and_files_are_ones_own(tmp_path: Path) -> None:
    # The rights of its file are those with which it is made.
    Bank.open(tmp_path, create=True).close()
    with serving(tmp_path) as served, served.client() as client:
        client.get("/api/recall", params={"query": "topsecretquery"})
        client.post("/api/lessons", json={"summary": "topsecretbody"})
        client.get("/api/nothing%0a", headers={"X-Own": "topsecretheader"})
        httpx.get(served.link)
        secret = client.headers["Authorization"].removeprefix("Bearer ")
        code, noted = served.stop()
        assert code in (0, -15)
        assert "GET /api/recall 200" in noted
        assert "POST /api/lessons 201" in noted
        for word in ("topsecret", secret, served.link.partition("=")[2], "?"):
            assert word not in noted
    for file in (tmp_path / ".archivist").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
