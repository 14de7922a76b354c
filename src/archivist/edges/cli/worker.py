"""The command that reflects on queued runs as they come, in any number of processes."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import EXIT_PARTIAL, note, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import ArchivistError, EmbedderError
from archivist.paths import OF_PERSON, bank_name

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome

# To ask a bank whether a run waits takes 0.1 ms.
_POLL_S = 1.0


class _StopError(BaseException):
    """A signal asks the worker to end; like KeyboardInterrupt it unwinds, and leases are given back."""


@click.command()
@click.option("--once", is_flag=True, help="End when no run waits.")
@click.option(
    "--bank", "names", metavar="all|NAME,…", default="", help="The banks; by default the project's."
)
@options.as_json
@click.pass_obj
def worker(session: Session, once: bool, names: str, as_json: bool) -> int:
    """Reflect on queued runs as they come, until stopped. Any number of workers share the queue.

    Each run is leased to one worker. SIGTERM and Ctrl-C give the lease back. A worker that was killed loses
    its lease at once if it ran on this machine, else when the lease ends.
    """

    # The first signal unwinds the work in progress, a second one kills.
    def stop(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise _StopError

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    counts: Counter[str] = Counter()
    banks: dict[Path, Bank] = {}
    try:
        _work(session, names, banks, counts, is_once=once, as_json=as_json)
    except _StopError:
        note("archivist: stopped")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for bank in banks.values():
            bank.close()
    note(f"archivist: {pluralize(counts.total(), 'run')} done, {counts['failed']} failed")
    return EXIT_PARTIAL if counts["failed"] else 0


def _work(
    session: Session,
    names: str,
    banks: dict[Path, Bank],
    counts: Counter[str],
    *,
    is_once: bool,
    as_json: bool,
) -> None:
    """Take the runs of all banks in turns, and wait for more unless it is only once."""
    is_idle, problems = Event(), set[str]()
    while True:
        files = session.find_banks(names, with_people=True) if names else {"": session.require_bank_path()}
        before = counts.total()
        for file in files.values():
            try:
                bank = banks.get(file)
                if bank is None or not bank.is_there:
                    bank = banks[file] = session.open_named(file)
                for result in bank.reflections.reflect_waiting() if bank.reflections.waiting_runs() else ():
                    counts[_report(bank_name(bank.path), result, as_json=as_json)] += 1
                # One that fails is asked again with the next run.
                if counts.total() > before:
                    with suppress(EmbedderError):
                        for _ in bank.vectors.embed_waiting():
                            pass
            except ArchivistError as error:
                # Another bank can still be worked on; a lasting problem is told once.
                if is_once and len(files) == 1:
                    raise
                if error.message not in problems:
                    note(f"archivist: {error.message}")
                    problems.add(error.message)
        if counts.total() > before:
            _gather_lessons(banks)
        else:
            if is_once:
                return
            is_idle.wait(_POLL_S)


def _gather_lessons(banks: dict[Path, Bank]) -> None:
    """Give each team what the own banks of its people have in common."""
    people: dict[Path, list[Bank]] = {}
    for file, bank in banks.items():
        if OF_PERSON in bank_name(file):
            people.setdefault(file.parent.parent.with_name(file.name), []).append(bank)
    for team, own in people.items():
        if team in banks:
            for lesson in banks[team].team_lessons.gather(own):
                note(f"archivist: {bank_name(team)} learnt {lesson.short_id}, which its people met")


def _report(bank: str, result: Reflection | ReflectionOutcome, *, as_json: bool) -> str:
    """Print one line about a run, and return what became of it."""
    from archivist.reflect.trigger import ReflectionOutcome

    error = ""
    if isinstance(result, ReflectionOutcome):
        error, created, updated = result.error, result.created, result.updated
        state = "failed" if error else result.status
    else:
        created, updated, state = len(result.created), len(result.updated), "reflected"
    if as_json:
        line = {"bank": bank, "run": result.run, "state": state, "created": created, "updated": updated}
        print_json({**line, **({"error": error} if error else {})}, is_line=True)
    else:
        told = error or f"{pluralize(created, 'new lesson')}, {updated} met again"
        say(f"{bank}  {result.run}  {state}: {told}")
    # Whoever reads a pipe wants to see each line when it comes.
    sys.stdout.flush()
    return state
