"""Check the chain from a client to the bank: its settings, the command they name, a hook that answers."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from archivist.capture.client_logs import find_damages
from archivist.doctor import Check
from archivist.edges import hook_events
from archivist.edges.install import changes, jsonc
from archivist.edges.install.changes import SetupRecord
from archivist.edges.install.clients import (
    NO_SERVER,
    SHARED_BY_WORKTREES,
    InstallLocation,
    has_server,
    present_clients,
    targets,
)
from archivist.edges.install.entries import (
    HOOK,
    OUR_PROGRAM,
    PROGRAM,
    SERVER,
    ProgramCall,
    is_own_program,
    named_programs,
)
from archivist.edges.install.versions import find_shortcoming, version_of
from archivist.errors import ArchivistError, InputError
from archivist.files import hook_log
from archivist.files.open import read_if_any, real_path
from archivist.files.worktrees import worktrees_of
from archivist.paths import bank_file
from archivist.trust import has_bank_at

_TIMEOUT_S = 10
# Clients wait for their hooks; users notice one that takes longer than this.
_SLOW_S = 2.0
# Claude Code runs a hook once even if several of its files name it.
_RUNS_ONCE = ("claude-code",)
_FOR_WHOM = {"local": "for this clone", "project": "for this project", "user": "for you"}
# The events at which a session can be told something, and the clients whose logs are read.
_TOLD_AT = {
    hook_events.SESSION_START: "session start",
    hook_events.PROMPT: "prompt",
    hook_events.TOOL_FAILURE: "failed call",
    hook_events.SUBAGENT_START: "subagent start",
}
# The hooks of the others tell what is learnt.
_WITH_OWN_LOG = ("claude-code", "codex", "gemini", "copilot", "opencode")
# Their logs do not tell what was typed from the text of a repository's command.
_WITHOUT_WISHES = {
    "opencode": ", but no wishes, since it does not say what was typed",
    "gemini": ", but no wishes from chats of versions that do not say what was typed",
}
# Files of a project whose variables clients give to the programs that they start.
_FILES_WITH_VARIABLES = (".claude/settings.json", ".claude/settings.local.json", ".env", ".gemini/.env")
# A key of JSON, or a line of a file of variables; in a hook's command it is named as redirected already.
_VARIABLE = r"""(?m)(?:^[ \t]*(?:export[ \t]+)?|")(ARCHIVIST_[A-Z_]{1,80})(?="?[ \t]*[=:])"""
_MISSPELT = re.compile(r": ValueError: no (?:event|client) '([^']{1,80})'")
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "archivist doctor", "version": "1"},
    },
}  # fmt: skip


class ClientInstall(NamedTuple):
    """What a client's settings have of ours: the files with our hooks, the calls, and what is wrong."""

    client: str
    scope: str
    problem: str = ""
    hooks: frozenset[Path] = frozenset()
    has_server: bool = False
    calls: tuple[ProgramCall, ...] = ()


def check_chain(
    root: Path,
    home: Path | None,
    log_folder: Path,
    versions: Mapping[str, str] = MappingProxyType({}),
    sessions: Mapping[str, int] = MappingProxyType({}),
) -> list[Check]:
    """Return the checks of the chain for a project's folder and the user's home.

    `versions` are those that the latest logs name, `sessions` how many are known here, by client.
    """
    installs = find_installs(root, home, hook_events.CLIENTS)
    # The client, the program as its settings name it, and the bank they name.
    calls = [
        (install.client, program, bank)
        for install in installs
        for path in sorted(install.hooks)
        for program, bank in dict.fromkeys(named_programs(_read_hooks(path), str(path)))
    ]
    programs = [program for _, program, _ in calls] or [PROGRAM]
    command = next(filter(None, map(shutil.which, programs)), None)
    installed = {each.client for each in installs}
    elsewhere = [client for client in _clients_of_other_worktrees(root) if client not in installed]
    tried = _try_hooks(installs, root, log_folder)
    untold = dict.fromkeys(elsewhere, "told at no event in this worktree")
    if installs:
        for client, number in _unconnected_clients(installed.union(elsewhere), sessions, home).items():
            untold[client] = f"{number} of its sessions known here, and not connected"
    return [
        _check_clients(installs, root, home, SetupRecord.load(log_folder).find_changed()),
        _check_command(command, calls, is_needed=bool(installs)),
        _check_hooks(tried),
        _check_server(installs, root),
        *(
            _describe_client(client, found, root, home, versions, is_answering=tried.get(client, (True,))[0])
            for client in hook_events.CLIENTS
            if (found := [each for each in installs if each.client == client])
        ),
        *(
            Check(client, False, f"{text}: archivist install {client} --local")
            for client, text in untold.items()
        ),
    ]


