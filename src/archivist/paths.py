"""Where banks lie, and what a path or an address alone says about a project.

A project's bank lies in its own folder, the global bank under the user's home. `projects.py` decides which
project a folder or a run belongs to.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from archivist.cold_start import lazy_pattern
from archivist.errors import BankError
from archivist.files.worktrees import walk_up

FOLDER = ".archivist"
FILE_NAME = "memory.db"
# What setup did for a bank, in its state folder, for the undo.
SETUP_FILE = "setup.json"
CONFIG_NAME = "config.toml"
# The folder beside a team's bank that holds the people's own banks, and what their names have in between.
PEOPLE = "people"
OF_PERSON = "~"
# How the address of a bank on a server begins.
SERVER_SCHEMES = ("postgresql://", "postgres://")

# A remote's plain forms. The host that is read must be the one that git connects to, so a form in which
# anything else stands (`?`, `#`, `%`, a second `@`, dots as folders) is not taken apart.
_HOST = r"([A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*)"
# A name may have spaces inside: some servers, and logs whose names were replaced, have such owners.
_NAME = r"[A-Za-z0-9._~+-]+(?: [A-Za-z0-9._~+-]+)*"
_FOLDERS = rf"((?:/(?!\.{{1,2}}(?:/|\Z)|\.git(?:/|\Z)){_NAME})+)/?"
_LOGIN = r"(?:[A-Za-z0-9._~%+=-]+(?::[A-Za-z0-9._~%+=-]*)?@)?"
_USER = r"(?:([A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
_PORT = r"(?::([0-9]{1,5}))?"
# Scheme → its usual port, and what follows the scheme. Who logs in to a web server gets the same repository.
_SCHEMES = {
    "https": (443, rf"{_LOGIN}(){_HOST}{_PORT}{_FOLDERS}"),
    "http": (80, rf"{_LOGIN}(){_HOST}{_PORT}{_FOLDERS}"),
    "git": (9418, rf"(){_HOST}{_PORT}{_FOLDERS}"),
    "ssh": (22, rf"{_USER}{_HOST}{_PORT}{_FOLDERS}"),
}
_SCP_REMOTE = rf"{_USER}{_HOST}:{_FOLDERS}"
_LONGEST_REMOTE = 2_000
_LONGEST_NAME = 100
# Folders that say where code lies, not which project it is.
_COMMON_FOLDERS = frozenset([
    "app", "bare", "code", "home", "mnt", "opt", "private", "project", "repo", "repository", "root", "src",
    "testbed", "tmp", "users", "usr", "var", "work", "workdir", "workspace",
])  # fmt: skip
# The home folder of whoever a path belongs to, on whatever machine it was written.
ANY_HOME = lazy_pattern(r"/(?:home|Users)/[^/]+|/root")


def bank_file(path: Path) -> Path:
    """Return a bank's file: the path itself when it names a database, else the one inside that folder."""
    if path.suffix == ".db" or (is_file(path) and path.name != FOLDER):
        return path
    if path.name == FOLDER or path == home_folder():
        return path / FILE_NAME
    return path / FOLDER / FILE_NAME


def state_file_of_url(url: str) -> Path:
    """Return the file beside which the state of a bank lies that is opened by its URL: it has no folder."""
    name = url.rpartition("#")[2].rpartition("bank=")[2]
    return home_folder() / "servers" / safe_name(name) / FOLDER / FILE_NAME


def name_on_server(file: Path, server: str, suffix: str) -> str:
    """Return the name of a new bank on a server that stands for a file.

    Whoever names the bank in the server's URL shares it, other than the global one; else no two folders
    have the same, by a suffix that the caller draws.
    """
    is_global = file.absolute().parent == home_folder().absolute()
    if (shared := server.partition("#")[2]) and not is_global:
        return shared
    return f"{safe_name(bank_name(file.absolute()))}-{suffix}"


