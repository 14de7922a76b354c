"""What all tests share: a bank in a temporary folder, a clock that the test moves, no network."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from archivist import Bank, trust
from archivist.files.git import keep_out_of_git
from archivist.records import Actor, ActorKind
from tests.banks import fresh_bank, lay_bank
from tests.commands import Command, Ran, run_apart, run_here

__all__ = ["START", "Command", "CountingIds", "Ran", "TickingClock"]

# The same examples every time, so that what passed passes again; `ARCHIVIST_EXPLORE=1` looks for new ones.
settings.register_profile(
    "ours",
    deadline=None,
    derandomize="ARCHIVIST_EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("ours")

START = datetime(2026, 4, 3, 14, 0, tzinfo=UTC)


@dataclass
class TickingClock:
    """A clock that moves one second at each look."""

    now: datetime = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@dataclass
class CountingIds:
    """Ids that sort and can be foretold."""

    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __call__(self, _moment: datetime) -> str:
        return f"id-{next(self.numbers):06d}"


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give what several tests share a home too: a module's banks are made before its first test's home."""
    folder = tmp_path_factory.mktemp("shared-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHIVIST_HOME", str(folder / ".archivist"))
        patch.setenv("HOME", str(folder))
        # On a busy machine a hook may take longer than a client would wait.
        patch.setenv("ARCHIVIST_HOOK_DEADLINE_S", "60")
        yield folder


@pytest.fixture(scope="module", autouse=True)
def _forget_shared_banks(shared_home: Path) -> Iterator[None]:
    yield
    (shared_home / ".archivist" / trust.FILE_NAME).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a home of its own, so that no real memory is touched; shared banks are trusted."""
    folder = tmp_path / "home"
    shared = shared_home / ".archivist" / trust.FILE_NAME
    if shared.exists():
        (folder / ".archivist").mkdir(mode=0o700, parents=True)
        (folder / ".archivist" / trust.FILE_NAME).write_bytes(shared.read_bytes())
        # A server of the whole module notes the log of its bank there.
        (shared.parent / "state").mkdir(exist_ok=True)
        (folder / ".archivist" / "state").symlink_to(shared.parent / "state")
    monkeypatch.setenv("ARCHIVIST_HOME", str(folder / ".archivist"))
    monkeypatch.setenv("HOME", str(folder))
    for name in ("ARCHIVIST_BANK", "ARCHIVIST_ACTOR", "ARCHIVIST_STORE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(autouse=True)
def _on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test find the installed command first, however the tests were started."""
    usual = os.environ.get("PATH", os.defpath)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), usual]))


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any connection that leaves the machine fail."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and not address[0].startswith(("127.", "::1", "localhost")):
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def clock() -> TickingClock:
    """Return a clock that the test can move."""
    return TickingClock()


@pytest.fixture
def bank(tmp_path: Path, clock: TickingClock) -> Iterator[Bank]:
    """Open a fresh bank."""
    opened = fresh_bank(
        tmp_path / "project", actor=Actor(ActorKind.HUMAN, "ada"), clock=clock, ids=CountingIds()
    )
    yield opened
    opened.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder for a project without a bank."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def archivist(project: Path) -> Command:
    """Run the command in the project folder, within this process: a process takes twenty times as long."""

    def run(*words: str, cwd: Path = project, stdin: bytes = b"", **environment: str) -> Ran:
        return run_here(words, cwd, stdin, environment)

    return run


@pytest.fixture
def bank_cli(archivist: Command, project: Path) -> Command:
    """Run the command in a project that has a bank, as `init` makes it."""
    keep_out_of_git(lay_bank(project))
    return archivist


@pytest.fixture
def archivist_process(project: Path) -> Command:
    """Run the installed command in the project folder as a process of its own."""

    def run(*words: str, cwd: Path = project, stdin: bytes = b"", **environment: str) -> Ran:
        return run_apart(words, cwd, stdin, environment)

    return run
