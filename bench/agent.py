"""Ask whether memory helps an agent: the same task with and without what earlier runs left behind.

A minimal loop, one shell command a reply, works on small generated repositories with a trap each
(bench/agent_tasks.py). Two earlier runs on other objects of the same repository were captured and reflected
on; `archivist brief` and the hook beside a failing call are the whole difference between the two arms.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.agent_models import DONE, ChatModel, Endpoint, Follower, Message
from bench.agent_shell import AgentShell, CommandResult
from bench.agent_tasks import AgentTask, make_tasks
from bench.local_model import serve_gguf

_SYSTEM = (
    "You are a coding agent in a shell, in the folder of a project. Reply with exactly one shell command in a"
    " ```bash block and nothing else. Nothing can be installed; Python is `python3`. When a command fails, do"
    " not repeat it: read the error, look around with `ls` and `cat`, and try something else."
    f" When the task is done, reply {DONE}."
)
_BLOCK = re.compile(r"```(?:\w+)?[ \t]*\n(.*?)\n?```", re.DOTALL)
_OUTPUT_CHARACTERS = 400
# A model at temperature 0 that gave the same command three times in a row gives it for ever.
_MOST_REPEATS = 3


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What one run came to."""

    calls: int
    failing: int
    tokens: int
    is_solved: bool
    messages: tuple[Message, ...]


