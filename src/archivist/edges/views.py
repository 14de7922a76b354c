"""One plain view of each record and result, for the command line, HTTP and the tools of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archivist.clock import to_short_text
from archivist.records.plain import to_plain

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.audit.analytics import ApproachResult, Rate
    from archivist.core.view import CoreView
    from archivist.records import Artifact, Block, Conflict, Document, Entry, Fact, Proposal, Token
    from archivist.stream.insights_service import Insights

View = dict[str, Any]


def time_text(time: datetime | None) -> str | None:
    """Return a time as text, or None."""
    return to_short_text(time) if time else None


def approach_view(result: ApproachResult) -> View:
    """Return what became of an approach to a task."""
    last = result.last
    counts = ("task", "approach", "attempts", "completed", "failed", "verdict")
    return {
        **{name: getattr(result, name) for name in counts},
        "agents": list(result.agents),
        "last": {
            "id": last.id,
            "action": last.action.value if last.action else None,
            "outcome": last.outcome,
            "time": time_text(last.finished),
        },
    }


def rate_view(rate: Rate) -> View:
    """Return how often something succeeded, with the bounds of that share."""
    counts = ("name", "attempts", "completed", "failed", "mean_duration_ms", "tokens_in", "tokens_out")
    low, high = rate.interval
    return {
        **{name: getattr(rate, name) for name in counts},
        "undecided": rate.undecided_count,
        "rate": rate.share,
        "low": low,
        "high": high,
        **({"periods": [rate_view(period) for period in rate.periods]} if rate.periods else {}),
    }


def table_view(record: Fact | Artifact) -> View:
    """Return a fact or an artifact under our names and under the columns of the documented tables."""
    from archivist.records.lines import to_line

    plain: View = to_plain(record)
    plain.pop("extra", None)
    return {**plain, **to_line(record)}


def conflict_view(conflict: Conflict) -> View:
    """Return a contradiction between two sources of a fact."""
    plain: View = to_plain(conflict)
    plain.pop("extra", None)
    return plain


def block_view(block: Block) -> View:
    """Return a block of core memory."""
    return {"id": block.id, **to_plain(block)}


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
        "blocks": [{**size._asdict(), "section": size.section.value} for size in view.sizes],
        "tokens": view.tokens,
        "budget": view.budget,
    }


def proposal_view(proposal: Proposal) -> View:
    """Return a proposal by its short id."""
    return {**to_plain(proposal), "id": proposal.short_id, "uid": proposal.id}


def entry_view(entry: Entry) -> View:
    """Return an entry of the stream under the document's names."""
    from archivist.records.stream_lines import to_stream_line

    return {**to_stream_line(entry), "archived": entry.is_archived}


def insights_view(done: Insights) -> View:
    """Return what reflection found in the stream."""
    return {
        "reason": done.reason,
        "skipped": done.skipped,
        "gathered": done.gathered,
        "cycles": list(done.cycles) if done.cycles else None,
        "entries": [entry_view(entry) for entry in done.entries],
        "documents": [f"{each.source}#{each.position}" for each in done.documents],
        "core": list(done.told_core),
        "problems": list(done.problems),
    }


def piece_view(piece: Document) -> View:
    """Return a piece of an archived text."""
    names = ("id", "source", "position", "heading", "line", "type", "roles", "issues", "tags", "importance")
    plain: View = to_plain(piece)
    return {**{name: plain[name] for name in (*names, "text")}, "date": time_text(piece.date)}


def token_view(token: Token, state: str) -> View:
    """Return an access token without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "actor": str(token.actor),
        "state": state,
        **{name: time_text(getattr(token, name)) for name in ("created", "expires", "revoked")},
    }
