"""One secret through every writing method, tool, command and route: no byte of it is stored.

The access decorator knows every method that writes. A method that the table below does not know fails the
test, so that a new door cannot forget to redact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from inspect import signature
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.access.rights import Verb
from archivist.archive.items_service import ItemChange, ItemName
from archivist.capture.service import CaptureOverrides
from archivist.errors import ArchivistError
from archivist.lessons.candidate import Candidate, Sighting
from archivist.lessons.file_words import FileWords
from archivist.records import (
    Actor,
    ActorKind,
    Entry,
    Episode,
    Event,
    EventKind,
    Evidence,
    Finding,
    Provenance,
)
from archivist.reflect.trigger import ReflectionTrigger
from archivist.tools.functions import call as call_tool
from archivist.tools.functions import tools
from archivist.workspace.save import MemoryItem
from tests.commands import Command
from tests.samples import DOCUMENT_LESSONS, run_lines, write_jsonl
from tests.services import service_classes

WHEN = datetime(2026, 4, 3, 14, 0, tzinfo=UTC)


class Tokens:
    """Fake tokens, each with the place where it was put, so that a leak names its place."""

    def __init__(self) -> None:
        self.places: dict[bytes, str] = {}
        self._numbers = count(1)

    def make(self, place: str) -> str:
        """Return a new token; assembled here, so that no scanner takes this file for a leak."""
        body = f"{'aB3dE5gH7jK9' * 3}"[:30] + f"{next(self._numbers):06d}"
        self.places[body.lower().encode()] = place
        return "gh" + "p_" + body

    def leaks_in(self, folder: Path, *, in_names: bool = True) -> str:
        """Return the places whose token stands in a file or a name below the folder, in any case."""
        found = set()
        for path in folder.rglob("*"):
            data = path.read_bytes().lower() if path.is_file() else b""
            data += bytes(path).lower() if in_names else b""
            found |= {place for body, place in self.places.items() if body in data}
        return ", ".join(sorted(found))


def variants(value: Any, place: str, tokens: Tokens) -> Iterator[Any]:
    """Yield copies of a value, in each of which one text is a token or holds one."""
    if type(value) is str:
        yield tokens.make(place)
        yield f"use {tokens.make(place)} here"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from ({**value, key: changed} for changed in variants(item, f"{place}.{key}", tokens))
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            changes = variants(getattr(value, each.name), f"{place}.{each.name}", tokens)
            yield from (replace(value, **{each.name: changed}) for changed in changes)
    elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        for index, item in enumerate(value):
            for changed in variants(item, f"{place}[{index}]", tokens):
                yield type(value)([*value[:index], changed, *value[index + 1 :]])
    elif hasattr(value, "_fields"):
        for name in value._fields:
            changes = variants(getattr(value, name), f"{place}.{name}", tokens)
            yield from (value._replace(**{name: changed}) for changed in changes)


EPISODE = Episode(
    id="r-1", parent="p", project="shop", task="t", subtask="s", session="n", agent="a", provider="p",
    model="m", summary="Done", domain="code", tags=("tag",), trajectories=("log.jsonl",), approach="x",
    outcome="y", started=WHEN, extra={"folder": "f", "list": ["x"], "deep": {"key": "value"}},
)  # fmt: skip
EVENT = Event(
    run="r-1", seq=1, kind=EventKind.VERDICT, name="n", agent="a", role="r", phase="p", tool="t", target="x",
    text="text", output="out", extra={"data": {"key": "value"}},
    findings=(Finding(description="Missing null checks in handlers", category="c", found_by="g", file="f"),),
)  # fmt: skip
ENTRY = Entry(
    id="e-1", seq=1, cycle=1, action="Look", role="maker", content="Words", tags=("t",), run="r", time=WHEN
)
LESSON: dict[str, Any] = {
    "summary": "Check nulls", "rule": "Check them", "detail": "More", "role": "maker", "domain": "code",
    "tags": ("parser",), "repo": "shop", "task": "t", "provider": "p", "tool": "bash", "project": "shop",
}  # fmt: skip
CANDIDATE = Candidate(
    key="k", summary="s", rule="r", detail="d", project="p", repo="shop", task="t", provider="p", tool="t",
    role="maker", tags=("t",), remedies=("ls",), origin="o", events=("r-1#1",), earlier_runs=("r-0",),
    evidence=Evidence(episodes=("r-1",), sessions=("n",), logs=("log",)),
)  # fmt: skip
SIGHTING = Sighting(
    provenance=Provenance.MINED, actor=Actor(ActorKind.HUMAN, "ada"), now=WHEN, run_count=1, run="r-1",
    counted="r-1", session="n", trajectories=("log.jsonl",), project="shop", seen=WHEN,
)  # fmt: skip
TURNS = [
    {"role": "user", "content": "Say it"},
    {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"command": "ls"}'},
    {"type": "function_call_output", "call_id": "c", "output": "done"},
]


def _file(tokens: Tokens, folder: Path, name: str, lines: list[dict[str, Any]]) -> Iterator[Path]:
    """Yield files of lines, in each of which one text holds a token."""
    for number, changed in enumerate(variants(lines, name, tokens)):
        yield write_jsonl(folder / f"{number}-{name}.jsonl", changed)


# Methods whose arguments are plain values: each text in them becomes a token in turn.
VALUES: dict[str, dict[str, Any]] = {
    "Artifacts.register": {"path": "out.txt", "task": "t", "agent": "a", "description": "d", "run": "r"},
    "Artifacts.remove": {"name": "out.txt"},
    "Attempts.log": {
        "task": "t", "agent": "a", "action": "failed", "approach": "x", "outcome": "o", "provider": "p",
        "run": "r", "id": "i",
    },
    "Audits.audit": {"run": "r-1"},
    "Conversations.add": {"session": "s", "turns": TURNS},
    "Conversations.clear": {"session": "s"},
    "Conversations.finish": {"session": "s", "project": "shop", "agent": "a"},
    "Conversations.pop": {"session": "s"},
    "Core.append": {"section": "threads", "item": "words", "role": "maker"},
    "Core.close_thread": {"name": "84"},
    "Core.take_out": {"section": "blockers", "item": "x"},
    "Core.take_from_file": {"words": FileWords("bank.md"), "section": "status", "content": "words"},
    "Core.update": {"section": "status", "content": "words", "role": "maker"},
    "Doctor.reindex": {},
    "BankPages.import_banks": {"paths": []},
    "Documents.insert": {
        "content": "text", "type": "decision", "roles": ["maker"], "source": "s", "tags": ["t"],
    },
    "Documents.refresh": {},
    "Documents.remove": {"source": "s"},
    "Documents.unwatch": {"folder": "docs"},
    "Documents.watch": {"folder": "docs", "pattern": "*.md"},
    "Drafts.save": {"run_drafts": []},
    "Erasure.find_erasure_targets": {"names": ["m-001"], "matching": ""},
    "Erasure.prune": {},
    "Items.drop": {"names": [ItemName(("a",), "k")]},
    "Items.put": {"changes": [ItemChange(ItemName(("a",), "k"), {"text": "tea", "deep": ["x"]})]},
    "Items.sweep": {},
    "Knowledge.decide": {"conflict_id": "c/k", "for_lost": True},
    "Knowledge.put": {
        "category": "c", "key": "k", "value": "v", "source": "s", "project": "p", "tags": ["t"],
        "origin": "o",
    },
    "Knowledge.remove": {"name": "c/k"},
    "Knowledge.uphold": {"name": "c/k"},
    "Ledger.undo": {"name": "c/k"},
    "Lessons.add": LESSON,
    "Lessons.approve": {"name": "m-001"},
    "CoreFiles.follow": {"section": "rules", "path": "out.txt", "role": ""},
    "CoreFiles.unfollow": {"section": "rules", "role": "maker"},
    "Lessons.archive": {"name": "m-001", "replacement": "m-002"},
    "Lessons.claim": {"repo": "shop"},
    "Lessons.decay": {"run": "r-1"},
    "Lessons.edit": {"name": "m-001", **LESSON},
    "Lessons.forget": {"name": "m-001"},
    "Lessons.keep": {"candidate": CANDIDATE, "sighting": SIGHTING},
    "Lessons.keep_many": {"candidates": [CANDIDATE], "sighting": SIGHTING},
    "Lessons.merge": {"names": ["m-001", "m-002"], "summary": "s", "rule": "r"},
    "Lessons.record_usage": {"names": ["m-001"], "run": "r"},
    "Lessons.suggest": {**LESSON, "run": "r-1", "evidence": ["r-1#1"]},
    "MemoryFiles.create": {"path": "/memories/a.md", "text": "words"},
    "MemoryFiles.remove": {"path": "/memories/a.md"},
    "MemoryFiles.rename": {"old": "/memories/a.md", "new": "/memories/b.md"},
    "Proposals.accept": {"name": "p-001", "comment": "c"},
    "Proposals.open_issue": {"name": "p-001"},
    "Proposals.adopt": {"section": "playbook", "after": "words", "reason": "why", "role": "maker"},
    "Proposals.propose": {
        "section": "rules", "after": "words", "reason": "why", "role": "maker", "evidence": ["r-1"],
    },
    "Proposals.propose_rules": {},
    "Proposals.reject": {"name": "p-001", "comment": "c"},
    "Proposals.roll_back": {"name": "p-001", "comment": "c"},
    "Reflections.extract": {"run": "r-1", "domain": "code"},
    "Reflections.maybe_reflect": {"trigger": ReflectionTrigger("r-1", domain="code")},
    "Reflections.reflect": {"run": "r-1"},
    "Runs.capture": {"episode": EPISODE, "events": [EVENT]},
    "Runs.finish_run": {"episode": EPISODE, "events": [EVENT], "domain": "code"},
    "Runs.note_on_run": {"run": "r-1", "name": "n", "value": {"missing": "reason", "list": ["x"]}},
    "Runs.record_episode": {"episode": EPISODE},
    "Runs.start_run": {
        "run": "r-2", "task": "t", "domain": "code", "role": "maker", "repo": "shop", "provider": "p",
    },
    "Runs.take": {"items": [EVENT, EPISODE], "overrides": CaptureOverrides()},
    "SessionBriefs.open_session": {"run": "s-9", "project": "shop", "agent": "a"},
    "Stream.begin_cycle": {"role": "maker"},
    "Stream.edit": {"name": "e-1", "content": "words", "action": "x", "tags": ["t"]},
    "Stream.import_entries": {"entries": [ENTRY]},
    "Stream.log": {"action": "a", "role": "maker", "content": "words", "tags": ["t"], "run": "r", "id": "i"},
    "Stream.log_session": {"run": "r-1", "role": "maker"},
    "Stream.reflect": {"trigger": "by hand"},
    "Stream.remove": {"name": "e-1"},
    "Tasks.add": {"title": "words", "id": "t-2", "owner": "a", "approaches": ["x"], "needs": ["t-1"]},
    "Tasks.cancel": {"name": "t-1", "reason": "why"},
    "Tasks.fail": {"name": "t-9", "error": "words"},
    "Tasks.finish": {"name": "t-9", "result": "words"},
    "Tasks.remove": {"name": "t-1"},
    "Tasks.reopen": {"name": "t-8", "reason": "why"},
    "Tasks.start": {"name": "t-1", "agent": "a", "approach": "words", "run": "r-1"},
    "Tokens.create": {"actor": "agent:ann", "name": "n"},
    "Tokens.list": {},
    "Tokens.revoke": {"name": "n"},
    "Transcripts.capture": {"names": []},
    "WorkingMemory.clear": {"agent": "a"},
    "WorkingMemory.note": {"text": "words", "agent": "a"},
    "WorkingMemory.open": {"agent": "a"},
    "WorkingMemory.update": {
        "agent": "a", "plan": "p", "constraints": ["c"], "context": {"key": "value", "deep": {"x": ["y"]}},
    },
    "WorkspaceService.migrate": {"changes": []},
    "WorkspaceService.save_memory": {
        "items": [MemoryItem(text="Words that stay", title="t", category="c", tags=("t",), plan="p")],
        "scope": "home",
        "create": True,
    },
    "WorkspaceService.save_skill": {"name": "n", "text": "words", "scope": "s", "description": "d"},
}  # fmt: skip
# Methods that read files: the token stands in the files.
FILES: dict[str, tuple[list[dict[str, Any]], Callable[[Any, Path], object]]] = {
    "Exchange.import_files": (
        [
            DOCUMENT_LESSONS[0],
            {"id": "x-1", "kind": "orchestrator_run", "task": "t", "summary": "s", "sessionId": "n"},
            {"cycle": 1, "action": "a", "timestamp": "2026-04-03T14:00:00Z", "content": "c", "role": "r"},
        ],
        lambda service, path: service.import_files([path]),
    ),
    "Runs.capture_file": (
        run_lines("r-3", {"severity": "bug", "description": "Null", "category": "c"}, fixed=["Null"]),
        lambda service, path: service.capture_file(path),
    ),
    "Runs.finish": (
        run_lines("r-4", {"severity": "bug", "description": "Leaks", "category": "c"}, fixed=["Leaks"]),
        lambda service, path: service.finish(path),
    ),
    "Runs.extract": (
        run_lines("r-5", {"severity": "bug", "description": "Races", "category": "c"}, fixed=["Races"]),
        lambda service, path: service.extract(path),
    ),
    "Stream.import_lines": (
        [{"cycle": 1, "action": "a", "timestamp": "2026-04-03T14:00:00Z", "content": "c", "role": "r"}],
        lambda service, path: service.import_lines([path]),
    ),
}
# What takes no text of its own: it erases by a text, changes by a function, refreshes or shares what is kept.
WITHOUT_TEXT = {
    # Only a command that a brief tells already.
    "Commands.silence",
    "WorkspaceService.archive",
    "CoreFiles.refresh",
    "Lessons.join_twins",
    "Lessons.waiting",
    "Doctor.back_up",
    "Erasure.erase",
    "Exchange.share",
    "Items.refresh",
    # What a model says is cleaned where its answer is read: tests/reflect/model/test_reading.py.
    *(f"LanguageModel.{name}" for name in ("allow", "forbid", "try_once", "read_run", "read_runs", "refine")),
    "LanguageModel.propose_insights",
    "Knowledge.import_markdown",
    "MemoryFiles.change",
    "Reflections.reflect_waiting",
    # What another bank holds was redacted there, and is again where it is text.
    "Runs.share",
    "TeamLessons.gather",
    "Tokens.admit",
    # It runs the commands that it is given; what they say comes back through the others.
    "Tasks.run",
}


# Refused here, because they name a record or a folder that is not there: only the refusal is tested.
NAMES_NOTHING = {
    "Documents.unwatch", "Documents.watch", "Proposals.accept", "Proposals.reject", "Proposals.roll_back",
    "Artifacts.remove", "CoreFiles.follow", "CoreFiles.unfollow", "Proposals.open_issue",
}  # fmt: skip


def _writing_methods() -> dict[str, type]:
    return {
        f"{service.__name__}.{name}": service
        for service in (*service_classes(), Bank)
        for name, method in vars(service).items()
        if getattr(method, "access", (None, Verb.READ))[1] is not Verb.READ
    }


def test_every_writing_method_is_in_the_table() -> None:
    known = VALUES.keys() | FILES.keys() | WITHOUT_TEXT
    assert known == _writing_methods().keys()


def _fill(bank: Bank) -> None:
    """Store what the samples name: a call that is refused for another reason would prove nothing."""
    bank.lessons.add("Check nulls")
    bank.lessons.add("Check bounds")
    bank.capture(EPISODE, [EVENT])
    # A run whose name was redacted is found by the name that was given.
    bank.capture(
        replace(EPISODE, id="[redacted:github-token]"), [replace(EVENT, run="[redacted:github-token]")]
    )
    (bank.root / "out.txt").write_text("made")
    bank.knowledge.put("c", "k", "one", source="a")
    bank.knowledge.put("c", "k", "two", source="b")
    bank.stream.import_entries([ENTRY])
    bank.documents.insert("A decision", type="decision", source="s")
    bank.core.append("threads", {"id": "84", "summary": "words"})
    bank.core.append("blockers", "x")
    bank.tokens.create("agent:ann", name="n")
    for name in ("t-1", "t-8", "t-9"):
        bank.tasks.add("words", id=name)
    bank.tasks.start("t-9", agent="a")
    bank.tasks.cancel("t-8")


def _service(bank: Bank, kind: Any) -> Any:
    needs_topology = "topology" in signature(kind).parameters
    return kind(bank, bank.workspace.topology) if needs_topology else kind(bank)


def _reflect_and_export(bank: Bank, out: Path) -> None:
    """Let everything that is derived from what was stored be written too."""
    with suppress(ArchivistError):
        bank.acting_as(Actor(ActorKind.HUMAN)).erasure.prune()
    list(bank.reflections.reflect_waiting())
    bank.exchange.export(out / "export")
    bank.exchange.share(out / "shared")


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", sorted(VALUES))
def test_no_method_stores_a_secret_that_it_is_given(bank: Bank, tmp_path: Path, name: str) -> None:
    tokens = Tokens()
    kind = _writing_methods().get(name)
    assert kind is not None, f"{name} is no writing method"
    _fill(bank)
    # Working memory belongs to agents, what else is decided belongs to people.
    acting = bank.acting_as(Actor(ActorKind.AGENT, "a")) if kind.__name__ == "WorkingMemory" else bank
    service = _service(acting, kind)
    method = getattr(service, name.partition(".")[2])
    # A call that is refused for another reason would prove nothing.
    with pytest.raises(ArchivistError) if name in NAMES_NOTHING else nullcontext():
        method(**VALUES[name])
    for arguments in variants(VALUES[name], name, tokens):
        with suppress(ArchivistError):
            method(**arguments)
    _reflect_and_export(bank, tmp_path / "project")
    assert tokens.leaks_in(tmp_path) == ""


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", sorted(FILES))
def test_no_method_stores_a_secret_from_a_file(
    bank: Bank, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    tokens = Tokens()
    lines, call = FILES[name]
    service = _service(bank, _writing_methods()[name])
    for path in _file(tokens, tmp_path_factory.mktemp("given"), name, lines):
        with suppress(ArchivistError):
            call(service, path)
    _reflect_and_export(bank, tmp_path / "project")
    assert tokens.leaks_in(tmp_path) == ""


TOOLS: dict[str, dict[str, Any]] = {
    "archival_insert": {"content": "words", "type": "decision", "roles": ["maker"]},
    "artifact_register": {"path": "out.txt", "task": "t", "description": "d", "agent": "a"},
    "brief": {"task": "t", "run": "r-9", "role": "maker"},
    "core_memory_append": {"section": "threads", "item": "words"},
    "core_memory_update": {"section": "status", "content": "words"},
    "episode_log": {"task": "t", "agent": "a", "action": "failed", "approach": "x", "outcome": "o"},
    "cycle_start": {"role": "maker"},
    "reflect": {"reason": "words"},
    "task_add": {"title": "words", "id": "t-1", "approaches": ["x"]},
    "task_start": {"id": "t-1", "approach": "words", "agent": "a", "run": "r-1"},
    "task_fail": {"id": "t-1", "error": "words"},
    "task_finish": {"id": "t-9", "result": "words"},
    "knowledge_put": {"category": "c", "key": "k", "value": "v"},
    "lesson_add": {"summary": "s", "rule": "r", "tags": ["t"], "run": "r-1"},
    "create_lessons": {"lessons": [{"summary": "one", "rule": "r", "provider": "p"}], "run": "r-1"},
    "merge": {"ids": ["m-001", "m-002"], "summary": "both", "rule": "r"},
    "memory_log": {"action": "a", "importance": 5, "type": "action", "tags": ["t"], "content": "words"},
    "proposal_add": {"section": "rules", "after": "words", "reason": "why"},
    "save_memory": {"scope": {"workspace": "home"}, "items": [{"text": "Words that stay"}]},
    "save_skill": {"scope": {"workspace": "home"}, "name": "n", "text": "words", "description": "d"},
}


@pytest.mark.req("N7")
def test_no_tool_stores_a_secret(bank: Bank, tmp_path: Path) -> None:
    tokens = Tokens()
    writing = {tool.name for tool in tools() if not tool.is_read_only}
    assert writing - TOOLS.keys() == set()
    (bank.root / "out.txt").write_text("made")
    bank.capture(EPISODE, [EVENT])
    bank.tasks.add("words", id="t-9")
    bank.tasks.start("t-9", agent="a")
    for name, arguments in TOOLS.items():
        call_tool(bank, name, arguments)
        for changed in variants(arguments, name, tokens):
            with suppress(ArchivistError):
                call_tool(bank, name, changed)
    assert tokens.leaks_in(tmp_path) == ""


COMMANDS = [
    ["run", "start", "--run", "r-1", "--task", "t", "--domain", "code", "--repo", "shop", "--provider", "p"],
    ["run", "finish", "--run", "r-1", "--domain", "code"],
    ["decay", "--run", "r-1"],
    ["brief", "--run", "r-1", "--task", "t", "--repo", "shop", "--tag", "t"],
    ["lessons", "add", "words", "--tag", "t", "--repo", "shop", "--domain", "code"],
    ["lessons", "edit", "m-001", "--summary", "words"],
    ["episodes", "log", "t", "--agent", "a", "--action", "failed", "--approach", "x"],
    ["knowledge", "set", "c", "k", "v", "--tag", "t"],
    ["stream", "log", "words", "--role", "maker", "--content", "c", "--tag", "t"],
    ["archive", "add", "words", "--type", "decision"],
    ["core", "update", "status", "words"],
    ["proposals", "add", "rules", "words", "--reason", "why"],
    ["workspace", "init", "home", "--description", "words"],
    ["workspace", "save", "home", "Words that stay", "--title", "t", "--tag", "t", "--create"],
]


@pytest.mark.req("N7")
def test_no_command_stores_a_secret(archivist: Command, tmp_path: Path) -> None:
    tokens = Tokens()
    assert archivist("init").code == 0
    archivist("lessons", "add", "Check nulls")
    for words in COMMANDS:
        assert archivist(*words).code in (0, 3, 4), words
        for index, word in enumerate(words[1:], 1):
            if not word.startswith("-"):
                token = tokens.make(" ".join(words[: index + 1]))
                archivist(*words[:index], token, *words[index + 1 :])
    log = [*run_lines("r-6", {"severity": "bug", "description": "Null", "category": "c"})]
    outside = tmp_path.parent / f"{tmp_path.name}-given"
    outside.mkdir()
    for number, path in enumerate(_file(tokens, outside, "log", log)):
        verbs = (["capture"], ["run", "finish"], ["extract"])
        archivist(*verbs[number % 3], str(path))
    archivist("reflect", "--pending")
    archivist("export", "out")
    assert tokens.leaks_in(tmp_path) == ""


ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/api/runs", {"run": "r-1", "task": "t", "domain": "code", "role": "m", "repo": "s", "provider": "p"}),
    ("/api/runs/r-1/finish", {"domain": "code", "events": run_lines("r-1", {"description": "Null"})}),
    ("/api/lessons", {"summary": "Check nulls", "rule": "r", "tags": ["t"], "repo": "shop"}),
    ("/api/brief", {"task": "t", "run": "r-2", "repo": "shop"}),
    ("/api/reflect", {"run": "r-1"}),
]


@pytest.mark.req("N7")
def test_no_route_stores_a_secret(bank: Bank, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from archivist.edges.http.serving import create_app

    tokens = Tokens()
    issued = bank.tokens.create("human:ada")
    client = TestClient(create_app(lambda: bank), base_url="http://127.0.0.1")
    client.headers["Authorization"] = f"Bearer {issued.secret}"
    with client:
        for route, body in ROUTES:
            assert client.post(route, json=body).is_success, route
            for changed in variants(body, route, tokens):
                client.post(route, json=changed)
            run = tokens.make(f"{route} run")
            client.post(route.replace("r-1", run), json=body)
    assert tokens.leaks_in(tmp_path) == ""
