"""Work on the archive: insert, search, read and remove texts, follow folders, take a `bank.md` in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, decides, reads, writes
from archivist.archive.chunking import chunk_text
from archivist.archive.folders import (
    FileDescription,
    decode_text,
    describe_file,
    find_owner,
    validate_pattern,
)
from archivist.capture.secrets import clean_text, validate_path
from archivist.errors import InputError, NotFoundError, RecordError
from archivist.ids import derived_id
from archivist.recall.query import Query
from archivist.records import Document, DocumentType, Folder
from archivist.records.plain import decoder
from archivist.records.tiers import validate_document
from archivist.service import BankService
from archivist.store.filters import equals, not_equals
from archivist.stream.entries import find_references
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from archivist.archive.folder_files import Listing
    from archivist.bank import Bank
    from archivist.exchange.bank_markdown_service import BankImportResult
    from archivist.recall.service import Hit
    from archivist.store.protocol import Writer

MAX_CHARACTERS = 2 * 1024 * 1024
_MOST_HITS = 200
_WORD = re.compile(r"[^\W_]+")


class SourceText(NamedTuple):
    """A text of the archive as a whole."""

    source: str
    type: DocumentType
    pieces: int
    tokens: int
    date: datetime
    folder: str


class RefreshResult(NamedTuple):
    """What following the folders did, in files; `problems` name those that could not be read as they are.

    `folders` says how many are watched.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    folders: int = 0
    problems: tuple[str, ...] = ()


