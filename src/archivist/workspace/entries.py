"""Read the entries of decisions.md and lessons.md, with the lines where they stand.

A heading inside a code block is none: markdown-it-py says what is a block. A text that has nothing but
paragraphs, headings and rules is cut line by line, which gives the same and takes a fraction of the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from archivist.workspace.problems import LintProblem

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LEVEL = 3
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_TITLE = re.compile(r"\[([^\]]*)\]\s*(.*)", re.DOTALL)
_BARE_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})[:\s\u2013\u2014-]*(.*)", re.DOTALL)
_MARK = re.compile(r"(?:[-*+]\s+)?\*\*\s*([A-Za-z][A-Za-z ]*?)\s*:?\s*\*\*\s*:?\s*(.*)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
# What may make a line that looks like a heading none, or hide one: code, lists, quotes, markup, tables.
_INVOLVED = re.compile(r"^(?:[ \t]+\S|.*(?:```|~~~)| {0,3}[>+<]| {0,3}[-*] | {0,3}\d{1,9}[.)])", re.MULTILINE)


class LearningEntry(NamedTuple):
    """One decision or lesson. Lines count from 1; `end_line` is the last of its text, before the rule `---`.

    `superseded_by` tells what took its place; an entry that has it is kept and no longer counts.
    """

    title: str
    date: date | None
    category: str
    tags: tuple[str, ...]
    text: str
    line: int
    end_line: int
    problems: tuple[LintProblem, ...] = ()
    superseded_by: str = ""


def parse_entries(text: str, name: str) -> list[LearningEntry]:
    """Return the entries of a learning file in order; `name` is the file in the problems."""
    lines = lines_of(text)
    headings, rules = find_blocks(lines)
    starts = [place for place, level in headings if level == LEVEL]
    borders = [place for place, level in headings if level <= LEVEL] + [len(lines)]
    entries = []
    for start in starts:
        stop = next(border for border in borders if border > start)
        entries.append(_read_entry(lines, start, stop, rules, name))
    return entries


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as Markdown counts them, whatever ends them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def find_misplaced_headings(text: str, name: str) -> list[LintProblem]:
    """Return a problem for each heading that is meant as an entry's and has another level."""
    lines = lines_of(text)
    return [
        LintProblem(
            name,
            place + 1,
            "heading-level",
            f"{_heading_text(lines[place])!r} has {level} marks, so it is not read as an entry",
        )
        for place, level in _misplaced_headings(lines, find_blocks(lines)[0])
    ]


