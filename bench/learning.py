"""Measure what is learnt: replay projects' sessions in their order in time, brief each, see what it meets.

    python -m bench.learning [--data FOLDER] [--sets NAME,…] [--jobs N] [--json] [--show PROJECT]
    python -m bench.learning --train FOLDER --test FOLDER

Each session is briefed with what came before, as the hook at its start does ("ours"), and once more with its
task known ("task"). Beside them two plain lists of 10 kinds of failures in 800 tokens, each with the command
that next succeeded: the kinds that most sessions met, and those met last. What "the same failure" is comes
from bench/failure_kinds.py, not from the product. Target sessions are all after the first fifth of a project;
of a pair (train → test), each test run, briefed with the training runs alone.

foreseen       of the kinds met that the project had met before: those that a line is about
foreseen, all  of all kinds met
remedy         of the foreseen kinds that the session cures: those whose line names what then worked
precision      of the lines about failures: those whose kind is met, or whose remedy is used at once
asked          things that the user asks for again, a brief
works          of the lines that only name a command: those whose command is run with success
stale          of the lines about failures: those of which no kind was met in the last 10 sessions
recurring      of the kinds in the last 40 % of sessions: those that were met before
cases          kinds met in target sessions that the project had met before

The rules may be tuned on the sets of the column "read"; nobody looks at a line of those in "unread".
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.learning_sessions import BriefLine, KindHistory, Memory, Session, read_sessions

FIRST_TARGET = 0.2
LATE = 0.6
ROUNDS = 1000
MAX_LINES = 6.0
# Below this share of recurring kinds, more than one line a brief is noise.
FEW_RECUR = 0.1
SIDES = ("ours", "task", "frequent", "recent")
PLAIN = ("frequent", "recent")
MEASURES = ("foreseen", "foreseen, all", "remedy", "precision", "works", "stale")
# How the line begins that says what the user asks for again, each thing with its runs.
_ASKED = "The user often asks"
DATA_VARIABLE = "ARCHIVIST_BENCH_DATA"


@dataclass(frozen=True, slots=True)
class DataSet:
    """The sessions of a project, or of a pair: those to learn from, and those to test."""

    name: str
    column: str
    folder: str = ""
    test: str = ""


_PAIR = "mini-swe-agent/deepseek_chat_dev"
SETS = (
    DataSet("mise", "read"),
    DataSet("context-evaluator", "read"),
    DataSet("session-bridge", "read"),
    DataSet("claude-code", "read"),
    DataSet("mini-swe-agent", "read", _PAIR, f"{_PAIR}_rerun"),
    DataSet("agentv", "unread"),
    DataSet("gatomia-vscode", "unread"),
    DataSet("cc-backend", "unread"),
    DataSet("cyspbot", "unread"),
)


@dataclass(slots=True)
class Score:
    """Counts of one target session: for each measure, how many of how many."""

    hits: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)

    def count(self, measure: str, *, is_hit: bool) -> None:
        """Count one case."""
        self.of[measure] += 1
        self.hits[measure] += is_hit


@dataclass(slots=True)
class SetResult:
    """What was measured on one set: the scores of its target sessions by side."""

    name: str
    column: str
    sessions: int = 0
    unread: int = 0
    late: int = 0
    late_known: int = 0
    learn_s: float = 0.0
    brief_s: float = 0.0
    scores: dict[str, list[Score]] = field(default_factory=lambda: {side: [] for side in SIDES})
    shown: list[str] = field(default_factory=list)

    @property
    def recurring(self) -> float:
        """Return the share of late kinds that were met before."""
        return self.late_known / self.late if self.late else 0.0

    def share(self, side: str, measure: str) -> float | None:
        """Return a share over the target sessions; None without a case."""
        return _share(self.scores[side], measure)


def main() -> int:
    """Print the tables; exit 1 when a bar of the unread column is missed."""
    options = _parse_options()
    if options.train:
        sets = [(DataSet("train → test", "read", str(options.train), str(options.test)), Path())]
    else:
        data = options.data or os.environ.get(DATA_VARIABLE, "")
        if not data:
            print(f"no data: name its folder with --data or {DATA_VARIABLE}", file=sys.stderr)
            return 2
        names = options.sets.split(",") if options.sets else [options.show] if options.show else []
        chosen = [each for each in SETS if not names or each.name in names]
        if missing := set(names) - {each.name for each in chosen}:
            print(f"no set {', '.join(sorted(missing))}", file=sys.stderr)
            return 2
        sets = [(each, Path(data) / "runs") for each in chosen]
    columns = {each.name: each.column for each, _ in sets}
    if columns.get(options.show) == "unread" and not options.unread:
        print(f"{options.show} is to stay unread; --unread shows it all the same", file=sys.stderr)
        return 2
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(measure_set, each, runs, is_shown=each.name == options.show) for each, runs in sets
        ]
        results = [task.result() for task in tasks]
    if options.json:
        print(
            json.dumps(
                {"sets": [_figures(result) for result in results], "columns": _columns(results)}, indent=2
            )
        )
    elif options.show:
        print("\n".join(line for result in results for line in result.shown))
    else:
        _print(results)
    return 0 if all(is_met for _, is_met in _bars(results)) else 1


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", default="", metavar="PROJECT")
    parser.add_argument("--unread", action="store_true")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    options = parser.parse_args()
    if (options.train is None) != (options.test is None):
        parser.error("--train and --test go together")
    return options


def measure_set(data_set: DataSet, runs: Path, *, is_shown: bool = False) -> SetResult:
    """Replay the sessions of a set in a bank of its own, and score its target sessions."""
    result = SetResult(data_set.name, data_set.column)
    sessions, result.unread = read_sessions(runs / (data_set.folder or data_set.name))
    tests: list[Session] = []
    if data_set.test:
        tests, unread = read_sessions(runs / data_set.test)
        result.unread += unread
    result.sessions = len(sessions) + len(tests)
    histories: defaultdict[str, KindHistory] = defaultdict(KindHistory)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARCHIVIST_HOME"] = str(Path(folder) / "home")
        memory = Memory(Path(folder) / data_set.name, is_of_one_project=not tests)
        for number, session in enumerate((*sessions, *tests)):
            is_test = number >= len(sessions)
            history = histories[session.run.project if tests else ""]
            known = set(session.kinds) & set(history.lines)
            if is_test or (not tests and number >= LATE * len(sessions)):
                result.late += len(session.kinds)
                result.late_known += len(known)
            start, about_task = memory.brief(session)
            if is_test or (not tests and number >= FIRST_TARGET * len(sessions)):
                briefs = dict(
                    zip(SIDES, (start, about_task, history.frequent(), history.latest()), strict=True)
                )
                for side, lines in briefs.items():
                    result.scores[side].append(score_session(session, lines, history))
                if is_shown:
                    result.shown += _show_session(session, start, history)
            if not is_test:
                memory.learn(session)
                history.add(session)
        result.learn_s = memory.learn_s / max(1, len(sessions))
        result.brief_s = memory.brief_s / max(1, result.sessions)
        memory.bank.close()
    return result


def score_session(session: Session, lines: Sequence[BriefLine], history: KindHistory) -> Score:
    """Compare the lines of a brief with what the session met and did."""
    score = Score()
    named = {kind for line in lines for kind in line.kinds}
    for kind in session.kinds:
        score.count("foreseen, all", is_hit=kind in named)
        if kind in history.lines:
            score.count("foreseen", is_hit=kind in named)
            cure = session.cures.get(kind)
            if kind in named and cure:
                score.count("remedy", is_hit=any(line.names(cure) for line in lines if kind in line.kinds))
    lately = set().union(*history.recent)
    for line in lines:
        is_used = any(session.runs(command) for command in line.commands)
        if line.kinds:
            score.count("precision", is_hit=is_used or not line.kinds.isdisjoint(session.kinds))
            score.count("stale", is_hit=line.kinds.isdisjoint(lately))
        elif line.commands:
            score.count("works", is_hit=is_used)
    score.of["briefs"] = 1
    score.hits["lines"] = len(lines)
    score.hits["other lines"] = sum(not line.kinds and not line.commands for line in lines)
    score.hits["asked"] = sum(line.text.count("“") for line in lines if line.text.startswith(_ASKED))
    score.hits["tokens"] = sum(len(line.text) for line in lines) // 4
    if not session.kinds:
        score.of["quiet briefs"] = 1
        score.hits["quiet lines"] = len(lines)
    return score


def _show_session(session: Session, lines: Sequence[BriefLine], history: KindHistory) -> list[str]:
    shown = [f"== {session.path.name}"]
    for line in lines:
        is_met = not line.kinds.isdisjoint(session.kinds)
        is_used = any(session.runs(command) for command in line.commands)
        mark = "met" if is_met else "used" if is_used else "-" if line.kinds else "no kind"
        shown.append(f"  told [{mark}] {line.text}")
    named = {kind for line in lines for kind in line.kinds}
    for kind, failure in session.kinds.items():
        mark = "new" if kind not in history.lines else "foreseen" if kind in named else "missed"
        cure = session.cures.get(kind)
        shown.append(f"  met [{mark}] {' | '.join(kind)}: {failure.line[:120]}")
        if cure:
            is_named = any(line.names(cure) for line in lines if kind in line.kinds)
            shown.append(f"    cured{' as told' if is_named else ''}: {cure.command[:120]}")
    return shown


def _share(scores: Iterable[Score], measure: str) -> float | None:
    hits = of = 0
    for score in scores:
        hits += score.hits[measure]
        of += score.of[measure]
    return hits / of if of else None


def _mean_lines(scores: Sequence[Score], name: str = "lines", of: str = "briefs") -> float:
    return sum(score.hits[name] for score in scores) / max(1, sum(score.of[of] for score in scores))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _interval(
    results: Sequence[SetResult], side: str, figure: Callable[[list[Score]], float | None]
) -> list[float | None]:
    """Return the mean of the sets, and its 95 % interval when their sessions are drawn again."""
    rng = random.Random(7)
    drawn: list[float] = []
    for _ in range(ROUNDS):
        again = [
            rng.choices(result.scores[side], k=len(result.scores[side]))
            for result in results
            if result.scores[side]
        ]
        value = _mean(figure(scores) for scores in again)
        if value is not None:
            drawn.append(value)
    drawn.sort()
    low, high = (drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))]) if drawn else (None, None)
    return [_mean(figure(result.scores[side]) for result in results), low, high]


def _columns(results: Sequence[SetResult]) -> dict[str, dict[str, dict[str, list[float | None]]]]:
    """Return the means of each column's sets by side and measure, with their intervals."""
    columns: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    for column in ("read", "unread"):
        of = [result for result in results if result.column == column and result.scores["ours"]]
        if of:
            columns[column] = {
                side: {
                    **{name: _interval(of, side, partial(_share, measure=name)) for name in MEASURES},
                    "lines": _interval(of, side, _mean_lines),
                }
                for side in SIDES
            }
    return columns


