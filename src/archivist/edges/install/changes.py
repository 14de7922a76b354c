"""Change a client's settings: plan, back up, then write all files or none; and note what setup did.

The backup of a file is the file as it was without us. While a file is exactly what installing makes of its
backup, uninstalling restores the backup's bytes; otherwise it removes only our entries. A folder that was
there and empty gets an empty backup as a mark. Backups lie under the user's home: beside the file, one that a
repository brought would be taken for ours, and ours would be committed with it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from archivist.edges.hook_events import CLIENTS
from archivist.edges.install.clients import (
    NO_SERVER,
    InstallLocation,
    InstallTarget,
    has_server,
    program_for,
    targets,
)
from archivist.errors import InputError
from archivist.files.git import add_exclusion, is_tracked, is_visible, remove_exclusion
from archivist.files.open import read_bounded, real_path
from archivist.files.worktrees import worktrees_of
from archivist.files.write import refuse_links, refuse_read_only, replace_file
from archivist.paths import SETUP_FILE, home_folder

_SUFFIX = ".archivist-backup"
_BACKUPS = "settings"
_BOM = "\ufeff"
# The folders that installing may create.
_FOLDERS = (
    ".claude", ".codex", ".config", ".copilot", ".cursor", ".gemini", ".github", ".opencode", ".vscode",
    "Code", "User", "copilot", "hooks", "opencode", "plugins", "rules",
)  # fmt: skip
NO_LOCAL_SERVER = (
    "lessons need the hooks alone; so that the agent can search by itself, add the MCP server for yourself"
)


class InstallChange(NamedTuple):
    """The change of one file; None means no file, before or after.

    The file keeps its permissions; a new one that is private is its owner's alone.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    is_private: bool = False

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
    """Return a file's bytes, or None when there is no file.

    What is read is printed as a difference, so that a repository's link is refused here as for writing.
    """
    refuse_links(path)
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
    """Say whether a file has any entry of ours; one behind a link has none, for none is written there."""
    try:
        refuse_links(target.path)
    except InputError:
        return False
    before = read_file(target.path)
    return before is not None and _remove_ours(target, before, None) != before


class ClientPlan(NamedTuple):
    """What installing a client, or removing it, changes; `remarks` say what is left out and why."""

    client: str
    place: InstallLocation
    targets: Sequence[InstallTarget]
    changes: Sequence[InstallChange]
    remarks: Sequence[str] = ()
    # What adds the MCP server, where it is left out.
    add_server: str = ""

    @property
    def is_changed(self) -> bool:
        """Say whether anything would change."""
        return any(change.action != "unchanged" for change in self.changes)

    @property
    def hook_files(self) -> frozenset[Path]:
        """Return the files that have the hooks, or shall have them."""
        return frozenset(target.path for target in self.targets if target.hooks)

    def view(self) -> dict[str, object]:
        """Return the client and its files as plain values."""
        return {"client": self.client, "changes": [str(change.path) for change in self.changes]}

    def left_files(self) -> list[Path]:
        """Return the files that a removal leaves: without our hooks, or with another server of our name."""
        return [
            change.path
            for target, change in zip(self.targets, self.changes, strict=True)
            if change.before is not None and change.action == "unchanged"
            if target.hooks or target.has_foreign_server(change.before.decode("utf-8", "replace"))
        ]


def plan_client(
    client: str, place: InstallLocation, *, is_removal: bool = False, is_server_alone: bool = False
) -> ClientPlan:
    """Return what installing a client, or removing it, would change; refuse what could not be written."""
    with_server = is_removal or has_server()
    if is_server_alone and not with_server:
        raise InputError(f"no MCP server to install into {client}", hint=NO_SERVER)
    wanted = targets(client, place, with_server=with_server)
    if is_removal and place.is_local and _has_shared_hooks(client, place, wanted):
        # The server is that of the project's own settings.
        wanted = [target for target in wanted if target.hooks]
    remarks, add = ([] if with_server else [f"{client}: {NO_SERVER}"]), ""
    hooks_root = place._replace(is_local=not place.is_user).read_by(client).root
    if client == "codex" and hooks_root != place.root and not is_removal:
        remarks.append(
            f"codex: it reads the hooks of {hooks_root} alone, and of this worktree once merged there"
        )
    is_shared = not place.is_local or is_removal
    committed = [] if is_shared else [target for target in wanted if is_tracked(target.path)]
    # An unpacked archive is no repository, and holds links all the same.
    for target in () if place.is_user else wanted:
        if target.hooks or target not in committed:
            refuse_links(target.path, below=place.root)
    if not is_shared:
        for target in committed:
            name = str(target.path.relative_to(place.root))
            if target.hooks:
                hint = f"archivist install {client} changes it for everybody, --user installs for you alone"
                raise InputError(f"{name!r} is committed, so that a change would be too", hint=hint)
            remarks.append(f"{client}: {name} is committed and stays as it is, without our MCP server")
        # A pull replaces ignored files unasked: a server that it brings under our name would pass for ours.
        left_out = [target for target in wanted if target.servers and not target.hooks]
        left_out = [each for each in left_out if each not in committed and not holds_ours(each)]
        if left_out:
            add = f"archivist install {client} --user --server"
            add = f"claude mcp add archivist -- {program_for(place)} mcp" if client == "claude-code" else add
        wanted = [target for target in wanted if target not in (*committed, *left_out)]
    if is_server_alone:
        wanted = [target for target in wanted if target.servers]
        changes = plan_install([replace(target, hooks=(), is_versioned=False) for target in wanted])
    else:
        changes = plan_uninstall(wanted) if is_removal else plan_install(wanted)
    refuse_unwritable(changes)
    if not is_shared:
        remarks += [
            f"{client}: {change.path} was there, and git sees it with our hooks: do not commit it"
            for change in changes
            if change.before is not None and change.action == "change" and is_visible(change.path)
        ]
    return ClientPlan(client, place, wanted, changes, remarks, add)


