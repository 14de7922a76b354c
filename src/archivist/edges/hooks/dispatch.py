"""Answer a hook: read the client's event, ask the bank, answer in the client's form, and never fail it.

A new process runs this many times a session, so everything is imported where it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from archivist.edges import hook_events
from archivist.edges.hooks import dialects
from archivist.edges.hooks.dialects import DIALECTS, MAX_NAME, Dialect, HookPayload
from archivist.files.worktrees import limit_git, real_folder

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.config import Config
    from archivist.errors import ConfigError

# Far above any tool's output: a larger event is a mistake.
_MAX_BYTES = 16 * 1024 * 1024
# Four characters a token, and an eighth for the fence.
_MAX_TOKENS = dialects.MAX_CHARACTERS * 7 // 8 // 4
# The agent waits for the answer, so a locked bank is given up soon and the brief stays unrecorded.
_BUSY_TIMEOUT_S = 1.0
# Clients end a hook after 5 s or more, and one at the end of a session after 3 s.
_DEADLINE_S = 4.0
_END_DEADLINE_S = 2.5
# Of these, git may take so many: what else is to be told is told all the same.
_GIT_S = 2.5
# Copilot CLI runs the hooks in their settings too, and takes no answer in their form: it has its own hooks.
_READ_BY_COPILOT = ("claude-code", "vscode")
# The last brief that the team's server gave for a project, for when it is out of reach.
_TEAM_BRIEF = "team_brief.md"
# Said of an accepted bank when files in the project are not as they should be; no word of theirs is in it.
_NOTICE = """Archivist found something wrong with this project's memory, its settings or its .gitignore files.
Lessons may be missing or lost. Please tell the user to run `archivist doctor`."""


class _DeadlineError(BaseException):
    """A hook has taken too long. Nothing on the way may take it for a failure of its own."""


def answer_hook(args: Sequence[str], bank: str = "") -> None:
    """Answer the event on stdin to stdout; a failure is logged for the doctor."""
    # `dataclasses` and `urllib.parse` import these and hardly use them: a tenth of the start-up time.
    for name in ("copy", "inspect", "ipaddress"):
        _import_lazily(name)
    answer = DIALECTS[args[0]].write("", "") if args and args[0] in DIALECTS else ""
    try:
        clock = _start_deadline(args)
        try:
            with limit_git(_GIT_S):
                answer = _find_answer(args, bank)
        finally:
            if clock is not None:
                clock.setitimer(clock.ITIMER_REAL, 0)
    except _DeadlineError as error:
        # Of which bank it was is not asked again: that may be what took so long.
        note_failure(" ".join(args[:2]), error, None)
    # sys.stdout is None when the client has closed our output.
    if answer and sys.stdout is not None:
        try:
            sys.stdout.buffer.write(answer.encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()
        except OSError:
            # The client has gone, so there is nobody to tell.
            return


def _start_deadline(args: Sequence[str]) -> ModuleType | None:
    """Let this process raise once it has taken too long; return what stops that, or None where it cannot."""
    # `signal` makes classes of its constants, which would cost each hook a millisecond.
    clock = import_module("_signal")
    limit_s = _END_DEADLINE_S if args[1:2] == [hook_events.SESSION_END] else _DEADLINE_S
    with suppress(ValueError):
        limit_s = float(os.environ.get("ARCHIVIST_HOOK_DEADLINE_S", limit_s))

    def give_up(*_: object) -> None:
        raise _DeadlineError(f"gave up after {limit_s:g} s")

    try:
        clock.signal(clock.SIGALRM, give_up)
        clock.setitimer(clock.ITIMER_REAL, max(0.1, limit_s))
    except (AttributeError, ValueError):
        # Windows has no such clock, and only the main thread may set it.
        return None
    return clock


def _find_answer(args: Sequence[str], bank: str) -> str:
    """Return what a client is told on the event on stdin, in its own form."""
    folder = event_name = answer = ""
    event: Mapping[str, object] = {}
    try:
        client = args[0] if args else ""
        if client not in DIALECTS:
            raise ValueError(f"no client {client!r}: one of {', '.join(hook_events.CLIENTS)}")
        dialect = DIALECTS[client]
        answer = dialect.write("", "")
        raw = sys.stdin.buffer.read(_MAX_BYTES + 1) if sys.stdin else b""
        if not raw.strip():
            # A person tried it: every client sends its event.
            return answer
        event = _parse_event(raw)
        if client in _READ_BY_COPILOT and "timestamp" in event and os.environ.get("COPILOT_CLI"):
            return answer
        named = dialects.first_text(event, "hook_event_name", "hookEventName")
        moment = dialect.canonical_event(args[1] if len(args) > 1 else named)
        payload = dialect.read(event)._replace(is_probe=event.get(hook_events.PROBE) is True)
        folder = payload.folder
        event_name = dialect.events.get(moment, "")
        if event_name and not dialect.has_own_log:
            _keep_event(dialect, moment, event, payload, bank)
        moment = hook_events.TOOL_FAILURE if moment == hook_events.TOOL_ERROR else moment
        if event_name and moment not in hook_events.NOTES:
            text = _answer_event(dialect, moment, payload, bank)
            answer = dialect.write(event_name, dialects.truncate_fenced(text))
        elif not event_name and len(args) > 1 and not moment and "-" in args[1]:
            # Clients have events that we ignore; a name with a hyphen is one of ours, misspelt.
            raise ValueError(f"no event {args[1]!r}")
    except Exception as error:  # noqa: BLE001 an agent must not fail because its memory did
        place = find_log_bank(folder, bank)
        if event.get(hook_events.PROBE) is True:
            print(error_text(error), file=sys.stderr)
        elif not is_silent(error):
            note_failure(" ".join(args[:2]), error, place)
        if event_name and moment == hook_events.SESSION_START and _is_ours_refused(error, place):
            answer = dialect.write(event_name, _notice())
    return answer


def _keep_event(
    dialect: Dialect, moment: str, event: Mapping[str, object], payload: HookPayload, bank: str
) -> None:
    """Keep an event of a client whose log does not say what tools answered; it is read after the turn."""
    is_told = bool(payload.session) and len(payload.session) <= MAX_NAME and not payload.is_probe
    place = find_bank(payload.folder, bank) if is_told else None
    if place is None or moment == hook_events.SESSION_START:
        return
    from archivist.clock import system_clock, to_text
    from archivist.files import hook_log
    from archivist.paths import bank_file, is_file, state_folder
    from archivist.trust import is_accepted

    file = bank_file(place)
    # The end of a session in which nothing was done tells nothing.
    is_bare_end = moment in (hook_events.STOP, hook_events.SESSION_END) and not is_file(
        hook_log.session_log(state_folder(file), payload.session)
    )
    if not is_bare_end and is_accepted(file, load_config(place)[0].trust.folders):
        from archivist.capture.redaction import without_secrets

        told = {"time": to_text(system_clock()), **dialect.log_line(moment, event, payload)}
        line = without_secrets(told, is_exact=True)
        hook_log.keep_event(state_folder(file), payload.session, json.dumps(line, ensure_ascii=False))


def _is_ours_refused(error: Exception, place: Path | None) -> bool:
    """Say whether a bank that the user accepted could not be used; of any other nothing is said."""
    from archivist.errors import ArchivistError
    from archivist.paths import bank_file
    from archivist.trust import is_noted

    return isinstance(error, ArchivistError) and place is not None and is_noted(bank_file(place))


def _notice(words: str = _NOTICE) -> str:
    from archivist.capture.clean import fence

    return fence(words, "unrecorded", ())


def _import_lazily(name: str) -> None:
    """Load a module at its first use instead of at its import."""
    if name in sys.modules:
        return
    stand_in = ModuleType(name)

    def load(attribute: str) -> object:
        del sys.modules[name]
        real = import_module(name)
        stand_in.__dict__.update(real.__dict__)
        return getattr(real, attribute)

    stand_in.__dict__["__getattr__"] = load
    sys.modules[name] = stand_in


def _parse_event(raw: bytes) -> Mapping[str, object]:
    if len(raw) > _MAX_BYTES:
        raise ValueError(f"the event is larger than {_MAX_BYTES >> 20} MiB")
    event = json.loads(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    if not isinstance(event, dict):
        raise TypeError(f"the event is a JSON {type(event).__name__}, not an object")
    return event


def _answer_event(dialect: Dialect, moment: str, payload: HookPayload, bank: str) -> str:
    """Return the text for an event; the work after a turn or session is started in another process."""
    if moment == hook_events.TOOL_FAILURE and not payload.error:
        return ""
    from archivist.errors import ArchivistError
    from archivist.paths import bank_file, home_folder
    from archivist.trust import has_bank_at

    place = find_bank(payload.folder, bank)
    if moment in (hook_events.STOP, hook_events.SESSION_END):
        if place is not None:
            is_end = moment == hook_events.SESSION_END or dialect.is_ended_by_stop
            _start_follow_up(dialect, payload, place, is_end=is_end, is_named=bool(_named_bank(bank)))
        return ""
    home = home_folder()
    global_bank = None
    if moment not in (hook_events.PROMPT, hook_events.TOOL_FAILURE) and has_bank_at(bank_file(home)):
        try:
            global_bank = _open_bank(home, dialect, load_config(home)[0])
        except ArchivistError as error:
            # The project's bank can still answer.
            note_failure(f"{dialect.name} {moment}, the global bank", error, place)
    try:
        return _brief_from_banks(dialect, moment, payload, place, global_bank)
    except ArchivistError as error:
        if global_bank is None or place is None:
            raise
        try:
            # If the project's bank answers alone, the global one is damaged.
            text = _brief_from_banks(dialect, moment, payload, place, None)
        except ArchivistError as refused:
            if payload.is_probe:
                raise
            if not is_silent(refused):
                note_failure(f"{dialect.name} {moment}", refused, place)
            is_said = moment == hook_events.SESSION_START and _is_ours_refused(refused, place)
            alone = _brief_from_banks(dialect, moment, payload, None, global_bank)
            return _notice() + alone if is_said else alone
        note_failure(f"{dialect.name} {moment}, the global bank", error, place)
        return text
    finally:
        if global_bank is not None:
            global_bank.close()


def _brief_from_banks(
    dialect: Dialect, moment: str, payload: HookPayload, place: Path | None, global_bank: Bank | None
) -> str:
    if place is None:
        if global_bank is None or moment != hook_events.SESSION_START:
            return ""
        return global_bank.sessions.brief_session("", "").text
    from pathlib import Path

    from archivist import projects
    from archivist.errors import ArchivistError
    from archivist.trust import find_pulled_problem, lost_changes

    config, refused = load_config(place)
    if refused is not None and not payload.is_probe:
        note_failure(f"{dialect.name} {moment}, the project's settings", refused, place)
    provider, role = dialect.harness or dialect.name, _role_of(dialect, moment, payload, config)
    with _open_bank(place, dialect, config, role) as bank:
        run = payload.run if len(payload.run) <= MAX_NAME else ""
        folder = Path(payload.folder or bank.root)
        with bank.reading() as reader:
            is_start, unclear = moment == hook_events.SESSION_START, ""
            if is_start:
                project, unclear = projects.project_and_doubt(reader, folder, bank.root)
            else:
                project = projects.project_at(reader, folder, bank.root)
        brief: RenderedBrief | None
        if moment == hook_events.PROMPT:
            brief = bank.sessions.brief_prompt(run, project, payload.prompt, provider=provider)
        elif moment == hook_events.TOOL_FAILURE:
            tool = "Bash" if payload.command else payload.tool
            asked = {"tool": tool, "command": payload.command, "provider": provider}
            brief = bank.sessions.brief_failure(run, project, payload.error, **asked)
        elif moment == hook_events.SUBAGENT_START:
            asked = {"role": role, "provider": provider}
            brief = bank.sessions.brief_subagent(run, project, global_bank=global_bank, **asked)
        else:
            # The session is the agent that its environment names, else the client.
            kind, name, *_ = f"{os.environ.get('ARCHIVIST_ACTOR', '')}::".split(":")
            told = ""
            agent = name[:MAX_NAME] if kind == "agent" and name else provider
            try:
                told = _brief_from_team(config, bank, run, project, provider) if config.server.url else ""
            except ArchivistError as error:
                # The project's own bank can still answer.
                note_failure(f"{dialect.name} {moment}, the team's server", error, place)
            if told:
                bank.sessions.open_session(run, project, folder=folder, agent=agent)
                return told + (global_bank.sessions.brief_session("", "").text if global_bank else "")
            brief = bank.sessions.brief_session(
                run, project, folder=folder, provider=provider, agent=agent, global_bank=global_bank
            )
        text = brief.text if brief is not None else ""
        if not is_start:
            return text
        if brief is not None and (withheld := brief.count_stale()):
            text += _notice(f"Archivist: {withheld}.")
        is_wrong = unclear or refused is not None or lost_changes(bank.path)
        is_published = not bank.store.server and find_pulled_problem(bank.path)
        return _notice() + text if is_wrong or is_published else text


def _role_of(dialect: Dialect, moment: str, payload: HookPayload, config: Config) -> str:
    """Return the role of a session that starts; a subagent's is its own."""
    if moment != hook_events.SESSION_START:
        return payload.role
    from archivist.access.roles import session_role

    asked = {"client": dialect.harness or dialect.name, "agent": payload.role, "folder": payload.folder}
    return session_role(config.core.roles, **asked)


