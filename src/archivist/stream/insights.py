"""Find what recurs in a stream by counting, and decide when a reflection is due.

Every insight is a cluster of entries: a recurring blocker or trouble and whether it is over, roles that wait
for each other, an issue that several roles work on, decisions, the theme of most entries, known lessons about
the same issues. It names its counts, its cycles and its entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from archivist.config import StreamRules
from archivist.records import Entry, EntryType
from archivist.stream.entries import Marker
from archivist.stream.obstacles import (
    ObstacleReport,
    ObstacleSign,
    Subject,
    Wait,
    are_alike,
    common_subject,
    read_reports,
    read_waits,
    subject_of,
)

# A reflection is read in full, so it holds only a few insights, obstacles first.
MOST_INSIGHTS = 5
# A blocker of three cycles is no longer noise: it goes into core memory, where every role sees it.
STRATEGIC_CYCLES = 3
_RECURRING_CYCLES = 2
# A blocker recurs with its second cycle; trouble now and then is normal, and needs a third.
_BLOCKED_CYCLES = 2
_TROUBLED_CYCLES = 3
_MOST_OBSTACLES = 3
# One wait in each direction is an ordinary handover.
_MUTUAL_WAITS = 3
# Grouping compares every report with every group: 400 entries are read in about 40 ms.
_MOST_COMPARED = 400
# Two entries with the same tag are a coincidence.
_LEAST_THEME = 3
_SHOWN_IDS = 8
_SHOWN_ISSUES = 5
_SHOWN_RELATED = 3
_SHOWN_CHARACTERS = 110
_HONESTLY = "Counted, not interpreted."
_NO_THEME = re.compile(
    r"(?:issue|pr|cycle)[-_ ]?\d+|reflection|deterministic|action|decision|observation|block(?:ed|ers?|ing)"
)
# A decision that begins so is a rule in the words of those who made it.
_RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|do not|don['\u2019]t|rule:)\b",
    re.IGNORECASE,
)


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


class ReflectionBacklog(NamedTuple):
    """What was logged since the last reflection."""

    entries: int
    importance: int
    cycles: int
    sprint: str = ""


class RelatedItem(NamedTuple):
    """A document or a lesson: its name, its text, and the issues that it is about."""

    name: str
    text: str
    issues: tuple[int, ...] = ()


class Insight(NamedTuple):
    """One thing that recurs, its weight and its evidence.

    `blocker` is the line for the status in core memory, for a blocker that is open and strategic; `subject`
    its words; `rule` a rule about it that somebody decided on.
    """

    action: str
    content: str
    importance: int
    tags: tuple[str, ...]
    issues: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    blocker: str = ""
    subject: Subject = Subject()
    rule: str = ""


def reason_to_reflect(since: ReflectionBacklog, marker: Marker, rules: StreamRules) -> str:
    """Return why a reflection is due, or an empty text."""
    if not since.entries:
        return ""
    if since.importance > rules.reflect_at_importance:
        return f"importance of unreflected entries is {since.importance}, over {rules.reflect_at_importance}"
    if since.cycles >= rules.reflect_at_cycles:
        return f"{since.cycles} cycles since the last reflection"
    if since.sprint != marker.sprint:
        return f"sprint boundary: {marker.sprint or 'none'} → {since.sprint or 'none'}"
    return ""


def select_entries(entries: Iterable[Entry], least_importance: int) -> list[Entry]:
    """Return the entries to reflect on, in order: important enough, and no reflection themselves."""
    important = (entry for entry in entries if entry.importance >= least_importance)
    return sorted(
        (entry for entry in important if entry.type is not EntryType.REFLECTION), key=lambda entry: entry.seq
    )


def insights(
    entries: Sequence[Entry],
    *,
    related: Sequence[RelatedItem] = (),
    lessons: Sequence[RelatedItem] = (),
    others: Iterable[Entry] = (),
) -> list[Insight]:
    """Return what recurs among entries, the most pressing first, five at most.

    `others` are below the importance threshold: they count only where they say that something is over.
    """
    obstacles = blocker_timelines(entries[-_MOST_COMPARED:], others)[:_MOST_OBSTACLES]
    reported = {timeline.issue or timeline.victim for timeline in obstacles}
    found = [
        *(_blocker_insight(timeline, entries, related) for timeline in obstacles),
        _mutual_wait_insight(entries),
        _cross_role_insight(entries, related, reported),
        _decisions_insight(entries),
        _lessons_insight(entries, lessons),
        _theme_insight(entries),
    ]
    return [insight for insight in found if insight is not None][:MOST_INSIGHTS]


def blocker_timelines(entries: Sequence[Entry], others: Iterable[Entry] = ()) -> list[BlockerTimeline]:
    """Return the obstacles that recur among entries; of `others` only the ends count."""
    roles = sorted({entry.role for entry in entries if entry.role})
    known = {entry.id for entry in entries}
    reports = [report for entry in entries for report in read_reports(entry, roles)]
    later = [report for entry in others if entry.id not in known for report in read_reports(entry, roles)]
    ends = [report for report in (*reports, *later) if report.sign is ObstacleSign.ENDED]
    ends.sort(key=lambda report: report.position)
    blocked, troubled = (
        [_make_timeline(group, ends) for group in _group_reports(reports, sign)]
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


def _make_timeline(group: Sequence[ObstacleReport], ends: Sequence[ObstacleReport]) -> BlockerTimeline:
    """Return the timeline of a group, with what became of the obstacle after its last report."""
    reports = tuple(sorted(group, key=lambda report: report.position))
    sign, issue, victim, subject = reports[0].sign, None, None, Subject()
    if sign is ObstacleSign.BLOCKED and reports[0].issues:
        issue = reports[0].issues[0]
    else:
        subject = common_subject([report.subject for report in reports])
        victim = _main_victim(reports) if sign is ObstacleSign.BLOCKED else None
    timeline = BlockerTimeline(sign, reports, subject, issue, victim)
    issues = {number for number in (issue, victim) if number is not None}
    roles = {report.entry.role for report in reports if report.entry.role}
    for end in ends:
        if end.position <= reports[-1].position:
            continue
        state = _end_state(end, issues, subject)
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


def _make_insight(
    cluster: Sequence[Entry],
    action: str,
    *sentences: str,
    tags: tuple[str, ...],
    issues: tuple[int, ...],
    importance: int = 9,
    roles: tuple[str, ...] = (),
) -> Insight:
    """Return an insight about a cluster of entries, with the entries as its evidence."""
    ids = tuple(entry.id for entry in cluster)
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    evidence = f"Entries: {', '.join(ids[:_SHOWN_IDS])}{more}."
    return Insight(
        action=f"Reflection: {action}",
        content=" ".join((*filter(None, sentences), evidence, _HONESTLY)),
        importance=importance,
        tags=("reflection", "deterministic", *tags),
        issues=issues,
        roles=roles or _roles(cluster),
        evidence=ids,
    )


def _blocker_insight(
    timeline: BlockerTimeline, entries: Sequence[Entry], related: Sequence[RelatedItem]
) -> Insight:
    """Return what is said of a blocker or a trouble, and how it stands at the end."""
    cluster, cycles, end = timeline.entries, timeline.cycles, timeline.end
    issues = tuple(issue for issue in (timeline.issue, timeline.victim) if issue is not None)
    is_open, is_strategic = timeline.state is BlockerState.OPEN, len(cycles) >= STRATEGIC_CYCLES
    description = _describe_blocker(timeline, len(cycles))
    kind = "blocker" if timeline.sign is ObstacleSign.BLOCKED else "trouble"
    end_phrase, end_sentence = "", "No entry says that it is over."
    if end is not None:
        is_ended = timeline.state is BlockerState.ENDED
        end_phrase = f", {'ended in' if is_ended else 'perhaps over since'} cycle {end.entry.cycle}"
        end_sentence = f"{'Over' if is_ended else 'May be over'}: {_quote_entry(end.entry)}."
    trouble = sorted({report.entry.cycle for report in timeline.trouble} - set(cycles))
    insight = _make_insight(
        cluster,
        description + end_phrase,
        f"Recurring {kind}: told in {_count_entries(cluster)} of {_format_cycles(cycles)}"
        f"{_format_roles(cluster)}.",
        f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
        f"Trouble with it in {_format_cycles(trouble)} too." if trouble else "",
        end_sentence,
        _related_sentence(related, issues),
        tags=(kind,),
        issues=issues,
        importance=10 if is_open and is_strategic else 9,
    )
    return insight._replace(
        blocker=description if is_open and is_strategic and timeline.is_blocking else "",
        subject=timeline.subject,
        rule=_decided_rule(timeline, entries) if is_strategic else "",
    )


def _describe_blocker(timeline: BlockerTimeline, cycles: int) -> str:
    """Return what an obstacle did, as far as the words say who was blocked by what."""
    phrase = timeline.subject.phrase.replace("\u00a0", " ")
    if timeline.sign is ObstacleSign.TROUBLE:
        return f"trouble with {phrase} in {cycles} cycles"
    if timeline.issue is not None:
        return f"#{timeline.issue} stood in the way in {cycles} cycles"
    if timeline.victim is not None:
        said = next((report.said for report in reversed(timeline.reports) if report.said), "")
        return f"#{timeline.victim} was blocked in {cycles} cycles{f': {_shorten(said)}' if said else ''}"
    verb = "stood in the way" if timeline.is_blocking else "was waited for"
    return f"“{phrase}” {verb} in {cycles} cycles"


def _decided_rule(timeline: BlockerTimeline, entries: Sequence[Entry]) -> str:
    """Return the rule about an obstacle that somebody decided on in so many words; else nothing."""
    words = timeline.subject.distinctive_words
    for entry in reversed(entries):
        text = " ".join(entry.action.split())
        if entry.type is not EntryType.DECISION or not _RULE.match(text):
            continue
        is_same_issue = bool({timeline.issue, timeline.victim} & set(entry.issues))
        if is_same_issue or (words and words <= subject_of(text, most=20).words):
            return text.rstrip(".")
    return ""


def _mutual_wait_insight(entries: Sequence[Entry]) -> Insight | None:
    """Return the two roles that wait for each other most; a wait in one direction is an ordinary handover."""
    pairs: dict[frozenset[str], list[Wait]] = {}
    roles = _roles(entries)
    for wait in (wait for entry in entries for wait in read_waits(entry, roles)):
        pairs.setdefault(frozenset((wait.who, wait.whom)), []).append(wait)
    mutual = [
        waits
        for waits in pairs.values()
        if len({wait.who for wait in waits}) > 1 and len(waits) >= _MUTUAL_WAITS
    ]
    if not mutual:
        return None
    waits = max(mutual, key=len)
    cluster = _unique(wait.entry for wait in waits)
    one, other = dict.fromkeys(wait.who for wait in waits)
    return _make_insight(
        cluster,
        f"{one} and {other} wait for each other",
        f"Cross-role: {'; '.join(_describe_waits(waits))}, {_format_cycles(_cycles(cluster))}.",
        f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
        tags=("cross-role", "waiting"),
        issues=_issues(cluster)[:_SHOWN_ISSUES],
        importance=10,
        roles=(one, other),
    )


def _cross_role_insight(
    entries: Sequence[Entry], related: Sequence[RelatedItem], reported: set[int | None]
) -> Insight | None:
    """Return the issue that most roles touched: who waits for whom, or in which order they worked on it."""
    known = _roles(entries)
    candidates = []
    for issue, cluster in _by_issue(entries).items():
        roles = _roles(cluster)
        waits = _describe_waits(wait for entry in cluster for wait in read_waits(entry, known))
        if len(roles) > 1 and (waits or issue not in reported):
            candidates.append(((len(waits), len(roles), len(cluster), -issue), cluster, waits))
    if not candidates:
        return None
    (*_, negative_issue), cluster, waits = max(candidates, key=lambda candidate: candidate[0])
    issue, roles = -negative_issue, _roles(cluster)
    changes = sum(one != other for one, other in pairwise(entry.role for entry in cluster if entry.role))
    return _make_insight(
        cluster,
        f"{len(roles)} roles work on #{issue}",
        f"Cross-role: #{issue} in {_count_entries(cluster)} of {_format_cycles(_cycles(cluster))},"
        f" first in this order: {' → '.join(roles[:6])}, {changes} handover{'s' if changes != 1 else ''}.",
        f"{'; '.join(waits)}." if waits else "",
        _related_sentence(related, (issue,)),
        tags=("cross-role",),
        issues=(issue,),
        importance=10 if waits else 9,
    )


def _decisions_insight(entries: Sequence[Entry]) -> Insight | None:
    made = [entry for entry in entries if entry.type is EntryType.DECISION]
    if len(made) < 2:
        return None
    more = f" (and {len(made) - 5} before)" if len(made) > 5 else ""
    return _make_insight(
        made,
        f"{len(made)} decisions in {_format_cycles(_cycles(made))}",
        f"Decisions: {'; '.join(map(_quote_entry, made[-5:]))}{more}.",
        tags=("decisions",),
        issues=_issues(made),
    )


def _lessons_insight(entries: Sequence[Entry], lessons: Sequence[RelatedItem]) -> Insight | None:
    """Return what the bank's lessons say about issues that these entries mention."""
    by_issue = _by_issue(entries)
    related = [lesson for lesson in lessons if any(issue in by_issue for issue in lesson.issues)]
    if not related:
        return None
    issues = tuple(dict.fromkeys(issue for each in related for issue in each.issues if issue in by_issue))
    names = "; ".join(f"{lesson.name} “{_shorten(lesson.text)}”" for lesson in related[:_SHOWN_RELATED])
    return _make_insight(
        _unique(entry for issue in issues for entry in by_issue[issue]),
        f"lessons are known about {', '.join(f'#{issue}' for issue in issues[:_SHOWN_ISSUES])}",
        f"Known lessons that met these issues: {names}.",
        tags=("lessons",),
        issues=issues,
    )


