"""How a lesson stands in a brief."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.records import Provenance, Status
from tests.samples import lesson


def test_a_cut_summary_ends_with_what_to_do(bank: Bank) -> None:
    summary = (
        "shop: shop fails at import: “cannot import name 'formatargspec'” (the installed wrapt is too old)…"
    )
    rule = "IF shop fails with “cannot import name 'formatargspec'” THEN `pip install 'wrapt>=1.14'`"
    made = lesson(
        "cut", summary=summary, rule=rule, repo="shop", signature="shop|import_error:wrapt", runs=("a", "b"),
        status=Status.ACTIVE, provenance=Provenance.MINED, remedies=("pip install 'wrapt>=1.14'",),
    )  # fmt: skip
    with bank.transaction() as writer:
        writer.put(made, "add")
    text = bank.brief(repo="shop", fence=False).text
    assert "(the installed wrapt is too old): `pip install 'wrapt>=1.14'` (seen 2x)" in text
    assert "IF " not in text


@pytest.mark.req("F5")
def test_an_approved_lesson_of_a_file_stands_in_the_documents_format(bank: Bank) -> None:
    made = lesson(
        "told", summary="Voice drifts in monologues", runs=("a", "b", "c"), origin="sage", confirmed=True,
        status=Status.ACTIVE, provenance=Provenance.IMPORTED, domain="writing",
    )  # fmt: skip
    with bank.transaction() as writer:
        writer.put(made, "import")
    text = bank.brief(domain="writing").text
    told = "- Voice drifts in monologues [seen 3x, sage, from a file, approved]"
    assert text == f"## Known Issues (from past runs)\n{told}\n"
