"""A real server for tests: `archivist serve` as a process of its own, at a port that the system chose."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from archivist import Bank
from archivist.paths import bank_file
from archivist.records import Actor, ActorKind
from archivist.trust import has_bank_at
from tests.banks import lay_bank

ADA = Actor(ActorKind.HUMAN, "ada")
_ENDS_S = 20


@dataclass(frozen=True)
class Served:
    """A server that runs, and how to come in."""

    url: str
    link: str
    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def address(self) -> tuple[str, int]:
        """Return where it listens."""
        host, _, port = self.url.partition("//")[2].partition(":")
        return host, int(port)

    def token(self, actor: str, **how: float) -> str:
        """Hand out a token as a person of this machine."""
        with Bank.open(self.folder, actor=ADA) as bank:
            return bank.tokens.create(actor, **how).secret  # type: ignore[arg-type]

    def client(self, actor: str = "human:ada") -> httpx.Client:
        """Return a client that comes in as somebody."""
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token(actor)}"}, timeout=60
        )

    def stop(self) -> tuple[int, str]:
        """Ask it to end; return its exit code and what it noted."""
        self.process.send_signal(signal.SIGTERM)
        _, noted = self.process.communicate(timeout=_ENDS_S)
        return self.process.returncode, noted.decode()


@contextmanager
def serving(folder: Path, *words: str, settings: tuple[str, ...] = ()) -> Iterator[Served]:
    """Serve the bank of a folder, made when there is none, until the block ends."""
    if not has_bank_at(bank_file(folder)):
        lay_bank(folder)
    command = [str(Path(sys.executable).parent / "archivist"), "--bank", str(folder)]
    flags = [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        [*command, *flags, "serve", "--port", "0", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    try:
        told = _told(process)
        _wait_until_it_listens(told["url"])
        yield Served(told["url"], told["link"], process, folder)
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=_ENDS_S)


def _wait_until_it_listens(url: str) -> None:
    """Wait for the moment between what a server says and its first answer."""
    parts = urlsplit(url)
    deadline = time.monotonic() + _ENDS_S
    while True:
        try:
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_ENDS_S).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"{url} does not listen"
            time.sleep(0.02)
        else:
            return


def _told(process: subprocess.Popen[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.decode())
        if line.strip() == b"}":
            told: dict[str, str] = json.loads("".join(lines))
            return told
    _, noted = process.communicate(timeout=_ENDS_S)
    raise AssertionError(f"no server: {noted.decode()}")
