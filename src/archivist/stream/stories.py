"""Follow one thing through a stream by the types of its entries: observed, done, decided.

What came back was observed again after something was done about it, what waits is observed while nothing is
done, and a figure is a number in the same place of several entries. This holds in any language: the words
only say what belongs together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence, Set
from itertools import combinations, zip_longest
from statistics import median
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.complaints import is_retold
from archivist.stream.figures import find_shared_name
from archivist.stream.insight_text import (
    Insight,
    RelatedItem,
    count_cycles,
    cycles_of,
    describe_roles,
    format_cycles,
    labels_of,
    make_insight,
    name_related,
    pulls_of,
    quote_said,
    roles_of,
    say,
    unique_entries,
)
from archivist.stream.obstacles import STATED, read_reports, read_waits, split_sentences, ticket_words
from archivist.stream.threads import WorkThread, read_threads, topic_of
from archivist.stream.timelines import stems_of

# What took this many times as long as the others is worth a look; fewer others say nothing.
_SLOW, _LEAST_OTHERS = 2, 2
# The two words behind it are denied; in the languages of most of our users.
_DENIED = re.compile(
    r"\b(?:no|not|none|without|zero|0|kein\w*|nicht|ohne|aucun\w*|pas|sans|sin|ning[uú]n\w*|nessun\w*|senza)"
    r"\s((?:\w+\s?){1,2})",
    re.IGNORECASE,
)
_LEAST_ENTRIES = 3
# A wait of fewer cycles is an ordinary handover.
_LEAST_WAIT = 3
# What nobody speaks of for so many cycles was left, or is done without a word.
_LEFT_CYCLES = 5
# A number that no later entry names is told where the stream went on for so long.
_FORGOTTEN_CYCLES, _LEAST_ASKED = 8, 6
_MORE = 2
_NAME_CHARACTERS = 70
_SHOWN = 8
# A word that more than this share of the entries have, and more than a few, tells nothing apart.
_COMMON, _COMMON_IN_TITLES, _FEW = 0.12, 0.25, 4
_MOST_THEME, _MOST_STEMS, _LONG_WORD, _LEAST_STEM = 8, 12, 5, 4
# So many words are a title; more are a sentence.
_TITLE_WORDS = 5
_LABEL = re.compile(r"(?:PR )?#\d+|\b[A-Z][A-Z0-9]+-\d+")
_NAME_WORD = re.compile(r"[^\W\d_][\w-]*")


class Story(NamedTuple):
    """The entries about one thing: an issue or ticket, or the words of their titles that some share."""

    label: str
    entries: list[Entry]
    stems: frozenset[str] = frozenset()

    @property
    def cycles(self) -> list[int]:
        return cycles_of(self.entries)


class _Words:
    """What the entries of a stream are about, and which of their words tell them apart."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._title = {entry.id: stems_of(_LABEL.sub(" ", entry.action)) for entry in entries}
        self._text = {entry.id: stems_of(_text_of(entry)) for entry in entries}
        self._counts = Counter(stem for each in self._text.values() for stem in each)
        self._most = max(_FEW, int(_COMMON * len(entries)))

    def share_rare(self, one: Entry, other: Entry) -> int:
        """Return how many rare words two entries share."""
        shared = self._text[one.id] & self._text[other.id]
        return sum(self._counts[stem] <= self._most for stem in shared)

    def share_words(self, one: Entry, others: Sequence[Entry]) -> bool:
        """Say whether an entry has two words of one of others."""
        return any(len(self._text[one.id] & self._text[each.id]) > 1 for each in others)

    def share_titles(self, one: Entry, others: Sequence[Entry]) -> bool:
        """Say whether the titles of an entry and of one of others share two words that are not small."""
        shared = (self._title[one.id] & self._title[each.id] for each in others)
        return any(sum(len(stem) >= _LEAST_STEM for stem in stems) > 1 for stems in shared)

    def name_again(self, entry: Entry, later: Sequence[Entry]) -> Entry | None:
        """Return the only later entry with a long word of an entry's title."""
        lone = {s for s in self._title[entry.id] if self._counts[s] == 2 and len(s) >= _LONG_WORD}
        return next((each for each in later if lone & self._title[each.id]), None)

    def find_themes(self, entries: Sequence[Entry]) -> list[Story]:
        """Return the entries that share two words of their titles, or one that three cycles name."""
        known = {entry.id: entry for entry in entries}
        having: dict[frozenset[str], dict[str, Entry]] = {}
        for entry in entries:
            stems = sorted(self._title[entry.id])[:_MOST_STEMS]
            for names in (*combinations(stems, 2), *((stem,) for stem in stems)):
                having.setdefault(frozenset(names), {})[entry.id] = entry
        spans = {key: len(cycles_of(each.values())) for key, each in having.items()}
        wide = (key for key in spans if spans[key] > 1)
        keys = [key for key in wide if len(key) > 1 or (spans[key] > 2 and len(min(key)) >= _LONG_WORD)]
        themes = []
        most = max(_MOST_THEME, _COMMON_IN_TITLES * len(entries))
        for key in sorted(keys, key=lambda key: (-len(key), -spans[key], -len(having[key]), sorted(key))):
            theme = {name: entry for name, entry in having[key].items() if name in known}
            # A word that mostly stands in this pair names the theme alone too.
            for stem in sorted(key) if len(theme) > 1 else ():
                alone = having.get(frozenset([stem]), {})
                others = {n: e for n, e in alone.items() if n in known and e.type is not EntryType.DECISION}
                if len(alone) <= 3 * len(theme) and len(theme | others) <= most:
                    theme |= others
            if len(cycles_of(theme.values())) > (len(key) < 2) + 1 and len(theme) <= most:
                themes.append(Story("", sorted(theme.values(), key=lambda entry: entry.seq), key))
                known = {name: entry for name, entry in known.items() if name not in theme}
        return themes


