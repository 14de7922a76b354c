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
from archivist.lessons import gate
from archivist.lessons.agent_words import order_suspicion
from archivist.lessons.candidate import Candidate
from archivist.lessons.risky_text import suspicion
from archivist.lessons.support import (
    CODE,
    advised_code,
    contradicted_code,
    denied_code,
    destroys,
    event_text,
    is_shown,
    names_in,
    normal_text,
    unshown_cause,
    unshown_name,
)
from archivist.reading.calls import ToolCall
from archivist.reading.outcomes import has_step_worked, has_worked
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.wording import code
from archivist.records import Category, EpisodeStatus, Event, Evidence, Lesson
from archivist.records.run_words import CALL_KINDS, TYPED
from archivist.records.words import MODEL_ORIGIN
from archivist.reflect.miners.material import Case, Material, importance, make_candidate
from archivist.reflect.miners.wish_frames import LONGEST_WISH
from archivist.reflect.miners.wishes import find_wishes, make_wish
from archivist.reflect.model.claimed_failure import (
    SOON,
    ShownRemedy,
    edits_between,
    find_case,
    find_remedy,
    find_said_recovery,
    is_lasting,
    is_of_code,
    is_of_remedy,
    overcoming_calls,
    proven_remedies,
    step_text,
)
from archivist.reflect.model.outcome_words import (
    claims_success,
    contradicts_outcomes,
    counts_both,
    says_failure,
    tells_omission,
)
from archivist.reflect.model.questions.account import CitedLine, ProposedAccount
from archivist.reflect.model.questions.joining import JoinedLesson
from archivist.reflect.model.questions.lessons import ProposedLesson
from archivist.reflect.model.questions.rewording import RewordedLesson
from archivist.reflect.model.questions.wishes import FoundWish
from archivist.reflect.own_words import own_words
from archivist.reflect.requests import is_about_work
from archivist.reflect.summary import is_check

_LONGEST_SUMMARY = 400
_LONGEST_ACCOUNT_LINE = 260
_MOST_LINES = 5
# An account also names what led to the events that it cites: so many before each.
_LED_BY = 3
# In an account this is a report; elsewhere words that claim it speak in the user's place.
_ASKED = lazy_pattern(r",? as the user (?:then )?(?:asked|requested|wanted)\b(?=[.;]?\Z)", re.IGNORECASE)
_MOST_CITED = 12
# How far a model may move an importance from what the rule for mined lessons gives.
_IMPORTANCE_REACH = 0.2
_TASK_IMPORTANCE = 0.4
# Too little to be told before it is said again.
_WISH_IMPORTANCE = 0.6
_LEAST_JOINED = {"same": 2, "general": 3}
# A file that is named as one of many.
_EXAMPLE = lazy_pattern(r"\b(?:as in|such as|for example|e\.g\.),? `[^`]*`", re.IGNORECASE)
_PATH = lazy_pattern(r"^[^\s]*/[^\s]|^[\w-]+\.\w{1,5}$")
# Words of English that hardly any other language has.
_ENGLISH = lazy_pattern(
    r"\b(?:the|and|is|are|you|your|we|our|it|this|that|with|when|should|must|always|never|please|not|as|of)\b",
    re.IGNORECASE,
)
# A clause that tells its reader what to do.
_TELLS_TO_ACT = lazy_pattern(
    r"(?:\A|[.:;!,]\s{1,4}|\b(?:THEN|so|and|first|always|please|must|should|to be)\s{1,4})"
    r"(?:run|use|set|install|add|edit|change|remove|replace)(?:ed|d)?\s",
    re.IGNORECASE,
)
# A sentence that ends so goes on with another one.
_REFERRING = lazy_pattern(r"\b(?:as well|too|also|it|them|that|those|again)\W*\Z", re.IGNORECASE)
# "commit", "go on": shorter messages hold no wish, except in languages that write words without spaces.
_LEAST_WORDS = 3
_LONG_WORD = 18
_ID = lazy_pattern(r"#?\d{3,12}")
_STATUS_WORDS = frozenset(("the", "run", "ended", "as", "was", "is", "status", *EpisodeStatus))


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
    UNCLEAR = "edits in between may be what helped"
    UNHELPFUL = "advises what is not shown to have helped"
    DESTRUCTIVE = "its remedy can destroy work or data"
    NOT_STANDING = "no standing rule of how to work, understood without its context"
    NOT_TYPED = "not in the user's own words"
    UNCAUSED = "gives a cause that its events do not show"
    UNDECIDED = "its events show nothing that was decided"
    CONTRADICTED = "its events show the opposite"
    UNKNOWN_LESSON = "names a lesson that cannot be replaced"
    SAID_OTHERWISE = "a known lesson says it in its own words, without this cause"
    NOT_NEW = "says nothing else than the lesson does"
    NO_OUTCOME = "no outcome of its account holds"
    SUSPICIOUS = "may give orders to its reader"
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

    def find(self, numbers: Iterable[int]) -> list[Event]:
        """Return the events of these numbers, as far as there are any."""
        return [self.events[number] for number in numbers if number in self.events]


