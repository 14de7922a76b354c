"""Core memory: the blocks that are always in context, and changes of those that need no approval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from archivist.access.rights import Layer, Verb, decides, reads, writes
from archivist.capture.redaction import without_secrets
from archivist.clock import to_short_text
from archivist.core import blocks as core
from archivist.core.blocks import GUARDED, SHARED, Content, CoreView, Given, ListName
from archivist.errors import InputError, StateError
from archivist.records import ActorKind, Block, CoreSection
from archivist.records.layers import FILE_SOURCE
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.lessons.file_words import FileWords
    from archivist.store.protocol import Reader, Writer

_LAST_THREAD = "last_thread"
_VOUCH = "--approve if you have read the file and vouch for it"


class Core(BankService):
    """The blocks that are always in context."""

    @reads(Layer.CORE)
    def view(self, role: str = "") -> CoreView:
        """Return the core memory of a role, by default the actor's, with its size."""
        with self._bank.reading() as reader:
            blocks = blocks_of(reader)
        return core.view_of(blocks, role.strip() or self._bank.actor.role, self._bank.config.core)

    @reads(Layer.CORE)
    def render(self, role: str = "") -> str:
        """Return the core memory of a role as text for a prompt."""
        return self.view(role).text

    @reads(Layer.CORE)
    def blocks(self) -> list[Block]:
        """Return every block of every role, in display order."""
        with self._bank.reading() as reader:
            found = blocks_of(reader).values()
        return sorted(found, key=lambda block: (list(CoreSection).index(block.section), block.role))

    @writes(Layer.CORE)
    def update(self, section: str, content: Given, *, role: str = "") -> Block:
        """Change status, threads, role state or lessons: given fields are replaced, the others stay.

        A text sets the sprint of the status, what a role works on, or all of a role's lessons. A list of
        threads replaces the list. Role state and lessons are by default those of the actor's own role.
        """
        return self._update(section, content, role)

    def _update(self, section: str, content: Given, role: str, words: FileWords | None = None) -> Block:
        self._refuse_guarded(section)
        which = core.section_of(section, core.FREE)
        given = cast("Given", without_secrets(content))
        keep = self._bank.config.core.recently_shipped
        return self._change(
            which,
            role,
            "update",
            lambda before, now, _: core.update_section(which, before, given, now=now, keep=keep),
            words,
        )

    @decides(Layer.ARCHIVE)
    def take_from_file(self, words: FileWords, section: str, content: Given, *, role: str = "") -> Block:
        """Update a section, or append a thread, in the name of the file that says it.

        A file for which nobody vouches replaces only what files said, and its risky words are refused.
        """
        from archivist.lessons.file_words import require_voucher

        if words.is_approved:
            require_voucher(self._bank, Layer.CORE, words.file)
        if section == ListName.THREADS:
            return self._append(section, content, role, words)
        return self._update(section, content, role, words)

    @writes(Layer.CORE)
    def append(self, section: str, item: Given, *, role: str = "") -> Block:
        """Append to threads, blockers, inProgress, recentlyShipped or lessons.

        A thread with a known id is updated; one without an id gets the next, t-1. An item is not added twice.
        Of shipped items the last few are kept, the newest last.
        """
        return self._append(section, item, role)

    def _append(self, section: str, item: Given, role: str, words: FileWords | None = None) -> Block:
        place = self._resolve_list(section)
        keep = self._bank.config.core.recently_shipped
        given = cast("Given", without_secrets(item))

        def change(before: Content, now: str, writer: Writer) -> Content:
            # The number of a closed thread is not used again.
            known = {thread.id for thread in core.threads_of(before)}
            numbers = count(writer.int_setting(_LAST_THREAD) + 1)
            number = next(number for number in numbers if f"t-{number}" not in known)
            free = f"t-{number}"
            after = core.append_item(place, before, given, now=now, keep=keep, new_thread=free)
            if any(thread.id == free for thread in core.threads_of(after)):
                writer.set_setting(_LAST_THREAD, str(number))
            return after

        return self._change(place.section, role, "append", change, words)

    @writes(Layer.CORE)
    def close_thread(self, name: str) -> Block:
        """Remove a thread from the list; its history stays."""
        return self._take_out(ListName.THREADS, name, "", "close")

    @writes(Layer.CORE)
    def take_out(self, section: str, item: str, *, role: str = "") -> Block:
        """Remove an item from a list: a thread by its id, anything else by its text."""
        return self._take_out(self._resolve_list(section), item, role, "take out")

    def _take_out(self, place: ListName, item: str, role: str, verb: str) -> Block:
        return self._change(
            place.section, role, verb, lambda before, _now, _: core.remove_item(place, before, item)
        )

    def _resolve_list(self, name: str) -> ListName:
        self._refuse_guarded(name)
        return core.list_of(name)

    def _refuse_guarded(self, name: str) -> None:
        """Refuse a change of a guarded block, and note the refusal in the ledger."""
        if (word := name.strip().lower()) in GUARDED:
            hint = core.proposal_command(CoreSection(word))
            self._bank.refuse(Layer.CORE, Verb.WRITE, what=word, hint=hint)

    def _change(
        self,
        section: CoreSection,
        role: str,
        verb: str,
        change: Callable[[Content, str, Writer], Content],
        words: FileWords | None = None,
    ) -> Block:
        """Read a block, change it and write it within its budget, as one transaction."""
        bank = self._bank
        whose = self._resolve_role(section, role)
        with bank.transaction() as writer:
            now = bank.now()
            blocks = blocks_of(writer)
            empty = Block(section=section, role=whose, updated=now)
            before = blocks.get(empty.id, empty)
            known = core.without_speakers(before.content)
            content = change(known, to_short_text(now.replace(microsecond=0)), writer)
            if content == known:
                return before
            is_agent = bank.actor.kind is ActorKind.AGENT
            speaker = f"agent {bank.actor.name}".rstrip() if is_agent else words.speaker if words else ""
            noted = core.note_speakers(before, content, speaker)
            after = replace(before, content=noted, updated=now, actor=bank.actor)
            if is_agent and section is CoreSection.LESSONS and core.drops_others_lines(before, content):
                hint = "a person wrote lines that it would remove: append yours instead"
                bank.refuse(Layer.CORE, Verb.WRITE, what=after.id, hint=hint)
            if speaker and not is_agent and core.drops_others_lines(before, content, only=FILE_SOURCE):
                raise StateError(f"{after.id}: others wrote what it would replace", hint=_VOUCH)
            if speaker:
                self._refuse_risky(before, after, content)
            core.check_budget(blocks, after, bank.config.core)
            writer.put(after, verb)
        return after

    def _refuse_risky(self, before: Block, after: Block, content: Content) -> None:
        """Refuse risky words of an agent or a file: core memory has no quarantine.

        They are judged in the new lines, and in all lines together unless a person wrote it so.
        """
        from archivist.lessons.agent_words import agent_suspicion

        is_known = bool(agent_suspicion(core.render_block(before)))
        whole = () if is_known else (core.render_block(after),)
        if why := agent_suspicion(*core.new_lines(before, content)) or agent_suspicion(*whole):
            hint = f"{why}: only a person may write that"
            if self._bank.actor.kind is not ActorKind.AGENT:
                raise StateError(f"{after.id}: a file may not write there what {why}", hint=_VOUCH)
            self._bank.refuse(Layer.CORE, Verb.WRITE, what=after.id, hint=hint)

    def _resolve_role(self, section: CoreSection, role: str) -> str:
        """Return the role whose block is changed; an agent may only change its own role's."""
        actor = self._bank.actor
        if section in SHARED:
            return ""
        whose = core.validate_role(role or actor.role)
        if section is CoreSection.ROLE_STATE and not whose:
            raise InputError("role_state: no role is given", hint="--role ROLE, or --actor agent:NAME:ROLE")
        if whose and actor.kind is ActorKind.AGENT and whose != actor.role:
            hint = f"an agent may only write for its own role: --actor agent:NAME:{whose}"
            self._bank.refuse(Layer.CORE, Verb.WRITE, what=f"{section.value}:{whose}", hint=hint)
        return whose


def blocks_of(reader: Reader) -> dict[str, Block]:
    """Return every block of core memory by its id."""
    return {block.id: block for block in reader.select(Block, order=("id",))}
