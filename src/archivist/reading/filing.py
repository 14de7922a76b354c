"""Name a failing call as runs file it: by its failure, as a leftover, or as a check that found something."""

from collections.abc import Sequence
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.commands import main_step, step_purpose
from archivist.reading.failures import Failure, failure_key, other_failures
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step, parse

# Failures in which a check found something.
FINDINGS = frozenset((
    K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.SYNTAX, K.BUILD, K.OTHER, K.IMPORT_ERROR,
    K.MISSING_MODULE,
))  # fmt: skip
# The file that asks for a missing module, in a folder of the project that holds nothing of its own.
_ASKED_IN_SCRATCH = lazy_pattern(
    r"\b(?:from|in|required by|imported by):? ['\"]?(?:[^\s'\"]{1,300}/)?"
    r"(?P<folder>\.?(?:tmp|temp|cache)/(?:[a-z_]{2,20}/)?)[^\s'\"]"
)


# Their keys are of the program alone, whatever module or file it lacks; other keys hold what they are about.
_OF_MANY = frozenset((K.MISSING_MODULE, K.PROVIDER, K.MISSING_FILE))


class FiledKey(NamedTuple):
    """A key without its repository, and what of it the failure is about where the key does not say it."""

    family: str
    subject: str = ""


def filed_keys(command: str, output: str, failure: Failure) -> list[FiledKey]:
    """Return the keys under which a run may have filed a failing call, the most telling first.

    Of an output that reports several failures, the others follow the one that a person would quote.
    """
    steps = parse(command)
    found = [failure, *other_failures(command, output, failure)]
    keys: dict[str, FiledKey] = {}
    for each in found:
        if folder := scratch_folder(each):
            keys.setdefault(f"{K.LEFTOVER}:{folder}", FiledKey(f"{K.LEFTOVER}:{folder}"))
        family = failure_key(each)
        keys.setdefault(family, FiledKey(family, each.subject if each.kind in _OF_MANY else ""))
    for each in found:
        if each.kind in FINDINGS and (check := failing_check(steps, each)):
            family = f"{K.CHECK}:{step_purpose(check)}"
            keys.setdefault(family, FiledKey(family))
    return list(keys.values())


def scratch_folder(failure: Failure) -> str:
    """Return the folder of a file that a tool left in the project and that lacks a module; else nothing.

    The project does not lack it.
    """
    is_missing = failure.kind in (K.MISSING_MODULE, K.IMPORT_ERROR)
    found = _ASKED_IN_SCRATCH.search(failure.line) if is_missing else None
    return found["folder"] if found else ""


def failing_check(steps: Sequence[Step], failure: Failure) -> Step | None:
    """Return the step of a call that checks the project and failed, if the call tells."""
    # Imported late: a hook asks this only of failures in which a check may have found something.
    from archivist.reading.works import command_purpose

    checks = [step for step in steps if command_purpose(step) not in ("", "run")]
    named = [step for step in checks if step_purpose(step).lower() == failure.signature.program]
    if found := named or checks:
        return found[-1]
    # A commit that git itself does not refuse is refused by a hook that runs the project's checks.
    main = main_step(tuple(steps))
    return main if main and step_purpose(main) == "git commit" else None
