"""Add a table to a TOML text and remove it; comments, order and line ends stay.

Removing works on lines: tomlkit would remove the comments behind the table with it, and those may be about
the next one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from archivist.errors import InputError

_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([^\]\n]*?)[ \t]*\]\]?[ \t]*(?:#.*)?")


def find(text: str, path: tuple[str, ...], where: str) -> object:
    """Return the value at a path, or None."""
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}", hint="correct or move the file, then try again") from None
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def add(text: str, path: tuple[str, ...], values: Mapping[str, object], where: str) -> str:
    """Add a table at the end; an existing one is left as it is."""
    if find(text, path, where) is not None:
        return text
    import tomlkit

    table: dict[str, Any] = dict(values)
    for key in reversed(path):
        table = {key: table}
    newline = "\r\n" if "\r\n" in text else "\n"
    end = newline if text and not text.endswith("\n") else ""
    gap = newline if text else ""
    after = text + end + gap + tomlkit.dumps(table).replace("\n", newline)
    _check_edit(text, after, path, values, where)
    return after


def remove(text: str, path: tuple[str, ...], where: str) -> str:
    """Remove a table and its subtables, with the blank line before it."""
    if find(text, path, where) is None:
        return text
    kept: list[str] = []
    trailing: list[str] = []
    name, is_inside = ".".join(path), False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.fullmatch(line.rstrip("\r\n")):
            header_name = re.sub(r"[ \t\"']", "", header.group(1))
            was_inside, is_inside = is_inside, f"{header_name}.".startswith(f"{name}.")
            if is_inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
            if not is_inside:
                kept += trailing
            trailing = []
        if not is_inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            # Kept if no key follows: then the comment is about the next table.
            trailing.append(line)
        else:
            trailing = []
    after = "".join(kept + trailing)
    _check_edit(text, after, path, None, where)
    return after


def _check_edit(
    before: str, after: str, path: tuple[str, ...], table: Mapping[str, object] | None, where: str
) -> None:
    """Refuse an edit that changed anything but the one table, which is None when it was removed."""
    wanted = tomllib.loads(before)
    *owners, last = path
    owner: Any = wanted
    for key in owners:
        inner = owner.get(key)
        owner[key] = inner if isinstance(inner, dict) else {}
        owner = owner[key]
    if table is None:
        owner.pop(last, None)
    else:
        owner[last] = dict(table)
    try:
        is_safe = _drop_empty_tables(tomllib.loads(after)) == _drop_empty_tables(wanted)
    except tomllib.TOMLDecodeError:
        is_safe = False
    if not is_safe:
        name = ".".join(path)
        raise InputError(
            f"{where}: {name} stands in a form that cannot be edited safely",
            hint=f"write [{name}] as a table of its own, or edit the file by hand",
        )


def _drop_empty_tables(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without empty tables: a header without a key means nothing."""
    inner = {
        key: _drop_empty_tables(value) if isinstance(value, dict) else value for key, value in values.items()
    }
    return {key: value for key, value in inner.items() if value != {}}
