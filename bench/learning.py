"""Measure what is learnt: learn on one folder of runs, brief each run of another, see what was foreseen.

The baseline is the project's most frequent error signatures, each with the command that next succeeded, as
text. Both are told at most 10 lessons in 800 tokens of 4 characters. The unit is the distinct failure key
of a test run; errors of the code being written are left out. Every share has a bootstrapped 95 % interval
over test runs.

foreseen      of the keys that training runs of the same project had met: those with a lesson in the brief.
              What the run's own script brought out, what it broke itself, and what went well once it had
              changed the project is the task itself and does not count; "foreseen, strict" counts it all
              the same, and "foreseen, all" is of all keys of the run, also those new to the project
remedy        of the cures seen in the test run for foreseen keys: those that a briefed lesson of the key
              names, by package, flag, file or nearly the same command
precision     of the briefed lessons: those whose key the test run meets, or whose remedy it uses: installs
              one of the packages, edits one of the files, or runs the command with the same flags
duplicates    of the stored lessons: those with a near twin in their project (token_set_ratio >= 90)
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rapidfuzz import fuzz

from archivist import Bank
from archivist.capture.formats import read_log
from archivist.errors import ArchivistError
from archivist.reading.calls import ToolCall
from archivist.reading.packages import distribution_name, installs, package_name
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.run import RunReading, read_run
from archivist.reading.shell import parse
from archivist.records import Episode, Event, Lesson, Status

MOST_LESSONS = 10
MOST_TOKENS = 800
TWIN = 90
ALIKE = 80
ROUNDS = 1000
BARS = {"foreseen": 0.95, "remedy": 0.85, "precision": 0.60}


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a brief: the failure it is about, its text, the remedies it names."""

    key: str
    text: str
    remedies: tuple[str, ...] = ()


@dataclass(slots=True)
class Score:
    """Counts of one test run: for each measure, how many of how many."""

    hits: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)

    def count(self, measure: str, *, is_hit: bool) -> None:
        """Count one case."""
        self.of[measure] += 1
        self.hits[measure] += is_hit


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    train = list(_runs(options.train))
    test = list(_runs(options.test))
    with tempfile.TemporaryDirectory() as folder:
        learnt = _learn(Path(folder), options.train)
        ours = _measure(train, test, lambda run: _brief(learnt, run))
        stored = [lesson for lesson in learnt.query_all() if lesson.status.is_live]
        active = sum(lesson.status is Status.ACTIVE for lesson in stored)
        our_texts = [(lesson.repo, f"{lesson.summary} {lesson.rule}") for lesson in stored]
        learnt.bank.close()
    baseline = Baseline(train)
    theirs = _measure(train, test, baseline.brief)
    report = {
        "train_runs": len(train),
        "test_runs": len(test),
        "ours": _summary(ours, our_texts, active, len(train)),
        "baseline": _summary(theirs, baseline.texts(), baseline.repeated(), len(train)),
    }
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0 if all(_of(report, "ours", name)[0] >= bar for name, bar in BARS.items()) else 1


class Learnt:
    """A bank that has reflected on the training runs."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def query_all(self) -> list[Lesson]:
        """Return every stored lesson."""
        with self.bank.reading() as reader:
            return reader.select(Lesson)


def _learn(folder: Path, train: Path) -> Learnt:
    bank = Bank.open(folder / ".archivist" / "memory.db")
    for path in _files(train):
        try:
            bank.runs.capture_file(path)
        except ArchivistError:
            continue
        for _ in bank.reflections.reflect_waiting():
            pass
    return Learnt(bank)


def _brief(learnt: Learnt, run: RunReading) -> list[Told]:
    told = learnt.bank.brief(
        task=run.episode.task,
        repo=run.episode.project,
        max_lessons=MOST_LESSONS,
        budget_tokens=MOST_TOKENS,
    )
    return [
        Told(lesson.signature, lesson.summary, lesson.remedies)
        for lesson in (each.lesson for each in told.chosen)
    ]


class Baseline:
    """The most frequent signatures of each project, with the command that next succeeded."""

    def __init__(self, train: Sequence[RunReading]) -> None:
        self._seen: dict[tuple[str, str], Counter[str]] = {}
        self._text: dict[str, tuple[str, str]] = {}
        for run in train:
            found: dict[str, tuple[str, str]] = {}
            for act in run.acts:
                if act.failure is None or act.failure.is_own_code:
                    continue
                name = act.failure.signature.key
                after = next((each for each in run.acts[act.at + 1 :] if not each.has_failed), None)
                found.setdefault(
                    name, (act.key, f"{act.failure.line} -> {after.event.text if after else ''}")
                )
            project = run.episode.project
            for name, (key, text) in found.items():
                self._seen.setdefault((project, name), Counter())[f"{project}|{key}"] += 1
                self._text[f"{project}|{name}"] = (key, text[:300])

    def brief(self, run: RunReading) -> list[Told]:
        """Return the most frequent signatures of the run's project that fit."""
        project = run.episode.project
        ranked = sorted(
            (
                (counts.total(), name, counts)
                for (repo, name), counts in self._seen.items()
                if repo == project
            ),
            key=lambda item: (-item[0], item[1]),
        )
        told: list[Told] = []
        room = MOST_TOKENS * 4
        for _, name, counts in ranked[:MOST_LESSONS]:
            text = self._text[f"{project}|{name}"][1]
            room -= len(text)
            if room < 0:
                break
            told.append(Told(counts.most_common(1)[0][0], text, (text.split(" -> ", 1)[-1],)))
        return told

    def texts(self) -> list[tuple[str, str]]:
        """Return all that is stored, with its project."""
        return [(name.split("|", 1)[0], text) for name, (_, text) in self._text.items()]

    def repeated(self) -> int:
        """Return how many signatures more than one run met."""
        return sum(counts.total() > 1 for counts in self._seen.values())


