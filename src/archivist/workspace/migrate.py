"""Bring plans and overviews to the documented form: front matter where it is missing, no ABSTRACT.md.

Pure: texts in, texts out. The body of a file is never changed, and what is there already is kept; what an
ABSTRACT.md says beyond a description is added below the overview.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from difflib import unified_diff
from typing import NamedTuple

from archivist.errors import InputError
from archivist.workspace import front_matter
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.lint import OPTIONAL, REQUIRED, day_of_name
from archivist.workspace.overviews import (
    abstract_of,
    clip_text,
    first_heading,
    first_sentences,
    prose_lines,
    strip_markup,
)
from archivist.workspace.plans import PlanStatus, field_text, title_from
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import ABSTRACT, FileKind, WorkspaceFile

DESCRIPTION_CHARACTERS = 300
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s", re.MULTILINE)
_TOP_HEADING = re.compile(r"#[ \t]+(.*?)[ \t]*#*[ \t]*(?:\r?\n|$)")
_STATUS_LINE = re.compile(r"^\W*(?:plan )?status\W*[:=]\W*([A-Za-z][A-Za-z _-]*)", re.IGNORECASE)
_STATUSES = {
    PlanStatus.NEW: "new draft todo proposed planned open idea backlog not_started pending",
    PlanStatus.IN_PROGRESS: "in_progress inprogress wip active doing started ongoing current",
    PlanStatus.PARTIAL: "partial partially_done partly_done paused blocked on_hold",
    PlanStatus.DONE: "done complete completed finished implemented shipped closed merged resolved released",
    PlanStatus.ABANDONED: "abandoned cancelled canceled dropped rejected obsolete superseded wontfix",
}
_MEANT = {word: status for status, words in _STATUSES.items() for word in words.split()}


class FileChange(NamedTuple):
    """One file as it is and as it would be; None where there is no file."""

    path: str
    before: str | None
    after: str | None
    reasons: tuple[str, ...]

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old = [] if self.before is None else self.before.splitlines(keepends=True)
        new = [] if self.after is None else self.after.splitlines(keepends=True)
        names = (
            f"a/{self.path}" if old else "/dev/null",
            f"b/{self.path}" if self.after is not None else "/dev/null",
        )
        lines = []
        for line in unified_diff(old, new, *names):
            is_whole = line.endswith("\n")
            lines.append(line if is_whole else f"{line}\n\\ No newline at end of file\n")
        return "".join(lines)


class WorkspaceMigration(NamedTuple):
    """What is to be changed, in order, and what stays because it cannot be read."""

    changes: list[FileChange]
    problems: list[LintProblem]


def migrate_plan(
    text: str, place: WorkspaceFile, creation_date: Callable[[], date | None]
) -> FileChange | LintProblem | None:
    """Return a plan with the fields that it lacks; `born` says when the file came to be, when asked."""
    blocked = _blocking_problem(text, place.name)
    if blocked:
        return blocked
    renamed = _fix_field_case(text, place)
    read = front_matter.read(renamed, place.name)
    values = read.values
    missing: dict[str, object] = {}
    if not _is_given(values, "name"):
        missing["name"] = _first_text(values, "title") or first_heading(read.body) or title_from(place.stem)
    if not _is_given(values, "description"):
        missing["description"] = _description(
            read, field_text(values.get("name")) or str(missing.get("name", ""))
        )
    status = _resolve_status(values.get("status"), read.body)
    if status is not None and values.get("status") != status.value:
        missing["status"] = status.value
    if not _is_given(values, "created"):
        day = (
            day_of_name(place.name.rpartition("/")[2])
            or front_matter.day_of(values.get("date"))
            or creation_date()
        )
        if day is not None:
            missing["created"] = day
    if "tags" not in values:
        missing["tags"] = _folder_tags(place)
    return _build_change(text, renamed, place.name, _in_order(missing, _PLAN_ORDER))


def _resolve_status(value: object, body: str) -> PlanStatus | None:
    """Return the status that a field means, or the body where there is none; None for what nobody knows."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value == "":
        return guess_status(body)
    return _status_of_word(field_text(value))


