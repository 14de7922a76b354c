"""A real MCP server over HTTP for tests: `archivist mcp --http` as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archivist import Bank

COMMAND = str(Path(sys.executable).parent / "archivist")
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "0"},
    },
}


@contextmanager
def served(
    bank: Bank, place: str, heard: list[bytes] | None = None, *, settings: tuple[str, ...] = ()
) -> Iterator[str]:
    """Serve the bank at a place; what the server says to the end is heard."""
    flags = [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        [COMMAND, *flags, "mcp", "--http", place, "--json", "--tools", "all"],
        cwd=bank.root,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    said = b"".join(process.stdout.readline() for _ in range(3))
    try:
        yield json.loads(said)["url"]
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert b"Traceback" not in err, err.decode()
        if heard is not None:
            heard.append(err)


def token(bank: Bank, actor: str) -> dict[str, str]:
    """Return the header of somebody who holds a token."""
    return {"Authorization": f"Bearer {bank.tokens.create(actor).secret}"}
