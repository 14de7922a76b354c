"""Decide between claims about one fact, and keep the conflicts between their sources up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from archivist.errors import DecidedError, StateError
from archivist.ids import derived_id
from archivist.records.actor import Actor
from archivist.records.layers import Conflict, Fact
from archivist.records.tier_words import ConflictStatus
from archivist.records.words import ActorKind
from archivist.text import shorten_line

# A value as messages show it, on one line of a terminal.
shorten_value = partial(shorten_line, most=60)
# Where a conflict keeps what a reversal needs beside the value.
_PROJECT = "project"
_LOST_ORIGIN = "lost_origin"


class ClaimResult(NamedTuple):
    """The fact after a claim; `conflict` is the one that the claim opened or repeated."""

    fact: Fact
    is_changed: bool
    conflict: Conflict | None = None


def fact_id(project: str, category: str, key: str) -> str:
    """Return the id that a fact of this project, category and key always has."""
    return derived_id("fact", project, category, key)


def source_of(actor: Actor) -> str:
    """Return the source name of an actor's own claims: an agent's name, `user`, `orchestrator`."""
    if actor.kind is ActorKind.AGENT:
        return actor.name or actor.kind.value
    return "user" if actor.kind is ActorKind.HUMAN else actor.kind.value


def resolve_claim(
    current: Fact | None, claim: Fact, disputes: Sequence[Conflict] = (), *, respects_rulings: bool
) -> ClaimResult:
    """Decide a claim against the current fact.

    A source may change its own claim. A file that nobody vouches for never wins over another source. Between
    two other sources the higher confidence wins, the newer on a tie; the loser goes into a conflict. With
    `respects_rulings`, a claim that was decided against stays out.
    """
    if current is None:
        return ClaimResult(claim, is_changed=True)
    extra = {**current.extra, **claim.extra}
    loses = claim.is_of_file and not current.is_of_file
    wins = current.is_of_file and not claim.is_of_file
    if claim.value == current.value:
        # Two sources agree: the surer one is named.
        surer = claim if wins or (claim.confidence > current.confidence and not loses) else current
        tags = tuple(dict.fromkeys((*current.tags, *claim.tags)))
        merged = replace(surer, created=current.created, updated=current.updated, tags=tags, extra=extra)
        updated = max(current.updated, claim.updated)
        return ClaimResult(replace(merged, updated=updated), is_changed=merged != current)
    after = replace(claim, created=current.created, tags=claim.tags or current.tags, extra=extra)
    if (claim.source, claim.origin) == (current.source, current.origin):
        return ClaimResult(after, is_changed=True)
    ruling = next((conflict for conflict in disputes if _is_ruled_out(conflict, claim, current)), None)
    if ruling is not None and (respects_rulings or loses):
        return ClaimResult(current, False, ruling)
    if wins or (claim.confidence >= current.confidence and not loses):
        return ClaimResult(after, True, _open_conflict(after, current, disputes, claim.updated))
    return ClaimResult(current, False, _open_conflict(current, claim, disputes, claim.updated))


def _is_ruled_out(ruling: Conflict, said: Fact, standing: Fact) -> bool:
    """Say whether somebody decided for the current value and against this claim."""
    if not ruling.decided_by or ruling.status is ConflictStatus.OPEN:
        return False
    kept, lost = (ruling.kept_source, ruling.kept), (ruling.lost_source, ruling.lost)
    winner, loser = (kept, lost) if ruling.status is ConflictStatus.UPHELD else (lost, kept)
    return (said.source, said.value) == loser and standing.value == winner[1]


def _open_conflict(kept: Fact, lost: Fact, disputes: Sequence[Conflict], now: datetime) -> Conflict:
    """Return the open conflict between two claims; an open one about the loser's claim is continued.

    A source has one open conflict about a fact, its latest losing claim; the ledger keeps the earlier ones.
    """
    beside = {_PROJECT: lost.project, _LOST_ORIGIN: lost.origin}
    winner, loser = _source_name(kept.source), _source_name(lost.source)
    reason = f"{winner} is surer ({kept.confidence:g}) than {loser} ({lost.confidence:g})"
    if kept.confidence == lost.confidence:
        reason = f"{winner} and {loser} are equally sure ({kept.confidence:g}): newer wins"
    if lost.is_of_file and not kept.is_of_file:
        reason = f"{winner} stands above {loser}, for which nobody vouched"
    conflict = Conflict(
        id=derived_id("conflict", kept.id, lost.source, lost.origin, lost.value, kept.source, kept.value),
        fact=kept.id,
        category=kept.category,
        key=kept.key,
        time=now,
        kept=kept.value,
        kept_source=kept.source,
        kept_confidence=kept.confidence,
        lost=lost.value,
        lost_source=lost.source,
        lost_confidence=lost.confidence,
        reason=reason,
        extra={name: value for name, value in beside.items() if value},
    )
    for known in disputes:
        is_same_claim = (known.lost_source, known.lost) == (lost.source, lost.value)
        if known.status is ConflictStatus.OPEN and is_same_claim:
            return replace(conflict, id=known.id, time=known.time)
        is_ruled = known.decided_by and known.status is ConflictStatus.UPHELD
        if known.id == conflict.id and is_ruled and is_same_claim:
            return known
    for known in disputes:
        if known.status is ConflictStatus.OPEN and _is_claim_of(known, lost):
            return replace(conflict, id=known.id)
    if any(known.id == conflict.id and known.lost != lost.value for known in disputes):
        return replace(conflict, id=derived_id(conflict.id, now.isoformat()))
    return conflict


def _is_claim_of(conflict: Conflict, said: Fact) -> bool:
    """Say whether the losing claim of a conflict came from the same source and file."""
    return (conflict.lost_source, conflict.extra.get(_LOST_ORIGIN, "")) == (said.source, said.origin)


def update_conflicts(
    disputes: Sequence[Conflict], fact: Fact, now: datetime, claim: Fact | None = None, still: str = ""
) -> list[Conflict]:
    """Return the open conflicts about a fact that its new value, or a claim about it, changes.

    One whose losing value is now the fact's is closed without a decision; in the others the new value is the
    kept one. Earlier claims of the claim's source are withdrawn, except in the conflict with the id `still`.
    """
    changed = []
    for before in disputes:
        if before.status is not ConflictStatus.OPEN:
            continue
        after, speaker = before, _source_name(fact.source)
        if before.lost == fact.value != before.kept:
            reason = f"{before.reason}; since then {speaker} says it"
            after = replace(before, status=ConflictStatus.REVERSED, decided=now, reason=reason)
        elif before.kept != fact.value:
            after = replace(
                before,
                kept=fact.value,
                kept_source=fact.source,
                kept_confidence=fact.confidence,
                reason=f"{speaker} has said something else since ({fact.confidence:g})",
            )
        is_open = after.status is ConflictStatus.OPEN
        if claim is not None and is_open and _is_claim_of(after, claim) and after.id != still:
            reason = f"{after.reason}; since then {_source_name(claim.source)} has said something else"
            after = replace(after, status=ConflictStatus.UPHELD, decided=now, reason=reason)
        if after is not before:
            changed.append(after)
    return changed


def uphold_conflict(conflict: Conflict, current: Fact | None, *, by: str, now: datetime) -> Conflict:
    """Return a conflict decided for the current value, noting when that is no longer the kept one."""
    _refuse_decided(conflict)
    reason = conflict.reason
    if current is None:
        reason = f"{reason}; nothing stands since"
    elif current.value == conflict.lost:
        hint = "reverse the conflict to keep it, or set the fact to the right value"
        raise StateError(f"{shorten_value(conflict.lost)!r} lost, but is the current value", hint=hint)
    elif current.value != conflict.kept:
        reason = f"{reason}; upheld when {shorten_value(current.value)!r} stood"
    return replace(conflict, status=ConflictStatus.UPHELD, decided=now, decided_by=by, reason=reason)


def reverse_conflict(
    conflict: Conflict, current: Fact | None, *, by: str, now: datetime, source: str = ""
) -> tuple[Conflict, Fact]:
    """Return a conflict decided for the losing value, and the fact with that value, as sure as it was.

    What a file says is from then on the word of `source`, who decided for it.
    """
    _refuse_decided(conflict)
    reason = conflict.reason
    if current is not None and current.value not in (conflict.kept, conflict.lost):
        reason = f"{reason}; reversed when {shorten_value(current.value)!r} stood"
    fact = Fact(
        id=conflict.fact,
        project=conflict.project,
        category=conflict.category,
        key=conflict.key,
        value=conflict.lost,
        source=conflict.lost_source,
        confidence=conflict.lost_confidence,
        created=current.created if current else now,
        updated=now,
        tags=current.tags if current else (),
        origin=str(conflict.extra.get(_LOST_ORIGIN, "")),
        extra=current.extra if current else {},
    )
    fact = replace(fact, source=source) if source and fact.is_of_file else fact
    done = replace(conflict, status=ConflictStatus.REVERSED, decided=now, decided_by=by, reason=reason)
    return done, fact


def _refuse_decided(conflict: Conflict) -> None:
    if conflict.status is ConflictStatus.OPEN:
        return
    day = f" on {conflict.decided:%Y-%m-%d}" if conflict.decided else ""
    by = conflict.decided_by or "what was said later"
    message = f"conflict {conflict.id!r} is {conflict.status.value} already, by {by}{day}"
    raise DecidedError(message, hint="to change the fact again, set it")


def _source_name(source: str) -> str:
    return source or "somebody"
