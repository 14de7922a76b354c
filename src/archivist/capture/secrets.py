"""Clean what other rooms store: redact secrets at any depth, remove control characters, check names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from archivist.capture.redaction import redact
from archivist.errors import RecordError
from archivist.text import replace_surrogates, without_controls

T = TypeVar("T")


def clean_text(text: str) -> str:
    """Return a text without secrets and without control characters."""
    return redact(without_controls(text)).text


def refuse_secret(what: str, name: str) -> None:
    """Refuse a name that holds a secret: redacted, it would name something else."""
    if redact(name).found:
        raise RecordError(f"{what}: holds a secret", hint="names are shown everywhere: choose another")


def validate_name(what: str, name: str) -> str:
    """Return a name on one line, or refuse it when it holds a secret."""
    told = " ".join(without_controls(replace_surrogates(name)).split())
    refuse_secret(what, told)
    return told


def validate_path(what: str, path: str) -> str:
    """Return a path unchanged, or refuse it: a changed path would lead nowhere."""
    refuse_secret(what, path)
    if without_controls(path) != path or "\n" in path:
        raise RecordError(f"{what}: {path!r} holds control characters", hint="choose another name")
    return path


def without_secrets(value: object, *, is_exact: bool = False) -> object:
    """Return the value with the secrets in all its texts redacted, whatever its type.

    Control characters go too, unless the value must come back exactly as it was given.
    """
    if isinstance(value, str):
        return _redact_text(value, is_exact=is_exact)
    if isinstance(value, Mapping):
        return {
            _redact_text(key, is_exact=is_exact) if isinstance(key, str) else key: _redact_named_value(
                key, item, is_exact=is_exact
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(item, is_exact=is_exact) for item in value]
    return value


def _redact_text(text: str, *, is_exact: bool) -> str:
    return redact(replace_surrogates(text)).text if is_exact else clean_text(replace_surrogates(text))


def _redact_named_value(name: object, value: object, *, is_exact: bool) -> object:
    """Return a named value without its secrets. The name alone can say that the value is one: `password`."""
    if not isinstance(value, str) or not isinstance(name, str) or "=" in name:
        return without_secrets(value, is_exact=is_exact)
    beginning = f"{name}="
    told = _redact_text(f"{beginning}{value}", is_exact=is_exact)
    if told.startswith(beginning):
        return told.removeprefix(beginning)
    return without_secrets(value, is_exact=is_exact)
