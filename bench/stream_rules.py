"""Measure the rules that read a stream's English: what blocks, what goes wrong, what is over.

Each sentence is logged in three cycles, each end after three cycles of a blocker, each history as its team
logged it; what `insights` then says is compared with what a careful reader says. With `--against REVISION`
the rules of that git revision are measured beside ours on the same pairs. `KNOWN` are the sentences of the
tests; `SECOND` was written before the present rules and was known while they were; `HELD_OUT` was written
after them, and only decided which patterns could be removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from archivist.records import Entry
    from archivist.stream.insights import Insight

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

# The files of rules, of these and of earlier revisions.
RULES = ("blockers", "blocker_timeline", "subjects", "obstacles", "insights")
KNOWN = {
    "blocker": (
        "Blocked on review of the parser", "The nightly build is stuck", "#3 blocks us",
        "Stuck on the licence server being down", "#20 is blocked: staging credentials missing",
        "Still cannot deploy #20, no staging credentials yet", "Login tests fail on CI, blocked by #84",
        "Blocked until #91 is decided: one store or two?",
        "Cannot continue with the session store: #91 still undecided",
        "Release is blocked by the docker registry, pulls never finish",
    ),
    "trouble": (
        "docker registry times out when pulling the base image", "The backfill ran out of memory",
        "test_checkout_total timed out on CI", "Timeout in test_checkout_total, third time this week",
        "The export test failed once, a typo in the fixture",
    ),
    "none": (
        "unblocked everything", "Shipped the feature", "wrote code blocks",
        "Nothing is blocked by #84 any more", "No longer blocked by #84", "#84 was not the blocker",
        "Should #84 block us again, we know what to do", "Removed the blocking call",
        "Implemented blocking and muting of users", "Error page shows the request id",
        "Error boundary for the editor", "Verified the error page", "Retry on timeout is configurable",
        "Handle failed payments in the webhook", "Wrote a failing test for the webhook, then the fix",
        "There are no blockers for the release", "Stuck to the plan and finished the importer",
        "Blocked out two hours for reviews", "Tests that used to fail with the old parser pass",
        "Waiting for nothing, tests are green", "Flaky upload test rewritten without sleeps",
        "Raised the client timeout to 120 s", "If the registry fails, the mirror takes over",
    ),
}  # fmt: skip
SECOND = {
    "blocker": (
        "Blocked by the expired TLS certificate on staging",
        "We can't merge until the security audit is done", "The API quota stands in our way again",
        "Waiting for the vendor's reply about the sandbox", "Deploy is stuck on a failing migration",
        "Blocker: no write access to the production bucket", "#55 is holding up the release",
        "Cannot start the load test without the staging database",
        "On hold because legal has not approved the wording",
        "The missing licence key blocks the installer", "Stalled on the schema decision",
        "PR #71 is blocked on #70", "Held up by slow code reviews of the parser",
        "The design freeze is our biggest blocker",
    ),
    "trouble": (
        "Integration tests crashed with a segfault in libvips", "The image cache is down again",
        "search indexer ran out of memory", "Flaky websocket test on macOS",
        "Payment webhook returned errors for an hour", "nightly backup fails with a permission error",
        "The staging database is unreachable", "Timeouts from the geocoding API",
    ),
    "none": (
        "Unblocked the release by pinning the driver", "Nothing blocks the launch",
        "Added a timeout to the HTTP client", "Fixed the flaky websocket test",
        "Wrote the block editor for the CMS", "Failure budget for the quarter agreed",
        "Nobody is waiting for us", "The parser no longer fails on empty input",
        "Ad blocking extension works in Firefox", "If the cache is down, requests go to the origin",
        "Waiting room page got a new picture", "Reviewed the error taxonomy",
        "The queue could block writers, so it has a bound", "Put stickers on the laptops",
        "Refactored the retry logic for failed uploads", "Users who are blocked cannot post",
    ),
}  # fmt: skip
HELD_OUT = {
    "blocker": (
        "Blocked: the payment sandbox rejects our key", "The missing DNS entry is blocking the rollout",
        "Can't release until #312 lands", "Stuck with the Terraform state lock",
        "Release on hold, no signing certificate", "Still waiting for access to the analytics account",
        "Vendor outage blocks everyone", "QA is blocked by missing test data",
        "Unable to continue without the new API key", "Blocked by #77, see the thread",
    ),
    "trouble": (
        "Kafka consumer crashes on startup", "upload endpoint errors under load",
        "Terraform apply timed out again", "Redis ran out of memory during the import",
        "The staging cluster is down", "Failures in the nightly export job",
        "Screenshot test is flaky on Windows", "OOM in the thumbnail worker",
    ),
    "none": (
        "Registry timeouts are gone since the upgrade", "Release is no longer on hold",
        "Nobody is stuck any more", "Tested the retry with injected failures",
        "Wrote the post-mortem of the outage", "Lowered the error rate alert threshold",
        "Unblocking users is now one click", "Blocked spam domains in the mail filter",
        "The waiting list has 40 people", "Crash reporting is opt-in",
        "Showed a friendly message on failed logins", "Broke the monolith into three services",
        "Failed over to the replica as planned", "Made the build fail on warnings",
        "Closed the blocker after the review", "Hung the new roadmap on the wall",
    ),
}  # fmt: skip
# What is logged in three cycles, what is logged then, and how the blocker stands after that.
ENDS = (
    ("Blocked by #84", "Resolved #84 by enlarging the pool", "ended"),
    ("Blocked by #84", "#84 is fixed and closed", "ended"),
    ("Blocked by #84", "Everybody is unblocked", "ended"),
    ("Blocked by #84", "PR #9 closes #84", "ended"),
    ("Blocked by #84", "Worked on #84, one test passes", "perhaps"),
    ("Blocked by #84", "No blockers today", "perhaps"),
    ("Blocked by #84", "#84 is not fixed yet", "open"),
    ("Blocked by #84", "#84 should be closed tomorrow", "open"),
    ("Blocked by #84", "Once #84 is merged we go on", "open"),
    ("Blocked by the staging certificate", "The staging certificate was renewed", "ended"),
    ("Blocked by the staging certificate", "Staging certificate is fixed", "ended"),
    ("Blocked by the staging certificate", "No longer blocked by the staging certificate", "ended"),
    ("Blocked by the staging certificate", "Asked ops about the staging certificate", "open"),
    ("Blocked by the staging certificate", "Staging certificate will be renewed next week", "open"),
    ("Blocked by the staging certificate", "The staging certificate is still not renewed", "open"),
)


class Tally(NamedTuple):
    """How often a label was given, how often it should have been, and how often both."""

    given: int
    wanted: int
    right: int

    def describe(self) -> str:
        """Return precision and recall."""
        precision = self.right / self.given if self.given else 1.0
        return f"{precision:.2f} / {self.right / self.wanted:.2f}"


class Measured(TypedDict):
    """What one set of rules made of the pairs."""

    tallies: dict[str, list[int]]
    misses: list[str]
    lines: int


def main() -> int:
    """Print precision and recall of the rules, and their size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="measure this revision's rules beside ours")
    parser.add_argument("--misses", action="store_true", help="name the sentences that are read wrongly")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    ours = measure()
    if options.json:
        print(json.dumps(ours))
        return 0
    columns = {"ours": ours}
    if options.against:
        columns[options.against] = measure_revision(options.against)
    print(f"{'precision / recall':<28}" + "".join(f"{name:>16}" for name in columns))
    for row in ours["tallies"]:
        values = (Tally(*column["tallies"][row]).describe() for column in columns.values())
        print(f"{row:<28}" + "".join(f"{value:>16}" for value in values))
    print(f"{'lines of rules':<28}" + "".join(f"{column['lines']:>16}" for column in columns.values()))
    for name, column in columns.items():
        for miss in column["misses"] if options.misses else ():
            print(f"{name}: {miss}")
    return 0


