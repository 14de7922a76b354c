"""Commands for transcripts, and for the drafts that captured runs offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace_root import find_topology, note_problems, require_bank, root_option

if TYPE_CHECKING:
    from archivist.workspace.drafts import Draft
    from archivist.workspace.drafts_service import DraftCoverage
    from archivist.workspace.transcripts_service import Transcript, TranscriptLines

_LINE_CHARACTERS = 2_000
_OTHERS_SHOWN = 5


@click.group()
def transcripts() -> None:
    """List, capture and read raw transcripts, the last place to search."""


@transcripts.command("list")
@root_option
@json_option
@click.pass_obj
def list_(session: Session, root: str | None, as_json: bool) -> None:
    """List the transcripts, the latest first.

    The time is that of the last run; before capture the date in the file name, else the file's time.
    """
    from archivist.workspace.transcripts_service import Transcripts, summarize_transcript

    with require_bank(session) as bank:
        found = Transcripts(bank, find_topology(session, root)).scan_folder()
    if as_json:
        others = [{"name": name, "reason": reason} for name, reason in found.others]
        print_json({"transcripts": [_transcript_view(each) for each in found.transcripts], "others": others})
        return
    summaries = [summarize_transcript(each) for each in found.transcripts]
    rows = [
        (
            summary.name,
            summary.run,
            summary.outcome,
            _format_time(summary.first),
            _format_time(summary.last),
            _format_size(summary.size_bytes),
            summary.task,
        )
        for summary in summaries
    ]
    print_table(("Name", "Run", "Outcome", "First", "Last", "Size", "Task"), rows)
    waiting = sum(not summary.run for summary in summaries)
    if waiting:
        note(f"hint: {pluralize(waiting, 'transcript')} to capture: archivist workspace transcripts capture")
    _note_others([f"{name} ({reason})" for name, reason in found.others])


def _note_others(others: Sequence[str]) -> None:
    """Name the files that are not transcripts, on one line."""
    if others:
        more = f" … and {len(others) - _OTHERS_SHOWN} more" if len(others) > _OTHERS_SHOWN else ""
        note(f"archivist: no transcripts: {', '.join(others[:_OTHERS_SHOWN])}{more}")


@transcripts.command()
@click.argument("names", metavar="[NAME]…", nargs=-1)
@root_option
@json_option
@click.pass_obj
def capture(session: Session, names: tuple[str, ...], root: str | None, as_json: bool) -> int:
    """Capture all transcripts, or those named; an unchanged one is not read again."""
    from archivist.workspace.transcripts_service import Transcripts

    with require_bank(session) as bank:
        done = Transcripts(bank, find_topology(session, root)).capture(names)
    if as_json:
        print_json(
            {
                "captured": [_transcript_view(each) for each in done.captured],
                "unchanged": done.unchanged,
                "problems": list(done.problems),
                "others": list(done.others),
            }
        )
    else:
        captured = f"{pluralize(len(done.captured), 'transcript')} captured"
        say(f"{captured}, {pluralize(done.events, 'event')}; {done.unchanged} unchanged")
    note_problems(done.problems)
    _note_others(done.others)
    if done.captured and not as_json:
        note("hint: archivist reflect learns from them, archivist recall finds what was said in them")
    return EXIT_PARTIAL if done.problems else 0


@transcripts.command()
@click.argument("name")
@click.option("--lines", "asked", metavar="A-B", help="These lines as they are in the log, without secrets.")
@click.option("--matching", metavar="TEXT", help="The lines that contain a text.")
@click.option("--full", "is_full", is_flag=True, help="Do not cut long lines.")
@root_option
@json_option
@click.pass_obj
def show(
    session: Session,
    name: str,
    asked: str | None,
    matching: str | None,
    is_full: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Print a summary of the transcript NAME; for RUN#12, an event from recall, print its line."""
    from archivist.workspace.transcripts_service import TranscriptLines, Transcripts

    if asked and matching is not None:
        raise click.UsageError("--lines and --matching exclude each other")
    with require_bank(session) as bank:
        service = Transcripts(bank, find_topology(session, root))
        if asked:
            shown = service.read_range(name, asked)
        elif matching is not None:
            shown = service.search_lines(name, matching)
        elif "#" in name:
            shown = service.lines_at_event(name)
        else:
            shown = TranscriptLines(service.find(name))
    if as_json:
        lines = [{"line": number, "text": text} for number, text in shown.lines]
        print_json({**_transcript_view(shown.transcript), "lines": lines, "line": shown.marked})
    elif asked or matching is not None or "#" in name:
        _print_lines(shown, is_full=is_full)
    else:
        _print_transcript(shown.transcript)


