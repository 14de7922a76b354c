"""Which findings are a lesson again: short ones of the same thing, and not their neighbours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist.recall.keywords import KeywordIndex, Overlap, keywords, repeats
from tests.conftest import Command
from tests.samples import run_lines, write_jsonl

HERE = Path(__file__).parent
PAYMENT = (
    "The payment capture endpoint has no idempotency key, so a retried request after a timeout charges the"
    " customer's card twice"
)
SHORT = "Payment capture lacks idempotency key"


def _pairs(name: str) -> list[tuple[str, str, str]]:
    lines = [line for line in (HERE / name).read_text("utf-8").splitlines() if not line.startswith("#")]
    blocks = "\n".join(lines).strip().split("\n\n")
    return [(lesson, same, other) for lesson, same, other in (block.split("\n") for block in blocks)]


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("name", "recognised"), [("finding_pairs.txt", 35), ("finding_pairs_unseen.txt", 19)]
)
def test_a_finding_in_fewer_words_is_recognised_and_its_neighbour_is_not(name: str, recognised: int) -> None:
    """By shares of words alone 22 of 40 and 15 of 20 were recognised."""
    pairs = _pairs(name)
    index = KeywordIndex(Overlap())
    for lesson, _, _ in pairs:
        index.add(lesson, lesson)
    found = {}
    for lesson, same, other in pairs:
        for text in (same, other):
            match = index.find(text)
            found[text] = match.key if match else ""
            is_same = repeats(keywords(text), keywords(lesson), frozenset(), Overlap())
            assert is_same is (found[text] == lesson)
    assert [other for _, _, other in pairs if found[other]] == []
    assert sum(found[same] == lesson for lesson, same, _ in pairs) >= recognised
    assert all(found[same] in ("", lesson) for lesson, same, _ in pairs)


@pytest.mark.req("F3")
def test_another_finding_of_the_same_category_and_place_stays_another() -> None:
    lesson = keywords("Missing null checks in API response handlers")
    for finding in ("Missing rate limits in API", "Null checks", "Missing in API", "API handlers slow"):
        assert not repeats(keywords(finding), lesson, frozenset(), Overlap())


@pytest.mark.req("F3", "F9")
def test_a_short_recurrence_counts_and_the_lesson_did_not_help(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    for run, words in (("r1", PAYMENT), ("r2", PAYMENT), ("r3", SHORT)):
        if run == "r3":
            archivist("inject", "general", "", "--audit", run)
        log = write_jsonl(project / f"{run}.jsonl", run_lines(run, {"description": words, "severity": "bug"}))
        assert archivist("extract", str(log)).code == 0
    (lesson,) = json.loads(archivist("list", "--json").out)["lessons"]
    assert (lesson["frequency"], lesson["last_seen_run"]) == (3, "r3")
    (verdict,) = json.loads(archivist("audit-check", "r3", "--json").out)["verdicts"]
    assert verdict["effectiveness"] == "ineffective"
