"""Listen at an address, and prepare the process for serving. Needs neither Starlette nor uvicorn."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from ipaddress import ip_address

from archivist.errors import InputError

# Connections that arrive before the server accepts wait in this queue instead of being refused.
_BACKLOG = 1_024


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
