"""Work on briefs: choose, render, record. Kept light: a cold process runs only this."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.brief.forms import BriefFormat
from archivist.brief.holdout import is_withheld
from archivist.brief.render import render
from archivist.brief.select import GENERAL, Chosen, Told, choose
from archivist.clock import to_text
from archivist.config import BriefRules
from archivist.records import Lesson, Status
from archivist.store.filters import Condition, any_of, at_least, equals, has, one_of
from archivist.store.results import Within, Words
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

_HITS = 50
# Of a large project so many of the most frequent and of the latest lessons are weighed, for each standing,
# and the best of those loaded.
_WEIGHED = 150
_LOADED = 40
_WEIGHTS = ("id", "number", "status", "frequency", "importance", "last_seen", "rule", "remedies")
_IN_RESERVE = 4
# A brief's name is not known before it is recorded, but its length is.
_ID_CHARACTERS = 26
_UNSAID_BY_FOLDER = "the folder does not say which"
_UNSAID = "neither the folder nor the words of the task say which"
# So many documents are scored by a task's words at most.
_SCORED = 5_000
# The records that decide what a project has met.
_MET_OF = frozenset(("lesson", "episode", "brief", "verdict"))


class Audience(NamedTuple):
    """Who is told; an empty word means anybody."""

    domain: str = ""
    role: str = ""
    provider: str = ""
    tool: str = ""
    tags: tuple[str, ...] = ()

    def conditions(self) -> list[Condition]:
        """Return the conditions that keep what is for this role, provider and tool, and for no other.

        Of what has tags only that is kept which has one of those asked for.
        """
        wanted = {"role": self.role, "provider": self.provider, "tool": self.tool}
        kept: list[Condition] = [one_of(field, (word, "")) for field, word in wanted.items() if word]
        if self.tags:
            kept.append(any_of(*((has("tags", tag),) for tag in self.tags), (equals("tags", "[]"),)))
        return kept


def tell(
    bank: Bank,
    audience: Audience,
    *,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    is_fenced: bool = False,
    beside: Bank | None,
    budget_tokens: int | None = None,
    tokens: Callable[[str], int] | None = None,
) -> Told:
    """Say the documented known issues of a domain and role; with a run, record it.

    They are those of the project that is meant, and of none.
    """
    project, said_by = "", ""
    offered = _offers(bank, beside, audience, rules)
    if any(each.lesson.repo for each in offered):
        # Without lessons of any project it is all the same which one is meant.
        with bank.reading() as reader:
            project, said_by = _meant(bank, reader, "", [])
        offered = _offers(bank, beside, audience, rules, one_of("repo", (project, "")))
    live, stale = _live(bank, offered)
    chosen = choose(live, domain=audience.domain, role=audience.role, rules=rules)
    if budget_tokens is not None:
        fitting: list[Chosen] = []
        for each in chosen:
            if _size([*fitting, each], form, is_fenced, tokens) <= budget_tokens:
                fitting.append(each)
        chosen = fitting
    told = _told(bank, chosen, stale, audience, run=run, rules=rules, form=form, beside=beside)
    return told._replace(project=project, project_by=said_by)


def tell_for_task(
    bank: Bank,
    audience: Audience,
    *,
    task: str,
    repo: str,
    project: str = "",
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    is_fenced: bool = False,
    beside: Bank | None,
    tokens: Callable[[str], int] | None = None,
) -> Told:
    """Say what a run on a task should know: what its project met, how often, how lately, and what helped.

    All of the text is within the budget, with its heading and, where it is to be fenced, its marks.
    """
    from archivist.brief.rank import rank
    from archivist.recall.keywords import keywords

    words = sorted(keywords(task))
    with bank.reading() as reader:
        project, said_by = (project, "") if project else _meant(bank, reader, repo, words)
        lessons, since = reader.remembered(
            ("met", project, audience), lambda: _met(reader, project, audience), of=_MET_OF
        )
        asked = _telling(reader, words)
        hits = reader.search(asked, within=_only("lesson"), limit=_HITS) if asked else []
        placed = reader.placed([hit.place for hit in hits])
        tallies = reader.tallies([lesson.id for lesson in lessons])
    offered = [Chosen(lesson) for lesson in lessons]
    if beside is not None:
        with beside.reading() as reader:
            theirs, _ = _met(reader, "", audience)
            tallies |= reader.tallies([lesson.id for lesson in theirs])
        offered += [Chosen(lesson, is_global=True) for lesson in theirs]
    likeness = {placed[hit.place].record: hit.score for hit in hits}
    # The working tree is asked about what would be told and what would take its place, not about everything.
    wider = rules._replace(
        max_task_lessons=rules.max_task_lessons * _IN_RESERVE,
        budget_tokens=rules.budget_tokens * _IN_RESERVE,
        max_candidates=rules.max_candidates * _IN_RESERVE,
    )

    def ranked(some: list[Chosen], within: BriefRules) -> list[Chosen]:
        return rank(some, runs_since=since, likeness=likeness, rules=within, tallies=tallies, tokens=tokens)

    live, stale = _live(bank, ranked(offered, wider))
    chosen = ranked(live, rules)
    room = rules.budget_tokens
    # What stands around the lessons takes room from them.
    while chosen and (excess := _size(chosen, form, is_fenced, tokens) - rules.budget_tokens) > 0:
        room -= excess
        chosen = ranked(live, rules._replace(budget_tokens=room))
    told = _told(bank, chosen, stale, audience, run=run, rules=rules, form=form, beside=beside)
    return told._replace(project=project, project_by=said_by)


def _size(
    chosen: Sequence[Chosen], form: BriefFormat, is_fenced: bool, tokens: Callable[[str], int] | None
) -> int:
    """Return how many tokens a brief's whole text takes."""
    text = render(chosen, form)
    if text and is_fenced:
        from archivist.capture.fence import fence

        text = fence(text, "0" * _ID_CHARACTERS, [each.name for each in chosen])
    return -(-len(text) // CHARACTERS_PER_TOKEN) if tokens is None else tokens(text)


def reasons(bank: Bank, told: Told) -> list[str]:
    """Return why each lesson of a brief is told, and what is withheld or stale."""
    from archivist.brief.rank import trust_in
    from archivist.records import Tally

    with bank.reading() as reader:
        tallies = reader.tallies([each.lesson.id for each in told.chosen])
        project, said_by = told.project, told.project_by
        if not said_by:
            project, said_by = _meant(bank, reader, project, [])
    lines = [f"{f'project {project}' if project else 'no project'}: {said_by}"] if said_by else []
    for each in told.chosen:
        tally = tallies.get(each.lesson.id, Tally())
        judged = tally.helpful + tally.ineffective
        helped = f"helped in {tally.helpful} of {judged} judged runs" if judged else "not judged yet"
        runs = "1 run" if each.lesson.frequency == 1 else f"{each.lesson.frequency} runs"
        lines.append(f"{each.name}: met in {runs}, {helped}: trust {trust_in(tally):.2f}")
    lines += [f"{each.name}: withheld by lot, to measure what it does" for each in told.withheld]
    return [*lines, *(f"{name}: stale, {reason}" for name, reason in told.stale)]


def _live(bank: Bank, offered: list[Chosen]) -> tuple[list[Chosen], tuple[tuple[str, str], ...]]:
    """Leave out what names something that is gone from the working tree."""
    gone = bank.stale([each.lesson for each in offered if not each.is_global])
    if not gone:
        return offered, ()
    names = tuple((each.name, gone[each.lesson.id]) for each in offered if each.lesson.id in gone)
    return [each for each in offered if each.lesson.id not in gone], names


def _told(
    bank: Bank,
    chosen: Sequence[Chosen],
    stale: tuple[tuple[str, str], ...],
    audience: Audience,
    *,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    beside: Bank | None,
) -> Told:
    """Draw the hold-out's lots, render what is left and, with a run, record both."""
    withheld = tuple(each for each in chosen if is_withheld(run, each.lesson.id, rules.holdout))
    told = tuple(each for each in chosen if each not in withheld)
    brief_id = _record(bank, told, withheld, audience, run, beside) if run else ""
    return Told(render(told, form), told, brief_id, withheld, stale)


def _telling(reader: Reader, words: list[str]) -> Words:
    """Return the words of a task to look for; of a large bank the rarest, which tell the most."""
    if not words or reader.document_count() <= _SCORED:
        return Words(tuple(words))
    from archivist.recall.lexical import Terms, chosen

    return chosen(Terms(tuple(words), ()), lambda word, most: reader.holding(word, at_most=most), _SCORED)


def _meant(bank: Bank, reader: Reader, repo: str, words: list[str]) -> tuple[str, str]:
    """Return the project that a brief is about, and what says so."""
    from archivist import projects

    project, said_by = projects.meant(reader, repo, bank.folder, bank.root)
    if project:
        return project, said_by
    if not words:
        # Of a bank without projects there is nothing to say.
        return "", _UNSAID_BY_FOLDER if projects.every(reader) else ""
    project = _project_of(reader, words)
    return project, "by the words of the task" if project else _UNSAID


def _project_of(reader: Reader, words: list[str]) -> str:
    """Return the project of a run whose task has the words of this one; empty when none has."""
    from archivist.brief.prompting import project_of

    hits = reader.search(Words(tuple(words)), within=_only("episode"), limit=_HITS)
    placed = reader.placed([hit.place for hit in hits])
    found = reader.records("episode", [each.record for each in placed.values()]).values()
    return project_of(frozenset(words), [(each.project, each.task) for each in found if each.project])


def _only(kind: str) -> Within:
    from archivist.store.scope_tokens import scope_token

    return Within(groups=((scope_token("kind", kind),),))


def _met(reader: Reader, project: str, audience: Audience) -> tuple[list[Lesson], dict[str, int]]:
    """Return the live lessons of a project and of none, and how many of its runs came after each was seen."""
    from archivist import projects
    from archivist.records import Episode

    runs = reader.select_fields(Episode, ("finished",), equals("project", project))
    ended = sorted(str(row[0]) for row in runs if row[0])
    lessons = _likeliest(reader, (one_of("repo", (project, "")), *audience.conditions()), ended)
    strays = {lesson.id for lesson in lessons if lesson.signature and not lesson.repo} if project else set()
    if strays and len(projects.known(reader)) > 1:
        # What was learnt where nobody knew the repository is about one of them, and likely about another.
        lessons = [lesson for lesson in lessons if lesson.id not in strays]
    since = {
        lesson.id: _runs_since(ended, to_text(lesson.last_seen) if lesson.last_seen else "")
        for lesson in lessons
    }
    return lessons, since


def _likeliest(reader: Reader, conditions: Sequence[Condition], ended: list[str]) -> list[Lesson]:
    """Return the live lessons, of a large project those that may deserve to be told.

    What deserves it was met often or lately; both are read from an index, and nothing else is loaded.
    """
    from archivist.brief.rank import deserts

    rows: dict[str, tuple[Any, ...]] = {}
    is_all = True
    for status in (Status.ACTIVE, Status.CANDIDATE):
        for order in (("-frequency", "number"), ("-unseen_from",)):
            found = reader.select_fields(
                Lesson, _WEIGHTS, equals("status", status), *conditions, order=order, limit=_WEIGHED
            )
            rows |= {str(row[0]): row for row in found}
            if len(found) < _WEIGHED:
                break
            is_all = False
    if is_all:
        return list(reader.records("lesson", list(rows)).values())
    tallies = reader.tallies(list(rows))

    def key(row: tuple[Any, ...]) -> tuple[bool, float, int]:
        lesson, number, status, frequency, importance, last_seen, rule, remedies = row
        since = _runs_since(ended, last_seen or "")
        worth = deserts(frequency, importance, rule != "" or remedies != "[]", since, tallies.get(lesson))
        return status == Status.CANDIDATE.value, -worth.total, number

    best = sorted(rows.values(), key=key)[:_LOADED]
    return list(reader.records("lesson", [str(row[0]) for row in best]).values())


def _runs_since(ended: list[str], last_seen: str) -> int:
    return len(ended) - (bisect_right(ended, last_seen) if last_seen else 0)


def _offers(
    bank: Bank, beside: Bank | None, audience: Audience, rules: BriefRules, *more: Condition
) -> list[Chosen]:
    """Return the most frequent lessons of both banks that a brief for an audience may choose from."""
    offered = [Chosen(lesson) for lesson in _select(bank, audience, rules, *more)]
    if beside is not None:
        theirs = _select(beside, audience, rules, *more)
        offered += [Chosen(lesson, is_global=True) for lesson in theirs]
    return offered


def _select(bank: Bank, audience: Audience, rules: BriefRules, *more: Condition) -> list[Lesson]:
    fitting: list[Condition] = audience.conditions()
    if audience.domain:
        fitting.append(one_of("domain", (audience.domain, GENERAL)))
    conditions: list[Condition] = [equals("status", Status.ACTIVE), *more]
    if fitting:
        conditions.append(any_of(fitting, (at_least("frequency", rules.always_at_frequency),)))
    with bank.reading() as reader:
        return reader.select(Lesson, *conditions, order=("-frequency", "number"), limit=rules.max_lessons)


def _record(
    bank: Bank,
    told: tuple[Chosen, ...],
    withheld: tuple[Chosen, ...],
    audience: Audience,
    run: str,
    beside: Bank | None,
) -> str:
    from archivist.records import Brief

    now = bank.now()
    record = Brief(id=bank.new_id(now), time=now, run=run, domain=audience.domain, role=audience.role)
    for each, is_global in ((bank, False), (beside, True)):
        mine = tuple(one.lesson.id for one in told if one.is_global is is_global)
        kept = tuple(one.lesson.id for one in withheld if one.is_global is is_global)
        if each is None or (is_global and not mine and not kept):
            continue
        with each.transaction() as writer:
            writer.put(replace(record, lessons=mine, withheld=kept), "brief")
    return record.id
