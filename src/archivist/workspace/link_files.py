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

from archivist.workspace.links import (
    FOLDERS,
    SECTIONS,
    Client,
    Form,
    Place,
    Rule,
    has_section,
    is_edited_copy,
    is_edited_section,
    marked_copy,
    places,
    source_of_copy,
    with_section,
    without_section,
)
from archivist.workspace.replacing import read_bytes, replace_file


class Done(StrEnum):
    """What became of a place."""

    MADE = "made"
    REFRESHED = "refreshed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    LEFT = "left"


class Linked(NamedTuple):
    """One place of a client's and what was done there, with the form or the reason."""

    client: Client
    path: str
    done: Done
    told: str = ""


_USERS = "there is a file of yours"
_ELSEWHERE = "a link of yours that points elsewhere"
_EDITED = "edited since it was made: take your change to {source}, then delete this file"
_EDITED_SECTION = "the section was edited: take your change to the hot files, then delete the section"


def read_rules(root: Path, folder: str) -> tuple[list[Rule], list[str]]:
    """Return the hot files of a folder in order, and what is wrong with those that cannot be read."""
    rules: list[Rule] = []
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
            rules.append(Rule(name, path.read_bytes().decode("utf-8")))
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
    rules: Sequence[Rule],
    clients: Iterable[Client],
    *,
    as_copies: bool = False,
    is_dry_run: bool = False,
) -> list[Linked]:
    """Bring the clients' places in line with the hot files; a second time changes nothing."""
    done: list[Linked] = []
    for client in clients:
        wanted: dict[str, Place] = {}
        for place in places(client, rules, as_copies=as_copies):
            if place.path in wanted:
                done.append(
                    Linked(client, place.path, Done.LEFT, f"{wanted[place.path].source} is there too")
                )
            else:
                wanted[place.path] = place
        stale = [path for path in _ours(root, folder, client) if path not in wanted]
        done += [_taken(root, folder, client, path, is_dry_run=is_dry_run) for path in stale]
        done += [_put(root, folder, client, place, is_dry_run=is_dry_run) for place in wanted.values()]
    return done


def unlink(root: Path, folder: str, clients: Iterable[Client], *, is_dry_run: bool = False) -> list[Linked]:
    """Take everything of ours out of the clients' places; what was there before is there again."""
    done = [
        _taken(root, folder, client, path, is_dry_run=is_dry_run)
        for client in clients
        for path in _ours(root, folder, client)
    ]
    if not is_dry_run:
        for each in done:
            _tidy(root, each)
    return done


def _ours(root: Path, folder: str, client: Client) -> list[str]:
    """Return a client's paths that hold something of ours: links into the hot folder, copies, sections."""
    found: list[str] = []
    if client in FOLDERS:
        place, ending = FOLDERS[client]
        try:
            paths = sorted(path for path in (root / place).iterdir() if path.name.endswith(ending))
        except OSError:
            paths = []
        names = [f"{place}/{path.name}" for path in paths]
        found += [name for name in names if is_ours(root, folder, name)]
    if client in SECTIONS and has_section(_read(root / SECTIONS[client])):
        found.append(SECTIONS[client])
    return found


def is_ours(root: Path, folder: str, name: str) -> bool:
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


def _put(root: Path, folder: str, client: Client, place: Place, *, is_dry_run: bool) -> Linked:
    path = root / place.path
    try:
        if place.form is Form.SECTION:
            return _put_section(root, client, place, is_dry_run=is_dry_run)
        if path.is_symlink():
            return _meet_link(root, folder, client, place, is_dry_run=is_dry_run)
        before = read_bytes(path)
        if before is None:
            return _put_new(client, path, place, is_dry_run=is_dry_run)
        if source_of_copy(before) is None:
            return Linked(client, place.path, Done.LEFT, _USERS)
        if is_edited_copy(before):
            return Linked(client, place.path, Done.LEFT, _EDITED.format(source=place.source))
        # A copy stays a copy: where links do not work, trying again each time would only fail again.
        return _replaced(client, place, path, before, marked_copy(place), is_dry_run=is_dry_run)
    except OSError as error:
        return Linked(client, place.path, Done.LEFT, error.strerror or str(error))


