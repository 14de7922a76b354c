"""Put what entries tell of the same obstacle together, and say how it went on: still there, or over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from archivist.records import Entry
from archivist.stream.blockers import ObstacleReport, ObstacleSign, read_reports
from archivist.stream.subjects import Subject, are_alike, common_subject

# A blocker recurs with its second cycle; what only goes wrong now and then needs one more to be told.
_BLOCKED_CYCLES = 2
_TROUBLED_CYCLES = 3


class BlockerState(StrEnum):
    """How an obstacle stands at the end."""

    OPEN = "open"
    ENDED = "ended"
    UNCLEAR = "unclear"


class BlockerTimeline(NamedTuple):
    """One obstacle over time: what it is called, what told of it, and how it stands.

    `issue` is what stands in the way by its number, `victim` what is held up; `end` the words that are its
    end, or may be.
    """

    sign: ObstacleSign
    reports: tuple[ObstacleReport, ...]
    subject: Subject
    issue: int | None = None
    victim: int | None = None
    state: BlockerState = BlockerState.OPEN
    end: ObstacleReport | None = None
    trouble: tuple[ObstacleReport, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """Return the entries that tell of it, each once."""
        return list({each.entry.id: each.entry for each in self.reports}.values())

    @property
    def cycles(self) -> list[int]:
        """Return the cycles in which it was told."""
        return sorted({each.entry.cycle for each in self.reports})

    @property
    def is_blocking(self) -> bool:
        """Say whether somebody says that it blocks, and not only that they wait for it."""
        return self.sign is ObstacleSign.BLOCKED and (
            self.issue is not None or any(not each.is_waiting for each in self.reports)
        )


def blocker_timelines(entries: Sequence[Entry], others: Iterable[Entry] = ()) -> list[BlockerTimeline]:
    """Return the obstacles that recur among entries; `others` count only for what they say to be over."""
    roles = sorted({entry.role for entry in entries if entry.role})
    told = [each for entry in entries for each in read_reports(entry, roles)]
    known = {entry.id for entry in entries}
    ends = [each for each in told if each.sign is ObstacleSign.ENDED]
    ends += [
        each
        for entry in others
        if entry.id not in known
        for each in read_reports(entry, roles)
        if each.sign is ObstacleSign.ENDED
    ]
    ends.sort(key=_report_position)
    blocked = [_with_end(each, ends) for each in _group_blockers(told)]
    troubled = [_with_end(each, ends) for each in _group_troubles(told)]
    found = [_with_trouble(each, troubled) for each in blocked if len(each.cycles) >= _BLOCKED_CYCLES]
    told_there = {id(each) for course in found for each in course.trouble}
    found += [
        each
        for each in troubled
        if len(each.cycles) >= _TROUBLED_CYCLES
        and not any(id(report) in told_there for report in each.reports)
    ]
    return sorted(found, key=_timeline_rank)


def find_end(
    entries: Sequence[Entry], *, issues: Collection[int], subject: Subject, roles: Collection[str]
) -> ObstacleReport | None:
    """Return what in later entries ends an obstacle for sure; None where it is told again after that."""
    told = [each for entry in entries for each in read_reports(entry, roles)]
    about = [each for each in told if _is_about(each, issues, subject)]
    last = max(about, key=_report_position, default=None)
    return last if last is not None and last.sign is ObstacleSign.ENDED else None


def _is_about(told: ObstacleReport, issues: Collection[int], subject: Subject) -> bool:
    if told.sign is ObstacleSign.ENDED:
        return _end_state(told, set(issues), subject) is BlockerState.ENDED
    named = {*told.issues, *told.victims}
    return bool(named & set(issues)) or (bool(subject.distinctive_words) and are_alike(told.subject, subject))


def _group_blockers(told: Sequence[ObstacleReport]) -> list[BlockerTimeline]:
    """Return blockers by the issue that is in the way, else by its words, else by what is held up."""
    by_issue: dict[int, list[ObstacleReport]] = {}
    by_words: list[list[ObstacleReport]] = []
    wordless: list[ObstacleReport] = []
    for each in told:
        if each.sign is not ObstacleSign.BLOCKED:
            continue
        if each.issues:
            by_issue.setdefault(each.issues[0], []).append(each)
        elif each.subject.words:
            _add_to_group(by_words, each)
        else:
            wordless.append(each)
    by_victim: dict[int, list[ObstacleReport]] = {}
    recurring: list[list[ObstacleReport]] = []
    for group in by_words:
        # A cause that was named once is part of what holds its victim up.
        if len({each.entry.cycle for each in group}) > 1 or not group[0].victims:
            recurring.append(group)
        else:
            by_victim.setdefault(group[0].victims[0], []).extend(group)
    for each in wordless:
        home = next((group for group in recurring if _blocked_issue(group) in each.victims), None)
        (by_victim.setdefault(each.victims[0], []) if home is None else home).append(each)
    found = [_make_timeline(group, issue=issue) for issue, group in by_issue.items()]
    found += [_make_timeline(group, victim=_blocked_issue(group)) for group in recurring]
    return found + [_make_timeline(group, victim=victim) for victim, group in by_victim.items()]


def _group_troubles(told: Sequence[ObstacleReport]) -> list[BlockerTimeline]:
    groups: list[list[ObstacleReport]] = []
    for each in told:
        if each.sign is ObstacleSign.TROUBLE and not each.subject.is_vague:
            _add_to_group(groups, each)
    return [_make_timeline(group) for group in groups]


def _add_to_group(groups: list[list[ObstacleReport]], told: ObstacleReport) -> None:
    """Put one thing that was told to those that are about the same, or begin with it."""
    for group in groups:
        if are_alike(told.subject, common_subject([each.subject for each in group])):
            group.append(told)
            return
    groups.append([told])


def _make_timeline(
    group: Sequence[ObstacleReport], *, issue: int | None = None, victim: int | None = None
) -> BlockerTimeline:
    reports = tuple(sorted(group, key=_report_position))
    subject = common_subject([each.subject for each in reports]) if issue is None else Subject()
    return BlockerTimeline(reports[0].sign, reports, subject, issue, victim)


def _blocked_issue(group: Sequence[ObstacleReport]) -> int | None:
    """Return the one thing that most of these say to be held up."""
    counts: dict[int, int] = {}
    for each in group:
        for victim in each.victims:
            counts[victim] = counts.get(victim, 0) + 1
    best = max(counts, key=lambda victim: counts[victim], default=None)
    return best if best is not None and counts[best] * 2 > len(group) else None


def _with_end(course: BlockerTimeline, ends: Sequence[ObstacleReport]) -> BlockerTimeline:
    """Return a course with what became of it after it was told for the last time."""
    issues = {issue for issue in (course.issue, course.victim) if issue is not None}
    roles = {each.entry.role for each in course.reports if each.entry.role}
    unclear: ObstacleReport | None = None
    for each in ends:
        if _report_position(each) <= _report_position(course.reports[-1]):
            continue
        how = _end_state(each, issues, course.subject)
        if how is BlockerState.ENDED:
            return course._replace(state=BlockerState.ENDED, end=each)
        if unclear is None and (
            how is BlockerState.UNCLEAR or (each.is_for_role and each.entry.role in roles)
        ):
            unclear = each
    return course if unclear is None else course._replace(state=BlockerState.UNCLEAR, end=unclear)


def _end_state(end: ObstacleReport, issues: set[int], subject: Subject) -> BlockerState:
    """Say whether an end is that of an obstacle: surely, perhaps, or not at all (which leaves it open)."""
    if end.is_for_all or (end.is_sure and issues & set(end.issues)):
        return BlockerState.ENDED
    if issues & set(end.issues):
        return BlockerState.UNCLEAR
    shared = subject.distinctive_words & end.subject.words
    if not shared:
        return BlockerState.OPEN
    return (
        BlockerState.ENDED if shared == subject.distinctive_words and not end.issues else BlockerState.UNCLEAR
    )


def _with_trouble(course: BlockerTimeline, troubled: Sequence[BlockerTimeline]) -> BlockerTimeline:
    """Return a blocker with the trouble that was told of the same thing."""
    if not course.subject.distinctive_words:
        return course
    alike = [each for each in troubled if are_alike(each.subject, course.subject)]
    return course._replace(trouble=tuple(report for each in alike for report in each.reports))


def _report_position(told: ObstacleReport) -> tuple[int, int]:
    return told.entry.seq, told.place


def _timeline_rank(course: BlockerTimeline) -> tuple[bool, bool, int, int, int]:
    """Order what is in the way before what is over, blockers before trouble, then by how often."""
    return (
        course.state is not BlockerState.OPEN,
        course.sign is not ObstacleSign.BLOCKED,
        -len(course.cycles),
        -len(course.reports),
        course.reports[0].entry.seq,
    )
