"""Work on briefs: choose, render, record. Kept light: a cold process runs only this."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.brief.rendering import BriefFormat, render
from archivist.brief.selection import GENERAL, Chosen, Told, choose
from archivist.config import BriefRules
from archivist.records import Lesson, Status
from archivist.stores.filters import Condition, any_of, at_least, equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank


def tell(
    bank: Bank,
    *,
    domain: str,
    role: str,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    beside: Bank | None,
) -> Told:
    """Say what a new run should know; with a run, record it. `beside` is the global bank."""
    offered = [Chosen(lesson) for lesson in _offers(bank, domain, role, rules)]
    if beside is not None:
        offered += [Chosen(lesson, is_global=True) for lesson in _offers(beside, domain, role, rules)]
    chosen = tuple(choose(offered, domain=domain, role=role, rules=rules))
    brief_id = _record(bank, chosen, domain, role, run, beside) if run else ""
    return Told(render(chosen, form), chosen, brief_id)


def _offers(bank: Bank, domain: str, role: str, rules: BriefRules) -> list[Lesson]:
    """Return the most frequent lessons that a brief for this domain and role may choose from."""
    fitting = []
    if domain:
        fitting.append(one_of("domain", (domain, GENERAL)))
    if role:
        fitting.append(one_of("role", (role, "")))
    conditions: list[Condition] = [equals("status", Status.ACTIVE)]
    if fitting:
        conditions.append(any_of(fitting, (at_least("frequency", rules.always_at_frequency),)))
    with bank.reading() as reader:
        return reader.select(Lesson, *conditions, order=("-frequency", "number"), limit=rules.max_lessons)


def _record(
    bank: Bank, chosen: tuple[Chosen, ...], domain: str, role: str, run: str, beside: Bank | None
) -> str:
    from archivist.records import Brief

    now = bank.now()
    record = Brief(id=bank.new_id(now), time=now, run=run, domain=domain, role=role)
    mine = tuple(each.lesson.id for each in chosen if not each.is_global)
    theirs = tuple(each.lesson.id for each in chosen if each.is_global)
    with bank.transaction() as writer:
        writer.put(replace(record, lessons=mine), "brief")
    if beside is not None and theirs:
        with beside.transaction() as writer:
            writer.put(replace(record, lessons=theirs), "brief")
    return record.id
