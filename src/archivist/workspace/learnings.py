"""Read and change decisions.md and lessons.md, entry by entry.

markdown-it-py decides what a block is, because a heading inside a code block is none. Changes take the whole
text and return it; everything else stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from archivist.archive.chunking import block_tokens
from archivist.cold_start import lazy_pattern
from archivist.errors import InputError
from archivist.records.words import ActorKind
from archivist.workspace.front_matter import day_of, line_end
from archivist.workspace.topology import (
    LEARNINGS,
    FileKind,
    LintProblem,
    SourceFile,
    WorkspaceFile,
    WorkspaceScope,
)

if TYPE_CHECKING:
    from archivist.records import Actor

LEVEL = 3
_TITLE = lazy_pattern(r"\[([^\]]*)\]\s*(.*)", re.DOTALL)
_BARE_DATE = lazy_pattern(r"(\d{4}-\d{2}-\d{2})[:\s\u2013\u2014-]*(.*)", re.DOTALL)
_MARK = lazy_pattern(r"(?:[-*+]\s+)?\*\*\s*+([A-Za-z]+(?: +[A-Za-z]+)*)\s*+:?\s*+\*\*\s*+:?\s*+(.*)")
_MARKS = {"category", "tags", "superseded by", "beside"}
# An agent, before the title: pieces of a long entry are shown with its heading, of which the end may be cut.
_SPEAKER = lazy_pattern(r"\((agent(?::[^()]*)?)\)\s*")
_RULE = lazy_pattern(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_CLOSING = lazy_pattern(r"(?:^|(?<![ \t])[ \t]++)#++[ \t]*$")
_SLUG = lazy_pattern(r"[^a-z0-9]+")
_SLUG_CHARACTERS = 60


class LearningEntry(NamedTuple):
    """One decision or lesson. Lines count from 1; `end_line` is the last of its text, before the rule `---`.

    An entry with `superseded_by` stays in the file and no longer counts. `said_by` is the agent that saved
    it, empty for a person; `beside` names a person's entry on the same subject, until a person decides.
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
    said_by: str = ""
    beside: str = ""

    @property
    def marked_title(self) -> str:
        """Return the title behind the name of the agent that said it."""
        return f"({self.said_by}) {self.title}" if self.said_by else self.title


class LearningFile(NamedTuple):
    """One file of decisions or of lessons."""

    kind: FileKind
    scope: WorkspaceScope
    path: str
    entries: tuple[LearningEntry, ...]
    problems: tuple[LintProblem, ...] = ()


class Learning(NamedTuple):
    """An entry with its file. Filters use the entry alone."""

    kind: FileKind
    entry: LearningEntry
    scope: WorkspaceScope
    path: str
    id: str

    @property
    def content(self) -> str:
        """Return title and text: on one line where the text is one line, else as paragraphs."""
        entry = self.entry
        title, text = entry.marked_title, entry.text
        if text.startswith(entry.title):
            return title.removesuffix(entry.title) + text
        gap = "\n\n" if "\n" in text else " — "
        return f"{title}{gap}{text}" if text else title

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path}:{self.entry.line}"


class Learnings(NamedTuple):
    """Decisions and lessons, each in the order of the files."""

    decisions: list[Learning]
    lessons: list[Learning]


def newest_first(found: Learnings) -> list[Learning]:
    """Return decisions and lessons together, the newest first; those without a date last."""
    return sorted(
        (*found.decisions, *found.lessons), key=lambda each: each.entry.date or date.min, reverse=True
    )


def read_learning_file(text: str, place: WorkspaceFile | SourceFile) -> LearningFile:
    """Read a file of decisions or lessons."""
    entries = tuple(parse_entries(text, place.name))
    problems = [problem for entry in entries for problem in entry.problems]
    problems += _find_misplaced(text, place.name)
    return LearningFile(place.kind, place.scope, place.name, entries, tuple(problems))


def entry_id(kind: FileKind, entry: LearningEntry) -> str:
    """Return the id of an entry: its file, its date and the words of its title."""
    slug = _SLUG.sub("-", entry.title.lower()).strip("-")[:_SLUG_CHARACTERS].rstrip("-")
    day = entry.date.isoformat() if entry.date else ""
    return f"{kind.value}#{'-'.join(part for part in (day, slug) if part) or entry.line}"


def list_learnings(file: LearningFile) -> list[Learning]:
    """Return the entries of a file, each with an id that is unique in it."""
    used: dict[str, int] = {}
    learnings = []
    for entry in file.entries:
        name = entry_id(file.kind, entry)
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name}-{used[name]}"
        learnings.append(Learning(file.kind, entry, file.scope, file.path, unique))
    return learnings


