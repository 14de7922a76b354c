"""Change a client's settings: plan, back up, then write all files or none.

The backup beside a file, `NAME.archivist-backup`, is the file as it was without us. While a file is exactly
what installing makes of its backup, uninstalling restores the backup's bytes; otherwise it removes only our
entries. A folder that was there and empty gets an empty backup file as a mark. Git is told to ignore both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from archivist.edges.install.clients import InstallTarget
from archivist.errors import InputError
from archivist.files.git import add_exclusion, ask_git, exclude_file
from archivist.files.write import refuse_links, refuse_read_only, replace_file

SUFFIX = ".archivist-backup"
_BOM = "\ufeff"
# The folders that installing may create.
_FOLDERS = (
    ".claude", ".codex", ".config", ".copilot", ".cursor", ".gemini", ".github", ".vscode", "Code", "User",
    "hooks", "rules",
)  # fmt: skip
# The first line tells our exclusion from one that the user wrote.
_EXCLUSION = f"# Copies of settings that archivist keeps until it is uninstalled\n*{SUFFIX}".encode()


class InstallChange(NamedTuple):
    """The change of one file; None means no file, before or after.

    The file keeps its permissions, or gets those of `mode_from`.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    mode_from: Path | None = None

    @property
    def action(self) -> str:
        """Return what happens to the file in one word."""
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "change"

    def diff(self, root: Path, root_name: str = "") -> str:
        """Return the change as a unified diff; names below a root begin with the root's name."""
        is_inside = self.path.is_relative_to(root)
        name = str(Path(root_name) / self.path.relative_to(root)) if is_inside else str(self.path)

        def side(data: bytes | None) -> tuple[list[str], str]:
            lines = (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n\\ No newline at end of file\n"
            return lines, "/dev/null" if data is None else name

        (old, old_name), (new, new_name) = side(self.before), side(self.after)
        return "".join(unified_diff(old, new, old_name, new_name))


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes, or None when there is no file."""
    from archivist.files.open import read_bounded

    try:
        return read_bounded(path) if path.exists() else None
    except InputError as error:
        hint = "correct or move it, then try again"
        raise InputError(f"settings cannot be read: {error.message}", hint=hint) from None


def plan_install(targets: Sequence[InstallTarget]) -> list[InstallChange]:
    """Return what installing would change; nothing is written."""
    files = [(target, read_file(target.path)) for target in targets]
    return [
        InstallChange(target.path, before, _edit_bytes(target.path, before, target.add))
        for target, before in files
    ]


def plan_uninstall(targets: Sequence[InstallTarget]) -> list[InstallChange]:
    """Return what uninstalling would change; nothing is written."""
    files = [(target, read_file(target.path)) for target in targets]
    return [
        InstallChange(target.path, before, None if before is None else _restore_bytes(target, before))
        for target, before in files
    ]


def holds_ours(target: InstallTarget) -> bool:
    """Say whether a file has any entry of ours."""
    before = read_file(target.path)
    return before is not None and _remove_ours(target, before, None) != before


def refuse_unwritable(changes: Sequence[InstallChange]) -> None:
    """Raise InputError when a file that would change is read-only."""
    for change in changes:
        if change.action != "unchanged":
            refuse_read_only(change.path)


def apply_changes(changes: Sequence[InstallChange], targets: Sequence[InstallTarget] = ()) -> list[Path]:
    """Make all the changes or none; return the backups that were written beside the targets' files."""
    refuse_unwritable(changes)
    wanted = [change for change in changes if change.action != "unchanged"]
    without_ours = {target.path for target in targets if not holds_ours(target)}
    backups, used_backups, marks = [], [], set()
    for change in wanted:
        backup = _backup_of(change.path)
        saved = read_file(backup)
        if change.before is not None and change.after is not None and change.path in without_ours:
            backups.append(InstallChange(backup, saved, change.before, mode_from=change.path))
        elif saved is not None and saved == change.after:
            used_backups.append(InstallChange(backup, saved, None))
        # Folders that are there and empty are marked, so that uninstalling leaves them.
        for folder in _installed_folders(change.path) if change.before is None else ():
            if folder.is_dir() and not any(folder.iterdir()):
                marks.add(folder / SUFFIX)
    marked = [InstallChange(mark, None, b"") for mark in sorted(marks)]
    _apply_steps([*backups, *marked, *wanted, *used_backups])
    for change in wanted:
        for folder in _installed_folders(change.path) if change.after is None else ():
            mark = folder / SUFFIX
            with suppress(OSError):
                if list(folder.iterdir()) == [mark]:
                    mark.unlink()
                else:
                    remove_empty([folder])
    return [backup.path for backup in backups]


def _installed_folders(path: Path) -> list[Path]:
    """Return the folders of a file that installing may have created, inner ones first."""
    folders: list[Path] = []
    for folder in path.parents:
        # A hidden folder is the outermost: above it is the user's project or home.
        if folder.name not in _FOLDERS or (folders and folders[-1].name.startswith(".")):
            break
        folders.append(folder)
    return folders


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders that are empty, in the given order."""
    for folder in folders:
        # rmdir fails for a folder that is not empty.
        with suppress(OSError):
            folder.rmdir()


def _apply_steps(steps: Sequence[InstallChange]) -> None:
    """Apply all steps; if one fails, undo those before it and raise InputError."""
    done: list[tuple[InstallChange, list[Path]]] = []
    for step in steps:
        new_folders = [folder for folder in step.path.resolve().parents if not folder.exists()]
        try:
            _apply_step(step)
        except InputError as error:
            remove_empty(new_folders)
            stuck = []
            for earlier, folders in reversed(done):
                try:
                    _apply_step(earlier._replace(before=earlier.after, after=earlier.before))
                except InputError:
                    stuck.append(repr(str(earlier.path)))
                remove_empty(folders)
            end = f"this stays changed: {', '.join(stuck)}" if stuck else "nothing was changed"
            raise InputError(f"{error.message}; {end}", hint=error.hint) from None
        done.append((step, new_folders))


def _apply_step(step: InstallChange) -> None:
    """Write or remove one file."""
    if read_file(step.path) != step.before:
        raise InputError(f"{str(step.path)!r} was changed meanwhile", hint="look at it, then try again")
    try:
        if step.after is None:
            refuse_links(step.path)
            step.path.unlink()
        else:
            replace_file(step.path, step.after, mode_from=step.mode_from)
    except OSError as error:
        verb = "removed" if step.after is None else "written"
        raise InputError(
            f"{str(step.path)!r} cannot be {verb}: {error.strerror}",
            hint="check the permissions of the file and its folder",
        ) from None


def _restore_bytes(target: InstallTarget, before: bytes) -> bytes | None:
    """Return a file without our entries: its backup if nothing else has changed, else with ours removed."""
    backup = read_file(_backup_of(target.path))
    if backup is None:
        if _edit_bytes(target.path, None, target.add) == before:
            return None
    else:
        with suppress(InputError):
            if _edit_bytes(target.path, backup, target.add) == before:
                return backup
    after = _remove_ours(target, before, backup)
    is_empty = after.decode("utf-8", "replace").strip(_BOM).strip() in ("", "{}")
    return None if is_empty and after != before and backup is None else after


def _remove_ours(target: InstallTarget, data: bytes, backup: bytes | None) -> bytes:
    original = None
    # A damaged backup is ignored.
    with suppress(InputError, UnicodeDecodeError):
        if backup is not None:
            text = backup.decode("utf-8").removeprefix(_BOM)
            target.take(text, None)
            original = text
    return _edit_bytes(target.path, data, lambda text: target.take(text, original))


def _edit_bytes(path: Path, data: bytes | None, edit: Callable[[str], str]) -> bytes:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8", hint="save it as UTF-8, then try again") from None
    bom = _BOM if text.startswith(_BOM) else ""
    after = edit(text.removeprefix(bom))
    return (bom + after).encode("utf-8")


def has_backup(path: Path) -> bool:
    """Say whether a file has a backup, or one of its folders a mark."""
    return _backup_of(path).exists() or any((folder / SUFFIX).exists() for folder in _installed_folders(path))


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def exclude_from_git(backups: Iterable[Path]) -> None:
    """Add backups to `info/exclude` of their repositories, which no commit carries."""
    for folder in sorted({backup.parent for backup in backups}):
        add_exclusion(folder, _EXCLUSION)


def remove_exclusion(folder: Path) -> None:
    """Remove our lines from `info/exclude` once no worktree of the repository has a backup."""
    path = exclude_file(folder)
    with suppress(OSError, InputError):
        before = read_file(path) if path is not None else None
        if path is None or before is None or _EXCLUSION not in before or _has_backups(folder):
            return
        if before.endswith(b"\n" + _EXCLUSION):
            replace_file(path, before.removesuffix(b"\n" + _EXCLUSION), mode_from=path)
        elif after := before.replace(_EXCLUSION + b"\n", b"", 1):
            replace_file(path, after, mode_from=path)
        else:
            path.unlink()
            path.parent.rmdir()


def _has_backups(folder: Path) -> bool:
    """Say whether a worktree of a folder's repository has a backup; True when git does not answer."""
    listed = ask_git(folder, "worktree", "list", "--porcelain") or b""
    names = [line.removeprefix(b"worktree ") for line in listed.splitlines() if line.startswith(b"worktree ")]
    worktrees = [path for path in (Path(os.fsdecode(name)) for name in names) if path.is_dir()]
    ignored = ("ls-files", "--others", "--ignored", f"--exclude=*{SUFFIX}")
    return not worktrees or any(ask_git(worktree, *ignored) != b"" for worktree in worktrees)
