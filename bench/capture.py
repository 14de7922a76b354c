"""Time capture and reflection on a folder of real logs, in megabytes of transcript a second of CPU.

    python bench/capture.py DIR [--rounds N] [--json]        (or ARCHIVIST_BENCH_DATA=DIR)

Every round is a fresh process with a fresh bank. Beside it stands the least that any reader must do: unpack
every file and decode its JSON, nothing else. Megabytes are 10⁶ bytes as unpacked, of the files that capture
takes; CPU time is user and system. Exit 1 when capture and reflection together are below the bar, or the peak
of memory is above it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archivist import Bank
from archivist.errors import InputError
from archivist.files.packed import open_file

BAR_MB_PER_S = 5.0
BAR_PEAK_MB = 300.0
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took: CPU seconds a part, and the peak of memory."""

    capture_s: float
    reflect_s: float
    peak_mb: float
    runs: int
    events: int
    lessons: int

    @property
    def both_s(self) -> float:
        """Return the time of the whole way from log to lessons."""
        return self.capture_s + self.reflect_s


@dataclass(frozen=True, slots=True)
class Decoded:
    """What only decoding the same files took."""

    decode_s: float
    peak_mb: float


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    options = _options()
    if options.part:
        return _part(options.part, options.folder)
    files = [path for path in _files(options.folder) if _is_log(path)]
    if not files:
        print(f"no logs in {str(options.folder)!r}", file=sys.stderr)
        return 2
    megabytes = sum(map(_size, files)) / 1e6
    rounds = [Round(**_process("ours", options.folder)) for _ in range(options.rounds)]
    decoded = [Decoded(**_process("decode", options.folder)) for _ in range(options.rounds)]
    both = [megabytes / each.both_s for each in rounds]
    peak = max(each.peak_mb for each in rounds)
    is_good = max(both) >= BAR_MB_PER_S and peak <= BAR_PEAK_MB
    if options.json:
        _print_json(megabytes, len(files), rounds, decoded, is_good=is_good)
    else:
        _print_table(megabytes, len(files), rounds, decoded)
    return 0 if is_good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("ARCHIVIST_BENCH_DATA")
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?" if data else None, default=data)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=["ours", "decode"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = Path(options.folder)
    return options


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _is_log(path: Path) -> bool:
    from archivist.capture.formats import read_log

    try:
        next(iter(read_log(path)), None)
    except InputError:
        return False
    return True


def _size(path: Path) -> int:
    with open_file(path) as log:
        return sum(map(len, _pieces(log.read)))


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(1 << 20):
        yield piece


def _process(part: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, str(folder), "--part", part]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _part(part: str, folder: Path) -> int:
    files = [path for path in _files(folder) if _is_log(path)]
    print(json.dumps(asdict(_ours(files) if part == "ours" else _decode(files))))
    return 0


def _ours(files: list[Path]) -> Round:
    with tempfile.TemporaryDirectory() as folder, Bank.open(folder, create=True) as bank:
        start = time.process_time()
        events = sum(bank.runs.capture_file(path).events for path in files)
        captured = time.process_time()
        for _ in bank.reflections.reflect_waiting():
            pass
        end = time.process_time()
        held = bank.doctor.status()
    lessons = held["active_lessons"] + held["candidate_lessons"]
    return Round(captured - start, end - captured, _peak_mb(), held["runs"], events, lessons)


def _decode(files: list[Path]) -> Decoded:
    start = time.process_time()
    for path in files:
        with open_file(path) as log:
            whole = log.read()
        try:
            json.loads(whole)
        except ValueError:
            for line in whole.splitlines():
                _decode_line(line)
    return Decoded(time.process_time() - start, _peak_mb())


def _decode_line(line: bytes) -> None:
    try:
        json.loads(line)
    except ValueError:
        return


def _peak_mb() -> float:
    """Return the peak of this very process; what getrusage tells counts in the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text("utf-8").splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _speeds(megabytes: float, rounds: list[Round], decoded: list[Decoded]) -> dict[str, list[float]]:
    return {
        "capture": [megabytes / each.capture_s for each in rounds],
        "reflect": [megabytes / each.reflect_s for each in rounds],
        "both": [megabytes / each.both_s for each in rounds],
        "json.loads only": [megabytes / each.decode_s for each in decoded],
    }


def _print_table(megabytes: float, files: int, rounds: list[Round], decoded: list[Decoded]) -> None:
    last = rounds[-1]
    print(
        f"{files} logs, {megabytes:.1f} MB unpacked, {last.runs} runs, {last.events} events,"
        f" {last.lessons} lessons; {len(rounds)} rounds"
    )
    print(f"{'MB a second of CPU':<28}{'best':>10}{'worst':>10}{'bar':>10}")
    for name, speeds in _speeds(megabytes, rounds, decoded).items():
        bar = f"{BAR_MB_PER_S:>10.1f}" if name == "both" else ""
        print(f"{name:<28}{max(speeds):>10.1f}{min(speeds):>10.1f}{bar}")
    print(f"{'peak memory in MB':<28}{'least':>10}{'most':>10}{'bar':>10}")
    for name, peaks in (
        ("capture and reflect", [each.peak_mb for each in rounds]),
        ("json.loads only", [each.peak_mb for each in decoded]),
    ):
        bar = f"{BAR_PEAK_MB:>10.0f}" if name != "json.loads only" else ""
        print(f"{name:<28}{min(peaks):>10.0f}{max(peaks):>10.0f}{bar}")


def _print_json(
    megabytes: float, files: int, rounds: list[Round], decoded: list[Decoded], *, is_good: bool
) -> None:
    speeds = {
        name: {"best": round(max(values), 2), "worst": round(min(values), 2)}
        for name, values in _speeds(megabytes, rounds, decoded).items()
    }
    print(
        json.dumps(
            {
                "logs": files,
                "megabytes": round(megabytes, 2),
                "mb_per_cpu_second": speeds,
                "peak_mb": round(max(each.peak_mb for each in rounds), 1),
                "bars": {"mb_per_cpu_second": BAR_MB_PER_S, "peak_mb": BAR_PEAK_MB},
                "is_good": is_good,
                "rounds": [asdict(each) for each in rounds],
                "decode_rounds": [asdict(each) for each in decoded],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
