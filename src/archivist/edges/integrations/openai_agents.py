"""Let the OpenAI Agents SDK keep a session's history in a bank, and learn from it when it is over.

The SDK's `Session` is a protocol, so nothing of the SDK is imported here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from archivist.capture.conversations_service import Conversations
from archivist.edges.integrations import with_actor

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory import SessionSettings

    from archivist.bank import Bank
    from archivist.capture.conversations_service import Turn
    from archivist.capture.results import FinishedRun
    from archivist.records import Actor, EpisodeStatus

T = TypeVar("T")
_AGENT = "openai-agents"


class ArchivistSession:
    """A session of the OpenAI Agents SDK in a bank; many of them can share one bank.

    It acts as the agent `openai-agents` where the bank is a person's, or as `actor` says.
    """

    def __init__(
        self,
        session_id: str,
        bank: Bank,
        *,
        session_settings: SessionSettings | None = None,
        actor: Actor | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._conversations = Conversations(with_actor(bank, _AGENT, actor))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history in order, or its latest items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await asyncio.to_thread(self._conversations.turns, self.session_id, limit)
        return cast("list[TResponseInputItem]", found)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the history."""
        if items:
            turns = cast("list[Turn]", items)
            await _run_to_completion(lambda: self._conversations.add(self.session_id, turns))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away and return it."""
        taken = await _run_to_completion(lambda: self._conversations.pop(self.session_id))
        return cast("TResponseInputItem | None", taken.turn if taken else None)

    async def clear_session(self) -> None:
        """Take all items away."""
        await _run_to_completion(lambda: self._conversations.clear(self.session_id))

    async def finish(
        self, *, status: EpisodeStatus | None = None, project: str = "", agent: str = _AGENT
    ) -> list[FinishedRun]:
        """Hand the session in as a run of its own name: capture, reflect, age, audit. The history stays.

        Handing it in again takes in what was said since. Without a status the history itself tells.
        """
        return await _run_to_completion(
            lambda: self._conversations.finish(self.session_id, status=status, project=project, agent=agent)
        )


async def _run_to_completion(change: Callable[[], T]) -> T:
    """Do something in a thread, and see it through even when the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(change))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
