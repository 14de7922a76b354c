"""Migration: missing front matter added, bodies untouched, a second run changes nothing."""

from __future__ import annotations

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.workspace import front_matter
from archivist.workspace.lint import FileChange, guess_status, migrate_overview, migrate_plan
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem
from archivist.workspace.topology import FileKind, LintProblem, WorkspaceFile, WorkspaceScope
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, make, plan_text

PLANS = f"{RESOURCES}/w/stock/prices/_plans"


def _place(name: str = "260208-x.md", kind: FileKind = FileKind.PLAN) -> WorkspaceFile:
    folder = "w/stock/prices"
    where = f"{RESOURCES}/{folder}/{'_plans/' if kind is FileKind.PLAN else ''}{name}"
    return WorkspaceFile(where, where, kind, WorkspaceScope("w", "stock", "prices"), folder, 0, 0, 0)


def _write(root: Path) -> None:
    workspace = Workspace(root)
    done, left = workspace.migrate(workspace.propose_migration().changes)
    assert left == []
    assert Workspace(root).propose_migration().changes == []
    assert len(done) > 0


@pytest.mark.req("W11")
def test_a_bare_plan_gets_its_front_matter(tmp_path: Path) -> None:
    body = "# Price *feed* `v2`\n\nRead prices from\nthe exchange.\n\n- [x] connect\n- [ ] store\n"
    make(tmp_path, {f"{PLANS}/260208-price-feed.md": body})
    _write(tmp_path)
    assert (tmp_path / PLANS / "260208-price-feed.md").read_text() == (
        "---\n"
        "name: Price feed v2\n"
        "description: Read prices from the exchange.\n"
        "status: partial\n"
        "created: 2026-02-08\n"
        "tags: [stock, prices]\n"
        "---\n\n" + body
    )
    assert Workspace(tmp_path).lint().problems == []


@pytest.mark.req("W11")
@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("[260228-Fix-Something] - Fix the login", "Fix the login"),
        ("📋 DEV-12: 2026-01-05 - Split the importer", "Split the importer"),
        ("[WIP] Fix the login", '"[WIP] Fix the login"'),
        ("API - Version 2", "API - Version 2"),
    ],
)
def test_a_plans_name_has_no_key_and_no_date_before_it(tmp_path: Path, heading: str, name: str) -> None:
    make(tmp_path, {f"{PLANS}/260208-x.md": f"# {heading}\n\nBody of the plan.\n"})
    _write(tmp_path)
    assert (tmp_path / PLANS / "260208-x.md").read_text().splitlines()[1] == f"name: {name}"


@pytest.mark.req("W11")
def test_only_what_is_missing_is_added_and_comments_stay(tmp_path: Path) -> None:
    text = "---\n# ours\ntitle: 'Feed'  # old name\nstatus: Completed\n---\n# Heading\n\nBody.\n"
    make(tmp_path, {f"{PLANS}/260208-x.md": text})
    _write(tmp_path)
    assert (tmp_path / PLANS / "260208-x.md").read_text() == (
        "---\n# ours\ntitle: 'Feed'  # old name\nstatus: done\nname: Feed\ndescription: Body.\n"
        "created: 2026-02-08\ntags: [stock, prices]\n---\n# Heading\n\nBody.\n"
    )


@pytest.mark.req("W11")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("nothing", "new"),
        ("- [ ] a\n- [ ] b", "new"),
        ("- [x] a\n- [ ] b", "partial"),
        ("- [x] a\n* [X] b\n1. [x] c", "done"),
        ("**Status:** Done", "done"),
        ("Status: in progress\n- [x] a", "in_progress"),
        ("> Status = WIP", "in_progress"),
        ("Status: cancelled", "abandoned"),
        ("Status: unclear\n- [x] a", "done"),
        ("```\nStatus: done\n- [x] a\n```", "new"),
    ],
)
def test_the_status_is_guessed(body: str, status: str) -> None:
    assert guess_status(body) == status


def _git(root: Path, *words: str, day: str = "2025-03-04") -> None:
    moment = f"{day}T12:00:00 +0000"
    names = {
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@t",
    }
    environment = {**os.environ, **names, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, env=environment)


@pytest.mark.req("W11")
def test_created_comes_from_the_name_else_from_git_else_from_the_file(tmp_path: Path) -> None:
    body = "# A plan\n\nWith some text that git can follow when it is renamed.\n"
    make(tmp_path, {f"{PLANS}/old.md": body})
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "one")
    _git(tmp_path, "mv", f"{PLANS}/old.md", f"{PLANS}/new.md")
    _git(tmp_path, "commit", "-qm", "two", day="2025-09-09")
    make(tmp_path, {f"{PLANS}/260208-named.md": body, f"{PLANS}/untracked.md": body})
    moment = 1_750_000_000
    os.utime(tmp_path / PLANS / "untracked.md", (moment, moment))
    _write(tmp_path)
    created = {plan.id: plan.created for plan in Workspace(tmp_path).retrieve_plans()}
    assert created == {"new": "2025-03-04", "260208-named": "2026-02-08", "untracked": "2025-06-15"}


