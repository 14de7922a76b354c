"""Opening logs."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archivist.capture.formats import read_log
from archivist.capture.json_stream import SkippedRecord
from archivist.errors import InputError
from archivist.files import packed
from archivist.files.packed import HEAD_BYTES, head_of, open_file

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINE = b'{"run": "r", "seq": 0, "kind": "log", "text": "hello"}\n'


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_packing_is_told_by_the_first_bytes_not_by_the_name(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack(LINE))  # type: ignore[operator]
    with open_file(path) as source:
        assert head_of(source) == LINE
        assert source.read() == LINE


def test_utf_16_is_given_as_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes('{"text": "grün 😀"}'.encode("utf-16"))
    with open_file(path) as source:
        assert source.read() == '{"text": "grün 😀"}'.encode()


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_bomb_is_refused_while_it_unpacks(
    pack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "RATIO_COUNTS_FROM_BYTES", 1024**2)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b" " * (64 * 1024**2)))  # type: ignore[operator]
    with open_file(path) as source, pytest.raises(InputError, match="unpacks too far"):
        while source.read(1024**2):
            pass


def test_size_alone_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_UNPACKED_BYTES", 10)
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(LINE))
    with pytest.raises(InputError):
        open_file(path)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_packed_log_that_is_cut_gives_what_came_before(pack: object, tmp_path: Path) -> None:
    rows = b"".join(
        b'{"run": "r", "seq": %d, "kind": "log", "text": "%d"}\n' % (n, n * n) for n in range(60_000)
    )
    packed = pack(rows)  # type: ignore[operator]
    path = tmp_path / "log"
    path.write_bytes(packed[: len(packed) // 2])
    found = list(read_log(path))
    assert len(found) > 1000
    assert [each for each in found if isinstance(each, SkippedRecord) and "cut or damaged" in each.reason]


def test_missing_empty_and_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_file(tmp_path / "none")
    with pytest.raises(InputError, match="folder"):
        open_file(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty"):
        open_file(tmp_path / "empty")
    (tmp_path / "damaged").write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(InputError):
        open_file(tmp_path / "damaged")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_the_head_of_a_packed_file_is_as_long_as_that_of_a_plain_one(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """A log whose first line is long is recognised by it, packed or not."""
    text = "".join(f"{number * 7919:x}" for number in range(HEAD_BYTES)).encode()
    (tmp_path / "log").write_bytes(pack(text))
    with open_file(tmp_path / "log") as source:
        assert head_of(source) == text[:HEAD_BYTES]
        assert source.read() == text
