"""Look up what a lesson cites, and refuse what that does not show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archivist.errors import InputError, NotFoundError
from archivist.lessons.support import unsupported_reason
from archivist.records import Episode, Event, Evidence, Lesson, Scope
from archivist.store.filters import any_of, equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# 2,000 events of 2 kB are searched in 0.4 s; a claim about a longer run cites single events.
_MOST_EVENTS = 2_000


def resolve_evidence(bank: Bank, names: Sequence[str]) -> Evidence:
    """Return evidence by the kind of record that each id names."""
    found: dict[str, set[str]] = {"episodes": set(), "events": set(), "logs": set()}
    for name in names:
        try:
            _, record = bank.ledger.find(name)
        except NotFoundError:
            raise InputError(
                f"no record for evidence {name!r}",
                hint="give ids of runs, events or stream entries as other functions return them",
            ) from None
        kind = {Episode: "episodes", Event: "events"}.get(type(record), "logs")
        found[kind].add(record.id)
    return Evidence(**{kind: tuple(sorted(ids)) for kind, ids in found.items()})


def find_repository(reader: Reader, evidence: Evidence, scope: Scope) -> str:
    """Return the repository of the cited runs that were captured; none for a lesson that holds elsewhere."""
    names = {*evidence.episodes, *(name.rpartition("#")[0] for name in evidence.events)}
    runs: Mapping[str, Episode] = reader.records("episode", sorted(names))
    projects = {run.project for run in runs.values() if reader.is_own_run(run.id)}
    is_of_one = len(projects) == 1 and scope not in (Scope.GLOBAL, Scope.PROVIDER)
    return projects.pop() if is_of_one else ""


def require_support(bank: Bank, text: str, names: Sequence[str], older: Sequence[Lesson]) -> None:
    """Refuse a claim that the events and captured runs which it cites do not show.

    A run that is not captured yet and an agent's own log entry show nothing: the lesson waits. What
    the lessons say that it replaces was shown before.
    """
    cited = resolve_evidence(bank, names)
    wanted = any_of([one_of("id", cited.events)], [one_of("run", cited.episodes)])
    with bank.reading() as reader:
        events = reader.select(Event, wanted, limit=_MOST_EVENTS) if cited.events or cited.episodes else []
    known = [f"{lesson.summary} {lesson.rule}" for lesson in older]
    if events and (reason := unsupported_reason(text, events, known)):
        raise InputError(
            f"its evidence does not support it: {reason}",
            hint="name only what the cited events show; cite the call that failed and the one that worked",
        )


def met_with(reader: Reader, provider: str) -> list[str]:
    """Return the lessons for no provider that runs of one met; none when none is named."""
    if not provider:
        return []
    runs = {str(run) for (run,) in reader.select_fields(Episode, ("id",), equals("provider", provider))}
    rows = reader.select_fields(Lesson, ("id", "runs"), equals("provider", "")) if runs else ()
    return [str(name) for name, met in rows if not runs.isdisjoint(json.loads(met))]
