"""The archive: texts in pieces, folders that are followed, banks that are taken in."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.archive.folders import read_text
from archivist.config import Config, CoreRules
from archivist.errors import AccessError, InputError, NotFoundError, RecordError
from archivist.records import Actor, ActorKind, Document, DocumentType
from tests.archive.test_bank_markdown import BANK
from tests.banks import fresh_bank
from tests.conftest import CountingIds, TickingClock

ADR = """# ADR-7: One file

We keep everything in one SQLite file, for #84.

## Consequences

Backups are copies.

```sh
cp memory.db elsewhere
```
"""


@pytest.fixture
def root(bank: Bank) -> Path:
    """Return the bank's project folder, with a folder of texts."""
    folder = bank.path.parent.parent
    (folder / "docs" / "decisions").mkdir(parents=True)
    (folder / "docs" / "decisions" / "adr-7.md").write_text(ADR)
    (folder / "docs" / "2026-01-05-memgpt.md").write_text(
        "# Research\n\nTiered memory, as in operating systems.\n"
    )
    return folder


def _counts(done: Any) -> tuple[int, int, int, int]:
    return done.added, done.changed, done.removed, done.unchanged


# Inserting


@pytest.mark.req("C4")
def test_a_text_is_archived_in_pieces_and_found_with_its_marks(bank: Bank) -> None:
    made = bank.documents.insert(
        ADR, type="decision", roles=["ops"], issues=[9], importance=8, source="adr-7", tags=["store"]
    )
    assert [(each.position, each.heading, each.line) for each in made] == [
        (0, "ADR-7: One file", 1),
        (1, "ADR-7: One file > Consequences", 5),
    ]
    assert made[0].issues == (9, 84)
    assert {each.importance for each in made} == {8}
    hits = bank.documents.search("one SQLite file", type="decision")
    assert hits[0].name == "adr-7#0"
    assert bank.documents.read("adr-7") == made
    assert bank.documents.read("adr-7#1") == made[1:]
    assert bank.documents.read("nothing") == []


def test_the_same_text_again_changes_nothing_and_another_replaces_it(bank: Bank) -> None:
    first = bank.documents.insert("One\n\n## Two\n\nthree", type="spec", source="s")
    changes = len(bank.ledger.history(first[0].id))
    assert bank.documents.insert("One\n\n## Two\n\nthree", type="spec", source="s") == first
    assert len(bank.ledger.history(first[0].id)) == changes
    second = bank.documents.insert("Other\n\n## Two\n\nthree", type="spec", source="s")
    assert second[1].id == first[1].id
    assert [each.text for each in bank.documents.read("s")] == ["Other", "## Two\n\nthree"]


def test_a_text_without_a_name_is_named_by_its_words(bank: Bank) -> None:
    one = bank.documents.insert("Use SQLite because it is one file", type="lesson")[0]
    assert one.source.startswith("lesson/use-sqlite-because-it-is-one-")
    assert bank.documents.insert("Use SQLite because it is one file", type="lesson")[0].id == one.id
    assert len(bank.documents.sources()) == 1
    assert bank.documents.insert("Use SQLite because it is one file!", type="lesson")[0].source != one.source


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"content": " \n"}, "content: missing or empty"),
        ({"content": "---\na: 1\n---\n"}, "content: missing or empty"),
        ({"type": "poem"}, "'poem' is not one of"),
        ({"importance": 0}, "importance: 0 is not between"),
        ({"importance": 5.5}, "expected a whole number"),
        ({"content": "x" * (2 * 1024 * 1024 + 1)}, "content: 2097153 characters"),
    ],
)
def test_bad_texts_are_refused(bank: Bank, fields: dict[str, Any], reason: str) -> None:
    values: dict[str, Any] = {"content": "Words", "type": "spec", **fields}
    with pytest.raises(RecordError, match=reason):
        bank.documents.insert(values.pop("content"), **values)
    assert bank.documents.sources() == []


def test_secrets_stay_out_of_the_archive(bank: Bank) -> None:
    made = bank.documents.insert("The key is ghp_" + "a1B2" * 9 + " today", type="lesson")
    assert "ghp_" not in made[0].text


