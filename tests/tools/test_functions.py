"""The functions that agents call: their names, their schemas, their answers and their limits."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import AccessError, InputError, NotFoundError
from archivist.records import Actor, Episode
from archivist.tools import prompts
from archivist.tools.functions import Toolset, for_anthropic, for_mcp, for_openai, select_tools, tools
from archivist.tools.functions import call as call_tool
from archivist.tools.registry import LIMIT_TOKENS, page, text_page

# What the document of cognitive memory gives: parameters, and those that must be given.
DOCUMENTED: dict[str, tuple[set[str], set[str]]] = {
    "recall_search": ({"query", "role", "issue", "min_importance", "limit", "cycle_range"}, {"query"}),
    "recall_by_cycle": (
        {"start_cycle", "end_cycle", "role", "min_importance"},
        {"start_cycle", "end_cycle"},
    ),
    "archival_search": ({"query", "type", "date_range", "limit"}, {"query"}),
    "archival_insert": ({"content", "type", "roles", "issues", "importance"}, {"content", "type"}),
    "core_memory_update": ({"section", "content"}, {"section", "content"}),
    "core_memory_append": ({"section", "item"}, {"section", "item"}),
    "memory_log": (
        {"action", "importance", "type", "tags", "content", "issue_refs", "pr_refs"},
        {"action", "importance", "type", "tags", "content"},
    ),
}
LOGGED = {
    "action": "Review the parser",
    "importance": 8,
    "type": "decision",
    "tags": ["parser"],
    "content": "The parser moves to its own module, see #84",
}


def call(bank: Bank, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool answers, as an agent gets it."""
    answer: dict[str, Any] = json.loads(json.dumps(call_tool(bank, name, arguments)))
    return answer


@pytest.mark.req("C5")
def test_the_seven_functions_have_the_documented_names_parameters_and_defaults() -> None:
    offered = {tool.name: tool.schema() for tool in tools(Toolset.COGNITIVE)}
    # Beside them: reading core memory, and the two steps of the dispatch flow that are no function there.
    assert set(offered) == {*DOCUMENTED, "core_memory_read", "cycle_start", "reflect"}
    for name, (parameters, required) in DOCUMENTED.items():
        schema = offered[name]
        assert parameters <= set(schema["properties"])
        assert set(schema["required"]) == required
        assert schema["additionalProperties"] is False
    assert offered["recall_search"]["properties"]["limit"]["default"] == 5
    assert offered["archival_search"]["properties"]["limit"]["default"] == 5


@pytest.mark.req("C5")
def test_schemas_are_what_each_provider_takes() -> None:
    every = tools()
    assert [each["function"]["name"] for each in for_openai(every)] == [tool.name for tool in every]
    assert all(each["input_schema"]["type"] == "object" for each in for_anthropic(every))
    for each in for_mcp(every):
        assert each["inputSchema"]["type"] == "object"
        assert {"readOnlyHint", "idempotentHint"} <= set(each["annotations"])
        assert 20 <= len(each["description"]) <= 300
    described = [
        prop for each in for_anthropic(every) for prop in each["input_schema"]["properties"].values()
    ]
    assert not any("$ref" in json.dumps(prop) for prop in described)


@pytest.mark.req("C5")
@pytest.mark.req("C6")
def test_an_agent_goes_through_a_cycle_by_functions_alone(bank: Bank) -> None:
    call(bank, "core_memory_update", {"section": "status", "content": {"sprint": "Ship the parser"}})
    call(bank, "core_memory_append", {"section": "blockers", "item": "waiting for #84"})
    logged = call(bank, "memory_log", LOGGED)
    assert logged["cycle"] == 1
    found = call(bank, "recall_search", {"query": "what blocks #84?"})
    assert found["entries"][0]["action"] == "Review the parser"
    by_cycle = call(bank, "recall_by_cycle", {"start_cycle": 1, "end_cycle": 1})
    assert by_cycle["total"] == 1
    kept = call(bank, "archival_insert", {"content": "# Parsers\n\nWritten by hand.", "type": "decision"})
    assert kept["pieces"] == 1
    archived = call(bank, "archival_search", {"query": "parsers by hand", "type": "decision"})
    assert "by hand" in archived["entries"][0]["text"]


