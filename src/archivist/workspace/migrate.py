"""Bring plans and overviews to the documented form: add missing front matter, merge ABSTRACT.md.

Pure: texts in, texts out. The body of a file never changes, and existing fields are kept; the part of an
ABSTRACT.md that is more than a description is added below the overview.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from difflib import unified_diff
from typing import NamedTuple

from archivist.errors import InputError
from archivist.workspace import front_matter
from archivist.workspace.documents import (
    PlanStatus,
    abstract_of,
    clip_text,
    field_text,
    first_heading,
    first_sentences,
    prose_lines,
    strip_markup,
    title_from,
)
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.lint import OPTIONAL, REQUIRED, day_of_name
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import ABSTRACT, FileKind, WorkspaceFile

DESCRIPTION_CHARACTERS = 300
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s", re.MULTILINE)
_TOP_HEADING = re.compile(r"#[ \t]+(.*?)[ \t]*#*[ \t]*(?:\r?\n|$)")
_STATUS_LINE = re.compile(r"^\W*(?:plan )?status\W*[:=]\W*([A-Za-z][A-Za-z _-]*)", re.IGNORECASE)
# Words of other vocabularies for each status.
_STATUSES = {
    word: status
    for status, words in {
        PlanStatus.NEW: "new draft todo proposed planned open idea backlog not_started pending",
        PlanStatus.IN_PROGRESS: "in_progress inprogress wip active doing started ongoing current",
        PlanStatus.PARTIAL: "partial partially_done partly_done paused blocked on_hold",
        PlanStatus.DONE: "done complete completed finished implemented shipped closed merged resolved "
        "released",
        PlanStatus.ABANDONED: "abandoned cancelled canceled dropped rejected obsolete superseded wontfix",
    }.items()
    for word in words.split()
}
_FIELD_ORDER = ("name", "description", "status", "created", "tags")


class FileChange(NamedTuple):
    """One file before and after a change; None where there is no file."""

    path: str
    before: str | None
    after: str | None
    reasons: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Return the folder of the file."""
        return self.path.rpartition("/")[0]

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = (
            [] if text is None else text.splitlines(keepends=True) for text in (self.before, self.after)
        )
        before = f"a/{self.path}" if old else "/dev/null"
        after = f"b/{self.path}" if self.after is not None else "/dev/null"
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in unified_diff(old, new, before, after)
        )


class WorkspaceMigration(NamedTuple):
    """The changes to make, in order, and a problem for each file that must stay as it is."""

    changes: list[FileChange]
    problems: list[LintProblem]

    def add(self, result: FileChange | LintProblem | None) -> None:
        """Add the result for one file; None is a file that needs no change."""
        if isinstance(result, FileChange):
            self.changes.append(result)
        elif result is not None:
            self.problems.append(result)


def migrate_plan(
    text: str, place: WorkspaceFile, creation_date: Callable[[], date | None]
) -> FileChange | LintProblem | None:
    """Return a plan with its missing fields; `creation_date` is called only when nothing else has a date."""
    problem = _blocking_problem(text, place.name)
    if problem:
        return problem
    renamed = _fix_field_case(text, place)
    read = front_matter.read(renamed, place.name)
    values = read.values
    missing: dict[str, object] = {}
    if not _is_given(values, "name"):
        missing["name"] = _first_text(values, "title") or first_heading(read.body) or title_from(place.stem)
    if not _is_given(values, "description"):
        name = field_text(values.get("name")) or str(missing.get("name", ""))
        missing["description"] = _describe(read, name)
    given = values.get("status")
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    status = guess_status(read.body) if given in (None, "") else _status_of_word(field_text(given))
    if status is not None and values.get("status") != status.value:
        missing["status"] = status.value
    if not _is_given(values, "created"):
        day = day_of_name(place.name.rpartition("/")[2]) or front_matter.day_of(values.get("date"))
        missing["created"] = day or creation_date()
    if "tags" not in values:
        missing["tags"] = _folder_tags(place)
    return _build_change(text, renamed, place.name, missing)


