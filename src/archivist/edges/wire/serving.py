"""Serve an app on a socket of our own: no foreign headers, connections that end, a quiet stop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp

from archivist.edges.wire.connections import connection_class
from archivist.errors import InputError

_GRACE_S = 5
_HEADERS_BYTES = 64 * 1024


class Certificate(NamedTuple):
    """The files of a TLS certificate and its key."""

    cert: str
    key: str


class Server(uvicorn.Server):
    """A server that lets listeners and senders go before it waits for their connections to end."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._stop()
        await super().shutdown(sockets)


def make_server(
    app: ASGIApp, *, silence_s: float, stop: Callable[[], None], certificate: Certificate | None = None
) -> Server:
    """Return the server of an app; `stop` is called when it ends, for what would outlast it."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        http=connection_class(silence_s),
        log_config=None,
        access_log=False,
        server_header=False,
        # Who connects is who asks: what a header says of it is anybody's word.
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_HEADERS_BYTES,
        ssl_certfile=certificate.cert if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    _check_certificate(config, certificate)
    return Server(config, stop)


def _check_certificate(config: uvicorn.Config, certificate: Certificate | None) -> None:
    try:
        config.load()
    except OSError as error:
        files = f"{certificate.cert!r} and {certificate.key!r}" if certificate else ""
        reason = error.strerror or str(error)
        raise InputError(
            f"no certificate in {files}: {reason}", hint="PEM files, the key without a password"
        ) from None
