"""Modules, commands and files that are missing or of the wrong version, and what provides them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.lessons.risky_text import is_plain_name
from archivist.reading.command_risks import text_risk
from archivist.reading.failures import Failure
from archivist.reading.launchers import end_of_launcher
from archivist.reading.observed import ANY_PROGRAM
from archivist.reading.packages import (
    distribution_name,
    installs,
    is_own_module,
    is_standard,
    is_uninstallable,
    package_name,
    quote_package,
    version_added,
    version_removed,
)
from archivist.reading.remedies import ENTERS, Remedy, RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import RunReading
from archivist.reading.shell import installed_program, parse
from archivist.reading.wording import (
    LONGEST_SUMMARY,
    advice,
    base_name,
    code,
    format_list,
    format_rule,
    quote_error,
    relative_path,
)
from archivist.records import Category
from archivist.reflect.miners.material import (
    Case,
    Material,
    describe_offer,
    describe_remedy,
    folder_entry,
    lesson_with_advice,
    make_candidate,
)

# From this many runs on, a module that a single run missed is taken for a wish of its task.
_MANY_RUNS = 3
_MOST_MODULES = 7
# What a language can import; anything else in its place was made up to be told.
_MODULE_NAME = lazy_pattern(r"@?[A-Za-z_][\w./@-]{0,99}")
_INSTALLED = lazy_pattern(r"(?:site|dist)-packages/([\w-]+)")
_REMOVED_IN = lazy_pattern(r"removed in (?:the )?(\w+) v?(\d+)")
_NOT_IN = lazy_pattern(r"cannot import name '?(\w+)'? from '?([\w.]+)")
_WORKED_COUNT = " (worked in "
# Runs what lies there: other launchers may fetch it.
_RUNS_INSTALLED = lazy_pattern(
    r"(?:[\w.~-]{0,60}/)[\w./~-]{1,200}(?: |$)|PATH=|(?:uv|poetry|pdm|hatch|pipenv|rye|pixi|bun) run "
    r"|(?:corepack )?(?:pnpm|yarn)(?: -{1,2}[\w-]{1,20}[ =][\w@./-]{1,60}){0,3} exec "
    r"|(?:bundle|mise|asdf|rbenv) exec |npx --no(?:-install)? |mise x -- |python3? -m "
    r"|node (?:[\w@.-]{1,60}/){0,12}node_modules/"
)
# Modules of Python itself that lost names over time.
_STANDARD = frozenset(
    ("inspect", "collections", "typing", "asyncio", "types", "imp", "distutils", "fractions", "unittest",
     "importlib", "time", "string", "gettext", "xml", "cgi", "ast")
)  # fmt: skip


def mine_missing_modules(material: Material) -> Iterator[Candidate]:
    """Say which modules a project lacks at the start: one lesson and one install command for all."""
    for case in material.of_kind(FailureKind.MISSING_MODULE):
        if not case.subjects or not is_plain_name(case.first.failure.subject):
            continue
        if is_uninstallable(case.first.failure.subject) and not case.best_remedy(RemedyKind.INSTALL):
            if case.remedies or case.tasks > 1:
                yield _uninstallable_lesson(case)
            continue
        own = [module for module in case.subjects if is_own_module(module, material.project)]
        counts = {module: runs for module, runs in case.subjects.items() if module not in own}
        # A module that a single run of many missed is one that its task wanted.
        is_installed = case.best_remedy(RemedyKind.INSTALL) is not None
        often = [
            module
            for module, runs in counts.items()
            if runs > 1 or (case.runs < _MANY_RUNS and (is_installed or case.runs == 1))
        ]
        if not own and not often and not is_installed:
            continue
        needed = sorted(often or counts, key=lambda module: -counts[module])
        needed = [module for module in needed if _MODULE_NAME.fullmatch(module)]
        command, installed = _install_command(case, own, needed)
        # What an error names is advice to nobody: a command holds only what runs installed with success.
        needed = [module for module in needed if module in installed] if command else needed
        if not own and not needed:
            continue
        step = case.best_remedy(RemedyKind.STEP)
        if not command and step:
            yield lesson_with_advice(case, step, describe_remedy(case, step))
            continue
        names = (
            _name_of(module, is_typed=module in command or _is_typed(case.reading, module))
            for module in needed[:_MOST_MODULES]
        )
        things = [*["the project itself"] * bool(own), *filter(None, names)]
        if not things:
            continue
        are = "is" if len(things) == 1 else "are"
        missing = f"{format_list(things, most=_MOST_MODULES)} {are} not installed"
        start = "starting to run code or tests"
        yield make_candidate(
            case,
            f"{missing}: {code(command)}" if command else missing,
            rule=format_rule(start, f"run {code(command)} first") if command else "",
            remedies=(command,) if command else (),
            category=Category.INFRA,
            words=("install", *needed[:4]),
        )


def _name_of(missing: str, *, is_typed: bool) -> str:
    """Return the name of something missing as it is told; one that a program alone named, as a quotation.

    A program may choose it, so one that is a sentence is not told.
    """
    if not is_plain_name(missing):
        return ""
    return code(missing) if is_typed else f"“{missing}”"


def _is_typed(reading: RunReading, name: str) -> bool:
    """Say whether a call of the run names it, and not only what a program printed."""
    return any(name in act.event.text or name in act.event.target for act in reading.acts)


def _uninstallable_lesson(case: Case) -> Candidate:
    """Say that this Python, or an installed package, has no such module."""
    module = case.first.failure.subject
    remedy = case.best_remedy()
    done = describe_remedy(case, remedy, is_whole=True) if remedy else ""
    shown = _name_of(module, is_typed=is_standard(module) or _is_typed(case.reading, module))
    lacks = f"there is no module {shown} here"
    if is_standard(module):
        known = "is part of Python, but the one that runs here lacks it"
        if version := version_added(module):
            known = f"needs Python {version} or newer, and an older one runs here"
        elif version := version_removed(module):
            known = f"was removed in Python {version}"
        lacks = f"{code(module)} {known}"
    return make_candidate(
        case,
        lacks,
        done,
        when=f"{shown} is not found",
        remedies=(remedy.text,) if remedy else (),
        category=Category.INFRA if is_standard(module) else Category.HEURISTIC,
        words=("python" if is_standard(module) else "import", module),
    )


def _install_command(case: Case, own: list[str], needed: list[str]) -> tuple[str, list[str]]:
    """Return one command of what runs installed with success, and the modules that it brought.

    It stands with the folder in which most of them ran it: elsewhere it would install something else.
    """
    remedies = [(remedy, runs) for remedy, runs in case.remedies if remedy.way is RemedyKind.INSTALL]
    placed: Counter[str] = Counter()
    for remedy, runs in remedies:
        placed[folder_entry(remedy.text)] += runs
    folder = placed.most_common(1)[0][0] if placed else ""
    remedies = [(remedy, runs) for remedy, runs in remedies if folder_entry(remedy.text) == folder]
    seen = [(install, runs) for remedy, runs in remedies for install in installs(parse(remedy.text))]
    for text in (remedy.text for remedy, _ in remedies):
        # In other words a risky command would pass for a harmless one, or install something else.
        if text_risk(text) or any(install.has_source for install in installs(parse(text))):
            return text, needed
    if not seen:
        # Nothing shows that installing helps here; naming a command would be a guess.
        return "", []
    managers = Counter(install.manager for install, runs in seen for _ in range(runs))
    manager = managers.most_common(1)[0][0]
    by_project = [install for install, _ in seen if install.is_of_project]
    by_name = Counter[str]()
    spelling: dict[str, str] = {}
    for install, runs in seen:
        for package in install.packages:
            spelling.setdefault(package_name(package), quote_package(package))
        if not install.is_of_project:
            by_name.update({package_name(package): runs for package in install.packages})
    packages: dict[str, str] = {}
    if by_project and (own or by_name.keys().isdisjoint(map(distribution_name, needed))):
        packages["."] = " ".join((*by_project[0].flags, *by_project[0].packages))
    elif own and manager == "pip install":
        packages["."] = "-e ."
    # Where the project was installed, a module that nobody installed by name came with it.
    brought = [module for module in needed if by_project or distribution_name(module) in spelling]
    names = [distribution_name(module) for module in brought[:_MOST_MODULES]]
    packages |= {name: spelling.get(name, "") for name in names}
    along = [name for name, runs in by_name.most_common() if runs > 1 or case.runs == 1]
    along = [name for name in along if name not in packages]
    packages |= {name: spelling[name] for name in along[: max(0, _MOST_MODULES - len(packages))]}
    return folder + " ".join((manager, *filter(None, packages.values()))), brought


def _without_arguments(case: Case) -> Remedy | None:
    """Return the best remedy; where it runs the missing command through another, only up to its name."""
    remedy, name = case.best_remedy(), case.first.failure.subject
    words = remedy.text.split() if remedy and remedy.way is RemedyKind.COMMAND else []
    end = end_of_launcher(words, name)
    return remedy if remedy is None or end < 2 else remedy._replace(text=" ".join(words[:end]))


def mine_missing_commands(material: Material) -> Iterator[Candidate]:
    """Say which command is missing, once a second run missed it or something is known to provide it."""
    together: dict[str, str] = {}
    for case in material.of_kind(FailureKind.MISSING_COMMAND):
        if case.key.endswith(ANY_PROGRAM) and (found := _mine_uninstalled(case)):
            together |= dict.fromkeys(case.subjects, found.remedies[0])
            yield found
    for case in material.of_kind(FailureKind.MISSING_COMMAND):
        subject, remedy = case.first.failure.subject, _without_arguments(case)
        if case.key.endswith(ANY_PROGRAM) or (remedy and together.get(subject) == remedy.text):
            continue
        if not _is_program_name(subject) or (remedy is None and case.runs == 1):
            continue
        typed = (word.value for step in case.first.act.steps for word in step.words)
        is_typed = subject in (*typed, *(remedy.text.split() if remedy else ()))
        if not (missing := _name_of(subject, is_typed=is_typed)):
            continue
        remedy = remedy or _called_by_path(material.works, subject)
        if remedy is None:
            yield make_candidate(
                case,
                f"{missing} is not installed here",
                describe_offer(offer) if (offer := case.offer) else "",
                when=f"{missing} is needed",
                category=Category.INFRA,
            )
            continue
        done, is_install = advice(remedy), remedy.way is RemedyKind.INSTALL
        lacks = "is not found until it is installed" if is_install else "is not installed here"
        lacks = "is installed, but not on the PATH" if _is_elsewhere(case, remedy) else lacks
        yield make_candidate(
            case,
            f"{missing} {lacks}: {done}",
            rule=format_rule(f"{missing} is needed", f"run {done} first" if is_install else done),
            remedies=(remedy.text,),
            category=Category.INFRA,
            words=(subject,),
        )


def _called_by_path(works: Iterable[str], name: str) -> Remedy | None:
    """Return the path, or the launcher, by which runs called a program with success."""
    calls = (ENTERS.sub("", command).split() for command in sorted(works))
    places = ((words, at) for words in calls for at, word in enumerate(words) if base_name(word) == name)
    found = (" ".join(words[: at + 1]) for words, at in places if at or "/" in words[0])
    texts = (text for text in found if _RUNS_INSTALLED.match(text))
    return next((Remedy(RemedyKind.COMMAND, text) for text in texts), None)


def _is_elsewhere(case: Case, remedy: Remedy) -> bool:
    """Say whether a call by path or behind a launcher shows that a missing program is installed."""
    # `mise x hk -- hk` names it twice: the launcher fetches it.
    best, name = case.best_remedy() or remedy, case.first.failure.subject
    words = best.text.split()
    is_named_once = sum(name in (base_name(word), installed_program(word)) for word in words) == 1
    is_installed = is_named_once and _RUNS_INSTALLED.match(ENTERS.sub("", remedy.text))
    return remedy.way is RemedyKind.COMMAND and bool(is_installed)


def _mine_uninstalled(case: Case) -> Candidate | None:
    """Say which programs are missing until the project is installed: one cause, however many there are."""
    past = case.past.runs_meeting(case.project, case.key)
    noted = [run.digest_part("failures").get(case.key) or {} for run in past]
    typed = {name for entry in noted for name in entry.get("typed") or ()}
    names = [
        shown
        for name in sorted(case.subjects)
        if _is_program_name(name)
        and (shown := _name_of(name, is_typed=name in typed or _is_typed(case.reading, name)))
    ]
    remedy = case.best_remedy(RemedyKind.STEP)
    if remedy is None or not names[1:]:
        return None
    missing = f"{format_list(names, most=_MOST_MODULES)} are missing in a fresh worktree"
    return make_candidate(
        case,
        f"{code(remedy.text)} first: {missing}",
        rule=format_rule("a worktree is fresh", f"run {code(remedy.text)} before checks and tests"),
        remedies=(remedy.text,),
        category=Category.INFRA,
        words=("install", *list(case.subjects)[:4]),
    )


def _is_program_name(name: str) -> bool:
    """Say whether a person would type a name: `$cmd` or `_tool` is no program."""
    return bool(name) and not name.startswith(("_", "-", "$"))


def mine_missing_files(material: Material) -> Iterator[Candidate]:
    """Say where a file is that was looked for in the wrong place. A single wrong guess is no lesson."""
    for case in material.of_kind(FailureKind.MISSING_FILE):
        remedy = case.best_remedy(RemedyKind.PATH)
        # A path that one run guessed wrong was its own guess.
        is_plain = remedy is not None and is_plain_name(remedy.text) and is_plain_name(remedy.instead)
        if remedy is not None and is_plain and case.runs > 1:
            yield make_candidate(
                case,
                f"{code(remedy.instead)} does not exist: it is {code(remedy.text)}",
                rule=format_rule(f"{code(remedy.instead)} is looked for", f"open {code(remedy.text)}"),
                remedies=(remedy.text,),
                category=Category.HEURISTIC,
                words=("path",),
            )
            continue
        if case.first.act.steps and (other := case.best_remedy(RemedyKind.COMMAND)):
            yield lesson_with_advice(case, other, describe_remedy(case, other))
            continue
        subject = case.first.failure.subject.rstrip("/")
        is_of_project = not subject.startswith(("/", "~")) and not re.search(r"::|[*?<>$|\s]", subject)
        is_found = any(
            subject == argument.rstrip("/").removeprefix("./")
            for act in material.reading.acts
            if not act.has_failed
            for argument in (act.event.target, *(word for step in act.steps for word in step.arguments))
        )
        path = relative_path(case.first.failure.subject)
        named = _name_of(path, is_typed=_is_typed(case.reading, subject)) if subject and is_of_project else ""
        if case.runs > 1 and named and not is_found:
            summary = f"there is no file or folder {named}"
            yield make_candidate(case, summary, category=Category.HEURISTIC)


def mine_environment(material: Material) -> Iterator[Candidate]:
    """Say what is incompatible, where it shows, and the change or pin that helps."""
    for case in material.of_kind(FailureKind.VERSION_CONFLICT, FailureKind.IMPORT_ERROR):
        failure, remedy, installed = case.first.failure, case.best_remedy(), case.first.after
        absent = _NOT_IN.search(failure.line)
        # A name that the project itself lacks is a matter of its code.
        if absent and is_own_module(absent[2], material.project):
            continue
        if remedy and remedy.way in (RemedyKind.COMMAND, RemedyKind.STEP):
            yield lesson_with_advice(case, remedy, describe_remedy(case, remedy))
            continue
        cause, package, pin = _cause(failure)
        at_fault = package or (absent[2].split(".")[0] if absent else "")
        if at_fault and not _is_typed(case.reading, at_fault):
            # Only the error names it, and whoever wrote the program chose what it prints.
            if not is_plain_name(absent[2] if absent else at_fault):
                continue
            cause = cause.replace(distribution_name(at_fault), f"“{distribution_name(at_fault)}”", 1)
        # What an error names is advice to nobody: a pin is told for a package that the run itself installed.
        acts = (act for act in material.reading.acts if not act.has_failed)
        named = {package_name(each) for act in acts for install in act.installs for each in install.packages}
        pin = pin if package_name(package) in named else ""
        is_from_install = installed is not None and installed.is_of_project and "too old" in cause
        when = f" after {code(installed.text)}" if installed and is_from_install else ""
        at_import = " at import" if failure.is_at_import else ""
        error = quote_error(case.line, 130)
        if remedy or pin:
            # The first sentence is enough, without the class of the error.
            error = re.sub(r"^\w*(?:Error|Exception|Conflict): ", "", error).split(". ", 1)[0]
        problem = f"the project fails{at_import}{when}: “{error}”" + (f" ({cause})" if cause else "")
        done = describe_remedy(case, remedy, is_whole=True) if remedy else ""
        addition = ""
        if pin and pin.split()[-1].strip("'") not in done:
            addition = f", or {code(pin)}" if done else code(pin)
        if len(problem) + 2 + len(done + addition) > LONGEST_SUMMARY:
            # How often it worked matters less than the remedy and the pin.
            done = done.split(_WORKED_COUNT)[0]
        done += addition
        yield make_candidate(
            case,
            problem,
            done,
            when=f"the project fails with “{error}”",
            remedies=tuple(filter(None, (remedy.text if remedy else "", pin))),
            category=Category.INFRA,
            words=("version", failure.subject.split(".")[0]),
        )


def _cause(failure: Failure) -> tuple[str, str, str]:
    """Return what is at fault, the package, and the command that must help, as far as the error tells."""
    removed = _REMOVED_IN.search(failure.line)
    if removed:
        package = removed[1].lower()
        return "", package, f"pip install '{package}<{removed[2]}'"
    named = _NOT_IN.search(failure.line)
    installed = _INSTALLED.search(failure.files[-1]) if failure.files else None
    module = (named[2] if named else failure.subject).split(".")[0]
    if installed and module in _STANDARD:
        package = installed[1]
        return f"the installed {package} is too old for this Python", package, f"pip install -U {package}"
    if module in _STANDARD:
        return "removed from newer Pythons", "", ""
    if named and not installed:
        missing = f"the installed {distribution_name(module)} is not the version that the code expects"
        return missing, "", ""
    return "", "", ""
