"""Tell which repository a folder belongs to by git's own files; no process is started, for cold processes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from archivist.errors import InputError
from archivist.files.open import MissingFileError, open_regular, real_path
from archivist.files.open import open_at_once as open_at_once
from archivist.files.open import read_small_text as read_small_text

# Some 300,000 files; of a larger index git is asked.
_MOST_INDEX_BYTES = 32 * 1024 * 1024
# What git reads of a repository before it answers anything.
_READ_BY_GIT = (
    "", "HEAD", "config", "config.worktree", "index", "packed-refs", "refs", "refs/heads", "info/exclude",
    "info/attributes", "objects", "objects/info/alternates", "shallow", "commondir", "../.gitignore",
    "../.gitattributes",
)  # fmt: skip
# Until when git may be waited for in this process: a client waits for a hook.
_git_deadline: list[float] = []
# Worktrees lie in each other by mistake or by malice; each is followed by all folders above another.
_MOST_LINKED = 8
# As many links as the kernel follows.
_MOST_LINKS = 40

# What a repository may hold in the folder of a bank.
SHARED = (".gitignore", "config.toml")
# What `.archivist/.gitignore` holds: it ignores itself too.
OWN_IGNORE = "*\n"


def real_folder(folder: Path, hops: int = 0) -> Path:
    """Return a folder without links: as far as the first link that lies inside a repository.

    A checkout can make any folder of a repository a link, also one that a session ran in before. So such a
    link leads nowhere: what is done there belongs to the repository around it. Links outside of repositories,
    and those of a home folder that is one, are the user's own and are followed.
    """
    folder = folder.absolute()
    place = folder.anchor
    is_inside = repository_around(Path(place)) is not None
    for at, part in enumerate(folder.parts[1:], 2):
        path = os.path.join(place, part)  # noqa: PTH118
        if part == "..":
            place = os.path.dirname(place)  # noqa: PTH120
            is_inside = repository_around(Path(place)) is not None
        elif not os.path.islink(path):  # noqa: PTH114
            place = path
            is_inside = is_inside or _is_worktree(place)
        elif is_inside or hops == _MOST_LINKS:
            break
        else:
            return real_folder(Path(place, os.readlink(path), *folder.parts[at:]), hops + 1)  # noqa: PTH115
    return Path(place)


def nearest_folder(folder: Path) -> Path:
    """Return a folder without links, or the nearest one above it that exists."""
    place = real_folder(folder)
    while not os.path.isdir(place) and place != place.parent:  # noqa: PTH112
        place = place.parent
    return place


def repository_around(folder: Path) -> Path | None:
    """Return the nearest worktree upwards; a home folder under git is not one that others were put into."""
    own = _nearest_repository(folder)
    while own is not None and not _is_worktree(str(own)):
        own = _nearest_repository(own.parent) if own != own.parent else None
    return own


def _is_worktree(folder: str) -> bool:
    return os.path.lexists(f"{folder}/.git") and folder != os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111


def to_main_worktree(folder: Path) -> Path:
    """Return the real folder, and of one in a linked worktree the same folder in the main worktree."""
    real = real_folder(folder)
    own = _nearest_repository(real)
    return real_folder(_main_worktree(own) / real.relative_to(own)) if own is not None else real


def bank_place(folder: Path) -> Path:
    """Return where the bank of a checkout belongs: with what all worktrees share, as long as it is writable.

    It is the main worktree or, of a bare repository, that itself: worktrees come and go.
    """
    main = to_main_worktree(folder)
    bare = _bare_repository(main)
    return bare if bare is not None and os.access(bare, os.W_OK) else main


def shared_place(place: Path) -> Path:
    """Return where a new bank in a place belongs: git removes a linked worktree with its bank."""
    shared = bank_place(place)
    return place if place.suffix == ".db" or shared == real_folder(place) else nearest_folder(shared)


def walk_up(start: Path) -> Iterator[Path]:
    """Yield a folder and those above it; a linked worktree is followed by what it is linked to.

    That is the same folder in the main worktree, or the bare repository.
    """
    linked = 0
    for each in (start, *start.parents):
        yield each
        if linked == _MOST_LINKED or not os.path.lexists(each / ".git"):
            continue
        linked += 1
        if (main := _main_worktree(each)) != each:
            same = real_folder(main / start.relative_to(each))
            yield from (same, *same.parents)
        elif (bare := _bare_repository(each)) is not None:
            yield bare


@contextmanager
def limit_git(seconds: float) -> Iterator[None]:
    """Let all questions to git together take so many seconds."""
    _git_deadline.append(monotonic() + seconds)
    try:
        yield
    finally:
        _git_deadline.pop()


def git_time_left(folder: Path, timeout_s: float) -> float:
    """Return how long git may take over a question; nothing where it would wait for ever.

    An unpacked archive can hold a pipe in the place of a file that git reads.
    """
    top = _nearest_repository(folder)
    own = _git_dir(top) if top is not None else folder
    head = read_small_text(own / "HEAD").removeprefix("ref:").strip()
    for name in (*_READ_BY_GIT, *([head] if head.startswith("refs/") else ())):
        try:
            mode = (own / name).stat().st_mode
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return 0.0
    return min([timeout_s, *(deadline - monotonic() for deadline in _git_deadline)])


def _nearest_repository(folder: Path) -> Path | None:
    """Return the nearest folder upwards that is a worktree, each looked at once."""
    path = str(folder)
    while not os.path.lexists(f"{path}/.git"):
        path, below = os.path.dirname(path), path  # noqa: PTH120
        if path in ("", below):
            return None
    return Path(path)


def repositories_above(path: Path) -> list[Path]:
    """Return the folders above a path that are a worktree of some repository, the nearest first."""
    return [folder for folder in path.parents if os.path.lexists(folder / ".git")]


def is_in_git_folder(path: Path) -> bool:
    """Say whether a path lies in a folder that git keeps for itself, be it called `.git` or a bare one."""
    if any(part.casefold() == ".git" for part in path.parts):
        return True
    for folder in path.parents:
        if os.path.lexists(folder / ".git"):
            return False
        if is_repository(folder):
            return True
    return False


def repository_of(folder: Path, root: Path) -> Path:
    """Return the repository that a session in a folder works on: the nearest one, at most the bank's root.

    Links are followed, and a linked worktree is its repository's main one; of a bare repository, which has
    none, it is the repository itself.
    """
    start, top = to_main_worktree(folder), real_path(root)
    own = _nearest_repository(start)
    is_beyond = own is None or (start.is_relative_to(top) and top.is_relative_to(own))
    return top if own is None or is_beyond else _bare_repository(own) or own


def lies_in(folder: Path, repository: Path) -> bool:
    """Say whether a folder lies in a worktree of a repository, which may be a bare one."""
    place = to_main_worktree(folder)
    own = _nearest_repository(place)
    return place.is_relative_to(repository) or (own is not None and _bare_repository(own) == repository)


def shared_git_dir(folder: Path) -> Path | None:
    """Return the folder that git keeps for all worktrees of a folder's repository; None outside of one.

    A repository elsewhere is only believed to be the folder's when it knows the worktree.
    """
    for each in (folder, *folder.parents):
        own = each / ".git"
        if own.is_dir() and not own.is_symlink():
            return own if _common_git_dir(own) == own else None
        if os.path.lexists(own):
            return _linked_common_dir(each)
    return None


def worktrees_of(folder: Path) -> list[Path]:
    """Return the real folders of the worktrees of a folder's repository, the main one first.

    An archive can bring a list that names anybody's folders: one counts when it names the repository too.
    """
    shared = shared_git_dir(folder)
    if shared is None:
        return []
    found = [real_path(shared.parent)] if shared.name.startswith(".") else []
    for _, linked in _listed_worktrees(shared):
        if (own := _linked_common_dir(linked)) is not None and real_path(own) == real_path(shared):
            found.append(real_path(linked))
    return found


def _listed_worktrees(repository: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the linked worktrees that git's own folder lists: what it keeps of each, and where that lies."""
    entries = repository / "worktrees"
    for entry in sorted(entries.iterdir()) if entries.is_dir() else ():
        yield entry, (entry / read_small_text(entry / "gitdir").strip()).parent