def _brief_from_team(config: Config, bank: Bank, run: str, project: str, provider: str) -> str:
    """Return the brief of the team's server if it answers soon, else the last one, else nothing."""
    import time

    from archivist.brief.render import present_team_text
    from archivist.exchange.outbox_service import Outbox
    from archivist.files.open import read_if_any
    from archivist.files.write import replace_file
    from archivist.paths import state_folder

    outbox = Outbox.from_settings(config.server, bank.root)
    if outbox is None or not run:
        return ""
    folder = state_folder(bank.path)
    copy = folder / _TEAM_BRIEF
    if (told := outbox.brief(run, project, provider, time.time())) is not None:
        text, lessons = told
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(copy, text.encode("utf-8", "replace"), is_private=True)
        return present_team_text(text, lessons, "team") if text.strip() else ""
    last = (read_if_any(copy) or b"").decode("utf-8", "replace")
    return present_team_text(last, ()) if last.strip() else ""


def load_config(place: Path) -> tuple[Config, ConfigError | None]:
    """Return the settings for a bank, and why those of its project do not count if they are refused."""
    from archivist.config.sources import load_effective
    from archivist.errors import ConfigError
    from archivist.paths import bank_file

    try:
        return load_effective(bank_file(place).parent).config, None
    except ConfigError as error:
        # The user's own settings; if those are wrong, this fails as well.
        return load_effective(None).config, error


