"""Check a bank: its ledger, index and vectors, pending work, and the hooks that feed it."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.access.rights import DENIAL, Layer, reads, writes
from archivist.clock import from_text
from archivist.errors import ArchivistError, BankDamagedError, BankError, EmbedderError
from archivist.recall.query import LIVE
from archivist.recall.results import FRESH
from archivist.records import ConflictStatus, Episode, Lesson, ProposalStatus, Status, TaskState
from archivist.records.run_words import UNREAD, EpisodeStatus
from archivist.service import BankService
from archivist.store.filters import any_of, contains_text, equals, not_equals, one_of
from archivist.store.rows import DECODING_ERRORS

if TYPE_CHECKING:
    from archivist.audit.report import LessonRecommendation
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# A hook failure is a warning for so long; one of no bank is told in every project, and may be a call by hand.
_FORGIVEN_AFTER, _FORGIVEN_ANYWHERE = timedelta(days=7), timedelta(days=1)
# Where a session's run keeps whether its client's log was captured.
LOG = "log"
# The clients whose log format is known; logs of others are tried, and may be in any format.
READABLE = ("claude-code", "codex")
# One missing log can be a crash; three sessions in a row mean that the client writes none.
_MISSED = 3
_LATEST_SESSIONS = 200
# The doctor does not wait for a writer; a lock that lasts longer is worth reporting.
_PATIENCE_S = 0.5
# A capture or a reflection can take some tens of megabytes.
_LITTLE_MB = 64
_NAMED = 10
# One damaged page breaks many indexes; a message has no room for all.
_NAMED_DAMAGE = 3
SHOW_QUARANTINED = "archivist lessons list --status quarantined"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    is_well: bool
    text: str


def failed_check(name: str, error: ArchivistError) -> Check:
    """Return the check that an error prevented."""
    return Check(name, False, f"{error.message}: {error.hint}" if error.hint else error.message)


def name_damage(error: BankDamagedError) -> BankDamagedError:
    """Return the error of a bank that does not open, with the damage that SQLite finds in its file."""
    import apsw

    from archivist.store.results import Damage, choose_remedy
    from archivist.store.sqlite.check import find_damage
    from archivist.store.sqlite.store import connect

    found: list[Damage] = []
    with suppress(apsw.Error), closing(connect(Path(error.place), apsw.SQLITE_OPEN_READONLY)) as db:
        found += find_damage(db)
    where = "; ".join(map(str, found[:_NAMED_DAMAGE])) or error.where
    where += f"; and {len(found) - _NAMED_DAMAGE} more" if len(found) > _NAMED_DAMAGE else ""
    # Indexes are built again from a bank that opens.
    return BankDamagedError(error.place, where, hint=choose_remedy([Damage(error.place, where)]))


def _say_waiting(count: int, noun: str) -> str:
    return f"1 {noun} waits" if count == 1 else f"{count} {noun}s wait"


# Each check returns whether all is well, and what to say.


def _check_ledger(bank: Bank) -> tuple[bool, str]:
    found = bank.ledger.verify()
    if found.problems:
        rest = len(found.problems) - _NAMED
        more = f"; {rest} more, which archivist verify lists" if rest > 0 else ""
        return False, f"{'; '.join(found.problems[:_NAMED])}{more}: {found.remedy}"
    return True, f"{found.entries} entries; file, indexes, hashes and records match"


def _check_writing(bank: Bank) -> tuple[bool, str]:
    from shutil import disk_usage

    with bank.transaction(timeout_s=_PATIENCE_S):
        pass
    if bank.store.server:
        return True, "the bank can be written"
    # An empty transaction succeeds even on a full disk.
    return check_disk_space(disk_usage(bank.path.parent).free)


def check_disk_space(left_bytes: int) -> tuple[bool, str]:
    """Check that the disk has room for more writes."""
    left_mb = left_bytes / 1024 / 1024
    if left_mb < _LITTLE_MB:
        return False, f"the disk has {left_mb:.1f} MB left: free some space"
    return True, "the bank can be written"


def _check_locks(bank: Bank) -> tuple[bool, str]:
    """Try the locks where the bank lies, and name a file system that several machines can use."""
    from archivist.files.locks import find_lock_problem, find_network_type

    if bank.store.server:
        return True, "the server locks each bank by itself"
    folder = bank.path.absolute().parent
    if problem := find_lock_problem(folder):
        return False, f"{problem}: two writers would damage the bank: move it to a local disk"
    if kind := find_network_type(folder):
        advice = "use it from one machine only, or move it to a local disk"
        return False, f"the bank lies on a network or shared file system ({kind}): {advice}"
    return True, "file locks work"


def _check_vectors(bank: Bank) -> tuple[bool, str]:
    from archivist.recall.embedders import changed_dimensions
    from archivist.recall.embedders.endpoint import EndpointEmbedder

    try:
        embedder = bank.embedder
    except ArchivistError as error:
        return False, f"{error.message}: archivist config recall.embedder"
    if embedder is None:
        return True, "off: recall.embedder is none"
    with bank.reading() as reader:
        in_use, waiting = reader.embedder_in_use(), reader.pending_embedding_count(embedder.name)
        width = reader.embedder_dimensions(embedder.name)
    if width and isinstance(embedder, EndpointEmbedder):
        # What its model is, only the endpoint knows.
        try:
            if len(embedder.embed_query("dimensions")) != width:
                changed = changed_dimensions(embedder, width)
                return False, f"{changed.message}: archivist doctor --reindex"
        except EmbedderError as error:
            return False, f"words alone are searched: {error.message}"
    if 0 < waiting <= FRESH and in_use in ("", embedder.name):
        return True, f"{waiting} of {embedder.name} will be made by the next reflection"
    if waiting:
        meanwhile = f"; meanwhile {in_use} is used" if in_use not in ("", embedder.name) else ""
        wait = _say_waiting(waiting, "text")
        return False, f"{wait} for {embedder.name}{meanwhile}: archivist doctor --reindex"
    return True, f"all made by {in_use}" if in_use else "none yet"


def _check_capture(bank: Bank) -> tuple[bool, str]:
    """Name the latest captured run, and the clients that leave no log."""
    with bank.reading() as reader:
        # A session that only began has left no log yet.
        has_log = any_of((not_equals("status", EpisodeStatus.RUNNING),), (equals("started", None),))
        latest = reader.select(Episode, equals("action", None), has_log, order=("-finished",), limit=1)
        silent = _silent_clients(reader)
        damaged = reader.select(Episode, contains_text("extra", f'"{UNREAD}":'), order=("-finished",))
    parts = ["no run was captured yet"]
    for run in latest:
        # A log without times leaves a run of which nobody knows when it ended.
        when = f"ended {run.finished:%Y-%m-%d %H:%M} UTC" if run.finished else "ended at an unknown time"
        parts = [f"the last run, {run.id}, {when}"]
    parts += [
        f"nothing is learnt from {client}: in its last {_MISSED} sessions {reason}"
        for client, reason in silent.items()
    ]
    if damaged:
        noted = damaged[0].extra.get(UNREAD)
        reason = noted.get("first") if isinstance(noted, dict) else ""
        runs = "1 run" if len(damaged) == 1 else f"{len(damaged)} runs"
        parts.append(f"the logs of {runs} were read in part, the last {damaged[0].id} ({reason})")
    is_well = not any(client in READABLE for client in silent)
    advice = ": archivist capture FILE captures a log" if silent else ""
    if not is_well:
        advice = ": let the client keep its logs, or pass them to archivist capture"
    return is_well, "; ".join(parts) + advice


def _silent_clients(reader: Reader) -> dict[str, str]:
    """Return the clients whose latest sessions left no log, and the reason of the last one."""
    rows = reader.select_fields(
        "episode", ("extra",), equals("action", None), order=("-started",), limit=_LATEST_SESSIONS
    )
    reasons: dict[str, list[str]] = {}
    for (extra,) in rows:
        kept = json.loads(extra).get(LOG)
        if isinstance(kept, dict):
            reasons.setdefault(str(kept.get("client")), []).append(str(kept.get("missing") or ""))
    return {
        client: found[0]
        for client, found in reasons.items()
        if len(found) >= _MISSED and all(found[:_MISSED])
    }


def _latest_captured(bank: Bank) -> dict[str, datetime]:
    """Return when the latest session ended whose log a hook had captured, by client."""
    fields = ("extra", "finished")
    with bank.reading() as reader:
        rows = reader.select_fields(
            "episode", fields, equals("action", None), order=("-started",), limit=_LATEST_SESSIONS
        )
    found: dict[str, datetime] = {}
    for extra, finished in rows:
        kept = json.loads(extra).get(LOG)
        if finished and isinstance(kept, dict) and not kept.get("missing"):
            client, when = str(kept.get("client")), from_text(finished)
            found[client] = max(when, found.get(client, when))
    return found


def logged_versions(bank: Bank) -> dict[str, str]:
    """Return the version of each client, by its name in runs, that its latest captured log names."""
    with bank.reading() as reader:
        rows = reader.select_fields(
            "episode", ("agent", "extra"), equals("action", None), order=("-started",), limit=_LATEST_SESSIONS
        )
    found: dict[str, str] = {}
    for agent, extra in rows:
        if version := json.loads(extra).get("agent_version"):
            found.setdefault(str(agent), str(version))
    return found


def count_sessions(bank: Bank) -> Counter[str]:
    """Count the captured sessions of the folder's project by the client's name in runs."""
    from archivist.projects import names_of, project_at

    with bank.reading() as reader:
        names = names_of(reader, project_at(reader, bank.folder or bank.root, bank.root))
        conditions = equals("action", None), one_of("project", names)
        rows = reader.select_fields("episode", ("agent", "parent"), *conditions)
    return Counter(str(agent) for agent, parent in rows if not parent)


def check_reflection(bank: Bank) -> tuple[bool, str]:
    """Check for runs that wait for reflection while no process works on them."""
    waiting, now = bank.reflections.waiting_runs(), bank.now()
    failed = next((each for each in waiting if each.error), None)
    if failed is not None:
        again = f"archivist reflect --run {failed.run}"
        return False, f"run {failed.run} failed: {failed.error}: {again}"
    abandoned = set(bank.reflections.abandoned_runs())
    if abandoned:
        are = f"run {min(abandoned)} was" if len(abandoned) == 1 else f"{len(abandoned)} runs were"
        return False, f"{are} being reflected on by a process that is gone: archivist reflect takes over"
    held = [each.leased_until for each in waiting if each.leased_until and each.leased_until > now]
    free = len(waiting) - len(held)
    if free:
        return False, f"{_say_waiting(free, 'run')}: archivist reflect"
    if held:
        are = "1 run is" if len(held) == 1 else f"{len(held)} runs are"
        text = f"{are} being reflected on, until {max(held):%H:%M} UTC at the latest"
        return True, text
    if bank.config.model.name and (unread := bank.model.waiting_runs()):
        return (
            True,
            f"{_say_waiting(len(unread), 'run')} for the language model: archivist reflect asks again",
        )
    return True, "no run waits"


def _check_liveness(bank: Bank) -> tuple[bool, str]:
    """Name the lessons about files or commands that are gone from the working tree."""
    with bank.reading() as reader:
        lessons = reader.select(Lesson, one_of("status", LIVE), order=("number",))
    gone = bank.liveness.find_stale(lessons)
    if not gone:
        return True, "no lesson names anything that is gone"
    named = [f"{lesson.short_id}: {gone[lesson.id]}" for lesson in lessons if lesson.id in gone]
    return False, "; ".join(named) + ": archivist lessons edit or forget"


def _check_brief(bank: Bank) -> tuple[bool, str]:
    """Say what a session that starts in this folder is told, or why nothing."""
    # As hooks and `archivist brief` ask.
    brief = bank.brief()
    if brief.text:
        told = len(brief.chosen)
        return True, f"a session that starts here is told {told} {'lesson' if told == 1 else 'lessons'}"
    return True, f"a session that starts here is told nothing: {brief.why_no_lesson}"


def _check_quarantine(bank: Bank) -> tuple[bool, str]:
    """Count quarantined lessons, and name live ones that today's rules would quarantine."""
    from archivist.lessons.quarantine import is_quarantined

    with bank.reading() as reader:
        waiting = reader.count(Lesson, equals("status", Status.QUARANTINED))
        live = reader.select(Lesson, one_of("status", LIVE), order=("number",))
    doubtful = [lesson.short_id for lesson in live if is_quarantined(lesson)]
    if doubtful:
        named = ", ".join(doubtful[:_NAMED])
        return False, f"{named} would be quarantined today: archivist lessons approve or forget"
    if not waiting:
        brought = sum(lesson.is_waiting for lesson in live)
        listed = f"{_say_waiting(brought, 'lesson')} for a person or a run: archivist lessons list --waiting"
        return True, listed if brought else "no lesson waits for approval"
    todo = f"{SHOW_QUARANTINED}, then lessons approve or forget"
    return False, f"{_say_waiting(waiting, 'lesson')} for approval: {todo}"


