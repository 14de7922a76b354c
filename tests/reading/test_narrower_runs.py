"""A call that runs less than one that failed shows nothing about the failure."""

from __future__ import annotations

import pytest

from archivist.reading.calls import read_tool_calls
from archivist.reading.cures import failed_remedies, find_cure
from archivist.reading.narrower_runs import leaves_out_failure
from archivist.records import Event, EventKind

_RUST = "test api::refuses_old ... FAILED\ntest store::keeps ... ok\ntest result: FAILED. 1 passed; 1 failed"
_PYTHON = (
    "tests/test_store.py ..\nFAILED tests/test_api.py::test_history - AssertionError\n1 failed, 2 passed"
)
_MOCHA = "  1) Probe finds the branch:\n     AssertionError (src/probe.test.ts:9:2)\n  1 failing"
_ADVISORY = "error[vulnerability]: memory corruption in `ring`\nadvisories FAILED"


def _call(number: int, command: str, output: str, code: int) -> Event:
    return Event(
        run="r", seq=number, kind=EventKind.TOOL_CALL, tool="Bash", text=command,
        output=output, exit_code=code, is_error=bool(code),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("failed", "output", "passed", "is_less"),
    [
        ("cargo test -p api", _RUST, "cargo test -p api store::tests", True),
        ("cargo test -p api", _RUST, "cargo test -p api api::refuses_old", False),
        ("cargo test -p api", _RUST, "cargo test -p api -- --nocapture", False),
        ("cargo test -p api", _RUST, "cargo test", False),
        ("cargo test", _RUST, "cargo test -p api", False),
        ("cargo test", _RUST, "cargo test -p store --lib", True),
        ("pytest", _PYTHON, "pytest tests/test_store.py", True),
        ("pytest tests/test_api.py tests/test_store.py", _PYTHON, "pytest -q tests/test_store.py", True),
        ("pytest", _PYTHON, "pytest tests/test_api.py", False),
        ("pytest", _PYTHON, "pytest tests", False),
        ("pytest tests", _PYTHON, "pytest tests -k history", False),
        ("pytest tests", _PYTHON, "pytest tests -k 'not history'", True),
        ("pytest tests", _PYTHON, "pytest tests -k store", True),
        ("pnpm test", _MOCHA, "pnpm test src/tree.test.ts", True),
        ("pnpm test", _MOCHA, "pnpm test -- probe", False),
        ("pnpm test", _MOCHA, "pnpm test --config slow.json", False),
        ("cargo deny check && cargo test", _ADVISORY, "cargo test alpha", True),
        ("cargo deny check && cargo test", _ADVISORY, "cargo deny check && cargo test", False),
    ],
)  # fmt: skip
def test_a_call_that_leaves_out_what_failed_is_known(
    failed: str, output: str, passed: str, is_less: bool
) -> None:
    calls = read_tool_calls([_call(0, failed, output, 1), _call(1, passed, "ok", 0)])
    assert leaves_out_failure(calls[1], calls[0]) is is_less


def test_a_narrower_run_is_neither_a_cure_nor_tried_in_vain() -> None:
    calls = read_tool_calls(
        [
            _call(0, "cargo test -p api", _RUST, 101),
            _call(1, "cargo test -p api store::tests", "test result: ok. 3 passed", 0),
            _call(2, "cargo test -p api", _RUST, 101),
        ]
    )
    assert find_cure(calls, 0) is None
    assert failed_remedies(calls, 0) == ()
