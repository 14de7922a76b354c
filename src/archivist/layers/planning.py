"""Which tasks can begin, and by which approach."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from archivist.records.layers import Task
from archivist.records.tier_words import TaskState


def open_needs(task: Task, everything: Mapping[str, Task]) -> tuple[str, ...]:
    """Return the tasks that must be done before a task can begin: what it needs, and its subtasks."""
    below = (each.id for each in everything.values() if each.parent == task.id)
    needed = dict.fromkeys((*task.needs, *below))
    return tuple(
        each for each in needed if each not in everything or everything[each].state is not TaskState.DONE
    )


def open_approaches(task: Task, failed: Collection[str]) -> list[str]:
    """Return the approaches of a task that have not failed, the preferred one first."""
    return [approach for approach in task.approaches if approach not in failed]
