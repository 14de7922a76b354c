"""Delete for good, and measure what a bank holds: what is the same in every SQL engine."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from archivist.records import Brief, Episode, Lesson, Verdict
from archivist.records.kinds import kind_of, record_types
from archivist.records.plain import types_of
from archivist.store.erasure import ErasureQuery, payload_mentions, redact_json_text
from archivist.store.ledger import ERASED_KIND, RECEIPT_KIND
from archivist.store.results import Sizes, split_batches
from archivist.store.rows import mapping_for
from archivist.store.sql import BATCH, marks
from archivist.store.sql_reader import Reader
from archivist.store.sql_writer import Writer

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


class Eraser(Writer):
    """A transaction that can also delete what a bank otherwise keeps forever."""

    @abstractmethod
    def drop_vectors(self, places: Sequence[int]) -> None:
        """Delete the vectors of these documents; the documents that stay are embedded again."""

    @abstractmethod
    def vector_count(self, places: Sequence[int]) -> int:
        """Count the vectors at these places, of any embedder."""

    @abstractmethod
    def count_tombstones(self) -> int:
        """Count the marks of deleted documents whose words the text index still holds."""

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record, and the stored responses and messages, which could quote it."""
        for table in ("answers", "messages"):
            self.execute(f"DELETE FROM {table} WHERE bank = :bank")
        return super().remove(record, record_id, verb)

    def record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        """Yield the id of each record with all of its texts."""
        columns = ", ".join(_text_columns(record))
        table = mapping_for(record).table
        sql = f"SELECT id, concat_ws(?, id, {columns}) FROM {table} WHERE bank = :bank"
        return self._stream(sql, (_SEPARATOR,))

    def other_texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield table, key and texts of each row beside the records and the ledger."""
        for table, key, columns in _OTHER_TEXTS:
            sql = f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE bank = :bank"
            for name, *texts in self._stream(sql):
                yield table, name, tuple(texts)

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Delete a text from the rows beside the records; return the number of rows changed by table."""
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
        """Delete payloads; their entries stay in the chain and show as erased, by an entry of their own."""
        sql = "DELETE FROM ledger_payloads WHERE bank = :bank AND seq = ?"
        self.execute_many(sql, [(seq,) for seq in entries])
        if entries:
            self.append_entry("erase", ERASED_KIND, "", {"entries": list(entries)})
        return len(entries)

    def forget_run(self, run: str) -> None:
        """Take a run out of the queue and off the files that held it; those files are not read again."""
        self.execute("DELETE FROM pending WHERE bank = :bank AND run = ?", (run,))
        test = self._dialect.contains_item.format("runs")
        sql = f"SELECT digest, runs FROM captured_files WHERE bank = :bank AND {test}"
        for digest, runs in self.execute(sql, (self._dialect.item(run),)).fetchall():
            self.mark_file_captured(digest, [other for other in json.loads(runs) if other != run])

    def forget_tally(self, lesson: str) -> None:
        """Delete the counts of a lesson that is gone."""
        self.execute("DELETE FROM tallies WHERE bank = :bank AND lesson = ?", (lesson,))

    def drop_orphan_speakers(self) -> None:
        """Delete the speakers of whom no document is left."""
        self.execute(
            "DELETE FROM speakers WHERE bank = :bank AND name NOT IN"
            " (SELECT speaker FROM documents WHERE bank = :bank)"
        )

    def find_mentions(self, what: ErasureQuery) -> dict[str, list[str]]:
        """Return the ids of the records that contain a text, by kind."""
        return {
            kind_of(record): [record_id for record_id, text in self.record_texts(record) if what.is_in(text)]
            for record in record_types()
        }

    def texts_still_stored(self, texts: Iterable[str]) -> set[str]:
        """Return which of these texts some record still contains."""
        wanted = {text: text.lower() for text in texts}
        found: set[str] = set()
        for record in record_types():
            for _, stored in self.record_texts(record):
                lowered = stored.lower()
                found |= {text for text, low in wanted.items() if low in lowered}
        return found

    def count_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Count the rows outside of the records that contain a text, by table."""
        found = Counter(
            table for table, _, texts in self.other_texts() if any(what.is_in(text) for text in texts)
        )
        for entry, _ in self.ledger(with_payloads=False):
            texts = (entry.actor.name, entry.actor.role, entry.verb, entry.record)
            found["ledger"] += any(what.is_in(text) for text in texts)
        found["ledger_payloads"] = len(self.payloads_mentioning(what))
        return dict(+found)

    def payloads_mentioning(self, what: ErasureQuery) -> list[int]:
        """Return the ledger entries whose payloads contain a text in a text field."""
        return [
            entry.seq
            for entry, payload in self.ledger()
            if payload is not None and what.is_in(payload) and payload_mentions(entry.kind, payload, what)
        ]

    def payloads_of(self, kind: str, record: str) -> list[int]:
        """Return the ledger entries of one record that have a payload."""
        found = self.ledger(record_id=record, kind=kind)
        return [entry.seq for entry, payload in found if payload is not None]

    def record_receipt(self, name: str, content: Mapping[str, object]) -> None:
        """Enter in the ledger that and how something was erased."""
        self.append_entry("erase", RECEIPT_KIND, name, content)

    def was_erased(self, name: str) -> bool:
        """Say whether a receipt names this record."""
        receipts = (json.loads(payload or "{}") for _, payload in self.ledger(kind=RECEIPT_KIND))
        return any(name in receipt.get("asked", ()) for receipt in receipts)


def measure_bank(reader: Reader) -> Sizes:
    """Return how large a bank is, and how many bytes of text the records of each kind hold."""
    texts: dict[str, Sequence[str]] = {"events": _EVENT_TEXTS, "ledger_payloads": ("payload",)}
    texts |= {
        mapping_for(record).table: _text_columns(record) for record in (Lesson, Episode, Brief, Verdict)
    }
    kinds = {
        table.replace("_", " "): int(
            reader.query_value(f"SELECT sum({_sum_bytes(columns)}) FROM {table} WHERE bank = :bank") or 0
        )
        for table, columns in texts.items()
    }
    # Without a file of its own: the texts and about as much again for the index and the vectors.
    total, free = reader.file_sizes() or (2 * sum(kinds.values()), 0)
    return Sizes(total, free, kinds)


def measure_runs(reader: Reader, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
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