@pytest.mark.req("C4")
def test_names_of_texts_keep_no_secrets(bank: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    (made,) = bank.documents.insert(f"{token} is the CI token\x07", type="spec", tags=[token], roles=[token])
    assert made.source.startswith("spec/redacted-github-token-is-the-ci")
    assert token.lower() not in str(made).lower()
    assert made.text == "[redacted:github-token] is the CI token"
    for wrong, reason in ((f"docs/{token}.md", "holds a secret"), ("a\x1bb", "holds control characters")):
        with pytest.raises(RecordError, match=f"source: .*{reason}"):
            bank.documents.insert("Words", type="spec", source=wrong)


def test_search_narrows_by_type_and_date(bank: Bank) -> None:
    for year, sort in ((2024, "spec"), (2025, "decision"), (2026, "research")):
        bank.documents.insert(f"The parser of {year}", type=sort, date=datetime(year, 5, 1))  # noqa: DTZ001
    ask = bank.documents.search
    assert [hit.text for hit in ask("parser", type="spec")] == ["The parser of 2024"]
    since = datetime(2025, 1, 1, tzinfo=UTC)
    assert {hit.text[-4:] for hit in ask("parser", dates=(since, None))} == {"2025", "2026"}
    assert {hit.text[-4:] for hit in ask("parser", dates=(None, since))} == {"2024"}
    assert len(ask("parser", limit=1)) == 1
    with pytest.raises(InputError, match="the first comes after the last"):
        ask("parser", dates=(since, datetime(2024, 1, 1, tzinfo=UTC)))
    for wrong in ({"limit": 0}, {"type": "poem"}):
        with pytest.raises(InputError):
            ask("parser", **wrong)
    with pytest.raises(InputError, match="query"):
        ask("")


@pytest.mark.req("C12")
def test_people_remove_texts_and_agents_do_not(bank: Bank) -> None:
    bank.documents.insert("Gone soon", type="spec", source="s")
    agent = bank.acting_as(Actor(ActorKind.AGENT, "a", "maker"))
    assert agent.documents.insert("An agent's", type="spec")
    with pytest.raises(AccessError):
        agent.documents.remove("s")
    assert bank.documents.remove("s") == 1
    with pytest.raises(NotFoundError, match="no document 's'"):
        bank.documents.remove("s")


# Folders


@pytest.mark.req("C4")
def test_a_watched_folder_is_followed_by_content(bank: Bank, root: Path) -> None:
    assert bank.documents.watch("docs").id == "docs"
    assert _counts(bank.documents.refresh()) == (2, 0, 0, 0)
    found = {each.source: each for each in bank.documents.sources()}
    assert found["docs/decisions/adr-7.md"].type is DocumentType.DECISION
    memgpt = found["docs/2026-01-05-memgpt.md"]
    assert (memgpt.type, memgpt.date) == (DocumentType.RESEARCH, datetime(2026, 1, 5, tzinfo=UTC))
    os.utime(root / "docs" / "decisions" / "adr-7.md", (1, 1))
    assert _counts(bank.documents.refresh()) == (0, 0, 0, 2)
    (root / "docs" / "decisions" / "adr-7.md").write_text(ADR.replace("copies", "snapshots"))
    (root / "docs" / "new.md").write_text("New")
    (root / "docs" / "2026-01-05-memgpt.md").unlink()
    assert _counts(bank.documents.refresh()) == (1, 1, 1, 0)
    assert bank.documents.search("snapshots")[0].name == "docs/decisions/adr-7.md#1"
    assert "memgpt" not in str(bank.documents.sources())
    assert bank.ledger.verify().is_whole


@pytest.mark.req("C4")
def test_pieces_whose_words_stay_keep_their_ids_and_vectors(bank: Bank, root: Path) -> None:
    file = root / "docs" / "decisions" / "adr-7.md"
    name = "docs/decisions/adr-7.md"
    bank.documents.watch("docs/decisions")
    bank.documents.refresh()
    list(bank.vectors.embed_waiting())
    before = bank.documents.read(name)
    file.write_text(ADR.replace("Backups are copies.", "Backups are easy."))
    bank.documents.refresh()
    after = bank.documents.read(name)
    assert [one.id == other.id for one, other in zip(before, after, strict=True)] == [True, False]
    assert bank.vectors.count_unembedded() == 1
    list(bank.vectors.embed_waiting())
    file.write_text(f"# Before\n\nall else.\n\n{ADR.replace('copies', 'easy')}")
    bank.documents.refresh()
    moved = bank.documents.read(name)
    assert [each.id for each in moved[1:]] == [each.id for each in after]
    assert [each.line for each in moved] == [1, 5, 9]
    # Only the piece that is new has no vector; the others moved with theirs.
    assert bank.vectors.count_unembedded() == 1


def test_what_cannot_be_read_is_named_and_costs_nothing_else(bank: Bank, root: Path) -> None:
    docs = root / "docs"
    (docs / "binary.md").write_bytes(b"a\x00b")
    (docs / "latin.md").write_bytes(b"caf\xe9")
    (docs / "large.md").write_bytes(b"a" * (2 * 1024 * 1024 + 1))
    (docs / "empty.md").write_text(" \n")
    (docs / "odd.md").write_text("---\nfoo: [bar\n---\nStill read.\n")
    (docs / "loop.md").symlink_to("loop.md")
    (docs / "nothing.md").symlink_to("nowhere.md")
    (root / "outside.md").write_text("Outside")
    (docs / "out.md").symlink_to(root / "outside.md")
    (docs / "inside.md").symlink_to(docs / "decisions" / "adr-7.md")
    (docs / "again").symlink_to(docs)
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "far.md").write_text("Far away")
    (docs / "decisions" / "far").symlink_to(root / "elsewhere")
    (docs / "bogus.md").write_text("---\ntype: bogus\nimportance: 99\n---\nBogus.\n")
    token = "ghp_" + "a1B2" * 9
    (docs / f"{token}.md").write_text("A name that is a secret")
    os.mkfifo(docs / "pipe.md")
    bank.documents.watch("docs")
    done = bank.documents.refresh()
    assert (_counts(done), done.folders) == ((5, 0, 0, 0), 1)
    assert token not in str((done, bank.documents.sources()))
    assert sorted(done.problems) == [
        "docs/[redacted:github-token].md: its name holds a secret or control characters; rename it",
        "docs/binary.md: a binary file",
        "docs/bogus.md: front matter: importance: 99 is not a whole number from 1 to 10; left out",
        f"docs/bogus.md: front matter: type: 'bogus' is not one of {', '.join(DocumentType)}; left out",
        "docs/decisions/far: a link that leaves the folder is not followed",
        "docs/large.md: 2,097,153 bytes, at most 2,097,152",
        "docs/latin.md: not UTF-8 text (byte 3)",
        "docs/loop.md: a link in a loop",
        "docs/nothing.md: a link to nothing",
        "docs/odd.md: front matter is not YAML, read as text",
        "docs/out.md: a link that leaves the folder is not followed",
        "docs/pipe.md: is no regular file",
    ]
    assert "Outside" not in str(bank.documents.search("outside", limit=50))
    assert bank.documents.refresh().problems == done.problems
    assert bank.documents.search("still read")[0].name == "docs/odd.md#1"


