"""Run the MCP server over stdin and stdout, or over HTTP on this machine."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from archivist.edges.server.listening import is_loopback, listen, url_of, use_one_thread_for_vectors
from archivist.errors import InputError

if TYPE_CHECKING:
    from archivist.edges.mcp.server import MemoryServer

_log = logging.getLogger(__name__)


def parse_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, `:PORT` or `PORT`; only loopback addresses are accepted."""
    host, _, port = text.strip().rpartition(":")
    name = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and host[0] != "["):
        raise InputError(f"{text!r} is not an address", hint="HOST:PORT, such as 127.0.0.1:7778")
    if not is_loopback(name):
        hint = "listen on 127.0.0.1 and let a proxy with TLS forward to it"
        raise InputError(
            f"{name!r} is beyond this machine, where a token would travel in the clear", hint=hint
        )
    return name, int(port)


def serve_stdio(memory: MemoryServer) -> None:
    """Serve the client at stdin and stdout until it disconnects. Logging goes to stderr."""
    import anyio
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage

    from archivist.edges.mcp.server import forward_messages

    async def run() -> None:
        server = memory.build_server()
        sending, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with stdio_server() as (reading, writing), anyio.create_task_group() as tasks:
            tasks.start_soon(forward_messages, reading, writing.send, sending)
            await server.run(receiving, writing, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    _prepare()
    # stdin is read in a thread that KeyboardInterrupt does not reach. Ending at once is safe: every write is
    # a transaction.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(run)
    except* (BrokenPipeError, ConnectionResetError):
        _log.warning("the client has disconnected")
    finally:
        memory.close()


def serve_http(memory: MemoryServer, place: tuple[str, int], *, announce: Callable[[str], None]) -> None:
    """Serve clients over streamable HTTP, each with a token of the bank, until interrupted."""
    from archivist.edges.mcp.http_app import PATH, make_http_app
    from archivist.edges.server.listening import make_server

    _prepare()
    rules = memory.reading.ensure_open().config.server
    listener = listen(*place)
    app = make_http_app(memory, rules)
    url = url_of(*listener.getsockname()[:2]) + PATH
    server = make_server(app, silence_s=rules.silence_s, stop=app.stop, announce=lambda: announce(url))
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        # Ctrl-C is the usual way to end it; the server has closed by now.
        return
    finally:
        listener.close()
        memory.close()


def _prepare() -> None:
    """Log to stderr, because stdout carries the protocol, and scan vectors with one thread."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="archivist mcp: %(message)s")
    use_one_thread_for_vectors()
