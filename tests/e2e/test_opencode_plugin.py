"""The plugin for OpenCode, run by node as both versions of the client call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archivist.doctor import LOG
from tests.e2e import client_homes
from tests.e2e.conftest import Setup

_NODE = shutil.which("node")
# How three generations of the client take a plugin from a module.
_BEFORE_1_3_4 = """
const found = []
for (const [, make] of Object.entries(module)) found.push(await make({ directory: folder }))
const [hooks, ...others] = found
if (others.length) throw new Error("more than one plugin")
"""
_SINCE_1_3_4 = """
const { id, server } = module.default
if (!id) throw new Error("must export id")
const hooks = await server({ directory: folder })
"""
_SINCE_2 = """
const plugin = Object.hasOwn(module, "default") ? module.default : undefined
if (typeof plugin !== "object" || typeof plugin.id !== "string") throw new Error("Expected object")
"""
# A session, a call that fails and a turn's end in the client's order, then what the model was given.
_HOSTS = {
    1: """
const system = { system: ["You are an agent."] }
await hooks["experimental.chat.system.transform"]({ sessionID: session }, system)
await hooks["experimental.chat.system.transform"]({ sessionID: session }, system)
const call = { tool: "bash", sessionID: session, args: { command } }
const output = { output: error, metadata: { exit: 1 } }
await hooks["tool.execute.after"](call, output)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: session } } })
console.log(JSON.stringify([...system.system, output.output]))
""",
    2: """
const found = {}
const get = async () => ({ location: { directory: folder } })
await plugin.setup({ session: { get, hook: async (name, call) => (found[name] = call) } })
const event = { sessionID: session, system: [] }
await found.context(event)
await found.context(event)
console.log(JSON.stringify(event.system.map((part) => part.text)))
""",
}


@pytest.mark.req("F12")
@pytest.mark.skipif(_NODE is None, reason="there is no node here")
@pytest.mark.parametrize(("loader", "version"), [(_BEFORE_1_3_4, 1), (_SINCE_1_3_4, 1), (_SINCE_2, 2)])
def test_a_session_of_opencode_is_told_and_learnt_from(
    loader: str, version: int, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in (1, 2):
        client_homes.opencode(fresh_home, app, number)
    assert run(app, "setup", "--yes").code == 0
    client_homes.opencode(fresh_home, app, 3)
    session = f"ses_{3:026d}"
    said = {
        "folder": str(app),
        "session": session,
        "command": client_homes.FAILS,
        "error": client_homes.ERROR,
    }
    told = _play(f"{loader}{_HOSTS[version]}", said, fresh_home)
    briefs = [text for text in told if "<!-- archivist:brief " in text]
    assert len(briefs) == (3 if version == 1 else 2)
    assert all("PYTHONPATH=src" in text for text in briefs)
    assert briefs[0] == briefs[1]
    if version == 1:
        assert told[-1].startswith(f"{client_homes.ERROR}\n\n<!-- archivist:brief ")
        _wait_for_the_log(run, app, session)
        deadline = time.monotonic() + 30
        # The process after the turn removes its copy last.
        while list((fresh_home / ".archivist" / "state").glob("*/session-*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _play(host: str, said: dict[str, str], home: Path) -> list[str]:
    """Return what the model was given besides the tool's output."""
    plugin = home / ".config" / "opencode" / "plugins" / "archivist.js"
    names = "\n".join(f"const {name} = {json.dumps(value)}" for name, value in said.items())
    # node takes a module's form from its name.
    module, script = home / "plugin.mjs", home / "host.mjs"
    module.write_bytes(plugin.read_bytes())
    script.write_text(f"const module = await import('./plugin.mjs')\n{names}\n{host}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ARCHIVIST", "XDG"))}
    assert _NODE is not None
    done = subprocess.run(
        [_NODE, str(script)],
        env={**kept, "HOME": str(home), "PATH": path},
        capture_output=True,
        check=True,
        timeout=60,
    )
    told: list[str] = json.loads(done.stdout)
    return told


def _wait_for_the_log(run: Setup, app: Path, session: str) -> None:
    """Wait until the process after the turn has taken the session in."""
    deadline = time.monotonic() + 30
    while f'"{LOG}"' not in run(app, "episodes", "show", session, "--json").out:
        assert time.monotonic() < deadline
        time.sleep(0.2)
