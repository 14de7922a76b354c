"""The names of a workspace: scopes, kinds of files, files of a scan, and the rules of `workspace lint`."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError


class LintSeverity(StrEnum):
    """The severity of a problem: an error makes `workspace lint` fail."""

    ERROR = "error"
    WARNING = "warning"


class LintRule(NamedTuple):
    """A rule about the files: what it asks for, and what to do when it is broken."""

    id: str
    severity: LintSeverity
    asks: str
    remedy: str


# Each line has the id of a rule, after a `?` when it only warns, what it asks for, and the remedy.
_RULE_TABLE = """
unreadable: Files and folders can be read. | give yourself permission to read it
dangling-link: Links lead to a file. | mend the link, or remove it
too-large: Files are texts of 16 MiB at most. | split it, or move it elsewhere
not-written: Files that are to change can be written. | make it writable, and try again
leaves-root: Links stay inside the root. | link to something below the root, or copy it
not-utf8: Files are UTF-8. | save the file as UTF-8
?bom: Files carry no byte order mark. | save the file as UTF-8 without a mark
?crlf: Lines end with a line feed alone. | convert the line ends to LF
empty: Files are not empty. | write it, or remove it
no-front-matter: Plans and overviews have front matter. | archivist workspace migrate adds it
unclosed: Front matter ends with a line `---`. | close it with a line `---`
broken-yaml: Front matter is YAML. | mend the line; quote a value that holds `: ` or ` #`
foreign-front-matter: Front matter is YAML between `---`. | write the fields as YAML between two lines `---`
duplicate-key: A field stands once. | keep one of them
tab: Front matter is indented with spaces. | replace the tab by spaces
missing-field: Required fields are there. | add it; archivist workspace migrate adds what it can tell
?unknown-field: Fields are those of the format. | rename or remove it
bad-value: A field holds what the format says. | write it as the format says
bad-status: The status is one of the five. | one of new, in_progress, partial, done, abandoned
bad-date: Dates are dates, YYYY-MM-DD. | write it as YYYY-MM-DD
?plan-name: Plan files are named YYMMDD-plan-name.md. | rename the file
?abstract-size: An abstract has at most 200 tokens. | say it in one or two sentences, and the rest below
?abstract-file: Abstracts stand in OVERVIEW.md, not in ABSTRACT.md. | archivist workspace migrate merges it
heading-level: The heading of a learning entry has three marks. | the heading must be ### [YYYY-MM-DD] Title
no-title: A learning entry has a title. | ### [YYYY-MM-DD] Title
no-date: A learning entry has a date. | ### [YYYY-MM-DD] Title
no-category: A learning entry has a category. | add a line **Category:** word
?no-text: A learning entry says something. | say what happened and what to do differently
?undecided: A person chooses between an agent's entry and theirs. | keep one, or delete the line **Beside:**
?stray-text: What is learnt stands under a heading. | begin it with ### [YYYY-MM-DD] Title
?old-copy: Copies and links for agent tools follow the hot files. | archivist workspace link all
?too-many-entries: A learning file stays short. | archivist workspace archive --write, then split it
?duplicate-entry: An entry stands once in its file. | keep one of them
conflict-marks: Merges of git are finished. | keep one side, and remove the marks
"""
RULES = {
    name: LintRule(name, LintSeverity.WARNING if mark else LintSeverity.ERROR, asks, remedy)
    for mark, name, asks, remedy in re.findall(r"^(\??)([^:\n]+): (.+) \| (.+)$", _RULE_TABLE, re.MULTILINE)
}


class LintProblem(NamedTuple):
    """One problem: the file, the line, the rule and a message. Line 0 means the whole file.

    `advice` replaces the remedy of the rule where that would not help.
    """

    file: str
    line: int
    rule: str
    text: str
    advice: str = ""

    @property
    def severity(self) -> LintSeverity:
        """Return the severity of its rule."""
        return RULES[self.rule].severity

    @property
    def remedy(self) -> str:
        """Return what to do."""
        return self.advice or RULES[self.rule].remedy

    def __str__(self) -> str:
        return f"{self.file}:{self.line or 1}: {self.rule}: {self.text}"


LEVELS = 3
DOCUMENTED = WorkspaceRules()
ABSTRACT = "ABSTRACT.md"
# Archived entries are kept beside the learnings and are not read.
ARCHIVE = "archive"
_SCOPE_HINT = "a scope is WORKSPACE, WORKSPACE/DOMAIN or WORKSPACE/DOMAIN/REPOSITORY"
_MAX_SUGGESTIONS = 10


class FileKind(StrEnum):
    """What a file of the workspace is, by its name and folder."""

    PLAN = "plan"
    OVERVIEW = "overview"
    ABSTRACT = "abstract"
    DECISIONS = "decisions"
    LESSONS = "lessons"
    DOCUMENT = "document"


LEARNINGS = (FileKind.DECISIONS, FileKind.LESSONS)


class WorkspaceScope(NamedTuple):
    """A workspace, one of its domains, or one repository of a domain; an empty scope means everything."""

    workspace: str = ""
    domain: str = ""
    repository: str = ""

    @classmethod
    def parse(cls, text: str | WorkspaceScope) -> WorkspaceScope:
        """Return the scope of `workspace[/domain[/repository]]`; an empty text is everything."""
        given = str(text).strip()
        inner = given.strip("/")
        parts = [part.strip() for part in inner.split("/")] if inner else []
        is_named = all(
            part and not part.startswith((".", "_")) and not any(sign in part for sign in "/\\\0:")
            for part in parts
        )
        if len(parts) > LEVELS or given.startswith("/") or not is_named:
            raise InputError(f"{str(text)!r} is not a scope", hint=_SCOPE_HINT)
        if parts:
            from archivist.capture.clean import clean_name

            # A scope becomes the name of a folder.
            if any(clean_name(part) != part for part in parts):
                raise InputError("a scope must not hold a secret", hint=_SCOPE_HINT)
        return cls(*parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names that are given, from the workspace down."""
        names = (self.workspace, self.domain, self.repository)
        return names[: next((at for at, name in enumerate(names) if not name), LEVELS)]

    def contains(self, other: WorkspaceScope) -> bool:
        """Say whether another scope is this one or below it."""
        return other.parts[: len(self.parts)] == self.parts

    def __str__(self) -> str:
        return "/".join(self.parts)


