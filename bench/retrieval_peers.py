"""The systems that are compared: each takes the memories of one bank in and answers questions with their ids.

Systems that know only text are given "speaker: text", which serves all of them better than the text alone
(LoCoMo, recall@10: FTS5 raw .52 against .49, MiniLM .46 against .29).
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.retrieval_data import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archivist.bank import Bank
    from archivist.recall.embedders import Embedder

LIMIT = 20
FUSION_K = 60
NO_ONNX = "no encoder given, see --onnx"
Search = Callable[[str], Sequence[str]]
Opener = Callable[[Sequence[Memory]], AbstractContextManager[Search]]

STOP_WORDS = frozenset([
    "a", "about", "above", "after", "again", "against", "all", "am", "an", "and", "any", "are", "as",
    "at", "be", "because", "been", "before", "being", "below", "between", "both", "but", "by", "can",
    "could", "did", "do", "does", "doing", "down", "during", "each", "few", "for", "from", "further",
    "had", "has", "have", "having", "he", "her", "here", "hers", "herself", "him", "himself", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "itself", "just", "me", "more", "most", "my",
    "myself", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "ours",
    "ourselves", "out", "over", "own", "s", "same", "she", "should", "so", "some", "such", "t", "than",
    "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these", "they", "this",
    "those", "through", "to", "too", "under", "until", "up", "very", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
    "yourself", "yourselves",
])  # fmt: skip
_WORD = re.compile(r"\w+")


def query_words(text: str, *, keeps_all: bool = False) -> list[str]:
    """Return the distinct words of a question, without stop words unless nothing else is in it."""
    words = list(dict.fromkeys(_WORD.findall(text.lower())))
    return words if keeps_all else [word for word in words if word not in STOP_WORDS] or words


class CachedEncoder:
    """An embedder that keeps what it has made, and remembers what each question cost to encode.

    A question's vector is taken from the cache by every system, so its cost is added to `owed_s` each time:
    the time of a query is what it would be without a cache.
    """

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.owed_s = 0.0
        self._queries: dict[str, tuple[list[float], float]] = {}
        place = ":memory:" if folder is None else str(folder / f"{embedder.name}.db")
        self._db = sqlite3.connect(place, isolation_level=None)
        self._db.execute(
            "create table if not exists vectors (text blob primary key, vector blob) without rowid"
        )
        self._db.execute(
            "create table if not exists queries (text blob primary key, vector blob, cost_s real)"
        )

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text; what is not kept yet is made, in batches that are kept as they come."""
        import numpy as np

        missing = list(dict.fromkeys(text for text in texts if self._kept(text) is None))
        for start in range(0, len(missing), 256):
            batch = missing[start : start + 256]
            rows = zip(batch, self._embedder.embed_texts(batch), strict=True)
            self._db.execute("begin")
            self._db.executemany(
                "insert or replace into vectors values (?, ?)",
                [(_digest(text), row.astype(np.float32).tobytes()) for text, row in rows],
            )
            self._db.execute("commit")
        return np.array([np.frombuffer(self._kept(text) or b"", np.float32) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        """Return a question's vector."""
        start_s = time.process_time()
        if text not in self._queries:
            self.prepare(text)
        vector, cost_s = self._queries[text]
        # What was just spent is measured already.
        self.owed_s += max(0.0, cost_s - (time.process_time() - start_s))
        return vector

    def prepare(self, text: str) -> None:
        """Encode a question and take the time, before any system is timed."""
        import numpy as np

        found = self._db.execute(
            "select vector, cost_s from queries where text = ?", (_digest(text),)
        ).fetchone()
        if found is None:
            start = time.process_time()
            made = np.asarray(self._embedder.embed_query(text), np.float32).tobytes()
            found = made, time.process_time() - start
            self._db.execute("insert into queries values (?, ?, ?)", (_digest(text), *found))
        self._queries[text] = np.frombuffer(found[0], np.float32).tolist(), found[1]

    def _kept(self, text: str) -> bytes | None:
        found = self._db.execute("select vector from vectors where text = ?", (_digest(text),)).fetchone()
        return None if found is None else bytes(found[0])


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "replace")).digest()


@dataclass(frozen=True, slots=True)
class System:
    """One row of the table: how it is opened, or why it is not."""

    name: str
    opens: Opener
    encoder: CachedEncoder | None = None
    is_ours: bool = False
    absent: str = ""


# Without any vectors


@contextmanager
def grep(memories: Sequence[Memory]) -> Iterator[Search]:
    """Search as a person would with `grep -iw`: most of the question's words first, the latest of equals."""
    held = [(frozenset(_WORD.findall(each.said.lower())), each.id) for each in memories]

    def search(text: str) -> list[str]:
        wanted = frozenset(query_words(text))
        counts = [(len(wanted & words), place) for place, (words, _) in enumerate(held)]
        return [held[place][1] for count, place in sorted(counts, reverse=True)[:LIMIT] if count]

    yield search


