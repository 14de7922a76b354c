"""Read mini-swe-agent's `.traj.json`: one document with `info` and `messages`, version 1 and 2.

Version 2 gives calls in `extra.actions` and their results as messages of role `tool`; version 1 writes the
command into a fenced block of the reply, and the next message of role `user` is what came back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, is_timeout, read_outcome
from archivist.capture.json_stream import Part, preview_log, read_document
from archivist.capture.recorder import (
    INSTANCE_CHARACTERS,
    LogItem,
    LogOrigin,
    Recorder,
    add_usage,
    read_usage,
)
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    content_text,
    count,
    object_at,
    objects,
    seconds_between,
    text,
    text_between,
)
from archivist.cold_start import lazy_pattern

name = "mini-swe-agent"
_BLOCK = lazy_pattern(r"```(?:bash|sh|shell|mswea_bash_command)[ \t\r]*+\n(.*?)\n?```", re.DOTALL)
_SUBMITTED = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_REFUSED = "Command not executed"
_IMAGE_INSTANCE = lazy_pattern(
    r"([A-Za-z0-9][\w.-]*?)_1776_([A-Za-z0-9][\w.-]*?-\d+)", longest=INSTANCE_CHARACTERS
)
# Messages held back until the first reply, which makes the run's id.
_MAX_OPENING = 8


def recognises(head: bytes) -> bool:
    """Recognise the log by the format's own name, or by chat messages with this agent's marks."""
    first = preview_log(head).document
    if text(first, "trajectory_format").startswith("mini-swe-agent"):
        return True
    info = object_at(first, "info")
    messages = objects(first.get("messages"))
    is_chat = bool(messages) and all("role" in each or "type" in each for each in messages)
    if "mini_version" in info or b"minisweagent" in head:
        return True
    return is_chat and ("exit_status" in info or b"<returncode>" in head)


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the messages and calls, then the run."""
    return _Trajectory(origin).read(read_document(source, ("messages",)))


