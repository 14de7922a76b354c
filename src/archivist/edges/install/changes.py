"""Change a client's settings: say what would change, keep a copy of what was, write whole files or none.

The copy beside a file, `NAME.archivist-backup`, is the file as it was without us. While a file is exactly
what installing makes of that copy, uninstalling gives the copy's bytes back; else it takes out only ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from archivist.edges.install.clients import Target
from archivist.errors import InputError
from archivist.replacing import replace_file

SUFFIX = ".archivist-backup"
_BOM = "\ufeff"
_RIGHTS = "check the rights of the file and its folder"
# The folders that installing may have made.
_FOLDERS = (".claude", ".codex", ".copilot", ".cursor", ".gemini", ".github", ".vscode", "hooks", "rules")


class Change(NamedTuple):
    """What would become of one file; None stands for no file, before or after."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        """Return what happens to the file in one word."""
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "change"

    def diff(self, root: Path) -> str:
        """Return the change as a unified diff, its names relative to a folder where they lie in it."""
        name = str(self.path.relative_to(root)) if self.path.is_relative_to(root) else str(self.path)
        old, new = (self._lines(each) for each in (self.before, self.after))
        names = ("/dev/null" if self.before is None else name, "/dev/null" if self.after is None else name)
        return "".join(unified_diff(old, new, *names))

    def _lines(self, data: bytes | None) -> list[str]:
        lines = (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n\\ No newline at end of file\n"
        return lines


def to_install(targets: Sequence[Target]) -> list[Change]:
    """Return what installing would change; nothing is written."""
    found = []
    for target in targets:
        before = _read(target.path)
        found.append(Change(target.path, before, _edited(target.path, before, target.add)))
    return found


def to_uninstall(targets: Sequence[Target]) -> list[Change]:
    """Return what uninstalling would change; nothing is written."""
    found = []
    for target in targets:
        before = _read(target.path)
        found.append(Change(target.path, before, None if before is None else _restored(target, before)))
    return found


def is_ours(target: Target) -> bool:
    """Say whether a file holds anything of ours."""
    before = _read(target.path)
    return before is not None and _edited(target.path, before, target.take) != before


def write(changes: Sequence[Change], targets: Sequence[Target]) -> list[Path]:
    """Make the changes, each file whole or not at all; return the copies that were put beside them."""
    by_path = {target.path: target for target in targets}
    copies = []
    for change in changes:
        if change.action == "unchanged":
            continue
        copy = _backup_of(change.path)
        if change.after is None:
            _remove(change.path)
            continue
        if change.before is not None and not is_ours(by_path[change.path]):
            _replace(copy, change.before, like=change.path)
            copies.append(copy)
        _replace(change.path, change.after, like=change.path)
        if copy.is_file() and copy.read_bytes() == change.after:
            copy.unlink()
    return copies


def _restored(target: Target, before: bytes) -> bytes | None:
    """Return the file without us: as it was where nothing else has changed, else with ours cut out."""
    copy = _backup_of(target.path)
    if copy.is_file():
        was = copy.read_bytes()
        with suppress(InputError):
            if _edited(target.path, was, target.add) == before:
                return was
    elif _edited(target.path, None, target.add) == before:
        return None
    after = _edited(target.path, before, target.take)
    is_hollow = after is not None and after.decode("utf-8", "replace").strip(_BOM).strip() in ("", "{}")
    return None if is_hollow and after != before and not copy.is_file() else after


def _edited(path: Path, data: bytes | None, edit: Callable[[str], str]) -> bytes | None:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8", hint="save it as UTF-8, then again") from None
    bom = _BOM if text.startswith(_BOM) else ""
    after = edit(text.removeprefix(bom))
    if data is None and not after:
        return None
    return (bom + after).encode("utf-8")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be read: {error.strerror}", hint="mend or move it, then again"
        ) from None


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _replace(path: Path, data: bytes, *, like: Path) -> None:
    try:
        replace_file(path, data, like=like)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror}", hint=_RIGHTS) from None


def _remove(path: Path) -> None:
    """Remove a file that we made, and the folders that are empty without it."""
    try:
        path.unlink()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be removed: {error.strerror}", hint=_RIGHTS) from None
    for folder in list(path.parents)[:2]:
        # A folder with anything in it says so by not going.
        if folder.name in _FOLDERS:
            with suppress(OSError):
                folder.rmdir()
