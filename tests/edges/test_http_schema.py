"""The OpenAPI document is true: whatever fits it is taken, whatever does not is refused, nothing breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.edges.http_server import Served, serving

# Schemathesis warns of what it finds hard to make up.
pytestmark = pytest.mark.filterwarnings("default")
# What fits the document can still be refused with 400, which it says: a cursor of another list, a log that is
# none, a file that is not there. 422 is for what does not fit.
_TAKEN = ["2xx", "400", "401", "403", "404", "409", "415", "503"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a bank that has something in it."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "made.txt").write_text("made", encoding="utf-8")
    with serving(folder, "--quiet") as served:
        with served.client() as client:
            client.post("/api/lessons", json={"summary": "Use uv for packages"}).raise_for_status()
        yield served


def _document(served: Served, phase: str, examples: int) -> Any:
    phases = {name: {"enabled": name == phase} for name in ("examples", "coverage", "fuzzing", "stateful")}
    config = SchemathesisConfig.from_dict(
        {
            "seed": 7,
            "checks": {"positive_data_acceptance": {"expected-statuses": _TAKEN}},
            "phases": phases,
            "generation": {"max-examples": examples, "database": "none"},
        }
    )
    headers = {"Authorization": f"Bearer {served.token('human:ada')}"}
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=headers, config=config)


def _failures(schema: Any) -> tuple[list[str], int]:
    """Let schemathesis try a document; return what it found, and how many requests it made."""
    found, tried = [], 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            found.append(repr(event))
        if not isinstance(event, events.ScenarioFinished):
            continue
        for case, checks in event.recorder.checks.items():
            tried += 1
            answered = event.recorder.interactions[case].response
            found += [
                f"{event.recorder.label}: {check.failure_info.failure}: {answered and answered.text}"
                for check in checks
                if check.failure_info is not None
            ]
    return found, tried


@pytest.mark.req("M6")
def test_what_is_made_up_by_the_document_finds_nothing_wrong(served: Served) -> None:
    schema = _document(served, "fuzzing", 4).exclude(path="/api/events")
    found, tried = _failures(schema)
    assert found == []
    assert tried > 100


@pytest.mark.req("M6")
def test_every_limit_that_the_document_names_is_kept(served: Served) -> None:
    schema = _document(served, "coverage", 1).include(path_regex="^/api/(memory|stream|brief|archive|runs)")
    found, tried = _failures(schema)
    assert found == []
    assert tried > 100
