"""How a request may come: in time, of one length, with known words; and what is left when the server ends."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from archivist import Bank
from archivist.access.rights import MAX_DENIALS
from archivist.config.sources import check_flags
from archivist.edges.http.bodies import has_process_ended
from archivist.edges.http.guard import cookie_name
from archivist.errors import ConfigError
from tests.edges.http_server import ADA, Served, serving

_PATIENCE_S = 20
_SILENCE_S = 0.6


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one bank for all tests of this file."""
    rules = ("server.max_body_mb=1", f"server.silence_s={_SILENCE_S}", "server.heartbeat_s=600")
    with serving(tmp_path_factory.mktemp("requests"), settings=rules) as served:
        yield served


@pytest.fixture
def human(served: Served) -> Iterator[httpx.Client]:
    """Come in as a person."""
    with served.client() as client:
        yield client


def _head(served: Served, method: str, path: str, *headers: str, actor: str = "human:ada") -> bytes:
    token = served.token(actor)
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        *headers,
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def _line(served: Served) -> closing[socket.socket]:
    return closing(socket.create_connection(served.address, timeout=_PATIENCE_S))


def _all(line: socket.socket) -> bytes:
    try:
        return b"".join(iter(lambda: line.recv(65_536), b""))
    except ConnectionResetError:
        return b""


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


# How much


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/tools/log"), ("PATCH", "/api/lessons/log"), ("GET", "/api/capture")]
)
def test_only_where_logs_are_uploaded_much_is_taken(served: Served, method: str, path: str) -> None:
    with _line(served) as line:
        line.sendall(_head(served, method, path, "Content-Type: application/json", "Content-Length: 3000000"))
        assert b" 413 " in line.recv(65_536).split(b"\r\n")[0]


def test_a_log_may_be_larger_than_another_body(human: httpx.Client) -> None:
    log = json.dumps({"episode": {"id": "large", "status": "success"}}) + "\n" * 2_000_000
    assert human.post("/api/runs/large/log?name=large.jsonl", content=log).status_code == 200


def test_a_log_that_finds_no_room_is_told_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setenv("TMPDIR", str(spool))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * 1024 * 1024, before[1]))
    try:
        with serving(tmp_path / "p") as served:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            with served.client() as client:
                refused = client.post("/api/capture", content=b"x" * 5_000_000)
                assert (refused.status_code, refused.json()["code"]) == (507, "no_room")
                assert str(spool) not in refused.text
                assert list(spool.iterdir()) == []
                assert client.get("/api/status").status_code == 200
            _, noted = served.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "no room for an upload: [Errno 27] File too large" in noted
    assert "Traceback" not in noted


@pytest.mark.parametrize(
    ("encoding", "status", "code"),
    [("gzip", 415, "compressed"), ("br", 415, "compressed"), ("identity", 201, None)],
)
def test_a_compressed_body_is_not_read_as_if_it_were_none(
    human: httpx.Client, encoding: str, status: int, code: str | None
) -> None:
    body = json.dumps({"action": "tried it"}).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    answer = human.post("/api/stream", content=body, headers=headers)
    assert (answer.status_code, answer.json().get("code")) == (status, code)
    assert answer.headers.get("Accept-Encoding") == ("identity" if code else None)


def test_two_lengths_are_none(served: Served) -> None:
    body = b"0\r\n\r\n"
    both = ("Content-Type: application/json", "Content-Length: 5", "Transfer-Encoding: chunked")
    with _line(served) as line:
        second = _head(served, "GET", "/api/status")
        line.sendall(_head(served, "POST", "/api/working/notes", *both) + body + second)
        told = _all(line)
    assert told.startswith(b"HTTP/1.1 400")
    assert b"double_length" in told
    assert told.count(b"HTTP/1.1 ") == 1


# How fast


def test_a_body_may_come_slowly_but_must_not_stop(served: Served) -> None:
    body = json.dumps({"summary": "Slow and steady"}).encode()
    how = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    with _line(served) as line:
        line.sendall(_head(served, "POST", "/api/lessons", *how))
        for number in range(0, len(body), 4):
            time.sleep(_SILENCE_S / 4)
            line.sendall(body[number : number + 4])
        assert _all(line).startswith(b"HTTP/1.1 201")
    with _line(served) as line:
        line.sendall(_head(served, "POST", "/api/lessons", *how) + body[:5])
        assert b"too_slow" in _all(line)


def test_a_second_request_must_begin_in_time_too(served: Served) -> None:
    with _line(served) as line:
        line.sendall(_head(served, "GET", "/api/status"))
        answer = b""
        while not answer.endswith(b"}}"):
            answer += line.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert _all(line) == b""
        assert time.monotonic() - began < _SILENCE_S + 5
    with served.client() as client:
        assert client.get("/api/status").status_code == 200


