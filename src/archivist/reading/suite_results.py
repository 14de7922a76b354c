"""What a run's tests showed: the last result of each way to run them, and filters that choose no tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from archivist.reading.calls import ToolCall
from archivist.reading.failures import Failure
from archivist.reading.outcomes import has_worked
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import Cure
from archivist.reading.rules import FailureKind as K
from archivist.reading.runner_reports import RunnerReport, error_class, read_report
from archivist.reading.shell import ProjectStep
from archivist.reading.signatures import Signature, message_words
from archivist.reading.suite_state import SuiteRow, follow_tests
from archivist.reading.wording import as_quotation
from archivist.reading.works import TEST_FLAGS

# A call that runs so much of the suite chose nothing; a suite of fewer tests may be in one file.
_WHOLE, _MANY_TESTS = 0.9, 8
_MUCH_MORE = 1.25
# Another form of the call that runs less than this with the same filter shows that the filter is one.
_PART = 0.5
_MOST_ROWS, _MOST_CHOSEN, _LONGEST_CHOSEN = 10, 6, 100
_MOST_FAILING, _LONGEST_NAME, _MOST_MENDED = 6, 120, 12


class SuiteCall(NamedTuple):
    """A call that ran tests: its form, folder, the tests that it chose, and what its runner says."""

    act: ToolCall
    form: str
    folder: str
    chosen: tuple[str, ...]
    report: RunnerReport


def suite_calls(calls: Iterable[tuple[ToolCall, Sequence[ProjectStep]]]) -> list[SuiteCall]:
    """Return the calls of a run that ran tests and show how that went."""
    found: list[SuiteCall] = []
    for act, steps in calls:
        tests = [step for step in steps if step.purpose in ("test", "one test")]
        if not tests or {"timed_out", "result_missing"} & act.event.extra.keys():
            continue
        report = read_report(act.event.output)
        if report.failing or (report.ran and report.failed) or (not report.failed and has_worked(act)):
            forms = " && ".join(dict.fromkeys(step.command for step in tests))
            chosen = tuple(name for step in tests for name in step.chosen)
            found.append(SuiteCall(act, forms, tests[0].folder, chosen, report))
    return found


def digest_suites(
    suites: Sequence[SuiteCall], calls: Sequence[ToolCall], suspicion: Callable[..., str]
) -> dict[str, Any]:
    """Return the last result of each way in which a run ran tests, and which tests it saw mended."""
    edited = max((act.at for act in calls if act.changes_project), default=-1)
    rows: list[SuiteRow] = []
    for each in suites:
        failing = [
            [as_quotation(test.name)[:_LONGEST_NAME], error_class(test.error), _key_words(test.name)]
            # Told to later runs as they are.
            for test in each.report.failing
            if not suspicion(test.name, "")
        ]
        chosen = [name[:_LONGEST_CHOSEN] for name in each.chosen[:_MOST_CHOSEN]]
        failed, is_stale = max(each.report.failed, len(each.report.failing)), edited > each.act.at
        ran, event = each.report.ran, each.act.event.id
        rows.append([each.form, each.folder, chosen, ran, failed, failing, is_stale, event])
    last = {(row[0], row[1], *row[2]): at for at, row in enumerate(rows)}
    kept = [rows[at] for at in sorted(last.values())[-_MOST_ROWS:]]
    _, mended = follow_tests([(rows, ())])
    return {
        "tests": [[*row[:5], row[5][:_MOST_FAILING], *row[6:]] for row in kept],
        # Only compared with the keys of failures.
        "mended": sorted(mended)[:_MOST_MENDED],
    }


def _key_words(name: str) -> str:
    """Return the words that stand for a test in the key of its failure."""
    if ".py::" in name:
        return re.sub(r"\[.*", "", name.rpartition("::")[2])
    return Signature("", "", message_words(name)).key[2:]


def find_unfiltered(
    suites: Sequence[SuiteCall], earlier: Sequence[Mapping[str, Any]], project: str
) -> Iterator[tuple[ToolCall, Failure, str, Cure | None]]:
    """Yield the calls that name tests and ran the whole suite; no call fails, so nobody learns of it.

    Each comes as a failure with its key and its cure: another form that ran fewer tests for the same names.
    """
    rows = (row for notes in earlier for row in notes.get("tests") or ())
    # Before the run first runs all tests, an earlier one says how many there are, or else its own first.
    totals = {(each.form, each.folder): each.report.ran for each in reversed(suites) if "<" not in each.form}
    totals |= {(row[0], row[1]): row[3] for row in rows if "<" not in row[0] and row[3]}
    for each in suites:
        if "<" not in each.form:
            totals[each.form, each.folder] = each.report.ran or totals[each.form, each.folder]
            continue
        total, ran = totals.get((unfiltered_form(each.form), each.folder), 0), each.report.ran
        if not each.chosen or total < _MANY_TESTS or not _WHOLE * total <= ran <= _MUCH_MORE * total:
            continue
        cures = (
            Cure(Remedy(RemedyKind.COMMAND, other.form, each.form), (other.act,))
            for other in suites
            if {*other.chosen} == {*each.chosen}
            and (other.folder == each.folder and other.form != each.form and " && " not in other.form)
            and 0 < other.report.ran < _PART * ran
        )
        subject = " | ".join(sorted(each.chosen))[:_LONGEST_CHOSEN]
        program = each.act.main.program if each.act.main else ""
        signature = Signature(program, "filter ignored", (each.form,))
        failure = Failure(K.UNFILTERED, f"ran {ran} tests", subject, signature)
        key = f"{project}|{K.UNFILTERED}:{each.form}"
        yield each.act, failure, key, next(cures, None)


def unfiltered_form(form: str) -> str:
    """Return the form of a call without what chooses its tests."""
    words = [word for word in form.split() if not word.endswith(">")]
    while words and (words[-1] == "--" or words[-1] in TEST_FLAGS):
        words.pop()
    return " ".join(word for word in words if word not in TEST_FLAGS)