class Documents(BankService):
    """The archive: texts in pieces, by words and by meaning, beside the stream's archived entries."""

    @writes(Layer.ARCHIVE)
    def insert(
        self,
        content: str,
        *,
        type: DocumentType | str,  # noqa: A002
        roles: Sequence[str] = (),
        issues: Sequence[int] = (),
        importance: int = 5,
        source: str = "",
        date: datetime | None = None,
        tags: Sequence[str] = (),
    ) -> list[Document]:
        """Archive a text in pieces and return them; the same text again changes nothing.

        A source that is known gets the new text in place of the old one. Without a source the text is named
        by its first words. What its front matter says counts where the call says nothing.
        """
        if len(content) > MAX_CHARACTERS:
            raise RecordError(f"content: {len(content)} characters, at most {MAX_CHARACTERS}")
        sort = decoder(DocumentType)(str(type))
        name = validate_path("source", source.strip()) or _generate_name(clean_text(content), sort)
        told = describe_file(name, content)
        about = told._replace(
            type=sort,
            date=_as_aware(date) or told.date,
            roles=_clean_texts(roles) or told.roles,
            issues=tuple(decoder(tuple[int, ...])(list(issues))) or told.issues,
            tags=_clean_texts(tags) or told.tags,
            importance=decoder(int)(importance),
        )
        digest = sha256(content.encode("utf-8", "replace")).hexdigest()
        made = build_documents(self._bank, name, about, digest=digest)
        with self._bank.transaction() as writer:
            followed = writer.select(Document, equals("source", name), not_equals("folder", ""), limit=1)
            if followed:
                hint = "change the file, or archivist archive unwatch lets the folder go"
                raise InputError(f"{name!r} is followed in {followed[0].folder!r}", hint=hint)
            return replace_documents(writer, name, made, "insert")

    @reads(Layer.ARCHIVE)
    def search(
        self,
        query: str,
        *,
        type: DocumentType | str | None = None,  # noqa: A002
        dates: tuple[datetime | None, datetime | None] | None = None,
        limit: int = 5,
    ) -> list[Hit]:
        """Return what of the archive answers a question, the best first: texts and old cycles.

        The type `cycle` asks for archived entries too, `decision` also for those that were decisions.
        """
        if not query.strip():
            raise InputError("query: missing or empty", hint="archivist archive list shows what there is")
        if not 1 <= limit <= _MOST_HITS:
            raise InputError(f"limit: {limit} is not between 1 and {_MOST_HITS}")
        since, until = dates or (None, None)
        if since and until and since > until:
            raise InputError(f"dates {since:%Y-%m-%d} to {until:%Y-%m-%d}: the first comes after the last")
        asked = Query(
            text=query, kinds=("document", "entry"), tier="archive", since=since, until=until, limit=limit,
            preset="relevance",
        )  # fmt: skip
        sort = decoder(DocumentType)(str(type)) if type else None
        if sort is not DocumentType.CYCLE:
            return list(self._bank.recall(asked._replace(type=sort.value if sort else "")).hits)
        texts = self._bank.recall(asked._replace(kinds=("document",), type=sort.value)).hits
        entries = self._bank.recall(asked._replace(kinds=("entry",))).hits
        return sorted((*texts, *entries), key=lambda hit: (-hit.score, hit.id))[:limit]

    @reads(Layer.ARCHIVE)
    def sources(self, *, type: DocumentType | str | None = None) -> list[SourceText]:  # noqa: A002
        """Return the texts of the archive by their names."""
        conditions = [equals("type", decoder(DocumentType)(str(type)))] if type else []
        with self._bank.reading() as reader:
            found = reader.select(Document, *conditions, order=("source", "position"))
        return [_summarise_source(list(group)) for _, group in groupby(found, key=lambda each: each.source)]

    @reads(Layer.ARCHIVE)
    def read(self, source: str) -> list[Document]:
        """Return a text's pieces in order, or with `source#3` that piece; nothing when there is none."""
        with self._bank.reading() as reader:
            for name in (source, self._relative(source)):
                if found := reader.select(Document, equals("source", name), order=("position",)):
                    return found
            name, mark, place = source.rpartition("#")
            if mark and place.isdigit():
                at = equals("position", int(place))
                return reader.select(Document, equals("source", name), at, limit=1)
        return []

    @decides(Layer.ARCHIVE)
    def remove(self, source: str) -> int:
        """Take a text out of the archive and return how many pieces it had."""
        with self._bank.transaction() as writer:
            found = writer.select(Document, equals("source", source))
            if not found:
                raise NotFoundError("document", source, hint="archivist archive list shows what there is")
            if found[0].folder:
                hint = f"archivist archive unwatch {found[0].folder} lets the folder go"
                raise InputError(f"{source!r} is followed and would come back", hint=hint)
            for document in found:
                writer.remove(Document, document.id, "remove")
        return len(found)

    @decides(Layer.ARCHIVE)
    def watch(
        self,
        folder: str | Path,
        *,
        type: DocumentType | str | None = None,  # noqa: A002
        pattern: str = "**/*.md",
    ) -> Folder:
        """Follow a folder from now on; its texts come in with the next refresh.

        Inside of the project its path is kept relative to that. Watching it again changes type and pattern.
        """
        place = Path(folder).expanduser()
        place = place if place.is_absolute() else self._root / place
        if not place.is_dir():
            raise InputError(f"no such folder: {str(folder)!r}")
        name = validate_path("folder", self._relative(str(place.resolve())))
        sort = decoder(DocumentType)(str(type)) if type else None
        wanted = Folder(id=name, type=sort, pattern=validate_pattern(pattern), added=self._bank.now())
        with self._bank.transaction() as writer:
            known = writer.get(Folder, name)
            wanted = replace(wanted, added=known.added) if known else wanted
            writer.put(wanted, "watch")
        return wanted

    @decides(Layer.ARCHIVE)
    def unwatch(self, folder: str | Path, *, keep: bool = False) -> int:
        """Follow a folder no longer; its texts leave the archive, or stay as they are. Return how many."""
        with self._bank.transaction() as writer:
            names = (str(folder), self._relative(str(folder)), self._relative(str(Path(folder).absolute())))
            name = next((name for name in names if writer.get(Folder, name)), None)
            if name is None:
                raise NotFoundError(
                    "folder",
                    str(folder),
                    hint="archivist archive list --folders shows them",
                )
            writer.remove(Folder, name, "unwatch")
            found = writer.select(Document, equals("folder", name))
            for document in found:
                if keep:
                    writer.put(replace(document, folder=""), "unwatch")
                else:
                    writer.remove(Document, document.id, "unwatch")
        return len({document.source for document in found})

    @reads(Layer.ARCHIVE)
    def folders(self) -> list[Folder]:
        """Return the folders that are watched."""
        with self._bank.reading() as reader:
            return reader.select(Folder, order=("id",))

    @writes(Layer.ARCHIVE)
    def refresh(self) -> RefreshResult:
        """Bring the archive in step with the watched folders: by content, file by file.

        A file that cannot be read is a problem and stays as it was known. So does a folder that is gone as a
        whole: what was in it is let go by unwatching it.
        """
        from archivist.archive.folder_files import list_folder, read

        folders = self.folders()
        listings = [list_folder(self._root, folder) for folder in folders]
        counts = {"added": 0, "changed": 0, "removed": 0, "unchanged": 0}
        problems = [problem for listing in listings for problem in listing.problems]
        present: set[str] = {path for listing in listings for path in listing.unread}
        for folder, listing in zip(folders, listings, strict=True):
            for path in listing.paths:
                if find_owner(path, folders) != folder:
                    continue
                if clean_text(path) != path:
                    # A name is kept as it is, or it would not be found again; this one must not be kept.
                    problems.append(
                        f"{clean_text(path)}: its name holds a secret or control characters; rename it"
                    )
                    continue
                file = read(self._root, path)
                if file is None:
                    continue
                if file.problem:
                    present.add(path)
                    problems.append(f"{path}: {file.problem}")
                    continue
                outcome, odd = self._refresh_file(folder, path, file.raw, file.time)
                if outcome != "blank":
                    present.add(path)
                if outcome in counts:
                    counts[outcome] += 1
                problems += [f"{path}: {problem}" for problem in odd]
        counts["removed"] += self._remove_missing(folders, listings, present)
        return RefreshResult(**counts, folders=len(folders), problems=tuple(problems))

    @decides(Layer.ARCHIVE)
    def import_bank(self, paths: Sequence[str | Path]) -> BankImportResult:
        """Take `bank.md` and its archived versions in: role state, status and threads, cycles, and the rest.

        An archived version (`bank-*.md`) gives its cycles and is a document of that type. What was taken in
        before and has not changed is left alone, so that core memory keeps what happened to it since.
        """
        from archivist.exchange.bank_markdown_service import import_banks

        return import_banks(self._bank, paths, self._relative)

    @property
    def _root(self) -> Path:
        """Return the project's folder, to which paths are relative."""
        from archivist.paths import FOLDER

        folder = self._bank.path.absolute().parent
        return folder.parent if folder.name == FOLDER else folder

    def _relative(self, path: str) -> str:
        root = self._root.resolve()
        place = Path(path)
        place = (root / place if not place.is_absolute() else place).resolve()
        return place.relative_to(root).as_posix() if place.is_relative_to(root) else place.as_posix()

    def _refresh_file(
        self, folder: Folder, path: str, raw: bytes, time: datetime
    ) -> tuple[str, tuple[str, ...]]:
        """Bring one file up to date; return what that was, and what was odd about it."""
        try:
            text = decode_text(raw)
        except RecordError as error:
            return "kept", (error.message,)
        if not text.strip():
            return "blank", ()
        digest = sha256(raw).hexdigest()
        with self._bank.reading() as reader:
            known = reader.select(Document, equals("source", path), order=("position",), limit=1)
        about = describe_file(path, text, type=folder.type, file_time=time)
        if known and (known[0].digest, known[0].type, known[0].folder) == (digest, about.type, folder.id):
            return "unchanged", about.problems
        if known:
            # A file's own time moves with every copy; the day that it first had stays.
            about = about._replace(date=about.date if about.date != time else known[0].date or time)
        made = build_documents(self._bank, path, about, digest=digest, folder=folder.id)
        with self._bank.transaction() as writer:
            replace_documents(writer, path, made, "refresh")
        return ("changed" if known else "added"), about.problems

    def _remove_missing(
        self, folders: Sequence[Folder], listings: Sequence[Listing], present: set[str]
    ) -> int:
        """Remove what is no longer in the folders that could be listed; return how many texts that were."""
        whole = {
            folder.id for folder, each in zip(folders, listings, strict=True) if each.is_whole(self._root)
        }
        gone = set()
        with self._bank.transaction() as writer:
            fields = ("id", "source", "folder")
            for record, source, folder in writer.select_fields(Document, fields, not_equals("folder", "")):
                if folder in whole and source not in present:
                    writer.remove(Document, record, "refresh")
                    gone.add(source)
        return len(gone)


