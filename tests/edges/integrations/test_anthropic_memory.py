"""Claude's memory tool in a bank: the SDK's own words, every byte, and no way out of `/memories`."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.edges.integrations.anthropic_memory import (
    ArchivistMemoryTool,
    AsyncArchivistMemoryTool,
    resolve_path,
    size_text,
)
from archivist.records import Actor, ActorKind
from tests.banks import fresh_bank

FOLDER = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
MANY = "is_error: No replacement was performed. Multiple occurrences of old_str"


@pytest.fixture
def tool(bank: Bank) -> ArchivistMemoryTool:
    return ArchivistMemoryTool(bank)


def ask(tool: ArchivistMemoryTool | BetaLocalFilesystemMemoryTool, command: str, **words: object) -> str:
    """Call the tool as the SDK's runner does, and return what the model would read."""
    try:
        answer = tool.call({"command": command, **words})
    except ToolError as error:
        answer = f"is_error: {error.content}"
    assert isinstance(answer, str)
    return answer


def test_it_declares_itself_as_the_memory_tool(bank: Bank) -> None:
    assert ArchivistMemoryTool(bank).to_dict() == {"type": "memory_20250818", "name": "memory"}
    cached = ArchivistMemoryTool(bank, cache_control={"type": "ephemeral"}).to_dict()
    assert cached["cache_control"] == {"type": "ephemeral"}


def test_the_words_are_those_of_the_sdk(tool: ArchivistMemoryTool) -> None:
    said = [
        ask(tool, "view", path="/memories"),
        ask(tool, "create", path="/memories/a.md", file_text="one\ntwo\nthree\n"),
        ask(tool, "create", path="/memories/a.md", file_text="again"),
        ask(tool, "view", path="/memories/a.md", view_range=[2, -1]),
        ask(tool, "str_replace", path="/memories/a.md", old_str="two", new_str="2"),
        ask(tool, "str_replace", path="/memories/a.md", old_str="zwei", new_str="2"),
        ask(tool, "str_replace", path="/memories/a.md", old_str="e", new_str="2"),
        ask(tool, "insert", path="/memories/a.md", insert_line=9, insert_text="x"),
        ask(tool, "insert", path="/memories/a.md", insert_line=0, insert_text="zero\n"),
        ask(tool, "rename", old_path="/memories/a.md", new_path="/memories/sub/b.md"),
        ask(tool, "view", path="/memories"),
        ask(tool, "str_replace", path="/memories/sub", old_str="a", new_str="b"),
        ask(tool, "delete", path="/memories"),
        ask(tool, "delete", path="/memories/sub"),
        ask(tool, "delete", path="/memories/sub"),
        ask(tool, "view", path="/memories/sub"),
    ]
    assert said == [
        f"{FOLDER}\n0B\t/memories",
        "File created successfully at: /memories/a.md",
        "is_error: File /memories/a.md already exists",
        "Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n     3\tthree\n     4\t",
        f"{EDITED}\n     1\tone\n     2\t2\n     3\tthree\n     4\t",
        "is_error: No replacement was performed, old_str `zwei` did not appear verbatim in /memories/a.md.",
        f"{MANY} `e` in lines: 1, 3, 3. Please ensure it is unique",
        "is_error: Invalid `insert_line` parameter: 9. It should be within the range [0, 3].",
        "The file /memories/a.md has been edited.",
        "Successfully renamed /memories/a.md to /memories/sub/b.md",
        f"{FOLDER}\n17B\t/memories\n17B\t/memories/sub/\n17B\t/memories/sub/b.md",
        "is_error: The path /memories/sub is not a file.",
        "is_error: Cannot delete the /memories directory itself",
        "Successfully deleted /memories/sub",
        "is_error: The path /memories/sub does not exist",
        "is_error: The path /memories/sub does not exist. Please provide a valid path.",
    ]


names = st.sampled_from(["a", "b.md", "a/x", "a/y.md", ".hidden", "a/x/deep/er", "ü ö"])
odd_paths = st.sampled_from(["/memories", "/memories/a/../b.md", "/elsewhere", "/memories/../x"])
paths = st.one_of(names.map("/memories/{}".format), odd_paths)
texts = st.text(st.sampled_from("ab\n\r\t ü"), max_size=12)
commands = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": paths},
        optional={"view_range": st.lists(st.integers(-2, 5), min_size=1, max_size=3)},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": paths,
            "old_str": st.text("ab\n", min_size=1, max_size=2),
            "new_str": texts,
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": paths,
            "insert_line": st.integers(-1, 4),
            "insert_text": texts,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)


