"""Read Archivist's own event stream: JSON lines of an event's fields, with an optional `episode` line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from archivist.capture.clean import strip_briefs
from archivist.capture.json_stream import SkippedRecord, preview_log, read_lines
from archivist.capture.recorder import LogItem, LogOrigin
from archivist.capture.status import status_of_word
from archivist.capture.values import MESSAGE_SIDE_CHARS, TASK_CHARS, clip
from archivist.errors import RecordError
from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.records.episode import merge_episode
from archivist.records.plain import from_plain
from archivist.text import shorten

name = "stream"
# An endless log must not fill the memory.
_MAX_RUNS = 10_000


def recognises(head: bytes) -> bool:
    """Recognise the log by an `episode` line, or by events that name run and number."""
    return any(
        isinstance(value.get("episode"), dict)
        or ({"run", "seq"} <= value.keys() and ("kind" in value or "name" in value))
        for value in preview_log(head).objects[:10]
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the events, then the runs, the one that began the log last."""
    runs: dict[str, Episode] = {}
    # A log may name its run in its first record alone.
    named = ""
    for line in read_lines(source):
        if isinstance(line, SkippedRecord):
            yield line
            continue
        try:
            found = _read_record(line.value, origin.run, named, line.number)
        except RecordError as error:
            yield SkippedRecord(f"line {line.number}", error.message)
            continue
        named = run = found.id if isinstance(found, Episode) else found.run
        if run not in runs and len(runs) == _MAX_RUNS:
            yield SkippedRecord(f"line {line.number}", f"more than {_MAX_RUNS} runs in one log")
            continue
        known = runs.get(run) or Episode(id=run, session=run)
        if isinstance(found, Episode):
            runs[run] = merge_episode(known, found)
        else:
            runs[run] = _extend_episode(known, found)
            yield found
    for episode in reversed(runs.values()):
        trajectories = episode.trajectories or ((origin.path_name,) if origin.path_name else ())
        tags = tuple(dict.fromkeys(filter(None, (episode.provider, *episode.tags))))
        yield replace(
            episode, project=origin.project or episode.project, trajectories=trajectories, tags=tags
        )


def complete_run(episode: Episode, events: Iterable[Event]) -> Iterator[Event | Episode]:
    """Yield events in memory, clipped, then their episode completed from the events."""
    told = Episode(id=episode.id, session=episode.id)
    for event in events:
        told = _extend_episode(told, event)
        yield _clip_event(event)
    yield merge_episode(told, episode)


def _clip_event(event: Event) -> Event:
    text, output = clip(event.text, MESSAGE_SIDE_CHARS), clip(event.output)
    if text is event.text and output is event.output:
        return event
    return replace(event, text=text, output=output)


def _read_record(value: Mapping[str, Any], run: str, named: str, number: int) -> Event | Episode:
    if isinstance(value.get("episode"), dict):
        told = value["episode"]
        return from_plain(Episode, {**told, "id": run or told.get("id")})
    fields = {key: each for key, each in value.items() if each is not None}
    fields["run"] = run or fields.get("run") or named
    fields.setdefault("seq", number)
    event = from_plain(Event, fields)
    if not event.run:
        raise RecordError("run: missing")
    return _clip_event(event)


def _extend_episode(episode: Episode, event: Event) -> Episode:
    """Return the episode extended by one more event."""
    started, finished, status, task = episode.started, episode.finished, episode.status, episode.task
    if event.time is not None:
        started = event.time if started is None else min(started, event.time)
        finished = event.time if finished is None else max(finished, event.time)
    if event.kind is EventKind.FINISH and status is EpisodeStatus.RUNNING:
        status = status_of_word(str(event.extra.get("status") or event.name)) or EpisodeStatus.SUCCESS
    if not task and (
        event.kind is EventKind.START or (event.kind is EventKind.MESSAGE and event.role == "user")
    ):
        task = shorten(strip_briefs(event.text).strip(), TASK_CHARS)
    tags = (*episode.tags, event.tool.lower()) if event.tool else episode.tags
    return replace(
        episode, started=started, finished=finished, status=status, task=task, tags=tuple(dict.fromkeys(tags))
    )
