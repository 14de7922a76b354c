"""The MCP server: its tools, resources and prompts, and the connections on which calls run in turn."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from archivist import __version__
from archivist.errors import (
    AccessError,
    ArchivistError,
    BankError,
    InputError,
    NoBankError,
    NotFoundError,
    without_middle,
)
from archivist.records.actor import Actor
from archivist.records.words import ActorKind
from archivist.tools import prompts
from archivist.tools.functions import Tool, for_mcp
from archivist.tools.registry import Toolset, hint_for_agents

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream

    from archivist.bank import Bank

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
OpenFiles: TypeAlias = "Callable[[], AbstractContextManager[Bank]]"

_log = logging.getLogger(__name__)
# A model does not write more in one call; whole logs come in by `archivist capture`.
_MAX_ARGUMENTS_BYTES = 1024 * 1024
# Some hosts load tools on demand; these two are needed before an agent would search for them.
_ALWAYS_LOADED = {"brief", "recall"}
_DAY_MS = 24 * 3600 * 1000
_PROMPTS = {
    "reflect": types.Prompt(
        name="reflect",
        title="Reflect on a run",
        description="Look back at a run and keep at most five lessons, with their evidence.",
        arguments=[
            types.PromptArgument(name="run", description="The run's id, when it was captured."),
            types.PromptArgument(name="focus", description="What to look at above all."),
        ],
    ),
    "save_memory": types.Prompt(
        name="save_memory",
        title="Save memory",
        description="Save what a conversation decided and learnt to the memory of a workspace.",
        arguments=[
            types.PromptArgument(name="scope", description="workspace[/domain]; by default it is worked out.")
        ],
    ),
}
# How long a call waits for calls before it and for other processes together, and how many may wait.
_TIMEOUT_S = 30.0
_MAX_WAITING = 100
UNNAMED = "mcp"
_MAX_NAME = 64


class CallQueue:
    """A connection to the bank on which calls run one after another.

    It is opened by the first call, and again when the bank's file was replaced.
    """

    def __init__(self, open_bank: Callable[[], Bank], purpose: str) -> None:
        self._open = open_bank
        self._bank: Bank | None = None
        self._purpose = purpose
        # Calls wait here, on the event loop, instead of each holding a thread.
        self._turn = anyio.Lock(fast_acquire=True)

    def ensure_open(self) -> Bank:
        """Return the bank, opening it if needed; raise NoBankError when there is none."""
        if self._bank is not None and not self._bank.is_there:
            # Writes to a deleted or replaced file would be lost.
            self.close()
        if self._bank is None:
            self._bank = self._open()
        return self._bank

    def close(self) -> None:
        """Close the bank; a later call opens it again."""
        bank, self._bank = self._bank, None
        if bank is not None:
            bank.close()

    async def run(self, work: Callable[[Bank], T], actor: Actor | None = None) -> T:
        """Run work on the bank as an actor, in a thread, in turn. What has begun finishes in any case.

        The time spent waiting is taken off the time to wait for the write lock: one timeout covers both.
        """
        deadline = time.monotonic() + _TIMEOUT_S

        def run_work() -> T:
            bank = self.ensure_open()
            left_s = max(0.0, deadline - time.monotonic())
            timeout_s = min(left_s, bank.config.store.busy_timeout_s)
            return work(bank.acting_as(actor or bank.actor, timeout_s=timeout_s))

        has_turn = False
        if self._turn.statistics().tasks_waiting < _MAX_WAITING:
            with anyio.move_on_after(_TIMEOUT_S):
                await self._turn.acquire()
                has_turn = True
        if not has_turn:
            raise BankError(f"busy: too many calls wait to {self._purpose}", hint="try again in a while")
        try:
            return await anyio.to_thread.run_sync(run_work)
        finally:
            self._turn.release()


def agent_from_client(client: str) -> Actor:
    """Return the agent of a client's name, which may be any text."""
    name = re.sub(r"[^\w.@+-]+", "-", client)[:_MAX_NAME].strip("-.")
    return Actor(ActorKind.AGENT, name or UNNAMED)


