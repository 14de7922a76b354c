"""Who may do what to which layer: one table, and the check before every call of a service.

Knowledge and the episodic log are written by the orchestrator and read by agents, artifacts are written by
their producer and read by all, and working memory belongs to its agent alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from archivist.records.actor import Actor
from archivist.records.kinds import BY_NAME
from archivist.records.words import ActorKind, Provenance, Status

if TYPE_CHECKING:
    from archivist.records.lesson import Lesson

P = ParamSpec("P")
T = TypeVar("T")
# The kind of ledger entry for a refused call.
DENIAL = "denial"
# Cap repeated denials, so that one caller cannot fill the ledger.
MAX_DENIALS = 10
DENIALS_WITHIN_S = 60
_TRACING_API = "opentelemetry.trace"
# Named, not imported: no room imports an edge, and most programs do not trace.
_SPANS = "archivist.edges.integrations.otel"


class Layer(StrEnum):
    """The parts of a bank that are guarded."""

    LESSONS = "lessons"
    RUNS = "runs"
    KNOWLEDGE = "knowledge"
    EPISODES = "episodes"
    ARTIFACTS = "artifacts"
    TASKS = "tasks"
    WORKING = "working"
    CORE = "core"
    STREAM = "stream"
    ARCHIVE = "archive"
    PROPOSALS = "proposals"
    WORKSPACE = "workspace"
    BANK = "bank"


class Verb(StrEnum):
    """What can be done to a layer; to decide is to settle what others proposed or left open."""

    READ = "read"
    WRITE = "write"
    DECIDE = "decide"


_H, _O, _A, _X = ActorKind.HUMAN, ActorKind.ORCHESTRATOR, ActorKind.AGENT, ActorKind.ARCHIVIST
_ALL = frozenset((_H, _O, _A, _X))
_OWNERS = frozenset((_H, _O, _X))
_NOBODY: frozenset[ActorKind] = frozenset()

# layer → who reads, who writes, who decides. Guarded blocks of core change by proposals only; who accepts
# those is configured, and checked by the service of proposals.
RIGHTS: dict[Layer, tuple[frozenset[ActorKind], frozenset[ActorKind], frozenset[ActorKind]]] = {
    Layer.LESSONS: (_ALL, _ALL, _OWNERS),
    Layer.RUNS: (_ALL, _ALL, _OWNERS),
    Layer.KNOWLEDGE: (_ALL, _OWNERS, frozenset((_H, _O))),
    Layer.EPISODES: (_ALL, _OWNERS, _OWNERS),
    Layer.ARTIFACTS: (_ALL, _OWNERS, _OWNERS),
    Layer.TASKS: (_ALL, _OWNERS, _OWNERS),
    Layer.WORKING: (_NOBODY, _NOBODY, _NOBODY),
    Layer.CORE: (_ALL, _ALL, _NOBODY),
    Layer.STREAM: (_ALL, _ALL, _OWNERS),
    Layer.ARCHIVE: (_ALL, _ALL, _OWNERS),
    Layer.PROPOSALS: (_ALL, _ALL, _ALL),
    Layer.WORKSPACE: (_ALL, _ALL, _OWNERS),
    Layer.BANK: (_ALL, _OWNERS, _OWNERS),
}
# What an agent may do only to its own records.
OWN = {
    (Layer.ARTIFACTS, Verb.WRITE),
    (Layer.TASKS, Verb.WRITE),
    (Layer.WORKING, Verb.READ),
    (Layer.WORKING, Verb.WRITE),
}


class SupportsRequire(Protocol):
    """A service whose calls are checked."""

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Raise AccessError, and enter it in the ledger, unless the actor may do this."""

    def explain(self, error: Exception) -> None:
        """Raise BankDamagedError if the bank's content is why the code failed in a way nobody foresaw."""


G = TypeVar("G", bound=SupportsRequire)


