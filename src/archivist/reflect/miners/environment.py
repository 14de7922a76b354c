"""Versions that do not go together, seen when something is imported or removed, and what put it right."""

from __future__ import annotations

import re

from archivist.lessons.candidate import Candidate
from archivist.reading.failures import Failure
from archivist.reading.packages import distribution_name, is_own_module
from archivist.reading.rules import FailureKind
from archivist.reading.wording import LONGEST_SUMMARY, code, first_sentence, format_rule, quote_error
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, describe_remedy, make_candidate

_INSTALLED = re.compile(r"(?:site|dist)-packages/([\w-]+)")
_REMOVED_IN = re.compile(r"removed in (?:the )?(\w+) v?(\d+)")
_NOT_IN = re.compile(r"cannot import name '?(\w+)'? from '?([\w.]+)")
_COUNTED = " (helped in "
# Modules of Python itself that lost names over time.
_STANDARD = frozenset(
    ("inspect", "collections", "typing", "asyncio", "types", "imp", "distutils", "fractions", "unittest",
     "importlib", "time", "string", "gettext", "xml", "cgi", "ast")
)  # fmt: skip


def mine_environment(material: Material) -> list[Candidate]:
    """Say what is incompatible, where it shows, and the change or pin that helps."""
    found = material.of_kind(FailureKind.VERSION_CONFLICT, FailureKind.IMPORT_ERROR)
    return [_lesson(material, case) for case in found if _is_of_environment(case, material)]


def _is_of_environment(case: Case, material: Material) -> bool:
    """Say whether a name is missing from a library and not from the project itself."""
    named = _NOT_IN.search(case.first.failure.line)
    return named is None or not is_own_module(named[2], material.project)


def _lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    remedy = case.best_remedy()
    cause, pin = _cause(failure)
    installed = case.first.after
    is_brought = bool(installed and installed.is_of_project and cause and "too old" in cause)
    when = f" after {code(installed.text)}" if installed and is_brought else ""
    at_import = (
        f"{material.name} fails at import{when}" if failure.is_at_import else f"{material.name} fails{when}"
    )
    because = f" ({cause})" if cause else ""
    told = first_sentence(quote_error(case.line, 130)) if remedy or pin else quote_error(case.line, 130)
    happens = f"{at_import}: {told}{because}"
    done = _join_remedies(
        describe_remedy(case, remedy, is_whole=True) if remedy else "",
        pin,
        LONGEST_SUMMARY - len(happens) - 2,
    )
    return make_candidate(
        material,
        case,
        f"{happens}: {done}" if done else happens,
        rule=format_rule(f"{material.name} fails with “{told}”", done) if done else "",
        remedies=tuple(filter(None, (remedy.text if remedy else "", pin))),
        category=Category.INFRA,
        words=("version", failure.subject.split(".")[0]),
    )


def _join_remedies(text: str, pin: str, longest: int) -> str:
    """Say what helped and the pin beside it; how often it helped is left out before either is cut."""
    if pin and pin.split()[-1].strip("'") not in text:
        beside = f", or {code(pin)}" if text else code(pin)
    else:
        beside = ""
    return f"{text}{beside}" if len(text + beside) <= longest else f"{text.split(_COUNTED)[0]}{beside}"


def _cause(failure: Failure) -> tuple[str, str]:
    """Return which package is at fault, and the command that by its nature helps, where the error tells."""
    removed = _REMOVED_IN.search(failure.line)
    if removed:
        return "", f"pip install '{removed[1].lower()}<{removed[2]}'"
    named = _NOT_IN.search(failure.line)
    where = _INSTALLED.search(failure.files[-1]) if failure.files else None
    module = (named[2] if named else failure.subject).split(".")[0]
    if where and module in _STANDARD:
        return f"the installed {where[1]} is too old for this Python", f"pip install -U {where[1]}"
    if module in _STANDARD:
        return "removed from newer Pythons", ""
    if named and not where:
        return f"the installed {distribution_name(module)} is not the version that the code expects", ""
    return "", ""
