"""Work on cold memory: the transcripts folder, captured on demand, summed up, and read line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.errors import InputError, NotFoundError
from archivist.records import Episode, Event
from archivist.records.plain import canonical_json
from archivist.service import BankService
from archivist.workspace import cold
from archivist.workspace.cold import CapturedTranscript, Transcript, TranscriptListing

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader
    from archivist.workspace.files_service import Topology

# Where the bank notes which transcripts it captured, as they were then.
_NOTED = "transcripts"
_AROUND = 2
_NO_LOG = "no log of a known format"
_FORMATS = "archivist capture FILE --format NAME takes a log whose format it does not tell by itself"


@dataclass(frozen=True, slots=True)
class TranscriptCapture:
    """What capturing the folder came to: the transcripts that were read, and what is wrong with others.

    `others` are files beside them that are no logs and are not called as such.
    """

    captured: tuple[Transcript, ...]
    unchanged: int
    events: int
    problems: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptLines:
    """Some lines of a transcript, with their numbers; `marked` is the one that was asked for by its event."""

    transcript: Transcript
    lines: tuple[tuple[int, str], ...] = ()
    marked: int | None = None


class Transcripts(BankService):
    """The raw logs of a root, which are searched when nothing warmer answers."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology
        self._folder = topology.path_inside(topology.rules.transcripts)

    @reads(Layer.RUNS)
    def scan_folder(self) -> TranscriptListing:
        """Return the transcripts, the latest first, and the files that are none.

        A file is a transcript when a format of capture knows its beginning. One that changed since it was
        captured counts as not captured.
        """
        with self._bank.reading() as reader:
            noted = _load_captures(reader)
            found = [self._load_transcript(reader, path, noted) for path in self._paths()]
        # What was captured as it stands needs no second look; the others are opened outside of the bank.
        kinds = {each.name: "" if each.runs else self._problem_with(each) for each in found}
        return TranscriptListing(
            cold.latest_first(each for each in found if not kinds[each.name]),
            tuple((name, wrong) for name, wrong in kinds.items() if wrong),
        )

    @reads(Layer.RUNS)
    def list_all(self) -> list[Transcript]:
        """Return the transcripts, the latest first."""
        return list(self.scan_folder().transcripts)

    @reads(Layer.RUNS)
    def find(self, name: str) -> Transcript:
        """Return a transcript by its path, its name, or one of its runs."""
        return _find_transcript(self.scan_folder(), name)

    @writes(Layer.RUNS)
    def capture(self, names: Sequence[str] = ()) -> TranscriptCapture:
        """Take transcripts in, all or some. One that is as it was is not opened again."""
        shelf = self.scan_folder()
        wanted = [_find_transcript(shelf, name) for name in names] if names else shelf.transcripts
        noted: dict[str, CapturedTranscript] = {}
        problems: list[str] = []
        events = 0
        for each in wanted:
            if each.runs:
                continue
            try:
                captured = self._bank.runs.capture_file(self._folder / each.name)
            except InputError as error:
                problems.append(error.message)
                continue
            events += captured.events
            problems += [f"{each.name}: {reason}" for reason in captured.reasons]
            runs = tuple(episode.id for episode in captured.episodes)
            noted[each.name] = CapturedTranscript(each.size_bytes, each.mtime_ns, runs)
        self._record_captures(noted)
        taken = tuple(each for each in self.list_all() if each.name in noted)
        unchanged = sum(bool(each.runs) for each in wanted)
        others = () if names else shelf.others
        broken = [f"{name}: {wrong}" for name, wrong in others if cold.is_named_as_log(name)]
        left = tuple(name for name, _ in others if not cold.is_named_as_log(name))
        return TranscriptCapture(taken, unchanged, events, (*broken, *problems), left)

    @reads(Layer.RUNS)
    def read_range(self, name: str, asked: str) -> TranscriptLines:
        """Return the lines that `120-140` asks for, as they stand in the log, without secrets."""
        transcript = self.find(name)
        first, last = cold.parse_range(asked)
        with self._open_lines(transcript) as lines:
            return TranscriptLines(transcript, _redact_lines(cold.lines_between(lines, first, last)))

    @reads(Layer.RUNS)
    def search_lines(self, name: str, text: str) -> TranscriptLines:
        """Return the lines that hold a text."""
        transcript = self.find(name)
        with self._open_lines(transcript) as lines:
            return TranscriptLines(transcript, _redact_lines(cold.lines_containing(lines, text)))

    @reads(Layer.RUNS)
    def lines_at_event(self, event_id: str, around: int = _AROUND) -> TranscriptLines:
        """Return the line that tells of an event, and those around it; no line when the log does not say."""
        with self._bank.reading() as reader:
            event = reader.get(Event, event_id)
        if event is None:
            raise NotFoundError("event", event_id)
        transcript = self.find(event.run)
        with self._open_lines(transcript) as lines:
            number = cold.find_event_line(event, lines)
        if number is None:
            return TranscriptLines(transcript)
        with self._open_lines(transcript) as lines:
            shown = _redact_lines(cold.lines_between(lines, max(1, number - around), number + around))
        return TranscriptLines(transcript, shown, number)

    def _paths(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(
            path
            for path in self._folder.rglob("*")
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        )

    def _problem_with(self, transcript: Transcript) -> str:
        """Say what keeps a file from being a transcript, told by its beginning; empty for one that is."""
        from archivist.capture.formats.registry import ADAPTERS
        from archivist.files.open import head_of, open_file

        if not transcript.size_bytes:
            return "it is empty"
        name = PurePosixPath(transcript.name).name
        try:
            with open_file(self._folder / transcript.name) as source:
                head = head_of(source)
        except InputError as error:
            return error.message
        return "" if any(adapter.recognises(head, name) for adapter in ADAPTERS) else _NO_LOG

    def _load_transcript(
        self, reader: Reader, path: Path, noted: Mapping[str, CapturedTranscript]
    ) -> Transcript:
        name = path.relative_to(self._folder).as_posix()
        seen = path.stat()
        known = noted.get(name)
        runs: tuple[Episode, ...] = ()
        if known is not None and known[:2] == (seen.st_size, seen.st_mtime_ns):
            found = [reader.get(Episode, run) for run in known.runs]
            # A run that was erased or pruned must be captured anew before it can be told of.
            runs = tuple(run for run in found if run is not None) if all(found) else ()
        return Transcript(name, seen.st_size, seen.st_mtime_ns, runs)

    def _record_captures(self, noted: Mapping[str, CapturedTranscript]) -> None:
        if not noted:
            return
        with self._bank.transaction() as writer:
            writer.set_setting(_NOTED, canonical_json({**_load_captures(writer), **noted}))

    @contextmanager
    def _open_lines(self, transcript: Transcript) -> Iterator[Iterator[str]]:
        from archivist.files.open import open_file

        with open_file(self._folder / transcript.name) as source:
            yield (raw.decode("utf-8", "replace").rstrip("\r\n") for raw in source)


def _find_transcript(shelf: TranscriptListing, name: str) -> Transcript:
    """Return a transcript by name; say of a file that is there and is none what is wrong with it."""
    try:
        return cold.find_transcript(shelf.transcripts, name)
    except NotFoundError:
        for other, wrong in shelf.others:
            if name in (other, PurePosixPath(other).name):
                raise InputError(f"{other!r} is no transcript: {wrong}", hint=_FORMATS) from None
        raise


def _load_captures(reader: Reader) -> dict[str, CapturedTranscript]:
    held: dict[str, tuple[int, int, list[str]]] = json.loads(reader.setting(_NOTED) or "{}")
    return {name: CapturedTranscript(size, time, tuple(runs)) for name, (size, time, runs) in held.items()}


def _redact_lines(lines: Iterator[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return lines without secrets: who reads them may put them into a prompt."""
    from archivist.capture.redaction import redact

    return tuple((number, redact(line).text) for number, line in lines)
