"""What programs keep in the archive: JSON values under a namespace and a key, and memory files.

An item is a text of the archive, named `langgraph:a.b..key`: its first piece has the value, and each piece is
a text by which it is found. Items are therefore recalled, erased and shown like all records, and agents may
write them. Labels have no dots, so the first two dots end the namespace.

A memory file is a text that a model stores under `/memories`, named `memories:notes/today.md`. Its
pieces, joined, are the file byte for byte. Without a folder on disk no link can lead out of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads, writes
from archivist.archive.service import MAX_CHARACTERS, replace_documents
from archivist.capture.redaction import redact, refuse_secret, without_secrets
from archivist.clock import from_text, to_text
from archivist.errors import EmbedderError, InputError, StateError
from archivist.ids import derived_id
from archivist.records import Document
from archivist.service import BankService
from archivist.store.filters import contains_item, equals, one_of, starts_with

if TYPE_CHECKING:
    from archivist.store.filters import Condition
    from archivist.store.protocol import Reader, Writer

SCHEME = "langgraph:"
_FIELDS = ("source", "extra", "created", "date")
# The tag of items with a time to live.
_MORTAL = "mortal"
# SQLite accepts no larger limit.
_MOST = 2**31
# Nobody pages further through ranked hits; items behind them are not ranked.
_MOST_RANKED = 400
# A read extends a time to live only by at least this share, so that reads seldom write.
_LEAST_REFRESHED = 0.05

Namespace: TypeAlias = tuple[str, ...]
Value: TypeAlias = Mapping[str, object]
Wanted: TypeAlias = Callable[[Value], bool]


class ItemName(NamedTuple):
    """The namespace and the key of an item."""

    namespace: Namespace
    key: str

    @property
    def source(self) -> str:
        """Return the item's name in the archive."""
        return f"{SCHEME}{'.'.join(self.namespace)}..{self.key}"

    @property
    def id(self) -> str:
        """Return the id of the item's record, which does not reveal its name."""
        return _id(self.source, 0)


class Item(NamedTuple):
    """A stored value; `score` is its relevance in a search."""

    name: ItemName
    value: dict[str, object]
    created: datetime
    updated: datetime
    score: float | None = None
    ttl_minutes: float | None = None
    expires: datetime | None = None

    @property
    def id(self) -> str:
        """Return the id of the item's record."""
        return self.name.id


class ItemChange(NamedTuple):
    """A value to store, or None to delete the item; `texts` are what it is found by."""

    name: ItemName
    value: Value | None
    texts: tuple[str, ...] = ()
    ttl_minutes: float | None = None


