"""Conclude from a stream what a reader can use, without a model, and decide when a reflection is due.

Every insight is a cluster of entries: a blocker or trouble that recurs, since when, what was done about it
and what ended it; roles that wait for each other, and for what; work that several roles left open; lessons
that somebody stated; decisions that hold; known lessons about the same issues. A mere count is no insight.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from archivist.config import StreamRules
from archivist.reading.similarity import Likeness, Statement, compare
from archivist.records import Entry, EntryType
from archivist.stream.obstacles import (
    ObstacleReport,
    Wait,
    Words,
    are_alike,
    common_words,
    read_reports,
    read_waits,
    split_sentences,
    words_of,
)
from archivist.stream.sessions import SESSION, session_patterns
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
# One wait is an ordinary handover, and an issue that was named twice is no thread.
_LEAST_WAITS = 2
_LEAST_THREAD = 3
_MOST_STATED = 2
_COMPARED_DECISIONS = 20
_SHOWN_TRIED = 3
_SHOWN_IDS = 10
_SHOWN_ISSUES = 5
_SHOWN_RELATED = 3
_shorten = partial(shorten_line, most=110)
# A decision that begins so is a rule in the words of those who made it.
_RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|do not|don['\u2019]t|rule:)\b",
    re.IGNORECASE,
)


# A sentence in which somebody says what was learnt.
_STATED = re.compile(
    r"\b(?:lessons?(?: learn(?:ed|t))?:|we learn(?:ed|t)|learn(?:ed|t)(?: that|:)|turn(?:s|ed)? out"
    r"|root cause|the (?:real |actual )?(?:cause|reason) (?:is|was)|takeaway:|next time|pattern:|insight:)",
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
        *(
            _make_insight(each.cluster, each.title, *each.sentences, tags=(each.kind,))
            for each in session_patterns(sessions)
        ),
        _mutual_wait_insight(entries),
        _thread_insight(entries, related, reported),
        *_stated_insights(entries),
        _lessons_insight(entries, lessons),
        _decisions_insight(entries),
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
    for report in (report for report in reports if report.sign != "ended"):
        home = next((group for group in groups if _is_same_obstacle(report, group)), None)
        if home is None:
            groups.append(home := [])
        home.append(report)
    found = [_make_timeline(group, ends) for group in groups]
    blockers = [each for each in found if each.is_blocker and len(each.cycles) >= _BLOCKED_CYCLES]
    # Trouble with what blocks is no second obstacle.
    troubles = [each for each in found if not each.is_blocker and len(each.cycles) >= _TROUBLED_CYCLES]
    troubles = [each for each in troubles if not any(are_alike(each.words, b.words) for b in blockers)]
    # What still blocks comes before what is over, then the most frequent.
    return sorted(
        (_with_beginning(each, found, ends) for each in (*blockers, *troubles)),
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


def _with_beginning(
    timeline: _Timeline, found: Sequence[_Timeline], ends: Sequence[ObstacleReport]
) -> _Timeline:
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


def _make_insight(
    cluster: Sequence[Entry],
    action: str,
    *sentences: str,
    tags: tuple[str, ...],
    issues: tuple[int, ...] | None = None,
    importance: int = 9,
    quoted: Iterable[Entry] = (),
) -> Insight:
    """Return an insight about a cluster of entries: its evidence, named with the others that it quotes."""
    ids = tuple(entry.id for entry in cluster)
    named = tuple(dict.fromkeys((*ids, *(entry.id for entry in quoted))))
    more = f" and {len(named) - _SHOWN_IDS} more" if len(named) > _SHOWN_IDS else ""
    evidence = f"Entries: {', '.join(named[:_SHOWN_IDS])}{more}."
    return Insight(
        action=f"Reflection: {action}",
        content=" ".join((*filter(None, sentences), evidence)),
        importance=importance,
        tags=("reflection", "deterministic", *tags),
        issues=tuple(_by_issue(cluster))[:_SHOWN_ISSUES] if issues is None else issues,
        roles=_roles(cluster),
        evidence=ids,
        quoted=named,
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
    began, last = timeline.began or timeline.reports[0], cluster[-1]
    ended = f", open since cycle {began.entry.cycle}"
    latest = max(entry.cycle for entry in entries)
    state = f"Open since cycle {began.entry.cycle}, last told as {_quote_report(timeline.reports[-1])}."
    if latest - last.cycle >= STRATEGIC_CYCLES:
        state += f" Not named in the {latest - last.cycle} cycles since: ask whether it is over."
    if end is not None:
        ended = f", {'ended in' if timeline.is_over else 'perhaps over since'} cycle {end.entry.cycle}"
        state = f"{'What ended it' if timeline.is_over else 'What may have ended it'}: {_quote_report(end)}."
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
    return _make_insight(
        cluster,
        description + ended,
        state,
        f"It began with {_quote_report(began)}." if began.entry.id != last.id else "",
        *(f"It came back after {_quote_report(report)}." for report in timeline.relapses[-1:]),
        f"Done about it: {'; '.join(map(_quote_entry, tried))}." if tried else "",
        f"Held up: {', '.join(f'#{issue}' for issue in victims)}." if victims else "",
        f"Decided: {_quote_entry(decision)}." if decision else "",
        _name_related(related, issues),
        tags=(kind,),
        issues=issues,
        importance=10 if is_pressing else 9,
        quoted=(*known, *tried),
    )._replace(
        blocker=description if is_pressing and timeline.is_blocker else "",
        words=tuple(timeline.words),
        rule=" ".join(decision.action.split()).rstrip(".") if decision else "",
    )


def ended_insight(blocker: str, issues: Sequence[int], end: ObstacleReport) -> Insight:
    """Return what ended a blocker that an earlier reflection told of."""
    action = f"{blocker}, ended in cycle {end.entry.cycle}"
    ended = f"What ended it: {_quote_report(end)}."
    return _make_insight([end.entry], action, ended, tags=("blocker",), issues=tuple(issues))


def _find_tried(timeline: _Timeline, entries: Sequence[Entry]) -> list[Entry]:
    """Return what entries say was done about an obstacle after its first report and before its end."""
    began, end, roles = timeline.began or timeline.reports[0], timeline.end, _roles(entries)
    found = []
    for entry in entries:
        is_between = began.entry.seq < entry.seq and (end is None or entry.seq < end.entry.seq)
        is_alike = timeline.words and are_alike(words_of(entry.action), timeline.words)
        if is_between and (is_alike or {*timeline.issues} & {*entry.issues}):
            is_report = any(report.sign != "ended" for report in read_reports(entry, roles))
            found += [] if is_report else [entry]
    return found


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
        f"{one} and {other} wait for each other since cycle {cluster[0].cycle}",
        "Neither goes on before one of them hands over.",
        *(_describe_wait([wait for wait in waits if wait.who == who]) for who in (one, other)),
        f"Last in cycle {cluster[-1].cycle}.",
        tags=("cross-role", "waiting"),
        importance=10,
    )._replace(roles=(one, other))


def _describe_wait(waits: Sequence[Wait]) -> str:
    """Return who waits for whom, in the words that say most of what for."""
    best = max(waits, key=lambda wait: len(words_of(wait.entry.action)))
    return f"{best.who} waits for {best.whom}: {_quote_entry(best.entry)}."


def _thread_insight(
    entries: Sequence[Entry], related: Sequence[RelatedItem], reported: set[int]
) -> Insight | None:
    """Return the issue of several roles that is still open, first one in which a role waits for another."""
    known, latest = _roles(entries), max((entry.cycle for entry in entries), default=0)
    candidates = []
    for issue, cluster in _by_issue(entries).items():
        roles, cycles = _roles(cluster), _cycles(cluster)
        waits = [wait for entry in cluster for wait in read_waits(entry, known)]
        is_waiting = len({wait.entry.cycle for wait in waits}) >= _LEAST_WAITS
        is_thread = len(cluster) >= _LEAST_THREAD and len(cycles) > 1 and issue not in reported
        if len(roles) < 2 or not (is_waiting or is_thread):
            continue
        # Whatever may have ended it was the last word on it.
        reports = [report for entry in cluster for report in read_reports(entry, known)]
        about = [report for report in reports if issue in (*report.issues, *report.victims)]
        if not about or about[-1].sign != "ended":
            candidates.append(((is_waiting, len(cluster), -issue), cluster, waits if is_waiting else []))
    if not candidates:
        return None
    (*_, negative_issue), cluster, waits = max(candidates, key=lambda candidate: candidate[0])
    issue, last = -negative_issue, cluster[-1]
    quiet = latest - last.cycle
    state = f"#{issue} is open since cycle {cluster[0].cycle}"
    if waits:
        state = f"{waits[-1].who} waits for {waits[-1].whom} on #{issue} since cycle {waits[0].entry.cycle}"
    elif quiet >= STRATEGIC_CYCLES:
        state = f"#{issue} is open and was left in cycle {last.cycle}"
    work = "; ".join(
        f"{role} in {_format_cycles(_cycles(entry for entry in cluster if entry.role == role))}"
        for role in _roles(cluster)[:_SHOWN_ISSUES]
    )
    return _make_insight(
        cluster,
        state,
        f"Last: {_quote_entry(last)}. No entry says that it is done.",
        _describe_wait(waits) if waits and waits[-1].entry is not last else "",
        f"Worked on by {work}.",
        _name_related(related, (issue,)),
        tags=("cross-role",),
        issues=(issue,),
        importance=10 if waits else 9,
    )


def _stated_insights(entries: Sequence[Entry]) -> list[Insight]:
    """Return the lessons that entries state in so many words, the most important first."""
    found: dict[str, Entry] = {}
    for entry in sorted(entries, key=lambda entry: (-entry.importance, -entry.seq)):
        for text in split_sentences(entry):
            if _STATED.search(text) and len(words_of(text)) > 2:
                found.setdefault(" ".join(text.split()), entry)
    return [
        _make_insight([entry], _shorten(text), f"Stated in {_quote_entry(entry)}: {text}.", tags=("lesson",))
        for text, entry in list(found.items())[:_MOST_STATED]
    ]


def _decisions_insight(entries: Sequence[Entry]) -> Insight | None:
    """Return the decisions that hold, and which of them replaced an earlier one."""
    # Each is compared with each: 20 take about 30 ms.
    made = [entry for entry in entries if entry.type is EntryType.DECISION][-_COMPARED_DECISIONS:]
    replaced: dict[str, Entry] = {}
    for at, later in enumerate(made):
        said = Statement("", later.action)
        for earlier in made[:at]:
            if compare(Statement("", earlier.action), said, 1.0).likeness is Likeness.CONFLICT:
                replaced[earlier.id] = later
    if len(made) < 2:
        return None
    hold = [entry for entry in made if entry.id not in replaced]
    action = _shorten(f"decided: {'; '.join(entry.action.rstrip('.') for entry in reversed(hold))}")
    holds = f"Holds: {'; '.join(map(_quote_entry, hold[-5:]))}."
    gone = [entry for entry in made if entry.id in replaced]
    news = (f"{_quote_entry(replaced[entry.id])} replaced {_quote_entry(entry)}." for entry in gone)
    return _make_insight(made, action, holds, *news, tags=("decisions",), issues=tuple(_by_issue(made)))


def _lessons_insight(entries: Sequence[Entry], lessons: Sequence[RelatedItem]) -> Insight | None:
    """Return what the bank's lessons say about issues that these entries mention."""
    by_issue = _by_issue(entries)
    related = [lesson for lesson in lessons if by_issue.keys() & {*lesson.issues}]
    if not related:
        return None
    issues = tuple(dict.fromkeys(issue for each in related for issue in each.issues if issue in by_issue))
    numbers = ", ".join(f"#{issue}" for issue in issues[:_SHOWN_ISSUES])
    names = "; ".join(f"{lesson.name} “{_shorten(lesson.text)}”" for lesson in related[:_SHOWN_RELATED])
    return _make_insight(
        _unique(entry for issue in issues for entry in by_issue[issue]),
        f"known about {numbers}: {_shorten(related[0].text)}",
        f"Lessons that met these issues: {names}.",
        tags=("lessons",),
        issues=issues,
    )


def _name_related(related: Sequence[RelatedItem], issues: Sequence[int]) -> str:
    names = [item.name for item in related if {*item.issues} & {*issues}][:_SHOWN_RELATED]
    return f"In the archive: {', '.join(names)}." if names else ""


def _quote_entry(entry: Entry, said: str = "") -> str:
    role = f", {entry.role}" if entry.role else ""
    return f"“{_shorten(entry.action)}{said}” (cycle {entry.cycle}{role})"


def _quote_report(report: ObstacleReport) -> str:
    """Quote an entry that reports an obstacle or its end, with the sentence that does where it is another."""
    sentences = list(split_sentences(report.entry))
    said = sentences[report.place] if report.place < len(sentences) else ""
    is_other = said and said not in " ".join(report.entry.action.replace("\u2019", "'").split())
    return _quote_entry(report.entry, f": {_shorten(said)}" if is_other else "")


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