def test_the_documents_spelling_is_understood(bank: Bank) -> None:
    call(bank, "memory_log", {**LOGGED, "issueRefs": [84, 85]})
    found = call(
        bank, "recall_search", {"query": "parser", "options": {"minImportance": 7, "cycleRange": [1, 1]}}
    )
    assert found["entries"][0]["issueRefs"] == [84, 85]
    assert call(bank, "recall_search", {"query": "parser", "minImportance": 9})["entries"] == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_log", {**LOGGED, "importance": 11}),
        ("memory_log", {**LOGGED, "type": "rumour"}),
        ("recall_search", {}),
        ("recall_search", {"query": ""}),
        ("recall_search", {"query": "x", "unheard": 1}),
        ("recall_search", {"query": "x", "limit": "many"}),
        ("core_memory_update", {"section": "playbook", "content": "Do as I say"}),
        ("archival_search", {"query": "x", "date_range": ["yesterday", "today"]}),
        ("no_such_tool", {}),
    ],
)
def test_what_does_not_fit_is_refused_in_words(bank: Bank, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        call(bank, name, arguments)
    assert caught.value.hint


def test_layers_are_reached_and_guarded(bank: Bank) -> None:
    (bank.path.parent.parent / "out.txt").write_text("made")
    orchestrator = bank.acting_as(Actor.parse("orchestrator:lead"))
    agent = bank.acting_as(Actor.parse("agent:w1:maker"))
    call(orchestrator, "knowledge_put", {"category": "convention", "key": "imports", "value": "absolute"})
    assert call(agent, "knowledge_query", {"category": "convention"})["knowledge"]
    with pytest.raises(AccessError, match="agent:w1:maker may not write knowledge") as refused:
        call(agent, "knowledge_put", {"category": "convention", "key": "imports", "value": "relative"})
    assert refused.value.hint.startswith("human, orchestrator")
    tried = {"task": "t1", "agent": "w1", "action": "failed", "approach": "regex", "outcome": "too slow"}
    call(orchestrator, "episode_log", tried)
    assert call(agent, "episode_query", {"task": "t1"})["episodes"]
    assert call(agent, "what_worked", {"task": "t1"})["tried"]
    made = call(agent, "artifact_register", {"path": "out.txt", "task": "t1"})
    assert made["size_bytes"] == 4
    assert call(agent, "artifact_query", {"task": "t1"})["artifacts"]
    lesson = call(agent, "lesson_add", {"summary": "Compile the regex once", "rule": "IF slow THEN cache"})
    assert call(agent, "lesson_query", {"text": "regex"})["lessons"]
    read = call(agent, "memory_get", {"id": lesson["id"]})
    assert read["kind"] == "lesson"
    with pytest.raises(NotFoundError):
        call(agent, "memory_get", {"id": "nobody"})


def test_private_scratch_is_not_read_by_its_name(bank: Bank) -> None:
    agent = bank.acting_as(Actor.parse("agent:w1"))
    agent.working.note("only mine")
    assert call(agent, "memory_get", {"id": "w1"})["kind"] == "working"
    other = bank.acting_as(Actor.parse("agent:w2"))
    for name in ("w1", "nobody"):
        # That it is there is not told either.
        with pytest.raises(NotFoundError, match=f"no record {name!r}"):
            call(other, "memory_get", {"id": name})
    bank.runs.record_episode(Episode(id="w1", task="a run of that name"))
    assert call(other, "memory_get", {"id": "w1"})["kind"] == "episode"


def test_tokens_are_there_for_those_who_decide_about_them(bank: Bank) -> None:
    token = bank.tokens.create("agent:w1").token.id
    assert call(bank, "memory_get", {"id": token})["kind"] == "token"
    agent = bank.acting_as(Actor.parse("agent:w1"))
    with pytest.raises(NotFoundError):
        call(agent, "memory_get", {"id": token})
    with pytest.raises(NotFoundError):
        agent.ledger.history(token)


@pytest.mark.req("C5")
def test_long_answers_come_in_pages_that_lose_nothing(bank: Bank) -> None:
    for number in range(30):
        content = f"entry {number} " + "word " * 200
        call(bank, "memory_log", {**LOGGED, "action": f"Step {number}", "content": content})
    seen: list[str] = []
    offset = 0
    while True:
        answer = call(bank, "recall_by_cycle", {"start_cycle": 1, "end_cycle": 1, "offset": offset})
        assert len(json.dumps(answer)) / 4 <= LIMIT_TOKENS * 1.05
        seen += [each["action"] for each in answer["entries"]]
        if "next_offset" not in answer:
            break
        offset = answer["next_offset"]
    assert seen == [f"Step {number}" for number in range(30)]


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.text(max_size=3000), min_size=1), max_size=12),
    st.integers(100, 1000),
)
@settings(max_examples=60)
def test_any_page_fits_and_goes_on_where_it_stopped(items: list[dict[str, str]], limit_tokens: int) -> None:
    answer = page("items", items, limit_tokens=limit_tokens)
    shown = answer["items"]
    assert isinstance(shown, list)
    assert answer.get("next_offset", len(items)) == len(shown)
    assert bool(shown) == bool(items)
    assert len(shown) <= 1 or len(json.dumps(answer, ensure_ascii=False)) <= limit_tokens * 4


