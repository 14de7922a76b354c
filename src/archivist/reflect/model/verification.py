"""Decide what of a model's answer holds: deterministic, by the events that it cites.

A claim must cite events of the run, and the commands, files, errors and numbers that it names must stand in
them. A remedy must have worked by the rule that mined remedies are judged by. What does not hold is dropped
with its reason, and counted. So a model, or the log that talked it into something, can word a lesson and
choose among what happened, but cannot make anything up that a later run would carry out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import MODEL_ORIGIN, Candidate
from archivist.lessons.support import CODE, advised_code, is_shown, names_in, normal_text
from archivist.reading.calls import CALL_KINDS
from archivist.reading.outcomes import has_worked
from archivist.reading.remedies import Remedy, RemedyKind, is_destructive, split_steps
from archivist.reading.rules import FailureKind
from archivist.reading.wording import advice, code, format_rule
from archivist.records import Category, Entry, EpisodeStatus, Event, Lesson
from archivist.records.run_words import TYPED
from archivist.reflect.miners.material import Case, Material, importance, make_candidate
from archivist.reflect.miners.wish_frames import LONGEST_WISH
from archivist.reflect.miners.wishes import make_wish
from archivist.reflect.model.questions.account import CitedLine, ProposedAccount
from archivist.reflect.model.questions.insights import ProposedInsight
from archivist.reflect.model.questions.joining import JoinedLesson
from archivist.reflect.model.questions.lessons import ProposedLesson
from archivist.reflect.model.questions.rewording import RewordedLesson
from archivist.reflect.model.questions.wishes import FoundWish
from archivist.reflect.own_words import own_words

_LONGEST_SUMMARY = 400
_LONGEST_ACCOUNT_LINE = 260
_LONGEST_INSIGHT = 900
# One entry is no pattern.
_LEAST_ENTRIES = 2
_MOST_LINES = 5
_MOST_CITED = 12
# How far a model may move an importance from what the rule for mined lessons gives.
_IMPORTANCE_REACH = 0.2
_TASK_IMPORTANCE = 0.4
_LEAST_JOINED = {"same": 2, "general": 3}
_STATUS_WORDS = frozenset(("the", "run", "ended", "as", "was", "is", "status", *EpisodeStatus))
_SUCCESS = lazy_pattern(
    r"(?<!not )(?<!n't )\b(?:pass(?:es|ed)?|succeed(?:s|ed)?|work(?:s|ed)|fixed)\b", re.IGNORECASE
)


class DropReason(StrEnum):
    """Why a claim of a model is dropped."""

    EMPTY = "empty or too long"
    UNCITED = "cites no event of the run"
    UNKNOWN_EVENT = "cites an event that does not exist"
    NAMELESS = "names nothing that can be checked"
    UNSUPPORTED = "names something that its events do not show"
    NO_FAILURE = "cites no failure that the run met"
    CHANCE = "one failure without a remedy may be chance"
    UNPROVEN = "its remedy is not shown to have worked"
    DESTRUCTIVE = "its remedy can destroy work or data"
    NOT_TYPED = "not in the user's own words"
    CONTRADICTED = "its events show the opposite"
    UNKNOWN_LESSON = "names a lesson that cannot be replaced"
    NOT_NEW = "says nothing else than the lesson does"
    COPIED = "repeats the record and says nothing about it"


class ClaimError(Exception):
    """A claim does not hold."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class EventTexts:
    """The events that a model may cite, by number, and what stands in them."""

    events: Mapping[int, Event]

    def require(self, numbers: Sequence[int]) -> list[Event]:
        """Return the cited events, or refuse the claim."""
        if not numbers:
            raise ClaimError(DropReason.UNCITED)
        wanted = list(dict.fromkeys(numbers))[:_MOST_CITED]
        if any(number not in self.events for number in wanted):
            raise ClaimError(DropReason.UNKNOWN_EVENT)
        return [self.events[number] for number in wanted]


def _event_text(event: Event) -> str:
    found = " ".join(finding.description for finding in event.findings)
    return normal_text(f"{event.text} {event.target} {event.tool} {event.output} {found}")


def require_shown(
    text: str, events: Iterable[Event], *, needs_names: bool = True, also: Iterable[str] = ()
) -> None:
    """Refuse a claim that names something which neither its events nor other texts show."""
    names = names_in(text)
    if not names and needs_names:
        raise ClaimError(DropReason.NAMELESS)
    texts = [*map(_event_text, events), *map(normal_text, also)]
    if not all(is_shown(name, texts) for name in names):
        raise ClaimError(DropReason.UNSUPPORTED)


