"""Give a function that runs an agent a memory with one line, and let its second run profit from the first."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from archivist import Bank
from archivist.edges.integrations.remember import Run, remember

# The project's own trap, which nobody told the agent: its checks want a seed.
CHECKS = """\
#!/bin/sh
test "$1" = --seed && echo "12 checks passed" && exit
echo "checks: error: the following arguments are required: --seed" >&2
exit 2
"""


@remember(repo="toolshed", succeeded=bool)
def agent(task: str, *, brief: str = "", run: Run | None = None) -> bool:
    """Stand in for your agent: it believes its brief, reads errors, and notes each command it runs."""
    print(f"{task} It is told: {brief.strip() or 'nothing yet'}")
    commands = ["./checks", "./checks --seed 7"]
    if commands[1] in brief:
        commands = commands[1:]
    is_done = False
    for command in commands:
        ran = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        is_done = ran.returncode == 0
        if run is not None:
            run.call("bash", command, output=ran.stdout + ran.stderr, exit_code=ran.returncode)
    return is_done


def main() -> None:
    """Run the agent twice in a temporary project, whose bank is the nearest one."""
    with tempfile.TemporaryDirectory(prefix="remember-") as folder:
        project = Path(folder)
        # An example must not touch your own global memory; leave this line out.
        os.environ["ARCHIVIST_HOME"] = str(project / "home")
        Bank.open(project, create=True).close()
        (project / "checks").write_text(CHECKS, "utf-8")
        (project / "checks").chmod(0o755)
        os.chdir(project)
        for _ in range(2):
            print("It is done." if agent("Make the checks of toolshed pass.") else "It is not done.")
        with Bank.open(project) as bank:
            for episode in reversed(bank.runs.episodes()):
                print(episode.summary)
        os.chdir("/")


if __name__ == "__main__":
    main()
