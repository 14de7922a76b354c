"""Let Claude's memory tool keep its files in a bank, in the SDK's own words.

The texts are those of the SDK's tool for a folder, which models were taught with. The files are in the bank
and on no disk: links cannot lead out of it, and a path that would is refused by its name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from archivist.edges.integrations import missing_library_error, with_actor

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anyio.to_thread import run_sync
except ImportError as error:
    raise missing_library_error("anthropic", "anthropic") from error

from archivist.archive.memory_files_service import MemoryFiles
from archivist.errors import ArchivistError

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaFunctionToolResultType
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from archivist.archive.memory_files_service import MemoryFile
    from archivist.bank import Bank
    from archivist.records import Actor

ROOT = "/memories"
_MOST_LINES = 999_999
_MOST_PATH_BYTES = 1_024
_MOST_ENCODED = 4
_DEPTH = 2
_AROUND = 2
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"

# What each command needs; a model may leave out or mix up anything.
_NEEDED: dict[str, dict[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}

T = TypeVar("T")


class ArchivistMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool in a bank, as the agent `claude` where that is a person's, or as `actor` says."""

    def __init__(
        self,
        bank: Bank,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(with_actor(bank, "claude", actor))

    def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        """Do what a command asks, once it is whole."""
        _check_command(command)
        return super().execute(command)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a folder, or a file with its lines numbered."""
        path = resolve_path(command.path)
        text = _call_bank(partial(self._files.read, path)) if path else None
        if text is not None:
            return _view_file(command.path, text, command.view_range)
        files = _call_bank(partial(self._files.files, path))
        if path and not files:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _view_folder(command.path, path, files)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file."""
        path = resolve_path(command.path)
        if not _call_bank(partial(self._files.create, path, command.file_text)):
            raise ToolError(f"File {command.path} already exists")
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Put a text in the place of another one, which the file holds once."""
        snippet: list[str] = []

        def edit(text: str) -> str:
            line = _find_unique_line(text, command.old_str, command.path)
            changed = text.replace(command.old_str, command.new_str)
            snippet[:] = _number_lines(changed.split("\n"), line - _AROUND, line + _AROUND + 1)
            return changed

        self._edit_file(command.path, edit)
        return "\n".join((_EDITED, *snippet))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines in after another one."""

        def edit(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            return changed if changed.endswith("\n") else f"{changed}\n"

        self._edit_file(command.path, edit)
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Let a file go, or a folder with all that is in it."""
        path = resolve_path(command.path)
        if not path:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        if not _call_bank(partial(self._files.remove, path)):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a folder another name."""
        old, new = resolve_path(command.old_path), resolve_path(command.new_path)
        if not old:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if self._path_exists(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        if not _call_bank(partial(self._files.rename, old, new)):
            raise ToolError(f"The path {command.old_path} does not exist")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Let all files go."""
        _call_bank(partial(self._files.remove, ""))
        return "All memory cleared"

    def _edit_file(self, given: str, edit: Callable[[str], str]) -> None:
        path = resolve_path(given)
        if path and _call_bank(partial(self._files.change, path, edit)):
            return
        if self._path_exists(path):
            raise ToolError(f"The path {given} is not a file.")
        raise ToolError(f"The path {given} does not exist. Please provide a valid path.")

    def _path_exists(self, path: str) -> bool:
        if not path or _call_bank(partial(self._files.read, path)) is not None:
            return True
        return bool(_call_bank(partial(self._files.files, path)))


class AsyncArchivistMemoryTool(BetaAsyncAbstractMemoryTool):
    """Claude's memory tool in a bank, for the asynchronous client."""

    def __init__(
        self,
        bank: Bank,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = ArchivistMemoryTool(bank, actor=actor)

    async def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        """Do what a command asks, once it is whole."""
        _check_command(command)
        return await super().execute(command)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a folder, or a file with its lines numbered."""
        return await run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file."""
        return await run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Put a text in the place of another one, which the file holds once."""
        return await run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines in after another one."""
        return await run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Let a file go, or a folder with all that is in it."""
        return await run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a folder another name."""
        return await run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Let all files go."""
        return await run_sync(self._tool.clear_all_memory)


def resolve_path(given: str) -> str:
    """Return a path below `/memories` without its detours; raise ToolError when it leads anywhere else."""
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {given}")
    if any(_leads_up(spelling) for spelling in _decoded_variants(given)):
        raise ToolError(f"Path {given} would escape {ROOT} directory")
    parts: list[str] = []
    for part in given.removeprefix(ROOT).split("/"):
        if part == "..":
            if not parts:
                raise ToolError(f"Path {given} would escape {ROOT} directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    path = "/".join(parts)
    if any(not character.isprintable() for character in path):
        raise ToolError(f"Path {given!r} has a character that no name may have")
    if len(path.encode("utf-8", "replace")) > _MOST_PATH_BYTES:
        raise ToolError(f"Path is longer than {_MOST_PATH_BYTES} bytes: {given[:80]}…")
    return path


def _decoded_variants(path: str) -> Iterator[str]:
    """Yield what a path becomes when somebody decodes it, once or more often, and for another system."""
    for _ in range(_MOST_ENCODED):
        decoded = unquote(path)
        if "\\" in path:
            yield path.replace("\\", "/")
        if decoded == path:
            return
        yield decoded.replace("\\", "/")
        path = decoded


def _leads_up(path: str) -> bool:
    return ".." in path.split("/")


def _check_command(command: object) -> None:
    """Refuse a command that is unknown, or lacks what it needs."""
    name = getattr(command, "command", None)
    if name not in _NEEDED:
        raise ToolError(f"Unknown command: {name}. One of {', '.join(_NEEDED)}")
    for field, kind in _NEEDED[name].items():
        if not isinstance(getattr(command, field, None), kind):
            raise ToolError(f"Invalid `{field}` parameter: {name} needs it, as a {kind.__name__}.")
    seen = getattr(command, "view_range", None)
    if seen is not None and not (isinstance(seen, list) and all(isinstance(each, int) for each in seen)):
        raise ToolError("Invalid `view_range` parameter: two line numbers, the last may be -1.")


def _call_bank(call: Callable[[], T]) -> T:
    """Do something in the bank; what goes wrong there is told to the model."""
    try:
        return call()
    except ArchivistError as error:
        raise ToolError(f"{error.message} ({error.hint})" if error.hint else error.message) from error


def _view_file(given: str, text: str, view_range: list[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {given} exceeds maximum line limit of 999,999 lines.")
    first, last = 0, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        last = len(lines) if view_range[1] == -1 else view_range[1]
        # Counted from the end when it is below zero, as in the SDK.
        last = last if last >= 0 else max(0, len(lines) + last)
    # The line end stands even when the range is empty.
    shown = "\n".join(_number_lines(lines, first, last))
    return f"Here's the content of {given} with line numbers:\n{shown}"


def _number_lines(lines: list[str], first: int, last: int) -> list[str]:
    first, last = max(0, first), min(len(lines), last)
    return [f"{number + 1:>6}\t{lines[number]}" for number in range(first, last)]


def _find_unique_line(text: str, old: str, given: str) -> int:
    """Return the line, from 0, that holds a text which must be there once."""
    if not old:
        raise ToolError("No replacement was performed, old_str is empty.")
    count = text.count(old)
    if count == 0:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {given}.")
    if count > 1:
        lines = ", ".join(map(str, _matching_lines(text, old)))
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return text.count("\n", 0, text.find(old))


def _matching_lines(text: str, old: str) -> Iterator[int]:
    """Yield the line of each place that holds a text, counting every line once."""
    line, seen = 1, 0
    place = text.find(old)
    while place != -1:
        line += text.count("\n", seen, place)
        seen = place
        yield line
        place = text.find(old, place + 1)


def _view_folder(given: str, path: str, files: list[MemoryFile]) -> str:
    """Show what is in a folder, two levels deep, without what is hidden."""
    sizes: dict[tuple[str, ...], int] = {(): 0}
    folders: set[tuple[str, ...]] = set()
    for file in files:
        parts = tuple(file.path[len(path) :].strip("/").split("/"))
        for depth in range(len(parts) + 1):
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + file.size_bytes
        folders |= {parts[:depth] for depth in range(1, len(parts))}
    shown = given.rstrip("/")
    lines = [f"{size_text(sizes.pop(()))}\t{given}"]
    for parts, size in sorted(sizes.items()):
        if len(parts) <= _DEPTH and not any(part.startswith(".") for part in parts):
            lines.append(f"{size_text(size)}\t{shown}/{'/'.join(parts)}{'/' if parts in folders else ''}")
    header = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:"
    return "\n".join((header, *lines))


def size_text(size_bytes: int) -> str:
    """Return a size as the SDK writes it: `0B`, `512B`, `1.5K`."""
    if size_bytes == 0:
        return "0B"
    power = min((size_bytes.bit_length() - 1) // 10, 3)
    size = size_bytes / 1024**power
    return f"{int(size)}{'BKMG'[power]}" if size == int(size) else f"{size:.1f}{'BKMG'[power]}"