def is_name_gone(failure: str, root: Path, home: Path | None) -> bool:
    """Say whether a hook failed only since its call was misspelt, and no settings file has that name now."""
    found = _MISSPELT.search(failure)
    if found is None:
        return False
    trees = dict.fromkeys((root, *worktrees_of(root)))
    places = [InstallLocation(tree, is_local=is_local) for tree in trees for is_local in (False, True)]
    places += [InstallLocation(home, is_user=True)] if home is not None else []
    wanted = (targets(client, place, with_server=False) for place in places for client in hook_events.CLIENTS)
    for path in {target.path for some in wanted for target in some}:
        with suppress(ArchivistError):
            if found[1] in _read_hooks(path):
                return False
    return True


def _unconnected_clients(
    installed: Collection[str], sessions: Mapping[str, int], home: Path | None
) -> dict[str, int]:
    """Return the clients with sessions here that are still used on this machine and are told nothing."""
    used = {agent.removesuffix("-cli"): number for agent, number in sessions.items()}
    here = present_clients(home) if home is not None else []
    # VS Code runs Claude Code's hooks.
    covered = {*installed, *(["vscode"] if "claude-code" in installed else [])}
    return {client: used[client] for client in here if client in used and client not in covered}


def _clients_of_other_worktrees(root: Path) -> list[str]:
    """Return the clients that are installed in other worktrees and read the folder alone where they start."""
    found = set()
    for worktree in worktrees_of(root):
        places = [InstallLocation(worktree, is_local=is_local) for is_local in (False, True)]
        for client in hook_events.CLIENTS if worktree != real_path(root) else ():
            is_read_elsewhere = client in SHARED_BY_WORKTREES or places[0].read_by(client).is_user
            with suppress(ArchivistError):
                files = (target for place in places for target in targets(client, place, with_server=False))
                if not is_read_elsewhere and any(map(changes.holds_ours, files)):
                    found.add(client)
    return [client for client in hook_events.CLIENTS if client in found]


def find_installs(root: Path, home: Path | None, clients: Sequence[str]) -> list[ClientInstall]:
    """Return what the clients' settings in a project and in a home have of ours."""
    # Only these read files of their own that are not committed.
    local, project = InstallLocation(root, is_local=True), InstallLocation(root)
    places = [(each, "claude-code") for each in dict.fromkeys((local, local.read_by("claude-code")))]
    places.append((local, "copilot"))
    # Nor does Codex read the committed hooks of a linked worktree.
    codex = project._replace(root=local.read_by("codex").root)
    places += [(codex if client == "codex" else project, client) for client in clients]
    if home is not None:
        places += [(InstallLocation(home, is_user=True), client) for client in clients]
    found: list[ClientInstall] = []
    for place, client in places:
        install = ClientInstall(client, place.scope)
        remedy = f"archivist install {client} --{install.scope}"
        wanted = targets(client, place, with_server=has_server())
        try:
            ours = [target for target in wanted if changes.holds_ours(target)]
            hooks = frozenset(real_path(target.path) for target in ours if target.hooks)
            calls = [call for target in ours for call in target.find_calls(_read_hooks(target.path))]
            install = install._replace(calls=tuple(calls))
            if place.is_local and not hooks:
                continue
            if ours and not hooks and (place.is_user or any(each.client == client for each in found)):
                # The server alone: other settings have the hooks, or none are wanted.
                found.append(install._replace(has_server=True))
                continue
            # A file of another program's is no problem where nothing of ours is installed.
            planned = changes.plan_client(client, place).changes if ours else []
        except ArchivistError as error:
            found.append(install._replace(problem=f"{error.message}; {error.hint}: {remedy}"))
            continue
        if ours:
            is_whole = all(change.action == "unchanged" for change in planned)
            if not is_whole and hooks and not place.is_user and _is_whole_locally(client, place.root, hooks):
                is_whole, install = True, install._replace(scope="local")
            problem = "" if is_whole else f"{client} is installed only in part: {remedy}"
            redirected = {target.path: target.find_redirected(_read_hooks(target.path)) for target in ours}
            if any(redirected.values()):
                how = "with another bank, actor, program or other variables than install writes"
                # Install replaces an entry, but leaves a line that does something else too.
                lines = [
                    str(path)
                    for path, calls in redirected.items()
                    if not all(each.is_alone for each in calls)
                ]
                mending = f"remove that line from {', '.join(lines)}" if lines else remedy
                problem = f"the project's settings start archivist for {client} {how}: {mending}"
            servers = [replace(target, hooks=()) for target in targets(client, place) if target.servers]
            is_served = any(map(changes.holds_ours, servers))
            found.append(install._replace(problem=problem, hooks=hooks, has_server=is_served))
    return found


