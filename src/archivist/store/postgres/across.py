"""Say in one statement which of many banks of a database hold the best matches: only these are asked.

It is the one statement that is not for one bank. A policy lets it see the banks that the caller named.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

from archivist.store.postgres.connection import (
    BANKS_SETTING,
    BETWEEN_BANKS,
    HalfVector,
    array_text,
    set_local,
)
from archivist.store.postgres.search import HNSW_SETTINGS
from archivist.store.postgres.words import excluded_query, filter_query, part_query, query_parts
from archivist.store.results import SearchFilter, TextQuery

if TYPE_CHECKING:
    from psycopg import Connection

# The nearest vectors of all banks that are grouped by their banks.
_NEAREST = 1_000
_BY_WORDS = """SELECT bank FROM (
    SELECT found.bank, max(ts_rank('{1,1,1,1}', found.words, ($3::tsquery[])[found.place])) AS score FROM (
        SELECT d.bank, d.words, array_position($1::text[], d.bank) AS place FROM documents d
        WHERE d.bank = ANY($1::text[]) AND d.words @@ $2::tsquery) found
    WHERE NOT found.words @@ ($4::tsquery[])[found.place]
    GROUP BY found.bank ORDER BY score DESC, found.bank LIMIT $5) by_words"""
_BY_MEANING = """SELECT bank FROM (
    SELECT near.bank, max(near.score) AS score FROM (
        SELECT v.bank, -((v.halves::halfvec({dimensions})) <#> $6) AS score FROM vectors v
        WHERE v.bank = ANY($1::text[]) AND v.dimensions = {dimensions}
        ORDER BY (v.halves::halfvec({dimensions})) <#> $6 LIMIT {nearest}) near
    GROUP BY near.bank ORDER BY score DESC, near.bank LIMIT $5) by_meaning"""


def best_banks(
    connection: Connection[Any],
    banks: Sequence[str],
    words: TextQuery,
    search_filter: SearchFilter,
    vector: Sequence[float],
    limit: int,
) -> set[str]:
    """Return the banks with the best matches by words, so many, and as many by meaning."""
    parts = query_parts(words)
    queries = [
        filter_query(bank, search_filter, *(part_query(bank, part) for part in parts)) for bank in banks
    ]
    excluded = [excluded_query(bank, search_filter) for bank in banks]
    asked = [_BY_WORDS] if parts else []
    values: list[Any] = [
        array_text(banks),
        " | ".join(queries),
        array_text(queries),
        array_text(excluded),
        limit,
    ]
    settings = {BANKS_SETTING: BETWEEN_BANKS.join(banks)}
    if any(vector):
        asked.append(_BY_MEANING.format(dimensions=len(vector), nearest=_NEAREST))
        values.append(HalfVector(pack(f"<{len(vector)}e", *vector)))
        settings |= HNSW_SETTINGS
    if not asked:
        return set(banks)
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        set_local(connection, settings)
        return {row[0] for row in connection.execute(" UNION ".join(asked).encode(), values)}
