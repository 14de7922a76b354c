"""Check the files of a workspace against their formats; each finding has a file, a line and a remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime

from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.workspace import entries, front_matter
from archivist.workspace.entries import LearningEntry
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.plans import PlanStatus
from archivist.workspace.problems import RULES, LintProblem
from archivist.workspace.reading import decode
from archivist.workspace.topology import FileKind, WorkspaceFile

REQUIRED = {
    FileKind.PLAN: ("name", "description", "status", "created"),
    FileKind.OVERVIEW: ("name", "description"),
}
OPTIONAL = {FileKind.PLAN: ("updated", "tags"), FileKind.OVERVIEW: ("tags", "updated")}
_PLAN_NAME = re.compile(r"(\d{6})-[^\W_]+(?:[-.][^\W_]+)*\.md")
_NAMED_DAY = re.compile(r"(?:20)?(\d\d)[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)[-_. ]*")
_DATES = ("created", "updated")


def check_file(
    data: bytes, place: WorkspaceFile, rules: WorkspaceRules, domains: Sequence[str] = ()
) -> list[LintProblem]:
    """Return everything that is wrong with one file, the rules that are ignored among it."""
    decoded = decode(data, place.name)
    found = [*decoded.problems, *_check_bytes(data, place.name)]
    if place.kind is FileKind.ABSTRACT:
        return [*found, LintProblem(place.name, 0, "abstract-file", "an abstract in a file of its own")]
    if place.kind is FileKind.PLAN:
        found += _check_plan_name(place, decoded.text)
    if not decoded.text.strip("\ufeff \t\r\n"):
        return [*found, LintProblem(place.name, 0, "empty", "the file says nothing")]
    if place.kind in REQUIRED:
        found += _check_front_matter(decoded.text, place, rules, is_text=not decoded.problems)
    elif place.kind in (FileKind.DECISIONS, FileKind.LESSONS):
        found += _check_learnings(decoded.text, place, rules.max_entries, domains)
    return sorted(set(found), key=lambda each: (each.line, each.rule, each.text))


def filter_problems(problems: Sequence[LintProblem], rules: WorkspaceRules) -> list[LintProblem]:
    """Return the problems that count here; raise InputError when the settings ignore a rule that is none."""
    ignored = set(front_matter.words_of(rules.ignore_rules))
    for name in sorted(ignored - set(RULES)):
        raise InputError(
            f"workspace.ignore_rules: no rule {name!r}", hint="archivist workspace lint --rules lists them"
        )
    return [problem for problem in problems if problem.rule not in ignored]


def _check_bytes(data: bytes, name: str) -> list[LintProblem]:
    found = []
    if data.startswith(b"\xef\xbb\xbf"):
        found.append(LintProblem(name, 1, "bom", "the file begins with a byte order mark"))
    at = data.find(b"\r")
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        count = data.count(b"\r")
        found.append(LintProblem(name, line, "crlf", f"{count} carriage return{'s' if count > 1 else ''}"))
    return found


def _check_plan_name(place: WorkspaceFile, text: str) -> list[LintProblem]:
    file_name = place.name.rpartition("/")[2]
    if _PLAN_NAME.fullmatch(file_name) and file_name == file_name.lower() and day_of_name(file_name):
        return []
    told = f"{file_name!r} is not YYMMDD-plan-name.md"
    proposed = propose_name(place.stem, front_matter.read(text, place.name).values.get("created"))
    return [LintProblem(place.name, 0, "plan-name", f"{told}; {proposed}" if proposed else told)]


def propose_name(stem: str, created: object) -> str:
    """Propose a name for a plan's file: its own day, else that of its front matter, and all its letters."""
    found = _NAMED_DAY.match(stem)
    day = day_of_name("".join(found.groups())) if found else None
    rest = stem[found.end() :] if found and day else stem
    slug = re.sub(r"[\W_]+", "-", rest.lower()).strip("-")
    if not slug:
        return ""
    day = day or front_matter.day_of(created)
    return f"by its day it would be {day:%y%m%d}-{slug}.md" if day else f"such as YYMMDD-{slug}.md"


