"""Play the main job on a temporary bank: runs come in, lessons appear, the next run is told and judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NULLS = {"severity": "bug", "category": "code", "description": "Missing null checks in API response handlers"}
NULLS_AGAIN = {
    "severity": "warning",
    "category": "code",
    "description": "API handlers: response null checks missing",
}
RETRIES = {"severity": "warning", "category": "code", "description": "HTTP client retries without a backoff"}
NAMES = {"severity": "recommendation", "category": "code", "description": "Rename the helper in the parser"}

REFUSED = "preview: error: the following arguments are required: --region"
FAILS, WORKS, LOOKS = ("preview up", REFUSED), ("preview up --region eu", "ready"), ("git log -1", "a1b2c3")

# What each run called and what its reviewers found; the last two were told what the earlier ones had learnt.
RUNS = {
    "monday-billing": ([FAILS, WORKS], [NULLS, RETRIES, NAMES]),
    "tuesday-search": ([FAILS, WORKS], [NULLS_AGAIN]),
    "wednesday-login": ([WORKS], []),
    "thursday-export": ([LOOKS], [NULLS]),
}


def main() -> None:
    """Run the demo and print every command with its answer."""
    with tempfile.TemporaryDirectory(prefix="archivist-demo-") as folder:
        project = Path(folder)
        play(project, "init")
        play(project, "lessons", "add", "User prefers a single bundled pull request")
        for run, (calls, findings) in RUNS.items():
            print(f"\n--- {run} ---")
            play(project, "run", "start", "--run", run, "--domain", "code")
            write_log(project / f"{run}-calls.jsonl", run, calls)
            write_events(project / f"{run}.jsonl", run, findings)
            play(project, "run", "finish", f"{run}-calls.jsonl", f"{run}.jsonl")
        print("\n--- what was learnt, and did it help? ---")
        play(project, "lessons", "list")
        play(project, "audit", "report")
        play(project, "lessons", "history", "m-002")
        play(project, "verify")
        print("\n--- the brief for the next run ---")
        play(project, "brief", "--domain", "code")


def play(project: Path, *words: str) -> None:
    """Print a command as it would be typed, and what it prints."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    print(f"$ archivist {shown}", flush=True)
    command = [str(Path(sys.executable).parent / "archivist"), *words]
    environment = {
        **os.environ,
        "ARCHIVIST_HOME": str(project / "home"),
        "ARCHIVIST_ACTOR": "orchestrator:demo",
    }
    subprocess.run(command, cwd=project, env=environment, check=True)


def write_log(path: Path, run: str, calls: list[tuple[str, str]]) -> None:
    """Write a run's tool calls as a coding agent's log holds them."""
    lines: list[dict[str, object]] = [{"type": "system", "subtype": "init", "cwd": "/home/me/shop"}]
    for number, (command, output) in enumerate(calls):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        failed = output == REFUSED
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}})
    path.write_text("".join(json.dumps({**line, "session_id": run}) + "\n" for line in lines), "utf-8")


def write_events(path: Path, run: str, findings: list[dict[str, str]]) -> None:
    """Write a run's events as an orchestrator does."""
    verdict = {"archetype": "guardian", "verdict": "changes" if findings else "approve", "findings": findings}
    events = [("run.start", {"task": run}), ("review.verdict", verdict), ("run.complete", {})]
    with path.open("w", encoding="utf-8") as stream:
        # The numbers of events are a run's: those of its calls come first.
        for seq, (kind, data) in enumerate(events, 100):
            stream.write(json.dumps({"run_id": run, "seq": seq, "type": kind, "data": data}) + "\n")


if __name__ == "__main__":
    main()
