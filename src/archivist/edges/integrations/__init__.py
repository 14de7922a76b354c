"""The doors into other libraries: each is imported by its own name, and needs its extra."""

from __future__ import annotations

from archivist.errors import InputError


def missing(library: str, extra: str) -> InputError:
    """Return the error for a library that is not installed, with what installs it."""
    return InputError(
        f"{library} is not installed", hint=f'pip install "archivist-memory[{extra}]" brings it in'
    )
