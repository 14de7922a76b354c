"""Skills: portable, per workspace, found by scope."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import InputError, NotFoundError
from archivist.workspace import front_matter
from archivist.workspace.files_service import Topology
from archivist.workspace.skills_service import (
    compose_skill,
    find_problems,
    find_skill,
    is_skill_name,
    list_skills,
    save_skill,
)
from archivist.workspace.topology import WorkspaceScope

SKILL = "---\nname: cut-release\ndescription: Use when a release is cut.\n---\n\nRun `make release`.\n"


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """Return an empty root."""
    return Topology(tmp_path)


@pytest.mark.req("W16")
def test_a_skill_is_saved_below_its_scope_and_found_again(topology: Topology) -> None:
    saved = save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools"))
    assert saved.kept == "saved"
    assert saved.skill.path == "resources/workspaces/devtools/_skills/cut-release/SKILL.md"
    assert (topology.root / saved.skill.path).read_text("utf-8") == SKILL
    assert (
        find_skill(topology, "cut-release", WorkspaceScope("devtools")).description
        == "Use when a release is cut."
    )
    assert save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools")).kept == "unchanged"


@pytest.mark.req("W16")
def test_the_nearest_scope_counts_and_listing_aggregates(topology: Topology) -> None:
    for scope in ("devtools", "devtools/common", "shop"):
        text = SKILL.replace("cut.", f"cut in {scope}.")
        save_skill(topology, "cut-release", text, WorkspaceScope.parse(scope), create=True)
    other = SKILL.replace("cut-release", "other")
    save_skill(topology, "other", other, WorkspaceScope("devtools", "common", "metan"), create=True)
    assert [(str(each.scope), each.name) for each in list_skills(topology, WorkspaceScope("devtools"))] == [
        ("devtools", "cut-release"),
        ("devtools/common", "cut-release"),
        ("devtools/common/metan", "other"),
    ]
    for asked, found in (
        ("devtools/common/metan", "devtools/common"),
        ("devtools/web", "devtools"),
        ("devtools", "devtools"),
        ("shop/front", "shop"),
    ):
        assert str(find_skill(topology, "cut-release", WorkspaceScope.parse(asked)).scope) == found
    assert str(find_skill(topology, "other", WorkspaceScope()).scope) == "devtools/common/metan"
    with pytest.raises(InputError, match="3 skills are called 'cut-release'"):
        find_skill(topology, "cut-release", WorkspaceScope())
    with pytest.raises(NotFoundError):
        find_skill(topology, "other", WorkspaceScope("shop"))


@pytest.mark.req("W16")
def test_another_skill_of_the_name_is_replaced_only_when_asked(topology: Topology) -> None:
    save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools"))
    changed = SKILL.replace("make release", "make all release")
    with pytest.raises(InputError, match="another skill 'cut-release' in devtools"):
        save_skill(topology, "cut-release", changed, WorkspaceScope("devtools"))
    assert find_skill(topology, "cut-release", WorkspaceScope("devtools")).text == SKILL
    saved = save_skill(topology, "cut-release", changed, WorkspaceScope("devtools"), is_replacing=True)
    assert (saved.kept, saved.skill.text) == ("replaced", changed)


@pytest.mark.req("W16")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no front matter\n", "no front matter with name and description"),
        ("---\nname: x\n---\nbody\n", "description: missing or empty"),
        ("---\nname: x\ndescription: ''\n---\nbody\n", "description: missing or empty"),
        ("---\nname: x\ndescription: [a]\n---\nbody\n", "description: missing or empty"),
        (
            f"---\nname: x\ndescription: {'d' * 1025}\n---\nbody\n",
            "description: 1025 characters, at most 1024",
        ),
        ("---\nname: X Y\ndescription: d\n---\nbody\n", "is not lower-case words with hyphens"),
        ("---\nname: other\ndescription: d\n---\nbody\n", "'other', but the skill is saved as 'x'"),
        ("---\nname: x\ndescription: d\nmodel: big\n---\nbody\n", "model: not a field of a portable skill"),
        ("---\nname: x\ndescription: d\nmetadata: text\n---\nbody\n", "metadata: must be names with texts"),
        (
            "---\nname: x\ndescription: d\nmetadata:\n  v: 1\n---\nbody\n",
            "metadata: must be names with texts",
        ),
        ("---\nname: x\ndescription: d\nlicense: 3\n---\nbody\n", "license: must be a text"),
        (
            f"---\nname: x\ndescription: d\ncompatibility: {'c' * 501}\n---\nb\n",
            "compatibility: 501 characters",
        ),
        ("---\nname: x\ndescription: d\n---\n\n", "no instructions below the front matter"),
        ("---\nname: x\ndescription: d\n", "the front matter is never closed"),
        ("---\nname: x\nname: x\ndescription: d\n---\nb\n", "found duplicate key"),
    ],
)
def test_what_is_no_portable_skill_is_refused_with_everything_that_is_wrong(text: str, said: str) -> None:
    assert any(said in each for each in find_problems(text, "x"))
    with pytest.raises(InputError) as caught:
        compose_skill(text, "x")
    assert said in caught.value.message or "no front matter" in said


def test_all_portable_fields_are_welcome() -> None:
    text = (
        "---\nname: x\ndescription: d\nlicense: MIT\ncompatibility: needs git\n"
        "metadata:\n  version: '1'\nallowed-tools: Bash(git:*) Read\n---\nbody\n"
    )
    assert find_problems(text, "x") == []
    assert compose_skill(text, "x") == text


def test_name_and_description_are_added_where_they_are_missing() -> None:
    text = compose_skill("Do this.\n", "do-this", "Use it: when needed\nand else")
    head = front_matter.read(text, "x")
    assert head.values == {"name": "do-this", "description": "Use it: when needed and else"}
    assert head.body.strip() == "Do this."
    kept = compose_skill("---\n# a comment\ndescription: d\n---\nbody", "x", "ignored")
    assert kept == "---\n# a comment\ndescription: d\nname: x\n---\nbody\n"


@given(st.text(max_size=80))
def test_a_name_is_never_a_way_out_of_its_folder(name: str) -> None:
    if is_skill_name(name):
        assert name.strip(".-/ ") == name
        assert "/" not in name
        assert len(name) <= 64


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a--b", "a/b", "..", "ä", "a" * 65])
def test_other_names_are_refused(topology: Topology, name: str) -> None:
    with pytest.raises(InputError, match="is not a valid name of a skill"):
        save_skill(topology, name, SKILL, WorkspaceScope("devtools"))


def test_a_skill_without_a_workspace_is_refused(topology: Topology) -> None:
    with pytest.raises(InputError, match="belongs to a workspace"):
        save_skill(topology, "cut-release", SKILL, WorkspaceScope())


@pytest.mark.req("W16")
def test_a_slip_of_the_pen_makes_no_workspace(topology: Topology) -> None:
    save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools"))
    for scope in (WorkspaceScope("devtool"), WorkspaceScope("devtools", "comon")):
        with pytest.raises(InputError, match=f"no scope '{scope}' in this workspace") as caught:
            save_skill(topology, "cut-release", SKILL, scope)
        assert caught.value.hint == "there is devtools; --create makes a new one"
        assert scope not in topology.scopes()
    save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools", "common"), create=True)
    save_skill(topology, "cut-release", SKILL, WorkspaceScope("devtools", "common"))


def test_a_bad_skill_that_somebody_wrote_is_listed_with_its_problems(topology: Topology) -> None:
    place = topology.root / "resources/workspaces/devtools/_skills/odd/SKILL.md"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"---\nname: [\n---\n\xff\n")
    (place.parent / "notes.md").write_text("beside\n")
    (found,) = list_skills(topology, WorkspaceScope())
    assert found.name == "odd"
    assert found.problems


@pytest.mark.req("W16")
def test_secrets_do_not_get_into_a_skill(bank: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    topology = bank.workspace.topology
    saved = bank.workspace.save_skill(
        "deploy", f"Use {token} to push.\n", "devtools", description=f"With {token}"
    )
    assert token not in saved.skill.text
    assert find_skill(topology, "deploy", WorkspaceScope("devtools")).text.count("[redacted:") == 2
    assert [skill.name for skill in list_skills(topology, WorkspaceScope())] == ["deploy"]