def may(actor: Actor, layer: Layer, verb: Verb, *, owner: str | None = None) -> bool:
    """Say whether an actor may do this to a layer, or to an owner's records in it.

    Without an owner the question is whether the actor may do it to any record of the layer.
    """
    if (layer, verb) in OWN and actor.kind is ActorKind.AGENT and actor.name:
        return owner is None or owner == actor.name
    return actor.kind in RIGHTS[layer][list(Verb).index(verb)]


def may_see(actor: Actor, kind: str, record_id: str) -> bool:
    """Say whether an actor may know that a record exists, by the layer of its kind.

    Another agent's working memory and tokens are hidden rather than refused: a refusal would reveal them.
    Entries of no record (denials, receipts) belong to the bank.
    """
    layer = Layer(BY_NAME[kind].layer) if kind in BY_NAME else Layer.BANK
    # Only those who create tokens may see them.
    return may(actor, layer, Verb.DECIDE if kind == "token" else Verb.READ, owner=record_id)


def may_change(actor: Actor, lesson: Lesson) -> bool:
    """Say whether an actor may reword or retire a lesson: an agent only its own unconfirmed candidates.

    Whoever decides about lessons may change any. An agent that rewrote the lesson of a person, or one that
    runs have confirmed, would speak to every later run in their name.
    """
    if may(actor, Layer.LESSONS, Verb.DECIDE):
        return True
    is_own = actor.kind is lesson.actor.kind and actor.name == lesson.actor.name != ""
    return is_own and lesson.status is Status.CANDIDATE and not lesson.confirmed


def is_hidden_from(record: Any, actor: Actor) -> bool:
    """Say whether a record is a lesson that waits or is quarantined, and not the asking agent's own."""
    if actor.kind is not ActorKind.AGENT or not isinstance(getattr(record, "provenance", None), Provenance):
        return False
    if record.status is not Status.QUARANTINED and not record.is_waiting:
        return False
    is_suggested = record.provenance is Provenance.SUGGESTED and record.actor.kind is ActorKind.AGENT
    return not (is_suggested and record.actor.name == actor.name != "")


def access_hint(layer: Layer, verb: Verb) -> str:
    """Return the hint of a refusal: who may do it."""
    if layer is Layer.WORKING:
        return "working memory belongs to its agent: --actor agent:NAME"
    kinds = [kind.value for kind in ActorKind if kind in RIGHTS[layer][list(Verb).index(verb)]]
    own = ", an agent what is its own" if (layer, verb) in OWN else ""
    return f"{', '.join(kinds)} may{own}"


def reads(layer: Layer) -> Callable[[Callable[Concatenate[G, P], T]], Callable[Concatenate[G, P], T]]:
    """Allow a method only for actors who may read a layer."""
    return _require_access(layer, Verb.READ)


def writes(layer: Layer) -> Callable[[Callable[Concatenate[G, P], T]], Callable[Concatenate[G, P], T]]:
    """Allow a method only for actors who may write a layer."""
    return _require_access(layer, Verb.WRITE)


def decides(layer: Layer) -> Callable[[Callable[Concatenate[G, P], T]], Callable[Concatenate[G, P], T]]:
    """Allow a method only for actors who may decide in a layer."""
    return _require_access(layer, Verb.DECIDE)


def _require_access(
    layer: Layer, verb: Verb
) -> Callable[[Callable[Concatenate[G, P], T]], Callable[Concatenate[G, P], T]]:
    def guard(method: Callable[Concatenate[G, P], T]) -> Callable[Concatenate[G, P], T]:
        @wraps(method)
        def check_and_call(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
            def work() -> T:
                self.require(layer, verb)
                try:
                    return method(self, *args, **kwargs)
                except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
                    # Nonsense in a damaged bank is told as damage, whatever it made the code do.
                    self.explain(error)
                    raise

            # A program that traces has imported the API; any other pays for this one lookup.
            if _TRACING_API not in sys.modules:
                return work()
            spans = import_module(_SPANS)
            result: T = spans.call_in_span(work, verb, method.__name__, self, args, kwargs)
            return result

        check_and_call.access = (layer, verb)  # type: ignore[attr-defined]
        return check_and_call

    return guard
