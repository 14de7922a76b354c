"""Say whether a call passes only because it runs less than one that failed."""

from __future__ import annotations

from collections.abc import Iterable

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.commands import step_purpose
from archivist.reading.evasions import SELECTING
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step

# What a test finds that ran.
_OF_TESTS = frozenset((K.TEST_FAILURE, K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE))
_COUNTS_FAILED = lazy_pattern(r"\b[1-9]\d{0,8} (?:\w{1,12} )?(?:failed|failing|failures?)\b")
# Options whose value selects tests or a part of the project.
_TAKES_VALUE = lazy_pattern(
    r"-(?:k|t|p|w|run|testName|testPathPattern|-(?:testNamePattern|grep|tests?|package|filter|workspace|project))(?:=|$)"
)
# Where tests are: what stands behind an option is else its value.
_TEST_PLACE = lazy_pattern(r"::|test|spec")
_SHARD = lazy_pattern(r"--shard[= ](\d{1,3})/(\d{1,3})\b")
_EXCLUDED = lazy_pattern(r"\bnot \S+")
_WORD = lazy_pattern(r"[\w./:@-]{3,}")
_CHECKS = lazy_pattern(
    r"(?:^|[\s:_-])(?:check|lint|typecheck|type-check|verify|validate|audit|clippy)(?:$|[\s:_-])"
)
# A line that tells of a failure, by its words or by a position in a file.
_TELLS_FAILURE = lazy_pattern(r"(?i)fail|error|assert|panick|[\u00d7✗✖●]|\S\.\w{1,4}:\d+")


def leaves_out_failure(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call does not run what failed: other tests, or a line without one of its checks.

    It passes because it does less, so it shows nothing about the failure.
    """
    if act.main is None or failed.main is None or failed.failure is None:
        return False
    # Which step of a line has failed is not known where the error is of no known kind.
    checked = failed.steps if failed.kind is K.OTHER else ()
    checks = {step_purpose(step) for step in checked if _CHECKS.search(step.text)}
    done = {step_purpose(step) for step in act.steps}
    if checks - done and not done.isdisjoint(map(step_purpose, failed.steps)):
        return True
    # Else nothing was run yet, and another call is the way to run it.
    has_run = failed.kind in _OF_TESTS or _COUNTS_FAILED.search(failed.event.output) is not None
    if not (failed.is_test and act.is_test and has_run):
        return False
    lines = [line for line in failed.event.output.splitlines() if _TELLS_FAILURE.search(line)]
    return _selects_other_tests(act.main, failed.main, "\n".join((failed.failure.line, *lines)))


def runs_less(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call runs a part of what failed or took too long: it passes for that part alone."""
    if leaves_out_failure(act, failed):
        return True
    if act.main is None or failed.main is None or not (act.is_test and failed.is_test):
        return False
    return failed.kind is K.TIMEOUT and _selects_other_tests(act.main, failed.main, "")


def are_all_shards(calls: Iterable[str]) -> bool:
    """Say whether calls that ran a shard each ran all of them."""
    found = [shard for call in calls if (shard := _SHARD.search(call))]
    return bool(found) and {int(each[1]) for each in found} >= set(range(1, int(found[-1][2]) + 1))


def _selects_other_tests(step: Step, wrong: Step, failing: str) -> bool:
    """Say whether a call selects tests that another did not, and none that failed.

    Files and names are added up, options such as `-p` or `-k` narrow what is run.
    """
    (files, options), (others, known) = _selected_tests(step), _selected_tests(wrong)
    is_narrower = bool(files) and not (others and files >= others)
    if is_narrower and not any(_is_named(word, failing) for word in files):
        return True
    return any(not _is_named(word, failing) for word in options - known)


def _selected_tests(step: Step) -> tuple[set[str], set[str]]:
    """Return the files and names of tests that a call gives, and what its options select."""
    words = step.values[1:]
    named: set[str] = set()
    options: set[str] = set()
    for before, word in zip(["", *words], words, strict=False):
        if word.startswith("-"):
            options |= {word} if SELECTING.match(word) and not _TAKES_VALUE.match(word) else set()
            options |= {word.partition("=")[2]} if _TAKES_VALUE.match(word) and "=" in word else set()
        elif _TAKES_VALUE.match(before):
            options.add(word)
        elif word in step.arguments and (_TEST_PLACE.search(word) or not before.startswith("-")):
            named.add(word)
    return named - {*step.name.split()}, options


def _is_named(word: str, failing: str) -> bool:
    """Say whether the lines that tell of a failure name what a word selects."""
    parts = [part for part in _WORD.findall(_EXCLUDED.sub(" ", word)) if part != "and"]
    return any(part in failing or (part.rpartition("/")[2] or part) in failing for part in parts)
