"""Reading JSON of any size in bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.capture import json_stream
from archivist.capture.json_stream import (
    LogLine,
    Part,
    SkippedRecord,
    decode,
    preview_log,
    read_document,
    read_lines,
)


class Endless:
    """A source that makes its bytes as they are asked for."""

    def __init__(self, before: bytes, repeated: bytes, times: int, after: bytes) -> None:
        self._pieces = (piece for part in ([before], [repeated] * times, [after]) for piece in part)
        self._ready = b""

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and (piece := next(self._pieces, b"")):
            self._ready += piece
        given_out, self._ready = self._ready[:size], self._ready[size:]
        return given_out

    def readline(self, size: int) -> bytes:
        piece = self.read(size)
        end = piece.find(b"\n") + 1
        if end:
            self._ready = piece[end:] + self._ready
            return piece[:end]
        return piece


@pytest.fixture(autouse=True, params=["scanned", "decoded"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read documents both ways: cut into parts while scanning, and decoded at once when they are small."""
    if request.param == "scanned":
        monkeypatch.setattr(json_stream, "SMALL_DOCUMENT_BYTES", 0)


def parts(data: bytes, *arrays: str) -> list[Part | SkippedRecord]:
    return list(read_document(io.BytesIO(data), arrays))


def test_named_arrays_come_by_element_and_other_members_whole() -> None:
    data = b' {"a": [1, {"b": "]"}], "c": [2, 3], "d": {"e": null}, "f": "x\\"y", "g": -1.5e3, "h": true}'
    assert parts(data, "a") == [
        Part("a", 0, 1),
        Part("a", 1, {"b": "]"}),
        Part("c", None, [2, 3]),
        Part("d", None, {"e": None}),
        Part("f", None, 'x"y'),
        Part("g", None, -1500.0),
        Part("h", None, True),
    ]


def test_a_list_has_the_empty_key() -> None:
    assert parts(b'[{"a": 1}, "b"]') == [Part("", 0, {"a": 1}), Part("", 1, "b")]


def test_a_document_cut_short_gives_what_was_whole() -> None:
    found = parts(b'{"a": [1, {"b": 2}, {"c": ', "a")
    assert found[:2] == [Part("a", 0, 1), Part("a", 1, {"b": 2})]
    assert isinstance(found[2], SkippedRecord)
    assert "cut short" in found[2].reason


def test_a_broken_element_costs_only_itself() -> None:
    found = parts(b'{"a": [{"x": tru}, {"y": 1}]}', "a")
    assert found == [
        SkippedRecord("a[0]", found[0].reason if isinstance(found[0], SkippedRecord) else ""),
        Part("a", 1, {"y": 1}),
    ]


@pytest.mark.parametrize(
    "data", [b"", b"   ", b"nonsense", b"\x00\x01", b'"text"', b"{", b"[", b"{]", b"[}", b'{"a" 1}']
)
def test_what_is_no_document_is_skipped(data: bytes) -> None:
    assert [each for each in parts(data, "a") if isinstance(each, SkippedRecord)]


nested = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
)


@given(value=st.dictionaries(st.text(min_size=1), nested), chunk=st.integers(1, 40))
def test_any_document_is_read_as_a_whole_reader_reads_it(value: dict[str, object], chunk: int) -> None:
    """Whatever the size of the pieces in which it comes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK_BYTES", chunk)
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        expected = json.loads(data)
        found = list(read_document(io.BytesIO(data), ()))
    assert {part.key: part.value for part in found if isinstance(part, Part)} == expected


def test_a_long_string_loses_its_middle_and_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "SMALL_DOCUMENT_BYTES", 0)
    text = "".join(f'{number} ä\n"\\ 😀 ' for number in range(60_000))
    data = json.dumps({"a": [{"t": text, "ascii": text}]}, ensure_ascii=False).encode()
    ascii_only = json.dumps({"a": [{"t": text}]}).encode()
    for version in (data, ascii_only):
        (part,) = parts(version, "a")
        assert isinstance(part, Part)
        kept = part.value["t"]
        assert len(kept) < len(text) / 2
        head, _, rest = kept.partition("\n… [")
        number, _, tail = rest.partition(" characters left out] …\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(number) + len(tail) == len(text)


def test_memory_does_not_grow_with_a_string_of_many_megabytes() -> None:
    before = b'{"type": "x"}\n{"out": "'
    source = Endless(before, b"word and \\u00e9 and \\n" * 3_000, 500, b'end", "after": 1}\n{"last": 1}\n')
    tracemalloc.start()
    found = list(read_lines(cast("BinaryIO", source)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16_000_000
    assert [each.number for each in found if isinstance(each, LogLine)] == [1, 2, 3]
    assert isinstance(found[1], LogLine)
    assert found[1].value["out"].endswith("end")
    assert found[1].value["after"] == 1


def test_an_element_of_too_many_small_parts_is_skipped_and_the_next_is_read() -> None:
    source = Endless(b'{"a": [[', b"[1],[2]," * 1000, 1200, b'[3]], "next"]}')
    found = list(read_document(cast("BinaryIO", source), ("a",)))
    assert isinstance(found[0], SkippedRecord)
    assert "longer than" in found[0].reason
    assert found[1:] == [Part("a", 1, "next")]


def test_lines_are_numbered_and_bad_ones_reported() -> None:
    data = b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": \n[1]\n{"c": 2}'
    found = list(read_lines(io.BytesIO(data)))
    assert found[0] == LogLine(1, {"a": 1})
    assert isinstance(found[1], SkippedRecord)
    assert found[1].where == "line 3"
    assert found[2] == SkippedRecord("line 4", "not a JSON object")
    assert found[3] == LogLine(5, {"c": 2})


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'"caf\xe9"', "caf\ufffd"),
        (b'"\\ud83d"', "?"),
        (b'{"a": NaN}', None),
        (b'"tab\tinside"', "tab\tinside"),
        (b"1" * 30, int("1" * 30)),
    ],
)
def test_decoding_forgives_what_careless_writers_write(raw: bytes, value: object) -> None:
    decoded = decode(raw)
    assert decoded == value or isinstance(decoded, dict)


@pytest.mark.parametrize("raw", [b"", b"{", b"[" * 100_000, b"nul"])
def test_decoding_raises_value_error_for_what_is_no_json(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(raw)


def test_a_glimpse_sees_a_document_whose_beginning_is_cut() -> None:
    found = preview_log(b'{\n "version": 1,\n "steps": [\n  {"id": 1},\n  {"id": 2}, {"i')
    assert found.objects == ({"version": 1, "steps": [{"id": 1}, {"id": 2}]},)


def test_a_glimpse_sees_the_first_lines() -> None:
    found = preview_log(b'{"a": 1}\n{"b": 2}\n{"c')
    assert found.objects == ({"a": 1}, {"b": 2})
    assert found.document == {"a": 1}


def test_a_cut_object_that_is_nested_too_deeply_has_no_preview() -> None:
    assert preview_log(b'{"id": 1, "a": ' + b"[" * 5_000 + b'"x').document.get("a") is None
