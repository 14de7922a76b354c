"""Cold memory: list raw transcripts, capture them on demand, and read the lines that show an event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.errors import InputError, NotFoundError
from archivist.files.git import find_brought
from archivist.records import Episode, Event
from archivist.records.plain import canonical_json
from archivist.service import BankService
from archivist.text import ODD_NAME, escape_name, is_odd_name

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.files_service import Topology

_ENDINGS = re.compile(
    r"(?<=.)(?:\.(?:jsonl|json|traj|atif|trajectory|log|txt)){0,4}(?:\.gz|\.zst)?\Z", re.DOTALL
)
_TIME_IN_NAME = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)-?(?P<month>[01]\d)-?(?P<day>[0-3]\d)"
    r"(?:[T_ -]{1,2}(?P<hour>[012]\d)[-:.]?(?P<minute>[0-5]\d)(?:[-:.]?(?P<second>[0-5]\d))?)?"
)
_NEVER = datetime.min.replace(tzinfo=UTC)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})?)?")
_WORD = re.compile(r"\w+")
_ESCAPED_SPACE = re.compile(r"\\[nrt]")
_COMPARED_CHARACTERS = 60
_TASK_CHARACTERS = 200
# Some logs have times in whole seconds.
_SAME_TIME_S = 1.0


# What is noted of a captured transcript: its size, its last change and its runs.
_Captures = dict[str, tuple[int, int, list[str]]]


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
        return _ENDINGS.sub("", PurePosixPath(self.name).name, count=1)

    @property
    def timestamp(self) -> datetime | None:
        """Return the time of the last run, or the date in the name; before capture also the file's time.

        A captured log without times has none: the file's time may be that of a clone or a copy.
        """
        known = self.last or date_in(self.stem)
        return known if known or self.runs else datetime.fromtimestamp(self.mtime_ns / 1e9, UTC)

    @property
    def main(self) -> Episode | None:
        """Return the run that the others are subagents of; None before capture."""
        return min(self.runs, key=lambda run: bool(run.parent), default=None)

    @property
    def outcome(self) -> str:
        """Return how its main run ended."""
        return self.main.status.value if self.main else "not captured"

    @property
    def task(self) -> str:
        """Return the beginning of its main run's task, on one line."""
        return " ".join(self.main.task.split())[:_TASK_CHARACTERS] if self.main else ""

    @property
    def first(self) -> datetime | None:
        """Return when its first run started."""
        return min((run.started for run in self.runs if run.started), default=None)

    @property
    def last(self) -> datetime | None:
        """Return when its last run ended."""
        return max((end for run in self.runs if (end := run.finished or run.started)), default=None)


class TranscriptListing(NamedTuple):
    """The transcripts of a folder, the latest first, and the other files with the reason."""

    transcripts: tuple[Transcript, ...]
    others: tuple[tuple[str, str], ...] = ()


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


