"""Memory files: texts that a model stores under `/memories`, as files that are on no disk.

A file is a text of the archive, named `memories:notes/today.md`, in pieces: joined they are the file byte for
byte, and each is found by words and by meaning. Without a folder on disk no link can lead out of it; a folder
exists as long as a file is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.archive.service import MAX_CHARACTERS, replace_documents
from archivist.capture.redaction import refuse_secret
from archivist.errors import InputError, StateError
from archivist.ids import derived_id
from archivist.records import Document
from archivist.service import BankService
from archivist.store.filters import equals, starts_with

if TYPE_CHECKING:
    from archivist.store.filters import Condition
    from archivist.store.protocol import Reader, Writer

SCHEME = "memories:"
# About the 480 tokens that an embedder reads.
_PIECE = 2_000


class MemoryFile(NamedTuple):
    """A file by its path below `/memories`, and its size."""

    path: str
    size_bytes: int

    @property
    def id(self) -> str:
        """Return the id of its first piece's record, which does not reveal its name."""
        return _id(self.path, 0)


class MemoryFiles(BankService):
    """The files of a memory tool. Paths are relative to `/memories`; the empty one is that folder."""

    @reads(Layer.ARCHIVE)
    def files(self, folder: str = "") -> list[MemoryFile]:
        """Return the files below a folder by path; an empty list when there is none."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(
                Document, ("source", "text"), *_below_folder(folder), order=("source",)
            )
        return _group_files(rows)

    @reads(Layer.ARCHIVE)
    def read(self, path: str) -> str | None:
        """Return a file's text, or None when it does not exist."""
        with self._bank.reading() as reader:
            pieces = _pieces_of(reader, path)
        return "".join(piece.text for piece in pieces) if pieces else None

    @writes(Layer.ARCHIVE)
    def create(self, path: str, text: str) -> MemoryFile | None:
        """Create a file; None when the path is taken."""
        kept = _clean_text(text)
        refuse_secret("path", path)
        with self._bank.transaction() as writer:
            if not path or _pieces_at_or_below(writer, path):
                return None
            _refuse_file_parent(writer, path)
            _write(writer, path, kept, self._bank.now(), "create")
        return MemoryFile(path, len(kept.encode("utf-8")))

    @writes(Layer.ARCHIVE)
    def change(self, path: str, edit: Callable[[str], str]) -> MemoryFile | None:
        """Replace a file's text by what `edit` returns for it; None when it does not exist."""
        with self._bank.transaction() as writer:
            pieces = _pieces_of(writer, path)
            if not pieces:
                return None
            kept = _clean_text(edit("".join(piece.text for piece in pieces)))
            _write(writer, path, kept, self._bank.now(), "change")
        return MemoryFile(path, len(kept.encode("utf-8")))

    @writes(Layer.ARCHIVE)
    def remove(self, path: str) -> list[MemoryFile]:
        """Delete a file, or a folder with its files, and return the deleted files."""
        with self._bank.transaction() as writer:
            found = _pieces_at_or_below(writer, path)
            for piece in found:
                writer.remove(Document, piece.id, "remove")
        return _group_files((piece.source, piece.text) for piece in found)

    @writes(Layer.ARCHIVE)
    def rename(self, old: str, new: str) -> list[MemoryFile]:
        """Rename a file or a folder and return its files under their new names."""
        refuse_secret("path", new)
        with self._bank.transaction() as writer:
            moving = _pieces_at_or_below(writer, old)
            if not moving:
                return []
            if f"{new}/".startswith(f"{old}/") or _pieces_at_or_below(writer, new) or not new:
                raise StateError(f"{old!r} cannot become {new!r}", hint="choose a path that is free")
            _refuse_file_parent(writer, new)
            moved = []
            for piece in moving:
                path = f"{new}{piece.source.removeprefix(SCHEME)[len(old) :]}"
                place = _id(path, piece.position)
                moved.append(replace(piece, id=place, source=f"{SCHEME}{path}", heading=path))
                writer.remove(Document, piece.id, "rename")
                writer.put(moved[-1], "rename")
        return _group_files((piece.source, piece.text) for piece in moved)


def _below_folder(folder: str) -> tuple[Condition, ...]:
    """Return the conditions for all pieces below a folder."""
    return starts_with("source", f"{SCHEME}{folder}/" if folder else SCHEME)


def _group_files(pieces: Iterable[Sequence[str]]) -> list[MemoryFile]:
    """Return the files of pieces, each a name and a text, ordered by name."""
    return [
        MemoryFile(source.removeprefix(SCHEME), sum(len(text.encode("utf-8")) for _, text in parts))
        for source, parts in groupby(pieces, key=lambda piece: piece[0])
    ]


def _pieces_of(reader: Reader, path: str) -> list[Document]:
    return reader.select(Document, equals("source", f"{SCHEME}{path}"), order=("position",))


def _pieces_at_or_below(reader: Reader, path: str) -> list[Document]:
    below = reader.select(Document, *_below_folder(path), order=("source", "position"))
    return [*_pieces_of(reader, path), *below]


def _refuse_file_parent(reader: Reader, path: str) -> None:
    """Refuse a path that leads through a file."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        folder = "/".join(parts[:depth])
        if reader.count(Document, equals("source", f"{SCHEME}{folder}")):
            raise StateError(f"{folder!r} is a file", hint="a file cannot contain files")


def _write(writer: Writer, path: str, text: str, now: datetime, verb: str) -> None:
    known = {piece.position: piece for piece in _pieces_of(writer, path)}
    pieces, line = list[Document](), 1
    for place, part in enumerate([*_split_text(text)] or [""]):
        # The first piece has the time of the file's last change, the others that of their own.
        is_same = place > 0 and place in known and known[place].text == part
        piece = Document(
            id=_id(path, place),
            source=f"{SCHEME}{path}",
            position=place,
            heading=path,
            text=part,
            date=known[place].date if is_same else now,
            line=line,
            created=now,
        )
        pieces.append(piece)
        line += part.count("\n")
    replace_documents(writer, f"{SCHEME}{path}", pieces, verb)


def _id(path: str, place: int) -> str:
    return derived_id("memory file", path, str(place))


def _split_text(text: str) -> Iterator[str]:
    """Split a text after line ends, and inside lines that are too long, losing nothing."""
    start = 0
    while len(text) - start > _PIECE:
        cut = text.rfind("\n", start, start + _PIECE) + 1
        cut = cut if cut > start else start + _PIECE
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


def _clean_text(text: str) -> str:
    from archivist.capture.redaction import redact

    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(text)} characters, at most {MAX_CHARACTERS}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("the text has an unpaired surrogate", hint="remove it") from None
    return redact(text).text