def require_shown(
    text: str, events: Sequence[Event], *, needs_names: bool = True, also: Iterable[str] = ()
) -> None:
    """Refuse a claim that names something or gives a cause that neither its events nor other texts show."""
    if needs_names and not names_in(text):
        raise ClaimError(DropReason.NAMELESS)
    texts = [*map(event_text, events), *map(normal_text, also)]
    if unshown_name(text, texts, most_own=len(events)):
        raise ClaimError(DropReason.UNSUPPORTED)
    if unshown_cause(text, texts):
        raise ClaimError(DropReason.UNCAUSED)


def verify_lesson(
    claim: ProposedLesson,
    material: Material,
    texts: EventTexts,
    known: Mapping[str, Lesson],
    cited_by: Callable[[Lesson], Iterable[Event]],
) -> Candidate:
    """Return the candidate of a claim that holds; raise ClaimError otherwise.

    The remedies, the key, the scope and the tags are those that a miner would give it. `cited_by` returns
    the events that a known lesson cites.
    """
    summary, rule = " ".join(claim.summary.split()), " ".join(claim.rule.split())
    if not summary or max(len(summary), len(rule)) > _LONGEST_SUMMARY:
        raise ClaimError(DropReason.EMPTY)
    cited, words = texts.require(claim.events), f"{summary} . {rule}"
    case = find_case(material, cited, summary)
    if case is None:
        raise ClaimError(DropReason.NO_FAILURE)
    calls, said_remedy, refines = material.calls_of(cited), claim.remedy.strip("` "), claim.refines.strip()
    # What is to be done may be said in words; only a command can be looked up.
    command = said_remedy if _is_command(said_remedy, material) else ""
    shown = find_remedy(command, words, case, material)
    is_remedy = claim.kind == "remedy" or bool(command)
    if shown is None and is_remedy:
        shown = find_said_recovery(case, material, cited, said_remedy)
    remedy = shown.remedy if shown else None
    helped = shown.calls if shown and is_remedy else ()
    evidence = [*cited, *texts.find(_numbers((*case.events, *(act.event.id for act in helped))))]
    # What helped earlier runs is shown by their events.
    require_shown(
        f"{words} {code(command) if command else ''}",
        evidence,
        also=(remedy.text for remedy in proven_remedies(case)),
    )
    _require_consistent(words, calls, proven_remedies(case))
    advised = advised_code(words)
    if any(map(destroys, (command, *advised))):
        raise ClaimError(DropReason.DESTRUCTIVE)
    refined = known.get(refines)
    is_known = refined is not None and refined.signature == case.key and refined.frequency > 1
    # A warning too may say in words what a cited call shows to have helped.
    is_recovery = _tells_to_act(words) and find_said_recovery(case, material, cited) is not None
    if remedy is None and not is_remedy and not (is_known or is_recovery or is_lasting(case)):
        raise ClaimError(DropReason.CHANCE)
    if is_remedy:
        _require_proven(advised, cited, shown, case, material)
    else:
        is_remedy = _advises_remedy(words, advised, calls, shown, case, material)
    if order_suspicion(summary, rule):
        raise ClaimError(DropReason.SUSPICIOUS)
    # A warning may name what overcame the failure only to say that it is not enough.
    remedy = remedy if is_remedy else None
    # A remark stands for the call that failed before it.
    met, events = {met.act.event.id for met in case.met}, {event.id: None for event in cited}
    events = events if met & events.keys() else {case.first.act.event.id: None, **events}
    candidate = _draft_candidate(summary, rule, remedy, case)
    usual = bounded_importance(claim.importance, case, has_remedy=bool(candidate.remedies))
    candidate = replace(candidate, importance=usual, events=tuple(events))
    return _beside_known(candidate, case, known, refines, cited_by, is_remedy=remedy is not None)


