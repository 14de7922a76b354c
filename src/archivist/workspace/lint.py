"""Check plans, overviews and learning files against their formats, and bring them to the documented form.

Pure: texts in, texts out. Each problem has a file, a line and a remedy. Migrating adds missing front matter
and merges ABSTRACT.md: the body of a file never changes, and existing fields are kept; the part of an
ABSTRACT.md that is more than a description is added below the overview.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from difflib import unified_diff
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.text import estimate_tokens, shorten
from archivist.workspace import documents, front_matter, learnings
from archivist.workspace.documents import PlanStatus
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.learnings import LearningEntry
from archivist.workspace.topology import (
    ABSTRACT,
    LEARNINGS,
    FileKind,
    LintProblem,
    WorkspaceFile,
    decode,
)

REQUIRED = {
    FileKind.PLAN: ("name", "description", "status", "created"),
    FileKind.OVERVIEW: ("name", "description"),
}
FIELDS = {
    FileKind.PLAN: (*REQUIRED[FileKind.PLAN], "updated", "tags"),
    FileKind.OVERVIEW: (*REQUIRED[FileKind.OVERVIEW], "tags", "updated", "folder_structure"),
}
_PLAN_NAME = re.compile(r"(\d{6})-[^\W_]+(?:[-.][^\W_]+)*\.md")
_DATE_IN_NAME = re.compile(r"(?:20)?(\d\d)[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)[-_. ]*")
# How git marks the two sides of a conflict.
_CONFLICT = re.compile(r"^(<<<<<<< |>>>>>>> )", re.MULTILINE)
_FIELD = re.compile(r"[\"']?([^\s:\"'#][^:\"']*+)[\"']?\s*+:(?:\s|$)")


def check_file(
    data: bytes, place: WorkspaceFile, rules: WorkspaceRules, domains: Sequence[str] = ()
) -> list[LintProblem]:
    """Return every problem of one file, including those of ignored rules."""
    name = place.name
    text, decoding_problems = decode(data, name)
    found = list(decoding_problems)
    if data.startswith(b"\xef\xbb\xbf"):
        found.append(LintProblem(name, 1, "bom", "the file begins with a byte order mark"))
    if b"\r" in data:
        count = data.count(b"\r")
        line = data.count(b"\n", 0, data.find(b"\r")) + 1
        found.append(LintProblem(name, line, "crlf", f"{count} carriage return{'s' if count > 1 else ''}"))
    if place.kind is FileKind.ABSTRACT:
        return [*found, LintProblem(name, 0, "abstract-file", "an abstract in a file of its own")]
    file_name = name.rpartition("/")[2]
    is_named = _PLAN_NAME.fullmatch(file_name) and file_name == file_name.lower() and day_of_name(file_name)
    if place.kind is FileKind.PLAN and not is_named:
        proposed = propose_name(place.stem, front_matter.read(text, name).values.get("created"))
        message = f"{file_name!r} is not YYMMDD-plan-name.md"
        found.append(LintProblem(name, 0, "plan-name", f"{message}; {proposed}" if proposed else message))
    if not text.strip("\ufeff \t\r\n"):
        return [*found, LintProblem(name, 0, "empty", "the file is empty")]
    marks = [mark[1] for mark in _CONFLICT.finditer(text)]
    if len(set(marks)) > 1:
        line = text.count("\n", 0, text.find(marks[0])) + 1
        found.append(LintProblem(name, line, "conflict-marks", "a conflict of git is not resolved"))
    if place.kind in REQUIRED:
        found += _check_front_matter(text, place, rules, is_text=not decoding_problems)
    elif place.kind in LEARNINGS:
        found += _check_learnings(text, place, rules.max_entries, domains)
    return sorted(set(found), key=lambda problem: (problem.line, problem.rule, problem.text))


def propose_name(stem: str, created: object) -> str:
    """Propose a name for a plan's file from the date in its name, or in its front matter."""
    found = _DATE_IN_NAME.match(stem)
    day = day_of_name("".join(found.groups())) if found else None
    rest = stem[found.end() :] if found and day else stem
    slug = re.sub(r"[\W_]+", "-", rest.lower()).strip("-")
    if not slug:
        return ""
    day = day or front_matter.day_of(created)
    return f"by its date it would be {day:%y%m%d}-{slug}.md" if day else f"such as YYMMDD-{slug}.md"