def verify_lesson(
    claim: ProposedLesson, material: Material, texts: EventTexts, known: Mapping[str, Lesson]
) -> Candidate:
    """Return the candidate of a claim that holds; raise ClaimError otherwise.

    The remedies, the key, the scope and the tags are those that a miner would give it.
    """
    summary, rule = " ".join(claim.summary.split()), " ".join(claim.rule.split())
    if not summary or len(summary) > _LONGEST_SUMMARY or len(rule) > _LONGEST_SUMMARY:
        raise ClaimError(DropReason.EMPTY)
    cited = texts.require(claim.events)
    case = _cited_case(material, {event.id for event in cited})
    evidence = [*cited, *(texts.events[number] for number in _numbers(case.events) if number in texts.events)]
    # What is to be done may be said in words; only a command can be looked up.
    command = claim.remedy.strip("` ") if _is_command(claim.remedy.strip("` "), material) else ""
    proven = _proven_remedies(case)
    # What helped earlier runs is shown by their events.
    require_shown(
        f"{summary} {rule} {code(command) if command else ''}",
        evidence,
        also=(remedy.text for remedy in proven),
    )
    remedy = _matching_remedy(command, f"{summary} {rule}", proven)
    advised = advised_code(f"{summary} . {rule}")
    if any(map(is_destructive, (command, *advised))):
        raise ClaimError(DropReason.DESTRUCTIVE)
    is_advising = claim.kind == "remedy" or bool(command)
    if is_advising and remedy is None:
        raise ClaimError(DropReason.UNPROVEN)
    if not all(_is_of_remedy(span, remedy) for span in advised if _is_command(span, material)):
        raise ClaimError(DropReason.UNPROVEN)
    if remedy is None and not _is_lasting(case):
        raise ClaimError(DropReason.CHANCE)
    if remedy and not rule:
        rule = format_rule(f"{case.shown_command} fails", advice(remedy))
    environment = Category.INFRA if case.kind.is_environment else Category.TOOL_USAGE
    candidate = make_candidate(
        material,
        case,
        summary,
        rule=rule,
        remedies=(remedy.text,) if remedy and remedy.way is not RemedyKind.SAID else (),
        category=Category.BUGFIX_PATTERN if remedy and remedy.way is RemedyKind.EDIT else environment,
        words=(case.first.act.purpose, case.first.failure.subject),
    )
    older = known.get(claim.refines.strip())
    return replace(
        candidate,
        summary=summary,
        importance=bounded_importance(claim.importance, case, has_remedy=bool(candidate.remedies)),
        events=tuple(dict.fromkeys(event.id for event in evidence)),
        origin=MODEL_ORIGIN,
        supersedes=(older.id,) if older and older.signature == case.key else (),
    )


def bounded_importance(wanted: float, case: Case, *, has_remedy: bool) -> float:
    """Return a model's importance, no further from what the rule for mined lessons gives than it may be."""
    usual = importance(case, has_remedy=has_remedy)
    bounded = min(usual + _IMPORTANCE_REACH, max(usual - _IMPORTANCE_REACH, wanted))
    return round(min(0.95, max(0.0, bounded)), 3)


def usual_importance(
    material: Material, texts: EventTexts, numbers: Sequence[int], *, has_remedy: bool
) -> float:
    """Return what the rule for mined lessons gives for the failure that events show; 0 for none."""
    try:
        case = _cited_case(material, {event.id for event in texts.require(numbers)})
    except ClaimError:
        return 0.0
    return importance(case, has_remedy=has_remedy)


def _numbers(events: Iterable[str]) -> Iterator[int]:
    return (int(number) for event in events if (number := event.rpartition("#")[2]).isdecimal())


def _cited_case(material: Material, events: set[str]) -> Case:
    """Return the failure that a claim is about: the one most of whose events it cites."""
    cases = [
        (sum(met.act.event.id in events for met in case.met), -place, case)
        for place, case in enumerate(material.cases)
        # The same failures once more under the name of what overcame them: only several runs show that.
        if case.kind is not FailureKind.REMEDY or case.runs > 1
    ]
    count, _, case = max(cases, key=lambda each: each[:2], default=(0, 0, None))
    if not count or case is None:
        raise ClaimError(DropReason.NO_FAILURE)
    return case


def _proven_remedies(case: Case) -> list[Remedy]:
    return [remedy for remedy, _ in case.remedies if not is_destructive(remedy.text)]


def _matching_remedy(command: str, words: str, proven: Sequence[Remedy]) -> Remedy | None:
    """Return the proven remedy that a claim means; by its command, else the best that is no command."""
    wanted = [command] if command else CODE.findall(words)
    for remedy in proven:
        if any(_is_of_remedy(span, remedy) for span in wanted):
            return remedy
    if command:
        return None
    others = (RemedyKind.EDIT, RemedyKind.PATH, RemedyKind.SAID)
    return next((remedy for remedy in proven if remedy.way in others), None)


