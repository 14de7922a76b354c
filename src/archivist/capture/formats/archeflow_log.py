"""Capture ArcheFlow's run events as they stream, with the reading of single events that `extract` uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from archivist.capture.formats.archeflow import to_episode, to_event
from archivist.capture.json_stream import SkippedRecord, preview_log, read_lines
from archivist.capture.recorder import LogOrigin
from archivist.errors import RecordError
from archivist.records import Episode, Event, EventKind

# What the sum of a run is made from; beyond this many an episode's counts stand still.
_MAX_REMEMBERED = 10_000
_SUMMED = (EventKind.START, EventKind.FINISH, EventKind.VERDICT, EventKind.FIX)


class ArcheFlow:
    """The adapter of ArcheFlow's run events."""

    name = "archeflow"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Tell by the envelope `run_id, type, ts` and types with a dot."""
        return any(
            isinstance(value.get("type"), str)
            and "." in value["type"]
            and ("run_id" in value or ("data" in value and "phase" in value))
            for value in preview_log(head).objects[:10]
        )

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the events, then the runs, the one that began the log last."""
        runs: dict[str, _Run] = {}
        for line in read_lines(source):
            if isinstance(line, SkippedRecord):
                yield line
                continue
            try:
                event = to_event(
                    line.value, position=line.number, run=origin.run or origin.path_name.partition(".")[0]
                )
            except RecordError as error:
                yield SkippedRecord(f"line {line.number}", error.message)
                continue
            yield runs.setdefault(event.run, _Run(event.run)).take(event)
        for run in reversed(runs.values()):
            yield run.episode(origin)


class _Run:
    def __init__(self, name: str) -> None:
        self._name = name
        self._summed: list[Event] = []
        self._latest: Event | None = None
        self._numbers: set[int] = set()
        self._highest = -1

    def take(self, event: Event) -> Event:
        """Number the event when another has its number, for the number names it."""
        seq = event.seq if event.seq not in self._numbers else self._highest + 1
        if len(self._numbers) < _MAX_REMEMBERED:
            self._numbers.add(seq)
        self._highest = max(self._highest, seq)
        if (not self._summed or event.kind in _SUMMED) and len(self._summed) < _MAX_REMEMBERED:
            self._summed.append(event)
        self._latest = event
        return event if seq == event.seq else replace(event, seq=seq)

    def episode(self, origin: LogOrigin) -> Episode:
        """Sum the run up."""
        events = [
            *self._summed,
            *([self._latest] if self._latest and self._latest is not self._summed[-1] else []),
        ]
        summed = to_episode(self._name, events)
        trajectories = (origin.path_name,) if origin.path_name else ()
        return replace(summed, project=origin.project or summed.project, trajectories=trajectories)
