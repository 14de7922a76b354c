"""A server on this machine that replays what the servers of models answer, one reply a request.

The replies have the shapes that OpenAI, Anthropic and llama.cpp document and send: with a tool call, a
refusal, a cut answer, an error with its headers. Only their texts and arguments are the test's own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One answer: its status, body and headers; one that `hangs` comes when the server is released."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


@dataclass
class ReplayServer:
    """What the server was asked, and what it will answer."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    @property
    def url(self) -> str:
        """Return the base URL, as a configuration names it."""
        return f"{self.address}/v1"


def openai_reply(tool: str, arguments: Mapping[str, object], tokens: tuple[int, int] = (900, 120)) -> Reply:
    """Return a chat completion that calls a tool."""
    return _chat(
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "tool_calls": [
                {
                    "id": "call_DdmO9pD3xa9XTPNJ32zg2hcA",
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps(arguments)},
                }
            ],
        },
        "tool_calls",
        tokens,
    )


def openai_text(text: str, tokens: tuple[int, int] = (900, 120)) -> Reply:
    """Return a chat completion in words, as a server answers that was given a schema."""
    return _chat({"role": "assistant", "content": text, "refusal": None}, "stop", tokens)


def openai_truncated(tool: str) -> Reply:
    """Return a chat completion whose arguments end in the middle."""
    function = {"name": tool, "arguments": '{"lessons": [{"kind": "remedy", "summary": "Use `pyt'}
    call = {"id": "call_cut", "type": "function", "function": function}
    return _chat({"role": "assistant", "content": None, "tool_calls": [call]}, "length", (900, 1500))


def openai_refusal() -> Reply:
    """Return a chat completion in which the model refuses."""
    words = "I'm sorry, I can't help with that."
    return _chat({"role": "assistant", "content": None, "refusal": words}, "stop", (900, 12))


def openai_uncounted(tool: str, arguments: Mapping[str, object]) -> Reply:
    """Return a chat completion as small local servers send it: no usage, no fingerprint, a text id."""
    call = {"type": "function", "id": "0", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    choice = {
        "finish_reason": "tool_calls",
        "index": 0,
        "message": {"role": "assistant", "content": "", "tool_calls": [call]},
    }
    return Reply(
        _json({"id": "x", "object": "chat.completion", "created": 1, "model": "q", "choices": [choice]})
    )


def _chat(message: Mapping[str, object], reason: str, tokens: tuple[int, int]) -> Reply:
    usage = {
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "total_tokens": sum(tokens),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "accepted_prediction_tokens": 0},
    }
    return Reply(
        _json(
            {
                "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
                "object": "chat.completion",
                "created": 1741569952,
                "model": "gpt-test-2026-01-01",
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
                "usage": usage,
                "service_tier": "default",
                "system_fingerprint": None,
            }
        )
    )


def anthropic_reply(tool: str, arguments: Mapping[str, object], tokens: tuple[int, int] = (800, 90)) -> Reply:
    """Return a message of Anthropic's that uses a tool."""
    return Reply(
        _json(
            {
                "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
                "type": "message",
                "role": "assistant",
                "model": "claude-test",
                "content": [
                    {"type": "text", "text": "Here is what the record shows."},
                    {
                        "type": "tool_use",
                        "id": "toolu_01A09q90qw90lq917835lq9",
                        "name": tool,
                        "input": arguments,
                    },
                ],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
            }
        )
    )


def error_reply(status: int, message: str, **headers: str) -> Reply:
    """Return an error as OpenAI words it."""
    body = {"error": {"message": message, "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
    return Reply(_json(body), status, {name.replace("_", "-"): value for name, value in headers.items()})


def anthropic_overloaded() -> Reply:
    """Return Anthropic's error when it is overloaded."""
    body = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
        "request_id": "r",
    }
    return Reply(_json(body), 529, {"retry-after": "0"})


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


@contextmanager
def serve_replies(*replies: Reply) -> Iterator[ReplayServer]:
    """Serve replies in order; without one left, the server breaks."""
    state = ReplayServer(list(replies))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.requests.append(json.loads(body))
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.paths.append(self.path)
            reply = state.replies.pop(0) if state.replies else Reply(b"no reply left", 500)
            if reply.hangs:
                state.released.wait()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
            except OSError:
                # Whoever asked has gone.
                return

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