def _theme_insight(entries: Sequence[Entry]) -> Insight | None:
    by_tag: dict[str, list[Entry]] = {}
    for entry in entries:
        for tag in {tag.lower() for tag in entry.tags if not _NO_THEME.fullmatch(tag.lower())}:
            by_tag.setdefault(tag, []).append(entry)
    busy = [
        (-len(cluster), tag)
        for tag, cluster in by_tag.items()
        if len(cluster) >= _LEAST_THEME and len(_cycles(cluster)) >= _RECURRING_CYCLES
    ]
    if not busy:
        return None
    tag = min(busy)[1]
    cluster = by_tag[tag]
    return _make_insight(
        cluster,
        f"the busiest theme is {tag}",
        f"Theme: {tag} in {_count_entries(cluster)} of {len(entries)},"
        f" {_format_cycles(_cycles(cluster))}{_format_roles(cluster)}.",
        tags=("theme", tag),
        issues=_issues(cluster)[:_SHOWN_ISSUES],
    )


def _describe_waits(waits: Iterable[Wait]) -> list[str]:
    """Return who waits for whom and how often, the most frequent first."""
    counts = Counter((wait.who, wait.whom) for wait in waits)
    return [
        f"{who} waits for {whom} ({count} {'entry' if count == 1 else 'entries'})"
        for (who, whom), count in counts.most_common()
    ]


