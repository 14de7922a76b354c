"""Change a client's settings: say what would change, keep a copy of what was, write all files or none.

The copy beside a file, `NAME.archivist-backup`, is the file as it was without us. While a file is exactly
what installing makes of that copy, uninstalling gives the copy's bytes back; else it takes out only ours.
A folder that was there, but empty, gets a mark of that name. Git is told not to see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from archivist.edges.install.clients import InstallTarget
from archivist.errors import InputError
from archivist.files.compare_and_write import refuse_read_only
from archivist.files.write import replace_file

SUFFIX = ".archivist-backup"
_BOM = "\ufeff"
_RIGHTS = "check the rights of the file and its folder"
# The folders that installing may have made.
_FOLDERS = (
    ".claude", ".codex", ".config", ".copilot", ".cursor", ".gemini", ".github", ".vscode", "Code", "User",
    "hooks", "rules",
)  # fmt: skip


class InstallChange(NamedTuple):
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

    def diff(self, root: Path, root_name: str = "") -> str:
        """Return the change as a unified diff, its names from a folder on, and what that is called."""
        is_inside = self.path.is_relative_to(root)
        name = str(Path(root_name) / self.path.relative_to(root)) if is_inside else str(self.path)
        old, new = (self._lines(each) for each in (self.before, self.after))
        names = ("/dev/null" if self.before is None else name, "/dev/null" if self.after is None else name)
        return "".join(unified_diff(old, new, *names))

    def _lines(self, data: bytes | None) -> list[str]:
        lines = (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n\\ No newline at end of file\n"
        return lines


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes, or None when there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be read: {error.strerror}", hint="mend or move it, then again"
        ) from None


def plan_install(targets: Sequence[InstallTarget]) -> list[InstallChange]:
    """Return what installing would change; nothing is written."""
    found = []
    for target in targets:
        before = read_file(target.path)
        found.append(InstallChange(target.path, before, _edit_bytes(target.path, before, target.add)))
    return found


def plan_uninstall(targets: Sequence[InstallTarget]) -> list[InstallChange]:
    """Return what uninstalling would change; nothing is written."""
    found = []
    for target in targets:
        before = read_file(target.path)
        found.append(
            InstallChange(target.path, before, None if before is None else _restore_bytes(target, before))
        )
    return found


def holds_ours(target: InstallTarget) -> bool:
    """Say whether a file holds anything of ours."""
    before = read_file(target.path)
    return before is not None and _remove_ours(target, before, None) != before


def refuse_unwritable(changes: Sequence[InstallChange]) -> None:
    """Raise InputError where a file that would change is read-only."""
    for change in changes:
        if change.action != "unchanged":
            refuse_read_only(change.path)


def apply_changes(changes: Sequence[InstallChange], targets: Sequence[InstallTarget] = ()) -> list[Path]:
    """Make all the changes or none; return the copies that were put beside the files of the targets."""
    refuse_unwritable(changes)
    wanted = [change for change in changes if change.action != "unchanged"]
    strangers = {target.path for target in targets if not holds_ours(target)}
    steps, spent = [], []
    for change in wanted:
        copy = _backup_of(change.path)
        known = read_file(copy)
        if change.before is not None and change.after is not None and change.path in strangers:
            steps.append(_Step(copy, known, change.before, like=change.path))
        elif known is not None and known == change.after:
            spent.append(_Step(copy, known, None, like=copy))
    copies = [step.path for step in steps]
    steps += [_Step(mark, None, b"", like=mark) for mark in _empty_folder_marks(wanted)]
    steps += [_Step(change.path, change.before, change.after, like=change.path) for change in wanted]
    _apply_steps([*steps, *spent])
    for change in wanted:
        if change.after is None:
            _remove_made_folders(_installed_folders(change.path))
    return copies


def _installed_folders(path: Path) -> list[Path]:
    """Return the folders of a file that installing may have made, inner ones first."""
    found: list[Path] = []
    for folder in path.parents:
        # A hidden folder is the outermost: what it lies in is somebody's project or home.
        if folder.name not in _FOLDERS or (found and found[-1].name.startswith(".")):
            break
        found.append(folder)
    return found


def _empty_folder_marks(wanted: Sequence[InstallChange]) -> list[Path]:
    """Return the marks for folders that were there with nothing in them, so that they stay when we go."""
    made = [change.path for change in wanted if change.before is None]
    empty = {
        each
        for path in made
        for each in _installed_folders(path)
        if each.is_dir() and not any(each.iterdir())
    }
    return [folder / SUFFIX for folder in sorted(empty)]


def _remove_made_folders(folders: Iterable[Path]) -> None:
    """Remove folders that installing made, once nothing is in them; what had a mark was there before."""
    for folder in folders:
        mark = folder / SUFFIX
        with suppress(OSError):
            if list(folder.iterdir()) == [mark]:
                mark.unlink()
            else:
                remove_empty([folder])


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders with nothing in them, inner ones first as given."""
    for folder in folders:
        # A folder with anything in it says so by not going.
        with suppress(OSError):
            folder.rmdir()


