"""Tell a lesson and its history in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from archivist.clock import to_short_text
from archivist.records import Episode

_SHOWN = (
    "status", "quarantined_for",
    "type", "category", "severity", "scope", "domain", "role", "repo", "task", "provider", "tool",
    "stale", "importance", "frequency", "runs_since_last_seen", "last_seen_run", "usage_count", "helpful",
    "ineffective", "superseded_by", "origin", "source", "created", "updated", "uid",
)  # fmt: skip
_LISTED = 6


def lesson_lines(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield a lesson as lines: its words first, then what is known of it."""
    yield f"{view['id']}  {view['summary']}"
    for key in ("rule", "detail"):
        if view[key]:
            yield f"  {view[key]}"
    yield ""
    for key in _SHOWN:
        if view.get(key) not in ("", None):
            yield f"  {key.replace('_', ' '):<22}{view[key]}"
    evidence = view["evidence"]
    lists = {"tags": view["tags"], "runs": view["runs"]}
    lists |= {f"seen in {key}": values for key, values in evidence.items() if values not in lists.values()}
    for key, values in lists.items():
        if values:
            more = len(values) - _LISTED
            rest = f" and {more} more" if more > 0 else ""
            yield f"  {key:<22}{', '.join(values[:_LISTED])}{rest}"


def episode_lines(episode: Episode) -> Iterator[str]:
    """Yield a run as lines: its story first, then what is known of it."""
    yield f"{episode.id}  {episode.summary or episode.task}"
    notes = episode.extra.get("reflection")
    if isinstance(notes, Mapping):
        for heading, key in (
            ("What worked", "worked"),
            ("What failed", "failed"),
            ("Decisions", "decisions"),
        ):
            if notes.get(key):
                yield ""
                yield heading
                yield from (f"  - {line}" for line in notes[key])
    yield ""
    for key in ("status", "kind", "project", "agent", "provider", "model", "parent", "session"):
        value = getattr(episode, key)
        if value:
            yield f"  {key:<12}{value}"
    for key in ("started", "finished"):
        moment = getattr(episode, key)
        if moment:
            yield f"  {key:<12}{to_short_text(moment)}"
    if episode.usage:
        spent = episode.usage
        tokens = f"{spent.input_tokens} tokens in, {spent.output_tokens} out"
        # A log that states no cost may well have had one.
        yield f"  {'usage':<12}{tokens}" + (f", ${spent.cost_usd:.2f}" if spent.cost_usd else "")
