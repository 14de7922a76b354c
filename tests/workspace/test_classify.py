"""What a text is when nobody says."""

from __future__ import annotations

import pytest

from archivist.workspace.classify import (
    MemoryKind,
    category_of,
    kind_of,
    split_title,
    status_of,
    tags_of,
    title_of,
)


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We decided to use Postgres instead of MySQL for orders.", "decision"),
        ("Chose xstate v5 for workflow state management", "decision"),
        ("Prefer composition over inheritance in the handlers.", "decision"),
        ("Always squash commits when merging.", "decision"),
        ("From now on all services log JSON.", "decision"),
        ("The build failed because the cache was stale; root cause: a missing lock file.", "lesson"),
        ("pnpm strict isolation means require.resolve() must be called from the consuming package", "lesson"),
        ("Jest hangs unless server.close() is called.", "lesson"),
        ("Plan workflow-engine is done.", "plan_status"),
        ("The plan 'Cache' was abandoned", "plan_status"),
        ("Something about nothing", "lesson"),
    ],
)
def test_the_kind_follows_the_words(text: str, kind: str) -> None:
    assert kind_of(text) is MemoryKind(kind)


def test_a_plan_or_a_status_makes_it_one() -> None:
    assert kind_of("We decided", has_plan=True) is MemoryKind.PLAN_STATUS
    assert kind_of("", has_status=True) is MemoryKind.PLAN_STATUS


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("it is done", "done"),
        ("partially done, rest open", "partial"),
        ("work in progress", "in_progress"),
        ("dropped for now", "abandoned"),
        ("not started", "new"),
        ("nothing of the kind", None),
    ],
)
def test_a_status_is_told_by_words(text: str, status: str | None) -> None:
    assert status_of(text) == status


@pytest.mark.parametrize(
    ("text", "kind", "category"),
    [
        ("The service boundary and the database schema", MemoryKind.DECISION, "architecture"),
        ("Pin the package versions in the lock file", MemoryKind.DECISION, "dependency"),
        ("Branch naming style", MemoryKind.DECISION, "convention"),
        ("Requests were slow until the cache was warm", MemoryKind.LESSON, "performance"),
        ("The environment setting was missing", MemoryKind.LESSON, "configuration"),
        ("Who knows", MemoryKind.LESSON, "debugging"),
    ],
)
def test_the_category_is_one_of_the_documented(text: str, kind: MemoryKind, category: str) -> None:
    assert category_of(text, kind) == category


def test_the_title_is_the_first_sentence_and_is_not_said_twice() -> None:
    assert split_title("Use UTC everywhere. Local time broke the report.") == (
        "Use UTC everywhere",
        "Local time broke the report.",
    )
    assert split_title("Use UTC everywhere") == ("Use UTC everywhere", "Use UTC everywhere")
    assert len(title_of("word " * 200)) <= 102


def test_tags_are_those_in_use_code_words_and_tools() -> None:
    text = "Docker and pnpm fail when `metan-cli` runs with billing enabled"
    assert tags_of(text, ["billing", "unused"]) == ("billing", "metan-cli", "docker", "pnpm")
    assert tags_of("Nothing in particular was always so") == ()
