"""Which banks this user has accepted: one that was not made here by this user is silent until it is.

A repository can carry a bank, and agents read what a bank says. So each bank that is made here is noted
under the user's home, in `trusted.json`: its real path, the number of its file, and a secret mark that the
bank itself holds. A clone, a copy or a moved project lies at another path; a file that came with a pull has
another number or mark. The global bank is in the user's home already, and folders in `trust.folders` need no
note.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import BankError, UntrustedBankError
from archivist.paths import FOLDER, home_folder, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from archivist.store.protocol import Store

FILE_NAME = "trusted.json"
# The name under which a bank's own settings hold its mark.
MARK = "trust_mark"
# What SQLite writes besides the bank itself.
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\0"
# The note of the log that SQLite keeps beside a bank.
_LOG_NOTE = "log"
# Where the header of a SQLite file says whose it is.
_APPLICATION = slice(68, 72)


def refuse_links(file: Path) -> None:
    """Raise BankError where a bank or its folder is a link: a repository must not reach beyond itself.

    A pipe beside it is refused too, since whoever opens one waits for ever, and a rollback journal: a bank
    has none, and SQLite would write what one holds into the bank.
    """
    if _is_of_home(file):
        return
    folder = [file.parent] if file.parent.name == FOLDER else []
    for path in (*folder, *(file.with_name(file.name + ending) for ending in _SIDE_FILES)):
        try:
            kind = stat.S_IFMT(path.lstat().st_mode)
        except OSError:
            continue
        is_journal = path.name.endswith("-journal") and _size(path) > 0
        if is_journal or kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise BankError(f"{str(path)!r} was not written by Archivist", hint="remove it")
        if kind == stat.S_IFLNK:
            raise BankError(
                f"{str(path)!r} is a link, and a bank is not opened through one",
                hint="name the folder where the bank really lies: --bank or ARCHIVIST_BANK",
            )


def is_accepted(file: Path, folders: str = "") -> bool:
    """Say whether a bank may be opened, as far as its place tells; where there is none, one may be made."""
    if _is_of_home(file) or _is_new(file) or _is_below(file, folders):
        return True
    note = find_note(file)
    home = _home_or_none()
    if note is None and home is not None and home.is_dir():
        from archivist.files.write import lock_folder

        # Another process may be making it: whoever does holds the lock until it is noted.
        with lock_folder(home):
            note = find_note(file)
    return note is not None and note.get("number") == _file_number(file)


def open_trusted(
    file: Path, open_store: Callable[[], Store], *, folders: str = "", create: bool = False
) -> Store:
    """Open a bank that the user accepted, or make and note a new one; raise UntrustedBankError otherwise."""
    refuse_links(file)
    if not is_accepted(file, folders) and _is_database(file):
        raise UntrustedBankError(str(file))
    if _is_of_home(file):
        return open_store()
    is_below = _is_below(file, folders)
    if is_below and _is_new(file):
        return open_store()
    if _is_new(file):
        return _make_noted(file, open_store) if create else open_store()
    note = find_note(file)
    with _locked_state(file) as state:
        _vouch_for_log(file, state, is_trusted=is_below)
        store = open_store()
    try:
        if is_below:
            return store
        if note is None or mark_of(store) != note.get("mark"):
            raise UntrustedBankError(str(file))
    except BaseException:
        store.close()
        raise
    return store


def release_log(file: Path) -> None:
    """Forget SQLite's log beside a bank when the last process has closed it: the next one is another file."""
    if (state := _state_or_none(file)) is None or not (state / _LOG_NOTE).exists():
        return
    with _locked_state(file):
        if not os.path.lexists(file.with_name(f"{file.name}-wal")):
            (state / _LOG_NOTE).unlink(missing_ok=True)


def refuse_foreign_log(file: Path, folders: str = "") -> None:
    """Raise BankError where the log beside a bank, which would be read with it, is not this user's."""
    log, state = file.with_name(f"{file.name}-wal"), _state_or_none(file)
    if not _size(log) or _is_of_home(file) or _is_below(file, folders):
        return
    note = state / _LOG_NOTE if state is not None else None
    if note is None or not note.exists() or note.read_text() != str(_file_number(log)):
        raise _foreign_log(log)


def _foreign_log(log: Path) -> BankError:
    return BankError(
        f"{str(log)!r} was not written by a process of yours", hint="remove it: it came with the repository"
    )


def _vouch_for_log(file: Path, state: Path | None, *, is_trusted: bool) -> None:
    """Refuse SQLite's log beside a bank unless a process of this user made it: SQLite takes any for its own.

    A repository can bring one, which would rewrite the bank. So an empty one is made, and its number noted,
    before SQLite fills it.
    """
    log = file.with_name(f"{file.name}-wal")
    try:
        found = log.lstat()
    except FileNotFoundError:
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(log, flags, 0o600)
        except OSError:
            # A folder that cannot be written: the bank is only read.
            return
        found = os.fstat(descriptor)
        os.close(descriptor)
    note = None if state is None else state / _LOG_NOTE
    known = note.read_bytes() if note is not None and note.exists() else b""
    number = str(found.st_ino).encode()
    if known == number:
        return
    if found.st_size and not is_trusted:
        raise _foreign_log(log)
    if note is not None:
        note.write_bytes(number)


