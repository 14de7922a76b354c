"""Read Gemini CLI chats: JSON lines in which a later line replaces a message, and the older single document.

The log has only a hash of its folder: the client keeps the folder in `.project_root` beside the chats.
Subagents have a file of their own, in a folder that is named after the session which started them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, read_outcome
from archivist.capture.json_stream import LogLine, Part, preview_log, read_document, read_lines
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, add_usage, read_usage
from archivist.capture.values import as_time, content_text, object_at, objects, remember, text, without_tag
from archivist.cold_start import lazy_pattern
from archivist.files.packed import head_of
from archivist.files.worktrees import read_small_text
from archivist.records import EventKind

name = "gemini-cli"
_SHELL = "run_shell_command"
_ROOT_FILE = ".project_root"
# What the client writes into the user's turn before the first request, and below a request that names files.
_BY_CLIENT = ("<session_context>", "This is the Gemini CLI. We are setting up the context for our chat")
_NAMED_FILES = "--- Content from referenced files ---"
_REFUSED = lazy_pattern(r"\[Operation Cancelled\] Reason: User denied|User did not allow tool call")
_RAN_COMMAND = "I ran the following shell command"
# What hooks add to a prompt; it comes back as it was, with its brackets escaped, or cut. What they print may
# hold the closing tag too, so nothing behind the first opening tag is certain.
_HOOK_TAG = "hook_context"
_HOOK_START = lazy_pattern(r"(?:<|&lt;)hook_context(?:>|&gt;)")
_HOOK_CONTEXT = lazy_pattern(
    r"(?s)(?:<|&lt;)hook_context(?:>|&gt;)(.*?)(?:(?:<|&lt;)/hook_context(?:>|&gt;)|\Z)"
)
_TIMED_OUT = "Command was automatically cancelled because it exceeded the timeout"
_CANCELLED = "Command was cancelled by user"
_IN_BACKGROUND = ("Command moved to background", "Command started in background")
# The last lines of a command's output are the client's: each once, and what stands above is the program's.
_TRAILER = lazy_pattern(r"(Exit Code|Signal|Background PIDs|Process Group PGID): (.*)")
_EXIT_CODE = lazy_pattern(r"-?\d{1,10}")
# A message waits for the lines that replace it; they follow within a few.
_MAX_WAITING = 32
_REMEMBERED_MESSAGES = 20_000
_MAX_PATH = 500


def recognises(head: bytes) -> bool:
    """Recognise the log by the facts of its session, or by a message of this model."""
    found = preview_log(head)
    if {"sessionId", "projectHash"} <= found.document.keys():
        return True
    messages = objects(found.document.get("messages")) or found.objects
    return any(value.get("type") == "gemini" and "content" in value for value in messages)


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the chat's messages and calls, then the chat."""
    first = preview_log(head_of(source)).objects
    is_document = len(first) == 1 and "messages" in first[0]
    return _Chat(origin).read(read_document(source, ("messages",)) if is_document else read_lines(source))


