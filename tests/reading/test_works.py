"""Which commands test, lint, build and start a project, and whether they could run."""

from __future__ import annotations

from typing import Any

import pytest

from archivist.projects import CHECKOUT
from archivist.reading.run import read_run
from archivist.reading.shell import parse
from archivist.reading.works import command_purpose, general_form
from archivist.records import Episode, Event, EventKind

ROOT = "/home/dev/widget"


@pytest.mark.parametrize(
    ("command", "purpose", "form"),
    [
        ("corepack pnpm lint", "lint", "corepack pnpm lint"),
        ("mise exec -- pnpm typecheck", "types", "mise exec -- pnpm typecheck"),
        ("npx -y pnpm@9 test", "test", "npx -y pnpm@9 test"),
        ("nix develop -c make build", "build", "nix develop -c make build"),
        ("hatch run lint", "lint", "hatch run lint"),
        ("bun run lint:fix", "lint", "bun run lint:fix"),
        ("pnpm run check-types", "types", "pnpm check-types"),
        ("pnpm -s lint", "lint", "pnpm lint"),
        ("npm test", "test", "npm test"),
        ("npm run test:unit -- --silent", "test", "npm run test:unit"),
        ('pnpm test -- --grep "Session Panel"', "test", "pnpm test -- --grep <test>"),
        ("npx vitest run src/a.test.ts src/b.test.ts", "test", "npx vitest run <file>"),
        ("yarn workspace web build", "build", "yarn workspace web build"),
        ("npx tsc --noEmit -p tsconfig.test.json", "types", "npx tsc --noEmit -p tsconfig.test.json"),
        ("npx eslint --fix src/a.ts", "lint", "npx eslint --fix <file>"),
        ("timeout 60 uv run pytest -q tests/test_a.py::test_b", "test", "uv run pytest <file>"),
        (
            "CI=1 PYTHONPATH=src python3 -m pytest tests/ -x",
            "test",
            "PYTHONPATH=src python3 -m pytest tests/",
        ),
        ("python -m unittest tests.test_core", "test", "python -m unittest tests.test_core"),
        ("python manage.py test shop", "test", "python manage.py test shop"),
        ("cargo test -p widget parser::tests -- --nocapture", "test", "cargo test -p <package> <test>"),
        ("cargo clippy -- -D warnings", "lint", "cargo clippy -- -D warnings"),
        ("cargo fmt --all", "format", "cargo fmt --all"),
        ("cargo run --bin shop -- list 7", "run", "cargo run --bin shop"),
        ("go test ./...", "test", "go test ./..."),
        ("go test -run TestPay ./internal/pay", "test", "go test -run <test> <folder>"),
        ("go vet ./...", "lint", "go vet ./..."),
        ("make", "build", "make"),
        ("make lint", "lint", "make lint"),
        ("just typecheck", "types", "just typecheck"),
        ("mise run test:e2e e2e/cli/test_lock", "test", "mise run test:e2e <test>"),
        ("./gradlew :app:test --tests Pay", "test", "./gradlew :app:test --tests <test>"),
        ("mvn clean verify", "check", "mvn clean verify"),
        ("dotnet build", "build", "dotnet build"),
        ("mix test", "test", "mix test"),
        ("bundle exec rspec spec/pay_spec.rb", "test", "bundle exec rspec <file>"),
        ("ruff check .", "lint", "ruff check ."),
        ("ruff format", "format", "ruff format"),
        ("docker compose up", "run", "docker compose up"),
        ("bash scripts/run-tests.sh", "test", "bash scripts/run-tests.sh"),
        ("./scripts/build.sh", "build", "./scripts/build.sh"),
    ],
)
def test_a_command_has_a_purpose_and_a_form_that_other_runs_can_use(
    command: str, purpose: str, form: str
) -> None:
    (step,) = parse(command)
    assert (command_purpose(step), general_form(step, ROOT, purpose)) == (purpose, form)


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m test",
        "gh run list",
        "gh pr checks 7",
        "test -f build",
        "pip install build",
        "npm install jest",
        "docker build -t shop .",
        "ls test",
        "bun run index.ts",
        "python test_mine.py",
        "python -c 'test()'",
        "cd build",
        "echo lint",
        "npm run",
        "bash -n scripts/build.sh",
    ],
)
def test_other_commands_have_no_purpose(command: str) -> None:
    assert [command_purpose(step) for step in parse(command)] == [""]


@pytest.mark.parametrize(
    "command",
    [
        "pytest $FILES",
        "pytest /tmp/other/tests",
        "API_KEY=abc pytest",
        "DATA=/home/dev/data pytest",
        "sudo make test",
        f"pytest {' '.join(f'--opt-{number}' for number in range(20))}",
        'make test ARGS="one two"',
    ],
)
def test_a_command_of_one_machine_or_run_has_no_form(command: str) -> None:
    (step,) = parse(command)
    assert general_form(step, ROOT, "test") == ""


