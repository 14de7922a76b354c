"""Versions that do not work together, seen when something is imported or was removed, and what fixed it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.lessons.candidate import Candidate
from archivist.reading.failures import Failure
from archivist.reading.packages import distribution_name, is_own_module
from archivist.reading.rules import FailureKind
from archivist.reading.wording import LONGEST_SUMMARY, code, first_sentence, format_rule, quote_error
from archivist.records import Category
from archivist.reflect.miners.material import Material, describe_remedy, make_candidate

_INSTALLED = re.compile(r"(?:site|dist)-packages/([\w-]+)")
_REMOVED_IN = re.compile(r"removed in (?:the )?(\w+) v?(\d+)")
_NOT_IN = re.compile(r"cannot import name '?(\w+)'? from '?([\w.]+)")
_HELP_COUNT = " (helped in "
# Modules of Python itself that lost names over time.
_STANDARD = frozenset(
    ("inspect", "collections", "typing", "asyncio", "types", "imp", "distutils", "fractions", "unittest",
     "importlib", "time", "string", "gettext", "xml", "cgi", "ast")
)  # fmt: skip


def mine_environment(material: Material) -> Iterator[Candidate]:
    """Say what is incompatible, where it shows, and the change or pin that helps."""
    for case in material.of_kind(FailureKind.VERSION_CONFLICT, FailureKind.IMPORT_ERROR):
        failure, remedy, installed = case.first.failure, case.best_remedy(), case.first.after
        named = _NOT_IN.search(failure.line)
        # A name that the project itself lacks is a matter of its code.
        if named and is_own_module(named[2], material.project):
            continue
        cause, pin = _cause(failure)
        is_from_install = installed is not None and installed.is_of_project and "too old" in cause
        when = f" after {code(installed.text)}" if installed and is_from_install else ""
        at_import = " at import" if failure.is_at_import else ""
        error = quote_error(case.line, 130)
        error = first_sentence(error) if remedy or pin else error
        problem = f"{material.name} fails{at_import}{when}: {error}" + (f" ({cause})" if cause else "")
        done = describe_remedy(case, remedy, is_whole=True) if remedy else ""
        addition = ""
        if pin and pin.split()[-1].strip("'") not in done:
            addition = f", or {code(pin)}" if done else code(pin)
        if len(problem) + 2 + len(done + addition) > LONGEST_SUMMARY:
            # How often it helped matters less than the remedy and the pin.
            done = done.split(_HELP_COUNT)[0]
        done += addition
        yield make_candidate(
            material,
            case,
            f"{problem}: {done}" if done else problem,
            rule=format_rule(f"{material.name} fails with “{error}”", done) if done else "",
            remedies=tuple(filter(None, (remedy.text if remedy else "", pin))),
            category=Category.INFRA,
            words=("version", failure.subject.split(".")[0]),
        )


def _cause(failure: Failure) -> tuple[str, str]:
    """Return which package is at fault, and the command that must help, as far as the error tells."""
    removed = _REMOVED_IN.search(failure.line)
    if removed:
        return "", f"pip install '{removed[1].lower()}<{removed[2]}'"
    named = _NOT_IN.search(failure.line)
    installed = _INSTALLED.search(failure.files[-1]) if failure.files else None
    module = (named[2] if named else failure.subject).split(".")[0]
    if installed and module in _STANDARD:
        return f"the installed {installed[1]} is too old for this Python", f"pip install -U {installed[1]}"
    if module in _STANDARD:
        return "removed from newer Pythons", ""
    if named and not installed:
        return f"the installed {distribution_name(module)} is not the version that the code expects", ""
    return "", ""
