"""OpenTelemetry: spans by the conventions for memory, content only when asked for, nothing without it."""

from __future__ import annotations

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

from archivist import Bank, access, desks, tracing
from archivist.errors import AccessError
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind
from archivist.tools import call

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
    monkeypatch.delenv(tracing.CONTENT, raising=False)
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("archivist"))
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, verb: str) -> ReadableSpan:
    (found,) = [
        each for each in spans.get_finished_spans() if (each.attributes or {})["archivist.verb"] == verb
    ]
    return found


def test_the_verbs_are_told_by_the_conventions_names(bank: Bank, spans: InMemorySpanExporter) -> None:
    lesson = bank.add("The checks want a seed")
    bank.recall(Query(text="seed of the checks"))
    bank.stream.log("shipped", content="the seed", importance=5)
    made, found, logged = (named(spans, verb) for verb in ("add", "recall", "stream.log"))
    assert (made.name, made.kind) == ("create_memory", SpanKind.INTERNAL)
    assert dict(made.attributes or {}) == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.memory.store.id": str(bank.path),
        "gen_ai.agent.name": "ada",
        "gen_ai.memory.record.id": lesson.id,
        "gen_ai.memory.record.count": 1,
        "archivist.verb": "add",
    }
    assert found.name == "search_memory"
    assert (found.attributes or {})["gen_ai.memory.record.count"] == 1
    assert logged.name == "create_memory"
    assert set(tracing.OPERATIONS.values()) <= ALLOWED


def test_a_verb_inside_another_is_its_child(bank: Bank, spans: InMemorySpanExporter) -> None:
    bank.start_run("run-1", task="build")
    outer, inner = named(spans, "start_run"), named(spans, "brief")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_content_stays_out_unless_the_environment_asks(
    bank: Bank, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.add("The checks want a seed")
    bank.recall(Query(text="seed of the checks"))
    call(bank, "recall", {"query": "seed"})
    assert "seed" not in " ".join(each.to_json() for each in spans.get_finished_spans())
    spans.clear()
    monkeypatch.setenv(tracing.CONTENT, "SPAN_ONLY")
    bank.recall(Query(text="seed of the checks"))
    bank.brief(task="run the checks")
    told = named(spans, "recall").attributes or {}
    assert told["gen_ai.memory.query.text"] == "seed of the checks"
    (record,) = json.loads(str(told["gen_ai.memory.records"]))
    assert record["content"].startswith("The checks want a seed")
    assert {"id", "score"} <= record.keys()
    assert (named(spans, "brief").attributes or {})["gen_ai.memory.query.text"] == "run the checks"


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


def test_every_verb_in_the_table_is_there() -> None:
    import pkgutil
    from importlib import import_module

    from archivist.desks.desk import Desk

    for module in pkgutil.iter_modules(desks.__path__):
        import_module(f"{desks.__name__}.{module.name}")
    everybody: list[type[Any]] = [Bank, *Desk.__subclasses__()]
    kinds = {kind.__name__: kind for kind in everybody}
    for name in tracing.OPERATIONS:
        kind, _, verb = name.partition(".")
        method = getattr(kinds[kind], verb)
        assert isinstance(method.access, tuple), name
        assert method.access[0] in access.Layer


def test_without_a_provider_nothing_is_told_and_all_works(bank: Bank) -> None:
    assert "opentelemetry.trace" in sys.modules
    assert not isinstance(trace.get_tracer_provider(), TracerProvider)
    assert bank.get(bank.add("plain").short_id).summary == "plain"


def test_a_bank_does_not_import_opentelemetry() -> None:
    code = (
        "import sys, tempfile\n"
        "from archivist import Bank\n"
        "with tempfile.TemporaryDirectory() as folder, Bank.open(folder) as bank:\n"
        "    bank.add('x')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