def migrate_overview(text: str, place: WorkspaceFile, abstract: str = "") -> FileChange | LintProblem | None:
    """Return an overview with the fields that it lacks, and with what its ABSTRACT.md says.

    The first sentences of that are the description; where it says more, it is added below the body as it is.
    """
    blocked = _blocking_problem(text, place.name)
    if blocked:
        return blocked
    renamed = _fix_field_case(text, place)
    read = front_matter.read(renamed, place.name)
    values = read.values
    names = (
        field_text(values.get("name")),
        first_heading(read.body),
        place.folder.rpartition("/")[2],
        "abstract",
    )
    taken = _read_abstract(abstract, values, {_fold_text(name) for name in names})
    if isinstance(taken, str):
        return LintProblem(place.name, 0, "abstract-file", taken)
    missing: dict[str, object] = dict(taken.fields)
    if not _is_given(values, "name"):
        missing["name"] = _first_text(values, "title") or first_heading(read.body) or _folder_name(place)
    said = field_text(values.get("description"))
    if taken.description and _fold_text(taken.description) not in _fold_text(said):
        joined = f"{said.rstrip('.')}. {taken.description}" if said else taken.description
        if joined == first_sentences(joined) or not said:
            missing["description"] = joined
        else:
            taken = taken._replace(rest=taken.body)
    elif not said:
        missing["description"] = _description(
            read, field_text(values.get("name")) or str(missing.get("name", ""))
        )
    if "tags" not in {**values, **missing}:
        missing["tags"] = _folder_tags(place)
    ordered = {**_in_order(missing, _OVERVIEW_ORDER), **missing}
    return _build_change(text, _append_abstract(renamed, taken.rest), place.name, ordered)


class _AbstractParts(NamedTuple):
    """What an ABSTRACT.md gives: a description, its text, what of that is kept below, and fields."""

    description: str = ""
    body: str = ""
    rest: str = ""
    fields: Mapping[str, object] = {}


def _read_abstract(abstract: str, values: Mapping[str, object], names: set[str]) -> _AbstractParts | str:
    """Return what an overview takes from its abstract, or why that must stay a file of its own."""
    if not abstract.strip("\ufeff \t\r\n"):
        return _AbstractParts()
    blocked = _blocking_problem(abstract, ABSTRACT)
    if blocked:
        return f"{ABSTRACT} is left: {blocked.text}"
    read = front_matter.read(abstract, "")
    own = {key: value for key, value in read.values.items() if key not in ("name", "title", "description")}
    for key, value in own.items():
        if values.get(key, value) != value:
            return f"{ABSTRACT} is left: its {key!r} is not that of the overview"
    fields = {key: value for key, value in own.items() if key not in values}
    if any(not isinstance(value, str | date | list) for value in fields.values()):
        return f"{ABSTRACT} is left: its front matter holds more than plain fields"
    body = read.body.strip("\r\n")
    heading = _TOP_HEADING.match(body)
    if heading and _fold_text(strip_markup(heading[1])) in names:
        # It says nothing that the overview does not say.
        body = body[heading.end() :].strip("\r\n")
    description = field_text(read.values.get("description")) or clip_text(
        abstract_of(body), DESCRIPTION_CHARACTERS
    )
    if not description and not body.startswith("#") and "\n\n" not in body:
        description = clip_text(first_sentences(strip_markup(" ".join(body.split()))), DESCRIPTION_CHARACTERS)
    is_whole = _fold_text(description) == _fold_text(" ".join(body.split()))
    return _AbstractParts(description, body, "" if is_whole else body, fields)


def _append_abstract(text: str, rest: str) -> str:
    """Return an overview's text with a section for what of the abstract is no description."""
    if not rest or rest in text.replace("\r\n", "\n") or rest in text:
        return text
    end = "\r\n" if "\r\n" in text[:4096] else "\n"
    gap = "" if not text or text.endswith(end * 2) else end if text.endswith("\n") else end * 2
    return f"{text}{gap}## Abstract{end}{end}{rest.rstrip()}{end}"


