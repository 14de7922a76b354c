"""Remember what an erasure still has to clean, so that the next call finishes one that was killed.

To find the text in files, the text must be known; but a bank that holds it has not erased it. So it is split:
the bank holds the text XORed with a key of random bytes, and a file under the user's home holds the key.
Neither says anything about the text alone, and both are removed when the erasure is done. The process that
works on an erasure holds a lock on the key's file, which ends with the process.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.cold_start import blake2s
from archivist.files.write import create_locked, wait_for_lock
from archivist.paths import home_folder
from archivist.records.plain import canonical_json, from_plain, to_plain
from archivist.records.words import UNFINISHED_ERASURES

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

_FOLDER = "erasures"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedErasure:
    """An erasure whose rows are erased and whose files are still to be cleaned.

    `texts` is None when they cannot be known any more, because the key is gone.
    """

    id: str
    time: datetime
    asked: tuple[str, ...] = ()
    digest: str = ""
    notes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    removed: dict[str, int] = field(default_factory=dict)
    key: str = ""
    masked: str = ""
    texts: tuple[str, ...] | None = None

    @property
    def has_key(self) -> bool:
        """Say whether its key is still there."""
        try:
            return bool(self.key) and (home_folder() / _FOLDER / self.key).is_file()
        except RuntimeError:
            return False


@contextmanager
def create_key(bank_path: Path, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Make a key for texts and hold it; yield its name and the masked texts, both empty without a home."""
    plain = json.dumps(list(texts)).encode()
    key = secrets.token_bytes(len(plain))
    try:
        folder = home_folder() / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path, descriptor = create_locked(folder, f"{_bank_mark(bank_path)}-", 0o600)
        os.write(descriptor, key)
        os.fsync(descriptor)
    except (OSError, RuntimeError):
        yield "", ""
        return
    try:
        yield path.name, _mask(plain, key).hex()
    finally:
        os.close(descriptor)


@contextmanager
def open_key(erasure: UnfinishedErasure) -> Iterator[UnfinishedErasure | None]:
    """Yield the erasure with its texts, or None while another process works on it."""
    try:
        path = home_folder() / _FOLDER / erasure.key
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, RuntimeError):
        yield erasure
        return
    try:
        if not wait_for_lock(descriptor, 0):
            yield None
            return
        masked = bytes.fromhex(erasure.masked)
        key = os.read(descriptor, len(masked) + 1)
        # A shorter one was cut off by a full disk.
        is_whole = len(key) == len(masked)
        texts = tuple(json.loads(_mask(masked, key))) if is_whole else None
        yield replace(erasure, texts=texts)
    finally:
        os.close(descriptor)


def remove_keys(bank_path: Path, load: Callable[[], Sequence[UnfinishedErasure]]) -> None:
    """Remove the keys of a bank's finished erasures, and of those that were killed before they erased."""
    with suppress(OSError, RuntimeError):
        for path in (home_folder() / _FOLDER).glob(f"{_bank_mark(bank_path)}-*"):
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                # While another process holds it, that one may still enter its erasure in the bank: so ask
                # the bank only when the lock is ours.
                if wait_for_lock(descriptor, 0) and all(path.name != each.key for each in load()):
                    os.pwrite(descriptor, bytes(os.fstat(descriptor).st_size), 0)
                    path.unlink()
            finally:
                os.close(descriptor)


def load_unfinished(reader: Reader) -> list[UnfinishedErasure]:
    """Return the erasures that are not finished, the oldest first."""
    noted = json.loads(reader.setting(UNFINISHED_ERASURES) or "[]")
    return [from_plain(UnfinishedErasure, each) for each in noted]


def store_unfinished(writer: Writer, erasures: Sequence[UnfinishedErasure]) -> None:
    """Store which erasures are not finished; their texts only masked."""
    values = [{name: each for name, each in to_plain(e).items() if name != "texts"} for e in erasures]
    writer.set_setting(UNFINISHED_ERASURES, canonical_json(values) if values else "")


def _bank_mark(path: Path) -> str:
    """Return a short name for a bank's place, by which its keys are found."""
    return blake2s(os.fsencode(path.absolute()), digest_size=8).hexdigest()


def _mask(data: bytes, key: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, key, strict=True))