def read_stories(entries: Sequence[Entry], words: _Words | None = None) -> list[Story]:
    """Return what the entries follow: by their numbers, those without one by their words."""
    pulls, words = pulls_of(entries), words or _Words(entries)
    labelled: dict[str, list[Entry]] = {}
    loose: list[Entry] = []
    for entry in entries:
        labels = labels_of(entry, pulls)
        for label in labels:
            labelled.setdefault(label, []).append(entry)
        if all(label.startswith("PR ") for label in labels):
            loose.append(entry)
    stories = []
    for label, cluster in labelled.items():
        # What is done about a number is often logged without it.
        added = [] if label.startswith("PR ") else [e for e in loose if _answers(e, cluster, words)]
        stories.append(Story(label, sorted((*cluster, *added), key=lambda entry: entry.seq)))
    themes = words.find_themes(loose)
    known = {entry.id for theme in themes for entry in theme.entries}
    lone = [entry for entry in loose if entry.type is EntryType.DECISION and entry.id not in known]
    return [*stories, *themes, *(Story("", [entry]) for entry in lone)]


def _answers(entry: Entry, cluster: Sequence[Entry], words: _Words) -> bool:
    """Say whether an entry without a number does something about what was just observed under one."""
    seen = (each for each in cluster if each.type is EntryType.OBSERVATION and each.seq < entry.seq)
    just = [each for each in seen if entry.cycle - each.cycle < 2]
    return entry.type is EntryType.ACTION and words.share_titles(entry, just)


def _name(story: Story, thread: WorkThread | None, opening: Entry | None) -> str:
    """Name a story for a reader: by the words that most of its titles share, else by its opening."""
    titles = [_LABEL.sub(".", entry.action) for entry in story.entries]
    name = find_shared_name(titles) if len(titles) > 2 else ""
    name = name if story.stems <= stems_of(name) or len(story.stems) < 2 else ""
    if len(stems_of(name)) < 2 and (story.label or len(titles[0].split()) > _TITLE_WORDS or not name):
        topic = topic_of(thread) if thread and not opening else ""
        name = f"“{topic or say(opening or story.entries[0], story.label, most=_NAME_CHARACTERS)}”"
    return f"{name} ({story.label})" if name and story.label else name or story.label


