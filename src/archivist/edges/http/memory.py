"""The routes of tasks, knowledge, episodes and artifacts, and of the workspace's markdown."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from archivist.audit.analytics import GroupBy, PeriodUnit
from archivist.bank import Bank
from archivist.edges import views
from archivist.edges.http import answers, shapes
from archivist.edges.http.answers import Asked
from archivist.edges.http.bodies import BankRoute, set_lane
from archivist.edges.server.banks import PoolLane
from archivist.edges.views import View, attempt_view, conflict_view, table_view, task_view
from archivist.layers.artifacts_service import NEWEST as NEWEST_ARTIFACT
from archivist.layers.attempts_service import NEWEST as NEWEST_ATTEMPT
from archivist.layers.knowledge_service import BY_NAME
from archivist.layers.tasks_service import OLDEST
from archivist.records import Action, ArtifactType, Task, TaskState
from archivist.records.layers import NAME_CHARACTERS
from archivist.workspace.documents import learnings_view, overviews_view, plan_view, plans_view, unread_view
from archivist.workspace.learnings import Learnings, newest_first
from archivist.workspace.save import MAX_CHARACTERS, SaveResult, item_from
from archivist.workspace.topology import FileKind

router = APIRouter(prefix="/api/memory", tags=["memory"], route_class=BankRoute)
workspace = APIRouter(prefix="/api/workspace", tags=["workspace"], route_class=BankRoute)


class FactBody(shapes.Body):
    """A fact under a category and key."""

    category: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, pattern=r"^[^/]*[^/\s][^/]*$")]
    key: shapes.Title
    value: shapes.Said
    project: shapes.Word = ""
    source: shapes.Word | None = None
    confidence: shapes.Share | None = None
    tags: shapes.Words = ()


class AttemptBody(shapes.Body):
    """An attempt at a task, and its outcome."""

    task: Annotated[shapes.Title, Field(alias="task_id")]
    agent: Annotated[shapes.Title, Field(alias="agent_id")]
    action: Annotated[Action, shapes.Enumerated]
    approach: shapes.Said
    outcome: shapes.Note | None = None
    duration_ms: shapes.Count | None = None
    tokens_in: shapes.Count | None = None
    tokens_out: shapes.Count | None = None
    provider: shapes.Word = ""
    run: shapes.Word = ""
    id: shapes.Word = ""


class ArtifactBody(shapes.Body):
    """A file of the project that a task produced."""

    path: Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"\S")]
    task: Annotated[shapes.Title, Field(alias="task_id")]
    agent: Annotated[shapes.Word, Field(alias="agent_id")] = ""
    type: Annotated[ArtifactType, shapes.Enumerated] = ArtifactType.FILE
    description: shapes.Note | None = None
    run: shapes.Word = ""
    size_bytes: Annotated[shapes.Count | None, Field(description="Refused when the file has another.")] = None
    checksum: Annotated[
        str | None,
        Field(pattern=r"^[0-9a-fA-F]{64}$", description="SHA-256; refused when the file has another."),
    ] = None


class TaskBody(shapes.Body):
    """Something to be done; a known id is planned anew."""

    title: shapes.Planned
    id: shapes.Word = ""
    parent: shapes.Word = ""
    needs: shapes.Words = ()
    owner: shapes.Word = ""
    approaches: shapes.Words = ()
    max_attempts: Annotated[int | None, Field(ge=1, le=100)] = None


class SaveItem(shapes.Body):
    """A decision, a lesson or a plan's status; fields that are left out are derived from the text."""

    text: Annotated[str | None, Field(max_length=MAX_CHARACTERS)] = None
    kind: Annotated[str | None, Field(description="decision, lesson or plan_status.")] = None
    title: str | None = None
    category: str | None = None
    tags: Annotated[
        list[str] | str | None, Field(description="A list, or a text with commas in between.")
    ] = None
    date: Annotated[str | None, Field(description="YYYY-MM-DD.")] = None
    scope: str | None = None
    plan: str | None = None
    status: str | None = None


