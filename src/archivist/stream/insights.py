"""Find what recurs in a stream by counting, and decide when a reflection is due.

Every insight is a cluster of entries: a recurring blocker or trouble and whether it is over, roles that wait
for each other, an issue that several roles work on, decisions, the theme of most entries, known lessons about
the same issues. It names its counts, its cycles and its entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from archivist.config import StreamRules
from archivist.records import Entry, EntryType
from archivist.stream.obstacles import (
    ObstacleReport,
    Wait,
    Words,
    are_alike,
    common_words,
    read_reports,
    read_waits,
    words_of,
)
from archivist.stream.sessions import SESSION, SessionPattern, session_patterns
from archivist.text import shorten_line

# A reflection is read in full, so it holds only a few insights, obstacles first.
MOST_INSIGHTS = 5
# A blocker of three cycles is no longer noise: it goes into core memory, where every role sees it.
STRATEGIC_CYCLES = 3
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
_shorten = partial(shorten_line, most=110)
_HONESTLY = "Counted, not interpreted."
# Tags that name no subject: references, types, and those that an importer or a session's entry has.
_NO_THEME = re.compile(
    r"bank|session|(?:issue|pr|cycle)[-_ ]?\d+"
    r"|reflection|deterministic|action|decision|observation|block(?:ed|ers?|ing)"
)
# A decision that begins so is a rule in the words of those who made it.
_RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|do not|don['\u2019]t|rule:)\b",
    re.IGNORECASE,
)


class RelatedItem(NamedTuple):
    """A document or a lesson: its name, its text, and the issues that it is about."""

    name: str
    text: str
    issues: tuple[int, ...] = ()


class Insight(NamedTuple):
    """One thing that recurs, its weight and its evidence.

    `blocker` is the line for the status in core memory, for a blocker that is open and strategic; `words`
    say what it is about; `rule` a rule about it that somebody decided on; `quoted` are the entries whose
    words it repeats.
    """

    action: str
    content: str
    importance: int
    tags: tuple[str, ...]
    issues: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    blocker: str = ""
    words: tuple[str, ...] = ()
    rule: str = ""
    quoted: tuple[str, ...] = ()


class _Timeline(NamedTuple):
    """One obstacle over time: its reports, its words, and how it stands.

    `issues` has the number of what blocks, else of what is blocked. `end` is the report that ends it; where
    it is not `is_over`, it may do so.
    """

    reports: list[ObstacleReport]
    words: Words
    issues: tuple[int, ...]
    end: ObstacleReport | None = None
    is_over: bool = False

    @property
    def is_blocker(self) -> bool:
        return self.reports[0].sign == "blocked"

    @property
    def cycles(self) -> list[int]:
        return _cycles(report.entry for report in self.reports)


def reason_to_reflect(
    rules: StreamRules, *, entries: int, importance: int, cycles: int, sprints: tuple[str, str] = ("", "")
) -> str:
    """Return why a reflection is due by what was logged since the last one, or an empty text."""
    if not entries:
        return ""
    if importance > rules.reflect_at_importance:
        return f"importance of unreflected entries is {importance}, over {rules.reflect_at_importance}"
    if cycles >= rules.reflect_at_cycles:
        return f"{cycles} cycles since the last reflection"
    before, now = (sprint or "none" for sprint in sprints)
    return f"sprint boundary: {before} → {now}" if before != now else ""


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
    # What a session's entry says has a form of its own, which is counted and not read.
    sessions, entries = (
        [entry for entry in entries if (SESSION in entry.tags) is is_session] for is_session in (True, False)
    )
    obstacles = _find_obstacles(entries[-_MOST_COMPARED:], others)[:_MOST_OBSTACLES]
    reported = {issue for timeline in obstacles for issue in timeline.issues}
    found = [
        *(_obstacle_insight(timeline, entries, related) for timeline in obstacles),
        *(_session_insight(pattern) for pattern in session_patterns(sessions)),
        _mutual_wait_insight(entries),
        _cross_role_insight(entries, related, reported),
        _decisions_insight(entries),
        _lessons_insight(entries, lessons),
        _theme_insight(entries),
    ]
    return [insight for insight in found if insight is not None][:MOST_INSIGHTS]


def find_end(
    entries: Sequence[Entry], *, issues: Collection[int], words: Collection[str], roles: Collection[str]
) -> ObstacleReport | None:
    """Return the report in later entries that surely ends an obstacle; None where it is reported again."""
    last = None
    for report in (report for entry in entries for report in read_reports(entry, roles)):
        if report.sign == "ended":
            is_about = _is_end(report, issues, words)
        else:
            is_about = bool({*report.issues, *report.victims} & {*issues}) or are_alike(report.words, words)
        last = report if is_about else last
    return last if last is not None and last.sign == "ended" else None


def _is_end(end: ObstacleReport, issues: Collection[int], words: Collection[str]) -> bool:
    """Say whether an end is surely that of an obstacle: it names its issue or its words, or is for all."""
    is_alike = not end.issues and are_alike(end.words, words)
    return end.reach == "all" or bool({*end.issues} & {*issues}) or is_alike


def _find_obstacles(entries: Sequence[Entry], others: Iterable[Entry]) -> list[_Timeline]:
    """Return the obstacles that recur among entries; of `others` only the ends count."""
    roles = _roles(entries)
    reports = [report for entry in entries for report in read_reports(entry, roles)]
    known = {entry.id for entry in entries}
    later = [report for entry in others if entry.id not in known for report in read_reports(entry, roles)]
    ends = [report for report in (*reports, *later) if report.sign == "ended"]
    ends.sort(key=lambda end: end.position)
    groups: list[list[ObstacleReport]] = []
    for report in reports:
        if report.sign != "ended":
            home = next((group for group in groups if _is_same_obstacle(report, group)), None)
            if home is None:
                groups.append([report])
            else:
                home.append(report)
    found = [_make_timeline(group, ends) for group in groups]
    blockers = [each for each in found if each.is_blocker and len(each.cycles) >= _BLOCKED_CYCLES]
    # Trouble with what blocks is no second obstacle.
    troubles = [
        each
        for each in found
        if not each.is_blocker
        and len(each.cycles) >= _TROUBLED_CYCLES
        and not any(are_alike(each.words, blocker.words) for blocker in blockers)
    ]
    # What still blocks comes before what is over, then the most frequent.
    return sorted(
        (*blockers, *troubles),
        key=lambda each: (each.end is not None, not each.is_blocker, -len(each.cycles)),
    )


def _is_same_obstacle(report: ObstacleReport, group: Sequence[ObstacleReport]) -> bool:
    """Say whether a report is about the obstacle of a group: by the issue, else the words or the victim."""
    if report.sign != group[0].sign:
        return False
    if report.sign == "blocked" and (report.issues or group[0].issues):
        return report.issues == group[0].issues
    is_same_victim = bool(report.victims) and report.victims[:1] == _main_victim(group)
    return is_same_victim or are_alike(report.words, common_words([each.words for each in group]))


def _main_victim(group: Sequence[ObstacleReport]) -> tuple[int, ...]:
    """Return the issue that most of a group's reports say to be blocked, or nothing."""
    return Counter(report.victims[:1] for report in group).most_common(1)[0][0]


