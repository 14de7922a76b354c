"""Answer a hook: read what the client says, ask the bank, answer in the client's dialect, and never fail it.

A cold process runs this many times a session, so that everything is imported where it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from archivist.edges.hooks.said import Dialect, Said, moment_of, text_in, within
from archivist.moments import CLIENTS, PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.selection import Told

# A tool's output is far below this; more is somebody's mistake.
_MOST_BYTES = 16 * 1024 * 1024
_LONGEST_NAME = 200
# An agent waits: rather unrecorded than late.
_PATIENCE_S = 1.0


def answer(words: Sequence[str], bank: str = "") -> None:
    """Answer the event on stdin to stdout; whatever goes wrong is noted for the doctor."""
    # For `dataclasses` and for `urllib.parse`, a tenth of all there is to load.
    _put_off("inspect")
    _put_off("ipaddress")
    folder = ""
    written = ""
    try:
        dialect = _dialect(words)
        said = _heard(sys.stdin.buffer.read(_MOST_BYTES + 1))
        moment = moment_of(dialect, words[1] if len(words) > 1 else _named(said))
        heard = dialect.read(said)
        folder = heard.folder
        event = dialect.events.get(moment, "")
        written = dialect.write(event, "")
        if moment and event:
            written = dialect.write(event, within(_told(dialect, moment, heard, bank)))
        elif len(words) > 1 and not moment:
            raise ValueError(f"no event {words[1]!r}")
    except Exception as error:  # noqa: BLE001 an agent must not fail because its memory did
        _note(words, error, folder, bank)
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


def place_of(folder: str, bank: str = "") -> Path | None:
    """Return where the bank of a session lies: as named, else the nearest one above where it works."""
    from pathlib import Path

    from archivist.places import bank_file, find_project

    named = bank or os.environ.get("ARCHIVIST_BANK", "")
    if named:
        return Path(named) if bank_file(Path(named)).is_file() else None
    for start in (folder, os.environ.get("CLAUDE_PROJECT_DIR", ""), "."):
        if start and (found := find_project(Path(start).absolute())) is not None:
            return found
    return None


def project_of(folder: str, root: Path) -> str:
    """Return the name of the repository that a session works on: the nearest one up to the bank's root."""
    from pathlib import Path

    from archivist.capture.folders import project_of_folder

    start = Path(folder) if folder else root
    for each in (start, *start.parents):
        if each == root:
            break
        if (each / ".git").exists() and root in each.parents:
            return project_of_folder(str(each))
    return project_of_folder(str(root))


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
    place = place_of(said.folder, bank)
    if moment in (STOP, SESSION_END):
        if place is not None:
            from archivist.edges.hooks.handover import hand_over

            hand_over(dialect, said, place, is_end=moment == SESSION_END or dialect.is_ended_by_stop)
        return ""
    return _recalled(dialect, moment, said, place)


def _recalled(dialect: Dialect, moment: str, said: Said, place: Path | None) -> str:
    from archivist.desks import sessions
    from archivist.places import bank_file, home_folder

    home = home_folder()
    beside = _open(home, dialect) if bank_file(home).is_file() else None
    try:
        if place is None:
            if beside is None or moment != SESSION_START:
                return ""
            return sessions.begin(beside, "", "").text
        with _open(place, dialect) as bank:
            told = _asked(bank, dialect, moment, said, beside)
            return told.text if told is not None else ""
    finally:
        if beside is not None:
            beside.close()


def _asked(bank: Bank, dialect: Dialect, moment: str, said: Said, beside: Bank | None) -> Told | None:
    from archivist.desks import sessions

    run = said.run if len(said.run) <= _LONGEST_NAME else ""
    repo = project_of(said.folder, bank.root)
    if moment == PROMPT:
        return sessions.prompted(bank, run, repo, said.prompt)
    if moment == TOOL_FAILURE:
        tool = "Bash" if said.command else said.tool
        return sessions.failed(bank, run, repo, said.error, tool=tool, command=said.command)
    if moment == SUBAGENT_START:
        return sessions.delegated(bank, run, repo, role=said.role, beside=beside)
    return sessions.begin(bank, run, repo, provider=dialect.provider, beside=beside)


def _open(place: Path, dialect: Dialect) -> Bank:
    from archivist.bank import Bank
    from archivist.places import bank_file
    from archivist.records import Actor, ActorKind
    from archivist.settings import load_effective

    config = load_effective(bank_file(place).parent).config
    patience = min(config.store.busy_timeout_s, _PATIENCE_S)
    hasty = config._replace(store=config.store._replace(busy_timeout_s=patience))
    actor = Actor(ActorKind.ORCHESTRATOR, dialect.name)
    return Bank.open(place, create=False, actor=actor, config=hasty)


def _note(words: Sequence[str], error: Exception, folder: str, bank: str) -> None:
    """Note what went wrong where the doctor looks; a place that cannot be written keeps nothing."""
    from archivist.clock import system_clock
    from archivist.desks import hook_log
    from archivist.errors import ArchivistError
    from archivist.places import bank_file, home_folder

    reason = error.message if isinstance(error, ArchivistError) else f"{type(error).__name__}: {error}"
    try:
        place = place_of(folder, bank)
        home = bank_file(place).parent if place is not None else home_folder()
        if home.is_dir():
            hook_log.note(home, f"{' '.join(words[:2])}: {reason}", system_clock())
    except (OSError, RuntimeError, ValueError):
        return


def _print(text: str) -> None:
    if not text:
        return
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        # The client has gone; nobody is left to tell.
        return
