"""What agents saved into the files of a workspace is erased with the rest; the user's own files are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist import Bank
from archivist.records import Actor, ActorKind
from archivist.workspace.save import MemoryItem, MemoryKind

NAME = "Rumpelstilz Wagenbach"
AGENT = Actor(ActorKind.AGENT, "eve")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a project in whose workspace an agent saved a lesson and a skill about somebody."""
    with Bank.open(tmp_path, create=True, actor=AGENT) as bank:
        for folder in ("resources/workspaces/shop", "user/memory/workspaces/shop"):
            (tmp_path / folder).mkdir(parents=True)
        item = MemoryItem(kind=MemoryKind.LESSON, title="The client", text=f"{NAME} owns the shop data")
        assert bank.workspace.save_memory([item], "shop")[0].result == "saved"
        bank.workspace.save_skill("ask", f"Ask {NAME} about prices", "shop", description="Prices")
    return tmp_path


@pytest.mark.req("N7")
def test_what_an_agent_saved_is_erased_from_the_files(saved: Path) -> None:
    with Bank.open(saved) as bank:
        receipt = bank.erasure.erase(matching=NAME)
        told = repr(bank.workspace.retrieve_learnings("shop"))
    assert [place for place in receipt.places if not place.is_clean] == []
    assert not [path for path in saved.rglob("*.md") if NAME in path.read_text("utf-8")]
    assert "[erased] owns the shop data" in told


@pytest.mark.req("N7")
def test_a_file_of_the_users_own_is_left_and_named(saved: Path) -> None:
    own = saved / "resources/workspaces/shop/notes.md"
    own.write_text(f"# Notes\n\nCall {NAME} on Monday\n", "utf-8")
    lessons = next(saved.rglob("lessons.md"))
    entry = f"\n### [2026-02-03] Prices\n\n**Category:** process\n\n{NAME} decides\n"
    lessons.write_text(lessons.read_text("utf-8") + entry, "utf-8")
    elsewhere = saved / "elsewhere.md"
    elsewhere.write_text(f"(eve) {NAME}\n", "utf-8")
    linked = saved / "resources/workspaces/shop/linked.md"
    linked.symlink_to(elsewhere)
    with Bank.open(saved) as bank:
        receipt = bank.erasure.erase(matching=NAME)
    left = {Path(place.name).name: place.left for place in receipt.places if not place.is_clean}
    assert left["notes.md"] == left["lessons.md"] == 1
    assert left.get("linked.md") != 0
    assert NAME in own.read_text("utf-8")
    assert lessons.read_text("utf-8").count(NAME) == 1
    assert NAME in elsewhere.read_text("utf-8")
