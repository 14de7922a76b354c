"""Take what a client sends as it comes: not more than may come, not ever more slowly, not while we stop."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from archivist.edges.wire.refusals import Refusal

MEGABYTE = 1024 * 1024


class BodyReceiver:
    """The bodies that are under way. Used from the event loop alone."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._waits: set[asyncio.Timeout] = set()
        self._is_over = False

    def stop(self) -> None:
        """Turn away what has not come wholly: what is left of it would outlast the server."""
        self._is_over = True
        for wait in self._waits:
            wait.reschedule(asyncio.get_running_loop().time())

    def limit_receive(self, receive: Receive, most: int) -> Receive:
        """Return a way to receive that ends when more came than may, or nothing for too long."""
        taken, is_whole = 0, False

        async def receive_counted() -> Message:
            nonlocal taken, is_whole
            if is_whole:
                return await receive()
            message = await self._receive_next(receive)
            if message["type"] == "http.disconnect":
                raise ended_early_refusal()
            is_whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > most:
                raise too_large_refusal(most)
            return message

        return receive_counted

    async def _receive_next(self, receive: Receive) -> Message:
        if self._is_over:
            raise stopping_refusal()
        try:
            async with asyncio.timeout(self._silence_s) as wait:
                self._waits.add(wait)
                try:
                    return await receive()
                finally:
                    self._waits.discard(wait)
        except TimeoutError:
            raise (stopping_refusal() if self._is_over else _too_slow_refusal()) from None


def check_length(given: str, most: int) -> None:
    """Refuse a body that says itself, in Content-Length, that it is larger than may be."""
    if given.isdecimal() and int(given[:20]) > most:
        raise too_large_refusal(most)


def too_large_refusal(most: int) -> Refusal:
    """Return the refusal of a body that is larger than may be."""
    hint = "server.max_body_mb and server.max_upload_mb say how much"
    return Refusal(413, "too_large", f"the body is larger than {most // MEGABYTE} MB", hint=hint)


def ended_early_refusal() -> Refusal:
    """Return the refusal of a body of which the rest will never come."""
    return Refusal(400, "body_ended_early", "the body ended before its length", hint="send all of it")


def stopping_refusal() -> Refusal:
    """Return the refusal of a request that the server's end overtakes."""
    again = {"Retry-After": "5", "Connection": "close"}
    return Refusal(503, "stopping", "the server is stopping", hint="ask again in a while", headers=again)


def _too_slow_refusal() -> Refusal:
    return Refusal(408, "too_slow", "the body did not come", hint="send it whole, without long pauses")
