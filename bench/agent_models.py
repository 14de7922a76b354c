"""Who answers the agent loop: any OpenAI-compatible endpoint, or a stand-in that follows a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from archivist.text import estimate_tokens

Message = Mapping[str, str]
DONE = "DONE"
_REPLY_TOKENS = 80
# One thread of a small machine reads about 30 tokens a second: the first prompt of a run takes the longest.
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered, and the tokens that its endpoint counted."""

    text: str
    tokens_in: int
    tokens_out: int


class ChatModel(Protocol):
    """Whoever answers a conversation."""

    def reply(self, messages: Sequence[Message]) -> ModelReply:
        """Answer the last message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind `POST {url}/chat/completions`."""

    url: str
    model: str
    key: str = ""

    def reply(self, messages: Sequence[Message]) -> ModelReply:
        """Ask with temperature 0, so that a run can be repeated."""
        body = {
            "model": self.model, "messages": list(messages), "max_tokens": _REPLY_TOKENS, "temperature": 0,
            "seed": 1,
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        response = httpx.post(
            f"{self.url.rstrip('/')}/chat/completions", json=body, headers=headers, timeout=_TIMEOUT_S
        )
        answer = response.raise_for_status().json()
        usage = answer.get("usage") or {}
        return ModelReply(
            answer["choices"][0]["message"].get("content") or "",
            usage.get("prompt_tokens", 0),
            usage.get("completion_tokens", 0),
        )


_ADVICE = re.compile(r"(?:\buse|\brun|\bas in|\bworked in \d+ runs?:) `([^`\n]+)`")
_FAILING = re.compile(r"^\d+\. `([^`\n]+)` (?:fails|timed out)")
_EXIT = re.compile(r"exit code (\d+)")
_PLACEHOLDER = re.compile(r"<\w+>")


@dataclass
class Follower:
    """A stand-in that is no model: it finds its way by a fixed plan, and does what it is told at once.

    Before a command that the brief calls failing, and after one that failed beside a hint, it runs what is
    advised there, with its own object in the place of another. Advice that is a later step of its plan saves
    the steps between; any other costs a call. So it shows what memory says, not what a model makes of it.
    """

    plan: Sequence[str]
    name: str
    others: Sequence[str]
    _step: int = 0
    _advice: list[str] = field(default_factory=list)
    _tried: set[str] = field(default_factory=set)
    _brief: list[tuple[str, str]] = field(default_factory=list)

    def reply(self, messages: Sequence[Message]) -> ModelReply:
        """Run the next advised command, else the next step, else finish."""
        text = self._next(messages)
        tokens_in = sum(estimate_tokens(message["content"]) for message in messages)
        return ModelReply(text, tokens_in, estimate_tokens(text))

    def _next(self, messages: Sequence[Message]) -> str:
        heard = messages[-1]["content"]
        exit_code = _EXIT.match(heard)
        if exit_code is None:
            self._brief = [
                (failing[1], advised)
                for line in heard.splitlines()
                if (failing := _FAILING.match(line))
                for advised in _ADVICE.findall(line)
            ]
        elif exit_code[1] != "0":
            self._advice += _ADVICE.findall(heard)
        if self._step < len(self.plan):
            self._advice += [
                advised for failing, advised in self._brief if self._is_like(failing, self.plan[self._step])
            ]
        while self._advice:
            advised = self._own(self._advice.pop(0))
            step = next(
                (at for at in range(self._step, len(self.plan)) if self._is_like(advised, self.plan[at])), -1
            )
            if step >= 0:
                self._step = step
                break
            if advised not in self._tried and not _PLACEHOLDER.search(advised):
                self._tried.add(advised)
                return _fenced(advised)
        if self._step == len(self.plan):
            return DONE
        self._step += 1
        return _fenced(self.plan[self._step - 1])

    def _own(self, command: str) -> str:
        for other in self.others:
            command = command.replace(other, self.name)
        return command

    def _is_like(self, told: str, command: str) -> bool:
        """Say whether a told command is this one, whatever stands for its placeholders."""
        parts = (re.escape(part) for part in _PLACEHOLDER.split(self._own(told)))
        return re.fullmatch(r"\S+".join(parts), command) is not None


def _fenced(command: str) -> str:
    return f"```bash\n{command}\n```"
