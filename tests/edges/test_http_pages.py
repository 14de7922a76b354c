"""Pages of lists: each record once, whatever comes and goes meanwhile."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.edges.http.answers import Paging, _parse_cursor
from archivist.layers.attempts_service import NEWEST
from archivist.store.rows import cursor_of
from tests.banks import fresh_bank
from tests.edges.http_server import ADA, Served, serving

LISTS: list[tuple[str, str, dict[str, object]]] = [
    ("/api/memory/episodes", "episodes", {"task_id": "walk"}),
    ("/api/runs", "runs", {"task": "walk"}),
    ("/api/runs", "runs", {}),
    ("/api/memory/artifacts", "artifacts", {"task_id": "walk"}),
    ("/api/stream", "entries", {"role": "walker"}),
    ("/api/stream", "entries", {"role": "walker", "start_cycle": 0}),
    ("/api/memory/knowledge", "knowledge", {"project": "walk"}),
    ("/api/lessons", "lessons", {"tag": "walk"}),
    ("/api/proposals", "proposals", {}),
    ("/api/archive/sources", "sources", {}),
    ("/api/archive/text", "pieces", {"source": "long.md"}),
    ("/api/workspace/learnings", "decisions", {"scope": "walk"}),
    ("/api/tools", "tools", {}),
]
RANKINGS: list[tuple[str, str, dict[str, object]]] = [
    ("/api/memory/knowledge", "knowledge", {"project": "walk", "text": "walked"}),
    ("/api/lessons", "lessons", {"text": "walk"}),
    ("/api/stream/search", "hits", {"query": "walked"}),
    ("/api/archive/search", "hits", {"query": "text"}),
]
NO_SCALARS: list[object] = [True, [], {}, ["x"], {"x": 1}, [[[]]], 1 << 70, -(1 << 4000), "\ud800"]
# What can stand in no place in which the last record's value was of this type.
WRONG: dict[type, list[object]] = {
    str: [*NO_SCALARS, 7, 0.5, -1],
    int: [*NO_SCALARS, "7", 0.5, None],
    float: [*NO_SCALARS, "7", None, float("nan"), float("inf")],
    type(None): [*NO_SCALARS, 7, "no time", "2026-04-03"],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one bank for all tests of this file."""
    with serving(tmp_path_factory.mktemp("pages"), "--quiet") as served:
        yield served


@pytest.fixture
def human(served: Served) -> Iterator[httpx.Client]:
    """Come in as a person."""
    with served.client() as client:
        yield client


def _page(client: httpx.Client, path: str, **asked: object) -> dict[str, Any]:
    response = client.get(path, params={name: str(value) for name, value in asked.items()})
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


def _fact(client: httpx.Client, project: str, key: str) -> None:
    body = {"project": project, "category": "fact", "key": key, "value": "v"}
    client.post("/api/memory/knowledge", json=body).raise_for_status()


def test_what_was_shown_can_go_and_the_rest_is_still_shown(human: httpx.Client) -> None:
    for number in range(10):
        _fact(human, "going", f"k{number:02}")
    path, asked = "/api/memory/knowledge", {"project": "going", "limit": 3}
    first = _page(human, path, **asked)
    for each in first["knowledge"]:
        human.delete(f"{path}/{each['id']}").raise_for_status()
    _fact(human, "going", "k00a")
    second = _page(human, path, **asked, cursor=first["next"])
    assert [each["key"] for each in second["knowledge"]] == ["k03", "k04", "k05"]


def test_a_record_that_moves_up_repeats_nothing(human: httpx.Client) -> None:
    asked = {"tag": "moving", "limit": 2}
    made = [
        human.post(
            "/api/lessons", json={"summary": f"Move {n}", "tags": ["moving"], "importance": 0.5}
        ).json()
        for n in range(6)
    ]
    first = _page(human, "/api/lessons", **asked)
    shown = [each["id"] for each in first["lessons"]]
    human.patch(f"/api/lessons/{shown[-1]}", json={"importance": 0.9}).raise_for_status()
    rest = _page(human, "/api/lessons", tag="moving", limit=2, cursor=first["next"])["lessons"]
    assert [each["id"] for each in rest] == [each["lesson"]["id"] for each in made[2:4]]


@pytest.mark.parametrize(("path", "name", "asked"), LISTS)
def test_page_after_page_is_the_whole_list(
    served: Served, human: httpx.Client, path: str, name: str, asked: dict[str, object]
) -> None:
    _fill(served)
    whole = _page(human, path, **asked, limit=200)
    assert len(whole[name]) >= 5
    assert whole["next"] is None
    seen: list[object] = []
    page = _page(human, path, **asked, limit=2)
    while True:
        seen += page[name]
        assert len(page[name]) <= 2
        if page["next"] is None:
            break
        page = _page(human, path, **asked, limit=2, cursor=page["next"])
    assert seen == whole[name]