# With which words


@pytest.mark.parametrize(
    "path",
    [
        "/api/memory/knowledge?projekt=nope",
        "/api/status?x=1",
        "/api/runs/x?limit=3",
        "/api/recall?query=a&q=b",
    ],
)
def test_an_unknown_parameter_is_refused(human: httpx.Client, path: str) -> None:
    told = human.get(path)
    assert (told.status_code, told.json()["code"]) == (422, "bad_request"), told.text
    assert told.json()["hint"].startswith("it ")
    assert human.post("/api/capture?nome=x", content=b"").json()["code"] == "bad_request"


def test_the_document_tells_every_parameter(human: httpx.Client) -> None:
    paths = human.get("/openapi.json").json()["paths"]
    told = {each["name"] for each in paths["/api/runs/{run}/log"]["post"]["parameters"]}
    assert {"run", "status", "name"} <= told
    assert {"limit", "cursor"} <= {
        each["name"] for each in paths["/api/workspace/learnings"]["get"]["parameters"]
    }


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"summary": "caf\xe9"}',
        b'{"summary": "x", "importance": ' + b"9" * 6_000 + b"}",
        b"{",
    ],
)
def test_what_is_no_json_is_told_alike(human: httpx.Client, body: bytes) -> None:
    told = human.post("/api/lessons", content=body, headers={"Content-Type": "application/json"}).json()
    assert (told["status"], told["code"]) == (400, "bad_json")
    assert "JSON" in told["detail"]
    assert told["hint"]


def test_hints_are_for_clients(served: Served, human: httpx.Client) -> None:
    asked = [human.get("/api/lessons/m-999"), human.get("/api/runs/none"), human.get("/api/working")]
    asked.append(human.delete("/api/memory/knowledge/none"))
    with served.client("agent:kit") as kit:
        asked.append(kit.post("/api/memory/knowledge", json={"category": "a", "key": "b", "value": "c"}))
    for answer in asked:
        assert answer.status_code in (403, 404), answer.text
        hint = answer.json()["hint"]
        assert hint
        assert not re.search(r"archivist [a-z]|--[a-z]", hint)


def test_where_things_lie_on_this_machine_is_not_told(served: Served, human: httpx.Client) -> None:
    (served.folder / "link").symlink_to("/etc/passwd")
    answers = [
        human.post("/api/memory/artifacts", json={"path": path, "task_id": "T"})
        for path in ("/etc/hosts", "../x", "link")
    ]
    answers += [human.post("/api/capture", content=log) for log in (b"", b"no log", b"\x1f\x8b broken")]
    answers.append(human.post("/api/runs/x/log", content=b""))
    for answer in answers:
        assert answer.status_code == 400
        for place in (str(served.folder), "/etc/passwd", tempfile.gettempdir()):
            assert place not in answer.text


# Who


def test_other_cookies_of_the_host_lock_nobody_out(tmp_path: Path) -> None:
    with serving(tmp_path / "a") as one, serving(tmp_path / "b") as two, httpx.Client() as browser:
        # A browser keeps one jar for all ports of a host.
        jar = {}
        for served in (one, two):
            given = httpx.get(served.link).headers["set-cookie"].partition(";")[0]
            name, _, value = given.partition("=")
            jar[name] = value
        theme = 'theme={"a":1}; b@d=1; lonely; '
        cookie = theme + "; ".join(f"{name}={value}" for name, value in jar.items())
        for served in (one, two):
            told = browser.get(f"{served.url}/api/status", headers={"Cookie": cookie})
            assert told.status_code == 200, told.text


def test_a_cookie_is_named_by_the_port() -> None:
    assert cookie_name("127.0.0.1:7777") == "archivist-7777"
    assert cookie_name("[::1]:80") == "archivist-80"
    assert cookie_name("memory.example") == "archivist"
    assert cookie_name("memory.example:x") == "archivist"


def test_a_revoked_token_hears_no_more_at_once(served: Served) -> None:
    with Bank.open(served.folder, actor=ADA) as bank:
        issued = bank.tokens.create("agent:kit")
        headers = {"Authorization": f"Bearer {issued.secret}"}
        with httpx.stream("GET", f"{served.url}/api/events", headers=headers, timeout=_PATIENCE_S) as heard:
            lines = heard.iter_lines()
            assert next(lines).startswith("retry")
            bank.tokens.revoke(issued.token.id)
            bank.lessons.add("said after he was shut out")
            assert not [line for line in lines if "lesson" in line]