def _make_timeline(group: list[ObstacleReport], ends: Sequence[ObstacleReport]) -> _Timeline:
    """Return the timeline of a group, with what became of the obstacle after its last report."""
    issues: tuple[int, ...] = ()
    if group[0].sign == "blocked":
        issues = group[0].issues or _main_victim(group)
    words = {} if issues and group[0].issues else common_words([report.words for report in group])
    timeline = _Timeline(group, words, issues)
    roles = {report.entry.role for report in group if report.entry.role}
    for end in ends:
        if end.position <= group[-1].position:
            continue
        if _is_end(end, issues, words):
            return timeline._replace(end=end, is_over=True)
        is_of_role = end.reach == "role" and end.entry.role in roles
        if timeline.end is None and (is_of_role or {*issues} & {*end.victims} or {*words} & {*end.words}):
            timeline = timeline._replace(end=end)
    return timeline


def _make_insight(
    cluster: Sequence[Entry],
    action: str,
    *sentences: str,
    tags: tuple[str, ...],
    issues: tuple[int, ...] | None = None,
    importance: int = 9,
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
        issues=tuple(_by_issue(cluster))[:_SHOWN_ISSUES] if issues is None else issues,
        roles=_roles(cluster),
        evidence=ids,
        quoted=ids,
    )


