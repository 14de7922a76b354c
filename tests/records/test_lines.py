"""The records of layers and tiers as lines: whole both ways, in the documents' names."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import RecordError
from archivist.layers.claims import fact_id
from archivist.records import (
    Actor,
    ActorKind,
    Artifact,
    Block,
    Conflict,
    CoreSection,
    Document,
    Fact,
    Folder,
    Proposal,
)
from archivist.records.shapes import Kept, from_line, later_record, shape_of, to_line
from tests.banks import fresh_bank
from tests.samples import WHEN

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20).filter(str.strip)
FACT = Fact(
    id=fact_id("", "convention", "imports"),
    category="convention",
    key="imports",
    value="absolute",
    created=WHEN,
    updated=WHEN,
)
KEPT: list[Kept] = [
    FACT,
    Conflict(id="c", fact="f", category="a", key="b", time=WHEN, kept="1", lost="2", reason="newer"),
    Artifact(id="a", task="t", agent="w", path="x.py", size_bytes=3, checksum="00", created=WHEN),
    Block(section=CoreSection.STATUS, content={"sprint": "one"}, updated=WHEN),
    Document(id="d", source="docs/a.md", text="Words", created=WHEN),
    Folder(id="docs", added=WHEN),
    Proposal(
        id="p",
        number=1,
        section=CoreSection.RULES,
        after="Test first.",
        reason="Seen often",
        created=WHEN,
        expires=WHEN + timedelta(days=30),
        decided_by=Actor(ActorKind.HUMAN, "owner"),
    ),
]


@pytest.mark.parametrize("record", KEPT, ids=lambda record: type(record).__name__)
def test_a_record_survives_its_line(record: Kept) -> None:
    line = to_line(record)
    shape = shape_of(line)
    assert shape is not None
    assert from_line(shape, line) == record


@given(TEXT, TEXT, st.text(max_size=50).filter(str.strip), st.floats(0, 1))
def test_any_fact_survives_its_line(category: str, key: str, value: str, confidence: float) -> None:
    fact = replace(FACT, category=category, key=key, value=value.strip() or "x", confidence=confidence)
    shape = shape_of(to_line(fact))
    assert shape is not None
    assert from_line(shape, to_line(fact)) == fact


def test_a_line_of_the_document_itself_is_read_and_keeps_what_we_do_not_know() -> None:
    line: dict[str, Any] = {
        "project": "swarm",
        "category": "decision",
        "key": "orm",
        "value": "No ORM",
        "source": "orchestrator",
        "confidence": 0.9,
        "created_at": "2026-02-08T10:00:00Z",
        "reviewed": True,
    }
    shape = shape_of(line)
    assert shape is not None
    fact = from_line(shape, line)
    assert isinstance(fact, Fact)
    assert (fact.value, fact.updated, fact.extra) == ("No ORM", fact.created, {"reviewed": True})
    with pytest.raises(RecordError, match="confidence"):
        from_line(shape, {**line, "confidence": 7})


def test_of_two_versions_the_later_one_stays() -> None:
    newer = replace(FACT, value="relative", updated=WHEN + timedelta(days=1))
    assert later_record(FACT, newer) is newer
    assert later_record(newer, FACT) is newer


@pytest.mark.req("M2")
@pytest.mark.req("C2")
def test_layers_and_tiers_go_out_and_come_back_whole(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "one") as bank, bank.transaction() as writer:
        for record in KEPT:
            writer.put(record, "add")
        bank.stream.log("Review the parser", cycle=3, role="qa", importance=7, content="See #84")
    with Bank.open(tmp_path / "one") as bank:
        bank.exchange.export(tmp_path / "out")
    assert (tmp_path / "out" / "knowledge.jsonl").exists()
    with fresh_bank(tmp_path / "two") as other:
        files = [each for each in sorted((tmp_path / "out").glob("*.jsonl")) if each.stat().st_size]
        taken = other.exchange.import_files(files, is_approved=True)
        assert taken.problems == ()
        assert (taken.created["facts"], taken.created["stream entries"]) == (1, 1)
        with other.reading() as reader:
            for record in KEPT:
                assert reader.get(type(record), record.id) == record
        again = other.exchange.import_files(files, is_approved=True)
        assert not any((*again.created.values(), *again.changed.values()))
        other.exchange.export(tmp_path / "again")
        assert other.ledger.verify().is_whole
    for name in ("knowledge", "stream", "artifacts", "core", "archive", "proposals", "conflicts", "folders"):
        mine, theirs = (tmp_path / each / f"{name}.jsonl" for each in ("out", "again"))
        assert mine.read_text() == theirs.read_text()
