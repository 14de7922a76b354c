"""A server for a team: several banks, a bank of one's own, sharing, searches across banks, processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest

from archivist import Bank
from archivist.paths import bank_file, person_bank
from tests.banks import lay_bank
from tests.commands import run_apart
from tests.edges.http_server import ADA, Served, serving
from tests.samples import MISSING_MODULE, agent_log

_PRIVATE = ("server.private_runs=true",)
# A word that only the private run has.
_PRIVATE_TASK = "Mend the zeppelin module before lunch"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Make the banks `web` and `api`."""
    for name in ("web", "api"):
        lay_bank(tmp_path / "banks" / name)
    return tmp_path / "banks"


@contextmanager
def _team_server(team: Path, *words: str, settings: tuple[str, ...] = ()) -> Iterator[Served]:
    names = ",".join(str(team / name) for name in ("web", "api"))
    with serving(team / "web", "--bank", names, *words, settings=settings) as served:
        yield served


def _token(team: Path, actor: str, *names: str) -> str:
    places = ",".join(str(team / name) for name in names)
    done = run_apart(["token", "create", "--actor", actor, "--bank", places, "--json"], team, b"", {})
    return str(json.loads(done.out)["token"])


def _client(served: Served, token: str) -> httpx.Client:
    return httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def _capture(client: httpx.Client, folder: Path, run: str, task: str = _PRIVATE_TASK, path: str = "") -> None:
    log = agent_log(folder / f"{run}.jsonl", MISSING_MODULE, session=run, prompt=task)
    done = client.post(f"{path}/api/capture?name={run}.jsonl", content=log.read_bytes())
    assert done.status_code == 201, done.text


def _learn(team: Path) -> None:
    names = [str(file) for file in team.rglob("memory.db")]
    done = run_apart(["worker", "--once", "--bank", ",".join(names)], team, b"", {})
    assert done.code == 0, done.err


@pytest.mark.req("M8")
def test_a_token_opens_its_own_banks_and_no_other(team: Path) -> None:
    ada, bob = _token(team, "human:ada", "web", "api"), _token(team, "human:bob", "api")
    with _team_server(team) as served, _client(served, ada) as hers, _client(served, bob) as his:
        assert (
            hers.post("/banks/web/api/lessons", json={"summary": "Run yarn build first"}).status_code == 201
        )
        assert hers.get("/api/lessons").json()["lessons"]
        assert hers.get("/banks/api/api/lessons").json()["lessons"] == []
        # Without a name a token opens the first of its banks.
        assert his.get("/api/lessons").json()["lessons"] == []
        refused = his.get("/banks/web/api/lessons")
        unknown = his.get("/banks/nowhere/api/lessons")
        # One that exists is refused as one that does not.
        for answer, name in ((refused, "web"), (unknown, "nowhere")):
            assert (answer.status_code, answer.json()["code"]) == (403, "no_such_bank")
            assert f"'{name}'" in answer.json()["detail"]


@pytest.mark.req("M8")
def test_one_bank_revokes_a_token_of_several_for_itself(team: Path) -> None:
    ada = _token(team, "human:ada", "web", "api")
    with _team_server(team) as served, _client(served, ada) as hers:
        with Bank.open(team / "web", actor=ADA) as bank:
            bank.tokens.revoke("human:ada")
        assert hers.get("/banks/web/api/lessons").status_code == 403
        assert hers.get("/banks/api/api/lessons").status_code == 200


@pytest.mark.req("C12")
def test_a_search_across_banks_names_each_hits_bank_and_respects_their_rights(team: Path) -> None:
    ada, bob = _token(team, "human:ada", "web", "api"), _token(team, "human:bob", "api")
    with _team_server(team) as served, _client(served, ada) as hers, _client(served, bob) as his:
        for name in ("web", "api"):
            said = {"summary": f"Deploy the {name} service with the blue script"}
            assert hers.post(f"/banks/{name}/api/lessons", json=said).status_code == 201

        def banks_of(client: httpx.Client, names: str) -> list[str]:
            params = {"query": "deploy the service", "bank": names}
            return [hit["bank"] for hit in client.get("/api/recall", params=params).json()["hits"]]

        assert sorted(banks_of(hers, "all")) == ["api", "web"]
        assert banks_of(hers, "web") == ["web"]
        assert banks_of(his, "all") == ["api"]
        refused = his.get("/api/recall", params={"query": "deploy", "bank": "api,web"})
        assert (refused.status_code, refused.json()["code"]) == (403, "no_such_bank")
        assert "'web'" in refused.json()["detail"]


