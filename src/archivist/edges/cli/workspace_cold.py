"""Commands about transcripts, and about what captured runs offer to memory."""

from __future__ import annotations

from collections.abc import Sequence
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
from archivist.edges.cli.workspace_root import find_topology, require_bank, root_option

if TYPE_CHECKING:
    from archivist.workspace.cold import Transcript
    from archivist.workspace.drafts import Draft
    from archivist.workspace.drafts_service import DraftCoverage
    from archivist.workspace.save import SaveOutcome
    from archivist.workspace.transcripts_service import TranscriptLines

_LINE_CHARACTERS = 2_000
_PROBLEMS_SHOWN = 10
_OTHERS_SHOWN = 5


@click.group()
def transcripts() -> None:
    """List, capture and read raw transcripts: what is searched when nothing warmer answers."""


@transcripts.command("list")
@root_option
@json_option
@click.pass_obj
def list_(session: Session, root: str | None, as_json: bool) -> None:
    """Print each transcript in a few words, the latest first.

    The latest by the times in it, before it is captured by the date in its name, else by the file's time.
    """
    from archivist.workspace.transcripts_service import Transcripts

    with require_bank(session) as bank:
        found = Transcripts(bank, find_topology(session, root)).scan_folder()
    if as_json:
        others = [{"name": name, "reason": reason} for name, reason in found.others]
        print_json({"transcripts": [_transcript_view(each) for each in found.transcripts], "others": others})
        return
    _print_transcripts(found.transcripts)
    _note_others([f"{name} ({reason})" for name, reason in found.others])


def _note_others(others: Sequence[str]) -> None:
    """Name the files that are no transcripts, on one line."""
    if others:
        more = f" … and {len(others) - _OTHERS_SHOWN} more" if len(others) > _OTHERS_SHOWN else ""
        note(f"archivist: no transcripts: {', '.join(others[:_OTHERS_SHOWN])}{more}")


def _print_transcripts(found: Sequence[Transcript]) -> None:
    from archivist.workspace.cold import summarize_transcript

    told = [summarize_transcript(each) for each in found]
    print_table(
        ("Name", "Run", "Outcome", "First", "Last", "Size", "Task"),
        [
            (
                each.name,
                each.run,
                each.outcome,
                _format_time(each.first),
                _format_time(each.last),
                _format_size(each.size_bytes),
                each.task,
            )
            for each in told
        ],
    )
    waiting = sum(not each.run for each in told)
    if waiting:
        note(f"hint: {pluralize(waiting, 'transcript')} to take in: archivist workspace transcripts capture")


@transcripts.command()
@click.argument("names", metavar="[NAME]…", nargs=-1)
@root_option
@json_option
@click.pass_obj
def capture(session: Session, names: tuple[str, ...], root: str | None, as_json: bool) -> int:
    """Take the transcripts in, all or those named; one that did not change is not read again."""
    from archivist.workspace.transcripts_service import Transcripts

    with require_bank(session) as bank:
        taken = Transcripts(bank, find_topology(session, root)).capture(names)
    if as_json:
        captured = [_transcript_view(each) for each in taken.captured]
        print_json(
            {
                "captured": captured,
                "unchanged": taken.unchanged,
                "problems": list(taken.problems),
                "others": list(taken.others),
            }
        )
    else:
        told = f"{pluralize(len(taken.captured), 'transcript')} captured, {pluralize(taken.events, 'event')}"
        say(f"{told}; {taken.unchanged} unchanged")
    for problem in taken.problems[:_PROBLEMS_SHOWN]:
        note(f"archivist: {problem}")
    if len(taken.problems) > _PROBLEMS_SHOWN:
        note(f"archivist: … and {len(taken.problems) - _PROBLEMS_SHOWN} more")
    _note_others(taken.others)
    if taken.captured and not as_json:
        note("hint: archivist reflect learns from them, archivist recall finds what was said in them")
    return EXIT_PARTIAL if taken.problems else 0


