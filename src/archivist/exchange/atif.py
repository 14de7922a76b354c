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
    steps = [{"step_id": number, **_step_fields(event)} for number, event in enumerate(ordered, 1)]
    if not steps:
        # The format requires at least one step, and every run starts with its task.
        steps = [{"step_id": 1, "source": "user", "message": episode.task or "(nothing recorded)"}]
    agent = {
        "name": episode.agent or "unknown",
        "version": str(episode.extra.get("agent_version") or "unknown"),
    }
    if episode.model:
        agent["model_name"] = f"{episode.provider}/{episode.model}" if episode.provider else episode.model
    metrics: dict[str, Any] = {}
    if usage := episode.usage:
        metrics = {
            "total_prompt_tokens": usage.input_tokens,
            "total_completion_tokens": usage.output_tokens,
            "total_cached_tokens": usage.cached_tokens,
            "total_cost_usd": usage.cost_usd,
        }
    instance = episode.extra.get("instance")
    about = {
        "project": episode.project,
        "task": episode.task,
        "parent": episode.parent,
        "summary": episode.summary,
        "start_time": to_text(episode.started) if episode.started else "",
        "end_time": to_text(episode.finished) if episode.finished else "",
        "instance": instance if isinstance(instance, str) else "",
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": episode.session or episode.id,
        "trajectory_id": episode.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {**metrics, "total_steps": len(steps)},
        "extra": {
            "status": episode.status.value,
            **{key: value for key, value in about.items() if value},
        },
    }


def _step_fields(event: Event) -> dict[str, Any]:
    step: dict[str, Any] = {"timestamp": to_text(event.time)} if event.time is not None else {}
    if event.kind not in _CALLS:
        step |= {"source": _SOURCES.get(event.role, "system"), "message": event.text}
        if event.kind is not EventKind.MESSAGE:
            step["extra"] = {"event_type": event.name or event.kind.value}
        return step
    is_command = event.kind is not EventKind.EDIT and event.target == target_of(event.text)
    arguments = {"command": event.text} if is_command and event.text else {}
    if not is_command:
        arguments = dict(arguments_from(event.text))
    call_id = f"call-{event.seq}"
    facts: dict[str, Any] = {"tool_result_is_error": event.is_error}
    measured = {"exit_code": event.exit_code, "duration_s": event.duration_s}
    facts |= {key: value for key, value in measured.items() if value is not None}
    facts |= {key: True for key in _RESULT_FACTS if event.extra.get(key) is True}
    call = {"tool_call_id": call_id, "function_name": event.tool or "unknown", "arguments": arguments}
    result = {"source_call_id": call_id, "content": event.output, "extra": facts}
    return {
        **step,
        "source": "agent",
        "message": "",
        "tool_calls": [call],
        "observation": {"results": [result]},
    }
