"""Split a text into pieces by its structure: headings begin pieces, code and tables stay whole.

No character is lost: the pieces joined are the text, except for blank lines at their ends. Only a fenced code
block that is too long gets a fence around each of its pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# An embedder reads 480 tokens; a section is split once it has two thirds of that.
LIMIT_TOKENS = 480
TARGET_TOKENS = 320
# A longer block of code or table is split at line ends.
WHOLE_CHARACTERS = 16_000
BETWEEN_HEADINGS = " > "
_WHOLE = ("fence", "code_block", "table_open")
_HEADING_CHARACTERS = 200
_FENCE = re.compile(r"(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})")


class TextChunk(NamedTuple):
    """A part of a text, the headings above it, and its first line, from 1."""

    text: str
    heading: str
    line: int


class _Unit(NamedTuple):
    """Lines that belong together; a level above 0 makes them a heading."""

    line: int
    text: str
    level: int = 0


def chunk_text(
    text: str, *, limit_tokens: int = LIMIT_TOKENS, target_tokens: int = TARGET_TOKENS, first_line: int = 1
) -> list[TextChunk]:
    """Return the pieces of a text in order; only code and tables may exceed the limit."""
    limit = max(1, limit_tokens * CHARACTERS_PER_TOKEN)
    target = max(1, min(target_tokens, limit_tokens) * CHARACTERS_PER_TOKEN)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    path: list[tuple[int, str]] = []
    made: list[TextChunk] = []
    held: list[_Unit] = []
    size, has_body = 0, False

    def finish_chunk() -> None:
        nonlocal size, has_body
        joined = "\n".join(unit.text for unit in held)
        body = joined.strip("\n")
        if body.strip():
            skipped = len(joined) - len(joined.lstrip("\n"))
            heading = BETWEEN_HEADINGS.join(title for _, title in path if title)
            made.append(TextChunk(body, heading, held[0].line + skipped + first_line))
        held.clear()
        size, has_body = 0, False

    for unit in _units(lines, limit):
        # A heading right below another stays with it: a piece of one heading has no content.
        if (unit.level and (has_body or size + len(unit.text) > limit)) or (
            not unit.level and held and (size + len(unit.text) > limit or (has_body and size >= target))
        ):
            finish_chunk()
        if unit.level:
            title = unit.text.strip().splitlines()[0].strip("# \t")[:_HEADING_CHARACTERS]
            path[:] = [*(each for each in path if each[0] < unit.level), (unit.level, title)]
        held.append(unit)
        size += len(unit.text) + 1
        has_body = has_body or (not unit.level and unit.text.strip() != "")
    finish_chunk()
    return made


def block_tokens(text: str) -> list[Token]:
    """Return the blocks of a Markdown text, without what is inside paragraphs."""
    return _block_parser().parse(text)


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # Parsing the inline text takes several times as long.
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _units(lines: Sequence[str], limit: int) -> Iterator[_Unit]:
    """Yield the lines of a text in blocks within the limit, except whole ones."""
    tokens = block_tokens("\n".join(lines))
    headings = {
        token.map[0]: int(token.tag[1:])
        for token in tokens
        if token.type == "heading_open" and token.map and token.level == 0
    }
    whole = {token.map[0]: token.map[1] for token in tokens if token.type in _WHOLE and token.map}
    inside = {line for first, last in whole.items() for line in range(first + 1, last)}
    starts = {token.map[0] for token in tokens if token.map and token.level == 0}
    within = sorted({token.map[0] for token in tokens if token.map} - inside)
    ordered = sorted(starts | {0, len(lines)})
    for start, end in pairwise(ordered):
        if start in headings or len("\n".join(lines[start:end])) <= limit:
            yield from _split_lines(lines, start, end, limit, headings.get(start, 0))
            continue
        cuts = [start, *within[bisect_right(within, start) : bisect_left(within, end)], end]
        for first, last in pairwise(cuts):
            # Code and tables stay whole.
            until = whole.get(first, first)
            block = "\n".join(lines[first:until])
            fence = _FENCE.match(lines[first])
            if until > first and len(block) <= WHOLE_CHARACTERS:
                yield _Unit(first, block)
            elif until > first and fence:
                yield from _split_fence(lines, first, until, limit, fence)
            else:
                until = first
            if until < last:
                yield from _split_lines(lines, until, last, limit)


def _split_fence(
    lines: Sequence[str], start: int, end: int, limit: int, fence: re.Match[str]
) -> Iterator[_Unit]:
    """Yield fenced code in parts within the limit, each in fences of its own."""
    opening, closing = lines[start], f"{fence['indent']}{fence['mark']}"
    is_closed = end - start > 1 and lines[end - 1].strip() == fence["mark"]
    room = limit - len(opening) - len(closing) - 2
    if room < limit // 2:
        # A fence that takes most of a part would be repeated for every few letters.
        yield from _split_lines(lines, start, end, limit)
        return
    first, held, size = start, list[str](), 0
    for number in range(start + 1, end - is_closed):
        for part in _split_line(lines[number], room):
            if held and size + len(part) > room:
                yield _Unit(first, "\n".join((opening, *held, closing)))
                first, held, size = number, [], 0
            held.append(part)
            size += len(part) + 1
    yield _Unit(first, "\n".join((opening, *held, *([closing] if is_closed else []))))


def _split_line(line: str, limit: int) -> Iterator[str]:
    """Yield a line in parts within the limit, cut after a sentence or a word where possible."""
    start = 0
    while len(line) - start > limit:
        places = ((line.rfind(mark, start + limit // 2, start + limit), len(mark)) for mark in (". ", " "))
        cut = next((place + size for place, size in places if place > start), start + limit)
        yield line[start:cut]
        start = cut
    yield line[start:]


def _split_lines(lines: Sequence[str], start: int, end: int, limit: int, level: int = 0) -> Iterator[_Unit]:
    """Yield lines together if they fit, else line by line, long lines in parts."""
    block = "\n".join(lines[start:end])
    if len(block) <= limit:
        yield _Unit(start, block, level)
        return
    for number in range(start, end):
        for place, part in enumerate(_split_line(lines[number], limit)):
            yield _Unit(number, part, level if number == start and not place else 0)
