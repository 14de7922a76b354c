"""What a client's sandbox blocks."""

from archivist.cold_start import lazy_pattern
from archivist.reading.failures import Failure
from archivist.reading.rules import FailureKind as K

# By the message, where it is not the network.
_BLOCKED = (
    ("git index", lazy_pattern(r"\.git/|index\.lock")),
    ("ports", lazy_pattern(r"(?i)\b(?:listen|bind)(?:ing)?\b")),
)


def name_blocked_call(failure: Failure, call: str) -> str:
    """Return a call that was blocked behind what the sandbox does not let it use."""
    kind = next((name for name, pattern in _BLOCKED if pattern.search(failure.line)), "")
    return f"{'network' if failure.kind is K.NETWORK else kind}: {call}"
