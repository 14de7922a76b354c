"""Follow obstacles through a stream: since when, how often, what was done about them, what ended them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.complaints import is_retold, read_complaints
from archivist.stream.insight_text import (
    Insight,
    RelatedItem,
    cycles_of,
    format_cycles,
    labels_of,
    make_insight,
    name_related,
    quote_entry,
    quote_report,
    quote_said,
    quote_text,
    roles_of,
    shorten,
    unique_entries,
)
from archivist.stream.obstacles import (
    STATED,
    TICKET,
    ObstacleReport,
    Words,
    are_alike,
    are_surely_alike,
    clause_of_end,
    common_words,
    find_cause,
    read_reports,
    split_sentences,
    words_of,
)
from archivist.text import stem_word

# A blocker of three cycles is no longer noise: it goes into core memory, where every role sees it.
STRATEGIC_CYCLES = 3
# A blocker recurs with its second cycle; trouble now and then is normal, and needs a third.
_BLOCKED_CYCLES = 2
_TROUBLED_CYCLES = 3
_SHOWN_TRIED = 3
_SHOWN_DETAILS = 2
_NAME_CHARACTERS = 80
# A word is rare that at most this share of the entries without trouble have, or two of them.
_RARE_SHARE, _FEW = 0.1, 2
# Two reports are of one thing when their entries share so many rare words; fewer where the sentences do.
_LINKED, _LINKED_BY_SENTENCE = 3, 2
# What failed now does what it should.
_POSITIVE = re.compile(
    r"\b(?:succeed(?:s|ed)|completed|renewed|(?:works?|runs|builds|loads|starts?) (?:again|now|fine))\b",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,:;()]\s|\s[\u2014\u2013-]\s")
_EXHAUSTED = re.compile(r"\bout of (memory|disk|space|connections|quota)\b", re.IGNORECASE)
_AGAIN = re.compile(r"\b(?:again|still|once more|is back|are back)\b", re.IGNORECASE)
_UNDONE = re.compile(r"\b(?:still|not|yet|no|nobody|nothing)\b|n['\u2019]t\b", re.IGNORECASE)
# A decision that begins so is a rule in the words of those who made it.
RULE = re.compile(
    r"(?:from now on|always|never|(?:before|after) (?:every|each|any)|every|each|do not|don['\u2019]t"
    r"|rule:)\b",
    re.IGNORECASE,
)


class Timeline(NamedTuple):
    """One obstacle over time: its reports, its words, and how it stands.

    `issues` has the number of what blocks, else of what is blocked. `end` is the report that ends it; where
    there is none, `later` is an entry about it that may or may not. `began` is the first report of the same
    thing, also as mere trouble; `relapses` are the ends after which it came back. `stems` are the words of
    its reports' sentences, each with the share of the reports that have it.
    """

    reports: list[ObstacleReport]
    words: Words
    issues: tuple[int, ...]
    end: ObstacleReport | None = None
    later: Entry | None = None
    began: ObstacleReport | None = None
    relapses: tuple[ObstacleReport, ...] = ()
    stems: dict[str, float] = {}  # noqa: RUF012 - never changed

    @property
    def is_certain(self) -> bool:
        """Say whether all reports surely tell of the same thing."""
        if self.relapses and not self.is_blocker:
            return False
        phrases = {report.phrase for report in self.reports}
        is_one_phrase = len(phrases) == 1 and "" not in phrases
        if is_one_phrase or self.issues or not self.words:
            return True
        return all(are_alike(report.words, self.words) for report in self.reports)

    @property
    def is_verbatim(self) -> bool:
        """Say whether a complaint came back word for word."""
        phrases = [report.phrase for report in self.reports if report.phrase]
        return len(phrases) > len({*phrases})

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
    reports = _read_all(entries, roles)
    known = {entry.id for entry in entries}
    others = list(others)
    stream = sorted(unique_entries((*entries, *others)), key=lambda entry: entry.seq)
    later = [report for entry in others if entry.id not in known for report in read_reports(entry, roles)]
    ends = [report for report in (*reports, *later) if report.sign == "ended"]
    ends.sort(key=lambda end: end.position)
    rare = _RareWords(entries, reports)
    groups: list[list[ObstacleReport]] = []
    for report in (report for report in reports if report.sign != "ended"):
        home = next((group for group in groups if _is_same_obstacle(report, group)), None)
        home = home or next((group for group in groups if rare.link(report, group)), None)
        if home is None:
            groups.append(home := [])
        home.append(report)
    groups = [_with_observed(group, entries, roles) for group in groups]
    found = [_make_timeline(group, ends) for group in groups]
    blockers = [each for each in found if each.is_blocker and len(each.cycles) >= _BLOCKED_CYCLES]
    once = [each for each in found if each.is_blocker and len(each.cycles) < _BLOCKED_CYCLES]
    # What blocks once is one sighting more of the same trouble.
    troubles = []
    for trouble in (each for each in found if not each.is_blocker):
        each = _with_later_end(_make_timeline(_with_sightings(trouble, once), ends), stream, roles)
        # Trouble now and then is normal, unless somebody says that it is back, or how it ended.
        is_told = each.end or each.is_verbatim or _AGAIN.search(each.reports[-1].said)
        is_again = len(each.cycles) > 1 and not each.later and is_told
        # Trouble with what blocks is no second obstacle.
        is_blocking = any(are_alike(each.words, blocker.words) for blocker in blockers)
        if (len(each.cycles) >= _TROUBLED_CYCLES or is_again) and not is_blocking:
            troubles.append(each)
    # What still blocks comes before what is over, then the most frequent.
    whole = [_with_beginning(each, found, ends) for each in (*blockers, *troubles)]
    told = []
    for each in whole:
        last = (each.end and each.end.entry, each.later)
        ids = {entry.id for entry in (*(report.entry for report in each.reports), *last) if entry}
        told += [each] if new is None or not ids.isdisjoint(new) or not ids <= known else []
    return sorted(told, key=lambda each: (each.end is not None, not each.is_blocker, -len(each.cycles)))


def _read_all(entries: Sequence[Entry], roles: Collection[str]) -> list[ObstacleReport]:
    """Return all reports in their order; of a sentence that repeats a complaint, the complaint."""
    # Where trouble is observed, the title of an action says what was done about it.
    is_typed = {entry.type for entry in entries} >= {EntryType.ACTION, EntryType.OBSERVATION}
    work = {each.id for each in entries if is_typed and each.type is not EntryType.OBSERVATION}
    reports: list[ObstacleReport] = []
    for each in (report for entry in entries for report in read_reports(entry, roles)):
        is_title = each.sign == "trouble" and not each.place and each.entry.id in work
        if each.sign == "ended" or not (is_title or is_retold(each.entry)):
            reports.append(each)
    others = {(each.entry.id, each.place) for each in reports if each.sign != "trouble"}
    troubled = {(each.entry.id, each.place) for each in reports if each.sign == "trouble"}
    complaints = {(each.entry.id, each.place): each for each in read_complaints(entries, troubled)}
    complaints = {spot: each for spot, each in complaints.items() if spot not in others}
    reports = [each for each in reports if (each.entry.id, each.place) not in complaints]
    return sorted((*reports, *complaints.values()), key=lambda report: report.position)


class _RareWords:
    """The words that tell entries apart: those that few entries without trouble have."""

    def __init__(self, entries: Sequence[Entry], reports: Sequence[ObstacleReport]) -> None:
        self._of_entry = {entry.id: stems_of(f"{entry.action}. {entry.content}") for entry in entries}
        troubled = {report.entry.id for report in reports if report.sign != "ended"}
        quiet = [stems for name, stems in self._of_entry.items() if name not in troubled]
        counts = Counter(stem for stems in quiet for stem in stems)
        self._common = {stem for stem, count in counts.items() if count > max(_FEW, _RARE_SHARE * len(quiet))}

    def link(self, report: ObstacleReport, group: Sequence[ObstacleReport]) -> bool:
        """Say whether a report of trouble shares rare words with one of a group, over action and content."""
        if report.sign != "trouble" or report.issues:
            return False
        for other in (each for each in group if each.sign == "trouble" and not each.issues):
            shared = (self._of_entry[report.entry.id] & self._of_entry[other.entry.id]) - self._common
            in_sentence = shared & _sentence_stems(report) & _sentence_stems(other)
            # What ran out is said twice, by its name and by “out of memory”.
            is_close = len(in_sentence) > 1 and not any(" " in stem for stem in in_sentence)
            if in_sentence and len(shared) >= (_LINKED_BY_SENTENCE if is_close else _LINKED):
                return True
        return False


def _sentence_stems(report: ObstacleReport) -> frozenset[str]:
    sentences = list(split_sentences(report.entry))
    return stems_of(sentences[report.place] if report.place < len(sentences) else report.said)


# A reflection compares the same titles again and again.
@lru_cache(maxsize=4_096)
def stems_of(text: str) -> frozenset[str]:
    """Return what a text is about by its words' beginnings: a renewal and what was renewed are one."""
    exhausted = (f"out of {word.lower()}" for word in _EXHAUSTED.findall(text))
    return frozenset((*(_stem(word) for word in words_of(text)), *exhausted))


