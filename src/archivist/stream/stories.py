"""Follow one thing through a stream by the types of its entries: observed, done, decided.

What came back was observed again after something was done about it, what waits is observed while nothing is
done, and a figure is a number in the same place of several entries. This holds in any language: the words
only say what belongs together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from archivist.recall.keywords import STOP_WORDS
from archivist.records import Entry, EntryType
from archivist.stream.complaints import is_retold
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
from archivist.stream.obstacles import read_reports, read_waits
from archivist.stream.threads import WorkThread, read_threads, topic_of
from archivist.stream.timelines import stems_of

# What took this many times as long as the others is worth a look; fewer others say nothing.
_SLOW, _LEAST_OTHERS = 2, 2
_SAME_WHOLE = 1.5
# A figure that ends this near to where it began shows nothing.
_LEAST_CHANGE = 0.1
_MEASURE_CHARACTERS = 3
# The two words behind it are denied; in the languages of most of our users.
_DENIED = re.compile(
    r"\b(?:no|not|none|without|zero|0|kein\w*|nicht|ohne|aucun\w*|pas|sans|sin|ning[uú]n\w*|nessun\w*|senza)"
    r"\s((?:\w+\s?){1,2})",
    re.IGNORECASE,
)
_NEAR_CYCLES = 4
_LEAST_ENTRIES, _LEAST_READINGS = 3, 3
# A wait of fewer cycles is an ordinary handover.
_LEAST_WAIT = 3
# What nobody speaks of for so many cycles was left, or is done without a word.
_LEFT_CYCLES = 5
_MORE = 2
# A course that was told before is told again when so much is new.
_LEAST_AGAIN = 2
_NAME_CHARACTERS = 70
_SHOWN = 6
# A word that more than this share of the entries have, and more than a few, tells nothing apart.
_COMMON, _COMMON_IN_TITLES, _FEW = 0.12, 0.2, 4
# So many words are a title; more are a sentence.
_TITLE_WORDS = 5
_LABEL = re.compile(r"(?:PR )?#\d+|\b[A-Z][A-Z0-9]+-\d+")
_VALUE = r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,9}(?:[.,]\d{1,4})?"
_NUMBER = re.compile(
    r"(?:(?P<before>(?<![^\W\d_])[^\W\d_]{1,40})(?P<colon>:?) +)?(?<![\w#./:,-])"
    rf"(?P<value>{_VALUE})(?![\d:])"
    rf"(?: ?(?P<of>of|von|de|di|van|av|sur|/) ?(?P<whole>{_VALUE})(?![\d/.])"
    r"| ?(?P<unit>%|[^\W\d_]+)|(?![\w/]))"
)
_NAME_WORD = re.compile(r"[^\W\d_][\w-]*")
_THOUSANDS = re.compile(r",(?=\d{3}\b)")


class Story(NamedTuple):
    """The entries about one thing: an issue or ticket, or what unlabelled entries share."""

    label: str
    entries: list[Entry]

    @property
    def cycles(self) -> list[int]:
        return cycles_of(self.entries)


class Reading(NamedTuple):
    """A number in an entry: its value, as it was written, and what it counts."""

    value: float
    written: str
    unit: str
    whole: float
    before: str
    stems: frozenset[str]
    entry: Entry
    beside: frozenset[float] = frozenset()


class _Words:
    """What the entries of a stream are about, and which of their words tell them apart."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        titles = {entry.id: stems_of(entry.action) for entry in entries}
        texts = {entry.id: stems_of(_text_of(entry)) for entry in entries}
        self._title = _without_common(titles, _COMMON_IN_TITLES)
        self._text = _without_common(texts, _COMMON)
        self._pairs = {entry.id: _pairs(entry.action) for entry in entries}
        self._short = {entry.id for entry in entries if len(entry.action.split()) <= _TITLE_WORDS}

    def have_one_title(self, one: Entry, other: Entry) -> bool:
        """Say whether two entries have the same short title."""
        is_short = one.id in self._short and other.id in self._short
        return is_short and self._title[one.id] == self._title[other.id] != frozenset()

    def are_of_one(self, one: Entry, other: Entry) -> bool:
        """Say whether two entries are about the same: a title's word is in the other, or they share two."""
        titles = self._title[one.id], self._title[other.id]
        shared = self._text[one.id] & self._text[other.id]
        if one.id in self._short and other.id in self._short:
            is_near = abs(one.cycle - other.cycle) <= _NEAR_CYCLES
            is_said = titles[0] & self._text[other.id] or titles[1] & self._text[one.id]
            return bool(titles[0] & titles[1] or (is_near and is_said)) or len(shared) > 2
        if self._pairs[one.id] & self._pairs[other.id]:
            return True
        return len(shared) > 1 and not shared.isdisjoint(titles[0] | titles[1])

    def share_words(self, one: Entry, others: Sequence[Entry]) -> bool:
        """Say whether an entry has a rare word of others, or two of any kind."""
        return any(
            self._text[one.id] & self._text[each.id]
            or len(stems_of(_text_of(one)) & stems_of(_text_of(each))) > 1
            for each in others
        )


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    """Return the neighbouring words of a text that both say something."""
    stems = [next(iter(stems_of(word)), "") for word in _NAME_WORD.findall(text)]
    return frozenset(pair for pair in pairwise(stems) if all(pair))


