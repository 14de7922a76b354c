"""Read Codex rollouts: `{timestamp, type, payload}` lines, older bare items, and `codex exec --json`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, from_structured, read_outcome
from archivist.capture.formats.codex_scripts import OngoingCalls, calls_in_script, script_outcome
from archivist.capture.json_stream import LogLine, preview_log, read_lines
from archivist.capture.recorder import GATEWAYS, LogItem, LogOrigin, Recorder, read_usage
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    content_text,
    listing,
    object_at,
    objects,
    remember,
    text,
)
from archivist.cold_start import lazy_pattern
from archivist.paths import project_of_address, remote_address
from archivist.records import EpisodeStatus, EventKind
from archivist.records.run_words import APPROVALS

name = "codex"
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
    "<environment_context>", "<user_instructions>", "<turn_aborted>", "<permissions", "<skill",
    "<INSTRUCTIONS>", "# AGENTS.md instructions", "<collaboration_mode>", "<subagent_notification>",
    "<user_shell_command>",
)  # fmt: skip
# Above a request stands what the client adds about the editor and about files, under headings of its own.
_REQUEST = "## My request for Codex:"
# One form of a prompt has the picture's place where another has none.
_PICTURE = lazy_pattern(r"<image\b[^<>]{0,500}>[^<>]{0,100}</image>")
# Where a person sits at the keyboard; threads of scripts and of other agents name another source.
_KEYBOARDS = (None, "cli", "vscode")
_FAILED_CALL = lazy_pattern(
    r"\A\s*(?:failed to|execution error|exec_command failed|apply_patch verification failed|unsupported call"
    r"|aborted by user|error[: ]|unable to|tool call (?:error|failed)|patch (?:rejected|failed))",
    re.IGNORECASE,
)
_REFUSED = lazy_pattern(r"(?:rejected|aborted|denied) by (?:the )?user", re.IGNORECASE)
_REFUSAL_CHARS = 400
# Facts about calls whose output never comes must not pile up.
_MAX_FACTS = 256


def recognises(head: bytes) -> bool:
    """Recognise the log by the envelope of its lines, or by bare response items after session facts."""
    found = preview_log(head)
    first = found.document
    if not first:
        return False
    for value in found.objects:
        is_enveloped = text(value, "type") in _ENVELOPES and isinstance(value.get("payload"), dict)
        if is_enveloped or value.get("type") == "thread.started":
            return True
    is_meta = "id" in first and "timestamp" in first and "type" not in first
    return is_meta and any(
        text(value, "type") in _BARE_ITEMS or "record_type" in value for value in found.objects[1:]
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the thread's events, then the thread."""
    return _Thread(origin).read(read_lines(source))


# No thread takes longer to copy another.
_COPIED_S = 5.0


