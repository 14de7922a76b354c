"""The commands of the model, as a user types them: nothing is sent before it is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.config import Config, ModelRules
from archivist.edges.cli.model import describe_report
from archivist.reflect.model.questions import account, lessons, wishes
from archivist.testing import ScriptedModel
from tests.attacks.client_logs import SHAPES
from tests.commands import Command, Ran
from tests.reflect.model import replay
from tests.reflect.model.replay import ReplayServer, serve_replies
from tests.reflect.model.runs import GOOD, NO_ACCOUNT, reflected_run
from tests.samples import MISSING_MODULE, agent_log

FOUND = replay.openai_reply(lessons.QUESTION.tool, {"lessons": [{**GOOD, "refines": "m-001"}]})
ACCOUNT = replay.openai_reply(
    account.QUESTION.tool,
    {"outcome": [{"text": "The tests ran after `pip install freezegun`.", "events": [2, 3]}]},
)
WISHES = replay.openai_reply(wishes.QUESTION.tool, {"wishes": []})


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with serve_replies(FOUND, ACCOUNT) as served:
        yield served


@pytest.fixture
def with_model(bank_cli: Command, server: ReplayServer, tmp_path: Path) -> Command:
    """Run commands with the served model in the user's configuration, in a project with one captured run."""
    bank_cli("config", "set", "--global", "model.name", "openai:gpt-test")
    bank_cli("config", "set", "--global", "model.url", server.url)
    log = agent_log(tmp_path / "s-1.jsonl", MISSING_MODULE)
    assert bank_cli("capture", str(log)).code == 0
    return bank_cli


def _reflect(command: Command, *words: str) -> Ran:
    return command("reflect", "--json", *words)


@pytest.mark.req("A9")
def test_a_run_is_read_once_the_model_is_allowed(with_model: Command) -> None:
    assert with_model("model", "allow", "--yes").code == 0
    ran = _reflect(with_model)
    assert ran.code == 0, ran.err
    view = json.loads(ran.out)
    assert view["model"]["admitted"] == 2
    assert (view["model"]["requests"], view["model"]["input_tokens"]) == (2, 1800)
    assert [lesson["summary"] for lesson in view["lessons"] if lesson["status"] == "candidate"] == [
        GOOD["summary"]
    ]
    assert (
        view["runs"][0]["outcome"]
        == "The tests ran after `pip install freezegun`. At the end `pytest` passed."
    )
    shown = json.loads(with_model("lessons", "show", "m-002", "--json").out)
    assert "model" in json.dumps(shown)


@pytest.mark.req("N8")
def test_what_was_spent_is_in_the_status(with_model: Command) -> None:
    with_model("model", "allow", "--yes")
    _reflect(with_model)
    for words in (("status",), ("model", "status")):
        ran = with_model(*words)
        assert "2 requests, 2,040 tokens" in ran.out + ran.err
        today = json.loads(with_model(*words, "--json").out)["model"]["today"]
        assert today == {"requests": 2, "input_tokens": 1800, "output_tokens": 240, "usd": 0.0}


def test_nothing_is_sent_before_it_is_allowed(with_model: Command, server: ReplayServer) -> None:
    ran = with_model("reflect")
    assert "is not allowed yet: archivist model allow" in ran.err
    assert "what was mined is complete" in ran.err
    assert with_model("model", "try").code == 4
    assert server.requests == []


def test_allowing_says_what_leaves_and_where_to(with_model: Command, server: ReplayServer) -> None:
    asked = with_model("model", "allow")
    assert asked.code == 2
    for words in (server.url, "openai:gpt-test", "this machine", "what the user typed", "400,000 tokens"):
        assert words in asked.err
    # Nobody can be asked here: the call was right, so its usage is no help.
    assert asked.err.endswith(
        "Error: allowing a model needs confirmation\nhint: --yes allows it without asking\n"
    )
    assert "Usage" not in asked.err
    assert "is not allowed yet" in with_model("reflect").err


def test_a_permission_is_for_one_model_at_one_address(with_model: Command, server: ReplayServer) -> None:
    with_model("model", "allow", "--yes")
    for key, value in (("model.url", "http://127.0.0.1:9/v1"), ("model.name", "openai:another")):
        ran = with_model("--set", f"{key}={value}", "reflect", "--run", "s-1")
        assert "is not allowed yet" in ran.err, key
    assert server.requests == []
    with_model("model", "forbid")
    assert "is not allowed yet" in with_model("reflect", "--run", "s-1").err
    assert server.requests == []


