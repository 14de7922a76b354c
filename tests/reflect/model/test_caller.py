"""Asking a model: real servers' formats over loopback, retries, refusals, time-outs, the key."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from archivist.config import ModelRules
from archivist.errors import BudgetError, ModelAnswerError, ModelError
from archivist.reflect.budget import Spending
from archivist.reflect.model import metered_service
from archivist.reflect.model.caller_service import ModelCaller, configured_endpoint
from archivist.reflect.model.questions import lessons
from tests.reflect.model import replay
from tests.reflect.model.replay import ReplayServer, serve_replies

TOOL = lessons.QUESTION.tool
FOUND: dict[str, Any] = {
    "lessons": [{"kind": "warning", "summary": "`make tset` fails", "events": [1], "importance": 0.4}]
}
KEY = "sk-" + "not-to-be-seen"


@dataclass
class Purse:
    """A meter that refuses nothing, or everything."""

    is_empty: bool = False
    reserved: list[Spending] = field(default_factory=list)
    settled: list[Spending] = field(default_factory=list)

    def reserve(self, wanted: Spending) -> str:
        if self.is_empty:
            raise BudgetError("the day's budget is used up")
        self.reserved.append(wanted)
        return str(len(self.reserved))

    def settle(self, name: str, actual: Spending) -> None:
        assert int(name) == len(self.reserved)
        self.settled.append(actual)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metered_service, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv("SOME_MODEL_KEY", KEY)


@pytest.fixture
def purse() -> Purse:
    return Purse()


def ask(server: ReplayServer, purse: Purse, provider: str = "openai", **rules: Any) -> Any:
    name = {"openai": "openai:gpt-test", "anthropic": "anthropic:claude-test"}[provider]
    url = server.url if provider == "openai" else server.address
    chosen = ModelRules(**{"name": name, "url": url, "key_variable": "SOME_MODEL_KEY", **rules})
    endpoint = configured_endpoint(chosen)
    assert endpoint is not None
    return ModelCaller(endpoint, chosen, purse).ask(lessons.QUESTION, "<record>\n#1 `make tset`\n</record>")


@pytest.mark.req("A9")
@pytest.mark.parametrize(
    ("provider", "reply", "spent"),
    [
        ("openai", replay.openai_reply(TOOL, FOUND), (900, 120)),
        ("anthropic", replay.anthropic_reply(TOOL, FOUND), (800, 90)),
    ],
)
def test_an_answer_is_validated_and_its_usage_settled(
    purse: Purse, provider: str, reply: replay.Reply, spent: tuple[int, int]
) -> None:
    with serve_replies(reply) as server:
        found = ask(server, purse, provider)
    assert found == lessons.ProposedLessons(
        [lessons.ProposedLesson("warning", "`make tset` fails", [1], importance=0.4)]
    )
    (settled,) = purse.settled
    assert (settled.input_tokens, settled.output_tokens) == spent
    assert purse.reserved[0].tokens >= sum(spent) / 2
    assert KEY in str(server.headers[0])
    assert server.requests[0]["model"] in ("gpt-test", "claude-test")
    assert server.requests[0]["max_tokens"] == 1500


@pytest.mark.req("A9")
def test_a_model_without_tools_is_held_to_a_schema(purse: Purse) -> None:
    with serve_replies(replay.openai_text(json.dumps(FOUND))) as server:
        found = ask(server, purse, output="schema")
    assert found.lessons[0].summary == "`make tset` fails"
    (sent,) = server.requests
    assert "tools" not in sent
    assert sent["response_format"]["type"] == "json_schema"
    # The fields are told in words too: what holds an answer to a schema need not show it to the model.
    told = str(sent["messages"])
    assert "the exact command that worked" in told
    assert "score_importance, then" not in told
    assert purse.reserved[0].input_tokens > len(told) / 6


def test_a_server_on_this_machine_is_asked_for_the_likeliest_answer(purse: Purse) -> None:
    with serve_replies(replay.openai_reply(TOOL, FOUND)) as server:
        ask(server, purse)
    assert server.requests[0]["temperature"] == 0


def test_a_model_that_calls_no_tools_is_told_to_be_asked_by_a_schema(purse: Purse) -> None:
    words = replay.openai_text("I would use a tool.")
    with serve_replies(words, words) as server, pytest.raises(ModelAnswerError) as error:
        ask(server, purse)
    assert "does not have the form that was asked for" in error.value.message
    assert "config set --global model.output schema" in error.value.hint


def test_a_model_is_asked_from_within_a_running_event_loop(purse: Purse) -> None:
    async def cell_of_a_notebook(server: ReplayServer) -> Any:
        return ask(server, purse)

    with serve_replies(replay.openai_reply(TOOL, FOUND)) as server, ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, cell_of_a_notebook(server)).result()
    assert found.lessons[0].summary == "`make tset` fails"


def test_a_server_without_a_key_is_sent_none(purse: Purse) -> None:
    with serve_replies(replay.openai_uncounted(TOOL, FOUND)) as server:
        ask(server, purse, key_variable="")
    assert "authorization" not in server.headers[0]
    # A server that does not count is charged by the length.
    assert purse.settled[0].input_tokens == purse.reserved[0].input_tokens
    assert 0 < purse.settled[0].output_tokens < purse.reserved[0].output_tokens


def test_the_providers_own_key_goes_to_no_other_address(
    monkeypatch: pytest.MonkeyPatch, purse: Purse
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve_replies(replay.openai_reply(TOOL, FOUND)) as server:
        ask(server, purse, key_variable="")
    assert KEY not in str(server.headers)


@pytest.mark.parametrize(
    "hindrance",
    [
        replay.error_reply(429, "slow down", Retry_After="0"),
        replay.error_reply(503, "busy"),
        replay.error_reply(500, "broken"),
    ],
)
def test_what_passes_is_tried_again(purse: Purse, hindrance: replay.Reply) -> None:
    with serve_replies(hindrance, replay.openai_reply(TOOL, FOUND)) as server:
        assert ask(server, purse).lessons
    assert [each.tokens for each in purse.settled] == [0, 1020]


def test_an_overloaded_anthropic_is_tried_again(purse: Purse) -> None:
    with serve_replies(replay.anthropic_overloaded(), replay.anthropic_reply(TOOL, FOUND)) as server:
        assert ask(server, purse, "anthropic").lessons
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ([replay.error_reply(429, "slow down", Retry_After="0")] * 3, "status 429: slow down"),
        ([replay.error_reply(429, "slow down", Retry_After="3600")], "status 429"),
        ([replay.error_reply(401, "wrong key")], "status 401: wrong key"),
        ([replay.error_reply(404, "no such model")], "status 404: no such model"),
        ([replay.Reply(b"", 307, {"Location": "http://127.0.0.1:9/elsewhere"})], "307"),
    ],
)
def test_what_stays_is_told_after_bounded_attempts(
    purse: Purse, replies: list[replay.Reply], words: str
) -> None:
    with serve_replies(*replies) as server, pytest.raises(ModelError, match=words) as caught:
        ask(server, purse)
    assert len(server.requests) == len(replies)
    assert KEY not in caught.value.message + caught.value.hint
    assert sum(each.tokens for each in purse.settled) == 0


def test_a_time_out_is_charged_in_full_and_ends(purse: Purse) -> None:
    hanging = replay.Reply(b"", hangs=True)
    with (
        serve_replies(hanging, hanging) as server,
        pytest.raises(ModelError, match=r"no answer within 0.2 s"),
    ):
        ask(server, purse, timeout_s=0.2, attempts=2)
    assert purse.settled == purse.reserved
    assert len(server.requests) == 2


def test_nobody_at_home(purse: Purse) -> None:
    with serve_replies() as server:
        pass
    with pytest.raises(ModelError, match=rf"^no connection to {server.url}$"):
        ask(server, purse, attempts=2)
    assert len(purse.settled) == 2


@pytest.mark.parametrize(
    "replies",
    [
        [replay.openai_truncated(TOOL)] * 2,
        [replay.openai_refusal()] * 2,
        [replay.openai_reply(TOOL, {"lessons": "none"})] * 2,
        [replay.openai_reply("no_such_tool", {})] * 2,
        [replay.Reply(b"\xff\xfe not json")],
        [replay.Reply(b'{"object": "chat.completion", "choices": []}')],
    ],
)
def test_an_answer_that_is_none_is_told_so(purse: Purse, replies: list[replay.Reply]) -> None:
    with serve_replies(*replies) as server, pytest.raises((ModelAnswerError, ModelError)):
        ask(server, purse)
    # One correction at most: whoever answers nonsense twice will do it again.
    assert len(server.requests) <= 3
    assert len(purse.settled) == len(purse.reserved)


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"object": "chat.completion", "choices": []}'])
def test_a_page_of_another_service_is_no_answer_and_the_address_is_to_be_checked(
    purse: Purse, body: bytes
) -> None:
    """It does not count as asked: the run is read once the address is right."""
    with serve_replies(replay.Reply(body)) as server, pytest.raises(ModelError) as error:
        ask(server, purse)
    assert not isinstance(error.value, ModelAnswerError)
    assert "no answer of a model" in error.value.message
    assert "model.url" in error.value.hint


def test_a_malformed_answer_may_be_corrected_once(purse: Purse) -> None:
    wrong = replay.openai_reply(TOOL, {"lessons": [{"kind": "poem"}]})
    with serve_replies(wrong, replay.openai_reply(TOOL, FOUND)) as server:
        assert ask(server, purse).lessons
    assert "kind" in str(server.requests[1]["messages"])
    assert sum(each.tokens for each in purse.settled) == 2040


@pytest.mark.req("N8")
def test_nothing_is_sent_that_was_not_reserved(purse: Purse) -> None:
    purse.is_empty = True
    with serve_replies(replay.openai_reply(TOOL, FOUND)) as server, pytest.raises(BudgetError):
        ask(server, purse)
    assert server.requests == []


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
