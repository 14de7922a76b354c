"""Read what a question says about the asking itself: words that are not searched for, and breadth."""

from __future__ import annotations

import re

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import SILENT
from archivist.recall.times import time_words
from archivist.text import stem_word

# Phrases about the asking. What they ask for stands behind them.
_ASKING = lazy_pattern(
    r"\b(?:(?:can|could|would|will) you (?:please )?|please )?(?:list|summari[sz]e|outline|recap"
    r"|enumerate|walk me through"
    r"|give me (?:an? )?(?:\w+ )?(?:summary|overview|list|recap|timeline) of"
    r"|provide (?:an? )?(?:\w+ )?(?:summary|overview) of"
    r"|tell me (?:about )?everything about|remind me (?:of|what|about)|tell me)\b"
    r"|\bwhat (?:did|have|had) (?:we|i) (?:decided?|agreed?|settled?) (?:about|on|for|upon)\b"
    r"|\bin (?:chronological |the )?order(?: in which)?\b|\bmention(?:ing)? (?:only|exactly)[^.?!]{0,60}"
    r"|\b(?:throughout|across|during|over) (?:all )?(?:of )?our (?:chats?|conversations?|sessions?"
    r"|discussions?)\b"
    r"|\bfrom (?:first|earliest|oldest) to (?:last|latest|newest)\b",
    re.IGNORECASE,
)
# A question for many things, which stand in many places.
_BROAD = lazy_pattern(
    r"\b(?:summari[sz]e|summary of|overview of|recap|timeline of|list (?:all|every|the|in)"
    r"|in (?:chronological )?order"
    r"|walk me through|everything|all the (?:times|ways|things)|how (?:has|have"
    r"|did) .{1,60} (?:evolve|progress|develop)"
    r"|throughout our)\b",
    re.IGNORECASE,
    longest=500,
)
# Of these the answer has a number or a name.
_MEASURE = lazy_pattern(
    r"\bhow (?:many|much|long|often|big|large|old|far|high|fast|soon)\b"
    r"|\b(?:what|which) (?:kind|type|sort)s?\b",
    re.IGNORECASE,
    longest=500,
)
# A question for how something is done, and one for something else.
_HOW = lazy_pattern(
    r"\bhow (?:do|can|could|should|would|must|to)\b|\b(?:commands?|scripts?)\b"
    r"|\b(?:what|which) (?:runs?|starts?|builds?|tests?|lints?|checks?)\b",
    re.IGNORECASE,
    longest=200,
)
_NOT_HOW = lazy_pattern(
    r"\A\W*(?:why|when|who|where|did|does|is|are|was|were|has|have)\b", re.IGNORECASE, longest=40
)
# A question for the reason of a failure.
_WHY_FAILS = lazy_pattern(
    r"\A\W*(?:why|how come|what makes)\b[^?.!]{1,100}?\b(?:fail\w*|break\w*|broken?|refuse\w*|reject\w*"
    r"|crash\w*|hang\w*|not work\w*|n[\u2019']t work\w*)\b",
    re.IGNORECASE,
    longest=200,
)
_FAILING = lazy_pattern(
    r"(?:fail|brea|brok|refus|reject|crash|hang|work|keep|mak)\w*", re.IGNORECASE, longest=40
)
# The purposes of a project's commands, by the words that ask for them.
_PURPOSES = {
    "one test": frozenset(("single", "one", "only")),
    "test": frozenset(("test", "tests", "testing", "tested")),
    "fix": frozenset(("fix", "fixes", "autofix")),
    "lint": frozenset(("lint", "lints", "linter", "linters", "linting", "linted")),
    "types": frozenset(("typecheck", "typechecks", "typechecker", "types", "type")),
    "format": frozenset(("format", "formats", "formatter", "formatting", "formatted")),
    "build": frozenset(("build", "builds", "building", "built", "compile", "compiled", "compiling")),
    "run": frozenset(("start", "started", "launch", "serve", "app", "application", "server", "program")),
    "check": frozenset(("check", "checks", "checked")),
}
# What such a question may name beside its purpose.
_OF_COMMANDS = frozenset((
    "command", "commands", "script", "scripts", "run", "runs", "running", "execute", "executed", "invoke",
    "use", "used", "call", "all", "whole", "full", "entire", "project", "code", "codebase", "suite", "suites",
    "unit", "repo", "repository", "local", "locally", "everything", "right", "correct", "proper",
    "properly", "way", "need", "want", "package", "source", "dev", "development",
))  # fmt: skip
_OF_COMMANDS = _OF_COMMANDS.union(*_PURPOSES.values())
# A part of the tests.
_ONE = frozenset(("file", "case", "method", "function", "class", "module"))
_STARTING = frozenset(("run", "runs", "running", "start", "started", "launch", "serve"))
_LONGEST_HOW = 120


def remove_asking(text: str) -> str:
    """Return a question without the words about the asking, unless there are no others."""
    rest = " ".join(_ASKING.sub(" ", text).split())
    return rest if re.search(r"\w{3}", rest) else text


def unanswered_words(text: str) -> frozenset[str]:
    """Return the words of a question that its answer need not have: the time that it names, "how many"."""
    measure = _MEASURE.search(text)
    return time_words(text).union(re.findall(r"[^\W_]+", measure[0].lower()) if measure else ())


def find_purposes(text: str) -> tuple[str, ...]:
    """Return what a question asks the project's command for: to test, to lint, to build, …; else nothing.

    "How do I run the e2e tests" names one thing more. "How do I write a test" and "test coverage" are about
    something else.
    """
    if len(text) > _LONGEST_HOW or _NOT_HOW.match(text):
        return ()
    said, words = _said_words(text)
    purposes = [purpose for purpose, names in _PURPOSES.items() if not names.isdisjoint(words)]
    foreign = words_beside_purpose(text)
    is_how = _HOW.search(text) is not None
    # Only the program's own start is a command of the project, and only its style is mended by one.
    is_start = not _STARTING.isdisjoint(said) and not foreign
    purposes = [
        purpose
        for purpose in purposes
        if (purpose != "run" or is_start)
        and (purpose != "one test" or "test" in purposes)
        and (purpose != "fix" or {"lint", "format"} & {*purposes})
    ]
    # Many projects lint by a command that also mends.
    purposes += ["fix"] if "lint" in purposes and "fix" not in purposes else []
    is_asked = not foreign or (is_how and len(foreign) == 1 and words[0] not in foreign)
    return tuple(purposes) if is_asked else ()


def words_beside_purpose(text: str) -> list[str]:
    """Return what a question for a command names beside its purpose: `e2e`."""
    words = _said_words(text)[1]
    known = _OF_COMMANDS if _PURPOSES["one test"].isdisjoint(words) else _OF_COMMANDS | _ONE
    return [word for word in words if word not in known]


def _said_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a question, and those that tell."""
    said = re.findall(r"[^\W_]+", text.lower())
    return said, [word for word in said if word not in SILENT or word in _PURPOSES["one test"]]


def failing_subject(text: str) -> frozenset[str]:
    """Return the stems of what fails, of a question for the reason; else nothing."""
    if not _WHY_FAILS.match(text):
        return frozenset()
    words = (word for word in _said_words(text)[1] if not _FAILING.fullmatch(word))
    return frozenset(stem_word(word) for word in words)


def is_broad(text: str) -> bool:
    """Say whether a question asks for many things."""
    return _BROAD.search(text) is not None
