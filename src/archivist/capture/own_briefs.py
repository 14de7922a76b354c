"""Fence the briefs we give, and remove them from transcripts, so that lessons are not mined from lessons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from archivist.cold_start import lazy_pattern

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


class _Fence(NamedTuple):
    start: int
    body: int
    escape: str


def strip_briefs(text: str) -> str:
    """Remove every fenced brief, however its host wrapped it; text without one is returned as it is."""
    if FENCE_MARK not in text:
        return text
    fences = list(_fences(text))
    if not fences:
        return text
    pieces: list[str] = []
    position = 0
    for opened, following in zip(fences, [*fences[1:], None], strict=True):
        limit = following.start if following else len(text)
        if opened.escape:
            # The brief stands in a JSON string whose newlines carry n backslashes; a quote that carries
            # n - 1 closes the string, and the brief with it.
            backslashes = len(opened.escape) - 1
            quote = re.compile(rf'(?<!\\)\\{{{backslashes}}}"').search(text, opened.body, limit)
            limit = quote.start() if quote else limit
        closing = _CLOSING.search(text, opened.body, limit)
        pieces.append(text[position : opened.start])
        # A brief without a closing mark was cut: it takes all that is left.
        position = closing.end() if closing else limit
    return "".join((*pieces, text[position:]))


def _fences(text: str) -> Iterator[_Fence]:
    """Find the opening marks that end their line: one inside a sentence is only being talked about."""
    for opening in _OPENING.finditer(text):
        start = opening.start()
        window = text[max(0, start - _BEFORE_REACH) : start]
        before = _BEFORE.search(window if start > _BEFORE_REACH else "\n" + window)
        if before:
            margin = before["margin"] or ""
            yield _Fence(start - len(margin), opening.end(), opening["escape"] or "")


def fence(text: str, brief_id: str, lesson_ids: Sequence[str]) -> str:
    """Put a brief between marks that name it and its lessons; what steers a terminal is left out."""
    if not text.replace("\n", "").isprintable():
        from archivist.text import make_legible

        text = make_legible(text)
    # A mark inside the text would end the fence early and leave the rest to be learnt from.
    body = text.replace(FENCE_MARK, "archivist-brief").strip("\n")
    return f"<!-- {FENCE_MARK} {' '.join((brief_id, *lesson_ids))} -->\n{body}\n{FENCE_CLOSE}\n"