def url_on_server(file: Path, server: str, name: str) -> str:
    """Return the URL of a file's bank that has this name on a server; empty for a bank that has none."""
    if not name:
        return ""
    if not server:
        raise BankError(
            f"the memory of {str(project_folder(file))!r} is on a server as {name!r}, and no server is named",
            hint="set ARCHIVIST_STORE=postgresql://HOST/DATABASE, or store.url in your own configuration",
        )
    from urllib.parse import quote

    return f"{server.partition('#')[0]}#{quote(name)}"


def as_text(path: Path) -> str:
    """Return a path as text that can be stored; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_file(path: Path) -> bool:
    """Say whether a file exists; one in a folder that this user may not read does not."""
    # The method of Path raises PermissionError instead.
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Say whether a folder exists; one that this user may not reach does not."""
    return os.path.isdir(path)  # noqa: PTH112


def home_folder() -> Path:
    """Return the folder of the global bank: `ARCHIVIST_HOME`, else `~/.archivist`."""
    home = os.environ.get("ARCHIVIST_HOME")
    return Path(home).expanduser() if home else Path.home() / FOLDER


def spending_file() -> Path:
    """Return the store of what language models may spend and have spent, over all projects of the user."""
    return home_folder() / "model.db"


def state_folder(bank: Path) -> Path:
    """Return the folder under the user's home for what is not memory: logs and locks of hooks, a cache.

    A project's own folder may hold links to anywhere.
    """
    from archivist.cold_start import sha256

    real = real_place(bank)
    name = re.sub(r"[^\w.-]", "_", project_folder(real).name)[:40]
    return home_folder() / "state" / f"{name}-{sha256(os.fsencode(real)).hexdigest()[:16]}"


def was_set_up(bank: Path) -> bool:
    """Say whether `archivist setup` was run for a bank."""
    return (state_folder(bank) / SETUP_FILE).exists()


def real_place(bank: Path) -> Path:
    """Return where a bank's file lies: the real folder of its project, whatever links the project holds.

    A link in the place of `.archivist` or of the file must not make it the bank of another project. The
    global bank's folder is the user's own, and may be one.
    """
    bank = bank.absolute()
    if bank.parent == home_folder().absolute():
        return Path(os.path.realpath(bank))
    inside = Path(FOLDER if bank.parent.name == FOLDER else "", bank.name)
    return Path(os.path.realpath(project_folder(bank))) / inside


def has_bank(folder: Path) -> bool:
    """Say whether a folder has a bank; an empty file is none, and a repository can bring one."""
    file = folder / FOLDER / FILE_NAME
    return is_file(file) and file.stat().st_size > 0


def checkout_of(start: Path) -> Path:
    """Return the folder where a client that is opened here looks for its project settings.

    It is the nearest one upwards that is a repository or a worktree, or has a bank; else the folder itself.
    """
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git") or has_bank(folder):
            return start if folder / FOLDER == home_folder() else folder
    return start


def unreadable_above(start: Path) -> Path | None:
    """Return the nearest `.archivist` upwards that this user may not read, or None."""
    for folder in walk_up(start):
        try:
            (folder / FOLDER / FILE_NAME).stat()
        except PermissionError:
            return folder / FOLDER
        except OSError:
            continue
    return None


def project_of_folder(folder: str) -> str:
    """Return the name of the project that a working folder belongs to, if the path alone tells it.

    A log may come from a container, where every project lies in `/app` or `/testbed`.
    """
    names = reversed(project_parts(folder))
    return safe_name(next((name for name in names if name.lower() not in _COMMON_FOLDERS), ""))


def safe_name(name: str) -> str:
    """Return a folder's name as it can be told: a repository may call its folders anything."""
    return re.sub(r"[^\w .+@~-]+", "-", name)[:_LONGEST_NAME]


def project_parts(folder: str) -> list[str]:
    """Return the folders of a path without those of a user's home."""
    names = [name for name in folder.replace("\\", "/").split("/") if name]
    return names[2:] if len(names) > 2 and names[0].lower() in ("home", "users") else names


