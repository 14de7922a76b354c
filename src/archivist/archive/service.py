"""The archive: insert, search, read and remove texts, watch folders, import a `bank.md`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, Verb, decides, reads, writes
from archivist.archive.chunking import TextChunk, chunk_text
from archivist.archive.folders import (
    FileDescription,
    FileText,
    describe_file,
    find_owner,
    folder_state,
    list_folder,
    read_text,
    validate_pattern,
)
from archivist.capture.redaction import clean_text, validate_path
from archivist.errors import BankError, InputError, NotFoundError, RecordError, StateError
from archivist.files.open import real_path, refuse_way_out
from archivist.ids import derived_id
from archivist.recall.query import Query
from archivist.records import ARCHIVIST, ActorKind, Document, DocumentType, Folder, Provenance
from archivist.records.plain import decoder
from archivist.records.tiers import validate_document
from archivist.service import BankService
from archivist.store.filters import equals, not_equals, one_of
from archivist.stream.entries import find_references
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.recall.results import Hit, RecallResult
    from archivist.store.protocol import Writer

MAX_CHARACTERS = 2 * 1024 * 1024
_MOST_HITS = 200
# An entry may come this many times as late as the pages that copy it.
_COPIES = 3
# A setting of the bank: what the watched files looked like at the last refresh.
_SEEN = "archive_seen"
# No text has more pieces.
_MOST_DIGITS = 9
_FOREIGN_HINT = "another archived it: choose another source"
_WORD = re.compile(r"[^\W_]+")
# The mark of a piece that is made of the front matter.
_ABSTRACT = "abstract"


class SourceText(NamedTuple):
    """A text of the archive, without its content."""

    source: str
    type: DocumentType
    pieces: int
    tokens: int
    date: datetime
    folder: str


class HitDescription(NamedTuple):
    """What a hit of the archive is: the fields of the cognitive document's archival entry."""

    source: str
    type: str
    date: datetime
    roles: tuple[str, ...]
    issues: tuple[int, ...]
    importance: int


