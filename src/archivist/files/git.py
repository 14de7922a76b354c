"""Ask git about a repository that may be hostile; the one place that starts it.

A repository's own settings can name programs: for a monitor of files, hooks, signatures, a connection. None
of them may run, nothing may be fetched, no lock is taken, and no variable of a git hook counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from archivist.errors import InputError
from archivist.files.worktrees import OWN_IGNORE, SHARED, git_time_left, ignores_itself, repositories_above

# Exit codes that git itself never has.
TOO_LONG, NOT_RUN = -1000, -1001
# What is given here wins over the repository's own settings.
_HARMLESS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.sshCommand=false", "core.gitProxy=",
    "core.askPass=", "core.pager=cat", "core.attributesFile=/dev/null", "credential.helper=",
    "diff.external=", "log.showSignature=false", "log.follow=false", "gpg.program=false",
    "protocol.allow=never", "submodule.recurse=false", "maintenance.auto=false", "gc.auto=0",
    "safe.bareRepository=explicit",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_TIMEOUT_S = 5.0
# Where git did not answer, and when: a pipe that its settings include keeps it waiting for ever.
_SILENT: dict[str, float] = {}
_ASK_AGAIN_S = 60.0
_FOLDER = ".archivist"
_NAMED = 5
# In a folder that git ignores as a whole, a `.gitignore` inside has no say.
_EXCLUSION = b"# What archivist remembers of this clone\n.archivist/"
# A log that shows no difference runs no program that would make one.
_OF_LOG = ("--no-textconv", "--no-ext-diff", "--no-show-signature", "--no-mailmap")


def run_git(folder: Path, *words: str, timeout_s: float) -> tuple[int, bytes]:
    """Return git's exit code and output in a folder; TOO_LONG where it takes longer, NOT_RUN without git."""
    import subprocess

    top = next(iter(repositories_above(folder.absolute() / "_")), None)
    is_silent = monotonic() - _SILENT.get(str(top), -_ASK_AGAIN_S) < _ASK_AGAIN_S
    if (timeout_s := git_time_left(folder, timeout_s)) <= 0 or is_silent:
        return TOO_LONG, b""
    settings = [word for setting in _HARMLESS for word in ("-c", setting)]
    verb, *rest = words
    options = (*_OF_LOG, *rest) if verb == "log" else rest
    pathspecs = ("--literal-pathspecs",) if verb == "log" else ()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # The repository's settings may name another folder for its files, where git would know none of these.
    if top:
        kept["GIT_WORK_TREE"] = str(top)
    program = _find_git(os.environ.get("PATH", ""))
    if not program:
        return NOT_RUN, b""
    try:
        done = subprocess.run(  # noqa: S603
            [program, "-C", str(folder), *settings, *pathspecs, verb, *options],
            env={**kept, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _SILENT[str(top)] = monotonic()
        return TOO_LONG, b""
    except (OSError, ValueError):
        return NOT_RUN, b""
    return done.returncode, done.stdout


@lru_cache(maxsize=1)
def _find_git(folders: str) -> str:
    """Return git's program in the folders of a PATH; one in a repository could be that repository's own.

    `npx`, `npm run` and direnv put `node_modules/.bin` in front, and a clone can bring a `git` there.
    """
    from shutil import which

    for folder in folders.split(os.pathsep):
        found = which("git", path=folder) if os.path.isabs(folder) else None  # noqa: PTH117
        if found and not repositories_above(Path(os.path.realpath(folder), "git")):
            return found
    return ""


def ask_git(folder: Path, *words: str) -> bytes | None:
    """Return git's output in a folder, or None when it fails."""
    code, out = run_git(folder, *words, timeout_s=_TIMEOUT_S)
    return out if code == 0 else None


def exclude_file(folder: Path) -> Path | None:
    """Return `info/exclude` of a folder's own repository; None outside of repositories.

    Git is not asked: every bank that is made asks this, and starting a process takes milliseconds.
    """
    from archivist.files.worktrees import shared_git_dir

    own = shared_git_dir(folder)
    return own / "info" / "exclude" if own is not None and (own / "HEAD").is_file() else None


def add_exclusion(folder: Path, lines: bytes) -> None:
    """Add a comment and its pattern to `info/exclude` of a folder's repository, which no commit carries."""
    from archivist.files.open import read_if_any
    from archivist.files.write import replace_file

    path = exclude_file(folder)
    # If the file cannot be written, git still shows what should be excluded; nothing worse happens.
    with suppress(OSError, InputError):
        before = read_if_any(path) if path is not None else None
        if path is None or lines.splitlines()[-1] in (before or b"").splitlines():
            return
        if before is None or before.endswith(b"\n"):
            after = (before or b"") + lines + b"\n"
        else:
            # No newline at the end marks where the lines were added, so that they come out exactly.
            after = before + b"\n" + lines
        replace_file(path, after, mode_from=path)


def remove_exclusion(folder: Path, lines: bytes) -> None:
    """Take lines out of `info/exclude` again, so that the file is as it was before they were added."""
    from archivist.files.open import read_if_any
    from archivist.files.write import replace_file

    path = exclude_file(folder)
    with suppress(OSError, InputError):
        before = read_if_any(path) if path is not None else None
        if path is None or before is None or lines not in before:
            return
        if before.endswith(b"\n" + lines):
            replace_file(path, before.removesuffix(b"\n" + lines), mode_from=path)
        elif after := before.replace(lines + b"\n", b"", 1):
            replace_file(path, after, mode_from=path)
        else:
            path.unlink()
            path.parent.rmdir()


def remove_bank_exclusion(bank: Path) -> None:
    """Take out what made git ignore a bank's folder."""
    remove_exclusion(bank.absolute().parent.parent, _EXCLUSION)


def is_tracked(path: Path) -> bool:
    """Say whether git tracks a file; where it does not answer, the worst is assumed."""
    code, listed = _run_on(path, "ls-files", "-z", "--", literal=":(literal)")
    return bool(listed) if code == 0 else code != NOT_RUN


def is_visible(path: Path) -> bool:
    """Say whether git would take a file that it does not track."""
    return _run_on(path, "check-ignore", "-q", "--")[0] == 1


def _run_on(path: Path, *words: str, literal: str = "") -> tuple[int, bytes]:
    """Ask git about a file in the repository above it: the file's own folder may be a planted bare one."""
    file = path.absolute()
    if not (tops := repositories_above(file)):
        return NOT_RUN, b""
    return run_git(tops[0], *words, f"{literal}{file.relative_to(tops[0])}", timeout_s=_TIMEOUT_S)


def keep_out_of_git(bank: Path) -> str:
    """Make git ignore a bank's folder; return what is wrong if git would take the bank all the same."""
    exclude_from_git(bank)
    return find_git_problem(bank)


def exclude_from_git(bank: Path) -> None:
    """Name a bank's folder where git looks for what to ignore.

    Both places are needed: outside of a repository there is only the first, and a pull can replace that.
    """
    from archivist.files.write import replace_file

    folder = bank.absolute().parent
    if folder.name == _FOLDER:
        if not os.path.lexists(folder / ".gitignore"):
            replace_file(folder / ".gitignore", OWN_IGNORE.encode(), is_private=True)
        # From the folder above: this one may be made to look like a repository of its own.
        add_exclusion(folder.parent, _EXCLUSION)


def find_git_problem(bank: Path) -> str:
    """Say why git would publish a bank, or that git does not say; empty when it would not."""
    from archivist.files.worktrees import is_ours_beside

    file = Path(os.path.realpath(bank.parent)) / bank.name
    tops = repositories_above(file)
    if not tops:
        return ""
    # At the top: any folder below can hold files that look like a repository, at which git gives up.
    # Repairs leave copies of the bank beside it.
    tracked = 0
    for top in tops:
        place = file.parent.relative_to(top).as_posix()
        # A file system may know no capitals, and git knows the name as it was committed.
        code, listed = run_git(top, "ls-files", "-z", "--", f":(literal,icase){place}", timeout_s=_TIMEOUT_S)
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        depth = len(file.parent.relative_to(top).parts)
        ours = [name for name in names if is_ours_beside(file, "/".join(name.split("/")[depth:]))]
        if ours:
            from shlex import quote

            from archivist.text import on_one_line

            shown = (quote(on_one_line(str(top / name))) for name in ours[:_NAMED])
            advice = f"git rm --cached {' '.join(shown)}"
            return f"the bank is committed to git, so whoever can push can change it: {advice}"
        tracked = tracked or code
    files = {file, file.with_name(f"{file.name}-wal"), *file.parent.glob(f"{file.name}*")}
    if file.parent.name == _FOLDER:
        files.update(path for path in file.parent.glob("*") if path.name not in SHARED and path.is_file())
    names = sorted(str(path.relative_to(tops[0])) for path in files)
    code, ignored = run_git(tops[0], "check-ignore", "--", *names, timeout_s=_TIMEOUT_S)
    if tracked == 0 and code in (0, 1):
        if ignored.count(b"\n") == len(names):
            return ""
        advice = f"remove the line with ! from the .gitignore files above {bank}, or add the bank to one"
        return f"git does not ignore the bank, and git add would publish it: {advice}"
    if code == NOT_RUN and ignores_itself(file.parent):
        return ""
    return f"git does not say whether it would publish the bank: run git status in {tops[0]}"


class TrackedFolders(NamedTuple):
    """The folders that hold tracked files, and those of submodules, as git names them."""

    folders: frozenset[str]
    submodules: frozenset[str]


def list_tracked_folders(folder: Path) -> TrackedFolders | None:
    """Return what the index and HEAD know below a folder; None when git does not answer."""
    index = ask_git(folder, "ls-files", "--stage", "-z")
    if index is None:
        return None
    # Without a commit there is no HEAD.
    lines = index + (ask_git(folder, "ls-tree", "-r", "-z", "HEAD") or b"")
    folders: set[str] = set()
    submodules: set[str] = set()
    for line in filter(None, lines.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        path = os.fsdecode(name)
        if facts.startswith(b"160000 "):
            submodules.add(path)
        while (path := path.rpartition("/")[0]) and path not in folders:
            folders.add(path)
    return TrackedFolders(frozenset(folders), frozenset(submodules))


def find_brought(files: Iterable[Path]) -> frozenset[Path]:
    """Return the files that came with a repository; all files of one about which git does not answer.

    So does what git keeps for itself: with Git LFS, each large file as it is.
    """
    from archivist.files.worktrees import is_in_git_folder

    indexes: dict[Path, frozenset[str] | None] = {}
    brought: set[Path] = set()
    for file in files:
        for path in {file.absolute(), Path(os.path.realpath(file))}:
            if is_in_git_folder(path):
                brought.add(file)
            for top in repositories_above(path):
                if top not in indexes:
                    code, listed = run_git(top, "ls-files", "-z", "--full-name", timeout_s=_TIMEOUT_S)
                    names = (_fold_name(os.fsdecode(name)) for name in listed.split(b"\0"))
                    indexes[top] = frozenset(names) if code == 0 else None
                index = indexes[top]
                if index is None or _fold_name(path.relative_to(top).as_posix()) in index:
                    brought.add(file)
    return frozenset(brought)


def _fold_name(name: str) -> str:
    """Return a name as file systems compare it that know no capitals or compose letters."""
    from unicodedata import normalize

    return normalize("NFC", name).casefold()