def test_a_file_that_turns_unreadable_stays_as_it_was_known(bank: Bank, root: Path) -> None:
    bank.documents.watch("docs")
    bank.documents.refresh()
    (root / "docs" / "decisions" / "adr-7.md").write_bytes(b"\xff\xfe")
    done = bank.documents.refresh()
    assert (_counts(done), len(done.problems)) == ((0, 0, 0, 1), 1)
    assert bank.documents.read("docs/decisions/adr-7.md")


def test_a_folder_that_is_gone_keeps_its_texts_until_it_is_let_go(bank: Bank, root: Path) -> None:
    bank.documents.watch("docs")
    bank.documents.refresh()
    shutil.rmtree(root / "docs")
    done = bank.documents.refresh()
    assert _counts(done) == (0, 0, 0, 0)
    assert done.problems[0].startswith("docs: the folder is gone")
    assert len(bank.documents.sources()) == 2
    assert bank.documents.unwatch("docs") == 2
    assert bank.documents.sources() == []
    with pytest.raises(NotFoundError, match="no folder 'docs'"):
        bank.documents.unwatch("docs")


def test_a_folder_that_vanishes_while_it_is_read_loses_nothing(bank: Bank, root: Path) -> None:
    for number in range(40):
        (root / "docs" / f"n{number}.md").write_text(f"Text {number}")
    bank.documents.watch("docs")
    bank.documents.refresh()
    known = len(bank.documents.sources())
    for number in range(40):
        (root / "docs" / f"n{number}.md").write_text(f"Text {number} changed")
    mover = threading.Timer(0.05, lambda: (root / "docs").rename(root / "moved"))
    mover.start()
    bank.documents.refresh()
    mover.join()
    assert len(bank.documents.sources()) == known
    (root / "moved").rename(root / "docs")
    assert bank.documents.refresh().problems == ()
    assert "changed" in bank.documents.read("docs/n39.md")[0].text


