"""Read ArcheFlow's run events: one JSON object a line, `run_id, seq, ts, type, phase, agent, data`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from archivist.errors import RecordError
from archivist.files.jsonl import JsonLine, LineProblem
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Finding, Severity
from archivist.records.plain import decoder, from_plain

_KINDS = {
    "run.start": EventKind.START,
    "run.complete": EventKind.FINISH,
    "review.verdict": EventKind.VERDICT,
    "fix.applied": EventKind.FIX,
}
_ENVELOPE = ("run_id", "seq", "ts", "type", "phase", "agent", "data")
_SEVERITY_ALIASES = {
    "critical": "bug",
    "error": "bug",
    "major": "bug",
    "minor": "info",
    "suggestion": "recommendation",
}
_STATUSES = {
    "success": EpisodeStatus.SUCCESS,
    "completed": EpisodeStatus.SUCCESS,
    "complete": EpisodeStatus.SUCCESS,
    "partial": EpisodeStatus.PARTIAL,
    "failed": EpisodeStatus.FAILED,
    "failure": EpisodeStatus.FAILED,
    "aborted": EpisodeStatus.ABORTED,
    "cancelled": EpisodeStatus.ABORTED,
}


@dataclass(frozen=True, slots=True)
class RunLog:
    """The runs that a log held, and the lines that were no events."""

    runs: tuple[tuple[Episode, tuple[Event, ...]], ...]
    problems: tuple[LineProblem, ...]


def read_runs(lines: Iterable[JsonLine | LineProblem], *, run: str = "") -> RunLog:
    """Turn the lines of a log into its runs, in the order they appear.

    `run` names the run of events that do not say theirs; without it such an event is a problem.
    """
    found: dict[str, list[Event]] = {}
    problems: list[LineProblem] = []
    for line in lines:
        if isinstance(line, LineProblem):
            problems.append(line)
            continue
        try:
            event = to_event(line.value, position=line.number, run=run)
        except RecordError as error:
            problems.append(LineProblem(line.file, line.number, error.message))
            continue
        found.setdefault(event.run, []).append(event)
    return RunLog(
        tuple(
            (to_episode(name, events), tuple(_renumber_duplicates(events))) for name, events in found.items()
        ),
        tuple(problems),
    )


def to_event(value: Mapping[str, Any], *, position: int, run: str = "") -> Event:
    """Read one event; `position` stands in for a sequence number that it lacks."""
    if not isinstance(value.get("type"), str) or not value["type"]:
        raise RecordError("type: missing")
    name = value["type"]
    owner = value.get("run_id") or run
    if not isinstance(owner, str) or not owner:
        raise RecordError("run_id: missing, so the event belongs to no run")
    data = value.get("data") or {}
    if not isinstance(data, Mapping):
        raise RecordError("data: expected an object")
    kind = _KINDS.get(name, EventKind.OTHER)
    plain = {
        "run": owner,
        "seq": value["seq"] if value.get("seq") is not None else position,
        "kind": kind.value,
        "name": name,
        "time": value.get("ts") or None,
        "agent": value.get("agent") or "",
        "phase": value.get("phase") or "",
        "role": data.get("archetype") or "",
        "text": _text_of(kind, data),
        "extra": {
            **{key: item for key, item in value.items() if key not in _ENVELOPE},
            **({"data": dict(data)} if data else {}),
        },
    }
    return replace(from_plain(Event, plain), findings=_findings(kind, data))


def to_finding(value: object, *, found_by: str = "") -> Finding:
    """Read one finding, given as an object or as its bare description."""
    if isinstance(value, str):
        value = {"description": value}
    if not isinstance(value, Mapping):
        raise RecordError("finding: expected an object")
    fields = {key: item for key, item in value.items() if item is not None}
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        raise RecordError("finding: description: missing")
    severity = fields.get("severity", Severity.INFO.value)
    word = severity.strip().lower() if isinstance(severity, str) else severity
    fields["severity"] = _SEVERITY_ALIASES.get(word, word) if isinstance(word, str) else word
    fields.setdefault("found_by", found_by)
    try:
        return decoder(Finding)(fields)  # type: ignore[no-any-return]
    except RecordError as error:
        raise RecordError(f"finding: {error.message}") from None


def to_episode(run: str, events: list[Event]) -> Episode:
    """Sum up a run: its task from the start event, its status from the completing one."""
    times = [event.time for event in events if event.time]
    start = next((event for event in events if event.kind is EventKind.START), None)
    finish = next((event for event in reversed(events) if event.kind is EventKind.FINISH), None)
    task = start.text if start else ""
    return Episode(
        id=run,
        session=run,
        agent="archeflow",
        task=task,
        started=min(times, default=None),
        finished=max(times) if finish and times else None,
        status=_status(finish),
        domain=str(_data(start).get("domain") or ""),
        summary=_summary(task, events, finish),
    )


def _data(event: Event | None) -> Mapping[str, Any]:
    data = event.extra.get("data") if event else None
    return data if isinstance(data, Mapping) else {}


def _status(finish: Event | None) -> EpisodeStatus:
    if finish is None:
        return EpisodeStatus.RUNNING
    word = _data(finish).get("status") or _data(finish).get("outcome") or "success"
    return _STATUSES.get(str(word).lower(), EpisodeStatus.PARTIAL)


def _summary(task: str, events: list[Event], finish: Event | None) -> str:
    findings = sum(len(event.findings) for event in events if event.kind is EventKind.VERDICT)
    fixes = sum(1 for event in events if event.kind is EventKind.FIX)
    outcome = f"{'Finished' if finish else 'Not finished'}: {findings} findings, {fixes} fixes."
    return f"{task.rstrip('.')}. {outcome}" if task else outcome


def _text_of(kind: EventKind, data: Mapping[str, Any]) -> str:
    key = {EventKind.START: "task", EventKind.VERDICT: "verdict"}.get(kind, "message")
    text = data.get(key) or ""
    return text if isinstance(text, str) else ""


def _findings(kind: EventKind, data: Mapping[str, Any]) -> tuple[Finding, ...]:
    if kind is EventKind.FIX:
        fixed = data.get("finding") or data.get("description")
        return (to_finding(fixed),) if fixed else ()
    if kind is not EventKind.VERDICT:
        return ()
    listed = data.get("findings") or ()
    if not isinstance(listed, list | tuple):
        raise RecordError("findings: expected a list")
    found_by = data.get("archetype") or ""
    return tuple(to_finding(each, found_by=found_by if isinstance(found_by, str) else "") for each in listed)


def _renumber_duplicates(events: list[Event]) -> list[Event]:
    """Give events that share a sequence number one of their own: the number names the event."""
    taken: set[int] = set()
    free = max(event.seq for event in events) + 1
    result = []
    for event in events:
        if event.seq in taken:
            result.append(replace(event, seq=free))
            free += 1
        else:
            taken.add(event.seq)
            result.append(event)
    return result
