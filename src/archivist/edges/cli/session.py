"""What the commands of one call share: the banks, the settings, and the actor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import AccessError, ArchivistError, BankError, InputError, NoBankError
from archivist.paths import bank_file, home_folder, is_file
from archivist.text import on_one_line

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.config.sources import EffectiveConfig
    from archivist.records import Actor


def note_finished_erasures(bank: Bank) -> None:
    """Say which killed erasures opening the bank has finished, and where their text still is."""
    from archivist.edges.cli.output import note

    for receipt in bank.finished_erasures:
        note(f"archivist: finished the interrupted erasure {receipt.id}")
        for line in receipt.unclean_places:
            note(f"archivist: it may still be in {on_one_line(line)}")


# Files or problems that are named in one line.
_NAMED = 5
# An agent must not change who approves its proposals, what core memory may hold, what it may log, where the
# bank is written, or which model is asked and what it may spend.
_GUARDED_SETTINGS = ("proposals.", "core.", "tasks.", "files.", "model.")


@dataclass(frozen=True, slots=True)
class Session:
    """The options before the command."""

    bank_path: str
    actor_text: str
    flags: tuple[str, ...] = ()

    def find_bank_path(self) -> Path | None:
        """Return the path of the project's bank: the named one, or the nearest upwards; None without one.

        Every command asks here which project it is about, before it reads or changes anything: where the
        repository holds a link in the bank's place, LinkedBankError ends the command. A bank of the user's
        that was replaced by one is missed instead.
        """
        from archivist.trust import is_linked_place, is_noted, refuse_links

        if "://" in self.bank_path:
            hint = "ARCHIVIST_STORE or store.url names the server, --bank the project's folder"
            raise InputError("--bank and ARCHIVIST_BANK take a folder, not a URL", hint=hint)
        path = Path(self.bank_path) if self.bank_path else self.find_above(Path.cwd())[0]
        if path is None:
            return None
        file = bank_file(path)
        if is_linked_place(file) and not is_noted(file):
            refuse_links(file)
        return path if not self.bank_path or is_file(file) or is_noted(file) else None

    def find_above(self, start: Path) -> tuple[Path | None, Path | None]:
        """Return the nearest folder upwards with a bank, and one that is not the user's before it."""
        from archivist.trust import find_bank_folder

        return find_bank_folder(start, lambda: self.load_settings(None).config.trust.folders)

    def require_bank_path(self) -> Path:
        """Return the path of the project's bank, or raise NoBankError."""
        if (place := self.find_bank_path()) is None:
            raise NoBankError(self.bank_path or str(Path.cwd()))
        return place

    def bank(self, *, is_global: bool = False, folder: Path | None = None) -> Bank:
        """Open the project's bank, or the global one, which is created at first use.

        `folder` is where the caller works; a server for others works in none.
        """
        place = home_folder() if is_global else self.require_bank_path()
        from archivist.bank import Bank
        from archivist.edges.cli.output import note
        from archivist.trust import describe_loss, find_pulled_problem

        effective = self.load_settings(place)
        actor, rules = self.actor(), effective.config.core.roles
        if not actor.role and folder is not None and (rules or os.environ.get("ARCHIVIST_ROLE")):
            from archivist.access.roles import session_role

            actor = replace(actor, role=session_role(rules, folder=str(folder)))
        loaded = iter([effective])
        bank = Bank.open(
            bank_file(place),
            create=is_global,
            actor=actor,
            # Read once to open, and again when a right may have changed.
            config=lambda: (next(loaded, None) or self.load_settings(place)).config,
            folder=folder,
        )
        passed = None if is_global or self.bank_path else self.find_above(Path.cwd())[1]
        if passed is not None:
            name = on_one_line(str(bank_file(passed)))
            note(f"archivist: passed over {name}, which is not yours: archivist trust shows it")
        if not is_global and not bank.store.server:
            for problem in filter(None, (describe_loss(bank.path), find_pulled_problem(bank.path))):
                note(f"archivist: {problem}")
        note_finished_erasures(bank)
        if not is_global and any(effective.config.files):
            bank.is_mirrored = True
            self._read_files(bank)
        told = [key for key, origin in effective.origins.items() if origin.layer in ("flag", "environment")]
        guarded = [key for key in told if key.startswith(_GUARDED_SETTINGS)]
        if guarded and bank.actor.kind.value == "agent":
            from archivist.access.rights import Layer, Verb

            with bank:
                hint = "only people and orchestrators may set it"
                bank.refuse(Layer.BANK, Verb.WRITE, what=guarded[0], hint=hint)
        return bank

    def _read_files(self, bank: Bank) -> None:
        """Take in what others changed in the files beside the bank, and say so."""
        from archivist.edges.cli.output import note, quote_path

        try:
            done = bank.mirror.synchronise()
        except ArchivistError as error:
            note(f"archivist: the files beside the bank are not kept: {error.message}")
            return
        names = ", ".join(done.waiting[:_NAMED])
        if done.originals:
            copies = " ".join(map(quote_path, done.originals))
            note(f"archivist: read for the first time, copied as it was: {copies}")
            waits = f"; until then {names} wait for you" if names else ""
            note(f"hint: if it is yours, archivist import --approve {copies} takes it with its counts{waits}")
        elif done.waiting:
            note(f"archivist: changed by somebody else: {', '.join(done.changed)}")
            ways = "archivist lessons list --waiting, archivist lessons approve ID"
            note(f"hint: {names} wait for you: {ways}")
        if done.left:
            more = f" and {len(done.left) - _NAMED} more" if len(done.left) > _NAMED else ""
            note(
                f"archivist: edits by hand that were not taken: {', '.join(done.left[:_NAMED])}{more}"
                " (archivist lessons forget ID and archivist stream remove ID delete; counts come from runs)"
            )
        if done.edited:
            copies = " ".join(map(quote_path, done.edited))
            note(f"hint: if they are yours, archivist import --approve {copies} takes them")
        for problem in done.problems[:_NAMED]:
            note(f"archivist: {problem}")

    @contextmanager
    def bank_of(self, *names: str, is_global: bool = False) -> Iterator[tuple[Bank, list[str]]]:
        """Open the bank of some records, the global one for `global-m-001`; give the ids without mark."""
        from archivist.brief.select import global_mark_of

        marks = [global_mark_of(name) for name in names]
        # One call is one transaction, and two banks have no common one.
        if any(marks) and not all(marks):
            raise InputError("records of two banks in one call", hint="call it once for each bank")
        bare = [name.removeprefix(mark) for name, mark in zip(names, marks, strict=True)]
        with self.bank(is_global=is_global or any(marks), folder=Path.cwd()) as bank:
            yield bank, bare

    def find_banks(self, names: str, *, with_people: bool = False) -> dict[str, Path]:
        """Return banks by their names, `a,b` or `all` that this user has accepted; a name may be a path.

        People's own banks beside a team's are only meant by `all` when that is asked for.
        """
        from archivist.paths import OF_PERSON, bank_name
        from archivist.trust import has_bank_at, named_banks

        known = named_banks(self.load_settings(None).config.trust.folders)
        found: dict[str, Path] = {}
        for name in dict.fromkeys(part.strip() for part in names.split(",") if part.strip()):
            if name == "all":
                for each, files in known.items():
                    if with_people or OF_PERSON not in each:
                        found |= {each if len(files) == 1 else str(file): file for file in files}
            elif len(known.get(name, ())) > 1:
                hint = f"name a path: {', '.join(map(str, known[name]))}"
                raise InputError(f"{len(known[name])} banks are called {name!r}", hint=hint)
            elif name in known or has_bank_at(bank_file(Path(name))):
                file = known[name][0] if name in known else bank_file(Path(name))
                found[name if name in known else bank_name(file.absolute())] = file
            else:
                hint = f"yours are {', '.join(sorted(known)) or 'none'}; or name a path"
                raise NoBankError(name, hint=hint)
        if not found:
            raise NoBankError(names)
        return found

    def open_named(self, file: Path) -> Bank:
        """Open the bank in a file, for work on several banks."""
        from archivist.bank import Bank

        return Bank.open(
            file, create=False, actor=self.actor(), config=lambda: self.load_settings(file).config
        )

    def bank_if_any(self) -> Bank | None:
        """Open the project's bank, or return None without one."""
        return None if self.find_bank_path() is None else self.bank(folder=Path.cwd())

    def global_bank(self) -> Bank | None:
        """Open the global bank, or return None without one."""
        from archivist.trust import has_bank_at

        is_there = has_bank_at(bank_file(home_folder()))
        return self.bank(is_global=True, folder=Path.cwd()) if is_there else None

    def load_settings(self, place: Path | None) -> EffectiveConfig:
        """Return the effective settings for a bank, or without a project, including the flags."""
        from archivist.config.sources import load_effective

        return load_effective(bank_file(place).parent if place else None, flags=self.flags)

    def require_owner(self, layer: str = "bank") -> None:
        """Refuse an agent what only owners of a layer may do, and note it in the ledger if there is one."""
        actor = self.actor()
        if actor.kind.value != "agent":
            return
        from archivist.access.rights import Layer, Verb, access_hint, may
        from archivist.bank import Bank
        from archivist.config import Config

        can_write = may(actor, Layer(layer), Verb.WRITE)
        wanted = Layer(layer), Verb.DECIDE if can_write else Verb.WRITE
        # With the defaults, so that a broken configuration does not let an agent through; nor does a bank
        # that cannot be opened.
        if place := self.find_bank_path():
            file = bank_file(place)
            with suppress(BankError), Bank.open(file, actor=actor, config=Config()) as bank:
                bank.require(*wanted)
        raise AccessError(str(actor), wanted[1].value, layer, hint=access_hint(*wanted))

    def actor(self) -> Actor:
        """Return the actor: the named one, else the user of this machine."""
        from archivist.records import Actor, ActorKind

        if self.actor_text:
            return Actor.parse(self.actor_text)
        from getpass import getuser

        # In a container a user may have no name at all; Windows has no pwd.
        with suppress(ImportError, KeyError, OSError):
            return Actor(ActorKind.HUMAN, getuser())
        return Actor(ActorKind.HUMAN)
