"""Follow obstacles through a stream: since when, how often, what was done about them, what ended them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.insight_text import (
    Insight,
    RelatedItem,
    cycles_of,
    labels_of,
    make_insight,
    name_related,
    quote_entry,
    quote_report,
    roles_of,
    shorten,
    unique_entries,
)
from archivist.stream.obstacles import (
    TICKET,
    ObstacleReport,
    Words,
    are_alike,
    are_surely_alike,
    common_words,
    read_reports,
    words_of,
)

# A blocker of three cycles is no longer noise: it goes into core memory, where every role sees it.
STRATEGIC_CYCLES = 3
# A blocker recurs with its second cycle; trouble now and then is normal, and needs a third.
_BLOCKED_CYCLES = 2
_TROUBLED_CYCLES = 3
_SHOWN_TRIED = 3
_AGAIN = re.compile(r"\b(?:again|still|once more|is back|are back)\b", re.IGNORECASE)
_UNDONE = re.compile(r"\b(?:still|not|yet|no|nobody|nothing)\b|n['\u2019]t\b", re.IGNORECASE)
# A decision that begins so is a rule in the words of those who made it.
RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|do not|don['\u2019]t|rule:)\b",
    re.IGNORECASE,
)


class Timeline(NamedTuple):
    """One obstacle over time: its reports, its words, and how it stands.

    `issues` has the number of what blocks, else of what is blocked. `end` is the report that ends it; where
    it is not `is_over`, it may do so. `began` is the first report of the same thing, also as mere trouble;
    `relapses` are the ends after which it came back.
    """

    reports: list[ObstacleReport]
    words: Words
    issues: tuple[int, ...]
    end: ObstacleReport | None = None
    is_over: bool = False
    began: ObstacleReport | None = None
    relapses: tuple[ObstacleReport, ...] = ()

    @property
    def is_blocker(self) -> bool:
        return self.reports[0].sign == "blocked"

    @property
    def cycles(self) -> list[int]:
        return cycles_of(report.entry for report in self.reports)


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


def find_obstacles(
    entries: Sequence[Entry], others: Iterable[Entry] = (), new: Collection[str] | None = None
) -> list[Timeline]:
    """Return the obstacles that recur among entries; of `others` only the ends count.

    With `new` only those of which a new entry, or one of `others`, tells.
    """
    roles = roles_of(entries)
    reports = [report for entry in entries for report in read_reports(entry, roles)]
    known = {entry.id for entry in entries}
    later = [report for entry in others if entry.id not in known for report in read_reports(entry, roles)]
    ends = [report for report in (*reports, *later) if report.sign == "ended"]
    ends.sort(key=lambda end: end.position)
    groups: list[list[ObstacleReport]] = []
    for report in (report for report in reports if report.sign != "ended"):
        home = next((group for group in groups if _is_same_obstacle(report, group)), None)
        if home is None:
            groups.append(home := [])
        home.append(report)
    found = [_make_timeline(group, ends) for group in groups]
    blockers = [each for each in found if each.is_blocker and len(each.cycles) >= _BLOCKED_CYCLES]
    rare = [each for each in found if each.is_blocker and len(each.cycles) < _BLOCKED_CYCLES]
    # What blocks once is one sighting more of the same trouble.
    troubles = [_make_timeline(_with_sightings(each, rare), ends) for each in found if not each.is_blocker]
    # Trouble now and then is normal, unless somebody says that it is back, or how it ended.
    troubles = [
        each
        for each in troubles
        if len(each.cycles) >= _TROUBLED_CYCLES
        or (len(each.cycles) > 1 and (each.is_over or _AGAIN.search(each.reports[-1].said)))
    ]
    # Trouble with what blocks is no second obstacle.
    troubles = [each for each in troubles if not any(are_alike(each.words, b.words) for b in blockers)]
    # What still blocks comes before what is over, then the most frequent.
    whole = [_with_beginning(each, found, ends) for each in (*blockers, *troubles)]
    return sorted(
        (each for each in whole if new is None or _is_told_by(each, new, known)),
        key=lambda each: (each.end is not None, not each.is_blocker, -len(each.cycles)),
    )


def _is_told_by(timeline: Timeline, new: Collection[str], known: Collection[str]) -> bool:
    ids = {report.entry.id for report in (*timeline.reports, *((timeline.end,) if timeline.end else ()))}
    return not ids.isdisjoint(new) or not ids <= {*known}


def _with_sightings(trouble: Timeline, rare: Sequence[Timeline]) -> list[ObstacleReport]:
    same = [
        report
        for each in rare
        if each.words and are_alike(each.words, trouble.words)
        for report in each.reports
    ]
    first, *rest = trouble.reports
    return [first, *sorted((*rest, *same), key=lambda report: report.position)] if same else trouble.reports


def _is_same_obstacle(report: ObstacleReport, group: Sequence[ObstacleReport]) -> bool:
    """Say whether a report is about the obstacle of a group: by the issue, else the words or the victim."""
    if report.sign != group[0].sign:
        return False
    if report.sign == "blocked" and (report.issues or group[0].issues):
        return report.issues == group[0].issues
    if report.sign == "trouble" and {*report.issues} & {*group[0].issues}:
        return True
    is_same_victim = bool(report.victims) and report.victims[:1] == _main_victim(group)
    return is_same_victim or are_alike(report.words, common_words([each.words for each in group]))


def _main_victim(group: Sequence[ObstacleReport]) -> tuple[int, ...]:
    """Return the issue that most of a group's reports say to be blocked, or nothing."""
    return Counter(report.victims[:1] for report in group).most_common(1)[0][0]