def full_text(*, tokenizer: str, keeps_all: bool) -> Opener:
    """Search with SQLite's FTS5: any of the words, by bm25."""

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        import apsw

        db = apsw.Connection(":memory:")
        db.execute(f"create virtual table memory using fts5(text, tokenize = '{tokenizer}')")
        db.executemany(
            "insert into memory (rowid, text) values (?, ?)",
            ((place, each.said) for place, each in enumerate(memories)),
        )

        def search(text: str) -> list[str]:
            words = query_words(text, keeps_all=keeps_all)
            if not words:
                return []
            wanted = " OR ".join(f'"{word}"' for word in words)
            found = db.execute("select rowid from memory(?) order by rank limit ?", (wanted, LIMIT))
            return [memories[int(place)].id for (place,) in found]

        yield search
        db.close()

    return opens


fts_raw = full_text(tokenizer="unicode61", keeps_all=True)
fts_stemmed = full_text(tokenizer="porter unicode61", keeps_all=False)


# With vectors


def encoder_alone(encoder: CachedEncoder) -> Opener:
    """Rank by the cosine to every memory."""

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        import numpy as np

        vectors = encoder.embed_texts([each.said for each in memories])

        def search(text: str) -> list[str]:
            likeness = vectors @ np.asarray(encoder.embed_query(text), np.float32)
            return [memories[int(place)].id for place in np.argsort(-likeness, kind="stable")[:LIMIT]]

        yield search

    return opens


def rank_fusion(first: Opener, second: Opener) -> Opener:
    """Add 1 / (60 + rank) over two rankings of 20; longer ones do worse (LoCoMo: .57 at 50, .64 at 20)."""

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        with first(memories) as one, second(memories) as other:

            def search(text: str) -> list[str]:
                scores: defaultdict[str, float] = defaultdict(float)
                for ranked in (one(text), other(text)):
                    for rank, name in enumerate(ranked, start=1):
                        scores[name] += 1 / (FUSION_K + rank)
                return sorted(scores, key=lambda name: -scores[name])[:LIMIT]

            yield search

    return opens


# Packages that others use for the same


def chroma(encoder: CachedEncoder) -> Opener:
    """Search with chromadb, one collection a bank, our vectors."""

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        client = import_module("chromadb").EphemeralClient(settings)
        collection = client.create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        texts = [each.said for each in memories]
        vectors = encoder.embed_texts(texts)
        for start in range(0, len(texts), 1000):
            part = slice(start, start + 1000)
            collection.add([each.id for each in memories[part]], vectors[part], documents=texts[part])

        def search(text: str) -> list[str]:
            found = collection.query(
                [encoder.embed_query(text)], n_results=min(LIMIT, len(texts)), include=[]
            )
            return list(found["ids"][0])

        yield search
        client.delete_collection("memories")

    return opens


def langgraph_store(encoder: CachedEncoder) -> Opener:
    """Search with langgraph's InMemoryStore and its index."""

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        questions: list[str] = []

        def embed(texts: Sequence[str]) -> list[list[float]]:
            if list(texts) == questions:
                return [encoder.embed_query(text) for text in texts]
            rows: list[list[float]] = encoder.embed_texts(texts).tolist()
            return rows

        store = import_module("langgraph.store.memory").InMemoryStore(
            index={"dims": encoder.dimensions, "embed": embed, "fields": ["text"]}
        )
        # One by one: a batch in which two memories have the same text is refused (langgraph 1.2).
        for each in memories:
            store.put(("bank",), each.id, {"text": each.said})

        def search(text: str) -> list[str]:
            questions[:] = [text]
            return [item.key for item in store.search(("bank",), query=text, limit=LIMIT)]

        yield search

    return opens


def mem0(encoder: CachedEncoder) -> Opener:
    """Search with mem0, memories as given, qdrant in memory.

    It is as `pip install mem0ai` leaves it: its keyword search and its entities need fastembed and spaCy
    with models that no package index has, and it says so in the log for every bank.
    """

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        with tempfile.TemporaryDirectory() as folder:
            # mem0 reads them when it is first imported: nothing leaves the machine, nothing goes to the home.
            os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
            logging.getLogger("mem0").setLevel(logging.ERROR)
            memory = _mem0_memory(encoder, Path(folder))
            for each in memories:
                said = [{"role": "user", "content": each.said}]
                memory.add(said, user_id="bank", metadata={"place": each.id}, infer=False)

            def search(text: str) -> list[str]:
                found = memory.search(text, top_k=LIMIT, filters={"user_id": "bank"}, threshold=0.0)
                return [each["metadata"]["place"] for each in found["results"]]

            yield search
            memory.close()

    return opens


