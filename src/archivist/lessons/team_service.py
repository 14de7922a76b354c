"""Lessons that the own banks of several people have in common, for the bank of their team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, decides
from archivist.cold_start import sha256
from archivist.lessons.candidate import NO_EVIDENCE, Sighting, candidate_of
from archivist.records import ARCHIVIST, Lesson, Provenance, Status
from archivist.service import BankService
from archivist.store.filters import equals, not_equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

_LIVE = (Status.ACTIVE, Status.CANDIDATE)


class TeamLessons(BankService):
    """What a team's bank learns from its people's own banks, without their runs."""

    @decides(Layer.LESSONS)
    def gather(self, people: Sequence[Bank]) -> list[Lesson]:
        """Keep the mined lessons that runs of two people or more have met; return the new ones.

        The runs stay private: the team's lesson counts them by pseudonyms and has no evidence of them.
        """
        mined = (equals("provenance", Provenance.MINED), one_of("status", _LIVE), not_equals("signature", ""))
        met: dict[tuple[str, str], list[Lesson]] = {}
        for bank in people:
            with bank.reading() as reader:
                for lesson in reader.select(Lesson, *mined, order=("number",)):
                    met.setdefault((lesson.repo, lesson.signature), []).append(lesson)
        common = [lessons for lessons in met.values() if len(lessons) > 1]
        archivist, created = self._bank.acting_as(ARCHIVIST), []
        with archivist.transaction() as writer:
            for lessons in common:
                met_in = dict.fromkeys(run for lesson in lessons for run in lesson.runs)
                runs = tuple(f"private-{sha256(run.encode()).hexdigest()[:12]}" for run in met_in)
                known = writer.select(Lesson, equals("signature", lessons[0].signature))
                if any(lesson.repo == lessons[0].repo and {*runs} <= {*lesson.runs} for lesson in known):
                    continue
                candidate = replace(
                    candidate_of(lessons[0]), record=None, evidence=NO_EVIDENCE, earlier_runs=runs[:-1]
                )
                sighting = Sighting(
                    provenance=Provenance.MINED,
                    actor=ARCHIVIST,
                    now=archivist.now(),
                    run_count=writer.run_count() + 1,
                    run=runs[-1],
                    counted=runs[-1],
                    project=lessons[0].repo,
                    seen=max((lesson.last_seen for lesson in lessons if lesson.last_seen), default=None),
                )
                kept = archivist.lessons.keep_many([candidate], sighting)
                created += [each.lesson for each in kept if each.is_new]
        return created
