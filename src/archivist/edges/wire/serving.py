"""Serve an app with uvicorn on a socket that already listens."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp

from archivist.errors import InputError

# Running requests may finish within this time; then they are cancelled and answered 503.
_GRACE_S = 5
_MAX_HEADER_BYTES = 64 * 1024
# uvicorn answers 503 above this. It bounds the memory that idle connections can take: event listeners
# (server.max_listeners, 2,000 by default) and as many ordinary connections.
_MAX_CONNECTIONS = 4_000


class Certificate(NamedTuple):
    """The files of a TLS certificate and its key."""

    cert: str
    key: str


class Server(uvicorn.Server):
    """A server that ends event streams and uploads before it waits for their connections to close."""

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
    """Return the server of an app; `stop` is called on shutdown and ends what would delay it."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        # Named, so that the limits below do not depend on which parsers happen to be installed.
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Anyone can send X-Forwarded-For, so the peer address alone counts.
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=silence_s,  # type: ignore[arg-type]  # it is passed to call_later as it is
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        ssl_certfile=certificate.cert if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    try:
        config.load()
    except OSError as error:
        files = f"{certificate.cert!r} and {certificate.key!r}" if certificate else ""
        raise InputError(
            f"no certificate in {files}: {error.strerror or error}",
            hint="PEM files, the key without a password",
        ) from None
    return Server(config, stop)
