"""What only a comparison of runs shows: providers that struggle, files edited over and over, costly runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.reading.history import AttemptCounts
from archivist.reading.outcomes import has_worked
from archivist.reading.rules import FailureKind
from archivist.reading.undone import describe_edit, find_undone_edits, thrashed_files
from archivist.reading.wording import clip_words, code, format_rule, quote_error, tags
from archivist.records import Category, LessonType, Scope, Severity
from archivist.reflect.miners.material import Material

# A difference between providers holds whatever the counts are.
_PROVIDER_IMPORTANCE = 0.75
_LEAST_TIMEOUTS = 2
_LEAST_FAILURES = 3
_LEAST_SUCCESSES = 2
_THRASHING_RUNS = 2
_THRASHING_IMPORTANCE = 0.45
_UNDONE_IMPORTANCE = 0.4
_MOST_UNDONE = 2
_LONGEST_UNDONE = 300
_SOURCE_FILE = lazy_pattern(r"\.\w{1,5}$")
# A run is an outlier when it took this many times the median of at least five runs.
_OUTLIER_RUNS = 5
_OUTLIER_TIMES = 3.0
_OUTLIER_IMPORTANCE = 0.4
# The failure that explains it must have cost this share of the calls.
_OUTLIER_SHARE = 0.2
_OUTLIER_CALLS = 4


def mine_providers(material: Material) -> Iterator[Candidate]:
    """Say which provider or model fails or times out on a purpose of this run where another one succeeds.

    Models are compared within one provider: between two, the provider may be the cause.
    """
    episode, past, project = material.reading.episode, material.past, material.project
    # The harness; an agent's name ("coder") says nothing of what it runs in.
    provider = episode.provider
    for purpose, here in material.reading.attempts.items():
        if provider:
            yield from _compare(material, purpose, provider, here, past.attempts(project, purpose))
        if provider and episode.model:
            models = past.attempts(project, purpose, provider)
            yield from _compare(material, purpose, episode.model, here, models, provider)


def _compare(
    material: Material,
    purpose: str,
    own: str,
    here: AttemptCounts,
    attempts: dict[str, AttemptCounts],
    provider: str = "",
) -> Iterator[Candidate]:
    """Yield a lesson for each name in `attempts` that struggles, once this run's own attempts are added."""
    was_shown = bool(_reliable_providers(attempts))
    attempts[own] = attempts.get(own, AttemptCounts()) + here
    reliable = _reliable_providers(attempts)
    for name, counts in attempts.items():
        # A run of another provider shows the contrast once; after that this provider must fail itself.
        if name != own and was_shown:
            continue
        others = {other: attempts[other] for other in reliable if other != name}
        is_sure = any(other.ok >= _LEAST_SUCCESSES and not other.failed for other in others.values())
        has_failed = counts.ok == 0 and counts.failed >= _LEAST_FAILURES and is_sure
        has_timed_out = counts.timeout >= _LEAST_TIMEOUTS and counts.timeout > counts.ok
        if others and (has_timed_out or has_failed):
            best = max(others, key=lambda other: others[other].ok)
            if counts.timeout >= _LEAST_TIMEOUTS:
                problem, action = f"timed out {counts.timeout} times", f"run it in parts or use {best}"
            else:
                problem, action = f"failed all {counts.failed} times", f"use {best}"
            shown = [act for act in material.reading.acts if act.purpose == purpose and act.steps]
            shown.sort(key=lambda act: not (act.failure and act.failure.kind is FailureKind.TIMEOUT))
            command = code(purpose)
            yield Candidate(
                key=f"{material.project}|provider:{name}:{purpose}",
                summary=clip_words(f"{command} {problem} with {name}, while {best} finished it: {action}"),
                rule=format_rule(f"{command} is to be run by {name}", action),
                category=Category.PROVIDER_QUIRK,
                scope=Scope.PROVIDER,
                repo=material.project,
                provider=provider or name,
                tool=purpose,
                tags=tags(name, purpose, "timeout" if counts.timeout else "failure"),
                importance=_PROVIDER_IMPORTANCE,
                events=tuple(act.event.id for act in shown[:4]),
                remedies=(action,),
            )


