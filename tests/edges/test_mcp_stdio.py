"""`archivist mcp` as a real process: the SDK's client at its stdin and stdout, and lines written by hand."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from archivist import Bank
from archivist.recall.query import Query
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log
from tests.workspace.trees import DOCUMENTED, make

COMMAND = str(Path(sys.executable).parent / "archivist")
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "by-hand", "version": "0"},
}


@pytest.fixture
def made(archivist: Command, project: Path) -> Path:
    """Return a project that has a bank with a lesson."""
    assert archivist("init").code == 0
    assert archivist("lessons", "add", "Run make db-up before the tests").code == 0
    return project


class Spoken:
    """A server process, spoken to in lines."""

    def __init__(self, *words: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "mcp", *words],
            cwd=cwd,
            env=dict(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0

    def write(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its answer."""
        self._number += 1
        self.write(
            json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode()
        )
        answer = self.read()
        assert answer["id"] == self._number
        return answer

    def read(self) -> dict[str, Any]:
        """Return the next line that it says."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def shake_hands(self) -> dict[str, Any]:
        """Open the session."""
        answer = self.ask("initialize", **INITIALIZE)
        self.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        result: dict[str, Any] = answer["result"]
        return result

    def end(self) -> tuple[int, bytes, bytes]:
        """Hang up; return the exit code and what was still said."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextmanager
def speaking(*words: str, cwd: Path) -> Iterator[Spoken]:
    """Start a server, and see to its end whatever happens."""
    spoken = Spoken(*words, cwd=cwd)
    try:
        yield spoken
    finally:
        if spoken.process.poll() is None:
            spoken.process.kill()
            spoken.process.communicate()


@pytest.mark.req("C5")
@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_a_client_starts_the_command_and_uses_it(made: Path, era: str, version: str) -> None:
    async def talk() -> None:
        server = StdioServerParameters(
            command=COMMAND, args=["mcp", "--tools", "default,cognitive"], cwd=made, env=dict(os.environ)
        )
        async with Client(server, mode=era) as client:
            assert client.protocol_version == version
            assert client.server_info is not None
            assert client.server_info.name == "archivist"
            assert "recall_search" in {tool.name for tool in (await client.list_tools()).tools}
            told = await client.call_tool("brief", {"task": "run the tests"})
            assert told.structured_content["lessons"] == ["m-001"]
            kept = await client.call_tool("lesson_add", {"summary": "The linter wants Python 3.11"})
            assert not kept.is_error
            wrong = await client.call_tool("recall", {"query": ""})
            assert wrong.is_error
            (said,) = wrong.content
            assert isinstance(said, TextContent)
            assert "hint:" in said.text

    asyncio.run(talk())
    with Bank.open(made) as bank:
        assert sorted(str(each.actor.kind) for each in bank.lessons.query(Query())) == ["agent", "human"]


def test_the_handshake_of_2025_is_answered_in_its_own_words(made: Path) -> None:
    with speaking(cwd=made) as spoken:
        hello = spoken.shake_hands()
        assert hello["protocolVersion"] == "2025-06-18"
        assert hello["serverInfo"]["name"] == "archivist"
        assert set(hello["capabilities"]) == {"tools", "resources", "prompts"}
        listed = spoken.ask("tools/list")["result"]["tools"]
        assert all({"inputSchema", "outputSchema", "annotations"} <= set(tool) for tool in listed)
        answer = spoken.ask("tools/call", name="recall", arguments={"query": "tests"})["result"]
        assert answer["structuredContent"] == json.loads(answer["content"][0]["text"])
        assert spoken.end() == (0, b"", b"")


