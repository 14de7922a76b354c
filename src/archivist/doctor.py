"""Work on health: is the bank whole, is its index complete, does anything wait."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.access.rights import DENIAL, Layer, reads, writes
from archivist.errors import ArchivistError, BankError
from archivist.recall.query import Query
from archivist.recall.service import FRESH
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

_FORGIVEN_AFTER = timedelta(days=7)
# Where a session's run keeps whether its client's log was taken in.
LOG = "log"
# The clients whose logs are known; of the others a log is tried, and may be in any form.
READABLE = ("claude-code", "codex")
# After so many sessions of a client without a log, it never comes.
_MISSED = 3
_LATEST_SESSIONS = 200
# Who asks how a bank is does not wait for who writes it, and a lock that lasts longer is worth telling.
_PATIENCE_S = 0.5
# Less room than this is soon gone: a capture or a reflection takes some of it.
_LITTLE_MB = 64
_NAMED = 10
SHOW_QUARANTINED = "archivist lessons list --status quarantined"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    is_well: bool
    text: str


def run_checks(bank: Bank) -> list[Check]:
    """Return every check of a bank; one that cannot be made says why, and the others are made still."""
    found = []
    for name, look in _LOOKS.items():
        try:
            found.append(look(bank))
        except ArchivistError as error:
            found.append(failed_check(name, error))
    found.append(check_hook_failures(bank.path.absolute().parent, bank.now()))
    return [replace(each, text=_shorten_paths(each.text, bank)) for each in found]


def _shorten_paths(text: str, bank: Bank) -> str:
    """Return a text that names files from the project or the home on: the rest is this machine's business."""
    places = (
        (bank.root.absolute(), ""),
        (Path("~").expanduser(), "~/"),
        (_home_or_none(), "$ARCHIVIST_HOME/"),
    )
    for folder, name in places:
        text = text.replace(f"{folder}{os.sep}", name)
    return text


def failed_check(name: str, error: ArchivistError) -> Check:
    """Return the check that an error kept from being made."""
    return Check(name, False, f"{error.message}: {error.hint}" if error.hint else error.message)


def _check_ledger(bank: Bank) -> Check:
    found = bank.ledger.verify()
    if found.problems:
        return Check("ledger", False, f"{found.problems[0]}: archivist verify names all")
    return Check("ledger", True, f"{found.entries} entries, every seal and record fits")


def _check_writing(bank: Bank) -> Check:
    from shutil import disk_usage

    try:
        with bank.transaction(timeout_s=_PATIENCE_S):
            pass
    except BankError as error:
        return failed_check("writing", error)
    # A transaction that changes nothing finds room on the fullest disk.
    return check_disk_space(disk_usage(bank.path.parent).free)


def check_disk_space(left_bytes: int) -> Check:
    """Say whether a bank that can be written has the room for it."""
    left_mb = left_bytes / 1024 / 1024
    if left_mb < _LITTLE_MB:
        return Check("writing", False, f"the disk has {left_mb:.1f} MB left: free some space")
    return Check("writing", True, "the bank can be written")


def _check_vectors(bank: Bank) -> Check:
    try:
        embedder = bank.embedder
    except ArchivistError as error:
        return Check("vectors", False, f"{error.message}: archivist config recall.embedder")
    if embedder is None:
        return Check("vectors", True, "none are wanted: recall.embedder is none")
    with bank.reading() as reader:
        in_use, waiting = reader.embedder_in_use(), reader.pending_embedding_count(embedder.name)
    if 0 < waiting <= FRESH and in_use in ("", embedder.name):
        return Check("vectors", True, f"{waiting} of {embedder.name} are made with the next reflection")
    if waiting:
        meanwhile = f"; meanwhile {in_use} is used" if in_use not in ("", embedder.name) else ""
        wait = "1 text waits" if waiting == 1 else f"{waiting} texts wait"
        return Check("vectors", False, f"{wait} for {embedder.name}{meanwhile}: archivist doctor --reindex")
    return Check("vectors", True, f"all made by {in_use or embedder.name}")


