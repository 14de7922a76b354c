"""A host agent does the reflecting itself: by MCP over stdio, and by plain tool schemas without a server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from archivist import Bank
from archivist.records import Provenance, Status
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

COMMAND = str(Path(sys.executable).parent / "archivist")
# A tool's name and arguments → its answer, or the text of its refusal.
Door = Callable[[str, Mapping[str, object]], Any]
RULE = "IF `python -m pytest tests -q` cannot import freezegun THEN run `pip install freezegun`"


@pytest.fixture
def captured(archivist: Command, project: Path) -> Path:
    """Return a project whose bank has captured a run and not reflected on it."""
    assert archivist("init").code == 0
    log = agent_log(project / "s-1.jsonl", MISSING_MODULE, project=project.name)
    assert archivist("capture", str(log)).code == 0
    return project


def _over_stdio(project: Path, work: Callable[[Door], Any], sets: str = "default") -> Any:
    """Let a host agent work with the tools of `archivist mcp`, after it read the prompt."""

    async def talk() -> Any:
        server = StdioServerParameters(
            command=COMMAND, args=["mcp", "--tools", sets], cwd=project, env=dict(os.environ)
        )
        async with Client(server) as client:
            (asked,) = (await client.get_prompt("reflect", {"run": "s-1"})).messages
            assert isinstance(asked.content, TextContent)
            offered = {tool.name for tool in (await client.list_tools()).tools}
            loop = asyncio.get_running_loop()

            async def ask(name: str, given: Mapping[str, object]) -> Any:
                assert name in offered
                answer = await client.call_tool(name, dict(given))
                (said,) = answer.content
                assert isinstance(said, TextContent)
                return said.text if answer.is_error else answer.structured_content

            def call(name: str, given: Mapping[str, object]) -> Any:
                return asyncio.run_coroutine_threadsafe(ask(name, given), loop).result(30)

            return await asyncio.to_thread(work, call)

    return asyncio.run(talk())


def _by_schemas(archivist: Command, work: Callable[[Door], Any]) -> Any:
    """Let any tool-using model work: the prompt and the schemas are printed, a call is one command."""
    prompt = archivist("tools", "prompt", "--run", "s-1", "--set", "archivist").out
    schemas = json.loads(archivist("tools", "--format", "openai", "--set", "archivist").out)
    offered = {each["function"]["name"]: each["function"]["parameters"] for each in schemas}
    assert {"memory_get", "recall", "create_lessons"} <= offered.keys()
    assert all(name in prompt for name in ("'s-1'", "memory_get", "recall", "create_lessons"))

    def call(name: str, given: Mapping[str, object]) -> Any:
        assert given.keys() <= offered[name]["properties"].keys()
        ran = archivist("tools", "call", name, json.dumps(given))
        return ran.err if ran.code else json.loads(ran.out)

    return work(call)


def _reflect(call: Door) -> dict[str, Any]:
    """Find the calls of the run as the prompt says, then claim what they show and what they do not."""
    assert call("memory_get", {"id": "s-1"})["kind"] == "episode"
    hits = call("recall", {"query": "pip install freezegun pytest", "kinds": ["event"], "limit": 20})["hits"]
    ids = {hit["text"].partition(": ")[2]: hit["id"] for hit in reversed(hits)}
    failed, worked = ids["python -m pytest tests -q"], ids["pip install freezegun"]
    assert "No module named 'freezegun'" in call("memory_get", {"id": failed})["text"]
    claims = {
        "supported": {"summary": "The tests need `freezegun`", "rule": RULE, "evidence": [failed, worked]},
        "invented": {"summary": "The tests need `redis-server`", "evidence": [failed, worked]},
        "never run": {"summary": "Install it first: `pip install tests`", "evidence": [failed]},
        "remedy not cited": {"summary": "The tests need `freezegun`", "rule": RULE, "evidence": [failed]},
        "no such event": {"summary": "The tests need `freezegun`", "evidence": ["s-1#99"]},
    }
    return {name: call("lesson_add", {**claim, "run": "s-1"}) for name, claim in claims.items()}


@pytest.mark.req("A19")
@pytest.mark.parametrize("door", ["mcp", "schemas"])
def test_a_supported_claim_waits_as_a_candidate_and_an_unsupported_one_is_refused(
    door: str, archivist: Command, captured: Path
) -> None:
    answers = _over_stdio(captured, _reflect) if door == "mcp" else _by_schemas(archivist, _reflect)
    assert (answers["supported"]["result"], answers["supported"]["status"]) == ("kept", "candidate")
    assert "no cited event shows 'redis-server'" in answers["invented"]
    assert "no cited event shows 'pip install tests'" in answers["never run"]
    assert "no cited event shows 'pip install freezegun'" in answers["remedy not cited"]
    assert "no record for evidence 's-1#99'" in answers["no such event"]
    with Bank.open(captured) as bank:
        (lesson,) = (bank.lessons.get(answers["supported"]["id"]),)
        assert (lesson.status, lesson.provenance) == (Status.CANDIDATE, Provenance.SUGGESTED)
        assert (lesson.is_waiting, len(lesson.evidence.events), lesson.evidence.episodes) == (
            True,
            2,
            ("s-1",),
        )
    # Nobody is told what waits; the run itself, reflected on, says the same in its own words.
    assert RULE not in archivist("brief", "--task", "run the tests").out


@pytest.mark.req("A19")
def test_several_claims_are_judged_one_by_one(archivist: Command, captured: Path) -> None:
    def keep(call: Door) -> Any:
        good = {"summary": "`python -m pytest tests -q` needs `freezegun`", "evidence": ["s-1"]}
        bad = {"summary": "Use `tox -e py311` for the tests", "evidence": ["s-1"]}
        return call("create_lessons", {"lessons": [good, bad], "run": "s-1"})["lessons"]

    for kept, refused in (_over_stdio(captured, keep, "archivist"), _by_schemas(archivist, keep)):
        assert kept["result"] in ("kept", "met again")
        assert refused["result"].startswith("refused: its evidence does not support it: no cited event shows")
