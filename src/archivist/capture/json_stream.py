"""Read JSON of any size in bounded memory: lines one by one, and the elements of the arrays of one document.

Long strings are cut while they are scanned, so that a tool output of a hundred megabytes costs as much
memory as a short one. What cannot be read is reported as `SkippedRecord` and costs only itself.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import chain, count, islice
from typing import Any, BinaryIO, NamedTuple

import msgspec

from archivist.capture.values import objects, omission_mark

CHUNK_BYTES = 128 * 1024
# Nearly all lines of real logs are shorter, and are decoded without being scanned first.
SHORT_LINE_BYTES = 1024 * 1024
# How much of each end of a long string is kept; adapters clip to less. Large enough to hold a whole brief.
KEPT_STRING_BYTES = 64 * 1024
# The largest element after its long strings are cut. No record of a known format comes near.
MAX_ELEMENT_BYTES = 8 * 1024 * 1024
# A document up to this size is decoded as a whole, which is several times as fast and still cheap to hold.
SMALL_DOCUMENT_BYTES = 8 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[\s\x00]*+")
_SCALAR = re.compile(rb"[^\s,\]}]*+")
# Unrolled, so that each place has one way on: Python before 3.11.5 miscompiles possessive groups.
_UP_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*"[^"{}\[\]]*+)*', re.DOTALL)
_STRING_TEXT = re.compile(rb'[^"\\]*+(?:\\(?:u[^"\\]{4}|[^u])[^"\\]*+)*', re.DOTALL)
# The first bytes of a UTF-8 character that goes on in the next chunk.
_HALF_CHARACTER = re.compile(rb"(?:[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xff][\x80-\xbf]{0,2})\Z")
_TOKEN = re.compile(
    rb'(?P<open>[{\[])|(?P<close>[}\]])|"' + _STRING_TEXT.pattern + rb'(?P<quote>"?)', re.DOTALL
)
_QUOTE, _OPEN_LIST, _CLOSE_LIST, _OPEN, _CLOSE = b'"[]{}'
_LONGEST_ESCAPE = 6
_MAX_SCALAR_BYTES = 4096

_ENDS_HERE = "cut short: the log ends in the middle of it"
_CUT_LINE = b"(cut short)"
READ_FAILURES = (OSError, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """Something in a log that could not be read: where it stood, why, and whether the log ends in it."""

    where: str
    reason: str
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class LogLine:
    """One object of a file of JSON lines."""

    number: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a document, or one element of a member that is read as an array (`index` then counts)."""

    key: str
    index: int | None
    value: Any


def damaged_file(where: str, error: Exception) -> SkippedRecord:
    """Say that a log ends in something that the disk or the packer cannot read."""
    return SkippedRecord(where, f"the file is cut or damaged: {error}", is_end=True)


class _CutShortError(Exception):
    """The input ended inside a value."""


