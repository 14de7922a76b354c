"""Compare what a line of an account says of outcomes and counts with the calls that it cites."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archivist.cold_start import lazy_pattern
from archivist.lessons.support import CODE, normal_text
from archivist.reading.calls import ToolCall
from archivist.reading.outcomes import has_worked

# What is said of a command right behind it.
_FAILED = lazy_pattern(r"\s+(?:had |has |first |then |still |again )?(?:failed|fails|broke|timed out)\b")
# That all went well, in one call or for all that is cited.
_ALL_PASSED = lazy_pattern(
    r"\ball (?:\w+ )?(?:tests|checks|suites|calls)\b[^.;]{0,40}\bpass(?:ed|es)?\b", re.IGNORECASE
)
_FAILED_TIMES = lazy_pattern(
    r"\bfail(?:ed|s)\b[^.;,]{0,40}?\b(?:(twice)|(two|three|four|five|\d{1,2}) times)\b", re.IGNORECASE
)
_FAILED_LOCALLY = lazy_pattern(r"\bfail(?:ed|s)\b[^.;,]{0,30}\blocally\b", re.IGNORECASE)
_SAYS_FAILURE = lazy_pattern(
    r"\b(?:red|fail(?:s|ed|ing|ures?)?|broken|did not (?:pass|work))\b", re.IGNORECASE
)
_SAYS_SUCCESS = lazy_pattern(
    r"\b(?:green|pass(?:es|ed|ing)?|fixed|works?|worked|succe\w{3,6})\b", re.IGNORECASE
)
_SUCCESS = lazy_pattern(
    r"\b(?:pass(?:es|ed)?|succeed(?:s|ed)?|work(?:s|ed)|fixed|(?:went|is|was|turned) green)\b", re.IGNORECASE
)
_NO = r"(?:\b(?:no|not|none|never|nothing|without)|n't)\b"
_NEGATION = lazy_pattern(_NO, re.IGNORECASE)
# A clause that denies what ends it.
_NEGATED = lazy_pattern(rf"{_NO}[^.,;:!?]{{0,80}}\Z", re.IGNORECASE)
_SOME_PASSED = lazy_pattern(r"\b[1-9]\d{0,8} (?:\w{1,12} )?pass(?:ed|ing)\b")
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5}


def contradicts_outcomes(text: str, cited: Sequence[ToolCall]) -> bool:
    """Say whether the cited calls show the opposite of what a line says of them.

    A command that is said to fail must not only have worked, all that passed must not have failed, and what
    failed so many times must be cited so often.
    """
    for code in CODE.finditer(text):
        if not _FAILED.match(text[code.end() :]):
            continue
        named = [act for act in cited if normal_text(code[1]) in normal_text(act.event.text)]
        if named and not any(act.has_failed for act in named) and any(map(has_worked, named)):
            return True
    failed = [act for act in cited if act.has_failed]
    if (
        failed
        and _ALL_PASSED.search(text)
        and not any(act.at > failed[-1].at and has_worked(act) for act in cited)
    ):
        return True
    if cited and not failed and _FAILED_LOCALLY.search(text):
        return True
    found = _FAILED_TIMES.search(text)
    times = 2 if found and found[1] else _COUNTS.get(found[2].lower(), 0) if found else 0
    times = times or (int(found[2]) if found and found[2] and found[2].isdecimal() else 0)
    # What is told of remarks or of one call that repeats itself cannot be counted.
    return bool(cited) and bool(failed) and len(failed) < times


def says_failure(text: str) -> bool:
    """Say whether a message tells of a failure and of no success."""
    return bool(_SAYS_FAILURE.search(text)) and not _SAYS_SUCCESS.search(text)


def claims_success(text: str) -> bool:
    """Say whether a line says that something passed; that nothing did is the opposite."""
    return any(not _NEGATED.search(text, 0, found.start()) for found in _SUCCESS.finditer(text))


def counts_both(text: str, cited: Sequence[ToolCall]) -> bool:
    """Say whether a line tells of failure and success, and a call that failed counts what passed in it."""
    return _SAYS_FAILURE.search(text) is not None and any(
        act.has_failed and _SOME_PASSED.search(act.event.output) for act in cited
    )


def tells_omission(text: str) -> bool:
    """Say whether a line only tells what was not done or found, and not that something failed."""
    is_failure = _SAYS_FAILURE.search(text) or (_SUCCESS.search(text) and not claims_success(text))
    return _NEGATION.search(text) is not None and not is_failure
