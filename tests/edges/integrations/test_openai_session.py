"""Sessions of the OpenAI Agents SDK in a bank: in order, whole, apart from each other, and learnt from."""

from __future__ import annotations

import asyncio
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.edges.integrations.openai_agents import ArchivistSession
from archivist.errors import InputError
from archivist.recall.query import Query
from archivist.records import EpisodeStatus, Event
from archivist.store.filters import equals
from tests.banks import fresh_bank

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
items: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts}),
    st.fixed_dictionaries(
        {
            "type": st.just("function_call"),
            "call_id": st.text("abc", min_size=1, max_size=3),
            "name": st.just("look"),
            "arguments": st.dictionaries(st.text("xy", max_size=2), st.integers()).map(json.dumps),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "encrypted_content": st.text("aZ9+/=", max_size=80)},
        optional={"summary": st.just([])},
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(items, max_size=4)),
        st.tuples(st.just("pop"), st.none()),
        st.tuples(st.just("get"), st.one_of(st.none(), st.integers(-1, 5))),
        st.tuples(st.just("clear"), st.none()),
    ),
    max_size=10,
)


async def follow(session: Any, asked: list[tuple[str, Any]]) -> list[object]:
    """Do the steps and return every answer."""
    answers: list[object] = []
    for verb, what in asked:
        match verb:
            case "add":
                answers.append(await session.add_items(what))
            case "pop":
                answers.append(await session.pop_item())
            case "get":
                answers.append(await session.get_items(what))
            case _:
                answers.append(await session.clear_session())
    return answers