def day_of_name(file_name: str) -> date | None:
    """Return the date at the start of a plan's file name, or None."""
    found = re.match(r"(\d\d)(\d\d)(\d\d)(?!\d)", file_name)
    try:
        return date(2000 + int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def _check_front_matter(
    text: str, place: WorkspaceFile, rules: WorkspaceRules, *, is_text: bool
) -> list[LintProblem]:
    foreign = front_matter.find_foreign(text, place.name)
    if foreign:
        return [foreign]
    read = front_matter.read(text, place.name)
    found = list(read.problems)
    if not read.has_any:
        missing = LintProblem(place.name, 1, "no-front-matter", f"the {place.kind.value} has no front matter")
        return found or [missing]
    if found and not read.values:
        # Nothing could be read, so nothing is known about the fields.
        return found
    # migrate does not change a file that cannot be read.
    advice = "add it" if found or not is_text else ""
    broken = {problem.line for problem in found}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")[: read.body_line], 1):
        if field_match := _FIELD.match(line):
            lines.setdefault(field_match[1].rstrip(), number)
    values = read.values
    for field in REQUIRED[place.kind]:
        if values.get(field) in (None, "") and lines.get(field) not in broken:
            message = f"{field!r} is empty" if field in values else f"no {field!r}"
            found.append(LintProblem(place.name, lines.get(field, 1), "missing-field", message, advice))
    known = FIELDS[place.kind]
    allowed = front_matter.words_of(rules.allow_fields)
    for field, value in values.items():
        line_number = lines.get(field, 1)
        if field not in known and field not in allowed:
            message = f"{_short_repr(field)} is none of {', '.join((*known, *allowed))}"
            advice = f"spell it {field.lower()!r}" if field.lower() in known else ""
            found.append(LintProblem(place.name, line_number, "unknown-field", message, advice))
        elif field in known and value not in (None, ""):
            wrong = _check_value(field, value)
            found += [LintProblem(place.name, line_number, *wrong)] if wrong else []
    # Other fields are not answered, and the structure of folders only in full.
    answered = (field for field in known if field in values and field != "folder_structure")
    tokens = estimate_tokens(" ".join(str(values[field]) for field in answered))
    if tokens > documents.ABSTRACT_TOKENS:
        message = f"the abstract has {tokens} tokens, more than {documents.ABSTRACT_TOKENS}"
        found.append(LintProblem(place.name, lines.get("description", 1), "abstract-size", message))
    return found


def _check_value(field: str, value: object) -> tuple[str, str] | None:
    """Return the rule that a value breaks and a message, or None."""
    is_day = front_matter.day_of(value) is not None and not isinstance(value, datetime)
    if field in ("created", "updated") and not is_day:
        return "bad-date", f"{field!r} is not a date: {_short_repr(value)}"
    if field == "status" and not (isinstance(value, str) and value in set(PlanStatus)):
        return "bad-status", f"{_short_repr(value)} is not a status"
    if field in ("name", "description") and not isinstance(value, str):
        return "bad-value", f"{field!r} is not a text: {_short_repr(value)}"
    if field == "tags" and not (isinstance(value, list) and all(isinstance(tag, str) for tag in value)):
        return "bad-value", f"'tags' is not a list of words: {_short_repr(value)}"
    return None


def _short_repr(value: object) -> str:
    return repr(shorten(str(value), 60))


def _check_learnings(
    text: str, place: WorkspaceFile, max_entries: int, domains: Sequence[str]
) -> list[LintProblem]:
    file = learnings.read_learning_file(text, place)
    entries, found = file.entries, list(file.problems)
    stray, lines = learnings.stray_lines(text), learnings.lines_of(text)
    # A block of stray text is reported once, by its first line.
    for line, above in zip(stray, [0, *stray], strict=False):
        if line - 1 != above:
            message = f"{_short_repr(lines[line - 1].strip())} belongs to no entry"
            found.append(LintProblem(place.name, line, "stray-text", message))
    first: dict[tuple[str, str], int] = {}
    for entry in entries:
        line = first.setdefault((_fold_text(entry.title), _fold_text(entry.text)), entry.line)
        if line != entry.line:
            message = f"{entry.title!r} stands in line {line} already"
            found.append(LintProblem(place.name, entry.line, "duplicate-entry", message))
        if entry.beside and not entry.superseded_by:
            speaker = entry.said_by or "a person"
            message = f"{entry.title!r}, said by {speaker}, stands beside {entry.beside!r}"
            found.append(LintProblem(place.name, entry.line, "undecided", message))
    if len(entries) > max_entries:
        proposal = propose_split(entries, place, max_entries, domains)
        message = f"{len(entries)} entries, more than {max_entries}: {proposal}"
        found.append(LintProblem(place.name, 0, "too-many-entries", message))
    return found


def propose_split(
    entries: Sequence[LearningEntry], place: WorkspaceFile, max_entries: int, domains: Sequence[str]
) -> str:
    """Propose how to bring a learning file below its limit: what to move to a domain, what to archive."""
    steps: list[str] = []
    folder = place.name.rpartition("/")[0]
    left = [entry for entry in entries if not entry.superseded_by]
    if len(left) < len(entries):
        count = len(entries) - len(left)
        steps.append(f"archive the {count} superseded to {folder}/archive/{place.stem}.md")
    if not place.scope.domain:
        known = {domain.casefold(): domain for domain in domains}
        counted = Counter(
            known[tag.casefold()] for entry in left for tag in set(entry.tags) if tag.casefold() in known
        )
        for domain, count in counted.most_common():
            if len(left) <= max_entries:
                break
            steps.append(f"move the {count} tagged {domain!r} to {folder}/{domain}/{place.stem}.md")
            left = [entry for entry in left if not documents.has_any_tag(entry.tags, [domain])]
    if len(left) > max_entries:
        # The oldest are archived, by whole years where that is enough.
        ordered = sorted(left, key=lambda entry: entry.date or date.min)
        count = len(ordered) - max_entries
        last = ordered[count - 1].date
        through = [each for each in ordered if each.date is None or (last and each.date.year <= last.year)]
        target = f"{folder}/archive/{place.stem}"
        if last and len(through) <= len(ordered) * 3 // 4:
            steps.append(f"archive the {len(through)} up to {last.year} to {target}-{last.year}.md")
        else:
            steps.append(f"archive the {count} oldest{f' (up to {last})' if last else ''} to {target}.md")
    return "; ".join(steps)


DESCRIPTION_CHARACTERS = 300
_BOX = re.compile(r"^[^\S\n]*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s", re.MULTILINE)
_TOP_HEADING = re.compile(r"#[ \t]+(.*)\n?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_STATUS_LINE = re.compile(r"^\W*(?:plan )?status(?=\W*?[:=])\W++([A-Za-z][A-Za-z _-]*)", re.IGNORECASE)
# As plans are titled in practice: `[260228-Fix-Something] - Title`, `📋 KEY: 2026-01-05 - Title`.
_PLAN_KEY = re.compile(
    r"\A[^\w\[]{0,8}(?:\[[^\]\n]{3,80}\]|[A-Z][\w-]{1,20}:? \d{4}-\d{2}-\d{2})"
    r"[ ]{0,4}[-\u2013\u2014:][ ]{1,4}(?=\S)"
)
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
    # The file that must be written before: it gets what this one loses.
    needs: str = ""

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
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
    if problem := _blocking_problem(text, place.name):
        return problem
    renamed = front_matter.lower_fields(text, FIELDS[FileKind.PLAN])
    read = front_matter.read(renamed, place.name)
    values = read.values
    missing = _missing_fields(read, place, documents.title_from(place.stem))
    if "name" in missing:
        missing["name"] = _PLAN_KEY.sub("", str(missing["name"]))
    given = values.get("status")
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    status = guess_status(read.body) if given in (None, "") else _status_of_word(documents.field_text(given))
    if status is not None and values.get("status") != status.value:
        missing["status"] = status.value
    if not _is_given(values, "created"):
        day = day_of_name(place.name.rpartition("/")[2]) or front_matter.day_of(values.get("date"))
        missing["created"] = day or creation_date()
    missing |= _respelt_fields(values)
    return _build_change(text, renamed, place.name, missing)


def _respelt_fields(values: Mapping[str, object]) -> dict[str, object]:
    """Return the dates and tags that are there in another form than the documented one."""
    days = {field: front_matter.respell_day(values.get(field)) for field in ("created", "updated")}
    respelt: dict[str, object] = {field: day for field, day in days.items() if day is not None}
    if isinstance(tags := values.get("tags"), str):
        respelt["tags"] = [tag.lstrip("#") for tag in front_matter.words_of(tags)]
    return respelt


def migrate_overview(text: str, place: WorkspaceFile, abstract: str = "") -> FileChange | LintProblem | None:
    """Return an overview with its missing fields, and with the text of its ABSTRACT.md.

    The first sentences of the abstract become the description; the rest is added below the body as it is.
    """
    if problem := _blocking_problem(text, place.name):
        return problem
    renamed = front_matter.lower_fields(text, FIELDS[FileKind.OVERVIEW])
    read = front_matter.read(renamed, place.name)
    values = read.values
    given_name = documents.field_text(values.get("name"))
    folder = place.folder.rpartition("/")[2]
    titles = (given_name, documents.first_heading(read.body), folder, "abstract")
    names = {_fold_text(title) for title in titles}
    try:
        said, body, fields = _read_abstract(abstract, values, names)
    except InputError as error:
        return LintProblem(place.name, 0, "abstract-file", f"{ABSTRACT} stays: {error.message}")
    # Where the description says it all, nothing is added below.
    rest = "" if _fold_text(said) == _fold_text(body) else body
    title = " ".join(place.folder.split("/")[-2:]).replace("-", " ").replace("_", " ")
    missing = _missing_fields(read, place, " ".join(title.split()).title()) | fields | _respelt_fields(values)
    description = documents.field_text(values.get("description"))
    if said and _fold_text(said) not in _fold_text(description):
        joined = f"{description.rstrip('.')}. {said}" if description else said
        if joined == documents.first_sentences(joined) or not description:
            missing["description"] = joined
        else:
            rest = body
    rest = "\n".join(rest.rstrip().splitlines())
    described = str(missing.get("description") or description)
    if rest and _says_more(rest, f"{described}\n{read.body}"):
        end = front_matter.line_end(renamed)
        rest = rest.replace("\n", end)
        gap = "" if not renamed or renamed.endswith(end * 2) else end if renamed.endswith("\n") else end * 2
        renamed += f"{gap}## Abstract{end}{end}{rest}{end}"
    return _build_change(text, renamed, place.name, missing)


def _says_more(text: str, known: str) -> bool:
    """Say whether a sentence of a text is not in what is known, whatever its markup."""
    folded = _fold_text(documents.strip_markup(known))
    lines = (line.strip("#>*- \t") for line in text.splitlines())
    sentences = (part for line in lines for part in _SENTENCE_END.split(documents.strip_markup(line)))
    return any(_fold_text(part) not in folded for part in sentences if part.strip())


def _read_abstract(
    abstract: str, values: Mapping[str, object], names: set[str]
) -> tuple[str, str, dict[str, object]]:
    """Return the description, the text and the additional fields of an ABSTRACT.md.

    Raise InputError when it must stay a file of its own.
    """
    if not abstract.strip("\ufeff \t\r\n"):
        return "", "", {}
    problem = _blocking_problem(abstract, ABSTRACT)
    if problem:
        raise InputError(problem.text)
    read = front_matter.read(abstract, "")
    fields: dict[str, object] = {}
    for key, value in read.values.items():
        if key in ("name", "title", "description"):
            continue
        if values.get(key, value) != value:
            raise InputError(f"its {key!r} differs from the overview's")
        if key not in values:
            fields[key] = value
    if not all(isinstance(value, str | date | list) for value in fields.values()):
        raise InputError("its front matter has more than plain fields")
    body = read.body.strip("\r\n")
    heading = _TOP_HEADING.match(body)
    if heading and _fold_text(documents.strip_markup(heading[1].strip().rstrip("#"))) in names:
        # The heading repeats the overview's name.
        body = body[heading.end() :].strip("\r\n")
    prose = documents.abstract_of(body)
    if not prose and not body.startswith("#") and "\n\n" not in body:
        prose = documents.first_sentences(documents.strip_markup(" ".join(body.split())))
    description = documents.field_text(read.values.get("description"))
    return description or documents.clip_text(prose, DESCRIPTION_CHARACTERS), body, fields


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
    if not text.strip("\ufeff \t\r\n"):
        return LintProblem(name, 0, "empty", "the file is empty")
    problems = front_matter.read(text, name).problems
    return front_matter.find_foreign(text, name) or (problems[0] if problems else None)


def _is_given(values: dict[str, object], field: str) -> bool:
    return values.get(field) not in (None, "", [])


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(". ")


def _missing_fields(read: FrontMatter, place: WorkspaceFile, title: str) -> dict[str, object]:
    """Return the fields that both plans and overviews should have, where they are not given."""
    values, missing = read.values, dict[str, object]()
    if not _is_given(values, "name"):
        given = documents.field_text(values.get("title"))
        missing["name"] = given or documents.first_heading(read.body) or title
    if not _is_given(values, "description"):
        given = documents.field_text(values.get("summary")) or documents.field_text(values.get("abstract"))
        text = given or documents.abstract_of(read.body)
        name = documents.field_text(values.get("name")) or str(missing.get("name", ""))
        # A description that only repeats the name would say nothing.
        is_name = _fold_text(text) == _fold_text(name)
        missing["description"] = "" if is_name else documents.clip_text(text, DESCRIPTION_CHARACTERS)
    if "tags" not in values:
        # The names of the folders below the workspace, or the workspace's name for its own files.
        parts = place.folder.split("/")
        missing["tags"] = [part.lower() for part in dict.fromkeys(parts[1:] or parts)]
    return missing


def _status_of_word(word: str) -> PlanStatus | None:
    return _STATUSES.get(re.sub(r"[^a-z]+", "_", word.lower()).strip("_"))


def guess_status(body: str) -> PlanStatus:
    """Guess a status: from a `Status:` line, else from the checkboxes, else new."""
    lines = documents.prose_lines(body)
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
