"""Remove our own fenced briefs from a transcript, so that lessons are not mined from lessons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from archivist.capture.fence import FENCE_MARK
from archivist.cold_start import lazy_pattern

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
    for fence, following in zip(fences, [*fences[1:], None], strict=True):
        limit = following.start if following else len(text)
        if fence.escape:
            # The brief stands in a JSON string whose newlines carry n backslashes; a quote that carries
            # n - 1 closes the string, and the brief with it.
            backslashes = len(fence.escape) - 1
            quote = re.compile(rf'(?<!\\)\\{{{backslashes}}}"').search(text, fence.body, limit)
            limit = quote.start() if quote else limit
        closing = _CLOSING.search(text, fence.body, limit)
        pieces.append(text[position : fence.start])
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
