"""OpenTelemetry: spans by the conventions for memory, content only when asked for, nothing without it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from archivist import Bank
from archivist.access.rights import Verb
from archivist.archive.items_service import ItemName, MemoryFile
from archivist.edges.integrations import otel
from archivist.edges.integrations.anthropic_memory import ArchivistMemoryTool
from archivist.edges.integrations.langgraph import ArchivistStore
from archivist.edges.integrations.openai_agents import ArchivistSession
from archivist.errors import AccessError, ArchivistError
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind
from archivist.tools.functions import call, tools
from tests.services import service_classes

ALLOWED = {
    "create_memory_store",
    "search_memory",
    "create_memory",
    "update_memory",
    "upsert_memory",
    "delete_memory",
    "delete_memory_store",
}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Trace with a provider of the test's own; the global one can be set only once in a process."""
    monkeypatch.delenv(otel.CONTENT, raising=False)
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(otel, "_tracer", lambda: provider.get_tracer("archivist"))
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, verb: str) -> ReadableSpan:
    (found,) = [
        each for each in spans.get_finished_spans() if (each.attributes or {})["archivist.verb"] == verb
    ]
    return found


def test_the_verbs_are_told_by_the_conventions_names(bank: Bank, spans: InMemorySpanExporter) -> None:
    lesson = bank.lessons.add("The checks want a seed")
    bank.recall(Query(text="seed of the checks"))
    bank.stream.log("shipped", content="the seed", importance=5)
    made, found, logged = (named(spans, verb) for verb in ("lessons.add", "recall.recall", "stream.log"))
    assert (made.name, made.kind) == ("create_memory", SpanKind.INTERNAL)
    assert dict(made.attributes or {}) == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.memory.store.id": str(bank.path),
        "gen_ai.agent.name": "ada",
        "gen_ai.memory.record.id": lesson.id,
        "gen_ai.memory.record.count": 1,
        "archivist.verb": "lessons.add",
    }
    assert found.name == "search_memory"
    assert (found.attributes or {})["gen_ai.memory.record.count"] == 1
    assert logged.name == "create_memory"


