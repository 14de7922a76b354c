"""Clean records before they are stored: our own briefs come off, secrets come out."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from archivist.capture.own_briefs import strip_briefs

V = TypeVar("V")

# Names such as run ids, tools and roles repeat on every event. Remembering the short texts that were found
# clean makes cleaning all fields of an event as fast as cleaning its three long ones.
_REMEMBERED_CHARACTERS = 128
_MAX_REMEMBERED = 10_000
_HEXADECIMAL = frozenset("0123456789abcdef-")


class Cleaner:
    """Cleans records one after another, and counts the redacted secrets by kind."""

    def __init__(self) -> None:
        # Imported late: a cold process that only reads must not wait for the rules of secrets.
        from archivist.capture.redaction import redact

        self._redact = redact
        self.secrets: Counter[str] = Counter()
        self._clean_texts: set[str] = set()

    def clean(self, value: V) -> V:
        """Return a record or value with every text in it cleaned; the same object when nothing changed.

        Every field of a record is walked, so that a new field cannot be forgotten.
        """
        result: Any = value
        kind = type(value)
        # Words of closed sets are texts too, but of a type of their own.
        if kind is str:
            result = self.text(result)
        elif is_dataclass(kind):
            texts = ((name, getattr(value, name)) for name in _field_names(kind))
            changed = {name: after for name, text in texts if (after := self.clean(text)) is not text}
            result = replace(result, **changed) if changed else value
        elif kind is dict:
            cleaned = {self.clean(key): self.clean(item) for key, item in result.items()}
            result = cleaned if cleaned != value else value
        elif kind in (list, tuple) and result:
            items = [self.clean(item) for item in result]
            if any(after is not before for after, before in zip(items, result, strict=True)):
                result = tuple(items) if kind is tuple else items
        clean: V = result
        return clean

    def text(self, text: str) -> str:
        """Return one text, cleaned; the same object when there was nothing to clean."""
        if not text or text in self._clean_texts:
            return text
        cleaned = text
        if not text.isascii():
            # Halves of surrogate pairs come from undecodable output; no store can hold them.
            cleaned = text.encode("utf-8", "replace").decode("utf-8")
            cleaned = text if cleaned == text else cleaned
        redacted = self._redact(strip_briefs(cleaned))
        for secret in redacted.found:
            self.secrets[secret.kind] += secret.occurrences
        if redacted.text is text and len(text) <= _REMEMBERED_CHARACTERS:
            if len(self._clean_texts) == _MAX_REMEMBERED:
                self._clean_texts.clear()
            self._clean_texts.add(text)
        return redacted.text


def clean_name(name: str) -> str:
    """Return the name under which something with this name is stored: secrets are redacted in names too."""
    # The ids that clients give to sessions are hexadecimal, and no rule of secrets matches those.
    return name if _HEXADECIMAL.issuperset(name) else Cleaner().text(name)


@cache
def _field_names(record: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))
