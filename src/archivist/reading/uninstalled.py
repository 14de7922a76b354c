"""Programs that are missing for one reason: what the project lists is not installed yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.reading.packages import installs
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import is_entering
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import parse

# Stands for the program in the key of those that one install brings.
ANY_PROGRAM = "<programs>"

if TYPE_CHECKING:
    from archivist.reading.run import ObservedFailure


def by_project_install(met: Sequence[ObservedFailure], project: str) -> Iterator[ObservedFailure]:
    """Yield missing programs once more under the package manager that installed the project."""
    for each in met:
        if (
            each.failure.kind is K.MISSING_COMMAND
            and each.cure
            and (text := project_install(each.cure.remedy))
        ):
            key = f"{project}|{K.MISSING_COMMAND}:{installs(parse(text))[0].manager.split()[0]}:{ANY_PROGRAM}"
            yield replace(each, key=key, cure=replace(each.cure, remedy=Remedy(RemedyKind.STEP, text)))


def project_install(remedy: Remedy) -> str:
    """Return the command of a remedy if it installs what the project lists, and nothing else is done."""
    if remedy.way not in (RemedyKind.INSTALL, RemedyKind.STEP):
        return ""
    steps = [step for step in parse(remedy.text) if not is_entering(step)]
    found = installs(steps)
    is_of_project = len(found) == len(steps) == 1 and found[0].is_of_project
    return remedy.text if is_of_project else ""
