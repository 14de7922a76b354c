"""Read ATIF trajectories, versions 1.0 to 1.8, and what emitters write in its likeness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO

from archivist.capture.calls import (
    CallOutcome,
    LoggedCall,
    arguments_from,
    calls_in_message,
    from_structured,
    read_outcome,
)
from archivist.capture.json_stream import SkippedRecord, preview_log, read_document
from archivist.capture.recorder import (
    LogOrigin,
    Recorder,
    UsageTotals,
    instance_in,
    project_of_folder,
    project_of_instance,
    task_of,
)
from archivist.capture.status import status_of_word
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    compact_json,
    content_text,
    count,
    listing,
    mapping,
    objects,
    text,
)
from archivist.ids import derived_id
from archivist.records import Episode, EpisodeStatus, Event

_VERSION = re.compile(r"\A(?:ATIF-v)?1\.\d")
_FINISHERS = frozenset(
    {"finish", "submit", "mark_task_complete", "task_complete", "attempt_completion", "complete_task"}
)
_RESULT_FOR = re.compile(r"\ATool result for (\S+)\Z")
# Orchestrators pick their task by themselves and say so.
_CHOSEN_TASK = re.compile(r"\ASelected task: (.+)", re.DOTALL)
# Embedded trajectories are read recursively; a hostile log could nest them without end.
_MAX_DEPTH = 8
_ROLES = {"user": "user", "agent": "assistant", "assistant": "assistant"}


class Atif:
    """The adapter of the Agent Trajectory Interchange Format."""

    name = "atif"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by the version, or by steps that have a step id and a source."""
        first = preview_log(head).document
        steps = objects(first.get("steps"))
        if steps:
            return "source" in steps[0] and ("step_id" in steps[0] or "message" in steps[0])
        return bool(_VERSION.match(text(first.get("schema_version")))) and (
            "agent" in first or "steps" in first
        )

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the steps, then the embedded subagents and the trajectory itself."""
        trajectory = _Trajectory(origin, origin.run)
        for part in read_document(source, ("steps", "subagent_trajectories")):
            if isinstance(part, SkippedRecord):
                yield part
            elif part.key == "steps":
                yield from trajectory.step(part.value, part.index or 0)
            elif part.key == "subagent_trajectories" and part.index is not None:
                yield from _read_embedded(part.value, part.index, trajectory.open_run(), origin, 1)
            else:
                trajectory.facts[part.key] = part.value
        yield from trajectory.finish()


def _read_embedded(
    value: object, index: int, parent: str, origin: LogOrigin, depth: int
) -> Iterator[Event | Episode | SkippedRecord]:
    """Read a trajectory inside another; deeper ones first, as everywhere."""
    whole_value = mapping(value)
    where = f"subagent_trajectories[{index}]"
    if not whole_value or depth > _MAX_DEPTH:
        yield SkippedRecord(where, "not an object" if not whole_value else "nested too deeply")
        return
    own = text(whole_value.get("trajectory_id")) or f"sub-{index}"
    trajectory = _Trajectory(origin, own if own.startswith(parent) else f"{parent}.{own}", parent)
    trajectory.facts = {
        key: each for key, each in whole_value.items() if key not in ("steps", "subagent_trajectories")
    }
    for place, step in enumerate(listing(whole_value.get("steps"))):
        yield from trajectory.step(step, place)
    for place, child in enumerate(listing(whole_value.get("subagent_trajectories"))):
        yield from _read_embedded(child, place, trajectory.open_run(), origin, depth + 1)
    yield from trajectory.finish()


class _Trajectory:
    def __init__(self, origin: LogOrigin, run: str, parent: str = "") -> None:
        self.facts: dict[str, Any] = {}
        self._origin = origin
        self._run = run
        self._parent = parent
        self._recorder: Recorder | None = None
        self._counted = UsageTotals()

    def open_run(self, first: object = None) -> str:
        """Fix the run's id: its own, or one made of the first step when the document names it too late."""
        if self._recorder is None:
            agent = mapping(self.facts.get("agent"))
            named = text(self.facts.get("trajectory_id")) or text(self.facts.get("session_id"))
            part = count(mapping(agent.get("extra")).get("continuation_index"))
            run = self._run or (f"{named}.cont-{part}" if named and part else named)
            self._recorder = Recorder(
                run or derived_id("atif", compact_json(first)), self._origin, parent=self._parent
            )
        return self._recorder.run

    def step(self, step: object, place: int) -> Iterator[Event | SkippedRecord]:
        """Take one step; copied context was recorded where it happened."""
        self.open_run(step)
        recorder = self._recorder
        value = mapping(step)
        if recorder is None or not value:
            yield SkippedRecord(f"steps[{place}]", "not an object")
            return
        if value.get("is_copied_context") is True:
            if value.get("source") == "user":
                recorder.task = recorder.task or task_of(content_text(value.get("message")))
            return
        time = as_time(value.get("timestamp"))
        recorder.extend_span(time)
        recorder.use_model(text(value.get("model_name")))
        metrics = mapping(value.get("metrics"))
        self._counted.add(
            UsageTotals(
                input_tokens=count(metrics.get("prompt_tokens")),
                output_tokens=count(metrics.get("completion_tokens")),
                cached_tokens=count(metrics.get("cached_tokens")),
                cost_usd=as_float(metrics.get("cost_usd")) or 0.0,
            )
        )
        said = content_text(value.get("message"))
        if chosen := _CHOSEN_TASK.match(said):
            recorder.task = recorder.task or task_of(chosen.group(1))
        role = _ROLES.get(text(value.get("source")), "system")
        if role == "assistant":
            recorder.stated = None
        calls = _calls(value, said if role == "assistant" else "")
        extra = mapping(value.get("extra"))
        found = listing(mapping(value.get("observation")).get("results"))
        results = [mapping(each) for each in found] or _inline_results(value, said)
        if not (results and role == "system" and not calls):
            yield from recorder.message(role, said, time, name=text(extra.get("event_type")))
        yield from self._calls_with_results(recorder, calls, results, extra, time)
        if any(call.tool in _FINISHERS for _, call in calls):
            recorder.stated = EpisodeStatus.SUCCESS
        if extra.get("event_type") == "session_complete" and isinstance(extra.get("success"), bool):
            recorder.stated = EpisodeStatus.SUCCESS if extra["success"] else EpisodeStatus.FAILED

    def finish(self) -> Iterator[Event | Episode]:
        if not (self._recorder or self.facts):
            return
        self.open_run(sorted(self.facts))
        recorder = self._recorder
        if recorder is None:
            return
        agent = mapping(self.facts.get("agent"))
        about = mapping(agent.get("extra"))
        extra = mapping(self.facts.get("extra"))
        recorder.agent = text(agent.get("name"))
        recorder.provider = text(agent.get("provider")) or recorder.provider
        recorder.use_model(text(agent.get("model_name")) or text(agent.get("model")))
        recorder.session = text(self.facts.get("session_id"))
        recorder.parent = recorder.parent or text(about.get("parent_session_id"))
        recorder.is_continued = bool(self.facts.get("continued_trajectory_ref"))
        for key, name in (
            ("schema_version", "schema_version"),
            ("continued_trajectory_ref", "continued_in"),
            ("notes", "notes"),
        ):
            if text(self.facts.get(key)):
                recorder.extra[name] = text(self.facts[key])[:500]
        if text(agent.get("version")):
            recorder.extra["agent_version"] = agent["version"]
        instance = text(extra.get("instance")) or instance_in(self._origin.path_name)
        if instance:
            recorder.extra["instance"] = instance
        recorder.project = (
            text(extra.get("project"))
            or project_of_instance(instance)
            or project_of_folder(text(extra.get("cwd")))
        )
        recorder.task = text(extra.get("task")) or recorder.task
        if isinstance(extra.get("success"), bool):
            recorder.stated = EpisodeStatus.SUCCESS if extra["success"] else EpisodeStatus.FAILED
        recorder.stated = status_of_word(text(extra.get("status"))) or recorder.stated
        for key in ("start_time", "end_time"):
            recorder.extend_span(as_time(extra.get(key)))
        final = mapping(self.facts.get("final_metrics"))
        recorder.spent = UsageTotals(
            input_tokens=count(final.get("total_prompt_tokens")) or self._counted.input_tokens,
            output_tokens=count(final.get("total_completion_tokens")) or self._counted.output_tokens,
            cached_tokens=count(final.get("total_cached_tokens")) or self._counted.cached_tokens,
            cost_usd=as_float(final.get("total_cost_usd")) or self._counted.cost_usd,
        )
        yield from recorder.finish()

    def _calls_with_results(
        self,
        recorder: Recorder,
        calls: list[tuple[str, LoggedCall]],
        results: list[Mapping[str, Any]],
        step_extra: Mapping[str, Any],
        time: datetime | None,
    ) -> Iterator[Event]:
        for call_id, call in calls:
            yield from recorder.call(call_id, call, time)
        ids = [call_id for call_id, _ in calls]
        unnamed = [each for each in results if not text(each.get("source_call_id"))]
        # One result for several calls is the terminal after the last of them.
        ends = ids[-1:] if len(unnamed) == 1 else ids
        for result in results:
            call_id = text(result.get("source_call_id"))
            if not call_id and ends:
                call_id, ends = ends[0], ends[1:]
            outcome = _outcome(result, step_extra)
            command = text(mapping(result.get("content")).get("command"))
            if not call_id and command:
                yield from recorder.call_with_result(LoggedCall("shell", {"command": command}), outcome, time)
            elif call_id or outcome.output or outcome.extra:
                yield from recorder.result(call_id, outcome)
        for call_id in ids:
            # A step holds its results, so a call without one by now has none.
            if recorder.pending_tool(call_id) and results:
                yield from recorder.result(call_id, CallOutcome())


