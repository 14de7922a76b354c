"""Read JSON lines so that a bad line costs only itself, and write them so that a crash costs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from archivist.files.packed import open_file
from archivist.files.write import write_temporary

# No record is this long; a longer line is skipped without being held in memory.
MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One object of a file and its line number."""

    file: str
    number: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be read, and why."""

    file: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.reason}"


def read_lines(path: Path) -> Iterator[JsonLine | LineProblem]:
    """Yield each line of a file as an object, or as the problem with it."""
    name = str(path)
    is_text = False
    with open_file(path) as stream:
        for number in count(1):
            try:
                line = stream.readline(MAX_LINE_BYTES + 1)
            except OSError as error:
                yield LineProblem(name, number, str(error))
                return
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(1 << 20)
                yield LineProblem(name, number, f"longer than {MAX_LINE_BYTES >> 20} MiB")
                continue
            text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if not text:
                continue
            if not is_text and b"\0" in text:
                yield LineProblem(name, number, "not text but binary: the rest of the file is not read")
                return
            try:
                value = msgspec.json.decode(text)
            except UnicodeDecodeError:
                yield LineProblem(name, number, "not UTF-8 text")
            except (msgspec.DecodeError, RecursionError) as error:
                yield LineProblem(name, number, f"not JSON: {error}")
            else:
                is_text = True
                if isinstance(value, dict):
                    yield JsonLine(name, number, value)
                else:
                    yield LineProblem(name, number, "not a JSON object")


def write_lines(path: Path, values: Iterable[Mapping[str, object]], *, below: Path | None = None) -> int:
    """Write one object a line, all or none, and return how many there were; no folder below may be a link."""
    written = 0

    def encode_values() -> Iterator[bytes]:
        nonlocal written
        for value in values:
            written += 1
            yield (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()

    with write_temporary(path, encode_values(), is_private=True, below=below) as temporary:
        temporary.replace(path)
    return written
