"""Read SWE-agent's `.traj`: one document with `trajectory`, `history` and `info`.

The steps come from `trajectory`; of `history`, which repeats them, only what stands before the first reply
is read: the system prompt, the demonstration and the task.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from archivist.capture.calls import LoggedCall, arguments_from, read_outcome
from archivist.capture.json_stream import Part, preview_log, read_document
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, instance_in, read_usage
from archivist.capture.values import as_float, content_text, count, object_at, text
from archivist.cold_start import lazy_pattern
from archivist.paths import project_of_folder

name = "swe-agent"
# Numbers kept free for the opening messages, which stand behind the steps in the file.
_OPENING_MESSAGES = 16
_EDIT = lazy_pattern(r"\Aedit(?:\s+(\d+:\d+))?\s*\n(.*)", re.DOTALL)
_CREATE = lazy_pattern(r"\Acreate\s++([^\n]++)\s*\Z")
_OPENED = lazy_pattern(r"\[File: (\S+?)\s* \(\d+ lines total\)\]")
_COMMANDS = frozenset((
    "open", "goto", "scroll_up", "scroll_down", "find_file", "search_dir", "search_file", "submit",
    "set_cursors", "insert", "append", "str_replace_editor", "filemap", "exit_forfeit", "view_image",
))  # fmt: skip
_REPOSITORY_FOLDER = lazy_pattern(r"\A/([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*)\Z", longest=300)
_FAILED = lazy_pattern(
    r"\A\s*(?:EXECUTION FAILED OR COMMAND MALFORMED|Your proposed edit has introduced|EXECUTION TIMED OUT)"
)


def recognises(head: bytes) -> bool:
    """Recognise the log by the keys of the document and of its first step."""
    first = preview_log(head).document
    steps = first.get("trajectory")
    if isinstance(steps, list):
        return not steps or (isinstance(steps[0], dict) and {"action", "observation"} <= steps[0].keys())
    info = object_at(first, "info")
    return "history" in first and ("environment" in first or "exit_status" in info)


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the steps and the opening messages, then the run."""
    return _Trajectory(origin).read(read_document(source, ("trajectory", "history")))


@dataclass(eq=False)
class _Trajectory(Recorder):
    agent: str = name
    next_seq: int = _OPENING_MESSAGES
    _facts: dict[str, Any] = field(default_factory=dict)
    _openings: list[Mapping[str, Any]] = field(default_factory=list)
    _has_reply: bool = False
    _project_folder: str = ""
    _open_file: str = ""

    def take(self, part: Part) -> None:
        if not isinstance(part.value, dict) or part.key not in ("trajectory", "history"):
            self._facts[part.key] = part.value
        elif part.key == "trajectory":
            self._read_step(part.value)
        else:
            # The messages of the history before the first reply open the run.
            self._has_reply = self._has_reply or part.value.get("role") == "assistant"
            if self._has_reply or len(self._openings) == _OPENING_MESSAGES:
                return
            self._openings.append(part.value)
            if self.run:
                self._record_opening(len(self._openings) - 1)

    def _read_step(self, step: Mapping[str, Any]) -> None:
        """Take one step: what the agent said, what it did, and what came of it."""
        if not self.run:
            self._start([step.get(key) for key in ("action", "observation", "response")])
        state = arguments_from(step.get("state"))
        self._project_folder = self._project_folder or text(state, "working_dir")
        action = text(step, "action").strip()
        observation = content_text(step.get("observation")).replace("\r\n", "\n")
        opened = _OPENED.search(observation)
        known = text(state, "open_file")
        if opened:
            self._open_file = opened.group(1)
        elif known and known != "n/a":
            self._open_file = known
        self.message("assistant", text(step, "thought", "response"))
        if not action:
            self.message("system", observation)
            return
        is_error = True if _FAILED.match(observation) else None
        outcome = read_outcome(observation, is_error=is_error, duration_s=step.get("execution_time"))
        self.call_with_result(_call(action, self._open_file), outcome)

    def finish(self) -> None:
        if not self.run and self.origin.run:
            self._start(None)
        if not self.run:
            # Without a step the run cannot be told from others of its task, and there is nothing to learn.
            self.skip("trajectory", "the log ends before the first step")
            return
        replay = arguments_from(self._facts.get("replay_config"))
        agent = object_at(replay, "agent")
        self.use_model(text(object_at(agent, "model"), "name"))
        task_id = text(object_at(replay, "problem_statement"), "id")
        instance = instance_in(task_id) or instance_in(text(agent, "name"))
        # The agent writes the slashes of a repository's folder as two underscores.
        folder = _REPOSITORY_FOLDER.match(self._project_folder)
        if folder and "__" not in folder[2]:
            self.project = f"{folder[1]}/{folder[2]}"
        else:
            self.project = project_of_folder(self._project_folder.replace("__", "/"))
        self.use_instance(instance)
        info = object_at(self._facts, "info")
        stats = object_at(info, "model_stats")
        cost = "instance_cost" if as_float(stats.get("instance_cost")) else "total_cost"
        self.spent = read_usage(stats, "tokens_sent", "tokens_received", cost=cost)
        if calls := count(stats.get("api_calls")):
            self.spent.extra["api_calls"] = calls
        self.exit_with(text(info, "exit_status"), text(info, "submission"))
        super().finish()

    def _start(self, beginning: object) -> None:
        """Open the run; its id comes from the first step because the document names none."""
        self.open_run(beginning)
        for place in range(len(self._openings)):
            self._record_opening(place)

    def _record_opening(self, place: int) -> None:
        item = self._openings[place]
        following, self.next_seq = self.next_seq, place
        is_demonstration = item.get("is_demo") is True
        role = "user" if item.get("role") == "user" and not is_demonstration else "system"
        name = "demonstration" if is_demonstration else ""
        self.message(role, content_text(item.get("content")), name=name)
        self.next_seq = following


def _call(action: str, open_file: str) -> LoggedCall:
    if edit := _EDIT.match(action):
        if open_file:
            written = edit.group(2).rstrip()
            if written.endswith("end_of_edit"):
                written = written.removesuffix("end_of_edit").removesuffix("\n")
            return LoggedCall(
                "edit", {"path": open_file, "lines": edit.group(1) or "", "new_string": written}
            )
    elif create := _CREATE.match(action):
        path = create.group(1).rstrip()
        is_quoted = len(path) > 2 and path[0] == path[-1] and path[0] in "'\""
        return LoggedCall("create_file", {"path": path[1:-1] if is_quoted else path, "content": ""})
    word = action.split(None, 1)[0]
    if word == "str_replace_editor":
        return LoggedCall(word, _editor_arguments(action))
    return LoggedCall(word if word in _COMMANDS else "bash", {"command": action})


def _editor_arguments(action: str) -> dict[str, Any]:
    """Read `str_replace_editor COMMAND PATH --old_str … --new_str …`."""
    try:
        words = shlex.split(action)[1:]
    except ValueError:
        return {"command": action}
    if len(words) < 2:
        return {"command": action}
    found: dict[str, Any] = {"command": words[0], "path": words[1]}
    for option, value in zip(words[2::2], words[3::2], strict=False):
        found[option.lstrip("-")] = value
    return found
