"""Read a PostgreSQL bank: how its SQL differs from that of other engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from archivist.records.kinds import record_type
from archivist.records.plain import canonical_json
from archivist.store.postgres.connection import array_text
from archivist.store.postgres.schema import NULLABLE
from archivist.store.postgres.search import PostgresSearch
from archivist.store.rows import mapping_for


class PostgresDialect:
    """How PostgreSQL spells what SQL does not spell in one way; `store.sql_reader` describes the methods."""

    usual_order: tuple[str, ...] = ("id",)

    def order(self, table: str, name: str, *, is_descending: bool) -> str:
        order = f"{name} DESC" if is_descending else name
        # Only where it is needed: an index follows the order without these words.
        if name in NULLABLE.get(table, ()):
            order += " NULLS LAST" if is_descending else " NULLS FIRST"
        return order

    def skip_index(self, name: str) -> str:
        return name

    def is_same(self, name: str) -> str:
        return f"{name} IS NOT DISTINCT FROM ?"

    def is_one_of(self, name: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        # One statement for any number of values is prepared once.
        return f"{name} = ANY(?)", [array_text(values)]

    def contains_item(self, name: str, value: Any) -> tuple[str, Any]:
        # Elements are compared as they are spelt: a text with an escaped NUL cannot be taken out of JSON.
        test = f"EXISTS (SELECT 1 FROM json_array_elements({name}::json) e WHERE e::text = ?)"
        return test, canonical_json(value)

    def contains_text(self, name: str) -> str:
        return f"strpos({name}, ?) > 0"

    def equals_text(self, _table: str, name: str, value: Any) -> tuple[str, list[Any]]:
        return f"{name} = ?", [value]


class PostgresReader(PostgresSearch):
    """A view of the bank within a transaction; `store.protocol` describes the methods."""

    _dialect = PostgresDialect()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._session.execute(sql, values)

    def _stream(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return _Stream(self._session.stream(sql, values))

    def _query_each(self, sql: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        if keys:
            yield from self.execute(sql.replace("IN ({})", "= ANY(?)"), (array_text(keys), *values))

    def last_entry(self) -> int:
        return self._session.ledger_head[0]

    def last_message(self) -> int:
        return int(self.query_value("SELECT last_message FROM banks WHERE bank = :bank"))

    def _table_and_columns(self, record: type[Any] | str) -> tuple[str, Sequence[str]]:
        how = mapping_for(record_type(record) if isinstance(record, str) else record)
        return how.table, how.columns


class _Stream:
    """Rows that come in parts, with the methods of other results."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._rows)
