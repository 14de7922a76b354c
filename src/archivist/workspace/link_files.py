"""Put hot memory into the agent tools' own places, and take it out again.

What a person wrote is never overwritten: a file without our mark, a copy or a section that was edited, and a
link to somewhere else are left and reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from archivist.files.write import read_bytes, replace_if_unchanged
from archivist.workspace.links import (
    FOLDERS,
    SECTIONS,
    Client,
    HotRule,
    LinkForm,
    LinkTarget,
    has_section,
    is_edited_copy,
    is_edited_section,
    is_read_by,
    link_targets,
    marked_copy,
    section_readers,
    source_of_copy,
    with_section,
    without_section,
)


class LinkStatus(StrEnum):
    """What became of a place."""

    MADE = "made"
    REFRESHED = "refreshed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    LEFT = "left"


class LinkResult(NamedTuple):
    """One place of a client's and what was done there, with the form or the reason."""

    client: Client
    path: str
    done: LinkStatus
    told: str = ""


_USERS = "there is a file of yours"
_ELSEWHERE = "a link of yours that points elsewhere"
_EDITED = "edited since it was made: take your change to {source}, then delete this file"
_OUTSIDE = "a link that leaves the workspace"
_CHANGED = "it changed while it was written; try again"
_EDITED_SECTION = "the section was edited: take your change to the hot files, then delete the section"
# Stands in a folder that `link` made, and says which ones: only those are removed again.
_MADE = ".made-by-archivist"
_MADE_SAYS = "Made for links of Archivist, which `archivist workspace unlink` takes away again:"


def read_rules(root: Path, folder: str) -> tuple[list[HotRule], list[str]]:
    """Return the hot files of a folder in order, and what is wrong with those that cannot be read."""
    rules: list[HotRule] = []
    problems: list[str] = []
    try:
        paths = sorted(path for path in (root / folder).iterdir() if path.suffix in (".md", ".mdc"))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [f"{folder}: {error.strerror}"]
    for path in paths:
        name = f"{folder}/{path.name}"
        try:
            rules.append(HotRule(name, path.read_bytes().decode("utf-8")))
        except UnicodeDecodeError:
            problems.append(f"{name}: not UTF-8 text")
        except FileNotFoundError:
            problems.append(f"{name}: a link to a file that is gone")
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
    return rules, problems


def link(
    root: Path,
    folder: str,
    rules: Sequence[HotRule],
    clients: Iterable[Client],
    *,
    as_copies: bool = False,
    is_dry_run: bool = False,
) -> list[LinkResult]:
    """Bring the clients' places in line with the hot files; a second time changes nothing."""
    done: list[LinkResult] = []
    for client in clients:
        wanted: dict[str, LinkTarget] = {}
        for place in link_targets(client, rules, as_copies=as_copies, is_shared=_is_shared(root, client)):
            if place.path in wanted:
                done.append(
                    LinkResult(
                        client, place.path, LinkStatus.LEFT, f"{wanted[place.path].source} is there too"
                    )
                )
            else:
                wanted[place.path] = place
        stale = [path for path in _own_paths(root, folder, client) if path not in wanted]
        done += [_remove_path(root, folder, client, path, is_dry_run=is_dry_run) for path in stale]
        done += [
            _place_target(root, folder, client, place, is_dry_run=is_dry_run) for place in wanted.values()
        ]
    return done


def unlink(
    root: Path, folder: str, clients: Iterable[Client], *, is_dry_run: bool = False
) -> list[LinkResult]:
    """Take everything of ours out of the clients' places; what was there before is there again."""
    clients = tuple(clients)
    done = [
        _remove_path(root, folder, client, path, is_dry_run=is_dry_run)
        for client in clients
        for path in _own_paths(root, folder, client)
    ]
    if not is_dry_run:
        for client in clients:
            _remove_empty_folders(root, folder, client)
    return done


def _is_shared(root: Path, client: Client) -> bool:
    """Say whether the file that holds a client's section is another client's too."""
    if client not in SECTIONS:
        return False
    file = (root / SECTIONS[client]).resolve()
    return any((root / name).resolve() == file for other, name in SECTIONS.items() if other is not client)


