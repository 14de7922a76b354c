"""Read and search a SQLite bank: by words through FTS5, by meaning through rows of bits."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from math import log
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from archivist.records.kinds import BY_NAME, KINDS
from archivist.store.results import (
    BLOCK,
    IndexedDocument,
    IndexHit,
    MatchCounts,
    SearchFilter,
    TextQuery,
    range_conditions,
    scope_token,
    split_batches,
)
from archivist.store.rows import mapping_for
from archivist.store.sql import BATCH, SqlDialect, SqlTable, marks, without_bank
from archivist.store.sql_reader import Reader
from archivist.store.sqlite.schema import BEGINNING

# A process that searches no vectors need not load what scans them.
if TYPE_CHECKING:
    from archivist.store.numpy_scan import Planes
    from archivist.store.vectors import BitRows

R = TypeVar("R")
# The nearest by their bits whose small integers are read, at the least; and how many halves.
_SHORTLIST = 320
_HALVES = 16
# Up to so many documents the places of a scope are listed at once.
_LISTED = 2_000
# Values that are kept until something is written.
_READ_ONCE = 5_000
# With more allowed documents it is quicker to scan all and filter the result.
_ALLOWED = 200_000
# A sample of vectors tells how similar any two texts of the bank are.
_SAMPLE = 80
_HIDDEN = "hidden"
# A scope of at most this many documents, and a twentieth of the bank, is scored by `score_bm25`; of its
# documents that contain the words the latest are scored. A word in more documents hardly matters.
_FEW = 20_000
_COUNTED, _COUNTED_OF_FEW = 601, 4_001
_LATEST = 96
WEIGHED = "weighed"
_DOCUMENT = (
    "SELECT id, kind, record, time, cycle, importance, speaker, thread, position, superseded_by, is_hidden,"
    " (SELECT sz FROM search_docsize s WHERE s.id = documents.id) FROM documents"
)


class VectorCache(MatchCounts):
    """What a long-lived process keeps of a bank's index, refreshed by the sequence number of its vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.embedder = self.dimensions = 0
        self.seq = -1
        # Read by the first call of `refresh`.
        self.rows: BitRows
        self.sample: list[bytes] = []
        self.columns: dict[str, Sequence[str]] = {}
        # For which embedder and state of the bank all this is up to date, with its number and dimensions.
        self.refreshed: tuple[str, tuple[int, int], tuple[int, int]] | None = None
        self._is_tentative = False

    def refresh(self, db: apsw.Connection, embedder: int, dimensions: int) -> None:
        """Read the blocks that have changed since the last call."""
        from archivist.store.vectors import BitRows

        row = db.execute("SELECT max(seq) FROM vector_changes").fetchone()
        seq = int(row[0] or 0) if row else 0
        # What was read within a transaction may have been rolled back, and its numbers given again.
        if (embedder, dimensions) != (self.embedder, self.dimensions) or self._is_tentative:
            self.embedder, self.dimensions = embedder, dimensions
            self.seq, self.rows = -1, BitRows(dimensions)
        self._is_tentative = seq != self.seq and db.txn_state("main") == apsw.SQLITE_TXN_WRITE
        if seq == self.seq:
            return
        self.rows.replace_blocks(
            (int(block), bytes(bits))
            for block, bits in db.execute(
                "SELECT c.id & 0xFFFFFFFF, b.bits FROM vector_changes c JOIN vector_blocks b USING (id)"
                " WHERE c.seq > ? AND c.id >> 32 = ?",
                (self.seq, embedder),
            )
        )
        self.seq = seq
        self.sample = _sample_vectors(db, embedder)


_DIALECT = SqlDialect(
    is_same="{} IS ?",
    contains_text="instr({}, ?) > 0",
    contains_item="EXISTS (SELECT 1 FROM json_each({}) WHERE value = ?)",
    item=lambda value: value,
    one_of=lambda name, values: (f"{name} IN ({marks(values)})", values),
    # The plus keeps SQLite from gathering and sorting nearly all rows by an index of the field.
    without_index="+{}",
    indexed_beginnings={("lessons", "summary"): BEGINNING},
)


