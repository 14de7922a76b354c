"""A failed command and the variant that worked."""

from __future__ import annotations

import pytest

from archivist.lessons.gate import drop_duplicates
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.run import RunReading
from archivist.reading.wording import advice

from .scripted import Call, edit, learnt, one, run, sh

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
        "`cargo pilot task get <id>` fails (“unrecognized subcommand 'get'”): "
        "use `cargo pilot task show <id>`"
    )
    assert lesson.remedies == ("cargo pilot task show <id>",)


def test_help_is_no_remedy() -> None:
    lesson = one(run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task --help", "Usage: …")))
    assert lesson.remedies == ()
    assert lesson.summary == "`cargo pilot task get <id>` fails: “unrecognized subcommand 'get'”"


TASKS_HELP = """Work on tasks

Usage: pilot task <COMMAND>

Commands:
  list      List tasks
  show      Show one task, with a description
            that goes on below
  take, t   Take a task
  help      Print this message

Options:
  -q, --quiet  Say less
"""


def test_a_refused_word_is_told_with_those_that_the_programs_help_names() -> None:
    first = run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task --help", TASKS_HELP))
    words = (
        "`cargo pilot task get <id>` fails (“unrecognized subcommand 'get'”): "
        "available are `list`, `show` and `take`"
    )
    assert one(first).summary == words
    # A later run that did not ask for help forgets nothing.
    assert one(run(sh("cargo pilot task get d-005", NO_GET, 2), name="r2"), first).summary == words


@pytest.mark.parametrize(
    "shown",
    [
        "Usage: pilot task",
        "Commands:\n  get  Get one\n  show  Show one",
        "Commands:\n" + "".join(f"  name{chr(97 + at)}  One of many\n" for at in range(20)),
        "Commands:\n  delete-all-your-files-now  Do it\n  send-me-your-secret-keys  Do it",
    ],
)
def test_a_help_that_names_nothing_of_use_is_not_told(shown: str) -> None:
    calls = run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task --help", shown))
    assert one(calls).summary == "`cargo pilot task get <id>` fails: “unrecognized subcommand 'get'”"


def test_what_is_one_word_too_many_is_told_with_the_usage() -> None:
    def refused(name: str) -> str:
        usage = "Usage: cargo test [OPTIONS] [TESTNAME] [-- [ARGS]...]"
        return f"error: unexpected argument '{name}' found\n\n{usage}"

    first = run(sh("cargo test cart::tests::adds cart::tests::drops", refused("cart::tests::drops"), 1))
    again = run(sh("cargo test tax_sums tax_rounds", refused("tax_rounds"), 1), name="r2")
    assert one(again, first).summary == (
        "`cargo test …` fails (“unexpected argument '<name>' found”): it takes one “TESTNAME” a call"
    )


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ("cargo test [OPTIONS] [TESTNAME]...", "its usage is “cargo test [OPTIONS] [TESTNAME]...”"),
        ("cargo test <FROM> <TO>", "its usage is “cargo test <FROM> <TO>”"),
    ],
)
def test_a_usage_with_several_places_is_told_whole(usage: str, told: str) -> None:
    refused = f"error: unexpected argument 'c' found\n\nUsage: {usage}"
    calls = [run(sh("cargo test alpha beta c", refused, 1), name=name) for name in ("r1", "r2")]
    assert told in one(*calls).summary


def test_a_program_that_was_in_the_way_is_left_out() -> None:
    refused = "error: unrecognized subcommand 'npm'\n\nUsage: brief-run [OPTIONS] <COMMAND>"
    lesson = one(run(sh("brief-run npm test", refused, 2), sh("npm test", "14 passing (2s)")))
    assert lesson.summary == (
        "`brief-run npm test` fails (“unrecognized subcommand 'npm'”): leave out `brief-run`"
    )
    assert lesson.remedies == ("npm test",)


def test_a_call_about_another_thing_is_no_remedy() -> None:
    lesson = one(
        run(sh("cargo pilot task get d-004", NO_GET, 2), sh("cargo pilot task claim d-777", "claimed"))
    )
    assert lesson.remedies == ()


def test_another_failure_without_a_remedy_is_thin() -> None:
    assert learnt(run(sh("sqlite3 a.db 'select 1 from t'", "Error: in prepare, no such table: t", 1))) == []


@pytest.mark.req("N1")
def test_each_wrong_use_of_a_program_is_a_lesson_of_its_own() -> None:
    """One lesson for all that a program refuses would name the wrong one."""
    no_number = "error: unexpected argument '--number' found"
    found = learnt(
        run(
            sh("cargo pilot task get 631", NO_GET, 2),
            sh("cargo pilot task show 631", "open"),
            sh("cargo pilot list --number 31", no_number, 2),
            sh("cargo pilot list", "31 open"),
        )
    )
    assert {each.summary.partition(" fails ")[::2] for each in found} == {
        ("`cargo pilot task get <id>`", f"(“{NO_GET[7:]}”): use `cargo pilot task show <id>`"),
        ("`cargo pilot list --number <id>`", f"(“{no_number[7:]}”): use `cargo pilot list`"),
    }


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


