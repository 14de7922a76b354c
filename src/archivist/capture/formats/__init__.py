"""The formats of logs, and how to recognise the format of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from archivist.capture.formats import (
    archeflow,
    atif,
    claude_code,
    codex,
    copilot_cli,
    cursor,
    gemini_cli,
    hook_session,
    mini_swe_agent,
    native,
    opencode,
    openhands,
    swe_agent,
    vscode_chat,
)
from archivist.capture.json_stream import SkippedRecord
from archivist.capture.recorder import LogItem, LogOrigin
from archivist.errors import InputError
from archivist.files.packed import head_of, open_file

__all__ = (
    "ADAPTERS", "Adapter", "LogOrigin", "SkippedRecord", "adapter_named", "head_of", "open_file",
    "read_log", "recognise", "refuse_bad_lines",
)  # fmt: skip


class Adapter(Protocol):
    """One format, which is one module: recognises its logs and reads them as events and episodes."""

    name: str

    def recognises(self, head: bytes) -> bool:
        """Say whether a log has this format, by its first 64 kB, decompressed."""

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
        """Yield events as they are read, each run when it is complete, the main one last."""


# How a database begins, such as those in which OpenCode and Cursor keep the sessions of all projects.
_DATABASE = b"SQLite format 3\0"
# From the most to the least specific, since some formats embed the records of others.
ADAPTERS: tuple[Adapter, ...] = (
    atif, codex, opencode, gemini_cli, copilot_cli, cursor, vscode_chat, hook_session, mini_swe_agent,
    swe_agent, openhands, archeflow, native, claude_code,
)  # fmt: skip
_BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}


def recognise(head: bytes, name: str, *, fallback: str = "") -> Adapter:
    """Return the adapter of a log by its content, else the fallback. Raise InputError without either."""
    for adapter in ADAPTERS:
        if adapter.recognises(head):
            return adapter
    if fallback and head.strip():
        return adapter_named(fallback)
    if not head.strip():
        raise InputError(f"{name!r} is empty", hint="a session that has just begun may have no lines yet")
    hint = f"name it with --format if it is one of {', '.join(sorted(_BY_NAME))}"
    raise InputError(f"{name!r} is no log of a known format", hint=hint)


def adapter_named(name: str) -> Adapter:
    """Return the adapter of a format. Raise InputError when there is none of that name."""
    if name not in _BY_NAME:
        raise InputError(f"unknown format {name!r}", hint=f"one of auto, {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def read_log(
    path: Path, origin: LogOrigin | None = None, format_name: str = "auto", *, fallback: str = ""
) -> Iterator[LogItem]:
    """Open a log, recognise its format unless it is given, and read it. The fallback is for `auto`."""
    with open_file(path) as source:
        if head_of(source).startswith(_DATABASE):
            hint = "archivist setup takes this repository's sessions out of the databases of its clients"
            raise InputError(f"{path.name!r} is a database and no log", hint=hint)
        if format_name == "auto":
            adapter = recognise(head_of(source), path.name, fallback=fallback)
        else:
            adapter = adapter_named(format_name)
        yield from adapter.read(source, origin or LogOrigin(path.name, folder=path.absolute().parent))


def refuse_bad_lines(paths: Iterable[Path], run: str, format_name: str, *, fallback: str) -> None:
    """Read logs only for the lines that cannot be read, and refuse everything when there is one."""
    problems = []
    for path in paths:
        items = read_log(path, LogOrigin(path.name, run), format_name, fallback=fallback)
        bad = (item for item in items if isinstance(item, SkippedRecord))
        problems += [f"{path}: {item.where}: {item.reason}" for item in bad]
    if problems:
        lines = "1 bad line" if len(problems) == 1 else f"{len(problems)} bad lines"
        raise InputError(
            f"{lines}, nothing was taken; the first: {problems[0]}",
            hint="without --strict the good lines are taken",
        )