def find_transcript(
    transcripts: Sequence[Transcript], name: str, others: Iterable[tuple[str, str]] = ()
) -> Transcript:
    """Return the transcript with a path, a file name, a name without endings, or a run.

    For one of the other files, raise an error with the reason why it is not a transcript.
    """
    for found in (
        [each for each in transcripts if name == each.name],
        [each for each in transcripts if name == PurePosixPath(each.name).name],
        [each for each in transcripts if name in (each.stem, *(run.id for run in each.runs))],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(transcript.name for transcript in found[:5])
            hint = "name one by its path in the transcripts folder"
            raise InputError(f"{len(found)} transcripts are called {name!r}: {several}", hint=hint)
    for other, reason in others:
        if name in (other, PurePosixPath(other).name):
            raise InputError(f"{other!r} is not a transcript: {reason}", hint=_FORMATS)
    raise NotFoundError("transcript", name, hint="archivist workspace transcripts list shows what there is")


def parse_range(text: str) -> tuple[int, int]:
    """Return the first and last line of `120-140`, `120-` or `120`."""
    found = _RANGE.fullmatch(text.strip())
    first = int(found[1]) if found else 0
    last = int(found[2] or 1 << 60) if found and "-" in text else first
    if not 1 <= first <= last:
        hint = "--lines 120-140, or 120 for one line; lines count from 1"
        raise InputError(f"{text!r} is not a range of lines", hint=hint)
    return first, last


def lines_between(lines: Iterable[str], first: int, last: int) -> Iterator[tuple[int, str]]:
    """Return the lines from one number to another, with their numbers."""
    return islice(enumerate(lines, 1), first - 1, last)


def find_event_line(event: Event, lines: Iterable[str]) -> int | None:
    """Return the line of a log that shows an event, or None when there is none.

    The line contains the event's words; of several lines, the one with the same time, else the first.
    """
    wanted = _join_words(event.text or event.target or event.output)[:_COMPARED_CHARACTERS]
    if not wanted:
        return None
    first: int | None = None
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            # A part of a document that takes several lines.
            value = None
        if wanted not in _join_words(json.dumps(value, ensure_ascii=False) if value else line):
            continue
        first = first or number
        if event.time is None:
            return number
        fields = value if isinstance(value, dict) else {}
        times = (fields[key] for key in ("timestamp", "time", "ts") if isinstance(fields.get(key), str))
        # A time without a zone, or none at all, is not compared.
        with suppress(ValueError, TypeError):
            if abs((datetime.fromisoformat(next(times, "")) - event.time).total_seconds()) <= _SAME_TIME_S:
                return number
    return first


def _join_words(text: str) -> str:
    """Return the words of a text, whether or not its line ends are escaped as in JSON."""
    return " ".join(_WORD.findall(_ESCAPED_SPACE.sub(" ", text)))


# The setting with the state of each transcript when it was captured.
_NOTED = "transcripts"
_CONTEXT_LINES = 2
_BROUGHT = "archivist capture FILE takes it if it is yours"
_KEPT = "kept beside a log, such as the output of a tool"
_FORMATS = "archivist capture FILE --format NAME captures a log whose format is not recognised"


@dataclass(frozen=True, slots=True)
class TranscriptCapture:
    """The result of a capture: the transcripts that were read, and the problems of others.

    `others` are files that are neither logs nor named as logs.
    """

    captured: tuple[Transcript, ...]
    unchanged: int
    events: int
    problems: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptLines:
    """Some lines of a transcript with their numbers; `marked` is the line of the asked event."""

    transcript: Transcript
    lines: tuple[tuple[int, str], ...] = ()
    marked: int | None = None


class Transcripts(BankService):
    """The raw logs of a root, the last place to search."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self.folder = topology.path_inside(topology.rules.transcripts)

    @reads(Layer.RUNS)
    def scan_folder(self) -> TranscriptListing:
        """Return the transcripts, the latest first, and the other files with the reason.

        A file is a transcript when a capture format recognises its beginning. A transcript that changed since
        it was captured counts as not captured.
        """
        from archivist.capture.log_files import scan_log_folder, why_no_log

        paths, beside = scan_log_folder(self.folder)
        with self._bank.reading() as reader:
            noted: _Captures = reader.json_setting(_NOTED)
            found = []
            for path in paths:
                name, stat = path.relative_to(self.folder).as_posix(), path.stat()
                size, mtime_ns, ids = noted.get(name, (0, 0, []))
                is_current = (size, mtime_ns) == (stat.st_size, stat.st_mtime_ns)
                runs = [reader.get(Episode, run) for run in ids] if is_current else []
                # When a run was erased or pruned, the transcript must be captured again.
                left = tuple(run for run in runs if run is not None) if all(runs) else ()
                found.append(Transcript(name, stat.st_size, stat.st_mtime_ns, left))
        # Captured files are known to be transcripts; the others are opened, outside the transaction.
        reasons = {each.name: "" if each.runs else why_no_log(self.folder / each.name) for each in found}
        reasons |= {each.name: ODD_NAME for each in found if is_odd_name(each.name)}
        kept = (f"/{path.relative_to(self.folder).as_posix()}" for path in beside)
        reasons |= {name[1:]: _KEPT for name in kept if "/." not in name}
        return TranscriptListing(
            latest_first(each for each in found if not reasons[each.name]),
            tuple((escape_name(name), reason) for name, reason in reasons.items() if reason),
        )

    @reads(Layer.RUNS)
    def find(self, name: str) -> Transcript:
        """Return a transcript by its path, its name, or one of its runs."""
        listing = self.scan_folder()
        return find_transcript(listing.transcripts, name, listing.others)

    @writes(Layer.RUNS)
    def capture(self, names: Sequence[str] = ()) -> TranscriptCapture:
        """Capture all transcripts, or those named. An unchanged one is not opened again."""
        from archivist.capture.log_files import LOG_NAME

        listing = self.scan_folder()
        wanted: Sequence[Transcript] = listing.transcripts
        if names:
            wanted = [find_transcript(listing.transcripts, name, listing.others) for name in names]
        noted: _Captures = {}
        problems: list[str] = []
        events = 0
        brought = find_brought(self.folder / each.name for each in wanted if not each.runs)
        for transcript in wanted:
            if transcript.runs:
                continue
            if self.folder / transcript.name in brought:
                problems.append(f"{transcript.name}: it came with the repository: {_BROUGHT}")
                continue
            try:
                captured = self._bank.runs.capture_file(self.folder / transcript.name)
            except InputError as error:
                problems.append(error.message)
                continue
            events += captured.events
            problems += [f"{transcript.name}: {reason}" for reason in captured.reasons]
            runs = [episode.id for episode in captured.episodes]
            noted[transcript.name] = (transcript.size_bytes, transcript.mtime_ns, runs)
        if noted:
            with self._bank.transaction() as writer:
                before: _Captures = writer.json_setting(_NOTED)
                writer.set_setting(_NOTED, canonical_json({**before, **noted}))
        others = () if names else listing.others
        broken = {name: reason for name, reason in others if LOG_NAME.search(name) and reason != _KEPT}
        return TranscriptCapture(
            captured=tuple(each for each in self.scan_folder().transcripts if each.name in noted),
            unchanged=sum(bool(transcript.runs) for transcript in wanted),
            events=events,
            problems=(*(f"{name}: {reason}" for name, reason in broken.items()), *problems),
            others=tuple(name for name, _ in others if name not in broken),
        )

    @reads(Layer.RUNS)
    def read_range(self, name: str, asked: str) -> TranscriptLines:
        """Return the lines of a range such as `120-140` as they are in the log, without secrets."""
        transcript = self.find(name)
        lines = lines_between(self._read_lines(transcript), *parse_range(asked))
        return TranscriptLines(transcript, _redact_lines(lines))

    @reads(Layer.RUNS)
    def search_lines(self, name: str, text: str) -> TranscriptLines:
        """Return the lines that contain a text in any case, plain or as JSON writes it."""
        transcript = self.find(name)
        forms = (text.casefold(), json.dumps(text)[1:-1].casefold())
        numbered = enumerate(self._read_lines(transcript), 1)
        lines = (each for each in numbered if any(form in each[1].casefold() for form in forms))
        return TranscriptLines(transcript, _redact_lines(lines))

    @reads(Layer.RUNS)
    def lines_at_event(self, event_id: str) -> TranscriptLines:
        """Return the line that shows an event, and those around it; no line when the log has none."""
        with self._bank.reading() as reader:
            event = reader.get(Event, event_id)
        if event is None:
            raise NotFoundError("event", event_id)
        transcript = self.find(event.run)
        number = find_event_line(event, self._read_lines(transcript))
        if number is None:
            return TranscriptLines(transcript)
        first, last = max(1, number - _CONTEXT_LINES), number + _CONTEXT_LINES
        lines = lines_between(self._read_lines(transcript), first, last)
        return TranscriptLines(transcript, _redact_lines(lines), number)

    def _read_lines(self, transcript: Transcript) -> Iterator[str]:
        from archivist.files.packed import open_file

        with open_file(self.folder / transcript.name) as source:
            yield from (raw.decode("utf-8", "replace").rstrip("\r\n") for raw in source)


def _redact_lines(lines: Iterator[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return lines without secrets, because they may end up in a prompt."""
    from archivist.capture.redaction import redact

    return tuple((number, redact(line).text) for number, line in lines)