def list_remarks(plans: Sequence[ClientPlan]) -> list[str]:
    """Return the remarks of plans; what is the same for several clients is said once."""
    served = [plan for plan in plans if plan.add_server]
    about: dict[str, list[str]] = {}
    for plan in plans:
        for remark in plan.remarks:
            about.setdefault(remark.removeprefix(f"{plan.client}: "), []).append(plan.client)
    remarks = [f"{', '.join(clients)}: {text}" for text, clients in about.items()]
    if served:
        clients = ", ".join(plan.client for plan in served)
        remarks.append(f"{clients}: {NO_LOCAL_SERVER}: {'; '.join(plan.add_server for plan in served)}")
    return remarks


def _has_shared_hooks(client: str, place: InstallLocation, local: Sequence[InstallTarget]) -> bool:
    """Say whether a project's shared settings have our hooks too, in a file other than its local ones."""
    own = {target.path for target in local}
    shared = targets(client, place._replace(is_local=False))
    return any(target.hooks and target.path not in own and holds_ours(target) for target in shared)


def plan_removal(client: str, places: Iterable[InstallLocation]) -> list[ClientPlan]:
    """Return what removing a client from several places would change, each file once."""
    plans: list[ClientPlan] = []
    seen: set[Path] = set()
    for where in dict.fromkeys(each for place in places for each in (place, place.read_by(client))):
        plan = plan_client(client, where, is_removal=True)
        own = [pair for pair in zip(plan.targets, plan.changes, strict=True) if pair[1].path not in seen]
        seen.update(change.path for _, change in own)
        parts = [target for target, _ in own], [change for _, change in own]
        plans.append(plan._replace(targets=parts[0], changes=parts[1]))
    return plans


def apply_plan(plan: ClientPlan, *, is_removal: bool = False) -> list[Path]:
    """Make the changes of a plan, all or none; return the backups that were written."""
    backups = apply_changes(plan.changes, plan.targets)
    if is_removal:
        remove_exclusions(plan)
    elif plan.place.is_local:
        # A file that was there stays as visible to git as it was.
        for change in plan.changes:
            if change.action == "create" and (top := _worktree_of(change.path)):
                add_exclusion(top, _local_lines(change.path.relative_to(top)))
    return backups


def refuse_unwritable(changes: Sequence[InstallChange]) -> None:
    """Raise InputError when a file that would change is read-only."""
    for change in changes:
        if change.action != "unchanged":
            refuse_read_only(change.path)


