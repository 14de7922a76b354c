"""Read ArcheFlow's review events: one JSON object a line, `run_id, seq, ts, type, phase, agent, data`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from archivist.capture.json_stream import LogLine, SkippedRecord, preview_log, read_lines
from archivist.capture.recorder import LogOrigin
from archivist.errors import RecordError
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
# An endless log must not fill the memory: beyond this many events the counts of a summary stand still.
_MAX_REMEMBERED = 10_000
_SUMMED = (EventKind.START, EventKind.FINISH, EventKind.VERDICT, EventKind.FIX)


class ArcheFlow:
    """The adapter of review events."""

    name = "archeflow"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by the envelope `run_id, type, ts` and types with a dot."""
        return any(
            isinstance(value.get("type"), str)
            and "." in value["type"]
            and ("run_id" in value or ("data" in value and "phase" in value))
            for value in preview_log(head).objects[:10]
        )

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the events, then the runs, the one that began the log last."""
        return read_events(read_lines(source), origin)


def read_events(
    lines: Iterable[LogLine | SkippedRecord], origin: LogOrigin
) -> Iterator[Event | Episode | SkippedRecord]:
    """Yield the events of lines that are decoded already, then their runs."""
    runs: dict[str, _RunSummary] = {}
    for line in lines:
        if isinstance(line, SkippedRecord):
            yield line
            continue
        try:
            event = _read_event(line.value, position=line.number, run=origin.run)
        except RecordError as error:
            yield SkippedRecord(f"line {line.number}", error.message)
            continue
        if event.run not in runs:
            runs[event.run] = _RunSummary(event.run, origin.numbers.setdefault(event.run, set()))
        yield runs[event.run].add(event)
    for run in reversed(runs.values()):
        yield run.to_episode(origin)


class _RunSummary:
    """What is known of a run while its events are read."""

    def __init__(self, run: str, numbers: set[int]) -> None:
        self._run = run
        self._summed: list[Event] = []
        self._latest: Event | None = None
        self._numbers = numbers
        self._highest = max(numbers, default=-1)

    def add(self, event: Event) -> Event:
        """Return the event, with a number of its own when another event has its number."""
        seq = event.seq if event.seq not in self._numbers else self._highest + 1
        if len(self._numbers) < _MAX_REMEMBERED:
            self._numbers.add(seq)
        self._highest = max(self._highest, seq)
        if (not self._summed or event.kind in _SUMMED) and len(self._summed) < _MAX_REMEMBERED:
            self._summed.append(event)
        self._latest = event
        return event if seq == event.seq else replace(event, seq=seq)

    def to_episode(self, origin: LogOrigin) -> Episode:
        """Sum the run up: its task from the start event, its status from the completing one."""
        events = [*self._summed, *([self._latest] if self._latest else [])]
        start = next((event for event in events if event.kind is EventKind.START), None)
        finish = next((event for event in reversed(events) if event.kind is EventKind.FINISH), None)
        times = [event.time for event in events if event.time]
        status = EpisodeStatus.RUNNING
        if finish is not None:
            word = _data(finish).get("status") or _data(finish).get("outcome") or "success"
            status = _STATUSES.get(str(word).lower(), EpisodeStatus.PARTIAL)
        findings = sum(len(event.findings) for event in self._summed if event.kind is EventKind.VERDICT)
        fixes = sum(event.kind is EventKind.FIX for event in self._summed)
        outcome = f"{'Finished' if finish else 'Not finished'}: {findings} findings, {fixes} fixes."
        task = start.text if start else ""
        return Episode(
            id=self._run,
            session=self._run,
            project=origin.project,
            agent="archeflow",
            task=task,
            started=min(times, default=None),
            finished=max(times) if finish and times else None,
            status=status,
            domain=str(_data(start).get("domain") or ""),
            summary=f"{task.rstrip('.')}. {outcome}" if task else outcome,
            trajectories=(origin.path_name,) if origin.path_name else (),
        )


def _read_event(value: Mapping[str, Any], *, position: int, run: str) -> Event:
    """Read one event; `position` stands in for a sequence number that it lacks."""
    name = value.get("type")
    if not isinstance(name, str) or not name:
        raise RecordError("type: missing")
    owner = value.get("run_id") or run
    if not isinstance(owner, str) or not owner:
        raise RecordError("run_id: missing, so the event belongs to no run")
    data = value.get("data") or {}
    if not isinstance(data, Mapping):
        raise RecordError("data: expected an object")
    kind = _KINDS.get(name, EventKind.OTHER)
    text = data.get({EventKind.START: "task", EventKind.VERDICT: "verdict"}.get(kind, "message"))
    plain = {
        "run": owner,
        "seq": value["seq"] if value.get("seq") is not None else position,
        "kind": kind.value,
        "name": name,
        "time": value.get("ts") or None,
        "agent": value.get("agent") or "",
        "phase": value.get("phase") or "",
        "role": data.get("archetype") or "",
        "text": text if isinstance(text, str) else "",
        "extra": {
            **{key: item for key, item in value.items() if key not in _ENVELOPE},
            **({"data": dict(data)} if data else {}),
        },
    }
    return replace(from_plain(Event, plain), findings=_read_findings(kind, data))


def _read_findings(kind: EventKind, data: Mapping[str, Any]) -> tuple[Finding, ...]:
    if kind is EventKind.FIX:
        fixed = data.get("finding") or data.get("description")
        return (_read_finding(fixed),) if fixed else ()
    if kind is not EventKind.VERDICT:
        return ()
    listed = data.get("findings") or ()
    if not isinstance(listed, list | tuple):
        raise RecordError("findings: expected a list")
    found_by = data.get("archetype") or ""
    return tuple(_read_finding(each, found_by if isinstance(found_by, str) else "") for each in listed)


def _read_finding(value: object, found_by: str = "") -> Finding:
    """Read one finding, given as an object or as its bare description."""
    if isinstance(value, str):
        value = {"description": value}
    if not isinstance(value, Mapping):
        raise RecordError("finding: expected an object")
    fields = {key: item for key, item in value.items() if item is not None}
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        raise RecordError("finding: description: missing")
    word = fields.get("severity", Severity.INFO.value)
    if isinstance(word, str):
        word = _SEVERITY_ALIASES.get(word.strip().lower(), word.strip().lower())
    fields["severity"] = word
    fields.setdefault("found_by", found_by)
    try:
        return decoder(Finding)(fields)  # type: ignore[no-any-return]
    except RecordError as error:
        raise RecordError(f"finding: {error.message}") from None


def _data(event: Event | None) -> Mapping[str, Any]:
    data = event.extra.get("data") if event else None
    return data if isinstance(data, Mapping) else {}
