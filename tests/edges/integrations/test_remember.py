"""The decorator for functions that run agents: briefed, learnt from, and never failed by memory."""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.edges.integrations.remember import Run, remember, remember_run
from archivist.errors import InputError
from archivist.records import EpisodeStatus, Event
from archivist.store.filters import equals
from tests.banks import fresh_bank, lay_bank

TASK = "Make the checks of toolshed pass."
REQUIRED = "checks: error: the following arguments are required: --seed"


def attempt(run: Run, brief: str) -> str:
    """Stand in for an agent: it believes its brief, and reads errors."""
    if "--seed 7" not in brief:
        run.call("bash", "./checks", output=REQUIRED, exit_code=2)
    run.call("bash", "./checks --seed 7", output="12 checks passed", exit_code=0)
    return "The checks pass."


def events_of(bank: Bank, run: str) -> list[Event]:
    with bank.reading() as reader:
        return reader.select(Event, equals("run", run), order=("seq",))


@pytest.mark.req("F12")
def test_the_second_run_is_told_what_the_first_one_learnt(bank: Bank) -> None:
    briefs: list[str] = []

    @remember(bank=bank, repo="toolshed")
    def agent(task: str, *, brief: str = "", run: Run | None = None) -> str:
        assert run is not None
        assert run.brief == brief
        assert task == TASK
        briefs.append(brief)
        return attempt(run, brief)

    assert agent(TASK) == "The checks pass."
    assert agent(TASK) == "The checks pass."
    assert briefs[0] == ""
    assert "--seed 7" in briefs[1]
    second, first = bank.runs.episodes()
    assert (first.task, first.project, first.agent) == (TASK, "toolshed", "agent")
    assert first.status is second.status is EpisodeStatus.SUCCESS
    assert [each.text for each in events_of(bank, first.id)][0::3] == [TASK, "The checks pass."]
    assert [each.effect.value for each in bank.audit(second.id)] == ["helpful"]


def test_an_exception_is_recorded_and_raised_again(bank: Bank) -> None:
    @remember(bank=bank, task="divide")
    def agent() -> float:
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        agent()
    (episode,) = bank.runs.episodes()
    assert episode.status is EpisodeStatus.FAILED
    last = events_of(bank, episode.id)[-1]
    assert last.is_error
    assert "ZeroDivisionError" in last.output


def test_an_interrupted_run_was_aborted(bank: Bank) -> None:
    @remember(bank=bank)
    def agent() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent()
    assert bank.runs.episodes()[0].status is EpisodeStatus.ABORTED


def test_the_result_can_tell_that_it_failed(bank: Bank) -> None:
    @remember(bank=bank, succeeded=bool)
    def agent(prompt: str) -> bool:
        return prompt == "good"

    assert agent("good") is True
    assert agent("bad") is False
    assert [each.status for each in bank.runs.episodes()] == [EpisodeStatus.FAILED, EpisodeStatus.SUCCESS]
    assert [each.task for each in bank.runs.episodes()] == ["bad", "good"]


def test_an_async_function_stays_one(bank: Bank) -> None:
    @remember(bank=bank, task=lambda name, **_: f"greet {name}")
    async def agent(name: str, brief: str = "none") -> str:
        await asyncio.sleep(0)
        return f"{name}:{brief}"

    assert inspect.iscoroutinefunction(agent)
    assert asyncio.run(agent("ada")) == "ada:"
    assert asyncio.run(agent("ada", brief="mine")) == "ada:mine"
    assert [each.task for each in bank.runs.episodes()] == ["greet ada", "greet ada"]

    @remember(bank=bank)
    async def slow() -> None:
        await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.ensure_future(slow())
        while not any(each.id.startswith("slow") for each in bank.runs.episodes()):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    statuses = [each.status for each in bank.runs.episodes() if each.id.startswith("slow")]
    assert statuses == [EpisodeStatus.ABORTED]


def test_a_function_without_the_names_is_called_as_it_is(bank: Bank) -> None:
    @remember(bank=bank)
    def agent(first: int, /, *rest: int, **named: int) -> tuple[object, ...]:
        return first, rest, named

    assert agent(1, 2, third=3) == (1, (2,), {"third": 3})
    with pytest.raises(TypeError):
        agent()  # type: ignore[call-arg]


