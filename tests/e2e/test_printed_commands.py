"""Every command that the README and the guides print runs as printed, in a scene that has what it names."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from archivist.edges.cli.group import COMMANDS, cli
from tests.commands import PROGRAM
from tests.e2e import client_homes, scripted_agent
from tests.e2e.test_learning_from_failure import FILES, TASKS
from tests.workspace.sessions import Session
from tests.workspace.trees import make

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
# Their commands run in tests of their own, since they need servers or go on for ever: test_store_command.py,
# test_citus.py, test_team_sync.py, test_mcp_http.py … What installs packages runs in test_packages.py.
ELSEWHERE = {
    "core.md", "http.md", "mcp.md", "orchestrator.md", "pages.md", "postgres.md", "scale-out.md", "team.md",
}  # fmt: skip
_INSTALLS = re.compile(r"(?m)^(?:pipx?|uvx?|docker) .*\n")
_BLOCKS = re.compile(r"(?ms)^(?P<fence>````?)(?P<language>sh|console)\n(?P<text>.*?)^(?P=fence)$")
_TYPED = re.compile(r"(?m)^\$ (.*)$")


@dataclass(frozen=True)
class Scene:
    """What a document's commands need: scripts to run before a block, and the codes that are not 0."""

    before: Mapping[int, str] = field(default_factory=dict)
    ends: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


_AGENT = shlex.join([sys.executable, scripted_agent.__file__, "mend", "--repo", "."])
_LESSONS = (
    "Pin the linter", "Ask before deploys", "Tests need Redis", "Run make first", "Images are large",
    "Docs live in wiki", "Cache the wheels",
)  # fmt: skip
_ADD = "; ".join(f"archivist --actor agent:kit lessons add '{lesson}'" for lesson in _LESSONS)
_COLLEAGUE = (
    "mkdir c; cd c; archivist init; archivist lessons add 'Squash the commits'; archivist share ../shared;"
    " cd ../shared; for each in lessons audit;"
    " do mv $each/*.jsonl $each/01K9ZQ4T7M0000000000000000.jsonl; done"
)
_CONFLICT = (
    'archivist workspace save vllm/design "Keep AGENTS.md under 300 lines. The kernels need more room."'
)
_UNSUPPORTED = (
    "archivist tools call lesson_add"
    ' \'{"summary": "Use `tox -e py311` for the tests", "run": "run-1", "evidence": ["run-1"]}\''
)
_SHOP = "user/memory/workspaces/shop/lessons.md"
_PROFILE = """<!-- budget: 5 lines -->
# Profile

- In devtools, run `pnpm test --filter metan` before every commit
- The shop workspace deploys on Fridays only, never on Mondays
- Answers are short
- Commits are small
"""

SCENES = {
    "README.md": Scene(
        before={
            1: "archivist init; mkdir logs; cp run.jsonl logs/r-1.jsonl; echo 'No module kiln' > build.log"
        },
    ),
    "agents.md": Scene(before={0: "git init -q"}),
    "damage.md": Scene(before={0: "archivist init; archivist lessons add 'Ask early'"}),
    "host-agent.md": Scene(
        before={
            0: f"archivist init; {_AGENT} --log run-1.jsonl --session run-1 --task {shlex.quote(TASKS[0])};"
            " archivist capture run-1.jsonl"
        },
        ends={2: {_UNSUPPORTED: 4}},
        files=FILES,
    ),
    "layers.md": Scene(
        before={
            0: "archivist init",
            2: "mkdir shared; printf '# Swarm\\n\\n## Ports\\nThe API listens on 8080\\n' > shared/team.md",
            4: "printf 'cat > /dev/null; echo done\\n' > worker.sh",
            7: "mkdir out; printf 'diff --git a/x b/x\\n' > out/fix.patch",
        },
        ends={7: {"archivist artifacts verify": 1}},
    ),
    "learn-from-runs.md": Scene(
        before={
            0: f"{_AGENT} --log run-1.jsonl --session run-1 --task {shlex.quote(TASKS[0])}",
            3: f"{_ADD}; archivist export backup; {_COLLEAGUE}",
            5: "printf '#!/bin/sh\\ncat run-1.jsonl\\n' > ~/your-agent; chmod +x ~/your-agent",
        },
        files=FILES,
    ),
    "model.md": Scene(before={0: "archivist init"}, ends={0: {"archivist model try": 4}}),
    "recall.md": Scene(before={0: "archivist init; archivist lessons add 'pydicom needs pytest to test'"}),
    "stream-and-archive.md": Scene(
        before={
            0: "archivist init",
            1: "archivist stream cycle --role qa;"
            " archivist stream log 'Still blocked by #84, waiting for ops' --role qa;"
            " archivist stream cycle --role qa; archivist stream log '#84 blocks us a third time' --role qa",
        },
        files={
            "docs/decisions/adr-007-runners.md": "# ADR-7: A pool of runners\n\n"
            "Tests run on a pool of eight runners.\n\n## Consequences\n\n```sh\nmake pool SIZE=8\n```\n",
            "bank.md": "# Bank\n\n## Recent Cycles\n\n- PR #103: Flaky latency test fix (Cycle 193)\n",
        },
    ),
    "upgrade.md": Scene(before={0: "archivist init"}),
    "workspace.md": Scene(
        files={
            "resources/workspaces/vllm/OVERVIEW.md": "---\nhide: true\n---\n# vLLM\n\nIt serves models.\n",
            "resources/workspaces/vllm/design/_plans/dbo.md": "# Dual Batch Overlap\n\nBatches overlap.\n",
        },
        before={1: "archivist init"},
        ends={0: {"archivist workspace lint": 1}, 4: {_CONFLICT: 7}},
    ),
    "workspace-memory.md": Scene(
        files={
            "agent/rules/common/user-profile.md": _PROFILE,
            _SHOP: "# Lessons\n\n### [2026-03-01] Deployments need the maintainer\n\n**Category:** process\n"
            "**Tags:** deploy\n\nAsk the maintainer before `docker compose up`.\n\n---\n",
            "resources/workspaces/shop/OVERVIEW.md": "---\nname: Shop\ndescription: The shop.\n---\n",
            "resources/workspaces/devtools/common/OVERVIEW.md": "---\nname: All\ndescription: Shared.\n---\n",
            "notes.md": "# Cut a release\n\nTag it, then push the tag.\n",
        },
        before={2: "archivist init; for n in 1 2 3 4 5 6 7; do archivist lessons add $n$n$n; done"},
        ends={
            1: {"archivist workspace hot": 1},
            2: {"archivist workspace hot promote m-007 --file user-profile": 4},
        },
    ),
}  # fmt: skip


