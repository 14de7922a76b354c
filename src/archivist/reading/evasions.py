"""Options with which a call succeeds because it does less: it only shows, prints, skips or forces.

Success with such an option says nothing about the call without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.shell import Step

# Flags that leave tests out: the failing test is then merely not run.
SELECTING = lazy_pattern(
    r"-k|-m$|--deselect|--ignore|--lf|--ff|--last|--exclude|--skip|-t$|--testName|--grep|<test>"
    r"|--(?:lib|bins?|docs?|examples?|benches|unit|smoke|only|shard|suite)(?:=|$)"
)
# Options that keep a program from refusing, or let it try until it passes.
FORCES = lazy_pattern(
    r"--(?:force|no-(?:verify|check|fail|strict|audit|ssl|gpg)|skip|ignore|allow|disable|unsafe|insecure"
    r"|retr(?:y|ies)\b|reruns?\b)"
    r"|-D(?:\w+\.)*\w*[sS]kip|-x$"
)
# How a message names the way around a protection. A reader of a lesson may have no right to it.
_BYPASSES = lazy_pattern(
    r"(?i)(?<![\w-])--(?:admin|force(?!-with-lease)|no-verify|no-check|no-gpg|skip|ignore|allow|disable"
    r"|unsafe|insecure|override|bypass|yolo|trust|dangerously|break-)[\w-]{0,40}"
    r"|\b(?:administrator|overrid(?:e|es|ing)|bypass(?:es|ing)?|circumvent\w{0,4}|at your own risk)\b"
)
# Options with which a program shows what it would do, what there is, or how it is used.
_SHOWING = lazy_pattern(
    r"--?(?:dry-?run|dry|just-print|recon|simulate|simulation|what-?if|whatif|no-?op|no-act|no-run|preview"
    r"|plan|plan-only|diff|check|check-only|checkonly|syntax-check|validate-only|list|list-[\w-]{1,30}|listTests"
    r"|showConfig|show-config|print-config|collect-only|co|help|version|explain|test-dry-run)(?:=\S{0,40})?$"
)
_SHOWING_CAMEL = lazy_pattern(r"-(?:WhatIf|DryRun|ListAvailable|Help)$")
# A dry run in one letter, where it is known.
_SHOWING_LETTERS = {
    **dict.fromkeys(("make", "gmake", "just", "ninja", "rsync", "task"), frozenset(("-n",))),
    **dict.fromkeys(("apt", "apt-get", "zypper"), frozenset(("-s", "-D"))),
    "ctest": frozenset(("-N",)),
    **dict.fromkeys(("tox", "nox"), frozenset(("-l",))),
    "bash": frozenset(("-n",)),
    "sh": frozenset(("-n",)),
    "ansible-playbook": frozenset(("-C",)),
}
_GIT_DRY = frozenset(("push", "clean", "add", "rm", "mv"))


def is_evasion(step: Step, wrong: Step) -> bool:
    """Say whether a step has a new option that only keeps it from failing: fewer tests, fewer checks."""
    new = set(step.values) - set(wrong.values)
    return any(SELECTING.match(word) or FORCES.match(word) for word in new)


def only_shows(step: Step) -> bool:
    """Say whether a step has an option with which it does nothing but show something."""
    letters = _SHOWING_LETTERS.get(step.program, frozenset[str]())
    if step.program == "git" and step.subcommand in _GIT_DRY:
        letters = frozenset(("-n",))
    return any(flag in letters or _SHOWING.match(flag) or _SHOWING_CAMEL.match(flag) for flag in step.flags)


def shows_instead(steps: Sequence[Step], wrong: Sequence[Step], message: str) -> bool:
    """Say whether a call only shows what another would have done, unless the message asks for that."""
    showing = [step for step in steps if only_shows(step)]
    is_asked = any(flag in message.split() for step in showing for flag in step.flags)
    return bool(showing) and not is_asked and not any(map(only_shows, wrong))


def is_bypass(text: str) -> bool:
    """Say whether words tell a reader how to get around a protection."""
    return bool(_BYPASSES.search(text))
