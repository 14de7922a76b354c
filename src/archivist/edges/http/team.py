"""Serve several banks at one address, and each person's own bank beside the team's.

Each bank has an app of its own, with its own connections, sessions and events: nothing is filtered, so no
route can forget to filter. A request names its bank as `/banks/NAME/…`; else its token or cookie decides.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from archivist.bank import Bank
from archivist.edges.http.guard import BrowserSessions, find_cookie
from archivist.edges.server.banks import REACH, BankReach
from archivist.edges.server.checks import Refusal, bearer_secret, check_token
from archivist.errors import ArchivistError
from archivist.paths import OF_PERSON
from archivist.records import Actor
from archivist.records.layers import Token, TokenState

OpenBank = Callable[[], Bank]
_PREFIX = "/banks/"
# The name becomes a folder's.
_log = logging.getLogger("archivist.http")
_PERSON = re.compile(r"[\w][\w.@+-]{0,63}")


class TeamApp:
    """The apps of the banks by name. A person's own is made when its owner first asks for it."""

    def __init__(
        self,
        banks: Mapping[str, OpenBank],
        make_app: Callable[..., FastAPI],
        browsers: BrowserSessions,
        *,
        has_own_banks: bool,
    ) -> None:
        self._banks = banks
        self._make_app = make_app
        self._browsers = browsers
        self._has_own_banks = has_own_banks
        self._apps: dict[str, FastAPI] = {}
        self._token_banks: dict[str, Bank] = {}
        self._lifespans = AsyncExitStack()
        self._is_starting = asyncio.Lock()

    def stop(self) -> None:
        """End what would delay the end of the server."""
        for app in self._apps.values():
            app.state.incoming.stop()
            app.state.events.finish()

    @asynccontextmanager
    async def run(self, _app: object) -> AsyncIterator[None]:
        """Open the banks' tokens, and close everything at the end."""
        for name, open_bank in self._banks.items():
            self._token_banks[name] = self._lifespans.enter_context(open_bank())
        async with self._lifespans:
            for name in self._banks:
                await self._start_app(name)
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app of its bank."""
        if scope["type"] == "lifespan":
            await Router(lifespan=self.run).lifespan(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            name, inner = self._find_bank(scope)
            app = await self._start_app(name)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send)
            return
        except ArchivistError as error:
            _log.error("%s", error.message)
            hint = "the server's log has the reason"
            refused = Refusal(503, error.code, "the bank cannot serve this now", hint=hint)
            await refused.response()(scope, receive, send)
            return
        inner[REACH] = partial(BankReach, self._reachable, self._open_as)
        await app(inner, receive, send)

    def _find_bank(self, scope: Scope) -> tuple[str, Scope]:
        """Return the bank that a request is for, and the request without the bank's name in its path."""
        if len(self._banks) == 1 and not self._has_own_banks and not scope["path"].startswith(_PREFIX):
            return next(iter(self._banks)), dict(scope)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        secret, inner = bearer_secret(headers), dict(scope)
        if scope["path"].startswith(_PREFIX):
            named, _, path = scope["path"].removeprefix(_PREFIX).partition("/")
            # The name may be written in another way there, but it has as many parts.
            raw = b"/".join(scope["raw_path"].split(b"/")[3:])
            inner |= {"path": f"/{path}", "raw_path": b"/" + raw}
            # Without a token the app of the bank answers: a browser may sign in.
            if named in self._names_of(secret, headers) or (secret is None and named in self._banks):
                return named, inner
            # Whether there is such a bank is not told to a token that does not open it.
            hint = "archivist token create --bank NAME gives access to a bank"
            raise Refusal(403, "no_such_bank", f"this request has no access to a bank {named!r}", hint=hint)
        default, *_ = (*self._names_of(secret, headers), *self._banks)
        return default, inner

    def _names_of(self, secret: str | None, headers: Mapping[str, str]) -> list[str]:
        """Return the banks of a request's token, the person's own first; or the bank of its cookie."""
        if secret is not None:
            return [*self._reachable(secret)]
        session = self._browsers.find_session(find_cookie(headers) or "")
        return [session.bank] if session is not None else []

    def _reachable(self, secret: str) -> dict[str, Actor]:
        """Return the banks in which a secret is a valid token, and as whom; the person's own ones first."""
        found: dict[str, Actor] = {}
        for name, bank in self._token_banks.items():
            match check_token(bank, secret):
                case (Token(actor=actor), TokenState.VALID):
                    found[name] = actor
        own = {
            f"{name}{OF_PERSON}{actor.person}": actor
            for name, actor in found.items()
            if self._has_own_banks and actor.person
        }
        return {**own, **found}

    def _open_bank(self, name: str) -> Bank:
        team, _, person = name.partition(OF_PERSON)
        if name in self._banks:
            return self._banks[name]()
        if not _PERSON.fullmatch(person):
            hint = "a token's actor needs a name of letters, digits and . @ + - _"
            raise Refusal(403, "bad_person", f"{person!r} cannot have a bank of its own", hint=hint)
        return self._banks[team]().person(person)

    def _open_as(self, name: str, actor: Actor) -> Bank:
        return self._open_bank(name).acting_as(actor)

    async def _start_app(self, name: str) -> ASGIApp:
        async with self._is_starting:
            if name not in self._apps:
                team, _, person = name.partition(OF_PERSON)
                is_own = name not in self._banks
                make = partial(self._make_app, partial(self._open_bank, name), name=name)
                tokens = self._banks[team if is_own else name]
                app = await run_sync(partial(make, open_tokens=tokens, person=person if is_own else ""))
                await self._lifespans.enter_async_context(app.router.lifespan_context(app))
                self._apps[name] = app
        return self._apps[name]
