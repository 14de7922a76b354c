"""Core memory is in context by itself, and playbook and rules can be files that are followed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from archivist import Bank
from archivist.brief.render import NOTICE
from archivist.config import BriefRules, Config
from archivist.core.render import fit_core
from archivist.errors import AccessError, InputError, NotFoundError
from archivist.records import Actor, ActorKind, ProposalStatus
from archivist.tools.functions import call
from tests.banks import fresh_bank
from tests.conftest import Command, TickingClock

# As long as the rules of a real project.
REAL_RULES = "# Rules\n" + "".join(
    f"- Rule {number}: check the thing before you touch it\n" for number in range(330)
)


def _start_session(archivist: Command, project: Path, session: str = "s-1") -> str:
    event = {
        "session_id": session,
        "cwd": str(project),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    ran = archivist("hook", "claude-code", "session-start", stdin=json.dumps(event).encode())
    assert ran.code == 0
    if not ran.out.strip():
        return ""
    return str(json.loads(ran.out)["hookSpecificOutput"]["additionalContext"])


@pytest.mark.req("C1", "C6")
def test_a_session_starts_with_core_memory(
    bank_cli: Command, archivist_process: Command, project: Path
) -> None:
    assert _start_session(archivist_process, project, "s-0") == ""
    bank_cli("core", "adopt", "rules", "- Never push to main", "--reason", "agreed")
    bank_cli("core", "update", "status", '{"sprint": "Ship the parser", "blockers": ["CI is down"]}')
    bank_cli("lessons", "add", "Run make fmt before a push")
    told = _start_session(archivist_process, project)
    assert told.startswith("<!-- archivist:brief ")
    assert told.index("# Core memory") < told.index("Never push to main") < told.index("CI is down")
    # The rules are the user's; what agents may write stands below the notice.
    assert told.index("Never push to main") < told.index("Information from past runs")
    assert told.index("Information from past runs") < told.index("CI is down") < told.index("make fmt")
    brief = bank_cli("brief", "--task", "push it", "--no-fence").out
    assert brief.startswith("# Core memory\n\n## Rules\n- Never push to main\n")
    assert "make fmt" in brief
    # The section of known issues is documented word by word.
    assert "Core memory" not in bank_cli("brief", "--domain", "general").out


@pytest.mark.req("C1")
def test_real_rules_fit_and_what_a_session_starts_with_is_budgeted(
    bank_cli: Command, archivist_process: Command, project: Path
) -> None:
    (project / "RULES.md").write_text(REAL_RULES, "utf-8")
    assert bank_cli("core", "follow", "rules", "RULES.md").code == 0
    bank_cli("core", "update", "status", "Ship the parser")
    view = json.loads(bank_cli("core", "show", "--json").out)
    assert 3_500 < view["tokens"] <= view["budget"]
    told = _start_session(archivist_process, project)
    assert len(told) < 7_000
    assert "Sprint: Ship the parser" in told
    assert "- Rule 0:" in told
    assert "- Rule 329:" not in told
    assert "Cut to fit: core_memory_read" in told
    assert told.rstrip().endswith("<!-- /archivist:brief -->")
    # The function has all of it, page by page.
    text, offset = "", 0
    with Bank.open(project, create=False) as bank:
        while True:
            page = call(bank, "core_memory_read", {"offset": offset})
            text += str(page["text"])
            if "next_offset" not in page:
                break
            offset = int(str(page["next_offset"]))
    assert "- Rule 329:" in text
    refused = bank_cli("core", "adopt", "rules", REAL_RULES * 2, "--reason", "more")
    assert "at most 4,500" in refused.err


def test_core_in_a_brief_is_turned_off_by_the_user(tmp_path: Path, clock: TickingClock) -> None:
    with fresh_bank(tmp_path / "p", clock=clock, config=Config(brief=BriefRules(core_tokens=0))) as bank:
        bank.core.update("status", "Ship it")
        assert "Core memory" not in bank.brief(task="ship").text


@pytest.mark.req("C1")
def test_a_role_is_briefed_with_its_own_state(bank: Bank) -> None:
    bank.core.update("role_state", "the lexer", role="maker")
    assert "the lexer" in bank.brief(task="mend it", role="maker").text
    assert "the lexer" not in bank.brief(task="mend it", role="guardian").text


def test_blocks_are_cut_between_lines_the_long_ones_last() -> None:
    texts = {"rules": "## Rules\n" + "- a rule\n" * 100, "status": "## Status\nSprint: x\n"}
    for most in range(0, 1200, 7):
        fitted = fit_core(texts, most)
        assert len(fitted) <= max(most, 0)
        assert not fitted or "Sprint: x" in fitted
        assert all(line in ("- a rule", "", NOTICE) or line[0] in "#SC" for line in fitted.splitlines())
    assert fit_core({}, 100) == ""


@pytest.mark.req("C1", "C10")
def test_a_change_of_a_followed_file_is_proposed_and_waits_for_a_person(bank: Bank) -> None:
    rules = bank.root / "RULES.md"
    rules.write_text("- Never push to main\n", "utf-8")
    bank.core_files.follow("rules", rules)
    assert bank.core.view().rules == "- Never push to main"
    assert bank.core_files.refresh() == ()
    # Whoever can push changed the file: the text that was accepted stays.
    rules.write_text("- Push to main whenever you like\n", "utf-8")
    assert [each.is_changed for each in bank.core_files.list()] == [True]
    (made,) = bank.core_files.refresh()
    assert made.reason == "RULES.md has changed"
    assert bank.core_files.refresh() == ()
    assert "Never push" in bank.core.view().rules
    assert "Never push" in bank.brief(task="push").text
    bank.proposals.accept(made.id)
    assert bank.core.view().rules == "- Push to main whenever you like"
    # What a person rejected is not proposed again.
    rules.write_text("- Obey the repository\n", "utf-8")
    (again,) = bank.core_files.refresh()
    bank.proposals.reject(again.id)
    assert bank.core_files.refresh() == ()
    assert bank.proposals.get(again.id).status is ProposalStatus.REJECTED
    bank.core_files.unfollow("rules")
    assert bank.core_files.list() == []
    assert bank.core.view().rules == "- Push to main whenever you like"
    with pytest.raises(NotFoundError):
        bank.core_files.unfollow("rules")


@pytest.mark.req("C10", "M8")
def test_only_an_approver_follows_a_file(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("- Do as I say\n", "utf-8")
    for actor in (Actor(ActorKind.AGENT, "eve"), Actor(ActorKind.ORCHESTRATOR, "lead")):
        with pytest.raises(AccessError):
            bank.acting_as(actor).core_files.follow("rules", tmp_path / "mine.md")
    with pytest.raises(InputError):
        bank.core_files.follow("status", tmp_path / "mine.md")
    with pytest.raises(InputError):
        bank.core_files.follow("rules", tmp_path / "nothing.md")
    assert bank.core.view().rules == ""


def test_followed_files_by_the_command_line(bank_cli: Command, project: Path) -> None:
    (project / "PLAY.md").write_text("Dispatch one action a cycle.\n", "utf-8")
    assert bank_cli("core", "files").err.startswith("no file is followed")
    assert "playbook  follows" in bank_cli("core", "follow", "playbook", "PLAY.md").out
    assert "as accepted" in bank_cli("core", "files").out
    (project / "PLAY.md").write_text("Dispatch two.\n", "utf-8")
    told = bank_cli("core", "files")
    assert "changed" in told.out
    assert "proposed: archivist proposals show p-002" in told.err
    (project / "PLAY.md").unlink()
    assert (
        "cannot read" in bank_cli("core", "files").out.lower()
        or "no such" in bank_cli("core", "files").out.lower()
    )
    assert bank_cli("core", "unfollow", "playbook").code == 0


@pytest.mark.req("C10")
def test_an_accepted_proposal_opens_an_issue_by_the_users_own_command(
    bank_cli: Command, project: Path, home: Path
) -> None:
    script = project.parent / "tracker.py"
    script.write_text(
        "import sys\nopen(sys.argv[2], 'a').write(sys.argv[1] + '\\n' + sys.stdin.read())\nprint('https://tracker/7')\n",
        "utf-8",
    )
    opened = project.parent / "issues.txt"
    command = f"{sys.executable} {script} {{title}} {opened}"
    bank_cli("proposals", "add", "rules", "- Never push to main", "--reason", "it broke twice")
    # A repository cannot name the command.
    (project / ".archivist" / "config.toml").write_text(
        f'[proposals]\nissue_command = "touch {opened}"\n', "utf-8"
    )
    assert "proposals.issue_command" in bank_cli("proposals", "accept", "p-001").err
    assert not opened.exists()
    (project / ".archivist" / "config.toml").unlink()
    assert "no command opens issues" in bank_cli("proposals", "issue", "p-001", "--open").err
    assert bank_cli("config", "set", "--global", "proposals.issue_command", command).code == 0
    assert "issue: https://tracker/7" in bank_cli("proposals", "accept", "p-001").err
    said = opened.read_text("utf-8")
    assert "rules" in said.splitlines()[0]
    assert "it broke twice" in said
    # One proposal has one issue.
    assert "https://tracker/7" in bank_cli("proposals", "issue", "p-001", "--open").out
    assert opened.read_text("utf-8") == said
    assert bank_cli("--actor", "agent:eve", "proposals", "issue", "p-001", "--open").code == 9
    assert home


def test_a_tracker_that_fails_does_not_undo_the_acceptance(bank_cli: Command) -> None:
    bank_cli("config", "set", "--global", "proposals.issue_command", "false")
    bank_cli("proposals", "add", "rules", "- Never push to main", "--reason", "it broke twice")
    ran = bank_cli("proposals", "accept", "p-001")
    assert ran.code == 0
    assert "proposals.issue_command failed" in ran.err
    assert "Never push" in bank_cli("core", "render").out


@pytest.mark.req("C10")
def test_the_user_may_have_the_issue_opened_when_a_change_is_proposed(
    bank_cli: Command, project: Path, home: Path
) -> None:
    script, opened = project.parent / "tracker.py", project.parent / "issues.txt"
    script.write_text(
        "import sys\nopen(sys.argv[2], 'a').write(sys.argv[1] + '\\n')\nprint('https://tracker/8')\n", "utf-8"
    )
    command = f"{sys.executable} {script} {{title}} {opened}"
    assert bank_cli("config", "set", "--global", "proposals.issue_command", command).code == 0
    agent = ("--actor", "agent:eve:qa")
    add = ("proposals", "add", "rules", "--reason", "it broke twice")
    assert "issue:" not in bank_cli(*agent, *add, "- Never push to main").err
    assert not opened.exists()
    # A repository cannot choose it.
    settings = project / ".archivist" / "config.toml"
    settings.write_text("[proposals]\nissue_when_proposed = true\n", "utf-8")
    bank_cli(*agent, *add, "- Never push to main on Fridays")
    assert not opened.exists()
    settings.unlink()
    assert bank_cli("config", "set", "--global", "proposals.issue_when_proposed", "true").code == 0
    assert "issue: https://tracker/8" in bank_cli(*agent, *add, "- Rebase first").err
    assert len(opened.read_text("utf-8").splitlines()) == 1
    # Accepting it opens no second one, and an agent cannot fill the tracker.
    (latest,) = [
        each["id"]
        for each in json.loads(bank_cli("proposals", "list", "--json").out)["proposals"]
        if "Rebase" in each["after"]
    ]
    assert "issue: https://tracker/8" in bank_cli("proposals", "accept", latest).err
    for number in range(12):
        bank_cli(*agent, *add, f"- Rebase first\n- Rule {number}")
    assert len(opened.read_text("utf-8").splitlines()) == 11
    assert home


@pytest.mark.req("C1", "C10")
def test_a_lesson_that_became_a_rule_is_told_once(bank: Bank) -> None:
    lesson = bank.lessons.add("Run `make gen` before the tests", type="pattern")
    line = f"- Run `make gen` before the tests ({lesson.short_id})"
    made = bank.proposals.propose("rules", line, reason="it was met often")
    assert bank.brief(task="test").text.count("make gen") == 1
    bank.proposals.accept(made.id)
    with pytest.raises(AccessError) as refused:
        bank.ledger.undo(made.short_id)
    assert f"proposals roll-back {made.short_id} does" in refused.value.hint
    told = bank.brief(task="test")
    assert told.text.count("make gen") == 1
    assert line in told.text
    # The run was told it all the same.
    assert [each.lesson.id for each in told.chosen] == [lesson.id]
