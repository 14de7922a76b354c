"""Say which commands test, lint, build and start a project, and what they find.

A hook runs this while an agent waits: it reads the notes of a few runs and imports nothing else.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from archivist.records.words import NOTES, ORCHESTRATOR_RUN, SUBAGENT_RUN, Provenance, Status

if TYPE_CHECKING:
    from archivist.reading.suite_state import RunTests
    from archivist.store.protocol import Reader

# The tables of failures that one run and its subagents noted.
NotedRun: TypeAlias = "Sequence[Mapping[str, Any]]"
# By the age of the run, the latest first.
Tries: TypeAlias = "dict[int, tuple[int, int, int, int]]"
# The latest runs that count. A subagent's run is its parent's, so more records are read to find them.
LATEST_RUNS = 20
_READ_RECORDS = 120
# What is told could run in two runs at least, nearly always, and in one of the latest that tried it.
_LEAST_RUNS = 2
# A purpose that fewer runs had than a fifth is seldom needed: 24 % of the commands told were run by the next
# session of one project, with this bound 34 %. However a purpose is spelled, its runs count.
_LEAST_USE = 0.2
# A default is worth a word where so many of the runs with that purpose made a call for it that could not run.
_MISSED_SHARE = 0.1
_LEAST_SHARE = 0.75
_LATEST_TRIES = 3
_OFTEN_PASSED = 0.75
# A call that runs more of so many tests runs them all.
_PART = 0.75
_MANY_TESTS = 8
# What so many runs, and two thirds of those that commit, run before a commit is how the project is checked.
_COMMIT = ("commit", "git commit", "")
_LEAST_GATED = 3
_GATE_SHARE = 2 / 3
_OF_ONE_PACKAGE = ("<package>", "--filter", "--workspace", " -p ", " -w ")
_LONGEST_LINE = 200
_SHORT_NAME = 12
_OPENING = "Commands here: "
_FAILING = "Failed here lately: "
_FAILED = '"failures":{"'
_APPROVALS = '"approvals":"'
# What the latest of these say of approvals holds for the next run.
_LATEST_MODES = 5
# What such calls may do is a matter of the client's sandbox: another client's runs say nothing of it.
_OF_CLIENT = frozenset(("permission", "network"))
_NOTED_PARTS = ('"attempts":{"', '"works":[[', '"tests":[[', _FAILED)
# Of the tests that the latest runs left failing so many are named.
_TESTED_RUNS, _MOST_TESTS, _LONGEST_TEST = 10, 3, 70
_LEFT_FAILING = "Failing when the last session ended: {}: not of your change"
# What is told to fail did so in two of the latest runs that failed in anything: where little fails, these
# reach further back, and where much does, what stopped failing is soon told no more.
_FAILING_RUNS = 10
_LEAST_FAILING = 2
_MOST_FAILING = 4
_LONGEST_FAILING = 300
# A line costs every run its tokens: what fewer of the runs meet does not pay.
_FAILING_SHARE = 0.1
# Every agent meets refused edits, and the tool says itself what to do. They are told with their cause in this
# project, or where so many runs meet them that the plain line pays.
_EDITS = "edit_not_applied"
_PLAIN_SHARE = 1 / 3
_LEAST_NAMED = 3
_ABOUT_WORDS = frozenset(("usage", "missing_file", "missing_module", "missing_command", "import_error"))
_EDIT_ADVICE = {
    "not read yet": "read the file first",
    "changed since read": "read the file again right before editing",
    "old text not unique": "give more lines around it",
}
_EXACT_LINES = "read the lines again right before editing"
# What an edit got wrong, by the notes of runs, and what avoids it. Reading the lines again does not.
_SEVERAL = "several files"
_SLIPS = {
    "tabs": ("wrong number of tabs", "`sed -n 10,40l <file>` shows tabs as `\\t`"),
    "spaces": ("wrong indentation", "copy the spaces that begin each line"),
    _SEVERAL: (
        "several files in one patch",
        "a hunk that misses drops all of it: patch one file a call",
    ),
}
# So many runs in which a call went well show that what it failed of is over.
_OVERCOME = 2
_OUTAGE = "network:"
_TEST, _FLAKY = "test_failure:", "flaky"
# A test that fails now and then passes some times in a row by chance: less likely than this, and in so many
# runs, it is mended. At .2 and two runs, three green runs and one without a test silenced such a lesson.
_BY_CHANCE, _STEADY = 0.05, 5
# Families that only name failures once more.
_NOT_TOLD = ("remedy:",)
# A task that is called what it does, and a tool's own verb, are found without being told.
_PLAIN_TASKS = frozenset((
    "test", "tests", "lint", "build", "compile", "typecheck", "type-check", "check-types", "types", "tsc",
    "format", "fmt", "check", "dev", "start", "serve", "pytest", "jest", "vitest", "eslint", "clippy", "vet",
))  # fmt: skip
_RUNNERS = frozenset((
    "npm", "pnpm", "yarn", "bun", "make", "just", "task", "run", "run-script", "cargo", "go", "mix", "gradle",
    "./gradlew", "mvn", "./mvnw", "dotnet", "npx", "uv", "poetry", "python", "python3", "-m", "exec", "./...",
    "--workspace", "--all",
))  # fmt: skip
# Failures of the code that a run changes: the check that finds them did its work.
_OF_CODE = frozenset(("check", "test_failure", "syntax", "build", "type_error"))
# Without an error in common, so many red runs say that a check often finds something.
_LEAST_RED = 3
_LONGEST_SUBJECT = 40
_LONGEST_CODE = 6
_WORD_MARKS = str.maketrans("", "", " -_")
_PATH_MARKS = str.maketrans("", "", "/.-_")
# In the order in which a line tells them.
_PURPOSES = ("test", "one test", "lint", "fix", "types", "format", "build", "check", "run", "also")
# Tasks of other names are told from three runs on, so many at most.
_LEAST_ALSO = 3
_MOST_ALSO = 2


class WorkingCommand(NamedTuple):
    """A command for a purpose, its folder, and in how many of the runs that tried it it passed.

    `run` is the latest in which it passed. `found_in` counts the latest runs in which it found faults,
    `errors` are those it found most, and `events` show them. `is_plain`: a run finds it without being told.
    `gated` counts the runs, of those that committed, in which it passed last before a commit, `failed_in`
    those in which it found anything, `purpose_runs` those that tried any command for its purpose. `red_in`
    are the runs in which not all of its calls passed.
    """

    purpose: str
    command: str
    folder: str
    passed: int
    tried: int
    found_in: int = 0
    errors: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    run: str = ""
    is_plain: bool = False
    gated: int = 0
    commits: int = 0
    failed_in: int = 0
    purpose_runs: int = 0
    red_in: frozenset[int] = frozenset()

    def view(self) -> dict[str, object]:
        """Return it as plain values."""
        shown = {**self._asdict(), "errors": "; ".join(self.errors)}
        for name in ("events", "run", "is_plain", "gated", "commits", "failed_in", "purpose_runs", "red_in"):
            del shown[name]
        return shown

    def describe(self, *, is_counted: bool = False) -> str:
        """Return what a line says of it: how often it passed, what it found."""
        place = f" in `{self.folder}/`" if self.folder else ""
        # A run counts if the command passed in it once, as it mostly does in the end.
        is_rare = self.passed < _OFTEN_PASSED * self.tried
        only = "only " if is_rare and not is_counted else ""
        passed = f"{only}{self.passed}" if self.passed else "none"
        # Runs in which nothing shows whether it could have passed are not counted.
        of_all = "" if self.passed == self.tried else f" of {self.tried}"
        is_told = is_counted or (is_rare and not self.errors)
        notes = [f"passed in {passed}{of_all} runs"] if is_told else []
        notes += [f"before the commit in {self.gated} of {self.commits} runs"] if self.gated else []
        errors = ", ".join(error if _is_code(error) else f"“{error}”" for error in self.errors)
        if errors:
            # "Failed in 9 of 10 runs" was read as a command that does not work.
            some, most = f"in {self.found_in}", f"in {self.failed_in} of {self.tried} runs"
            is_same = self.found_in == self.failed_in
            notes.append(f"found {errors} {most}" if is_same else f"found errors {most}, {errors} {some}")
        return f"{self.purpose} `{self.command}`{place}" + (f" ({'; '.join(notes)})" if notes else "")


class FailingCall(NamedTuple):
    """A call that runs keep failing in for one cause: in how many of the latest, and where it shows.

    `provider` is the client whose runs alone lacked the right or the network for it.
    """

    call: str
    error: str
    met: int
    runs: int
    advice: str = ""
    events: tuple[str, ...] = ()
    provider: str = ""

    def view(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"call": self.call, "error": self.error, "met": self.met, "runs": self.runs}

    def describe(self, *, is_first: bool) -> str:
        """Return what a line says of it; the first says what is counted."""
        count = f"in {self.met} of {self.runs} runs" if is_first else f"in {self.met}"
        error = f" ({self.error})" if self.error else ""
        return f"`{self.call}` {count}{error}" + (f": {self.advice}" if self.advice else "")


class FailingRun(NamedTuple):
    """The failures that a run noted, its client, and as tags the calls that went well in each run since."""

    failures: Sequence[Mapping[str, Any]]
    provider: str = ""
    well_since: Sequence[frozenset[str]] = ()


class RunOutcome(NamedTuple):
    """What a run failed in, by the failures' keys, and as tags the calls that went well.

    `tried` are the tags of all calls.
    """

    failures: frozenset[str]
    went_well: frozenset[str]
    tried: frozenset[str] = frozenset()


class Habits(NamedTuple):
    """What a project's latest runs did with success, what they often failed in, and how each went."""

    works: tuple[WorkingCommand, ...] = ()
    fails: tuple[FailingCall, ...] = ()
    outcomes: tuple[RunOutcome, ...] = ()
    failing_tests: tuple[str, ...] = ()
    mended_tests: frozenset[str] = frozenset()

    def for_client(self, provider: str) -> "Habits":
        """Leave out what only the runs of other clients lacked a right or the network for."""
        return self._replace(
            fails=tuple(
                each for each in self.fails if not (provider and each.provider) or each.provider == provider
            )
        )

    def for_subagent(self) -> "Habits":
        """Leave out what failed: a subagent is told only what it is likely to need."""
        return self._replace(fails=(), failing_tests=())

    def explain_overcome(self, failure: str, tags: Collection[str]) -> str:
        """Return how runs made the call of these tags with success since one last met a failure; or nothing.

        That no run reaches a server is refuted by the first that does. A test is over that passed, or did not
        fail in runs of the tests, whatever else they found.
        """
        since = takewhile(lambda run: failure not in run.failures, self.outcomes)
        if failure.partition("|")[2].startswith(_TEST):
            words = f"{failure.rpartition(':')[2]}-"
            if _FLAKY not in tags and any(words.startswith(f"{each}-") for each in self.mended_tests):
                return "its test passed since it was last met"
            met = sum(failure in run.failures for run in self.outcomes)
            tried = sum(not run.tried.isdisjoint(tags) for run in self.outcomes)
            passed = sum(not run.tried.isdisjoint(tags) for run in since)
            is_flaky = _FLAKY in tags
            share = min(1.0, met / tried) if tried and is_flaky else 1.0
            is_over = passed >= (_STEADY if is_flaky else _OVERCOME) and (1 - share) ** passed < _BY_CHANCE
            return f"{passed} runs of the tests since did not meet it" if is_over else ""
        least = 1 if failure.partition("|")[2].startswith(_OUTAGE) else _OVERCOME
        well = sum(not run.went_well.isdisjoint(tags) for run in since)
        runs = "1 run" if well == 1 else f"{well} runs"
        return f"its call went well in {runs} since it was last met" if well >= least else ""

    def views(self) -> dict[str, list[dict[str, object]]]:
        """Return each part as plain values."""
        return {
            "works": [each.view() for each in self.works],
            "fails": [each.view() for each in self.fails],
            "failing_tests": [{"test": name} for name in self.failing_tests],
        }

    def lines(self) -> list[str]:
        """Return what a brief says of it, at most a line each."""
        lines = (
            format_line(self.works),
            format_failing(self.fails),
            format_tests(self.failing_tests),
        )
        return [line for line in lines if line]


