"""The packages that others install: what is in them, and that uvx, pipx and pip run them from an index."""

from __future__ import annotations

import base64
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from archivist import __version__

ROOT = Path(__file__).parents[2]
NAME = "archivist-memory"
# Written when a package is installed; not part of its wheel.
_INSTALLED = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json", "uv_build.json")
_EXTRAS = ("mcp", "server")


def _tracked(folder: str = ".") -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    return {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build the sdist, and from it the wheel; return both."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def test_the_packages_pass_the_check_of_the_registry(packages: tuple[Path, Path]) -> None:
    words = [sys.executable, "-m", "twine", "check", "--strict", *map(str, packages)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_holds_the_package_and_nothing_else(packages: tuple[Path, Path]) -> None:
    about = f"archivist_memory-{__version__}.dist-info"
    with zipfile.ZipFile(packages[1]) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"{about}/METADATA").decode()
    assert {name for name in names if not name.startswith(about)} == {
        name.removeprefix("src/") for name in _tracked("src/archivist")
    }
    assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} <= names
    assert f"\nVersion: {__version__}\n" in metadata


def test_the_sdist_holds_what_git_tracks(packages: tuple[Path, Path]) -> None:
    with tarfile.open(packages[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names - {"PKG-INFO"} == _tracked()


def _requirements(package: Distribution, extras: Iterable[str] = ()) -> Iterator[tuple[str, frozenset[str]]]:
    for text in package.requires or ():
        needed = Requirement(text)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield re.sub(r"[-_.]+", "-", needed.name).lower(), frozenset(needed.extras)


def _pack(package: Distribution, into: Path) -> None:
    """Write an installed package as the wheel that it came from."""
    files = [
        file
        for file in package.files or ()
        if file.parts[0] != ".." and "__pycache__" not in file.parts and file.name not in _INSTALLED
    ]
    about = next(file.parts[0] for file in files if file.parts[0].endswith(".dist-info"))
    tags = re.findall(r"(?m)^Tag: (\S+)$", package.read_text("WHEEL") or "")
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    tag = "-".join(".".join(dict.fromkeys(part)) for part in parts)
    record = [f"{about}/RECORD,,"]
    with zipfile.ZipFile(into / f"{about.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        for file in files:
            content = Path(str(file.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
            record.append(f'"{file.as_posix()}",sha256={digest},{len(content)}')
            wheel.writestr(file.as_posix(), content)
        wheel.writestr(f"{about}/RECORD", "\n".join(record) + "\n")


@pytest.fixture(scope="module")
def index(packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a package index of ours and of all that it needs; return its URL."""
    folder = tmp_path_factory.mktemp("index")
    # What builds the package is needed as well, to install from a clone.
    waiting = [*_requirements(distribution(NAME), _EXTRAS), ("hatchling", frozenset[str]())]
    packed, seen = {NAME}, set[tuple[str, frozenset[str]]]()
    _link(folder, NAME).joinpath(packages[1].name).write_bytes(packages[1].read_bytes())
    while waiting:
        name, extras = needed = waiting.pop()
        if needed in seen:
            continue
        seen.add(needed)
        package = distribution(name)
        if name not in packed:
            packed.add(name)
            _pack(package, _link(folder, name))
        waiting += _requirements(package, extras)
    for name in packed:
        links = (f'<a href="{wheel.name}">{wheel.name}</a>\n' for wheel in (folder / name).iterdir())
        text = f"<!DOCTYPE html>\n<html><body>\n{''.join(links)}</body></html>\n"
        (folder / name / "index.html").write_text(text)
    return folder.as_uri()


def _link(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _environment(home: Path, index: str) -> dict[str, str]:
    """Return the variables of a user who has nothing but the index."""
    home.mkdir(exist_ok=True)
    moved = ("ARCHIVIST", "PIP", "UV", "PYTHON", "XDG", "VIRTUAL_ENV", "CLAUDE", "CODEX")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(moved)}
    return {
        **kept,
        "HOME": str(home),
        "PATH": os.pathsep.join(
            [str(home / ".local/bin"), str(Path(sys.executable).parent), "/usr/bin:/bin"]
        ),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "UV_DEFAULT_INDEX": index,
        "UV_PYTHON": sys.executable,
        "UV_NO_CONFIG": "1",
    }


def _run(folder: Path, environment: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _use(folder: Path, environment: Mapping[str, str], program: str) -> None:
    """Do with an installed program what a new user does."""
    assert _run(folder, environment, program, "--version").strip().endswith(__version__)
    _run(folder, environment, program, "init")
    _run(folder, environment, program, "lessons", "add", "Start the database before the tests")
    assert "Start the database" in _run(folder, environment, program, "brief")
    assert "Start the database" in _run(folder, environment, program, "recall", "postgres must run")
    _run(folder, environment, program, "doctor")


def _check_extras(folder: Path, environment: Mapping[str, str], program: str) -> None:
    """Check that what needs an extra says which, and how to install it."""
    server = {**environment, "ARCHIVIST_STORE": "postgresql://db.example/archivist"}
    for words, extra in (
        ("store init", "postgres"),
        ("store move server", "postgres"),
        ("store distribute --dry-run", "postgres"),
        ("init --global", "postgres"),
        ("serve", "server"),
        ("mcp", "mcp"),
    ):
        done = subprocess.run(
            [program, *words.split()], cwd=folder, env=server, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert re.search(rf"needs .*\n.*hint: .*pip install 'archivist-memory\[{extra}\]'", done.stderr), done


def test_uvx_runs_it_from_an_index(index: str, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "home", index)
    app = _link(tmp_path, "app")
    assert __version__ in _run(app, environment, "uvx", NAME, "--version")
    _run(app, environment, "uv", "tool", "install", NAME)
    _use(app, environment, str(tmp_path / "home/.local/bin/archivist"))
    _check_extras(app, environment, str(tmp_path / "home/.local/bin/archivist"))


def test_pipx_installs_it_from_an_index(index: str, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "home", index)
    app = _link(tmp_path, "app")
    _run(app, environment, "pipx", "install", NAME)
    _run(app, environment, "pipx", "run", NAME, "--version")
    _use(app, environment, str(tmp_path / "home/.local/bin/archivist"))
    _run(app, environment, "pipx", "uninstall", NAME)
    assert not (tmp_path / "home/.local/bin/archivist").exists()


@pytest.mark.parametrize("command", ["pipx install '.[mcp,server]'", "uv tool install '.[mcp,server]'"])
def test_a_clone_installs_as_the_readme_says(command: str, index: str, tmp_path: Path) -> None:
    assert command in (ROOT / "README.md").read_text("utf-8")
    environment = _environment(tmp_path / "home", index)
    _run(ROOT, environment, *shlex.split(command))
    program = str(tmp_path / "home/.local/bin/archivist")
    assert __version__ in _run(tmp_path, environment, program, "--version")
    app = _link(tmp_path, "app")
    _run(app, environment, program, "init")
    _run(app, environment, program, "install", "claude-code")
    assert re.search(r"server +starts in", _run(app, environment, program, "doctor"))
    words = [program, "open", "--no-browser"]
    with subprocess.Popen(words, cwd=app, env=environment, stdout=subprocess.PIPE, text=True) as pages:
        assert pages.stdout is not None
        assert "http://127.0.0.1:" in pages.stdout.readline()
        pages.terminate()