def test_a_verb_inside_another_is_its_child(bank: Bank, spans: InMemorySpanExporter) -> None:
    bank.runs.start_run("run-1", task="build")
    outer, inner = named(spans, "runs.start_run"), named(spans, "briefs.brief")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_content_stays_out_unless_the_environment_asks(
    bank: Bank, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.lessons.add("The checks want a seed")
    bank.recall(Query(text="seed of the checks"))
    call(bank, "recall", {"query": "seed"})
    assert "seed" not in " ".join(each.to_json() for each in spans.get_finished_spans())
    spans.clear()
    monkeypatch.setenv(otel.CONTENT, "SPAN_ONLY")
    bank.recall(Query(text="seed of the checks"))
    bank.brief(task="run the checks")
    told = named(spans, "recall.recall").attributes or {}
    assert told["gen_ai.memory.query.text"] == "seed of the checks"
    (record,) = json.loads(str(told["gen_ai.memory.records"]))
    assert record["content"].startswith("The checks want a seed")
    assert {"id", "score"} <= record.keys()
    assert (named(spans, "briefs.brief").attributes or {})["gen_ai.memory.query.text"] == "run the checks"


def test_a_failure_is_told_by_its_code_without_its_words(bank: Bank, spans: InMemorySpanExporter) -> None:
    agent = bank.acting_as(Actor(ActorKind.AGENT, "coder"))
    with pytest.raises(AccessError):
        agent.knowledge.put("convention", "secret plan", "nobody may read this")
    span = named(spans, "knowledge.put")
    assert (span.attributes or {})["error.type"] == "access_denied"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert not span.events
    assert "secret plan" not in span.to_json()


def test_every_checked_method_is_an_operation_of_the_conventions() -> None:
    everybody: list[type[Any]] = [Bank, *service_classes()]
    checked = [method for kind in everybody for method in vars(kind).values() if hasattr(method, "access")]
    operations = {otel.operation_of(method.access[1], method.__name__) for method in checked}
    assert operations == ALLOWED - {"create_memory_store", "delete_memory_store"}


@pytest.mark.parametrize(
    ("verb", "method", "operation"),
    [
        (Verb.READ, "get", "search_memory"),
        (Verb.READ, "list_below", "search_memory"),
        (Verb.WRITE, "add", "create_memory"),
        (Verb.WRITE, "log", "create_memory"),
        (Verb.WRITE, "record_usage", "update_memory"),
        (Verb.DECIDE, "approve", "update_memory"),
        (Verb.WRITE, "put", "upsert_memory"),
        (Verb.WRITE, "capture_file", "upsert_memory"),
        (Verb.WRITE, "erase", "delete_memory"),
        (Verb.DECIDE, "remove", "delete_memory"),
    ],
)
def test_an_operation_follows_from_the_right_and_the_methods_first_word(
    verb: Verb, method: str, operation: str
) -> None:
    assert otel.operation_of(verb, method) == operation


def test_without_a_provider_nothing_is_told_and_all_works(bank: Bank) -> None:
    assert "opentelemetry.trace" in sys.modules
    assert not isinstance(trace.get_tracer_provider(), TracerProvider)
    assert bank.lessons.get(bank.lessons.add("plain").short_id).summary == "plain"


def test_a_bank_does_not_import_opentelemetry() -> None:
    code = (
        "import sys, tempfile\n"
        "from archivist import Bank\n"
        "with tempfile.TemporaryDirectory() as folder, Bank.open(folder, create=True) as bank:\n"
        "    bank.lessons.add('x')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def told(spans: InMemorySpanExporter) -> list[tuple[str, str, object, object]]:
    """Return the outermost spans in order: operation, verb, record and count; and forget them."""
    found = [each for each in spans.get_finished_spans() if each.parent is None]
    spans.clear()
    names = ("archivist.verb", "gen_ai.memory.record.id", "gen_ai.memory.record.count")
    return [(each.name, *((each.attributes or {}).get(name) for name in names)) for each in found]  # type: ignore[misc]


@pytest.mark.parametrize("tool", [each.name for each in tools()])
def test_every_tool_is_a_span_of_its_own(bank: Bank, spans: InMemorySpanExporter, tool: str) -> None:
    (bank.root / "out.txt").write_text("made")
    for summary in ("The checks want a seed", "Set the seed before the checks"):
        call(bank, "lesson_add", {"summary": summary})
    given: dict[str, Any] = {
        "query": "seed", "task": "seed", "scope": "w", "id": "m-001", "start_cycle": 0, "end_cycle": 1,
        "content": "seed", "importance": 3, "tags": [], "key": "k", "value": "v", "category": "c",
        "agent": "a", "approach": "x", "path": "out.txt", "summary": "Another thing", "after": "Test first",
        "reason": "why", "items": ["a seed"], "item": "a seed",
        "name": "seed", "text": "Sow it", "title": "Sow it", "error": "no soil", "ids": ["m-001", "m-002"],
        "lessons": [{"summary": "Another thing"}],
    }  # fmt: skip
    chosen = {"core_memory_update": {"section": "status"}, "core_memory_append": {"section": "blockers"}}
    chosen |= {"memory_log": {"action": "seed", "type": "action"}, "archival_insert": {"type": "spec"}}
    chosen |= {"episode_log": {"action": "failed"}, "proposal_add": {"section": "rules"}}
    (offered,) = [each for each in tools() if each.name == tool]
    wanted = {name: given[name] for name in offered.schema().get("required", []) if name in given}
    spans.clear()
    with contextlib.suppress(ArchivistError):
        call(bank, tool, {**wanted, **chosen.get(tool, {})})
    first = told(spans)[0]
    assert (first[0] == "search_memory") == offered.only_reads(wanted)


def test_a_store_tells_what_it_does(bank: Bank, spans: InMemorySpanExporter) -> None:
    store = ArchivistStore(bank)
    store.put(("a",), "k", {"text": "tea"})
    item = ItemName(("a",), "k").id
    assert bank.ledger.find(item)[0] == "document"
    spans.clear()
    store.put(("a",), "k", {"text": "tea and milk"})
    store.get(("a",), "k")
    store.search(("a",))
    store.search(("a",), query="tea")
    store.delete(("a",), "k")
    store.get(("a",), "k")
    assert told(spans) == [
        ("upsert_memory", "items.put", item, 1),
        ("search_memory", "items.get", item, 1),
        ("update_memory", "items.refresh", None, None),
        ("search_memory", "items.list_below", item, 1),
        ("update_memory", "items.refresh", None, None),
        ("search_memory", "items.search", item, 1),
        ("update_memory", "items.refresh", None, None),
        ("delete_memory", "items.drop", item, 1),
        ("search_memory", "items.get", None, 0),
    ]


def test_a_memory_tool_tells_what_it_does(bank: Bank, spans: InMemorySpanExporter) -> None:
    tool = ArchivistMemoryTool(bank)
    tool.call({"command": "create", "path": "/memories/x", "file_text": "tea"})
    tool.call({"command": "view", "path": "/memories/x"})
    tool.call({"command": "rename", "old_path": "/memories/x", "new_path": "/memories/y"})
    tool.call({"command": "delete", "path": "/memories/y"})
    old, new = MemoryFile("x", 3).id, MemoryFile("y", 3).id
    spoken = [each for each in told(spans) if each[0] != "search_memory" or each[1] == "memoryfiles.files"]
    assert ("create_memory", "memoryfiles.create", old, 1) in spoken
    assert ("update_memory", "memoryfiles.rename", new, 1) in spoken
    assert ("delete_memory", "memoryfiles.remove", new, 1) in spoken


def test_a_session_tells_what_it_does(bank: Bank, spans: InMemorySpanExporter) -> None:
    async def talk() -> None:
        session = ArchivistSession("s", bank)
        await session.add_items([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
        await session.get_items()
        await session.pop_item()
        await session.clear_session()

    asyncio.run(talk())
    added, got, popped, cleared = told(spans)
    assert added[:2] == ("create_memory", "conversations.add")
    assert got == ("search_memory", "conversations.turns", None, 2)
    assert popped[:2] == ("delete_memory", "conversations.pop")
    assert popped[2]
    assert cleared == ("delete_memory", "conversations.clear", None, 1)


def test_a_run_that_is_opened_is_the_record(bank: Bank, spans: InMemorySpanExporter) -> None:
    bank.lessons.add("The checks want a seed")
    spans.clear()
    bank.runs.start_run("run-1", task="the checks")
    bank.runs.start_run(run="run-2", task="the checks")
    assert [each[2] for each in told(spans)] == ["run-1", "run-2"]


def test_what_worked_is_one_span_with_its_searches_inside(bank: Bank, spans: InMemorySpanExporter) -> None:
    call(bank, "what_worked", {"task": "the checks"})
    assert [each[1] for each in told(spans)] == ["attempts.similar"]
