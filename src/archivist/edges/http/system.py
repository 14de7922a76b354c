"""The routes of the server itself: status, health, tools, events, and the link for a browser."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import RedirectResponse, Response

from archivist import __version__
from archivist.config import ServerRules
from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.banks import PoolLane, Visitor
from archivist.edges.http.bodies import BodyRoute, ExecutionMode, set_execution_mode
from archivist.edges.http.events import EventHub, EventStream
from archivist.edges.http.guard import OPEN_PATH, SESSION_LIFETIME, BrowserSessions, cookie_name
from archivist.edges.http.shapes import Id, clean_json
from archivist.edges.wire.gate import Refusal
from archivist.errors import NotFoundError
from archivist.tools import functions as tools

router = APIRouter(tags=["the server"], route_class=BodyRoute)
# One full check at a time: each keeps a connection of the READ lane busy.
_HEALTH_CHECK = Lock()
_Set = Literal["archivist", "cognitive", "layers", "workspace"]
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `change` for every entry of the ledger, and live messages.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/", responses=answers.model_response(answers.ExtensibleOut))
def index(visitor: Visitor) -> Response:
    """Return the server's name and version, and the actor of the token."""
    actor = str(visitor.actor)
    return json_response(
        {"name": "archivist", "version": __version__, "actor": actor, "routes": "/openapi.json"}
    )


@router.get("/api/status", responses=answers.model_response(answers.ExtensibleOut))
def status(visitor: Visitor) -> Response:
    """Count what the bank holds."""
    with visitor.bank() as bank:
        return json_response({"status": bank.doctor.status()})


@router.get("/api/health", responses=answers.model_response(answers.ExtensibleOut))
def health(
    visitor: Visitor,
    full: Annotated[
        bool, Query(description="Check the whole ledger and every lesson; takes a while.")
    ] = False,
) -> Response:
    """Say whether the bank can be read, or with `full` run every check of `archivist doctor`."""
    if not full:
        with visitor.bank() as bank, bank.reading() as reader:
            return json_response({"is_well": True, "last_entry": reader.last_entry(), "checks": []})
    if not _HEALTH_CHECK.acquire(blocking=False):
        headers = {"Retry-After": "1"}
        raise Refusal(503, "busy", "a full check is running", hint="try again", headers=headers)
    try:
        with visitor.bank() as bank:
            checks = [
                {"name": check.name, "is_well": check.is_well, "text": check.text}
                for check in bank.doctor.health()
            ]
    finally:
        _HEALTH_CHECK.release()
    return json_response({"is_well": all(check["is_well"] for check in checks), "checks": checks})


@router.get("/api/tools", responses=answers.page_response("tools", answers.ExtensibleOut))
def list_tools(
    asked: Asked,
    format: Annotated[Literal["mcp", "openai", "anthropic"], Query()] = "mcp",  # noqa: A002
    set: Annotated[list[_Set], Query(max_length=4)] = [],  # noqa: A002, B006 the command's own word
) -> Response:
    """List the tools for agents in a provider's format."""
    write = {"mcp": tools.for_mcp, "openai": tools.for_openai, "anthropic": tools.for_anthropic}[format]
    page = asked.page_by_rank(lambda _most: tools.tools(*set), lambda tool: tool.name)
    return json_response({"tools": write(page.items), "next": page.next})


def _mode_of_call(name: str, arguments: dict[str, Any], visitor: Visitor) -> ExecutionMode:
    tool = tools.find_tool(name)
    if tool is None or tool.only_reads(arguments) or not tool.is_open_to(visitor.actor):
        return ExecutionMode.READS
    # Writing files takes long, and what is there already is not written again.
    return ExecutionMode.LONG if tool.toolset is tools.Toolset.WORKSPACE else ExecutionMode.WRITES


@router.post("/api/tools/{name}", responses=answers.model_response(answers.ExtensibleOut))
@set_execution_mode(_mode_of_call)
def call_tool(name: Id, arguments: dict[str, Any], visitor: Visitor) -> Response:
    """Call a tool with its arguments."""
    tool = tools.find_tool(name)
    if tool is None:
        raise NotFoundError("tool", name, hint="GET /api/tools lists them")
    cleaned: Any = clean_json(arguments)
    is_reading = _mode_of_call(name, cleaned, visitor) is ExecutionMode.READS
    with visitor.bank(PoolLane.READ if is_reading else PoolLane.WRITE) as bank:
        return json_response(tool.call(bank, cleaned))


@router.get("/api/events", responses=_EVENTS)
async def events(
    request: Request,
    visitor: Visitor,
    last_event_id: Annotated[str, Header(max_length=40, description="The id of the last event seen.")] = "",
) -> Response:
    """Stream every change, whoever made it, and live messages."""
    hub: EventHub = request.app.state.events
    is_valid: Callable[[str], bool] = request.app.state.is_valid
    rules: ServerRules = request.app.state.rules
    return EventStream(hub, visitor.actor, last_event_id, rules, lambda: is_valid(visitor.token))


@router.get(OPEN_PATH, include_in_schema=False)
def open_browser(request: Request, key: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Start a browser session by a link that opens once."""
    browsers: BrowserSessions = request.app.state.browsers
    session_key = browsers.redeem_link(key)
    if session_key is None:
        hint = "archivist serve prints a new one"
        raise Refusal(401, "used_link", "this link was used or has expired", hint=hint)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        cookie_name(request.headers.get("host", "")),
        session_key,
        max_age=int(SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response