@transcripts.command()
@click.argument("name")
@click.option(
    "--lines", "asked", metavar="A-B", help="These lines as they stand in the log, without secrets."
)
@click.option("--matching", metavar="TEXT", help="The lines that hold a text.")
@click.option("--full", "is_full", is_flag=True, help="Long lines whole.")
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
    """Print what the transcript NAME was; of RUN#12, an event that recall found, the line that tells it."""
    from archivist.workspace.transcripts_service import TranscriptLines, Transcripts

    if asked and matching is not None:
        raise click.UsageError("--lines and --matching exclude each other")
    with require_bank(session) as bank:
        desk = Transcripts(bank, find_topology(session, root))
        if asked:
            shown = desk.read_range(name, asked)
        elif matching is not None:
            shown = desk.search_lines(name, matching)
        elif "#" in name:
            shown = desk.lines_at_event(name)
        else:
            shown = TranscriptLines(desk.find(name))
    is_about_lines = bool(asked or matching is not None or "#" in name)
    if as_json:
        lines = [{"line": number, "text": text} for number, text in shown.lines]
        print_json({**_transcript_view(shown.transcript), "lines": lines, "line": shown.marked})
    elif is_about_lines:
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

    if not transcript.runs:
        say(f"{transcript.name}  {_format_size(transcript.size_bytes)}  not captured")
        note(f"hint: archivist workspace transcripts capture {transcript.name}")
        return
    say(f"{transcript.name}  {_format_size(transcript.size_bytes)}")
    for run in transcript.runs:
        for line in episode_lines(run):
            say(line)


def _transcript_view(transcript: Transcript) -> dict[str, object]:
    from archivist.workspace.cold import summarize_transcript

    told = summarize_transcript(transcript)
    return {
        "name": told.name,
        "outcome": told.outcome,
        "task": told.task,
        "first": _format_time(told.first) or None,
        "last": _format_time(told.last) or None,
        "size_bytes": told.size_bytes,
        "summary": told.summary,
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
@click.option("--save", "is_saving", is_flag=True, help="Hand them to save_memory.")
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

    Much of it is what `archivist reflect` learnt from the runs: reflect first.
    """
    from archivist.workspace.drafts_service import Drafts

    with require_bank(session) as bank:
        desk = Drafts(bank, find_topology(session, root))
        found = desk.collect(runs, scope=scope, latest=latest)
        looked_at = desk.coverage(runs, latest=latest)
        outcomes = desk.save(found, on_conflict=on_conflict) if is_saving else []
    if as_json:
        offered = [_draft_view(each.run, draft) for each in found for draft in each.drafts]
        told = [each._asdict() for each in outcomes]
        print_json({"drafts": offered, "outcomes": told, **looked_at._asdict()})
        return _exit_code(outcomes)
    if not found:
        note(f"archivist: nothing worth a draft in {pluralize(looked_at.runs, 'run')}")
    for each in found:
        say(each.run)
        for draft in each.drafts:
            _print_draft(draft)
    for outcome in outcomes:
        place = f" in {outcome.place}" if outcome.place else ""
        say(f"{outcome.result}{place}: {outcome.title}{f' ({outcome.reason})' if outcome.reason else ''}")
    _note_coverage(looked_at)
    return _exit_code(outcomes)


def _note_coverage(looked_at: DraftCoverage) -> None:
    """Say what would show more: reflection, or more runs."""
    if not looked_at.known:
        note(
            "hint: no runs yet: archivist capture, or archivist workspace transcripts capture, takes them in"
        )
        return
    if looked_at.waiting:
        wait = "1 run waits" if looked_at.waiting == 1 else f"{looked_at.waiting} runs wait"
        note(f"hint: {wait} for reflection, which finds more: archivist reflect, then drafts again")
    if looked_at.runs < looked_at.known:
        note(f"hint: {looked_at.runs} of {pluralize(looked_at.known, 'run')} looked at; --last N, --run ID")


def _exit_code(outcomes: list[SaveOutcome]) -> int:
    """Return the code that says whether something was left out."""
    return EXIT_PARTIAL if any(each.result in ("conflict", "refused") for each in outcomes) else 0


def _print_draft(draft: Draft) -> None:
    place = f" → {draft.scope}" if draft.scope else ""
    say(f"  {draft.trigger.replace('_', ' ')}: {draft.title}{place}")
    for line in draft.text.splitlines():
        if line:
            say(f"      {line}")
    if draft.conflicts_with:
        say(f"      against: {draft.conflicts_with}")
    say(f"      evidence: {', '.join(draft.evidence)}")


def _draft_view(run: str, draft: Draft) -> dict[str, object]:
    return {
        "run": run,
        "trigger": draft.trigger,
        "kind": draft.kind,
        "title": draft.title,
        "text": draft.text,
        "category": draft.category,
        "tags": list(draft.tags),
        "scope": draft.scope,
        "weight": round(draft.weight, 2),
        "evidence": list(draft.evidence),
        "conflicts_with": draft.conflicts_with,
    }