@settings(max_examples=40)
@given(steps)
def test_it_answers_as_the_sdks_own_session(asked: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, fresh_bank(folder) as opened:
        theirs = SQLiteSession("s")
        ours = asyncio.run(follow(ArchivistSession("s", opened), asked))
        assert ours == asyncio.run(follow(theirs, asked))
        theirs.close()


def test_it_is_a_session_to_the_sdk(bank: Bank) -> None:
    session = ArchivistSession("s", bank, session_settings=SessionSettings(limit=2))
    assert isinstance(session, Session)

    async def work() -> None:
        await session.add_items([{"role": "user", "content": str(number)} for number in range(4)])
        assert [each["content"] for each in await session.get_items()] == ["2", "3"]  # type: ignore[typeddict-item]
        assert len(await session.get_items(3)) == 3
        assert await session.get_items(0) == []

    asyncio.run(work())


def test_sessions_are_apart_and_many_can_write_at_once(bank: Bank) -> None:
    def write(number: int) -> None:
        session = ArchivistSession(f"s{number % 4}", bank)
        asyncio.run(session.add_items([{"role": "user", "content": f"{number}.{part}"} for part in range(3)]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    for number in range(4):
        found = asyncio.run(ArchivistSession(f"s{number}", bank).get_items())
        said = [str(each["content"]) for each in found]  # type: ignore[typeddict-item]
        assert len(said) == 18
        # What was added together stands together.
        assert [text.split(".")[1] for text in said] == ["0", "1", "2"] * 6
        assert {int(text.split(".")[0]) % 4 for text in said} == {number}
    assert bank.ledger.verify().is_whole


@function_tool(name_override="bash")
def run_checks(command: str) -> str:
    """Run a command."""
    if "--seed" in command:
        return "12 checks passed"
    return "Exit code 2\nchecks: error: the following arguments are required: --seed"


def test_the_sdks_runner_remembers_and_the_bank_learns(bank: Bank) -> None:
    set_tracing_disabled(True)
    failed, fixed = ({"command": f"./checks{rest}"} for rest in ("", " --seed 7"))
    model = ScriptedModel(
        [
            [function_call("bash", json.dumps(failed), call_id="call_1")],
            [function_call("bash", json.dumps(fixed), call_id="call_2")],
            [assistant_message("The checks pass.")],
            [assistant_message("You asked for the checks.")],
        ]
    )
    agent = Agent(name="worker", model=model, tools=[run_checks])
    session = ArchivistSession("run-7", bank)

    async def work() -> str:
        await Runner.run(agent, "Make the checks pass.", session=session)
        second = await Runner.run(agent, "What did I ask for?", session=session)
        return str(second.final_output)

    assert asyncio.run(work()) == "You asked for the checks."
    history = asyncio.run(session.get_items())
    assert [each.get("type", "message") for each in history].count("function_call") == 2
    assert history[0] == {"content": "Make the checks pass.", "role": "user"}

    (done,) = asyncio.run(session.finish(status=EpisodeStatus.SUCCESS, project="toolshed"))
    assert done.run == "run-7"
    episode = bank.runs.episode("run-7")
    assert (episode.agent, episode.project, episode.task) == (
        "openai-agents",
        "toolshed",
        "Make the checks pass.",
    )
    with bank.reading() as reader:
        calls = [each for each in reader.select(Event, equals("run", "run-7"), order=("seq",)) if each.tool]
    assert [(each.text, each.is_error) for each in calls] == [
        ("./checks", True),
        ("./checks --seed 7", False),
    ]
    assert done.outcome.created == 1, done.outcome
    (lesson,) = bank.lessons.query(Query(text="checks seed"))
    assert "--seed" in lesson.summary + lesson.rule
    before = bank.doctor.status()
    asyncio.run(session.finish(status=EpisodeStatus.SUCCESS, project="toolshed"))
    assert bank.doctor.status() == before


def test_an_empty_session_has_nothing_to_hand_in(bank: Bank) -> None:
    assert asyncio.run(ArchivistSession("none", bank).finish()) == []


def test_secrets_stay_out_and_what_only_the_service_reads_stays_as_it_is(bank: Bank) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    sealed = "gAAAA" + "Qw9xYz" * 40
    session = ArchivistSession("s", bank)
    asyncio.run(
        session.add_items(
            [
                {"role": "user", "content": [{"type": "input_text", "text": f"push with {token}"}]},
                {
                    "type": "function_call",
                    "call_id": "c",
                    "name": "push",
                    "arguments": json.dumps({"token": token, "n": 1}),
                },
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed},
            ]
        )
    )
    found: list[Any] = list(asyncio.run(session.get_items()))
    assert token not in repr(found)
    assert json.loads(found[1]["arguments"])["n"] == 1
    assert found[2]["encrypted_content"] == sealed
    assert b"q7R8" not in bank.path.read_bytes()


def test_bad_items_and_names_are_refused_and_nothing_is_added(bank: Bank) -> None:
    session = ArchivistSession("s", bank)
    bad: Any = [{"role": "user", "content": "fine"}, {"role": "user", "content": object()}]
    with pytest.raises(InputError):
        asyncio.run(session.add_items(bad))
    assert asyncio.run(session.get_items()) == []
    with pytest.raises(InputError):
        asyncio.run(ArchivistSession("", bank).get_items())


def test_a_cancelled_caller_does_not_leave_half_a_history(bank: Bank) -> None:
    session = ArchivistSession("s", bank)

    async def work() -> int:
        task = asyncio.ensure_future(session.add_items([{"role": "user", "content": "kept"}] * 50))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(await session.get_items())

    assert asyncio.run(work()) in (0, 50)


@pytest.mark.parametrize("agent", ["../../escaped", "a/b", "x" * 300, "nul\0", ".."])
def test_the_name_of_an_agent_is_no_path(bank: Bank, tmp_path: Path, agent: str) -> None:
    session = ArchivistSession("s", bank)
    asyncio.run(session.add_items([{"role": "user", "content": "private words"}]))
    (finished,) = asyncio.run(session.finish(agent=str(tmp_path / "escaped") if agent == ".." else agent))
    assert finished.run == "s"
    assert not list(tmp_path.rglob("escaped*"))


def test_settings_may_be_a_mapping(bank: Bank) -> None:
    session = ArchivistSession("s", bank, session_settings={"limit": 2})
    said = [{"role": "user", "content": str(number)} for number in range(4)]
    asyncio.run(session.add_items(said))  # type: ignore[arg-type]
    assert asyncio.run(session.get_items()) == said[2:]
    assert session.session_settings == SessionSettings(limit=2)
    model = ScriptedModel([[assistant_message("Done.")]])
    done = asyncio.run(Runner.run(Agent("a", model=model), "Go on", session=session))
    assert done.final_output == "Done."
    assert len(asyncio.run(ArchivistSession("s", bank).get_items())) == 6
    for wrong in ({"limit": "many"}, {"limits": 2}):
        with pytest.raises(InputError, match="session_settings"):
            ArchivistSession("s", bank, session_settings=wrong)
