"""Write small sessions by hand, as Claude Code logs them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 11, 1, 9, tzinfo=UTC)


class Session:
    """A log in the making: one line ten seconds after the other."""

    def __init__(self, name: str, project: str = "metan") -> None:
        self._name = name
        self._folder = f"/home/dev/{project}"
        self._lines: list[str] = []
        self._add("system", subtype="init", cwd=self._folder, model="m", tools=[])

    def user(self, text: str) -> None:
        """Say something as the user."""
        self._add("user", message={"role": "user", "content": text})

    def say(self, text: str) -> None:
        """Say something as the agent."""
        block = {"type": "text", "text": text}
        self._add("assistant", message={"role": "assistant", "model": "m", "content": [block]})

    def sh(self, command: str, output: str = "", code: int = 0) -> None:
        """Call the shell."""
        self._call("Bash", {"command": command}, output, code)

    def edit(self, file: str, old: str, new: str) -> None:
        """Edit a file of the project."""
        given = {"file_path": f"{self._folder}/{file}", "old_string": old, "new_string": new}
        self._call("Edit", given, "The file has been updated.", 0)

    def end(self) -> None:
        """End well."""
        self._add("result", subtype="success", is_error=False, result="done", num_turns=1)

    def write(self, path: Path) -> Path:
        """Write the log to a file."""
        path.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")
        return path

    def _call(self, tool: str, given: dict[str, str], output: str, code: int) -> None:
        name = f"t{len(self._lines)}"
        use = {"type": "tool_use", "id": name, "name": tool, "input": given}
        self._add("assistant", message={"role": "assistant", "model": "m", "content": [use]})
        result = {
            "type": "tool_result",
            "tool_use_id": name,
            "content": f"Exit code {code}\n{output}" if code else output,
            "is_error": bool(code),
        }
        self._add("user", message={"role": "user", "content": [result]})

    def _add(self, kind: str, **fields: Any) -> None:
        time = START + timedelta(seconds=10 * (len(self._lines) + 1))
        line = {"type": kind, "session_id": self._name, "timestamp": time.isoformat().replace("+00:00", "Z")}
        self._lines.append(json.dumps({**line, **fields}))