def _check_erasure(bank: Bank) -> tuple[bool, str]:
    """Finish what killed erasures left, and name what cannot be finished."""
    receipts = [*bank.finished_erasures, *bank.erasure.finish_erasures()]
    bank.finished_erasures = ()
    told = [f"finished the interrupted erasure {receipt.id}" for receipt in receipts]
    unclean = [line for receipt in receipts for line in receipt.unclean_places]
    for erasure in bank.erasure.unfinished_erasures():
        begun = f"the erasure {erasure.id} of {erasure.time:%Y-%m-%d %H:%M} UTC is not finished"
        if bank.store.is_read_only:
            unclean.append(f"{begun}: open the bank where it can be written")
        elif erasure.has_key:
            unclean.append(f"{begun}: another process works on it")
        else:
            unclean.append(f"{begun} and its key is gone: erase the text again, archivist erase --matching -")
    return not unclean, "; ".join((*told, *unclean)) or "nothing is left to clean"


def _check_size(bank: Bank) -> tuple[bool, str]:
    warnings = bank.erasure.check_growth()
    return not warnings, "; ".join(warnings) or "small enough"


def _check_retention(bank: Bank) -> tuple[bool, str]:
    rules, last = bank.config.retention, bank.erasure.last_pruned()
    days, latest = rules.episodes_days, bank.config.reflect.related_runs
    kept = (
        f"the latest {latest} runs of a project are kept, and those that lessons cite; others go {days} days"
        f" after they ended or were captured, artifacts after {rules.artifacts_days}"
    )
    by = "a finished run prunes, at most once a day"
    if not rules.automatic:
        kept, by = "everything is kept", "only archivist prune --yes prunes"
    when = f"last pruned {str(last['time'])[:10]}: {_pruned_text(last)}" if last else "not pruned yet"
    return True, f"{kept}; {by}; {when}"


