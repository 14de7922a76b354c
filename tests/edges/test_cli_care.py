"""The command line among odd things: texts that steer terminals, closed outputs, two banks."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.edges.cli.output import fit_widths
from archivist.records.lesson import LONGEST_CHARACTERS
from tests.conftest import Command, Ran
from tests.samples import MISSING_MODULE, agent_log, run_lines, write_jsonl

ARCHIVIST = str(Path(sys.executable).parent / "archivist")
STEERING = "copy \x1b]52;c;cHduZWQ=\x07\x1b[2Jfrobnicate \x9b2J \u202egnp.exe"
# What a terminal, or the eye of its reader, would obey.
OBEYED = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _on_terminal(words: list[str], cwd: Path, answer: bytes = b"", columns: int = 80) -> Ran:
    """Run the command with a terminal on all sides."""
    ours, theirs = pty.openpty()
    # Colours are our own control characters; what is printed besides must have none.
    env = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    ran = subprocess.Popen(
        [ARCHIVIST, *words], cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, answer)
    said = b""
    # A terminal whose last user has gone ends with an error.
    while True:
        try:
            said += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    return Ran(ran.wait(60), said.decode().replace("\r\n", "\n"), "")


def _shell(line: str, cwd: Path) -> Ran:
    done = subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


# Texts that steer


@pytest.mark.parametrize(
    "words",
    [["lessons", "list"], ["lessons", "show", "m-001"], ["brief"], ["recall", "frobnicate"],
     ["lessons", "history", "m-001"], ["brief", "--task", "frobnicate"], ["brief", "--format", "yaml"]],
)  # fmt: skip
def test_a_lesson_does_not_steer_the_terminal(bank_cli: Command, project: Path, words: list[str]) -> None:
    with Bank.open(project) as bank:
        lesson = bank.lessons.add("copy and frobnicate")
    line = {"id": "m-002", "description": STEERING, "ts": "2026-04-03T14:00:00Z", "type": "preference"}
    write_jsonl(project / "lessons.jsonl", [line])
    assert bank_cli("import", "lessons.jsonl").code == 0
    assert lesson.short_id == "m-001"
    shown = _on_terminal([word.replace("m-001", "m-002") for word in words], project, columns=200)
    assert shown.code == 0
    assert "frobnicate" in shown.out
    assert OBEYED.findall(shown.out) == []


def test_a_captured_log_does_not_steer_the_terminal(bank_cli: Command, project: Path) -> None:
    events = [
        {"episode": {"id": "run-esc", "task": STEERING}},
        {"run": "run-esc", "seq": 1, "kind": "message", "text": STEERING, "time": "2026-04-03T14:00:00Z"},
    ]
    write_jsonl(project / "log.jsonl", events)
    assert bank_cli("capture", "log.jsonl", "--format", "stream").code == 0
    for words in (["episodes", "list"], ["episodes", "show", "run-esc"], ["recall", "frobnicate"]):
        shown = _on_terminal(words, project)
        assert shown.code == 0
        assert OBEYED.findall(shown.out) == []


def test_json_gives_every_character_back_and_prints_none_that_steers(
    bank_cli: Command, project: Path
) -> None:
    line = {"id": "m-001", "description": STEERING + "\x7f", "ts": "2026-04-03T14:00:00Z"}
    write_jsonl(project / "lessons.jsonl", [line])
    bank_cli("import", "lessons.jsonl")
    ran = bank_cli("lessons", "show", "m-001", "--json")
    assert OBEYED.findall(ran.out) == []
    assert json.loads(ran.out)["summary"] == STEERING + "\x7f"


@pytest.mark.parametrize("actor", ["human:ada", "agent:dev"])
def test_what_is_written_is_kept_without_control_characters(bank_cli: Command, actor: str) -> None:
    ran = bank_cli("--actor", actor, "lessons", "add", STEERING, "--json")
    told: dict[str, Any] = json.loads(ran.out)
    assert told["summary"].split() == ["copy", "frobnicate", "2J", "gnp.exe"]
    assert OBEYED.findall(told["summary"]) == []
    assert not {"pwned", "chduzwq"} & set(told["tags"])


# Outputs that are closed or full


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["setup", "--yes"], ".archivist/memory.db"),
        (["setup", "--yes"], ".claude/settings.local.json"),
        (["install", "claude-code", "--local"], ".claude/settings.local.json"),
    ],
)
def test_work_is_finished_when_the_reader_of_its_output_has_gone(
    project: Path, tmp_path: Path, words: list[str], made: str
) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "HOME": str(home), "ARCHIVIST_HOME": str(home / ".archivist")}
    program = str(Path(sys.executable).parent / "archivist")
    done = subprocess.run(
        [program, *words], cwd=project, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert (project / made).is_file()
    state = next((home / ".archivist" / "state").glob("*/setup.json"), None)
    assert (state is not None) is (words[0] == "setup")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["brief", "--set", "brief.budget=1"], "it stands before the command: archivist --set … brief"),
        (
            ["lessons", "list", "--actor", "me"],
            "it stands before the command: archivist --actor … lessons list",
        ),
        (["recall", "tests", "--limit", "3"], "--max N says how many"),
        (["recall", "tests", "--colour"], "archivist recall --help lists the options"),
    ],
)
def test_an_option_that_stands_elsewhere_or_is_called_otherwise_is_named(
    bank_cli: Command, words: list[str], hint: str
) -> None:
    ran = bank_cli(*words)
    assert ran.code == 2
    assert ran.err.endswith(f"hint: {hint}\n")


def test_a_closed_output_is_no_error(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    assert _shell("archivist lessons list >&-", project) == Ran(0, "", "")
    assert _shell("archivist lessons list <&- 2>&-", project).code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", ["lessons list", "export out", "status --json", "--help"])
def test_a_full_output_is_said_in_a_line(bank_cli: Command, project: Path, words: str) -> None:
    assert bank_cli("status").code == 0
    ran = _shell(f"archivist {words} >/dev/full", project)
    assert (ran.code, ran.err.splitlines()[0]) == (
        5, "archivist: the output cannot be used: No space left on device"
    )  # fmt: skip
    assert "Traceback" not in ran.err
    assert _shell(f"archivist {words} >/dev/full 2>/dev/full", project).code == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize(
    ("words", "code"),
    [("nosuchcommand", 2), ("lessons list --bogus", 2), ("recall zzzzqqq", 0), ("config", 0),
     ("lessons show m-999", 3), ("run start --task z", 0)],
)  # fmt: skip
def test_where_nothing_can_be_said_the_work_is_done_all_the_same(
    bank_cli: Command, project: Path, words: str, code: int
) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    heard = _shell(f"archivist {words}", project)
    ran = _shell(f"archivist {words} 2>/dev/full", project)
    assert (ran.code, bool(ran.out)) == (code, bool(heard.out))


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not ended by signals there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_run_back_that_is_reflected_on(
    bank_cli: Command, project: Path, number: signal.Signals
) -> None:
    agent_log(project / "s-1.jsonl", MISSING_MODULE, session="s-1")
    bank_cli("capture", "s-1.jsonl")
    code = (
        "import time, archivist.reflect.service as service\n"
        "service.reflect = lambda *words, **more: (print('begun', flush=True), time.sleep(60))\n"
        "from archivist.edges.cli.main import main; main(['reflect'])"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (128 + number, b"archivist: ended by a signal\n")
    assert "runs" in bank_cli("reflect").out


@pytest.mark.parametrize("words", ["verify", "export out", "recall test --json", "--help"])
def test_a_reader_that_has_gone_is_no_finding(bank_cli: Command, project: Path, words: str) -> None:
    assert bank_cli("status").code == 0
    ran = _shell(f"set -o pipefail; archivist {words} 2>&1 | true", project)
    assert (ran.code, ran.err) == (0, "")


def test_a_folder_whose_name_is_no_text_has_a_bank_like_any_other(bank_cli: Command, project: Path) -> None:
    folder = project / os.fsdecode(b"caf\xe9")
    (folder / "below").mkdir(parents=True)
    assert bank_cli("init", cwd=folder).code == 0
    assert bank_cli("lessons", "add", "Bundle pull requests", cwd=folder).code == 0
    for words in (["status"], ["doctor"], ["brief"], ["lessons", "list"]):
        ran = bank_cli(*words, cwd=folder / "below")
        assert (ran.code, ran.err) == (0, "")
    assert "Bundle" in bank_cli("brief", cwd=folder / "below").out


# Lists on terminals


def test_columns_are_cut_until_they_fit() -> None:
    assert fit_widths([5, 4, 20], 80) == [5, 4, 20]
    assert fit_widths([5, 4, 200], 40) == [5, 4, 27]
    assert fit_widths([5, 30, 8, 200], 40) == [5, 11, 8, 10]
    assert fit_widths([5, 4, 10, 7, 200], 40) == [5, 4, 6, 7, 10]
    assert fit_widths([30, 4, 200], 20) == [30, 4, 10]
    assert fit_widths([5, 4, 11, 9, 10, 200], 40) == [5, 4, 3, 7, 3, 8]


@pytest.mark.parametrize("columns", [40, 80])
def test_a_list_stays_within_a_narrow_terminal(bank_cli: Command, project: Path, columns: int) -> None:
    bank_cli("lessons", "add", "Bundle pull requests " * 20)
    shown = _on_terminal(["lessons", "list"], project, columns=columns)
    lines = shown.out.splitlines()
    assert all(len(line) <= columns for line in lines)
    assert [line.endswith("…") for line in lines[1:]] == [False, False, False, True]


def test_wide_signs_take_up_two_columns(bank_cli: Command) -> None:
    bank_cli("knowledge", "set", "规约", "导入", "absolute")
    bank_cli("knowledge", "set", "convention", "imports", "relative")
    heading, *rows = bank_cli("knowledge", "list").out.splitlines()
    wide = next(row for row in rows if row.startswith("规约"))
    at = heading.index("Sure")
    assert wide.startswith("规约/导入" + " " * (at - 9) + "1")


# Saying, forgetting and taking back


def test_the_same_words_for_the_same_place_are_one_lesson(bank_cli: Command) -> None:
    assert bank_cli("lessons", "add", "Bundle pull requests").out.startswith("m-001")
    assert bank_cli("lessons", "add", "Bundle  pull requests").out.startswith("m-001")
    assert bank_cli("lessons", "add", "Bundle pull requests", "--importance", "0.9").out.startswith("m-001")
    assert bank_cli("lessons", "add", "Bundle pull requests", "--domain", "code").out.startswith("m-002")
    told = json.loads(bank_cli("lessons", "show", "m-001", "--json").out)
    assert (told["importance"], told["frequency"], told["status"]) == (0.9, 1, "active")
    assert bank_cli("lessons", "list").out.count("Bundle") == 2
    # Two lessons for two domains, which a run is told in one line.
    assert bank_cli("brief").out.count("Bundle") == 1
    for domain in ("code", "general"):
        assert bank_cli("inject", domain).out.count("Bundle") == 1


def test_what_an_agent_suggested_is_believed_once_a_person_says_it(bank_cli: Command) -> None:
    bank_cli("--actor", "agent:dev", "lessons", "add", "Freeze the clock in tests")
    assert bank_cli("lessons", "add", "Freeze the clock in tests").out.startswith("m-001")
    told = json.loads(bank_cli("lessons", "show", "m-001", "--json").out)
    assert (told["status"], told["provenance"]) == ("active", "typed")


@pytest.mark.parametrize("actor", ["human:ada", "agent:dev"])
def test_a_lesson_is_no_longer_than_what_is_told(bank_cli: Command, actor: str) -> None:
    ran = bank_cli("--actor", actor, "lessons", "add", "word " * LONGEST_CHARACTERS)
    assert (ran.code, ran.out) == (4, "")
    assert "characters, at most 2000" in ran.err
    assert "archivist archive add or knowledge set" in ran.err
    assert bank_cli("--actor", actor, "lessons", "add", "word " * 300).code == 0
    assert bank_cli("lessons", "edit", "m-001", "--rule", "x" * 2001).code == 4


def test_a_finding_of_any_length_becomes_a_lesson_that_can_be_told(bank_cli: Command, project: Path) -> None:
    finding = {"severity": "bug", "description": "Missing null checks " * 500, "category": "code"}
    events = [
        {"run_id": "r1", "seq": 1, "ts": "2026-04-03T14:00:00Z", "type": "review.verdict",
         "data": {"archetype": "guardian", "findings": [finding]}},
    ]  # fmt: skip
    write_jsonl(project / "events.jsonl", events)
    assert bank_cli("extract", "events.jsonl").code == 0
    told = json.loads(bank_cli("lessons", "show", "m-001", "--json").out)
    assert len(told["summary"]) == LONGEST_CHARACTERS
    # The lesson has the beginning, the run's event the whole.
    assert finding["description"].startswith(told["detail"].removesuffix("…"))
    assert 7_900 < len(told["detail"]) <= 8_000


def test_known_issues_stay_within_a_budget_that_is_named(bank_cli: Command) -> None:
    for number in range(8):
        bank_cli("lessons", "add", f"Lesson {number} {'of many words ' * 10}")
    assert bank_cli("brief").out.count("Lesson") == 8
    for more in ([], ["--fence"], ["--format", "yaml"]):
        told = bank_cli("brief", "--budget", "150", *more).out
        assert 1 <= told.count("Lesson") < 8
        assert len(told) <= 150 * 4


def test_matching_keeps_what_matches(bank_cli: Command) -> None:
    for text in ("Bundle pull requests", "Freeze the clock in tests", "The logo is blue", "Pin the image"):
        bank_cli("lessons", "add", text)
    assert bank_cli("lessons", "list", "--matching", "zzzzqqq").out.count("m-0") == 0
    assert bank_cli("lessons", "list", "--matching", "quarterly revenue").out.count("m-0") == 0
    found = bank_cli("lessons", "list", "--matching", "bundling").out
    assert (found.count("m-0"), "Bundle pull" in found) == (1, True)
    assert bank_cli("recall", "zzzzqqq qwxv").err == "nothing found\n"


@pytest.mark.parametrize(
    ("make", "remove", "name", "look"),
    [
        (["knowledge", "set", "convention", "imports", "absolute"],
         ["knowledge", "remove", "convention/imports"], "convention/imports", ["knowledge", "list"]),
        (["artifacts", "register", "fix.patch", "--task", "t"],
         ["artifacts", "remove", "fix.patch"], "fix.patch", ["artifacts", "list"]),
        (["archive", "add", "First. " * 400 + "\n\n" + "Second. " * 400, "--type", "spec", "--source", "a/b"],
         ["archive", "remove", "a/b"], "a/b", ["archive", "list"]),
    ],
)  # fmt: skip
def test_what_was_removed_by_its_name_comes_back_by_it(
    bank_cli: Command, project: Path, make: list[str], remove: list[str], name: str, look: list[str]
) -> None:
    (project / "fix.patch").write_text("+1\n")
    assert bank_cli(*make).code == 0
    before = bank_cli(*look).out
    for _ in range(2):
        assert bank_cli(*remove).code == 0
        assert bank_cli(*look).out != before
        assert bank_cli("undo", name).out == f"{name}: undone\n"
        assert bank_cli(*look).out == before
    assert bank_cli("verify").code == 0
    ran = bank_cli("undo", "no/such")
    assert (ran.code, "knowledge history" in ran.err) == (3, True)


def test_a_text_is_undone_as_a_whole_version_after_version(bank_cli: Command) -> None:
    texts = ["# A\n\naaa\n\n# B\n\nbbb", "# A\n\nccc", "# A\n\nccc\n\n# D\n\nddd"]
    shown = []
    for text in texts:
        assert bank_cli("archive", "add", text, "--type", "spec", "--source", "n.md").code == 0
        shown.append(bank_cli("archive", "show", "n.md").out)
    assert len(set(shown)) == 3
    for before in (shown[1], shown[0]):
        assert bank_cli("undo", "n.md").out == "n.md: undone\n"
        assert bank_cli("archive", "show", "n.md").out == before
    assert bank_cli("undo", "n.md").out == "n.md: undone, it no longer exists\n"
    assert bank_cli("undo", "n.md").code == 3
    assert bank_cli("verify").code == 0


def test_a_path_is_undone_through_the_versions_of_its_artifact(bank_cli: Command, project: Path) -> None:
    for text in ("one", "two"):
        (project / "f").write_text(text)
        assert bank_cli("artifacts", "register", "f", "--task", "t").code == 0
    both = bank_cli("artifacts", "list", "--json").out
    assert bank_cli("artifacts", "remove", "f").code == 0
    assert bank_cli("undo", "f").out == "f: undone\n"
    assert bank_cli("artifacts", "list", "--json").out == both
    assert bank_cli("undo", "f").out == "f: undone\n"
    assert bank_cli("undo", "f").out == "f: undone, it no longer exists\n"
    assert bank_cli("undo", "f").code == 3


def test_a_name_of_several_facts_is_undone_and_erased_by_no_guess(bank_cli: Command) -> None:
    for name in "AB":
        assert bank_cli("knowledge", "set", "c", "k", f"v{name}", "--project", name).code == 0
    before = bank_cli("knowledge", "list").out
    for words in (["undo", "c/k"], ["erase", "c/k", "--yes"], ["knowledge", "remove", "c/k"]):
        ran = bank_cli(*words)
        assert (ran.code, "a fact of several projects" in ran.err) == (4, True)
    assert bank_cli("knowledge", "list").out == before
    for fact in json.loads(bank_cli("knowledge", "list", "--json").out)["facts"]:
        assert bank_cli("knowledge", "remove", fact["id"]).code == 0
    assert bank_cli("undo", "c/k").code == 4


@pytest.mark.parametrize("name", ["", "  "])
@pytest.mark.parametrize(
    "words",
    [["undo", ""], ["lessons", "history", ""], ["decay", "--run", ""],
     ["episodes", "show", ""], ["erase", "--yes", ""], ["knowledge", "remove", ""]],
)  # fmt: skip
def test_an_empty_name_means_nothing_and_is_refused(bank_cli: Command, words: list[str], name: str) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    ran = bank_cli(*words[:-1], name)
    assert (ran.code, ran.out, "is empty" in ran.err) == (4, "", True)
    assert json.loads(bank_cli("verify", "--json").out)["entries"] == 1


def test_an_unknown_event_is_answered_with_a_command_that_there_is(bank_cli: Command) -> None:
    ran = bank_cli("workspace", "transcripts", "show", "s-one#6")
    assert (ran.code, "archivist workspace transcripts list shows" in ran.err) == (3, True)


def test_forgetting_says_what_became_of_a_lesson(bank_cli: Command) -> None:
    for text in ("Bundle pull requests", "One request a change", "The logo is blue"):
        bank_cli("lessons", "add", text)
    ran = bank_cli("lessons", "forget", "m-001", "--replaced-by", "m-002")
    assert ran.out == "1 lesson superseded: m-001\n"
    assert bank_cli("lessons", "forget", "m-003").out == "1 lesson archived: m-003\n"
    ran = bank_cli("lessons", "forget", "m-003")
    assert (ran.code, ran.out, ran.err) == (0, "", "archived already: m-003\n")


def test_a_no_erases_nothing_and_is_no_interruption(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    ran = _on_terminal(["erase", "m-001"], project, answer=b"n\n")
    assert (ran.code, ran.out.endswith("nothing was erased\n"), "interrupted" in ran.out) == (0, True, False)
    assert bank_cli("lessons", "show", "m-001").code == 0


# Two banks


def test_a_brief_of_two_banks_names_each_lesson_so_that_it_is_found(bank_cli: Command) -> None:
    bank_cli("lessons", "add", "--global", "Everywhere: bundle pull requests")
    bank_cli("lessons", "add", "Only here: the logo is blue")
    told = bank_cli("brief", "--fence", "--explain")
    marks = told.out.splitlines()[0].split()[3:-1]
    assert sorted(marks) == ["global-m-001", "m-001"]
    assert {line.partition(":")[0] for line in told.err.splitlines()} == set(marks)
    for mark, words in (("global-m-001", "Everywhere"), ("m-001", "Only here")):
        assert words in bank_cli("lessons", "show", mark).out
        assert bank_cli("lessons", "history", mark).code == 0
    assert "global-m-001" in bank_cli("brief", "--format", "yaml").out
    ran = bank_cli("lessons", "forget", "m-001", "global-m-001")
    assert (ran.code, "two banks" in ran.err) == (4, True)
    assert bank_cli("lessons", "edit", "global-m-001", "--summary", "Everywhere: one request").code == 0
    assert bank_cli("undo", "global-m-001").code == 0
    assert bank_cli("lessons", "forget", "global-m-001").code == 0
    assert "Everywhere" not in bank_cli("brief").out


def test_a_lesson_of_the_global_bank_is_called_so_in_every_answer(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "--global", "Everywhere: bundle pull requests")
    bank_cli("lessons", "add", "Only here: the logo is blue")
    told = json.loads(bank_cli("run", "start", "--json", "--run", "r-1").out)["lessons"]
    assert sorted(each["id"] for each in told) == ["global-m-001", "m-001"]
    assert bank_cli("lessons", "show", "global-m-001").out.startswith("global-m-001  Everywhere")
    assert json.loads(bank_cli("lessons", "show", "global-m-001", "--json").out)["id"] == "global-m-001"
    edited = bank_cli("lessons", "edit", "global-m-001", "--summary", "Everywhere: one request").out
    assert edited == "global-m-001  Everywhere: one request\n"
    events = write_jsonl(project / "r-1.jsonl", run_lines("r-1", {"description": "Something else"}))
    assert bank_cli("extract", str(events)).code == 0
    assert "global-m-001" in bank_cli("audit", "check", "r-1").out
    report = json.loads(bank_cli("audit", "report", "--lesson", "global-m-001", "--json").out)
    assert [each["lesson"] for each in report["lessons"]] == ["global-m-001"]
    assert bank_cli("lessons", "forget", "global-m-001").out == "1 lesson archived: global-m-001\n"
    assert bank_cli("erase", "global-m-001", "--yes").code == 0
    assert bank_cli("lessons", "show", "global-m-001").code == 3
    assert bank_cli("lessons", "show", "m-001").code == 0


def test_a_run_that_begins_like_a_global_name_is_a_run(bank_cli: Command) -> None:
    assert bank_cli("run", "start", "--run", "global-check").code == 0
    assert bank_cli("erase", "global-check", "--yes").code == 0


def test_a_bank_below_another_is_made_with_a_word(bank_cli: Command, project: Path) -> None:
    below = project / "below"
    below.mkdir()
    ran = bank_cli("init", cwd=below)
    assert ran.out == "Made a bank: .archivist/memory.db\n"
    assert f"in this folder the new bank replaces {project / '.archivist/memory.db'}" in ran.err
    assert bank_cli("init", cwd=below).err == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_bank_that_cannot_be_written_still_briefs_a_run(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    folder = project / ".archivist"
    for path in (*folder.iterdir(), folder):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        ran = bank_cli("run", "start", "--run", "r1")
    finally:
        folder.chmod(0o700)
    assert (ran.code, "Bundle" in ran.out, "not recorded" in ran.err) == (0, True, True)


def test_a_bank_that_somebody_holds_still_briefs_a_run(bank_cli: Command, project: Path) -> None:
    bank_cli("lessons", "add", "Bundle pull requests")
    with Bank.open(project) as bank, bank.transaction() as writer:
        writer.set_setting("held", "by this test")
        ran = bank_cli("--set", "store.busy_timeout_s=0.2", "run", "start", "--run", "r1")
    assert (ran.code, "Bundle" in ran.out, "not recorded" in ran.err) == (0, True, True)


def test_sharing_again_takes_nothing_in(bank_cli: Command) -> None:
    bank_cli("lessons", "add", "Zebra pull requests bundle again")
    bank_cli("share", "team")
    before = json.loads(bank_cli("lessons", "history", "m-001", "--json").out)
    assert bank_cli("share", "team").out.startswith("imported 0 lessons")
    assert json.loads(bank_cli("lessons", "history", "m-001", "--json").out) == before


# Words that help


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["capture", "nosuch.jsonl"], "hint: check its name"),
        (["recall", "x", "--since", "yesterday"], "write it as 2026-04-03"),
        (["lessons", "add", ""], "hint: one sentence that says what was learnt"),
        (["export", "file/below"], "hint: check the permissions of the folder"),
        (["install", "claude-code", "--user", "--project"], "exclude each other"),
    ],
)
def test_an_error_says_what_to_do(bank_cli: Command, project: Path, words: list[str], said: str) -> None:
    (project / "file").write_text("")
    ran = bank_cli(*words)
    assert ran.code in (2, 4)
    assert said in ran.err


def test_several_logs_of_one_run_are_counted_as_one(bank_cli: Command, project: Path) -> None:
    for number in range(3):
        event = {"run": "r1", "seq": number, "kind": "message", "text": f"word {number}"}
        write_jsonl(project / f"log{number}.jsonl", [{"episode": {"id": "r1"}}, event])
    out = bank_cli("capture", "log0.jsonl", "log1.jsonl", "log2.jsonl", "--format", "stream").out
    assert re.search(r"^files +3$", out, re.MULTILINE)
    assert re.search(r"^runs +1$", out, re.MULTILINE)


def test_a_home_folder_gets_no_bank_that_nobody_would_find(archivist: Command, home: Path) -> None:
    home.mkdir(exist_ok=True)
    refused = archivist("init", cwd=home)
    assert (refused.code, "archivist init --global creates it" in refused.err) == (4, True)
    assert not (home / ".archivist").exists()
    assert archivist("init", "--global", cwd=home).code == 0


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text there")
def test_a_folder_whose_name_is_no_text_is_worked_in_as_any_other(archivist: Command, project: Path) -> None:
    folder = project / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    told = ["lessons", "add"]
    for words in (["init"], [*told, "Bundle pull requests"], [*told, "The logo is blue"], ["export", "out"],
                  ["share", "shared"]):  # fmt: skip
        assert archivist(*words, cwd=folder).code == 0
    for cwd in (".", "caf\ufffd"):
        event = {"hook_event_name": "SessionStart", "session_id": f"s-{cwd}", "source": "startup", "cwd": cwd}
        ran = archivist("hook", "claude-code", "session-start", cwd=folder, stdin=json.dumps(event).encode())
        assert (ran.code, "Bundle pull requests" in ran.out) == (0, True)
    assert not (folder / ".archivist/hooks.log").exists()
    assert archivist("erase", "m-001", "--yes", cwd=folder).code == 0
    assert "Bundle" not in "".join(each.read_text() for each in (folder / "out").iterdir())
    assert archivist("doctor", cwd=folder).code in (0, 1)


def test_a_wrong_input_is_answered_with_what_is_wrong_and_what_to_do(
    bank_cli: Command, tmp_path: Path
) -> None:
    binary, folder = tmp_path / "binary", tmp_path / "nothing"
    binary.write_bytes(bytes(range(256)) * 8)
    folder.mkdir()
    wrong: list[tuple[tuple[str, ...], int, str]] = [
        (("brief", "--for", "healer", "--error", str(binary)), 4, "it is no text"),
        (("capture", str(folder)), 4, "no logs among 0 files"),
        (("capture", "/nope.jsonl"), 4, "archivist: no such file: '/nope.jsonl'"),
        (("--set", "foo=bar", "brief"), 4, "archivist config lists the keys"),
        (("config", "set", "brief.holdout", "abc"), 4, "hint: the default is 0.0"),
        (("restore", str(binary)), 5, f"{str(binary)!r} is not a bank"),
        (("restore", "/nope"), 4, "hint: name a file that archivist backup wrote"),
        (("trust", "/nope"), 5, "hint: archivist trust --list"),
        (("import", str(folder)), 4, "hint: archivist export"),
        (("run", "finish"), 2, "hint: archivist run finish --run"),
        (("--bank", "/nope", "brief"), 0, "there is no bank at '/nope': archivist trust --list"),
        (("brief", "--repo", "nosuchrepo"), 0, "nothing to tell: "),
    ]
    for words, code, said in wrong:
        done = bank_cli(*words)
        assert (done.code, said in done.err) == (code, True), (words, done)


def test_a_current_folder_that_was_deleted_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir "{gone}"; exec "{ARCHIVIST}" brief'
    done = subprocess.run(["/bin/sh", "-c", script], cwd=gone, capture_output=True, check=False)
    assert (done.returncode, b"the current folder, which was deleted" in done.stderr) == (5, True)


@pytest.mark.parametrize("actor", ["human:ada", "orchestrator:planner", "agent:kit"])
def test_a_call_of_a_tool_acts_as_an_agent_whoever_is_named(bank_cli: Command, actor: str) -> None:
    words = ("tools", "call", "lesson_add", json.dumps({"summary": "Freeze the clock"}))
    assert bank_cli("--actor", actor, *words).code == 0
    (change, *_) = json.loads(bank_cli("ledger", "--json").out)["changes"]
    assert change["actor"] == ("agent:kit" if actor == "agent:kit" else "agent:tools")
    assert bank_cli("--actor", actor, "tools", "call", "core_update", "{}").code != 0


def test_undo_takes_back_what_a_person_did_and_leaves_what_runs_taught(
    bank_cli: Command, tmp_path: Path
) -> None:
    for run in ("r-1", "r-2", "r-3"):
        log = agent_log(tmp_path / f"{run}.jsonl", MISSING_MODULE, session=run)
        assert bank_cli("run", "finish", str(log)).code == 0
    learnt = json.loads(bank_cli("lessons", "show", "m-001", "--json").out)
    refused = bank_cli("undo", "m-001")
    assert (refused.code, "nothing of yours to undo for 'm-001'" in refused.err) == (3, True)
    assert "archivist undo m-001 --entry SEQ" in refused.err
    assert bank_cli("lessons", "edit", "m-001", "--summary", "Sync before you test").code == 0
    log = agent_log(tmp_path / "r-4.jsonl", MISSING_MODULE, session="r-4")
    assert bank_cli("run", "finish", str(log)).code == 0
    undone = bank_cli("undo", "m-001").out
    assert f"summary: “Sync before you test” → “{learnt['summary']}”" in undone
    after = json.loads(bank_cli("lessons", "show", "m-001", "--json").out)
    assert (after["summary"], after["rule"]) == (learnt["summary"], learnt["rule"])
    # What the run taught since stays.
    assert (after["frequency"], learnt["frequency"]) == (4, 3)
    assert bank_cli("undo", "m-001").code == 3
    changes = json.loads(bank_cli("lessons", "history", "m-001", "--json").out)["history"]
    seen = [row["seq"] for row in changes if row["verb"] == "see"]
    assert bank_cli("undo", "m-001", "--entry", str(seen[-1])).code == 0
    assert json.loads(bank_cli("lessons", "show", "m-001", "--json").out)["frequency"] == 3


@pytest.mark.parametrize("name", ["m-01", "m-1", "1", "m-0001"])
def test_a_short_id_is_exact(bank_cli: Command, name: str) -> None:
    assert bank_cli("lessons", "add", "Use tabs").code == 0
    refused = bank_cli("lessons", "forget", name)
    assert refused.code == 3
    assert f"no lesson '{name}'\nhint: did you mean m-001?" in refused.err
    assert bank_cli("lessons", "show", "m-001").code == 0
