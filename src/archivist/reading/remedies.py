"""What helped against a failure: how well it is proven, and whether it can destroy data."""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.shell import Step, parse

# Added wherever a destructive command is mentioned.
WARNING = "which can destroy work or data: ask before"
# A remedy is replaced when this many later runs did something else instead.
_REPLACED_AT = 2
# Files and folders that a build, an install or a tool creates again.
_REMADE = lazy_pattern(
    r"(?:build|dist|out|target|node_modules|bower_components|venv|env|coverage|htmlcov|obj|tmp|temp|logs?"
    r"|__pycache__|cmake-build-\w+|[\w.-]+\.egg-info|[\w.-]*cache[\w.-]*|CMakeCache\.txt|CMakeFiles"
    r"|\.(?:venv|tox|nox|eggs|next|nuxt|turbo|gradle|svelte-kit|terraform|nyc_output|vite)"
    r"|[\w.-]+\.lock|[\w-]+-lock\.(?:json|yaml))$"
)
_DATABASE = lazy_pattern(r"\.(?:db|sqlite3?|rdb|mdb|dump|sql)$")
_DROPS = lazy_pattern(
    r"(?i)\bdrop\s+(?:database|schema|table)\b|\btruncate\s+table\b|\bdelete\s+from\b|\bflush(?:all|db)\b"
)
_ALWAYS_DESTROYS = frozenset(("dd", "shred", "dropdb", "wipefs", "fdisk", "parted"))
_DESTROYS_BY_NAME = frozenset(
    ("git stash drop", "git stash clear", "terraform destroy", "docker volume rm", "docker volume prune",
     "django-admin flush", "prisma reset")
)  # fmt: skip


class RemedyKind(StrEnum):
    """How a failure was overcome."""

    INSTALL = "install"
    EDIT = "edit"
    COMMAND = "command"
    PATH = "path"
    STEP = "step"
    SAID = "said"


# Hooks import this module: a dataclass would cost them 10 ms, a named tuple costs nothing.
class Remedy(NamedTuple):
    """What helped. `text` is a command or says what to change in `files`; `instead` is what it replaces."""

    way: RemedyKind
    text: str
    instead: str = ""
    files: tuple[str, ...] = ()


def to_digest(remedy: Remedy) -> list[str]:
    """Write a remedy as plain values."""
    return [remedy.way.value, remedy.text, remedy.instead, *remedy.files]


def from_digest(value: Sequence[str]) -> Remedy:
    """Read what `to_digest` wrote."""
    way, text, instead, *files = (*value, *[""] * (3 - len(value)))
    return Remedy(RemedyKind(way), text, instead, tuple(files))


class Proof(NamedTuple):
    """How well a remedy is proven: the runs in which it worked, and what happened in later ones.

    `vain` counts the runs that tried it without success, before or after those.
    """

    runs: int
    has_failed_since: bool = False
    is_replaced: bool = False
    vain: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Return the sort key of remedies, the best proven first."""
        return self.has_failed_since, self.is_replaced, -self.runs


def proofs(runs: Sequence[tuple[Collection[str], Collection[str]]]) -> dict[str, Proof]:
    """Return how well each remedy is proven, given what worked and what failed in each run, oldest first."""
    worked: dict[str, list[int]] = {}
    for index, (helped, _) in enumerate(runs):
        for text in helped:
            worked.setdefault(text, []).append(index)
    return {
        text: Proof(
            runs=len(at),
            has_failed_since=any(_is_among(text, in_vain) for _, in_vain in runs[at[-1] + 1 :]),
            is_replaced=any(sum(run > at[-1] for run in other) >= _REPLACED_AT for other in worked.values()),
            vain=sum(text not in helped and _is_among(text, in_vain) for helped, in_vain in runs),
        )
        for text, at in worked.items()
    }


def _is_among(text: str, commands: Collection[str]) -> bool:
    return text in commands or any(part in commands for part in text.split(" && "))


def is_destructive(command: str) -> bool:
    """Say whether a command can destroy work or data. Another run must not be advised to try it."""
    return bool(_DROPS.search(command)) or any(_destroys(step) for step in parse(command))


def _destroys(step: Step) -> bool:
    if (
        step.program in _ALWAYS_DESTROYS
        or step.program.startswith("mkfs")
        or step.name in _DESTROYS_BY_NAME
        or step.name == "kubectl delete"
    ):
        return True
    flags = set(step.flags)
    letters = "".join(flag[1:] for flag in step.flags if not flag.startswith("--"))
    match step.program:
        case "rm":
            names = [path.rstrip("/*").rsplit("/", 1)[-1] for path in step.arguments]
            if re.search("[rR]", letters) or "--recursive" in flags:
                return not names or not all(name and _REMADE.match(name) for name in names)
            return any(_DATABASE.search(name) for name in names)
        case "git":
            return _discards_changes(step, flags, letters)
        case "chmod" | "chown":
            is_open_to_all = not {"777", "0777", "a+rwx"}.isdisjoint(step.arguments)
            return "R" in letters and (is_open_to_all or step.program == "chown")
        case "docker" | "podman":
            is_sweeping = bool(flags & {"--all", "--volumes"}) or "a" in letters or "v" in letters
            return is_sweeping and ("prune" in step.subcommand or step.subcommand == "compose down")
        case "find":
            return "-delete" in flags
        case "kill" | "pkill" | "killall":
            is_forced = "9" in letters or "KILL" in letters
            return is_forced and (step.program != "kill" or "-1" in step.flags[1:])
    return False


def _discards_changes(step: Step, flags: set[str], letters: str) -> bool:
    """Say whether a git call throws away uncommitted changes or the history of others."""
    match step.subcommand:
        case "reset":
            return "--hard" in flags
        case "clean":
            return "f" in letters or "--force" in flags
        case "push":
            is_forced = any(flag.startswith("--force") for flag in flags) or "f" in letters
            is_removing = bool(flags & {"--mirror", "--delete"})
            return is_forced or is_removing or any(refspec.startswith("+") for refspec in step.arguments)
        case "checkout" | "restore":
            return "." in step.arguments
        case "branch":
            return "D" in letters
    return False
