"""Read what a test runner prints: how many tests it ran, which of them failed, and of what.

Runners agree on little but this: a line that sums up counts tests beside a word, and each failing test is
named at the start of a line with its error near. So lines are recognised by their form, not by the runner.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.signatures import clean_output, message_words
from archivist.text import on_one_line

# Lines that sum up, as pytest, unittest, jest, vitest, mocha, bun, cargo, JUnit, RSpec, node, dotnet write
# them. Anything that a passing test logs may count something, but hardly at the start of a line.
_SUMMARY = lazy_pattern(
    r"^[ \t=#\u2139]{0,80}(?:test result: \w|Tests:?[ \t]{1,9}\d"
    r"|\d{1,6} (?:tests? )?(?:pass(?:ing|ed)?|fail(?:ing|ed)?|skip(?:ped)?|pending)\b(?=\W{0,3}$| \()"
    r"|\d{1,6} (?:passed|failed|errors?|skipped|deselected)\b[^\n]{0,120} in [\d.]{1,9}s|Ran \d{1,6} tests?\b"
    r"|FAILED \((?:failures|errors)=|\d{1,6} (?:tests?|examples?|runs?)(?: completed)?, \d"
    r"|OK \(\d{1,6} tests?"
    r"|(?:\[\w{4,7}\] )?Tests run: \d|(?:Passed|Failed)!  - Failed: |\d{1,3}% tests passed|DONE \d{1,6} tests"
    r"|(?:tests|pass|fail|skipped) \d{1,6}$|(?:ok|FAILED) \| \d)[^\n]{0,200}",
    re.MULTILINE,
)
_OF_ONE_CLASS = lazy_pattern(r"Time elapsed| - in \w")
_COUNT = lazy_pattern(
    r"(?P<n>\d{1,6}) (?:tests? |specs? )?"
    r"(?P<word>pass|fail|error|skip|pending|todo|test|example|run|total|completed)(?!-)"
    r"|(?P<label>pass|fail|error|skip|test|total|out of)(?:p?ed|ures|s run|s)?[:=]?[ \t]{1,6}"
    r"(?P<count>\d{1,6})(?!\d| [a-z])"
    r"|(?:failures|errors)=(?P<bad>\d{1,6})",
    re.IGNORECASE,
)
_KINDS = {"pass": "pass", "fail": "fail", "error": "fail", "skip": "skip", "pending": "skip", "todo": "skip"}
# Where no line sums up: Go and Gradle print a line for each test.
_EACH = lazy_pattern(
    r"^(?:[ \t]{0,8}--- (?P<go>PASS|FAIL): |\S[^\n>]{0,120} > [^\n]{1,120} (?P<gradle>PASSED|FAILED)$)",
    re.MULTILINE,
)
# How each failing test is named, behind words that its output has: a pattern takes a hook a millisecond to
# compile. The error stands on so many further lines, where nothing else is said.
_NAMED = tuple(
    (needle, lazy_pattern(pattern, re.MULTILINE), reach)
    for needle, pattern, reach in (
        # pytest, also where it only lists; unittest
        ("::", r"^(?:FAILED|ERROR) (?P<name>\S+::[^\n]{1,160}?)(?: - (?P<error>[^\n]{1,300}))?$", 0),
        ("Ran ", r"^(?:FAIL|ERROR): (?P<name>\w+) \([\w.]{1,160}\)$", 40),
        # jest and vitest
        ("\u25cf ", r"^ {0,4}\u25cf (?P<name>(?!Console\b|Test suite failed)\S[^\n]{1,200})\n", 4),
        ("FAIL  ", r"^ {0,2}FAIL  \S+\.\w{1,4} > (?P<name>\S[^\n]{1,200})\n", 3),
        # mocha: the suite, and on further lines the test
        ("1) ", r"^ {0,4}\d{1,3}\) (?P<name>\S[^\n]{0,200}?(?:\n {5,30}\S[^\n]{0,200}?){0,4}?):\n", 3),
        # bun, whose errors stand before
        ("(fail)", r"^\(fail\) (?P<name>\S[^\n]{0,200}?)(?: \[[\d.]{1,12}m?s\])?$", -1),
        # cargo
        ("... FAILED", r"^test (?P<name>\S+)(?: - should panic)? \.\.\. FAILED$", 0),
        (" stdout ----", r"^---- (?P<name>\S+) stdout ----$", 4),
        # Go
        ("--- FAIL: ", r"^[ \t]{0,12}--- FAIL: (?P<name>\S+) \(", 2),
        # JUnit by Maven and by Gradle
        (
            "Time elapsed",
            r"^\[ERROR\] (?:[\w.$]+\.)?(?P<name>[A-Z][\w$]*\.\w+|\w+\([\w.$]+\))[ -]{1,4}Time elapsed.*! *$",
            2,
        ),
        (" FAILED\n", r"^(?P<name>[A-Z]\w*(?: > [^\n>]{1,160}){1,4}?)(?:\(\))? FAILED$", 2),
        # TAP, node, RSpec
        ("not ok ", r"^ {0,12}not ok \d{1,6} - (?P<name>[^\n#]{1,200}?)$", 8),
        ("rspec ./", r"^rspec \./\S+ # (?P<name>[^\n]{1,200})$", 0),
    )
)
_AFTER_TIMEOUT = lazy_pattern(r"\n[ \t]{1,4}\^ (?P<error>this test timed out[^\n]{0,60})")
_BETWEEN_BUN = lazy_pattern(r"^\((?:pass|fail|skip|todo)\)[^\n]*$", re.MULTILINE)
_BUN_ERROR = lazy_pattern(r"^(?P<error>(?:error|\w{1,60}Error): [^\n]{1,300})", re.MULTILINE)
_SAYS_ERROR = lazy_pattern(r"[A-Za-z]{3}")
# A line that only says where: `panicked at src/a.rs:3:5:`, `=== RUN`, a frame.
_SAYS_PLACE = lazy_pattern(
    r"^(?:thread '.*panicked at \S+:\d+:\d+:?|=+ .*|File \".*|Traceback.*|at .*|-{3,}.*|[{}])$"
)
_OLD_PANIC = lazy_pattern(r"panicked at '(?P<error>[^\n]{1,300})', \S+$")
_GO_PLACE = lazy_pattern(r"^\w[\w.-]{0,80}\.go:\d{1,6}: ")
_RAISED = lazy_pattern(
    r"(?<![\w$.])(?:[\w$]{1,60}\.){0,12}"
    r"(?P<name>[A-Z][\w$]{0,80}(?:Error|Exception|Failure|Failed|Timeout))\b"
)
_IS_TIMEOUT = lazy_pattern(r"(?i)\btim(?:ed|e|ing)[ -]?out\b|timeout(?!\w{0,60}\()")
_IS_ASSERTION = lazy_pattern(
    r"(?i)^(?:error: )?(?:assert|expect)|assertion|\bexpect(?:ed|\()|^not equal|ComparisonFailure"
)
_MOST_NAMES, _LONGEST_NAME, _LONGEST_ERROR = 12, 160, 200
TIMEOUT, ASSERTION = "timeout", "assertion"


class FailedTest(NamedTuple):
    """A failing test as its runner names it, and its error as far as the output shows it."""

    name: str
    error: str = ""


class RunnerReport(NamedTuple):
    """How many tests a call ran and failed, as far as it says so, and which of them failed."""

    ran: int = 0
    failed: int = 0
    failing: tuple[FailedTest, ...] = ()


def read_report(output: str) -> RunnerReport:
    """Read the output of a call that runs tests."""
    text = clean_output(output)
    counts: Counter[str] = Counter()
    for line in (found[0] for found in _SUMMARY.finditer(text)):
        if not _OF_ONE_CLASS.search(line):
            for kind, number in _counts_of(line).items():
                # Cargo sums up each program; others repeat themselves.
                is_part = "test result:" in line
                counts[kind] = counts[kind] + number if is_part else max(counts[kind], number)
    if not any(counts.values()):
        states = [found["go"] or found["gradle"] for found in _EACH.finditer(text)]
        failed = sum(state.startswith("FAIL") for state in states)
        # Without `-v` Go prints only what failed.
        counts |= {"pass": len(states) - failed, "fail": failed} if failed < len(states) else {}
    passed, failed = counts["pass"], counts["fail"]
    ran = passed + failed if passed else max(failed, counts["total"] - counts["skip"])
    return RunnerReport(ran, failed, failing_tests(text))


def _counts_of(line: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for found in _COUNT.finditer(line):
        word = (found["word"] or found["label"] or "fail").lower()
        number = int(found["n"] or found["count"] or found["bad"])
        kind = _KINDS.get(word, "total")
        # Failures and errors add up.
        counts[kind] = counts[kind] + number if kind == "fail" else max(counts[kind], number)
    return counts


def failing_tests(text: str) -> tuple[FailedTest, ...]:
    """Return the failing tests that an output names, which is clean of colours."""
    found: dict[str, str] = {}
    for needle, pattern, reach in _NAMED:
        for match in pattern.finditer(text) if needle in text else ():
            name = on_one_line(" ".join(match["name"].split()))[:_LONGEST_NAME].removesuffix("()")
            error = match.groupdict().get("error") or ""
            if reach < 0:
                error = _error_before(text, match.start()) or error
                after = _AFTER_TIMEOUT.match(text, match.end())
                error = after["error"] if after else error
            elif reach:
                error = _error_after(text[match.end() : match.end() + 4_000], reach)
            found[name] = found.get(name) or error[:_LONGEST_ERROR]
    # A parent fails with its part.
    names = [name for name in found if not any(other.startswith(f"{name}/") for other in found)]
    return tuple(FailedTest(name, found[name]) for name in names[:_MOST_NAMES])


def _error_before(text: str, end: int) -> str:
    start = max((found.end() for found in _BETWEEN_BUN.finditer(text, max(0, end - 6_000), end)), default=0)
    errors = [found["error"] for found in _BUN_ERROR.finditer(text, max(start, end - 6_000), end)]
    return errors[-1].removeprefix("error: ") if errors else ""


def _error_after(text: str, reach: int) -> str:
    """Return the first of the next lines that says what went wrong."""
    lines = (line.strip() for line in text.split("\n"))
    raised = ""
    for line in [line for line in lines if line][:reach]:
        if old := _OLD_PANIC.search(line):
            return old["error"]
        if _SAYS_PLACE.match(line) or not _SAYS_ERROR.search(line):
            continue
        # A traceback ends with its error.
        if reach > 8:
            raised = line if _RAISED.match(line) else raised
            if raised:
                return raised
            continue
        return _GO_PLACE.sub("", line.removeprefix("error: ").removeprefix("thrown: "))
    return raised


def error_class(error: str) -> str:
    """Return the class of a test's error: a timeout, an assertion, the name of an exception, or its words."""
    if _IS_TIMEOUT.search(error):
        return TIMEOUT
    raised = _RAISED.search(error)
    if _IS_ASSERTION.search(error):
        return ASSERTION
    return raised["name"] if raised else "-".join(message_words(error)[:4])


def shown_class(error: str) -> str:
    """Return what a person would call the class of a test's error; empty if it has no name."""
    kind = error_class(error)
    raised = _RAISED.search(error)
    if kind == TIMEOUT:
        return "a timeout"
    if raised:
        return f"an {raised['name']}" if raised["name"][0] in "AEIOU" else f"a {raised['name']}"
    return "a failed assertion" if kind == ASSERTION else ""
