"""Say what recurs in a stream, by counting: when to look back, and what can be said without interpreting.

Every insight is a cluster of entries: a blocker or a trouble that comes again and whether it is over, roles
that wait for each other, an issue that several roles work on, what was decided, the theme of most entries,
lessons that are known about the same issues. It names its counts, its cycles and its entries. Where nothing
recurs there is nothing to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from archivist.config import StreamRules
from archivist.records import Entry, EntryType
from archivist.stream.blocker_timeline import BlockerState, BlockerTimeline, blocker_timelines
from archivist.stream.blockers import ObstacleSign, Wait, read_waits
from archivist.stream.subjects import Subject, subject_of

MOST_INSIGHTS = 5
# From so many cycles on a blocker concerns those who set the course.
STRATEGIC_CYCLES = 3
_RECURRING_CYCLES = 2
_MOST_OBSTACLES = 3
# So often two roles must have waited for each other, taken together, before it is more than a handover.
_MUTUAL_WAITS = 3
_MOST_COMPARED = 400
_LEAST_THEME = 3
_SHOWN_IDS = 8
_SHOWN_WORDS = 110
_HONESTLY = "Counted, not interpreted."
_NO_THEME = re.compile(
    r"(?:issue|pr|cycle)[-_ ]?\d+|reflection|deterministic|action|decision|observation|block(?:ed|ers?|ing)"
)
# A decision that begins so is a rule in the words of those who made it.
_RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|do not|don['\u2019]t|rule:)\b",
    re.IGNORECASE,
)


class Marker(NamedTuple):
    """How far the stream was reflected on, and the sprint that was on then."""

    seq: int = 0
    cycle: int = 0
    sprint: str = ""


class ReflectionBacklog(NamedTuple):
    """What has gathered since the last reflection."""

    entries: int
    importance: int
    cycles: int
    sprint: str = ""


class RelatedItem(NamedTuple):
    """Something else that is known: what it is called, what it says, which issues it is about."""

    name: str
    text: str
    issues: tuple[int, ...] = ()


class Insight(NamedTuple):
    """One thing that recurs, its weight and its evidence.

    `blocker` says what stands in the way so often, and still, that core memory should say it, `subject` in
    which words; `rule` is a rule about it that somebody decided on.
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
    """Return why a stream is to be reflected on now, or an empty text."""
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
    """Return what is worth reflecting on, in order: important enough, and no reflection itself."""
    kept = [
        entry
        for entry in entries
        if entry.importance >= least_importance and entry.type is not EntryType.REFLECTION
    ]
    return sorted(kept, key=lambda entry: entry.seq)


def insights(
    entries: Sequence[Entry],
    *,
    related: Sequence[RelatedItem] = (),
    lessons: Sequence[RelatedItem] = (),
    others: Iterable[Entry] = (),
) -> list[Insight]:
    """Return what recurs among entries, the most pressing first, five at most.

    `others` weigh too little to be told of, but count where they say that something is over.
    """
    obstacles = blocker_timelines(entries[-_MOST_COMPARED:], others)[:_MOST_OBSTACLES]
    said = {each.issue or each.victim for each in obstacles}
    found = [_blocker_insight(each, entries, related) for each in obstacles]
    found += [
        *_mutual_wait_insight(entries),
        *_cross_role_insight(entries, related, said),
        *_decisions(entries),
    ]
    found += [*_known_lessons(entries, lessons), *_theme(entries)]
    return found[:MOST_INSIGHTS]


