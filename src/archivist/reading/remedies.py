"""What helped against a failure: how well it is proven, and whether it can destroy data."""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import pairwise, takewhile
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.shell import Step, parse

# Added wherever a destructive command is mentioned.
WARNING = "which can destroy work or data: ask before"
# A remedy is replaced when this many later runs did something else instead.
_REPLACED_AT = 2
# One failure since says little against a remedy that worked in so many runs.
_OFTEN_ENOUGH = 5
# The folder that a command line enters first.
ENTERS = lazy_pattern(r"(?:cd|pushd) (?!-)[^\s;&|]{1,100} && ")
# A call with more words changed is another call, whatever texts it is given.
_MOST_CHANGED = 3
_OTHER_CALL = "call "
_QUOTED_WORD = lazy_pattern(r"'[^']{1,200}'|\"[^\"]{1,200}\"")
# Files and folders that a build, an install or a tool creates again.
_REMADE = lazy_pattern(
    r"(?:build|dist|out|target|node_modules|bower_components|venv|env|coverage|htmlcov|obj|tmp|temp|logs?"
    r"|__pycache__|cmake-build-\w+|[\w.-]+\.egg-info|(?=[\w.-]*cache)[\w.-]+|CMakeCache\.txt|CMakeFiles"
    r"|\.(?:venv|tox|nox|eggs|next|nuxt|turbo|gradle|svelte-kit|terraform|nyc_output|vite)"
    r"|[\w.-]+\.lock|[\w-]+-lock\.(?:json|yaml))$"
)
_DATABASE = lazy_pattern(r"\.(?:db|sqlite3?|rdb|mdb|dump|sql)$")
_DROPS = lazy_pattern(
    r"(?i)\bdrop\s+(?:database|schema|table)\b|\btruncate\s+table\b|\bdelete\s+from\b|\bflush(?:all|db)\b"
    # Tasks of projects: `rails db:drop`, `make reset-db`, `php artisan migrate:fresh`.
    r"|\b(?:db|database|ecto|schema)[:._-](?:drop|reset|wipe|purge|nuke|flush)\b|\bdropdatabase\b"
    r"|\b(?:drop|reset|wipe|purge|nuke)[_-](?:db|database|schema)\b|\bmigrate[: ](?:fresh|reset|refresh)\b"
    r"|\balembic downgrade (?:\S{1,40} ){0,3}base\b|\bmanage\.py flush\b|--force-reset\b|\bflyway clean\b"
)
# Steps that destroy work or data, each written as its name, then its flags, then its arguments.
_DESTROYS = lazy_pattern(
    r"(?:dd|shred|dropdb|wipefs|fdisk|parted|mkfs\S*|git stash (?:drop|clear)|docker volume (?:rm|prune)"
    r"|terraform destroy|kubectl delete|django-admin flush|prisma reset)(?: |$)"
    # Git throws away uncommitted changes or the history of others.
    r"|git (?:reset (?:.* )?--hard(?: |$)|clean (?:.* )?(?:-\w*f|--force)|branch (?:.* )?-\w*D"
    r"|push (?:.* )?(?:--force|-\w*f|--mirror|--delete|\+)|(?:checkout|restore) (?:.* )?\.(?: |$))"
    r"|chown (?:.* )?-\w*R|chmod (?=(?:.* )?-\w*R).* (?:0?777|a\+rwx)(?: |$)|find (?:.* )?-delete(?: |$)"
    r"|(?:docker|podman) (?:(?:\w+ )?prune|compose down) (?:.* )?(?:--all|--volumes|-\w*[av])"
    r"|(?:pkill|killall) (?:.* )?-\w*(?:9|KILL)|kill -\w*(?:9|KILL) (?:.* )?-1(?: |$)"
)


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

    @property
    def change(self) -> str:
        """Return what is the same about a remedy in other runs.

        A step is that without the folder that one run had to enter for it. A call with other arguments is
        changed in the same way when the same words come and go, unless so many do that it is another call.
        """
        if self.way is not RemedyKind.COMMAND or not self.instead:
            words = re.sub(r"^cd \S+ && ", "", self.text).split()
            # What the step takes over from the call, such as a folder, is of that call.
            own = [word for word in words[1:] if word not in self.instead.split()]
            return " ".join(sorted([words[0], *own] if own else words))
        # A folder to be entered is one change.
        entered = ENTERS.match(self.text)
        folder = entered[0] if entered and not self.instead.startswith(entered[0]) else ""
        right, wrong = map(_option_words, (self.text.removeprefix(folder), self.instead))
        if folder:
            inside = f"{folder.split()[1].rstrip('/')}/"
            wrong = [word.removeprefix("./").removeprefix(inside) for word in wrong]
        gained = [folder] * bool(folder) + [word for word in right if word not in wrong]
        lost = [f"-{word}" for word in wrong if word not in right]
        # An option and its value are one change.
        values = [word for flag, word in pairwise(right) if flag in gained and flag[:1] == "-" != word[:1]]
        if not gained and lost and all(word.startswith("--") for word in lost):
            # The same options left out are one change, whatever else the calls name.
            return " ".join((wrong[0], *lost))
        if not gained or len(gained) + len(lost) - len(values) > _MOST_CHANGED:
            return f"{_OTHER_CALL}{_QUOTED_WORD.sub('_', self.text)}"
        return " ".join((wrong[0], *gained, *lost))

    @property
    def is_command(self) -> bool:
        """Say whether it is a command to be run, not words about what to do."""
        return self.way in (RemedyKind.COMMAND, RemedyKind.STEP, RemedyKind.INSTALL)

    @property
    def is_other_call(self) -> bool:
        """Say whether so much is changed that it is another call."""
        return self.change.startswith(_OTHER_CALL)


