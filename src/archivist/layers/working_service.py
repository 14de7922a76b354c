"""Working memory: an agent's private scratch, which no other agent may read.

A running agent has it in its process, and loses it with the process unless a snapshot was stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import RLock
from types import TracebackType
from typing import cast

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.redaction import without_secrets
from archivist.clock import to_text
from archivist.errors import InputError
from archivist.records import Working
from archivist.service import BankService
from archivist.store.filters import at_most

# Working memory is read and written as a whole, so its size is the cost of each change.
MOST_NOTES = 1_000
MOST_CONSTRAINTS = 100
MOST_CHARACTERS = 8_000
MOST_BYTES = 256 * 1024
_TOO_LONG = "store long texts in a file or an artifact, and its name here"


@dataclass(frozen=True, slots=True)
class WorkingState:
    """The working memory of an agent at one moment."""

    plan: str = ""
    constraints: tuple[str, ...] = ()
    context: dict[str, object] = field(default_factory=dict)
    scratchpad: tuple[str, ...] = ()


def state_from_snapshot(working: Working | None) -> WorkingState:
    """Return the state of a snapshot; an empty one without a snapshot."""
    if working is None:
        return WorkingState()
    return WorkingState(working.plan, working.constraints, dict(working.context), working.scratchpad)


def validate_state(state: WorkingState) -> WorkingState:
    """Return the state with its context as plain JSON; raise InputError when it is too large or not JSON."""
    texts = {"plan": (state.plan,), "constraint": state.constraints, "note": state.scratchpad}
    for name, items in texts.items():
        for text in items:
            _check_text(name, text)
    limits = (
        ("constraints", state.constraints, MOST_CONSTRAINTS),
        ("notes", state.scratchpad, MOST_NOTES),
    )
    for name, items, most in limits:
        if len(items) > most:
            raise InputError(
                f"{len(items):,} {name}, at most {most:,}", hint="clear what is no longer needed"
            )
    bad_key = next((key for key in state.context if not isinstance(key, str)), None)
    if bad_key is not None:
        raise InputError(f"context: the key {bad_key!r} is not a text")
    try:
        context = json.dumps(dict(state.context), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "texts, numbers, lists and objects; no files or dates"
        raise InputError(f"context: not JSON: {error}", hint=hint) from None
    size = len(context) + sum(
        len(text.encode("utf-8", "replace")) for items in texts.values() for text in items
    )
    if size > MOST_BYTES:
        raise InputError(
            f"working memory: {size:,} bytes, at most {MOST_BYTES:,}: {size - MOST_BYTES:,} too many",
            hint=_TOO_LONG,
        )
    return replace(state, context=json.loads(context))


def merge_context(before: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return a context with the given values; a value of None removes its key."""
    if not isinstance(given, Mapping):
        raise InputError(f"context: expected an object, not {given!r}", hint='{"key": "value"}')
    return {key: value for key, value in {**before, **given}.items() if value is not None}


def normalize_constraints(given: Iterable[str]) -> tuple[str, ...]:
    """Return constraints without duplicates; a single text is one constraint."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        _check_text("constraint", text)
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def with_note(scratchpad: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return a scratchpad with a note appended."""
    _check_text("note", text)
    if not text.strip():
        raise InputError("the note is empty")
    return (*scratchpad, text.strip())


class Scratch:
    """The working memory of a running agent; safe to use from several threads.

    As a context manager it stores a snapshot at the end of the block, also after an error.
    """

    def __init__(self, agent: str, state: WorkingState, keep: Callable[[WorkingState], Working]) -> None:
        self.agent = agent
        self._state = state
        self._keep = keep
        self._lock = RLock()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.snapshot()

    @property
    def state(self) -> WorkingState:
        """Return a copy of the current state."""
        with self._lock:
            return replace(self._state, context=dict(self._state.context))

    @property
    def plan(self) -> str:
        """Return the current plan."""
        return self._state.plan

    @plan.setter
    def plan(self, text: str) -> None:
        self._update_state(lambda state: replace(state, plan=text))

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return the active constraints."""
        return self._state.constraints

    @property
    def scratchpad(self) -> tuple[str, ...]:
        """Return the notes, oldest first."""
        return self._state.scratchpad

    @property
    def context(self) -> dict[str, object]:
        """Return the task's context, as a copy."""
        return dict(self._state.context)

    def constrain(self, *texts: str) -> None:
        """Add constraints; known ones are not added again."""
        self._update_state(
            lambda state: replace(state, constraints=normalize_constraints((*state.constraints, *texts)))
        )

    def lift(self, text: str) -> None:
        """Remove a constraint, if it is active."""
        kept = text.strip()
        self._update_state(
            lambda state: replace(
                state, constraints=tuple(each for each in state.constraints if each != kept)
            )
        )

    def note(self, text: str) -> None:
        """Add a note to the scratchpad."""
        self._update_state(lambda state: replace(state, scratchpad=with_note(state.scratchpad, text)))

    def know(self, **values: object) -> None:
        """Set values of the context; None removes a value."""
        self._update_state(lambda state: replace(state, context=merge_context(state.context, values)))

    def clear(self) -> None:
        """Empty the working memory."""
        self._update_state(lambda _state: WorkingState())

    def snapshot(self) -> Working:
        """Store the current state in the bank, for a warm restart."""
        with self._lock:
            return self._keep(self._state)

    def _update_state(self, change: Callable[[WorkingState], WorkingState]) -> None:
        with self._lock:
            self._state = validate_state(change(self._state))


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


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{name}: expected a text, not {text!r}")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{name}: {len(text):,} characters, at most {MOST_CHARACTERS:,}", hint=_TOO_LONG)
