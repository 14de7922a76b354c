"""Commands that capture logs and learn from captured runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.doctor import embed
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    ended_choice,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    progress,
    say,
)
from archivist.edges.cli.session import Session
from archivist.records.run_words import EpisodeStatus

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.capture.service import CaptureResult
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome, Scenario

_FORMATS = (
    "auto", "atif", "claude-code", "codex", "swe-agent", "mini-swe-agent", "openhands", "archeflow",
    "stream",
)  # fmt: skip
_SHOWN = 20


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "format_name", type=click.Choice(_FORMATS), default="auto", help="auto: by content."
)
@click.option("--run", metavar="ID", default="", help="The run's id, when the log has none or another.")
@click.option("--project", metavar="NAME", default="", help="The repository that the run worked on.")
@click.option("--status", type=ended_choice, help="How the run ended, if you know better than its log.")
@click.option(
    "--outcomes", type=click.Path(path_type=Path), metavar="FILE", help="JSON with an outcome per run."
)
@json_option
@click.pass_obj
def capture(
    session: Session,
    files: tuple[Path, ...],
    format_name: str,
    run: str,
    project: str,
    status: str | None,
    outcomes: Path | None,
    as_json: bool,
) -> int:
    """Import agent logs, also whole folders; each becomes a run that waits for reflection.

    Secrets are redacted before anything is stored. The same log again changes nothing, a longer one adds.
    """
    from archivist.capture.service import CaptureOverrides
    from archivist.errors import InputError

    taken: list[CaptureResult] = []
    refused: list[str] = []
    hints: list[str] = []
    paths: list[Path] = []
    for file in files:
        paths += sorted(path for path in file.rglob("*") if path.is_file()) if file.is_dir() else [file]
    with session.bank() as bank, progress(len(paths), "capture") as advance:
        known = CaptureOverrides(
            run=run,
            project=project,
            status=EpisodeStatus(status) if status else None,
            outcomes=bank.runs.outcomes_in(outcomes) if outcomes else {},
        )
        for path in paths:
            try:
                taken.append(bank.runs.capture_file(path, format_name=format_name, overrides=known))
            except InputError as error:
                refused.append(f"{path}: {error.message}")
                hints.append(error.hint)
            advance(1)
    if refused and not taken:
        for reason in refused[1:_SHOWN]:
            note(f"archivist: {reason}")
        raise InputError(refused[0], hint=hints[0])
    if as_json:
        from archivist.edges.views import capture_view

        print_json(capture_view(taken, refused=refused))
    else:
        _print_capture(taken)
    for reason in refused[:_SHOWN]:
        note(f"archivist: {reason}")
    skipped = [f"{each.file}: {reason}" for each in taken for reason in each.reasons]
    for reason in skipped[:_SHOWN]:
        note(f"archivist: skipped {reason}")
    return EXIT_PARTIAL if refused or skipped else 0


@click.command()
@click.option("--run", metavar="ID", default="", help="Only this run.")
@click.option("--pending", is_flag=True, help="Every run that waits (the default).")
@click.option(
    "--days", type=click.IntRange(1, 36_500), metavar="N", help="Every run of the last N days, again."
)
@click.option("--scenario", metavar="S", help="Why: session_complete, session_failed, manual, …")
@json_option
@click.pass_obj
def reflect(
    session: Session, run: str, pending: bool, days: int | None, scenario: str | None, as_json: bool
) -> int:
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
        if run:
            done.append(bank.reflect(run, scenario=why or Scenario.MANUAL))
        else:
            for result in _reflect_each(bank, days, why):
                if isinstance(result, ReflectionOutcome):
                    failed.append(result)
                else:
                    done.append(result)
        embed(bank)
        if as_json:
            from archivist.edges.views import reflection_view

            print_json(reflection_view(bank, done, failed))
        elif done:
            _print_reflection(bank, done)
        elif not failed:
            hint = "no run waits for reflection: archivist capture imports logs"
            note(check_reflection(bank).text if bank.reflections.waiting_runs() else hint)
    for each in failed:
        note(f"archivist: {each.run}: {each.error or each.summary}")
    return EXIT_PARTIAL if any(each.error for each in failed) else 0


def _reflect_each(
    bank: Bank, days: int | None, why: Scenario | None
) -> Iterator[Reflection | ReflectionOutcome]:
    from archivist.reflect.trigger import Scenario

    runs = [] if days is None else bank.reflections.recent_runs(days)
    if days is None:
        total, results = len(bank.reflections.waiting_runs()), bank.reflections.reflect_waiting(scenario=why)
    else:
        total, results = len(runs), (bank.reflect(run, scenario=why or Scenario.BATCH) for run in runs)
    with progress(total, "reflect") as advance:
        for result in results:
            yield result
            advance(1)


def _print_capture(taken: list[CaptureResult]) -> None:
    # Several logs may tell of one run.
    runs = {episode.id: episode for each in taken for episode in each.episodes}
    by_status = Counter(episode.status.value for episode in runs.values())
    unchanged = sum(each.is_unchanged for each in taken)
    rows: list[tuple[str, object]] = [
        ("files", len(taken)),
        ("runs", len(runs)),
        *((f"  {status}", number) for status, number in by_status.most_common()),
        ("events", sum(each.events for each in taken)),
        ("files known already", unchanged),
        ("records skipped", sum(each.skipped for each in taken)),
        ("secrets redacted", sum(sum(each.secrets.values()) for each in taken)),
    ]
    print_table(("Captured", "Count"), [row for row in rows if row[1] or row[0] in ("files", "runs")])


def _print_reflection(bank: Bank, done: list[Reflection]) -> None:
    from archivist.doctor import SHOW_QUARANTINED
    from archivist.records.words import Status

    kept = {lesson.id: lesson for each in done for lesson in (*each.created, *each.updated)}
    live = [lesson for lesson in bank.lessons.get_many(kept) if lesson.status.is_live]
    waiting = sum(lesson.status is Status.QUARANTINED for lesson in kept.values())
    by_category = Counter(lesson.category.value for lesson in live)
    rows: list[tuple[str, object]] = [
        ("runs", len(done)),
        ("failures", sum(each.failures for each in done)),
        ("lessons", len(live)),
        *((f"  {category}", number) for category, number in by_category.most_common()),
        ("met in two runs or more", sum(lesson.frequency > 1 for lesson in live)),
        ("with a remedy", sum(bool(lesson.rule) for lesson in live)),
        *([("quarantined", waiting)] if waiting else []),
    ]
    print_table(("Reflected", "Count"), rows)
    if waiting:
        wait = "waits" if waiting == 1 else "wait"
        note(f"{pluralize(waiting, 'lesson')} {wait} for approval: {SHOW_QUARANTINED}")
    top = sorted(live, key=lambda lesson: (-lesson.frequency, -lesson.importance, lesson.number))[:5]
    if top:
        say("")
        print_table(
            ("ID", "Freq", "Category", "Lesson"),
            [(each.short_id, each.frequency, each.category, each.summary) for each in top],
        )
        note(f"{pluralize(len(live), 'lesson')} in all: archivist lessons list")