class _Mem0Embedder:
    """Our encoder in mem0's form."""

    def __init__(self, encoder: CachedEncoder) -> None:
        self._encoder = encoder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return a text's vector."""
        if memory_action == "search":
            return self._encoder.embed_query(text)
        row: list[float] = self._encoder.embed_texts([text])[0].tolist()
        return row

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        """Return a vector a text."""
        return [self.embed(text, memory_action) for text in texts]


def _mem0_memory(encoder: CachedEncoder, folder: Path) -> Any:
    # Neither is asked for anything: memories are kept as given, and the embedder is replaced at once.
    offline = {"provider": "openai", "config": {"api_key": "none"}}
    store = {
        "collection_name": "memories",
        "embedding_model_dims": encoder.dimensions,
        "client": import_module("qdrant_client").QdrantClient(":memory:"),
        "path": str(folder),
    }
    memory = import_module("mem0").Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": offline,
            "embedder": offline,
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = _Mem0Embedder(encoder)
    return memory


# Archivist


def fill_bank(
    folder: str, memories: Sequence[Memory], encoder: CachedEncoder | None
) -> tuple[Bank, dict[str, str]]:
    """Open a bank that holds the memories, one run a thread; return also their names by the events' ids."""
    from archivist.bank import Bank
    from archivist.records import Episode, Event, EventKind

    threads: defaultdict[str, list[Event]] = defaultdict(list)
    names: dict[str, str] = {}
    for each in memories:
        event = Event(
            run=each.thread or "thread",
            seq=each.place,
            kind=EventKind.MESSAGE,
            role=each.speaker,
            time=each.time,
            text=each.text,
        )
        threads[event.run].append(event)
        names[event.id] = each.id
    bank = Bank.open(folder, create=True)
    # The vectors of one text serve all systems.
    vars(bank)["_embedders"][:] = [encoder]
    for run, events in threads.items():
        bank.capture(Episode(id=run), events)
    for _ in bank.vectors.embed_waiting():
        pass
    return bank, names


def archivist(encoder: CachedEncoder | None, server: str = "") -> Opener:
    """Search with Archivist through its library, as anybody would: one bank, one run a thread.

    With the URL of a PostgreSQL server the banks are there.
    """

    @contextmanager
    def opens(memories: Sequence[Memory]) -> Iterator[Search]:
        from archivist.recall.query import Query

        with tempfile.TemporaryDirectory() as folder:
            place = f"{server}#{Path(folder).name}" if server else folder
            bank, names = fill_bank(place, memories, encoder)

            def search(text: str) -> list[str]:
                hits = bank.recall(Query(text=text, kinds=("event",), limit=LIMIT, preset="relevance")).hits
                return [names[hit.id] for hit in hits if hit.id in names]

            yield search
            bank.close()

    return opens


PACKAGES: dict[str, tuple[str, Callable[[CachedEncoder], Opener]]] = {
    "chromadb": ("chromadb", chroma),
    "mem0ai": ("mem0", mem0),
    "langgraph": ("langgraph", langgraph_store),
}


def systems(static: CachedEncoder, onnx: CachedEncoder | None, server: str = "") -> list[System]:
    """Return every system, those that cannot be opened with the reason. Peers get the better encoder."""
    rows = [
        System("grep", grep),
        System("FTS5 raw", fts_raw),
        System("FTS5, stop words, porter", fts_stemmed),
    ]
    for label, encoder in (("static", static), ("MiniLM", onnx)):
        absent = "" if encoder else NO_ONNX
        alone = encoder_alone(encoder) if encoder else grep
        rows.append(System(f"{label} alone", alone, encoder, absent=absent))
        rows.append(System(f"rank fusion, {label}", rank_fusion(fts_stemmed, alone), encoder, absent=absent))
    for package, (_, peer) in PACKAGES.items():
        try:
            # A namespace package can be importable without the peer: its extras share the name.
            installed = f"{package} {version(package)}"
        except PackageNotFoundError:
            rows.append(System(package, grep, absent="not installed"))
        else:
            rows.append(System(installed, peer(onnx or static), onnx or static))
    rows.append(System("Archivist, words only", archivist(None), is_ours=True))
    rows.append(System("Archivist, static", archivist(static), static, is_ours=True))
    if server:
        opens = archivist(None, server)
        rows.append(System("Archivist on PostgreSQL, words only", opens, is_ours=True))
        opens = archivist(static, server)
        rows.append(System("Archivist on PostgreSQL, static", opens, static, is_ours=True))
    opens = archivist(onnx) if onnx else grep
    rows.append(System("Archivist, MiniLM", opens, onnx, is_ours=True, absent="" if onnx else NO_ONNX))
    return rows
