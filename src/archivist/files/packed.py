"""Open a log or an export for streaming: plain, gzip or zstd, UTF-8 or UTF-16."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from archivist.errors import InputError
from archivist.files.open import BUFFER_BYTES, open_regular

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD_BYTES = 64 * 1024
MAX_UNPACKED_BYTES = 8 * 1024**3
# Real logs shrink 5 to 60 times; a long run of one byte shrinks a thousandfold or more. Small files may
# shrink as much without harm, so the ratio counts only above a size.
MAX_RATIO = 400
RATIO_COUNTS_FROM_BYTES = 256 * 1024**2
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def _raise(error: BaseException | None) -> Iterator[bytes]:
    if error is not None:
        raise error
    yield b""


class _ChunkReader(io.RawIOBase):
    """Chunks of bytes, made from other streams, as a file."""

    def __init__(self, chunks: Iterator[bytes], *sources: BinaryIO) -> None:
        self._chunks = chunks
        self._sources = sources
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer, so that whoever peeks sees as much of a packed file as of a plain one."""
        view = memoryview(cast("bytearray", buffer))
        size = 0
        try:
            while size < len(view) and (ready := self._ready or next(filter(None, self._chunks), b"")):
                piece = min(len(view) - size, len(ready))
                view[size : size + piece] = ready[:piece]
                self._ready = ready[piece:]
                size += piece
        except (OSError, InputError):
            if not size:
                raise
            # What was read before the damage is given first; the damage is met again.
            self._chunks = chain(_raise(sys.exc_info()[1]), self._chunks)
        return size

    def close(self) -> None:
        for source in self._sources:
            source.close()
        super().close()


def _decompress(packed: BinaryIO, unpacked: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the output of a decompressor; raise InputError for a decompression bomb."""
    size = 0
    while True:
        try:
            chunk = cast("io.BufferedReader", unpacked).read1(BUFFER_BYTES)
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            raise OSError(f"the compressed file is cut or damaged: {error}") from error
        if not chunk:
            return
        size += len(chunk)
        packed_bytes = max(packed.tell(), 1)
        is_bomb = size > RATIO_COUNTS_FROM_BYTES and size > MAX_RATIO * packed_bytes
        if is_bomb or size > MAX_UNPACKED_BYTES:
            raise InputError(
                f"{name!r} unpacks too far: {size >> 20} MiB from {packed_bytes >> 10} KiB",
                hint="unpack it yourself and capture the plain file if it is a real log",
            )
        yield chunk


def _transcode(source: BinaryIO, encoding: str) -> Iterator[bytes]:
    """Yield a text in another encoding as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while chunk := source.read(BUFFER_BYTES):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def open_file(path: Path) -> BinaryIO:
    """Open a file for streaming; raise InputError when it cannot be read, is empty or is a bomb."""
    source = open_regular(path)
    # The beginning is peeked at, because a pipe cannot seek back.
    magic = head_of(source)[:4]
    if not magic:
        source.close()
        raise InputError(
            f"{str(path)!r} is empty", hint="one JSON object a line, or the log of a run, is expected"
        )
    decompressed = None
    if magic.startswith(_GZIP):
        decompressed = cast("BinaryIO", gzip.GzipFile(fileobj=source))
    elif magic == _ZSTD:
        decompressed = cast("BinaryIO", zstd.ZstdFile(source))
    if decompressed is not None:
        chunks = _decompress(source, decompressed, path.name)
        source = io.BufferedReader(_ChunkReader(chunks, decompressed, source), BUFFER_BYTES)
    try:
        encoding = _UTF_16.get(head_of(source)[:2])
    except InputError:
        source.close()
        raise
    if encoding is None:
        return source
    source.read(2)
    return io.BufferedReader(_ChunkReader(_transcode(source, encoding), source), BUFFER_BYTES)


def exceeds_unpacked_size(path: Path, max_bytes: int) -> bool:
    """Say whether a file unpacks to more than so many bytes, without unpacking more than those."""
    if path.stat().st_size > max_bytes:
        return True
    with open_file(path) as source:
        left = max_bytes
        try:
            while left >= 0 and (chunk := source.read(BUFFER_BYTES)):
                left -= len(chunk)
        except OSError:
            # Whoever reads the file next reports the damage.
            return False
    return left < 0


def head_of(source: BinaryIO) -> bytes:
    """Return the first bytes of an open file without moving in it."""
    try:
        if peek := getattr(source, "peek", None):
            return cast("bytes", peek(HEAD_BYTES))[:HEAD_BYTES]
        position, head = source.tell(), source.read(HEAD_BYTES)
        source.seek(position)
        return head
    except OSError as error:
        raise InputError(str(error)) from error
