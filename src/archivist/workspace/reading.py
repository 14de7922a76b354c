"""Read a workspace's files, each only when it changed: an edit by hand is seen at the next call.

A file counts as unchanged when its size and both its times are what they were, and when they were already
old as it was read: a second edit within the clock's grain may leave them all the same, so a file that is
fresh is read again and compared by its digest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from archivist.errors import InputError
from archivist.workspace import learnings, overviews, plans
from archivist.workspace.learnings import LearningFile
from archivist.workspace.overviews import Overview
from archivist.workspace.plans import Plan
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import (
    EVERYWHERE,
    LEARNINGS,
    FileKind,
    Topology,
    WorkspaceFile,
    WorkspaceScope,
)

FRESH_NS = 2_000_000_000
MAX_BYTES = 16 * 1024**2
HEAD_BYTES = 4096
_PIECE_BYTES = 1024**2
_FENCES = (b"---", b"\xef\xbb\xbf---")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))

Parsed = Plan | Overview | LearningFile


class DecodedText(NamedTuple):
    """A file's text, and what was wrong with its bytes."""

    text: str
    problems: tuple[LintProblem, ...] = ()


class WorkspaceContents(NamedTuple):
    """What was read of a scope, and everything that was in the way."""

    plans: list[Plan]
    overviews: list[Overview]
    learnings: list[LearningFile]
    problems: list[LintProblem]


class _CachedFile(NamedTuple):
    """What a file held when it was read, and how it could be told to be unchanged."""

    size: int
    mtime_ns: int
    ctime_ns: int
    read_ns: int
    digest: bytes
    parsed: Parsed


class FileCache:
    """The files of one root as they were last read."""

    def __init__(self, topology: Topology, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.topology = topology
        self.parsed_count = 0
        self._clock_ns = clock_ns
        self._kept: dict[str, _CachedFile] = {}

    def read(
        self, scope: WorkspaceScope = EVERYWHERE, kinds: Collection[FileKind] = (FileKind.PLAN,)
    ) -> WorkspaceContents:
        """Read the files of a scope; one that cannot be read is named, and the rest served."""
        found = self.topology.scan(scope, kinds)
        reading = WorkspaceContents([], [], [], found.problems)
        for place in found.places:
            parsed = self._parse_if_changed(place, reading.problems)
            if isinstance(parsed, Plan):
                reading.plans.append(parsed)
            elif isinstance(parsed, Overview):
                reading.overviews.append(parsed)
            elif parsed is not None:
                reading.learnings.append(parsed)
            if parsed is not None and parsed.problems:
                reading.problems.extend(parsed.problems)
        return reading

    def _parse_if_changed(self, place: WorkspaceFile, problems: list[LintProblem]) -> Parsed | None:
        kept = self._kept.get(place.name)
        if (
            kept is not None
            and kept[:3] == (place.size, place.mtime_ns, place.ctime_ns)
            and max(place.mtime_ns, place.ctime_ns) + FRESH_NS < kept.read_ns
        ):
            return kept.parsed
        now = self._clock_ns()
        data = read_plan_head(place, problems) if place.kind is FileKind.PLAN else read_data(place, problems)
        if data is None:
            self._kept.pop(place.name, None)
            return None
        digest = blake2b(data, digest_size=16).digest()
        if kept is not None and kept.digest == digest:
            parsed = kept.parsed
        else:
            parsed = _parse(data, place)
            self.parsed_count += 1
        times = (place.size, place.mtime_ns, place.ctime_ns)
        self._kept[place.name] = _CachedFile(*times, now, digest, parsed)
        return parsed


def _parse(data: bytes, place: WorkspaceFile) -> Parsed:
    text, problems = decode(data, place.name)
    parsed: Parsed
    if place.kind is FileKind.PLAN:
        parsed = plans.from_text(text, place)
    elif place.kind in LEARNINGS:
        parsed = learnings.from_text(text, place)
    else:
        parsed = overviews.from_text(text, place)
    return parsed._replace(problems=problems + parsed.problems) if problems else parsed


def read_data(place: WorkspaceFile, problems: list[LintProblem]) -> bytes | None:
    """Return what a file holds; None, and the problem is noted, when it cannot be read or is too large."""
    if place.size > MAX_BYTES:
        problems.append(LintProblem(place.name, 0, "too-large", f"it is larger than {MAX_BYTES >> 20} MiB"))
        return None
    return _read_or_report(read_bytes, place, problems)


def read_plan_head(place: WorkspaceFile, problems: list[LintProblem]) -> bytes | None:
    """Return a plan's front matter; None, and the problem is noted, when it cannot be read."""
    return _read_or_report(read_head, place, problems)


def _read_or_report(
    read: Callable[[str, str], bytes], place: WorkspaceFile, problems: list[LintProblem]
) -> bytes | None:
    try:
        return read(place.file, place.name)
    except InputError as error:
        problems.append(LintProblem(place.name, 0, "unreadable", error.message))
        return None


def read_bytes(file: str | Path, name: str) -> bytes:
    """Return a file's bytes; raise InputError when it cannot be read or is no text by its size."""
    return _read(file, name, MAX_BYTES)


def read_head(file: str | Path, name: str) -> bytes:
    """Return a file's front matter and no more of it: all that a plan is known by.

    Of a text that has none, its first lines; front matter that is longer than usual is read whole.
    """
    head = _read(file, name, MAX_BYTES, stop=HEAD_BYTES)
    if head.startswith(_FENCES):
        end = head.find(b"\n---", 3)
        line_end = head.find(b"\n", end + 1) if end > 0 else -1
        if line_end > 0:
            return head[: line_end + 1]
        return head if len(head) < HEAD_BYTES else _read(file, name, MAX_BYTES)
    return head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]


def _read(file: str | Path, name: str, limit: int, *, stop: int = 0) -> bytes:
    try:
        # Reading without a buffer: one call for a small file, and there are thousands of them.
        handle = os.open(file, os.O_RDONLY)
        try:
            data = os.read(handle, stop or _PIECE_BYTES)
            while not stop and data and len(data) <= limit and (more := os.read(handle, _PIECE_BYTES)):
                data += more
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"cannot read {name!r}: {error.strerror}") from error
    if len(data) > limit:
        raise InputError(f"{name!r} is larger than {limit >> 20} MiB")
    return data


def decode(data: bytes, name: str) -> DecodedText:
    """Return a file's text; bytes that are no UTF-8 are replaced, and the first of them named."""
    try:
        return DecodedText(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                problem = LintProblem(name, 1, "not-utf8", "the file is UTF-16")
                return DecodedText(data.decode(encoding, "replace"), (problem,))
        problem = LintProblem(name, line, "not-utf8", f"byte 0x{data[error.start]:02x} is no UTF-8")
        return DecodedText(data.decode("utf-8", "replace"), (problem,))