@router.get("/knowledge", response_model=answers.page_model("knowledge", answers.FactRow))
def knowledge(
    bank: Bank,
    asked: Asked,
    project: shapes.Only = "",
    category: shapes.Only = "",
    key: shapes.Only = "",
    text: shapes.Matched = "",
    min_confidence: Annotated[shapes.Share, Query()] = 0.0,
) -> View:
    """List facts: by category and key, or the best matches of a text first."""
    find = partial(
        bank.knowledge.query, category=category, key=key, project=project, min_confidence=min_confidence
    )
    if text.strip():
        page = asked.page_by_rank(lambda limit: find(text=text, limit=limit), lambda fact: fact.id)
    else:
        page = asked.page_by_order(find, BY_NAME)
    return page.view("knowledge", table_view)


@router.post("/knowledge", response_model=answers.FactPutOut)
def put_knowledge(bank: Bank, fact: FactBody) -> View:
    """Put a fact under a category and key; of two sources the more confident one stands, else the newer."""
    kept = bank.knowledge.put(**fact.provided_fields())
    conflict = conflict_view(kept.conflict) if kept.conflict else None
    return {"knowledge": table_view(kept.fact), "changed": kept.is_changed, "conflict": conflict}


@router.delete("/knowledge/{id:path}", response_model=answers.item_model("knowledge", answers.FactRow))
def remove_knowledge(bank: Bank, id: shapes.Id, project: shapes.Only = "") -> View:
    """Remove a fact; its history stays."""
    return {"knowledge": table_view(bank.knowledge.remove(id, project=project))}


@router.get("/conflicts", response_model=answers.page_model("conflicts", answers.ConflictRow))
def conflicts(
    bank: Bank,
    asked: Asked,
    fact: Annotated[str, Query(max_length=400, description="Only of this fact: category/key.")] = "",
    all: Annotated[bool, Query(description="Also decided ones.")] = False,
    project: shapes.Only = "",
) -> View:
    """List contradictions between sources of a fact, the oldest first."""
    found = bank.knowledge.conflicts(fact, with_decided=all, project=project)
    return asked.page_of(found, lambda each: each.id).view("conflicts", conflict_view)


@router.post("/conflicts/{id:path}", response_model=answers.item_model("conflict", answers.ConflictRow))
def decide_conflict(
    bank: Bank, id: shapes.Id, decision: Literal["uphold", "reverse"], project: shapes.Only = ""
) -> View:
    """Decide a contradiction: uphold the value that was kept, or put the other one in its place."""
    decided = bank.knowledge.decide(id, for_lost=decision == "reverse", project=project)
    return {"conflict": conflict_view(decided)}


@router.get("/analytics", response_model=answers.AnalyticsOut)
def analytics(
    bank: Bank,
    by: Annotated[GroupBy, Query()] = GroupBy.APPROACH,
    since: shapes.Since = None,
    until: shapes.Until = None,
    step: Annotated[PeriodUnit | None, Query()] = None,
) -> View:
    """Return success rates of attempts by approach, agent, provider or task, also over time."""
    return views.analytics_view(bank.attempts.analytics(by=by, since=since, until=until, step=step))


@router.get("/episodes", response_model=answers.page_model("episodes", answers.AttemptRow))
def episodes(
    bank: Bank,
    asked: Asked,
    task_id: shapes.Only = "",
    agent_id: shapes.Only = "",
    action: Annotated[Action | None, Query()] = None,
    provider: shapes.Only = "",
) -> View:
    """List attempts, the latest first: for a task, or by an agent."""
    wanted = {"task": task_id, "agent": agent_id, "action": action, "provider": provider}
    page = asked.page_by_order(bank.attempts.query, NEWEST_ATTEMPT, **wanted)
    return page.view("episodes", partial(attempt_view, bank))


@router.post("/episodes", status_code=201, response_model=answers.item_model("episode", answers.AttemptRow))
def log_episode(bank: Bank, attempt: AttemptBody) -> View:
    """Log an attempt at a task; with an id, the same again changes nothing."""
    return {"episode": attempt_view(bank, bank.attempts.log(**attempt.provided_fields()))}


