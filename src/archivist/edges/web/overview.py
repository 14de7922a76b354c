"""The overview and what happens now; what a run would be told, whether that helps, and every change."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from archivist import doctor
from archivist.audit.period import AuditPeriod, resolve_period
from archivist.audit.report import recommend_steps
from archivist.brief.select import BriefRequest
from archivist.charts import NARROW, WIDTH, draw_curve, draw_report_chart
from archivist.clock import from_text, to_short_text
from archivist.edges.views import answer_view, brief_view, lesson_views, model_view, report_row_view, run_view
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, name_entries, page
from archivist.errors import InputError
from archivist.records.plain import to_plain
from archivist.text import estimate_tokens

# Of a chart for wide screens and of one for narrow ones.
_WIDTHS = (WIDTH, NARROW)
_LATEST = 6
_RECENT_DAYS = 7
_LIVE_CHANGES = 15
_LIVE_RUNS = 30
_RECENT_START = timedelta(days=1)


# The count in the status, its words for one and for several, and the page to decide on.
_WAITING = (
    ("quarantined_lessons", "lesson is quarantined", "lessons are quarantined",
     "/lessons?status=quarantined"),
    ("waiting_lessons", "lesson from elsewhere waits for approval",
     "lessons from elsewhere wait for approval", "/lessons?status=waiting"),
    ("open_proposals", "proposal is open", "proposals are open", "/proposals"),
    ("open_conflicts", "fact is contradicted", "facts are contradicted", "/knowledge"),
    ("runs_waiting", "run waits for reflection", "runs wait for reflection", "/runs"),
    ("runs_abandoned", "reflection failed for a run", "reflections failed", "/checks"),
    ("outdated_rules", "rule no longer says what its lesson says",
     "rules no longer say what their lessons say", "/proposals#outdated"),
    ("doubtful_lessons", "lesson does not help as it stands: reword or forget it",
     "lessons do not help as they stand: reword or forget them", "/audit#suggestions"),
)  # fmt: skip
# Checking every record of a larger bank takes seconds: its overview only links to the checks.
_CHECKED_EVENTS = 50_000


@page("/overview")
def overview(visit: Visit) -> PageView:
    """Show what the memory has done, how failures developed, and what waits for the visitor."""
    bank = visit.bank
    counts, curve = bank.doctor.status(), bank.audits.learning_curve(visit.query.get("project", ""))
    counts |= {"doubtful_lessons": len(doctor.find_doubtful_lessons(bank))}
    counts |= {"outdated_rules": len(bank.proposals.outdated_rules())}
    began = bank.audits.first_brief()
    latest = bank.lessons.latest(_LATEST)
    recent = bank.audits.audit_report(resolve_period(bank.now(), days=_RECENT_DAYS))
    return PageView(
        "overview.html",
        "Overview",
        {
            "counts": counts,
            "learnt": counts["active_lessons"] + counts["candidate_lessons"],
            "curve": curve,
            "projects": bank.runs.projects(),
            "charts": [draw_curve(curve, width=width, began=began) for width in _WIDTHS if curve],
            "recent": answer_view(recent),
            "waiting": [
                {"number": counts[name], "text": one if counts[name] == 1 else several, "link": link}
                for name, one, several, link in _WAITING
                if counts[name]
            ],
            "lessons": lesson_views(bank, latest),
            "is_checked_here": counts["events"] + counts["active_lessons"] <= _CHECKED_EVENTS,
            "model": model_view(bank),
        },
    )


@page("/live")
def live(visit: Visit) -> PageView:
    """Show the sessions that run now, what they were told, and the latest changes."""
    bank = visit.bank
    running = bank.sessions.running(_LIVE_RUNS)
    # The short id and summary of each lesson that a run was told.
    told = {}
    for episode in running:
        ids = {lesson for brief in bank.audits.briefs_of(episode.id) for lesson in brief.lessons}
        told[episode.id] = sorted(bank.lessons.lesson_names(ids).values()) if ids else []
    return PageView(
        "live.html",
        "Live",
        {
            "running": [run_view(bank, episode) for episode in running],
            # A client that was killed never says that its session ended.
            "recent_from": to_short_text(bank.now() - _RECENT_START),
            "told": told,
            "lessons": lesson_views(bank, bank.lessons.latest(_LATEST)),
            "entries": name_entries(bank, bank.ledger.latest(limit=_LIVE_CHANGES)),
        },
    )


@page("/checks")
def health(visit: Visit) -> PageView:
    """Run every check of the bank."""
    return PageView("health.html", "Health", {"checks": visit.bank.doctor.health()})


_AUDIENCE = ("repo", "role", "provider", "tool", "domain")


@page("/brief")
def preview_brief(visit: Visit) -> PageView:
    """Show what a run with a task would be told, why, and what was left out; nothing is recorded."""
    # As a session in the project's folder asks: that says which project is meant.
    bank = visit.bank.working_in(visit.bank.folder or visit.bank.root)
    asked: dict[str, Any] = {name: visit.query.get(name, "").strip() for name in ("task", *_AUDIENCE)}
    request = BriefRequest(**asked)
    # What is in the user's global bank is told to the user's sessions, and shown to nobody else.
    with bank.global_bank() if visit.is_owner else nullcontext() as global_bank:
        brief = bank.brief(request, global_bank=global_bank)
    content = {
        "asked": asked,
        "brief": brief_view(bank, brief),
        "tokens": estimate_tokens(brief.text) if brief.text else 0,
        "budget": bank.config.brief.budget_tokens,
        "reasons": bank.briefs.reasons(brief),
        "crowded": brief.count_crowded(),
        "left_out": bank.briefs.left_out(brief, request, limit=15),
        "empty": "" if brief.text else brief.why_no_lesson,
        "projects": bank.runs.projects(),
    }
    return PageView("brief.html", "Brief preview", content)


@page("/audit")
def audit(visit: Visit) -> PageView:
    """Say whether memory helped in a period; then over time, and lesson by lesson, worst first."""
    audits, project = visit.bank.audits, visit.query.get("project", "")
    period = _read_period(visit)
    found = audits.audit_report(period, project=project)
    curve = audits.learning_curve(project, period)
    steps = {each.lesson: to_plain(each) for each in recommend_steps(found)}
    began, is_judged = audits.first_brief(), sum(each.share is not None for each in found.total.periods) > 1
    content = {
        "answer": answer_view(found),
        "period": period,
        "projects": visit.bank.runs.projects(),
        "total": report_row_view(found.total),
        "curve": [
            draw_curve(curve, width=each, since=period.since, began=began) for each in _WIDTHS if curve
        ],
        "charts": [draw_report_chart(found.total, width=each) for each in _WIDTHS if is_judged],
        "rows": [report_row_view(row) for row in found.lessons[:PAGE_SIZE]],
        "count": len(found.lessons),
        "steps": steps,
        "has_lift": any(row.lift.interval for row in found.lessons[:PAGE_SIZE]),
    }
    return PageView("audit.html", "Audit", content)


def _read_period(visit: Visit) -> AuditPeriod:
    """Return the period of the address: the last days, or from one day to another, both included."""
    days, (first, last) = visit.query.get("days", ""), (visit.query.get(name, "") for name in ("from", "to"))
    if days and not (days.isdecimal() and len(days) < 6):
        raise InputError(f"no number of days: {days!r}", hint="days=7")
    try:
        since, until = (from_text(day) if day else None for day in (first, last))
        until = until + timedelta(days=1) if until else None
    except (ValueError, OverflowError):
        raise InputError("no day", hint="write days as 2026-04-03") from None
    return resolve_period(visit.bank.now(), days=int(days or 0), since=since, until=until)


@page("/ledger")
def ledger(visit: Visit) -> PageView:
    """List every change, newest first; with `verify` the whole chain is checked."""
    text = visit.query.get("before", "")
    before = int(text) if text.isdecimal() and len(text) < 16 else None
    entries = visit.bank.ledger.latest(before=before, limit=PAGE_SIZE)
    content = {
        "entries": name_entries(visit.bank, entries),
        "next_page": visit.link(before=entries[-1].seq) if entries and entries[-1].seq > 1 else "",
        "verification": visit.bank.ledger.verify() if visit.query.get("verify") else None,
    }
    return PageView("ledger.html", "Ledger", content)
