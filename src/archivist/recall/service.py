"""Recall: words and vectors find candidates, pure functions score them, the records are fetched last."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb, is_hidden_from, reads
from archivist.clock import LocalZone
from archivist.errors import EmbedderError
from archivist.recall import asking, lexical
from archivist.recall.answer_service import CANDIDATES, RankedAnswer
from archivist.recall.candidates_service import (
    Question,
    find_candidates,
)
from archivist.recall.embedders import changed_dimensions
from archivist.recall.query import EVERY_REPO, Query, build_search_filter
from archivist.recall.results import (
    DEFAULT_LIMIT,
    FRESH,
    RecallResult,
)
from archivist.recall.scoring import (
    ASSISTANT,
    Relevance,
    boost_scores,
    fuse,
    fusion_of,
    preset_weights,
    score_documents,
)
from archivist.recall.times import asks_only_when, find_period
from archivist.service import BankService
from archivist.store.results import TextQuery

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader
    from archivist.store.results import IndexedDocument

# How many of both lists are scored closely.
KEPT = 48
# Characters of a question that are embedded, as many as of a record: a pasted log is clear by then.
_EMBEDDED = 2000
# A text that shares no word with the question must be nearer to it than most are.
_LEAST_MEANING = 0.1
# A question is short; a pasted log is known by its beginning.
_LONGEST_QUESTION = 8_000


class Recall(BankService):
    """Finding by words and by meaning."""

    @reads(Layer.LESSONS)
    def recall(self, query: Query | str) -> RecallResult:
        """Find what answers a question, in every kind of record, the best first, each with its reasons.

        Tool calls, their output and injected text are found only by the kind `event`, a run or a tool.
        """
        bank, rules = self._bank, self._bank.config.recall
        query = self._complete_query(query)
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        query = query._replace(limit=limit)
        weights = preset_weights(rules, query.preset or rules.preset)
        question = self.prepare_question(query)
        kept = max(KEPT, limit * 2)
        with bank.reading() as reader:
            candidates = find_candidates(reader, question, max(CANDIDATES, limit * 2))
            fusion = fusion_of(question.embedder)
            found = fuse(candidates.words, candidates.ideal, candidates.cosines, candidates.baseline, fusion)
            found |= candidates.listed
            best = sorted(found, key=lambda place: (-found[place].total, place))
            best = [*best[:kept], *[place for place in best[kept:] if place in candidates.then][: kept // 2]]
            answer = RankedAnswer(reader, query, question, candidates, found, reader.indexed_documents(best))
            doubt = answer.find_doubt()
            documents = answer.documents = {} if doubt else answer.documents
            hidden = {place for place, each in documents.items() if each.is_hidden}
            if question.search_filter.with_hidden:
                hidden = self._hidden_places(reader, documents)
            shown = documents.keys() - hidden
            answer.found = {place: found[place] for place in best if place in shown}
            answer.weigh_documents()
            answer.found = boost_scores(
                answer.found, answer.documents, question.speakers, fusion, question.period
            )
            answer.add_wish(limit)
            foreign = answer.foreign_places(answer.documents)
            found = {
                place: why
                for place, why in answer.found.items()
                if _is_supported(why) and place not in foreign
            }
            if weights.relevance == 1.0:
                best = sorted(found, key=lambda place: (-found[place].total, place))
                found = {place: found[place] for place in best[:kept]}
            scored = score_documents(
                found,
                answer.documents,
                weights=weights,
                rules=rules,
                now=bank.now().timestamp(),
                cycle=query.until_cycle,
            )
            hits = answer.build_hits(scored, weights)
            if query.is_in_time_order:
                hits.sort(key=lambda hit: (hit.time is None, hit.time, hit.id))
            # While the embedder changes, all documents are still found by the vectors of the old one.
            is_settled = bank.embedder is not None and bank.embedder.name == question.embedder
            waiting = reader.pending_embedding_count(question.embedder) if is_settled else 0
        # The few that were written a moment ago were embedded for this query.
        missed = waiting if waiting > FRESH else 0
        return RecallResult(
            tuple(hits), weights, candidates.shown_words, question.embedder, missed, question.problem, doubt
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
            if embedder and table is None:
                with bank.reading() as reader:
                    width = reader.embedder_dimensions(embedder.name)
                if width not in (0, len(vector)):
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


def _is_supported(why: Relevance) -> bool:
    """Say whether more than a vector speaks for a document: some vectors are always the nearest."""
    return why.words > 0 or why.neighbours > 0 or why.period > 0 or why.meaning >= _LEAST_MEANING
