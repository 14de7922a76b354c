"""The rules that linters and type checkers say were broken, in the forms in which they say it."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.reading.checker_rules import find_broken_rules
from archivist.records import Episode, Event, EventKind


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("src/a.ts:4:3 lint/style/useTemplate  FIXABLE  ━━━━", "useTemplate"),
        ("  12:5  error  'x' is assigned a value but never used  no-unused-vars", "no-unused-vars"),
        ("  3:1  warning  Unexpected any  @ts/no-explicit-any", "@ts/no-explicit-any"),
        ("src/a.py:1:8: F401 [*] `os` imported but unused", "F401"),
        ("F401 [*] `os` imported but unused", "F401"),
        ("src/a.py:10: error: Item has no attribute [union-attr]", "union-attr"),
        ("pkg/a.go:12:2: Error return value is not checked (errcheck)", "errcheck"),
        ("src/a.ts(4,1): error TS2339: Property does not exist", "TS2339"),
        ("error[E0308]: mismatched types", "E0308"),
        ("  = help: for further information see clippy::needless_return", "needless_return"),
        ("app/a.rb:1:1: C: [Correctable] Style/StringLiterals: Prefer single quotes", "Style/StringLiterals"),
        ("In run.sh line 3: ^-- SC2086 (info): Double quote", "SC2086"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named(line: str, rule: str) -> None:
    assert find_broken_rules(f"Checked 12 files.\n{line}\nFound 1 error.") == (rule,)


@pytest.mark.parametrize(
    "line",
    [
        "Found 4 errors.",
        "GET /a 404",
        "HTTP 500 at 10:20:30",
        "error: script exited with code 1",
        "Q4 2026 (draft)",
    ],
)
def test_other_lines_name_none(line: str) -> None:
    assert find_broken_rules(line) == ()


@pytest.mark.req("N1")
def test_what_a_linter_still_finds_after_its_fixes_is_told_with_the_command(bank: Bank) -> None:
    left = (
        "src/a.ts:4:3 lint/style/useTemplate FIXABLE\nsrc/b.ts:1:1 lint/complexity/noForEach\nFound 2 errors."
    )
    calls = (
        ("pnpm lint", left, 1),
        ("pnpm lint:fix", "Fixed 1", 0),
        ("pnpm lint", left.split("\n", 1)[1], 1),
    )
    for number in range(3):
        events = [
            Event(run=f"r{number}", seq=seq, kind=EventKind.TOOL_CALL, tool="Bash", text=text, target=text,
                  output=output, exit_code=code, is_error=code != 0)
            for seq, (text, output, code) in enumerate(calls)
        ]  # fmt: skip
        bank.capture(Episode(id=f"r{number}", project="shop", task=f"Task {number}"), events)
        bank.reflect(f"r{number}")
    told = bank.brief(repo="shop", fence=False).text
    assert "with “noForEach”" in told
    assert "useTemplate" not in told
