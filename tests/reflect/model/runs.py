"""Captured runs that a scripted model reads, and what it claims about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archivist import Bank
from tests.attacks.client_logs import SHAPES
from tests.samples import MISSING_MODULE, agent_log

NO_LESSONS: dict[str, Any] = {"lessons": []}
NO_ACCOUNT: dict[str, Any] = {"outcome": []}
# Event 0 is `git status`, 1 the failing tests, 2 the install, 3 the tests that pass.
GOOD: dict[str, Any] = {
    "kind": "remedy",
    "summary": "The tests import `freezegun`, which no requirements file lists: run `pip install freezegun` "
    "first.",
    "rule": "IF the tests of billing are to be run THEN first `pip install freezegun`",
    "remedy": "pip install freezegun",
    "events": [1, 2],
    "importance": 0.7,
}
# A service that is missing: every task meets it, and nothing overcame it.
NO_SERVICE = [
    ("make up", "Exit code 1\nCannot connect to the Docker daemon at unix:///var/run/docker.sock.", True),
    ("make up", "Exit code 1\nCannot connect to the Docker daemon at unix:///var/run/docker.sock.", True),
]


def reflected_run(
    bank: Bank,
    folder: Path,
    calls: list[tuple[str, str, bool]] | None = None,
    session: str = "s-1",
    **how: Any,
) -> str:
    """Capture a run and reflect on it without a model."""
    log = agent_log(
        folder / f"{session}.jsonl", MISSING_MODULE if calls is None else calls, session=session, **how
    )
    bank.runs.capture_file(log)
    bank.reflect(session)
    return session


def typed_run(bank: Bank, folder: Path, text: str, session: str = "t-1") -> str:
    """Capture a run in which the user typed a message."""
    log = folder / f"{session}.jsonl"
    log.write_text(SHAPES["claude.typed"](session, text), "utf-8")
    (episode,) = bank.runs.capture_file(log).episodes
    bank.reflect(episode.id)
    return episode.id


def claim(**changes: Any) -> dict[str, Any]:
    """Return the good claim with changes, as the answer of one."""
    return {"lessons": [{**GOOD, **changes}]}


def as_json(text: str) -> Any:
    """Return what a command printed with --json."""
    return json.loads(text)
