"""The examples and the guide of the integrations run as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def play(name: str) -> str:
    """Run an example as a process of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.req("A12")
def test_the_agent_loop_does_better_the_second_time() -> None:
    out = play("agent_loop.py")
    first, _, second = out.partition("run-2 is told:")
    assert "run-1 is told: nothing yet" in first
    assert "run-1 calls recall" in first
    assert "run-1 learnt 1" in first
    assert "use `./checks --seed 7`" in second
    assert "{'command': './checks'}" not in second
    assert second.endswith("run-2 learnt 0, of 1 briefed 1 helped\n")


def test_the_decorated_agent_does_better_the_second_time() -> None:
    lines = play("remember.py").splitlines()
    assert lines[0].endswith("It is told: nothing yet")
    assert lines[-2:] == [
        (
            "Succeeded: Make the checks of toolshed pass. `./checks` failed (“checks: error: the"
            " following arguments are required: --seed”): use `./checks --seed 7`."
        ),
        "Succeeded: Make the checks of toolshed pass. Nothing failed.",
    ]


def test_the_guides_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guides" / "integrations.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        # No file of that name, so that the functions it defines need no future import.
        exec(compile(block, "integrations.md", "exec"), names)  # noqa: S102
    assert names["found"][0].key == "tea"
    assert len(names["bank"].runs.episodes()) == 3
    names["bank"].close()
