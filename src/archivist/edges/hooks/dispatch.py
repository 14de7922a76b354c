"""Answer a hook: read what the client says, ask the bank, answer in the client's dialect, and never fail it.

A cold process runs this many times a session, so that everything is imported where it is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from archivist.edges.hook_events import (
    CLIENTS,
    PROBE,
    PROMPT,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    TOOL_FAILURE,
)
from archivist.edges.hooks.said import (
    LONGEST_NAME,
    MOST_CHARACTERS,
    Dialect,
    HookPayload,
    canonical_event,
    first_text,
    truncate_fenced,
)

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief

# A tool's output is far below this; more is somebody's mistake.
_MOST_BYTES = 16 * 1024 * 1024
# At four characters a token, and with room for the marks around them.
_MOST_TOKENS = MOST_CHARACTERS * 7 // 8 // 4
# An agent waits: rather unrecorded than late.
_PATIENCE_S = 1.0


def answer_hook(args: Sequence[str], bank: str = "") -> None:
    """Answer the event on stdin to stdout; whatever goes wrong is noted for the doctor."""
    # For `dataclasses` and for `urllib.parse`, a tenth of all there is to load.
    _import_lazily("inspect")
    _import_lazily("ipaddress")
    folder = ""
    written = ""
    said: Mapping[str, object] = {}
    try:
        dialect = _load_dialect(args)
        written = dialect.write("", "")
        said = _parse_event(sys.stdin.buffer.read(_MOST_BYTES + 1) if sys.stdin else b"")
        moment = canonical_event(dialect, args[1] if len(args) > 1 else _event_name(said))
        heard = dialect.read(said)
        folder = heard.folder
        event = dialect.events.get(moment, "")
        if moment and event:
            written = dialect.write(event, truncate_fenced(_answer_event(dialect, moment, heard, bank)))
        elif len(args) > 1 and not moment and "-" in args[1]:
            # Clients have events that are nothing to us; a word with a hyphen is one of ours, misspelt.
            raise ValueError(f"no event {args[1]!r}")
    except Exception as error:  # noqa: BLE001 an agent must not fail because its memory did
        from archivist.edges.hooks.whereabouts import error_text, find_log_bank, note_failure

        if said.get(PROBE) is True:
            print(error_text(error), file=sys.stderr)
        else:
            note_failure(" ".join(args[:2]), error, find_log_bank(folder, bank))
    _write_stdout(written)


def _import_lazily(name: str) -> None:
    """Let a module be loaded when it is first used: what imports it here hardly ever does."""
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


def _load_dialect(args: Sequence[str]) -> Dialect:
    client = args[0] if args else ""
    if client not in CLIENTS:
        raise ValueError(f"no client {client!r}: one of {', '.join(CLIENTS)}")
    found: Dialect = import_module(f"archivist.edges.hooks.{client.replace('-', '_')}").DIALECT
    return found


def _parse_event(raw: bytes) -> Mapping[str, object]:
    """Return the event that a client wrote; an empty one is an event of which nothing is known."""
    if len(raw) > _MOST_BYTES:
        raise ValueError(f"the event is larger than {_MOST_BYTES >> 20} MiB")
    text = raw.decode("utf-8-sig", "replace").strip()
    if not text:
        raise ValueError("no event on stdin")
    said = json.loads(text)
    if not isinstance(said, dict):
        raise TypeError(f"the event is a JSON {type(said).__name__}, not an object")
    return said


def _event_name(raw_event: Mapping[str, object]) -> str:
    return first_text(raw_event, "hook_event_name", "hookEventName")


def _answer_event(dialect: Dialect, hook_event: str, payload: HookPayload, bank: str) -> str:
    """Return what there is to say at a moment; what happens after a session is handed over."""
    if hook_event == TOOL_FAILURE and not payload.error:
        return ""
    from archivist.edges.hooks.whereabouts import find_bank, note_failure
    from archivist.errors import ArchivistError

    place, foreign = find_bank(payload.folder, bank)
    if foreign is not None:
        note_failure(f"{dialect.name} {hook_event}", foreign, place)
    if hook_event in (STOP, SESSION_END):
        if place is not None:
            from archivist.edges.hooks.handover import start_follow_up

            start_follow_up(
                dialect, payload, place, is_end=hook_event == SESSION_END or dialect.is_ended_by_stop
            )
        return ""
    home = _open_global_bank(dialect, hook_event, place)
    try:
        return _brief_from_banks(dialect, hook_event, payload, place, home)
    except ArchivistError as error:
        if home is None or place is None:
            raise
        # Which of the two banks is damaged shows without the global one, and the project's may still speak.
        told = _brief_from_banks(dialect, hook_event, payload, place, None)
        note_failure(f"{dialect.name} {hook_event}, the global bank", error, place)
        return told
    finally:
        if home is not None:
            home.close()


def _open_global_bank(dialect: Dialect, hook_event: str, place: Path | None) -> Bank | None:
    """Open the user's global bank when there is one; one that cannot be does not mute the project's."""
    from archivist.edges.hooks.whereabouts import note_failure
    from archivist.errors import ArchivistError
    from archivist.paths import bank_file, home_folder, is_file

    home = home_folder()
    if hook_event in (PROMPT, TOOL_FAILURE) or not is_file(bank_file(home)):
        return None
    try:
        return _open_bank(home, dialect)
    except ArchivistError as error:
        note_failure(f"{dialect.name} {hook_event}, the global bank", error, place)
        return None


def _brief_from_banks(
    dialect: Dialect, hook_event: str, payload: HookPayload, place: Path | None, global_bank: Bank | None
) -> str:
    if place is None:
        return (
            global_bank.sessions.brief_session("", "").text
            if global_bank is not None and hook_event == SESSION_START
            else ""
        )
    with _open_bank(place, dialect) as bank:
        told = _brief_for_event(bank, dialect, hook_event, payload, global_bank)
        return told.text if told is not None else ""


def _brief_for_event(
    bank: Bank, dialect: Dialect, hook_event: str, payload: HookPayload, global_bank: Bank | None
) -> RenderedBrief | None:
    from pathlib import Path

    from archivist import projects

    run = payload.run if len(payload.run) <= LONGEST_NAME else ""
    folder = Path(payload.folder or bank.root)
    with bank.reading() as reader:
        project = projects.project_at(reader, folder, bank.root)
    if hook_event == PROMPT:
        return bank.sessions.brief_prompt(run, project, payload.prompt)
    if hook_event == TOOL_FAILURE:
        tool = "Bash" if payload.command else payload.tool
        return bank.sessions.brief_failure(run, project, payload.error, tool=tool, command=payload.command)
    if hook_event == SUBAGENT_START:
        return bank.sessions.brief_subagent(run, project, role=payload.role, global_bank=global_bank)
    return bank.sessions.brief_session(
        run, project, folder=folder, provider=dialect.provider, global_bank=global_bank
    )


def _open_bank(place: Path, dialect: Dialect) -> Bank:
    from archivist.bank import Bank
    from archivist.config.layers import load_effective
    from archivist.paths import bank_file
    from archivist.records import Actor, ActorKind

    config = load_effective(bank_file(place).parent).config
    patience = min(config.store.busy_timeout_s, _PATIENCE_S)
    # What would be cut off is not chosen in the first place: what is recorded as told has been told.
    budget = min(config.brief.budget_tokens, _MOST_TOKENS)
    hasty = config._replace(
        store=config.store._replace(busy_timeout_s=patience),
        brief=config.brief._replace(budget_tokens=budget),
    )
    actor = Actor(ActorKind.ORCHESTRATOR, dialect.name)
    return Bank.open(place, create=False, actor=actor, config=hasty)


def _write_stdout(text: str) -> None:
    # A client that has closed our output hears nothing; Python then has none.
    if not text or sys.stdout is None:
        return
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        # The client has gone; nobody is left to tell.
        return
