"""Tell the logs in a folder from what clients keep beside them: outputs of tools, pastes, copies of files.

A tool decides what stands in its output, so one that prints a log would otherwise speak in the user's name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from archivist.capture.formats import ADAPTERS
from archivist.cold_start import lazy_pattern
from archivist.errors import InputError
from archivist.files.open import list_files
from archivist.files.packed import head_of, open_file
from archivist.paths import is_file

# The usual names of logs; a file with another name can be a log too.
LOG_NAME: Final = lazy_pattern(r"\.(?:jsonl|traj|(?:traj|atif|trajectory)\.json)(?:\.gz|\.zst)?\Z")
_SUBAGENT_LOG: Final = lazy_pattern(
    r"subagents/(?:[^/]{1,255}/){0,2}agent-[^/]{1,255}\.jsonl(?:\.gz|\.zst)?", re.DOTALL
)
_SESSION_LOG: Final = lazy_pattern(r"events\.jsonl")
_OTHER_FOLDERS: Final = frozenset((
    "tool-results", "tool_results", "tool-outputs", "tool_outputs", "tool-output", "file-history",
    "attachments", "rewind-file-snapshots", "shell-snapshots", "shell_snapshots", "paste-cache",
    "image-cache", "todos",
))  # fmt: skip
# Below a client's own folder only these are logs; whatever else lies there, tools may have written.
_PACKED: Final = r"(?:\.gz|\.zst)?"
_IN_HOMES: Final = {
    ".claude": lazy_pattern(
        rf"projects/[^/]{{1,255}}/(?:[^/]{{1,255}}\.jsonl|[^/]{{1,255}}/{_SUBAGENT_LOG.pattern}){_PACKED}",
        re.DOTALL,
    ),
    ".codex": lazy_pattern(
        rf"(?:archived_)?sessions/(?:\d{{1,4}}/){{0,3}}rollout-[^/]{{1,255}}\.jsonl{_PACKED}", re.DOTALL
    ),
    ".gemini": lazy_pattern(
        r"tmp/[^/]{1,255}/chats/(?:session-[^/]{1,255}|[\w-]{36}/[\w-]{1,64})\.jsonl?", re.DOTALL
    ),
    ".copilot": lazy_pattern(r"session-state/(?:[^/]{1,255}/events|[^/]{1,255})\.jsonl", re.DOTALL),
}


class FolderFiles(NamedTuple):
    """The files of a folder that lie where logs lie, and all others."""

    candidates: list[Path]
    others: list[Path]


def scan_log_folder(folder: Path) -> FolderFiles:
    """Return the files below a folder, by whether they lie where a client or a person puts logs."""
    found = FolderFiles([], [])
    top = folder.absolute()
    rules: dict[Path, re.Pattern[str] | None] = {}
    for path in filter(is_file, list_files(folder, "**/*")):
        parts = path.relative_to(folder).parts
        is_log_place = _OTHER_FOLDERS.isdisjoint(map(str.lower, (top.name, *parts[:-1])))
        is_log_place = is_log_place and not any(part.startswith(".") for part in parts)
        whole = (*top.parts, *parts)
        # Below a client's own folder only its logs are; any other file may be one.
        for depth, part in enumerate(whole):
            if rule := _IN_HOMES.get(part):
                is_log_place = is_log_place and rule.fullmatch("/".join(whole[depth + 1 :])) is not None
        for depth in range(len(parts) if is_log_place else 0):
            inside = top.joinpath(*parts[:depth])
            if inside not in rules:
                rules[inside] = _session_rule(inside)
            if rule := rules[inside]:
                is_log_place = is_log_place and rule.fullmatch("/".join(parts[depth:])) is not None
        (found.candidates if is_log_place else found.others).append(path)
    return found


def is_clients_own(folder: Path) -> bool:
    """Say whether a folder lies where a client of this user keeps its logs."""
    real, home = Path(os.path.realpath(folder)), Path(os.path.realpath(Path.home()))
    return any(real.is_relative_to(home / name) for name in _IN_HOMES)


def _session_rule(folder: Path) -> re.Pattern[str] | None:
    """Return which files of a session's folder are logs; nothing for a folder that is no session's."""
    # Copilot CLI keeps the log inside the folder, Claude Code beside it.
    if (folder / "workspace.yaml").is_file() and (folder / "events.jsonl").is_file():
        return _SESSION_LOG
    beside = (folder.parent / f"{folder.name}.jsonl{packed}" for packed in ("", ".gz", ".zst"))
    return _SUBAGENT_LOG if any(log.is_file() and not why_no_log(log) for log in beside) else None


def why_no_log(path: Path) -> str:
    """Return why a file is no log, by its beginning; empty for a log."""
    try:
        if not path.stat().st_size:
            return "it is empty"
        with open_file(path) as source:
            head = head_of(source)
    except OSError as error:
        return f"cannot read {str(path)!r}: {error.strerror}"
    except InputError as error:
        return error.message
    is_log = any(adapter.recognises(head) for adapter in ADAPTERS)
    return "" if is_log else "not a log of a known format"
