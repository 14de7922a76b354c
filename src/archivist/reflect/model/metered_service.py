"""Reserve, bound in time, retry and settle each request to a model.

Every request passes here, whoever makes it: the first, one after a tool call, one that corrects a malformed
answer, one more attempt. So nothing is sent that was not reserved before.
"""

from __future__ import annotations

import asyncio
import json

from pydantic_ai import exceptions as failures
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from archivist.config import ModelRules
from archivist.errors import ModelError
from archivist.reflect.budget import BYTES_PER_TOKEN, Meter, Spending, estimate_request, price
from archivist.text import make_legible, shorten_line

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
_LONGEST_PROBLEM = 200
# How many times more than was reserved a server may say that a request took.
_MOST_OVER = 10
# What may pass: any other refusal is the same for the same request.
_PASSING = (
    failures.ModelRateLimitError,
    failures.ModelUnavailableError,
    failures.ModelServerError,
    failures.ModelConnectionError,
    failures.ModelRequestTimeout,
    TimeoutError,
)
_TIMEOUTS = (failures.ModelTimeoutError, failures.ModelRequestTimeout, TimeoutError)
_NO_ANSWER = "what {} sent is no answer of a model"
_URL_HINT = "check model.url, which often ends with /v1"
_KEY_HINT = "check the key: model.key_variable names the variable that holds it"
_HINTS = {401: _KEY_HINT, 403: _KEY_HINT, 404: "check model.url and the name of the model"}


class MeteredModel(WrapperModel):
    """A model whose requests are paid from a meter."""

    def __init__(self, wrapped: Model, rules: ModelRules, meter: Meter) -> None:
        super().__init__(wrapped)
        self._rules = rules
        self._meter = meter

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send a request when the budget has room for it, again while that can help."""
        rules, meter = self._rules, self._meter
        wanted = estimate_request(rules, _request_text(messages, model_request_parameters))
        attempt = 0
        while True:
            # A request that an interrupt breaks off stays reserved: it may be paid for.
            name = meter.reserve(wanted)
            try:
                async with asyncio.timeout(rules.timeout_s):
                    response = await super().request(messages, model_settings, model_request_parameters)
            except (failures.ModelAPIError, TimeoutError) as error:
                # Of a question that timed out nobody knows whether it was answered and charged.
                meter.settle(name, wanted if isinstance(error, _TIMEOUTS) else Spending(requests=1))
                attempt += 1
                asked_s = getattr(error, "retry_after", None)
                pause_s = FIRST_PAUSE_S * 2 ** (attempt - 1) if asked_s is None else asked_s
                may_pass = isinstance(error, _PASSING) and pause_s <= LONGEST_PAUSE_S
                if attempt >= rules.attempts or not may_pass:
                    raise _explain_failure(error, rules) from None
                await asyncio.sleep(pause_s)
            except failures.AgentRunError as error:
                # It was answered, in a form that says nothing about its usage.
                meter.settle(name, wanted)
                if isinstance(error, failures.ContentFilterError):
                    raise
                # A page of a proxy or of another service is no answer of a model.
                raise ModelError(_no_answer(rules), hint=_URL_HINT) from None
            except Exception as error:  # noqa: BLE001 clients raise anything over a body that they did not check
                meter.settle(name, wanted)
                raise _find_own(error) or ModelError(_no_answer(rules), hint=_URL_HINT) from None
            else:
                meter.settle(name, _actual_spending(rules, response, wanted))
                return response


def _request_text(messages: list[ModelMessage], parameters: ModelRequestParameters) -> str:
    tools = [
        (tool.name, tool.description, tool.parameters_json_schema)
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]
    shape = parameters.output_object.json_schema if parameters.output_object else {}
    return ModelMessagesTypeAdapter.dump_json(messages).decode() + json.dumps([tools, shape])


def _actual_spending(rules: ModelRules, response: ModelResponse, wanted: Spending) -> Spending:
    usage = response.usage
    if usage.input_tokens > 0 or usage.output_tokens > 0:
        # A count far beyond what was reserved is wrong, and would use up the day for every project.
        most = _MOST_OVER * wanted.tokens
        counts = (min(max(count, 0), most) for count in (usage.input_tokens, usage.output_tokens))
        return price(rules, *counts)
    # A server that does not count: what was reserved for the question, and the answer by its length.
    size = len(ModelMessagesTypeAdapter.dump_json([response]))
    return price(rules, wanted.input_tokens, size // BYTES_PER_TOKEN)


def _explain_failure(error: Exception, rules: ModelRules) -> ModelError:
    """Return what went wrong with a request, in a line that is safe to show."""
    if isinstance(error, _TIMEOUTS):
        return ModelError(
            f"no answer within {rules.timeout_s:g} s", hint="model.timeout_s sets how long it waits"
        )
    if own := _find_own(error):
        return own
    status = getattr(error, "status_code", 0)
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    words = inner.get("message", inner) if isinstance(inner, dict) else inner
    shown = shorten_line(make_legible(str(words or ("" if status else error))), _LONGEST_PROBLEM).rstrip(".")
    if status:
        hint = _HINTS.get(status, "archivist model try asks it once more")
        return ModelError(f"status {status}: {shown}", hint=hint)
    if shown == "Connection error":
        where = f" to {rules.url}" if rules.url else ""
        return ModelError(f"no connection{where}", hint="start its server, or check model.url")
    return ModelError(f"{_no_answer(rules)}: {shown}", hint=_URL_HINT)


def _find_own(error: BaseException | None) -> ModelError | None:
    """Return our own error, which the clients take for a lost connection."""
    while error is not None and not isinstance(error, ModelError):
        error = error.__cause__
    return error


def _no_answer(rules: ModelRules) -> str:
    return _NO_ANSWER.format(rules.url or "the server")
