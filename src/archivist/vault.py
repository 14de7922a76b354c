"""What every desk works on: the store with its transactions, who acts and what they may, the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from archivist.access.rights import Layer, Verb, access_hint, may
from archivist.clock import Clock
from archivist.config import Config
from archivist.errors import AccessError, BankError
from archivist.ids import IdSource
from archivist.paths import project_folder
from archivist.records.actor import Actor

if TYPE_CHECKING:
    from typing import Self

    from archivist.bus import Bus
    from archivist.recall.embedders import Embedder
    from archivist.store.protocol import Reader, Store, Writer


# Who is refused must not keep others waiting for a bank that somebody else writes.
_DENIAL_S = 0.2
# Listeners poll every moment; anything older is in the ledger.
_MESSAGES = 1_000


class BankContext:
    """A store in the hands of one actor."""

    def __init__(
        self,
        store: Store,
        *,
        path: Path,
        actor: Actor,
        config: Config,
        clock: Clock,
        ids: IdSource,
        bus: Bus | None = None,
        embedders: list[Embedder | None] | None = None,
        timeout_s: float | None = None,
        folder: Path | None = None,
    ) -> None:
        self._store = store
        self.path = path
        self.actor = actor
        self.config = config
        self.now = clock
        self._ids = ids
        self._bus = bus
        self._embedders = embedders if embedders is not None else []
        self._patience_s = timeout_s
        # Where its caller works, which says what project is meant; None for who works in no folder of ours.
        self.folder = folder

    def acting_as(self, actor: Actor, *, timeout_s: float | None = None) -> Self:
        """Return the same bank in another actor's name; who has waited already may wait so much longer."""
        return type(self)(
            self._store,
            path=self.path,
            actor=actor,
            config=self.config,
            clock=self.now,
            ids=self._ids,
            bus=self.bus,
            # To open an embedder takes longer than to ask it.
            embedders=self._embedders,
            timeout_s=timeout_s,
            folder=self.folder,
        )

    @property
    def root(self) -> Path:
        """Return the project's folder; of a bank that lies in none, the folder of its file."""
        return project_folder(self.path)

    @property
    def is_there(self) -> bool:
        """Say whether the bank that was opened is still the one at its path."""
        return self._store.is_same_bank

    def close(self) -> None:
        """Let go of the bank."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def bus(self) -> Bus:
        """Return the bus of live messages, to which doors subscribe."""
        if self._bus is None:
            from archivist.bus import Bus

            self._bus = Bus()
        return self._bus

    def announce(self, kind: str, **data: object) -> None:
        """Publish a live message; a bank that cannot keep it must not fail for that."""
        from archivist.bus import Message

        message = Message(kind, self.now(), data)
        with suppress(BankError), self.transaction() as writer:
            writer.store_message(message, max_messages=_MESSAGES)
        # Listeners look it up in the bank, so it is stored before it is published.
        self.bus.publish(message)

    def new_id(self, moment: datetime) -> str:
        """Return a fresh id that sorts by time."""
        return self._ids(moment)

    @contextmanager
    def transaction(self, *, timeout_s: float | None = None) -> Iterator[Writer]:
        """Make everything inside the block one change: all of it is kept, or none.

        A bank that somebody else writes is waited for as configured, or so long.
        """
        is_outermost = not self._store.is_writing
        timeout_s = self._patience_s if timeout_s is None else timeout_s
        try:
            with self._store.writing(self.actor, self.now(), lock_timeout_s=timeout_s) as writer:
                yield writer
        except AccessError as error:
            # What was refused inside is taken back with the rest; that it was refused is not.
            if is_outermost:
                self._note_denial(error)
            raise

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Refuse, and note in the ledger, what the actor may not do."""
        if may(self.actor, layer, verb, owner=owner):
            return
        self.refuse(layer, verb, hint=access_hint(layer, verb), what=owner or "")

    def refuse(self, layer: Layer, verb: Verb, *, hint: str, what: str = "") -> NoReturn:
        """Raise AccessError, and note in the ledger that the actor was refused."""
        told = f"{layer.value} of {what!r}" if what else layer.value
        error = AccessError(str(self.actor), verb.value, told, hint=hint)
        if not self._store.is_writing and not self._store.is_reading:
            self._note_denial(error)
        raise error

    def _note_denial(self, error: AccessError) -> None:
        try:
            with self._store.writing(self.actor, self.now(), lock_timeout_s=_DENIAL_S) as writer:
                writer.record_denial(error.verb, error.layer)
        except BankError:
            # A bank that cannot be written cannot keep it either; the refusal stands.
            return

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read within one unchanging view."""
        is_outermost = not self._store.is_reading and not self._store.is_writing
        try:
            with self._store.reading() as reader:
                yield reader
        except AccessError as error:
            if is_outermost:
                self._note_denial(error)
            raise

    @property
    def embedder(self) -> Embedder | None:
        """Return the configured embedder, opened when it is first needed; None for words alone."""
        if not self._embedders:
            from archivist.recall.embedders.choice import open_embedder

            self._embedders.append(open_embedder(self.config.recall, self.path.parent))
        return self._embedders[0]

    def find_embedder(self, name: str) -> Embedder | None:
        """Return the embedder that made vectors of this name: the configured one, else the bundled one."""
        from archivist.recall.embedders.static import StaticEmbedder

        configured = self.embedder
        if configured is None or configured.name == name:
            return configured
        if len(self._embedders) == 1:
            self._embedders.append(StaticEmbedder())
        bundled = self._embedders[1]
        return bundled if bundled is not None and bundled.name == name else None