@given(st.text(max_size=5000), st.integers(1, 300))
def test_a_text_read_in_pages_is_the_text(text: str, limit_tokens: int) -> None:
    whole, offset = "", 0
    while True:
        part = text_page(text, offset=offset, limit_tokens=limit_tokens)
        whole += str(part["text"])
        if "next_offset" not in part:
            break
        offset = int(str(part["next_offset"]))
    assert whole == text


@pytest.mark.req("W3")
@pytest.mark.req("W4")
@pytest.mark.req("W5")
@pytest.mark.req("W7")
def test_a_workspace_is_read_and_written_by_functions(bank: Bank) -> None:
    root = bank.root
    plans = root / "resources" / "workspaces" / "devtools" / "common" / "_plans"
    plans.mkdir(parents=True)
    (plans / "260208-engine.md").write_text(
        "---\nname: Engine\ndescription: Run graphs\nstatus: done\ncreated: 2026-02-08\n---\n\n# Engine\n"
    )
    overview = "---\nname: DevTools\ndescription: Tools for all\n---\n\n# DevTools\n\nWhat we build.\n"
    (root / "resources" / "workspaces" / "devtools" / "OVERVIEW.md").write_text(overview)
    scope = {"workspace": "devtools"}
    asked = {"scope": scope, "filters": {"status": ["done"]}}
    assert call(bank, "retrieve_plans", asked)["plans"][0]["_meta"]["document_id"] == "260208-engine"
    assert call(bank, "retrieve_plans", {"scope": "devtools/common", "status": ["new"]})["plans"] == []
    assert "What we build." in call(bank, "retrieve_overview", {"scope": scope})["overviews"][0]["content"]
    lesson = {"text": "pnpm isolates packages: resolve from the consumer", "kind": "lesson", "tags": ["pnpm"]}
    saved = call(bank, "save_memory", {"scope": scope, "items": [lesson]})["items"][0]
    assert saved["result"] == "saved"
    assert call(bank, "save_memory", {"scope": scope, "items": [lesson]})["items"][0]["result"] != "saved"
    found = call(bank, "retrieve_learnings", {"scope": scope, "tags": ["pnpm"]})
    assert "resolve from the consumer" in found["lessons"][0]["content"]
    assert found["decisions"] == []
    with pytest.raises(InputError):
        call(bank, "retrieve_plans", {"scope": {"workspace": "../outside"}})


@pytest.mark.req("W5")
def test_learnings_come_newest_first_with_totals_and_what_was_not_read_is_named(bank: Bank) -> None:
    def entry(day: str, title: str, marks: int = 3) -> str:
        return f"{'#' * marks} [{day}] {title}\n\n**Category:** tooling\n\nText of {title}.\n\n---\n"

    home = bank.root / "user" / "memory" / "workspaces" / "w"
    home.mkdir(parents=True)
    decided = entry("2026-01-01", "Old") + entry("2026-03-01", "Newest") + entry("2026-02-02", "Lost", 4)
    (home / "decisions.md").write_text(f"# Decisions\n\n{decided}")
    (home / "lessons.md").write_text(f"# Lessons\n\n{entry('2026-02-01', 'Between')}")
    found = call(bank, "retrieve_learnings", {"scope": "w"})
    assert [each["date"] for each in found["decisions"]] == ["2026-03-01", "2026-01-01"]
    assert (found["total"], found["totals"]) == (3, {"decisions": 2, "lessons": 1})
    (unread,) = found["unread"]
    assert unread.startswith("user/memory/workspaces/w/decisions.md:")
    assert "Lost" in unread


