"""Commands that failed, and the variant that worked."""

from __future__ import annotations

from collections.abc import Iterator

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.rules import FailureKind as K
from archivist.reading.wording import (
    LONGEST_SUMMARY,
    advice,
    code,
    format_list,
    format_rule,
    join_parts,
    quote_error,
)
from archivist.reflect.miners.material import Case, Material, describe_remedy, make_candidate

_KINDS = (K.USAGE, K.GIT, K.PERMISSION, K.NETWORK, K.OTHER, K.BUILD)
# What git's own messages ask for.
_GIT_ADVICE = {
    "push rejected": "others push too: `git pull --rebase` first, with every change committed or stashed",
    "unstaged changes": "commit or `git stash` first",
}
# This error only says that something before it failed.
_UNINFORMATIVE = "failed to push"
_MOST_REPLACEMENTS = 4
_LONGEST_PAIR = 150
_LONGEST_JOINED = 184


def mine_commands(material: Material) -> Iterator[Candidate]:
    """Say what to run instead. Several wrong uses of one program make one lesson."""
    for case in material.of_kind(*_KINDS):
        if not case.first.act.steps or not _is_worth_telling(case):
            continue
        # For each call that failed, the best proven call that worked instead.
        by_failed: dict[str, Remedy] = {}
        for remedy, _ in case.remedies:
            if remedy.way is RemedyKind.COMMAND and remedy.instead:
                by_failed.setdefault(remedy.instead, remedy)
        replacements = list(by_failed.values())[:_MOST_REPLACEMENTS]
        # Words that the program does not know, and that no replacement helped with or uses itself.
        covered = "\n".join(
            text
            for remedy in replacements
            for text in (remedy.instead, remedy.text, case.failing_example(remedy)[1])
        )
        unknown = [word for word in case.subjects if case.kind is K.USAGE and word not in covered]
        if len(replacements) > 1 or (replacements and unknown):
            yield _lesson_of_several(material, case, replacements, unknown)
        elif best := next(iter(replacements), None) or case.best_remedy(RemedyKind.STEP):
            yield _lesson_with_advice(material, case, best, describe_remedy(case, best))
        elif asked := _GIT_ADVICE.get(case.first.failure.signature.error):
            yield _lesson_with_advice(material, case, None, asked)
        else:
            shown, line = case.failing_example()
            text = f"{_command(shown, case)} fails: {quote_error(line, 80)}"
            if case.kind is K.USAGE and len(case.subjects) > 1:
                text = _unknown_words(case, list(case.subjects))
            yield make_candidate(material, case, f"{material.name}: {text}", words=_tag_words(case))


def _is_worth_telling(case: Case) -> bool:
    failure, signature = case.first.failure, case.first.failure.signature
    if signature.error == _UNINFORMATIVE or (case.is_of_code and signature.program == "python"):
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
    return case.runs > 1 and not case.fleeting and not is_anonymous


def _lesson_with_advice(material: Material, case: Case, remedy: Remedy | None, action: str) -> Candidate:
    """Say which call failed, how, and what helped, all three from one occurrence."""
    shown, line = case.failing_example(remedy)
    command = _command(remedy.instead if remedy and remedy.way is RemedyKind.COMMAND else shown, case)
    problem = f"{material.name}: {command} fails"
    # The advice must be whole; the quoted error is cut first, and then left out.
    quoted = (f"{problem} ({quote_error(line, longest)}): {action}" for longest in (80, 40))
    # A word that a program does not know fails each time; anything else need not.
    is_certain = case.kind is K.USAGE
    condition = f"{command} is to be run" if is_certain else f"{command} fails with “{quote_error(line, 80)}”"
    return make_candidate(
        material,
        case,
        next((text for text in quoted if len(text) <= LONGEST_SUMMARY), f"{problem}: {action}"),
        rule=format_rule(condition, action),
        remedies=(remedy.text if remedy else action,),
        words=_tag_words(case),
    )


def _lesson_of_several(
    material: Material, case: Case, replacements: list[Remedy], unknown: list[str]
) -> Candidate:
    """Name each wrong use of a program with the right one, and the words that it does not know."""
    parts = [f"use {code(remedy.text)} instead of {code(remedy.instead)}" for remedy in replacements]
    if unknown:
        parts.append(_unknown_words(case, unknown))
    room = LONGEST_SUMMARY - len(f"{material.name}: ")
    text = join_parts(parts, longest=min(_LONGEST_JOINED, room))
    first = replacements[0]
    if not text:
        return _lesson_with_advice(material, case, first, describe_remedy(case, first))
    return make_candidate(
        material,
        case,
        f"{material.name}: {text}",
        rule=format_rule(f"{code(first.instead)} is to be run", advice(first)),
        remedies=tuple(remedy.text for remedy in replacements),
        words=_tag_words(case),
    )


def _unknown_words(case: Case, words: list[str]) -> str:
    program = case.first.failure.signature.program or case.first.act.purpose
    return f"{code(program)} does not know {format_list([code(word) for word in words])}"


def _command(shown: str, case: Case) -> str:
    return code(shown if len(shown) < _LONGEST_PAIR else case.first.act.purpose)


def _tag_words(case: Case) -> tuple[str, ...]:
    return case.first.act.purpose, case.first.failure.subject
