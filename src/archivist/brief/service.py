"""Select the lessons of a brief, and give briefs.

A cold process of the command line runs only this, so heavier modules are imported where they are needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, reads
from archivist.brief.record_service import deliver, search_records
from archivist.brief.render import explain_habits, present_text, render_brief
from archivist.brief.select import (
    GENERAL,
    BriefedLesson,
    BriefFormat,
    BriefPreset,
    BriefRequest,
    LeftLesson,
    RenderedBrief,
    drop_contradicted,
    fit_to_sandbox,
    is_of_person,
    leave_told,
    name_whole_suites,
    order_issues,
    rules_for,
)
from archivist.brief.works import NO_HABITS, Habits, cached_habits, find_approvals, read_habits
from archivist.clock import to_text
from archivist.config import BriefRules
from archivist.records import Category, Lesson, LessonType, Provenance, Status
from archivist.service import BankService
from archivist.store.filters import (
    Condition,
    any_of,
    at_least,
    contains_item,
    equals,
    not_equals,
    one_of,
    refuse_many,
)
from archivist.store.results import TextQuery
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.bank import Bank
    from archivist.store.protocol import Reader

    CountTokens = Callable[[str], int]

_HITS = 50
# A large project's most frequent and latest lessons are weighed, this many for each status, and the best of
# those are loaded: a bank of 10,000 lessons then takes no longer than a small one.
_WEIGHED = 150
_LOADED = 40
_WEIGHTS = ("id", "number", "status", "frequency", "importance", "last_seen", "rule", "remedies")
# More sightings make a lesson no more likely.
_COUNTED = 50
# A subagent makes a few of a session's calls, and so meets few of its failures.
_OF_SUBAGENT = 0.5
# The working tree is asked about this many times what is chosen: what would replace a stale lesson, too.
_IN_RESERVE = 4
# The id of a brief is not known before it is recorded, but its length is.
_ID_CHARACTERS = 26
_UNSAID_BY_FOLDER = "the folder does not say which"
_UNSAID = "neither the folder nor the words of the task say which"
# Above this many documents scoring every word took longer than a hook has; only rare words are scored then.
_SCORED = 5_000
# The kinds of records that decide what a project has met.
_MET_OF = frozenset(("lesson", "episode", "brief", "verdict"))
# The commands that work take this part of the budget at most.
_SHARE_OF_HABITS = 3
_USAGE = ("usage:", "unfiltered:")
OVERCOME = "out of date: "
_NO_ROOM = "did not fit: others were seen more often"
_ORDER = (
    "order: what a person said or approved, by importance, recency and relevance to the task; then by the"
    " chance that the next run meets it, its importance and trust; what was seen once comes last"
)
# So many of the lessons that are left out are named with the reason.
_LEFT = 50


class Briefs(BankService):
    """What is put into the prompt of a run."""

    @reads(Layer.LESSONS)
    def brief(
        self,
        /,
        request: BriefRequest | None = None,
        *,
        global_bank: Bank | None = None,
        tokens: CountTokens | None = None,
        **fields: Any,
    ) -> RenderedBrief:
        """Say what a new run should know; with a run, record it. `fields` are those of a BriefRequest.

        A request about a project, or about nothing in the folder of one, is answered with what that project
        met: how often, how lately, and what helped, within a budget that `tokens` counts. Any other is
        answered with the known issues of the domain and role, as many as the rules say unless the request
        names a budget.
        """
        asked, said_by = request or BriefRequest(**fields), ""
        if asked.is_about_nothing:
            from archivist.projects import resolve_project, run_projects

            with self._bank.reading() as reader:
                project, said_by = resolve_project(reader, "", self._bank.folder, self._bank.root)
                project, said_by = (project, said_by) if project in run_projects(reader) else ("", "")
            # Whoever has a role asks as that role.
            asked = asked._replace(project=project, role=self._bank.actor.role)
        selection = select_lessons(self._bank, asked, global_bank=global_bank, tokens=tokens)
        selection = selection._replace(project_by=selection.project_by or said_by)
        # Other forms are read by programs, or documented word by word.
        is_text = asked.presentation()[0] is BriefFormat.MARKDOWN
        # A role that asks for nothing else begins its cycle: core memory is always in its context.
        is_dispatch = (
            asked.form is None and not asked.preset and asked.audience == BriefRequest(role=asked.role)
        )
        has_core = is_text if asked.is_about_project else is_dispatch and bool(asked.role)
        told = deliver(self._bank, selection, asked, global_bank=global_bank, has_core=has_core)
        if told.chosen:
            return told
        from archivist.brief.empty_service import explain_empty

        return told._replace(why_no_lesson=explain_empty(self._bank, told, asked))

    @reads(Layer.LESSONS)
    def reasons(self, brief: RenderedBrief) -> list[str]:
        """Return why each lesson is in a brief and stands where it does, and which are withheld or stale."""
        from archivist.brief.rank import is_said, trust_in
        from archivist.records import Tally

        with self._bank.reading() as reader:
            tallies = reader.tallies([each.lesson.id for each in brief.chosen])
            project, said_by = brief.project, brief.project_by
            if not said_by:
                project, said_by = _resolve_project(self._bank, reader, project, [])
        lines = [f"{f'project {project}' if project else 'no project'}: {said_by}"] if said_by else []
        if brief.chances and brief.chosen[1:]:
            lines.append(_ORDER)
        for each in brief.chosen:
            tally = tallies.get(each.lesson.id, Tally())
            judged = tally.helpful + tally.ineffective
            helped = (
                f"helped in {tally.helpful} of {judged} judged runs"
                if judged
                else "no run has shown yet whether it helps"
            )
            why = f"met in {each.lesson.met_in}"
            if is_said(each.lesson):
                why = f"said or approved by a person, {why}"
            elif each.lesson.id in brief.chances:
                why += f", chance that the next run meets it {brief.chances[each.lesson.id]:.0%}"
            lines.append(f"{each.name}: {why}; {helped}: trust {trust_in(tally):.2f}")
        lines += explain_habits(brief.habits)
        lines += [f"{each.name}: randomly withheld, to measure its effect" for each in brief.withheld]
        return [*lines, *(f"{name}: stale, {reason}" for name, reason in brief.stale)]

    @reads(Layer.LESSONS)
    def left_out(
        self, brief: RenderedBrief, request: BriefRequest, *, limit: int = _LEFT
    ) -> list[tuple[str, str, str]]:
        """Return name, summary and reason of lessons that a brief does not tell, a person's own first."""
        from archivist.projects import all_projects, names_of
        from archivist.recall.query import EVERY_REPO, LIVE, Query

        weighed = sorted(brief.left, key=lambda each: not is_of_person(each.lesson.lesson))
        left = {each.lesson.name: (each.lesson.lesson.summary, each.reason) for each in weighed}
        if len(left) >= limit:
            return [(name, *words) for name, words in left.items()][:limit]
        known = {*left, *(each.name for each in (*brief.chosen, *brief.withheld)), *dict(brief.stale)}
        with self._bank.reading() as reader:
            others = all_projects(reader).difference(names_of(reader, brief.project))
        query = Query(repo=EVERY_REPO, other_repos=frozenset(others), statuses=(*LIVE, Status.QUARANTINED))
        query = query._replace(limit=limit + len(known))
        for lesson in self._bank.lessons.page(query):
            if lesson.short_id not in known:
                left[lesson.short_id] = (lesson.summary, _explain_unweighed(lesson, request))
        return [(name, *words) for name, words in left.items()][:limit]

    @reads(Layer.LESSONS)
    def explain_selection(self, brief: RenderedBrief, request: BriefRequest) -> list[str]:
        """Return why each lesson is in a brief or is not, and how many of a person's own did not fit."""
        left = [f"{name}: left out, {reason}" for name, _, reason in self.left_out(brief, request)]
        retired = [] if request.repo else self._bank.audits.retired_again()
        left += [f"{each.lesson}: archived, {each.reason}" for each in retired]
        return [*self.reasons(brief), *left, *filter(None, [brief.count_crowded()])]

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
        provider: str = "",
        fence: bool = False,
    ) -> RenderedBrief:
        """Say what earlier runs did about an error's output: what worked, and in how many of them.

        `repo` is a name that somebody gave, `project` the exact name in the bank.
        """
        from archivist.brief.healing_service import HealRequest, heal

        found = heal(self._bank, error, HealRequest(tool, command, repo, project, run, provider))
        text = present_text(found.text, BriefFormat.MARKDOWN, is_fenced=fence, lessons=found.chosen)
        if text:
            return found._replace(text=text)
        why = "no remedy known for this error"
        if calls := self._bank.failing_calls.find_calls(error, repo or project):
            why += f"; earlier runs met it: {', '.join(call.name for call in calls)}"
        return found._replace(text="", why_no_lesson=why)