class RefreshResult(NamedTuple):
    """What a refresh did, in files; `folders` counts the watched folders."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    folders: int = 0
    problems: tuple[str, ...] = ()


class Documents(BankService):
    """Texts in pieces, searchable by words and meaning together with the stream's archived entries."""

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

        The text of a known source is replaced, by an agent only its own. Without a source the text is named
        by its first words. Front matter gives what the call leaves out.
        """
        if len(content) > MAX_CHARACTERS:
            raise RecordError(f"content: {len(content)} characters, at most {MAX_CHARACTERS}")
        document_type = decoder(DocumentType)(str(type))
        name = validate_path("source", source.strip())
        if not name:
            cleaned = clean_text(content)
            words = _WORD.findall(cleaned.lower()[:200])[:6]
            mark = sha256(cleaned.strip().encode("utf-8", "replace")).hexdigest()[:6]
            name = f"{document_type.value}/{'-'.join((*words, mark))}"
        found = describe_file(name, content)
        if date is not None and date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        about = found._replace(
            type=document_type,
            date=date or found.date,
            roles=_clean_texts(roles) or found.roles,
            issues=tuple(decoder(tuple[int, ...])(list(issues))) or found.issues,
            tags=_clean_texts(tags) or found.tags,
            importance=decoder(int)(importance),
        )
        digest = sha256(content.encode("utf-8", "replace")).hexdigest()
        made = build_documents(self._bank, name, about, digest=digest)
        with self._bank.transaction() as writer:
            watched = writer.select(Document, equals("source", name), not_equals("folder", ""), limit=1)
            if watched:
                hint = "change the file, or stop watching the folder: archivist archive unwatch"
                raise StateError(f"{name!r} is a file of the watched folder {watched[0].folder!r}", hint=hint)
            if self._bank.actor.kind is ActorKind.AGENT:
                known = writer.select(Document, equals("source", name), order=("position",))
                changes = (change for piece in known for change in writer.text_entries(piece.id))
                own = (self._bank.actor.kind, self._bank.actor.name)
                if any((change.actor.kind, change.actor.name) != own for change in changes):
                    if [piece.id for piece in known] == [piece.id for piece in made]:
                        return known
                    self._bank.refuse(Layer.ARCHIVE, Verb.WRITE, what=name, hint=_FOREIGN_HINT)
            return replace_documents(writer, name, made, "insert")

    @reads(Layer.ARCHIVE)
    def provenance(self, piece: Document) -> Provenance | None:
        """Return that an agent or a watched file wrote a piece; None for all others."""
        with self._bank.reading() as reader:
            return reader.text_provenance("document", piece)

    @reads(Layer.ARCHIVE)
    def search(
        self,
        query: str,
        *,
        type: DocumentType | str | None = None,  # noqa: A002
        dates: tuple[datetime | None, datetime | None] | None = None,
        limit: int = 5,
    ) -> list[Hit]:
        """Return the texts and archived stream entries that answer a question, best first.

        The type `cycle` includes archived entries, `decision` those of them that were decisions.
        """
        if not query.strip():
            raise InputError("query: missing or empty", hint="archivist archive list shows all texts")
        if not 1 <= limit <= _MOST_HITS:
            raise InputError(f"limit: {limit} is not between 1 and {_MOST_HITS}")
        since, until = dates or (None, None)
        if since and until and since > until:
            raise InputError(f"dates {since:%Y-%m-%d} to {until:%Y-%m-%d}: the first comes after the last")
        asked = Query(
            text=query, kinds=("document", "entry"), tier="archive", since=since, until=until,
            limit=min(_MOST_HITS, _COPIES * limit), preset="relevance",
        )  # fmt: skip
        wanted = decoder(DocumentType)(str(type)) if type else None
        if wanted is not DocumentType.CYCLE:
            hits = self._bank.recall(asked._replace(type=wanted.value if wanted else "")).hits
            # Pieces of a text that fit alike stand in its order.
            found = sorted(hits, key=lambda hit: (-hit.score, hit.name))
        else:
            texts = self._bank.recall(asked._replace(kinds=("document",), type=wanted.value)).hits
            entries = self._bank.recall(asked._replace(kinds=("entry",))).hits
            found = sorted((*texts, *entries), key=lambda hit: (-hit.score, hit.id))
        return self._entries_before_copies(found)[:limit]

    @reads(Layer.ARCHIVE)
    def describe_hits(self, hits: Sequence[Hit]) -> dict[str, HitDescription]:
        """Return of what source, type, date, roles, issues and importance each hit of a search is."""
        with self._bank.reading() as reader:
            entries = reader.records("entry", [hit.id for hit in hits if hit.kind == "entry"])
            texts = reader.records("document", [hit.id for hit in hits if hit.kind == "document"])
        found: dict[str, HitDescription] = {}
        for name, entry in entries.items():
            roles = (entry.role,) if entry.role else ()
            about = (entry.time, roles, entry.issues, entry.importance)
            found[name] = HitDescription("stream", "cycle", *about)
        for name, text in texts.items():
            about = (text.date or text.created, text.roles, text.issues, text.importance)
            found[name] = HitDescription(text.source, text.type.value, *about)
        return found

    def _entries_before_copies(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits with each entry of the stream before the pages that only copy it."""
        with self._bank.reading() as reader:
            entries = reader.records("entry", [hit.id for hit in hits if hit.kind == "entry"])
            texts = reader.records("document", [hit.id for hit in hits if hit.kind == "document"])
        words = {name: " ".join(_WORD.findall(text.text.lower())) for name, text in texts.items()}
        ordered: list[Hit] = []
        for hit in hits:
            place = len(ordered)
            if hit.id in entries:
                said = " ".join(_WORD.findall(entries[hit.id].action.lower()))
                copies = (at for at, each in enumerate(ordered) if said and said in words.get(each.id, ""))
                place = next(copies, place)
            ordered.insert(place, hit)
        return ordered

    @reads(Layer.ARCHIVE)
    def sources(self, *, type: DocumentType | str | None = None) -> list[SourceText]:  # noqa: A002
        """Return the texts of the archive by name."""
        conditions = [equals("type", decoder(DocumentType)(str(type)))] if type else []
        with self._bank.reading() as reader:
            found = reader.select(Document, *conditions, order=("source", "position"))
        sources = []
        for name, group in groupby(found, key=lambda document: document.source):
            first, *more = group
            tokens = sum(estimate_tokens(piece.text) for piece in (first, *more))
            date = first.date or first.created
            sources.append(SourceText(name, first.type, 1 + len(more), tokens, date, first.folder))
        return sources

    @reads(Layer.ARCHIVE)
    def read(self, source: str) -> list[Document]:
        """Return the pieces of a text in order, or piece 3 of `source#3`; an empty list when unknown."""
        if "\0" in source:
            return []
        self.refresh_if_changed()
        with self._bank.reading() as reader:
            for name in (source, relative_name(self._bank.root, source)):
                if found := reader.select(Document, equals("source", name), order=("position",)):
                    return found
            name, mark, place = source.rpartition("#")
            if mark and place.isdecimal() and len(place) <= _MOST_DIGITS:
                at = equals("position", int(place))
                return reader.select(Document, equals("source", name), at, limit=1)
        return []

    @decides(Layer.ARCHIVE)
    def remove(self, source: str) -> int:
        """Remove a text from the archive and return the number of its pieces."""
        with self._bank.transaction() as writer:
            found = writer.select(Document, equals("source", source))
            if not found:
                raise NotFoundError("document", source, hint="archivist archive list shows all texts")
            if found[0].folder:
                hint = f"stop watching the folder: archivist archive unwatch {found[0].folder}"
                raise StateError(f"{source!r} is in a watched folder and would come back", hint=hint)
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
        """Watch a folder; its texts are archived by the next refresh.

        Inside the project its path is stored relative to it. Watching it again changes type and pattern.
        """
        place = Path(folder).expanduser()
        place = place if place.is_absolute() else self._bank.root / place
        if not place.is_dir():
            raise InputError(f"no such folder: {str(folder)!r}")
        refuse_way_out(place)
        name = validate_path("folder", relative_name(self._bank.root, str(place)))
        document_type = decoder(DocumentType)(str(type)) if type else None
        pattern = validate_pattern(pattern)
        with self._bank.transaction() as writer:
            known = writer.get(Folder, name)
            added = known.added if known else self._bank.now()
            watched = Folder(id=name, type=document_type, pattern=pattern, added=added)
            writer.put(watched, "watch")
        return watched

    @decides(Layer.ARCHIVE)
    def unwatch(self, folder: str | Path, *, keep: bool = False) -> int:
        """Stop watching a folder, and remove or keep its texts; return how many there were."""
        with self._bank.transaction() as writer:
            paths = (str(folder), str(Path(folder).absolute()))
            names = (str(folder), *(relative_name(self._bank.root, path) for path in paths))
            name = next((name for name in names if writer.get(Folder, name)), None)
            if name is None:
                raise NotFoundError("folder", str(folder), hint="archivist archive list --folders shows them")
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
        """Return the watched folders."""
        with self._bank.reading() as reader:
            return reader.select(Folder, order=("id",))

    @reads(Layer.ARCHIVE)
    def recall(self, query: Query) -> RecallResult:
        """Search the bank, and never answer with a text that its file no longer has.

        The watched folders are looked at before the search, and the file of each hit after it. What cannot
        be brought up to date, in a bank that is read-only or written by others, is left out.
        """
        self.refresh_if_changed()
        found = self._bank.searches.recall(query)
        if self._stale_sources(found.hits):
            with suppress(BankError):
                self._bank.acting_as(ARCHIVIST).documents.refresh()
                found = self._bank.searches.recall(query)
        stale = self._stale_sources(found.hits)
        return found._replace(hits=tuple(hit for hit in found.hits if hit.id not in stale))

    def _stale_sources(self, hits: Sequence[Hit]) -> set[str]:
        """Return the hits whose file says something else than the archive, or is gone."""
        with self._bank.reading() as reader:
            pieces = reader.records("document", [hit.id for hit in hits if hit.kind == "document"])
            sources = {piece.source for piece in pieces.values() if piece.folder}
            firsts = reader.select(Document, one_of("source", tuple(sources)), equals("position", 0))
        digests = {first.source: first.digest for first in firsts}
        for source in sources & digests.keys():
            with suppress(RecordError):
                file = read_text(self._bank.root / source, source)
                if file is not None and file.digest == digests[source]:
                    sources.discard(source)
        return {name for name, piece in pieces.items() if piece.source in sources}

    @reads(Layer.ARCHIVE)
    def refresh_if_changed(self) -> RefreshResult | None:
        """Refresh when the names, sizes or times of watched files are not those of the last refresh.

        None where nothing changed, or the bank cannot be written.
        """
        with self._bank.reading() as reader:
            known = reader.setting(_SEEN)
        if known != self._signature():
            with suppress(BankError):
                return self._bank.acting_as(ARCHIVIST).documents.refresh()
        return None

    def _signature(self) -> str:
        """Return what the watched files look like from outside."""
        root, mark = self._bank.root, sha256()
        for folder in self.folders():
            state = tuple(folder_state(root, folder, self._bank.now()))
            mark.update(repr(state).encode("utf-8", "surrogateescape"))
        return mark.hexdigest()

    @writes(Layer.ARCHIVE)
    def refresh(self) -> RefreshResult:
        """Update the archive from the watched folders, by the content of each file.

        The texts of a file that cannot be read, or of a folder that is gone as a whole, are kept: such a
        folder may be on a drive that is not mounted. Unwatching it removes them.
        """
        # Before the files are read: what changes meanwhile is seen by the next look.
        signature = self._signature()
        root, folders = self._bank.root, self.folders()
        listings = {folder.id: list_folder(root, folder) for folder in folders}
        counts = Counter[str]()
        problems = [problem for listing in listings.values() for problem in listing.problems]
        present = {path for listing in listings.values() for path in listing.unread}
        owned = ((folder, path) for folder in folders for path in listings[folder.id].paths)
        for folder, path in owned:
            if find_owner(path, folders) != folder:
                continue
            try:
                file = read_text(root / path, path)
            except RecordError as error:
                present.add(path)
                problems.append(f"{clean_text(path)}: {error.message}")
                continue
            if file is None:
                continue
            about = describe_file(path, file.text, type=folder.type, file_time=file.time)
            # A file without a body can have an abstract in its front matter.
            if about.front.body.strip() or any(about.front.abstract):
                present.add(path)
                counts[self._refresh_file(folder, path, file, about)] += 1
                problems += [f"{path}: {problem}" for problem in about.problems]
        # A folder may have gone while it was read.
        whole = {name for name, listing in listings.items() if listing.is_whole and (root / name).is_dir()}
        gone = set()
        with self._bank.transaction() as writer:
            fields = ("id", "source", "folder")
            for record, source, name in writer.select_fields(Document, fields, not_equals("folder", "")):
                if name in whole and source not in present:
                    writer.remove(Document, record, "refresh")
                    gone.add(source)
            if writer.setting(_SEEN) != signature:
                writer.set_setting(_SEEN, signature)
        return RefreshResult(**counts, removed=len(gone), folders=len(folders), problems=tuple(problems))

    def _refresh_file(self, folder: Folder, path: str, file: FileText, about: FileDescription) -> str:
        """Update one file; return the count that it adds to."""
        with self._bank.reading() as reader:
            known = reader.select(Document, equals("source", path), order=("position",), limit=1)
        same = (file.digest, about.type, folder.id, any(about.front.abstract))
        if known and (known[0].digest, known[0].type, known[0].folder, _ABSTRACT in known[0].extra) == same:
            return "unchanged"
        if known and about.date == file.time:
            # The modification time changes with every copy, so the first one is kept.
            about = about._replace(date=known[0].date or file.time)
        made = build_documents(self._bank, path, about, digest=file.digest, folder=folder.id)
        with self._bank.transaction() as writer:
            replace_documents(writer, path, made, "refresh")
        return "changed" if known else "added"


