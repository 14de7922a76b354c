"""Items: JSON values that programs store under a namespace and a key.

An item is a text of the archive, named `langgraph:a.b..key`: its first piece has the value, and each piece is
a text by which it is found. Items are therefore recalled, erased and shown like all records, and agents may
write them. Labels have no dots, so the first two dots end the namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads, writes
from archivist.capture.redaction import refuse_secret, without_secrets
from archivist.clock import from_text, to_text
from archivist.errors import EmbedderError, InputError
from archivist.ids import derived_id
from archivist.records import Document
from archivist.service import BankService
from archivist.store.filters import contains_item, equals, one_of, starts_with

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.filters import Condition
    from archivist.store.protocol import Reader

SCHEME = "langgraph:"
_FIELDS = ("source", "extra", "created", "date")
_BATCH = 400
# The tag of items with a time to live.
_MORTAL = "mortal"
# Larger bounds than islice accepts.
_MOST = 2**31
# Nobody pages further through ranked hits; items behind them are not ranked.
_MOST_RANKED = 400
# A read extends a time to live only by at least this share, so that reads seldom write.
_LEAST_REFRESHED = 0.05

Namespace: TypeAlias = tuple[str, ...]
Value: TypeAlias = Mapping[str, object]


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
            found = _load_items(reader, [name.source for name in names])
        now = self._bank.now()
        items = (found.get(name.source) for name in names)
        return [item if item is not None and _is_alive(item, now) else None for item in items]

    @writes(Layer.ARCHIVE)
    def put(self, changes: Sequence[ItemChange]) -> list[ItemName]:
        """Store or delete these values, all or none, and return their names."""
        self._put(changes)
        return [change.name for change in changes]

    @writes(Layer.ARCHIVE)
    def drop(self, names: Sequence[ItemName]) -> list[ItemName]:
        """Delete these values, all or none, and return their names."""
        self._put([ItemChange(name, None) for name in names])
        return list(names)

    def _put(self, changes: Sequence[ItemChange]) -> None:
        made = [(change, _clean_value(change)) for change in changes]
        with self._bank.transaction() as writer:
            for change, value in made:
                known = writer.select(Document, equals("source", change.name.source))
                pieces = _build_pieces(change, value, known, self._bank.now()) if value is not None else []
                for piece in pieces:
                    writer.put(piece, "keep")
                for gone in {piece.id for piece in known} - {piece.id for piece in pieces}:
                    writer.remove(Document, gone, "let go")

    @reads(Layer.ARCHIVE)
    def list_below(
        self,
        prefix: Namespace,
        *,
        is_wanted: Callable[[Value], bool] | None = None,
        fragments: Sequence[str] = (),
        limit: int = 10,
        offset: int = 0,
    ) -> list[Item]:
        """Return the wanted items below a namespace, latest first.

        `fragments` are pieces of JSON that every wanted value contains: a cheap test before parsing. Negative
        bounds count from the end, as in any list.
        """
        begins, ends = offset, offset + limit
        with self._bank.reading() as reader:
            rows = _latest_rows(reader, prefix, ends, is_all=is_wanted is not None or min(begins, ends) < 0)
            wanted = _filter_items(rows, self._bank.now(), is_wanted, fragments)
            return _slice_items(wanted, begins, ends)

    @reads(Layer.ARCHIVE)
    def search(
        self,
        prefix: Namespace,
        text: str,
        *,
        is_wanted: Callable[[Value], bool] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[Item]:
        """Return the items below a namespace that answer a question, best first, then all others.

        A negative offset counts from the end of the ranked items; the others still fill up the page.
        """
        if limit <= 0:
            return []
        begins, ends = max(0, offset), max(0, offset + limit)
        _embed_missing(self._bank)
        best = self._rank_items(prefix, text, ends if offset >= 0 else _MOST_RANKED, is_wanted)
        found = best[begins:ends]
        missing = limit - len(found)
        if not missing:
            return found
        seen = {item.name for item in best}
        begins = max(0, begins - len(best))
        with self._bank.reading() as reader:
            count = begins + missing + len(seen)
            rows = _latest_rows(reader, prefix, count, is_all=is_wanted is not None)
            others = (
                item for item in _filter_items(rows, self._bank.now(), is_wanted, ()) if item.name not in seen
            )
            return found + _slice_items(others, begins, begins + missing)

    @reads(Layer.ARCHIVE)
    def namespaces(self) -> list[Namespace]:
        """Return the namespaces that have items, in order."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(Document, ("source",), *_first_pieces_below(()))
            expired = {
                item.name.source
                for item in self._items_with_ttl(reader)
                if not _is_alive(item, self._bank.now())
            }
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
            gone = [item for item in self._items_with_ttl(writer) if not _is_alive(item, self._bank.now())]
            for item in gone:
                for piece in writer.select(Document, equals("source", item.name.source)):
                    writer.remove(Document, piece.id, "expire")
        return len(gone)

    def _items_with_ttl(self, reader: Reader) -> list[Item]:
        """Return the items with a time to live."""
        rows = reader.select_fields(
            Document, _FIELDS, *_first_pieces_below(()), contains_item("tags", _MORTAL)
        )
        return [item for row in rows if (item := _item_from_row(row)) is not None]

    def _rank_items(
        self, prefix: Namespace, text: str, count: int, is_wanted: Callable[[Value], bool] | None
    ) -> list[Item]:
        """Return the first wanted items that answer a question; asks for more hits while too few."""
        from archivist.recall.query import Query

        now = self._bank.now()
        asked = min(_MOST_RANKED, count * 2 + 8)
        while True:
            query = Query(
                text=text,
                kinds=("document",),
                tags=(_namespace_tag(prefix),),
                limit=asked,
                preset="relevance",
            )
            hits = self._bank.recall(query).hits
            with self._bank.reading() as reader:
                sources = reader.records("document", [hit.id for hit in hits])
                scores: dict[str, float] = {}
                for hit in hits:
                    if hit.id in sources:
                        scores.setdefault(sources[hit.id].source, hit.score)
                found = _load_items(reader, list(scores))
            items = [
                item._replace(score=score)
                for source, score in scores.items()
                if (item := found.get(source)) is not None
                and item.name.namespace[: len(prefix)] == prefix
                and _is_alive(item, now)
                and (is_wanted is None or is_wanted(item.value))
            ]
            if len(items) >= count or len(hits) < asked or asked >= _MOST_RANKED:
                return items
            asked = min(_MOST_RANKED, asked * 4)


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