EVERYWHERE = WorkspaceScope()


class WorkspaceFile(NamedTuple):
    """One file: its path on disk, its name relative to the root, its scope, and when it last changed.

    `folder` is the whole path below the top of the tree; its first three names are the scope.
    """

    file: str
    name: str
    kind: FileKind
    scope: WorkspaceScope
    folder: str
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def stem(self) -> str:
        """Return the file name without its suffix."""
        return self.name.rpartition("/")[2].removesuffix(".md")


class ScanResult(NamedTuple):
    """The files of a scope, ordered by name, and the problems met on the way."""

    places: list[WorkspaceFile]
    problems: list[LintProblem]


class SourceFile(NamedTuple):
    """The text of one document: its name relative to the root, its kind and its scope."""

    name: str
    kind: FileKind
    scope: WorkspaceScope
    text: str


def decode(data: bytes, name: str) -> tuple[str, tuple[LintProblem, ...]]:
    """Return a file's text; bytes that are not UTF-8 are replaced, and the first of them is reported."""
    try:
        return data.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            problem = LintProblem(name, 1, "not-utf8", "the file is UTF-16")
            return data.decode("utf-16", "replace"), (problem,)
        line = data.count(b"\n", 0, error.start) + 1
        problem = LintProblem(name, line, "not-utf8", f"byte 0x{data[error.start]:02x} is not UTF-8")
        return data.decode("utf-8", "replace"), (problem,)


def suggest_scopes(asked: WorkspaceScope, known: Collection[WorkspaceScope]) -> str:
    """Return a hint for a scope that does not exist: the nearest name, or its siblings."""
    above, wanted, names = EVERYWHERE, "", list[str]()
    for wanted in asked.parts:
        below = (scope.parts[len(above.parts) :] for scope in known if above.contains(scope))
        names = sorted({parts[0] for parts in below if parts})
        if wanted not in names:
            break
        above = WorkspaceScope(*asked.parts[: len(above.parts) + 1])
    from difflib import get_close_matches

    near = get_close_matches(wanted, names, n=1)
    if near:
        return f"did you mean {'/'.join((*above.parts, near[0]))!r}?"
    siblings = ", ".join("/".join((*above.parts, name)) for name in names[:_MAX_SUGGESTIONS])
    if siblings or not above.parts:
        return f"there is {siblings or 'none yet'}"
    return f"{str(above)!r} has nothing below it"
