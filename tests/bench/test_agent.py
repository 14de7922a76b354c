"""The bench that runs a task with and without memory: its traps, its sandbox, its stand-in, its intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from bench.agent import MEASURES, AgentRun, Pair, Project, interval, work
from bench.agent_models import DONE, Endpoint, Follower
from bench.agent_shell import TIMED_OUT, AgentShell
from bench.agent_tasks import KINDS, AgentTask, make_tasks

LIMIT_S = 2.0


@contextmanager
def _shell(folder: Path, task: AgentTask | None = None) -> Iterator[AgentShell]:
    repo, hidden = folder / "work" / "repo", folder / ".archivist"
    repo.mkdir(parents=True)
    hidden.mkdir()
    (hidden / "memory.db").write_text("x")
    if task:
        task.lay(repo)
    with AgentShell(folder / "work", repo, hidden, limit_s=LIMIT_S) as shell:
        yield shell


@pytest.mark.parametrize("task", make_tasks(1, 7), ids=lambda task: task.kind)
def test_a_trap_catches_who_does_not_know_and_lets_pass_who_does(task: AgentTask, tmp_path: Path) -> None:
    name = task.objects[2]
    with _shell(tmp_path, task) as shell:
        assert shell.run(task.done(name)).code
        codes = [shell.run(command).code for command in task.plan(name)]
        assert any(codes[:-1])
        assert codes[-1] == 0
        assert shell.run(task.done(name)).code == 0


def test_seeds_change_the_names_and_repeat() -> None:
    one, again, other = make_tasks(2, 1), make_tasks(2, 1), make_tasks(2, 2)
    assert one == again
    assert len({str(task.files) for task in (*one, *other)}) > 3 * len(KINDS)
    assert len({task.kind for task in one}) == len(KINDS) >= 10


def test_commands_have_no_network_no_other_folder_and_a_limit(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with _shell(tmp_path) as shell:
        assert shell.run("echo a > b && cat b").output == "a\n"
        assert shell.run(f"echo x > {outside}/x").code
        assert shell.run("ls -A ../../.archivist").output == ""
        assert "eth0" not in shell.run("cat /proc/net/dev").output
        assert shell.run("sleep 600").code == TIMED_OUT
        # A service that one command starts is there for the next one.
        assert shell.run("sleep 600 & echo $! > pid").code == 0
        assert shell.run("kill -0 $(cat pid)").code == 0
    assert list(outside.iterdir()) == []


def test_memory_comes_from_captured_runs_and_only_with_memory_is_it_told(tmp_path: Path) -> None:
    (task,) = (each for each in make_tasks(1, 1) if each.kind == "odd flag")
    project = Project(tmp_path, task, LIMIT_S)
    project.learn()
    name = task.objects[2]
    runs = [
        work(project, Follower(task.plan(name), name, task.objects[:2]), "r", with_memory=told, steps=8)
        for told in (False, True)
    ]
    assert [run.is_solved for run in runs] == [True, True]
    assert [(run.calls, run.failing) for run in runs] == [(4, 3), (1, 0)]
    assert ["archivist:brief" in str(run.messages) for run in runs] == [False, True]


class _Replies(BaseHTTPRequestHandler):
    """Chat completions from a list."""

    replies: list[str]
    requests: list[dict[str, Any]]

    def do_POST(self) -> None:
        """Answer with the next reply."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(
            {"path": self.path, "key": self.headers.get("Authorization"), **json.loads(body)}
        )
        message = {"role": "assistant", "content": self.replies.pop(0)}
        answer = {"choices": [{"message": message}], "usage": {"prompt_tokens": 90, "completion_tokens": 10}}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def test_a_run_ends_when_the_model_only_repeats_itself(tmp_path: Path) -> None:
    (task,) = (each for each in make_tasks(1, 1) if each.kind == "odd flag")
    stuck = Follower(["false"] * 8, task.objects[2], task.objects[:2])
    run = work(Project(tmp_path, task, LIMIT_S), stuck, "r", with_memory=False, steps=8)
    assert (run.calls, run.failing, run.is_solved) == (3, 3, False)


def test_any_endpoint_can_be_the_agent(tmp_path: Path) -> None:
    (task,) = (each for each in make_tasks(1, 1) if each.kind == "not executable")
    name = task.objects[2]
    _Replies.replies = ["I would look around.", f"```bash\n{task.plan(name)[-1]}\n```", DONE]
    _Replies.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Replies)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        endpoint = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", "m", "no-key")
        run = work(Project(tmp_path, task, LIMIT_S), endpoint, "r", with_memory=False, steps=5)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (run.is_solved, run.calls, run.failing, run.tokens) == (True, 1, 0, 300)
    first = _Replies.requests[0]
    assert (first["path"], first["model"], first["key"]) == ("/v1/chat/completions", "m", "Bearer no-key")
    assert name in first["messages"][-1]["content"]


def test_the_interval_holds_the_difference_and_draws_kinds() -> None:
    def run(failing: int) -> AgentRun:
        return AgentRun(calls=3, failing=failing, tokens=0, is_solved=True, messages=())

    same = [Pair(f"kind {number}", run(2), run(1)) for number in range(10)]
    assert interval(same, MEASURES["failing calls"], 1) == (-1, -1)
    mixed = [Pair(f"kind {number % 5}", run(2), run(2 if number % 5 else 0)) for number in range(10)]
    low, high = interval(mixed, MEASURES["failing calls"], 1)
    assert low < -0.4 < high == 0
