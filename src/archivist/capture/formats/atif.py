"""Read ATIF trajectories, versions 1.0 to 1.8, and what emitters write in its likeness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO

from archivist.capture.calls import (
    CallOutcome,
    LoggedCall,
    arguments_from,
    arguments_text,
    calls_in_message,
    from_structured,
    read_outcome,
)
from archivist.capture.json_stream import Part, parts_of, preview_log, read_document
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, add_usage, read_usage, task_of
from archivist.capture.status import status_of_word
from archivist.capture.values import (
    OUTPUT_SIDE_CHARS,
    as_time,
    clip,
    content_text,
    count,
    listing,
    mapping,
    object_at,
    objects,
    text,
)
from archivist.cold_start import lazy_pattern
from archivist.errors import RecordError
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Usage
from archivist.records.plain import from_plain
from archivist.records.run_words import TITLE

name = "atif"
# The key under which our own trajectories keep what the format has no field for.
OWN = "archivist"
_VERSION = lazy_pattern(r"\A(?:ATIF-v)?1\.\d")
_FINISHERS = frozenset(
    {"finish", "submit", "mark_task_complete", "task_complete", "attempt_completion", "complete_task"}
)
_RESULT_FOR = lazy_pattern(r"\ATool result for (\S+)\Z")
# Orchestrators pick their task by themselves and say so.
_CHOSEN_TASK = lazy_pattern(r"\ASelected task: (.+)", re.DOTALL)
_BEGUN_SUBTASK = lazy_pattern(r"\A(?:Starting subtask: )?(.+)", re.DOTALL)
_ENDED = lazy_pattern(
    r"\A(?:Sub-?task|Session) (?:failed|completed?|succeeded|finished)(?:: |\Z)", re.IGNORECASE
)
# How subtasks end, and whether that is well.
_ENDS_OF_SUBTASK = {"subtask_failed": False, "subtask_complete": True, "subtask_completed": True}
# Embedded trajectories are read recursively; a hostile log could nest them without end.
_MAX_DEPTH = 8
_ARRAYS = ("steps", "subagent_trajectories")
_ROLES = {"user": "user", "agent": "assistant", "assistant": "assistant"}


def recognises(head: bytes) -> bool:
    """Recognise the log by the version, or by steps that have a step id and a source."""
    first = preview_log(head).document
    steps = objects(first.get("steps"))
    if steps:
        return "source" in steps[0] and ("step_id" in steps[0] or "message" in steps[0])
    return bool(_VERSION.match(text(first, "schema_version"))) and ("agent" in first or "steps" in first)


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the steps, then the embedded subagents and the trajectory itself."""
    return _Trajectory(origin).read(read_document(source, _ARRAYS))


