"""Simulate an agent whose failures are known, and see whether the loop finds out which lessons help.

The agent works on one project and meets eight failures, each with its own chance. By itself it learns
nothing; what it is told lowers the chance of a failure, or does not, or raises it. Archivist captures every
run, reflects, briefs the next one with a hold-out, and judges. Nothing tells it the truth, which stands
beside what it reports. The same agent without a memory, with the same luck, is the alternative.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archivist import Bank
from archivist.audit.report import ReportRow
from archivist.config import BriefRules, Config, RecallRules
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Lesson, Status
from archivist.reflect.trigger import ReflectionTrigger

PROJECT = "cartwheel"
START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = 100


@dataclass(frozen=True)
class Trouble:
    """A failure: the program that fails, what it says, what makes it work, and its chance untold and told."""

    program: str
    complaint: str
    flag: str
    untold: float
    told: float

    @property
    def prevented(self) -> float:
        """Return by how much being told truly lowers the failure rate."""
        return self.untold - self.told

    def events(self, run: str, seq: int, *, fails: bool) -> Iterator[Event]:
        """Yield the calls of one run: a failure and what then worked, or the working call at once."""
        command = f"{self.program} build"
        if fails:
            output = f"{self.program}: error: {self.complaint}"
            yield _call(run, seq, command, output, 2)
            seq += 1
        yield _call(run, seq, f"{command} {self.flag}", "done", 0)


TROUBLES = (
    Trouble("waxwing", "the following arguments are required: --lock", "--lock ci", 0.6, 0.06),
    Trouble("dunlin", "the following arguments are required: --region", "--region eu", 0.5, 0.1),
    Trouble("turnstone", "the following arguments are required: --yes", "--yes", 0.4, 0.05),
    Trouble("godwit", "the following arguments are required: --profile", "--profile dev", 0.5, 0.3),
    Trouble("curlew", "the following arguments are required: --cache", "--cache off", 0.4, 0.4),
    Trouble("plover", "the following arguments are required: --jobs", "--jobs 1", 0.3, 0.3),
    Trouble("avocet", "the following arguments are required: --token", "--token env", 0.35, 0.35),
    Trouble("whimbrel", "the following arguments are required: --fast", "--fast no", 0.2, 0.45),
)


def main() -> int:
    """Print what was found beside what is true; exit 1 when the loop missed the point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--holdout", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = list(_told(Path(folder), options.runs, options.holdout, options.seed))
    print("\n".join(lines))
    if options.write:
        options.write.write_text("\n".join([f"$ python {' '.join(sys.argv)}", *lines, ""]), encoding="utf-8")
    return 0 if lines[-1].startswith("ok") else 1


def _told(folder: Path, runs: int, holdout: float, seed: int) -> Iterator[str]:
    rules = BriefRules(max_task_lessons=len(TROUBLES), budget_tokens=2000, holdout=holdout)
    config = Config(brief=rules, recall=RecallRules(embedder="none"))
    hours = iter(range(10**9))
    bank = Bank.open(
        folder, create=True, config=config, clock=lambda: START + timedelta(seconds=30 * next(hours))
    )
    failures: list[int] = []
    alone: list[int] = []
    retired: dict[str, int] = {}
    for number in range(runs):
        luck = [random.Random(f"{seed}-{number}-{each.program}").random() for each in TROUBLES]
        alone.append(sum(chance < each.untold for chance, each in zip(luck, TROUBLES, strict=True)))
        failures.append(_run(bank, f"run-{number:04d}", luck))
        for lesson in _lessons(bank, Status.ARCHIVED):
            retired.setdefault(_about(lesson), number)
    yield from _table(bank, retired, runs, holdout)
    first, last = failures[:WINDOW], failures[-WINDOW:]
    yield ""
    yield f"failures a run, first {WINDOW} runs {_mean(first):.2f}, last {WINDOW} {_mean(last):.2f}"
    begun, ended = _mean(alone[:WINDOW]), _mean(alone[-WINDOW:])
    yield f"the same agent without a memory {begun:.2f}, last {WINDOW} {ended:.2f}"
    helpers = {each.program for each in TROUBLES if each.prevented > 0}
    useless = {each.program for each in TROUBLES if each.prevented <= 0}
    kept = sorted(helpers - set(retired))
    yield f"retired: {', '.join(f'{name} after {at} runs' for name, at in sorted(retired.items())) or 'none'}"
    is_better = _mean(last) < 0.75 * ended
    # One of the eight may be misjudged: the intervals are 95 % ones, and are looked at after every run.
    is_found = len(set(retired) & useless) >= len(useless) - 1 and len(kept) >= len(helpers) - 1
    yield (
        "ok"
        if is_better and is_found
        else "MISSED: useless lessons stayed, helpful ones went, or failures did not fall"
    )
    bank.close()


