"""Attempts at tasks: what was tried, the result, and which approaches work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Required, TypedDict, Unpack

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.audit.analytics import (
    Analytics,
    ApproachResult,
    GroupBy,
    PeriodUnit,
    analyse_attempts,
    approach_results,
    expected_success,
    fold_approach,
)
from archivist.clock import to_text
from archivist.errors import InputError, RecordError
from archivist.layers.approaches import are_alike
from archivist.reading.similarity import content_stems
from archivist.recall.answering import filter_answers
from archivist.recall.query import Query
from archivist.recall.scoring import Preset, saturate
from archivist.records.episode import UNREPORTED, Episode, Usage, merge_episode
from archivist.records.layers import NAME_CHARACTERS, VALUE_CHARACTERS
from archivist.records.plain import decoder, from_plain
from archivist.records.run_words import Action, EpisodeKind, EpisodeStatus
from archivist.records.words import Provenance
from archivist.service import BankService
from archivist.store.filters import Condition, at_least, at_most, equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

_STATUS = {
    Action.ATTEMPTED: EpisodeStatus.PARTIAL,
    Action.RETRIED: EpisodeStatus.PARTIAL,
    Action.COMPLETED: EpisodeStatus.SUCCESS,
    Action.FAILED: EpisodeStatus.FAILED,
}
NEWEST = ("-finished", "-id")
# A task counts as similar when its score is at least half of the best one in other words, or when its words
# are alike.
_LIKE_ENOUGH = 0.5
# Per action; several attempts share a task, so there are more hits than tasks.
_HITS = 40


class SimilarApproach(NamedTuple):
    """An approach to a similar task, how similar the task is, and its title where it is a record.

    `tasks` counts the tasks of this name where the same approach ended alike.
    """

    tried: ApproachResult
    score: float
    title: str = ""
    tasks: int = 1


class AttemptReport(TypedDict, total=False):
    """Who tried what at a task, and the result; `run` is the captured run that it belongs to."""

    agent: Required[str]
    action: Required[Action | str]
    approach: Required[str]
    outcome: str
    duration_ms: int | None
    tokens_in: int | None
    tokens_out: int | None
    provider: str
    run: str
    time: datetime | None
    id: str


class Attempts(BankService):
    """The attempts at tasks that orchestrators logged."""

    @writes(Layer.EPISODES)
    def log(self, task: str, **report: Unpack[AttemptReport]) -> Episode:
        """Log an attempt at a task: what was tried, and the result.

        Logging the same id again changes nothing; logging it with its end updates the attempt.
        """
        self.require(Layer.EPISODES, Verb.WRITE, owner=report["agent"])
        return log_attempt(self._bank, task, **report)

    @reads(Layer.EPISODES)
    def query(
        self,
        *,
        task: str = "",
        agent: str = "",
        action: Action | str | None = None,
        provider: str = "",
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Episode]:
        """Return the matching attempts, newest first; `after` continues behind a place in that order."""
        asked = {"task": task, "agent": agent, "provider": provider}
        conditions: list[Condition] = [equals(name, value) for name, value in asked.items() if value]
        conditions.append(one_of("action", (decoder(Action)(str(action)),) if action else tuple(Action)))
        with self._bank.reading() as reader:
            return reader.select(Episode, *conditions, order=NEWEST, after=after, limit=limit)

    @reads(Layer.EPISODES)
    def list_approaches(self, task: str) -> list[ApproachResult]:
        """Return each approach to a task and its result, own ones first, then successful ones."""
        attempts = self.query(task=task) if task else []
        with self._bank.reading() as reader:
            return approach_results(attempts, reader.run_provenances(each.id for each in attempts))

    @reads(Layer.EPISODES)
    def similar(self, text: str, *, limit: int = 5, other_than: str = "") -> list[SimilarApproach]:
        """Return the approaches tried for similar tasks: own ones, successful ones, then by similarity.

        The score is that of the attempt, or of the task's title, by which the task was found. `other_than` is
        a task whose own attempts are left out.
        """
        scores: dict[str, float] = {}
        asked = Query(text=text, kinds=("episode",), limit=_HITS, preset=Preset.RELEVANCE)
        # One query for each action: else captured runs would crowd out attempts, and failures successes.
        queries = [asked._replace(kinds=("task",)), *(asked._replace(action=each.value) for each in Action)]
        for query in queries if text.strip() else ():
            hits = filter_answers(text, self._bank.recall(query))
            scores |= {hit.id: hit.why.why.total for hit in hits}
        with self._bank.reading() as reader:
            # A task that nobody has begun has no approach to tell of.
            planned = [task for task in reader.records("task", list(scores)).values() if task.attempts]
            similarity: dict[str, float] = {task.id: scores[task.id] for task in planned}
            for episode in reader.records("episode", list(scores)).values():
                similarity[episode.task] = max(similarity.get(episode.task, 0.0), scores[episode.id])
            similarity.pop(other_than, None)
            titles = {name: task.title for name, task in reader.records("task", list(similarity)).items()}
            named = {name: titles.get(name) or name for name in similarity}
            # A score depends on how rare a word is: one task with the rare word, the asked one itself above
            # all, would else hide all others.
            stems = content_stems(text)
            others = [score for name, score in similarity.items() if content_stems(named[name]) != stems]
            least = _LIKE_ENOUGH * max(others, default=0.0)
            tasks = [
                name for name, score in similarity.items() if score >= least or are_alike(named[name], text)
            ]
            attempts = reader.select(Episode, one_of("task", tasks), one_of("action", tuple(Action)))
            provenances = reader.run_provenances(attempt.id for attempt in attempts)
        found = [
            SimilarApproach(result, saturate(similarity[result.task]), titles.get(result.task, ""))
            for result in approach_results(attempts, provenances)
        ]

        def rank(approach: SimilarApproach) -> tuple[bool, float, float]:
            expected = expected_success(approach.tried)
            # Mostly worked, undecided, mostly failed.
            worked = 0.5 if expected == 0.5 else float(expected > 0.5)
            return not approach.tried.provenance.is_own, -worked, -approach.score

        rows: dict[tuple[str, ...], SimilarApproach] = {}
        for each in sorted(found, key=rank):
            tried = each.tried
            row = (each.title or tried.task, fold_approach(tried.approach), tried.verdict, tried.last.outcome)
            rows[row] = rows[row]._replace(tasks=rows[row].tasks + 1) if row in rows else each
        return list(rows.values())[:limit]

    @reads(Layer.EPISODES)
    def analytics(
        self,
        *,
        by: GroupBy | str = GroupBy.APPROACH,
        since: datetime | None = None,
        until: datetime | None = None,
        step: PeriodUnit | str | None = None,
    ) -> Analytics:
        """Return success rates of attempts by approach, agent, provider or task, also over time.

        What agents reported of their own tasks counts, and is also counted apart; what files or colleagues
        brought does not count.
        """
        group: GroupBy = decoder(GroupBy)(str(by))
        span: PeriodUnit | None = decoder(PeriodUnit)(str(step)) if step else None
        made_here = one_of("provenance", (Provenance.MINED, Provenance.SUGGESTED))
        conditions: list[Condition] = [one_of("action", tuple(Action)), made_here]
        conditions += [at_least("finished", to_text(_as_utc(since)))] if since else []
        conditions += [at_most("finished", to_text(_as_utc(until)))] if until else []
        with self._bank.reading() as reader:
            attempts = reader.select(Episode, *conditions)
            provenances = reader.run_provenances(attempt.id for attempt in attempts)
        return analyse_attempts(attempts, group, span, provenances)


def log_attempt(bank: Bank, task: str, **report: Unpack[AttemptReport]) -> Episode:
    """Write an attempt whose actor was checked: an orchestrator's, or one at a task of the acting agent."""
    now = bank.now()
    kind: Action = decoder(Action)(str(report["action"]))
    figures = {name: report.get(name) for name in ("duration_ms", "tokens_in", "tokens_out")}
    for name, figure in figures.items():
        if figure is not None and decoder(int)(figure) < 0:
            raise RecordError(f"{name}: {figure} is below 0")
    time, duration_ms = report.get("time"), report.get("duration_ms")
    moment = _as_utc(time) if time else now
    started = moment if _STATUS[kind] is EpisodeStatus.PARTIAL else None
    if duration_ms is not None:
        try:
            started = moment - timedelta(milliseconds=duration_ms)
        except OverflowError:
            raise RecordError(f"duration_ms: {duration_ms} is too long") from None
    said = {name: report.get(name, "") for name in ("agent", "provider", "approach", "outcome")}
    made = _build_attempt(
        {
            **said,
            "id": report.get("id", "").strip() or bank.new_id(now),
            "parent": report.get("run", ""),
            "task": task,
            "kind": EpisodeKind.SUBAGENT_RUN.value,
            "started": started,
            "finished": moment,
            "status": _STATUS[kind].value,
            "action": kind.value,
        }
    )
    tokens_in, tokens_out = report.get("tokens_in"), report.get("tokens_out")
    unsaid = [name for name, count in (("in", tokens_in), ("out", tokens_out)) if count is None]
    if len(unsaid) < 2:
        extra: dict[str, object] = {UNREPORTED: unsaid} if unsaid else {}
        usage = Usage(input_tokens=tokens_in or 0, output_tokens=tokens_out or 0, extra=extra)
        made = replace(made, usage=usage)
    with bank.transaction() as writer:
        known = writer.get(Episode, made.id)
        if known is not None:
            made = _merge_attempt(known, made, has_time=time is not None)
        writer.put(made, "log")
    return made


