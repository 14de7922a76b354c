"""The kinds of failure, and what each says of where the fault lies."""

from __future__ import annotations

from enum import StrEnum


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
        """Say whether the fault lies with the surroundings, whatever code is being written."""
        return self in _ENVIRONMENT


_ENVIRONMENT = frozenset(
    (
        FailureKind.MISSING_MODULE,
        FailureKind.MISSING_COMMAND,
        FailureKind.IMPORT_ERROR,
        FailureKind.VERSION_CONFLICT,
        FailureKind.NETWORK,
        FailureKind.PERMISSION,
        FailureKind.PROVIDER,
        FailureKind.PROMPT,
    )
)
