"""Tell where the calls of a run worked: in its project, or in a folder that is another's.

What a run met elsewhere teaches nothing about its project. Nothing is read from disk here: which folders are
other repositories was noted when the run was captured.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from archivist.cold_start import lazy_pattern
from archivist.paths import ANY_HOME
from archivist.projects import ENTERED, OTHERS, OWN, checkout_tops
from archivist.reading import programs
from archivist.reading.failures import is_shell
from archivist.reading.shell import MOST_STEPS, Step, parse
from archivist.records.run_words import CALL_KINDS, FOLDER, OPEN_SHELL, EventKind

if TYPE_CHECKING:
    # A hook asks where a call worked, and needs no class of the records for it.
    from archivist.records import Episode, Event

OUTSIDE = ".."
# Without one of these a line stays where it is; parsing all lines took a third of the time to capture a log.
_MAY_LEAVE = lazy_pattern(
    r"\b(?:cd|chdir|pushd)\b|\.\.|[$`]|(?:^|[\s=;&|(\"'])[/~]|\s-\w{0,8}C|\s--(?:prefix|cwd|dir|manifest)"
    r"|(?:^|[;&|(]\s?)(?:zi?|j|autojump|sl) "
)
# What runs a command in folders that its line does not name.
_IN_ANY_FOLDER = lazy_pattern(
    r"\bsubmodule\b[^;&|\n]{0,60}\bforeach\b|\brepo forall\b|\bmeta exec\b|\bparallel\s"
    r"|\bfind\s[^\n]{0,300}?\s-(?:exec|ok)(?:dir)?\s"
    r"|\bsu\s[^\n;|]{0,60}?\s-c\s|\b(?:os|process)\.chdir\("
    r"|\bxargs\b[^|;\n]{0,200}?\s(?:-C|(?:ba|z)?sh -c|make)\b"
    # Parentheses within a path choose a folder by a pattern; read as a shell reads others, they begin a line.
    r"|(?:\b(?:cd|pushd|chdir)|\s-\w{0,8}C|\s--(?:prefix|cwd|dir|manifest-path))[\s=][^\s;&|\"'$]{0,200}\("
    r"|\bfd(?:find)?\s[^\n;|]{0,300}?(?<=\s)(?:-\w{0,8}[xX]|--exec(?:-batch)?)(?=[\s=])"
)
# A name by a pattern; a bare `*` names the whole project.
_GLOB = lazy_pattern(r"(?<![^\s=/])[\w.-]{0,60}[*?[][\w.*?[\]!^:-]{0,60}")
# What runs a command on whatever it is given; where other repositories lie inside, also on what is theirs.
_ON_ANY_FILE = lazy_pattern(r"\bxargs\s")
# Quotes and escapes within a word, which a shell leaves out.
_SPLIT_WORD = lazy_pattern(r"(?<=[\w./~-])(?:\"\"|''|[\"'])(?=[\w./~-])|\\\n|\\(?=[\w.-])")
# What a shell that stays open keeps: variables, functions, other names for commands, what a script sets.
_CHANGES_SHELL = lazy_pattern(
    r"(?:^|[;&|({]\s?|\bdo |\bthen )(?:source|\.|eval|export|alias|declare|set|shopt|function)\s"
    r"|\(\)\s?\{|\bCDPATH\b"
)
# The repository that a call asks its server about, by its name.
_ON_SERVER = lazy_pattern(
    r"\b(?:gh|glab)\s[^\n;&|]{0,200}?\s(?:-R\s?|--repo[ =])[\"']?(?:[\w.:/-]{1,120}/)?([\w.-]{1,100})"
    r"|\bgh\s+api\s[^\n;&|]{0,200}?\brepos/[\w.-]{1,100}/([\w.-]{1,100})"
    r"|\bGH_REPO=[\"']?(?:[\w.:/-]{1,120}/)?([\w.-]{1,100})"
)
# Arguments of several words are messages and patterns to these, not lines to run.
_TELLING = frozenset(("git", "gh", "glab", "echo", "printf", "grep", "rg", "ag"))
# A task of these may be a folder that they run.
_RUN_FOLDERS = frozenset(("bun",))
# In a text that a shell may run.
_BETWEEN_WORDS = lazy_pattern(r"[\s;&|(){}<>=,'\"]+")
# An option before its value, without a space between.
_GLUED_OPTION = r"-(?:[a-z]|[A-Za-z]{0,7}[A-Z])"
_CLONES = lazy_pattern(
    r"\b(?:(?:git|hg|g[hl](?:ab)? repo|jj git)\s+clone|git\s+submodule\s+add|degit)"
    r"\s(?P<given>[^;&|\n]{1,400})"
)
_MOST_CLONES = 20
_FOLDER_FLAGS = frozenset(
    ("-C", "--directory", "--cwd", "--dir", "--prefix", "--manifest-path", "--project-directory")
)
# To these, such an option names where to install or unpack, or something else.
_OTHER_FLAGS = frozenset(("tar", "pip", "cmake", "configure", "grep", "rg", "diff", "curl", "unzip"))
# Programs that are installed, and scripts that a run writes for itself, belong to no other project.
_INSTALLED = lazy_pattern(
    r"/s?bin/[^/]+$|^/(?:usr|opt|nix|snap|tmp|var|private|dev|proc)/"
    r"|^(?:~|/root|/(?:home|Users)/[^/]+)/\.[\w-]+/"
)
# Programs that enter a folder; these one that only the shell of that user knows.
_JUMPS = frozenset(("z", "zi", "j", "autojump"))
_ENTERS = frozenset(("cd", "pushd", "chdir", "sl")) | _JUMPS
# Programs whose option `-C` does.
_ENTERING = frozenset(("git", "make", "gmake", "ninja"))
# A folder that nobody can tell is not the project's.
_UNKNOWN = "/"
# Stands in a path for what only the shell knows.
_SHELLS_OWN = "\0"
_ABOVE_OR_HOME = ("..", "~")
_TOP_OF_CHECKOUT = "git rev-parse --show-toplevel"
_VARIABLE = lazy_pattern(r"\$\{?(\w+)\}?")
_UNSTABLE = lazy_pattern(r"[$`{}\n*?[(]|<\(|\bREDACTED\b")
# What a shell puts before the rest of a path: what a command prints, or a variable.
_COMPUTED = lazy_pattern(
    r"(?:\$\((?P<printed>[^()\n]{1,200})\)|`(?P<quoted>[^`\n]{1,200})`"
    r"|\$(?P<name>\w{1,60})|\$\{(?P<braced>\w{1,60})[^}\n]{0,60}\})(?=/)"
)
_KNOWN_VARIABLES = {"HOME": "~", "PWD": ".", "TMPDIR": "/tmp"}  # noqa: S108 - the name in a line, nothing is written
# A path in whatever place of a line, also in a script that it holds; an option's letter may stand before it.
_PATH = lazy_pattern(r"[^\s\"'`(){}\[\]<>|&;,:=#*?!\\]+")
# A path among the arguments of a tool that is no shell; what one searches for is no path.
_ARGUMENT = lazy_pattern(
    r"(?<!\"pattern\":)(?<!\"query\":)(?<!\"regex\":)\"((?:file://|/|~|\.\.)[^\"\s\\]{0,400})\""
)
# Where this leads depends on the steps before it.
_GOES_UP = lazy_pattern(r"(?:^|[;&(]) ?(?:cd|pushd) \.\.(?=\s|;|\Z)")
_GLUED = lazy_pattern(r"\A(?:-[A-Za-z]{1,8}|[^\w./~-]+)(?=[./~])|[^\w./~-](?=\.\./|~/|\.\.\Z)|[@%^](?=/)")
# Before the name of one package of a workspace, which is most often that of its folder.
_MEMBER = r"\s(?:-[wpF]|--(?:workspace|package|project|scope|filter)|workspace)\s"
# Tools that read from or write to a shell that another call has opened, wherever that one went. The last is a
# script of Codex whose calls cannot be read.
_OTHER_SHELL = frozenset(
    ("bashoutput", "taskoutput", "write_stdin", "read_bash", "write_bash", "killshell", "script")
)
_ENTERING_FLAGS = lazy_pattern(r"-[A-Za-z]{0,8}C")
_MODULE = lazy_pattern(r"(?:\s-m|\s--pyargs)[ =]{1,4}([A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,8})")
_WORKTREE = lazy_pattern(r"(?:.*/)?[\w.-]*worktrees?/[^/]+")
# Of a long line, a script in it most often, the beginning counts for the paths that it names.
_LONGEST_LINE = 1500
_LONGEST_OUTPUT = 16_000
_MOST_PATHS = 60
_SYSTEM = ("/etc/", "/opt/", "/usr/", "/var/")


def run_folders(episode: Episode) -> tuple[str, str]:
    """Return the folder that a run began in, and the root of its checkout.

    That of a run that began above its project, such as in the home folder, is the project's.
    """
    began = str(episode.extra.get(FOLDER) or "").rstrip("/")
    tops = [top.rstrip("/") for top in checkout_tops(episode) if top.startswith("/")]
    around = [top for top in tops if _is_below(began, top)] or [top for top in tops if _is_below(top, began)]
    return began, around[0] if around else began


def relative_folder(folder: str, root: str) -> str:
    """Return a folder relative to the project's root, in whichever worktree; `..` when it lies elsewhere."""
    if not folder.startswith("/"):
        place = folder
    elif root and _is_below(folder, root):
        place = folder[len(root) + 1 :]
    elif worktree := _WORKTREE.match(folder):
        name = f"/{posixpath.basename(root)}"
        return folder[worktree.end() :].removeprefix(name).strip("/")
    else:
        return OUTSIDE
    place = posixpath.normpath(place or ".")
    if inner := _WORKTREE.match(place):
        place = place[inner.end() :].strip("/")
    return OUTSIDE if place.startswith((OUTSIDE, "~")) or _UNSTABLE.search(place) else place.removeprefix(".")


