"""Recall: words and vectors find candidates, pure functions score them, the records are fetched last."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, Verb, is_hidden_from, reads
from archivist.clock import LocalZone
from archivist.errors import EmbedderError
from archivist.recall import amendments, asking, lexical
from archivist.recall.candidates_service import (
    RARE,
    Question,
    find_candidates,
)
from archivist.recall.embedders import changed_dimensions
from archivist.recall.evidence import (
    COVERED,
    LEAST_SAID,
    READ_TEXTS,
    Candidates,
    cover_words,
    excess_length,
    excess_size,
    least_evidence,
)
from archivist.recall.query import EVERY_REPO, Query, build_search_filter
from archivist.recall.results import (
    DEFAULT_LIMIT,
    FRESH,
    RENDERERS,
    Hit,
    RecallResult,
    RecordText,
    name_of,
    remedy_first,
    text_of,
)
from archivist.recall.scoring import (
    ASSISTANT,
    LENT,
    PERSON,
    CosineBaseline,
    Relevance,
    Score,
    Weights,
    add_neighbour_scores,
    boost_scores,
    discount_long,
    fuse,
    fusion_of,
    is_short_remark,
    lift_wish,
    lower_mentions,
    preset_weights,
    score_documents,
    score_meaning,
    to_unit_scale,
)
from archivist.recall.statements import END_WORDS, is_about, is_remark, words_beside_end
from archivist.recall.times import asks_only_when, find_period
from archivist.records.kinds import SEARCHABLE, TEXT_KINDS
from archivist.records.run_words import OF_RUN
from archivist.service import BankService
from archivist.store.filters import one_of
from archivist.store.results import SearchFilter, TextQuery
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.recall.embedders import Embedder
    from archivist.records import Provenance
    from archivist.store.protocol import Reader
    from archivist.store.results import IndexedDocument

# Candidates of each list, and how many of both are scored closely.
_CANDIDATES = 64
KEPT = 48
# The neighbours of so many of the best candidates are added.
WITH_NEIGHBOURS = 12
# Characters of a question that are embedded, as many as of a record: a pasted log is clear by then.
_EMBEDDED = 2000
# A text that shares no word with the question must be nearer to it than most are.
_LEAST_MEANING = 0.1
# Of one to three words in all, none of which any document contains, the nearest is this near only for other
# forms of a word: in four banks of real sessions none of 221 such questions about other things reached .34.
_NEAR_WITHOUT_WORDS = 0.35
# How people word what they always want; one of the last places is for the nearest of the nearest wishes.
_LONGEST_QUESTION = 8_000
_WISH_WORDS = TextQuery(words=("always", "never", "prefer", "whenever", "please", "rather", "ensure"))
_FEW_WISHES = 8
# Wishes about something else have cosines below .1 with a question, those that apply above .3.
_WISH_COSINE = 0.25
# Characters of a text that a note quotes.
_QUOTED = 60
# The end of what so many of the first hits name is looked for, by so many of their words, in so many texts.
_FOLLOWED, _MOST_NAMES, _RAREST, _FOLLOWING = 5, 32, 3, 12
_ENDS, _FEW_DOCUMENTS = TextQuery(words=tuple(sorted(END_WORDS))), 2_000


class Recall(BankService):
    """Finding by words and by meaning."""

    @reads(Layer.LESSONS)
    def recall(self, query: Query | str) -> RecallResult:
        """Find what answers a question, in every kind of record, the best first, each with its reasons.

        Tool calls, their output and injected text are found only by the kind `event`, a run or a tool.
        """
        bank, rules = self._bank, self._bank.config.recall
        query = self._complete_query(query)
        weights = preset_weights(rules, query.preset or rules.preset)
        question = self.prepare_question(query)
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        kept = max(KEPT, limit * 2)
        with bank.reading() as reader:
            candidates = find_candidates(reader, question, max(_CANDIDATES, limit * 2))
            fusion = fusion_of(question.embedder)
            found = fuse(candidates.words, candidates.ideal, candidates.cosines, candidates.baseline, fusion)
            found |= candidates.listed
            best = sorted(found, key=lambda place: (-found[place].total, place))
            best = [*best[:kept], *[place for place in best[kept:] if place in candidates.then][: kept // 2]]
            documents = reader.indexed_documents(best)
            if _lacks_evidence(reader, query, question.embedder, candidates, found, documents):
                found, documents = {}, {}
            found = {
                place: found[place]
                for place in best
                if place in documents
                and (question.search_filter.with_hidden or not documents[place].is_hidden)
            }
            if question.search_filter.with_hidden:
                hidden = self._hidden_places(reader, documents)
                found = {place: why for place, why in found.items() if place not in hidden}
            found, documents = _weigh_documents(reader, question, candidates, found, documents)
            found = boost_scores(found, documents, question.speakers, fusion, question.period)
            found, documents = _add_wish(reader, question, candidates.baseline, found, documents, limit)
            foreign = _places_of_projects(reader, documents, query.other_repos)
            found = {
                place: why for place, why in found.items() if _is_supported(why) and place not in foreign
            }
            if weights.relevance == 1.0:
                best = sorted(found, key=lambda place: (-found[place].total, place))
                found = {place: found[place] for place in best[:kept]}
            scored = score_documents(
                found,
                documents,
                weights=weights,
                rules=rules,
                now=bank.now().timestamp(),
                cycle=query.until_cycle,
            )
            asked = query._replace(limit=limit)
            hits = _build_hits(reader, asked, question.search_filter, weights, scored, documents)
            if query.is_in_time_order:
                hits.sort(key=lambda hit: (hit.time is None, hit.time, hit.id))
            # While the embedder changes, all documents are still found by the vectors of the old one.
            is_settled = bank.embedder is not None and bank.embedder.name == question.embedder
            waiting = reader.pending_embedding_count(question.embedder) if is_settled else 0
        # The few that were written a moment ago were embedded for this query.
        missed = waiting if waiting > FRESH else 0
        return RecallResult(
            tuple(hits), weights, candidates.shown_words, question.embedder, missed, question.problem
        )

    @reads(Layer.LESSONS)
    def choose_banks(self, banks: Mapping[str, Bank], query: Query) -> dict[str, Bank]:
        """Return the banks that may have the best answers, where their engine can tell; else all of them."""
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        if len(banks) <= 2 * limit:
            return dict(banks)
        for bank in banks.values():
            bank.require(Layer.LESSONS, Verb.READ)
        question = self.prepare_question(self._complete_query(query))
        words = TextQuery(lexical.extract_terms(question.text).words)
        stores = [bank.store for bank in banks.values()]
        best = self._bank.store.best_banks(
            stores, words, question.search_filter, question.vector, max(limit, DEFAULT_LIMIT)
        )
        if best is None:
            return dict(banks)
        return {name: bank for at, (name, bank) in enumerate(banks.items()) if at in (best or {0})}

    def _complete_query(self, query: Query | str) -> Query:
        """Return a text as a query, with the repository's name and the run's id as the bank has them."""
        query = Query(query) if isinstance(query, str) else query
        # A question is short; a pasted log is known by its beginning.
        query = query._replace(text=query.text[:_LONGEST_QUESTION])
        return self.keep_apart(query)

    @reads(Layer.LESSONS)
    def keep_apart(self, query: Query) -> Query:
        """Return a query for the repository that is named or that the caller works in, by the bank's name.

        An asked tool gets the names that lessons have for it.
        """
        if query.tool:
            from archivist.reading.tool_names import find_matching_tools
            from archivist.store.filters import not_equals

            with self._bank.reading() as reader:
                rows = reader.select_fields("lesson", ("tool",), not_equals("tool", ""))
            tools = find_matching_tools(query.tool, (str(tool) for (tool,) in rows))
            query = query._replace(matching_tools=tools)
        if query.repo == EVERY_REPO:
            return query._replace(repo="")
        if not query.repo and not query.run and self._bank.folder is None:
            return query
        from archivist import projects

        with self._bank.reading() as reader:
            if query.run:
                from archivist.capture.runs import resolve_run

                query = query._replace(run=resolve_run(reader, query.run))
            if query.repo:
                return query._replace(repo=projects.resolve_name(reader, query.repo))
            if query.run or self._bank.folder is None:
                return query
            others = projects.other_projects(reader, self._bank.folder, self._bank.root)
            return query._replace(other_repos=others)

    def _hidden_places(self, reader: Reader, documents: Mapping[int, IndexedDocument]) -> set[int]:
        """Return where lessons stand that the actor must not see, though it asked for their status."""
        places = {each.record: place for place, each in documents.items() if each.kind == "lesson"}
        lessons = reader.records("lesson", list(places))
        return {places[key] for key, lesson in lessons.items() if is_hidden_from(lesson, self._bank.actor)}

    @reads(Layer.LESSONS)
    def prepare_question(self, query: Query) -> Question:
        """Return the question without the names of speakers, and its vector, made outside of any view."""
        from archivist.recall.embedders.static import StaticEmbedder

        bank, now = self._bank, self._bank.now()
        with bank.reading() as reader:
            speakers = reader.known_speakers(lexical.possible_names(query.text))
            in_use = reader.embedder_in_use()
        asked = asking.remove_asking(query.text)
        text = (lexical.remove_names(asked, speakers) if speakers else asked) or query.text
        # A bank without any vector yet is queried with the embedder that will make them.
        embedder = bank.embedder if not in_use else bank.find_embedder(in_use)
        # Only the bundled table is quick enough to embed during a query.
        table = embedder if isinstance(embedder, StaticEmbedder) else None
        vector: Sequence[float] = ()
        problem = ""
        try:
            # As an array, which numpy reads without a copy: six times a query this took 15 µs for a list.
            vector = array("f", embedder.embed_query(text[:_EMBEDDED])) if embedder else ()
            if embedder and table is None and (width := self._stored_width(embedder)) not in (0, len(vector)):
                raise changed_dimensions(embedder, width)
        except EmbedderError as error:
            # The words can still answer.
            embedder, vector, problem = None, (), error.message
        period = find_period(query.text, min(now, query.until or now).astimezone(LocalZone()))
        return Question(
            text,
            frozenset(speakers | {ASSISTANT} if lexical.asks_assistant(query.text) else speakers),
            vector,
            embedder.name if embedder else "",
            build_search_filter(query),
            table.embed_query if table else None,
            problem,
            table is None or table.has_known_words(text),
            period,
            is_only_when=period is not None and asks_only_when(query.text),
        )

    def _stored_width(self, embedder: Embedder) -> int:
        with self._bank.reading() as reader:
            return reader.embedder_dimensions(embedder.name)


def _is_supported(why: Relevance) -> bool:
    """Say whether more than a vector speaks for a document: some vectors are always the nearest."""
    return why.words > 0 or why.neighbours > 0 or why.period > 0 or why.meaning >= _LEAST_MEANING


def _places_of_projects(
    reader: Reader, documents: Mapping[int, IndexedDocument], projects: frozenset[str]
) -> set[int]:
    """Return where records of some projects stand, and what happened in their runs."""
    fields = {"lesson": "repo", "episode": "project", "fact": "project"}
    wanted: dict[str, dict[str, list[int]]] = {}
    logged = [each.record for each in documents.values() if each.kind == "entry"] if projects else []
    # A session that ended is logged in the stream, in the words of its run.
    runs = dict(reader.select_fields("entry", ("id", "run"), one_of("id", logged))) if logged else {}
    texts = [each.record for each in documents.values() if each.kind == "document"] if projects else []
    if texts:
        # So is what was learnt of it by reflecting on the stream.
        found = reader.select_fields("document", ("id", "extra"), one_of("id", texts))
        runs |= {name: json.loads(extra).get(OF_RUN) for name, extra in found if f'"{OF_RUN}"' in extra}
    for place, document in documents.items() if projects else ():
        kind, record = document.kind, document.record
        if kind == "event":
            kind, record = "episode", record.rpartition("#")[0]
        elif kind in ("entry", "document"):
            kind, record = "episode", str(runs.get(record) or "")
        if kind in fields:
            wanted.setdefault(kind, {}).setdefault(record, []).append(place)
    return {
        place
        for kind, places in wanted.items()
        for record, project in reader.select_fields(kind, ("id", fields[kind]), one_of("id", places))
        if project in projects
        for place in places[record]
    }


def _lacks_evidence(
    reader: Reader,
    query: Query,
    embedder: str,
    candidates: Candidates,
    found: Mapping[int, Relevance],
    documents: dict[int, IndexedDocument],
) -> bool:
    """Say whether a plain question to a bank of some size finds nothing for want of evidence."""
    is_plain = not query.kinds or "event" in query.kinds
    if not is_plain or candidates.listed or not candidates.is_large():
        return False
    if len(query.text.split()) < LEAST_SAID:
        has_words = candidates.words or candidates.shown_words
        return not has_words and max(candidates.cosines.values()) < _NEAR_WITHOUT_WORDS
    length, size = excess_length(documents.values()), excess_size(candidates.documents)
    least = least_evidence(embedder, length, size)
    missing = least - candidates.weigh_evidence(found)
    if missing <= 0 or not candidates.asks_for_evidence(query.text):
        return False
    return missing > COVERED or COVERED * read_cover(reader, candidates, found, documents) < missing


def read_cover(
    reader: Reader,
    candidates: Candidates,
    found: Mapping[int, Relevance],
    documents: dict[int, IndexedDocument],
) -> float:
    """Return from 0 to 1 how much of the question the best texts say, in its words or near ones."""
    from archivist.recall.embedders.static import open_bundled
    from archivist.store.searchable import build_search_document

    best = sorted(documents, key=lambda place: (-found[place].total, place))[:READ_TEXTS]
    records = _load_records(reader, documents, best).values()
    texts = [each.spoken or each.text for record in records if (each := build_search_document(record))]
    return cover_words(candidates.needed, texts, open_bundled())


def _weigh_documents(
    reader: Reader,
    question: Question,
    candidates: Candidates,
    found: dict[int, Relevance],
    documents: dict[int, IndexedDocument],
) -> tuple[dict[int, Relevance], dict[int, IndexedDocument]]:
    """Weigh documents by their length, and add the neighbours of the best with what all of them lend."""
    fusion, baseline = fusion_of(question.embedder), candidates.baseline
    found = discount_long(found, documents, fusion)
    around = _read_neighbours(reader, question, found, documents)
    if around:
        near = reader.cosines(question.vector, question.embedder, list(around)) if question.embedder else {}
        weight = next(iter(found.values())).words_weight
        found |= dict.fromkeys(around, Relevance(0.0, words_weight=weight))
        for place, cosine in near.items():
            meaning = score_meaning(cosine, baseline) if baseline is not None else 0.0
            found[place] = Relevance((1 - weight) * meaning, 0.0, meaning, weight, cosine)
    documents = {**documents, **around}
    found = add_neighbour_scores(found, documents, baseline, fusion)
    return _lower_mentions(reader, question, found, documents), documents


def _read_neighbours(
    reader: Reader,
    question: Question,
    found: dict[int, Relevance],
    documents: dict[int, IndexedDocument],
) -> dict[int, IndexedDocument]:
    """Return the neighbours of the best in their threads that were not found themselves."""
    positions = [
        (documents[place].thread, documents[place].position + step * side)
        for place in list(found)[:WITH_NEIGHBOURS]
        if documents[place].thread
        for step in LENT
        for side in (-1, 1)
    ]
    around = {
        document.place: document
        for document in reader.documents_at(positions)
        if document.place not in found and not document.is_hidden
    }
    if around and (question.search_filter.groups or question.search_filter.has_ranges):
        allowed = reader.filter_places(list(around), question.search_filter)
        around = {place: around[place] for place in allowed}
    if around and question.search_filter.excluded:
        excluded = SearchFilter(groups=(question.search_filter.excluded,), with_hidden=True)
        for place in reader.filter_places(list(around), excluded):
            del around[place]
    return around


def _lower_mentions(
    reader: Reader,
    question: Question,
    found: dict[int, Relevance],
    documents: dict[int, IndexedDocument],
) -> dict[int, Relevance]:
    """Return relevances in which what has the words of a question and cannot answer it counts less.

    An agent's "Now run the tests." states nothing, unless its own words are asked for. Who asks why something
    fails does not ask about the failures of something else.
    """
    failing = asking.failing_subject(question.text)
    is_agent_asked = ASSISTANT in question.speakers
    read = [
        place
        for place in found
        if (failing and documents[place].kind == "lesson")
        or (not is_agent_asked and is_short_remark(documents[place]))
    ]
    mentions = [
        place
        for place, record in _load_records(reader, documents, read).items()
        if (
            record.signature and not is_about(record.summary, failing)
            if documents[place].kind == "lesson"
            else is_remark(record.text)
        )
    ]
    return lower_mentions(found, mentions)


def _add_wish(
    reader: Reader,
    question: Question,
    baseline: CosineBaseline | None,
    found: dict[int, Relevance],
    documents: dict[int, IndexedDocument],
    limit: int,
) -> tuple[dict[int, Relevance], dict[int, IndexedDocument]]:
    """Give a place to the standing wish of a person that is nearest to the question, if any is near enough.

    A wish hardly shares a word with the question to which it applies.
    """
    if baseline is None or not found or question.search_filter.has_ranges:
        return found, documents
    only = question.search_filter
    said = reader.get_cached(
        ("wishes", only),
        lambda: [hit.place for hit in reader.search(_WISH_WORDS, search_filter=only, limit=_CANDIDATES)],
        kinds=frozenset(SEARCHABLE),
    )
    near = reader.cosines(question.vector, question.embedder, said)
    best = sorted(near, key=lambda place: (-near[place], place))[:_FEW_WISHES]
    wishes = reader.indexed_documents([place for place in best if near[place] >= _WISH_COSINE])
    for place in best:
        wish = wishes.get(place)
        if wish and wish.speaker == PERSON and not wish.is_hidden:
            why = Relevance(0.0, 0.0, score_meaning(near[place], baseline), 0.0, near[place])
            return lift_wish({place: why, **found}, place, limit), {**documents, place: wish}
    return found, documents


def _build_hits(
    reader: Reader,
    query: Query,
    search_filter: SearchFilter,
    weights: Weights,
    scored: dict[int, Score],
    documents: dict[int, IndexedDocument],
) -> list[Hit]:
    """Return the results in their final order: amended and superseded ones below their successors."""
    ordered = amendments.demote_superseded(amendments.rank_by_score(scored), documents)
    is_broad = asking.is_broad(query.text)
    if is_broad:
        ordered = amendments.spread_threads(ordered, documents)
    pairs = amendments.pairs_to_compare(ordered, documents, scored, query.text)
    wanted = {*ordered[: query.limit], *(place for pair in pairs for place in pair)}
    records = _load_records(reader, documents, [place for place in ordered if place in wanted])
    texts = {place: RENDERERS[documents[place].kind](record) for place, record in records.items()}
    ends = _find_ends(reader, query, search_filter, ordered, documents, records, texts)
    scored |= {newer: Score(0.0, 0.0, 0.0, 0.0, Relevance(0.0)) for newer, _ in ends if newer not in scored}
    pairs = list(dict.fromkeys((*pairs, *ends)))
    ordered, amended_by = _amend(reader, query.text, ordered, scored, documents, records, texts, pairs, ends)
    ordered = amendments.demote_superseded(ordered, documents)
    # A repeat tells nothing new and stands behind the others. What takes its place may be another.
    while True:
        repeats = amendments.find_repeats(ordered, documents, texts)
        ordered = [place for place in ordered if place not in repeats] + repeats
        if not (missing := [place for place in ordered[: query.limit] if place not in records]):
            break
        records |= _load_records(reader, documents, missing)
        texts |= {place: RENDERERS[documents[place].kind](records[place]) for place in missing}
    ordered = ordered[: query.limit]
    shown = {place: records[place] for place in ordered}
    provenances, repos = _find_origins(reader, documents, shown)
    whys = {place: to_unit_scale(scored[place], weights) for place in ordered}
    totals = [why.total for why in whys.values()]
    # A text that takes the place of another has its score; one that is put off, as a repeat or by a broad
    # question, has no more than those before it.
    put_off = 0 if is_broad else len([place for place in ordered if place not in repeats])
    totals[:put_off] = list(accumulate(reversed(totals[:put_off]), max))[::-1]
    totals = list(accumulate(totals, min))
    hits = []
    for place, score in zip(ordered, totals, strict=True):
        document, rendered = documents[place], texts[place]
        hits.append(
            Hit(
                kind=document.kind,
                id=document.record,
                name=rendered.name,
                text=rendered.shown or rendered.text,
                score=score,
                time=datetime.fromtimestamp(document.time, UTC) if document.time is not None else None,
                why=whys[place],
                notes=tuple(_explain_rank(reader, place, documents, amended_by, texts, shown)),
                window=_read_window(reader, document, query.window) if query.window else (),
                provenance=provenances.get(place),
                repo=repos.get(place, ""),
                headline=remedy_first(records[place]) if document.kind == "lesson" else "",
            )
        )
    return hits


def _find_ends(
    reader: Reader,
    query: Query,
    search_filter: SearchFilter,
    ordered: Sequence[int],
    documents: dict[int, IndexedDocument],
    records: dict[int, Any],
    texts: dict[int, RecordText],
) -> list[tuple[int, int]]:
    """Return pairs of a later text and a first hit of which it tells the end, by a rare name in both.

    "Sidekiq is gone" has no word of "which library runs the queue". What is found is added to the documents,
    records and texts.
    """
    if not amendments.asks_for_end(query.text):
        return []
    own = {
        place: amendments.own_words(texts[place].text, query.text)
        for place in ordered[:_FOLLOWED]
        if place in texts and texts[place].place != documents[place].record
    }
    ended = _find_ended(reader, search_filter)
    if ended is not None:
        own = {place: each for place, each in own.items() if not ended.keys().isdisjoint(each)}
    own = _choose_rarest(reader, own)
    names = dict.fromkeys(word for each in own.values() for word in each)
    rare = [word for word in names if ended is None or word in ended]
    if ended is None:
        hits = reader.search(TextQuery(tuple(rare)), search_filter=search_filter, limit=_FOLLOWING)
        places = [hit.place for hit in hits]
    else:
        places = list(dict.fromkeys(place for word in rare for place in ended[word]))[:_FOLLOWING]
    documents |= reader.indexed_documents([place for place in places if place not in documents])
    found = {place: documents[place] for place in places if place in documents}
    foreign = _places_of_projects(reader, found, query.other_repos)
    pairs = [
        (newer, older)
        for newer, document in found.items()
        if newer not in foreign and not document.is_hidden and not document.superseded_by
        for older in own
        if amendments.is_later(document, documents[older])
    ]
    missing = [place for place in dict.fromkeys(newer for newer, _ in pairs) if place not in records]
    loaded = _load_records(reader, documents, missing)
    records |= loaded
    texts |= {place: RENDERERS[documents[place].kind](record) for place, record in loaded.items()}
    return [
        (newer, older)
        for newer, older in pairs
        if newer in texts and not words_beside_end(texts[newer].text).isdisjoint(own[older])
    ]


def _choose_rarest(reader: Reader, own: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Return the rarest words of each text, which name what it is about, if another text has them too."""
    words = list(dict.fromkeys(word for each in own.values() for word in each))[:_MOST_NAMES]
    most = max(RARE, reader.document_count() // 50)
    found = zip(words, reader.count_documents_with(words, at_most=most + 1), strict=True)
    counts = {word: count for word, count in found if 1 < count <= most}
    return {
        place: sorted((word for word in each if word in counts), key=counts.__getitem__)[:_RAREST]
        for place, each in own.items()
    }


def _find_ended(reader: Reader, search_filter: SearchFilter) -> Mapping[str, list[int]] | None:
    """Return where a small bank tells of the end of what, by its name; None for a large one."""

    def read() -> dict[str, list[int]]:
        hits = reader.search(_ENDS, search_filter=search_filter, limit=_FEW_DOCUMENTS)
        documents = reader.indexed_documents([hit.place for hit in hits])
        ended: dict[str, list[int]] = {}
        for place, record in sorted(_load_records(reader, documents, list(documents)).items()):
            for word in words_beside_end(RENDERERS[documents[place].kind](record).text):
                ended.setdefault(word, []).append(place)
        return ended

    if reader.document_count() > _FEW_DOCUMENTS:
        return None
    return reader.get_cached(("ended", search_filter), read, kinds=frozenset(SEARCHABLE))


def _explain_rank(
    reader: Reader,
    place: int,
    documents: Mapping[int, IndexedDocument],
    amended_by: Mapping[int, amendments.Amendment],
    texts: Mapping[int, RecordText],
    shown: Mapping[int, Any],
) -> list[str]:
    """Return what a hit is superseded or replaced by, and what it replaces."""
    document, record, notes = documents[place], shown[place], []
    if document.superseded_by:
        by = reader.records(document.kind, [document.superseded_by]).get(document.superseded_by)
        notes.append(f"superseded by {name_of(document.kind, by) if by else document.superseded_by}")
    elif amendment := amended_by.get(place):
        name = _mention(document.kind, texts[amendment.newer])
        is_sure = amendment.is_sure
        notes.append(f"replaced by {name}: {amendment.reason}" if is_sure else f"see the later {name}")
    replaced = [older for older, each in amended_by.items() if each.newer == place and each.is_sure]
    replaced += [older for older in shown if documents[older].superseded_by == document.record]
    notes += [f"current: replaces {_mention(document.kind, texts[older])}" for older in replaced]
    if document.kind == "fact" and record.updated != record.created:
        values = [change.after["value"] for change in reader.changes(record_id=record.id) if change.after]
        earlier = [str(value) for value in values if value != record.value]
        notes += [f"current: replaces “{shorten_line(value, _QUOTED)}”" for value in earlier[-1:]]
    return notes


def _mention(kind: str, text: RecordText) -> str:
    """Return how a note names another record: the entries of a cycle have one name, so they are quoted."""
    return f"{text.name} “{shorten_line(text.text, _QUOTED)}”" if kind == "entry" else text.name


def _read_window(reader: Reader, document: IndexedDocument, reach: int) -> tuple[str, ...]:
    """Return the texts around a document in its thread, its own with a mark."""
    if not document.thread:
        return ()
    positions = range(document.position - reach, document.position + reach + 1)
    around = reader.documents_at([(document.thread, position) for position in positions])
    names = [each.record for each in sorted(around, key=lambda each: each.position)]
    beside = reader.records(document.kind, names)
    return tuple(
        f"{'>' if name == document.record else ' '} {text_of(document.kind, beside[name])}"
        for name in names
        if name in beside
    )


def _find_origins(
    reader: Reader, documents: dict[int, IndexedDocument], records: dict[int, Any]
) -> tuple[dict[int, Provenance], dict[int, str]]:
    """Return, by their places, where lessons, runs, events, and texts of agents and files come from.

    And the repositories of lessons, runs and facts, and of the runs of events and entries.
    """
    from archivist.records import Provenance

    provenances: dict[int, Provenance] = {}
    repos: dict[int, str] = {}
    runs: dict[int, str] = {}
    for place, record in records.items():
        kind = documents[place].kind
        if kind in ("event", "entry", "episode"):
            runs[place] = record.id if kind == "episode" else record.run
        elif kind in ("lesson", "fact"):
            repos[place] = record.repo if kind == "lesson" else record.project
        if kind == "lesson":
            provenances[place] = record.provenance
        elif kind in TEXT_KINDS and (provenance := reader.text_provenance(kind, record)):
            provenances[place] = provenance
    named = one_of("id", {run for run in runs.values() if run})
    fields = "id", "provenance", "project"
    known = {row[0]: row[1:] for row in reader.select_fields("episode", fields, named)} if runs else {}
    # The events of a run are written before its record.
    early = reader.run_provenances([run for run in runs.values() if run and run not in known])
    for place, run in runs.items():
        written, project = known.get(run, ("", ""))
        repos[place] = str(project)
        if documents[place].kind != "entry" and (written or run in early):
            provenances[place] = Provenance(written) if written else early[run]
    return provenances, repos


def _amend(
    reader: Reader,
    question: str,
    ordered: list[int],
    scored: dict[int, Score],
    documents: dict[int, IndexedDocument],
    records: Mapping[int, Any],
    texts: Mapping[int, RecordText],
    pairs: list[tuple[int, int]],
    ends: list[tuple[int, int]],
) -> tuple[list[int], dict[int, amendments.Amendment]]:
    """Move what amends an earlier text above it. Agents, files and colleagues amend nobody else's words."""
    amended = amendments.apply_amendments(ordered, scored, texts, pairs, question, ends)
    if amended == (ordered, {}):
        return amended
    compared = {place: records[place] for pair in pairs for place in pair}
    known, _ = _find_origins(reader, documents, compared)
    foreign = {place for place, provenance in known.items() if not provenance.is_own}
    allowed = [(newer, older) for newer, older in pairs if newer not in foreign or older in foreign]
    return amendments.apply_amendments(ordered, scored, texts, allowed, question, ends)


def _load_records(
    reader: Reader, documents: dict[int, IndexedDocument], places: Sequence[int]
) -> dict[int, Any]:
    """Return the records of these documents by their places."""
    by_kind: dict[str, dict[str, int]] = {}
    for place in places:
        by_kind.setdefault(documents[place].kind, {})[documents[place].record] = place
    return {
        ids[name]: record
        for kind, ids in by_kind.items()
        for name, record in reader.records(kind, list(ids)).items()
    }
