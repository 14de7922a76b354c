"""Take the body of a request: within its size and time, once for each idempotency key."""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import partial, wraps
from hashlib import sha256
from inspect import signature
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from archivist.access.idempotency_service import IdempotencyStore
from archivist.bank import Bank
from archivist.edges.http.banks import PoolLane
from archivist.edges.http.processes import has_process_ended, process_signature
from archivist.edges.http.visits import REPEATABLE, IdempotentRequest, RequestContext
from archivist.edges.wire.refusals import Refusal
from archivist.errors import BankError, InputError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Endpoint = Callable[..., Response]
WRITING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_JSON = "application/json"
_AS_IT_IS = "identity"
_KEY = re.compile(r"[!-~]{1,200}")
_log = logging.getLogger("archivist.http")
_NAME_CHARACTERS = 100
_NOT_IN_NAMES = re.compile(r"[^\w.-]", re.ASCII)
# An upload's folder is signed by its process, so that what a dead one left can be taken away.
_FOLDER = "archivist-"


class ExecutionMode(StrEnum):
    """How something is done that may be asked for again."""

    READS = "changes nothing, whatever its key"
    WRITES = "in one transaction with its answer"
    LONG = "takes long, and changes nothing the second time"


_MANNERS: dict[Endpoint, Callable[..., ExecutionMode]] = {}


class Upload(NamedTuple):
    """A body that was written to a file of its own."""

    path: Path
    size_bytes: int
    digest: str


class BodyRoute(APIRoute):
    """A route that takes JSON bodies, and does what has an idempotency key once."""

    manner: ClassVar[ExecutionMode] = ExecutionMode.WRITES

    def __init__(self, path: str, endpoint: Endpoint, **rest: Any) -> None:
        if WRITING.intersection(rest.get("methods") or ()):
            endpoint = _make_idempotent(endpoint, self.manner)
        super().__init__(path, endpoint, **rest)

    def get_route_handler(self) -> Handler:
        """Return the handler: take the body, then answer as before or do it."""
        inner, known = super().get_route_handler(), self._query_parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            if request.method in WRITING:
                _record_idempotency_key(request, await self._body_digest(request))
            return await inner(request)

        return handle

    def _query_parameters(self) -> frozenset[str]:
        """Return what a query may hold, as the document tells it."""
        found, rest = set[str](), [self.dependant]
        while rest:
            dependant = rest.pop()
            found |= {each.alias for each in dependant.query_params}
            rest += dependant.dependencies
        return frozenset(found)

    async def _body_digest(self, request: Request) -> str:
        body = await request.body()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != _JSON:
            raise Refusal(415, "not_json", "the body is not application/json", hint=f"Content-Type: {_JSON}")
        if body and request.headers.get("content-encoding", _AS_IT_IS).strip().lower() != _AS_IT_IS:
            hint = "send it as it is; only logs are taken compressed"
            taken = {"Accept-Encoding": _AS_IT_IS}
            raise Refusal(415, "compressed", "the body is compressed", hint=hint, headers=taken)
        return sha256(body).hexdigest()


class LongRoute(BodyRoute):
    """A route whose work may take minutes, and does nothing twice."""

    manner = ExecutionMode.LONG


class UploadRoute(LongRoute):
    """A route that takes a file as its body, of any type; the handler finds it in the request's state."""

    def get_route_handler(self) -> Handler:
        """Return the handler: write the body to a file, then answer as before or do it."""
        inner, known = APIRoute.get_route_handler(self), self._query_parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            async with _spool_body(request) as upload:
                request.state.upload = upload
                try:
                    _record_idempotency_key(request, upload.digest)
                    return await inner(request)
                except InputError as error:
                    # Where the file lies on this machine is nobody's business outside.
                    told = error.message.replace(f"{upload.path.parent}{os.sep}", "")
                    raise InputError(told, hint=error.hint) from None

        return handle