def _run(bank: Bank, run: str, luck: Sequence[float]) -> int:
    """Let the agent do one run, told or not, and close it; return how many failures it met."""
    told = {_about(each.lesson) for each in bank.runs.start_run(run, task="Build it", repo=PROJECT).chosen}
    events: list[Event] = []
    met = 0
    for chance, trouble in zip(luck, TROUBLES, strict=True):
        fails = chance < (trouble.told if trouble.program in told else trouble.untold)
        met += fails
        events += trouble.events(run, len(events) + 1, fails=fails)
    now = bank.now()
    bank.capture(
        Episode(id=run, project=PROJECT, task="Build it", finished=now, status=EpisodeStatus.SUCCESS), events
    )
    bank.reflections.maybe_reflect(ReflectionTrigger(run))
    bank.lessons.decay(run)
    bank.audit(run)
    return met


def _table(bank: Bank, retired: dict[str, int], runs: int, holdout: float) -> Iterator[str]:
    by_id = {lesson.short_id: lesson for lesson in _lessons(bank, *Status)}
    lines: dict[str, ReportRow] = {
        _about(by_id[line.lesson]): line for line in bank.audits.audit_report().lessons
    }
    yield f"{runs} runs, a hold-out of {holdout:g}, lessons learnt from the runs themselves"
    head = f"{'failure of':<12}{'truth':>8}{'found':>8}   {'95 % interval':<18}"
    yield f"{head}{'told':>6}{'without':>9}  says"
    inside = compared = 0
    for trouble in TROUBLES:
        line = lines.get(trouble.program)
        if line is None or line.lift.interval is None or line.lift.difference is None:
            yield f"{trouble.program:<12}{trouble.prevented:>8.2f}{'never compared':>17}"
            continue
        low, high = line.lift.interval
        arms = line.lift.arms
        compared += 1
        inside += low <= trouble.prevented <= high
        gone = " (retired)" if trouble.program in retired else ""
        yield (
            f"{trouble.program:<12}{trouble.prevented:>8.2f}{line.lift.difference:>8.2f}"
            f"   {f'{low:.2f} to {high:.2f}':<18}{arms.told:>6g}{arms.withheld:>9g}"
            f"  {line.lift.conclusion}{gone}"
        )
    total = bank.audits.audit_report().total.lift
    if total.interval and total.difference is not None:
        low, high = total.interval
        yield f"{'all':<12}{'':>8}{total.difference:>8.2f}   {low:.2f} to {high:.2f}"
    yield f"the truth lies within {inside} of {compared} intervals"


def _lessons(bank: Bank, *statuses: Status) -> list[Lesson]:
    from archivist.recall.query import Query

    return bank.lessons.query(Query(statuses=statuses))


def _about(lesson: Lesson) -> str:
    return next((each.program for each in TROUBLES if each.program in lesson.summary), lesson.summary)


def _call(run: str, seq: int, command: str, output: str, code: int) -> Event:
    return Event(
        run=run,
        seq=seq,
        kind=EventKind.TOOL_CALL,
        tool="bash",
        text=command,
        target=command,
        output=output,
        exit_code=code,
        is_error=bool(code),
        time=START,
    )


def _mean(values: Sequence[int]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    sys.exit(main())
