"""Edits that did not apply, and the way of editing that did."""

from __future__ import annotations

from archivist.reflect.candidates import Candidate
from archivist.reflect.cases import Case
from archivist.reflect.kinds import FailureKind
from archivist.reflect.miners.material import Material, candidate
from archivist.reflect.wording import code, rule, saying

_OFTEN = 2
_MANY = 3


def mine_failed_edits(material: Material) -> list[Candidate]:
    """Say which way of editing fails, when it failed more than once or something else is known to work."""
    return [
        _lesson(material, case)
        for case in material.of_kind(FailureKind.EDIT_NOT_APPLIED)
        if case.runs >= _OFTEN or len(case.met) >= _MANY or (case.remedies and not case.first.act.steps)
    ]


def _lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    program = failure.signature.program
    is_patch = program in ("patch", "git apply")
    way = (
        f"patches written by hand ({code(program)})"
        if is_patch
        else f"the {case.first.act.event.tool or program} tool"
    )
    times = f" {len(case.met)} times in one run" if len(case.met) > 1 else ""
    remedy = case.best()
    told = saying(failure, 70)
    did = (
        f"{material.name}: {way} did not apply{times} (“{told}”)"
        if is_patch
        else f"{way} refused an edit{times} (“{told}”)"
    )
    deed = remedy.text if remedy else ""
    return candidate(
        material,
        case,
        f"{did}: what worked was {deed}" if is_patch and deed else f"{did}: {deed}" if deed else did,
        rule=rule(
            f"{way} refuse an edit" if is_patch else f"{way} says “{told}”",
            f"use {deed}" if is_patch else deed,
        )
        if deed
        else "",
        remedies=(deed,) if deed else (),
        words=("edit", program),
    )
