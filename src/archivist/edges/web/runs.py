"""The pages of runs and tasks: lists, a run's timeline, and how attempts at a task went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archivist.audit.analytics import GroupBy
from archivist.audit.curve import count_failures, failed_steps
from archivist.bank import Bank
from archivist.capture.runs import LATEST
from archivist.charts import NARROW, WIDTH, draw_flow, draw_rate_chart
from archivist.edges import views
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, page
from archivist.errors import InputError
from archivist.layers.artifacts_service import ArtifactCheck, FileState
from archivist.layers.tasks_service import OLDEST
from archivist.reading.timeline import fold_timeline, mark_steps, program_of
from archivist.recall.query import Query
from archivist.records import Episode, EpisodeStatus
from archivist.records.words import NOTES
from archivist.reflect.summary import ended_failing
from archivist.text import first_words

# A page holds so many parts of a timeline, and a fold that is opened so many steps: each at most about 1 kB.
_PARTS = 80
_STEPS = 60
# The runs and lessons that the graph of tools counts.
_FLOW_RUNS = 20
_FLOW_LESSONS = 200


def _run_row(bank: Bank, episode: Episode) -> views.View:
    """Return a run with the number of failures that it met, None before it was reflected on.

    A client reports success when a session ends in order; a check that failed to the end says more.
    """
    view = views.run_view(bank, episode) | {"failures": count_failures(episode.extra.get(NOTES))}
    has_failed = episode.status is EpisodeStatus.SUCCESS and ended_failing(episode.summary)
    return {**view, "word": "checks failed" if has_failed else view["status"]}


def _flow_charts(bank: Bank, episodes: Sequence[Episode], lessons: Sequence[Any], title: str) -> list[str]:
    marks: dict[str, int] = {}
    for lesson in lessons:
        said = lesson.summary.split("`")[1::2]
        for word in {lesson.tool, *lesson.tags, *(program_of("bash", call) for call in said[:1])}:
            marks[word] = marks.get(word, 0) + 1
    uses = bank.runs.tool_uses(episodes)
    return [draw_flow(uses, marks, title, width) for width in (WIDTH, NARROW)] if uses else []


@page("/runs")
def list_runs(visit: Visit) -> PageView:
    """List the runs of all projects or one, the latest first."""
    bank = visit.bank
    project, text = (visit.query.get(name, "") for name in ("project", "task"))
    found = bank.runs.episodes(project=project, text=text, after=visit.read_cursor(), limit=PAGE_SIZE + 1)
    # Attempts have a page of their own, by task; what still runs is linked above the list.
    shown = (
        each for each in found[:PAGE_SIZE] if each.action is None and each.status is not EpisodeStatus.RUNNING
    )
    return PageView(
        "runs.html",
        " ".join(filter(None, ("Runs", project))),
        {
            "runs": [_run_row(bank, each) for each in shown],
            "next_page": visit.next_page(found, LATEST),
            "projects": bank.runs.projects(),
            # They have no end by which they could be listed.
            "running": len(bank.sessions.running(PAGE_SIZE)),
        },
    )


@page("/runs/flow")
def show_flow(visit: Visit) -> PageView:
    """Show which tools the latest runs of a project went through, and where lessons exist."""
    bank, project = visit.bank, visit.query.get("project", "")
    episodes = bank.runs.episodes(project=project, limit=_FLOW_RUNS)
    lessons = bank.lessons.query(Query(repo=project, limit=_FLOW_LESSONS))
    title = f"Tools of the latest {len(episodes)} runs"
    content = {
        "charts": _flow_charts(bank, episodes, lessons, title),
        "projects": bank.runs.projects(),
        "lessons": views.lesson_views(bank, lessons[:PAGE_SIZE]),
    }
    return PageView("flow.html", "Tools and providers", content)


@page("/runs/steps/{run:path}")
def show_steps(visit: Visit) -> PageView:
    """Return the steps of a stretch that the timeline has folded."""
    bank, episode = visit.bank, visit.bank.runs.episode(visit.names["run"])
    try:
        first, last = int(visit.query.get("first", "")), int(visit.query.get("last", ""))
    except ValueError:
        raise InputError("no stretch of steps", hint="first and last are numbers") from None
    shown = range(first, min(last, first + _STEPS - 1) + 1)
    events = {event.seq: event for event in bank.runs.events(episode.id, shown)}
    rest = (shown[-1] + 1, last) if shown and shown[-1] < last else None
    return PageView("steps.html", "Steps", {"events": events, "run": episode.id, "rest": rest})


@page("/runs/{run:path}")
def show_run(visit: Visit) -> PageView:
    """Show a run: what it was told, its timeline, the lessons it gave and the files it made."""
    bank = visit.bank
    episode = bank.runs.episode(visit.names["run"])
    lessons = bank.lessons.of_run(episode)
    mark = f"{episode.id}#"
    cited = {
        int(name.removeprefix(mark)): lesson.short_id
        for lesson in lessons
        for name in lesson.evidence.events
        if name.startswith(mark) and name.removeprefix(mark).isdecimal()
    }
    outline = bank.runs.outline(episode.id)
    marks = mark_steps(outline, cited, failed_steps(episode.extra.get(NOTES), episode.id))
    parts = fold_timeline(outline, marks)
    start = int(visit.query.get("part", "0")) if visit.query.get("part", "0").isdecimal() else 0
    shown = parts[start : start + _PARTS]
    events = bank.runs.events(episode.id, [part.first for part in shown if part.mark])
    briefs = bank.audits.briefs_of(episode.id)
    told = {name for brief in briefs for name in brief.lessons}
    held = {name for brief in briefs for name in brief.withheld}
    names = bank.lessons.lesson_names(told | held) if told or held else {}
    # The files that the run registered, and whether each is still as it was.
    registered = bank.artifacts.query(task=episode.task, limit=PAGE_SIZE) if episode.task else ()
    made = [each for each in registered if each.run == episode.id]
    checks = bank.artifacts.verify([each.id for each in made]) if made else ()
    states = {check.artifact.id: check.state.value for check in checks}
    return PageView(
        "run.html",
        first_words(episode.task, 60) or f"Run {episode.id[:12]}",
        {
            "run": _run_row(bank, episode),
            "timeline_parts": shown,
            "start": start,
            "more": start + _PARTS if len(parts) > start + _PARTS else 0,
            "steps": len(outline),
            "is_repeated": bool(episode.task) and len(bank.runs.episodes(task=episode.task, limit=2)) > 1,
            "events": {event.seq: event for event in events},
            "cited": cited,
            "lessons": views.lesson_views(bank, lessons),
            "briefs": briefs,
            "told": [names[each] for each in told if each in names],
            "held": [names[each] for each in held if each in names],
            "verdicts": views.verdicts_view(bank, bank.audits.verdicts(run=episode.id)),
            "artifacts": [(views.table_view(each), states.get(each.id, "")) for each in made],
            "charts": _flow_charts(bank, [episode], lessons, "Tools of this run"),
        },
    )


@page("/tasks")
def list_tasks(visit: Visit) -> PageView:
    """List the planned tasks, how attempts at tasks went, and the files that tasks produced."""
    found = visit.bank.attempts.analytics(by=GroupBy.TASK)
    rows = found.rows[:PAGE_SIZE]
    planned = visit.bank.tasks.query(after=visit.read_cursor(), limit=PAGE_SIZE + 1)
    waits = visit.bank.tasks.waits_for(planned[:PAGE_SIZE])
    titles = {task.id: task.title for task in planned}
    content = {
        "tasks": [
            views.task_view(task, [titles.get(name, name) for name in waits.get(task.id, ())])
            for task in planned[:PAGE_SIZE]
        ],
        "next_page": visit.next_page(planned, OLDEST),
        "rows": [views.rate_view(row) for row in rows],
        "chart": draw_rate_chart(found) if rows else "",
        "artifacts": [views.table_view(each) for each in visit.bank.artifacts.query(limit=PAGE_SIZE)],
    }
    return PageView("tasks.html", "Tasks", content)


@page("/tasks/of")
def show_task_of_run(visit: Visit) -> PageView:
    """Show the task of a run, whose words may be too many for an address."""
    return _show_task(visit.bank, visit.bank.runs.episode(visit.query.get("run", "")).task)


@page("/tasks/{task:path}")
def show_task(visit: Visit) -> PageView:
    """Show a task: each approach with its verdict, the attempts and the runs."""
    return _show_task(visit.bank, visit.names["task"])


def _artifact_row(check: ArtifactCheck) -> views.View:
    """Return an artifact; one whose file is not as it was registered is marked in its description."""
    row = views.check_view(check)
    if check.state is not FileState.SAME:
        described = f": {check.artifact.description}" if check.artifact.description else ""
        row["description"] = f"{check.state.value} since it was registered{described}"
    return row


def _show_task(bank: Bank, task: str) -> PageView:
    attempts = bank.attempts.query(task=task, limit=PAGE_SIZE)
    runs = {each.id: each for each in bank.runs.episodes(task=task, limit=PAGE_SIZE) if each.action is None}
    # The run of an attempt may be named after the task's title.
    with bank.reading() as reader:
        runs |= reader.records("episode", [each.parent for each in attempts if each.parent not in runs])
    artifacts = bank.artifacts.query(task=task, limit=PAGE_SIZE)
    checks = bank.artifacts.verify([each.id for each in artifacts]) if artifacts else []
    content = {
        "task": task,
        "approaches": [views.approach_view(each) for each in bank.attempts.list_approaches(task)],
        "attempts": [views.attempt_view(bank, each) for each in attempts],
        "runs": [_run_row(bank, episode) for episode in runs.values()],
        "artifacts": [_artifact_row(check) for check in checks],
    }
    return PageView("task.html", f"Task {task[:60]}", content)
