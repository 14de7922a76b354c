"""The functions that an agent can call, each defined once, by its signature and its docstring.

Names, parameters and defaults of the seven memory functions are those of the cognitive document in Python's
spelling. Docstrings and descriptions are what the agent reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from archivist.access.rights import Layer
from archivist.clock import to_text
from archivist.edges.views import approach_view, entry_view, hit_view
from archivist.errors import InputError
from archivist.tools import task_functions as _task_functions  # noqa: F401 registers its functions
from archivist.tools.registry import (
    COUNT,
    DEFAULT,
    NEXT,
    NUMBER,
    TEXT,
    Answer,
    Count,
    Limit,
    Offset,
    ScopeArgument,
    Tool,
    Toolset,
    call,
    day_range,
    find_tool,
    for_anthropic,
    for_mcp,
    for_openai,
    list_schema,
    object_schema,
    page,
    page_schema,
    pick_fields,
    reason_for_agents,
    select_tools,
    text_page,
    tool,
    tools,
)

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.layers.attempts_service import SimilarApproach
    from archivist.lessons.candidate import KeptLesson
    from archivist.recall.results import Hit
    from archivist.records import Episode, Fact, Lesson
    from archivist.stream.service import StreamHit
    from archivist.workspace.skills_service import Skill

# Doors take the registry from here, so that the functions are registered when they use it.
__all__ = [
    "DEFAULT", "Tool", "Toolset", "call", "find_tool", "for_anthropic", "for_mcp", "for_openai",
    "select_tools", "tools",
]  # fmt: skip

# A search goes no deeper: later results hardly ever answer the question.
_DEPTH = 200

Words = Annotated[str, Meta(min_length=1, description="What to search for, in plain words.")]
Role = Annotated[str, Meta(description="Only of this role.")]
Issue = Annotated[Count | None, Meta(description="Only what refers to this issue.")]
Weight = Annotated[int, Meta(ge=1, le=10, description="Importance from 1 to 10.")]
Cycles = Annotated[tuple[Count, Count] | None, Meta(description="First and last cycle.")]
Dates = Annotated[tuple[str, str] | None, Meta(description="First and last day, YYYY-MM-DD.")]
Tags = Annotated[list[str], Meta(description="Tags.")]
Numbers = Annotated[list[Count] | None, Meta(description="Numbers that this refers to.")]
Text = Annotated[str, Meta(min_length=1, description="The text to keep.")]
Item = Annotated[str | dict[str, Any], Meta(description="A text, or an object of the section's fields.")]
AnyRepo = Annotated[str, Meta(description="Another repository than the one you work in; `*` for all.")]
LessonCategory = Literal[
    "heuristic", "anti_pattern", "tool_usage", "provider_quirk", "test_strategy", "infra", "prompting",
    "bugfix_pattern",
]  # fmt: skip
LessonScope = Literal["global", "project", "repo", "task", "tool", "provider"]
Archived = Literal["cycle", "decision", "research", "spec", "lesson"]

_ENTRY = {"id": TEXT, "cycle": COUNT, "action": TEXT, "content": TEXT}
_HIT = {"kind": TEXT, "id": TEXT, "name": TEXT, "text": TEXT, "score": NUMBER}
_METADATA = object_schema(
    type=TEXT, date=TEXT, importance=COUNT,
    roles={"type": "array", "items": TEXT}, issues={"type": "array", "items": COUNT},
)  # fmt: skip
_TRIED = {"task": TEXT, "approach": TEXT, "verdict": TEXT, "provenance": TEXT}
_SECTION = object_schema(section=TEXT, tokens=COUNT)


def _compact_hit(hit: Hit) -> Answer:
    """Return what was found without the parts of its score.

    Its id is the one that memory_get takes: the name of an entry, `cycle 5`, is that of several records.
    """
    view = hit_view(hit)
    known = {name: view[name] for name in ("notes", "provenance") if view[name]}
    fields = {name: view[name] for name in ("kind", "text", "time")}
    return {**fields, "id": view["uid"], "name": view["id"], "score": round(hit.score, 3), **known}


# The memory functions of the cognitive tiers


@tool(Toolset.COGNITIVE, page_schema("entries", {**_ENTRY, "score": NUMBER}), reads=True)
def recall_search(
    bank: Bank,
    query: Words,
    role: Role = "",
    issue: Issue = None,
    min_importance: Weight | None = None,
    limit: Limit = 5,
    cycle_range: Cycles = None,
    offset: Offset = 0,
) -> Answer:
    """Search the recent cycles of the stream; the best by recency, importance and relevance first."""
    reach = min(offset + limit + 1, _DEPTH)
    found = bank.stream.search(
        query, role=role, issue=issue, min_importance=min_importance, limit=reach, cycles=cycle_range
    )

    def view(match: StreamHit) -> Answer:
        return {**entry_view(match.entry), "score": round(match.hit.score, 3)}

    return page("entries", found, view, offset=offset, limit=limit)


@tool(Toolset.COGNITIVE, page_schema("entries", _ENTRY, total=COUNT), reads=True)
def recall_by_cycle(
    bank: Bank,
    start_cycle: Annotated[Count, Meta(description="The first cycle.")],
    end_cycle: Annotated[Count, Meta(description="The last cycle.")],
    role: Role = "",
    min_importance: Weight = 1,
    offset: Offset = 0,
) -> Answer:
    """Get what was logged in a range of cycles, in order, however long ago."""
    entries = bank.stream.by_cycle(start_cycle, end_cycle, role=role, min_importance=min_importance)
    return page("entries", entries, entry_view, offset=offset, total=len(entries))


@tool(Toolset.COGNITIVE, page_schema("entries", {**_HIT, "source": TEXT, "metadata": _METADATA}), reads=True)
def archival_search(
    bank: Bank,
    query: Words,
    type: Archived | None = None,  # noqa: A002
    date_range: Dates = None,
    limit: Limit = 5,
    offset: Offset = 0,
) -> Answer:
    """Search long-term memory: documents, decisions, specs, lessons of reflections, and old cycles."""
    reach = min(offset + limit + 1, _DEPTH)
    found = bank.documents.search(query, type=type, dates=day_range(date_range), limit=reach)
    described = bank.documents.describe_hits(found)

    def view(hit: Hit) -> Answer:
        about = described[hit.id]
        metadata = {name: list(v) if isinstance(v, tuple) else v for name, v in about._asdict().items()}
        metadata["date"] = to_text(about.date)
        return {**_compact_hit(hit), "source": metadata.pop("source"), "metadata": metadata}

    return page("entries", found, view, offset=offset, limit=limit)


@tool(Toolset.COGNITIVE, object_schema(source=TEXT, pieces=COUNT), repeats=True)
def archival_insert(
    bank: Bank,
    content: Text,
    type: Archived,  # noqa: A002
    roles: Annotated[list[str] | None, Meta(description="The roles that it concerns.")] = None,
    issues: Numbers = None,
    importance: Weight = 5,
) -> Answer:
    """Keep a text in long-term memory."""
    pieces = bank.documents.insert(
        content, type=type, roles=tuple(roles or ()), issues=tuple(issues or ()), importance=importance
    )
    return {"source": pieces[0].source, "pieces": len(pieces)}


@tool(Toolset.COGNITIVE, object_schema({"next_offset": NEXT}, text=TEXT, tokens=COUNT), reads=True)
def core_memory_read(
    bank: Bank,
    role: Annotated[str, Meta(description="Whose core memory; yours by default.")] = "",
    offset: Offset = 0,
) -> Answer:
    """Read core memory in full: playbook, rules, status, threads, role state, lessons."""
    view = bank.core.view(role)
    return {**text_page(view.text, offset=offset), "tokens": view.tokens}


@tool(Toolset.COGNITIVE, _SECTION, repeats=True, replaces=True)
def core_memory_update(
    bank: Bank,
    section: Annotated[
        Literal["status", "threads", "roleState", "lessons"], Meta(description="Which block of core memory.")
    ],
    content: Item,
    role: Annotated[str, Meta(description="Whose role state; yours by default.")] = "",
) -> Answer:
    """Change a block of core memory, which is always in context. Playbook and rules change by proposals."""
    bank.core.update(section, content, role=role)
    return {"section": section, "tokens": bank.core.view(role).tokens}


@tool(Toolset.COGNITIVE, _SECTION, replaces=True)
def core_memory_append(
    bank: Bank,
    section: Annotated[
        Literal["threads", "recentlyShipped", "blockers"], Meta(description="Which list of core memory.")
    ],
    item: Item,
) -> Answer:
    """Add to a list of core memory: a thread, something shipped, a blocker."""
    bank.core.append(section, item)
    return {"section": section, "tokens": bank.core.view().tokens}


@tool(Toolset.COGNITIVE, object_schema({"reflection_due": TEXT}, id=TEXT, cycle=COUNT))
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
) -> Answer:
    """Log what was done to the stream, at the end of every cycle, with an honest importance."""
    entry = bank.stream.log(
        action, cycle=cycle, role=role, importance=importance, type=type, content=content, tags=tuple(tags),
        issues=tuple(issue_refs or ()), prs=tuple(pr_refs or ()),
    )  # fmt: skip
    due = bank.stream.due_reason()
    return {"id": entry.id, "cycle": entry.cycle, **({"reflection_due": due} if due else {})}


@tool(Toolset.COGNITIVE, object_schema({"reflection_due": TEXT}, cycle=COUNT))
def cycle_start(
    bank: Bank, role: Annotated[str, Meta(description="Whose cycle; yours by default.")] = ""
) -> Answer:
    """Begin the next cycle: what is logged from now on belongs to it."""
    number = bank.stream.begin_cycle(role)
    due = bank.stream.due_reason()
    return {"cycle": number, **({"reflection_due": due} if due else {})}


@tool(Toolset.COGNITIVE, object_schema({"reason": TEXT}, insights=list_schema(**_ENTRY), gathered=COUNT))
def reflect(
    bank: Bank,
    reason: Annotated[str, Meta(description="Why now; empty to reflect only if it is due.")] = "",
) -> Answer:
    """Reflect on what was logged since the last reflection: insights for the stream and the archive."""
    done = bank.stream.reflect(reason, if_due=not reason.strip())
    told: Answer = {"core": list(done.told_core)} if done.told_core else {}
    found = [entry_view(entry) for entry in done.entries]
    return {"insights": found, "gathered": done.gathered, "reason": done.reason or done.skipped, **told}


# The layers that a project's agents share


@tool(Toolset.LAYERS, page_schema("knowledge", {"id": TEXT, "category": TEXT, "key": TEXT}), reads=True)
def knowledge_query(
    bank: Bank,
    text: Annotated[str, Meta(description="What to search for, in plain words; empty for all.")] = "",
    category: Annotated[str, Meta(description="convention, architecture, decision, fact, …")] = "",
    key: Annotated[str, Meta(description="The exact key.")] = "",
    project: Annotated[str, Meta(description="By default this project and none; * for all.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> Answer:
    """Look up what is known about the project: conventions, architecture, decisions, facts."""
    most = offset + limit + 1
    facts = bank.knowledge.query(category=category, key=key, text=text, project=project, limit=most)
    fields = pick_fields("id", "project", "category", "key", "value", "source", "confidence", "updated")

    def view(fact: Fact) -> Answer:
        return fields(fact) | ({"provenance": fact.provenance.value} if fact.provenance else {})

    return page("knowledge", facts, view, offset=offset, limit=limit)


@tool(
    Toolset.LAYERS,
    object_schema({"conflict": TEXT}, id=TEXT, category=TEXT, key=TEXT, value=TEXT, confidence=NUMBER),
    repeats=True,
    replaces=True,
    layer=Layer.KNOWLEDGE,
)
def knowledge_put(
    bank: Bank,
    category: Annotated[str, Meta(min_length=1, max_length=200, description="convention, decision, …")],
    key: Annotated[str, Meta(min_length=1, max_length=200, description="A short stable name.")],
    value: Text,
    confidence: Annotated[float, Meta(ge=0, le=1, description="How sure, from 0 to 1.")] = 1.0,
    project: Annotated[str, Meta(max_length=200, description="By default this project.")] = "",
) -> Answer:
    """Record a fact about the project. Only for orchestrators and people; the higher confidence wins."""
    kept = bank.knowledge.put(category, key, value, confidence=confidence, project=project)
    conflict = {"conflict": kept.conflict.reason} if kept.conflict else {}
    return {**pick_fields("id", "project", "category", "key", "value", "confidence")(kept.fact), **conflict}


@tool(Toolset.LAYERS, object_schema(id=TEXT, task=TEXT, action=TEXT), layer=Layer.EPISODES)
def episode_log(
    bank: Bank,
    task: Annotated[str, Meta(min_length=1, description="The task's id or title.")],
    agent: Annotated[str, Meta(min_length=1, description="Who tried.")],
    action: Literal["attempted", "completed", "failed", "retried"],
    approach: Annotated[str, Meta(min_length=1, description="What was tried.")],
    outcome: Annotated[str, Meta(description="The outcome.")] = "",
    duration_ms: Annotated[Count | None, Meta(description="How long it took.")] = None,
    tokens_in: Annotated[Count | None, Meta(description="Tokens read.")] = None,
    tokens_out: Annotated[Count | None, Meta(description="Tokens written.")] = None,
) -> Answer:
    """Log an attempt at a task and its outcome. Only for orchestrators and people."""
    episode = bank.attempts.log(
        task, agent=agent, action=action, approach=approach, outcome=outcome, duration_ms=duration_ms,
        tokens_in=tokens_in, tokens_out=tokens_out,
    )  # fmt: skip
    return {"id": episode.id, "task": task, "action": action}


@tool(Toolset.LAYERS, page_schema("episodes", {"id": TEXT, "provenance": TEXT}), reads=True)
def episode_query(
    bank: Bank,
    task: Annotated[str, Meta(description="Attempts at this task.")] = "",
    agent: Annotated[str, Meta(description="Attempts of this agent.")] = "",
    action: Literal["attempted", "completed", "failed", "retried"] | None = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> Answer:
    """See what was tried for a task, or how an agent fared, the latest first."""
    found = bank.attempts.query(task=task, agent=agent, action=action, limit=offset + limit + 1)
    fields = pick_fields("id", "task", "agent", "action", "approach", "outcome", "finished")

    def view(attempt: Episode) -> Answer:
        return {**fields(attempt), "provenance": bank.runs.provenance(attempt.id).value}

    return page("episodes", found, view, offset=offset, limit=limit)


@tool(
    Toolset.LAYERS,
    page_schema("tried", {**_TRIED, "id": TEXT, "title": TEXT, "score": NUMBER}),
    reads=True,
)
def what_worked(bank: Bank, task: Words, limit: Limit = 5, offset: Offset = 0) -> Answer:
    """See what worked, and what did not, for tasks like this one."""

    def view(found: SimilarApproach) -> Answer:
        tried = approach_view(found.tried)
        last = tried["last"]
        return {
            "id": last["id"],
            **{name: tried[name] for name in _TRIED},
            "title": found.title,
            "outcome": last["outcome"],
            "score": round(found.score, 3),
        }

    found = bank.attempts.similar(task, limit=offset + limit + 1)
    return page("tried", found, view, offset=offset, limit=limit)


@tool(
    Toolset.LAYERS,
    object_schema(id=TEXT, path=TEXT, type=TEXT, size_bytes=COUNT, checksum=TEXT),
    repeats=True,
    layer=Layer.ARTIFACTS,
)
def artifact_register(
    bank: Bank,
    path: Annotated[str, Meta(min_length=1, description="The file, relative to the workspace.")],
    task: Annotated[str, Meta(min_length=1, description="The task that produced it.")],
    type: Literal["file", "patch", "test", "document", "config"] = "file",  # noqa: A002
    description: Annotated[str, Meta(description="What it is.")] = "",
    agent: Annotated[str, Meta(description="Who produced it; you by default.")] = "",
) -> Answer:
    """Register a file that was produced, with its checksum as it is now."""
    made = bank.artifacts.register(path, task=task, agent=agent, type=type, description=description)
    return pick_fields("id", "path", "type", "size_bytes", "checksum", "previous")(made)


@tool(Toolset.LAYERS, page_schema("artifacts", {"id": TEXT, "path": TEXT, "type": TEXT}), reads=True)
def artifact_query(
    bank: Bank,
    task: Annotated[str, Meta(description="Produced by this task.")] = "",
    type: Literal["file", "patch", "test", "document", "config"] | None = None,  # noqa: A002
    path: Annotated[str, Meta(description="Of this path.")] = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> Answer:
    """List what was produced, the latest first."""
    found = bank.artifacts.query(task=task, type=type, path=path, limit=offset + limit + 1)
    view = pick_fields(
        "id", "path", "type", "task", "agent", "description", "size_bytes", "checksum", "created"
    )
    return page("artifacts", found, view, offset=offset, limit=limit)


# Lessons, briefs, and reading on


@tool(
    Toolset.ARCHIVIST,
    object_schema({"why_no_lesson": TEXT}, text=TEXT, lessons={"type": "array", "items": TEXT}),
    reads=True,
    records="run",
)
def brief(
    bank: Bank,
    task: Annotated[str, Meta(description="What is about to be done.")] = "",
    role: Role = "",
    error: Annotated[str, Meta(description="The output of something that failed, to see what helped.")] = "",
    tool: Annotated[str, Meta(description="The tool that is about to be used, or that failed.")] = "",
    run: Annotated[str, Meta(description="Your run, to record what it was told and judge it later.")] = "",
    repo: Annotated[str, Meta(description="The repository, unless it is the one you were started in.")] = "",
) -> Answer:
    """Get what earlier runs learnt that matters now: before a task, or next to an error."""
    if error:
        found = bank.briefs.heal(error, tool=tool, repo=repo)
    else:
        found = bank.brief(task=task, repo=repo, role=role, tool=tool, run=run)
    why = {"why_no_lesson": found.why_no_lesson} if found.why_no_lesson else {}
    return {"text": found.text, "lessons": [each.name for each in found.chosen], **why}


@tool(Toolset.ARCHIVIST, page_schema("hits", _HIT), reads=True)
def recall(
    bank: Bank,
    query: Words,
    kinds: Annotated[
        list[Literal["lesson", "episode", "event", "fact", "artifact", "task", "entry", "document"]] | None,
        Meta(description="Only these kinds of memory."),
    ] = None,
    role: Role = "",
    issue: Issue = None,
    run: Annotated[str, Meta(description="Only of this run: its calls and messages.")] = "",
    repo: AnyRepo = "",
    limit: Limit = 5,
    offset: Offset = 0,
) -> Answer:
    """Find what the memory knows about something: lessons, runs, facts, stream and archive."""
    from archivist.recall.query import Query

    reach = min(offset + limit + 1, _DEPTH)
    wanted = Query(
        text=query, kinds=tuple(kinds or ()), role=role, issue=issue, run=run, repo=repo, limit=reach
    )
    return page("hits", bank.recall(wanted).hits, _compact_hit, offset=offset, limit=limit)


@tool(Toolset.ARCHIVIST, object_schema({"waits_for": TEXT}, id=TEXT, summary=TEXT, status=TEXT, result=TEXT))
def lesson_add(
    bank: Bank,
    summary: Annotated[str, Meta(min_length=1, max_length=1000, description="One sentence.")],
    rule: Annotated[str, Meta(max_length=1000, description="IF … THEN …")] = "",
    detail: Annotated[str, Meta(description="What happened, and how it is known.")] = "",
    tags: Annotated[list[str] | None, Meta(description="Two to five words by which it is found.")] = None,
    importance: Annotated[float, Meta(ge=0, le=1, description="From 0 to 1.")] = 0.5,
    category: Annotated[LessonCategory | None, Meta(description="What sort of advice it is.")] = None,
    scope: Annotated[LessonScope | None, Meta(description="What it holds for.")] = None,
    provider: Annotated[str, Meta(description="The harness that it is about, such as claude-code.")] = "",
    tool: Annotated[str, Meta(description="The tool that it is about.")] = "",
    run: Annotated[str, Meta(description="The run that learnt it.")] = "",
    evidence: Annotated[list[str] | None, Meta(description="Ids of runs, events or entries.")] = None,
    supersedes: Annotated[list[str] | None, Meta(description="Ids of lessons that it replaces.")] = None,
) -> Answer:
    """Keep a lesson for the runs to come. It waits until a person approves it or a run of theirs meets it."""
    fields = {"category": category, "scope": scope, "provider": provider, "tool": tool}
    kept = bank.lessons.suggest(
        summary, rule=rule, detail=detail, tags=tags or (), importance=importance, run=run,
        evidence=evidence or (), supersedes=supersedes or (),
        **{name: value for name, value in fields.items() if value},
    )  # fmt: skip
    return _describe_kept(kept)


def _describe_kept(kept: KeptLesson) -> Answer:
    from archivist.lessons.quarantine import WAITS_FOR
    from archivist.records.words import Status

    lesson = kept.lesson
    result = "kept" if kept.is_new else "met again"
    if lesson.status is Status.QUARANTINED:
        result = "quarantined until a person approves it"
    waits: Answer = {"waits_for": WAITS_FOR} if lesson.is_waiting else {}
    known = {"id": lesson.short_id, "summary": lesson.summary, "status": lesson.status.value}
    return {**known, "result": result, **waits}


@tool(Toolset.ARCHIVIST, object_schema(lessons=list_schema(result=TEXT)))
def create_lessons(
    bank: Bank,
    lessons: Annotated[
        list[dict[str, Any]],
        Meta(
            min_length=1,
            max_length=20,
            description="Objects of summary, rule, detail, category, scope, provider, tool, tags, importance,"
            " evidence, supersedes, as lesson_add takes them.",
        ),
    ],
    run: Annotated[str, Meta(description="The run that learnt them.")] = "",
) -> Answer:
    """Keep several lessons at once. One that cannot be kept says why, and the others are kept."""
    answers: list[Answer] = []
    for given in lessons:
        try:
            answers.append(call(bank, "lesson_add", {"run": run, **given}))
        except InputError as error:
            answers.append({"summary": str(given.get("summary", "")), "result": f"refused: {error.message}"})
    return {"lessons": answers}


@tool(Toolset.ARCHIVIST, object_schema({"waits_for": TEXT}, id=TEXT, summary=TEXT, status=TEXT, result=TEXT))
def merge(
    bank: Bank,
    ids: Annotated[list[str], Meta(min_length=2, max_length=20, description="Lessons that say the same.")],
    summary: Annotated[str, Meta(max_length=1000, description="New words; else those of the first.")] = "",
    rule: Annotated[str, Meta(max_length=1000, description="IF … THEN …")] = "",
) -> Answer:
    """Make one lesson of several that say the same. Lessons of others change when a person approves it."""
    return _describe_kept(bank.lessons.merge(ids, summary=summary, rule=rule))


@tool(Toolset.ARCHIVIST, page_schema("lessons", {"id": TEXT, "summary": TEXT, "status": TEXT}), reads=True)
def lesson_query(
    bank: Bank,
    text: Annotated[str, Meta(description="What to search for; empty for the best by themselves.")] = "",
    tool: Annotated[str, Meta(description="Only about this tool.")] = "",
    provider: Annotated[str, Meta(description="Only about this provider.")] = "",
    tags: Annotated[list[str] | None, Meta(description="Only with one of these tags.")] = None,
    phase: Annotated[str, Meta(description="Only about this phase: test, lint, typecheck, build.")] = "",
    error: Annotated[str, Meta(description="Only about this kind of failure, such as timeout.")] = "",
    task: Annotated[str, Meta(description="Only of this task.")] = "",
    repo: AnyRepo = "",
    limit: Limit = 10,
    offset: Offset = 0,
) -> Answer:
    """List lessons: the best matches, or the best by importance and recency."""
    from archivist.recall.query import Query

    asked = Query(
        text=text, tool=tool, provider=provider, tags=tuple(tags or ()), phase=phase, error=error, task=task,
        repo=repo, limit=offset + limit + 1,
    )  # fmt: skip
    found = bank.lessons.query(asked)
    fields = pick_fields("summary", "rule", "category", "tags", "status", "provenance")

    def view(lesson: Lesson) -> Answer:
        return {"id": lesson.short_id, **fields(lesson)}

    return page("lessons", found, view, offset=offset, limit=limit)


@tool(Toolset.ARCHIVIST, object_schema({"next_offset": NEXT}, id=TEXT, kind=TEXT, text=TEXT), reads=True)
def memory_get(
    bank: Bank,
    id: Annotated[str, Meta(min_length=1, description="The id of anything that another tool named.")],  # noqa: A002
    offset: Offset = 0,
) -> Answer:
    """Read one memory in full, a page at a time. The id of a workspace document is its document_path."""
    from archivist.tools.resources_service import as_lines, read_record

    kind, record = read_record(bank, id)
    # An answer is JSON already: a record in it as JSON would be escaped twice.
    text = record if isinstance(record, str) else "\n".join(as_lines(record))
    return {"id": id, "kind": kind or "document", **text_page(text, offset=offset)}


@tool(Toolset.ARCHIVIST, object_schema(id=TEXT, status=TEXT, diff=TEXT))
def proposal_add(
    bank: Bank,
    section: Literal["playbook", "rules"],
    after: Annotated[str, Meta(min_length=1, description="The whole new text of the section.")],
    reason: Annotated[str, Meta(min_length=1, description="Why.")],
    role: Annotated[str, Meta(description="Whose playbook; yours by default.")] = "",
    evidence: Annotated[list[str] | None, Meta(description="Ids of lessons, runs or entries.")] = None,
) -> Answer:
    """Propose a change of the playbook or the rules, which an approver accepts or rejects."""
    made = bank.proposals.propose(section, after, reason=reason, role=role, evidence=tuple(evidence or ()))
    return {"id": made.short_id, "status": made.status.value, "diff": bank.proposals.diff(made.id)}


# The markdown memory of a workspace


@tool(Toolset.WORKSPACE, page_schema("plans", {"name": TEXT, "description": TEXT}, total=COUNT), reads=True)
def retrieve_plans(
    bank: Bank,
    scope: ScopeArgument,
    status: Annotated[
        list[Literal["new", "in_progress", "partial", "done", "abandoned"]] | None,
        Meta(description="Only with one of these statuses."),
    ] = None,
    tags: Annotated[list[str] | None, Meta(description="Only with one of these tags.")] = None,
    offset: Offset = 0,
) -> Answer:
    """See what was done and what is planned in a workspace: the front matter of its plans."""
    from archivist.workspace.documents import plan_view

    found = bank.workspace.retrieve_plans(scope.within(bank), status=status or (), tags=tags or ())
    return page("plans", found, plan_view, offset=offset, total=len(found))


@tool(Toolset.WORKSPACE, page_schema("overviews", {"scope": TEXT, "tier": TEXT}, total=COUNT), reads=True)
def retrieve_overview(bank: Bank, scope: ScopeArgument, offset: Offset = 0) -> Answer:
    """Understand a workspace, a domain or a repository: its overview, and abstracts of what lies below."""
    from archivist.workspace.documents import overviews_view

    views: Any = overviews_view(bank.workspace.retrieve_overview(scope.within(bank)))["overviews"]
    return page("overviews", views, offset=offset, total=len(views))


@tool(
    Toolset.WORKSPACE,
    object_schema(
        {"next_offset": NEXT},
        decisions=list_schema(content=TEXT),
        lessons=list_schema(content=TEXT),
        total=COUNT,
        totals=object_schema(decisions=COUNT, lessons=COUNT),
    ),
    reads=True,
)
def retrieve_learnings(
    bank: Bank,
    scope: ScopeArgument,
    tags: Annotated[list[str] | None, Meta(description="Only with one of these tags.")] = None,
    category: Annotated[str, Meta(description="Only of this category.")] = "",
    offset: Offset = 0,
) -> Answer:
    """Get the decisions to respect and the lessons, the newest first; `said_by` names an agent's own."""
    from archivist.workspace.documents import learning_view, unread_view
    from archivist.workspace.learnings import newest_first

    found = bank.workspace.retrieve_learnings(scope.within(bank), tags=tags or (), category=category)
    both = newest_first(found)
    # One page of both kinds, so that they share its room; then each kind by itself.
    shown: Any = page("learnings", both, learning_view, offset=offset, total=len(both))
    answer: dict[str, Any] = {"decisions": [], "lessons": []}
    for item, learning in zip(shown.pop("learnings"), both[offset:], strict=False):
        answer[learning.kind.value].append(item)
    totals = {"decisions": len(found.decisions), "lessons": len(found.lessons)}
    return {**answer, **shown, "totals": totals, **unread_view(bank.workspace.problems)}


