"""Artifacts: register files that runs produced, and check whether they changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.redaction import clean_text, validate_name, validate_path
from archivist.errors import InputError, NotFoundError, RecordError, StateError
from archivist.files.open import MissingFileError, UnreadableError, open_regular, real_path
from archivist.layers.claims import source_of
from archivist.paths import FOLDER
from archivist.records.layers import NAME_CHARACTERS, VALUE_CHARACTERS, Artifact
from archivist.records.plain import decoder, from_plain
from archivist.records.tier_words import ArtifactType
from archivist.service import BankService
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

NEWEST = ("-created", "-id")
_WAIT = "try again when it is done"
_OUTSIDE = "only files in the project's folder can be registered"


class FileState(StrEnum):
    """How a file compares with its registered version."""

    SAME = "same"
    CHANGED = "changed"
    MISSING = "missing"
    UNREADABLE = "unreadable"


class ArtifactCheck(NamedTuple):
    """The result of checking one artifact's file; `note` says what is wrong."""

    artifact: Artifact
    state: FileState
    note: str = ""


class Artifacts(BankService):
    """The files that runs produced, by task, agent and path."""

    @writes(Layer.ARTIFACTS)
    def register(
        self,
        path: str | Path,
        *,
        task: str,
        agent: str = "",
        type: ArtifactType | str = ArtifactType.FILE,  # noqa: A002 the field's own name
        description: str = "",
        run: str = "",
        size_bytes: int | None = None,
        checksum: str = "",
    ) -> Artifact:
        """Register a file that an agent produced for a task, with its current size and checksum.

        A size or SHA-256 that is given must be the file's, else it is not registered. The path must be inside
        the project's folder. The same content for the same task and agent is one artifact; other content at
        the same path is its next version.
        """
        agent = agent or source_of(self._bank.actor)
        self.require(Layer.ARTIFACTS, Verb.WRITE, owner=agent)
        now = self._bank.now()
        kept = validate_path("path", relative_path(self.root, path))
        own, real = (Path(os.path.realpath(place)) for place in (self._bank.path, self.root / kept))
        is_own = real.parent == own.parent and real.name.startswith(own.name)
        # Registering the bank's own files would change them.
        if is_own or (own.parent.name == FOLDER and real.is_relative_to(own.parent)):
            raise InputError(f"{Path(kept).name!r} is the bank's own", hint="register what a run produced")
        with open_artifact(self.root, kept) as descriptor:
            measured = measure_file(descriptor, self.root / kept)
        said = (measured[0] if size_bytes is None else size_bytes, checksum.lower() or measured[1])
        if said != measured:
            told, found = (f"{size} bytes with SHA-256 {digest}" for size, digest in (said, measured))
            hint = "register it again with what it has now, or without size and checksum"
            raise StateError(f"{kept!r} has {found}, not {told}", hint=hint)
        made = from_plain(
            Artifact,
            {
                "id": self._bank.new_id(now),
                "task": " ".join(clean_text(task).split()),
                "agent": validate_name("agent", agent),
                "type": str(type),
                "path": kept,
                "description": clean_text(description.strip()),
                "size_bytes": measured[0],
                "checksum": measured[1],
                "created": now,
                "run": validate_name("run", run),
            },
        )
        limits = {"task": VALUE_CHARACTERS, "agent": NAME_CHARACTERS, "description": VALUE_CHARACTERS}
        for name, most in limits.items():
            text = getattr(made, name)
            if not text and name != "description":
                raise RecordError(f"{name}: missing or empty", hint="name the task that it was made for")
            if len(text) > most:
                raise RecordError(f"{name}: {len(text)} characters, at most {most}")
        with self._bank.transaction() as writer:
            return _store_version(writer, made)

    @property
    def root(self) -> Path:
        """Return the project's folder, which contains every artifact."""
        return real_path(self._bank.root)

    @reads(Layer.ARTIFACTS)
    def get(self, name: str) -> Artifact:
        """Return an artifact by its id, or the latest version of a path."""
        with self._bank.reading() as reader:
            return self._find(reader, name)

    @reads(Layer.ARTIFACTS)
    def query(
        self,
        *,
        task: str = "",
        agent: str = "",
        type: ArtifactType | str | None = None,  # noqa: A002 the field's own name
        path: str = "",
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Artifact]:
        """Return the matching artifacts, newest first; `after` continues behind a place in that order."""
        asked: dict[str, object] = {
            "task": task,
            "agent": agent,
            "type": decoder(ArtifactType)(str(type)) if type else "",
            "path": _stored_path(self.root, path) if path else "",
        }
        conditions = [equals(name, value) for name, value in asked.items() if value]
        with self._bank.reading() as reader:
            return reader.select(Artifact, *conditions, order=NEWEST, after=after, limit=limit)

    @reads(Layer.ARTIFACTS)
    def versions(self, path: str) -> list[Artifact]:
        """Return every version of a path, oldest first."""
        found = self.query(path=path)
        if not found:
            raise NotFoundError("artifact", path)
        return found[::-1]

    @writes(Layer.ARTIFACTS)
    def remove(self, name: str) -> Artifact:
        """Unregister an artifact; the file stays, and the next version refers to the one before."""
        with self._bank.transaction() as writer:
            artifact = self._find(writer, name)
            self.require(Layer.ARTIFACTS, Verb.WRITE, owner=artifact.agent)
            for later in writer.select(Artifact, equals("previous", artifact.id)):
                writer.put(replace(later, previous=artifact.previous), "remove")
            writer.remove(Artifact, artifact.id, "remove")
        return artifact

    @reads(Layer.ARTIFACTS)
    def verify(self, names: Sequence[str] = ()) -> list[ArtifactCheck]:
        """Compare files with their registered versions: the named ones, or the latest of each path."""
        with self._bank.reading() as reader:
            if names:
                chosen = [self._find(reader, name) for name in dict.fromkeys(names)]
            else:
                every = reader.select(Artifact, order=("created", "id"))
                latest = {artifact.path: artifact for artifact in every}
                chosen = sorted(latest.values(), key=lambda artifact: artifact.path)
        return [self._check_file(artifact) for artifact in chosen]

    def _check_file(self, artifact: Artifact) -> ArtifactCheck:
        try:
            with open_artifact(self.root, artifact.path) as descriptor:
                size, note = os.fstat(descriptor).st_size, ""
                if size != artifact.size_bytes:
                    note = f"{size} bytes, {artifact.size_bytes} when it was registered"
                elif measure_file(descriptor, self.root / artifact.path)[1] != artifact.checksum:
                    note = "other content of the same size"
        except InputError as error:
            state = FileState.MISSING if isinstance(error, NoFileError) else FileState.UNREADABLE
            return ArtifactCheck(artifact, state, error.message)
        return ArtifactCheck(artifact, FileState.CHANGED if note else FileState.SAME, note)

    def _find(self, reader: Reader, name: str) -> Artifact:
        artifact = reader.get(Artifact, name)
        if artifact is not None:
            return artifact
        found = reader.select(Artifact, equals("path", _stored_path(self.root, name)), order=NEWEST, limit=1)
        if not found:
            raise NotFoundError("artifact", name)
        return found[0]