def _is_whole_locally(client: str, root: Path, hooks: frozenset[Path]) -> bool:
    """Say whether the files with these hooks have all that goes into files which are not committed."""
    try:
        plan = changes.plan_client(client, InstallLocation(root, is_local=True))
    except ArchivistError:
        return False
    local = {real_path(target.path) for target in plan.targets if target.hooks}
    return hooks <= local and all(change.action == "unchanged" for change in plan.changes)


def find_lines_around(root: Path) -> list[str]:
    """Return a problem for each file of a project with a hook that calls ours among other things."""
    places = (InstallLocation(root, is_local=True), InstallLocation(root))
    found = (targets(client, place) for place in places for client in hook_events.CLIENTS)
    files: dict[Path, None] = {}
    for target in (target for some in found for target in some):
        # What cannot be read is named by others.
        with suppress(ArchivistError):
            if target.has_line_around(_read_hooks(target.path)):
                files[target.path] = None
    remedy = "remove the line unless you wrote it; if you did, give the rest an entry of its own"
    what = "calls archivist in a line that does more"
    return [f"a hook in {path} {what}: {remedy}, then archivist install" for path in files]


def double_hook_warnings(installs: Sequence[ClientInstall]) -> list[str]:
    """Return a warning for each client whose hooks would fire twice, with the command that removes one."""
    # One file may be that of two scopes: a home can be a project.
    scopes: dict[str, dict[frozenset[Path], str]] = {}
    for install in installs:
        if install.hooks:
            scopes.setdefault(install.client, {}).setdefault(install.hooks, install.scope)
    warnings = []
    for client, found in scopes.items():
        if len(found) > 1 and client not in _RUNS_ONCE:
            where = " and ".join(_FOR_WHOM[scope] for scope in found.values())
            options = ", or ".join(f"--{scope}" for scope in reversed(found.values()))
            times = "twice" if len(found) == 2 else f"{len(found)} times"
            doubled = f"{client} is installed {where}, so that each hook fires {times}"
            warnings.append(f"{doubled}: archivist uninstall {client} {options}")
    if "claude-code" in scopes:
        doubled = "VS Code runs claude-code's hooks too, so that a session in it is briefed twice"
        of_vscode = [each for each in installs if each.client == "vscode" and each.hooks]
        warnings += [f"{doubled}: archivist uninstall vscode --{each.scope}" for each in of_vscode]
    return warnings


def _read_hooks(path: Path) -> str:
    return (changes.read_file(path) or b"").decode("utf-8-sig", "replace")


def _find_disabling_file(root: Path, home: Path | None) -> str:
    """Return the file that turns all hooks of Claude Code off; empty when none does."""
    config_folder = os.environ.get("CLAUDE_CONFIG_DIR")
    # In the order of precedence: the first file with the switch decides.
    files = [root / ".claude" / "settings.local.json", root / ".claude" / "settings.json"]
    if config_folder:
        files.append(real_path(Path(config_folder).expanduser() / "settings.json"))
    elif home is not None:
        files.append(real_path(home / ".claude" / "settings.json"))
    for path in files:
        try:
            settings = jsonc.parse((changes.read_file(path) or b"").decode("utf-8-sig"), str(path)).value
        except (OSError, ValueError, ArchivistError):
            continue
        switch = settings.get("disableAllHooks")
        if isinstance(switch, bool):
            return str(path) if switch else ""
    return ""


