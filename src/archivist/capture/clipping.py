"""Keep the beginning and the end of a long text, and say how much is missing between them."""

from __future__ import annotations

import re

from archivist.capture.own_briefs import strip_briefs

OUTPUT_SIDE_CHARS = 6_000
MESSAGE_SIDE_CHARS = 4_000
EDIT_SIDE_CHARS = 3_000
TASK_CHARS = 2_000
TARGET_CHARS = 500

_LEFT_OUT = re.compile(r"… \[(\d{1,18}) characters left out\] …")


def omission_mark(characters: int) -> str:
    """Write the mark that stands where text is missing."""
    return f"\n… [{characters} characters left out] …\n"


def clip(text: str, side: int = OUTPUT_SIDE_CHARS) -> str:
    """Return the text with its middle left out when it is longer than both sides together.

    Marks of an earlier clipping that fall into the middle are counted in.
    """
    if len(text) <= 2 * side + len(omission_mark(len(text))):
        return text
    # A brief of ours comes off while it has both marks; cut in two it would pass for the run's own words.
    text = strip_briefs(text)
    if len(text) <= 2 * side + len(omission_mark(len(text))):
        return text
    middle = text[side:-side]
    missing = len(middle) + sum(int(mark.group(1)) - len(mark.group()) for mark in _LEFT_OUT.finditer(middle))
    return text[:side] + omission_mark(max(missing, 1)) + text[-side:]


def shorten(text: str, limit: int) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
