"""What a project's runs keep meeting."""

from __future__ import annotations

import pytest

from .scripted import edit, learnt, one, run, sh

OVERLOADED = "anthropic.OverloadedError: Overloaded"
CALL = sh(
    "widget generate docs",
    f'Traceback (most recent call last):\n  File "/opt/x/base.py", line 3, in post\n{OVERLOADED}\n',
    1,
)


def test_twice_in_the_project_is_told() -> None:
    assert "keeps failing: “anthropic.OverloadedError" in one(run(CALL), run(CALL, name="run-2")).summary


def test_what_the_run_got_to_work_does_not_keep_failing() -> None:
    mended = (CALL, edit("conf.py", "a", "b"), sh("widget generate docs", "2 files written"))
    assert "`widget` fails: “" in one(run(*mended), run(*mended, name="run-2")).summary


def test_once_is_the_tasks_own_affair() -> None:
    assert learnt(run(CALL)) == []


def test_another_project_does_not_count() -> None:
    assert learnt(run(CALL, project="acme/other"), run(CALL, name="run-2")) == []


def test_what_own_scripts_bring_out_takes_three_runs() -> None:
    script = "cat > repro.py << 'EOF'\nimport widget\nEOF\npython repro.py"
    trace = (
        'Traceback (most recent call last):\n  File "/srv/repro.py", line 1, in <module>\n    go()\n'
        '  File "/srv/widget/conf.py", line 9, in go\n    f()\n'
        "widget.Unready: Requested setting DEBUG, but settings are not configured\n"
    )
    runs = [run(sh(script, trace, 1), name=f"run-{n}") for n in range(3)]
    assert learnt(*runs[:2]) == []
    assert "settings are not configured" in one(*runs).summary


UNREADY = sh("pilot check", "Error: the index was never made", 1)


def test_what_a_step_put_right_in_two_runs_is_told_though_their_task_was_the_same() -> None:
    runs = [
        run(UNREADY, sh("make index"), sh("pilot check", "ok"), name=f"run-{n}", task="Check it")
        for n in range(2)
    ]
    assert one(*runs).summary.endswith(": run `make index` first")


@pytest.mark.parametrize("check", ["pilot check", "python3 check.py"])
def test_a_step_that_helped_with_several_objects_names_none_of_them(check: str) -> None:
    failure = "Error: the index was never made"
    runs = [
        run(
            sh(f"{check} {name}", failure, 1), sh("make index"), sh(f"{check} {name}", "ok"),
            name=f"run-{name}", task=f"Check {name}",
        )
        for name in ("alder", "basalt")
    ]  # fmt: skip
    summary = one(*runs).summary
    assert summary.startswith(f"`{check} <name>` fails")
    assert summary.endswith(": run `make index` first")


def test_what_a_task_tried_twice_fails_on_is_its_own_affair() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/srv/widget/conf.py", line 9, in go\n    f()\n'
        "ValueError: invalid widget\n"
    )
    runs = [run(sh("widget check", trace, 1), name=f"run-{n}", task="Mend it") for n in range(2)]
    assert learnt(*runs) == []


def test_a_long_message_is_cut_inside_of_its_quotation() -> None:
    words = " ".join(f"the quota of region {name}" for name in ("north", "south", "east", "west", "centre"))
    output = CALL["output"].replace("Overloaded\n", f"Overloaded: {words} is used up\n")
    call = sh("widget-generator-of-all-the-documents generate", output, 1)
    summary = one(run(call), run(call, name="run-2")).summary
    assert "keeps failing" in summary
    assert summary.endswith("…”")


def test_a_line_of_a_file_that_the_call_showed_is_no_message() -> None:
    shown = "# Skill\n- Error: require an authenticated session\nLogged in to example.com as dev"
    calls = sh("sed -n 1,40p skills/pr.md; forge auth status", shown, 1), sh("ls", "a")
    assert learnt(run(*calls), run(*calls, name="run-2"), run(*calls, name="run-3")) == []


def test_tests_that_fail_with_other_messages_are_not_one_that_keeps_failing() -> None:
    readings = []
    for number, said in enumerate(("loads the cart", "draws the map", "sends the mail")):
        log = f"FAIL src/{number}.test.ts\n● Shop panel {said}: AssertionError: expected {number} to be 7"
        calls = sh("npx vitest run", log, 1), edit("src/a.ts", "a", "b"), sh("npx vitest run", "9 passed")
        readings.append(run(*calls, name=f"run-{number}", task=f"task {number}"))
    assert [each.summary for each in learnt(*readings) if "keeps failing" in each.summary] == []
