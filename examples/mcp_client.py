"""Use the memory as an MCP client does: start `archivist mcp`, be briefed, look something up, keep a lesson.

The project is a temporary folder. Needs the extra: pip install 'archivist-memory[mcp]'.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import Implementation, TextContent

ARCHIVIST = str(Path(sys.executable).parent / "archivist")


def main() -> None:
    """Make a bank with one lesson, and let two runs of an agent use it."""
    with tempfile.TemporaryDirectory(prefix="archivist-mcp-") as name:
        project = Path(name)
        for words in (["init"], ["lessons", "add", "Run make db-up before the tests"]):
            subprocess.run([ARCHIVIST, *words], cwd=project, check=True, stdout=subprocess.DEVNULL)
        asyncio.run(first_run(project))
        # What an agent suggests waits until a person approves it, or a run meets it.
        subprocess.run([ARCHIVIST, "lessons", "approve", "m-002"], cwd=project, check=True)
        asyncio.run(next_run(project))


async def first_run(project: Path) -> None:
    """Be briefed, fail, and keep what was learnt."""
    async with connected(project) as client:
        print(f"speaks {client.protocol_version}, offers: {', '.join(await names(client))}\n")
        await call(client, "brief", task="run the test suite")
        lesson = {
            "summary": "`npm ci` fails on Node 18: use Node 20",
            "rule": "IF `npm ci` says EBADENGINE THEN switch to Node 20",
            "tags": ["npm", "node"],
            "importance": 0.7,
        }
        await call(client, "lesson_add", **lesson)
        prompt = await client.get_prompt("reflect", {"focus": "the failed install"})
        print("reflect asks:", text_of(prompt.messages[0].content).splitlines()[0], "\n")


async def next_run(project: Path) -> None:
    """Find what the first run learnt."""
    async with connected(project) as client:
        await call(client, "recall", query="npm ci EBADENGINE", limit=1)
        await call(client, "memory_get", id="m-999")


def connected(project: Path) -> Client:
    """Return a client that starts the server in the project's folder."""
    server = StdioServerParameters(command=ARCHIVIST, args=["mcp"], cwd=project, env=dict(os.environ))
    return Client(server, client_info=Implementation(name="example", version="1"))


async def names(client: Client) -> list[str]:
    """Return the names of the tools."""
    return [tool.name for tool in (await client.list_tools()).tools]


async def call(client: Client, tool: str, **arguments: Any) -> None:
    """Call a tool and print what it answers."""
    answer = await client.call_tool(tool, arguments)
    failed = " failed" if answer.is_error else ""
    print(f"{tool}({', '.join(arguments)}){failed}: {text_of(answer.content[0])}\n")


def text_of(content: object) -> str:
    """Return the text of a message or an answer; the memory sends nothing else."""
    return content.text if isinstance(content, TextContent) else ""


if __name__ == "__main__":
    main()
