"""Hand over what follows a session to a process of its own: the client waits for none of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from archivist.edges.hooks.said import LONGEST_NAME, Dialect, HookPayload


def start_follow_up(dialect: Dialect, payload: HookPayload, place: Path, *, is_end: bool) -> None:
    """Start the work that follows a session, in a session of its own and with no file of ours open."""
    if len(payload.session) > LONGEST_NAME:
        raise ValueError(f"the session's name has {len(payload.session)} characters, at most {LONGEST_NAME}")
    moment = "end" if is_end else "stop"
    # Nothing of the project's own folder may be imported in our name.
    words = [
        sys.executable,
        "-P",
        "-m",
        "archivist.edges.hooks.afterwards",
        moment,
        dialect.name,
        payload.session,
    ]
    where = [payload.transcript, payload.folder, str(place.absolute())]
    if sys.platform == "win32":
        _spawn_windows([*words, *where])
    else:
        _spawn_posix(words, where, place)


def _spawn_posix(words: list[str], where: list[str], place: Path) -> None:
    if os.fork():
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        try:
            os.execv(words[0], [*words, *where])  # noqa: S606 our own interpreter and module; the rest are data
        except (OSError, ValueError) as error:
            from archivist.edges.hooks.whereabouts import note_failure

            # A path that is none, or far too long. The session is still to be closed, without its log.
            note_failure(f"{words[5]} after {words[4]}", error, place)
            os.execv(words[0], [*words, "", "", where[-1]])  # noqa: S606
    finally:
        os._exit(127)


def _spawn_windows(words: list[str]) -> None:
    import subprocess

    apart = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    subprocess.Popen(  # noqa: S603 our own interpreter and module; the rest are data
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        creationflags=apart,
    )