def decode(raw: bytes | bytearray) -> Any:
    """Decode JSON, forgiving wrong encodings, lone surrogates, NaN and control characters.

    Raise ValueError when it is not JSON even so.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = json.loads(raw.decode("utf-8", "replace"), strict=False)
        # Written and read once more, because no store can hold a lone surrogate.
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_lines(source: BinaryIO) -> Iterator[LogLine | SkippedRecord]:
    """Yield each line as an object, or as the reason that kept it from being one."""
    for number in count(1):
        raw: bytes | bytearray | None
        try:
            raw = source.readline(SHORT_LINE_BYTES)
            if not raw:
                return
            is_last = not raw.endswith(b"\n")
            if len(raw) == SHORT_LINE_BYTES and is_last:
                raw = _read_long_line(raw, source)
                is_last = raw is not None and bytes(raw) == _CUT_LINE
        except READ_FAILURES as error:
            yield damaged_file(f"line {number}", error)
            return
        if raw is not None:
            raw = (raw.removeprefix(_BOM) if number == 1 else raw).strip(b"\x00 \t\r\n")
            if not raw:
                continue
        value = _decode_or_skip(raw, f"line {number}")
        if isinstance(value, dict):
            yield LogLine(number, value)
        elif isinstance(value, SkippedRecord):
            yield SkippedRecord(value.where, _ENDS_HERE, is_end=True) if is_last else value
        else:
            yield SkippedRecord(f"line {number}", "not a JSON object")


def _decode_or_skip(raw: bytes | bytearray | None, where: str) -> Any:
    if raw is None:
        return SkippedRecord(where, f"longer than {MAX_ELEMENT_BYTES >> 20} MiB")
    try:
        return decode(raw)
    except ValueError as error:
        reason = str(error).split("\n")[0][:120]
        return SkippedRecord(where, f"not JSON: {reason}")


def _read_long_line(beginning: bytes, source: BinaryIO) -> bytearray | None:
    """Return a long line without the middle of its long strings; None when it is too long even so."""

    def read_rest() -> Iterator[bytes]:
        while piece := source.readline(CHUNK_BYTES):
            yield piece
            if piece.endswith(b"\n"):
                return

    chunks = chain(_cut_in_chunks(beginning.removeprefix(_BOM)), read_rest())
    try:
        return _Scanner(chunks).value()
    except _CutShortError:
        return bytearray(_CUT_LINE)
    finally:
        for _ in chunks:
            pass


def _cut_in_chunks(data: bytes | bytearray) -> Iterator[bytes]:
    return (bytes(data[at : at + CHUNK_BYTES]) for at in range(0, len(data), CHUNK_BYTES))


class _Scanner:
    """A position in JSON bytes that moves over one value at a time."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._at = 0
        self._read = 0

    @property
    def offset(self) -> int:
        """Return how many bytes have been passed."""
        return self._read - len(self._buffer) + self._at

    def peek(self) -> int:
        """Return the next byte that is not space, or -1 at the end."""
        while True:
            self._at = self._end_of(_SPACE.match)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._fill():
                return -1

    def skip(self) -> None:
        """Pass the byte that was peeked at."""
        self._at += 1

    def value(self) -> bytearray | None:
        """Return the bytes of the next value, its long strings cut; None when it is too big even so."""
        out = bytearray()
        first = self.peek()
        if first == _QUOTE:
            self._string(out)
            return out
        if first in (_OPEN, _OPEN_LIST):
            return self._composite(out)
        while True:
            piece = self._take(self._end_of(_SCALAR.match))
            if len(out) < _MAX_SCALAR_BYTES:
                out += piece
            if self._at < len(self._buffer) or not self._fill():
                return out

    def _end_of(self, match: Callable[[bytes, int], re.Match[bytes] | None]) -> int:
        found = match(self._buffer, self._at)
        return found.end() if found else self._at

    def _take(self, end: int) -> bytes:
        piece, self._at = self._buffer[self._at : end], end
        return piece

    def _fill(self) -> bool:
        more = next(self._chunks, b"")
        self._buffer = self._buffer[self._at :] + more
        self._at = 0
        self._read += len(more)
        return bool(more)

    def _composite(self, out: bytearray) -> bytearray | None:
        depth = 0
        is_too_big = False
        while True:
            end = self._end_of(_UP_TO_BRACKET.match)
            following = self._buffer[end] if end < len(self._buffer) else -1
            is_bracket = following not in (-1, _QUOTE)
            out += self._take(end + is_bracket)
            if is_bracket:
                depth += 1 if following in (_OPEN, _OPEN_LIST) else -1
                if depth == 0:
                    return None if is_too_big else out
            elif following == _QUOTE:
                self._string(out)
            elif not self._fill():
                raise _CutShortError
            if len(out) > MAX_ELEMENT_BYTES:
                is_too_big = True
                out.clear()

    def _string(self, out: bytearray) -> None:
        """Append the string that begins here, without its middle when it is long."""
        out.append(_QUOTE)
        self._at += 1
        kept = dropped = 0
        tail: deque[bytes] = deque()
        while True:
            end = self._end_of(_STRING_TEXT.match)
            is_closed = end < len(self._buffer) and self._buffer[end] == _QUOTE
            if not is_closed and (half := _HALF_CHARACTER.search(self._buffer, max(self._at, end - 3), end)):
                end = half.start()
            piece = self._take(end)
            if kept < KEPT_STRING_BYTES:
                out += piece
                kept += len(piece)
            elif piece:
                tail.append(piece)
                # Pieces after the first keep the end whole even when the last one is short.
                while sum(map(len, tail)) - len(tail[0]) >= KEPT_STRING_BYTES:
                    piece = tail.popleft()
                    try:
                        dropped += len(msgspec.json.decode(b'"' + piece + b'"', type=str))
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        dropped += len(piece)
            if is_closed:
                break
            if len(self._buffer) - self._at >= _LONGEST_ESCAPE:
                # A backslash that begins no escape: take it for a character, and go on behind it.
                self._buffer = self._buffer[: self._at] + b"?" + self._buffer[self._at + 1 :]
            elif not self._fill():
                raise _CutShortError
        self._at += 1
        if dropped:
            out += json.dumps(omission_mark(dropped))[1:-1].encode()
        for piece in tail:
            out += piece
        out.append(_QUOTE)


def read_document(source: BinaryIO, arrays: Collection[str] | None = None) -> Iterator[Part | SkippedRecord]:
    """Yield the members of one document: arrays by element when they are named, other members whole.

    Without `arrays` every array is read by element. A document that is itself an array has the key "".
    A small document is decoded at once; a large or a broken one is cut into its parts as it is read.
    """
    beginning = bytearray()
    failure: Exception | None = None
    try:
        while len(beginning) <= SMALL_DOCUMENT_BYTES and (piece := source.read(_PIECE_BYTES)):
            beginning += piece
    except READ_FAILURES as error:
        failure = error
    beginning = beginning.removeprefix(_BOM)
    whole = None
    if failure is None and len(beginning) <= SMALL_DOCUMENT_BYTES:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            whole = msgspec.json.decode(beginning)
    if isinstance(whole, dict | list):
        yield from parts_of(whole, arrays) if isinstance(whole, dict) else parts_of({"": whole}, None)
        return

    def read_rest() -> Iterator[bytes]:
        if failure is not None:
            raise failure
        while piece := source.read(CHUNK_BYTES):
            yield piece

    scanner = _Scanner(chain(_cut_in_chunks(beginning), read_rest()))
    try:
        yield from _scan_document(scanner, arrays)
    except _CutShortError:
        yield SkippedRecord(f"byte {scanner.offset}", _ENDS_HERE, is_end=True)
    except READ_FAILURES as error:
        yield damaged_file(f"byte {scanner.offset}", error)


