"""The blocks that are always in context: their content, how the free ones change, and how a role sees them.

Playbook and rules are guarded: nothing here changes them. Status and threads are shared, role state belongs
to one role; playbook, rules and lessons are shared, and a role may have its own in addition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from archivist.brief.render import one_line
from archivist.capture.redaction import validate_name
from archivist.clock import from_text, to_short_text
from archivist.cold_start import lazy_pattern
from archivist.config import CoreRules
from archivist.core.render import (
    GUARDED_SECTIONS,
    SAID_BY,
    SHARED_SECTIONS,
    read_speakers,
    render_section,
    spoken_lines,
    visible_blocks,
)
from archivist.errors import InputError, NotFoundError, StateError
from archivist.files.parse import parse_json
from archivist.records import Block, CoreSection
from archivist.records.plain import from_plain, to_plain, types_of
from archivist.text import estimate_tokens

Given: TypeAlias = str | Mapping[str, object] | Sequence[object]
Content: TypeAlias = dict[str, object]

GUARDED = tuple(map(CoreSection, GUARDED_SECTIONS))
FREE = tuple(section for section in CoreSection if section not in GUARDED)
# Blocks that are the same for every role.
SHARED = tuple(map(CoreSection, SHARED_SECTIONS))
# Ids and roles appear in every rendering of core memory, so they must be short.
MOST_ID = 80
_ROLE = lazy_pattern(r"[\w.@:/-]{1,40}")


class ListName(StrEnum):
    """The lists to which an item can be appended."""

    THREADS = "threads"
    BLOCKERS = "blockers"
    IN_PROGRESS = "in_progress"
    RECENTLY_SHIPPED = "recently_shipped"
    LESSONS = "lessons"

    @property
    def section(self) -> CoreSection:
        """Return the block that the list is part of."""
        return CoreSection(self.value) if self.value in tuple(CoreSection) else CoreSection.STATUS


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """The state of the work; shipped items are in order, the newest last."""

    sprint: str = ""
    in_progress: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    recently_shipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """A topic that several roles follow."""

    id: str
    summary: str = ""
    roles: tuple[str, ...] = ()
    last_update: str = ""


@dataclass(frozen=True, slots=True)
class RoleState:
    """What one role did last, does next and works on."""

    last_action: str = ""
    next_action: str = ""
    working_on: str = ""


class BlockSize(NamedTuple):
    """The tokens of a block, and its limit."""

    section: CoreSection
    role: str
    tokens: int
    most: int


@dataclass(frozen=True, slots=True)
class CoreView:
    """The core memory of one role: the shared blocks, and its own."""

    role: str
    playbook: str
    rules: str
    status: WorkStatus
    threads: tuple[Thread, ...]
    role_state: RoleState
    lessons: str
    sizes: tuple[BlockSize, ...]
    budget: int
    text: str

    @property
    def tokens(self) -> int:
        """Return the tokens of all blocks."""
        return sum(size.tokens for size in self.sizes)


def section_of(name: str, offered: Sequence[CoreSection] = tuple(CoreSection)) -> CoreSection:
    """Return the section of a name, in snake_case or camelCase; the hint names those on offer."""
    word = _snake(name)
    if word not in tuple(CoreSection):
        raise InputError(f"no section {name!r} in core memory", hint=f"the sections are {', '.join(offered)}")
    return CoreSection(word)


def list_of(name: str) -> ListName:
    """Return the list of a name, in snake_case or camelCase."""
    word = _snake(name)
    if word not in tuple(ListName):
        raise InputError(f"{name!r} is no list of core memory", hint=f"the lists are {', '.join(ListName)}")
    return ListName(word)


def validate_role(role: str) -> str:
    """Return a role's name, or raise InputError when it is not valid."""
    name = validate_name("role", role)
    if len(name) > MOST_ID or ":" in name or role.strip() != one_line(role):
        raise InputError(f"{name[:MOST_ID]!r} is no role", hint="a short name on one line, without colons")
    return name


def update_section(section: CoreSection, before: Content, update: Given, *, now: str, keep: int) -> Content:
    """Return a free section's content after an update: given fields are replaced, the others stay.

    A text sets the sprint of the status, what a role works on, or all its lessons. A list of threads replaces
    the list; a single thread is merged into it.
    """
    update = _parse_json(section, update)
    if isinstance(update, str) and not update.strip():
        field = {CoreSection.STATUS: "sprint", CoreSection.ROLE_STATE: "workingOn"}.get(section, "text")
        raise InputError(f"{section.value}: nothing to say", hint=f'to empty it: \'{{"{field}": ""}}\'')
    if section in GUARDED:
        raise InputError(f"{section.value} is changed by proposals only", hint=proposal_command(section))
    if section is CoreSection.LESSONS:
        return {"text": _lessons_text(update)}
    if section is CoreSection.THREADS:
        known = {thread.id: thread for thread in threads_of(before)}
        given = [update] if isinstance(update, str | Mapping) else update
        made = [_build_thread(item, known, now) for item in given]
        return _threads_content(made, known if isinstance(update, Mapping) else {})
    record, text_field = (
        (WorkStatus, "sprint") if section is CoreSection.STATUS else (RoleState, "working_on")
    )
    update = {text_field: update} if isinstance(update, str) else update
    content: Any = to_plain(from_plain(record, {**before, **_fields(section, record, update)}))
    if section is CoreSection.STATUS:
        content["recently_shipped"] = content["recently_shipped"][-keep:] if keep > 0 else []
    return cast("Content", content)