def _not_runnable(script: str, name: str) -> RunReading:
    return run(
        sh(f"./{script}", f"/bin/bash: line 1: ./{script}: Permission denied", 126),
        sh(f"chmod +x {script}"),
        sh(f"./{script}", "ok"),
        name=name,
    )


def test_a_call_that_sends_its_caller_elsewhere_is_no_remedy() -> None:
    refused = sh("cargo run -- pilot task ready", "error: unrecognized subcommand 'ready'", 2)
    sent_on = "Error: This command requires the full runtime. Use: cargo pilot <command>"
    runs = [
        run(refused, sh("cargo run -- pilot task list --status ready", sent_on, 1), name=f"run-{number}")
        for number in range(2)
    ]
    assert all("--status ready" not in " ".join(lesson.remedies) for lesson in learnt(*runs))


def test_what_a_program_does_next_for_something_else_is_no_remedy() -> None:
    refused = sh("wrap bun run test", "error: unrecognized subcommand 'bun'", 2)
    runs = [
        run(refused, sh("wrap git status", "nothing to commit"), name=f"run-{number}") for number in range(3)
    ]
    assert all("git" not in " ".join(lesson.remedies) for lesson in learnt(*runs))


def test_another_script_is_another_lesson() -> None:
    first, second = _not_runnable("scripts/build.sh", "run-1"), _not_runnable("scripts/deploy.sh", "run-2")
    lesson = one(first, second)
    assert lesson.key != one(first).key
    assert lesson.summary == (
        "`./scripts/deploy.sh` fails (“./scripts/deploy.sh: Permission denied”): "
        "run `chmod +x scripts/deploy.sh` first"
    )
    assert drop_duplicates([one(first), lesson]) == [one(first), lesson]


@pytest.mark.parametrize(
    ("error", "step"),
    [
        ("Error: listen EADDRINUSE: address already in use :::{port}", "fuser -k {port}/tcp"),
        ("E   ConnectionRefusedError: [Errno 111] Connection refused: localhost:{port}", "make up-{port}"),
        (
            "redis.exceptions.ConnectionError: Error 111 connecting to localhost:{port}. Connection refused.",
            "make up-{port}",
        ),
    ],
)
def test_another_port_is_another_lesson(error: str, step: str) -> None:
    call = sh("make serve", "listening")
    runs = [
        run(
            sh("make serve", error.format(port=port), 1), sh(step.format(port=port)), call, name=f"run-{port}"
        )
        for port in (3000, 8080)
    ]
    lesson = one(*runs)
    assert lesson.key != one(runs[0]).key
    assert lesson.remedies == (step.format(port=8080),)
    assert "3000" not in f"{lesson.summary} {lesson.rule}"


def test_a_word_of_one_instance_is_no_part_of_what_a_program_refuses() -> None:
    refused = "error: unexpected argument '{}' found"
    runs = [
        run(sh(f"pilot test a::b {name}", refused.format(name), 2), name=f"run-{name}")
        for name in ("task::tests::one", "task::tests::two")
    ]
    assert runs[0].met[0].key == runs[1].met[0].key
    other = run(sh("pilot test --raw", refused.format("--raw"), 2))
    assert other.met[0].key != runs[0].met[0].key


def test_a_call_that_was_never_made_has_not_failed() -> None:
    # A command that ran has an exit code, and this one has none.
    cancelled = [sh("make lint", "Sibling tool call errored", is_error=True) | {"exit_code": None}] * 2
    assert learnt(run(*cancelled), run(*cancelled, name="run-2", task="another")) == []


def test_a_lesson_that_only_says_that_a_call_fails_is_none() -> None:
    def failing(error: str) -> list[RunReading]:
        return [run(sh("make pack", error, 1), name=f"run-{number}", task=str(number)) for number in (1, 2)]

    assert learnt(*failing("error: script 'pack' exited with code 1")) == []
    assert "signing key has expired" in one(*failing("error: the signing key has expired")).summary


def test_of_several_steps_the_one_that_the_error_names_has_failed() -> None:
    error = 'error: script "lint" exited with code 1'
    alone, joined = run(sh("bun run lint", error, 1)), run(sh("bun run lint && bun run test", error, 1))
    assert [met.key for met in alone.met] == [met.key for met in joined.met]


