"""Work after a turn or session, in a process that nobody waits for: import its log, reflect, embed.

A client may announce the end before the last lines of the log are written, and announces every turn. So the
log is read once it has stopped growing; importing the same session again only adds what is new.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from archivist import projects
from archivist.access.roles import session_role
from archivist.bank import Bank
from archivist.capture.client_logs import opencode_databases, read_head
from archivist.capture.formats import head_of, open_file, recognise
from archivist.capture.service import CaptureOverrides
from archivist.doctor import LOG, READABLE
from archivist.edges.hooks.dialects import DIALECTS
from archivist.edges.hooks.dispatch import is_silent, load_config, note_failure
from archivist.errors import ArchivistError, BankError, InputError
from archivist.exchange.outbox_service import Outbox
from archivist.files import hook_log
from archivist.files.opencode import export_session, list_sessions
from archivist.files.write import replace_file
from archivist.paths import bank_file, home_folder, is_file, state_folder
from archivist.records import Actor, ActorKind, Episode, EpisodeStatus
from archivist.trust import has_bank_at

# A log that has not grown for this long is complete.
_STABLE_S = 0.5
_POLL_S = 0.1
_LONGEST_WAIT_S = 10.0
# How long the end of a session waits for the work on another one.
_LOCK_WAIT_S = 600.0
_MODEL_LOCK_NAME = "model.lock"
_MISSING = "the log file does not exist"


class FollowUpTask(NamedTuple):
    """The arguments of the process."""

    moment: str
    client: str
    session: str
    transcript: str
    folder: str
    place: str
    # Not empty when the user named the bank; else it is the one of the folder that the session ended in.
    is_named: str = ""

    @property
    def is_end(self) -> bool:
        """Say whether the session has ended, not only a turn of it."""
        return self.moment == "end"

    @property
    def is_turn(self) -> bool:
        """Say whether a turn has ended, so that there must be a log."""
        return not self.is_end or DIALECTS[self.client].is_ended_by_stop

    @property
    def log_path(self) -> Path:
        """Return the path of the session's log; only meaningful if the client named one."""
        return Path(self.transcript).expanduser()

    def first_folder(self) -> Path | None:
        """Return the folder that the session began in, if its log says so."""
        began = read_head(self.log_path).folder if self.transcript else ""
        return Path(began) if began.startswith("/") else None


def main(args: Sequence[str]) -> None:
    """Do the work; a failure is logged for the doctor."""
    task = FollowUpTask(*args)
    place = Path(task.place)
    exported: Path | None = None
    try:
        if task.client == "opencode" and (exported := _export_session(task)):
            task = task._replace(transcript=str(exported))
        if not DIALECTS[task.client].has_own_log:
            kept = hook_log.session_log(state_folder(bank_file(place)), task.session)
            task = task._replace(transcript=str(kept) if is_file(kept) else task.transcript)
        if task.transcript:
            _wait_until_stable(task.log_path)
        actor, config = Actor(ActorKind.ORCHESTRATOR, task.client), load_config(place)[0]
        with Bank.open(bank_file(place), create=False, actor=actor, config=config) as bank:
            bank.is_mirrored = any(config.files)
            state = state_folder(bank.path)
            # The end of a turn leaves the work to the next one.
            with hook_log.lock_sessions(state, _LOCK_WAIT_S if task.is_end else 0.0) as is_locked:
                if is_locked:
                    _process_session(task, bank)
                elif task.is_end:
                    raise InputError(f"another process held {hook_log.LOCK_NAME} for {_LOCK_WAIT_S:.0f} s")
            if task.is_end and (outbox := Outbox.from_settings(config.server, bank.root)) is not None:
                # What could not be sent waits for the next session, and the doctor tells why.
                outbox.send(time.time())
            if task.is_end and config.model.name:
                # A model may take minutes: other sessions must not wait for it.
                with hook_log.lock_sessions(state, 0.0, _MODEL_LOCK_NAME) as is_locked:
                    if is_locked:
                        _read_with_model(bank)
    except Exception as error:  # noqa: BLE001 nobody sees the process; the doctor shows the log
        if not is_silent(error):
            note_failure(f"{task.client} after {task.moment}", error, place)
    finally:
        if exported is not None:
            exported.unlink(missing_ok=True)


def _export_session(task: FollowUpTask) -> Path | None:
    """Write a session out of OpenCode's database, which the client does not name, to a file of our own."""
    for database in opencode_databases(Path.home(), os.environ):
        if any(each.id == task.session for each in list_sessions(database)):
            state = state_folder(bank_file(Path(task.place)))
            exported = hook_log.session_log(state, f"{task.session}-{os.getpid()}")
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(exported, export_session(database, task.session), is_private=True)
            return exported
    return None


def _process_session(task: FollowUpTask, bank: Bank) -> None:
    try:
        _capture_log(bank, task)
    finally:
        with bank.reading() as reader:
            episode = reader.get(Episode, task.session) if task.session else None
        if task.is_end and episode is not None and episode.status is EpisodeStatus.RUNNING:
            # The session has ended and no log told its outcome.
            finished = episode.finished or bank.now()
            bank.capture(replace(episode, status=EpisodeStatus.PARTIAL, finished=finished), ())
        if task.is_end and episode is not None:
            _queue_for_team(bank, task)
    failed = [result for result in bank.reflections.reflect_waiting() if getattr(result, "error", "")]
    if task.is_end and task.session and bank.config.stream.sessions_are_cycles:
        provider = DIALECTS[task.client].harness or task.client
        role = session_role(bank.config.core.roles, client=provider, folder=task.folder)
        bank.stream.log_session(task.session, role=role or task.client)
    if not (task.is_end and bank.config.model.name):
        bank.stream.reflect(if_due=True)
    for _ in bank.vectors.embed_waiting():
        pass
    bank.erasure.finish_erasures()
    hook_log.remove_old_sessions(state_folder(bank.path), time.time())
    bank.core_files.refresh()
    if bank.documents.folders():
        bank.documents.refresh()
    if failed:
        raise InputError(f"reflection on {failed[0].run} failed: {getattr(failed[0], 'error', '')}")