def _draft_candidate(summary: str, rule: str, remedy: Remedy | None, case: Case) -> Candidate:
    """Return the candidate of a claim in its own summary and rule, else as a miner would make it."""
    category = Category.INFRA if case.kind.is_environment else Category.TOOL_USAGE
    if remedy is not None and (remedy.way is RemedyKind.EDIT or not remedy.text):
        category = Category.BUGFIX_PATTERN
    candidate = make_candidate(
        case,
        summary,
        rule=rule,
        remedies=(remedy.text,) if remedy and remedy.way is not RemedyKind.SAID else (),
        category=category,
        words=(case.first.act.purpose, case.first.failure.subject),
    )
    return replace(candidate, summary=summary, origin=MODEL_ORIGIN)


def _require_consistent(words: str, cited: Sequence[ToolCall], proven: Sequence[Remedy]) -> None:
    """Refuse a claim about a command that its own calls, or what is proven, show the opposite of."""
    never = [span for span, is_always in denied_code(words) if is_always]
    if contradicted_code(words, cited) or any(is_of_remedy(span, each) for span in never for each in proven):
        raise ClaimError(DropReason.CONTRADICTED)


def _require_proven(
    advised: Iterable[str],
    cited: Sequence[Event],
    shown: ShownRemedy | None,
    case: Case,
    material: Material,
) -> None:
    """Refuse a remedy that the run does not show to work."""
    calls = material.calls_of(cited)
    if shown is None:
        worked = [act for act in calls if act.steps and has_worked(act)]
        has_edits_before = any(
            is_of_code(met) and act.at > met.act.at and edits_between(met.act, act, material)
            for met in case.met
            for act in worked
        )
        raise ClaimError(DropReason.UNCLEAR if has_edits_before else DropReason.UNPROVEN)
    edits = [act for act in calls if act.changes and not act.has_failed]
    helped = {act.event.id for act in shown.calls}
    if shown.remedy.way is RemedyKind.SAID and edits and not any(act.event.id in helped for act in edits):
        raise ClaimError(DropReason.UNPROVEN)
    # What only a program printed is no advice: several words were run, or written by a call.
    given = [normal_text(event.text) for event in cited if event.kind in CALL_KINDS]
    for span in advised:
        is_written = (" " not in span or is_shown(span, given)) and not _is_command(span, material)
        if not (is_of_remedy(span, shown.remedy) or is_written or _has_run(span, calls)):
            raise ClaimError(DropReason.UNPROVEN)


def _advises_remedy(
    words: str,
    advised: Sequence[str],
    cited: Sequence[ToolCall],
    shown: ShownRemedy | None,
    case: Case,
    material: Material,
) -> bool:
    """Say whether a warning advises what overcame the failure; refuse one that advises what did not help.

    It may advise a check that tells of the failure earlier or alone: a cited call of it showed the error.
    """
    remedy = shown.remedy if shown else None
    others = [span for span in advised if not is_of_remedy(span, remedy)]
    mended = [event_text(act.event) for act in overcoming_calls(case, material)[1:] if act.changes]
    near = [material.reading.acts[met.act.at + 1 : met.act.at + 1 + SOON] for met in case.met]
    # What the agent turned to each time that it failed served instead.
    may_be_instead = not any(map(is_of_code, case.met)) and len(near) > 1
    for span in others:
        is_instead = may_be_instead and all(_has_run(span, acts) for acts in near)
        if not (is_instead or _shows_failure(span, cited, case, material) or is_shown(span, mended)):
            raise ClaimError(DropReason.UNHELPFUL)
    # What helped may be said without its command, if anything is shown to have helped.
    is_overcome = shown is not None or case.fleeting or overcoming_calls(case, material)
    if not advised and _tells_to_act(words) and not is_overcome:
        raise ClaimError(DropReason.UNHELPFUL)
    return any(is_of_remedy(span, remedy) and _is_command(span, material) for span in advised) and not others


