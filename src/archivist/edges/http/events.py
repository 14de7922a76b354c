"""Stream server-sent events: every change in the ledger, and live messages.

One poll of the bank serves all listeners. The id of a change is its number in the ledger; the id of a live
message is the last number before it, and its own. A listener that reconnects gets what it missed, nothing
twice: changes from the ledger, messages as long as this server keeps them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import StreamingResponse
from starlette.types import Send

from archivist.access.rights import may_see
from archivist.bank import Bank
from archivist.bus import StoredMessage
from archivist.clock import to_short_text
from archivist.config import ServerRules
from archivist.edges.server.banks import RequestContext
from archivist.edges.server.checks import Refusal, crowded_refusal, limited_name
from archivist.errors import ArchivistError
from archivist.records.plain import to_plain
from archivist.store.ledger import LedgerEntry

T = TypeVar("T")
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
# Streams that one token of an agent may have open: each is sent every change.
_MAX_STREAMS = 8
_log = logging.getLogger("archivist.http")


class EventPosition(NamedTuple):
    """The position of an event: a ledger number, and for a message after it the message's own."""

    seq: int
    message: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.message}" if self.message else str(self.seq)


class LiveEvent(NamedTuple):
    """An event: its position, the kind and id of the changed record (empty for a message), and its text."""

    position: EventPosition
    kind: str
    record: str
    text: bytes


