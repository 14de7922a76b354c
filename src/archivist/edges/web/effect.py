"""The pages of what a run would be told, whether that helps, and the ledger of every change."""

from __future__ import annotations

from typing import Any

from archivist.audit.report import recommend_steps
from archivist.brief.select import BriefRequest
from archivist.charts import draw_report_chart
from archivist.edges.views import brief_view, report_row_view
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, page
from archivist.records.plain import to_plain
from archivist.text import estimate_tokens

_AUDIENCE = ("repo", "role", "provider", "tool", "domain")


@page("/brief")
def preview_brief(visit: Visit) -> PageView:
    """Show what a run with a task would be told, why, and what was left out; nothing is recorded."""
    bank = visit.bank
    asked: dict[str, Any] = {name: visit.query.get(name, "").strip() for name in ("task", *_AUDIENCE)}
    request = BriefRequest(**asked)
    brief = bank.brief(request)
    content = {
        "asked": asked,
        "brief": brief_view(bank, brief),
        "tokens": estimate_tokens(brief.text) if brief.text else 0,
        "budget": bank.config.brief.budget_tokens,
        "reasons": bank.briefs.reasons(brief),
        "left_out": [
            (each.short_id, each.summary, why) for each, why in bank.briefs.left_out(brief, limit=15)
        ],
        "empty": "" if brief.text else bank.briefs.explain_empty(brief, request),
        "projects": bank.runs.projects(),
    }
    return PageView("brief.html", "Brief preview", content)


@page("/audit")
def audit(visit: Visit) -> PageView:
    """Show whether lessons help: over time, and lesson by lesson, worst first."""
    found = visit.bank.audits.audit_report()
    steps = {each.lesson: to_plain(each) for each in recommend_steps(found)}
    content = {
        "total": report_row_view(found.total),
        "chart": draw_report_chart(found.total) if found.total.told else "",
        "rows": [report_row_view(row) for row in found.lessons[:PAGE_SIZE]],
        "count": len(found.lessons),
        "steps": steps,
    }
    return PageView("audit.html", "Audit", content)


@page("/ledger")
def ledger(visit: Visit) -> PageView:
    """List every change, newest first; with `verify` the whole chain is checked."""
    text = visit.query.get("before", "")
    before = int(text) if text.isdecimal() and len(text) < 16 else None
    entries = visit.bank.ledger.latest(before=before, limit=PAGE_SIZE)
    content = {
        "entries": entries,
        "next_page": visit.link(before=entries[-1].seq) if entries and entries[-1].seq > 1 else "",
        "verification": visit.bank.ledger.verify() if visit.query.get("verify") else None,
    }
    return PageView("ledger.html", "Ledger", content)
