"""What can be wrong with a workspace's files: one table of rules, and the finding of one of them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is: an error makes `workspace lint` fail."""

    ERROR = "error"
    WARNING = "warning"


class Rule(NamedTuple):
    """A rule about the files: what it asks for, and what to do where it is broken."""

    id: str
    severity: Severity
    asks: str
    remedy: str


_E, _W = Severity.ERROR, Severity.WARNING

RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        Rule("unreadable", _E, "Files and folders can be read.", "give yourself permission to read it"),
        Rule("dangling-link", _E, "Links lead to a file.", "mend the link, or remove it"),
        Rule("too-large", _E, "Files are texts of 16 MiB at most.", "split it, or move it elsewhere"),
        Rule(
            "not-written", _E, "Files that are to change can be written.", "make it writable, and try again"
        ),
        Rule(
            "leaves-root", _E, "Links stay inside the root.", "link to something below the root, or copy it"
        ),
        Rule("not-utf8", _E, "Files are UTF-8.", "save the file as UTF-8"),
        Rule("bom", _W, "Files carry no byte order mark.", "save the file as UTF-8 without a mark"),
        Rule("crlf", _W, "Lines end with a line feed alone.", "convert the line ends to LF"),
        Rule("empty", _E, "Files are not empty.", "write it, or remove it"),
        Rule(
            "no-front-matter",
            _E,
            "Plans and overviews have front matter.",
            "archivist workspace migrate adds it",
        ),
        Rule("unclosed", _E, "Front matter ends with a line `---`.", "close it with a line `---`"),
        Rule(
            "broken-yaml", _E, "Front matter is YAML.", "mend the line; quote a value that holds `: ` or ` #`"
        ),
        Rule(
            "foreign-front-matter",
            _E,
            "Front matter is YAML between `---`.",
            "write the fields as YAML between two lines `---`",
        ),
        Rule("duplicate-key", _E, "A field stands once.", "keep one of them"),
        Rule("tab", _E, "Front matter is indented with spaces.", "replace the tab by spaces"),
        Rule(
            "missing-field",
            _E,
            "Required fields are there.",
            "add it; archivist workspace migrate adds what it can tell",
        ),
        Rule("unknown-field", _W, "Fields are those of the format.", "rename or remove it"),
        Rule("bad-value", _E, "A field holds what the format says.", "write it as the format says"),
        Rule(
            "bad-status",
            _E,
            "The status is one of the five.",
            "one of new, in_progress, partial, done, abandoned",
        ),
        Rule("bad-date", _E, "Dates are dates, YYYY-MM-DD.", "write it as YYYY-MM-DD"),
        Rule("plan-name", _W, "Plan files are named YYMMDD-plan-name.md.", "rename the file"),
        Rule(
            "abstract-file",
            _W,
            "Abstracts stand in OVERVIEW.md, not in ABSTRACT.md.",
            "archivist workspace migrate merges it",
        ),
        Rule(
            "heading-level",
            _E,
            "The heading of a learning entry has three marks.",
            "the heading must be ### [YYYY-MM-DD] Title",
        ),
        Rule("no-title", _E, "A learning entry has a title.", "### [YYYY-MM-DD] Title"),
        Rule("no-date", _E, "A learning entry has a date.", "### [YYYY-MM-DD] Title"),
        Rule("no-category", _E, "A learning entry has a category.", "add a line **Category:** word"),
        Rule(
            "no-text", _W, "A learning entry says something.", "say what happened and what to do differently"
        ),
        Rule(
            "stray-text", _W, "What is learnt stands under a heading.", "begin it with ### [YYYY-MM-DD] Title"
        ),
        Rule("too-many-entries", _W, "A learning file stays short.", "split or archive it as proposed"),
    )
}


class Problem(NamedTuple):
    """One finding: where, against which rule, and what exactly. Line 0 means the file as a whole.

    `advice` takes the place of the rule's remedy where that would not help.
    """

    file: str
    line: int
    rule: str
    text: str
    advice: str = ""

    @property
    def severity(self) -> Severity:
        """Return how bad it is."""
        return RULES[self.rule].severity

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return self.advice or RULES[self.rule].remedy

    def __str__(self) -> str:
        return f"{self.file}:{self.line or 1}: {self.rule}: {self.text}"