NO_HABITS = Habits()
# The kind of key of a lesson that only says which command is told no more.
SILENCED = "silenced:"


def read_habits(reader: "Reader", project: str) -> "Habits":
    """Return what works in a project and what often fails in it, as far as a person wants it told."""
    from archivist.projects import names_of

    names = names_of(reader, project)
    return leave_silenced(reader, names, find_habits(reader, names))


def cached_habits(reader: "Reader", project: str) -> "Habits":
    """Return the habits of a project, read once for each state of the bank."""
    kinds = frozenset(("episode", "lesson"))
    return reader.get_cached(("habits", project), lambda: read_habits(reader, project), kinds=kinds)


def leave_silenced(reader: "Reader", names: Sequence[str], habits: "Habits") -> "Habits":
    """Leave out the calls that a person silenced, and failures that a forgotten lesson cites."""
    if not (habits.works or habits.fails):
        return habits
    from archivist.store.filters import at_least, equals, one_of

    forgotten = reader.select_fields(
        "lesson",
        ("signature", "evidence"),
        one_of("repo", names),
        equals("status", Status.ARCHIVED),
        at_least("frequency", 1),
    )
    families = {str(signature).partition("|")[2] for signature, _ in forgotten}
    cited = {event for _, evidence in forgotten for event in json.loads(evidence).get("events") or ()}
    return habits._replace(
        works=tuple(each for each in habits.works if f"{SILENCED}{each.command}" not in families),
        fails=tuple(
            each
            for each in habits.fails
            if f"{SILENCED}{each.call}" not in families and cited.isdisjoint(each.events)
        ),
    )


