"""Commands that capture logs and learn from captured runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, Table, embed, note, progress
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import approval_notes, pluralize
from archivist.edges.views import capture_view, reflection_view
from archivist.errors import InputError
from archivist.records.run_words import EpisodeStatus

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.capture.service import CaptureResult
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome

# Written out: a format is imported when a log of it is read.
_FORMATS = (
    "auto", "atif", "claude-code", "codex", "swe-agent", "mini-swe-agent", "openhands", "archeflow",
    "stream",
)  # fmt: skip
# A screenful: in a folder of other files every file is refused.
_SHOWN = 20


@options.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "format_name", type=click.Choice(_FORMATS), default="auto", help="auto: by content."
)
@click.option("--run", metavar="ID", default="", help="The run's id, when the log has none or another.")
@click.option("--project", metavar="NAME", default="", help="The repository that the run worked on.")
@click.option("--status", type=options.outcome, help="How the run ended, if you know better than its log.")
@click.option(
    "--outcomes", type=click.Path(path_type=Path), metavar="FILE", help="JSON with an outcome per run."
)
def capture(
    session: Session,
    files: tuple[Path, ...],
    format_name: str,
    status: str | None,
    outcomes: Path | None,
    **about: Any,
) -> Answer:
    """Import agent logs, also whole folders; each becomes a run that waits for reflection.

    Secrets are redacted before anything is stored. The same log again changes nothing, a longer one adds.
    """
    from archivist.capture.service import CaptureOverrides

    taken: list[CaptureResult] = []
    refused: dict[str, str] = {}
    paths: list[Path] = []
    for file in files:
        paths += sorted(path for path in file.rglob("*") if path.is_file()) if file.is_dir() else [file]
    with session.bank() as bank, progress(len(paths), "capture") as advance:
        ended = EpisodeStatus(status) if status else None
        judged = bank.runs.outcomes_in(outcomes) if outcomes else {}
        known = CaptureOverrides(**about, status=ended, outcomes=judged)
        for path in paths:
            try:
                taken.append(bank.runs.capture_file(path, format_name=format_name, overrides=known))
            except InputError as error:
                refused[f"{path}: {error.message}"] = error.hint
            advance(1)
    problems = list(refused)
    # One bad log among good ones is a partial success; nothing but bad ones is an error.
    if problems and not taken:
        for problem in problems[1:_SHOWN]:
            note(f"archivist: {problem}")
        raise InputError(problems[0], hint=refused[problems[0]])
    skipped = [f"skipped {each.file}: {reason}" for each in taken for reason in each.reasons]
    # Several logs may tell of one run.
    runs = {episode.id: episode for each in taken for episode in each.episodes}
    by_status = Counter(f"  {episode.status}" for episode in runs.values())
    more = {
        **dict(by_status.most_common()),
        "events": sum(each.events for each in taken),
        "files known already": sum(each.is_unchanged for each in taken),
        "records skipped": sum(each.skipped for each in taken),
        "secrets redacted": sum(sum(each.secrets.values()) for each in taken),
    }
    rows = [("files", len(taken)), ("runs", len(runs)), *(row for row in more.items() if row[1])]
    return Answer(
        capture_view(taken, refused=problems),
        tables=[(("Captured", "Count"), rows)],
        warnings=[f"archivist: {reason}" for reason in (*problems[:_SHOWN], *skipped[:_SHOWN])],
        code=EXIT_PARTIAL if problems or skipped else 0,
    )


@options.command()
@click.option("--run", metavar="ID", default="", help="Only this run.")
@click.option("--pending", is_flag=True, help="Every run that waits (the default).")
@click.option(
    "--days", type=click.IntRange(1, 36_500), metavar="N", help="Every run of the last N days, again."
)
@click.option("--scenario", metavar="S", help="Why: session_complete, session_failed, manual, …")
def reflect(session: Session, run: str, pending: bool, days: int | None, scenario: str | None) -> Answer:
    """Learn from captured runs, with no language model: at most five lessons a run, with their evidence."""
    from archivist.doctor import check_reflection
    from archivist.reflect.trigger import ReflectionOutcome, Scenario

    if sum((bool(run), pending, days is not None)) > 1:
        raise click.UsageError("--run, --pending and --days exclude each other")
    if scenario is not None and scenario not in list(Scenario):
        raise click.UsageError(f"unknown scenario {scenario!r}\nhint: one of {', '.join(Scenario)}")
    why = Scenario(scenario) if scenario else None
    done: list[Reflection] = []
    failed: list[ReflectionOutcome] = []
    with session.bank() as bank:
        results: Iterable[Reflection | ReflectionOutcome]
        if run or days is not None:
            runs = [run] if run else bank.reflections.recent_runs(days or 0)
            usual = Scenario.MANUAL if run else Scenario.BATCH
            results, total = (bank.reflect(each, scenario=why or usual) for each in runs), len(runs)
        else:
            results = bank.reflections.reflect_waiting(scenario=why)
            total = len(bank.reflections.waiting_runs())
        with progress(total, "reflect") as advance:
            for result in results:
                if isinstance(result, ReflectionOutcome):
                    failed.append(result)
                else:
                    done.append(result)
                advance(1)
        embed(bank)
        answer = Answer(reflection_view(bank, done, failed))
        if done:
            answer = _describe_lessons(answer, bank, done)
        elif not failed:
            hint = "no run waits for reflection: archivist capture imports logs"
            is_waiting = bool(bank.reflections.waiting_runs())
            answer = answer._replace(notes=[check_reflection(bank).text if is_waiting else hint])
    return answer._replace(
        warnings=[f"archivist: {each.run}: {each.error or each.summary}" for each in failed],
        code=EXIT_PARTIAL if any(each.error for each in failed) else 0,
    )


def _describe_lessons(answer: Answer, bank: Bank, done: list[Reflection]) -> Answer:
    """Add how many lessons were learnt, and the most frequent."""
    kept = {lesson.id: lesson for each in done for lesson in (*each.created, *each.updated)}
    live = [lesson for lesson in bank.lessons.get_many(kept) if lesson.status.is_live]
    waiting = sum(lesson.status == "quarantined" for lesson in kept.values())
    by_category = Counter(f"  {lesson.category}" for lesson in live)
    counts = {
        "runs": len(done),
        "failures": sum(each.failures for each in done),
        "lessons": len(live),
        **dict(by_category.most_common()),
        "met in two runs or more": sum(lesson.frequency > 1 for lesson in live),
        "with a remedy": sum(bool(lesson.rule) for lesson in live),
        **({"quarantined": waiting} if waiting else {}),
    }
    tables: list[Table] = [(("Reflected", "Count"), list(counts.items()))]
    notes = approval_notes(waiting)
    top = sorted(live, key=lambda lesson: (-lesson.frequency, -lesson.importance, lesson.number))[:5]
    if top:
        cells = [(each.short_id, each.frequency, each.category, each.summary) for each in top]
        tables.append((("ID", "Freq", "Category", "Lesson"), cells))
        notes.append(f"{pluralize(len(live), 'lesson')} in all: archivist lessons list")
    return answer._replace(tables=tables, notes=notes)