def without_elsewhere(events: Iterable[Event], episode: Episode) -> list[Event]:
    """Leave out the calls that worked outside of their run's project, also in what the run itself cloned."""
    kept: list[Event] = []
    cloned: set[str] = set()
    left: set[object] = set()
    began, _ = run_folders(episode)
    for event in events:
        if event.kind in CALL_KINDS:
            cloned.update(_clones_of(event, began))
            shell = event.extra.get(OPEN_SHELL)
            is_out = shell in left or is_elsewhere(event, episode, cloned)
            # What a shell was told elsewhere holds for as long as it stays open.
            if shell and is_out and _CHANGES_SHELL.search(event.text[:_LONGEST_LINE]):
                left.add(shell)
            if is_out:
                continue
        kept.append(event)
    return kept


def _clones_of(event: Event, began: str) -> Iterator[str]:
    """Yield the folders that a call makes of other repositories; they may be gone at capture."""
    if event.kind is EventKind.EDIT or not is_shell(event.tool):
        return
    folder = str(event.extra.get(FOLDER) or began)
    for found in islice(_CLONES.finditer(event.text[:_LONGEST_LINE]), _MOST_CLONES):
        words = [word.strip("\"'") for word in found["given"].split() if word[:1] != "-"]
        at = next((at for at, word in enumerate(words) if "/" in word or ":" in word), None)
        if at is not None:
            source = re.split(r"[/:]", words[at].rstrip("/").removesuffix(".git"))[-1]
            yield posixpath.normpath(posixpath.join(folder, "".join(words[at + 1 : at + 2]) or source))


