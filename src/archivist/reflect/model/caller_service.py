"""Ask a model one question: over pydantic-ai, metered, bounded in time, and retried where that can help.

The key is sent to the configured host only: redirects are not followed, and it is in no error.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from archivist.config import ModelRules
from archivist.errors import ConfigError, ModelAnswerError
from archivist.reflect.budget import Meter
from archivist.reflect.model.questions import ModelQuestion
from archivist.text import make_legible, shorten_line

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

R = TypeVar("R")
# The first answer, a few calls of tools, and a correction of an answer that is malformed.
_MOST_REQUESTS = 6
_MOST_TOOL_CALLS = 12
_LONGEST_PROBLEM = 200
_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_INSTALL = "pip install 'archivist-memory[llm]'"


class Endpoint(NamedTuple):
    """Which model is asked, and where."""

    provider: str
    model: str
    url: str
    key_variable: str

    @property
    def label(self) -> str:
        """Return what consent is bound to, and what people are shown."""
        return f"{self.provider}:{self.model} at {self.url}"

    @property
    def is_local(self) -> bool:
        """Say whether it is on this machine."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")

    @property
    def key(self) -> str:
        """Return the key from the environment; empty for a server that needs none."""
        return os.environ.get(self.key_variable, "").strip() if self.key_variable else ""


def configured_endpoint(rules: ModelRules) -> Endpoint | None:
    """Return the endpoint that the user configured, or None."""
    provider, _, model = rules.name.partition(":")
    if not model:
        return None
    # The provider's own key must not go to another host because a variable happens to be set.
    variable = rules.key_variable or ("" if rules.url else _KEYS[provider])
    return Endpoint(provider, model, rules.url.rstrip("/") or _URLS[provider], variable)


def is_installed() -> bool:
    """Say whether the packages of the extra are there."""
    from importlib.util import find_spec

    return find_spec("pydantic_ai") is not None and find_spec("httpx2") is not None


class ModelCaller:
    """Ask questions of one model within one budget."""

    def __init__(self, target: Endpoint | Model, rules: ModelRules, meter: Meter) -> None:
        if not is_installed():
            raise ConfigError("a language model needs the extra llm", hint=_INSTALL)
        self._target = target
        self._rules = rules
        self._meter = meter

    def ask(self, question: ModelQuestion[R], text: str, tools: Sequence[Callable[..., Any]] = ()) -> R:
        """Return the validated answer; raise ModelError, BudgetError or ModelAnswerError."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._ask(question, text, tools))
        # A notebook runs a loop in this thread, and a thread has one at most.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self._ask(question, text, tools)).result()

    async def _ask(self, question: ModelQuestion[R], text: str, tools: Sequence[Callable[..., Any]]) -> R:
        import httpx2

        from archivist.reflect.model.transport_service import BoundedTransport

        if not isinstance(self._target, Endpoint):
            return await self._run(self._target, question, text, tools)
        timeout_s, key = self._rules.timeout_s, self._target.key
        # The clients refuse to have no key, which a local server does not need.
        hooks: Any = {} if key else {"request": [_drop_key]}
        async with httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout_s, event_hooks=hooks, transport=BoundedTransport()
        ) as client:
            return await self._run(_open_model(self._target, client), question, text, tools)

    async def _run(
        self, model: Model, question: ModelQuestion[R], text: str, tools: Sequence[Callable[..., Any]]
    ) -> R:
        # Their import takes a second, which only reflection with a model pays.
        from pydantic_ai import Agent, NativeOutput, ToolOutput, UsageLimits
        from pydantic_ai.exceptions import AgentRunError, UserError
        from pydantic_ai.settings import ModelSettings

        from archivist.reflect.model.metered_service import MeteredModel

        has_tools = self._rules.output == "tools"
        settings = ModelSettings(max_tokens=self._rules.answer_tokens, timeout=self._rules.timeout_s)
        is_local = isinstance(self._target, Endpoint) and self._target.is_local
        is_told = self._rules.name.startswith("openai:") and not model.profile.get(
            "openai_supports_reasoning"
        )
        if is_local and is_told:
            # The likeliest answer, so that a small model slips less; models that reason refuse to be told.
            settings["temperature"] = 0.0
        shape = ToolOutput if has_tools else NativeOutput
        agent = Agent(
            MeteredModel(model, self._rules, self._meter),
            output_type=shape(question.answer, name=question.tool),
            instructions=f"{question.instructions} {question.tool_words if has_tools else ''}".strip(),
            tools=list(tools) if has_tools else [],
            retries=1,
            model_settings=settings,
        )
        limits = UsageLimits(request_limit=_MOST_REQUESTS, tool_calls_limit=_MOST_TOOL_CALLS)
        try:
            result = await agent.run(text, usage_limits=limits)
        except (AgentRunError, UserError) as error:
            problem = shorten_line(make_legible(str(error)), _LONGEST_PROBLEM)
            key = self._target.key if isinstance(self._target, Endpoint) else ""
            problem = problem.replace(key, "[key]") if key else problem
            if "output retries" in problem:
                problem = "it does not have the form that was asked for, nor does its correction"
            other = "schema" if has_tools else "tools"
            raise ModelAnswerError(
                f"the model gave no usable answer: {problem}",
                hint=f"try archivist config set --global model.output {other}, or a larger model",
            ) from None
        return result.output


async def _drop_key(request: httpx2.Request) -> None:
    for name in ("authorization", "x-api-key"):
        request.headers.pop(name, None)


def _open_model(endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """Return the model behind an endpoint. The clients' own retries are off: they would not be metered."""
    key = endpoint.key
    if endpoint.provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AsyncAnthropic(
            api_key=key or "none", base_url=endpoint.url, max_retries=0, http_client=client
        )
        return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=anthropic))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = AsyncOpenAI(api_key=key or "none", base_url=endpoint.url, max_retries=0, http_client=client)
    # OpenAI's newer models know only `max_completion_tokens`, many other servers only `max_tokens`.
    is_openai = endpoint.url == _URLS["openai"]
    profile = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=is_openai,
        supports_json_schema_output=True,
        # Many servers constrain an answer by its schema and do not show the model what its fields mean.
        native_output_requires_schema_in_instructions=not is_openai,
    )
    provider = OpenAIProvider(openai_client=openai)
    return OpenAIChatModel(endpoint.model, provider=provider, profile=profile)
