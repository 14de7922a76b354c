"""Put our hooks and our server into a client's settings, and take them out: pure edits of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from archivist.edges.install import jsonc, toml_table
from archivist.edges.install.calls import ProgramCall, calls_in, programs_in
from archivist.errors import InputError

_HOOKS = "hooks"
_HOOK, _SERVER = "hook", "mcp"


class Hook(NamedTuple):
    """One event that a client is to call us for: its name for it, and what it wants written there."""

    event: str
    entry: Mapping[str, Any]


def add_hooks(text: str, hooks: Sequence[Hook], where: str) -> str:
    """Add the hooks that are missing; what is ours and is no longer wanted goes, all else stays.

    A line in which somebody calls our hook among other things is theirs, and does for its event.
    """
    wanted = {hook.event: next(calls_in(_handlers_of(hook.entry)[0])) for hook in hooks}
    text = _remove_hooks(text, where, wanted, None)
    for hook in hooks:
        known = jsonc.find(jsonc.parse(text, where), (_HOOKS, hook.event), where)
        if known is None or not any(
            _serves(call, hook.event, wanted)
            for entry in _require_list(known, where)
            for handler in _handlers_of(entry)
            for call in calls_in(handler)
        ):
            text = jsonc.append(text, (_HOOKS, hook.event), hook.entry, where)
    return text


def remove_hooks(text: str, original: str | None, where: str) -> str:
    """Take every hook out that is ours, and what is empty then, but for what was there before, if known."""
    return _remove_hooks(text, where, {}, original)


def add_server(text: str, path: tuple[str, str], server: Mapping[str, Any], where: str) -> str:
    """Add our server; ours is left as it stands, another's of that name is refused."""
    known = jsonc.find(jsonc.parse(text, where), path, where)
    if known is not None and _require_own_server(known.to_plain(), path, where):
        return text
    return jsonc.put(text, path, server, where)


def remove_server(text: str, original: str | None, path: tuple[str, str], where: str) -> str:
    """Take our server out, and the object around it when nothing else is in it."""
    known = jsonc.find(jsonc.parse(text, where), path, where)
    if known is None or not is_server(known.to_plain()):
        return text
    return _cut_empty(jsonc.remove(text, path, where), path[:1], where, original)


def add_table(text: str, path: tuple[str, str], server: Mapping[str, object], where: str) -> str:
    """Add our server to a TOML text; ours is left as it stands, another's of that name is refused."""
    known = toml_table.find(text, path, where)
    if known is not None and _require_own_server(known, path, where):
        return text
    return toml_table.add(text, path, server, where)


def remove_table(text: str, path: tuple[str, str], where: str) -> str:
    """Take our server out of a TOML text."""
    return toml_table.remove(text, path, where) if is_server(toml_table.find(text, path, where)) else text


def is_server(entry: object) -> bool:
    """Say whether an entry starts our server."""
    return any(call.is_alone and call.words[:1] == (_SERVER,) for call in calls_in(entry))


def _require_own_server(entry: object, path: tuple[str, str], where: str) -> bool:
    if not is_server(entry):
        raise InputError(
            f"{where}: {'.'.join(path)!r} is somebody else's",
            hint="give that server another name, then again",
        )
    return True


def _remove_hooks(text: str, where: str, keep: Mapping[str, ProgramCall], was: str | None) -> str:
    """Take our handlers out, one at a time from the end, but those that are to be kept."""
    while (path := _find_unwanted(text, where, keep)) is not None:
        text = jsonc.remove(text, path, where)
        while len(path) > 1:
            path = path[:-1]
            if path[-1] == _HOOKS and len(path) > 1:
                # A group of handlers is nothing without them, whatever it matches.
                node = jsonc.find(jsonc.parse(text, where), path, where)
                if node is not None and not node.entries:
                    path = path[:-1]
                    text = jsonc.remove(text, path, where)
                continue
            text = _cut_empty(text, path, where, was)
    return text


def named_programs(text: str, where: str) -> list[tuple[str, str]]:
    """Return the program and the bank of each hook of ours in a file, as they are named there."""
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    return [
        pair
        for entry in (hooks.entries if hooks is not None else ())
        for _, handler in _iter_handlers(entry.node)
        for pair in programs_in(handler)
    ]


def _find_unwanted(text: str, where: str, keep: Mapping[str, ProgramCall]) -> tuple[str | int, ...] | None:
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    if hooks is None:
        return None
    if hooks.kind != "object":
        raise InputError(f"{where}: 'hooks' is no object", hint="mend the file, then again")
    for entry in hooks.entries:
        for path, handler in _iter_handlers(entry.node):
            for call in calls_in(handler):
                is_ours = call.is_alone and call.words[:1] == (_HOOK,)
                if is_ours and not _serves(call, entry.key, keep):
                    return (_HOOKS, entry.key, *path)
    return None


def _serves(call: ProgramCall, event: str, wanted: Mapping[str, ProgramCall]) -> bool:
    """Say whether a call is the one wanted for an event, by our name for it, the client's, or none."""
    if event not in wanted:
        return False
    name, client, moment = wanted[event].words
    return call.words[:2] == (name, client) and call.words[2:3] in ((), (moment,), (event,))


def _iter_handlers(event: jsonc.Node) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield each handler of an event and where it stands: in a group of handlers, or by itself."""
    for place, item in reversed(list(enumerate(event.entries))):
        value = item.node.to_plain()
        if not isinstance(value, dict):
            continue
        inner = value.get(_HOOKS)
        if isinstance(inner, list):
            yield from (((place, _HOOKS, at), each) for at, each in reversed(list(enumerate(inner))))
        else:
            yield (place,), value


def _require_list(node: jsonc.Node, where: str) -> list[Any]:
    value = node.to_plain()
    if not isinstance(value, list):
        raise InputError(f"{where}: an event of 'hooks' is no list", hint="mend the file, then again")
    return value


def _handlers_of(entry: object) -> list[Any]:
    if not isinstance(entry, Mapping):
        return []
    inner = entry.get(_HOOKS)
    return inner if isinstance(inner, list) else [entry]


def _cut_empty(text: str, path: Sequence[str | int], where: str, was: str | None) -> str:
    node = jsonc.find(jsonc.parse(text, where), path, where)
    if node is None or node.kind not in ("object", "list") or node.entries:
        return text
    is_theirs = was is not None and jsonc.find(jsonc.parse(was, where), path, where) is not None
    return text if is_theirs else jsonc.remove(text, path, where)
