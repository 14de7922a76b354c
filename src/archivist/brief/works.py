"""Say which commands test, lint, build and start a project, and which calls its runs often fail in.

A hook runs this while an agent waits: it reads the notes of a few runs and imports nothing else.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.records.words import NOTES, Provenance

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
_FAILING = "Often fails here: "
_FAILED_ONCE = "Failed once lately: "
_ONCE = "; failed once lately: "
# What is told to fail was met by two runs at least, and by this share of the latest. What one run met
# is told after it, the latest first, where this share of what fails comes again.
_LEAST_FAILING = 0.1
_MOST_FAILING = 10
_LEAST_RECURRING = 0.2
_LONGEST_FAILING = 400
# Families that only name failures once more.
_NAMED_AGAIN = ("remedy:",)
# In the order in which a line tells them.
_PURPOSES = ("test", "one test", "lint", "fix", "types", "format", "build", "check", "run")


class WorkingCommand(NamedTuple):
    """A command for a purpose, the folder that it works in, and in how many of the runs that tried it."""

    purpose: str
    command: str
    folder: str
    worked: int
    tried: int

    def view(self) -> dict[str, object]:
        """Return it as plain values."""
        return dict(self._asdict())

    def describe(self, *, is_first: bool) -> str:
        """Return what a line says of it; the first says what is counted."""
        place = f" in `{self.folder}/`" if self.folder else ""
        count = f"{self.worked} of {self.tried}{' runs' if is_first else ''}"
        return f"{self.purpose} `{self.command}`{place} ({count})"


class FailingCall(NamedTuple):
    """A call that runs often fail in: with which errors, in how many of the latest, and where it shows."""

    call: str
    errors: tuple[str, ...]
    met: int
    runs: int
    signatures: frozenset[str] = frozenset()
    events: tuple[str, ...] = ()

    def view(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"call": self.call, "errors": ", ".join(self.errors), "met": self.met, "runs": self.runs}

    def describe(self, *, is_first: bool) -> str:
        """Return what a line says of it; the first says what is counted."""
        said = ", ".join(self.errors)
        if self.is_once:
            return f"`{self.call}`" + (f" ({said})" if said else "")
        count = f"{self.met} of {self.runs}{' runs' if is_first else ''}"
        return f"`{self.call}` ({count}{': ' if said else ''}{said})"

    @property
    def is_once(self) -> bool:
        """Say whether one run alone met it."""
        return self.met == 1


class Habits(NamedTuple):
    """What a project's latest runs did with success, and what they often failed in."""

    works: tuple[WorkingCommand, ...] = ()
    fails: tuple[FailingCall, ...] = ()

    def lines(self) -> list[str]:
        """Return what a brief says of it, at most a line each."""
        return [line for line in (format_line(self.works), format_failing(self.fails)) if line]


NO_HABITS = Habits()


def find_habits(reader: "Reader", names: Sequence[str]) -> Habits:
    """Return what works in a project of these names, and what often fails in it."""
    if not any(names):
        return NO_HABITS
    from archivist.store.filters import equals, one_of

    rows = reader.select_fields(
        "episode",
        ("id", "parent", "extra"),
        one_of("project", names),
        equals("action", None),
        equals("provenance", Provenance.MINED),
        order=("-finished",),
        limit=_READ_RECORDS,
    )
    runs: dict[str, list[Any]] = {}
    failures: dict[str, list[Mapping[str, Any]]] = {}
    for name, parent, extra in rows:
        root = str(parent or name)
        if root not in runs and len(runs) == LATEST_RUNS:
            break
        noted = runs.setdefault(root, [])
        # Most runs of some projects note nothing; finding that out by text is cheaper than by parsing.
        is_noting = '"works":[[' in extra or '"failures":{"' in extra
        notes = json.loads(extra).get(NOTES) if is_noting else None
        if isinstance(notes, Mapping):
            noted += notes.get("works") or ()
            failures.setdefault(root, []).append(notes.get("failures") or {})
    fails = select_failing(list(failures.values()), len(runs))
    return Habits(select_commands(list(runs.values())), fails)


def select_failing(noted: Sequence[Sequence[Mapping[str, Any]]], runs: int) -> tuple[FailingCall, ...]:
    """Choose the calls that most of the latest runs failed in."""
    met: dict[str, set[int]] = {}
    entries: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for run, tables in enumerate(noted):
        for key, entry in ((key, entry) for table in tables for key, entry in table.items()):
            name = entry.get("name")
            if name and not key.partition("|")[2].startswith(_NAMED_AGAIN):
                met.setdefault(name, set()).add(run)
                entries.setdefault(name, []).append((key, entry))
    recurring = sum(len(those) > 1 for those in met.values())
    is_recurring = recurring >= _LEAST_RECURRING * len(met)
    found: list[FailingCall] = []
    for name, those in met.items():
        is_told_once = len(those) == 1 and is_recurring
        if is_told_once or len(those) >= max(_LEAST_RUNS, _LEAST_FAILING * runs):
            told = Counter(error for _, entry in entries[name] for error in entry.get("errors") or ())
            errors = tuple(error for error, _ in told.most_common(2))
            shown = tuple(event for _, entry in entries[name] for event in entry.get("events") or ())
            signatures = frozenset(key for key, _ in entries[name])
            found.append(FailingCall(name, errors, len(those), runs, signatures, shown))
    # Of what one run met the latest comes first.
    found.sort(key=lambda each: (-each.met, min(met[each.call]) if each.is_once else 0, each.call))
    return tuple(found[:_MOST_FAILING])


def format_failing(calls: Sequence[FailingCall]) -> str:
    """Return one line that tells what often fails, then what did once, as much as fits."""
    line = ""
    for at, each in enumerate(calls):
        joint = _ONCE if each.is_once and not calls[at - 1].is_once else ", "
        opening = _FAILED_ONCE if each.is_once else _FAILING
        longer = (f"{line}{joint}" if line else opening) + each.describe(is_first=not at)
        if len(longer) > _LONGEST_FAILING:
            break
        line = longer
    return line


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
