"""Replacing a file that others edit at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist.files import swap as exchange
from archivist.files.compare_and_write import replace_if_unchanged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "lessons.md"
    file.write_bytes(b"before")
    return file


def test_a_file_is_replaced_when_it_is_as_it_was(path: Path) -> None:
    assert replace_if_unchanged(path, b"before", b"after")
    assert path.read_bytes() == b"after"
    assert not replace_if_unchanged(path, b"before", b"again")
    assert [each.name for each in path.parent.iterdir() if each.is_file()] == ["lessons.md"]


def test_an_edit_between_the_look_and_the_exchange_goes_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = exchange.exchange_files
    calls: list[int] = []

    def late(one: Path, other: Path) -> bool:
        calls.append(1)
        if len(calls) == 1:
            path.write_bytes(b"by hand")
        return swap(one, other)

    monkeypatch.setattr(exchange, "exchange_files", late)
    assert not replace_if_unchanged(path, b"before", b"after")
    assert path.read_bytes() == b"by hand"
    assert len(list(path.parent.glob("*lessons*"))) == 1


def test_a_third_edit_stays_beside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = exchange.exchange_files
    texts = [b"first edit", b"second edit"]

    def late(one: Path, other: Path) -> bool:
        path.write_bytes(texts.pop(0))
        return swap(one, other)

    monkeypatch.setattr(exchange, "exchange_files", late)
    assert not replace_if_unchanged(path, b"before", b"after")
    assert path.read_bytes() == b"first edit"
    assert path.with_name("lessons.md.displaced").read_bytes() == b"second edit"


def test_where_files_cannot_be_exchanged_they_are_compared_and_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "exchange_files", lambda _one, _other: False)
    assert replace_if_unchanged(path, b"before", b"after")
    assert path.read_bytes() == b"after"