def _queue_for_team(bank: Bank, task: FollowUpTask) -> None:
    """Queue the session for the team's server; a wrong setting must not keep it from being learnt from."""
    try:
        if (outbox := Outbox.from_settings(bank.config.server, bank.root)) is not None:
            outbox.put(bank, task.session)
    except ArchivistError as error:
        note_failure(f"{task.client} after {task.moment}, the team's server", error, bank.path)


def _read_with_model(bank: Bank) -> None:
    """Let the configured language model read what it has not read, within its budget; log why it did not."""
    reports = list(bank.model.read_runs(bank.model.unread_runs()))
    if (done := bank.stream.reflect(if_due=True, with_model=True)).model:
        reports.append(done.model)
    if not any(report.is_unfinished for report in reports):
        reports.append(bank.model.refine())
    for _ in bank.vectors.embed_waiting():
        pass
    # A budget that is used up is as the user wants it.
    problems = (report.problem for report in reports if not report.is_exhausted)
    if problem := next(filter(None, problems), ""):
        raise InputError(f"the language model was asked no further: {problem}")


def _capture_log(bank: Bank, task: FollowUpTask) -> None:
    """Import the session's log; if there is none, record the reason in the run for the doctor.

    Only a turn must have left a log: a session without a prompt has none.
    """
    reason = _unread_reason(task)
    try:
        reason = reason or _finish_logs(bank, task)
    except ArchivistError as error:
        reason = error.message
        raise
    finally:
        if task.is_turn or not reason:
            bank.runs.note_on_run(task.session, LOG, {"client": task.client, "missing": reason})
    if reason == _MISSING and task.is_turn and task.client in READABLE:
        raise InputError(f"no log at {task.transcript!r}, {_LONGEST_WAIT_S:.0f} s after a turn had ended")


def _finish_logs(bank: Bank, task: FollowUpTask) -> str:
    """Finish the runs of the session and its subagents, and audit what either bank briefed them with.

    Return why not, if the session is not one of this bank's.
    """
    with bank.reading() as reader:
        # What an agent said of the session under its id does not decide where its log is filed.
        is_own = bool(task.session) and reader.is_own_run(task.session)
        episode = reader.get(Episode, task.session) if is_own else None
        # A session may end in another folder than it began in, and is where it began.
        first_folder = projects.checkout_folder(episode) if episode is not None else ""
        folder, began = first_folder or task.folder or str(bank.root), task.first_folder()
        project = episode.project if episode is not None else ""
        if began is not None and not projects.is_start_of(began, episode):
            if not task.is_named and not projects.is_session_of(began, bank.root):
                return "the session began in another project"
            folder, project = str(began), ""
        project = project or projects.project_at(reader, Path(folder), bank.root)
    overrides = CaptureOverrides(run=task.session, project=project, folder=folder)
    # Claude Code writes the logs of subagents into a folder beside the session's own.
    subagent_logs = (task.log_path.with_suffix("") / "subagents").glob("agent-*.jsonl")
    logs = [task.log_path, *sorted(subagent_logs)]
    # The format of a client's log is known: a file of another form is refused, not read as something else.
    format_name = task.client if task.client in READABLE else "auto"

    def finish(global_bank: Bank | None) -> None:
        for log in logs:
            done = bank.runs.finish(
                log, overrides=overrides, format_name=format_name, global_bank=global_bank
            )
            if not any(run.events for run in done.runs):
                reason = f": {done.skipped[0]}" if done.skipped else ""
                raise InputError(f"no run in {str(log)!r}{reason}", hint="is it the log of another program?")

    home = home_folder()
    try:
        if has_bank_at(bank_file(home)):
            with Bank.open(home, create=False, actor=bank.actor) as global_bank:
                finish(global_bank)
                return ""
    except BankError as error:
        # A damaged global bank must not keep the logs out; importing one twice changes nothing.
        note_failure(f"{task.client} after {task.moment}, the global bank", error, bank.path)
    finish(None)
    return ""


def _wait_until_stable(log: Path) -> None:
    """Wait until a log exists and has stopped growing, at most the longest wait: a session may go on."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    size, since = -1, time.monotonic()
    while time.monotonic() < deadline and (size < 0 or time.monotonic() - since < _STABLE_S):
        new_size = log.stat().st_size if is_file(log) else -1
        if new_size != size:
            size, since = new_size, time.monotonic()
        time.sleep(_POLL_S)


def _unread_reason(task: FollowUpTask) -> str:
    """Return why a log is not imported; empty for a log in a known format."""
    if not task.transcript:
        return "the client names no log"
    if not is_file(task.log_path):
        return _MISSING
    if not task.log_path.stat().st_size:
        return "the log is empty"
    if task.client in READABLE:
        return ""
    try:
        with open_file(task.log_path) as source:
            recognise(head_of(source), task.log_path.name)
    except InputError:
        return "the log is in an unknown format"
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
