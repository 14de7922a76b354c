"""Tests: those that pass and fail by chance, and those that failed before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.lessons.risky_text import is_plain_name
from archivist.reading.making import mends_style
from archivist.reading.observed import CODE_KINDS
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import call_text
from archivist.reading.runner_reports import TIMEOUT, error_class, read_report, shown_class
from archivist.reading.shell import parse
from archivist.reading.signatures import is_telling
from archivist.reading.wording import (
    advice,
    clip_words,
    code,
    format_list,
    format_rule,
    format_run_count,
    general_command,
    is_informative,
    quote_error,
)
from archivist.reading.works import command_purpose, purpose_of_name
from archivist.records import Category, EpisodeStatus, Evidence
from archivist.reflect.miners.material import Case, Material, make_candidate, second_fixer

# A flaky test costs every run, so it is told early.
_FLAKY_TEST_IMPORTANCE = 0.6
# What is missing, forbidden or misspelt does not fix itself: somebody else fixed it in the meantime.
_CHANCE_KINDS = (CODE_KINDS | {FailureKind.NETWORK, FailureKind.TIMEOUT}) - {FailureKind.SYNTAX}
_TEST_NAME = lazy_pattern(r"\b(?:test_\w+|\w+_tests?|\w+[._](?:test|spec)\.\w+|Test[A-Z]\w+)\b")
_NOTHING_RUN = lazy_pattern(
    r"(?i)\bno tests? (?:files? )?(?:found|ran|run|collected|were|to run|suites?)|\bcollected 0 items"
    r"|\b0 tests? (?:ran|found)"
)
_SHORTEST_QUOTE = 18
# Another form that ran less of what a call ran chooses tests.
_PART = 0.75
_UNNAMED = "its tests fail"
_ONE_UNNAMED = "a test fails"
# A check that fewer runs failed may have failed by chance.
_OFTEN = 3
_MOST_RULES = 3
_MOST_COMMANDS = 2
# A red check costs another push and the time that the server takes.
_CI_IMPORTANCE = 0.95
_COMPILER_CODE = lazy_pattern(r"(?:TS|CS)\d{3,5}|E\d{4}")
# What a check calls each of its findings.
_NO_KIND = ("error", "failed", "test failed", "")


def mine_checks(material: Material) -> Iterator[Candidate]:
    """Say which of the project's own checks runs often fail: they are best run early."""
    for case in material.of_kind(FailureKind.CHECK):
        if case.runs < _OFTEN or case.tasks < 2:
            continue
        check = case.key.rpartition(f"|{FailureKind.CHECK}:")[2]
        # Each task mends what it found: what most runs did is the project's way.
        steps = [(runs, each) for each, runs in case.remedies if each.way is RemedyKind.STEP]
        remedy = max(steps, key=lambda step: step[0])[1] if steps else None
        is_commit = check == "git commit"
        helped = sum(runs for each, runs in case.remedies if remedy and each.change == remedy.change)
        # A commit is refused for many reasons: what mends the style does nothing about types.
        remedy = None if is_commit and 2 * helped < case.runs else remedy
        if not remedy and not is_commit:
            # That checks find faults in new code needs no saying, unless it is the same each time.
            yield from _mine_recurring_rules(material, case, check)
            continue
        kinds = [kind for kind, runs in case.subjects.items() if runs > 1 and kind not in _NO_KIND][:3]
        found = f" ({format_list(kinds)})" if kinds and not (is_commit and remedy) else ""
        action = advice(remedy) if remedy else "run the project's checks before you commit"
        if remedy and (rest := second_fixer(case, remedy)):
            action = f"{action}, then {code(rest)}"
        # What only checks and what mends may be one program.
        is_same = remedy is not None and remedy.text.startswith(check) and is_informative(case.command)
        name = code(case.command if is_same else check)
        problem = f"{name} often finds faults in new changes{found}"
        if is_commit:
            problem = f"{code(check)} runs checks here that often refuse it{found}"
        yield make_candidate(
            case,
            f"{problem}: {action}",
            rule=format_rule(f"{name} is to be run", action) if remedy else "",
            remedies=(remedy.text,) if remedy else (),
            category=Category.TEST_STRATEGY,
            words=("checks", check),
        )


