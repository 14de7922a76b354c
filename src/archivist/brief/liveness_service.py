"""Look at the working tree: is what a lesson names still there?

What is gone must have been there: git's history, or an earlier look, has to vouch for that, and each question
to the history is asked once and remembered. Where HEAD, the index and the files that a look rests on are
unchanged, the answer comes from `liveness.json` under the user's home and no process is started.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.access.rights import Layer, reads
from archivist.files.git import TOO_LONG, run_git
from archivist.files.worktrees import latest_worktree, open_at_once, remote_of
from archivist.paths import FILE_NAME as BANK_NAME
from archivist.paths import FOLDER, home_folder, project_of_folder, state_folder
from archivist.records import Lesson, Scope
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.brief.liveness import CodeReference

FILE_NAME = "liveness.json"
# All questions to git of one brief together; a hook's client waits about ten seconds.
PATIENCE_S = 2.0
_FORMAT = 1
# The latest entries of each kind that are kept, fewer where the file would become too long.
_MAX_ENTRIES = (1000, 250, 50, 10)
_MAX_FILE_BYTES = 512 * 1024
_MAX_READ_CHARS = 1024 * 1024
# A repository with more Makefiles or manifests than this is asked nothing about targets and scripts.
_MAX_MANIFESTS = 20
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
# Files that may still write a name of something that is gone; our own hold the lessons themselves.
_PROSE = ("*.md", "*.rst", "*.txt", "*.jsonl", f"{FOLDER}/**")
# Witnesses of a look for which only being there counts, not the content.
_ABSENT, _PRESENT = 0, 1


class Liveness(BankService):
    """Whether what lessons name is still there."""

    @reads(Layer.LESSONS)
    def find_stale(self, lessons: Sequence[Lesson]) -> dict[str, str]:
        """Return, by lesson id, what each stale lesson names that is gone from the working tree."""
        return find_stale(self._bank.path.parent, lessons)

    @reads(Layer.LESSONS)
    def find_withheld(self, lessons: Sequence[Lesson]) -> dict[str, str]:
        """Return the stale lessons that are not told; what a person said or approved is told all the same."""
        stale = self.find_stale(lessons)
        if not stale:
            return stale
        from archivist.lessons.standing import is_confirmed

        for lesson in lessons:
            if is_confirmed(lesson):
                stale.pop(lesson.id, None)
        return stale


def find_stale(
    bank_folder: Path, lessons: Iterable[Lesson], *, timeout_s: float = PATIENCE_S
) -> dict[str, str]:
    """Return, by lesson id, why it is stale; a lesson is stale only where that is certain.

    Only lessons of this project are looked at: of no repository, or of one that is called like the folder or
    its git remote. The folder is the bank's (`.archivist`) or the project's.
    """
    if bank_folder == home_folder():
        return {}
    folder = bank_folder.parent if bank_folder.name == FOLDER else bank_folder
    tree = WorkingTree.at(folder, timeout_s=timeout_s)
    if tree is None:
        return {}
    names = tree.names()
    reasons = {
        lesson.id: tree.reason(lesson)
        for lesson in lessons
        if lesson.scope is not Scope.GLOBAL and (not lesson.repo or _last_part(lesson.repo) in names)
    }
    tree.save_cache()
    return {lesson_id: reason for lesson_id, reason in reasons.items() if reason}


class LivenessCache:
    """What earlier looks found, as the file has it. Entries are checked when used, since most are not.

    `looks` has for each lesson a digest of its words, the reason, and its witnesses: paths with a figure of
    their last change. `history` has for each question to git's history whether the answer was yes, and at
    which HEAD it was asked. `programs` has where each was found.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.stamp = ""
        self.looks: dict[str, Any] = {}
        self.history: dict[str, Any] = {}
        self.programs: dict[str, Any] = {}
        # A file that cannot be read is as good as none.
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError), path.open("rb") as file:
            values = json.loads(file.read(_MAX_FILE_BYTES))
            if values["format"] == _FORMAT:
                self.looks, self.history = dict(values["looks"]), dict(values["history"])
                self.programs, self.stamp = dict(values["programs"]), str(values["stamp"])

    def save(self) -> None:
        """Replace the file in one step, readable by its owner only: it holds what lessons name."""
        kinds = {"looks": self.looks, "history": self.history, "programs": self.programs}
        for most in _MAX_ENTRIES:
            latest = {name: dict(list(kind.items())[-most:]) for name, kind in kinds.items()}
            values = {"format": _FORMAT, "stamp": self.stamp, **latest}
            text = json.dumps(values, separators=(",", ":")).encode()
            if len(text) <= _MAX_FILE_BYTES:
                break
        made = self._path.with_name(f"{self._path.name}.{os.urandom(6).hex()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(text)
            made.replace(self._path)
        except OSError:
            with suppress(OSError):
                made.unlink()

    def reason(self, lesson_id: str, words: str) -> str | None:
        """Return the reason that was found for a lesson, or None when what it rests on has changed."""
        try:
            known, reason, witnesses = self.looks[lesson_id]
            stands = known == words and all(_is_unchanged(path, seen) for path, seen in witnesses)
        except (KeyError, ValueError, TypeError):
            return None
        return str(reason) if stands else None

    def answer(self, question: str) -> tuple[bool, str]:
        """Return what history answered, and at which HEAD; no at none when it was not asked."""
        try:
            was_there, head = self.history[question]
        except (KeyError, ValueError, TypeError):
            return False, ""
        return was_there is True, str(head)


def _is_unchanged(path: str, seen: int) -> bool:
    figure = _change_stamp(path)
    return bool(figure) == bool(seen) if seen in (_ABSENT, _PRESENT) else figure == seen


def _last_part(name: str) -> str:
    """Return what a project is called at the end of a path or an address."""
    return name.rstrip("/").removesuffix(".git").replace(":", "/").rsplit("/", 1)[-1].lower()


class GitFolder(NamedTuple):
    """Where git keeps a working tree's state, read without git."""

    top: Path
    own: Path
    common: Path

    @classmethod
    def of(cls, folder: Path) -> GitFolder | None:
        """Find the working tree that a folder is in; `.git` is a file in a linked one and a submodule."""
        for top in (folder, *folder.parents):
            mark = top / ".git"
            own = mark if mark.is_dir() else _resolve_pointer(top, _read_text(mark).removeprefix("gitdir:"))
            if own is not None and (own / "HEAD").is_file():
                return cls(top, own, _resolve_pointer(own, _read_text(own / "commondir")) or own)
        return None

    def head(self) -> str:
        """Return the commit that is checked out, or another text that changes with it."""
        head = _read_text(self.own / "HEAD")
        if not head.startswith("ref:"):
            return head
        ref = head.removeprefix("ref:").strip()
        found = _read_text(self.own / ref) or _read_text(self.common / ref)
        if found:
            return found
        packed = _read_text(self.common / "packed-refs").splitlines()
        found = next((line.split(" ")[0] for line in packed if line.endswith(f" {ref}")), "")
        others = (self.common / "packed-refs", self.common / "reftable" / "tables.list")
        return found or f"{ref} {' '.join(str(_change_stamp(path)) for path in others)}"

    def stamp(self) -> str:
        """Return a text that changes when a commit is made, another checked out or the index written."""
        return f"{self.top} {self.head()} {_change_stamp(self.own / 'index')}"

    def names(self) -> set[str]:
        """Return what the project is called: by its folder and by its remote."""
        found = {_last_part(self.top.name), _last_part(remote_of(self.top))}
        return found | {_last_part(self.common.parent.name)} if self.common.name == ".git" else found


def _read_text(path: Path) -> str:
    """Return a small file's text, empty when it cannot be read."""
    return (_read_whole(path) or "").strip()


def _read_whole(path: str | Path) -> str | None:
    """Return a file's text; None when it cannot be read to its end."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace", opener=open_at_once) as file:
            text = file.read(_MAX_READ_CHARS + 1)
    except (OSError, ValueError):
        return None
    return text if len(text) <= _MAX_READ_CHARS else None


def _resolve_pointer(folder: Path, text: str) -> Path | None:
    """Return the path that a file of git's points to."""
    return Path(os.path.normpath(folder / text.strip())) if text.strip() else None


def _change_stamp(path: str | Path) -> int:
    """Return a figure that changes with a file, 0 without one. A link that leads nowhere is a file, too."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return _ABSENT
    # Two changes within a tick of the clock seldom leave the size as it was.
    return found.st_mtime_ns + found.st_size


class WorkingTree:
    """A project's files at one moment, with git's word on what they were.

    Ask `reason` for each lesson, then `save_cache`.
    """

    def __init__(
        self, folder: Path, git: GitFolder | None, cache: LivenessCache, timeout_s: float, home: Path
    ) -> None:
        self.folder = folder
        # Where the bank lies; another folder than that of the files for a bare repository.
        self._home = home
        self.git = git
        top = git.top if git else folder
        self._roots = (folder,) if top == folder else (folder, top)
        self._cache = cache
        self._is_cache_changed = False
        # Of the look at one lesson: whether every question was answered, and the files that it rests on.
        self._is_complete = True
        self._witnesses: dict[str, int] = {}
        self._tracked: dict[str, bool] | None = None
        self._left_s = timeout_s

    @classmethod
    def at(cls, folder: Path, *, timeout_s: float = PATIENCE_S) -> WorkingTree | None:
        """Look at a project's folder; None when it is in no git working tree and holds nothing to compare."""
        home = folder.resolve()
        # A bare repository has no files of its own.
        folder = latest_worktree(home) or home
        git = GitFolder.of(folder)
        if git is None and all(entry.name == FOLDER for entry in _entries(folder)):
            return None
        cache = LivenessCache(state_folder(home / FOLDER / BANK_NAME) / FILE_NAME)
        # A container may share the file and have other programs.
        machine = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
        stamp = f"{machine} {git.stamp() if git else folder}"
        if cache.stamp != stamp:
            cache.looks.clear()
            cache.stamp = stamp
        return cls(folder, git, cache, timeout_s, home)

    def names(self) -> set[str]:
        """Return what this project is called."""
        own = {_last_part(self.folder.name)}
        if self._home != self.folder:
            own = {_last_part(project_of_folder(str(self._home).removesuffix(".git")))}
        return own | (self.git.names() if self.git else set())

    def save_cache(self) -> None:
        """Keep what was found for the next look; where it cannot be written, it is found again."""
        if self._is_cache_changed and (self._home / FOLDER).is_dir():
            self._cache.save()

    def reason(self, lesson: Lesson) -> str:
        """Say why a lesson is stale, or return an empty text."""
        from archivist.cold_start import blake2b

        words = "\n".join((lesson.summary, lesson.rule, *lesson.remedies)).encode("utf-8", "replace")
        digest = blake2b(words, digest_size=8).hexdigest()
        known = self._cache.reason(lesson.id, digest)
        if known is not None:
            return known
        from archivist.brief.liveness import references_in, staleness_reason

        self._is_complete = True
        self._witnesses = {}
        names = references_in(lesson)
        places = {name: self._find_gone(name) for name in names}
        reason = staleness_reason(names, {name: now for name, now in places.items() if now is not None})
        self._cache.looks.pop(lesson.id, None)
        if self._is_complete:
            self._cache.looks[lesson.id] = (digest, reason, list(self._witnesses.items()))
            self._is_cache_changed = True
        return reason

    def _find_gone(self, name: CodeReference) -> str | None:
        """Return where something that is gone for certain lies now, or an empty text; None for all else.

        The methods below say True, False and, for what is not known, None.
        """
        from archivist.brief.liveness import ReferenceKind

        instead = ""
        match name.kind:
            case ReferenceKind.FILE:
                is_there, instead = self._has_file(name.text)
            case ReferenceKind.FLAG:
                is_there = self._has_flag(name.text, name.program)
            case ReferenceKind.COMMAND if name.program:
                is_there = self._has_target(name.text, is_make=name.program == "make")
            case ReferenceKind.COMMAND:
                is_there = self._has_program(name.text, is_advised=name.is_advised)
        return instead if is_there is False else None

    def _has_file(self, text: str) -> tuple[bool | None, str]:
        """Say whether a file is there; for one that is gone, return where the only one of its name lies."""
        if self._find_on_disk(text):
            return True, ""
        path = text.removeprefix("./")
        tracked = self._tracked_paths()
        # A sparse checkout leaves files out, and a path may be meant from a folder further down.
        for other, is_left_out in tracked.items():
            if f"/{path}/" in f"/{other}/" and (is_left_out or self._find_on_disk(other)):
                return True, ""
        for each in self._paths_from_top(path):
            was_there = each in tracked or self._was_in_history(each)
            if was_there and self._git("check-ignore", "-q", "--no-index", "--", each)[0] == 1:
                base = path.rsplit("/", 1)[-1]
                same_name = [other for other in tracked if other.rsplit("/", 1)[-1] == base]
                moved = [other for other in same_name if self._find_on_disk(other)]
                return False, moved[0] if len(moved) == 1 else ""
        return None, ""

    def _has_flag(self, flag: str, script: str) -> bool | None:
        """Say whether a script still holds a flag which it, and nothing else now, once held."""
        found = self._find_on_disk(script)
        content = self._read(found) if found else None
        if not content or flag in content:
            return True if content else None
        but_prose = [f":(exclude,glob)**/{pattern}" for pattern in _PROSE]
        # Found elsewhere, or no answer.
        if self._git("grep", "-q", "--untracked", "-F", "-e", flag, "--", ".", *but_prose)[0] != 1:
            return None
        return self._look_up_history((script,), f"-S{flag}")

    def _has_target(self, target: str, *, is_make: bool) -> bool | None:
        """Say whether a Makefile has a target, or a package.json a script."""
        if is_make:
            if self._find_on_disk(target):
                return True
            is_there = self._is_in_manifests(
                lambda base: base in _MAKEFILES or base.endswith(".mk"),
                lambda text: _has_target(target, text),
            )
        else:
            # A dependency of that name may bring a script; only a name that no manifest has is gone.
            is_there = self._is_in_manifests(
                lambda base: base == "package.json", lambda text: target in _names_in_json(text)
            )
        if is_there is not False:
            return is_there
        if is_make:
            return self._look_up_history(_MAKEFILES, f"-G^{target}[ \t]*:([^=]|$)")
        return self._look_up_history(("package.json",), f'-G"{target}"[ \t]*:')

    def _has_program(self, program: str, *, is_advised: bool) -> bool | None:
        """Say whether a program can be run; one that is not found may only be outside this PATH."""
        from shutil import which

        known = str(self._cache.programs.get(program, ""))
        found = which(program) or (known if known and Path(known).exists() else "")
        if found:
            self._witnesses[found] = _PRESENT
            # An environment comes and goes with its shell: its programs are no fact about the machine.
            path = Path(found)
            is_in_environment = "node_modules" in path.parts or (path.parent.parent / "pyvenv.cfg").exists()
            if found != known and not is_in_environment:
                self._cache.programs[program] = found
                self._is_cache_changed = True
            return True
        if (known and is_advised) or self._is_lost_entry_point(program):
            # Installing it again changes no file that a kept look could rest on.
            self._is_complete = False
            return False
        return None

    def _is_lost_entry_point(self, program: str) -> bool:
        """Say whether the project itself once installed a program, and no longer does."""
        # An escape may spell a name otherwise: a file that holds one proves nothing.
        is_there = self._is_in_manifests(
            lambda base: base in ("pyproject.toml", "setup.cfg", "setup.py"),
            lambda text: program in text or "\\u" in text.lower() or "\\x" in text,
        )
        if is_there is not False:
            return False
        spelled = program.replace(".", "[.]").replace("+", "[+]")
        entry = f"-G^{spelled}[ \t]*=[ \t]*[\"'][A-Za-z0-9_.]+:[A-Za-z0-9_.]+[\"']"
        return self._look_up_history(("pyproject.toml",), entry) is False

    def _look_up_history(self, paths: Iterable[str], pattern: str) -> bool | None:
        """Return False for what is not there now where these files once had it; else it is not known."""
        candidates = (each for path in paths for each in self._paths_from_top(path))
        return False if any(self._was_in_history(each, pattern) for each in candidates) else None

    def _paths_from_top(self, path: str) -> list[str]:
        """Return the paths from the top of the working tree that a path may mean."""
        top = self._roots[-1]
        return [os.path.relpath(root / path, top).replace(os.sep, "/") for root in self._roots]

    def _find_on_disk(self, path: str) -> str:
        """Return where a path lies, or an empty text; either way the look rests on it."""
        for root in self._roots:
            full = os.path.normpath(root / path)
            is_there = os.path.lexists(full)
            # A look that has read the file rests on more than its being there.
            self._witnesses.setdefault(full, _PRESENT if is_there else _ABSENT)
            if is_there:
                return full
        return ""

    def _read(self, full: str) -> str | None:
        """Return a file's text, on which the look then rests; None when it cannot be read to its end."""
        self._witnesses[full] = _change_stamp(full)
        return _read_whole(full)

    def _is_in_manifests(
        self, is_wanted: Callable[[str], bool], has_name: Callable[[str], bool]
    ) -> bool | None:
        """Say whether a name is in the tracked files that are wanted, or those in this folder or at the top.

        None when it is in none of those that could be read and there are others: they may hold it.
        """
        tracked = [path for path in self._tracked_paths() if is_wanted(path.rsplit("/", 1)[-1])]
        near = [entry.name for root in self._roots for entry in _entries(root) if is_wanted(entry.name)]
        found = [self._find_on_disk(path) for path in (*near, *tracked[: _MAX_MANIFESTS + 1])]
        files = [path for path in dict.fromkeys(found) if path]
        is_every_read = len(files) <= _MAX_MANIFESTS and not any(map(self._tracked_paths().get, tracked))
        for file in files:
            text = self._read(file)
            try:
                if text is not None and has_name(text):
                    return True
            except (ValueError, RecursionError):
                text = None
            is_every_read = is_every_read and text is not None
        return False if is_every_read else None

    def _tracked_paths(self) -> dict[str, bool]:
        """Return the tracked paths, and for each whether a sparse checkout leaves it out."""
        if self._tracked is None:
            code, out = self._git("ls-files", "-t", "-z")
            if code != 0:
                # Git does not answer: nothing more is asked of it this time.
                self._left_s = 0.0
            lines = out.split("\0")[:-1] if code == 0 else []
            self._tracked = {line[2:]: line.startswith("S") for line in lines}
        return self._tracked

    def _was_in_history(self, path: str, *which: str) -> bool:
        """Say whether history has a commit that touched a path, or in it what is asked for.

        A no holds for all commits up to the HEAD it was asked at, so later only the commits since are asked.
        """
        if self.git is None:
            return False
        key, head = "\n".join((path, *which)), self.git.head()
        was_there, asked_at = self._cache.answer(key)
        if was_there or asked_at == head:
            return was_there
        commits = f"{asked_at}..HEAD" if asked_at.isalnum() else "HEAD"
        code, out = self._git("log", "-1", "--format=%h", "--no-renames", *which, commits, "--", path)
        was_there = code == 0 and bool(out.strip())
        # What took too long is not asked again; what failed, as where a commit was pruned, is.
        if code in (0, TOO_LONG):
            self._cache.history[key] = (was_there, head)
        elif code is not None:
            self._cache.history.pop(key, None)
        self._is_cache_changed = True
        return was_there

    def _git(self, *words: str) -> tuple[int | None, str]:
        """Run git and return its exit code and output; no code when the patience was used up before."""
        if self.git is None:
            return None, ""
        if self._left_s <= 0:
            self._is_complete = False
            return None, ""
        from time import monotonic

        start = monotonic()
        code, out = run_git(self.git.top, *words, timeout_s=self._left_s)
        self._left_s -= monotonic() - start
        return code, out.decode("utf-8", "surrogateescape")


def _names_in_json(text: str) -> set[str]:
    """Return every key and text of a JSON document; raise ValueError or RecursionError for any other."""
    found: set[str] = set()

    def take(pairs: list[tuple[str, object]]) -> None:
        for key, value in pairs:
            found.add(key)
            found.update(
                each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)
            )

    json.loads(text, object_pairs_hook=take)
    return found


def _has_target(target: str, makefile: str) -> bool:
    """Say whether a Makefile has a target, or may have by a pattern, another file or what it computes."""
    from fnmatch import fnmatchcase

    for line in makefile.splitlines():
        if line.startswith(("include ", "-include ", "sinclude ")) or "$(eval" in line:
            return True
        left, colon, _ = line.partition(":")
        if not colon or "=" in left or line.startswith(("\t", "#")):
            continue
        if any("$" in word or fnmatchcase(target, word.replace("%", "*")) for word in left.split()):
            return True
    return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