def _reliable_providers(attempts: Mapping[str, AttemptCounts]) -> list[str]:
    return [
        name
        for name, counts in attempts.items()
        if counts.ok and not counts.timeout and counts.failed <= counts.ok
    ]


def mine_thrashing(material: Material) -> Iterator[Candidate]:
    """Say which file more than one run edited over and over and restored. Once may have been the task."""
    past = material.past.runs_of(material.project)
    for file, acts in thrashed_files(material.reading.acts).items():
        runs = 1 + sum(file in (run.digest.get("thrashed") or ()) for run in past)
        if runs < _THRASHING_RUNS:
            continue
        action = "read it whole and plan the change before the first edit"
        yield Candidate(
            key=f"{material.project}|thrashing:{file}",
            summary=clip_words(f"{runs} runs edited {code(file)} over and over and put it back: {action}"),
            rule=format_rule(f"{code(file)} is to be changed", action),
            type=LessonType.ANTI_PATTERN,
            category=Category.ANTI_PATTERN,
            repo=material.project,
            tags=tags("thrashing", file),
            importance=_THRASHING_IMPORTANCE,
            events=tuple(dict.fromkeys(act.event.id for act in acts))[:6],
        )


def mine_undone(material: Material) -> Iterator[Candidate]:
    """Say which edits a run undid after a check had failed, and what was changed instead."""
    acts = material.reading.acts
    told = [undone for undone in find_undone_edits(acts) if undone.words and _SOURCE_FILE.search(undone.file)]
    for undone in told[:_MOST_UNDONE]:
        check, failure = undone.check, undone.check.failure
        later = (act for act in acts[undone.undo.at :] if act.purpose == check.purpose)
        passed = next(filter(has_worked, later), None)
        between = acts[undone.undo.at + 1 : passed.at] if passed else ()
        edits = [act for act in between if act.changes and not act.has_failed]
        # Of several edits any may have been what helped.
        instead = [words for act in edits if len(edits) == 1 and (words := describe_edit(act, undone.file))]
        error = f" (“{quote_error(failure.line, 70)}”)" if failure else ""
        better = f"; {instead[-1]} worked" if instead else ""
        failed = f"{undone.words} in {code(undone.file)} did not work"
        yield Candidate(
            key=f"{material.project}|undone:{undone.file}:{undone.words}",
            summary=clip_words(
                f"{failed}: {code(check.purpose)} failed{error}, and it was undone{better}",
                _LONGEST_UNDONE,
            ),
            rule=format_rule(f"{code(undone.file)} is to be changed", instead[-1]) if instead else "",
            type=LessonType.ANTI_PATTERN,
            category=Category.ANTI_PATTERN,
            repo=material.project,
            tags=tags("undone", undone.file, check.purpose),
            importance=_UNDONE_IMPORTANCE,
            severity=Severity.INFO,
            events=tuple(act.event.id for act in (undone.edit, check, undone.undo, *filter(None, (passed,)))),
        )


def mine_outliers(material: Material) -> Iterator[Candidate]:
    """Say what made a run take far more money than usual. Without a cause there is no lesson."""
    digests = [run.digest for run in material.past.runs_of(material.project) if run.digest]
    if len(digests) < _OUTLIER_RUNS or not material.cases:
        return
    worst, calls = max(material.cases, key=lambda case: case.cost), len(material.reading.acts)
    if worst.cost < max(_OUTLIER_CALLS, _OUTLIER_SHARE * calls):
        return
    # It is seldom needed, and takes 3 ms to import.
    from statistics import median

    # Not by the clock: in a session the user's own pauses pass, too.
    cost, usual = (
        material.reading.digest["cost_usd"],
        median(float(past.get("cost_usd") or 0) for past in digests),
    )
    if not usual or cost < _OUTLIER_TIMES * usual:
        return
    excess = f"{cost / usual:.1f} times the usual cost"
    error = quote_error(worst.line, 70)
    yield Candidate(
        key=f"{material.project}|outlier:{worst.key.split('|', 1)[1]}",
        summary=clip_words(f"a run took {excess}; {worst.cost} of its {calls} calls went into “{error}”"),
        repo=material.project,
        tags=tags("cost", "outlier"),
        importance=_OUTLIER_IMPORTANCE,
        severity=Severity.INFO,
        events=worst.events,
    )
