"""The registry of tools: what each takes and answers, and how providers want to be told of it.

A tool is a function whose signature is its interface: the schema for OpenAI, Anthropic and MCP is made from
it, and so is the check of what an agent passes. The documents' spelling (`minImportance`, an `options`
object) is understood beside Python's. Answers fit into a number of tokens and say how to get the rest.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import msgspec

from archivist.access.rights import Layer, Verb, may
from archivist.errors import AccessError, ArchivistError, InputError, NotFoundError
from archivist.records.plain import to_plain
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records.actor import Actor

Plain: TypeAlias = "str | int | float | bool | Sequence[Plain] | Mapping[str, Plain] | None"
Answer: TypeAlias = "dict[str, Plain]"
Schema = dict[str, Any]
ToolFunction = Callable[..., Answer]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer"}
# The second word of a camelCase name begins here.
_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")
NEXT: Schema = {"type": "integer", "description": "Where the next page begins; missing at the end."}
# The largest integer that every JSON reader takes for a whole number, and the bank too.
_MAX_INTEGER = 2**53 - 1
Count = Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=50, description="Maximum number of results.")]
Offset = Annotated[Count, msgspec.Meta(description="Where to continue: next_offset of the previous answer.")]
_SCOPE = "workspace[/domain[/repository]]"
# One answer stays in the agent's context for the whole run; 2,000 tokens hold about ten records.
LIMIT_TOKENS = 2_000
# A text that is cut to less says nothing.
_MIN_CHARACTERS = 200
# A command of ours, or an option of one: an agent that has only functions cannot follow such a hint.
_COMMAND = re.compile(r"\barchivist (?!may\b)[a-z]|(?<!\S)--[a-z]")
_LAST_HINT = re.compile(r" \(([^()]*)\)$")


class ScopeArgument(msgspec.Struct, forbid_unknown_fields=True):
    """Where to look: a workspace, one of its domains, one repository."""

    workspace: str
    domain: str = ""
    repository: str = ""

    def within(self, bank: Bank) -> str:
        """Return the scope as a text; a repository without its domain is looked for in the workspace."""
        if self.repository and not self.domain:
            return bank.workspace.find_repository(self.workspace, self.repository)
        return "/".join(part for part in (self.workspace, self.domain, self.repository) if part)


class Toolset(StrEnum):
    """Which tools belong together."""

    ARCHIVIST = "archivist"
    COGNITIVE = "cognitive"
    LAYERS = "layers"
    WORKSPACE = "workspace"


# What a coding agent needs in every run: few enough to stay in its context all the time.
DEFAULT = (
    "brief", "recall", "memory_get", "lesson_add", "what_worked", "knowledge_query", "memory_log",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tool:
    """One function: its name, what it is for, what it answers, and what it does to the bank.

    `reads`: it changes nothing, unless it is called with the argument that `records` names. `repeats`:
    calling it again does no harm. `replaces`: it overwrites what was there. `layer` is what it writes, where
    not every actor may.
    """

    name: str
    description: str
    toolset: Toolset
    run: ToolFunction
    answer_schema: Schema
    reads: bool = False
    repeats: bool = False
    replaces: bool = False
    records: str = ""
    layer: Layer | None = None

    @property
    def is_read_only(self) -> bool:
        """Say whether no call changes anything."""
        return self.reads and not self.records

    @property
    def is_idempotent(self) -> bool:
        """Say whether calling it again does no harm."""
        return self.is_read_only or self.repeats

    def schema(self) -> Schema:
        """Return the JSON schema of what it takes."""
        return dict(_argument_schema(self.name))

    def call(self, bank: Bank, arguments: Mapping[str, Any]) -> Answer:
        """Check what an agent passes, and do it."""
        checked = _check_arguments(self.name, arguments)
        try:
            return self.run(bank, **checked)
        except (InputError, NotFoundError, AccessError) as error:
            error.hint = hint_for_agents(error, parameter_names=tuple(checked))
            raise

    def only_reads(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether a call with these arguments changes nothing."""
        return self.reads and not (self.records and arguments.get(self.records))

    def is_open_to(self, actor: Actor) -> bool:
        """Say whether an actor may call it at all, so that a door need not offer it to others."""
        return self.layer is None or may(actor, self.layer, Verb.WRITE)


_TOOLS: dict[str, Tool] = {}


def tool(toolset: Toolset, answer_schema: Schema, **flags: Any) -> Callable[[ToolFunction], ToolFunction]:
    """Offer a function to agents; the flags are those of Tool."""

    def register(function: ToolFunction) -> ToolFunction:
        name, description = function.__name__, " ".join((inspect.getdoc(function) or "").split())
        _TOOLS[name] = Tool(name, description, toolset, function, answer_schema, **flags)
        return function

    return register