def build_documents(
    bank: Bank, source: str, about: FileDescription, *, digest: str, folder: str = ""
) -> list[Document]:
    """Return the pieces of a text, without secrets, each with the issues that it names."""
    front, now = about.front, bank.now()
    made: list[Document] = []
    seen: dict[str, int] = {}
    pieces = chunk_text(clean_text(front.body), first_line=front.first_line)
    name, said = map(clean_text, front.abstract)
    # What the first piece keeps of the front matter, and whether it is made of it.
    extra: dict[str, object] = {"front_matter": clean_text(front.raw)} if front.raw else {}
    if name or said:
        pieces.insert(0, TextChunk(said or name, name, 1))
        extra[_ABSTRACT] = True
    for place, piece in enumerate(pieces):
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
            # Only the first piece has the digest of the whole text, so that unchanged pieces stay unchanged.
            digest="" if place else digest,
            folder=folder,
            created=now,
            extra={} if place else extra,
        )
        made.append(validate_document(document))
    if not made:
        raise RecordError("content: missing or empty")
    return made


def replace_documents(
    writer: Writer, source: str, documents: Sequence[Document], verb: str
) -> list[Document]:
    """Replace the pieces of a source; unchanged pieces are not written."""
    known = {each.id: each for each in writer.select(Document, equals("source", source))}
    kept = [replace(each, created=known[each.id].created) if each.id in known else each for each in documents]
    for document in kept:
        writer.put(document, verb)
    for name in known.keys() - {each.id for each in kept}:
        writer.remove(Document, name, verb)
    return kept


def _clean_texts(values: Sequence[str]) -> tuple[str, ...]:
    given: tuple[str, ...] = decoder(tuple[str, ...])(list(values))
    return tuple(each for each in map(clean_text, given) if each.strip())


def relative_name(root: Path, path: str) -> str:
    """Return a path below the root as a relative name, any other as an absolute one."""
    root = real_path(root)
    place = real_path(root / path)
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else place.as_posix()