@dataclass(eq=False)
class _Chat(Recorder):
    keeps_shell = False
    agent: str = name
    _is_subagent: bool = False
    _is_of_lines: bool = False
    _project_hash: str = ""
    _waiting_messages: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _seen: dict[str, None] = field(default_factory=dict)

    def take(self, record: LogLine | Part) -> None:
        if isinstance(record, LogLine):
            self._is_of_lines = True
            self._read_line(record.value, f"line {record.number}")
        elif record.key == "messages" and record.index is not None:
            value = record.value if isinstance(record.value, dict) else {}
            self._hold(value, f"messages[{record.index}]")
        else:
            self._read_facts({record.key: record.value})

    def finish(self) -> None:
        for message in self._waiting_messages.values():
            self._read_message(message)
        if not self.run and self.session:
            self.open_run({}, self.session)
        super().finish()

    def _read_line(self, value: Mapping[str, Any], where: str) -> None:
        if "sessionId" in value and "type" not in value:
            self._read_facts(value)
        elif change := object_at(value, "$set"):
            self._read_facts(change)
            for index, message in enumerate(objects(change.get("messages"))):
                self._hold(message, f"{where}, messages[{index}]")
        elif "$rewindTo" in value:
            # What was done stays done, though the conversation goes on from before it.
            self._hold({"id": f"{where} rewind", "type": "info", "content": "rewind"}, where)
        elif "$set" not in value:
            self._hold(value, where)

    def _read_facts(self, facts: Mapping[str, Any]) -> None:
        self.session = self.session or text(facts, "sessionId")
        self._project_hash = self._project_hash or text(facts, "projectHash")
        self.extend_span(as_time(facts.get("startTime")))
        if text(facts, "kind") == "subagent":
            self._is_subagent = True
            folder = self.origin.folder
            if folder is not None and folder.parent.name == "chats":
                self.parent = folder.name

    def _hold(self, message: Mapping[str, Any], where: str) -> None:
        """Take one message, or a newer version of it; the oldest of those that wait is read."""
        if not text(message, "type"):
            self.skip(where, "no message type")
            return
        message_id = text(message, "id") or where
        if message_id in self._seen:
            return
        self._waiting_messages[message_id] = message
        if len(self._waiting_messages) > _MAX_WAITING:
            oldest = next(iter(self._waiting_messages))
            self._read_message(self._waiting_messages.pop(oldest))
            remember(self._seen, oldest, None, _REMEMBERED_MESSAGES)

    def _read_message(self, message: Mapping[str, Any]) -> None:
        if not self.run:
            self.open_run(message, self.session)
            self._enter_project()
        self.move_to(as_time(message.get("timestamp")))
        match message.get("type"):
            case "user":
                self.ending.is_interrupted = self.ending.is_service_error = False
                self._read_prompt(message)
            case "gemini":
                self._read_reply(message)
            case "error":
                self.ending.is_service_error = True
                self.note(EventKind.LOG, "error", content_text(message.get("content")))
            case "info" | "warning" | "about" as kind:
                said = content_text(message.get("content"))
                self.ending.is_interrupted = self.ending.is_interrupted or said == "Request cancelled."
                self.note(EventKind.LOG, kind, said)
            case kind:
                self.skip("message", f"unknown message type {str(kind)[:40]!r}")

    def _enter_project(self) -> None:
        folder = self.origin.folder
        for _ in range(2):
            folder = folder.parent if folder is not None else None
            if folder is not None and (root := read_small_text(folder / _ROOT_FILE).strip()):
                self.enter_folder(root)
                return

    def _find_project(self, given: Mapping[str, Any]) -> None:
        """Take the project's folder from a path that a call names: the log has the hash of the folder."""
        for path in given.values():
            if isinstance(path, str) and path.startswith("/") and len(path) < _MAX_PATH:
                for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
                    if sha256(str(folder).encode("utf-8", "replace")).hexdigest() == self._project_hash:
                        self.enter_folder(str(folder))
                        return

    def _read_prompt(self, message: Mapping[str, Any]) -> None:
        """Take what the user asked, apart from what the client and hooks put around it."""
        content = message.get("content")
        parts = [content] if isinstance(content, str) else [text(part, "text") for part in objects(content)]
        shown = _HOOK_START.split(content_text(message.get("displayContent")), maxsplit=1)[0].strip()
        typed: list[str] = []
        behind: list[str] = []
        added: list[str] = []
        is_below = is_behind = False
        for part in parts:
            before, *rest = _HOOK_START.split(part, maxsplit=1)
            after = _HOOK_CONTEXT.sub("", part[len(before) :]).strip() if rest else ""
            is_below = is_below or before.strip() == _NAMED_FILES
            is_by_client = is_below or before.lstrip().startswith(_BY_CLIENT)
            (added if is_by_client else behind if is_behind else typed).append(before)
            added += (found[1] for found in _HOOK_CONTEXT.finditer(part))
            (added if is_by_client else behind).append(after)
            is_behind = is_behind or bool(rest)
        said, later = ("\n".join(filter(None, each)) for each in (typed, behind))
        self.message("system", "\n".join(filter(None, added)))
        # A command is shown as it was typed and sent as what it stands for. Clients before the log of lines
        # do not note what they showed: there the text of a repository's command looks like a typed one.
        is_command = shown.startswith("/") or said.lstrip().startswith(_RAN_COMMAND)
        is_result = any("functionResponse" in part for part in objects(content))
        is_typed = not (is_command or is_result or self._is_subagent) and bool(shown or self._is_of_lines)
        asked = shown or said
        self.message("user", asked, name="command" if is_command else "", is_typed=is_typed)
        if not shown:
            self.message("system" if asked.strip() else "user", later)

    def _read_reply(self, message: Mapping[str, Any]) -> None:
        self.use_model(text(message, "model"))
        tokens = object_at(message, "tokens")
        self.spent = add_usage(self.spent, read_usage(tokens, "input", "output thoughts", "cached"))
        self.message("assistant", content_text(message.get("content")))
        for call in objects(message.get("toolCalls")):
            given = dict(object_at(call, "args"))
            if folder := text(given, "dir_path", "directory") if call.get("name") == _SHELL else "":
                given["workdir"] = folder
            if not self.folder:
                self._find_project(given)
            logged = LoggedCall(text(call, "name"), given)
            if text(call, "status") in ("success", "error", "cancelled"):
                outcome = _outcome(call)
                self.ending.is_interrupted = bool({"rejected", "interrupted"} & outcome.extra.keys())
                self.call_with_result(logged, outcome)
            else:
                self.call("", logged)
            self.extend_span(as_time(call.get("timestamp")))