def _open_bank(place: Path, dialect: Dialect, config: Config, role: str = "") -> Bank:
    from archivist.bank import Bank
    from archivist.paths import bank_file
    from archivist.records import Actor, ActorKind

    timeout_s = min(config.store.busy_timeout_s, _BUSY_TIMEOUT_S)
    # The brief is selected to fit, so that nothing recorded as shown was truncated.
    budget = min(config.brief.budget_tokens, _MAX_TOKENS)
    limited = config._replace(
        store=config.store._replace(busy_timeout_s=timeout_s),
        brief=config.brief._replace(budget_tokens=budget),
    )
    actor = Actor(ActorKind.ORCHESTRATOR, dialect.name, role)
    return Bank.open(bank_file(place), create=False, actor=actor, config=limited, is_hasty=True)


def _start_follow_up(
    dialect: Dialect, payload: HookPayload, place: Path, *, is_end: bool, is_named: bool
) -> None:
    """Start the work after a session in a process of its own, so that the client waits for none of it."""
    if len(payload.session) > MAX_NAME:
        raise ValueError(f"the session's name has {len(payload.session)} characters, at most {MAX_NAME}")
    # -P: nothing may be imported from the project's folder.
    command = [sys.executable, "-P", "-m", "archivist.edges.hooks.follow_up"]
    command += ["end" if is_end else "stop", dialect.name, payload.session]
    paths = [payload.transcript, payload.folder, str(place.absolute()), *(["named"] if is_named else [])]
    if sys.platform == "win32":
        import subprocess

        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        subprocess.Popen(  # noqa: S603 our own interpreter and module; the rest are data
            [*command, *paths],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            creationflags=flags,
        )
        return
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        try:
            os.execv(command[0], [*command, *paths])  # noqa: S606 our own interpreter; the rest are data
        except (OSError, ValueError) as error:
            # A path is malformed or too long. The session is still to be closed, without its log.
            note_failure(f"{command[5]} after {command[4]}", error, place)
            os.execv(command[0], [*command, "", "", *paths[2:]])  # noqa: S606
    finally:
        os._exit(127)


