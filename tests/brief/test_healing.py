"""What is told beside an error: commands as commands, words as words, each with how well it is proven."""

from __future__ import annotations

from typing import Any

from archivist.brief.healing_service import describe_recovery

Run = tuple[list[list[str]], list[str]]
KEY = "shop|edit_not_applied:edit:old text not found"


def _told(*cures: Run) -> list[str]:
    """Tell what runs did, the latest first, of which each names its cures and what it did in vain."""
    digests: list[dict[str, Any]] = [
        {"failures": {KEY: {"cures": cured, "in_vain": in_vain}}} for cured, in_vain in cures
    ]
    return describe_recovery([KEY], "", digests, ()).text.splitlines()[3:]


def test_words_are_not_set_as_code() -> None:
    assert _told(([["", "read the file again, then edit", "said"]], [])) == [
        "- worked in 1 run: read the file again, then edit"
    ]
    assert _told(([["", "make edit", "step"]], [])) == ["- worked in 1 run: `make edit`"]


def test_what_was_noted_without_its_way_is_a_command() -> None:
    assert _told(([["", "make edit"]], [])) == ["- worked in 1 run: `make edit`"]


def test_the_latest_runs_say_what_has_had_its_day() -> None:
    old: Run = ([["", "make a", "step"]], [])
    new: Run = ([["", "make b", "step"]], [])
    assert _told(new, old, old)[0] == "- worked in 2 runs: `make a`"
    assert _told(new, new, old, old, old)[0] == "- worked in 2 runs: `make b`"
    assert _told(([["", "make b", "step"]], ["make a"]), old, old) == [
        "- worked in 1 run: `make b`",
        "- worked in 2 runs, but not when it was tried last: `make a`",
    ]
