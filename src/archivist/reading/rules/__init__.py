"""How the messages of programs are recognised: the kinds of failure, and one rule for each message.

Groups of a rule's pattern: `subject` is the module, command, file or flag that the message is about; `error`
the class of the error; `text` what tells this failure from others; `program` who prints the message, where
any program may.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from archivist.cold_start import lazy_pattern

# How much a message tells. The harness itself knows best; a message with one meaning beats a program's
# general error line, which beats a message that is only reported, any line with "error" in it,
# and a closing summary.
FROM_HARNESS, EXACT, TOOL, TOLD, LOOSE, SUMMARY = 90, 80, 60, 50, 40, 20


class FailureKind(StrEnum):
    """What went wrong."""

    MISSING_MODULE = "missing_module"
    MISSING_COMMAND = "missing_command"
    MISSING_FILE = "missing_file"
    SYNTAX = "syntax"
    IMPORT_ERROR = "import_error"
    ATTRIBUTE = "attribute"
    TYPE_ERROR = "type_error"
    VALUE = "value"
    TEST_FAILURE = "test_failure"
    TIMEOUT = "timeout"
    PERMISSION = "permission"
    NETWORK = "network"
    EDIT_NOT_APPLIED = "edit_not_applied"
    USAGE = "usage"
    VERSION_CONFLICT = "version_conflict"
    PROMPT = "prompt"
    GIT = "git"
    BUILD = "build"
    CRASH = "crash"
    PROVIDER = "provider"
    OTHER = "other"

    @property
    def is_environment(self) -> bool:
        """Say whether the environment is at fault, whatever code is being written."""
        return self in _ENVIRONMENT


_ENVIRONMENT = frozenset((
    FailureKind.MISSING_MODULE, FailureKind.MISSING_COMMAND, FailureKind.IMPORT_ERROR,
    FailureKind.VERSION_CONFLICT, FailureKind.NETWORK, FailureKind.PERMISSION, FailureKind.PROVIDER,
    FailureKind.PROMPT,
))  # fmt: skip


class MessageRule(NamedTuple):
    """One message. `is_own`: it blames the code being written. `is_sure`: it alone proves a failure."""

    kind: FailureKind
    program: str
    error: str
    rank: int
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_own: bool = False
    is_sure: bool = True


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
    """Build a rule. Needles are separated by `|`; `~` stands for a first letter of either case.

    There are hundreds of patterns, so each is compiled when it is first needed.
    """
    return MessageRule(
        kind, program, error, rank, tuple(needles.split("|")), lazy_pattern(pattern), own, sure
    )
