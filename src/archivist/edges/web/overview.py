"""The overview: what this memory has done, what waits for a person; and what happens now."""

from __future__ import annotations

from typing import NamedTuple

from archivist import doctor
from archivist.audit.period import resolve_period
from archivist.bank import Bank
from archivist.charts import NARROW, WIDTH, draw_curve
from archivist.edges.views import answer_view, lesson_views, model_view, run_view
from archivist.edges.web.rendering import PageView, Visit, name_entries, page
from archivist.records.run_words import EpisodeStatus

_LATEST = 6
_RECENT_DAYS = 7
_LIVE_CHANGES = 15
_LIVE_RUNS = 30


class WaitingItem(NamedTuple):
    """Something that waits for a decision: how many, of what, and where to decide."""

    number: int
    text: str
    link: str


def _waiting_items(counts: dict[str, int]) -> list[WaitingItem]:
    def item(name: str, singular: str, plural: str, link: str) -> WaitingItem:
        count = counts[name]
        return WaitingItem(count, singular if count == 1 else plural, link)

    items = (
        item("quarantined_lessons", "lesson is quarantined", "lessons are quarantined",
             "/lessons?status=quarantined"),
        item("waiting_lessons", "lesson from elsewhere waits for approval",
             "lessons from elsewhere wait for approval", "/lessons?status=waiting"),
        item("open_proposals", "proposal is open", "proposals are open", "/proposals"),
        item("open_conflicts", "fact is contradicted", "facts are contradicted", "/knowledge"),
        item("runs_waiting", "run waits for reflection", "runs wait for reflection", "/runs"),
        item("runs_abandoned", "reflection failed for a run", "reflections failed", "/checks"),
    )  # fmt: skip
    return [each for each in items if each.number]


@page("/overview")
def overview(visit: Visit) -> PageView:
    """Show what the memory has done, how failures developed, and what waits for the visitor."""
    bank = visit.bank
    counts, curve = bank.doctor.status(), bank.audits.learning_curve(visit.query.get("project", ""))
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
            "charts": [draw_curve(curve, width=width) for width in (WIDTH, NARROW)] if curve else [],
            "recent": answer_view(recent),
            "waiting": _waiting_items(counts),
            "lessons": lesson_views(bank, latest),
            "hooks": doctor.check_hook_failures(bank.path, bank.now()),
            "model": model_view(bank),
        },
    )


@page("/live")
def live(visit: Visit) -> PageView:
    """Show the sessions that run now, what they were told, and the latest changes."""
    bank = visit.bank
    latest = bank.runs.episodes(limit=_LIVE_RUNS)
    running = [episode for episode in latest if episode.status is EpisodeStatus.RUNNING]
    told = {episode.id: _told_lessons(bank, episode.id) for episode in running}
    return PageView(
        "live.html",
        "Live",
        {
            "running": [run_view(bank, episode) for episode in running],
            "told": told,
            "lessons": lesson_views(bank, bank.lessons.latest(_LATEST)),
            "entries": name_entries(bank, bank.ledger.latest(limit=_LIVE_CHANGES)),
        },
    )


def _told_lessons(bank: Bank, run: str) -> list[tuple[str, str]]:
    """Return the short id and summary of each lesson that a run was told."""
    ids = {lesson for brief in bank.audits.briefs_of(run) for lesson in brief.lessons}
    return sorted(bank.lessons.lesson_names(ids).values()) if ids else []


@page("/checks")
def health(visit: Visit) -> PageView:
    """Run every check of the bank."""
    return PageView("health.html", "Health", {"checks": visit.bank.doctor.health()})
