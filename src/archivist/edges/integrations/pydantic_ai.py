"""Offer a bank's tools to a pydantic-ai agent, with our own schemas and checks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from archivist.edges.integrations import missing_library_error, with_actor

try:
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.tools import AgentDepsT
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise missing_library_error("pydantic-ai", "pydantic-ai") from error

from archivist.errors import ArchivistError
from archivist.tools.functions import Toolset, call, select_tools

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Actor

_log = logging.getLogger("archivist.pydantic_ai")


class ArchivistToolset(AbstractToolset[AgentDepsT]):
    """The tools of a bank: lessons and briefs, or the sets that are named, `default` and `all` among them.

    The model acts as the agent `pydantic-ai` where the bank is a person's, or as `actor` says. What it got
    wrong, what it may not do and what failed come back to it as the answer of a failed call, and end no run.
    `max_retries` is for arguments that are no JSON object, which pydantic-ai itself sends back.
    """

    def __init__(
        self,
        bank: Bank,
        *toolsets: Toolset | str,
        id: str = "archivist",  # noqa: A002
        max_retries: int = 3,
        actor: Actor | None = None,
    ) -> None:
        self._bank = with_actor(bank, "pydantic-ai", actor)
        self._tools = select_tools(",".join(toolsets or (Toolset.ARCHIVIST,)))
        self._id = id
        self._max_retries = max_retries

    @property
    def id(self) -> str:
        """Return the toolset's name among those of its agent."""
        return self._id

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:  # noqa: ARG002
        """Return the tools as pydantic-ai takes them."""
        # What a model passes is checked by the tool itself, whose hints are better.
        anything = SchemaValidator(
            core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
        )
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.schema(),
                    metadata={"read_only": tool.is_read_only, "idempotent": tool.is_idempotent},
                ),
                max_retries=self._max_retries,
                args_validator=anything,
            )
            for tool in self._tools
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],  # noqa: ARG002
        tool: ToolsetTool[AgentDepsT],  # noqa: ARG002
    ) -> Any:
        """Call a tool in the bank without holding up the event loop."""
        try:
            return await asyncio.to_thread(call, self._bank, name, tool_args)
        except ArchivistError as error:
            raise ToolFailed(_error_text(error)) from error
        except Exception as error:
            _log.exception("the tool %s failed", name)
            raise ToolFailed(
                f"{name} failed within (the program's log has the reason; try otherwise)"
            ) from error


def _error_text(error: ArchivistError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
