"""A log of nothing but failures is read in a time that does not grow with their number."""

from __future__ import annotations

import time

import pytest

from archivist.reading import run as reading_run
from archivist.reading.cures import HORIZON
from tests.reflect.miners.scripted import run, sh


@pytest.mark.req("N7")
def test_so_many_failures_are_examined_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [sh(f"./x{number} a", f"Exit code 1\nerror: e{number}", 1) for number in range(1500)]
    before = time.process_time()
    met = run(*calls).met
    bounded_s = time.process_time() - before
    assert len(met) <= reading_run._MOST_FAILURES + HORIZON
    monkeypatch.setattr(reading_run, "_MOST_FAILURES", len(calls))
    before = time.process_time()
    run(*calls)
    assert bounded_s < 0.7 * (time.process_time() - before)
