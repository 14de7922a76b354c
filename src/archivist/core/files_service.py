"""Follow files as playbook and rules: their text is core memory once an approver has accepted it.

A file in a repository says what whoever can push wants it to say. So a change of a followed file is proposed,
and the text that was accepted stays until somebody accepts the next. Which files are followed is noted under
the user's home, where no repository and no bank can add one.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, decides, reads, writes
from archivist.capture.redaction import without_secrets
from archivist.core import blocks as core
from archivist.core.service import blocks_of
from archivist.errors import InputError, NotFoundError, StateError
from archivist.files.open import read_bounded
from archivist.files.write import replace_file
from archivist.paths import state_folder
from archivist.records import ARCHIVIST, Block
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.records import Proposal

_FILE_NAME = "core-files.json"


class FollowedFile(NamedTuple):
    """A file that a block follows; `is_changed` when it says something else than the block."""

    block: str
    path: Path
    is_changed: bool = False
    problem: str = ""


class CoreFiles(BankService):
    """The files that playbook and rules follow."""

    @decides(Layer.PROPOSALS)
    def follow(
        self, section: str, path: str | Path, *, role: str = "", is_approved: bool = False
    ) -> FollowedFile:
        """Take a file's text as playbook or rules, as an approver may, and propose its later changes.

        A text with risky commands, or with orders against the user, is taken only if the approver vouches
        for it.
        """
        from archivist.lessons.file_words import VOUCH_HINT
        from archivist.lessons.risky_text import suspicion

        which = core.section_of(section, core.GUARDED)
        block = Block(section=which, role=core.validate_role(role), updated=self._bank.now())
        place = Path(path).absolute()
        text = _read_text(place)
        if text != self._accepted_text(block.id):
            why = "" if is_approved else suspicion(text)
            if why:
                raise StateError(f"{place.name}: {why}", hint=VOUCH_HINT)
            reason = f"follow {place.name}"
            self._bank.proposals.adopt(which.value, text, reason=reason, role=block.role)
        else:
            self._bank.proposals.require_approver(which.value)
        self._store_paths({**self._load_paths(), block.id: str(place)})
        return FollowedFile(block.id, place)

    @decides(Layer.PROPOSALS)
    def unfollow(self, section: str, *, role: str = "") -> FollowedFile:
        """Stop following a file; the text that was accepted stays."""
        which = core.section_of(section, core.GUARDED)
        name = Block(section=which, role=role, updated=self._bank.now()).id
        self._bank.proposals.require_approver(which.value)
        noted = self._load_paths()
        if name not in noted:
            raise NotFoundError("followed file", name, hint="archivist core files lists them")
        place = Path(noted.pop(name))
        self._store_paths(noted)
        return FollowedFile(name, place)

    @reads(Layer.CORE)
    def list(self) -> list[FollowedFile]:
        """Return the followed files, and which of them say something else than what was accepted."""
        found = []
        for name, path in self._load_paths().items():
            is_changed, problem = False, ""
            try:
                is_changed = _read_text(Path(path)) != self._accepted_text(name)
            except InputError as error:
                problem = error.message
            found.append(FollowedFile(name, Path(path), is_changed, problem))
        return found

    @writes(Layer.PROPOSALS)
    def refresh(self) -> tuple[Proposal, ...]:
        """Propose what followed files say now; the same text is proposed once, even if it was rejected."""
        archivist = self._bank.acting_as(ARCHIVIST)
        made = []
        for each in self.list():
            if not each.is_changed:
                continue
            section, _, role = each.block.partition(":")
            text = _read_text(each.path)
            known = self._bank.proposals.list()
            if any((old.section, old.role, old.after) == (section, role, text) for old in known):
                continue
            # A text that no longer fits waits until somebody shortens it; `list` still says that it changed.
            with suppress(InputError):
                reason = f"{each.path.name} has changed"
                made.append(archivist.proposals.propose(section, text, reason=reason, role=role))
        return tuple(made)

    def _accepted_text(self, block: str) -> str:
        with self._bank.reading() as reader:
            return core.text_of(blocks_of(reader).get(block))

    def _load_paths(self) -> dict[str, str]:
        path = state_folder(self._bank.path) / _FILE_NAME
        if not path.is_file():
            return {}
        noted = json.loads(read_bounded(path))
        guarded = tuple(section.value for section in core.GUARDED)
        return {name: where for name, where in noted.items() if name.partition(":")[0] in guarded}

    def _store_paths(self, noted: dict[str, str]) -> None:
        path = state_folder(self._bank.path) / _FILE_NAME
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(noted, ensure_ascii=False, indent=1).encode(), is_private=True)


def _read_text(path: Path) -> str:
    """Return a file's text as core memory keeps it: without secrets, and without blank lines around it."""
    text = read_bounded(path).decode("utf-8", "replace")
    return str(without_secrets(text)).strip("\n").rstrip()