def _tells_to_act(words: str) -> bool:
    return _TELLS_TO_ACT.search(CODE.sub("", words)) is not None


def _shows_failure(command: str, cited: Sequence[ToolCall], case: Case, material: Material) -> bool:
    """Say whether a cited check showed the error of a failure, or another call did and a cited one worked."""
    events, wanted = {act.event.id for act in cited}, normal_text(command)
    lines = {met.failure.line for met in case.met}
    showing = [
        act
        for act in material.reading.acts
        if act.has_failed
        and any(step_text(step.words) == wanted for step in act.steps)
        and any(line in act.event.output for line in lines)
    ]
    is_cited = any(is_check(act) and act.event.id in events for act in showing)
    return is_cited or (bool(showing) and _has_run(command, cited))


def _beside_known(
    candidate: Candidate,
    case: Case,
    known: Mapping[str, Lesson],
    refines: str,
    cited_by: Callable[[Lesson], Iterable[Event]],
    *,
    is_remedy: bool,
) -> Candidate:
    """Return a candidate in its place: instead of the lesson that it restates, as it, or beside it.

    Only a lesson that it names, and says again with all that it advises, or the remedy that was missing, is
    superseded. What other runs show otherwise, or advises something else, is a lesson of its own with its own
    runs, and has no key: the known lesson's key stays the known lesson's.
    """
    named = known.get(refines)
    same = [lesson for lesson in known.values() if lesson.signature == case.key]
    older = named if named in same else next(iter(same), None)
    if older is None:
        return candidate
    beside = replace(candidate, key="", notes={"failure": case.key})
    is_cured = is_remedy and not older.remedies
    if not is_cured and not _has_its_advice(candidate, older):
        return beside
    # Which file a remedy that is known helped in is no other case; a warning of one file is.
    if not (older is named and is_remedy) and not _restates(candidate, case, older):
        return beside
    # With a remedy where there was none it takes the lesson's place too.
    if older is not named and (older.remedies or not candidate.remedies):
        return candidate
    if not gate.may_be_superseded(older):
        raise ClaimError(DropReason.UNKNOWN_LESSON)
    shown, others = _split_runs(candidate, case, cited_by(older))
    # What only warned so far is no wider than what now says what to do.
    if not others or (older is named and is_cured):
        return replace(candidate, supersedes=(older.id,))
    evidence = Evidence(
        episodes=tuple(shown), events=tuple(event.id for events in shown.values() for event in events)
    )
    runs = tuple(run for run in older.runs if run in shown)
    return replace(beside, earlier_runs=runs, evidence=evidence)


def _split_runs(
    candidate: Candidate, case: Case, cited: Iterable[Event]
) -> tuple[dict[str, list[Event]], dict[str, list[Event]]]:
    """Return the events of earlier runs that show the failure which a candidate tells of, and the others.

    What it names of this run's failing calls must stand in theirs. A reason that it takes from elsewhere
    explains the failure and is no other one.
    """
    own = [event_text(met.act.event) for met in case.met]
    names = names_in(_EXAMPLE.sub(" ", f"{candidate.summary} {candidate.rule}"))
    names = [name for name in names if is_shown(name, own)]
    runs: dict[str, list[Event]] = {}
    for event in cited:
        if event.run != case.first.act.event.run:
            runs.setdefault(event.run, []).append(event)
    shown = {
        run: events
        for run, events in runs.items()
        if all(is_shown(name, [*map(event_text, events)]) for name in names)
    }
    return shown, {run: events for run, events in runs.items() if run not in shown}


def _has_its_advice(candidate: Candidate, older: Lesson) -> bool:
    """Say whether a candidate advises what a lesson does, if that advises anything."""
    if (older.remedies or older.rule) and not candidate.remedies:
        return False
    # By the words of a command that are the same in every run.
    remedies, others = (
        [{word for word in normal_text(text).split() if not word.startswith("<")} for text in each.remedies]
        for each in (candidate, older)
    )
    return not others or any(words in others for words in remedies)


