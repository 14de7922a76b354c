"""Find the logs that clients keep of one repository below the user's home.

A session is the repository's when it began in one of its worktrees, or in a clone of the same remote. Of a
folder that is gone the log says the remote.
Names of folders only narrow the search: they cannot be turned back into a path, so the log itself decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from archivist.capture.formats import LogOrigin, opencode
from archivist.capture.json_stream import preview_log
from archivist.capture.log_files import scan_log_folder
from archivist.capture.recorder import LogItem
from archivist.capture.values import object_at, text
from archivist.clock import to_text
from archivist.errors import InputError
from archivist.files.open import head_of, open_file
from archivist.files.opencode import export_session, list_sessions
from archivist.files.worktrees import is_repository, read_small_text, remote_of, repository_of, worktrees_of
from archivist.paths import is_folder, project_of_address, remote_address

# Claude Code cuts the name of a folder here.
_SLUG_CHARACTERS = 200


class ClientLog(NamedTuple):
    """A log of a client: its file, when it began, and the session's id where one file holds many."""

    client: str
    path: Path
    started: str
    session: str = ""

    def read_items(self) -> Iterator[LogItem]:
        """Read a session of a file that holds many."""
        origin = LogOrigin(self.path.name, self.session)
        return opencode.read(BytesIO(export_session(self.path, self.session)), origin)


class _LogHead(NamedTuple):
    folder: str = ""
    remote: str = ""
    started: str = ""


class CheckoutPlaces(NamedTuple):
    """Where a repository is checked out, and the address of its remote."""

    roots: tuple[Path, ...]
    remote: str

    def has_session(self, folder: str, remote: str = "") -> bool:
        """Say whether a session that began in a folder, in a clone of a remote, is the repository's."""
        path = Path(os.path.realpath(folder)) if Path(folder).is_absolute() else Path()
        top = Path(path.anchor)
        repository = repository_of(path, top) if path.anchor and is_folder(path) else top
        is_here = is_repository(repository)
        address = remote_address(remote_of(repository) if is_here else remote)
        # Some clients note no more than `owner/repo`.
        is_named = not is_here and remote.lower() == project_of_address(self.remote).lower()
        if address == self.remote != "" or (remote and is_named):
            return True
        # A repository inside of this one is another.
        return any(
            path.is_relative_to(root) and (not is_folder(path) or _is_same(path, root, top))
            for root in self.roots
        )


def _is_same(one: Path, other: Path, top: Path) -> bool:
    return repository_of(one, top) == repository_of(other, top)


def checkout_places(folder: Path) -> CheckoutPlaces:
    """Return where the repository of a folder is checked out; a folder in none is its own place."""
    own = Path(os.path.realpath(folder))
    remote = remote_address(remote_of(repository_of(own, Path(own.anchor))))
    return CheckoutPlaces(tuple(dict.fromkeys(worktrees_of(own) or [own])), remote)


def find_client_logs(
    places: CheckoutPlaces, home: Path, variables: Mapping[str, str]
) -> tuple[list[ClientLog], list[str]]:
    """Return the logs of a repository's sessions, the oldest first, and what could not be read."""
    problems: list[str] = []

    def root(variable: str, usual: str) -> Path:
        return Path(variables[variable]).expanduser() if variables.get(variable) else home / usual

    found = [
        *_find_claude_code(places, root("CLAUDE_CONFIG_DIR", ".claude") / "projects"),
        *_find_codex(places, root("CODEX_HOME", ".codex")),
        *_find_gemini(places, root("GEMINI_CLI_HOME", "") / ".gemini" / "tmp"),
        *_find_by_head(places, "copilot-cli", root("COPILOT_HOME", ".copilot") / "session-state"),
        *_find_opencode(places, root("XDG_DATA_HOME", ".local/share") / "opencode", problems),
    ]
    return sorted(found, key=lambda log: (log.started, log.path, log.session)), problems


def _find_claude_code(places: CheckoutPlaces, top: Path) -> Iterator[ClientLog]:
    slugs = [_slug_of(root)[:_SLUG_CHARACTERS] for root in places.roots]
    for folder in sorted(top.iterdir()) if is_folder(top) else ():
        if any(folder.name == slug or folder.name.startswith(f"{slug}-") for slug in slugs):
            yield from _find_by_head(places, "claude-code", folder, is_own=folder.name in slugs)


def _slug_of(path: Path) -> str:
    """Return how Claude Code names the folder of a path: UTF-16 units but letters and digits are dashes."""
    signs = (
        sign if sign.isascii() and sign.isalnum() else "-" * (1 + (sign > "\uffff")) for sign in str(path)
    )
    return "".join(signs)


def _find_codex(places: CheckoutPlaces, home: Path) -> Iterator[ClientLog]:
    for name in ("sessions", "archived_sessions"):
        yield from _find_by_head(places, "codex", home / name)


def _find_gemini(places: CheckoutPlaces, top: Path) -> Iterator[ClientLog]:
    hashes = {sha256(os.fsencode(root)).hexdigest() for root in places.roots}
    for folder in sorted(top.iterdir()) if is_folder(top) else ():
        began = read_small_text(folder / ".project_root").strip()
        if folder.name in hashes or (began and places.has_session(began)):
            yield from _find_by_head(places, "gemini-cli", folder / "chats", is_own=True)


def _find_opencode(places: CheckoutPlaces, top: Path, problems: list[str]) -> Iterator[ClientLog]:
    for database in sorted(top.glob("opencode*.db")) if is_folder(top) else ():
        try:
            sessions = list_sessions(database)
        except InputError as error:
            problems.append(error.message)
            continue
        for session in sessions:
            if places.has_session(session.folder):
                began = datetime.fromtimestamp(session.created_ms / 1000, UTC)
                yield ClientLog("opencode", database, to_text(began), session.id)


def _find_by_head(
    places: CheckoutPlaces, client: str, folder: Path, *, is_own: bool = False
) -> Iterator[ClientLog]:
    """Yield the logs in a client's folder that began in the repository; in its own folder also the silent."""
    for path in scan_log_folder(folder).candidates if is_folder(folder) else ():
        head = _read_head(path)
        is_silent = is_own and not head.folder and not head.remote
        if is_silent or places.has_session(head.folder, head.remote):
            yield ClientLog(client, path, head.started)


def _read_head(path: Path) -> _LogHead:
    """Return where and when a log began, by its first lines; empty texts where they do not say."""
    try:
        with open_file(path) as source:
            values = preview_log(head_of(source)).objects
    except (OSError, InputError):
        return _LogHead()
    folder = remote = started = ""
    for value in values:
        payload, context = object_at(value, "payload"), object_at(value, "data", "context")
        for part in (value, payload, context):
            folder = folder or text(part, "cwd")
            git = object_at(part, "git")
            remote = remote or text(git, "repository_url") or text(part, "repository")
            started = started or text(part, "timestamp", "startTime")
    return _LogHead(folder, remote, started)
