"""Receive a request body within a size limit and a time limit, and stop receiving when the server stops."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from archivist.edges.wire.refusals import Refusal

MEGABYTE = 1024 * 1024


class BodyReceiver:
    """The bodies that are being received. Used only from the event loop."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._waits: set[asyncio.Timeout] = set()
        self._is_over = False

    def stop(self) -> None:
        """Refuse every body that is not complete: its rest could arrive after the server has ended."""
        self._is_over = True
        for wait in self._waits:
            wait.reschedule(asyncio.get_running_loop().time())

    def limit_receive(self, receive: Receive, max_bytes: int) -> Receive:
        """Return a `receive` that raises Refusal for too large a body or too long a pause in it."""
        received_bytes, is_complete = 0, False

        async def receive_limited() -> Message:
            nonlocal received_bytes, is_complete
            if is_complete:
                return await receive()
            message = await self._receive_next(receive)
            if message["type"] == "http.disconnect":
                raise Refusal(
                    400, "body_ended_early", "the body ended before its length", hint="send all of it"
                )
            is_complete = not message.get("more_body", False)
            received_bytes += len(message.get("body", b""))
            if received_bytes > max_bytes:
                raise _too_large_refusal(max_bytes)
            return message

        return receive_limited

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
            if self._is_over:
                raise stopping_refusal() from None
            hint = "send the whole body, without long pauses"
            raise Refusal(408, "too_slow", "the body did not arrive in time", hint=hint) from None


def check_length(content_length: str, max_bytes: int) -> None:
    """Refuse a body whose Content-Length is larger than the limit."""
    # 20 digits hold any 64-bit length, and int() refuses numbers of more than 4,300 digits.
    if content_length.isdecimal() and int(content_length[:20]) > max_bytes:
        raise _too_large_refusal(max_bytes)


def stopping_refusal() -> Refusal:
    """Return the refusal of a request that the server cannot finish because it is stopping."""
    headers = {"Retry-After": "5", "Connection": "close"}
    return Refusal(503, "stopping", "the server is stopping", hint="try again in a while", headers=headers)


def _too_large_refusal(max_bytes: int) -> Refusal:
    hint = "server.max_body_mb and server.max_upload_mb set the limits"
    return Refusal(413, "too_large", f"the body is larger than {max_bytes // MEGABYTE} MB", hint=hint)