def _stem(word: str) -> str:
    return stem_word(word.removesuffix("al") if len(word) > 5 else word)


def _with_sightings(trouble: Timeline, rare: Sequence[Timeline]) -> list[ObstacleReport]:
    alike = (each for each in rare if each.words and are_alike(each.words, trouble.words))
    same = [report for each in alike for report in each.reports]
    first, *rest = trouble.reports
    return [first, *sorted((*rest, *same), key=lambda report: report.position)] if same else trouble.reports


def _with_observed(
    group: list[ObstacleReport], entries: Sequence[Entry], roles: Collection[str]
) -> list[ObstacleReport]:
    """Return the reports of an obstacle with a number, and what was observed of it besides.

    Of trouble that is what weighs as much, of what blocks all that was said while nobody worked on it.
    """
    labels = Counter(label for report in group for label in {*labels_of(report.entry)})
    label, count = next(iter(labels.most_common(1)), ("", 0))
    sign, first, least = group[0].sign, group[0].entry, min(report.entry.importance for report in group)
    if 2 * count <= len(group):
        return group
    known = {report.entry.id for report in group}
    seen = [
        entry
        for entry in entries
        if entry.type is EntryType.OBSERVATION
        and entry.id not in known
        and label in labels_of(entry)
        and first.seq < entry.seq
        and (sign == "blocked" or entry.importance >= least)
        and stems_of(entry.action) & stems_of(first.action)
        and not STATED.search(entry.action)
        and all(report.sign == sign for report in read_reports(entry, roles))
    ]
    # What was seen after the last work may be that it helped.
    worked = max((e.seq for e in entries if e.type is EntryType.ACTION and label in labels_of(e)), default=0)
    causes = {cause.id for cause in _find_causes(entries, [label])}
    is_idle = sign == "blocked" and worked <= first.seq
    late = {entry.id for entry in seen if sign == "blocked" or entry.seq >= worked or entry.id in causes}
    seen = [entry for entry in seen if is_idle or entry.id not in late]
    # What was first seen under a number is what it is about.
    opening = next(entry for entry in entries if label in labels_of(entry))
    is_report = opening.type is EntryType.OBSERVATION and opening.importance >= least
    if is_report and opening.seq < first.seq and len(stems_of(opening.action) & stems_of(first.action)) > 1:
        seen.append(opening)
    more = [group[0]._replace(entry=entry, said="", place=0, phrase="") for entry in seen]
    return sorted((*group, *more), key=lambda report: report.position)


