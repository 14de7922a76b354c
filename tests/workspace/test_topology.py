"""Where the files lie, and that the walk stays where it belongs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.workspace.files_service import Topology, find_root
from archivist.workspace.topology import LEARNINGS as LEARNING_KINDS
from archivist.workspace.topology import FileKind, WorkspaceScope
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, make, plan_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "root", DOCUMENTED)


def _stems(topology: Topology, scope: str) -> list[str]:
    return [place.stem for place in topology.scan(WorkspaceScope.parse(scope), (FileKind.PLAN,)).places]


@pytest.mark.req("W6")
def test_a_scope_aggregates_what_lies_below_it_and_narrows(root: Path) -> None:
    topology = Topology(root)
    assert _stems(topology, "devtools") == ["260101-roadmap", "260208-workflow-engine", "260301-cache"]
    assert _stems(topology, "devtools/common") == ["260208-workflow-engine", "260301-cache"]
    assert _stems(topology, "devtools/common/metan") == ["260301-cache"]
    assert len(_stems(topology, "")) == 4
    assert _stems(topology, "nowhere/at/all") == []
    assert [place.scope for place in topology.scan(WorkspaceScope("devtools"), LEARNING_KINDS).places] == [
        WorkspaceScope("devtools", "common"),
        WorkspaceScope("devtools"),
        WorkspaceScope("devtools"),
    ]


def test_every_file_is_told_by_its_place(root: Path) -> None:
    kinds = {place.name: place.kind for place in Topology(root).scan().places}
    assert kinds[f"{RESOURCES}/devtools/OVERVIEW.md"] is FileKind.OVERVIEW
    assert kinds[f"{RESOURCES}/devtools/_plans/260101-roadmap.md"] is FileKind.PLAN
    assert kinds[f"{RESOURCES}/devtools/common/_features/search.md"] is FileKind.DOCUMENT
    assert kinds[f"{LEARNINGS}/devtools/decisions.md"] is FileKind.DECISIONS
    assert len(kinds) == len(DOCUMENTED)


def test_the_scopes_are_those_that_have_a_folder_in_either_tree(root: Path) -> None:
    assert [str(scope) for scope in Topology(root).scopes()] == [
        "devtools",
        "devtools/common",
        "devtools/common/metan",
        "k",
        "k/stock",
    ]


def test_the_names_of_the_folders_can_be_others(tmp_path: Path) -> None:
    rules = WorkspaceRules(resources="docs", learnings="notes", plans="plans", overview="README.md")
    make(
        tmp_path,
        {"docs/a/plans/x.md": plan_text(), "docs/a/README.md": "# A\n", "notes/a/lessons.md": "### x\n"},
    )
    topology = Topology(tmp_path, rules)
    kinds = [place.kind for place in topology.scan().places]
    assert kinds == [FileKind.OVERVIEW, FileKind.PLAN, FileKind.LESSONS]


@pytest.mark.parametrize(
    "scope",
    [
        "..",
        "../x",
        "a/..",
        "a/../b",
        "/etc",
        "a//b",
        "a/b/c/d",
        ".git",
        "a/.hidden",
        "a\\b",
        "a\0b",
        "_plans",
    ],
)
def test_a_scope_that_could_leave_the_root_is_refused(scope: str) -> None:
    with pytest.raises(InputError, match="is not a scope"):
        WorkspaceScope.parse(scope)


@example("- /")
@example("a / b")
@given(st.text(alphabet="ab./\\_-\0: ", max_size=12))
def test_a_scope_is_refused_or_stays_below_the_root(text: str) -> None:
    try:
        scope = WorkspaceScope.parse(text)
    except InputError:
        return
    path = Path("/root", *scope.parts)
    assert os.path.normpath(path) == str(path)
    assert WorkspaceScope.parse(str(scope)) == scope


def test_a_folder_outside_is_no_tree_of_the_root(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leaves the root"):
        Topology(tmp_path, WorkspaceRules(learnings="../elsewhere"))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "user").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leaves the root"):
        Topology(tmp_path / "root", WorkspaceRules(learnings="user/memory"))


def test_links_that_lead_out_are_named_and_not_followed(root: Path, tmp_path: Path) -> None:
    secret = make(
        tmp_path / "secret", {"_plans/260101-secret.md": plan_text("Secret"), "x.md": plan_text("X")}
    )
    (root / RESOURCES / "devtools" / "stolen").symlink_to(secret)
    (root / RESOURCES / "devtools" / "_plans" / "260102-stolen.md").symlink_to(secret / "x.md")
    found = Topology(root).scan(WorkspaceScope("devtools"), (FileKind.PLAN,))
    assert [place.stem for place in found.places] == [
        "260101-roadmap",
        "260208-workflow-engine",
        "260301-cache",
    ]
    assert sorted((each.file, each.rule) for each in found.problems) == [
        (f"{RESOURCES}/devtools/_plans/260102-stolen.md", "leaves-root"),
        (f"{RESOURCES}/devtools/stolen", "leaves-root"),
    ]
    with pytest.raises(InputError, match="leaves the root"):
        Topology(root).scan(WorkspaceScope("devtools", "stolen"))


def test_a_loop_of_links_ends_and_every_file_is_there_once(root: Path) -> None:
    common = root / RESOURCES / "devtools" / "common"
    (common / "again").symlink_to(common)
    (common / "up").symlink_to(root / RESOURCES)
    (root / RESOURCES / "k" / "other").symlink_to(common)
    (common / "self").symlink_to("self")
    (common / "metan" / "260105-gone.md").symlink_to("nowhere.md")
    names = [place.stem for place in Topology(root).scan(kinds=(FileKind.PLAN,)).places]
    assert sorted(names) == ["260101-roadmap", "260208-workflow-engine", "260301-cache", "260401-prices"]
    assert [
        place.stem for place in Topology(root).scan(WorkspaceScope("k", "other"), (FileKind.PLAN,)).places
    ] == [
        "260208-workflow-engine",
        "260301-cache",
    ]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that any user can reach, for a look without root's rights."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_without_permission_is_named_and_the_rest_served(open_folder: Path) -> None:
    root = make(open_folder, DOCUMENTED)
    closed = root / RESOURCES / "devtools" / "common" / "metan"
    closed.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        found = Topology(root).scan(WorkspaceScope("devtools"), (FileKind.PLAN,))
    finally:
        if is_root:
            os.seteuid(0)
        closed.chmod(0o755)
    assert [place.stem for place in found.places] == ["260101-roadmap", "260208-workflow-engine"]
    assert [(each.rule, each.file) for each in found.problems] == [
        ("unreadable", f"{RESOURCES}/devtools/common/metan")
    ]


def test_a_root_without_trees_is_empty(tmp_path: Path) -> None:
    assert Topology(tmp_path).scan() == ([], [])
    assert Topology(tmp_path).scopes() == []
    assert find_root(tmp_path) is None
    make(tmp_path, {f"{LEARNINGS}/a/lessons.md": ""})
    assert find_root(tmp_path / "user" / "memory") == tmp_path