def tools(*toolsets: Toolset | str) -> list[Tool]:
    """Return the tools of these sets, or all of them."""
    for word in set(toolsets) - set(Toolset):
        raise _unknown_toolset(word)
    return [each for each in _TOOLS.values() if not toolsets or each.toolset in toolsets]


def find_tool(name: str) -> Tool | None:
    """Return a tool by its name; None when there is none."""
    return _TOOLS.get(name)


def select_tools(words: str) -> list[Tool]:
    """Return the tools of the sets that a text names, comma-separated: `default`, `all`, or sets."""
    named = {"default": DEFAULT, "all": tuple(_TOOLS)}
    named |= {each.value: tuple(tool.name for tool in tools(each)) for each in Toolset}
    chosen: set[str] = set()
    for word in (part.strip() for part in words.split(",")):
        if word not in named:
            raise _unknown_toolset(word, "default", "all")
        chosen |= set(named[word])
    return [_TOOLS[name] for name in dict.fromkeys([*DEFAULT, *_TOOLS]) if name in chosen]


def _unknown_toolset(word: str, *more: str) -> InputError:
    return InputError(f"no set of tools {word!r}", hint=f"one or more of {', '.join([*more, *Toolset])}")


def call(bank: Bank, name: str, arguments: Mapping[str, Any]) -> Answer:
    """Call a tool by its name."""
    if name not in _TOOLS:
        raise InputError(f"no tool {name!r}", hint=f"one of {', '.join(_TOOLS)}")
    return _TOOLS[name].call(bank, arguments)


def for_openai(chosen: Iterable[Tool]) -> list[Schema]:
    """Return tools as OpenAI's chat completions take them."""
    return [
        {
            "type": "function",
            "function": {"name": each.name, "description": each.description, "parameters": each.schema()},
        }
        for each in chosen
    ]


def for_anthropic(chosen: Iterable[Tool]) -> list[Schema]:
    """Return tools as Anthropic's messages take them."""
    return [
        {"name": each.name, "description": each.description, "input_schema": each.schema()} for each in chosen
    ]


def for_mcp(chosen: Iterable[Tool]) -> list[Schema]:
    """Return tools as an MCP server lists them."""
    return [
        {
            "name": each.name,
            "description": each.description,
            "inputSchema": each.schema(),
            "outputSchema": each.answer_schema,
            "annotations": {
                "readOnlyHint": each.is_read_only,
                "destructiveHint": each.replaces,
                "idempotentHint": each.is_idempotent,
                "openWorldHint": False,
            },
        }
        for each in chosen
    ]


# What a tool answers. A field is listed when every answer, or every item of a list, has it; there may be
# others. A text that is too long for a page is clipped and stays a text, so lists of words are left open.


def object_schema(optional: Mapping[str, Schema] | None = None, **fields: Schema) -> Schema:
    """Return the schema of an object that has these fields, and perhaps the optional ones."""
    return {"type": "object", "properties": {**fields, **(optional or {})}, "required": list(fields)}


def list_schema(**fields: Schema) -> Schema:
    """Return the schema of a list of objects that have these fields."""
    return {"type": "array", "items": object_schema(**fields)}


def page_schema(name: str, item: Mapping[str, Schema], **beside: Schema) -> Schema:
    """Return the schema of a page of items."""
    return object_schema({"next_offset": NEXT}, **{name: list_schema(**item)}, **beside)


# What a tool takes


