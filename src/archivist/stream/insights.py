"""Conclude from a stream what a reader can use, without a model, and decide when a reflection is due.

Every insight is a cluster of entries: a blocker or trouble that recurs, since when, what was done about it
and what ended it; roles that wait for each other, and for what; work that ended or was left open; what
somebody learnt; decisions with what led to them and what followed; known lessons about the same issues. A
mere count is no insight, and nothing is told twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from archivist.config import StreamRules
from archivist.records import Entry
from archivist.stream.decided import decision_insights, lesson_insight, stated_lessons
from archivist.stream.figures import figure_insights
from archivist.stream.insight_text import (
    SHOWN_ISSUES,
    Insight,
    RelatedItem,
    add_sentence,
    by_issue,
    labels_of,
    make_insight,
    quote_text,
    roles_of,
    shorten,
    unique_entries,
)
from archivist.stream.obstacles import Wait, read_waits
from archivist.stream.sessions import SESSION, session_patterns
from archivist.stream.stories import story_insights
from archivist.stream.threads import describe_wait, period_insight, read_threads
from archivist.stream.timelines import find_obstacles, obstacle_insight, stems_of

# A reflection is read in full, so it holds only a few insights, obstacles first.
MOST_INSIGHTS = 5
_MOST_OBSTACLES = 3
# One wait in each direction is an ordinary handover.
_MUTUAL_WAITS = 3
# Grouping compares every report with every group: 400 entries are read in about 40 ms.
_MOST_COMPARED = 400
_SHOWN_RELATED = 3
# What an insight weighs by its kind, times the importance of the entries that only it explains: what is open
# or came back asks for something to be done, a mere course does not.
_FACTORS = {
    "decisions": 1.5, "open": 1.5, "relapse": 1.4, "cross-role": 1.5, "remedy": 1.6, "wish": 1.6,
    "course": 0.7, "theme": 0.7, "left": 1.5, "files": 0.8,
}  # fmt: skip


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
    earlier: Sequence[Entry] = (),
    related: Sequence[RelatedItem] = (),
    lessons: Sequence[RelatedItem] = (),
    others: Iterable[Entry] = (),
    sprint: str = "",
    sprint_seq: int = 0,
    told_before: Set[str] = frozenset(),
) -> list[Insight]:
    """Return what there is to know after some entries, the most pressing first, five at most.

    `earlier` were reflected on before: they say since when and how often, but are no insight by themselves.
    `others` are below the importance threshold: they count only where they say that something is over.
    `sprint` is one that has ended, and `sprint_seq` the place in the stream behind which it began.
    `told_before` are the entries that earlier reflections told of.
    """
    others = list(others)
    # What a session's entry says has a form of its own, which is counted and not read.
    sessions = [entry for entry in entries if SESSION in entry.tags]
    entries = [entry for entry in entries if SESSION not in entry.tags]
    history = [*(entry for entry in earlier if SESSION not in entry.tags), *entries][-_MOST_COMPARED:]
    new = {entry.id for entry in entries}
    of_sprint = {entry.id for entry in history if entry.seq > sprint_seq}
    threads = read_threads(history)
    obstacles = find_obstacles(history, others, new)[:_MOST_OBSTACLES]
    troubles = [obstacle_insight(timeline, history, related, others) for timeline in obstacles]
    patterns = [
        make_insight(each.cluster, each.title, *each.sentences, tags=(each.kind,))
        for each in session_patterns(sessions)
    ]
    light = [entry for entry in others if entry.seq >= history[0].seq][-_MOST_COMPARED:] if history else []
    whole = sorted(unique_entries((*history, *light)), key=lambda entry: entry.seq)
    stories = story_insights(history, light, new, related, told_before)
    pressing = [
        period_insight(threads, history, of_sprint, sprint, obstacles) if sprint else None,
        *troubles,
        _mutual_wait_insight(entries),
    ]
    # A blocker is in the way now, a figure shows what nobody calls trouble yet.
    pressing.sort(key=lambda each: each is None or "blocker" not in each.tags)
    blockers = sum(each is not None and "blocker" in each.tags for each in pressing)
    pressing[blockers:blockers] = figure_insights(whole, new)
    told = _choose(insight for insight in pressing if insight is not None)
    found = [*patterns, *stories, *decision_insights(history, new, told_before)]
    told = _choose_weightiest(found, {entry.id: entry.importance for entry in (*history, *sessions)}, told)
    told = _add_lessons(told, entries, history)
    known = _lessons_insight(entries, lessons)
    # What was finished is in its own entries: it is told where there is nothing else.
    finished = None if told or known else period_insight(threads, history, new)
    told += [finished] if finished else []
    return (
        [*told[: MOST_INSIGHTS - 1], known, *told[MOST_INSIGHTS - 1 :]][:MOST_INSIGHTS]
        if known
        else told[:MOST_INSIGHTS]
    )


def _choose_weightiest(
    found: Iterable[Insight], importance: Mapping[str, int], before: Sequence[Insight]
) -> list[Insight]:
    """Return insights behind those before, each the one that explains most of what is not told yet."""
    chosen, rest = [*before], [*found]
    while rest:
        told = {name for each in chosen for name in each.quoted}
        weights = [
            _FACTORS.get(each.tags[2], 1.0)
            * sum(importance.get(name, 0) for name in each.evidence if name not in told)
            for each in rest
        ]
        chosen = _choose([rest.pop(weights.index(max(weights)))], chosen)
    return chosen


def _choose(found: Iterable[Insight], before: Sequence[Insight] = ()) -> list[Insight]:
    """Return insights behind those before, without any whose subject or entries an earlier one has told."""
    chosen = [*before]
    for insight in found:
        told = {name for each in chosen for name in each.quoted}
        is_told = any(insight.about & each.about for each in chosen)
        if not is_told and 2 * len(told & {*insight.evidence}) < len(insight.evidence) + 1:
            chosen.append(insight)
    return chosen


def _add_lessons(told: list[Insight], entries: Sequence[Entry], history: Sequence[Entry]) -> list[Insight]:
    """Add what was learnt: to the insight about the same thing, else as one of its own."""
    for lesson in stated_lessons(entries):
        labels = {*labels_of(lesson.entry)}
        for place, each in enumerate(told):
            # An entry can tell of two things: a cause belongs to what its sentence or the action is about.
            said = stems_of(f"{lesson.entry.action}. {lesson.text}")
            is_about = not each.words or not said.isdisjoint(stems_of(" ".join(each.words)))
            if (lesson.entry.id in each.quoted and is_about) or labels & each.about:
                if f"Why: “{quote_text(lesson.text.rpartition(': ')[2])}" in each.content:
                    break
                role = f", {lesson.entry.role}" if lesson.entry.role else ""
                sentence = f"Learnt: “{quote_text(lesson.text)}” (cycle {lesson.entry.cycle}{role})."
                told[place] = add_sentence(each, sentence, lesson.entry)
                break
        else:
            told.append(lesson_insight(lesson, history))
    return told


def _mutual_wait_insight(entries: Sequence[Entry]) -> Insight | None:
    """Return the two roles that wait for each other most; a wait in one direction is an ordinary handover."""
    pairs: dict[frozenset[str], list[Wait]] = {}
    roles = roles_of(entries)
    for wait in (wait for entry in entries for wait in read_waits(entry, roles)):
        pairs.setdefault(frozenset((wait.who, wait.whom)), []).append(wait)
    mutual = (waits for waits in pairs.values() if len({wait.who for wait in waits}) > 1)
    waits = max(mutual, key=len, default=[])
    if len(waits) < _MUTUAL_WAITS:
        return None
    cluster = unique_entries(wait.entry for wait in waits)
    one, other = dict.fromkeys(wait.who for wait in waits)
    return make_insight(
        cluster,
        f"{one} and {other} wait for each other since cycle {cluster[0].cycle}",
        "Neither goes on before one of them hands over.",
        *(describe_wait([wait for wait in waits if wait.who == who]) for who in (one, other)),
        f"Last in cycle {cluster[-1].cycle}.",
        tags=("cross-role", "waiting"),
        importance=10,
    )._replace(roles=(one, other))


def _lessons_insight(entries: Sequence[Entry], lessons: Sequence[RelatedItem]) -> Insight | None:
    """Return what the bank's lessons say about issues that these entries mention."""
    clusters = by_issue(entries)
    related = [lesson for lesson in lessons if clusters.keys() & {*lesson.issues}]
    if not related:
        return None
    issues = tuple(dict.fromkeys(issue for each in related for issue in each.issues if issue in clusters))
    numbers = ", ".join(f"#{issue}" for issue in issues[:SHOWN_ISSUES])
    names = "; ".join(f"{lesson.name} “{shorten(lesson.text)}”" for lesson in related[:_SHOWN_RELATED])
    return make_insight(
        unique_entries(entry for issue in issues for entry in clusters[issue]),
        f"known about {numbers}: {shorten(related[0].text)}",
        f"Lessons that met these issues: {names}.",
        tags=("lessons",),
        issues=issues,
    )
