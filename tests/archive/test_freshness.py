"""A watched text is never answered with old words, and an entry comes before the pages that copy it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind
from archivist.tools.functions import call
from tests.conftest import Command


@pytest.fixture
def spec(bank: Bank) -> Path:
    file = bank.root / "docs" / "spec.md"
    file.parent.mkdir()
    file.write_text("# Rounding\n\nInvoices are rounded half up.\n", "utf-8")
    bank.documents.watch("docs", type="spec")
    bank.documents.refresh()
    return file


def _texts(bank: Bank, question: str = "how are invoices rounded?") -> str:
    return " ".join(hit.text for hit in bank.recall(Query(text=question, kinds=("document",))).hits)


@pytest.mark.req("C4")
def test_every_door_answers_with_what_the_file_says_now(bank: Bank, spec: Path) -> None:
    agent = bank.acting_as(Actor(ActorKind.AGENT, "coder"))
    assert "half up" in _texts(agent)
    piece = bank.documents.read("docs/spec.md")[0].id
    spec.write_text("# Rounding\n\nInvoices are rounded half to even.\n", "utf-8")
    for said in (
        _texts(agent),
        json.dumps(call(agent, "archival_search", {"query": "how are invoices rounded"})),
        json.dumps(call(agent, "recall", {"query": "how are invoices rounded"})),
        bank.documents.read("docs/spec.md")[0].text,
    ):
        assert "half to even" in said
        assert "half up" not in said
    assert piece not in {each.id for each in bank.documents.read("docs/spec.md")}


@pytest.mark.req("C4")
def test_a_memory_that_is_read_by_its_id_is_as_its_file(bank: Bank, spec: Path) -> None:
    piece = bank.documents.read("docs/spec.md")[0].id
    assert "half up" in str(call(bank, "memory_get", {"id": piece})["text"])
    spec.write_text("# Rounding\n\nInvoices are rounded half to even.\n", "utf-8")
    from archivist.errors import NotFoundError

    with pytest.raises(NotFoundError):
        call(bank, "memory_get", {"id": piece})


@pytest.mark.req("C4")
def test_a_change_that_keeps_size_and_time_is_seen_in_what_is_found(bank: Bank, spec: Path) -> None:
    before = spec.stat()
    spec.write_text("# Rounding\n\nInvoices are rounded half by.\n".replace("by", "xx"), "utf-8")
    spec.write_text("# Rounding\n\nInvoices are rounded half dn.\n", "utf-8")
    os.utime(spec, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert spec.stat().st_size == before.st_size
    assert "half dn" in _texts(bank)
    assert "half up" not in _texts(bank)


@pytest.mark.req("C4")
def test_a_file_that_is_gone_is_not_answered_and_a_new_one_is(bank: Bank, spec: Path) -> None:
    (spec.parent / "tax.md").write_text("# Tax\n\nInvoices have a tax of 19 percent.\n", "utf-8")
    assert "19 percent" in _texts(bank, "what tax do invoices have?")
    spec.unlink()
    assert "half up" not in _texts(bank)


@pytest.mark.req("C4")
def test_a_bank_that_cannot_be_written_leaves_old_texts_out(bank: Bank, spec: Path) -> None:
    spec.write_text("# Rounding\n\nInvoices are rounded half to even.\n", "utf-8")
    with Bank.open(bank.path, create=False) as other, other.transaction():
        held = bank.acting_as(bank.actor, timeout_s=0.05)
        assert "half up" not in _texts(held)


@pytest.mark.req("C5")
def test_plain_words_reach_archived_cycles(bank: Bank) -> None:
    for cycle in range(1, 131):
        what = "Chose the zeppelin for the freight" if cycle == 4 else f"Tuned engine {cycle}"
        bank.stream.log(what, cycle=cycle, role="ops")
    assert bank.stream.by_cycle(4, 4)[0].is_archived
    found = call(bank, "recall_search", {"query": "which freight did we choose?"})["entries"]
    assert isinstance(found, list)
    assert found[0]["cycle"] == 4


@pytest.mark.req("C5", "C9")
def test_the_entry_itself_stands_before_its_copy_in_a_page(bank: Bank) -> None:
    folder = bank.root / "archives"
    folder.mkdir()
    line = "- **C7** (ops): Moved the freight to the zeppelin — cheaper by half"
    page = f"# Bank\n\n## Recent cycles\n\n{line}\n"
    (folder / "bank-2026-01-01.md").write_text(page, "utf-8")
    bank.bank_pages.import_banks([folder / "bank-2026-01-01.md"])
    for cycle in range(8, 120):
        bank.stream.log(f"Tuned engine {cycle}", cycle=cycle, role="ops")
    found = bank.documents.search("who moved the freight to the zeppelin?")
    assert [hit.kind for hit in found[:2]] == ["entry", "document"]
    assert found[0].name == "cycle 7"


@pytest.mark.req("C9")
def test_key_lessons_of_a_bank_become_lessons(bank_cli: Command, project: Path) -> None:
    text = (
        "# Memory Bank\n\n## Key Lessons\n\n"
        "- **Review before Ops rotates:** double merges are twice as fast\n"
        "- Never rebase a shared branch\n\n## Notes\n\n- Nothing else\n"
    )
    (project / "bank.md").write_text(text, "utf-8")
    ran = bank_cli("archive", "import-bank", "bank.md")
    assert "2 lessons" in ran.out
    # A file in a repository is the repository's word.
    assert "2 lessons wait for approval: archivist lessons list --waiting" in ran.err
    assert bank_cli("brief", "--task", "rebase it").out == ""
    listed = json.loads(bank_cli("lessons", "list", "--waiting", "--json").out)["lessons"]
    assert {each["summary"] for each in listed} == {
        "Review before Ops rotates: double merges are twice as fast",
        "Never rebase a shared branch",
    }
    assert bank_cli("lessons", "approve", listed[0]["id"], listed[1]["id"]).code == 0
    assert "Never rebase a shared branch" in bank_cli("brief", "--task", "rebase the branch").out


@pytest.mark.req("C9")
@pytest.mark.parametrize(
    "listed",
    [
        "| L | Lesson | Cycle |\n|---|---|---|\n| L290 | Never rebase a shared branch | C180 |\n",
        "- **L290** (C180): Never rebase a shared branch\n",
        "- L290: Never rebase a shared branch — C180\n",
    ],
)
def test_numbered_key_lessons_become_lessons_without_their_cells(
    bank_cli: Command, project: Path, listed: str
) -> None:
    (project / "bank.md").write_text(f"# Bank\n\n## Key Lessons (L290+)\n\n{listed}", "utf-8")
    assert "1 lesson" in bank_cli("archive", "import-bank", "bank.md").out
    (lesson,) = json.loads(bank_cli("lessons", "list", "--waiting", "--json").out)["lessons"]
    assert lesson["summary"] == "Never rebase a shared branch (L290)"


@pytest.mark.req("C9")
def test_a_folder_with_a_bank_page_says_how_to_import_it(bank_cli: Command, project: Path) -> None:
    (project / "memory").mkdir()
    (project / "memory" / "bank.md").write_text("# Bank\n", "utf-8")
    refused = bank_cli("import", "memory")
    assert refused.code != 0
    assert "archivist archive import-bank memory" in refused.err
    (project / "memory" / "lessons.jsonl").write_text("", "utf-8")
    assert "archivist archive import-bank memory" in bank_cli("import", "memory").err


@pytest.mark.req("C9")
def test_a_person_vouches_for_the_lessons_of_a_bank(bank_cli: Command, project: Path) -> None:
    (project / "bank.md").write_text(
        "# Bank\n\n### Lessons Learned\n\n- Never rebase a shared branch\n", "utf-8"
    )
    refused = bank_cli("--actor", "orchestrator:lead", "archive", "import-bank", "bank.md", "--approve")
    assert refused.code == 9
    assert bank_cli("archive", "import-bank", "bank.md", "--approve").code == 0
    assert "Never rebase" in bank_cli("brief", "--task", "rebase the branch").out