def _is_of_remedy(span: str, remedy: Remedy | None) -> bool:
    """Say whether a command or name is a remedy's, or one of its steps or of the files that it changes."""
    if remedy is None:
        return False
    wanted = normal_text(span).split()
    if normal_text(span) in {normal_text(file) for file in remedy.files}:
        return True
    for step in (remedy, *split_steps(remedy)):
        words = normal_text(step.text).split()
        # The claim may leave out arguments of the one call, or give them back; the program stays the same.
        if words and wanted and wanted[0] in words:
            shorter, longer = sorted((wanted, words), key=len)
            if all(word in longer or word.startswith("<") for word in shorter):
                return True
    return normal_text(span) in normal_text(remedy.text)


def _is_command(span: str, material: Material) -> bool:
    """Say whether code is a command: it begins with a program that the run called."""
    first = (span.split() or [""])[0]
    steps = [step for act in material.reading.acts for step in act.steps]
    return first in {step.program for step in steps} | {step.words[0].value for step in steps if step.words}


def _is_lasting(case: Case) -> bool:
    """Say whether a failure without remedy is worth a warning: it came again, or every task meets it."""
    # A program that does not know a word will not know it next time either.
    is_refused = case.kind is FailureKind.USAGE and bool(case.first.failure.subject)
    is_repeated = case.runs > 1 or len(case.met) > 1 or is_refused
    is_of_task = all(met.is_of_task for met in case.met)
    return (is_repeated or case.kind.is_environment) and not case.is_passing_by_itself and not is_of_task


def can_teach(case: Case) -> bool:
    """Say whether any claim about a failure could hold: what overcame it is shown, or it lasts."""
    return bool(_proven_remedies(case)) or _is_lasting(case)


def _is_copied(text: str, cited: Iterable[Event]) -> bool:
    """Say whether a line only repeats the record; what a program prints may speak to its reader."""
    words = normal_text(text).rstrip(".")
    is_status = _STATUS_WORDS.issuperset(words.replace(":", " ").split())
    is_said = words.startswith(("the agent: ", "the user: "))
    return is_status or is_said or any(words in normal_text(event.output) for event in cited)


def verify_account(
    claim: ProposedAccount, material: Material, texts: EventTexts, suspicion: Callable[[str, str], str]
) -> tuple[dict[str, object], list[DropReason]]:
    """Return the lines of an account that hold, by their part, and why the others do not.

    Without an outcome that holds there is no account.
    """
    calls = {act.event.id: act for act in material.reading.acts}

    def has_failed(event: Event) -> bool:
        act = calls.get(event.id)
        return act is not None and act.has_failed

    def is_success(event: Event) -> bool:
        act = calls.get(event.id)
        return act is None or has_worked(act) or not act.has_failed

    dropped: list[DropReason] = []

    def pick(lines: Sequence[CitedLine], most: int, holds: Callable[[list[Event]], bool]) -> tuple[str, ...]:
        found: list[str] = []
        for line in lines:
            text = " ".join(line.text.split())
            try:
                cited = texts.require(line.events)
                require_shown(text, cited, needs_names=False)
                if not text or len(text) > _LONGEST_ACCOUNT_LINE or suspicion(text, ""):
                    raise ClaimError(DropReason.EMPTY)
                if _is_copied(text, cited):
                    raise ClaimError(DropReason.COPIED)
                is_denied = _SUCCESS.search(text) and not any(map(is_success, cited))
                if is_denied or not holds(cited):
                    raise ClaimError(DropReason.CONTRADICTED)
                found.append(text)
            except ClaimError as error:
                dropped.append(error.reason)
        return tuple(dict.fromkeys(found))[:most]

    def shows_trouble(cited: list[Event]) -> bool:
        return any(has_failed(event) or event.kind not in CALL_KINDS for event in cited)

    def is_spoken(cited: list[Event]) -> bool:
        return any(event.kind not in CALL_KINDS for event in cited)

    outcome = pick(claim.outcome, 3, lambda _cited: True)
    parts: dict[str, object] = {
        "worked": pick(claim.worked, _MOST_LINES, lambda cited: any(map(is_success, cited))),
        "failed": pick(claim.failed, _MOST_LINES, shows_trouble),
        # Somebody said what was decided: the user, the agent or a reviewer.
        "decisions": pick(claim.decisions, _MOST_LINES, is_spoken),
    }
    if not outcome:
        return {}, dropped
    return {"outcome": " ".join(outcome), **{name: lines for name, lines in parts.items() if lines}}, dropped


