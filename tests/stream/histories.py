"""Nine histories as teams log them, and what a careful reader would say of each."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.records import Entry, EntryType
from archivist.stream.entries import find_references
from tests.samples import WHEN


@dataclass(frozen=True, slots=True)
class History:
    """What was logged, one entry a line: cycle, role, what was done; a `!` before it marks a decision.

    Of what a reader would say, each part is some words that one insight must hold together: `open` is in the
    way still, `ended` was, `troubles` recur, `waits` are between roles. `core` is what belongs into the
    status. `never` are words that no insight's heading may hold.
    """

    lines: str
    open: tuple[tuple[str, ...], ...] = ()
    ended: tuple[tuple[str, ...], ...] = ()
    troubles: tuple[tuple[str, ...], ...] = ()
    waits: tuple[tuple[str, ...], ...] = ()
    core: tuple[tuple[str, ...], ...] = ()
    never: tuple[str, ...] = ()

    def entries(self) -> list[Entry]:
        """Return the lines as entries of the stream."""
        return [_entry(number, line) for number, line in enumerate(self.lines.strip().splitlines(), 1)]


def _entry(number: int, line: str) -> Entry:
    cycle, role, told = line.strip().split(" ", 2)
    is_decision = told.startswith("! ")
    action, _, content = told.removeprefix("! ").partition(" / ")
    return Entry(
        id=f"e{number}",
        seq=number,
        cycle=int(cycle),
        time=WHEN,
        role=role,
        action=action,
        content=content,
        importance=6,
        type=EntryType.DECISION if is_decision else EntryType.ACTION,
        issues=find_references(action, content).issues,
    )


# #20 is what was blocked, credentials were what was missing; it ended. One test goes on timing out.
STAGING = History(
    lines="""
    1 dev Started on #20, the checkout rewrite
    1 qa test_checkout_total timed out on CI / Second run was green.
    1 pm ! Ship the checkout rewrite behind a flag
    2 dev #20 is blocked: staging credentials missing
    2 qa Wrote the regression plan for the cart
    2 ops Asked the vendor for new staging credentials
    3 qa test_checkout_total timing out again, reran it
    3 dev Still cannot deploy #20, no staging credentials yet
    3 design Handed over the empty-cart illustrations
    4 dev Worked on #23 meanwhile, the address form
    4 dev #20 remains blocked by the missing staging credentials
    4 pm Moved the demo to Thursday
    5 ops Staging credentials arrived and are in the vault
    5 dev #20 is unblocked, deployed to staging
    5 qa Timeout in test_checkout_total, third time this week
    6 dev Merged PR #41, closes #20
    6 qa Smoke-tested the checkout on staging, fine
    6 design Reviewed the address form of #23
    7 qa test_checkout_total times out on every other run now
    7 dev Address form #23 is in review
    8 pm ! Release on Monday
    8 dev Tidied the feature flags after the merge
    """,
    ended=(("#20", "staging credentials"),),
    troubles=(("test_checkout_total", "4 cycles"),),
    never=("#20 stood in the way", "vendor"),
)

# The registry is the trouble, mended once, back again, and at the end it holds everybody up.
REGISTRY = History(
    lines="""
    10 platform Moved the nightly build to the new runners
    10 dev docker registry times out when pulling the base image
    10 dev Added error handling to the import wizard
    11 platform Looked at the registry's metrics, nothing odd
    11 qa The docker registry timed out twice during the nightly build
    11 security Rotated the signing keys
    12 dev ! Keep the base images small: alpine instead of debian
    12 qa No blockers today, finished the login suite
    12 platform Set up a mirror, the docker registry is stable again
    13 dev Wrote docs for the error pages
    13 security Threat model of the upload service, failure modes included
    14 dev Pulled images all day without trouble
    15 qa docker registry timeouts are back, even through the mirror
    15 platform Raised the client timeout to 120 s
    16 dev Release is blocked by the docker registry, pulls never finish
    16 security Reviewed the crash reporter's privacy notice
    17 qa Blocked by the docker registry again, no image to test
    17 platform Opened a ticket with the provider
    18 dev Still blocked on the docker registry, worked on the changelog
    18 pm Told customers that the release is late
    """,
    open=(("docker registry", "3 cycles"),),
    core=(("docker registry",),),
    never=("error", "timeout to 120", "crash", "base image"),
)

# Everybody says that nothing is in the way: a word of blocking is not yet a blocker.
DENIED = History(
    lines="""
    30 dev Nothing is blocked by #84 any more
    30 qa Checked the parser against the old corpus
    30 ops Upgraded the runners to the new image
    31 dev No longer blocked by #84, merged the parser
    31 qa We are not blocked, the corpus is small
    31 ops Backups ran without errors
    32 dev #84 was not the blocker after all, a stale cache was
    32 qa Removed the blocking call from the event loop
    32 pm ! No freeze before the holidays
    33 dev Documented the code blocks of the template language
    33 qa There are no blockers for the release
    33 ops If the registry fails, the mirror takes over
    34 dev Stuck to the plan and finished the importer
    34 qa Never had a single failed run with the new runner
    34 pm Asked whether anything is blocked; nobody is
    35 dev Blocked out two hours for reviews
    35 qa Tests that used to fail with the old parser pass
    35 ops No timeouts since the upgrade
    36 dev Should #84 block us again, we know what to do
    36 pm Thanked everybody
    """,
    never=("#84", "blocked", "stood in the way", "parser", "runner", "trouble"),
)

# #84 was in the way for three cycles and was mended; #91 is in the way and stays there.
MENDED = History(
    lines="""
    1 qa Login tests fail on CI, blocked by #84
    1 dev Began with the session store
    1 ops Runner disks are full, see #84
    2 qa Still blocked by #84
    2 dev Session store keeps its keys in memory
    2 pm ! Two weeks for the session store
    3 qa #84 blocks us a third time
    3 dev Blocked until #91 is decided: one store or two?
    3 ops Ordered larger disks
    4 ops #84 is fixed and closed, everybody unblocked
    4 qa All login tests pass
    4 dev Stuck on #91, nobody has decided
    5 dev Wrote both variants while #91 is open
    5 qa Found two typos in the login page
    6 dev Cannot continue with the session store: #91 still undecided
    6 pm Put #91 on the agenda
    7 dev Refactored the key names
    7 qa Explored the password reset
    8 dev Waiting for the decision on #91 to go on
    8 ops Dashboards for the new disks
    """,
    open=(("#91", "4 cycles"),),
    ended=(("#84", "3 cycles"),),
    core=(("#91",),),
    never=("decision on", "disks"),
)

# Two roles wait for each other, which is not a thing called "blocked waiting".
CIRCLE = History(
    lines="""
    50 qa Blocked: waiting for dev
    50 dev Sketched the retry logic
    50 design New icons for the toolbar
    51 dev Waiting on qa for steps to reproduce the crash
    51 qa Ran the accessibility checks
    51 design Talked to three customers
    52 qa Blocked by dev, still waiting
    52 pm ! Toolbar first, dark theme later
    52 dev Moved the settings into one file
    53 dev Blocked: waiting for qa
    53 qa Updated the test data
    53 design Contrast of the icons is fine
    54 qa Waiting for dev to hand over the build
    54 dev Measured start-up: 300 ms
    54 pm Wrote the newsletter
    55 dev Reviewed the newsletter's code samples
    55 qa Cleaned up old test accounts
    55 design Exported the icons
    56 pm Planned the next sprint
    56 dev Renamed the settings
    """,
    waits=(("qa", "dev", "each other"),),
    never=("blocked waiting", "“blocked", "waiting for", "crash"),
)

# A good stretch: much is done, little recurs, and troubles are named once each.
QUIET = History(
    lines="""
    70 dev Search index rebuilt in half the time
    70 qa The export test failed once, a typo in the fixture
    70 ops Certificate renewed for a year
    71 dev Fixed the typo, export test passes
    71 research Read two papers on ranking
    71 growth Landing page text in three languages
    72 dev ! SQLite for the queue, no extra service
    72 qa Flaky upload test rewritten without sleeps
    72 ops Alerts for queue length
    73 dev Queue worker survives a restart
    73 research ! Measure recall at ten, not at one
    73 growth Blocked by legal on the cookie text, they answered within the hour
    74 dev Wrote a failing test first, then the pager
    74 qa Error messages of the pager are clear
    74 ops Restore drill took nine minutes
    75 dev Pager shipped in PR #212
    75 research Evaluation set has 400 questions
    75 growth Translated the pager's help
    76 dev Deleted 900 lines of dead code
    76 qa Waiting for nothing, tests are green
    76 ops Cleaned the disks of the runners
    """,
    never=("stood in the way", "blocked", "test", "legal", "trouble", "wait"),
)


# A later decision replaces an earlier one; what was learnt is said in so many words.
REVERSED = History(
    lines="""
    100 dev ! Use Redis for the job queue
    100 dev Started on #61, the job queue
    101 dev Workers lose jobs when Redis restarts / Lesson: a queue needs persistence before real jobs.
    101 qa Load test of the queue, 400 jobs a second
    102 dev ! Use PostgreSQL instead of Redis for the job queue
    102 dev Moved #61 to PostgreSQL, SKIP LOCKED works / Turned out that the database was mostly idle.
    103 qa Repeated the load test, 350 jobs a second, none lost
    103 pm Told the customers about the new import
    104 dev Merged PR #70, closes #61
    104 ops Removed Redis from the compose file
    """,
    never=("#61 is open",),
)

# One role hands over and hears nothing; another issue was begun and left.
LEFT = History(
    lines="""
    200 design Drew the import wizard for #30
    200 dev Read the drawings of #30, waiting for design to name the error states
    201 dev Began with #31, the undo button
    201 qa Wrote test cases for #31
    202 dev Waiting for design on #30, no error states yet
    202 dev #31 works for text, not for tables
    203 growth Newsletter with the import wizard announced
    203 dev Still waiting for design, #30 cannot be finished
    204 design Worked on the landing page
    205 dev Cleaned the settings page
    206 dev Measured the search
    """,
    never=("stood in the way", "Newsletter"),
)

# A dispatch rotation as the document logs it: actions with their content, references in both.
ROTATION = History(
    lines="""
    180 research MemGPT literature review / Created docs/research/memgpt-analysis.md for #95.
    181 engineering Headless mode spec drafted (#84) / Blocked by missing CI credentials for the e2e job.
    182 ops Merged PR #120 and PR #121 / Pattern: double merges need the review before the rotation.
    183 qa Regression pass on headless mode (#84) / e2e job cannot run: CI credentials are still missing.
    184 ops Asked the organisation for CI credentials (#84)
    185 engineering Worked on the recall stream (#95) / Headless mode still waits for CI credentials.
    186 growth Demo metrics refreshed (#39)
    187 ops CI credentials arrived, e2e job is green / Closes the blocker of #84.
    188 research Generative agents compared (#95) / Reflection every ten cycles is enough for us.
    189 frontier Memory architecture proposed (#95)
    """,
    ended=(("CI credentials",),),
    never=("#39",),
)

HISTORIES = {
    "staging": STAGING,
    "registry": REGISTRY,
    "denied": DENIED,
    "mended": MENDED,
    "circle": CIRCLE,
    "quiet": QUIET,
    "reversed": REVERSED,
    "left": LEFT,
    "rotation": ROTATION,
}
