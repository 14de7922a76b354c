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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import BankError, LinkedBankError, NoBankError, UntrustedBankError
from archivist.files.worktrees import ignores_itself, may_track, walk_up
from archivist.paths import FILE_NAME as BANK_NAME
from archivist.paths import FOLDER, has_bank, home_folder, is_file, real_place, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from archivist.store.protocol import Store

FILE_NAME = "trusted.json"
# The name under which a bank's own settings hold its mark.
MARK = "trust_mark"
# What is noted of a bank that is on a server: its name there.
_SERVER_BANK = "server_bank"
# What SQLite writes besides the bank itself.
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\0"
# The note of the log that SQLite keeps beside a bank.
_LOG_NOTE = "log"
# The note that changes of the bank are gone.
_LOSS_NOTE = "lost"
# Where the log's head holds two random numbers.
_SALTS = slice(16, 24)
_FILLED_NEXT = "next"
_LOOKS = 20
_LOOK_AGAIN_S = 0.005
# A repository can bring a bank into each of its folders; asking the user's settings about one takes 1 ms.
_MOST_STRANGERS = 16
# Where the header of a SQLite file says whose it is.
_APPLICATION = slice(68, 72)


def refuse_links(file: Path) -> None:
    """Raise LinkedBankError where a bank or its folder is a link: a repository must not reach beyond itself.

    A pipe beside it is refused too, since whoever opens one waits for ever, and a rollback journal: a bank
    has none, and SQLite would write what one holds into the bank.
    """
    if is_of_home(file):
        return
    folder = [file.parent] if file.parent.name == FOLDER else []
    for path in (*folder, *(file.with_name(file.name + ending) for ending in _SIDE_FILES)):
        try:
            kind = stat.S_IFMT(path.lstat().st_mode)
        except OSError:
            continue
        is_journal = path.name.endswith("-journal") and _is_left_journal(path)
        usual = stat.S_IFDIR if path in folder else stat.S_IFREG
        if is_journal or kind not in (usual, stat.S_IFLNK):
            raise BankError(f"{str(path)!r} was not written by Archivist", hint="remove it")
        if kind == stat.S_IFLNK:
            raise LinkedBankError(str(path))


def is_linked_place(file: Path) -> bool:
    """Say whether a bank or its folder is a link, wherever it leads."""
    places = (file, file.parent) if file.parent.name == FOLDER else (file,)
    # The method of Path raises PermissionError in a folder that this user may not read.
    return not is_of_home(file) and any(map(os.path.islink, places))


def _is_left_journal(path: Path) -> bool:
    """Say whether a rollback journal stays: while a bank is being made it has one for a moment."""
    home = _home_or_none()
    if not _size(path) or home is None or not home.is_dir():
        return _size(path) > 0
    from archivist.files.write import lock_folder

    # Whoever makes a bank holds the lock until it is noted.
    with lock_folder(home):
        return _size(path) > 0


def find_bank_folder(start: Path, read_folders: Callable[[], str]) -> tuple[Path | None, Path | None]:
    """Return the nearest folder upwards with a bank of the user's, and the nearest one that was passed over.

    A repository can bring a bank into any folder: one that was never accepted hides none above it, and only
    counts where there is no other. A bank of the user's that is gone is not passed over: it is missed.
    """
    passed = None
    home = _home_or_none()
    notes = _read_notes(home) if home is not None else {}
    below, real, strangers = start, "", 0
    for folder in walk_up(start):
        # The real path of each folder follows from that below it: finding it anew takes a look at each part.
        is_next = real and folder == below.parent and (real == str(below) or not below.is_symlink())
        real = os.path.dirname(real) if is_next else os.path.realpath(folder)  # noqa: PTH120
        below = folder
        if folder / FOLDER == home:
            continue
        if notes and _as_key(os.path.join(real, FOLDER, BANK_NAME)) in notes:  # noqa: PTH118
            return folder, passed
        if not has_bank(folder) and not is_linked_place(folder / FOLDER / BANK_NAME):
            continue
        strangers += 1
        if strangers <= _MOST_STRANGERS and _is_acceptable(folder / FOLDER / BANK_NAME, read_folders()):
            return folder, passed
        passed = passed or folder
    return passed, None