def story_insights(
    entries: Sequence[Entry],
    others: Sequence[Entry],
    new: Collection[str],
    related: Sequence[RelatedItem] = (),
    told_before: Set[str] = frozenset(),
) -> list[Insight]:
    """Return what stories with new entries tell, one insight a story.

    `others` are too light to be told of, but they say that something was done. Of `told_before` earlier
    reflections told: that nothing was done about it since is no news.
    """
    heavy = {entry.id for entry in entries}
    whole = sorted(unique_entries((*entries, *others)), key=lambda entry: entry.seq)
    words, threads, roles = _Words(whole), read_threads(whole), roles_of(whole)
    insights = []
    for story in read_stories(whole, words):
        told = [entry for entry in story.entries if entry.id in heavy]
        is_new = any(entry.id in new for entry in told)
        is_untold = is_new or told_before.isdisjoint(entry.id for entry in told)
        found = [_left(story, whole, words) if told and is_untold else None]
        thread = next((each for each in threads if each.label == story.label), None)
        if is_new and len(told) >= _LEAST_ENTRIES and len(story.cycles) > 1:
            found = [
                _role_wait(story, roles), _relapse(story, whole, words), *found, _end(thread),
                _recurrence(story, whole), _course(story, thread, whole[-1].cycle),
            ]  # fmt: skip
        if verdicts := [verdict for verdict in found if verdict]:
            insights.append(_tell(story, verdicts, thread, threads, related))
    return insights


def _tell(
    story: Story,
    verdicts: Sequence[tuple[str, str]],
    thread: WorkThread | None,
    threads: Sequence[WorkThread],
    related: Sequence[RelatedItem],
) -> Insight:
    """Return what a story shows: the strongest statement as its heading, then its course."""
    (kind, said), *more = verdicts
    cluster, label = story.entries, story.label
    # What came back is named by who reported it: the first of its entries may be work.
    opening = _troubles(story)[0] if kind in ("relapse", "open") else None
    issues = tuple(int(number) for number in re.findall(r"^#(\d+)", label))
    return make_insight(
        cluster,
        f"{label if kind == 'course' else _name(story, thread, opening)} {said}",
        *[f"It {text}." for other, text in more if other not in ("course", "theme")][:_MORE],
        _compare(thread, threads) if kind == "finished" and thread else "",
        f"{' → '.join(f'cycle {each.cycle}: {say(each, label)}' for each in _choose_entries(cluster))}.",
        f"By {describe_roles(cluster)}." if len(roles_of(cluster)) > 1 else "",
        name_related(related, issues),
        tags=(kind,),
        issues=issues if label.startswith("#") else None,
        importance=10 if kind in ("open", "cross-role") else 9,
        about=(label,) if label else (),
    )


