"""Ask for a brief, choose its lessons, and withhold some of them to measure what they do.

Every door builds a `BriefRequest`, so that the same question has the same answer everywhere. The classes have
no postponed annotations: a hook makes them on its way, and compiling annotations from text costs it time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.brief.works import NO_HABITS, Habits
from archivist.config import BriefRules
from archivist.records.words import OUTSIDE_ADVICE, OUTSIDE_ADVICE_FOR_ALL, OUTSIDE_SANDBOX

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A hook that finds nothing to say need not make the record's class for an annotation.
    Lesson = Any

GENERAL = "general"
# The global bank and the project's both number their lessons from one, so that its names need a mark.
GLOBAL_MARK = "global-"
# What is advised against a sandbox, and what an agent without approvals can do instead.
_ASKS = {OUTSIDE_ADVICE: "report it as not run", OUTSIDE_ADVICE_FOR_ALL: "report them as not run"}
_USE_OTHERS = ", and use the checks that work"
_WORKED = " (worked in "
# In the key of a lesson on a way to run some tests that runs them all.
_UNFILTERED = "|unfiltered:"
# A lesson quotes so much of a test's name at least.
_NAMED_BY = 40


class BriefFormat(StrEnum):
    """The forms of a brief's text."""

    MARKDOWN = "markdown"
    KNOWN_ISSUES = "known-issues"
    YAML = "yaml"


class BriefPreset(StrEnum):
    """Who reads the brief: an orchestrator, a subagent, a reviewer, a healer."""

    ORCHESTRATOR = "orchestrator"
    SUBAGENT = "subagent"
    REVIEWER = "reviewer"
    HEALER = "healer"


class BriefRequest(NamedTuple):
    """Everything that a caller can ask of a brief.

    `repo` is a name that somebody gave, `project` the exact name in the bank. A brief with a run is recorded.
    `preset` and `form` are words of BriefPreset and BriefFormat. Where `form` or `fence` is None,
    `presentation` decides; where a limit is None, the configuration does.
    """

    task: str = ""
    repo: str = ""
    project: str = ""
    run: str = ""
    domain: str = ""
    role: str = ""
    provider: str = ""
    tool: str = ""
    tags: tuple[str, ...] = ()
    preset: str | None = None
    form: str | None = None
    fence: bool | None = None
    max_lessons: int | None = None
    budget_tokens: int | None = None

    @property
    def audience(self) -> "BriefRequest":
        """Return what the request says of who is briefed; an empty word means anybody."""
        return BriefRequest(
            domain=self.domain,
            role=self.role,
            provider=self.provider,
            tool=self.tool,
            tags=tuple(self.tags),
        )

    @property
    def is_about_project(self) -> bool:
        """Say whether the brief is about the work on one project; otherwise it lists known issues."""
        return bool(self.task or self.repo or self.project) or self.preset == BriefPreset.SUBAGENT

    @property
    def is_about_nothing(self) -> bool:
        """Say whether nothing was asked: then it is what the next session in the folder is told.

        The section of known issues is a list of its own.
        """
        is_list = self.form == BriefFormat.KNOWN_ISSUES
        return not (self.is_about_project or is_list or any((*self.audience, self.preset)))

    def presentation(self) -> tuple[BriefFormat, bool]:
        """Decide the form of the text, and whether it is fenced.

        A brief about a project goes into a prompt: markdown, between marks that keep its words from being
        mined again. YAML is read by programs, which the marks would disturb.
        """
        usual = BriefFormat.MARKDOWN if self.is_about_project else BriefFormat.KNOWN_ISSUES
        form = BriefFormat(self.form) if self.form else usual
        is_fenced = self.is_about_project and form is not BriefFormat.YAML
        return form, is_fenced if self.fence is None else self.fence

    def for_run(self, run: str) -> "BriefRequest":
        """Return the request of a run that starts; with a domain it asks for the domain's known issues."""
        return self._replace(run=run, task="" if self.domain else self.task)


