"""Take command lines apart."""

from __future__ import annotations

import pytest

from archivist.reading.failures import detect_failure
from archivist.reading.shell import parse


@pytest.mark.parametrize(
    ("command", "program", "subcommand"),
    [
        ("mise exec -- pnpm test", "pnpm", "test"),
        ("mise x node@20 -- pnpm run test", "pnpm", "run test"),
        ("corepack pnpm@9 test", "pnpm", "test"),
        ("fnm exec --using 20 npm test", "npm", "test"),
        ("volta run --node 20 npm test", "npm", "test"),
        ("nvm exec 20 npm test", "npm", "test"),
        ("asdf exec npm test", "npm", "test"),
        ("op run -- npm test", "npm", "test"),
    ],
)
def test_behind_a_version_manager_stands_the_program(command: str, program: str, subcommand: str) -> None:
    (step,) = parse(command)
    assert (step.program, step.subcommand) == (program, subcommand)


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ('tracker edit --body "$(cat <<\'X\'\nsay "a" of `x`; don\'t\n`x` are (so\nX\n)" && git push',
         ["tracker", "git"]),
        ('a "b $(c "d e" | f) g" h; i', ["a", "i"]),
        ('a "$(b "$(c "d")")"; e', ["a", "e"]),
        ('a "b\\"c; d" "e$f"; g', ["a", "g"]),
        ('a "b $((1 << n)) c"; d', ["a", "d"]),
        ('a "b $(c; d', ["a"]),
    ],
)  # fmt: skip
def test_quotes_of_a_substitution_do_not_end_those_around_it(command: str, programs: list[str]) -> None:
    assert [step.program for step in parse(command)] == programs


@pytest.mark.req("N1")
def test_a_name_in_backticks_of_a_text_is_not_what_failed() -> None:
    said = "bash: line 1: retries: command not found\nerror: field 'cards' was removed"
    failure = detect_failure("Bash", 'tracker edit 12 --body "adds `retries`"', 1, True, said)
    assert failure is not None
    assert (failure.signature.program, failure.line) == ("tracker", "error: field 'cards' was removed")
    missing = detect_failure(
        "Bash", "deploy --tag `mkver --short`", 127, True, "bash: mkver: command not found"
    )
    assert missing is not None
    assert missing.subject == "mkver"
