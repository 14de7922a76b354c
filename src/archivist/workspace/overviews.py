"""Overviews: the abstract of a scope from the front matter (T0), and the whole text (T1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from archivist.workspace import front_matter
from archivist.workspace.plans import field_text
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import LEVELS, WorkspaceFile, WorkspaceScope

# An abstract is of 100 to 200 tokens; what no front matter limits is cut there.
ABSTRACT_CHARACTERS = 800
_FEW_WORDS = 4
# Two sentences are an abstract; a label such as `Status: draft` is none.
_SENTENCES = 2
_LABEL_WORDS = 8
_LABEL = re.compile(r"\W*[^\W\d_][\w -]{0,24}\**\s*:\**\s+\S.*|\W*")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[^\W\d_a-z]|[\"'(`\[])|(?<=[\u3002\uff01\uff1f])")
_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_ANCHOR = re.compile(r"\s*\{\s*[#.:][^}]*\}\s*$")
# What takes the lines below it along until one is blank: a list, a quote, a table, markup.
_TAKES_ALONG = re.compile(r"\s*(?:[-*+] |\d+[.)] |>|\||<)")
_NO_PROSE = re.compile(r"\s*(?:#|[-*+] |\d+[.)] |>|\||```|~~~|<|!\[|\[!|={3,}|-{3,}|:::)")


class Tier(StrEnum):
    """How much of a document is told: its abstract, its working context, all of it."""

    T0 = "T0"
    T1 = "T1"
    T2 = "T2"


class Overview(NamedTuple):
    """The overview of one scope: its abstract, its text, and where it stands. Filters never see the path."""

    name: str
    abstract: str
    tags: tuple[str, ...]
    updated: str
    content: str
    scope: WorkspaceScope
    folder: str
    path: str
    problems: tuple[LintProblem, ...] = ()


class OverviewAnswer(NamedTuple):
    """An overview at the tier at which it is told."""

    overview: Overview
    tier: Tier

    @property
    def text(self) -> str:
        """Return what this tier tells."""
        return self.overview.content if self.tier is Tier.T1 else self.overview.abstract


def from_text(text: str, place: WorkspaceFile) -> Overview:
    """Read an overview; the abstract of one without a description is its first paragraph."""
    read = front_matter.read(text, place.name)
    values = read.values
    body = trim_body(read.body)
    return Overview(
        field_text(values.get("name")) or first_heading(body) or place.folder,
        field_text(values.get("description")) or first_paragraph(body),
        front_matter.words_of(values.get("tags")),
        field_text(values.get("updated")),
        body,
        place.scope,
        place.folder,
        place.name,
        read.problems,
    )


def trim_body(body: str) -> str:
    """Return a body without blank lines around it, ending with one line end."""
    text = body.replace("\r\n", "\n").strip("\n")
    return f"{text}\n" if text else ""


def assign_tiers(
    overviews: Iterable[Overview], asked: WorkspaceScope, *, is_full: bool = False
) -> list[OverviewAnswer]:
    """Give each overview its tier: a workspace's in full, domains' and repositories' as abstracts.

    A repository that is asked for by name is told in full too, and with `is_full` all of them.
    """
    answers = []
    for overview in overviews:
        depth = overview.folder.count("/") + 1
        is_whole = is_full or depth == 1 or (depth == LEVELS == len(asked.parts))
        answers.append(OverviewAnswer(overview, Tier.T1 if is_whole else Tier.T0))
    return answers


def first_heading(body: str) -> str:
    """Return the words of the first heading, without what Markdown adds."""
    for line in prose_lines(body):
        if line.startswith("#") and line.strip("# \t"):
            return _ANCHOR.sub("", strip_markup(_ANCHOR.sub("", line.lstrip("#").strip().rstrip("#"))))
    return ""


def abstract_of(body: str) -> str:
    """Return the first two sentences of running text, without markup; empty where there is none that tells.

    Labels, badges and asides are passed over, and so is a paragraph that goes on from something before it.
    """
    for lines in _paragraphs(body):
        text = strip_markup(" ".join(lines))
        if text.endswith(":"):
            # What introduces a list says nothing without it.
            text = " ".join(_SENTENCE_END.split(text)[:-1])
        is_label = all(_LABEL.fullmatch(line) and len(line.split()) <= _LABEL_WORDS for line in lines)
        if not is_label and (len(text.split()) >= _FEW_WORDS or text.endswith(_ENDS)):
            return clip_text(first_sentences(text), ABSTRACT_CHARACTERS)
    return ""


def first_sentences(text: str) -> str:
    """Return the first two sentences of a text."""
    return " ".join(part.strip() for part in _SENTENCE_END.split(text)[:_SENTENCES])


def first_paragraph(body: str) -> str:
    """Return the first paragraph of running text as one line, cut to the size of an abstract.

    A label such as `Status: draft` is one only where nothing else is.
    """
    found = [strip_markup(" ".join(lines)) for lines in _paragraphs(body)]
    said = next((text for text in found if len(text.split()) >= _FEW_WORDS), "")
    return clip_text(said or next(iter(found), ""), ABSTRACT_CHARACTERS)


def _paragraphs(body: str) -> Iterator[list[str]]:
    taken: list[str] = []
    is_aside = is_along = False
    for line in prose_lines(body):
        is_along = bool(line.strip()) and (is_along or bool(_TAKES_ALONG.match(line)))
        # The indented text below a mark such as `!!! note` belongs to it.
        is_aside = line.startswith(("!!!", "???")) or (is_aside and (not line.strip() or line[0] in " \t"))
        if (
            line.strip()
            and not is_aside
            and not is_along
            and not line.startswith(("    ", "\t"))
            and not _NO_PROSE.match(line)
        ):
            taken.append(line.strip())
        elif taken:
            yield taken
            taken = []
    if taken:
        yield taken


def prose_lines(body: str) -> list[str]:
    """Return the lines that stand outside code blocks and comments."""
    lines, fence, is_comment = [], "", False
    for line in front_matter.strip_foreign(body).splitlines():
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif is_comment or line.lstrip().startswith("<!--"):
            is_comment = "-->" not in line
        elif mark in ("```", "~~~"):
            fence = mark
        else:
            lines.append(line)
    return lines


def strip_markup(text: str) -> str:
    """Return a line without links, images, emphasis and code marks."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"(\*\*|__)(\S(?:.*?\S)?)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])\*(\w[^*]*)\*(?![\w*])", r"\1", text)
    text = re.sub(r"`([^`]*)`", r"\1", text)
    return " ".join(text.split())


def clip_text(text: str, characters: int) -> str:
    """Return a text that fits, cut after a sentence where one ends, else after a word."""
    if len(text) <= characters:
        return text
    head = text[:characters]
    end = max(head.rfind(". "), head.rfind("! "), head.rfind("? "))
    if end > characters // 3:
        return head[: end + 1]
    return head[: head.rfind(" ") if " " in head else characters].rstrip(" ,;:") + " …"
