"""Routes: they check the query, read the body, lend the endpoint a bank, and do a repeated request once."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from inspect import Parameter, Signature, signature
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, get_args

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.models import Dependant
from fastapi.params import Header as HeaderParam
from fastapi.routing import APIRoute
from pydantic import create_model
from starlette.responses import Response

from archivist.bank import Bank
from archivist.edges.http.answers import ExtensibleOut, json_response
from archivist.edges.http.shapes import Body
from archivist.edges.server.banks import KEY, REACH, BankReach, PoolLane, RequestContext
from archivist.edges.server.checks import Refusal, bearer_secret
from archivist.errors import BankError, InputError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Endpoint = Callable[..., object]
WRITING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_JSON = "application/json"
_UNCOMPRESSED = "identity"
_REPEATABLE = "archivist.repeatable"
_KEY = re.compile(r"[!-~]{1,200}")
# File systems allow 255 bytes; the end of a name has the suffix by which a log is recognised.
_MAX_NAME = 100
# The name of an upload's folder has its process, so that the next server removes what a dead one left.
_FOLDER_PREFIX = "archivist-"
_log = logging.getLogger("archivist.http")


# Of an app that serves its bank alone.
_NO_REACH = partial(BankReach, lambda _secret: {}, None)
_LANES: dict[Endpoint, Callable[..., PoolLane]] = {}


def set_lane(lane_of: Callable[..., PoolLane]) -> Callable[[Endpoint], Endpoint]:
    """Let the actor and the endpoint's arguments decide in which lane it runs."""

    def register(endpoint: Endpoint) -> Endpoint:
        _LANES[endpoint] = lane_of
        return endpoint

    return register


class CheckedRoute(APIRoute):
    """A route that refuses unknown query parameters: a misspelt filter would otherwise be ignored."""

    def get_route_handler(self) -> Handler:
        """Return the handler of requests."""
        inner, known = super().get_route_handler(), _query_names(self.dependant)

        async def handle(request: Request) -> Response:
            unknown = next((name for name in request.query_params if name not in known), None)
            if unknown is not None:
                hint = f"it knows {', '.join(sorted(known))}" if known else "it takes no parameters"
                raise Refusal(422, "bad_request", f"query: no parameter {unknown[:_MAX_NAME]!r}", hint=hint)
            return await self.handle_request(request, inner)

        return handle

    async def handle_request(self, request: Request, inner: Handler) -> Response:
        """Answer a request whose parameters are known."""
        return await inner(request)


def _query_names(dependant: Dependant) -> set[str]:
    """Return the query parameters of an endpoint and of all that it depends on."""
    names = {parameter.alias for parameter in dependant.query_params}
    return names.union(*map(_query_names, dependant.dependencies))


class BankRoute(CheckedRoute):
    """A route whose endpoint takes a bank and the arguments of a request, and returns plain values.

    The parameters of a POST or PATCH that are neither in its path nor headers are the fields of its JSON
    body, unless one of them is the whole body.
    """

    lane: ClassVar[PoolLane] = PoolLane.WRITE
    has_json_body: ClassVar[bool] = True

    def __init__(self, path: str, endpoint: Endpoint, **rest: Any) -> None:
        # Resolved here, because the annotations are names of the endpoint's own module.
        own = signature(endpoint, eval_str=True).parameters
        fields: dict[str, Any] = {}
        if self.has_json_body and not {"POST", "PATCH"}.isdisjoint(rest["methods"]):
            fields = {
                name: (each.annotation, ... if each.default is each.empty else each.default)
                for name, each in own.items()
                if name not in ("bank", "reach")
                and f"{{{name}" not in path
                and not any(isinstance(part, HeaderParam) for part in get_args(each.annotation))
            }
            kinds = [kind for kind, _ in fields.values()]
            # A body as a whole is one parameter.
            is_whole = any(isinstance(each, type) and issubclass(each, Body) for each in kinds)
            fields = {} if is_whole or dict[str, Any] in kinds else fields

        def answer(request: Request, body: Body | None = None, **arguments: Any) -> Response:
            arguments |= {name: getattr(body, name) for name in fields}
            return self._run_endpoint(endpoint, request, arguments)

        self._reaches = "reach" in own
        # FastAPI reads here what to pass.
        shown = [each for name, each in own.items() if name not in (*fields, "bank", "reach")]
        shown.append(Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request))
        if fields:
            title = endpoint.__name__.title().replace("_", "")
            model = create_model(f"{title}Body", __base__=Body, **fields)
            shown.append(Parameter("body", Parameter.KEYWORD_ONLY, annotation=model))
        passed = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in shown])
        answer.__signature__ = passed  # type: ignore[attr-defined]
        answer.__name__, answer.__doc__ = endpoint.__name__, endpoint.__doc__
        if isinstance(rest["response_model"], DefaultPlaceholder):
            rest["response_model"] = ExtensibleOut
        super().__init__(path, answer, **rest)

    def _run_endpoint(self, endpoint: Endpoint, request: Request, arguments: dict[str, Any]) -> Response:
        """Run an endpoint on a bank of the right lane, and once if the request has an idempotency key."""
        context: RequestContext = request.scope[KEY]
        repeatable: tuple[str, str] | None = request.scope.get(_REPEATABLE)
        lane = self.lane if request.method != "GET" else PoolLane.READ
        if endpoint in _LANES:
            wanted = _LANES[endpoint](actor=context.actor, **arguments)
            # Without a key, a write has no repetition to wait for, and must not wait for a log.
            lane = lane if wanted is PoolLane.LOG and repeatable is None else wanted
        if self._reaches:
            make = request.scope.get(REACH, _NO_REACH)
            arguments["reach"] = make(bearer_secret(request.headers))
        with context.banks.borrow(context.actor, lane) as bank:

            def run() -> Response:
                return json_response(endpoint(bank=bank, **arguments), self.status_code or 200)

            if repeatable is None or lane is PoolLane.READ:
                return run()
            return _run_once(bank, *repeatable, run, is_long=lane is PoolLane.LOG)

    async def handle_request(self, request: Request, inner: Handler) -> Response:
        """Check that a body is plain JSON, then answer."""
        if request.method in WRITING:
            body = await request.body()
            content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if body and content_type != _JSON:
                hint = f"Content-Type: {_JSON}"
                raise Refusal(415, "not_json", "the body is not application/json", hint=hint)
            encoding = request.headers.get("content-encoding", _UNCOMPRESSED).strip().lower()
            if body and encoding != _UNCOMPRESSED:
                hint = "send it uncompressed; only logs may be compressed"
                headers = {"Accept-Encoding": _UNCOMPRESSED}
                raise Refusal(415, "compressed", "the body is compressed", hint=hint, headers=headers)
            _record_idempotency_key(request, sha256(body).hexdigest())
        return await inner(request)


