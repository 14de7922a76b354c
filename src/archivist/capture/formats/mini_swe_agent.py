"""Read mini-swe-agent's `.traj.json`: one document with `info` and `messages`, version 1 and 2.

Version 2 gives calls in `extra.actions` and their results as messages of role `tool`; version 1 writes the
command into a fenced block of the reply, and the next message of role `user` is what came back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, is_timeout, read_outcome
from archivist.capture.json_stream import SkippedRecord, preview_log, read_document
from archivist.capture.recorder import (
    LogOrigin,
    Recorder,
    UsageTotals,
    instance_in,
    project_of_folder,
    project_of_instance,
)
from archivist.capture.status import status_of_exit
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    compact_json,
    content_text,
    count,
    mapping,
    objects,
    seconds_between,
    text,
)
from archivist.ids import derived_id
from archivist.records import Episode, Event, EventKind

_BLOCK = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)\s*\n(.*?)\n?```", re.DOTALL)
_SUBMITTED = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_REFUSED = "Command not executed"
_TAGGED_OUTPUT = re.compile(r"<output>\s*(.*?)\s*</output>", re.DOTALL)
_IMAGE_INSTANCE = re.compile(r"([A-Za-z0-9][\w.-]*?)_1776_([A-Za-z0-9][\w.-]*?-\d+)")
# Messages held back until the first reply, which makes the run's id.
_MAX_OPENING = 8


class MiniSweAgent:
    """The adapter of mini-swe-agent's trajectories."""

    name = "mini-swe-agent"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by the format's own name, or by chat messages with this agent's marks."""
        first = preview_log(head).document
        if text(first.get("trajectory_format")).startswith("mini-swe-agent"):
            return True
        info = mapping(first.get("info"))
        messages = objects(first.get("messages"))
        is_chat = bool(messages) and all("role" in each or "type" in each for each in messages)
        if "mini_version" in info or b"minisweagent" in head:
            return True
        return is_chat and ("exit_status" in info or b"<returncode>" in head)

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the messages and calls, then the run."""
        trajectory = _Trajectory(origin)
        for part in read_document(source, ("messages",)):
            if isinstance(part, SkippedRecord):
                yield part
            elif part.key == "messages" and isinstance(part.value, dict):
                yield from trajectory.take(part.value)
            elif part.key == "messages":
                yield SkippedRecord(f"messages[{part.index}]", "not an object")
            else:
                trajectory.facts[part.key] = part.value
        yield from trajectory.finish()