def _pruned_text(last: dict[str, object]) -> str:
    return f"{last.get('runs', 0)} runs, {last.get('artifacts', 0)} artifacts"


def _check_audit(bank: Bank) -> tuple[bool, str]:
    """Name the lessons that their verdicts suggest to reword or retire."""
    told = [f"{each.step} {each.lesson}: {each.reason}" for each in find_doubtful_lessons(bank)]
    return not told, "; ".join(told) or "no lesson needs rewording"


def find_doubtful_lessons(bank: Bank) -> list[LessonRecommendation]:
    """Return which lessons their verdicts suggest to reword or retire, or retired in vain, and why."""
    from archivist.audit.report import RecommendedStep, recommend_steps

    steps = recommend_steps(bank.audits.audit_report())
    doubtful = [each for each in steps if each.step is not RecommendedStep.KEEP]
    in_use = [each for each in doubtful if bank.lessons.get(each.lesson).status in LIVE]
    return [*in_use, *bank.audits.retired_again()]


def check_hook_failures(
    bank: Path | None, now: datetime, is_past: Callable[[datetime, str], bool] = lambda *_: False
) -> Check:
    """Report the last hook failure, of a bank or of none; both are logged under the user's home.

    One whose cause is gone, by its time and text, is past.
    """
    from archivist.files import hook_log
    from archivist.paths import state_folder

    home = _home_or_none()
    folders = [] if home is None else [home, *([state_folder(bank)] if bank is not None else [])]
    noted = [
        (when, what, each)
        for each in folders
        for when, what in [hook_log.last_failure(each, is_past)]
        if when
    ]
    patience = {folder: _FORGIVEN_ANYWHERE if folder == home else _FORGIVEN_AFTER for folder in folders}
    fresh = [each for each in noted if now - each[0] <= patience[each[2]]]
    if not noted:
        return Check("failures", True, "no hook has failed")
    when, what, where = max(fresh or noted)
    told = f"the last hook to fail, {when:%Y-%m-%d %H:%M} UTC, was {what}"
    if not fresh:
        return Check("failures", True, told)
    end = f"{when + patience[where]:%Y-%m-%d %H:%M} UTC"
    remedy = f"see {where / hook_log.FILE_NAME}, and remove it once that is fixed; this warning ends {end}"
    return Check("failures", False, f"{told}: {remedy}")