def migrate_overview(text: str, place: WorkspaceFile, abstract: str = "") -> FileChange | LintProblem | None:
    """Return an overview with its missing fields, and with the text of its ABSTRACT.md.

    The first sentences of the abstract become the description; the rest is added below the body as it is.
    """
    problem = _blocking_problem(text, place.name)
    if problem:
        return problem
    renamed = _fix_field_case(text, place)
    read = front_matter.read(renamed, place.name)
    values = read.values
    given_name = field_text(values.get("name"))
    folder = place.folder.rpartition("/")[2]
    names = {_fold_text(name) for name in (given_name, first_heading(read.body), folder, "abstract")}
    parts = _read_abstract(abstract, values, names)
    if isinstance(parts, str):
        return LintProblem(place.name, 0, "abstract-file", parts)
    missing: dict[str, object] = dict(parts.fields)
    if not _is_given(values, "name"):
        words = " ".join(place.folder.split("/")[-2:]).replace("-", " ").replace("_", " ")
        folder_title = " ".join(words.split()).title()
        missing["name"] = _first_text(values, "title") or first_heading(read.body) or folder_title
    description = field_text(values.get("description"))
    rest = parts.rest
    if parts.description and _fold_text(parts.description) not in _fold_text(description):
        joined = f"{description.rstrip('.')}. {parts.description}" if description else parts.description
        if joined == first_sentences(joined) or not description:
            missing["description"] = joined
        else:
            rest = parts.body
    elif not description:
        missing["description"] = _describe(read, given_name or str(missing.get("name", "")))
    if "tags" not in {**values, **missing}:
        missing["tags"] = _folder_tags(place)
    return _build_change(text, _append_abstract(renamed, rest), place.name, missing)


class _AbstractParts(NamedTuple):
    """The parts of an ABSTRACT.md: a description, its text, the text to keep below, and its fields."""

    description: str = ""
    body: str = ""
    rest: str = ""
    fields: Mapping[str, object] = {}


def _read_abstract(abstract: str, values: Mapping[str, object], names: set[str]) -> _AbstractParts | str:
    """Return the parts of an abstract, or the reason why it must stay a file of its own."""
    if not abstract.strip("\ufeff \t\r\n"):
        return _AbstractParts()
    problem = _blocking_problem(abstract, ABSTRACT)
    if problem:
        return f"{ABSTRACT} stays: {problem.text}"
    read = front_matter.read(abstract, "")
    own = {key: value for key, value in read.values.items() if key not in ("name", "title", "description")}
    for key, value in own.items():
        if values.get(key, value) != value:
            return f"{ABSTRACT} stays: its {key!r} differs from the overview's"
    fields = {key: value for key, value in own.items() if key not in values}
    if any(not isinstance(value, str | date | list) for value in fields.values()):
        return f"{ABSTRACT} stays: its front matter has more than plain fields"
    body = read.body.strip("\r\n")
    heading = _TOP_HEADING.match(body)
    if heading and _fold_text(strip_markup(heading[1])) in names:
        # The heading repeats the overview's name.
        body = body[heading.end() :].strip("\r\n")
    description = field_text(read.values.get("description"))
    description = description or clip_text(abstract_of(body), DESCRIPTION_CHARACTERS)
    if not description and not body.startswith("#") and "\n\n" not in body:
        description = clip_text(first_sentences(strip_markup(" ".join(body.split()))), DESCRIPTION_CHARACTERS)
    is_whole = _fold_text(description) == _fold_text(" ".join(body.split()))
    return _AbstractParts(description, body, "" if is_whole else body, fields)


