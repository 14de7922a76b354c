"""Upkeep as a maintainer of somebody else's files needs it: nothing lost, nothing useless, nothing forced."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.workspace.documents import abstract_of, first_heading
from archivist.workspace.files_service import Topology
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem, MemoryKind, SaveResult
from archivist.workspace.topology import LintProblem, WorkspaceScope, suggest_scopes
from tests.conftest import START
from tests.workspace import spoken_pairs as spoken
from tests.workspace.spoken_pairs import Said
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, entry_text, make, plan_text

PLANS = f"{RESOURCES}/w/d/_plans"


def _migrate(root: Path) -> list[LintProblem]:
    workspace = Workspace(root)
    migration = workspace.propose_migration()
    done, left = workspace.migrate(migration.changes)
    assert [each.path for each in done] == [each.path for each in migration.changes]
    assert Workspace(root).propose_migration().changes == []
    return [*migration.problems, *left]


def _rules(root: Path, rules: WorkspaceRules | None = None) -> list[tuple[str, str]]:
    checked = Workspace(root, rules or WorkspaceRules()).lint()
    return [(each.file.rpartition("/")[2], each.rule) for each in checked.problems]


# Abstracts

ABSTRACT = """# Billing

Billing makes invoices. It runs nightly. It mails them too, see [mail](mail.md).

- VAT is rounded per line
- totals are kept in cents

| country | rate |
|---|---|
| DE | 19 |