def _check_capture(bank: Bank) -> Check:
    """Say which run came in last, and from which clients no log does."""
    from archivist.records import Episode
    from archivist.store.filters import equals

    with bank.reading() as reader:
        latest = reader.select(Episode, equals("action", None), order=("-finished",), limit=1)
        silent = _silent_clients(reader)
    told = "no run has come in yet"
    if latest and latest[0].finished is not None:
        told = f"the last run, {latest[0].id}, ended {latest[0].finished:%Y-%m-%d %H:%M} UTC"
    missed = [
        f"nothing is learnt from {client}: in its last {_MISSED} sessions {why}"
        for client, why in silent.items()
    ]
    if not missed:
        return Check("capture", True, told)
    is_well = not any(client in READABLE for client in silent)
    hand = (
        "archivist capture FILE takes a log in"
        if is_well
        else "let the client keep its logs, or hand them to archivist capture"
    )
    return Check("capture", is_well, "; ".join([told, *missed]) + f": {hand}")


def _silent_clients(reader: Reader) -> dict[str, str]:
    """Return the clients of whose latest sessions with a turn none left a log, and why the last did not."""
    import json

    from archivist.store.filters import equals

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


def check_reflection(bank: Bank) -> Check:
    """Say whether runs wait for reflection that nobody reflects on now, and what to do about it."""
    waiting, now = bank.reflections.waiting_runs(), bank.now()
    failed = next((each for each in waiting if each.error), None)
    if failed is not None:
        again = f"archivist reflect --run {failed.run}"
        return Check("reflection", False, f"run {failed.run} failed: {failed.error}: {again}")
    held = [each for each in waiting if each.leased_until is not None and each.leased_until > now]
    free = len(waiting) - len(held)
    if free:
        wait = "1 run waits" if free == 1 else f"{free} runs wait"
        return Check("reflection", False, f"{wait}: archivist reflect")
    if held:
        are = "1 run is" if len(held) == 1 else f"{len(held)} runs are"
        until = max(each.leased_until or now for each in held)
        return Check("reflection", True, f"{are} being reflected on, until {until:%H:%M} UTC at the latest")
    return Check("reflection", True, "no run waits")


def _check_liveness(bank: Bank) -> Check:
    """Name the lessons that name what is gone from the working tree."""
    from archivist.records import Lesson, Status
    from archivist.store.filters import one_of

    with bank.reading() as reader:
        lessons = reader.select(
            Lesson, one_of("status", (Status.ACTIVE, Status.CANDIDATE)), order=("number",)
        )
    gone = bank.liveness.find_stale(lessons)
    if not gone:
        return Check("liveness", True, "no lesson names anything that is gone")
    named = [f"{lesson.short_id}: {gone[lesson.id]}" for lesson in lessons if lesson.id in gone]
    return Check("liveness", False, "; ".join(named) + ": archivist lessons edit or forget")


def _check_quarantine(bank: Bank) -> Check:
    """Say whether lessons wait for a person, and which are told that were kept before such words waited."""
    from archivist.lessons.quarantine import is_quarantined
    from archivist.records import Lesson, Status
    from archivist.store.filters import equals, one_of

    with bank.reading() as reader:
        waiting = reader.count(Lesson, equals("status", Status.QUARANTINED))
        live = reader.select(Lesson, one_of("status", (Status.ACTIVE, Status.CANDIDATE)), order=("number",))
    doubtful = [lesson.short_id for lesson in live if is_quarantined(lesson)]
    if doubtful:
        named = ", ".join(doubtful[:_NAMED])
        return Check("quarantine", False, f"{named} would wait today: archivist lessons approve or forget")
    if not waiting:
        return Check("quarantine", True, "no lesson waits for approval")
    wait = "1 lesson waits" if waiting == 1 else f"{waiting} lessons wait"
    return Check(
        "quarantine", False, f"{wait} for approval: {SHOW_QUARANTINED}, then lessons approve or forget"
    )


