"""Take a `bank.md` and its versions in: state to core, cycles to the stream, the rest to the archive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.archive.folder_files import read
from archivist.archive.folders import FileDescription, FrontMatterParts, decode_text, describe_file
from archivist.archive.service import build_documents, replace_documents
from archivist.capture.secrets import clean_text
from archivist.clock import to_short_text
from archivist.errors import ArchivistError, InputError, RecordError
from archivist.exchange.bank_markdown import (
    BankPage,
    CycleLine,
    list_sections,
    parse_bank,
    text_without_parts,
)
from archivist.ids import derived_id
from archivist.records import DocumentType, Entry
from archivist.records.plain import canonical_json

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# Where the bank notes which versions of which bank.md it has taken in.
_BANKS = "imported_banks"


class BankImportResult(NamedTuple):
    """What taking banks in did; `kept` names the sections of a bank of which something is a document now."""

    pages: int = 0
    unchanged: int = 0
    roles: tuple[str, ...] = ()
    threads: int = 0
    entries: int = 0
    documents: int = 0
    kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _CoreUpdate(NamedTuple):
    """A part of a bank that belongs into a section of core memory."""

    part: str
    section: str
    content: Mapping[str, object]
    role: str = ""


class _Page(NamedTuple):
    """A bank that was read, before it is taken in."""

    name: str
    text: str
    digest: str
    bank: BankPage
    about: FileDescription
    entries: tuple[Entry, ...]

    @property
    def is_archived(self) -> bool:
        """Say whether it is an earlier version."""
        return Path(self.name).name.startswith("bank-")


def import_banks(bank: Bank, paths: Sequence[str | Path], relative: Callable[[str], str]) -> BankImportResult:
    """Take banks in that are new or have changed; `relative` says what each is called."""
    done = BankImportResult()
    pages: list[_Page] = []
    for path in _bank_files(paths):
        name = relative(str(path.absolute()))
        file = read(Path("/"), str(path.absolute()))
        problem = file.problem if file else "no such file"
        if clean_text(name) != name:
            name, problem = clean_text(name), "its name holds a secret or control characters; rename it"
        if file and not problem:
            try:
                pages.append(_parse_page(name, decode_text(file.raw), file.time))
            except RecordError as error:
                problem = error.message
        if problem:
            done = done._replace(problems=(*done.problems, f"{name}: {problem}"))
    with bank.reading() as reader:
        known = _imported_digests(reader)
    fresh = [page for page in pages if known.get(page.name) != page.digest]
    done = done._replace(unchanged=len(pages) - len(fresh))
    fresh.sort(key=lambda page: (not page.is_archived, page.name))
    done = done._replace(entries=_import_cycles(bank, fresh))
    for page in fresh:
        done = _import_page(bank, done, page)
    return done


def _import_cycles(bank: Bank, pages: Sequence[_Page]) -> int:
    """Put what banks tell of cycles into the stream; a line of several versions is of the first one."""
    entries: dict[str, Entry] = {}
    for page in pages:
        for entry in page.entries:
            entries.setdefault(entry.id, entry)
    with bank.reading() as reader:
        known = reader.records("entry", list(entries))
    new = [entry for entry in entries.values() if entry.id not in known]
    return bank.stream.import_entries(sorted(new, key=lambda each: (each.cycle, each.role))).added


def _import_page(bank: Bank, done: BankImportResult, page: _Page) -> BankImportResult:
    """Put a bank's state into core memory and the rest of it into the archive."""
    taken, problems = (set[str](), list[str]()) if page.is_archived else _apply_to_core(bank, page.bank)
    kept = page.text if page.is_archived else text_without_parts(page.bank, {*taken, "cycles"})
    about = page.about._replace(front=FrontMatterParts({}, "", kept, 1))
    made = build_documents(bank, page.name, about, digest=page.digest) if kept.strip() else []
    with bank.transaction() as writer:
        replace_documents(writer, page.name, made, "import")
        writer.set_setting(_BANKS, _with_digest(writer, page.name, page.digest))
    return done._replace(
        pages=done.pages + 1,
        roles=(*done.roles, *(part[5:] for part in sorted(taken) if part.startswith("role:"))),
        threads=done.threads + sum(part.startswith("thread:") for part in taken),
        documents=done.documents + len(made),
        kept=done.kept if page.is_archived else tuple(dict.fromkeys((*done.kept, *list_sections(kept)))),
        problems=(*done.problems, *(f"{page.name}: {problem}" for problem in problems)),
    )