def test_an_agent_neither_allows_nor_spends(with_model: Command, server: ReplayServer) -> None:
    for words in (("model", "allow", "--yes"), ("model", "forbid"), ("model", "try"), ("model", "refine")):
        assert with_model("--actor", "agent:a", *words).code == 9, words
    with_model("model", "allow", "--yes")
    with_model("--actor", "agent:a", "reflect")
    assert with_model("--actor", "agent:a", "--set", "model.day_usd=9", "status").code == 9
    assert server.requests == []


@pytest.mark.req("N8")
def test_an_estimate_sends_nothing(with_model: Command, server: ReplayServer) -> None:
    ran = with_model(
        "--set", "model.input_usd=3", "--set", "model.output_usd=15", "reflect", "--estimate", "--json"
    )
    view = json.loads(ran.out)
    assert view["total"]["requests"] == 2
    assert 0 < view["total"]["usd"] < 0.1
    assert view["within_budget"]
    assert "is not allowed yet" in view["problem"]
    shown = with_model("reflect", "--estimate", "--run", "s-1")
    assert "of today's budget are left" in shown.err
    assert re.search(r"all +2 +\d,\d{3} ", shown.out)
    assert server.requests == []


def test_no_llm_leaves_it_out(with_model: Command, server: ReplayServer) -> None:
    with_model("model", "allow", "--yes")
    assert "model" not in json.loads(_reflect(with_model, "--no-llm").out)
    assert server.requests == []


def test_a_server_that_fails_leaves_what_was_mined(with_model: Command, server: ReplayServer) -> None:
    with_model("model", "allow", "--yes")
    server.replies[:] = [replay.error_reply(401, "wrong key")]
    ran = with_model("reflect")
    assert ran.code == 0
    assert "status 401: wrong key" in ran.err
    assert "freezegun" in ran.out
    # Its turn comes again.
    server.replies[:] = [FOUND, ACCOUNT]
    assert json.loads(_reflect(with_model, "--run", "s-1").out)["model"]["admitted"] == 2


def test_a_server_that_is_gone_was_not_asked(with_model: Command) -> None:
    with_model("config", "set", "--global", "model.url", "http://127.0.0.1:9/v1")
    with_model("model", "allow", "--yes")
    ran = with_model("--set", "model.attempts=1", "reflect")
    assert ran.code == 0
    assert "the model was not asked: no connection to http://127.0.0.1:9/v1: start its server" in ran.err
    assert "1 run to be read by the model" in ran.out + ran.err


def test_a_model_can_be_tried(with_model: Command, server: ReplayServer) -> None:
    with_model("model", "allow", "--yes")
    ran = with_model("model", "try")
    assert "openai:gpt-test answers: 1 request" in ran.out
    assert "freezegun" not in json.dumps(server.requests)
    server.replies[:] = [replay.error_reply(404, "no such model")]
    ran = with_model("model", "try")
    assert (ran.code, "status 404: no such model" in ran.err) == (8, True)
    assert "hint: check model.url" in ran.err


def test_without_a_model_the_commands_say_so(bank_cli: Command) -> None:
    assert "No model is configured" in bank_cli("model", "status").out
    assert bank_cli("model", "allow", "--yes").code == 4
    assert bank_cli("model", "refine").code == 0


def test_a_missing_key_is_named(with_model: Command, server: ReplayServer) -> None:
    with_model("config", "set", "--global", "model.key_variable", "NO_SUCH_KEY")
    with_model("model", "allow", "--yes")
    assert "NO_SUCH_KEY holds no key" in with_model("reflect").err
    assert server.requests == []


@pytest.mark.req("N7")
def test_a_project_cannot_choose_the_model(with_model: Command, server: ReplayServer, project: Path) -> None:
    for key, value in (("name", '"openai:evil"'), ("url", f'"{server.url}/evil"'), ("day_usd", "1000.0")):
        (project / ".archivist" / "config.toml").write_text(f"[model]\n{key} = {value}\n")
        ran = with_model("reflect")
        assert ran.code == 4
        assert f"model.{key} may not be set by a project" in ran.err
    assert server.requests == []