def _item_from_row(row: Sequence[str], is_wanted: Callable[[Value], bool] | None = None) -> Item | None:
    """Return the item of a row; None when it is not wanted, or a text that only has such a name."""
    source, extra, created, updated = row
    held = json.loads(extra)
    value = held.get("value")
    if not isinstance(value, dict) or ".." not in source or (is_wanted and not is_wanted(value)):
        return None
    expires = from_text(held["expires"]) if "expires" in held else None
    times = from_text(created), from_text(updated or created)
    return Item(_parse_name(source), value, *times, None, held.get("ttl_minutes"), expires)


def _is_alive(item: Item, now: datetime) -> bool:
    return item.expires is None or item.expires > now


def _load_items(reader: Reader, sources: Sequence[str]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for start in range(0, len(sources), _BATCH):
        ids = [_id(source, 0) for source in sources[start : start + _BATCH]]
        for row in reader.select_fields(Document, _FIELDS, one_of("id", ids)):
            item = _item_from_row(row)
            if item is not None:
                found[row[0]] = item
    return found


def _latest_rows(reader: Reader, prefix: Namespace, count: int, *, is_all: bool) -> Iterator[Sequence[str]]:
    """Yield rows below a namespace, latest first; no more are read than are likely needed."""
    limit, given = None if is_all or count > _MOST else count, 0
    while True:
        rows = reader.select_fields(
            Document, _FIELDS, *_first_pieces_below(prefix), order=("-date", "source"), limit=limit
        )
        yield from rows[given:]
        if limit is None or len(rows) < limit:
            return
        # Some of them had expired.
        limit, given = limit * 4, len(rows)


def _filter_items(
    rows: Iterable[Sequence[str]],
    now: datetime,
    is_wanted: Callable[[Value], bool] | None,
    holding: Sequence[str],
) -> Iterator[Item]:
    for row in rows:
        if holding and not all(piece in row[1] for piece in holding):
            continue
        item = _item_from_row(row, is_wanted)
        if item is not None and _is_alive(item, now):
            yield item


def _slice_items(items: Iterator[Item], begins: int, ends: int) -> list[Item]:
    """Return a slice of items, drawing no more than needed."""
    from itertools import islice

    if min(begins, ends) < 0:
        return list(items)[begins:ends]
    if begins >= ends:
        return []
    return list(islice(items, min(begins, _MOST), min(ends, _MOST)))


def _clean_value(change: ItemChange) -> dict[str, object] | None:
    """Return a value as it is stored, without secrets; None to delete it."""
    for text in (*change.name.namespace, change.name.key):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"{text!r} is not valid text", hint="it has an unpaired surrogate") from None
        refuse_secret("the item's name", text)
    kept = without_secrets(change.value, is_exact=True)
    return kept if isinstance(kept, dict) else None


def _build_pieces(
    change: ItemChange, value: dict[str, object], known: Sequence[Document], now: datetime
) -> list[Document]:
    source = change.name.source
    namespace = change.name.namespace
    tags = tuple(_namespace_tag(namespace[:depth]) for depth in range(len(namespace) + 1))
    first = next((each for each in known if each.position == 0), None)
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
            created=first.created if first else now,
            extra=extra if place == 0 else {},
        )
        for place, text in enumerate(texts)
    ]


def _embed_missing(bank: Bank) -> None:
    """Make the missing vectors; the bundled embedder makes a few of them while it searches."""
    from archivist.recall.results import FRESH

    embedder = bank.embedder
    if embedder is None:
        return
    if bank.vectors.count_unembedded() <= (FRESH if embedder.name.startswith("static") else 0):
        return
    try:
        for _ in bank.vectors.embed_waiting():
            pass
    except EmbedderError:
        # The search by words still works.
        return
