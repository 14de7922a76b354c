"""Add a table to a TOML text and take it out again; comments, order and line ends stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from archivist.config.file import to_toml
from archivist.errors import InputError

_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([^\]\n]*?)[ \t]*\]\]?[ \t]*(?:#.*)?")


def find(text: str, path: tuple[str, ...], where: str) -> object:
    """Return what stands at a path, or None."""
    return _value_at(parse(text, where), path)


def add(text: str, path: tuple[str, ...], values: Mapping[str, object], where: str) -> str:
    """Add a table behind all others; one that is there already is left as it is."""
    before = parse(text, where)
    if _value_at(before, path) is not None:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_format_value(value)}" for key, value in values.items())]
    end = newline if text and not text.endswith("\n") else ""
    gap = newline if text else ""
    after = text + end + gap + newline.join(lines) + newline
    _check_edit(after, _with_value(before, path, dict(values)), where, path)
    return after


def remove(text: str, path: tuple[str, ...], where: str) -> str:
    """Take a table and the tables below it out, with the blank line before it."""
    before = parse(text, where)
    if _value_at(before, path) is None:
        return text
    kept: list[str] = []
    name, is_ours = ".".join(path), False
    waiting: list[str] = []
    for line in text.splitlines(keepends=True):
        header = _HEADER.fullmatch(line.rstrip("\r\n"))
        if header is not None:
            was_ours, is_ours = is_ours, _is_below(header.group(1), name)
            if is_ours and not was_ours and kept and not kept[-1].strip():
                kept.pop()
            if not is_ours:
                kept += waiting
            waiting = []
        if not is_ours:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            # A remark may belong to what comes next.
            waiting.append(line)
        else:
            waiting = []
    after = "".join(kept + waiting)
    _check_edit(after, _without_value(before, path), where, path)
    return after


def parse(text: str, where: str) -> dict[str, Any]:
    """Read a TOML text, or refuse it with the reason."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}", hint="mend or move the file, then again") from None


def _check_edit(after: str, wanted: dict[str, Any], where: str, path: tuple[str, ...]) -> None:
    """Refuse an edit that changes anything but the one table."""
    try:
        is_safe = _drop_empty_tables(tomllib.loads(after)) == _drop_empty_tables(wanted)
    except tomllib.TOMLDecodeError:
        is_safe = False
    if not is_safe:
        raise InputError(
            f"{where}: {'.'.join(path)} stands in a form that cannot be edited safely",
            hint=f"write [{'.'.join(path)}] as a table of its own, or edit the file by hand",
        )


def _is_below(header: str, name: str) -> bool:
    plain = re.sub(r"[ \t\"']", "", header)
    return plain == name or plain.startswith(f"{name}.")


def _value_at(values: Mapping[str, Any], path: tuple[str, ...]) -> object:
    found: Any = values
    for step in path:
        if not isinstance(found, dict) or step not in found:
            return None
        found = found[step]
    return found


def _with_value(values: dict[str, Any], path: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    head, *rest = path
    inner = values.get(head)
    inside = inner if isinstance(inner, dict) else {}
    return {**values, head: _with_value(inside, tuple(rest), value) if rest else value}


def _without_value(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    head, *rest = path
    if not rest:
        return {key: value for key, value in values.items() if key != head}
    return {**values, head: _without_value(values[head], tuple(rest))}


def _drop_empty_tables(values: dict[str, Any]) -> dict[str, Any]:
    """Leave empty tables out: a header without a key says nothing."""
    inner = {
        key: _drop_empty_tables(value) if isinstance(value, dict) else value for key, value in values.items()
    }
    return {key: value for key, value in inner.items() if value != {}}


def _format_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(to_toml(each) for each in value)}]"
    return to_toml(value)