def _find_causes(entries: Sequence[Entry], labels: Collection[str]) -> list[Entry]:
    """Return what a role observed of a number right before it worked on it: more often why than that."""
    about = [entry for entry in entries if {*labels} & {*labels_of(entry)}]
    steps = [(seen, work) for seen, work in pairwise(about) if seen.role == work.role]
    kinds = EntryType.OBSERVATION, EntryType.ACTION
    return [seen for seen, work in steps if (seen.type, work.type) == kinds]


def _with_later_end(timeline: Timeline, entries: Sequence[Entry], roles: Collection[str]) -> Timeline:
    """Return a timeline that knows what was done and seen of the thing after its last report.

    What was seen after work on its number ends it. Other words about it, or work alone, leave it unclear.
    """
    if timeline.end or timeline.is_blocker:
        return timeline
    last = timeline.reports[-1].entry
    counts = Counter(label for report in timeline.reports for label in {*labels_of(report.entry)})
    labels = {label for label, count in counts.items() if 2 * count > len(timeline.reports)}
    stems = {stem for stem, share in timeline.stems.items() if share >= 0.5}
    later: list[Entry] = []
    for entry in entries:
        named = {*labels_of(entry)}
        if entry.seq > last.seq and (labels & named if labels else len(stems & stems_of(entry.action)) > 1):
            later.append(entry)
            # What is seen of the pull request is seen of its issue.
            labels |= {label for label in named if label.startswith("PR ")} if labels else set()
    later = [entry for entry in later if entry.type is not EntryType.DECISION]
    if not later or any(report.sign != "ended" for report in read_reports(later[-1], roles)):
        return timeline
    is_seen = later[-1].type is EntryType.OBSERVATION
    is_worked = any(entry.type is EntryType.ACTION for entry in later[:-1])
    if not (labels and is_seen and is_worked):
        return timeline._replace(later=later[-1])
    end = ObstacleReport("ended", later[-1], timeline.words, said=later[-1].action)
    return timeline._replace(end=end)


