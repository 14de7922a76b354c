"""The commands about hot and cold memory, skills, drafts, graph and search, as a person types them."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from archivist.edges.cli.group import COMMANDS
from archivist.edges.cli.main import main
from tests.conftest import Ran
from tests.workspace.sessions import Session

Run = Callable[..., Ran]

PROFILE = """<!-- budget: 6 lines -->
# Profile

- Answers are short
- In devtools, run `pnpm test` first
- The shop deploys on Fridays,
  never on Mondays
"""
LESSON = """# Lessons

### [2026-03-01] Deployments need the maintainer

**Category:** configuration
**Tags:** docker

Ask the maintainer before `docker compose up`.

---
"""


@pytest.fixture
def root(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a workspace with hot files, an overview and a lesson; it has no bank yet."""
    files = {
        "agent/rules/common/profile.md": PROFILE,
        "resources/workspaces/devtools/OVERVIEW.md": "---\nname: DevTools\ntags: [pnpm]\n---\nSee #84.\n",
        "user/memory/workspaces/shop/lessons.md": LESSON,
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run `archivist workspace …` in that workspace."""
    assert root.is_dir()
    thresholds = gc.get_threshold()
    monkeypatch.setitem(COMMANDS, "workspace", ("workspace:workspace", ""))

    def call(*words: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(["workspace", *words])
        printed = capsys.readouterr()
        return Ran(int(str(ended.value.code or 0)), printed.out, printed.err)

    yield call
    # A command expects to be the last thing that its process does.
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.fixture
def banked(run: Run, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run it in a workspace that has a bank."""
    with pytest.raises(SystemExit):
        main(["init"])
    capsys.readouterr()
    return run


def _json(ran: Ran) -> Any:
    assert ran.code in (0, 1, 7), ran.err
    return json.loads(ran.out)


# Hot


@pytest.mark.req("W7", "W8")
def test_a_reversed_decision_is_asked_about_and_then_supersedes(run: Run, root: Path) -> None:
    decided = "Chose xstate v5 for workflow state management. Actor model and strong TypeScript support"
    later = "We no longer use xstate v5 for workflow state management; use Temporal because of durable timers"
    assert run("save", "devtools", decided).out.startswith("saved     decision")
    refused = run("save", "devtools", later)
    assert refused.out.startswith("conflict  decision")
    assert "--on-conflict supersede" in refused.err
    assert run("save", "devtools", later, "--on-conflict", "supersede").out.startswith("saved     decision")
    text = (root / "user/memory/workspaces/devtools/decisions.md").read_text("utf-8")
    assert "**Superseded by:** " in text
    held = run("learnings", "devtools").out
    assert ("Temporal" in held, "Chose xstate" in held) == (True, False)


@pytest.mark.req("W1")
def test_hot_shows_use_and_budget_and_exits_1_when_over(run: Run) -> None:
    ran = run("hot")
    assert ran.code == 1
    assert ran.out.splitlines()[:3] == [
        "File                           Lines  Budget  Tokens  Used  Note",
        "agent/rules/common/profile.md  7      6       36      117%  over budget",
        "all                            7      300     36      2%",
    ]
    assert "Demote: the least used first, just enough to come under budget" in ran.out
    assert "no runs known yet; names shop only" in ran.out
    plain = _json(run("hot", "--json"))
    assert (plain["over"], plain["files"][0]["budget_lines"]) == (True, 6)
    assert [each["line"] for each in plain["demote"]] == [6]
    assert len(plain["items"]) == 3


def test_hot_is_silent_about_nothing(run: Run, root: Path) -> None:
    (root / "agent/rules/common/profile.md").unlink()
    ran = run("hot")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("archivist: no hot files\nhint: ")


@pytest.mark.req("W1")
def test_a_rule_is_demoted_and_a_lesson_promoted(banked: Run, root: Path) -> None:
    ran = banked("hot", "demote", "profile.md:6", "--to", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "agent/rules/common/profile.md:6 → user/memory/workspaces/shop/lessons.md:12  - The shop deploys"
    )
    assert banked("hot").code == 0
    moved = _json(banked("hot", "promote", "shop/lessons.md:3", "--file", "workflow", "--json"))
    assert moved["target"] == "agent/rules/common/workflow.md"
    text = (root / "agent/rules/common/workflow.md").read_text("utf-8")
    assert text.startswith("- Deployments need the maintainer")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("hot", "demote", "h-000000", "--to", "shop"), 3, "no rule 'h-000000'"),
        (("hot", "demote", "profile.md:4", "--to", "nowhere"), 3, "no scope 'nowhere'"),
        (("hot", "promote", "m-009", "--file", "profile"), 3, "no lesson 'm-009'"),
        (("hot", "promote", "x.md:1", "--file", "profile"), 3, "no learning entry 'x.md:1'"),
        (("hot", "demote", "h-1"), 2, "Missing option '--to'"),
        (("transcripts", "show", "nobody"), 3, "no transcript 'nobody'"),
        (("transcripts", "show", "x#1"), 3, "no event 'x#1'"),
        (("drafts", "--run", "nobody"), 3, "no run 'nobody'"),
        (("search", "  "), 4, "nothing to search for"),
        (("search", "x", "--scope", "../etc"), 4, "is not a scope"),
        (("skills", "show", "nothing"), 3, "no skill 'nothing'"),
        (("skills", "save", "Bad Name", "--from", "x", "--scope", "shop"), 4, "no such file: 'x'"),
        (("graph", "--root", "/nowhere"), 2, "does not exist"),
        (("link", "emacs"), 2, "'emacs' is not one of"),
    ],
)
def test_what_cannot_be_done_says_why_and_what_to_do(
    banked: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = banked(*words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "hint: " in ran.err or code == 2


@pytest.mark.parametrize(
    "words",
    [("transcripts", "list"), ("drafts",), ("hot", "promote", "m-001", "--file", "profile")],
)
def test_what_needs_a_bank_says_so(run: Run, words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.code == 5
    assert "hint: archivist setup makes one; of archivist workspace, only drafts, " in ran.err


@pytest.mark.req("W1")
def test_rules_move_between_files_without_a_bank(run: Run, root: Path) -> None:
    assert run("hot", "demote", "profile.md:6", "--to", "shop").code == 0
    assert "Fridays" in (root / "user/memory/workspaces/shop/lessons.md").read_text("utf-8")
    assert run("hot", "promote", "shop/lessons.md:3", "--file", "workflow").code == 0
    assert not (root / ".archivist").exists()


@pytest.mark.req("W1")
def test_hot_counts_what_tools_load_by_themselves(run: Run, root: Path) -> None:
    (root / "CLAUDE.md").write_text("- a rule\n" * 400)
    ran = run("hot")
    assert ran.code == 1
    row, total = ran.out.splitlines()[2:4]
    assert row.split()[:2] == ["CLAUDE.md", "400"]
    assert row.endswith("read by claude-code, vscode")
    assert total.endswith("as claude-code loads it, over budget")
    plain = _json(run("hot", "--json"))
    assert (plain["agent"], plain["lines"]) == ("claude-code", 407)
    assert plain["files"][1]["agents"] == ["claude-code", "vscode"]


# Links


@pytest.mark.req("W2")
def test_hot_files_are_linked_and_unlinked(run: Run, root: Path) -> None:
    before = sorted(str(path) for path in root.rglob("*"))
    assert "would" not in run("link", "all", "--dry-run").out
    assert sorted(str(path) for path in root.rglob("*")) == before
    ran = run("link", "all")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].split() == ["cursor", ".cursor/rules/profile.mdc", "made", "copy"]
    assert {each["done"] for each in _json(run("link", "all", "--json"))["places"]} == {"unchanged"}
    assert run("unlink", "all").code == 0
    assert sorted(str(path) for path in root.rglob("*")) == before
    assert run("unlink", "all").err == "archivist: nothing of ours there\n"


@pytest.mark.req("W2")
def test_a_file_in_the_way_is_left_and_told_with_exit_7(run: Run, root: Path) -> None:
    (root / ".claude/rules").mkdir(parents=True)
    (root / ".claude/rules/profile.md").write_text("mine\n")
    ran = run("link", "claude-code")
    assert ran.code == 7
    assert ran.err == "archivist: .claude/rules/profile.md is left as it is: there is a file of yours\n"
    assert (root / ".claude/rules/profile.md").read_text() == "mine\n"


def test_linking_nothing_is_an_error_and_codex_has_its_notes(run: Run, root: Path) -> None:
    (root / "AGENTS.override.md").write_text("x")
    assert "Codex reads AGENTS.override.md here" in run("link", "codex").err
    run("unlink", "codex")
    (root / "agent/rules/common/profile.md").unlink()
    ran = run("link", "codex")
    assert ran.code == 4
    assert "no hot files in 'agent/rules/common'" in ran.err


@pytest.mark.req("W2")
def test_two_tools_that_read_one_file_share_its_section(run: Run, root: Path) -> None:
    (root / "AGENTS.md").write_text("# Mine\n")
    (root / "GEMINI.md").symlink_to("AGENTS.md")
    rows = [line.split(maxsplit=3) for line in run("link", "codex", "gemini").out.splitlines()[1:]]
    assert [row[1:] for row in rows if row[1].endswith("S.md") or row[1].endswith("I.md")] == [
        ["AGENTS.md", "made", "section"],
        ["GEMINI.md", "made", "section of AGENTS.md"],
    ]
    assert {each["done"] for each in _json(run("link", "codex", "gemini", "--json"))["places"]} == {
        "unchanged"
    }


# Skills


@pytest.mark.req("W16")
def test_skills_are_saved_listed_and_shown(run: Run, root: Path) -> None:
    (root / "skill.md").write_text("Run `make release`.\n")
    words = ("skills", "save", "cut-release", "--from", "skill.md", "--scope", "devtools")
    assert run(*words).code == 4
    ran = run(*words, "--description", "Use when a release is cut")
    assert ran.out == "saved: resources/workspaces/devtools/_skills/cut-release/SKILL.md\n"
    assert run("skills", "list", "devtools").out.splitlines()[1].split() == [
        "cut-release", "devtools", "Use", "when", "a", "release", "is", "cut",
    ]  # fmt: skip
    shown = _json(run("skills", "show", "cut-release", "--scope", "devtools/common", "--json"))
    assert shown["_meta"]["document_id"] == "cut-release"
    assert shown["content"] == run("skills", "show", "cut-release").out
    (root / "skill.md").write_text("---\ndescription: d\n---\nOther.\n")
    assert run(*words).code == 4
    assert run(*words, "--replace").out.startswith("replaced: ")
    assert run("skills", "list", "devtool").err.endswith("hint: did you mean 'devtools'?\n")


@pytest.mark.req("W16")
def test_a_skill_of_a_workspace_that_is_not_there_needs_create(run: Run, root: Path) -> None:
    (root / "skill.md").write_text("---\ndescription: d\n---\nRun `make release`.\n")
    words = ("skills", "save", "cut-release", "--from", "skill.md", "--scope", "nosuch")
    ran = run(*words)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == (
        "archivist: no scope 'nosuch' in this workspace\n"
        "hint: there is devtools, shop; --create makes a new one\n"
    )
    assert not (root / "resources/workspaces/nosuch").exists()
    assert run(*words, "--create").code == 0


# Cold and drafts


@pytest.fixture
def captured(banked: Run, root: Path) -> Run:
    """Lay down a transcript with a decision, and a file that is none."""
    session = Session("s-one", project="devtools")
    session.user("Fix it")
    session.sh("ls", "a.py")
    session.user("We decided to keep snake_case keys because loader and engine share them.")
    session.end()
    (root / "agent-transcripts").mkdir()
    session.write(root / "agent-transcripts" / "one.jsonl")
    (root / "agent-transcripts" / "broken.jsonl").write_text("no json\n")
    return banked


@pytest.mark.req("W9")
def test_transcripts_are_listed_captured_and_read(captured: Run) -> None:
    ran = captured("transcripts", "list")
    assert "hint: 1 transcript to capture" in ran.err
    assert "archivist: no transcripts: broken.jsonl (not a log of a known format)" in ran.err
    ran = captured("transcripts", "capture")
    assert (ran.code, ran.out) == (7, "1 transcript captured, 4 events; 0 unchanged\n")
    assert "archivist: broken.jsonl: not a log of a known format" in ran.err
    assert captured("transcripts", "capture", "one").out == "0 transcripts captured, 0 events; 1 unchanged\n"
    listed = _json(captured("transcripts", "list", "--json"))
    assert [(each["name"], each["outcome"], each["task"]) for each in listed["transcripts"]] == [
        ("one.jsonl", "success", "Fix it")
    ]
    assert listed["others"] == [{"name": "broken.jsonl", "reason": "not a log of a known format"}]
    assert captured("transcripts", "list").out.splitlines()[1].split()[:2] == ["one.jsonl", "s-one"]
    ran = captured("transcripts", "show", "broken.jsonl")
    assert (ran.code, ran.out) == (4, "")
    assert "status      success" in captured("transcripts", "show", "one").out
    assert captured("transcripts", "show", "one", "--lines", "2").out.startswith('       2  {"type": "user"')
    event = _json(captured("transcripts", "show", "s-one#2", "--json"))
    assert event["line"] == 5
    assert (
        captured("transcripts", "show", "one", "--lines", "99").err
        == "archivist: no such line in one.jsonl\n"
    )
    assert captured("transcripts", "show", "one", "--lines", "1", "--matching", "x").code == 2


@pytest.mark.req("W8")
def test_drafts_are_printed_and_saved(captured: Run, root: Path) -> None:
    ran = captured("drafts")
    assert ran.err.startswith(
        "archivist: nothing worth a draft in 0 runs\nhint: no runs yet: archivist capture"
    )
    captured("transcripts", "capture")
    ran = captured("drafts")
    assert "hint: 1 run waits for reflection, which finds more: archivist reflect" in ran.err
    assert ran.out.splitlines()[:2] == ["s-one", "  decision moment: Keep snake_case keys → devtools"]
    plain = _json(captured("drafts", "--json"))
    assert [each["kind"] for each in plain["drafts"]] == ["decisions"]
    assert (plain["runs"], plain["known"], plain["waiting"]) == (1, 1, 1)
    ran = captured("drafts", "--save")
    place = "user/memory/workspaces/devtools/decisions.md"
    assert f"saved in {place}:3: Keep snake_case keys" in ran.out
    assert "loader and engine share them" in (root / place).read_text("utf-8")
    assert captured("drafts").out == ""


# Graph and search


@pytest.mark.req("W13")
def test_the_graph_is_a_table_json_and_a_picture(run: Run, root: Path) -> None:
    ran = run("graph")
    assert ran.out.splitlines()[0].split() == ["From", "Relation", "To", "Places", "Shown", "by"]
    assert "lesson Deployments need the maintainer" in ran.out
    around = _json(run("graph", "--about", "docker", "--json"))
    assert {each["target"] for each in around["relations"]} == {"tool:docker"}
    only = _json(run("graph", "shop", "--kind", "role", "--json"))
    assert {each["kind"] for each in only["relations"]} == {"involves"}
    assert run("graph", "--max", "1").err.endswith("more relations; --max N, --about NAME, --json\n")
    assert run("graph", "--svg", "g.svg").err == "archivist: wrote g.svg\n"
    ElementTree.parse(root / "g.svg")  # noqa: S314
    assert run("graph", "--svg", "-").out == (root / "g.svg").read_text("utf-8")
    assert run("graph", "--about", "nothing at all").err == "archivist: nothing found\n"


@pytest.mark.req("W13")
def test_search_finds_by_meaning_in_all_roots_and_sees_edits(banked: Run, root: Path, tmp_path: Path) -> None:
    ran = banked("search", "who must be asked before we deploy?")
    assert "user/memory/workspaces/shop/lessons.md:3" in ran.out.splitlines()[0]
    other = tmp_path / "other" / "resources/workspaces/labs"
    other.mkdir(parents=True)
    (other / "notes.md").write_text("# Telescope\n\nThe mirror is cleaned with ethanol every spring.\n")
    hits = _json(
        banked(
            "search", "cleaning the mirror", "--root", str(root), "--root", str(tmp_path / "other"), "--json"
        )
    )["hits"]
    assert hits[0]["scope"] == "labs"
    assert hits[0]["_meta"]["root"] == "other"
    assert hits[0]["_meta"]["document_path"] == "resources/workspaces/labs/notes.md"
    assert banked("search", "cleaning the mirror with ethanol", "--scope", "shop").out == ""
    (root / "resources/workspaces/devtools/OVERVIEW.md").write_text("# DevTools\n\nZebras graze here.\n")
    assert "Zebras graze here." in banked("search", "zebras").out


@pytest.mark.req("W6", "W13")
def test_a_found_document_has_the_id_that_other_answers_give_it(banked: Run) -> None:
    (lesson,) = _json(banked("learnings", "shop", "--json"))["lessons"]
    asked = ("search", "who must be asked before we deploy?", "--scope", "shop", "--json")
    assert _json(banked(*asked))["hits"][0]["_meta"]["document_id"] == lesson["_meta"]["document_id"]


@pytest.mark.req("W13")
def test_search_finds_nothing_where_nothing_answers(banked: Run, root: Path) -> None:
    path = root / "resources/workspaces/devtools/notes.md"
    texts = ("The cache is cleared at night.", "Releases are cut on Fridays.", "Zlib compresses streams.")
    path.write_text("".join(f"# Part {at}\n\n{text}\n\n" for at, text in enumerate(texts)))
    for words in ("zzqx", "qwxyz blorptang", "chocolate cake recipe"):
        ran = banked("search", words)
        assert (ran.code, ran.out) == (0, ""), words
        assert ran.err.startswith("archivist: nothing found\nhint: ")
    first = banked("search", "when is a release made?").out.splitlines()[0]
    assert first.startswith("resources/workspaces/devtools/notes.md:5")
    ran = banked("search", "release", "--scope", "nosuch")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "archivist: no scope 'nosuch'\nhint: there is devtools, shop\n"


def test_a_word_of_the_path_alone_is_not_found(banked: Run, root: Path) -> None:
    path = root / "resources/workspaces/quixotic/notes.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Notes\n\nPlain words about nothing in particular.\n")
    assert "quixotic/notes" not in banked("search", "quixotic").out


@pytest.mark.req("W16")
def test_skills_are_linked_into_the_clients_and_removed_again(run: Run, root: Path) -> None:
    saved = ("skills", "save", "cut-release", "--scope", "shop", "--description", "Use when a release is cut")
    (root / "steps.md").write_text("Tag it.\n", "utf-8")
    assert run(*saved, "--from", str(root / "steps.md")).code == 0
    own = root / ".cursor/skills/cut-release"
    own.mkdir(parents=True)
    linked = run("link", "claude-code", "cursor")
    assert linked.code == 7
    assert "Tag it." in (root / ".claude/skills/cut-release/SKILL.md").read_text("utf-8")
    assert ".cursor/skills/cut-release is left as it is: there is a skill of yours" in linked.err
    assert [each["client"] for each in _json(run("skills", "list", "--clients", "--json"))["skills"]] == [""]
    again = _json(run("link", "claude-code", "--json"))["places"]
    assert {each["done"] for each in again} == {"unchanged"}
    assert run("unlink", "claude-code", "cursor").code == 0
    assert not (root / ".claude").exists()
    assert own.is_dir()


@pytest.mark.req("W15")
def test_superseded_entries_are_archived(run: Run, root: Path) -> None:
    run("save", "shop", "Quotes are cached for 60 seconds in Redis.", "--kind", "decision")
    changed = ("save", "shop", "Quotes are cached for 10 seconds in Redis.", "--kind", "decision")
    assert run(*changed, "--on-conflict", "supersede").code == 0
    file = root / "user/memory/workspaces/shop/decisions.md"
    before = file.read_text("utf-8")
    assert "-### " in run("archive", "shop").out
    assert file.read_text("utf-8") == before
    assert run("archive", "shop", "--write").code == 0
    archived = file.parent / "archive" / "decisions.md"
    assert "60 seconds" in archived.read_text("utf-8")
    assert "Superseded by" in archived.read_text("utf-8")
    assert "Quotes are cached for 10 seconds" in file.read_text("utf-8")
    assert "### [" in file.read_text("utf-8")
    assert "Superseded by" not in file.read_text("utf-8")
    assert "0 files" in run("archive", "shop", "--write").err