def check_server(bank: Bank) -> Check:
    """Say what waits for the team's server, and why."""
    from archivist.exchange.outbox_service import Outbox

    try:
        outbox = Outbox.from_settings(bank.config.server)
    except ArchivistError as error:
        return failed_check("team", error)
    found = outbox.state() if outbox is not None else None
    if outbox is None or found is None or not (found.waiting or found.refused):
        return Check("team", True, f"nothing waits for {bank.config.server.url}")
    told = f"{_say_waiting(found.waiting, 'run')} for {outbox.url}"
    told += f", the server cannot read {found.refused} in {outbox.folder}" if found.refused else ""
    reason = f": {found.problem}" if found.problem else ""
    return Check("team", False, f"{told}{reason}; archivist sync sends what waits")


def _home_or_none() -> Path | None:
    """Return the user's own folder, or None for a user without a home."""
    from archivist.paths import home_folder

    try:
        return home_folder()
    except RuntimeError:
        return None


def _check_trust(bank: Bank) -> tuple[bool, str]:
    """Warn of a bank that git publishes, of a log that is gone, and of a name that may be another's."""
    from archivist.files.git import find_git_problem
    from archivist.projects import project_and_doubt
    from archivist.trust import describe_loss

    file = bank.path
    looks = (describe_loss, find_git_problem, _find_worktree_problem)
    about_file = () if bank.store.server else (look(file) for look in looks)
    problems = [problem for problem in about_file if problem]
    with bank.reading() as reader:
        _, name = project_and_doubt(reader, bank.folder or bank.root, bank.root)
    if name:
        told = f"what is filed under {name!r} is told in no folder, as another could be called the same"
        problems.append(f"{told}: if it is this one's, archivist lessons claim {shlex.quote(name)}")
    return not problems, "; ".join(problems) or "the bank was made here or accepted by you"


