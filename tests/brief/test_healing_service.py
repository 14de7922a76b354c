"""What an agent is told beside an error: only what earlier runs show, and each thing once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.config import BriefRules, Config
from archivist.projects import PROJECT_NAMES
from tests.banks import fresh_bank
from tests.samples import agent_log

REFUSED = (
    "Exit code 1\npsycopg2.OperationalError: could not connect to server: Connection refused\n"
    '\tIs the server running on host "localhost" (127.0.0.1) and accepting\n'
    "\tTCP/IP connections on port 5432?"
)
TAKEN = "Exit code 1\nError: listen EADDRINUSE: address already in use :::3000"
NOT_RUNNABLE = "Exit code 126\nbash: ./build.sh: Permission denied"
NO_DAEMON = (
    "Exit code 1\nCannot connect to the Docker daemon at unix:///var/run/docker.sock."
    " Is the docker daemon running?"
)
NO_TABLE = "Exit code 1\ndjango.db.utils.OperationalError: no such table: shop_order"
NO_RELATION = (
    'Exit code 1\ndjango.db.utils.ProgrammingError: relation "orders_order" does not exist\nLINE 1: SELECT 1'
)
INDEX_LOCKED = "Exit code 128\nfatal: Unable to create '/r/.git/index.lock': File exists."
UNSET = "Exit code 2\nerror: DATABASE_URL is not set"
Calls = Sequence[tuple[str, str, bool]]


def _learn(bank: Bank, folder: Path, run: str, calls: Calls) -> None:
    """Take in a finished run and reflect on it."""
    bank.runs.finish(agent_log(folder / f"{run}.jsonl", calls, session=run, project="shop"))


def _healed(bank: Bank, command: str, error: str, *, run: str = "next") -> str:
    return bank.sessions.brief_failure(run, "shop", error, tool="Bash", command=command).text


@pytest.mark.req("A12")
@pytest.mark.parametrize(
    ("command", "error", "step", "told"),
    [
        ("pytest -q tests/", REFUSED, "make db-up", "`make db-up`"),
        ("npm start", TAKEN, "kill $(lsof -ti:3000)", "`kill $(lsof -ti:3000)`"),
        ("./build.sh", NOT_RUNNABLE, "chmod +x build.sh", "`chmod +x build.sh`"),
        ("docker compose up -d", NO_DAEMON, "sudo systemctl start docker", "`sudo systemctl start docker`"),
        ("python manage.py test", NO_TABLE, "python manage.py migrate", "`python manage.py migrate`"),
        (
            "python manage.py test orders",
            NO_RELATION,
            "python manage.py migrate",
            "`python manage.py migrate`",
        ),
        ("git add -A && git commit -m wip", INDEX_LOCKED, "rm -f .git/index.lock", "`rm -f .git/index.lock`"),
    ],
)
def test_what_was_done_before_the_same_call_went_well_is_what_worked(
    bank: Bank, tmp_path: Path, command: str, error: str, step: str, told: str
) -> None:
    _learn(bank, tmp_path, "first", [(command, error, True), (step, "", False), (command, "done", False)])
    assert f"- worked in 1 run: {told}" in _healed(bank, command, error)


def test_a_variable_set_before_the_same_call_is_what_worked(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("make migrate", UNSET, True),
        ("export DATABASE_URL=sqlite:///x.db; make migrate", "ok", False),
    ]
    _learn(bank, tmp_path, "first", calls)
    assert "- worked in 1 run: `export DATABASE_URL=" in _healed(bank, "make migrate", UNSET)


def test_a_step_that_did_not_help_is_not_told(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("pytest -q tests/", REFUSED, True),
        ("make db-check", "", False),
        ("pytest -q tests/", REFUSED, True),
        ("make db-up", "", False),
        ("pytest -q tests/", "12 passed in 3.2s", False),
    ]
    _learn(bank, tmp_path, "first", calls)
    text = _healed(bank, "pytest -q tests/", REFUSED)
    assert "`make db-up`" in text
    assert "db-check" not in text


def test_a_test_that_only_fails_now_and_then_is_told_as_that(bank: Bank, tmp_path: Path) -> None:
    error = "Exit code 1\nFAILED tests/test_ws.py::test_reconnect - TimeoutError\n1 failed, 30 passed in 9s"
    calls = [("pytest -q", error, True), ("pytest -q", "31 passed in 9s", False)]
    for run in ("first", "second", "third"):
        _learn(bank, tmp_path, run, calls)
        text = _healed(bank, "pytest -q", error, run=f"after {run}")
        assert "“test_reconnect” of `pytest` times out now and then (“TimeoutError”): run it again" in text
        assert "not your bug" not in text


def test_tests_that_a_step_puts_right_are_not_called_broken(bank: Bank, tmp_path: Path) -> None:
    command = "python manage.py test"
    calls = [(command, NO_TABLE, True), ("python manage.py migrate", "OK", False), (command, "OK", False)]
    for run in ("first", "second", "third"):
        _learn(bank, tmp_path, run, calls)
    told = bank.brief(repo="shop").text
    assert "not your bug" not in told
    assert "run `python manage.py migrate` first" in told


def test_an_error_that_nothing_overcame_is_nothing_to_tell(bank: Bank, tmp_path: Path) -> None:
    _learn(bank, tmp_path, "first", [("npm start", TAKEN, True)])
    assert _healed(bank, "npm start", TAKEN) == ""
    _learn(bank, tmp_path, "second", [("npm start", TAKEN, True)])
    assert "What is known" not in _healed(bank, "npm start", TAKEN)


def test_what_only_a_lesson_advises_is_not_said_to_have_worked(bank: Bank, tmp_path: Path) -> None:
    pushed = (
        "Exit code 1\nTo github.com:x/shop.git\n ! [rejected]        main -> main (fetch first)\n"
        "error: failed to push some refs to 'github.com:x/shop.git'"
    )
    _learn(bank, tmp_path, "first", [("git push origin main", pushed, True)])
    _learn(bank, tmp_path, "second", [("git push origin main", pushed, True)])
    assert "worked" not in _healed(bank, "git push origin main", pushed)


def test_the_run_that_asks_is_no_earlier_run(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("npm run stop", "", False), ("npm start", "up", False)]
    _learn(bank, tmp_path, "mine", calls)
    assert _healed(bank, "npm start", TAKEN, run="mine") == ""
    assert "`npm run stop`" in _healed(bank, "npm start", TAKEN, run="other")


def test_the_same_is_told_once_beside_an_error_that_comes_again(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("npm run stop", "", False), ("npm start", "up", False)]
    _learn(bank, tmp_path, "first", calls)
    assert "`npm run stop`" in _healed(bank, "npm start", TAKEN)
    assert _healed(bank, "npm start", TAKEN) == ""
    assert "`npm run stop`" in _healed(bank, "npm start", TAKEN, run="another")


@pytest.mark.req("N2")
def test_what_the_hold_out_keeps_from_a_run_is_not_told_beside_its_error(tmp_path: Path) -> None:
    missing = "Exit code 1\nE   ModuleNotFoundError: No module named 'freezegun'"
    calls = [("pytest", missing, True), ("pip install freezegun", "", False), ("pytest", "1 passed", False)]
    with fresh_bank(tmp_path / "shop") as bank:
        _learn(bank, tmp_path, "first", calls)
        _learn(bank, tmp_path, "second", calls)
        assert "pip install freezegun" in _healed(bank, "pytest", missing)
    held = Config(brief=BriefRules(holdout=1.0))
    with Bank.open(tmp_path / "shop", config=held) as bank:
        bank.sessions.brief_session("held", "shop")
        told = bank.sessions.brief_failure("held", "shop", missing, tool="Bash", command="pytest")
        assert (told.text, len(told.withheld)) == ("", 1)


def test_a_lesson_about_another_kind_of_failure_only_shares_its_words(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("cargo autopilot directive get 5", "Exit code 2\nerror: unrecognized subcommand 'get'", True),
        ("cargo autopilot directive show 5", "directive", False),
    ]
    _learn(bank, tmp_path, "first", calls)
    _learn(bank, tmp_path, "second", calls)
    absent = "Exit code 127\nbash: cargo: command not found"
    assert _healed(bank, "cargo autopilot directive show 5", absent) == ""
    assert "`cargo autopilot directive show 5`" in _healed(bank, *calls[0][:2])


def test_of_several_remedies_only_that_of_the_same_mistake_is_told(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("waxwing directive get", "Exit code 2\nerror: unrecognized subcommand 'get'", True),
        ("waxwing directive show", "directive", False),
        ("waxwing issues all", "Exit code 2\nerror: unrecognized subcommand 'all'", True),
        ("waxwing issues list", "issues", False),
    ]
    _learn(bank, tmp_path, "first", calls)
    text = _healed(bank, *calls[0][:2])
    assert "Met once before." in text
    assert "waxwing directive show" in text
    assert "waxwing issues list" not in text
    other = "Exit code 2\nerror: unrecognized subcommand 'show'"
    assert "worked" not in _healed(bank, "waxwing issues show", other)
    text = _healed(bank, *calls[2][:2])
    assert "Met once before." in text
    assert "- worked in 1 run: `waxwing issues list`" in text


def test_what_helped_another_port_or_script_is_not_told(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("fuser -k 3000/tcp", "", False), ("npm start", "up", False)]
    _learn(bank, tmp_path, "first", calls)
    assert "worked" not in _healed(bank, "npm start", TAKEN.replace("3000", "8080"))
    assert "- worked in 1 run: `fuser -k 3000/tcp`" in _healed(bank, "npm start", TAKEN)


def test_what_has_failed_since_is_told_last_and_as_that(bank: Bank, tmp_path: Path) -> None:
    call, passed = "pytest -q tests/", ("pytest -q tests/", "12 passed in 3.2s", False)
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, [(call, REFUSED, True), ("make db-up", "", False), passed])
    gone = ("make db-up", "make: *** No rule to make target 'db-up'.  Stop.", True)
    _learn(bank, tmp_path, "third", [(call, REFUSED, True), gone, ("just db", "", False), passed])
    text = _healed(bank, call, REFUSED)
    assert (
        "- worked in 1 run: `just db`\n- worked in 2 runs, but not when it was tried last: `make db-up`"
        in text
    )


def test_beside_what_several_runs_proved_no_other_way_of_one_run_is_told(bank: Bank, tmp_path: Path) -> None:
    call, passed = "pytest -q tests/", ("pytest -q tests/", "12 passed in 3.2s", False)
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, [(call, REFUSED, True), ("make db-up", "", False), passed])
    _learn(bank, tmp_path, "third", [(call, REFUSED, True), ("just db", "", False), passed])
    text = _healed(bank, call, REFUSED)
    assert "- worked in 2 runs: `make db-up`" in text
    assert "just db" not in text


def test_what_a_run_did_besides_the_known_remedy_is_not_told(bank: Bank, tmp_path: Path) -> None:
    call, error = "hk install", "bash: hk: command not found"
    for run, more in (("first", "src/a.rs"), ("second", "docs/b.md")):
        cure = f"mise x hk -- hk install && git add {more}"
        _learn(bank, tmp_path, run, [(call, error, True), (cure, "installed", False)])
    text = _healed(bank, call, error)
    assert "mise x hk" in text
    assert "git add" not in text


def test_what_destroys_is_told_as_what_runs_did_and_only_of_several(bank: Bank, tmp_path: Path) -> None:
    error = "Exit code 1\nerror: the store is torn"
    calls = [("pilot sync", error, True), ("rm -rf data/", "", False), ("pilot sync", "ok", False)]
    _learn(bank, tmp_path, "first", calls)
    assert _healed(bank, "pilot sync", error) == ""
    _learn(bank, tmp_path, "second", calls)
    assert "- 2 runs did `rm -rf data/`, which can destroy work or data: ask before" in _healed(
        bank, "pilot sync", error, run="later"
    )


def test_what_only_shares_words_with_an_error_is_not_told(bank: Bank, tmp_path: Path) -> None:
    frequency = "Exit code 1\nE   ValueError: Invalid frequency: 12H\n1 failed in 0.3s"
    calls = [("pytest -q tests/", frequency, True)]
    for run in ("first", "second", "third"):
        _learn(bank, tmp_path, run, calls)
    bank.lessons.add("Annual figures are rounded: never sort the frequency of a series by its error")
    for error in (
        "error: linker cc not found",
        "KeyError: 'frequency'",
        "ValueError: invalid frequency given for the input series",
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "ModuleNotFoundError: No module named 'flask'",
    ):
        for repo in ("shop", "", "another"):
            assert bank.briefs.heal(error, repo=repo).text == ""


def test_what_says_nearly_the_same_as_an_error_is_told(bank: Bank, tmp_path: Path) -> None:
    _learn(bank, tmp_path, "first", [("npm start", TAKEN, True)])
    bank.lessons.add("When the linker cc is not found, install build-essential")
    bank.lessons.add("The toolshed's glue pot is empty: cannot heat the glue pot", repo="toolshed")
    assert "build-essential" in bank.briefs.heal("error: linker cc not found", repo="shop").text
    glue = "warming up\nerror: cannot heat the glue pot, it is empty\nbye"
    assert "glue pot" in bank.briefs.heal(glue, repo="toolshed").text
    # What another repository met only sounds like it.
    assert bank.briefs.heal(glue, repo="shop").text == ""


def test_a_longer_name_is_not_what_an_error_is_about(bank: Bank, tmp_path: Path) -> None:
    missing = "Exit code 1\nModuleNotFoundError: No module named 'numpy'"
    calls = [("python -m app", missing, True), ("pip install numpy", "", False), ("python -m app", "", False)]
    for run in ("first", "second"):
        bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project="pvlib-python"))
    assert "pip install numpy" in bank.briefs.heal(missing, command="python -m app", repo="pvlib-python").text
    absent = missing.replace("numpy", "pvlib")
    assert bank.briefs.heal(absent, command="python -m app", repo="another").text == ""


def test_what_runs_of_a_named_repository_did_is_told_if_it_is_asked_for(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("npm run stop", "", False), ("npm start", "up", False)]
    for run, project in (("first", "api"), ("second", "api"), ("third", "web")):
        bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project=project))
    assert "Met in 2 runs before" in bank.briefs.heal(TAKEN, command="npm start", repo="api").text
    assert "Met once before" in bank.briefs.heal(TAKEN, command="npm start", repo="web").text
    assert bank.briefs.heal(TAKEN, command="npm start", repo="shop").text == ""


def test_what_was_filed_under_a_former_name_is_told(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("npm run stop", "", False), ("npm start", "up", False)]
    for run, project in (("first", "api"), ("second", "till")):
        bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project=project))
    with bank.transaction() as writer:
        writer.set_setting(PROJECT_NAMES, json.dumps({"api": ["api", "till"]}))
    assert "worked in 2 runs: `npm run stop`" in bank.briefs.heal(TAKEN, command="npm start", repo="api").text


def test_what_was_told_before_a_session_was_compacted_may_be_told_again(bank: Bank, tmp_path: Path) -> None:
    calls = [("npm start", TAKEN, True), ("npm run stop", "", False), ("npm start", "up", False)]
    _learn(bank, tmp_path, "first", calls)
    bank.lessons.add("Invoice rounding is half up")
    prompt = "How is the rounding of an invoice done? Is it half up?"
    for _ in range(3):
        bank.sessions.brief_session("next", "another")
        assert "`npm run stop`" in _healed(bank, "npm start", TAKEN)
        assert _healed(bank, "npm start", TAKEN) == ""
        assert bank.sessions.brief_prompt("next", "another", prompt) is None


@pytest.mark.req("A12")
def test_an_error_alone_is_known_by_the_programs_that_failed_so_here(tmp_path: Path) -> None:
    """A file of a build's output does not name the command."""
    refused = "Exit code 2\nerror: unexpected argument '--jobs' found"
    with fresh_bank(tmp_path) as bank:
        for run in ("r-1", "r-2"):
            calls = [
                ("cargo test --jobs", refused, True),
                ("cargo test -j 2", "ok", False),
                ("make lint", "Exit code 2\nmake: *** No rule to make target 'lint'.  Stop.", True),
                ("make check", "ok", False),
            ]
            _learn(bank, tmp_path, run, calls)
        named = bank.briefs.heal(refused, command="cargo test --jobs", project="shop").text
        assert "`cargo test -j 2`" in named
        assert bank.briefs.heal(refused, project="shop").text == named
        assert bank.briefs.heal("error: unexpected argument '--color' found", project="shop").text == ""
        assert bank.briefs.heal(refused, project="stall").text == ""