class EventHub:
    """The recent events, and the listeners that wait for the next. Used only from the event loop."""

    def __init__(
        self,
        bank: Bank,
        embedding_bank: Bank,
        rules: ServerRules,
        is_let_in: Callable[[str], bool] = lambda _token: False,
    ) -> None:
        self._bank = bank
        self.embedding_bank = embedding_bank
        # Says whether a token, or the session of a browser, still lets its holder in.
        self.is_let_in = is_let_in
        self.rules = rules
        self._kept: list[LiveEvent] = []
        # Every event after this position is in `_kept`.
        self._since = EventPosition(0)
        self._version = -1
        self._news = asyncio.Event()
        self._limiter = CapacityLimiter(2)
        self._last_message = 0
        # How many streams each token has; those of people are counted together.
        self.listeners: Counter[str] = Counter()
        self.is_over = False

    @property
    def latest_position(self) -> EventPosition:
        """Return the position of the latest event."""
        return self._kept[-1].position if self._kept else self._since

    async def start(self) -> None:
        """Begin at the bank's present end; earlier events are read when a listener asks for them."""
        seq, self._last_message = await self.run_in_thread(self._read_last)
        self._since = EventPosition(seq)

    def _read_last(self) -> tuple[int, int]:
        """Return the numbers of the last entry and of the last message."""
        with self._bank.reading() as reader:
            return reader.last_entry(), reader.last_message()

    def _read_entries(self, after: int) -> list[LedgerEntry]:
        with self._bank.reading() as reader:
            return reader.entries(after=after, limit=_BATCH)

    def finish(self) -> None:
        """End the stream of every listener."""
        self.is_over = True
        self._news.set()

    async def watch(self) -> None:
        """Poll for changes until cancelled."""
        # When the first and the last change happened that has no vectors yet.
        first = last = -math.inf
        embedding: asyncio.Task[None] | None = None
        # A lasting problem is logged once, not at every poll.
        problem = ""
        while True:
            try:
                count, problem = await self._poll(), ""
            except ArchivistError as error:
                if error.message != problem:
                    _log.warning("events: %s", error.message)
                count, problem = 0, error.message
            now = time.monotonic()
            if count:
                first, last = (now if first == -math.inf else first), now
            is_due = now - last > _QUIET_S or now - first > _EMBED_AT_LATEST_S
            if first > -math.inf and is_due and (embedding is None or embedding.done()):
                first, embedding = -math.inf, asyncio.create_task(self._embed())
            if count < _BATCH:
                await asyncio.sleep(self.rules.poll_s)

    async def _poll(self) -> int:
        """Read the new entries and messages, and return how many entries there were."""
        position = self.latest_position

        def read_news() -> tuple[int, list[LedgerEntry], list[StoredMessage]]:
            version = self._bank.version()
            if version == self._version:
                return version, [], []
            with self._bank.reading() as reader:
                entries = reader.entries(after=position.seq, limit=_BATCH)
                return version, entries, reader.messages(after=self._last_message)

        version, entries, messages = await self.run_in_thread(read_news)
        events = [_change_event(entry) for entry in entries]
        last_seq = entries[-1].seq if entries else position.seq
        for stored in messages:
            if stored.seq > last_seq:
                # It belongs after changes that the next poll reads.
                break
            self._last_message, told = stored.number, stored.message
            place = EventPosition(stored.seq, stored.number)
            events.append(_make_event(place, told.type, told.time, to_plain(told.data)))
        if events:
            self._kept += sorted(events)
            surplus = len(self._kept) - self.rules.events_kept
            if surplus > 0:
                self._since = self._kept[surplus - 1].position
                del self._kept[:surplus]
            news, self._news = self._news, asyncio.Event()
            news.set()
        # A full batch leaves a rest, which must be read though nothing changes any more.
        self._version = -1 if len(entries) >= _BATCH else version
        return len(entries)

    async def _embed(self) -> None:
        """Make the vectors of new records in a thread."""

        def embed_waiting() -> None:
            for _ in self.embedding_bank.vectors.embed_waiting():
                if self.is_over:
                    return

        try:
            await self.run_in_thread(embed_waiting)
        except ArchivistError as error:
            _log.warning("vectors: %s", error.message)

    async def events_after(
        self, position: EventPosition, wait_s: float
    ) -> tuple[list[LiveEvent], EventPosition]:
        """Return the events after a position and the position they reach; wait for one if there is none."""
        since = self._since
        if position < since:
            entries = await self.run_in_thread(partial(self._read_entries, position.seq))
            # Up to the kept events only: from there on messages stand between the changes.
            events = [_change_event(entry) for entry in entries if entry.seq <= since.seq]
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
        return self._kept[bisect_right(self._kept, position, key=lambda event: event.position) :]

    async def clamp_position(self, position: EventPosition) -> EventPosition:
        """Return the position that a listener names, or the latest one when it lies beyond that."""
        if position.seq <= self.latest_position.seq:
            return position
        last, _ = await self.run_in_thread(self._read_last)
        return position if position.seq <= last else EventPosition(last)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run work on the bank in a thread; few of them, so that listeners take none from requests."""
        return await run_sync(work, limiter=self._limiter)


class EventStream(StreamingResponse):
    """A response that sends events for as long as the client listens."""

    def __init__(self, hub: EventHub, context: RequestContext, last_id: str) -> None:
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        position = hub.latest_position
        if last_id:
            found = _ID.fullmatch(last_id.strip())
            if not found:
                hint = "send the id of an event"
                raise Refusal(400, "bad_event_id", "the Last-Event-ID is malformed", hint=hint)
            position = EventPosition(int(found[1]), int(found[2] or 0))
        self._listener = limited_name(context.token, context.actor)
        if self._listener and hub.listeners[self._listener] >= _MAX_STREAMS:
            raise crowded_refusal("too_many_streams", "this token has too many streams open")
        if hub.listeners.total() >= hub.rules.max_listeners:
            raise Refusal(503, "too_many_listeners", "too many listeners", hint="server.max_listeners")
        events = _event_texts(hub, context, position)
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._hub = hub

    async def stream_response(self, send: Send) -> None:
        """Send events until the client disconnects or the server stops."""

        async def send_in_time(message: MutableMapping[str, Any]) -> None:
            async with asyncio.timeout(_SEND_TIMEOUT_S):
                await send(message)

        self._hub.listeners[self._listener] += 1
        try:
            with suppress(TimeoutError):
                await super().stream_response(send_in_time)
        finally:
            self._hub.listeners[self._listener] -= 1
            self._hub.listeners += Counter()  # Forgets tokens without a stream.


async def _event_texts(
    hub: EventHub, context: RequestContext, position: EventPosition
) -> AsyncIterator[bytes]:
    """Yield the events that an actor may know of, from a position on, for as long as its token is valid."""
    wait_s = hub.rules.heartbeat_s
    yield f"retry: {_RETRY_MS}\n\n".encode()
    position = await hub.clamp_position(position)
    checked_at = time.monotonic()
    while not hub.is_over:
        events, reached = await hub.events_after(position, wait_s)
        is_due = time.monotonic() - checked_at >= wait_s
        if is_due or any(event.kind == "token" for event in events):
            # The token may have been revoked or have expired since the stream began.
            if not hub.is_let_in(context.token):
                return
            checked_at = time.monotonic()
        visible = (each for each in events if not each.kind or may_see(context.actor, each.kind, each.record))
        text = b"".join(event.text for event in visible)
        if text or reached == position:
            yield text or b": nothing new\n\n"
        position = reached


def _change_event(entry: LedgerEntry) -> LiveEvent:
    names = {"verb": entry.verb, "kind": entry.kind, "record": entry.record, "actor": str(entry.actor)}
    event = _make_event(EventPosition(entry.seq), "change", entry.time, names)
    return event._replace(kind=entry.kind, record=entry.record)


def _make_event(
    position: EventPosition, name: str, moment: datetime, data: Mapping[str, object]
) -> LiveEvent:
    shown = {"seq": position.seq, "time": to_short_text(moment), **data}
    text = f"id: {position}\nevent: {name}\ndata: ".encode() + msgspec.json.encode(shown) + b"\n\n"
    return LiveEvent(position, "", "", text)