def _without_common(stems: dict[str, frozenset[str]], share: float) -> dict[str, frozenset[str]]:
    counts = Counter(stem for each in stems.values() for stem in each)
    common = {stem for stem, count in counts.items() if count > max(_FEW, share * len(stems))}
    return {name: each - common for name, each in stems.items()}


def read_stories(entries: Sequence[Entry], words: _Words | None = None) -> list[Story]:
    """Return what the entries follow: by their labels, the unlabelled ones by their words."""
    pulls, words = pulls_of(entries), words or _Words(entries)
    labelled: dict[str, list[Entry]] = {}
    loose: list[list[Entry]] = []
    for entry in entries:
        labels = labels_of(entry, pulls)
        for label in labels:
            labelled.setdefault(label, []).append(entry)
        if not labels:
            # The same title is the same thing; else what was spoken of last goes on.
            same = (g for g in loose if any(words.have_one_title(entry, each) for each in g))
            near = (g for g in reversed(loose) if any(words.are_of_one(entry, each) for each in g[-_FEW:]))
            home = next(same, None) or next(near, None)
            if home is None:
                loose.append(home := [])
            else:
                loose.remove(home)
                loose.append(home)
            home.append(entry)
    return [*(Story(*each) for each in labelled.items()), *(Story("", group) for group in loose)]


def find_name(story: Story) -> tuple[str, int]:
    """Return the title, or the two words of one, that most titles of a story have, and how many have it."""
    titles = [" ".join(_LABEL.sub("", entry.action).split()).strip(" .:,()") for entry in story.entries]
    found = [stems_of(title) for title in titles]
    short = [title for title in titles if 0 < len(title.split()) <= _TITLE_WORDS]
    own = titles[0] if titles[0] in short and titles[0] == story.entries[0].action else ""
    counts: dict[str, tuple[int, int]] = {}
    for title in titles:
        for name in (*_phrases(title), *([title] if title in short else [])):
            stems = stems_of(name)
            # A lone word says what it is about where it is a title again and again.
            if len(stems) > 1 or (stems and (name == own or titles.count(name) > 1)):
                counts.setdefault(name, (sum(stems <= each for each in found), len(stems)))
    # The first title names it where it comes back at all, or where the story begins with what was seen.
    is_first = counts.get(own, (0,))[0] > (story.entries[0].type is not EntryType.OBSERVATION)
    best = own if is_first else max(counts, key=lambda name: counts[name], default="")
    name, count = (best, counts[best][0]) if best and (is_first or counts[best][0] > 1) else (own, 1)
    return (name[:1].upper() + name[1:] if name.split(" ")[0].isalpha() else name), count


def _phrases(title: str) -> Iterator[str]:
    """Yield the words of a title that say something two by two, with a small word between them or none."""
    words = _NAME_WORD.findall(title)
    telling = [bool(stems_of(word)) for word in words]
    for at, following in enumerate(telling[1:], 1):
        if telling[at - 1] and following:
            yield " ".join(words[at - 1 : at + 1])
        elif telling[at - 1] and telling[at + 1 : at + 2] == [True]:
            yield " ".join(words[at - 1 : at + 2])


def _name(story: Story, name: str, thread: WorkThread | None, kind: str) -> str:
    """Name a story for a reader: by what comes back in its titles, else by its opening."""
    if kind == "cross-role" or not name:
        topic = topic_of(thread) if thread else say(story.entries[0], most=_NAME_CHARACTERS)
        # A course quotes the opening itself.
        name = f"“{topic}”" if topic and not (story.label and kind == "course") else ""
    return f"{name} ({story.label})" if name and story.label else name or story.label


