"""Open a file: plain, gzip or zstd by its first bytes, UTF-8 or UTF-16, bounded in what it unpacks to."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from archivist.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD_BYTES = 64 * 1024
MAX_UNPACKED_BYTES = 8 * 1024**3
# Real logs shrink 5 to 60 times; a long run of one byte shrinks a thousandfold or more.
MAX_RATIO = 400
RATIO_COUNTS_FROM_BYTES = 256 * 1024**2
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_BUFFER_BYTES = 256 * 1024


class _DecompressingReader(io.RawIOBase):
    """What comes out of a decompressor, refused when it is out of all proportion to what went in."""

    def __init__(self, packed: BinaryIO, unpacked: BinaryIO, name: str) -> None:
        self._packed = packed
        self._unpacked = unpacked
        self._name = name
        self._given = 0
        self._failure: OSError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        filled = 0
        while filled < len(view) and self._failure is None:
            try:
                piece = cast("io.BufferedReader", self._unpacked).read1(len(view) - filled)
            except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
                # What came before the damage is given first, the damage told at the next call.
                self._failure = OSError(f"the compressed file is cut or damaged: {error}")
                break
            if not piece:
                break
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        if not filled and self._failure is not None:
            raise self._failure
        self._given += filled
        self._refuse_bomb()
        return filled

    def _refuse_bomb(self) -> None:
        taken = max(self._packed.tell(), 1)
        is_bomb = self._given > RATIO_COUNTS_FROM_BYTES and self._given > MAX_RATIO * taken
        if is_bomb or self._given > MAX_UNPACKED_BYTES:
            raise InputError(
                f"{self._name!r} unpacks beyond belief: {self._given >> 20} MiB of {taken >> 10} KiB",
                hint="unpack it yourself and capture the plain file if it is a real log",
            )

    def close(self) -> None:
        self._unpacked.close()
        self._packed.close()
        super().close()


class _TranscodingReader(io.RawIOBase):
    """Text in another encoding, given as UTF-8."""

    def __init__(self, source: BinaryIO, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        while not self._ready:
            piece = self._source.read(_BUFFER_BYTES)
            decoded = self._decoder.decode(piece, final=not piece)
            self._ready = decoded.encode("utf-8", "replace")
            if not piece:
                break
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._source.close()
        super().close()


def open_file(path: Path) -> BinaryIO:
    """Open a file for streaming. Raise InputError when it cannot be read, is empty or is a bomb."""
    try:
        packed = path.open("rb", buffering=_BUFFER_BYTES)
    except FileNotFoundError:
        raise InputError(f"no such file: {str(path)!r}") from None
    except IsADirectoryError:
        raise InputError(f"{str(path)!r} is a folder", hint="name the files in it") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    # A pipe cannot go back to its beginning.
    magic = head_of(packed)[:4]
    if not magic:
        packed.close()
        raise InputError(
            f"{str(path)!r} is empty", hint="one JSON object a line, or the log of a run, is expected"
        )
    source: BinaryIO = packed
    if magic.startswith(_GZIP):
        source = _open_decompressed(packed, cast("BinaryIO", gzip.GzipFile(fileobj=packed)), path)
    elif magic == _ZSTD:
        source = _open_decompressed(packed, cast("BinaryIO", zstd.ZstdFile(packed)), path)
    return _ensure_utf8(source)


def exceeds_unpacked_size(path: Path, max_bytes: int) -> bool:
    """Say whether a file holds more than so many bytes once it is unpacked; no more than those are."""
    if path.stat().st_size > max_bytes:
        return True
    with open_file(path) as source:
        left = max_bytes
        try:
            while left >= 0 and (piece := source.read(_BUFFER_BYTES)):
                left -= len(piece)
        except OSError:
            # Damage is told by who reads it.
            return False
    return left < 0


def head_of(source: BinaryIO) -> bytes:
    """Return the beginning of an opened log without moving in it."""
    peek = getattr(source, "peek", None)
    if peek is None:
        place = source.tell()
        head = source.read(HEAD_BYTES)
        source.seek(place)
        return head
    try:
        return cast("bytes", peek(HEAD_BYTES))[:HEAD_BYTES]
    except OSError as error:
        raise InputError(str(error)) from error


def _open_decompressed(packed: BinaryIO, unpacked: BinaryIO, path: Path) -> BinaryIO:
    return io.BufferedReader(_DecompressingReader(packed, unpacked, path.name), _BUFFER_BYTES)


def _ensure_utf8(source: BinaryIO) -> BinaryIO:
    try:
        mark = head_of(source)[:2]
    except InputError:
        source.close()
        raise
    encoding = _UTF_16.get(mark)
    if encoding is None:
        return source
    source.read(2)
    return io.BufferedReader(_TranscodingReader(source, encoding), _BUFFER_BYTES)
