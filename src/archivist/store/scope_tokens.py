"""How the index spells scopes and names; apart from `searchable`, because a query needs only this."""

from __future__ import annotations

import re

from archivist.cold_start import blake2s

_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def scope_token(field: str, value: str) -> str:
    """Return the token for a field's value in the index, whatever characters the value has."""
    return f"{field}{blake2s(value.casefold().encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def split_name(name: str) -> list[str]:
    """Return the parts of a `CamelCase` name in lower case; the index splits other styles itself."""
    return [part.lower() for part in _HUMP.findall(name)]
