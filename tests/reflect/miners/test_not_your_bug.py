"""Tests that fail without the new code's fault."""

from __future__ import annotations

from archivist.reading.run import RunReading

from .scripted import edit, learnt, one, run, sh

OLD = (
    "E       TypeError: CliRunner.__init__() got an unexpected keyword argument 'mix_stderr'\n"
    "FAILED test/cli/test_run.py::test_run - TypeError: CliRunner.__init__() got an u...\n1 failed in 0.3s\n"
)
OLD_TEST = sh("python -m pytest test/cli/test_run.py", OLD, 1)
CHANGE = edit("/srv/widget/src/core.py", "a", "b")


def _blamed(*runs: RunReading) -> bool:
    return any("not-your-bug" in each.tags for each in learnt(*runs))


def test_a_failure_before_any_change_in_two_tasks_is_not_yours() -> None:
    first, second = run(OLD_TEST, CHANGE, task="Add a"), run(OLD_TEST, CHANGE, name="run-2", task="Add b")
    assert learnt(first) == []
    lesson = one(first, second)
    assert lesson.summary.startswith("tests under `test/cli` fail before any change (“TypeError: CliRunner")
    assert lesson.summary.endswith("not your bug")


def test_stashing_first_shows_it_too() -> None:
    stashed = sh("git stash && python -m pytest test/cli/test_run.py", OLD, 1)
    assert "before any change" in one(run(CHANGE, OLD_TEST), run(CHANGE, stashed, name="run-2")).summary


def test_what_another_way_to_run_it_overcame_is_no_bug_at_all() -> None:
    output = (
        "FAILED tests/test_session.py::test_login_count - AssertionError: assert 2 == 1\n1 failed in 3s\n"
    )
    fails = sh("pytest -q -n 4", output, 1)
    cured = run(fails, sh("pytest -q -n 4 --dist loadfile", "41 passed in 3.9s"), task="Run the suite")
    (met,) = cured.met
    assert met.cure is not None
    assert met.cure.remedy.text == "pytest -q -n 4 --dist loadfile"
    assert not _blamed(cured)
    assert not _blamed(cured, run(fails, name="run-2", task="Add totals"))


def test_leaving_the_failing_test_out_is_no_cure() -> None:
    for other in ("--deselect test_run", "-x test/core", "-k other"):
        (met,) = run(OLD_TEST, sh(f"{OLD_TEST['text']} {other}", "3 passed in 0.3s")).met
        assert met.cure is None


def test_what_a_step_overcame_in_one_run_is_no_bug_in_the_next() -> None:
    refused = (
        "E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
    )
    fails = sh("pytest tests -q", f"{refused}\n1 error in 0.3s", 1)
    cured = run(fails, sh("make redis-up"), sh("pytest tests -q", "6 passed in 2s"), task="Add a")
    later = (run(fails, name=f"run-{task}", task=task) for task in ("Add b", "Add c"))
    assert not _blamed(cured, *later)


def test_what_went_well_in_a_later_untouched_run_was_put_right() -> None:
    green = sh("python -m pytest test/cli/test_run.py 2>&1 | tail -3", "1 passed in 0.3s")
    first, third = run(OLD_TEST, task="Add a"), run(OLD_TEST, name="run-3", task="Add c")
    assert _blamed(first, third)
    assert not _blamed(first, run(green, name="run-2", task="Add b"), third)


def test_what_each_task_mended_with_its_own_change_was_its_own() -> None:
    mended = sh("python -m pytest test/cli/test_run.py", "1 passed in 0.3s")
    runs = [run(CHANGE, OLD_TEST, CHANGE, mended, name=task, task=task) for task in ("Add a", "Add b")]
    assert not _blamed(*runs)


def test_a_test_that_the_change_mends_is_the_task() -> None:
    assert (
        learnt(run(OLD_TEST, CHANGE, sh("python -m pytest test/cli/test_run.py", "1 passed in 0.3s"))) == []
    )


def test_a_test_that_the_run_broke_is_its_own_fault() -> None:
    passed = sh("python -m pytest test/cli/test_run.py", "1 passed in 0.3s")
    assert learnt(run(passed, CHANGE, OLD_TEST)) == []


def test_the_same_failure_in_two_runs_is_not_yours_either() -> None:
    first, second = run(CHANGE, OLD_TEST), run(CHANGE, OLD_TEST, name="run-2")
    assert "fail in several runs" in one(first, second).summary


def test_failing_tests_in_general_are_no_lesson() -> None:
    vague = run(sh("cargo test", "test result: FAILED. 91 passed; 1 failed", 101))
    again = run(sh("cargo test", "test result: FAILED. 80 passed; 2 failed", 101), name="run-2")
    assert not [each for each in learnt(vague, again) if "not-your-bug" in each.tags]


def test_a_test_that_the_run_itself_wrote_is_its_own() -> None:
    written = sh("cat > test/cli/test_run.py << 'EOF'\ndef test_run(): ...\nEOF")
    assert learnt(run(written, OLD_TEST)) == []


def test_a_new_source_file_is_a_change_too() -> None:
    written = edit("/home/me/code/widget/src/new.py", "", "x = 1")
    assert not [each for each in learnt(run(written, OLD_TEST)) if "before any change" in each.summary]


def test_a_project_below_the_temporary_folder_is_a_project_too() -> None:
    change = edit("/tmp/checkouts/widget/src/core.py", "a", "b")  # noqa: S108
    passed = sh("python -m pytest test/cli/test_run.py", "1 passed in 0.3s")
    assert learnt(run(OLD_TEST, change, passed)) == []


def test_the_test_that_the_task_names_is_the_task() -> None:
    for task in ("Make test/cli/test_run.py::test_run pass", "Fix the failure in test_run.py"):
        assert learnt(run(OLD_TEST, CHANGE, task=task)) == []


def test_the_same_task_tried_twice_is_no_second_witness() -> None:
    tries = run(CHANGE, OLD_TEST, task="Fix it"), run(CHANGE, OLD_TEST, task="Fix it", name="run-2")
    assert learnt(*tries) == []
    other = run(CHANGE, OLD_TEST, task="Fix something else", name="run-3")
    assert "fail in several runs" in one(*tries, other).summary