def story_insights(
    entries: Sequence[Entry],
    others: Sequence[Entry],
    new: Collection[str],
    related: Sequence[RelatedItem] = (),
) -> list[Insight]:
    """Return what stories with new entries tell, one insight a story.

    `others` are too light to be told of, but they say that something was done.
    """
    heavy = {entry.id for entry in entries}
    whole = sorted(unique_entries((*entries, *others)), key=lambda entry: entry.seq)
    words = _Words(whole)
    threads = read_threads(whole)
    found = []
    for story in read_stories(whole, words):
        told = [entry for entry in story.entries if entry.id in heavy]
        if len(told) < _LEAST_ENTRIES or len(story.cycles) < 2 or not any(e.id in new for e in told):
            continue
        fresh = [entry for entry in told if entry.id in new]
        found.append(_tell(story, fresh, whole, words, threads, related))
    return [insight for insight in found if insight]


def _tell(
    story: Story,
    fresh: Sequence[Entry],
    entries: Sequence[Entry],
    words: _Words,
    threads: Sequence[WorkThread],
    related: Sequence[RelatedItem],
) -> Insight | None:
    """Return what a story shows: the strongest statement as its heading, then its course."""
    cluster, latest, label = story.entries, entries[-1].cycle, story.label
    answered = any(
        entry.type is not EntryType.OBSERVATION
        and entry.seq > cluster[-1].seq
        and words.share_words(entry, cluster[-1:])
        for entry in entries
    )
    thread = next((each for each in threads if each.label == label), None)
    name, count = find_name(story)
    found = (
        _role_wait(story, roles_of(entries)), _trend(story), _relapse(story, entries, answered),
        _end(thread), _wait(story, answered), _course(story, latest), _decisions(story),
    )  # fmt: skip
    (kind, said), *more = [verdict for verdict in found if verdict]
    if kind == "course":
        is_seen = any(entry.type is not EntryType.ACTION for entry in cluster)
        if not label and count >= _LEAST_ENTRIES and len(stems_of(name)) > 1:
            kind, said = "theme", f"was worked on in {format_cycles(story.cycles)}"
        elif (
            not (is_seen or len(roles_of(cluster)) > 1)
            or not (label or (name and len(cluster) > _LEAST_ENTRIES))
            or len(fresh) < _LEAST_AGAIN < _LEAST_ENTRIES <= len(cluster) - len(fresh)
        ):
            return None
    issues = tuple(int(number) for number in re.findall(r"^#(\d+)", label))
    return make_insight(
        cluster,
        f"{_name(story, name, thread, kind)} {said}",
        *[f"It {text}." for other, text in more if other != "course"][:_MORE],
        _compare(thread, threads) if kind == "finished" and thread else "",
        f"{' → '.join(_tell_entry(entry, label) for entry in _choose_entries(cluster))}.",
        f"By {describe_roles(cluster)}." if len(roles_of(cluster)) > 1 else "",
        name_related(related, issues),
        tags=(kind,),
        issues=issues if label.startswith("#") else None,
        importance=10 if kind in ("trend", "open", "cross-role") else 9,
        about=(label,) if label else (),
    )


def _role_wait(story: Story, roles: Collection[str]) -> tuple[str, str] | None:
    """Return which role waits for which, where the latest entries still say so."""
    waits = [wait for entry in story.entries for wait in read_waits(entry, roles)]
    if len(cycles_of(wait.entry for wait in waits)) < 2 or waits[-1].entry is not story.entries[-1]:
        return None
    last = waits[-1]
    since = f"since cycle {waits[0].entry.cycle}"
    return (
        "cross-role",
        f"stands: {last.who} waits for {last.whom} {since}: {quote_said(last.entry, story.label)}",
    )


def _end(thread: WorkThread | None) -> tuple[str, str] | None:
    """Return when something was done, and how long it took."""
    if thread is None or thread.done is None or thread.span < _LEAST_WAIT:
        return None
    done = quote_said(thread.done, thread.label)
    return "finished", f"took {count_cycles(thread.span)} and was done with {done}"


def _tell_entry(entry: Entry, label: str) -> str:
    return f"cycle {entry.cycle}: {say(entry, label)}"


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
    # Where nothing is marked as observed, actions tell of trouble too.
    is_typed = any(entry.type is EntryType.OBSERVATION for entry in story.entries)
    for entry in story.entries:
        signs = {report.sign for report in read_reports(entry)}
        is_told = bool(signs) and "ended" not in signs
        is_seen = entry.type is EntryType.OBSERVATION if is_typed else is_told
        if entry.type is EntryType.DECISION or not is_seen or is_retold(entry):
            continue
        is_trouble |= is_told
        if not found:
            found.append(entry)
            is_read = is_told
        elif (
            _are_same(entry, found)
            and not (is_read and "ended" in signs)
            and entry.importance >= min(each.importance for each in found)
        ):
            found.append(entry)
    # An issue is about trouble; without one, what was observed may be a result.
    return found if is_trouble else []


