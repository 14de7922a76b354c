"""Read and search a PostgreSQL bank: by words through a GIN index and BM25, by meaning through pgvector.

The plan is ours. Up to `EXACT` vectors are compared one by one; above, the HNSW index is followed until
enough rows have passed the filter. The planner alone would return wrong answers to filtered searches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import log
from struct import pack
from typing import Any

from archivist.records.kinds import record_type
from archivist.records.plain import canonical_json
from archivist.store.postgres.connection import BankSession, HalfVector, array_text
from archivist.store.postgres.schema import NULLABLE
from archivist.store.postgres.words import (
    excluded_query,
    filter_query,
    marked_words,
    part_query,
    query_parts,
    split_words,
)
from archivist.store.results import (
    IndexedDocument,
    IndexHit,
    MatchCounts,
    SearchFilter,
    TextQuery,
    range_conditions,
)
from archivist.store.rows import mapping_for
from archivist.store.sql import SqlDialect, SqlTable
from archivist.store.sql_reader import Reader

# Rows of a bank, or of the part that a filter allows, that are compared one by one; measured in
# tests/store/test_postgres_search.py and bench/scale.py.
EXACT = 20_000
# The most that pgvector allows. In a bank of 40,000 that shares its partition with 60,000 other vectors, 400
# found .94 of the exact ten in 23 ms, 800 .97 in 25 and 1,000 .98 in 29 (bench/scale_postgres.py).
EF_SEARCH = 1_000
HNSW_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(EF_SEARCH),
    "hnsw.max_scan_tuples": "200000",
}
_SAMPLE = 80
_COUNTED = 20_000
_DOCUMENT = (
    "SELECT id, kind, record, time, cycle, importance, speaker, thread, position, superseded_by, is_hidden,"
    " length FROM documents WHERE bank = :bank"
)
# How often a word occurs, from `ts_rank` of that word alone. The rank of n occurrences is the sum of 1/k² up
# to n, divided by π²/6; what is missing to 1 is about 1 / (n + ½) of π²/6. Counting positions in SQL would
# take every tsvector apart.
_TIMES = "round(0.607927102 / (1 - ts_rank('{1,1,1,1}', d.words, ?::tsquery)::float8) - 0.5)"


# Elements of a list are compared as they are spelt: a text with an escaped NUL cannot be taken out of JSON.
_DIALECT = SqlDialect(
    is_same="{} IS NOT DISTINCT FROM ?",
    contains_text="strpos({}, ?) > 0",
    contains_item="EXISTS (SELECT 1 FROM json_array_elements({}::json) e WHERE e::text = ?)",
    item=canonical_json,
    # One statement for any number of values is prepared once.
    one_of=lambda name, values: (f"{name} = ANY(?)", [array_text(values)]),
    usual_order=("id",),
    nullable=NULLABLE,
)


class SearchCache(MatchCounts):
    """What a process keeps of a bank's index between searches."""

    has_vectors = False


