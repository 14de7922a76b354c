"""The host that is read from a remote is the one that git connects to, or none is read."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archivist.files.worktrees import remote_of
from archivist.paths import project_of_address, remote_address
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import make_repository

_OURS = "https://github.com/acme/shop"
_PLAIN = (
    _OURS, "http://evil.example/acme/shop.git", "ssh://git@github.com/acme/shop", "git@github.com:acme/shop",
    "ssh://alice@box.example:2222/~/shop", "git://evil.example/acme/shop", "alice@box.example:shop.git",
    "/srv/acme/shop", "file:///srv/acme/shop", "../acme/shop",
)  # fmt: skip
_PIECES = (
    "?", "#", "@", ":", "/", "//", "\\", "%40", "%2f", "%00", "..", "/../", "/./", ".", "::", "[", "]", " ",
    "\t", "\u2028", "\u00a0", "\x0b", "é", "443", ":443", ":0", ":80", "~", "alice", "alice:pw@",
    "github.com", "?@github.com", "#@github.com", "@github.com/", "evil.example", "evil.example/", ".git",
    "ext::", "file://", "https://", "-", "+", "&", ";", "'",
)  # fmt: skip
_TELLS_NOTHING = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ASKPASS": "false"}


def _insert(url: str, changes: list[tuple[int, str]]) -> str:
    for at, piece in changes:
        where = at % (len(url) + 1)
        url = url[:where] + piece + url[where:]
    return url


_odd_urls = st.builds(
    _insert,
    st.sampled_from(_PLAIN),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(_PIECES)), min_size=1, max_size=3),
)


def host_of(address: str) -> str:
    """Return the host of an address, or nothing of one that has none."""
    at = address.removeprefix("//").partition("/")[0] if address.startswith("//") else ""
    return at.rpartition("@")[2].partition(":")[0]


class Contacts:
    """A proxy and commands in the place of connections: they note whom git would have asked, and refuse."""

    def __init__(self, folder: Path) -> None:
        self.note = folder / "asked"
        asked = self.note
        for name in ("ssh", "git-proxy"):
            (folder / name).write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{asked}'\nexit 1\n")
            (folder / name).chmod(0o755)

        class Proxy(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                line = self.rfile.readline(65536).decode("latin-1")
                asked.write_text(line.split()[1] + "\n" if len(line.split()) > 1 else "")
                self.wfile.write(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        proxy = f"http://127.0.0.1:{self.server.server_port}"
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        self.environment = {
            **kept,
            **_TELLS_NOTHING,
            "HOME": str(folder),
            "http_proxy": proxy,
            "https_proxy": proxy,
            "GIT_SSH_COMMAND": str(folder / "ssh"),
            "GIT_SSH_VARIANT": "ssh",
            "GIT_PROXY_COMMAND": str(folder / "git-proxy"),
        }

    def asked_by_git(self, url: str, cwd: Path) -> str:
        """Return what git asks for when it fetches from a remote; nothing if it asks nobody."""
        self.note.unlink(missing_ok=True)
        words = ["git", "ls-remote", "--", url]
        subprocess.run(words, cwd=cwd, env=self.environment, capture_output=True, check=False, timeout=30)
        return self.note.read_text().lower() if self.note.exists() else ""


@pytest.fixture(scope="module")
def contacts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contacts]:
    """Return what notes whom git asks."""
    made = Contacts(tmp_path_factory.mktemp("contacts"))
    yield made
    made.server.shutdown()
    made.server.server_close()


def _is_asked(host: str, asked: str) -> bool:
    """Say whether a note of ssh, of a proxy for git or of one for the web names a host."""
    lines = asked.splitlines()
    hosts = {line.rpartition("@")[2] for line in lines}
    for line in lines:
        hosts.add(line.removeprefix("http://").partition("/")[0].rpartition("@")[2].partition(":")[0])
    return host in hosts


@pytest.mark.req("N7")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(url=_odd_urls.filter(lambda url: host_of(remote_address(url)) and "\0" not in url))
def test_git_connects_to_the_host_that_is_read(contacts: Contacts, tmp_path: Path, url: str) -> None:
    asked = contacts.asked_by_git(url, tmp_path)
    assert not asked or _is_asked(host_of(remote_address(url)), asked), (url, remote_address(url), asked)


@pytest.mark.parametrize("url", [url for url in _PLAIN if host_of(remote_address(url))])
def test_what_git_asks_is_noted_for_every_plain_form(contacts: Contacts, tmp_path: Path, url: str) -> None:
    asked = contacts.asked_by_git(url, tmp_path)
    assert _is_asked(host_of(remote_address(url)), asked), asked


@pytest.mark.req("N7")
@settings(max_examples=500, deadline=None)
@given(url=_odd_urls | st.text(max_size=60))
def test_any_other_form_equals_only_itself(url: str) -> None:
    address = remote_address(url)
    assert address == remote_address(url)
    if address.startswith("?"):
        assert (project_of_address(address), url in address) == ("", False)
        assert address != remote_address(f"{url}?")
    elif not address.startswith("//"):
        assert address == "" or url.removeprefix("file://").rstrip("/") == address
        assert project_of_address(address) == ""


ODD = (
    "https://evil.example?@github.com/acme/shop", "https://evil.example?x=@github.com/acme/shop",
    "https://evil.example:?@github.com:443/acme/shop", "https://evil.example?:x@github.com/acme/shop",
    "https://evil.example#@github.com/acme/shop", "https://evil.example\\@github.com/acme/shop",
    "evil/git@github.com:acme/shop", "./git@github.com:acme/shop", "evil::https://github.com/acme/shop",
    "//github.com/acme/shop", "file:////github.com/acme/shop", "file://github.com/acme/shop",
    "https://github.com/acme/shop\u2028/../../evil/x", "https://github.com/acme/shop/../../evil/x",
    "https://github.com/acme/shop?x", "https://github.com/acme/shop%2f..", "https://github.com:444/acme/shop",
    "https://a@b@github.com/acme/shop", "ssh://git%40github.com/acme/shop", "ssh://mallory@github.com/acme/shop",
    "HTTPS://github.com/acme/shop", "https://github.com./acme/shop", "[git@github.com]:acme/shop",
)  # fmt: skip


@pytest.mark.req("N7")
@pytest.mark.parametrize("url", ODD)
def test_no_odd_form_is_the_users_own(url: str, tmp_path: Path) -> None:
    assert remote_address(url) != remote_address(_OURS)
    folder = make_repository(tmp_path / "x", "https://placeholder.example/x")
    words = ["git", "-C", str(folder), "config", "remote.origin.url", url]
    subprocess.run(words, check=True)
    assert remote_address(remote_of(folder)) != remote_address(_OURS)


def test_the_user_of_an_ssh_remote_is_a_part_of_it() -> None:
    forms = (
        "alice@box:api.git", "mallory@box:api.git", "box:api", "box:/api", "alice@box:/api", "https://box/api",
        "ssh://box:2222/api", "https://box:2222/api", "ssh://git@box:2222/api", "alice@box:~mallory/api",
    )  # fmt: skip
    assert len({remote_address(url) for url in forms}) == len(forms)
    home = ("alice@box:api", "ssh://alice@box/~/api.git", "alice@BOX:~/api/", "ssh://alice@box:22/~/api")
    assert len({remote_address(url) for url in home}) == 1


@pytest.mark.req("N7")
@pytest.mark.parametrize("url", [url for url in ODD if "github.com/acme/shop" in url])
def test_setup_takes_no_session_of_an_odd_remote(
    archivist: Command, home: Path, tmp_path: Path, url: str
) -> None:
    mine = make_repository(tmp_path / "mine", _OURS)
    there = make_repository(tmp_path / "there", "https://placeholder.example/x")
    subprocess.run(["git", "-C", str(there), "config", "remote.origin.url", url], check=True)
    client_homes.codex(home, there, 0, url)
    client_homes.codex(home, Path("/gone/checkout"), 1, url)
    assert "PYTHONPATH=src" not in archivist("setup", "--yes", cwd=mine).out


def _point_at(mine: Path, evil: Path, how: str) -> None:
    """Make a folder that says that another repository's folder of git is its own."""
    evil.mkdir()
    if how == "file":
        (evil / ".git").write_text(f"gitdir: ../{mine.name}/.git\n")
    elif how == "link":
        (evil / ".git").symlink_to(f"../{mine.name}/.git")
    else:
        (evil / ".git").mkdir()
        (evil / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (evil / ".git" / "commondir").write_text(f"../../{mine.name}/.git\n")


@pytest.mark.req("N7")
@pytest.mark.parametrize("how", ["file", "link", "commondir"])
def test_setup_takes_no_session_of_a_folder_that_points_at_the_users(
    archivist: Command, home: Path, tmp_path: Path, how: str
) -> None:
    mine = make_repository(tmp_path / "mine", _OURS)
    _point_at(mine, tmp_path / "evil", how)
    client_homes.codex(home, tmp_path / "evil", 0, "https://evil.example/x")
    assert "PYTHONPATH=src" not in archivist("setup", "--yes", cwd=mine).out


@pytest.mark.req("N7")
@pytest.mark.parametrize("how", ["file", "link", "commondir"])
def test_a_shared_bank_tells_it_nothing(archivist: Command, home: Path, tmp_path: Path, how: str) -> None:
    work = tmp_path / "shared"
    mine = make_repository(work / "mine", _OURS)
    archivist("init", cwd=work)
    for number in range(2):
        archivist("capture", str(client_homes.codex(home, mine, number, _OURS)), cwd=work)
    archivist("reflect", cwd=work)
    _point_at(mine, work / "evil", how)
    briefs = [archivist("brief", "--task", "Test the kiln", cwd=each).out for each in (mine, work / "evil")]
    assert ["PYTHONPATH=src" in brief for brief in briefs] == [True, False]


@pytest.mark.parametrize("how", ["submodule", "bare"])
def test_a_folder_of_gits_that_names_its_worktree_is_its_own(tmp_path: Path, how: str) -> None:
    source = make_repository(tmp_path / "source", "https://placeholder.example/x")
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *named, "commit", "-q", "--allow-empty", "-m", "x"], cwd=source, check=True)
    if how == "submodule":
        outer = make_repository(tmp_path / "outer", "https://placeholder.example/y")
        add = ["git", *named, "submodule", "--quiet", "add", str(source), "vendor/x"]
        subprocess.run(add, cwd=outer, check=True, capture_output=True)
        assert remote_of(outer / "vendor" / "x") == str(source)
    else:
        project = tmp_path / "project"
        subprocess.run(["git", "clone", "-q", "--bare", str(source), str(project / ".bare")], check=True)
        (project / ".git").write_text("gitdir: ./.bare\n")
        assert remote_of(project) == str(source)
