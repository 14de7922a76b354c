"""What tests of programs that use Archivist need: a language model that answers from a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

__all__ = ["ScriptedModel", "ScriptedRequest", "ScriptedToolCall"]


@dataclass(frozen=True, slots=True)
class ScriptedToolCall:
    """A reply that calls a tool of the question, before its answer."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """One request that the model was sent: its instructions, the last words, the tools, their results."""

    instructions: str
    prompt: str
    tools: tuple[str, ...]
    returned: tuple[object, ...] = ()
    corrections: tuple[str, ...] = ()


@dataclass(slots=True)
class _Script:
    replies: list[object]
    history: list[ScriptedRequest] = field(default_factory=list)


class ScriptedModel(FunctionModel):
    """A model of pydantic-ai with a queue of replies and a history of what it was asked.

    A reply is a mapping (the arguments of the question's answer), a `ScriptedToolCall`, a text (which is no
    answer) or an exception, which is raised. `tokens` are the input and output tokens that it reports for
    each reply. With no reply left it fails the test.

    Example::

        model = ScriptedModel([{"lessons": []}])
        bank.model.use(model)
        bank.model.read_run("run-1")
        assert "pytest" in model.history[0].prompt
    """

    def __init__(
        self,
        replies: Iterable[Mapping[str, object] | ScriptedToolCall | str | Exception] = (),
        *,
        tokens: tuple[int, int] = (100, 20),
        name: str = "scripted",
    ) -> None:
        script = _Script(list(replies))
        self._script = script

        def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            script.history.append(_read_request(messages, info))
            if not script.replies:
                raise AssertionError(f"no reply left for: {script.history[-1].prompt[:200]}")
            following = script.replies.pop(0)
            if isinstance(following, Exception):
                raise following
            part: Any = TextPart(following) if isinstance(following, str) else None
            if isinstance(following, ScriptedToolCall):
                part = ToolCallPart(following.tool, dict(following.arguments))
            elif isinstance(following, Mapping):
                part = ToolCallPart(info.output_tools[0].name, dict(following))
            usage = RequestUsage(input_tokens=tokens[0], output_tokens=tokens[1])
            return ModelResponse(parts=[part], usage=usage)

        super().__init__(reply, model_name=name)

    @property
    def history(self) -> list[ScriptedRequest]:
        """Return what it was sent, in order."""
        return self._script.history

    @property
    def replies(self) -> list[object]:
        """Return the replies that are left."""
        return self._script.replies


def _read_request(messages: list[ModelMessage], info: AgentInfo) -> ScriptedRequest:
    parts = [part for message in messages for part in message.parts]
    prompts = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    tools = (*info.function_tools, *info.output_tools)
    return ScriptedRequest(
        instructions=info.instructions or "",
        prompt=prompts[-1] if prompts else "",
        tools=tuple(tool.name for tool in tools),
        returned=tuple(part.content for part in parts if isinstance(part, ToolReturnPart)),
        corrections=tuple(str(part.content) for part in parts if isinstance(part, RetryPromptPart)),
    )
