"""Tell one story in a temporary project: an agent fails, its log is learnt from, the next one does not fail.

The agent is scripted, its commands are real. It believes its prompt, reads errors, and writes the log that
Claude Code would write.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TASK = "Make the checks of toolshed pass."
# The project's own trap, which nobody told the agent: its checks want a seed.
CHECKS = """\
#!/bin/sh
test "$1" = --seed && echo "12 checks passed" && exit
echo "checks: error: the following arguments are required: --seed" >&2
exit 2
"""


def main() -> None:
    """Play the story and print every command with its answer."""
    with tempfile.TemporaryDirectory(prefix="archivist-demo-") as folder:
        project = Path(folder).resolve() / "toolshed"
        project.mkdir()
        (project / "checks").write_text(CHECKS)
        (project / "checks").chmod(0o755)
        run(project, "git init --quiet")
        print("# Monday: an agent works in toolshed for the first time.")
        work(project, "monday", told="")
        print("\n# One command finds its log, learns from it and connects the client.")
        play(project, "archivist setup --yes")
        print(
            "\n# Tuesday: the client calls its new hook, and the next agent's prompt begins with that brief."
        )
        event = json.dumps({"session_id": "tuesday", "cwd": str(project), "source": "startup"})
        log = work(project, "tuesday", run(project, "archivist hook claude-code session-start", event))
        play(project, f"archivist run finish {log}")


def work(project: Path, session: str, told: str) -> str:
    """Let the agent run the checks as it was told, else until they pass; return where its log is."""
    lines: list[dict[str, object]] = [{"type": "user", "message": {"role": "user", "content": TASK}}]
    known = re.search(r"use `(\./checks[^`]*)`", told)
    for number, command in enumerate([known[1]] if known else ["./checks", "./checks --seed 7"]):
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=project, capture_output=True, text=True, check=False
        )
        output = (done.stdout + done.stderr).strip()
        print(f"agent $ {command}\n{output}")
        said = f"Exit code {done.returncode}\n{output}" if done.returncode else output
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        is_error = done.returncode != 0
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": said, "is_error": is_error}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}})
    done_text = [{"type": "text", "text": "The checks pass."}]
    lines.append({"type": "assistant", "message": {"role": "assistant", "content": done_text}})
    folder = f".claude/projects/{re.sub(r'[^A-Za-z0-9]', '-', str(project))}"
    (project.parent / folder).mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session, "cwd": str(project), "version": "2.1.0"}
    text = "".join(json.dumps({**line, **common}) + "\n" for line in lines)
    (project.parent / folder / f"{session}.jsonl").write_text(text, "utf-8")
    return f"~/{folder}/{session}.jsonl"


def play(project: Path, command: str) -> None:
    """Print a command as it would be typed, and what it prints without its blank lines."""
    printed = run(project, command).replace(f"{project.parent}/", "~/")
    print("\n".join([f"$ {command}", *filter(None, printed.splitlines())]))


def run(project: Path, command: str, given: str = "") -> str:
    """Run a command in the project, with the folder around it as the home, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ARCHIVIST", "CLAUDE"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    # The story is the same with the memory on a server.
    kept |= {name: os.environ[name] for name in ("ARCHIVIST_STORE",) if name in os.environ}
    environment = {**kept, "HOME": str(project.parent), "PATH": path}
    words = ["/bin/sh", "-c", command]
    done = subprocess.run(
        words, cwd=project, env=environment, input=given, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
