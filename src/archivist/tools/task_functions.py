"""The functions by which agents see the tasks of a project, work on their own and report how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from archivist.access.rights import Layer
from archivist.edges.views import activity_view, task_view
from archivist.tools.registry import (
    COUNT,
    TEXT,
    Answer,
    Limit,
    Offset,
    Toolset,
    list_schema,
    object_schema,
    page,
    page_schema,
    tool,
)

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Task

Name = Annotated[str, Meta(min_length=1, description="The id of the task.")]
_TASK = {"id": TEXT, "title": TEXT, "state": TEXT}
_ONE = object_schema(**_TASK)


def _view(task: Task, waits_for: tuple[str, ...] = ()) -> Answer:
    """Return a task without what is empty."""
    view = task_view(task, waits_for)
    return {name: value for name, value in view.items() if value not in ("", None, [])}


@tool(Toolset.LAYERS, page_schema("tasks", _TASK), reads=True)
def task_query(
    bank: Bank,
    state: Literal["open", "running", "done", "failed", "cancelled"] | None = None,
    owner: Annotated[str, Meta(description="Only of this agent.")] = "",
    parent: Annotated[str, Meta(description="Only parts of this task.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> Answer:
    """See the tasks: who does them, how they stand, what they wait for, what was decided after a failure."""
    found = bank.tasks.query(state=state, owner=owner, parent=parent, limit=offset + limit + 1)
    waiting = bank.tasks.waits_for(found)
    return page("tasks", found, lambda task: _view(task, waiting[task.id]), offset=offset, limit=limit)


_AGENT = {"agent": TEXT, "tasks": list_schema(**_TASK), "done": COUNT, "failed": COUNT}


@tool(Toolset.LAYERS, page_schema("agents", _AGENT), reads=True)
def task_activity(
    bank: Bank,
    agent: Annotated[str, Meta(description="One agent; without it all.")] = "",
    offset: Offset = 0,
) -> Answer:
    """See what each agent is doing now, and what it did last."""
    found = [activity_view(bank, each) for each in bank.tasks.activity(agent)]
    return page("agents", found, offset=offset)


@tool(Toolset.LAYERS, _ONE, layer=Layer.TASKS)
def task_add(
    bank: Bank,
    title: Annotated[str, Meta(min_length=1, description="What is to be done, in a sentence.")],
    id: Annotated[str, Meta(description="Its name; one is made when missing.")] = "",  # noqa: A002
    parent: Annotated[str, Meta(description="The task that it is a part of.")] = "",
    needs: Annotated[list[str] | None, Meta(description="Tasks that must be done before.")] = None,
    owner: Annotated[str, Meta(description="The agent that does it; agents add tasks for themselves.")] = "",
    approaches: Annotated[list[str] | None, Meta(description="Ways to do it, the preferred first.")] = None,
) -> Answer:
    """Add a task, or change the plan of a known one."""
    made = bank.tasks.add(
        title, id=id, parent=parent, needs=needs or (), owner=owner, approaches=approaches or ()
    )
    return _view(made, bank.tasks.waits_for([made])[made.id])


@tool(Toolset.LAYERS, _ONE, layer=Layer.TASKS)
def task_start(
    bank: Bank,
    id: Name,  # noqa: A002
    approach: Annotated[str, Meta(description="The way that is tried.")] = "",
    agent: Annotated[str, Meta(description="Who does it; you by default.")] = "",
    run: Annotated[str, Meta(description="Your run.")] = "",
) -> Answer:
    """Begin an attempt at a task that is yours, or nobody's."""
    return _view(bank.tasks.start(id, agent=agent, approach=approach, run=run))


@tool(Toolset.LAYERS, _ONE, layer=Layer.TASKS)
def task_finish(
    bank: Bank,
    id: Name,  # noqa: A002
    result: Annotated[str, Meta(description="What came of it, in a sentence.")] = "",
) -> Answer:
    """Complete a task that you work on; the attempt is in the episodic log."""
    return _view(bank.tasks.finish(id, result))


@tool(Toolset.LAYERS, _ONE, layer=Layer.TASKS)
def task_fail(
    bank: Bank,
    id: Name,  # noqa: A002
    error: Annotated[str, Meta(description="What went wrong, in a sentence.")],
    retry: Annotated[
        bool | None, Meta(description="Decide on another attempt; by default its limits do.")
    ] = None,
) -> Answer:
    """End an attempt that failed; the answer says whether the task is tried again, and why."""
    return _view(bank.tasks.fail(id, error, retry=retry))
