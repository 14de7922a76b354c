"""Questions with known answers, made from a stream, and how many of them are answered.

A question is about a cycle, an issue or the rare words of an entry; an answer is right when it is one of the
entries that the question can mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.obstacles import words_of

# The bars of the document: tokens of memory in context, share of relevant results, cross-cycle recall.
MOST_TOKENS = 5_000
LEAST_RELEVANT = 0.8
LEAST_RIGHT = 0.9
# Fewer entries have too few cycles to ask across.
LEAST_ENTRIES = 20
_WORDS = 4
_LEAST_SHARED = 2


class StreamQuestion(NamedTuple):
    """A question, and the entries that answer it."""

    text: str
    answers: frozenset[str]


class MemoryMeasure(NamedTuple):
    """What memory costs and gives: tokens in context, the shares of right first hits and fitting results."""

    tokens: int
    questions: int
    right: float
    relevant: float
    missed: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return which bars are missed."""
        shares = [
            (self.right, LEAST_RIGHT, "of the questions answered by the first hit"),
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
    """Return questions about entries that are spread over the whole stream, three kinds in turn."""
    told = [entry for entry in entries if entry.type is not EntryType.REFLECTION]
    if len(told) < LEAST_ENTRIES:
        return []
    words = {entry.id: set(words_of(f"{entry.action} {entry.content}")) for entry in told}
    common = Counter(word for found in words.values() for word in found)
    made: dict[str, StreamQuestion] = {}
    step = max(1, len(told) // most)
    for place, entry in enumerate(told[::step][:most]):
        question = None
        if place % 3 == 1 and entry.issues:
            question = _about_issue(entry.issues[0], told)
        elif place % 3 == 2 and entry.role:
            question = _about_cycle(entry, told)
        question = question or _about_words(entry, told, words, common)
        if question is not None:
            made[question.text] = question
    return list(made.values())


def judge(question: StreamQuestion, found: Sequence[Entry]) -> tuple[bool, int]:
    """Return whether the first result is an answer, and how many are; so is a reflection that cites one."""
    fitting = [_names(entry) & question.answers for entry in found]
    return bool(found) and found[0].id in question.answers, sum(map(bool, fitting))


def _names(entry: Entry) -> set[str]:
    evidence = entry.extra.get("evidence")
    return {entry.id, *(map(str, evidence) if isinstance(evidence, list) else ())}


def _about_issue(issue: int, entries: Sequence[Entry]) -> StreamQuestion:
    answers = (entry.id for entry in entries if issue in entry.issues)
    return StreamQuestion(f"What happened with #{issue}?", frozenset(answers))


def _about_cycle(asked: Entry, entries: Sequence[Entry]) -> StreamQuestion:
    same = (entry.id for entry in entries if (entry.cycle, entry.role) == (asked.cycle, asked.role))
    return StreamQuestion(f"What did {asked.role} do in cycle {asked.cycle}?", frozenset(same))


def _about_words(
    asked: Entry, entries: Sequence[Entry], words: dict[str, set[str]], common: Counter[str]
) -> StreamQuestion | None:
    """Return a question by the rarest words of an entry's action; others with most of them answer it too."""
    own = words_of(asked.action)
    rare = sorted(own, key=lambda word: (common[word], word))[:_WORDS]
    if len(rare) < _LEAST_SHARED:
        return None
    answers = (entry.id for entry in entries if len(words[entry.id] & {*rare}) >= _LEAST_SHARED)
    said = " ".join(token for word, token in own.items() if word in rare)
    return StreamQuestion(f"What was done about {said}?", frozenset(answers))
