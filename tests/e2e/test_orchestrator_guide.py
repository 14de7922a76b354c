"""The guide for orchestrators: its code is the examples, and their second run profits from the first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GUIDE = (ROOT / "docs" / "guides" / "orchestrator.md").read_text("utf-8")
COMMANDS = {
    "python": [sys.executable, str(EXAMPLES / "orchestrate.py")],
    "sh": ["sh", str(EXAMPLES / "orchestrate.sh")],
}


def _run(language: str, folder: Path) -> str:
    """Run an example with the installed command on its path; return what it printed."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(
        COMMANDS[language], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _block(language: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize(("language", "name"), [("python", "orchestrate.py"), ("sh", "orchestrate.sh")])
def test_the_code_in_the_guide_is_the_example(language: str, name: str) -> None:
    assert _block(language) == (EXAMPLES / name).read_text("utf-8")


@pytest.mark.parametrize("language", COMMANDS)
def test_the_second_run_is_told_what_the_first_learnt(language: str, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    out = _run(language, folder)
    first, _, second = out.partition("run-2 is told:")
    assert "run-1 is told: nothing yet" in first
    assert "pass. `./checks` failed" in first
    told, _, rest = second.partition("<!-- /archivist:brief -->")
    assert "<!-- archivist:brief " in told
    assert "use `./checks --seed 7`" in told
    assert "of 1 briefed 1 helped" in rest
    assert "pass. Nothing failed." in rest
    assert "The checks write into the home folder" in rest
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("language", "place"), [("python", 0), ("sh", 1)])
def test_the_output_in_the_guide_is_what_the_example_prints(
    language: str, place: int, tmp_path: Path
) -> None:
    shown = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)[place]
    assert _without_ids(_run(language, tmp_path)) == _without_ids(shown)


def _without_ids(text: str) -> str:
    """Mask the id of each brief: it is new every time."""
    return re.sub(r"(archivist:brief )\w{26}", r"\1ID", text)
