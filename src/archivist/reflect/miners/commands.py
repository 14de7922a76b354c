"""Commands that failed, and the variant that worked."""

from __future__ import annotations

from archivist.reflect.candidates import Candidate
from archivist.reflect.cases import Case
from archivist.reflect.kinds import FailureKind
from archivist.reflect.miners.material import Material, candidate
from archivist.reflect.phrases import is_telling, open_command
from archivist.reflect.remedies import Remedy, Way
from archivist.reflect.wording import advice, code, joined, rule, saying

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
        if case.first.act.steps and _is_worth(case)
    ]


def _is_worth(case: Case) -> bool:
    if case.first.failure.signature.error in _EMPTY:
        return False
    if case.is_of_code and case.first.failure.signature.program == "python":
        return False
    if any(remedy.way is Way.COMMAND for remedy, _ in case.remedies):
        return (
            case.kind is not FailureKind.OTHER
            or case.runs >= _OFTEN
            or len(case.met) >= _OFTEN
            or _is_told(case)
        )
    # What must be started or made before is missing again next time.
    if case.best(Way.STEP) and case.kind.is_environment:
        return True
    # A program that does not know a word will not know it next time either.
    is_lasting = case.kind is FailureKind.USAGE and bool(case.first.failure.subject)
    return is_lasting or case.runs >= _OFTEN or case.first.failure.signature.error in _ASKED


def _is_told(case: Case) -> bool:
    """Say whether the error itself names what to use."""
    return "use" in case.first.failure.line.lower()


def _lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    ways = [remedy for remedy, _ in case.remedies if remedy.way is Way.COMMAND and remedy.instead][:_MOST]
    told = saying(case.line, 80)
    command = code(open_command(case.first.act.text))
    if len(command) > _LONGEST_PAIR:
        command = code(case.first.act.purpose)
    asked = _ASKED.get(failure.signature.error, "")
    step = case.best(Way.STEP)
    if not ways and step:
        return _step_lesson(material, case, step)
    if not ways and asked:
        return candidate(
            material,
            case,
            f"{material.name}: {command} fails ({told}): {asked}",
            rule=rule(f"{command} fails with “{told}”", asked),
            remedies=(asked,),
            words=(case.first.act.purpose,),
        )
    if not ways:
        return candidate(
            material, case, f"{material.name}: {command} fails: {told}", words=(case.first.act.purpose,)
        )
    if len(ways) == 1:
        summary = f"{material.name}: {code(ways[0].instead)} fails ({told}): {advice(ways[0])}"
    else:
        summary = f"{material.name}: {joined((_pair(each) for each in ways), longest=170)}"
    return candidate(
        material,
        case,
        summary,
        rule=rule(f"{code(ways[0].instead)} is to be run", advice(ways[0])),
        remedies=tuple(each.text for each in ways),
        words=(case.first.act.purpose,),
    )


def _step_lesson(material: Material, case: Case, step: Remedy) -> Candidate:
    """Say what is to be done before a command, which fails by itself."""
    whole = open_command(case.first.act.event.text.strip())
    command = code(whole if is_telling(whole) else open_command(case.first.act.text))
    told = saying(case.line, 80)
    return candidate(
        material,
        case,
        f"{material.name}: {command} fails ({told}): {advice(step)}",
        rule=rule(f"{command} fails with “{told}”", advice(step)),
        remedies=(step.text,),
        words=(case.first.act.purpose,),
    )


def _pair(remedy: Remedy) -> str:
    return f"not {code(remedy.instead)} but {code(remedy.text)}"
