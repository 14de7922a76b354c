"""Commands that make or mend files by themselves: builds, generators, fixers and formatters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.evasions import only_shows
from archivist.reading.outcomes import has_step_worked
from archivist.reading.packages import is_install
from archivist.reading.programs import PACKAGE_MANAGERS
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import Cure
from archivist.reading.shell import Step, parse
from archivist.reading.wording import general_command, is_informative
from archivist.reading.works import command_purpose

_MENDS = lazy_pattern(
    r"(?:^|[\s:_-])(?:(?:fix|format|[a-z]{0,6}fmt|prettier|black)(?:$|[\s:=_-])|write(?:$|[\s:=]))"
)
_SOURCE_FILE = lazy_pattern(
    r"['\"]?(?:[\w.@+\[\]()-]{1,80}/){0,12}[\w.@+\[\]()-]{1,80}\.[A-Za-z]\w{0,5}['\"]?"
)
# What follows is a file of settings. A program may have the name of a file, too.
_SETTING_FLAG = lazy_pattern(r"(?:-c|--?(?:config|ignore|plugin|tsconfig|project)[\w-]{0,20})$")
_FIXING_FLAG = lazy_pattern(r"--?(?:auto-?)?(?:fix|write|correct)(?:-[a-z]{1,20})?$")
# Package managers show the script that they run: below its name, or behind a dollar.
_SHOWN_SCRIPT = lazy_pattern(r"^(?:> [^\n]{1,300}\n> |\$ )([^\n]{1,300})$", re.MULTILINE)
_RUNNER = lazy_pattern(r"(?<![\w/.-])(npx|bunx) (?=(\w[\w.-]{0,60})(?:\s|$))")
_SHOWN_CHARACTERS = 4_000
_GENERATES = lazy_pattern(r"(?:^|[\s:_-])(?:gen(?:erate)?|codegen|prepare|compile|bundle)(?:$|[\s:_-])")


def mends_style(command: str) -> bool:
    """Say whether a command corrects files by itself, as a formatter does."""
    return bool(_MENDS.search(command))


def without_mended_files(command: str) -> str:
    """Return a command that mends files with `<file>` for each: the next run has changed others."""
    if not mends_style(command):
        return command
    given = command.split(" ")
    words = [
        "<file>" if _SOURCE_FILE.fullmatch(word) and not _SETTING_FLAG.match(before) else word
        for word, before in zip(given, ["-c", *given], strict=False)
    ]
    return " ".join(
        word for word, before in zip(words, ["", *words], strict=False) if (word, before) != ("<file>",) * 2
    )


def cure_by_fixer(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for what mended files, where the option was refused that was to mend them."""
    if not _FIXING_FLAG.match(failed.subject):
        return None
    for act in later:
        for step in act.steps:
            text = without_mended_files(general_command(step.text))
            is_fixer = mends_style(text) and not only_shows(step) and is_informative(text)
            if is_fixer and has_step_worked(act, step):
                return Cure(Remedy(RemedyKind.COMMAND, text, failed.display_text), (act,))
    return None


def installed_only(text: str, acts: Sequence[ToolCall]) -> str:
    """Return a command that fetches no package: what a script of the project calls is installed here.

    The scripts are those that package managers showed in this run. A program may print the same, so a
    runner is told to fetch nothing, and then runs what the project has, or fails.
    """
    shown = "\n".join(
        script
        for act in acts
        if any(step.program in PACKAGE_MANAGERS for step in act.steps)
        for script in _SHOWN_SCRIPT.findall(act.event.output[:_SHOWN_CHARACTERS])
    )
    names = {step.program for step in parse(shown)} if shown else set()
    return _RUNNER.sub(lambda found: f"{found[1]} --no-install " if found[2] in names else found[0], text)


def makes_files(step: Step) -> bool:
    """Say whether a step builds, generates or installs something."""
    return is_install(step) or command_purpose(step) == "build" or bool(_GENERATES.search(step.name))
