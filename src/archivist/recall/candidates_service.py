"""Find the candidates of a question: by words, by vectors, and by the time that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from archivist.clock import to_text
from archivist.recall import asking, lexical
from archivist.recall.evidence import Candidates
from archivist.recall.results import FRESH
from archivist.recall.scoring import ASSISTANT, Relevance, estimate_baseline
from archivist.recall.times import Period
from archivist.store.filters import at_least, at_most
from archivist.store.results import SearchFilter

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# A name in at most so many documents, or in 2 % of the bank, counts as a word too.
RARE = 10
_SMALL_BANK = 40_000
# What is listed of a time, and when it is of that time; of the messages the nearest are found.
_DATED = {"episode": "finished", "lesson": "created", "entry": "time", "task": "updated", "fact": "updated"}


class Question(NamedTuple):
    """A query with what the bank knows of its words, and the time that it names."""

    text: str
    speakers: frozenset[str]
    vector: Sequence[float]
    embedder: str
    search_filter: SearchFilter
    embed: Callable[[str], Sequence[float]] | None = None
    problem: str = ""
    has_known_words: bool = True
    period: Period | None = None
    is_only_when: bool = False


def find_candidates(reader: Reader, question: Question, count: int) -> Candidates:
    """Return the best by words and by meaning, and the best of a relative time that the question names.

    A question for a time and nothing else finds only what was recorded then. What is of a date often names
    it: the best of that date took .001 of the recall on LoCoMo.
    """
    if question.period is None or not (question.period.is_relative or question.is_only_when):
        return _search(reader, question, count)
    only, period = question.search_filter, question.period
    since = datetime.fromtimestamp(period.start, UTC)
    # Documents have whole seconds.
    until = datetime.fromtimestamp(period.end - 1, UTC)
    only = only._replace(since=max(only.since or since, since), until=min(only.until or until, until))
    then = _search(reader, question._replace(search_filter=only), count)
    if question.is_only_when:
        return then._replace(listed=_list_kinds(reader, only, count))
    found = _search(reader, question, count)
    return found._replace(
        words={**then.words, **found.words},
        cosines={**then.cosines, **found.cosines},
        then=frozenset((*then.words, *then.cosines)),
    )


def _search(reader: Reader, question: Question, count: int) -> Candidates:
    """Return the best by words and by meaning, and the words that were searched for."""
    counts: dict[str, int] = {}

    def count_documents(words: Sequence[str], at_most: int) -> list[int]:
        found = reader.count_documents_with(words, at_most=at_most)
        counts.update(zip(words, found, strict=True))
        return found

    documents = reader.document_count()
    asked = lexical.extract_terms(question.text)
    rare = max(RARE, documents // 50)
    names = [word for name in sorted(question.speakers - {ASSISTANT}) for word in name.split()]
    named = zip(names, reader.count_documents_with(names, at_most=rare + 1), strict=True)
    rare_names = [name for name, count in named if 0 < count <= rare]
    # Documents to score by words: most of a small bank, few of a large one.
    budget = 4_000
    if documents > _SMALL_BANK:
        budget = 600 if question.search_filter.groups else max(1_200, documents // 400)
    terms = asked._replace(words=(*asked.words, *rare_names))
    wanted = lexical.select_words(terms, count_documents, budget)
    by_words = reader.search(wanted, search_filter=question.search_filter, limit=count)
    words = {hit.place: hit.score for hit in by_words}
    weights = {
        word: lexical.weigh_word(count, documents)
        for word, count in counts.items()
        if word in wanted.words or not count
    }
    ideal = sum(weights.values())
    unanswered = asking.unanswered_words(question.text)
    needed = {word: weight for word, weight in weights.items() if word not in unanswered}
    has_unknown_name = any(counts.get(name) == 0 for name in lexical.proper_names(question.text))
    shown = (*wanted.words, *(" ".join(phrase) for phrase in wanted.phrases))
    # A vector of words that no document contains and the table does not know means nothing.
    if not question.embedder or not (by_words or question.has_known_words):
        return Candidates(shown, words, ideal, {}, None)
    vector, embedder = question.vector, question.embedder
    near = reader.nearest(vector, embedder, search_filter=question.search_filter, limit=count)
    cosines = {hit.place: hit.score for hit in near}
    cosines |= reader.cosines(vector, embedder, [place for place in words if place not in cosines])
    if question.embed is not None and any(vector):
        # Texts that were written a moment ago and have no vector yet, when they are few.
        pending = reader.pending_embeddings(embedder, limit=FRESH, all_or_nothing=True)
        allowed = set(reader.filter_places([each.place for each in pending], question.search_filter))
        for each in pending:
            if each.place in allowed:
                cosines[each.place] = sum(map(mul, vector, question.embed(each.text)))
    baseline = estimate_baseline(reader.sample_cosines(vector, embedder))
    known = baseline if cosines else None
    unknown = tuple(word for word in needed if not counts[word])
    return Candidates(shown, words, ideal, cosines, known, needed, unknown, has_unknown_name, documents)


def _list_kinds(reader: Reader, only: SearchFilter, count: int) -> dict[int, Relevance]:
    """Return what a time has of the kinds that tell what happened, the latest of each kind first."""
    listed: dict[int, Relevance] = {}
    if only.since is None or only.until is None:
        return listed
    since, until = to_text(only.since), to_text(only.until)
    for kind, field in _DATED.items():
        within = at_least(field, since), at_most(field, until)
        rows = reader.select_fields(kind, ("id",), *within, order=(f"-{field}",), limit=count)
        places = reader.index_places(kind, [name for (name,) in rows])
        documents = reader.indexed_documents(reader.filter_places(places, only))
        latest = sorted(documents, key=lambda place: (-(documents[place].time or 0), place))
        listed |= {place: Relevance(1 / rank, period=1 / rank) for rank, place in enumerate(latest, start=1)}
    return listed
