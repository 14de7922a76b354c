"""Change one setting in a `config.toml`; comments, order and line ends stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archivist.config.layers import BOM, decode_text, parse_toml
from archivist.errors import ConfigError
from archivist.files.lock import lock_folder
from archivist.files.write import replace_file


def change_file(path: Path, key: str, value: object = None) -> bool:
    """Set a key in a configuration file, or remove it for None; say whether that changed the file.

    Comments, order and line ends stay. The file is replaced atomically, and of two processes that change it
    at once neither loses the other's edit.
    """
    if value is None and not path.exists():
        return False
    folder = path.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            try:
                raw = path.read_bytes() if path.exists() else b""
            except OSError as error:
                raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}") from None
            text = decode_text(raw, path)
            bom = BOM if text.startswith(BOM) else ""
            after = bom + edit_text(text.removeprefix(bom), key, value, where=str(path))
            if after == text:
                return False
            replace_file(path, after.encode("utf-8"))
            return True
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be written: {error.strerror}",
            hint="check the rights of the file and its folder",
        ) from None


def edit_text(text: str, key: str, value: object = None, *, where: str) -> str:
    """Return a configuration's text with one key set, or removed for None; every other line stays.

    The result is parsed again: unless exactly that one key has changed, the edit is refused.
    """
    before = parse_toml(text, where)
    section, _, name = key.partition(".")
    known = before.get(section, {})
    if not isinstance(known, dict):
        raise ConfigError(f"{where}: {section} is a section", hint=f"write [{section}] and its keys below it")
    rest = {each: item for each, item in known.items() if each != name}
    if value is None and rest == known:
        return text
    after = _edit_lines(text, section, name, None if value is None else to_toml(value))
    wanted = {**before, section: rest if value is None else {**rest, name: value}}
    try:
        is_safe = _without_empty_sections(parse_toml(after, where)) == _without_empty_sections(wanted)
    except ConfigError:
        is_safe = False
    if not is_safe:
        raise ConfigError(
            f"{where}: {key} has a form that cannot be edited safely"
            " (an inline table, a quoted name, or a value over several lines)",
            hint="edit the file by hand",
        )
    return after


def to_toml(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    import json

    # A JSON string is a TOML string, except for one control character that JSON does not escape.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _edit_lines(text: str, section: str, name: str, value: str | None) -> str:
    import re

    header = re.compile(r"[ \t]*\[[ \t]*([\w-]+)[ \t]*\][ \t]*(?:#.*)?\r?")
    entry = re.compile(
        r"""([ \t]*([\w.-]+)[ \t]*=[ \t]*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'\[{#][^\s#]*)([ \t]*(?:#.*)?\r?)"""
    )
    end = "\r" if "\r\n" in text else ""
    lines = (text if not text or text.endswith("\n") else f"{text}{end}\n").split("\n")
    current, last = "", -1
    for place, line in enumerate(lines):
        if found := header.fullmatch(line):
            current = found[1]
        elif (found := entry.fullmatch(line)) and f"{current}.{found[2]}".lstrip(".") == f"{section}.{name}":
            lines[place : place + 1] = [] if value is None else [f"{found[1]}{value}{found[4]}"]
            return "\n".join(lines)
        elif not found:
            continue
        if current == section:
            last = place
    if value is None:
        return text
    if last >= 0:
        lines[last + 1 : last + 1] = [f"{name} = {value}{end}"]
        return "\n".join(lines)
    gap = [end] if text and lines[-2].strip() else []
    lines[-1:] = [*gap, f"[{section}]{end}", f"{name} = {value}{end}", ""]
    return "\n".join(lines)


def _without_empty_sections(values: Mapping[str, Any]) -> dict[str, Any]:
    return {section: settings for section, settings in values.items() if settings != {}}
