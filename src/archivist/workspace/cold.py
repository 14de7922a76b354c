"""Cold memory: raw transcripts, each with a short account, and the way back from an event to its line."""

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

# What a log's name ends with, whatever its format; a file of another name can be one too.
ENDINGS = (".jsonl", ".traj", ".traj.json", ".atif.json", ".trajectory.json")
_PACKED = (".gz", ".zst")
_PLAIN = (".jsonl", ".json", ".traj", ".atif", ".trajectory", ".log", ".txt")
_DAY = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)-?(?P<month>[01]\d)-?(?P<day>[0-3]\d)"
    r"(?:[T_ -]{1,2}(?P<hour>[012]\d)[-:.]?(?P<minute>[0-5]\d)(?:[-:.]?(?P<second>[0-5]\d))?)?"
)
_NEVER = datetime.min.replace(tzinfo=UTC)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})?)?")
_COMPARED = 60
_TASK_CHARACTERS = 200
# A log whose clock is coarser than an event's is still the same moment.
_SAME_MOMENT_S = 1.0


class CapturedTranscript(NamedTuple):
    """What is remembered of a transcript that was captured: its size, its last change, its runs."""

    size_bytes: int
    mtime_ns: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One file of the transcripts folder; without runs it was not captured as it stands now."""

    name: str
    size_bytes: int
    mtime_ns: int
    runs: tuple[Episode, ...] = ()

    @property
    def stem(self) -> str:
        """Return the file's name without folder and endings."""
        base = _strip_compression(PurePosixPath(self.name).name)
        while ending := next((each for each in _PLAIN if base.endswith(each) and base != each), ""):
            base = base.removesuffix(ending)
        return base

    @property
    def timestamp(self) -> datetime | None:
        """Return when it was, by the times in it, else by the date in its name; before capture by the file's.

        A log that was read and tells no time has none: its file's may be that of a clone or a copy.
        """
        ends = [end for run in self.runs if (end := run.finished or run.started)]
        told = max(ends, default=None) or date_in(self.stem)
        return told if told or self.runs else datetime.fromtimestamp(self.mtime_ns / 1e9, UTC)

    @property
    def main_run(self) -> Episode | None:
        """Return the run that the transcript is of; subagents are its children."""
        own = [run for run in self.runs if not run.parent]
        return next(iter(own or self.runs), None)


class TranscriptListing(NamedTuple):
    """The transcripts of a folder, the latest first, and the other files in it, each with what it is."""

    transcripts: tuple[Transcript, ...]
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptSummary:
    """A transcript in a few words (T0): how it ended, what it was about, from when to when, how large."""

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
    """Say whether a file is called as logs are: one that is none then is broken, not something else."""
    return _strip_compression(name).endswith(ENDINGS)


def _strip_compression(name: str) -> str:
    return next((name.removesuffix(each) for each in _PACKED if name.endswith(each)), name)


def date_in(name: str) -> datetime | None:
    """Return the moment that a name tells, `20251222__150214-…` or `2026-02-08-…`; None without one."""
    for found in _DAY.finditer(name):
        year, month, day, hour, minute, second = (int(part) for part in found.groups(default="0"))
        try:
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
    return None


def latest_first(transcripts: Iterable[Transcript]) -> tuple[Transcript, ...]:
    """Return transcripts in order, the latest first; those of one moment, and of none, by name."""
    ordered = sorted(transcripts, key=lambda each: each.name)
    return tuple(sorted(ordered, key=lambda each: each.timestamp or _NEVER, reverse=True))


def summarize_transcript(transcript: Transcript) -> TranscriptSummary:
    """Sum a transcript up."""
    main = transcript.main_run
    if main is None:
        return TranscriptSummary(transcript.name, "not captured", "", None, None, transcript.size_bytes)
    starts = [run.started for run in transcript.runs if run.started]
    ends = [run.finished or run.started for run in transcript.runs if run.finished or run.started]
    return TranscriptSummary(
        name=transcript.name,
        outcome=main.status.value,
        task=" ".join(main.task.split())[:_TASK_CHARACTERS],
        first=min(starts, default=None),
        last=max((end for end in ends if end), default=None),
        size_bytes=transcript.size_bytes,
        run=main.id,
        children=len(transcript.runs) - 1,
        summary=main.summary,
    )


def find_transcript(transcripts: Sequence[Transcript], name: str) -> Transcript:
    """Return the transcript of a path, a file name, a name without endings, or one of its runs."""
    ways: tuple[Callable[[Transcript], bool], ...] = (
        lambda each: each.name == name,
        lambda each: PurePosixPath(each.name).name == name,
        lambda each: each.stem == name or any(run.id == name for run in each.runs),
    )
    for is_named in ways:
        found = [each for each in transcripts if is_named(each)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f"{len(found)} transcripts are called {name!r}: {', '.join(each.name for each in found[:5])}",
                hint="name one by its path in the transcripts folder",
            )
    raise NotFoundError("transcript", name, hint="archivist workspace transcripts list shows what there is")


def parse_range(text: str) -> tuple[int, int]:
    """Return the first and last line that `120-140`, `120-` or `120` asks for."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"no lines: {text!r}", hint="--lines 120-140, or 120 for one line")
    first = int(found[1])
    last = int(found[2]) if found[2] else (1 << 60 if "-" in text else first)
    if first < 1 or last < first:
        raise InputError(f"no lines: {text!r}", hint="lines count from 1, the first stands before the last")
    return first, last


def lines_between(lines: Iterable[str], first: int, last: int) -> Iterator[tuple[int, str]]:
    """Yield the lines from one number to another, with their numbers."""
    for number, line in enumerate(lines, 1):
        if number > last:
            return
        if number >= first:
            yield number, line


def lines_containing(lines: Iterable[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a text, whatever the case, also as JSON writes it."""
    plain, escaped = text.casefold(), json.dumps(text)[1:-1].casefold()
    for number, line in enumerate(lines, 1):
        folded = line.casefold()
        if plain in folded or escaped in folded:
            yield number, line


def find_event_line(event: Event, lines: Iterable[str]) -> int | None:
    """Return the line of a log that tells of an event, or None when the log does not say.

    A line tells of it when it holds its words; of several the one of the same moment, else the first.
    """
    said = event.text or event.target or event.output
    wanted = _collapse_spaces(said)[:_COMPARED]
    if not wanted:
        return None
    escaped = json.dumps(said.strip().splitlines()[0][:_COMPARED], ensure_ascii=False)[1:-1]
    first: int | None = None
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            # A line of a document that takes several: it holds the words as JSON writes them.
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
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _is_same_time(value: object, time: datetime) -> bool:
    if not isinstance(value, dict):
        return False
    said = next((value[key] for key in ("timestamp", "time", "ts") if isinstance(value.get(key), str)), "")
    try:
        seen = datetime.fromisoformat(said)
        return abs((seen - time).total_seconds()) <= _SAME_MOMENT_S
    except (ValueError, TypeError):
        return False
