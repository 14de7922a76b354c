"""Read ArcheFlow's review events: one JSON object a line, `run_id, seq, ts, type, phase, agent, data`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from archivist.capture.json_stream import LogLine, SkippedRecord, preview_log, read_lines
from archivist.capture.recorder import LogItem, LogOrigin, Recorder
from archivist.capture.status import status_of_word
from archivist.capture.values import object_at, text
from archivist.errors import RecordError
from archivist.records import EpisodeStatus, Event, EventKind, Finding, Severity
from archivist.records.plain import decoder, from_plain

name = "archeflow"
_KINDS = {
    "run.start": EventKind.START,
    "run.complete": EventKind.FINISH,
    "review.verdict": EventKind.VERDICT,
    "fix.applied": EventKind.FIX,
}
_ENVELOPE = ("run_id", "seq", "ts", "type", "phase", "agent", "data")
_SEVERITY_ALIASES = {
    **dict.fromkeys(("critical", "blocker", "error", "high", "major"), "bug"),
    **dict.fromkeys(("medium", "moderate"), "warning"),
    **dict.fromkeys(("low", "minor"), "info"),
    **dict.fromkeys(("nit", "suggestion"), "recommendation"),
}
# An endless log must not fill the memory.
_MAX_REMEMBERED = 10_000


def recognises(head: bytes) -> bool:
    """Recognise the log by the envelope `run_id, type, ts` and types with a dot."""
    return any(
        isinstance(value.get("type"), str)
        and "." in value["type"]
        and ("run_id" in value or ("data" in value and "phase" in value))
        for value in preview_log(head).objects[:10]
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the events, then the runs, the one that began the log last."""
    return read_events(read_lines(source), origin)


def read_events(lines: Iterable[LogLine | SkippedRecord], origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the events of lines that are decoded already, then their runs."""
    runs: dict[str, _ReviewedRun] = {}
    # A log may name its run in its first record alone.
    named = origin.run
    for line in lines:
        if isinstance(line, SkippedRecord):
            yield line
            continue
        bad: list[str] = []
        try:
            event = _read_event(line.value, position=line.number, run=named, bad=bad)
        except RecordError as error:
            yield SkippedRecord(f"line {line.number}", error.message)
            continue
        yield from (SkippedRecord(f"line {line.number}", reason) for reason in bad)
        named = event.run
        if event.run not in runs:
            runs[event.run] = _ReviewedRun(origin, event.run)
        yield runs[event.run].add(event)
    for run in reversed(runs.values()):
        run.finish()
        yield from run.items


@dataclass(eq=False)
class _ReviewedRun(Recorder):
    """What is known of a run while its events are read."""

    agent: str = name

    def __post_init__(self) -> None:
        self._numbers = self.origin.numbers.setdefault(self.run, set())
        self._highest = max(self._numbers, default=-1)

    def add(self, event: Event) -> Event:
        """Return the event, with a number of its own when another event has its number."""
        seq = event.seq if event.seq not in self._numbers else self._highest + 1
        if len(self._numbers) < _MAX_REMEMBERED:
            self._numbers.add(seq)
        self._highest = max(self._highest, seq)
        self.extend_span(event.time)
        data = object_at(event.extra, "data")
        match event.kind:
            case EventKind.START:
                self.task = self.task or event.text
                self.domain = self.domain or str(data.get("domain") or "")
            case EventKind.FINISH:
                word = str(data.get("status") or data.get("outcome") or "success")
                self.stated = status_of_word(word) or EpisodeStatus.PARTIAL
        return event if seq == event.seq else replace(event, seq=seq)

    def finish(self) -> None:
        """End the run if an event said that it is complete; what came of it is told by reflection."""
        self.finished = self.finished if self.stated else None
        super().finish()


def _read_event(value: Mapping[str, Any], *, position: int, run: str, bad: list[str]) -> Event:
    """Read one event; `position` stands in for a sequence number that it lacks.

    What is wrong with findings is added to `bad`; the rest of the event is read.
    """
    name = text(value, "type")
    if not name:
        raise RecordError("type: missing")
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
        "text": text(data, {EventKind.START: "task", EventKind.VERDICT: "verdict"}.get(kind, "message")),
        "extra": {
            **{key: item for key, item in value.items() if key not in _ENVELOPE},
            **({"data": dict(data)} if data else {}),
        },
    }
    return replace(from_plain(Event, plain), findings=tuple(_read_findings(kind, data, bad)))


def _read_findings(kind: EventKind, data: Mapping[str, Any], bad: list[str]) -> Iterator[Finding]:
    """Yield the findings that can be read."""
    found_by = text(data, "archetype") if kind is EventKind.VERDICT else ""
    listed: object = ()
    if kind is EventKind.FIX and (fixed := data.get("finding") or data.get("description")):
        listed = [fixed]
    elif kind is EventKind.VERDICT:
        listed = data.get("findings") or ()
    if not isinstance(listed, list | tuple):
        raise RecordError("findings: expected a list")
    for number, each in enumerate(listed, 1):
        try:
            yield _read_finding(each, found_by, number, bad)
        except RecordError as error:
            bad.append(f"finding {number}: {error.message.removeprefix('finding: ')}")


def _read_finding(value: object, found_by: str, number: int, bad: list[str]) -> Finding:
    """Read one finding, given as an object or as its bare description.

    One of a severity that nobody knows makes no lesson, but it is a known lesson again: it is read as info,
    and added to `bad`.
    """
    given = {"description": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise RecordError("finding: expected an object")
    fields = {key: item for key, item in given.items() if item is not None}
    if not text(fields, "description").strip():
        raise RecordError("finding: description: missing")
    word = fields.get("severity")
    said = word.strip().lower() if isinstance(word, str) else ""
    fields["severity"] = severity = _SEVERITY_ALIASES.get(said, said or Severity.INFO.value)
    if severity not in list(Severity) or (word is not None and not isinstance(word, str)):
        known = ", ".join(Severity)
        bad.append(f"finding {number}: severity: {word!r} is not one of {known}: no new lesson of it")
        fields["severity"] = Severity.INFO.value
    fields.setdefault("found_by", found_by)
    try:
        return decoder(Finding)(fields)  # type: ignore[no-any-return]
    except RecordError as error:
        raise RecordError(f"finding: {error.message}") from None