def _check_size(bank: Bank) -> Check:
    warnings = bank.erasure.check_growth()
    return Check("size", not warnings, "; ".join(warnings) or "small enough")


def _check_audit(bank: Bank) -> Check:
    """Say which lessons the verdicts suggest to reword or retire."""
    from archivist.audit.report import RecommendedStep, recommend_steps

    asked = [
        each for each in recommend_steps(bank.audits.audit_report()) if each.step is not RecommendedStep.KEEP
    ]
    live = {lesson.short_id for lesson in bank.lessons.query(Query(limit=None))}
    told = [f"{each.step} {each.lesson}: {each.reason}" for each in asked if each.lesson in live]
    return Check("audit", not told, "; ".join(told) or "no lesson needs other words")


_LOOKS: dict[str, Callable[[Bank], Check]] = {
    "ledger": _check_ledger,
    "writing": _check_writing,
    "vectors": _check_vectors,
    "capture": _check_capture,
    "reflection": check_reflection,
    "liveness": _check_liveness,
    "quarantine": _check_quarantine,
    "size": _check_size,
    "audit": _check_audit,
}


def check_hook_failures(folder: Path | None, now: datetime) -> Check:
    """Say what last went wrong in a hook, beside a bank or, where there was none, in the user's own folder.

    What is older than a week has been lived with.
    """
    from archivist.files import hook_log

    noted = [
        (when, what, each)
        for each in (folder, _home_or_none())
        if each is not None and (when := (last := hook_log.last_failure(each))[0]) and (what := last[1])
    ]
    if not noted:
        return Check("failures", True, "no hook has failed")
    when, what, where = max(noted, key=lambda each: each[0])
    told = f"the last hook to fail, {when:%Y-%m-%d %H:%M} UTC, was {what}"
    if now - when > _FORGIVEN_AFTER:
        return Check("failures", True, told)
    file = where / hook_log.FILE_NAME if where != folder else f".archivist/{hook_log.FILE_NAME}"
    return Check("failures", False, f"{told}: {file} has all; remove it when that is mended")


def _home_or_none() -> Path | None:
    """Return the user's own folder; None for a user without a home."""
    from archivist.paths import home_folder

    try:
        return home_folder()
    except RuntimeError:
        return None


def count_records(bank: Bank) -> dict[str, int]:
    """Return how much of everything a bank holds."""
    from archivist.records import (
        Artifact,
        Brief,
        Conflict,
        ConflictStatus,
        Document,
        Entry,
        Episode,
        Event,
        Fact,
        Lesson,
        Proposal,
        ProposalStatus,
        Status,
        Verdict,
    )
    from archivist.store.filters import equals

    with bank.reading() as reader:
        lessons = {f"{word}_lessons": reader.count(Lesson, equals("status", word)) for word in Status}
        attempts = reader.count(Episode) - reader.count(Episode, equals("action", None))
        return {
            **lessons,
            "runs": reader.count(Episode) - attempts,
            "runs_counted": reader.run_count(),
            "runs_waiting": len(reader.queued_runs()),
            "events": reader.count(Event),
            "briefs": reader.count(Brief),
            "verdicts": reader.count(Verdict),
            "facts": reader.count(Fact),
            "open_conflicts": reader.count(Conflict, equals("status", ConflictStatus.OPEN)),
            "attempts": attempts,
            "artifacts": reader.count(Artifact),
            "stream_entries": reader.count(Entry),
            "archived_pieces": reader.count(Document),
            "open_proposals": reader.count(Proposal, equals("status", ProposalStatus.OPEN)),
            "denials": len(reader.changes(kind=DENIAL)),
        }


class Doctor(BankService):
    """How the bank is."""

    @reads(Layer.BANK)
    def status(self) -> dict[str, int]:
        """Return how much of everything there is."""

        return count_records(self._bank)

    @reads(Layer.BANK)
    def health(self) -> list[Check]:
        """Return what is well with the bank and what is not."""

        return run_checks(self._bank)

    @writes(Layer.BANK)
    def reindex(self) -> None:
        """Build everything derived again from the records."""
        self._bank.store.reindex()
