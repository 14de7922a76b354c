"""Merge two versions of a lesson that two clones hold.

The merge is commutative, associative and idempotent: sets are united, counters come from their sets
or take the larger value, words and status come from the version edited last. When two versions were edited
at the same instant, the one whose words sort last wins, so that every clone decides alike.
"""

from __future__ import annotations

from dataclasses import fields, replace

from archivist.clock import to_text
from archivist.errors import RecordError
from archivist.lessons.standing import merge_sets, with_status
from archivist.records import Evidence, Lesson, Status
from archivist.records.plain import canonical_json, to_plain

# What does not come from the version edited last: sets, counters and what each bank counts for itself.
_APART = {
    "id", "number", "created", "updated", "tags", "evidence", "runs", "faded", "confirmed", "last_seen_run",
    "last_seen", "unseen_from", "prior_uses", "prior_last_used",
}  # fmt: skip


def merge_lessons(first: Lesson, second: Lesson, *, promote_at_runs: int) -> Lesson:
    """Return one lesson from two versions of it, with the status that it has earned."""
    merged = merge_versions(first, second)
    return merged if merged is first else with_status(merged, promote_at_runs=promote_at_runs)


def merge_versions(first: Lesson, second: Lesson) -> Lesson:
    """Return one lesson from two versions of it; its status is that of the version edited last."""
    if first.id != second.id:
        raise RecordError(f"lessons {first.id!r} and {second.id!r} are not versions of one lesson")
    if first == second:
        return first
    worded = max(first, second, key=_edit_order)
    seen = max(
        first,
        second,
        key=lambda version: (to_text(version.last_seen) if version.last_seen else "", version.last_seen_run),
    )
    return replace(
        worded,
        number=min(filter(None, (first.number, second.number)), default=0),
        created=min(first.created, second.created),
        updated=max(first.updated, second.updated),
        tags=first.tags if first.tags == second.tags else merge_sets(first.tags, second.tags),
        evidence=merge_evidence(first.evidence, second.evidence),
        runs=merge_sets(first.runs, second.runs),
        faded=max(first.faded, second.faded),
        confirmed=first.confirmed or second.confirmed,
        last_seen_run=seen.last_seen_run,
        last_seen=seen.last_seen,
        unseen_from=max(first.unseen_from, second.unseen_from),
        prior_uses=max(first.prior_uses, second.prior_uses),
        prior_last_used=max(filter(None, (first.prior_last_used, second.prior_last_used)), default=None),
    )


def _edit_order(lesson: Lesson) -> tuple[object, ...]:
    """Order versions by their last edit; active and candidate are one, since both are derived."""
    plain = {
        each.name: to_plain(getattr(lesson, each.name)) for each in fields(lesson) if each.name not in _APART
    }
    if lesson.status.is_live:
        plain["status"] = Status.CANDIDATE.value
    return lesson.edited, canonical_json(plain)


def merge_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return what either version cites."""
    return Evidence(
        **{
            each.name: merge_sets(getattr(first, each.name), getattr(second, each.name))
            for each in fields(Evidence)
        }
    )