def test_memory_never_fails_the_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "not-a-bank.db").write_text("something else entirely, and long enough to be read", "utf-8")

    @remember
    def without(brief: str = "default") -> str:
        return f"worked {brief}"

    @remember(bank=tmp_path / "not-a-bank.db", task=lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    def broken(run: Run) -> str:
        run.say("still here")
        return "worked"

    with caplog.at_level(logging.WARNING, "archivist.remember"):
        assert without() == "worked "
        assert broken() == "worked"  # type: ignore[call-arg]
    assert "no bank at" in caplog.text
    assert "archivist setup" in caplog.text
    assert "not a bank" in caplog.text or "not-a-bank" in caplog.text


def test_a_bank_that_closes_under_the_run_does_not_matter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = fresh_bank(tmp_path / "p")

    @remember(bank=opened)
    def agent() -> str:
        opened.close()
        return "worked"

    assert agent() == "worked"
    assert "not remembered" in caplog.text


def test_the_nearest_bank_is_found_and_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_bank(tmp_path / "project")
    inner = tmp_path / "project" / "deep"
    inner.mkdir()
    monkeypatch.chdir(inner)

    @remember
    def agent() -> str:
        return "done"

    assert agent() == "done"
    with Bank.open(tmp_path / "project") as opened:
        (episode,) = opened.runs.episodes()
        assert episode.agent == "agent"


async def coroutine(task: str, *, brief: str = "") -> str:
    """Say what it was told."""
    return task + brief


@pytest.mark.parametrize("function", [attempt, coroutine])
def test_what_is_remembered_looks_as_it_did(function: Callable[..., object]) -> None:
    made = remember(function)
    for look in (
        inspect.signature,
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
        inspect.getdoc,
    ):
        assert look(made) == look(function), look
    assert (made.__name__, made.__qualname__, made.__module__) == (
        function.__name__,
        function.__qualname__,
        function.__module__,
    )


def test_what_is_built_in_is_called_as_it_is(bank: Bank) -> None:
    assert remember(bank=bank)(max)(3, 7) == 7
    assert [each.status for each in bank.runs.episodes()] == [EpisodeStatus.SUCCESS]


def test_it_needs_no_library_and_the_others_say_what_installs_theirs() -> None:
    code = (
        "import sys\n"
        "for name in ('langgraph', 'anthropic', 'agents', 'pydantic_ai', 'opentelemetry'):\n"
        "    sys.modules[name] = None\n"
        "import archivist.edges.integrations.remember, archivist.edges.integrations.openai_agents\n"
        "from importlib import import_module\n"
        "from archivist.errors import InputError\n"
        "for name in ('langgraph', 'anthropic_memory', 'pydantic_ai'):\n"
        "    try:\n"
        "        import_module(f'archivist.edges.integrations.{name}')\n"
        "    except InputError as error:\n"
        "        print(error.message, '|', error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        'langgraph is not installed | pip install "archivist-memory[langgraph]"',
        'anthropic is not installed | pip install "archivist-memory[anthropic]"',
        'pydantic-ai is not installed | pip install "archivist-memory[pydantic-ai]"',
    ]


def test_output_that_is_no_text_is_kept_and_nothing_of_it_is_logged(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    @remember(bank=bank)
    def agent(task: str, *, run: Run) -> str:
        run.call("bash", "env", output=f"{task} in the environment")
        run.call("bash", "cat x", output="caf\udce9", exit_code=0)
        return "done \ud800"

    assert agent("find it \ud800") == "done \ud800"  # type: ignore[call-arg]
    (episode,) = bank.runs.episodes()
    assert episode.status is EpisodeStatus.SUCCESS
    assert "caf?" in [each.output for each in events_of(bank, episode.id)]
    assert caplog.text == ""

    @remember(bank=bank)
    def closing(task: str) -> str:
        bank.close()
        return task

    closing("a secret task")
    assert "not remembered" in caplog.text
    assert "secret" not in caplog.text


class Agents:
    """What can be called, and has not run when it returns."""

    @staticmethod
    async def coroutine(task: str) -> str:
        """Fail, once it is awaited."""
        await asyncio.sleep(0)
        raise ValueError(task)

    async def __call__(self, task: str) -> str:
        return await self.coroutine(task)


@pytest.mark.parametrize(
    "agent",
    [
        partial(Agents.coroutine, "boom"),
        partial(partial(Agents()), task="boom"),
    ],
)
def test_a_run_is_over_when_its_result_is(bank: Bank, agent: Any) -> None:
    async def whole() -> None:
        result = remember(bank=bank)(agent)()
        assert all(each.status is EpisodeStatus.RUNNING for each in bank.runs.episodes())
        with pytest.raises(ValueError, match="boom"):
            await result

    asyncio.run(whole())
    (episode,) = bank.runs.episodes()
    assert episode.status is EpisodeStatus.FAILED
    assert "boom" in events_of(bank, episode.id)[-1].output


class Caller:
    """An agent that is an object."""

    def __call__(self, task: str) -> str:
        return task


def test_what_is_called_like_a_function_is_remembered_by_its_kind(bank: Bank) -> None:
    assert remember(bank=bank)(Caller())("t") == "t"
    assert remember(bank=bank)(partial(Caller(), "u"))() == "u"
    assert [(each.agent, each.status.value) for each in bank.runs.episodes()] == [("Caller", "success")] * 2


def test_a_judge_or_a_task_that_fails_costs_no_run(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    @remember(bank=bank, succeeded=lambda result: result["missing"])
    def judged(run: Run) -> dict[str, str]:
        run.call("bash", "true", exit_code=0)
        return {}

    @remember(bank=bank, task=lambda: str(1 / 0))
    def named() -> str:
        return "done"

    assert judged() == {}  # type: ignore[call-arg]
    assert named() == "done"
    second, first = bank.runs.episodes()
    assert first.status is EpisodeStatus.PARTIAL
    assert second.status is EpisodeStatus.SUCCESS
    assert "not judged: KeyError at test_remember.py" in caplog.text
    assert "the task is not known: ZeroDivisionError" in caplog.text


def test_a_run_that_is_cancelled_at_its_start_was_aborted(tmp_path: Path) -> None:
    place = tmp_path / "p"
    lay_bank(place)

    @remember(bank=place)
    async def slow() -> None:
        await asyncio.sleep(60)

    async def cancelled() -> None:
        for delay_ms in (0, 1, 2, 4, 8):
            task = asyncio.ensure_future(slow())
            await asyncio.sleep(delay_ms / 1000)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    with Bank.open(place) as bank:
        assert {each.status for each in bank.runs.episodes()} == {EpisodeStatus.ABORTED}


def test_a_run_is_recorded_by_an_orchestrator_and_no_person(bank: Bank) -> None:
    @remember(bank=bank)
    def agent() -> str:
        return "done"

    agent()
    with bank.reading() as reader:
        actors = {str(each.entry.actor) for each in reader.changes()}
    # What it learns from a run the bank writes in its own name.
    assert actors == {"orchestrator:agent", "archivist"}


def test_a_generator_is_refused(bank: Bank) -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        yield 1

    for function in (generator, async_generator, partial(generator)):
        with pytest.raises(InputError, match="a generator cannot be remembered"):
            remember(bank=bank)(function)


def test_a_block_is_briefed_and_its_run_is_over_when_it_is(bank: Bank) -> None:
    with remember_run(bank=bank, task=TASK, repo="toolshed") as run:
        assert [each.status for each in bank.runs.episodes()] == [EpisodeStatus.RUNNING]
        run.result = attempt(run, run.brief)

    async def whole() -> None:
        async with remember_run(bank=bank, task=TASK, repo="toolshed", agent="second") as run:
            assert "--seed 7" in run.brief
            run.result = attempt(run, run.brief)

    asyncio.run(whole())
    second, first = bank.runs.episodes()
    assert (first.status, second.status) == (EpisodeStatus.SUCCESS, EpisodeStatus.SUCCESS)
    assert (first.agent, second.agent, first.task) == ("agent", "second", TASK)
    assert len(events_of(bank, first.id)) == 4
    assert len(events_of(bank, second.id)) == 3


def test_a_block_that_raises_has_failed_and_its_result_can_be_judged(bank: Bank) -> None:
    with pytest.raises(ValueError, match="boom"), remember_run(bank=bank):
        raise ValueError("boom")
    with remember_run(bank=bank, succeeded=lambda result: result == "good") as run:
        run.result = "bad"

    async def cancelled() -> None:
        async with remember_run(bank=bank):
            await asyncio.sleep(60)

    async def whole() -> None:
        task = asyncio.ensure_future(cancelled())
        while len(bank.runs.episodes()) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(whole())
    statuses = [each.status.value for each in bank.runs.episodes()]
    assert statuses == ["aborted", "failed", "failed"]
