"""What is asked of a model in one go, within one budget, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from archivist.capture.clean import Cleaner
from archivist.errors import BudgetError, ConfigError, ModelAnswerError, ModelError
from archivist.lessons.candidate import Candidate, KeptLesson, LessonChange
from archivist.lessons.support import gives_cause
from archivist.records import Lesson, Status
from archivist.reflect.budget import NOTHING_SPENT, Spending
from archivist.reflect.model.caller_service import ModelCaller
from archivist.reflect.model.questions import ModelQuestion
from archivist.reflect.model.verification import ClaimError, DropReason

R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")
_DROPPED = "dropped: "
# The field of a claim that says what it is.
_WORDED = ("summary", "quote", "title", "text")
SLIGHT = "below the importance threshold"
NO_ROOM = "one run adds no more lessons"


@dataclass(slots=True)
class ModelClaim:
    """One claim of a model, and what became of it in words: kept, merged, or dropped and why."""

    question: str
    text: str
    fate: str = "kept"

    def drop(self, reason: str) -> None:
        """Note why it is dropped."""
        self.fate = f"{_DROPPED}{reason}"

    @property
    def reason(self) -> str:
        """Return why it was dropped, or an empty text."""
        return self.fate.removeprefix(_DROPPED) if self.fate.startswith(_DROPPED) else ""


ClaimedLesson = tuple[ModelClaim, Candidate]


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
    claims: list[ModelClaim] = field(default_factory=list)
    created: tuple[Lesson, ...] = ()
    updated: tuple[Lesson, ...] = ()
    questions: list[str] = field(default_factory=list)
    account: dict[str, object] = field(default_factory=dict)
    problem: str = ""
    is_unfinished: bool = False
    is_exhausted: bool = False

    @property
    def proposed_count(self) -> int:
        """Return how many claims were made."""
        return len(self.claims)

    @property
    def drop_reasons(self) -> Counter[str]:
        """Return how many claims were dropped, by the reason."""
        return Counter(claim.reason for claim in self.claims if claim.reason)

    @property
    def admitted_count(self) -> int:
        """Return how many claims were kept or merged."""
        return self.proposed_count - self.drop_reasons.total()

    def as_view(self) -> dict[str, Any]:
        """Return it as every door shows it."""
        return {
            "model": self.model,
            **self.spending.as_view(),
            "seconds": round(self.seconds, 1),
            "proposed": self.proposed_count,
            "admitted": self.admitted_count,
            "dropped": dict(self.drop_reasons),
            "claims": [asdict(claim) for claim in self.claims],
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
            report.is_unfinished, report.is_exhausted = True, isinstance(error, BudgetError)
            hint = "" if report.is_exhausted else error.hint
            report.problem = f"{error.message}: {hint}" if hint else error.message
            return None
        report.questions.append(question.label)
        # Whatever a model says: no secret is stored.
        return Cleaner().clean(found)

    def verify(
        self, question: ModelQuestion[Any], claims: Iterable[C], check: Callable[[C], T]
    ) -> list[tuple[ModelClaim, T]]:
        """Return what comes of the claims that hold, each with the claim; the report has the others too."""
        found = []
        for each in claims:
            words = next(str(getattr(each, name)) for name in _WORDED if hasattr(each, name))
            claim = ModelClaim(question.name, words)
            self.report.claims.append(claim)
            try:
                found.append((claim, check(each)))
            except ClaimError as error:
                claim.drop(error.reason.value)
        return found

    def verify_candidates(
        self, question: ModelQuestion[Any], claims: Iterable[C], check: Callable[[C], Candidate]
    ) -> list[ClaimedLesson]:
        """Return the candidates of the claims that hold, with the model and the question that made them."""
        mark = {"name": self.report.model, "question": question.name, "version": question.version}
        held = self.verify(question, claims, check)
        return [(claim, replace(each, notes={"model": {**each.notes, **mark}})) for claim, each in held]


def note_fates(
    claimed: Sequence[ClaimedLesson], kept: Sequence[KeptLesson], names: Mapping[str, str]
) -> None:
    """Note in each claim what keeping its lesson did to the bank; `names` are the short ids of lessons."""
    for (claim, candidate), (lesson, change) in zip(claimed, kept, strict=True):
        if change is LessonChange.DROPPED:
            claim.drop(DropReason.UNKNOWN_LESSON if candidate.supersedes else NO_ROOM)
        elif change in (LessonChange.MET, LessonChange.UNCHANGED):
            if gives_cause(candidate.summary) and not gives_cause(lesson.summary):
                # The lesson's words stay, and this cause would be lost unseen.
                claim.drop(DropReason.SAID_OTHERWISE)
                continue
            claim.fate = f"merged with {lesson.short_id}"
        else:
            replaced = ", ".join(names[each] for each in candidate.supersedes if each in names)
            is_refined = change is LessonChange.REFINED and replaced
            claim.fate = f"kept as {lesson.short_id}{f' in place of {replaced}' if is_refined else ''}"
        if lesson.status is Status.QUARANTINED:
            claim.fate += ", quarantined until a person approves it"