def apply_changes(changes: Sequence[InstallChange], targets: Sequence[InstallTarget] = ()) -> list[Path]:
    """Make all the changes or none; return the backups that were written of the targets' files."""
    refuse_unwritable(changes)
    wanted = [change for change in changes if change.action != "unchanged"]
    without_ours = {target.path for target in targets if not holds_ours(target)}
    backups, stale, marks = [], [], set()
    for change in wanted:
        backup = backup_of(change.path)
        saved = read_file(backup)
        if change.before is not None and change.after is not None and change.path in without_ours:
            backups.append(InstallChange(backup, saved, change.before, is_private=True))
        elif saved is not None and (saved == change.after or change.before is None):
            # It was given back, or is of a file that was here before.
            stale.append(InstallChange(backup, saved, None))
        # Folders that are there and empty are marked, so that uninstalling leaves them.
        for folder in _installed_folders(change.path) if change.before is None else ():
            if folder.is_dir() and not any(folder.iterdir()):
                marks.add(backup_of(folder))
    marked = [InstallChange(mark, read_file(mark), b"", is_private=True) for mark in sorted(marks)]
    _apply_steps([*backups, *marked, *wanted, *stale])
    emptied = {
        folder for change in wanted if change.after is None for folder in _installed_folders(change.path)
    }
    # The inner ones first, each once: a folder that was there has lost its mark at a second look.
    used = [step.path for step in stale]
    for folder in sorted(emptied, key=lambda folder: -len(folder.parts)):
        mark = backup_of(folder)
        with suppress(OSError):
            if not mark.exists():
                remove_empty([folder])
            elif not any(folder.iterdir()):
                mark.unlink()
                used.append(mark)
    remove_empty([*(path.parent for path in used), *([used[0].parent.parent] if used else ())])
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
        new_folders = [folder for folder in real_path(step.path).parents if not folder.exists()]
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
            replace_file(step.path, step.after, is_private=step.is_private)
    except OSError as error:
        verb = "removed" if step.after is None else "written"
        raise InputError(
            f"{str(step.path)!r} cannot be {verb}: {error.strerror}",
            hint="check the permissions of the file and its folder",
        ) from None


def _restore_bytes(target: InstallTarget, before: bytes) -> bytes | None:
    """Return a file without our entries: its backup if nothing else has changed, else with ours removed."""
    backup = read_file(backup_of(target.path))
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


def backup_of(path: Path) -> Path:
    """Return where the backup of a file or the mark of a folder lies, below the user's home."""
    real = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118
    return home_folder() / _BACKUPS / sha256(os.fsencode(real)).hexdigest()[:16] / f"{path.name}{_SUFFIX}"


def remove_exclusions(plan: ClientPlan) -> None:
    """Remove our lines from `info/exclude` once no worktree of the repository needs them."""
    for target in plan.targets if plan.place.is_local else ():
        if top := _worktree_of(target.path):
            name = target.path.relative_to(top)
            if not any(holds_ours(replace(target, path=worktree / name)) for worktree in worktrees_of(top)):
                remove_exclusion(top, _local_lines(name))


def _worktree_of(path: Path) -> Path | None:
    return next((folder for folder in path.parents if os.path.lexists(folder / ".git")), None)


def _local_lines(name: Path) -> bytes:
    """Return the lines that keep a file of a worktree from being committed."""
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", name.as_posix())
    return b"# Settings that archivist wrote for this clone alone\n/" + os.fsencode(pattern)


class SetupRecord(NamedTuple):
    """What setup did: made the bank and the user's folder or not; client, scope and root of each install."""

    has_made_bank: bool = False
    has_made_home: bool = False
    installs: Sequence[Sequence[str]] = ()

    @classmethod
    def load(cls, state: Path) -> SetupRecord:
        """Return the record in a bank's state folder; an empty one when there is none."""
        with suppress(OSError, ValueError, TypeError):
            return cls(**json.loads((state / SETUP_FILE).read_text("utf-8")))
        return cls()

    def save(self, state: Path) -> None:
        """Write the record."""
        from archivist.files.write import replace_file

        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(state / SETUP_FILE, json.dumps(self._asdict()).encode(), is_private=True)

    def places(self) -> list[tuple[str, InstallLocation]]:
        """Return the clients that were installed, and where, without folders that are gone."""
        found = [
            (client, InstallLocation(Path(root), is_user=scope == "user", is_local=scope == "local"))
            for client, scope, root in self.installs
            if client in CLIENTS
        ]
        return [each for each in dict.fromkeys(found) if each[1].root.is_dir()]

    def without(self, plans: Iterable[ClientPlan]) -> SetupRecord:
        """Return the record without the clients that were uninstalled."""
        gone = [[plan.client, plan.place.scope, str(plan.place.root)] for plan in plans]
        return self._replace(installs=[each for each in self.installs if list(each) not in gone])

    def find_changed(self) -> list[str]:
        """Name the files that no longer hold the hooks that setup wrote: git pulls over ignored files."""
        changed = []
        for client, place in self.places():
            for target in targets(client, place, with_server=False):
                try:
                    planned = plan_install([target])
                    is_whole = all(change.action == "unchanged" for change in planned)
                except InputError:
                    is_whole = False
                if not is_whole:
                    remedy = f"look at it, then archivist install {client} --{place.scope}, or uninstall"
                    changed.append(
                        f"{target.path} does not hold what setup wrote for {client}, perhaps a pull"
                        f" replaced it: {remedy}"
                    )
        return changed