def _put_section(root: Path, client: Client, place: Place, *, is_dry_run: bool) -> Linked:
    path = root / place.path
    if not path.resolve().is_relative_to(root.resolve()):
        return Linked(client, place.path, Done.LEFT, "a link that leaves the workspace")
    before = read_bytes(path)
    if before is not None and is_edited_section(before):
        return Linked(client, place.path, Done.LEFT, _EDITED_SECTION)
    return _replaced(client, place, path, before, with_section(before, place.content), is_dry_run=is_dry_run)


def _replaced(
    client: Client, place: Place, path: Path, before: bytes | None, after: bytes, *, is_dry_run: bool
) -> Linked:
    if before == after:
        return Linked(client, place.path, Done.UNCHANGED, place.form)
    if not is_dry_run and not replace_file(path, before, after):
        return Linked(client, place.path, Done.LEFT, "it changed while it was written; try again")
    is_new = before is None or (place.form is Form.SECTION and not has_section(before))
    return Linked(client, place.path, Done.MADE if is_new else Done.REFRESHED, place.form)


def _meet_link(root: Path, folder: str, client: Client, place: Place, *, is_dry_run: bool) -> Linked:
    path = root / place.path
    if not _points_into(path, root / folder):
        return Linked(client, place.path, Done.LEFT, _ELSEWHERE)
    if place.form is Form.LINK and path.resolve() == (root / place.source).resolve():
        return Linked(client, place.path, Done.UNCHANGED, Form.LINK)
    if not is_dry_run:
        path.unlink()
    return _put_new(client, path, place, is_dry_run=is_dry_run)._replace(done=Done.REFRESHED)


def _put_new(client: Client, path: Path, place: Place, *, is_dry_run: bool) -> Linked:
    if is_dry_run:
        return Linked(client, place.path, Done.MADE, place.form)
    path.parent.mkdir(parents=True, exist_ok=True)
    if place.form is Form.LINK:
        try:
            source = Path(*path.parts[: len(path.parts) - len(Path(place.path).parts)], place.source)
            path.symlink_to(os.path.relpath(source, path.parent))
            return Linked(client, place.path, Done.MADE, Form.LINK)
        except FileExistsError:
            return Linked(client, place.path, Done.LEFT, _USERS)
        except (OSError, NotImplementedError):
            # No links on this system or without a right to make them: a copy does it too.
            pass
    if not replace_file(path, None, marked_copy(place)):
        return Linked(client, place.path, Done.LEFT, _USERS)
    return Linked(client, place.path, Done.MADE, Form.COPY)


def _taken(root: Path, folder: str, client: Client, name: str, *, is_dry_run: bool) -> Linked:
    """Take one thing of ours out of its place."""
    path = root / name
    try:
        if path.is_symlink() and _points_into(path, root / folder):
            if not is_dry_run:
                path.unlink()
            return Linked(client, name, Done.REMOVED, Form.LINK)
        before = path.read_bytes()
        if has_section(before):
            return _section_taken(client, path, name, before, is_dry_run=is_dry_run)
        if is_edited_copy(before):
            return Linked(
                client, name, Done.LEFT, _EDITED.format(source=source_of_copy(before) or "its source")
            )
        if not is_dry_run:
            path.unlink()
        return Linked(client, name, Done.REMOVED, Form.COPY)
    except OSError as error:
        return Linked(client, name, Done.LEFT, error.strerror or str(error))


def _section_taken(client: Client, path: Path, name: str, before: bytes, *, is_dry_run: bool) -> Linked:
    if is_edited_section(before):
        return Linked(client, name, Done.LEFT, _EDITED_SECTION)
    after = without_section(before)
    if not is_dry_run:
        if after is None:
            path.unlink()
        elif not replace_file(path, before, after):
            return Linked(client, name, Done.LEFT, "it changed while it was written; try again")
    return Linked(client, name, Done.REMOVED, Form.SECTION)


def _tidy(root: Path, done: Linked) -> None:
    """Remove the client's folders that are empty now, up to the root."""
    if done.done is not Done.REMOVED:
        return
    for folder in Path(done.path).parents:
        if folder == Path():
            return
        try:
            (root / folder).rmdir()
        except OSError:
            return