def find_habits(reader: "Reader", names: Sequence[str]) -> Habits:
    """Return what works in a project of these names, and what often fails in it."""
    if not any(names):
        return NO_HABITS
    from archivist.store.filters import equals, one_of

    rows = reader.select_fields(
        "episode",
        ("id", "parent", "provider", "kind", "extra", "status"),
        one_of("project", names),
        equals("action", None),
        equals("provenance", Provenance.MINED),
        order=("-finished",),
        limit=_READ_RECORDS,
    )
    runs: dict[str, list[Any]] = {}
    failures: dict[str, list[Mapping[str, Any]]] = {}
    attempts: dict[str, list[Mapping[str, Any]]] = {}
    providers: dict[str, str] = {}
    tests: list[RunTests] = []
    # A review of a session is none of the user's own, and its log does not name the session.
    # A session that only began has no log: it tried nothing.
    rows = [row for row in rows if row[5] != "running" or f'"{NOTES}"' in row[4]]
    sessions = [row for row in rows if row[1] or row[3] != SUBAGENT_RUN]
    for name, parent, provider, _, extra, _ in sessions or rows:
        root = str(parent or name)
        providers.setdefault(root, str(provider))
        if root not in runs and len(runs) == LATEST_RUNS:
            if root not in failures and sum(map(any, failures.values())) >= _FAILING_RUNS:
                break
            if _FAILED in extra:
                notes = json.loads(extra).get(NOTES) or {}
                failures.setdefault(root, []).append(notes.get("failures") or {})
            continue
        noted = runs.setdefault(root, [])
        # Most runs of some projects note nothing; finding that out by text is cheaper than by parsing.
        is_noting = any(part in extra for part in _NOTED_PARTS)
        notes = json.loads(extra).get(NOTES) if is_noting else None
        if isinstance(notes, Mapping):
            noted += notes.get("works") or ()
            failures.setdefault(root, []).append(notes.get("failures") or {})
            attempts.setdefault(root, []).append(notes.get("attempts") or {})
            if len(runs) <= _TESTED_RUNS:
                tests.append((notes.get("tests") or (), notes.get("mended") or ()))
    outcomes = tuple(_outcome_of(failures[root], attempts[root]) for root in attempts)
    noted_failures = [failures.get(root, []) for root in runs]
    # What neither passed nor found anything in common is not understood.
    works = tuple(
        each
        for each in count_found(select_commands(list(runs.values()), list(runs)), noted_failures)
        if (each.passed >= _LEAST_RUNS and each.purpose_runs >= _LEAST_USE * len(runs)) or each.errors
    )
    went_well = dict(zip(attempts, (outcome.went_well for outcome in outcomes), strict=True))
    fails = _select_latest(failures, providers, went_well)
    if not tests:
        return Habits(works, fails, outcomes)
    from archivist.reading.suite_state import follow_tests

    return Habits(works, fails, outcomes, *follow_tests(reversed(tests)))


