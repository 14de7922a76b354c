"""The OpenAPI document names the bounds that are enforced: no tighter ones, no looser ones."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.edges.http_server import Served, serving

# What every operation takes, so that one field at a time can be put at its bound and beyond.
REQUESTS: dict[tuple[str, str], dict[str, Any]] = {
    ("post", "/api/brief"): {"task": "x", "tags": ["a"], "max_lessons": 1, "budget_tokens": 1},
    ("post", "/api/heal"): {"error": "boom", "tool": "bash", "command": "make", "repo": "r"},
    ("post", "/api/stream"): {"action": "a", "content": "c", "tags": ["a"], "issues": [1], "prs": [1]},
    ("post", "/api/stream/cycle"): {"role": "qa"},
    ("post", "/api/archive"): {"content": "c", "type": "spec", "tags": ["a"], "issues": [1], "roles": ["qa"]},
    ("post", "/api/memory/knowledge"): {
        "category": "c", "key": "k", "value": "v", "confidence": 1, "tags": ["a"], "source": "s",
    },
    ("post", "/api/memory/episodes"): {
        "task_id": "t", "agent_id": "a", "action": "failed", "approach": "a", "outcome": "o", "tokens_in": 1,
        "duration_ms": 1, "tokens_out": 1,
    },
    ("post", "/api/memory/artifacts"): {"path": "made.txt", "task_id": "t", "description": "d"},
    ("post", "/api/memory/tasks"): {"title": "t", "owner": "a", "approaches": ["x"], "max_attempts": 1},
    ("post", "/api/memory/tasks/{id}/start"): {"agent": "a", "approach": "x", "run": "r"},
    ("post", "/api/memory/tasks/{id}/finish"): {"result": "r"},
    ("post", "/api/memory/tasks/{id}/fail"): {"error": "e"},
    ("post", "/api/memory/tasks/{id}/reopen"): {"reason": "r"},
    ("post", "/api/memory/tasks/{id}/cancel"): {"reason": "r"},
    ("patch", "/api/core/{section}"): {"content": "c", "role": "qa"},
    ("post", "/api/core/{section}"): {"item": "c", "role": "qa"},
    ("patch", "/api/working"): {"plan": "p", "constraints": ["c"], "context": {}},
    ("post", "/api/working/notes"): {"text": "t"},
    ("post", "/api/proposals"): {"section": "rules", "after": "a", "reason": "r", "evidence": []},
    ("post", "/api/lessons"): {"summary": "s", "rule": "r", "detail": "d", "tags": ["a"], "importance": 1},
    ("patch", "/api/lessons/{id}"): {"summary": "s", "rule": "r", "detail": "d", "importance": 1},
    ("post", "/api/runs"): {"task": "t", "repo": "r"},
    ("post", "/api/runs/{run}/finish"): {"domain": "d"},
    ("post", "/api/runs/{run}/share"): {"to": "b"},
    ("post", "/api/audit/check"): {"run": "r"},
    ("post", "/api/reflect"): {},
    ("post", "/api/workspace/save"): {"items": [{"text": "Use uv"}], "scope": "shop"},
}  # fmt: skip
PATHS = {"{section}": "status", "{id}": "m-001", "{run}": "r"}
# How a bound is worded.
BOUND = re.compile(r"at most|characters|is not between|numbers from|too (?:long|many)|is no role")
# The tokens of core memory are a setting, which the document names; file systems have bounds of their own.
OTHERS = re.compile(r"\btokens\b|File name too long")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("bounds")
    (folder / "made.txt").write_text("made", encoding="utf-8")
    with serving(folder, "--quiet") as served:
        with served.client() as client:
            client.post("/api/lessons", json={"summary": "Use uv"}).raise_for_status()
        yield served


def _fields(document: dict[str, Any], schema: Any, place: tuple[str, ...] = ()) -> Iterator[Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for each in schema.get("anyOf", ()):
        yield from _fields(document, each, place)
    yield place, schema
    for name, each in schema.get("properties", {}).items():
        yield from _fields(document, each, (*place, name))
    if "items" in schema:
        yield from _fields(document, schema["items"], (*place, "0"))


def _with_value(body: dict[str, Any], place: tuple[str, ...], value: object) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    inside: Any = changed
    for name in place[:-1]:
        if isinstance(inside, list):
            inside = inside[0]
        else:
            empty: list[Any] = [""] if place[-1] == "0" else [{}]
            inside = inside.setdefault(name, empty)
    if isinstance(inside, list):
        inside[:] = [value] if place[-1] == "0" else [{**inside[0], place[-1]: value}]
    else:
        inside[place[-1]] = value
    return changed


def _bounds(schema: dict[str, Any], item: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a value at each bound of a field, and one beyond it."""
    if "maxLength" in schema:
        most = schema["maxLength"]
        yield "a" * most, "a" * (most + 1)
    if "maxItems" in schema:
        most = schema["maxItems"]
        # As many as fit would take the test a minute.
        yield [item] * min(most, 1_000), [item] * (most + 1)
    if "maximum" in schema:
        yield int(schema["maximum"]), int(schema["maximum"]) + 1
    if "minimum" in schema:
        yield int(schema["minimum"]), int(schema["minimum"]) - 1


def _is_bounded(answer: httpx.Response) -> bool:
    said = f"{answer.json().get('detail')} {answer.json().get('hint')}"
    return BOUND.search(said) is not None and OTHERS.search(said) is None