def _print_lines(shown: TranscriptLines, *, is_full: bool) -> None:
    if not shown.lines:
        note(f"archivist: no such line in {shown.transcript.name}")
    for number, text in shown.lines:
        mark = ">" if number == shown.marked else " "
        is_cut = not is_full and len(text) > _LINE_CHARACTERS
        rest = f"… (+{len(text) - _LINE_CHARACTERS} characters, --full)" if is_cut else ""
        say(f"{mark}{number:>7}  {text[:_LINE_CHARACTERS] if is_cut else text}{rest}")


def _print_transcript(transcript: Transcript) -> None:
    from archivist.edges.cli.output import episode_lines

    state = "" if transcript.runs else "  not captured"
    say(f"{transcript.name}  {_format_size(transcript.size_bytes)}{state}")
    for line in (line for run in transcript.runs for line in episode_lines(run)):
        say(line)
    if not transcript.runs:
        note(f"hint: archivist workspace transcripts capture {transcript.name}")


def _transcript_view(transcript: Transcript) -> dict[str, object]:
    from archivist.workspace.transcripts_service import summarize_transcript

    summary = summarize_transcript(transcript)
    return {
        "name": summary.name,
        "outcome": summary.outcome,
        "task": summary.task,
        "first": _format_time(summary.first) or None,
        "last": _format_time(summary.last) or None,
        "size_bytes": summary.size_bytes,
        "summary": summary.summary,
        "runs": [run.id for run in transcript.runs],
    }


def _format_time(time: object) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else ""


def _format_size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes / 1e3:.1f} kB"


# Drafts


@click.command()
@click.option(
    "--run", "runs", metavar="ID", multiple=True, help="This run, as `archivist episodes list` names it."
)
@click.option(
    "--last",
    "latest",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Without --run, the latest N runs.",
)
@click.option("--scope", metavar="SCOPE", default="", help="The scope that they belong to.")
@click.option("--save", "is_saving", is_flag=True, help="Pass them to save_memory.")
@click.option(
    "--on-conflict",
    type=click.Choice(["refuse", "supersede", "keep_both"]),
    default="refuse",
    help="What to do about entries that they contradict.",
)
@root_option
@json_option
@click.pass_obj
def drafts(
    session: Session,
    runs: tuple[str, ...],
    latest: int,
    scope: str,
    is_saving: bool,
    on_conflict: str,
    root: str | None,
    as_json: bool,
) -> int:
    """Print what captured runs offer to memory: hard-won fixes, solutions, conflicts, decisions.

    Many drafts come from the lessons of `archivist reflect`: reflect first.
    """
    from archivist.workspace.drafts_service import Drafts

    with require_bank(session) as bank:
        service = Drafts(bank, find_topology(session, root))
        found = service.collect(runs, scope=scope, latest=latest)
        coverage = service.coverage(runs, latest=latest)
        outcomes = service.save(found, on_conflict=on_conflict) if is_saving else []
    is_partial = any(outcome.result in ("conflict", "refused") for outcome in outcomes)
    if as_json:
        offered = [{"run": run.run, **_draft_view(draft)} for run in found for draft in run.drafts]
        saved = [outcome._asdict() for outcome in outcomes]
        print_json({"drafts": offered, "outcomes": saved, **coverage._asdict()})
        return EXIT_PARTIAL if is_partial else 0
    if not found:
        note(f"archivist: nothing worth a draft in {pluralize(coverage.runs, 'run')}")
    for run in found:
        say(run.run)
        for draft in run.drafts:
            _print_draft(draft)
    for outcome in outcomes:
        place = f" in {outcome.place}" if outcome.place else ""
        say(f"{outcome.result}{place}: {outcome.title}{f' ({outcome.reason})' if outcome.reason else ''}")
    _note_coverage(coverage)
    return EXIT_PARTIAL if is_partial else 0


def _note_coverage(coverage: DraftCoverage) -> None:
    """Say what would find more: a capture, a reflection, or more runs."""
    if not coverage.known:
        note("hint: no runs yet: archivist capture or archivist workspace transcripts capture adds them")
        return
    if coverage.waiting:
        wait = "1 run waits" if coverage.waiting == 1 else f"{coverage.waiting} runs wait"
        note(f"hint: {wait} for reflection, which finds more: archivist reflect, then drafts again")
    if coverage.runs < coverage.known:
        note(f"hint: {coverage.runs} of {pluralize(coverage.known, 'run')} looked at; --last N, --run ID")


def _print_draft(draft: Draft) -> None:
    place = f" → {draft.scope}" if draft.scope else ""
    say(f"  {draft.trigger.replace('_', ' ')}: {draft.title}{place}")
    for line in filter(None, draft.text.splitlines()):
        say(f"      {line}")
    if draft.conflicts_with:
        say(f"      against: {draft.conflicts_with}")
    say(f"      evidence: {', '.join(draft.evidence)}")


def _draft_view(draft: Draft) -> dict[str, object]:
    view = asdict(draft)
    view.pop("lesson")
    return {"trigger": view.pop("trigger"), **view, "weight": round(draft.weight, 2)}
