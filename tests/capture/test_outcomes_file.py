"""What a caller knows of how runs ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.service import read_outcomes
from archivist.capture.status import outcome_of
from archivist.errors import InputError
from archivist.records import Episode, EpisodeStatus


def _read(tmp_path: Path, value: Any) -> dict[str, EpisodeStatus]:
    path = tmp_path / "outcomes.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_outcomes(path)


def test_pairs_and_lists_are_understood(tmp_path: Path) -> None:
    assert _read(tmp_path, {"a": "partial", "b": True, "c": False, "d": "?"}) == {
        "a": EpisodeStatus.PARTIAL,
        "b": EpisodeStatus.SUCCESS,
        "c": EpisodeStatus.FAILED,
    }
    report = {
        "total_instances": 3,
        "resolved_ids": ["x__x-1"],
        "unresolved_ids": ["x__x-2"],
        "error_ids": ["x__x-3"],
    }
    assert _read(tmp_path, report) == {
        "x__x-1": EpisodeStatus.SUCCESS,
        "x__x-2": EpisodeStatus.FAILED,
        "x__x-3": EpisodeStatus.ABORTED,
    }


@pytest.mark.parametrize("value", ["{", "[]", "{}", '{"a": "?"}'])
def test_a_file_without_outcomes_is_a_clear_error(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError):
        _read(tmp_path, value)
    with pytest.raises(InputError, match="no such file"):
        read_outcomes(tmp_path / "nothing.json")


def test_a_run_is_known_by_id_session_or_instance() -> None:
    outcomes = {"s-1": EpisodeStatus.FAILED, "o__r-1": EpisodeStatus.SUCCESS}
    assert outcome_of(Episode(id="x", session="s-1"), outcomes) is EpisodeStatus.FAILED
    assert outcome_of(Episode(id="y", extra={"instance": "o__r-1"}), outcomes) is EpisodeStatus.SUCCESS
    assert outcome_of(Episode(id="z"), outcomes) is None
