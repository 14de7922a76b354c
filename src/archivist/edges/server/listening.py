"""Listen at an address, and serve an app there. uvicorn is imported only when a server is made."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from archivist.errors import ArchivistError, BankError, InputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Connections that arrive before the server accepts wait in this queue instead of being refused.
_BACKLOG = 1_024
# Running requests may finish within this time; then they are cancelled and answered 503.
_GRACE_S = 5
_MAX_HEADER_BYTES = 64 * 1024
# uvicorn answers 503 above this. It bounds the memory that idle connections can take: event listeners
# (server.max_listeners, 2,000 by default) and as many ordinary connections.
_MAX_CONNECTIONS = 4_000
_STOPPING = (signal.SIGTERM, signal.SIGINT)
# When so many processes as there are have ended sooner, and one more, none can serve.
_LEAST_LIFE_S = 2.0


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
        reason, hint = getattr(error, "strerror", None) or error, "use another port; 0 picks a free one"
        raise InputError(f"cannot listen at {host} port {port}: {reason}", hint=hint) from None
    listener.set_inheritable(True)
    if sys.platform != "win32":
        import resource

        # Each connection is an open file, and many systems allow only 1,024 by default.
        _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return listener


def serve_in_processes(count: int, serve: Callable[[], None]) -> None:
    """Serve in several processes that share the socket, until a signal; one that dies is replaced."""
    if not hasattr(os, "fork"):
        raise InputError("this system cannot serve in several processes", hint="leave --processes out")
    children: dict[int, float] = {}
    is_over = False
    # The children see the end of this pipe when their parent is gone, however it ended.
    watched, held = os.pipe()

    def start() -> None:
        # A signal in between would miss the new child.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        if not (pid := os.fork()):
            os.close(held)
            _serve_as_child(watched, serve)
        children[pid] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)

    def stop(number: int, _frame: object) -> None:
        nonlocal is_over
        is_over = True
        for pid in tuple(children):
            os.kill(pid, number)

    for number in _STOPPING:
        signal.signal(number, stop)
    for _ in range(count):
        start()
    early_ends = 0
    while children:
        pid, status = os.wait()
        early_ends += time.monotonic() - children.pop(pid, 0.0) < _LEAST_LIFE_S
        if is_over:
            continue
        if early_ends > count:
            stop(signal.SIGTERM, None)
            raise InputError(f"a server process ended at once, with status {status}", hint="see its messages")
        start()


def _serve_as_child(watched: int, serve: Callable[[], None]) -> NoReturn:
    """Serve in a new process until a signal, or until the other end of a pipe is closed."""
    code = 1
    try:
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)

        def follow_parent() -> None:
            os.read(watched, 1)
            os.kill(os.getpid(), signal.SIGTERM)

        Thread(target=follow_parent, daemon=True).start()
        serve()
        code = 0
    finally:
        os._exit(code)


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


def _noting_failures(app: ASGIApp, failures: list[ArchivistError]) -> ASGIApp:
    """Return an app that notes why it could not start, instead of printing its traceback."""

    async def run_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_plainly(message: Message) -> None:
            # The message of a failed start is its traceback.
            is_failed = message["type"] == "lifespan.startup.failed"
            await send({"type": message["type"]} if is_failed else message)

        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, send_plainly)
        except ArchivistError as error:
            failures.append(error)

    return run_app


def make_server(
    app: ASGIApp,
    *,
    silence_s: float,
    stop: Callable[[], None],
    certificate: Certificate | None = None,
    announce: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """Return the server of an app; `stop` is called on shutdown and ends what would delay it.

    `announce` is called once the app has started. If it cannot, running the server raises the app's error.
    """
    import uvicorn

    failures: list[ArchivistError] = []

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            # uvicorn leaves the process, or in older versions only the server.
            with suppress(SystemExit):
                await super().startup(sockets)
            if not self.started:
                unknown = BankError("the server did not start", hint="its messages above have the reason")
                raise next(iter(failures), unknown)
            announce()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Event streams and uploads would keep their connections open.
            stop()
            await super().shutdown(sockets)

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        _noting_failures(app, failures),
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
        hint = "PEM files, the key without a password"
        raise InputError(f"no certificate in {files}: {error.strerror or error}", hint=hint) from None
    return Server(config)
