"""Change one setting in a `config.toml`; comments, order and line ends stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from archivist.config.layers import BOM, decode_text, parse_toml
from archivist.errors import ConfigError
from archivist.files.write import lock_folder, replace_file


def change_file(path: Path, key: str, value: object = None) -> bool:
    """Set a key in a configuration file, or take it out for None; say whether that changed the file.

    Comments, order and line ends stay. The file is replaced as a whole or not at all, and of two processes
    that change it at once neither loses the other's edit.
    """
    if value is None and not path.exists():
        return False
    folder = path.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            return _change(path, key, value)
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be written: {error.strerror}",
            hint="check the rights of the file and its folder",
        ) from None


def _change(path: Path, key: str, value: object) -> bool:
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


def edit_text(text: str, key: str, value: object = None, *, where: str) -> str:
    """Return a configuration's text with one key set, or removed for None; every other line stays."""
    section, _, name = key.partition(".")
    settings = parse_toml(text, where).get(section, {})
    if not isinstance(settings, dict):
        raise ConfigError(f"{where}: {section} is a section", hint=f"write [{section}] and its keys below it")
    if settings.get(name) == value:
        return text
    import tomlkit
    from tomlkit.items import Table

    # tomlkit ends new lines with \n, so CRLF is restored afterwards.
    is_crlf = "\r\n" in text
    plain = text.replace("\r\n", "\n") if is_crlf else text
    document = tomlkit.parse(plain if not plain or plain.endswith("\n") else f"{plain}\n")
    table: Any = document.setdefault(section, tomlkit.table())
    if value is None:
        del table[name]
    elif name in table or not isinstance(table, Table):
        table[name] = value
    else:
        # The comments at a table's end are about the next table: the new key goes before them.
        body, trailing = table.value.body, list[Any]()
        while body and body[-1][0] is None:
            trailing.insert(0, body.pop()[1])
        table.add(name, value)
        for item in trailing:
            table.add(item)
    after = tomlkit.dumps(document)
    return after.replace("\n", "\r\n") if is_crlf else after


def to_toml(value: object) -> str:
    """Return a value as TOML writes it."""
    import tomlkit

    return tomlkit.item(value).as_string()
