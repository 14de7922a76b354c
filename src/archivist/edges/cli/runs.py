"""Commands about runs: the two that an orchestrator calls, and their single steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.brief import fence_option, format_option, parse_form, print_brief
from archivist.edges.cli.output import Answer, embed, note
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.records.run_words import EpisodeStatus

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.capture.results import FinishedRun
    from archivist.records import Lesson


strict_option = click.option(
    "--strict", "is_strict", is_flag=True, help="Refuse everything when one line is bad."
)
domain_option = click.option("--domain", metavar="D", default="", help="The domain of findings without one.")

run = click.Group("run", help="Start and finish a run: the two calls that an orchestrator makes.")


@run.command()
@click.option("--run", "run_id", metavar="ID", default="", help="The run's id; one is made when missing.")
@click.option("--task", metavar="TEXT", default="", help="What the run is to do.")
@click.option("--domain", metavar="D", default="", help="This domain's lessons and the general ones.")
@click.option("--role", metavar="R", default="", help="Lessons for this role and for none in particular.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of the folder when missing.")
@click.option("--provider", metavar="P", default="", help="Also what is known of this provider, of no other.")
@format_option
@fence_option
@options.as_json
@click.pass_obj
def start(session: Session, /, run_id: str, form: str | None, as_json: bool, **asked: Any) -> None:
    """Open a run, print its brief and record both. Without a bank: prints nothing, never fails.

    A bank that cannot be written still tells what it knows; the run is then not recorded.
    """
    from archivist.brief.select import BriefRequest
    from archivist.clock import system_clock
    from archivist.errors import BankLockedError, BankReadOnlyError
    from archivist.ids import new_id

    name = run_id or new_id(system_clock())
    request = BriefRequest(**asked, form=parse_form(form))
    bank, global_bank = session.bank_if_any(), session.global_bank()
    brief: RenderedBrief | None = None
    if bank is not None:
        try:
            brief = bank.runs.start_run(name, request, global_bank=global_bank)
        # A brief that is not recorded is better than a run that does not start.
        except (BankReadOnlyError, BankLockedError) as error:
            note(f"archivist: {error.message}: the run is told, but not recorded")
            brief = bank.brief(request.for_run(""), global_bank=global_bank)
    elif global_bank is not None:
        brief = global_bank.brief(request.for_run(""))
    # On stderr: stdout is the text for the prompt.
    if not run_id:
        note(f"run: {name}")
    print_brief(bank or global_bank, brief, as_json or form == "json", run=name)


@options.command(run)
@click.argument("files", metavar="EVENTS…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--run", "run_id", metavar="ID", default="", help="The run of events that do not name theirs.")
@click.option("--status", type=options.outcome, help="How it ended, if the log does not say.")
@domain_option
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 when a fixed finding came back.")
@strict_option
def finish(
    session: Session,
    files: tuple[Path, ...],
    run_id: str,
    status: str | None,
    fail_on_regression: bool,
    **how: Any,
) -> Answer:
    """Close a run: capture its EVENTS, learn, age the bank, audit, and report what came back.

    EVENTS are review events, or the log of an agent in any format that `archivist capture` knows.
    """
    from archivist.capture.service import CaptureOverrides
    from archivist.edges.views import finished_run_view

    if not files and not run_id:
        raise click.UsageError("name the run's event files, or the run with --run")
    overrides = CaptureOverrides(run=run_id, status=EpisodeStatus(status) if status else None)
    with session.bank() as bank:
        done = bank.runs.finish(*files, overrides=overrides, global_bank=session.global_bank(), **how)
        embed(bank)
        views = [finished_run_view(bank, finished) for finished in done.runs]
    has_regression = any(finished.regressions for finished in done.runs)
    return Answer(
        {"runs": views, "skipped": list(done.skipped)},
        "\n".join(line for finished in done.runs for line in _finished_lines(finished)),
        skipped=done.skipped,
        code=1 if has_regression and fail_on_regression else None,
    )


@options.bank_command()
@click.argument("files", metavar="EVENTS…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", metavar="ID", default="", help="The run of events that do not name theirs.")
@domain_option
@strict_option
def extract(bank: Bank, /, files: tuple[Path, ...], **how: Any) -> Answer:
    """Learn from the review findings in EVENTS. The same run twice changes nothing."""
    from archivist.edges.views import extract_view

    learnt = bank.runs.extract(*files, **how)
    new = pluralize(len(learnt.created), "new lesson")
    return Answer(
        extract_view(bank, learnt),
        "\n".join(map(_lesson_line, (*learnt.created, *learnt.updated))),
        (f"{new}, {len(learnt.updated)} met again, {learnt.slight} below the severity threshold",),
        skipped=learnt.skipped,
    )


@options.bank_command()
@click.option("--run", "run_id", metavar="ID", required=True, help="The run that has passed.")
def decay(bank: Bank, run_id: str) -> Answer:
    """Let a finished run age the bank: lessons that ten runs did not meet lose one frequency."""
    from archivist.edges.views import ageing_view

    aged = bank.lessons.decay(run_id)
    was = "" if aged.was_counted else " (this run had aged the bank before)"
    return Answer(
        {"run": run_id, **ageing_view(bank, aged)},
        "\n".join(map(_lesson_line, (*aged.faded, *aged.archived))),
        (f"{len(aged.faded)} faded, {len(aged.archived)} archived{was}",),
    )


def _finished_lines(done: FinishedRun) -> Iterator[str]:
    told = [verdict for verdict in done.verdicts if verdict.following != "withheld"]
    helped = sum(verdict.effect == "helpful" for verdict in told)
    withheld = len(done.verdicts) - len(told)
    briefed = f"; of {len(told)} briefed {helped} helped" if done.verdicts else ""
    yield (
        f"{done.run}: {pluralize(done.events, 'event')}, {pluralize(len(done.created), 'new lesson')},"
        f" {len(done.updated)} met again, {len(done.aged.faded)} faded, {len(done.aged.archived)} archived"
        f"{briefed}{f', {withheld} withheld' if withheld else ''}"
    )
    if done.outcome.summary:
        yield f"  {done.outcome.summary}"
    yield from (f"  {_lesson_line(lesson)}" for lesson in (*done.created, *done.updated))
    for regression in done.regressions:
        yield f"  regression: {regression.found.description} (fixed in {regression.fixed_in})"


def _lesson_line(lesson: Lesson) -> str:
    return f"{lesson.short_id}  {lesson.frequency}x  {lesson.status}  {lesson.summary}"
