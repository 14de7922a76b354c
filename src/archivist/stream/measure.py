"""Questions with known answers, made from a stream, and how many of them are answered.

A question is about a cycle, an issue or the rare words of an entry; an answer is right when it is one of the
entries that the question can mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from archivist.recall.statements import stem_word
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
    """A question, the entries that answer it, and others that are to the point."""

    text: str
    answers: frozenset[str]
    related: frozenset[str] = frozenset()


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
    """Return questions about entries that are spread over the whole stream, five kinds in turn.

    Besides a cycle, an issue and the words of an entry itself, people ask in fewer and other words than those
    that were logged, and how something stands now: then only the latest entry about it is the answer.
    """
    told = [entry for entry in entries if entry.type is not EntryType.REFLECTION]
    if len(told) < LEAST_ENTRIES:
        return []
    words = {entry.id: set(words_of(f"{entry.action} {entry.content}")) for entry in told}
    common = Counter(word for found in words.values() for word in found)
    made: dict[str, StreamQuestion] = {}
    step = max(1, len(told) // most)
    for place, entry in enumerate(told[::step][:most]):
        related: list[str] = []
        if place % 5 == 1 and entry.issues:
            text = f"What happened with #{entry.issues[0]}?"
            answers = [each.id for each in told if entry.issues[0] in each.issues]
        elif place % 5 == 2 and entry.role:
            text = f"What did {entry.role} do in cycle {entry.cycle}?"
            answers = [each.id for each in told if (each.cycle, each.role) == (entry.cycle, entry.role)]
        else:
            # By the rarest words of what was done; other entries with most of them answer it too.
            own = words_of(entry.action)
            rare = sorted(own, key=lambda word: (common[word], word))[:_WORDS]
            if len(rare) < _LEAST_SHARED:
                continue
            if place % 5 > 2:
                rare = rare[:_LEAST_SHARED]
            said = " ".join(own[word] for word in own if word in rare)
            answers = [each.id for each in told if len(words[each.id].intersection(rare)) >= _LEAST_SHARED]
            text = f"What was done about {said}?"
            if place % 5 == 3:
                text = f"How does {said} stand now?"
                related, answers = answers, answers[-1:]
            elif place % 5 == 4:
                text = f"Do we know anything of {' or '.join(stem_word(word) for word in rare)}?"
        made[text] = StreamQuestion(text, frozenset(answers), frozenset(related or answers))
    return list(made.values())


def judge(question: StreamQuestion, found: Sequence[Entry]) -> tuple[bool, int]:
    """Return whether the first result is an answer, and how many are; so is a reflection that cites one."""
    fitting = 0
    for entry in found:
        evidence = entry.extra.get("evidence")
        cited = map(str, evidence) if isinstance(evidence, list) else ()
        fitting += not (question.answers | question.related).isdisjoint((entry.id, *cited))
    return bool(found) and found[0].id in question.answers, fitting
