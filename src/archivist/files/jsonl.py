"""Read JSON lines so that one bad line costs only itself, and write them so that a crash costs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from archivist.files.open import open_file
from archivist.files.write import write_temporary

# A longer line is nobody's record; it is skipped without being held in memory.
MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One object of a file and where it stood."""

    file: str
    number: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be taken, and why."""

    file: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.reason}"


def read_lines(path: Path) -> Iterator[JsonLine | LineProblem]:
    """Yield each line of a file as an object, or as the problem that kept it from being one."""
    name = str(path)
    with open_file(path) as stream:
        number = 0
        while True:
            number += 1
            try:
                raw = stream.readline(MAX_LINE_BYTES + 1)
            except OSError as error:
                yield LineProblem(name, number, str(error))
                return
            if not raw:
                return
            if len(raw) > MAX_LINE_BYTES:
                _skip_line(stream, raw)
                yield LineProblem(name, number, f"longer than {MAX_LINE_BYTES >> 20} MiB")
                continue
            text = raw.removeprefix(_BOM).strip() if number == 1 else raw.strip()
            if text:
                yield _parse(name, number, text)


def write_lines(path: Path, values: Iterable[Mapping[str, object]]) -> int:
    """Write one object a line, whole or not at all, and return how many there were."""
    count = 0

    def encode_values() -> Iterator[bytes]:
        nonlocal count
        for value in values:
            count += 1
            yield (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()

    with write_temporary(path, encode_values(), is_private=True) as fresh:
        fresh.replace(path)
    return count


def _skip_line(stream: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(1 << 20)


def _parse(name: str, number: int, text: bytes) -> JsonLine | LineProblem:
    try:
        value = msgspec.json.decode(text)
    except UnicodeDecodeError:
        return LineProblem(name, number, "not UTF-8 text")
    except (msgspec.DecodeError, RecursionError) as error:
        return LineProblem(name, number, f"not JSON: {error}")
    if not isinstance(value, dict):
        return LineProblem(name, number, "not a JSON object")
    return JsonLine(name, number, value)
