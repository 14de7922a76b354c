"""Read shared-context Markdown: each section with a body is a fact under a stable key."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from archivist.errors import InputError
from archivist.files.parse import parse_yaml
from archivist.ids import derived_id
from archivist.records.layers import NAME_CHARACTERS
from archivist.text import split_around

CATEGORY = "shared-context"
# Headings that give the category of everything below them.
_CATEGORIES = {"architecture": "architecture"} | {
    name: category for category in ("convention", "decision", "fact") for name in (category, f"{category}s")
}
_FENCE = "---"
_FENCE_ENDS = ("---", "...")
_NOT_A_WORD = re.compile(r"[\W_]+")
# A heading can be a whole sentence; a digest of the rest keeps two long ones apart.
_SLUG_CHARACTERS = 60
_MARK_CHARACTERS = 8
_TITLE_CHARACTERS = 1000


class Section(NamedTuple):
    """One section of a file: its category and key, its text, and its line, from 1."""

    category: str
    key: str
    text: str
    line: int


class SharedText(NamedTuple):
    """The sections of a file, and what its front matter says of all of them."""

    sections: tuple[Section, ...]
    confidence: float = 1.0
    tags: tuple[str, ...] = ()


class _Heading(NamedTuple):
    level: int
    title: str
    line: int
    body_from: int


def read(text: str, name: str) -> SharedText:
    """Return the sections of a Markdown text; text before the first heading gets the file's name as key.

    Raises InputError when the front matter cannot be read.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    front, start = _front_matter(lines)
    category, confidence = front.get("category") or "", front.get("confidence", 1.0)
    tags = front.get("tags") or ()
    if not isinstance(category, str) or "/" in category:
        raise InputError(f"front matter: category {category!r} is not a plain word")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise InputError(f"front matter: confidence {confidence!r} is not between 0 and 1")
    tags = tags.split(",") if isinstance(tags, str) else tags
    if not isinstance(tags, list | tuple):
        raise InputError("front matter: tags is not a list")
    category = " ".join(category.split()) or CATEGORY
    headings = list(_headings("\n".join(lines[start:]), start))
    ends = [heading.line for heading in headings] + [len(lines)]
    sections: list[Section] = []
    if body := _section_body(lines[start : ends[0]]):
        sections.append(Section(category, slug(name), body, start + 1))
    keys = _assign_keys(category, headings, {(each.category, each.key) for each in sections})
    for heading, (sort, key), end in zip(headings, keys, ends[1:], strict=True):
        if body := _section_body(lines[heading.body_from : end]):
            sections.append(Section(sort, key, body, heading.line + 1))
    cleaned = dict.fromkeys(str(tag).strip() for tag in tags if str(tag).strip())
    return SharedText(tuple(sections), float(confidence), tuple(cleaned))


def slug(title: str) -> str:
    """Return a title as a part of a key: lower case, words joined by hyphens."""
    words = _NOT_A_WORD.sub("-", unicodedata.normalize("NFKC", title).casefold()).strip("-")
    if len(words) > _SLUG_CHARACTERS:
        words = words[: _SLUG_CHARACTERS - _MARK_CHARACTERS - 1].rstrip("-") + "-" + _short_digest(words)
    return words or "section"


def _short_digest(text: str) -> str:
    """Return a short digest that distinguishes a shortened text from others."""
    return derived_id("slug", text)[-_MARK_CHARACTERS:].lower()


def _assign_keys(
    file_category: str, headings: Sequence[_Heading], used: set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the category and the key of each heading, unlike those that are used already."""
    tops = [heading for heading in headings if heading.level == 1]
    # A single heading of the first level is the file's title; its sections are one level below.
    top = 2 if len(tops) == 1 and headings[0] == tops[0] else 1
    path: list[tuple[int, str, str]] = []
    numbers: dict[tuple[str, str], int] = {}
    for heading in headings:
        while path and path[-1][0] >= heading.level:
            path.pop()
        category, above = path[-1][1:] if path else (file_category, "")
        named = _CATEGORIES.get(slug(heading.title)) if heading.level <= top else None
        sort = named or category
        # A category heading is no part of the keys below it, nor is the title above it.
        above = "" if named else above
        key = f"{above}/{slug(heading.title)}".lstrip("/")
        if len(key) > NAME_CHARACTERS - _MARK_CHARACTERS:
            key = f"{key[: NAME_CHARACTERS - 3 * _MARK_CHARACTERS].rstrip('-/')}-{_short_digest(key)}"
        numbered, number = key, numbers.get((sort, key), 1)
        while (sort, numbered) in used:
            number += 1
            numbered = f"{key}-{number}"
        numbers[sort, key] = number
        used.add((sort, numbered))
        path.append((heading.level, sort, above if named else numbered))
        yield sort, numbered


def _headings(text: str, offset: int) -> Iterator[_Heading]:
    from markdown_it import MarkdownIt

    parser, title_parser = MarkdownIt("commonmark"), MarkdownIt("commonmark")
    env: dict[str, object] = {}
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(text, env)
    for at, token in enumerate(tokens):
        # A heading inside a list or a quotation begins no section.
        if token.type == "heading_open" and token.level == 0 and token.map:
            # The parser takes quadratic time for the text inside a block, such as many brackets.
            (inline,) = title_parser.parseInline(tokens[at + 1].content[:_TITLE_CHARACTERS], env)
            children = inline.children or ()
            is_break = ("softbreak", "hardbreak")
            title = "".join(" " if child.type in is_break else child.content for child in children).strip()
            yield _Heading(int(token.tag[1:]), title, offset + token.map[0], offset + token.map[1])


def _section_body(lines: Sequence[str]) -> str:
    """Return the text of a section; empty when it has only comments."""
    text = "\n".join(lines).strip()
    return text if any(map(str.strip, split_around(text, "<!--", "-->"))) else ""


def _front_matter(lines: Sequence[str]) -> tuple[Mapping[str, object], int]:
    """Return the front matter and the first line of the body; a mere horizontal rule is no front matter."""
    if lines[0].rstrip() != _FENCE:
        return {}, 0
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in _FENCE_ENDS), None)
    if end is None:
        return {}, 0
    try:
        value = parse_yaml("\n".join(lines[1:end]), "it")
    except InputError as error:
        raise InputError(f"front matter cannot be read: {error.message}") from None
    if value is None:
        return {}, end + 1
    return (value, end + 1) if isinstance(value, Mapping) else ({}, 0)
