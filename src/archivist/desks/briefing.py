"""Work on briefs: choose, render, record. Kept light: a cold process runs only this."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archivist.brief.rendering import BriefFormat, render
from archivist.brief.selection import GENERAL, Chosen, Told, choose
from archivist.clock import to_text
from archivist.config import BriefRules
from archivist.records import Lesson, Status
from archivist.stores.answers import Within, Words
from archivist.stores.filters import Condition, any_of, at_least, equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.stores.protocol import Reader

_HITS = 50


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is told; an empty word means anybody."""

    domain: str = ""
    role: str = ""
    provider: str = ""
    tool: str = ""

    def conditions(self) -> list[Condition]:
        """Return the conditions that keep what is for this role, provider and tool, and for no other."""
        wanted = {"role": self.role, "provider": self.provider, "tool": self.tool}
        return [one_of(field, (word, "")) for field, word in wanted.items() if word]


def tell(
    bank: Bank, audience: Audience, *, run: str, rules: BriefRules, form: BriefFormat, beside: Bank | None
) -> Told:
    """Say the documented known issues of a domain and role; with a run, record it."""
    offered = [Chosen(lesson) for lesson in _offers(bank, audience, rules)]
    if beside is not None:
        offered += [Chosen(lesson, is_global=True) for lesson in _offers(beside, audience, rules)]
    chosen = tuple(choose(offered, domain=audience.domain, role=audience.role, rules=rules))
    brief_id = _record(bank, chosen, audience, run, beside) if run else ""
    return Told(render(chosen, form), chosen, brief_id)


def tell_for_task(
    bank: Bank,
    audience: Audience,
    *,
    task: str,
    repo: str,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    beside: Bank | None,
) -> Told:
    """Say what a run on a task should know: what its project met, how often and how lately."""
    from archivist.brief.ranking import rank
    from archivist.recall.keywords import keywords

    words = sorted(keywords(task))
    with bank.reading() as reader:
        project = repo or _project_of(reader, words)
        offered, since = _met(reader, project, audience)
        hits = reader.search(Words(tuple(words)), within=_only("lesson"), limit=_HITS)
        placed = reader.placed([hit.place for hit in hits])
    chosen_from = [Chosen(lesson) for lesson in offered]
    if beside is not None:
        with beside.reading() as reader:
            theirs, _ = _met(reader, "", audience)
        chosen_from += [Chosen(lesson, is_global=True) for lesson in theirs]
    likeness = {placed[hit.place].record: hit.score for hit in hits}
    chosen = tuple(rank(chosen_from, runs_since=since, likeness=likeness, rules=rules))
    brief_id = _record(bank, chosen, audience, run, beside) if run else ""
    return Told(render(chosen, form), chosen, brief_id)


def fenced(told: Told) -> Told:
    """Put a brief between marks that name it, so that a transcript which holds it is never learnt from."""
    if not told.text:
        return told
    from archivist.capture.own_briefs import fence

    names = [each.lesson.short_id for each in told.chosen]
    return replace(told, text=fence(told.text, told.brief_id or "unrecorded", names))


def _project_of(reader: Reader, words: list[str]) -> str:
    """Return the project that a task belongs to: that of the run whose task it resembles most."""
    from archivist.records import Episode

    weights: dict[str, float] = {}
    hits = reader.search(Words(tuple(words)), within=_only("episode"), limit=_HITS)
    placed = reader.placed([hit.place for hit in hits])
    for hit in hits:
        episode = reader.get(Episode, placed[hit.place].record)
        if episode is not None and episode.project:
            weights[episode.project] = max(weights.get(episode.project, 0.0), hit.score)
    if weights:
        return max(weights, key=lambda name: (weights[name], name))
    # A task like none before is still about the only project there is.
    projects = {row[0] for row in reader.select_fields(Episode, ("project",))} - {""}
    return projects.pop() if len(projects) == 1 else ""


def _only(kind: str) -> Within:
    from archivist.stores.searchable import scope_token

    return Within(groups=((scope_token("kind", kind),),))


def _met(reader: Reader, project: str, audience: Audience) -> tuple[list[Lesson], dict[str, int]]:
    """Return the live lessons of a project and of none, and how many of its runs came after each was seen."""
    from archivist.records import Episode

    lessons = reader.select(
        Lesson,
        one_of("status", (Status.ACTIVE, Status.CANDIDATE)),
        one_of("repo", (project, "")),
        *audience.conditions(),
    )
    runs = reader.select_fields(Episode, ("id", "finished"), equals("project", project))
    ended = sorted(str(finished) for _, finished in runs if finished)
    since = {
        lesson.id: len(ended) - (bisect_right(ended, to_text(lesson.last_seen)) if lesson.last_seen else 0)
        for lesson in lessons
    }
    return lessons, since


def _offers(bank: Bank, audience: Audience, rules: BriefRules) -> list[Lesson]:
    """Return the most frequent lessons that a brief for this domain and role may choose from.

    Where a bank holds several repositories and nobody says which is meant, their own lessons are left out:
    another repository's advice is worse than none.
    """
    offered = _select(bank, audience, rules)
    if len({lesson.repo for lesson in offered if lesson.repo}) <= 1:
        return offered
    return _select(bank, audience, rules, equals("repo", ""))


def _select(bank: Bank, audience: Audience, rules: BriefRules, *more: Condition) -> list[Lesson]:
    fitting: list[Condition] = audience.conditions()
    if audience.domain:
        fitting.append(one_of("domain", (audience.domain, GENERAL)))
    conditions: list[Condition] = [equals("status", Status.ACTIVE), *more]
    if fitting:
        conditions.append(any_of(fitting, (at_least("frequency", rules.always_at_frequency),)))
    with bank.reading() as reader:
        return reader.select(Lesson, *conditions, order=("-frequency", "number"), limit=rules.max_lessons)


def _record(bank: Bank, chosen: tuple[Chosen, ...], audience: Audience, run: str, beside: Bank | None) -> str:
    from archivist.records import Brief

    now = bank.now()
    record = Brief(id=bank.new_id(now), time=now, run=run, domain=audience.domain, role=audience.role)
    mine = tuple(each.lesson.id for each in chosen if not each.is_global)
    theirs = tuple(each.lesson.id for each in chosen if each.is_global)
    with bank.transaction() as writer:
        writer.put(replace(record, lessons=mine), "brief")
    if beside is not None and theirs:
        with beside.transaction() as writer:
            writer.put(replace(record, lessons=theirs), "brief")
    return record.id