@dataclass(eq=False)
class _Trajectory(Recorder):
    keeps_shell = False
    agent: str = name
    _facts: dict[str, Any] = field(default_factory=dict)
    _opening: list[Mapping[str, Any]] = field(default_factory=list)
    _latest: datetime | None = None
    _exit: Mapping[str, Any] = field(default_factory=dict)

    def take(self, part: Part) -> None:
        """Take one message, holding the first back until a reply tells this run from others of its task."""
        if part.key != "messages":
            self._facts[part.key] = part.value
        elif not isinstance(part.value, dict):
            self.skip(f"messages[{part.index}]", "not an object")
        elif self.run:
            self._read_message(part.value)
        else:
            self._opening.append(part.value)
            if _is_reply(part.value) or len(self._opening) == _MAX_OPENING:
                self._start()

    def finish(self) -> None:
        if not self.run and self.origin.run:
            self._start()
        if not self.run:
            # Without a reply the run cannot be told from others of its task, and there is nothing to learn.
            self.skip("messages", "the log ends before the first reply")
            return
        info = object_at(self._facts, "info")
        environment = object_at(info, "config", "environment")
        self.use_model(text(object_at(info, "config", "model"), "model_name"))
        # The name stands at the end; the time of the pattern grows faster than its text.
        in_image = _IMAGE_INSTANCE.search(text(environment, "image")[-INSTANCE_CHARACTERS:])
        instance = f"{in_image.group(1).rpartition('.')[2]}__{in_image.group(2)}" if in_image else ""
        self.use_instance(text(self._facts, "instance_id") or instance, text(environment, "cwd"))
        self.add_facts(agent_version=text(info, "mini_version"))
        stats = object_at(info, "model_stats")
        self.spent = replace(self.spent, cost_usd=as_float(stats.get("instance_cost")) or self.spent.cost_usd)
        if calls := count(stats.get("api_calls")):
            self.spent.extra["api_calls"] = calls
        exit_status = text(info, "exit_status") or text(self._exit, "exit_status")
        self.exit_with(exit_status, text(info, "submission") or text(self._exit, "submission"))
        super().finish()

    def _start(self) -> None:
        beginning = []
        for message in self._opening:
            extra = object_at(message, "extra")
            reply_id = object_at(extra, "response").get("id") or message.get("id")
            said = content_text(message.get("content"))[:4_000]
            beginning.append([message.get("role"), said, reply_id, extra.get("timestamp")])
        self.open_run(beginning)
        for message in self._opening:
            self._read_message(message)
        self._opening.clear()

    def _read_message(self, message: Mapping[str, Any]) -> None:
        extra = object_at(message, "extra")
        self.move_to(as_time(extra.get("timestamp")) or as_time(object_at(extra, "response").get("created")))
        role = text(message, "role")
        said = content_text(message.get("content"))
        if _is_reply(message):
            self._read_reply(message)
        elif role == "tool" or message.get("type") == "function_call_output":
            call_id = text(message, "tool_call_id", "call_id") or self.oldest_call()
            output = said or content_text(message.get("output"))
            self.result(call_id, self._outcome(output, extra))
        elif role == "exit":
            self._exit = extra
        elif role == "user" and self.oldest_call():
            output = "" if said.startswith(_SUBMITTED) else said
            self.result(self.oldest_call(), self._outcome(output, extra))
        elif role == "user" and self.task:
            # After the task, what the user's role says is the harness: a reply without a command, a limit.
            self.message("system", said, name="harness")
        else:
            self.message(role if role == "user" else "system", said)
        self._latest = self.time or self._latest

    def _read_reply(self, message: Mapping[str, Any]) -> None:
        extra = object_at(message, "extra")
        replies = (content_text(part.get("content")) for part in objects(message.get("output")))
        said = content_text(message.get("content")) or "\n".join(filter(None, replies))
        response = object_at(extra, "response")
        self.use_model(text(response, "model"))
        usage = object_at(response, "usage")
        details = object_at(usage, "prompt_tokens_details") or object_at(usage, "input_tokens_details")
        is_chat = "prompt_tokens" in usage
        names = ("prompt_tokens", "completion_tokens") if is_chat else ("input_tokens", "output_tokens")
        used = {**usage, **details, "cost": extra.get("cost")}
        self.spent = add_usage(self.spent, read_usage(used, *names, "cached_tokens", "cost"))
        self.message("assistant", said)
        for call_id, call in _calls(message, extra, said):
            self.call(call_id, call)

    def _outcome(self, said: str, extra: Mapping[str, Any]) -> CallOutcome:
        code = as_integer(extra.get("returncode"))
        failure = text(extra, "exception_info")
        more: dict[str, object] = {"exception": failure[:500]} if failure else {}
        if "Timeout" in text(extra, "exception_type") or is_timeout(failure):
            more["timed_out"] = True
        if said.startswith(_REFUSED):
            more["rejected"] = True
        raw = extra.get("raw_output")
        took = seconds_between(self._latest, self.time)
        if isinstance(raw, str) and code is not None:
            return CallOutcome(raw, code, bool(code) or bool(failure), took, more)
        is_error = True if more else None
        outcome = read_outcome(said, exit_code=code, is_error=is_error, duration_s=took, extra=more)
        if not outcome.extra.get("timed_out"):
            return outcome
        inner = text_between(outcome.output, "<output>", "</output>")
        return outcome if inner is None else replace(outcome, output=inner.strip(), is_error=True)


def _is_reply(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" or message.get("object") == "response"


def _calls(
    message: Mapping[str, Any], extra: Mapping[str, Any], said: str
) -> Iterator[tuple[str, LoggedCall]]:
    for action in (actions := objects(extra.get("actions"))):
        command = action.get("command") or action.get("action")
        yield text(action, "tool_call_id"), LoggedCall("bash", {"command": command})
    if actions:
        return
    for each in (given := objects(message.get("tool_calls"))):
        function = object_at(each, "function")
        name = text(function, "name") or "bash"
        yield text(each, "id"), LoggedCall(name, arguments_from(function.get("arguments")))
    blocks = _BLOCK.findall(said)
    if not given and len(blocks) == 1:
        yield "", LoggedCall("bash", {"command": blocks[0].lstrip("\n")})