@dataclass(eq=False)
class _Thread(Recorder):
    """One thread as it is read."""

    keeps_shell = False
    agent: str = name
    _has_meta: bool = False
    # The place and the moment from which on the lines of a fork are its own; before, those of another thread.
    _own_from: int | None = None
    _began: datetime | None = None
    _is_copied: bool = False
    _has_person: bool = True
    _can_ask: bool = True
    # How often a prompt came in each form, and was told.
    _prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _ongoing: OngoingCalls = field(default_factory=OngoingCalls)

    def take(self, line: LogLine) -> None:
        value = line.value
        kind = text(value, "type")
        payload = object_at(value, "payload")
        if not self.run:
            self.session = text(payload if kind == "session_meta" else value, "id", "session_id", "thread_id")
            self.open_run(value, self.session)
        self.move_to(as_time(value.get("timestamp")))
        self._is_copied = self._is_copied and not self._is_own(value, payload)
        if self._is_copied and kind != "session_meta":
            return
        match kind:
            case "session_meta":
                self._read_meta(payload)
            case "turn_context":
                self._read_context(payload)
            case "response_item":
                self._read_item(payload)
            case "event_msg":
                self._read_event(payload)
            case "compacted":
                self.note(EventKind.LOG, "compaction", text(payload, "message"))
            case _ if kind in _BARE_ITEMS:
                self._read_item(value)
            case _ if kind.startswith(("thread.", "turn.", "item.")) or kind == "error":
                self._read_exec_line(kind, value)
            case _ if kind in _OTHER_ENVELOPES or "record_type" in value:
                return
            case "" if "id" in value:
                self._read_meta(value)
            case _:
                self.skip_unknown(line, kind)

    def _read_meta(self, meta: Mapping[str, Any]) -> None:
        # A fork repeats the facts and the lines of the thread that it came from; the first facts are its own.
        if self._has_meta:
            self._is_copied = self._is_copied or text(meta, "id") not in ("", self.session)
            return
        self._has_meta = True
        self._began = as_time(meta.get("timestamp"))
        self._own_from = as_integer(meta.get("subagent_history_start_ordinal"))
        self.extend_span(self._began)
        maker = text(meta, "model_provider")
        self.maker = "" if maker in GATEWAYS else maker
        self._read_context(meta)
        git = object_at(meta, "git")
        remote = remote_address(text(git, "repository_url"))
        self.project = project_of_address(remote) or self.project
        self.add_facts(agent_version=text(meta, "cli_version"), originator=text(meta, "originator"))
        self.add_facts(branch=text(git, "branch"), remote=remote)
        is_own = text(meta, "thread_source") in ("", "user")
        self._has_person = is_own and meta.get("source") in _KEYBOARDS
        # A script that starts a thread reads its answer only in the end: nobody is there to approve anything.
        self._can_ask = meta.get("source") != "exec"
        # Of the session that it reviews, a review's log has no name.
        self.is_subagent = text(meta, "thread_source") == "subagent"
        self.is_subagent = self.is_subagent or "subagent" in object_at(meta, "source")
        spawned = object_at(meta, "source", "subagent", "thread_spawn")
        self.parent = text(meta, "parent_thread_id") or text(spawned, "parent_thread_id")

    def _is_own(self, value: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """Say whether a fork's own lines begin here: the copied ones are all written when it is made."""
        ordinal = as_integer(value.get("ordinal"))
        if self._own_from is not None and ordinal is not None:
            return ordinal >= self._own_from
        if self._began is None:
            return True
        begun = self._began.timestamp()
        if text(payload, "type") == "task_started" and (started := as_integer(payload.get("started_at"))):
            return started >= int(begun)
        return self.time is not None and self.time.timestamp() - begun >= _COPIED_S

    def _read_context(self, context: Mapping[str, Any]) -> None:
        self.use_model(text(context, "model"))
        self.enter_folder(text(context, "cwd"))
        if policy := text(context, "approval_policy"):
            self.extra[APPROVALS] = "on" if policy != "never" and self._can_ask else "off"

    def _read_item(self, item: Mapping[str, Any]) -> None:
        kind = text(item, "type")
        if kind == "message":
            role, said = text(item, "role"), content_text(item.get("content"))
            if role == "user" and not said.lstrip().startswith(_BY_CLIENT):
                self._read_prompt("item", item, said)
            else:
                self.message(role if role == "assistant" else "system", said)
        elif kind in _CALLS:
            self.stated = None
            call_id = text(item, "call_id", "id")
            *before, call = _calls(item)
            for each in before:
                self.call_with_result(each, CallOutcome())
            if kind == "web_search_call":
                self.call_with_result(call, CallOutcome())
                return
            self.call(call_id, call)
            self._ongoing.ask(call_id, call)
        elif kind in _RESULTS:
            call_id, output = text(item, "call_id"), item.get("output")
            texts = [content_text(each) for each in listing(output) or (output,)]
            outcome = script_outcome(texts) or _outcome(output)
            outcome = replace(outcome, **self._facts.pop(call_id, {}))
            if awaited := self._ongoing.answer(call_id, texts, outcome):
                self.replace_call(call_id, awaited)
            self.result(call_id, outcome)

    def _read_prompt(self, form: str, item: Mapping[str, Any], said: str) -> None:
        context, mark, request = said.rpartition(_REQUEST)
        has_context = bool(mark) and context.lstrip().startswith("# ")
        if has_context:
            said = request
        said = _PICTURE.sub("", said).strip()
        # A version writes a prompt in one form or in several; the same words can be said again.
        self._prompts[form, said] += 1
        if self._prompts[form, said] <= self._prompts["", said]:
            return
        self._prompts["", said] += 1
        self.stated = None
        self.ending.is_interrupted = False
        if has_context:
            self.message("system", context)
        noted = object_at(item, "internal_chat_message_metadata_passthrough")
        is_prompt = "user.text" in listing(noted.get("content_item_kinds", ["user.text"]))
        self.message("user", said, is_typed=is_prompt and self._has_person)

    def _read_event(self, event: Mapping[str, Any]) -> None:
        item = object_at(event, "item")
        match event.get("type"):
            case "user_message" if not (said := text(event, "message")).lstrip().startswith(_BY_CLIENT):
                self._read_prompt("event", event, said)
            case "item_completed" if item.get("type") == "UserMessage":
                self._read_prompt("completed", item, content_text(item.get("content")))
            case "token_count":
                if total := object_at(event, "info", "total_token_usage"):
                    self._count(total)
            case "task_started" | "turn_started":
                self.stated = None
            case "task_complete" | "turn_complete":
                self.stated = EpisodeStatus.FAILED if event.get("error") else EpisodeStatus.SUCCESS
            case "turn_aborted":
                self.stated = EpisodeStatus.ABORTED
                self.note(EventKind.LOG, "interrupt", text(event, "reason"))
            case "error":
                self.ending.is_service_error = True
                self.note(EventKind.LOG, "error", text(event, "message"))
            case "exec_command_end":
                code = as_integer(event.get("exit_code"))
                self._remember_outcome(event, code, is_error=code not in (None, 0))
            case "patch_apply_end":
                self._remember_outcome(event, None, is_error=event.get("success") not in (None, True))
            case "mcp_tool_call_end":
                self._remember_outcome(event, None, is_error="Err" in object_at(event, "result"))

    def _remember_outcome(self, event: Mapping[str, Any], exit_code: int | None, *, is_error: bool) -> None:
        """Keep what an event tells about a call until the call's output comes."""
        # Some versions write seconds, others an object of seconds and nanoseconds.
        parts = object_at(event, "duration")
        seconds = as_float(parts.get("secs") if parts else event.get("duration"))
        if seconds is not None:
            seconds += (as_float(parts.get("nanos")) or 0.0) / 1e9
        facts = {"exit_code": exit_code, "is_error": is_error or None, "duration_s": seconds}
        stated = {key: each for key, each in facts.items() if each is not None}
        remember(self._facts, text(event, "call_id"), stated, _MAX_FACTS)

    def _count(self, total: Mapping[str, Any]) -> None:
        self.spent = read_usage(total, "input_tokens", "output_tokens", "cached_input_tokens")

    def _read_exec_line(self, kind: str, value: Mapping[str, Any]) -> None:
        """Read one line of `codex exec --json`."""
        if kind == "item.completed":
            self._read_exec_item(object_at(value, "item"))
        elif kind == "turn.completed":
            self.stated = EpisodeStatus.SUCCESS
            self._count(object_at(value, "usage"))
        elif kind in ("turn.failed", "error"):
            self.stated = EpisodeStatus.FAILED if kind == "turn.failed" else None
            failure = text(value, "message") or text(object_at(value, "error"), "message")
            self.note(EventKind.LOG, "error", failure)

    def _read_exec_item(self, item: Mapping[str, Any]) -> None:
        is_failed = item.get("status") == "failed"
        match item.get("type"):
            case "agent_message":
                self.message("assistant", text(item, "text"))
            case "command_execution":
                call = LoggedCall("shell", {"command": item.get("command")})
                code = as_integer(item.get("exit_code"))
                is_error = is_failed or code not in (None, 0)
                output = text(item, "aggregated_output")
                self.call_with_result(call, CallOutcome(output, code, is_error))
            case "file_change":
                for change in objects(item.get("changes")):
                    call = LoggedCall("edit", {"path": change.get("path"), "kind": change.get("kind")})
                    self.call_with_result(call, CallOutcome(is_error=is_failed))
            case "mcp_tool_call":
                name = f"{text(item, 'server')}.{text(item, 'tool')}"
                output = content_text(object_at(item, "result").get("content"))
                call = LoggedCall(name, arguments_from(item.get("arguments")))
                self.call_with_result(call, CallOutcome(output, is_error=is_failed))
            case "error":
                self.note(EventKind.LOG, "error", text(item, "message"))


def _calls(item: Mapping[str, Any]) -> list[LoggedCall]:
    kind, tool, given = text(item, "type"), text(item, "name"), text(item, "input")
    if kind == "custom_tool_call" and tool == "exec":
        return calls_in_script(given) or [LoggedCall("script", {"input": given})]
    if kind == "custom_tool_call":
        return [LoggedCall(tool, {"input": given})]
    if tool := {"local_shell_call": "shell", "web_search_call": "web_search"}.get(kind, ""):
        return [LoggedCall(tool, object_at(item, "action"))]
    named = text(item, "name") or ("tool_search" if kind == "tool_search_call" else "")
    return [LoggedCall(named, arguments_from(item.get("arguments")))]


def _outcome(output: object) -> CallOutcome:
    if isinstance(output, dict) and "success" in output and not isinstance(output.get("content"), list):
        is_error = output.get("success") is False
        inner = from_structured(output.get("content"))
        return inner or read_outcome(content_text(output.get("content")), is_error=is_error or None)
    structured = from_structured(output)
    if structured is not None:
        return structured
    content = content_text(output)
    outcome = read_outcome(content)
    if outcome.exit_code is None and _FAILED_CALL.match(content):
        extra = {"rejected": True} if _REFUSED.search(content[:_REFUSAL_CHARS]) else {}
        return replace(outcome, is_error=True, extra={**outcome.extra, **extra})
    return outcome
