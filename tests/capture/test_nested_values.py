"""Values that are nested very deep in a log cost only themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import Command
from tests.e2e import client_homes


def _deep(levels: int, kind: str) -> str:
    opening, closing = {"list": ("[", "]"), "dict": ('{"content":', "}")}[kind]
    return opening * levels + '"x"' + closing * levels


@pytest.mark.parametrize("levels", [70, 400, 900])
@pytest.mark.parametrize("kind", ["list", "dict"])
def test_a_log_with_deep_values_keeps_no_other_log_out(
    archivist: Command, project: Path, home: Path, tmp_path: Path, kind: str, levels: int
) -> None:
    archivist("init")
    deep = _deep(levels, kind)
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = {
        "a": f'{{"episode":{{"id":"q1","project":"shop","zz":{deep},"extra":{{"a":{deep}}}}}}}\n'
        f'{{"run":"q1","seq":1,"kind":"message","role":"user","text":"hi","zz":{deep},"extra":{{"a":{deep}}}}}\n',
        "c": '{"type":"system","subtype":"init","cwd":"/x","session_id":"s1"}\n'
        f'{{"type":"result","subtype":"success","is_error":{deep},"result":"done","session_id":"s1"}}\n',
    }
    for name, text in lines.items():
        (logs / f"{name}.jsonl").write_text(text)
    good = client_homes.claude_code(home, project, 1)
    (logs / "b.jsonl").write_text(good.read_text())
    done = archivist("capture", str(logs))
    assert "Traceback" not in done.err
    found = json.loads(archivist("episodes", "list", "--repo", "*", "--json").out)["episodes"]
    assert good.stem in {run["id"] for run in found}
