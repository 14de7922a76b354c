"""One message of a program: what it means, who prints it and how it is recognised.

Groups of a pattern: `subject` is the module, command, file or flag that the message is about; `error` the
class of the error; `text` what tells this failure from others; `program` who speaks, where any program may.
"""

import re
from functools import cache
from typing import NamedTuple

from archivist.reading.failure_kinds import FailureKind

# How much a message tells. The harness itself knows best; a message of one meaning beats a program's general
# error line, that a message told second-hand, that any line with "error" in it, and that a closing summary.
FROM_HARNESS, EXACT, TOOL, TOLD, LOOSE, SUMMARY = 90, 80, 60, 50, 40, 20


class MessageRule(NamedTuple):
    """One message. `is_own`: of the code being written. `is_sure`: it alone proves a failure."""

    kind: FailureKind
    program: str
    error: str
    rank: int
    needles: tuple[str, ...]
    source: str
    is_own: bool = False
    is_sure: bool = True

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return the compiled pattern; compiled on first need, for there are hundreds."""
        return _compile_pattern(self.source)


def rule(
    kind: FailureKind,
    program: str,
    error: str,
    rank: int,
    needles: str,
    pattern: str,
    *,
    own: bool = False,
    sure: bool = True,
) -> MessageRule:
    """Build a rule. Needles are parted by `|`; `~` marks one without its first letter, of either case."""
    return MessageRule(kind, program, error, rank, tuple(needles.split("|")), pattern, own, sure)


@cache
def _compile_pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)