def _left(story: Story, entries: Sequence[Entry], words: _Words) -> tuple[str, str] | None:
    """Return since when nothing was done about what is asked for, planned or begun.

    Either an entry names it again long after it was last worked on, or its number stands in no later entry.
    """
    types = {entry.type for entry in entries}
    if story.label.startswith("PR ") or not types >= {EntryType.ACTION, EntryType.OBSERVATION}:
        return None
    worked = [entry for entry in story.entries if entry.type is EntryType.ACTION]
    first, since = story.entries[0], (worked or story.entries)[-1 if worked else 0]
    asked = [entry for entry in story.entries if entry.cycle - since.cycle >= _LEFT_CYCLES]
    last = story.entries[-1]
    later = [entry for entry in entries if entry.seq > since.seq]
    acted = (e for e in later if e.type is EntryType.ACTION and e is not last)
    if any(words.share_words(entry, story.entries) for entry in acted):
        return None
    quiet = entries[-1].cycle - first.cycle
    nothing = "; no entry says what was done"
    if not asked:
        # A decision may name the role that is to do it.
        said = {word.lower() for word in _NAME_WORD.findall(first.action)}
        asked_roles = said & {role.lower() for role in roles_of(entries)} - {first.role.lower()}
        is_asked = bool(story.label or (first.type is EntryType.DECISION and asked_roles))
        if worked or not is_asked or last.cycle != first.cycle or quiet < _FORGOTTEN_CYCLES:
            return None
        # What was done may stand in the text.
        if first.importance < _LEAST_ASKED or first.type is EntryType.ACTION or first.content:
            return None
        # It may go on under another number.
        if any(words.share_words(entry, [first]) for entry in later):
            return None
        later_seen = words.name_again(first, [e for e in later if e.type is EntryType.OBSERVATION])
        named = f", named again as {quote_said(later_seen)}" if later_seen else ""
        return "left", f"came up in cycle {first.cycle}{named}{nothing} in the {quiet} cycles since"
    is_pair = len(story.entries) == 2 and since.type is not EntryType.OBSERVATION
    is_alike = story.label or (is_pair and words.share_rare(since, last) > 1)
    is_over = any(report.sign == "ended" for report in read_reports(last))
    is_lighter = last.importance < since.importance
    if not is_alike or is_over or is_lighter or last.type is not EntryType.OBSERVATION:
        return None
    state = f"was last worked on in cycle {since.cycle}" if worked else f"came up in cycle {first.cycle}"
    again = f"named again in {format_cycles(cycles_of(asked))}: {_quote_about(last, story.label)}"
    return "left", f"{state} and {again}{'' if worked else nothing}"


def _quote_about(entry: Entry, label: str) -> str:
    """Quote the sentence of an entry that names a number: the title may be about another thing."""
    named = next((text for text in split_sentences(entry) if label and label in text), "")
    return quote_said(entry, label) if named in entry.action else f"“{named}” (cycle {entry.cycle})"


def _recurrence(story: Story, entries: Sequence[Entry]) -> tuple[str, str] | None:
    """Return in which cycles a thing without a number came up, where its titles share two words."""
    titles = {entry.id: stems_of(entry.action) for entry in story.entries}
    named = [entry for entry in story.entries if story.stems <= titles[entry.id]]
    # A title that is nothing else is a figure that neither rises nor falls.
    bare = sum(len(titles[entry.id]) <= len(story.stems) for entry in named)
    role, *others = roles_of(named) or ("",)
    # Who logs most of a stream says most things again.
    is_usual = 2 * sum(entry.role == role for entry in entries) > len(entries)
    least = _LEAST_ENTRIES + (is_usual or bool(others))
    if len(story.stems) < 2 or len(cycles_of(named)) < least or 2 * bare > len(named):
        return None
    # What is worked on has entries of its own for what came of it.
    is_typed = any(each.type is EntryType.OBSERVATION for each in entries)
    if is_typed and any(each.type is EntryType.ACTION for each in named):
        return None
    seen = (each for each in story.entries if each.type is EntryType.OBSERVATION)
    after = [each for each in seen if 0 < each.cycle - named[-1].cycle < _LEFT_CYCLES]
    then = f"; then {quote_said(after[-1])}" if after else ""
    always = f", always from {role}" if role and not others else ""
    cycles = format_cycles(cycles_of(named))
    return "theme", f"came up in {cycles}{always}, last as {quote_said(named[-1])}{then}"


def _role_wait(story: Story, roles: Collection[str]) -> tuple[str, str] | None:
    """Return which role waits for which, where the latest entries still say so."""
    waits = [wait for entry in story.entries for wait in read_waits(entry, roles)]
    if len(cycles_of(wait.entry for wait in waits)) < 2 or waits[-1].entry is not story.entries[-1]:
        return None
    last, since = waits[-1], waits[0].entry.cycle
    said = f"{last.who} waits for {last.whom} since cycle {since}: {quote_said(last.entry, story.label)}"
    return "cross-role", f"stands: {said}"


def _end(thread: WorkThread | None) -> tuple[str, str] | None:
    """Return when something was done, and how long it took."""
    if thread is None or thread.done is None or thread.span < _LEAST_WAIT:
        return None
    # What is said of it afterwards may be open.
    after = [entry for entry in thread.entries if entry.seq > thread.done.seq]
    if not all(any(report.sign == "ended" for report in read_reports(entry)) for entry in after):
        return None
    done = quote_said(thread.done, thread.label)
    return "finished", f"took {count_cycles(thread.span)} and was done with {done}"