def _restates(candidate: Candidate, case: Case, older: Lesson) -> bool:
    """Say whether a candidate says what a lesson says for as many cases."""
    told = (older.summary, older.rule, older.detail, case.line, case.command)
    met = ((each.failure.line, each.act.event.text) for each in case.met)
    texts = [normal_text(text) for text in (*told, *older.remedies, *(text for pair in met for text in pair))]
    # A file that is named, and not as an example, is one case of many.
    names = names_in(_EXAMPLE.sub(" ", f"{candidate.summary} {candidate.rule}"))
    return all(is_shown(name, texts) for name in names if _PATH.search(name))


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
        case = find_case(material, texts.require(numbers), "")
    except ClaimError:
        return 0.0
    return importance(case, has_remedy=has_remedy) if case else 0.0


def _numbers(events: Iterable[str]) -> Iterator[int]:
    return (int(number) for event in events if (number := event.rpartition("#")[2]).isdecimal())


def _is_command(span: str, material: Material) -> bool:
    """Say whether code is a command: it begins with a program that the run called."""
    first = (span.split() or [""])[0]
    steps = [step for act in material.reading.acts for step in act.steps]
    return first in {step.program for step in steps} | {step.words[0].value for step in steps if step.words}


def _has_run(command: str, calls: Iterable[ToolCall]) -> bool:
    """Say whether a call ran a command, and it worked; a query or a message may be left out."""
    wanted = normal_text(command)
    return any(
        wanted in (step_text(step.words), step_text(word for word in step.words if " " not in word.value))
        and has_step_worked(act, step)
        for act in calls
        for step in act.steps
    )


def _is_copied(text: str, cited: Iterable[Event], said: Iterable[Event]) -> bool:
    """Say whether a line only repeats the record; what a program prints may speak to its reader."""
    words = normal_text(text).rstrip(".")
    is_status = _STATUS_WORDS.issuperset(words.replace(":", " ").split())
    asked = [normal_text(event.text) for event in cited if event in said]
    # What the user decided may be told as the user's words, if they are not just copied.
    _, mark, rest = words.partition("the user: ")
    is_said = words.startswith("the agent: ") or (mark and (not asked or any(rest in text for text in asked)))
    return is_status or bool(is_said) or any(words in normal_text(event.output) for event in cited)


def _require_told(text: str, numbers: Sequence[int], texts: EventTexts) -> list[Event]:
    """Return the events of a line of an account; refuse one that names what they do not show."""
    cited = texts.require(numbers)
    before = texts.find(number - step for number in numbers for step in range(1, _LED_BY + 1))
    require_shown(text, cited, needs_names=False, also=map(event_text, before))
    # A number or an id is of one event; the one before has another.
    shown = [*map(event_text, cited)]
    if not all(is_shown(name, shown) for name in names_in(text) if _ID.fullmatch(name)):
        raise ClaimError(DropReason.UNSUPPORTED)
    if not text or len(text) > _LONGEST_ACCOUNT_LINE:
        raise ClaimError(DropReason.EMPTY)
    if suspicion(_ASKED.sub("", text), ""):
        raise ClaimError(DropReason.SUSPICIOUS)
    return cited


def _shows_decision(cited: Sequence[Event], calls: Mapping[str, ToolCall]) -> bool:
    """Say whether somebody said what was decided, or it was done: edited or committed, and not refused."""
    made = [act for event in cited if (act := calls.get(event.id)) and not act.has_failed]
    if any(act.changes or any(step.name == "git commit" for step in act.steps) for act in made):
        return True
    # By a tool of its own an agent asks the user, whose answer is the output.
    tools = (event.tool.lower().replace("_", "") for event in cited if event.kind in CALL_KINDS)
    is_asked = any(tool.startswith(("askuser", "askfollowup")) for tool in tools)
    return is_asked or any(event.kind not in CALL_KINDS for event in cited)


