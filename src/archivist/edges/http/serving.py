"""Serve the app: a socket of our own, no foreign headers, a quiet end."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from archivist.bank import Bank
from archivist.edges.http.app import create_app
from archivist.edges.http.connections import connection_of
from archivist.edges.http.security import is_loopback
from archivist.errors import InputError

_GRACE_S = 5
_HEADERS_BYTES = 64 * 1024
_WAITING = 1_024
# A thread that thinks gives way sooner than by default, so that small requests do not wait behind large ones.
_TURN_S = 0.001


class Certificate(NamedTuple):
    """The files of a TLS certificate and its key."""

    cert: str
    key: str


class Opened(NamedTuple):
    """A server that listens: its address, the link for a browser, and what serves until it is stopped."""

    url: str
    link: str
    serve: Callable[[], None]


class _Server(uvicorn.Server):
    """A server that lets listeners and senders go before it waits for their connections to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        app = self.config.app
        if isinstance(app, FastAPI):
            app.state.incoming.stop()
            if hasattr(app.state, "happenings"):
                app.state.happenings.finish()
        await super().shutdown(sockets)


def open_server(
    opened: Callable[[], Bank],
    *,
    host: str,
    port: int,
    certificate: Certificate | None = None,
    is_insecure: bool = False,
    is_quiet: bool = False,
) -> Opened:
    """Listen at a host and port, any free one for 0; beyond this machine with TLS, or when it is said."""
    if not is_loopback(host) and certificate is None and not is_insecure:
        raise InputError(
            f"{host!r} is reached from other machines, and tokens would travel in the clear",
            hint="--tls-cert and --tls-key, or --insecure behind a proxy with TLS; 127.0.0.1 needs neither",
        )
    listening = _listen(host, port)
    _raise_file_limit()
    _use_one_thread_for_vectors()
    sys.setswitchinterval(_TURN_S)
    app = create_app(opened, is_beyond_loopback=not is_loopback(host))
    _log_to_stderr(is_quiet)
    config = uvicorn.Config(
        app,
        http=connection_of(app.state.rules.silence_s),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_HEADERS_BYTES,
        ssl_certfile=certificate.cert if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    _check_certificate(config, certificate)
    url = _url(host, listening.getsockname()[1], "https" if certificate else "http")
    server = _Server(config)
    link = f"{url}/open?key={app.state.browsers.link()}"
    return Opened(url, link, lambda: server.run(sockets=[listening]))


def _listen(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        # Told that it is TCP, asyncio sends at once; else each answer waits 40 ms for company.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            made.listen(_WAITING)
        except OSError:
            made.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {host} port {port}: {reason}", hint="--port names another, 0 any that is free"
        ) from None
    made.set_inheritable(True)
    return made


def _check_certificate(config: uvicorn.Config, certificate: Certificate | None) -> None:
    try:
        config.load()
    except OSError as error:
        files = f"{certificate.cert!r} and {certificate.key!r}" if certificate else ""
        reason = error.strerror or str(error)
        raise InputError(
            f"no certificate in {files}: {reason}", hint="PEM files, the key without a password"
        ) from None


def _url(host: str, port: int, scheme: str) -> str:
    name = host.strip("[]")
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 shown, not bound
    return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _use_one_thread_for_vectors() -> None:
    """Let a vector scan take one core: requests are many, and threads that wait for each other burn cores."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _raise_file_limit() -> None:
    """Let a thousand listeners be: a connection is an open file, and many systems begin with 1,024."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