def _make_timeline(group: list[ObstacleReport], ends: Sequence[ObstacleReport]) -> Timeline:
    """Return the timeline of a group, with what became of the obstacle after its last report."""
    issues: tuple[int, ...] = ()
    is_blocker = group[0].sign == "blocked"
    if is_blocker:
        issues = group[0].issues or _main_victim(group)
    else:
        counts = Counter(issue for report in group for issue in {*report.issues})
        issues = tuple(i for i, count in counts.most_common(1) if count > 1 and 2 * count >= len(group))
    is_named = is_blocker and issues and group[0].issues
    words = {} if is_named else common_words([report.words for report in group])
    timeline = Timeline(group, words, issues)
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


def _with_beginning(
    timeline: Timeline, found: Sequence[Timeline], ends: Sequence[ObstacleReport]
) -> Timeline:
    """Return a timeline that knows its first report and the ends after which it came back."""
    issues, words = {*timeline.issues}, timeline.words
    same = [
        report
        for each in found
        if each is timeline or issues & {*each.issues} or (words and are_alike(each.words, words))
        for report in each.reports
    ]
    began, last = min(same, key=lambda report: report.position), timeline.reports[-1]
    between = (end for end in ends if began.position < end.position < last.position)
    relapses = (end for end in between if end.reach != "all" and _is_end(end, issues, words))
    return timeline._replace(began=began, relapses=tuple(relapses))


def obstacle_insight(timeline: Timeline, entries: Sequence[Entry], related: Sequence[RelatedItem]) -> Insight:
    """Return what is said of a blocker or a trouble, and how it stands at the end."""
    cluster, cycles, end = (
        unique_entries(report.entry for report in timeline.reports),
        timeline.cycles,
        timeline.end,
    )
    issues, description = timeline.issues, _describe_obstacle(timeline)
    began, last = timeline.began or timeline.reports[0], cluster[-1]
    ended = f", open since cycle {began.entry.cycle}"
    latest = max(entry.cycle for entry in entries)
    state = f"Open since cycle {began.entry.cycle}, last told as {quote_report(timeline.reports[-1])}."
    named = [
        entry.cycle
        for entry in entries
        if {*issues} & {*entry.issues} or are_surely_alike(words_of(entry.action), timeline.words)
    ]
    quiet = latest - max((last.cycle, *named))
    if quiet >= STRATEGIC_CYCLES:
        state += f" Not named in the {quiet} cycles since: ask whether it is over."
    if end is not None:
        ended = f", {'ended in' if timeline.is_over else 'perhaps over since'} cycle {end.entry.cycle}"
        state = f"{'What ended it' if timeline.is_over else 'What may have ended it'}: {quote_report(end)}."
    kind = "blocker" if timeline.is_blocker else "trouble"
    is_strategic = len(cycles) >= STRATEGIC_CYCLES
    is_pressing = is_strategic and end is None
    decision = _find_decision(timeline, entries) if is_strategic else None
    relapses = [report.entry for report in timeline.relapses[-1:]]
    # An entry that is only filed under an issue does not say that the issue is blocked.
    victims = dict.fromkeys(
        issue
        for each in timeline.reports
        for issue in each.victims
        if issue not in issues and f"#{issue}" in f"{each.entry.action} {each.entry.content}"
    )
    known = (*cluster, began.entry, *relapses, *(each for each in (end and end.entry, decision) if each))
    told = {entry.id for entry in known}
    tried = [entry for entry in _find_tried(timeline, entries) if entry.id not in told][-_SHOWN_TRIED:]
    return make_insight(
        cluster,
        description + ended,
        state,
        f"It began with {quote_report(began)}." if began.entry.id != last.id else "",
        *(f"It came back after {quote_report(report)}." for report in timeline.relapses[-1:]),
        f"Done about it: {'; '.join(map(quote_entry, tried))}." if tried else "",
        f"Held up: {', '.join(f'#{issue}' for issue in victims)}." if victims else "",
        f"Decided: {quote_entry(decision)}." if decision else "",
        name_related(related, issues),
        tags=(kind,),
        issues=issues,
        importance=10 if is_pressing else 9,
        quoted=(*known, *tried),
        about=_about(timeline),
    )._replace(
        blocker=description if is_pressing and timeline.is_blocker else "",
        words=tuple(timeline.words),
        rule=" ".join(decision.action.split()).rstrip(".") if decision else "",
    )