def verify_account(
    claim: ProposedAccount, material: Material, texts: EventTexts
) -> tuple[dict[str, object], dict[int, DropReason]]:
    """Return the lines of an account that hold, by their part, and by its id why another line does not.

    Without an outcome that holds there is no account.
    """
    calls = {act.event.id: act for act in material.reading.acts}

    def is_success(event: Event) -> bool:
        act = calls.get(event.id)
        return not says_failure(event.text) if act is None else has_worked(act) or not act.has_failed

    def shows_trouble(text: str, cited: list[Event]) -> bool:
        acts = [calls[event.id] for event in cited if event.id in calls]
        is_said = any(event.kind not in CALL_KINDS for event in cited)
        return is_said or any(act.has_failed or not has_worked(act) for act in acts) or tells_omission(text)

    dropped: dict[int, DropReason] = {}

    def pick(
        lines: Sequence[CitedLine],
        most: int,
        holds: Callable[[str, list[Event]], bool],
        otherwise: DropReason = DropReason.CONTRADICTED,
    ) -> tuple[str, ...]:
        found: list[str] = []
        for line in lines:
            text = " ".join(line.text.split())
            try:
                cited = _require_told(text, line.events, texts)
                if _is_copied(text, cited, material.reading.said):
                    raise ClaimError(DropReason.COPIED)
                acts = [calls[event.id] for event in cited if event.id in calls]
                is_shown_success = any(map(is_success, cited)) or counts_both(text, acts)
                if (claims_success(text) and not is_shown_success) or contradicts_outcomes(text, acts):
                    raise ClaimError(DropReason.CONTRADICTED)
                if not holds(text, cited):
                    raise ClaimError(otherwise)
                found.append(text)
            except ClaimError as error:
                dropped[id(line)] = error.reason
        return tuple(dict.fromkeys(found))[:most]

    outcome = pick(claim.outcome, 3, lambda _text, _cited: True)
    parts: dict[str, object] = {
        "worked": pick(claim.worked, _MOST_LINES, lambda _text, cited: any(map(is_success, cited))),
        "failed": pick(claim.failed, _MOST_LINES, shows_trouble, DropReason.NO_FAILURE),
        # Somebody said what was decided, the user, the agent or a reviewer, or it was done.
        "decisions": pick(
            claim.decisions,
            _MOST_LINES,
            lambda _text, cited: _shows_decision(cited, calls),
            DropReason.UNDECIDED,
        ),
    }
    if not outcome:
        lines = (*claim.outcome, *claim.worked, *claim.failed, *claim.decisions)
        return {}, {**{id(line): DropReason.NO_OUTCOME for line in lines}, **dropped}
    return {"outcome": " ".join(outcome), **{name: lines for name, lines in parts.items() if lines}}, dropped


def verify_wish(claim: FoundWish, material: Material, texts: EventTexts) -> Candidate:
    """Return the wish in the user's own words; a model only points at the sentence.

    The rules did not take it, so it is a candidate until a second run or a person says the same. In English,
    which they know best, it must at least order how to work, in words that are understood by themselves.
    """
    (event,) = texts.require([claim.event])
    quote = " ".join(claim.quote.split())
    if not quote or len(quote) > LONGEST_WISH:
        raise ClaimError(DropReason.EMPTY)
    is_typed = event in material.reading.said and event.extra.get(TYPED) is True
    if not is_typed or quote not in " ".join(own_words(event.text).split()):
        raise ClaimError(DropReason.NOT_TYPED)
    is_rule = not _ENGLISH.search(quote) or is_about_work(quote) or bool(find_wishes(quote))
    if not claim.is_standing or not is_rule or _REFERRING.search(quote):
        raise ClaimError(DropReason.NOT_STANDING)
    wish = make_wish(material, event, quote.rstrip(".!?\u3002\uff01\uff1f "), is_standing=False)
    # A model may take the task itself for a wish: what comes with it weighs little until it is said again.
    is_task = event.seq == material.reading.said[0].seq and not material.reading.episode.is_part
    return replace(wish, origin=MODEL_ORIGIN, importance=_TASK_IMPORTANCE if is_task else _WISH_IMPORTANCE)


def may_hold_wish(event: Event) -> bool:
    """Say whether a message of the user's is typed, long enough for a wish, and none that the rules found."""
    words = own_words(event.text)
    is_long = len(words.split()) >= _LEAST_WORDS or len(words.encode()) >= _LONG_WORD
    return event.extra.get(TYPED) is True and is_long and not find_wishes(event.text)


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
