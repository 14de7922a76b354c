"""Clean records before they are stored: our own briefs come off, secrets come out.

The briefs we give are fenced, so that lessons are not mined from lessons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from types import NoneType
from typing import Any, Final, TypeVar

from archivist.cold_start import lazy_pattern
from archivist.text import cannot_hold_secret, make_legible, replace_surrogates

FENCE_MARK: Final = "archivist:brief"
FENCE_CLOSE: Final = "<!-- /archivist:brief -->"
_ID: Final = r"[A-Za-z0-9][\w.\-]{0,127}"
# A comment may come back with its brackets as HTML entities, or as JSON spells them.
_LESS: Final = r"(?:<|&lt;|&#60;|&#x3[cC];|\\{1,7}u003[cC])"
_MORE: Final = r"(?:>|&gt;|&#62;|&#x3[eE];|\\{1,7}u003[eE])"
# A line ends with a newline, or with one that was escaped, once or more, inside a JSON string.
_NEWLINE: Final = r"(?:\r?\n|(?:\\{1,8}r)?(?P<escape>\\{1,8})n)"
_OPENING: Final = lazy_pattern(
    rf"{_LESS}!--[ \t]+{FENCE_MARK}(?:[ \t]+{_ID})+[ \t]+--{_MORE}[ \t]*(?:{_NEWLINE}|\Z)"
)
_CLOSING: Final = lazy_pattern(rf"{_LESS}!--[ \t]+/{FENCE_MARK}[ \t]+--{_MORE}(?:[ \t]*{_NEWLINE})?")
# What may stand before a fence: on its line, indentation, quote marks and a viewer's line number, which go
# with it; or the tag or quote that the host put around it, which stays.
_MARGIN: Final = r"(?:[ \t>|*\u2192]|\\{1,8}t|\d{1,6}[:\t\u2192|])*"
_BEFORE: Final = lazy_pattern(rf"{_NEWLINE}(?P<margin>{_MARGIN})\Z|(?:[>\"']|&gt;)[ \t]*\Z")
_BEFORE_REACH: Final = 64


def strip_briefs(text: str) -> str:
    """Remove every fenced brief, however its host wrapped it; text without one is returned as it is."""
    if FENCE_MARK not in text:
        return text
    openings = list(_find_openings(text))
    limits = [*(start for start, _ in openings[1:]), len(text)]
    pieces: list[str] = []
    position = 0
    for (start, opening), following in zip(openings, limits, strict=False):
        limit = following
        if escape := opening["escape"]:
            # The brief stands in a JSON string whose newlines carry n backslashes; a quote that carries
            # n - 1 closes the string, and the brief with it.
            quote = re.compile(rf'(?<!\\)\\{{{len(escape) - 1}}}"').search(text, opening.end(), limit)
            limit = quote.start() if quote else limit
        closing = _CLOSING.search(text, opening.end(), limit)
        pieces.append(text[position:start])
        # A brief without a closing mark was cut: it takes all that is left.
        position = closing.end() if closing else limit
    return "".join((*pieces, text[position:])) if openings else text


def _find_openings(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Find the opening marks that end their line, with their margin: others are only being talked about."""
    for opening in _OPENING.finditer(text):
        start = opening.start()
        window = text[max(0, start - _BEFORE_REACH) : start]
        before = _BEFORE.search(window if start > _BEFORE_REACH else "\n" + window)
        if before:
            yield start - len(before["margin"] or ""), opening


def fence(text: str, brief_id: str, lesson_ids: Sequence[str]) -> str:
    """Put a brief between marks that name it and its lessons; what steers a terminal is left out."""
    text = make_legible(text)
    # A mark inside the text would end the fence early and leave the rest to be learnt from.
    body = text.replace(FENCE_MARK, "archivist-brief").strip("\n")
    return f"<!-- {FENCE_MARK} {' '.join((brief_id, *lesson_ids))} -->\n{body}\n{FENCE_CLOSE}\n"


V = TypeVar("V")

# Names such as run ids, tools and roles repeat on every event. Remembering the short texts that were found
# clean makes cleaning all fields of an event as fast as cleaning its three long ones.
_REMEMBERED_CHARACTERS = 128
_MAX_REMEMBERED = 10_000
_WITHOUT_TEXT = frozenset((int, float, bool, NoneType, datetime))
# No client nests values so deep. Comparing and writing deeper ones ended a folder's capture in an error.
_DEEPEST = 64
_TOO_DEEP = "(nested too deep)"


class Cleaner:
    """Cleans records one after another, and counts the redacted secrets by kind."""

    def __init__(self) -> None:
        self.secrets: Counter[str] = Counter()
        self._clean_texts: set[str] = set()

    def clean(self, value: V, level: int = 0) -> V:
        """Return a record or value with every text in it cleaned; the same object when nothing changed.

        Every field of a record is walked, so that a new field cannot be forgotten. What is nested too deep in
        it is left out.
        """
        result: Any = value
        kind: Any = type(value)
        # Words of closed sets are texts too, but of a type of their own.
        if kind is str:
            result = self.text(result)
        elif names := _field_names(kind):
            changed = {
                name: after
                for name in names
                # Most fields of an event are empty.
                if (item := getattr(value, name))
                and type(item) not in _WITHOUT_TEXT
                and (after := self.clean(item)) is not item
            }
            result = replace(result, **changed) if changed else value
        elif level == _DEEPEST and kind in (dict, list, tuple):
            result = _TOO_DEEP
        elif kind is dict:
            cleaned = {
                self.clean(key): self._clean_item(key, item, level + 1) for key, item in result.items()
            }
            result = cleaned if cleaned != value else value
        elif kind in (list, tuple) and result:
            items = [self.clean(item, level + 1) for item in result]
            if any(after is not before for after, before in zip(items, result, strict=True)):
                result = tuple(items) if kind is tuple else items
        clean: V = result
        return clean

    def _clean_item(self, name: object, item: Any, level: int) -> Any:
        """Return the value of a name, cleaned: the name alone can say that it is a secret, as `password`."""
        if type(item) is str and type(name) is str and _may_name_secret(name):
            both = f"{name}={item}"
            cleaned = self.text(both)
            if cleaned != both and cleaned.startswith(f"{name}="):
                return cleaned.removeprefix(f"{name}=")
        return self.clean(item, level)

    def text(self, text: str) -> str:
        """Return one text, cleaned; the same object when there was nothing to clean."""
        if "\0" in text:
            # No path can hold a NUL, nor can some stores: a folder of this name ended in an error.
            text = text.replace("\0", "\ufffd")
        if text in self._clean_texts or cannot_hold_secret(text):
            return text
        from archivist.capture.redaction import redact

        # Halves of surrogate pairs come from undecodable output; no store can hold them.
        cleaned = replace_surrogates(text)
        redacted = redact(strip_briefs(text if cleaned == text else cleaned))
        for secret in redacted.found:
            self.secrets[secret.kind] += secret.occurrences
        if redacted.text is text and len(text) <= _REMEMBERED_CHARACTERS:
            if len(self._clean_texts) == _MAX_REMEMBERED:
                self._clean_texts.clear()
            self._clean_texts.add(text)
        return redacted.text


def clean_name(name: str) -> str:
    """Return the name under which something with this name is stored: secrets are redacted in names too."""
    return Cleaner().text(name)


@lru_cache(maxsize=1024)
def _may_name_secret(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in ("pass", "pwd", "secret", "token", "key", "auth", "cookie"))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of a record's fields; nothing for a type that is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