UNKNOWN_OPTION = "Exit code 1\ncat: illegal option -- A\nusage: cat [-benstuv] [file ...]"
OPTION_CALLS: Calls = [("cat -A notes.txt", UNKNOWN_OPTION, True), ("cat -v notes.txt", "a^I", False)]


def _only_lesson(bank: Bank) -> str:
    (lesson,) = bank.lessons.latest(5)
    return lesson.short_id


def _both_doors(bank: Bank, command: str, error: str, run: str) -> str:
    asked = bank.briefs.heal(error, command=command, repo="shop").text
    return asked + _healed(bank, command, error, run=run)


@pytest.mark.req("A12")
def test_what_a_person_edited_is_told_in_their_words_and_nothing_else(bank: Bank, tmp_path: Path) -> None:
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, OPTION_CALLS)
    name = _only_lesson(bank)
    assert "worked in 2 runs: `cat -v" in _both_doors(bank, *OPTION_CALLS[0][:2], "before")
    edited = bank.lessons.edit(name, summary="cat here knows no -A: look at tabs with sed -n 1,9l")
    assert (edited.rule, edited.remedies) == ("", ())
    _learn(bank, tmp_path, "third", OPTION_CALLS)
    text = _both_doors(bank, *OPTION_CALLS[0][:2], "after")
    assert text.count("- cat here knows no -A: look at tabs with sed -n 1,9l (lesson") == 2
    assert "approved by the user, met in 3 runs" in text
    assert "cat -v" not in text


