"""A failed command and the variant that worked."""

from __future__ import annotations

from .scripted import learnt, one, run, sh

NO_GET = "error: unrecognized subcommand 'get'"


def test_the_variant_is_named_without_the_instance() -> None:
    lesson = one(
        run(
            sh("cargo pilot task get d-004", NO_GET, 2),
            sh("cargo pilot task --help", "Usage: pilot task show"),
            sh("cargo pilot task show d-004", "d-004 open"),
        )
    )
    assert lesson.summary == (
        "widget: `cargo pilot task get <id>` fails (unrecognized subcommand 'get'): "
        "use `cargo pilot task show <id>`"
    )
    assert lesson.remedies == ("cargo pilot task show <id>",)


def test_help_is_no_remedy() -> None:
    lesson = one(run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task --help", "Usage: …")))
    assert lesson.remedies == ()
    assert lesson.summary == "widget: `cargo pilot task get <id>` fails: unrecognized subcommand 'get'"


def test_a_call_about_another_thing_is_no_remedy() -> None:
    lesson = one(
        run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task claim d-777", "claimed"))
    )
    assert lesson.remedies == ()


def test_another_failure_without_a_remedy_is_thin() -> None:
    assert learnt(run(sh("sqlite3 a.db 'select 1 from t'", "Error: in prepare, no such table: t", 1))) == []


def test_several_wrong_ways_of_one_program_are_one_lesson() -> None:
    lesson = one(
        run(
            sh("cargo pilot task get 631", NO_GET, 2),
            sh("cargo pilot task show 631", "open"),
            sh("cargo pilot list --number 31", "error: unexpected argument '--number' found", 2),
            sh("cargo pilot list", "31 open"),
        )
    )
    assert lesson.summary.count("not `cargo pilot") == 2


def test_what_git_asks_for_is_advised() -> None:
    rejected = (
        " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'origin'\n"
    )
    lesson = one(run(sh("git push origin main", rejected, 1)))
    assert "`git pull --rebase` first" in lesson.summary


def test_the_way_to_a_push_that_worked_is_told() -> None:
    rejected = (
        " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'origin'\n"
    )
    lesson = one(
        run(
            sh("git push origin main", rejected, 1),
            sh("git stash", "Saved"),
            sh("git pull --rebase origin main && git push origin main", "main -> main"),
        )
    )
    assert "git stash && git pull --rebase origin main && git push origin main" in lesson.summary


def test_a_test_run_that_came_as_far_as_its_tests_shows_the_remedy() -> None:
    refused = "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov=cart"
    failing = "FAILED tests/test_cart.py::test_total - assert 7 == 5\n1 failed, 1 passed in 0.02s"
    lesson = one(
        run(
            sh("python -m pytest -q", refused, 4),
            sh("python -m pytest -q -o addopts=", failing, 1),
            task="Make tests/test_cart.py::test_total pass",
        )
    )
    assert lesson.remedies == ("python -m pytest -q -o addopts=",)
