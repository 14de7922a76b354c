"""Read Copilot CLI sessions: `events.jsonl`, one `{type, data, id, timestamp, parentId}` a line.

The events of subagents stand in the same file and name their agent; they become runs of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, read_outcome
from archivist.capture.json_stream import LogLine, preview_log, read_lines
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, add_usage, read_usage
from archivist.capture.values import as_integer, as_time, object_at, remember, remote_of_context, text
from archivist.cold_start import lazy_pattern
from archivist.paths import remote_address
from archivist.records import EpisodeStatus, EventKind, Usage

name = "copilot-cli"
_MARKS = (
    "session.start", "session.resume", "user.message", "assistant.message", "tool.execution_start",
    "tool.execution_complete",
)  # fmt: skip
_HOOK_TEXT = lazy_pattern(r"\nTool \"[^\"\n]{1,200}\" (?:succeeded|failed)\. Additional guidance from ")
# The line with which the client ends the output of a command.
_EXITED = lazy_pattern(r"\n?<[^<>\n]{0,200}?\bexit code:? (-?\d{1,10})[^<>\n]{0,200}>\s*\Z")
# The line of a command that runs on, under the name of its shell; a later call reads what it printed.
_RUNS_ON = lazy_pattern(
    r"<[^<>\n]{0,100}?\bshellId:? ?[\"']?([\w.-]{1,60}?)[\"']?(?: is still running\b[^<>\n]{0,300})?>\s*\Z"
)
_SHELL_READERS = ("read_bash", "read_powershell", "write_bash", "write_powershell")
_MOST_SHELLS = 256
_TAIL_CHARS = 600
_REFUSED = lazy_pattern(
    r"user (?:rejected|denied|declined)|(?:rejected|denied|declined) by (?:the )?(?:user|policy|hook|a rule)"
    r"|Permission denied and could not request permission",
    re.IGNORECASE,
)
_REFUSAL_CODES = ("rejected", "denied", "permission_denied")
_MAX_OPEN_RUNS = 256


def recognises(head: bytes) -> bool:
    """Recognise the log by the names of its events and their data."""
    return any(
        value.get("type") in _MARKS and isinstance(value.get("data"), dict)
        for value in preview_log(head).objects
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the session's events, then its subagents and itself."""
    return _Session(origin).read(read_lines(source))


