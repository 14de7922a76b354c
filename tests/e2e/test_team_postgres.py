"""A team's server over PostgreSQL: many banks in one database, two processes, a laptop that was offline."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.commands import Ran, run_apart
from tests.e2e.test_team_sync import Laptop, _until
from tests.e2e.test_team_sync import port as port
from tests.edges.http_server import serving
from tests.postgres import new_database, shared_server


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name a database of our own as the user's server; return its URL."""
    url = new_database(shared_server())
    monkeypatch.setenv("ARCHIVIST_STORE", url)
    return url


def _run(folder: Path, *words: str) -> Ran:
    done = run_apart(words, folder, b"", {})
    assert done.code == 0, (words, done.err)
    return done


def _banks(url: str) -> list[str]:
    """Return the banks of a database without what makes their names unique."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT bank FROM archivist.banks").fetchall()
    return sorted(name.rpartition("-")[0] for (name,) in rows)


@pytest.mark.req("C12")
def test_a_team_shares_one_database(database: str, tmp_path: Path, port: int) -> None:
    web, api = tmp_path / "web", tmp_path / "api"
    for folder in (web, api):
        folder.mkdir()
        _run(folder, "init")
        assert not (folder / ".archivist/memory.db").exists()
    both = f"{web},{api}"
    ada = _run(tmp_path, "token", "create", "--actor", "human:ada", "--bank", both).out.strip()
    bob = _run(tmp_path, "token", "create", "--actor", "human:bob", "--bank", str(web)).out.strip()
    words = ("--bank", both, "--processes", "2", "--port", str(port))
    laptop = Laptop(tmp_path, "web-checkout")
    with serving(web, *words, settings=("server.private_runs=true",)) as served:
        done = laptop.run("sync", "--to", f"{served.url}/banks/web~ada", "--json", ARCHIVIST_TOKEN=ada)
        assert json.loads(done.out)["bank"] == "web~ada", done.err
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=60)
    names = [f"session-{number}" for number in range(3)]
    for name in names:
        laptop.end_session(tmp_path, name)
    _until(lambda: len(laptop.waiting) == 3, "3 runs wait")
    with serving(web, *words, settings=("server.private_runs=true",)) as served:
        sent = laptop.sync()
        assert (sent["sent"], sent["waiting"], sent["refused"]) == (3, 0, 0)
        assert laptop.sync()["sent"] == 0
        _check_rights(served.url, ada, bob, names)
    # People's own banks are among all of them, on the server too.
    _run(web, "worker", "--bank", "all", "--once")
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM archivist.pending").fetchone() == (0,)
    assert _banks(database) == ["api", "api~ada", "web", "web~ada", "web~bob"]
    laptops = [file for file in tmp_path.rglob("memory.db") if file.is_relative_to(laptop.project)]
    assert list(tmp_path.rglob("memory.db")) == laptops


def _check_rights(url: str, ada: str, bob: str, names: list[str]) -> None:
    def get(token: str, path: str) -> httpx.Response:
        return httpx.get(url + path, headers={"Authorization": f"Bearer {token}"}, timeout=60)

    # Both processes answer the same.
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: get(ada, "/banks/web~ada/api/runs").json()["runs"], range(8)))
    assert all(sorted(run["id"] for run in runs) == names for runs in answers)
    assert get(bob, "/banks/web/api/runs").json()["runs"] == []
    assert get(bob, "/api/runs").json()["runs"] == []
    for closed in ("/banks/api/api/runs", "/banks/web~ada/api/runs"):
        assert get(bob, closed).status_code == 403
    shared = httpx.post(
        f"{url}/banks/web~ada/api/runs/{names[0]}/share",
        headers={"Authorization": f"Bearer {ada}"}, json={}, timeout=60,
    )  # fmt: skip
    assert shared.status_code == 200, shared.text
    assert [run["id"] for run in get(bob, "/banks/web/api/runs").json()["runs"]] == [names[0]]
    found = get(ada, "/api/recall?query=module&bank=all").json()
    assert {hit["bank"] for hit in found["hits"]} <= {"web", "web~ada", "api"}
