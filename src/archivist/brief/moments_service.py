"""Say when each lesson is told: at a session's start, beside its failure, or when somebody asks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads
from archivist.brief.select import BriefRequest
from archivist.brief.service import OVERCOME
from archivist.records import Lesson, LessonType, Status
from archivist.service import BankService
from archivist.store.filters import one_of

if TYPE_CHECKING:
    from archivist.brief.select import RenderedBrief

AT_START, AT_FAILURE = "told at session start", "when their failure recurs"
WAITING, AT_PROMPT = "waiting for you or a run", "when a prompt or a search asks"
# In a table's column.
SHORT_WORDS = {AT_START: "start", AT_FAILURE: "failure", WAITING: "waits", AT_PROMPT: "prompt"}


class Moments(BankService):
    """When lessons are told."""

    @reads(Layer.LESSONS)
    def find(self, brief: RenderedBrief) -> dict[str, str]:
        """Return when each live lesson of the bank is told, if this is what a session starts with.

        A preference is about no failure, though it has a signature.
        """
        told = {each.lesson.id for each in brief.chosen if not each.is_global}
        live = one_of("status", (Status.ACTIVE, Status.CANDIDATE))
        with self._bank.reading() as reader:
            rows = reader.select_fields(Lesson, ("id", "signature", "is_waiting", "type"), live)
        found = {}
        for name, signature, is_waiting, kind in rows:
            is_of_failure = signature and kind != LessonType.PREFERENCE
            later = WAITING if is_waiting else AT_FAILURE if is_of_failure else AT_PROMPT
            found[name] = AT_START if name in told else later
        return found

    @reads(Layer.LESSONS)
    def list_told(self, repo: str = "") -> tuple[dict[str, str], dict[str, str]]:
        """Return when each lesson is told, and why those that are out of date are not told at the start."""
        brief = self._bank.brief(BriefRequest(repo=repo))
        left = {each.lesson.lesson.id: each.reason for each in brief.left}
        old = {name: why.removeprefix(OVERCOME) for name, why in left.items() if why.startswith(OVERCOME)}
        return self.find(brief), old

    @reads(Layer.LESSONS)
    def count(self, brief: RenderedBrief) -> dict[str, int]:
        """Return how many lessons are told when, in the words of `find`."""
        counts = Counter(self.find(brief).values())
        return {moment: counts[moment] for moment in SHORT_WORDS if counts[moment] or moment == AT_START}