@pytest.mark.req("A12")
def test_what_a_person_forgot_is_told_beside_no_error(bank: Bank, tmp_path: Path) -> None:
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, OPTION_CALLS)
    bank.forget(_only_lesson(bank))
    _learn(bank, tmp_path, "third", OPTION_CALLS)
    assert _both_doors(bank, *OPTION_CALLS[0][:2], "after") == ""
    assert "cat -v" not in bank.brief(repo="shop").text


def test_what_one_module_was_forgotten_for_stays_known_for_another(bank: Bank, tmp_path: Path) -> None:
    def calls(module: str) -> Calls:
        missing = f"Exit code 1\nModuleNotFoundError: No module named '{module}'"
        return [
            ("python -m app", missing, True),
            (f"pip install {module}", "", False),
            ("python -m app", "", False),
        ]

    for run, module in (("r-1", "attrs"), ("r-2", "attrs"), ("r-3", "yarl"), ("r-4", "yarl")):
        _learn(bank, tmp_path, run, calls(module))
    for lesson in bank.lessons.latest(9):
        if "attrs" in lesson.summary and "yarl" not in lesson.summary:
            bank.forget(lesson.id)
    assert "pip install yarl" in _healed(bank, *calls("yarl")[0][:2])


def test_a_rule_that_a_person_typed_stays_with_new_words(bank: Bank, tmp_path: Path) -> None:
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, OPTION_CALLS)
    name = _only_lesson(bank)
    bank.lessons.edit(name, summary="cat knows no -A", rule="IF tabs matter THEN use od -c")
    edited = bank.lessons.edit(name, summary="cat has no -A on this machine")
    assert edited.rule == "IF tabs matter THEN use od -c"
    assert "cat has no -A on this machine. IF tabs matter THEN use od -c" in _healed(
        bank, *OPTION_CALLS[0][:2]
    )