```sh
make invoices
```
"""


@pytest.mark.req("W11")
def test_all_that_an_abstract_says_is_kept(tmp_path: Path) -> None:
    overview = "# The billing service\n\nText.\n"
    make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": overview, f"{RESOURCES}/w/ABSTRACT.md": ABSTRACT})
    assert _migrate(tmp_path) == []
    text = (tmp_path / RESOURCES / "w/OVERVIEW.md").read_text()
    assert "description: Billing makes invoices. It runs nightly.\n" in text
    assert text.endswith(f"{overview}\n## Abstract\n\n{ABSTRACT.rstrip()}\n")
    assert not (tmp_path / RESOURCES / "w/ABSTRACT.md").exists()


@pytest.mark.req("W11")
def test_an_abstract_alone_becomes_the_overview_with_everything(tmp_path: Path) -> None:
    head = "---\nname: Billing\nowner: finance\n---\n\n"
    make(tmp_path, {f"{RESOURCES}/w/ABSTRACT.md": head + ABSTRACT})
    assert _migrate(tmp_path) == []
    text = (tmp_path / RESOURCES / "w/OVERVIEW.md").read_text()
    assert text.startswith("---\nname: Billing\nowner: finance\ndescription: Billing makes invoices. It runs")
    assert text.endswith(ABSTRACT)


@pytest.mark.req("W11")
def test_an_abstract_whose_fields_differ_is_left_and_named(tmp_path: Path) -> None:
    overview = "---\nname: W\ndescription: D\nowner: ops\n---\nText.\n"
    abstract = "---\nowner: finance\n---\nShort.\n"
    make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": overview, f"{RESOURCES}/w/ABSTRACT.md": abstract})
    (problem,) = _migrate(tmp_path)
    assert (problem.rule, "'owner'" in problem.text) == ("abstract-file", True)
    assert (tmp_path / RESOURCES / "w/OVERVIEW.md").read_text() == overview
    assert (tmp_path / RESOURCES / "w/ABSTRACT.md").read_text() == abstract


# Foreign front matter


@pytest.mark.req("W10", "W11")
def test_toml_is_left_and_named(tmp_path: Path) -> None:
    text = '+++\ntitle = "A"\n+++\n\n# A\n\nWhat it is for.\n'
    make(tmp_path, {f"{PLANS}/260101-a.md": text, f"{RESOURCES}/w/OVERVIEW.md": text})
    assert {each.rule for each in _migrate(tmp_path)} == {"foreign-front-matter"}
    assert _rules(tmp_path) == [
        ("OVERVIEW.md", "foreign-front-matter"),
        ("260101-a.md", "foreign-front-matter"),
    ]
    assert (tmp_path / PLANS / "260101-a.md").read_text() == text
    assert Workspace(tmp_path).retrieve_overview("w")[0].overview.abstract == "What it is for."


@pytest.mark.req("W11")
def test_a_field_in_another_case_is_respelt_and_not_doubled(tmp_path: Path) -> None:
    head = "Name: 'A'  # ours\nDescription: What it is for.\nStatus: WIP\nCREATED: 2026-01-01\nTags: [x]\n"
    make(tmp_path, {f"{PLANS}/260101-a.md": f"---\n{head}---\nBody.\n"})
    assert _migrate(tmp_path) == []
    assert (tmp_path / PLANS / "260101-a.md").read_text() == (
        "---\nname: 'A'  # ours\ndescription: What it is for.\nstatus: in_progress\ncreated: 2026-01-01\n"
        "tags: [x]\n---\nBody.\n"
    )


@pytest.mark.req("W11")
def test_a_status_that_nobody_knows_is_left_for_lint(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/260101-a.md": plan_text().replace("status: done", "status: [a, b]")})
    assert _migrate(tmp_path) == []
    assert _rules(tmp_path) == [("260101-a.md", "bad-status")]
    make(tmp_path, {f"{PLANS}/260101-a.md": plan_text().replace("status: done", "status: [wip]")})
    assert _migrate(tmp_path) == []
    assert Workspace(tmp_path).retrieve_plans()[0].status == "in_progress"


# Descriptions and names


@pytest.mark.req("W11")
@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("# Logging\n", ""),
        ("# Logging\n\nLogging\n", ""),
        ("# Logging\n\nStatus: Completed\n", ""),
        ("# Logging\n\n**Status:** Done\n**Owner:** core\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\n[![ci](a.svg)](b) ![x](y)\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\n!!! note\n    Old text that is here.\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\n> [!WARNING]\n> Not done yet at all.\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\n- an item that\ngoes on below\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\nThe steps are as follows:\n\n- a\n\nLog lines are JSON.\n", "Log lines are JSON."),
        ("# L\n\nLog lines are JSON. To see them:\n\n- a\n\nMore.\n", "Log lines are JSON."),
        ("# L\n\nOne is here. Two is here. Three is here.\n", "One is here. Two is here."),
        ("# L\n\nReads e.g. v1.2 at once. Then it ends.\n", "Reads e.g. v1.2 at once. Then it ends."),
        ("# L\n\nvLLM is fast and `small`, see [this](x.md).\n", "vLLM is fast and small, see this."),
    ],
)  # fmt: skip
def test_a_description_tells_or_is_left_out(tmp_path: Path, body: str, description: str) -> None:
    make(tmp_path, {f"{PLANS}/260101-a.md": body})
    assert _migrate(tmp_path) == []
    (plan,) = Workspace(tmp_path).retrieve_plans()
    assert plan.description == description
    assert _rules(tmp_path) == ([] if description else [("260101-a.md", "missing-field")])


def test_a_headings_anchor_is_no_name() -> None:
    assert first_heading("## Logging setup {#logging}\n") == "Logging setup"
    assert first_heading("# Logging [](){ #logging }\n") == "Logging"
    assert (
        abstract_of("計画の目的を説明する。詳細は別の文書にある。三つ目。\n")
        == "計画の目的を説明する。 詳細は別の文書にある。"
    )


# Links and modes


@pytest.mark.req("W12")
def test_a_link_to_a_file_that_is_there_is_no_second_file(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/260101-good.md": "# Good\n\nIt is here to be read.\n"})
    (tmp_path / PLANS / "260116-in.md").symlink_to("260101-good.md")
    (tmp_path / PLANS / "260117-in.md").symlink_to("260116-in.md")
    (tmp_path / PLANS / "260118-gone.md").symlink_to("nowhere.md")
    workspace = Workspace(tmp_path)
    assert [plan.id for plan in workspace.retrieve_plans()] == ["260101-good"]
    (problem,) = workspace.problems
    assert (problem.rule, problem.remedy) == ("dangling-link", "mend the link, or remove it")
    migration = workspace.propose_migration()
    done, left = workspace.migrate(migration.changes)
    assert (len(done), len(migration.changes), left) == (1, 1, [])


def test_a_link_to_a_file_of_another_scope_is_served_there_once(tmp_path: Path) -> None:
    make(tmp_path, {f"{RESOURCES}/a/_plans/260101-a.md": plan_text("A")})
    (tmp_path / RESOURCES / "b" / "_plans").mkdir(parents=True)
    for name in ("260102-b.md", "260103-b.md"):
        (tmp_path / RESOURCES / "b" / "_plans" / name).symlink_to(
            tmp_path / RESOURCES / "a/_plans/260101-a.md"
        )
    workspace = Workspace(tmp_path)
    assert [plan.id for plan in workspace.retrieve_plans("b")] == ["260102-b"]
    assert [plan.id for plan in workspace.retrieve_plans()] == ["260101-a"]


@pytest.mark.req("W7", "W11")
def test_what_is_read_only_is_meant_so(tmp_path: Path) -> None:
    make(tmp_path, {**DOCUMENTED, f"{RESOURCES}/k/_plans/260501-x.md": "# X\n\nTo be read only.\n"})
    make(
        tmp_path, {f"{RESOURCES}/k/stock/OVERVIEW.md": "# S\n", f"{RESOURCES}/k/stock/ABSTRACT.md": "Said.\n"}
    )
    lessons, plan = (
        tmp_path / LEARNINGS / "devtools/lessons.md",
        tmp_path / RESOURCES / "k/_plans/260501-x.md",
    )
    closed = [lessons, plan, tmp_path / RESOURCES / "k/stock/OVERVIEW.md"]
    before = [path.read_bytes() for path in closed]
    for path in closed:
        path.chmod(0o444)
    workspace = Workspace(tmp_path, now=lambda: START)
    (refused,) = workspace.save_memory([MemoryItem(text="The build fails at night.")], "devtools")
    assert (refused.result, "is read-only" in refused.reason) == (SaveResult.REFUSED, True)
    migration = workspace.propose_migration()
    assert [each.path for each in migration.changes] == []
    assert [each.text for each in migration.problems] == ["the file is read-only"] * 2
    assert [path.read_bytes() for path in closed] == before
    assert (tmp_path / RESOURCES / "k/stock/ABSTRACT.md").exists()


def test_a_file_that_became_read_only_since_the_diff_is_left_and_named(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/260101-a.md": "# A\n\nIt is here to be read.\n"})
    workspace = Workspace(tmp_path)
    changes = workspace.propose_migration().changes
    (tmp_path / PLANS / "260101-a.md").chmod(0o444)
    done, (problem,) = workspace.migrate(changes)
    assert (done, problem.rule, "chmod" in problem.remedy) == ([], "not-written", True)


def test_a_file_that_is_too_large_is_named_so(tmp_path: Path) -> None:
    make(tmp_path, {f"{RESOURCES}/w/OVERVIEW.md": "x" * (16 * 1024**2 + 1)})
    (problem,) = Workspace(tmp_path).lint().problems
    assert (problem.rule, problem.text) == ("too-large", "it is larger than 16 MiB")


# Folders


@pytest.mark.parametrize("name", ["", ".", "./"])
def test_an_empty_folder_name_is_the_root(tmp_path: Path, name: str) -> None:
    make(
        tmp_path, {"docs/_plans/260101-a.md": plan_text("A"), "docs/OVERVIEW.md": "# D\n\nAbout the docs.\n"}
    )
    make(tmp_path, {f"{LEARNINGS}/docs/lessons.md": entry_text("One", "Text.")})
    workspace = Workspace(tmp_path, WorkspaceRules(resources=name))
    assert [plan.path for plan in workspace.retrieve_plans()] == ["docs/_plans/260101-a.md"]
    assert [each.overview.path for each in workspace.retrieve_overview("docs")] == ["docs/OVERVIEW.md"]
    assert len(workspace.retrieve_learnings("docs").lessons) == 1
    assert [each.file for each in workspace.lint().problems] == ["docs/OVERVIEW.md"]


def test_both_trees_may_be_one_folder(tmp_path: Path) -> None:
    make(tmp_path, {"m/w/OVERVIEW.md": "# W\n", "m/w/lessons.md": entry_text("One", "Text.")})
    workspace = Workspace(tmp_path, WorkspaceRules(resources="m", learnings="m"))
    assert len(workspace.retrieve_learnings("w").lessons) == 1
    assert [each.overview.path for each in workspace.retrieve_overview("w")] == ["m/w/OVERVIEW.md"]


@pytest.mark.req("W15")
def test_an_archive_is_no_domain(tmp_path: Path) -> None:
    make(tmp_path, {**DOCUMENTED, f"{LEARNINGS}/devtools/archive/lessons.md": entry_text("Old", "Text.")})
    assert "devtools/archive" not in [str(scope) for scope in Topology(tmp_path).scopes()]
    assert "Old" not in [
        each.entry.title for each in Workspace(tmp_path).retrieve_learnings("devtools").lessons
    ]


@pytest.mark.req("W3", "W6")
def test_an_unknown_scope_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    workspace = Workspace(make(tmp_path, DOCUMENTED))
    with pytest.raises(NotFoundError, match="no scope 'nosuch'") as caught:
        workspace.retrieve_plans("nosuch")
    assert caught.value.hint == "there is devtools, k"
    with pytest.raises(NotFoundError) as caught:
        workspace.retrieve_learnings("devtools/comon")
    assert caught.value.hint == "did you mean 'devtools/common'?"
    assert workspace.retrieve_overview("k/stock") == []
    assert workspace.retrieve_plans("devtools/common/new-one") == []


def test_the_nearest_scope_is_told_by_the_name_that_is_off() -> None:
    known = [WorkspaceScope("mcp"), WorkspaceScope("mcp", "uk"), WorkspaceScope("other", "nosuch")]
    assert suggest_scopes(WorkspaceScope("mcp", "nosuch"), known) == "there is mcp/uk"
    assert suggest_scopes(WorkspaceScope("mpc", "uk"), known) == "did you mean 'mcp'?"
    assert suggest_scopes(WorkspaceScope("mcp", "uk", "x"), known) == "'mcp/uk' has nothing below it"


# What lint says


@pytest.mark.req("W10")
@pytest.mark.parametrize(
    ("name", "created", "told"),
    [
        ("2026-01-05-Old_Plan.md", "2026-02-08", "by its date it would be 260105-old-plan.md"),
        ("20260105-x.md", "2026-02-08", "by its date it would be 260105-x.md"),
        ("260105_X.md", "2026-02-08", "by its date it would be 260105-x.md"),
        ("3d-printer.md", "2026-02-08", "by its date it would be 260208-3d-printer.md"),
        ("Größe ändern.md", "2026-02-08", "by its date it would be 260208-größe-ändern.md"),
        ("計画.md", "2026-02-08", "by its date it would be 260208-計画.md"),
        ("計画.md", "soon", "such as YYMMDD-計画.md"),
    ],
)
def test_a_better_name_keeps_the_day_and_every_letter(
    tmp_path: Path, name: str, created: str, told: str
) -> None:
    make(tmp_path, {f"{PLANS}/{name}": plan_text().replace("2026-02-08", created)})
    (problem,) = [each for each in Workspace(tmp_path).lint().problems if each.rule == "plan-name"]
    assert problem.text.endswith(told)
    if told.startswith("by"):
        make(tmp_path, {f"{PLANS}/{told.split()[-1]}": plan_text()})
        assert (told.split()[-1], "plan-name") not in _rules(tmp_path)


@pytest.mark.req("W10")
def test_fields_may_be_allowed_and_rules_ignored(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/plan.md": plan_text().replace("status:", "owner: me\nhide: x\nstatus:")})
    assert _rules(tmp_path) == [
        ("plan.md", "plan-name"),
        ("plan.md", "unknown-field"),
        ("plan.md", "unknown-field"),
    ]
    assert _rules(tmp_path, WorkspaceRules(allow_fields="owner", ignore_rules="plan-name")) == [
        ("plan.md", "unknown-field")
    ]
    assert _rules(tmp_path, WorkspaceRules(allow_fields="owner, hide", ignore_rules=" plan-name ,")) == []
    with pytest.raises(InputError, match="no rule 'plan-nam'"):
        _rules(tmp_path, WorkspaceRules(ignore_rules="plan-nam"))


@pytest.mark.req("W10")
def test_migrate_is_not_advised_where_it_refuses(tmp_path: Path) -> None:
    make(tmp_path, {f"{PLANS}/260101-a.md": "---\nname: a: b\ndescription: d\n---\n"})
    remedies = {each.rule: each.remedy for each in Workspace(tmp_path).lint().problems}
    assert remedies["missing-field"] == "add it"
    make(tmp_path, {f"{PLANS}/260101-a.md": "---\nname: a\n---\n"})
    assert (
        "migrate" in {each.rule: each.remedy for each in Workspace(tmp_path).lint().problems}["missing-field"]
    )


@pytest.mark.req("W5", "W10")
@pytest.mark.parametrize("marks", ["#", "##", "####", "######"])
def test_an_entry_with_another_heading_is_named(tmp_path: Path, marks: str) -> None:
    text = entry_text("Lost", "Text.").replace("###", marks, 1)
    make(tmp_path, {f"{LEARNINGS}/w/lessons.md": f"# Lessons\n\n{entry_text('Good', 'Text.')}{text}"})
    workspace = Workspace(tmp_path)
    workspace.retrieve_learnings("w")
    assert [each.rule for each in workspace.problems] == ["heading-level"]
    (problem,) = workspace.lint().problems
    assert (problem.rule, problem.remedy) == ("heading-level", "the heading must be ### [YYYY-MM-DD] Title")


def test_a_heading_within_an_entry_is_its_own_business(tmp_path: Path) -> None:
    text = entry_text("Good", "Text.\n\n#### 2026-01-01 What happened then\n\nMore.")
    make(tmp_path, {f"{LEARNINGS}/w/lessons.md": text})
    assert Workspace(tmp_path).lint().problems == []


# What is saved


@pytest.mark.req("W7")
@pytest.mark.parametrize("said", [*spoken.CONTRARY, *spoken.NEW])
def test_what_is_new_or_contrary_is_never_dropped(tmp_path: Path, said: Said) -> None:
    workspace = Workspace(tmp_path, now=lambda: START)
    first, second = (MemoryItem(text=text, kind=MemoryKind.LESSON) for text in said)
    workspace.save_memory([first], "w", create=True)
    (outcome,) = workspace.save_memory([second], "w", on_conflict="keep_both")
    assert outcome.result in (SaveResult.SAVED, SaveResult.MERGED)
    written = (tmp_path / LEARNINGS / "w/lessons.md").read_text().split()
    assert [
        word for word in said.new.split() if word.strip(".") not in {each.strip(".") for each in written}
    ] == []


@pytest.mark.req("W7")
def test_a_merged_text_is_kept_whole_and_known_from_then_on(tmp_path: Path) -> None:
    make(tmp_path, DOCUMENTED)
    workspace = Workspace(tmp_path, now=lambda: START)
    said = "Vite is caching stale dependencies. Delete node_modules/.vite."
    first, again = (workspace.save_memory([MemoryItem(text=said)], "devtools/common")[0] for _ in range(2))
    assert (first.result, again.result) == (SaveResult.MERGED, SaveResult.KNOWN)
    text = (tmp_path / LEARNINGS / "devtools/common/lessons.md").read_text()
    assert (
        text.count("Also [2026-04-03]: Vite is caching stale dependencies. Delete node_modules/.vite.") == 1
    )


def test_code_that_is_merged_swallows_no_entry(tmp_path: Path) -> None:
    make(tmp_path, DOCUMENTED)
    workspace = Workspace(tmp_path, now=lambda: START)
    item = MemoryItem(
        title="Vite caches stale dependencies",
        text="```sh\nrm -r node_modules/.vite\n```\n\nDelete node_modules/.vite.",
    )
    (merged,) = workspace.save_memory([item], "devtools/common")
    assert merged.result in (SaveResult.MERGED, SaveResult.SAVED)
    titles = [each.entry.title for each in Workspace(tmp_path).retrieve_learnings("devtools/common").lessons]
    assert titles[:2] == ["Vite caches stale dependencies", "Jest hangs with open handles"]