def _are_same(entry: Entry, others: Sequence[Entry]) -> bool:
    """Say whether an entry tells of what others tell: a word of its title, or two of its text.

    A word that only one of two denies is not the same.
    """
    title, text, denied = stems_of(entry.action), stems_of(_text_of(entry)), _denied_stems(entry)
    for other in others:
        differing = denied ^ _denied_stems(other)
        if (
            title & stems_of(other.action) - differing
            or len((text & stems_of(_text_of(other))) - differing) > 1
        ):
            return True
    return False


def _text_of(entry: Entry) -> str:
    return f"{entry.action}. {entry.content}"


def _denied_stems(entry: Entry) -> frozenset[str]:
    return stems_of(" ".join(match[1] for match in _DENIED.finditer(_text_of(entry))))


def _relapse(story: Story, entries: Sequence[Entry], answered: bool) -> tuple[str, str] | None:
    """Return how often something came back after it was dealt with, and whether the last answer holds."""
    troubles = _troubles(story)
    if len(troubles) < 2:
        return None
    ids, last = {entry.id for entry in troubles}, troubles[-1]
    answer: Entry | None = None
    back: list[tuple[Entry, Entry]] = []
    for entry in story.entries:
        if entry.id in ids and answer:
            back, answer = [*back, (answer, entry)], None
        elif entry.type is not EntryType.OBSERVATION and entry.seq > troubles[0].seq and entry.id not in ids:
            answer = entry
    if not back:
        return None
    label = story.label
    cycles = format_cycles(cycles_of(entry for _, entry in back))
    last_of = "last after" if len(back) > 1 else "after"
    said = f"was reported again in {cycles}, {last_of} {quote_said(back[-1][0], label)}"
    later = [e for e in story.entries if e.seq > last.seq and e.type is not EntryType.OBSERVATION]
    if not later:
        since = "" if answered or story.entries[-1] is not last else "; no later entry says what was done"
        return "open", f"{said}: {quote_said(last, label)}{since}"
    ended = next((entry for entry in later if entry.type is EntryType.ACTION), later[0])
    quiet = entries[-1].cycle - ended.cycle
    seen = any(
        e.seq > ended.seq and e.type is EntryType.OBSERVATION and _are_same(e, troubles) for e in entries
    )
    held = f", and not again in the {count_cycles(quiet)} since" if quiet >= _LEAST_WAIT and not seen else ""
    return "relapse", f"{said}; then {quote_said(ended, label)}{held}"


def _wait(story: Story, answered: bool) -> tuple[str, str] | None:
    """Return for how long something was only observed while nothing was done."""
    stretches: list[tuple[list[Entry], Entry | None]] = []
    seen: list[Entry] = []
    for entry in story.entries:
        if entry.type is EntryType.OBSERVATION:
            seen.append(entry)
        elif seen:
            stretches.append((seen, entry))
            seen = []
    stretches += [(seen, None)] if seen else []
    troubles = {entry.id for entry in _troubles(story)}
    spans = [
        ((end or seen[-1]).cycle - seen[0].cycle, seen, end)
        for seen, end in stretches
        if len(cycles_of(entry for entry in seen if entry.id in troubles)) > 1
        or (end and len(cycles_of(seen)) >= _LEAST_ENTRIES)
    ]
    span, seen, end = max(spans, key=lambda each: each[0], default=(0, [], None))
    if span < _LEAST_WAIT:
        return None
    only = f"was only reported, not worked on, in cycles {seen[0].cycle} to {(end or seen[-1]).cycle}"
    if end is None:
        return None if answered else ("open", f"{only}, last as {quote_said(seen[-1], story.label)}")
    return "waited", f"{only}: {quote_said(seen[0], story.label)}, then {quote_said(end, story.label)}"


def _compare(thread: WorkThread, threads: Sequence[WorkThread]) -> str:
    """Say how long other threads of its kind took."""
    is_pull = thread.label.startswith("PR ")
    others = [
        each
        for each in threads
        if each.done and each is not thread and each.span and each.label.startswith("PR ") is is_pull
    ]
    if len(others) < _LEAST_OTHERS:
        return ""
    told = ", ".join(f"{each.label} {each.span}" for each in others[-_SHOWN:])
    is_slow = thread.span >= _SLOW * median(each.span for each in others)
    return f"{'Others were faster' if is_slow else 'Others took'}, in cycles: {told}."


