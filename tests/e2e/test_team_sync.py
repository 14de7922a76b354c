"""A laptop's sessions reach the team's server: offline, killed or with a lost answer, each once."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from archivist import Bank
from archivist.store.filters import equals
from tests.banks import lay_bank
from tests.commands import Ran, run_apart
from tests.edges.http_server import ADA, Served, serving
from tests.samples import MISSING_MODULE, agent_log

_DEADLINE_S = 120
# Assembled here, so that no file holds it.
_FAKE_KEY = "ghp_" + "a1B2" * 9


class Laptop:
    """A user's machine with a home and a project of its own."""

    def __init__(self, folder: Path, project: str = "shop") -> None:
        self.home, self.project = folder / "laptop-home", folder / project
        self.project.mkdir(parents=True)
        assert self.run("init").code == 0

    def run(self, *words: str, stdin: bytes = b"", **variables: str) -> Ran:
        home = {
            "ARCHIVIST_HOME": str(self.home / ".archivist"),
            "HOME": str(self.home),
            "ARCHIVIST_STORE": "",
        }
        return run_apart(words, self.project, stdin, {**home, **variables})

    def hook(self, event: str, session: str, **more: str) -> str:
        said = {"session_id": session, "cwd": str(self.project), "hook_event_name": event, **more}
        done = self.run("hook", "claude-code", event, stdin=json.dumps(said).encode())
        assert (done.code, done.err) == (0, "")
        return done.out

    def end_session(self, folder: Path, session: str) -> None:
        """Let a session end as its client does; the work after it goes on in a process of its own."""
        log = agent_log(
            folder / f"{session}.jsonl", MISSING_MODULE, session=session, prompt=f"Use {_FAKE_KEY}"
        )
        log.write_text(log.read_text().replace("/home/x/billing", str(self.project)))
        self.hook("SessionEnd", session, transcript_path=str(log))

    @property
    def waiting(self) -> list[Path]:
        return list((self.home / ".archivist/outbox").glob("*/*.jsonl.gz"))

    def sync(self) -> dict[str, object]:
        done = self.run("sync", "--json")
        answer: dict[str, object] = json.loads(done.out)
        return answer


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    """Return a laptop that is not connected yet."""
    return Laptop(tmp_path)


@pytest.fixture
def port() -> int:
    """Return a port that is free now, so that a server can come back at the same address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Make the team's bank; return its folder."""
    lay_bank(tmp_path / "team")
    return tmp_path / "team"


def _token(team: Path) -> str:
    with Bank.open(team, actor=ADA) as bank:
        return bank.tokens.create("orchestrator:ada").secret


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {_DEADLINE_S} s until {what}"
        time.sleep(0.05)


def _run_events(team: Path) -> dict[str, int]:
    with Bank.open(team, actor=ADA) as bank, bank.reading() as reader:
        assert reader.verify().is_whole
        return {run.id: reader.count("event", equals("run", run.id)) for run in bank.runs.episodes()}


def _connect(laptop: Laptop, team: Path, url: str) -> None:
    done = laptop.run("sync", "--to", url, ARCHIVIST_TOKEN=_token(team))
    assert done.code == 0, done.err
    assert "as orchestrator:ada" in done.out


def test_twenty_sessions_while_the_server_is_down_arrive_once_each(
    laptop: Laptop, team: Path, port: int, tmp_path: Path
) -> None:
    with serving(team, "--port", str(port)) as served:
        _connect(laptop, team, served.url)
        served.process.send_signal(signal.SIGKILL)
        served.process.communicate()
    names = [f"session-{number:02d}" for number in range(20)]
    for name in names:
        laptop.end_session(tmp_path, name)
    _until(lambda: len(laptop.waiting) == 20, "20 runs wait")
    for file in laptop.waiting:
        assert file.stat().st_mode & 0o077 == 0
        assert _FAKE_KEY.encode() not in gzip.decompress(file.read_bytes())
    assert "20 runs wait for http://127.0.0.1" in laptop.run("doctor").out
    offline = laptop.sync()
    assert (offline["sent"], offline["waiting"]) == (0, 20)
    assert "refused" in str(offline["problem"])
    with serving(team, "--port", str(port)):
        done = laptop.sync()
        assert (done["sent"], done["waiting"], done["refused"]) == (20, 0, 0)
        assert laptop.sync()["sent"] == 0
    events = _run_events(team)
    assert sorted(events) == names
    assert len({*events.values()}) == 1
    assert "nothing waits for" in laptop.run("doctor").out


