"""What follows a session, in a process that nobody waits for: take its log in, learn, make the vectors.

A client may tell of the end before the last lines are written, and of every turn while the session goes on.
The log is read when it has come to rest; to take the same session in again only adds what is new.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from archivist import projects
from archivist.bank import Bank
from archivist.capture.formats.registry import head_of, open_file, recognise
from archivist.capture.service import CaptureOverrides
from archivist.doctor import LOG, READABLE
from archivist.edges.hooks.said import Dialect
from archivist.edges.hooks.whereabouts import note_failure
from archivist.errors import ArchivistError, BankError, InputError
from archivist.files import hook_log
from archivist.paths import bank_file, home_folder, is_file
from archivist.records import Actor, ActorKind, Episode, EpisodeStatus

_REST_S = 0.5
_LOOK_S = 0.1
_LONGEST_WAIT_S = 10.0
# So long the end of a session waits until the work on another one is done.
_LOCK_WAIT_S = 600.0
_MISSING = "its log is not where it says"


class FollowUpTask(NamedTuple):
    """What is to be done, as it was handed over."""

    moment: str
    client: str
    session: str
    transcript: str
    folder: str
    place: str

    @property
    def is_end(self) -> bool:
        """Say whether the session has ended, not only a turn of it."""
        return self.moment == "end"

    @property
    def is_turn(self) -> bool:
        """Say whether a turn has ended, so that there must be a log; some clients tell of nothing else."""
        dialect: Dialect = import_module(f"archivist.edges.hooks.{self.client.replace('-', '_')}").DIALECT
        return not self.is_end or dialect.is_ended_by_stop

    @property
    def log_path(self) -> Path:
        """Return the session's log as the client names it; only of use when it names one."""
        return Path(self.transcript).expanduser()


def main(args: Sequence[str]) -> None:
    """Do what was handed over; what goes wrong is noted for the doctor."""
    task = FollowUpTask(*args)
    place = Path(task.place)
    try:
        if task.transcript:
            _wait_until_stable(task.log_path)
        with _exclusive_lock(bank_file(place).parent, is_patient=task.is_end) as is_alone:
            if is_alone:
                _process_session(task, place)
            elif task.is_end:
                raise InputError(f"other work held {hook_log.LOCK_NAME} for {_LOCK_WAIT_S:.0f} s")
    except Exception as error:  # noqa: BLE001 nobody is there to see it; the doctor tells
        note_failure(f"{task.client} after {task.moment}", error, place)


def _process_session(task: FollowUpTask, place: Path) -> None:
    with Bank.open(place, create=False, actor=Actor(ActorKind.ORCHESTRATOR, task.client)) as bank:
        try:
            _capture_log(bank, task)
        finally:
            if task.is_end:
                _close_run(bank, task.session)
        failed = [each for each in bank.reflections.reflect_waiting() if getattr(each, "error", "")]
        for _ in bank.vectors.embed_waiting():
            pass
    if failed:
        raise InputError(f"reflection on {failed[0].run} failed: {getattr(failed[0], 'error', '')}")


def _capture_log(bank: Bank, task: FollowUpTask) -> None:
    """Take the session's log in, and let its run keep for the doctor why that did not come, if it did not.

    Only a turn must have left a log: a session without a prompt has none.
    """
    why = _unread_reason(task)
    try:
        if not why:
            _finish_logs(bank, task)
    except ArchivistError as error:
        why = error.message
        raise
    finally:
        if task.is_turn or not why:
            _record_log_state(bank, task, why)
    if why == _MISSING and task.is_turn and task.client in READABLE:
        raise InputError(f"no log at {task.transcript!r}, {_LONGEST_WAIT_S:.0f} s after a turn had ended")


def _record_log_state(bank: Bank, task: FollowUpTask, why: str) -> None:
    with bank.transaction() as writer:
        begun = writer.get(Episode, task.session) if task.session else None
        kept = {"client": task.client, "missing": why}
        if begun is not None and begun.extra.get(LOG) != kept:
            writer.put(replace(begun, extra={**begun.extra, LOG: kept}), "capture")


def _finish_logs(bank: Bank, task: FollowUpTask) -> None:
    """Take in what the session and its subagents did, and judge what they were told by either bank."""
    with bank.reading() as reader:
        begun = reader.get(Episode, task.session) if task.session else None
        # A session may end in another folder than it began in; it stays where it was filed.
        folder = (
            (projects.checkout_folder(begun) if begun is not None else "") or task.folder or str(bank.root)
        )
        project = (begun.project if begun is not None else "") or projects.project_at(
            reader, Path(folder), bank.root
        )
    known = CaptureOverrides(run=task.session, project=project, folder=folder)
    logs = [task.log_path, *_subagent_logs(task.log_path)]
    home, beside = home_folder(), None
    try:
        if is_file(bank_file(home)):
            beside = Bank.open(home, create=False, actor=bank.actor)
            for each in logs:
                bank.runs.finish(each, overrides=known, global_bank=beside)
            return
    except BankError as error:
        # What was taken in already stays; the rest does not wait until the global bank is mended.
        note_failure(f"{task.client} after {task.moment}, the global bank", error, bank.path)
    finally:
        if beside is not None:
            beside.close()
    for each in logs:
        bank.runs.finish(each, overrides=known)


def _close_run(bank: Bank, run: str) -> None:
    """Close a run that has ended and of which no log told how: nobody knows what it came to."""
    with bank.reading() as reader:
        known = reader.get(Episode, run) if run else None
    if known is not None and known.status is EpisodeStatus.RUNNING:
        ended = known.finished or bank.now()
        bank.capture(replace(known, status=EpisodeStatus.PARTIAL, finished=ended), ())


def _wait_until_stable(log: Path) -> None:
    """Wait until a log is there and has not grown for a moment; not for ever, a session may go on."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    size, since = -1, time.monotonic()
    while time.monotonic() < deadline and (size < 0 or time.monotonic() - since < _REST_S):
        now = log.stat().st_size if is_file(log) else -1
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(_LOOK_S)


def _unread_reason(task: FollowUpTask) -> str:
    """Say why a log is not read; nothing when it holds something, in a form that is known."""
    if not task.transcript:
        return "it names no log"
    if not is_file(task.log_path):
        return _MISSING
    if not task.log_path.stat().st_size:
        return "its log is empty"
    if task.client in READABLE:
        return ""
    try:
        with open_file(task.log_path) as source:
            recognise(head_of(source), task.log_path.name)
    except InputError:
        return "its log is in no form that is known"
    return ""


def _subagent_logs(log: Path) -> list[Path]:
    """Return the logs of a session's subagents, which Claude Code keeps in a folder beside its own."""
    return sorted((log.with_suffix("") / "subagents").glob("agent-*.jsonl"))


@contextmanager
def _exclusive_lock(folder: Path, *, is_patient: bool) -> Iterator[bool]:
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
