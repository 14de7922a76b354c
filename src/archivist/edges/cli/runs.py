"""Commands about runs: the two that an orchestrator calls, and their single steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.brief import fence_option, format_option, parse_form, print_brief
from archivist.edges.cli.doctor import embed
from archivist.edges.cli.output import (
    ended_choice,
    json_option,
    note,
    pluralize,
    print_json,
    report_problems,
    say,
)
from archivist.edges.cli.session import Session
from archivist.records.run_words import EpisodeStatus

if TYPE_CHECKING:
    from archivist.audit.verdicts import Regression
    from archivist.bank import Bank
    from archivist.brief.request import BriefRequest
    from archivist.brief.select import RenderedBrief
    from archivist.capture.formats.archeflow import RunLog
    from archivist.capture.service import FinishedLog, FinishedRun
    from archivist.lessons.service import AgeingResult
    from archivist.records import Lesson, Verdict


files_argument = click.argument("files", metavar="EVENTS…", nargs=-1, type=click.Path(path_type=Path))
strict_option = click.option("--strict", is_flag=True, help="Refuse everything when one line is bad.")
domain_option = click.option("--domain", metavar="D", default="", help="The domain of findings without one.")


@click.group()
def run() -> None:
    """Start and finish a run: the two calls that an orchestrator makes."""


@run.command()
@click.option("--run", "run_id", metavar="ID", default="", help="The run's id; one is made when missing.")
@click.option("--task", metavar="TEXT", default="", help="What the run is to do.")
@click.option("--domain", metavar="D", default="", help="This domain's lessons and the general ones.")
@click.option("--role", metavar="R", default="", help="Lessons for this role and for none in particular.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of the folder when missing.")
@click.option("--provider", metavar="P", default="", help="Also what is known of this provider, of no other.")
@format_option
@fence_option
@json_option
@click.pass_obj
def start(session: Session, /, run_id: str, form: str | None, as_json: bool, **asked: Any) -> None:
    """Open a run, print its brief and record both. Without a bank: prints nothing, never fails.

    A bank that cannot be written still tells what it knows; the run is then not recorded.
    """
    from archivist.clock import system_clock
    from archivist.ids import new_id

    name = run_id or new_id(system_clock())
    bank, beside = session.bank_if_any(), session.global_bank()
    told: RenderedBrief | None = None
    if bank is not None or beside is not None:
        from archivist.brief.request import BriefRequest

        request = BriefRequest(**asked, form=parse_form(form))
        if bank is not None:
            told = _start_run(bank, name, request, beside)
        elif beside is not None:
            # The global bank has no projects by whose tasks it could choose.
            told = beside.brief(request._replace(task=""))
    if not run_id:
        note(f"run: {name}")
    print_brief(bank or beside, told, as_json or form == "json", run=name)


def _start_run(bank: Bank, name: str, request: BriefRequest, global_bank: Bank | None) -> RenderedBrief:
    """Open a run and brief it; where neither can be recorded, brief it all the same."""
    from archivist.errors import BankLockedError, BankReadOnlyError

    try:
        return bank.runs.start_run(name, request, global_bank=global_bank)
    except (BankReadOnlyError, BankLockedError) as error:
        note(f"archivist: {error.message}: the run is told, but not recorded")
        return bank.brief(request.for_run(""), global_bank=global_bank)


@run.command()
@files_argument
@click.option("--run", "run_id", metavar="ID", default="", help="The run of events that do not name theirs.")
@click.option("--status", type=ended_choice, help="How it ended, if the log does not say.")
@domain_option
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 when a fixed finding came back.")
@strict_option
@json_option
@click.pass_obj
def finish(
    session: Session,
    files: tuple[Path, ...],
    run_id: str,
    status: str | None,
    domain: str,
    fail_on_regression: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Close a run: capture its EVENTS, learn, age the bank, audit, and report what came back.

    EVENTS are review events, or the log of an agent in any format that `archivist capture` knows.
    """
    from archivist.records import Episode

    if not files and not run_id:
        raise click.UsageError("name the run's event files, or the run with --run")
    ended = EpisodeStatus(status) if status else None
    agent_logs = [file for file in files if _is_agent_log(file)]
    if agent_logs:
        if len(agent_logs) != len(files):
            raise click.UsageError("review events and agents' logs cannot be mixed in one call")
        if strict:
            _refuse_bad_lines(files)
        came_back, code = _finish_logs(session, files, run_id, ended, as_json)
        return 1 if came_back and fail_on_regression else code
    log = read_log(files, run_id, strict)
    taken = log.runs
    if not taken and not files:
        taken = ((Episode(id=run_id, status=ended or EpisodeStatus.SUCCESS), ()),)
    with session.bank() as bank:
        beside = session.global_bank()
        done = [
            bank.runs.finish_run(episode, events, status=ended, domain=domain, global_bank=beside)
            for episode, events in taken
        ]
        if as_json:
            print_json(
                {
                    "runs": [_finished_view(bank, each) for each in done],
                    "skipped": _problem_texts(log.problems),
                }
            )
        else:
            for each in done:
                _print_finished(each)
    code = report_problems(log.problems)
    came_back = any(each.regressions for each in done)
    return 1 if came_back and fail_on_regression else code


