"""Weigh what was found for a question, and put it in its final order, with what is known of each hit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from archivist.recall import amendments, asking
from archivist.recall.candidates_service import RARE
from archivist.recall.evidence import (
    COVERED,
    LEAST_SAID,
    READ_TEXTS,
    cover_words,
    describe_doubt,
    excess_length,
    excess_size,
    least_evidence,
)
from archivist.recall.results import RENDERERS, Hit, RecordText, name_of, remedy_first, text_of
from archivist.recall.scoring import (
    ASSISTANT,
    LENT,
    PERSON,
    Relevance,
    Score,
    Weights,
    add_neighbour_scores,
    discount_long,
    fusion_of,
    is_short_remark,
    lift_wish,
    lower_mentions,
    score_meaning,
    to_unit_scale,
)
from archivist.recall.statements import END_WORDS, is_about, is_remark, words_beside_end
from archivist.records.kinds import SEARCHABLE, TEXT_KINDS
from archivist.records.run_words import OF_RUN
from archivist.records.words import RETIRED
from archivist.store.filters import one_of
from archivist.store.results import SearchFilter, TextQuery
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.recall.candidates_service import Question
    from archivist.recall.evidence import Candidates
    from archivist.recall.query import Query
    from archivist.records import Provenance
    from archivist.store.protocol import Reader
    from archivist.store.results import IndexedDocument

# Candidates of each list.
CANDIDATES = 64
# The neighbours of so many of the best candidates are added.
WITH_NEIGHBOURS = 12
# Of one to three words in all, none of which any document contains, the nearest is this near only for other
# forms of a word: in four banks of real sessions none of 221 such questions about other things reached .34.
_NEAR_WITHOUT_WORDS = 0.35
# How people word what they always want; one of the last places is for the nearest of the nearest wishes.
_WISH_WORDS = TextQuery(words=("always", "never", "prefer", "whenever", "please", "rather", "ensure"))
_FEW_WISHES = 8
# Wishes about something else have cosines below .1 with a question, those that apply above .3.
_WISH_COSINE = 0.25
# Characters of a text that a note quotes.
_QUOTED = 60
# The end of what so many of the first hits name is looked for, by so many of their words, in so many texts.
_FOLLOWED, _MOST_NAMES, _RAREST, _FOLLOWING = 5, 32, 3, 12
_ENDS, _FEW_DOCUMENTS = TextQuery(words=tuple(sorted(END_WORDS))), 2_000


class RankedAnswer:
    """The answer to a question from one view of the bank: what was found and is known of it, by place."""

    def __init__(
        self,
        reader: Reader,
        query: Query,
        question: Question,
        candidates: Candidates,
        found: dict[int, Relevance],
        documents: dict[int, IndexedDocument],
    ) -> None:
        self._reader = reader
        self._query = query
        self._question = question
        self._candidates = candidates
        self.found = found
        self.documents = documents
        self._records: dict[int, Any] = {}
        self._texts: dict[int, RecordText] = {}

    def find_doubt(self) -> str:
        """Return why a plain question finds nothing for want of evidence, or an empty text."""
        query, candidates = self._query, self._candidates
        is_plain = not query.kinds or "event" in query.kinds
        if not is_plain or candidates.listed:
            return ""
        if len(query.text.split()) < LEAST_SAID:
            has_words = candidates.words or candidates.shown_words
            nearest = max(candidates.cosines.values(), default=1.0)
            is_far = candidates.is_large() and not has_words and nearest < _NEAR_WITHOUT_WORDS
            return f"no word is known, and the nearest text has a cosine of {nearest:.2f}" if is_far else ""
        if not candidates.asks_for_evidence(query.text):
            return ""
        length, size = excess_length(self.documents.values()), excess_size(candidates.documents)
        evidence = candidates.find_evidence(self.found)
        is_large = candidates.is_large()
        least = least_evidence(self._question.embedder, length, size, is_large=is_large)
        missing = least - evidence.sum()
        if missing <= 0:
            return ""
        covered = 0.0
        if missing <= COVERED:
            covered = read_cover(self._reader, candidates, self.found, self.documents)
        is_missing = COVERED * covered < missing
        return describe_doubt(evidence, covered, least, candidates.unknown) if is_missing else ""

    def weigh_documents(self) -> None:
        """Weigh documents by their length, and add the neighbours of the best with what all of them lend."""
        reader, question, baseline = self._reader, self._question, self._candidates.baseline
        fusion = fusion_of(question.embedder)
        found = discount_long(self.found, self.documents, fusion)
        around = self._read_neighbours(found)
        if around:
            asked = question.vector, question.embedder
            near = reader.cosines(*asked, list(around)) if question.embedder else {}
            weight = next(iter(found.values())).words_weight
            found |= dict.fromkeys(around, Relevance(0.0, words_weight=weight))
            for place, cosine in near.items():
                meaning = score_meaning(cosine, baseline) if baseline is not None else 0.0
                found[place] = Relevance((1 - weight) * meaning, 0.0, meaning, weight, cosine)
        self.documents = {**self.documents, **around}
        found = add_neighbour_scores(found, self.documents, baseline, fusion)
        self.found = lower_mentions(found, self._find_mentions(found))

    def _read_neighbours(self, found: Mapping[int, Relevance]) -> dict[int, IndexedDocument]:
        """Return the neighbours of the best in their threads that were not found themselves."""
        reader, only = self._reader, self._question.search_filter
        best = (self.documents[place] for place in list(found)[:WITH_NEIGHBOURS])
        positions = [
            (document.thread, document.position + step * side)
            for document in best
            if document.thread
            for step in LENT
            for side in (-1, 1)
        ]
        around = {
            document.place: document
            for document in reader.documents_at(positions)
            if document.place not in found and not document.is_hidden
        }
        if around and (only.groups or only.has_ranges):
            around = {place: around[place] for place in reader.filter_places(list(around), only)}
        if around and only.excluded:
            excluded = SearchFilter(groups=(only.excluded,), with_hidden=True)
            for place in reader.filter_places(list(around), excluded):
                del around[place]
        return around

    def _find_mentions(self, found: Mapping[int, Relevance]) -> list[int]:
        """Return what has the words of a question and cannot answer it.

        An agent's "Now run the tests." states nothing, unless its own words are asked for. Who asks why
        something fails does not ask about the failures of something else.
        """
        failing = asking.failing_subject(self._question.text)
        is_agent_asked = ASSISTANT in self._question.speakers
        documents = self.documents
        read = [
            place
            for place in found
            if (failing and documents[place].kind == "lesson")
            or (not is_agent_asked and is_short_remark(documents[place]))
        ]
        return [
            place
            for place, record in _load_records(self._reader, documents, read).items()
            if (
                record.signature and not is_about(record.summary, failing)
                if documents[place].kind == "lesson"
                else is_remark(record.text)
            )
        ]

    def add_wish(self, limit: int) -> None:
        """Give a place to the standing wish of a person that is nearest to the question, if any is near.

        A wish hardly shares a word with the question to which it applies.
        """
        reader, question, baseline = self._reader, self._question, self._candidates.baseline
        only = question.search_filter
        if baseline is None or not self.found or only.has_ranges:
            return
        said = reader.get_cached(
            ("wishes", only),
            lambda: [hit.place for hit in reader.search(_WISH_WORDS, search_filter=only, limit=CANDIDATES)],
            kinds=frozenset(SEARCHABLE),
        )
        near = reader.cosines(question.vector, question.embedder, said)
        best = sorted(near, key=lambda place: (-near[place], place))[:_FEW_WISHES]
        wishes = reader.indexed_documents([place for place in best if near[place] >= _WISH_COSINE])
        for place in best:
            wish = wishes.get(place)
            if wish and wish.speaker == PERSON and not wish.is_hidden:
                why = Relevance(0.0, 0.0, score_meaning(near[place], baseline), 0.0, near[place])
                self.found = lift_wish({place: why, **self.found}, place, limit)
                self.documents = {**self.documents, place: wish}
                return

    def foreign_places(self, documents: Mapping[int, IndexedDocument]) -> set[int]:
        """Return where records of other projects stand, and what happened in their runs."""
        reader, projects = self._reader, self._query.other_repos
        if not projects:
            return set()
        # A session that ended is logged in the stream, in the words of its run.
        logged = one_of("id", [each.record for each in documents.values() if each.kind == "entry"])
        runs = dict(reader.select_fields("entry", ("id", "run"), logged))
        # So is what was learnt of it by reflecting on the stream.
        texts = one_of("id", [each.record for each in documents.values() if each.kind == "document"])
        for name, extra in reader.select_fields("document", ("id", "extra"), texts):
            runs[name] = json.loads(extra).get(OF_RUN) if f'"{OF_RUN}"' in extra else ""
        fields = {"lesson": "repo", "episode": "project", "fact": "project"}
        wanted: dict[str, dict[str, list[int]]] = {}
        for place, document in documents.items():
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

    def _load(self, places: Sequence[int]) -> None:
        """Load the records of these places and their texts, unless they are known."""
        missing = [place for place in places if place not in self._records]
        records = _load_records(self._reader, self.documents, missing)
        self._records |= records
        for place, record in records.items():
            self._texts[place] = RENDERERS[self.documents[place].kind](record)

    def build_hits(self, scored: dict[int, Score], weights: Weights) -> list[Hit]:
        """Return the results in their final order: amended and superseded ones below their successors."""
        query, documents, texts = self._query, self.documents, self._texts
        ordered = amendments.demote_superseded(amendments.rank_by_score(scored), documents)
        is_broad = asking.is_broad(query.text)
        if is_broad:
            ordered = amendments.spread_threads(ordered, documents)
        pairs = amendments.pairs_to_compare(ordered, documents, scored, query.text)
        wanted = {*ordered[: query.limit], *(place for pair in pairs for place in pair)}
        self._load([place for place in ordered if place in wanted])
        ends = self._find_ends(ordered)
        nothing = Score(0.0, 0.0, 0.0, 0.0, Relevance(0.0))
        scored |= {newer: nothing for newer, _ in ends if newer not in scored}
        pairs = list(dict.fromkeys((*pairs, *ends)))
        ordered, amended_by = self._amend(ordered, scored, pairs, ends)
        ordered = amendments.demote_superseded(ordered, documents)
        # A repeat tells nothing new and stands behind the others. What takes its place may be another.
        while True:
            repeats = amendments.find_repeats(ordered, documents, texts)
            ordered = [place for place in ordered if place not in repeats] + repeats
            if not (missing := [place for place in ordered[: query.limit] if place not in texts]):
                break
            self._load(missing)
        ordered = ordered[: query.limit]
        provenances, repos = self._find_origins(ordered)
        whys = {place: to_unit_scale(scored[place], weights) for place in ordered}
        totals = [why.total for why in whys.values()]
        # A text that takes the place of another has its score; one that is put off, as a repeat or by a broad
        # question, has no more than those before it.
        put_off = 0 if is_broad else len([place for place in ordered if place not in repeats])
        totals[:put_off] = list(accumulate(reversed(totals[:put_off]), max))[::-1]
        totals = list(accumulate(totals, min))
        return [
            Hit(
                kind=documents[place].kind,
                id=documents[place].record,
                name=texts[place].name,
                text=texts[place].shown or texts[place].text,
                score=score,
                time=None if (time := documents[place].time) is None else datetime.fromtimestamp(time, UTC),
                why=whys[place],
                notes=tuple(self._explain_rank(place, amended_by, ordered)),
                window=self._read_window(documents[place]) if query.window else (),
                provenance=provenances.get(place),
                repo=repos.get(place, ""),
                headline=remedy_first(self._records[place]) if documents[place].kind == "lesson" else "",
            )
            for place, score in zip(ordered, totals, strict=True)
        ]

    def _find_ends(self, ordered: Sequence[int]) -> list[tuple[int, int]]:
        """Return pairs of a later text and a first hit of which it tells the end, by a rare name in both.

        "Sidekiq is gone" has no word of "which library runs the queue". What is found is added to what is
        known.
        """
        reader, documents, texts = self._reader, self.documents, self._texts
        asked, only = self._query.text, self._question.search_filter
        if not amendments.asks_for_end(asked):
            return []
        own = {
            place: amendments.own_words(texts[place].text, asked)
            for place in ordered[:_FOLLOWED]
            if place in texts and texts[place].place != documents[place].record
        }
        ended = self._find_ended()
        if ended is not None:
            own = {place: each for place, each in own.items() if not ended.keys().isdisjoint(each)}
        # The rarest words of each text name what it is about, if another text has them too.
        words = list(dict.fromkeys(word for each in own.values() for word in each))[:_MOST_NAMES]
        most = max(RARE, reader.document_count() // 50)
        held = zip(words, reader.count_documents_with(words, at_most=most + 1), strict=True)
        counts = {word: count for word, count in held if 1 < count <= most}
        own = {
            place: sorted((word for word in each if word in counts), key=counts.__getitem__)[:_RAREST]
            for place, each in own.items()
        }
        names = dict.fromkeys(word for each in own.values() for word in each)
        if ended is None:
            hits = reader.search(TextQuery(tuple(names)), search_filter=only, limit=_FOLLOWING)
            places = [hit.place for hit in hits]
        else:
            places = [*dict.fromkeys(place for word in names for place in ended.get(word, ()))][:_FOLLOWING]
        documents |= reader.indexed_documents([place for place in places if place not in documents])
        found = {place: documents[place] for place in places if place in documents}
        foreign = self.foreign_places(found)
        pairs = [
            (newer, older)
            for newer, document in found.items()
            if newer not in foreign and not document.is_hidden and not document.superseded_by
            for older in own
            if amendments.is_later(document, documents[older])
        ]
        self._load(list(dict.fromkeys(newer for newer, _ in pairs)))
        return [
            (newer, older)
            for newer, older in pairs
            if newer in texts and not words_beside_end(texts[newer].text).isdisjoint(own[older])
        ]

    def _find_ended(self) -> Mapping[str, list[int]] | None:
        """Return where a small bank tells of the end of what, by its name; None for a large one."""
        reader, only = self._reader, self._question.search_filter

        def read() -> dict[str, list[int]]:
            hits = reader.search(_ENDS, search_filter=only, limit=_FEW_DOCUMENTS)
            documents = reader.indexed_documents([hit.place for hit in hits])
            ended: dict[str, list[int]] = {}
            for place, record in sorted(_load_records(reader, documents, list(documents)).items()):
                for word in words_beside_end(RENDERERS[documents[place].kind](record).text):
                    ended.setdefault(word, []).append(place)
            return ended

        if reader.document_count() > _FEW_DOCUMENTS:
            return None
        return reader.get_cached(("ended", only), read, kinds=frozenset(SEARCHABLE))

    def _amend(
        self,
        ordered: list[int],
        scored: dict[int, Score],
        pairs: list[tuple[int, int]],
        ends: list[tuple[int, int]],
    ) -> tuple[list[int], dict[int, amendments.Amendment]]:
        """Move what amends an earlier text above it. What others brought amends nobody else's words."""
        asked = self._query.text
        amended = amendments.apply_amendments(ordered, scored, self._texts, pairs, asked, ends)
        if amended == (ordered, {}):
            return amended
        known, _ = self._find_origins(list(dict.fromkeys(place for pair in pairs for place in pair)))
        foreign = {place for place, provenance in known.items() if not provenance.is_own}
        allowed = [(newer, older) for newer, older in pairs if newer not in foreign or older in foreign]
        return amendments.apply_amendments(ordered, scored, self._texts, allowed, asked, ends)

    def _explain_rank(
        self, place: int, amended_by: Mapping[int, amendments.Amendment], shown: Sequence[int]
    ) -> list[str]:
        """Return what a hit is superseded or replaced by, and what it replaces."""
        document, record, notes = self.documents[place], self._records[place], []
        kind, successor = document.kind, document.superseded_by
        if successor:
            by = self._reader.records(kind, [successor]).get(successor)
            notes.append(f"superseded by {name_of(kind, by) if by else successor}")
        elif amendment := amended_by.get(place):
            name = self._mention(kind, amendment.newer)
            is_sure = amendment.is_sure
            notes.append(f"replaced by {name}: {amendment.reason}" if is_sure else f"see the later {name}")
        if kind == "lesson" and record.is_found_useless:
            notes.append(f"archived: {record.extra[RETIRED]}")
        replaced = [older for older, each in amended_by.items() if each.newer == place and each.is_sure]
        replaced += [older for older in shown if self.documents[older].superseded_by == document.record]
        notes += [f"current: replaces {self._mention(kind, older)}" for older in replaced]
        if kind == "fact" and record.updated != record.created:
            changes = self._reader.changes(record_id=record.id)
            values = [change.after["value"] for change in changes if change.after]
            earlier = [str(value) for value in values if value != record.value]
            notes += [f"current: replaces “{shorten_line(value, _QUOTED)}”" for value in earlier[-1:]]
        return notes

    def _mention(self, kind: str, place: int) -> str:
        """Return how a note names a record: the entries of a cycle have one name, so they are quoted."""
        text = self._texts[place]
        return f"{text.name} “{shorten_line(text.text, _QUOTED)}”" if kind == "entry" else text.name

    def _read_window(self, document: IndexedDocument) -> tuple[str, ...]:
        """Return the texts around a document in its thread, its own with a mark."""
        if not document.thread:
            return ()
        reach = self._query.window
        positions = range(document.position - reach, document.position + reach + 1)
        around = self._reader.documents_at([(document.thread, position) for position in positions])
        names = [each.record for each in sorted(around, key=lambda each: each.position)]
        beside = self._reader.records(document.kind, names)
        return tuple(
            f"{'>' if name == document.record else ' '} {text_of(document.kind, beside[name])}"
            for name in names
            if name in beside
        )

    def _find_origins(self, places: Sequence[int]) -> tuple[dict[int, Provenance], dict[int, str]]:
        """Return, by their places, where lessons, runs, events, and texts of agents and files come from.

        And the repositories of lessons, runs and facts, and of the runs of events and entries.
        """
        from archivist.records import Provenance

        reader = self._reader
        provenances: dict[int, Provenance] = {}
        repos: dict[int, str] = {}
        runs: dict[int, str] = {}
        for place in places:
            kind, record = self.documents[place].kind, self._records[place]
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
            if self.documents[place].kind != "entry" and (written or run in early):
                provenances[place] = Provenance(written) if written else early[run]
        return provenances, repos


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