def _option_words(command: str) -> list[str]:
    """Return the words of a command; an option and the value behind its `=` are two."""
    parts = (word.partition("=") if word.startswith("-") else (word, "", "") for word in command.split())
    return [word for name, mark, value in parts for word in (name + mark, value) if word]


_ANY_NAME = "<name>"
_PLACEHOLDER = lazy_pattern(r"<(?:test|file|folder|package)>")
_POSITION = lazy_pattern(
    r"(?<=\w)(?::\d{1,6}(?::\d{1,5})?(?=[:\s]|$)|\(\d{1,6},\d{1,5}\))|(?:^|(?<=\s))E {1,8}(?=\S)"
)
# Where a word that differs from run to run may be cut.
_JOINT = r"[/=:@._'\"-]"


def common_form(calls: Collection[str]) -> str:
    """Return calls of several runs as one, with `<name>` where they differ; nothing when they differ more.

    A word keeps the part that all share: `tests/a_test.go` and `tests/b_test.go` are `tests/<name>_test.go`.
    """
    rows = [call.split(" ") for call in dict.fromkeys(calls)]
    if len({len(row) for row in rows}) != 1:
        return ""
    words = [_common_word(column) for column in zip(*rows, strict=True)]
    differing = [word for word in words if _ANY_NAME in word]
    is_same_call = words[0] == rows[0][0] and len(differing) <= max(1, len(words) // 2)
    return " ".join(words) if all(words) and is_same_call else ""


def common_message(lines: Collection[str]) -> str:
    """Return the messages of several runs as one, without where in a file each was found."""
    return common_form([" ".join(_POSITION.sub("", line).split()) for line in lines])


def _common_word(words: Sequence[str]) -> str:
    if len(set(words)) == 1:
        return words[0]
    if any(word.startswith("-") and "=" not in word for word in words):
        return ""
    # What one run's word stands for is said better by the other's.
    if placeholder := next(filter(_PLACEHOLDER.fullmatch, words), ""):
        return placeholder
    start = re.match(rf".*{_JOINT}", _common_start(words))
    end = re.search(rf"{_JOINT}.*", _common_start([word[::-1] for word in words])[::-1])
    prefix, suffix = start[0] if start else "", end[0] if end else ""
    is_overlapping = len(prefix) + len(suffix) > min(map(len, words))
    return f"{prefix}{_ANY_NAME}{'' if is_overlapping else suffix}"


def _common_start(words: Sequence[str]) -> str:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return "".join(column[0] for column in columns)


def split_steps(remedy: Remedy) -> list[Remedy]:
    """Return the steps of a remedy as remedies of their own; any other remedy as it is.

    A folder is entered for the step behind it.
    """
    if remedy.way is not RemedyKind.STEP:
        return [remedy]
    texts: list[str] = []
    for text in remedy.text.split(" && "):
        if texts and texts[-1].startswith("cd ") and " && " not in texts[-1]:
            text = f"{texts.pop()} && {text}"  # noqa: PLW2901
        texts.append(text)
    texts = [text for text in texts if not text.startswith("cd ") or " && " in text]
    return [remedy._replace(text=text) for text in texts]


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
    vain_since = {
        text: sum(_is_among(text, in_vain) for _, in_vain in runs[at[-1] + 1 :])
        for text, at in worked.items()
    }
    return {
        text: Proof(
            runs=len(at),
            has_failed_since=_OFTEN_ENOUGH * vain_since[text] > len(at),
            is_replaced=any(sum(run > at[-1] for run in other) >= _REPLACED_AT for other in worked.values()),
            vain=sum(text not in helped and _is_among(text, in_vain) for helped, in_vain in runs),
        )
        for text, at in worked.items()
    }


def _is_among(text: str, commands: Collection[str]) -> bool:
    return text in commands or any(part in commands for part in text.split(" && "))


def is_destructive(command: str) -> bool:
    """Say whether a command can destroy work or data. Another run must not be advised to try it."""
    from archivist.reading.command_words import whole_options

    command = whole_options(command)
    return bool(_DROPS.search(command)) or any(_destroys(step) for step in parse(command))


def _destroys(step: Step) -> bool:
    from archivist.reading.command_words import leads_outside

    if step.program != "rm":
        return bool(_DESTROYS.match(" ".join((step.name, *step.flags, *step.arguments))))
    names = [path.rstrip("/*").rsplit("/", 1)[-1] for path in step.arguments]
    if any(re.match(r"-\w*[rR]|--recursive$", flag) for flag in step.flags):
        is_outside = any(map(leads_outside, step.arguments))
        return is_outside or not names or not all(name and _REMADE.match(name) for name in names)
    return any(_DATABASE.search(name) for name in names)
