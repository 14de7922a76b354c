"""Front matter of every kind: each value gives a problem of its own file, none takes the machine."""

from __future__ import annotations

import time
import warnings
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import WorkspaceRules
from archivist.workspace import front_matter, lint
from archivist.workspace.documents import plan_view, read_overview, read_plan, to_yaml
from archivist.workspace.lint import FileChange
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.topology import RULES, FileKind, WorkspaceFile, WorkspaceScope
from tests.workspace.trees import RESOURCES, make, plan_text

PLANS = f"{RESOURCES}/w/d/_plans"
_QUICK_S = 0.5


def _place(kind: FileKind) -> WorkspaceFile:
    name = f"{PLANS}/260208-x.md" if kind is FileKind.PLAN else f"{RESOURCES}/w/d/OVERVIEW.md"
    return WorkspaceFile(name, name, kind, WorkspaceScope("w", "d"), "w/d", 0, 0, 0)


@pytest.mark.req("W10")
@pytest.mark.parametrize("value", ["[new]", "{a: 1}", "[]", "{}", "1", "~", "true", "[[a]]", "!!set {a}"])
@pytest.mark.parametrize("field", ["name", "description", "status", "created", "updated", "tags"])
def test_a_value_of_any_type_is_a_problem_of_its_file_alone(tmp_path: Path, field: str, value: str) -> None:
    fields = {"name": "N", "description": "D", "status": "new", "created": "2026-02-08", "tags": "[a]"}
    head = "".join(f"{key}: {each}\n" for key, each in {**fields, field: value}.items())
    make(tmp_path, {f"{PLANS}/260101-x.md": f"---\n{head}---\n", f"{PLANS}/260102-good.md": plan_text()})
    workspace = Workspace(tmp_path)
    assert {each.file.rpartition("/")[2] for each in workspace.lint().problems} <= {"260101-x.md"}
    assert len(workspace.retrieve_plans()) == 2
    workspace.migrate(workspace.propose_migration().changes)


_SCALARS = st.sampled_from(
    [
        "x", "1", "-1.5", "1e999", ".nan", ".inf", "~", "null", "true", "0x1f", "0o7", "1:30", "9" * 4400,
        "2026-02-08", "2026-02-30", "2026-02-08T10:00:00Z", "2026-02-08T10:00:00+99:99",
        "2026-02-08 25:00:00",
        "0000-01-01", "!!binary aGk=", "!!binary ???", "!!int x", "!!float [a]", "!!set {a}",
        "!!omap [a: 1]",
        "!!pairs [a: 1]", "!!timestamp x", "!x y", "!!python/none", "&a x", "*a", "&a [*a]", "&a {b: *a}",
        "<<", "'it''s'", '"\\x00"', '"\\ud800"', "|\n  a\n  b", ">-\n  a", "|\n", "? a", "- a", "'", '"', "@",
        "`a`", "%", "{", "}", "[", "]", "{a: 1}", "[a, [b]]", "{? [a] : b}", "\t", "\x01", "\x85", "é",
        "計画",
        "{a: 1, a: 2}", "\n  - a\n  - b", "\n  k: v", "2026-13-45", "!!null x", "!!bool maybe",
    ]
)  # fmt: skip
_KEYS = st.sampled_from(
    [
        "name",
        "description",
        "status",
        "created",
        "updated",
        "tags",
        "title",
        "Status",
        "<<",
        "? [a]",
        "1",
        "~",
    ]
)
_HEADS = st.lists(st.tuples(_KEYS, _SCALARS), max_size=5).map(
    lambda fields: "".join(f"{key}: {value}\n" for key, value in fields)
)


@pytest.mark.req("W10", "W11")
@given(_HEADS, st.sampled_from([FileKind.PLAN, FileKind.OVERVIEW]), st.sampled_from(["\n", "\r\n"]))
def test_no_front_matter_breaks_a_question(head: str, kind: FileKind, end: str) -> None:
    text = f"---\n{head}---\n\n# Title\n\nWhat this is for.\n".replace("\n", end)
    place = _place(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for problem in lint.check_file(text.encode("utf-8", "replace"), place, WorkspaceRules()):
            assert problem.rule in RULES
            assert "\n" not in problem.text
        if kind is FileKind.PLAN:
            to_yaml({"plans": [plan_view(read_plan(text, place))]})
            change = lint.migrate_plan(text, place, lambda: date(2025, 1, 1))
        else:
            read_overview(text, place)
            change = lint.migrate_overview(text, place, "An abstract.")
    if isinstance(change, FileChange) and change.after is not None:
        assert change.after.endswith(f"# Title{end}{end}What this is for.{end}")
        assert front_matter.read(change.after, "").problems == ()


def _bomb() -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (_bomb(), "aliases, more than 16"),
        (f"name: {'[' * 5000}\n", "nested deeper than 40 levels"),
        (f"name: {'{a: ' * 5000}\n", "nested deeper than 40 levels"),
        (f"name:\n  {'- ' * 5000}x\n", "nested deeper than 40 levels"),
        (f"name: {'x' * 40_000}é\n", "longer than 32 KiB"),
    ],
)
def test_what_would_take_the_machine_is_refused_at_once(tmp_path: Path, head: str, told: str) -> None:
    make(tmp_path, {f"{PLANS}/260101-x.md": f"---\n{head}---\n", f"{PLANS}/260102-good.md": plan_text()})
    workspace = Workspace(tmp_path)
    start = time.process_time()
    found = workspace.lint().problems
    assert len(workspace.retrieve_plans()) == 2
    assert len(workspace.propose_migration().changes) == 0
    assert time.process_time() - start < _QUICK_S
    assert [each.rule for each in found] == ["broken-yaml"]
    assert told in found[0].text
    assert found[0].remedy == "write it as a few plain fields"


def test_brackets_in_quotes_are_no_depth() -> None:
    text = f'---\nname: "{"[" * 200}"\nnote: don\'t\n---\n'
    assert front_matter.read(text, "").problems == ()


def test_a_few_aliases_are_served_and_an_anchor_that_stands_twice_is_no_news(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head = "name: &x N\ndescription: &x D\nstatus: new\ncreated: 2026-02-08\ntags: [*x]\n"
    make(tmp_path, {f"{PLANS}/260101-x.md": f"---\n{head}---\n"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workspace = Workspace(tmp_path)
        assert workspace.lint().problems == []
        assert [plan.tags for plan in workspace.retrieve_plans()] == [("D",)]
    assert capfd.readouterr() == ("", "")


@pytest.mark.req("W10")
@pytest.mark.parametrize(
    "value", ["2026-02-08T10:00:00Z", "2026-02-08 10:00:00", "2026-02-08T10:00:00+02:00"]
)
def test_a_moment_is_no_date(tmp_path: Path, value: str) -> None:
    make(tmp_path, {f"{PLANS}/260101-x.md": plan_text().replace("2026-02-08", value)})
    (problem,) = Workspace(tmp_path).lint().problems
    assert (problem.line, problem.rule) == (5, "bad-date")