class PostgresReader(Reader):
    """A view of the bank within a transaction."""

    _dialect = _DIALECT

    def __init__(self, session: BankSession, cache: SearchCache) -> None:
        self.value_cache: dict[Hashable, tuple[int, Any]] | None = {}
        self._session = session
        self._cache = cache
        self._embedders: dict[str, tuple[int, int] | None] = {}

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._session.execute(sql, values)

    def _stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        return self._session.stream(sql, values)

    def _query_each(self, sql: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        if keys:
            yield from self.execute(sql.replace("IN ({})", "= ANY(?)"), (array_text(keys), *values))

    def last_entry(self) -> int:
        return self._session.ledger_head[0]

    def last_message(self) -> int:
        return int(self.query_value("SELECT last_message FROM banks WHERE bank = :bank"))

    def file_sizes(self) -> None:
        return None

    def _table(self, record: type[Any] | str) -> SqlTable:
        how = mapping_for(record_type(record) if isinstance(record, str) else record)
        return SqlTable(_DIALECT, how.table, how.columns)

    def document_count(self) -> int:
        return self._statistics()[0]

    def _statistics(self) -> tuple[int, int]:
        """Return the number of documents, and of all their words and scopes."""
        row = self._session.index_sizes
        row = row or self.execute("SELECT documents, words FROM banks WHERE bank = :bank").fetchone()
        self._cache.drop_stale_counts(int(row[0]))
        return int(row[0]), int(row[1])

    def count_documents_with(self, words: Sequence[str], *, at_most: int) -> list[int]:
        split = [tuple(split_words(word)) for word in words]
        queries = [part_query(self._session.bank, (stems, False)) for stems in split if stems]
        counts = iter(self._count_matches(queries, at_most))
        return [next(counts) if stems else 0 for stems in split]

    def _count_matches(self, queries: Sequence[str], at_most: int) -> list[int]:
        """Return how many documents match each query, counting no further than `at_most`."""
        known = self._cache.match_counts
        unknown = []
        for query in dict.fromkeys(queries):
            count, counted_to = known.get(query, (0, 0))
            if not count < counted_to and at_most > counted_to:
                unknown.append(query)
        counts: dict[str, int] = {}
        if unknown:
            rows = self.execute(
                "SELECT q.number, (SELECT count(*) FROM (SELECT 1 FROM documents d WHERE d.bank = :bank"
                " AND d.words @@ q.query LIMIT ?) found)"
                " FROM unnest(?::tsquery[]) WITH ORDINALITY q (query, number)",
                (at_most, array_text(unknown)),
            )
            for number, count in rows:
                query = unknown[number - 1]
                counts[query] = int(count)
                # What no document contains yet may be written next; otherwise one more or less is no matter.
                if count:
                    known[query] = int(count), at_most
        return [counts[query] if query in counts else min(known[query][0], at_most) for query in queries]

    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        parts, bank = query_parts(words), self._session.bank
        if not parts or limit < 1:
            return []
        documents, total = self._statistics()
        counts = self._count_matches([part_query(bank, part) for part in parts], _COUNTED)
        found = {part: count for part, count in zip(parts, counts, strict=True) if count}
        if not found:
            return []
        # BM25 with the constants of FTS5, whose weight of a word is never below a small number.
        score, times, weights, values = [], [], [], []
        for number, (part, count) in enumerate(found.items()):
            weights.append(max(log((documents - count + 0.5) / (count + 0.5)), 1e-6) * 2.2)
            score.append(f"?::float8 * t{number} / (t{number} + slack)")
            test, more = _count_times(bank, part)
            times.append(f"{test} AS t{number}")
            values += more
        query = filter_query(bank, search_filter, *(part_query(bank, part) for part in found))
        ranges, bounds = _range_conditions(search_filter)
        # In the index it would be looked up for each document that has one of the words.
        if excluded := excluded_query(bank, search_filter):
            ranges, bounds = f" AND NOT d.words @@ ?::tsquery{ranges}", [excluded, *bounds]
        rows = self.execute(
            f"SELECT id, {' + '.join(score)} AS score FROM (SELECT d.id,"
            f" 0.3 + 0.9 * d.size / ?::float8 AS slack, {', '.join(times)} FROM documents d"
            # Without the offset the planner would count the words twice.
            f" WHERE d.bank = :bank AND d.words @@ ?::tsquery{ranges} OFFSET 0) found"
            " ORDER BY score DESC, id LIMIT ?",
            (*weights, max(total, 1) / max(documents, 1), *values, query, *bounds, limit),
        )
        return [IndexHit(place, score) for place, score in rows]

    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        known = self._known_vectors(embedder)
        if known is None or not any(query) or limit < 1:
            return []
        number, dimensions = known
        is_filtered = bool(search_filter.groups) or search_filter.has_ranges
        source, values = "vectors v WHERE v.bank = :bank", []
        if is_filtered:
            ranges, bounds = _range_conditions(search_filter)
            source = (
                "vectors v JOIN documents d ON d.bank = v.bank AND d.id = v.id"
                f" WHERE v.bank = :bank AND d.bank = :bank AND d.words @@ ?::tsquery{ranges}"
            )
            values = [filter_query(self._session.bank, search_filter), *bounds]
        is_exact = True
        if self.document_count() > EXACT:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {source} AND v.embedder = ? LIMIT ?) found"
            is_exact = int(self.query_value(sql, *values, number, EXACT + 1)) <= EXACT
        vector = HalfVector(pack(f"<{len(query)}e", *query))
        if is_exact:
            # Added to a number the distance is none that an index knows.
            distance, more = "(v.halves <#> ?) + 0", ""
        else:
            self._follow_index(is_on=True)
            distance = f"(v.halves::halfvec({dimensions})) <#> ?"
            more = f" AND v.dimensions = {dimensions}"
        rows = self.execute(
            f"SELECT id, -distance FROM (SELECT v.id, {distance} AS distance FROM {source}"
            f" AND v.embedder = ?{more} ORDER BY distance LIMIT ?) found ORDER BY distance, id",
            (vector, *values, number, limit),
        ).fetchall()
        if not is_exact:
            self._follow_index(is_on=False)
        return [IndexHit(place, score) for place, score in rows]

    def _follow_index(self, *, is_on: bool) -> None:
        """Make the planner follow the HNSW index, and the index go on until enough rows pass the filter."""
        plans = ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")
        settings = {f"enable_{plan}": "off" if is_on else "on" for plan in plans}
        self._session.set_local(settings | HNSW_SETTINGS)

    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        known = self._known_vectors(embedder)
        if known is None or not any(query) or not places:
            return {}
        rows = self.execute(
            "SELECT id, -(halves <#> ?) FROM vectors"
            " WHERE bank = :bank AND embedder = ? AND id = ANY(?::bigint[])",
            (HalfVector(pack(f"<{len(query)}e", *query)), known[0], array_text(places)),
        )
        return dict(rows)

    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        known = self._known_vectors(embedder)
        if known is None or not any(query):
            return []
        # The same ones each time, from all over the bank.
        rows = self.execute(
            "WITH span AS (SELECT min(id) AS first, max(id) - min(id) + 1 AS length FROM vectors"
            " WHERE bank = :bank AND embedder = ?) SELECT DISTINCT near.id, near.cosine FROM span,"
            " generate_series(0, ?::bigint - 1) step, LATERAL (SELECT id, -(halves <#> ?) AS cosine"
            " FROM vectors WHERE bank = :bank AND embedder = ? AND id >= first + length * step / ?::bigint"
            " ORDER BY id LIMIT 1) near",
            (known[0], _SAMPLE, HalfVector(pack(f"<{len(query)}e", *query)), known[0], _SAMPLE),
        )
        return [cosine for _, cosine in rows]

    def stored_vectors(self, embedder: str, places: Sequence[int]) -> dict[int, bytes]:
        known = self._known_vectors(embedder)
        sql = "SELECT id, halves FROM vectors WHERE bank = :bank AND embedder = ? AND id = ANY(?::bigint[])"
        return dict(self.execute(sql, (known[0], array_text(places)))) if known else {}

    def _known_vectors(self, embedder: str) -> tuple[int, int] | None:
        return self._embedder(embedder) if self._cache.has_vectors else None

    def _embedder(self, name: str) -> tuple[int, int] | None:
        # A writer may change them, a reader sees the same ones until its end: a recall asks seven times.
        if self.value_cache is None or name not in self._embedders:
            self._embedders[name] = super()._embedder(name)
        return self._embedders[name]

    def _query_unembedded(self, columns: str, embedder: str, limit: int) -> list[Any]:
        """Without the extension no vector is missing: none can be stored."""
        return super()._query_unembedded(columns, embedder, limit) if self._cache.has_vectors else []

    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        if not places:
            return {}
        rows = self.execute(f"{_DOCUMENT} AND id = ANY(?::bigint[])", (array_text(places),))
        return {row[0]: IndexedDocument._make(row) for row in rows}

    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        if not positions:
            return []
        rows = self.execute(
            f"{_DOCUMENT} AND (thread, position) IN"
            " (SELECT * FROM unnest(?::text[], ?::bigint[])) AND thread <> ''",
            [array_text(column) for column in zip(*dict.fromkeys(positions), strict=True)],
        )
        return [IndexedDocument._make(row) for row in rows]

    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        if not places:
            return []
        ranges, bounds = _range_conditions(search_filter)
        scope = filter_query(self._session.bank, search_filter)
        rows = self.execute(
            "SELECT d.id FROM documents d WHERE d.bank = :bank AND d.id = ANY(?::bigint[])"
            f" AND d.words @@ ?::tsquery{ranges}",
            (array_text(places), scope, *bounds),
        )
        found = {place for (place,) in rows}
        return [place for place in places if place in found]


def _count_times(bank: str, part: tuple[tuple[str, ...], bool]) -> tuple[str, list[Any]]:
    """Return the expression for how often a part of a query occurs in `d.words`, and its values."""
    words, is_prefix = marked_words(bank, part), part[1]
    query = part_query(bank, part)
    if len(words) == 1 and not is_prefix:
        return _TIMES, [query]
    # The positions at which each word of the phrase would begin it: one that all have begins it.
    beginnings = (
        "SELECT 1 FROM unnest(d.words) w JOIN unnest(?::text[]) WITH ORDINALITY p (word, number)"
        " ON w.lexeme = p.word OR (? AND p.number = ? AND w.lexeme ^@ p.word), unnest(w.positions) at"
        " GROUP BY at - p.number HAVING count(DISTINCT p.number) = ?"
    )
    times = f"CASE WHEN d.words @@ ?::tsquery THEN (SELECT count(*) FROM ({beginnings}) b) ELSE 0 END::float8"
    return times, [query, array_text(words), is_prefix, len(words), len(words)]


def _range_conditions(search_filter: SearchFilter) -> tuple[str, list[Any]]:
    given = range_conditions(search_filter)
    return "".join(f" AND {test}" for test in given), list(given.values())
