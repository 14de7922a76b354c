"""Find the logs that clients keep of one repository below the user's home.

A session is the repository's when it began in one of its worktrees, or in a clone of the same remote. Of a
folder that is gone the log says the remote; where it says none, git must know files of the folder.
Names of folders only narrow the search: they cannot be turned back into a path, so the log itself decides.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import md5, sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.capture.formats import LogOrigin, cursor, opencode, vscode_chat
from archivist.capture.json_stream import preview_log
from archivist.capture.log_files import scan_log_folder
from archivist.capture.recorder import LogItem
from archivist.capture.values import as_time, object_at, remote_of_context, text
from archivist.clock import to_text
from archivist.errors import InputError
from archivist.files.cursor import export_editor_session, export_terminal_session, list_editor_sessions
from archivist.files.git import TrackedFolders, list_tracked_folders
from archivist.files.opencode import export_session, list_sessions
from archivist.files.packed import head_of, open_file
from archivist.files.sqlite_reader import find_damage
from archivist.files.worktrees import (
    is_repository,
    knew_worktree,
    nearest_folder,
    read_small_text,
    real_folder,
    remote_of,
    remotes_of,
    repository_around,
    repository_of,
    shared_git_dir,
    worktrees_of,
)
from archivist.paths import editor_folders, is_folder, project_of_address, remote_address

if TYPE_CHECKING:
    from archivist.files.cursor import CursorSession
    from archivist.files.opencode import StoredSession

_EDITORS = ("Code", "Code - Insiders", "VSCodium")
_REMOTE_EDITOR = ".vscode-server/data/User"
_TERMINAL_STORE = "store.db"
# Where Claude Code puts the worktrees that it makes and removes by itself.
_CLIENT_WORKTREES = (".claude", "worktrees")
# Claude Code cuts the name of a folder here.
_SLUG_CHARACTERS = 200


class ClientLog(NamedTuple):
    """A log of a client: its file, when it began, the session's id, and whether the file is a database.

    `folder` is where it began, for clients whose logs do not say so.
    """

    client: str
    path: Path
    started: str
    session: str = ""
    is_database: bool = False
    folder: str = ""

    def read_items(self) -> Iterator[LogItem]:
        """Read a session of a database."""
        origin = LogOrigin(self.path.name, self.session, began=self.folder)
        if self.client == "opencode":
            return opencode.read(BytesIO(export_session(self.path, self.session)), origin)
        if self.path.name == _TERMINAL_STORE:
            whole = export_terminal_session(self.path)
        else:
            whole = export_editor_session(self.path, self.session)
        return cursor.read(BytesIO(whole), origin)


class LogHead(NamedTuple):
    """Where and when a session began, and the remote that its log names; empty where it does not say."""

    folder: str = ""
    remote: str = ""
    started: str = ""


@dataclass(frozen=True, slots=True)
class CheckoutPlaces:
    """Where a repository is checked out, and which sessions were found to be its own, or were left out."""

    # The worktrees and the former places.
    roots: tuple[Path, ...]
    trees: tuple[Path, ...]
    # The addresses of the remotes, that of `origin` first.
    remotes: tuple[str, ...]
    # What a person named: where the repository was, or folders above such places.
    former: tuple[Path, ...] = ()
    # Other checkouts of the same repository.
    clones: tuple[Path, ...] = ()
    # The folders of the repository's own sessions.
    taken: set[str] = field(default_factory=set)
    # Sessions by folder: inside of a checkout, but not known to be the repository's.
    left_out: Counter[str] = field(default_factory=Counter)
    # Of a folder that is gone: it lay beside a checkout and may have been a worktree, or it had the name.
    lost: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    # Sessions by remote: of another repository that lay where this one does.
    replaced: Counter[str] = field(default_factory=Counter)
    _tracked: dict[Path, TrackedFolders | None] = field(default_factory=dict)

    def has_name(self, folder: str) -> bool:
        """Say whether a folder is called like one of the checkouts."""
        own = {root.name for root in self.trees}
        return folder.replace("\\", "/").rpartition("/")[2] in own

    def may_have_been_worktree(self, folder: str) -> bool:
        """Say whether a folder that is gone lay beside a checkout, and git or its name says that it was one.

        It may have been anybody's: a person is told, and its sessions are not taken.
        """
        path = Path(os.path.normpath(folder or "."))
        beside = [root for root in self.trees if root.parent == path.parent]
        return (
            path.is_absolute()
            and not is_folder(path)
            and any(path.name.startswith(root.name) or knew_worktree(root, path) for root in beside)
        )

    def has_session(self, folder: str, remote: str = "", *, count: int = 1) -> bool:
        """Say whether sessions that began in a folder, in a clone of a remote, are the repository's.

        They are counted where they may be its own, so that a person can say so.
        """
        is_own = self._is_own(folder, remote)
        if is_own and self._is_replaced(folder, remote):
            self.replaced[remote] += count
            return False
        if is_own:
            self.taken.add(folder)
        elif not count:
            return False
        elif is_own is None:
            self.left_out[folder] += count
        elif folder and not is_folder(Path(folder)):
            if self.has_name(folder):
                self.gone[folder] += count
            elif self._is_lost_worktree(folder, remote):
                self.lost[folder] += count
        return bool(is_own)

    def _is_replaced(self, folder: str, remote: str) -> bool:
        """Say whether a log names none of the remotes: another repository was in the folder then.

        Who names one of the worktrees means all of them.
        """
        is_asked = any(
            former in self.trees or real_folder(Path(folder)).is_relative_to(former) for former in self.former
        )
        return bool(remote and self.remotes) and not is_asked and not _is_one_of(remote, self.remotes)

    def _is_lost_worktree(self, folder: str, remote: str) -> bool:
        return remote_address(remote) in ("", *self.remotes[:1]) and self.may_have_been_worktree(folder)

    def _is_own(self, folder: str, remote: str) -> bool | None:
        """Say whether a folder is the repository's; None of one inside that may be another repository's."""
        path = real_folder(Path(folder)) if Path(folder).is_absolute() else Path()
        top = Path(path.anchor)
        is_there = bool(path.anchor) and is_folder(path)
        # A folder that is gone was a part of the repository that it would lie in.
        place = path if is_there else repository_around(nearest_folder(path)) if path.anchor else None
        repository = repository_of(place, top) if place is not None else top
        # With a folder above them a person names all that were told to be gone.
        is_asked = not is_there and any(path.is_relative_to(former) for former in self.former)
        if is_asked and (self.has_name(folder) or self._is_lost_worktree(folder, remote)):
            return True
        # A former place inside of a checkout is a part of it.
        above = [tree for tree in self.trees if path.is_relative_to(tree)]
        above = above or [root for root in self.roots if path.is_relative_to(root)]
        root = max(above, key=lambda each: len(each.parts), default=None)
        is_repo = is_repository(repository)
        if root is None or (is_repo and repository != repository_of(root, top)):
            # A repository inside of this one is another, unless it is a clone of the same remote.
            own = self.remotes[:1]
            is_clone = repository in self.clones or remote_address(remote_of(repository)) in own
            return is_clone if is_repo else _is_one_of(remote, own)
        is_taken = is_there or (is_asked and root in self.trees)
        is_held = path in self.roots or (
            _is_one_of(remote, self.remotes) if remote else self._holds(root, path, is_taken=is_taken)
        )
        return is_held or (None if root in self.trees else False)

    def _holds(self, root: Path, path: Path, *, is_taken: bool) -> bool:
        """Say whether a folder inside a checkout is the repository's own: no submodule, and not a clone once.

        One that is gone, and that no person named, was its own if git knows files or a worktree of it. So it
        was where only a client makes worktrees.
        """
        asked = root if is_folder(root) else next(filter(is_folder, self.roots), root)
        if asked not in self._tracked:
            self._tracked[asked] = list_tracked_folders(asked)
        tracked, kept = self._tracked[asked], shared_git_dir(asked)
        if tracked is None:
            return is_taken and kept is None
        parts = path.relative_to(root).parts
        inside = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        # Git keeps the repository of a submodule that was removed.
        is_submodule = not tracked.submodules.isdisjoint(inside) or (
            kept is not None and any((kept / "modules" / name / "HEAD").is_file() for name in inside)
        )
        if is_submodule or is_taken or inside[-1] in tracked.folders:
            return not is_submodule
        is_clients = parts[: len(_CLIENT_WORKTREES)] == _CLIENT_WORKTREES != parts
        return is_clients or any(knew_worktree(asked, root / name) for name in inside)


def _is_one_of(remote: str, addresses: Iterable[str]) -> bool:
    """Say whether a log names one of these remotes; some clients note no more than `owner/repo`."""
    if address := remote_address(remote):
        return address in addresses
    return remote.lower() in {project_of_address(each).lower() for each in addresses} - {""}


def checkout_places(folder: Path, former: Sequence[Path] = (), clones: Sequence[Path] = ()) -> CheckoutPlaces:
    """Return where the repository of a folder is checked out, and was; a folder in none is its own place."""
    own = Path(os.path.realpath(folder))
    remotes = map(remote_address, remotes_of(repository_of(own, Path(own.anchor))))
    trees = tuple(worktrees_of(own) or [own])
    roots = dict.fromkeys([*trees, *former])
    named = tuple(filter(None, remotes))
    return CheckoutPlaces(tuple(roots), trees, named, tuple(former), tuple(clones))


class FoundLogs(NamedTuple):
    """The logs of a repository's sessions, the oldest first, and what is to be told of others.

    `unreadable` are the damages of databases, whose sessions may be missing.
    """

    logs: list[ClientLog]
    problems: list[str]
    unreadable: list[str]


def find_client_logs(places: CheckoutPlaces, home: Path, variables: Mapping[str, str]) -> FoundLogs:
    """Find the logs of a repository's sessions."""
    unreadable: list[str] = []

    def root(variable: str, usual: str) -> Path:
        return Path(variables[variable]).expanduser() if variables.get(variable) else home / usual

    codex_home = root("CODEX_HOME", ".codex")
    opencode_sessions = opencode_databases(home, variables), list_sessions
    cursor_sessions = cursor_databases(home, variables), list_editor_sessions
    found = [
        *_find_claude_code(places, root("CLAUDE_CONFIG_DIR", ".claude") / "projects"),
        *_find_by_head(places, "codex", codex_home / "sessions"),
        *_find_by_head(places, "codex", codex_home / "archived_sessions"),
        *_find_gemini(places, root("GEMINI_CLI_HOME", "") / ".gemini" / "tmp"),
        *_find_by_head(places, "copilot-cli", root("COPILOT_HOME", ".copilot") / "session-state"),
        *_find_in_databases(places, "OpenCode", *opencode_sessions, unreadable),
        *_find_vscode(places, [*editor_folders(_EDITORS, home, variables), home / _REMOTE_EDITOR]),
        *_find_in_databases(places, "Cursor", *cursor_sessions, unreadable),
        *_find_cursor_chats(places, home / ".cursor" / "chats"),
    ]
    found.sort(key=lambda log: (log.started, log.path, log.session))
    began = [real_folder(Path(folder)) for folder in places.taken]
    problems = [
        f"no session began in {former}"
        for former in places.former
        if not any(folder.is_relative_to(former) for folder in began)
    ]
    problems += [
        f"{count} left out that began in {folder}, which is gone and may have been a worktree"
        for folder, count in places.lost.items()
    ]
    if places.lost:
        problems[-1] += f"; {name_take(places.lost)}"
    return FoundLogs(found, problems, unreadable)


