"""Serve the app: at an address of this machine, or beyond it with TLS; with a link for a browser."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import NamedTuple

from fastapi import FastAPI

from archivist.bank import Bank
from archivist.edges.http.app import create_app
from archivist.edges.wire.listening import listen, url_of, use_one_thread_for_vectors
from archivist.edges.wire.security import is_loopback
from archivist.edges.wire.serving import Certificate, make_server
from archivist.errors import InputError

# A thread that thinks gives way sooner than by default, so that small requests do not wait behind large ones.
_TURN_S = 0.001


class ServerHandle(NamedTuple):
    """A server that listens: its address, the link for a browser, and what serves until it is stopped."""

    url: str
    link: str
    serve: Callable[[], None]


def open_server(
    open_bank: Callable[[], Bank],
    *,
    host: str,
    port: int,
    certificate: Certificate | None = None,
    is_insecure: bool = False,
    is_quiet: bool = False,
) -> ServerHandle:
    """Listen at a host and port, any free one for 0; beyond this machine with TLS, or when it is said."""
    if not is_loopback(host) and certificate is None and not is_insecure:
        raise InputError(
            f"{host!r} is reached from other machines, and tokens would travel in the clear",
            hint="--tls-cert and --tls-key, or --insecure behind a proxy with TLS; 127.0.0.1 needs neither",
        )
    listening = listen(host, port)
    use_one_thread_for_vectors()
    sys.setswitchinterval(_TURN_S)
    app = create_app(open_bank, is_beyond_loopback=not is_loopback(host))
    _log_to_stderr(is_quiet)
    server = make_server(
        app, silence_s=app.state.rules.silence_s, stop=lambda: _stop_streams(app), certificate=certificate
    )
    url = url_of(host, listening.getsockname()[1], "https" if certificate else "http")
    link = f"{url}/open?key={app.state.browsers.create_link()}"
    return ServerHandle(url, link, lambda: server.run(sockets=[listening]))


def _stop_streams(app: FastAPI) -> None:
    app.state.incoming.stop()
    if hasattr(app.state, "happenings"):
        app.state.happenings.finish()


def _log_to_stderr(is_quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    for name, level in (
        ("archivist.http", logging.WARNING if is_quiet else logging.INFO),
        ("uvicorn.error", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