def _check_clients(
    installs: list[ClientInstall], root: Path, home: Path | None, changed: Sequence[str]
) -> Check:
    problems = [install.problem for install in installs if install.problem]
    problems += changed
    for target in (each for client in hook_events.CLIENTS for each in targets(client, InstallLocation(root))):
        with suppress(ArchivistError):
            if target.has_foreign_server(_read_hooks(target.path)):
                problems.append(f"{target.path} starts another program under the name archivist: remove it")
    # By our variables a project's file could name a bank or whom to trust.
    for path in (root / name for name in _FILES_WITH_VARIABLES):
        try:
            text = (read_if_any(path) or b"").decode("utf-8", "replace")
        except InputError as error:
            problems.append(error.message)
            continue
        if found := sorted(set(re.findall(_VARIABLE, text))):
            problems.append(f"{path} sets {', '.join(found)}: remove it unless you wrote it")
    problems += find_lines_around(root)
    problems += double_hook_warnings(installs)
    has_claude = any(install.client == "claude-code" for install in installs)
    if has_claude and (disabling_file := _find_disabling_file(root, home)):
        problems.append(f"claude-code runs no hooks: remove disableAllHooks from {disabling_file}")
    if problems:
        return Check("clients", False, "; ".join(problems))
    if not installs:
        return Check("clients", True, "nothing is installed yet: archivist setup connects the clients")
    named = dict.fromkeys(
        f"{install.client} ({install.scope}{'' if install.hooks else ', MCP server'})" for install in installs
    )
    return Check("clients", True, ", ".join(named))


def _check_command(command: str | None, calls: list[tuple[str, str, str]], *, is_needed: bool) -> Check:
    missing = []
    for client, program, bank in calls:
        if _is_path(program) and shutil.which(program) is None:
            missing.append(f"{client} calls {program}, which does not exist: correct its settings")
        if _is_path(bank) and not has_bank_at(bank_file(Path(bank))):
            missing.append(f"{client} names the bank {bank}, which does not exist: correct its settings")
    if missing:
        return Check("command", False, "; ".join(dict.fromkeys(missing)))
    if command is None and is_needed:
        text = f"{PROGRAM} is not on PATH, so that no client can call it: install it with pipx or uv tool,"
        return Check("command", False, f"{text} or add its folder to PATH")
    if command is not None and is_needed and not _is_ours(command):
        remedy = f"put the folder of {OUR_PROGRAM} before it on PATH"
        if any("/" in program for _, program, _ in calls):
            remedy = "the settings of a client name it: look at them"
        text = f"{command} is not the archivist that runs now: {remedy}"
        return Check("command", False, text)
    return Check("command", True, command or f"{PROGRAM} is not on PATH, and no client needs it")


def _is_path(word: str) -> bool:
    # Variables and ~ are expanded by the client's shell, not here.
    return "/" in word and "$" not in word and not word.startswith("~")


def _is_ours(command: str) -> bool:
    """Say whether a program is the one that runs now, without running it: a repository can name any."""
    try:
        return Path(command).samefile(OUR_PROGRAM) or filecmp.cmp(command, OUR_PROGRAM, shallow=False)
    except OSError:
        return False