def learnings_of(sources: Iterable[SourceFile]) -> tuple[Learning, ...]:
    """Return the entries of learning files that are not superseded."""
    files = [read_learning_file(source.text, source) for source in sources if source.kind in LEARNINGS]
    found = (learning for file in files for learning in list_learnings(file))
    return tuple(learning for learning in found if not learning.entry.superseded_by)


def parse_entries(text: str, name: str) -> list[LearningEntry]:
    """Return the entries of a learning file in order; `name` is the file in the problems."""
    lines = lines_of(text)
    headings, rules = find_blocks(text)
    ends = dict(pairwise([at for at, level in headings if level <= LEVEL] + [len(lines)]))
    return [_parse_entry(lines, at, ends[at], rules, name) for at, level in headings if level == LEVEL]


def _parse_entry(
    lines: Sequence[str], start: int, stop: int, rules: frozenset[int], name: str
) -> LearningEntry:
    written_date, marked_title = _split_date(_heading_text(lines[start]))
    speaker = _SPEAKER.match(marked_title)
    title = marked_title[speaker.end() :] if speaker else marked_title
    marks: dict[str, str] = {}
    first = start + 1
    while first < stop:
        mark = _MARK.fullmatch(lines[first].strip())
        if mark and mark[1].lower() in _MARKS:
            marks.setdefault(mark[1].lower(), mark[2].strip())
        elif lines[first].strip():
            break
        first += 1
    end = stop
    while end > first and (not lines[end - 1].strip() or end - 1 in rules):
        end -= 1
    last = max((at for at in range(start, end) if lines[at].strip() and at not in rules), default=start)
    entry = LearningEntry(
        title,
        day_of(written_date),
        marks.get("category", ""),
        _read_tags(marks.get("tags", "")),
        "\n".join(lines[first:end]).strip("\n").rstrip(),
        start + 1,
        last + 1,
        superseded_by=marks.get("superseded by", ""),
        said_by=speaker[1] if speaker else "",
        beside=marks.get("beside", ""),
    )
    checks = (
        (not title, "no-title", "an entry without a title"),
        (not written_date, "no-date", f"{title!r} has no date"),
        (bool(written_date) and entry.date is None, "bad-date", f"{written_date!r} is not a date"),
        (not entry.category, "no-category", f"{title!r} has no category"),
        (not entry.text, "no-text", f"{title!r} has no text"),
    )
    problems = tuple(LintProblem(name, entry.line, rule, text) for failed, rule, text in checks if failed)
    return entry._replace(problems=problems)


def _read_tags(written: str) -> tuple[str, ...]:
    """Return the tags of a mark: `a, b`, `[a, b]`, or `#a #b`."""
    inner = written[1:-1] if written.startswith("[") and written.endswith("]") else written
    # A redacted secret stands in brackets, too.
    inner = written if any(sign in inner for sign in "[]:") else inner
    parts: list[str] = []
    for part in inner.split(","):
        words = part.split()
        parts += words if all(word.startswith("#") for word in words) else [part]
    return tuple(filter(None, (part.strip(" `#\"'") for part in parts)))


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as Markdown counts them, whatever ends them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _find_misplaced(text: str, name: str) -> list[LintProblem]:
    """Return a problem for each heading of another level that looks like an entry's.

    It starts with a date, and is outside an entry or above a category.
    """
    found, is_inside, lines = [], False, lines_of(text)
    for at, level in find_blocks(text)[0]:
        if level == LEVEL:
            is_inside = True
            continue
        is_inside = is_inside and level > LEVEL
        heading = _heading_text(lines[at])
        written_date, title = _split_date(heading)
        below = (lines[later].strip() for later in range(at + 1, len(lines)))
        mark = _MARK.fullmatch(next(filter(None, below), ""))
        has_mark = mark is not None and mark[1].lower() in _MARKS
        if title and day_of(written_date) and (not is_inside or has_mark):
            message = f"{heading!r} has {level} marks, so it is not read as an entry"
            found.append(LintProblem(name, at + 1, "heading-level", message))
    return found


def stray_lines(text: str) -> list[int]:
    """Return the lines, from 1, of text that is below no entry's heading.

    Text above the first section is an introduction, unless the file has no entry; text below an entry's
    heading of the wrong level belongs to that heading.
    """
    headings, rules = find_blocks(text)
    levels = dict(headings)
    misplaced = {problem.line - 1 for problem in _find_misplaced(text, "")}
    is_stray, stray = LEVEL not in levels.values(), []
    for at, line in enumerate(lines_of(text)):
        level = levels.get(at, 0)
        if level == LEVEL or at in misplaced:
            is_stray = False
        elif 1 < level < LEVEL:
            is_stray = True
        elif is_stray and not level and line.strip() and at not in rules and not line.startswith("<!--"):
            stray.append(at + 1)
    return stray


