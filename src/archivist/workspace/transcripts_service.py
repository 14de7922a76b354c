"""List the transcripts folder, capture transcripts on demand, and read single lines of them."""

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

# The setting with the state of each transcript when it was captured.
_NOTED = "transcripts"
_CONTEXT_LINES = 2
_NO_LOG = "not a log of a known format"
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
        self._folder = topology.path_inside(topology.rules.transcripts)

    @reads(Layer.RUNS)
    def scan_folder(self) -> TranscriptListing:
        """Return the transcripts, the latest first, and the other files with the reason.

        A file is a transcript when a capture format recognises its beginning. A transcript that changed since
        it was captured counts as not captured.
        """
        paths = sorted(
            path
            for path in self._folder.rglob("*")
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        )
        with self._bank.reading() as reader:
            noted = _load_captures(reader)
            found = [self._load_transcript(reader, path, noted) for path in paths]
        # Captured files are known to be transcripts; the others are opened, outside the transaction.
        reasons = {each.name: "" if each.runs else self._problem_with(each) for each in found}
        return TranscriptListing(
            cold.latest_first(each for each in found if not reasons[each.name]),
            tuple((name, reason) for name, reason in reasons.items() if reason),
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
        """Capture all transcripts, or those named. An unchanged one is not opened again."""
        listing = self.scan_folder()
        wanted = [_find_transcript(listing, name) for name in names] if names else listing.transcripts
        noted: dict[str, CapturedTranscript] = {}
        problems: list[str] = []
        events = 0
        for transcript in wanted:
            if transcript.runs:
                continue
            try:
                captured = self._bank.runs.capture_file(self._folder / transcript.name)
            except InputError as error:
                problems.append(error.message)
                continue
            events += captured.events
            problems += [f"{transcript.name}: {reason}" for reason in captured.reasons]
            runs = tuple(episode.id for episode in captured.episodes)
            noted[transcript.name] = CapturedTranscript(transcript.size_bytes, transcript.mtime_ns, runs)
        if noted:
            with self._bank.transaction() as writer:
                writer.set_setting(_NOTED, canonical_json({**_load_captures(writer), **noted}))
        others = () if names else listing.others
        broken = [f"{name}: {reason}" for name, reason in others if cold.is_named_as_log(name)]
        return TranscriptCapture(
            captured=tuple(transcript for transcript in self.list_all() if transcript.name in noted),
            unchanged=sum(bool(transcript.runs) for transcript in wanted),
            events=events,
            problems=(*broken, *problems),
            others=tuple(name for name, _ in others if not cold.is_named_as_log(name)),
        )

    @reads(Layer.RUNS)
    def read_range(self, name: str, asked: str) -> TranscriptLines:
        """Return the lines of a range such as `120-140` as they are in the log, without secrets."""
        transcript = self.find(name)
        first, last = cold.parse_range(asked)
        with self._open_lines(transcript) as lines:
            return TranscriptLines(transcript, _redact_lines(cold.lines_between(lines, first, last)))

    @reads(Layer.RUNS)
    def search_lines(self, name: str, text: str) -> TranscriptLines:
        """Return the lines that contain a text."""
        transcript = self.find(name)
        with self._open_lines(transcript) as lines:
            return TranscriptLines(transcript, _redact_lines(cold.lines_containing(lines, text)))

    @reads(Layer.RUNS)
    def lines_at_event(self, event_id: str, around: int = _CONTEXT_LINES) -> TranscriptLines:
        """Return the line that shows an event, and those around it; no line when the log has none."""
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

    def _problem_with(self, transcript: Transcript) -> str:
        """Return why a file is not a transcript, by its beginning; empty for a transcript."""
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
        stat = path.stat()
        known = noted.get(name)
        runs: tuple[Episode, ...] = ()
        if known is not None and known[:2] == (stat.st_size, stat.st_mtime_ns):
            found = [reader.get(Episode, run) for run in known.runs]
            # When a run was erased or pruned, the transcript must be captured again.
            runs = tuple(run for run in found if run is not None) if all(found) else ()
        return Transcript(name, stat.st_size, stat.st_mtime_ns, runs)

    @contextmanager
    def _open_lines(self, transcript: Transcript) -> Iterator[Iterator[str]]:
        from archivist.files.open import open_file

        with open_file(self._folder / transcript.name) as source:
            yield (raw.decode("utf-8", "replace").rstrip("\r\n") for raw in source)


def _find_transcript(listing: TranscriptListing, name: str) -> Transcript:
    """Return a transcript by name; for a file that is not a transcript, raise an error with the reason."""
    try:
        return cold.find_transcript(listing.transcripts, name)
    except NotFoundError:
        for other, reason in listing.others:
            if name in (other, PurePosixPath(other).name):
                raise InputError(f"{other!r} is not a transcript: {reason}", hint=_FORMATS) from None
        raise


def _load_captures(reader: Reader) -> dict[str, CapturedTranscript]:
    noted: dict[str, tuple[int, int, list[str]]] = json.loads(reader.setting(_NOTED) or "{}")
    return {name: CapturedTranscript(size, time, tuple(runs)) for name, (size, time, runs) in noted.items()}


def _redact_lines(lines: Iterator[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return lines without secrets, because they may end up in a prompt."""
    from archivist.capture.redaction import redact

    return tuple((number, redact(line).text) for number, line in lines)