@click.command()
@click.argument("files", metavar="EVENTS…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", "run_id", metavar="ID", default="", help="The run of events that do not name theirs.")
@domain_option
@strict_option
@json_option
@click.pass_obj
def extract(
    session: Session, files: tuple[Path, ...], run_id: str, domain: str, strict: bool, as_json: bool
) -> int:
    """Learn from the review findings in EVENTS. The same run twice changes nothing."""
    log = read_log(files, run_id, strict)
    met: list[Lesson] = []
    created: list[Lesson] = []
    slight = 0
    with session.bank() as bank:
        for episode, events in log.runs:
            with bank.transaction():
                bank.capture(episode, events)
                result = bank.reflections.extract(episode.id, domain=domain)
            met += result.met
            created += result.created
            slight += result.slight
        if as_json:
            print_json(
                {
                    "created": len(created),
                    "updated": len(met),
                    "slight": slight,
                    "lessons": bank.lessons.views([*created, *met]),
                    "skipped": _problem_texts(log.problems),
                }
            )
        else:
            for lesson in (*created, *met):
                say(_lesson_line(lesson))
            note(
                f"{pluralize(len(created), 'new lesson')}, {len(met)} met again, {slight} too slight to keep"
            )
    return report_problems(log.problems)


@click.command()
@click.option("--run", "run_id", metavar="ID", required=True, help="The run that has passed.")
@json_option
@click.pass_obj
def decay(session: Session, run_id: str, as_json: bool) -> None:
    """Let a finished run age the bank: lessons that ten runs did not meet lose one frequency."""
    with session.bank() as bank:
        aged = bank.lessons.decay(run_id)
        if as_json:
            print_json({"run": run_id, **_ageing_view(bank, aged)})
            return
    for lesson in (*aged.faded, *aged.archived):
        say(_lesson_line(lesson))
    was = "" if aged.was_counted else " (this run had aged the bank before)"
    note(f"{len(aged.faded)} faded, {len(aged.archived)} archived{was}")


def read_log(files: Sequence[Path], run_id: str, is_strict: bool) -> RunLog:
    """Read event files into runs; with `is_strict` one bad line refuses them all."""
    from archivist.capture.formats.archeflow import read_runs
    from archivist.files.jsonl import read_lines

    log = read_runs((line for file in files for line in read_lines(file)), run=run_id)
    if is_strict:
        _refuse_problems(log.problems)
    return log


def _refuse_problems(problems: Sequence[object]) -> None:
    """Refuse everything where there is a bad line."""
    from archivist.errors import InputError

    if problems:
        raise InputError(
            f"{pluralize(len(problems), 'bad line')}, nothing was taken; the first: {problems[0]}",
            hint="without --strict the good lines are taken",
        )


def _refuse_bad_lines(files: Sequence[Path]) -> None:
    """Read agents' logs for nothing but what cannot be read in them, and refuse all of them then."""
    from archivist.capture.formats.registry import read_log as lines_of
    from archivist.capture.json_stream import SkippedRecord

    told = ((file, item) for file in files for item in lines_of(file))
    _refuse_problems(
        [f"{file}: {item.where}: {item.reason}" for file, item in told if isinstance(item, SkippedRecord)]
    )


def _is_agent_log(file: Path) -> bool:
    """Tell an agent's own log from review events; what cannot be told is read as events, line by line."""
    from archivist.capture.formats.registry import head_of, open_file, recognise
    from archivist.errors import ArchivistError

    try:
        with open_file(file) as source:
            return recognise(head_of(source), file.name).name != "archeflow"
    except ArchivistError:
        return False


