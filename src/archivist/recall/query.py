"""What a search asks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import InputError
from archivist.records import Category, Scope, Status
from archivist.records.kinds import SEARCHABLE as KINDS
from archivist.store.filters import refuse_many
from archivist.store.results import SearchFilter, scope_token

if TYPE_CHECKING:
    from archivist.recall.scoring import Preset

LIVE = (Status.ACTIVE, Status.CANDIDATE)
_SCOPED = (
    "scope", "category", "type", "repo", "task", "provider", "role", "domain", "run", "agent", "action",
    "tier", "source",
)  # fmt: skip
# As the name of a repository: all of them.
EVERY_REPO = "*"
# What tools were asked and answered, and what clients inject: it has the words of many questions and answers
# few, and nobody said it.
_TOOL_EVENTS = tuple(scope_token("event", kind) for kind in ("tool_call", "edit", "test"))
_INJECTED = "system"


class Query(NamedTuple):
    """A search; an empty field does not restrict it, and one of several tags is enough.

    Without statuses, archived and quarantined lessons are left out. `window` is the number of neighbours of
    a hit in its thread, before and after it. A preset of None is the configured one. `is_matching` keeps
    only lessons that share a word with the text or are certainly near to it. `is_in_time_order` puts the hits
    in the order of their times. Tool calls, their output, and what clients inject into a conversation are
    found only by the kind `event`, a run or a tool; an error finds the failing calls that printed it. Without
    a repository what is known of others than the caller's own is left out: `other_repos`; `*` asks for all.
    `phase` and `error` are what lessons are about, such as `lint` and `missing_module`. `matching_tools` are
    the tools of lessons that the asked one covers.
    """

    text: str = ""
    kinds: tuple[str, ...] = ()
    scope: Scope | None = None
    category: Category | None = None
    type: str = ""
    repo: str = ""
    task: str = ""
    provider: str = ""
    tool: str = ""
    role: str = ""
    domain: str = ""
    run: str = ""
    agent: str = ""
    action: str = ""
    tier: str = ""
    source: str = ""
    issue: int | None = None
    pr: int | None = None
    tags: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    since_cycle: int | None = None
    until_cycle: int | None = None
    min_importance: float = 0.0
    limit: int | None = None
    preset: Preset | str | None = None
    window: int = 0
    is_matching: bool = False
    is_in_time_order: bool = False
    phase: str = ""
    error: str = ""
    other_repos: frozenset[str] = frozenset()
    matching_tools: tuple[str, ...] = ()


def build_search_filter(query: Query) -> SearchFilter:
    """Return a query's conditions as scope tokens and ranges of the index."""
    unknown = [kind for kind in query.kinds if kind not in KINDS]
    if unknown:
        raise InputError(f"kind {unknown[0]!r} is not one of {', '.join(KINDS)}")
    if not 0 <= query.min_importance <= 1:
        raise InputError(f"importance: {query.min_importance:g} is not between 0 and 1")
    for name in ("tags", "kinds", "statuses"):
        refuse_many(name, getattr(query, name))
    fields: dict[str, Iterable[object]] = {"kind": query.kinds, "status": query.statuses, "tag": query.tags}
    fields |= {field: (value,) for field in _SCOPED if (value := getattr(query, field))}
    fields |= {name: (number,) for name in ("issue", "pr") if (number := getattr(query, name)) is not None}
    fields["tool"] = {name.casefold() for name in (query.tool, *query.matching_tools) if name}
    groups = [tuple(scope_token(field, str(value)) for value in values) for field, values in fields.items()]
    is_raw = bool(query.kinds or query.run or query.tool)
    return SearchFilter(
        groups=tuple(group for group in groups if group),
        since=query.since,
        until=query.until,
        since_cycle=query.since_cycle,
        until_cycle=query.until_cycle,
        min_importance=query.min_importance,
        with_hidden=bool(query.statuses),
        excluded=(
            *(() if is_raw else _TOOL_EVENTS),
            *(() if is_raw or query.role == _INJECTED else (scope_token("role", _INJECTED),)),
            *(scope_token("repo", repo) for repo in sorted(query.other_repos)),
        ),
    )