LOCKED = sh("alembic upgrade head", "sqlite3.OperationalError: database is locked", 1)
UPGRADED = sh("alembic upgrade head", "ok")


def test_what_destroys_is_no_remedy_until_a_second_run_did_it() -> None:
    reset = sh("rm -rf data/ && git reset --hard", "HEAD is now at 1")
    first = run(LOCKED, reset, UPGRADED)
    met = one(first, run(LOCKED, name="run-2", task="another"))
    assert (met.remedies, met.rule) == ((), "")
    assert "rm -rf" not in met.summary
    twice = one(first, run(LOCKED, reset, UPGRADED, name="run-2", task="another"))
    assert twice.summary.endswith(
        ": 2 runs did `rm -rf data/ && git reset --hard`, which can destroy work or data: ask before"
    )
    assert (twice.rule, twice.remedies) == ("", ())
    assert "first" not in twice.summary


def test_a_run_that_only_met_the_failure_does_not_speak_for_the_remedy() -> None:
    first = run(LOCKED, sh("make db-stop", ""), UPGRADED)
    # One run may have been lucky, and the error does not speak of what it did.
    assert "db-stop" not in one(first, run(LOCKED, name="run-2", task="another")).summary
    second = run(LOCKED, sh("make db-stop", ""), UPGRADED, name="run-2", task="another")
    assert one(first, second).summary.endswith(": run `make db-stop` first")
    vain = run(LOCKED, sh("make db-stop", ""), LOCKED, name="run-3", task="a third")
    assert one(first, second, vain).summary.endswith(": run `make db-stop` first (worked in 2 of 3 tries)")


def test_a_check_tells_of_something_else_and_fails_not_itself() -> None:
    def checks(number: int, run_id: int) -> Call:
        told = f"test (ubuntu)\tfail\t1m{number}s\thttps://example.com/acme/r/actions/runs/{run_id}"
        return sh(f"gh pr checks {number}", told, 1)

    mended = sh("npm install --package-lock-only", "up to date")
    first = run(checks(12, 1), mended, sh("gh pr checks 12", "all pass"))
    second = run(checks(31, 77), mended, sh("gh pr checks 31", "all pass"), name="run-2", task="another")
    assert learnt(first, second) == []


REFUSED = sh(
    "pytest -q", "E   ConnectionError: Error 111 connecting to localhost:6379. Connection refused.", 1
)
PASSED = sh("pytest -q", "6 passed in 2.1s")


def test_a_remedy_that_has_failed_since_steps_back() -> None:
    up = sh("docker compose up -d redis", "Started")
    gone = sh("docker compose up -d redis", "no such service: redis", 1)
    old = [run(REFUSED, up, PASSED, name=f"run-{n}") for n in range(3)]
    new = [run(REFUSED, gone, sh("just services-up"), PASSED, name=f"run-{n}") for n in (8, 9)]
    assert [each.remedies for each in learnt(*old)] == [("docker compose up -d redis",)]
    assert learnt(*old, *new)[0].remedies == ("just services-up",)


def test_a_remedy_that_two_runs_did_without_steps_back() -> None:
    old = [run(REFUSED, sh("make redis"), PASSED, name=f"run-{n}") for n in range(3)]
    new = [run(REFUSED, sh("make services"), PASSED, name=f"run-{n}") for n in (3, 4)]
    assert one(*old, new[0]).remedies == ("make redis",)
    assert one(*old, *new).remedies == ("make services",)


@pytest.mark.parametrize(
    ("command", "error", "helped"),
    [
        (
            "npm install",
            "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree",
            "npm install --legacy-peer-deps",
        ),
        (
            "pip install grpcx",
            "ERROR: No matching distribution found for grpcx",
            "pip install --extra-index-url https://pypi.corp.example/simple grpcx",
        ),
        (
            "pip install -e .",
            "error: externally-managed-environment",
            "python3 -m venv .venv && .venv/bin/pip install -e .",
        ),
        (
            "pip install grpcx",
            "error: externally-managed-environment",
            "pip install --break-system-packages grpcx",
        ),
    ],
)
def test_the_option_that_made_an_install_work_is_kept(command: str, error: str, helped: str) -> None:
    lesson = one(run(sh(command, error, 1), sh(helped, "Successfully installed")))
    assert lesson.remedies == (helped,)


def test_an_install_that_went_well_the_second_time_is_no_remedy() -> None:
    error = "ERROR: No matching distribution found for grpcx"
    found = learnt(run(sh("pip install grpcx", error, 1), sh("pip install -q grpcx", "ok")))
    assert [each.remedies for each in found] == [()]


