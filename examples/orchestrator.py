"""Plan, execute, observe: workers in their own processes share one bank, and planning again learns from it.

Three files of records are loaded in parallel and summed in a report. Nobody told the workers that the files
have trailing commas, so the first approach fails where the second works. When a new file arrives, the plan
leaves out what is still as it was, and begins with what worked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from archivist import Bank
from archivist.records import Actor, ActorKind

AT_ONCE = 2
LOADING = ("strict JSON", "JSON without trailing commas")
LEAD = Actor(ActorKind.ORCHESTRATOR, "lead")
Ended = subprocess.CompletedProcess[str]


class Task(NamedTuple):
    """One node of the graph: what it reads, what it makes, and the ways to do it, the plain one first."""

    name: str
    reads: tuple[str, ...]
    makes: str
    approaches: tuple[str, ...]


class Worker(NamedTuple):
    """A process at work on a task."""

    task: Task
    approach: str
    began: float


def main() -> None:
    """Orchestrate twice in a temporary project, or in the folder named; then there is one file more."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
        project = Path(sys.argv[1] if len(sys.argv) > 1 else folder)
        # An example must not touch your own global memory; leave this line out.
        os.environ["ARCHIVIST_HOME"] = str(Path(folder, "home"))
        with Bank.open(project, actor=LEAD) as bank:
            for names in (("north", "south"), ("north", "south", "east")):
                for name in names:
                    (project / f"{name}.json").write_text('[{"sold": 3}, {"sold": 4},]\n', "utf-8")
                bank.core.update("status", {"sprint": f"Report on {', '.join(names)}"})
                orchestrate(bank, project, graph(names))
                print((project / "report.txt").read_text("utf-8").strip())


def graph(names: tuple[str, ...]) -> list[Task]:
    """Return the tasks: each file is loaded by itself, the report needs them all."""
    loads = [Task(f"load {name}", (f"{name}.json",), f"{name}.loaded", LOADING) for name in names]
    return [*loads, Task("report", tuple(load.makes for load in loads), "report.txt", ("sum",))]


def orchestrate(bank: Bank, project: Path, tasks: list[Task]) -> None:
    """Go on until every task is done: plan, execute what is ready in parallel, observe what came of it."""
    done: set[str] = set()
    at_work: dict[Future[Ended], Worker] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while len(done) < len(tasks):
            for task in planned(bank, project, tasks, done, {each.task.name for each in at_work.values()}):
                worker, command = execute(bank, project, task)
                at_work[pool.submit(subprocess.run, command, capture_output=True, text=True)] = worker
            ended, _ = wait(at_work, return_when=FIRST_COMPLETED)
            for each in ended:
                worker = at_work.pop(each)
                if observe(bank, worker, each.result()):
                    done.add(worker.task.name)


def planned(
    bank: Bank, project: Path, tasks: list[Task], done: set[str], at_work: set[str]
) -> Iterator[Task]:
    """Yield what can begin now, and count as done what was made from the same inputs before."""
    for task in tasks:
        needs = {each.name for each in tasks if each.makes in task.reads}
        if task.name in done or task.name in at_work or not needs <= done:
            continue
        if is_still_good(bank, project, task):
            print(f"lead: {task.name} is as it was")
            done.add(task.name)
        elif len(at_work) < AT_ONCE:
            at_work.add(task.name)
            yield task


def is_still_good(bank: Bank, project: Path, task: Task) -> bool:
    """Say whether a task's file is there unchanged, and was made from what its inputs are now."""
    made = bank.artifacts.query(task=task.name, path=task.makes, limit=1)
    if not made or bank.artifacts.verify([made[0].id])[0].state != "same":
        return False
    return made[0].description == f"from {', '.join(inputs(project, task))}"


def inputs(project: Path, task: Task) -> list[str]:
    """Return what a task reads, with the beginning of each file's digest."""
    files = [name for name in task.reads if (project / name).exists()]
    return [f"{name} {sha256((project / name).read_bytes()).hexdigest()[:8]}" for name in files]


