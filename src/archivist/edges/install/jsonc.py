"""Edit single values of a JSON text with comments; everything else stays as it is, byte for byte.

The text is parsed into spans; an edit inserts or removes characters and leaves all others. No library for
Python does this: those that read comments write the whole text anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple, NoReturn

from archivist.errors import InputError

_TRIVIA = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_INDENTED = re.compile(r"\n([ \t]+)[\"{\[/]")
# A value that fits into this width is written on one line.
_WIDTH = 120
CORRECT = "correct the file, then try again"
_MOVE = "correct or move the file, then try again"


class Node(NamedTuple):
    """A value and its span in the text, and the entries of an object or a list."""

    start: int
    end: int
    kind: str
    value: Any = None
    entries: tuple[JsonEntry, ...] = ()

    def to_plain(self) -> Any:
        """Return the value as plain Python."""
        if self.kind == "object":
            return {entry.key: entry.node.to_plain() for entry in self.entries}
        return [entry.node.to_plain() for entry in self.entries] if self.kind == "list" else self.value


class JsonEntry(NamedTuple):
    """A member of an object or an item of a list, and the index of the comma after it, or -1."""

    key: str
    start: int
    node: Node
    comma: int


Path = Sequence[str | int]


def parse(text: str, where: str = "the file") -> Node:
    """Parse a text, or raise InputError with the line of the error; an empty text is an empty object."""
    reader = _Reader(text, where)
    first = reader.skip(0)
    if first == len(text):
        return Node(first, first, "object")
    try:
        node = reader.read_value(first)
    except RecursionError:
        raise InputError(f"{where}: nested too deeply", hint=_MOVE) from None
    rest = reader.skip(node.end)
    if rest < len(text):
        reader.refuse(rest, "text after the end of the object")
    if node.kind != "object":
        raise InputError(f"{where} holds a {node.kind}, not an object", hint=_MOVE)
    return node


def find(node: Node, path: Path, where: str = "the file") -> Node | None:
    """Return the value at a path, or None; raise InputError for a duplicate key on the way."""
    for step in path:
        if isinstance(step, int):
            if node.kind != "list" or step >= len(node.entries):
                return None
            node = node.entries[step].node
            continue
        if node.kind != "object":
            return None
        found = [entry.node for entry in node.entries if entry.key == step]
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
    root = parse(text, where)
    if root.start == root.end:
        text = text + ("" if text.endswith("\n") or not text else _newline(text)) + "{}" + _newline(text)
        root = parse(text, where)
    known = find(root, path, where)
    if known is not None:
        indent = _indent_at(text, known.start)
        return text[: known.start] + _render(text, value, indent) + text[known.end :]
    depth = next(size for size in range(len(path) - 1, -1, -1) if find(root, path[:size], where) is not None)
    owner = find(root, path[:depth], where)
    if owner is None or owner.kind != "object":
        raise InputError(f"{where}: {'.'.join(path[:depth])!r} is not an object", hint=CORRECT)
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _insert(text, owner, value, key=path[depth])


def append(text: str, path: Sequence[str], value: object, where: str = "the file") -> str:
    """Add a value at the end of the list at a path; a missing list is added."""
    owner = find(parse(text, where), path, where)
    if owner is None:
        return put(text, path, [value], where)
    if owner.kind != "list":
        raise InputError(f"{where}: {'.'.join(path)!r} is not a list", hint=CORRECT)
    return _insert(text, owner, value)


def remove(text: str, path: Path, where: str = "the file") -> str:
    """Remove the member or item at a path, with its comma and the line that it leaves empty."""
    owner = find(parse(text, where), path[:-1], where)
    if owner is None:
        return text
    steps = [index if owner.kind == "list" else entry.key for index, entry in enumerate(owner.entries)]
    if path[-1] not in steps:
        return text
    place = steps.index(path[-1])
    entry = owner.entries[place]
    end = entry.comma + 1 if entry.comma >= 0 else entry.node.end
    start, end = _widen_to_line(text, entry.start, end)
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
        raise InputError(f"{self._where}, line {line}: {reason}", hint=_MOVE)

    def read_value(self, at: int) -> Node:
        mark = self._text[at : at + 1]
        if mark in ("{", "["):
            return self._read_container(at, "object" if mark == "{" else "list")
        if mark == '"':
            value, end = self._read_string(at)
            return Node(at, end, "text", value)
        found = _SCALAR.match(self._text, at)
        if found is None:
            self.refuse(at, f"{self._text[at : at + 12]!r} is not JSON" if mark else "unexpected end")
        return Node(at, found.end(), "value", json.loads(found.group()))

    def _read_container(self, start: int, kind: str) -> Node:
        closing = "}" if kind == "object" else "]"
        entries: list[JsonEntry] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != closing:
            first, key = at, ""
            if kind == "object":
                if self._text[at : at + 1] != '"':
                    is_end = at == len(self._text)
                    self.refuse(at, "unexpected end" if is_end else "a key in double quotes is missing")
                key, at = self._read_string(at)
                at = self.skip(at)
                if self._text[at : at + 1] != ":":
                    self.refuse(at, f"the colon after {key!r} is missing")
                at = self.skip(at + 1)
            node = self.read_value(at)
            at = self.skip(node.end)
            is_comma = self._text[at : at + 1] == ","
            entries.append(JsonEntry(key, first, node, at if is_comma else -1))
            if is_comma:
                at = self.skip(at + 1)
            elif self._text[at : at + 1] != closing:
                self.refuse(at, "a comma is missing" if at < len(self._text) else "unexpected end")
        return Node(start, at + 1, kind, None, tuple(entries))

    def _read_string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self._text, at + 1)
        except ValueError:
            self.refuse(at, "a string is not closed, or contains a control character")
        return str(value), int(end)


def _insert(text: str, owner: Node, value: object, *, key: str | None = None) -> str:
    """Insert a value after the last entry and the comments after it."""
    newline = _newline(text)
    outer = _indent_at(text, owner.start)
    indent = _indent_at(text, owner.entries[-1].start) if owner.entries else ""
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
        behind = owner.entries[-1].node.end
        text = text[:behind] + "," + text[behind:]
    return text


def _close_gap(text: str, owner: Node, last: JsonEntry | None, closing: int) -> str:
    """Put the closing bracket back to its place before `_insert` moved it to a line of its own.

    That was the case if the first entry is on the line of the opening bracket. The blanks before the closing
    bracket are then those after the opening one.
    """
    first = owner.start + 1
    gap, end = "", first
    if last is not None:
        gap, end = text[first : owner.entries[0].start], max(last.comma + 1, last.node.end)
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
        start = len(text[:start].rstrip(" \t"))
        return start, end
    return start, behind


def _render(text: str, value: object, indent: str) -> str:
    """Return a value as text: on one line if it fits and has no objects inside, else one line an entry."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    is_deep = any(_holds_object(item) for item in (value.values() if isinstance(value, dict) else value))
    if not is_deep and len(indent) + len(flat) <= _WIDTH:
        return flat
    inner, newline = indent + _indent_unit(text), _newline(text)
    if isinstance(value, dict):
        (opening, closing), keys = "{}", [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
    else:
        (opening, closing), keys = "[]", [""] * len(value)
    items = value.values() if isinstance(value, dict) else value
    lines = [inner + key + _render(text, item, inner) for key, item in zip(keys, items, strict=True)]
    return opening + newline + f",{newline}".join(lines) + newline + indent + closing


def _holds_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(_holds_object(item) for item in value))


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    found = _INDENTED.search(text)
    return found.group(1) if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
