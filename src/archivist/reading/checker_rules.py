"""Find which rules a linter or type checker says were broken."""

from __future__ import annotations

import re

from archivist.cold_start import lazy_pattern
from archivist.reading.command_words import NAME_WORD

_LONGEST_OUTPUT = 40_000
_LONGEST_LINE = 300
_MOST_RULES = 6
_MOST_WORDS = 4
# The forms in which checkers name a rule: by its group, by a code behind the place, or at the line's end.
_RULE = lazy_pattern(
    r"\blint/[a-z]{2,20}/(?P<of_group>[A-Za-z]{4,40})\b"
    r"|\bclippy::(?P<of_crate>[a-z_]{4,40})\b"
    r"|^\s{1,8}\d{1,6}:\d{1,4}\s{1,8}(?:error|warning)\s.{1,200}?\s{2}(?P<at_end>[a-z@][\w@/-]{2,49})$"
    r"|:\d{1,6}(?::\d{1,4})?:? (?:error |warning )?(?P<code>[A-Z]{1,5}\d{3,5})\b"
    r"|^(?P<first>[A-Z]{1,4}\d{3,4}) (?:\[\*\] )?\S"
    r"|\berror(?: |\[)(?P<numbered>TS\d{3,5}|E\d{4})\b"
    r"|\b(?P<known>(?:SC|MD|DL)\d{3,4})\b"
    r"|: error: .{1,200}\s\[(?P<bracketed>[a-z][a-z-]{3,39})\]$"
    r"|\.go:\d{1,6}:\d{1,4}: .{1,200}\s\((?P<in_parentheses>[a-z][a-z0-9]{2,29})\)$"
    r"|: [CWEF]: (?:\[Correctable\] )?(?P<of_cop>[A-Z][A-Za-z]{2,30}/[A-Za-z]{3,40}):",
    re.MULTILINE,
    longest=_LONGEST_LINE,
)


def find_broken_rules(output: str) -> tuple[str, ...]:
    """Return the names of the rules that a checker's output says were broken, each once."""
    found: dict[str, None] = {}
    for line in output[-_LONGEST_OUTPUT:].splitlines():
        match = _RULE.search(line[:_LONGEST_LINE])
        name = match[match.lastgroup] if match and match.lastgroup else ""
        # A longer name speaks: whoever wrote the program chose it.
        if name and all(len(NAME_WORD.findall(part)) <= _MOST_WORDS for part in name.split("/")):
            found[name] = None
        if len(found) == _MOST_RULES:
            break
    return tuple(found)
