"""Read Codex rollouts: `{timestamp, type, payload}` lines, older bare items, and `codex exec --json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, from_structured, read_outcome
from archivist.capture.json_stream import LogLine, SkippedRecord, preview_log, read_lines
from archivist.capture.recorder import LogOrigin, Recorder, UsageTotals, project_of_folder, project_of_remote
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
from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.records.run_words import FOLDER

_ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_OTHER_ENVELOPES = frozenset((
    "world_state", "inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score",
    "ghost_snapshot",
))  # fmt: skip
_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"}
)
_RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
_BARE_ITEMS = _CALLS | _RESULTS | {"message", "reasoning", "compaction", "context_compaction"}
# What the client writes in the role of the user.
_BY_CLIENT = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions",
    "<skill",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<collaboration_mode>",
    "<subagent_notification>",
    "<user_shell_command>",
)
_FAILED_CALL = re.compile(
    r"\A\s*(?:failed to|execution error|exec_command failed|apply_patch verification failed|unsupported call"
    r"|aborted by user|error[: ]|unable to|tool call (?:error|failed)|patch (?:rejected|failed))",
    re.IGNORECASE,
)
# Facts about calls whose output never comes must not pile up.
_MAX_FACTS = 256


class Codex:
    """The adapter of Codex rollouts."""

    name = "codex"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by the envelope of its lines, or by bare response items after session facts."""
        found = preview_log(head)
        first = found.document
        if not first:
            return False
        for value in found.objects:
            is_enveloped = text(value.get("type")) in _ENVELOPES and isinstance(value.get("payload"), dict)
            if is_enveloped or value.get("type") == "thread.started":
                return True
        is_meta = "id" in first and "timestamp" in first and "type" not in first
        return is_meta and any(
            text(value.get("type")) in _BARE_ITEMS or "record_type" in value for value in found.objects[1:]
        )

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the thread's events, then the thread."""
        thread: _Thread | None = None
        for line in read_lines(source):
            if isinstance(line, SkippedRecord):
                yield line
                continue
            if thread is None:
                thread = _Thread(line, origin)
            yield from thread.take(line)
        if thread is not None:
            yield from thread.finish()


