"""What was decided and what was learnt: each with its reason, and with what came of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

from archivist.reading.similarity import Likeness, Statement, compare
from archivist.records import Entry, EntryType
from archivist.stream.insight_text import (
    Insight,
    by_issue,
    labels_of,
    make_insight,
    quote_entry,
    quote_text,
    say,
    shorten,
    unique_entries,
)
from archivist.stream.obstacles import STATED, find_cause, read_reports, split_sentences, words_of
from archivist.stream.timelines import stems_of

_MOST_STATED = 3
_MOST_DECIDED = 2
_COMPARED_DECISIONS = 20
_SHOWN = 3
_SHARED_BY, _LEAST_WORD = 2, 4
# A lone decision is told where hardly anything else in the stream weighs as much.
_WEIGHTIEST, _FEW_WEIGHTY = 9, 3
# Of a lesson that an entry does not name as one, but that its cause shows.
_LEAST_MENDED = 7
_GOAL = re.compile(r"\b(?:goals?|objective|mission)\b", re.IGNORECASE)
_CHANGED = re.compile(r"\b(?:chang(?:e[sd]?|ing)|new|instead|now|no longer|pivot\w*)\b", re.IGNORECASE)
# Somebody made something work that did not.
_MENDED = re.compile(
    r"\A(?:fix(?:e[sd])?|solved|resolved|repaired|mended)\b"
    r"|\A[\w./-]+(?:\([\w./-]+\)|(?:, [\w./-]+){1,4})?: [a-z]"
    r"|\b(?:works?|builds|runs|loads|starts?|boots) (?:again|now)\b",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"\b(?:dropp?(?:ed|s)|remove[sd]|reverted|lifted|abandon(?:s|ed)|undone|rolled back|withdrawn)\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(r"^deci(?:ded|sion):?\s+(?:that\s+)?", re.IGNORECASE)
_FIGURE = re.compile(r"\d")
_LABEL = re.compile(r"#\d+|\b[A-Z][A-Z0-9]+-\d+")


class StatedLesson(NamedTuple):
    """A sentence that says what was learnt, and the entry that it stands in."""

    text: str
    entry: Entry


def stated_lessons(entries: Sequence[Entry]) -> list[StatedLesson]:
    """Return the lessons that entries state in so many words, the most important first."""
    found: dict[str, StatedLesson] = {}
    for entry in sorted(entries, key=lambda entry: (-entry.importance, -entry.seq)):
        said = [text for text in split_sentences(entry) if STATED.search(text) and _says_why(text)]
        if said:
            # An entry states one lesson: the sentence that is named as one.
            best = max(dict.fromkeys(said), key=lambda text: STATED.match(text) is not None)
            found.setdefault(best, StatedLesson(best, entry))
        elif entry.importance >= _LEAST_MENDED and _says_why(why := find_cause(entry)):
            # What mends something, or observes what goes wrong, is a lesson with its cause.
            is_explained = _MENDED.search(entry.action) is not None
            if entry.type is EntryType.OBSERVATION:
                is_explained = any(r.sign == "trouble" and not r.place for r in read_reports(entry))
            if is_explained:
                text = f"{entry.action.rstrip('.')}: {why}"
                found.setdefault(text, StatedLesson(text, entry))
    return list(found.values())[:_MOST_STATED]


def _says_why(text: str) -> bool:
    """Say whether a sentence holds more than figures: a bare measurement is no lesson."""
    return len(words_of(text)) > max(2, sum(_FIGURE.search(word) is not None for word in text.split()))


def lesson_insight(lesson: StatedLesson, entries: Sequence[Entry]) -> Insight:
    """Return a stated lesson with the occasion on which it was learnt and what came of it."""
    entry, text = lesson.entry, lesson.text
    others = (said for said in split_sentences(entry) if said != text and said not in text)
    occasion = "" if entry.action.rstrip(".") in text else quote_text(next(others, ""))
    role = f" by {entry.role}" if entry.role else ""
    learnt = f"Learnt{role} in cycle {entry.cycle}" + (f" from “{occasion}”." if occasion else ".")
    before, after = _entries_around(entry, entries)
    return make_insight(
        [entry],
        shorten(text),
        f"“{quote_text(text)}”." if shorten(text) != text else "",
        learnt,
        f"Before: {'; '.join(map(quote_entry, before))}." if before else "",
        f"Since then: {'; '.join(map(quote_entry, after))}." if after else "",
        tags=("lesson",),
        quoted=(*before, *after),
        about=labels_of(entry),
    )


def decision_insights(entries: Sequence[Entry], new: Set[str], told: Collection[str] = ()) -> list[Insight]:
    """Return what was decided on one subject, with what it replaced, what led to it and what followed.

    Decisions that have nothing in common are not listed together: a list has no point. `told` are the entries
    that earlier reflections told of: a decision that none told of is not lost when something follows it.
    """
    # Each is compared with each: 20 take about 30 ms.
    made = [entry for entry in entries if entry.type is EntryType.DECISION][-_COMPARED_DECISIONS:]
    # What three decisions speak of is what all are about.
    counts = Counter(stem for entry in made for stem in _telling_stems(entry))
    common = {stem for stem, count in counts.items() if count > _SHARED_BY}
    themes: list[list[Entry]] = []
    for entry in made:
        labels = {*labels_of(entry)}
        same = (theme for theme in themes if any(labels & {*labels_of(each)} for each in theme))
        near = (theme for theme in themes if any(_is_same_subject(entry, each, common) for each in theme))
        home = next(same, None) or next(near, None)
        if home is None:
            themes.append(home := [])
        home.append(entry)
    found = []
    for theme in themes:
        insight = _theme_insight(theme, entries, common)
        is_new = any(each.id in new for each in theme)
        is_followed = insight is not None and not new.isdisjoint(insight.quoted)
        if insight is not None and (is_new or (is_followed and not any(each.id in told for each in theme))):
            found.append(insight)
    return sorted(found, key=lambda insight: (-insight.importance, -len(insight.evidence)))[:_MOST_DECIDED]


def _is_same_subject(later: Entry, earlier: Entry, common: Collection[str]) -> bool:
    if _GOAL.search(later.action) and _GOAL.search(earlier.action):
        return True
    return _is_replaced(earlier, later) or _have_one_object(earlier, later, common)


def are_alike_enough(one: Collection[str], other: Collection[str]) -> bool:
    """Say whether two texts share two words that say what they are about."""
    shared = {*one} & {*other}
    return len(shared) > 1 and 3 * len(shared) >= min(len(one), len(other))


def _is_replaced(earlier: Entry, later: Entry) -> bool:
    """Say whether a decision takes back an earlier one: it contradicts it, or says so in its words."""
    said = Statement("", earlier.action), Statement("", later.action)
    if compare(*said, 1.0).likeness is Likeness.CONFLICT:
        return True
    return _is_new_goal(later) and _GOAL.search(earlier.action) is not None


def _have_one_object(earlier: Entry, later: Entry, common: Collection[str]) -> bool:
    """Say whether two decisions are about the same thing: then the later one holds.

    They share a number and a word, the words before a colon, three words, or two that are not common.
    """
    shared = _telling_stems(earlier) & _telling_stems(later)
    if {*labels_of(earlier)} & {*labels_of(later)}:
        return bool(shared)
    topics = [entry.action.partition(": ") for entry in (earlier, later)]
    is_topic = bool(topics[0][1]) and topics[0][0] == topics[1][0]
    return is_topic or len(shared) > 2 or len(shared - {*common}) > 1


def _telling_stems(entry: Entry) -> frozenset[str]:
    """Return what a decision is about: in any language its small words are short."""
    words = _LABEL.sub(" ", entry.action).split()
    return stems_of(" ".join(word for word in words if len(word) >= _LEAST_WORD or word.isupper()))


def _is_new_goal(entry: Entry) -> bool:
    goal = _GOAL.search(entry.action)
    return goal is not None and _CHANGED.search(entry.action[: goal.end() + 20]) is not None


def _theme_insight(
    theme: Sequence[Entry], entries: Sequence[Entry], common: Collection[str]
) -> Insight | None:
    """Return the decisions of one theme; None for a lone one that nothing led to and nothing followed."""
    last = theme[-1]
    replaced: dict[str, Entry] = {}
    for earlier, later in ((earlier, later) for at, later in enumerate(theme) for earlier in theme[:at]):
        if _is_replaced(earlier, later) or _have_one_object(earlier, later, common):
            replaced[earlier.id] = later
    for entry in theme:
        undone = (each for each in entries if each.seq > entry.seq and each not in theme)
        if taken_back := next((each for each in undone if _is_undone(entry, each)), None):
            replaced[entry.id] = taken_back
    hold = [entry for entry in theme if entry.id not in replaced]
    before, after = _entries_around(last, [entry for entry in entries if entry not in theme])
    weighty = sum(entry.importance >= last.importance for entry in entries)
    is_weighty = last.importance >= _WEIGHTIEST and weighty <= _FEW_WEIGHTY
    if len(theme) < 2 and not (is_weighty or _is_new_goal(last)):
        return None
    if len(hold) == len(theme) > 1:
        return None
    if not hold:
        return make_insight(
            [last, replaced[last.id]],
            shorten(f"no longer holds: {_DECIDED.sub('', say(last))}"),
            f"Decided as {quote_entry(last)}. It was taken back with {quote_entry(replaced[last.id])}.",
            tags=("decisions",),
            about=labels_of(last),
        )
    issues = tuple(by_issue(theme))
    about = f"about #{issues[0]}: " if issues and len(theme) > 1 else ""
    holds = "; ".join(say(entry) for entry in reversed(hold))
    gone = [entry for entry in theme if entry.id in replaced]
    is_one = len(hold) == 1
    title = shorten(f"decided: {about}{_DECIDED.sub('', holds)}")
    was = f"; before: “{shorten(gone[-1].action)}” (cycle {gone[-1].cycle})" if is_one and gone else ""
    reason = next((text for text in split_sentences(last) if text not in " ".join(last.action.split())), "")
    why = f" Why: “{quote_text(reason)}”." if reason and hold[0] is last else ""
    return make_insight(
        theme,
        title + was,
        f"{quote_entry(hold[0])}." if is_one and title.endswith("…") else "",
        f"By {last.role or 'somebody'} in cycle {last.cycle}.{why}"
        if is_one
        else f"Holds: {'; '.join(map(quote_entry, hold[-5:]))}.",
        *(f"{'It' if is_one else quote_entry(replaced[e.id])} replaced {quote_entry(e)}." for e in gone),
        f"Before: {'; '.join(map(quote_entry, before))}." if before else "",
        f"Since then: {'; '.join(map(quote_entry, after))}." if after else "",
        tags=("decisions",),
        issues=issues,
        importance=10 if _is_new_goal(last) else 9,
        quoted=(*before, *after),
        about=[label for entry in theme for label in labels_of(entry)],
    )


def _is_undone(decision: Entry, later: Entry) -> bool:
    """Say whether an entry that is no decision takes one back: it says so, and names what was decided."""
    if _UNDONE.search(later.action) is None or any(r.sign != "ended" for r in read_reports(later)):
        return False
    return are_alike_enough(words_of(decision.action), words_of(later.action))


def _entries_around(entry: Entry, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the obstacles before an entry, and what was done after it, about the same thing."""
    labels, words = {*labels_of(entry)}, words_of(entry.action)
    before, after = list[Entry](), list[Entry]()
    for each in unique_entries(entries):
        if {*labels_of(each)} & labels or are_alike_enough(words_of(each.action), words):
            if each.seq > entry.seq:
                after.append(each)
            elif each.seq < entry.seq and any(report.sign != "ended" for report in read_reports(each)):
                before.append(each)
    return before[-_SHOWN:], after[-_SHOWN:]
