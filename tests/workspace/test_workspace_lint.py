"""Lint: every rule, with its file, line and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from archivist.config import WorkspaceRules
from archivist.workspace import learnings
from archivist.workspace.lint import check_file
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.topology import RULES, FileKind, WorkspaceFile, WorkspaceScope
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, entry_text, make, plan_text

PLANS = f"{RESOURCES}/w/d/_plans"


def _found(root: Path) -> list[tuple[str, int, str]]:
    checked = Workspace(root).lint()
    return [(each.file.rpartition("/")[2], each.line, each.rule) for each in checked.problems]


@pytest.mark.req("W10")
def test_the_documented_forms_have_no_problems(tmp_path: Path) -> None:
    checked = Workspace(make(tmp_path, DOCUMENTED)).lint()
    assert (checked.problems, checked.errors) == ([], 0)
    assert checked.files == len(DOCUMENTED) - 1


@pytest.mark.req("W10")
@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("# Title\n", 1, "no-front-matter"),
        ("---\nname: x\n", 1, "unclosed"),
        ("---\nname: a\ndescription: b: c\nstatus: new\ncreated: 2026-01-01\n---\n", 3, "broken-yaml"),
        (plan_text().replace("status: done", "status: done\nstatus: new"), 5, "duplicate-key"),
        (plan_text().replace("tags: [workflow, engine]", "tags:\n\t- a"), 7, "tab"),
        (plan_text().replace("status: done\n", ""), 1, "missing-field"),
        (plan_text().replace("status: done", "status:"), 4, "missing-field"),
        (plan_text().replace("status: done", "status: finished"), 4, "bad-status"),
        (plan_text().replace("status: done", "status: true"), 4, "bad-status"),
        (plan_text().replace("status: done", "status: done\nowner: me"), 5, "unknown-field"),
        (plan_text().replace("2026-02-08", "soon"), 5, "bad-date"),
        (plan_text().replace("2026-02-08", "2026-02-31"), 5, "bad-date"),
        (plan_text().replace('"Workflow Engine"', "[a, b]"), 2, "bad-value"),
        (plan_text().replace("[workflow, engine]", "workflow, engine"), 6, "bad-value"),
        (plan_text().replace("[workflow, engine]", "[1, 2]"), 6, "bad-value"),
        ("", 0, "empty"),
        (" \n\t\n", 0, "empty"),
        (b"\xef\xbb\xbf" + plan_text().encode(), 1, "bom"),
        (plan_text().replace("\n", "\r\n"), 1, "crlf"),
        (plan_text("Caf\xe9").encode("latin-1"), 2, "not-utf8"),
    ],
)
def test_a_plan_that_is_off_is_named_by_line_and_rule(
    tmp_path: Path, text: str | bytes, line: int, rule: str
) -> None:
    make(tmp_path, {f"{PLANS}/260101-x.md": text, f"{PLANS}/260102-good.md": plan_text()})
    found = [each for each in _found(tmp_path) if each[0] == "260101-x.md"]
    assert found == [("260101-x.md", line, rule)]


@pytest.mark.req("W10")
@pytest.mark.parametrize(
    "name", ["plan.md", "2026-01-01-x.md", "260132-x.md", "261301-x.md", "260101_X.md", "260101-.md"]
)
def test_a_plans_file_is_named_by_its_day(tmp_path: Path, name: str) -> None:
    make(tmp_path, {f"{PLANS}/{name}": plan_text(), f"{PLANS}/README.md": "About plans.\n"})
    assert _found(tmp_path) == [(name, 0, "plan-name")]


@pytest.mark.req("W10")
def test_overviews_and_abstracts_are_checked(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            f"{RESOURCES}/w/OVERVIEW.md": "---\nname: W\nupdated: 2026\n---\n",
            f"{RESOURCES}/w/ABSTRACT.md": "What it is.\n",
        },
    )
    assert _found(tmp_path) == [
        ("ABSTRACT.md", 0, "abstract-file"),
        ("OVERVIEW.md", 1, "missing-field"),
        ("OVERVIEW.md", 3, "bad-date"),
    ]


@pytest.mark.req("W10")
def test_entries_are_checked(tmp_path: Path) -> None:
    text = (
        "# Lessons\n\nAll that we learnt.\n\n"
        + entry_text("Good", "Text.")
        + "### No date\n\n**Category:** a\n\nText.\n\n---\n\n"
        + "### [2026-02-30] Bad date\n\n**Category:** a\n\nText.\n\n---\n\n"
        + "### [2026-02-08]\n\n**Category:** a\n\nText.\n\n---\n\n"
        + "### [2026-02-08] No category\n\nText.\n\n---\n\n"
        + "### [2026-02-08] No text\n\n**Category:** a\n\n---\n\n"
        + "## 2026-03-01 Written otherwise\n\nLost text,\nmore of it.\n"
    )
    make(tmp_path, {f"{LEARNINGS}/w/lessons.md": text})
    found = _found(tmp_path)
    assert [rule for _, _, rule in found] == [
        "no-date",
        "bad-date",
        "no-title",
        "no-category",
        "no-text",
        "heading-level",
    ]
    lines = text.splitlines()
    assert [lines[line - 1] for _, line, _ in found][-1] == "## 2026-03-01 Written otherwise"
    make(tmp_path, {f"{LEARNINGS}/w/lessons.md": "## Topic\n\nLost text,\nmore of it.\n"})
    assert _found(tmp_path) == [("lessons.md", 3, "stray-text")]


@pytest.mark.req("W15")
def test_a_long_learning_file_is_reported_with_a_proposal(tmp_path: Path) -> None:
    old = "".join(
        entry_text(f"Old {number}", "Text.", day=f"2024-01-{number:02d}") for number in range(1, 21)
    )
    stock = "".join(
        entry_text(f"Stock {number}", "Text.", day="2026-01-01", tags="stock") for number in range(15)
    )
    new = "".join(entry_text(f"New {number}", "Text.", day="2026-02-01") for number in range(36))
    gone = entry_text("Gone", "Text.").replace("**Tags:** a", "**Superseded by:** New 1")
    make(
        tmp_path,
        {f"{LEARNINGS}/w/lessons.md": old + stock + new + gone, f"{RESOURCES}/w/stock/OVERVIEW.md": ""},
    )
    (problem,) = [each for each in Workspace(tmp_path).lint("w").problems if each.rule == "too-many-entries"]
    assert problem.text == (
        "72 entries, more than 50: "
        f"archive the 1 superseded to {LEARNINGS}/w/archive/lessons.md; "
        f"move the 15 tagged 'stock' to {LEARNINGS}/w/stock/lessons.md; "
        f"archive the 20 up to 2024 to {LEARNINGS}/w/archive/lessons-2024.md"
    )


@pytest.mark.req("W15")
def test_fifty_entries_are_not_too_many_and_the_limit_is_a_setting(tmp_path: Path) -> None:
    from archivist.config import WorkspaceRules

    text = "".join(
        entry_text(f"E {number}", "Text.", day=f"2026-01-{number % 28 + 1:02d}") for number in range(50)
    )
    make(tmp_path, {f"{LEARNINGS}/w/lessons.md": text})
    assert _found(tmp_path) == []
    (problem,) = Workspace(tmp_path, WorkspaceRules(max_entries=40)).lint().problems
    assert "archive the 10 oldest (up to 2026-01-05)" in problem.text


def test_every_rule_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "workspace.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (error|warning) \|", guide, re.MULTILINE))
    assert rows == {rule.id: rule.severity.value for rule in RULES.values()}


def _learnings(text: str) -> tuple[list[str], list[learnings.LearningEntry]]:
    name = f"{LEARNINGS}/w/lessons.md"
    place = WorkspaceFile(name, name, FileKind.LESSONS, WorkspaceScope("w"), "w", 0, 0, 0)
    found = check_file(text.encode(), place, WorkspaceRules())
    return [f"{each.rule}:{each.line}" for each in found], learnings.parse_entries(text, place.name)


@pytest.mark.req("W10")
def test_an_entry_that_stands_twice_and_an_unresolved_conflict_are_findings() -> None:
    entry = "### [2026-01-0{}] Cache it\n\n**Category:** performance\n\nThe build is slow.\n\n---\n\n"
    found, _ = _learnings(f"# Lessons\n\n{entry.format(1)}{entry.format(2)}")
    assert found == ["duplicate-entry:11"]
    both = (
        f"<<<<<<< HEAD\n{entry.format(1)}=======\n{entry.format(3).replace('slow', 'fast')}>>>>>>> theirs\n"
    )
    found, _ = _learnings(f"# Lessons\n\n{both}")
    assert "conflict-marks:3" in found


@pytest.mark.req("W10")
@pytest.mark.parametrize("tags", ["#q #r", "[q, r]", "q, r", '["q", "r"]', "#q, #r", "`q`, r"])
def test_tags_are_read_in_each_way_people_write_them(tags: str) -> None:
    _, (entry,) = _learnings(f"### [2026-01-01] T\n\n**Category:** x\n**Tags:** {tags}\n\nText.\n")
    assert entry.tags == ("q", "r")
