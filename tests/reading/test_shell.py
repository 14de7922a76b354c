"""Take command lines apart."""

from __future__ import annotations

import pytest

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
