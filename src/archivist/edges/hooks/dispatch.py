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
    Said,
    moment_of,
    text_in,
    within,
)

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.select import Told

# A tool's output is far below this; more is somebody's mistake.
_MOST_BYTES = 16 * 1024 * 1024
# At four characters a token, and with room for the marks around them.
_MOST_TOKENS = MOST_CHARACTERS * 7 // 8 // 4
# An agent waits: rather unrecorded than late.
_PATIENCE_S = 1.0


def answer(words: Sequence[str], bank: str = "") -> None:
    """Answer the event on stdin to stdout; whatever goes wrong is noted for the doctor."""
    # For `dataclasses` and for `urllib.parse`, a tenth of all there is to load.
    _put_off("inspect")
    _put_off("ipaddress")
    folder = ""
    written = ""
    said: Mapping[str, object] = {}
    try:
        dialect = _dialect(words)
        written = dialect.write("", "")
        said = _heard(sys.stdin.buffer.read(_MOST_BYTES + 1) if sys.stdin else b"")
        moment = moment_of(dialect, words[1] if len(words) > 1 else _named(said))
        heard = dialect.read(said)
        folder = heard.folder
        event = dialect.events.get(moment, "")
        if moment and event:
            written = dialect.write(event, within(_told(dialect, moment, heard, bank)))
        elif len(words) > 1 and not moment and "-" in words[1]:
            # Clients have events that are nothing to us; a word with a hyphen is one of ours, misspelt.
            raise ValueError(f"no event {words[1]!r}")
    except Exception as error:  # noqa: BLE001 an agent must not fail because its memory did
        from archivist.edges.hooks.whereabouts import note, place_of_notes, reason_of

        if said.get(PROBE) is True:
            print(reason_of(error), file=sys.stderr)
        else:
            note(" ".join(words[:2]), error, place_of_notes(folder, bank))
    _print(written)


def _put_off(name: str) -> None:
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


def _dialect(words: Sequence[str]) -> Dialect:
    client = words[0] if words else ""
    if client not in CLIENTS:
        raise ValueError(f"no client {client!r}: one of {', '.join(CLIENTS)}")
    found: Dialect = import_module(f"archivist.edges.hooks.{client.replace('-', '_')}").DIALECT
    return found


def _heard(raw: bytes) -> Mapping[str, object]:
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


def _named(said: Mapping[str, object]) -> str:
    return text_in(said, "hook_event_name", "hookEventName")


def _told(dialect: Dialect, moment: str, said: Said, bank: str) -> str:
    """Return what there is to say at a moment; what happens after a session is handed over."""
    if moment == TOOL_FAILURE and not said.error:
        return ""
    from archivist.edges.hooks.whereabouts import note, place_of
    from archivist.errors import ArchivistError

    place, foreign = place_of(said.folder, bank)
    if foreign is not None:
        note(f"{dialect.name} {moment}", foreign, place)
    if moment in (STOP, SESSION_END):
        if place is not None:
            from archivist.edges.hooks.handover import hand_over

            hand_over(dialect, said, place, is_end=moment == SESSION_END or dialect.is_ended_by_stop)
        return ""
    home = _global_bank(dialect, moment, place)
    try:
        return _recalled(dialect, moment, said, place, home)
    except ArchivistError as error:
        if home is None or place is None:
            raise
        # Which of the two banks is damaged shows without the global one, and the project's may still speak.
        told = _recalled(dialect, moment, said, place, None)
        note(f"{dialect.name} {moment}, the global bank", error, place)
        return told
    finally:
        if home is not None:
            home.close()


def _global_bank(dialect: Dialect, moment: str, place: Path | None) -> Bank | None:
    """Open the user's global bank when there is one; one that cannot be does not mute the project's."""
    from archivist.edges.hooks.whereabouts import note
    from archivist.errors import ArchivistError
    from archivist.paths import bank_file, home_folder, is_file

    home = home_folder()
    if moment in (PROMPT, TOOL_FAILURE) or not is_file(bank_file(home)):
        return None
    try:
        return _open(home, dialect)
    except ArchivistError as error:
        note(f"{dialect.name} {moment}, the global bank", error, place)
        return None


def _recalled(dialect: Dialect, moment: str, said: Said, place: Path | None, beside: Bank | None) -> str:
    from archivist.brief import session_service as sessions

    if place is None:
        return sessions.begin(beside, "", "").text if beside is not None and moment == SESSION_START else ""
    with _open(place, dialect) as bank:
        told = _asked(bank, dialect, moment, said, beside)
        return told.text if told is not None else ""


def _asked(bank: Bank, dialect: Dialect, moment: str, said: Said, beside: Bank | None) -> Told | None:
    from pathlib import Path

    from archivist import projects
    from archivist.brief import session_service as sessions

    run = said.run if len(said.run) <= LONGEST_NAME else ""
    folder = Path(said.folder or bank.root)
    with bank.reading() as reader:
        project = projects.worked_on(reader, folder, bank.root)
    if moment == PROMPT:
        return sessions.prompted(bank, run, project, said.prompt)
    if moment == TOOL_FAILURE:
        tool = "Bash" if said.command else said.tool
        return sessions.failed(bank, run, project, said.error, tool=tool, command=said.command)
    if moment == SUBAGENT_START:
        return sessions.delegated(bank, run, project, role=said.role, beside=beside)
    return sessions.begin(bank, run, project, folder=folder, provider=dialect.provider, beside=beside)


def _open(place: Path, dialect: Dialect) -> Bank:
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


def _print(text: str) -> None:
    # A client that has closed our output hears nothing; Python then has none.
    if not text or sys.stdout is None:
        return
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        # The client has gone; nobody is left to tell.
        return