def _is_acceptable(file: Path, folders: str) -> bool:
    try:
        refuse_links(file)
    except BankError:
        return False
    return is_accepted(file, folders)


def is_accepted(file: Path, folders: str = "") -> bool:
    """Say whether a bank may be opened, as far as its place tells; where there is none, one may be made."""
    if is_linked_place(file):
        return False
    if is_of_home(file) or _is_new(file) or _is_below(file, folders):
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
    file: Path,
    open_store: Callable[[LogNote | None], Store],
    *,
    folders: str = "",
    create: bool = False,
) -> Store:
    """Open a bank that the user accepted, or make and note a new one; raise UntrustedBankError otherwise."""
    if not create and is_noted(file) and _is_gone(file):
        raise NoBankError(str(file), is_lost=True)
    refuse_links(file)
    if not is_accepted(file, folders) and _is_database(file):
        raise UntrustedBankError(str(file))
    if is_of_home(file):
        return open_store(None)
    is_below = _is_below(file, folders)
    if is_below and _is_new(file):
        return open_store(None)
    if _is_new(file):
        return _make_noted(file, open_store) if create else open_store(None)
    with _locked_state(file):
        from archivist.files.write import remove_stale_temporaries

        # What a killed process copied beside the bank.
        remove_stale_temporaries(file.parent)
        # Read under the lock: whoever is just making the bank holds it until the bank is noted.
        note, log = find_note(file), LogNote(file)
        if log.is_filled and not os.path.lexists(file):
            raise BankError(f"{log.name!r} lies here without its bank", hint="remove it")
        if not is_below:
            log.refuse_foreign()
            # Our own log may lie beside a stranger's file, and would bring the mark into it.
            if log.is_filled and not _holds_mark(file, note):
                raise UntrustedBankError(str(file))
        log.make()
        log.note_found()
        store = open_store(log)
    log.note_loss(store)
    try:
        if is_below:
            return store
        if not _holds_mark(file, note):
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
    """Raise UntrustedBankError where the log beside a bank, read with it, is not this user's."""
    if not is_of_home(file) and not _is_below(file, folders):
        LogNote(file).refuse_foreign()


