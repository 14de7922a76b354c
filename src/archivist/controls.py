"""Take out of a text what steers a terminal, or its reader, instead of being read."""

from __future__ import annotations

from archivist.patterns import late

# Sequences that steer a terminal go as a whole: without its beginning the rest would stand there as text.
_STEERING = late(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
# By these a line can be made to read as something else than what it says.
_TURNING = late("[\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str) -> str:
    """Return a text without control characters but tabs and line ends, which are one `\\n` each."""
    if text.isprintable():
        return text
    return _STEERING.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def legible(text: str) -> str:
    """Return a text as it may be shown: without control characters, and without marks that turn its order."""
    return text if text.isprintable() else _TURNING.sub("", without_controls(text))
