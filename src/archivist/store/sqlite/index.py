"""Keep a SQLite bank's index in step with its records: words, places, vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from archivist.cold_start import blake2s
from archivist.store.searchable import SearchDocument, build_search_document
from archivist.store.sqlite.search import block_of
from archivist.store.vectors import BLOCK, bit_width

# So many pieces of the text index, or a largest one of such a share, are left as they are.
_PIECES = 4
_LARGEST = 0.8
_PAGES_AT_ONCE = 2000
_UNWANTED = -1
_NONE_YET = 0


def index_record(db: apsw.Connection, kind: str, record: Any) -> None:
    """Bring a record's document up to date."""
    made = build_search_document(record)
    sql = "SELECT id, revision, embedder FROM documents WHERE kind = ? AND record = ?"
    row = db.execute(sql, (kind, record.id)).fetchone()
    if made is None:
        if row is not None:
            _remove_document(db, int(row[0]))
        return
    if row is None:
        place = _write_document(db, None, kind, record.id, made)
    else:
        place = _write_document(db, int(row[0]), kind, record.id, made)
        db.execute("DELETE FROM search WHERE rowid = ?", (place,))
        if row[2] > _NONE_YET and row[1] == _revision(made) and not made.is_hidden:
            # What is embedded of it has not changed: its vector still holds.
            db.execute("UPDATE documents SET embedder = ? WHERE id = ?", (row[2], place))
        else:
            remove_vectors(db, place)
    scope = " ".join((*made.scope, "hidden")) if made.is_hidden else " ".join(made.scope)
    db.execute("INSERT INTO search (rowid, text, scope) VALUES (?, ?, ?)", (place, made.text, scope))
    if made.speaker:
        db.execute("INSERT OR IGNORE INTO speakers VALUES (?)", (made.speaker,))


def unindex_record(db: apsw.Connection, kind: str, record_id: str) -> None:
    """Take a record's document out of the index, with its vectors."""
    sql = "SELECT id FROM documents WHERE kind = ? AND record = ?"
    row = db.execute(sql, (kind, record_id)).fetchone()
    if row is not None:
        _remove_document(db, int(row[0]))


def clear_index(db: apsw.Connection) -> None:
    """Empty the index; the embedders stay known."""
    db.execute(
        "INSERT INTO search (search) VALUES ('delete-all');"
        " DELETE FROM documents; DELETE FROM speakers; DELETE FROM vector_rows;"
        " DELETE FROM vector_halves; UPDATE vector_blocks SET bits = zeroblob(length(bits));"
        # Emptied under later numbers, so that every process that has read them reads them again.
        " UPDATE vector_changes SET seq = seq + (SELECT max(seq) FROM vector_changes)"
    )


def put_vectors(
    db: apsw.Connection,
    name: str,
    dimensions: int,
    rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]],
) -> int:
    """Store packed vectors of documents that have not changed meanwhile; return how many."""
    embedder = _embedder_id(db, name, dimensions)
    width = bit_width(dimensions)
    by_block: dict[int, list[tuple[int, bytes]]] = {}
    stored = 0
    for place, revision, (bits, small, halves) in rows:
        db.execute(
            "UPDATE documents SET embedder = ? WHERE id = ? AND revision = ?", (embedder, place, revision)
        )
        if not db.changes():
            continue
        key = (embedder << 32) + place
        db.execute("INSERT OR REPLACE INTO vector_rows VALUES (?, ?)", (key, small))
        db.execute("INSERT OR REPLACE INTO vector_halves VALUES (?, ?)", (key, halves))
        block, at = block_of(embedder, place)
        by_block.setdefault(block, []).append((at, bits))
        stored += 1
    for block, parts in by_block.items():
        _write_bits(db, block, width, parts)
    return stored


