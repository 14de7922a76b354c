"""Make the vectors of searchable records outside of transactions, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from archivist.errors import BankLockedError, EmbedderError
from archivist.recall.embedders import changed_dimensions
from archivist.recall.results import FRESH
from archivist.service import BankService

# Texts that are embedded between two short transactions.
_BATCH = 4096
# Up to so many are embedded without numpy, whose import takes longer.
_FEW = 32
# From so many on a write makes vectors: well below what a search embeds by itself.
_BACKLOG = FRESH // 2


class Vectors(BankService):
    """The vectors of searchable records."""

    def embed_waiting(self, *, limit: int | None = None) -> Iterator[int]:
        """Make the missing vectors, at most `limit`, batch by batch; yield how many there are after each.

        While the embedder changes, search uses the vectors of the old one until all are made.
        """
        from archivist.recall.embedders.static import StaticEmbedder
        from archivist.store.vectors import pack_vector, pack_vectors

        bank, embedder = self._bank, self._bank.embedder
        if embedder is None:
            self._merge_index()
            return
        with bank.reading() as reader:
            waiting = reader.pending_embedding_count(embedder.name)
            in_use = reader.embedder_in_use()
            width = reader.embedder_dimensions(embedder.name)
        total = waiting if limit is None else min(limit, waiting)
        done = 0
        while done < total:
            with bank.reading() as reader:
                pending = reader.pending_embeddings(embedder.name, limit=min(_BATCH, total - done))
            if not pending:
                break
            if len(pending) <= _FEW and isinstance(embedder, StaticEmbedder):
                packed = [pack_vector(embedder.embed_query(each.text)) for each in pending]
            else:
                packed = pack_vectors(embedder.embed_texts([each.text for each in pending]))
            if width and embedder.dimensions != width:
                raise changed_dimensions(embedder, width)
            rows = [(each.place, each.revision, row) for each, row in zip(pending, packed, strict=True)]
            with bank.transaction() as writer:
                writer.put_vectors(embedder.name, embedder.dimensions, rows)
            done += len(pending)
            yield done
        # Also after a change that was given up: the vectors of the other embedder are useless then.
        if in_use and (done or in_use != embedder.name) and done >= waiting:
            with bank.transaction() as writer:
                if not writer.pending_embedding_count(embedder.name):
                    writer.use_embedder(embedder.name)
        if done:
            self._merge_index()

    def embed_backlog(self) -> int:
        """Make some missing vectors after a write, if more wait than a search makes by itself; say how many.

        Only the bundled table is quick enough: a batch of 32 takes about 10 ms, once in as many writes.
        """
        from archivist.recall.embedders.static import StaticEmbedder

        bank = self._bank
        if bank.store.is_writing or not isinstance(bank.embedder, StaticEmbedder):
            return 0
        with bank.reading() as reader:
            waiting = len(reader.unembedded_documents(bank.embedder.name, limit=_BACKLOG))
        # What was written is kept; whoever writes next makes the vectors.
        with suppress(EmbedderError, BankLockedError):
            return max(self.embed_waiting(limit=_FEW), default=0) if waiting >= _BACKLOG else 0
        return 0

    def count_unembedded(self) -> int:
        """Return how many texts have no vector yet."""
        if self._bank.embedder is None:
            return 0
        with self._bank.reading() as reader:
            return reader.pending_embedding_count(self._bank.embedder.name)

    def _merge_index(self) -> None:
        """Merge the segments of the text index, in short transactions."""
        is_more = True
        while is_more:
            with self._bank.transaction() as writer:
                is_more = writer.merge_index()
