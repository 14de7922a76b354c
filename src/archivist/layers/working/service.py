"""Work on working memory: one agent's own, whoever else asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import cast

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.secrets import without_secrets
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
        """Return what the agent kept; None when there is nothing, or it has expired."""
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
        """Change the plan, replace the constraints, set values of the context; what is not given stays.

        A value of None takes its key out of the context.
        """

        def change(mind: WorkingState) -> WorkingState:
            mind = mind if plan is None else replace(mind, plan=plan)
            if constraints is not None:
                mind = replace(mind, constraints=normalize_constraints(constraints))
            if context is not None:
                mind = replace(mind, context=merge_context(mind.context, context))
            return mind

        return self._change(agent, "update", change)

    @writes(Layer.WORKING)
    def note(self, text: str, *, agent: str = "") -> Working:
        """Add a note to the scratchpad."""
        return self._change(
            agent, "note", lambda mind: replace(mind, scratchpad=with_note(mind.scratchpad, text))
        )

    @writes(Layer.WORKING)
    def clear(self, *, agent: str = "") -> bool:
        """Let go of everything; False when there was nothing."""
        owner = self._owner(agent, Verb.WRITE)
        with self._bank.transaction() as writer:
            return writer.remove(Working, owner, "clear")

    @writes(Layer.WORKING)
    def open(self, agent: str = "") -> Scratch:
        """Return the working memory of a running agent, warm from its last snapshot.

        As a context manager it keeps a snapshot when it is left. The later of two snapshots counts.
        """
        owner = self._owner(agent, Verb.WRITE)
        return Scratch(
            owner,
            state_from_snapshot(self.get(owner)),
            lambda mind: self._change(owner, "snapshot", lambda _: mind),
        )

    def _change(self, agent: str, verb: str, change: Callable[[WorkingState], WorkingState]) -> Working:
        """Read the agent's memory, change it and write it, as one transaction; the expired ones go."""
        bank, owner = self._bank, self._owner(agent, Verb.WRITE)
        with bank.transaction() as writer:
            now = bank.now()
            for (gone,) in writer.select_fields(Working, ("id",), at_most("expires", to_text(now))):
                writer.remove(Working, gone, "expire")
            mind = _clean(validate_state(change(state_from_snapshot(writer.get(Working, owner)))))
            kept = Working(
                id=owner,
                plan=mind.plan,
                constraints=mind.constraints,
                context=mind.context,
                scratchpad=mind.scratchpad,
                updated=now,
                expires=now + timedelta(days=bank.config.working.expires_days),
            )
            writer.put(kept, verb)
        return kept

    def _owner(self, agent: str, verb: Verb) -> str:
        owner = agent or self._bank.actor.name
        self.require(Layer.WORKING, verb, owner=owner)
        return owner


def _clean(mind: WorkingState) -> WorkingState:
    """Return what is in mind without its secrets, as it may be stored."""
    return WorkingState(
        plan=str(without_secrets(mind.plan)),
        constraints=tuple(str(without_secrets(each)) for each in mind.constraints),
        context=cast("dict[str, object]", without_secrets(mind.context)),
        scratchpad=tuple(str(without_secrets(each)) for each in mind.scratchpad),
    )
