"""Work on recall: words and vectors find candidates, the rooms judge them, the records are fetched last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, assert_never

from archivist.access.rights import Layer, reads
from archivist.errors import EmbedderError
from archivist.recall import amendments as order
from archivist.recall import lexical
from archivist.recall.fusion import CosineBaseline, Relevance, estimate_baseline, fuse
from archivist.recall.hit_text import name_of, record_text, text_of
from archivist.recall.lexical import Terms
from archivist.recall.neighbours import LENT, add_neighbour_scores, boost_scores
from archivist.recall.query import Query, build_search_filter
from archivist.recall.scoring import (
    Preset,
    RecencyDecay,
    Score,
    ScoringTime,
    Weights,
    preset_of,
    score_documents,
)
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.config import RecallRules
    from archivist.store.protocol import Reader
    from archivist.store.results import IndexedDocument, SearchFilter

DEFAULT_LIMIT = 10
_CANDIDATES = 64
# So many of the candidates are looked at closely.
_KEPT = 48
# Of so many of the best the neighbours in their streams are looked at.
_LOOKED_AROUND = 12
# As much of a question is embedded as of a record: a pasted log says by then what it is about.
_EMBEDDED = 2000
# So few texts without a vector are embedded while one waits for the answer.
FRESH = 48
_SELDOM = 10
_SMALL = 40_000
# A text that shares no word with the question must be nearer to it than most are.
_LEAST_MEANING = 0.1


class Hit(NamedTuple):
    """One thing that was found. `notes` say why it stands where it stands, `window` what is around it."""

    kind: str
    id: str
    name: str
    text: str
    score: float
    time: datetime | None
    why: Score
    notes: tuple[str, ...] = ()
    window: tuple[str, ...] = ()


class RecallResult(NamedTuple):
    """What was found, what was looked for, and how many memories could not be searched by meaning yet."""

    hits: tuple[Hit, ...]
    weights: Weights
    words: tuple[str, ...] = ()
    embedder: str = ""
    unembedded: int = 0
    problem: str = ""


class _Question(NamedTuple):
    """A query with what the bank knows of its words."""

    text: str
    named: frozenset[str]
    vector: Sequence[float]
    embedder: str
    may_be: SearchFilter
    embed: Callable[[str], Sequence[float]] | None = None
    problem: str = ""
    is_understood: bool = True


def recall(bank: Bank, query: Query) -> RecallResult:
    """Return what answers a query, the best first."""
    rules = bank.config.recall
    if query.repo:
        from archivist import projects

        with bank.reading() as reader:
            query = query._replace(repo=projects.resolve_name(reader, query.repo))
    weights = _preset_weights(rules, preset_of(query.preset or rules.preset))
    question = _prepare_question(bank, query)
    moment = ScoringTime(bank.now().timestamp(), query.until_cycle)
    limit = DEFAULT_LIMIT if query.limit is None else query.limit
    with bank.reading() as reader:
        words, found, usual = _candidates(reader, question, max(_CANDIDATES, limit * 2))
        found = _top_candidates(found, max(_KEPT, limit * 2))
        placed = reader.indexed_documents(list(found))
        found = {place: why for place, why in found.items() if _is_visible(placed.get(place), question)}
        found, placed = _with_neighbours(reader, question, found, placed, usual)
        found = boost_scores(add_neighbour_scores(found, placed), placed, question.named)
        # The nearest vectors of a question are always some; what nothing speaks for is no answer.
        found = {place: why for place, why in found.items() if _has_support(why)}
        decay = RecencyDecay(rules.half_life_days, rules.half_life_cycles)
        scored = score_documents(found, placed, weights=weights, decay=decay, scoring_time=moment)
        hits = _build_hits(reader, query, question, scored, placed)
        # While another embedder takes over, what it has done already is still found by the old one's vectors.
        is_settled = bank.embedder is not None and bank.embedder.name == question.embedder
        waiting = reader.pending_embedding_count(question.embedder) if is_settled else 0
    # The few that were written a moment ago were looked at all the same.
    missed = waiting if waiting > FRESH else 0
    return RecallResult(tuple(hits), weights, words, question.embedder, missed, question.problem)


def _prepare_question(bank: Bank, query: Query) -> _Question:
    """Return the question without the names of those who speak, and its vector, made outside of any view."""
    from archivist.recall.embedders.static import StaticEmbedder

    with bank.reading() as reader:
        named = reader.known_speakers(lexical.possible_names(query.text))
        in_use = reader.embedder_in_use()
    text = lexical.remove_names(query.text, named) if named else query.text
    # A bank without any vector yet is asked with the embedder that will make them.
    embedder = bank.embedder if not in_use else bank.find_embedder(in_use)
    # Only the bundled table is quick enough to embed while somebody waits.
    table = embedder if isinstance(embedder, StaticEmbedder) else None
    vector: Sequence[float] = ()
    problem = ""
    try:
        vector = embedder.embed_query((text or query.text)[:_EMBEDDED]) if embedder else ()
    except EmbedderError as error:
        # The words can still answer.
        embedder, problem = None, error.message
    return _Question(
        text or query.text,
        frozenset(named),
        vector,
        embedder.name if embedder else "",
        build_search_filter(query),
        table.embed_query if table else None,
        problem,
        table is None or table.has_known_words(text or query.text),
    )


def _candidates(
    reader: Reader, question: _Question, count: int
) -> tuple[tuple[str, ...], dict[int, Relevance], CosineBaseline | None]:
    counts: dict[str, int] = {}

    def count_documents(word: str, at_most: int) -> int:
        counts[word] = reader.count_documents_with(word, at_most=at_most)
        return counts[word]

    documents = reader.document_count()
    budget = _scoring_budget(documents, is_filtered=bool(question.may_be.groups))
    asked = lexical.extract_terms(question.text)
    # A name that few texts hold tells something as a word too; one that is called all the time does not.
    seldom = max(_SELDOM, documents // 50)
    names = [word for name in sorted(question.named) for word in name.split()]
    told = tuple(
        word for word in names if 0 < reader.count_documents_with(word, at_most=seldom + 1) <= seldom
    )
    wanted = lexical.select_words(Terms((*asked.words, *told), asked.phrases), count_documents, budget)
    by_words = reader.search(wanted, search_filter=question.may_be, limit=count)
    words = {hit.place: hit.score for hit in by_words}
    looked_for = {word: counts[word] for word in counts if word in wanted.words or not counts[word]}
    ideal = lexical.coverage(looked_for, documents)
    shown = (*wanted.words, *(" ".join(phrase) for phrase in wanted.phrases))
    # Of words that nothing holds and nobody knows, no vector tells what they mean.
    if not question.embedder or not (by_words or question.is_understood):
        return shown, fuse(words, ideal, {}, None), None
    near = reader.nearest(question.vector, question.embedder, search_filter=question.may_be, limit=count)
    cosines = {hit.place: hit.score for hit in near}
    rest = [place for place in words if place not in cosines]
    cosines |= reader.cosines(question.vector, question.embedder, rest)
    cosines |= _unembedded_cosines(reader, question)
    usual = estimate_baseline(reader.sample_cosines(question.vector, question.embedder))
    return shown, fuse(words, ideal, cosines, usual if cosines else None), usual


def _unembedded_cosines(reader: Reader, question: _Question) -> dict[int, float]:
    """Return the cosines of texts written a moment ago that have no vector yet, when they are few."""
    if question.embed is None or not any(question.vector):
        return {}
    waiting = reader.pending_embeddings(question.embedder, limit=FRESH, all_or_nothing=True)
    permitted = set(reader.filter_places([each.place for each in waiting], question.may_be))
    return {
        each.place: sum(map(mul, question.vector, question.embed(each.text)))
        for each in waiting
        if each.place in permitted
    }


def _scoring_budget(documents: int, *, is_filtered: bool) -> int:
    """Return how many documents may be scored by words: most of a small bank, few of a large one."""
    if documents <= _SMALL:
        return 4_000
    return 600 if is_filtered else max(1_200, documents // 400)


def _top_candidates(found: dict[int, Relevance], count: int) -> dict[int, Relevance]:
    best = sorted(found, key=lambda place: (-found[place].total, place))[:count]
    return {place: found[place] for place in best}


def _has_support(why: Relevance) -> bool:
    """Say whether anything but chance speaks for a document."""
    return why.words > 0 or why.neighbours > 0 or why.meaning >= _LEAST_MEANING


def _is_visible(placed: IndexedDocument | None, question: _Question) -> bool:
    return placed is not None and (question.may_be.with_hidden or not placed.is_hidden)


def _with_neighbours(
    reader: Reader,
    question: _Question,
    found: dict[int, Relevance],
    placed: dict[int, IndexedDocument],
    usual: CosineBaseline | None,
) -> tuple[dict[int, Relevance], dict[int, IndexedDocument]]:
    """Add what stands beside the best in their streams, with what it is worth by itself."""
    if question.may_be.groups or question.may_be.has_ranges:
        return found, placed
    steps = [step * side for step in LENT for side in (-1, 1)]
    wanted = [
        (placed[place].thread, placed[place].position + step)
        for place in list(found)[:_LOOKED_AROUND]
        if placed[place].thread
        for step in steps
    ]
    around = {
        each.place: each
        for each in reader.documents_at(wanted)
        if each.place not in found and not each.is_hidden
    }
    if not around:
        return found, placed
    near = reader.cosines(question.vector, question.embedder, list(around)) if question.embedder else {}
    weight = next(iter(found.values())).words_weight
    worth = fuse({}, 1.0, near, usual) if near else {}
    added = {
        place: worth[place]._replace(total=worth[place].meaning * (1 - weight), words_weight=weight)
        if place in worth
        else Relevance(0.0)
        for place in around
    }
    return {**found, **added}, {**placed, **around}


def _build_hits(
    reader: Reader,
    query: Query,
    question: _Question,
    scored: dict[int, Score],
    placed: dict[int, IndexedDocument],
) -> list[Hit]:
    limit = DEFAULT_LIMIT if query.limit is None else query.limit
    ordered = order.demote_superseded(order.rank_by_score(scored), placed)
    records = _load_records(reader, placed, ordered[: max(limit, order.COMPARED)])
    said = {place: record_text(placed[place].kind, record) for place, record in records.items()}
    # To retire a lesson changes it: what was superseded may be the later one, and amends nothing.
    pairs = [pair for pair in order.pairs_to_compare(ordered, placed) if not placed[pair[0]].superseded_by]
    ordered, later = order.apply_amendments(ordered, scored, said, pairs, question.text)
    ordered = order.demote_superseded(ordered, placed)
    hits = []
    for place in ordered[:limit]:
        each = placed[place]
        record = records.get(place) or _load_records(reader, placed, [place])[place]
        notes = []
        if each.superseded_by:
            by = reader.records(each.kind, [each.superseded_by]).get(each.superseded_by)
            notes.append(f"superseded by {name_of(each.kind, by) if by else each.superseded_by}")
        elif place in later:
            notes.append(f"{name_of(each.kind, records[later[place]])} speaks of this later")
        hits.append(
            Hit(
                kind=each.kind,
                id=each.record,
                name=name_of(each.kind, record),
                text=text_of(each.kind, record),
                score=scored[place].total,
                time=datetime.fromtimestamp(each.time, UTC) if each.time is not None else None,
                why=scored[place],
                notes=tuple(notes),
                window=_window(reader, each, query.window) if query.window and each.thread else (),
            )
        )
    return hits


def _load_records(
    reader: Reader, placed: dict[int, IndexedDocument], places: Sequence[int]
) -> dict[int, object]:
    """Return the records of these documents by their places."""
    wanted: dict[str, dict[str, int]] = {}
    for place in places:
        wanted.setdefault(placed[place].kind, {})[placed[place].record] = place
    return {
        ids[record]: each
        for kind, ids in wanted.items()
        for record, each in reader.records(kind, list(ids)).items()
    }


def _window(reader: Reader, placed: IndexedDocument, reach: int) -> tuple[str, ...]:
    around = reader.neighbours(placed.thread, placed.position - reach, placed.position + reach)
    records = reader.records(placed.kind, [each.record for each in around])
    return tuple(
        f"{'>' if each.record == placed.record else ' '} {text_of(placed.kind, records[each.record])}"
        for each in around
        if each.record in records
    )


def _preset_weights(rules: RecallRules, preset: Preset) -> Weights:
    match preset:
        case Preset.ARCHIVIST:
            return Weights(rules.archivist_importance, rules.archivist_recency, rules.archivist_relevance)
        case Preset.GENERATIVE:
            return Weights(rules.generative_importance, rules.generative_recency, rules.generative_relevance)
        case Preset.RELEVANCE:
            return Weights(0.0, 0.0, 1.0)
    assert_never(preset)


class Recall(BankService):
    """Finding by words and by meaning."""

    @reads(Layer.LESSONS)
    def recall(self, query: Query) -> RecallResult:
        """Find what answers a question, in every kind of record, the best first, each with its reasons."""
        return recall(self._bank, query)
