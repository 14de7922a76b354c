"""Say which commands test, lint, build and start a project, by what its latest runs did with success.

A hook runs this while an agent waits: it reads the notes of a few runs and imports nothing else.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.records.words import NOTES, Provenance
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# The latest runs that count, and how many records are read to find them: a subagent's run is its parent's.
LATEST_RUNS = 20
_READ_RECORDS = 40
# What is told worked in two runs at least, nearly always, and in one of the latest that tried it.
_LEAST_RUNS = 2
_LEAST_SHARE = 0.75
_LATEST_TRIES = 3
_LONGEST_LINE = 200
_SHORT_NAME = 12
_OPENING = "Works here: "
# In the order in which a line tells them.
_PURPOSES = ("test", "one test", "lint", "fix", "types", "format", "build", "check", "run")


class WorkingCommand(NamedTuple):
    """A command for a purpose, the folder that it works in, and in how many of the runs that tried it."""

    purpose: str
    command: str
    folder: str
    worked: int
    tried: int

    def describe(self, *, is_first: bool) -> str:
        """Return what a line says of it; the first says what is counted."""
        place = f" in `{self.folder}/`" if self.folder else ""
        count = f"{self.worked} of {self.tried}{' runs' if is_first else ''}"
        return f"{self.purpose} `{self.command}`{place} ({count})"


def find_working_commands(reader: "Reader", project: str) -> tuple[WorkingCommand, ...]:
    """Return what works in a project, the best command of each purpose, as many as fit on a line."""
    if not project:
        return ()
    rows = reader.select_fields(
        "episode",
        ("id", "parent", "extra"),
        equals("project", project),
        equals("action", None),
        equals("provenance", Provenance.MINED),
        order=("-finished",),
        limit=_READ_RECORDS,
    )
    runs: dict[str, list[Any]] = {}
    for name, parent, extra in rows:
        root = str(parent or name)
        if root not in runs and len(runs) == LATEST_RUNS:
            break
        noted = runs.setdefault(root, [])
        # Most runs of some projects note nothing; finding that out by text is cheaper than by parsing.
        notes = json.loads(extra).get(NOTES) if '"works":[[' in extra else None
        if isinstance(notes, Mapping):
            noted += notes.get("works") or ()
    return select_commands(list(runs.values()))


def select_commands(runs: Sequence[Iterable[Sequence[Any]]]) -> tuple[WorkingCommand, ...]:
    """Choose from what each run noted, the latest run first."""
    tries: dict[tuple[str, str, str], dict[int, tuple[int, int]]] = {}
    for age, noted in enumerate(runs):
        for purpose, command, folder, worked, failed in noted:
            of_runs = tries.setdefault((purpose, command, folder), {})
            before = of_runs.get(age, (0, 0))
            of_runs[age] = before[0] + worked, before[1] + failed
    best: dict[str, tuple[int, WorkingCommand]] = {}
    for (purpose, command, folder), of_runs in tries.items():
        ages = [age for age, (worked, failed) in of_runs.items() if worked and worked >= failed]
        is_proven = len(ages) >= max(_LEAST_RUNS, _LEAST_SHARE * len(of_runs))
        if not is_proven or ages[0] not in list(of_runs)[:_LATEST_TRIES]:
            continue
        # A later run says more than an earlier one: a project that changes its tools is told the new ones.
        weight = sum(LATEST_RUNS - age for age in ages)
        found = WorkingCommand(purpose, command, folder, len(ages), len(of_runs))
        if purpose in _PURPOSES and weight > best.get(purpose, (0,))[0] and _is_plain(folder):
            best[purpose] = weight, found
    chosen: list[WorkingCommand] = []
    for _, each in sorted(best.values(), key=lambda ranked: -ranked[0]):
        if len(format_line([*chosen, each])) <= _LONGEST_LINE:
            chosen.append(each)
    return tuple(sorted(chosen, key=lambda each: _PURPOSES.index(each.purpose)))


def _is_plain(folder: str) -> bool:
    """Say whether a folder's path can be told; for a short one nothing is imported."""
    if len(folder) <= _SHORT_NAME:
        return True
    from archivist.lessons.quarantine import is_plain_name

    return is_plain_name(folder)


def format_line(commands: Sequence[WorkingCommand]) -> str:
    """Return one line that tells what works, without its end; nothing without commands."""
    told = (each.describe(is_first=not at) for at, each in enumerate(commands))
    return _OPENING + ", ".join(told) if commands else ""
