"""Commands that failed, and the variant that worked."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.wording import (
    LONGEST_SUMMARY,
    advice,
    code,
    format_list,
    format_rule,
    join_parts,
    quote_error,
)
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, describe_remedy, make_candidate

_KINDS = (
    FailureKind.USAGE,
    FailureKind.GIT,
    FailureKind.PERMISSION,
    FailureKind.NETWORK,
    FailureKind.OTHER,
    FailureKind.BUILD,
)
# What git's own messages ask for.
_ASKED = {
    "push rejected": "others push too: `git pull --rebase` first, with every change committed or stashed",
    "unstaged changes": "commit or `git stash` first",
}
# Says only that something before it failed.
_EMPTY = ("failed to push",)
_OFTEN = 2
_MOST = 4
_LONGEST_PAIR = 150


def mine_commands(material: Material) -> list[Candidate]:
    """Say what to run instead; several wrong ways of one program make one lesson."""
    return [
        _lesson(material, case)
        for case in material.of_kind(*_KINDS)
        if case.first.act.steps and _is_worth_telling(case)
    ]


def _is_worth_telling(case: Case) -> bool:
    if case.first.failure.signature.error in _EMPTY:
        return False
    if case.is_of_code and case.first.failure.signature.program == "python":
        return False
    if any(remedy.way is RemedyKind.COMMAND for remedy, _ in case.remedies):
        return (
            case.kind is not FailureKind.OTHER
            or case.runs >= _OFTEN
            or len(case.met) >= _OFTEN
            or _names_alternative(case)
        )
    # What must be started or made before is missing again next time.
    if case.best_remedy(RemedyKind.STEP) and case.kind.is_environment:
        return True
    # A program that does not know a word will not know it next time either.
    is_lasting = case.kind is FailureKind.USAGE and bool(case.first.failure.subject)
    if is_lasting or case.first.failure.signature.error in _ASKED:
        return True
    return case.runs >= _OFTEN and _says_enough(case)


def _says_enough(case: Case) -> bool:
    """Say whether it is of use to know without advice: it does not pass by itself, and says what it calls."""
    return not case.fleeting and not (case.kind is FailureKind.NETWORK and "<url>" in case.first.act.text)


def _names_alternative(case: Case) -> bool:
    """Say whether the error itself names what to use."""
    return "use" in case.first.failure.line.lower()


def _lesson(material: Material, case: Case) -> Candidate:
    ways = _replacements(case)
    step = case.best_remedy(RemedyKind.STEP)
    asked = _ASKED.get(case.first.failure.signature.error, "")
    unknown = [each for each in case.subjects if not any(_is_about(each, way, case) for way in ways)]
    if len(ways) > 1 or (ways and unknown and case.kind is FailureKind.USAGE):
        return _lesson_of_several(material, case, ways, unknown)
    if ways:
        return _lesson_with_advice(material, case, ways[0], describe_remedy(case, ways[0]))
    if step:
        return _lesson_with_advice(material, case, step, describe_remedy(case, step))
    return (
        _lesson_with_advice(material, case, None, asked) if asked else _lesson_without_advice(material, case)
    )


def _replacements(case: Case) -> list[Remedy]:
    """Return for each call that failed the best proven call that worked instead."""
    found: dict[str, Remedy] = {}
    for remedy, _ in case.remedies:
        if remedy.way is RemedyKind.COMMAND and remedy.instead:
            found.setdefault(remedy.instead, remedy)
    return list(found.values())[:_MOST]


def _is_about(subject: str, way: Remedy, case: Case) -> bool:
    """Say whether a way around was seen to help with an unknown word, or uses that word itself."""
    return any(subject in text for text in (way.instead, way.text, case.failing_example(way)[1]))


def _lesson_with_advice(material: Material, case: Case, remedy: Remedy | None, what: str) -> Candidate:
    """Say which call failed, how, and what helped it, all three of one sighting."""
    shown, line = case.failing_example(remedy)
    command = _command(remedy.instead if remedy and remedy.way is RemedyKind.COMMAND else shown, case)
    told = quote_error(line, 80)
    return make_candidate(
        material,
        case,
        _fit_summary(f"{material.name}: {command} fails", line, what),
        # A word that a program does not know fails each time; anything else need not.
        rule=format_rule(
            f"{command} is to be run" if case.kind is FailureKind.USAGE else f"{command} fails with “{told}”",
            what,
        ),
        remedies=(remedy.text if remedy else what,),
        words=_words(case),
    )


def _fit_summary(what: str, line: str, done: str) -> str:
    """Return a summary that says what to do whole: of the three the quoted error is cut first."""
    quoted = (f"{what} ({quote_error(line, longest)}): {done}" for longest in (80, 40))
    return next((text for text in quoted if len(text) <= LONGEST_SUMMARY), f"{what}: {done}")


def _lesson_of_several(material: Material, case: Case, ways: list[Remedy], unknown: list[str]) -> Candidate:
    """Say each wrong way of a program and its right one, and the words that it does not know at all."""
    parts = [_replacement_text(each) for each in ways]
    if unknown and case.kind is FailureKind.USAGE:
        parts.append(_unknown_words(case, unknown))
    text = join_parts(parts, longest=170)
    if not text:
        return _lesson_with_advice(material, case, ways[0], describe_remedy(case, ways[0]))
    return make_candidate(
        material,
        case,
        f"{material.name}: {text}",
        rule=format_rule(f"{code(ways[0].instead)} is to be run", advice(ways[0])),
        remedies=tuple(each.text for each in ways),
        words=_words(case),
    )


def _lesson_without_advice(material: Material, case: Case) -> Candidate:
    """Say only that a call fails; of several words that a program does not know all are named."""
    shown, line = case.failing_example()
    if case.kind is FailureKind.USAGE and len(case.subjects) > 1:
        text = _unknown_words(case, list(case.subjects))
    else:
        text = f"{_command(shown, case)} fails: {quote_error(line, 80)}"
    return make_candidate(material, case, f"{material.name}: {text}", words=_words(case))


def _unknown_words(case: Case, words: list[str]) -> str:
    program = case.first.failure.signature.program or case.first.act.purpose
    return f"{code(program)} does not know {format_list([code(each) for each in words])}"


def _command(shown: str, case: Case) -> str:
    return code(shown if len(shown) < _LONGEST_PAIR else case.first.act.purpose)


def _words(case: Case) -> tuple[str, ...]:
    return case.first.act.purpose, case.first.failure.subject


def _replacement_text(remedy: Remedy) -> str:
    return f"not {code(remedy.instead)} but {code(remedy.text)}"