def name_take(folders: Iterable[str]) -> str:
    """Say how a person has the sessions of folders that are gone taken: by one folder above them all."""
    first, *others = folders
    try:
        above = os.path.commonpath([first, *others])
    except ValueError:
        # Folders of two systems have nothing in common.
        above = first
    return (
        f"to take {'all of these' if others else 'them'}: archivist setup --moved-from {shlex.quote(above)}"
    )


def _find_claude_code(places: CheckoutPlaces, top: Path) -> Iterator[ClientLog]:
    names = tuple(f"-{_slug_of(Path(root.name))}" for root in places.roots)
    # Each session's own log says whether it began in the repository.
    known = [*places.roots, *(tree for clone in places.clones for tree in worktrees_of(clone) or [clone])]
    slugs = [_slug_of(root)[:_SLUG_CHARACTERS] for root in known]
    beside = tuple(f"{_slug_of(root.parent)}-"[:_SLUG_CHARACTERS] for root in places.roots)
    for folder in sorted(top.iterdir()) if is_folder(top) else ():
        is_below = any(folder.name == slug or folder.name.startswith(f"{slug}-") for slug in slugs)
        if is_below or folder.name.endswith(names):
            yield from _find_by_head(places, "claude-code", folder, is_own=folder.name in slugs)
        elif folder.name.startswith(beside) and any(
            # Other projects lie beside this one too: of each the head of one log is read.
            places.may_have_been_worktree(read_head(path).folder)
            for path in scan_log_folder(folder).candidates[:1]
        ):
            yield from _find_by_head(places, "claude-code", folder)


