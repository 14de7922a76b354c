"""What a text is when nobody says."""

from __future__ import annotations

import pytest

from archivist.workspace.save import (
    MemoryKind,
    category_of,
    kind_of,
    split_title,
    status_of,
    tags_of,
    title_of,
)
from tests.workspace.figures import judge_texts, macro_f1, measure
from tests.workspace.labelled_texts import CATEGORIES, KINDS, STATUSES


@pytest.mark.req("W7")
@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_the_kind_follows_the_words(text: str, kind: str) -> None:
    assert kind_of(text) is MemoryKind(kind)


def test_a_plan_or_a_status_makes_it_one() -> None:
    assert kind_of("We decided", has_plan=True) is MemoryKind.PLAN_STATUS
    assert kind_of("", has_status=True) is MemoryKind.PLAN_STATUS


@pytest.mark.parametrize(("text", "status"), STATUSES)
def test_a_status_is_told_by_words(text: str, status: str | None) -> None:
    assert status_of(text) == status


@pytest.mark.parametrize(("text", "kind", "category"), CATEGORIES)
def test_the_category_is_one_of_the_documented(text: str, kind: str, category: str) -> None:
    assert category_of(text, MemoryKind(kind)) == category


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("texts", "kinds", "categories", "statuses"), [("tuning", 0.90, 0.95, 0.95), ("unseen", 0.72, 0.78, 0.77)]
)
def test_texts_are_classified_as_well_as_measured(
    texts: str, kinds: float, categories: float, statuses: float
) -> None:
    assert macro_f1(judge_texts(texts, "kinds", kind_of)) >= kinds
    judged = judge_texts(texts, "categories", lambda text, kind: category_of(text, MemoryKind(kind)))
    assert macro_f1(judged) >= categories
    assert macro_f1(judge_texts(texts, "statuses", status_of)) >= statuses


def test_a_plan_that_does_not_exist_yet_has_no_status() -> None:
    # A plan's status that names no plan is refused, so a lesson must not be taken for one.
    assert kind_of("Write a plan before you start.") is not MemoryKind.PLAN_STATUS
    found = measure(judge_texts("unseen", "kinds", kind_of))
    assert found["plan_status"].precision == 1.0


def test_the_title_is_the_first_sentence_and_is_not_said_twice() -> None:
    assert split_title("Use UTC everywhere. Local time broke the report.") == (
        "Use UTC everywhere",
        "Local time broke the report.",
    )
    assert split_title("Use UTC everywhere") == ("Use UTC everywhere", "Use UTC everywhere")
    assert title_of("word " * 200) == ("word " * 200).strip()


def test_tags_are_those_in_use_code_words_and_tools() -> None:
    text = "Docker and pnpm fail when `metan-cli` runs with billing enabled"
    assert tags_of(text, ["billing", "unused"]) == ("billing", "metan-cli", "docker", "pnpm")
    assert tags_of("Nothing in particular was always so") == ()


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    "text",
    [
        "We chose Redux for workflow state management because everybody knows it",
        "We went with Postgres rather than MySQL, since we need partial indexes",
        "User confirmed: we drop Node 18 support",
        "Quotes are cached for 60 seconds. We decided so because the feed bills per request.",
    ],
)
def test_a_choice_with_its_reason_is_a_decision(text: str) -> None:
    assert kind_of(text) is MemoryKind.DECISION


@pytest.mark.req("W7")
def test_a_title_does_not_end_at_a_dot_that_is_a_name() -> None:
    text = "Docker layers are not cached when COPY . comes before npm ci. Put COPY package*.json first."
    assert title_of(text) == "Docker layers are not cached when COPY . comes before npm ci"