def _select_latest(
    failures: Mapping[str, Sequence[Mapping[str, Any]]],
    providers: Mapping[str, str],
    went_well: Mapping[str, frozenset[str]],
) -> tuple[FailingCall, ...]:
    """Choose what the latest failing runs failed in; all is given by run, the latest first."""
    latest = list(providers)
    failing = {
        at: FailingRun(
            failures[root], providers[root], [went_well[later] for later in latest[:at] if later in went_well]
        )
        for at, root in enumerate(latest)
        if any(failures.get(root, ()))
    }
    counted = list(failing)[:_FAILING_RUNS]
    return select_failing([failing[at] for at in counted], counted[-1] + 1 if counted else 0)


def find_approvals(reader: "Reader", names: Sequence[str], provider: str) -> str:
    """Return whether most of the latest sessions could ask for approvals: on, off, or empty for a draw.

    Sessions that another one started, such as reviews, can ask nobody and say nothing about the user's own.
    Where no log says, that asking worked says it. Of an unknown client nobody knows what it allows.
    """
    from archivist.store.filters import equals, one_of

    rows = reader.select_fields(
        "episode",
        ("extra",),
        one_of("project", names),
        equals("action", None),
        equals("provenance", Provenance.MINED),
        equals("parent", ""),
        equals("kind", ORCHESTRATOR_RUN),
        *((equals("provider", provider),) if provider else ()),
        order=("-finished",),
        limit=_READ_RECORDS,
    )
    modes = [extra for (extra,) in rows if _APPROVALS in extra][:_LATEST_MODES]
    off = sum(f'{_APPROVALS}off"' in extra for extra in modes)
    if off and not provider:
        return ""
    return "on" if 2 * off < len(modes) or not modes else "off" if 2 * off > len(modes) else ""