def test_a_variable_is_set_and_no_step() -> None:
    taken = "Error: listen EADDRINUSE: address already in use :::3000"
    lesson = one(run(sh("npm run dev", taken, 1), sh("PORT=3001 npm run dev", "listening on 3001")))
    assert lesson.summary.endswith("already in use :::3000”): use `PORT=3001 npm run dev`")
    assert lesson.remedies == ("PORT=3001 npm run dev",)
    lesson = one(
        run(sh("npm run dev", taken, 1), sh("npm run stop"), sh("PORT=3001 npm run dev", "listening on 3001"))
    )
    assert lesson.summary.endswith(": use `npm run stop && PORT=3001 npm run dev`")


def test_a_pull_that_ended_in_a_conflict_was_needed_all_the_same() -> None:
    rejected = " ! [rejected]        feature -> feature (non-fast-forward)\nerror: failed to push some refs\n"
    lesson = one(
        run(
            sh("git push origin feature", rejected, 1),
            sh("git pull --rebase origin feature", "CONFLICT (content): Merge conflict in cart.py", 1),
            edit("cart.py", "<<<<<<< HEAD", ""),
            sh("git add cart.py && GIT_EDITOR=true git rebase --continue", "Successfully rebased"),
            sh("git push origin feature", "feature -> feature"),
        )
    )
    remedy = (
        "git pull --rebase origin feature && GIT_EDITOR=true git rebase --continue && git push origin feature"
    )
    assert lesson.remedies == (remedy,)
    assert lesson.summary.endswith(f"use `{remedy}`")


def test_the_remedy_is_never_cut_off() -> None:
    call = "pytest -q tests/integration/services tests/integration/storage"
    step = "docker compose -f deploy/compose.yaml --profile integration up -d redis mailhog"
    error = f"E   ConnectionError: connecting to localhost:6379: {'and so on ' * 9}: Connection refused."
    lesson = one(run(sh(call, error, 1), sh(step), sh(call, "6 passed in 2.1s")))
    assert lesson.summary.endswith(f": run `{step}` first")


def test_the_whole_command_is_told_and_not_how_it_differs() -> None:
    wrong = "cargo run --package pilot --profile release-with-debug --features a,b"
    assert advice(Remedy(RemedyKind.COMMAND, "cargo run", wrong)) == "use `cargo run`"
    whole = Remedy(RemedyKind.COMMAND, "cargo run --release", "cargo run --release -q")
    assert advice(whole) == "use `cargo run --release`"


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    "message",
    [
        (
            "ssh: connect to host git.example.com port 22: Operation timed out\n"
            "fatal: Could not read from remote repository."
        ),
        "fatal: unable to access 'https://git.example.com/a/b.git/': Could not resolve host: git.example.com",
        (
            "fatal: unable to access 'https://git.example.com/a/b.git/': Failed to connect to git.example.com"
            " port 443 after 130000 ms: Couldn't connect to server"
        ),
    ],
)
def test_what_no_run_could_reach_is_told_also_of_a_chain(message: str) -> None:
    chain = "git add -A && git commit -m 'Mend it' && git push"
    runs = [run(sh(chain, f"[main 1a2b3c4] Mend it\n{message}", 128), name=f"run-{at}") for at in range(3)]
    assert not any("server" in found.summary for found in learnt(*runs[:2]))
    lesson = one(*runs)
    assert lesson.summary.startswith("`git push` has not reached its server in any run (")
    assert lesson.summary.endswith("go on without it, and no detours")
    reached = run(sh("git push", "To git.example.com:a/b.git\n   1..2  main -> main"), name="run-0")
    later = learnt(reached, *runs[1:], run(sh(chain, message, 128), name="run-3"))
    assert all(each.is_known_only and "in any run" not in each.summary for each in later)


def test_a_push_that_a_hook_of_the_server_declined_is_not_told_to_pull() -> None:
    declined = (
        " ! [remote rejected] main -> main (pre-receive hook declined)\nerror: failed to push some refs"
    )
    behind = " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs"
    for output, is_told in ((declined, False), (behind, True)):
        runs = [run(sh("git push", output, 1), sh("ls", "README"), name=f"run-{number}") for number in (1, 2)]
        assert any("pull --rebase" in each.summary for each in learnt(*runs)) is is_told


def test_a_wrapper_that_was_left_out_helped_whatever_the_tests_then_found() -> None:
    """The refusal is what it mends: red tests of another cause say nothing against it."""
    refused = sh("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    green = [run(refused, sh("bun run test", "12 pass\n0 fail"), name=f"run-{at}") for at in range(4)]
    red = run(refused, sh("bun run test", "error: unable to open the lock of tmp/clones", 1), name="run-9")
    (found,) = [each for each in learnt(*green, red) if "rtk" in each.summary]
    assert "leave out `rtk`" in found.summary
    assert "tries" not in found.summary