def _blocker_insight(
    course: BlockerTimeline, entries: Sequence[Entry], related: Sequence[RelatedItem]
) -> Insight:
    """Return what is said of a blocker or a trouble, and how it stands at the end."""
    cluster, cycles = course.entries, course.cycles
    issues = tuple(issue for issue in (course.issue, course.victim) if issue is not None)
    is_open, is_strategic = course.state is BlockerState.OPEN, len(cycles) >= STRATEGIC_CYCLES
    called = _describe_blocker(course, len(cycles))
    kind = "blocker" if course.sign is ObstacleSign.BLOCKED else "trouble"
    return Insight(
        action=f"Reflection: {called}{_end_phrase(course)}",
        content=_join_sentences(
            f"Recurring {kind}: told in {_format_entries(cluster)} of {_format_cycles(cycles)}"
            f"{_format_roles(cluster)}.",
            f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
            _trouble_sentence(course),
            _end_sentence(course),
            _related_sentence(related, issues),
            _evidence_sentence(cluster),
        ),
        importance=10 if is_open and is_strategic else 9,
        tags=("reflection", "deterministic", kind),
        issues=issues,
        roles=_roles(cluster),
        evidence=_ids(cluster),
        blocker=called if is_open and is_strategic and course.is_blocking else "",
        subject=course.subject,
        rule=_decided_rule(course, entries) if is_strategic else "",
    )


def _describe_blocker(course: BlockerTimeline, cycles: int) -> str:
    """Return what an obstacle did, as far as the words say who was held up by what."""
    phrase = course.subject.phrase.replace("\u00a0", " ")
    if course.sign is ObstacleSign.TROUBLE:
        return f"trouble with {phrase} in {cycles} cycles"
    if course.issue is not None:
        return f"#{course.issue} stood in the way in {cycles} cycles"
    if course.victim is not None:
        said = next((each.said for each in reversed(course.reports) if each.said), "")
        by = f": {_shorten(said)}" if said else ""
        return f"#{course.victim} was blocked in {cycles} cycles{by}"
    how = "stood in the way" if course.is_blocking else "was waited for"
    return f"“{phrase}” {how} in {cycles} cycles"


def _end_phrase(course: BlockerTimeline) -> str:
    if course.end is None:
        return ""
    words = "ended in" if course.state is BlockerState.ENDED else "perhaps over since"
    return f", {words} cycle {course.end.entry.cycle}"


def _end_sentence(course: BlockerTimeline) -> str:
    if course.end is None:
        return "No entry says that it is over."
    how = "Over" if course.state is BlockerState.ENDED else "May be over"
    return f"{how}: {_quote_entry(course.end.entry)}."


def _trouble_sentence(course: BlockerTimeline) -> str:
    cycles = sorted({each.entry.cycle for each in course.trouble} - set(course.cycles))
    return f"Trouble with it in {_format_cycles(cycles)} too." if cycles else ""


def _decided_rule(course: BlockerTimeline, entries: Sequence[Entry]) -> str:
    """Return the rule about an obstacle that somebody decided on in so many words; else nothing."""
    for entry in reversed(entries):
        text = " ".join(entry.action.split())
        if entry.type is not EntryType.DECISION or not _RULE.match(text):
            continue
        issues = {course.issue, course.victim} & set(entry.issues)
        telling = course.subject.distinctive_words
        if issues or (telling and telling <= subject_of(text, most=20).words):
            return text.rstrip(".")
    return ""


def _mutual_wait_insight(entries: Sequence[Entry]) -> list[Insight]:
    """Return the two roles that wait for each other most; one that waits for another is no news by itself."""
    pairs: dict[frozenset[str], list[Wait]] = {}
    roles = _roles(entries)
    for entry in entries:
        for wait in read_waits(entry, roles):
            pairs.setdefault(frozenset((wait.who, wait.whom)), []).append(wait)
    mutual = [waits for waits in pairs.values() if len({wait.who for wait in waits}) > 1]
    mutual = [waits for waits in mutual if len(waits) >= _MUTUAL_WAITS]
    if not mutual:
        return []
    waits = max(mutual, key=len)
    cluster = _unique(wait.entry for wait in waits)
    one, other = dict.fromkeys(wait.who for wait in waits)
    counts = Counter((wait.who, wait.whom) for wait in waits)
    ways = [f"{who} waits for {whom} ({_format_count(count)})" for (who, whom), count in counts.items()]
    return [
        Insight(
            action=f"Reflection: {one} and {other} wait for each other",
            content=_join_sentences(
                f"Cross-role: {'; '.join(ways)}, {_format_cycles(_cycles(cluster))}.",
                f"First: {_quote_entry(cluster[0])}. Last: {_quote_entry(cluster[-1])}.",
                _evidence_sentence(cluster),
            ),
            importance=10,
            tags=("reflection", "deterministic", "cross-role", "waiting"),
            issues=_issues(cluster)[:5],
            roles=(one, other),
            evidence=_ids(cluster),
        )
    ]


