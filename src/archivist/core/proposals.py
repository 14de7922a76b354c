"""Proposals: who may approve them, when they expire, how they are shown, which lessons become rules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from archivist.brief.render import one_line
from archivist.errors import ConfigError, RecordError
from archivist.records import (
    ARCHIVIST,
    Actor,
    ActorKind,
    Lesson,
    LessonType,
    Proposal,
    ProposalStatus,
    Status,
)

# A reason is read by a person who decides; longer material is cited as evidence.
MOST_REASON = 4_000
# Where an automatic proposal keeps the line that it adds to the rules.
RULE = "rule"


def parse_approvers(text: str) -> tuple[Actor, ...]:
    """Parse the approvers: actors `kind[:name[:role]]`, separated by commas."""
    try:
        return tuple(Actor.parse(part.strip()) for part in text.split(",") if part.strip())
    except RecordError as error:
        raise ConfigError(f"proposals.approvers: {error.message}", hint=error.hint) from None


def matches_actor(pattern: Actor, actor: Actor) -> bool:
    """Say whether an actor matches a pattern; an empty part of the pattern matches any."""
    return (
        pattern.kind is actor.kind and pattern.name in ("", actor.name) and pattern.role in ("", actor.role)
    )


def may_decide(actor: Actor, proposer: Actor, patterns: Iterable[Actor]) -> bool:
    """Say whether an actor may decide on a proposal.

    Only people may decide on their own proposals. An agent is the same agent in every role.
    """
    is_own = (actor.kind, actor.name) == (proposer.kind, proposer.name)
    if is_own and actor.kind is not ActorKind.HUMAN:
        return False
    return any(matches_actor(pattern, actor) for pattern in patterns)


def expire_if_due(proposal: Proposal, now: datetime) -> Proposal:
    """Return a proposal as of a time: an open one past its expiry is expired."""
    if proposal.status is ProposalStatus.OPEN and now >= proposal.expires:
        return replace(proposal, status=ProposalStatus.EXPIRED, decided=proposal.expires)
    return proposal


def is_of_lesson(proposal: Proposal) -> bool:
    """Say whether an open proposal would make a rule of a lesson, and so ends with the lesson."""
    return proposal.status is ProposalStatus.OPEN and RULE in proposal.extra


def follow_lesson(
    proposal: Proposal,
    lessons: Mapping[str, Lesson],
    doubts: Mapping[str, str],
    stale: Mapping[str, str],
    now: datetime,
) -> Proposal:
    """Return a lesson's proposal as it stands: in the lesson's current words, or withdrawn with the reason.

    It is withdrawn if no run is told the lesson, if `doubts` says why its verdicts speak against it, or if
    `stale` says what it names that is gone. `lessons` are those of the bank that the proposal cites.
    """
    if not is_of_lesson(proposal):
        return proposal
    lesson = next((lessons.get(name) for name in proposal.evidence), None)
    if lesson is None:
        return _withdraw(proposal, now, "its lesson is gone")
    decided = max(lesson.edited, proposal.created)
    if lesson.status.is_retired:
        reason = f"{lesson.short_id} was {lesson.status}"
        if lesson.superseded_by in lessons:
            reason += f" by {lessons[lesson.superseded_by].short_id}"
        return _withdraw(proposal, decided, reason)
    if lesson.status is not Status.ACTIVE:
        return _withdraw(proposal, now, f"{lesson.short_id} is {lesson.status} again")
    if not (lesson.rule.strip() or lesson.remedies):
        return _withdraw(proposal, decided, f"{lesson.short_id} no longer says what to do")
    if gone := stale.get(lesson.id):
        return _withdraw(proposal, now, f"{lesson.short_id} is out of date: {gone}")
    if doubt := doubts.get(lesson.id):
        return _withdraw(proposal, now, f"{lesson.short_id} does not help as it stands: {doubt}")
    line, reason = rule_line(lesson), rule_reason(lesson)
    if line == proposal.extra[RULE]:
        return replace(proposal, reason=reason)
    after = with_line(proposal.before, line)
    if after == proposal.before:
        return _withdraw(proposal, decided, f"the rules already say what {lesson.short_id} says now")
    return replace(proposal, after=after, reason=reason, extra={**proposal.extra, RULE: line})


def find_rule_doubt(
    proposal: Proposal, lessons: Mapping[str, Lesson], doubts: Mapping[str, str], rules: str
) -> str:
    """Return why an accepted rule no longer says what its lesson says; empty while it does, or is gone."""
    line = str(proposal.extra.get(RULE, ""))
    if proposal.status is not ProposalStatus.ACCEPTED or not line or line not in rules.splitlines():
        return ""
    lesson = next((lessons.get(name) for name in proposal.evidence), None)
    if lesson is None:
        return "its lesson is gone"
    if lesson.status.is_retired:
        return f"{lesson.short_id} was {lesson.status}"
    if lesson.id in doubts:
        return f"{lesson.short_id} does not help as it stands: {doubts[lesson.id]}"
    current = rule_line(lesson)
    return "" if current == line else f"{lesson.short_id} says now: {current.removeprefix('- ')}"


def _withdraw(proposal: Proposal, decided: datetime, reason: str) -> Proposal:
    status = ProposalStatus.WITHDRAWN
    return replace(proposal, status=status, decided=decided, decided_by=ARCHIVIST, comment=reason)


def block_name(proposal: Proposal) -> str:
    """Return the name of the block that a proposal changes."""
    section = proposal.section.value
    return f"{section}:{proposal.role}" if proposal.role else section


def diff(proposal: Proposal) -> str:
    """Return what a proposal changes, as a unified diff."""
    name = block_name(proposal)
    lines = difflib.unified_diff(
        proposal.before.splitlines(),
        proposal.after.splitlines(),
        f"{name} before",
        f"{name} after {proposal.short_id}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def to_issue(proposal: Proposal, evidence: Sequence[str]) -> str:
    """Return a proposal as an issue for a tracker: the title on the first line, then the body."""
    shown, command, short = diff(proposal), "archivist proposals", proposal.short_id
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    until, decision = "", f"{describe_decision(proposal).capitalize()}."
    if proposal.status is ProposalStatus.OPEN:
        until = f", open until {proposal.expires:%Y-%m-%d}"
        decision = f"To decide: `{command} accept {short}` or `{command} reject {short}`."
    elif proposal.comment:
        decision += f" {proposal.comment}"
    if proposal.status is ProposalStatus.ACCEPTED:
        decision += f" `{command} roll-back {short}` takes it back."
    parts = [
        f"Proposal {short}: change {block_name(proposal)}",
        proposal.reason,
        f"Proposed by {proposal.proposer} on {proposal.created:%Y-%m-%d}{until}.",
        "\n".join(["Evidence:", *(f"- {text}" for text in evidence)]) if evidence else "",
        f"{fence}diff\n{shown}{fence}",
        decision,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def describe_decision(proposal: Proposal) -> str:
    """Return the status of a decided proposal, when it was decided, and by whom."""
    when = f" on {proposal.decided:%Y-%m-%d}" if proposal.decided else ""
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    return f"{proposal.status.value.replace('_', ' ')}{when}{by}"


def is_rule_candidate(lesson: Lesson, *, at_runs: int) -> bool:
    """Say whether a lesson should become a rule: a frequent failure with a known remedy.

    That a test fails is about the code as it is, and no rule.
    """
    is_of_test = lesson.signature.partition("|")[2].startswith("test_failure:")
    return (
        not is_of_test
        and lesson.type is LessonType.PATTERN
        and lesson.status is Status.ACTIVE
        and lesson.frequency >= at_runs
        and bool(lesson.rule.strip() or lesson.remedies)
    )


def rule_line(lesson: Lesson) -> str:
    """Return the line of a lesson among the rules."""
    text = one_line(lesson.rule) or one_line(lesson.summary)
    if lesson.remedies and not lesson.rule.strip():
        text = f"{text.rstrip('.')}: {one_line(lesson.remedies[0])}"
    # What a person worded anew may have neither rule nor remedy.
    return f"- {text} ({lesson.short_id})"


def rule_reason(lesson: Lesson) -> str:
    """Return why a lesson should become a rule."""
    return f"{lesson.short_id} was met in {lesson.met_in}: {lesson.summary}"[:MOST_REASON]


def with_line(text: str, line: str) -> str:
    """Return a text with a line appended, unless it has that line."""
    return text if line in text.splitlines() else f"{text}\n{line}".strip("\n")


def rebase_proposal(proposal: Proposal, current: str) -> Proposal:
    """Return an open proposal of one rule, based on the current text."""
    return replace(proposal, before=current, after=with_line(current, str(proposal.extra[RULE])))
