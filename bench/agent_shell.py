"""Run an agent's commands in one folder: no network, nothing else to write to, and a time limit each.

One process in namespaces of its own answers all commands of a run, so that a service which one command starts
is there for the next one and is gone when the run ends. Needs Linux and `unshare` (util-linux).
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

TIMED_OUT = 124
# Everything outside `work` is read-only, and the memory's own folder is empty.
_MOUNTS = (
    "mount --bind {work} {work} && mount -t tmpfs none {hidden} && mount -o remount,bind,ro / && exec {run}"
)
# Output goes to a file: a service in the background would hold a pipe open.
_ANSWER = """
import fcntl, json, os, signal, socket, struct, subprocess, sys, tempfile
with socket.socket() as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sh", b"lo", 0x41))
for line in sys.stdin:
    ask = json.loads(line)
    with tempfile.TemporaryFile() as output:
        ran = subprocess.Popen(["bash", "-c", ask["command"]], cwd=ask["folder"], stdin=subprocess.DEVNULL,
                               stdout=output, stderr=output, start_new_session=True)
        try:
            code = ran.wait(ask["limit_s"])
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
            ran.wait()
            code = 124
        output.seek(0)
        text = output.read(100_000).decode("utf-8", "replace")
    print(json.dumps({"code": code, "output": text}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command came to."""

    code: int
    output: str


class AgentShell:
    """A sandboxed shell for one run; `work` is the only folder that commands can change."""

    def __init__(self, work: Path, repo: Path, hidden: Path, *, limit_s: float = 5.0) -> None:
        self._repo = repo
        self._limit_s = limit_s
        home = work / "home"
        home.mkdir(exist_ok=True)
        run = shlex.join([sys.executable, "-I", "-c", _ANSWER])
        mounts = _MOUNTS.format(work=shlex.quote(str(work)), hidden=shlex.quote(str(hidden)), run=run)
        self._process = subprocess.Popen(
            ["unshare", "-rnmpf", "--kill-child", "--mount-proc", "sh", "-c", mounts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(home),
                "TMPDIR": str(home),
                "LANG": "C.UTF-8",
            },
        )

    def run(self, command: str) -> CommandResult:
        """Run one command in the repository."""
        assert self._process.stdin
        assert self._process.stdout
        ask = {"command": command, "folder": str(self._repo), "limit_s": self._limit_s}
        print(json.dumps(ask), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the sandbox ended; it needs unshare and user namespaces")
        answer = json.loads(line)
        if answer["code"] == TIMED_OUT:
            answer["output"] += f"Command timed out after {self._limit_s:g} s"
        return CommandResult(answer["code"], answer["output"])

    def __enter__(self) -> AgentShell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