def _apply_to_core(bank: Bank, page: BankPage) -> tuple[set[str], list[str]]:
    """Put a bank's state into core memory; return the parts that it took, and what it refused and why."""
    core = bank.core
    taken: set[str] = set()
    problems: list[str] = []
    for told in _core_updates(page, bank.config.core.recently_shipped, bank.now()):
        try:
            if told.section == "threads":
                core.append(told.section, told.content)
            else:
                core.update(told.section, told.content, role=told.role)
        except ArchivistError as error:
            problems.append(f"{told.part} stays in the archive: {error.message}")
        else:
            taken.add(told.part)
    # Core memory keeps the last that shipped; where there were more, all of them stay here too.
    if len(page.recently_shipped) > bank.config.core.recently_shipped:
        taken.discard("recently_shipped")
    return taken, problems


def _core_updates(page: BankPage, shipped: int, now: datetime) -> Iterator[_CoreUpdate]:
    """Yield what a bank has to say to core memory, part by part."""
    told = {part for parts in page.parts for part in parts}
    if page.sprint:
        yield _CoreUpdate("sprint", "status", {"sprint": page.sprint})
    for part in ("blockers", "in_progress"):
        if part in told:
            yield _CoreUpdate(part, "status", {part: list(getattr(page, part))})
    if page.recently_shipped:
        # A bank tells the newest first, core memory last.
        newest = page.recently_shipped[:shipped][::-1]
        yield _CoreUpdate("recently_shipped", "status", {"recently_shipped": list(newest)})
    when = to_short_text((page.updated or now).replace(microsecond=0))
    for thread in page.threads:
        item = {"id": thread.id, "summary": thread.summary, "roles": list(thread.roles), "last_update": when}
        yield _CoreUpdate(f"thread:{thread.id}", "threads", item)
    for state in page.roles:
        fields = {field: text for field, text in state._asdict().items() if field != "role" and text}
        if fields:
            yield _CoreUpdate(f"role:{state.role}", "role_state", fields, state.role)


def _bank_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files named, and of folders the bank and its archived versions in them."""
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted({*path.glob("bank.md"), *path.glob("bank-*.md"), *path.glob("archives/bank-*.md")})
        if not inside:
            raise InputError(f"{str(path)!r} has no bank.md", hint="name the file itself")
        files += inside
    return files


def _parse_page(name: str, text: str, file_time: datetime) -> _Page:
    if not text.strip():
        raise RecordError("an empty file")
    bank = parse_bank(text)
    about = describe_file(name, text, type=DocumentType.CYCLE, file_time=bank.updated or file_time)
    entries = tuple(_entry_of(line, name, about.date or file_time) for line in bank.cycles)
    return _Page(name, text, sha256(text.encode()).hexdigest(), bank, about, entries)


def _entry_of(line: CycleLine, source: str, time: datetime) -> Entry:
    """Return a bank's line about a cycle as an entry; the same line of several versions is one entry."""
    return Entry(
        id=derived_id("entry", "bank", str(line.cycle), line.role, line.action, line.content),
        seq=0,
        cycle=line.cycle,
        time=time,
        role=line.role,
        action=line.action,
        content=line.content,
        tags=("bank",),
        extra={"source": source},
    )


def _imported_digests(reader: Reader) -> dict[str, str]:
    noted: dict[str, str] = json.loads(reader.setting(_BANKS) or "{}")
    return noted


def _with_digest(reader: Reader, name: str, digest: str) -> str:
    return canonical_json({**_imported_digests(reader), name: digest})
