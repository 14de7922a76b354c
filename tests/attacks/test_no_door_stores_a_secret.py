"""One secret through every field of every command and every route, as the doors themselves list them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from archivist import Bank
from archivist.edges.cli.group import COMMANDS, cli
from tests.attacks.test_no_secret_is_stored import EPISODE, EVENT, Tokens, variants
from tests.commands import Command

# They run until they are stopped or change the settings of programs; hooks have tests of their own.
APART = {"serve", "mcp", "hook", "install", "uninstall"}
# The bank remembers where it wrote files, so that an erased text is found there: these paths it must keep.
WRITTEN = {("export", "folder"), ("share", "folder"), ("stream export", "file")}
# What a text field of a command or route takes where any text will not do.
SAMPLES = {
    "run": "r-1", "name": "m-001", "names": "m-001", "lesson": "m-001", "section": "status", "agent": "a",
    "role": "maker", "domain": "code", "action": "failed", "category": "c", "key": "k",
    "actor": "agent:ann", "path": "out.txt", "paths": "out.txt", "kind": "lesson",
}  # fmt: skip
# Refused, because they name nothing that is there, are not a person's, or take one field of several: each
# field is still sent, and what stands behind them is tested by itself.
REFUSED = {
    "delete /api/lessons/{id}", "delete /api/memory/artifacts/{id}", "delete /api/memory/knowledge/{id}",
    "delete /api/working", "patch /api/working", "post /api/working/notes", "post /api/reflect",
    "post /api/proposals/{id}/{decision}",
    "post /api/core/{section}", "post /api/runs/{run}/log", "post /api/runs/{run}/share",
    "post /api/capture", "post /api/memory/artifacts",
    "post /api/tools/{name}", "post /api/workspace/save", "post /api/memory/conflicts/{id}",
    "post /api/memory/tasks", "delete /api/memory/tasks/{id}",
    *(f"post /api/memory/tasks/{{id}}/{verb}" for verb in ("start", "finish", "fail", "reopen", "cancel")),
}  # fmt: skip


def _leaves(name: str, command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            for words, leaf in _leaves(each, inner):
                yield [name, *words], leaf
    else:
        yield [name], command


def commands(first: str) -> dict[str, click.Command]:
    """Return the commands that begin with this word, by all their words."""
    command = cli.get_command(click.Context(cli), first)
    assert command is not None
    return {" ".join(words): leaf for words, leaf in _leaves(first, command)}


def _sample(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
        return "1"
    if isinstance(parameter.type, click.Path):
        return "out.txt"
    return SAMPLES.get(parameter.name or "", "words")


def _call(command: click.Command, changed: str, text: str) -> list[str]:
    """Return the words after a command's name: what it requires, and one parameter with the text."""
    options, arguments = [], []
    for parameter in command.params:
        is_changed = parameter.name == changed
        value = text if is_changed else _sample(parameter)
        if isinstance(parameter, click.Argument):
            if is_changed or parameter.required:
                arguments += [value] * max(1, parameter.nargs)
        elif is_changed or parameter.required:
            options += [parameter.opts[0], *[value] * parameter.nargs]
    confirm = ["--yes"] if any("--yes" in each.opts for each in command.params) else []
    return [*options, *confirm, "--", *arguments] if arguments else [*options, *confirm]


def _takes_text(parameter: click.Parameter) -> bool:
    is_flag = isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count)
    return not is_flag and not isinstance(parameter.type, click.Choice)


@pytest.mark.req("N7")
@pytest.mark.parametrize("first", sorted(COMMANDS.keys() - APART))
def test_no_field_of_a_command_stores_a_secret(archivist: Command, tmp_path: Path, first: str) -> None:
    tokens = Tokens()
    archivist("init")
    archivist("lessons", "add", "Check nulls")
    archivist("run", "start", "--run", "r-1")
    for name, command in commands(first).items():
        for parameter in filter(_takes_text, command.params):
            if (name, parameter.name) in WRITTEN:
                continue
            token = tokens.make(f"{name} {parameter.name}")
            for text in (token, f"use {token} here"):
                ran = archivist(*name.split(), *_call(command, parameter.name or "", text))
                assert "Traceback" not in ran.err, (name, parameter.name)
    archivist("reflect", "--pending")
    # A file that the user tells a command to write has the name that the user gave it, and so has the note of
    # a bank's folder under the home.
    (tmp_path / "home" / ".archivist" / "trusted.json").unlink()
    assert tokens.leaks_in(tmp_path, in_names=False) == ""


