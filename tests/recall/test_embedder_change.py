"""Another embedder takes over: search goes on meanwhile, and nothing of the old one stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2s
from threading import Thread
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from archivist import Bank
from archivist.recall.query import Query

HANG = "pytest never finishes while the container is down"
OTHERS = (
    "Use tabs in the Makefile",
    "The logo is blue",
    "Invoices are rounded half up",
    "Write release notes",
)


@dataclass(frozen=True)
class WordHashes:
    """A tiny embedder: every word has a direction of its own."""

    name: str = "hashes-64"
    dimensions: int = 64

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the sum of the directions of a text's words, of unit length."""
        total = np.zeros(self.dimensions)
        for word in text.lower().split():
            seed = int.from_bytes(blake2s(word.encode("utf-8", "replace"), digest_size=4).digest(), "big")
            total += np.random.default_rng(seed).standard_normal(self.dimensions)
        length = float(np.linalg.norm(total))
        return [float(value) for value in (total / length if length else total)]

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text."""
        rows = [self.embed_query(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)


def _names(bank: Bank, text: str, **asked: Any) -> list[str]:
    return [hit.name for hit in bank.recall(Query(text=text, **asked)).hits]


def _embed(bank: Bank) -> None:
    list(bank.vectors.embed_waiting())


def _fill(bank: Bank, *texts: str) -> None:
    with bank.transaction():
        for text in texts:
            bank.lessons.add(text)


def _raw(bank: Bank, sql: str) -> list[Any]:
    db = apsw.Connection(str(bank.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_another_embedder_takes_over_batch_by_batch_while_search_goes_on(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    old = bank.recall(Query(text="the tests hang")).embedder
    new = WordHashes()
    bank._embedders = [new]
    assert bank.vectors.count_unembedded() == 5
    for left in (3, 1):
        list(bank.vectors.embed_waiting(limit=2))
        assert bank.vectors.count_unembedded() == left
        found = bank.recall(Query(text="the tests hang"))
        assert (found.hits[0].name, found.embedder) == ("m-005", old)
        assert found.hits[0].why.why.cosine is not None
    _embed(bank)
    found = bank.recall(Query(text="while the container is down"))
    assert (found.hits[0].name, found.embedder, found.unembedded) == ("m-005", new.name, 0)
    assert _raw(bank, "SELECT name, is_used FROM embedders") == [(new.name, 1)]
    every = (
        "SELECT id >> 32 FROM vector_rows UNION SELECT id >> 32 FROM vector_halves"
        " UNION SELECT id >> 32 FROM vector_blocks UNION SELECT id >> 32 FROM vector_changes"
    )
    assert len(_raw(bank, every)) == 1
    assert _raw(bank, "SELECT count(*) FROM vector_rows") == [(5,)]


def test_while_an_embedder_takes_over_nothing_is_said_to_be_missing(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    bank._embedders = [WordHashes()]
    list(bank.vectors.embed_waiting(limit=3))
    assert bank.recall(Query(text="the tests hang")).unembedded == 0


def test_a_text_written_while_an_embedder_takes_over_gets_its_vector(bank: Bank) -> None:
    _fill(bank, *OTHERS)
    _embed(bank)
    bank._embedders = [WordHashes()]
    list(bank.vectors.embed_waiting(limit=2))
    bank.lessons.add(HANG)
    assert _names(bank, "the tests hang")[0] == "m-005"
    bank.lessons.edit("m-001", summary="Colours of the chart")
    _embed(bank)
    assert (bank.vectors.count_unembedded(), bank.recall(Query(text="chart")).embedder) == (
        0,
        WordHashes().name,
    )
    assert _names(bank, "colours of", kinds=("lesson",))[0] == "m-001"


def test_who_goes_back_to_the_first_embedder_keeps_nothing_of_the_other(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    first = bank.embedder
    bank._embedders = [WordHashes()]
    list(bank.vectors.embed_waiting(limit=2))
    bank._embedders = [first]
    _embed(bank)
    assert bank.vectors.count_unembedded() == 0
    assert _raw(bank, "SELECT count(*) FROM embedders") == [(1,)]
    assert _raw(bank, "SELECT count(*) FROM vector_rows") == [(5,)]


def test_vectors_are_made_in_the_background(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    thread = Thread(target=lambda: list(bank.vectors.embed_waiting()), daemon=True)
    thread.start()
    thread.join(30)
    assert (thread.is_alive(), bank.vectors.count_unembedded()) == (False, 0)
    assert _names(bank, "the tests hang", kinds=("lesson",))[0] == "m-005"


def test_work_in_the_background_can_be_stopped_and_taken_up_again(bank: Bank) -> None:
    _fill(bank, *(f"Note {number}" for number in range(100)))
    thread = Thread(target=lambda: next(bank.vectors.embed_waiting(limit=10)), daemon=True)
    thread.start()
    thread.join(30)
    assert (thread.is_alive(), bank.vectors.count_unembedded()) == (False, 90)
    _embed(bank)
    assert bank.vectors.count_unembedded() == 0