def _outcome(call: Mapping[str, Any]) -> CallOutcome:
    responses = [object_at(part, "functionResponse", "response") for part in objects(call.get("result"))]
    answers = (text(each, "output", "error") or content_text(each.get("content")) for each in responses)
    whole = "\n".join(filter(None, answers))
    said, _ = without_tag(whole, _HOOK_TAG)
    # What a program prints may hold the tag too, and then the end that the client wrote may be inside of it.
    is_certain = whole.count(f"<{_HOOK_TAG}>") <= 1
    said = said.strip().removeprefix("<untrusted_context>").removesuffix("</untrusted_context>").strip("\n")
    status = text(call, "status")
    if status == "cancelled":
        is_refused = _REFUSED.search(said[:200]) is not None
        outcome = CallOutcome(
            said, is_error=is_refused, extra={"rejected" if is_refused else "interrupted": True}
        )
    elif status == "error":
        outcome = read_outcome(said, is_error=True)
    else:
        outcome = _shell_outcome(said) if call.get("name") == _SHELL else CallOutcome(said)
        # It goes on after the answer, which tells nothing of how it ends.
        is_running = object_at(call, "args").get("is_background") is True or said.startswith(_IN_BACKGROUND)
        if is_running or not is_certain:
            outcome = CallOutcome(outcome.output, extra={"running": True})
    if child := text(call, "agentId"):
        outcome.extra["child"] = child
    return outcome


def _shell_outcome(said: str) -> CallOutcome:
    """Read what a command printed: the client names an exit code below it, unless it is zero."""
    lines = said.split("\n")
    named: dict[str, str] = {}
    while lines and (trailer := _TRAILER.fullmatch(lines[-1])) and trailer[1] not in named:
        named[trailer[1]] = trailer[2]
        lines.pop()
    code = named.get("Exit Code", "0")
    exit_code = int(code) if _EXIT_CODE.fullmatch(code) else None
    is_killed = not exit_code and "(none)" not in named.get("Signal", "(none)")
    output = "\n".join(lines).removeprefix("Output: ").removeprefix("(empty)")
    if output.startswith(_TIMED_OUT):
        return CallOutcome(output, is_error=True, extra={"timed_out": True})
    if output.startswith(_CANCELLED):
        return CallOutcome(output, extra={"interrupted": True})
    if is_killed:
        return CallOutcome(output, extra={"killed": True})
    return CallOutcome(output, exit_code, exit_code not in (None, 0))