def is_elsewhere(event: Event, episode: Episode, cloned: Collection[str] = ()) -> bool:
    """Say whether a call worked outside of its run's project: by its folder, or by where its line leads.

    `cloned` are folders that the run made of other repositories.
    """
    began, root = run_folders(episode)
    if not root:
        return False
    noted = episode.extra.get(ENTERED)
    own, others = (list(noted.get(name) or ()) if isinstance(noted, dict) else [] for name in (OWN, OTHERS))
    tops = [root, *checkout_tops(episode), *own]
    others += [folder for folder in cloned if folder not in tops]
    home = ANY_HOME.match(began)
    # Where nothing tells the root of a run's checkout, it may lie above.
    is_rootless = not checkout_tops(episode)

    def is_outside(place: str, *, is_installed: bool) -> bool:
        if home and (place == "~" or place.startswith("~/")):
            place = home[0] + place[1:]
        elif place.startswith("~") or place == _UNKNOWN:
            return not is_installed
        around = [top for top in (*tops, *others) if _is_below(place, top)]
        if around:
            # The innermost repository around a folder is meant.
            return max(around, key=len) in others
        # The main worktree of a linked one seems to have its name.
        is_main = _WORKTREE.match(root) and posixpath.basename(root) in place.split("/")
        is_inside = is_installed or (is_rootless and (_is_below(began, place) or is_main))
        return not is_inside and relative_folder(place, root) == OUTSIDE

    if event.tool.lower() in _OTHER_SHELL:
        return True
    is_command = event.kind is not EventKind.EDIT and is_shell(event.tool)
    line = event.text[:_LONGEST_LINE]
    if is_command and (_IN_ANY_FOLDER.search(line) or _asks_about_other(line, episode.project)):
        return True
    inside = {
        other[len(top) + 1 :] for other in others for top in tops if _is_below(other, top) and other != top
    }
    if is_command and inside and _ON_ANY_FILE.search(line):
        return True
    if any(_reaches_into(event, path) for path in inside):
        return True
    folder = str(event.extra.get(FOLDER) or began)
    places = ((folder, False), *paths_entered(event, folder))
    if any(is_outside(place, is_installed=is_installed) for place, is_installed in places):
        return True
    # Without another repository inside of the project, only some paths can lead out of it.
    if is_command and not others and not _MAY_LEAVE.search(event.text):
        return False
    return any(
        is_outside(place, is_installed=bool(_INSTALLED.search(place)) or f"{place}/".startswith(_SYSTEM))
        for place in named_paths(event, folder)
    )


