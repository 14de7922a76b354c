"""A small orchestrator: plan which tasks can begin, execute them with worker processes, observe, learn.

Workers and planner are commands that the caller gives: nothing of a repository or a bank is executed. A
worker reads its task from stdin and reports by its exit code and the last line that it prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.audit.analytics import merge_attempts
from archivist.bus import TASK_STEP
from archivist.capture.service import CaptureOverrides
from archivist.errors import ArchivistError, DecidedError, InputError
from archivist.files.parse import parse_json
from archivist.files.processes import is_process_gone, name_process
from archivist.layers.approaches import CONVENTION, advise, convention_key
from archivist.layers.artifacts_service import FileState
from archivist.lessons.agent_words import agent_suspicion, name_agent, quote_words, retold_suspicion
from archivist.lessons.risky_text import is_plain_name
from archivist.records.episode import Episode
from archivist.records.event import Event
from archivist.records.layers import Task
from archivist.records.run_words import Action, EpisodeStatus, EventKind
from archivist.records.tier_words import TaskState
from archivist.records.words import ActorKind
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.bank import Bank

_CONFIDENCE = 0.9
# A planner that only adds what fails must not go on for ever.
_MAX_PLANS = 3
_PLANNED = ("title", "id", "parent", "needs", "owner", "approaches", "max_attempts")
_OUTPUT_CHARACTERS = 20_000
_RESULT_CHARACTERS = 2_000
_LINE_CHARACTERS = 200
_FAILED_TO_START = 127
# What a worker is told of knowledge and of similar tasks: a page, not the whole memory.
_MOST_CONVENTIONS = 10
_MOST_FACTS = 5
_MOST_SIMILAR = 5


class OrchestrationResult(NamedTuple):
    """What a loop did: the tasks that ended, those that nobody could begin, and what it did step by step."""

    done: tuple[str, ...]
    failed: tuple[str, ...]
    left: tuple[str, ...]
    steps: tuple[str, ...]


class _Worker(NamedTuple):
    """A process at work on a task: its command, its run, its prompt and where it may write a log."""

    task: Task
    approach: str
    command: tuple[str, ...]
    run: str
    prompt: str
    log: Path

    def work(self, folder: Path, timeout_s: float | None) -> _ProcessResult:
        """Run the command, with the names of the task, run and agent in the environment."""
        names = {
            "ARCHIVIST_TASK": self.task.id,
            "ARCHIVIST_RUN": self.run,
            "ARCHIVIST_APPROACH": self.approach,
            "ARCHIVIST_LOG": str(self.log),
            "ARCHIVIST_ACTOR": f"agent:{self.task.owner}",
        }
        return _run_command(self.command, self.prompt, names, folder, timeout_s)


class _ProcessResult(NamedTuple):
    """How a worker's process ended."""

    code: int
    output: str


def orchestrate(
    bank: Bank,
    workers: Mapping[str, Sequence[str]],
    *,
    planner: Sequence[str] = (),
    at_once: int = 2,
    timeout_s: float | None = None,
) -> OrchestrationResult:
    """Go on until no task can begin; a task that fails is tried again as its retry decision says."""
    if not workers or not all(name.strip() and command for name, command in workers.items()):
        raise InputError("no worker: each needs a name and a command", hint='--worker coder="claude -p"')
    with tempfile.TemporaryDirectory(prefix="archivist-") as folder, ThreadPoolExecutor(at_once) as pool:
        loop = _Loop(bank, workers, planner, Path(folder))
        loop.recover()
        at_work: dict[Future[_ProcessResult], _Worker] = {}
        while True:
            for task in loop.plan(at_once - len(at_work)):
                if (worker := loop.execute(task)) is not None:
                    at_work[pool.submit(worker.work, bank.root, timeout_s)] = worker
            if not at_work:
                break
            ended, _ = wait(at_work, return_when=FIRST_COMPLETED)
            for future in ended:
                worker = at_work.pop(future)
                loop.learn(worker, future.result(), loop.observe(worker, future.result()))
        return loop.result()


