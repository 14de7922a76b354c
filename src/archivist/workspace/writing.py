"""Change the text of a learning file: append an entry, unite tags, mark what was superseded.

Each function takes the whole text and returns the whole text; whatever is not meant stays byte for byte, and
the result is read back before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from archivist.errors import InputError
from archivist.workspace import entries
from archivist.workspace.entries import LearningEntry
from archivist.workspace.topology import FileKind, WorkspaceScope

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HEADING = re.compile(r"( {0,3})(#{1,3})(?=[ \t]|$)")
_MARK = re.compile(r"\*\*([^*]+)\*\*")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BLOCK = re.compile(r"\s*(?:```|~~~|[-*+>|<#]|\d+[.)]\s|    |\t)")
_SENTINEL = "### [2000-01-01] end"


def header(kind: FileKind, scope: WorkspaceScope) -> str:
    """Return the first line of a new learning file."""
    return f"# {kind.value.capitalize()}: {scope}\n"


def entry_text(entry: LearningEntry) -> str:
    """Return an entry in the documented form, with the rule that ends it."""
    day = entry.date.isoformat() if entry.date else ""
    lines = [f"### [{day}] {entry.title}", "", f"**Category:** {entry.category}"]
    if entry.tags:
        lines.append(f"**Tags:** {', '.join(entry.tags)}")
    return "\n".join([*lines, "", entry.text, "", "---", ""])


def sanitize_body(text: str) -> str:
    """Return a text that can stand in an entry: its headings lower than an entry's, its code closed.

    Raise InputError for markup that would swallow the entries below.
    """
    lines = entries.lines_of(text.strip("\ufeff \t\r\n"))
    headings = _headings(lines)
    lines = [
        _HEADING.sub(r"\1####", line, count=1) if at in headings else line for at, line in enumerate(lines)
    ]
    if (
        lines
        and _MARK.match(lines[0].strip(" -*+"))
        and entries.parse_entries(f"{_SENTINEL}\n{lines[0]}", "")[0].text == ""
    ):
        lines[0] = _MARK.sub(r"\1", lines[0])
    joined = "\n".join(line.rstrip() for line in lines).strip("\n")
    opened = _FENCE.findall(joined)
    for closing in ("", *(f"\n{fence}" for fence in reversed(opened)), "\n-->"):
        if len(entries.parse_entries(f"{joined}{closing}\n\n{_SENTINEL}\n", "")) == 1:
            return joined + closing
    raise InputError("the text has markup that never ends", hint="close its comment, tag or code block")


def _headings(lines: Sequence[str]) -> frozenset[int]:
    found, _ = entries.find_blocks(lines)
    return frozenset(place for place, level in found if level <= entries.LEVEL)


def append_entry(text: str, entry: LearningEntry, name: str) -> str:
    """Return a learning file's text with an entry more, below the others."""
    end = _line_end(text)
    before = entries.parse_entries(text, name)
    base = text
    if base and not base.endswith(("\n", "\r")):
        base += end
    if before and not _has_end_rule(base, before[-1]):
        base += f"{end}---{end}"
    if base.strip("\ufeff \r\n") and not base.endswith((end * 2,)):
        base += end
    new = base + entry_text(entry).replace("\n", end)
    after = entries.parse_entries(new, name)
    if after[:-1] != before or not after or not _is_same(after[-1], entry):
        raise InputError(
            f"{name}: an entry below its end would not be read",
            hint="something before it never ends, such as a code block: archivist workspace lint",
        )
    return new


def _is_same(one: LearningEntry, other: LearningEntry) -> bool:
    return one[:5] == other[:5]


def _has_end_rule(text: str, entry: LearningEntry) -> bool:
    _, rules = entries.find_blocks(entries.lines_of(text))
    return any(line >= entry.end_line for line in rules)


def append_note(text: str, entry: LearningEntry, note: str) -> str:
    """Return a file's text with a paragraph more at the end of an entry."""
    end = _line_end(text)
    lines = _LINES.findall(text)
    last = lines[entry.end_line - 1]
    if not last.endswith(("\n", "\r")):
        lines[entry.end_line - 1] = last + end
    lines.insert(entry.end_line, end + note.replace("\n", end) + end)
    new = "".join(lines)
    others = [each[:5] for each in entries.parse_entries(text, "") if each.line != entry.line]
    if [each[:5] for each in entries.parse_entries(new, "") if each.line != entry.line] != others:
        raise InputError(
            "the text would swallow the entries below", hint="close its comment, tag or code block"
        )
    return new


def set_tags(text: str, entry: LearningEntry, tags: Sequence[str]) -> str:
    """Return a file's text with these tags in an entry's line of tags, which is made when it is missing."""
    return _set_mark(text, entry, "Tags", ", ".join(tags))


def mark_superseded(text: str, entry: LearningEntry, by: str) -> str:
    """Return a file's text with an entry marked as no longer counting, and by what."""
    return _set_mark(text, entry, "Superseded by", by)


def _set_mark(text: str, entry: LearningEntry, mark: str, value: str) -> str:
    end = _line_end(text)
    lines = _LINES.findall(text)
    told = f"**{mark}:** {value}"
    last = entry.line - 1
    for place in range(entry.line, entry.end_line):
        bare = lines[place].strip()
        found = _MARK.match(bare.lstrip("-+ ")) if bare else None
        if found is None and bare:
            break
        if found is not None:
            last = place
            if found[1].strip(" :").lower() == mark.lower():
                lines[place] = told + lines[place][len(lines[place].rstrip("\r\n")) :]
                return "".join(lines)
    if not lines[last].endswith(("\n", "\r")):
        lines[last] += end
    gap = end if last == entry.line - 1 else ""
    lines.insert(last + 1, f"{gap}{told}{end}")
    return "".join(lines)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text[:4096] else "\n"


def join_title(title: str, text: str) -> str:
    """Return a title and its text as they stand in another entry."""
    return f"{title}.{_gap(text)}{text}" if text else title


def _gap(text: str) -> str:
    """Return what must stand before a text: a blank line where it begins with a list, code or the like."""
    return "\n\n" if _BLOCK.match(text) else " "


def format_addition(text: str, day: date) -> str:
    """Return what a later statement adds, as a paragraph of the entry that it belongs to."""
    return f"Also [{day.isoformat()}]:{_gap(text)}{text}"
