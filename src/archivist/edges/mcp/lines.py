"""Answer lines that are no messages, which the SDK's transport reads and passes over."""

from __future__ import annotations

import json
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream


class MessageReader:
    """What a client sends, message by message; a line that is none is answered at once, and left out."""

    def __init__(
        self, reading: ReadStream[SessionMessage | Exception], writing: WriteStream[SessionMessage]
    ) -> None:
        self._reading = reading
        self._writing = writing

    @property
    def last_context(self) -> Context | None:
        """Return the context in which the last message was sent, as the SDK asks for it."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        while True:
            item = await self._reading.receive()
            if not isinstance(item, Exception):
                return item
            answer = error_response(item)
            if answer is not None:
                await self._send(answer)

    async def _send(self, answer: types.JSONRPCError) -> None:
        try:
            await self._writing.send(SessionMessage(answer))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            # Who sent it has gone.
            return

    async def aclose(self) -> None:
        """Read no further."""
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def error_response(error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that is no message, for its request when it names one; None if empty."""
    wrong = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if wrong and wrong[0]["type"] != "json_invalid":
        whole = next((each["input"] for each in wrong if each["type"] == "missing"), None)
        return _make_error(
            _request_id(whole), types.INVALID_REQUEST, "Invalid Request: this is no JSON-RPC message"
        )
    line = str(wrong[0]["input"]) if wrong else ""
    if wrong and not line.strip():
        return None
    try:
        # Half a character is JSON to some, so that the request can be named.
        name = _request_id(json.loads(line))
    except (ValueError, RecursionError):
        name = None
    return _make_error(name, types.PARSE_ERROR, "Parse error: the line is no JSON of whole characters")


def _request_id(message: object) -> str | int | None:
    name = message.get("id") if isinstance(message, dict) else None
    return name if isinstance(name, str | int) and not isinstance(name, bool) else None


def _make_error(name: str | int | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=name, error=types.ErrorData(code=code, message=message))