@pytest.mark.req("W11")
def test_an_abstract_becomes_the_description_and_goes(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            f"{RESOURCES}/w/OVERVIEW.md": "# The W\n\nFirst paragraph.\n",
            f"{RESOURCES}/w/ABSTRACT.md": "# Abstract\n\nAll about W:\nfast and small.\n",
            f"{RESOURCES}/w/stock/ABSTRACT.md": "# Stock\n\nPrices.\n",
            f"{RESOURCES}/w/known/OVERVIEW.md": "---\nname: Known\ndescription: About it.\n---\nBody\n",
            f"{RESOURCES}/w/known/ABSTRACT.md": "About it\n",
            f"{RESOURCES}/w/more/OVERVIEW.md": "---\nname: M\ndescription: About it.\ntags: []\n---\nBody\n",
            f"{RESOURCES}/w/more/ABSTRACT.md": "And something else.\n",
        },
    )
    _write(tmp_path)
    assert list(tmp_path.rglob("ABSTRACT.md")) == []
    told = {each.overview.folder: each.overview for each in Workspace(tmp_path).retrieve_overview()}
    assert {folder: each.abstract for folder, each in told.items()} == {
        "w": "All about W: fast and small.",
        "w/stock": "Prices.",
        "w/known": "About it.",
        "w/more": "About it. And something else.",
    }
    assert (told["w"].name, told["w"].content) == ("The W", "# The W\n\nFirst paragraph.\n")
    assert told["w/stock"].content == "# Stock\n\nPrices.\n"


@pytest.mark.req("W11")
def test_nothing_is_written_before_it_is_asked_for_and_the_diff_says_what(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/260208-x.md": "# X\n"})
    (change,) = Workspace(tmp_path).propose_migration().changes
    assert (tmp_path / PLANS / "260208-x.md").read_text() == "# X\n"
    assert change.diff() == (
        f"--- a/{PLANS}/260208-x.md\n+++ b/{PLANS}/260208-x.md\n@@ -1 +1,8 @@\n"
        "+---\n+name: X\n+status: new\n+created: 2026-02-08\n"
        "+tags: [stock, prices]\n+---\n+\n # X\n"
    )


@pytest.mark.req("W11")
def test_what_cannot_be_read_is_left_and_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{PLANS}/260201-broken.md": "---\nname: a: b\n---\n",
        f"{PLANS}/260202-double.md": "---\nname: a\nname: b\n---\n",
        f"{PLANS}/260203-latin.md": "# Caf\xe9\n".encode("latin-1"),
        f"{PLANS}/260204-empty.md": "",
        f"{RESOURCES}/w/OVERVIEW.md": "---\nname: [\n---\n",
        f"{RESOURCES}/w/ABSTRACT.md": "Kept.\n",
    }
    make(tmp_path, {**files, f"{PLANS}/260205-good.md": "# Good\n"})
    workspace = Workspace(tmp_path)
    migration = workspace.propose_migration()
    assert [change.path.rpartition("/")[2] for change in migration.changes] == ["260205-good.md"]
    assert len(migration.problems) == 5
    workspace.migrate(migration.changes)
    for name, content in files.items():
        assert (tmp_path / name).read_bytes() == (content if isinstance(content, bytes) else content.encode())


def test_a_file_that_changed_since_the_diff_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": "# W\n", f"{RESOURCES}/w/ABSTRACT.md": "Said.\n"})
    workspace = Workspace(tmp_path)
    migration = workspace.propose_migration()
    make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": "# W, edited\n"})
    done, left = workspace.migrate(migration.changes)
    assert (done, len(left)) == ([], 2)
    assert (tmp_path / RESOURCES / "w/ABSTRACT.md").read_text() == "Said.\n"


def test_the_documented_tree_needs_nothing(tmp_path: Path) -> None:
    assert Workspace(make(tmp_path, DOCUMENTED)).propose_migration() == ([], [])