def _slug_of(path: Path) -> str:
    """Return how Claude Code names the folder of a path: UTF-16 units but letters and digits are dashes."""
    return "".join(
        sign if sign.isascii() and sign.isalnum() else "-" * (1 + (sign > "\uffff")) for sign in str(path)
    )


def _find_gemini(places: CheckoutPlaces, top: Path) -> Iterator[ClientLog]:
    hashes = {sha256(os.fsencode(root)).hexdigest() for root in (*places.roots, *places.clones)}
    for folder in sorted(top.iterdir()) if is_folder(top) else ():
        began = read_small_text(folder / ".project_root").strip()
        chats = len(scan_log_folder(folder / "chats").candidates) if is_folder(folder / "chats") else 0
        if folder.name in hashes or (began and places.has_session(began, count=chats)):
            yield from _find_by_head(places, "gemini-cli", folder / "chats", is_own=True)


def opencode_databases(home: Path, variables: Mapping[str, str]) -> list[Path]:
    """Return the databases in which OpenCode's versions keep their sessions."""
    data = variables.get("XDG_DATA_HOME")
    top = (Path(data).expanduser() if data else home / ".local/share") / "opencode"
    return sorted(top.glob("opencode*.db")) if is_folder(top) else []


def cursor_databases(home: Path, variables: Mapping[str, str]) -> list[Path]:
    """Return the databases in which Cursor's editor keeps its sessions."""
    tops = editor_folders(("Cursor",), home, variables)
    databases = (top / "globalStorage" / "state.vscdb" for top in tops)
    return [database for database in databases if database.is_file()]


