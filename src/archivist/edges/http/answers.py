"""The shapes of answers, as the OpenAPI document tells them; a test compares the two."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, create_model


class ExtensibleOut(BaseModel):
    """An answer that may say more than is listed."""

    model_config = ConfigDict(extra="allow")


def _shape(name: str, doc: str, /, **fields: Any) -> Any:
    """Return the model of an answer that always has these fields."""
    required: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=ExtensibleOut, __doc__=doc or None, **required)


def _list_of(item: Any) -> Any:
    return list[item]


_TEXT = str | None
_COUNT = int | None

ProblemOut = _shape(
    "ProblemOut", "What went wrong.", type=str, title=str, status=int, detail=str, code=str, hint=str
)

# Rows of the documented tables.
FactRow = _shape(
    "FactRow", "A row of the knowledge table.",
    id=str, project=str, category=str, key=str, value=str, source=str, confidence=float, created_at=str,
    updated_at=str,
)  # fmt: skip
AttemptRow = _shape(
    "AttemptRow", "A row of the episodes table.",
    id=str, task_id=str, agent_id=str, action=str, approach=str, outcome=_TEXT, duration_ms=_COUNT,
    tokens_in=_COUNT, tokens_out=_COUNT, created_at=_TEXT,
)  # fmt: skip
ArtifactRow = _shape(
    "ArtifactRow", "A row of the artifacts table.",
    id=str, task_id=str, agent_id=str, type=str, path=str, description=str, size_bytes=int, checksum=str,
    created_at=str,
)  # fmt: skip
FactPutOut = _shape(
    "FactPutOut",
    "A fact that was stated, whether it changed anything, and what it contradicts.",
    knowledge=FactRow,
    changed=bool,
    conflict=dict[str, Any] | None,
)

# Lessons and runs.
LessonOut = _shape(
    "LessonOut", "A lesson with its counts.",
    id=str, uid=str, summary=str, rule=str, type=str, category=str, tags=list[str], importance=float,
    frequency=int, status=str, quarantined_for=str,
)  # fmt: skip
RunOut = _shape("RunOut", "A run.", run=str, task=str, project=str, status=str, started=_TEXT, finished=_TEXT)
BriefOut = _shape(
    "BriefOut", "A brief.",
    text=str, lessons=_list_of(LessonOut), brief=str, withheld=list[str], stale=dict[str, str],
)  # fmt: skip
HitOut = _shape("HitOut", "A search result.", id=str, uid=str, kind=str, text=str, score=float, time=_TEXT)
ChangeOut = _shape(
    "ChangeOut", "A change of a record.",
    seq=int, time=str, actor=str, verb=str, kind=str, change=str, after=dict[str, Any] | None,
)  # fmt: skip
CaptureOut = _shape(
    "CaptureOut", "What was read from a log.",
    file=str, runs=_list_of(RunOut), events=int, skipped=int, unchanged=bool,
)  # fmt: skip
LearningOut = _shape("LearningOut", "What was learnt.", created=int, updated=int, lessons=_list_of(LessonOut))

# Tiers.
EntryOut = _shape(
    "EntryOut", "An entry of the stream.",
    id=str, cycle=int, timestamp=str, role=str, action=str, importance=int, type=str, content=str,
)  # fmt: skip
PieceOut = _shape(
    "PieceOut", "A piece of an archived text.", id=str, source=str, position=int, type=str, text=str
)
SourceTextOut = _shape(
    "SourceTextOut", "A text of the archive.", source=str, type=str, pieces=int, tokens=int, date=_TEXT
)
ProposalOut = _shape(
    "ProposalOut", "A change of playbook or rules that needs approval.",
    id=str, uid=str, section=str, after=str, reason=str, status=str,
)  # fmt: skip
WorkingOut = _shape(
    "WorkingOut", "The working memory of an agent.",
    id=str, plan=str, constraints=list[str], context=dict[str, Any], scratchpad=list[str],
)  # fmt: skip
CoreOut = _shape("CoreOut", "What a role has in its context.", role=str, text=str, tokens=int, budget=int)
BlockOut = _shape("BlockOut", "A block of core memory.", id=str, section=str, content=dict[str, Any])


def page_response(name: str, item: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of a list: some items, and the cursor of the rest."""
    title = f"{name.title().replace('_', '')}Page"
    return model_response(_shape(title, "", **{name: _list_of(item), "next": _TEXT}), status)


def item_response(name: str, item: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of one thing under a name."""
    return model_response(_shape(f"One{name.title().replace('_', '')}", "", **{name: item}), status)


def model_response(model: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of this shape."""
    return {status: {"model": model}}