def mine_ci(material: Material) -> Iterator[Candidate]:
    """Say which checks of the server fail after a push, with the local commands that runs had left out."""
    for case in material.of_kind(FailureKind.CI):
        check = case.first.failure.subject
        helped = [
            (each.text, runs) for each, runs in case.remedies if _is_of_check(material, case, each.text)
        ]
        if not helped or helped[0][1] < _OFTEN or case.is_of_one_day or not is_plain_name(check):
            continue
        often = [(text, runs) for text, runs in helped if runs > 1][:_MOST_COMMANDS]
        commands = format_list([code(text) for text, _ in often])
        counted = format_list([f"{code(text)} ({format_run_count(runs)} had not)" for text, runs in often])
        candidate = make_candidate(
            case,
            f"CI check “{check}” fails after a push: run {counted} before you push",
            rule=format_rule("you are about to push", f"run {commands} first"),
            remedies=tuple(text for text, _ in often),
            category=Category.TEST_STRATEGY,
            words=("ci", "push", check),
        )
        yield replace(candidate, importance=_CI_IMPORTANCE)


def _is_of_check(material: Material, case: Case, command: str) -> bool:
    """Say whether a command helped no other check of the server more, where several failed in one run."""
    runs = material.noted_failures
    purpose = command_purpose(parse(command)[0])

    def weight(key: str) -> tuple[int, bool]:
        entries = (failures.get(key) or {} for failures in runs)
        helped = sum(any(row[1] == command for row in entry.get("remedies") or ()) for entry in entries)
        return helped, purpose_of_name(key.rpartition(":")[2]) == purpose

    start = f"{material.project}|{FailureKind.CI}:"
    others = {key for failures in runs for key in failures if key.startswith(start)} - {case.key}
    return all(weight(case.key) > weight(other) for other in others)


def _mine_recurring_rules(material: Material, case: Case, check: str) -> Iterator[Candidate]:
    """Say which rules of a linter new code keeps breaking, where nothing mends them by itself."""
    noted = [failures.get(case.key) or {} for failures in material.noted_failures]
    rules = [dict.fromkeys(entry.get("errors") or ()) for entry in noted]
    counts = Counter(rule for some in rules for rule in some)
    often = [
        rule
        for rule, runs in counts.most_common(_MOST_RULES)
        # A compiler's number says too little.
        if runs >= _OFTEN and is_plain_name(rule) and " " not in rule and not _COMPILER_CODE.fullmatch(rule)
    ]
    # A run in which the check found something else did not meet it.
    if rules[-1].keys().isdisjoint(often):
        return
    if any(command_purpose(step) not in ("lint", "check") for step in parse(check)):
        return
    verb = "does not mend" if mends_style(check) else "refuses new code with"
    # By the whole call, so that a brief does not tell the same of it once more.
    is_whole = case.command.startswith(check) and is_informative(case.command)
    quoted = format_list([f"“{rule}”" for rule in often])
    problem = f"{code(case.command if is_whole else check)} {verb} {quoted}"
    yield make_candidate(
        case,
        problem,
        category=Category.TEST_STRATEGY,
        words=("checks", check),
        is_answer=True,
    )


def mine_leftovers(material: Material) -> Iterator[Candidate]:
    """Say which folder holds what tools left there, where the project's checks look at it, too."""
    for case in material.of_kind(FailureKind.LEFTOVER):
        folder = case.first.failure.subject
        if case.runs < 2 or not is_plain_name(folder.rstrip("/")):
            continue
        names = case.calls[None] or (case.first.act.purpose,)
        called = format_list([code(name) for name in names], most=2)
        problem = f"{called} {'fail' if names[1:] else 'fails'} on files below {code(folder)}"
        verdict = "they were left there and are not your bug: ask before you delete them"
        yield make_candidate(
            case,
            f"{problem}: {verdict}",
            rule=format_rule(problem, "do not look for the cause in your change"),
            category=Category.TEST_STRATEGY,
            words=("checks", "not-your-bug"),
            is_answer=True,
        )


