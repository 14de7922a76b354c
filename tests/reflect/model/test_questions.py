"""What a model is asked has a version, which is stored with each lesson that comes of it."""

from __future__ import annotations

import hashlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.reflect.model.questions import (
    ModelQuestion,
    account,
    insights,
    joining,
    lessons,
    rewording,
    wishes,
)
from tests.reflect.model.runs import NO_ACCOUNT, NO_LESSONS
from tests.reflect.model.test_record import FAILED, MENDED, prompts, spoken_run

# A text that changes needs a new version: two answers with the same version were asked the same.
ASKED = {
    "account-3": "7c76c18c40b7",
    "insights-2": "e95033d19517",
    "joining-1": "faaae436e138",
    "lessons-6": "bfb293add263",
    "rewording-1": "dacb3c621aac",
    "wishes-1": "31b5c1fe2ae6",
}
# The same for the records of a run that the two questions about runs come with.
SHOWN = {
    "account-3": "72a342f61132",
    "lessons-6": "fb1f325907f6",
}
QUESTIONS: list[ModelQuestion[Any]] = [
    module.QUESTION for module in (account, insights, joining, lessons, rewording, wishes)
]


def digest(*texts: str) -> str:
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:12]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_whose_words_change_has_a_new_version(question: ModelQuestion[Any]) -> None:
    # The shape of the answer, and what its classes say of it, is a part of what is asked.
    module = sys.modules[question.answer.__module__]
    answers = [
        each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__
    ]
    asked = digest(
        question.instructions, question.tool, question.tool_words, *map(inspect.getsource, answers)
    )
    assert ASKED.get(question.label) == asked, f"raise the version of {question.label}, then note {asked!r}"


def test_a_question_whose_record_changes_has_a_new_version(bank: Bank, tmp_path: Path) -> None:
    commit = ("git commit -m 'Mend it'", "[main 1a2b3c4] Mend it\n 1 file changed", False)
    turns = [("user", "Please mend the tests"), FAILED, "The generated file is stale.", *MENDED, commit]
    run = spoken_run(bank, tmp_path, *turns)
    records = prompts(bank, run, NO_LESSONS, NO_ACCOUNT, {"wishes": []})[:2]
    labels = lessons.QUESTION.label, account.QUESTION.label
    for label, shown in zip(labels, map(digest, records), strict=True):
        assert SHOWN.get(label) == shown, f"raise the version of {label}, then note {shown!r}"