def _check_parameters(request: Request, known: frozenset[str]) -> None:
    """Refuse a query that asks for what this path does not know: it would be answered as if it had not."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        hint = f"it knows {', '.join(sorted(known))}" if known else "it takes no parameters"
        raise Refusal(422, "bad_request", f"query: no parameter {unknown[0][:_NAME_CHARACTERS]!r}", hint=hint)


@asynccontextmanager
async def _spool_body(request: Request) -> AsyncIterator[Upload]:
    """Write a body to a file that only we can read, and take it away at the end."""
    digest, size = sha256(), 0
    with _refuse_when_full():
        own = tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{process_signature()}-")
    with own as folder:
        path = Path(folder) / _file_name(request.query_params.get("name", ""))
        with _refuse_when_full():
            path.touch(mode=0o600, exist_ok=False)
        # What a buffer holds that finds no room would be in the way of its closing.
        with path.open("wb", buffering=0) as file:
            async for piece in request.stream():
                digest.update(piece)
                size += len(piece)
                await run_sync(_append_chunk, file, piece)
        yield Upload(path, size, digest.hexdigest())


@contextmanager
def _refuse_when_full() -> Iterator[None]:
    """Say to somebody outside that there is no room for what he sends."""
    try:
        yield
    except OSError as error:
        _log.error("no room for an upload: %s", error)
        hint = "the server's own output says why"
        raise Refusal(507, "no_room", "the server has no room for the upload", hint=hint) from error


@_refuse_when_full()
def _append_chunk(file: FileIO, piece: bytes) -> None:
    while piece:
        piece = piece[file.write(piece) :]


def remove_leftovers() -> None:
    """Take away the uploads of servers that ended without: a raw log may hold secrets."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        mark = folder.name.removeprefix(_FOLDER).rpartition("-")[0]
        if has_process_ended(mark) and _is_own_folder(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == getattr(os, "getuid", lambda: found.st_uid)()


def _file_name(given: str) -> str:
    """Return a name for the file that is nothing but a name: a log may be recognised by it."""
    return _NOT_IN_NAMES.sub("_", PurePosixPath(given).name)[-_NAME_CHARACTERS:].lstrip(".") or "upload"


def set_execution_mode(mode_of: Callable[..., ExecutionMode]) -> Callable[[Endpoint], Endpoint]:
    """Let what is asked say how an endpoint does it; `manner` is given the endpoint's own arguments."""

    def note(endpoint: Endpoint) -> Endpoint:
        _MANNERS[endpoint] = mode_of
        return endpoint

    return note


def _make_idempotent(endpoint: Endpoint, usual: ExecutionMode) -> Endpoint:
    """Return an endpoint that does what may come again once, and keeps its answer with what it did.

    One transaction holds both, so that both are there or neither, whatever ends the server in between; the
    same request at the same moment waits for it. What takes long would keep all others from writing: it does
    nothing twice anyway, so that only its answer is kept, and it stands in one lane.
    """
    manner_of: Callable[..., ExecutionMode] = _MANNERS.get(endpoint, lambda **_given: usual)

    @wraps(endpoint)
    def run_once(**given: Any) -> Response:
        visitor: RequestContext | None = given.get("visitor")
        if visitor is None or visitor.repeatable is None:
            return endpoint(**given)
        manner = manner_of(**given)
        if manner is ExecutionMode.READS:
            return endpoint(**given)
        is_long = manner is ExecutionMode.LONG
        with visitor.bank(PoolLane.LOG if is_long else PoolLane.WRITE) as bank:
            given["visitor"] = replace(visitor, held=bank)
            with nullcontext() if is_long else bank.transaction():
                return _replay_or_run(bank, visitor.repeatable, partial(endpoint, **given), is_long=is_long)

    # The names of the types are those of the endpoint's own module.
    run_once.__signature__ = signature(endpoint, eval_str=True)  # type: ignore[attr-defined]
    return run_once


def _replay_or_run(
    bank: Bank, asked: IdempotentRequest, work: Callable[[], Response], *, is_long: bool
) -> Response:
    """Return what a request was answered before, or do it and keep the answer."""
    repeats = IdempotencyStore(bank)
    known = repeats.find_answer(asked.name)
    if known is not None:
        if known.digest != asked.digest:
            hint = "take a new key for a new request"
            raise Refusal(409, "key_reused", "another request has this Idempotency-Key", hint=hint)
        told = {"Idempotency-Replayed": "true"}
        return Response(known.body, known.status, headers=told, media_type=_JSON)
    response = work()
    try:
        repeats.store_answer(asked.name, asked.digest, response.status_code, bytes(response.body).decode())
    except BankError:
        if not is_long:
            raise
        _log.warning("an answer could not be kept: the same Idempotency-Key is answered anew")
    return response


def _record_idempotency_key(request: Request, body_digest: str) -> None:
    """Note what a request with an idempotency key is called, for who does it."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return
    if not _KEY.fullmatch(key):
        hint = "1 to 200 letters, digits and marks"
        raise Refusal(400, "bad_key", "the Idempotency-Key is none", hint=hint)
    name = f"{RequestContext.from_request(request).token}:{key}"
    request.scope[REPEATABLE] = IdempotentRequest(name, _request_digest(request, body_digest))


def _request_digest(request: Request, body_digest: str) -> str:
    whole = f"{request.method} {request.url.path}?{request.url.query}\n{body_digest}"
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
