"""Configuration: documented defaults, clear refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist.config import Config, load
from archivist.errors import ConfigError
from archivist.records import Severity


def _load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_the_defaults_are_the_documented_constants(tmp_path: Path) -> None:
    config = load(tmp_path / "none.toml")
    assert (config.lessons.finding_overlap, config.lessons.promote_at_runs) == (0.5, 2)
    assert config.lessons.candidate_severity is Severity.WARNING
    assert (config.brief.max_lessons, config.brief.always_at_frequency) == (10, 5)
    assert (config.decay.unseen_runs, config.decay.preferences_fade) == (10, True)
    assert config.store.busy_timeout_s == 30


def test_values_are_read(tmp_path: Path) -> None:
    config = _load(
        tmp_path,
        '[lessons]\ncandidate_severity = "bug"\nfinding_overlap = 0.6\n'
        "[decay]\npreferences_fade = false\n[store]\nbusy_timeout_s = 5\n",
    )
    assert config.lessons.candidate_severity is Severity.BUG
    assert (config.lessons.finding_overlap, config.decay.preferences_fade) == (0.6, False)
    assert config.store.busy_timeout_s == 5.0
    assert _load(tmp_path, "[brief]\nmax_candidates = 0\n").brief.max_candidates == 0


@pytest.mark.parametrize(
    ("text", "complaint", "hint"),
    [
        ("[breif]\nmax_lessons = 1", "unknown key 'breif'", "did you mean 'brief'?"),
        ("[brief]\nmax_lesons = 1", "unknown key 'brief.max_lesons'", "did you mean 'max_lessons'?"),
        ("brief = 3", "brief is a section", "[brief]"),
        ("[brief]\nmax_lessons = 'ten'", "brief.max_lessons: expected a number, not 'ten'", ""),
        ("[brief]\nmax_lessons = 0", "expected a whole number from 1", ""),
        ("[brief]\nmax_lessons = 1.5", "expected a whole number from 1", ""),
        ("[store]\nbusy_timeout_s = -1", "expected a number from 0", ""),
        ("[decay]\npreferences_fade = 1", "expected true or false", ""),
        ("[lessons]\ncandidate_severity = 'awful'", "'awful' is not one of bug", ""),
        ("[brief", "cannot be read", ""),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(tmp_path: Path, text: str, complaint: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert complaint in caught.value.message
    assert hint in caught.value.hint
