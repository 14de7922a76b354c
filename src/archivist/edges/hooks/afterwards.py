"""What follows a session, in a process that nobody waits for: take its log in, learn, make the vectors.

A client may tell of the end before the last lines are written, and of every turn while the session goes on.
The log is read when it has come to rest; to take the same session in again only adds what is new.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from archivist.bank import Bank
from archivist.capture.adapters import head_of, open_file, recognise
from archivist.clock import system_clock
from archivist.desks import hook_log
from archivist.desks.capturing import Known
from archivist.edges.hooks.dispatch import project_of
from archivist.errors import ArchivistError, InputError
from archivist.places import bank_file, home_folder
from archivist.records import Actor, ActorKind

_REST_S = 0.5
_LOOK_S = 0.1
_LONGEST_WAIT_S = 10.0
# So long the end of a session waits until the work on another one is done.
_LOCK_WAIT_S = 600.0
# The clients whose logs are known; of the others a log is tried, and may be in any form.
_READABLE = ("claude-code", "codex")


class Task(NamedTuple):
    """What is to be done, as it was handed over."""

    moment: str
    client: str
    session: str
    transcript: str
    folder: str
    place: str


def main(words: Sequence[str]) -> None:
    """Do what was handed over; what goes wrong is noted for the doctor."""
    task = Task(*words)
    home = bank_file(Path(task.place)).parent
    try:
        with _alone(home, is_patient=task.moment == "end") as is_alone:
            if is_alone:
                _work(task)
    except Exception as error:  # noqa: BLE001 nobody is there to see it; the doctor tells
        reason = error.message if isinstance(error, ArchivistError) else f"{type(error).__name__}: {error}"
        with suppress(OSError):
            hook_log.note(home, f"{task.client} after {task.moment}: {reason}", system_clock())


def _work(task: Task) -> None:
    log = Path(task.transcript).expanduser() if task.transcript else None
    if log is not None:
        _settle(log)
    place, home = Path(task.place), home_folder()
    with Bank.open(place, create=False, actor=Actor(ActorKind.ORCHESTRATOR, task.client)) as bank:
        beside = Bank.open(home, create=False, actor=bank.actor) if bank_file(home).is_file() else None
        try:
            if log is not None and _is_to_be_read(log, task.client):
                known = Known(run=task.session, project=_project(bank, task.folder))
                for each in (log, *_of_subagents(log)):
                    bank.finish_log(each, known=known, beside=beside)
            failed = [each for each in bank.reflect_waiting() if getattr(each, "error", "")]
            for _ in bank.embed_waiting():
                pass
        finally:
            if beside is not None:
                beside.close()
    if failed:
        raise InputError(f"reflection on {failed[0].run} failed: {getattr(failed[0], 'error', '')}")


def _settle(log: Path) -> None:
    """Wait until a log has not grown for a moment; not for ever, a session may go on."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    size, since = -1, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < _REST_S:
        now = log.stat().st_size if log.is_file() else 0
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(_LOOK_S)


def _is_to_be_read(log: Path, client: str) -> bool:
    """Say whether a log holds anything, in a form that is known; a session without a prompt has none."""
    if not log.is_file() or not log.stat().st_size:
        return False
    if client in _READABLE:
        return True
    try:
        with open_file(log) as source:
            recognise(head_of(source), log.name)
    except InputError:
        return False
    return True


def _of_subagents(log: Path) -> list[Path]:
    """Return the logs of a session's subagents, which Claude Code keeps in a folder beside its own."""
    return sorted((log.with_suffix("") / "subagents").glob("agent-*.jsonl"))


def _project(bank: Bank, folder: str) -> str:
    from archivist.desks import projects

    name = project_of(folder, bank.root)
    with bank.reading() as reader:
        return projects.named(reader, name) if name else ""


@contextmanager
def _alone(folder: Path, *, is_patient: bool) -> Iterator[bool]:
    """Let one process at a time work for a bank; a turn's end gives way, a session's end waits."""
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with (folder / hook_log.LOCK_NAME).open("a") as lock:
        deadline = time.monotonic() + (_LOCK_WAIT_S if is_patient else 0.0)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    yield False
                    return
                time.sleep(_LOOK_S)
            else:
                yield True
                return


if __name__ == "__main__":
    main(sys.argv[1:])
