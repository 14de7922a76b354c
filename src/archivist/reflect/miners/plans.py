"""Tell that the user refuses a plan where it is presented, and begins a new session with it."""

from __future__ import annotations

from collections.abc import Iterator

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.reading.run import RunReading
from archivist.reading.wording import is_scratch, tags
from archivist.records import Event, LessonType, Severity
from archivist.records.lesson import REQUEST_KEY
from archivist.reflect.miners.material import Material

# The tools with which clients present a plan, without marks and capitals.
_PRESENTS = frozenset(("exitplanmode", "planexit"))
# How clients and users begin a session that carries a plan out.
_BEGINS_WITH_PLAN = lazy_pattern(r"(?i)\s{0,20}(?:please )?implement (?:the following|this|the) plan\b")
_LATEST_RUNS = 40
_LEAST = 2
_IMPORTANCE = 0.5


def refused_plan(reading: RunReading) -> Event | None:
    """Return the plan that the user refused if the run did nothing more for it, else nothing."""
    plans = [event for event in reading.refused if event.tool.lower().replace("_", "") in _PRESENTS]
    if not plans:
        return None
    later = (act for act in reading.acts if act.event.seq > plans[-1].seq)
    is_done = any(not is_scratch(change.file) for act in later for change in act.changes)
    return None if is_done else plans[-1]


def mine_plans(material: Material) -> Iterator[Candidate]:
    """Say what becomes of plans, where several were refused and several sessions began with one."""
    episode = material.reading.episode
    refused = refused_plan(material.reading)
    began = bool(_BEGINS_WITH_PLAN.match(episode.task)) and not episode.is_part
    if not refused and not (began and material.reading.said):
        return
    earlier = [
        run
        for run in material.past.runs_of(material.project)
        if not run.parent and run.run not in (episode.id, episode.parent)
    ][1 - _LATEST_RUNS :]
    refusing = [run.run for run in earlier if run.digest.get("plan")]
    beginning = [run.run for run in earlier if _BEGINS_WITH_PLAN.match(run.task)]
    if len(refusing) + bool(refused) < _LEAST or len(beginning) + began < _LEAST:
        return
    counts = (
        f"{len(refusing) + bool(refused)} plans refused, {len(beginning) + began} sessions begun with one"
    )
    yield Candidate(
        key=f"{material.project}|{REQUEST_KEY}plans",
        summary=f"present a plan and stop: the user takes it to a new session ({counts})",
        rule="",
        type=LessonType.PREFERENCE,
        repo=material.project,
        tags=tags("preference", "plan"),
        importance=_IMPORTANCE,
        severity=Severity.RECOMMENDATION,
        events=(refused.id if refused else material.reading.said[0].id,),
        remedies=("present a plan and stop",),
        earlier_runs=tuple(dict.fromkeys([*refusing, *beginning])),
    )
