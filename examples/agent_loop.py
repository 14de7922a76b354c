"""A plain agent loop with a memory: a brief at the start, its tools in between, the log at the end.

The model is scripted, so that this runs anywhere; put your client's chat completion in its place. It is
offered a shell and the memory's own tools, in OpenAI's form; `for_anthropic` gives them in the other one.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archivist import Bank
from archivist.capture.service import CaptureOverrides
from archivist.errors import ArchivistError
from archivist.records import Actor, ActorKind, EpisodeStatus
from archivist.tools.functions import Toolset, call, for_openai, tools

Message = dict[str, Any]
Model = Callable[[list[Message], list[Message]], Message]

REPO = "toolshed"
TASK = "Make the checks of toolshed pass."
# The project's own trap, which nobody told the agent: its checks want a seed.
CHECKS = """\
#!/bin/sh
test "$1" = --seed && echo "12 checks passed" && exit
echo "checks: error: the following arguments are required: --seed" >&2
exit 2
"""
SHELL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in the project.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}
MOST_TURNS = 10


def main() -> None:
    """Let the agent do the same task twice in a temporary project."""
    with tempfile.TemporaryDirectory(prefix="agent-loop-") as folder:
        project = Path(folder)
        # An example must not touch your own global memory; leave this line out.
        os.environ["ARCHIVIST_HOME"] = str(project / "home")
        (project / "checks").write_text(CHECKS, "utf-8")
        (project / "checks").chmod(0o755)
        with Bank.open(project, create=True, actor=Actor(ActorKind.ORCHESTRATOR, "example")) as bank:
            for run in ("run-1", "run-2"):
                work(bank, project, run, scripted_model)


def work(bank: Bank, project: Path, run: str, model: Model) -> str:
    """Brief the agent, let it call tools until it answers, and learn from what it did."""
    told = bank.runs.start_run(run, task=TASK, repo=REPO)
    print(f"{run} is told: {told.text.strip() or 'nothing yet'}")
    messages: list[Message] = [{"role": "system", "content": told.text}, {"role": "user", "content": TASK}]
    log: list[Message] = [{"kind": "message", "role": "user", "text": f"{told.text}\n{TASK}"}]
    offered = [SHELL, *for_openai(tools(Toolset.ARCHIVIST))]
    memory = bank.acting_as(Actor(ActorKind.AGENT, "worker"))
    answer = ""
    for _ in range(MOST_TURNS):
        reply = model(messages, offered)
        messages.append(reply)
        if not reply.get("tool_calls"):
            answer = str(reply["content"])
            break
        for each in reply["tool_calls"]:
            name, given = each["function"]["name"], json.loads(each["function"]["arguments"])
            output, code = shell(project, given) if name == "bash" else remembered(memory, name, given)
            print(f"{run} calls {name}: {given}")
            messages.append({"role": "tool", "tool_call_id": each["id"], "content": output})
            text = given["command"] if name == "bash" else json.dumps(given)
            log.append({"kind": "tool_call", "tool": name, "text": text, "output": output, "exit_code": code})
    log.append({"kind": "message", "role": "assistant", "text": answer})
    hand_in(bank, project / f"{run}.jsonl", run, log, is_done=bool(answer))
    return answer


def shell(project: Path, given: dict[str, str]) -> tuple[str, int]:
    """Run a command and return what it printed and how it ended."""
    ran = subprocess.run(
        ["/bin/sh", "-c", given["command"]], cwd=project, capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr, ran.returncode


def remembered(memory: Bank, name: str, given: dict[str, Any]) -> tuple[str, int]:
    """Call one of the memory's tools; what the model got wrong goes back to it."""
    try:
        return json.dumps(call(memory, name, given), ensure_ascii=False), 0
    except ArchivistError as error:
        return f"{error.message} ({error.hint})", 1


def hand_in(bank: Bank, log: Path, run: str, lines: list[dict[str, Any]], *, is_done: bool) -> None:
    """Write the run's log and let the bank learn from it."""
    numbered = ({"run": run, "seq": seq, **line} for seq, line in enumerate(lines, 1))
    log.write_text("".join(json.dumps(line) + "\n" for line in numbered), "utf-8")
    status = EpisodeStatus.SUCCESS if is_done else EpisodeStatus.FAILED
    known = CaptureOverrides(run=run, project=REPO, status=status)
    for done in bank.runs.finish(log, overrides=known).runs:
        helped = sum(each.effect.value == "helpful" for each in done.verdicts)
        print(f"{run} learnt {done.outcome.created}, of {len(done.verdicts)} briefed {helped} helped")


def scripted_model(messages: list[Message], offered: list[Message]) -> Message:
    """Stand in for a model: it asks its memory, believes what it reads, and tries what an error names."""
    names = [each["function"]["name"] for each in offered]
    heard = "\n".join(str(each.get("content") or "") for each in messages)
    seen = [each["content"] for each in messages if each["role"] == "tool"]
    if "12 checks passed" in heard:
        return {"role": "assistant", "content": "The checks pass."}
    if "--seed" in heard:
        return asks("bash", {"command": "./checks --seed 7"})
    if not seen and "recall" in names:
        return asks("recall", {"query": "running the checks"})
    return asks("bash", {"command": "./checks"})


def asks(name: str, given: dict[str, str]) -> Message:
    """Return a model's call of a tool, as a chat completion has it."""
    called = {"id": f"call-{name}", "type": "function"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**called, "function": {"name": name, "arguments": json.dumps(given)}}],
    }


if __name__ == "__main__":
    main()