@pytest.mark.req("W4")
def test_a_long_overview_is_read_to_its_end(bank: Bank) -> None:
    home = bank.root / "resources" / "workspaces" / "big"
    home.mkdir(parents=True)
    body = "\n\n".join(f"Paragraph {number}: {'words ' * 40}" for number in range(80))
    (home / "OVERVIEW.md").write_text(
        f"---\nname: Big\ndescription: Much\n---\n\n# Big\n\n{body}\nThe end.\n"
    )
    overview = call(bank, "retrieve_overview", {"scope": "big"})["overviews"][0]
    assert "document_path" in overview["clipped"]
    whole, asked = "", {"id": overview["_meta"]["document_path"], "offset": 0}
    while True:
        part = call(bank, "memory_get", asked)
        whole += part["text"]
        if "next_offset" not in part:
            break
        asked["offset"] = part["next_offset"]
    assert whole.endswith("The end.\n")
    with pytest.raises(NotFoundError):
        call(bank, "memory_get", {"id": "../../etc/passwd.md"})


def test_searches_go_on_where_they_stopped_and_wrapped_calls_are_understood(bank: Bank) -> None:
    for number in range(12):
        call(bank, "memory_log", {"entry": {**LOGGED, "action": f"Review {number} of the parser"}})
    wrapped = {"content": "Parsers are hand-written.", "metadata": {"type": "lesson", "importance": 7}}
    assert call(bank, "archival_insert", wrapped)["pieces"] == 1
    for name in ("recall_search", "recall", "archival_search"):
        first = call(bank, name, {"query": "parser", "limit": 3})
        rows = first["entries" if "entries" in first else "hits"]
        later = call(bank, name, {"query": "parser", "limit": 3, "offset": len(rows)})
        assert {row["id"] for row in rows}.isdisjoint(
            row["id"] for row in later["entries" if "entries" in later else "hits"]
        )


@pytest.mark.parametrize(
    ("name", "asked", "field"),
    [
        ("recall", {"query": "parser"}, "hits"),
        ("recall_search", {"query": "parser"}, "entries"),
        ("archival_search", {"query": "parser"}, "entries"),
        ("knowledge_query", {}, "knowledge"),
        ("knowledge_query", {"text": "parser"}, "knowledge"),
        ("episode_query", {}, "episodes"),
        ("what_worked", {"task": "the parser"}, "tried"),
        ("artifact_query", {}, "artifacts"),
        ("lesson_query", {}, "lessons"),
        ("lesson_query", {"text": "parser"}, "lessons"),
    ],
)
def test_a_page_says_that_there_is_more_until_there_is_none(
    bank: Bank, name: str, asked: dict[str, Any], field: str
) -> None:
    for number in range(5):
        call(bank, "memory_log", {**LOGGED, "action": f"Review {number} of the parser"})
        call(bank, "archival_insert", {"content": f"The parser, part {number}", "type": "spec"})
        call(bank, "knowledge_put", {"category": "c", "key": f"k{number}", "value": f"parser {number}"})
        tried = {"task": f"the parser {number}", "agent": "a", "action": "failed", "approach": f"w{number}"}
        call(bank, "episode_log", tried)
        (bank.root / f"parser{number}.txt").write_text("made")
        call(bank, "artifact_register", {"path": f"parser{number}.txt", "task": "t"})
        call(bank, "lesson_add", {"summary": f"The parser wants flag {number} in place {number * 7}"})
    seen: list[str] = []
    offset = 0
    for _ in range(100):
        answer = call(bank, name, {**asked, "limit": 2, "offset": offset})
        assert len(answer[field]) <= 2
        seen += [row["id"] for row in answer[field]]
        if "next_offset" not in answer:
            break
        assert answer["next_offset"] == offset + 2
        offset = answer["next_offset"]
    assert len(seen) == len(set(seen))
    assert len(seen) >= 5
    assert len(call(bank, name, {**asked, "limit": 50})[field]) == len(seen)