def _calls(step: Mapping[str, Any], said: str) -> list[tuple[str, LoggedCall]]:
    given = objects(step.get("tool_calls"))
    found: list[tuple[str, LoggedCall]] = []
    for place, each in enumerate(given):
        call_id = (
            text(each.get("tool_call_id")) or text(each.get("id")) or f"call-{step.get('step_id')}-{place}"
        )
        name = text(each.get("function_name")) or text(each.get("name"))
        found.append((call_id, LoggedCall(name, arguments_from(each.get("arguments")))))
    # Only what was carried out has an observation; other text that looks like a call is just text.
    if not given and said and step.get("observation"):
        found = [
            (f"call-{step.get('step_id')}-{place}", call) for place, call in enumerate(calls_in_message(said))
        ]
    return found


def _inline_results(step: Mapping[str, Any], said: str) -> list[Mapping[str, Any]]:
    """Read an observation that is itself the one result, its call named by the step's message."""
    observation = mapping(step.get("observation"))
    if "content" not in observation:
        return []
    named = _RESULT_FOR.match(said)
    is_good = mapping(observation.get("result")).get("success")
    extra = {} if is_good is None else {"tool_result_is_error": is_good is False}
    return [
        {"source_call_id": named.group(1) if named else "", "content": observation["content"], "extra": extra}
    ]


def _outcome(result: Mapping[str, Any], step_extra: Mapping[str, Any]) -> CallOutcome:
    extra = mapping(result.get("extra"))
    flag = extra.get("tool_result_is_error", step_extra.get("tool_result_is_error"))
    facts = mapping(extra.get("tool_result_metadata"))
    code = as_integer(extra.get("exit_code", facts.get("exit_code")))
    kept: dict[str, object] = {
        key: True for key in ("timed_out", "rejected", "result_missing") if extra.get(key) is True
    }
    references = [
        text(each.get("trajectory_id")) or text(each.get("trajectory_path")) or text(each.get("session_id"))
        for each in objects(result.get("subagent_trajectory_ref"))
    ]
    if references:
        kept["subagents"] = references
    content = result.get("content")
    structured = from_structured(content) if isinstance(content, dict) else None
    if structured is not None:
        return structured
    return read_outcome(
        content_text(content),
        exit_code=code,
        is_error=flag if isinstance(flag, bool) else None,
        duration_s=as_float(extra.get("duration_s")),
        extra=kept,
    )