def knew_worktree(repository: Path, folder: Path) -> bool:
    """Say whether a folder that is gone can have been a worktree: git lists it, or has a branch called so.

    A worktree's branch is called like its folder, unless somebody named another.
    """
    shared = shared_git_dir(repository)
    if shared is None:
        return False
    if any(linked == folder for _, linked in _listed_worktrees(shared)):
        return True
    branch = f"refs/heads/{folder.name}"
    is_packed = any(
        line.endswith(f" {branch}") for line in read_small_text(shared / "packed-refs").splitlines()
    )
    return is_packed or (shared / branch).is_file() or (shared / "logs" / branch).is_file()


def latest_worktree(folder: Path) -> Path | None:
    """Return the worktree of a bare repository that git changed last; None of any other folder."""
    if os.path.lexists(folder / ".git") or not is_repository(folder):
        return None
    found: list[tuple[int, Path]] = []
    for entry, linked in _listed_worktrees(folder):
        tree = real_path(linked)
        if _bare_repository(tree) == real_path(folder):
            try:
                found.append(((entry / "index").stat().st_mtime_ns, tree))
            except OSError:
                found.append((0, tree))
    return max(found)[1] if found else None


def is_repository(folder: Path) -> bool:
    """Say whether a folder is a repository of its own: with a worktree, or bare."""
    return os.path.lexists(folder / ".git") or ((folder / "HEAD").is_file() and (folder / "refs").is_dir())