def rules_for(request: BriefRequest, rules: BriefRules) -> BriefRules:
    """Return the limits of a brief: the request's own, else the preset's, else the configured ones."""
    if request.preset == BriefPreset.SUBAGENT:
        # A subagent has one small job: about half as much serves it.
        rules = rules._replace(
            max_task_lessons=max(1, (rules.max_task_lessons + 1) // 2),
            budget_tokens=max(1, rules.budget_tokens // 2),
            max_candidates=min(1, rules.max_candidates),
        )
    most = request.max_lessons
    if most is not None:
        rules = rules._replace(max_lessons=most, max_task_lessons=most)
    return rules if request.budget_tokens is None else rules._replace(budget_tokens=request.budget_tokens)


def global_mark_of(name: str) -> str:
    """Return the mark of the global bank where a lesson's name has it, as in `global-m-001`; else nothing."""
    return GLOBAL_MARK if name.startswith(f"{GLOBAL_MARK}m-") else ""


class BriefedLesson(NamedTuple):
    """A lesson of a brief, and whether it comes from the user's global bank, or their team's."""

    lesson: Lesson
    is_global: bool = False
    is_team: bool = False

    @property
    def is_own(self) -> bool:
        """Say whether it comes from the bank that is asked, not from the other one."""
        return not (self.is_global or self.is_team)

    @property
    def mark(self) -> str:
        """Return where it comes from, if not from the bank that is asked."""
        return "team" if self.is_team else "global" if self.is_global else ""

    @property
    def name(self) -> str:
        """Return its short id, which is unique among the lessons of both banks."""
        return f"{self.mark}-{self.lesson.short_id}" if self.mark else self.lesson.short_id


class LeftLesson(NamedTuple):
    """A lesson that a brief does not tell, and why; `is_crowded` if it would be told in a longer brief."""

    lesson: BriefedLesson
    reason: str
    is_crowded: bool = False


class RenderedBrief(NamedTuple):
    """A brief: its text, the lessons in it, and the id of its record when it was recorded.

    `withheld` are the lessons that the hold-out kept back, `stale` the names of stale ones, each with its
    reason, `left` the others that were weighed and are not told. `project` is the project that the brief is
    about, `project_by` how that was decided, `habits` what works and what often fails in it, `chances` the
    chance of each lesson of a project that the next run meets it, `why_no_lesson` the reason if it has none.
    """

    text: str
    chosen: tuple[BriefedLesson, ...]
    brief_id: str = ""
    withheld: tuple[BriefedLesson, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    project: str = ""
    project_by: str = ""
    habits: Habits = NO_HABITS
    left: tuple[LeftLesson, ...] = ()
    chances: Mapping[str, float] = MappingProxyType({})
    why_no_lesson: str = ""

    def count_crowded(self) -> str:
        """Say how many lessons that a person wrote, said or approved did not fit; empty without any."""
        own = [each for each in self.left if each.is_crowded and is_of_person(each.lesson.lesson)]
        if not own:
            return ""
        many = "1 more lesson of yours" if len(own) == 1 else f"{len(own)} more lessons of yours"
        return f"{many} did not fit: archivist brief --explain names them, --max and --budget make room"

    def count_stale(self) -> str:
        """Say how many lessons are not told since what they name is gone; empty without any."""
        if not self.stale:
            return ""
        many = "1 lesson is" if len(self.stale) == 1 else f"{len(self.stale)} lessons are"
        return f"{many} withheld: what is named there is gone from the working tree (see `archivist doctor`)"


def drop_contradicted(offered: list[BriefedLesson]) -> list[BriefedLesson]:
    """Of wishes that contradict each other keep the one that holds: the project's own, else the later.

    What a file or a colleague brought never silences what the user said here.
    """
    wishes = [each for each in offered if each.lesson.type == "preference"]
    if not wishes[1:]:
        return offered
    from archivist.lessons.contradiction import find_contradicted, standing_of

    wishes.sort(
        key=lambda each: (
            each.lesson.provenance.is_own,
            bool(each.lesson.repo),
            not each.is_global,
            standing_of(each.lesson),
        )
    )
    dropped: set[str] = set()
    for place, each in enumerate(wishes):
        if find_contradicted(each.lesson, (later.lesson for later in wishes[place + 1 :])):
            dropped.add(each.name)
    return [each for each in offered if each.name not in dropped]


def order_issues(issues: Iterable[BriefedLesson], role: str) -> list[BriefedLesson]:
    """Return known issues, the most frequent first; what two domains say alike is told once.

    Of those as frequent as each other the bank's own come first, then those of the asking role, then what is
    more important.
    """
    ordered = sorted(
        issues,
        key=lambda each: (
            -each.lesson.frequency,
            not each.is_own,
            bool(role) and each.lesson.role != role,
            -each.lesson.importance,
            each.lesson.number,
        ),
    )
    firsts: dict[str, BriefedLesson] = {}
    for each in ordered:
        firsts.setdefault(each.lesson.summary.casefold(), each)
    return list(firsts.values())


def leave_told(habits: Habits, chosen: Sequence[BriefedLesson]) -> Habits:
    """Leave out what a lesson advises or says to fail, and commands that every run finds without being told.

    A lesson on how to test names a right command.
    """
    words = {each.name: f"{each.lesson.summary} {each.lesson.rule}" for each in chosen}
    said = " ".join(words.values())
    warned = " ".join(words[each.name] for each in chosen if each.lesson.category != "test_strategy")
    advised = {remedy for each in chosen for remedy in each.lesson.remedies}
    # What mends the findings of a check is told with the check.
    is_fix_told = any(each.lesson.remedies and "|check:" in each.lesson.signature for each in chosen)
    works = [
        each
        for each in habits.works
        # That a default sometimes finds this or that is no news.
        if (not each.is_plain or (each.errors and 2 * each.found_in >= each.tried))
        and f"`{each.command}`" not in (said if each.errors else warned)
        and each.command not in advised
        and not (is_fix_told and each.purpose == "fix")
    ]
    # What a lesson or a command says of a call is not said again.
    shown = {event for each in chosen for event in each.lesson.evidence.events}
    shown.update(event for each in works for event in each.events)
    named = {each.command for each in works if each.errors}
    fails = (
        each
        for each in habits.fails
        if each.call not in named and f"`{each.call}`" not in said and shown.isdisjoint(each.events)
    )
    # One that fails by chance, or that failed before, has its lesson.
    failing = tuple(name for name in habits.failing_tests if name[:_NAMED_BY] not in said)
    return habits._replace(works=tuple(works), fails=tuple(fails), failing_tests=failing)


def says_to_ask(text: str) -> bool:
    """Say whether a text advises to ask for an approval."""
    return any(asks in text for asks in _ASKS)


def word_for_approvals(text: str, approvals: str) -> str:
    """Return advice about a sandbox as it holds where approvals are on, off or never; empty if unknown.

    How often asking worked is said of nothing else.
    """
    asks = next((asks for asks in _ASKS if asks in text), "")
    if not asks or approvals == "on":
        return text
    before, _, after = text.partition(asks)
    count = f"{after.partition(')')[0]})" if after.startswith(_WORKED) else ""
    after = after[len(count) :]
    if approvals in ("off", "never"):
        # The mode of one session may be another than that of the latest ones.
        ask = f"; where you can ask, {asks.removeprefix('ask to ')}{count}" if approvals == "off" else ""
        return f"{before}{_ASKS[asks]}{_USE_OTHERS}{ask}{after}"
    return f"{before}{asks}{count}; where nobody can be asked, {_ASKS[asks]}{after}"


def fit_to_sandbox(lessons: Sequence[Lesson], approvals: Callable[[], str]) -> list[Lesson]:
    """Return lessons with the advice about a sandbox that holds, as `approvals` says.

    A lesson that names all calls that the sandbox blocks stands for those on each of them.
    """
    if not any(says_to_ask(lesson.summary) for lesson in lessons):
        return list(lessons)
    from dataclasses import replace

    mode, of_all = approvals(), f":{OUTSIDE_SANDBOX}"
    clients = {lesson.provider for lesson in lessons if lesson.signature.endswith(of_all)}
    found: list[Lesson] = []
    for lesson in lessons:
        if says_to_ask(lesson.summary):
            if lesson.provider in clients and not (lesson.signature.endswith(of_all) or is_of_person(lesson)):
                continue
            summary, rule = (word_for_approvals(text, mode) for text in (lesson.summary, lesson.rule))
            lesson = replace(lesson, summary=summary, rule=rule)  # noqa: PLW2901
        found.append(lesson)
    return found


def name_whole_suites(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Return lessons that name all tests instead of a way to run some which another one says to run all.

    One that advises such a call is left out.
    """
    forms = [form for lesson in lessons if (form := lesson.signature.partition(_UNFILTERED)[2])]
    found: list[Lesson] = []
    for lesson in lessons if forms else ():
        told = f"{lesson.summary}\0{lesson.rule}"
        worded = told if _UNFILTERED in lesson.signature else _without_filters(told, forms)
        if worded != told and not is_of_person(lesson):
            from dataclasses import replace

            if any(_without_filters(f"`{each}`", forms) != f"`{each}`" for each in lesson.remedies):
                continue
            summary, _, rule = worded.partition("\0")
            lesson = replace(lesson, summary=summary, rule=rule)  # noqa: PLW2901
        found.append(lesson)
    return found or list(lessons)


def _without_filters(text: str, forms: Iterable[str]) -> str:
    spans = text.split("`")
    for form in forms:
        start, _, mark = form.partition("<")
        for at, call in enumerate(spans):
            named = call[len(start) :].partition(" ")[0] if at % 2 and call.startswith(start) else ""
            if named and named[0] not in "-|&;>2" and ("." in named or not mark.startswith("file")):
                spans[at] = start.partition(" -")[0].rstrip()
    return "`".join(spans)


def is_of_person(lesson: Lesson) -> bool:
    """Say whether a lesson in force is one that a person wrote, wished for or approved."""
    is_said = lesson.confirmed or lesson.source == "manual" or lesson.type == "preference"
    return is_said and lesson.status == "active"


def is_for(lesson: Lesson, provider: str) -> bool:
    """Say whether a lesson is for a provider: what one client's modes allow is no advice to others."""
    return not provider or lesson.provider in ("", provider)


def says_remedy(lesson: Lesson) -> bool:
    """Say whether the summary alone says what to do; a mined one does unless it was cut off.

    Of somebody else's mined lesson lists show the summary, so nothing else of it is ever told.
    """
    is_whole = not lesson.summary.endswith("…") or not lesson.provenance.is_own
    # A rule that a person typed need not repeat the summary; of a file's lesson the summary was approved.
    is_typed = lesson.confirmed and lesson.provenance.is_own
    is_repeated = not is_typed or lesson.rule.partition(" THEN ")[2] in lesson.summary
    return not lesson.rule or (bool(lesson.signature) and is_whole and is_repeated)


def is_withheld(run: str, lesson: str, share: float) -> bool:
    """Say whether the hold-out keeps a lesson from a run: a fixed random draw for each pair of the two."""
    if share <= 0 or not run:
        return False
    from archivist.cold_start import blake2b

    draw = blake2b(f"{run}\x00{lesson}".encode("utf-8", "replace"), digest_size=8, person=b"hold-out")
    return int.from_bytes(draw.digest()) < share * 2**64


def withhold(
    lessons: Iterable[BriefedLesson], run: str, share: float
) -> tuple[tuple[BriefedLesson, ...], tuple[BriefedLesson, ...]]:
    """Return the lessons that a run is given, and those that the hold-out keeps from it."""
    given: list[BriefedLesson] = []
    withheld: list[BriefedLesson] = []
    for each in lessons:
        (withheld if is_withheld(run, each.lesson.id, share) else given).append(each)
    return tuple(given), tuple(withheld)