def test_a_file_that_is_replaced_while_it_is_read_is_one_or_the_other(tmp_path: Path) -> None:
    file, stop = tmp_path / "a.md", threading.Event()
    contents = {b"a" * 200_000, b"b" * 100_000}
    file.write_bytes(b"a" * 200_000)

    def replace() -> None:
        while not stop.is_set():
            for content in contents:
                fresh = tmp_path / "fresh"
                fresh.write_bytes(content)
                fresh.replace(file)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(100):
            found = read_text(tmp_path / "a.md")
            assert found is not None
            assert found.text.encode() in contents
    finally:
        stop.set()
        writer.join()


def test_the_deepest_watched_folder_has_the_file(bank: Bank, root: Path) -> None:
    bank.documents.watch("docs")
    bank.documents.refresh()
    bank.documents.watch(root / "docs" / "decisions", type="spec")
    assert _counts(bank.documents.refresh()) == (0, 1, 0, 1)
    assert _counts(bank.documents.refresh()) == (0, 0, 0, 2)
    assert bank.documents.read("docs/decisions/adr-7.md")[0].type is DocumentType.SPEC
    assert bank.documents.unwatch("docs/decisions") == 1
    assert _counts(bank.documents.refresh()) == (1, 0, 0, 1)


def test_a_folder_elsewhere_keeps_its_whole_path_and_texts_can_be_kept(bank: Bank, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "a.md").write_text("From elsewhere")
    (other / "a.txt").write_text("Plain")
    assert bank.documents.watch(other, pattern="*.txt").id == str(other)
    bank.documents.refresh()
    assert [each.source for each in bank.documents.sources()] == [f"{other}/a.txt"]
    with pytest.raises(InputError, match="is in a watched folder"):
        bank.documents.remove(f"{other}/a.txt")
    with pytest.raises(InputError, match="is a file of the watched folder"):
        bank.documents.insert("Mine", type="spec", source=f"{other}/a.txt")
    assert bank.documents.unwatch(other, keep=True) == 1
    assert bank.documents.folders() == []
    assert bank.documents.remove(f"{other}/a.txt") == 1


def test_what_is_no_folder_is_not_watched(bank: Bank, root: Path) -> None:
    for wrong in ("nowhere", root / "docs" / "2026-01-05-memgpt.md"):
        with pytest.raises(InputError, match="no such folder"):
            bank.documents.watch(wrong)
    with pytest.raises(InputError, match="no path below"):
        bank.documents.watch("docs", pattern="../*.md")
    with pytest.raises(AccessError):
        bank.acting_as(Actor(ActorKind.AGENT, "a")).documents.watch("docs")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    """Open a bank that many examples share."""
    with fresh_bank(tmp_path_factory.mktemp("lasting"), clock=TickingClock(), ids=CountingIds()) as bank:
        yield bank


@pytest.mark.req("C4")
@settings(max_examples=40)
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_any_text_can_be_archived_and_read_again(lasting: Bank, text: str) -> None:
    made = lasting.documents.insert(f"Note: {text}", type="research", source="any")
    assert lasting.documents.read("any") == made
    assert all(isinstance(each, Document) for each in made)


# Banks


@pytest.fixture
def banks(tmp_path: Path) -> Path:
    """Return a folder with a bank and an archived version of it."""
    folder = tmp_path / "memory"
    (folder / "archives").mkdir(parents=True)
    (folder / "bank.md").write_text(BANK)
    older = BANK.replace("Literature review (C188)", "First look (C170)").replace("2026-02-09", "2026-02-01")
    (folder / "archives" / "bank-2026-02-01-v7.md").write_text(older)
    return folder


