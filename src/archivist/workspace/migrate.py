"""Bring plans and overviews to the documented form: front matter where it is missing, no ABSTRACT.md.

Pure: texts in, texts out. The body of a file is never touched, and what is there already is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from difflib import unified_diff
from typing import NamedTuple

from archivist.workspace import front_matter
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.lint import day_of_name
from archivist.workspace.overviews import clipped, first_heading, first_paragraph, prose_lines
from archivist.workspace.plans import PlanStatus, title_from, told
from archivist.workspace.problems import Problem
from archivist.workspace.topology import Place

DESCRIPTION_CHARACTERS = 300
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s", re.MULTILINE)
_STATUS_LINE = re.compile(r"^\W*(?:plan )?status\W*[:=]\W*([A-Za-z][A-Za-z _-]*)", re.IGNORECASE)
_STATUSES = {
    PlanStatus.NEW: "new draft todo proposed planned open idea backlog not_started pending",
    PlanStatus.IN_PROGRESS: "in_progress inprogress wip active doing started ongoing current",
    PlanStatus.PARTIAL: "partial partially_done partly_done paused blocked on_hold",
    PlanStatus.DONE: "done complete completed finished implemented shipped closed merged resolved released",
    PlanStatus.ABANDONED: "abandoned cancelled canceled dropped rejected obsolete superseded wontfix",
}
_MEANT = {word: status for status, words in _STATUSES.items() for word in words.split()}


class Change(NamedTuple):
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


class Migration(NamedTuple):
    """What is to be changed, in order, and what stays because it cannot be read."""

    changes: list[Change]
    problems: list[Problem]


def migrated_plan(text: str, place: Place, born: Callable[[], date | None]) -> Change | Problem | None:
    """Return a plan with the fields that it lacks; `born` says when the file came to be, when asked."""
    read = front_matter.read(text, place.name)
    blocked = _blocked(read, text, place.name)
    if blocked:
        return blocked
    values = read.values
    missing: dict[str, object] = {}
    if not _is_given(values, "name"):
        missing["name"] = _first_of(values, "title") or first_heading(read.body) or title_from(place.stem)
    if not _is_given(values, "description"):
        missing["description"] = _description(read, told(values.get("name")) or str(missing.get("name", "")))
    status = told(values.get("status"))
    if status not in set(PlanStatus):
        meant = _meant(status) if status else guessed_status(read.body)
        if meant is not None:
            missing["status"] = meant.value
    if not _is_given(values, "created"):
        day = day_of_name(place.name.rpartition("/")[2]) or front_matter.day_of(values.get("date")) or born()
        if day is not None:
            missing["created"] = day
    if "tags" not in values:
        missing["tags"] = _folder_tags(place)
    return _changed(text, place.name, _in_order(missing, _PLAN_ORDER))


def migrated_overview(text: str, place: Place, abstract: str = "") -> Change | Problem | None:
    """Return an overview with the fields that it lacks, and with what ABSTRACT.md says as its description."""
    read = front_matter.read(text, place.name)
    blocked = _blocked(read, text, place.name)
    if blocked:
        return blocked
    values = read.values
    missing: dict[str, object] = {}
    if not _is_given(values, "name"):
        missing["name"] = _first_of(values, "title") or first_heading(read.body) or _folder_name(place)
    said = told(values.get("description"))
    from_abstract = abstract_text(abstract)
    if from_abstract and _folded(from_abstract) not in _folded(said):
        is_part = said and _folded(said) in _folded(from_abstract)
        missing["description"] = (
            from_abstract if is_part or not said else f"{said.rstrip('.')}. {from_abstract}"
        )
    elif not said:
        missing["description"] = _description(read, told(values.get("name")) or str(missing.get("name", "")))
    if "tags" not in values:
        missing["tags"] = _folder_tags(place)
    return _changed(text, place.name, _in_order(missing, _OVERVIEW_ORDER))


def overview_from(abstract: str, place: Place, path: str) -> Change:
    """Return a new overview for a folder that has only an ABSTRACT.md; its text becomes the body too."""
    read = front_matter.read(abstract, place.name)
    name = told(read.values.get("name")) or first_heading(read.body) or _folder_name(place)
    fields = {
        "name": name,
        "description": clipped(abstract_text(abstract) or name, DESCRIPTION_CHARACTERS),
        "tags": _folder_tags(place),
    }
    return Change(path, None, front_matter.added(read.body, fields), ("made from ABSTRACT.md",))


_PLAN_ORDER = ("name", "description", "status", "created", "tags")
_OVERVIEW_ORDER = ("name", "description", "tags")


def _in_order(missing: dict[str, object], order: tuple[str, ...]) -> dict[str, object]:
    return {key: missing[key] for key in order if key in missing}


def _changed(text: str, name: str, missing: dict[str, object]) -> Change | None:
    if not missing:
        return None
    after = front_matter.edited(text, missing, name)
    return Change(name, text, after, tuple(missing)) if after != text else None


def _blocked(read: FrontMatter, text: str, name: str) -> Problem | None:
    """Return why a file is left as it is: front matter that cannot be read cannot be completed safely."""
    if read.problems:
        return read.problems[0]
    return None if text.strip("\ufeff \t\r\n") else Problem(name, 0, "empty", "the file says nothing")


def _is_given(values: dict[str, object], field: str) -> bool:
    return values.get(field) not in (None, "", [])


def _first_of(values: dict[str, object], *fields: str) -> str:
    return next((told(values[field]) for field in fields if told(values.get(field))), "")


def _description(read: FrontMatter, name: str) -> str:
    said = _first_of(read.values, "summary", "abstract") or first_paragraph(read.body)
    return clipped(said, DESCRIPTION_CHARACTERS) or name


def abstract_text(text: str) -> str:
    """Return what an ABSTRACT.md says, as one line without its heading and front matter."""
    read = front_matter.read(text, "")
    lines = [line for line in read.body.splitlines() if not line.lstrip().startswith("# ")]
    said = " ".join(" ".join(lines).split())
    return said or told(read.values.get("description"))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(". ")


def _folder_tags(place: Place) -> list[str]:
    """Return the names below the workspace, or the workspace's when the file is its own."""
    parts = place.folder.split("/")
    return [part.lower() for part in dict.fromkeys(parts[1:] or parts)]


def _folder_name(place: Place) -> str:
    return " ".join(
        part.replace("-", " ").replace("_", " ").strip().title() for part in place.folder.split("/")[-2:]
    )


def _meant(said: str) -> PlanStatus | None:
    """Return the status that a word of another vocabulary stands for; None for a word nobody knows."""
    return _MEANT.get(re.sub(r"[^a-z]+", "_", said.lower()).strip("_"))


def guessed_status(body: str) -> PlanStatus:
    """Guess a status: what the text says after `Status:`, else from its checkboxes, else new."""
    lines = prose_lines(body)
    for line in lines:
        found = _STATUS_LINE.match(line)
        meant = _meant(found[1].strip()) or _meant(found[1].split()[0]) if found else None
        if meant is not None:
            return meant
    boxes = _BOX.findall("\n".join(lines))
    ticked = sum(box != " " for box in boxes)
    if not ticked:
        return PlanStatus.NEW
    return PlanStatus.DONE if ticked == len(boxes) else PlanStatus.PARTIAL