def day_of_name(file_name: str) -> date | None:
    """Return the day that a plan's file name begins with; None without one."""
    found = re.match(r"(\d\d)(\d\d)(\d\d)(?!\d)", file_name)
    if found is None:
        return None
    try:
        return date(2000 + int(found[1]), int(found[2]), int(found[3]))
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
        # Nothing of it could be read, so that nothing can be said of its fields.
        return found
    # What cannot be read, migrate leaves alone.
    advice = "add it" if found or not is_text else ""
    broken = {problem.line for problem in found}
    lines = _field_lines(text, read)
    values = read.values
    for field in REQUIRED[place.kind]:
        if values.get(field) in (None, "") and lines.get(field) not in broken:
            what = f"{field!r} is empty" if field in values else f"no {field!r}"
            found.append(LintProblem(place.name, lines.get(field, 1), "missing-field", what, advice))
    known = (*REQUIRED[place.kind], *OPTIONAL[place.kind])
    allowed = front_matter.words_of(rules.allow_fields)
    for field, value in values.items():
        line = lines.get(field, 1)
        if field not in known and field not in allowed:
            told = f"{_short_repr(field)} is none of {', '.join((*known, *allowed))}"
            advice = f"spell it {field.lower()!r}" if field.lower() in known else ""
            found.append(LintProblem(place.name, line, "unknown-field", told, advice))
        elif field in known and value not in (None, ""):
            found += (LintProblem(place.name, line, rule, what) for rule, what in _check_value(field, value))
    return found


def _check_value(field: str, value: object) -> list[tuple[str, str]]:
    if field in _DATES and (isinstance(value, datetime) or front_matter.day_of(value) is None):
        return [("bad-date", f"{field!r} is no date: {_short_repr(value)}")]
    if field == "status" and not (isinstance(value, str) and value in set(PlanStatus)):
        return [("bad-status", f"{_short_repr(value)} is no status")]
    if field in ("name", "description") and not isinstance(value, str):
        return [("bad-value", f"{field!r} is no text: {_short_repr(value)}")]
    if field == "tags" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return [("bad-value", f"'tags' is no list of words: {_short_repr(value)}")]
    return []


def _short_repr(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _field_lines(text: str, read: FrontMatter) -> dict[str, int]:
    """Return the line of each field at the margin of the front matter."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")[: read.body_line], 1):
        found = re.match(r"[\"']?([^\s:\"'#][^:\"']*?)[\"']?\s*:(?:\s|$)", line)
        if found:
            lines.setdefault(found[1], number)
    return lines


def _check_learnings(
    text: str, place: WorkspaceFile, max_entries: int, domains: Sequence[str]
) -> list[LintProblem]:
    parsed = entries.parse_entries(text, place.name)
    found = [problem for entry in parsed for problem in entry.problems]
    found += entries.find_misplaced_headings(text, place.name)
    found += _check_stray_text(text, place)
    if len(parsed) > max_entries:
        proposal = propose_split(parsed, place, max_entries, domains)
        what = f"{len(parsed)} entries, more than {max_entries}: {proposal}"
        found.append(LintProblem(place.name, 0, "too-many-entries", what))
    return found


def _check_stray_text(text: str, place: WorkspaceFile) -> list[LintProblem]:
    """Name each stretch of text that belongs to no entry, by its first line."""
    stray = entries.stray_lines(text)
    firsts = [line for line, above in zip(stray, [0, *stray], strict=False) if line - 1 != above]
    lines = entries.lines_of(text)
    return [
        LintProblem(
            place.name, line, "stray-text", f"{_short_repr(lines[line - 1].strip())} belongs to no entry"
        )
        for line in firsts
    ]


def propose_split(
    parsed: Sequence[LearningEntry], place: WorkspaceFile, max_entries: int, domains: Sequence[str]
) -> str:
    """Propose how to bring a learning file below its limit: what to move to a domain, what to archive."""
    steps: list[str] = []
    left = list(parsed)
    gone = [entry for entry in left if entry.superseded_by]
    folder = place.name.rpartition("/")[0]
    if gone:
        steps.append(f"archive the {len(gone)} superseded to {folder}/archive/{place.stem}.md")
        left = [entry for entry in left if not entry.superseded_by]
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
        steps.append(_propose_archive(left, place, max_entries))
    return "; ".join(steps)


def _propose_archive(left: Sequence[LearningEntry], place: WorkspaceFile, max_entries: int) -> str:
    """Propose to archive the oldest, by whole years where that is enough."""
    ordered = sorted(left, key=lambda entry: entry.date or date.min)
    folder = place.name.rpartition("/")[0]
    last = ordered[len(ordered) - max_entries - 1]
    year = last.date.year if last.date else 0
    through = [entry for entry in ordered if entry.date is None or entry.date.year <= year]
    if year and len(through) <= len(ordered) * 3 // 4:
        return f"archive the {len(through)} up to {year} to {folder}/archive/{place.stem}-{year}.md"
    day = f" (up to {last.date})" if last.date else ""
    count = len(ordered) - max_entries
    return f"archive the {count} oldest{day} to {folder}/archive/{place.stem}.md"