@pytest.mark.req("C9")
def test_a_bank_and_its_versions_become_state_stream_and_documents(bank: Bank, banks: Path) -> None:
    done = bank.bank_pages.import_banks([banks])
    assert (done.pages, done.roles, done.threads, done.problems) == (2, ("ceo", "research"), 2, ())
    assert done.entries == 8
    view = bank.core.view("research")
    assert view.role_state.last_action.startswith("Literature review (C188)")
    assert view.status.sprint.startswith("Sprint 1")
    assert "Container" in bank.core.render("ceo")
    assert [(entry.cycle, entry.role) for entry in bank.stream.by_cycle(0, 190)] == [
        (170, "research"),
        (188, "research"),
    ]
    assert bank.stream.search("what did research do in cycle 188?")[0].entry.action == "Literature review"
    kinds = {each.source.rsplit("/", 1)[-1]: each.type for each in bank.documents.sources()}
    assert set(kinds.values()) == {DocumentType.CYCLE}
    assert set(kinds) == {"bank.md", "bank-2026-02-01-v7.md"}
    kept = " ".join(each.text for each in bank.documents.read(str(banks / "bank.md")))
    assert "Free first" in kept
    assert "Literature review" not in kept


@pytest.mark.req("C9")
def test_labels_in_bold_reach_core_and_what_is_not_understood_is_said(bank: Bank, tmp_path: Path) -> None:
    text = (
        "# Bank\n\n## Current Status\n\n**Sprint:** Sprint 4: checkout\n\n**In Progress:**\n\n- #12 cart\n"
        "- #13 totals\n\n**Blockers:**\n- staging credentials missing\n\n## Notes\n\nKeep me.\n"
    )
    (tmp_path / "bank.md").write_text(text)
    done = bank.bank_pages.import_banks([tmp_path / "bank.md"])
    status = bank.core.view().status
    assert (status.sprint, status.in_progress) == ("Sprint 4: checkout", ("#12 cart", "#13 totals"))
    assert status.blockers == ("staging credentials missing",)
    assert (done.kept, done.documents, done.problems) == (("Notes",), 1, ())


@pytest.mark.req("C9")
def test_taking_a_bank_in_again_changes_nothing(bank: Bank, banks: Path) -> None:
    bank.bank_pages.import_banks([banks])
    bank.core.update("role_state", {"last_action": "Something since"}, role="ceo")
    entries = bank.ledger.verify().entries
    again = bank.bank_pages.import_banks([banks])
    assert (again.pages, again.unchanged, again.entries, again.documents) == (0, 2, 0, 0)
    assert bank.ledger.verify().entries == entries
    assert bank.core.view("ceo").role_state.last_action == "Something since"
    (banks / "bank.md").write_text(BANK.replace("Cycle 197 (growth)", "Cycle 200 (growth)"))
    more = bank.bank_pages.import_banks([banks / "bank.md"])
    assert (more.pages, more.entries) == (1, 1)


@pytest.mark.req("C9")
def test_what_core_has_no_room_for_stays_in_the_archive(tmp_path: Path, banks: Path) -> None:
    config = Config(core=CoreRules(role_state_tokens=5, threads_tokens=1))
    with fresh_bank(tmp_path / "small", config=config) as bank:
        done = bank.bank_pages.import_banks([banks / "bank.md"])
        assert done.roles == ()
        assert any(
            problem.endswith("too many") or "stays in the archive" in problem for problem in done.problems
        )
        kept = " ".join(each.text for each in bank.documents.read(str(banks / "bank.md")))
        assert "The launch" in kept
        assert "**#155**" in kept


def test_banks_that_cannot_be_read_are_named(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "bank.md").write_bytes(b"\xff")
    (tmp_path / "bank-old.md").write_text("")
    done = bank.bank_pages.import_banks(
        [tmp_path / "bank.md", tmp_path / "bank-old.md", tmp_path / "none.md"]
    )
    assert [problem.rsplit(": ", 1)[1] for problem in done.problems] == [
        "not UTF-8 text (byte 0)",
        "an empty file",
        "no such file",
    ]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"has no bank\.md"):
        bank.bank_pages.import_banks([empty])