def remote_of(repository: Path) -> str:
    """Return the address that a repository was cloned from: that of `origin`, else of its first remote."""
    return next(iter(remotes_of(repository)), "")


def remotes_of(repository: Path) -> list[str]:
    """Return the addresses of a repository's remotes, that of `origin` first."""
    addresses: dict[str, str] = {}
    for section, key, value in _read_settings(_trusted_git_dir(repository)):
        if section.startswith('[remote "') and key == "url":
            addresses.setdefault(section[9:-2], value)
    own = addresses.pop("origin", "")
    return [address for address in (own, *addresses.values()) if address]


def repository_fingerprint(repository: Path) -> str:
    """Return what stays with a repository wherever it is moved to, and no other has; empty when it has none.

    Git writes the description when it makes a repository and never again. Files of two repositories can be of
    one time, and a removed file's number can be given away again; both together are as good as a name. A link
    to another repository's would be its name, and so would a hard one.
    """
    own = _trusted_git_dir(repository)
    try:
        found = (own / "description").lstat() if own is not None else None
    except (OSError, ValueError):
        return ""
    is_own = found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    return f"{found.st_ino}-{found.st_mtime_ns}" if found is not None and is_own else ""


def _trusted_git_dir(repository: Path) -> Path | None:
    """Return the folder of git's that is a repository's own; None when the repository only points at one.

    An archive can point at anybody's: one elsewhere counts when it names the worktree, as git's own do.
    """
    mark = repository / ".git"
    own = _git_dir(repository)
    if not mark.is_symlink() and own in (mark, repository):
        return own if _common_git_dir(own) == own else None
    if (linked := _linked_common_dir(repository)) is not None:
        return linked
    if mark.is_symlink() or _common_git_dir(own) != own:
        return None
    top = real_path(repository)
    # The second is a submodule's.
    named = [value for section, key, value in _read_settings(own) if (section, key) == ("[core]", "worktree")]
    is_own = real_path(own).parent == top
    return own if is_own or any(real_path(own / name) == top for name in named) else None