def comparable(answer: str) -> str:
    """Leave out of a listing how large a folder is, which a disk and a bank tell differently."""
    if not answer.startswith("Here're"):
        return answer
    header, *lines = answer.split("\n")
    kept = [re.sub(r"^[^\t]+", "", line) if line.endswith("/") else line for line in lines[1:]]
    return "\n".join([header, *kept])


@settings(max_examples=60)
@given(st.lists(commands, max_size=14))
def test_it_answers_as_the_sdks_own_tool_for_a_folder(asked: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, fresh_bank(Path(folder, "bank")) as opened:
        theirs, ours = BetaLocalFilesystemMemoryTool(folder), ArchivistMemoryTool(opened)
        for each in asked:
            words = {key: value for key, value in each.items() if key != "command"}
            try:
                expected = ask(theirs, str(each["command"]), **words)
            except OSError:
                # A file in the way of a folder, or a folder moved into itself: ours says so.
                assert ask(ours, str(each["command"]), **words).startswith("is_error: ")
            else:
                assert comparable(ask(ours, str(each["command"]), **words)) == comparable(expected)
            for empty in sorted(theirs.memory_root.rglob("*"), reverse=True):
                # A folder in which nothing is left is none in ours.
                if empty.is_dir() and not any(empty.iterdir()):
                    empty.rmdir()


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.integers(0, 400))
def test_every_byte_comes_back(text: str, times: int) -> None:
    whole = text * times
    with tempfile.TemporaryDirectory() as folder, fresh_bank(folder) as opened:
        tool = ArchivistMemoryTool(opened)
        assert ask(tool, "create", path="/memories/f", file_text=whole).startswith("File created")
        assert tool._files.read("f") == whole
        shown = ask(tool, "view", path="/memories/f").split("\n", 1)[1]
        assert "\n".join(line.split("\t", 1)[1] for line in shown.split("\n")) == whole


def test_a_long_file_changes_only_where_it_is_changed(bank: Bank, tool: ArchivistMemoryTool) -> None:
    ask(tool, "create", path="/memories/log", file_text="".join(f"line {n}\n" for n in range(2_000)))
    before = bank.ledger.verify().entries
    ask(tool, "str_replace", path="/memories/log", old_str="line 1999\n", new_str="the end\n")
    assert bank.ledger.verify().entries - before <= 2
    assert (tool._files.read("log") or "").endswith("line 1998\nthe end\n")


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../etc/passwd",
        "/memories/a/../../etc",
        "/memories/..",
        "/memories/%2e%2e/secret",
        "/memories/%2e%2e%2fsecret",
        "/memories/%252e%252e%252fsecret",
        "/memories/..%2f..%2fetc",
        "/memories/..\\..\\etc",
        "/memories/a\\..\\..\\b",
        "/memories/%2E%2E%5Cx",
        "/memoriesX/a",
        "/memories_evil",
        "memories/a",
        "/etc/passwd",
        "",
        "//memories/a",
        "/memories/a\x00b",
        "/memories/a\nb",
        "/memories/" + "x" * 2_000,
    ],
)
def test_no_path_leads_out(tool: ArchivistMemoryTool, path: str) -> None:
    asked: dict[str, dict[str, object]] = {
        "view": {"path": path},
        "create": {"path": path, "file_text": "x"},
        "str_replace": {"path": path, "old_str": "a", "new_str": "b"},
        "insert": {"path": path, "insert_line": 0, "insert_text": "x"},
        "delete": {"path": path},
        "rename": {"old_path": "/memories/a", "new_path": path},
    }
    for command, words in asked.items():
        assert ask(tool, command, **words).startswith("is_error: Path")
    assert tool._files.files() == []


@given(st.text(st.sampled_from("./\\%2efab "), max_size=20))
def test_what_is_let_in_is_below_memories(rest: str) -> None:
    try:
        path = resolve_path(f"/memories/{rest}")
    except ToolError:
        return
    parts = path.split("/")
    assert path == "" or ("" not in parts and "." not in parts and ".." not in parts)


