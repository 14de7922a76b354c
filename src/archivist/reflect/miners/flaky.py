"""Tests that pass and fail with nothing changed between."""

from __future__ import annotations

from archivist.records import Category, Scope
from archivist.reflect.acts import Act
from archivist.reflect.candidates import Candidate
from archivist.reflect.kinds import FailureKind
from archivist.reflect.miners.material import Material
from archivist.reflect.wording import clipped, code, named, rule, saying, tags

_IMPORTANCE = 0.6


def mine_flaky(material: Material) -> list[Candidate]:
    """Say which test call had both outcomes though no file, package or setting changed."""
    found: dict[str, Candidate] = {}
    last: dict[str, Act] = {}
    for act in material.reading.acts:
        if act.changes or act.installs or not (act.is_look or act.is_test):
            last.clear()
        if not act.is_test or not act.steps:
            continue
        before = last.get(act.event.text)
        if before is not None and before.has_failed != act.has_failed:
            lesson = _lesson(material, before, act)
            if lesson:
                found.setdefault(lesson.key, lesson)
        last[act.event.text] = act
    return list(found.values())


def _lesson(material: Material, before: Act, after: Act) -> Candidate | None:
    failed = before if before.has_failed else after
    failure = failed.failure
    if failure is None or failure.kind is not FailureKind.TEST_FAILURE:
        return None
    command = code(named(failed.event.text))
    told = saying(failure.line, 80)
    return Candidate(
        key=f"{material.project}|flaky:{failure.signature.key}",
        summary=clipped(
            f"{material.name}: {command} passes and fails with nothing changed (“{told}”): run it again"
        ),
        rule=rule(f"{command} fails with “{told}”", "run it again before looking for a cause"),
        category=Category.TEST_STRATEGY,
        scope=Scope.REPO,
        repo=material.project,
        tags=tags("flaky", failed.purpose),
        importance=_IMPORTANCE,
        events=(before.event.id, after.event.id),
        remedies=("run it again",),
    )
