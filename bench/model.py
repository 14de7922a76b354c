"""Reflect on captured runs with a real model, through the path of a user's endpoint; say what the gate kept.

The runs are the logs that are named, or those of ARCHIVIST_BENCH_DATA (or ../shared/data), or else the
earlier runs of bench/agent.py. Two banks take them, one without a model. The model then reads the runs that
left a mined lesson, the shortest first, `--runs` of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.agent import Project
from bench.agent_models import Endpoint
from bench.agent_tasks import make_tasks
from bench.learning import DATA_VARIABLE
from bench.local_model import serve_gguf

_MODEL_ORIGIN = "model"
_DATA = Path("../shared/data")
_SETS = ("claude-code", "context-evaluator", "mini-swe-agent/deepseek_chat_dev")
_LOGS_OF_SET = 20
# What a small model on a processor can read and write in a minute.
_SMALL = {"OUTPUT": "schema", "CONTEXT_TOKENS": "1500", "ANSWER_TOKENS": "500", "ATTEMPTS": "1"}


class LearningBank:
    """A bank of its own, with a home of its own, used by the command line."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **settings, "ARCHIVIST_HOME": str(folder / "home")}
        folder.mkdir()
        self.archivist("init")

    def archivist(self, *words: str) -> Any:
        """Call a command; return its JSON, or its text where it prints none."""
        done = subprocess.run(
            [sys.executable, "-m", "archivist", *words],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"archivist {' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def learn(self, logs: Sequence[Path]) -> None:
        """Capture logs and mine them."""
        self.archivist("capture", *map(str, logs))
        self.archivist("reflect", "--no-llm")

    def lessons(self) -> list[dict[str, Any]]:
        """Return all lessons, superseded ones too."""
        found: list[dict[str, Any]] = self.archivist("lessons", "list", "--all", "--repo", "*", "--json")[
            "lessons"
        ]
        return found

    def teaching_runs(self, most: int) -> list[str]:
        """Return runs that left a mined lesson, those that cost the model least first."""
        left = {lesson["origin_run"] for lesson in self.lessons()}
        cost = {run: self._estimated_tokens(run) for run in left if run}
        return sorted(cost, key=lambda run: (cost[run], run))[:most]

    def _estimated_tokens(self, run: str) -> int:
        found = self.archivist("reflect", "--run", run, "--estimate", "--json")["total"]
        return int(found["input_tokens"])


def main() -> int:
    """Print what both banks learnt; exit 1 when the model cost a lesson or had one without evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*", type=Path, help="logs of agents, or folders of them")
    parser.add_argument("--gguf", type=Path, help="serve this GGUF file on loopback, with one thread")
    parser.add_argument("--url", help="base URL of an OpenAI-compatible endpoint")
    parser.add_argument("--model", default="", help="the model's name at that endpoint")
    parser.add_argument(
        "--key-variable", default="", help="environment variable that holds the endpoint's key"
    )
    parser.add_argument("--runs", type=int, default=8, help="how many runs the model reads")
    parser.add_argument("--timeout", type=int, default=900, help="seconds one request may take")
    parser.add_argument("--write", type=Path, help="write what is printed to this file too")
    options = parser.parse_args()
    if not (options.gguf or options.url):
        parser.error("name a model: --gguf FILE or --url URL --model NAME")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archivist-model-")))
        endpoint = (
            Endpoint(options.url, options.model)
            if options.url
            else stack.enter_context(serve_gguf(options.gguf))
        )
        logs = options.logs or _data_logs() or list(_generated_logs(folder / "runs"))
        settings = {
            "ARCHIVIST_MODEL__NAME": f"openai:{endpoint.model}",
            "ARCHIVIST_MODEL__URL": endpoint.url,
            "ARCHIVIST_MODEL__KEY_VARIABLE": options.key_variable,
            "ARCHIVIST_MODEL__TIMEOUT_S": str(options.timeout),
            **{f"ARCHIVIST_MODEL__{name}": value for name, value in _SMALL.items()},
        }
        mined, told = LearningBank(folder / "without", {}), LearningBank(folder / "with", settings)
        for bank in (mined, told):
            bank.learn(logs)
        told.archivist("model", "allow", "--yes")
        lines = []
        reports = []
        for run in told.teaching_runs(options.runs):
            reports.append(told.archivist("reflect", "--run", run, "--json")["model"])
            lines.append(f"{run}: {_spent(reports[-1])}")
            print(lines[-1], file=sys.stderr)
        lines += _report(endpoint.model, mined.lessons(), told.lessons(), reports)
    print("\n".join(lines))
    if options.write:
        options.write.write_text(
            "\n".join([f"$ python -m bench.model {' '.join(sys.argv[1:])}", *lines, ""]), "utf-8"
        )
    return 0 if reports and lines[-1] == "ok" else 1


def _data_logs() -> list[Path]:
    """Return the first logs of each set of the data; none without data."""
    folder = Path(os.environ.get(DATA_VARIABLE) or _DATA) / "runs"
    logs = (sorted(path for path in (folder / name).glob("*") if path.is_file()) for name in _SETS)
    return [path for found in logs for path in found[:_LOGS_OF_SET] if "outcomes" not in path.name]


def _generated_logs(folder: Path) -> Iterator[Path]:
    for number, task in enumerate(make_tasks(1, 1)):
        (place := folder / str(number)).mkdir(parents=True)
        yield from Project(place, task, 2.0).earlier_logs()


def _spent(report: dict[str, Any]) -> str:
    problem = f", problem: {report['problem']}" if report["problem"] else ""
    return (
        f"{report['requests']} requests, {report['input_tokens']} tokens in, {report['output_tokens']} out,"
        f" {report['seconds']:.0f} s, ${report['usd']:.2f}, {report['admitted']} of {report['proposed']}"
        f" claims hold{problem}"
    )


def _report(
    model: str,
    mined: Sequence[dict[str, Any]],
    both: Sequence[dict[str, Any]],
    reports: Sequence[dict[str, Any]],
) -> Iterator[str]:
    of_model = [lesson for lesson in both if lesson["origin"] == _MODEL_ORIGIN]
    yield f"{model}: {len(mined)} lessons without it, {len(both)} with, {len(of_model)} its own"
    dropped = sum((Counter(report["dropped"]) for report in reports), Counter())
    yield from (f"  dropped {count}: {reason}" for reason, count in dropped.most_common())
    yield from (
        f"  {lesson['id']} {lesson['summary']} [{', '.join(lesson['evidence']['events'])}]"
        for lesson in of_model
    )
    lost = {lesson["signature"] for lesson in mined} - {lesson["signature"] for lesson in both}
    bare = [lesson["id"] for lesson in of_model if not lesson["evidence"]["events"]]
    yield "ok" if not lost and not bare else f"LOST {sorted(lost)}, WITHOUT EVIDENCE {bare}"


if __name__ == "__main__":
    sys.exit(main())