@lru_cache(maxsize=4)
def find_blocks(text: str) -> tuple[list[tuple[int, int]], frozenset[int]]:
    """Return the headings with their levels, and the rules, by line from 0."""
    headings, rules, lines = [], set(), lines_of(text)
    for token in block_tokens("\n".join(lines)):
        if token.level or token.map is None:
            continue
        if token.type == "hr":
            rules.add(token.map[0])
        elif token.type == "heading_open" and token.markup.startswith("#"):
            headings.append((token.map[0], len(token.markup)))
        elif token.type == "heading_open" and _RULE.match(lines[token.map[1] - 1]):
            # In Markdown a rule right below a paragraph makes it a heading; the writer meant a rule.
            rules.add(token.map[1] - 1)
    return headings, frozenset(rules)


def _heading_text(line: str) -> str:
    return _CLOSING.sub("", line.strip().lstrip("#").strip()).strip()


def _split_date(heading: str) -> tuple[str, str]:
    """Return the date of a heading, in brackets or not, and the title after it."""
    found = _TITLE.fullmatch(heading) or _BARE_DATE.fullmatch(heading)
    if found is None or (heading.startswith("[") and not found[1].strip()[:1].isdigit() and "](" in heading):
        return "", heading
    return found[1].strip(), found[2].strip()