@dataclass(eq=False)
class _Trajectory(Recorder):
    agent: str = name
    depth: int = 0
    _facts: dict[str, Any] = field(default_factory=dict)
    _counted: Usage = field(default_factory=Usage)
    # The subtask whose steps are read, a run of its own.
    _open_subtask: _Trajectory | None = None

    def take(self, part: Part) -> None:
        if part.key == "steps":
            self._open(part.value)
            self._read_orchestrated(mapping(part.value), part.index or 0)
        elif part.key == "subagent_trajectories" and part.index is not None:
            self._open(None)
            self._read_embedded(mapping(part.value), part.index)
        else:
            self._facts[part.key] = part.value

    def _open(self, first: object) -> None:
        """Fix the run's id: its own, or one made of the first step when the document names it too late."""
        named = text(self._facts, "trajectory_id", "session_id")
        part = count(object_at(self._facts, "agent", "extra").get("continuation_index"))
        self.open_run(first, f"{named}.cont-{part}" if named and part else named)

    def _read_embedded(self, value: Mapping[str, Any], index: int) -> None:
        """Read a trajectory inside this one; deeper ones first, as everywhere."""
        if not value or self.depth == _MAX_DEPTH:
            self.skip(f"subagent_trajectories[{index}]", "nested too deeply" if value else "not an object")
            return
        own = text(value, "trajectory_id") or f"sub-{index}"
        origin = replace(self.origin, run=own if own.startswith(self.run) else f"{self.run}.{own}")
        child = _Trajectory(origin, parent=self.run, items=self.items, depth=self.depth + 1)
        for part in parts_of(value, _ARRAYS):
            child.take(part)
        child.finish()

    def _read_orchestrated(self, step: Mapping[str, Any], place: int) -> None:
        """Take one step of an orchestrator: what it does for a subtask is a run of that subtask."""
        extra = object_at(step, "extra")
        event, name = text(extra, "event_type"), text(extra, "subtask_id", "subtaskId")
        if event in ("subtask_start", "session_complete"):
            self._end_subtask()
        if event == "subtask_start" and name and self.depth < _MAX_DEPTH:
            origin = replace(self.origin, run=f"{self.run}.{name}")
            child = _Trajectory(origin, parent=self.run, items=self.items, depth=self.depth + 1)
            child._facts = {"agent": self._facts.get("agent"), "session_id": self._facts.get("session_id")}
            child.task, child.subtask = self.task, name
            begun = _BEGUN_SUBTASK.match(content_text(step.get("message")))
            child.add_facts(**{TITLE: task_of(begun[1]) if begun else ""})
            child.open_run(step)
            self._open_subtask = child
        (self._open_subtask or self).read_step(step, place)
        if event in _ENDS_OF_SUBTASK and self._open_subtask is not None:
            self._end_subtask(_ENDS_OF_SUBTASK[event], text(extra, "error"))

    def _end_subtask(self, is_good: bool | None = None, reason: str = "") -> None:
        """Close the subtask that is open; one without an end was broken off."""
        child, self._open_subtask = self._open_subtask, None
        if child is None:
            return
        child.read_success({"success": is_good}, reason)
        child.stated = child.stated or EpisodeStatus.ABORTED
        child.finish()

    def read_step(self, step: Mapping[str, Any], place: int) -> None:
        """Take one step; copied context was recorded where it happened."""
        if not step:
            self.skip(f"steps[{place}]", "not an object")
            return
        said = content_text(step.get("message"))
        extra = object_at(step, "extra")
        if isinstance(own := extra.get(OWN), dict):
            self._read_own_event(step, own, place)
            return
        if step.get("is_copied_context") is True:
            if step.get("source") == "user":
                self.task = self.task or task_of(said)
            return
        self.move_to(as_time(step.get("timestamp")))
        self.use_model(text(step, "model_name"))
        names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
        self._counted = add_usage(self._counted, read_usage(object_at(step, "metrics"), *names))
        if chosen := _CHOSEN_TASK.match(said):
            named, title = text(extra, "task_id", "taskId"), task_of(chosen.group(1))
            self.task = self.task or named or title
            self.add_facts(**{TITLE: title if named else ""})
        role = _ROLES.get(text(step, "source"), "system")
        if role == "assistant":
            self.stated = None
        calls = _calls(step, said if role == "assistant" else "")
        found = listing(object_at(step, "observation").get("results"))
        results = [mapping(each) for each in found] or _inline_results(step, said)
        if not (results and role == "system" and not calls):
            self.message(role, said, name=text(extra, "event_type"))
        self._record_calls(calls, results, extra)
        if any(call.tool in _FINISHERS for _, call in calls):
            self.stated = EpisodeStatus.SUCCESS
        if extra.get("event_type") == "session_complete":
            self.read_success(extra, said)

    def _read_own_event(self, step: Mapping[str, Any], own: Mapping[str, Any], place: int) -> None:
        """Take an event that we wrote, as it was; the step that stands for a run without events has none."""
        if not own:
            return
        said: dict[str, Any] = {"text": step.get("message")}
        if calls := objects(step.get("tool_calls")):
            result = next(iter(objects(object_at(step, "observation").get("results"))), {})
            facts = object_at(result, "extra")
            said = {
                "text": text_of_arguments(object_at(calls[0], "arguments")),
                "tool": calls[0].get("function_name"),
                "output": result.get("content"),
                "exit_code": facts.get("exit_code"),
                "is_error": facts.get("tool_result_is_error"),
                "duration_s": facts.get("duration_s"),
            }
        said["time"] = step.get("timestamp")
        given = {key: value for key, value in said.items() if value is not None}
        try:
            event = from_plain(Event, {"seq": self.next_seq, **given, **own, "run": self.run})
        except RecordError as error:
            self.skip(f"steps[{place}]", error.message)
            return
        self.next_seq = max(self.next_seq, event.seq + 1)
        self.move_to(event.time)
        # They were clipped when their run was captured; redaction may have made them longer since.
        side = 4 * OUTPUT_SIDE_CHARS
        self.items.append(replace(event, text=clip(event.text, side), output=clip(event.output, side)))

    def _own_episode(self) -> Episode | None:
        """Return the run as we wrote it; None of a trajectory that others wrote."""
        own = object_at(self._facts, "extra", OWN)
        if not own:
            return None
        try:
            episode = from_plain(Episode, {**own, "id": self.run})
        except RecordError as error:
            self.skip(f"extra.{OWN}", error.message)
            return None
        origin = self.origin
        return replace(
            episode,
            parent=self.parent or episode.parent,
            project=origin.project or episode.project,
            trajectories=(origin.path_name,) if origin.path_name else (),
        )

    def read_success(self, extra: Mapping[str, Any], reason: str = "") -> None:
        """Take what the log says of the end, and why."""
        if isinstance(extra.get("success"), bool):
            self.stated = EpisodeStatus.SUCCESS if extra["success"] else EpisodeStatus.FAILED
            if reason := _ENDED.sub("", reason).strip():
                self.note(EventKind.FINISH, self.stated.value, reason)

    def finish(self) -> None:
        if not (self.run or self._facts):
            return
        self._end_subtask()
        facts = self._facts
        self._open(sorted(facts))
        if episode := self._own_episode():
            self.items.append(episode)
            return
        agent = object_at(facts, "agent")
        extra = object_at(facts, "extra")
        self.agent = text(agent, "name")
        self.maker = text(agent, "provider") or self.maker
        self.use_model(text(agent, "model_name", "model"))
        self.session = text(facts, "session_id")
        self.parent = self.parent or text(object_at(agent, "extra"), "parent_session_id")
        self.ending.is_continued = bool(facts.get("continued_trajectory_ref"))
        self.add_facts(
            schema_version=text(facts, "schema_version")[:500],
            continued_in=text(facts, "continued_trajectory_ref")[:500],
            notes=text(facts, "notes")[:500],
            agent_version=text(agent, "version"),
        )
        self.use_instance(text(extra, "instance"), text(extra, "cwd"))
        self.project = text(extra, "project") or self.project
        self.task = text(extra, "task") or self.task
        self.read_success(extra)
        self.stated = status_of_word(text(extra, "status")) or self.stated
        for key in ("start_time", "end_time"):
            self.extend_span(as_time(extra.get(key)))
        totals = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd")
        final = asdict(read_usage(object_at(facts, "final_metrics"), *totals))
        self.spent = replace(self._counted, **{name: total for name, total in final.items() if total})
        super().finish()

    def _record_calls(
        self,
        calls: list[tuple[str, LoggedCall]],
        results: list[Mapping[str, Any]],
        step_extra: Mapping[str, Any],
    ) -> None:
        for call_id, call in calls:
            self.call(call_id, call)
        ids = [call_id for call_id, _ in calls]
        unnamed = [each for each in results if not text(each, "source_call_id")]
        # One result for several calls is the terminal after the last of them.
        ends = ids[-1:] if len(unnamed) == 1 else ids
        time = self.time
        for result in results:
            call_id = text(result, "source_call_id")
            if not call_id and ends:
                call_id, ends = ends[0], ends[1:]
            outcome = _outcome(result, step_extra)
            command = text(object_at(result, "content"), "command")
            is_whole = bool(command) and not call_id
            # The time of a step is that of its calls; when a result came is not known.
            self.time = time if is_whole else None
            if is_whole:
                self.call_with_result(LoggedCall("shell", {"command": command}), outcome)
            elif call_id or outcome.output or outcome.extra:
                self.result(call_id, outcome)
        for call_id in ids:
            # A step holds its results, so a call without one by now has none.
            if self.pending_tool(call_id) and results:
                self.result(call_id, CallOutcome())


