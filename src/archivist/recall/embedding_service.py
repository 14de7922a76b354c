"""Work on vectors: make those that are missing, outside of transactions, and change the embedder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING

from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.recall.embedders import Embedder
    from archivist.store.results import PendingEmbedding

# So many texts are embedded between two short transactions.
_BATCH = 4096
# So few are embedded without numpy, whose import takes longer.
_FEW = 32


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the vectors are."""

    done: int
    total: int


def embed_waiting(bank: Bank, *, limit: int | None = None) -> Iterator[Progress]:
    """Make the vectors that are missing, a batch at a time as the iterator is drawn; at most `limit`.

    While an embedder takes over from another, search goes on with the other's vectors until all are made.
    """
    embedder = bank.embedder
    if embedder is None:
        _merge_index(bank)
        return
    with bank.reading() as reader:
        waiting = reader.pending_embedding_count(embedder.name)
        in_use = reader.embedder_in_use()
    total = waiting if limit is None else min(limit, waiting)
    done = 0
    while done < total:
        with bank.reading() as reader:
            texts = reader.pending_embeddings(embedder.name, limit=min(_BATCH, total - done))
        if not texts:
            break
        made = _embed_and_pack(embedder, texts)
        with bank.transaction() as writer:
            writer.put_vectors(embedder.name, embedder.dimensions, made)
        done += len(texts)
        yield Progress(done, total)
    # Also after a change that was given up: the other's vectors are of no use any more.
    if in_use and (done or in_use != embedder.name) and done >= waiting:
        with bank.transaction() as writer:
            if not writer.pending_embedding_count(embedder.name):
                writer.use_embedder(embedder.name)
    if done:
        _merge_index(bank)


def _merge_index(bank: Bank) -> None:
    """Bring the scattered pieces of the text index together, in short transactions."""
    is_more = True
    while is_more:
        with bank.transaction() as writer:
            is_more = writer.merge_index()


def embed_in_background(bank: Bank) -> tuple[Thread, Signal]:
    """Make the missing vectors in a thread; setting the signal ends it after the batch at hand."""
    stop = Signal()

    def work() -> None:
        for _ in embed_waiting(bank):
            if stop.is_set():
                return

    thread = Thread(target=work, name="archivist-embedding", daemon=True)
    thread.start()
    return thread, stop


def _embed_and_pack(
    embedder: Embedder, texts: list[PendingEmbedding]
) -> list[tuple[int, int, tuple[bytes, bytes, bytes]]]:
    from archivist.store.vectors import pack_vector, pack_vectors

    if len(texts) <= _FEW:
        rows = [pack_vector(embedder.embed_query(each.text)) for each in texts]
    else:
        rows = pack_vectors(embedder.embed_texts([each.text for each in texts]))
    return [(each.place, each.revision, row) for each, row in zip(texts, rows, strict=True)]


class Vectors(BankService):
    """The vectors of what can be found."""

    def embed_waiting(self, *, limit: int | None = None) -> Iterator[Progress]:
        """Make the vectors that are missing, a batch at a time as the iterator is drawn."""
        return embed_waiting(self._bank, limit=limit)

    def count_unembedded(self) -> int:
        """Return how many texts wait for their vector."""
        if self._bank.embedder is None:
            return 0
        with self._bank.reading() as reader:
            return reader.pending_embedding_count(self._bank.embedder.name)

    def embed_in_background(self) -> tuple[Thread, Signal]:
        """Make the missing vectors in a thread; setting the signal ends it after the batch at hand."""
        return embed_in_background(self._bank)
