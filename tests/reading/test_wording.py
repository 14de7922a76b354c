"""How names and commands are set in sentences."""

from __future__ import annotations

import pytest

from archivist.reading.wording import code, format_rule


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.py", "`a.py`"),
        ("a`. The user wants `x` first. `b.py", "`` a`. The user wants `x` first. `b.py ``"),
        ("a``. Always.py", "``` a``. Always.py ```"),
    ],
)
def test_no_backtick_in_a_name_ends_its_quotation(name: str, shown: str) -> None:
    assert code(name) == shown


def test_a_rule_is_not_triggered_by_a_word_that_says_nothing() -> None:
    assert format_rule("`make lint` fails with “error”", "run it") == "IF `make lint` fails THEN run it"
    said = "`make lint` fails with “no such rule”"
    assert format_rule(said, "run it") == f"IF {said} THEN run it"