def _calls(step: Mapping[str, Any], said: str) -> list[tuple[str, LoggedCall]]:
    unnamed = f"call-{step.get('step_id')}"
    given = objects(step.get("tool_calls"))
    # Only what was carried out has an observation; other text that looks like a call is just text.
    if not given and said and step.get("observation"):
        return [(f"{unnamed}-{place}", call) for place, call in enumerate(calls_in_message(said))]
    return [
        (
            text(each, "tool_call_id", "id") or f"{unnamed}-{place}",
            LoggedCall(text(each, "function_name", "name"), arguments_from(each.get("arguments"))),
        )
        for place, each in enumerate(given)
    ]


def text_of_arguments(arguments: Mapping[str, Any]) -> str:
    """Return what an event holds of a call's arguments: the command or the input alone, else all as JSON."""
    alone = text(arguments, "command", "input") if len(arguments) == 1 else ""
    return alone or arguments_text(arguments)


def _inline_results(step: Mapping[str, Any], said: str) -> list[Mapping[str, Any]]:
    """Read an observation that is itself the one result, its call named by the step's message."""
    observation = object_at(step, "observation")
    if "content" not in observation:
        return []
    named = _RESULT_FOR.match(said)
    is_good = object_at(observation, "result").get("success")
    extra = {} if is_good is None else {"tool_result_is_error": is_good is False}
    return [
        {"source_call_id": named.group(1) if named else "", "content": observation["content"], "extra": extra}
    ]


def _outcome(result: Mapping[str, Any], step_extra: Mapping[str, Any]) -> CallOutcome:
    extra = object_at(result, "extra")
    flag = extra.get("tool_result_is_error", step_extra.get("tool_result_is_error"))
    facts = object_at(extra, "tool_result_metadata")
    kept: dict[str, object] = {
        key: True for key in ("timed_out", "rejected", "result_missing") if extra.get(key) is True
    }
    references = [
        text(each, "trajectory_id", "trajectory_path", "session_id")
        for each in objects(result.get("subagent_trajectory_ref"))
    ]
    if references:
        kept["subagents"] = references
    content = result.get("content")
    structured = from_structured(content) if isinstance(content, dict) else None
    return structured or read_outcome(
        content_text(content),
        exit_code=extra.get("exit_code", facts.get("exit_code")),
        is_error=flag if isinstance(flag, bool) else None,
        duration_s=extra.get("duration_s"),
        extra=kept,
    )