def _obstacle_insight(
    timeline: _Timeline, entries: Sequence[Entry], related: Sequence[RelatedItem]
) -> Insight:
    """Return what is said of a blocker or a trouble, and how it stands at the end."""
    cluster, cycles, end = _unique(report.entry for report in timeline.reports), timeline.cycles, timeline.end
    issues, phrase, span = timeline.issues, " ".join(timeline.words.values()), f"in {len(cycles)} cycles"
    if issues and not timeline.reports[0].issues:
        said = next((report.said for report in reversed(timeline.reports) if report.said), "")
        description = f"#{issues[0]} was blocked {span}{f': {_shorten(said)}' if said else ''}"
    elif timeline.is_blocker:
        description = f"{f'#{issues[0]}' if issues else f'“{phrase}”'} stood in the way {span}"
    else:
        description = f"trouble with {phrase} {span}"
    ended, over = "", "No entry says that it is over."
    if end is not None:
        ended = f", {'ended in' if timeline.is_over else 'perhaps over since'} cycle {end.entry.cycle}"
        over = f"{'Over' if timeline.is_over else 'May be over'}: {_quote_entry(end.entry)}."
    kind = "blocker" if timeline.is_blocker else "trouble"
    is_strategic = len(cycles) >= STRATEGIC_CYCLES
    is_pressing = is_strategic and end is None
    decision = _find_decision(timeline, entries) if is_strategic else None
    quoted = [*cluster, *([end.entry] if end else ()), *([decision] if decision else ())]
    return _make_insight(
        cluster,
        description + ended,
        f"Recurring {kind}: told in {_describe_cluster(cluster)}.",
        f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
        over,
        _name_related(related, issues),
        tags=(kind,),
        issues=issues,
        importance=10 if is_pressing else 9,
    )._replace(
        blocker=description if is_pressing and timeline.is_blocker else "",
        words=tuple(timeline.words),
        rule=" ".join(decision.action.split()).rstrip(".") if decision else "",
        quoted=tuple(entry.id for entry in quoted),
    )