def _asks_about_other(line: str, project: str) -> bool:
    """Say whether a line asks a server about another repository by its name; a fork has the same name."""
    own = project.rpartition("/")[2].partition("@")[0].lower()
    named = _ON_SERVER.search(line) if own else None
    return named is not None and next(filter(None, named.groups())).lower().removesuffix(".git") != own


def _reaches_into(event: Event, path: str) -> bool:
    """Say whether a call names another repository inside of the project, or its output does.

    A task may know it by its name alone, and one for the whole project may reach into it.
    """
    # What an edit writes may name anything.
    line = (event.target if event.kind is EventKind.EDIT else event.text)[:_LONGEST_LINE]
    name = path.rpartition("/")[2]
    if any(
        fnmatchcase(name, each) for each in islice(_GLOB.findall(line), _MOST_PATHS) if each.strip("*?[]")
    ):
        return True
    # In an output a name alone may be any word; a path is none.
    printed = path if "/" in path else f"{path}/"
    if printed in event.output and re.search(
        rf"(?<![\w-]){re.escape(printed)}", event.output[:_LONGEST_OUTPUT]
    ):
        return True
    # Most lines hold no such name, and nothing is looked for in them.
    spellings = {line, _SPLIT_WORD.sub("", line)}
    return any(name in text and _names_folder(text, path) for text in spellings)


def _names_folder(line: str, path: str) -> bool:
    """Say whether a line names a folder: in a path, or as a word that is no program, task or message.

    A clone may be called like an ordinary word (`test`, `error`), which the project's own calls hold too.
    """
    parts = path.split("/")
    word = re.escape(parts[-1])
    if re.search(rf"(?:(?<![\w-])|(?<=-[A-Za-z])){word}[/:@=]|(?:[/:@=\"']|{_MEMBER}){word}(?![\w-])", line):
        return True
    if not re.search(rf"(?<![\w-])(?:{_GLUED_OPTION})?{word}(?![\w-])", line):
        return False
    modules = "|".join(re.escape(".".join(parts[at:])) for at in range(len(parts)))
    named = re.compile(rf"(?:{_GLUED_OPTION})?(?:{modules})(?:[.:].*)?", re.DOTALL)
    return any(
        named.fullmatch(part) for step in parse(line)[:MOST_STEPS] for part in _words_that_may_name(step)
    )


def _words_that_may_name(step: Step) -> Iterator[str]:
    """Yield the words of a step that may name a folder: all but program and task behind no option."""
    tasks = [] if step.program in _RUN_FOLDERS else " ".join((*step.wrappers, step.name)).split()
    scripts = step.bodies if step.program in programs.SCRIPTED | programs.SHELLS else ()
    for before, word in pairwise(("", *step.called_values, *scripts)):
        if word in tasks and before[:1] != "-":
            tasks.remove(word)
        else:
            yield from [word] if step.program in _TELLING else _BETWEEN_WORDS.split(word)