def verify_wish(claim: FoundWish, material: Material, texts: EventTexts) -> Candidate:
    """Return the wish in the user's own words; a model only points at the sentence."""
    (event,) = texts.require([claim.event])
    quote = " ".join(claim.quote.split())
    if not quote or len(quote) > LONGEST_WISH:
        raise ClaimError(DropReason.EMPTY)
    is_typed = event in material.reading.said and event.extra.get(TYPED) is True
    if not is_typed or quote not in " ".join(own_words(event.text).split()):
        raise ClaimError(DropReason.NOT_TYPED)
    wish = make_wish(material, event, quote.rstrip(".!?\u3002\uff01\uff1f "), is_standing=claim.is_standing)
    # A model may take the task itself for a wish: what comes with it weighs little until it is said again.
    is_task = event.seq == material.reading.said[0].seq and not material.reading.episode.is_part
    return replace(wish, origin=MODEL_ORIGIN, importance=_TASK_IMPORTANCE if is_task else wish.importance)


def verify_insight(
    claim: ProposedInsight, entries: Mapping[int, Entry], suspicion: Callable[[str, str], str]
) -> list[Entry]:
    """Return the entries that show an insight: at least two, which name what it names."""
    numbers = list(dict.fromkeys(claim.entries))
    if any(number not in entries for number in numbers):
        raise ClaimError(DropReason.UNKNOWN_EVENT)
    if len(numbers) < _LEAST_ENTRIES:
        raise ClaimError(DropReason.UNCITED)
    text = f"{claim.title}. {claim.content}"
    if not claim.title.strip() or not claim.content.strip() or len(text) > _LONGEST_INSIGHT:
        raise ClaimError(DropReason.EMPTY)
    cited = [entries[number] for number in numbers]
    texts = [
        normal_text(
            f"{entry.action} {entry.content} {entry.role} cycle {entry.cycle} {entry.issues} {entry.tags}"
        )
        for entry in cited
    ]
    # Of how many cycles or entries is the model's own count, and may be any number up to those it cites.
    names = [name for name in names_in(text) if not (name.isdecimal() and int(name) <= len(cited))]
    if not all(is_shown(name, texts) for name in names) or suspicion(claim.title, claim.content):
        raise ClaimError(DropReason.UNSUPPORTED)
    return cited


def verify_rewording(claim: RewordedLesson, lesson: Lesson) -> Candidate:
    """Return a lesson in other words: it names nothing that the lesson does not name."""
    return _reword_lessons(claim.summary, claim.rule, [lesson])


def verify_joining(claim: JoinedLesson, known: Mapping[str, Lesson]) -> Candidate:
    """Return one lesson for several: it names nothing that they do not name, and has their remedies.

    A general one stands beside them; the others are superseded.
    """
    names = list(dict.fromkeys(name.strip() for name in claim.lessons))
    if len(names) < _LEAST_JOINED[claim.kind] or not all(name in known for name in names):
        raise ClaimError(DropReason.UNKNOWN_LESSON)
    lessons = [known[name] for name in names]
    if claim.kind == "same" and len({lesson.remedies for lesson in lessons if lesson.remedies}) > 1:
        raise ClaimError(DropReason.CONTRADICTED)
    return _reword_lessons(claim.summary, claim.rule, lessons, is_general=claim.kind == "general")


def _reword_lessons(
    summary: str, rule: str, lessons: Sequence[Lesson], *, is_general: bool = False
) -> Candidate:
    summary, rule = " ".join(summary.split()), " ".join(rule.split())
    if not summary or max(len(summary), len(rule)) > _LONGEST_SUMMARY:
        raise ClaimError(DropReason.EMPTY)
    if any((lesson.summary, lesson.rule) == (summary, rule or lesson.rule) for lesson in lessons):
        raise ClaimError(DropReason.NOT_NEW)
    texts = [
        normal_text(" ".join((lesson.summary, lesson.rule, lesson.detail, *lesson.remedies, *lesson.tags)))
        for lesson in lessons
    ]
    if not all(is_shown(name, texts) for name in names_in(f"{summary} {rule}")):
        raise ClaimError(DropReason.UNSUPPORTED)
    first, names = lessons[0], tuple(lesson.id for lesson in lessons)
    rule = rule or ("" if is_general else first.rule)
    # What worked must still be named, or the new words would hide it.
    lost = [] if is_general else [remedy for lesson in lessons for remedy in lesson.remedies]
    if any(not is_shown(remedy, [normal_text(f"{summary} {rule}")]) for remedy in lost):
        raise ClaimError(DropReason.UNPROVEN)
    return Candidate(
        key="" if is_general else first.signature,
        summary=summary,
        rule=rule,
        type=first.type,
        category=first.category,
        scope=first.scope,
        repo=first.repo,
        tool=first.tool if len({lesson.tool for lesson in lessons}) == 1 else "",
        provider=first.provider,
        domain=first.domain,
        tags=first.tags,
        importance=max(lesson.importance for lesson in lessons),
        severity=first.severity,
        origin=MODEL_ORIGIN,
        supersedes=() if is_general else names,
        generalises=names if is_general else (),
    )
