"""Write small runs by hand: what was called, what came back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from archivist.lessons.candidate import Candidate
from archivist.reading.history import PastRun, RunHistory
from archivist.reading.run import RunReading, read_run
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Usage
from archivist.reflect.miners import mine_candidates

START = datetime(2026, 3, 1, tzinfo=UTC)
PROJECT = "acme/widget"
Call = dict[str, Any]


def sh(command: str, output: str = "", code: int | None = 0, **fields: Any) -> Call:
    """Call the shell."""
    return {"tool": "bash", "target": command, "text": command, "output": output, "exit_code": code, **fields}


def tool(name: str, target: str, output: str = "", *, failed: bool = False) -> Call:
    """Call another tool on a file."""
    return {
        "tool": name,
        "target": target,
        "text": f'{{"path": "{target}"}}',
        "output": output,
        "is_error": failed,
    }


def edit(file: str, old: str, new: str, output: str = "ok", *, failed: bool = False) -> Call:
    """Edit a file with the editing tool."""
    return {
        **tool("Edit", file, output, failed=failed),
        "kind": EventKind.EDIT,
        "extra": {"old": old, "new": new},
    }


def user(text: str) -> Call:
    """Say something as the user."""
    return {"kind": EventKind.MESSAGE, "role": "user", "text": text, "extra": {"typed": True}}


def run(
    *calls: Call, name: str = "run-1", seconds: float = 600, cost: float = 1.0, **fields: Any
) -> RunReading:
    """Read a run of these calls."""
    events = [
        Event(**{"run": name, "seq": seq, "kind": EventKind.TOOL_CALL, **call})
        for seq, call in enumerate(calls)
    ]
    episode = Episode(
        **{
            "id": name,
            "project": PROJECT,
            "provider": "alpha",
            "status": EpisodeStatus.SUCCESS,
            "started": START,
            "finished": START + timedelta(seconds=seconds),
            "usage": Usage(cost_usd=cost),
            **fields,
        }
    )
    return read_run(episode, events)


def past(*readings: RunReading) -> RunHistory:
    """Return earlier runs as later ones know them."""
    return RunHistory(
        [
            PastRun(
                run=each.episode.id,
                project=each.episode.project,
                provider=each.episode.provider,
                digest=each.digest,
                task=each.episode.task,
                model=each.episode.model,
            )
            for each in readings
        ]
    )


def learnt(*readings: RunReading) -> list[Candidate]:
    """Return what the last run teaches after the others."""
    return mine_candidates(readings[-1], past(*readings[:-1]))


def one(*readings: RunReading) -> Candidate:
    """Return the only thing that the last run teaches."""
    found = learnt(*readings)
    assert len(found) == 1, [each.summary for each in found]
    return found[0]


def no_module(name: str) -> str:
    """Write the traceback of a missing module."""
    return (
        f'Traceback (most recent call last):\n  File "/srv/widget/use.py", line 1, in <module>\n'
        f"    import {name}\nModuleNotFoundError: No module named '{name}'\n"
    )
