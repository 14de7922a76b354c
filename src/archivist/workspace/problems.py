"""The rules of `workspace lint`, and a problem found by one of them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class LintSeverity(StrEnum):
    """The severity of a problem: an error makes `workspace lint` fail."""

    ERROR = "error"
    WARNING = "warning"


class LintRule(NamedTuple):
    """A rule about the files: what it asks for, and what to do when it is broken."""

    id: str
    severity: LintSeverity
    asks: str
    remedy: str


_E, _W = LintSeverity.ERROR, LintSeverity.WARNING

RULES: dict[str, LintRule] = {
    rule.id: rule
    for rule in (
        LintRule("unreadable", _E, "Files and folders can be read.", "give yourself permission to read it"),
        LintRule("dangling-link", _E, "Links lead to a file.", "mend the link, or remove it"),
        LintRule("too-large", _E, "Files are texts of 16 MiB at most.", "split it, or move it elsewhere"),
        LintRule(
            "not-written", _E, "Files that are to change can be written.", "make it writable, and try again"
        ),
        LintRule(
            "leaves-root", _E, "Links stay inside the root.", "link to something below the root, or copy it"
        ),
        LintRule("not-utf8", _E, "Files are UTF-8.", "save the file as UTF-8"),
        LintRule("bom", _W, "Files carry no byte order mark.", "save the file as UTF-8 without a mark"),
        LintRule("crlf", _W, "Lines end with a line feed alone.", "convert the line ends to LF"),
        LintRule("empty", _E, "Files are not empty.", "write it, or remove it"),
        LintRule(
            "no-front-matter",
            _E,
            "Plans and overviews have front matter.",
            "archivist workspace migrate adds it",
        ),
        LintRule("unclosed", _E, "Front matter ends with a line `---`.", "close it with a line `---`"),
        LintRule(
            "broken-yaml", _E, "Front matter is YAML.", "mend the line; quote a value that holds `: ` or ` #`"
        ),
        LintRule(
            "foreign-front-matter",
            _E,
            "Front matter is YAML between `---`.",
            "write the fields as YAML between two lines `---`",
        ),
        LintRule("duplicate-key", _E, "A field stands once.", "keep one of them"),
        LintRule("tab", _E, "Front matter is indented with spaces.", "replace the tab by spaces"),
        LintRule(
            "missing-field",
            _E,
            "Required fields are there.",
            "add it; archivist workspace migrate adds what it can tell",
        ),
        LintRule("unknown-field", _W, "Fields are those of the format.", "rename or remove it"),
        LintRule("bad-value", _E, "A field holds what the format says.", "write it as the format says"),
        LintRule(
            "bad-status",
            _E,
            "The status is one of the five.",
            "one of new, in_progress, partial, done, abandoned",
        ),
        LintRule("bad-date", _E, "Dates are dates, YYYY-MM-DD.", "write it as YYYY-MM-DD"),
        LintRule("plan-name", _W, "Plan files are named YYMMDD-plan-name.md.", "rename the file"),
        LintRule(
            "abstract-file",
            _W,
            "Abstracts stand in OVERVIEW.md, not in ABSTRACT.md.",
            "archivist workspace migrate merges it",
        ),
        LintRule(
            "heading-level",
            _E,
            "The heading of a learning entry has three marks.",
            "the heading must be ### [YYYY-MM-DD] Title",
        ),
        LintRule("no-title", _E, "A learning entry has a title.", "### [YYYY-MM-DD] Title"),
        LintRule("no-date", _E, "A learning entry has a date.", "### [YYYY-MM-DD] Title"),
        LintRule("no-category", _E, "A learning entry has a category.", "add a line **Category:** word"),
        LintRule(
            "no-text", _W, "A learning entry says something.", "say what happened and what to do differently"
        ),
        LintRule(
            "stray-text", _W, "What is learnt stands under a heading.", "begin it with ### [YYYY-MM-DD] Title"
        ),
        LintRule("too-many-entries", _W, "A learning file stays short.", "split or archive it as proposed"),
    )
}


class LintProblem(NamedTuple):
    """One problem: the file, the line, the rule and a message. Line 0 means the whole file.

    `advice` replaces the remedy of the rule where that would not help.
    """

    file: str
    line: int
    rule: str
    text: str
    advice: str = ""

    @property
    def severity(self) -> LintSeverity:
        """Return the severity of its rule."""
        return RULES[self.rule].severity

    @property
    def remedy(self) -> str:
        """Return what to do."""
        return self.advice or RULES[self.rule].remedy

    def __str__(self) -> str:
        return f"{self.file}:{self.line or 1}: {self.rule}: {self.text}"
