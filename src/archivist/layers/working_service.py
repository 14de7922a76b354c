"""Working memory: an agent's private scratch, which no other agent may read.

A running agent has it in its process, and loses it with the process unless a snapshot was stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from threading import RLock
from typing import cast

from archivist.access.rights import Layer, Verb, reads, writes
from archivist.capture.redaction import without_secrets
from archivist.clock import to_text
from archivist.errors import InputError, StateError
from archivist.records import Working
from archivist.service import BankService
from archivist.store.filters import at_most

# Working memory is read and written as a whole, so its size is the cost of each change.
MOST_NOTES = 1_000
MOST_CONSTRAINTS = 100
MOST_CHARACTERS = 8_000
MOST_BYTES = 256 * 1024
_TOO_LONG = "store long texts in a file or an artifact, and its name here"


def validate_working(working: Working) -> Working:
    """Return working memory with its context as plain JSON, or raise InputError when it cannot be stored."""
    texts = {"plan": (working.plan,), "constraint": working.constraints, "note": working.scratchpad}
    for name, items in texts.items():
        for text in items:
            _check_text(name, text)
    for name, most in (("constraint", MOST_CONSTRAINTS), ("note", MOST_NOTES)):
        if len(texts[name]) > most:
            hint = "clear what is no longer needed"
            raise StateError(f"{len(texts[name]):,} {name}s, at most {most:,}", hint=hint)
    for key in working.context:
        if not isinstance(key, str):
            raise InputError(f"context: the key {key!r} is not a text")
    try:
        context = json.dumps(working.context, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "texts, numbers, lists and objects; no files or dates"
        raise InputError(f"context: not JSON: {error}", hint=hint) from None
    written = "".join(text for items in texts.values() for text in items)
    size = len(context) + len(written.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        message = f"working memory: {size:,} bytes, at most {MOST_BYTES:,}: {size - MOST_BYTES:,} too many"
        raise StateError(message, hint=_TOO_LONG)
    return replace(working, context=json.loads(context))


def with_context(working: Working, given: Mapping[str, object]) -> Working:
    """Return working memory with these values in its context; a value of None removes its key."""
    if not isinstance(given, Mapping):
        raise InputError(f"context: expected an object, not {given!r}", hint='{"key": "value"}')
    merged = {**working.context, **given}
    return replace(working, context={key: value for key, value in merged.items() if value is not None})


def with_constraints(working: Working, given: Iterable[str]) -> Working:
    """Return working memory with these constraints, each once; a single text is one constraint."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        _check_text("constraint", text)
    return replace(working, constraints=tuple(dict.fromkeys(text.strip() for text in texts if text.strip())))


def with_note(working: Working, text: str) -> Working:
    """Return working memory with a note appended."""
    _check_text("note", text)
    if not text.strip():
        raise InputError("the note is empty")
    return replace(working, scratchpad=(*working.scratchpad, text.strip()))


class Scratch:
    """The working memory of a running agent; safe to use from several threads.

    As a context manager it stores a snapshot at the end of the block, also after an error.
    """

    def __init__(self, working: Working, keep: Callable[[Working], Working]) -> None:
        self.agent = working.id
        self._working = working
        self._keep = keep
        self._lock = RLock()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_error: object) -> None:
        self.snapshot()

    @property
    def plan(self) -> str:
        """Return the current plan."""
        return self._working.plan

    @plan.setter
    def plan(self, text: str) -> None:
        self._update(lambda working: replace(working, plan=text))

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return the active constraints."""
        return self._working.constraints

    @property
    def scratchpad(self) -> tuple[str, ...]:
        """Return the notes, oldest first."""
        return self._working.scratchpad

    @property
    def context(self) -> dict[str, object]:
        """Return the task's context, as a copy."""
        return dict(self._working.context)

    def constrain(self, *texts: str) -> None:
        """Add constraints; known ones are not added again."""
        self._update(lambda working: with_constraints(working, (*working.constraints, *texts)))

    def lift(self, text: str) -> None:
        """Remove a constraint, if it is active."""
        gone = text.strip()
        self._update(lambda kept: with_constraints(kept, (each for each in kept.constraints if each != gone)))

    def note(self, text: str) -> None:
        """Add a note to the scratchpad."""
        self._update(lambda working: with_note(working, text))

    def know(self, **values: object) -> None:
        """Set values of the context; None removes a value."""
        self._update(lambda working: with_context(working, values))

    def clear(self) -> None:
        """Empty the working memory."""
        self._update(lambda working: replace(working, plan="", constraints=(), context={}, scratchpad=()))

    def snapshot(self) -> Working:
        """Store the current state in the bank, for a warm restart."""
        with self._lock:
            return self._keep(self._working)

    def _update(self, change: Callable[[Working], Working]) -> None:
        with self._lock:
            self._working = validate_working(change(self._working))


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

        def change(working: Working) -> Working:
            working = working if plan is None else replace(working, plan=plan)
            working = working if constraints is None else with_constraints(working, constraints)
            return working if context is None else with_context(working, context)

        return self._change(agent, "update", change)

    @writes(Layer.WORKING)
    def note(self, text: str, *, agent: str = "") -> Working:
        """Add a note to the scratchpad."""
        return self._change(agent, "note", lambda working: with_note(working, text))

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
        owner, now = self._owner(agent, Verb.WRITE), self._bank.now()
        return Scratch(
            self.get(owner) or Working(id=owner, updated=now, expires=now),
            lambda working: self._change(owner, "snapshot", lambda _: working),
        )

    def _change(self, agent: str, verb: str, change: Callable[[Working], Working]) -> Working:
        """Read, change and write the agent's memory in one transaction; expired ones are deleted."""
        bank, owner = self._bank, self._owner(agent, Verb.WRITE)
        with bank.transaction() as writer:
            now = bank.now()
            for (gone,) in writer.select_fields(Working, ("id",), at_most("expires", to_text(now))):
                writer.remove(Working, gone, "expire")
            before = writer.get(Working, owner) or Working(id=owner, updated=now, expires=now)
            working = validate_working(change(before))
            kept = replace(
                working,
                plan=str(without_secrets(working.plan)),
                constraints=tuple(str(without_secrets(text)) for text in working.constraints),
                context=cast("dict[str, object]", without_secrets(working.context)),
                scratchpad=tuple(str(without_secrets(text)) for text in working.scratchpad),
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