@dataclass(eq=False)
class _Session(Recorder):
    agent: str = name
    _children: dict[str, Recorder] = field(default_factory=dict)
    # By the id of the call that started it: the subagent's name.
    _started: dict[str, str] = field(default_factory=dict)
    _totals: Usage = field(default_factory=Usage)
    # Calls without a result yet, and commands that run on, by the name of their shell.
    _open_calls: dict[str, LoggedCall] = field(default_factory=dict)
    _shells: dict[str, LoggedCall] = field(default_factory=dict)

    def take(self, line: LogLine) -> None:
        value, kind = line.value, text(line.value, "type")
        data = object_at(value, "data")
        if "." not in kind and kind not in ("abort", "result"):
            self.skip_unknown(line, kind)
            return
        if not self.run:
            self.session = text(data, "sessionId")
            self.open_run(value, self.session)
        run = self._run_of(value, data)
        run.move_to(as_time(value.get("timestamp")))
        if kind.startswith("session."):
            self._read_session(kind.removeprefix("session."), data)
        else:
            self._read_event(run, kind, data)

    def finish(self) -> None:
        for child in self._children.values():
            self._finish_child(child)
        if self.spent == Usage():
            self.spent = self._totals
        super().finish()

    def _finish_child(self, child: Recorder) -> None:
        child.project, child.model = child.project or self.project, child.model or self.model
        child.maker = child.maker or self.maker
        child.finish()

    def _run_of(self, value: Mapping[str, Any], data: Mapping[str, Any]) -> Recorder:
        """Return the run of an event: a subagent's by its name, else the session."""
        caller = text(data, "parentToolCallId")
        child_name = text(value, "agentId") or self._started.get(caller, caller)
        if not child_name:
            return self
        if caller:
            self._started[caller] = child_name
        if child_name not in self._children:
            while len(self._children) >= _MAX_OPEN_RUNS:
                self._finish_child(self._children.pop(next(iter(self._children))))
            child = Recorder(
                self.origin, run=f"{self.run}.{child_name}", agent=name, parent=self.run, items=self.items
            )
            child.session, child.project = self.session, self.project
            child.enter_folder(self.folder)
            self._children[child_name] = child
        return self._children[child_name]

    def _read_session(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "start" | "resume" | "context_changed":
                context = object_at(data, "context") or data
                self.project = self.project or text(context, "repository")
                self.add_facts(remote=remote_address(remote_of_context(context)))
                self.enter_folder(text(context, "cwd"))
                self.add_facts(branch=text(context, "branch"), agent_version=text(data, "copilotVersion"))
                self.add_facts(originator=text(data, "producer"))
                self.use_model(text(data, "selectedModel"))
            case "model_change":
                self.use_model(text(data, "newModel"))
            case "usage_record":
                self.use_model(text(object_at(data, "usage"), "model"))
                self.spent = add_usage(self.spent, _usage_of(object_at(data, "usage")))
            case "error":
                self.ending.is_service_error = True
                self.note(EventKind.LOG, "error", text(data, "message"))
            case "compaction_complete":
                self.note(EventKind.LOG, "compaction", text(data, "summaryContent"))
            case "task_complete":
                self.stated = EpisodeStatus.SUCCESS
            case "shutdown":
                self.use_model(text(data, "currentModel"))
                for metrics in object_at(data, "modelMetrics").values():
                    usage = object_at(metrics, "usage") if isinstance(metrics, dict) else {}
                    self._totals = add_usage(self._totals, _usage_of(usage))
                if text(data, "shutdownType") == "error":
                    self.stated = EpisodeStatus.FAILED

    def _read_event(self, run: Recorder, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "user.message":
                run.stated = None
                run.ending.is_interrupted = run.ending.is_service_error = False
                is_typed = run is self and text(data, "source") in ("", "user")
                is_asked = is_typed or run is not self
                run.message("user" if is_asked else "system", text(data, "content"), is_typed=is_typed)
            case "assistant.message":
                run.stated = None
                run.use_model(text(data, "model"))
                run.message("assistant", text(data, "content"))
            case "system.message":
                run.message("system", text(data, "content"))
            case "abort":
                run.ending.is_interrupted = True
                run.note(EventKind.LOG, "interrupt", text(data, "reason"))
            case "tool.execution_start":
                call = LoggedCall(text(data, "toolName"), arguments_from(data.get("arguments")))
                run.call(text(data, "toolCallId"), call)
                remember(self._open_calls, text(data, "toolCallId"), call, _MOST_SHELLS)
            case "tool.execution_complete":
                self._read_result(run, data)

    def _read_result(self, run: Recorder, data: Mapping[str, Any]) -> None:
        run.use_model(text(data, "model"))
        call_id = text(data, "toolCallId")
        outcome = _outcome(data)
        child_name = self._started.pop(call_id, "")
        if child := self._children.get(child_name):
            outcome.extra["child"] = child.run
            child.stated = EpisodeStatus.FAILED if outcome.is_error else EpisodeStatus.SUCCESS
        run.ending.is_interrupted = "rejected" in outcome.extra
        if call := self._open_calls.pop(call_id, None):
            self._follow_shell(run, call_id, call, outcome)
        run.result(call_id, outcome)

    def _follow_shell(self, run: Recorder, call_id: str, call: LoggedCall, outcome: CallOutcome) -> None:
        """Give the end of a command that ran on to the command, not to the call that read it."""
        is_reader = call.tool in _SHELL_READERS
        command = self._shells.get(text(call.arguments, "shellId")) if is_reader else call
        if command is None:
            return
        if outcome.exit_code is not None:
            if is_reader:
                run.replace_call(call_id, command)
        elif runs_on := _RUNS_ON.search(outcome.output, max(0, len(outcome.output) - _TAIL_CHARS)):
            outcome.extra["running"] = True
            remember(self._shells, runs_on.group(1), command, _MOST_SHELLS)


def _usage_of(usage: Mapping[str, Any]) -> Usage:
    return read_usage(usage, "inputTokens", "outputTokens", "cacheReadTokens")


def _outcome(data: Mapping[str, Any]) -> CallOutcome:
    result, error = object_at(data, "result"), object_at(data, "error")
    content, failure = text(result, "content"), text(error, "message")
    output = text(result, "detailedContent")
    if not output:
        hook_text = _HOOK_TEXT.search(content)
        output = content[: hook_text.start()].rstrip("\n") if hook_text else content
    exit_code = as_integer(object_at(data, "shellExecution").get("exitCode"))
    for said in (output, content):
        ending = _EXITED.search(said, max(0, len(said) - _TAIL_CHARS))
        if ending and exit_code is None:
            exit_code = as_integer(int(ending.group(1)))
        if ending and said is output:
            output = output[: ending.start()]
    if data.get("success") is not False:
        return CallOutcome(output, exit_code, exit_code not in (None, 0))
    is_refused = text(error, "code") in _REFUSAL_CODES or _REFUSED.search(failure[:400]) is not None
    extra: dict[str, object] = {"rejected": True} if is_refused else {}
    # The client's word counts: a program prints what it likes of its own end.
    return read_outcome(output or failure, exit_code=exit_code or None, is_error=True, extra=extra)
