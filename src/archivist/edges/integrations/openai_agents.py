"""Keep the history of an OpenAI Agents SDK session in a bank, and learn from it at its end.

The SDK's `Session` is a protocol, so nothing of the SDK is needed unless settings are given as a mapping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from archivist.edges.integrations import missing_library_error, run_to_completion, with_actor
from archivist.errors import InputError

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory import SessionSettings

    from archivist.bank import Bank
    from archivist.capture.conversations_service import Turn
    from archivist.capture.results import FinishedRun
    from archivist.records import Actor, EpisodeStatus

_AGENT = "openai-agents"


class ArchivistSession:
    """A session of the OpenAI Agents SDK in a bank; many sessions can share one bank.

    It acts as `actor`, else as the agent `openai-agents` if the bank acts as a person.
    """

    def __init__(
        self,
        session_id: str,
        bank: Bank,
        *,
        session_settings: SessionSettings | Mapping[str, object] | None = None,
        actor: Actor | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = _read_settings(session_settings)
        self._conversations = with_actor(bank, _AGENT, actor).conversations

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history in order, or its latest items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await asyncio.to_thread(self._conversations.turns, self.session_id, limit)
        return cast("list[TResponseInputItem]", items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the history."""
        if items:
            turns = cast("list[Turn]", items)
            await run_to_completion(lambda: self._conversations.add(self.session_id, turns))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it."""
        popped = await run_to_completion(lambda: self._conversations.pop(self.session_id))
        return cast("TResponseInputItem | None", popped.turn if popped else None)

    async def clear_session(self) -> None:
        """Remove all items."""
        await run_to_completion(lambda: self._conversations.clear(self.session_id))

    async def finish(
        self, *, status: EpisodeStatus | None = None, project: str = "", agent: str = _AGENT
    ) -> list[FinishedRun]:
        """Finish the session as a run of its name: capture, reflect, age, audit. The history stays.

        Finishing it again adds the items since. Without a status the history decides.
        """
        return await run_to_completion(
            lambda: self._conversations.finish(self.session_id, status=status, project=project, agent=agent)
        )


def _read_settings(given: SessionSettings | Mapping[str, object] | None) -> SessionSettings | None:
    """Return settings as the SDK's runner needs them: it takes mappings everywhere itself."""
    if not isinstance(given, Mapping):
        return given
    try:
        from agents.memory.session_settings import coerce_session_settings
    except ImportError as error:
        raise missing_library_error("openai-agents", "openai-agents") from error
    try:
        return coerce_session_settings(dict(given))
    except (TypeError, ValueError) as error:
        raise InputError(f"session_settings: {error}", hint='such as {"limit": 20}') from None