def _describe_obstacle(timeline: Timeline) -> str:
    """Name an obstacle and in how many cycles it was reported."""
    issues, span = timeline.issues, f"in {len(timeline.cycles)} cycles"
    tickets = [token for token in timeline.words.values() if TICKET.fullmatch(token)]
    phrase = " ".join(token for token in timeline.words.values() if token not in tickets)
    if len(phrase.split()) < 2 and not issues and not tickets:
        phrase = f"{phrase} (“{shorten(timeline.reports[0].said, most=60)}”)"
    phrase = f"{tickets[0]}{f' ({phrase})' if phrase else ''}" if tickets else phrase
    fits = [
        (len({*each.words} & {*timeline.words}), at, each.said) for at, each in enumerate(timeline.reports)
    ]
    said = max((each for each in fits if each[2]), default=(0, 0, ""))[2]
    if timeline.is_blocker and not timeline.reports[0].issues and (issues or tickets):
        name = f"#{issues[0]}" if issues else tickets[0]
        return f"{name} was blocked {span}{f': {shorten(said)}' if said else ''}"
    if timeline.is_blocker:
        return f"{f'#{issues[0]}' if issues else f'“{phrase}”'} stood in the way {span}"
    number = f" (#{issues[0]})" if issues else ""
    return f"trouble with {phrase}{number} {span}"


def _about(timeline: Timeline) -> set[str]:
    """Return the labels that an obstacle is about: its issues, and what most of its reports refer to."""
    cluster = unique_entries(report.entry for report in timeline.reports)
    counts = Counter(label for entry in cluster for label in labels_of(entry))
    return {f"#{issue}" for issue in timeline.issues} | {
        label for label, count in counts.items() if 2 * count >= len(cluster)
    }


def ended_insight(blocker: str, issues: Sequence[int], end: ObstacleReport) -> Insight:
    """Return what ended a blocker that an earlier reflection told of."""
    action = f"{blocker}, ended in cycle {end.entry.cycle}"
    ended = f"What ended it: {quote_report(end)}."
    return make_insight([end.entry], action, ended, tags=("blocker",), issues=tuple(issues))


def _find_tried(timeline: Timeline, entries: Sequence[Entry]) -> list[Entry]:
    """Return what entries say was done about an obstacle after its first report and before its end."""
    began, end, roles = timeline.began or timeline.reports[0], timeline.end, roles_of(entries)
    found = []
    for entry in entries:
        is_between = began.entry.seq < entry.seq and (end is None or entry.seq < end.entry.seq)
        is_alike = are_surely_alike(words_of(entry.action), timeline.words)
        # Who observes that nothing has happened has done nothing about it.
        is_work = entry.type is not EntryType.OBSERVATION and not _UNDONE.search(entry.action)
        if is_between and is_work and (is_alike or {*timeline.issues} & {*entry.issues}):
            is_report = any(report.sign != "ended" for report in read_reports(entry, roles))
            found += [] if is_report else [entry]
    return found


def _find_decision(timeline: Timeline, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry in which somebody decided on a rule about an obstacle in so many words."""
    words = timeline.words.keys()
    for entry in reversed(entries):
        text = " ".join(entry.action.split())
        if entry.type is EntryType.DECISION and RULE.match(text):
            is_same_issue = bool({*timeline.issues} & {*entry.issues})
            if is_same_issue or (words and words <= words_of(text).keys()):
                return entry
    return None
