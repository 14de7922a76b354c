"""Find runs, and say whose they are: one by its id, the run that a part belongs to, the order of lists.

Hooks ask whose a run is, and need not make the record's class for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb
from archivist.capture.clean import clean_name
from archivist.errors import InputError, NotFoundError
from archivist.records.words import NOTES, PART, ActorKind
from archivist.service import LONGEST_WHOLE_ID, complete_id, require_name

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Event
    from archivist.records.actor import Actor
    from archivist.records.episode import Episode
    from archivist.store.filters import AnyOf
    from archivist.store.protocol import Reader, Writer

LATEST = ("-finished", "-started", "id")
# Longer ids are shown by at least so many characters.
_SHORTENED_TO = 8
# A task that was tried more often is known by the first of its runs.
_MOST_OF_TASK = 200


def find_run(reader: Reader, run: str) -> Episode:
    """Return a run's episode."""
    from archivist.records.episode import Episode

    require_name(run, "run")
    episode = reader.get(Episode, run) or reader.get(Episode, clean_name(run))
    if episode is None:
        raise NotFoundError("run", run)
    return episode


def resolve_run(reader: Reader, run: str) -> str:
    """Return the id of a run that is named by it or by the only beginning of it; the name of an unknown one.

    For what is read or removed: a run that is written may be new, and its id the beginning of another.
    """
    from archivist.records.episode import Episode

    if reader.get(Episode, run) is not None:
        return run
    root, mark, part = run.partition(PART)
    return f"{complete_id(reader, 'episode', root)}{mark}{part}"


def of_task(task: str) -> AnyOf:
    """Return the condition on runs of a task: named by its id alone, or with its title behind that."""
    from archivist.store.filters import any_of, equals, starts_with

    longer = (starts_with("task", f"{task}{mark}") for mark in (" ", ":", "\n"))
    return any_of((equals("task", task),), (equals("subtask", task),), *longer)


def task_runs(reader: Reader, task: str) -> list[str]:
    """Return the runs of a task, and the sessions that they belong to."""
    rows = reader.select_fields("episode", ("id", "parent"), of_task(task), limit=_MOST_OF_TASK)
    return sorted({name for row in rows for name in row if name})


def is_run_of(reader: Reader, run: str, actor: Actor) -> bool:
    """Say whether an actor may act on a run: an agent only on one that is unknown or that it reported."""
    if actor.kind is not ActorKind.AGENT:
        return True
    origin = reader.run_origin(run)
    return origin is None or (origin.actor.kind, origin.actor.name) == (actor.kind, actor.name)


def require_own_run(bank: Bank, reader: Reader, run: str) -> None:
    """Refuse an agent that acts on a run which it did not report itself, or names one as events are named."""
    if bank.actor.kind is ActorKind.AGENT and run.rpartition("#")[2].isdecimal() and "#" in run:
        message = f"{clean_name(run)!r} is the name of an event, not of a run"
        raise InputError(message, hint="agents report their own runs, under ids without #")
    if not is_run_of(reader, run, bank.actor):
        hint = "agents report their own runs, under ids of their own"
        bank.refuse(Layer.RUNS, Verb.WRITE, what=run, hint=hint)


def claim_run(writer: Writer, run: str, actor: Actor) -> None:
    """Remove what an agent or a file said of a run that the user's own log now tells."""
    provenance = writer.run_provenances((run,)).get(run)
    if actor.kind is ActorKind.AGENT or provenance is None or provenance.is_own:
        return
    from archivist.records.episode import Episode

    writer.remove_events(run, "claim")
    if not writer.remove(Episode, run, "claim"):
        writer.append_entry("claim", "episode", run, None)


def count_events(reader: Reader, event: Event, actor: Actor) -> int:
    """Return how many events a bank holds of a run, its parts included, whose log begins with an event.

    None count if it began otherwise: several logs may tell of one run. Nor do those that an agent or a file
    reported, because the user's own log replaces them.
    """
    from archivist.records import Event

    run = event.run.partition(PART)[0]
    first = reader.get(Event, event.id)
    if first is None or (first.time, first.kind, first.text) != (event.time, event.kind, event.text):
        return 0
    if actor.kind is not ActorKind.AGENT and not reader.is_own_run(run):
        return 0
    from archivist.store.filters import any_of, equals, starts_with

    return reader.count("event", any_of((equals("run", run),), starts_with("run", f"{run}{PART}")))


def without_bank_notes(episode: Episode) -> Episode:
    """Return a run without what only its own bank says: what reflection noted, and its place in the order.

    Later runs are told those notes as they stand, and lessons age by that order. A log that set them could
    stop the ageing, or archive every lesson.
    """
    extra = {name: value for name, value in episode.extra.items() if name != NOTES}
    return replace(episode, extra=extra, number=None)


def root_run(reader: Reader, episode: Episode) -> str:
    """Return the run that a part or a subagent's run belongs to; any other is its own."""
    from archivist.records.episode import Episode

    seen = {episode.id}
    while episode.parent and episode.parent not in seen:
        parent = reader.get(Episode, episode.parent)
        if parent is None:
            return episode.parent
        seen.add(parent.id)
        episode = parent
    return episode.id


def counted_run(reader: Reader, episode: Episode) -> str:
    """Return the run that counts for what one met: a review, whose log names no session, is of the latest."""
    from archivist.records.run_words import EpisodeKind

    if episode.parent or episode.kind is not EpisodeKind.SUBAGENT_RUN or episode.started is None:
        return root_run(reader, episode)
    from archivist.clock import to_text
    from archivist.store.filters import at_most, equals

    rows = reader.select_fields(
        "episode",
        ("id",),
        equals("project", episode.project),
        equals("provider", episode.provider),
        equals("parent", ""),
        equals("kind", EpisodeKind.ORCHESTRATOR_RUN),
        at_most("started", to_text(episode.started)),
        order=("-started",),
        limit=1,
    )
    return str(rows[0][0]) if rows else episode.id


def shorten_ids(ids: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return for each long id its shortest beginning that no other known one has, as git does.

    Short ids are names that people gave. A part of a run keeps the mark and the name behind its run.
    """
    roots = sorted({name.partition(PART)[0] for name in known})
    places = {root: place for place, root in enumerate(roots)}
    shortened = {}
    for name in ids:
        root, mark, part = name.partition(PART)
        at = places[root]
        beside = roots[max(0, at - 1) : at] + roots[at + 1 : at + 2]
        size = _SHORTENED_TO if len(root) > LONGEST_WHOLE_ID else len(root)
        while any(other.startswith(root[:size]) for other in beside) and size < len(root):
            size += 1
        shortened[name] = f"{root[:size]}{mark}{part}"
    return shortened
