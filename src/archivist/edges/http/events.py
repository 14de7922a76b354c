"""Tell listeners what happens: every change that the ledger shows, whoever made it, and live messages.

One look at the bank serves all listeners. The id of a change is its place in the ledger; a live message has
the place that was the last when it came, and its time. So a listener who comes back gets what he missed,
nothing twice: changes from the ledger, messages as long as this server keeps them.
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

from archivist.bank import Bank
from archivist.bus import Message, StoredMessage
from archivist.clock import to_short_text
from archivist.config import ServerRules
from archivist.edges.wire.refusals import Refusal
from archivist.errors import ArchivistError
from archivist.ledger.lookup import is_visible_to
from archivist.records import Actor
from archivist.records.plain import to_plain
from archivist.store.ledger import LedgerEntry

_ID = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?")
_BATCH = 500
_RETRY_MS = 2_000
# Who takes nothing for so long is not there any more.
_SENDING_S = 60.0
# New vectors make every connection read its vectors anew: so they are made when it is quiet, or at last.
_QUIET_S = 2.0
_EMBED_AT_LAST_S = 30.0
_log = logging.getLogger("archivist.http")


class EventPosition(NamedTuple):
    """Where something stands in what happens: after a ledger entry, and of messages after it the time."""

    seq: int
    time: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.time}" if self.time else str(self.seq)


class LiveEvent(NamedTuple):
    """Something to tell: its place, the kind and id of what changed, the words, and whether a key did."""

    place: EventPosition
    record: tuple[str, str] | None
    text: bytes
    is_of_keys: bool = False


class EventHub:
    """What happened lately, and who waits for what comes next. Used from the event loop alone."""

    def __init__(self, bank: Bank, embedding: Bank, rules: ServerRules) -> None:
        self._bank = bank
        self._embedding = embedding
        self._rules = rules
        self._kept: list[LiveEvent] = []
        # Everything after this place is kept.
        self._since = EventPosition(0)
        self._version = -1
        self._news = asyncio.Event()
        self._nudge = asyncio.Event()
        self._limiter = CapacityLimiter(2)
        self._last_message = 0
        self._loop = asyncio.get_running_loop()
        self.listeners = 0
        self.is_over = False

    async def start(self) -> None:
        """Begin with what the bank holds now; what happened before is read when it is asked for."""
        seq, self._last_message = await run_sync(self._last_numbers, limiter=self._limiter)
        self._since = EventPosition(seq)

    def wake(self, _message: Message) -> None:
        """Look at once, because a live message came, from whatever thread; the bank keeps it."""
        try:
            self._loop.call_soon_threadsafe(self._nudge.set)
        except RuntimeError:
            # The server has stopped; nobody listens.
            return

    def finish(self) -> None:
        """Let every listener go."""
        self.is_over = True
        self._news.set()

    async def watch(self) -> None:
        """Look for changes until cancelled: at once when a message came, else ever so often."""
        # When the first and the last thing changed that has no vector yet.
        first = last = -math.inf
        embedding: asyncio.Task[None] | None = None
        # What lasts is noted once, not at each look.
        trouble = ""
        while True:
            try:
                has_changed, trouble = await self._poll(), ""
            except ArchivistError as error:
                if error.message != trouble:
                    _log.warning("events: %s", error.message)
                has_changed, trouble = False, error.message
            now = self._loop.time()
            if has_changed:
                first, last = (now if first == -math.inf else first), now
            is_due = now - last > _QUIET_S or now - first > _EMBED_AT_LAST_S
            if first > -math.inf and is_due and (embedding is None or embedding.done()):
                first, embedding = -math.inf, asyncio.create_task(self._embed())
            try:
                async with asyncio.timeout(self._rules.poll_s):
                    await self._nudge.wait()
            except TimeoutError:
                continue
            self._nudge.clear()

    async def _poll(self) -> bool:
        """Take in what is new; say whether anything was."""
        place = self._last_position()
        version, entries, told = await run_sync(self._read_news, place.seq, limiter=self._limiter)
        fresh = [_change_event(entry) for entry in entries]
        last = entries[-1].seq if entries else place.seq
        for each in told:
            if each.seq > last:
                # The changes that it is about come with the next look.
                break
            self._last_message = each.number
            seq, earlier = max(each.seq, place.seq), place.time if each.seq <= place.seq else 0
            place = EventPosition(seq, max(_microseconds(each.message), earlier + 1))
            fresh.append(_message_event(each.message, place))
        self._buffer_events(sorted(fresh, key=_place_of))
        # More than a batch is left for the next look, which must come though nothing changes any more.
        self._version = -1 if len(entries) >= _BATCH else version
        if len(entries) >= _BATCH:
            self._nudge.set()
        return bool(entries)

    def _buffer_events(self, fresh: list[LiveEvent]) -> None:
        if not fresh:
            return
        self._kept += fresh
        surplus = len(self._kept) - self._rules.events_kept
        if surplus > 0:
            self._since = self._kept[surplus - 1].place
            del self._kept[:surplus]
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _last_position(self) -> EventPosition:
        return self._kept[-1].place if self._kept else self._since

    def _read_news(self, seq: int) -> tuple[int, list[LedgerEntry], list[StoredMessage]]:
        version = self._bank.version()
        if version == self._version:
            return version, [], []
        with self._bank.reading() as reader:
            entries = reader.entries(after=seq, limit=_BATCH)
            return version, entries, reader.messages(after=self._last_message)

    def _last_numbers(self) -> tuple[int, int]:
        with self._bank.reading() as reader:
            return reader.last_entry(), reader.last_message()

    def _last_entry(self) -> int:
        with self._bank.reading() as reader:
            return reader.last_entry()

    async def _embed(self) -> None:
        """Make the vectors of what is new, beside everything else."""
        try:
            await run_sync(self._embed_all, limiter=self._limiter)
        except ArchivistError as error:
            _log.warning("vectors: %s", error.message)

    def _embed_all(self) -> None:
        for _ in self._embedding.vectors.embed_waiting():
            if self.is_over:
                return

    async def events_after(
        self, place: EventPosition, wait_s: float
    ) -> tuple[list[LiveEvent], EventPosition]:
        """Return what happened after a place and where that ends, waiting so long for something."""
        since = self._since
        if place < since:
            # Not past where what is kept begins: from there on messages stand between the changes.
            entries = await run_sync(self._entries_between, place.seq, since.seq, limiter=self._limiter)
            found = [_change_event(entry) for entry in entries]
            return found, found[-1].place if len(found) == _BATCH else since
        if not (found := self._buffered_after(place)) and not self.is_over:
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                return [], place
            # Whoever was asleep while much happened finds it in the ledger the next time.
            found = self._buffered_after(place) if place >= self._since else []
        return found, found[-1].place if found else place

    def _buffered_after(self, place: EventPosition) -> list[LiveEvent]:
        return self._kept[bisect_right(self._kept, place, key=_place_of) :]

    def _entries_between(self, after: int, last: int) -> list[LedgerEntry]:
        with self._bank.reading() as reader:
            found = reader.entries(after=after, limit=_BATCH)
        return [entry for entry in found if entry.seq <= last]

    async def clamp_position(self, place: EventPosition) -> EventPosition:
        """Return a place that a listener names, or the last one when it lies beyond everything."""
        if place.seq <= self.latest_position.seq:
            return place
        last = await run_sync(self._last_entry, limiter=self._limiter)
        return place if place.seq <= last else EventPosition(last)

    async def ask_bank(self, question: Callable[[], bool]) -> bool:
        """Ask the bank something beside the loop."""
        return await run_sync(question, limiter=self._limiter)

    @property
    def latest_position(self) -> EventPosition:
        """Return the place of what happened last."""
        return self._last_position()


class EventStream(Response):
    """An answer that goes on for as long as somebody listens."""

    def __init__(
        self,
        hub: EventHub,
        actor: Actor,
        last_id: str,
        rules: ServerRules,
        is_token_valid: Callable[[], bool],
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._happenings = hub
        self._actor = actor
        self._is_welcome = is_token_valid
        self._place = _parse_position(last_id) if last_id else hub.latest_position
        self._wait_s = rules.heartbeat_s
        if hub.listeners >= rules.max_listeners:
            raise Refusal(503, "too_many_listeners", "too many listen already", hint="server.max_listeners")

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Tell until the listener leaves or the server stops."""
        self._happenings.listeners += 1
        telling = asyncio.ensure_future(self._stream_events(send))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._happenings.listeners -= 1
            for task in (telling, leaving):
                task.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _stream_events(self, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"x-accel-buffering", b"no"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _send_chunk(send, f"retry: {_RETRY_MS}\n\n".encode())
        place = await self._happenings.clamp_position(self._place)
        asked_at = time.monotonic()
        while not self._happenings.is_over:
            found, ahead = await self._happenings.events_after(place, self._wait_s)
            is_due = time.monotonic() - asked_at >= self._wait_s
            if is_due or any(each.is_of_keys for each in found):
                # Who came in with a token that has ended since is not told on.
                if not await self._happenings.ask_bank(self._is_welcome):
                    break
                asked_at = time.monotonic()
            words = b"".join(each.text for each in found if self._may_see(each))
            if words or ahead == place:
                await _send_chunk(send, words or b": nothing new\n\n")
            place = ahead
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _may_see(self, happening: LiveEvent) -> bool:
        # What somebody may not know of is not even told of.
        return happening.record is None or is_visible_to(self._actor, *happening.record)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _send_chunk(send: Send, words: bytes) -> None:
    async with asyncio.timeout(_SENDING_S):
        await send({"type": "http.response.body", "body": words, "more_body": True})


def _parse_position(text: str) -> EventPosition:
    found = _ID.fullmatch(text.strip())
    if not found:
        raise Refusal(400, "bad_event_id", "Last-Event-ID is none of ours", hint="the id of an event")
    return EventPosition(int(found[1]), int(found[2] or 0))


def _change_event(entry: LedgerEntry) -> LiveEvent:
    data = {
        "seq": entry.seq,
        "time": to_short_text(entry.time),
        "verb": entry.verb,
        "kind": entry.kind,
        "record": entry.record,
        "actor": str(entry.actor),
    }
    place = EventPosition(entry.seq)
    record = entry.kind, entry.record
    return LiveEvent(place, record, _encode_event(place, "change", data), is_of_keys=entry.kind == "token")


def _message_event(message: Message, place: EventPosition) -> LiveEvent:
    data = {"seq": place.seq, "time": to_short_text(message.time), **to_plain(message.data)}
    return LiveEvent(place, None, _encode_event(place, message.type, data))


def _encode_event(place: EventPosition, name: str, data: dict[str, object]) -> bytes:
    return f"id: {place}\nevent: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


def _microseconds(message: Message) -> int:
    return int(message.time.timestamp() * 1_000_000)


_place_of: Callable[[LiveEvent], EventPosition] = lambda happening: happening.place  # noqa: E731
