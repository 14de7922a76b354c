"""Turn a request away in the one form of every door: `application/problem+json` with a code and a hint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Message

MEDIA_TYPE = "application/problem+json"
# What every answer has, whoever gives it.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Refusal(Exception):  # noqa: N818 not an error of ours, but what the door says to somebody outside
    """A request that the door itself turns away."""

    def __init__(
        self, status: int, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return it as the answer."""
        return problem_response(self.status, self.code, self.detail, self.hint, self.headers)


def problem_response(
    status: int, code: str, detail: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer that says what went wrong."""
    told = {
        "type": f"urn:archivist:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
    }
    body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def add_default_headers(start: Message) -> None:
    """Give the start of an answer the headers that every answer has, where it has none of its own."""
    own = start.get("headers", ())
    given = {name.lower() for name, _ in own}
    start["headers"] = [*own, *(pair for pair in HEADERS if pair[0] not in given)]