def test_runs_that_were_reflected_on_without_the_model_are_told_of(
    with_model: Command, tmp_path: Path
) -> None:
    log = tmp_path / "old.jsonl"
    log.write_text(SHAPES["claude.typed"]("old-1", "Mend the parser").replace("2026-03-02", "2020-03-02"))
    with_model("capture", str(log))
    with_model("model", "allow", "--yes")
    with_model("reflect", "--no-llm")
    ran = with_model("reflect")
    assert "the model has not read 1 earlier run: archivist reflect --days " in ran.out + ran.err


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (replay.error_reply(401, "wrong key"), "status 401: wrong key: check the key"),
        (replay.Reply(b"<html>Sign in</html>"), " sent is no answer of a model"),
    ],
    ids=["refused", "a page"],
)
def test_runs_that_the_model_was_not_reached_for_wait_whatever_their_age(
    with_model: Command, server: ReplayServer, tmp_path: Path, reply: replay.Reply, words: str
) -> None:
    for name in ("old-1", "old-2"):
        log = tmp_path / f"{name}.jsonl"
        log.write_text(SHAPES["claude.typed"](name, "Mend it").replace("2026-03-02", "2020-03-02"))
        with_model("capture", str(log))
    with_model("model", "allow", "--yes")
    server.replies[:] = [reply]
    ran = with_model("reflect")
    assert words in ran.err
    assert (f"what {server.url} sent" in ran.err, "check model.url" in ran.err) == ("sent" in words,) * 2
    assert "old-2" in with_model("reflect", "--estimate").out
    for command in (("status",), ("doctor",)):
        ran = with_model(*command)
        assert "3 runs" in ran.out + ran.err, command
    server.replies[:] = [FOUND, ACCOUNT, *[ACCOUNT, WISHES] * 2]
    ran = with_model("reflect")
    assert "no run waits" not in ran.out + ran.err
    assert "requests" in ran.out + ran.err
    for command in (("status",), ("doctor",)):
        ran = with_model(*command)
        assert "archivist reflect asks again" not in ran.out + ran.err, command


def test_a_lesson_says_that_a_model_worded_it(with_model: Command) -> None:
    with_model("model", "allow", "--yes")
    with_model("reflect")
    assert "the language model openai:gpt-test" in with_model("lessons", "show", "m-002").out
    mined = with_model("lessons", "show", "m-001").out
    assert "language model" not in mined
    assert re.search(r"superseded by +m-002\n", mined)


def test_a_lesson_with_a_rule_alone_is_not_counted_as_one_with_a_remedy(
    with_model: Command, server: ReplayServer
) -> None:
    warning = {
        "kind": "warning",
        "summary": "`python -m pytest tests -q` fails in a fresh checkout",
        "rule": "IF `python -m pytest tests -q` fails in a fresh checkout THEN a module is missing",
        "events": [1],
    }
    server.replies[:] = [replay.openai_reply(lessons.QUESTION.tool, {"lessons": [warning]}), ACCOUNT]
    with_model("model", "allow", "--yes")
    ran = with_model("reflect")
    counts = dict(line.rsplit(maxsplit=1) for line in ran.out.splitlines() if line[-1:].isdigit())
    assert (counts["lessons"], counts["with a remedy"]) == ("2", "1")


def test_each_claim_is_told_with_its_fate(with_model: Command) -> None:
    with_model("model", "allow", "--yes")
    ran = with_model("reflect")
    assert "kept as m-002 in place of m-001: The tests import `freezegun`" in ran.out + ran.err


def test_a_report_counts_lessons_and_lines_apart_and_names_a_run_that_was_read_in_part() -> None:
    claims = [
        {"question": "lessons", "text": "a", "fate": "kept as m-001"},
        {"question": "lessons", "text": "b", "fate": "dropped: empty or too long"},
        {"question": "account", "text": "c", "fate": "kept"},
    ]
    view: dict[str, Any] = {
        "model": "m", "requests": 1, "input_tokens": 9, "output_tokens": 1, "usd": 0.0, "seconds": 1.0,
        "proposed": 3, "dropped": {"empty or too long": 1}, "claims": claims, "unfinished": ["r-1"],
        "problem": "the day's budget of 10 tokens has no room for the next request",
    }  # fmt: skip
    text = "\n".join(describe_report(view))
    assert "1 of 2 lessons and 1 of 1 lines of the account hold; dropped: 1 empty or too long" in text
    assert "run r-1 was read in part" in text


@pytest.mark.req("N8")
def test_a_budget_of_the_estimate_is_enough(bank: Bank, tmp_path: Path) -> None:
    """The schemas of the tools are counted before as they are when a request is reserved."""
    run = reflected_run(bank, tmp_path, [("make test", "4 passed", False)])
    model = ScriptedModel([NO_ACCOUNT])
    bank.model.use(model)
    ((_, estimate),) = bank.model.estimate([run])
    bank.config = Config(model=ModelRules(day_tokens=estimate.tokens))
    assert not bank.model.read_run(run).is_unfinished


def test_without_a_model_nothing_is_estimated(bank_cli: Command, project: Path) -> None:
    bank_cli("capture", str(agent_log(project / "s.jsonl", MISSING_MODULE)))
    ran = bank_cli("reflect", "--estimate")
    assert (ran.code, ran.out) == (0, "")
    assert "no model is configured" in ran.err