class MemoryServer:
    """The memory of one bank for the clients of one process."""

    def __init__(
        self,
        open_bank: Callable[[], Bank],
        tools: Sequence[Tool],
        *,
        actor: Actor | None,
        role_of: Callable[[str], str] | None = None,
        open_files: OpenFiles | None = None,
    ) -> None:
        """Serve the bank that `open_bank` opens; `open_files` opens a workspace where there is none.

        `role_of` says which role a client's session has, by the client's name.
        """
        # Two connections, so that reads go on while a write waits for another process.
        self.reading, self.writing = CallQueue(open_bank, "read"), CallQueue(open_bank, "write")
        self._tools = {tool.name: tool for tool in tools}
        self._actor = actor
        self._role_of = role_of
        self._open_files = open_files

    def close(self) -> None:
        """Close the bank; a later call opens it again."""
        self.reading.close()
        self.writing.close()

    def build_server(self) -> Server[Any]:
        """Return the SDK's server object, which a transport runs."""
        lasting = CacheHint(ttl_ms=_DAY_MS, scope="public")
        return Server(
            "archivist",
            version=__version__,
            title="Archivist",
            description="A memory that lets coding agents learn from their own runs.",
            instructions=prompts.instructions(self._tools),
            cache_hints=dict.fromkeys(
                ("tools/list", "prompts/list", "resources/list", "resources/templates/list"), lasting
            ),
            get_tool_input_schema=lambda name: self._tools[name].schema() if name in self._tools else None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    # Tools

    async def _list_tools(self, _ctx: Context, _params: object) -> types.ListToolsResult:
        listed = []
        for tool in for_mcp(self._tools.values()):
            title = str(tool["name"]).replace("_", " ").capitalize()
            extra = {"_meta": {"anthropic/alwaysLoad": True}} if tool["name"] in _ALWAYS_LOADED else {}
            listed.append(types.Tool.model_validate({"title": title, **tool, **extra}))
        return types.ListToolsResult(tools=listed)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in self._tools:
            told = f"no tool {without_middle(params.name)!r} here; there are {', '.join(self._tools)}"
            raise MCPError(types.INVALID_PARAMS, told)
        tool, given, actor = self._tools[params.name], params.arguments or {}, self._actor_of(ctx)
        # A refused write needs no turn among the writers.
        is_write = not tool.only_reads(given) and tool.is_open_to(actor)
        queue = self.writing if is_write else self.reading

        def run_tool(bank: Bank) -> Any:
            try:
                size = len(json.dumps(given, ensure_ascii=False).encode())
            except UnicodeEncodeError:
                problem = f"{tool.name}: the arguments contain a lone surrogate"
                raise InputError(problem, hint="send valid UTF-8") from None
            if size > _MAX_ARGUMENTS_BYTES:
                hint = f"at most {_MAX_ARGUMENTS_BYTES >> 10} KiB; import long logs with archivist capture"
                raise InputError(f"{tool.name}: the arguments are too large ({size >> 10} KiB)", hint=hint)
            return tool.call(bank, given)

        try:
            # A workspace is files: without a bank its tools work as the commands do.
            open_files = self._open_files if tool.toolset is Toolset.WORKSPACE else None
            answer = await _run_tool(queue, run_tool, actor, open_files)
        except ArchivistError as error:
            return _error_result(error.message, error.hint)
        except Exception:  # noqa: BLE001 the model gets an answer, and the log the traceback
            _log.exception("the tool %s failed", params.name)
            hint = "the server's log has the reason; try something else"
            return _error_result(f"{params.name} failed with an internal error", hint)
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    def _actor_of(self, ctx: Context) -> Actor:
        """Return the actor: of the token, of the command line, or by the client's name."""
        user = ctx.request.scope.get("user") if ctx.request is not None else None
        actor = getattr(getattr(user, "access_token", None), "subject", None)
        if actor:
            return Actor.parse(actor)
        params = ctx.session.client_params
        agent = agent_from_client(params.client_info.name if params else "")
        actor = self._actor or agent
        role = actor.role or (self._role_of(agent.name) if self._role_of is not None else "")
        return Actor(actor.kind, actor.name, role)

    # Resources

    async def _list_resources(self, _ctx: Context, _params: object) -> types.ListResourcesResult:
        from archivist.tools.resources_service import ADDRESSES

        listed = [types.Resource(name=each.uri.partition("://")[2], **each._asdict()) for each in ADDRESSES]
        return types.ListResourcesResult(resources=listed)

    async def _list_templates(self, _ctx: Context, _params: object) -> types.ListResourceTemplatesResult:
        from archivist.tools.resources_service import TEMPLATE

        shown = TEMPLATE._asdict()
        template = types.ResourceTemplate(name="memory", uri_template=shown.pop("uri"), **shown)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        from archivist.tools.resources_service import read_resource

        read = partial(read_resource, uri=params.uri)
        try:
            text, mime_type = await self.reading.run(read, self._actor_of(ctx))
        except ArchivistError as error:
            is_client_error = isinstance(error, AccessError | InputError | NotFoundError)
            code = types.INVALID_PARAMS if is_client_error else types.INTERNAL_ERROR
            hint = hint_for_agents(error) if isinstance(error, NotFoundError) else error.hint
            told = _error_text(error.message, hint)
            raise MCPError(code, told, {"uri": without_middle(params.uri)}) from None
        contents = types.TextResourceContents(uri=params.uri, text=text, mime_type=mime_type)
        return types.ReadResourceResult(contents=[contents])

    # Prompts

    async def _list_prompts(self, _ctx: Context, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(_PROMPTS.values()))

    async def _get_prompt(self, _ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in _PROMPTS:
            told = f"no prompt {without_middle(params.name)!r}; there are {', '.join(_PROMPTS)}"
            raise MCPError(types.INVALID_PARAMS, told)
        prompt, given = _PROMPTS[params.name], params.arguments or {}
        known = sorted(argument.name for argument in prompt.arguments or ())
        for name in sorted(set(given).difference(known)):
            said = f"{params.name}: no argument {without_middle(name)!r}; it takes {', '.join(known)}"
            raise MCPError(types.INVALID_PARAMS, said)
        write = prompts.reflect if params.name == "reflect" else prompts.save_memory
        text = types.TextContent(type="text", text=write(self._tools, **given))
        messages = [types.PromptMessage(role="user", content=text)]
        return types.GetPromptResult(description=prompt.description, messages=messages)


async def _run_tool(
    queue: CallQueue, work: Callable[[Bank], Any], actor: Actor, open_files: OpenFiles | None
) -> Any:
    """Run a tool on the bank, or where there is none on a workspace's files, if it needs no more."""
    try:
        return await queue.run(work, actor)
    except NoBankError:
        if open_files is None:
            raise

    def run_on_files(open_files: OpenFiles) -> Any:
        with open_files() as bank:
            return work(bank.acting_as(actor))

    return await anyio.to_thread.run_sync(run_on_files, open_files)


def _error_result(message: str, hint: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=_error_text(message, hint))
    return types.CallToolResult(content=[text], is_error=True)


def _error_text(message: str, hint: str) -> str:
    return f"{message}\nhint: {hint}" if hint else message


async def forward_messages(
    lines: AsyncIterable[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Forward a client's messages to the server, and answer lines that are not messages.

    The SDK skips such lines without an answer, and the client would wait for ever.
    """
    # Either end may be closed already when the client or the server has ended.
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with messages:
            async for line in lines:
                if not isinstance(line, Exception):
                    await messages.send(line)
                elif (error := error_response(line)) is not None:
                    await answer(SessionMessage(error))


def error_response(error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that is not a message, with the request's id if known; None if empty."""
    problems = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if problems and problems[0]["type"] != "json_invalid":
        whole = next((problem["input"] for problem in problems if problem["type"] == "missing"), None)
        return _make_error(whole, types.INVALID_REQUEST, "Invalid Request: not a JSON-RPC message")
    line = str(problems[0]["input"]) if problems else ""
    if problems and not line.strip():
        return None
    try:
        # Python also reads lone surrogates, which pydantic refuses; the request's id is still useful.
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    return _make_error(message, types.PARSE_ERROR, "Parse error: the line is not valid JSON in UTF-8")


def _make_error(request: object, code: int, text: str) -> types.JSONRPCError:
    name = request.get("id") if isinstance(request, dict) else None
    request_id = name if isinstance(name, str | int) and not isinstance(name, bool) else None
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=text))