def append_item(
    list_name: ListName, before: Content, item: Given, *, now: str, keep: int, new_thread: str
) -> Content:
    """Return the content of a list's section with one item more.

    A thread with a known id is updated and its roles are united; an item is not added twice. Of shipped items
    only the newest are kept, the newest last.
    """
    if list_name is ListName.THREADS:
        given = _parse_json(list_name.section, item)
        known = {thread.id: thread for thread in threads_of(before)}
        given = {"summary": item} if isinstance(given, str) else given
        return _threads_content([_build_thread(given, known, now, new_thread, is_uniting=True)], known)
    if isinstance(item, Mapping):
        item = _describe_item(list_name, item)
    if not isinstance(item, str):
        hint = 'a text, or an object: {"pr": 81, "title": "parser"}'
        raise InputError(f"{list_name.value}: expected a text, not {item!r}", hint=hint)
    if not item.strip():
        raise InputError(f"{list_name.value}: nothing to append", hint="give a short text")
    line = f"- {one_line(item)}" if list_name is ListName.LESSONS else one_line(item)
    items = _list_items(list_name, before)
    if list_name is ListName.RECENTLY_SHIPPED:
        items = [*(each for each in items if each != line), line]
        return _with_items(list_name, before, items[-keep:] if keep > 0 else [])
    return before if line in items else _with_items(list_name, before, [*items, line])


# What an item says of itself, besides the numbers of its issue and pull request.
_ITEM_FIELDS = ("title", "summary", "text", "description", "reason", "owner")


def _describe_item(list_name: ListName, item: Mapping[str, object]) -> str:
    """Return the line of an item that a tool passed as an object: `{"pr": 81, "title": "parser"}`."""
    numbers = {"issue": "#", "pr": "PR #"}
    parts: list[str] = []
    for name, value in item.items():
        mark = numbers.get(name.lower())
        is_known = mark or len(item) == 1 or name.lower() in _ITEM_FIELDS
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if mark and (is_number or (isinstance(value, str) and value.lstrip("#").isdecimal())):
            parts.insert(0, f"{mark}{str(value).lstrip('#')}")
        elif isinstance(value, str) and is_known:
            parts.append(value.strip())
        else:
            hint = f'issue, pr, {", ".join(_ITEM_FIELDS)}: {{"pr": 81, "title": "parser"}}'
            raise InputError(f"{list_name.value}: {name!r} is {value!r}", hint=hint)
    return " ".join(filter(None, parts))


def remove_item(list_name: ListName, before: Content, item: str) -> Content:
    """Return the content of a list's section without one item: a thread by its id, others by their text."""
    wanted = one_line(item)
    same = (wanted, f"- {wanted}") if list_name is ListName.LESSONS else (wanted,)
    items = _list_items(list_name, before)
    rest = [each for each in items if one_line(each) not in same]
    if len(rest) == len(items):
        kind = "thread" if list_name is ListName.THREADS else f"item of {list_name.value}"
        raise NotFoundError(kind, item, hint="archivist core show prints core memory")
    if list_name is ListName.THREADS:
        return _threads_content([thread for thread in threads_of(before) if thread.id in rest], {})
    return _with_items(list_name, before, rest)


def _list_items(list_name: ListName, content: Content) -> list[str]:
    """Return the items of a list: the ids of threads, the lines of lessons."""
    if list_name is ListName.THREADS:
        return [thread.id for thread in threads_of(content)]
    if list_name is ListName.LESSONS:
        return str(content.get("text", "")).splitlines()
    return list(getattr(from_plain(WorkStatus, content), list_name.value))


def _with_items(list_name: ListName, before: Content, items: Sequence[str]) -> Content:
    if list_name is ListName.LESSONS:
        return {"text": "\n".join(items)}
    return {**to_plain(from_plain(WorkStatus, before)), list_name.value: list(items)}


def threads_of(content: Mapping[str, object]) -> list[Thread]:
    """Return the threads of a block."""
    items = content.get("items")
    return [from_plain(Thread, each) for each in items] if isinstance(items, list) else []


