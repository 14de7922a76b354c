"""Check the files of a workspace against their formats; each problem has a file, a line and a remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime

from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.workspace import front_matter, learnings
from archivist.workspace.documents import PlanStatus
from archivist.workspace.learnings import LearningEntry
from archivist.workspace.problems import RULES, LintProblem
from archivist.workspace.topology import (
    LEARNINGS,
    FileKind,
    WorkspaceFile,
    decode,
)

REQUIRED = {
    FileKind.PLAN: ("name", "description", "status", "created"),
    FileKind.OVERVIEW: ("name", "description"),
}
OPTIONAL = {FileKind.PLAN: ("updated", "tags"), FileKind.OVERVIEW: ("tags", "updated")}
_PLAN_NAME = re.compile(r"(\d{6})-[^\W_]+(?:[-.][^\W_]+)*\.md")
_DATE_IN_NAME = re.compile(r"(?:20)?(\d\d)[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)[-_. ]*")
_FIELD = re.compile(r"[\"']?([^\s:\"'#][^:\"']*?)[\"']?\s*:(?:\s|$)")
_SHOWN_CHARACTERS = 60


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
    if place.kind is FileKind.PLAN:
        found += _check_plan_name(place, text)
    if not text.strip("\ufeff \t\r\n"):
        return [*found, LintProblem(name, 0, "empty", "the file is empty")]
    if place.kind in REQUIRED:
        found += _check_front_matter(text, place, rules, is_text=not decoding_problems)
    elif place.kind in LEARNINGS:
        found += _check_learnings(text, place, rules.max_entries, domains)
    return sorted(set(found), key=lambda problem: (problem.line, problem.rule, problem.text))


def filter_problems(problems: Sequence[LintProblem], rules: WorkspaceRules) -> list[LintProblem]:
    """Return the problems that are not ignored; raise InputError when an ignored rule does not exist."""
    ignored = set(front_matter.words_of(rules.ignore_rules))
    for name in sorted(ignored - set(RULES)):
        raise InputError(
            f"workspace.ignore_rules: no rule {name!r}", hint="archivist workspace lint --rules lists them"
        )
    return [problem for problem in problems if problem.rule not in ignored]


def _check_plan_name(place: WorkspaceFile, text: str) -> list[LintProblem]:
    file_name = place.name.rpartition("/")[2]
    if _PLAN_NAME.fullmatch(file_name) and file_name == file_name.lower() and day_of_name(file_name):
        return []
    message = f"{file_name!r} is not YYMMDD-plan-name.md"
    proposed = propose_name(place.stem, front_matter.read(text, place.name).values.get("created"))
    return [LintProblem(place.name, 0, "plan-name", f"{message}; {proposed}" if proposed else message)]


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
            lines.setdefault(field_match[1], number)
    values = read.values
    for field in REQUIRED[place.kind]:
        if values.get(field) in (None, "") and lines.get(field) not in broken:
            message = f"{field!r} is empty" if field in values else f"no {field!r}"
            found.append(LintProblem(place.name, lines.get(field, 1), "missing-field", message, advice))
    known = (*REQUIRED[place.kind], *OPTIONAL[place.kind])
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
    return found


def _check_value(field: str, value: object) -> tuple[str, str] | None:
    """Return the rule that a value breaks and a message, or None."""
    if field in ("created", "updated") and (
        isinstance(value, datetime) or front_matter.day_of(value) is None
    ):
        return "bad-date", f"{field!r} is not a date: {_short_repr(value)}"
    if field == "status" and not (isinstance(value, str) and value in set(PlanStatus)):
        return "bad-status", f"{_short_repr(value)} is not a status"
    if field in ("name", "description") and not isinstance(value, str):
        return "bad-value", f"{field!r} is not a text: {_short_repr(value)}"
    if field == "tags" and not (isinstance(value, list) and all(isinstance(tag, str) for tag in value)):
        return "bad-value", f"'tags' is not a list of words: {_short_repr(value)}"
    return None


def _short_repr(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…")


def _check_learnings(
    text: str, place: WorkspaceFile, max_entries: int, domains: Sequence[str]
) -> list[LintProblem]:
    entries = learnings.parse_entries(text, place.name)
    found = [problem for entry in entries for problem in entry.problems]
    found += learnings.find_misplaced_headings(text, place.name)
    stray, lines = learnings.stray_lines(text), learnings.lines_of(text)
    # A block of stray text is reported once, by its first line.
    for line, above in zip(stray, [0, *stray], strict=False):
        if line - 1 != above:
            message = f"{_short_repr(lines[line - 1].strip())} belongs to no entry"
            found.append(LintProblem(place.name, line, "stray-text", message))
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
            left = [
                entry for entry in left if domain.casefold() not in {tag.casefold() for tag in entry.tags}
            ]
    if len(left) > max_entries:
        steps.append(_propose_archive(left, f"{folder}/archive/{place.stem}", max_entries))
    return "; ".join(steps)


def _propose_archive(entries: Sequence[LearningEntry], target: str, max_entries: int) -> str:
    """Propose to archive the oldest entries, by whole years where that is enough."""
    ordered = sorted(entries, key=lambda entry: entry.date or date.min)
    count = len(ordered) - max_entries
    last = ordered[count - 1].date
    if last:
        through = [entry for entry in ordered if entry.date is None or entry.date.year <= last.year]
        if len(through) <= len(ordered) * 3 // 4:
            return f"archive the {len(through)} up to {last.year} to {target}-{last.year}.md"
    return f"archive the {count} oldest{f' (up to {last})' if last else ''} to {target}.md"