def _check_workspace(bank: Bank) -> tuple[bool, str]:
    found = bank.workspace.find_drift()
    more = f"; and {len(found) - _NAMED_DAMAGE} more" if len(found) > _NAMED_DAMAGE else ""
    return not found, "; ".join(map(str, found[:_NAMED_DAMAGE])) + more or "agent tools have the hot files"


def _find_worktree_problem(file: Path) -> str:
    """Say of a bank in a linked worktree that it is gone with it, and how to move it; else nothing."""
    from archivist.files.worktrees import shared_place
    from archivist.paths import FOLDER, has_bank, project_folder

    own = project_folder(file)
    main = shared_place(own)
    if main == own or file.parent.name != FOLDER:
        return ""
    there = shlex.quote(str(main))
    move = f"mv {file.parent} {there}, and there archivist trust"
    if has_bank(main):
        move = f"archivist export DIR, and in {there} archivist import --approve DIR"
    told = "the bank lies in a linked worktree: the others do not see it, and git worktree remove deletes it"
    return f"{told}: {move}"


# Name → check of a bank, in the order of the report.
_CHECKS: dict[str, Callable[[Bank], tuple[bool, str]]] = {
    "ledger": _check_ledger,
    "trust": _check_trust,
    "writing": _check_writing,
    "locks": _check_locks,
    "engine": lambda bank: bank.store.check_engine(),
    "vectors": _check_vectors,
    "capture": _check_capture,
    "reflection": check_reflection,
    "brief": _check_brief,
    "liveness": _check_liveness,
    "quarantine": _check_quarantine,
    "erasure": _check_erasure,
    "size": _check_size,
    "retention": _check_retention,
    "audit": _check_audit,
    "workspace": _check_workspace,
}