def _decisions(story: Story) -> tuple[str, str] | None:
    """Return how a decision was followed by another about the same thing."""
    made = [entry for entry in story.entries if entry.type is EntryType.DECISION]
    if len(made) < 2:
        return None
    first, last = quote_said(made[-2], story.label), quote_said(made[-1], story.label)
    return "decisions", f"was decided twice: {first}, then {last}"


def _course(story: Story, latest: int) -> tuple[str, str]:
    """Return how a story began and where it is now."""
    first, last = story.entries[0], story.entries[-1]
    quiet = latest - last.cycle
    left = f"; no entry is about it in the {count_cycles(quiet)} since" if quiet >= _LEFT_CYCLES else ""
    return "course", f"went from {quote_said(first, story.label)} to {quote_said(last, story.label)}{left}"


def _trend(story: Story) -> tuple[str, str] | None:
    """Return the figure with most readings that rose or fell over a story."""
    series: list[list[Reading]] = []
    for entry in story.entries:
        used: set[int] = set()
        for reading in _read_numbers(entry):
            home = next((at for at, each in enumerate(series) if _is_same_count(reading, each)), None)
            if home is None:
                series.append([reading])
                home = len(series) - 1
            elif home not in used and series[home][-1].entry.id != entry.id:
                series[home].append(reading)
            used.add(home)
    steady = [each for each in series if _is_steady(each)]
    best = max(steady, key=len, default=None)
    if best is None:
        return None
    first, last = best[0], best[-1]
    verb = "rose" if last.value > first.value else "fell"
    values = " → ".join(reading.written for reading in (first, *best[1:][-_SHOWN:]))
    between = f"between cycles {first.entry.cycle} and {last.entry.cycle}"
    return "trend", f"{verb} from {first.written} to {last.written} {between} ({values})"


def _is_steady(series: Sequence[Reading]) -> bool:
    if len({reading.entry.cycle for reading in series}) < _LEAST_READINGS:
        return False
    net = series[-1].value - series[0].value
    if abs(net) < _LEAST_CHANGE * max(reading.value for reading in series):
        return False
    along = sum((later.value - earlier.value) * net > 0 for earlier, later in pairwise(series))
    return along * 3 >= 2 * (len(series) - 1)


def _is_same_count(reading: Reading, series: Sequence[Reading]) -> bool:
    last = series[-1]
    if bool(reading.whole) != bool(last.whole):
        return False
    if reading.whole:
        # What is counted grows or shrinks a little, but 2 of 10 and 30 of 30 are of two things.
        return max(reading.whole, last.whole) <= _SAME_WHOLE * min(reading.whole, last.whole)
    is_named = bool(reading.before) and reading.before == last.before
    shared = len(reading.stems & last.stems)
    if reading.unit == last.unit:
        # A measure, as ms or km, counts one thing in one issue.
        is_measure = reading.unit.isalpha() and len(reading.unit) <= _MEASURE_CHARACTERS
        return (
            is_named
            or shared > 0
            or (is_measure and bool({*labels_of(reading.entry)} & {*labels_of(last.entry)}))
        )
    # “131, was 214” goes on with what 214 counted.
    return shared > (last.value not in reading.beside) and not (reading.unit and last.unit)


def _read_numbers(entry: Entry) -> Iterator[Reading]:
    """Yield the numbers of an entry that count something: a share, or with a unit or a plural beside them."""
    text = _LABEL.sub(" ", _text_of(entry))
    title = stems_of(_LABEL.sub(" ", entry.action))
    matches = list(_NUMBER.finditer(text))
    beside = frozenset(_number(match["value"]) for match in matches)
    for match in matches:
        before, unit = (match["before"] or "").lower(), (match["unit"] or "").lower()
        unit = "" if unit in STOP_WORDS else unit
        is_named = before.endswith("s") or match["colon"] or "." in match["value"]
        if not match["whole"] and not unit and not is_named:
            continue
        written = match["value"]
        if match["whole"]:
            written = f"{match['value']} {match['of']} {match['whole']}"
        elif unit and len(unit) < 4:
            written = f"{match['value']} {match['unit']}"
        ahead, behind = text[: match.start("value")].split()[-4:], text[match.end("value") :].split()[:4]
        around = stems_of(" ".join((*ahead, *behind))) | title
        value, whole = _number(match["value"]), _number(match["whole"] or "0")
        yield Reading(value, written, unit, whole, before, around, entry, beside - {value})


def _number(written: str) -> float:
    return float(_THOUSANDS.sub("", written).replace(",", "."))
