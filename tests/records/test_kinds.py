"""One row a kind of record: everything that differs by kind follows from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from archivist import Bank, records
from archivist.access.rights import Layer
from archivist.exchange.files import ARCHIVE, LessonFormat, export_lines
from archivist.recall.results import RENDERERS
from archivist.records.kinds import BY_NAME, KINDS, SEARCHABLE, Kind, kind_of, record_types
from archivist.records.plain import types_of
from archivist.store.rows import mapping_for
from archivist.store.searchable import DOCUMENTS


def test_every_record_with_an_id_has_one_row() -> None:
    classes = [getattr(records, name) for name in records.__all__]
    stored = {
        each
        for each in classes
        if isinstance(each, type) and dataclasses.is_dataclass(each)
        if "id" in each.__dataclass_fields__ or isinstance(getattr(each, "id", None), property)
    }
    assert stored == set(record_types())
    assert len(KINDS) == len({kind.table for kind in KINDS}) == len(BY_NAME)
    assert len({kind.plural for kind in KINDS}) == len(KINDS)
    assert all(kind_of(kind.record) == kind.name for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_row_names_what_there_is(bank: Bank, kind: Kind) -> None:
    assert kind.layer in list(Layer)
    fields = types_of(kind.record)  # type: ignore[arg-type]
    assert {*kind.keys, *kind.times} <= fields.keys()
    keys = {kind.keys.get(name, name) for name in fields}
    assert kind.signs <= keys
    assert bool(kind.short_id) == ("number" in fields and "short_id" in dir(kind.record))
    how = mapping_for(kind.record)
    with bank.reading() as reader:
        assert reader.select_fields(kind.name, how.columns) == []
        assert reader.count(kind.name) == 0


def test_what_other_rooms_know_of_kinds_is_what_the_rows_say() -> None:
    assert tuple(DOCUMENTS) == tuple(RENDERERS) == SEARCHABLE


def test_every_file_of_an_export_is_named_by_a_row(bank: Bank) -> None:
    with bank.reading() as reader:
        files = export_lines(reader, LessonFormat.CROSS_RUN, bank.actor)
    assert set(files) == {kind.file for kind in KINDS if kind.file} | {ARCHIVE}


def test_a_line_is_recognised_as_one_kind_only() -> None:
    for kind in KINDS:
        names = {kind.keys.get(name, name) for name in types_of(kind.record)}  # type: ignore[arg-type]
        others = [other for other in KINDS if other.signs and other.signs <= names]
        assert not kind.signs or kind in others
        assert len(others) <= 1, kind.name


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("m-001", 1),
        ("M-12", 12),
        ("m-", None),
        ("p-1", None),
        ("m-1x", None),
        ("m-²", None),
        ("m-" + "1" * 13, None),
    ],
)
def test_a_short_id_is_read_by_its_kind(name: str, number: int | None) -> None:
    assert BY_NAME["lesson"].parse_short_id(name) == number
    assert BY_NAME["event"].parse_short_id(name) is None


def test_a_record_without_a_name_is_called_by_its_fields(tmp_path: Path) -> None:
    assert BY_NAME["fact"].label_of({"category": "a{b}", "key": "c"}) == "a{b}/c"
    assert BY_NAME["artifact"].label_of({"path": str(tmp_path)}) == str(tmp_path)
