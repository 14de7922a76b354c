"""The guide to HTTP: its examples run as they stand, one after the other."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.edges.http_server import serving

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "http.md").read_text("utf-8")
LOG = ROOT / "tests" / "fixtures" / "capture" / "claude-code-native.jsonl"


def _examples(url: str) -> str:
    """Return the examples between starting the server and other machines, failing at the first refusal."""
    told = GUIDE.partition("## From other machines")[0]
    blocks = [
        each for each in re.findall(r"```sh\n(.*?)```", told, re.DOTALL) if "archivist serve" not in each
    ]
    text = "\n".join(blocks).replace("http://127.0.0.1:7777", url)
    # A listener would listen for ever; it has been let in when it is cut off.
    text = re.sub(r"^curl -N (.*)$", r"curl -N --max-time 1 \1 || test $? = 28", text, flags=re.MULTILINE)
    return "set -e\n" + text.replace("curl ", "curl --fail-with-body ")


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are curl's")
def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path / "run.jsonl")
    with serving(tmp_path, "--quiet") as served:
        done = subprocess.run(
            ["bash", "-c", _examples(served.url)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
    assert '"status":"candidate"' in done.stdout
    assert "retry: " in done.stdout
