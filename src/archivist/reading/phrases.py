"""Take out of commands and paths what belongs to one machine or one task."""

from __future__ import annotations

import re

# A web address is the same on every machine; a file's is a path.
_PATH = re.compile(
    r"\b[A-Za-z][A-Za-z\d+.-]{1,20}://[^/\s][^\s`'\"<>]*|(?<![\w.<])(?:~|/(?!dev/(?:tty|null)))[\w.@+-]*(?:/[\w.@+-]+)+/?"
)
_ID = re.compile(r"(?<![\w.<=-])(?:#?\d{2,}|[a-z]{1,3}-\d{2,}|[0-9a-f]{8,40}|[0-9a-f-]{36})(?![\w.>-])")
_QUOTED = re.compile(r"\"[^\"]{13,}\"|'[^']{13,}'")
_FILE = re.compile(
    r"(?<![\w/<-])(?:\./)?(?:[\w-]*test[\w-]*|[\w-]*repro[\w-]*|sample|example|input|tmp[\w-]*)\.\w{2,4}\b"
)
_SCRATCH = re.compile(
    r"(?:\./)?(?:test|debug|repro|reproduce|fix|final|verify|check|demo|patch|tmp|temp)[\w.-]*$"
)
_BESIDE = re.compile(r"/(?:var/)?tmp/[^/]+$|/dev/")
_UNTOLD = re.compile(r"<script>|\"…\"|<<'EOF'|…$|<path>")
# Folders of the machine itself, in which no project lies: below them a path means the same to every run.
_OF_HOST = re.compile(
    r"/(?:etc|bin|sbin|lib|lib64|dev|proc|sys|opt|run|boot|usr(?!/(?:local/)?src\b)|System|Library"
    r"|var(?=/(?!tmp\b|folders\b|www\b)))(?:/|$)"
)
_LONGEST = 110


def mask_command(text: str) -> str:
    """Return a command whose numbers, names and long texts are left open."""
    text = _QUOTED.sub('"…"', without_paths(text))
    return _FILE.sub("<file>", _ID.sub("<id>", text))


def without_paths(text: str) -> str:
    """Replace absolute paths by what follows the project's folder."""
    if "/" not in text:
        return text
    return _PATH.sub(lambda found: found[0] if "://" in found[0] else relative_path(found[0]), text)


def relative_path(path: str) -> str:
    """Return a path without the folder in which one machine keeps the project; one of the machine stays."""
    path = path.removeprefix("./")
    if not path.startswith(("/", "~")) or _OF_HOST.match(path):
        return path
    parts = [part for part in path.split("/") if part]
    if parts[:1] in (["home"], ["Users"]):
        return "/".join(parts[4:] if len(parts) > 5 else parts[-1:])
    if parts[:1] in (["tmp"], ["var"], ["private"]):
        return "/".join(parts[-2:])
    return "/".join(parts[1:] if len(parts) > 1 else parts)


def is_scratch(path: str) -> bool:
    """Say whether a file is one that the agent made for itself. A folder below /tmp can be a project."""
    return bool(_BESIDE.match(path) or _SCRATCH.match(path))


def is_informative(command: str) -> bool:
    """Say whether a command in general terms still says something to another run."""
    return 0 < len(command) <= _LONGEST and not _UNTOLD.search(command)


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def differing_words(old: str, new: str) -> tuple[str, str]:
    """Return the words in which two lines differ, whole names at least."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    while start and re.match(r"[\w.='\"]", old[start - 1]):
        start -= 1
    while end and re.match(r"[\w.='\"]", old[len(old) - end]):
        end -= 1
    return old[start : len(old) - end].strip(), new[start : len(new) - end].strip()
