"""Ask git about a repository that may be hostile; the one place that starts it.

A repository's own settings can name programs: for a monitor of files, hooks, signatures, a connection. None
of them may run, nothing may be fetched, no lock is taken, and no variable of a git hook counts.
"""

from __future__ import annotations

import os
from pathlib import Path

# Exit codes that git itself never has.
TOO_LONG, NOT_RUN = -1000, -1001
# What is given here wins over the repository's own settings.
_HARMLESS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.sshCommand=false", "core.gitProxy=",
    "core.askPass=", "core.pager=cat", "core.attributesFile=/dev/null", "credential.helper=",
    "diff.external=", "log.showSignature=false", "log.follow=false", "gpg.program=false",
    "protocol.allow=never", "submodule.recurse=false", "maintenance.auto=false", "gc.auto=0",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
# A log that shows no difference runs no program that would make one.
_OF_LOG = ("--no-textconv", "--no-ext-diff", "--no-show-signature", "--no-mailmap")


def run_git(folder: Path, *words: str, timeout_s: float) -> tuple[int, bytes]:
    """Return git's exit code and output in a folder; TOO_LONG after so many seconds, NOT_RUN without git."""
    import subprocess

    settings = [word for setting in _HARMLESS for word in ("-c", setting)]
    verb, *rest = words
    options = (*_OF_LOG, *rest) if verb == "log" else rest
    pathspecs = ("--literal-pathspecs",) if verb == "log" else ()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *settings, *pathspecs, verb, *options],  # noqa: S607
            env={**kept, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TOO_LONG, b""
    except (OSError, ValueError):
        return NOT_RUN, b""
    return done.returncode, done.stdout
