"""Work on briefs: choose, render, record. Kept light: a cold process runs only this."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.access.rights import Layer, reads
from archivist.brief.fence import fence_brief as _fence_brief
from archivist.brief.forms import BriefFormat
from archivist.brief.holdout import is_withheld
from archivist.brief.render import render_brief
from archivist.brief.select import GENERAL, BriefedLesson, RenderedBrief, choose_lessons
from archivist.clock import to_text
from archivist.config import BriefRules
from archivist.records import Lesson, Status
from archivist.service import BankService
from archivist.store.filters import Condition, any_of, at_least, contains_item, equals, one_of
from archivist.store.results import SearchFilter, TextQuery
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.presets import BriefPreset
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
            kept.append(
                any_of(*((contains_item("tags", tag),) for tag in self.tags), (equals("tags", "[]"),))
            )
        return kept


def brief_known_issues(
    bank: Bank,
    audience: Audience,
    *,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    is_fenced: bool = False,
    global_bank: Bank | None,
    budget_tokens: int | None = None,
    tokens: Callable[[str], int] | None = None,
) -> RenderedBrief:
    """Say the documented known issues of a domain and role; with a run, record it.

    They are those of the project that is meant, and of none.
    """
    project, said_by = "", ""
    offered = _known_issue_candidates(bank, global_bank, audience, rules)
    if any(each.lesson.repo for each in offered):
        # Without lessons of any project it is all the same which one is meant.
        with bank.reading() as reader:
            project, said_by = _resolve_project(bank, reader, "", [])
        offered = _known_issue_candidates(bank, global_bank, audience, rules, one_of("repo", (project, "")))
    live, stale = _drop_stale(bank, offered)
    chosen = choose_lessons(live, domain=audience.domain, role=audience.role, rules=rules)
    if budget_tokens is not None:
        fitting: list[BriefedLesson] = []
        for each in chosen:
            if _count_tokens([*fitting, each], form, is_fenced, tokens) <= budget_tokens:
                fitting.append(each)
        chosen = fitting
    told = _render_and_record(
        bank, chosen, stale, audience, run=run, rules=rules, form=form, global_bank=global_bank
    )
    return told._replace(project=project, project_by=said_by)


def brief_task(
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
    global_bank: Bank | None,
    tokens: Callable[[str], int] | None = None,
) -> RenderedBrief:
    """Say what a run on a task should know: what its project met, how often, how lately, and what helped.

    All of the text is within the budget, with its heading and, where it is to be fenced, its marks.
    """
    from archivist.brief.rank import rank_lessons
    from archivist.recall.keywords import keywords

    words = sorted(keywords(task))
    with bank.reading() as reader:
        project, said_by = (project, "") if project else _resolve_project(bank, reader, repo, words)
        lessons, since = reader.get_cached(
            ("met", project, audience), lambda: _project_lessons(reader, project, audience), kinds=_MET_OF
        )
        asked = _rare_words(reader, words)
        hits = reader.search(asked, search_filter=_within_kind("lesson"), limit=_HITS) if asked else []
        placed = reader.indexed_documents([hit.place for hit in hits])
        tallies = reader.tallies([lesson.id for lesson in lessons])
    offered = [BriefedLesson(lesson) for lesson in lessons]
    if global_bank is not None:
        with global_bank.reading() as reader:
            theirs, _ = _project_lessons(reader, "", audience)
            tallies |= reader.tallies([lesson.id for lesson in theirs])
        offered += [BriefedLesson(lesson, is_global=True) for lesson in theirs]
    likeness = {placed[hit.place].record: hit.score for hit in hits}
    # The working tree is asked about what would be told and what would take its place, not about everything.
    wider = rules._replace(
        max_task_lessons=rules.max_task_lessons * _IN_RESERVE,
        budget_tokens=rules.budget_tokens * _IN_RESERVE,
        max_candidates=rules.max_candidates * _IN_RESERVE,
    )

    def rank_within(some: list[BriefedLesson], within: BriefRules) -> list[BriefedLesson]:
        return rank_lessons(
            some, runs_since=since, similarity=likeness, rules=within, tallies=tallies, tokens=tokens
        )

    live, stale = _drop_stale(bank, rank_within(offered, wider))
    chosen = rank_within(live, rules)
    room = rules.budget_tokens
    # What stands around the lessons takes room from them.
    while chosen and (excess := _count_tokens(chosen, form, is_fenced, tokens) - rules.budget_tokens) > 0:
        room -= excess
        chosen = rank_within(live, rules._replace(budget_tokens=room))
    told = _render_and_record(
        bank, chosen, stale, audience, run=run, rules=rules, form=form, global_bank=global_bank
    )
    return told._replace(project=project, project_by=said_by)


def _count_tokens(
    chosen: Sequence[BriefedLesson], form: BriefFormat, is_fenced: bool, tokens: Callable[[str], int] | None
) -> int:
    """Return how many tokens a brief's whole text takes."""
    text = render_brief(chosen, form)
    if text and is_fenced:
        from archivist.capture.fence import fence

        text = fence(text, "0" * _ID_CHARACTERS, [each.name for each in chosen])
    return -(-len(text) // CHARACTERS_PER_TOKEN) if tokens is None else tokens(text)


def reasons(bank: Bank, brief: RenderedBrief) -> list[str]:
    """Return why each lesson of a brief is told, and what is withheld or stale."""
    from archivist.brief.rank import trust_in
    from archivist.records import Tally

    with bank.reading() as reader:
        tallies = reader.tallies([each.lesson.id for each in brief.chosen])
        project, said_by = brief.project, brief.project_by
        if not said_by:
            project, said_by = _resolve_project(bank, reader, project, [])
    lines = [f"{f'project {project}' if project else 'no project'}: {said_by}"] if said_by else []
    for each in brief.chosen:
        tally = tallies.get(each.lesson.id, Tally())
        judged = tally.helpful + tally.ineffective
        helped = f"helped in {tally.helpful} of {judged} judged runs" if judged else "not judged yet"
        runs = "1 run" if each.lesson.frequency == 1 else f"{each.lesson.frequency} runs"
        lines.append(f"{each.name}: met in {runs}, {helped}: trust {trust_in(tally):.2f}")
    lines += [f"{each.name}: withheld by lot, to measure what it does" for each in brief.withheld]
    return [*lines, *(f"{name}: stale, {reason}" for name, reason in brief.stale)]


def _drop_stale(
    bank: Bank, offered: list[BriefedLesson]
) -> tuple[list[BriefedLesson], tuple[tuple[str, str], ...]]:
    """Leave out what names something that is gone from the working tree."""
    gone = bank.liveness.find_stale([each.lesson for each in offered if not each.is_global])
    if not gone:
        return offered, ()
    names = tuple((each.name, gone[each.lesson.id]) for each in offered if each.lesson.id in gone)
    return [each for each in offered if each.lesson.id not in gone], names


def _render_and_record(
    bank: Bank,
    chosen: Sequence[BriefedLesson],
    stale: tuple[tuple[str, str], ...],
    audience: Audience,
    *,
    run: str,
    rules: BriefRules,
    form: BriefFormat,
    global_bank: Bank | None,
) -> RenderedBrief:
    """Draw the hold-out's lots, render what is left and, with a run, record both."""
    withheld = tuple(each for each in chosen if is_withheld(run, each.lesson.id, rules.holdout))
    told = tuple(each for each in chosen if each not in withheld)
    brief_id = _record_brief(bank, told, withheld, audience, run, global_bank) if run else ""
    return RenderedBrief(render_brief(told, form), told, brief_id, withheld, stale)


def _rare_words(reader: Reader, words: list[str]) -> TextQuery:
    """Return the words of a task to look for; of a large bank the rarest, which tell the most."""
    if not words or reader.document_count() <= _SCORED:
        return TextQuery(tuple(words))
    from archivist.recall.lexical import Terms, select_words

    return select_words(
        Terms(tuple(words), ()), lambda word, most: reader.count_documents_with(word, at_most=most), _SCORED
    )


def _resolve_project(bank: Bank, reader: Reader, repo: str, words: list[str]) -> tuple[str, str]:
    """Return the project that a brief is about, and what says so."""
    from archivist import projects

    project, said_by = projects.resolve_project(reader, repo, bank.folder, bank.root)
    if project:
        return project, said_by
    if not words:
        # Of a bank without projects there is nothing to say.
        return "", _UNSAID_BY_FOLDER if projects.all_projects(reader) else ""
    project = _project_by_words(reader, words)
    return project, "by the words of the task" if project else _UNSAID


def _project_by_words(reader: Reader, words: list[str]) -> str:
    """Return the project of a run whose task has the words of this one; empty when none has."""
    from archivist.brief.prompting import project_of

    hits = reader.search(TextQuery(tuple(words)), search_filter=_within_kind("episode"), limit=_HITS)
    placed = reader.indexed_documents([hit.place for hit in hits])
    found = reader.records("episode", [each.record for each in placed.values()]).values()
    return project_of(frozenset(words), [(each.project, each.task) for each in found if each.project])


def _within_kind(kind: str) -> SearchFilter:
    from archivist.store.scope_tokens import scope_token

    return SearchFilter(groups=((scope_token("kind", kind),),))


def _project_lessons(reader: Reader, project: str, audience: Audience) -> tuple[list[Lesson], dict[str, int]]:
    """Return the live lessons of a project and of none, and how many of its runs came after each was seen."""
    from archivist import projects
    from archivist.records import Episode

    runs = reader.select_fields(Episode, ("finished",), equals("project", project))
    ended = sorted(str(row[0]) for row in runs if row[0])
    lessons = _top_lessons(reader, (one_of("repo", (project, "")), *audience.conditions()), ended)
    strays = {lesson.id for lesson in lessons if lesson.signature and not lesson.repo} if project else set()
    if strays and len(projects.run_projects(reader)) > 1:
        # What was learnt where nobody knew the repository is about one of them, and likely about another.
        lessons = [lesson for lesson in lessons if lesson.id not in strays]
    since = {
        lesson.id: _runs_since(ended, to_text(lesson.last_seen) if lesson.last_seen else "")
        for lesson in lessons
    }
    return lessons, since


def _top_lessons(reader: Reader, conditions: Sequence[Condition], ended: list[str]) -> list[Lesson]:
    """Return the live lessons, of a large project those that may deserve to be told.

    What deserves it was met often or lately; both are read from an index, and nothing else is loaded.
    """
    from archivist.brief.rank import score_row

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
        worth = score_row(frequency, importance, rule != "" or remedies != "[]", since, tallies.get(lesson))
        return status == Status.CANDIDATE.value, -worth.total, number

    best = sorted(rows.values(), key=key)[:_LOADED]
    return list(reader.records("lesson", [str(row[0]) for row in best]).values())


def _runs_since(ended: list[str], last_seen: str) -> int:
    return len(ended) - (bisect_right(ended, last_seen) if last_seen else 0)


def _known_issue_candidates(
    bank: Bank, global_bank: Bank | None, audience: Audience, rules: BriefRules, *more: Condition
) -> list[BriefedLesson]:
    """Return the most frequent lessons of both banks that a brief for an audience may choose from."""
    offered = [BriefedLesson(lesson) for lesson in _select_active(bank, audience, rules, *more)]
    if global_bank is not None:
        theirs = _select_active(global_bank, audience, rules, *more)
        offered += [BriefedLesson(lesson, is_global=True) for lesson in theirs]
    return offered


def _select_active(bank: Bank, audience: Audience, rules: BriefRules, *more: Condition) -> list[Lesson]:
    fitting: list[Condition] = audience.conditions()
    if audience.domain:
        fitting.append(one_of("domain", (audience.domain, GENERAL)))
    conditions: list[Condition] = [equals("status", Status.ACTIVE), *more]
    if fitting:
        conditions.append(any_of(fitting, (at_least("frequency", rules.always_at_frequency),)))
    with bank.reading() as reader:
        return reader.select(Lesson, *conditions, order=("-frequency", "number"), limit=rules.max_lessons)


def _record_brief(
    bank: Bank,
    told: tuple[BriefedLesson, ...],
    withheld: tuple[BriefedLesson, ...],
    audience: Audience,
    run: str,
    global_bank: Bank | None,
) -> str:
    from archivist.records import Brief

    now = bank.now()
    record = Brief(id=bank.new_id(now), time=now, run=run, domain=audience.domain, role=audience.role)
    for each, is_global in ((bank, False), (global_bank, True)):
        mine = tuple(one.lesson.id for one in told if one.is_global is is_global)
        kept = tuple(one.lesson.id for one in withheld if one.is_global is is_global)
        if each is None or (is_global and not mine and not kept):
            continue
        with each.transaction() as writer:
            writer.put(replace(record, lessons=mine, withheld=kept), "brief")
    return record.id


class Briefs(BankService):
    """What is put into the prompt of a run."""

    @reads(Layer.LESSONS)
    def brief(
        self,
        *,
        domain: str = "",
        role: str = "",
        task: str = "",
        repo: str = "",
        project: str = "",
        provider: str = "",
        tool: str = "",
        tags: Sequence[str] = (),
        run: str = "",
        preset: BriefPreset | None = None,
        max_lessons: int | None = None,
        budget_tokens: int | None = None,
        tokens: Callable[[str], int] | None = None,
        form: BriefFormat = BriefFormat.KNOWN_ISSUES,
        is_fenced: bool = False,
        global_bank: Bank | None = None,
    ) -> RenderedBrief:
        """Say what a new run should know; with a run, record it. `beside` is the global bank.

        With a task, a repository or for a subagent: what that project met, how often, how lately and what
        helped, within a budget that `tokens` counts. Else the documented known issues of a domain and role,
        as many as the rules say unless a budget is named. `repo` is what somebody calls it, `project` exactly
        what the bank does.
        """
        from archivist.brief.presets import BriefPreset, rules_for_preset

        rules = rules_for_preset(
            self._bank.config.brief, preset, max_lessons=max_lessons, budget_tokens=budget_tokens
        )
        audience = Audience(domain=domain, role=role, provider=provider, tool=tool, tags=tuple(tags))
        if task or repo or project or preset is BriefPreset.SUBAGENT:
            told = brief_task(
                self._bank,
                audience,
                task=task,
                repo=repo,
                project=project,
                run=run,
                rules=rules,
                form=form,
                is_fenced=is_fenced,
                global_bank=global_bank,
                tokens=tokens,
            )
        else:
            told = brief_known_issues(
                self._bank,
                audience,
                run=run,
                rules=rules,
                form=form,
                is_fenced=is_fenced,
                global_bank=global_bank,
                budget_tokens=budget_tokens,
                tokens=tokens,
            )
        return _fence_brief(told) if is_fenced else told

    @reads(Layer.LESSONS)
    def reasons(self, brief: RenderedBrief) -> list[str]:
        """Return why each lesson of a brief is told, and what is withheld or stale."""
        return reasons(self._bank, brief)

    @reads(Layer.LESSONS)
    def heal(
        self,
        error: str,
        *,
        tool: str = "",
        command: str = "",
        repo: str = "",
        project: str = "",
        run: str = "",
        is_fenced: bool = False,
    ) -> RenderedBrief:
        """Say what runs before this one did about an error's output: what worked, in how many of them.

        `repo` is what somebody calls the repository, `project` exactly what the bank does.
        """
        from archivist.brief import healing_service as healing

        told = healing.heal(
            self._bank, error, tool=tool, command=command, repo=repo, project=project, run=run
        )
        return _fence_brief(told) if is_fenced else told
