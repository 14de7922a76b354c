"""The routes of the server itself: status, health, tools, events, and the link for a browser."""

from __future__ import annotations

from dataclasses import asdict
from threading import Lock
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import RedirectResponse, Response

from archivist import __version__
from archivist.bank import Bank
from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.bodies import BankRoute, CheckedRoute, set_lane
from archivist.edges.http.events import EventStream
from archivist.edges.http.guard import HEALTH_PATH, OPEN_PATH, SESSION_LIFETIME, BrowserSessions, cookie_name
from archivist.edges.http.shapes import Id, clean_json
from archivist.edges.server.banks import KEY, REACH, PoolLane
from archivist.edges.server.checks import Refusal, TokenCheck, bearer_secret, unauthorized_refusal
from archivist.edges.views import View
from archivist.errors import NotFoundError
from archivist.records import Actor
from archivist.records.layers import TokenState
from archivist.tools import functions as tools

router = APIRouter(tags=["the server"], route_class=BankRoute)
# Routes that need no bank.
plain = APIRouter(tags=["the server"], route_class=CheckedRoute)
# One full check at a time: each keeps a connection of the READ lane busy.
_HEALTH_CHECK = Lock()
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `change` for every entry of the ledger, and live messages.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@plain.get("/", response_model=answers.ExtensibleOut)
def index(request: Request) -> Response:
    """Return the server's name and version, the token's actor and banks; a browser is sent to the pages."""
    if request.app.state.pages is not None and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/overview", status_code=303)
    actor, make_reach = str(request.scope[KEY].actor), request.scope.get(REACH)
    banks = list(make_reach(bearer_secret(request.headers)).reachable()) if make_reach else []
    told = {"name": "archivist", "version": __version__, "actor": actor, "banks": banks}
    return json_response({**told, "routes": "/openapi.json"})


@router.get("/api/status")
def status(bank: Bank) -> View:
    """Count what the bank holds, and say what a language model spent, if one is configured."""
    from archivist.edges.views import model_view

    model = model_view(bank)
    return {"status": bank.doctor.status(), **({"model": model} if model else {})}


@router.get("/api/health")
def health(
    bank: Bank,
    full: Annotated[
        bool, Query(description="Check the whole ledger and every lesson; takes a while.")
    ] = False,
) -> View:
    """Say whether the bank can be read, or with `full` run every check of `archivist doctor`."""
    if not full:
        with bank.reading() as reader:
            return {"is_well": True, "last_entry": reader.last_entry(), "checks": []}
    if not _HEALTH_CHECK.acquire(blocking=False):
        headers = {"Retry-After": "1"}
        raise Refusal(503, "busy", "a full check is running", hint="try again", headers=headers)
    try:
        checks = [asdict(check) for check in bank.doctor.health()]
    finally:
        _HEALTH_CHECK.release()
    return {"is_well": all(check["is_well"] for check in checks), "checks": checks}


@plain.get("/api/tools", response_model=answers.page_model("tools", answers.ExtensibleOut))
def list_tools(
    asked: Asked,
    format: Annotated[Literal["mcp", "openai", "anthropic"], Query()] = "mcp",
    set: Annotated[tuple[tools.Toolset, ...], Query(max_length=4)] = (),
) -> Response:
    """List the tools for agents in a provider's format."""
    write = {"mcp": tools.for_mcp, "openai": tools.for_openai, "anthropic": tools.for_anthropic}[format]
    page = asked.page_of(tools.tools(*set), lambda tool: tool.name)
    return json_response({"tools": write(page.items), "next": page.next})


def _lane_of_call(name: str, arguments: dict[str, Any], actor: Actor) -> PoolLane:
    tool = tools.find_tool(name)
    if tool is None or tool.only_reads(arguments) or not tool.is_open_to(actor):
        return PoolLane.READ
    # Writing files takes long, and what is there already is not written again.
    return PoolLane.LOG if tool.toolset is tools.Toolset.WORKSPACE else PoolLane.WRITE


@router.post("/api/tools/{name}")
@set_lane(_lane_of_call)
def call_tool(bank: Bank, name: Id, arguments: dict[str, Any]) -> View:
    """Call a tool with its arguments."""
    tool = tools.find_tool(name)
    if tool is None:
        raise NotFoundError("tool", name, hint="GET /api/tools lists them")
    return tool.call(bank, clean_json(arguments))


@plain.get("/api/events", responses=_EVENTS)
async def events(
    request: Request,
    last_event_id: Annotated[str, Header(max_length=40, description="The id of the last event seen.")] = "",
) -> Response:
    """Stream every change, whoever made it, and live messages."""
    return EventStream(request.app.state.events, request.scope[KEY], last_event_id)


@plain.get(HEALTH_PATH, openapi_extra={"security": []})
def probe() -> Response:
    """Say without a token that the server runs and its bank is in place; without the bank it is 503."""
    return json_response({"is_well": True})


@plain.get(OPEN_PATH, include_in_schema=False)
def open_browser(request: Request, key: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Start a browser session by the link that the server printed."""
    browsers: BrowserSessions = request.app.state.browsers
    session_key = browsers.redeem_link(key)
    if session_key is None:
        hint = "archivist serve and archivist open print a link"
        raise Refusal(401, "bad_link", "this link is of no server that runs", hint=hint)
    return _sign_in(request, session_key)


@plain.post(OPEN_PATH, include_in_schema=False)
async def open_with_token(request: Request) -> Response:
    """Start a browser session by a token, in the name of the token's actor."""
    fields = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), max_num_fields=10))
    found: TokenCheck | None = request.app.state.check_token(fields.get("token", "").strip())
    if found is None or found[1] is not TokenState.VALID:
        raise unauthorized_refusal("bad_token", "the token is unknown here, has expired or was revoked")
    browsers: BrowserSessions = request.app.state.browsers
    return _sign_in(request, browsers.start_session(found[0].actor, found[0].id, found[0].name))


def _sign_in(request: Request, session_key: str) -> Response:
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
