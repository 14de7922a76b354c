"""Write down what happened in a run: its outcome, what worked, what failed, what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.reflect.candidates import Candidate

_SHOWN = 5
_TASK_CHARS = 160
_PATH_PARTS = 3
_OUTCOMES = {
    EpisodeStatus.RUNNING: "Still running",
    EpisodeStatus.SUCCESS: "Succeeded",
    EpisodeStatus.PARTIAL: "Got part of the way",
    EpisodeStatus.FAILED: "Failed",
    EpisodeStatus.ABORTED: "Was broken off",
}


@dataclass(frozen=True, slots=True)
class Account:
    """The story of a run in a few lines."""

    outcome: str
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    decisions: tuple[str, ...]


def account(
    episode: Episode, events: Sequence[Event], digest: Mapping[str, Any], candidates: Sequence[Candidate]
) -> Account:
    """Sum a run up from its events and from what was learnt of it."""
    calls = sum(event.kind in (EventKind.TOOL_CALL, EventKind.EDIT) for event in events)
    met = digest.get("failures") or {}
    failures = sum(int(each.get("n", 1)) for each in met.values())
    asked = " ".join(episode.task.split())
    task = f": {asked[:_TASK_CHARS].rstrip()}{'…' if len(asked) > _TASK_CHARS else ''}" if asked else ""
    outcome = f"{_OUTCOMES[episode.status]}{task}"
    met_words = f"{_count(failures, 'failure')} of {_count(len(met), 'kind')}" if failures else "no failures"
    outcome = f"{outcome.rstrip('.')}. {_count(calls, 'tool call')}, {met_words}."
    worked = [each.summary for each in candidates if each.remedies]
    worked += [
        f"`{purpose}` worked {tries['ok']} times"
        for purpose, tries in _most(digest, "ok")
        if not tries.get("failed") and int(tries["ok"]) > 1
    ]
    failed = [each.summary for each in candidates if not each.remedies]
    failed += [
        f"`{purpose}` failed {tries['failed']} of {int(tries['failed']) + int(tries.get('ok', 0))} times"
        for purpose, tries in _most(digest, "failed")
    ]
    return Account(outcome, tuple(worked[:_SHOWN]), tuple(failed[:_SHOWN]), _decisions(events))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _most(digest: Mapping[str, Any], word: str) -> list[tuple[str, Mapping[str, Any]]]:
    attempts = digest.get("attempts") or {}
    counted = [(purpose, tries) for purpose, tries in attempts.items() if tries.get(word)]
    return sorted(counted, key=lambda each: (-int(each[1][word]), each[0]))


def _decisions(events: Sequence[Event]) -> tuple[str, ...]:
    edits = Counter(_short(event.target) for event in events if event.kind is EventKind.EDIT and event.target)
    changed = [f"changed `{target}`" for target, _ in edits.most_common(_SHOWN)]
    asked = [
        f"the user said: {' '.join(event.text.split())[:120]}"
        for event in events
        if event.kind is EventKind.MESSAGE and event.role == "user" and event.text
    ][1:3]
    return tuple([*changed, *asked][:_SHOWN])


def _short(path: str) -> str:
    """Return the last parts of a path: where the checkout lies says nothing to another run."""
    parts = [part for part in path.split("/") if part]
    return "/".join(parts[-_PATH_PARTS:]) if path.startswith("/") else path