def _is_same_obstacle(report: ObstacleReport, group: Sequence[ObstacleReport]) -> bool:
    """Say whether a report is about the obstacle of a group: by the issue, else the words or the victim."""
    if report.sign != group[0].sign:
        return False
    if report.phrase and any(report.phrase == each.phrase for each in group):
        return True
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
        named = Counter(issue for report in group for issue in {*report.issues})
        issues = tuple(i for i, count in named.most_common(1) if count > 1 and 2 * count >= len(group))
    is_named = is_blocker and issues and group[0].issues
    words = {} if is_named else common_words([report.words for report in group])
    counts = Counter(stem for report in group for stem in _sentence_stems(report))
    stems = {stem: count / len(group) for stem, count in counts.items()}
    timeline = Timeline(group, words, issues, stems=stems)
    reporting = {report.entry.id for report in group}
    roles = {report.entry.role for report in group if report.entry.role}
    for end in ends:
        if end.position <= group[-1].position:
            continue
        is_positive = not is_blocker and end.entry.id not in reporting and _turned_out_well(end, timeline)
        if _is_end(end, issues, words) or is_positive:
            return timeline._replace(end=end, later=None)
        if end.reach == "role" and end.entry.role in roles:
            timeline = timeline._replace(later=end.entry)
    return timeline


def _turned_out_well(end: ObstacleReport, timeline: Timeline) -> bool:
    """Say whether an end tells of what went wrong: two of its words, or its subject and a positive verb."""
    if end.issues or end.reach:
        return False
    clause = clause_of_end(end.said)
    shared = {stem for stem in stems_of(clause) if timeline.stems.get(stem, 0) >= 0.5}
    subject = [_stem(word) for word in words_of(clause)][:2]
    is_subject = any(timeline.stems.get(stem, 0) >= 0.5 for stem in subject)
    return len(shared) > 1 or (is_subject and _POSITIVE.search(clause) is not None)


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


def obstacle_insight(
    timeline: Timeline,
    entries: Sequence[Entry],
    related: Sequence[RelatedItem],
    others: Sequence[Entry] = (),
) -> Insight:
    """Return what is said of a blocker or a trouble, and how it stands at the end."""
    cluster = unique_entries(report.entry for report in timeline.reports)
    cycles, end, issues = timeline.cycles, timeline.end, timeline.issues
    began, last = timeline.began or timeline.reports[0], cluster[-1]
    description, ended = describe_obstacle(timeline), f", open since cycle {began.entry.cycle}"
    seen = [e for e in entries if e.type is EntryType.OBSERVATION and {*issues} & {*e.issues}]
    is_seen_later = bool(seen) and seen[-1].seq > last.seq
    latest = quote_entry(seen[-1]) if is_seen_later else quote_report(timeline.reports[-1])
    state = f"Open since cycle {began.entry.cycle}, last told as {latest}."
    state += _describe_silence(timeline, entries, others)
    if timeline.later is not None:
        ended, state = f"; then {quote_said(timeline.later)}", ""
    if end is not None:
        ended, state = f", ended in cycle {end.entry.cycle}", f"What ended it: {quote_report(end)}."
    is_strategic = len(cycles) >= STRATEGIC_CYCLES
    is_pressing = is_strategic and end is None and timeline.later is None
    decision = _find_decision(timeline, entries) if is_strategic else None
    relapses = [report.entry for report in timeline.relapses[-1:]]
    # An issue that an entry is only filed under is not held up.
    blocked = ((f"#{issue}", report.entry) for report in timeline.reports for issue in report.victims)
    named = (name for name, entry in blocked if name in f"{entry.action} {entry.content}")
    victims = dict.fromkeys(name for name in named if int(name[1:]) not in issues)
    about = (end and end.entry, timeline.later, decision)
    known = (*cluster, began.entry, *relapses, *seen[-1:], *filter(None, about))
    told = {entry.id for entry in known}
    tried = [entry for entry in _find_tried(timeline, entries) if entry.id not in told][-_SHOWN_TRIED:]
    solved = (end.entry, *reversed(tried)) if end is not None else ()
    cause = next((cause for cause in map(find_cause, solved) if cause), "")
    found = [] if cause or timeline.is_blocker else _find_causes(entries, _about(timeline))
    why = [entry for entry in found if entry.id not in told and not STATED.search(entry.action)][-1:]
    return make_insight(
        cluster,
        description + ended,
        state,
        f"Reported in {format_cycles(cycles)}." if not timeline.is_blocker else "",
        f"Why: “{cause}”." if cause else "",
        *(f"Seen before the last work on it: {quote_entry(entry)}." for entry in why),
        _quote_details(timeline, cause),
        f"It began with {quote_report(began)}." if began.entry.id != last.id else "",
        *(f"It came back after {quote_report(report)}." for report in timeline.relapses[-1:]),
        f"Done about it: {'; '.join(map(quote_entry, tried))}." if tried else "",
        f"Held up: {', '.join(victims)}." if victims else "",
        f"Decided: {quote_entry(decision)}." if decision else "",
        name_related(related, issues),
        tags=("blocker" if timeline.is_blocker else "trouble",),
        issues=issues,
        importance=10 if is_pressing else 9,
        quoted=(*known, *tried, *why),
        about=_about(timeline),
    )._replace(
        blocker=description if is_pressing and timeline.is_blocker else "",
        words=tuple(timeline.words),
        rule=" ".join(decision.action.split()).rstrip(".") if decision else "",
    )