def _own_paths(root: Path, folder: str, client: Client) -> list[str]:
    """Return a client's paths that hold something of ours: links into the hot folder, copies, sections."""
    found: list[str] = []
    if client in FOLDERS:
        place, ending = FOLDERS[client]
        try:
            paths = sorted(path for path in (root / place).iterdir() if path.name.endswith(ending))
        except OSError:
            paths = []
        names = [f"{place}/{path.name}" for path in paths]
        found += [name for name in names if is_own_file(root, folder, name)]
    if client in SECTIONS and is_read_by(_read(root / SECTIONS[client]), client):
        found.append(SECTIONS[client])
    return found


def is_own_file(root: Path, folder: str, name: str) -> bool:
    """Say whether a client's rule file is a link into the hot folder or a copy that we made."""
    path = root / name
    if path.is_symlink():
        return _points_into(path, root / folder)
    return source_of_copy(_read(path)) is not None


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path) or b""
    except OSError:
        return b""


def _points_into(path: Path, folder: Path) -> bool:
    """Say whether a link points into a folder, whether or not its target is still there."""
    target = os.path.normpath(path.parent.resolve() / path.readlink())
    return Path(target).parent in (folder.resolve(), Path(os.path.normpath(folder.absolute())))


def _place_target(
    root: Path, folder: str, client: Client, place: LinkTarget, *, is_dry_run: bool
) -> LinkResult:
    path = root / place.path
    try:
        if place.form is LinkForm.SECTION:
            return _put_section(root, client, place, is_dry_run=is_dry_run)
        if not path.parent.resolve().is_relative_to(root.resolve()):
            return LinkResult(client, place.path, LinkStatus.LEFT, _OUTSIDE)
        if path.is_symlink():
            return _update_link(root, folder, client, place, is_dry_run=is_dry_run)
        before = read_bytes(path)
        if before is None:
            return _create_target(root, client, place, is_dry_run=is_dry_run)
        if source_of_copy(before) is None:
            # A client's folder can be a link to the hot folder itself.
            is_source = place.form is LinkForm.LINK and path.resolve() == (root / place.source).resolve()
            told = (LinkStatus.UNCHANGED, LinkForm.LINK) if is_source else (LinkStatus.LEFT, _USERS)
            return LinkResult(client, place.path, *told)
        if is_edited_copy(before):
            return LinkResult(client, place.path, LinkStatus.LEFT, _EDITED.format(source=place.source))
        # A copy stays a copy: where links do not work, trying again each time would only fail again.
        done = _replace_file(path, before, marked_copy(place), is_dry_run=is_dry_run)
        return LinkResult(client, place.path, done, _CHANGED if done is LinkStatus.LEFT else LinkForm.COPY)
    except OSError as error:
        return LinkResult(client, place.path, LinkStatus.LEFT, error.strerror or str(error))


def _put_section(root: Path, client: Client, place: LinkTarget, *, is_dry_run: bool) -> LinkResult:
    path = root / place.path
    if not path.resolve().is_relative_to(root.resolve()):
        return LinkResult(client, place.path, LinkStatus.LEFT, _OUTSIDE)
    before = read_bytes(path)
    if before is not None and is_edited_section(before):
        return LinkResult(client, place.path, LinkStatus.LEFT, _EDITED_SECTION)
    done = _replace_file(path, before, with_section(before, place.content, client), is_dry_run=is_dry_run)
    if done is LinkStatus.REFRESHED and not is_read_by(before or b"", client):
        done = LinkStatus.MADE
    return LinkResult(
        client, place.path, done, _CHANGED if done is LinkStatus.LEFT else _describe_section(root, path)
    )


def _describe_section(root: Path, path: Path) -> str:
    """Say where a section stands when the path is a link to another file."""
    if not path.is_symlink():
        return LinkForm.SECTION
    return f"{LinkForm.SECTION} of {path.resolve().relative_to(root.resolve()).as_posix()}"


def _replace_file(path: Path, before: bytes | None, after: bytes, *, is_dry_run: bool) -> LinkStatus:
    if before == after:
        return LinkStatus.UNCHANGED
    if not is_dry_run and not replace_if_unchanged(path, before, after):
        return LinkStatus.LEFT
    return LinkStatus.MADE if before is None else LinkStatus.REFRESHED