def test_a_search_ends_where_it_goes_no_deeper(bank: Bank) -> None:
    for number in range(3):
        call(bank, "memory_log", {**LOGGED, "action": f"Review {number} of the parser"})
    for name, field in (("recall_search", "entries"), ("archival_search", "entries"), ("recall", "hits")):
        for offset in (196, 200, 5_000):
            assert call(bank, name, {"query": "parser", "limit": 5, "offset": offset}) == {field: []}


HUGE = 10**30


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {"query": "x", "offset": HUGE}),
        ("recall", {"query": "x", "offset": 2**63}),
        ("recall", {"query": "x", "issue": HUGE}),
        ("retrieve_plans", {"scope": "w", "offset": HUGE}),
        ("recall_by_cycle", {"start_cycle": 0, "end_cycle": HUGE}),
        ("recall_search", {"query": "x", "cycle_range": [HUGE, HUGE]}),
        ("archival_insert", {"content": "x", "type": "spec", "issues": [HUGE]}),
        ("memory_log", {**LOGGED, "cycle": HUGE}),
        ("episode_log", {"task": "t", "agent": "a", "action": "failed", "approach": "x", "tokens_in": HUGE}),
    ],
)
def test_numbers_that_nobody_can_keep_are_refused(bank: Bank, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"Expected `int`|out of range"):
        call(bank, name, arguments)


@pytest.mark.parametrize(
    "name", ["x#" + "9" * 30, "x#" + "9" * 5000, "m-" + "9" * 30, "m-" + "9" * 5000, "x#²"]
)
def test_a_number_beyond_all_names_nothing(bank: Bank, name: str) -> None:
    with pytest.raises(NotFoundError):
        call(bank, "memory_get", {"id": name})


def test_every_number_in_a_schema_has_its_bounds() -> None:
    def numbers(schema: Any) -> list[dict[str, Any]]:
        if isinstance(schema, list):
            return [found for each in schema for found in numbers(each)]
        if not isinstance(schema, dict):
            return []
        own = [schema] if schema.get("type") == "integer" else []
        return own + [found for each in schema.values() for found in numbers(each)]

    found = [each for tool in tools() for each in numbers(tool.schema())]
    assert found
    assert all(each["maximum"] < 2**53 and each["minimum"] >= 0 for each in found)


def test_hints_say_what_a_tool_does() -> None:
    said = {each["name"]: each["annotations"] for each in for_mcp(tools())}
    assert {name for name, hints in said.items() if hints["destructiveHint"]} == {
        "core_memory_update",
        "core_memory_append",
        "knowledge_put",
        "save_memory",
        "save_skill",
    }
    # A lesson that is told on another day counts once more, and each brief of a run is recorded.
    assert {
        name for name, hints in said.items() if hints["idempotentHint"] and not hints["readOnlyHint"]
    } == {"archival_insert", "core_memory_update", "knowledge_put", "artifact_register", "save_skill"}
    for hints in said.values():
        assert hints["openWorldHint"] is False
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
        assert hints["idempotentHint"] or not hints["readOnlyHint"]


def test_what_replaces_is_what_says_so(bank: Bank) -> None:
    call(bank, "core_memory_update", {"section": "status", "content": "first"})
    call(bank, "core_memory_update", {"section": "status", "content": "second"})
    assert "first" not in bank.core.render()
    for words in ("Parse by hand", "Parse by table"):
        call(bank, "core_memory_append", {"section": "threads", "item": {"id": "t-1", "summary": words}})
    assert "by hand" not in bank.core.render()
    for value in ("old", "new"):
        call(bank, "knowledge_put", {"category": "c", "key": "k", "value": value})
    assert [each["value"] for each in call(bank, "knowledge_query", {})["knowledge"]] == ["new"]


def test_what_only_reads_changes_nothing(bank: Bank) -> None:
    agent = bank.acting_as(Actor.parse("agent:w1"))
    call(agent, "lesson_add", {"summary": "The parser wants a flag"})
    with bank.reading() as reader:
        before = len(reader.changes())
    asked = {"query": "x", "task": "x", "scope": "w", "id": "m-001", "start_cycle": 0, "end_cycle": 1}
    for tool in tools():
        given = {name: asked[name] for name in tool.schema().get("required", []) if name in asked}
        if tool.only_reads(given):
            call(agent, tool.name, given)
    with bank.reading() as reader:
        assert len(reader.changes()) == before