def _start(
    install: ClientInstall, call: ProgramCall, root: Path, sent: object
) -> tuple[subprocess.CompletedProcess[bytes] | None, str]:
    """Run a call of ours as the client would; return what came of it, or why it was not run.

    A repository may name any program, or have one on the PATH: of a project's settings only our bare name or
    the program that runs now is started, and nothing that lies in a repository.
    """
    spelled = shlex.join(call.line or call.words)
    if not call.line or (call.is_redirected and install.scope != "user"):
        return None, f"not tried: {install.client} calls archivist in another way than install writes"
    program = shutil.which(call.line[0])
    if program is None:
        return None, f"{install.client} calls {spelled}, and {call.line[0]} is not there"
    is_named = install.scope == "user" or call.line[0] == PROGRAM or _is_ours(program)
    if not is_named or not is_own_program(program):
        return None, f"{install.client} calls {spelled}, and {program} is not yours: it was not started"
    try:
        ran = subprocess.run(  # noqa: S603 a program of the user's, see above
            [program, *call.line[1:]],
            input=json.dumps(sent).encode() + b"\n",
            cwd=root,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{spelled} did not answer: {error}"
    return ran, ""


def _try_hooks(
    installs: Sequence[ClientInstall], root: Path, log_folder: Path
) -> dict[str, tuple[bool, str]]:
    """Call each client's hook with an event without a session, so that nothing is recorded."""
    tried: dict[str, tuple[bool, str]] = {}
    for install in installs:
        event = hook_events.EVENT_NAMES[install.client].get(hook_events.SESSION_START, "")
        named = [(), (hook_events.SESSION_START,), (event,)]
        calls = [call for call in install.calls if call.words[:2] == (HOOK, install.client)]
        for call in [call for call in calls if call.words[2:3] in named][:1]:
            sent: dict[str, object] = {"cwd": str(root), "workspace_roots": [str(root)], "source": "startup"}
            sent |= {hook_events.PROBE: True, "hook_event_name": event}
            logged_before, started = len(hook_log.read_log(log_folder)), time.monotonic()
            ran, problem = _start(install, call, root, sent)
            elapsed_s = time.monotonic() - started
            logged = hook_log.read_log(log_folder)[logged_before:]
            if ran is not None and (ran.returncode or logged or ran.stderr.strip()):
                said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
                reason = logged[-1].partition(" ")[2] if logged else said
                problem = f"it failed: {reason or f'exit code {ran.returncode}'}"
            elif elapsed_s > _SLOW_S:
                problem = f"it took {elapsed_s:.1f} s: archivist status shows how large the bank is"
            answer = "a brief" if ran and len(ran.stdout) > len("{}\n") else "nothing, see the line brief"
            is_well = not problem or problem.startswith("not tried")
            tried[install.client] = (is_well, problem or f"answers in {elapsed_s * 1000:.0f} ms: {answer}")
    return tried


def _check_hooks(tried: Mapping[str, tuple[bool, str]]) -> Check:
    if not tried:
        return Check("firing", True, "not tried: no client has our hooks")
    failed = [f"{text} ({client})" for client, (is_well, text) in tried.items() if not is_well]
    return Check("firing", not failed, "; ".join(failed) or next(iter(tried.values()))[1])


def _check_server(installs: list[ClientInstall], root: Path) -> Check:
    """Start the MCP server as each client would, and shake hands."""
    if not any(install.has_server for install in installs):
        return Check("server", True, "not tried: no client has it")
    if not has_server():
        return Check("server", False, f"it cannot start: {NO_SERVER}")
    started, said, is_well = 0.0, "", True
    lines = {
        call.line: (install, call)
        for install in installs
        for call in install.calls
        if call.words[0] == SERVER
    }
    for install, call in lines.values():
        began = time.monotonic()
        ran, problem = _start(install, call, root, _HELLO)
        if ran is not None and b'"serverInfo"' not in ran.stdout:
            printed = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            reason = printed or f"exit code {ran.returncode}"
            problem = f"{install.client}: {shlex.join(call.line)} does not start: {reason}"
        started = max(started, time.monotonic() - began)
        said = said or problem
        is_well = is_well and (not problem or problem.startswith("not tried"))
    return Check("server", is_well, said or f"starts in {started * 1000:.0f} ms")


def _describe_client(
    client: str,
    installs: Sequence[ClientInstall],
    root: Path,
    home: Path | None,
    versions: Mapping[str, str],
    *,
    is_answering: bool,
) -> Check:
    """Say what sessions of a client are told, what is learnt from them, and what is missing."""
    hooks = frozenset[Path]().union(*(install.hooks for install in installs))
    events = hook_events.EVENT_NAMES[client] if hooks else {}
    told = [words for event, words in _TOLD_AT.items() if event in events]
    missing = [words for event, words in _TOLD_AT.items() if event not in events]
    if not any(install.has_server for install in installs):
        missing.append("MCP server")
    source = "its log" if client in _WITH_OWN_LOG else "what its hooks tell"
    source += _WITHOUT_WISHES.get(client, "")
    learnt = f"learnt from {source}" if hooks else "learnt only from logs that archivist setup finds"
    lacking = f"; missing: {', '.join(missing)}" if missing else ""
    text = f"told at {', '.join(told) or 'no event'}; {learnt}{lacking}"
    if not is_answering:
        return Check(client, False, "told at no event, and nothing is learnt: its hook fails, see firing")
    if not hooks:
        return Check(client, False, f"{text}: archivist install {client} --{installs[0].scope}")
    if damages := find_damages(client, home, os.environ) if home is not None else []:
        return Check(client, False, f"{text}; {'; '.join(damages)}: what it holds there is not learnt from")
    lack = find_shortcoming(client, root, hooks, version_of(client, versions))
    return Check(client, not lack, f"{text}; {lack.text}" if lack else text)
