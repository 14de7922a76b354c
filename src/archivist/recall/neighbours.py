"""Let neighbours in a stream lend each other score: an answer often stands beside the words one sought."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.recall.fusion import Relevance
from archivist.store.results import IndexedDocument

# What a neighbour lends, by its distance.
LENT = {1: 0.3, 2: 0.15}
# What it is worth to be said by somebody whom the question names.
SPEAKER = 0.15
# A lesson was distilled from many moments, a run's story from its own: of equal fit they answer better.
STANDING = {"lesson": 1.35, "episode": 1.1}


def add_neighbour_scores(
    found: Mapping[int, Relevance], documents: Mapping[int, IndexedDocument]
) -> dict[int, Relevance]:
    """Return relevances to which each document's neighbours in its stream have added a share of theirs."""
    by_position = {
        (_neighbour_key(each), each.position): found[place].total
        for place, each in documents.items()
        if each.thread and place in found
    }
    lent = dict(found)
    for place, each in documents.items():
        if not each.thread or place not in found:
            continue
        extra = 0.0
        for step, share in LENT.items():
            before = by_position.get((_neighbour_key(each), each.position - step), 0.0)
            extra += share * (before + by_position.get((_neighbour_key(each), each.position + step), 0.0))
        if extra:
            lent[place] = found[place]._replace(total=found[place].total + extra, neighbours=extra)
    return lent


def _neighbour_key(placed: IndexedDocument) -> str:
    """Return whose neighbours a document has: in the agents' log each role speaks of its own work."""
    return f"{placed.thread}:{placed.speaker}" if placed.kind == "entry" else placed.thread


def boost_scores(
    found: Mapping[int, Relevance], documents: Mapping[int, IndexedDocument], speakers: frozenset[str]
) -> dict[int, Relevance]:
    """Return relevances raised for what is distilled, and for what those said whom the question names."""
    raised = {}
    for place, why in found.items():
        each = documents[place]
        extra = SPEAKER if each.speaker in speakers and why.total > 0 else 0.0
        standing = STANDING.get(each.kind, 1.0)
        raised[place] = (
            why._replace(total=(why.total + extra) * standing, speaker=extra, standing=standing)
            if extra or standing != 1.0
            else why
        )
    return raised