def _read_settings(own: Path | None) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of git's settings, as they stand; what git would quote is not unquoted."""
    # An archive could link to the settings of another repository, and be taken for a clone of it.
    if own is None or (own / "config").is_symlink():
        return
    section = ""
    # Only what git takes for the end of a line, or for a space, is one: an address can hold the others.
    for line in read_small_text(own / "config").split("\n"):
        words = line.strip(" \t\r")
        if words.startswith("["):
            section = words
        else:
            key, _, value = words.partition("=")
            yield section, key.rstrip(" \t"), value.lstrip(" \t")


def _main_worktree(worktree: Path) -> Path:
    """Return the main worktree of a linked one; any other is itself."""
    shared = _linked_common_dir(worktree)
    if shared is not None and shared.name.startswith("."):
        return real_path(shared.parent)
    return worktree


def _bare_repository(worktree: Path) -> Path | None:
    """Return the bare repository that a worktree belongs to; None for any other folder."""
    shared = _linked_common_dir(worktree) if os.path.lexists(worktree / ".git") else None
    return None if shared is None or shared.name.startswith(".") else real_path(shared)


def _linked_common_dir(worktree: Path) -> Path | None:
    """Return the folder of git's to which a linked worktree belongs; None for any other.

    A file can point anywhere: it is believed when the repository names this very file. A link in its place
    would be taken for the file that it leads to, so it is never followed.
    """
    mark = worktree / ".git"
    if mark.is_symlink() or not mark.is_file():
        return None
    own = _git_dir(worktree)
    shared = _common_git_dir(own)
    # Its side of the tie lies in the repository, where no other folder could have put it.
    known = read_small_text(own / "gitdir").strip()
    is_linked = known and real_path(own).parent == real_path(shared) / "worktrees"
    named = own / known
    if is_linked and real_path(named.parent) / named.name == real_folder(worktree) / mark.name:
        return shared
    return None


def _git_dir(worktree: Path) -> Path:
    """Return the folder that git keeps for one worktree; a bare repository is that folder."""
    mark = worktree / ".git"
    if not os.path.lexists(mark) and (worktree / "HEAD").is_file():
        return worktree
    said = "" if mark.is_dir() else read_small_text(mark)
    return worktree / said.removeprefix("gitdir:").strip() if said.startswith("gitdir:") else mark


def _common_git_dir(own: Path) -> Path:
    """Return the folder that git keeps for all worktrees of a repository."""
    said = read_small_text(own / "commondir").strip()
    return Path(os.path.normpath(own / said)) if said else own


def is_ours_beside(bank: Path, name: str) -> bool:
    """Say whether a file of this name in a bank's folder holds memory: a part or a copy of the bank."""
    if bank.parent.name == ".archivist":
        return name not in SHARED
    return name.lower().startswith(bank.name.lower())


def may_track(bank: Path) -> bool:
    """Say whether git may track a bank or a file beside it, by the names in its index; git is not started."""
    names = bank.parent.name if bank.parent.name == ".archivist" else bank.name
    wanted = os.fsencode(names.lower())
    for top in repositories_above(bank):
        own = _git_dir(top)
        try:
            with open_regular(own / "index", follows_links=True) as stream:
                index = stream.read(_MOST_INDEX_BYTES).lower()
        except MissingFileError:
            continue
        except (OSError, InputError):
            return True
        # The fourth version shortens names, and a split index has them in a second file.
        is_whole = index[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and len(index) < _MOST_INDEX_BYTES
        if not is_whole or any(own.glob("sharedindex.*")):
            return True
        for entry in index.split(wanted)[1:]:
            name = entry.partition(b"\0")[0].decode("utf-8", "replace")
            rest = name.removeprefix("/") if bank.parent.name == ".archivist" else f"{bank.name}{name}"
            if is_ours_beside(bank, rest):
                return True
    return False


def ignores_itself(folder: Path) -> bool:
    """Say whether the `.gitignore` of a bank's folder is ours."""
    return read_small_text(folder / ".gitignore") == OWN_IGNORE