def test_lines_that_are_no_messages_are_answered_and_do_not_end_it(made: Path) -> None:
    half = json.dumps({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"query": "\ud800"}})
    wrong: list[tuple[bytes, int, int | None]] = [
        (b"garbage", -32700, None),
        (b"{}", -32600, None),
        (b"[1, 2]", -32600, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'"' + b"x" * 300_000, -32700, None),
        (half.encode(), -32700, 8),
        (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
    ]

    def refused(spoken: Spoken) -> None:
        for line, code, name in wrong:
            spoken.write(line)
            answer = spoken.read()
            assert (answer["error"]["code"], answer["id"]) == (code, name), line[:40]

    with speaking(cwd=made) as spoken:
        refused(spoken)
        spoken.write(b"")
        assert spoken.shake_hands()["serverInfo"]["name"] == "archivist"
        refused(spoken)
        spoken.write(b'{"jsonrpc": "2.0", "method": "nothing/known"}')
        assert spoken.ask("no/such/method")["error"]["code"] == -32601
        assert spoken.ask("tools/call", name="nothing")["error"]["code"] == -32602
        assert spoken.ask("tools/call", arguments={})["error"]["code"] == -32602
        assert not spoken.ask("tools/call", name="brief")["result"].get("isError")


@pytest.mark.req("W3", "W5", "W6")
def test_the_tools_of_a_workspace_work_without_a_bank(project: Path, archivist: Command) -> None:
    make(project, DOCUMENTED)
    scope = {"workspace": "devtools", "repository": "metan"}
    with speaking("--tools", "workspace,default", cwd=project) as server:
        server.shake_hands()

        def call(name: str, **given: Any) -> dict[str, Any]:
            answer: dict[str, Any] = server.ask("tools/call", name=name, arguments=given)["result"]
            return answer

        plans = call("retrieve_plans", scope=scope)["structuredContent"]["plans"]
        assert [plan["name"] for plan in plans] == ["Cache"]
        item = {"text": "Linking fails without a lock file.", "kind": "lesson"}
        saved = call("save_memory", scope="devtools", items=[item])["structuredContent"]["items"]
        assert saved[0]["result"] == "saved"
        lessons = call("retrieve_learnings", scope="devtools")["structuredContent"]["lessons"]
        assert any("Linking fails" in each["content"] for each in lessons)
        assert "no bank" in call("recall", query="lock")["content"][0]["text"]
    assert not (project / ".archivist").exists()
    asked = json.dumps({"scope": scope})
    assert json.loads(archivist("tools", "call", "retrieve_plans", asked).out)["total"] == 1


def test_without_a_bank_it_starts_and_a_bank_made_later_is_found(archivist: Command, project: Path) -> None:
    with speaking(cwd=project) as spoken:
        spoken.shake_hands()
        refused = spoken.ask("tools/call", name="brief", arguments={})["result"]
        assert refused["isError"]
        assert "archivist setup makes one" in refused["content"][0]["text"]
        assert list(project.iterdir()) == []
        assert archivist("init").code == 0
        assert not spoken.ask("tools/call", name="brief", arguments={})["result"].get("isError")
        assert spoken.end()[0] == 0


def test_a_client_that_disappears_ends_it_and_what_was_begun_is_kept(made: Path) -> None:
    with speaking(cwd=made) as spoken:
        spoken.shake_hands()
        call = {"name": "lesson_add", "arguments": {"summary": "Told by somebody who has gone since"}}
        request = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call}
        spoken.write(json.dumps(request).encode())
        assert spoken.process.stdin is not None
        assert spoken.process.stdout is not None
        spoken.process.stdout.readline()
        spoken.process.stdout.close()
        spoken.process.stdin.close()
        assert spoken.process.wait(timeout=30) == 0
        assert spoken.process.stderr is not None
        spoken.process.stderr.close()
    with Bank.open(made) as bank:
        assert len(bank.lessons.query(Query())) == 2


def test_an_interrupt_ends_it_at_once(made: Path) -> None:
    with speaking(cwd=made) as spoken:
        spoken.shake_hands()
        spoken.process.send_signal(signal.SIGINT)
        code, out, err = spoken.end()
        assert (code, out, err) == (-signal.SIGINT, b"", b"")


def test_bank_and_actor_are_named_before_or_after_the_word_mcp(made: Path, tmp_path: Path) -> None:
    with speaking("--bank", str(made), "--actor", "agent:w1:maker", cwd=tmp_path) as spoken:
        spoken.shake_hands()
        answer = spoken.ask("tools/call", name="lesson_add", arguments={"summary": "Say who you are"})
        assert not answer["result"].get("isError")
        assert spoken.end()[0] == 0
    with Bank.open(made) as bank:
        assert str(bank.lessons.get("m-002").actor) == "agent:w1:maker"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--tools", "nothing"], 4, "no set of tools 'nothing'"),
        (["--actor", "robot:x"], 4, "unknown actor kind 'robot'"),
        (["--http", "0.0.0.0:0"], 4, "beyond this machine"),
        (["--http", "example.com:80"], 4, "beyond this machine"),
        (["--http", "127.0.0.1"], 4, "is not an address"),
        (["--http", "127.0.0.1:99999"], 4, "is not an address"),
        (["--http", "::1:80"], 4, "is not an address"),
        (["--http", "127.0.0.1:0"], 5, "no bank at"),
        (["--unheard"], 2, "No such option"),
    ],
)
def test_what_cannot_be_served_is_said_before_serving(
    archivist_process: Command, words: list[str], code: int, said: str
) -> None:
    ran = archivist_process("mcp", *words)
    assert ran.code == code
    assert said in ran.err
    assert ran.out == ""


def test_help_loads_no_sdk(archivist_process: Command) -> None:
    ran = archivist_process("mcp", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert ran.code == 0
    assert "--tools" in ran.out
    assert "pydantic" not in ran.err
    assert "mcp_types" not in ran.err


def test_the_example_client_runs() -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "mcp_client.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode()
    assert '"lessons": ["m-001"]' in said
    assert '"name": "m-002"' in said
    assert "memory_get(id) failed: no record" in said


@pytest.mark.parametrize(("name", "is_told"), [("billing", True), ("pottery", False)])
def test_a_brief_is_about_the_folder_that_the_server_was_started_in(
    made: Path, name: str, is_told: bool
) -> None:
    with Bank.open(made) as bank:
        for project in ("billing", "shelves"):
            log = agent_log(made / f"{project}.jsonl", MISSING_MODULE, session=project, project=project)
            bank.runs.finish(log)
    (made / name / ".git").mkdir(parents=True)
    if is_told:
        with Bank.open(made, folder=made / name) as bank:
            bank.lessons.claim(name)
    with speaking(cwd=made / name) as server:
        server.ask("initialize", **INITIALIZE)
        told = server.ask("tools/call", name="brief", arguments={"task": "Anything"})
    assert ("freezegun" in json.dumps(told["result"])) is is_told
