"""Read request bodies: as JSON or into a file, and each idempotency key once."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import cache, partial, wraps
from hashlib import sha256
from inspect import signature
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from archivist.bank import Bank
from archivist.edges.http.banks import REPEATABLE, IdempotentRequest, PoolLane, RequestContext
from archivist.edges.wire.gate import Refusal
from archivist.errors import BankError, InputError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Endpoint = Callable[..., Response]
WRITING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_JSON = "application/json"
_UNCOMPRESSED = "identity"
_KEY = re.compile(r"[!-~]{1,200}")
# File systems allow 255 bytes; the end of a name has the suffix by which a log is recognised.
_MAX_NAME = 100
# The name of an upload's folder ends in its process, so that the next server removes what a dead one left.
_FOLDER_PREFIX = "archivist-"
_log = logging.getLogger("archivist.http")


class ExecutionMode(StrEnum):
    """How an endpoint runs when its request may be repeated."""

    READS = "changes nothing, whatever its key"
    WRITES = "in one transaction with its answer"
    LONG = "takes long, and changes nothing the second time"


_MODES: dict[Endpoint, Callable[..., ExecutionMode]] = {}


class Upload(NamedTuple):
    """A body that was written to a temporary file."""

    path: Path
    size_bytes: int
    digest: str


class BodyRoute(APIRoute):
    """A route that takes JSON bodies, and runs a request with an idempotency key once."""

    mode: ClassVar[ExecutionMode] = ExecutionMode.WRITES

    def __init__(self, path: str, endpoint: Endpoint, **rest: Any) -> None:
        if WRITING.intersection(rest.get("methods") or ()):
            endpoint = _make_idempotent(endpoint, self.mode)
        super().__init__(path, endpoint, **rest)

    def get_route_handler(self) -> Handler:
        """Return the handler: check the query, read the body, then answer."""
        inner, known = super().get_route_handler(), self._query_parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            if request.method in WRITING:
                _record_idempotency_key(request, await self._body_digest(request))
            return await inner(request)

        return handle

    def _query_parameters(self) -> frozenset[str]:
        """Return the query parameters of the route and of everything it depends on."""
        names, dependants = set[str](), [self.dependant]
        while dependants:
            dependant = dependants.pop()
            names |= {parameter.alias for parameter in dependant.query_params}
            dependants += dependant.dependencies
        return frozenset(names)

    async def _body_digest(self, request: Request) -> str:
        body = await request.body()
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and content_type != _JSON:
            raise Refusal(415, "not_json", "the body is not application/json", hint=f"Content-Type: {_JSON}")
        if body and request.headers.get("content-encoding", _UNCOMPRESSED).strip().lower() != _UNCOMPRESSED:
            hint = "send it uncompressed; only logs may be compressed"
            headers = {"Accept-Encoding": _UNCOMPRESSED}
            raise Refusal(415, "compressed", "the body is compressed", hint=hint, headers=headers)
        return sha256(body).hexdigest()


class LongRoute(BodyRoute):
    """A route whose work may take minutes, and changes nothing when it is repeated."""

    mode = ExecutionMode.LONG


class UploadRoute(LongRoute):
    """A route that takes a file of any type as its body; the handler finds it in `request.state.upload`."""

    def get_route_handler(self) -> Handler:
        """Return the handler: check the query, write the body to a file, then answer."""
        inner, known = APIRoute.get_route_handler(self), self._query_parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            async with _spool_body(request) as upload:
                request.state.upload = upload
                try:
                    _record_idempotency_key(request, upload.digest)
                    return await inner(request)
                except InputError as error:
                    # A client must not learn paths of this machine.
                    message = error.message.replace(f"{upload.path.parent}{os.sep}", "")
                    raise InputError(message, hint=error.hint) from None

        return handle


def _check_parameters(request: Request, known: frozenset[str]) -> None:
    """Refuse unknown query parameters: a misspelt filter would otherwise be ignored."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        hint = f"it knows {', '.join(sorted(known))}" if known else "it takes no parameters"
        raise Refusal(422, "bad_request", f"query: no parameter {unknown[0][:_MAX_NAME]!r}", hint=hint)


@asynccontextmanager
async def _spool_body(request: Request) -> AsyncIterator[Upload]:
    """Write a body to a private file, and remove the file at the end."""
    # A log may be recognised by its name, so the client's name is kept, as a plain file name.
    given_name = PurePosixPath(request.query_params.get("name", "")).name
    name = re.sub(r"[^\w.-]", "_", given_name, flags=re.ASCII)[-_MAX_NAME:].lstrip(".") or "upload"
    digest, size = sha256(), 0
    with _refuse_when_full():
        temporary = tempfile.TemporaryDirectory(prefix=f"{_FOLDER_PREFIX}{process_signature()}-")
    with temporary as folder:
        path = Path(folder) / name
        with _refuse_when_full():
            path.touch(mode=0o600, exist_ok=False)
        # Unbuffered: on a full disk, closing would try to flush the buffer and fail again.
        with path.open("wb", buffering=0) as file:
            async for chunk in request.stream():
                digest.update(chunk)
                size += len(chunk)
                await run_sync(_append_chunk, file, chunk)
        yield Upload(path, size, digest.hexdigest())


