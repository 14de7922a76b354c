"""Import a `bank.md` and its versions: state to core, cycles to the stream, lessons, the rest archived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, decides
from archivist.archive.bank_markdown import BankPage, list_sections, parse_bank, text_without_parts
from archivist.archive.folders import (
    FileDescription,
    FileText,
    FrontMatterParts,
    describe_file,
    read_text,
)
from archivist.archive.service import build_documents, relative_name, replace_documents
from archivist.capture.redaction import clean_text
from archivist.clock import to_short_text
from archivist.errors import ArchivistError, InputError, RecordError
from archivist.files.open import list_files
from archivist.ids import derived_id
from archivist.lessons.candidate import Candidate, Sighting
from archivist.lessons.file_words import FileWords, require_voucher
from archivist.lessons.standing import lesson_version
from archivist.records import DocumentType, Entry, Provenance
from archivist.records.plain import canonical_json
from archivist.records.words import BROUGHT_BY
from archivist.service import BankService
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.bank import Bank

# The setting that holds the digest of each imported bank.md.
_BANKS = "imported_banks"
_LESSON_CHARACTERS = 300
# A team that wrote it down as a key lesson thought it more important than most.
_LESSON_IMPORTANCE = 0.7


class BankImportResult(NamedTuple):
    """What importing banks did; `kept` names the sections that became documents, in part or whole."""

    pages: int = 0
    unchanged: int = 0
    roles: tuple[str, ...] = ()
    threads: int = 0
    entries: int = 0
    lessons: int = 0
    waiting: int = 0
    documents: int = 0
    kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _Page(NamedTuple):
    """A parsed bank that is not imported yet; `is_archived` for an earlier version."""

    name: str
    file: FileText
    bank: BankPage
    about: FileDescription
    entries: tuple[Entry, ...]
    is_archived: bool


class BankPages(BankService):
    """The `bank.md` of other tools."""

    @decides(Layer.ARCHIVE)
    def import_banks(self, paths: Sequence[str | Path], *, is_approved: bool = False) -> BankImportResult:
        """Import `bank.md` and its archived versions: role state, status, threads, cycles, lessons, the rest.

        Key lessons become lessons, which wait unless a person vouches for the files; core memory and stream
        mark the rest as the file's, and what others wrote there stays. An archived version (`bank-*.md`)
        gives its cycles and becomes a document of that type. An unchanged file is not imported again, so
        that later changes of core memory stay.
        """
        if is_approved:
            require_voucher(self._bank, Layer.ARCHIVE, "import-bank")
        with self._bank.reading() as reader:
            known = reader.json_setting(_BANKS)
        fresh: list[_Page] = []
        problems: list[str] = []
        unchanged = 0
        for path in _bank_files(paths):
            name = relative_name(self._bank.root, str(path.absolute()))
            try:
                file = read_text(path, name)
                if file is None or not file.text.strip():
                    raise RecordError("an empty file" if file else "no such file")
            except RecordError as error:
                problems.append(f"{clean_text(name)}: {error.message}")
                continue
            if known.get(name) == file.digest:
                unchanged += 1
            else:
                fresh.append(_parse_page(name, file))
        fresh.sort(key=lambda page: (not page.is_archived, page.name))
        # A line that several versions hold is one entry, dated by the first version.
        entries: dict[str, Entry] = {}
        for page in fresh:
            for entry in page.entries:
                entries.setdefault(entry.id, entry)
        with self._bank.reading() as reader:
            stored = reader.records("entry", list(entries))
        new = [entry for entry in entries.values() if entry.id not in stored]
        new.sort(key=lambda entry: (entry.cycle, entry.role))
        added = self._bank.stream.import_entries(new, is_approved=is_approved).added
        done = BankImportResult(unchanged=unchanged, entries=added, problems=tuple(problems))
        done = self._keep_lessons(done, fresh, is_approved=is_approved)
        for page in fresh:
            done = _import_page(self._bank, done, page, FileWords(page.name, is_approved))
        return done

    def _keep_lessons(
        self, done: BankImportResult, pages: Sequence[_Page], *, is_approved: bool
    ) -> BankImportResult:
        """Keep the key lessons of pages by the one gate; a line that several versions hold is one lesson."""
        bank = self._bank
        texts = {text: page.name for page in reversed(pages) for text in page.bank.lessons}
        candidates = [
            Candidate(
                summary=shorten_line(text, _LESSON_CHARACTERS),
                detail=text if len(text) > _LESSON_CHARACTERS else "",
                importance=_LESSON_IMPORTANCE,
                tags=("bank",),
                origin=Path(name).name,
            )
            for text, name in texts.items()
        ]
        with bank.transaction() as writer:
            sighting = Sighting(
                provenance=Provenance.IMPORTED, actor=bank.actor, now=bank.now(),
                run_count=writer.run_count(), is_accepted=is_approved,
            )  # fmt: skip
            kept = bank.lessons.keep_many(candidates, sighting)
            for each in kept if is_approved else ():
                bank.lessons.approve(each.lesson.id, lesson_version(each.lesson))
        waiting = sum(each.lesson.is_waiting for each in kept)
        return done._replace(lessons=sum(each.is_new for each in kept), waiting=waiting)


def _bank_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the named files, and for a folder the bank and its archived versions in it."""
    files: list[Path] = []
    for path in map(Path, paths):
        inside = [path]
        if path.is_dir():
            patterns = ("bank.md", "bank-*.md", "archives/bank-*.md")
            inside = list_files(path, *patterns)
        if not inside:
            raise InputError(f"{str(path)!r} has no bank.md", hint="name the file itself")
        files += inside
    return files


