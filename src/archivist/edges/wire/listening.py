"""Listen at an address, and prepare the process for whom it will serve."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress

from archivist.errors import InputError

_WAITING = 1_024


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host and port, any free one for 0."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        # Told that it is TCP, asyncio sends at once; else each answer waits 40 ms for company.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            # Who comes before the server is ready waits instead of being turned away.
            made.listen(_WAITING)
        except OSError:
            made.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {host} port {port}: {reason}", hint="name another port; 0 is any that is free"
        ) from None
    made.set_inheritable(True)
    _raise_file_limit()
    return made


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the address by which this machine reaches a server."""
    name = host.strip("[]")
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 shown, not bound
    return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"


def use_one_thread_for_vectors() -> None:
    """Let a vector scan take one core: requests are many, and threads that wait for each other burn cores.

    It is read when numpy is loaded, at the first recall, of which it made 24 ms of processor time 9.
    """
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
