"""Cold memory: raw transcripts, a short summary of each, and the line of a log that shows an event."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from archivist.errors import InputError, NotFoundError
from archivist.records import Episode, Event

# The usual endings of logs; a file with another name can be a log too.
ENDINGS = (".jsonl", ".traj", ".traj.json", ".atif.json", ".trajectory.json")
_COMPRESSED = (".gz", ".zst")
_PLAIN = (".jsonl", ".json", ".traj", ".atif", ".trajectory", ".log", ".txt")
_TIME_IN_NAME = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)-?(?P<month>[01]\d)-?(?P<day>[0-3]\d)"
    r"(?:[T_ -]{1,2}(?P<hour>[012]\d)[-:.]?(?P<minute>[0-5]\d)(?:[-:.]?(?P<second>[0-5]\d))?)?"
)
_NEVER = datetime.min.replace(tzinfo=UTC)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})?)?")
_COMPARED_CHARACTERS = 60
_TASK_CHARACTERS = 200
# Some logs have times in whole seconds.
_SAME_TIME_S = 1.0


class CapturedTranscript(NamedTuple):
    """What is noted of a captured transcript: its size, its last change, its runs."""

    size_bytes: int
    mtime_ns: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One file of the transcripts folder; without runs it was not captured in its present state."""

    name: str
    size_bytes: int
    mtime_ns: int
    runs: tuple[Episode, ...] = ()

    @property
    def stem(self) -> str:
        """Return the file name without folder and endings."""
        base = _strip_compression(PurePosixPath(self.name).name)
        while ending := next((each for each in _PLAIN if base.endswith(each) and base != each), ""):
            base = base.removesuffix(ending)
        return base

    @property
    def timestamp(self) -> datetime | None:
        """Return the time of the last run, or the date in the name; before capture also the file's time.

        A captured log without times has none: the file's time may be that of a clone or a copy.
        """
        ends = [end for run in self.runs if (end := run.finished or run.started)]
        known = max(ends, default=None) or date_in(self.stem)
        return known if known or self.runs else datetime.fromtimestamp(self.mtime_ns / 1e9, UTC)

    @property
    def main_run(self) -> Episode | None:
        """Return the run of the transcript; subagents are its children."""
        own = [run for run in self.runs if not run.parent]
        return next(iter(own or self.runs), None)


class TranscriptListing(NamedTuple):
    """The transcripts of a folder, the latest first, and the other files with the reason."""

    transcripts: tuple[Transcript, ...]
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptSummary:
    """A summary of a transcript (T0): its outcome, its task, its times and its size."""

    name: str
    outcome: str
    task: str
    first: datetime | None
    last: datetime | None
    size_bytes: int
    run: str = ""
    children: int = 0
    summary: str = ""


def is_named_as_log(name: str) -> bool:
    """Say whether a file has the name of a log: if it is not one, it is broken."""
    return _strip_compression(name).endswith(ENDINGS)


def _strip_compression(name: str) -> str:
    return next((name.removesuffix(each) for each in _COMPRESSED if name.endswith(each)), name)


def date_in(name: str) -> datetime | None:
    """Return the time in a name such as `20251222__150214-…` or `2026-02-08-…`, or None."""
    for found in _TIME_IN_NAME.finditer(name):
        year, month, day, hour, minute, second = (int(part) for part in found.groups(default="0"))
        try:
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
    return None


def latest_first(transcripts: Iterable[Transcript]) -> tuple[Transcript, ...]:
    """Return transcripts with the latest first; those with the same time, or none, by name."""
    ordered = sorted(transcripts, key=lambda transcript: transcript.name)
    return tuple(sorted(ordered, key=lambda transcript: transcript.timestamp or _NEVER, reverse=True))


def summarize_transcript(transcript: Transcript) -> TranscriptSummary:
    """Summarize a transcript."""
    main = transcript.main_run
    if main is None:
        return TranscriptSummary(transcript.name, "not captured", "", None, None, transcript.size_bytes)
    return TranscriptSummary(
        name=transcript.name,
        outcome=main.status.value,
        task=" ".join(main.task.split())[:_TASK_CHARACTERS],
        first=min((run.started for run in transcript.runs if run.started), default=None),
        last=max((end for run in transcript.runs if (end := run.finished or run.started)), default=None),
        size_bytes=transcript.size_bytes,
        run=main.id,
        children=len(transcript.runs) - 1,
        summary=main.summary,
    )


def find_transcript(transcripts: Sequence[Transcript], name: str) -> Transcript:
    """Return the transcript with a path, a file name, a name without endings, or a run."""
    ways: tuple[Callable[[Transcript], bool], ...] = (
        lambda transcript: transcript.name == name,
        lambda transcript: PurePosixPath(transcript.name).name == name,
        lambda transcript: transcript.stem == name or any(run.id == name for run in transcript.runs),
    )
    for is_named in ways:
        found = [transcript for transcript in transcripts if is_named(transcript)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(transcript.name for transcript in found[:5])
            raise InputError(
                f"{len(found)} transcripts are called {name!r}: {names}",
                hint="name one by its path in the transcripts folder",
            )
    raise NotFoundError("transcript", name, hint="archivist workspace transcripts list shows what there is")


def parse_range(text: str) -> tuple[int, int]:
    """Return the first and last line of `120-140`, `120-` or `120`."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is not a range of lines", hint="--lines 120-140, or 120 for one line")
    first = int(found[1])
    last = int(found[2]) if found[2] else (1 << 60 if "-" in text else first)
    if first < 1 or last < first:
        hint = "lines count from 1, the first is before the last"
        raise InputError(f"{text!r} is not a range of lines", hint=hint)
    return first, last


def lines_between(lines: Iterable[str], first: int, last: int) -> Iterator[tuple[int, str]]:
    """Yield the lines from one number to another, with their numbers."""
    for number, line in enumerate(lines, 1):
        if number > last:
            return
        if number >= first:
            yield number, line


def lines_containing(lines: Iterable[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that contain a text in any case, plain or as JSON writes it."""
    plain, escaped = text.casefold(), json.dumps(text)[1:-1].casefold()
    for number, line in enumerate(lines, 1):
        folded = line.casefold()
        if plain in folded or escaped in folded:
            yield number, line


def find_event_line(event: Event, lines: Iterable[str]) -> int | None:
    """Return the line of a log that shows an event, or None when there is none.

    The line contains the event's words; of several lines, the one with the same time, else the first.
    """
    words = event.text or event.target or event.output
    wanted = _collapse_spaces(words)[:_COMPARED_CHARACTERS]
    if not wanted:
        return None
    escaped = json.dumps(words.strip().splitlines()[0][:_COMPARED_CHARACTERS], ensure_ascii=False)[1:-1]
    first: int | None = None
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            # A part of a document that takes several lines contains the words as JSON writes them.
            if first is None and escaped in line:
                first = number
            continue
        if not any(wanted in _collapse_spaces(text) for text in _texts(value)):
            continue
        if event.time is None or _is_same_time(value, event.time):
            return number
        first = first or number
    return first


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


def _texts(value: object) -> Iterator[str]:
    """Yield every text within a value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _is_same_time(value: object, time: datetime) -> bool:
    if not isinstance(value, dict):
        return False
    text = next((value[key] for key in ("timestamp", "time", "ts") if isinstance(value.get(key), str)), "")
    try:
        return abs((datetime.fromisoformat(text) - time).total_seconds()) <= _SAME_TIME_S
    except (ValueError, TypeError):
        return False