@pytest.mark.req("N7")
def test_no_name_of_an_actor_stores_a_secret(archivist: Command, tmp_path: Path) -> None:
    tokens = Tokens()
    archivist("init")
    for kind in ("human", "orchestrator", "agent"):
        for name in (tokens.make(kind), f"ann:{tokens.make(f'role of {kind}')}"):
            archivist("--actor", f"{kind}:{name}", "lessons", "add", f"Check nulls as {kind}")
            archivist("--actor", f"{kind}:{name}", "lessons", "approve", "m-001")
            archivist("token", "create", f"{kind}:{name}")
            if kind == "human":
                archivist("--actor", f"{kind}:{name}", "token", "create", "agent:bob")
    assert tokens.leaks_in(tmp_path) == ""


@pytest.mark.req("N7")
def test_no_failure_of_a_hook_stores_a_secret(archivist: Command, tmp_path: Path) -> None:
    tokens = Tokens()
    archivist("init")
    for words in ([tokens.make("client"), "stop"], ["claude-code", f"no-event {tokens.make('event')}"]):
        archivist("hook", *words, stdin=b"{}")
    # A name that is too long is not told, but the text beside it is.
    long = {"session_id": f"{tokens.make('session')} " * 400, "cwd": tokens.make("folder"), "prompt": "a"}
    for event in ("session-start", "prompt", "session-end"):
        archivist("hook", "claude-code", event, stdin=json.dumps(long).encode())
        archivist("hook", "claude-code", event, stdin=f'{{"a": "{tokens.make("broken")}'.encode())
    logs = [path.read_text() for path in tmp_path.rglob("hooks.log")]
    assert "no client" in "".join(logs)
    assert tokens.leaks_in(tmp_path) == ""


def _resolve(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _example(schema: dict[str, Any], document: dict[str, Any], name: str = "") -> Any:
    """Return a value with every field that a schema has."""
    schema = _resolve(schema, document)
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        return _example(choices[0], document, name)
    match schema:
        case {"const": value}:
            return value
        case {"enum": [first, *_]}:
            return first
        case {"type": "object"} | {"properties": _}:
            fields = schema.get("properties", {})
            return {key: _example(each, document, key) for key, each in fields.items()} or {"key": "value"}
        case {"type": "array"}:
            return [_example(schema.get("items", {}), document, name)]
        case {"type": "integer" | "number"}:
            return max(1, schema.get("minimum", 1))
        case {"type": "boolean"}:
            return False
        case {"format": "date-time"}:
            return "2026-04-03T14:00:00Z"
    return SAMPLES.get(name, "words")


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
    """Yield the method, the path, the text parameters and an example of the body of each writing route."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method == "get":
                continue
            texts = [
                each["name"] for each in operation.get("parameters", ()) if each["in"] in ("path", "query")
            ]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = _example(content["schema"], document) if "schema" in content else {}
            yield method, path, texts, body


@pytest.mark.req("N7")
def test_no_field_of_a_route_stores_a_secret(bank: Bank, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from archivist.edges.http.serving import create_app

    tokens = Tokens()
    bank.lessons.add("Check nulls")
    bank.capture(EPISODE, [EVENT])
    (bank.root / "out.txt").write_text("made")
    issued = bank.tokens.create("human:ada")
    client = TestClient(create_app(lambda: bank), base_url="http://127.0.0.1", raise_server_exceptions=True)
    client.headers["Authorization"] = f"Bearer {issued.secret}"
    answered: dict[str, int] = {}
    with client:
        document = json.loads(client.get("/openapi.json").text)
        for method, path, texts, body in _operations(document):
            place = f"{method} {path}"

            values = {each: {**SAMPLES, "id": "m-001"}.get(each, "words") for each in texts}
            changes = [(values, body)]
            changes += [({**values, each: tokens.make(f"{place} {each}")}, body) for each in texts]
            changes += [(values, changed) for changed in variants(body, place, tokens)]
            for given, sent in changes:
                asked = {each: text for each, text in given.items() if f"{{{each}}}" not in path}
                # With a key the answer is stored too.
                key = {"Idempotency-Key": tokens.make(f"{place} idempotency key")}
                answer = client.request(method, path.format(**given), params=asked, json=sent, headers=key)
                answered.setdefault(place, answer.status_code)
    assert tokens.leaks_in(tmp_path) == ""
    assert {place for place, code in answered.items() if code >= 300} == REFUSED
    assert max(answered.values()) < 500
