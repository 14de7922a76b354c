"""Take secrets out of a value of JSON's types, however deep they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from archivist.capture.redaction import redact

T = TypeVar("T")


def without_secrets(value: object) -> object:
    """Return the value with every secret in its texts replaced; other values come back as they are."""
    if isinstance(value, str):
        return redact(_whole(value)).text
    if isinstance(value, Mapping):
        return {_whole(key): _named(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return value


def _named(name: object, value: object) -> object:
    """Return a named value without its secrets: what it is called can tell that it is one."""
    if not isinstance(value, str) or not isinstance(name, str) or "=" in name:
        return without_secrets(value)
    beginning = f"{name}="
    told = redact(f"{beginning}{_whole(value)}").text
    return told.removeprefix(beginning) if told.startswith(beginning) else without_secrets(value)


def _whole(value: T) -> T:
    """Return a text without halves of surrogate pairs, which neither UTF-8 nor a store can hold."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")  # type: ignore[return-value]
