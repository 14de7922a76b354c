"""Working memory: an agent's private scratch, which no other agent may read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import cast

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.redaction import without_secrets
from archivist.clock import to_text
from archivist.layers.working.memory import (
    Scratch,
    WorkingState,
    merge_context,
    normalize_constraints,
    state_from_snapshot,
    validate_state,
    with_note,
)
from archivist.records import Working
from archivist.service import BankService
from archivist.store.filters import at_most


class WorkingMemory(BankService):
    """The acting agent's private scratch. It is never searched, briefed or exported."""

    @reads(Layer.WORKING)
    def get(self, agent: str = "") -> Working | None:
        """Return the stored working memory of an agent; None when there is none or it has expired."""
        owner = self._owner(agent, Verb.READ)
        with self._bank.reading() as reader:
            kept = reader.get(Working, owner)
        return kept if kept is not None and self._bank.now() < kept.expires else None

    @writes(Layer.WORKING)
    def update(
        self,
        *,
        agent: str = "",
        plan: str | None = None,
        constraints: Iterable[str] | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Working:
        """Change the plan, replace the constraints, set values of the context; the rest stays.

        A value of None removes its key from the context.
        """

        def change(state: WorkingState) -> WorkingState:
            state = state if plan is None else replace(state, plan=plan)
            if constraints is not None:
                state = replace(state, constraints=normalize_constraints(constraints))
            if context is not None:
                state = replace(state, context=merge_context(state.context, context))
            return state

        return self._change(agent, "update", change)

    @writes(Layer.WORKING)
    def note(self, text: str, *, agent: str = "") -> Working:
        """Add a note to the scratchpad."""
        return self._change(
            agent, "note", lambda state: replace(state, scratchpad=with_note(state.scratchpad, text))
        )

    @writes(Layer.WORKING)
    def clear(self, *, agent: str = "") -> bool:
        """Delete the working memory; False when there was none."""
        owner = self._owner(agent, Verb.WRITE)
        with self._bank.transaction() as writer:
            return writer.remove(Working, owner, "clear")

    @writes(Layer.WORKING)
    def open(self, agent: str = "") -> Scratch:
        """Return the working memory of a running agent, loaded from its last snapshot.

        As a context manager it stores a snapshot at the end. The later of two snapshots wins.
        """
        owner = self._owner(agent, Verb.WRITE)
        return Scratch(
            owner,
            state_from_snapshot(self.get(owner)),
            lambda state: self._change(owner, "snapshot", lambda _: state),
        )

    def _change(self, agent: str, verb: str, change: Callable[[WorkingState], WorkingState]) -> Working:
        """Read, change and write the agent's memory in one transaction; expired ones are deleted."""
        bank, owner = self._bank, self._owner(agent, Verb.WRITE)
        with bank.transaction() as writer:
            now = bank.now()
            for (gone,) in writer.select_fields(Working, ("id",), at_most("expires", to_text(now))):
                writer.remove(Working, gone, "expire")
            state = validate_state(change(state_from_snapshot(writer.get(Working, owner))))
            kept = Working(
                id=owner,
                plan=str(without_secrets(state.plan)),
                constraints=tuple(str(without_secrets(text)) for text in state.constraints),
                context=cast("dict[str, object]", without_secrets(state.context)),
                scratchpad=tuple(str(without_secrets(text)) for text in state.scratchpad),
                updated=now,
                expires=now + timedelta(days=bank.config.working.expires_days),
            )
            writer.put(kept, verb)
        return kept

    def _owner(self, agent: str, verb: Verb) -> str:
        owner = agent or self._bank.actor.name
        self.require(Layer.WORKING, verb, owner=owner)
        return owner