def _build_attempt(values: dict[str, object]) -> Episode:
    """Return an attempt of these values, validated and without secrets."""
    from archivist.capture.clean import Cleaner

    attempt = Cleaner().clean(from_plain(Episode, values))
    names = ("id", "task", "agent", "approach", "outcome", "provider", "parent")
    texts: dict[str, Any] = {name: getattr(attempt, name).strip() for name in names}
    for name, text in texts.items():
        if not text and name in ("task", "agent", "approach"):
            hint = "an attempt has a task, an agent, an approach"
            raise RecordError(f"{name}: missing or empty", hint=hint)
        most = VALUE_CHARACTERS if name in ("task", "approach", "outcome") else NAME_CHARACTERS
        if len(text) > most:
            raise RecordError(f"{name}: {len(text)} characters, at most {most}")
    return replace(attempt, **texts)


def _as_utc(moment: datetime) -> datetime:
    """Return a time in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _merge_attempt(known: Episode, made: Episode, *, has_time: bool) -> Episode:
    """Return a known attempt updated by what is logged again."""
    if known.action is None:
        hint = "give the attempt an id of its own, and the run with --run"
        raise InputError(f"{known.id!r} is a captured run, not an attempt", hint=hint)
    if (known.task, known.agent) != (made.task, made.agent):
        message = f"{known.id!r} is an attempt of {known.agent!r} at {known.task[:60]!r} already"
        raise InputError(message, hint="give this attempt another id")
    after = merge_episode(known, made)
    is_same = replace(after, started=known.started, finished=known.finished) == known
    if is_same and not has_time:
        return known
    # An attempt lasts from its first report to its last.
    begun = [each for each in (known.started, made.started) if each is not None]
    return replace(after, started=min(begun) if begun else None)
