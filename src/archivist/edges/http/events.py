"""Stream server-sent events: every change in the ledger, and live messages.

One poll of the bank serves all listeners. The id of a change is its number in the ledger; the id of a live
message is the last number before it, and its time. A listener that reconnects gets what it missed, nothing
twice: changes from the ledger, messages as long as this server keeps them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from archivist.access.rights import may_see
from archivist.bank import Bank
from archivist.bus import Message, StoredMessage
from archivist.clock import to_short_text
from archivist.config import ServerRules
from archivist.edges.wire.gate import Refusal
from archivist.errors import ArchivistError
from archivist.records import Actor
from archivist.records.plain import to_plain
from archivist.store.ledger import LedgerEntry

_ID = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?")
# A long backlog is sent in batches, so that it does not hold the bank or the memory for one listener.
_BATCH = 500
# How long a browser waits before it reconnects.
_RETRY_MS = 2_000
# A listener that accepts no bytes for this long is gone.
_SEND_TIMEOUT_S = 60.0
# After new vectors every connection reads its vectors again. So they are made when nothing has changed for
# a while, or after the longer time at the latest.
_QUIET_S = 2.0
_EMBED_AT_LATEST_S = 30.0
_log = logging.getLogger("archivist.http")


class EventPosition(NamedTuple):
    """The position of an event: a ledger number, and for a message after it the time in microseconds."""

    seq: int
    time: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.time}" if self.time else str(self.seq)


class LiveEvent(NamedTuple):
    """An event: its position, the kind and id of the changed record, and its text on the wire."""

    position: EventPosition
    record: tuple[str, str] | None
    text: bytes
    is_token_change: bool = False


class EventHub:
    """The recent events, and the listeners that wait for the next. Used only from the event loop."""

    def __init__(self, bank: Bank, embedding_bank: Bank, rules: ServerRules) -> None:
        self._bank = bank
        self._embedding_bank = embedding_bank
        self._rules = rules
        self._kept: list[LiveEvent] = []
        # Every event after this position is in `_kept`.
        self._since = EventPosition(0)
        self._version = -1
        self._news = asyncio.Event()
        self._nudge = asyncio.Event()
        self._limiter = CapacityLimiter(2)
        self._last_message = 0
        self._loop = asyncio.get_running_loop()
        self.listeners = 0
        self.is_over = False

    @property
    def latest_position(self) -> EventPosition:
        """Return the position of the latest event."""
        return self._kept[-1].position if self._kept else self._since

    async def start(self) -> None:
        """Begin at the bank's present end; earlier events are read when a listener asks for them."""

        def read_last() -> tuple[int, int]:
            with self._bank.reading() as reader:
                return reader.last_entry(), reader.last_message()

        seq, self._last_message = await run_sync(read_last, limiter=self._limiter)
        self._since = EventPosition(seq)

    def wake(self, _message: Message) -> None:
        """Poll at once, because a live message was stored; may be called from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._nudge.set)
        except RuntimeError:
            # The server has stopped and its loop is closed.
            return

    def finish(self) -> None:
        """End the stream of every listener."""
        self.is_over = True
        self._news.set()

    async def watch(self) -> None:
        """Poll for changes until cancelled: at once after a live message, else at the polling interval."""
        # When the first and the last change happened that has no vectors yet.
        first = last = -math.inf
        embedding: asyncio.Task[None] | None = None
        # A lasting problem is logged once, not at every poll.
        problem = ""
        while True:
            try:
                has_changed, problem = await self._poll(), ""
            except ArchivistError as error:
                if error.message != problem:
                    _log.warning("events: %s", error.message)
                has_changed, problem = False, error.message
            now = self._loop.time()
            if has_changed:
                first, last = (now if first == -math.inf else first), now
            is_due = now - last > _QUIET_S or now - first > _EMBED_AT_LATEST_S
            if first > -math.inf and is_due and (embedding is None or embedding.done()):
                first, embedding = -math.inf, asyncio.create_task(self._embed())
            try:
                async with asyncio.timeout(self._rules.poll_s):
                    await self._nudge.wait()
            except TimeoutError:
                continue
            self._nudge.clear()

    async def _poll(self) -> bool:
        """Read the new entries and messages; say whether there were new entries."""
        position = self.latest_position

        def read_news() -> tuple[int, list[LedgerEntry], list[StoredMessage]]:
            version = self._bank.version()
            if version == self._version:
                return version, [], []
            with self._bank.reading() as reader:
                entries = reader.entries(after=position.seq, limit=_BATCH)
                return version, entries, reader.messages(after=self._last_message)

        version, entries, messages = await run_sync(read_news, limiter=self._limiter)
        events = [_change_event(entry) for entry in entries]
        last_seq = entries[-1].seq if entries else position.seq
        for stored in messages:
            if stored.seq > last_seq:
                # It belongs after changes that the next poll reads.
                break
            self._last_message = stored.number
            previous_time = position.time if stored.seq <= position.seq else 0
            microseconds = int(stored.message.time.timestamp() * 1_000_000)
            # The maximum keeps positions rising when two messages have the same time.
            position = EventPosition(max(stored.seq, position.seq), max(microseconds, previous_time + 1))
            data = {
                "seq": position.seq,
                "time": to_short_text(stored.message.time),
                **to_plain(stored.message.data),
            }
            events.append(LiveEvent(position, None, _encode_event(position, stored.message.type, data)))
        if events:
            self._kept += sorted(events, key=_position_of)
            surplus = len(self._kept) - self._rules.events_kept
            if surplus > 0:
                self._since = self._kept[surplus - 1].position
                del self._kept[:surplus]
            news, self._news = self._news, asyncio.Event()
            news.set()
        # A full batch leaves a rest, which must be read though nothing changes any more.
        has_rest = len(entries) >= _BATCH
        self._version = -1 if has_rest else version
        if has_rest:
            self._nudge.set()
        return bool(entries)

    async def _embed(self) -> None:
        """Make the vectors of new records in a thread."""

        def embed_waiting() -> None:
            for _ in self._embedding_bank.vectors.embed_waiting():
                if self.is_over:
                    return

        try:
            await run_sync(embed_waiting, limiter=self._limiter)
        except ArchivistError as error:
            _log.warning("vectors: %s", error.message)

    async def events_after(
        self, position: EventPosition, wait_s: float
    ) -> tuple[list[LiveEvent], EventPosition]:
        """Return the events after a position and the position they reach; wait for one if there is none."""
        since = self._since
        if position < since:

            def read_entries() -> list[LedgerEntry]:
                with self._bank.reading() as reader:
                    entries = reader.entries(after=position.seq, limit=_BATCH)
                # Up to the kept events only: from there on messages stand between the changes.
                return [entry for entry in entries if entry.seq <= since.seq]

            entries = await run_sync(read_entries, limiter=self._limiter)
            events = [_change_event(entry) for entry in entries]
            return events, events[-1].position if len(events) == _BATCH else since
        if not (events := self._kept_after(position)) and not self.is_over:
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                return [], position
            # If more has happened than is kept, the next call reads it from the ledger.
            events = self._kept_after(position) if position >= self._since else []
        return events, events[-1].position if events else position

    def _kept_after(self, position: EventPosition) -> list[LiveEvent]:
        return self._kept[bisect_right(self._kept, position, key=_position_of) :]

    async def clamp_position(self, position: EventPosition) -> EventPosition:
        """Return the position that a listener names, or the latest one when it lies beyond that."""
        if position.seq <= self.latest_position.seq:
            return position

        def read_last() -> int:
            with self._bank.reading() as reader:
                return reader.last_entry()

        last = await run_sync(read_last, limiter=self._limiter)
        return position if position.seq <= last else EventPosition(last)

    async def ask_bank(self, question: Callable[[], bool]) -> bool:
        """Run a question to the bank in a thread."""
        return await run_sync(question, limiter=self._limiter)


class EventStream(Response):
    """A response that sends events for as long as the client listens."""

    def __init__(
        self,
        hub: EventHub,
        actor: Actor,
        last_id: str,
        rules: ServerRules,
        is_token_valid: Callable[[], bool],
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._hub = hub
        self._actor = actor
        self._is_token_valid = is_token_valid
        self._wait_s = rules.heartbeat_s
        self._position = hub.latest_position
        if last_id:
            found = _ID.fullmatch(last_id.strip())
            if not found:
                hint = "send the id of an event"
                raise Refusal(400, "bad_event_id", "the Last-Event-ID is malformed", hint=hint)
            self._position = EventPosition(int(found[1]), int(found[2] or 0))
        if hub.listeners >= rules.max_listeners:
            raise Refusal(503, "too_many_listeners", "too many listeners", hint="server.max_listeners")

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects or the server stops."""

        async def wait_for_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                continue

        self._hub.listeners += 1
        tasks = [asyncio.ensure_future(self._send_events(send)), asyncio.ensure_future(wait_for_disconnect())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.listeners -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_events(self, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"x-accel-buffering", b"no"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _send_chunk(send, f"retry: {_RETRY_MS}\n\n".encode())
        position = await self._hub.clamp_position(self._position)
        checked_at = time.monotonic()
        while not self._hub.is_over:
            events, reached = await self._hub.events_after(position, self._wait_s)
            is_due = time.monotonic() - checked_at >= self._wait_s
            if is_due or any(event.is_token_change for event in events):
                # The token may have been revoked or have expired since the stream began.
                if not await self._hub.ask_bank(self._is_token_valid):
                    break
                checked_at = time.monotonic()
            # Events about records that the actor may not know of are left out.
            text = b"".join(
                event.text for event in events if event.record is None or may_see(self._actor, *event.record)
            )
            if text or reached == position:
                await _send_chunk(send, text or b": nothing new\n\n")
            position = reached
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_chunk(send: Send, text: bytes) -> None:
    async with asyncio.timeout(_SEND_TIMEOUT_S):
        await send({"type": "http.response.body", "body": text, "more_body": True})


def _change_event(entry: LedgerEntry) -> LiveEvent:
    data = {
        "seq": entry.seq,
        "time": to_short_text(entry.time),
        "verb": entry.verb,
        "kind": entry.kind,
        "record": entry.record,
        "actor": str(entry.actor),
    }
    position = EventPosition(entry.seq)
    text = _encode_event(position, "change", data)
    return LiveEvent(position, (entry.kind, entry.record), text, is_token_change=entry.kind == "token")


def _encode_event(position: EventPosition, name: str, data: dict[str, object]) -> bytes:
    return f"id: {position}\nevent: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


def _position_of(event: LiveEvent) -> EventPosition:
    return event.position