def find_bank(folder: str, bank: str = "") -> Path | None:
    """Return the bank of a session: the named one, else the nearest above its folder."""
    from pathlib import Path

    from archivist.errors import NoBankError
    from archivist.paths import bank_file, is_file
    from archivist.trust import find_bank_folder, is_noted

    def read_folders() -> str:
        from archivist.config.sources import load_effective

        return load_effective(None).config.trust.folders

    if named := _named_bank(bank):
        if not is_file(bank_file(Path(named))) and not is_noted(bank_file(Path(named))):
            raise NoBankError(named)
        return Path(named)
    # The folder that this process runs in is where a link led, should the session's folder have become one.
    starts = [start for start in (folder, os.environ.get("CLAUDE_PROJECT_DIR", "")) if start] or ["."]
    # The real folder first, as the commands see it; then as the client spells it, unless a repository's link
    # is in it.
    spelled = [path for start in starts for path in _spell_folder(Path(start))]
    found = (find_bank_folder(path, read_folders)[0] for path in dict.fromkeys(spelled))
    return next((place for place in found if place is not None), None)


def _named_bank(bank: str) -> str:
    return bank or os.environ.get("ARCHIVIST_BANK", "")


def _spell_folder(start: Path) -> list[Path]:
    real = real_folder(start)
    return [real, start.absolute()] if str(real) == os.path.realpath(start) else [real]