def _bars(results: Sequence[SetResult]) -> list[tuple[str, bool]]:
    """Return each bar of the unread column in words, and whether it is met."""
    of = [result for result in results if result.column == "unread" and result.scores["ours"]]
    if not of:
        return []

    def mean(side: str, measure: str) -> float:
        return _mean(result.share(side, measure) for result in of) or 0.0

    foreseen, precision = mean("ours", "foreseen"), mean("ours", "precision")
    best_foreseen, best_precision = (
        max(mean(side, name) for side in PLAIN) for name in ("foreseen", "precision")
    )
    lines = _mean([_mean_lines(result.scores["ours"]) for result in of]) or 0.0
    bars = [
        (f"foreseen {foreseen:.3f} >= {best_foreseen:.3f}, the better plain list", foreseen >= best_foreseen),
        (
            f"precision {precision:.3f} >= {2 * best_precision:.3f}, twice the better plain list",
            precision >= 2 * best_precision,
        ),
        (f"lines a brief {lines:.1f} <= {MAX_LINES:g}", lines <= MAX_LINES),
    ]
    for result in of:
        if result.late and result.recurring < FEW_RECUR:
            lines = _mean_lines(result.scores["ours"])
            bars.append(
                (
                    f"lines a brief in {result.name}, where hardly anything recurs: {lines:.1f} <= 1",
                    lines <= 1,
                )
            )
    return bars


