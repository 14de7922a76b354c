"""Run the MCP server: over stdin and stdout, or over HTTP on this machine."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import ArchivistError, InputError

if TYPE_CHECKING:
    from archivist.edges.mcp.server import MemoryServer

_GRACE_S = 3
_log = logging.getLogger(__name__)


class Listening(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def parse_place(text: str) -> Listening:
    """Read `HOST:PORT`, `:PORT` or `PORT`; only this machine's own addresses are served."""
    host, _, port = text.strip().rpartition(":")
    name = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and host[0] != "["):
        raise InputError(f"{text!r} is no place to listen", hint="HOST:PORT, such as 127.0.0.1:7778")
    if name != "localhost" and not _is_loopback(name):
        raise InputError(
            f"{name!r} is beyond this machine, where a token would travel in the clear",
            hint="listen on 127.0.0.1 and let a proxy with TLS forward to it",
        )
    return Listening(name, int(port))


def serve_stdio(memory: MemoryServer) -> None:
    """Serve the one client at stdin and stdout until it goes. Logging goes to stderr."""
    import anyio
    from mcp.server.stdio import stdio_server

    from archivist.edges.mcp.lines import AnsweredLines

    async def run() -> None:
        server = memory.offered()
        async with stdio_server() as (reading, writing):
            lines = AnsweredLines(reading, writing)
            await server.run(lines, writing, server.create_initialization_options())

    _prepare()
    # Reading blocks in a thread that no interrupt reaches. What is written is written whole or not at all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(run)
    except* (BrokenPipeError, ConnectionResetError):
        _log.warning("the client has gone")
    finally:
        memory.close()


def serve_http(memory: MemoryServer, place: Listening, *, announce: Callable[[str], None]) -> None:
    """Serve any number of clients over streamable HTTP, each with a token of the bank, until interrupted."""
    import uvicorn

    from archivist.edges.mcp.http_app import PATH, http_app

    _prepare()
    memory.reading.bank.opened()
    listening = _listen(place)
    host, port = listening.getsockname()[:2]
    config = uvicorn.Config(
        http_app(memory, host=place.host),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
    )
    announce(f"http://[{host}]:{port}{PATH}" if ":" in host else f"http://{host}:{port}{PATH}")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        # How people end it; the server has closed by now.
        return
    finally:
        listening.close()
        memory.close()


def _listen(place: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((place.host, place.port))
        # Who comes before the server is ready waits instead of being turned away.
        listening.listen()
    except OSError as error:
        listening.close()
        raise ArchivistError(
            f"cannot listen on {place.host}:{place.port}: {error.strerror}",
            hint="name another port; 0 is any",
        ) from error
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _prepare() -> None:
    """Keep stdout for the protocol, and the processor for whom it serves."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="archivist mcp: %(message)s")
    # Read when numpy is loaded, at the first recall. Threads that wait for each other by spinning take more
    # than the small products of a recall do: 24 ms of processor time became 9.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
