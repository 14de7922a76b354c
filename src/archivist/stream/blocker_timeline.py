"""Group what entries report of the same obstacle, and say whether it is still there or over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from archivist.records import Entry
from archivist.stream.obstacles import (
    ObstacleReport,
    ObstacleSign,
    Subject,
    are_alike,
    common_subject,
    read_reports,
)

# A blocker recurs with its second cycle; trouble now and then is normal, and needs a third.
_BLOCKED_CYCLES = 2
_TROUBLED_CYCLES = 3


class BlockerState(StrEnum):
    """How an obstacle stands at the end."""

    OPEN = "open"
    ENDED = "ended"
    UNCLEAR = "unclear"


class BlockerTimeline(NamedTuple):
    """One obstacle over time: what it is called, its reports, and how it stands.

    `issue` is the number of what blocks, `victim` of what is blocked; `end` is the report that ends it, or
    may end it; `trouble` are reports of trouble with the same thing.
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
        """Return the entries that report it, each once."""
        return list({report.entry.id: report.entry for report in self.reports}.values())

    @property
    def cycles(self) -> list[int]:
        """Return the cycles in which it was reported."""
        return sorted({report.entry.cycle for report in self.reports})

    @property
    def is_blocking(self) -> bool:
        """Say whether somebody says that it blocks, and not only that they wait for it."""
        return self.sign is ObstacleSign.BLOCKED and (
            self.issue is not None or any(not report.is_waiting for report in self.reports)
        )


def blocker_timelines(entries: Sequence[Entry], others: Iterable[Entry] = ()) -> list[BlockerTimeline]:
    """Return the obstacles that recur among entries; of `others` only the ends count."""
    roles = sorted({entry.role for entry in entries if entry.role})
    known = {entry.id for entry in entries}
    reports = [report for entry in entries for report in read_reports(entry, roles)]
    later = [report for entry in others if entry.id not in known for report in read_reports(entry, roles)]
    ends = [report for report in (*reports, *later) if report.sign is ObstacleSign.ENDED]
    ends.sort(key=lambda report: report.position)
    blocked, troubled = (
        [_with_end(_make_timeline(group), ends) for group in _group_reports(reports, sign)]
        for sign in (ObstacleSign.BLOCKED, ObstacleSign.TROUBLE)
    )
    troubled = [timeline for timeline in troubled if timeline.subject.distinctive_words]
    found = []
    for timeline in blocked:
        if len(timeline.cycles) >= _BLOCKED_CYCLES:
            is_named = bool(timeline.subject.distinctive_words)
            alike = [each for each in troubled if is_named and are_alike(each.subject, timeline.subject)]
            troubled = [each for each in troubled if each not in alike]
            trouble = tuple(report for each in alike for report in each.reports)
            found.append(timeline._replace(trouble=trouble))
    found += [timeline for timeline in troubled if len(timeline.cycles) >= _TROUBLED_CYCLES]
    # What still blocks comes before what is over, blockers before trouble, then the most frequent.
    return sorted(
        found,
        key=lambda timeline: (
            timeline.state is not BlockerState.OPEN,
            timeline.sign is not ObstacleSign.BLOCKED,
            -len(timeline.cycles),
            -len(timeline.reports),
            timeline.reports[0].entry.seq,
        ),
    )


def find_end(
    entries: Sequence[Entry], *, issues: Collection[int], subject: Subject, roles: Collection[str]
) -> ObstacleReport | None:
    """Return the report in later entries that surely ends an obstacle; None where it is reported again."""
    last = None
    for report in (report for entry in entries for report in read_reports(entry, roles)):
        if report.sign is ObstacleSign.ENDED:
            is_about = _end_state(report, set(issues), subject) is BlockerState.ENDED
        else:
            is_about = bool({*report.issues, *report.victims} & set(issues)) or (
                bool(subject.distinctive_words) and are_alike(report.subject, subject)
            )
        if is_about and (last is None or report.position > last.position):
            last = report
    return last if last is not None and last.sign is ObstacleSign.ENDED else None


def _group_reports(reports: Iterable[ObstacleReport], sign: ObstacleSign) -> list[list[ObstacleReport]]:
    """Group reports of one sign by the issue that blocks, else by the cause's words, else by the victim."""
    groups: list[list[ObstacleReport]] = []
    for report in reports:
        if report.sign is sign:
            home = next((group for group in groups if _is_same_obstacle(report, group)), None)
            if home is None:
                groups.append([report])
            else:
                home.append(report)
    return groups


def _is_same_obstacle(report: ObstacleReport, group: Sequence[ObstacleReport]) -> bool:
    if report.sign is ObstacleSign.BLOCKED and (report.issues or group[0].issues):
        return report.issues[:1] == group[0].issues[:1]
    subject = common_subject([each.subject for each in group])
    if report.subject.words and are_alike(report.subject, subject):
        return True
    return bool(report.victims) and report.victims[0] == _main_victim(group)


def _main_victim(group: Sequence[ObstacleReport]) -> int | None:
    """Return the issue that most of a group's reports say to be blocked."""
    counts = Counter(victim for report in group for victim in report.victims)
    best = max(counts, key=lambda victim: counts[victim], default=None)
    return best if best is not None and counts[best] * 2 > len(group) else None


def _make_timeline(group: Sequence[ObstacleReport]) -> BlockerTimeline:
    reports = tuple(sorted(group, key=lambda report: report.position))
    sign = reports[0].sign
    if sign is ObstacleSign.BLOCKED and reports[0].issues:
        return BlockerTimeline(sign, reports, Subject(), issue=reports[0].issues[0])
    subject = common_subject([report.subject for report in reports])
    victim = _main_victim(reports) if sign is ObstacleSign.BLOCKED else None
    return BlockerTimeline(sign, reports, subject, victim=victim)


def _with_end(timeline: BlockerTimeline, ends: Sequence[ObstacleReport]) -> BlockerTimeline:
    """Return a timeline with what became of the obstacle after its last report."""
    issues = {issue for issue in (timeline.issue, timeline.victim) if issue is not None}
    roles = {report.entry.role for report in timeline.reports if report.entry.role}
    for end in ends:
        if end.position <= timeline.reports[-1].position:
            continue
        state = _end_state(end, issues, timeline.subject)
        if state is BlockerState.ENDED:
            return timeline._replace(state=state, end=end)
        is_perhaps = state is BlockerState.UNCLEAR or (end.is_for_role and end.entry.role in roles)
        if is_perhaps and timeline.end is None:
            timeline = timeline._replace(state=BlockerState.UNCLEAR, end=end)
    return timeline


def _end_state(end: ObstacleReport, issues: set[int], subject: Subject) -> BlockerState:
    """Say whether an end is that of an obstacle: surely, perhaps, or not at all (which leaves it open)."""
    if end.is_for_all or (end.is_sure and issues & set(end.issues)):
        return BlockerState.ENDED
    if issues & set(end.issues):
        return BlockerState.UNCLEAR
    shared = subject.distinctive_words & end.subject.words
    if not shared:
        return BlockerState.OPEN
    is_whole = shared == subject.distinctive_words and not end.issues
    return BlockerState.ENDED if is_whole else BlockerState.UNCLEAR
