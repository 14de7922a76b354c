"""Read what a caller knows about how runs ended: an outcomes file beside their logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from archivist.errors import InputError
from archivist.records import Episode, EpisodeStatus

# The lists of a benchmark's report, and what each says of the instances in it; the first match counts.
_LISTS = {
    "resolved_ids": EpisodeStatus.SUCCESS,
    "resolved": EpisodeStatus.SUCCESS,
    "error_ids": EpisodeStatus.ABORTED,
    "empty_patch_ids": EpisodeStatus.FAILED,
    "unresolved_ids": EpisodeStatus.FAILED,
    "unresolved": EpisodeStatus.FAILED,
}


def read_outcomes(path: Path) -> dict[str, EpisodeStatus]:
    """Read a status per run: `{"run": "success", …}`, `{"run": true, …}`, or a benchmark's lists of ids."""
    try:
        value = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{str(path)!r} is not a JSON object", hint='{"run id": "success", …}')
    found = _from_lists(value) or _from_pairs(value)
    if not found:
        raise InputError(f"{str(path)!r} names no outcomes", hint='{"run id": "success", …}')
    return found


def outcome_of(episode: Episode, outcomes: Mapping[str, EpisodeStatus]) -> EpisodeStatus | None:
    """Return what the caller knows of a run, by its id, session or benchmark instance."""
    names = (episode.id, episode.session, episode.extra.get("instance"))
    return next((outcomes[name] for name in names if isinstance(name, str) and name in outcomes), None)


def _from_lists(value: Mapping[str, Any]) -> dict[str, EpisodeStatus]:
    found: dict[str, EpisodeStatus] = {}
    for key, status in _LISTS.items():
        listed = value.get(key)
        if isinstance(listed, list):
            for name in listed:
                if isinstance(name, str):
                    found.setdefault(name, status)
    return found


def _from_pairs(value: Mapping[str, Any]) -> dict[str, EpisodeStatus]:
    found = {}
    for name, word in value.items():
        if isinstance(word, bool):
            found[name] = EpisodeStatus.SUCCESS if word else EpisodeStatus.FAILED
        elif isinstance(word, str) and word in list(EpisodeStatus):
            found[name] = EpisodeStatus(word)
    return found