@contextmanager
def _locked_state(file: Path) -> Iterator[Path | None]:
    from archivist.files.write import lock_folder

    state = _state_or_none(file)
    try:
        if state is not None:
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        state = None
    if state is None:
        yield None
        return
    with lock_folder(state):
        yield state


def _state_or_none(file: Path) -> Path | None:
    try:
        return state_folder(file)
    except RuntimeError:
        return None


def accept_bank(file: Path, store: Store) -> None:
    """Note a bank as accepted, under a new mark: whoever knew the old one has no use for it."""
    with _locked_home() as home:
        _note(home, file, store)


def renew_note(file: Path, store: Store) -> None:
    """Note a bank anew whose file was written anew, if it was noted before."""
    if find_note(file) is not None:
        accept_bank(file, store)


def withdraw_trust(file: Path) -> bool:
    """Take back that a bank was accepted; return whether it was."""
    with _locked_home() as home:
        notes = _read_notes(home)
        is_known = notes.pop(_key(file), None) is not None
        if is_known:
            _write_notes(home, notes)
    return is_known


def find_note(file: Path) -> dict[str, object] | None:
    """Return what is noted of a bank, its mark and the number of its file; None when it is not noted."""
    home = _home_or_none()
    return _read_notes(home).get(_key(file)) if home is not None else None


def places_of(mark: str) -> list[Path]:
    """Return where a bank with this mark was accepted: where it was copied or moved from."""
    home = _home_or_none()
    notes = _read_notes(home) if home is not None and mark else {}
    return [Path(place) for place, note in notes.items() if note.get("mark") == mark]


def accepted_banks() -> list[Path]:
    """Return the banks that this user has accepted."""
    home = _home_or_none()
    return [Path(place) for place in _read_notes(home)] if home is not None else []


def mark_of(store: Store) -> str:
    """Return the secret mark that a bank holds; empty for one that was never noted."""
    with store.reading() as reader:
        return reader.setting(MARK)


def _make_noted(file: Path, open_store: Callable[[], Store]) -> Store:
    with _locked_home() as home, _locked_state(file) as state:
        if _is_new(file):
            store = open_store()
            try:
                _note(home, file, store)
                if state is not None:
                    log = file.with_name(f"{file.name}-wal")
                    (state / _LOG_NOTE).write_text(str(_file_number(log)))
            except BaseException:
                store.close()
                raise
            return store
    # Another process was faster.
    return open_trusted(file, open_store)


def _note(home: Path, file: Path, store: Store) -> None:
    from archivist.clock import system_clock
    from archivist.records.actor import ARCHIVIST

    mark = os.urandom(16).hex()
    with store.writing(ARCHIVIST, system_clock()) as writer:
        writer.set_setting(MARK, mark)
    notes = {**_read_notes(home), _key(file): {"mark": mark, "number": _file_number(file)}}
    _write_notes(home, notes)


def _read_notes(home: Path) -> dict[str, dict[str, object]]:
    try:
        notes = json.loads((home / FILE_NAME).read_bytes())
    except (OSError, ValueError):
        # What cannot be read trusts nobody.
        return {}
    return {place: note for place, note in notes.items() if isinstance(note, dict)}


def _write_notes(home: Path, notes: dict[str, dict[str, object]]) -> None:
    from archivist.files.write import replace_file

    text = json.dumps(notes, indent=1, sort_keys=True, ensure_ascii=True)
    replace_file(home / FILE_NAME, text.encode(), is_private=True)


@contextmanager
def _locked_home() -> Iterator[Path]:
    from archivist.files.write import lock_folder

    home = _home_or_none()
    hint = "set ARCHIVIST_HOME to a folder of yours, or name the bank's folder in ARCHIVIST_TRUST__FOLDERS"
    if home is None:
        raise BankError("there is no home folder to note which banks are yours", hint=hint)
    if not os.access(home, os.W_OK):
        try:
            home.mkdir(mode=0o700, parents=True)
        except OSError:
            raise BankError(f"{str(home)!r} cannot be written", hint=hint) from None
    with lock_folder(home):
        yield home


def _key(file: Path) -> str:
    # Bytes that are no text stay apart from each other.
    return os.path.realpath(file).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file_number(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0


def _is_new(file: Path) -> bool:
    """Say whether nothing is there: no bank, and no log of SQLite's that would become part of a new one."""
    return not any(_size(file.with_name(file.name + ending)) for ending in _SIDE_FILES)


def _is_database(file: Path) -> bool:
    """Say whether a file looks like a bank; whoever opens any other says what it is."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_APPLICATION.stop)
    except OSError:
        return False
    return not head or (head.startswith(_MAGIC) and head[_APPLICATION] == b"ARCV")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _is_of_home(file: Path) -> bool:
    home = _home_or_none()
    return home is not None and file.absolute().parent == home.absolute()


def _is_below(file: Path, folders: str) -> bool:
    real = Path(os.path.realpath(file))
    named = (Path(folder.strip()).expanduser() for folder in folders.split(",") if folder.strip())
    return any(folder.is_absolute() and real.is_relative_to(os.path.realpath(folder)) for folder in named)


def _home_or_none() -> Path | None:
    try:
        return home_folder()
    except RuntimeError:
        return None