def named_paths(event: Event, folder: str) -> Iterator[str]:
    """Yield the paths that a call names in whatever place: what it tests, reads or edits may be another's."""
    if event.kind is EventKind.EDIT or not is_shell(event.tool):
        named = [event.target] if event.kind is EventKind.EDIT else _ARGUMENT.findall(event.text)
        for path in islice(named, _MOST_PATHS):
            place = path.removeprefix("file://")
            if place.startswith(("/", *_ABOVE_OR_HOME)):
                yield posixpath.normpath(place if place[0] in "~/" else f"{folder}/{place}")
        return
    line = event.text[:_LONGEST_LINE]
    # A module of Python lies where its name's parts say.
    for module in islice(_MODULE.findall(line), _MOST_PATHS):
        yield posixpath.normpath("/".join(filter(None, (folder, module.replace(".", "/")))))
    if not any(mark in line for mark in ("/", *_ABOVE_OR_HOME)):
        return
    known = _COMPUTED.sub(lambda found: _computed_folder(found, line), line)
    # Where `cd ..` leads depends on the steps before it, which `paths_entered` follows.
    words = (part for word in _PATH.findall(_GOES_UP.sub("", known)) for part in _GLUED.split(word))
    for path in islice((word for word in words if "/" in word or word in _ABOVE_OR_HOME), _MOST_PATHS):
        if _SHELLS_OWN in path or (path[0] == "~" and (".." in path or path[1:2] not in ("", "/"))):
            yield _UNKNOWN
        elif path != "/" and not path.startswith("//"):
            yield posixpath.normpath(path if path[0] in "~/" else f"{folder}/{path}" if folder else path)


def _computed_folder(found: re.Match[str], line: str) -> str:
    """Return what a shell puts before the rest of a path; where only that shell knows it, a mark for that."""
    name = found["name"] or found["braced"]
    printed = (found["printed"] or found["quoted"] or "").strip()
    if printed == _TOP_OF_CHECKOUT and ".." in line[found.end() :].split(maxsplit=1)[0]:
        return _SHELLS_OWN
    if printed in ("pwd", _TOP_OF_CHECKOUT):
        return "."
    if name in _KNOWN_VARIABLES:
        return _KNOWN_VARIABLES[name]
    # The value of a variable that the line sets stands in it, and so do those that a loop takes.
    return "." if name and re.search(rf"\b{name}=|\b(?:for|read) {name}\b", line) else _SHELLS_OWN


def paths_entered(event: Event, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield where the line of a call leads to: folders that it enters, and those of programs that it names.

    They are relative where the folder of the call is. Beside each stands whether it is only the place of a
    program that seems to be installed, or of a script for one use.
    """
    text = event.text
    if event.kind is EventKind.EDIT or not is_shell(event.tool) or not _MAY_LEAVE.search(text):
        return
    before, variables = _UNKNOWN, {"HOME": "~", "PWD": folder}
    if "CDPATH" in text:
        yield _UNKNOWN, False
    for step in parse(text)[:MOST_STEPS]:
        for assignment in step.assignments:
            name, _, value = assignment.partition("=")
            variables[name] = value.strip("\"'")
        for path, is_folder in _step_paths(step):
            known = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), path)
            if _TOP_OF_CHECKOUT in known and ".." not in known:
                continue
            if _UNSTABLE.search(known) and not is_folder:
                continue
            is_told = not _UNSTABLE.search(known) and step.program not in _JUMPS
            whole = posixpath.normpath(known if known.startswith("~") else posixpath.join(folder, known))
            is_told = is_told and (known[:1] != "~" or known[1:2] in ("", "/"))
            whole = whole if is_told else _UNKNOWN
            if is_folder and step.program in _ENTERS:
                folder, before = (before, folder) if path == "-" else (whole, folder)
                yield folder, False
            elif is_folder:
                yield whole, False
            else:
                yield posixpath.dirname(whole), bool(_INSTALLED.search(whole))
        if step.program == "popd":
            folder, before = before, folder


def _step_paths(step: Step) -> Iterator[tuple[str, bool]]:
    """Yield the paths that say where a step works, and whether each is a folder or a program's file."""
    first = step.arguments[0] if step.arguments else ""
    if step.program in _ENTERS:
        yield first or "~", True
        return
    words = step.values
    called = next((word for word in words if word.endswith(f"/{step.program}")), "")
    is_script = step.program in programs.SCRIPTED | programs.SHELLS | {"source", "."}
    for path in (called, first if is_script and not step.subcommand else ""):
        if "/" in path:
            yield path, False
    for at, word in enumerate(words if step.program not in _OTHER_FLAGS else ()):
        flag, _, value = word.partition("=")
        if flag in _FOLDER_FLAGS:
            path = value or "".join(words[at + 1 : at + 2])
            yield (posixpath.dirname(path) or "." if flag == "--manifest-path" else path), True
        elif step.program in _ENTERING:
            if re.match(r"-C.", word):
                yield word[2:], True
            elif _ENTERING_FLAGS.fullmatch(word):
                yield "".join(words[at + 1 : at + 2]), True


def _is_below(folder: str, top: str) -> bool:
    return bool(top) and f"{folder}/".startswith(f"{top}/")
