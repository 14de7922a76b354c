"""The functions that an agent can call, each defined once, by its signature.

The schemas for OpenAI, Anthropic and MCP are made from the signatures, and so is the check of what an agent
passes. Names, parameters and defaults of the seven memory functions are the documented ones in Python's
spelling; the documents' spelling (`minImportance`, an `options` object) is understood too.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from archivist.access.rights import Layer, Verb, may
from archivist.errors import AccessError, InputError, NotFoundError
from archivist.records.plain import to_plain
from archivist.tools.answers import (
    Plain,
    day_range,
    entry_view,
    hint_for_agents,
    hit_view,
    page,
    pick_fields,
    reason_for_agents,
    text_page,
)
from archivist.tools.schemas import answer_schema

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records.actor import Actor

_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")
_MOST = 2**53 - 1
# As deep as a search goes: what comes later answers hardly anything.
_DEPTH = 200
_SCOPE = "workspace[/domain[/repository]]"

Words = Annotated[str, Meta(min_length=1, description="What is sought, in plain words.")]
Role = Annotated[str, Meta(description="Only of this role.")]
# What every reader of JSON takes for a whole number, and the bank too.
Count = Annotated[int, Meta(ge=0, le=_MOST)]
Issue = Annotated[Count | None, Meta(description="Only what refers to this issue.")]
Weight = Annotated[int, Meta(ge=1, le=10, description="Importance from 1 to 10.")]
Limit = Annotated[int, Meta(ge=1, le=50, description="Most results.")]
Offset = Annotated[Count, Meta(description="Where to go on: next_offset of the answer before.")]
Cycles = Annotated[tuple[Count, Count] | None, Meta(description="First and last cycle.")]
Dates = Annotated[tuple[str, str] | None, Meta(description="First and last day, YYYY-MM-DD.")]
Tags = Annotated[list[str], Meta(description="Tags.")]
Numbers = Annotated[list[Count] | None, Meta(description="Numbers that this refers to.")]
Text = Annotated[str, Meta(min_length=1, description="The text to keep.")]
Item = Annotated[str | dict[str, Any], Meta(description="A text, or an object of the section's fields.")]
Archived = Literal["cycle", "decision", "research", "spec", "lesson"]


class ScopeArgument(msgspec.Struct, forbid_unknown_fields=True):
    """Where to look: a workspace, one of its domains, one repository."""

    workspace: str
    domain: str = ""
    repository: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.workspace, self.domain, self.repository) if part)


class Toolset(StrEnum):
    """Which tools belong together."""

    ARCHIVIST = "archivist"
    COGNITIVE = "cognitive"
    LAYERS = "layers"
    WORKSPACE = "workspace"


# What a coding agent needs in every run: few enough to stand in its context all the time.
DEFAULT = (
    "brief", "recall", "memory_get", "lesson_add", "what_worked", "knowledge_query", "memory_log",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tool:
    """One function: its name, what it is for, and what it does to the bank."""

    name: str
    toolset: Toolset
    description: str
    run: Callable[..., dict[str, Plain]]
    is_read_only: bool
    is_idempotent: bool
    is_destructive: bool = False
    # The argument that makes a tool write which otherwise only reads.
    recording: str = ""
    # What it writes that not everybody may write.
    layer: Layer | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of what it takes."""
        return dict(_schema(self.name))

    def call(self, bank: Bank, arguments: Mapping[str, Any]) -> dict[str, Plain]:
        """Check what an agent passes, and do it."""
        asked = _arguments(self.name, arguments)
        try:
            return self.run(bank, **asked)
        except (InputError, NotFoundError, AccessError) as error:
            error.hint = hint_for_agents(error, parameter_names=tuple(asked))
            raise

    def only_reads(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether a call with these arguments changes nothing."""
        return self.is_read_only or bool(self.recording and not arguments.get(self.recording))

    def is_open_to(self, actor: Actor) -> bool:
        """Say whether an actor may call it at all; who may not need not wait to be told so."""
        return self.layer is None or may(actor, self.layer, Verb.WRITE)


_TOOLS: dict[str, Tool] = {}


def _tool(
    toolset: Toolset,
    *,
    reads: bool = False,
    repeats: bool = False,
    replaces: bool = False,
    records: str = "",
    layer: Layer | None = None,
) -> Callable[[Callable[..., dict[str, Plain]]], Callable[..., dict[str, Plain]]]:
    """Offer a function to agents.

    `reads` changes nothing, unless with the argument that `records` names; `repeats` may be called again to
    no harm; `replaces` puts something in the place of what was there; `layer` is written, which not all may.
    """

    def register(function: Callable[..., dict[str, Plain]]) -> Callable[..., dict[str, Plain]]:
        _TOOLS[function.__name__] = Tool(
            name=function.__name__,
            toolset=toolset,
            description=" ".join((inspect.getdoc(function) or "").split()),
            run=function,
            is_read_only=reads and not records,
            is_idempotent=(reads and not records) or repeats,
            is_destructive=replaces,
            recording=records,
            layer=layer,
        )
        return function

    return register


def tools(*toolsets: Toolset | str) -> list[Tool]:
    """Return the tools of these sets, or all of them."""
    wanted = set(toolsets)
    for word in wanted - set(Toolset):
        raise _unknown_toolset(word)
    return [tool for tool in _TOOLS.values() if not wanted or tool.toolset in wanted]


def find_tool(name: str) -> Tool | None:
    """Return a tool by its name; None when there is none."""
    return _TOOLS.get(name)


def _unknown_toolset(word: str, *more: str) -> InputError:
    return InputError(f"no set of tools {word!r}", hint=f"one or more of {', '.join([*more, *Toolset])}")


def select_tools(words: str) -> list[Tool]:
    """Return the tools of the sets that a text names, comma-separated: `default`, `all`, or sets."""
    chosen: set[str] = set()
    for word in (part.strip() for part in words.split(",")):
        if word == "default":
            chosen |= set(DEFAULT)
        elif word == "all" or word in set(Toolset):
            chosen |= {tool.name for tool in tools(*(() if word == "all" else (word,)))}
        else:
            raise _unknown_toolset(word, "default", "all")
    ordered = dict.fromkeys([*DEFAULT, *_TOOLS])
    return [_TOOLS[name] for name in ordered if name in chosen]


def call(bank: Bank, name: str, arguments: Mapping[str, Any]) -> dict[str, Plain]:
    """Call a tool by its name."""
    if name not in _TOOLS:
        raise InputError(f"no tool {name!r}", hint=f"one of {', '.join(_TOOLS)}")
    return _TOOLS[name].call(bank, arguments)


def for_openai(chosen: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as OpenAI's chat completions take them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema()},
        }
        for tool in chosen
    ]


def for_anthropic(chosen: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as Anthropic's messages take them."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema()} for tool in chosen
    ]


def for_mcp(chosen: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as an MCP server lists them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema(),
            "outputSchema": answer_schema(tool.name),
            "annotations": {
                "readOnlyHint": tool.is_read_only,
                "destructiveHint": tool.is_destructive,
                "idempotentHint": tool.is_idempotent,
                "openWorldHint": False,
            },
        }
        for tool in chosen
    ]


@cache
def _argument_struct(name: str) -> type[msgspec.Struct]:
    """Return the shape of what a tool takes, made from its signature."""
    function = _TOOLS[name].run
    # The bank comes first and is no part of the shape; its class need not be there to be looked up.
    hints = get_type_hints(function, localns={"Bank": object, "Sequence": Sequence}, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in list(inspect.signature(function).parameters.values())[1:]:
        kind = hints[each.name]
        fields.append((each.name, kind) if each.default is each.empty else (each.name, kind, each.default))
    title = name.title().replace("_", "")
    return msgspec.defstruct(title, fields, kw_only=True, forbid_unknown_fields=True)


@cache
def _schema(name: str) -> dict[str, Any]:
    asked = _argument_struct(name)
    _, parts = msgspec.json.schema_components((asked,), ref_template="{name}")
    schema: dict[str, Any] = _inline_refs(parts[asked.__name__], parts)
    return schema


def _inline_refs(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema with the shapes that it refers to in their places, as every provider reads it."""
    if isinstance(schema, list):
        return [_inline_refs(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {
            **_inline_refs(parts[schema["$ref"]], parts),
            **{k: v for k, v in schema.items() if k != "$ref"},
        }
    # The title of a shape is the name that we gave it; a property may be called so too.
    kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return {key: _inline_refs(value, parts) for key, value in kept.items()}


def _arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    shape = _argument_struct(name)
    known = set(shape.__struct_fields__)
    flat = dict(given)
    for group in ("options", "filters", "metadata", "entry"):
        if group not in known and isinstance(flat.get(group), Mapping):
            flat |= flat.pop(group)
    if "scope" in known and isinstance(flat.get("scope"), str):
        parts = flat["scope"].split("/")
        if len(parts) > len(ScopeArgument.__struct_fields__):
            raise InputError(f"{name}: the scope {flat['scope']!r} is too deep", hint=_SCOPE)
        flat["scope"] = dict(zip(ScopeArgument.__struct_fields__, parts, strict=False))
    spelled = {key if key in known else _UPPER.sub(r"_\1", key).lower(): value for key, value in flat.items()}
    try:
        asked = msgspec.convert(spelled, shape, strict=True)
    except msgspec.ValidationError as error:
        takes = ", ".join(shape.__struct_fields__)
        raise InputError(f"{name}: {error}", hint=f"it takes {takes}") from None
    return {field: getattr(asked, field) for field in shape.__struct_fields__}


# The memory functions of the cognitive tiers


@_tool(Toolset.COGNITIVE, reads=True)
def recall_search(
    bank: Bank,
    query: Words,
    role: Role = "",
    issue: Issue = None,
    min_importance: Weight | None = None,
    limit: Limit = 5,
    cycle_range: Cycles = None,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Search the recent cycles of the stream; the best by recency, importance and relevance first."""
    found = bank.stream.search(
        query,
        role=role,
        issue=issue,
        min_importance=min_importance,
        limit=min(offset + limit + 1, _DEPTH),
        cycles=cycle_range,
    )[offset:]
    shown = [{**entry_view(each.entry), "score": round(each.hit.score, 3)} for each in found]
    return page("entries", shown, offset=offset, limit=limit)


@_tool(Toolset.COGNITIVE, reads=True)
def recall_by_cycle(
    bank: Bank,
    start_cycle: Annotated[Count, Meta(description="The first cycle.")],
    end_cycle: Annotated[Count, Meta(description="The last cycle.")],
    role: Role = "",
    min_importance: Weight = 1,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Get what was logged in a range of cycles, in order, however long ago."""
    entries = bank.stream.by_cycle(start_cycle, end_cycle, role=role, min_importance=min_importance)
    return page("entries", [entry_view(each) for each in entries[offset:]], offset=offset, total=len(entries))


@_tool(Toolset.COGNITIVE, reads=True)
def archival_search(
    bank: Bank,
    query: Words,
    type: Archived | None = None,  # noqa: A002
    date_range: Dates = None,
    limit: Limit = 5,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Search long-term memory: documents, decisions, specs, lessons of reflections, and old cycles."""
    reach = min(offset + limit + 1, _DEPTH)
    found = bank.documents.search(query, type=type, dates=day_range(date_range), limit=reach)
    return page("entries", [hit_view(each) for each in found[offset:]], offset=offset, limit=limit)


@_tool(Toolset.COGNITIVE, repeats=True)
def archival_insert(
    bank: Bank,
    content: Text,
    type: Archived,  # noqa: A002
    roles: Annotated[list[str] | None, Meta(description="The roles that it concerns.")] = None,
    issues: Numbers = None,
    importance: Weight = 5,
) -> dict[str, Plain]:
    """Keep a text in long-term memory."""
    pieces = bank.documents.insert(
        content, type=type, roles=tuple(roles or ()), issues=tuple(issues or ()), importance=importance
    )
    return {"source": pieces[0].source, "pieces": len(pieces)}


@_tool(Toolset.COGNITIVE, repeats=True, replaces=True)
def core_memory_update(
    bank: Bank,
    section: Annotated[
        Literal["status", "threads", "roleState", "lessons"], Meta(description="Which block of core memory.")
    ],
    content: Item,
    role: Annotated[str, Meta(description="Whose role state; yours by default.")] = "",
) -> dict[str, Plain]:
    """Change a block of core memory, which is always in context. Playbook and rules change by proposals."""
    bank.core.update(section, content, role=role)
    return {"section": section, "tokens": bank.core.view(role).tokens}


@_tool(Toolset.COGNITIVE, replaces=True)
def core_memory_append(
    bank: Bank,
    section: Annotated[
        Literal["threads", "recentlyShipped", "blockers"], Meta(description="Which list of core memory.")
    ],
    item: Item,
) -> dict[str, Plain]:
    """Add to a list of core memory: a thread, something shipped, a blocker."""
    bank.core.append(section, item)
    return {"section": section, "tokens": bank.core.view().tokens}


@_tool(Toolset.COGNITIVE)
def memory_log(
    bank: Bank,
    action: Annotated[str, Meta(min_length=1, description="What was done, in a few words.")],
    importance: Weight,
    type: Literal["action", "observation", "decision"],  # noqa: A002
    tags: Tags,
    content: Annotated[str, Meta(description="What happened, in a few sentences.")],
    issue_refs: Numbers = None,
    pr_refs: Numbers = None,
    role: Annotated[str, Meta(description="Who acted; you by default.")] = "",
    cycle: Annotated[Count | None, Meta(description="The cycle; the present one by default.")] = None,
) -> dict[str, Plain]:
    """Log what was done to the stream, at the end of every cycle, with an honest importance."""
    entry = bank.stream.log(
        action,
        cycle=cycle,
        role=role,
        importance=importance,
        type=type,
        content=content,
        tags=tuple(tags),
        issues=tuple(issue_refs or ()),
        prs=tuple(pr_refs or ()),
    )
    due = bank.stream.due_reason()
    return {"id": entry.id, "cycle": entry.cycle, **({"reflection_due": due} if due else {})}


# The layers that a project's agents share


@_tool(Toolset.LAYERS, reads=True)
def knowledge_query(
    bank: Bank,
    text: Annotated[str, Meta(description="What is sought, in plain words; empty for all.")] = "",
    category: Annotated[str, Meta(description="convention, architecture, decision, fact, …")] = "",
    key: Annotated[str, Meta(description="The exact key.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Look up what is known about the project: conventions, architecture, decisions, facts."""
    facts = bank.knowledge.query(category=category, key=key, text=text, limit=offset + limit + 1)
    shown = ("id", "category", "key", "value", "source", "confidence", "updated")
    return page(
        "knowledge", [pick_fields(each, shown) for each in facts[offset:]], offset=offset, limit=limit
    )


@_tool(Toolset.LAYERS, repeats=True, replaces=True, layer=Layer.KNOWLEDGE)
def knowledge_put(
    bank: Bank,
    category: Annotated[str, Meta(min_length=1, max_length=200, description="convention, decision, …")],
    key: Annotated[str, Meta(min_length=1, max_length=200, description="A short stable name.")],
    value: Text,
    confidence: Annotated[float, Meta(ge=0, le=1, description="How sure, from 0 to 1.")] = 1.0,
) -> dict[str, Plain]:
    """Write down what holds for the project. Orchestrators and people may; higher confidence wins."""
    kept = bank.knowledge.put(category, key, value, confidence=confidence)
    conflict = {"conflict": kept.conflict.reason} if kept.conflict else {}
    return {**pick_fields(kept.fact, ("id", "category", "key", "value", "confidence")), **conflict}


@_tool(Toolset.LAYERS, layer=Layer.EPISODES)
def episode_log(
    bank: Bank,
    task: Annotated[str, Meta(min_length=1, description="The task's id or title.")],
    agent: Annotated[str, Meta(min_length=1, description="Who tried.")],
    action: Literal["attempted", "completed", "failed", "retried"],
    approach: Annotated[str, Meta(min_length=1, description="What was tried.")],
    outcome: Annotated[str, Meta(description="What came of it.")] = "",
    duration_ms: Annotated[Count | None, Meta(description="How long it took.")] = None,
    tokens_in: Annotated[Count | None, Meta(description="Tokens read.")] = None,
    tokens_out: Annotated[Count | None, Meta(description="Tokens written.")] = None,
) -> dict[str, Plain]:
    """Log an attempt at a task and what came of it. Orchestrators and people may."""
    episode = bank.attempts.log(
        task,
        agent=agent,
        action=action,
        approach=approach,
        outcome=outcome,
        duration_ms=duration_ms,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )
    return {"id": episode.id, "task": task, "action": action}


@_tool(Toolset.LAYERS, reads=True)
def episode_query(
    bank: Bank,
    task: Annotated[str, Meta(description="Attempts at this task.")] = "",
    agent: Annotated[str, Meta(description="Attempts of this agent.")] = "",
    action: Literal["attempted", "completed", "failed", "retried"] | None = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """See what was tried for a task, or how an agent fared, the latest first."""
    found = bank.attempts.query(task=task, agent=agent, action=action, limit=offset + limit + 1)
    shown = ("id", "task", "agent", "action", "approach", "outcome", "finished")
    return page("episodes", [pick_fields(each, shown) for each in found[offset:]], offset=offset, limit=limit)


@_tool(Toolset.LAYERS, reads=True)
def what_worked(bank: Bank, task: Words, limit: Limit = 5, offset: Offset = 0) -> dict[str, Plain]:
    """See what worked, and what did not, for tasks like this one."""
    found: list[dict[str, Plain]] = [
        {
            "id": each.tried.last.id,
            "task": each.tried.task,
            "approach": each.tried.approach,
            "verdict": each.tried.verdict,
            "outcome": each.tried.last.outcome,
            "score": round(each.score, 3),
        }
        for each in bank.attempts.similar(task, limit=offset + limit + 1)[offset:]
    ]
    return page("tried", found, offset=offset, limit=limit)


@_tool(Toolset.LAYERS, repeats=True, layer=Layer.ARTIFACTS)
def artifact_register(
    bank: Bank,
    path: Annotated[str, Meta(min_length=1, description="The file, relative to the workspace.")],
    task: Annotated[str, Meta(min_length=1, description="The task that produced it.")],
    type: Literal["file", "patch", "test", "document", "config"] = "file",  # noqa: A002
    description: Annotated[str, Meta(description="What it is.")] = "",
    agent: Annotated[str, Meta(description="Who produced it; you by default.")] = "",
) -> dict[str, Plain]:
    """Register a file that was produced, with its checksum as it is now."""
    made = bank.artifacts.register(path, task=task, agent=agent, type=type, description=description)
    return pick_fields(made, ("id", "path", "type", "size_bytes", "checksum", "previous"))


@_tool(Toolset.LAYERS, reads=True)
def artifact_query(
    bank: Bank,
    task: Annotated[str, Meta(description="Produced by this task.")] = "",
    type: Literal["file", "patch", "test", "document", "config"] | None = None,  # noqa: A002
    path: Annotated[str, Meta(description="Of this path.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """List what was produced, the latest first."""
    found = bank.artifacts.query(task=task, type=type, path=path, limit=offset + limit + 1)
    shown = ("id", "path", "type", "task", "agent", "description", "size_bytes", "checksum", "created")
    return page(
        "artifacts", [pick_fields(each, shown) for each in found[offset:]], offset=offset, limit=limit
    )


# Lessons, briefs, and reading on


@_tool(Toolset.ARCHIVIST, reads=True, records="run")
def brief(
    bank: Bank,
    task: Annotated[str, Meta(description="What is about to be done.")] = "",
    role: Role = "",
    error: Annotated[str, Meta(description="The output of something that failed, to see what helped.")] = "",
    tool: Annotated[str, Meta(description="The tool that is about to be used, or that failed.")] = "",
    run: Annotated[str, Meta(description="Your run, to record what it was told and judge it later.")] = "",
    repo: Annotated[str, Meta(description="The repository, unless it is the one you were started in.")] = "",
) -> dict[str, Plain]:
    """Get what earlier runs learnt that matters now: before a task, or beside an error."""
    if error:
        told = bank.briefs.heal(error, tool=tool, repo=repo)
    else:
        told = bank.brief(task=task, repo=repo, role=role, tool=tool, run=run)
    return {"text": told.text, "lessons": [each.name for each in told.chosen]}


@_tool(Toolset.ARCHIVIST, reads=True)
def recall(
    bank: Bank,
    query: Words,
    kinds: Annotated[
        list[Literal["lesson", "episode", "event", "fact", "artifact", "entry", "document"]] | None,
        Meta(description="Only these kinds of memory."),
    ] = None,
    role: Role = "",
    issue: Issue = None,
    limit: Limit = 5,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Find what the memory knows about something: lessons, runs, facts, stream and archive."""
    from archivist.recall.query import Query

    reach = min(offset + limit + 1, _DEPTH)
    wanted = Query(text=query, kinds=tuple(kinds or ()), role=role, issue=issue, limit=reach)
    found = bank.recall(wanted).hits[offset:]
    return page("hits", [hit_view(each) for each in found], offset=offset, limit=limit)


@_tool(Toolset.ARCHIVIST)
def lesson_add(
    bank: Bank,
    summary: Annotated[str, Meta(min_length=1, max_length=1000, description="One sentence.")],
    rule: Annotated[str, Meta(max_length=1000, description="IF … THEN …")] = "",
    detail: Annotated[str, Meta(description="What happened, and how it is known.")] = "",
    tags: Annotated[list[str] | None, Meta(description="Two to five words by which it is found.")] = None,
    importance: Annotated[float, Meta(ge=0, le=1, description="From 0 to 1.")] = 0.5,
    tool: Annotated[str, Meta(description="The tool that it is about.")] = "",
    run: Annotated[str, Meta(description="The run that learnt it.")] = "",
    evidence: Annotated[list[str] | None, Meta(description="Ids of runs, events or entries.")] = None,
) -> dict[str, Plain]:
    """Keep a lesson for the runs to come. An agent's counts as seen once until another run meets it."""
    from archivist.records.words import Status

    kept = bank.lessons.suggest(
        summary, rule=rule, detail=detail, tags=tags or (), importance=importance, tool=tool, run=run,
        evidence=evidence or (),
    )  # fmt: skip
    lesson = kept.lesson
    result = "kept" if kept.is_new else "met again"
    if lesson.status is Status.QUARANTINED:
        result = "waits for a person"
    return {"id": lesson.short_id, "summary": lesson.summary, "status": lesson.status.value, "result": result}


@_tool(Toolset.ARCHIVIST, reads=True)
def lesson_query(
    bank: Bank,
    text: Annotated[str, Meta(description="What is sought; empty for the most frequent.")] = "",
    tool: Annotated[str, Meta(description="Only about this tool.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """List lessons: the best matches, or the most frequent."""
    from archivist.recall.query import Query

    found = bank.lessons.query(Query(text=text, tool=tool, limit=offset + limit + 1))
    shown = ("summary", "rule", "category", "tags", "status")
    rows = [{"id": each.short_id, **pick_fields(each, shown)} for each in found[offset:]]
    return page("lessons", rows, offset=offset, limit=limit)


@_tool(Toolset.ARCHIVIST, reads=True)
def memory_get(
    bank: Bank,
    id: Annotated[str, Meta(min_length=1, description="The id of anything that another tool named.")],  # noqa: A002
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Read one memory whole, a page at a time; of a workspace's document the document_path is its id."""
    text = bank.workspace.text_at(id) if id.endswith(".md") else None
    if text is not None:
        return {"id": id, "kind": "document", **text_page(text, offset=offset)}
    kind, record = bank.ledger.find(id)
    text = json.dumps(to_plain(record), ensure_ascii=False, indent=1)
    return {"id": id, "kind": kind, **text_page(text, offset=offset)}


@_tool(Toolset.ARCHIVIST)
def proposal_add(
    bank: Bank,
    section: Literal["playbook", "rules"],
    after: Annotated[str, Meta(min_length=1, description="The whole new text of the section.")],
    reason: Annotated[str, Meta(min_length=1, description="Why.")],
    role: Annotated[str, Meta(description="Whose playbook; yours by default.")] = "",
    evidence: Annotated[list[str] | None, Meta(description="Ids of lessons, runs or entries.")] = None,
) -> dict[str, Plain]:
    """Propose a change of the playbook or the rules; somebody who may accepts or rejects it."""
    made = bank.proposals.propose(section, after, reason=reason, role=role, evidence=tuple(evidence or ()))
    return {"id": made.short_id, "status": made.status.value, "diff": bank.proposals.diff(made.id)}


# The markdown memory of a workspace


@_tool(Toolset.WORKSPACE, reads=True)
def retrieve_plans(
    bank: Bank,
    scope: ScopeArgument,
    status: Annotated[
        list[Literal["new", "in_progress", "partial", "done", "abandoned"]] | None,
        Meta(description="Only with one of these statuses."),
    ] = None,
    tags: Annotated[list[str] | None, Meta(description="Only with one of these tags.")] = None,
    offset: Offset = 0,
) -> dict[str, Plain]:
    """See what was done and what is planned in a workspace: the front matter of its plans."""
    from archivist.workspace.answers import plan_view

    found = bank.workspace.retrieve_plans(str(scope), status=status or (), tags=tags or ())
    views: list[Any] = [plan_view(plan) for plan in found[offset:]]
    return page("plans", views, offset=offset, total=len(found))


@_tool(Toolset.WORKSPACE, reads=True)
def retrieve_overview(bank: Bank, scope: ScopeArgument, offset: Offset = 0) -> dict[str, Plain]:
    """Understand a workspace, a domain or a repository: its overview, and abstracts of what lies below."""
    from archivist.workspace.answers import overviews_view

    view: Any = overviews_view(bank.workspace.retrieve_overview(str(scope)))["overviews"]
    return page("overviews", view[offset:], offset=offset, total=len(view))


@_tool(Toolset.WORKSPACE, reads=True)
def retrieve_learnings(
    bank: Bank,
    scope: ScopeArgument,
    tags: Annotated[list[str] | None, Meta(description="Only with one of these tags.")] = None,
    category: Annotated[str, Meta(description="Only of this category.")] = "",
    offset: Offset = 0,
) -> dict[str, Plain]:
    """Get the decisions to respect and the lessons learnt in a workspace."""
    from archivist.workspace.answers import learnings_view

    found = bank.workspace.retrieve_learnings(str(scope), tags=tags or (), category=category)
    view: Any = learnings_view(found)
    both = [{"kind": kind, **each} for kind in ("decisions", "lessons") for each in view[kind]]
    shown: Any = page("learnings", both[offset:], offset=offset, total=len(both))
    parted: dict[str, Plain] = {
        wanted: [
            {key: value for key, value in each.items() if key != "kind"}
            for each in shown["learnings"]
            if each["kind"] == wanted
        ]
        for wanted in ("decisions", "lessons")
    }
    return {**parted, **{key: value for key, value in shown.items() if key != "learnings"}}


@_tool(Toolset.WORKSPACE, replaces=True)
def save_memory(
    bank: Bank,
    scope: ScopeArgument,
    items: Annotated[
        list[str | dict[str, Any]],
        Meta(
            min_length=1,
            description="Texts, or objects of text, kind (decision, lesson, plan_status), title, category,"
            " tags, plan, status.",
        ),
    ],
    on_conflict: Annotated[
        Literal["refuse", "supersede", "keep_both"], Meta(description="What to do with a contradiction.")
    ] = "refuse",
) -> dict[str, Plain]:
    """Save decisions, lessons and plans' statuses, unless they are known already or contradict what is."""
    from archivist.workspace.save import MemoryItem, SaveOutcome, items_from

    read = items_from(items)
    wanted = [each for each in read if isinstance(each, MemoryItem)]
    saved = iter(bank.workspace.save_memory(wanted, str(scope), on_conflict=on_conflict))
    outcomes = [each if isinstance(each, SaveOutcome) else next(saved) for each in read]
    told = ("title", "place", "reason", "against")
    return {
        "items": [
            {"result": str(each.result), "kind": str(each.kind)}
            | {name: reason_for_agents(str(getattr(each, name))) for name in told if getattr(each, name)}
            for each in outcomes
        ]
    }
