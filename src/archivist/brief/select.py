"""Choose the lessons of a brief, and withhold some of them to measure what they do."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.config import BriefRules
from archivist.records.words import Status

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A hook that finds nothing to say need not make the record's class for an annotation.
    Lesson = Any

GENERAL = "general"
# The global bank and the project's both number their lessons from one, so that its names need a mark.
GLOBAL_MARK = "global-"


def global_mark_of(name: str) -> str:
    """Return the mark of the global bank where a lesson's name has it, as in `global-m-001`; else nothing."""
    return GLOBAL_MARK if name.startswith(f"{GLOBAL_MARK}m-") else ""


class BriefedLesson(NamedTuple):
    """A lesson of a brief, and whether it comes from the user's global bank."""

    lesson: Lesson
    is_global: bool = False

    @property
    def name(self) -> str:
        """Return its short id, which is unique among the lessons of both banks."""
        return f"{GLOBAL_MARK}{self.lesson.short_id}" if self.is_global else self.lesson.short_id


class Selection(NamedTuple):
    """The lessons chosen for a brief, and the stale ones that were left out, each with its reason.

    `project` is the project that the brief is about, `project_by` how that was decided.
    """

    chosen: tuple[BriefedLesson, ...]
    stale: tuple[tuple[str, str], ...] = ()
    project: str = ""
    project_by: str = ""


class RenderedBrief(NamedTuple):
    """A brief: its text, the lessons in it, and the id of its record when it was recorded.

    `withheld` are the lessons that the hold-out kept back; the rest is as in `Selection`.
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

    A domain takes its own lessons and the general ones; a role takes its own and those of no role. A lesson
    that was seen often enough is for everybody.
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
    """Say whether the summary alone says what to do; a mined one does unless it was cut off."""
    return not lesson.rule or (bool(lesson.signature) and not lesson.summary.endswith("…"))


def is_withheld(run: str, lesson: str, share: float) -> bool:
    """Say whether the hold-out keeps a lesson from a run: a fixed random draw for each pair of the two."""
    if share <= 0 or not run:
        return False
    from archivist.cold_start import blake2b

    draw = blake2b(f"{run}\x00{lesson}".encode("utf-8", "replace"), digest_size=8, person=b"hold-out")
    return int.from_bytes(draw.digest()) < share * 2**64


def withhold(
    lessons: Iterable[BriefedLesson], run: str, share: float
) -> tuple[tuple[BriefedLesson, ...], tuple[BriefedLesson, ...]]:
    """Return the lessons that a run is given, and those that the hold-out keeps from it."""
    given: list[BriefedLesson] = []
    withheld: list[BriefedLesson] = []
    for each in lessons:
        (withheld if is_withheld(run, each.lesson.id, share) else given).append(each)
    return tuple(given), tuple(withheld)