def _figures(result: SetResult) -> dict[str, object]:
    figures: dict[str, object] = {
        "name": result.name,
        "column": result.column,
        "sessions": result.sessions,
        "not read": result.unread,
        "targets": len(result.scores["ours"]),
        "late kinds": result.late,
        "late kinds met before": result.late_known,
        "learn CPU s": round(result.learn_s, 3),
        "brief CPU s": round(result.brief_s, 4),
    }
    for side, scores in result.scores.items():
        figures[side] = {
            **{
                name: {"share": _share(scores, name), "of": sum(each.of[name] for each in scores)}
                for name in MEASURES
            },
            "lines": _mean_lines(scores),
            "quiet lines": _mean_lines(scores, "quiet lines", "quiet briefs"),
            "other lines": _mean_lines(scores, "other lines"),
            "tokens": _mean_lines(scores, "tokens"),
        }
    return figures


def _print(results: Sequence[SetResult]) -> None:
    measures = ("foreseen", "remedy", "precision", "lines")
    print(
        f"{'':18}{'sessions':>9}{'not read':>9}{'recurring':>10}{'cases':>6}"
        + "".join(f"{name:>26}" for name in measures)
    )
    print(f"{'':52}" + "".join(f"{'ours task freq. recent':>26}" for _ in measures))
    for result in results:
        cells = [[_cell(result.share(side, name)) for side in SIDES] for name in measures[:3]]
        cells.append([f"{_mean_lines(result.scores[side]):.1f}" for side in SIDES])
        recurring = f"{result.late_known}/{result.late}"
        cases = sum(score.of["foreseen"] for score in result.scores["ours"])
        print(
            f"{result.name:18}{result.sessions:>9}{result.unread:>9}{recurring:>10}{cases:>6}"
            + "".join(f"  {''.join(f'{cell:>6}' for cell in group)}" for group in cells)
        )
    for column, sides in _columns(results).items():
        print(f"\nmean of the {column} sets [95 % interval over sessions]")
        for side, figures in sides.items():
            print(f"  {side:10}" + "  ".join(f"{name} {_bracket(figures[name])}" for name in measures))
    print(
        f"\n{'ours':18}{'all':>8}{'works':>8}{'other':>8}{'asked':>8}{'quiet':>8}{'stale':>8}"
        f"{'learn s':>9}{'brief ms':>9}"
    )
    for result in results:
        ours = result.scores["ours"]
        shares = [_cell(_share(ours, name)) for name in ("foreseen, all", "works")]
        means = [
            f"{_mean_lines(ours, 'other lines'):.1f}",
            f"{_mean_lines(ours, 'asked'):.1f}",
            f"{_mean_lines(ours, 'quiet lines', 'quiet briefs'):.1f}",
        ]
        cells_ours = [*shares, *means, _cell(_share(ours, "stale"))]
        print(
            f"{result.name:18}"
            + "".join(f"{cell:>8}" for cell in cells_ours)
            + f"{result.learn_s:>9.2f}{1000 * result.brief_s:>9.1f}"
        )
    for words, is_met in _bars(results):
        print(f"{'met   ' if is_met else 'MISSED'} {words}")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _bracket(values: Sequence[float | None]) -> str:
    mean, low, high = values
    return f"{_cell(mean)} [{_cell(low)}, {_cell(high)}]"


if __name__ == "__main__":
    raise SystemExit(main())
