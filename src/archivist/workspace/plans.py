"""Plans: what was done and what is planned, from their front matter alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from archivist.errors import InputError, NotFoundError
from archivist.workspace import front_matter
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import WorkspaceFile, WorkspaceScope


class PlanStatus(StrEnum):
    """How far a plan is."""

    NEW = "new"
    IN_PROGRESS = "in_progress"
    PARTIAL = "partial"
    DONE = "done"
    ABANDONED = "abandoned"


class Plan(NamedTuple):
    """A plan's front matter as it was written, and where it stands; what is missing is empty.

    `path` and `id` are for following up, and no filter looks at them.
    """

    name: str
    description: str
    status: str
    created: str
    updated: str
    tags: tuple[str, ...]
    scope: WorkspaceScope
    path: str
    id: str
    problems: tuple[LintProblem, ...] = ()


def from_text(text: str, place: WorkspaceFile) -> Plan:
    """Read a plan; one without front matter is known by its file's name and has no status."""
    return plan_from(front_matter.read(text, place.name), place)


def plan_from(read: FrontMatter, place: WorkspaceFile) -> Plan:
    """Return the plan that front matter tells of."""
    values = read.values
    return Plan(
        field_text(values.get("name")) or title_from(place.stem),
        field_text(values.get("description")),
        field_text(values.get("status")),
        field_text(values.get("created")),
        field_text(values.get("updated")),
        front_matter.words_of(values.get("tags")),
        place.scope,
        place.name,
        place.stem,
        read.problems,
    )


def field_text(value: object) -> str:
    """Return a field as one line of text: a day as YYYY-MM-DD, nothing for what is no single value."""
    if isinstance(value, str):
        return " ".join(value.split())
    if value is None or isinstance(value, list | dict):
        return ""
    day = front_matter.day_of(value)
    return day.isoformat() if day else " ".join(str(value).split())


def title_from(stem: str) -> str:
    """Return words for a file's name, without the date before it."""
    head, _, rest = stem.partition("-")
    bare = rest if head.isdigit() and rest else stem
    return bare.replace("-", " ").replace("_", " ").strip().capitalize() or stem


def select(plans: Iterable[Plan], *, status: Sequence[str] = (), tags: Sequence[str] = ()) -> list[Plan]:
    """Return the plans of these statuses that carry one of these tags."""
    return [plan for plan in plans if (not status or plan.status in status) and has_any_tag(plan.tags, tags)]


def has_any_tag(own: Iterable[str], asked: Sequence[str]) -> bool:
    """Say whether one of the tags asked for is there; letters' case does not count."""
    if not asked:
        return True
    return not {tag.casefold() for tag in own}.isdisjoint(tag.strip().casefold() for tag in asked)


def find_plan(plans: Sequence[Plan], name: str) -> Plan:
    """Return a plan by its id, path or name; raise NotFoundError when there is none.

    Raise InputError when there are several.
    """
    wanted = {name.strip().casefold(), name.strip().casefold().removesuffix(".md")}
    found = [
        plan for plan in plans if wanted & {plan.id.casefold(), plan.path.casefold(), plan.name.casefold()}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        paths = ", ".join(sorted(plan.path for plan in found)[:5])
        raise InputError(f"{name!r} names {len(found)} plans", hint=f"name one by its path: {paths}")
    from difflib import get_close_matches

    near = get_close_matches(name, [word for plan in plans for word in (plan.id, plan.name)], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "archivist workspace plans lists them"
    raise NotFoundError("plan", name, hint=hint)