def use_embedder(db: apsw.Connection, name: str) -> None:
    """Search with one embedder's vectors from now on, and drop all others'."""
    row = db.execute(
        "SELECT id, is_used AND (SELECT count(*) FROM embedders) = 1 FROM embedders WHERE name = ?", (name,)
    ).fetchone()
    if row is None or row[1]:
        return
    kept = int(row[0])
    db.execute("UPDATE embedders SET is_used = (id = ?)", (kept,))
    for table in ("vector_rows", "vector_halves", "vector_blocks", "vector_changes"):
        db.execute(f"DELETE FROM {table} WHERE id >> 32 <> ?", (kept,))
    db.execute("DELETE FROM embedders WHERE id <> ?", (kept,))


def merge_segments(db: apsw.Connection) -> bool:
    """Merge pieces of the text index while more than a fifth of it lies outside of the largest one.

    Every write leaves a piece, and every word is looked for in each of them. Whether anything was done is
    told, for the work is done in parts that do not keep other writers waiting.
    """
    rows: list[Any] = db.execute("SELECT count(*) FROM search_idx GROUP BY segid").fetchall()
    sizes = [int(size) for (size,) in rows]
    if len(sizes) <= _PIECES or max(sizes) > sum(sizes) * _LARGEST:
        return False
    before = db.total_changes()
    db.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (-_PAGES_AT_ONCE,))
    # FTS5's way to say that it found nothing to merge is to change no more than its own record.
    return db.total_changes() - before > 1


def _embedder_id(db: apsw.Connection, name: str, dimensions: int) -> int:
    row = db.execute("SELECT id FROM embedders WHERE name = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0])
    # The first embedder is searched at once; a later one when it has all vectors.
    db.execute(
        "INSERT INTO embedders (name, dimensions, is_used) SELECT ?, ?, count(*) = 0 FROM embedders",
        (name, dimensions),
    )
    return db.last_insert_rowid()


def _write_document(
    db: apsw.Connection, place: int | None, kind: str, record: str, made: SearchDocument
) -> int:
    db.execute(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            place, kind, record, _revision(made), int(made.time.timestamp()) if made.time else None,
            made.cycle, made.importance, made.speaker, made.thread, made.position, made.superseded_by,
            int(made.is_hidden), _NONE_YET if made.spoken.strip() and not made.is_hidden else _UNWANTED,
        ),
    )  # fmt: skip
    return place if place is not None else db.last_insert_rowid()


def _revision(made: SearchDocument) -> int:
    """Return the text's own number: a place can be taken by another document while a vector is made."""
    return int.from_bytes(blake2s(made.spoken.encode(), digest_size=7).digest(), "big")


def _remove_document(db: apsw.Connection, place: int) -> None:
    db.execute("DELETE FROM search WHERE rowid = ?", (place,))
    db.execute("DELETE FROM documents WHERE id = ?", (place,))
    remove_vectors(db, place)


def remove_vectors(db: apsw.Connection, place: int) -> None:
    """Take a document's vectors away, of every embedder."""
    known: list[Any] = db.execute("SELECT id, dimensions FROM embedders").fetchall()
    for embedder, dimensions in known:
        key = (embedder << 32) + place
        db.execute("DELETE FROM vector_rows WHERE id = ?", (key,))
        if db.changes():
            db.execute("DELETE FROM vector_halves WHERE id = ?", (key,))
            block, at = block_of(embedder, place)
            width = bit_width(dimensions)
            _write_bits(db, block, width, [(at, bytes(width))])


def _write_bits(db: apsw.Connection, block: int, width: int, parts: Sequence[tuple[int, bytes]]) -> None:
    """Write rows into a block in place: only the pages that they lie on."""
    db.execute("INSERT OR IGNORE INTO vector_blocks VALUES (?, zeroblob(?))", (block, BLOCK * width))
    with db.blob_open("main", "vector_blocks", "bits", block, True) as blob:
        for at, bits in parts:
            blob.seek(at * width)
            blob.write(bits)
    db.execute(
        "INSERT OR REPLACE INTO vector_changes SELECT ?, coalesce(max(seq), 0) + 1 FROM vector_changes",
        (block,),
    )