def test_what_took_a_lessons_place_is_told_beside_its_error(bank: Bank, tmp_path: Path) -> None:
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, OPTION_CALLS)
    better = bank.lessons.add("Tabs are shown by sed -n 1,9l", repo="shop")
    bank.lessons.archive(_only_old(bank, better.id), better.id)
    text = _healed(bank, *OPTION_CALLS[0][:2])
    assert "Tabs are shown by sed -n 1,9l" in text
    assert "cat -v" not in text


def _only_old(bank: Bank, other: str) -> str:
    (lesson,) = (lesson for lesson in bank.lessons.latest(5) if lesson.id != other)
    return lesson.id


LEFT_THERE = (
    "Exit code 1\nerror: Cannot find module '{0}' from '/srv/shop/tmp/clones/site-{0}/a.test.ts'\n 3 fail"
)


def test_what_a_tool_left_is_known_by_the_names_of_another_run(bank: Bank, tmp_path: Path) -> None:
    for run, module in (("first", "lodash"), ("second", "cheerio")):
        _learn(bank, tmp_path, run, [("bun run test", LEFT_THERE.format(module), True)])
    for error in (LEFT_THERE.format("zod"), LEFT_THERE.format("zod").splitlines()[1]):
        text = bank.briefs.heal(error, command="bun run test", repo="shop").text
        assert "below `tmp/clones/`" in text
        assert "not your bug" in text