def _files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else [folder]
    return [path for path in found if "outcomes" not in path.name]


def _runs(folder: Path) -> Iterator[RunReading]:
    for path in _files(folder):
        episodes: list[Episode] = []
        events: list[Event] = []
        try:
            for item in read_log(path):
                if isinstance(item, Episode):
                    episodes.append(item)
                elif isinstance(item, Event):
                    events.append(item)
        except ArchivistError as error:
            print(f"skipped {path.name}: {error.message}", file=sys.stderr)
            continue
        for episode in episodes:
            yield read_run(episode, [event for event in events if event.run == episode.id])


def _measure(
    train: Sequence[RunReading], test: Sequence[RunReading], brief: Callable[[RunReading], list[Told]]
) -> list[Score]:
    known = {key for run in train for key in _keys(run)}
    scores: list[Score] = []
    for run in test:
        told = brief(run)
        named = {each.key for each in told}
        score = Score()
        lessons = {met.key for met in run.met if not met.is_of_task}
        for key in _keys(run) | {met.key for met in run.met}:
            is_told = key in named
            score.count("foreseen, all", is_hit=is_told)
            if key in known:
                score.count("foreseen, strict", is_hit=is_told)
                if key in lessons:
                    score.count("foreseen", is_hit=is_told)
        for key, remedy, subject in _cures(run):
            if key in named:
                is_named = any(_names(each, remedy, subject) for each in told if each.key == key)
                score.count("remedy", is_hit=is_named)
        for each in told:
            score.count("precision", is_hit=each.key in _keys(run) | lessons or _is_used(each, run))
        score.of["briefs"] = 1
        score.hits["tokens"] = sum(len(each.text) for each in told) // 4
        score.hits["lessons"] = len(told)
        scores.append(score)
    return scores


def _keys(run: RunReading) -> set[str]:
    """Return the failures that a call by itself does not show to be of the code being written."""
    return {
        f"{run.episode.project}|{act.key}"
        for act in run.acts
        if act.failure is not None and not act.failure.is_own_code
    }


def _cures(run: RunReading) -> set[tuple[str, Remedy, str]]:
    return {(met.key, met.cure.remedy, met.failure.subject) for met in run.met if met.cure}


def _names(told: Told, remedy: Remedy, subject: str) -> bool:
    """Say whether a lesson names what then worked; of an install, what was missing, not what came along."""
    if remedy.way is RemedyKind.INSTALL:
        installed = _packages((remedy.text,))
        needed = installed & {distribution_name(subject)} or installed
        return needed <= _packages(_commands(told))
    if remedy.way is RemedyKind.EDIT:
        changed = remedy.text.split("`")[1::2]
        return any(file in told.text for file in remedy.files) or (
            bool(changed) and all(each in told.text for each in changed)
        )
    text = remedy.text.replace("`", "")
    gained = [word for word in text.split() if word not in remedy.instead.split()]
    if remedy.instead and gained and all(word.startswith("-") for word in gained):
        return any(all(word in named for word in gained) for named in told.remedies)
    return any(fuzz.token_set_ratio(text, named.replace("`", "")) >= ALIKE for named in told.remedies)