class _Step(NamedTuple):
    """One file to write or to remove, and the file whose rights it gets."""

    path: Path
    before: bytes | None
    after: bytes | None
    like: Path


def _apply_steps(steps: Sequence[_Step]) -> None:
    """Take all steps, or take those back that were taken and say so."""
    done: list[tuple[_Step, list[Path]]] = []
    for step in steps:
        folders = [each for each in step.path.resolve().parents if not each.exists()]
        try:
            _apply_step(step)
        except InputError as error:
            remove_empty(folders)
            stuck = _roll_back(done)
            end = f"this stays changed: {', '.join(stuck)}" if stuck else "nothing was changed"
            raise InputError(f"{error.message}; {end}", hint=error.hint) from None
        done.append((step, folders))


def _roll_back(done: Sequence[tuple[_Step, list[Path]]]) -> list[str]:
    """Undo steps and the folders they made, the last first; return the files that could not be put back."""
    stuck = []
    for step, folders in reversed(done):
        try:
            _apply_step(_Step(step.path, step.after, step.before, step.like))
        except InputError:
            stuck.append(repr(str(step.path)))
        remove_empty(folders)
    return stuck


def _apply_step(step: _Step) -> None:
    """Write or remove one file; a link stays, and what it points to is written or removed."""
    if read_file(step.path) != step.before:
        raise InputError(f"{str(step.path)!r} was changed meanwhile", hint="look at it, then again")
    try:
        if step.after is None:
            step.path.resolve().unlink()
        else:
            replace_file(step.path, step.after, mode_from=step.like)
    except OSError as error:
        verb = "removed" if step.after is None else "written"
        raise InputError(f"{str(step.path)!r} cannot be {verb}: {error.strerror}", hint=_RIGHTS) from None


def _restore_bytes(target: InstallTarget, before: bytes) -> bytes | None:
    """Return the file without us: as it was where nothing else has changed, else with ours cut out."""
    was = read_file(_backup_of(target.path))
    if was is None:
        if _edit_bytes(target.path, None, target.add) == before:
            return None
    else:
        with suppress(InputError):
            if _edit_bytes(target.path, was, target.add) == before:
                return was
    after = _remove_ours(target, before, was)
    is_hollow = after.decode("utf-8", "replace").strip(_BOM).strip() in ("", "{}")
    return None if is_hollow and after != before and was is None else after


def _remove_ours(target: InstallTarget, data: bytes, was: bytes | None) -> bytes:
    known = None if was is None else _decode_backup(target, was)
    return _edit_bytes(target.path, data, lambda text: target.take(text, known)) or b""


def _decode_backup(target: InstallTarget, copy: bytes) -> str | None:
    """Return a copy's text; None for one that is broken, and tells nothing about what was."""
    with suppress(InputError, UnicodeDecodeError):
        text = copy.decode("utf-8").removeprefix(_BOM)
        target.take(text, None)
        return text
    return None


def _edit_bytes(path: Path, data: bytes | None, edit: Callable[[str], str]) -> bytes | None:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8", hint="save it as UTF-8, then again") from None
    bom = _BOM if text.startswith(_BOM) else ""
    after = edit(text.removeprefix(bom))
    if data is None and not after:
        return None
    return (bom + after).encode("utf-8")


def has_backup(path: Path) -> bool:
    """Say whether a copy of a file, or the mark of its folder, is there."""
    return _backup_of(path).exists() or any((folder / SUFFIX).exists() for folder in _installed_folders(path))


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)
