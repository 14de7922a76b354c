"""Let a model reword lessons that did not help, and join or generalise those that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from archivist.audit.report import RecommendedStep, recommend_steps
from archivist.clock import to_text
from archivist.lessons import gate
from archivist.lessons.candidate import LessonChange, Sighting
from archivist.records import ARCHIVIST, Lesson, Provenance, Status
from archivist.records.plain import canonical_json
from archivist.reflect.model import verification
from archivist.reflect.model.conversation_service import ClaimedLesson, Conversation, note_fates
from archivist.reflect.model.questions import ModelQuestion, joining, rewording
from archivist.store.filters import equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

# A setting of a bank: what was asked about its lessons, so that what came to nothing is not paid for again.
_ASKED = "model_asked"
_MOST_ASKED = 500
_MOST_COMPARED = 120
_MOST_JOINED = 12
_MOST_REWORDED = 3


def refine_lessons(bank: Bank, talk: Conversation) -> None:
    """Ask about the lessons of a bank, and keep what holds; the report says what changed."""
    report = talk.report
    claimed = _ask_rewordings(bank, talk)
    if not report.is_unfinished:
        claimed += _ask_joinings(bank, talk)
    archivist = bank.acting_as(ARCHIVIST)
    with archivist.transaction() as writer:
        now = archivist.now()
        sighting = Sighting(
            provenance=Provenance.MINED, actor=ARCHIVIST, now=now, run_count=writer.run_count(), seen=now
        )
        kept = [archivist.lessons.keep(candidate, sighting) for _, candidate in claimed]
        replaced = [name for _, candidate in claimed for name in candidate.supersedes]
        names = {name: short for name, (short, _) in archivist.lessons.lesson_names(replaced).items()}
    note_fates(claimed, kept, names)
    report.created = tuple(each.lesson for each in kept if each.is_new)
    report.updated = tuple(each.lesson for each in kept if each.change is LessonChange.REFINED)


def _ask_rewordings(bank: Bank, talk: Conversation) -> list[ClaimedLesson]:
    found: list[ClaimedLesson] = []
    steps = recommend_steps(bank.audits.audit_report())
    wanted = [each for each in steps if each.step is RecommendedStep.REWORD]
    for each in wanted[:_MOST_REWORDED]:
        lesson = bank.lessons.get(each.lesson)
        if not gate.may_be_superseded(lesson) or not _is_first(bank, talk, rewording.QUESTION, (lesson,)):
            continue
        detail = f"\nIts error: {lesson.detail}" if lesson.detail else ""
        why = f"Why it did not help: {each.reason}"
        reply = talk.ask(rewording.QUESTION, f"<record>\n{_lesson_line(lesson)}{detail}\n{why}\n</record>")
        if reply is None:
            break
        check = partial(verification.verify_rewording, lesson=lesson)
        found += talk.verify_candidates(rewording.QUESTION, [reply], check)
    return found


def _ask_joinings(bank: Bank, talk: Conversation) -> list[ClaimedLesson]:
    found: list[ClaimedLesson] = []
    believed = (one_of("status", (Status.ACTIVE, Status.CANDIDATE)), equals("is_waiting", 0))
    with bank.reading() as reader:
        rows = reader.select(Lesson, *believed, order=("-importance", "number"), limit=_MOST_COMPARED)
    for group in find_alike([lesson for lesson in rows if gate.may_be_superseded(lesson)]):
        if not _is_first(bank, talk, joining.QUESTION, group):
            continue
        reply = talk.ask(joining.QUESTION, "\n".join(("<record>", *map(_lesson_line, group), "</record>")))
        if reply is None:
            break
        check = partial(verification.verify_joining, known={lesson.short_id: lesson for lesson in group})
        found += talk.verify_candidates(joining.QUESTION, reply.groups, check)
    return found


def _is_first(bank: Bank, talk: Conversation, question: ModelQuestion[Any], group: Sequence[Lesson]) -> bool:
    """Say whether lessons in these words were not asked about yet, and note that they are now."""
    words = sorted(f"{lesson.id} {to_text(lesson.edited)}" for lesson in group)
    name = f"{talk.report.model} {question.label} {' '.join(words)}"
    with bank.acting_as(ARCHIVIST).transaction() as writer:
        asked = list(writer.json_setting(_ASKED).get("asked", []))
        if name in asked:
            return False
        writer.set_setting(_ASKED, canonical_json({"asked": [*asked, name][-_MOST_ASKED:]}))
    return True


def find_alike(lessons: Sequence[Lesson]) -> list[list[Lesson]]:
    """Return groups of lessons that may say the same, or have something in common, each lesson in one."""
    groups: dict[str, list[Lesson]] = {lesson.id: [lesson] for lesson in lessons}
    for first, second in combinations(lessons, 2):
        if first.repo != second.repo or groups[first.id] is groups[second.id]:
            continue
        is_related = bool(first.tool) and first.tool == second.tool and set(first.tags) & set(second.tags)
        if not is_related and gate.text_similarity(first, second) < gate.ALIKE_AT:
            continue
        joined = [*groups[first.id], *groups[second.id]]
        if len(joined) <= _MOST_JOINED:
            groups |= {lesson.id: joined for lesson in joined}
    unique = {id(group): group for group in groups.values() if len(group) > 1}
    return list(unique.values())


def _lesson_line(lesson: Lesson) -> str:
    parts = (lesson.summary, lesson.rule, " ; ".join(lesson.remedies))
    return f"{lesson.short_id}: {' | '.join(part for part in parts if part)}"
