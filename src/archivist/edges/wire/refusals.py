"""Refuse a request in the same form at every door: `application/problem+json` with a code and a hint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Message

MEDIA_TYPE = "application/problem+json"
_DEFAULT_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Refusal(Exception):  # noqa: N818 not an error of the package, but an answer to a client
    """A request that the server refuses before a bank is asked."""

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
        """Return the refusal as a response."""
        return problem_response(self.status, self.code, self.detail, self.hint, self.headers)


def problem_response(
    status: int, code: str, detail: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response that says what went wrong."""
    problem = {
        "type": f"urn:archivist:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
    }
    body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def add_default_headers(start: Message) -> None:
    """Add the security headers that a response does not set itself."""
    headers = start.get("headers", ())
    names = {name.lower() for name, _ in headers}
    start["headers"] = [*headers, *(header for header in _DEFAULT_HEADERS if header[0] not in names)]
