"""Follow a project's tests from call to call and from run to run: which failed last, which passed again.

A hook runs this while an agent waits: it imports nothing else and makes no class.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

# A filter of so few letters is in any name.
_SHORTEST_FILTER = 4
# One result of tests: the form of the call, its folder, the names it chose, how many tests it ran and failed;
# each failing test that is named, with its error's class and the words of its key; whether files were changed
# afterwards; and the event of the call.
SuiteRow: TypeAlias = "Sequence[Any]"
# The last results of a run, and the tests that it met failing and saw passing, as words of their keys.
RunTests: TypeAlias = "tuple[Iterable[SuiteRow], Iterable[str]]"


def follow_tests(runs: Iterable[RunTests]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the tests that failed last after runs, the first run first, and those that passed again.

    A test passed where what it failed in ran again without it, where as many tests ran unfiltered, and where
    a filter named it. What was changed after it failed may have mended it. Those that passed again are named
    by the words of their keys.
    """
    failing: dict[str, tuple[str, SuiteRow]] = {}
    mended: set[str] = set()
    for rows, mended_in_run in runs:
        mended.update(mended_in_run)
        for row in rows:
            tests = row[5]
            names = {test[0] for test in tests}
            # Which other tests failed is not known where not all are named.
            is_complete = len(names) >= row[4]
            for name, (words, before) in list(failing.items()):
                if is_complete and name not in names and _has_run(row, name, before):
                    del failing[name]
                    mended.add(words)
            for name, _, words in tests:
                failing[name] = words, row
                mended.discard(words)
    return tuple(name for name, (_, row) in failing.items() if not row[6]), frozenset(mended)


def _has_run(row: SuiteRow, name: str, failed_in: SuiteRow) -> bool:
    """Say whether a call ran a test that failed in another one."""
    form, folder, chosen, ran = row[:4]
    if folder == failed_in[1]:
        is_same = form == failed_in[0] and list(chosen) == list(failed_in[2])
        # Another program may run another suite.
        is_larger = form.split()[0] == failed_in[0].split()[0] and ran >= failed_in[3] > 0
        if is_same or ("<" not in form and is_larger):
            return True
    return any(len(word) >= _SHORTEST_FILTER and word in name for word in chosen)
