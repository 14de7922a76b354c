"""Measure what the integrations cost, in CPU time, beside a plain alternative in the same process.

    python bench/integrations.py

LangGraph's store with 10,000 items beside LangGraph's own in memory, and a bank's verb with and without spans
beside the same verb without the wrapper.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from archivist import Bank
from archivist.access.rights import Layer, Verb, reads

ITEMS = 10_000
ROUNDS = 7
TOPICS = ("cats", "trains", "rust", "tea")


def main() -> None:
    """Print the figures."""
    # Before anything imports OpenTelemetry, which LangGraph does.
    tracing_figures()
    store_figures()


def cpu_us(work: Callable[[], object], times: int) -> tuple[float, float, float]:
    """Return the median, least and most CPU microseconds of a call over some rounds."""
    work()
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - start) / times * 1e6)
    return statistics.median(rounds), min(rounds), max(rounds)


def show(name: str, work: Callable[[], object], times: int) -> None:
    """Print one line."""
    median, least, most = cpu_us(work, times)
    print(f"{name:44} {median:10.2f} µs  ({least:.2f} to {most:.2f})")


class Desk:
    """The least that a verb needs: somebody to ask, and nothing to do."""

    path = "bench"

    class actor:  # noqa: N801
        """Nobody in particular."""

        name = ""

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Allow everything."""

    def explain(self, error: Exception) -> None:
        """Explain nothing."""

    def bare(self) -> int:
        """Do nothing."""
        return 1

    def verb(self) -> int:
        """Do nothing, under the name of a verb that is told."""
        return 1


def tracing_figures() -> None:
    """Show what a span costs: without OpenTelemetry, with its API alone, and with its SDK."""
    told = reads(Layer.LESSONS)(Desk.verb)
    desk = Desk()
    assert "opentelemetry.trace" not in sys.modules
    show("a call without the wrapper", partial(Desk.bare, desk), 100_000)
    wrapped = partial(told, desk)
    show("the same wrapped, no OpenTelemetry", wrapped, 100_000)
    from opentelemetry import trace

    show("the same, OpenTelemetry without a provider", wrapped, 5_000)
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    show("the same, OpenTelemetry's SDK", wrapped, 2_000)


def store_figures() -> None:
    """Show the store beside the one in memory."""
    from langgraph.store.base import BaseStore, PutOp
    from langgraph.store.memory import InMemoryStore

    from archivist.edges.integrations.langgraph import ArchivistStore

    puts = [
        PutOp(
            ("users", str(number % 100)),
            f"k{number}",
            {"text": f"note {number} about {TOPICS[number % 4]}", "n": number, "kind": "ab"[number % 2]},
        )
        for number in range(ITEMS)
    ]
    with tempfile.TemporaryDirectory() as folder, Bank.open(folder, create=True) as bank:
        ours = ArchivistStore(bank)
        stores: dict[str, BaseStore] = {"archivist": ours, "in memory": InMemoryStore()}
        for name, store in stores.items():
            start = time.process_time()
            store.batch(puts)
            print(f"{name}: {ITEMS} items put in one batch {time.process_time() - start:25.2f} s")
        for name, store in stores.items():
            ask(name, store)
        start = time.process_time()
        ours.search((), query="cats")
        print(f"archivist: first query, makes the vectors {time.process_time() - start:22.2f} s")
        show("archivist: query in all", lambda: ours.search((), query="a note about cats"), 10)
        show(
            "archivist: query in a namespace",
            lambda: ours.search(("users", "4"), query="a note about cats"),
            10,
        )


def ask(name: str, store: object) -> None:
    """Show what reading and writing one store costs."""
    from langgraph.store.base import BaseStore

    assert isinstance(store, BaseStore)
    show(f"{name}: get", lambda: store.get(("users", "5"), "k5"), 100)
    show(f"{name}: put", lambda: store.put(("users", "5"), "k5", {"n": time.time(), "kind": "c"}), 50)
    show(f"{name}: search a namespace", lambda: store.search(("users", "5")), 50)
    show(f"{name}: search all", lambda: store.search(()), 10)
    show(f"{name}: filter all by a word", lambda: store.search((), filter={"kind": "a"}), 10)
    show(f"{name}: filter all by a number", lambda: store.search((), filter={"n": {"$lt": 9}}), 5)
    show(f"{name}: list 100 namespaces", lambda: store.list_namespaces(limit=100), 10)


if __name__ == "__main__":
    main()
