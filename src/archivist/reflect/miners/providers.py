"""One provider failing or timing out on a purpose where another does well."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.lessons.candidate import Candidate
from archivist.reading.history import AttemptCounts
from archivist.reading.rules import FailureKind
from archivist.reading.wording import clip_words, code, format_rule, tags
from archivist.records import Category, Scope
from archivist.reflect.importance import PROVIDER
from archivist.reflect.miners.material import Material

_LEAST_TIMEOUTS = 2
_LEAST_FAILURES = 3
_LEAST_SUCCESSES = 2


def mine_providers(material: Material) -> list[Candidate]:
    """Compare how providers fared with each purpose of this run, over this run and the past."""
    provider = material.reading.episode.provider
    if not provider:
        return []
    found: list[Candidate] = []
    for purpose, here in material.reading.attempts.items():
        fared = material.past.attempts(material.project, purpose)
        was_shown = _reliable_providers(fared)
        fared[provider] = fared.get(provider, AttemptCounts()) + here
        well = _reliable_providers(fared)
        for name, it in fared.items():
            # A run of another provider shows the contrast once; after that it takes a failure of this one.
            if name != provider and was_shown:
                continue
            others = [other for other in well if other != name]
            if others and _is_struggling(it, [fared[other] for other in others]):
                best = max(others, key=lambda other: fared[other].ok)
                found.append(_lesson(material, name, it, best, purpose))
    return found


def _reliable_providers(fared: Mapping[str, AttemptCounts]) -> list[str]:
    return [name for name, it in fared.items() if it.ok and not it.timeout and it.failed <= it.ok]


def _is_struggling(it: AttemptCounts, others: list[AttemptCounts]) -> bool:
    if it.timeout >= _LEAST_TIMEOUTS and it.timeout > it.ok:
        return True
    is_sure = any(other.ok >= _LEAST_SUCCESSES and not other.failed for other in others)
    return it.ok == 0 and it.failed >= _LEAST_FAILURES and is_sure


def _lesson(material: Material, name: str, it: AttemptCounts, other: str, purpose: str) -> Candidate:
    command = code(purpose)
    if it.timeout >= _LEAST_TIMEOUTS:
        did, deed = f"timed out {it.timeout} times", f"run it in parts or use {other}"
    else:
        did, deed = f"failed all {it.failed} times", f"use {other}"
    return Candidate(
        key=f"{material.project}|provider:{name}:{purpose}",
        summary=clip_words(f"{command} {did} with {name}, while {other} finished it: {deed}"),
        rule=format_rule(f"{command} is to be run by {name}", deed),
        category=Category.PROVIDER_QUIRK,
        scope=Scope.PROVIDER,
        repo=material.project,
        provider=name,
        tool=purpose,
        tags=tags(name, purpose, "timeout" if it.timeout else "failure"),
        importance=PROVIDER,
        events=_events(material, purpose),
        remedies=(deed,),
    )


def _events(material: Material, purpose: str) -> tuple[str, ...]:
    """Return this run's calls of the purpose, those that timed out first."""
    those = [act for act in material.reading.acts if act.purpose == purpose and act.steps]
    those.sort(key=lambda act: not (act.failure and act.failure.kind is FailureKind.TIMEOUT))
    return tuple(act.event.id for act in those[:4])