def _update_link(
    root: Path, folder: str, client: Client, place: LinkTarget, *, is_dry_run: bool
) -> LinkResult:
    path = root / place.path
    if not _points_into(path, root / folder):
        return LinkResult(client, place.path, LinkStatus.LEFT, _ELSEWHERE)
    if place.form is LinkForm.LINK and path.resolve() == (root / place.source).resolve():
        return LinkResult(client, place.path, LinkStatus.UNCHANGED, LinkForm.LINK)
    if not is_dry_run:
        path.unlink()
    return _create_target(root, client, place, is_dry_run=is_dry_run)._replace(done=LinkStatus.REFRESHED)


def _create_target(root: Path, client: Client, place: LinkTarget, *, is_dry_run: bool) -> LinkResult:
    if is_dry_run:
        return LinkResult(client, place.path, LinkStatus.MADE, place.form)
    path = root / place.path
    _make_folder(root, Path(place.path).parent)
    if place.form is LinkForm.LINK:
        try:
            path.symlink_to(os.path.relpath(root.resolve() / place.source, path.parent.resolve()))
            return LinkResult(client, place.path, LinkStatus.MADE, LinkForm.LINK)
        except FileExistsError:
            return LinkResult(client, place.path, LinkStatus.LEFT, _USERS)
        except (OSError, NotImplementedError):
            # No links on this system or without a right to make them: a copy does it too.
            pass
    if not replace_if_unchanged(path, None, marked_copy(place)):
        return LinkResult(client, place.path, LinkStatus.LEFT, _USERS)
    return LinkResult(client, place.path, LinkStatus.MADE, LinkForm.COPY)


def _remove_path(root: Path, folder: str, client: Client, name: str, *, is_dry_run: bool) -> LinkResult:
    """Take one thing of ours out of its place."""
    path = root / name
    try:
        if path.is_symlink() and _points_into(path, root / folder):
            if not is_dry_run:
                path.unlink()
            return LinkResult(client, name, LinkStatus.REMOVED, LinkForm.LINK)
        before = path.read_bytes()
        if has_section(before):
            return _remove_section(root, client, name, before, is_dry_run=is_dry_run)
        if is_edited_copy(before):
            return LinkResult(
                client, name, LinkStatus.LEFT, _EDITED.format(source=source_of_copy(before) or "its source")
            )
        if not is_dry_run:
            path.unlink()
        return LinkResult(client, name, LinkStatus.REMOVED, LinkForm.COPY)
    except OSError as error:
        return LinkResult(client, name, LinkStatus.LEFT, error.strerror or str(error))


def _remove_section(root: Path, client: Client, name: str, before: bytes, *, is_dry_run: bool) -> LinkResult:
    path = root / name
    if is_edited_section(before):
        return LinkResult(client, name, LinkStatus.LEFT, _EDITED_SECTION)
    told = _describe_section(root, path)
    after = without_section(before, client)
    if not is_dry_run:
        if after is None:
            path.resolve().unlink()
        elif not replace_if_unchanged(path, before, after):
            return LinkResult(client, name, LinkStatus.LEFT, _CHANGED)
    others = [reader for reader in section_readers(before) if reader != client]
    return LinkResult(
        client, name, LinkStatus.REMOVED, f"{told}, kept for {', '.join(others)}" if others else told
    )


# Folders


def _make_folder(root: Path, folder: Path) -> None:
    """Make a client's folder, and note in it which folders were not there before."""
    missing = [each for each in (folder, *folder.parents) if not (root / each).exists()]
    (root / folder).mkdir(parents=True, exist_ok=True)
    if missing:
        names = "".join(f"{each.as_posix()}\n" for each in missing)
        (root / folder / _MADE).write_text(f"{_MADE_SAYS}\n{names}", "utf-8")


def _remove_empty_folders(root: Path, folder: str, client: Client) -> None:
    """Remove the folders that were made for a client and are empty now."""
    if client not in FOLDERS or _own_paths(root, folder, client):
        return
    note = root / FOLDERS[client][0] / _MADE
    first, *names = _read(note).decode("utf-8", "replace").splitlines() or [""]
    if first != _MADE_SAYS:
        return
    try:
        note.unlink()
        # Only the client's own folder and those around it can have been made for it.
        around = {FOLDERS[client][0], *(each.as_posix() for each in Path(FOLDERS[client][0]).parents)} - {"."}
        for name in names:
            if name in around:
                (root / name).rmdir()
    except OSError:
        # It is used by somebody else now.
        return
