"""Speak HTTP on a connection: as uvicorn does, with an end to waiting, and answers to half-closed ones."""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from archivist.edges.wire.receiving import ended_early_refusal
from archivist.edges.wire.refusals import HEADERS, Refusal

_HINT = "HTTP/1.1 with one Host, a path in ASCII, and a body of the length that is told"


class HttpConnection(H11Protocol):
    """A connection whose requests must begin in time, and whose client may have said all that he will say."""

    head_s: ClassVar[float] = 30.0

    _head_timer: asyncio.TimerHandle | None = None
    _has_ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the head of a request must be whole in time, however its bytes trickle in."""
        super().data_received(data)
        self._watch_head()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection for the answer to a whole request; say whether it is kept.

        Who only listens on has left: to close one's end looks the same as to close both.
        """
        cycle = self.cycle
        # With TLS there is no half of a connection.
        is_owed = self.scheme == "http" and cycle is not None and not cycle.response_started
        if is_owed and cycle.more_body:
            self._refuse(ended_early_refusal())
        self._has_ended = is_owed and not cycle.more_body
        return self._has_ended

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as every door answers what it refuses, and hang up."""
        # It is called where h11's error is caught, which alone knows what kind of wrong it is.
        status = getattr(sys.exception(), "error_status_hint", 400)
        self._refuse(Refusal(status, "bad_http", msg.rstrip("."), hint=_HINT))

    def on_response_complete(self) -> None:
        """Go on with the next request, or hang up on who has no other."""
        super().on_response_complete()
        if self._has_ended and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.timeout_keep_alive_handler()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer in the app's stead, unless it has begun to; the app learns that nobody is there."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = refusal.response()
            start = h11.Response(
                status_code=refusal.status,
                headers=[*response.raw_headers, *HEADERS, (b"connection", b"close")],
                reason=HTTPStatus(refusal.status).phrase.encode(),
            )
            for event in (start, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def connection_class(silence_s: float) -> type[HttpConnection]:
    """Return the connections on which the head of a request must come within so many seconds."""
    return type("Connection", (HttpConnection,), {"head_s": silence_s})
