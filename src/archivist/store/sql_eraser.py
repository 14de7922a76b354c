"""Delete for good, and measure what a bank holds: what is the same in every SQL engine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from archivist.records import Brief, Episode, Lesson, Verdict
from archivist.records.plain import types_of
from archivist.store.erasure import ErasureQuery, redact_json_text
from archivist.store.ledger import ERASED_KIND
from archivist.store.protocol import Eraser
from archivist.store.results import split_batches
from archivist.store.rows import mapping_for
from archivist.store.sql_reader import BATCH, SqlReader, marks
from archivist.store.sql_writer import SqlWriter

# What is kept beside the records and could contain their texts: table, key, columns.
_OTHER_TEXTS = (
    ("settings", "name", ("value",)),
    ("speakers", "name", ("name",)),
    ("pending", "run", ("run", "holder", "error")),
    ("captured_files", "digest", ("runs",)),
    ("event_sums", "run", ("run",)),
    ("tallies", "lesson", ("lesson",)),
    ("answers", "id", ("id", "body")),
    ("messages", "id", ("data",)),
    ("documents", "id", ("record", "speaker", "thread", "superseded_by")),
    ("embedders", "name", ("name",)),
)
# Stands between the texts of a record.
_SEPARATOR = "\x1f"
# Roughly the size of a row besides its texts.
_ROW_BYTES = 200
_EVENT_TEXTS = ("text", "output", "target", "findings", "extra")


class SqlEraser(SqlWriter, Eraser):
    """A transaction that can also delete for good; `store.protocol` describes the methods."""

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record, and the stored responses and messages, which could quote it."""
        for table in ("answers", "messages"):
            self.execute(f"DELETE FROM {table} WHERE bank = :bank")
        return super().remove(record, record_id, verb)

    def record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        columns = ", ".join(_text_columns(record))
        table = mapping_for(record).table
        sql = f"SELECT id, concat_ws(?, id, {columns}) FROM {table} WHERE bank = :bank"
        return iter(self._stream(sql, (_SEPARATOR,)))

    def other_texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for table, key, columns in _OTHER_TEXTS:
            sql = f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE bank = :bank"
            for name, *texts in self._stream(sql):
                yield table, name, tuple(texts)

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        changed: dict[str, int] = {}
        keys = {table: key for table, key, _ in _OTHER_TEXTS}
        found = [row for row in self.other_texts() if any(what.is_in(text) for text in row[2])]
        for table, name, texts in found:
            # The index follows the records, and an embedder is named by the configuration.
            if table in ("documents", "embedders"):
                continue
            changed[table] = changed.get(table, 0) + 1
            if table == "settings":
                self.set_setting(name, redact_json_text(texts[0], what))
            elif table == "captured_files":
                self.mark_file_captured(name, [run for run in json.loads(texts[0]) if not what.is_in(run)])
            elif table == "pending" and not what.is_in(name):
                error = what.redact_text(texts[2])
                sql = "UPDATE pending SET error = ?, holder = '' WHERE bank = :bank AND run = ?"
                self.execute(sql, (error, name))
            else:
                self.execute(f"DELETE FROM {table} WHERE bank = :bank AND {keys[table]} = ?", (name,))
        return changed

    def erase_payloads(self, entries: Sequence[int]) -> int:
        sql = "DELETE FROM ledger_payloads WHERE bank = :bank AND seq = ?"
        self.execute_many(sql, [(seq,) for seq in entries])
        if entries:
            self.append_entry("erase", ERASED_KIND, "", {"entries": list(entries)})
        return len(entries)

    def forget_run(self, run: str) -> None:
        self.execute("DELETE FROM pending WHERE bank = :bank AND run = ?", (run,))
        test, value = self._dialect.contains_item("runs", run)
        sql = f"SELECT digest, runs FROM captured_files WHERE bank = :bank AND {test}"
        for digest, runs in self.execute(sql, (value,)).fetchall():
            self.mark_file_captured(digest, [other for other in json.loads(runs) if other != run])

    def forget_tally(self, lesson: str) -> None:
        self.execute("DELETE FROM tallies WHERE bank = :bank AND lesson = ?", (lesson,))

    def drop_orphan_speakers(self) -> None:
        self.execute(
            "DELETE FROM speakers WHERE bank = :bank AND name NOT IN"
            " (SELECT speaker FROM documents WHERE bank = :bank)"
        )


def measure_texts(reader: SqlReader) -> dict[str, int]:
    """Return how many bytes of text the records of each kind hold."""
    texts: dict[str, Sequence[str]] = {"events": _EVENT_TEXTS, "ledger_payloads": ("payload",)}
    texts |= {
        mapping_for(record).table: _text_columns(record) for record in (Lesson, Episode, Brief, Verdict)
    }
    return {
        table.replace("_", " "): int(
            reader.query_value(f"SELECT sum({_sum_bytes(columns)}) FROM {table} WHERE bank = :bank") or 0
        )
        for table, columns in texts.items()
    }


def measure_runs(reader: SqlReader, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the number and size of each run's events, without the excluded ones."""
    size = _sum_bytes(_EVENT_TEXTS)
    sql = f"SELECT run, count(*), sum({size}) FROM events WHERE bank = :bank"
    found = {run: (int(count), int(total)) for run, count, total in reader.execute(f"{sql} GROUP BY run")}
    for batch in split_batches(sorted(set(excluded)), BATCH):
        rows = reader.execute(f"{sql} AND id IN ({marks(batch)}) GROUP BY run", batch)
        for run, count, total in rows:
            found[run] = (found[run][0] - int(count), found[run][1] - int(total))
    return {run: sizes for run, sizes in found.items() if sizes[0]}


def _sum_bytes(columns: Sequence[str]) -> str:
    return " + ".join([*(f"coalesce(octet_length({name}), 0)" for name in columns), str(_ROW_BYTES)])


def _text_columns(record: Any) -> list[str]:
    """Return the fields that hold somebody's words: no numbers, times or closed words."""
    closed = (int, float, bool, datetime, int | None, float | None, bool | None, datetime | None)
    return [
        name
        for name, kind in types_of(record).items()
        if kind not in closed and not (isinstance(kind, type) and issubclass(kind, StrEnum))
    ]
