"""Find which words a program takes, as its own help and usage say: for a run that was refused one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.refutations import NEAR
from archivist.reading.signatures import clean_output
from archivist.reading.wording import as_quotation, code, format_list

_HEADING = lazy_pattern(
    r"[\w ./-]{0,40}\b(?:sub)?(?:commands|recipes|scripts|tasks|targets)\b[\w .()`-]{0,40}:", re.IGNORECASE
)
# A name is one word or two: a longer one could be a sentence that a repository chose.
_NAME = r"[a-z][a-z0-9]{0,19}(?:[-_:.][a-z0-9]{1,20})?"
_ROW = lazy_pattern(
    rf"([ \t]{{1,8}})(?:\$ (?:npm|pnpm|yarn|bun) run )?({_NAME})(?:, \w{{1,3}})?(?:\s\s|\s*$|\s[\[<])"
)
_CHOICES = lazy_pattern(rf"\{{({_NAME}(?:,{_NAME}){{1,19}})\}}")
_USAGE = lazy_pattern(
    r"(?m)^\s{0,8}usage:\s{0,4}(?:\n\s{0,8})?([\w.-][\w\[\]<>{}.,|= -]{2,100})$", re.IGNORECASE
)
# What every program takes says nothing about one.
_ANY_USAGE = lazy_pattern(
    r"[\[<](?:OPTIONS?|ARGS?|COMMAND|SUBCOMMAND|FLAGS?|-h|--help)[\]>.]*", re.IGNORECASE
)
# Where a usage has a name of the caller's, and whether it may be several.
_PLACE = lazy_pattern(r"[\[<]([A-Za-z][\w-]{0,29})[\]>](\.{3})?")
_HELP_WORDS = frozenset(("--help", "-h", "help"))
_MOST_NAMES = 12
_LONGEST_NAMES = 130
_LONGEST_OUTPUT = 20_000


def find_accepted_words(acts: Sequence[ToolCall], failed: ToolCall) -> str:
    """Say which words a program takes that refused one, if it printed them at once or when asked for help."""
    refused = failed.refused_word
    if failed.main is None or not refused:
        return ""
    words = failed.main.values
    # How the part of the call before the refused word is used may have been asked next.
    asked = words[: words.index(refused)] if refused in words else words[:1]
    helping = [
        act
        for act in acts[failed.at + 1 : failed.at + 1 + NEAR]
        if act.main
        and not act.has_failed
        and [word for word in act.main.values if word not in _HELP_WORDS] == asked
    ]
    for output in (clean_output(act.event.output[:_LONGEST_OUTPUT]) for act in (failed, *helping)):
        names = [] if refused.startswith("-") else [name for name in _find_names(output) if name != "help"]
        if 1 < len(names) <= _MOST_NAMES and refused not in names:
            listed = format_list([code(name) for name in names])
            if len(listed) <= _LONGEST_NAMES:
                return f"available are {listed}"
        # Which option was meant, a usage does not say.
        if not refused.startswith("-") and (usage := _find_usage(output, words[0])):
            places = _PLACE.findall(_ANY_USAGE.sub("", usage.partition(" -- ")[0].partition(" [-- ")[0]))
            if len(places) == 1 and not places[0][1]:
                return f"it takes one “{as_quotation(places[0][0])}” a call"
            return f"its usage is “{as_quotation(usage)}”"
    return ""


def _find_names(output: str) -> Iterator[str]:
    """Yield the names in lists of commands, tasks or scripts, and between the braces of a usage."""
    if choices := _CHOICES.search(output):
        yield from choices[1].split(",")
        return
    indent = None
    for line in output.split("\n"):
        if _HEADING.fullmatch(line.strip()):
            indent = ""
        elif indent is not None and line.strip() and not line[:1].isspace():
            indent = None
        elif indent is not None and (row := _ROW.match(line)) and indent in ("", row[1]):
            indent = row[1]
            yield row[2]


def _find_usage(output: str, program: str) -> str:
    """Return how a program says it is used, where that names anything of its own."""
    found = _USAGE.search(output)
    usage = " ".join(found[1].split()) if found else ""
    is_own = usage.split(" ", 1)[0] == program.rsplit("/", 1)[-1]
    rest = _ANY_USAGE.sub("", usage)
    return usage if is_own and re.search(r"[\[<{]", rest) else ""