MOCHA = """\
  Depot
    1) closes on time


  12 passing (2s)
  1 failing

  1) Depot
       closes on time:
     Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called.
"""


def test_an_excerpt_without_the_runners_summary_finds_what_the_whole_finds(
    bank: Bank, tmp_path: Path
) -> None:
    calls = [("pnpm test", f"Exit code 1\n{MOCHA}", True), ("pnpm test", "13 passing (2s)", False)]
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, calls)
    whole = bank.briefs.heal(MOCHA, command="pnpm test", repo="shop").text
    copied = "\n".join(line.strip() for line in MOCHA.splitlines()[-3:])
    assert "run it again" in whole
    assert (
        bank.briefs.heal("\n".join(MOCHA.splitlines()[-3:]), command="pnpm test", repo="shop").text == whole
    )
    assert bank.briefs.heal(copied, command="pnpm test", repo="shop").text == whole


def test_a_refused_edit_has_one_remedy_in_all_doors(bank: Bank, tmp_path: Path) -> None:
    not_found = "String to replace not found in file."
    steps: Sequence[tuple[str, dict[str, str], str, bool]] = (
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, not_found, True),
        ("Read", {"file_path": "a.py"}, "z = 1", False),
        ("Edit", {"file_path": "a.py", "old_string": "z", "new_string": "y"}, "ok", False),
    )
    for run in ("first", "second", "third"):
        lines: list[dict[str, Any]] = [
            {"type": "system", "subtype": "init", "cwd": "/home/x/shop", "model": "m", "tools": []}
        ]
        for number, (tool, given, output, failed) in enumerate(steps):
            name = f"t{number}"
            call = {"type": "tool_use", "id": name, "name": tool, "input": given}
            answer = {"type": "tool_result", "tool_use_id": name, "content": output, "is_error": failed}
            lines.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}})
            lines.append({"type": "user", "message": {"role": "user", "content": [answer]}})
        lines.append({"type": "result", "subtype": "success", "is_error": False})
        log = tmp_path / f"{run}.jsonl"
        log.write_text("".join(json.dumps({**line, "session_id": run}) + "\n" for line in lines))
        bank.runs.finish(log)
    (lesson,) = (each for each in bank.lessons.latest(9) if "Edit tool" in each.summary)
    beside = bank.sessions.brief_failure("next", "shop", not_found, tool="Edit").text
    assert lesson.remedies[0] in lesson.summary
    assert lesson.remedies[0] in beside
    assert "then edit" not in beside


