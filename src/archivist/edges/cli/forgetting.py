"""Commands that forget."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from archivist.forget.service import ErasureTarget, PruneResult

_LISTED = 10


@click.command()
@click.argument("names", metavar="[ID]…", nargs=-1)
@click.option("--matching", metavar="TEXT", help="Erase this text wherever it stands; - reads it from stdin.")
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
        raise click.UsageError("name IDs or --matching TEXT\nhint: archivist erase m-001")
    text = sys.stdin.read().strip() if matching == "-" else matching or ""
    bank, bare = session.bank_of(*names, is_global=is_global)
    with bank:
        found = bank.erasure.find_erasure_targets(bare, matching=text)
        if not yes and not _confirm_erasure(found):
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
@click.option("--days", type=click.IntRange(1, 36_500), metavar="N", help="Age from which runs go.")
@click.option("--dry-run", is_flag=True, help="Only say what would go; the default without --yes.")
@click.option("--yes", is_flag=True, help="Do it.")
@global_option
@json_option
@click.pass_obj
def prune(
    session: Session, days: int | None, dry_run: bool, yes: bool, is_global: bool, as_json: bool
) -> int:
    """Let runs go with their events that are older than retention.episodes_days.

    What lessons cite stays, and so do runs that wait for reflection. Lessons never go by age.
    """
    if dry_run and yes:
        raise click.UsageError("--dry-run and --yes exclude each other")
    with session.bank(is_global=is_global) as bank:
        done = bank.erasure.prune(days=days, is_dry_run=not yes)
    if as_json:
        print_json(_pruning_view(done))
    else:
        _print_pruning(done)
    return 0 if done.is_given_back else EXIT_PARTIAL


def _confirm_erasure(found: list[ErasureTarget]) -> bool:
    """Show what an erasure touches and ask whether it may."""
    if not sys.stdin.isatty():
        raise click.UsageError("erasing needs a yes\nhint: --yes erases without asking")
    for each in found[:_LISTED]:
        note(f"{'remove' if each.is_whole else 'change'}  {each.kind:<8}{each.name}  {each.words}")
    if len(found) > _LISTED:
        note(f"… and {len(found) - _LISTED} more")
    if not found:
        note("no record holds it; files and free pages are looked at")
    return click.confirm("Erase for good?", err=True)


def _print_pruning(done: PruneResult) -> None:
    from archivist.forget.retention import format_mb

    verb = "would go" if done.is_dry_run else "went"
    trimmed = f", {pluralize(done.trimmed, 'run')} trimmed to what is cited" if done.trimmed else ""
    say(
        f"older than {done.days} days: {pluralize(done.runs, 'run')} and {pluralize(done.events, 'event')}"
        f" {verb}, about {format_mb(done.freed)}{trimmed}"
    )
    for why, number in done.kept.items():
        say(f"stays: {pluralize(number, 'run')}, {why}")
    if done.is_dry_run and (done.runs or done.trimmed):
        note("hint: --yes lets them go")
    if not done.is_given_back:
        note("archivist: another process uses the bank, the file keeps its size")
        note("hint: end it and prune again")


def _pruning_view(done: PruneResult) -> dict[str, object]:
    return {
        "days": done.days,
        "runs": done.runs,
        "trimmed": done.trimmed,
        "events": done.events,
        "freed_bytes": done.freed,
        "kept": dict(done.kept),
        "is_dry_run": done.is_dry_run,
        "is_given_back": done.is_given_back,
    }
