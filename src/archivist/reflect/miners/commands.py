"""Calls that fail, time out or wait for a terminal, edits that do not apply, and what worked instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from rapidfuzz.distance.OSA import distance

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.reading.calls import ToolCall
from archivist.reading.commands import called_words, is_display_step
from archivist.reading.failures import STALE
from archivist.reading.observed import ANY_OPTION, refusing_step
from archivist.reading.outcomes import has_worked
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind as K
from archivist.reading.signatures import says_more
from archivist.reading.slips import SEVERAL, SPACES, TABS
from archivist.reading.tool_names import quote_tool
from archivist.reading.wording import (
    LONGEST_SUMMARY,
    advice,
    code,
    format_list,
    format_rule,
    format_run_count,
    general_command,
    is_informative,
    quote_error,
)
from archivist.records import Category
from archivist.records.words import OUTSIDE_ADVICE_FOR_ALL
from archivist.reflect.miners.material import (
    Case,
    Material,
    describe_offer,
    describe_remedy,
    fit_summary,
    lesson_with_advice,
    make_candidate,
)

_KINDS = (K.USAGE, K.GIT, K.PERMISSION, K.NETWORK, K.OTHER, K.BUILD)
# What git's own messages ask for.
_GIT_ADVICE = {
    "push rejected": "the remote has commits that are not here: `git pull --rebase` first, with every change"
    " committed or stashed",
    "unstaged changes": "commit or `git stash` first",
}
# This error only says that something before it failed.
_UNINFORMATIVE = "failed to push"
_KILLED = lazy_pattern(r"SIGKILL|[Kk]illed|out of memory|OOM")
_CHAIN = lazy_pattern(r"&&|;|\|\|")
_PATCH = "edit_not_applied:patch"
# What an editing tool refuses, and what its message asks for.
_EXACT_LINES = "read the lines again and copy them exactly"
_REFUSALS = {
    "not read yet": ("a file that was not read yet", "read it first"),
    "changed since read": ("a file that changed since it was read", "read it again right before the edit"),
    "old text not found": ("text that is not exactly in the file", _EXACT_LINES),
    "old text not unique": ("text that occurs more than once", "give more lines around it"),
    "context not found": ("a patch whose context is not in the file", _EXACT_LINES),
}
# What an edit got wrong, as its indentation shows, and what avoids it.
_SLIPS = {
    TABS: ("text with the wrong number of tabs", "`sed -n 10,40l <file>` shows tabs as `\\t`"),
    SPACES: ("text with the wrong indentation", "copy the spaces that begin each line"),
    SEVERAL: ("a patch of several files", "patch one file a call: a hunk that misses drops the whole patch"),
}
# The miners of the other kinds decide alone whether there is a lesson.
_RECURRING_KINDS = (K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.PROVIDER, K.CRASH, K.OTHER)
_MANY = 3
# A word of at least so many letters is misspelt if so many are wrong, missing or swapped.
_SHORTEST_NAME = 4
_MISSPELT = 1
_OUTAGE = lazy_pattern(
    r"(?i)\b50[0234]\b.{0,60}(?:internal server|unavailable|bad gateway|time-?out)|temporarily unavailable"
)
# A service that was not started refuses; these are about another machine.
_NO_SERVER = frozenset(("name not resolved", "connection lost", "server not reached"))
_TRY_ONCE = "try it once with a short time limit; if it does not answer, go on without it, and no detours"
_SPECIFIC_WORDS = 4
_MOST_CALLS = 4


def mine_commands(material: Material) -> Iterator[Candidate]:
    """Say what to run instead, or first."""
    stale = (case for case in material.of_kind(K.SYNTAX) if f":{STALE}:" in case.key)
    mended = (case for case in stale if case.runs > 1 and case.best_remedy(RemedyKind.STEP))
    for case in (*material.of_kind(*_KINDS), *mended):
        if not case.first.act.steps or case.key.endswith(ANY_OPTION) or not _is_worth_telling(case):
            continue
        if best := case.best_remedy(RemedyKind.COMMAND, RemedyKind.STEP, RemedyKind.SAID):
            yield lesson_with_advice(case, best, describe_remedy(case, best))
        elif (asked := _GIT_ADVICE.get(case.first.failure.signature.error)) and "--force" not in case.command:
            yield lesson_with_advice(case, None, asked)
        elif offer := case.offer:
            yield lesson_with_advice(case, offer, describe_offer(offer))
        elif case.first.failure.signature.error in _NO_SERVER:
            yield from _mine_unreachable(case)
        elif case.accepted:
            yield lesson_with_advice(case, None, case.accepted)
        else:
            # Of a chain nobody can tell which part the message is of, and a refused word that differs each
            # time is one of the run's own.
            is_unclear = (
                _CHAIN.search(case.command)
                or (case.kind is K.USAGE and "<name>" in case.line)
                or _shows_files(case.first.act)
            )
            error = "" if is_unclear else quote_error(case.line, 80)
            error = error if says_more(error, case.first.act.purpose) else ""
            # Plainly a quotation: the program's author chose its words.
            names = case.calls[None] if case.kind.is_environment else ()
            # Two programs that each failed once may have failed by chance.
            error = error if not names or case.runs >= _MANY else ""
            called = f"{format_list([code(name) for name in names], most=_MOST_CALLS)} fail"
            text = f"{called if names else f'{case.shown_command} fails'}: “{error}”"
            if len(text) > LONGEST_SUMMARY:
                text = f"{code(case.first.act.purpose)} fails: “{error}”"
            if error:
                yield make_candidate(case, text, words=_tag_words(case))


def _shows_files(act: ToolCall) -> bool:
    """Say whether a call also showed a file, of which its message may be a line."""
    return any(is_display_step(step) and not step.is_filter for step in act.steps)


def _mine_unreachable(case: Case) -> Iterator[Candidate]:
    """Say which command never gets to its server, so that nobody spends more than one try on it.

    Where some run did, it was an outage, which is no lesson; one that was told before is reworded.
    """
    signature = case.first.failure.signature
    if case.runs < _MANY:
        return
    command, act = code(signature.program), case.first.act
    here = case.reading.attempts.get(signature.program)
    if (here and here.ok) or case.past.has_worked(case.project, signature.program):
        problem = f"{command} does not reach its server at times"
        found = make_candidate(
            case,
            f"{problem} ({signature.error})",
            "try it again",
            when=problem,
            words=(signature.program, "network"),
        )
        yield replace(found, is_known_only=True)
        return
    # Whoever is told not to try never finds out that the server is back. Tests and installs can be run in
    # another way.
    action = "" if act.is_test or act.installs else _TRY_ONCE
    problem = f"{command} has not reached its server in any run ({signature.error})"
    if case.is_of_one_day:
        problem = f"{command} did not reach its server in {case.runs} runs of one day ({signature.error})"
    yield make_candidate(
        case,
        problem,
        action,
        when=f"{command} is to be run",
        words=(signature.program, "network"),
        is_answer=True,
    )


def _is_worth_telling(case: Case) -> bool:
    failure, signature = case.first.failure, case.first.failure.signature
    if signature.error == _UNINFORMATIVE or (case.is_of_code and signature.program == "python"):
        return False
    best = case.best_remedy()
    # A word that was then spelt right: the next run will hardly misspell it.
    words = best.text.split() if best and len(failure.subject) >= _SHORTEST_NAME else []
    if case.runs == 1 and any(0 < distance(word, failure.subject) <= _MISSPELT for word in words):
        return False
    if any(remedy.way is RemedyKind.COMMAND for remedy, _ in case.remedies):
        # An error of unknown kind may be chance, unless it came twice or names the alternative itself.
        is_repeated = case.runs > 1 or len(case.met) > 1
        return case.kind is not K.OTHER or is_repeated or "use" in failure.line.lower()
    # What must be started or created first is missing again next time.
    if case.best_remedy(RemedyKind.STEP) and case.kind.is_environment:
        return True
    # A program that does not know a word will not know it next time either.
    if (case.kind is K.USAGE and failure.subject) or signature.error in _GIT_ADVICE:
        return True
    # Without advice the failure must last, and the call must say what it called.
    is_anonymous = case.kind is K.NETWORK and "<url>" in case.first.act.text
    return case.runs > 1 and not case.is_passing_by_itself and not is_anonymous


def mine_remedies(material: Material) -> Iterator[Candidate]:
    """Say what helped several runs in the same way, though each met another message."""
    for case in material.of_kind(K.REMEDY):
        best = case.best_remedy(RemedyKind.COMMAND, RemedyKind.STEP)
        if best and case.runs > 1:
            yield lesson_with_advice(case, best, describe_remedy(case, best))
        elif case.runs > 1 and (outside := case.best_remedy(RemedyKind.SAID)):
            # Each call fails with a message of its own; the cause is the same.
            action = OUTSIDE_ADVICE_FOR_ALL if len(case.subjects) > 1 else outside.text
            advised = f"{action} (worked in {format_run_count(case.runs)})"
            lists = [_list_blocked(case.subjects, most) for most in (_MOST_CALLS, 2, 1)]
            room = LONGEST_SUMMARY - len(f"the sandbox blocks : {advised}")
            called = next((each for each in lists if len(each) <= room), "some commands")
            yield make_candidate(
                case,
                f"the sandbox blocks {called}: {advised}",
                rule=format_rule(f"the sandbox blocks {called}", action),
                remedies=(outside.text,),
                words=("sandbox",),
            )


def _list_blocked(subjects: Iterable[str], most: int) -> str:
    """Return the calls that a sandbox blocks, so many of each kind, such as network or ports."""
    calls: dict[str, list[str]] = {}
    for kind, _, name in (subject.rpartition(": ") for subject in subjects):
        calls.setdefault(kind, []).append(code(name))
    listed = [format_list(those[:most]) + (f" ({kind})" if kind else "") for kind, those in calls.items()]
    is_cut = any(len(those) > most for those in calls.values())
    return format_list([*listed, *["other commands"] * is_cut])


def mine_refused_options(material: Material) -> Iterator[Candidate]:
    """Say which command refused each option that several runs gave it, and which call worked instead.

    A tool has many options; a script of the project, two of which are refused, hardly any.
    """
    for case in material.of_kind(K.USAGE):
        step = refusing_step(case.first) if case.key.endswith(f":{ANY_OPTION}") else None
        if step is None or case.runs < 2:
            continue
        call = " ".join(takewhile(lambda word: not word.startswith("-"), (word.value for word in step.words)))
        if not is_informative(call):
            continue
        takes_some = case.accepted or any(command.startswith(f"{call} -") for command in material.works)
        is_script = any("/" in word for word in call.split()[:2])
        if len(case.subjects) < 2 or not (is_script or (len(case.subjects) >= _MANY and not takes_some)):
            continue
        shown = format_list([code(option) for option in case.subjects], most=_MOST_CALLS)
        is_plain = any(act.text == call and has_worked(act) for act in case.reading.acts)
        remedy = case.best_remedy(RemedyKind.COMMAND)
        remedy = remedy if remedy and remedy.text != call else None
        if len(case.subjects) >= _MANY and not takes_some and remedy is None:
            summary, action = f"{code(call)} takes no options (refused: {shown})", "give it no options"
        else:
            summary, action = f"{code(call)} takes none of {shown}", f"give it none of {shown}"
        action = describe_remedy(case, remedy) if remedy else action
        yield make_candidate(
            case,
            f"{summary}: {action}" if remedy else summary,
            rule=format_rule(f"{code(call)} is to be run", action),
            remedies=(remedy.text,) if remedy else (call,) if is_plain else (),
            words=(call, "options"),
            is_answer=True,
        )


def _tag_words(case: Case) -> tuple[str, ...]:
    return case.first.act.purpose, case.first.failure.subject


def mine_prompts(material: Material) -> Iterator[Candidate]:
    """Say which command waits for an answer on a terminal, and how to keep it from asking."""
    for case in material.of_kind(K.PROMPT):
        main = case.first.act.main
        called = called_words(main, most=1) if main else case.first.act.purpose
        command = code("sudo" if case.first.failure.line.startswith("sudo:") else called)
        remedy = case.best_remedy()
        problem = f"{command} asks on a terminal and dies without one"
        if remedy is None:
            yield make_candidate(case, f"{problem} (“{quote_error(case.line, 90)}”)")
            continue
        yield make_candidate(
            case,
            problem,
            advice(remedy),
            when=f"{command} is run without a terminal",
            remedies=(remedy.text,),
            words=(case.first.act.purpose, "non-interactive"),
        )


def mine_timeouts(material: Material) -> Iterator[Candidate]:
    """Say which command is too heavy as it stands: it did not end in time, or was killed."""
    killed = [case for case in material.of_kind(K.CRASH) if _KILLED.search(case.first.failure.line)]
    for case in [*material.of_kind(K.TIMEOUT), *killed]:
        act, remedy = case.first.act, case.best_remedy()
        # Once may be chance, and a call that only looks is not heavy.
        is_lasting = (case.runs > 1 or len(case.met) > 1) and not case.fleeting and not act.is_look
        if not act.steps or not (remedy or is_lasting):
            continue
        is_timeout = case.kind is K.TIMEOUT
        command = code(general_command(act.event.text))
        seconds = act.event.duration_s or 0.0
        ended = "timed out" if is_timeout else "was killed"
        took = f" after {round(seconds, -1):.0f} s" if seconds >= 10 else ""
        action = "run a part of it, or in the background with its output in a file" if is_timeout else ""
        action = (advice(remedy) if remedy else "") or action
        yield make_candidate(
            case,
            f"{command} {ended}{took}",
            action,
            when=f"{command} is to be run",
            remedies=(remedy.text,) if remedy else (),
            category=Category.TEST_STRATEGY if act.is_test else Category.TOOL_USAGE,
            words=("timeout", act.purpose),
        )


def mine_failed_edits(material: Material) -> Iterator[Candidate]:
    """Say which way of editing fails, when it failed more than once or another way is known to work."""
    for case in material.of_kind(K.EDIT_NOT_APPLIED):
        act, failure, remedy = case.first.act, case.first.failure, case.best_remedy()
        if case.runs == 1 and len(case.met) < _MANY and (remedy is None or act.steps):
            continue
        if case.key.endswith(_PATCH):
            tool, action = "patch", remedy.text if remedy else ""
            problem = f"patches written by hand often do not apply ({failure.signature.error})"
            told = f"what worked was {action}" if action else ""
            rule = format_rule("a file is to be changed", f"no patches written by hand: {action}")
        else:
            tool = act.event.tool or failure.signature.program
            unknown = (f"an edit (“{quote_error(case.line, 70)}”)", remedy.text if remedy else "")
            slip, runs = next(iter(case.subjects.items()), ("", 0))
            slipped = _SLIPS.get(slip) if 2 * runs >= case.runs + (slip == SEVERAL) else None
            refused, action = slipped or _REFUSALS.get(failure.signature.error, unknown)
            problem, told, rule = f"the {quote_tool(tool)} tool refuses {refused}", action, ""
        found = make_candidate(
            case,
            problem,
            told,
            rule=rule if action else "",
            remedies=(action,) if action else (),
            words=("edit", tool),
        )
        # Another harness has other tools.
        yield found if act.steps else replace(found, provider=material.reading.episode.provider)


def mine_recurring(material: Material) -> Iterator[Candidate]:
    """Say which other failures the project's runs keep meeting. One run alone may be meeting its task.

    For failing code only runs of different tasks count: a task tried twice fails in the same way twice. Code
    that works once something is started, created or set was not at fault, whatever the task.
    """
    refused = [case for case in material.of_kind(K.USAGE, K.PERMISSION) if not case.first.act.steps]
    for case in [*material.of_kind(*_RECURRING_KINDS), *refused]:
        # A failure that goes away by itself is reported as flaky, or not at all.
        if case.is_passing_by_itself and not case.remedies:
            continue
        is_of_code = case.is_of_code and not case.best_remedy(RemedyKind.STEP, RemedyKind.COMMAND)
        count = case.tasks if is_of_code else case.runs
        # A failure that the runs' own scripts produced must be specific, and met by more of them.
        is_of_task = any(met.is_of_task for met in case.met)
        is_specific = len(case.first.failure.signature.words) >= _SPECIFIC_WORDS
        if count < (_MANY if is_of_task else 2) or (is_of_task and not is_specific):
            continue
        act, remedy, offer = case.first.act, case.best_remedy(), case.offer
        line = case.failing_example(remedy)[1]
        what = code(act.purpose) if act.steps else f"the {quote_tool(act.event.tool)} tool"
        # What the run then got to work does not keep failing.
        is_mended = any(
            call.at > case.met[-1].act.at and call.purpose == act.purpose and has_worked(call)
            for call in case.reading.acts
        )
        fails = "fails" if is_mended else "keeps failing"
        problem = f"{what} {fails if act.steps else 'refuses a call'}"
        error = quote_error(line, 120 if remedy else min(160, LONGEST_SUMMARY - len(f"{problem}: “”")))
        done = describe_remedy(case, remedy) if remedy else describe_offer(offer) if offer else ""
        # A server that is down now says nothing about the next run, nor does a message about another thing
        # in each run: that the call often fails is counted for the brief.
        is_vague = (is_of_code and ("<" in error or not case.has_one_error)) or _shows_files(act)
        is_vague = is_vague or not says_more(error, act.purpose)
        if not done and (is_vague or _OUTAGE.search(line)):
            continue
        yield make_candidate(
            case,
            fit_summary([problem], line, done) if done else f"{problem}: “{error}”",
            rule=format_rule(f"{what} fails with “{error}”", done) if done else "",
            remedies=(remedy.text,) if remedy else (),
            category=Category.TOOL_USAGE if done else Category.ANTI_PATTERN,
            words=(act.purpose,),
        )
