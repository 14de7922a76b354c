"""Commands that forget."""

from __future__ import annotations

import sys

import click

from archivist.edges.cli.doctor import embed
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    say,
)
from archivist.edges.cli.session import Session

_LISTED_TARGETS = 10


@click.command()
@click.argument("names", metavar="[ID]…", nargs=-1)
@click.option("--matching", metavar="TEXT", help="Erase this text everywhere; - reads it from stdin.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@global_option
@json_option
@click.pass_obj
def erase(
    session: Session, names: tuple[str, ...], matching: str | None, yes: bool, is_global: bool, as_json: bool
) -> int:
    """Erase records by their ids (m-001, a run, run#12, a brief), or a text everywhere, with a receipt.

    Erasing a text keeps the records that hold it, with [erased] in its place. The exit code is 7 when a place
    still holds something or could not be checked.
    """
    from archivist.forget.receipt import receipt_lines, receipt_view

    if bool(names) == (matching is not None):
        raise click.UsageError("give IDs or --matching TEXT\nhint: archivist erase m-001")
    text = sys.stdin.read().strip() if matching == "-" else matching or ""
    bank, bare = session.bank_of(*names, is_global=is_global)
    with bank:
        targets = bank.erasure.find_erasure_targets(bare, matching=text)
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("erasing needs confirmation\nhint: --yes erases without asking")
            for target in targets[:_LISTED_TARGETS]:
                verb = "remove" if target.is_whole else "change"
                note(f"{verb}  {target.kind:<8}{target.name}  {target.words}")
            if len(targets) > _LISTED_TARGETS:
                note(f"… and {len(targets) - _LISTED_TARGETS} more")
            if not targets:
                note("no record holds it; files and free pages are still searched")
            if not click.confirm("Erase for good?", err=True):
                note("nothing was erased")
                return 0
        receipt = bank.erasure.erase(bare, matching=text)
        if as_json:
            print_json(receipt_view(receipt))
        else:
            for line in receipt_lines(receipt):
                say(line)
        if receipt.removed_count:
            embed(bank)
    return 0 if receipt.is_clean else EXIT_PARTIAL


@click.command()
@click.option("--days", type=click.IntRange(1, 36_500), metavar="N", help="Delete runs older than N days.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted; the default without --yes.")
@click.option("--yes", is_flag=True, help="Delete them.")
@global_option
@json_option
@click.pass_obj
def prune(
    session: Session, days: int | None, dry_run: bool, yes: bool, is_global: bool, as_json: bool
) -> int:
    """Delete runs with their events that are older than retention.episodes_days.

    Runs that lessons cite or that wait for reflection stay. Lessons are never deleted by age.
    """
    from archivist.forget.retention import format_mb

    if dry_run and yes:
        raise click.UsageError("--dry-run and --yes exclude each other")
    with session.bank(is_global=is_global) as bank:
        done = bank.erasure.prune(days=days, is_dry_run=not yes)
    if as_json:
        names = ("days", "runs", "trimmed", "events", "is_dry_run", "is_given_back")
        view = {name: getattr(done, name) for name in names}
        print_json({**view, "freed_bytes": done.freed, "kept": dict(done.kept)})
        return 0 if done.is_given_back else EXIT_PARTIAL
    verb = "would delete" if done.is_dry_run else "deleted"
    trimmed = f"; trimmed {pluralize(done.trimmed, 'run')} to the cited events" if done.trimmed else ""
    say(
        f"older than {done.days} days: {verb} {pluralize(done.runs, 'run')} and"
        f" {pluralize(done.events, 'event')}, about {format_mb(done.freed)}{trimmed}"
    )
    for reason, number in done.kept.items():
        say(f"kept: {pluralize(number, 'run')}, {reason}")
    if done.is_dry_run and (done.runs or done.trimmed):
        note("hint: --yes deletes them")
    if not done.is_given_back:
        note("archivist: the file keeps its size, because another process uses the bank")
        note("hint: stop that process and prune again")
    return 0 if done.is_given_back else EXIT_PARTIAL