def _outcome_of(failures: Iterable[Mapping[str, Any]], attempts: Iterable[Mapping[str, Any]]) -> RunOutcome:
    went_well: set[str] = set()
    failing: set[str] = set()
    for call, counts in (item for table in attempts for item in table.items()):
        is_good = counts.get("ok") and not counts.get("failed") and not counts.get("timeout")
        (went_well if is_good else failing).add(_tag_of(call))
    of_all = frozenset(went_well | failing)
    return RunOutcome(frozenset().union(*failures), frozenset(went_well - failing), of_all)


def _tag_of(call: str) -> str:
    return call.lower().replace(" ", "-")


def count_found(
    commands: Sequence[WorkingCommand], noted: "Sequence[NotedRun]"
) -> tuple[WorkingCommand, ...]:
    """Add to each command in how many runs it found faults, and which."""
    told: list[WorkingCommand] = []
    names: set[str] = set()
    for each in commands:
        entries = [
            (run, entry)
            for run, _, entry in _entries_of(noted)
            # What a run found whose calls all passed, another form of the command did.
            if run in each.red_in
            and entry.get("kind") in _OF_CODE
            and entry["name"] not in names
            and f"{each.command} ".startswith(f"{entry['name']} ")
        ]
        names |= {entry["name"] for _, entry in entries}
        # Codes, or a class in plain words; a message of one run is none.
        shared = [error for error in _shared_errors(entries) if error.translate(_WORD_MARKS).isalnum()]
        errors = [error for error in shared if " " not in error] or shared[:1]
        runs = {
            run for run, entry in entries if not errors or not {*errors}.isdisjoint(entry.get("errors") or ())
        }
        failed_in = len({run for run, _ in entries})
        if not errors and len(runs) < _LEAST_RED:
            runs.clear()
        events = _events_of(entry for _, entry in entries)
        counted = each._replace(found_in=len(runs), failed_in=failed_in)
        told.append(counted._replace(errors=tuple(errors), events=events))
    return tuple(told)