class LongRoute(BankRoute):
    """A route whose work may take minutes, and changes nothing when it is repeated."""

    lane = PoolLane.LOG


class UploadRoute(LongRoute):
    """A route that takes a file of any type as its body; the endpoint finds it in `request.state.upload`."""

    has_json_body = False

    async def handle_request(self, request: Request, inner: Handler) -> Response:
        """Write the body to a file, then answer."""
        async with _spool_body(request) as (path, digest):
            request.state.upload = path
            try:
                _record_idempotency_key(request, digest)
                return await inner(request)
            except InputError as error:
                # A client must not learn paths of this machine.
                message = error.message.replace(f"{path.parent}{os.sep}", "")
                raise InputError(message, hint=error.hint) from None


@asynccontextmanager
async def _spool_body(request: Request) -> AsyncIterator[tuple[Path, str]]:
    """Write a body to a file in a private folder, and remove it at the end; yield its path and digest."""
    # A log may be recognised by its name, so the client's name is kept, as a plain file name.
    given_name = PurePosixPath(request.query_params.get("name", "")).name
    name = re.sub(r"[^\w.-]", "_", given_name, flags=re.ASCII)[-_MAX_NAME:].lstrip(".") or "upload"
    digest = sha256()
    with _refuse_when_full():
        temporary = tempfile.TemporaryDirectory(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-")
    with temporary as folder:
        path = Path(folder) / name
        with _refuse_when_full(), path.open("xb") as file:
            async for chunk in request.stream():
                digest.update(chunk)
                await run_sync(file.write, chunk)
        yield path, digest.hexdigest()


@contextmanager
def _refuse_when_full() -> Iterator[None]:
    """Turn an error of the disk into the refusal of an upload."""
    try:
        yield
    except OSError as error:
        _log.error("no room for an upload: %s", error)
        hint = "the server's log has the reason"
        raise Refusal(507, "no_room", "the server has no room for the upload", hint=hint) from error


def remove_leftovers() -> None:
    """Remove the uploads that ended servers left, before the first upload: a raw log may hold secrets."""
    own_uid = os.getuid() if hasattr(os, "getuid") else None
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        process = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        # Ours are folders of our own; who may write anywhere must not remove those of other users.
        with suppress(OSError):
            is_own = own_uid in (None, folder.lstat().st_uid) and not folder.is_symlink()
            if is_own and has_process_ended(process):
                shutil.rmtree(folder, ignore_errors=True)


def has_process_ended(number: str) -> bool:
    """Say whether an earlier process of this id has certainly ended."""
    if not (number.isascii() and number.isdecimal()):
        return False
    if int(number) == os.getpid():
        # In a container the next process often has the same id.
        return True
    if sys.platform == "win32":
        # There, os.kill with signal 0 ends the process.
        return False
    with suppress(PermissionError, OverflowError):
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
    return False


def _run_once(bank: Bank, name: str, digest: str, run: Callable[[], Response], *, is_long: bool) -> Response:
    """Return the stored answer of a request, or run it and store its answer.

    The change and its answer are stored in one transaction, so that a crash loses both or neither, and the
    same request at the same moment waits. Long work would block all other writers: it changes nothing the
    second time anyway, so only its answer is stored, and the LOG lane runs one such request at a time.
    """
    with nullcontext() if is_long else bank.transaction():
        stored = bank.idempotency.find_answer(name)
        if stored is not None:
            if stored.digest != digest:
                hint = "use a new key for a new request"
                raise Refusal(409, "key_reused", "another request used this Idempotency-Key", hint=hint)
            headers = {"Idempotency-Replayed": "true"}
            return Response(stored.body, stored.status, headers=headers, media_type=_JSON)
        response = run()
        try:
            body = bytes(response.body).decode()
            bank.idempotency.store_answer(name, digest, response.status_code, body)
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
    # Clients put anything into a key: only its digest is stored.
    name = f"{request.scope[KEY].token}:{sha256(key.encode()).hexdigest()}"
    request.scope[_REPEATABLE] = (name, digest)
