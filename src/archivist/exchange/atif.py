"""Write an episode and its events as an ATIF v1.8 trajectory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from archivist.capture.calls import arguments_from, target_of
from archivist.clock import to_text
from archivist.records import Episode, Event, EventKind

SCHEMA_VERSION = "ATIF-v1.8"
_SOURCES = {"user": "user", "assistant": "agent", "system": "system"}
_CALLS = (EventKind.TOOL_CALL, EventKind.EDIT, EventKind.TEST)
_RESULT_FACTS = ("timed_out", "rejected", "result_missing")


def to_atif(episode: Episode, events: Iterable[Event]) -> dict[str, Any]:
    """Return the trajectory; reading it back gives the same tool calls."""
    ordered = sorted((event for event in events if event.run == episode.id), key=lambda event: event.seq)
    steps = [_step(number, event) for number, event in enumerate(ordered, 1)]
    if not steps:
        # A trajectory has at least one step; the task is what any run begins with.
        steps = [{"step_id": 1, "source": "user", "message": episode.task or "(nothing recorded)"}]
    agent: dict[str, Any] = {
        "name": episode.agent or "unknown",
        "version": str(episode.extra.get("agent_version") or "unknown"),
    }
    if episode.model:
        agent["model_name"] = f"{episode.provider}/{episode.model}" if episode.provider else episode.model
    trajectory: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "session_id": episode.session or episode.id,
        "trajectory_id": episode.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": _metrics(episode, len(steps)),
        "extra": _about(episode),
    }
    return trajectory


def _step(number: int, event: Event) -> dict[str, Any]:
    step: dict[str, Any] = {"step_id": number}
    if event.time is not None:
        step["timestamp"] = to_text(event.time)
    if event.kind in _CALLS:
        step |= {"source": "agent", "message": ""} | _call(event)
    else:
        step |= {"source": _SOURCES.get(event.role, "system"), "message": event.text}
        if event.kind is not EventKind.MESSAGE:
            step["extra"] = {"event_type": event.name or event.kind.value}
    return step


def _call(event: Event) -> dict[str, Any]:
    call_id = f"call-{event.seq}"
    facts: dict[str, Any] = {"tool_result_is_error": event.is_error}
    if event.exit_code is not None:
        facts["exit_code"] = event.exit_code
    if event.duration_s is not None:
        facts["duration_s"] = event.duration_s
    facts |= {key: True for key in _RESULT_FACTS if event.extra.get(key) is True}
    result = {"source_call_id": call_id, "content": event.output, "extra": facts}
    call = {"tool_call_id": call_id, "function_name": event.tool or "unknown", "arguments": _arguments(event)}
    return {"tool_calls": [call], "observation": {"results": [result]}}


def _arguments(event: Event) -> dict[str, Any]:
    is_command = event.kind is not EventKind.EDIT and event.target == target_of(event.text)
    if is_command:
        return {"command": event.text} if event.text else {}
    return dict(arguments_from(event.text))


def _metrics(episode: Episode, steps: int) -> dict[str, Any]:
    usage = episode.usage
    if usage is None:
        return {"total_steps": steps}
    return {
        "total_prompt_tokens": usage.input_tokens,
        "total_completion_tokens": usage.output_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_cost_usd": usage.cost_usd,
        "total_steps": steps,
    }


def _about(episode: Episode) -> dict[str, Any]:
    about: dict[str, Any] = {"status": episode.status.value}
    named = {
        "project": episode.project,
        "task": episode.task,
        "parent": episode.parent,
        "summary": episode.summary,
    }
    about |= {key: value for key, value in named.items() if value}
    for key, moment in (("start_time", episode.started), ("end_time", episode.finished)):
        if moment is not None:
            about[key] = to_text(moment)
    if isinstance(episode.extra.get("instance"), str):
        about["instance"] = episode.extra["instance"]
    return about
