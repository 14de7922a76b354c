"""Choose what a run is told."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.config import BriefRules
from archivist.records.words import Status

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A cold process that finds nothing to tell makes no class for an annotation.
    Lesson = Any

GENERAL = "general"
# Before the short id of what is in the global bank: both banks count from one.
GLOBAL_MARK = "global-"


def global_mark_of(name: str) -> str:
    """Return the global bank's mark where a lesson's name has it, as `global-m-001` has; else nothing."""
    return GLOBAL_MARK if name.startswith(f"{GLOBAL_MARK}m-") else ""


class BriefedLesson(NamedTuple):
    """A lesson that will be told, and whether it comes from the user's global bank."""

    lesson: Lesson
    is_global: bool = False

    @property
    def name(self) -> str:
        """Return what it is called where the lessons of two banks stand together."""
        return f"{GLOBAL_MARK}{self.lesson.short_id}" if self.is_global else self.lesson.short_id


class RenderedBrief(NamedTuple):
    """A brief: its text, the lessons in it, and the record's id when it was recorded.

    `withheld` would have been told but for the hold-out; `stale` names what is gone, with the reason.
    Of a brief about a project `project` is whose it is, and `project_by` what said so.
    """

    text: str
    chosen: tuple[BriefedLesson, ...]
    brief_id: str = ""
    withheld: tuple[BriefedLesson, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    project: str = ""
    project_by: str = ""


def is_wanted(lesson: Lesson, *, domain: str, role: str, rules: BriefRules) -> bool:
    """Say whether an active lesson is for this domain and role.

    A domain takes its own lessons and the general ones; a role takes those meant for it and those meant
    for no role in particular; what was met often enough is told to everybody.
    """
    if lesson.status is not Status.ACTIVE:
        return False
    if lesson.frequency >= rules.always_at_frequency:
        return True
    fits_domain = not domain or lesson.domain in (domain, GENERAL)
    fits_role = not role or lesson.role in (role, "")
    return fits_domain and fits_role


def choose_lessons(
    lessons: Iterable[BriefedLesson], *, domain: str, role: str, rules: BriefRules
) -> list[BriefedLesson]:
    """Return the most frequent wanted lessons, at most as many as the rules allow."""
    wanted = [each for each in lessons if is_wanted(each.lesson, domain=domain, role=role, rules=rules)]
    wanted.sort(key=lambda each: (-each.lesson.frequency, each.is_global, each.lesson.number))
    return wanted[: rules.max_lessons]


def says_remedy(lesson: Lesson) -> bool:
    """Say whether the summary tells what to do: what was mined does unless it was cut off."""
    return not lesson.rule or (bool(lesson.signature) and not lesson.summary.endswith("…"))