class LogNote:
    """What is noted of SQLite's log beside a bank: its file's number, the salts in its head, the last entry.

    SQLite takes any log there for its own, and a repository can bring one, which would rewrite the bank. A
    file system gives a number away again; the salts are SQLite's random numbers, which nobody else knows.
    A log that is replaced or removed takes along what only it held: then the ledger lacks entries.
    """

    def __init__(self, file: Path) -> None:
        self._bank, self._log = file, file.with_name(f"{file.name}-wal")
        state = _state_or_none(file)
        self._file = None if state is None else state / _LOG_NOTE
        self._known = ""
        self._entry = self._read()[2]

    @property
    def name(self) -> str:
        """Return the path of the log."""
        return str(self._log)

    @property
    def is_filled(self) -> bool:
        """Say whether there is a log that holds anything."""
        return bool(_size(self._log))

    def before_write(self, *, is_rewritten: bool = False) -> None:
        """Note, holding the write lock, that SQLite may give the log a new head with salts of its own.

        It does so in an empty log, and in one without a whole transaction, as a killed process leaves it,
        even before the commit when a transaction outgrows the cache. The log that is noted holds one.
        """
        number, size, salts = self._look()
        if number and (is_rewritten or not size or (number, salts) != self._read()[:2]):
            self._known = ""
            self._write(number, _FILLED_NEXT)

    def note_found(self) -> None:
        """Note the log that was found, unless a commit noted it: it may hold no whole transaction.

        SQLite's index of the log says so, but whoever closes that file gives up all locks of its process.
        """
        self.before_write()

    def before_overwrite(self) -> None:
        """Note that the log will hold another state of the bank, whose ledger may end at an earlier entry."""
        self._entry = 0
        self.before_write(is_rewritten=True)

    def after_commit(self, entry: int | None = None) -> None:
        """Note the log as it is now, and the number of the ledger's last entry."""
        self._entry = self._entry if entry is None else entry
        number, _, salts = self._look()
        if number:
            self._write(number, salts)

    def make(self) -> None:
        """Make an empty log, before SQLite does, where there is none."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        # There may be one, or the folder cannot be written and the bank is only read.
        with suppress(OSError):
            os.close(os.open(self._log, flags, 0o600))

    def note_loss(self, store: Store) -> None:
        """Note for the user how many changes are gone since the log was noted last, if any."""
        if not self._entry or self._file is None:
            return
        # A damaged ledger is named by who reads it.
        with suppress(BankError, OSError), store.reading() as reader:
            if (lost := self._entry - reader.last_entry()) > 0:
                lost += lost_changes(self._bank)
                self._file.with_name(_LOSS_NOTE).write_text(str(lost))
                self.after_commit(reader.last_entry())

    def refuse_foreign(self) -> None:
        """Raise UntrustedBankError for a log that no process of this user wrote."""
        for _ in range(_LOOKS):
            noted = self._read()
            number, size, salts = self._look()
            if not size or (number == noted[0] and _follows(salts, noted[1])):
                return
            # A process of ours may write it just now.
            time.sleep(_LOOK_AGAIN_S)
        raise UntrustedBankError(str(self._bank), self._log.name)

    def _look(self) -> tuple[int, int, str]:
        """Return the number of the log's file, its size, and its salts; the number is 0 for none."""
        try:
            descriptor = os.open(self._log, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return 0, 0, ""
        try:
            found = os.fstat(descriptor)
            return found.st_ino, found.st_size, os.read(descriptor, _SALTS.stop)[_SALTS].hex()
        finally:
            os.close(descriptor)

    def _read(self) -> tuple[int, str, int]:
        try:
            words = self._file.read_text().split() if self._file is not None else []
            number, salts, entry = (*words, "-", "0")[:3] if words else ("0", "-", "0")
            return int(number), salts.strip("-"), int(entry)
        except (OSError, ValueError):
            return 0, "", 0

    def _write(self, number: int, salts: str) -> None:
        # Always as long: it is overwritten in one go, which others may read at any time.
        text = f"{number:<20} {salts or '-':<16} {self._entry:<20}"
        if self._file is None or text == self._known:
            return
        with suppress(OSError):
            descriptor = os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
            self._known = text


def _follows(salts: str, noted: str) -> bool:
    """Say whether this is the noted log; SQLite adds one to the first salt when it starts the log anew."""
    if noted == _FILLED_NEXT or salts == noted:
        return noted != ""
    with suppress(ValueError):
        return len(noted) == len(salts) and int(salts[:8], 16) == (int(noted[:8], 16) + 1) % 2**32
    return False


def lost_changes(file: Path) -> int:
    """Return how many changes of a bank are gone with a log, until the user accepts the bank as it is."""
    try:
        return int((state_folder(file) / _LOSS_NOTE).read_text())
    except (OSError, RuntimeError, ValueError):
        return 0


def find_pulled_problem(bank: Path) -> str:
    """Say why git would publish a bank; git is asked where our `.gitignore` or its index give a reason."""
    file = Path(os.path.realpath(bank.parent)) / bank.name
    is_ignored = file.parent.name != FOLDER or ignores_itself(file.parent)
    if is_ignored and not may_track(file):
        return ""
    from archivist.files.git import find_git_problem

    return find_git_problem(bank)


def describe_loss(file: Path) -> str:
    """Say how many changes are gone with SQLite's log beside a bank, and what to do; empty for none."""
    if not (lost := lost_changes(file)):
        return ""
    are = "the bank's last change is" if lost == 1 else f"the bank's last {lost} changes are"
    gone = f"{are} gone: {file.name}-wal, the log of a process that was killed, was replaced or removed"
    return f"{gone}: archivist restore a backup, or archivist trust to go on without"


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


def bank_digest(file: Path) -> str:
    """Return a digest of a bank's file and of the log beside it, which is read with it."""
    from hashlib import sha256

    digest = sha256()
    for path in (file, file.with_name(f"{file.name}-wal")):
        digest.update(f"{_size(path)} ".encode())
        if _size(path):
            with path.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()


def accept_bank(file: Path, store: Store, *, is_rewritten: bool = False) -> None:
    """Note a bank as accepted, under a new mark: whoever knew the old one has no use for it.

    One that this user rewrote, by a restore or a salvage, keeps the mark that is noted: its backups hold it.
    """
    with _locked_home() as home:
        noted = find_note(file) if is_rewritten else None
        _note(home, file, store, str((noted or {}).get("mark", "")))


def renew_note(file: Path, store: Store) -> None:
    """Note a bank anew whose file was written anew, if it was noted before."""
    if find_note(file) is not None:
        accept_bank(file, store, is_rewritten=True)
    else:
        _note_log(file, store)


def carry_mark(file: Path, store: Store) -> None:
    """Give a known bank's copy, which goes into a bank's place, the mark that is noted of that one."""
    mark = str((find_note(file) or {}).get("mark", ""))
    if mark and mark_of(store) != mark and places_of(mark_of(store)):
        _write_mark(store, mark)


def log_of(file: Path) -> LogNote | None:
    """Return what is noted of the log beside a bank; the global one needs no note."""
    return None if is_of_home(file) else LogNote(file)


def withdraw_trust(file: Path) -> bool:
    """Take back that a bank was accepted, also one that is gone; return whether it was."""
    with _locked_home() as home:
        notes = _read_notes(home)
        is_known = notes.pop(_place_key(file), None) is not None
        if is_known:
            _write_notes(home, notes)
    return is_known


def find_note(file: Path) -> dict[str, object] | None:
    """Return what is noted of a bank, its mark and the number of its file; None when it is not noted."""
    home = _home_or_none()
    return _read_notes(home).get(_place_key(file)) if home is not None else None


def server_bank_of(file: Path) -> str:
    """Return the name of the bank on a server that stands for the file at this place; empty for none.

    It is noted under the user's home alone: a name in the project's folder could be that of another bank.
    """
    home = _home_or_none()
    note = _read_notes(home).get(_place_key(file), {}) if home is not None else {}
    return str(note.get(_SERVER_BANK, ""))


def note_server_bank(file: Path, name: str) -> None:
    """Note that the bank at this place is one on a server; without a name, that it is a file again."""
    with _locked_home() as home:
        notes = _read_notes(home)
        if name:
            notes[_place_key(file)] = {_SERVER_BANK: name}
        else:
            notes.pop(_place_key(file), None)
        _write_notes(home, notes)


def has_bank_at(file: Path) -> bool:
    """Say whether there is a bank at this place, in its file or on a server."""
    return is_file(file) or bool(server_bank_of(file))


def is_noted(file: Path) -> bool:
    """Say whether the bank at this very place was accepted, whatever file or link is there now."""
    home = _home_or_none()
    return home is not None and _place_key(file) in _read_notes(home)


def places_of(mark: str) -> list[Path]:
    """Return where a bank with this mark was accepted: where it was copied or moved from."""
    home = _home_or_none()
    notes = _read_notes(home) if home is not None and mark else {}
    return [Path(place) for place, note in notes.items() if note.get("mark") == mark]


def accepted_banks() -> list[Path]:
    """Return the banks that this user has accepted."""
    home = _home_or_none()
    return [Path(place) for place in _read_notes(home)] if home is not None else []


def named_banks(folders: str = "") -> dict[str, list[Path]]:
    """Return the files of this user's banks by name: accepted ones, and those in and below trusted folders.

    The banks in a trusted folder are not noted; it and the folders in it are looked at, no deeper.
    """
    from archivist.paths import PEOPLE, bank_file, bank_name

    files = {*accepted_banks(), *([bank_file(home)] if (home := _home_or_none()) else [])}
    for folder in (Path(part.strip()).expanduser() for part in folders.split(",") if part.strip()):
        files |= {bank_file(folder), *folder.glob(f"*/{FOLDER}/{BANK_NAME}")}
        files |= {file for team in tuple(files) for file in team.parent.glob(f"{PEOPLE}/*/{BANK_NAME}")}
    named: dict[str, list[Path]] = {}
    for file in sorted(file for file in files if has_bank_at(file)):
        named.setdefault(bank_name(file), []).append(file)
    return named


def mark_of(store: Store) -> str:
    """Return the secret mark that a bank's file holds; empty for one that was never noted.

    The log beside it does not count: this user's own may lie beside a stranger's file.
    """
    return store.setting_at_rest(MARK)


def _holds_mark(file: Path, note: dict[str, object] | None) -> bool:
    """Say whether a bank's own file holds the mark that was noted, whatever the log beside it holds.

    The bytes are searched, not the tables: while a process writes the log into the file, or after one was
    killed doing so, the file without its log is no whole database. Nobody else knows the mark.
    """
    mark = str((note or {}).get("mark", "")).encode()
    for _ in range(_LOOKS if mark else 0):
        with (
            suppress(OSError, ValueError),
            file.open("rb") as stream,
            mmap(stream.fileno(), 0, access=ACCESS_READ) as content,
        ):
            if content.find(mark) >= 0:
                return True
        # A process of ours may move the mark to another page just now.
        time.sleep(_LOOK_AGAIN_S)
    return False


def _make_noted(file: Path, open_store: Callable[[LogNote | None], Store]) -> Store:
    with _locked_home() as home, _locked_state(file):
        if _is_new(file):
            store = open_store(LogNote(file))
            try:
                _note(home, file, store)
            except BaseException:
                store.close()
                raise
            return store
    # Another process was faster.
    return open_trusted(file, open_store)


def _write_mark(store: Store, mark: str) -> None:
    from archivist.clock import system_clock
    from archivist.records.actor import ARCHIVIST

    with store.writing(ARCHIVIST, system_clock()) as writer:
        writer.set_setting(MARK, mark)
    store.settle()


def _note(home: Path, file: Path, store: Store, mark: str = "") -> None:
    mark = mark or os.urandom(16).hex()
    _write_mark(store, mark)
    _note_log(file, store)
    notes = {**_read_notes(home), _place_key(file): {"mark": mark, "number": _file_number(file)}}
    _write_notes(home, notes)


def _note_log(file: Path, store: Store) -> None:
    with store.reading() as reader:
        LogNote(file).after_commit(reader.last_entry())
    if (state := _state_or_none(file)) is not None:
        (state / _LOSS_NOTE).unlink(missing_ok=True)


def _read_notes(home: Path) -> dict[str, dict[str, object]]:
    try:
        notes = _parse_notes((home / FILE_NAME).read_bytes())
    except (OSError, ValueError):
        # What cannot be read trusts nobody.
        return {}
    return {place: note for place, note in notes.items() if isinstance(note, dict)}


# To open a bank the notes are asked three times; of 800 banks parsing takes 1 ms.
@lru_cache(maxsize=1)
def _parse_notes(text: bytes) -> dict[str, object]:
    notes: dict[str, object] = json.loads(text)
    return notes


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
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            raise BankError(f"{str(home)!r} cannot be written", hint=hint) from None
    with lock_folder(home):
        yield home


def _place_key(file: Path) -> str:
    return _as_key(str(real_place(file)))


def _as_key(path: str) -> str:
    # Bytes that are no text stay apart from each other.
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file_number(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0


def _is_new(file: Path) -> bool:
    """Say whether nothing is there: no bank, and no log of SQLite's that would become part of a new one."""
    return not any(_size(file.with_name(file.name + ending)) for ending in _SIDE_FILES)


def _is_gone(file: Path) -> bool:
    """Say whether a place holds no bank, or something else in the place of one or of its folder."""
    try:
        kinds = stat.S_IFMT(file.parent.lstat().st_mode), stat.S_IFMT(file.lstat().st_mode)
    except OSError:
        return True
    is_inside = file.parent.name == FOLDER
    return (is_inside and kinds[0] != stat.S_IFDIR) or kinds[1] != stat.S_IFREG or _is_new(file)


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


def is_of_home(file: Path) -> bool:
    """Say whether a bank lies in the user's own folder: the global one does."""
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