class Project:
    """A generated repository with the bank of its earlier runs beside it."""

    def __init__(self, folder: Path, task: AgentTask, limit_s: float) -> None:
        self.task = task
        self.work = folder / "work"
        self.repo = self.work / task.project
        self._bank = folder
        self._limit_s = limit_s
        self._environment = {**os.environ, "ARCHIVIST_HOME": str(folder / "home")}
        self._template = folder / "template" / task.project
        self._template.mkdir(parents=True)
        task.lay(self._template)
        self.archivist("init", cwd=folder)

    def archivist(self, *words: str, given: str = "", cwd: Path | None = None) -> str:
        """Call Archivist's command line in the repository, as a user or a client's hook does."""
        done = subprocess.run(
            [sys.executable, "-m", "archivist", *words],
            cwd=cwd or self.repo,
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def shell(self) -> AgentShell:
        """Put the repository back to its first state and open a shell in it that does not see the bank."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        # With its times: git made this repository once, and each run works in the same one.
        subprocess.run(["cp", "-a", self._template, self.repo], check=True)
        return AgentShell(self.work, self.repo, self._bank / ".archivist", limit_s=self._limit_s)

    def earlier_logs(self) -> Iterator[Path]:
        """Let two earlier agents find their way, and yield the log of each."""
        for number, name in enumerate(self.task.objects[:2], 1):
            with self.shell() as shell:
                steps = [(command, shell.run(command)) for command in self.task.plan(name)]
                if shell.run(self.task.done(name)).code:
                    raise RuntimeError(f"the earlier run of {self.task.kind!r} did not do its task")
            session = f"{self.task.project}-{number}"
            log = self._bank / f"{session}.jsonl"
            lines = _log_lines(session, self.repo, self.task.ask(name), steps)
            log.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
            yield log

    def learn(self) -> None:
        """Capture the earlier runs and reflect on each, as it ends."""
        for log in self.earlier_logs():
            self.archivist("capture", str(log))
            self.archivist("reflect", "--pending")

    def brief(self, prompt: str, run: str) -> str:
        """Return what the memory tells before a task."""
        return self.archivist("brief", "--task", prompt, "--run", run)

    def hint(self, run: str, command: str, result: CommandResult) -> str:
        """Return what the memory tells beside a failing call, as the hook of a client is answered."""
        event = {
            "session_id": run, "cwd": str(self.repo), "hook_event_name": "PostToolUseFailure",
            "tool_name": "Bash", "tool_input": {"command": command},
            "error": f"Exit code {result.code}\n{result.output}",
        }  # fmt: skip
        answer = self.archivist("hook", "claude-code", "tool-failure", given=json.dumps(event))
        return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer.strip() else ""


def _log_lines(
    session: str, repo: Path, prompt: str, steps: Sequence[tuple[str, CommandResult]]
) -> Iterator[dict[str, object]]:
    """Yield a run as `claude -p --output-format stream-json` prints it."""
    yield {"type": "system", "subtype": "init", "session_id": session, "cwd": str(repo), "tools": ["Bash"]}
    yield {"type": "user", "session_id": session, "message": {"role": "user", "content": prompt}}
    for number, (command, result) in enumerate(steps):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
        content = f"Exit code {result.code}\n{result.output}" if result.code else result.output
        answer = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": content,
            "is_error": result.code != 0,
        }
        for role, part in (("assistant", call), ("user", answer)):
            yield {"type": role, "session_id": session, "message": {"role": role, "content": [part]}}
    yield {"type": "result", "subtype": "success", "session_id": session, "is_error": False, "result": DONE}


def _shown(result: CommandResult) -> str:
    output = result.output
    if len(output) > _OUTPUT_CHARACTERS:
        half = _OUTPUT_CHARACTERS // 2
        output = f"{output[:half]}\n…\n{output[-half:]}"
    return f"exit code {result.code}\n{output}"


def work(project: Project, model: ChatModel, run: str, *, with_memory: bool, steps: int) -> AgentRun:
    """Let a model do the task of a project, with or without its memory."""
    name = project.task.objects[2]
    prompt = project.task.ask(name)
    calls = failing = tokens = 0
    commands: list[str] = []
    with project.shell() as shell:
        brief = project.brief(prompt, run) if with_memory else ""
        messages: list[Message] = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": f"{brief}\nTask: {prompt}".strip()},
        ]
        for _ in range(steps):
            reply = model.reply(messages)
            tokens += reply.tokens_in + reply.tokens_out
            messages.append({"role": "assistant", "content": reply.text})
            block = _BLOCK.search(reply.text)
            if block is None and DONE in reply.text:
                break
            if block is None:
                messages.append({"role": "user", "content": f"Reply with one ```bash block, or {DONE}."})
                continue
            command = block[1].strip()
            commands.append(command)
            result = shell.run(command)
            calls += 1
            failing += result.code != 0
            hint = project.hint(run, command, result) if with_memory and result.code else ""
            messages.append({"role": "user", "content": f"{_shown(result)}\n{hint}".strip()})
            if commands[-_MOST_REPEATS:] == [command] * _MOST_REPEATS:
                break
        is_solved = shell.run(project.task.done(name)).code == 0
    return AgentRun(calls, failing, tokens, is_solved, tuple(messages))


@dataclass(frozen=True, slots=True)
class Pair:
    """The same task without and with memory."""

    kind: str
    without: AgentRun
    with_memory: AgentRun


MEASURES: dict[str, Callable[[AgentRun], float]] = {
    "solved": lambda run: float(run.is_solved),
    "calls": lambda run: run.calls,
    "failing calls": lambda run: run.failing,
    "tokens": lambda run: run.tokens,
}


def interval(pairs: Sequence[Pair], measure: Callable[[AgentRun], float], seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference, by a bootstrap over kinds of trap.

    Two repositories with the same trap are hardly two observations, so kinds are drawn, not pairs.
    """
    by_kind: dict[str, list[float]] = {}
    for pair in pairs:
        by_kind.setdefault(pair.kind, []).append(measure(pair.with_memory) - measure(pair.without))
    groups = list(by_kind.values())
    rng = random.Random(seed)
    means = []
    for _ in range(10_000):
        drawn = [value for group in rng.choices(groups, k=len(groups)) for value in group]
        means.append(sum(drawn) / len(drawn))
    means.sort()
    return means[250], means[9_749]


def table(pairs: Sequence[Pair], seed: int) -> Iterator[str]:
    """Yield the means of both arms with their difference, then each kind of trap."""
    head = f"mean of {len(pairs)} pairs"
    yield f"{head:<20}{'without':>10}{'memory':>10}{'difference':>12}   95 % interval"
    for name, measure in MEASURES.items():
        without = sum(measure(pair.without) for pair in pairs) / len(pairs)
        told = sum(measure(pair.with_memory) for pair in pairs) / len(pairs)
        low, high = interval(pairs, measure, seed)
        digits = 0 if name == "tokens" else 2
        yield (
            f"{name:<20}{without:>10.{digits}f}{told:>10.{digits}f}{told - without:>+12.{digits}f}"
            f"   {low:+.{digits}f} to {high:+.{digits}f}"
        )
    yield ""
    yield f"{'trap':<20}{'solved':>14}{'calls':>14}{'failing':>14}   (without → memory, sums)"
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        same = [pair for pair in pairs if pair.kind == kind]
        arms = [pair.without for pair in same], [pair.with_memory for pair in same]
        shown = [measure for name, measure in MEASURES.items() if name != "tokens"]
        sums = [[sum(map(measure, arm)) for arm in arms] for measure in shown]
        yield f"{kind:<20}" + "".join(f"{f'{without:g} → {told:g}':>14}" for without, told in sums)


def main() -> int:
    """Run every pair in random order and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", help="base URL of an OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1"
    )
    parser.add_argument("--model", default="", help="the model's name at that endpoint")
    parser.add_argument(
        "--key-variable", default="", help="environment variable that holds the endpoint's key"
    )
    parser.add_argument("--gguf", type=Path, help="serve this GGUF file on loopback instead, with one thread")
    parser.add_argument("--seeds", type=int, default=2, help="repositories for each kind of trap")
    parser.add_argument("--steps", type=int, default=6, help="replies a run may use")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds a command may take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transcripts", type=Path, help="write the messages of all runs to this JSONL file")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    with ExitStack() as stack:
        endpoint: Endpoint | None = None
        if options.gguf:
            endpoint = stack.enter_context(serve_gguf(options.gguf))
        elif options.url:
            endpoint = Endpoint(options.url, options.model, os.environ.get(options.key_variable, ""))
        who = (
            f"model {endpoint.model}"
            if endpoint
            else "scripted stand-in, no model: shows what memory says, not what a model makes of it"
        )
        pairs: list[Pair] = []
        text = ""
        for pair in _pairs(endpoint, options):
            pairs.append(pair)
            text = "\n".join((who, *table(pairs, options.seed)))
            # Written after each pair: on a processor all of them take an hour.
            if options.write:
                command = f"$ python -m bench.agent {' '.join(sys.argv[1:])}"
                options.write.write_text(f"{command}\n{text}\n", "utf-8")
    print(text)
    return 0


def _pairs(endpoint: Endpoint | None, options: argparse.Namespace) -> Iterator[Pair]:
    rng = random.Random(options.seed)
    tasks = make_tasks(options.seeds, options.seed)
    rng.shuffle(tasks)
    for number, task in enumerate(tasks, 1):
        with tempfile.TemporaryDirectory(prefix="archivist-agent-") as folder:
            project = Project(Path(folder), task, options.limit)
            project.learn()
            runs: dict[bool, AgentRun] = {}
            for with_memory in rng.sample((False, True), 2):
                name = task.objects[2]
                model: ChatModel = endpoint or Follower(task.plan(name), name, task.objects[:2])
                runs[with_memory] = work(
                    project, model, "measured", with_memory=with_memory, steps=options.steps
                )
        print(f"{number}/{len(tasks)} {task.kind}", file=sys.stderr)
        if options.transcripts:
            with options.transcripts.open("a", encoding="utf-8") as file:
                for with_memory, run in runs.items():
                    line = {
                        "kind": task.kind,
                        "memory": with_memory,
                        "solved": run.is_solved,
                        "messages": run.messages,
                    }
                    print(json.dumps(line), file=file)
        yield Pair(task.kind, runs[False], runs[True])


if __name__ == "__main__":
    sys.exit(main())