def _is_used(told: Told, run: RunReading) -> bool:
    """Say whether the run does what the lesson says, without having failed first."""
    commands = _commands(told)
    packages = _packages(commands)
    files = {word for text in told.remedies for word in re.findall(r"[\w-]+(?:/[\w.-]+)+\.\w+", text)}
    for act in run.acts:
        if packages and packages & _packages_of(act):
            return True
        if any(change.file.removeprefix("./").endswith(file) for change in act.changes for file in files):
            return True
        if not act.is_look and act.steps and any(_is_in(command, act) for command in commands):
            return True
    return False


def _is_in(command: str, act: ToolCall) -> bool:
    marks = [word for word in command.split() if word.startswith("-") and len(word) > 1]
    steps = parse(command)
    return (
        bool(marks)
        and bool(steps)
        and steps[-1].name == (act.main.name if act.main else "")
        and all(mark in act.event.text.split() for mark in marks)
    )


def _commands(told: Told) -> list[str]:
    coded = [part for text in told.remedies for part in text.split("`")[1::2]]
    return [*coded, *(text for text in told.remedies if "`" not in text)]


def _packages(commands: Sequence[str]) -> set[str]:
    return {
        package_name(package)
        for command in commands
        for install in installs(parse(command))
        for package in install.packages or (".",)
    }


def _packages_of(act: ToolCall) -> set[str]:
    return {package_name(package) for install in act.installs for package in install.packages or (".",)}


def _summary(scores: list[Score], texts: list[tuple[str, str]], active: int, runs: int) -> dict[str, object]:
    found: dict[str, object] = {
        name: _interval(scores, name)
        for name in ("foreseen", "foreseen, strict", "foreseen, all", "remedy", "precision")
    }
    briefs = max(1, len(scores))
    found["duplicates"] = _duplicates(texts)
    found["stored lessons"] = len(texts)
    found["active per 100 runs"] = round(100 * active / max(1, runs), 1)
    found["tokens per brief"] = round(sum(score.hits["tokens"] for score in scores) / briefs, 1)
    found["lessons per brief"] = round(sum(score.hits["lessons"] for score in scores) / briefs, 1)
    return found


def _interval(scores: list[Score], name: str) -> list[float]:
    """Return the share, its 95 % interval over runs, and how many cases it is the share of."""
    rng = random.Random(7)
    drawn = sorted(
        _share([scores[rng.randrange(len(scores))] for _ in scores], name)
        for _ in range(ROUNDS if scores else 0)
    )
    low, high = (drawn[int(0.025 * ROUNDS)], drawn[int(0.975 * ROUNDS)]) if drawn else (0.0, 0.0)
    cases = sum(score.of[name] for score in scores)
    return [round(_share(scores, name), 3), round(low, 3), round(high, 3), cases]


def _share(scores: Sequence[Score], name: str) -> float:
    of = sum(score.of[name] for score in scores)
    return sum(score.hits[name] for score in scores) / of if of else 0.0


def _duplicates(texts: list[tuple[str, str]]) -> float:
    twins: set[int] = set()
    for one, (repo, text) in enumerate(texts):
        for other in range(one + 1, len(texts)):
            if texts[other][0] == repo and fuzz.token_set_ratio(text, texts[other][1]) >= TWIN:
                twins |= {one, other}
    return round(len(twins) / len(texts), 3) if texts else 0.0


def _of(report: dict[str, object], side: str, name: str) -> list[float]:
    part = report[side]
    value = part[name] if isinstance(part, dict) else [0.0]
    return value if isinstance(value, list) else [float(value)]


def _print(report: dict[str, object]) -> None:
    print(f"learnt on {report['train_runs']} runs, tested on {report['test_runs']}")
    print(f"{'measure':<22}{'ours':>30}{'baseline':>30}{'bar':>8}")
    ours = report["ours"]
    for name in ours if isinstance(ours, dict) else ():
        cells = [_cell(_of(report, side, name)) for side in ("ours", "baseline")]
        bar = f"{BARS[name]:.2f}" if name in BARS else ""
        print(f"{name:<22}{cells[0]:>30}{cells[1]:>30}{bar:>8}")


def _cell(value: list[float]) -> str:
    if len(value) == 1:
        return f"{value[0]:g}"
    share, low, high, cases = value
    return f"{share:.3f} [{low:.2f}, {high:.2f}] of {cases:.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
