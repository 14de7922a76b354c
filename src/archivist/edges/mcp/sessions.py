"""Keep the sessions and streams of clients in bounds: so many for a token, none for longer than it holds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from archivist.edges.wire.refusals import Refusal
from archivist.errors import ArchivistError

if TYPE_CHECKING:
    from archivist.config import ServerRules
    from archivist.edges.mcp.late_bank import LazyBank
    from archivist.edges.mcp.server import MemoryServer

MOST_SESSIONS = 50
_log = logging.getLogger(__name__)


class Sessions:
    """Which sessions each token has opened, and how many requests of each are under way."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        # Of each token's the one that was used longest ago comes first.
        self._held: dict[str, dict[str, int]] = {}

    def check_room(self, token: str) -> None:
        """Refuse another session to a token that uses all that it may have."""
        held = self._held.get(token, {})
        if len(held) >= self._most and all(held.values()):
            hint = "end one with DELETE, or use the revision of 2026, which has none"
            told = f"{self._most} sessions of this token are in use"
            raise Refusal(429, "too_many_sessions", told, hint=hint, headers={"Retry-After": "60"})

    def add(self, token: str, name: str) -> str | None:
        """Note a new session; return the one to end for it, unused for the longest time, if any."""
        held = self._held.setdefault(token, {})
        held[name] = 0
        idle = next((each for each, uses in held.items() if not uses), None)
        if len(held) <= self._most or idle is None:
            return None
        self.remove(token, idle)
        return idle

    def remove(self, token: str, name: str) -> None:
        """Forget a session."""
        held = self._held.get(token, {})
        held.pop(name, None)
        if not held:
            self._held.pop(token, None)

    @contextmanager
    def track_request(self, token: str, name: str) -> Iterator[None]:
        """Count a request of a session for as long as it is under way."""
        held = self._held.get(token, {})
        if name not in held:
            yield
            return
        held[name] = held.pop(name) + 1
        try:
            yield
        finally:
            if name in held:
                held[name] -= 1


class Streams:
    """The answers that go on, by the token that let them begin; they end with it, or with the server."""

    def __init__(self, memory: MemoryServer, rules: ServerRules) -> None:
        self._memory = memory
        self._rules = rules
        self._open: dict[anyio.CancelScope, str] = {}
        self._watching: asyncio.Task[None] | None = None
        self._version = -1

    def add(self, scope: anyio.CancelScope, token: str) -> None:
        """Take in an answer that has turned out to go on."""
        self._open[scope] = token
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def remove(self, scope: anyio.CancelScope) -> None:
        """Let go of an answer that has ended, or never went on."""
        self._open.pop(scope, None)

    def finish(self) -> None:
        """End all of them."""
        for scope in list(self._open):
            scope.cancel()

    async def _watch(self) -> None:
        """Look for tokens that ended, while anybody listens: when the bank changed, else ever so often."""
        asked_at = time.monotonic()
        while self._open:
            await asyncio.sleep(self._rules.poll_s)
            is_due = time.monotonic() - asked_at >= self._rules.heartbeat_s
            try:
                ended = await self._memory.reading.run(partial(self._ended_tokens, is_due))
            except ArchivistError as error:
                # Whether they hold cannot be asked now; what comes next is.
                _log.warning("streams: %s", error.message)
                continue
            asked_at = time.monotonic() if is_due else asked_at
            for scope, token in list(self._open.items()):
                if token in ended:
                    scope.cancel()

    def _ended_tokens(self, is_due: bool, late: LazyBank) -> set[str]:
        bank = late.ensure_open()
        version = bank.version()
        if version == self._version and not is_due:
            return set()
        self._version = version
        return {token for token in set(self._open.values()) if not bank.tokens.is_valid(token)}