def test_a_brief_of_a_run_is_recorded(bank: Bank) -> None:
    agent = bank.acting_as(Actor.parse("agent:w1"))
    bank.lessons.add("Run make db-up before the tests")
    call(agent, "brief", {"task": "run the tests"})
    assert bank.doctor.status()["briefs"] == 0
    call(agent, "brief", {"task": "run the tests", "run": "r1"})
    assert bank.doctor.status()["briefs"] == 1


def test_a_set_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no set of tools 'nothing'") as caught:
        tools("cognitive", "nothing")
    assert "cognitive" in caught.value.hint


def test_a_scope_that_is_too_deep_is_refused(bank: Bank) -> None:
    for name in ("retrieve_plans", "retrieve_overview", "retrieve_learnings"):
        with pytest.raises(InputError, match="too deep") as caught:
            call(bank, name, {"scope": "a/b/c/d"})
        assert "workspace" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_get", {"id": "nobody"}),
        ("recall_search", {"query": " "}),
        ("archival_search", {"query": " "}),
        ("core_memory_update", {"section": "roleState", "content": "x"}),
        ("core_memory_update", {"section": "roleState", "content": "x", "role": "other"}),
        ("proposal_add", {"section": "rules", "after": "x", "reason": " "}),
        ("proposal_add", {"section": "rules", "after": "x", "reason": "y", "evidence": ["nobody"]}),
    ],
)
def test_hints_name_no_command(bank: Bank, name: str, arguments: dict[str, Any]) -> None:
    agent = bank.acting_as(Actor.parse("agent:w1:maker" if arguments.get("role") else "agent:w1"))
    with pytest.raises((InputError, NotFoundError, AccessError)) as caught:
        call(agent, name, arguments)
    assert caught.value.hint
    assert "archivist " not in caught.value.hint
    assert "--" not in caught.value.hint


def test_reasons_name_no_command(bank: Bank) -> None:
    item = {"kind": "plan_status", "plan": "nothing", "status": "done", "text": "x"}
    (saved,) = call(bank, "save_memory", {"scope": "w", "items": [item]})["items"]
    assert saved["result"] == "refused"
    assert saved["reason"] == "no plan 'nothing'"


@pytest.mark.req("C5")
def test_what_the_archive_finds_has_its_source_and_metadata(bank: Bank) -> None:
    kept = {"content": "Headless mode needs a display", "type": "decision", "roles": ["ops"], "issues": [84]}
    source = call(bank, "archival_insert", {**kept, "importance": 8})["source"]
    (found,) = call(bank, "archival_search", {"query": "headless mode"})["entries"]
    assert found["source"] == source
    date = found["metadata"].pop("date")
    assert date.startswith("20")
    assert found["metadata"] == {"type": "decision", "roles": ["ops"], "issues": [84], "importance": 8}


@pytest.mark.req("C5")
def test_an_archived_cycle_has_the_stream_as_its_source(bank: Bank) -> None:
    bank.stream.log("Headless mode needs a display, see #84", role="ops", importance=7, cycle=1)
    bank.stream.log("Much later", role="ops", cycle=200)
    (found,) = call(bank, "archival_search", {"query": "headless mode"})["entries"]
    assert (found["source"], found["metadata"]["type"]) == ("stream", "cycle")
    assert (found["metadata"]["roles"], found["metadata"]["issues"]) == (["ops"], [84])


def test_the_printed_prompt_names_only_what_the_server_offers() -> None:
    """One scale of importance too, the same as in the subagent's prompt."""
    offered = {tool.name for tool in select_tools("default")}
    text = prompts.reflect(offered, run="r-1")
    assert not any(each.name in text for each in tools() if each.name not in offered)
    agent = resources.files("archivist.edges.install").joinpath("agent.md").read_text("utf-8")
    scale = ("0.3 saves a minute", "0.5 an attempt", "0.8 a run", "1.0 prevents damage")
    assert all(words in " ".join(text.split()) and words in " ".join(agent.split()) for words in scale)


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", ["lesson_query", "retrieve_plans", "retrieve_learnings"])
def test_a_question_with_thousands_of_tags_is_refused(bank: Bank, name: str) -> None:
    scope = {} if name == "lesson_query" else {"scope": "w"}
    with pytest.raises(InputError, match="5,000 tags are too many: at most 50"):
        call(bank, name, {**scope, "tags": ["x"] * 5000})