def relative_path(root: Path, path: str | Path) -> str:
    """Return a path as it is stored: relative to the resolved root, with slashes; outside is refused."""
    told = str(path)
    if not told.strip() or "\0" in told:
        raise InputError(f"{told!r} names no file", hint="give a path inside the project's folder")
    try:
        told.encode()
    except UnicodeEncodeError:
        raise InputError(f"the name {told!r} is not UTF-8", hint="rename the file") from None
    whole = Path(os.path.normpath(root / told))
    # The same folder can have a name through a symbolic link.
    for place in (whole, real_path(whole.parent) / whole.name):
        if place.is_relative_to(root):
            return place.relative_to(root).as_posix()
    raise InputError(f"{told!r} lies outside the project's folder", hint=_OUTSIDE)


@contextmanager
def open_artifact(root: Path, kept: str) -> Iterator[int]:
    """Open a regular file inside the resolved root."""
    path = root / kept
    if not real_path(path).is_relative_to(root):
        raise InputError(f"{kept!r} leads outside the project's folder", hint=_OUTSIDE)
    try:
        source = open_regular(path)
    except MissingFileError:
        raise NoFileError(kept) from None
    except UnreadableError as error:
        raise InputError(f"{kept!r} {error.reason}", hint=error.hint) from None
    with source:
        yield source.fileno()


class NoFileError(InputError):
    """There is no file at an artifact's path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no file {path!r}", hint="register the file after it is written")


def measure_file(descriptor: int, path: Path) -> tuple[int, str]:
    """Return the size and the SHA-256 of an open file; raise StateError when it changed while it was read."""
    before = os.fstat(descriptor)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            digest = file_digest(stream, "sha256")
        after = os.fstat(descriptor)
    except OSError as error:
        raise InputError(f"{path.name!r} cannot be read: {error.strerror}", hint="check the file") from None
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise StateError(f"{path.name!r} was written to while it was read", hint=_WAIT)
    with suppress(OSError, RuntimeError):
        if os.path.samestat(after, path.stat()):
            return after.st_size, digest.hexdigest()
    raise StateError(f"{path.name!r} was replaced or deleted while it was read", hint=_WAIT)


def _store_version(writer: Writer, made: Artifact) -> Artifact:
    """Store an artifact as the next version of its path, unless that version is known."""
    versions = writer.select(Artifact, equals("path", made.path), order=NEWEST)
    for known in versions:
        if known.checksum != made.checksum:
            break
        if (known.task, known.agent) == (made.task, made.agent):
            updated = replace(
                known,
                description=made.description or known.description,
                type=known.type if made.type is ArtifactType.FILE else made.type,
                run=made.run or known.run,
            )
            writer.put(updated, "describe")
            return updated
    made = replace(made, previous=versions[0].id if versions else "")
    writer.put(made, "register")
    return made


def _stored_path(root: Path, path: str) -> str:
    """Return a path as it would be stored; an invalid one matches nothing."""
    try:
        return relative_path(root, path)
    except InputError:
        return str(PurePosixPath(path))
