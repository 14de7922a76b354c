"""The bars of the pages: with 100,000 lessons a page costs little and stays small."""

from __future__ import annotations

import os
import re
from math import inf
from pathlib import Path

import httpx
import pytest

from tests.edges.http_server import Served, serving
from tests.edges.web.conftest import visit
from tests.edges.web.sites import fill_large

MAX_CPU_MS = 100
MAX_BYTES = 100_000
_ROUNDS = 4
_TRIES = 3
_PATHS = (
    "/overview", "/lessons", "/lessons?status=quarantined", "/lessons?project=project-7",
    "/lessons?q=cargo+build", "/runs", "/live", "/brief", "/brief?task=fix+the+build&repo=project-3",
    "/audit", "/ledger", "/knowledge", "/tasks", "/core", "/proposals", "/workspace",
)  # fmt: skip


def _cpu_ms(served: Served) -> float:
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000


@pytest.mark.req("N2")
def test_a_page_of_a_large_bank_costs_little_and_stays_small(
    tmp_path: Path, browser: object, axe: str
) -> None:
    folder = fill_large(tmp_path / "large")
    with serving(folder, "--quiet") as served:
        with httpx.Client(
            base_url=served.url, follow_redirects=True, headers={"Accept": "text/html"}
        ) as client:
            client.get(served.link)
            found = re.search(r'href="(/lessons/m-\d+)"', client.get("/lessons").text)
            assert found
            for path in (*_PATHS, found[1]):
                # The first request of a path fills caches that later ones share.
                assert client.get(path).status_code == 200
                costs: list[float] = []
                # A busy machine makes CPU time longer too: the best of a few measurements counts.
                while len(costs) < _TRIES and min(costs, default=inf) > MAX_CPU_MS:
                    before = _cpu_ms(served)
                    sizes = [len(client.get(path).content) for _ in range(_ROUNDS)]
                    costs.append((_cpu_ms(served) - before) / _ROUNDS)
                    assert max(sizes) <= MAX_BYTES, path
                assert min(costs) <= MAX_CPU_MS, (path, costs)
            pages = [client.get("/lessons").text]
            for _ in range(3):
                link = re.search(r'rel="next" href="([^"]+)"', pages[-1])
                assert link
                pages.append(client.get(link[1].replace("&amp;", "&")).text)
            listed = [
                name for page in pages for name in re.findall(r'class="main" href="/lessons/(m-\d+)"', page)
            ]
            assert len(set(listed)) == len(listed) == 200
        visitor = visit(browser, served)  # type: ignore[arg-type]
        page = visitor.go("/lessons")
        page.get_by_label("Search").press_sequentially("uv deploy module 512")
        page.wait_for_url("**q=uv+deploy+module+512")
        assert page.locator("#results li").count() > 0
        page.evaluate(axe)
        assert page.evaluate("axe.run()")["violations"] == []
        visitor.context.close()
        assert visitor.problems == []