class SqliteReader(Reader):
    """A view of the bank within a transaction."""

    _dialect = _DIALECT

    def __init__(self, db: apsw.Connection, cache: VectorCache) -> None:
        self.value_cache: dict[Hashable, tuple[int, Any]] | None = {}
        self._db = db
        self._cache = cache
        self._read: dict[Hashable, Any] = {}
        self._read_at: tuple[int, int] = (-1, -1)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        return self._db.execute(without_bank(sql), values)

    def last_message(self) -> int:
        sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'"
        return int(self.query_value(sql))

    def file_sizes(self) -> tuple[int, int]:
        names = ("page_size", "page_count", "freelist_count")
        page, pages, free = (int(self.query_value(f"PRAGMA {name}")) for name in names)
        return page * pages, page * free

    def _table(self, record: type[Any] | str) -> SqlTable:
        """Return a record's table; for the name of a kind the database is asked for its columns, once."""
        if not isinstance(record, str):
            how = mapping_for(record)
            return SqlTable(_DIALECT, how.table, how.columns)
        table = BY_NAME[record].table
        if table not in self._cache.columns:
            rows = self._db.execute(f"PRAGMA table_info({table})")
            self._cache.columns[table] = [str(row[1]) for row in rows]
        return SqlTable(_DIALECT, table, self._cache.columns[table])

    def _read_once(self, name: Hashable, read: Callable[[], R]) -> R:
        """Return what was read before, if nothing was written since: a search asks some things several times.

        Callers must not change the value. What a transaction wrote may be rolled back.
        """
        if self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return read()
        state = self._state()
        if state != self._read_at or len(self._read) > _READ_ONCE:
            self._read, self._read_at = {}, state
        if name not in self._read:
            self._read[name] = read()
        value: R = self._read[name]
        return value

    def last_entry(self) -> int:
        return self._read_once("last entry", super().last_entry)

    def count(self, record: type[Any] | str, *conditions: Any) -> int:
        if conditions:
            return super().count(record, *conditions)
        return self._read_once(("count", record), partial(super().count, record))

    def embedder_in_use(self) -> str:
        return self._read_once("embedder", super().embedder_in_use)

    def _embedder(self, name: str) -> tuple[int, int] | None:
        return self._read_once(("embedder", name), partial(super()._embedder, name))

    def _query_unembedded(self, columns: str, embedder: str, limit: int) -> list[Any]:
        name = "unembedded", columns, embedder, limit
        return self._read_once(name, partial(super()._query_unembedded, columns, embedder, limit))

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        sql = f"SELECT name FROM speakers LIMIT {_LISTED}"
        known = self._read_once("speakers", lambda: {str(name) for (name,) in self._db.execute(sql)})
        return known.intersection(names) if len(known) < _LISTED else super().known_speakers(names)

    def document_count(self) -> int:
        def count_documents() -> int:
            count = int(self.query_value("SELECT max(id) FROM documents") or 0)
            self._cache.drop_stale_counts(count)
            return count

        return self._read_once("documents", count_documents)

    def count_documents_with(self, words: Sequence[str], *, at_most: int) -> list[int]:
        return [self._count_matches(f"text : {_quote_word(word)}", at_most) for word in words]

    def _count_matches(self, match: str, at_most: int) -> int:
        known, counted_to = self._cache.match_counts.get(match, (0, 0))
        if known < counted_to or at_most <= counted_to:
            return min(known, at_most)
        sql = "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ? LIMIT ?)"
        found = int(self._read_once((match, at_most), lambda: self.query_value(sql, match, at_most)))
        # What no document contains yet may be written next; otherwise one more or less does not matter.
        if found:
            self._cache.match_counts[match] = (found, at_most)
        return found

    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        if not words:
            return []
        match, scope = _match_expression(words, search_filter), _scope_expression(search_filter)
        documents = self.document_count()
        few = min(_FEW, documents // 20)
        if scope and self._count_matches(f"scope : ({scope})", few + 1) <= few:
            hits = self._score_latest(words, search_filter, documents, max(limit, _LATEST))
        else:
            most = self._search_common_kinds(match, scope, search_filter, documents, limit)
            hits = self._score_by_words(match, scope, search_filter, limit) if most is None else most
        # Equal scores in the order of their places, so that the same question has the same answer.
        return sorted(hits, key=lambda hit: (-hit.score, hit.place))[:limit]

    def _search_common_kinds(
        self, match: str, scope: str, search_filter: SearchFilter, documents: int, limit: int
    ) -> list[IndexHit] | None:
        """Search kinds that have most documents by filtering the best of all; None for other kinds.

        Matching the scope as well would take as long again as matching the words.
        """
        kinds = _only_kinds(search_filter)
        half = documents // 2
        if not kinds or self._count_matches(f"scope : ({scope})", half + 1) <= half:
            return None
        best = self._score_by_words(match, "", search_filter, 2 * limit)
        known = set(self.filter_places([hit.place for hit in best], search_filter))
        found = [hit for hit in best if hit.place in known]
        return found if len(found) >= limit or len(best) < 2 * limit else None

    def _score_by_words(
        self, match: str, scope: str, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        """Return the best of all, or of a scope of many documents."""
        only, scoped = "", []
        if scope:
            # Within the match itself FTS5 would weigh the scope like a word.
            only = " AND +search.rowid IN (SELECT rowid FROM search WHERE search MATCH ?)"
            scoped = [f"({match}) AND scope : ({scope})"]
        joined, values = _join_clause(search_filter)
        rows: Iterable[Any] = self._db.execute(
            f"SELECT search.rowid, bm25(search, 1.0, 0.0) AS rank FROM search{joined}"
            f" WHERE search MATCH ?{only} ORDER BY rank LIMIT ?",
            (*values, match, *scoped, limit),
        )
        return [IndexHit(place, -rank) for place, rank in rows]

    def _score_latest(
        self, words: TextQuery, search_filter: SearchFilter, documents: int, count: int
    ) -> list[IndexHit]:
        """Return those of a scope of few documents; when many contain the words, the latest of them."""
        weights = []
        for part in _match_parts(words):
            most = _COUNTED_OF_FEW if documents <= 2 * _FEW else _COUNTED
            held = self._count_matches(f"text : {part}", most)
            # The weight of a term in BM25: the rarer, the more it tells.
            weights.append(max(log((documents - held + 0.5) / (held + 0.5)), 1e-6))
        match = (
            f"({_match_expression(words, search_filter)}) AND scope : ({_scope_expression(search_filter)})"
        )
        joined, values = _join_clause(search_filter)
        rows: Iterable[Any] = self._db.execute(
            f"SELECT search.rowid, {WEIGHED}(search{', ?' * len(weights)}) FROM search{joined}"
            " WHERE search MATCH ? ORDER BY search.rowid DESC LIMIT ?",
            (*weights, *values, match, count),
        )
        return [IndexHit(place, score) for place, score in rows]

    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        from archivist.store.vectors import float16_dots

        known = self._refresh_cache(embedder) if any(query) else None
        if known is None:
            return []
        allowed = self._allowed_places(search_filter)
        in_python = self._cache.rows.scans_in_python
        # Without numpy a long shortlist is slow; for a part of the bank a shorter one is enough.
        shortlist = max(_SHORTLIST // 2 if in_python or allowed is not None else _SHORTLIST, limit * 2)
        is_filtered = allowed is None and bool(search_filter.groups or search_filter.has_ranges)
        scores = None
        if not in_python:
            read_rows = partial(self._rows_of, "vector_rows", known[0])
            count = shortlist if is_filtered else limit * 2
            scores = self._updated_planes(known[0]).score_nearest(query, count, allowed, read_rows)
        if scores is None:
            scores = self.cosines(query, embedder, self._cache.rows.nearest(query, shortlist, allowed))
        if is_filtered:
            scores = {place: scores[place] for place in self.filter_places(list(scores), search_filter)}
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: max(limit, _HALVES)]
        halves = self._rows_of("vector_halves", known[0], best[:_HALVES])
        scores |= zip(halves, float16_dots(query, list(halves.values())), strict=True)
        best.sort(key=lambda place: (-scores[place], place))
        return [IndexHit(place, scores[place]) for place in best[:limit]]

    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        known = self._refresh_cache(embedder, only_in_use=True) if any(query) else None
        if known is None:
            return {}
        if self._cache.embedder == known[0] and not self._cache.rows.scans_in_python:
            kept = self._updated_planes(known[0]).dot_products(query, places)
            if kept is not None:
                return kept
        from archivist.store.vectors import int8_dots

        rows = self._rows_of("vector_rows", known[0], places)
        return dict(zip(rows, int8_dots(query, list(rows.values())), strict=True))

    def _state(self) -> tuple[int, int]:
        """Return numbers that differ after a write by this connection or by another."""
        return self._db.data_version(), self._db.total_changes()

    def _refresh_cache(self, name: str, *, only_in_use: bool = False) -> tuple[int, int] | None:
        """Bring the cache of vectors up to date, once for each state of the bank; return the embedder."""
        cache = self._cache
        if cache.refreshed and cache.refreshed[0] == name and cache.refreshed[1] == self._state():
            return cache.refreshed[2]
        known = self._embedder(name)
        if known is not None and (not only_in_use or cache.embedder == known[0]):
            cache.refresh(self._db, *known)
            # What a transaction wrote may be rolled back.
            is_writing = self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE
            cache.refreshed = None if is_writing else (name, self._state(), known)
        return known

    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        if not any(query) or self._refresh_cache(embedder) is None:
            return []
        from archivist.store.vectors import int8_dots

        return int8_dots(query, self._cache.sample)

    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        kept: dict[int, IndexedDocument] = self._keep("documents by place")
        missing = [place for place in places if place not in kept]
        for row in self._query_each(f"{_DOCUMENT} WHERE id IN ({{}})", missing):
            kept[row[0]] = _read_document(row)
        return {place: kept[place] for place in places if place in kept}

    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        kept: dict[tuple[str, int], list[IndexedDocument]] = self._keep("documents by position")
        wanted = dict.fromkeys(positions)
        missing = [position for position in wanted if position not in kept]
        kept |= {position: [] for position in missing}
        for batch in split_batches(missing, BATCH // 2):
            pairs = ", ".join(["(?, ?)"] * len(batch))
            rows: Iterable[Any] = self._db.execute(
                f"{_DOCUMENT} WHERE (thread, position) IN (VALUES {pairs}) AND thread <> ''",
                [value for pair in batch for value in pair],
            )
            for document in map(_read_document, rows):
                kept[document.thread, document.position].append(document)
        return [document for position in wanted for document in kept[position]]

    def _keep(self, name: str) -> dict[Any, Any]:
        """Return what was read of the index since the last write, to be added to."""
        kept: dict[Any, Any] = self._read_once(name, dict)
        if len(kept) > _LISTED:
            kept.clear()
        return kept

    def stored_vectors(self, embedder: str, places: Sequence[int]) -> dict[int, bytes]:
        known = self._embedder(embedder)
        return self._rows_of("vector_halves", known[0], places) if known else {}

    def _rows_of(self, table: str, embedder: int, places: Sequence[int]) -> dict[int, bytes]:
        base = embedder << 32
        rows = self._query_each(
            f"SELECT id & 0xFFFFFFFF, row FROM {table} WHERE id IN ({{}})", [base + place for place in places]
        )
        return dict(rows)

    def _updated_planes(self, embedder: int) -> Planes:
        """Return the arrays in memory, with the small integers of the blocks that have changed."""
        planes = self._cache.rows.planes
        for number in planes.blocks_missing_int8():
            first = (embedder << 32) + number * BLOCK
            sql = "SELECT id & 0xFFFFFFFF, row FROM vector_rows WHERE id BETWEEN ? AND ?"
            found: list[Any] = self._db.execute(sql, (first, first + BLOCK - 1)).fetchall()
            planes.patch_int8(number, found)
        return planes

    def _allowed_places(self, search_filter: SearchFilter) -> Sequence[int] | None:
        """Return the places that pass a filter, or None for all, or for too many to list."""
        if not search_filter.groups and not search_filter.has_ranges:
            return None
        return self._read_once(search_filter, lambda: self._list_allowed(search_filter))

    def _list_once(self, search_filter: SearchFilter) -> frozenset[int] | None:
        def read() -> frozenset[int] | None:
            places = self._list_allowed(search_filter)
            return None if places is None else frozenset(places)

        return self._read_once(("listed", search_filter), read)

    def _list_allowed(self, search_filter: SearchFilter) -> Sequence[int] | None:
        scope = _scope_expression(search_filter)
        if scope:
            joined, values = _join_clause(search_filter)
            sql = f"SELECT search.rowid FROM search{joined} WHERE search MATCH ? LIMIT ?"
            values = [*values, f"scope : ({scope})"]
        else:
            ranges, values = _range_conditions(search_filter)
            sql = f"SELECT d.id FROM documents d WHERE {ranges} ORDER BY d.id LIMIT ?"
        found = [int(place) for (place,) in self._db.execute(sql, (*values, _ALLOWED + 1))]
        return array("q", sorted(found)) if len(found) <= _ALLOWED else None

    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        scope = _scope_expression(search_filter)
        ranges, values = _range_conditions(search_filter)
        conditions = [ranges] if ranges else []
        is_small = scope and self.document_count() <= _LISTED
        # In a small bank all are known after the first question.
        if is_small and (listed := self._list_once(search_filter)) is not None:
            return [place for place in places if place in listed]
        if kinds := _only_kinds(search_filter):
            conditions.append(f"d.kind IN ({marks(kinds)})")
            values += kinds
        elif scope:
            conditions.append("d.id IN (SELECT rowid FROM search WHERE search MATCH ? AND rowid = d.id)")
            values.append(f"scope : ({scope})")
        sql = " AND ".join(["SELECT d.id FROM documents d WHERE d.id IN ({})", *conditions])
        found = {place for (place,) in self._query_each(sql, places, *values)}
        return [place for place in places if place in found]


def _read_document(row: Any) -> IndexedDocument:
    """Return a document; FTS5 stores the number of words of each column, in seven bits a byte."""
    length = 0
    for byte in row[-1] or b"":
        length = length << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return IndexedDocument._make((*row[:-1], length))


def _quote_word(word: str) -> str:
    return '"' + word.replace('"', '""').replace("\x00", " ") + '"'


def _match_parts(words: TextQuery) -> list[str]:
    """Return the words, phrases and prefixes in FTS5's syntax."""
    parts = [_quote_word(word) for word in words.words]
    parts += [_quote_word(" ".join(phrase)) for phrase in words.phrases]
    return [*parts, *(f"{_quote_word(prefix)} *" for prefix in words.prefixes)]


def _match_expression(words: TextQuery, search_filter: SearchFilter) -> str:
    match = f"text : ({' OR '.join(_match_parts(words))})"
    left_out = (*search_filter.excluded, *(() if search_filter.with_hidden else (_HIDDEN,)))
    return f"({match}) NOT scope : ({' OR '.join(left_out)})" if left_out else match


def _scope_expression(search_filter: SearchFilter) -> str:
    return " AND ".join(f"({' OR '.join(group)})" for group in search_filter.groups)


@lru_cache(maxsize=64)
def _only_kinds(search_filter: SearchFilter) -> tuple[str, ...]:
    """Return the kinds of a filter that names nothing else; the table of documents has them in a column."""
    if len(search_filter.groups) != 1:
        return ()
    named = {scope_token("kind", kind.name): kind.name for kind in KINDS}
    kinds = tuple(named.get(token, "") for token in search_filter.groups[0])
    return () if "" in kinds else kinds


def _range_conditions(search_filter: SearchFilter) -> tuple[str, list[Any]]:
    given = range_conditions(search_filter)
    return " AND ".join(given), list(given.values())


def _join_clause(search_filter: SearchFilter) -> tuple[str, list[Any]]:
    ranges, values = _range_conditions(search_filter)
    return (f" JOIN documents d ON d.id = search.rowid AND {ranges}" if ranges else ""), values


def score_bm25(match: apsw.FTS5ExtensionApi, *weights: apsw.SQLiteValue) -> float:
    """Return BM25 of a row's text by known weights: what FTS5 does, without counting all documents."""
    length = match.column_size() * match.row_count / match.column_total_size()
    slack = 0.3 + 0.9 * length
    total = 0.0
    for phrase, weight in enumerate(weights):
        times = len(match.phrase_locations(phrase)[0])
        if times:
            total += weight * times * 2.2 / (times + slack)  # type: ignore[operator]
    return total


def _sample_vectors(db: apsw.Connection, embedder: int) -> list[bytes]:
    """Return vectors from all over the bank, the same ones each time."""
    base = embedder << 32
    row = db.execute(
        "SELECT min(id), max(id) FROM vector_rows WHERE id BETWEEN ? AND ?", (base, base + 0xFFFFFFFF)
    ).fetchone()
    if row is None or row[0] is None:
        return []
    first, last = int(row[0]), int(row[1])
    if last - first < _SAMPLE * 2:
        sql = "SELECT row FROM vector_rows WHERE id BETWEEN ? AND ? LIMIT ?"
        return [bytes(vector) for (vector,) in db.execute(sql, (first, last, _SAMPLE))]
    found = []
    for step in range(_SAMPLE):
        at = first + (last - first) * step // _SAMPLE
        row = db.execute("SELECT row FROM vector_rows WHERE id >= ? ORDER BY id LIMIT 1", (at,)).fetchone()
        if row:
            found.append(bytes(row[0]))
    return found


def block_of(embedder: int, place: int) -> tuple[int, int]:
    """Return the id of the block that holds a place's bits, and the row within it."""
    return (embedder << 32) + place // BLOCK, place % BLOCK
