"""Call Archivist at both ends of each run of an agent, and let its second run profit from the first."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from archivist import Bank, Episode, Event, Finding
from archivist.capture.service import CaptureOverrides
from archivist.records import Actor, ActorKind, EpisodeStatus, EventKind, Severity

REPO = "toolshed"
TASK = "Make the checks of toolshed pass."
# The project's own trap, which nobody told the agent: its checks want a seed.
CHECKS = """\
#!/bin/sh
test "$1" = --seed && echo "12 checks passed" && exit
echo "checks: error: the following arguments are required: --seed" >&2
exit 2
"""


def main() -> None:
    """Orchestrate two runs in a temporary project."""
    with tempfile.TemporaryDirectory(prefix="orchestrate-") as folder:
        project = Path(folder)
        # An example must not touch your own global memory; leave this line out.
        os.environ["ARCHIVIST_HOME"] = str(project / "home")
        (project / "checks").write_text(CHECKS, "utf-8")
        (project / "checks").chmod(0o755)
        orchestrator = Actor(ActorKind.ORCHESTRATOR, "example")
        with Bank.open(project, create=True, actor=orchestrator) as bank:
            for run in ("run-1", "run-2"):
                orchestrate(bank, project, run)
            review(bank, "review-1")


def orchestrate(bank: Bank, project: Path, run: str) -> None:
    """Brief an agent, let it work, and learn from its log: the two calls."""
    told = bank.runs.start_run(run, task=TASK, repo=REPO)
    print(f"{run} is told: {told.text.strip() or 'nothing yet'}")

    log = project / f"{run}.jsonl"
    is_done = agent(f"{told.text}\n{TASK}", project, log)

    status = EpisodeStatus.SUCCESS if is_done else EpisodeStatus.FAILED
    known = CaptureOverrides(run=run, project=REPO, status=status)
    for done in bank.runs.finish(log, overrides=known).runs:
        helped = sum(each.effect.value == "helpful" for each in done.verdicts)
        print(f"{run} ended: {done.outcome.summary}")
        print(f"  learnt {done.outcome.created}, of {len(done.verdicts)} briefed {helped} helped")


def review(bank: Bank, run: str) -> None:
    """Close a run that left no log, only what its reviewer found."""
    bank.runs.start_run(run, task="Review the checks.")
    found = Finding(severity=Severity.BUG, description="The checks write into the home folder")
    verdict = Event(run=run, seq=1, kind=EventKind.VERDICT, role="guardian", findings=(found,))
    done = bank.runs.finish_run(Episode(id=run), [verdict], status=EpisodeStatus.SUCCESS)
    for lesson in done.created:
        print(f"{run} taught: {lesson.summary}")


def agent(prompt: str, project: Path, log: Path) -> bool:
    """Stand in for your agent: it believes its prompt, reads errors, and logs each command it runs."""
    commands = ["./checks", "./checks --seed 7"]
    if commands[1] in prompt:
        commands = commands[1:]
    lines: list[dict[str, object]] = [{"kind": "message", "role": "user", "text": prompt}]
    is_done = False
    for command in commands:
        ran = subprocess.run(command.split(), cwd=project, capture_output=True, text=True, check=False)
        is_done = ran.returncode == 0
        answer = {"output": ran.stdout + ran.stderr, "exit_code": ran.returncode}
        lines.append({"kind": "tool_call", "tool": "bash", "text": command, **answer})
    numbered = ({"run": log.stem, "seq": seq, **line} for seq, line in enumerate(lines, 1))
    log.write_text("".join(json.dumps(line) + "\n" for line in numbered), "utf-8")
    return is_done


if __name__ == "__main__":
    main()