@router.get("/artifacts", response_model=answers.page_model("artifacts", answers.ArtifactRow))
def artifacts(
    bank: Bank,
    asked: Asked,
    task_id: shapes.Only = "",
    agent_id: shapes.Only = "",
    type: Annotated[ArtifactType | None, Query()] = None,
    path: Annotated[str, Query(max_length=1_000)] = "",
) -> View:
    """List artifacts, the latest first: for a task, or of a type."""
    wanted = {"task": task_id, "agent": agent_id, "type": type, "path": path}
    return asked.page_by_order(bank.artifacts.query, NEWEST_ARTIFACT, **wanted).view("artifacts", table_view)


@router.post(
    "/artifacts", status_code=201, response_model=answers.item_model("artifact", answers.ArtifactRow)
)
def register_artifact(bank: Bank, artifact: ArtifactBody) -> View:
    """Register a file of the project with its size and SHA-256 as of now."""
    return {"artifact": table_view(bank.artifacts.register(**artifact.provided_fields()))}


@router.get("/artifacts/verify", response_model=answers.page_model("artifacts", answers.ArtifactCheckRow))
def verify_artifacts(
    bank: Bank,
    asked: Asked,
    id: Annotated[tuple[str, ...], Query(max_length=100, description="Only these.")] = (),
) -> View:
    """Compare files with what was registered: the latest of each path, or the named ones."""
    found = bank.artifacts.verify(id)
    page = asked.page_of(found, lambda each: each.artifact.id)
    return page.view("artifacts", views.check_view)


@router.delete("/artifacts/{id:path}", response_model=answers.item_model("artifact", answers.ArtifactRow))
def remove_artifact(bank: Bank, id: shapes.Id) -> View:
    """Remove an artifact from the register; the file stays."""
    return {"artifact": table_view(bank.artifacts.remove(id))}


_ONE_TASK = answers.item_model("task", answers.TaskRow)


def _one_task(bank: Bank, task: Task) -> View:
    return {"task": task_view(task, bank.tasks.waits_for([task])[task.id])}


@router.get("/tasks", response_model=answers.page_model("tasks", answers.TaskRow))
def tasks(
    bank: Bank,
    asked: Asked,
    state: Annotated[TaskState | None, Query()] = None,
    owner: shapes.Only = "",
    parent: shapes.Only = "",
) -> View:
    """List tasks, the oldest first: by state, owner or parent."""
    page = asked.page_by_order(bank.tasks.query, OLDEST, state=state, owner=owner, parent=parent)
    waiting = bank.tasks.waits_for(page.items)
    return page.view("tasks", lambda task: task_view(task, waiting[task.id]))


@router.post("/tasks", status_code=201, response_model=_ONE_TASK)
def add_task(bank: Bank, task: TaskBody) -> View:
    """Add a task, or plan a known one anew."""
    return _one_task(bank, bank.tasks.add(**task.provided_fields()))


@router.get("/tasks/activity", response_model=answers.page_model("agents", answers.ExtensibleOut))
def activity(bank: Bank, asked: Asked, agent_id: shapes.Only = "") -> View:
    """Say what each agent is doing and did last, the busy ones first."""
    page = asked.page_of(bank.tasks.activity(agent_id), lambda each: each.agent)
    return page.view("agents", partial(views.activity_view, bank))


@router.get("/tasks/{id:path}", response_model=_ONE_TASK)
def task(bank: Bank, id: shapes.Id) -> View:
    """Return one task, with what it waits for."""
    return _one_task(bank, bank.tasks.get(id))


@router.post("/tasks/{id:path}/start", response_model=_ONE_TASK)
def start_task(
    bank: Bank, id: shapes.Id, agent: shapes.Word = "", approach: shapes.Note = "", run: shapes.Word = ""
) -> View:
    """Begin an attempt at a task."""
    return _one_task(bank, bank.tasks.start(id, agent=agent, approach=approach, run=run))


@router.post("/tasks/{id:path}/finish", response_model=_ONE_TASK)
def finish_task(bank: Bank, id: shapes.Id, result: shapes.Note = "") -> View:
    """Complete a running task."""
    return _one_task(bank, bank.tasks.finish(id, result))


@router.post("/tasks/{id:path}/fail", response_model=_ONE_TASK)
def fail_task(bank: Bank, id: shapes.Id, error: shapes.Note = "", retry: bool | None = None) -> View:
    """End an attempt that failed; without `retry` the task's limits decide whether it is tried again."""
    return _one_task(bank, bank.tasks.fail(id, error, retry=retry))