class _Thread:
    """One thread as it is read."""

    def __init__(self, first: LogLine, origin: LogOrigin) -> None:
        value = first.value
        meta = mapping(value.get("payload")) if value.get("type") == "session_meta" else value
        session = text(meta.get("id")) or text(meta.get("session_id")) or text(meta.get("thread_id"))
        run = origin.run or session or derived_id("codex", compact_json(value))
        self._recorder = Recorder(run, origin, agent="codex")
        self._recorder.session = session
        self._has_meta = False
        self._facts: dict[str, CallOutcome] = {}

    def take(self, line: LogLine) -> Iterator[Event | SkippedRecord]:
        value = line.value
        kind = text(value.get("type"))
        time = as_time(value.get("timestamp"))
        self._recorder.extend_span(time)
        payload = mapping(value.get("payload"))
        match kind:
            case "session_meta":
                self._meta(payload)
            case "turn_context":
                self._context(payload)
            case "response_item":
                yield from self._item(payload, time)
            case "event_msg":
                yield from self._read_event(payload, time)
            case "compacted":
                yield from self._recorder.note(
                    EventKind.LOG, "compaction", text(payload.get("message")), time
                )
            case _ if kind in _BARE_ITEMS:
                yield from self._item(value, time)
            case _ if kind.startswith(("thread.", "turn.", "item.")) or kind == "error":
                yield from self._read_exec_line(kind, value, time)
            case _ if kind in _OTHER_ENVELOPES or "record_type" in value:
                return
            case "" if "id" in value:
                self._meta(value)
            case _:
                yield SkippedRecord(
                    f"line {line.number}", f"unknown record type {kind[:40]!r}" if kind else "no record type"
                )

    def finish(self) -> Iterator[Event | Episode]:
        yield from self._recorder.finish()

    def _meta(self, meta: Mapping[str, Any]) -> None:
        # A fork repeats the facts of the thread that it came from; the first are its own.
        if self._has_meta:
            return
        self._has_meta = True
        recorder = self._recorder
        recorder.extend_span(as_time(meta.get("timestamp")))
        recorder.provider = text(meta.get("model_provider"))
        self._context(meta)
        remote = text(mapping(meta.get("git")).get("repository_url"))
        recorder.project = project_of_remote(remote) or recorder.project
        for key, name in (("cli_version", "agent_version"), ("originator", "originator")):
            if text(meta.get(key)):
                recorder.extra[name] = meta[key]
        if text(mapping(meta.get("git")).get("branch")):
            recorder.extra["branch"] = mapping(meta["git"])["branch"]
        spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        recorder.parent = text(meta.get("parent_thread_id")) or text(spawned.get("parent_thread_id"))

    def _context(self, context: Mapping[str, Any]) -> None:
        self._recorder.use_model(text(context.get("model")))
        folder = text(context.get("cwd"))
        if folder and FOLDER not in self._recorder.extra:
            self._recorder.project = self._recorder.project or project_of_folder(folder)
        self._recorder.enter_folder(folder)

    def _item(self, item: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        kind = text(item.get("type"))
        if kind == "message":
            role, said = text(item.get("role")), content_text(item.get("content"))
            if role == "user" and said.lstrip().startswith(_BY_CLIENT):
                role = "system"
            if role == "user":
                self._recorder.stated = None
                self._recorder.is_interrupted = False
            yield from self._recorder.message(role if role in ("user", "assistant") else "system", said, time)
        elif kind in _CALLS:
            self._recorder.stated = None
            call_id = text(item.get("call_id")) or text(item.get("id"))
            yield from self._recorder.call(call_id, _call(item), time)
            if kind == "web_search_call":
                yield from self._recorder.result(call_id, CallOutcome(), time)
        elif kind in _RESULTS:
            call_id = text(item.get("call_id"))
            outcome = _outcome(item.get("output"))
            if known := self._facts.pop(call_id, None):
                outcome = replace(
                    outcome,
                    exit_code=known.exit_code if known.exit_code is not None else outcome.exit_code,
                    is_error=outcome.is_error or known.is_error,
                    duration_s=known.duration_s if known.duration_s is not None else outcome.duration_s,
                )
            yield from self._recorder.result(call_id, outcome, time)

    def _read_event(self, event: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        recorder = self._recorder
        match event.get("type"):
            case "token_count":
                total = mapping(mapping(event.get("info")).get("total_token_usage"))
                if total:
                    self._count(total)
            case "task_started" | "turn_started":
                recorder.stated = None
            case "task_complete" | "turn_complete":
                recorder.stated = EpisodeStatus.FAILED if event.get("error") else EpisodeStatus.SUCCESS
            case "turn_aborted":
                recorder.stated = EpisodeStatus.ABORTED
                yield from recorder.note(EventKind.LOG, "interrupt", text(event.get("reason")), time)
            case "error":
                recorder.is_service_error = True
                yield from recorder.note(EventKind.LOG, "error", text(event.get("message")), time)
            case "exec_command_end":
                self._remember_outcome(event, as_integer(event.get("exit_code")), None)
            case "patch_apply_end":
                is_good = event.get("success")
                self._remember_outcome(event, None, None if is_good is None else is_good is not True)
            case "mcp_tool_call_end":
                self._remember_outcome(event, None, "Err" in mapping(event.get("result")))
            case _:
                return

    def _remember_outcome(
        self, event: Mapping[str, Any], exit_code: int | None, is_error: bool | None
    ) -> None:
        """Keep what an event tells about a call until the call's output comes."""
        is_failure = is_error if is_error is not None else exit_code not in (None, 0)
        # Some versions write seconds, others an object of seconds and nanoseconds.
        duration = event.get("duration")
        parts = mapping(duration)
        seconds = as_float(parts.get("secs") if parts else duration)
        if seconds is not None:
            seconds += (as_float(parts.get("nanos")) or 0.0) / 1e9
        self._facts[text(event.get("call_id"))] = CallOutcome("", exit_code, is_failure, seconds)
        if len(self._facts) > _MAX_FACTS:
            del self._facts[next(iter(self._facts))]

    def _count(self, total: Mapping[str, Any]) -> None:
        self._recorder.spent = UsageTotals(
            input_tokens=count(total.get("input_tokens")),
            output_tokens=count(total.get("output_tokens")),
            cached_tokens=count(total.get("cached_input_tokens")),
        )

    def _read_exec_line(self, kind: str, value: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        """Read one line of `codex exec --json`."""
        recorder = self._recorder
        item = mapping(value.get("item"))
        if kind == "turn.completed":
            recorder.stated = EpisodeStatus.SUCCESS
            self._count(mapping(value.get("usage")))
        elif kind in ("turn.failed", "error"):
            recorder.stated = EpisodeStatus.FAILED if kind == "turn.failed" else None
            failure = text(value.get("message")) or text(mapping(value.get("error")).get("message"))
            yield from recorder.note(EventKind.LOG, "error", failure, time)
        if kind != "item.completed":
            return
        is_failed = item.get("status") == "failed"
        match item.get("type"):
            case "agent_message":
                yield from recorder.message("assistant", text(item.get("text")), time)
            case "command_execution":
                call = LoggedCall("shell", {"command": item.get("command")})
                output = text(item.get("aggregated_output"))
                code = as_integer(item.get("exit_code"))
                yield from recorder.call_with_result(
                    call, CallOutcome(output, code, is_failed or code not in (None, 0)), time
                )
            case "file_change":
                for change in objects(item.get("changes")):
                    call = LoggedCall("edit", {"path": change.get("path"), "kind": change.get("kind")})
                    yield from recorder.call_with_result(call, CallOutcome(is_error=is_failed), time)
            case "mcp_tool_call":
                call = LoggedCall(
                    f"{text(item.get('server'))}.{text(item.get('tool'))}",
                    arguments_from(item.get("arguments")),
                )
                output = content_text(mapping(item.get("result")).get("content"))
                yield from recorder.call_with_result(call, CallOutcome(output, is_error=is_failed), time)
            case "error":
                yield from recorder.note(EventKind.LOG, "error", text(item.get("message")), time)
            case _:
                return


def _call(item: Mapping[str, Any]) -> LoggedCall:
    match item.get("type"):
        case "local_shell_call":
            return LoggedCall("shell", mapping(item.get("action")))
        case "custom_tool_call":
            return LoggedCall(text(item.get("name")), {"input": text(item.get("input"))})
        case "web_search_call":
            return LoggedCall("web_search", mapping(item.get("action")))
        case _:
            return LoggedCall(text(item.get("name")), arguments_from(item.get("arguments")))


def _outcome(output: object) -> CallOutcome:
    if isinstance(output, dict) and "success" in output and not listing(output.get("content")):
        is_error = output.get("success") is False
        inner = from_structured(output.get("content"))
        return inner or read_outcome(content_text(output.get("content")), is_error=is_error or None)
    structured = from_structured(output)
    if structured is not None:
        return structured
    content = content_text(output)
    outcome = read_outcome(content)
    if outcome.exit_code is None and _FAILED_CALL.match(content):
        return replace(outcome, is_error=True)
    return outcome