def select_failing(runs: Sequence[FailingRun], among: int) -> tuple[FailingCall, ...]:
    """Choose the calls that two of the latest failing runs failed in for the same cause, most first.

    `among` is how many runs there were in all since the first of them.
    """
    met: dict[tuple[str, str], dict[int, list[Mapping[str, Any]]]] = {}
    for run, _, entry in _entries_of([run.failures for run in runs]):
        # What a test or a compiler finds is about the code at hand.
        if entry.get("kind") in _OF_CODE:
            continue
        # A class in words of ours: anything else is what a program printed.
        if error := entry.get("class"):
            met.setdefault((entry["name"], error), {}).setdefault(run, []).append(entry)
    found: dict[str, FailingCall] = {}
    for (name, error), of_runs in sorted(met.items(), key=lambda item: (-len(item[1]), item[0])):
        entries = [entry for those in of_runs.values() for entry in those]
        is_edit = any(entry.get("kind") == _EDITS for entry in entries)
        # Each client has edit tools of its own: those of another than the latest run's are not told.
        is_of_other = is_edit and runs[0].provider not in {runs[run].provider for run in of_runs}
        is_over = sum(_tag_of(name) in well for well in runs[min(of_runs)].well_since) >= _OVERCOME
        if len(of_runs) < max(_LEAST_FAILING, _FAILING_SHARE * among) or is_of_other or is_over:
            continue
        if is_edit:
            if not (told := _explain_edits(error, list(of_runs.values()), among)):
                continue
            cause, advice = told
        else:
            refused = _refused_words(of_runs.values())
            # That a program does not know or find something says nothing without the word.
            if not refused and any(entry.get("kind") in _ABOUT_WORDS for entry in entries):
                continue
            cause, advice = error + refused, ""
        clients = {runs[run].provider for run in of_runs}
        is_of_client = len(clients) == 1 and any(entry.get("kind") in _OF_CLIENT for entry in entries)
        met_by = clients.pop() if is_of_client else ""
        called = {str(entry.get("called") or name) for entry in entries}
        shown = called.pop() if len(called) == 1 else name
        failing = FailingCall(shown, cause, len(of_runs), among, advice, _events_of(entries), met_by)
        found.setdefault(name, failing)
    return tuple(found.values())[:_MOST_FAILING]


def _explain_edits(
    error: str, runs: "Sequence[Sequence[Mapping[str, Any]]]", among: int
) -> tuple[str, str] | None:
    """Return why the edits of runs were refused and what avoids it; nothing where the tool says as much."""
    slip, file = _common_slip(runs), _common_place(runs)
    if not slip and not file and len(runs) < _PLAIN_SHARE * among:
        return None
    cause, advice = slip or (error, _EDIT_ADVICE.get(error, _EXACT_LINES))
    return (f"{cause}, mostly in `{file}`" if file else cause), advice


def _common_slip(runs: "Iterable[Sequence[Mapping[str, Any]]]") -> tuple[str, str] | None:
    """Return what half of the runs at least got wrong in their edits, and what avoids it; else nothing."""
    slips = [{slip for entry in entries for slip in entry.get("subjects") or ()} for entries in runs]
    slip, count = next(iter(Counter(each for of_run in slips for each in of_run).most_common(1)), ("", 0))
    # A patch over several files may be wrong in a line as any other.
    least = len(slips) + 1 if slip == _SEVERAL else len(slips)
    return _SLIPS.get(slip) if 2 * count >= least else None


def _common_place(runs: "Iterable[Sequence[Mapping[str, Any]]]") -> str:
    """Return the file in which most of the runs met it, by its path or else by its name; or nothing."""
    files = [{file for entry in entries for file in entry.get("places") or ()} for entries in runs]
    names = [{file.rpartition("/")[2] for file in of_run} for of_run in files]
    # Two files of one name are chance.
    for named, least in ((files, _LEAST_RUNS), (names, _LEAST_NAMED)):
        file, count = next(iter(Counter(each for of_run in named for each in of_run).most_common(1)), ("", 0))
        if count >= least and 2 * count > len(files) and _is_plain(file):
            return file
    return ""


def _refused_words(runs: "Iterable[Sequence[Mapping[str, Any]]]") -> str:
    """Return the words that two runs at least were refused or missed, as a line tells them; or nothing.

    Those that only a program said stand in quotation marks.
    """
    words: Counter[str] = Counter()
    typed: Counter[str] = Counter()
    for entries in runs:
        about = [each for each in entries if each.get("kind") in _ABOUT_WORDS]
        words.update({word for each in about for word in each.get("subjects") or ()})
        typed.update({word for each in about for word in each.get("typed") or ()})
    often = [word for word, count in words.most_common(2) if count >= _LEAST_RUNS and _is_plain(word)]
    told = (f"`{word}`" if typed[word] >= _LEAST_RUNS else f"“{word}”" for word in often)
    return f" {' and '.join(told)}" if often else ""