def _append_abstract(text: str, rest: str) -> str:
    """Return an overview's text with a section for the rest of its abstract."""
    if not rest or rest in text.replace("\r\n", "\n") or rest in text:
        return text
    end = "\r\n" if "\r\n" in text[:4096] else "\n"
    gap = "" if not text or text.endswith(end * 2) else end if text.endswith("\n") else end * 2
    return f"{text}{gap}## Abstract{end}{end}{rest.rstrip()}{end}"


def overview_from(abstract: str, place: WorkspaceFile, path: str) -> FileChange | LintProblem:
    """Return a new overview for a folder that has only an ABSTRACT.md: its text with the missing fields."""
    change = migrate_overview(abstract, place)
    if isinstance(change, LintProblem):
        return change
    return FileChange(path, None, change.after if change else abstract, ("made from ABSTRACT.md",))


def _build_change(
    text: str, renamed: str, name: str, missing: dict[str, object]
) -> FileChange | LintProblem | None:
    ordered = {key: missing[key] for key in _FIELD_ORDER if key in missing}
    given = {key: value for key, value in {**ordered, **missing}.items() if value not in ("", None)}
    try:
        after = front_matter.edit_fields(renamed, given, name) if given else renamed
    except InputError as error:
        return LintProblem(name, 0, "broken-yaml", error.message)
    return FileChange(name, text, after, tuple(given) or ("abstract",)) if after != text else None


def _blocking_problem(text: str, name: str) -> LintProblem | None:
    """Return why a file must stay as it is: front matter that cannot be read cannot be completed safely."""
    problem = front_matter.find_foreign(text, name) or next(
        iter(front_matter.read(text, name).problems), None
    )
    if problem or text.strip("\ufeff \t\r\n"):
        return problem
    return LintProblem(name, 0, "empty", "the file is empty")


def _fix_field_case(text: str, place: WorkspaceFile) -> str:
    """Return a text whose fields are spelled as in the format: `Status` becomes `status`."""
    values = front_matter.read(text, place.name).values
    kind = FileKind.PLAN if place.kind is FileKind.PLAN else FileKind.OVERVIEW
    known = {*REQUIRED[kind], *OPTIONAL[kind]}
    names: dict[str, str] = {}
    for key in values:
        right = key.strip().lower()
        if key != right and right in known and right not in values and right not in names.values():
            names[key] = right
    return front_matter.rename_fields(text, names)


def _is_given(values: dict[str, object], field: str) -> bool:
    return values.get(field) not in (None, "", [])


def _first_text(values: dict[str, object], *fields: str) -> str:
    return next((field_text(values[field]) for field in fields if field_text(values.get(field))), "")


def _describe(read: FrontMatter, name: str) -> str:
    """Return a description, or an empty text when only the name could be repeated."""
    text = _first_text(read.values, "summary", "abstract") or abstract_of(read.body)
    return "" if _fold_text(text) == _fold_text(name) else clip_text(text, DESCRIPTION_CHARACTERS)


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(". ")


def _folder_tags(place: WorkspaceFile) -> list[str]:
    """Return the folder names below the workspace, or the workspace's name for its own files."""
    parts = place.folder.split("/")
    return [part.lower() for part in dict.fromkeys(parts[1:] or parts)]


def _status_of_word(word: str) -> PlanStatus | None:
    return _STATUSES.get(re.sub(r"[^a-z]+", "_", word.lower()).strip("_"))


def guess_status(body: str) -> PlanStatus:
    """Guess a status: from a `Status:` line, else from the checkboxes, else new."""
    lines = prose_lines(body)
    for line in lines:
        found = _STATUS_LINE.match(line)
        status = _status_of_word(found[1].strip()) or _status_of_word(found[1].split()[0]) if found else None
        if status is not None:
            return status
    boxes = _BOX.findall("\n".join(lines))
    ticked = sum(box != " " for box in boxes)
    if not ticked:
        return PlanStatus.NEW
    return PlanStatus.DONE if ticked == len(boxes) else PlanStatus.PARTIAL