def _cross_role_insight(
    entries: Sequence[Entry], related: Sequence[RelatedItem], said: set[int | None]
) -> list[Insight]:
    """Return the issue that most roles touched: who waits for whom, or in which order they worked on it."""
    by_issue = _by_issue(entries)
    shared = {issue: cluster for issue, cluster in by_issue.items() if len(_roles(cluster)) > 1}
    known = _roles(entries)
    best: tuple[tuple[int, int, int, int], int, list[str]] | None = None
    for issue, cluster in shared.items():
        waits = _describe_waits(cluster, known)
        if issue in said and not waits:
            continue
        rank = (len(waits), len(_roles(cluster)), len(cluster), -issue)
        if best is None or rank > best[0]:
            best = rank, issue, waits
    if best is None:
        return []
    _, issue, waits = best
    cluster = shared[issue]
    return [
        Insight(
            action=f"Reflection: {len(_roles(cluster))} roles work on #{issue}",
            content=_join_sentences(
                f"Cross-role: #{issue} in {_format_entries(cluster)} of {_format_cycles(_cycles(cluster))},"
                f" first in this order: {_handovers(cluster)}.",
                f"{'; '.join(waits)}." if waits else "",
                _related_sentence(related, (issue,)),
                _evidence_sentence(cluster),
            ),
            importance=10 if waits else 9,
            tags=("reflection", "deterministic", "cross-role"),
            issues=(issue,),
            roles=_roles(cluster),
            evidence=_ids(cluster),
        )
    ]


def _decisions(entries: Sequence[Entry]) -> list[Insight]:
    made = [entry for entry in entries if entry.type is EntryType.DECISION]
    if len(made) < 2:
        return []
    latest = [_quote_entry(entry) for entry in made[-5:]]
    more = f" (and {len(made) - 5} before)" if len(made) > 5 else ""
    return [
        Insight(
            action=f"Reflection: {len(made)} decisions in {_format_cycles(_cycles(made))}",
            content=_join_sentences(f"Decisions: {'; '.join(latest)}{more}.", _evidence_sentence(made)),
            importance=9,
            tags=("reflection", "deterministic", "decisions"),
            issues=_issues(made),
            roles=_roles(made),
            evidence=_ids(made),
        )
    ]


def _known_lessons(entries: Sequence[Entry], lessons: Sequence[RelatedItem]) -> list[Insight]:
    """Return what the bank's lessons say about issues that these entries meet."""
    met = _by_issue(entries)
    told = [lesson for lesson in lessons if any(issue in met for issue in lesson.issues)]
    if not told:
        return []
    issues = tuple(dict.fromkeys(issue for lesson in told for issue in lesson.issues if issue in met))
    cluster = _unique(entry for issue in issues for entry in met[issue])
    names = "; ".join(f"{each.name} “{_shorten(each.text)}”" for each in told[:3])
    return [
        Insight(
            action=f"Reflection: lessons are known about {', '.join(f'#{issue}' for issue in issues[:5])}",
            content=_join_sentences(
                f"Known lessons that met these issues: {names}.", _evidence_sentence(cluster)
            ),
            importance=9,
            tags=("reflection", "deterministic", "lessons"),
            issues=issues,
            roles=_roles(cluster),
            evidence=_ids(cluster),
        )
    ]


