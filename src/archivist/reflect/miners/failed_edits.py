"""Edits that did not apply, and the way of editing that did."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.rules import FailureKind
from archivist.reading.wording import format_rule, quote_error
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate

_OFTEN = 2
_MANY = 3
_PATCH = "edit_not_applied:patch"
# What an editing tool refuses, and what its refusal asks for.
_REFUSALS = {
    "not read yet": ("a file that was not read yet", "read it first"),
    "changed since read": ("a file that changed since it was read", "read it again right before the edit"),
    "old text not found": (
        "text that is not exactly in the file",
        "read the lines again and copy them exactly",
    ),
    "old text not unique": ("text that occurs more than once", "give more lines around it"),
    "context not found": (
        "a patch whose context is not in the file",
        "read the lines again and copy them exactly",
    ),
}


def mine_failed_edits(material: Material) -> list[Candidate]:
    """Say which way of editing fails, when it failed more than once or something else is known to work."""
    return [
        _patch_lesson(material, case) if case.key.endswith(_PATCH) else _tool_lesson(material, case)
        for case in material.of_kind(FailureKind.EDIT_NOT_APPLIED)
        if case.runs >= _OFTEN or len(case.met) >= _MANY or (case.remedies and not case.first.act.steps)
    ]


def _patch_lesson(material: Material, case: Case) -> Candidate:
    way = "patches written by hand"
    remedy = case.best_remedy()
    did = f"{material.name}: {way} often do not apply ({case.first.failure.signature.error})"
    return make_candidate(
        material,
        case,
        f"{did}: what worked was {remedy.text}" if remedy else did,
        rule=format_rule(f"a file of {material.name} is to be changed", f"no {way}: {remedy.text}")
        if remedy
        else "",
        remedies=(remedy.text,) if remedy else (),
        words=("edit", "patch"),
    )


def _tool_lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    tool = case.first.act.event.tool or failure.signature.program
    refused, asked = _REFUSALS.get(failure.signature.error, (f"an edit (“{quote_error(case.line, 70)}”)", ""))
    remedy = case.best_remedy()
    deed = asked or (remedy.text if remedy else "")
    return make_candidate(
        material,
        case,
        f"the {tool} tool refuses {refused}" + (f": {deed}" if deed else ""),
        rule=format_rule(f"the {tool} tool refuses {refused}", deed) if deed else "",
        remedies=(deed,) if deed else (),
        words=("edit", tool),
    )