_LINES = st.sampled_from(
    [
        "# Heading", "", "Some text: with a colon.", "- [x] done", "- [ ] open", "Status: WIP", "```", "---",
        "***", "name: x", "status: new", "status: Done", "created: 2026-01-01", "created: soon", "tags:",
        "tags: [a]", "  - b", "# comment", "description: 'it''s'", "title: T", "\ttab", "é\u2028", '"quoted"',
        "...", "<!--", "-->",
    ]
)  # fmt: skip
_TEXTS = st.builds(
    lambda head, body, end: end.join([*head, *body]),
    st.just([]) | st.lists(_LINES, max_size=4).map(lambda lines: ["---", *lines, "---"]),
    st.lists(_LINES, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)


@pytest.mark.req("W11")
@given(_TEXTS, st.booleans())
def test_a_second_run_changes_nothing_and_the_body_stays(text: str, is_plan: bool) -> None:
    def migrated(given_text: str) -> FileChange | LintProblem | None:
        if is_plan:
            return migrate_plan(given_text, _place(), lambda: date(2025, 1, 1))
        return migrate_overview(given_text, _place("OVERVIEW.md", FileKind.OVERVIEW), "An abstract.")

    change = migrated(text)
    if not isinstance(change, FileChange) or change.after is None:
        return
    assert migrated(change.after) is None
    before, after = front_matter.read(text, ""), front_matter.read(change.after, "")
    assert after.body.lstrip("\r\n") == before.body.lstrip("\r\n")
    kept = {key: value for key, value in before.values.items() if value not in (None, "", [])}
    if "Status" in kept and "status" not in before.values and is_plan:
        kept["status"] = kept.pop("Status")
    if is_plan:
        kept.pop("status", None)
    else:
        kept.pop("description", None)
    assert {key: after.values[key] for key in kept} == kept


def test_a_plan_in_order_is_left_as_it_is() -> None:
    assert migrate_plan(plan_text(), _place(), lambda: None) is None


@pytest.mark.req("W11")
def test_a_date_without_zeros_is_respelt(tmp_path: Path) -> None:
    head = "---\nname: A\ndescription: B\nstatus: new\ncreated: 2026-3-1\nupdated: 2026/12/24\n---\n"
    path = "resources/workspaces/w/_plans/260301-a.md"
    make(tmp_path, {path: head + "Body\n"})
    workspace = Workspace(tmp_path)
    workspace.migrate(workspace.propose_migration().changes)
    text = (tmp_path / path).read_text("utf-8")
    assert "created: 2026-03-01\nupdated: 2026-12-24\n" in text


@pytest.mark.req("W11")
def test_a_file_with_other_line_ends_keeps_them_throughout(tmp_path: Path) -> None:
    folder = f"{RESOURCES}/w"
    texts = {
        f"{folder}/OVERVIEW.md": "# Core\r\n\r\nThe core of it all is here.\r\n",
        f"{folder}/ABSTRACT.md": "# Core\n\nIt is the core.\n\nMore is said\nhere of it.\n",
        f"{folder}/_plans/260101-x.md": "# X\r\n\r\nDo what has to be done.\r\n",
        f"{LEARNINGS}/w/lessons.md": "# Lessons\r\n\r\n### [2026-01-01] A\r\n\r\n**Category:** x\r\n"
        "**Superseded by:** B\r\n\r\nOne.\r\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    workspace = Workspace(tmp_path)
    workspace.migrate(workspace.propose_migration("w").changes)
    workspace.archive(workspace.propose_archive("w").changes)
    workspace.save_memory([MemoryItem(text="The cache is cold at start. Warm it first.")], "w")
    files = [path for path in tmp_path.rglob("*.md") if path.stem not in ("ABSTRACT", "decisions")]
    assert len(files) == 4
    for path in files:
        data = path.read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n"), path
    assert b"More is said\r\nhere of it." in (tmp_path / folder / "OVERVIEW.md").read_bytes()


@pytest.mark.req("W11")
def test_an_abstract_that_says_nothing_new_is_not_added(tmp_path: Path) -> None:
    fields = "name: Core\ndescription: The core of it all. It parses feeds.\ntags: [a]\n"
    head = f"---\n{fields}---\n\n# Core\n\nText.\n"
    make(
        tmp_path,
        {
            f"{RESOURCES}/w/OVERVIEW.md": head,
            f"{RESOURCES}/w/ABSTRACT.md": "# Core\n\nThe **core** of it all.\n\nIt parses feeds.\n",
        },
    )
    workspace = Workspace(tmp_path)
    workspace.migrate(workspace.propose_migration("w").changes)
    assert (tmp_path / RESOURCES / "w/OVERVIEW.md").read_text() == head
    assert not (tmp_path / RESOURCES / "w/ABSTRACT.md").exists()


@pytest.mark.req("W11")
def test_tags_that_are_one_text_become_a_list(tmp_path: Path) -> None:
    head = (
        "---\nname: X\ndescription: Do it all at once.\nstatus: new\ncreated: 2026-01-01\ntags: a, b c\n---\n"
    )
    path = (
        make(tmp_path, {f"{RESOURCES}/w/_plans/260101-x.md": f"{head}\n# X\n"})
        / RESOURCES
        / "w/_plans/260101-x.md"
    )
    workspace = Workspace(tmp_path)
    workspace.migrate(workspace.propose_migration("w").changes)
    assert path.read_text() == f"{head}\n# X\n".replace("tags: a, b c", "tags: [a, b c]")
    assert workspace.lint("w").problems == []
