"""How names and commands are set in sentences."""

from __future__ import annotations

import pytest

from archivist.reading.wording import code


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
