"""Ask what happened in a run: its outcome, what worked, what failed, what was decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from archivist.reflect.model.questions import ModelQuestion


@dataclass(frozen=True, slots=True)
class CitedLine:
    """One statement in a short sentence, and the numbers of the events that show it."""

    text: str
    events: list[int]


@dataclass(frozen=True, slots=True)
class ProposedAccount:
    """What happened, as a colleague would tell it.

    outcome: one to three statements: what was asked, what came of it, what turned it.
    worked, failed, decisions: up to five each.
    """

    outcome: list[CitedLine]
    worked: list[CitedLine] = field(default_factory=list)
    failed: list[CitedLine] = field(default_factory=list)
    decisions: list[CitedLine] = field(default_factory=list)


QUESTION = ModelQuestion(
    "account",
    3,
    "Tell a colleague what happened in this run: the outcome in one to three sentences, then short lists of "
    "what worked, what failed, and what was decided and by whom. Each line cites its events, and "
    "whatever it names (commands, paths, errors, quotations, numbers) must stand in one of them.",
    ProposedAccount,
)