def text_of(block: Block | None) -> str:
    """Return the text of a playbook, rules or lessons block."""
    return str(block.content.get("text", "")) if block else ""


def render_block(block: Block) -> str:
    """Return a block as text for a prompt; an empty text for an empty block, an error for unknown fields."""
    content: Any = without_speakers(block.content)
    if block.section is CoreSection.THREADS:
        content = {"items": to_plain(threads_of(content))}
    elif block.section in (CoreSection.STATUS, CoreSection.ROLE_STATE):
        kind: Any = WorkStatus if block.section is CoreSection.STATUS else RoleState
        content = to_plain(from_plain(kind, content))
    said = {SAID_BY: block.content[SAID_BY]} if SAID_BY in block.content else {}
    return render_section(block.section.value, block.role, {**content, **said}, str(block.actor))


def without_speakers(content: Mapping[str, object]) -> Content:
    """Return what a block says, without who wrote its lines."""
    return {name: value for name, value in content.items() if name != SAID_BY}


def new_lines(before: Block, after: Content) -> list[str]:
    """Return the lines that a block has after a change and did not have before."""
    known = set(spoken_lines(before.section.value, before.content))
    return [line for line in spoken_lines(before.section.value, after) if line not in known]


def drops_others_lines(before: Block, after: Content, *, only: str = "") -> bool:
    """Say whether a change removes or rewords lines of people; or, with `only`, of all but such speakers."""
    section = before.section.value
    names = read_speakers(section, before.content, str(before.actor))
    free = {line for line, name in names.items() if name.startswith(only)}
    return not {*spoken_lines(section, before.content)} - free <= {*spoken_lines(section, after)}


def note_speakers(before: Block, after: Content, speaker: str) -> Content:
    """Return a block's new content with who wrote its lines: those that are new are the speaker's.

    Only agents and files are noted, a person has no name here. Their lines stay theirs until somebody words
    them anew.
    """
    names = read_speakers(before.section.value, before.content, str(before.actor))
    new = set(new_lines(before, after))
    names |= dict.fromkeys(new, speaker) if speaker else {}
    said = [[line, names[line]] for line in spoken_lines(before.section.value, after) if line in names]
    return {**after, SAID_BY: said} if said or speaker else after


def view_of(blocks: Mapping[str, Block], role: str, rules: CoreRules) -> CoreView:
    """Return the core memory of a role; the blocks are always in the same order."""
    shown = [name for name in visible_blocks(role) if name in blocks]
    texts = {name: text for name in shown if (text := render_block(blocks[name]))}
    seen = [blocks[name] for name in texts]
    both = {each: "\n\n".join(text_of(b) for b in seen if b.section is each) for each in CoreSection}
    state = f"{CoreSection.ROLE_STATE.value}:{role}"
    said = {name: without_speakers(block.content) for name, block in blocks.items()}
    status, threads, role_state = (said.get(name, {}) for name in (*SHARED, state))
    return CoreView(
        role=role,
        playbook=both[CoreSection.PLAYBOOK],
        rules=both[CoreSection.RULES],
        status=from_plain(WorkStatus, status),
        threads=tuple(threads_of(threads)),
        role_state=from_plain(RoleState, role_state),
        lessons=both[CoreSection.LESSONS],
        sizes=tuple(
            BlockSize(block.section, block.role, estimate_tokens(text), token_limit(block.section, rules))
            for block, text in zip(seen, texts.values(), strict=True)
        ),
        budget=rules.budget_tokens,
        text="\n".join(texts.values()),
    )


def token_limit(section: CoreSection, rules: CoreRules) -> int:
    """Return how many tokens a block of a section may have."""
    limit: int = getattr(rules, f"{section.value}_tokens")
    return limit


def check_budget(blocks: Mapping[str, Block], changed: Block, rules: CoreRules) -> None:
    """Refuse a block that exceeds its limit, or the budget of a role that sees it.

    A block that does not grow is never refused, so that it can be shortened after its limit was lowered.
    """
    known = blocks.get(changed.id)
    was, will = (estimate_tokens(render_block(block)) if block else 0 for block in (known, changed))
    if will <= was:
        return
    section = changed.section
    sizes = [(changed.id, will, token_limit(section, rules), f"core.{section.value}_tokens")]
    after = {**blocks, changed.id: changed}
    for role in [changed.role] if changed.role else sorted({"", *(block.role for block in blocks.values())}):
        total = view_of(after, role, rules).tokens
        whose = f"core memory of {role!r}" if role else "core memory"
        sizes.append((whose, total, rules.budget_tokens, "core.budget_tokens"))
    for name, count, most, setting in sizes:
        if count > most:
            # Of the whole core the other blocks are in the way, not what is given.
            error = InputError if name == changed.id else StateError
            hint = f"shorten it, or remove something; the limit is {setting}"
            raise error(f"{name}: {count:,} tokens, at most {most:,}: {count - most:,} too many", hint=hint)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.strip()).replace("-", "_").lower()


