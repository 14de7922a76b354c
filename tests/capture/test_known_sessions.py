"""A session is one run, whatever an orchestrator calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.errors import RecordError
from archivist.records import Episode, Event, EventKind
from archivist.reflect.trigger import ReflectionTrigger
from archivist.store.filters import equals
from tests.attacks.client_logs import SHAPES
from tests.commands import Command


def _log(project: Path, session: str = "s-1") -> Path:
    path = project.parent / f"{session}.jsonl"
    log = SHAPES["claude.typed"](session, "Always use tabs in the kiln.")
    # What begins at the same moment with the same words is one session and its fork.
    path.write_text(log.replace("T09:", "T09:" if session == "s-1" else "T10:"), "utf-8")
    return path


def _runs(bank_cli: Command) -> dict[str, str]:
    listed = json.loads(bank_cli("episodes", "list", "--json").out)["episodes"]
    return {episode["id"]: episode.get("parent") or "" for episode in listed}


@pytest.mark.parametrize("is_captured", [True, False])
def test_finishing_a_captured_session_by_another_name_counts_it_once(
    bank_cli: Command, project: Path, is_captured: bool
) -> None:
    bank_cli("lessons", "add", "Prefer small commits")
    log = _log(project)
    if is_captured:
        assert bank_cli("capture", str(log)).code == 0
        assert bank_cli("reflect").code == 0
    assert "Prefer small commits" in bank_cli("run", "start", "--run", "o1", "--task", "Mend the kiln").out
    done = bank_cli("run", "finish", "--run", "o1", str(log), "--json")
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    if is_captured:
        assert run["run"] == "s-1"
        assert "archivist: run o1 is the session s-1, which the bank knows: it counts once" in done.err
        assert _runs(bank_cli) == {"s-1": "", "o1": "s-1"}
        # What the run was told is judged with what the session did.
        assert "m-001" in [verdict["lesson"] for verdict in run["verdicts"]]
    else:
        assert run["run"] == "o1"
        assert "counts once" not in done.err
        assert _runs(bank_cli) == {"o1": ""}
    again = bank_cli("run", "finish", "--run", "o1", str(log), "--json")
    assert [each["run"] for each in json.loads(again.out)["runs"]] == [run["run"]]
    seen = json.loads(bank_cli("lessons", "list", "--all", "--json").out)["lessons"]
    assert all(len(lesson["runs"]) <= 1 for lesson in seen)


def test_a_run_of_several_logs_keeps_its_name(bank_cli: Command, project: Path) -> None:
    assert bank_cli("capture", str(_log(project))).code == 0
    bank_cli("run", "start", "--run", "o1")
    assert bank_cli("run", "finish", "--run", "o1", str(_log(project, "s-2"))).code == 0
    done = bank_cli("run", "finish", "--run", "o1", str(_log(project)), "--json")
    assert [each["run"] for each in json.loads(done.out)["runs"]] == ["s-1"]
    assert _runs(bank_cli) == {"s-1": "", "o1": ""}


def test_the_brief_of_a_finished_run_is_said_to_be_unrecorded(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "Prefer small commits")
    assert "finished" not in bank_cli("run", "start", "--run", "o1").err
    assert "finished" not in bank_cli("run", "start", "--run", "o1").err
    assert bank_cli("run", "finish", "--run", "o1", str(_log(project))).code == 0
    again = bank_cli("run", "start", "--run", "o1")
    assert "Prefer small commits" in again.out
    assert again.err.startswith("archivist: the run 'o1' is finished: this brief is not recorded")
    assert "hint: " in again.err


@pytest.mark.req("N7")
@pytest.mark.parametrize("first", ["s-1", "s-9"])
def test_what_a_forked_session_repeats_happened_once(bank_cli: Command, project: Path, first: str) -> None:
    """`--fork-session` copies all earlier lines, so that a guess of one run would be that of two."""
    lines = SHAPES["claude.typed"]("s-1", "Fix the failing test of the parser.").splitlines()
    fork = [line.replace('"sessionId": "s-1"', '"sessionId": "s-9"') for line in lines]
    more = (
        fork[0].replace("T09:", "T11:").replace("Fix the failing test", "List files").replace("-1-0", "-9-9")
    )
    (project.parent / "s-1.jsonl").write_text("\n".join(lines) + "\n")
    (project.parent / "s-9.jsonl").write_text("\n".join([*fork, more]) + "\n")
    other = {"s-1": "s-9", "s-9": "s-1"}[first]
    counts = []
    for name in (first, other, other, first):
        assert bank_cli("capture", str(project.parent / f"{name}.jsonl")).code == 0
        with Bank.open(project) as bank, bank.reading() as reader:
            counts.append((reader.count(Event, equals("kind", EventKind.TOOL_CALL)), reader.count(Event)))
    # Whichever comes first, and however often it is captured.
    assert {calls for calls, _ in counts} == {1}
    assert counts[1:] == [counts[1]] * 3


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "failure"}, "status: 'failure' is none of running"),
        ({"kind": "session"}, "kind: 'session' is none of"),
        ({"tags": "typecheck"}, "tags: a sequence of texts is expected"),
    ],
)
def test_an_episode_that_could_not_be_read_again_is_refused(
    project: Path, fields: dict[str, Any], reason: str
) -> None:
    with Bank.open(project, create=True) as bank:
        with pytest.raises(RecordError, match=reason):
            bank.runs.record_episode(Episode(id="e1", **fields))
        plain: dict[str, Any] = {"status": "failed"}
        assert bank.runs.record_episode(Episode(id="e2", **plain)).status == "failed"
        assert bank.ledger.verify().is_whole
        assert bank.reflections.maybe_reflect(ReflectionTrigger("e2", "session_failed")).error == ""
        assert bank.reflections.maybe_reflect(ReflectionTrigger("e2", "no_such")).status == "skipped"
