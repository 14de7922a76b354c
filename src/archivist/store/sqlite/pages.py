"""Read the rows of a SQLite file page by page, past whatever is damaged.

SQLite stops at the first damaged page of a table and reads nothing when the schema is broken. This reader
follows the format's description (sqlite.org/fileformat2.html), skips what makes no sense, and also finds the
pages that no tree leads to any more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple, TypeAlias

Value: TypeAlias = str | int | float | bytes | None

HEADER_BYTES = 100
MAGIC = b"SQLite format 3\x00"
# What every bank has: SQLite's default. A header that says otherwise is damaged.
PAGE_BYTES = 4096
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
# By the code of a value: nothing, integers, a float, the numbers 0 and 1, and two codes that are not used.
_NUMBER_BYTES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)
# A row of a table has at most this many columns here; a header that claims more is damaged.
_MAX_COLUMNS = 200


class StoredRow(NamedTuple):
    """A row as it lies in a page; a row of a table without row ids has the number 0."""

    rowid: int
    values: tuple[Value, ...]


class DamagedPageError(Exception):
    """Something in a page makes no sense."""


_NONSENSE = (DamagedPageError, IndexError, struct.error, ValueError)


class PageReader:
    """The pages of one file. It keeps which pages were read, and which could not be."""

    def __init__(self, data: bytes | mmap) -> None:
        self._data = memoryview(data)
        self.page_count = -(-len(data) // PAGE_BYTES)
        self.seen: set[int] = set()
        self.damaged: set[int] = set()

    def close(self) -> None:
        """Let go of the file."""
        self._data.release()

    def schema_roots(self) -> dict[str, int]:
        """Return the first page of each table and index that the schema still names."""
        return {
            str(row.values[1]): row.values[3]
            for _, rows in self.tree_pages(1)
            for row in rows
            if len(row.values) == 5 and isinstance(row.values[3], int) and row.values[3] > 0
        }

    def tree_pages(self, root: int) -> Iterator[tuple[int, list[StoredRow]]]:
        """Yield the pages of the tree that begins at a page, with their rows, in the order of the rows."""
        waiting, visited = [root], set[int]()
        while waiting:
            number = waiting.pop()
            if number in visited or not 0 < number <= self.page_count:
                self.damaged.add(number)
                continue
            visited.add(number)
            try:
                rows, children = self._read_page(number)
            except _NONSENSE:
                self.damaged.add(number)
                continue
            self.seen.add(number)
            yield number, rows
            waiting += reversed(children)

    def orphan_pages(self) -> list[int]:
        """Return the pages with rows of tables that no tree led to, and that are not free."""
        free = self._free_pages()
        leaf = bytes([_TABLE_LEAF])
        return [
            number
            for number in range(1, self.page_count + 1)
            if number not in self.seen and number not in free and self._page(number)[:1] == leaf
        ]

    def page_rows(self, number: int) -> list[StoredRow]:
        """Return the rows of one page; none when it makes no sense."""
        try:
            return self._read_page(number)[0]
        except _NONSENSE:
            return []

    def _page(self, number: int) -> memoryview:
        if not 0 < number <= self.page_count:
            raise DamagedPageError(f"there is no page {number}")
        return self._data[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]

    def _read_page(self, number: int) -> tuple[list[StoredRow], list[int]]:
        """Return the rows of a page, and the pages below it."""
        page = self._page(number)
        start = HEADER_BYTES if number == 1 else 0
        kind, count = page[start], int.from_bytes(page[start + 3 : start + 5])
        if kind not in (_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF):
            raise DamagedPageError(f"page {number} is of no known kind")
        is_leaf = kind in (_INDEX_LEAF, _TABLE_LEAF)
        pointers = start + (8 if is_leaf else 12)
        if pointers + 2 * count > len(page):
            raise DamagedPageError(f"page {number} has too many cells")
        rows: list[StoredRow] = []
        children: list[int] = []
        for place in range(count):
            at = int.from_bytes(page[pointers + 2 * place : pointers + 2 * place + 2])
            try:
                if not is_leaf:
                    children.append(int.from_bytes(page[at : at + 4]))
                    at += 4
                if kind != _TABLE_INTERIOR:
                    rows.append(self._read_cell(page, at, has_rowid=kind == _TABLE_LEAF))
            except _NONSENSE:
                self.damaged.add(number)
        if not is_leaf:
            children.append(int.from_bytes(page[start + 8 : start + 12]))
        return rows, children

    def _read_cell(self, page: memoryview, at: int, *, has_rowid: bool) -> StoredRow:
        size, at = _read_varint(page, at)
        rowid = 0
        if has_rowid:
            rowid, at = _read_varint(page, at)
            rowid -= (rowid >> 63) << 64
        usable = PAGE_BYTES
        largest = usable - 35 if has_rowid else (usable - 12) * 64 // 255 - 23
        if size <= largest:
            if at + size > len(page):
                raise DamagedPageError("a row reaches beyond its page")
            return StoredRow(rowid, _read_record(page[at : at + size]))
        if size > self.page_count * usable:
            raise DamagedPageError("a row larger than the file")
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= largest else least
        parts = [page[at : at + local]]
        rest, follower = size - local, int.from_bytes(page[at + local : at + local + 4])
        while rest > 0:
            more = self._page(follower)
            self.seen.add(follower)
            parts.append(more[4 : 4 + min(rest, usable - 4)])
            rest -= usable - 4
            follower = int.from_bytes(more[:4])
        return StoredRow(rowid, _read_record(memoryview(b"".join(parts))))

    def _free_pages(self) -> set[int]:
        """Return the pages on the list of free ones: what they hold was deleted."""
        free: set[int] = set()
        trunk = int.from_bytes(self._data[32:36])
        while 0 < trunk <= self.page_count and trunk not in free:
            free.add(trunk)
            page = self._page(trunk)
            count = min(int.from_bytes(page[4:8]), PAGE_BYTES // 4 - 2)
            free.update(struct.unpack_from(f">{count}I", page, 8))
            trunk = int.from_bytes(page[:4])
        return free


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _read_record(payload: memoryview) -> tuple[Value, ...]:
    """Return the values of a record; raise when it is none."""
    header_end, at = _read_varint(payload, 0)
    values: list[Value] = []
    body = header_end
    while at < header_end:
        kind, at = _read_varint(payload, at)
        size = (kind - 12) // 2 if kind >= 12 else _NUMBER_BYTES[kind]
        piece = payload[body : body + size]
        if len(piece) < size or kind in (10, 11) or len(values) > _MAX_COLUMNS:
            raise DamagedPageError("a row's header does not fit the row")
        body += size
        if kind >= 13 and kind % 2:
            values.append(str(piece, "utf-8"))
        elif kind >= 12:
            values.append(bytes(piece))
        elif kind == 7:
            values.append(struct.unpack(">d", piece)[0])
        else:
            values.append(
                None if kind == 0 else kind - 8 if kind >= 8 else int.from_bytes(piece, signed=True)
            )
    return tuple(values)