def _fill(served: Served) -> None:
    """Put at least five of everything into the bank, once."""
    if (served.folder / "walk.txt").exists():
        return
    with Bank.open(served.folder, actor=ADA) as bank:
        for number in range(5):
            bank.attempts.log("walk", agent="kit", action="attempted", approach=f"way {number}")
            bank.runs.start_run(f"open-{number}", task="walk")
            (served.folder / "walk.txt").write_text(str(number), encoding="utf-8")
            bank.artifacts.register("walk.txt", task="walk", agent="kit")
            bank.knowledge.put("fact", f"Ä{number}", f"walked {number}", project="walk")
            bank.lessons.add(f"Walk {number}", tags=["walk"])
            bank.stream.log(f"walked {number}", role="walker")
            bank.documents.insert(f"text {number}", source=f"walk-{number}.md", type="decision")
            bank.proposals.propose("rules", f"Walk {number}.", reason="manners")
        long = "\n\n".join(f"# Part {number}\n\n" + "A sentence of it. " * 200 for number in range(6))
        bank.documents.insert(long, source="long.md", type="decision")
    items = [{"text": f"Decided to use tool {n} for job {n} of the {w}.", "kind": "decision"}
             for n, w in enumerate(("parser", "linter", "server", "editor", "kernel"))]  # fmt: skip
    with served.client() as client:
        body = {"items": items, "scope": "walk", "create": True}
        saved = client.post("/api/workspace/save", json=body)
        assert saved.json()["saved"] == 5, saved.text


def test_a_cursor_that_was_made_up_is_refused(human: httpx.Client) -> None:
    _fact(human, "forged", "a")
    _fact(human, "forged", "b")
    cursor = _page(human, "/api/memory/knowledge", project="forged", limit=1)["next"]
    mark = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))[0]
    for place in ([], [1], ["a", "b"], [[], {}, ""], [True, "", ""], [1 << 70, "", ""], ["a", "b", "c", "d"]):
        text = base64.urlsafe_b64encode(json.dumps([mark, *place]).encode()).decode()
        answer = human.get("/api/memory/knowledge", params={"project": "forged", "cursor": text})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor"), place


@pytest.mark.parametrize(("path", "name", "asked"), [*LISTS, *RANKINGS])
def test_a_cursor_with_values_of_another_type_is_refused(
    served: Served, human: httpx.Client, path: str, name: str, asked: dict[str, object]
) -> None:
    _fill(served)
    page = _page(human, path, **asked, limit=2)
    assert len(page[name]) == 2
    mark, *place = json.loads(base64.urlsafe_b64decode(page["next"] + "=" * (-len(page["next"]) % 4)))
    forged = [
        [],
        place[:-1],
        [*place, "x"],
        [*place, None],
        [*place, *place],
        [place],
        [None] * 4,
        [place, 1],
    ]
    for number, value in enumerate(place):
        forged += [[*place[:number], wrong, *place[number + 1 :]] for wrong in WRONG[type(value)]]
    for each in forged:
        text = base64.urlsafe_b64encode(json.dumps([mark, *each]).encode()).decode()
        answer = human.get(path, params={**_texts(asked), "limit": "2", "cursor": text})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor"), each
    again = base64.urlsafe_b64encode(json.dumps([mark, *place]).encode()).decode()
    assert _page(human, path, **asked, limit=2, cursor=again)[name]


def _texts(asked: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in asked.items()}


@pytest.mark.parametrize("shown", [1 << 39, 1 << 20, 5_000])
def test_a_ranking_of_which_all_too_much_was_shown_has_no_more(
    served: Served, human: httpx.Client, shown: int
) -> None:
    _fill(served)
    for path, name, asked in RANKINGS:
        following = _page(human, path, **asked, limit=2)["next"]
        mark, *_ = json.loads(base64.urlsafe_b64decode(following + "=" * (-len(following) % 4)))
        text = base64.urlsafe_b64encode(json.dumps([mark, shown, "nobody"]).encode()).decode()
        page = _page(human, path, **asked, limit=2, cursor=text)
        assert (page[name], page["next"]) == ([], None)


def test_the_last_of_many_pages_costs_as_little_as_the_first(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with fresh_bank(tmp_path_factory.mktemp("many"), actor=ADA) as bank:
        with bank.transaction():
            for number in range(3_000):
                bank.attempts.log("deep", agent="kit", action="attempted", approach=f"way {number}")
        took = []
        page = bank.attempts.query(limit=100)
        while page:
            after = cursor_of(page[-1], NEWEST)
            began = time.process_time()
            page = bank.attempts.query(limit=100, after=after)
            took.append(time.process_time() - began)
        assert len(took) == 30
        assert sorted(took[-11:-1])[5] < 3 * sorted(took[:10])[5]


@given(
    numbers=st.lists(st.integers(0, 1000), unique=True, max_size=40),
    limit=st.integers(1, 9),
    gone=st.sets(st.integers(0, 1000), max_size=20),
)
@settings(max_examples=50)
def test_what_goes_and_comes_before_a_place_moves_nothing(
    numbers: list[int], limit: int, gone: set[int]
) -> None:
    items, paging = sorted(numbers), Paging(limit, (), "m")
    seen: list[int] = []
    while True:
        page = paging.page_by_key(items, lambda number: number)
        seen += page.items
        if page.next is None:
            break
        paging = Paging(limit, _parse_cursor(page.next, "m"), "m")
        items = [each for each in items if each not in gone or each > seen[-1]]
    assert seen == sorted(numbers)
