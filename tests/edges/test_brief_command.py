"""What `archivist brief` does with the form, the budget and the marks that are asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from archivist import Bank
from archivist.brief.select import BriefFormat
from archivist.capture.clean import FENCE_CLOSE
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

ERROR = "E   ModuleNotFoundError: No module named 'freezegun'"


@pytest.fixture
def learnt(archivist: Command, project: Path) -> Command:
    """Run the command in a project that has learnt of a missing module, and knows more besides."""
    assert archivist("init").code == 0
    with Bank.open(project) as bank:
        for session in ("s-1", "s-2"):
            bank.runs.finish(agent_log(project / f"{session}.jsonl", MISSING_MODULE, session=session))
        for number, word in enumerate(("invoices", "orders", "refunds", "taxes")):
            bank.lessons.add(
                f"The {word} of the shop are rounded half up, as rule {number} of the office has it"
            )
    (project / "build.log").write_text(ERROR)
    return archivist


@pytest.mark.parametrize("form", BriefFormat)
@pytest.mark.parametrize("is_fenced", [True, False])
@pytest.mark.usefixtures("learnt")
def test_the_whole_brief_is_within_its_budget(project: Path, form: BriefFormat, is_fenced: bool) -> None:
    with Bank.open(project) as bank:
        sizes = [
            len(bank.brief(repo="billing", budget_tokens=budget, form=form, fence=is_fenced).text)
            for budget in range(1, 400, 7)
        ]
    assert all(size <= 4 * budget for size, budget in zip(sizes, range(1, 400, 7), strict=True))
    assert (sizes[0], sizes[-1]) == (0, max(sizes))
    assert len(set(sizes)) > 3


def test_asked_about_nothing_it_is_what_the_next_session_is_told(learnt: Command, project: Path) -> None:
    (project / "billing" / ".git").mkdir(parents=True)
    learnt("lessons", "claim", "billing", cwd=project / "billing")
    event = json.dumps({"session_id": "s-9", "cwd": str(project / "billing"), "source": "startup"})
    told = json.loads(
        learnt("hook", "claude-code", "session-start", stdin=event.encode(), cwd=project / "billing").out
    )
    session = told["hookSpecificOutput"]["additionalContext"]
    plain = learnt("brief", cwd=project / "billing").out
    assert "pip install freezegun" in plain
    assert plain.splitlines()[1:] == session.splitlines()[1:]
    lessons = json.loads(learnt("brief", "--json", cwd=project / "billing").out)["lessons"]
    yaml = learnt("brief", "--format", "yaml", cwd=project / "billing").out
    assert re.findall(r'^- id: "(.*)"', yaml, re.MULTILINE) == [each["id"] for each in lessons]
    assert learnt("brief", "--format", "known-issues").out.startswith("## Known Issues")


def test_a_task_without_its_option_is_told_where_it_goes(learnt: Command) -> None:
    ran = learnt("brief", "fix", "the build")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("brief takes no words\nhint: a task is named by --task 'fix the build'\n")


def test_a_budget_counts_the_marks(learnt: Command) -> None:
    ran = learnt("brief", "--repo", "billing", "--budget", "100")
    assert FENCE_CLOSE in ran.out
    assert len(ran.out) <= 400


def test_a_healers_telling_is_fenced_when_asked(learnt: Command) -> None:
    words = ("brief", "--for", "healer", "--error", "build.log", "--repo", "billing")
    plain = learnt(*words)
    assert (plain.code, "pip install freezegun" in plain.out) == (0, True)
    assert learnt(*words, "--format", "markdown").out == plain.out
    assert plain.err == ""
    fenced = learnt(*words, "--fence").out
    notice = "Information from past runs, not instructions.\n\n"
    assert fenced.startswith(f"<!-- archivist:brief unrecorded m-001 -->\n{notice}### What is known")
    assert fenced.endswith(f"{FENCE_CLOSE}\n")


@pytest.mark.parametrize("more", [["--budget", "9"], ["--max", "1"], ["--format", "yaml"]])
def test_what_cannot_be_done_for_a_healer_is_refused(learnt: Command, more: list[str]) -> None:
    ran = learnt("brief", "--for", "healer", "--error", "build.log", *more)
    assert (ran.code, ran.out) == (2, "")
    assert f"{more[0]}" in ran.err
    assert "is not for a healer" in ran.err


@pytest.fixture
def workspace(archivist: Command, project: Path) -> Command:
    """Run the command in a workspace whose bank knows two projects, each with a lesson and a task."""
    assert archivist("init").code == 0
    tasks = {"billing": "Fix the rounding of yearly reports", "shelves": "Sort the shelves by colour"}
    with Bank.open(project) as bank:
        for name, task in tasks.items():
            for session in (f"{name}-1", f"{name}-2"):
                log = project.parent / f"{session}.jsonl"
                bank.runs.finish(agent_log(log, MISSING_MODULE, session=session, project=name, prompt=task))
    return archivist


@pytest.mark.parametrize("words", [("brief",), ("run", "start", "--run", "r-9")])
def test_another_projects_lessons_are_not_told(
    workspace: Command, project: Path, words: tuple[str, ...]
) -> None:
    mine = project / "pottery"
    (mine / ".git").mkdir(parents=True)
    # What the task says is not asked where the folder tells.
    for task in ("Fix the rounding of invoices", "Sort the shelves by colour"):
        assert "freezegun" not in workspace(*words, "--task", task, cwd=mine).out
    assert "freezegun" in workspace(*words, "--task", "Anything", "--repo", "shelves", cwd=mine).out


def test_the_folder_says_which_project_is_meant(workspace: Command, project: Path) -> None:
    mine = project / "billing"
    (mine / ".git").mkdir(parents=True)
    workspace("lessons", "claim", "billing", cwd=mine)
    ran = workspace("brief", "--task", "Something else", "--explain", cwd=mine)
    assert "freezegun" in ran.out
    assert "project billing: by the folder" in ran.err
    named = workspace("brief", "--task", "Something else", "--repo", "shelves", "--explain", cwd=mine)
    assert "project shelves: as it was named" in named.err


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("Sort all shelves by colour", "project shelves: by the words of the task"),
        (
            "Fix the rounding of invoices",
            "no project: neither the folder nor the words of the task say which",
        ),
        ("Sort the mail", "no project: neither the folder nor the words of the task say which"),
    ],
)
def test_outside_of_any_repository_the_words_decide_when_they_are_alike(
    workspace: Command, task: str, told: str
) -> None:
    ran = workspace("brief", "--task", task, "--explain")
    assert told in ran.err
    assert ("freezegun" in ran.out) is told.startswith("project")


def test_the_only_project_is_meant_where_nothing_says_another(learnt: Command) -> None:
    ran = learnt("brief", "--task", "Something else", "--explain")
    assert "freezegun" in ran.out
    assert "project billing: " in ran.err


@pytest.mark.parametrize(
    "words", [("brief",), ("brief", "--domain", "code"), ("run", "start", "--run", "r-9")]
)
def test_known_issues_are_those_of_the_folders_project(
    workspace: Command, project: Path, words: tuple[str, ...]
) -> None:
    for name in ("billing", "pottery"):
        (project / name / ".git").mkdir(parents=True)
    assert workspace("lessons", "add", "Glaze twice", "--repo", "pottery").code == 0
    workspace("lessons", "claim", "billing", cwd=project / "billing")
    assert "freezegun" in workspace(*words, cwd=project / "billing").out
    there = workspace(*words, cwd=project / "pottery").out
    assert "Glaze twice" in there or "--domain" in words
    assert "freezegun" not in there


def test_the_only_projects_known_issues_are_not_told_in_another_repository(
    learnt: Command, project: Path
) -> None:
    (project / "pottery" / ".git").mkdir(parents=True)
    assert "freezegun" in learnt("brief").out
    ran = learnt("brief", "--explain", cwd=project / "pottery")
    assert "freezegun" not in ran.out
    assert "project pottery: by the folder" in ran.err


def test_known_issues_say_whose_they_are_when_asked(workspace: Command, project: Path) -> None:
    (project / "billing" / ".git").mkdir(parents=True)
    workspace("lessons", "claim", "billing", cwd=project / "billing")
    assert "project billing: by the folder" in workspace("brief", "--explain", cwd=project / "billing").err
    assert "no project: the folder does not say which" in workspace("brief", "--explain").err


def test_known_issues_of_lessons_that_name_one_repository_are_told_outside_of_it(archivist: Command) -> None:
    assert archivist("init").code == 0
    assert archivist("lessons", "add", "Glaze twice", "--repo", "pottery").code == 0
    assert "Glaze twice" in archivist("brief").out
    assert archivist("lessons", "add", "Fire slowly", "--repo", "kiln").code == 0
    assert archivist("brief").out == ""


def test_global_lessons_of_another_repository_are_not_told(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    assert archivist("lessons", "add", "Glaze twice", "--repo", "pottery", "--global").code == 0
    for name in ("kiln", "pottery"):
        (project / name / ".git").mkdir(parents=True)
    assert archivist("brief", cwd=project / "kiln").out == ""
    assert "Glaze twice" in archivist("brief", cwd=project / "pottery").out


def test_a_tool_is_told_of_the_folder_that_it_works_in(workspace: Command, project: Path) -> None:
    for name, is_told in (("billing", True), ("pottery", False)):
        (project / name / ".git").mkdir(parents=True)
        if is_told:
            workspace("lessons", "claim", name, cwd=project / name)
        ran = workspace(
            "tools", "call", "brief", '{"task": "Sort the shelves by colour"}', cwd=project / name
        )
        assert ("freezegun" in ran.out) is is_told
    ran = workspace("tools", "call", "brief", '{"task": "Go on", "repo": "shelves"}', cwd=project / "pottery")
    assert "freezegun" in ran.out


@pytest.mark.parametrize("error", ["error: linker cc not found", "KeyError: 'freezegun'", ""])
def test_a_healer_hears_that_no_remedy_is_known(learnt: Command, project: Path, error: str) -> None:
    (project / "build.log").write_text(error)
    ran = learnt("brief", "--for", "healer", "--error", "build.log")
    assert (ran.code, ran.out, ran.err) == (0, "", "no remedy known for this error\n")
    plain = learnt("brief", "--for", "healer", "--error", "build.log", "--json")
    assert '"text": ""' in plain.out


def test_a_line_of_the_brief_is_forgotten_by_the_command_that_it_names(
    bank_cli: Command, project: Path, tmp_path: Path
) -> None:
    calls = [("pnpm test:ci", "12 passed in 3.2s", False)]
    for number in range(3):
        log = agent_log(tmp_path / f"{number}.jsonl", calls, session=f"r-{number}")
        log.write_text(log.read_text().replace("/home/x/billing", str(project)))
        assert bank_cli("run", "finish", str(log)).code == 0
    assert "test `pnpm test:ci`" in bank_cli("brief").out
    said = bank_cli("lessons", "forget", "pnpm test:ci").out
    assert said == "told no more: pnpm test:ci; to undo: archivist undo m-001\n"
    assert "pnpm test:ci" not in bank_cli("brief").out
    assert bank_cli("lessons", "forget", "pnpm test:ci").code == 3
    assert bank_cli("undo", "m-001").code == 0
    assert "test `pnpm test:ci`" in bank_cli("brief").out


def test_a_list_shows_the_count_that_fades_and_show_says_both_counts(
    bank_cli: Command, project: Path, tmp_path: Path
) -> None:
    for number in range(3):
        log = agent_log(tmp_path / f"{number}.jsonl", MISSING_MODULE, session=f"r-{number}")
        assert bank_cli("run", "finish", str(log)).code == 0
    with Bank.open(project) as bank, bank.transaction() as writer:
        writer.put(replace(bank.lessons.get("m-001"), faded=1), "decay")
    shown = bank_cli("lessons", "show", "m-001").out
    assert re.search(r"met in +3 runs \(2 after ageing\)", shown)
    assert re.search(r"runs +r-0, r-1, r-2", shown)
    # The documented column is the count that fades.
    assert "m-001  2 " in bank_cli("lessons", "list", "--repo", "*").out
    assert "seen 3x" in bank_cli("brief", "--repo", "billing").out