def test_ordinary_names_are_let_in() -> None:
    assert resolve_path("/memories/100% sure.md") == "100% sure.md"
    assert resolve_path("/memories//a/./b/") == "a/b"
    assert resolve_path("/memories/a/../b") == "b"
    assert resolve_path("/memories/notes..md") == "notes..md"
    assert resolve_path("/memories") == resolve_path("/memories/") == ""


def test_sizes_are_written_as_the_sdk_writes_them() -> None:
    from anthropic.lib.tools._beta_builtin_memory_tool import _format_file_size

    for size in (0, 1, 1023, 1024, 1536, 10**6, 2**20, 5 * 2**30, 2**45):
        assert size_text(size) == _format_file_size(size)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"command": "fly", "path": "/memories/a"},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": "/memories", "view_range": "all"},
        {"command": "create", "path": "/memories/a"},
        {"command": "insert", "path": "/memories/a", "insert_line": "first", "insert_text": "x"},
        {"command": "str_replace", "path": "/memories/a", "old_str": None, "new_str": "x"},
        {"command": "rename", "old_path": "/memories/a"},
    ],
)
def test_half_a_command_is_told_to_the_model(bank: Bank, words: dict[str, object]) -> None:
    with pytest.raises(ToolError, match=r"Unknown command|Invalid `"):
        ArchivistMemoryTool(bank).call(words)
    with pytest.raises(ToolError, match=r"Unknown command|Invalid `"):
        asyncio.run(AsyncArchivistMemoryTool(bank).call(words))


def test_a_text_that_is_everywhere_is_counted_quickly(tool: ArchivistMemoryTool) -> None:
    ask(tool, "create", path="/memories/f", file_text="a\n" * 200_000)
    assert ask(tool, "str_replace", path="/memories/f", old_str="a", new_str="b").endswith(
        "ensure it is unique"
    )
    assert "is empty" in ask(tool, "str_replace", path="/memories/f", old_str="", new_str="b")


def test_folders_move_whole_and_nothing_is_overwritten(tool: ArchivistMemoryTool) -> None:
    for path in ("a/x", "a/y/z", "ab"):
        ask(tool, "create", path=f"/memories/{path}", file_text=path)
    assert ask(tool, "rename", old_path="/memories/a", new_path="/memories/ab").startswith("is_error")
    assert ask(tool, "rename", old_path="/memories/a", new_path="/memories/a/b").startswith("is_error")
    assert ask(tool, "rename", old_path="/memories/a", new_path="/memories/ab/c").startswith("is_error")
    assert ask(tool, "rename", old_path="/memories/a", new_path="/memories/q/w").startswith("Success")
    assert [file.path for file in tool._files.files()] == ["ab", "q/w/x", "q/w/y/z"]
    assert tool._files.read("q/w/y/z") == "a/y/z"
    assert tool.clear_all_memory() == "All memory cleared"
    assert tool._files.files() == []


def test_secrets_stay_out_and_what_is_noted_is_found(bank: Bank, tool: ArchivistMemoryTool) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ask(
        tool, "create", path="/memories/deploy.md", file_text=f"Deploys need the staging flag.\nkey {token}\n"
    )
    assert token not in ask(tool, "view", path="/memories/deploy.md")
    (hit,) = bank.documents.search("staging flag")
    assert hit.name.startswith("memories:deploy.md")
    assert bank.ledger.verify().is_whole


def test_what_the_bank_refuses_is_told_to_the_model(bank: Bank) -> None:
    tool = ArchivistMemoryTool(bank.acting_as(Actor(ActorKind.AGENT, "claude")))
    assert ask(tool, "create", path="/memories/a", file_text="x" * (3 * 2**20)).startswith(
        "is_error: the text has 3145728 characters"
    )
    assert ask(tool, "create", path="/memories/a", file_text="half \ud800").startswith("is_error: the text")
    assert ask(tool, "create", path="/memories/a", file_text="fine").startswith("File created")