@cache
def _argument_struct(name: str) -> type[msgspec.Struct]:
    """Return the shape of what a tool takes, made from its signature."""
    function = _TOOLS[name].run
    # Neither the bank, which comes first, nor the answer is part of the shape: their types need no import.
    hints = get_type_hints(function, localns={"Bank": object, "Answer": object}, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in list(inspect.signature(function).parameters.values())[1:]:
        kind = hints[each.name]
        fields.append((each.name, kind) if each.default is each.empty else (each.name, kind, each.default))
    title = name.title().replace("_", "")
    return msgspec.defstruct(title, fields, kw_only=True, forbid_unknown_fields=True)


@cache
def _argument_schema(name: str) -> Schema:
    """Return the schema of a tool's arguments, with the scope in its place: not every provider follows refs.

    The titles are names that we made up.
    """
    struct = _argument_struct(name)
    _, parts = msgspec.json.schema_components((struct,), ref_template="{name}")
    for part in parts.values():
        part.pop("title", None)
    schema: Schema = parts[struct.__name__]
    kinds = {field: parts.get(kind.get("$ref"), kind) for field, kind in schema["properties"].items()}
    return {**schema, "properties": kinds}


def _check_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call in Python's spelling and types; InputError says what is wrong."""
    struct = _argument_struct(name)
    known = set(struct.__struct_fields__)
    flat = dict(given)
    for group in ("options", "filters", "metadata", "entry"):
        if group not in known and isinstance(flat.get(group), Mapping):
            flat |= flat.pop(group)
    is_path = _TOOLS[name].toolset is Toolset.WORKSPACE and "scope" in known
    if is_path and isinstance(flat.get("scope"), str):
        parts = flat["scope"].split("/")
        if len(parts) > len(ScopeArgument.__struct_fields__):
            raise InputError(f"{name}: the scope {flat['scope']!r} is too deep", hint=_SCOPE)
        flat["scope"] = dict(zip(ScopeArgument.__struct_fields__, parts, strict=False))
    spelled = {key if key in known else _UPPER.sub(r"_\1", key).lower(): value for key, value in flat.items()}
    try:
        checked = msgspec.convert(spelled, struct, strict=True)
    except msgspec.ValidationError as error:
        takes = ", ".join(struct.__struct_fields__)
        raise InputError(f"{name}: {error}", hint=f"it takes {takes}") from None
    return {field: getattr(checked, field) for field in struct.__struct_fields__}


# Answers that fit


def page(
    name: str,
    found: Sequence[Any],
    view: Callable[[Any], Mapping[str, Any]] = dict,
    *,
    offset: int = 0,
    limit: int | None = None,
    limit_tokens: int = LIMIT_TOKENS,
    **beside: Plain,
) -> Answer:
    """Return the views of what was found from an offset on, as many as fit and are asked for.

    `next_offset` is where the next page begins; it is missing at the end. A caller with a limit asks the bank
    for one more, so that it is known whether there is a next page. An item that is too large for a whole page
    is clipped, and says how to read all of it.
    """
    room = limit_tokens * CHARACTERS_PER_TOKEN - len(_json(beside)) - _MIN_CHARACTERS
    items = found[offset:]
    shown: list[Plain] = []
    for record in items[:limit]:
        item = view(record)
        size = len(_json(item))
        if size > room and shown:
            break
        shown.append(item if size <= room else _clip_item(item, room))
        room -= size
        if room <= 0:
            break
    answer: Answer = {**beside, name: shown}
    if len(shown) < len(items):
        answer["next_offset"] = offset + len(shown)
    return answer


def _clip_item(item: Mapping[str, Plain], room: int) -> Answer:
    """Return an item whose longest fields are cut, so that it takes about that many characters."""
    clipped = dict(item)
    room = max(room, _MIN_CHARACTERS)
    while (excess := len(_json(clipped)) - room) > 0:
        name = max(clipped, key=lambda key: len(_json(clipped[key])))
        value = clipped[name]
        if not isinstance(value, str):
            clipped[name] = _json(value)[:_MIN_CHARACTERS] + "…"
        elif len(value) - 1 > _MIN_CHARACTERS:
            clipped[name] = value[: max(_MIN_CHARACTERS, len(value) - excess - 1)] + "…"
            clipped["clipped"] = "memory_get with this id, or document_path, reads the rest"
        else:
            break
    return clipped


def text_page(text: str, *, offset: int = 0, limit_tokens: int = LIMIT_TOKENS) -> Answer:
    """Return the part of a text that begins at an offset and fits, and where the next part begins."""
    end = offset + limit_tokens * CHARACTERS_PER_TOKEN
    rest: Answer = {"next_offset": end} if end < len(text) else {}
    return {"text": text[offset:end], **rest}


def _json(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False)


def hint_for_agents(error: ArchivistError, *, parameter_names: Sequence[str] = ()) -> str:
    """Return an error's hint up to where it names a command; if nothing is left, a hint for functions."""
    kept: list[str] = []
    for part in re.split(r"(?<=[;:]) ", error.hint):
        if _COMMAND.search(part):
            break
        kept.append(part)
    hint = " ".join(kept).rstrip(";:")
    if hint or not error.hint:
        return hint
    if isinstance(error, NotFoundError):
        return "recall finds what there is, with the ids of everything"
    return "somebody else may" if isinstance(error, AccessError) else f"it takes {', '.join(parameter_names)}"


def reason_for_agents(reason: str) -> str:
    """Return a reason without the hint in brackets at its end, when that names a command."""
    hint = _LAST_HINT.search(reason)
    return reason[: hint.start()] if hint and _COMMAND.search(hint[1]) else reason


def pick_fields(*names: str) -> Callable[[Any], Answer]:
    """Return the view that has these fields of a record, without those that are empty."""

    def view(record: Any) -> Answer:
        plain = to_plain(record)
        return {name: plain[name] for name in names if plain[name] not in ("", None, [])}

    return view


def day_range(days: tuple[str, str] | None) -> tuple[datetime, datetime] | None:
    """Return the first moment of the first day and the last moment of the last."""
    if days is None:
        return None
    try:
        first, last = (datetime.fromisoformat(day) for day in days)
    except ValueError as error:
        raise InputError(f"date_range: {error}", hint="two days, YYYY-MM-DD") from None
    first, last = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (first, last))
    return first, last + timedelta(days=1, microseconds=-1) if last.time() == time() else last
