"""Tell OpenTelemetry what a bank does, by the GenAI conventions for memory, where a program uses it.

Nothing is imported: who traces has imported the API, and whoever has not pays for one look into a table.
What is remembered stays out of the spans unless the environment asks for content as everywhere in GenAI:
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true` (or `span_only`, `span_and_event`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_API = "opentelemetry.trace"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT_ON = frozenset({"true", "1", "span_only", "span_and_event"})
SEARCH = "search_memory"

# The verbs that are told, by the operation that the conventions call them: whatever finds, reads or changes
# what is remembered. To read by name is to search, too. Looking after the bank itself is none of them.
OPERATIONS = {
    "Recall.recall": SEARCH,
    "Ledger.find": SEARCH,
    "Lessons.get": SEARCH,
    "Runs.episode": SEARCH,
    "Runs.episodes": SEARCH,
    "Lessons.query": SEARCH,
    "Briefs.brief": SEARCH,
    "Briefs.heal": SEARCH,
    "Lessons.add": "create_memory",
    "Lessons.suggest": "upsert_memory",
    "Lessons.edit": "update_memory",
    "Lessons.approve": "update_memory",
    "Lessons.forget": "update_memory",
    "Lessons.archive": "update_memory",
    "Ledger.undo": "update_memory",
    "Lessons.record_usage": "update_memory",
    "Runs.capture": "upsert_memory",
    "Runs.capture_file": "upsert_memory",
    "Reflections.extract": "upsert_memory",
    "Reflections.reflect": "upsert_memory",
    "Reflections.maybe_reflect": "upsert_memory",
    "Runs.start_run": "upsert_memory",
    "Runs.finish_run": "upsert_memory",
    "Runs.finish": "upsert_memory",
    "Lessons.decay": "update_memory",
    "Audits.audit": "update_memory",
    "Exchange.import_files": "upsert_memory",
    "Erasure.erase": "delete_memory",
    "Erasure.prune": "delete_memory",
    "Knowledge.put": "upsert_memory",
    "Knowledge.query": SEARCH,
    "Knowledge.get": SEARCH,
    "Knowledge.find": SEARCH,
    "Knowledge.remove": "delete_memory",
    "Attempts.log": "create_memory",
    "Attempts.query": SEARCH,
    "Attempts.similar": SEARCH,
    "Attempts.list_approaches": SEARCH,
    "Artifacts.register": "create_memory",
    "Artifacts.query": SEARCH,
    "Artifacts.get": SEARCH,
    "Artifacts.remove": "delete_memory",
    "Core.update": "update_memory",
    "Core.append": "update_memory",
    "Core.close_thread": "update_memory",
    "Core.take_out": "update_memory",
    "Core.view": SEARCH,
    "Stream.log": "create_memory",
    "Stream.search": SEARCH,
    "Stream.by_cycle": SEARCH,
    "Stream.recent": SEARCH,
    "Stream.get": SEARCH,
    "Stream.edit": "update_memory",
    "Stream.remove": "delete_memory",
    "Stream.reflect": "upsert_memory",
    "Documents.insert": "upsert_memory",
    "Documents.search": SEARCH,
    "Documents.read": SEARCH,
    "Documents.remove": "delete_memory",
    "WorkingMemory.update": "update_memory",
    "WorkingMemory.note": "update_memory",
    "WorkingMemory.get": SEARCH,
    "WorkingMemory.clear": "delete_memory",
    "WorkspaceService.retrieve_plans": SEARCH,
    "WorkspaceService.retrieve_plan": SEARCH,
    "WorkspaceService.retrieve_overview": SEARCH,
    "WorkspaceService.retrieve_learnings": SEARCH,
    "WorkspaceService.text_at": SEARCH,
    "WorkspaceService.save_memory": "upsert_memory",
    "WorkspaceSearch.search": SEARCH,
    "Proposals.propose": "create_memory",
    "Items.put": "upsert_memory",
    "Items.drop": "delete_memory",
    "Items.get": SEARCH,
    "Items.list_below": SEARCH,
    "Items.search": SEARCH,
    "MemoryFiles.create": "create_memory",
    "MemoryFiles.change": "update_memory",
    "MemoryFiles.rename": "update_memory",
    "MemoryFiles.remove": "delete_memory",
    "MemoryFiles.files": SEARCH,
    "MemoryFiles.read": SEARCH,
    "Conversations.add": "create_memory",
    "Conversations.turns": SEARCH,
    "Conversations.pop": "delete_memory",
    "Conversations.clear": "delete_memory",
    "Conversations.finish": "upsert_memory",
}
# Verbs whose record is the one that their first argument names: a run is opened, and lessons come back.
_NAMING = frozenset({"start_run"})
# Where answers keep what was found or made, and what records say.
_FOUND = ("hits", "chosen")
_MADE = ("episodes", "met", "created")
_INNER = ("lesson", "entry", "fact", "hit", "item")
_SAID = ("text", "summary", "value", "content", "action", "task")
_ASKED = ("query", "text", "task", "error")


def trace_method(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Put a method into a span of its own whenever it is called in a program that traces."""
    operation = OPERATIONS.get(method.__qualname__)
    if operation is None:
        return method
    modules = sys.modules

    @wraps(method)
    def call_traced(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if _API not in modules:
            return method(self, *args, **kwargs)
        return _call_in_span(operation, method, self, *args, **kwargs)

    return call_traced


def _call_in_span(
    operation: str, method: Callable[Concatenate[S, P], T], owner: S, *args: P.args, **kwargs: P.kwargs
) -> T:
    api: Any = sys.modules[_API]
    # An exception's own words may be somebody's content, so that it is not recorded whole.
    span_of = _tracer().start_as_current_span(
        operation, kind=api.SpanKind.INTERNAL, record_exception=False, set_status_on_exception=False
    )
    with span_of as span:
        if not span.is_recording():
            return method(owner, *args, **kwargs)
        has_content = os.environ.get(CONTENT, "").strip().lower() in _CONTENT_ON
        span.set_attributes(_span_attributes(operation, method.__name__, owner))
        if has_content and operation == SEARCH and (asked := _query_text(args, kwargs)):
            span.set_attribute("gen_ai.memory.query.text", asked)
        try:
            result = method(owner, *args, **kwargs)
        except BaseException as error:
            span.set_attribute("error.type", getattr(error, "code", "") or type(error).__qualname__)
            span.set_status(api.Status(api.StatusCode.ERROR))
            raise
        if method.__name__ in _NAMING:
            span.set_attribute("gen_ai.memory.record.id", str(args[0] if args else kwargs["run"]))
            return result
        holders = _FOUND if operation == SEARCH else _MADE
        span.set_attributes(_result_attributes(_result_records(result, holders), has_content=has_content))
        return result


@cache
def _tracer() -> Any:
    from archivist import __version__

    return sys.modules[_API].get_tracer("archivist", __version__)


def _span_attributes(operation: str, verb: str, owner: object) -> dict[str, str]:
    bank: Any = getattr(owner, "_bank", owner)
    about = {
        "gen_ai.operation.name": operation,
        "gen_ai.memory.store.id": str(bank.path),
        "archivist.verb": verb if bank is owner else f"{type(owner).__name__.lower()}.{verb}",
    }
    return {**about, "gen_ai.agent.name": bank.actor.name} if bank.actor.name else about


def _query_text(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the words of a question, wherever the verb takes them."""
    for each in (*args[:2], *(kwargs.get(name) for name in _ASKED)):
        words = each if isinstance(each, str) else getattr(each, "text", None)
        if isinstance(words, str) and words:
            return words
    return ""


def _result_attributes(found: list[object] | None, *, has_content: bool) -> dict[str, str | int]:
    """Return what there is to tell of an answer: how many records, or which one."""
    if found is None:
        return {}
    told: dict[str, str | int] = {"gen_ai.memory.record.count": len(found)}
    if len(found) == 1 and (name := _record_id(found[0])):
        told["gen_ai.memory.record.id"] = name
    if has_content:
        import json

        told["gen_ai.memory.records"] = json.dumps(
            [_record_content(each) for each in found], ensure_ascii=False
        )
    return told


def _result_records(result: object, holders: Sequence[str]) -> list[object] | None:
    for holder in holders:
        held = getattr(result, holder, None)
        if isinstance(held, tuple | list):
            return list(_unwrap_records(held))
    if isinstance(result, list):
        return [each for each in _unwrap_records(result) if each is not None]
    if type(result) is tuple:
        # A record that comes with its kind.
        return [each for each in result if _record_id(each)]
    inner = next(iter(_unwrap_records([result])))
    return [inner] if _record_id(inner) else None


def _unwrap_records(items: Sequence[object]) -> Iterator[object]:
    """Yield the records themselves out of what they come in."""
    for each in items:
        wrapped = (getattr(each, name, None) for name in _INNER)
        yield next((record for record in wrapped if _record_id(record)), each)


def _record_id(record: object) -> str:
    name = getattr(record, "id", None)
    return name if isinstance(name, str) else ""


def _record_content(record: object) -> dict[str, object]:
    said = next((text for name in _SAID if isinstance(text := getattr(record, name, None), str) and text), "")
    told: dict[str, object] = {"content": said}
    if name := _record_id(record):
        told["id"] = name
    score = getattr(record, "score", None)
    return {**told, "score": score} if isinstance(score, float) else told
