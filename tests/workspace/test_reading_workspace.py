"""The three questions to a workspace, and that an edit by hand is seen at the next of them."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.errors import InputError, NotFoundError
from archivist.files.open import FRESH_NS
from archivist.workspace.documents import Tier, learnings_view, overviews_view, plans_view
from archivist.workspace.files_service import FileCache, Topology
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.search_service import WorkspaceSearch
from archivist.workspace.topology import LEARNINGS as LEARNING_KINDS
from archivist.workspace.topology import FileKind, WorkspaceScope
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, entry_text, make, plan_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "root", DOCUMENTED)


@pytest.mark.req("W3")
def test_plans_are_told_by_their_front_matter(root: Path) -> None:
    assert plans_view(Workspace(root).retrieve_plans("devtools/common", status=["done"])) == {
        "plans": [
            {
                "name": "Workflow Engine",
                "description": "What Workflow Engine is for",
                "status": "done",
                "created": "2026-02-08",
                "tags": ["workflow", "engine"],
                "_meta": {
                    "document_path": f"{RESOURCES}/devtools/common/_plans/260208-workflow-engine.md",
                    "document_id": "260208-workflow-engine",
                },
            }
        ]
    }


@pytest.mark.req("W3")
def test_plans_are_filtered_by_status_and_any_of_the_tags(root: Path) -> None:
    workspace = Workspace(root)

    def names(**filters: list[str]) -> list[str]:
        return [plan.name for plan in workspace.retrieve_plans(**filters)]  # type: ignore[arg-type]

    assert names() == ["Roadmap", "Workflow Engine", "Cache", "Prices"]
    assert names(status=["done", "new"], tags=["NestJS", "stock"]) == ["Cache", "Prices"]
    assert names(tags=["none"]) == []
    with pytest.raises(InputError, match="no status 'finished'"):
        names(status=["finished"])


def test_one_plan_is_told_in_full_by_id_path_or_name(root: Path) -> None:
    workspace = Workspace(root)
    for name in (
        "260301-cache",
        "Cache",
        f"{RESOURCES}/devtools/common/metan/_plans/260301-cache.md",
        "260301-cache.md",
    ):
        assert workspace.retrieve_plan(name).content == "# Cache\n\nThe steps.\n"
    with pytest.raises(NotFoundError, match="no plan '260301-cash'") as caught:
        workspace.retrieve_plan("260301-cash")
    assert caught.value.hint == "did you mean '260301-cache'?"
    make(root, {f"{RESOURCES}/k/_plans/260301-cache.md": plan_text("Another")})
    with pytest.raises(InputError, match="names 2 plans"):
        workspace.retrieve_plan("260301-cache")


@pytest.mark.req("W4")
@pytest.mark.parametrize(
    ("scope", "tiers"),
    [
        ("devtools", [("devtools", "T1"), ("devtools/common", "T0"), ("devtools/common/metan", "T0")]),
        ("devtools/common", [("devtools/common", "T0"), ("devtools/common/metan", "T0")]),
        ("devtools/common/metan", [("devtools/common/metan", "T1")]),
        ("", [("devtools", "T1"), ("devtools/common", "T0"), ("devtools/common/metan", "T0"), ("k", "T1")]),
    ],
)
def test_overviews_come_in_tiers(root: Path, scope: str, tiers: list[tuple[str, str]]) -> None:
    found = Workspace(root).retrieve_overview(scope)
    assert [(each.overview.folder, each.tier.value) for each in found] == tiers


@pytest.mark.req("W4")
def test_a_workspace_is_told_in_full_and_a_domain_by_its_abstract(root: Path) -> None:
    found = Workspace(root).retrieve_overview("devtools")
    told = overviews_view(found)["overviews"]
    assert isinstance(told, list)
    first, second, _ = told
    assert first == {
        "scope": "devtools",
        "tier": "T1",
        "name": "DevTools",
        "tags": ["tools"],
        "content": "Tools for developers\n\n# DevTools\n\nAll about DevTools.\n",
        "_meta": {"document_path": f"{RESOURCES}/devtools/OVERVIEW.md", "document_id": "devtools"},
    }
    assert list(second) == ["scope", "tier", "name", "abstract", "tags", "_meta"]
    assert second["abstract"] == "Shared tools and utilities"
    assert {each.tier for each in Workspace(root).retrieve_overview("devtools", is_full=True)} == {"T1"}


@pytest.mark.req("W4")
def test_an_overview_gives_its_front_matter_in_full_and_its_tags_in_short(tmp_path: Path) -> None:
    structure = "folder_structure: |\n  src/: code\n  docs/: texts\n"
    head = (
        f"---\nname: Core\ndescription: The core\ntags: [a, b]\nupdated: 2026-03-01\n{structure}---\n# Core\n"
    )
    root = make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": head, f"{RESOURCES}/w/d/OVERVIEW.md": head})
    workspace = Workspace(root)
    views: Any = overviews_view(workspace.retrieve_overview("w"))["overviews"]
    full, short = views
    wanted = {"name": "Core", "tags": ["a", "b"], "updated": "2026-03-01"}
    assert {key: full[key] for key in wanted} == wanted
    assert full["folder_structure"] == "src/: code\ndocs/: texts"
    assert full["content"] == "The core\n\n# Core\n"
    assert {key: short[key] for key in ("name", "abstract", "tags")} == {
        "name": "Core",
        "abstract": "The core",
        "tags": ["a", "b"],
    }
    assert workspace.lint("w").problems == []


@pytest.mark.req("W5")
def test_learnings_are_told_entry_by_entry(root: Path) -> None:
    view = learnings_view(Workspace(root).retrieve_learnings("devtools", tags=["xstate", "pnpm"]))
    assert view["decisions"] == [
        {
            "content": "Chose xstate v5 for workflow state management — "
            "Actor model + strong TypeScript support",
            "date": "2026-02-08",
            "category": "architecture",
            "tags": ["workflow", "state-management", "xstate"],
            "_meta": {
                "document_path": f"{LEARNINGS}/devtools/decisions.md",
                "document_id": "decisions#2026-02-08-chose-xstate-v5-for-workflow-state-management",
            },
        }
    ]
    assert [each["tags"] for each in view["lessons"]] == [["pnpm", "nestjs"]]  # type: ignore[attr-defined]


@pytest.mark.req("W5", "W6")
def test_learnings_are_filtered_by_category_and_narrowed_by_scope(root: Path) -> None:
    workspace = Workspace(root)
    assert [each.entry.title for each in workspace.retrieve_learnings(category="Testing").lessons] == [
        "Jest hangs with open handles"
    ]
    assert len(workspace.retrieve_learnings("devtools").lessons) == 3
    assert len(workspace.retrieve_learnings("devtools/common").lessons) == 2
    # Learnings are kept by domain: a repository's are those that carry its name.
    assert [each.entry.title for each in workspace.retrieve_learnings("devtools/common/metan").lessons] == [
        "Vite caches stale dependencies"
    ]


@pytest.mark.req("W6")
def test_where_a_document_stands_is_returned_and_never_searched(root: Path) -> None:
    workspace = Workspace(root)
    for word in ("common", "resources", "260208", "workspaces", "260208-workflow-engine", "lessons", "user"):
        assert workspace.retrieve_plans(tags=[word]) == []
        assert workspace.retrieve_learnings(tags=[word]) == ([], [])
        assert workspace.retrieve_learnings(category=word) == ([], [])
    assert all(plan.path and plan.id for plan in workspace.retrieve_plans())


def test_superseded_entries_are_kept_and_told_only_when_asked(root: Path) -> None:
    old = entry_text("Old", "Text.").replace("**Tags:**", "**Superseded by:** [2026-03-01] New\n**Tags:**")
    make(root, {f"{LEARNINGS}/k/lessons.md": old})
    workspace = Workspace(root)
    assert workspace.retrieve_learnings("k").lessons == []
    (kept,) = workspace.retrieve_learnings("k", with_superseded=True).lessons
    assert kept.entry.superseded_by == "[2026-03-01] New"


# Bad files


@pytest.mark.req("W12")
def test_bad_files_are_named_and_the_rest_served(root: Path) -> None:
    folder = f"{RESOURCES}/k/stock/_plans"
    make(
        root,
        {
            f"{folder}/260402-none.md": "# No front matter\n",
            f"{folder}/260403-broken.md": "---\nname: a\ndescription: b: c\nstatus: new\n---\n",
            f"{folder}/260404-empty.md": "",
            f"{folder}/260405-latin.md": "---\nname: Caf\xe9\nstatus: new\n---\n".encode("latin-1"),
            f"{folder}/260406-date.md": "---\nname: d\nstatus: new\ncreated: soon\n---\n",
            f"{folder}/260407-wide.md": "---\nname: wide\n---\n".encode("utf-16"),
            f"{folder}/260408-long.md": f"---\nname: long\ndescription: {'x' * 9000}\nstatus: done\n---\n",
        },
    )
    workspace = Workspace(root)
    told = {plan.id: (plan.name, plan.status) for plan in workspace.retrieve_plans("k/stock")}
    assert told == {
        "260401-prices": ("Prices", "done"),
        "260402-none": ("None", ""),
        "260403-broken": ("a", "new"),
        "260404-empty": ("Empty", ""),
        "260405-latin": ("Caf\ufffd", "new"),
        "260406-date": ("d", "new"),
        "260407-wide": ("wide", ""),
        "260408-long": ("long", "done"),
    }
    assert [(each.file.rpartition("/")[2], each.line, each.rule) for each in workspace.problems] == [
        ("260403-broken.md", 3, "broken-yaml"),
        ("260405-latin.md", 2, "not-utf8"),
        ("260407-wide.md", 1, "not-utf8"),
    ]


def test_an_overview_without_front_matter_tells_its_first_paragraph(root: Path) -> None:
    text = (
        "# The `API`\n\n<!-- note\nmore -->\n\n![logo](x.png)\n\n- a list\n\n"
        "Serves **all** [clients](c.md).\nFast.\n\nMore.\n"
    )
    make(root, {f"{RESOURCES}/k/api/OVERVIEW.md": text})
    (answer,) = Workspace(root).retrieve_overview("k/api")
    assert (answer.overview.name, answer.text) == ("The API", "Serves all clients. Fast.")


def test_ten_thousand_plans_are_read_and_then_not_read_again(tmp_path: Path) -> None:
    folder = tmp_path / RESOURCES / "w" / "d" / "_plans"
    folder.mkdir(parents=True)
    old = time.time() - 3600
    for number in range(10_000):
        path = folder / f"260101-plan-{number:05d}.md"
        path.write_text(f"---\nname: Plan {number}\ndescription: d\nstatus: new\ncreated: 2026-01-01\n---\n")
        os.utime(path, (old, old))
    later = time.time_ns() + 2 * FRESH_NS
    shelf = FileCache(Topology(tmp_path), clock_ns=lambda: later)
    assert len(shelf.read(WorkspaceScope("w")).plans) == 10_000
    assert len(shelf.read(WorkspaceScope("w")).plans) == 10_000
    assert shelf.parsed_count == 10_000


# An edit by hand


def _later() -> int:
    return time.time_ns() + 2 * FRESH_NS


@pytest.mark.req("W12")
def test_only_what_changed_is_parsed_again(root: Path) -> None:
    shelf = FileCache(Topology(root), clock_ns=_later)
    kinds = (FileKind.PLAN, FileKind.OVERVIEW, *LEARNING_KINDS)
    shelf.read(kinds=kinds)
    first = shelf.parsed_count
    shelf.read(kinds=kinds)
    assert shelf.parsed_count == first
    make(root, {f"{RESOURCES}/k/stock/_plans/260401-prices.md": plan_text("Dearer", "partial")})
    assert "Dearer" in [plan.name for plan in shelf.read(kinds=kinds).plans]
    assert shelf.parsed_count == first + 1
    (root / RESOURCES / "k/stock/_plans/260401-prices.md").unlink()
    assert "Dearer" not in [plan.name for plan in shelf.read(kinds=kinds).plans]


@pytest.mark.req("W12")
def test_an_edit_that_keeps_size_and_time_is_seen(root: Path) -> None:
    path = root / RESOURCES / "k/stock/_plans/260401-prices.md"
    workspace = Workspace(root)
    for name in ("Prince", "Pricey", "Prizes"):
        before = path.stat()
        path.write_text(plan_text(name, "done", "stock"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert [plan.name for plan in workspace.retrieve_plans("k/stock")] == [name]


def test_a_touched_file_is_compared_and_not_parsed(root: Path) -> None:
    shelf = FileCache(Topology(root), clock_ns=_later)
    shelf.read()
    first = shelf.parsed_count
    (root / RESOURCES / "k/stock/_plans/260401-prices.md").touch()
    shelf.read()
    assert shelf.parsed_count == first


@pytest.mark.req("W12")
def test_the_bank_reads_the_files_of_its_project(bank: Bank) -> None:
    root = bank.path.parent.parent
    make(root, DOCUMENTED)
    assert len(bank.workspace.retrieve_plans("devtools")) == 3
    assert len(bank.workspace.retrieve_overview("devtools/common/metan")) == 1
    assert len(bank.workspace.retrieve_learnings("devtools").decisions) == 1
    assert bank.workspace.retrieve_plan("Cache").content.startswith("# Cache")
    assert bank.workspace.lint().errors == 0


@pytest.mark.req("W3")
def test_a_plan_is_found_by_its_name_without_the_date(tmp_path: Path) -> None:
    workspace = Workspace(make(tmp_path, DOCUMENTED))
    assert workspace.retrieve_plan("workflow-engine").plan.id == "260208-workflow-engine"
    make(tmp_path, {f"{RESOURCES}/k/_plans/270101-workflow-engine.md": plan_text("Other")})
    with pytest.raises(InputError, match="names 2 plans"):
        workspace.retrieve_plan("workflow-engine")


@pytest.mark.req("W4")
def test_an_overview_in_full_has_its_description_once(tmp_path: Path) -> None:
    workspace = Workspace(make(tmp_path, DOCUMENTED))
    (answer,) = [each for each in workspace.retrieve_overview("k") if each.tier is Tier.T1]
    assert answer.text == "Another workspace\n\n# K\n\nAll about K.\n"
    make(
        tmp_path, {f"{RESOURCES}/k/OVERVIEW.md": "---\ndescription: All about K.\n---\n# K\n\nAll about K.\n"}
    )
    assert Workspace(tmp_path).retrieve_overview("k")[0].text == "# K\n\nAll about K.\n"


@pytest.mark.req("W6")
def test_an_id_is_unique_in_an_answer_and_finds_its_document_again(tmp_path: Path) -> None:
    one, other, alone = (
        f"{RESOURCES}/w/{place}" for place in ("a/_plans/260501-x.md", "b/_plans/260501-x.md", "_plans/y.md")
    )
    texts = {f"{LEARNINGS}/w{place}/lessons.md": entry_text("Same", "Text.") for place in ("", "/a")}
    root = make(tmp_path, {name: plan_text(name[-9:]) for name in (one, other, alone)} | texts)
    workspace = Workspace(root)
    ids = {plan.path: plan.id for plan in workspace.retrieve_plans("w")}
    assert ids == {one: one.removesuffix(".md"), other: other.removesuffix(".md"), alone: "y"}
    assert workspace.retrieve_plan(ids[other], "w").plan.path == other
    with pytest.raises(InputError, match="names 2 plans"):
        workspace.retrieve_plan("260501-x", "w")
    assert [plan.id for plan in workspace.retrieve_plans("w/a")] == ["260501-x"]
    lessons = [each.id for each in workspace.retrieve_learnings("w").lessons]
    assert len(set(lessons)) == 2
    assert all(name.startswith(f"{LEARNINGS}/w") and "lessons#" in name for name in lessons)


@pytest.mark.req("W6")
def test_a_repository_is_found_without_its_domain_where_its_name_is_unique(tmp_path: Path) -> None:
    names = ("w/a/one", "w/a/two", "w/b/two")
    workspace = Workspace(make(tmp_path, {f"{RESOURCES}/{name}/OVERVIEW.md": "# X\n" for name in names}))
    assert workspace.find_repository("w", "one") == "w/a/one"
    with pytest.raises(InputError, match="2 repositories are called 'two'"):
        workspace.find_repository("w", "two")
    with pytest.raises(NotFoundError):
        workspace.find_repository("w", "three")


@pytest.mark.req("W13")
@pytest.mark.parametrize("has_bank", [True, False])
def test_the_abstract_of_a_plan_is_found_also_where_it_has_no_body(
    bank: Bank, tmp_path: Path, has_bank: bool
) -> None:
    root = bank.root if has_bank else tmp_path / "root"
    plan, overview = (f"{RESOURCES}/devtools/common/{name}" for name in ("_plans/260501-q.md", "OVERVIEW.md"))
    front = (
        "---\nname: Quokka rollout\ndescription: Ship the marsupial scheduler\ntags: [zebra, numbat]\n---\n"
    )
    make(
        root,
        {plan: front, overview: "---\nname: Common\ndescription: Wombat parts\n---\n# Common\n\nText.\n"},
    )
    with nullcontext(bank) if has_bank else Bank.temporary(bank.config) as opened:
        search = WorkspaceSearch(opened, [Topology(root)])
        for words, path in (
            ("quokka rollout", plan),
            ("marsupial scheduler", plan),
            ("numbat", plan),
            ("wombat parts", overview),
        ):
            found = search.search(words).snippets
            assert [each.path for each in found][:1] == [path], words
        hit = search.search("marsupial scheduler").snippets[0]
        assert (hit.heading, hit.document, hit.line) == ("Quokka rollout", "260501-q", 1)
        assert hit.text == "Ship the marsupial scheduler Tags: zebra, numbat"
