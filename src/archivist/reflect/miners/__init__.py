"""Turn what a run went through into candidate lessons, one rule a miner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.history import RunHistory
from archivist.reading.observed import ANY_OPTION
from archivist.reading.probes import is_one_off
from archivist.reading.rules import FailureKind
from archivist.reading.run import RunReading
from archivist.reading.signatures import HOLLOW, message_words
from archivist.reading.wording import without_paths
from archivist.records import LessonType
from archivist.reflect.miners import commands, missing, runs, testing, wishes
from archivist.reflect.miners.material import Material, gather_material

__all__ = ["MINERS", "Miner", "mine_candidates"]

Miner = Callable[[Material], Iterable[Candidate]]

# The first miner that reports a failure wins, so the specific ones come before the general ones.
MINERS: tuple[Miner, ...] = (
    wishes.mine_wishes,
    runs.mine_providers,
    missing.mine_missing_modules,
    missing.mine_missing_commands,
    missing.mine_environment,
    commands.mine_prompts,
    testing.mine_leftovers,
    testing.mine_unfiltered,
    testing.mine_flaky,
    commands.mine_timeouts,
    commands.mine_failed_edits,
    missing.mine_missing_files,
    testing.mine_not_your_bug,
    commands.mine_refused_options,
    commands.mine_commands,
    commands.mine_recurring,
    commands.mine_remedies,
    testing.mine_checks,
    testing.mine_ci,
    runs.mine_undone,
    runs.mine_thrashing,
    runs.mine_outliers,
)


# Failures of these kinds have no words of their own but the message.
_UNNAMED = (FailureKind.OTHER, FailureKind.BUILD, FailureKind.CRASH, FailureKind.TEST_FAILURE)
# These name a failure once more, by the check that found it or by what overcame it.
_NAMED_AGAIN = (f"{FailureKind.CHECK}:", f"{FailureKind.REMEDY}:")


def _says_nothing(candidate: Candidate) -> bool:
    """Say whether a lesson names neither what helps nor what is wrong, only that a call fails."""
    kind = candidate.key.partition("|")[2].partition(":")[0]
    if kind not in _UNNAMED or candidate.remedies or candidate.rule:
        return False
    called = {
        word for tag in (candidate.tool, *candidate.tags) for word in message_words(tag.replace("-", " "))
    }
    return not {*message_words(candidate.detail.replace(":", " "))} - HOLLOW - called


def _is_of_refuser(candidate: Candidate, known: Mapping[str, Candidate]) -> bool:
    """Say whether a command that is known to refuse several options refused one, or worked without it."""
    refusers = [each for key, each in known.items() if key.endswith(f":{ANY_OPTION}")]
    is_without = any(candidate.remedies and candidate.remedies == each.remedies for each in refusers)
    is_option = candidate.key.rpartition(":")[2].startswith("-")
    return is_without or (is_option and any({*candidate.events} <= {*each.events} for each in refusers))


def _is_told(candidate: Candidate, others: Iterable[Candidate], runs: Mapping[str, int]) -> bool:
    """Say whether other lessons already tell each failure that a candidate is about, and what helps.

    What one run alone met in these words is told better by what several runs did about it.
    """
    told = (other for other in others if other.remedies or not candidate.remedies)
    return {*candidate.events} <= {
        event for other in told if _is_shown(other, runs) for event in other.events
    }


def _is_shown(candidate: Candidate, runs: Mapping[str, int]) -> bool:
    return not candidate.remedies or runs.get(candidate.key, 2) > 1


def _covers(candidate: Candidate, other: Candidate, runs: Mapping[str, int]) -> bool:
    """Say whether a lesson of several runs tells all of what one run alone met, or nothing helped against."""
    is_less = not other.remedies or not _is_shown(other, runs)
    return is_less and {*other.events} <= {*candidate.events}


def _without_paths_in_prose(text: str) -> str:
    """Return a text without absolute paths, but for its commands: those are told as they ran."""
    parts = text.split("`")
    return "`".join(part if at % 2 else without_paths(part) for at, part in enumerate(parts))


def mine_candidates(reading: RunReading, history: RunHistory) -> list[Candidate]:
    """Return what a run suggests, each phenomenon once, the most important first."""
    material = gather_material(reading, history)
    counts = {case.key: case.runs for case in material.cases}
    probes = {case.key for case in material.cases if case.runs == 1 and is_one_off(case.first.act, case.line)}
    found: dict[str, Candidate] = {}
    for miner in MINERS:
        for candidate in miner(material):
            # Paths are true on one machine only; the user's words and the commands that ran stay as they are.
            if candidate.type is not LessonType.PREFERENCE:
                candidate = replace(  # noqa: PLW2901
                    candidate,
                    summary=_without_paths_in_prose(candidate.summary),
                    rule=_without_paths_in_prose(candidate.rule),
                )
            if candidate.key in material.overcome:
                candidate = replace(candidate, is_known_only=True, is_overcome=True)  # noqa: PLW2901
            if candidate.key in probes or _is_of_refuser(candidate, found):
                continue
            is_again = candidate.key.partition("|")[2].startswith(_NAMED_AGAIN)
            if (is_again and _is_told(candidate, found.values(), counts)) or _says_nothing(candidate):
                continue
            if is_again and candidate.remedies:
                found = {key: each for key, each in found.items() if not _covers(candidate, each, counts)}
            found.setdefault(candidate.key, candidate)
    return sorted(found.values(), key=lambda candidate: (-candidate.importance, candidate.key))
