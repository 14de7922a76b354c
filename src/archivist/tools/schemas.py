"""What each tool answers, as a JSON schema: its main fields, so that a host can read an answer by name.

A field is listed when every answer, or every item of a list, has it. Others may be there; a text that is too
long for a page is clipped and stays a text, so lists of words inside an item are left open.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer"}
_NEXT = {"next_offset": {"type": "integer", "description": "Where the next page begins; missing at the end."}}
_ENTRY = {"id": _TEXT, "cycle": _COUNT, "action": _TEXT, "content": _TEXT}
_HIT = {"kind": _TEXT, "id": _TEXT, "name": _TEXT, "text": _TEXT, "score": _NUMBER}
_WRITTEN = {"id": _TEXT}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _optional(schema: Schema, **fields: Schema) -> Schema:
    return {**schema, "properties": {**schema["properties"], **fields}}


def _page(name: str, fields: dict[str, Schema], **beside: Schema) -> Schema:
    items = {"type": "array", "items": _object(**fields)}
    return _optional(_object(**{name: items}, **beside), **_NEXT)


_SHAPES: dict[str, Schema] = {
    "recall_search": _page("entries", {**_ENTRY, "score": _NUMBER}),
    "recall_by_cycle": _page("entries", _ENTRY, total=_COUNT),
    "archival_search": _page("entries", _HIT),
    "archival_insert": _object(source=_TEXT, pieces=_COUNT),
    "core_memory_update": _object(section=_TEXT, tokens=_COUNT),
    "core_memory_append": _object(section=_TEXT, tokens=_COUNT),
    "memory_log": _optional(_object(id=_TEXT, cycle=_COUNT), reflection_due=_TEXT),
    "knowledge_query": _page("knowledge", {**_WRITTEN, "category": _TEXT, "key": _TEXT}),
    "knowledge_put": _optional(
        _object(id=_TEXT, category=_TEXT, key=_TEXT, value=_TEXT, confidence=_NUMBER), conflict=_TEXT
    ),
    "episode_log": _object(id=_TEXT, task=_TEXT, action=_TEXT),
    "episode_query": _page("episodes", _WRITTEN),
    "what_worked": _page(
        "tried", {"id": _TEXT, "task": _TEXT, "approach": _TEXT, "verdict": _TEXT, "score": _NUMBER}
    ),
    "artifact_register": _object(id=_TEXT, path=_TEXT, type=_TEXT, size_bytes=_COUNT, checksum=_TEXT),
    "artifact_query": _page("artifacts", {**_WRITTEN, "path": _TEXT, "type": _TEXT}),
    "brief": _object(text=_TEXT, lessons={"type": "array", "items": _TEXT}),
    "recall": _page("hits", _HIT),
    "lesson_add": _object(id=_TEXT, summary=_TEXT, status=_TEXT, result=_TEXT),
    "lesson_query": _page("lessons", {"id": _TEXT, "summary": _TEXT, "status": _TEXT}),
    "memory_get": _optional(_object(id=_TEXT, kind=_TEXT, text=_TEXT), **_NEXT),
    "proposal_add": _object(id=_TEXT, status=_TEXT, diff=_TEXT),
    "retrieve_plans": _page("plans", {"name": _TEXT, "description": _TEXT}, total=_COUNT),
    "retrieve_overview": _page("overviews", {"scope": _TEXT, "tier": _TEXT}, total=_COUNT),
    "retrieve_learnings": _optional(
        _object(
            decisions={"type": "array", "items": _object(content=_TEXT)},
            lessons={"type": "array", "items": _object(content=_TEXT)},
            total=_COUNT,
        ),
        **_NEXT,
    ),
    "save_memory": _object(items={"type": "array", "items": _object(result=_TEXT, kind=_TEXT)}),
}


def answer_schema(name: str) -> Schema:
    """Return the JSON schema of what a tool answers; any object for a tool that names no fields."""
    return _SHAPES.get(name, {"type": "object"})