def _describe_silence(timeline: Timeline, entries: Sequence[Entry], others: Sequence[Entry]) -> str:
    """Say for how many cycles nobody has named an open obstacle, where no later entry has a word of it."""
    last = timeline.reports[-1].entry
    after = [entry for entry in unique_entries((*entries, *others)) if entry.seq > last.seq]
    quiet = max((entry.cycle for entry in after), default=last.cycle) - last.cycle
    stems = {stem for stem, share in timeline.stems.items() if share >= 0.5}
    named = any(
        {*timeline.issues} & {*entry.issues}
        or are_surely_alike(words_of(entry.action), timeline.words)
        or stems & stems_of(f"{entry.action}. {entry.content}")
        for entry in after
    )
    is_silent = quiet >= STRATEGIC_CYCLES and not named
    return f" Not named in the {quiet} cycles since: ask whether it is over." if is_silent else ""


def _quote_details(timeline: Timeline, cause: str) -> str:
    """Quote what the reports add to their action, the first sentence of each; not what is told otherwise."""
    told = {cause, *(text for report in timeline.reports for text in (report.said, report.phrase))}
    added: dict[str, None] = {}
    for report in (report for report in timeline.reports if report.entry.content):
        action = " ".join(report.entry.action.split())
        text = next((text for text in split_sentences(report.entry) if text not in action), "")
        is_action = report.place == 0 and any(report.said in part for part in (action, report.entry.action))
        if is_action and text not in told and len(words_of(text)) > 1:
            added[quote_text(text)] = None
    return f"Said of it: {'; '.join(f'“{text}”' for text in [*added][-_SHOWN_DETAILS:])}." if added else ""


def describe_obstacle(timeline: Timeline) -> str:
    """Name an obstacle and in how many cycles it was reported."""
    issues = timeline.issues
    span = f"in {'' if timeline.is_certain else 'at least '}{len(timeline.cycles)} cycles"
    tickets = [token for token in timeline.words.values() if TICKET.fullmatch(token)]
    shared = [len({*each.words} & {*timeline.words}) for each in timeline.reports]
    telling = [at for at, each in enumerate(timeline.reports) if each.said]
    best = max(telling, key=lambda at: (shared[at], at), default=None)
    said = "" if best is None else timeline.reports[best].said
    if timeline.is_blocker and not timeline.reports[0].issues and (issues or tickets):
        name = f"#{issues[0]}" if issues else tickets[0]
        said = said.removesuffix(f", {name}")
        return f"{name} was blocked {span}{f': {shorten(said)}' if said else ''}"
    phrase = _phrase_of(timeline, tickets)
    if timeline.is_blocker:
        name = f"#{issues[0]}" if issues else phrase if phrase.startswith("“") else f"“{phrase}”"
        return f"{name} stood in the way {span}"
    phrase = f"{tickets[0]}{f' ({phrase})' if phrase else ''}" if tickets else phrase
    number = f" (#{issues[0]})" if issues else ""
    return f"trouble with {phrase}{number} {span}"


