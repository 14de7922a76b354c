"""Work on the episodic log: what was tried for a task, what became of it, and what that teaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.audit.analytics import (
    Analytics,
    ApproachResult,
    GroupBy,
    PeriodUnit,
    analyse_attempts,
    approach_results,
    expected_success,
)
from archivist.clock import to_text
from archivist.errors import InputError, RecordError
from archivist.records.episode import Episode, Usage, merge_episode
from archivist.records.layers import NAME_CHARACTERS, VALUE_CHARACTERS
from archivist.records.plain import decoder, from_plain
from archivist.records.run_words import Action, EpisodeKind, EpisodeStatus
from archivist.service import BankService
from archivist.store.filters import Condition, at_least, at_most, equals, one_of

__all__ = [
    "Analytics",
    "ApproachResult",
    "Attempts",
    "GroupBy",
    "PeriodUnit",
    "SimilarApproach",
    "reported_tokens",
]

_STATUS = {
    Action.ATTEMPTED: EpisodeStatus.PARTIAL,
    Action.RETRIED: EpisodeStatus.PARTIAL,
    Action.COMPLETED: EpisodeStatus.SUCCESS,
    Action.FAILED: EpisodeStatus.FAILED,
}
NEWEST = ("-finished", "-id")
# Only a task that is at least half as like the question as the likest one is called similar.
_LIKE_ENOUGH = 0.5
_HITS = 40
# What of a usage nobody said, where the record has a number.
_UNSAID = "unsaid"


class SimilarApproach(NamedTuple):
    """What was tried for a task like the one that was asked about, and how like the task is."""

    tried: ApproachResult
    score: float


class Attempts(BankService):
    """Every attempt at a task that an orchestrator logged."""

    @writes(Layer.EPISODES)
    def log(
        self,
        task: str,
        *,
        agent: str,
        action: Action | str,
        approach: str,
        outcome: str = "",
        duration_ms: int | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        provider: str = "",
        run: str = "",
        time: datetime | None = None,
        id: str = "",  # noqa: A002 the field's own name
    ) -> Episode:
        """Log an attempt at a task: what was tried, and what came of it.

        With an id, logging the same again changes nothing, and logging how it ended brings the attempt
        up to date. `run` is the captured run in which it was made.
        """
        now = self._bank.now()
        kind: Action = decoder(Action)(str(action))
        spent = _token_usage(tokens_in, tokens_out)
        moment = _as_utc(time) if time else now
        made = _build_attempt(
            {
                "id": id.strip() or self._bank.new_id(now),
                "parent": run,
                "task": task,
                "agent": agent,
                "provider": provider,
                "kind": EpisodeKind.SUBAGENT_RUN.value,
                "started": _start_time(moment, duration_ms, kind),
                "finished": moment,
                "status": _STATUS[kind].value,
                "action": kind.value,
                "approach": approach,
                "outcome": outcome,
            }
        )
        made = replace(made, usage=spent)
        with self._bank.transaction() as writer:
            known = writer.get(Episode, made.id)
            if known is not None:
                made = _merge_attempt(known, made, has_time=time is not None)
            writer.put(made, "log")
        return made

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
        """Return the attempts that are asked for, the newest first; behind a place in that order."""
        asked = {"task": task, "agent": agent, "provider": provider}
        conditions: list[Condition] = [equals(name, value) for name, value in asked.items() if value]
        chosen = (decoder(Action)(str(action)),) if action else tuple(Action)
        with self._bank.reading() as reader:
            conditions.append(one_of("action", chosen))
            return reader.select(Episode, *conditions, order=NEWEST, after=after, limit=limit)

    @reads(Layer.EPISODES)
    def list_approaches(self, task: str) -> list[ApproachResult]:
        """Return each approach to a task and what became of it: what worked first, what failed last."""
        return approach_results(self.query(task=task)) if task else []

    @reads(Layer.EPISODES)
    def similar(self, text: str, *, limit: int = 5) -> list[SimilarApproach]:
        """Return what was tried for tasks like this one: what worked first, then by likeness.

        The score is that of the attempt by which its task was found.
        """
        scores = self._scores(text)
        with self._bank.reading() as reader:
            alike: dict[str, float] = {}
            for each in reader.records("episode", list(scores)).values():
                alike[each.task] = max(alike.get(each.task, 0.0), scores[each.id])
            least = _LIKE_ENOUGH * max(alike.values(), default=0.0)
            near = tuple(task for task, score in alike.items() if score >= least)
            tried = approach_results(
                reader.select(Episode, one_of("task", near), one_of("action", tuple(Action)))
            )
        found = [SimilarApproach(each, alike[each.task]) for each in tried]
        return sorted(found, key=lambda each: (-_rank(each.tried), -each.score))[:limit]

    def _scores(self, text: str) -> dict[str, float]:
        """Return how like a text the attempts are that are most like it.

        Each action is asked for by itself: captured runs would crowd attempts out, and failures successes.
        """
        from archivist.recall.query import Query
        from archivist.recall.scoring import Preset

        scores: dict[str, float] = {}
        for action in Action if text.strip() else ():
            query = Query(
                text=text, kinds=("episode",), action=action.value, limit=_HITS, preset=Preset.RELEVANCE
            )
            scores |= {hit.id: hit.score for hit in self._bank.recall(query).hits}
        return scores

    @reads(Layer.EPISODES)
    def analytics(
        self,
        *,
        by: GroupBy | str = GroupBy.APPROACH,
        since: datetime | None = None,
        until: datetime | None = None,
        step: PeriodUnit | str | None = None,
    ) -> Analytics:
        """Count how attempts went by approach, agent, provider or task; with a step also over time."""
        group: GroupBy = decoder(GroupBy)(str(by))
        span: PeriodUnit | None = decoder(PeriodUnit)(str(step)) if step else None
        conditions: list[Condition] = [one_of("action", tuple(Action))]
        conditions += [at_least("finished", to_text(_as_utc(since)))] if since else []
        conditions += [at_most("finished", to_text(_as_utc(until)))] if until else []
        with self._bank.reading() as reader:
            return analyse_attempts(reader.select(Episode, *conditions), group, span)


def _build_attempt(values: dict[str, object]) -> Episode:
    """Return an attempt of these values, checked and without secrets."""
    from archivist.capture.clean import Cleaner

    attempt = Cleaner().clean(from_plain(Episode, values))
    texts = {
        name: getattr(attempt, name).strip()
        for name in ("task", "agent", "approach", "outcome", "provider", "parent")
    }
    for name in ("task", "agent", "approach"):
        if not texts[name]:
            raise RecordError(
                f"{name}: missing or empty", hint="an attempt has a task, an agent, an approach"
            )
    for name, text in (*texts.items(), ("id", attempt.id)):
        most = VALUE_CHARACTERS if name in ("task", "approach", "outcome") else NAME_CHARACTERS
        if len(text) > most:
            raise RecordError(f"{name}: {len(text)} characters, at most {most}")
    cleaned: dict[str, Any] = texts
    return replace(attempt, **cleaned)


def _token_usage(tokens_in: int | None, tokens_out: int | None) -> Usage | None:
    if tokens_in is None and tokens_out is None:
        return None
    for name, tokens in (("tokens_in", tokens_in), ("tokens_out", tokens_out)):
        if tokens is not None and decoder(int)(tokens) < 0:
            raise RecordError(f"{name}: {tokens} is below 0")
    unsaid = [name for name, tokens in (("in", tokens_in), ("out", tokens_out)) if tokens is None]
    extra: dict[str, object] = {_UNSAID: unsaid} if unsaid else {}
    return Usage(input_tokens=tokens_in or 0, output_tokens=tokens_out or 0, extra=extra)


def reported_tokens(attempt: Episode) -> tuple[int | None, int | None]:
    """Return how many tokens went in and came out, each None when nobody said."""
    if attempt.usage is None:
        return None, None
    unsaid: Any = attempt.usage.extra.get(_UNSAID, ())
    counts = (attempt.usage.input_tokens, attempt.usage.output_tokens)
    first, second = (
        None if name in unsaid else count for name, count in zip(("in", "out"), counts, strict=True)
    )
    return first, second


def _start_time(moment: datetime, duration_ms: int | None, action: Action) -> datetime | None:
    """Return when an attempt began: as long ago as it lasted, just now, or nobody knows."""
    if duration_ms is None:
        return moment if _STATUS[action] is EpisodeStatus.PARTIAL else None
    if decoder(int)(duration_ms) < 0:
        raise RecordError(f"duration_ms: {duration_ms} is below 0")
    try:
        return moment - timedelta(milliseconds=duration_ms)
    except OverflowError:
        raise RecordError(f"duration_ms: {duration_ms} is longer than time itself") from None


def _as_utc(moment: datetime) -> datetime:
    """Return a time in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _merge_attempt(known: Episode, made: Episode, *, has_time: bool) -> Episode:
    """Return what is known of an attempt that is logged again."""
    if known.action is None:
        raise InputError(
            f"{known.id!r} is a captured run, not an attempt",
            hint="give the attempt an id of its own, and the run with --run",
        )
    if (known.task, known.agent) != (made.task, made.agent):
        raise InputError(
            f"{known.id!r} is an attempt of {known.agent!r} at {known.task[:60]!r} already",
            hint="give this attempt another id",
        )
    after = merge_episode(known, made)
    is_same = replace(after, started=known.started, finished=known.finished) == known
    if is_same and not has_time:
        return known
    # One attempt lasts from its first word to its last.
    begun = [each for each in (known.started, made.started) if each is not None]
    return replace(after, started=min(begun) if begun else None)


def _rank(tried: ApproachResult) -> float:
    """Return 1 for what mostly worked, a half for what is open, 0 for what mostly failed."""
    expected = expected_success(tried)
    return 0.5 if expected == 0.5 else float(expected > 0.5)