def measure() -> Measured:
    """Return the tallies of the rules that are installed, what they got wrong, and their size."""
    from tests.stream.histories import HISTORIES

    import archivist.stream
    from archivist.stream.insights import insights

    misses: list[str] = []
    tallies: dict[str, list[int]] = {}
    for name, pairs in (("known", KNOWN), ("second set", SECOND), ("held out", HELD_OUT)):
        read = {text: _label(insights(_log([text] * 3))) for texts in pairs.values() for text in texts}
        misses += [
            f"{read[text]} instead of {label}: {text}"
            for label, texts in pairs.items()
            for text in texts
            if read[text] != label
        ]
        for label in ("blocker", "trouble"):
            labelled = {text for text, found in read.items() if found == label}
            tallies[f"{label}s, {name}"] = [
                len(labelled),
                len(pairs[label]),
                len(labelled.intersection(pairs[label])),
            ]
    states = [(_state(insights(_log([blocker] * 3 + [end]))), wanted, end) for blocker, end, wanted in ENDS]
    misses += [f"{found} instead of {wanted}: {end}" for found, wanted, end in states if found != wanted]
    tallies["ends"] = [len(states), len(states), sum(found == wanted for found, wanted, _ in states)]
    given = wanted = right = 0
    for history in HISTORIES.values():
        found = [
            f"{each.action}. {each.content}"
            for each in insights(history.entries())
            if {"blocker", "trouble", "waiting"} & set(each.tags)
        ]
        expected = [*history.open, *history.ended, *history.troubles, *history.waits]
        given, wanted = given + len(found), wanted + len(expected)
        right += sum(any(all(word in text for word in words) for text in found) for words in expected)
    tallies["insights of six histories"] = [given, wanted, right]
    folder = Path(archivist.stream.__file__).parent
    rules = [path for path in folder.glob("*.py") if path.stem in RULES]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in rules)
    return {"tallies": tallies, "misses": misses, "lines": lines}


def measure_revision(revision: str) -> Measured:
    """Return what the rules of another git revision do with the same pairs."""
    with tempfile.TemporaryDirectory() as folder:
        archived = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archived, check=True)
        printed = subprocess.run(
            [sys.executable, __file__, "--json"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{folder}/src"},
        ).stdout
    measured: Measured = json.loads(printed)
    return measured


def _log(texts: list[str]) -> list[Entry]:
    from tests.samples import WHEN

    from archivist.records import Entry
    from archivist.stream.entries import find_references

    return [
        Entry(
            id=f"e{cycle}",
            seq=cycle,
            cycle=cycle,
            time=WHEN,
            role="dev",
            action=text,
            importance=6,
            issues=find_references(text).issues,
        )
        for cycle, text in enumerate(texts, 1)
    ]


def _label(found: list[Insight]) -> str:
    return next((tag for each in found for tag in ("blocker", "trouble") if tag in each.tags), "none")


def _state(found: list[Insight]) -> str:
    action = next((each.action for each in found if "blocker" in each.tags), "")
    return "ended" if ", ended" in action else "perhaps" if "perhaps over" in action else "open"


if __name__ == "__main__":
    sys.exit(main())
