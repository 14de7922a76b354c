"""Keep candidates: clean them, find the lesson each one repeats, then create or update that lesson."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb, is_hidden_from, may, may_change
from archivist.capture.clean import Cleaner
from archivist.cold_start import lazy_pattern
from archivist.lessons import gate
from archivist.lessons.candidate import (
    FIXED_FIELDS,
    Candidate,
    KeptLesson,
    LessonChange,
    Sighting,
    clean_candidate,
)
from archivist.lessons.contradiction import contradicts, find_contradicted, standing_of, wish_words
from archivist.lessons.quarantine import lesson_suspicion
from archivist.lessons.standing import SUPERSEDES, cited_findings, with_status
from archivist.recall.keywords import KeywordIndex, Overlap, keywords
from archivist.records import Event, EventKind, Lesson, LessonType, Provenance, Status
from archivist.records.words import MODEL_ORIGIN
from archivist.store.filters import any_of, at_least, at_most, contains_item, equals, not_equals, one_of
from archivist.store.results import SearchFilter, TextQuery, scope_token

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Writer

    _FindTwin = Callable[[Candidate], Lesson | None]
    _MeetTwin = Callable[[Lesson, Candidate, Sighting], Lesson]

_LIVE = (Status.ACTIVE, Status.CANDIDATE, Status.QUARANTINED)
# How many of the best text matches a suggestion is compared with; a twin shares most of its words.
_COMPARED = 20
# Written in .1 s of CPU. On a machine of two cores with a load of ten, 200 made others wait for 2.5 s.
_KEPT_TOGETHER = 100
# Words without which a statement says the same. Code is compared as it stands: `-x` is not `x`.
_FILLERS = frozenset(("a", "an", "the", "please"))
_WORD = lazy_pattern(r"`[^`]*+`|\w++(?:['/.@-]\w++)*+|[^\w\s.!?,;:…\"“”()]")
# The same words for another place are another lesson.
_PLACE = ("scope", "project", "repo", "task", "provider", "tool", "role", "domain")


def _is_believed_wish(lesson: Lesson) -> bool:
    # What only a model found waits for a second run, and must not take the place of what the user said.
    is_doubtful = lesson.origin == MODEL_ORIGIN and lesson.status is not Status.ACTIVE
    is_live = lesson.status.is_live and not lesson.is_waiting
    return lesson.type is LessonType.PREFERENCE and is_live and not is_doubtful


def _holds_all_words(candidate: Candidate, lesson: Lesson) -> bool:
    names = ("summary", "rule", "detail", "tags")
    return all(getattr(lesson, name) in ("", (), getattr(candidate, name)) for name in names)


def _plain_words(text: str) -> list[str]:
    """Return the words of a statement in order, without marks, case and articles."""
    return [word for word in _WORD.findall(text.casefold()) if word not in _FILLERS]


def keep_in_batches(
    bank: Bank, candidates: Iterable[Candidate], sighting: Sighting, *, max_created: int | None
) -> list[KeptLesson]:
    """Keep the candidates of one sighting in order; those beyond `max_created` new ones are dropped.

    Each batch is a transaction of its own: other commands wait for one batch, not for a run's ten thousand
    findings. What a killed process left out, the next reading of the same run finds.
    """
    kept: list[KeptLesson] = []
    created, written_until, is_done = 0, -1, False
    gate: LessonGate | None = None
    # Read one by one: a candidate may depend on those that are kept before it.
    remaining = iter(candidates)
    while not is_done:
        with bank.transaction() as writer:
            if gate is None or writer.last_entry() != written_until:
                # Another process has written since.
                gate = LessonGate(bank, writer, sighting)
            gate.write_by(writer)
            until = len(kept) + _KEPT_TOGETHER
            for candidate in islice(remaining, _KEPT_TOGETHER):
                kept.append(gate.keep(candidate, may_create=max_created is None or created < max_created))
                created += kept[-1].is_new
            is_done = len(kept) < until
            written_until = writer.last_entry()
    return kept


class LessonGate:
    """Keep the candidates of one sighting.

    What they are compared with is read once: 1,000 findings, new or met again, take about a second
    (bench/lessons.py), nearly all of it for writing, and 10,000 that are met again take eleven.
    """

    def __init__(self, bank: Bank, writer: Writer, sighting: Sighting) -> None:
        self._bank = bank
        self._writer = writer
        self._sighting = sighting
        self._cleaner = Cleaner()
        # The ledger's verb for a new lesson, how its twin is found, and what one more sighting does to that.
        ways: dict[Provenance, tuple[str, _FindTwin, _MeetTwin]] = {
            Provenance.MINED: ("reflect", self._find_by_key_or_likeness, gate.meet_mined),
            Provenance.REVIEWED: ("extract", self._find_by_keywords, self._meet_reviewed),
            Provenance.TYPED: ("add", self._find_by_words_and_place, gate.meet_said),
            Provenance.SUGGESTED: ("suggest", self._find_by_likeness, gate.meet_suggested),
            Provenance.IMPORTED: ("import", self._find_by_id, gate.meet_imported),
            Provenance.SHARED: ("share", self._find_by_id, gate.meet_shared),
        }
        self._verb, self._find_twin, self._meet_twin = ways[sighting.provenance]
        if sighting.provenance is Provenance.TYPED and sighting.words_from is Provenance.SUGGESTED:
            self._meet_twin = gate.meet_suggested
        # The reviews that lessons cite: each holds many findings.
        self._reviews: dict[str, Event] = {}

    def write_by(self, writer: Writer) -> None:
        """Go on in another transaction, before which nobody else has written."""
        self._writer = writer

    def keep(self, candidate: Candidate, *, may_create: bool = True) -> KeptLesson:
        """Store what a candidate says as a new lesson or as one more sighting of a known one.

        Of a wish and those that it contradicts, only the one that holds stays live.
        """
        kept = self._keep_candidate(candidate, may_create=may_create)
        is_said = self._sighting.provenance in (Provenance.MINED, Provenance.TYPED)
        if not is_said or kept.change is LessonChange.DROPPED or not _is_believed_wish(kept.lesson):
            return kept
        for other in find_contradicted(kept.lesson, self._wishes_beside(kept.lesson)):
            earlier, later = sorted((kept.lesson, other), key=standing_of)
            earlier = self._supersede(earlier, later)
            if earlier.id == kept.lesson.id:
                return KeptLesson(earlier, kept.change)
        return kept

    def _wishes_beside(self, wish: Lesson) -> list[Lesson]:
        """Return the believed wishes of the same place whose words contradict those of one.

        Reading 1,000 lessons whole took 60 ms, comparing only their words takes 16.
        """
        asked = (
            equals("type", LessonType.PREFERENCE), one_of("status", _LIVE), equals("repo", wish.repo),
            equals("is_waiting", 0),
        )  # fmt: skip
        words = wish_words(wish.summary, wish.remedies)
        found = [
            name
            for name, summary, remedies in self._writer.select_fields(
                Lesson, ("id", "summary", "remedies"), *asked
            )
            if contradicts(words, wish_words(summary, json.loads(remedies) if remedies != "[]" else ()))
        ]
        lessons: Mapping[str, Lesson] = self._writer.records("lesson", found)
        return [lesson for lesson in lessons.values() if _is_believed_wish(lesson)]

    def _keep_candidate(self, candidate: Candidate, *, may_create: bool) -> KeptLesson:
        sighting, provenance = self._sighting, self._sighting.provenance
        is_from_file = provenance in (Provenance.IMPORTED, Provenance.SHARED)
        candidate = clean_candidate(candidate, self._cleaner, is_exact=is_from_file)
        may_create = may_create and not candidate.is_known_only
        if candidate.origin == MODEL_ORIGIN and provenance is Provenance.MINED:
            return self._keep_of_model(candidate, may_create=may_create)
        known = self._find_twin(candidate)
        is_failure = provenance is Provenance.MINED and candidate.type is not LessonType.PREFERENCE
        if known is None and is_failure and may_create and sighting.words_from.is_own:
            known = self._find_faded(candidate)
        if known is None:
            draft = gate.draft_lesson(candidate, sighting)
            if not may_create:
                return KeptLesson(draft, LessonChange.DROPPED)
            draft = gate.believe_imported(draft, None) if is_from_file else draft
            lesson = self._put_new(draft, candidate.number, self._verb)
            return KeptLesson(lesson, LessonChange.CREATED)
        is_mined = provenance is Provenance.MINED
        may_refine = is_mined and not known.is_waiting and sighting.words_from.is_own
        may_refine = may_refine and not sighting.knows_less_than(known)
        better = gate.refine_lesson(known, candidate, sighting) if may_refine else None
        if better is not None:
            better = self._put_new(better, 0, "refine")
            self._supersede(known, better)
            return KeptLesson(better, LessonChange.REFINED)
        if known.is_waiting and known.status.is_live and sighting.words_from.is_own and not is_from_file:
            met = gate.adopt_lesson(known, candidate, sighting)
        elif not (is_from_file or known.is_waiting or sighting.is_counted):
            # What an agent or a file reported neither counts for what is believed nor rewords it.
            met = known
        else:
            met = self._meet_twin(known, candidate, sighting)
        # A lesson that this sighting does not change keeps its status, whatever the rules say by now.
        after = met if met == known else self._settle(met, known)
        if not self._writer.put(after, self._verb if is_from_file else "see"):
            return KeptLesson(known, LessonChange.UNCHANGED)
        if is_mined:
            self._project_lessons[after.id] = after
        return KeptLesson(after, LessonChange.MET)

    def _keep_of_model(self, candidate: Candidate, *, may_create: bool) -> KeptLesson:
        """Keep what a model worded. It rewords nothing: it supersedes what was mined, and both are kept."""
        sighting = self._sighting
        draft = gate.draft_lesson(candidate, sighting)
        found = [self._writer.get(Lesson, name) for name in (*candidate.supersedes, *candidate.generalises)]
        older = [lesson for lesson in found if lesson is not None and gate.may_be_superseded(lesson)]
        if len(older) < len(found) or (found and not sighting.words_from.is_own):
            return KeptLesson(draft, LessonChange.DROPPED)
        known = None if candidate.supersedes else self._find_by_key_or_likeness(candidate)
        if known is not None and not found:
            is_better = bool(candidate.remedies or candidate.rule) and not (known.remedies or known.rule)
            if is_better and gate.may_be_superseded(known) and sighting.words_from.is_own:
                older = [known]
            elif sighting.is_counted and not known.is_waiting:
                met = gate.record_sighting(known, candidate, sighting)
                is_changed = met != known and self._writer.put(self._settle(met, known), "see")
                return KeptLesson(met, LessonChange.MET if is_changed else LessonChange.UNCHANGED)
            else:
                return KeptLesson(known, LessonChange.UNCHANGED)
        if known is not None and candidate.generalises:
            return KeptLesson(known, LessonChange.UNCHANGED)
        if not may_create and (candidate.generalises or not older):
            return KeptLesson(draft, LessonChange.DROPPED)
        if not older:
            return KeptLesson(self._put_new(draft, 0, self._verb), LessonChange.CREATED)
        succeeding = gate.succeed_lessons(older, candidate, sighting)
        is_told = self._settle(succeeding, None).status is Status.ACTIVE
        if not candidate.generalises and not is_told and any(each.status is Status.ACTIVE for each in older):
            # Nothing is taken from runs before what replaces it is told: a person decides.
            pending = {SUPERSEDES: sorted(lesson.id for lesson in older)}
            draft = replace(draft, extra={**draft.extra, **pending})
            return KeptLesson(self._put_new(draft, 0, self._verb), LessonChange.CREATED)
        new = self._put_new(succeeding, 0, "refine")
        if candidate.generalises:
            return KeptLesson(new, LessonChange.CREATED)
        for lesson in older:
            self._supersede(lesson, new)
        return KeptLesson(new, LessonChange.REFINED)

    def _supersede(self, old: Lesson, new: Lesson) -> Lesson:
        now = self._sighting.now
        old = replace(old, status=Status.SUPERSEDED, superseded_by=new.id, updated=now, edited=now)
        self._writer.put(old, "supersede")
        if self._sighting.provenance is Provenance.MINED:
            self._project_lessons.pop(old.id, None)
        return old

    def _put_new(self, draft: Lesson, wanted_number: int, verb: str) -> Lesson:
        """Give a draft its id, number and status, and store it."""
        writer = self._writer
        number = wanted_number
        if wanted_number and not writer.select_fields(Lesson, ("id",), equals("number", wanted_number)):
            writer.reserve_number(number)
        else:
            number = writer.next_number()
        lesson = replace(draft, id=draft.id or self._bank.new_id(self._sighting.now), number=number)
        lesson = self._settle(lesson, None)
        writer.put(lesson, verb)
        if self._sighting.provenance is Provenance.MINED:
            self._project_lessons[lesson.id] = lesson
        elif self._sighting.provenance is Provenance.REVIEWED:
            index = self._waiting_index if lesson.is_waiting else self._keyword_index
            is_reviewed = lesson.provenance is Provenance.REVIEWED
            index.add(lesson.id, lesson.summary, lesson.tags, is_reviewed=is_reviewed)
        return lesson

    def _settle(self, lesson: Lesson, before: Lesson | None) -> Lesson:
        """Return a lesson with the status that it has earned; an agent's own reviews earn none."""
        lesson = with_status(lesson, promote_at_runs=self._bank.config.lessons.promote_at_runs)
        is_trusted = may(self._bank.actor, Layer.LESSONS, Verb.DECIDE)
        if self._sighting.provenance is not Provenance.REVIEWED or is_trusted:
            return lesson
        if lesson.status is Status.QUARANTINED:
            return lesson
        return replace(lesson, status=before.status if before else Status.CANDIDATE)

    @cached_property
    def _project_lessons(self) -> dict[str, Lesson]:
        projects = one_of("repo", (self._sighting.project, ""))
        lessons = self._writer.select(Lesson, one_of("status", _LIVE), projects)
        return {lesson.id: lesson for lesson in lessons}

    @cached_property
    def _keyword_index(self) -> KeywordIndex:
        return self._index_keywords(is_waiting=False)

    @cached_property
    def _waiting_index(self) -> KeywordIndex:
        return self._index_keywords(is_waiting=True)

    def _index_keywords(self, *, is_waiting: bool) -> KeywordIndex:
        """Index the live lessons, and those that count this run: it must not create them again."""
        rules = self._bank.config.lessons
        asked = (one_of("status", _LIVE), equals("is_waiting", int(is_waiting)))
        rows = self._writer.select_fields(Lesson, ("id", "summary", "tags", "provenance"), *asked)
        # Many lessons have no tags, and reading each list took a tenth of the time.
        known = {row[0]: (row[1], json.loads(row[2]) if row[2] != "[]" else (), row[3]) for row in rows}
        counting = contains_item("runs", self._sighting.counted)
        for lesson in () if is_waiting else self._writer.select(Lesson, counting):
            known[lesson.id] = (lesson.summary, lesson.tags, lesson.provenance)
        index = KeywordIndex(Overlap(rules.finding_overlap, rules.lesson_overlap))
        for lesson_id, (summary, tags, provenance) in known.items():
            index.add(lesson_id, summary, tags, is_reviewed=provenance == Provenance.REVIEWED)
        return index

    def _meet_reviewed(self, known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
        """Count the run, and learn from all findings that the lesson cites whose hint it is."""
        met = gate.meet_reviewed(known, candidate, sighting)
        if met == known:
            return known
        cited = cited_findings(self._writer, met, self._reviews)
        finders = {(run, finding.found_by) for run, finding in cited}
        roles = {role for _, role in finders} | self._reviewers
        # Where one role reviews alone, nothing shows that others would not have found it.
        found_by = [role for _, role in finders] if len(roles - {""}) > 1 else []
        return gate.learn_role(met, found_by, now=sighting.now)

    @cached_property
    def _reviewers(self) -> set[str]:
        of_run = equals("run", self._sighting.run)
        reviews = self._writer.select(Event, of_run, equals("kind", EventKind.VERDICT))
        return {finding.found_by or event.role for event in reviews for finding in event.findings}

    def _find_by_key_or_likeness(self, candidate: Candidate) -> Lesson | None:
        """Return the lesson of the same key or of like words, else a retired one of the same key.

        A lesson that people forgot must not be learnt again. One that faded or was superseded may be, but not
        from a run that it counts.
        """
        lessons = gate.comparable_lessons(candidate, self._project_lessons.values())
        contradicted = {wish.id for wish in find_contradicted(candidate, lessons)}
        lessons = [lesson for lesson in lessons if lesson.id not in contradicted]
        # What others brought must not take the sightings of what this bank learnt itself.
        for is_waiting in (False, True):
            some = [lesson for lesson in lessons if lesson.is_waiting is is_waiting]
            if twin := gate.find_duplicate(candidate, some):
                return twin
        if not candidate.key:
            return None
        is_forgotten = (not_equals("status", Status.SUPERSEDED), at_least("frequency", 1))
        retired = self._writer.select(
            Lesson,
            equals("signature", candidate.key),
            equals("is_waiting", 0),
            any_of(is_forgotten, (contains_item("runs", self._sighting.counted),)),
            order=("-updated",),
        )
        return next(iter(gate.comparable_lessons(candidate, retired)), None)

    def _find_faded(self, candidate: Candidate) -> Lesson | None:
        """Return the lesson of a failure that faded and is met again, live, with all that it knows."""
        faded = self._writer.select(
            Lesson,
            equals("signature", candidate.key),
            equals("status", Status.ARCHIVED),
            equals("is_waiting", 0),
            at_most("frequency", 0),
            order=("-updated",),
        )
        found = next(iter(gate.comparable_lessons(candidate, faded if candidate.key else ())), None)
        return replace(found, status=Status.CANDIDATE, faded=0) if found else None

    def _find_by_keywords(self, candidate: Candidate) -> Lesson | None:
        """Return the lesson that holds half of a finding's words; `detail` holds a long finding in full."""
        words, category = candidate.detail or candidate.summary, "".join(candidate.tags[:1])
        match = self._keyword_index.find(words, category) or self._waiting_index.find(words, category)
        lesson = self._writer.get(Lesson, match.key) if match else None
        is_told = lesson and (
            not is_hidden_from(lesson, self._bank.actor) or _holds_all_words(candidate, lesson)
        )
        return lesson if is_told else None

    def _find_by_words_and_place(self, candidate: Candidate) -> Lesson | None:
        """Return the live lesson that says the same for the same place; marks and articles do not count."""
        if candidate.given & FIXED_FIELDS:
            return None
        same = self._writer.select(Lesson, equals("summary", candidate.summary), order=("number",))
        words = _plain_words(candidate.summary)
        like = [lesson for lesson in self._search_like(candidate) if _plain_words(lesson.summary) == words]
        for lesson in (*same, *sorted(like, key=lambda each: each.number)):
            is_same_place = all(getattr(lesson, name) == getattr(candidate, name) for name in _PLACE)
            if lesson.status.is_live and is_same_place:
                return lesson
        return None

    def _search_like(self, candidate: Candidate) -> list[Lesson]:
        """Return the lessons that share most words with a candidate, the best first."""
        query = TextQuery(tuple(sorted(keywords(candidate.summary))))
        # What waits is hidden from searches, but said again it is the same.
        only_lessons = SearchFilter(groups=((scope_token("kind", "lesson"),),), with_hidden=True)
        hits = self._writer.search(query, search_filter=only_lessons, limit=_COMPARED) if query.words else []
        documents = self._writer.indexed_documents([hit.place for hit in hits])
        found: Mapping[str, Lesson] = self._writer.records(
            "lesson", [documents[hit.place].record for hit in hits]
        )
        return list(found.values())

    def _find_by_likeness(self, candidate: Candidate) -> Lesson | None:
        """Return the lesson that says the same; an agent need not name the repository or the provider.

        One that is hidden from it is the same only if it has no word more: the answer would tell that word.
        """
        lessons = [lesson for lesson in self._search_like(candidate) if lesson.status.is_live]
        if lesson_suspicion(candidate):
            # Suspicious words must not join a live lesson; quarantined ones are not in the text index.
            lessons = [lesson for lesson in lessons if not may_change(self._sighting.actor, lesson)]
            lessons += self._writer.select(Lesson, equals("status", Status.QUARANTINED))
        words = replace(candidate, key="")
        for lesson in lessons:
            if is_hidden_from(lesson, self._sighting.actor) and not _holds_all_words(candidate, lesson):
                continue
            repo, provider = words.repo or lesson.repo, words.provider or lesson.provider
            if gate.find_duplicate(replace(words, repo=repo, provider=provider), [lesson]):
                return lesson
        return None

    def _find_by_id(self, candidate: Candidate) -> Lesson | None:
        return self._writer.get(Lesson, candidate.record.id) if candidate.record else None
