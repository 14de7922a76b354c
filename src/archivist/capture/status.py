"""Say how a run ended.

The log's own result goes first:

- an exit status: `Submitted` is success; handed in after a limit (`submitted (exit_cost)`) is partial;
  a limit (cost, steps, context, time) is partial when something was handed in, else failed;
  an interruption by a person is aborted; an exception and everything else that is named is failed
- a result line: an error is failed, a limit on turns or money is partial, anything else success
- a turn that completed is success, one that was aborted is aborted, a finish action success, a reject failed

A log without a result is judged by its end:

1. the person interrupted the run, or refused the last call: aborted
2. the last message is an error of the model's service: failed
3. the run goes on in another file: partial
4. the agent has the last word and no call is open: success, where the format has no result of its own;
   aborted where a finished run always writes one
5. the log ends in the middle of a line, or a line in it cannot be read: partial, since nobody knows
6. the log stops in the midst of work: aborted
7. nothing happened at all: running
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archivist.records import Episode, EpisodeStatus

_LIMITS = ("limit", "cost", "context", "max", "exceeded", "budget", "timeout", "time_out")
_BY_PERSON = ("interrupt", "abort", "cancel", "early_exit", "skipped", "stopped", "paused")
_DONE = frozenset(
    {"submitted", "success", "succeeded", "completed", "complete", "finished", "done", "resolved", "ok"}
)
_WORDS = {
    **dict.fromkeys(_DONE, EpisodeStatus.SUCCESS),
    **dict.fromkeys(("failed", "failure", "error", "errored", "rejected", "stuck"), EpisodeStatus.FAILED),
    "partial": EpisodeStatus.PARTIAL,
    "running": EpisodeStatus.RUNNING,
}
# The lists of a benchmark's report, and what each says of the instances in it; the first match counts.
_REPORT_LISTS = {
    "resolved_ids": EpisodeStatus.SUCCESS,
    "resolved": EpisodeStatus.SUCCESS,
    "error_ids": EpisodeStatus.ABORTED,
    "empty_patch_ids": EpisodeStatus.FAILED,
    "unresolved_ids": EpisodeStatus.FAILED,
    "unresolved": EpisodeStatus.FAILED,
}


@dataclass(slots=True)
class Ending:
    """The end of a log so far, as far as it matters to the rules."""

    last_role: str = ""
    has_open_call: bool = False
    is_interrupted: bool = False
    is_service_error: bool = False
    is_continued: bool = False
    result_expected: bool = False
    is_damaged: bool = False
    is_cut: bool = False


def status_of(stated: EpisodeStatus | None, ending: Ending) -> EpisodeStatus:
    """Return the status that the log states, else the one that its end implies."""
    if stated is not None:
        return stated
    if not ending.last_role:
        return EpisodeStatus.RUNNING
    if ending.is_interrupted:
        return EpisodeStatus.ABORTED
    if ending.is_service_error:
        return EpisodeStatus.FAILED
    if ending.is_continued:
        return EpisodeStatus.PARTIAL
    # The answer to an open call may be what could not be read.
    is_answered = not ending.has_open_call or ending.is_damaged
    has_last_word = ending.last_role == "assistant" and is_answered and not ending.is_cut
    if has_last_word and not ending.result_expected:
        return EpisodeStatus.SUCCESS
    return EpisodeStatus.PARTIAL if ending.is_damaged else EpisodeStatus.ABORTED


def status_of_exit(exit_status: str, *, has_submission: bool) -> EpisodeStatus | None:
    """Return what an exit status means; None when there is none."""
    word = exit_status.strip().lower()
    if not word:
        return None
    if word in _DONE:
        return EpisodeStatus.SUCCESS
    if word.startswith("submitted"):
        return EpisodeStatus.PARTIAL
    if any(mark in word for mark in _BY_PERSON):
        return EpisodeStatus.ABORTED
    if has_submission and any(mark in word for mark in _LIMITS):
        return EpisodeStatus.PARTIAL
    return EpisodeStatus.FAILED


def status_of_result(subtype: str, *, is_error: bool) -> EpisodeStatus:
    """Return what a result line means."""
    if "max_" in subtype:
        return EpisodeStatus.PARTIAL
    return EpisodeStatus.FAILED if is_error or subtype.startswith("error") else EpisodeStatus.SUCCESS


def status_of_word(word: str) -> EpisodeStatus | None:
    """Return the status that a word of a caller or another log means; None when it is no such word."""
    lowered = word.strip().lower()
    return EpisodeStatus.ABORTED if lowered.startswith(_BY_PERSON) else _WORDS.get(lowered)


def parse_outcomes(value: Mapping[str, Any]) -> dict[str, EpisodeStatus]:
    """Return a status per run: of `{"run": "success"}`, `{"run": true}`, or a benchmark's lists of ids."""
    found: dict[str, EpisodeStatus] = {}
    for key, status in _REPORT_LISTS.items():
        listed = value.get(key)
        for name in listed if isinstance(listed, list) else ():
            if isinstance(name, str):
                found.setdefault(name, status)
    if found:
        return found
    for name, word in value.items():
        if isinstance(word, bool):
            found[name] = EpisodeStatus.SUCCESS if word else EpisodeStatus.FAILED
        elif isinstance(word, str) and word in list(EpisodeStatus):
            found[name] = EpisodeStatus(word)
    return found


def outcome_of(episode: Episode, outcomes: Mapping[str, EpisodeStatus]) -> EpisodeStatus | None:
    """Return what the caller knows of a run, by its id, session or benchmark instance."""
    names = (episode.id, episode.session, episode.extra.get("instance"))
    return next((outcomes[name] for name in names if isinstance(name, str) and name in outcomes), None)
