"""JSON lines: one bad line costs only itself."""

from __future__ import annotations

import gzip
import random
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import InputError
from archivist.files.jsonl import JsonLine, LineProblem, read_lines, write_lines


def _read(path: Path, content: bytes) -> list[JsonLine | LineProblem]:
    path.write_bytes(content)
    return list(read_lines(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_bom_and_crlf_and_blank_lines_are_passed_over(file: Path) -> None:
    lines = _read(file, b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}\r\n')
    assert [(line.number, line.value) for line in lines if isinstance(line, JsonLine)] == [
        (1, {"a": 1}),
        (3, {"a": 2}),
    ]


def test_a_last_line_without_a_newline_is_read(file: Path) -> None:
    assert len(_read(file, b'{"a": 1}\n{"a": 2}')) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": ', "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"\x00\xff\xfe\x01", "not"),
        (b'{"a": "\xff"}', "not"),
        (b"[" * 100_000, "not JSON"),
        (b"NaN", "not JSON"),
    ],
)
def test_a_bad_line_is_named_with_file_line_and_reason(file: Path, line: bytes, reason: str) -> None:
    good, bad, other = _read(file, b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
    assert isinstance(bad, LineProblem)
    assert isinstance(good, JsonLine)
    assert isinstance(other, JsonLine)
    assert (bad.file, bad.number) == (str(file), 2)
    assert bad.reason.startswith(reason)
    assert str(bad) == f"{file}:2: {bad.reason}"


def test_a_line_of_fifty_megabytes_is_left_out_without_being_held(file: Path) -> None:
    with file.open("wb") as stream:
        stream.write(b'{"a": 1}\n{"a": "')
        for _ in range(50):
            stream.write(b"x" * 1_000_000)
        stream.write(b'"}\n{"a": 3}\n')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = list(read_lines(file))
    assert [type(line) for line in lines] == [JsonLine, LineProblem, JsonLine]
    assert str(lines[1]).endswith(":2: longer than 32 MiB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120_000


def test_gzip_is_unpacked_and_a_cut_file_says_so(file: Path) -> None:
    noise = random.Random(5)  # noqa: S311
    packed = gzip.compress(b"".join(b'{"a": %d}\n' % noise.getrandbits(60) for _ in range(20_000)))
    assert len(_read(file, packed)) == 20_000
    *good, last = _read(file, packed[: len(packed) // 2])
    assert good
    assert isinstance(last, LineProblem)
    assert "cut or damaged" in last.reason


@pytest.mark.parametrize("kind", ["missing", "folder", "empty"])
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.jsonl"
    if kind == "folder":
        path.mkdir()
    if kind == "empty":
        path.touch()
    reasons = {"missing": "no such file", "folder": "is a folder", "empty": "is empty"}
    with pytest.raises(InputError, match=reasons[kind]):
        list(read_lines(path))


def test_writing_is_whole_or_not_at_all(file: Path) -> None:
    assert write_lines(file, [{"a": "ü"}, {"b": None}]) == 2
    before = file.read_bytes()

    def failing() -> object:
        yield {"c": 1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_lines(file, failing())  # type: ignore[arg-type]
    assert file.read_bytes() == before == '{"a":"ü"}\n{"b":null}\n'.encode()
    assert list(file.parent.iterdir()) == [file]


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x"
    path.write_bytes(content or b"\n")
    try:
        assert all(isinstance(line, JsonLine | LineProblem) for line in read_lines(path))
    except InputError as error:
        assert "cut or damaged" in error.message  # noqa: PT017 only what claims to be compressed can be refused


def test_a_binary_file_is_one_problem_and_not_one_a_line(tmp_path: Path) -> None:
    problem, binary = _read(tmp_path / "picture.png", b"\x89PNG\r\n\x1a\0\0IHDR" + b"\n\0\xff" * 500)
    assert isinstance(problem, LineProblem)
    assert str(binary).endswith("picture.png:2: not text but binary: the rest of the file is not read")


def test_a_nul_in_a_line_does_not_hide_the_lines_after_it(tmp_path: Path) -> None:
    lines = _read(tmp_path / "a.jsonl", b'{"a":1}\n\0\n{"a":2}\n')
    assert [type(line) for line in lines] == [JsonLine, LineProblem, JsonLine]