def mine_unfiltered(material: Material) -> Iterator[Candidate]:
    """Say which way to run some tests runs them all: no call fails, so nobody else would learn of it.

    One call may name what is all of the suite; two that name different tests cannot, nor can one whose names
    chose fewer tests in another form.
    """
    rows = [row for digest in material.digests for row in digest.get("tests") or ()]
    for case in material.of_kind(FailureKind.UNFILTERED):
        form = case.first.failure.signature.words[0]
        chosen = [{*subject.split(" | ")} for subject in case.subjects]
        proof = case.best_remedy(RemedyKind.COMMAND)
        if proof is None and not any(one.isdisjoint(other) for one in chosen for other in chosen):
            continue
        # Of the ways that ran fewer tests the one that most runs took; of another program only the proven.
        whole = max(row[3] for row in rows if row[0] == form)
        partial = [row for row in rows if row[2] and 0 < row[3] < _PART * whole and "&&" not in row[0]]
        fewer = Counter(row[0] for row in partial if _is_same_runner(row[0], form))
        fewer.update((proof.text,) if proof else ())
        better = next(iter(fewer.most_common(1)), ("", 0))[0]
        shown = [event for name, *_, event in partial if name == better and isinstance(event, str)]
        action = f"use {code(better)}" if better else "whatever it is given"
        candidate = make_candidate(
            case,
            f"{code(form)} runs all tests{': ' if better else ', '}{action}",
            rule=format_rule(f"{code(form)} is to be run", action) if better else "",
            remedies=(better,) if better else (),
            category=Category.TEST_STRATEGY,
            words=("tests", "filter"),
            is_answer=True,
        )
        # The line of the failure is our own, and its count another one in each run.
        yield replace(candidate, detail="", evidence=Evidence(events=tuple(shown[-1:])))


def _is_same_runner(form: str, other: str) -> bool:
    """Say whether two forms are of one program and choose by the same, a name or a file."""
    ends = [[word for word in each.split() if word.endswith(">")] for each in (form, other)]
    return form != other and form.split()[0] == other.split()[0] and ends[0] == ends[1]


def mine_flaky(material: Material) -> Iterator[Candidate]:
    """Say which call failed and succeeded with nothing done in between. Except for tests, once is chance."""
    for case in material.cases:
        act = case.first.act
        is_cured = any(remedy.way is not RemedyKind.EDIT for remedy, _ in case.remedies)
        # One test that fails in one task after the other, and passed once with nothing done, is never mended.
        is_one_test = case.kind is FailureKind.TEST_FAILURE and bool(case.first.failure.signature.words)
        is_never_mended = is_one_test and bool(case.fleeting) and case.tasks >= _OFTEN
        is_chance = case.is_passing_by_itself or is_never_mended
        if not is_chance or is_cured or case.kind not in _CHANCE_KINDS or not act.steps:
            continue
        # A count of failing tests may be another test each time.
        if not is_telling(case.line):
            continue
        shown = general_command(act.event.text)
        if not act.is_test and (case.fleeting == 1 or not is_informative(shown) or "<url>" in shown):
            continue
        if act.is_test:
            yield _flaky_test(material, case)
            continue
        command, error = code(shown), quote_error(case.line, 80)
        yield make_candidate(
            case,
            f"{command} fails now and then (“{error}”): run it again",
            rule=format_rule(f"{command} fails with “{error}”", "run it again before anything else"),
            category=Category.TOOL_USAGE,
            words=("flaky", act.purpose),
            is_answer=True,
        )


def _flaky_test(material: Material, case: Case) -> Candidate:
    """Say of which error a test fails by chance; what else it failed of is no chance."""
    act, failure = case.first.act, case.first.failure
    line, name = " ".join(failure.line.split()), next(iter(failure.signature.words), "")
    failing = read_report(act.event.output).failing
    test = next((each for each in failing if each.name in line or each.name.endswith(f"::{name}")), None)
    # Not the tests that were chosen: they are of one run, and a filter may choose none.
    command, error = code(act.purpose), quote_error(case.line, 80)
    problem, real = f"{command} passes and fails with nothing changed (“{error}”)", ""
    if test and test.error:
        # What a summary cuts, the report itself says.
        said = failure.line if test.name not in line else test.error
        error = quote_error(said.partition(". ")[0], 60)
        outcome = "times out" if error_class(said) == TIMEOUT else "fails"
        shown = quote_error(test.name.rpartition("::")[2], 70)
        problem = f"“{shown}” of {command} {outcome} now and then (“{error}”)"
        others = _real_errors(material, case)
        real = f"; {format_list(others[:2])} there {'are' if others[1:] else 'is'} real" if others else ""
    found = make_candidate(
        case,
        f"{problem}: run it again{real}",
        rule=format_rule(f"{command} fails with “{error}”", "run it again before looking for a cause"),
        category=Category.TEST_STRATEGY,
        words=("flaky", act.purpose),
        is_answer=True,
    )
    return replace(found, importance=max(found.importance, _FLAKY_TEST_IMPORTANCE))


def _real_errors(material: Material, case: Case) -> list[str]:
    """Return of what else the same test failed in runs of the project, without passing by itself."""
    kind, program, _, name = (*case.key.split(":", 3), "", "")[:4]
    found: dict[str, None] = {}
    for failures in material.noted_failures:
        for key, entry in failures.items():
            is_same = key != case.key and key.startswith(f"{kind}:{program}:") and key.endswith(f":{name}")
            if name and is_same and not entry.get("fleeting"):
                found[shown_class(entry["line"])] = None
    return [each for each in found if each]