def execute(bank: Bank, project: Path, task: Task) -> tuple[Worker, list[str]]:
    """Choose the approach by what was tried before, say who does what, and return the worker's command."""
    tried = {each.approach: each for each in bank.attempts.list_approaches(task.name)}
    known = bank.knowledge.get("convention", task.name.partition(" ")[0])
    open_ways = [each for each in task.approaches if each not in tried or tried[each].completed]
    approach = known.value if known and known.value in open_ways else open_ways[0]
    why = "the plain way"
    if known and known.value == approach:
        why = "known to work"
    elif tried:
        why = "its inputs changed" if approach in tried else "another way failed"
    bank.attempts.log(
        task.name, agent=agent_of(task), action="retried" if tried else "attempted", approach=approach
    )
    bank.core.append("inProgress", f"{agent_of(task)}: {task.name} by {approach}")
    print(f"lead: {task.name} by {approach} ({why})")
    command = [sys.executable, __file__, "work", str(project), task.name, approach, task.makes, *task.reads]
    return Worker(task, approach, time.monotonic()), command


def observe(bank: Bank, worker: Worker, ended: Ended) -> bool:
    """Log what came of an attempt; what worked after another way failed becomes a convention."""
    said = (ended.stdout + ended.stderr).strip().splitlines() or [""]
    is_done = ended.returncode == 0
    task, approach, agent = worker.task, worker.approach, agent_of(worker.task)
    bank.attempts.log(
        task.name,
        agent=agent,
        action="completed" if is_done else "failed",
        approach=approach,
        outcome=said[-1],
        duration_ms=round((time.monotonic() - worker.began) * 1000),
    )
    bank.core.take_out("inProgress", f"{agent}: {task.name} by {approach}")
    if is_done:
        bank.core.append("recentlyShipped", f"{task.makes} by {agent}")
        if any(each.failed for each in bank.attempts.list_approaches(task.name) if each.approach != approach):
            bank.knowledge.put("convention", task.name.partition(" ")[0], approach, confidence=0.9)
    print(f"{agent}: {task.name} {'done' if is_done else 'failed'}: {said[-1]}")
    return is_done


def agent_of(task: Task) -> str:
    """Return the name of the worker that a task is given to."""
    return task.name.replace(" ", "-")


def work(project: Path, task: str, approach: str, makes: str, reads: list[str]) -> None:
    """Do one task in a process of its own, as an agent: read core, act, register what was made, log it."""
    agent = Actor(ActorKind.AGENT, task.replace(" ", "-"), "maker")
    with Bank.open(project, create=False, actor=agent) as bank:
        bank.working.update(plan=f"{task} by {approach}", constraints=[bank.core.view().status.sprint])
        used = inputs(project, Task(task, tuple(reads), makes, ()))
        texts = [(project / name).read_text("utf-8") for name in reads]
        made = approaches()[approach](texts)
        (project / makes).write_text(made, "utf-8")
        bank.artifacts.register(makes, task=task, description=f"from {', '.join(used)}")
        bank.stream.log(f"Made {makes}", role="maker", importance=4, content=f"{task} by {approach}")
        bank.working.clear()
    print(f"made {makes}")


def approaches() -> dict[str, Callable[[list[str]], str]]:
    """Return the ways to do things, by their names."""
    return {
        LOADING[0]: lambda texts: json.dumps(json.loads(texts[0])),
        LOADING[1]: lambda texts: json.dumps(json.loads(re.sub(r",\s*\]", "]", texts[0]))),
        "sum": lambda texts: f"sold: {sum(row['sold'] for text in texts for row in json.loads(text))}\n",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        _, _, folder, task, approach, makes, *reads = sys.argv
        work(Path(folder), task, approach, makes, reads)
    else:
        main()
