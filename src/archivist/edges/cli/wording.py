"""The wording that commands share: numbers, shortened texts, the fields of a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from archivist.clock import to_short_text

if TYPE_CHECKING:
    from archivist.records import Episode


def pluralize(number: int, noun: str) -> str:
    """Return `1 lesson` or `3 lessons`."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else several}"


def field_lines(fields: Iterable[tuple[str, object]], width: int = 12) -> list[str]:
    """Return the fields of one record, one on each line; empty ones are left out."""
    lines = []
    for name, value in fields:
        text = to_short_text(value) if isinstance(value, datetime) else value
        text = ", ".join(text) if isinstance(text, tuple) else text
        if text not in ("", None):
            lines.append(f"  {name.replace('_', ' '):<{width}}{text}")
    return lines


def approval_notes(waiting: int) -> list[str]:
    """Return how to see the quarantined lessons, if there are any."""
    from archivist.doctor import SHOW_QUARANTINED

    verb = "waits" if waiting == 1 else "wait"
    return [f"{pluralize(waiting, 'lesson')} {verb} for approval: {SHOW_QUARANTINED}"] if waiting else []


def episode_lines(episode: Episode) -> list[str]:
    """Return a run as lines: its story first, then what is known of it."""
    lines = [f"{episode.id}  {episode.summary or episode.task}"]
    reflection = episode.extra.get("reflection")
    told = reflection if isinstance(reflection, Mapping) else {}
    for heading, key in {"What worked": "worked", "What failed": "failed", "Decisions": "decisions"}.items():
        if told.get(key):
            lines += ["", heading, *(f"  - {line}" for line in told[key])]
    names = ("status", "kind", "project", "agent", "provider", "model", "parent", "session")
    fields = [(name, getattr(episode, name)) for name in (*names, "started", "finished")]
    if episode.usage:
        spent = episode.usage
        # A log that states no cost may well have had one.
        cost = f", ${spent.cost_usd:.2f}" if spent.cost_usd else ""
        fields.append(("usage", f"{spent.input_tokens} tokens in, {spent.output_tokens} out{cost}"))
    return [*lines, "", *field_lines(fields)]