def _works(*calls: dict[str, Any], **extra: Any) -> list[list[str | int]]:
    events = [
        Event(**{"run": "r", "seq": seq, "kind": EventKind.TOOL_CALL, "tool": "Bash", "exit_code": 0, **call})
        for seq, call in enumerate(calls)
    ]
    episode = Episode(id="r", project="widget", extra={"cwd": ROOT, **extra})
    found = read_run(episode, events, suspicion=lambda *_: "").digest["works"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("command", "output", "code", "counted"),
    [
        ("npm test", "Tests: 3 passed, 3 total", 0, [1, 0, 1, 3]),
        ("npm test", "FAIL src/a.test.ts\n  ● adds\n    expect(received).toBe(expected)", 1, [1, 0, 0]),
        (
            "pytest",
            "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2\n1 failed in 0.1s",
            1,
            [1, 0, 0],
        ),
        (
            "npm run lint",
            "src/a.ts\n  1:1  error  'x' is never used  no-unused-vars\n\n1 problem",
            1,
            [1, 0, 0],
        ),
        ("npm run lint", 'npm error Missing script: "lint"', 1, [0, 1, 0]),
        ("pnpm test", "sh: 1: vitest: not found\n ELIFECYCLE  Test failed.", 127, [0, 1, 0]),
        ("pytest", "bash: pytest: command not found", 127, [0, 1, 0]),
        ("python -m pytest", "/usr/bin/python: No module named pytest", 1, [0, 1, 0]),
        ("make lint", "make: *** No rule to make target 'lint'.  Stop.", 2, [0, 1, 0]),
        ("cargo test --libs", "error: unexpected argument '--libs' found\n\nUsage: cargo test", 1, [0, 1, 0]),
    ],
)
def test_a_command_that_ran_worked_whatever_it_found(
    command: str, output: str, code: int, counted: list[int]
) -> None:
    ((_, _, _, *counts),) = _works({"text": command, "output": output, "exit_code": code})
    assert counts == counted


def test_what_says_nothing_about_a_command_is_not_counted() -> None:
    refused = "The user doesn't want to proceed with this tool use."
    assert _works({"text": "npm test", "output": refused, "is_error": True, "exit_code": None}) == []
    assert _works({"text": "npm test", "extra": {"timed_out": True}}) == []
    assert _works({"text": "npm test", "extra": {"result_missing": True}}) == []
    assert _works({"text": "npm test || npm run test", "output": "ok, 3 passed"}) == [
        ["test", "npm test", "", 1, 0, 1, 3]
    ]
    missing = "ModuleNotFoundError: No module named 'requests'"
    assert _works({"text": "pytest", "output": missing, "exit_code": 1}) == []


def test_a_failure_of_a_line_is_not_blamed_on_its_second_command() -> None:
    failed = {"output": "cp: cannot stat 'a.env': No such file or directory", "exit_code": 1}
    assert _works({"text": "cp a.env .env && npm test", **failed}) == []
    assert _works({"text": "cd web && npm test", "output": "1 failing", "exit_code": 1}) == [
        ["test", "npm test", "web", 1, 0, 0]
    ]


def test_a_command_counts_in_the_folder_where_it_ran() -> None:
    inside = {"cwd": f"{ROOT}/web", "began": ROOT}
    assert _works(
        {"text": f"cd {ROOT}/web && npm run build 2>&1 | tail -5", "output": "built in 2 s"},
        {"text": "cd web && npm run build", "output": "built in 2 s"},
        {"text": "npm run build", "output": "built in 2 s", "extra": inside},
        {"text": f"cd {ROOT} && npm test && npm run lint", "output": "fine, all of it", "extra": inside},
        {"text": "cd /srv/other && make", "output": "done, all of it"},
    ) == [
        ["build", "npm run build", "web", 3, 0, 3],
        ["test", "npm test", "", 1, 0, 1],
        ["lint", "npm run lint", "", 1, 0, 1],
    ]


def test_a_folder_is_told_from_the_root_of_the_checkout_in_whichever_worktree() -> None:
    call = {"text": "npm test", "output": "3 passed, all well"}
    assert _works(call, cwd=f"{ROOT}/web", **{CHECKOUT: {"folder": ROOT}})[0][2] == "web"
    tree = {"cwd": f"{ROOT}/.worktrees/feature/web", "began": ROOT}
    assert _works({**call, "extra": tree})[0][2] == "web"
    tree = {"cwd": "/home/dev/worktrees/feature/widget/web", "began": ROOT}
    assert _works({**call, "extra": tree})[0][2] == "web"


def test_one_test_and_a_fix_are_purposes_of_their_own_and_destructive_commands_have_none() -> None:
    told = _works(
        {"text": "npx vitest run src/a.test.ts", "output": "1 passed, all well"},
        {"text": "bun run lint:fix", "output": "Fixed 2 files"},
        {"text": "docker compose up --build", "output": "started, all of it"},
    )
    assert [(purpose, command) for purpose, command, *_ in told] == [
        ("one test", "npx vitest run <file>"),
        ("fix", "bun run lint:fix"),
        ("run", "docker compose up --build"),
    ]
    many = [
        {"text": f"make test-{letter}", "output": "passed, all well"} for letter in "abcdefghijklmnopqrst"
    ]
    assert len(_works(*many)) == 16
