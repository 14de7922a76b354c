"""Items: JSON values that programs store under a namespace and a key.

An item is a text of the archive, named `langgraph:a.b..key`: its first piece has the value, and each piece is
a text by which it is found. Items are therefore recalled, erased and shown like all records, and agents may
write them. Labels have no dots, so the first two dots end the namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads, writes
from archivist.archive.service import replace_documents
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
        made = [(change, _clean_value(change)) for change in changes]
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
        self,
        prefix: Namespace,
        *,
        is_wanted: Wanted | None = None,
        fragments: Sequence[str] = (),
        limit: int = 10,
        offset: int = 0,
    ) -> list[Item]:
        """Return the wanted items below a namespace, latest first.

        `fragments` are pieces of JSON that every wanted value contains: a cheap test before parsing. Negative
        bounds count from the end, as in any list.
        """
        ends = offset + limit
        most = ends if min(offset, ends) >= 0 else None
        return self._live_items(prefix, is_wanted, fragments, most=most)[offset:ends]

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
        if limit <= 0:
            return []
        begins, ends = max(0, offset), max(0, offset + limit)
        _embed_missing(self._bank)
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
        self,
        prefix: Namespace,
        is_wanted: Wanted | None,
        fragments: Sequence[str] = (),
        *,
        most: int | None = None,
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
                texts = (row for row in rows if all(piece in row[1] for piece in fragments))
                items = [item for row in texts if (item := _item_from_row(row, now, is_wanted)) is not None]
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
            items = [
                found[source]._replace(score=score) for source, score in scores.items() if source in found
            ]
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


def _embed_missing(bank: Bank) -> None:
    """Make the missing vectors; the bundled embedder makes a few of them while it searches."""
    from archivist.recall.results import FRESH

    embedder = bank.embedder
    if embedder is None or bank.vectors.count_unembedded() <= (
        FRESH if embedder.name.startswith("static") else 0
    ):
        return
    # Without them the search by words still works.
    with suppress(EmbedderError):
        for _ in bank.vectors.embed_waiting():
            pass