TO_CLEAN = ("rm -rf tmp/clones/", "", False)


def _learn_leftovers(bank: Bank, folder: Path) -> None:
    """Two runs met files that a tool left, and each removed them: a guess about missing modules."""
    for run, module in (("first", "lodash"), ("second", "@testing-library/react")):
        error = LEFT_THERE.format(module)
        passed = ("bun run test", " 12 pass\n 0 fail", False)
        _learn(bank, folder, run, [("bun run test", error, True), TO_CLEAN, passed])


@pytest.mark.req("A12")
@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("bun run test", "error: Cannot find package 'cheerio' from '/srv/shop/src/remediation/engine.ts'"),
        ("bun run test", "error: Cannot find package 'lodash' from '/srv/shop/src/remediation/engine.ts'"),
        ("node x.js", "Error: Cannot find module 'react'"),
        ("node x.js", "Error: Cannot find module 'lodash'"),
    ],
)
def test_a_lesson_that_acquits_stands_only_beside_what_it_names(
    bank: Bank, tmp_path: Path, command: str, error: str
) -> None:
    _learn_leftovers(bank, tmp_path)
    assert "not your bug" in bank.brief(repo="shop").text
    assert "not your bug" not in _healed(bank, command, f"Exit code 1\n{error}\n 3 fail")


