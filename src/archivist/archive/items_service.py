"""Work on items: values of any JSON that programs keep under a namespace and a key.

An item is a text of the archive, named `langgraph:a.b..key`: its value stands with the first piece, and each
piece is one text by which the item is found. What is kept here is thus recalled, erased and shown like
everything else, and agents may write it. No label has a dot, so the first two dots end the namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads, writes
from archivist.capture.secrets import refuse_secret, without_secrets
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
# The tag of what lives for a time only.
_MORTAL = "mortal"
# No list is longer, and no bound of one larger.
_MOST = 2**31
# More hits than this nobody pages through by meaning; what comes after is not ranked.
_MOST_RANKED = 400
# A life that would be longer by less than this share is left as it is: reading should seldom write.
_LEAST_REFRESHED = 0.05

Namespace: TypeAlias = tuple[str, ...]
Value: TypeAlias = Mapping[str, object]


class ItemName(NamedTuple):
    """Where an item is."""

    namespace: Namespace
    key: str

    @property
    def source(self) -> str:
        """Return what the item is called in the archive."""
        return f"{SCHEME}{'.'.join(self.namespace)}..{self.key}"

    @property
    def id(self) -> str:
        """Return the id of the item's record, which tells nothing of its name."""
        return _id(self.source, 0)


class Item(NamedTuple):
    """A value that is kept. `score` says how well it answers a question, where one was asked."""

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
    """A value to keep, or None to let the item go. `texts` are what it is found by."""

    name: ItemName
    value: Value | None
    texts: tuple[str, ...] = ()
    ttl_minutes: float | None = None


class Items(BankService):
    """The values of programs, by namespace and key, newest first."""

    @reads(Layer.ARCHIVE)
    def get(self, names: Sequence[ItemName]) -> list[Item | None]:
        """Return the items of these names, each or None."""
        with self._bank.reading() as reader:
            found = _load_items(reader, [name.source for name in names])
        now = self._bank.now()
        items = (found.get(name.source) for name in names)
        return [item if item is not None and _is_alive(item, now) else None for item in items]

    @writes(Layer.ARCHIVE)
    def put(self, changes: Sequence[ItemChange]) -> list[ItemName]:
        """Keep or let go these values, all of them or none, and return their names."""
        self._put(changes)
        return [change.name for change in changes]

    @writes(Layer.ARCHIVE)
    def drop(self, names: Sequence[ItemName]) -> list[ItemName]:
        """Let go these values, all of them or none, and return their names."""
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
                for gone in {each.id for each in known} - {each.id for each in pieces}:
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
        """Return the items below a namespace that are wanted, the latest first.

        `holding` are pieces of JSON that a wanted value holds for certain: a quick look before a close one.
        Bounds below zero count from the end, as those of any list do.
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
        """Return the items below a namespace that answer a question, the best first, then all the others.

        An offset below zero takes as many from the end of the best; the others still fill what is missing.
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
        """Return the namespaces that hold anything, in order."""
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
        """Let items that were read live as long again as they were meant to."""
        now = self._bank.now()
        due = [item for item in items if item.ttl_minutes and _is_refresh_due(item, now)]
        if not due:
            return
        with self._bank.transaction() as writer:
            for item in due:
                first = writer.get(Document, item.id)
                if first is not None and "expires" in first.extra:
                    first.extra["expires"] = to_text(now + timedelta(minutes=item.ttl_minutes or 0))
                    writer.put(first, "refresh")

    @writes(Layer.ARCHIVE)
    def sweep(self) -> int:
        """Let go of what has outlived its time, and return how many items that were."""
        with self._bank.transaction() as writer:
            gone = [item for item in self._items_with_ttl(writer) if not _is_alive(item, self._bank.now())]
            for item in gone:
                for piece in writer.select(Document, equals("source", item.name.source)):
                    writer.remove(Document, piece.id, "expire")
        return len(gone)

    def _items_with_ttl(self, reader: Reader) -> list[Item]:
        """Return the items that live for a time only."""
        rows = reader.select_fields(
            Document, _FIELDS, *_first_pieces_below(()), contains_item("tags", _MORTAL)
        )
        return [item for row in rows if (item := _item_from_row(row)) is not None]

    def _rank_items(
        self, prefix: Namespace, text: str, count: int, is_wanted: Callable[[Value], bool] | None
    ) -> list[Item]:
        """Return the first items that answer a question, looking further while too few of them are wanted."""
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
    """Return what holds of the first pieces of all items below a namespace, by whole labels."""
    start = SCHEME + "".join(f"{label}." for label in prefix)
    return *starts_with("source", start), equals("position", 0)


def _id(source: str, position: int) -> str:
    return derived_id("item", source, str(position))


def _namespace_tag(prefix: Namespace) -> str:
    """Return the word by which the index knows what is below a namespace: one that no text holds."""
    return derived_id("namespace", *prefix)


def _item_from_row(row: Sequence[str], is_wanted: Callable[[Value], bool] | None = None) -> Item | None:
    """Return the item of a row; None when it is not wanted, or another text that goes by such a name."""
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


def _is_refresh_due(item: Item, now: datetime) -> bool:
    """Say whether a longer life is worth a write."""
    life = timedelta(minutes=item.ttl_minutes or 0)
    return item.expires is not None and now + life - item.expires >= life * _LEAST_REFRESHED


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
    """Yield rows below a namespace, the latest first; no more are read than are likely to be wanted."""
    limit, given = None if is_all or count > _MOST else count, 0
    while True:
        rows = reader.select_fields(
            Document, _FIELDS, *_first_pieces_below(prefix), order=("-date", "source"), limit=limit
        )
        yield from rows[given:]
        if limit is None or len(rows) < limit:
            return
        # Some of them had outlived their time.
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
    """Return the items between two bounds, as of a list; no more are drawn than that needs."""
    from itertools import islice

    if min(begins, ends) < 0:
        return list(items)[begins:ends]
    if begins >= ends:
        return []
    return list(islice(items, min(begins, _MOST), min(ends, _MOST)))


def as_json(value: Mapping[str, object], key: str) -> dict[str, object]:
    """Return a value as JSON has it; raise InputError when it is none."""
    try:
        plain: dict[str, object] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the value of {key!r} is no JSON: {error}", hint="texts, numbers, lists and objects are"
        ) from None
    return plain


def _clean_value(change: ItemChange) -> dict[str, object] | None:
    """Return a value as it is kept: without secrets."""
    for text in (*change.name.namespace, change.name.key):
        _check_text(text)
        refuse_secret("the item's name", text)
    kept = without_secrets(change.value, is_exact=True)
    return kept if isinstance(kept, dict) else None


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is no text", hint="half of a surrogate pair stands for nothing") from None


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
    """Make the vectors that are missing; a few that the bundled table can make meanwhile may wait."""
    from archivist.recall.service import FRESH

    embedder = bank.embedder
    if embedder is None or bank.vectors.count_unembedded() <= (
        FRESH if embedder.name.startswith("static") else 0
    ):
        return
    try:
        for _ in bank.vectors.embed_waiting():
            pass
    except EmbedderError:
        # The words can still answer.
        return