def _misplaced_headings(lines: Sequence[str], headings: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return headings of another level that begin with a day, outside of an entry or above a category."""
    found, is_inside = [], False
    for place, level in headings:
        if level == LEVEL:
            is_inside = True
            continue
        if level < LEVEL:
            is_inside = False
        said, title = _split_date(_heading_text(lines[place]))
        if title and _parse_date(said) and (not is_inside or _has_entry_mark(lines, place)):
            found.append((place, level))
    return found


def _has_entry_mark(lines: Sequence[str], place: int) -> bool:
    below = next((line.strip() for line in lines[place + 1 :] if line.strip()), "")
    mark = _MARK.fullmatch(below)
    return mark is not None and mark[1].lower() in _MARKS


def stray_lines(text: str) -> list[int]:
    """Return the lines, from 1, of text that stands under no entry's heading, beside headings and rules.

    What stands above the first section is an introduction, unless the file has no entry at all; what stands
    below an entry's heading of the wrong level belongs to that.
    """
    lines = lines_of(text)
    headings, rules = find_blocks(lines)
    levels = dict(headings)
    misplaced_at = {place for place, _ in _misplaced_headings(lines, headings)}
    is_stray, stray = LEVEL not in levels.values(), []
    for place, line in enumerate(lines):
        level = levels.get(place, 0)
        if level == LEVEL or place in misplaced_at:
            is_stray = False
        elif 1 < level < LEVEL:
            is_stray = True
        elif is_stray and not level and line.strip() and place not in rules and not line.startswith("<!--"):
            stray.append(place + 1)
    return stray


def find_blocks(lines: Sequence[str]) -> tuple[list[tuple[int, int]], frozenset[int]]:
    """Return the headings with their levels, and the rules, by line from 0."""
    text = "\n".join(lines)
    if _INVOLVED.search(text):
        return _parse_blocks(text, lines)
    headings = [(place, _level(line)) for place, line in enumerate(lines) if _HEADING.match(line)]
    return headings, frozenset(place for place, line in enumerate(lines) if _RULE.match(line))


def _parse_blocks(text: str, lines: Sequence[str]) -> tuple[list[tuple[int, int]], frozenset[int]]:
    headings, rules = [], set()
    for token in _markdown().parse(text):
        if token.level or token.map is None:
            continue
        if token.type == "hr":
            rules.add(token.map[0])
        elif token.type == "heading_open" and token.markup.startswith("#"):
            headings.append((token.map[0], len(token.markup)))
        elif token.type == "heading_open" and _RULE.match(lines[token.map[1] - 1]):
            # A rule right below a paragraph makes that a heading in Markdown; whoever wrote it meant a rule.
            rules.add(token.map[1] - 1)
    return headings, frozenset(rules)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _level(line: str) -> int:
    return len(line) - len(line.lstrip("#"))


def _read_entry(
    lines: Sequence[str], start: int, stop: int, rules: frozenset[int], name: str
) -> LearningEntry:
    said, title = _split_date(_heading_text(lines[start]))
    marks: dict[str, str] = {}
    place = start + 1
    while place < stop:
        mark = _MARK.fullmatch(lines[place].strip())
        if mark and mark[1].lower() in _MARKS:
            marks.setdefault(mark[1].lower(), mark[2].strip())
        elif lines[place].strip():
            break
        place += 1
    end = stop
    while end > place and (not lines[end - 1].strip() or end - 1 in rules):
        end -= 1
    text = "\n".join(lines[place:end]).strip("\n")
    last = max((at for at in range(start, end) if lines[at].strip() and at not in rules), default=start)
    entry = LearningEntry(
        title,
        _parse_date(said),
        marks.get("category", ""),
        tuple(tag for tag in (each.strip(" `#") for each in marks.get("tags", "").split(",")) if tag),
        text.rstrip(),
        start + 1,
        last + 1,
        (),
        marks.get("superseded by", ""),
    )
    return entry._replace(problems=_find_problems(entry, said, name))


_MARKS = {"category", "tags", "superseded by"}


def _heading_text(line: str) -> str:
    return _CLOSING.sub("", line.strip().lstrip("#").strip()).strip()


def _split_date(heading: str) -> tuple[str, str]:
    """Return what a heading says as its date, in brackets or not, and the title after it."""
    found = _TITLE.fullmatch(heading) or _BARE_DATE.fullmatch(heading)
    if found is None or (heading.startswith("[") and not found[1].strip()[:1].isdigit() and "](" in heading):
        return "", heading
    return found[1].strip(), found[2].strip()


def _parse_date(said: str) -> date | None:
    try:
        return date.fromisoformat(said) if len(said) == len("YYYY-MM-DD") else None
    except ValueError:
        return None


def _find_problems(entry: LearningEntry, said: str, name: str) -> tuple[LintProblem, ...]:
    found = []
    if not entry.title:
        found.append(LintProblem(name, entry.line, "no-title", "an entry without a title"))
    if not said:
        found.append(LintProblem(name, entry.line, "no-date", f"{entry.title!r} has no date"))
    elif entry.date is None:
        found.append(LintProblem(name, entry.line, "bad-date", f"{said!r} is no date"))
    if not entry.category:
        found.append(LintProblem(name, entry.line, "no-category", f"{entry.title!r} has no category"))
    if not entry.text:
        found.append(LintProblem(name, entry.line, "no-text", f"{entry.title!r} says nothing"))
    return tuple(found)
