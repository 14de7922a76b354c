"""Which lessons a query means, and which come first."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Episode
from tests.conftest import TickingClock


@pytest.mark.req("A5")
def test_without_a_text_the_documented_score_orders_and_not_the_frequency(
    bank: Bank, clock: TickingClock
) -> None:
    often: Any = {"runs": ("a", "b", "c", "d")}
    bank.lessons.add("Seen often", importance=0.2, tags=("net",), **often)
    clock.now += timedelta(days=60)
    bank.lessons.add("New", importance=0.2, tags=("net",))
    bank.lessons.add("Important", importance=0.9, tags=("net",))
    bank.lessons.add("Both tags", importance=0.3, tags=("net", "retry"))

    def found(**asked: Any) -> list[str]:
        return [each.summary for each in bank.lessons.query(Query(**asked))]

    # 0.4·importance + 0.3·recency + 0.3·overlap of tags: .66, .42, .38 and .16, and with tags .57 to .81.
    assert found() == ["Important", "Both tags", "New", "Seen often"]
    assert found(tags=("net", "retry")) == ["Important", "Both tags", "New", "Seen often"]
    assert found(tags=("net", "retry", "slow")) == ["Important", "Both tags", "New", "Seen often"]
    bank.lessons.edit("m-003", importance=0.6)
    assert found(tags=("net", "retry")) == ["Both tags", "Important", "New", "Seen often"]


@pytest.mark.req("A4")
def test_lessons_are_asked_for_by_phase_and_kind_of_failure(bank: Bank) -> None:
    bank.lessons.add("Type checks need node 22", tool="bun run typecheck", tags=("node",))
    bank.lessons.add("Split the suite", tags=("timeout", "test"))
    met: Any = {"signature": "shop|missing_module:python"}
    bank.lessons.add("Install hypothesis", **met)

    def found(**asked: Any) -> set[str]:
        return {each.short_id for each in bank.lessons.query(Query(**asked))}

    assert (found(phase="typecheck"), found(phase="test")) == ({"m-001"}, {"m-002"})
    assert (found(error="missing_module"), found(error="timeout")) == ({"m-003"}, {"m-002"})
    assert found(text="node suite hypothesis", error="missing_module") == {"m-003"}


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("bash", {"m-001", "m-002"}),
        ("Bash", {"m-001", "m-002"}),
        ("bun", {"m-001"}),
        ("bun test", {"m-001"}),
        ("cargo", {"m-002"}),
        ("edit", {"m-003"}),
        ("Read", set()),
        ("bu", set()),
    ],
)
def test_a_tool_is_asked_for_by_the_clients_tool_the_program_or_the_command(
    bank: Bank, tool: str, names: set[str]
) -> None:
    bank.lessons.add("Split the slow suite", tool="bun test")
    bank.lessons.add("The slow suite needs a release build", tool="cargo")
    bank.lessons.add("Read the slow suite before an edit", tool="Edit")

    assert {each.short_id for each in bank.lessons.query(Query(tool=tool))} == names
    assert {each.short_id for each in bank.lessons.page(Query(tool=tool))} == names
    assert {each.short_id for each in bank.lessons.query(Query(text="slow suite", tool=tool))} == names
    found = bank.recall(Query(text="slow suite", tool=tool)).hits
    assert {each.name for each in found} == names
    told = {each.name for each in bank.brief(tool=tool, preset="reviewer").chosen}
    assert told == names


@pytest.mark.req("A4")
def test_a_provider_has_the_lessons_for_it_and_those_that_its_runs_met(bank: Bank) -> None:
    met: Any = {"runs": ("r-1",)}
    with bank.transaction() as writer:
        writer.put(Episode(id="r-1", provider="claude-code"), "capture")
        writer.put(Episode(id="r-2", provider="codex"), "capture")
    bank.lessons.add("Split the slow suite", provider="claude-code", scope="provider")
    bank.lessons.add("The slow suite needs node 22", **met)
    bank.lessons.add("The slow suite runs in the cloud", provider="codex", **met)
    bank.lessons.add("The slow suite is for others")

    def found(**asked: Any) -> set[str]:
        return {each.short_id for each in bank.lessons.query(Query(provider="claude-code", **asked))}

    assert found() == found(text="slow suite") == {"m-001", "m-002"}
    assert found(scope="provider") == {"m-001"}


@pytest.mark.req("A4")
def test_a_folder_is_given_as_a_text_and_a_query_comes_from_the_package(tmp_path: Path) -> None:
    import archivist

    with Bank.open(str(tmp_path), create=True, folder=str(tmp_path)) as bank:
        bank.lessons.add("Split the suite", tool="bun test")
        assert len(bank.lessons.query(archivist.Query(tool="bash"))) == 1
