"""What `archivist setup` did: noted in the state folder under the user's home, where no pull reaches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import changes
from archivist.edges.install.clients import InstallLocation, targets
from archivist.errors import InputError

FILE_NAME = "setup.json"


class SetupRecord(NamedTuple):
    """What setup did: made the bank and the user's folder or not; client, scope and root of each install."""

    has_made_bank: bool = False
    has_made_home: bool = False
    installs: Sequence[Sequence[str]] = ()

    @classmethod
    def load(cls, state: Path) -> SetupRecord:
        """Return the record in a bank's state folder; an empty one when there is none."""
        with suppress(OSError, ValueError, TypeError):
            return cls(**json.loads((state / FILE_NAME).read_text("utf-8")))
        return cls()

    def save(self, state: Path) -> None:
        """Write the record."""
        from archivist.files.write import replace_file

        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(state / FILE_NAME, json.dumps(self._asdict()).encode(), is_private=True)

    def places(self) -> list[tuple[str, InstallLocation]]:
        """Return the clients that were installed, and where, without folders that are gone."""
        found = [
            (client, InstallLocation(Path(root), is_user=scope == "user", is_local=scope == "local"))
            for client, scope, root in self.installs
            if client in CLIENTS
        ]
        return [each for each in dict.fromkeys(found) if each[1].root.is_dir()]

    def without(self, plans: Iterable[changes.ClientPlan]) -> SetupRecord:
        """Return the record without the clients that were uninstalled."""
        gone = [[plan.client, plan.place.scope, str(plan.place.root)] for plan in plans]
        return self._replace(installs=[each for each in self.installs if list(each) not in gone])

    def find_changed(self) -> list[str]:
        """Name the files that no longer hold the hooks that setup wrote: git pulls over ignored files."""
        changed = []
        for client, place in self.places():
            for target in targets(client, place, with_server=False):
                try:
                    is_whole = all(
                        change.action == "unchanged"
                        for change in changes.plan_install([replace(target, is_user=False)])
                    )
                except InputError:
                    is_whole = False
                if not is_whole:
                    remedy = f"look at it, then archivist install {client} --{place.scope}, or uninstall"
                    changed.append(
                        f"{target.path} does not hold what setup wrote for {client}, perhaps a pull"
                        f" replaced it: {remedy}"
                    )
        return changed
