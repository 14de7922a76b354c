"""Changes that need approval: who approves, when they expire, how they read, which rules failures propose."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from archivist.brief.render import one_line
from archivist.errors import ConfigError, RecordError
from archivist.records import Actor, ActorKind, Lesson, LessonType, Proposal, ProposalStatus, Status

# Where the archivist's own proposal of a rule keeps the line that it adds.
RULE = "rule"


def parse_approvers(text: str) -> tuple[Actor, ...]:
    """Read who may decide: actors `kind[:name[:role]]`, separated by commas."""
    try:
        return tuple(Actor.parse(part.strip()) for part in text.split(",") if part.strip())
    except RecordError as error:
        raise ConfigError(f"proposals.approvers: {error.message}", hint=error.hint) from None


def matches_actor(pattern: Actor, actor: Actor) -> bool:
    """Say whether an actor is one that a pattern means; a part that the pattern leaves out fits any."""
    return (
        pattern.kind is actor.kind and pattern.name in ("", actor.name) and pattern.role in ("", actor.role)
    )


def may_decide(actor: Actor, proposer: Actor, patterns: Iterable[Actor]) -> bool:
    """Say whether an actor may decide what another, or a person themselves, proposed.

    Only people decide on their own proposals. An agent is the same agent in whatever role it acts.
    """
    is_own = (actor.kind, actor.name) == (proposer.kind, proposer.name)
    if is_own and actor.kind is not ActorKind.HUMAN:
        return False
    return any(matches_actor(pattern, actor) for pattern in patterns)


def expire_if_due(proposal: Proposal, now: datetime) -> Proposal:
    """Return a proposal as it stands at a time: an open one past its time has expired."""
    if proposal.status is ProposalStatus.OPEN and now >= proposal.expires:
        return replace(proposal, status=ProposalStatus.EXPIRED, decided=proposal.expires)
    return proposal


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
    name, shown = block_name(proposal), diff(proposal)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    cited = [f"- {each}" for each in evidence]
    is_open = proposal.status is ProposalStatus.OPEN
    until = f", open until {proposal.expires:%Y-%m-%d}" if is_open else ""
    lines = [
        f"Proposal {proposal.short_id}: change {name}",
        "",
        proposal.reason,
        "",
        f"Proposed by {proposal.proposer} on {proposal.created:%Y-%m-%d}{until}.",
        "",
        *(["Evidence:", *cited, ""] if cited else []),
        f"{fence}diff",
        *shown.splitlines(),
        fence,
        "",
        _decision_hint(proposal) if is_open else _decision_text(proposal),
    ]
    return "\n".join(lines) + "\n"


def _decision_hint(proposal: Proposal) -> str:
    command, name = "archivist proposals", proposal.short_id
    return f"To decide: `{command} accept {name}` or `{command} reject {name}`."


def _decision_text(proposal: Proposal) -> str:
    """Say what became of a proposal, and how that is taken back where it can be."""
    word = proposal.status.value.replace("_", " ").capitalize()
    when = f" on {proposal.decided:%Y-%m-%d}" if proposal.decided else ""
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    comment = f" {proposal.comment}" if proposal.comment else ""
    is_accepted = proposal.status is ProposalStatus.ACCEPTED
    back = f" `archivist proposals roll-back {proposal.short_id}` takes it back." if is_accepted else ""
    return f"{word}{when}{by}.{comment}{back}"


def is_rule_candidate(lesson: Lesson, *, at_runs: int) -> bool:
    """Say whether a lesson is a failure met so often that it should be a rule, and says what to do."""
    return (
        lesson.type is LessonType.PATTERN
        and lesson.status is Status.ACTIVE
        and lesson.frequency >= at_runs
        and bool(lesson.rule.strip() or lesson.remedies)
    )


def rule_line(lesson: Lesson) -> str:
    """Return the line that a lesson would be among the rules."""
    text = one_line(lesson.rule)
    if not text:
        text = f"{one_line(lesson.summary).rstrip('.')}: {one_line(lesson.remedies[0])}"
    return f"- {text} ({lesson.short_id})"


def with_line(text: str, line: str) -> str:
    """Return a text with one line more at its end, unless it has that line."""
    return text if line in text.splitlines() else f"{text}\n{line}".strip("\n")


def rebase_proposal(proposal: Proposal, current: str) -> Proposal:
    """Return an open proposal of one more rule, made anew against the text as it is now."""
    return replace(proposal, before=current, after=with_line(current, str(proposal.extra[RULE])))
