"""Say why a brief tells no lesson, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archivist import paths, projects
from archivist.lessons.risky_text import is_plain_name
from archivist.records import ActorKind, Lesson, Status
from archivist.store.filters import equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import BriefRequest, RenderedBrief

# Of the projects that lessons are about, a message names so many.
_NAMED = 5


def explain_empty(bank: Bank, brief: RenderedBrief, request: BriefRequest) -> str:
    """Return why a brief tells no lesson, and what to do about it."""
    if brief.withheld:
        held_back = ", ".join(each.name for each in brief.withheld)
        return f"randomly withheld from this run, to measure the effect: {held_back}"
    if brief.stale:
        name, reason = brief.stale[0]
        more = f", and {len(brief.stale) - 1} more" if len(brief.stale) > 1 else ""
        return f"what is known is stale: {name} ({reason}){more}; --explain lists it"
    live = one_of("status", (Status.ACTIVE, Status.CANDIDATE))
    with bank.reading() as reader:
        waiting = reader.count(Lesson, live, equals("is_waiting", 1))
        # Without the condition the index alone is counted: 40 projects took 280 ms with it.
        is_told = (live, *((equals("is_waiting", 0),) if waiting else ()))
        counts = {
            name: number
            for name in sorted(projects.all_projects(reader))
            if (number := reader.count(Lesson, *is_told, equals("repo", name)))
        }
        names = projects.names_of(reader, brief.project)
        total = reader.count(Lesson, *is_told)
        queued, runs = len(reader.queued_runs()), reader.run_count()
    if not total:
        if waiting:
            return f"every lesson waits for approval ({waiting}): archivist lessons list --waiting"
        if queued:
            return f"no lessons yet; captured runs that wait: {queued}: archivist reflect"
        if runs:
            return f"no lessons yet: nothing recurred in {runs} {'run' if runs == 1 else 'runs'}"
        if paths.was_set_up(bank.path):
            return "no lessons yet: the first session that ends here is learnt from"
        return "no lessons yet: archivist setup learns from the sessions of this repository"
    own = sum(counts.get(name, 0) for name in names)
    if not own and counts:
        return _explain_others(bank, counts, total, brief, request)
    if any((request.domain, request.role, request.provider, request.tool, request.tags)):
        return f"no lesson of {total} is for what was asked: archivist lessons list"
    return f"no lesson of {own or total} is likely to be needed: archivist brief --explain says why"


def _explain_others(
    bank: Bank, counts: Mapping[str, int], total: int, brief: RenderedBrief, request: BriefRequest
) -> str:
    """Say whose lessons there are instead, and how to ask for them; to agents no names of others."""
    lessons = f"{total} {'lesson' if total == 1 else 'lessons'}"
    named = [
        name
        for name in sorted(counts, key=lambda name: -counts[name])
        if is_plain_name(name.partition("@")[0])
    ]
    if bank.actor.kind is not ActorKind.HUMAN or not named:
        # A repository chooses its name, and other projects are none of an agent's business.
        return f"{lessons}, all of other projects: archivist lessons list shows them"
    rest = len(counts) - len(named[:_NAMED])
    others = f" and {rest} other {'project' if rest == 1 else 'projects'}" if rest else ""
    whose = f"all of {named[0]}" if len(counts) == 1 else f"of {', '.join(named[:_NAMED])}{others}"
    here = f"this folder is {brief.project}" if brief.project else "this folder is of none of them"
    here = f"this is about {brief.project}" if request.repo else here
    folder, most = bank.folder or bank.root, named[0]
    is_fitting = most in projects.describe_repository(folder, bank.root).names
    with bank.reading() as reader:
        other = projects.other_owner(reader, most, folder, bank.root)
    # The same repository may have been filed under another name.
    is_own = bool(brief.project) and (is_fitting or projects.is_distinct_name(most)) and not other
    name = shlex.quote(most)
    remedy = f"archivist lessons claim {name}, if it is the same" if is_own else f"--repo {name}"
    return f"{lessons}, {whose}; {here}: {remedy}"
