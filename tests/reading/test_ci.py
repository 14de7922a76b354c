"""Checks of a server that failed after a push, as a run saw them."""

from __future__ import annotations

import json

import pytest

from archivist.reading.ci import read_failed_checks
from tests.reflect.miners.scripted import run, sh


def _failed(command: str, output: str, code: int = 0) -> tuple[str, ...]:
    (call,) = run(sh(command, output, code)).acts
    return read_failed_checks(call)


def test_rows_of_checks_are_read_and_those_of_a_matrix_are_one() -> None:
    rows = (
        "lint\tfail\t7m20s\thttps://ci.example/1\t\n"
        "unit (ubuntu-latest, 3.12)\tfail\t3m0s\thttps://ci.example/2\t\n"
        "unit (windows-latest, 3.12)\tpass\t3m0s\thttps://ci.example/3\t\n"
        "e2e-3\tfail\t1m\thttps://ci.example/4\t\ne2e-4\tfail\t1m\thttps://ci.example/5\t\n"
        "docs\tpending\t0\thttps://ci.example/6\t\n"
    )
    assert _failed("gh pr checks 12", rows, 1) == ("lint", "unit", "e2e")


def test_jobs_of_a_run_and_its_log_are_read() -> None:
    jobs = "X main CI #12 · 345\n\nJOBS\n✓ build in 2m1s (ID 1)\nX lint in 1m10s (ID 2)\n  X Run make lint\n"
    assert _failed("gh run view 345", jobs) == ("lint",)
    log = "lint\tRun make lint\t2026-07-01T22:14:01.73Z ##[error]Process completed with exit code 2.\n"
    assert _failed("gh run view 345 --log-failed | tail -5", log) == ("lint",)
    assert _failed("gh run view 345 --log | rg -n error", f"131:{log}") == ("lint",)


def test_replies_in_json_are_read_without_the_steps_of_a_job() -> None:
    steps = [{"name": "Run make lint", "conclusion": "failure"}]
    job = {"name": "lint", "conclusion": "failure", "steps": steps}
    reply = json.dumps({"conclusion": "failure", "jobs": [job, {"name": "unit", "conclusion": "success"}]})
    assert _failed("gh run view 345 --json jobs,conclusion", reply) == ("lint",)
    rollup = json.dumps({"statusCheckRollup": [{"name": "types", "conclusion": "FAILURE"}]})
    assert _failed("gh pr view 12 --json statusCheckRollup", rollup) == ("types",)


@pytest.mark.parametrize("output", ["", "{", "[" * 100_000, '{"jobs": 1' + "0" * 5_000 + "}", "x\tfail"])
def test_output_that_is_cut_or_odd_names_nothing(output: str) -> None:
    assert _failed("gh run view 345 --json jobs", output) == ()


def test_what_other_programs_print_is_no_report() -> None:
    assert _failed("cat report.tsv", "lint\tfail\t1m\thttps://ci.example/1\n") == ()
