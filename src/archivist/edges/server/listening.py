"""Listen at an address, and serve an app there. uvicorn is imported only when a server is made."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import InputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

# Connections that arrive before the server accepts wait in this queue instead of being refused.
_BACKLOG = 1_024
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


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host and port; port 0 picks a free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only on sockets with this protocol; else an answer takes 40 ms more.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {host} port {port}: {reason}", hint="use another port; 0 picks a free one"
        ) from None
    listener.set_inheritable(True)
    if sys.platform != "win32":
        import resource

        # Each connection is an open file, and many systems allow only 1,024 by default.
        _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return listener


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL by which this machine reaches a server."""
    name = host.strip("[]")
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 shown, not bound
    return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"


def use_one_thread_for_vectors() -> None:
    """Let a vector scan use one core: requests run in parallel anyway, and BLAS threads only wait.

    numpy reads the variables when it is loaded, at the first recall. Measured: 9 instead of 24 ms of CPU.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def make_server(
    app: ASGIApp, *, silence_s: float, stop: Callable[[], None], certificate: Certificate | None = None
) -> uvicorn.Server:
    """Return the server of an app; `stop` is called on shutdown and ends what would delay it."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Event streams and uploads would keep their connections open.
            stop()
            await super().shutdown(sockets)

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
    return Server(config)
