"""Take lessons that an agent suggests: what it says is kept as seen once until another run meets it.

People's lessons count at once; an agent's could be a mistake, or a text that it read somewhere. So its
evidence must resolve, secrets come out, a lesson that is known is met again instead of doubled, and a run
adds only so many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.access.rights import Layer, Verb, may_change
from archivist.capture.clean import Cleaner
from archivist.errors import InputError, NotFoundError, RecordError
from archivist.ledger import service as lookup
from archivist.lessons.candidate import Candidate
from archivist.lessons.duplicates import find_duplicate
from archivist.lessons.quarantine import lesson_suspicion
from archivist.lessons.standing import is_confirmed, merge_sets, with_status
from archivist.recall.keywords import keywords
from archivist.records import ActorKind, Episode, Event, Evidence, Lesson, LessonType, Source, Status
from archivist.records.lesson import validate_lesson
from archivist.records.plain import from_plain
from archivist.store.filters import equals
from archivist.store.results import SearchFilter, TextQuery
from archivist.store.scope_tokens import scope_token
from archivist.text import make_legible

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader, Writer

ORIGIN = "agent"
# The known lessons that are compared with a new one: those that answer its words best.
_COMPARED = 20
# What is said of a lesson; the rest is counted.
_SAID = frozenset(
    ("rule", "detail", "type", "category", "scope", "project", "repo", "task", "provider", "tool", "role",
     "domain", "tags", "importance", "severity")
)  # fmt: skip
_NO_PREFERENCE = "pattern, anti_pattern or archetype_hint; ask a person to add a preference"


class SuggestionResult(NamedTuple):
    """The lesson that a suggestion became, and whether it is a new one."""

    lesson: Lesson
    is_new: bool


def suggest_or_add(
    bank: Bank, summary: str, *, run: str = "", evidence: Sequence[str] = (), **fields: Any
) -> SuggestionResult:
    """Keep a lesson in the name of whoever tells it: an agent's is suggested, another's counts at once."""
    if bank.actor.kind is not ActorKind.AGENT:
        from archivist.lessons.service import add_or_confirm

        given = {name: value for name, value in fields.items() if value not in ("", (), None)}
        return add_or_confirm(bank, summary, given.pop("type", LessonType.PATTERN), given)
    return suggest(bank, summary, fields, run=run.strip(), evidence=evidence)


def suggest(
    bank: Bank, summary: str, fields: Mapping[str, Any], *, run: str = "", evidence: Sequence[str] = ()
) -> SuggestionResult:
    """Keep what an agent learnt: as a new candidate, or as one more run that met a known lesson.

    A run that the bank does not know counts as the day does: names are cheap, and repeating oneself under
    several of them must not make a thing true.
    """
    bank.require(Layer.LESSONS, Verb.WRITE)
    fresh = _draft_lesson(bank, summary, fields)
    shown = _resolve_evidence(bank, evidence)
    with bank.transaction() as writer:
        is_known_run = bool(run) and _is_foreign_run(bank, writer, run)
        seen_in = run if is_known_run else f"told-{fresh.created.date().isoformat()}"
        shown = _merge_evidence(shown, Evidence(episodes=(run,))) if is_known_run else shown
        known = _find_twin(fresh, writer)
        if known is not None:
            return SuggestionResult(_count_sighting(bank, writer, known, fresh, seen_in, shown), is_new=False)
        _refuse_too_many(bank, writer, run)
        lesson = replace(
            fresh,
            number=writer.next_number(),
            evidence=shown,
            runs=(seen_in,),
            origin_run=run or seen_in,
            last_seen_run=seen_in,
            last_seen=fresh.created,
            unseen_from=writer.run_count(),
        )
        lesson = with_status(lesson, promote_at_runs=bank.config.lessons.promote_at_runs)
        writer.put(lesson, "suggest")
    return SuggestionResult(lesson, is_new=True)


def _is_foreign_run(bank: Bank, reader: Reader, run: str) -> bool:
    """Say whether a run is known that the agent did not open itself: that is as cheap as a name."""
    first = reader.changes(record_id=run, limit=1)
    return reader.get(Episode, run) is not None and bool(first) and first[0].entry.actor != bank.actor


def _draft_lesson(bank: Bank, summary: str, fields: Mapping[str, Any]) -> Lesson:
    """Return what is said as a lesson that nobody has met yet, its secrets taken out."""
    unknown = sorted(fields.keys() - _SAID)
    if unknown:
        raise RecordError(f"{unknown[0]}: is not for who suggests a lesson to say")

    def clean(text: str) -> str:
        return Cleaner().text(make_legible(text))

    words = clean(" ".join(summary.split()))
    if not words:
        raise InputError("a lesson needs words", hint="one sentence that says what was learnt")
    said = {name: clean(value) if isinstance(value, str) else value for name, value in fields.items()}
    tags = (tag.strip().lower() for tag in map(clean, fields.get("tags") or ()))
    now = bank.now()
    values = {
        **{name: value for name, value in said.items() if value is not None},
        "summary": words,
        "rule": " ".join((said.get("rule") or "").split()),
        "tags": tuple(dict.fromkeys(tag for tag in tags if tag)),
        "id": bank.new_id(now),
        "created": now,
        "updated": now,
        "edited": now,
        "origin": ORIGIN,
        "actor": bank.actor,
    }
    lesson = validate_lesson(from_plain(Lesson, values))
    if is_confirmed(lesson):
        raise InputError("type: a preference is for people to have", hint=_NO_PREFERENCE)
    return lesson


def similar_lessons(reader: Reader, summary: str) -> list[Lesson]:
    """Return the lessons that answer the words of a summary best, the best first."""
    only_lessons = SearchFilter(groups=((scope_token("kind", "lesson"),),))
    hits = reader.search(
        TextQuery(tuple(sorted(keywords(summary)))), search_filter=only_lessons, limit=_COMPARED
    )
    placed = reader.indexed_documents([hit.place for hit in hits])
    return list(reader.records("lesson", [placed[hit.place].record for hit in hits]).values())


def _find_twin(fresh: Lesson, reader: Reader) -> Lesson | None:
    """Return the lesson that says the same; whose repository it is, an agent in the project need not say."""
    said = Candidate(key="", summary=fresh.summary, rule=fresh.rule, tags=fresh.tags)
    among = [each for each in similar_lessons(reader, fresh.summary) if each.status.is_live]
    if lesson_suspicion(fresh):
        # Such words go into no lesson that is told. What waits for a person is hidden from search.
        among = [each for each in among if not may_change(fresh.actor, each)]
        among += reader.select(Lesson, equals("status", Status.QUARANTINED))
    return next(
        (
            each
            for each in among
            if find_duplicate(
                replace(said, repo=fresh.repo or each.repo, provider=fresh.provider or each.provider), [each]
            )
        ),
        None,
    )


def _resolve_evidence(bank: Bank, names: Sequence[str]) -> Evidence:
    """Return evidence by what each id names; an id that names nothing is refused."""
    found: dict[str, list[str]] = {"episodes": [], "events": [], "logs": []}
    for name in names:
        try:
            _, record = lookup.find(bank, name)
        except NotFoundError:
            raise InputError(
                f"evidence {name!r} names nothing",
                hint="the ids of runs, events or entries as other functions name them",
            ) from None
        kind = (
            "episodes" if isinstance(record, Episode) else "events" if isinstance(record, Event) else "logs"
        )
        found[kind].append(record.id)
    return Evidence(**{kind: tuple(sorted(set(ids))) for kind, ids in found.items()})


def _count_sighting(
    bank: Bank, writer: Writer, known: Lesson, fresh: Lesson, run: str, shown: Evidence
) -> Lesson:
    """Count a run that met a known lesson, and take what the telling adds to words that it may change."""
    met = known
    if run not in known.runs:
        met = replace(
            met, runs=merge_sets(met.runs, (run,)), last_seen_run=run, unseen_from=writer.run_count()
        )
        met = with_status(met, promote_at_runs=bank.config.lessons.promote_at_runs)
    if known.source is Source.ARCHIVIST and not known.confirmed and may_change(bank.actor, known):
        met = replace(met, rule=met.rule or fresh.rule, detail=met.detail or fresh.detail)
    met = replace(met, evidence=_merge_evidence(met.evidence, shown))
    if met == known:
        return known
    now = bank.now()
    is_reworded = (met.rule, met.detail) != (known.rule, known.detail)
    met = replace(met, last_seen=now, updated=now, edited=now if is_reworded else met.edited)
    writer.put(met, "see")
    return met


def _refuse_too_many(bank: Bank, writer: Writer, run: str) -> None:
    most = bank.config.reflect.max_memories_per_run
    if run and writer.count(Lesson, equals("origin_run", run), equals("origin", ORIGIN)) >= most:
        raise InputError(
            f"run {run!r} has added {most} lessons already",
            hint="keep the few that matter most; reflect.max_memories_per_run is the limit",
        )


def _merge_evidence(first: Evidence, second: Evidence) -> Evidence:
    return Evidence(
        episodes=merge_sets(first.episodes, second.episodes),
        trajectories=merge_sets(first.trajectories, second.trajectories),
        sessions=merge_sets(first.sessions, second.sessions),
        logs=merge_sets(first.logs, second.logs),
        events=merge_sets(first.events, second.events),
    )
