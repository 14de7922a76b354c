"""A run with very many findings: it takes time in proportion, and lets others write in between."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from archivist import Bank
from archivist.lessons.candidate import Candidate, Sighting
from archivist.records import ARCHIVIST, Lesson, Provenance
from tests.samples import WHEN, run_lines, write_jsonl

_LETTERS = "abcdefghijklmnoprstuvw"


def _findings(count: int) -> list[dict[str, str]]:
    rng = random.Random(1)  # noqa: S311
    words = ["".join(rng.choices(_LETTERS, k=7)) for _ in range(3_000)]
    return [{"severity": "bug", "description": " ".join(rng.sample(words, 8))} for _ in range(count)]


@pytest.mark.req("F3")
def test_a_thousand_findings_that_are_met_again_take_seconds(project: Path) -> None:
    """They took 15 s of CPU when each read the run's reviews again."""
    found = _findings(1_000)
    with Bank.open(project, create=True) as bank:
        bank.runs.extract(write_jsonl(project / "r1.jsonl", run_lines("r1", *found)))
        log = write_jsonl(project / "r2.jsonl", run_lines("r2", *found))
        began = time.process_time()
        learnt = bank.runs.extract(log)
        spent = time.process_time() - began
        assert (len(learnt.created), len(learnt.updated)) == (0, 1_000)
        assert spent < 5


@pytest.mark.req("F3")
def test_others_see_and_write_a_bank_while_many_lessons_are_kept(project: Path) -> None:
    waited = []
    with Bank.open(project, create=True) as bank, Bank.open(project) as other:

        def candidates() -> Iterator[Candidate]:
            for number, finding in enumerate(_findings(400)):
                if number % 100 == 50:
                    with other.reading() as reader:
                        waited.append(reader.count(Lesson))
                yield Candidate(summary=finding["description"], is_finding=True)

        sighting = Sighting(
            provenance=Provenance.REVIEWED, actor=ARCHIVIST, now=WHEN, run_count=1, run="r1", counted="r1"
        )
        kept = bank.lessons.keep_many(candidates(), sighting)
    assert len({each.lesson.id for each in kept}) == 400
    assert waited == [0, 100, 200, 300]
