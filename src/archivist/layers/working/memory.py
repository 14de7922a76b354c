"""One agent's working memory: plan, constraints, context and scratchpad, in its own process.

It is cheap to read and write, and lost with the process unless a snapshot was kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from types import TracebackType

from archivist.errors import InputError
from archivist.records import Working

MOST_NOTES = 1_000
MOST_CONSTRAINTS = 100
MOST_CHARACTERS = 8_000
MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class WorkingState:
    """What an agent holds in mind at one moment."""

    plan: str = ""
    constraints: tuple[str, ...] = ()
    context: dict[str, object] = field(default_factory=dict)
    scratchpad: tuple[str, ...] = ()


def state_from_snapshot(working: Working | None) -> WorkingState:
    """Return what a snapshot holds; nothing when there is none."""
    if working is None:
        return WorkingState()
    return WorkingState(working.plan, working.constraints, dict(working.context), working.scratchpad)


def validate_state(state: WorkingState) -> WorkingState:
    """Return the mind with its context in JSON's own types, or refuse what is too large or no JSON."""
    for name, texts in (
        ("plan", (state.plan,)),
        ("constraint", state.constraints),
        ("note", state.scratchpad),
    ):
        for text in texts:
            _check_text(name, text)
    _check_count("constraints", len(state.constraints), MOST_CONSTRAINTS)
    _check_count("notes", len(state.scratchpad), MOST_NOTES)
    context = _json_of(state.context)
    size = len(context) + sum(len(text.encode("utf-8", "replace")) for text in _texts(state))
    if size > MOST_BYTES:
        raise InputError(
            f"working memory: {size:,} bytes, at most {MOST_BYTES:,}: {size - MOST_BYTES:,} too many",
            hint="keep what is long in a file or an artifact, and its name here",
        )
    return replace(state, context=json.loads(context))


def merge_context(before: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return a context with the values given; a value of None takes its key out."""
    if not isinstance(given, Mapping):
        raise InputError(f"context: expected an object, not {given!r}", hint='{"key": "value"}')
    return {key: value for key, value in {**before, **given}.items() if value is not None}


def normalize_constraints(given: Iterable[str]) -> tuple[str, ...]:
    """Return constraints without doubles; one text alone is one constraint."""
    each = (given,) if isinstance(given, str) else tuple(given)
    for text in each:
        _check_text("constraint", text)
    return tuple(dict.fromkeys(text.strip() for text in each if text.strip()))


def with_note(scratchpad: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return a scratchpad with one note more."""
    _check_text("note", text)
    if not text.strip():
        raise InputError("a note needs words")
    return (*scratchpad, text.strip())


class Scratch:
    """A running agent's working memory: every thread of its process may use it at once.

    As a context manager it keeps a snapshot on the way out, also when an error ends the block.
    """

    def __init__(self, agent: str, mind: WorkingState, keep: Callable[[WorkingState], Working]) -> None:
        self.agent = agent
        self._mind = mind
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
        """Return all of it as it is now; later changes do not show in it."""
        with self._lock:
            return replace(self._mind, context=dict(self._mind.context))

    @property
    def plan(self) -> str:
        """Return the current plan."""
        return self._mind.plan

    @plan.setter
    def plan(self, text: str) -> None:
        self._update_state(lambda mind: replace(mind, plan=text))

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return the active constraints."""
        return self._mind.constraints

    @property
    def scratchpad(self) -> tuple[str, ...]:
        """Return the notes, oldest first."""
        return self._mind.scratchpad

    @property
    def context(self) -> dict[str, object]:
        """Return the task's context, as a copy."""
        return dict(self._mind.context)

    def constrain(self, *texts: str) -> None:
        """Add constraints; one that is active already is not doubled."""
        self._update_state(
            lambda mind: replace(mind, constraints=normalize_constraints((*mind.constraints, *texts)))
        )

    def lift(self, text: str) -> None:
        """Let go of a constraint; nothing happens when it is not active."""
        kept = text.strip()
        self._update_state(
            lambda mind: replace(mind, constraints=tuple(each for each in mind.constraints if each != kept))
        )

    def note(self, text: str) -> None:
        """Write a note to oneself."""
        self._update_state(lambda mind: replace(mind, scratchpad=with_note(mind.scratchpad, text)))

    def know(self, **values: object) -> None:
        """Set values of the task's context; None takes a value out."""
        self._update_state(lambda mind: replace(mind, context=merge_context(mind.context, values)))

    def clear(self) -> None:
        """Begin anew with nothing in mind."""
        self._update_state(lambda _mind: WorkingState())

    def snapshot(self) -> Working:
        """Keep what is in mind now in the bank, for a warm restart."""
        with self._lock:
            return self._keep(self._mind)

    def _update_state(self, change: Callable[[WorkingState], WorkingState]) -> None:
        with self._lock:
            self._mind = validate_state(change(self._mind))


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{name}: expected a text, not {text!r}")
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"{name}: {len(text):,} characters, at most {MOST_CHARACTERS:,}",
            hint="keep what is long in a file or an artifact, and its name here",
        )


def _check_count(name: str, count: int, most: int) -> None:
    if count > most:
        raise InputError(f"{count:,} {name}, at most {most:,}", hint="clear what is no longer needed")


def _texts(mind: WorkingState) -> Iterable[str]:
    return (mind.plan, *mind.constraints, *mind.scratchpad)


def _json_of(context: Mapping[str, object]) -> str:
    bad = next((key for key in context if not isinstance(key, str)), None)
    if bad is not None:
        raise InputError(f"context: the key {bad!r} is not a text")
    try:
        return json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"context: not JSON: {error}", hint="texts, numbers, lists and objects; no files or dates"
        ) from None