def _finish_logs(
    session: Session, files: Sequence[Path], run_id: str, ended: EpisodeStatus | None, as_json: bool
) -> tuple[bool, int]:
    """Close runs by their agents' logs; return whether a fixed finding came back, and the exit code."""
    from archivist.capture.service import CaptureOverrides

    with session.bank() as bank:
        known, beside = CaptureOverrides(run=run_id, status=ended), session.global_bank()
        done = [
            each for file in files for each in bank.runs.finish_log(file, overrides=known, global_bank=beside)
        ]
        embed(bank)
        came_back = {each.run: bank.audits.regressions(each.run) for each in done}
        left_out = list(dict.fromkeys(line for each in done for line in each.left_out))
        if as_json:
            rows = [_finished_log_view(bank, each, came_back[each.run]) for each in done]
            print_json({"runs": rows, "skipped": left_out})
        else:
            for each in done:
                _print_finished_log(each, came_back[each.run])
    return any(came_back.values()), report_problems(left_out)


def _finished_log_view(bank: Bank, done: FinishedLog, came_back: Sequence[Regression]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(done.outcome),
        "events": done.events,
        **_ageing_view(bank, done.aged),
        "verdicts": [{"lesson": told.lesson, "effect": told.effect.value} for told in done.verdicts],
        "regressions": [_regression_view(each) for each in came_back],
    }


def _print_finished_log(done: FinishedLog, came_back: Sequence[Regression]) -> None:
    learnt = f"{pluralize(done.outcome.created, 'new lesson')}, {done.outcome.updated} met again"
    faded = f"{len(done.aged.faded)} faded, {len(done.aged.archived)} archived"
    say(f"{done.run}: {pluralize(done.events, 'event')}, {learnt}, {faded}{_verdict_summary(done.verdicts)}")
    say(f"  {done.outcome.summary}")
    _print_regressions(came_back)


def _print_finished(done: FinishedRun) -> None:
    say(
        f"{done.run}: {pluralize(done.events, 'event')},"
        f" {pluralize(len(done.extraction.created), 'new lesson')},"
        f" {len(done.extraction.met)} met again, {len(done.aged.faded)} faded,"
        f" {len(done.aged.archived)} archived{_verdict_summary(done.verdicts)}"
    )
    for lesson in (*done.extraction.created, *done.extraction.met):
        say(f"  {_lesson_line(lesson)}")
    _print_regressions(done.regressions)


def _print_regressions(came_back: Sequence[Regression]) -> None:
    for each in came_back:
        say(f"  regression: {each.found.description} (fixed in {each.fixed_in})")


def _verdict_summary(verdicts: Sequence[Verdict]) -> str:
    """Say how many of the told lessons helped, and how many were withheld."""
    told = [each for each in verdicts if each.following.value != "withheld"]
    helped = sum(each.effect.value == "helpful" for each in told)
    kept = len(verdicts) - len(told)
    withheld = f", {kept} withheld" if kept else ""
    return f"; of {len(told)} briefed {helped} helped{withheld}" if verdicts else ""


def _lesson_line(lesson: Lesson) -> str:
    return f"{lesson.short_id}  {lesson.frequency}x  {lesson.status}  {lesson.summary}"


def _finished_view(bank: Bank, done: FinishedRun) -> dict[str, Any]:
    return {
        "run": done.run,
        "events": done.events,
        "created": len(done.extraction.created),
        "updated": len(done.extraction.met),
        "lessons": bank.lessons.views([*done.extraction.created, *done.extraction.met]),
        **_ageing_view(bank, done.aged),
        "verdicts": [{"lesson": each.lesson, "effect": each.effect.value} for each in done.verdicts],
        "regressions": [_regression_view(each) for each in done.regressions],
    }


def _regression_view(came_back: Regression) -> dict[str, str]:
    return {
        "found": came_back.found.description,
        "fixed": came_back.fixed,
        "fixed_in": came_back.fixed_in,
    }


def _ageing_view(bank: Bank, aged: AgeingResult) -> dict[str, Any]:
    return {
        "faded": [view["id"] for view in bank.lessons.views(aged.faded)],
        "archived": [view["id"] for view in bank.lessons.views(aged.archived)],
        "was_counted": aged.was_counted,
    }


def _problem_texts(problems: Sequence[object]) -> list[str]:
    return [str(problem) for problem in problems]
