"""Each lesson is found by the output that taught it: whole, its failing line, or the lines one copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist import Bank
from archivist.reading.calls import event_failure
from archivist.reading.failures import is_shell
from archivist.reading.filing import filed_keys
from archivist.records import Event, EventKind, Lesson, LessonType, Status
from archivist.store.filters import equals
from tests.reflect import test_everyday_briefs as briefs
from tests.reflect import test_everyday_pairs as pairs

_EXCERPT = 3
_ROOT = "/srv/shop"


def _taught_by(bank: Bank) -> list[tuple[Lesson, Event]]:
    """Return the active lessons on failures, each with the latest failing call that it cites."""
    with bank.reading() as reader:
        lessons = reader.select(Lesson, equals("status", Status.ACTIVE))
        found = []
        for lesson in lessons:
            cited = reader.records("event", lesson.evidence.events).values()
            failing = [event for event in cited if _is_about(event, lesson)]
            if lesson.signature and lesson.type is not LessonType.PREFERENCE and failing:
                found.append((lesson, failing[-1]))
    return found


def _is_about(event: Event, lesson: Lesson) -> bool:
    """Say whether an event shows the failure of a lesson: what helped may have met the next obstacle."""
    failure = event_failure(event)
    keys = filed_keys(event.text, event.output, failure) if failure is not None else ()
    return any(lesson.signature == f"{lesson.repo}|{key.family}" for key in keys)


def _excerpts(event: Event, root: str) -> list[str]:
    """Return an output whole, its failing line, and that with the lines below it, for a clone at a root."""
    failure = event_failure(event)
    assert failure is not None
    lines = event.output.replace(_ROOT, root).splitlines()
    said = failure.line.replace(_ROOT, root)
    starts = [at for at, line in enumerate(lines) if line.strip() and said.startswith(line.strip())]
    copied = ["\n".join(lines[at : at + most]) for at in starts[:1] for most in (1, _EXCERPT)]
    return ["\n".join(lines), *copied]


def assert_evidence_is_known(bank: Bank) -> None:
    """Assert that the healer finds every active lesson by what it cites."""
    for lesson, event in _taught_by(bank):
        is_command = is_shell(event.tool) and event.kind is not EventKind.EDIT
        command = event.text if is_command else ""
        for error in _excerpts(event, str(bank.folder or bank.root)):
            found = bank.briefs.heal(error, tool=event.tool, command=command, project=lesson.repo)
            # Two lessons may tell one remedy for one output.
            is_told = bool(lesson.remedies) and lesson.remedies[0] in found.text
            is_found = lesson.id in {each.lesson.id for each in found.chosen}
            assert is_told or is_found, (lesson.summary, error, found.text)
            assert found.text


@pytest.mark.req("A12")
@pytest.mark.parametrize("case", briefs.read_cases())
def test_what_sessions_taught_is_known_by_their_outputs(
    bank: Bank, tmp_path: Path, case: briefs.BriefCase
) -> None:
    for turn, calls in enumerate(case.sessions):
        bank.runs.finish(briefs.write_log(tmp_path / f"{turn}.jsonl", calls, turn))
    assert_evidence_is_known(bank)


@pytest.mark.req("A12")
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.title) for case in pairs.read_cases("pairs.txt")]
)
def test_what_two_runs_overcame_is_known_by_their_outputs(
    bank: Bank, tmp_path: Path, case: pairs.EverydayCase
) -> None:
    for turn in (1, 2):
        bank.runs.finish(pairs.write_log(tmp_path / f"{turn}.jsonl", case, turn))
    assert_evidence_is_known(bank)