def _everything_told(client: httpx.Client) -> str:
    """Return all that a client can read of the team's memory and of its own."""
    texts = []
    for path in ("", "/banks/web"):
        routes = (
            "/api/runs", "/api/lessons?all=true", "/api/recall?query=zeppelin", "/api/status", "/api/stream",
            "/api/recall?query=zeppelin&kind=event", "/api/recall?query=requests+module&bank=all",
            "/api/audit/report", "/api/memory/episodes", "/api/memory/knowledge", "/api/ledger",
        )  # fmt: skip
        texts += [client.get(f"{path}{route}").text for route in routes]
        texts.append(client.post(f"{path}/api/brief", json={"task": "zeppelin", "repo": "billing"}).text)
        with client.stream("GET", f"{path}/api/events", headers={"Last-Event-ID": "0"}) as stream:
            for line in stream.iter_lines():
                texts.append(line)
                if line.startswith(": ") or "reflection_complete" in line:
                    break
    return "\n".join(texts)


@pytest.mark.req("M8")
def test_a_run_is_private_until_it_is_shared(team: Path, tmp_path: Path) -> None:
    ada, bob = _token(team, "human:ada", "web"), _token(team, "human:bob", "web")
    settings = (*_PRIVATE, "server.heartbeat_s=0.2")
    with (
        _team_server(team, settings=settings) as served,
        _client(served, ada) as hers,
        _client(served, bob) as his,
    ):
        _capture(hers, tmp_path, "run-of-ada")
        _learn(team)
        assert [run["id"] for run in hers.get("/api/runs").json()["runs"]] == ["run-of-ada"]
        assert hers.get("/api/recall?query=zeppelin").json()["hits"]
        assert hers.get("/api/lessons").json()["lessons"]
        told = _everything_told(his)
        for private in ("run-of-ada", "zeppelin", "requests"):
            assert private not in told.replace("query=zeppelin", "").replace("task zeppelin", ""), private
        for path in ("/banks/web~ada/api/runs", "/banks/web~ada/"):
            assert his.get(path).json()["code"] == "no_such_bank"
        assert his.get("/api/runs/run-of-ada").status_code == 404
        assert his.post("/api/runs/run-of-ada/share", json={}).status_code == 404
        shared = hers.post("/api/runs/run-of-ada/share", json={})
        assert (shared.status_code, shared.json()["bank"]) == (200, "web"), shared.text
        _learn(team)
        assert his.get("/banks/web/api/runs/run-of-ada").json()["run"]["id"] == "run-of-ada"
        assert [hit["bank"] for hit in his.get("/api/recall?query=zeppelin").json()["hits"]][:1] == ["web"]
        brief = his.post("/api/brief", json={"task": "install", "repo": "billing"}).json()
        assert [lesson["id"] for lesson in brief["lessons"]] == ["team-m-001"]
        # What both of her banks have is told once.
        both = hers.post("/api/brief", json={"task": "install", "repo": "billing"}).json()
        assert [lesson["id"] for lesson in both["lessons"]] == ["team-m-001"]


@pytest.mark.req("M8")
def test_an_agent_of_a_person_reads_her_runs_and_cannot_share_them(team: Path, tmp_path: Path) -> None:
    ada, agent = _token(team, "human:Ada", "web"), _token(team, "agent:ada/claude", "web")
    with _team_server(team, settings=_PRIVATE) as served, _client(served, ada) as hers:
        _capture(hers, tmp_path, "run-of-ada")
        with _client(served, agent) as its:
            assert its.get("/api/runs/run-of-ada").status_code == 200
            assert its.post("/api/runs/run-of-ada/share", json={}).status_code == 403