class Items(BankService):
    """The values of programs, by namespace and key."""

    @reads(Layer.ARCHIVE)
    def get(self, names: Sequence[ItemName]) -> list[Item | None]:
        """Return the items of these names, None for each that does not exist."""
        with self._bank.reading() as reader:
            found = _load_items(reader, [name.source for name in names], self._bank.now())
        return [found.get(name.source) for name in names]

    @writes(Layer.ARCHIVE)
    def put(self, changes: Sequence[ItemChange]) -> list[ItemName]:
        """Store or delete these values, all or none, and return their names."""
        made = []
        for change in changes:
            for text in (*change.name.namespace, change.name.key):
                _refuse_surrogates("the item's name", text)
                refuse_secret("the item's name", text)
            value = without_secrets(change.value, is_exact=True)
            made.append((change, value if isinstance(value, dict) else None))
        with self._bank.transaction() as writer:
            for change, value in made:
                pieces = _build_pieces(change, value, self._bank.now()) if value is not None else []
                replace_documents(writer, change.name.source, pieces, "keep" if pieces else "let go")
        return [change.name for change in changes]

    @writes(Layer.ARCHIVE)
    def drop(self, names: Sequence[ItemName]) -> list[ItemName]:
        """Delete these values, all or none, and return their names."""
        return self.put([ItemChange(name, None) for name in names])

    @reads(Layer.ARCHIVE)
    def list_below(
        self, prefix: Namespace, *, is_wanted: Wanted | None = None, limit: int = 10, offset: int = 0
    ) -> list[Item]:
        """Return the wanted items below a namespace, latest first.

        Negative bounds count from the end, as in any list.
        """
        ends = offset + limit
        most = ends if min(offset, ends) >= 0 else None
        return self._live_items(prefix, is_wanted, most=most)[offset:ends]

    @reads(Layer.ARCHIVE)
    def search(
        self,
        prefix: Namespace,
        text: str,
        *,
        is_wanted: Wanted | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[Item]:
        """Return the items below a namespace that answer a question, best first, then all others.

        A negative offset counts from the end of the ranked items; the others still fill up the page.
        """
        from archivist.recall.results import FRESH

        if limit <= 0:
            return []
        begins, ends = max(0, offset), max(0, offset + limit)
        # The bundled embedder makes a few missing vectors while it searches; without them words still work.
        with suppress(EmbedderError):
            embedder = self._bank.embedder
            few = FRESH if embedder and embedder.name.startswith("static") else 0
            if embedder and self._bank.vectors.count_unembedded() > few:
                for _ in self._bank.vectors.embed_waiting():
                    pass
        best = self._rank_items(prefix, text, is_wanted, ends if offset >= 0 else _MOST_RANKED)
        found = best[begins:ends]
        if len(found) == limit:
            return found
        seen = {item.name for item in best}
        begins, missing = max(0, begins - len(best)), limit - len(found)
        rest = self._live_items(prefix, is_wanted, most=begins + missing + len(seen))
        return found + [item for item in rest if item.name not in seen][begins : begins + missing]

    @reads(Layer.ARCHIVE)
    def namespaces(self) -> list[Namespace]:
        """Return the namespaces that have items, in order."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(Document, ("source",), *_first_pieces_below(()))
            expired = self._expired_sources(reader)
        return sorted({_parse_name(source).namespace for (source,) in rows if source not in expired})

    @writes(Layer.ARCHIVE)
    def refresh(self, items: Sequence[Item]) -> None:
        """Restart the time to live of items that were read."""
        now = self._bank.now()
        due: list[tuple[Item, datetime]] = []
        for item in items:
            ttl = timedelta(minutes=item.ttl_minutes or 0)
            if ttl and item.expires is not None and now + ttl - item.expires >= ttl * _LEAST_REFRESHED:
                due.append((item, now + ttl))
        if not due:
            return
        with self._bank.transaction() as writer:
            for item, expires in due:
                first = writer.get(Document, item.id)
                if first is not None and "expires" in first.extra:
                    first.extra["expires"] = to_text(expires)
                    writer.put(first, "refresh")

    @writes(Layer.ARCHIVE)
    def sweep(self) -> int:
        """Delete the expired items and return their number."""
        with self._bank.transaction() as writer:
            gone = self._expired_sources(writer)
            for source in gone:
                for piece in writer.select(Document, equals("source", source)):
                    writer.remove(Document, piece.id, "expire")
        return len(gone)

    def _expired_sources(self, reader: Reader) -> set[str]:
        is_mortal = (*_first_pieces_below(()), contains_item("tags", _MORTAL))
        rows = reader.select_fields(Document, ("source", "extra"), *is_mortal)
        now = self._bank.now()
        expiry = ((source, json.loads(extra).get("expires")) for source, extra in rows)
        return {source for source, expires in expiry if expires and from_text(expires) <= now}

    def _live_items(
        self, prefix: Namespace, is_wanted: Wanted | None, *, most: int | None = None
    ) -> list[Item]:
        """Return the wanted items below a namespace that have not expired, latest first.

        Only the latest `most` are read, unless some of them are not wanted or have expired.
        """
        now = self._bank.now()
        is_bounded = is_wanted is None and most is not None and most < _MOST
        with self._bank.reading() as reader:
            for limit in (most, None) if is_bounded else (None,):
                below = _first_pieces_below(prefix)
                rows = reader.select_fields(Document, _FIELDS, *below, order=("-date", "source"), limit=limit)
                found = (_item_from_row(row, now, is_wanted) for row in rows)
                items = [item for item in found if item is not None]
                if limit is None or len(rows) < limit or len(items) == limit:
                    break
        return items

    def _rank_items(self, prefix: Namespace, text: str, is_wanted: Wanted | None, count: int) -> list[Item]:
        """Return the wanted items that answer a question, best first; perhaps more than asked for."""
        from archivist.recall.query import Query

        query = Query(text=text, kinds=("document",), tags=(_namespace_tag(prefix),), preset="relevance")
        for asked in (min(_MOST_RANKED, count * 2 + 8), _MOST_RANKED):
            hits = self._bank.recall(query._replace(limit=asked)).hits
            scores: dict[str, float] = {}
            with self._bank.reading() as reader:
                pieces = reader.records("document", [hit.id for hit in hits])
                for hit in hits:
                    if hit.id in pieces:
                        scores.setdefault(pieces[hit.id].source, hit.score)
                found = _load_items(reader, list(scores), self._bank.now(), is_wanted)
            named = ((found[source], score) for source, score in scores.items() if source in found)
            items = [item._replace(score=score) for item, score in named]
            items = [item for item in items if item.name.namespace[: len(prefix)] == prefix]
            if len(items) >= count or len(hits) < asked:
                break
        return items


def _parse_name(source: str) -> ItemName:
    labels, _, key = source.removeprefix(SCHEME).partition("..")
    return ItemName(tuple(labels.split(".")), key)


def _first_pieces_below(prefix: Namespace) -> tuple[Condition, ...]:
    """Return the conditions for the first pieces of all items below a namespace, by whole labels."""
    start = SCHEME + "".join(f"{label}." for label in prefix)
    return *starts_with("source", start), equals("position", 0)


def _id(source: str, position: int) -> str:
    return derived_id("item", source, str(position))


def _namespace_tag(prefix: Namespace) -> str:
    """Return the index term of a namespace, a word that no text contains."""
    return derived_id("namespace", *prefix)


def _item_from_row(row: Sequence[str], now: datetime, is_wanted: Wanted | None = None) -> Item | None:
    """Return the item of a row; None when it is not wanted, has expired, or is a text of such a name."""
    source, extra, created, updated = row
    held = json.loads(extra)
    value = held.get("value")
    if not isinstance(value, dict) or ".." not in source or (is_wanted and not is_wanted(value)):
        return None
    expires = from_text(held["expires"]) if "expires" in held else None
    if expires is not None and expires <= now:
        return None
    times = from_text(created), from_text(updated or created)
    return Item(_parse_name(source), value, *times, None, held.get("ttl_minutes"), expires)


def _load_items(
    reader: Reader, sources: Sequence[str], now: datetime, is_wanted: Wanted | None = None
) -> dict[str, Item]:
    rows = reader.select_fields(Document, _FIELDS, one_of("id", [_id(source, 0) for source in sources]))
    items = ((row[0], _item_from_row(row, now, is_wanted)) for row in rows)
    return {source: item for source, item in items if item is not None}


def _build_pieces(change: ItemChange, value: dict[str, object], now: datetime) -> list[Document]:
    source, namespace = change.name.source, change.name.namespace
    tags = tuple(_namespace_tag(namespace[:depth]) for depth in range(len(namespace) + 1))
    extra: dict[str, object] = {"value": value}
    if change.ttl_minutes is not None:
        tags = (*tags, _MORTAL)
        extra["ttl_minutes"] = change.ttl_minutes
        extra["expires"] = to_text(now + timedelta(minutes=change.ttl_minutes))
    texts = [str(without_secrets(text, is_exact=True)) for text in change.texts] or [""]
    return [
        Document(
            id=_id(source, place),
            source=source,
            position=place,
            text=text,
            date=now,
            tags=tags,
            created=now,
            extra=extra if place == 0 else {},
        )
        for place, text in enumerate(texts)
    ]


MEMORIES = "memories:"
# About the 480 tokens that an embedder reads.
_PIECE = 2_000


class MemoryFile(NamedTuple):
    """A file by its path below `/memories`, and its size."""

    path: str
    size_bytes: int

    @property
    def id(self) -> str:
        """Return the id of its first piece's record, which does not reveal its name."""
        return derived_id("memory file", self.path, "0")


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
                path = f"{new}{piece.source.removeprefix(MEMORIES)[len(old) :]}"
                place = derived_id("memory file", path, str(piece.position))
                moved.append(replace(piece, id=place, source=f"{MEMORIES}{path}", heading=path))
                writer.remove(Document, piece.id, "rename")
                writer.put(moved[-1], "rename")
        return _group_files((piece.source, piece.text) for piece in moved)


def _below_folder(folder: str) -> tuple[Condition, ...]:
    """Return the conditions for all pieces below a folder."""
    return starts_with("source", f"{MEMORIES}{folder}/" if folder else MEMORIES)


def _group_files(pieces: Iterable[Sequence[str]]) -> list[MemoryFile]:
    """Return the files of pieces, each a name and a text, ordered by name."""
    return [
        MemoryFile(source.removeprefix(MEMORIES), sum(len(text.encode("utf-8")) for _, text in parts))
        for source, parts in groupby(pieces, key=lambda piece: piece[0])
    ]


def _pieces_of(reader: Reader, path: str) -> list[Document]:
    return reader.select(Document, equals("source", f"{MEMORIES}{path}"), order=("position",))


def _pieces_at_or_below(reader: Reader, path: str) -> list[Document]:
    below = reader.select(Document, *_below_folder(path), order=("source", "position"))
    return [*_pieces_of(reader, path), *below]


def _refuse_file_parent(reader: Reader, path: str) -> None:
    """Refuse a path that leads through a file."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        folder = "/".join(parts[:depth])
        if reader.count(Document, equals("source", f"{MEMORIES}{folder}")):
            raise StateError(f"{folder!r} is a file", hint="a file cannot contain files")


def _write(writer: Writer, path: str, text: str, now: datetime, verb: str) -> None:
    known = {piece.position: piece for piece in _pieces_of(writer, path)}
    pieces, line = list[Document](), 1
    for place, part in enumerate([*_split_text(text)] or [""]):
        # The first piece has the time of the file's last change, the others that of their own.
        is_same = place > 0 and place in known and known[place].text == part
        piece = Document(
            id=derived_id("memory file", path, str(place)),
            source=f"{MEMORIES}{path}",
            position=place,
            heading=path,
            text=part,
            date=known[place].date if is_same else now,
            line=line,
            created=now,
        )
        pieces.append(piece)
        line += part.count("\n")
    replace_documents(writer, f"{MEMORIES}{path}", pieces, verb)


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
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(text)} characters, at most {MAX_CHARACTERS}")
    _refuse_surrogates("the text", text)
    return redact(text).text


def _refuse_surrogates(what: str, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} has an unpaired surrogate", hint="remove it") from None