@contextmanager
def _refuse_when_full() -> Iterator[None]:
    """Turn an error of the disk into the refusal of an upload."""
    try:
        yield
    except OSError as error:
        _log.error("no room for an upload: %s", error)
        hint = "the server's log has the reason"
        raise Refusal(507, "no_room", "the server has no room for the upload", hint=hint) from error


@_refuse_when_full()
def _append_chunk(file: FileIO, chunk: bytes) -> None:
    while chunk:
        chunk = chunk[file.write(chunk) :]


@cache
def process_signature() -> str:
    """Return what identifies this process on this machine: its id, and a random word."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def has_process_ended(process: str) -> bool:
    """Say whether the process of a signature has certainly ended."""
    number, _, word = process.partition("-")
    if not number.isdecimal() or not word or process == process_signature():
        return False
    pid = int(number)
    if pid == os.getpid():
        # In a container the next process often has the same id.
        return True
    if sys.platform == "win32":
        # There, os.kill with signal 0 ends the process.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def remove_leftovers() -> None:
    """Remove the uploads that ended servers left: a raw log may hold secrets."""
    own_uid = os.getuid() if hasattr(os, "getuid") else None
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        process = folder.name.removeprefix(_FOLDER_PREFIX).rpartition("-")[0]
        try:
            found = folder.lstat()
        except OSError:
            continue
        is_own = own_uid in (None, found.st_uid)
        if has_process_ended(process) and is_own and stat.S_ISDIR(found.st_mode):
            shutil.rmtree(folder, ignore_errors=True)


def set_execution_mode(mode_of: Callable[..., ExecutionMode]) -> Callable[[Endpoint], Endpoint]:
    """Let an endpoint's arguments decide how it runs; `mode_of` gets the endpoint's own arguments."""

    def register(endpoint: Endpoint) -> Endpoint:
        _MODES[endpoint] = mode_of
        return endpoint

    return register


def _make_idempotent(endpoint: Endpoint, default: ExecutionMode) -> Endpoint:
    """Return an endpoint that runs a repeatable request once, and stores its answer.

    The change and its answer are stored in one transaction, so that a crash loses both or neither, and the
    same request at the same moment waits. Long work would block all other writers: it changes nothing the
    second time anyway, so only its answer is stored, and the LOG lane runs one such request at a time.
    """
    mode_of: Callable[..., ExecutionMode] = _MODES.get(endpoint, lambda **_arguments: default)

    @wraps(endpoint)
    def run_once(**arguments: Any) -> Response:
        context: RequestContext | None = arguments.get("visitor")
        if context is None or context.repeatable is None:
            return endpoint(**arguments)
        mode = mode_of(**arguments)
        if mode is ExecutionMode.READS:
            return endpoint(**arguments)
        is_long = mode is ExecutionMode.LONG
        with context.bank(PoolLane.LOG if is_long else PoolLane.WRITE) as bank:
            arguments["visitor"] = replace(context, held=bank)
            with nullcontext() if is_long else bank.transaction():
                work = partial(endpoint, **arguments)
                return _replay_or_run(bank, context.repeatable, work, is_long=is_long)

    # Resolved here, because the annotations are names of the endpoint's own module.
    run_once.__signature__ = signature(endpoint, eval_str=True)  # type: ignore[attr-defined]
    return run_once


def _replay_or_run(
    bank: Bank, request: IdempotentRequest, work: Callable[[], Response], *, is_long: bool
) -> Response:
    """Return the stored answer of a request, or run it and store its answer."""
    stored = bank.idempotency.find_answer(request.name)
    if stored is not None:
        if stored.digest != request.digest:
            hint = "use a new key for a new request"
            raise Refusal(409, "key_reused", "another request used this Idempotency-Key", hint=hint)
        headers = {"Idempotency-Replayed": "true"}
        return Response(stored.body, stored.status, headers=headers, media_type=_JSON)
    response = work()
    try:
        body = bytes(response.body).decode()
        bank.idempotency.store_answer(request.name, request.digest, response.status_code, body)
    except BankError:
        if not is_long:
            raise
        _log.warning("an answer was not stored: the same Idempotency-Key runs the request again")
    return response


def _record_idempotency_key(request: Request, body_digest: str) -> None:
    """Store the name and digest of a request with an idempotency key in its scope."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return
    if not _KEY.fullmatch(key):
        hint = "1 to 200 visible ASCII characters"
        raise Refusal(400, "bad_key", "the Idempotency-Key is malformed", hint=hint)
    whole = f"{request.method} {request.url.path}?{request.url.query}\n{body_digest}"
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    name = f"{RequestContext.from_request(request).token}:{key}"
    request.scope[REPEATABLE] = IdempotentRequest(name, digest)
