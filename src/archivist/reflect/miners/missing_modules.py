"""Modules that are not installed: one lesson that names them all, with the one command that brings them."""

from __future__ import annotations

from collections import Counter

from archivist.lessons.candidate import Candidate
from archivist.reading.packages import (
    Install,
    distribution_name,
    installs,
    is_own_module,
    is_standard,
    is_uninstallable,
    package_name,
    version_added,
    version_removed,
)
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.shell import parse
from archivist.reading.wording import code, format_list, format_rule
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, describe_remedy, make_candidate

_SURE = 2
_OFTEN = 3
_MOST = 7
_BY_PROGRAM = {"python": "pip install", "node": "npm install", "go": "go get"}


def mine_missing_modules(material: Material) -> list[Candidate]:
    """Say which modules a project lacks at the start and what installs them."""
    return [
        _uninstallable_lesson(material, case) if _is_uninstallable(case) else _lesson(material, case)
        for case in material.of_kind(FailureKind.MISSING_MODULE)
        if case.subjects and (not _is_uninstallable(case) or case.remedies or case.tasks >= _SURE)
    ]


def _is_uninstallable(case: Case) -> bool:
    """Say whether a module of Python itself or a part of a package is missing that no install brought."""
    return is_uninstallable(case.first.failure.subject) and case.best_remedy(RemedyKind.INSTALL) is None


def _uninstallable_lesson(material: Material, case: Case) -> Candidate:
    """Say that this Python, or a package that is there, has no such module."""
    module = case.first.failure.subject
    remedy = case.best_remedy()
    done = describe_remedy(case, remedy, is_whole=True) if remedy else ""
    lacks = f"{material.name} has no module {code(module)}"
    if is_standard(module):
        lacks = f"{material.name}: {code(module)} {_describe_versions(module)}"
    return make_candidate(
        material,
        case,
        f"{lacks}: {done}" if done else lacks,
        rule=format_rule(f"{code(module)} is not found in {material.name}", done) if done else "",
        remedies=(remedy.text,) if remedy else (),
        category=Category.INFRA if is_standard(module) else Category.HEURISTIC,
        words=("python" if is_standard(module) else "import", module),
    )


def _describe_versions(module: str) -> str:
    """Say which Pythons have a module."""
    if version_added(module):
        return f"came with Python {version_added(module)}, and an older one runs here"
    if version_removed(module):
        return f"is gone since Python {version_removed(module)}"
    return "belongs to Python, and the one that runs here lacks it"


def _lesson(material: Material, case: Case) -> Candidate:
    own = [each for each in case.subjects if is_own_module(each, material.project)]
    lacking = _needed_modules(case, own)
    command = _command(case, own, lacking)
    things = [code(each) for each in lacking[:_MOST]]
    if own:
        things = [f"{material.name} itself", *things]
    are = "is" if len(things) == 1 else "are"
    missing = f"{format_list(things, most=_MOST)} {are} not installed"
    where = "" if own else f"{material.name}: "
    summary = f"{where}{missing}: {code(command)}" if command else f"{where}{missing}"
    return make_candidate(
        material,
        case,
        summary,
        rule=format_rule(f"starting to run code or tests of {material.name}", f"first {code(command)}")
        if command
        else "",
        remedies=(command,) if command else (),
        category=Category.INFRA,
        words=("install", *lacking[:4]),
    )


def _needed_modules(case: Case, own: list[str]) -> list[str]:
    """Return the modules that most runs need, not what one task wanted."""
    found = {each: runs for each, runs in case.subjects.items() if each not in own}
    often = [each for each, runs in found.items() if runs > 1 or case.runs < _OFTEN]
    return sorted(often or found, key=lambda each: -found[each])


def _command(case: Case, own: list[str], lacking: list[str]) -> str:
    """Return one command for all: what runs installed, and the rest by the name of the module."""
    seen = [
        (install, runs)
        for remedy, runs in case.remedies
        if remedy.way is RemedyKind.INSTALL
        for install in installs(parse(remedy.text))
    ]
    managers = Counter(install.manager for install, runs in seen for _ in range(runs))
    program = case.first.failure.signature.program
    manager = managers.most_common(1)[0][0] if managers else ""
    if not manager:
        # Nothing shows that installing helps here; naming the command would be a guess.
        return ""
    by_project = [install for install, _ in seen if install.is_of_project]
    packages: dict[str, str] = {}
    if by_project and (own or _is_only_by_project(seen, lacking)):
        packages["."] = " ".join((*by_project[0].flags, *by_project[0].packages))
    elif own and manager == "pip install":
        packages["."] = "-e ."
    for module in lacking[:_MOST]:
        name = distribution_name(module)
        # What nobody installed by name came with the project, where the project was installed.
        guess = "" if by_project else name
        packages[name] = _installed_spelling(name, seen) or (
            guess if manager == _BY_PROGRAM.get(program) else ""
        )
    along = [name for name in _installed_along(case, seen) if name not in packages]
    packages |= {name: _installed_spelling(name, seen) for name in along[: _MOST - len(packages)]}
    return " ".join((manager, *(each for each in packages.values() if each)))


def _installed_along(case: Case, seen: list[tuple[Install, int]]) -> list[str]:
    """Return what runs installed along with what was missing, when more than one did."""
    along = Counter[str]()
    for install, runs in seen:
        if not install.is_of_project:
            along.update({package_name(package): runs for package in install.packages})
    return [name for name, runs in along.most_common() if runs > 1 or case.runs == 1]


def _is_only_by_project(seen: list[tuple[Install, int]], lacking: list[str]) -> bool:
    """Say whether no package that was missing was installed by its name."""
    named = {
        package_name(each) for install, _ in seen if not install.is_of_project for each in install.packages
    }
    return not named & set(map(distribution_name, lacking))


def _installed_spelling(name: str, seen: list[tuple[Install, int]]) -> str:
    for install, _ in seen:
        for package in install.packages:
            if package_name(package) == name:
                return f"'{package}'" if any(mark in package for mark in "<>!=[") else package
    return ""