def test_a_session_is_sent_when_it_ends_and_a_longer_one_adds(
    laptop: Laptop, team: Path, tmp_path: Path
) -> None:
    with serving(team) as served:
        _connect(laptop, team, served.url)
        laptop.end_session(tmp_path, "session-1")
        with served.client() as client:
            _until(lambda: client.get("/api/runs/session-1").status_code == 200, "the run is there")
            _until(lambda: not laptop.waiting, "nothing waits")
        before = _run_events(team)["session-1"]
        more = [*MISSING_MODULE, ("ls", "setup.py", False)]
        log = agent_log(tmp_path / "session-1.jsonl", more, session="session-1", prompt="Go on")
        laptop.hook("SessionEnd", "session-1", transcript_path=str(log))
        _until(lambda: _run_events(team)["session-1"] > before, "the longer run is there")


class Relay:
    """Stands between a client and the server, and does something to the first request."""

    def __init__(self, target: tuple[str, int], on_first: Callable[[socket.socket], None]) -> None:
        self._target, self._on_first, self._count = target, on_first, 0
        self.is_open = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                if self.is_open:
                    with socket.create_connection(self._target) as server:
                        self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65_536)
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-le")
            ),
            0,
        )
        while len(head.partition(b"\r\n\r\n")[2]) < length:
            head += client.recv(65_536)
        server.sendall(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        if b"/api/capture" in head:
            self._count += 1
            if self._count == 1:
                self._on_first(server)
                return
        while answer := server.recv(65_536):
            client.sendall(answer)


@pytest.fixture
def relays() -> Iterator[list[Relay]]:
    """Close the relays that a test opens."""
    opened: list[Relay] = []
    yield opened
    for relay in opened:
        relay.close()


def _wait_for_answer(server: socket.socket) -> None:
    server.recv(1)


def _queue_offline(laptop: Laptop, folder: Path, count: int) -> None:
    for number in range(count):
        laptop.end_session(folder, f"session-{number}")
    _until(lambda: len(laptop.waiting) == count, f"{count} runs wait")


def test_an_answer_that_is_lost_sends_nothing_twice(
    laptop: Laptop, team: Path, tmp_path: Path, relays: list[Relay]
) -> None:
    with serving(team) as served:
        # The server has done it when it answers; the answer is not passed on.
        relays.append(Relay(served.address, _wait_for_answer))
        _connect(laptop, team, relays[0].url)
        relays[0].is_open = False
        _queue_offline(laptop, tmp_path, 3)
        relays[0].is_open = True
        lost = laptop.sync()
        assert (lost["sent"], lost["waiting"]) == (0, 3)
        assert len(_run_events(team)) == 1
        done = laptop.sync()
        assert (done["sent"], done["waiting"]) == (3, 0)
    events = _run_events(team)
    assert len(events) == 3
    assert len({*events.values()}) == 1


def test_a_server_that_is_killed_in_the_middle_of_a_request_gets_it_again(
    laptop: Laptop, team: Path, port: int, tmp_path: Path, relays: list[Relay]
) -> None:
    def kill(_server: socket.socket) -> None:
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.communicate()

    served: Served
    with serving(team, "--port", str(port)) as served:
        relays.append(Relay(served.address, kill))
        _connect(laptop, team, relays[0].url)
        relays[0].is_open = False
        _queue_offline(laptop, tmp_path, 4)
        relays[0].is_open = True
        broken = laptop.sync()
        assert (broken["sent"], broken["waiting"]) == (0, 4)
    with serving(team, "--port", str(port)):
        assert laptop.sync()["sent"] == 4
    events = _run_events(team)
    assert len(events) == 4
    assert len({*events.values()}) == 1


def test_a_session_starts_with_the_teams_brief_and_without_a_server_with_the_last(
    laptop: Laptop, team: Path, port: int
) -> None:
    with Bank.open(team, actor=ADA) as bank:
        bank.lessons.add("Freeze the shop before the sale")
    with serving(team, "--port", str(port)) as served:
        _connect(laptop, team, served.url)
        assert "Freeze the shop before the sale" in laptop.hook("SessionStart", "session-1")
        with served.client() as client:
            assert client.get("/api/runs/session-1").status_code == 200
    began = time.monotonic()
    assert "Freeze the shop before the sale" in laptop.hook("SessionStart", "session-2")
    assert time.monotonic() - began < 5
    assert json.loads(laptop.run("status", "--json").out)["runs"] == 2


def test_a_server_that_never_answers_does_not_block_a_session(laptop: Laptop, team: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with serving(team) as served:
            _connect(laptop, team, served.url)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        laptop.run("config", "set", "server.url", address, "--global")
        began = time.monotonic()
        laptop.hook("SessionStart", "session-1")
        assert time.monotonic() - began < 5


def test_only_sessions_of_named_folders_are_sent(laptop: Laptop, team: Path, tmp_path: Path) -> None:
    with serving(team) as served:
        _connect(laptop, team, served.url)
        laptop.run("config", "set", "server.folders", str(tmp_path / "elsewhere"), "--global")
        laptop.end_session(tmp_path, "session-1")

        def is_learnt() -> bool:
            status = json.loads(laptop.run("status", "--json").out)
            return bool(status["events"]) and not status["runs_waiting"]

        _until(is_learnt, "the session is learnt from here")
        assert laptop.waiting == []
        assert _run_events(team) == {}


@pytest.mark.parametrize(
    "url", ["http://team.example", "ftp://127.0.0.1", "https://ada:pw@team.example", "x"]
)
def test_an_address_that_would_leak_the_token_is_refused(laptop: Laptop, url: str) -> None:
    done = laptop.run("sync", "--to", url, ARCHIVIST_TOKEN="arch_x")  # noqa: S106 no token
    assert done.code == 4
    assert "server.url" in done.err


def test_a_projects_own_settings_name_no_server(laptop: Laptop) -> None:
    (laptop.project / ".archivist/config.toml").write_text('[server]\nurl = "https://evil.example"\n')
    done = laptop.run("status")
    assert done.code != 0
    assert "server.url" in done.err


def test_a_token_of_two_banks_needs_one_that_is_named_or_called_as_the_project(
    laptop: Laptop, team: Path, tmp_path: Path
) -> None:
    lay_bank(tmp_path / "banks/shop")
    places = f"{tmp_path / 'banks/shop'},{team}"
    made = run_apart(["token", "create", "--actor", "human:ada", "--bank", places], tmp_path, b"", {})
    token = made.out.strip()
    with serving(team, "--bank", places, settings=("server.private_runs=true",)) as served:
        done = laptop.run("sync", "--to", served.url, "--json", ARCHIVIST_TOKEN=token)
        assert json.loads(done.out)["bank"] == "shop~ada"
        laptop.end_session(tmp_path, "session-1")
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=served.url, headers=headers) as client:
            path = "/banks/shop~ada/api/runs/session-1"
            _until(lambda: client.get(path).status_code == 200, "the run is in the bank of its project")
        other = Laptop(tmp_path / "other", "billing")
        refused = other.run("sync", "--to", served.url, ARCHIVIST_TOKEN=token)
        assert refused.code == 4
        assert "the token opens 2 banks" in refused.err
        public = other.run("sync", "--to", f"{served.url}/banks/team", ARCHIVIST_TOKEN=token)
        assert public.code == 0
        assert "everybody in it sees these sessions" in public.err


def test_what_waits_for_one_server_is_not_sent_to_another(laptop: Laptop, team: Path, tmp_path: Path) -> None:
    with serving(team) as served:
        _connect(laptop, team, served.url)
        url = served.url
    laptop.end_session(tmp_path, "session-1")
    _until(lambda: len(laptop.waiting) == 1, "a run waits")
    with serving(team) as other:
        assert other.url != url
        _connect(laptop, team, other.url)
        assert laptop.sync()["sent"] == 0
    assert len(laptop.waiting) == 1


def test_a_run_is_shared_from_the_command_line(laptop: Laptop, team: Path, tmp_path: Path) -> None:
    with serving(team, settings=("server.private_runs=true",)) as served:
        _connect(laptop, team, served.url)
        laptop.end_session(tmp_path, "session-1")
        headers = {"Authorization": f"Bearer {_token(team)}"}
        with httpx.Client(base_url=served.url, headers=headers) as client:
            _until(lambda: client.get("/api/runs/session-1").status_code == 200, "the run is there")
            assert client.get("/banks/team/api/runs").json()["runs"] == []
            done = laptop.run("episodes", "share", "session-1")
            assert (done.code, done.out) == (0, "session-1  shared with team\n"), done.err
            assert [run["id"] for run in client.get("/banks/team/api/runs").json()["runs"]] == ["session-1"]