def format_failing(calls: Sequence[FailingCall]) -> str:
    """Return one line that tells what keeps failing, as much as fits."""
    line = ""
    for at, each in enumerate(calls):
        longer = (f"{line}; " if line else _FAILING) + each.describe(is_first=not at)
        if len(longer) > _LONGEST_FAILING:
            break
        line = longer
    return line


def format_tests(names: Sequence[str]) -> str:
    """Return one line that names the tests that failed when the last session ended."""
    shown = [name if len(name) <= _LONGEST_TEST else f"{name[:_LONGEST_TEST].rstrip()}…" for name in names]
    named = [f"“{name}”" for name in shown[:_MOST_TESTS]]
    more = [f"{len(names) - _MOST_TESTS} more"] if len(names) > _MOST_TESTS else []
    return _LEFT_FAILING.format(", ".join(named + more)) if named else ""


def _entries_of(noted: "Sequence[NotedRun]") -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield the failures of runs that may be told: the run's place, the failure's key, what is noted."""
    for run, tables in enumerate(noted):
        for key, entry in (item for table in tables for item in table.items()):
            if entry.get("name") and not key.partition("|")[2].startswith(_NOT_TOLD):
                yield run, key, entry


def _events_of(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(event for entry in entries for event in entry.get("events") or ())


def _shared_errors(entries: Sequence[tuple[int, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return the two errors that most runs met, each met by two at least, with what it was about."""
    met: dict[str, set[int]] = {}
    about: dict[str, Counter[str]] = {}
    for run, entry in entries:
        for error in entry.get("errors") or ():
            met.setdefault(error, set()).add(run)
            about.setdefault(error, Counter()).update(entry.get("subjects") or ())
    shared = [error for error in met if len(met[error]) >= _LEAST_RUNS]
    # A message that was cut says less than a class.
    shared.sort(key=lambda error: (error.endswith("…"), -len(met[error])))
    shared = [error for error in shared if error == shared[0] or not error.endswith("…")]
    return tuple(_with_subjects(error, about[error]) for error in shared[:2])


def _with_subjects(error: str, subjects: Counter[str]) -> str:
    """Return a class of errors with the words that it was about most; a message or a code has none."""
    named = [
        name for name, _ in subjects.most_common(2) if len(name) <= _LONGEST_SUBJECT and name not in error
    ]
    return f"{error}: {', '.join(named)}" if named and " " in error and ": " not in error else error


def _count_tries(runs: Sequence[Iterable[Sequence[Any]]]) -> "dict[tuple[str, str, str], Tries]":
    """Sum up by command what each run noted: how often it ran, could not run, passed, and before a commit."""
    tries: dict[tuple[str, str, str], Tries] = {}
    most = 0
    chosen: dict[str, int] = {}
    for age, noted in enumerate(runs):
        for purpose, command, folder, *counts in noted:
            ran, failed, passed, tests, gated = (*counts, 0, 0, 0)[:5]
            of_runs = tries.setdefault((purpose, command, folder), {})
            before = of_runs.get(age, (0, 0, 0, 0))
            of_runs[age] = before[0] + ran, before[1] + failed, before[2] + passed, before[3] + gated
            most = max(most, tests)
            if purpose == "one test":
                chosen[command] = max(chosen.get(command, 0), tests)
    # A way to run one test that runs them all does not choose any.
    all_of_them = {command for command, tests in chosen.items() if tests > _PART * most >= _MANY_TESTS}
    return {name: of_runs for name, of_runs in tries.items() if name[1] not in all_of_them}


