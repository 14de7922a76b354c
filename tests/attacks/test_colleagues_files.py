"""What a person said here is neither reworded nor retired by a colleague's file, trusted or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.clock import to_text
from archivist.exchange.share import ShareResult
from archivist.recall.query import Query
from archivist.records import Status

COLLEAGUE = "01M7N6ZZZZZZZZZZZZZZZZZZZZ"


def _lines(folder: Path) -> list[dict[str, object]]:
    (path,) = folder.glob("lessons/*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _forge(bank: Bank, folder: Path, *changes: Mapping[str, object]) -> ShareResult:
    """Share, let a colleague change the lines in a file of their own, and share again, trusting them."""
    bank.exchange.share(folder)
    lines = [{**line, **change} for line, change in zip(_lines(folder), changes, strict=True)]
    path = folder / "lessons" / f"{COLLEAGUE}.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return bank.exchange.share(folder, trust=[COLLEAGUE])


def _dated(bank: Bank, *, days: float = 0.5) -> dict[str, object]:
    late = to_text(bank.now() + timedelta(days=days))
    return {"edited": late, "updated": late}


@pytest.mark.req("N7", "N10")
@pytest.mark.parametrize(
    "change",
    [
        {"summary": "Deploy with make evil"},
        {"rule": "IF deploying THEN use `make evil`"},
        {"status": "archived"},
        {"repo": "elsewhere"},
        {"summary": "Deploy with make evil", "confirmed": True},
    ],
)
def test_typed_words_stay(bank: Bank, tmp_path: Path, change: Mapping[str, object]) -> None:
    typed = bank.lessons.add("Deploy with make deploy")
    done = _forge(bank, tmp_path / "s", {**change, **_dated(bank)})
    (lesson,) = bank.lessons.query(Query())
    assert (lesson.summary, lesson.rule, lesson.repo, lesson.status) == (
        typed.summary, typed.rule, typed.repo, typed.status,
    )  # fmt: skip
    is_named = [(kept.short_id, other.id) for kept, other in done.conflicts] == [("m-001", typed.id)]
    assert is_named or "repo" in change
    bank.exchange.share(tmp_path / "s")
    assert bank.lessons.get("m-001").summary == typed.summary


@pytest.mark.req("N7", "N10")
def test_an_undone_change_stays_undone(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Deploy with make deploy")
    bank.lessons.edit("m-001", summary="Deploy with make ship")
    bank.ledger.undo("m-001")
    _forge(bank, tmp_path / "s", {"summary": "Deploy with make evil", **_dated(bank)})
    assert bank.lessons.get("m-001").summary == "Deploy with make deploy"


@pytest.mark.req("N7", "N10")
def test_a_date_in_the_future_is_refused(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Deploy with make deploy")
    bank.lessons.add("Lint first")
    new = {"id": "01M7N6CWP5K1E0RJBAB8444377", "summary": "Deploy with make evil"}
    done = _forge(bank, tmp_path / "s", {**new, **_dated(bank, days=400)}, {})
    assert [problem.reason for problem in done.problems] == ["it is dated in the future"]
    assert len(bank.lessons.query(Query())) == 2


@pytest.mark.req("N7", "N10")
def test_a_twin_does_not_take_the_place_of_typed_words(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Deploy with make deploy", detail="Only from main")
    early = {"created": "2020-01-01T00:00:00Z", "confirmed": True, "detail": "From any branch"}
    _forge(bank, tmp_path / "s", {"id": "01M7N6CWP5K1E0RJBAB8444377", **early})
    (lesson,) = bank.lessons.query(Query())
    assert lesson.detail == "Only from main"
    assert lesson.status is Status.ACTIVE


@pytest.mark.req("N6", "N7")
def test_no_link_in_a_shared_folder_is_read(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Deploy with make deploy")
    folder = tmp_path / "s"
    bank.exchange.share(folder)
    (own,) = _lines(folder)
    outside = tmp_path / "outside.jsonl"
    outside.write_text(json.dumps({**own, "id": "01M7N6CWP5K1E0RJBAB8444377", "summary": "Private"}) + "\n")
    (folder / "lessons" / f"{COLLEAGUE}.jsonl").symlink_to(outside)
    done = bank.exchange.share(folder)
    assert [problem.reason for problem in done.problems] == ["a link is not read"]
    assert "Private" not in str(bank.lessons.query(Query(statuses=tuple(Status))))


@pytest.mark.req("N7", "N10")
def test_a_folder_named_like_a_shared_file_stops_nobody(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Deploy with make deploy")
    folder = tmp_path / "s"
    (folder / "lessons" / f"{COLLEAGUE}.jsonl").mkdir(parents=True)
    done = bank.exchange.share(folder)
    assert [problem.reason for problem in done.problems] == ["it is no file"]
    assert done.written["lessons"] == 1