def _blocks(path: Path) -> list[str]:
    """Return the blocks of commands of a document, without the lines that install packages."""
    found = (
        "\n".join(_TYPED.findall(block["text"])) if block["language"] == "console" else block["text"]
        for block in _BLOCKS.finditer(path.read_text("utf-8"))
    )
    return [_INSTALLS.sub("", block) for block in found]


def _run(folder: Path, home: Path, script: str) -> dict[str, int]:
    """Run a script, with yes to what `setup` asks; return each command that failed, with its code."""
    failed = folder.parent / "failed"
    trap = f'trap \'printf "%s %s\\n" $? "$BASH_COMMAND" >> {failed}\' ERR\n'
    path = os.pathsep.join([str(Path(PROGRAM).parent), str(home), "/usr/bin", "/bin"])
    environment = {**os.environ, "HOME": str(home), "PATH": path, "RUN": "r-1", "TASK": TASKS[2]}
    terminal, stream = pty.openpty()
    os.write(terminal, b"y\n" * 4)
    done = subprocess.run(
        ["bash", "-c", trap + script],
        cwd=folder,
        env=environment,
        stdin=stream if re.search("archivist (setup|model allow)", script) else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        start_new_session=True,
    )
    os.close(stream)
    os.close(terminal)
    print(done.stdout)
    assert "Traceback" not in done.stdout
    lines = failed.read_text().splitlines() if failed.exists() else []
    failed.unlink(missing_ok=True)
    return {command: int(code) for code, _, command in (line.partition(" ") for line in lines)}


def test_every_document_with_commands_has_a_scene() -> None:
    printing = {path.name for path in (*GUIDES.glob("*.md"), ROOT / "README.md") if _blocks(path)}
    assert printing == set(SCENES) | ELSEWHERE


def _printed_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the words of each command of the guides of which no other test reads every one."""
    for path in sorted(GUIDES / name for name in ELSEWHERE - {"core.md", "orchestrator.md"}):
        text = re.sub(r"\\\n\s*", "", path.read_text("utf-8"))
        for line in re.findall(r"(?m)^ {0,4}(?:\$ )?(?:\w+=\S+ )*archivist ([^`\n]+)$", text):
            words = shlex.split(re.sub(r"\s[|&>].*", "", line), comments=True)
            # A sentence that begins with the name is no command.
            if words[0] in COMMANDS or words[0].startswith("-"):
                yield path.name, words


@pytest.mark.parametrize(("name", "words"), list(_printed_commands()))
def test_a_printed_command_is_one_that_there_is(name: str, words: list[str]) -> None:
    """Also where it needs a server, a key or a colleague: its name, options and arguments are right."""
    command: click.Command = cli
    context = cli.make_context("archivist", list(words))
    while isinstance(command, click.Group) and (left := [*context._protected_args, *context.args]):
        found, inner, rest = command.resolve_command(context, left)
        assert inner is not None, (name, words)
        command, context = inner, inner.make_context(found, rest, parent=context)


@pytest.mark.parametrize("name", SCENES)
def test_the_commands_run_as_printed(name: str, tmp_path: Path, home: Path) -> None:
    scene = SCENES[name]
    folder = make(tmp_path / "cartwheel", scene.files)
    folder.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    if name == "README.md":
        app = client_homes.make_repository(folder / "my-app")
        shutil.copy(client_homes.claude_code(home, app), folder / "run.jsonl")
    (folder / "agent-transcripts").mkdir()
    for run in ("s-one", "s-two") if name == "workspace-memory.md" else ():
        session = Session(run)
        session.user("Fix the failing engine test")
        for _ in range(3):
            session.sh("pytest tests/test_engine.py", "KeyError: 'state_id'", 1)
            session.say("The loader renames `state_id` to `stateId` before the engine sees it.")
        session.end()
        session.write(folder / "agent-transcripts" / f"{run}.jsonl")
    for number, block in enumerate(_blocks(ROOT / name if name == "README.md" else GUIDES / name)):
        assert _run(folder, home, scene.before.get(number, "")) == {}
        assert _run(folder, home, block) == scene.ends.get(number, {})


def test_the_session_in_the_readme_is_what_the_demo_prints() -> None:
    """In thirty lines: an agent fails, the next one does not."""
    words = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    printed = done.stdout.splitlines()
    assert (done.returncode, len(printed) <= 30) == (0, True), done.stderr
    (session,) = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    rest = iter(printed)
    assert [line for line in session.splitlines() if line not in rest] == []
    assert printed[-2].endswith("of 1 briefed 1 helped")