@router.post("/tasks/{id:path}/reopen", response_model=_ONE_TASK)
def reopen_task(bank: Bank, id: shapes.Id, reason: shapes.Note = "") -> View:
    """Open an ended or abandoned task again."""
    return _one_task(bank, bank.tasks.reopen(id, reason))


@router.post("/tasks/{id:path}/cancel", response_model=_ONE_TASK)
def cancel_task(bank: Bank, id: shapes.Id, reason: shapes.Note = "") -> View:
    """End a task that is not to be done."""
    return _one_task(bank, bank.tasks.cancel(id, reason))


@router.delete("/tasks/{id:path}", response_model=_ONE_TASK)
def remove_task(bank: Bank, id: shapes.Id) -> View:
    """Remove a task; its history and its attempts stay."""
    return _one_task(bank, bank.tasks.remove(id))


@workspace.get("/plans", response_model=answers.page_model("plans", answers.ExtensibleOut))
def plans(
    bank: Bank, asked: Asked, scope: shapes.Only = "", status: shapes.Tags = (), tag: shapes.Tags = ()
) -> View:
    """List the plans of a scope, as their front matter tells."""
    found = bank.workspace.retrieve_plans(scope, status=status, tags=tag)
    page = asked.page_of(found, lambda plan: plan.path)
    return {**plans_view(page.items), "next": page.next}


@workspace.get("/plan", response_model=answers.item_model("plan", answers.ExtensibleOut))
def plan(
    bank: Bank,
    name: Annotated[str, Query(min_length=1, max_length=400, description="Its id, path or name.")],
    scope: shapes.Only = "",
) -> View:
    """Return one plan in full."""
    detail = bank.workspace.retrieve_plan(name, scope)
    return {"plan": {**plan_view(detail.plan), "content": detail.content}}


@workspace.get("/overview", response_model=answers.page_model("overviews", answers.ExtensibleOut))
def overview(
    bank: Bank,
    asked: Asked,
    scope: shapes.Only = "",
    full: Annotated[bool, Query(description="Every overview in full, not only the one asked for.")] = False,
) -> View:
    """Say what a scope is about: it in full, what lies below as abstracts."""
    found = bank.workspace.retrieve_overview(scope, is_full=full)
    page = asked.page_of(found, lambda each: each.overview.path)
    return {**overviews_view(page.items), "next": page.next}


@workspace.get("/learnings")
def learnings(
    bank: Bank,
    asked: Asked,
    scope: shapes.Only = "",
    tag: shapes.Tags = (),
    category: shapes.Only = "",
    all: Annotated[bool, Query(description="Also those that were superseded.")] = False,
) -> View:
    """Return the decisions and lessons of a scope, the newest first."""
    found = bank.workspace.retrieve_learnings(scope, tags=tag, category=category, with_superseded=all)
    both = newest_first(found)
    page = asked.page_of(both, lambda each: f"{each.path} {each.id}")
    decisions = [each for each in page.items if each.kind is FileKind.DECISIONS]
    shown = Learnings(decisions, [each for each in page.items if each.kind is not FileKind.DECISIONS])
    totals = {"decisions": len(found.decisions), "lessons": len(found.lessons)}
    unread = unread_view(bank.workspace.problems)
    return {**learnings_view(shown), "total": len(both), "totals": totals, **unread, "next": page.next}


@workspace.post("/save")
@set_lane(lambda **_: PoolLane.LOG)
def save(
    bank: Bank,
    items: Annotated[list[SaveItem], Field(min_length=1, max_length=1_000)],
    scope: shapes.Word = "",
    on_conflict: Literal["refuse", "supersede", "keep_both"] = "refuse",
    create: bool = False,
) -> View:
    """Write decisions, lessons and plans' statuses, unless they are there already or contradict what is."""
    given = [item_from(shapes.clean_json(each.model_dump(exclude_unset=True))) for each in items]
    done = bank.workspace.save_memory(given, scope, on_conflict=on_conflict, create=create)
    counts = {result.value: sum(each.result is result for each in done) for result in SaveResult}
    rows = [{**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in done]
    return {**counts, "items": rows}