def _find_decision(timeline: _Timeline, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry in which somebody decided on a rule about an obstacle in so many words."""
    words = timeline.words.keys()
    for entry in reversed(entries):
        text = " ".join(entry.action.split())
        if entry.type is EntryType.DECISION and _RULE.match(text):
            is_same_issue = bool({*timeline.issues} & {*entry.issues})
            if is_same_issue or (words and words <= words_of(text).keys()):
                return entry
    return None


def _session_insight(pattern: SessionPattern) -> Insight:
    return _make_insight(pattern.cluster, pattern.title, *pattern.sentences, tags=(pattern.kind,))


def _mutual_wait_insight(entries: Sequence[Entry]) -> Insight | None:
    """Return the two roles that wait for each other most; a wait in one direction is an ordinary handover."""
    pairs: dict[frozenset[str], list[Wait]] = {}
    roles = _roles(entries)
    for wait in (wait for entry in entries for wait in read_waits(entry, roles)):
        pairs.setdefault(frozenset((wait.who, wait.whom)), []).append(wait)
    mutual = (waits for waits in pairs.values() if len({wait.who for wait in waits}) > 1)
    waits = max(mutual, key=len, default=[])
    if len(waits) < _MUTUAL_WAITS:
        return None
    cluster = _unique(wait.entry for wait in waits)
    one, other = dict.fromkeys(wait.who for wait in waits)
    return _make_insight(
        cluster,
        f"{one} and {other} wait for each other",
        f"Cross-role: {'; '.join(_describe_waits(waits))}, {_format_cycles(_cycles(cluster))}.",
        f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
        tags=("cross-role", "waiting"),
        importance=10,
    )._replace(roles=(one, other))


def _cross_role_insight(
    entries: Sequence[Entry], related: Sequence[RelatedItem], reported: set[int]
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
        f"Cross-role: #{issue} in {_describe_cluster(cluster)},"
        f" first in this order: {' → '.join(roles[:6])}, {changes} handover{'s' if changes != 1 else ''}.",
        f"{'; '.join(waits)}." if waits else "",
        _name_related(related, (issue,)),
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
        issues=tuple(_by_issue(made)),
    )


def _lessons_insight(entries: Sequence[Entry], lessons: Sequence[RelatedItem]) -> Insight | None:
    """Return what the bank's lessons say about issues that these entries mention."""
    by_issue = _by_issue(entries)
    related = [lesson for lesson in lessons if by_issue.keys() & {*lesson.issues}]
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
        if len(cluster) >= _LEAST_THEME and len(_cycles(cluster)) > 1
    ]
    if not busy:
        return None
    tag = min(busy)[1]
    return _make_insight(
        by_tag[tag],
        f"the busiest theme is {tag}",
        f"Theme: {tag} in {_describe_cluster(by_tag[tag])}; {len(entries)} entries in all.",
        tags=("theme", tag),
    )


def _name_related(related: Sequence[RelatedItem], issues: Sequence[int]) -> str:
    names = [item.name for item in related if {*item.issues} & {*issues}][:_SHOWN_RELATED]
    return f"In the archive: {', '.join(names)}." if names else ""


def _describe_waits(waits: Iterable[Wait]) -> list[str]:
    """Return who waits for whom and how often, the most frequent first."""
    counts = Counter((wait.who, wait.whom) for wait in waits)
    return [
        f"{who} waits for {whom} ({count} entr{'y' if count == 1 else 'ies'})"
        for (who, whom), count in counts.most_common()
    ]


def _describe_cluster(cluster: Sequence[Entry]) -> str:
    """Return how many entries a cluster has, in which cycles and of which roles."""
    counts = Counter(entry.role for entry in cluster if entry.role).most_common(6)
    roles = f" ({', '.join(f'{role} {count}' for role, count in counts)})" if counts else ""
    entries = f"{len(cluster)} entr{'y' if len(cluster) == 1 else 'ies'}"
    return f"{entries} of {_format_cycles(_cycles(cluster))}{roles}"


def _quote_entry(entry: Entry) -> str:
    return f"“{_shorten(entry.action)}” (cycle {entry.cycle}{f', {entry.role}' if entry.role else ''})"


def _format_cycles(cycles: Sequence[int]) -> str:
    if len(cycles) == 1:
        return f"cycle {cycles[0]}"
    if len(cycles) <= 5:
        return f"cycles {', '.join(map(str, cycles))}"
    return f"{len(cycles)} cycles from {cycles[0]} to {cycles[-1]}"


def _cycles(cluster: Iterable[Entry]) -> list[int]:
    return sorted({entry.cycle for entry in cluster})


def _unique(cluster: Iterable[Entry]) -> list[Entry]:
    return list({entry.id: entry for entry in cluster}.values())


def _roles(cluster: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.role for entry in cluster if entry.role))


def _by_issue(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        for issue in entry.issues:
            found.setdefault(issue, []).append(entry)
    return found
