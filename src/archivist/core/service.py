"""Work on core memory: what is always in context, and the parts of it that agents write freely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.secrets import without_secrets
from archivist.clock import to_short_text
from archivist.core import blocks as core
from archivist.core import view as core_view
from archivist.core.blocks import GUARDED, SHARED, Content, Given, ListName
from archivist.core.view import CoreView
from archivist.errors import InputError
from archivist.records import ActorKind, Block, CoreSection
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

_LAST_THREAD = "last_thread"


class Core(BankService):
    """The blocks that are always in context, in the name of the bank's actor."""

    @reads(Layer.CORE)
    def view(self, role: str = "") -> CoreView:
        """Return what a role has in its context, by default the actor's own, with what it costs."""
        with self._bank.reading() as reader:
            blocks = blocks_of(reader)
        return core_view.view_of(blocks, role.strip() or self._bank.actor.role, self._bank.config.core)

    @reads(Layer.CORE)
    def render(self, role: str = "") -> str:
        """Return what a role has in its context as text for a prompt; empty blocks are left out."""
        return self.view(role).text

    @reads(Layer.CORE)
    def blocks(self) -> list[Block]:
        """Return every block of every role, in the order in which they are shown."""
        with self._bank.reading() as reader:
            found = blocks_of(reader).values()
        return sorted(found, key=lambda block: (list(CoreSection).index(block.section), block.role))

    @writes(Layer.CORE)
    def update(self, section: str, content: Given, *, role: str = "") -> Block:
        """Change status, threads, role state or lessons: the fields given replace, the rest stays.

        A text is the sprint of a status, what a role works on, or all of a role's lessons. A list of threads
        replaces the list. Role state and lessons are by default those of the actor's own role.
        """
        which = core.section_of(section, core.FREE)
        self._refuse_guarded(which)
        given = cast("Given", without_secrets(content))
        keep = self._bank.config.core.recently_shipped
        return self._change(
            which,
            role,
            "update",
            lambda before, now, _: core.update_section(which, before, given, now=now, keep=keep),
        )

    @writes(Layer.CORE)
    def append(self, section: str, item: Given, *, role: str = "") -> Block:
        """Append to threads, blockers, inProgress, recentlyShipped or lessons.

        A thread whose id is known is updated; without an id it is given the next one, t-1. An equal item is
        not doubled. Of what shipped the last few are kept, the newest last.
        """
        place = self._resolve_list(section)
        keep = self._bank.config.core.recently_shipped
        given = cast("Given", without_secrets(item))

        def change(before: Content, now: str, writer: Writer) -> Content:
            free = _next_thread_id(before, writer) if place is ListName.THREADS else ""
            after = core.append_item(place, before, given, now=now, keep=keep, new_thread=free)
            if free and any(thread.id == free for thread in core.threads_of(after)):
                writer.set_setting(_LAST_THREAD, free.removeprefix("t-"))
            return after

        return self._change(place.section, role, "append", change)

    @writes(Layer.CORE)
    def close_thread(self, name: str) -> Block:
        """Take a thread that is settled out of the list; its history keeps it."""
        return self._change(
            CoreSection.THREADS,
            "",
            "close",
            lambda before, _now, _: core.remove_item(ListName.THREADS, before, name),
        )

    @writes(Layer.CORE)
    def take_out(self, section: str, item: str, *, role: str = "") -> Block:
        """Take one thing out of a list: a thread by its id, anything else by its words."""
        place = self._resolve_list(section)
        return self._change(
            place.section, role, "take out", lambda before, _now, _: core.remove_item(place, before, item)
        )

    def _resolve_list(self, name: str) -> ListName:
        try:
            return core.list_of(name)
        except InputError:
            # A guarded block is refused as one, and the refusal noted, whatever is asked of it.
            if name.strip().lower() in GUARDED:
                self._refuse_guarded(core.section_of(name))
            raise

    def _refuse_guarded(self, section: CoreSection) -> None:
        if section in GUARDED:
            self._bank.refuse(Layer.CORE, Verb.WRITE, what=section.value, hint=core.proposal_command(section))

    def _change(
        self,
        section: CoreSection,
        role: str,
        verb: str,
        change: Callable[[Content, str, Writer], Content],
    ) -> Block:
        """Read a block, change it and write it within its budget, as one transaction."""
        bank = self._bank
        whose = self._resolve_role(section, role)
        with bank.transaction() as writer:
            now = bank.now()
            blocks = blocks_of(writer)
            empty = Block(section=section, role=whose, updated=now)
            before = blocks.get(empty.id, empty)
            content = change(before.content, to_short_text(_truncate_to_seconds(now)), writer)
            if content == before.content:
                return before
            after = replace(before, content=content, updated=now, actor=bank.actor)
            self._refuse_injection(before, after)
            core_view.check_budget(blocks, after, bank.config.core)
            writer.put(after, verb)
        return after

    def _refuse_injection(self, before: Block, after: Block) -> None:
        """Refuse an agent words that would command whoever has them in context: here nothing can wait."""
        if self._bank.actor.kind is not ActorKind.AGENT:
            return
        from archivist.lessons.quarantine import suspicion

        why = suspicion(core_view.render_block(after))
        if why and not suspicion(core_view.render_block(before)):
            hint = f"{why}: a person may write that"
            self._bank.refuse(Layer.CORE, Verb.WRITE, what=after.id, hint=hint)

    def _resolve_role(self, section: CoreSection, role: str) -> str:
        """Return the role whose block is changed; another role's is refused to agents."""
        actor = self._bank.actor
        if section in SHARED:
            return ""
        whose = core.validate_role(role or actor.role)
        if section is CoreSection.ROLE_STATE and not whose:
            raise InputError("role_state: of which role?", hint="--role ROLE, or --actor agent:NAME:ROLE")
        if whose and actor.kind is ActorKind.AGENT and whose != actor.role:
            self._bank.refuse(
                Layer.CORE,
                Verb.WRITE,
                what=f"{section.value}:{whose}",
                hint=f"an agent writes what belongs to its own role: --actor agent:NAME:{whose}",
            )
        return whose


def blocks_of(reader: Reader) -> dict[str, Block]:
    """Return every block of core memory by its id."""
    return {block.id: block for block in reader.select(Block, order=("id",))}


def _next_thread_id(before: Content, writer: Writer) -> str:
    """Return the next thread id that was never given."""
    taken = {thread.id for thread in core.threads_of(before)}
    number = int(writer.setting(_LAST_THREAD) or 0) + 1
    while f"t-{number}" in taken:
        number += 1
    return f"t-{number}"


def _truncate_to_seconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