def select_commands(
    runs: Sequence[Iterable[Sequence[Any]]], names: Sequence[str] = ()
) -> tuple[WorkingCommand, ...]:
    """Choose from what each run noted, the latest run first; `names` are those of the runs."""
    tries = _count_tries(runs)
    commits = len(tries.pop(_COMMIT, ()))
    trying: dict[str, set[int]] = {}
    missing: dict[str, set[int]] = {}
    for (purpose, command, _), of_runs in tries.items():
        name = command if purpose == "also" else purpose
        trying.setdefault(name, set()).update(of_runs)
        failing = (age for age, (ran, failed, *_) in of_runs.items() if ran <= failed)
        missing.setdefault(name, set()).update(failing)
    # Where calls for a purpose could not run, the right one is worth a word.
    missed = {
        name
        for name, ages in missing.items()
        if len(ages) >= max(_LEAST_RUNS, _MISSED_SHARE * len(trying[name]))
    }
    best: dict[tuple[str, bool, str], tuple[int, WorkingCommand]] = {}
    for (purpose, command, folder), of_runs in tries.items():
        ages = [age for age, (ran, failed, *_) in of_runs.items() if ran and ran >= failed]
        passed = [age for age in ages if of_runs[age][2]]
        least = _LEAST_ALSO if purpose == "also" else _LEAST_RUNS
        is_proven = len(ages) >= max(least, _LEAST_SHARE * len(of_runs))
        if not is_proven or ages[0] not in list(of_runs)[:_LATEST_TRIES]:
            continue
        # A later run says more than an earlier one: a project that changes its tools is told the new ones.
        weight = sum(LATEST_RUNS - age for age in ages)
        run = names[min(passed)] if passed and names else ""
        gated = sum(bool(before_commit) for *_, before_commit in of_runs.values())
        gated = gated if gated >= max(_LEAST_GATED, _GATE_SHARE * commits) else 0
        is_plain = purpose not in missed and not folder and not gated and _is_plain_task(command)
        found = WorkingCommand(
            purpose, command, folder, len(passed), len(of_runs), run=run, is_plain=is_plain
        )
        used = len(trying[command if purpose == "also" else purpose])
        red_in = frozenset(
            age for age, (ran, failed, passed_in, _) in of_runs.items() if passed_in < ran - failed
        )
        found = found._replace(gated=gated, commits=commits, purpose_runs=used, red_in=red_in)
        # The command of one package does not stand for the project's.
        is_scoped = bool(folder) or any(mark in command for mark in _OF_ONE_PACKAGE)
        kind = purpose, is_scoped, command if purpose == "also" else ""
        # What mends the whole project serves more runs than what mends a file.
        weight = 2 * weight + ("<" not in command)
        if purpose in _PURPOSES and weight > best.get(kind, (0,))[0] and _is_plain(folder):
            best[kind] = weight, found
    chosen: list[WorkingCommand] = []
    for (purpose, is_scoped, command), (weight, each) in sorted(best.items(), key=lambda item: -item[1][0]):
        whole = best.get((purpose, False, command), (0,))[0]
        scoped = best.get((purpose, True, command), (0,))[0]
        # A default says little beside what more runs use.
        is_rare = (is_scoped and weight < whole) or (_is_plain_task(each.command) and weight < scoped)
        is_full = purpose == "also" and sum(one.purpose == "also" for one in chosen) == _MOST_ALSO
        if not is_rare and not is_full and len(format_line([*chosen, each])) <= _LONGEST_LINE:
            chosen.append(each)
    kinds = sorted(best, key=lambda kind: (_PURPOSES.index(kind[0]), kind[1]))
    return tuple(best[kind][1] for kind in kinds if best[kind][1] in chosen)


def _is_plain_task(command: str) -> bool:
    """Say whether a command is a task that is called what it does, or a tool's own verb."""
    given = command.split()
    # `--grep <test>` says how one test is chosen; `<test>` alone does not.
    if any(one.startswith("-") and other.startswith("<") for one, other in pairwise(given)):
        return False
    words = [word for word in given if word not in _RUNNERS and word[0] not in "-<"]
    return len(words) < 2 and _PLAIN_TASKS.issuperset(words)


def _is_code(error: str) -> bool:
    """Say whether an error is a code such as TS2345; the names of rules are chosen by whoever wrote them."""
    letters = error.rstrip("0123456789")
    return error != letters and letters.isalpha() and len(letters) <= _LONGEST_CODE


def _is_plain(folder: str) -> bool:
    """Say whether a folder's path can be told; for a short one nothing is imported."""
    if len(folder) <= _SHORT_NAME:
        return folder.translate(_PATH_MARKS).isalnum() or not folder
    from archivist.lessons.risky_text import is_plain_name

    return is_plain_name(folder)


def format_line(commands: Sequence[WorkingCommand]) -> str:
    """Return one line that tells what works, without its end; nothing without commands."""
    return _OPENING + ", ".join(each.describe() for each in commands) if commands else ""