def _send(client: httpx.Client, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
    for name, value in PATHS.items():
        path = path.replace(name, "threads" if (method, name) == ("post", "{section}") else value)
    return client.request(method, path, json=body)


@pytest.mark.req("M6")
def test_every_operation_with_a_body_is_tried(served: Served) -> None:
    with served.client() as client:
        document = client.get("/openapi.json").json()
    with_body = {
        (method, path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    # These name what to do, and take no more than a flag or a comment, or what a tool's own schema says.
    plain = {
        ("post", "/api/stream/reflect"),
        ("post", "/api/proposals/{id}/{decision}"),
        ("post", "/api/tools/{name}"),
        ("post", "/api/memory/conflicts/{id}"),
    }
    assert with_body - plain == set(REQUESTS)


@pytest.mark.req("M6")
@pytest.mark.parametrize("operation", REQUESTS, ids=" ".join)
def test_the_bounds_of_the_document_are_the_enforced_ones(served: Served, operation: tuple[str, str]) -> None:
    method, path = operation
    body, tried, wrong = REQUESTS[operation], 0, []
    with served.client("agent:kit:qa" if "working" in path else "human:ada") as client:
        document = client.get("/openapi.json").json()
        schema = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        for place, field in _fields(document, schema):
            if not place:
                continue
            item: Any = {("items",): {"text": "Use uv"}, ("events",): {"type": "note"}}.get(place, "a")
            if field.get("type") == "array" and field.get("items", {}).get("type") == "integer":
                item = 1
            for fitting, beyond in _bounds(field, item):
                tried += 1
                refused = _send(client, method, path, _with_value(body, place, beyond))
                if refused.status_code != 422:
                    wrong.append(f"{place}: beyond the bound it is answered {refused.status_code}")
                taken = _send(client, method, path, _with_value(body, place, fitting))
                if taken.status_code == 422 or _is_bounded(taken):
                    wrong.append(f"{place}: at the bound it is refused: {taken.text}")
            if field.get("type") == "string" and not field.keys() & {"maxLength", "enum", "format"}:
                tried += 1
                taken = _send(client, method, path, _with_value(body, place, "a" * 100_000))
                if _is_bounded(taken):
                    wrong.append(f"{place}: a bound that the document does not name: {taken.text}")
    assert wrong == []
    assert tried


@pytest.mark.req("M6")
def test_a_state_that_is_in_the_way_is_a_conflict(served: Served) -> None:
    def code(answer: httpx.Response) -> tuple[int, str]:
        return answer.status_code, answer.json()["code"]

    with served.client() as human, served.client("agent:kit:qa") as agent:
        human.post("/api/stream", json={"action": "a", "role": "dev", "cycle": 9}).raise_for_status()
        for cycle in (3, 9_000):
            body = {"action": "b", "role": "dev", "cycle": cycle}
            assert code(human.post("/api/stream", json=body)) == (409, "state")
        made = human.post("/api/lessons", json={"summary": "Pin the linter"}).json()["lesson"]["id"]
        human.delete(f"/api/lessons/{made}").raise_for_status()
        assert code(human.post(f"/api/lessons/{made}/approve", json={})) == (409, "state")
        human.post("/api/runs", json={"run": "bare"}).raise_for_status()
        assert code(human.post("/api/audit/check", json={"run": "bare"})) == (409, "state")
        said = {"section": "playbook", "after": "Test first.", "reason": "it helps"}
        mine = agent.post("/api/proposals", json=said).json()["id"]
        other = agent.post("/api/proposals", json={**said, "after": "Test last."}).json()["id"]
        human.post(f"/api/proposals/{mine}/accept", json={}).raise_for_status()
        assert code(human.post(f"/api/proposals/{other}/accept", json={})) == (409, "state")
        assert code(agent.post("/api/proposals", json=said)) == (409, "state")
        for _ in range(60):
            answer = agent.post("/api/working/notes", json={"text": "x" * 8_000})
        assert code(answer) == (409, "state")


@pytest.mark.parametrize("operation", REQUESTS, ids=" ".join)
def test_a_refusal_never_repeats_a_long_value(served: Served, operation: tuple[str, str]) -> None:
    method, path = operation
    long = "x" * 5_000
    with served.client() as client:
        document = client.get("/openapi.json").json()
        schema = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        for place, _ in _fields(document, schema):
            for wrong in (long, {long: long}, [long] * 200):
                body = _with_value(REQUESTS[operation], place or (long,), wrong)
                answer = _send(client, method, path, body)
                assert answer.status_code < 400 or len(answer.content) < 3_000, (place, answer.text[:500])
        for parameter in document["paths"][path].get("get", {}).get("parameters", ()):
            answer = client.get(path, params={parameter["name"]: long})
            assert answer.status_code < 400 or len(answer.content) < 3_000
        for name in PATHS:
            if name in path:
                answer = client.request(method, path.replace(name, long), json=REQUESTS[operation])
                assert len(answer.content) < 3_000


@pytest.mark.parametrize("blank", ["\n\r\n", " ,\u3000"])
def test_a_blank_text_in_any_field_is_no_fault_of_the_server(served: Served, blank: str) -> None:
    failed = []
    with served.client("agent:kit:qa") as agent, served.client("human:ada") as person:
        document = agent.get("/openapi.json").json()
        for path, methods in document["paths"].items():
            if "/events" in path:
                continue
            for method, operation in methods.items():
                body = REQUESTS.get((method, path), {})
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                fields = [place for place, field in _fields(document, content.get("schema", {})) if place]
                named = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
                for client in (agent, person):
                    answers = [_send(client, method, path, _with_value(body, each, blank)) for each in fields]
                    target = path if method == "get" else ""
                    for name, value in PATHS.items() if target else ():
                        target = target.replace(name, value)
                    answers += [client.get(target, params={name: blank}) for name in named if target]
                    failed += [(method, path, each.text) for each in answers if each.status_code >= 500]
    assert failed == []