class _Loop:
    """The state of one loop."""

    def __init__(
        self, bank: Bank, workers: Mapping[str, Sequence[str]], planner: Sequence[str], folder: Path
    ) -> None:
        self._bank = bank
        self._workers = workers
        self._planner = planner
        self._folder = folder
        self._process = name_process()
        self._steps: list[str] = []
        self._ended: dict[str, TaskState] = {}
        self._plans = 0
        self._is_replanning = True

    def recover(self) -> None:
        """Fail what ended orchestrators left running: their workers report to nobody."""
        for task in self._bank.tasks.query(state=TaskState.RUNNING):
            run = self._bank.runs.episode(task.run) if task.run else None
            if run is not None and is_process_gone(str(run.extra.get("orchestrator") or "")):
                self._bank.tasks.fail(task.id, "its orchestrator ended")
                self._note(f"{task.id} was left by an orchestrator that ended")

    def plan(self, free: int) -> list[Task]:
        """Return the tasks that begin now; ask the planner first when there is nothing, or a task failed."""
        tasks = self._bank.tasks.query()
        is_open = any(task.state in (TaskState.OPEN, TaskState.RUNNING) for task in tasks)
        has_failed = TaskState.FAILED in self._ended.values()
        if self._planner and self._is_replanning and self._plans < _MAX_PLANS and (has_failed or not is_open):
            self._ask_planner(tasks)
            tasks = self._bank.tasks.query()
        waits = self._bank.tasks.waits_for(tasks)
        ready = [task for task in tasks if task.state is TaskState.OPEN and not waits[task.id]]
        return [task for task in ready if not task.owner or task.owner in self._workers][: max(0, free)]

    def _ask_planner(self, tasks: Sequence[Task]) -> None:
        """Let the caller's planner add tasks: it reads what there is and what was tried, as JSON lines."""
        self._plans += 1
        self._is_replanning = False
        names = ("id", "title", "parent", "owner", "attempts", "reason", "result", "needs", "state")
        lines = ""
        for each in tasks:
            known = {name: getattr(each, name) for name in names} | {"tried": self._describe_attempts(each)}
            lines += json.dumps(known, ensure_ascii=False) + "\n"
        actor = {"ARCHIVIST_ACTOR": "orchestrator:planner"}
        ended = _run_command(self._planner, lines, actor, self._bank.root, None)
        if ended.code:
            raise InputError(f"the planner failed: {_last_line(ended.output)}", hint="it exits with 0")
        for line in filter(str.strip, ended.output.splitlines()):
            try:
                task = self._bank.tasks.add(**_read_planned(line))
            except (InputError, TypeError) as error:
                # A value of the wrong type, as a number for a name, reaches the code behind.
                why = error.message if isinstance(error, InputError) else "a field has a wrong value"
                hint = '{"id": "test", "title": "…", "needs": ["build"], "owner": "coder"}'
                said = shorten_line(line, _LINE_CHARACTERS)
                raise InputError(f"the planner printed no task: {why}: {said}", hint=hint) from None
            self._note(f"planned {task.id}: {task.title}")

    def execute(self, task: Task) -> _Worker | None:
        """Open a run for a task, brief it, choose the approach by what was tried, and begin the attempt."""
        bank = self._bank
        running = Counter(each.owner for each in bank.tasks.query(state=TaskState.RUNNING))
        agent = task.owner or min(self._workers, key=running.__getitem__)
        run = bank.new_id(bank.now())
        approach, why = bank.tasks.choose_approach(task)
        try:
            # Another orchestrator may have begun it.
            begun = bank.tasks.start(task.id, agent=agent, approach=approach, run=run)
        except DecidedError:
            return None
        brief = bank.runs.start_run(run, task=task.title, agent=agent)
        bank.runs.note_on_run(run, "orchestrator", self._process)
        self._note(f"{task.id} given to {agent}{f' by {approach}' if approach else ''} ({why})")
        prompt = self._compose_prompt(begun, approach, brief.text)
        return _Worker(
            begun, approach, tuple(self._workers[agent]), run, prompt, self._folder / f"{run}.jsonl"
        )

    def _describe_attempts(self, task: Task) -> list[str]:
        """Return the ended attempts at a task, oldest first, one line for those that ended alike."""
        counts: Counter[str] = Counter()
        for each in merge_attempts(self._bank.attempts.query(task=task.id)):
            if each.ended is None:
                # The attempt in progress has not failed yet; of one that was left nobody knows how it ended.
                continue
            outcome = f": {each.last.outcome}" if each.last.outcome else ""
            verdict = "worked" if each.ended is Action.COMPLETED else "failed"
            line = f"{each.last.approach}: {verdict}{outcome}"
            counts[shorten_line(line, _LINE_CHARACTERS)] += not agent_suspicion(line)
        return [f"{line} ({count} times)" if count > 1 else line for line, count in counts.items() if count]

    def _compose_prompt(self, task: Task, approach: str, brief: str) -> str:
        """Return what a worker reads: its task, what was tried, what memory knows, the brief."""
        bank = self._bank
        said = bank.tasks.speakers(task.id)
        parts = [f"# Task {self._name_task(task)}", "", _mark_words(task.title, said)]
        if approach:
            parts += ["", f"Approach: {_mark_words(approach, said)}"]
        with bank.reading() as reader:
            before = [reader.get(Task, name) for name in task.needs]
            before += [each for each in reader.select(Task) if each.parent == task.id]
        facts = bank.knowledge.query(category=CONVENTION, limit=_MOST_CONVENTIONS)
        facts += bank.knowledge.query(text=task.title, limit=_MOST_FACTS)
        similar = [
            each.tried._replace(task=each.title or each.tried.task)
            for each in bank.attempts.similar(task.title, limit=_MOST_SIMILAR, other_than=task.id)
            if each.tried.completed and each.tried.provenance.is_own
        ]
        sections = {
            "Tried before": self._describe_attempts(task),
            "Done before": [self._describe_done(each) for each in filter(None, before)],
            "What holds here": [f"{each.category}/{each.key}: {each.value}" for each in facts],
            "What worked for similar tasks": [
                ": ".join(filter(None, (each.task, each.approach, each.last.outcome))) for each in similar
            ],
        }
        for title, lines in sections.items():
            # The words are an agent's or a file's: they must not command the next agent.
            kept = [shorten_line(line, _RESULT_CHARACTERS) for line in dict.fromkeys(lines)]
            kept = [f"- {line}" for line in kept if not agent_suspicion(line)]
            parts += ["", f"## {title}", "", *kept] if kept else []
        return "\n".join([*parts, "", brief]).rstrip() + "\n"

    def _describe_done(self, task: Task) -> str:
        """Return the result of a task and its files, each with whether it still is what was registered."""
        latest = {each.path: each.id for each in reversed(self._bank.artifacts.query(task=task.id))}
        checks = self._bank.artifacts.verify(list(latest.values())) if latest else []
        states = {each: f"{each.value} since it was registered" for each in FileState}
        states[FileState.SAME] = "unchanged"
        files = "; ".join(f"{check.artifact.path}, {states[check.state]}" for check in checks)
        made = f" ({files})" if files else ""
        # Whoever reports to the loop or as an agent is the task's agent; else a person wrote it.
        result = shorten_line(task.result, _RESULT_CHARACTERS // 2)
        with self._bank.reading() as reader:
            verb = Action.COMPLETED.value
            entries = [each for each in reader.text_entries(task.id, "task") if each.verb == verb]
        if result and (task.run or any(each.actor.kind is ActorKind.AGENT for each in entries[:1])):
            result = "" if retold_suspicion(result) else quote_words(result, name_agent(task.owner))
        return f"{self._name_task(task)}: {result or 'done'}{made}"

    def _name_task(self, task: Task) -> str:
        """Return the id of a task; one that an agent made a sentence is the agent's."""
        return task.id if is_plain_name(task.id) else _mark_words(task.id, self._bank.tasks.speakers(task.id))

    def observe(self, worker: _Worker, ended: _ProcessResult) -> Task:
        """Record how an attempt ended, and what was decided after a failure."""
        tasks, said = self._bank.tasks, _last_line(ended.output)
        current = tasks.get(worker.task.id)
        if current.state is not TaskState.RUNNING or current.run != worker.run:
            # The worker has reported for itself.
            task = current
        elif ended.code:
            task = tasks.fail(worker.task.id, said or f"exit code {ended.code}")
        else:
            task = tasks.finish(worker.task.id, said)
        self._ended[task.id] = task.state
        self._is_replanning = self._is_replanning or task.state is TaskState.FAILED
        outcome = "done" if task.state is TaskState.DONE else f"failed, {task.retry or 'ended'}"
        self._note(f"{task.id} {outcome}: {said or task.reason}")
        return task

    def learn(self, worker: _Worker, ended: _ProcessResult, task: Task) -> None:
        """Finish the run, learn from its log, and keep the approach that worked after others failed."""
        bank, is_done = self._bank, task.state is TaskState.DONE
        status = EpisodeStatus.SUCCESS if is_done else EpisodeStatus.FAILED
        known = CaptureOverrides(run=worker.run, status=status)
        try:
            if worker.log.is_file() and worker.log.stat().st_size:
                bank.runs.finish(worker.log, overrides=known)
            else:
                command = Event(
                    run=worker.run, seq=1, kind=EventKind.TOOL_CALL, tool="worker", agent=task.owner,
                    text=" ".join(worker.command), output=ended.output[-_OUTPUT_CHARACTERS:],
                    exit_code=ended.code, is_error=bool(ended.code),
                )  # fmt: skip
                run = Episode(id=worker.run, task=task.title, agent=task.owner)
                bank.runs.finish_run(run, [command], status=status)
        except ArchivistError as error:
            # A log that cannot be read must not end the loop; the task has its result.
            self._note(f"{task.id}: nothing learnt from its run: {error.message}")
        if is_done:
            self._keep_convention(task)

    def _keep_convention(self, task: Task) -> None:
        """Keep what worked after others failed, in the orchestrator's name: only what no agent planned."""
        said = self._bank.tasks.speakers(task.id)
        tried = self._bank.attempts.list_approaches(task.id)
        planned = (each for each in tried if each.failed and said.get(each.approach) == "")
        others = [each for each in planned if each.approach != task.approach]
        is_own = said.get(task.title) == "" and said.get(task.approach) == ""
        value = f"For tasks such as \u201c{task.title}\u201d {advise(task.approach)}."
        if not (is_own and others and task.approach in task.approaches) or agent_suspicion(value):
            return
        for other in others:
            # How it failed is the worker's word.
            outcome = "" if retold_suspicion(other.last.outcome) else other.last.outcome.rstrip(".")
            why = f": \u201c{outcome}\u201d" if outcome else ""
            failed = f" `{other.approach}` failed{why}."
            value += "" if agent_suspicion(value + failed) else failed
        known = self._bank.knowledge.query(category=CONVENTION)
        key = convention_key(task.title, task.parent or task.id, known)
        self._bank.knowledge.put(CONVENTION, key, value, source="orchestrator", confidence=_CONFIDENCE)

    def result(self) -> OrchestrationResult:
        """Return what was done, and the tasks left open: they wait, or nobody works for their owner."""
        left = [task.id for task in self._bank.tasks.query(state=TaskState.OPEN)]
        ended = self._ended.items()
        return OrchestrationResult(
            tuple(name for name, state in ended if state is TaskState.DONE),
            tuple(name for name, state in ended if state is TaskState.FAILED),
            tuple(left),
            tuple(self._steps),
        )

    def _note(self, step: str) -> None:
        self._steps.append(step)
        self._bank.announce(TASK_STEP, text=step)


def _run_command(
    command: Sequence[str], text: str, names: Mapping[str, str], folder: Path, timeout_s: float | None
) -> _ProcessResult:
    """Run a command of the caller in the project, with a text on stdin."""
    try:
        done = subprocess.run(  # noqa: S603 the user's own command
            command, cwd=folder, env={**os.environ, **names}, input=text, timeout=timeout_s,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return _ProcessResult(1, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return _ProcessResult(_FAILED_TO_START, f"{command[0]}: {error.strerror}")
    # The answer is on stdout; a program that fails says why on stderr.
    return _ProcessResult(done.returncode, (done.stdout + done.stderr) if done.returncode else done.stdout)


def _read_planned(line: str) -> dict[str, Any]:
    """Return the fields of a task that a planner printed."""
    given = parse_json(line, "the line")
    if not isinstance(given, dict):
        raise InputError("not a JSON object")
    if unknown := [name for name in given if name not in _PLANNED]:
        raise InputError(f"a task has no field {unknown[0]!r}, but {', '.join(_PLANNED)}")
    if not isinstance(given.get("title"), str):
        raise InputError("a task needs a title")
    return given


def _mark_words(text: str, said: Mapping[str, str]) -> str:
    """Return words of a plan; those that an agent or a file said first are marked as theirs."""
    speaker = said.get(text, "")
    return quote_words(text, speaker) if speaker else text


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return shorten_line(lines[-1], _RESULT_CHARACTERS) if lines else ""
