"""Keep the histories of sessions, and finish a session as a run.

An item is a piece of the document `session:ID` in the archive. It is stored whole and is not searched: items
are popped and cleared, which a run's events never are. A finished session is a run as any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads, writes
from archivist.capture.calls import LoggedCall, arguments_from, from_structured, read_outcome
from archivist.capture.clean import clean_name
from archivist.capture.recorder import LogItem, LogOrigin, Recorder
from archivist.capture.redaction import without_secrets
from archivist.capture.service import CaptureOverrides
from archivist.capture.values import content_text, mapping, text
from archivist.clock import from_text
from archivist.errors import InputError
from archivist.ids import derived_id
from archivist.records import Document
from archivist.service import BankService
from archivist.store.filters import Filter, equals
from archivist.text import replace_surrogates

if TYPE_CHECKING:
    from archivist.capture.results import FinishedRun
    from archivist.records import EpisodeStatus
    from archivist.store.protocol import Reader

SCHEME = "session:"
# What only the service that gave it can read. Such data looks random, so parts of it could pass for keys.
_OPAQUE = frozenset({"encrypted_content", "signature", "image_url", "file_data", "data", "result"})
# What the SDK gives to the model when a tool raised.
_FAILED_TOOL = "An error occurred while running the tool"

Turn: TypeAlias = dict[str, object]


class SessionItem(NamedTuple):
    """An item of a session and its id."""

    id: str
    turn: Turn


class Conversations(BankService):
    """The histories of sessions."""

    @reads(Layer.ARCHIVE)
    def turns(self, session: str, limit: int | None = None) -> list[Turn]:
        """Return a session's items in order; with a limit the latest ones, a limit below zero is none."""
        most = None if limit is None or limit < 0 else limit
        with self._bank.reading() as reader:
            found = _latest_turns(reader, session, most)
        return [item.turn for item in reversed(found)]

    @writes(Layer.ARCHIVE)
    def add(self, session: str, turns: Sequence[Mapping[str, object]]) -> None:
        """Add items at the end of a session, all of them or none."""
        try:
            kept = [_clean_item(json.loads(json.dumps(dict(turn)))) for turn in turns]
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"an item of the session is no JSON: {error}") from None
        now, source = self._bank.now(), _source(session)
        with self._bank.transaction() as writer:
            last = writer.select_fields(
                Document, ("position",), _by_session(session), order=("-position",), limit=1
            )
            first = last[0][0] + 1 if last else 0
            for place, turn in enumerate(kept, first):
                piece = Document(
                    id=derived_id("session item", source, str(place)),
                    source=source,
                    position=place,
                    text="",
                    created=now,
                    extra={"item": turn},
                )
                writer.put(piece, "add")

    @writes(Layer.ARCHIVE)
    def pop(self, session: str) -> SessionItem | None:
        """Remove and return the last item of a session; None when there is none."""
        with self._bank.transaction() as writer:
            found = _latest_turns(writer, session, 1)
            if not found:
                return None
            writer.remove(Document, found[0].id, "pop")
        return found[0]

    @writes(Layer.ARCHIVE)
    def clear(self, session: str) -> list[str]:
        """Remove all items of a session and return their ids."""
        with self._bank.transaction() as writer:
            found = writer.select_fields(Document, ("id",), _by_session(session))
            for (record,) in found:
                writer.remove(Document, record, "clear")
        return [str(record) for (record,) in found]

    @writes(Layer.RUNS)
    def finish(
        self, session: str, *, status: EpisodeStatus | None = None, project: str = "", agent: str = ""
    ) -> list[FinishedRun]:
        """Finish a session as a run. An empty session gives nothing."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(
                Document, ("created", "extra"), _by_session(session), order=("position",)
            )
        if not rows:
            return []
        overrides = CaptureOverrides(run=session, project=project, status=status)
        items = _session_items(rows, LogOrigin(run=session, project=project), agent)
        return list(self._bank.runs.finish(items, overrides=overrides).runs)


def _session_items(rows: Iterable[tuple[str, str]], origin: LogOrigin, agent: str) -> list[LogItem]:
    """Return what a session's items tell, messages and calls with their results, then its run."""
    recorder = Recorder(origin, run=origin.run, agent=agent)
    for created, extra in rows:
        recorder.move_to(from_text(created))
        turn = mapping(json.loads(extra).get("item"))
        kind = text(turn, "type")
        call_id = text(turn, "call_id", "id")
        if kind in ("", "message"):
            role = text(turn, "role") or "user"
            said = content_text(turn.get("content"))
            recorder.message(role if role in ("user", "assistant") else "system", said)
        elif kind.endswith("_call"):
            arguments = arguments_from(turn.get("arguments") or turn.get("action") or turn.get("input"))
            call = LoggedCall(text(turn, "name") or kind.removesuffix("_call"), arguments)
            recorder.call(call_id, call)
        elif kind.endswith("_call_output"):
            output = content_text(turn.get("output"))
            is_error = True if output.startswith(_FAILED_TOOL) else None
            outcome = from_structured(turn.get("output")) or read_outcome(output, is_error=is_error)
            recorder.result(call_id, outcome)
    recorder.finish()
    return recorder.items


def _source(session: str) -> str:
    if replace_surrogates(session) != session:
        raise InputError(f"the session {session!r} has no name that can be written")
    if not session:
        raise InputError("a session needs a name", hint="any text that tells it from the others")
    return f"{SCHEME}{clean_name(session)}"


def _by_session(session: str) -> Filter:
    return equals("source", _source(session))


def _latest_turns(reader: Reader, session: str, limit: int | None) -> list[SessionItem]:
    rows = reader.select_fields(
        Document, ("id", "extra"), _by_session(session), order=("-position",), limit=limit
    )
    found = ((name, json.loads(extra).get("item")) for name, extra in rows)
    return [SessionItem(name, turn) for name, turn in found if isinstance(turn, dict)]


def _clean_item(value: object, name: str = "") -> object:
    """Return a part of an item, without secrets where people, models and tools speak."""
    if isinstance(value, dict):
        keys = {key: replace_surrogates(key) for key in value}
        return {keys[key]: _clean_item(part, keys[key]) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean_item(part) for part in value]
    if name in _OPAQUE and isinstance(value, str):
        return replace_surrogates(value)
    if name == "arguments" and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            # Arguments are JSON: the very same text when they hold no secret, else still JSON.
            given = json.loads(value)
            cleaned = without_secrets(given, is_exact=True)
            return value if cleaned == given else json.dumps(cleaned, ensure_ascii=False)
    cleaned = without_secrets({name: value} if name else value, is_exact=True)
    return next(iter(cleaned.values())) if isinstance(cleaned, dict) else cleaned
