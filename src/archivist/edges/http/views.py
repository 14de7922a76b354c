"""Write what the bank answers as plain values, in the documents' own names where they have any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from archivist.clock import to_short_text
from archivist.layers.attempts.service import reported_tokens
from archivist.records.lines import to_line, to_stream_line
from archivist.records.plain import to_plain

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.audit.lift import Lift
    from archivist.audit.report import ReportRow
    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.capture.service import CaptureResult, FinishedLog, FinishedRun
    from archivist.core.view import CoreView
    from archivist.lessons.service import AgeingResult
    from archivist.recall.service import Hit
    from archivist.records import Artifact, Document, Entry, Episode, Fact, Proposal, Verdict
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome
    from archivist.store.ledger import LedgerChange
    from archivist.stream.insights_service import Insights

View = dict[str, Any]


def time_text(time: datetime | None) -> str | None:
    """Return a time as text, or None."""
    return to_short_text(time) if time else None


def table_row(record: Fact | Artifact) -> View:
    """Return a row of the documented tables, under its column names."""
    return to_line(record)


def attempt_row(attempt: Episode) -> View:
    """Return an attempt as a row of the documented `episodes` table."""
    ended, began = attempt.finished, attempt.started
    tokens_in, tokens_out = reported_tokens(attempt)
    return {
        "id": attempt.id,
        "task_id": attempt.task,
        "agent_id": attempt.agent,
        "action": attempt.action.value if attempt.action else None,
        "approach": attempt.approach,
        "outcome": attempt.outcome or None,
        "duration_ms": round((ended - began).total_seconds() * 1000) if ended and began else None,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "created_at": time_text(ended),
        "provider": attempt.provider,
        "run": attempt.parent,
    }


def run_view(episode: Episode) -> View:
    """Return a run as plain values."""
    plain: View = to_plain(episode)
    return {
        "run": plain.pop("id"),
        **plain,
        "started": time_text(episode.started),
        "finished": time_text(episode.finished),
    }


def brief_view(bank: Bank, rendered_brief: RenderedBrief) -> View:
    """Return a brief: its text, and the lessons in it."""
    views = bank.lessons.views([each.lesson for each in rendered_brief.chosen])
    return {
        "text": rendered_brief.text,
        "lessons": [
            {**view, "is_global": each.is_global}
            for view, each in zip(views, rendered_brief.chosen, strict=True)
        ],
        "brief": rendered_brief.brief_id,
        "withheld": [each.name for each in rendered_brief.withheld],
        "stale": dict(rendered_brief.stale),
    }


def hit_view(hit: Hit) -> View:
    """Return something that was found."""
    return {
        "id": hit.name,
        "uid": hit.id,
        "kind": hit.kind,
        "text": hit.text,
        "score": round(hit.score, 6),
        "time": time_text(hit.time),
        "notes": list(hit.notes),
        "window": list(hit.window),
    }


def change_view(change: LedgerChange) -> View:
    """Return one change of a record, with the record as it was left."""
    entry = change.entry
    return {
        "seq": entry.seq,
        "time": time_text(entry.time),
        "actor": str(entry.actor),
        "verb": entry.verb,
        "kind": entry.kind,
        "is_erased": change.is_erased,
        "after": change.after,
    }


def capture_view(taken: CaptureResult, name: str) -> View:
    """Return what a log brought."""
    return {
        "file": name,
        "runs": [run_view(each) for each in taken.episodes],
        "events": taken.events,
        "changed": taken.changed,
        "skipped": taken.skipped,
        "reasons": list(taken.reasons),
        "secrets": dict(taken.secrets),
        "unchanged": taken.is_unchanged,
    }


def reflection_view(bank: Bank, done: Sequence[Reflection], failed: Sequence[ReflectionOutcome]) -> View:
    """Return what was learnt from some runs."""
    created = dict.fromkeys(lesson.id for each in done for lesson in each.created)
    updated = dict.fromkeys(lesson.id for each in done for lesson in each.updated)
    names = {**created, **updated}
    return {
        "created": len(created),
        "updated": len(updated),
        "lessons": bank.lessons.views(bank.lessons.get_many(names)),
        "runs": [
            {
                "run": each.run,
                "scenario": each.scenario.value,
                "failures": each.failures,
                **asdict(each.account),
            }
            for each in done
        ],
        "failed": [{"run": each.run, "error": each.error} for each in failed],
    }


def finished_view(bank: Bank, done: FinishedRun) -> View:
    """Return how a run was closed."""
    return {
        "run": done.run,
        "events": done.events,
        "created": len(done.extraction.created),
        "updated": len(done.extraction.met),
        "lessons": bank.lessons.views([*done.extraction.created, *done.extraction.met]),
        **_ageing_view(bank, done.aged),
        "verdicts": verdicts_view(done.verdicts),
        "regressions": [
            {"found": each.found.description, "fixed": each.fixed, "fixed_in": each.fixed_in}
            for each in done.regressions
        ],
    }


def finished_log_view(bank: Bank, done: FinishedLog) -> View:
    """Return how a run was closed whose log is an agent's own."""
    return {
        **asdict(done.outcome),
        "events": done.events,
        **_ageing_view(bank, done.aged),
        "verdicts": verdicts_view(done.verdicts),
    }


