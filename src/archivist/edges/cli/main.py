"""The entry point of the `archivist` command: a hook is answered before Click is imported."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

# A short command makes fewer objects than this, so the collector never runs.
_SELDOM = 100_000


def main(argv: Sequence[str] | None = None) -> None:
    """Answer a hook, or run the command line and exit by the class of what went wrong."""
    # Collecting while modules load, and again at exit, took a tenth of the time of a short command.
    gc.set_threshold(_SELDOM)
    words = sys.argv[1:] if argv is None else list(argv)
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