def overview_from(abstract: str, place: WorkspaceFile, path: str) -> FileChange | LintProblem:
    """Return a new overview for a folder that has only an ABSTRACT.md: that, with the fields it lacks."""
    change = migrate_overview(abstract, place)
    if isinstance(change, LintProblem):
        return change
    return FileChange(path, None, change.after if change else abstract, ("made from ABSTRACT.md",))


_PLAN_ORDER = ("name", "description", "status", "created", "tags")
_OVERVIEW_ORDER = ("name", "description", "tags")


def _in_order(missing: dict[str, object], order: tuple[str, ...]) -> dict[str, object]:
    return {key: missing[key] for key in order if key in missing}


def _build_change(
    text: str, renamed: str, name: str, missing: dict[str, object]
) -> FileChange | LintProblem | None:
    given = {key: value for key, value in missing.items() if value not in ("", None)}
    try:
        after = front_matter.edit_fields(renamed, given, name) if given else renamed
    except InputError as error:
        return LintProblem(name, 0, "broken-yaml", error.message)
    return FileChange(name, text, after, tuple(given) or ("abstract",)) if after != text else None


def _blocking_problem(text: str, name: str) -> LintProblem | None:
    """Return why a file is left as it is: front matter that cannot be read cannot be completed safely."""
    foreign = front_matter.find_foreign(text, name)
    if foreign:
        return foreign
    problems = front_matter.read(text, name).problems
    if problems:
        return problems[0]
    return None if text.strip("\ufeff \t\r\n") else LintProblem(name, 0, "empty", "the file says nothing")


def _fix_field_case(text: str, place: WorkspaceFile) -> str:
    """Return a text whose fields are spelt as the format has them: `Status` is `status`."""
    values = front_matter.read(text, place.name).values
    kind = FileKind.PLAN if place.kind is FileKind.PLAN else FileKind.OVERVIEW
    known = {*REQUIRED[kind], *OPTIONAL[kind]}
    spelt: dict[str, str] = {}
    for key in values:
        right = key.strip().lower()
        if key != right and right in known and right not in values and right not in spelt.values():
            spelt[key] = right
    return front_matter.rename_fields(text, spelt)


def _is_given(values: dict[str, object], field: str) -> bool:
    return values.get(field) not in (None, "", [])


def _first_text(values: dict[str, object], *fields: str) -> str:
    return next((field_text(values[field]) for field in fields if field_text(values.get(field))), "")


def _description(read: FrontMatter, name: str) -> str:
    """Return a description, or nothing where all that can be found is the name again."""
    said = _first_text(read.values, "summary", "abstract") or abstract_of(read.body)
    return "" if _fold_text(said) == _fold_text(name) else clip_text(said, DESCRIPTION_CHARACTERS)


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(". ")


def _folder_tags(place: WorkspaceFile) -> list[str]:
    """Return the names below the workspace, or the workspace's when the file is its own."""
    parts = place.folder.split("/")
    return [part.lower() for part in dict.fromkeys(parts[1:] or parts)]


def _folder_name(place: WorkspaceFile) -> str:
    return " ".join(
        part.replace("-", " ").replace("_", " ").strip().title() for part in place.folder.split("/")[-2:]
    )


def _status_of_word(said: str) -> PlanStatus | None:
    """Return the status that a word of another vocabulary stands for; None for a word nobody knows."""
    return _MEANT.get(re.sub(r"[^a-z]+", "_", said.lower()).strip("_"))


def guess_status(body: str) -> PlanStatus:
    """Guess a status: what the text says after `Status:`, else from its checkboxes, else new."""
    lines = prose_lines(body)
    for line in lines:
        found = _STATUS_LINE.match(line)
        meant = _status_of_word(found[1].strip()) or _status_of_word(found[1].split()[0]) if found else None
        if meant is not None:
            return meant
    boxes = _BOX.findall("\n".join(lines))
    ticked = sum(box != " " for box in boxes)
    if not ticked:
        return PlanStatus.NEW
    return PlanStatus.DONE if ticked == len(boxes) else PlanStatus.PARTIAL