@pytest.mark.req("M8")
def test_a_lesson_that_runs_of_two_people_met_is_the_teams(team: Path, tmp_path: Path) -> None:
    people = ("ada", "bob", "cy")
    tokens = {name: _token(team, f"human:{name}", "web") for name in people}
    with _team_server(team, settings=(*_PRIVATE, "server.heartbeat_s=0.2")) as served:
        for name, task in (("ada", _PRIVATE_TASK), ("bob", "Another thing")):
            with _client(served, tokens[name]) as theirs:
                _capture(theirs, tmp_path, f"run-of-{name}", task)
            _learn(team)
        with _client(served, tokens["cy"]) as his:
            brief = his.post("/api/brief", json={"task": "install", "repo": "billing"}).json()
            assert [lesson["id"] for lesson in brief["lessons"]] == ["team-m-001"]
            (lesson,) = his.get("/banks/web/api/lessons").json()["lessons"]
            assert lesson["frequency"] == 2
            assert his.get("/banks/web/api/runs").json()["runs"] == []
            told = _everything_told(his).replace("query=zeppelin", "")
            assert not [private for private in ("zeppelin", "run-of-ada", "run-of-bob") if private in told]
    with Bank.open(person_bank(bank_file(team / "web"), "ada")) as own:
        assert own.runs.episode("run-of-ada").task == _PRIVATE_TASK


def test_strange_names_have_no_bank(team: Path) -> None:
    token = _token(team, "human:..", "web")
    with _team_server(team, settings=_PRIVATE) as served, _client(served, token) as theirs:
        assert theirs.get("/api/runs").json()["code"] == "bad_person"
    assert not (team / "web/.archivist/people").exists()


def _children_of(served: Served, count: int) -> list[str]:
    listed = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children")
    while len(children := listed.read_text().split()) < count:
        assert served.process.poll() is None
    return children


def test_several_processes_serve_one_address_and_events_reach_all(team: Path) -> None:
    token = _token(team, "human:ada", "web")
    with _team_server(team, "--processes", "3", settings=("server.poll_s=0.05",)) as served:
        children = _children_of(served, 3)
        found: list[str] = []

        def listen() -> None:
            with (
                _client(served, token) as mine,
                mine.stream("GET", "/api/events", headers={"Last-Event-ID": "0"}) as stream,
            ):
                for line in stream.iter_lines():
                    if '"lesson"' in line:
                        found.append(line)
                        return

        listeners = [Thread(target=listen) for _ in range(6)]
        for listener in listeners:
            listener.start()
        with _client(served, token) as hers:
            assert hers.post("/api/lessons", json={"summary": "Seen by everybody"}).status_code == 201
        for listener in listeners:
            listener.join(30)
        assert len(found) == 6
        # A browser's session is good for every process, and a process that dies is replaced.
        with httpx.Client(base_url=served.url) as browser:
            browser.get(served.link)
            os.kill(int(children[0]), signal.SIGKILL)
            cookies = dict(browser.cookies)
            for _ in range(12):
                assert httpx.get(f"{served.url}/api/status", cookies=cookies).status_code == 200
        code, _ = served.stop()
        assert code == 0


def test_children_end_with_their_parent(team: Path) -> None:
    with _team_server(team, "--processes", "2") as served:
        children = _children_of(served, 2)
        served.process.kill()
        served.process.communicate(timeout=30)
        ended = [Path(f"/proc/{child}") for child in children]
        while any(each.exists() for each in ended):
            # Whoever adopts them waits for them.
            if all("State:\tZ" in (each / "status").read_text() for each in ended if each.exists()):
                break


def test_the_command_searches_banks_by_name(team: Path) -> None:
    for name in ("web", "api"):
        with Bank.open(team / name, actor=ADA) as bank:
            bank.lessons.add(f"Deploy the {name} service with the blue script")
    done = run_apart(["recall", "deploy the service", "--bank", "all", "--json"], team, b"", {})
    assert sorted(hit["bank"] for hit in json.loads(done.out)["hits"]) == ["api", "web"]
    shown = run_apart(["recall", "deploy the service", "--bank", "web"], team, b"", {})
    assert "  web" in shown.out
    assert "api" not in shown.out
    unknown = run_apart(["recall", "deploy", "--bank", "web,nowhere"], team, b"", {})
    assert unknown.code == 5
    assert "'nowhere'" in unknown.err