class Doctor(BankService):
    """The health and the size of the bank."""

    @reads(Layer.BANK)
    def status(self) -> dict[str, int]:
        """Return the number of records of each kind."""
        # A locked bank can still be counted; the doctor says what is left.
        with suppress(BankError):
            self._bank.erasure.finish_erasures()
        abandoned = len(self._bank.reflections.abandoned_runs())
        with self._bank.reading() as reader:
            runs = reader.count("episode", equals("action", None))
            return {
                **{f"{word}_lessons": reader.count("lesson", equals("status", word)) for word in Status},
                "waiting_lessons": reader.count("lesson", equals("is_waiting", 1), one_of("status", LIVE)),
                "runs": runs,
                "runs_counted": reader.run_count(),
                "runs_waiting": len(reader.queued_runs()),
                "runs_abandoned": abandoned,
                "events": reader.count("event"),
                "briefs": reader.count("brief"),
                "verdicts": reader.count("verdict"),
                "facts": reader.count("fact"),
                "open_conflicts": reader.count("conflict", equals("status", ConflictStatus.OPEN)),
                "attempts": reader.count("episode") - runs,
                "artifacts": reader.count("artifact"),
                "open_tasks": reader.count("task", equals("state", TaskState.OPEN)),
                "running_tasks": reader.count("task", equals("state", TaskState.RUNNING)),
                "stream_entries": reader.count("entry"),
                "archived_pieces": reader.count("document"),
                "open_proposals": len(self._bank.proposals.list(ProposalStatus.OPEN)),
                "denials": len(reader.changes(kind=DENIAL)),
            }

    @reads(Layer.BANK)
    def health(self, is_past: Callable[[datetime, str], bool] = lambda *_: False) -> list[Check]:
        """Return every check of the bank; one that cannot be made says why, and the others still run.

        `is_past` says of a hook's failure, by its time and text, whether its cause is gone.
        """
        bank, found = self._bank, []
        for name, check in _CHECKS.items():
            try:
                found.append(Check(name, *check(bank)))
            except ArchivistError as error:
                found.append(failed_check(name, error))
            except DECODING_ERRORS as error:
                # The first check names the damage that makes this one fail; without damage it is a bug.
                if found[0].is_well:
                    raise
                found.append(Check(name, False, f"could not be checked in a damaged bank: {error}"))
        captured = _latest_captured(bank)

        def is_mended(when: datetime, text: str) -> bool:
            client, _, moment = text.partition(" ")
            # The process that reads a session's log after a hook: a later log was read whole.
            return is_past(when, text) or (moment.startswith("after ") and captured.get(client, when) > when)

        found.append(check_hook_failures(bank.path, bank.now(), is_mended))
        if bank.config.server.url:
            found.append(check_server(bank))
        # The rest of a path is nobody's business: reports are pasted into issues.
        folders = ((bank.root.absolute(), ""), (Path.home(), "~/"), (_home_or_none(), "$ARCHIVIST_HOME/"))
        for folder, name in folders:
            found = [replace(check, text=check.text.replace(f"{folder}{os.sep}", name)) for check in found]
        return found

    @writes(Layer.BANK)
    def reindex(self) -> None:
        """Rebuild everything that is derived from the records; in a new file where pages are damaged."""
        from archivist.store.sqlite.copies import rewrite_bank

        store = self._bank.store
        try:
            store.reindex()
            is_mended = not any(each.is_derived for each in store.find_damage())
        except BankDamagedError:
            is_mended = False
        if not is_mended:
            rewrite_bank(self._bank.path, self._bank.now())

    @writes(Layer.BANK)
    def back_up(self, file: Path, *, is_forced: bool = False) -> None:
        """Copy the bank as it is now into a new file, while others read and write it."""
        from archivist.store.sqlite.copies import write_backup

        write_backup(self._bank.store, file, is_forced=is_forced)