def _choose_entries(cluster: Sequence[Entry]) -> list[Entry]:
    """Return the entries that tell a story: its ends, its decisions, then the weightiest."""
    if len(cluster) <= _SHOWN:
        return list(cluster)
    inner = sorted(cluster[1:-1], key=lambda e: (e.type is not EntryType.DECISION, -e.importance, -e.seq))
    chosen = {entry.id for entry in (cluster[0], cluster[-1], *inner[: _SHOWN - 2])}
    return [entry for entry in cluster if entry.id in chosen]


def _troubles(story: Story) -> list[Entry]:
    """Return the entries that observe that something goes wrong: the first one, and what repeats it.

    What is observed at a lower weight than the trouble itself is how it got better. What the words say is
    trusted where they also say that the first one is trouble.
    """
    found: list[Entry] = []
    is_trouble = bool(story.label)
    weights = {entry.importance for entry in story.entries}
    last_work = max((e.seq for e in story.entries if e.type is not EntryType.OBSERVATION), default=0)
    # Where nothing is marked as observed, actions tell of trouble too.
    is_typed = any(entry.type is EntryType.OBSERVATION for entry in story.entries)
    earlier, later = [None, *story.entries[:-1]], story.entries[1:]
    for before, entry, following in zip_longest(earlier, story.entries, later):
        signs = {report.sign for report in read_reports(entry)}
        is_told = bool(signs) and "ended" not in signs
        is_seen = entry.type is EntryType.OBSERVATION if is_typed else is_told
        if entry.type is EntryType.DECISION or not is_seen or is_retold(entry):
            continue
        # Who names several numbers may speak of another one, and who has a word in common of another thing.
        if len(entry.issues) + len(ticket_words(entry.action)) > 1 or (
            not story.label and not (len(story.stems) > 1 and story.stems <= stems_of(entry.action))
        ):
            continue
        is_trouble |= is_told
        weightiest = max((each.importance for each in found), default=0)
        if not found:
            found.append(entry)
            is_read = is_told
        elif (
            (_are_same(entry, found) or (story.label and len(stems_of(entry.action)) < _LEAST_ENTRIES))
            and not (is_read and "ended" in signs)
            and "blocked" not in signs
            and ("trouble" in signs or not _is_result(entry, found, before, following))
            # What is seen after the last work is trouble again if it counts as much as before.
            and (entry.seq < last_work or is_told or (len(weights) > 1 and entry.importance >= weightiest))
            and not any(STATED.search(text) for text in split_sentences(entry))
        ):
            found.append(entry)
    # An issue is about trouble; without one, what was observed may be a result.
    answers = [e for e in story.entries if e.type is EntryType.ACTION and found and e.seq > found[0].seq]
    is_trouble |= len(cycles_of(found)) >= _LEAST_ENTRIES and len(cycles_of(answers)) > 1
    return found if is_trouble else []


def _is_result(entry: Entry, reports: Sequence[Entry], before: Entry | None, following: Entry | None) -> bool:
    """Say whether an observation is how it got better: it weighs less than the reports.

    Where it weighs a little less, it must stand right behind work that nobody went on with.
    """
    least = min(each.importance for each in reports)
    if entry.importance + 1 != least:
        return entry.importance < least
    title = stems_of(_LABEL.sub(" ", entry.action))
    is_answer = before is not None and before.type is EntryType.ACTION
    is_left = following is None or following.type is not EntryType.ACTION
    return is_answer and is_left and all(len(title & stems_of(each.action)) < 2 for each in reports)


def _are_same(entry: Entry, others: Sequence[Entry]) -> bool:
    """Say whether an entry tells of what others tell: a word of its title, or two of its text.

    A word that only one of two denies is not the same.
    """
    title, text, denied = stems_of(entry.action), stems_of(_text_of(entry)), _denied_stems(entry)
    for other in others:
        differing = denied ^ _denied_stems(other)
        shared = (text & stems_of(_text_of(other))) - differing
        if title & stems_of(other.action) - differing or len(shared) > 1:
            return True
    return False