def test_the_asynchronous_tool_says_the_same(bank: Bank) -> None:
    tool = AsyncArchivistMemoryTool(bank)

    async def work() -> Sequence[object]:
        asked: list[dict[str, object]] = [
            {"command": "create", "path": "/memories/a", "file_text": "one\n"},
            {"command": "insert", "path": "/memories/a", "insert_line": 1, "insert_text": "two"},
            {"command": "str_replace", "path": "/memories/a", "old_str": "two", "new_str": "2"},
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
            {"command": "view", "path": "/memories/b"},
            {"command": "delete", "path": "/memories/b"},
        ]
        return [await tool.call(each) for each in asked] + [await tool.clear_all_memory()]

    said = asyncio.run(work())
    assert said[4] == "Here's the content of /memories/b with line numbers:\n     1\tone\n     2\t2\n     3\t"
    assert said[5:] == ["Successfully deleted /memories/b", "All memory cleared"]
    assert tool.to_dict()["name"] == "memory"


class Scripted(BaseHTTPRequestHandler):
    """Stand in for the service: it wants one call of the tool after another, and keeps what came back."""

    asked: ClassVar[list[dict[str, object]]] = []
    heard: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.heard.append(body)
        place = len(self.heard) - 1
        if place < len(self.asked):
            use = {"type": "tool_use", "id": f"toolu_{place}", "name": "memory", "input": self.asked[place]}
            content, reason = [use], "tool_use"
        else:
            content, reason = [{"type": "text", "text": "done"}], "end_turn"
        answer = {
            "id": f"msg_{place}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def test_the_sdks_runner_uses_it(bank: Bank) -> None:
    Scripted.heard.clear()
    Scripted.asked[:] = [
        {"command": "create", "path": "/memories/a.md", "file_text": "one"},
        {"command": "create", "path": "/memories/a.md", "file_text": "two"},
        {"command": "view", "path": "/memories/../etc/passwd"},
    ]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with Anthropic(api_key="none", base_url=address, max_retries=0) as client:
            last = client.beta.messages.tool_runner(
                model="scripted",
                max_tokens=10,
                messages=[{"role": "user", "content": "remember"}],
                tools=[ArchivistMemoryTool(bank)],
            ).until_done()
    finally:
        server.shutdown()
        server.server_close()
    assert last.stop_reason == "end_turn"
    assert Scripted.heard[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [each["messages"][-1]["content"][0] for each in Scripted.heard[1:]]
    assert [(each["content"], each.get("is_error", False)) for each in results] == [
        ("File created successfully at: /memories/a.md", False),
        ("File /memories/a.md already exists", True),
        ("Path /memories/../etc/passwd would escape /memories directory", True),
    ]


@pytest.mark.parametrize("sibling", ["foo0", "foo.md", "foo-1", "foo!", "fop"])
def test_a_folder_is_nobody_elses(tool: ArchivistMemoryTool, sibling: str) -> None:
    ask(tool, "create", path=f"/memories/{sibling}", file_text="mine")
    assert "does not exist" in ask(tool, "view", path="/memories/foo")
    assert "successfully" in ask(tool, "create", path="/memories/foo/a.md", file_text="theirs")
    assert sibling not in ask(tool, "view", path="/memories/foo")
    assert "Successfully" in ask(tool, "rename", old_path="/memories/foo", new_path="/memories/bar")
    assert "Successfully" in ask(tool, "delete", path="/memories/bar")
    assert "mine" in ask(tool, "view", path=f"/memories/{sibling}")


def test_a_model_has_no_persons_rights(bank: Bank, tool: ArchivistMemoryTool) -> None:
    ask(tool, "create", path="/memories/a.md", file_text="by the model")
    ask(
        ArchivistMemoryTool(bank, actor=Actor(ActorKind.AGENT, "w1")),
        "create",
        path="/memories/b.md",
        file_text="x",
    )
    with bank.reading() as reader:
        writers = [str(each.entry.actor) for each in reader.changes(kind="document")]
    assert writers == ["agent:claude", "agent:w1"]


@pytest.mark.parametrize(
    "words",
    [
        {"command": "view", "path": "/memories/{long}"},
        {"command": "view", "path": "{long}"},
        {"command": "str_replace", "path": "/memories/a", "old_str": "{long}", "new_str": "b"},
        {"command": "{long}"},
    ],
)
def test_an_error_never_repeats_a_long_argument(tool: ArchivistMemoryTool, words: dict[str, str]) -> None:
    ask(tool, "create", path="/memories/a", file_text="x")
    long = {name: value.format(long="y" * 50_000) for name, value in words.items()}
    with pytest.raises(ToolError) as caught:
        tool.execute(SimpleNamespace(**long))  # type: ignore[arg-type]
    assert len(str(caught.value)) < 1_000