def build_documents(
    bank: Bank, source: str, about: FileDescription, *, digest: str, folder: str = ""
) -> list[Document]:
    """Return a text as its pieces: without secrets, each with the issues that it names."""
    front = about.front
    body = clean_text(front.body)
    now = bank.now()
    made: list[Document] = []
    seen: dict[str, int] = {}
    for place, piece in enumerate(chunk_text(body, first_line=front.first_line)):
        nth = seen[piece.text] = seen.get(piece.text, 0) + 1
        document = Document(
            id=derived_id("document", source, piece.text, str(nth)),
            source=source,
            position=place,
            heading=piece.heading,
            text=piece.text,
            type=about.type,
            date=about.date,
            roles=tuple(map(clean_text, about.roles)),
            issues=find_references(piece.text, issues=about.issues).issues,
            tags=tuple(map(clean_text, about.tags)),
            importance=about.importance,
            line=piece.line,
            # The whole text's digest stands with the first piece, so that the others stay as they are.
            digest="" if place else digest,
            folder=folder,
            created=now,
            extra={"front_matter": clean_text(front.raw)} if front.raw and not place else {},
        )
        made.append(validate_document(document))
    if not made:
        raise RecordError("content: missing or empty")
    return made


def replace_documents(
    writer: Writer, source: str, documents: Sequence[Document], verb: str
) -> list[Document]:
    """Put a source's pieces in place of those that it had; a piece that is the same is left alone."""
    known = {each.id: each for each in writer.select(Document, equals("source", source))}
    kept = [replace(each, created=known[each.id].created) if each.id in known else each for each in documents]
    for document in kept:
        writer.put(document, verb)
    for name in known.keys() - {each.id for each in kept}:
        writer.remove(Document, name, verb)
    return kept


def _summarise_source(parts: Sequence[Document]) -> SourceText:
    first = parts[0]
    tokens = sum(estimate_tokens(each.text) for each in parts)
    date = first.date or first.created
    return SourceText(first.source, first.type, len(parts), tokens, date, first.folder)


def _generate_name(content: str, sort: DocumentType) -> str:
    words = _WORD.findall(content.lower()[:200])[:6]
    digest = sha256(content.strip().encode("utf-8", "replace")).hexdigest()[:6]
    return f"{sort.value}/{'-'.join((*words, digest))}"


def _clean_texts(values: Sequence[str]) -> tuple[str, ...]:
    given: tuple[str, ...] = decoder(tuple[str, ...])(list(values))
    return tuple(each for each in map(clean_text, given) if each.strip())


def _as_aware(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
