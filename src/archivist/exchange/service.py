"""Work on files: export, import, share."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote_to_bytes

from archivist import projects
from archivist.access.rights import Layer, reads, writes
from archivist.capture.clean import Cleaner
from archivist.capture.service import CaptureOverrides
from archivist.errors import BankReadOnlyError, InputError, RecordError
from archivist.exchange import files, share
from archivist.files.jsonl import JsonLine, LineProblem, read_lines, write_lines
from archivist.files.open import list_files, open_regular, real_path
from archivist.files.write import make_folder, replace_file
from archivist.ids import derived_id
from archivist.lessons.candidate import (
    Candidate,
    KeptLesson,
    LessonChange,
    Sighting,
    candidate_of,
)
from archivist.lessons.file_words import require_voucher
from archivist.lessons.standing import counted_elsewhere, is_said_here, lesson_text
from archivist.paths import as_text
from archivist.records import Brief, Episode, Folder, Lesson, Proposal, Provenance, Status
from archivist.records.kinds import kind_for, kind_of
from archivist.records.plain import canonical_json
from archivist.records.run_words import FOLDER
from archivist.records.shapes import later_record
from archivist.records.words import MAX_RUN_COUNT, WRITTEN_FILES, Scope
from archivist.service import BankService
from archivist.store.filters import above
from archivist.text import make_legible

if TYPE_CHECKING:
    from archivist.exchange.files import FileImportResult, ImportBatch, LessonFormat
    from archivist.exchange.share import SharedRecords, ShareResult
    from archivist.store.protocol import Reader, Writer

# The setting that lists the origins of share folders that a person accepted. It lies in the bank: what is in
# the folder, anybody can write.
_ACCEPTED = "accepted_origins"
# The ids of banks; an origin's name is shown, and typed again by a person.
_ORIGIN = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
# How far another machine's clock may be ahead of ours.
_MOST_SKEW = timedelta(days=1)
# Marks a path whose bytes are not UTF-8.
_URI = "file://"
_Written = TypeVar("_Written")
# What a person may change in a line of a lesson.
_BY_HAND = (
    "summary", "rule", "detail", "category", "scope", "tags", "importance", "severity", "domain", "role",
    "provider", "tool", "task",
)  # fmt: skip


class Exchange(BankService):
    """What leaves and comes as files."""

    @reads(Layer.BANK)
    def export(
        self, folder: Path, *, shape: LessonFormat | None = None, has_events: bool = False
    ) -> dict[str, int]:
        """Write the bank as JSON lines in the documents' shapes; return how many lines each file has.

        `has_events` adds what happened in the runs. A folder that has them already gets the new ones too.
        """
        self._bank.erasure.finish_erasures()
        has_events = has_events or str(real_path(folder / files.EVENTS)) in self.written_files()

        def write(reader: Reader) -> dict[str, int]:
            lines: dict[str, Iterable[dict[str, object]]] = {
                # An empty file is written only where the last export left a file that is now out of date.
                name: values
                for name, values in files.export_lines(
                    reader, shape or files.LessonFormat.CROSS_RUN, self._bank.actor
                ).items()
                if values or name in files.ALWAYS or (folder / name).exists()
            }
            if has_events:
                lines[files.EVENTS] = files.event_lines(reader)
            with _explain_write_errors(folder):
                return {
                    name: write_lines(folder / name, values, below=folder) for name, values in lines.items()
                }

        names = (*files.EXPORTED, files.EVENTS) if has_events else files.EXPORTED
        return self.write_listed_files([folder / name for name in names], write)

    @writes(Layer.BANK)
    def import_files(
        self,
        paths: Sequence[Path],
        *,
        is_strict: bool = False,
        is_approved: bool = False,
        keeps_both: bool = False,
    ) -> FileImportResult:
        """Import exported files: new records are added, known ones merged, bad lines left out.

        With `is_strict` one bad line refuses all files. What a file claims is believed only where
        `is_approved`: a person vouches for it. Otherwise its lessons wait, change no lesson that the bank
        believes, and its verdicts, briefs and blocks of core memory are left out. With `keeps_both` other
        words for a lesson that the bank believes become a lesson of their own, which waits.
        """
        if is_approved:
            require_voucher(self._bank, Layer.BANK, "import")
        batch = files.ImportBatch()
        for path in paths:
            name = path.name.removesuffix(".gz").removesuffix(files.ORIGINAL).removesuffix(files.EDITED)
            is_archive = name in files.ARCHIVE_NAMES
            for line in read_lines(path):
                batch.add_line(_refuse_outside(self._bank.root, line), is_archive=is_archive)
        if is_strict and batch.problems:
            raise InputError(
                f"{len(batch.problems)} bad lines, nothing was imported; the first: {batch.problems[0]}",
                hint="without --strict the good lines are imported",
            )
        self._bank.proposals.guard_import(batch.kept)
        left: Counter[str] = Counter()
        if not is_approved:
            batch, left = files.without_claims(batch)
        with self._bank.transaction() as writer:
            if is_approved:
                safe = map(files.without_risky_cures, batch.episodes)
                batch = replace(batch, episodes=_with_free_numbers(writer, safe))
            else:
                # Without a person's word a file changes no run that the bank knows.
                new = [each for each in batch.episodes if writer.get(Episode, each.id) is None]
                batch = replace(batch, episodes=new)
            return self._import_batch(writer, batch, left, is_approved=is_approved, keeps_both=keeps_both)

    def _import_batch(
        self, writer: Writer, batch: ImportBatch, left: Counter[str], *, is_approved: bool, keeps_both: bool
    ) -> FileImportResult:
        outcomes = (LessonChange.CREATED, LessonChange.MET, LessonChange.UNCHANGED)
        counts: dict[LessonChange, Counter[str]] = {outcome: Counter() for outcome in outcomes}
        problems = list(batch.problems)
        renumbered: dict[str, str] = {}
        ids: dict[str, str] = {}

        def count(kind: str, *, is_known: bool, is_changed: bool) -> None:
            known = LessonChange.MET if is_known else LessonChange.CREATED
            counts[known if is_changed else LessonChange.UNCHANGED][kind] += 1

        def count_all(kind: str, *numbers: int) -> None:
            for counter, number in zip(counts.values(), numbers, strict=True):
                if number:
                    counter[kind] += number

        episodes, events = self._import_runs(writer, batch)
        count_all("episodes", *episodes)
        count_all("events", *events)
        lessons = self._import_lessons(writer, batch, is_approved=is_approved, keeps_both=keeps_both)
        waiting: dict[str, None] = {}
        for number, told, kept in lessons:
            counts[kept.change]["lessons"] += 1
            waits = kept.lesson.is_waiting and kept.lesson.status.is_live
            waiting |= {kept.lesson.short_id: None} if waits else {}
            is_left = not is_approved and not waits and lesson_text(told) != lesson_text(kept.lesson)
            left["changes of lessons"] += is_left
            if number:
                ids[f"m-{number:03d}"] = kept.lesson.id
                if number != kept.lesson.number:
                    renumbered[f"m-{number:03d}"] = kept.lesson.short_id
        cleaner = Cleaner()
        for record in map(files.with_own_id, map(cleaner.clean, batch.kept)):
            before = writer.get(type(record), record.id)
            after = record if before is None else later_record(before, record)
            if before is None and isinstance(record, Proposal):
                # A proposal's number may be taken in this bank.
                numbers = {row[0] for row in writer.select_fields(Proposal, ("number",))}
                after = replace(record, number=max(numbers) + 1) if record.number in numbers else record
            kind = f"{kind_of(type(record))}s"
            count(kind, is_known=before is not None, is_changed=writer.put(after, "import"))
        for line in batch.audit:
            try:
                judged = cleaner.clean(files.read_audit_record(line.value, ids))
            except RecordError as error:
                problems.append(LineProblem(line.file, line.number, error.message))
                continue
            is_known = writer.get(type(judged), judged.id) is not None
            kind = "briefs" if isinstance(judged, Brief) else "verdicts"
            count(kind, is_known=is_known, is_changed=writer.put(judged, "import"))
        stream = self._bank.stream.import_entries(batch.stream, is_approved=is_approved)
        count_all("stream entries", stream.added, stream.changed, stream.unchanged)
        created, changed, unchanged = (counts[outcome] for outcome in outcomes)
        return files.FileImportResult(
            created, changed, unchanged, renumbered, tuple(problems), tuple(waiting), +left
        )

    def _import_runs(
        self, writer: Writer, batch: ImportBatch
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Take the runs of files and their events; return how many of each are new, changed and the same."""
        # What the bank's own logs tell of a run, no file tells anew.
        others = {episode.id for episode in batch.episodes if not writer.is_own_run(episode.id)}
        known, root = CaptureOverrides(is_filed=True), self._bank.root
        events = self._bank.runs.take(batch.events_of(others), known, verb="import")
        filed = []
        for each in batch.episodes:
            # The reflective document names a run's project by its folder.
            project = projects.project_of_root(writer, each.project, root)
            place = {} if project == each.project else {FOLDER: each.project}
            filed.append(replace(each, project=project, extra={**place, **each.extra}))
        runs = self._bank.runs.take(filed, known, verb="import")
        new, changed = len(runs.created), len(runs.updated)
        same = len(batch.episodes) - new - changed
        return (new, changed, same), (events.changed, 0, events.events - events.changed)

    def _import_lessons(
        self, writer: Writer, batch: ImportBatch, *, is_approved: bool, keeps_both: bool
    ) -> list[tuple[int, Lesson, KeptLesson]]:
        """Keep the lessons of files; return each with the number and the words that its file gives it."""
        read: list[tuple[int, Lesson]] = []

        def read_candidates() -> Iterator[Candidate]:
            # Each line is read when the lines before it are kept: it may be about the same lesson.
            for line, is_archive in batch.lessons:
                imported = files.read_lesson(line.value, writer, is_archive=is_archive)
                lesson = replace(imported.lesson, brought_by=Path(line.file).name)
                is_filed = bool(line.value.keys() & {"repo", "repoId"}) or lesson.scope is Scope.GLOBAL
                if lesson.project and not is_filed:
                    repo = projects.project_of_root(writer, lesson.project, self._bank.root)
                    lesson = replace(lesson, repo=repo)
                known = writer.get(Lesson, lesson.id)
                number = imported.number
                if is_approved and known and known.edited == lesson.edited:
                    self._take_edits(writer, known, lesson)
                is_other = known and not known.is_waiting and lesson_words(known) != lesson_words(lesson)
                if keeps_both and is_other:
                    other = _id_of_words(lesson)
                    number, lesson = 0, replace(lesson, id=other, status=Status.CANDIDATE)
                read.append((number, lesson))
                since = sighting.run_count - numbers.unseen_from(lesson.repo, imported.runs_since)
                yield candidate_of(lesson, number=number, runs_since=since)

        # The episodes are in by now: lessons say how many runs of their project did not meet them.
        numbers = projects.RunNumbers(writer)
        sighting = self._sighting(writer, Provenance.IMPORTED, is_accepted=is_approved)
        kept = self._bank.lessons.keep_many(read_candidates(), sighting)
        return [(*line, each) for line, each in zip(read, kept, strict=True)]

    def _take_edits(self, writer: Writer, known: Lesson, edited: Lesson) -> None:
        """Take what a person changed by hand in a line of the version that the bank has."""
        changes = {
            name: getattr(edited, name) for name in _BY_HAND if getattr(edited, name) != getattr(known, name)
        }
        if not changes:
            return
        self._bank.lessons.edit(known.id, **changes)
        other = writer.get(Lesson, _id_of_words(edited))
        if other is not None and other.is_waiting:
            # It waited for this.
            self._bank.lessons.archive(other.id, replacement=known.id)

    @writes(Layer.BANK)
    def share(self, folder: Path, *, trust: Sequence[str] = ()) -> ShareResult:
        """Synchronise with a folder kept in git: import what others wrote, write what is new here.

        Lessons of an origin wait until a person accepts it, once, by `trust`; the bank remembers that.
        """
        bank = self._bank
        bank.erasure.finish_erasures()
        promote_at_runs = bank.config.lessons.promote_at_runs
        replica = self._replica_id()
        shared = _read_shared(folder, bank.now() + _MOST_SKEW)
        paths = {name: folder / name / f"{replica}.jsonl" for name in (share.LESSONS, share.AUDIT)}
        is_ours = self._is_as_written(paths.values())
        others = [origin for origin in shared.origins if origin != replica or not is_ours]
        accepted = self._accept_origins(others, trust, own=replica)
        with bank.transaction() as writer:
            merged = shared.merged_lessons(accepted, promote_at_runs=promote_at_runs)
            merged, contested = _keep_own_words(writer, merged)
            reworded = [*contested, *self._reworded_twice(writer, merged, shared)]
            changed = Counter({share.LESSONS: 0, share.AUDIT: 0})
            changed[share.LESSONS] += self._keep_shared(writer, merged, is_accepted=True)[0]
            conflicts = [_note_conflict(writer, *versions) for versions in reworded]
            united = bank.lessons.join_twins() if accepted else []
            changed[share.LESSONS] += len(united)
            waiting: dict[str, int] = {}
            for origin in others:
                if origin not in accepted:
                    lessons = shared.merged_lessons((origin,), promote_at_runs=promote_at_runs)
                    new, unknown = self._keep_shared(writer, lessons, is_accepted=False)
                    changed[share.LESSONS] += new
                    waiting |= {origin: unknown} if unknown else {}
            for record in map(Cleaner().clean, shared.audit_of(accepted).values()):
                known = writer.get(type(record), record.id)
                if known is None or share.is_later(record, known):
                    changed[share.AUDIT] += writer.put(record, "share")

        def write(reader: Reader) -> dict[str, int]:
            # A folder in one repository gets nothing that another repository's runs taught.
            rules = promote_at_runs, projects.other_projects(reader, folder.absolute(), bank.root)
            lines = share.own_lines(reader, shared, replica, accepted, *rules)
            with _explain_write_errors(folder):
                make_folder(folder)
                note = folder / "README.md"
                if not os.path.lexists(note):
                    replace_file(note, share.README.encode())
                return {
                    name: write_lines(paths[name], values, below=folder) for name, values in lines.items()
                }

        written = self.write_listed_files([*paths.values()], write)
        return share.ShareResult(
            changed=changed,
            written=written,
            problems=tuple(shared.problems),
            waiting=waiting,
            origin=replica,
            united=tuple(united),
            conflicts=tuple(conflicts),
        )

    def _replica_id(self) -> str:
        """Return the id by which other clones know this bank; made when it is first asked for."""
        with self._bank.transaction() as writer:
            if not (known := writer.setting("bank_id")):
                known = self._bank.new_id(self._bank.now())
                writer.set_setting("bank_id", known)
        return known

    def _reworded_twice(
        self, writer: Writer, lessons: Iterable[Lesson], shared: SharedRecords
    ) -> list[tuple[Lesson, Lesson]]:
        """Return lessons as they are here and elsewhere, if both have reworded them since the last share.

        Then our words were written here, no clone has them yet, and theirs were never ours.
        """
        found = []
        for theirs in lessons:
            ours = writer.get(Lesson, theirs.id)
            written = (line for lines in shared.lessons.values() if (line := lines.get(theirs.id)))
            if ours is None or ours.is_waiting or lesson_text(ours) in map(lesson_text, written):
                continue
            # The verb by which each wording came to be.
            verbs: dict[str, str] = {}
            for change in self._bank.ledger.history(ours.id):
                if change.after:
                    verbs.setdefault(str(change.after["summary"]), change.entry.verb)
            if theirs.summary not in verbs and verbs.get(ours.summary) != "share":
                found.append((ours, theirs))
        return found

    def _keep_shared(
        self, writer: Writer, lessons: Sequence[Lesson], *, is_accepted: bool
    ) -> tuple[int, int]:
        """Keep lessons of other clones; return how many changed the bank, and how many wait."""
        sighting = self._sighting(writer, Provenance.SHARED, is_accepted=is_accepted)
        kept = self._bank.lessons.keep_many(map(candidate_of, lessons), sighting)
        changed = sum(each.change is not LessonChange.UNCHANGED for each in kept)
        unknown = sum(
            each.lesson.is_waiting or share.has_news(lesson, each.lesson)
            for lesson, each in zip(lessons, kept, strict=True)
        )
        return changed, unknown

    def _is_as_written(self, paths: Iterable[Path]) -> bool:
        """Say whether the files are as this bank wrote them last: anybody can write in its name.

        One without a digest was being written when its process was killed.
        """
        written = self.written_files()
        return all(
            written.get(str(real_path(path))) in ("", file_digest(path)) for path in paths if path.exists()
        )

    def _accept_origins(self, origins: Sequence[str], trust: Sequence[str], *, own: str) -> list[str]:
        """Return the origins that a person accepted, now or before; the bank remembers them."""
        if trust:
            require_voucher(self._bank, Layer.BANK, "share")
        asked = set()
        for name in trust:
            found = [origin for origin in origins if origin.startswith(name)] if name else []
            if len(found) != 1 and name not in found:
                raise InputError(
                    f"no single origin {name!r} in this folder",
                    hint=f"origins: {', '.join(origins) or 'none'}",
                )
            asked.add(name if name in found else found[0])
        with self._bank.reading() as reader:
            known: list[str] = reader.json_setting(_ACCEPTED).get("origins", [])
        if asked:
            with self._bank.transaction() as writer:
                # What stands in this bank's own file was changed by somebody: accepted once, not for good.
                writer.set_setting(_ACCEPTED, canonical_json({"origins": sorted({*known, *asked} - {own})}))
        return [origin for origin in origins if origin in asked or (origin in known and origin != own)]

    @reads(Layer.BANK)
    def write_listed_files(self, paths: Sequence[Path], write: Callable[[Reader], _Written]) -> _Written:
        """Write files that hold memory so that an erasure finds them, whenever one of the two is killed.

        They are listed without a digest before they are written, and written while nobody else can erase.
        A read-only bank lists nothing: nothing can be erased from it either.
        """
        listed = {_listed_name(path): "" for path in paths}
        try:
            with self._bank.transaction() as writer:
                before = _load_listed(writer)
                _store_listed(writer, before | listed)
        except BankReadOnlyError:
            with self._bank.reading() as reader:
                return write(reader)
        with self._bank.transaction() as writer:
            written = write(writer)
            digests = {_listed_name(path): file_digest(path) for path in paths if path.is_file()}
            others = {name: digest for name, digest in _load_listed(writer).items() if name not in listed}
            _store_listed(writer, others | digests)
        return written

    @reads(Layer.BANK)
    def written_files(self) -> dict[str, str]:
        """Return the files that this bank wrote, with the digest that each had then.

        A file has no digest when writing it was interrupted.
        """
        return {
            os.fsdecode(unquote_to_bytes(name.removeprefix(_URI))) if name.startswith(_URI) else name: digest
            for name, digest in self.listed_files().items()
        }

    @reads(Layer.BANK)
    def listed_files(self) -> dict[str, str]:
        """Return the files that this bank wrote as it lists them, for a backup that takes its place."""
        with self._bank.reading() as reader:
            return _load_listed(reader)

    @reads(Layer.BANK)
    def changed_files(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files that are not as this bank wrote them last; one half written is not changed."""
        written = self.written_files()
        found = ((path, written.get(str(real_path(path)))) for path in paths if path.is_file())
        return [path for path, known in found if known != "" and known != file_digest(path)]

    def _sighting(self, reader: Reader, provenance: Provenance, *, is_accepted: bool) -> Sighting:
        who, now, count = self._bank.actor, self._bank.now(), reader.run_count()
        return Sighting(provenance=provenance, actor=who, now=now, run_count=count, is_accepted=is_accepted)


def _refuse_outside(root: Path, line: JsonLine | LineProblem) -> JsonLine | LineProblem:
    """Refuse a line that would watch a folder outside of the project: agents read what is watched."""
    if isinstance(line, LineProblem) or not line.value.keys() >= kind_for(Folder).signs:
        return line
    folder = str(line.value["id"])
    try:
        if real_path(root / folder).is_relative_to(real_path(root)):
            return line
    except (OSError, ValueError, RuntimeError):
        # No path of this machine.
        pass
    shown = shlex.quote(make_legible(folder))
    reason = f"the folder is outside of the project; if you want it: archivist archive watch {shown}"
    return LineProblem(line.file, line.number, reason)


def _keep_own_words(
    writer: Writer, lessons: Iterable[Lesson]
) -> tuple[list[Lesson], list[tuple[Lesson, Lesson]]]:
    """Return other clones' lessons with our words for those that a person here has spoken about.

    No file rewords or retires these, whoever is trusted and whatever its dates say. Also return those that
    the others have in other words, or retired, and of which the history does not tell that yet.
    """
    kept: list[Lesson] = []
    contested: list[tuple[Lesson, Lesson]] = []
    for theirs in lessons:
        ours = writer.get(Lesson, theirs.id)
        if ours is None or ours.is_waiting:
            kept.append(theirs)
            continue
        # Does their version differ in more than what is counted?
        counted = counted_elsewhere(ours, theirs)
        if share.to_shared_line(counted) == share.to_shared_line(theirs) or not is_said_here(writer, ours):
            kept.append(theirs)
            continue
        # Their words are not taken, so neither is the time at which they were written.
        kept.append(replace(counted, updated=ours.updated))
        told = (change.after for change in writer.changes(record_id=ours.id) if change.after)
        is_told = any(
            each["summary"] == theirs.summary
            and each["rule"] == theirs.rule
            and Status(str(each["status"])).is_retired >= theirs.status.is_retired
            for each in told
        )
        if share.has_news(theirs, replace(ours, runs=theirs.runs)) and not is_told:
            contested.append((ours, theirs))
    return kept, contested


def _note_conflict(writer: Writer, ours: Lesson, theirs: Lesson) -> tuple[Lesson, Lesson]:
    """Return a lesson that two clones reworded, and its other version, which its history keeps too."""
    kept = writer.get(Lesson, ours.id) or ours
    if lesson_text(kept) != lesson_text(ours):
        return kept, ours
    words = {name: getattr(theirs, name) for name in ("summary", "rule", "detail", "remedies", "tags")}
    status = Status.ARCHIVED if theirs.status.is_retired else kept.status
    writer.put(replace(kept, status=status, **words), "share")
    writer.put(kept, "share")
    return kept, theirs


def _with_free_numbers(reader: Reader, episodes: Iterable[Episode]) -> list[Episode]:
    """Return runs without the numbers that are taken here, or too high for so many runs."""
    numbers = dict(reader.select_fields(Episode, ("id", "number"), above("number", 0)))
    runs = list(episodes)
    most = min(reader.run_count() + len(runs), MAX_RUN_COUNT)
    free = set(range(1, most + 1)).difference(numbers.values())
    for at, run in enumerate(runs):
        if run.number in free and run.id not in numbers:
            numbers[run.id] = run.number
            free.remove(run.number)
        else:
            runs[at] = replace(run, number=None)
    return runs


def _listed_name(path: Path) -> str:
    """Return how a file is listed; a path whose bytes are not UTF-8 as a URI, since the setting is text."""
    path = real_path(path)
    return str(path) if as_text(path) == str(path) else path.as_uri()


def _load_listed(reader: Reader) -> dict[str, str]:
    return reader.json_setting(WRITTEN_FILES)


def _store_listed(writer: Writer, listed: dict[str, str]) -> None:
    updated = canonical_json(listed)
    if updated != writer.setting(WRITTEN_FILES):
        writer.set_setting(WRITTEN_FILES, updated)


def _id_of_words(lesson: Lesson) -> str:
    """Return the id of the lesson that has the words of a file beside one that the bank believes."""
    return derived_id("words", lesson.id, *lesson_words(lesson))


def lesson_words(lesson: Lesson) -> tuple[str, str, str]:
    """Return the words of a lesson that a line of any shape holds."""
    return lesson.summary, lesson.rule, lesson.detail


def file_digest(path: Path) -> str:
    """Return the digest of a file's content."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_shared(folder: Path, latest: datetime) -> SharedRecords:
    """Read every clone's files; a bad line costs only itself. No date may be after `latest`."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder")
    shared = share.SharedRecords(latest=latest)
    for name, add in ((share.LESSONS, shared.add_lesson), (share.AUDIT, shared.add_audit_record)):
        for path in list_files(folder, f"{name}/*.jsonl"):
            reason = "" if _ORIGIN.fullmatch(path.stem) else "no clone has this name"
            # A pulled link would read any file of the user's.
            is_link = path.is_symlink() or path.parent.is_symlink()
            reason = reason or (
                "a link is not read" if is_link else "" if path.is_file() else "it is no file"
            )
            if reason:
                shared.problems.append(LineProblem(make_legible(str(path)), 0, reason))
                continue
            for line in read_lines(path) if path.stat().st_size else ():
                if isinstance(line, LineProblem):
                    shared.problems.append(line)
                    continue
                try:
                    add(line.value, path.stem)
                except RecordError as error:
                    shared.problems.append(LineProblem(line.file, line.number, error.message))
    return shared


@contextmanager
def _explain_write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(folder)!r} cannot be written: {error.strerror}",
            hint="check the permissions of the folder, or choose another",
        ) from None