def test_who_was_refused_for_size_is_noted_by_name(tmp_path: Path) -> None:
    with (
        serving(tmp_path, settings=("server.max_body_mb=1",)) as served,
        served.client("agent:kit:maker") as kit,
    ):
        large = kit.post(
            "/api/lessons", content=b"x" * 2_000_000, headers={"Content-Type": "application/json"}
        )
        assert large.status_code == 413
        _, noted = served.stop()
    refused = [line for line in noted.splitlines() if " 413 " in line]
    assert refused
    assert all("agent:kit:maker" in line for line in refused)


def test_a_refusal_that_is_repeated_and_repeated_is_folded(served: Served) -> None:
    with Bank.open(served.folder, actor=ADA) as bank:
        before = len(bank.ledger.denials())
        with served.client("agent:again") as again:
            for _ in range(60):
                assert again.delete("/api/memory/knowledge/none").status_code == 403
            assert again.post("/api/memory/episodes", json={"task_id": "T", "action": "attempted",
                              "agent_id": "a", "approach": "b"}).status_code == 403  # fmt: skip
        noted = bank.ledger.denials()[before:]
    told = [each.entry.record for each in noted if each.entry.actor.name == "again"]
    assert told.count("knowledge") == MAX_DENIALS
    assert [each.after for each in noted if each.after and "and_more" in each.after] == [
        {"actor": "agent:again", "verb": "write", "layer": "knowledge", "and_more": True}
    ]
    assert told.count("episodes") == 1


# The end


def test_an_upload_that_the_end_overtakes_is_told_so_and_leaves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        pid, answers = served.process.pid, []
        key = ("Idempotency-Key: k1", "Content-Length: 50000000")

        def upload() -> None:
            with _line(served) as line:
                line.sendall(_head(served, "POST", "/api/capture", *key) + b'{"secret": "s3cret"}\n' * 1000)
                answers.append(_all(line))

        sender = threading.Thread(target=upload)
        sender.start()
        _until(lambda: bool(_folders(pid)))
        served.process.send_signal(signal.SIGTERM)
        sender.join(_PATIENCE_S)
        served.process.communicate(timeout=_PATIENCE_S)
        assert answers[0].startswith(b"HTTP/1.1 503")
        assert b"stopping" in answers[0]
        assert not _folders(pid)


def test_work_that_outlasts_the_server_is_told_so_and_leaves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as served, served.client() as client:
        pid, answers = served.process.pid, []
        log, key = json.dumps({"episode": {"id": "r"}}).encode(), {"Idempotency-Key": "k1"}
        with Bank.open(tmp_path, actor=ADA) as other, other.transaction():
            # It waits for the bank, which somebody else holds.
            sender = threading.Thread(
                target=lambda: answers.append(client.post("/api/capture", content=log, headers=key))
            )
            sender.start()
            _until(lambda: bool(_folders(pid)))
            served.process.send_signal(signal.SIGTERM)
            sender.join(_PATIENCE_S)
            served.process.communicate(timeout=_PATIENCE_S)
        assert (answers[0].status_code, answers[0].json()["code"]) == (503, "stopping")
        assert not _folders(pid)
        secret = client.headers["Authorization"]
    with serving(tmp_path) as served:
        again = httpx.post(
            f"{served.url}/api/capture", content=log, headers={**key, "Authorization": secret}, timeout=60
        )
        assert again.status_code == 201, again.text


def test_what_a_killed_server_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    with serving(tmp_path) as served, _line(served) as line:
        pid = served.process.pid
        line.sendall(_head(served, "POST", "/api/capture", "Content-Length: 50000000") + b"raw" * 1000)
        _until(lambda: bool(_folders(pid)))
        served.process.kill()
        served.process.communicate(timeout=_PATIENCE_S)
        assert _folders(pid)
    with serving(tmp_path):
        _until(lambda: not _folders(pid))


def _folders(pid: int) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"archivist-{pid}-*"))


def test_an_upload_tells_whether_its_process_is_gone() -> None:
    assert not has_process_ended(str(os.getppid()))
    # In a container, a process before this one had its number.
    assert has_process_ended(str(os.getpid()))
    assert has_process_ended("4194305")
    for odd in ("", "x", "-", "-1", "1.5", "²", "1" * 30):
        assert not has_process_ended(odd)


@pytest.mark.parametrize("key", ["server.poll_s", "server.heartbeat_s", "server.silence_s"])
def test_a_server_must_wait_between_two_looks(key: str) -> None:
    check_flags([f"{key}=0.5"])
    with pytest.raises(ConfigError, match="expected a number from 0"):
        check_flags([f"{key}=0"])