def _parse_page(name: str, file: FileText) -> _Page:
    bank = parse_bank(file.text)
    about = describe_file(name, file.text, type=DocumentType.CYCLE, file_time=bank.updated or file.time)
    entries = tuple(
        Entry(
            id=derived_id("entry", "bank", str(line.cycle), line.role, line.action, line.content),
            seq=0,
            cycle=line.cycle,
            time=about.date or file.time,
            role=line.role,
            action=line.action,
            content=line.content,
            tags=("bank",),
            extra={"source": name, BROUGHT_BY: FileWords(name).speaker},
        )
        for line in bank.cycles
    )
    return _Page(name, file, bank, about, entries, Path(name).name.startswith("bank-"))


def _import_page(bank: Bank, done: BankImportResult, page: _Page, words: FileWords) -> BankImportResult:
    """Put a bank's state into core memory and the rest of it into the archive."""
    imported: set[str] = set()
    problems: list[str] = []
    rest = page.file.text
    if not page.is_archived:
        shipped = bank.config.core.recently_shipped
        for part, section, content, role in _core_updates(page.bank, shipped, bank.now()):
            try:
                bank.core.take_from_file(words, section, content, role=role)
            except ArchivistError as error:
                why = f"{error.message}; {error.hint}" if error.hint else error.message
                problems.append(f"{page.name}: {part} stays in the archive: {why}")
            else:
                imported.add(part)
        # Core memory holds only the last that shipped; when there were more, all of them stay here too.
        if len(page.bank.lists["recently_shipped"]) > shipped:
            imported.discard("recently_shipped")
        rest = text_without_parts(page.bank, {*imported, "cycles"})
    about = page.about._replace(front=FrontMatterParts({}, "", rest, 1))
    documents = build_documents(bank, page.name, about, digest=page.file.digest) if rest.strip() else []
    with bank.transaction() as writer:
        replace_documents(writer, page.name, documents, "import")
        digests = writer.json_setting(_BANKS)
        writer.set_setting(_BANKS, canonical_json({**digests, page.name: page.file.digest}))
    roles = (part.removeprefix("role:") for part in sorted(imported) if part.startswith("role:"))
    return done._replace(
        pages=done.pages + 1,
        roles=(*done.roles, *roles),
        threads=done.threads + sum(part.startswith("thread:") for part in imported),
        documents=done.documents + len(documents),
        kept=done.kept if page.is_archived else tuple(dict.fromkeys((*done.kept, *list_sections(rest)))),
        problems=(*done.problems, *problems),
    )


def _core_updates(
    page: BankPage, shipped: int, now: datetime
) -> Iterator[tuple[str, str, Mapping[str, object], str]]:
    """Yield what a bank says about core memory: the part, its section, the content and the role."""
    present = {part for parts in page.parts for part in parts}
    if page.sprint:
        yield "sprint", "status", {"sprint": page.sprint}, ""
    # A bank lists the newest first, core memory last.
    lists = page.lists | {"recently_shipped": page.lists["recently_shipped"][:shipped][::-1]}
    for part, items in lists.items():
        if part in present and (items or part != "recently_shipped"):
            yield part, "status", {part: items}, ""
    when = to_short_text((page.updated or now).replace(microsecond=0))
    for thread in page.threads.values():
        item = {"id": thread.id, "summary": thread.summary, "roles": list(thread.roles), "last_update": when}
        yield f"thread:{thread.id}", "threads", item, ""
    for role, fields in page.roles.items():
        if fields:
            yield f"role:{role}", "role_state", fields, role
