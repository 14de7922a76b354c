"""Vectors: make those that are missing, outside of transactions, and change the embedder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event as Signal
from threading import Thread

from archivist.service import BankService

# Texts that are embedded between two short transactions.
_BATCH = 4096
# Up to so many are embedded without numpy, whose import takes longer.
_FEW = 32


@dataclass(frozen=True, slots=True)
class Progress:
    """How many vectors are made."""

    done: int
    total: int


class Vectors(BankService):
    """The vectors of searchable records."""

    def embed_waiting(self, *, limit: int | None = None) -> Iterator[Progress]:
        """Make the missing vectors, at most `limit`, a batch at a time as the iterator is consumed.

        While the embedder changes, search uses the vectors of the old one until all are made.
        """
        from archivist.store.vectors import pack_vector, pack_vectors

        bank, embedder = self._bank, self._bank.embedder
        if embedder is None:
            self._merge_index()
            return
        with bank.reading() as reader:
            waiting = reader.pending_embedding_count(embedder.name)
            in_use = reader.embedder_in_use()
        total = waiting if limit is None else min(limit, waiting)
        done = 0
        while done < total:
            with bank.reading() as reader:
                pending = reader.pending_embeddings(embedder.name, limit=min(_BATCH, total - done))
            if not pending:
                break
            if len(pending) <= _FEW:
                packed = [pack_vector(embedder.embed_query(each.text)) for each in pending]
            else:
                packed = pack_vectors(embedder.embed_texts([each.text for each in pending]))
            rows = [(each.place, each.revision, row) for each, row in zip(pending, packed, strict=True)]
            with bank.transaction() as writer:
                writer.put_vectors(embedder.name, embedder.dimensions, rows)
            done += len(pending)
            yield Progress(done, total)
        # Also after a change that was given up: the vectors of the other embedder are useless then.
        if in_use and (done or in_use != embedder.name) and done >= waiting:
            with bank.transaction() as writer:
                if not writer.pending_embedding_count(embedder.name):
                    writer.use_embedder(embedder.name)
        if done:
            self._merge_index()

    def count_unembedded(self) -> int:
        """Return how many texts have no vector yet."""
        if self._bank.embedder is None:
            return 0
        with self._bank.reading() as reader:
            return reader.pending_embedding_count(self._bank.embedder.name)

    def embed_in_background(self) -> tuple[Thread, Signal]:
        """Make the missing vectors in a thread; setting the signal ends it after the current batch."""
        stop = Signal()

        def work() -> None:
            for _ in self.embed_waiting():
                if stop.is_set():
                    return

        thread = Thread(target=work, name="archivist-embedding", daemon=True)
        thread.start()
        return thread, stop

    def _merge_index(self) -> None:
        """Merge the segments of the text index, in short transactions."""
        is_more = True
        while is_more:
            with self._bank.transaction() as writer:
                is_more = writer.merge_index()