def find_log_bank(folder: str, bank: str = "") -> Path | None:
    """Return the bank for which a failure is logged: the session's, else that of the current folder."""
    from archivist.errors import ArchivistError

    for start in (folder, ""):
        try:
            return find_bank(start, bank)
        except (OSError, RuntimeError, ValueError, ArchivistError):
            continue
    return None


def note_failure(what: str, error: BaseException, place: Path | None) -> None:
    """Log a failure under the user's home, where the doctor looks: that of the bank, or of none."""
    from archivist.capture.clean import clean_name
    from archivist.clock import system_clock
    from archivist.files import hook_log
    from archivist.paths import bank_file, home_folder, state_folder

    # Where the home cannot be written, the failure is lost.
    with suppress(OSError, RuntimeError, ValueError):
        folder = home_folder() if place is None else state_folder(bank_file(place))
        hook_log.log_failure(folder, clean_name(f"{what}: {error_text(error)}"), system_clock())


def is_silent(error: Exception) -> bool:
    """Say whether nothing is noted: in a project that the user has not accepted, hooks do not exist."""
    from archivist.errors import LinkedBankError, UntrustedBankError

    return isinstance(error, LinkedBankError | UntrustedBankError)


def error_text(error: BaseException) -> str:
    """Return one line that says what went wrong."""
    from archivist.errors import ArchivistError

    if isinstance(error, ArchivistError):
        return error.message
    return str(error) if isinstance(error, _DeadlineError) else f"{type(error).__name__}: {error}"
