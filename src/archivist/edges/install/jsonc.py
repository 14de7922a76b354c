"""Edit single values of a JSON text with comments; everything else stays as it is, byte for byte.

The text is parsed into spans; an edit inserts or removes characters and leaves all others. No library for
Python does this: those that read comments write the whole text anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from archivist.errors import InputError

_TRIVIA = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENTED = re.compile(r"\n([ \t]+)[\"{\[/]")
# NaN and Infinity are not JSON: `int` refuses them.
_DECODER = json.JSONDecoder(parse_constant=int)
# A value that fits into this width is written on one line.
_WIDTH = 120
CORRECT = "correct the file, then try again"
_MOVE = "correct or move the file, then try again"


class Node(NamedTuple):
    """A value and its span in the text, and the entries of an object or a list.

    An entry has a key if it is a member of an object, the start of that key or of the value, and the index
    of the comma after it, or -1.
    """

    value: Any
    start: int
    end: int
    entries: tuple[Node, ...] = ()
    key: str = ""
    first: int = 0
    comma: int = -1

    @property
    def steps(self) -> list[str | int]:
        """Return what a path names each entry by: its key, or its index in a list."""
        is_list = isinstance(self.value, list)
        return [index if is_list else entry.key for index, entry in enumerate(self.entries)]


Path = Sequence[str | int]


# A file is read again after each edit, and by each question about it.
@lru_cache(maxsize=8)
def parse(text: str, where: str = "the file") -> Node:
    """Parse a text, or raise InputError with the line of the error; an empty text is an empty object."""
    reader = _Reader(text, where)
    first = reader.skip(0)
    if first == len(text):
        return Node({}, first, first)
    try:
        node = reader.read_value(first)
    except RecursionError:
        raise InputError(f"{where}: nested too deeply", hint=_MOVE) from None
    rest = reader.skip(node.end)
    if rest < len(text):
        reader.refuse(rest, "text after the end of the object")
    if not isinstance(node.value, dict):
        kind = "list" if isinstance(node.value, list) else "single value"
        raise InputError(f"{where} holds a {kind}, not an object", hint=_MOVE)
    return node


def find(node: Node, path: Path, where: str = "the file") -> Node | None:
    """Return the value at a path, or None; raise InputError for a duplicate key on the way."""
    for step in path:
        found = [entry for name, entry in zip(node.steps, node.entries, strict=True) if name == step]
        if len(found) > 1:
            raise InputError(
                f"{where}: {step!r} is there twice", hint="remove one of the two, then try again"
            )
        if not found:
            return None
        node = found[0]
    return node


def put(text: str, path: Sequence[str], value: object, where: str = "the file") -> str:
    """Set the value at a path of keys; missing objects on the way are added."""
    node, rest = parse(text, where), list(path)
    if node.start == node.end:
        text = text + ("" if text.endswith("\n") or not text else _newline(text)) + "{}" + _newline(text)
        node = parse(text, where)
    while rest and (inner := find(node, rest[:1], where)) is not None:
        node, rest = inner, rest[1:]
    if not rest:
        return text[: node.start] + _render(text, value, _indent_at(text, node.start)) + text[node.end :]
    if not isinstance(node.value, dict):
        owner = ".".join(path[: len(path) - len(rest)])
        raise InputError(f"{where}: {owner!r} is not an object", hint=CORRECT)
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, node, value, key=rest[0])


def append(text: str, path: Sequence[str], value: object, where: str = "the file") -> str:
    """Add a value at the end of the list at a path; a missing list is added."""
    owner = find(parse(text, where), path, where)
    if owner is None:
        return put(text, path, [value], where)
    if not isinstance(owner.value, list):
        raise InputError(f"{where}: {'.'.join(path)!r} is not a list", hint=CORRECT)
    return _insert(text, owner, value)


def remove(text: str, path: Path, where: str = "the file") -> str:
    """Remove the member or item at a path, with its comma and the line that it leaves empty."""
    owner = find(parse(text, where), path[:-1], where)
    if owner is None or path[-1] not in owner.steps:
        return text
    place = owner.steps.index(path[-1])
    entry = owner.entries[place]
    start, end = _widen_to_line(text, entry.first, max(entry.comma + 1, entry.end))
    after = text[:start] + text[end:]
    kept = owner.entries[place - 1] if place else None
    if kept is not None and entry.comma < 0 <= kept.comma:
        after = after[: kept.comma] + after[kept.comma + 1 :]
        kept = kept._replace(comma=-1)
    is_last = place == len(owner.entries) - 1
    return _close_gap(after, owner, kept, owner.end - 1 - (len(text) - len(after))) if is_last else after


class _Reader:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where

    def skip(self, at: int) -> int:
        found = _TRIVIA.match(self._text, at)
        return found.end() if found else at

    def refuse(self, at: int, reason: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        reason = reason if at < len(self._text) else "unexpected end"
        raise InputError(f"{self._where}, line {line}: {reason}", hint=_MOVE)

    def read_value(self, at: int) -> Node:
        mark = self._text[at : at + 1]
        if mark in ("{", "["):
            return self._read_entries(at)
        try:
            value, end = _DECODER.raw_decode(self._text, at)
        except ValueError:
            if mark == '"':
                self.refuse(at, "a string is not closed, or contains a control character")
            self.refuse(at, f"{self._text[at : at + 12]!r} is not JSON")
        return Node(value, at, end)

    def _read_entries(self, start: int) -> Node:
        text, is_object = self._text, self._text[start] == "{"
        closing = "}" if is_object else "]"
        entries: list[Node] = []
        at = self.skip(start + 1)
        while text[at : at + 1] != closing:
            first, key = at, ""
            if is_object:
                if text[at : at + 1] != '"':
                    self.refuse(at, "a key in double quotes is missing")
                name = self.read_value(at)
                key, at = name.value, self.skip(name.end)
                if text[at : at + 1] != ":":
                    self.refuse(at, f"the colon after {key!r} is missing")
                at = self.skip(at + 1)
            node = self.read_value(at)
            at = self.skip(node.end)
            comma = at if text[at : at + 1] == "," else -1
            entries.append(node._replace(key=key, first=first, comma=comma))
            if comma >= 0:
                at = self.skip(at + 1)
            elif text[at : at + 1] != closing:
                self.refuse(at, "a comma is missing")
        values = [entry.value for entry in entries]
        value = {entry.key: entry.value for entry in entries} if is_object else values
        return Node(value, start, at + 1, tuple(entries))


def _insert(text: str, owner: Node, value: object, *, key: str | None = None) -> str:
    """Insert a value after the last entry and the comments after it."""
    newline = _newline(text)
    outer = _indent_at(text, owner.start)
    indent = _indent_at(text, owner.entries[-1].first) if owner.entries else ""
    if len(indent) <= len(outer):
        indent = outer + _indent_unit(text)
    written = _render(text, value, indent)
    if key is not None:
        written = f"{json.dumps(key, ensure_ascii=False)}: {written}"
    if owner.entries and owner.entries[-1].comma >= 0:
        # Keeps the style of trailing commas; removing the value removes its comma with it.
        written += ","
    last = owner.end - 1
    at = len(text[:last].rstrip())
    closing = "" if "\n" in text[at:last] else newline + outer
    text = text[:at] + newline + indent + written + closing + text[at if closing == "" else last :]
    if owner.entries and owner.entries[-1].comma < 0:
        behind = owner.entries[-1].end
        text = text[:behind] + "," + text[behind:]
    return text


def _close_gap(text: str, owner: Node, last: Node | None, closing: int) -> str:
    """Put the closing bracket back to its place before `_insert` moved it to a line of its own.

    That was the case if the first entry is on the line of the opening bracket. The blanks before the closing
    bracket are then those after the opening one.
    """
    first = owner.start + 1
    gap, end = "", first
    if last is not None:
        gap, end = text[first : owner.entries[0].first], max(last.comma + 1, last.end)
    is_broken = not text[end:closing].strip() and (last is None or "\n" in text[end:closing])
    return text[:end] + gap + text[closing:] if is_broken and not gap.strip(" \t") else text


def _widen_to_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to the whole line if that would be left empty, else to the blanks beside it."""
    line = text.rfind("\n", 0, start) + 1
    behind = end
    while text[behind : behind + 1] in (" ", "\t"):
        behind += 1
    is_first = not text[line:start].strip()
    if is_first and line and (behind >= len(text) or text[behind] in "\r\n"):
        before = line - 2 if text[line - 2 : line] == "\r\n" else line - 1
        return before, behind
    if text[behind : behind + 1] in ("}", "]"):
        return len(text[:start].rstrip(" \t")), end
    return start, behind


def _render(text: str, value: object, indent: str) -> str:
    """Return a value as text: on one line if it fits and has no objects inside, else one line an entry."""
    flat = json.dumps(value, ensure_ascii=False)
    is_short = "{" not in flat[1:] and len(indent) + len(flat) <= _WIDTH
    if not isinstance(value, dict | list) or not value or is_short:
        return flat
    inner, newline = indent + _indent_unit(text), _newline(text)
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {_render(text, item, inner)}"
            for key, item in value.items()
        ]
    else:
        items = [_render(text, item, inner) for item in value]
    lines = f",{newline}{inner}".join(items)
    return f"{flat[0]}{newline}{inner}{lines}{newline}{indent}{flat[-1]}"


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    found = _INDENTED.search(text)
    return found.group(1) if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