def _explain_unweighed(lesson: Lesson, request: BriefRequest) -> str:
    """Return why a lesson was not even weighed for a request."""
    if lesson.status is Status.QUARANTINED or lesson.is_waiting:
        return "waits for approval"
    from archivist.reading.tool_names import find_matching_tools

    facets = _asked_facets(request._replace(role="") if lesson.is_learnt_hint else request)
    fits = [getattr(lesson, name) in (word, "") for name, word in facets.items()]
    fits.append(not request.tool or not lesson.tool or bool(find_matching_tools(request.tool, [lesson.tool])))
    fits.append(not request.domain or lesson.domain in (request.domain, GENERAL))
    if not all(fits) or (request.tags and lesson.tags and not {*request.tags} & {*lesson.tags}):
        return "for another domain, role, provider, tool or tag"
    if lesson.signature and not lesson.repo:
        return "learnt where the repository was unknown"
    if lesson.status is Status.CANDIDATE and not request.is_about_project:
        return "seen in one run only"
    return "less often seen than what is told"


def _asked_facets(request: BriefRequest) -> dict[str, str]:
    facets = {"role": request.role, "provider": request.provider}
    return {name: word for name, word in facets.items() if word}


def select_lessons(
    bank: Bank,
    request: BriefRequest,
    *,
    global_bank: Bank | None = None,
    tokens: CountTokens | None = None,
) -> RenderedBrief:
    """Choose the lessons that answer a request, within its limits; its text is counted, not kept."""
    rules = rules_for(request, bank.config.brief)
    form, is_fenced = request.presentation()

    def count_tokens(chosen: Sequence[BriefedLesson], habits: Habits = NO_HABITS) -> int:
        text = present_text(
            render_brief(chosen, form, habits),
            form,
            is_fenced=is_fenced,
            brief_id="0" * _ID_CHARACTERS,
            lessons=chosen,
        )
        return -(-len(text) // CHARACTERS_PER_TOKEN) if tokens is None else tokens(text)

    if request.is_about_project:
        return _select_for_project(bank, request, rules, global_bank, tokens, count_tokens)
    return _select_known_issues(bank, request, rules, global_bank, count_tokens)


def _select_known_issues(
    bank: Bank,
    request: BriefRequest,
    rules: BriefRules,
    global_bank: Bank | None,
    count_tokens: Callable[[Sequence[BriefedLesson]], int],
) -> RenderedBrief:
    """Choose the most frequent active lessons of both banks that are for an audience, or for everybody.

    Of lessons of a project those of the folder's count.
    """
    project, said_by = "", ""
    sources = [source for source in (bank, global_bank) if source is not None]

    def has_projects(source: Bank) -> bool:
        with source.reading() as reader:
            return bool(reader.values("lesson", "repo"))

    if any(map(has_projects, sources)):
        with bank.reading() as reader:
            project, said_by = _resolve_project(bank, reader, "", [])
    conditions = equals("status", Status.ACTIVE), equals("is_waiting", 0), one_of("repo", (project, ""))
    offered: list[BriefedLesson] = []
    left: list[LeftLesson] = []
    for source in sources:
        with source.reading() as reader:
            fitting = _audience_conditions(reader, request.audience)
            if request.domain:
                fitting.append(one_of("domain", (request.domain, GENERAL)))
            lessons = reader.select(
                Lesson,
                *conditions,
                *([any_of(fitting, (at_least("frequency", rules.always_at_frequency),))] if fitting else ()),
                order=("-frequency", "number"),
                limit=2 * rules.max_lessons,
            )
            timeouts = _find_timeouts(reader, (project, ""), request.provider)
            lessons = fit_to_sandbox(lessons, partial(_approvals, reader, project, request))
            lessons, overcome = leave_overcome(lessons, cached_habits(reader, project))
        left += overcome
        offered += [
            _mark_source(bank, source, lesson)
            for lesson in lessons
            if not _is_of_others(lesson, timeouts, request.provider)
        ]
    live, stale = _drop_stale(bank, drop_contradicted(offered))
    live = order_issues(live, request.role)
    chosen = live[: rules.max_lessons]
    if request.budget_tokens is not None:
        fitting_lessons: list[BriefedLesson] = []
        for each in chosen:
            if count_tokens([*fitting_lessons, each]) <= request.budget_tokens:
                fitting_lessons.append(each)
        chosen = fitting_lessons
    told = {each.name for each in chosen}
    left += [LeftLesson(each, _NO_ROOM, is_crowded=True) for each in live if each.name not in told]
    return RenderedBrief(
        "", tuple(chosen), stale=stale, project=project, project_by=said_by, left=tuple(left)
    )


def _mark_source(bank: Bank, source: Bank, lesson: Lesson) -> BriefedLesson:
    is_team = source is bank.team
    return BriefedLesson(lesson, is_global=source is not bank and not is_team, is_team=is_team)


def _join_lessons(own: list[BriefedLesson], others: list[BriefedLesson]) -> list[BriefedLesson]:
    """Return the lessons of both banks; what a team has too is told once, as the team has it."""
    same = {each.lesson.signature or each.lesson.summary for each in others if each.is_team}
    return [*(each for each in own if (each.lesson.signature or each.lesson.summary) not in same), *others]


def _audience_conditions(reader: Reader, audience: BriefRequest) -> list[Condition]:
    """Return the conditions that keep what is for this role, provider and tool, and what is for none.

    A lesson with tags must have one of those asked for. The role of a learnt hint says who finds it, and the
    others make the mistake.
    """
    facets = _asked_facets(audience)
    conditions: list[Condition] = [one_of(field, (word, "")) for field, word in facets.items()]
    if "role" in facets:
        of_reviews = one_of("provenance", (Provenance.REVIEWED, Provenance.SHARED))
        is_learnt = (equals("type", LessonType.ARCHETYPE_HINT), of_reviews)
        conditions[0] = any_of((conditions[0],), is_learnt)
    if audience.tool:
        from archivist.reading.tool_names import find_matching_tools

        rows = reader.select_fields(Lesson, ("tool",), not_equals("tool", ""))
        tools = find_matching_tools(audience.tool, (str(tool) for (tool,) in rows))
        conditions.append(one_of("tool", (audience.tool, *tools, "")))
    if audience.tags:
        refuse_many("tags", audience.tags)
        has_tag = ((contains_item("tags", tag),) for tag in audience.tags)
        conditions.append(any_of(*has_tag, (equals("tags", "[]"),)))
    return conditions


def _select_for_project(
    bank: Bank,
    request: BriefRequest,
    rules: BriefRules,
    global_bank: Bank | None,
    tokens: CountTokens | None,
    count_tokens: Callable[[Sequence[BriefedLesson], Habits], int],
) -> RenderedBrief:
    """Choose what the project of a request met, best first; likeness to the task settles ties."""
    from archivist.brief.rank import documented_score, rank_lessons
    from archivist.projects import names_of
    from archivist.recall.keywords import keywords

    words, audience, project, said_by = sorted(keywords(request.task)), request.audience, request.project, ""
    with bank.reading() as reader:
        if not project:
            project, said_by = _resolve_project(bank, reader, request.repo, words, request.task)
        ranked = partial(_project_lessons, bank, reader, project, audience)
        lessons, chances = reader.get_cached(("met", project, audience), ranked, kinds=_MET_OF)
        habits = cached_habits(reader, project).for_client(request.provider)
        hits, tallies = _search_lessons(reader, words), reader.tallies([lesson.id for lesson in lessons])
        timeouts = _find_timeouts(reader, names_of(reader, project), request.provider)
        lessons = [each for each in lessons if not _is_of_others(each, timeouts, request.provider)]
        lessons = fit_to_sandbox(lessons, partial(_approvals, reader, project, request))
        lessons, overcome = leave_overcome(name_whole_suites(lessons), habits)
    offered = list(map(BriefedLesson, lessons))
    if global_bank is not None:
        # The global bank is about the user, a team's about the same projects.
        of = project if (is_team := global_bank is bank.team) else ""
        with global_bank.reading() as reader:
            theirs, their_chances = _project_lessons(global_bank, reader, of, audience)
            chances = {**chances, **their_chances}
            tallies |= reader.tallies([lesson.id for lesson in theirs])
            if is_team and habits == NO_HABITS:
                habits = read_habits(reader, project)
        offered = _join_lessons(offered, [_mark_source(bank, global_bank, lesson) for lesson in theirs])

    if request.preset == BriefPreset.SUBAGENT:
        # The user does not speak with it, so it is not told what they often ask for.
        offered = [each for each in offered if not each.lesson.is_request]
        chances = {name: chance * _OF_SUBAGENT for name, chance in chances.items()}
        habits = habits.for_subagent()
    rank = partial(rank_lessons, chances=chances, similarity=hits, tallies=tallies, tokens=tokens)
    rank = partial(rank, score=partial(documented_score, rules=bank.config.recall, now=bank.now()))
    shown, stale, left = _shortlist(bank, offered, rules, rank)
    left += overcome
    chosen, unfitting = rank(shown, rules=rules)
    room = rules.budget_tokens
    habits = leave_told(_leave_slow(habits, timeouts, request.provider), chosen)
    habits = _fit_habits(habits, lambda some: count_tokens((), some) <= room // _SHARE_OF_HABITS)
    # The heading and the fence take room from the lessons; ranking anew may let a shorter lesson in.
    while chosen and (excess := count_tokens(chosen, habits) - rules.budget_tokens) > 0:
        room -= excess
        chosen, unfitting = rank(shown, rules=rules._replace(budget_tokens=room))
    found = RenderedBrief("", tuple(chosen), stale=stale, left=(*left, *unfitting))
    met = {each.lesson.id: chances[each.lesson.id] for each in chosen if each.lesson.id in chances}
    return found._replace(project=project, project_by=said_by, habits=habits, chances=met)


def _approvals(reader: Reader, project: str, request: BriefRequest) -> str:
    from archivist.projects import names_of

    is_subagent = request.preset == BriefPreset.SUBAGENT
    return "never" if is_subagent else find_approvals(reader, names_of(reader, project), request.provider)


def _shortlist(
    bank: Bank,
    offered: Sequence[BriefedLesson],
    rules: BriefRules,
    rank: Callable[..., tuple[list[BriefedLesson], list[LeftLesson]]],
) -> tuple[list[BriefedLesson], tuple[tuple[str, str], ...], list[LeftLesson]]:
    """Return more likely lessons than a brief has room for, the stale ones, and why others are left out."""
    reserve = rules._replace(
        max_task_lessons=rules.max_task_lessons * _IN_RESERVE,
        budget_tokens=rules.budget_tokens * _IN_RESERVE,
        max_candidates=rules.max_candidates * _IN_RESERVE,
    )
    likely, left = rank(offered, rules=reserve)
    agreed = drop_contradicted(likely)
    live, stale = _drop_stale(bank, agreed)
    shown = _drop_shown(live)
    left += [
        LeftLesson(each, "another wish contradicts it and holds") for each in likely if each not in agreed
    ]
    left += [
        LeftLesson(each, "about the same calls as a better lesson") for each in live if each not in shown
    ]
    return shown, stale, left


def leave_overcome(lessons: Sequence[Lesson], habits: Habits) -> tuple[list[Lesson], list[LeftLesson]]:
    """Return lessons without the warnings that are out of date, and those with the reason.

    Where a remedy is known, runs may do well by following it.
    """
    reasons = {
        lesson.id: habits.explain_overcome(lesson.signature, lesson.tags)
        for lesson in lessons
        if lesson.signature
        and not (lesson.remedies or lesson.confirmed)
        # A call that is written wrongly stays wrong, however often the program succeeds otherwise.
        and not lesson.signature.partition("|")[2].startswith(_USAGE)
    }
    kept = [lesson for lesson in lessons if not reasons.get(lesson.id)]
    left = ((lesson, why) for lesson in lessons if (why := reasons.get(lesson.id)))
    return kept, [LeftLesson(BriefedLesson(lesson), f"{OVERCOME}{why}") for lesson, why in left]


def _find_timeouts(reader: Reader, names: Sequence[str], provider: str) -> dict[str, set[str]]:
    """Return the commands of a project that time out with one provider where another does well.

    Each has the names of those providers. Without a provider nobody asks.
    """
    if not provider:
        return {}
    rows = reader.select_fields(
        Lesson,
        ("signature", "provider", "tool"),
        one_of("repo", names),
        equals("category", Category.PROVIDER_QUIRK),
        one_of("status", (Status.ACTIVE, Status.CANDIDATE)),
        contains_item("tags", "timeout"),
    )
    found: dict[str, set[str]] = {}
    for signature, name, command in rows:
        # Of the models of one provider the lesson itself tells.
        if f"|provider:{name}:" in signature:
            found.setdefault(command, set()).add(name)
    return found


def _is_of_others(lesson: Lesson, timeouts: dict[str, set[str]], provider: str) -> bool:
    """Say whether a lesson warns of a time-out that other providers have and this one has not."""
    family = lesson.signature.partition("|")[2]
    return any(
        provider not in slow and family.startswith(f"timeout:{command}:")
        for command, slow in timeouts.items()
    )


def _leave_slow(habits: Habits, timeouts: dict[str, set[str]], provider: str) -> Habits:
    """Leave out commands that time out with this provider; a part of what is slow may do well."""
    slow = [command for command, names in timeouts.items() if provider in names]
    works = (
        each
        for each in habits.works
        if each.purpose == "one test"
        or not any(f"{each.command} ".startswith(f"{command} ") for command in slow)
    )
    return habits._replace(works=tuple(works)) if slow else habits


def _drop_shown(lessons: Sequence[BriefedLesson]) -> list[BriefedLesson]:
    """Leave out lessons about the same events as better ones: they only name another message.

    So does a mined one beside a person's words on the same call and remedy.
    """
    from archivist.brief.rank import is_said_beside

    shown: set[str] = set()
    kept: list[BriefedLesson] = []
    all_lessons = [each.lesson for each in lessons]
    for each in lessons:
        if is_said_beside(each.lesson, all_lessons):
            continue
        events = set(each.lesson.evidence.events)
        # One message may say several wishes, and which provider does well is another thing to know.
        is_apart = each.lesson.type is LessonType.PREFERENCE or bool(each.lesson.provider) or not events
        if is_apart or not events <= shown:
            kept.append(each)
        shown |= events
    return kept


def _fit_habits(habits: Habits, fits: Callable[[Habits], bool]) -> Habits:
    """Return as much of what fails as fits, and what works if that fits too."""
    while habits.fails and not fits(habits):
        habits = habits._replace(fails=habits.fails[:-1])
    return habits if fits(habits) else NO_HABITS


def _drop_stale(
    bank: Bank, offered: list[BriefedLesson]
) -> tuple[list[BriefedLesson], tuple[tuple[str, str], ...]]:
    """Leave out lessons that name something which is gone from the working tree; return those by name."""
    gone = bank.liveness.find_withheld([each.lesson for each in offered if each.is_own])
    if not gone:
        return offered, ()
    names = tuple((each.name, gone[each.lesson.id]) for each in offered if each.lesson.id in gone)
    return [each for each in offered if each.lesson.id not in gone], names


def _search_lessons(reader: Reader, words: list[str]) -> dict[str, float]:
    """Return how well lessons match the words of a task, by id; in a large bank only rare words count."""
    if not words:
        return {}
    query = TextQuery(tuple(words))
    if reader.document_count() > _SCORED:
        from archivist.recall.lexical import select_words

        query = select_words(
            query,
            lambda words, most: reader.count_documents_with(words, at_most=most),
            _SCORED,
        )
    if not query:
        return {}
    return search_records(reader, query, "lesson", _HITS)


def _resolve_project(
    bank: Bank, reader: Reader, repo: str, words: list[str], task: str = ""
) -> tuple[str, str]:
    """Return the project that a brief is about, and how that was decided."""
    from archivist import projects

    project, said_by = projects.resolve_project(reader, repo, bank.folder, bank.root, task)
    if project:
        return project, said_by
    if bank.team is not None:
        with bank.team.reading() as team:
            return _resolve_project(bank.team, team, repo, words, task)
    if not words:
        # In a bank without projects there is nothing to decide.
        return "", _UNSAID_BY_FOLDER if projects.all_projects(reader) else ""
    from archivist.brief.rank import project_of

    ids = list(search_records(reader, TextQuery(tuple(words)), "episode", _HITS))
    runs = reader.records("episode", ids).values()
    project = project_of(frozenset(words), [(run.project, run.task) for run in runs if run.project])
    return project, "by the words of the task" if project else _UNSAID


def _project_lessons(
    bank: Bank, reader: Reader, project: str, audience: BriefRequest
) -> tuple[list[Lesson], dict[str, float]]:
    """Return the live lessons of a project and of none, and how likely the next run is to meet each."""
    from archivist import projects
    from archivist.brief.rank import chance_of, standing_chance
    from archivist.records import Episode

    names = projects.names_of(reader, project)
    own_runs = one_of("project", names), equals("parent", ""), equals("provenance", Provenance.MINED)
    runs = reader.select_fields(Episode, ("id", "finished"), *own_runs)
    ended = sorted((str(time), str(run)) for run, time in runs if time)
    # What nobody here vouches for is told to no run.
    conditions = (
        one_of("repo", (*names, "")),
        equals("is_waiting", 0),
        *_audience_conditions(reader, audience),
    )
    finished = [time for time, _ in ended]
    lessons = _top_lessons(reader, conditions, finished)
    strays = {lesson.id for lesson in lessons if lesson.signature and not lesson.repo} if project else set()
    if strays:
        # Mined where the repository was unknown: it may be about any.
        lessons = [lesson for lesson in lessons if lesson.id not in strays]
    # Most lessons of a project in which nothing recurs are in the archive already.
    mined = one_of("repo", names), not_equals("type", LessonType.PREFERENCE)
    again = reader.count(Lesson, *mined, equals("status", Status.ACTIVE))
    # Before much is known, two of five are taken to recur.
    recurrence = (again + 2) / (reader.count(Lesson, *mined) + 5)
    place = {run: len(ended) - 1 - index for index, (_, run) in enumerate(ended)}
    chances: dict[str, float] = {}
    numbers = projects.RunNumbers(reader)
    for lesson in lessons:
        ages = [place[run] for run in lesson.runs if run in place]
        if lesson.repo in names and ages:
            # While it was followed, its failure could not be met.
            # Each time it faded, the count of runs that did not meet it began again.
            unseen = numbers.count_unseen(lesson) + lesson.faded * bank.config.decay.unseen_runs
            heeded = max(0, min(ages) - unseen)
            ages = [age - heeded for age in ages]
        else:
            # Met elsewhere: how often is all that is known.
            ages = [_runs_since(finished, lesson.last_seen)] * min(lesson.frequency, _COUNTED)
        chances[lesson.id] = standing_chance(lesson, chance_of(ages, len(ended), recurrence))
    return lessons, chances


def _top_lessons(reader: Reader, conditions: Sequence[Condition], ended: list[str]) -> list[Lesson]:
    """Return the live lessons; of a large project those that score highest by what their rows say.

    A lesson that scores high was met often or lately, and both are read from an index.
    """
    from archivist.brief.rank import chance_of, merit

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
        since = len(ended) - bisect_right(ended, last_seen or "")
        has_remedy = rule != "" or remedies != "[]"
        chance = chance_of([since] * min(frequency, _COUNTED), len(ended), 1.0)
        return (
            status == Status.CANDIDATE.value,
            -merit(chance, importance, has_remedy, tallies.get(lesson)),
            number,
        )

    best = sorted(rows.values(), key=key)[:_LOADED]
    return list(reader.records("lesson", [str(row[0]) for row in best]).values())


def _runs_since(ended: list[str], last_seen: datetime | None) -> int:
    return len(ended) - (bisect_right(ended, to_text(last_seen)) if last_seen else 0)