def _theme(entries: Sequence[Entry]) -> list[Insight]:
    by_tag: dict[str, list[Entry]] = {}
    for entry in entries:
        for tag in {tag.lower() for tag in entry.tags}:
            if not _NO_THEME.fullmatch(tag):
                by_tag.setdefault(tag, []).append(entry)
    busy = {
        tag: cluster
        for tag, cluster in by_tag.items()
        if len(cluster) >= _LEAST_THEME and len(_cycles(cluster)) >= _RECURRING_CYCLES
    }
    if not busy:
        return []
    tag, cluster = min(busy.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Insight(
            action=f"Reflection: the busiest theme is {tag}",
            content=_join_sentences(
                f"Theme: {tag} in {_format_entries(cluster)} of {len(entries)},"
                f" {_format_cycles(_cycles(cluster))}{_format_roles(cluster)}.",
                _evidence_sentence(cluster),
            ),
            importance=9,
            tags=("reflection", "deterministic", "theme", tag),
            issues=_issues(cluster)[:5],
            roles=_roles(cluster),
            evidence=_ids(cluster),
        )
    ]


def _describe_waits(cluster: Sequence[Entry], roles: Sequence[str]) -> list[str]:
    """Return who waits for whom, as the entries say it."""
    pairs = Counter((wait.who, wait.whom) for entry in cluster for wait in read_waits(entry, roles))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [f"{who} waits for {whom} ({_format_count(count)})" for (who, whom), count in ordered]


def _handovers(cluster: Sequence[Entry]) -> str:
    """Return the roles in the order in which they came to it, and how often one followed another."""
    steps = [entry.role for entry in cluster if entry.role]
    changes = sum(one != other for one, other in pairwise(steps))
    return f"{' → '.join(_roles(cluster)[:6])}, {changes} handover{'s' if changes != 1 else ''}"


def _by_issue(entries: Iterable[Entry]) -> Mapping[int, list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        for issue in entry.issues:
            found.setdefault(issue, []).append(entry)
    return found


def _related_sentence(related: Sequence[RelatedItem], issues: Sequence[int]) -> str:
    names = [each.name for each in related if set(each.issues) & set(issues)][:3]
    return f"In the archive: {', '.join(names)}." if names else ""


def _join_sentences(*parts: str) -> str:
    return " ".join((*(part for part in parts if part), _HONESTLY))


def _quote_entry(entry: Entry) -> str:
    return f"“{_shorten(entry.action)}” (cycle {entry.cycle}{f', {entry.role}' if entry.role else ''})"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_WORDS else f"{text[: _SHOWN_WORDS - 1]}…"


def _evidence_sentence(cluster: Sequence[Entry]) -> str:
    ids = [entry.id for entry in cluster]
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    return f"Entries: {', '.join(ids[:_SHOWN_IDS])}{more}."


def _format_cycles(cycles: Sequence[int]) -> str:
    if len(cycles) == 1:
        return f"cycle {cycles[0]}"
    if len(cycles) <= 5:
        return f"cycles {', '.join(map(str, cycles))}"
    return f"{len(cycles)} cycles from {cycles[0]} to {cycles[-1]}"


def _format_roles(cluster: Sequence[Entry]) -> str:
    counts = Counter(entry.role for entry in cluster if entry.role)
    return f" ({', '.join(f'{role} {count}' for role, count in counts.most_common(6))})" if counts else ""


def _format_entries(cluster: Sequence[Entry]) -> str:
    return _format_count(len(cluster))


def _format_count(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"


def _cycles(cluster: Iterable[Entry]) -> list[int]:
    return sorted({entry.cycle for entry in cluster})


def _ids(cluster: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(entry.id for entry in cluster)


def _unique(cluster: Iterable[Entry]) -> list[Entry]:
    return list({entry.id: entry for entry in cluster}.values())


def _roles(cluster: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.role for entry in cluster if entry.role))


def _issues(cluster: Iterable[Entry]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(issue for entry in cluster for issue in entry.issues))