class _Trajectory:
    def __init__(self, origin: LogOrigin) -> None:
        self.facts: dict[str, Any] = {}
        self._origin = origin
        self._opening: list[Mapping[str, Any]] = []
        self._recorder: Recorder | None = None
        self._latest: datetime | None = None
        self._exit: Mapping[str, Any] = {}

    def take(self, message: Mapping[str, Any]) -> Iterator[Event]:
        """Take one message, holding the first back until a reply tells this run from others of its task."""
        if self._recorder is None:
            self._opening.append(message)
            if _is_reply(message) or len(self._opening) == _MAX_OPENING:
                yield from self._start()
            return
        yield from self._message(self._recorder, message)

    def finish(self) -> Iterator[Event | Episode | SkippedRecord]:
        if self._recorder is None and self._origin.run:
            yield from self._start()
        recorder = self._recorder
        if recorder is None:
            # Without a reply the run cannot be told from others of its task, and there is nothing to learn.
            yield SkippedRecord("messages", "the log ends before the first reply")
            return
        info = mapping(self.facts.get("info"))
        config = mapping(info.get("config"))
        environment = mapping(config.get("environment"))
        recorder.use_model(text(mapping(config.get("model")).get("model_name")))
        in_image = _IMAGE_INSTANCE.search(text(environment.get("image")))
        instance = (
            text(self.facts.get("instance_id"))
            or (f"{in_image.group(1).rpartition('.')[2]}__{in_image.group(2)}" if in_image else "")
            or instance_in(self._origin.path_name)
        )
        if instance:
            recorder.extra["instance"] = instance
        if text(info.get("mini_version")):
            recorder.extra["agent_version"] = info["mini_version"]
        folder = text(environment.get("cwd"))
        recorder.project = project_of_instance(instance) or project_of_folder(folder)
        stats = mapping(info.get("model_stats"))
        recorder.spent.cost_usd = as_float(stats.get("instance_cost")) or recorder.spent.cost_usd
        if count(stats.get("api_calls")):
            recorder.spent.extra["api_calls"] = count(stats.get("api_calls"))
        exit_status = text(info.get("exit_status")) or text(self._exit.get("exit_status"))
        submission = text(info.get("submission")) or text(self._exit.get("submission"))
        recorder.stated = status_of_exit(exit_status, has_submission=bool(submission.strip()))
        if exit_status:
            recorder.extra["exit_status"] = exit_status
            yield from recorder.note(EventKind.FINISH, exit_status, submission)
        yield from recorder.finish()

    def _start(self) -> Iterator[Event]:
        beginning = []
        for message in self._opening:
            extra = mapping(message.get("extra"))
            reply_id = mapping(extra.get("response")).get("id") or message.get("id")
            said = content_text(message.get("content"))[:4_000]
            beginning.append([message.get("role"), said, reply_id, extra.get("timestamp")])
        run = self._origin.run or derived_id("mini-swe-agent", compact_json(beginning))
        recorder = self._recorder = Recorder(run, self._origin, agent="mini-swe-agent")
        for message in self._opening:
            yield from self._message(recorder, message)
        self._opening.clear()

    def _message(self, recorder: Recorder, message: Mapping[str, Any]) -> Iterator[Event]:
        extra = mapping(message.get("extra"))
        time = as_time(extra.get("timestamp")) or as_time(mapping(extra.get("response")).get("created"))
        recorder.extend_span(time)
        role = text(message.get("role"))
        said = content_text(message.get("content"))
        if _is_reply(message):
            yield from self._reply(recorder, message, time)
        elif role == "tool" or message.get("type") == "function_call_output":
            call_id = (
                text(message.get("tool_call_id")) or text(message.get("call_id")) or recorder.oldest_call()
            )
            outcome = self._outcome(said or content_text(message.get("output")), extra, time)
            yield from recorder.result(call_id, outcome, time)
        elif role == "exit":
            self._exit = extra
        elif role == "user" and recorder.oldest_call():
            if said.startswith(_SUBMITTED) or (not said and not extra):
                said = ""
            yield from recorder.result(recorder.oldest_call(), self._outcome(said, extra, time), time)
        elif role == "user" and recorder.task:
            # After the task, what the user's role says is the harness: a reply without a command, a limit.
            yield from recorder.message("system", said, time, name="harness")
        else:
            yield from recorder.message(role if role == "user" else "system", said, time)
        self._latest = time or self._latest

    def _reply(
        self, recorder: Recorder, message: Mapping[str, Any], time: datetime | None
    ) -> Iterator[Event]:
        extra = mapping(message.get("extra"))
        replies = (content_text(part.get("content")) for part in objects(message.get("output")))
        said = content_text(message.get("content")) or "\n".join(filter(None, replies))
        response = mapping(extra.get("response"))
        recorder.use_model(text(response.get("model")))
        usage = mapping(response.get("usage"))
        details = mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
        recorder.spent.add(
            UsageTotals(
                input_tokens=count(usage.get("prompt_tokens")) or count(usage.get("input_tokens")),
                output_tokens=count(usage.get("completion_tokens")) or count(usage.get("output_tokens")),
                cached_tokens=count(details.get("cached_tokens")),
                cost_usd=as_float(extra.get("cost")) or 0.0,
            )
        )
        yield from recorder.message("assistant", said, time)
        for call_id, call in _calls(message, extra, said):
            yield from recorder.call(call_id, call, time)

    def _outcome(self, said: str, extra: Mapping[str, Any], time: datetime | None) -> CallOutcome:
        code = as_integer(extra.get("returncode"))
        more: dict[str, object] = {}
        failure = text(extra.get("exception_info"))
        if failure:
            more["exception"] = failure[:500]
        if "Timeout" in text(extra.get("exception_type")) or is_timeout(failure):
            more["timed_out"] = True
        if said.startswith(_REFUSED):
            more["rejected"] = True
        raw = extra.get("raw_output")
        took = seconds_between(self._latest, time)
        if isinstance(raw, str) and code is not None:
            return CallOutcome(raw, code, bool(code) or bool(failure), took, more)
        is_error = True if more else None
        outcome = read_outcome(said, exit_code=code, is_error=is_error, duration_s=took, extra=more)
        inner = _TAGGED_OUTPUT.search(outcome.output) if outcome.extra.get("timed_out") else None
        return replace(outcome, output=inner.group(1), is_error=True) if inner else outcome


def _is_reply(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" or message.get("object") == "response"


def _calls(
    message: Mapping[str, Any], extra: Mapping[str, Any], said: str
) -> Iterator[tuple[str, LoggedCall]]:
    actions = objects(extra.get("actions"))
    if actions:
        for action in actions:
            yield (
                text(action.get("tool_call_id")),
                LoggedCall("bash", {"command": action.get("command") or action.get("action")}),
            )
        return
    given = objects(message.get("tool_calls"))
    for each in given:
        function = mapping(each.get("function"))
        yield (
            text(each.get("id")),
            LoggedCall(text(function.get("name")) or "bash", arguments_from(function.get("arguments"))),
        )
    blocks = _BLOCK.findall(said)
    if not given and len(blocks) == 1:
        yield "", LoggedCall("bash", {"command": blocks[0]})