@pytest.mark.req("A12")
@pytest.mark.parametrize("name", ["'@octokit/rest'", '"@octokit/rest"', "@octokit/rest"])
@pytest.mark.parametrize("what", ["module", "package"])
def test_a_missing_module_is_the_same_however_it_is_quoted(
    bank: Bank, tmp_path: Path, what: str, name: str
) -> None:
    _learn_leftovers(bank, tmp_path)
    error = f"Exit code 1\nerror: Cannot find {what} {name} from /srv/shop/tmp/clones/b/a.test.ts\n 1 fail"
    assert "below `tmp/clones/`" in _healed(bank, "git commit -m x", error)


@pytest.mark.req("A12")
@pytest.mark.parametrize("error", ["x", "?", "42", "a b", "Exit code 1", "error: 1"])
def test_an_error_that_says_nothing_is_met_by_nothing(bank: Bank, tmp_path: Path, error: str) -> None:
    hollow = [("git commit -m x", "Exit code 1", True), ("rm -rf tmp/clones/", "", False)]
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, [*hollow, ("git commit -m x", "1 file changed", False)])
    assert bank.briefs.heal("Exit code 1", command="git commit -m x", repo="shop").text
    assert bank.briefs.heal(error, repo="shop").text == ""


@pytest.mark.req("A12")
def test_a_corrected_remedy_stays_corrected_however_long_nothing_failed(bank: Bank, tmp_path: Path) -> None:
    for run in ("first", "second"):
        _learn(bank, tmp_path, run, OPTION_CALLS)
    (lesson,) = bank.lessons.latest(5)
    bank.lessons.edit(lesson.id, summary="on macOS `cat -A` is `cat -vet`")
    for number in range(25):
        _learn(bank, tmp_path, f"quiet-{number}", [("ls", "a.py", False)])
    text = _healed(bank, *OPTION_CALLS[0][:2])
    assert "`cat -vet` (lesson m-001, approved by the user" in text
    assert "worked in" not in text
