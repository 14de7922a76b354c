"""Check the chain from a client to the bank: its settings, the command they name, a hook that answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from archivist.doctor import Check
from archivist.edges.hook_events import CLIENTS, PROBE
from archivist.edges.install import changes, obstacles
from archivist.edges.install.calls import PROGRAM
from archivist.edges.install.clients import InstallLocation, targets
from archivist.edges.install.entries import named_programs
from archivist.errors import ArchivistError
from archivist.files import hook_log
from archivist.paths import bank_file, is_file

_PATIENCE_S = 10
# The client waits for every hook; one that takes longer than this is noticed.
_SLOW_S = 2.0
# Claude Code runs a hook once that stands in several of its files.
_RUN_ONCE = ("claude-code",)


class ClientInstall(NamedTuple):
    """What a client's settings hold of ours: everything, some of it, or a reason why nobody can tell."""

    client: str
    scope: str
    is_whole: bool
    problem: str = ""
    hooks: frozenset[Path] = frozenset()

    @property
    def remedy(self) -> str:
        """Return the command that mends the settings."""
        return f"archivist install {self.client} --{self.scope}"


def check_chain(root: Path, home: Path | None, log_folder: Path) -> list[Check]:
    """Return every check of the chain for a project's folder and the user's home."""
    found = find_installs(root, home, CLIENTS)
    off = (
        obstacles.find_disabling_file(root, home)
        if any(each.client == "claude-code" for each in found)
        else ""
    )
    return [_check_clients(found, off), _check_command(found), _check_hook(found, root, log_folder)]


def find_installs(root: Path, home: Path | None, clients: Sequence[str]) -> list[ClientInstall]:
    """Return what the clients' settings in a project and in a home hold of ours."""
    places = [InstallLocation(root), *([InstallLocation(home, is_user=True)] if home is not None else [])]
    return [
        each for place in places for client in clients if (each := inspect_client(client, place)) is not None
    ]


def double_hook_warnings(found: Sequence[ClientInstall]) -> list[str]:
    """Say of each client whose hooks stand in both places, and would both fire, how to leave one."""
    places: dict[str, frozenset[Path]] = {}
    for each in found:
        places[each.client] = places.get(each.client, frozenset()) | each.hooks
    twice = [
        f"{client} is installed for this project and for you, so that each hook fires twice:"
        f" archivist uninstall {client} --user, or --project"
        for client, files in places.items()
        if len(files) > 1 and client not in _RUN_ONCE
    ]
    both = [each for each in found if each.client == "vscode" and each.hooks and places.get("claude-code")]
    return twice + [
        "VS Code runs claude-code's hooks too, so that a session in it is told twice:"
        f" archivist uninstall vscode --{each.scope}"
        for each in both
    ]


def inspect_client(client: str, place: InstallLocation) -> ClientInstall | None:
    """Return what a client's settings in a place hold of ours; None for nothing."""
    scope = "user" if place.is_user else "project"
    wanted = targets(client, place)
    try:
        ours = [target for target in wanted if changes.holds_ours(target)]
        if not ours:
            return None
        is_whole = all(change.action == "unchanged" for change in changes.plan_install(wanted))
    except ArchivistError as error:
        return ClientInstall(client, scope, False, f"{error.message}; {error.hint}")
    hooks = frozenset(target.path.resolve() for target in ours if "hooks" in target.what)
    return ClientInstall(client, scope, is_whole, hooks=hooks)


def _check_clients(found: list[ClientInstall], off: str) -> Check:
    broken = [f"{each.problem}: {each.remedy}" for each in found if each.problem]
    partial = [
        f"{each.client} has only a part of ours: {each.remedy}"
        for each in found
        if not each.is_whole and not each.problem
    ]
    silent = [f"claude-code runs no hooks: take disableAllHooks out of {off}"] if off else []
    if wrong := [*broken, *partial, *double_hook_warnings(found), *silent]:
        return Check("clients", False, "; ".join(wrong))
    if not found:
        return Check("clients", True, f"none is installed: archivist install {'|'.join(CLIENTS)}")
    return Check("clients", True, ", ".join(f"{each.client} ({each.scope})" for each in found))


def _check_command(found: list[ClientInstall]) -> Check:
    if lost := _missing_paths(found):
        return Check("command", False, "; ".join(lost))
    place = _find_program(found)
    if place is not None and found and obstacles.is_foreign_program(place):
        other = f"{place} is another program: put the folder of ours before it on PATH"
        return Check("command", False, other)
    if place is not None:
        return Check("command", True, place)
    if not found:
        return Check("command", True, f"{PROGRAM} is not on PATH, and no client needs it")
    return Check(
        "command",
        False,
        f"{PROGRAM} is not on PATH, so that no client can call it: install it with pipx or uv tool,"
        " or add its folder to PATH",
    )


def _called_programs(found: Sequence[ClientInstall]) -> list[tuple[str, str, str]]:
    """Return what the settings call: the client, the program as it is named, and the bank."""
    return [
        (each.client, program, bank)
        for each in found
        for path in sorted(each.hooks)
        for program, bank in dict.fromkeys(named_programs(path.read_text("utf-8", "replace"), str(path)))
    ]


def _missing_paths(found: Sequence[ClientInstall]) -> list[str]:
    """Say of each program and bank that the settings name by a path whether it is gone."""
    lost = []
    for client, program, bank in _called_programs(found):
        if _is_path(program) and shutil.which(program) is None:
            lost.append(f"{client} calls {program}, which is not there")
        if _is_path(bank) and not is_file(bank_file(Path(bank))):
            lost.append(f"{client} names the bank {bank}, which is not there")
    return [f"{each}: mend its settings" for each in dict.fromkeys(lost)]


def _find_program(found: Sequence[ClientInstall]) -> str | None:
    """Return the program that the settings call, or that they would."""
    named_so = [program for _, program, _ in _called_programs(found)] or [PROGRAM]
    return next(filter(None, map(shutil.which, named_so)), None)


def _is_path(word: str) -> bool:
    # What a shell would put in is not known here.
    return "/" in word and "$" not in word and not word.startswith("~")


def _check_hook(found: list[ClientInstall], root: Path, log_folder: Path) -> Check:
    """Call a hook as a client would, with an event that names no session, so that nothing is recorded."""
    place = _find_program(found)
    if not found or place is None:
        return Check("firing", True, "not tried: no client is installed" if not found else "not tried")
    event = json.dumps({"cwd": str(root), "workspace_roots": [str(root)], "source": "startup", PROBE: True})
    before, started = len(hook_log.read_log(log_folder)), time.monotonic()
    try:
        ran = subprocess.run(  # noqa: S603 the command that the client's settings name
            [place, "hook", found[0].client, "session-start"],
            input=event.encode(),
            cwd=root,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("firing", False, f"{place} did not answer: {error}")
    took = time.monotonic() - started
    news = hook_log.read_log(log_folder)[before:]
    if ran.returncode or news or ran.stderr.strip():
        reason = news[-1].partition(" ")[2] if news else ran.stderr.decode("utf-8", "replace").strip()[-300:]
        return Check("firing", False, f"it failed: {reason or f'exit code {ran.returncode}'}")
    if took > _SLOW_S:
        return Check("firing", False, f"it took {took:.1f} s: archivist status says how large the bank is")
    said = "has something to say" if len(ran.stdout) > len("{}\n") else "has nothing to say yet"
    return Check("firing", True, f"answers in {took * 1000:.0f} ms, and {said}")
