"""Ask git about a repository that may be hostile; the one place that starts it.

A repository's own settings can name programs: for a monitor of files, hooks, signatures, a connection. None
of them may run, nothing may be fetched, no lock is taken, and no variable of a git hook counts.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from archivist.errors import InputError

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
_TIMEOUT_S = 10.0
_OWN_IGNORE = b"*\n"
# In a folder that git ignores as a whole, a `.gitignore` inside has no say.
_EXCLUSION = b"# What archivist remembers of this clone\n.archivist/"
# A log that shows no difference runs no program that would make one.
_OF_LOG = ("--no-textconv", "--no-ext-diff", "--no-show-signature", "--no-mailmap")


def run_git(folder: Path, *words: str, timeout_s: float) -> tuple[int, bytes]:
    """Return git's exit code and output in a folder; TOO_LONG after so many seconds, NOT_RUN without git."""
    import subprocess

    settings = [word for setting in _HARMLESS for word in ("-c", setting)]
    verb, *rest = words
    options = (*_OF_LOG, *rest) if verb == "log" else rest
    pathspecs = ("--literal-pathspecs",) if verb == "log" else ()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *settings, *pathspecs, verb, *options],  # noqa: S607
            env={**kept, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TOO_LONG, b""
    except (OSError, ValueError):
        return NOT_RUN, b""
    return done.returncode, done.stdout


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
    from archivist.files.write import read_bytes, replace_file

    path = exclude_file(folder)
    # If the file cannot be written, git still shows what should be excluded; nothing worse happens.
    with suppress(OSError, InputError):
        before = read_bytes(path) if path is not None else None
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
    from archivist.files.write import read_bytes, replace_file

    path = exclude_file(folder)
    with suppress(OSError, InputError):
        before = read_bytes(path) if path is not None else None
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
    """Say whether git tracks a file."""
    return path.parent.is_dir() and bool(ask_git(path.parent, "ls-files", "--", path.name))


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
    if folder.name == ".archivist":
        if not os.path.lexists(folder / ".gitignore"):
            replace_file(folder / ".gitignore", _OWN_IGNORE, is_private=True)
        # From the folder above: this one may be made to look like a repository of its own.
        add_exclusion(folder.parent, _EXCLUSION)


def find_pulled_problem(bank: Path) -> str:
    """Say why git would publish a bank; git is only asked where our own `.gitignore` was replaced."""
    from archivist.files.worktrees import read_small_text

    folder = bank.absolute().parent
    is_ours = read_small_text(folder / ".gitignore").encode() == _OWN_IGNORE
    return "" if is_ours or folder.name != ".archivist" else find_git_problem(bank)


def find_git_problem(bank: Path) -> str:
    """Say why git would publish a bank, and what to do; empty when it would not."""
    # From the folder above: a bank's own may be made to look like a repository of its own.
    folder, place = bank.absolute().parent, ""
    if folder.name == ".archivist":
        folder, place = folder.parent, ".archivist/"
    names = (f"{place}{bank.name}", f"{place}{bank.name}-wal")
    if ask_git(folder, "ls-files", "--", *names):
        advice = f"git rm --cached '{bank}*'"
        return f"the bank is committed to git, so whoever can push can change it: {advice}"
    code, ignored = run_git(folder, "check-ignore", "--", *names, timeout_s=_TIMEOUT_S)
    if code in (0, 1) and ignored.count(b"\n") < len(names):
        advice = f"remove the line with ! from the .gitignore files above {bank}, or add the bank to one"
        return f"git does not ignore the bank, and git add would publish it: {advice}"
    return ""


def tracked_files(folder: Path) -> frozenset[str]:
    """Return the files below a folder that git tracks, by their path from there."""
    found = ask_git(folder, "ls-files", "-z", "--", ".") if folder.is_dir() else None
    return frozenset(os.fsdecode(name) for name in (found or b"").split(b"\0") if name)