def find_damages(client: str, home: Path, variables: Mapping[str, str]) -> list[str]:
    """Say what is damaged in the databases of a client."""
    databases = {"opencode": opencode_databases, "cursor": cursor_databases}.get(client)
    found = databases(home, variables) if databases else []
    return [damage for database in found if (damage := find_damage(database, client))]


def _find_in_databases(
    places: CheckoutPlaces,
    client: str,
    databases: Iterable[Path],
    list_sessions: Callable[[Path], Sequence[StoredSession | CursorSession]],
    unreadable: list[str],
) -> Iterator[ClientLog]:
    """Yield the sessions in the databases of a client, and note what of these cannot be read."""
    for database in databases:
        damage = find_damage(database, client)
        unreadable += [damage] if damage else []
        try:
            sessions = list_sessions(database)
        except InputError as error:
            unreadable += [] if damage else [error.message]
            continue
        for session in sessions:
            if places.has_session(session.folder):
                began = datetime.fromtimestamp(session.created_ms / 1000, UTC)
                yield ClientLog(client.lower(), database, to_text(began), session.id, is_database=True)


def _find_vscode(places: CheckoutPlaces, user_folders: Iterable[Path]) -> Iterator[ClientLog]:
    """Yield the chats of VS Code's windows that had a checkout open."""
    for folder in user_folders:
        for note in sorted((folder / "workspaceStorage").glob("*/workspace.json")):
            opened = vscode_chat.opened_folder(note)
            found = sorted((note.parent / "chatSessions").glob("*.json*"))
            chats = [path for path in found if path.suffix in (".json", ".jsonl")]
            if opened and places.has_session(opened, count=len(chats)):
                for path in chats:
                    first = next(iter(_first_objects(path)), {})
                    created = as_time((object_at(first, "v") or first).get("creationDate"))
                    started = to_text(created) if created else ""
                    yield ClientLog("vscode", path, started, path.stem, folder=opened)


def _find_cursor_chats(places: CheckoutPlaces, chats: Path) -> Iterator[ClientLog]:
    """Yield the sessions of Cursor's command line client."""
    for root in (*places.roots, *places.clones):
        # The client names the folder so; nothing is kept secret by it.
        digest = md5(os.fsencode(root), usedforsecurity=False).hexdigest()
        for database in sorted((chats / digest).glob(f"*/{_TERMINAL_STORE}")):
            began = datetime.fromtimestamp(database.stat().st_mtime, UTC)
            name = database.parent.name
            yield ClientLog("cursor", database, to_text(began), name, is_database=True, folder=str(root))


def _find_by_head(
    places: CheckoutPlaces, client: str, folder: Path, *, is_own: bool = False
) -> Iterator[ClientLog]:
    """Yield the logs in a client's folder that began in the repository; in its own folder also the silent."""
    for path in scan_log_folder(folder).candidates if is_folder(folder) else ():
        head = read_head(path)
        is_silent = is_own and not head.folder and not head.remote
        if is_silent or places.has_session(head.folder, head.remote):
            yield ClientLog(client, path, head.started)


def _first_objects(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the first objects of a log; none of one that cannot be read."""
    try:
        with open_file(path) as source:
            return preview_log(head_of(source)).objects
    except (OSError, InputError):
        return ()


def read_head(path: Path) -> LogHead:
    """Return where and when a log began, by its first lines."""
    folder = remote = started = ""
    for value in _first_objects(path):
        payload, context = object_at(value, "payload"), object_at(value, "data", "context")
        for part in (value, payload, context):
            folder = folder or text(part, "cwd")
            git = object_at(part, "git")
            remote = remote or text(git, "repository_url") or remote_of_context(part)
            started = started or text(part, "timestamp", "startTime")
    return LogHead(folder, remote, started)
