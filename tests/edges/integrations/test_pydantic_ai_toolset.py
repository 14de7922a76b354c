"""The tools of a bank as a pydantic-ai toolset."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from archivist import Bank
from archivist.edges.integrations.pydantic_ai import ArchivistToolset
from archivist.errors import InputError
from archivist.records import Actor, ActorKind
from archivist.tools.functions import DEFAULT, tools

TestModel.__test__ = False


def scripted(*turns: list[tuple[str, dict[str, Any]]]) -> tuple[FunctionModel, list[AgentInfo]]:
    """Return a model that calls these tools turn by turn and then stops, and what it was offered."""
    seen: list[AgentInfo] = []

    def reply(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        if len(seen) > len(turns):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(name, given) for name, given in turns[len(seen) - 1]])

    return FunctionModel(reply), seen


def answers(messages: list[ModelMessage]) -> list[Any]:
    """Return what the tools gave back."""
    return [
        part.content
        for message in messages
        for part in message.parts
        if part.part_kind in ("tool-return", "retry-prompt")
    ]


def test_an_agent_gets_our_tools_with_our_schemas(bank: Bank) -> None:
    model, seen = scripted()
    asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank, "cognitive")]).run("hello"))
    offered = {each.name: each.parameters_json_schema for each in seen[0].function_tools}
    assert offered == {tool.name: tool.schema() for tool in tools("cognitive")}
    assert all(each.description for each in seen[0].function_tools)


def test_what_an_agent_keeps_it_finds_again(bank: Bank) -> None:
    lesson = {"summary": "The checks want a seed", "rule": "IF checks fail THEN pass --seed 7"}
    model, _ = scripted([("lesson_add", lesson)], [("lesson_query", {"text": "seed for the checks"})])
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank)]).run("go"))
    kept, found = answers(run.all_messages())
    assert kept["id"] == "m-001"
    assert found["lessons"][0]["id"] == "m-001"
    assert run.output == "done"


def test_a_mistake_comes_back_to_the_model_with_a_hint(bank: Bank) -> None:
    model, _ = scripted(
        [("recall", {"query": "x", "colour": "red"})],
        [("memory_get", {"id": "nothing"})],
        [("recall", {"query": "x"})],
    )
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank, max_retries=3)]).run("go"))
    wrong, absent, right = answers(run.all_messages())
    assert "colour" in wrong
    assert "it takes query" in wrong
    assert "no record 'nothing'" in absent
    assert right == {"hits": []}


def test_what_is_not_allowed_is_a_failure_and_not_an_exception(bank: Bank) -> None:
    agent_bank = bank.acting_as(Actor(ActorKind.AGENT, "coder"))
    fact = {"category": "convention", "key": "tabs", "value": "four"}
    model, _ = scripted([("knowledge_put", fact)])
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(agent_bank, "layers")]).run("go"))
    (refused,) = answers(run.all_messages())
    assert "may not write knowledge" in refused
    assert len(bank.ledger.denials()) == 1


@pytest.mark.req("C5")
def test_the_librarys_test_model_can_call_the_reading_tools(bank: Bank) -> None:
    bank.lessons.add("The checks want a seed")
    reading = [tool.name for tool in tools("archivist", "cognitive") if tool.is_read_only]
    chosen = [name for name in reading if name != "memory_get"]
    model = TestModel(call_tools=chosen)
    toolset = ArchivistToolset[None](bank, "archivist", "cognitive", id="memory")
    run = asyncio.run(Agent(model, toolsets=[toolset]).run("go"))
    assert len(answers(run.all_messages())) == len(chosen)
    assert toolset.id == "memory"


def test_what_goes_wrong_reaches_the_model_and_ends_no_run(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [("memory_get", {"id": "zz"}), ("recall", {"limit": 3})]
    model, _ = scripted(*([each] for each in wrong * 4), [("recall", {"query": "x"})])
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank)]).run("go"))
    *failed, right = answers(run.all_messages())
    assert ["no record 'zz'" in each for each in failed] == [True, False] * 4
    assert all("it takes query" in each for each in failed[1::2])
    assert right == {"hits": []}
    bank.close()
    model, _ = scripted([("recall", {"query": "x"})])
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank)]).run("go"))
    (broken,) = answers(run.all_messages())
    assert "recall failed with an internal error" in broken
    assert "the tool recall failed" in caplog.text


def test_a_model_has_no_persons_rights_unless_they_are_given(bank: Bank) -> None:
    assert bank.actor.kind is ActorKind.HUMAN
    fact = {"category": "convention", "key": "tabs", "value": "four"}
    turns = [("lesson_add", {"summary": "Push by force"}), ("knowledge_put", fact)]
    model, _ = scripted(turns)
    run = asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank, "all")]).run("go"))
    kept, refused = answers(run.all_messages())
    assert kept["status"] == "candidate"
    assert "agent:pydantic-ai may not write knowledge" in refused
    model, _ = scripted([("knowledge_put", fact)])
    lead = ArchivistToolset[None](bank, "layers", actor=Actor(ActorKind.ORCHESTRATOR, "lead"))
    run = asyncio.run(Agent(model, toolsets=[lead]).run("go"))
    assert answers(run.all_messages())[0]["key"] == "tabs"


def test_sets_are_those_of_every_door(bank: Bank) -> None:
    model, seen = scripted()
    asyncio.run(Agent(model, toolsets=[ArchivistToolset(bank, "default")]).run("go"))
    assert sorted(each.name for each in seen[0].function_tools) == sorted(DEFAULT)
    with pytest.raises(InputError, match="no set of tools 'nothing'") as caught:
        ArchivistToolset(bank, "nothing")
    assert "cognitive" in caught.value.hint