def _parse_json(section: CoreSection, given: Given) -> Given:
    """Return the JSON value of a text that holds one: tools often pass an object as text."""
    if not isinstance(given, str | Mapping | list | tuple):
        raise InputError(f"{section.value}: expected a text or an object, not {given!r}")
    if not isinstance(given, str) or not given.lstrip().startswith(("{", "[")):
        return given
    try:
        value = parse_json(given, "an object that")
    except InputError as error:
        if section is CoreSection.LESSONS or given.lstrip().startswith("["):
            return given
        raise InputError(f"{section.value}: {error.message}") from None
    is_known = isinstance(value, dict) or section is not CoreSection.LESSONS or _are_texts(value)
    return value if is_known else given


def _are_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _lessons_text(given: object) -> str:
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name != "text"]:
            hint = "lessons are a text, or a list of texts"
            raise InputError(f"lessons: unknown field {unknown[0]!r}", hint=hint)
        given = given.get("text", "")
    if isinstance(given, str):
        return given.strip("\n").rstrip()
    if _are_texts(given):
        return "\n".join(f"- {one_line(item)}" for item in given if item.strip())
    raise InputError("lessons: expected a text or a list of texts", hint="archivist core update lessons TEXT")


def _fields(section: CoreSection, record: Any, given: object) -> dict[str, Any]:
    """Return the given fields under our names; an unknown or mistyped one is refused."""
    types = types_of(record)
    hint = f"the fields are {', '.join(types)}"
    if not isinstance(given, Mapping):
        shown = "a text" if isinstance(given, str) else "a list" if isinstance(given, list) else repr(given)
        raise InputError(f"{section.value}: expected an object, not {shown}", hint=hint)
    found: dict[str, Any] = {}
    for name, value in given.items():
        key, label = _snake(str(name)), f"{section.value}.{name}"
        if key not in types:
            raise InputError(f"{section.value}: unknown field {name!r}", hint=hint)
        if types[key] is not str:
            items = [value] if isinstance(value, str) else [] if value is None else value
            if not _are_texts(items):
                raise InputError(f"{label}: expected a list of texts, not {value!r}")
            found[key] = list(dict.fromkeys(one_line(item) for item in items if item.strip()))
        elif isinstance(value, bool) or not isinstance(value, str | int | None):
            raise InputError(f"{label}: expected a text, not {value!r}")
        else:
            found[key] = "" if value is None else one_line(str(value))
    return found


def _threads_content(made: Sequence[Thread], known: Mapping[str, Thread]) -> Content:
    """Return the content of a block of known threads, with some replaced or added."""
    for name, count in Counter(thread.id for thread in made).items():
        if count > 1:
            raise InputError(f"threads: {name!r} is there twice", hint="thread ids must be unique")
    return {"items": to_plain(list({**known, **{thread.id: thread for thread in made}}.values()))}


def _build_thread(
    given: object, known: Mapping[str, Thread], now: str, new_thread: str = "", *, is_uniting: bool = False
) -> Thread:
    fields = _fields(CoreSection.THREADS, Thread, given)
    name = fields.get("id") or new_thread
    if len(name) > MOST_ID:
        raise InputError(f"threads: an id of {len(name)} characters", hint=f"at most {MOST_ID}")
    before = known.get(name, Thread(name))
    # They stand in the line of whoever wrote the summary: a sentence would speak in that person's name.
    for role in set(fields.get("roles") or ()) - {*before.roles}:
        if not _ROLE.fullmatch(role):
            raise InputError(f"threads: {role!r} is no name of a role", hint="one word, such as engineering")
    if is_uniting and "roles" in fields:
        fields["roles"] = [*dict.fromkeys([*before.roles, *fields["roles"]])]
    thread = from_plain(Thread, {**to_plain(before), **fields, "id": name})
    if not name or not thread.summary:
        missing = f"{name!r} needs a summary" if name else "a thread needs an id"
        raise InputError(f"threads: {missing}", hint='{"id": "84", "summary": "…"}')
    if replace(thread, last_update=before.last_update) == before and not fields.get("last_update"):
        return before
    updated = str(fields.get("last_update") or now)
    try:
        return replace(thread, last_update=to_short_text(from_text(updated)))
    except (ValueError, OverflowError):
        hint = "ISO 8601, as 2026-02-08T15:00:00Z"
        raise InputError(f"threads.lastUpdate: not a time: {updated!r}", hint=hint) from None


def proposal_command(section: CoreSection) -> str:
    """Return the command that proposes a change of a guarded block."""
    return f"archivist proposals add {section.value} TEXT --reason WHY"
