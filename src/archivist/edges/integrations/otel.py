"""OpenTelemetry spans of what a bank does, by the GenAI conventions for memory.

`access.rights` loads this module when a checked method is called in a program that has imported the
OpenTelemetry API. What is remembered stays out of the spans unless the environment asks for content as
everywhere in GenAI: `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true` (or `span_only`,
`span_and_event`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from opentelemetry import trace

from archivist.access.rights import Verb

T = TypeVar("T")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT_ON = frozenset({"true", "1", "span_only", "span_and_event"})
SEARCH = "search_memory"
# The first word of a writing method's name → its operation; any other word is an upsert.
_OPERATIONS = {
    **dict.fromkeys(("add", "create", "log", "propose", "register"), "create_memory"),
    **dict.fromkeys(("clear", "drop", "erase", "pop", "prune", "remove"), "delete_memory"),
    **dict.fromkeys(
        (
            "accept", "append", "approve", "archive", "audit", "change", "close", "decay", "edit", "forget",
            "note", "record", "refresh", "reject", "rename", "take", "undo", "update",
        ),
        "update_memory",
    ),
}  # fmt: skip
# The fields of results that hold the records that were found or written, and of wrappers that hold one.
_FOUND_FIELDS = ("hits", "chosen")
_WRITTEN_FIELDS = ("episodes", "met", "created")
_RECORD_FIELDS = ("lesson", "entry", "fact", "hit", "item")
_TEXT_FIELDS = ("text", "summary", "value", "content", "action", "task")
_QUERY_ARGUMENTS = ("query", "text", "task", "error")


def operation_of(verb: Verb, method: str) -> str:
    """Return the conventions' name of an operation: to read is to search, also by id."""
    return SEARCH if verb is Verb.READ else _OPERATIONS.get(method.partition("_")[0], "upsert_memory")


def call_in_span(
    work: Callable[[], T],
    verb: Verb,
    method: str,
    owner: object,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> T:
    """Call a method of a bank or service in a span of its own."""
    operation = operation_of(verb, method)
    # The exception is not recorded, because its message may be content.
    span_context = _tracer().start_as_current_span(
        operation, kind=trace.SpanKind.INTERNAL, record_exception=False, set_status_on_exception=False
    )
    with span_context as span:
        if not span.is_recording():
            return work()
        bank: Any = getattr(owner, "_bank", owner)
        span.set_attribute("gen_ai.operation.name", operation)
        span.set_attribute("gen_ai.memory.store.id", str(bank.path))
        named = method if bank is owner else f"{type(owner).__name__.lower()}.{method}"
        span.set_attribute("archivist.verb", named)
        if bank.actor.name:
            span.set_attribute("gen_ai.agent.name", bank.actor.name)
        has_content = os.environ.get(CONTENT, "").strip().lower() in _CONTENT_ON
        if has_content and operation == SEARCH:
            # The query is one of the first arguments, or its field `text`.
            given = (*args[:2], *(kwargs.get(name) for name in _QUERY_ARGUMENTS))
            if query := _first_text(getattr(value, "text", value) for value in given):
                span.set_attribute("gen_ai.memory.query.text", query)
        try:
            result = work()
        except BaseException as error:
            span.set_attribute("error.type", getattr(error, "code", "") or type(error).__qualname__)
            span.set_status(trace.Status(trace.StatusCode.ERROR))
            raise
        if method == "start_run":
            # The result is the run's brief, but the record is the run.
            span.set_attribute("gen_ai.memory.record.id", str(args[0] if args else kwargs["run"]))
            return result
        records = _result_records(result, _FOUND_FIELDS if operation == SEARCH else _WRITTEN_FIELDS)
        if records is not None:
            span.set_attribute("gen_ai.memory.record.count", len(records))
            if len(records) == 1 and (record_id := _record_id(records[0])):
                span.set_attribute("gen_ai.memory.record.id", record_id)
            if has_content:
                contents = [_record_content(record) for record in records]
                span.set_attribute("gen_ai.memory.records", json.dumps(contents, ensure_ascii=False))
        return result


@cache
def _tracer() -> trace.Tracer:
    from archivist import __version__

    return trace.get_tracer("archivist", __version__)


def _first_text(values: Iterable[object]) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")


def _result_records(result: object, fields: Sequence[str]) -> list[object] | None:
    """Return the records in a result; None when it has none, such as a number or a text."""
    for name in fields:
        held = getattr(result, name, None)
        if isinstance(held, tuple | list):
            return [_unwrap(item) for item in held]
    if isinstance(result, list):
        return [record for record in map(_unwrap, result) if record is not None]
    if type(result) is tuple:
        # A record that comes with its kind.
        return [item for item in result if _record_id(item)]
    record = _unwrap(result)
    return [record] if _record_id(record) else None


def _unwrap(item: object) -> object:
    inner = (getattr(item, name, None) for name in _RECORD_FIELDS)
    return next((record for record in inner if _record_id(record)), item)


def _record_id(record: object) -> str:
    name = getattr(record, "id", None)
    return name if isinstance(name, str) else ""


def _record_content(record: object) -> dict[str, object]:
    texts = (getattr(record, name, None) for name in _TEXT_FIELDS)
    content: dict[str, object] = {"content": _first_text(texts)}
    if record_id := _record_id(record):
        content["id"] = record_id
    score = getattr(record, "score", None)
    return {**content, "score": score} if isinstance(score, float) else content