def parts_of(document: Mapping[str, Any], arrays: Collection[str] | None) -> Iterator[Part]:
    """Yield the members of a document that is decoded already."""
    for key, value in document.items():
        if isinstance(value, list) and (arrays is None or key in arrays):
            yield from (Part(key, index, element) for index, element in enumerate(value))
        else:
            yield Part(key, None, value)


def _scan_document(scanner: _Scanner, arrays: Collection[str] | None) -> Iterator[Part | SkippedRecord]:
    first = scanner.peek()
    if first == _OPEN_LIST:
        yield from _elements(scanner, "")
        return
    if first != _OPEN:
        yield SkippedRecord("byte 0", "not a JSON object or array")
        return
    scanner.skip()
    while (following := scanner.peek()) != _CLOSE:
        if following == ord(","):
            scanner.skip()
            continue
        if following != _QUOTE:
            break
        name = ""
        with suppress(ValueError):
            name = str(decode(scanner.value() or b'""'))
        if scanner.peek() != ord(":"):
            break
        scanner.skip()
        if scanner.peek() == _OPEN_LIST and (arrays is None or name in arrays):
            yield from _elements(scanner, name)
        else:
            yield _part(scanner, name, None)
    else:
        return
    reason = _ENDS_HERE if scanner.peek() == -1 else "not JSON from here on"
    yield SkippedRecord(f"byte {scanner.offset}", reason, is_end=True)


def _elements(scanner: _Scanner, key: str) -> Iterator[Part | SkippedRecord]:
    scanner.skip()
    index = 0
    while True:
        following = scanner.peek()
        if following == _CLOSE_LIST:
            scanner.skip()
            return
        if following == ord(","):
            scanner.skip()
        elif following in (-1, _CLOSE):
            raise _CutShortError
        else:
            yield _part(scanner, key, index)
            index += 1


def _part(scanner: _Scanner, key: str, index: int | None) -> Part | SkippedRecord:
    where = f"byte {scanner.offset}" if not key else f"{key}[{index}]" if index is not None else key
    raw = scanner.value()
    if raw is not None and not raw:
        # A stray byte that begins no value, such as a colon, must be passed or it would be met for ever.
        scanner.skip()
        return SkippedRecord(where, "not JSON")
    value = _decode_or_skip(raw, where)
    return value if isinstance(value, SkippedRecord) else Part(key, index, value)


class LogPreview(NamedTuple):
    """The first objects of a log, complete or cut at the end of the preview.

    The document is the first object, or the only one; empty when the log is a list or no JSON.
    """

    document: Mapping[str, Any]
    objects: Sequence[Mapping[str, Any]]


_GLIMPSED_OBJECTS = 50


@lru_cache(maxsize=4)
def preview_log(head: bytes) -> LogPreview:
    """Read the first objects of a log from its beginning, which may end anywhere."""
    head = head.removeprefix(_BOM).lstrip()
    lines = list(islice(read_lines(BytesIO(head)), _GLIMPSED_OBJECTS))
    values = tuple(line.value for line in lines if isinstance(line, LogLine))
    if lines and isinstance(lines[0], LogLine):
        return LogPreview(values[0], values)
    # The first line is no object by itself: one document over many lines, or cut by the head's end.
    members: dict[str, Any] = {}
    arrays: dict[str, list[Any]] = {}
    is_broken = False
    for part in read_document(BytesIO(head)):
        if isinstance(part, SkippedRecord):
            is_broken = True
        elif part.index is None:
            members[part.key] = part.value
        else:
            arrays.setdefault(part.key, []).append(part.value)
    # Hardly any line of a document is an object; most are in a log whose first lines are damaged.
    if (is_broken or not (members or arrays)) and 2 * len(values) >= len(lines) > 1:
        return LogPreview(values[0], values)
    if listed := objects(arrays.pop("", None)):
        return LogPreview({}, listed[:_GLIMPSED_OBJECTS])
    # A first prompt may be longer than the head: the member that is cut is read as far as it reaches.
    members = {**_read_cut_object(head), **members, **arrays}
    return LogPreview(members, (members,) if members else ())


def _read_cut_object(head: bytes) -> dict[str, Any]:
    """Read an object that ends inside one of its strings; nothing when it ends elsewhere."""
    closing: list[str] = []
    for token in _TOKEN.finditer(head):
        if bracket := token["open"]:
            closing.append("}" if bracket == b"{" else "]")
        elif token["close"]:
            del closing[-1:]
        elif not token["quote"]:
            text = head[: token.end()].decode("utf-8", "replace")
            break
    else:
        return {}
    with suppress(ValueError, RecursionError):
        value = json.loads(f'{text}"{"".join(reversed(closing))}')
        return value if isinstance(value, dict) else {}
    return {}
