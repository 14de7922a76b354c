"""Keep the files of Claude's memory tool in a bank.

The answers are worded as those of the SDK's tool for a folder, which models were trained with. The files are
records, not files on disk, so no link can lead out; a path that would is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from posixpath import normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from archivist.edges.integrations import error_with_hint, missing_library_error, with_actor

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anyio.to_thread import run_sync
except ImportError as error:
    raise missing_library_error("anthropic", "anthropic") from error

from archivist.errors import ArchivistError, without_middle

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaFunctionToolResultType
    from anthropic.types import beta

    from archivist.archive.items_service import MemoryFile
    from archivist.bank import Bank
    from archivist.records import Actor

ROOT = "/memories"
# The SDK's own limit: its line numbers have six digits.
_MAX_LINES = 999_999
_MAX_PATH_BYTES = 1_024
# A path could be percent-encoded several times over; nobody decodes it more often than this.
_MAX_DECODINGS = 4
_DEPTH = 2
_CONTEXT_LINES = 2
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"

# The parameters of each command: a model may omit or confuse any.
_PARAMETERS: dict[str, dict[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


class ArchivistMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool in a bank; acts as `actor`, else as the agent `claude` for a person's bank."""

    def __init__(
        self,
        bank: Bank,
        *,
        cache_control: beta.BetaCacheControlEphemeralParam | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = with_actor(bank, "claude", actor).memory_files

    def execute(self, command: beta.BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        """Check a command and run it; the bank's errors go to the model as tool errors."""
        try:
            _check_command(command)
            return super().execute(command)
        except ArchivistError as error:
            raise ToolError(error_with_hint(error)) from error
        except ToolError as error:
            raise ToolError(without_middle(str(error))) from error

    def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        """Show a folder, or a file with its lines numbered."""
        path = resolve_path(command.path)
        text = self._files.read(path) if path else None
        if text is None:
            files = self._files.files(path)
            if path and not files:
                raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
            return _view_folder(command.path, path, files)
        lines, view_range = text.split("\n"), command.view_range
        if len(lines) > _MAX_LINES:
            raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = 0, len(lines)
        if view_range and len(view_range) == 2:
            first = max(1, view_range[0]) - 1
            last = len(lines) if view_range[1] == -1 else view_range[1]
            # Below zero it counts from the end, as in the SDK.
            last = last if last >= 0 else max(0, len(lines) + last)
        # The newline is there even for an empty range.
        shown = "\n".join(_number_lines(lines, first, last))
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        path = resolve_path(command.path)
        if not self._files.create(path, command.file_text):
            raise ToolError(f"File {command.path} already exists")
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        snippet: list[str] = []

        def edit(text: str) -> str:
            old = command.old_str
            if not old:
                raise ToolError("No replacement was performed, old_str is empty.")
            count = text.count(old)
            if count == 0:
                why = f"old_str `{old}` did not appear verbatim in {command.path}."
                raise ToolError(f"No replacement was performed, {why}")
            if count > 1:
                line_numbers = list(accumulate((character == "\n" for character in text), initial=1))
                # The lookahead finds overlapping occurrences, as the SDK does.
                places = (match.start() for match in re.finditer(f"(?={re.escape(old)})", text))
                lines = ", ".join(str(line_numbers[place]) for place in places)
                why = f"Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
                raise ToolError(f"No replacement was performed. {why}")
            changed, line = text.replace(old, command.new_str), text.count("\n", 0, text.find(old))
            snippet[:] = _number_lines(changed.split("\n"), line - _CONTEXT_LINES, line + _CONTEXT_LINES + 1)
            return changed

        self._edit_file(command.path, edit)
        return "\n".join((_EDITED, *snippet))

    def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""

        def edit(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                within = f"It should be within the range [0, {len(lines)}]."
                raise ToolError(f"Invalid `insert_line` parameter: {command.insert_line}. {within}")
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            return changed if changed.endswith("\n") else f"{changed}\n"

        self._edit_file(command.path, edit)
        return f"The file {command.path} has been edited."

    def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with its contents."""
        path = resolve_path(command.path)
        if not path:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        if not self._files.remove(path):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a file or a folder."""
        old, new = resolve_path(command.old_path), resolve_path(command.new_path)
        if not old:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if self._path_exists(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        if not self._files.rename(old, new):
            raise ToolError(f"The path {command.old_path} does not exist")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        self._files.remove("")
        return "All memory cleared"

    def _edit_file(self, given: str, edit: Callable[[str], str]) -> None:
        path = resolve_path(given)
        if path and self._files.change(path, edit):
            return
        if self._path_exists(path):
            raise ToolError(f"The path {given} is not a file.")
        raise ToolError(f"The path {given} does not exist. Please provide a valid path.")

    def _path_exists(self, path: str) -> bool:
        if not path or self._files.read(path) is not None:
            return True
        return bool(self._files.files(path))


class AsyncArchivistMemoryTool(BetaAsyncAbstractMemoryTool):
    """Claude's memory tool in a bank, for the asynchronous client."""

    def __init__(
        self,
        bank: Bank,
        *,
        cache_control: beta.BetaCacheControlEphemeralParam | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.tool = ArchivistMemoryTool(bank, actor=actor)

    async def execute(self, command: beta.BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        """Check a command and run it in a thread."""
        return await run_sync(self.tool.execute, command)

    # Every command says itself which it is.
    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await run_sync(self.tool.clear_all_memory)


def resolve_path(given: str) -> str:
    """Return a path below `/memories`, normalized; raise ToolError when it leads anywhere else."""
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {given}")
    decoded = given
    for _ in range(_MAX_DECODINGS):
        decoded = unquote(decoded)
    # What it becomes when it is percent-decoded, or read by Windows, must not lead out either.
    decoded = decoded.replace("\\", "/")
    is_disguised = decoded != given and ".." in decoded.split("/")
    whole = normpath(given)
    if is_disguised or (whole != ROOT and not whole.startswith(f"{ROOT}/")):
        raise ToolError(f"Path {given} would escape {ROOT} directory")
    path = whole.removeprefix(ROOT).removeprefix("/")
    if any(not character.isprintable() for character in path):
        raise ToolError(f"Path {given!r} has a character that is not printable")
    if len(path.encode("utf-8", "replace")) > _MAX_PATH_BYTES:
        raise ToolError(f"Path is longer than {_MAX_PATH_BYTES} bytes: {given[:80]}…")
    return path


def _check_command(command: object) -> None:
    """Raise ToolError for an unknown command, or one with missing or malformed parameters."""
    name = getattr(command, "command", None)
    if name not in _PARAMETERS:
        raise ToolError(f"Unknown command: {name}. One of {', '.join(_PARAMETERS)}")
    for field, kind in _PARAMETERS[name].items():
        if not isinstance(getattr(command, field, None), kind):
            raise ToolError(f"Invalid `{field}` parameter: {name} needs it, as a {kind.__name__}.")
    lines = getattr(command, "view_range", None)
    if lines is not None and not (isinstance(lines, list) and all(isinstance(line, int) for line in lines)):
        raise ToolError("Invalid `view_range` parameter: two line numbers, the last may be -1.")


def _number_lines(lines: list[str], first: int, last: int) -> list[str]:
    first, last = max(0, first), min(len(lines), last)
    return [f"{number + 1:>6}\t{lines[number]}" for number in range(first, last)]


def _view_folder(given: str, path: str, files: list[MemoryFile]) -> str:
    """List a folder two levels deep, without hidden names."""
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
