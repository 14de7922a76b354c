"""What is asked of a model in one go, within one budget, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from archivist.capture.clean import Cleaner
from archivist.errors import BudgetError, ConfigError, ModelAnswerError, ModelError
from archivist.lessons.candidate import Candidate
from archivist.records import Lesson
from archivist.reflect.budget import NOTHING_SPENT, Spending
from archivist.reflect.model.caller_service import ModelCaller
from archivist.reflect.model.questions import ModelQuestion
from archivist.reflect.model.verification import ClaimError

R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")
REPEATED = "repeats a lesson, or is below the importance threshold"


@dataclass(slots=True)
class ModelReport:
    """What asking a model came to: what was spent, what of its claims held, and why the rest was dropped.

    `problem` says what went wrong; the deterministic result stands. It `is_unfinished` when the model could
    not be asked all that was to be asked, and `is_exhausted` when that was for its budget.
    """

    run: str = ""
    model: str = ""
    spending: Spending = NOTHING_SPENT
    seconds: float = 0.0
    proposed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    created: tuple[Lesson, ...] = ()
    updated: tuple[Lesson, ...] = ()
    questions: list[str] = field(default_factory=list)
    account: dict[str, object] = field(default_factory=dict)
    problem: str = ""
    is_unfinished: bool = False
    is_exhausted: bool = False

    @property
    def admitted_count(self) -> int:
        """Return how many claims held."""
        return self.proposed - sum(self.dropped.values())

    def as_view(self) -> dict[str, Any]:
        """Return it as every door shows it."""
        return {
            "model": self.model,
            **self.spending.as_view(),
            "seconds": round(self.seconds, 1),
            "proposed": self.proposed,
            "admitted": self.admitted_count,
            "dropped": dict(self.dropped),
            "questions": self.questions,
            "problem": self.problem,
            "is_unfinished": self.is_unfinished,
        }


@dataclass(frozen=True, slots=True)
class Conversation:
    """Questions to one model, and the report of their answers."""

    caller: ModelCaller
    report: ModelReport

    def ask(
        self, question: ModelQuestion[R], text: str, tools: Sequence[Callable[..., Any]] = ()
    ) -> R | None:
        """Return the answer, or None with the problem in the report; an unusable one counts as asked."""
        report = self.report
        try:
            found = self.caller.ask(question, text, tools)
        except ModelAnswerError as error:
            report.problem = error.message
            report.questions.append(question.label)
            return None
        except (ModelError, ConfigError) as error:
            report.problem, report.is_unfinished = error.message, True
            report.is_exhausted = isinstance(error, BudgetError)
            return None
        report.questions.append(question.label)
        # Whatever a model says: no secret is stored.
        return Cleaner().clean(found)

    def verify(self, claims: Iterable[C], check: Callable[[C], T]) -> list[T]:
        """Return what comes of the claims that hold; the others are counted by their reason."""
        found = []
        for claim in claims:
            self.report.proposed += 1
            try:
                found.append(check(claim))
            except ClaimError as error:
                self.report.dropped[error.reason.value] += 1
        return found

    def verify_candidates(
        self, question: ModelQuestion[Any], claims: Iterable[C], check: Callable[[C], Candidate]
    ) -> list[Candidate]:
        """Return the candidates of the claims that hold, with the model and the question that made them."""
        mark = {"name": self.report.model, "question": question.name, "version": question.version}
        return [replace(each, notes={"model": mark}) for each in self.verify(claims, check)]
