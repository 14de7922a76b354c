"""Plan, execute, observe, learn: worker processes share one bank, and planning again learns from it.

Files of records are loaded in parallel and summed in a report. Nobody told the workers that the files have
trailing commas, so the first approach fails where the second works. When a new file arrives, tasks whose
inputs are still as they were stay done, and the new one begins with what worked.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from archivist import Bank
from archivist.records import Actor, ActorKind, TaskState

LOADING = ("strict JSON", "JSON without trailing commas")
LEAD = Actor(ActorKind.ORCHESTRATOR, "lead")


def main() -> None:
    """Orchestrate twice in a temporary project, or in the folder named; then there is one file more."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
        project = Path(sys.argv[1] if len(sys.argv) > 1 else folder)
        # An example must not touch your own global memory; leave this line out.
        os.environ["ARCHIVIST_HOME"] = str(Path(folder, "home"))
        # A worker is any command: an agent's command line, a script, this file.
        worker = (sys.executable, __file__, "work", str(project))
        with Bank.open(project, create=True, actor=LEAD) as bank:
            for names in (("north", "south"), ("north", "south", "east")):
                for name in names:
                    (project / f"{name}.json").write_text('[{"sold": 3}, {"sold": 4},]\n', "utf-8")
                bank.core.update("status", {"sprint": f"Report on {', '.join(names)}"})
                plan(bank, project, names)
                for step in bank.tasks.run({"loader": worker, "reporter": worker}).steps:
                    print(step)
                print((project / "report.txt").read_text("utf-8").strip())


def plan(bank: Bank, project: Path, names: tuple[str, ...]) -> None:
    """Add what is to be done: each file is loaded by itself, the report needs them all."""
    bank.tasks.add("Report on what was sold", id="report", owner="reporter")
    for name in names:
        title = f"Load {name}.json into {name}.loaded"
        bank.tasks.add(title, id=f"load {name}", parent="report", owner="loader", approaches=LOADING)
    for task in bank.tasks.query(state=TaskState.DONE):
        if is_still_good(bank, project, task.id):
            print(f"{task.id} is as it was")
        else:
            bank.tasks.reopen(task.id, "its inputs changed")


def is_still_good(bank: Bank, project: Path, task: str) -> bool:
    """Say whether a task's file is there unchanged, and was made from what its inputs are now."""
    made = bank.artifacts.query(task=task, limit=1)
    if not made or bank.artifacts.verify([made[0].id])[0].state != "same":
        return False
    return made[0].description == f"from {', '.join(digests(project, task))}"


def inputs(project: Path, task: str) -> list[Path]:
    """Return the files that a task reads."""
    if task.startswith("load "):
        return [project / f"{task.removeprefix('load ')}.json"]
    return [path.with_suffix(".loaded") for path in sorted(project.glob("*.json"))]


def digests(project: Path, task: str) -> list[str]:
    """Return what a task reads, with the beginning of each file's digest."""
    files = inputs(project, task)
    contents = [path.read_bytes() if path.exists() else b"" for path in files]
    return [
        f"{path.name} {sha256(content).hexdigest()[:8]}"
        for path, content in zip(files, contents, strict=True)
    ]


def work(project: Path) -> None:
    """Do one task in a process of its own, as an agent: act, register what was made, log it."""
    task, approach = os.environ["ARCHIVIST_TASK"], os.environ["ARCHIVIST_APPROACH"] or "sum"
    name = os.environ["ARCHIVIST_ACTOR"].removeprefix("agent:")
    makes = "report.txt" if task == "report" else f"{task.removeprefix('load ')}.loaded"
    prompt = sys.stdin.read()
    with Bank.open(project, create=False, actor=Actor(ActorKind.AGENT, name, "maker")) as bank:
        bank.working.update(plan=prompt[:200], constraints=[bank.core.view().status.sprint])
        used = digests(project, task)
        texts = [path.read_text("utf-8") for path in inputs(project, task)]
        (project / makes).write_text(approaches()[approach](texts), "utf-8")
        bank.artifacts.register(makes, task=task, description=f"from {', '.join(used)}")
        bank.core.append("recentlyShipped", f"{makes} by {name}")
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
        work(Path(sys.argv[2]))
    else:
        main()
