"""Take the body of a request: within its size and time, once for each idempotency key."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from archivist.desks.repeats import Claim, Repeats
from archivist.edges.http.problems import Refusal
from archivist.edges.http.visits import Visit
from archivist.errors import BankError, InputError
from archivist.processes import is_gone, own_mark

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
WRITING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_JSON = "application/json"
_KEY = re.compile(r"[!-~]{1,200}")
# How often an answer is tried to be kept that a busy bank did not take.
_TRIES = 10
_KEEPING: set[asyncio.Task[None]] = set()
_log = logging.getLogger("archivist.http")
_NAME_CHARACTERS = 100
_NOT_IN_NAMES = re.compile(r"[^\w.-]", re.ASCII)
# An upload's folder is signed by its process, so that what a dead one left can be taken away.
_FOLDER = "archivist-"


class Upload(NamedTuple):
    """A body that was written to a file of its own."""

    path: Path
    size_bytes: int
    digest: str


class BodyRoute(APIRoute):
    """A route that takes JSON bodies, and does what has an idempotency key once."""

    def get_route_handler(self) -> Handler:
        """Return the handler: take the body, then answer as before or do it."""
        inner, known = super().get_route_handler(), self._parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            if request.method not in WRITING:
                return await inner(request)
            return await _once(request, await self._digest(request), inner)

        return handle

    def _parameters(self) -> frozenset[str]:
        """Return what a query may hold, as the document tells it."""
        found, rest = set[str](), [self.dependant]
        while rest:
            dependant = rest.pop()
            found |= {each.alias for each in dependant.query_params}
            rest += dependant.dependencies
        return frozenset(found)

    async def _digest(self, request: Request) -> str:
        body = await request.body()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != _JSON:
            raise Refusal(415, "not_json", "the body is not application/json", hint=f"Content-Type: {_JSON}")
        return sha256(body).hexdigest()


class UploadRoute(BodyRoute):
    """A route that takes a file as its body, of any type; the handler finds it in the request's state."""

    def get_route_handler(self) -> Handler:
        """Return the handler: write the body to a file, then answer as before or do it."""
        inner, known = APIRoute.get_route_handler(self), self._parameters()

        async def handle(request: Request) -> Response:
            _check_parameters(request, known)
            async with _spooled(request) as upload:
                request.state.upload = upload
                try:
                    return await _once(request, upload.digest, inner)
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
async def _spooled(request: Request) -> AsyncIterator[Upload]:
    """Write a body to a file that only we can read, and take it away at the end."""
    digest, size = sha256(), 0
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{own_mark()}-") as folder:
        path = Path(folder) / _file_name(request.query_params.get("name", ""))
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as file:
            async for piece in request.stream():
                digest.update(piece)
                size += len(piece)
                await run_sync(file.write, piece)
        yield Upload(path, size, digest.hexdigest())


def remove_leftovers() -> None:
    """Take away the uploads of servers that ended without: a raw log may hold secrets."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        mark = folder.name.removeprefix(_FOLDER).rpartition("-")[0]
        if is_gone(mark) and _is_ours(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == getattr(os, "getuid", lambda: found.st_uid)()


def _file_name(given: str) -> str:
    """Return a name for the file that is nothing but a name: a log may be recognised by it."""
    return _NOT_IN_NAMES.sub("_", PurePosixPath(given).name)[-_NAME_CHARACTERS:].lstrip(".") or "upload"


async def _once(request: Request, body_digest: str, inner: Handler) -> Response:
    key = request.headers.get("idempotency-key")
    if key is None:
        return await inner(request)
    visit = Visit.of(request)
    name, digest = _named(visit, key), _digest_of(request, body_digest)
    claim = await run_sync(lambda: _with(visit, lambda desk: desk.claim(name, digest)))
    if not claim.is_ours:
        return _answered(claim, digest)
    try:
        response = await inner(request)
    except Exception:
        # Not when the server stops in the middle of it: its claims end with it, and the bank may be busy.
        await run_sync(lambda: _with(visit, lambda desk: desk.release(name)))
        raise
    body = bytes(response.body).decode()

    def keep() -> None:
        _with(visit, lambda desk: desk.keep(name, digest, response.status_code, body))

    try:
        await run_sync(keep)
    except BankError:
        # The work is done and its answer stands; that it is known again is seen to beside.
        task = asyncio.create_task(_kept_at_last(keep))
        _KEEPING.add(task)
        task.add_done_callback(_KEEPING.discard)
    return response


async def _kept_at_last(keep: Callable[[], None]) -> None:
    """Keep an answer that a busy bank did not take at once."""
    for _ in range(_TRIES):
        try:
            await run_sync(keep)
        except BankError:
            continue
        return
    _log.warning("an answer could not be kept: the same Idempotency-Key may do the work again")


def _named(visit: Visit, key: str) -> str:
    if not _KEY.fullmatch(key):
        raise Refusal(
            400, "bad_key", "the Idempotency-Key is none", hint="1 to 200 letters, digits and marks"
        )
    return f"{visit.token}:{key}"


def _digest_of(request: Request, body_digest: str) -> str:
    whole = f"{request.method} {request.url.path}?{request.url.query}\n{body_digest}"
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _answered(claim: Claim, digest: str) -> Response:
    assert claim.answer is not None  # noqa: S101 what is not ours was begun by somebody
    if claim.answer.digest != digest:
        raise Refusal(
            409,
            "key_reused",
            "another request has this Idempotency-Key",
            hint="take a new key for a new request",
        )
    if claim.is_under_way:
        raise Refusal(
            409,
            "under_way",
            "a request by this key is being done",
            hint="ask again",
            headers={"Retry-After": "1"},
        )
    told = {"Idempotency-Replayed": "true"}
    return Response(claim.answer.body, claim.answer.status, headers=told, media_type=_JSON)


def _with(visit: Visit, work: Callable[[Repeats], Any]) -> Any:
    with visit.bank() as bank:
        return work(Repeats(bank))
