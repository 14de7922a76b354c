"""Run the MCP server: over stdin and stdout, or over HTTP on this machine."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from archivist.edges.wire.listening import use_one_thread_for_vectors
from archivist.edges.wire.security import is_loopback
from archivist.errors import InputError

if TYPE_CHECKING:
    from archivist.edges.mcp.server import MemoryServer

_GRACE_S = 3
_log = logging.getLogger(__name__)


class ListenAddress(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def parse_address(text: str) -> ListenAddress:
    """Read `HOST:PORT`, `:PORT` or `PORT`; only this machine's own addresses are served."""
    host, _, port = text.strip().rpartition(":")
    name = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and host[0] != "["):
        raise InputError(f"{text!r} is no place to listen", hint="HOST:PORT, such as 127.0.0.1:7778")
    if not is_loopback(name):
        raise InputError(
            f"{name!r} is beyond this machine, where a token would travel in the clear",
            hint="listen on 127.0.0.1 and let a proxy with TLS forward to it",
        )
    return ListenAddress(name, int(port))


def serve_stdio(memory: MemoryServer) -> None:
    """Serve the one client at stdin and stdout until it goes. Logging goes to stderr."""
    import anyio
    from mcp.server.stdio import stdio_server

    from archivist.edges.mcp.lines import MessageReader

    async def run() -> None:
        server = memory.build_server()
        async with stdio_server() as (reading, writing):
            lines = MessageReader(reading, writing)
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


def serve_http(memory: MemoryServer, place: ListenAddress, *, announce: Callable[[str], None]) -> None:
    """Serve any number of clients over streamable HTTP, each with a token of the bank, until interrupted."""
    from archivist.edges.mcp.http_app import PATH, make_http_app
    from archivist.edges.wire.listening import listen, url_of
    from archivist.edges.wire.serving import make_server

    _prepare()
    rules = memory.reading.bank.ensure_open().config.server
    listening = listen(place.host, place.port)
    door = make_http_app(memory, rules)
    server = make_server(door, silence_s=rules.silence_s, stop=door.stop)
    announce(url_of(*listening.getsockname()[:2]) + PATH)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        # How people end it; the server has closed by now.
        return
    finally:
        listening.close()
        memory.close()


def _prepare() -> None:
    """Keep stdout for the protocol, and the processor for whom it serves."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="archivist mcp: %(message)s")
    use_one_thread_for_vectors()