def mine_not_your_bug(material: Material) -> Iterator[Candidate]:
    """Say which test failure existed before: met in several tasks, or left by a finished run.

    What a step, an install, another way to run it or mere repetition overcame is reported as that.
    """
    for case in material.cases:
        failure = case.first.failure
        is_test = case.is_of_code and case.first.act.is_test and bool(failure.signature.words)
        if not is_test or _is_named_by_task(case) or not _is_preexisting(case):
            continue
        test = failure.signature.words[0]
        remedy = case.best_remedy(RemedyKind.EDIT)
        error = _quote_case(case, remedy)
        is_sure = case.tasks > 1
        if case.kind is FailureKind.TEST_FAILURE and test.startswith("test") and is_plain_name(test):
            what = f"{code(test)} fails"
        elif places := [code(folder) for folder in case.places if is_plain_name(folder)]:
            what = f"tests under {format_list(places[:2])} fail"
        else:
            what = _ONE_UNNAMED if case.kind is FailureKind.TEST_FAILURE else _UNNAMED
        since = (
            "before any change" if case.untouched else "in several runs" if is_sure else "in a finished run"
        )
        because = f" (“{error}”)" if len(error) > _SHORTEST_QUOTE else ""
        if what == _UNNAMED and (not because or case.kind is FailureKind.OTHER):
            # Which test fails, and how, is all that a reader could tell it by: a line of no known kind may
            # stand above any failure.
            continue
        verdict = "not your bug" if is_sure else "likely not your bug"
        if remedy is not None and remedy.text != "edit":
            verdict += f"; {remedy.text.replace('change', 'changing', 1)} helps"
        yield make_candidate(
            case,
            f"{what} {since}{because}: {verdict}",
            rule=format_rule(f"{what}{because}", "do not look for the cause in your change"),
            remedies=(remedy.text,) if remedy else (),
            category=Category.TEST_STRATEGY,
            words=("tests", "not-your-bug", failure.subject),
            is_answer=is_sure,
        )


def _is_named_by_task(case: Case) -> bool:
    """Say whether the task names the failing test or its file: then the run is meant to fix it."""
    wanted = set(_TEST_NAME.findall(case.reading.episode.task))
    for met in case.met if wanted else ():
        failure = met.failure
        words = (failure.line, *failure.signature.words, *failure.files, met.act.event.output)
        if not wanted.isdisjoint(_TEST_NAME.findall(" ".join(words))):
            return True
    return False


def _is_preexisting(case: Case) -> bool:
    # Where no test was found none failed, and a call that writes files changed the project itself.
    if any(
        _NOTHING_RUN.search(met.act.event.output) or any(not change.is_restored for change in met.act.changes)
        for met in case.met
    ):
        return False
    # If anything but a change of the project makes it pass, that is the lesson.
    if case.fleeting or any(remedy.way is not RemedyKind.EDIT for remedy, _ in case.remedies):
        return False
    # What may have overcome it is told once a second run did the same; until then nobody is to blame.
    met_at = {met.act.at for met in case.met}
    guesses = [each for each in case.reading.checks if each.failure.kind is not FailureKind.CHECK]
    if any(guess.act.at in met_at and guess.cure for guess in guesses):
        return False
    calls = {call_text(met.act) for met in case.met}
    if any(case.past.has_passed(case.project, case.key, call) for call in calls):
        return False
    # What fails first and passes after the change is what the task was about.
    is_fixed = any(met.is_of_task or met.cure for met in case.met)
    # The same task tried twice shows the same failure, and it may be the one to fix. A failing assertion that
    # only runs met which had changed the project, one of them may have broken.
    is_witnessed = bool(case.untouched) or case.kind is not FailureKind.TEST_FAILURE
    if case.tasks > 1 and is_witnessed and (case.remedies or not is_fixed):
        return True
    # A run that finished its task left the failure as it was, after another test had passed.
    is_left = case.reading.episode.status is EpisodeStatus.SUCCESS and any(
        act.is_test and not act.has_failed for act in case.reading.acts
    )
    return is_left and not is_fixed and case.untouched > 0 and len(_quote_case(case)) > _SHORTEST_QUOTE


def _quote_case(case: Case, remedy: Remedy | None = None) -> str:
    return clip_words(quote_error(case.failing_example(remedy)[1], 200).split(". ", 1)[0], 100)