def project_of_address(address: str) -> str:
    """Return `owner/repo` of an address that has a host; of any other nothing."""
    owner, _, name = address.removeprefix("//").partition("/")[2].rpartition("/")
    return f"{owner.rpartition('/')[2]}/{name}" if address.startswith("//") and owner else ""


def remote_address(url: str) -> str:
    """Return a git remote as `//host/path`, in whichever plain form; one on this machine as its path.

    The user of an ssh remote is a part of it, but for the usual `git`, and so is a port that is not the
    usual one. Any other form is opaque: `?` and a digest, which equals only itself and holds no password. A
    path that is relative to the repository is no address.
    """
    scheme, is_url, rest = url.partition("://")
    is_local = scheme == "file" if is_url else url.startswith("/")
    head, is_scp, path = url.partition(":")
    found = None
    if len(url) > _LONGEST_REMOTE:
        pass
    elif is_local:
        local = rest if is_url else url
        if re.fullmatch(_FOLDERS, local):
            return local.rstrip("/")
    elif scheme in _SCHEMES and is_url:
        usual, form = _SCHEMES[scheme]
        if found := re.fullmatch(form, rest):
            user, host, port, path = found.groups()
            return _host_address(user, host.lower(), int(port or usual), usual, path, is_ssh=scheme == "ssh")
    elif not is_url and is_scp:
        found = re.fullmatch(_SCP_REMOTE, f"{head}:/{path.removeprefix('/')}")
        # A single letter is a drive to git on Windows.
        if found and len(found[2]) > 1:
            is_home = found[1] != "git" and not path.startswith(("/", "~"))
            path = f"/~{found[3]}" if is_home else found[3]
            return _host_address(found[1], found[2].lower(), 22, 22, path, is_ssh=True)
    if not is_local and not is_url and ":" not in url.partition("/")[0]:
        return ""
    from archivist.cold_start import sha256

    return f"?{sha256(url.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _host_address(user: str | None, host: str, port: int, usual: int, path: str, *, is_ssh: bool) -> str:
    is_named = is_ssh and (user != "git" or port != usual)
    at = f"{user or ''}@{host}" if is_named else host
    return f"//{at if port == usual else f'{at}:{port}'}{path.removesuffix('.git')}"


def project_folder(bank: Path) -> Path:
    """Return the project folder of a bank's file; the folder of the file when it is in no project."""
    folder = bank.absolute().parent
    return folder.parent if folder.name == FOLDER else folder


def bank_name(bank: Path) -> str:
    """Return what a bank is called among others: its project's folder, or `web~ada` for Ada's own."""
    folder = bank.parent
    if folder.parent.name == PEOPLE:
        return f"{bank_name(folder.parent.with_name(FILE_NAME))}{OF_PERSON}{folder.name}"
    return "global" if bank == bank_file(home_folder()) else project_folder(bank).name


def person_bank(team: Path, person: str) -> Path:
    """Return the file of a person's own bank beside a team's; the name must be safe as that of a folder."""
    return team.parent / PEOPLE / person / FILE_NAME


def editor_folders(
    editors: Sequence[str], home: Path, variables: Mapping[str, str], platform: str = ""
) -> list[Path]:
    """Return where VS Code and editors made from it keep a user's settings and sessions."""
    platform = platform or sys.platform
    if platform == "darwin":
        top = home / "Library/Application Support"
    elif platform == "win32":
        top = Path(variables.get("APPDATA") or home / "AppData/Roaming")
    else:
        top = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    return [top / editor / "User" for editor in editors]


def folder_of_uri(uri: str) -> str:
    """Return the local path that a `file:` URI names; empty for any other, also one of another machine."""
    host, slash, rest = uri.removeprefix("file://").partition("/")
    if not uri.startswith("file://") or not slash or host.lower() not in ("", "localhost"):
        return ""
    from urllib.parse import unquote

    path = f"/{unquote(rest)}"
    # A drive of Windows stands behind the slash.
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path
