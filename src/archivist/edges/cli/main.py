"""The entry point of the `archivist` command: a hook is answered before Click is imported."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

# A short command makes fewer objects than this, so the collector never runs.
_SELDOM = 100_000
# A client writes its event as soon as the process is there.
_EVENT_WAIT_S = 0.2


def main(argv: Sequence[str] | None = None) -> None:
    """Answer a hook, or run the command line and exit by the class of what went wrong."""
    # Collecting while modules load, and again at exit, took a tenth of the time of a short command.
    gc.set_threshold(_SELDOM)
    words = sys.argv[1:] if argv is None else list(argv)
    if not words and _is_hook_event():
        # Some versions of Claude Code leave out the arguments that a hook lists apart from its program.
        words = ["hook", "claude-code"]
    # An agent waits for its hook, so it is answered before Click is imported; `hook --help` is not.
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from archivist.edges.hooks.dispatch import answer_hook

        answer_hook(words[1:])
        if argv is None:
            # Everything is written and closed; the interpreter's own exit takes 10 ms more.
            os._exit(0)
        return
    try:
        from archivist.edges.cli.group import run
    except KeyboardInterrupt:
        sys.exit(130)
    run(argv)


def _is_hook_event() -> bool:
    """Say whether a client's event waits on stdin; whoever calls the program without words sends nothing."""
    from select import select

    try:
        if sys.stdin is None or sys.stdin.isatty() or not select([sys.stdin], [], [], _EVENT_WAIT_S)[0]:
            return False
        peek = getattr(sys.stdin.buffer, "peek", None)
        return peek is not None and b'"hook_event_name"' in peek()
    except (OSError, ValueError):
        return False
