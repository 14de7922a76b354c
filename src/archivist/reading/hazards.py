"""Tell the steps that destroy what cannot be had again: they are told as what was done, never advised."""

from __future__ import annotations

import re

from archivist.cold_start import lazy_pattern
from archivist.reading.steps import Step, parse

# What a build, an install or a tool makes anew.
_REMADE = lazy_pattern(
    r"(?:build|dist|out|target|node_modules|bower_components|venv|env|coverage|htmlcov|obj|tmp|temp|logs?"
    r"|__pycache__|cmake-build-\w+|[\w.-]+\.egg-info|[\w.-]*cache[\w.-]*|CMakeCache\.txt|CMakeFiles"
    r"|\.(?:venv|tox|nox|eggs|next|nuxt|turbo|gradle|svelte-kit|terraform|nyc_output|vite)"
    r"|[\w.-]+\.lock|[\w-]+-lock\.(?:json|yaml))$"
)
_DATA = lazy_pattern(r"\.(?:db|sqlite3?|rdb|mdb|dump|sql)$")
_DROPS = lazy_pattern(
    r"(?i)\bdrop\s+(?:database|schema|table)\b|\btruncate\s+table\b|\bdelete\s+from\b|\bflush(?:all|db)\b"
)
_ALL = ("-a", "--all", "--volumes", "-v")
_ENDING = ("kill", "pkill", "killall")
_ALWAYS = frozenset(("dd", "shred", "dropdb", "wipefs", "fdisk", "parted"))
_BY_NAME = frozenset(
    ("git stash drop", "git stash clear", "terraform destroy", "docker volume rm", "docker volume prune",
     "django-admin flush", "prisma reset")
)  # fmt: skip

# Said of what destroys, wherever it is told.
WARNING = "which can destroy work or data: ask before"


def is_destructive(command: str) -> bool:
    """Say whether a command can destroy work or data: told to another run, it is not to be tried first."""
    return bool(_DROPS.search(command)) or any(_destroys(step) for step in parse(command))


def _destroys(step: Step) -> bool:
    if step.program in _ALWAYS or step.program.startswith("mkfs") or step.name in _BY_NAME:
        return True
    letters = "".join(flag[1:] for flag in step.flags if not flag.startswith("--"))
    match step.program:
        case "rm":
            return _removes(step, letters)
        case "git":
            return _discards(step, letters)
        case "chmod" | "chown":
            is_open = bool({"777", "0777", "a+rwx"} & {*step.arguments})
            return "R" in letters and (is_open or step.program == "chown")
        case "docker" | "podman":
            is_sweeping = any(flag in _ALL for flag in step.flags) or "a" in letters or "v" in letters
            return is_sweeping and ("prune" in step.subcommand or step.subcommand == "compose down")
        case "kubectl":
            return step.subcommand == "delete"
        case "find":
            return "-delete" in step.flags
        case _ if step.program in _ENDING:
            is_hard = "9" in letters or "KILL" in letters
            return is_hard and (step.program != "kill" or "-1" in step.flags[1:])
    return False


def _removes(step: Step, letters: str) -> bool:
    """Say whether a removal takes a folder, or a database, that nothing makes anew."""
    is_deep = bool(re.search("[rR]", letters)) or "--recursive" in step.flags
    names = [each.rstrip("/*").rsplit("/", 1)[-1] for each in step.arguments]
    if is_deep:
        return not names or not all(name and _REMADE.match(name) for name in names)
    return any(_DATA.search(name) for name in names)


def _discards(step: Step, letters: str) -> bool:
    """Say whether a call of git throws away changes or the history of others."""
    match step.subcommand:
        case "reset":
            return "--hard" in step.flags
        case "clean":
            return "f" in letters or "--force" in step.flags
        case "push":
            forced = any(
                flag.startswith("--force") or flag in ("--mirror", "--delete") for flag in step.flags
            )
            return forced or "f" in letters or any(each.startswith("+") for each in step.arguments)
        case "checkout" | "restore":
            return "." in step.arguments
        case "branch":
            return "D" in letters
    return False