def _phrase_of(timeline: Timeline, tickets: Sequence[str]) -> str:
    """Return the shortest phrase of an entry that names an obstacle: loose words say something else."""
    said = [report.said for report in timeline.reports if report.phrase]
    if timeline.is_verbatim and said:
        return f"“{shorten(said[0], most=_NAME_CHARACTERS)}”"
    words = {word: token for word, token in timeline.words.items() if token not in tickets}
    phrase = " ".join(words.values())
    sentences = [text for report in timeline.reports for text in split_sentences(report.entry)]
    is_real = any(phrase.lower() in text.lower() for text in sentences)
    if is_real and (len(words) > 1 or timeline.issues or tickets):
        return phrase
    clauses = [clause.strip() for text in sentences for clause in _CLAUSES.split(text)]
    shared = {clause: len(words_of(clause).keys() & words.keys()) for clause in clauses}
    best = max(clauses, key=lambda clause: (shared[clause], -len(clause)), default="")
    quoted = f"“{shorten(best, most=_NAME_CHARACTERS)}”"
    # A name says more than the clause alone: a12, CI.
    is_name = len(words) == 1 and (phrase.isupper() or not phrase.isalpha())
    return f"{phrase} ({quoted})" if is_real and is_name else quoted


def _about(timeline: Timeline) -> set[str]:
    """Return the labels that an obstacle is about: its issues, and what most of its reports refer to."""
    cluster = unique_entries(report.entry for report in timeline.reports)
    counts = Counter(label for entry in cluster for label in labels_of(entry))
    named = {label for label, count in counts.items() if 2 * count >= len(cluster)}
    return named | {f"#{issue}" for issue in timeline.issues}


def ended_insight(blocker: str, issues: Sequence[int], end: ObstacleReport) -> Insight:
    """Return what ended a blocker that an earlier reflection told of."""
    action = f"{blocker}, ended in cycle {end.entry.cycle}"
    ended = f"What ended it: {quote_report(end)}."
    return make_insight([end.entry], action, ended, tags=("blocker",), issues=tuple(issues))


def _find_tried(timeline: Timeline, entries: Sequence[Entry]) -> list[Entry]:
    """Return what entries say was done about an obstacle after its first report and before its end."""
    began, end, roles = timeline.began or timeline.reports[0], timeline.end, roles_of(entries)
    found = []
    is_untyped = all(entry.type is EntryType.OBSERVATION for entry in entries)
    is_typed = {entry.type for entry in entries} >= {EntryType.ACTION, EntryType.OBSERVATION}
    for entry in entries:
        is_between = began.entry.seq < entry.seq and (end is None or entry.seq < end.entry.seq)
        named = [stem for stem in stems_of(entry.action) if timeline.stems.get(stem, 0) >= 0.5]
        is_alike = are_surely_alike(words_of(entry.action), timeline.words) or len(named) > 1
        # What has a number of its own is about that.
        is_alike &= not entry.issues or not timeline.issues
        # Who observes that nothing has happened has done nothing about it.
        is_work = (entry.type is not EntryType.OBSERVATION or is_untyped) and not _UNDONE.search(entry.action)
        is_named = bool({*timeline.issues} & {*entry.issues})
        if is_between and is_work and (is_alike or is_named):
            is_action = is_typed and is_named and entry.type is EntryType.ACTION
            is_report = not is_action and any(report.sign != "ended" for report in read_reports(entry, roles))
            found += [] if is_report else [entry]
    return found


def _find_decision(timeline: Timeline, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry in which somebody decided on a rule about an obstacle in so many words."""
    words = {_stem(word) for word in timeline.words}
    names = words | {stem for stem, share in timeline.stems.items() if share >= 0.5}
    for entry in reversed(entries):
        text = " ".join(entry.action.split())
        if entry.type is EntryType.DECISION and RULE.match(text):
            is_same_issue = bool({*timeline.issues} & {*entry.issues})
            shared = names & stems_of(text)
            if is_same_issue or len(shared) > 1 or (shared and 2 * len(shared & words) >= len(words)):
                return entry
    return None