def _text_of(entry: Entry) -> str:
    return f"{entry.action}. {entry.content}"


def _denied_stems(entry: Entry) -> frozenset[str]:
    return stems_of(" ".join(match[1] for match in _DENIED.finditer(_text_of(entry))))


def _relapse(story: Story, entries: Sequence[Entry], words: _Words) -> tuple[str, str] | None:
    """Return how often something came back after it was dealt with, and whether the last answer holds."""
    troubles = _troubles(story)
    if len(troubles) < 2:
        return None
    ids, last = {entry.id for entry in troubles}, troubles[-1]
    answer: Entry | None = None
    back: list[Entry] = []
    for entry in story.entries:
        if entry.id in ids and answer:
            back, answer = [*back, answer], None
        elif entry.type is not EntryType.OBSERVATION and entry.seq > troubles[0].seq and entry.id not in ids:
            answer = entry
    if not back:
        return None
    label = story.label
    is_typed = any(entry.type is EntryType.OBSERVATION for entry in entries)
    # Words alone may join two things.
    if not label and (not is_typed or len(cycles_of(troubles)) < _LEAST_ENTRIES):
        return None
    said = f"was reported in {format_cycles(cycles_of(troubles))}, last after {quote_said(back[-1], label)}"
    numbers = {*last.issues}
    later = [e for e in entries if e.seq > last.seq and (e in story.entries or numbers & {*e.issues})]
    done = [entry for entry in later if entry.type is not EntryType.OBSERVATION]
    if not done:
        after = (e for e in entries if e.seq > last.seq and e.type is not EntryType.OBSERVATION)
        if later and later[-1].cycle > last.cycle:
            return "relapse", f"{said}; then {quote_said(later[-1], label)}"
        answered = later or any(words.share_rare(entry, last) for entry in after)
        return "open", f"{said}{'' if answered else '; no later entry says what was done'}"
    ended = next((entry for entry in done if entry.type is EntryType.ACTION), done[0])
    seen = [entry for entry in later if entry.seq > ended.seq and entry.type is EntryType.OBSERVATION]
    quiet = entries[-1].cycle - ended.cycle
    held = f", and not again in the {count_cycles(quiet)} since" if quiet >= _LEAST_WAIT else ""
    held = f", then {quote_said(seen[-1], label)}" if seen else held
    return "relapse", f"{said}; then {quote_said(ended, label)}{held}"


def _compare(thread: WorkThread, threads: Sequence[WorkThread]) -> str:
    """Say how long other threads of its kind took."""
    is_pull = thread.label.startswith("PR ")
    done = (each for each in threads if each.done and each.span and each is not thread)
    others = [each for each in done if each.label.startswith("PR ") is is_pull]
    if len(others) < _LEAST_OTHERS:
        return ""
    told = ", ".join(f"{each.label} {each.span}" for each in others[-_SHOWN:])
    is_slow = thread.span >= _SLOW * median(each.span for each in others)
    return f"{'Others were faster' if is_slow else 'Others took'}, in cycles: {told}."


def _course(story: Story, thread: WorkThread | None, latest: int) -> tuple[str, str] | None:
    """Return how work on a number began and where it is, unless it is over or somebody has looked at it."""
    first, last = story.entries[0], story.entries[-1]
    seen = sum(entry.type is EntryType.OBSERVATION for entry in story.entries)
    is_work = EntryType.OBSERVATION not in (first.type, last.type) and 2 * seen < len(story.entries)
    is_over = thread is None or thread.done is not None
    if is_over or not is_work or last.cycle - first.cycle < 2 or len(roles_of(story.entries)) < 2:
        return None
    quiet = latest - last.cycle
    left = f"; no entry is about it in the {count_cycles(quiet)} since" if quiet >= _LEFT_CYCLES else ""
    return "course", f"went from {quote_said(first, story.label)} to {quote_said(last, story.label)}{left}"