def _by_issue(entries: Iterable[Entry]) -> Mapping[int, list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        for issue in entry.issues:
            found.setdefault(issue, []).append(entry)
    return found


def _related_sentence(related: Sequence[RelatedItem], issues: Sequence[int]) -> str:
    names = [item.name for item in related if set(item.issues) & set(issues)][:_SHOWN_RELATED]
    return f"In the archive: {', '.join(names)}." if names else ""


def _quote_entry(entry: Entry) -> str:
    return f"“{_shorten(entry.action)}” (cycle {entry.cycle}{f', {entry.role}' if entry.role else ''})"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _format_cycles(cycles: Sequence[int]) -> str:
    if len(cycles) == 1:
        return f"cycle {cycles[0]}"
    if len(cycles) <= 5:
        return f"cycles {', '.join(map(str, cycles))}"
    return f"{len(cycles)} cycles from {cycles[0]} to {cycles[-1]}"


def _format_roles(cluster: Sequence[Entry]) -> str:
    counts = Counter(entry.role for entry in cluster if entry.role)
    return f" ({', '.join(f'{role} {count}' for role, count in counts.most_common(6))})" if counts else ""


def _count_entries(cluster: Sequence[Entry]) -> str:
    return f"{len(cluster)} {'entry' if len(cluster) == 1 else 'entries'}"


def _cycles(cluster: Iterable[Entry]) -> list[int]:
    return sorted({entry.cycle for entry in cluster})


def _unique(cluster: Iterable[Entry]) -> list[Entry]:
    return list({entry.id: entry for entry in cluster}.values())


def _roles(cluster: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.role for entry in cluster if entry.role))


def _issues(cluster: Iterable[Entry]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(issue for entry in cluster for issue in entry.issues))