_LINES = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENTRY_HEADING = lazy_pattern(r"( {0,3})(#{1,3})(?=[ \t]|$)")
_FIRST_MARK = lazy_pattern(r"[#*_=-]")
_BOLD = lazy_pattern(r"\*\*([^*]+)\*\*")
_FENCE = lazy_pattern(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BLOCK_START = lazy_pattern(r"\s*(?:```|~~~|[-*+>|<#]|\d+[.)]\s|    |\t)")
_MOST_FENCES = 4
_SENTINEL = "### [2000-01-01] end"


def header(kind: FileKind, scope: WorkspaceScope) -> str:
    """Return the first line of a new learning file."""
    return f"# {kind.value.capitalize()}: {scope}\n"


def entry_text(entry: LearningEntry) -> str:
    """Return an entry in the documented form, with the rule that ends it."""
    day = entry.date.isoformat() if entry.date else ""
    lines = [f"### [{day}] {entry.marked_title}", "", f"**Category:** {entry.category}"]
    if entry.tags:
        lines.append(f"**Tags:** {', '.join(entry.tags)}")
    if entry.beside:
        lines.append(f"**Beside:** {entry.beside}")
    return "\n".join([*lines, "", entry.text, "", "---", ""])


def speaker_of(actor: Actor | None) -> str:
    """Return the name under which an agent's entries stand; empty for everybody else."""
    if actor is None or actor.kind is not ActorKind.AGENT:
        return ""
    name = re.sub(r"[^\w.@/+-]+", "-", actor.name)
    return f"agent:{name}" if name else "agent"


def strip_speaker(title: str) -> str:
    """Return a title without names of agents before it: only the writer of an entry says who said it."""
    while found := _SPEAKER.match(title):
        title = title[found.end() :]
    return title


def escape_entries(text: str) -> str:
    """Return a text in which nothing looks like the end of an entry or the start of another.

    Only an agent's needs it: whoever reads the file takes a heading with a date below a rule for a person's.
    """
    lines = "\n".join(text.splitlines()).split("\n")
    for token in block_tokens("\n".join(lines)):
        if token.map is None or token.type not in ("hr", "heading_open"):
            continue
        at = token.map[0] if token.type == "hr" or token.markup.startswith("#") else token.map[1] - 1
        is_dated = bool(day_of(_split_date(_heading_text(lines[at]))[0]))
        if token.type == "hr" or token.markup in "=-" or is_dated:
            lines[at] = _FIRST_MARK.sub(r"\\\g<0>", lines[at], count=1)
    return "\n".join(lines)


def sanitize_body(text: str) -> str:
    """Return a text that can be the body of an entry: its headings lowered, its code blocks closed.

    Raise InputError for markup that would swallow the entries below.
    """
    lines = lines_of(text.strip("\ufeff \t\r\n"))
    for at, level in find_blocks("\n".join(lines))[0]:
        if level <= LEVEL:
            lines[at] = _ENTRY_HEADING.sub(r"\1####", lines[at], count=1)
    # A line that is underlined would be a heading above the entry's own.
    underlined = (
        token.map[1] - 1
        for token in block_tokens("\n".join(lines))
        if token.type == "heading_open" and token.map and token.markup in "=-" and not token.level
    )
    for at in underlined:
        lines[at] = f"\n{lines[at]}"
    if parse_entries(f"{_SENTINEL}\n{lines[0]}", "")[0].text == "":
        # A category or tags of its own would be taken for the entry's.
        lines[0] = _BOLD.sub(r"\1", lines[0])
    joined = "\n".join(line.rstrip() for line in lines).strip("\n")
    # A text with more kinds of fences than this is parsed too often.
    opened = list(dict.fromkeys(reversed(_FENCE.findall(joined))))[:_MOST_FENCES]
    for closing in ("", *(f"\n{fence}" for fence in opened), "\n-->"):
        if len(parse_entries(f"{joined}{closing}\n\n{_SENTINEL}\n", "")) == 1:
            return joined + closing
    raise InputError("the text has markup that never ends", hint="close its comment, tag or code block")


def append_entry(text: str, entry: LearningEntry, name: str) -> str:
    """Return a learning file's text with an entry added below the others."""
    end = line_end(text)
    before = parse_entries(text, name)
    base = text
    if base and not base.endswith(("\n", "\r")):
        base += end
    if before and not any(line >= before[-1].end_line for line in find_blocks(base)[1]):
        base += f"{end}---{end}"
    if base.strip("\ufeff \r\n") and not base.endswith((end * 2,)):
        base += end
    new = base + entry_text(entry).replace("\n", end)
    after = parse_entries(new, name)
    if after[:-1] != before or not after or not is_same_entry(after[-1], entry):
        hint = "something before it never ends, such as a code block: archivist workspace lint"
        raise InputError(f"{name}: an entry added at its end could not be read back", hint=hint)
    return new


def split_superseded(text: str, name: str) -> tuple[str, list[str]]:
    """Return a file's text without its superseded entries, and those as they stand there."""
    lines, moved, kept = _LINES.findall(text), [], []
    at = 0
    for entry in parse_entries(text, name):
        if not entry.superseded_by:
            continue
        end = entry.end_line
        while end < len(lines) and not lines[end].strip(" \t\r\n-"):
            end += 1
        kept += lines[at : entry.line - 1]
        moved.append("".join(lines[entry.line - 1 : end]))
        at = end
    return "".join([*kept, *lines[at:]]), moved


def is_same_entry(one: LearningEntry, other: LearningEntry) -> bool:
    """Say whether two entries say the same, wherever they are."""
    return (*one[:5], one.said_by) == (*other[:5], other.said_by)


def append_note(text: str, entry: LearningEntry, note: str) -> str:
    """Return a file's text with a paragraph added at the end of an entry."""
    end = line_end(text)
    lines = _LINES.findall(text)
    last = lines[entry.end_line - 1]
    if not last.endswith(("\n", "\r")):
        lines[entry.end_line - 1] = last + end
    lines.insert(entry.end_line, end + note.replace("\n", end) + end)
    new = "".join(lines)
    others, unchanged = (
        [each[:5] for each in parse_entries(version, "") if each.line != entry.line]
        for version in (text, new)
    )
    if others != unchanged:
        hint = "close its comment, tag or code block"
        raise InputError("the text would swallow the entries below", hint=hint)
    return new


def set_mark(text: str, entry: LearningEntry, mark: str, value: str) -> str:
    """Return a file's text with a mark of an entry set, `Tags` for example; it is added when missing."""
    end = line_end(text)
    lines = _LINES.findall(text)
    written = f"**{mark}:** {value}"
    last = entry.line - 1
    for at in range(entry.line, entry.end_line):
        bare = lines[at].strip()
        found = _BOLD.match(bare.lstrip("-+ ")) if bare else None
        if found is None and bare:
            break
        if found is not None:
            last = at
            if found[1].strip(" :").lower() == mark.lower():
                lines[at] = written + lines[at][len(lines[at].rstrip("\r\n")) :]
                return "".join(lines)
    if not lines[last].endswith(("\n", "\r")):
        lines[last] += end
    gap = end if last == entry.line - 1 else ""
    lines.insert(last + 1, f"{gap}{written}{end}")
    return "".join(lines)


def format_addition(text: str, day: date, title: str = "") -> str:
    """Return a later statement as a paragraph of the entry that it is merged into."""
    # A list or code needs a blank line before it.
    gap = "\n\n" if _BLOCK_START.match(text) else " "
    return f"Also [{day.isoformat()}]:{f' {title}.' if title else ''}{gap}{text}"