def _ageing_view(bank: Bank, aged: AgeingResult) -> View:
    return {
        "faded": [view["id"] for view in bank.lessons.views(aged.faded)],
        "archived": [view["id"] for view in bank.lessons.views(aged.archived)],
        "was_counted": aged.was_counted,
    }


def verdicts_view(verdicts: Iterable[Verdict]) -> list[View]:
    """Return what became of each lesson that was told."""
    return [
        {"lesson": each.lesson, "effect": each.effect.value, "following": each.following.value}
        for each in verdicts
    ]


def line_view(line: ReportRow) -> View:
    """Return one line of the audit's report."""
    low, high = line.posterior.interval
    counts = ("lesson", "summary", "told", "followed", "ignored", "not_applicable", "helpful", "ineffective")
    return {
        **{name: getattr(line, name) for name in counts},
        "share": line.share,
        "posterior": {"mean": line.posterior.mean, "low": low, "high": high},
        "lift": _lift_view(line.lift),
    }


def _lift_view(lift: Lift) -> View:
    low, high = lift.interval or (None, None)
    return {
        **asdict(lift.arms),
        "difference": lift.difference,
        "low": low,
        "high": high,
        "verdict": lift.conclusion.value,
        "runs_needed": lift.runs_needed,
    }


def core_view(view: CoreView) -> View:
    """Return what a role has in its context."""
    return {
        "role": view.role,
        "text": view.text,
        "playbook": view.playbook,
        "rules": view.rules,
        "status": to_plain(view.status),
        "threads": to_plain(view.threads),
        "role_state": to_plain(view.role_state),
        "lessons": view.lessons,
        "blocks": [{**each._asdict(), "section": each.section.value} for each in view.sizes],
        "tokens": view.tokens,
        "budget": view.budget,
    }


def entry_view(entry: Entry) -> View:
    """Return an entry of the stream under the document's names."""
    return {**to_stream_line(entry), "archived": entry.is_archived}


def insights_view(done: Insights) -> View:
    """Return what reflection found in the stream."""
    return {
        "reason": done.reason,
        "skipped": done.skipped,
        "gathered": done.gathered,
        "cycles": list(done.cycles) if done.cycles else None,
        "entries": [entry_view(each) for each in done.entries],
        "documents": [f"{each.source}#{each.position}" for each in done.documents],
        "core": list(done.told_core),
        "problems": list(done.problems),
    }


def piece_view(piece: Document) -> View:
    """Return a piece of an archived text."""
    plain: View = to_plain(piece)
    kept = (
        "id",
        "source",
        "position",
        "heading",
        "line",
        "type",
        "roles",
        "issues",
        "tags",
        "importance",
        "text",
    )
    return {**{name: plain[name] for name in kept}, "date": time_text(piece.date)}


def proposal_view(proposal: Proposal) -> View:
    """Return a proposal by its short id."""
    return {**to_plain(proposal), "id": proposal.short_id, "uid": proposal.id}