@tool(Toolset.WORKSPACE, object_schema(items=list_schema(result=TEXT, kind=TEXT)), replaces=True)
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
) -> Answer:
    """Save decisions, lessons and plans' statuses, unless they are known already or contradict known ones."""
    from archivist.workspace.save import MemoryItem, SaveOutcome, items_from

    read = items_from(items)
    wanted = [each for each in read if isinstance(each, MemoryItem)]
    saved = iter(bank.workspace.save_memory(wanted, scope.within(bank), on_conflict=on_conflict))
    outcomes = [each if isinstance(each, SaveOutcome) else next(saved) for each in read]
    named = ("title", "place", "reason", "against")
    return {
        "items": [
            {"result": str(each.result), "kind": str(each.kind)}
            | {name: reason_for_agents(str(getattr(each, name))) for name in named if getattr(each, name)}
            for each in outcomes
        ]
    }


@tool(Toolset.WORKSPACE, page_schema("skills", {"name": TEXT, "description": TEXT}, total=COUNT), reads=True)
def retrieve_skills(
    bank: Bank,
    scope: ScopeArgument,
    name: Annotated[str, Meta(description="One skill, in full.")] = "",
    offset: Offset = 0,
) -> Answer:
    """Find procedures to follow again: the skills of a workspace, and those that agent tools keep here."""
    from archivist.workspace.documents import skill_view

    found = bank.workspace.retrieve_skills(scope.within(bank), name)

    def view(skill: Skill) -> Answer:
        whole: dict[str, Any] = {**skill_view(skill), "content": skill.text if name else ""}
        return {key: value for key, value in whole.items() if value}

    return page("skills", found, view, offset=offset, total=len(found))


@tool(Toolset.WORKSPACE, object_schema(result=TEXT, path=TEXT), repeats=True, replaces=True)
def save_skill(
    bank: Bank,
    scope: ScopeArgument,
    name: Annotated[str, Meta(min_length=1, description="Lower-case words with hyphens.")],
    text: Annotated[str, Meta(min_length=1, description="The steps, as Markdown.")],
    description: Annotated[str, Meta(description="What it does and when to use it.")] = "",
    replace: Annotated[bool, Meta(description="Replace your own skill of that name.")] = False,
) -> Answer:
    """Save a procedure that worked as a skill of a workspace, so that any agent can follow it again."""
    saved = bank.workspace.save_skill(
        name, text, scope.within(bank), description=description, is_replacing=replace
    )
    return {"result": saved.kept, "path": saved.skill.path}
