"""A bank's tools as a pydantic-ai toolset, with our own schemas and checks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from archivist.edges.integrations import error_with_hint, missing_library_error, with_actor

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
    """The tools of a bank: lessons and briefs, or the named sets, including `default` and `all`.

    The model acts as `actor`, else as the agent `pydantic-ai` if the bank acts as a person. Wrong arguments,
    denials and errors are answers of a failed call, and do not end the run. `max_retries` is for arguments
    that are not a JSON object, which pydantic-ai itself sends back.
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
        """Return the tools in pydantic-ai's form."""
        # Any object: the tool checks its arguments itself, with better hints.
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
        """Call a tool of the bank in a thread."""
        try:
            return await asyncio.to_thread(call, self._bank, name, tool_args)
        except ArchivistError as error:
            raise ToolFailed(error_with_hint(error)) from error
        except Exception as error:
            _log.exception("the tool %s failed", name)
            advice = "the program's log has the reason; try something else"
            raise ToolFailed(f"{name} failed with an internal error ({advice})") from error
