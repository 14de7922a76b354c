"""A keyword that no lesson has is refused, by name."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.recall.query import Query


@pytest.mark.parametrize(("wrong", "meant"), [("importnce", "importance"), ("ruel", "rule"), ("zebra", "")])
def test_an_unknown_keyword_is_refused_with_the_word_that_was_meant(
    bank: Bank, wrong: str, meant: str
) -> None:
    said = f"unexpected keyword argument '{wrong}'" + (f": did you mean '{meant}'" if meant else "$")
    bank.lessons.add("One")
    with pytest.raises(TypeError, match=said):
        bank.lessons.add("Two", **{wrong: "x"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=said):
        bank.lessons.edit("m-001", **{wrong: "x"})  # type: ignore[arg-type]
    assert [lesson.summary for lesson in bank.lessons.query(Query())] == ["One"]
