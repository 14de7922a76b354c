"""The budget is hard: whatever is asked for in whatever order, no more is spent than allowed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import ModelRules
from archivist.paths import spending_file
from archivist.reflect.budget import NOTHING_SPENT, Spending, SpendingBook, price, refusal
from archivist.reflect.model.questions import account, lessons
from tests.banks import lay_bank
from tests.commands import PROGRAM, Command
from tests.reflect.model import replay
from tests.reflect.model.replay import serve_replies
from tests.samples import MISSING_MODULE, agent_log

amounts = st.integers(0, 5_000)
wishes = st.lists(st.tuples(amounts, amounts, st.floats(0, 1), st.booleans()), max_size=40)


@pytest.mark.req("N8")
@given(wishes, st.integers(1, 20_000), st.integers(0, 50))
def test_no_order_of_requests_exceeds_a_budget(
    wanted: list[tuple[int, int, float, bool]], most: int, cents: int
) -> None:
    """A request spends what was reserved for it or less, or is never heard of again."""
    rules = ModelRules(day_tokens=most, day_usd=cents / 100, input_usd=2.5, output_usd=10.0)
    book, spent = SpendingBook({}, {}), NOTHING_SPENT
    for number, (tokens_in, tokens_out, share, is_settled) in enumerate(wanted):
        reserved = price(rules, tokens_in, tokens_out)
        if refusal(rules, book.of_day("d"), NOTHING_SPENT, reserved):
            continue
        book = book.reserve(str(number), "d", reserved)
        used = price(rules, int(tokens_in * share), int(tokens_out * share))
        spent = spent.plus(used)
        book = book.settle(str(number), used) if is_settled else book
        assert SpendingBook.read(json.loads(json.dumps(book.write()))) == book
    assert spent.tokens <= book.of_day("d").tokens <= most
    assert spent.micro_usd <= book.of_day("d").micro_usd <= cents * 10_000


def test_a_month_of_days_is_kept_and_each_has_a_budget_of_its_own() -> None:
    book = SpendingBook({}, {})
    for day in range(1, 41):
        name = f"2026-{1 + day // 31:02}-{1 + day % 31:02}"
        book = book.reserve("r", name, Spending(1, 10, 0, 0)).settle("r", Spending(1, 5, 0, 0))
        assert book.of_day(name).tokens == 5
    assert len(book.settled) <= 32
    assert book.settle("unknown", Spending(1, 9, 9, 9)) == book


def test_a_price_is_rounded_up() -> None:
    assert price(ModelRules(input_usd=0.1), 1, 0).micro_usd == 1
    assert price(ModelRules(), 10**6, 10**6).micro_usd == 0


@pytest.mark.req("N8")
def test_of_two_processes_with_a_budget_for_one_exactly_one_spends(
    tmp_path: Path, archivist: Command, home: Path
) -> None:
    """Two projects of one user reflect at once; the budget has room for one request at most."""
    found = replay.openai_reply(lessons.QUESTION.tool, {"lessons": []}, tokens=(1500, 100))
    told = replay.openai_reply(account.QUESTION.tool, {"outcome": []}, tokens=(1500, 100))
    with serve_replies(found, told, found, told) as server:
        settings = {
            "ARCHIVIST_MODEL__NAME": "openai:m",
            "ARCHIVIST_MODEL__URL": server.url,
            "ARCHIVIST_MODEL__DAY_TOKENS": "3200",
        }
        assert archivist("model", "allow", "--yes", **settings).code == 0
        projects = [tmp_path / name for name in ("one", "two")]
        for project in projects:
            lay_bank(project)
            log = agent_log(tmp_path / f"{project.name}.jsonl", MISSING_MODULE, session=f"s-{project.name}")
            assert archivist("capture", str(log), cwd=project).code == 0
        # Both ask only once both have begun: the server holds the first answer back.
        server.replies[0] = replay.Reply(found.body, hangs=True)
        begun = [
            subprocess.Popen(
                [PROGRAM, "reflect", "--json"],
                cwd=project,
                env={**_environment(home), **settings},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for project in projects
        ]
        # One is refused at once, and ends while the other still waits for its answer.
        ended = _wait_for_any(begun)
        server.released.set()
        views = [json.loads(process.communicate(timeout=60)[0])["model"] for process in begun]
    assert len(server.requests) == 1
    assert sorted(view["requests"] for view in views) == [0, 1]
    assert all("budget of 3,200 tokens has no room for the next request" in view["problem"] for view in views)
    assert ended.returncode == 0
    assert spending_file().is_file()
    # What was mined is complete in both.
    for project in projects:
        listed = json.loads(archivist("lessons", "list", "--json", cwd=project).out)["lessons"]
        assert any("freezegun" in lesson["summary"] for lesson in listed)


def _environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(home),
        "ARCHIVIST_HOME": str(home / ".archivist"),
        "PYTHONPATH": ":".join(sys.path),
    }


def _wait_for_any(processes: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Return the process that ends first: it prints just before."""
    pipes = {process.stdout: process for process in processes if process.stdout}
    (first, *_), _, _ = select.select(list(pipes), [], [], 60)
    pipes[first].wait(timeout=60)
    return pipes[first]
