"""Questions with known answers, made from a stream, and how many of them are answered.

A question is about a cycle, an issue or the rare words of an entry; an answer is right when it is one of the
entries that the question can mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.figures import find_shared_name
from archivist.stream.insight_text import unique_entries
from archivist.stream.obstacles import words_of
from archivist.stream.stories import Story, read_stories

# The bars of the document: tokens of memory in context, share of relevant results, cross-cycle recall.
MOST_TOKENS = 5_000
LEAST_RELEVANT = 0.8
LEAST_RECALLED = 0.9
# Fewer entries have too few cycles to ask across.
LEAST_ENTRIES = 20
_NAMED = 2
_ASKED = {
    EntryType.ACTION: "What was done about {}?",
    EntryType.DECISION: "What was decided about {}?",
    EntryType.OBSERVATION: "What was seen of {}?",
    EntryType.REFLECTION: "What was learnt of {}?",
}


class StreamQuestion(NamedTuple):
    """A question, the entries that answer it, and others that are to the point."""

    text: str
    answers: frozenset[str]
    related: frozenset[str] = frozenset()


class MemoryMeasure(NamedTuple):
    """What memory costs and gives: tokens in context, the shares of right first hits and fitting results."""

    tokens: int
    questions: int
    right: float
    recalled: float
    relevant: float
    missed: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return which bars are missed."""
        shares = [
            (self.recalled, LEAST_RECALLED, "of the questions answered by what is retrieved"),
            (self.relevant, LEAST_RELEVANT, "of what is retrieved to the point"),
        ]
        found = [
            f"{share:.0%} {what}, at least {least:.0%}"
            for share, least, what in shares
            if self.questions and share < least
        ]
        if self.tokens > MOST_TOKENS:
            found.append(f"{self.tokens:,} tokens in context, at most {MOST_TOKENS:,}")
        return found


def make_questions(entries: Sequence[Entry], most: int) -> list[StreamQuestion]:
    """Return questions about entries that are spread over the whole stream, as a person asks them.

    A person remembers what a thing was called elsewhere, not how the entry that answers was worded: the words
    of a question are those that other entries about the same thing have, and one of them at least is not in
    the answer. What is asked is what was done, decided or seen, by whom, in which cycles, and how it stands.
    """
    told = [entry for entry in entries if entry.type is not EntryType.REFLECTION]
    if len(told) < LEAST_ENTRIES:
        return []
    words = {entry.id: words_of(f"{entry.action} {entry.content}") for entry in told}
    common = Counter(word for found in words.values() for word in found)
    stories = [story for story in read_stories(told) if len(story.entries) > 1 and len(story.cycles) > 1]
    home: dict[str, Story] = {}
    for story in sorted(stories, key=lambda story: len(story.entries)):
        home |= {entry.id: story for entry in story.entries if entry.id not in home}
    made: dict[str, StreamQuestion] = {}
    followed = [entry for entry in told if entry.id in home]
    step = max(1, len(followed) // most)
    for place, entry in enumerate(followed[::step]):
        story = home[entry.id]
        # Who asks does not know where one of two things with common entries ends.
        near = [
            each
            for each in stories
            if not {e.id for e in each.entries}.isdisjoint(e.id for e in story.entries)
        ]
        text, fits = _ask(place, entry, near)
        related = unique_entries(each for other in near for each in other.entries)
        answers = [each for each in related if fits(each)]
        if said := _words_of_others(story, answers, words, common):
            text = text.format(said)
            ids = frozenset(each.id for each in answers)
            made[text] = StreamQuestion(text, ids, frozenset(each.id for each in related))
    return list(made.values())[:most]


def _ask(place: int, entry: Entry, stories: Sequence[Story]) -> tuple[str, Callable[[Entry], bool]]:
    """Return a question about an entry's place in its story, and which entries answer it."""
    last = {story.entries[-1].id for story in stories}
    kinds: list[tuple[str, Callable[[Entry], bool]]] = [
        (_ASKED[entry.type], lambda each: each.type is entry.type),
        ("How does {} stand now?", lambda each: each.id in last),
        (f"What was {{}} about in cycle {entry.cycle}?", lambda each: each.cycle == entry.cycle),
        (f"What happened with {{}} since cycle {entry.cycle}?", lambda each: each.cycle >= entry.cycle),
    ]
    if entry.role:
        kinds.append((f"What did {entry.role} do about {{}}?", lambda each: each.role == entry.role))
    return kinds[place % len(kinds)]


def _words_of_others(
    story: Story,
    answers: Sequence[Entry],
    words: Mapping[str, Mapping[str, str]],
    common: Mapping[str, int],
) -> str:
    """Return what a thing is called, with a word of its other entries that no answer has."""
    held_out = {word for entry in answers for word in words[entry.id]}
    others = [entry for entry in story.entries if entry not in answers] or story.entries[:-1]
    shared = Counter(word for entry in others for word in words[entry.id] if word not in held_out)
    written = {word: token for entry in others for word, token in words[entry.id].items()}
    name = find_shared_name([entry.action for entry in story.entries]) or " ".join(
        list(words[story.entries[0].id].values())[:_NAMED]
    )
    known = words_of(name)
    fresh = [word for word in shared if word not in known and word.isalpha()]
    best = min(fresh, key=lambda word: (-shared[word], common[word], word), default="")
    return f"{name} {written[best]}" if name and best else name


class AnswerCheck(NamedTuple):
    """Whether the first result answers, whether one of them does, and how many are to the point."""

    is_right: bool
    is_recalled: bool
    fitting: int


def judge(question: StreamQuestion, found: Sequence[Entry]) -> AnswerCheck:
    """Return how results answer a question; a reflection answers what the entries that it cites do."""
    named = []
    for entry in found:
        evidence = entry.extra.get("evidence")
        named.append({entry.id, *(map(str, evidence) if isinstance(evidence, list) else ())})
    answers = [not names.isdisjoint(question.answers) for names in named]
    fitting = sum(not names.isdisjoint(question.answers | question.related) for names in named)
    return AnswerCheck(answers[:1] == [True], any(answers), fitting)
