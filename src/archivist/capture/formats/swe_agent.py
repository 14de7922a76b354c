"""Read SWE-agent's `.traj`: one document with `trajectory`, `history` and `info`.

The steps come from `trajectory`; of `history`, which repeats them, only what stands before the first reply
is read: the system prompt, the demonstration and the task.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterator, Mapping
from typing import Any, BinaryIO

from archivist.capture.calls import LoggedCall, arguments_from, read_outcome
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
from archivist.capture.values import as_float, compact_json, content_text, count, mapping, text
from archivist.ids import derived_id
from archivist.records import Episode, Event, EventKind

# Numbers kept free for the opening messages, which stand behind the steps in the file.
_OPENING_MESSAGES = 16
_EDIT = re.compile(r"\Aedit(?:\s+(\d+:\d+))?\s*\n(.*?)\n?(?:end_of_edit)?\s*\Z", re.DOTALL)
_CREATE = re.compile(r"\Acreate\s+(['\"]?)([^\n]+?)\1\s*\Z")
_OPENED = re.compile(r"\[File: (\S+?)\s* \(\d+ lines total\)\]")
_COMMANDS = frozenset((
    "open", "goto", "scroll_up", "scroll_down", "find_file", "search_dir", "search_file", "submit",
    "set_cursors", "insert", "append", "str_replace_editor", "filemap", "exit_forfeit", "view_image",
))  # fmt: skip
_REPOSITORY_FOLDER = re.compile(r"\A/([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*)\Z")
_FAILED = re.compile(
    r"\A\s*(?:EXECUTION FAILED OR COMMAND MALFORMED|Your proposed edit has introduced|EXECUTION TIMED OUT)"
)


class SweAgent:
    """The adapter of SWE-agent's trajectories."""

    name = "swe-agent"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by the keys of the document and of its first step."""
        first = preview_log(head).document
        steps = first.get("trajectory")
        if isinstance(steps, list):
            return not steps or (isinstance(steps[0], dict) and {"action", "observation"} <= steps[0].keys())
        info = mapping(first.get("info"))
        return "history" in first and ("environment" in first or "exit_status" in info)

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the steps and the opening messages, then the run."""
        trajectory = _Trajectory(origin)
        for part in read_document(source, ("trajectory", "history")):
            if isinstance(part, SkippedRecord):
                yield part
            elif part.key == "trajectory" and isinstance(part.value, dict):
                yield from trajectory.step(part.value)
            elif part.key == "history" and isinstance(part.value, dict):
                yield from trajectory.read_opening(part.value)
            else:
                trajectory.facts[part.key] = part.value
        yield from trajectory.finish()


class _Trajectory:
    def __init__(self, origin: LogOrigin) -> None:
        self.facts: dict[str, Any] = {}
        self._origin = origin
        self._recorder: Recorder | None = None
        self._openings: list[Mapping[str, Any]] = []
        self._has_reply = False
        self._folder = ""
        self._open_file = ""

    def read_opening(self, item: Mapping[str, Any]) -> Iterator[Event]:
        """Take a message of the history; those before the first reply open the run."""
        self._has_reply = self._has_reply or item.get("role") == "assistant"
        if self._has_reply or len(self._openings) == _OPENING_MESSAGES:
            return
        self._openings.append(item)
        if self._recorder is not None:
            yield from self._emit_opening(self._recorder, len(self._openings) - 1)

    def step(self, step: Mapping[str, Any]) -> Iterator[Event]:
        """Take one step: what the agent said, what it did, and what came of it."""
        recorder = self._recorder
        if recorder is None:
            recorder = yield from self._start(
                compact_json([step.get(key) for key in ("action", "observation", "response")])
            )
        state = arguments_from(step.get("state"))
        self._folder = self._folder or text(state.get("working_dir"))
        action = text(step.get("action")).strip()
        observation = content_text(step.get("observation")).replace("\r\n", "\n")
        opened = _OPENED.search(observation)
        known = text(state.get("open_file"))
        if opened:
            self._open_file = opened.group(1)
        elif known and known != "n/a":
            self._open_file = known
        yield from recorder.message("assistant", text(step.get("thought")) or text(step.get("response")))
        if not action:
            yield from recorder.message("system", observation)
            return
        is_error = True if _FAILED.match(observation) else None
        outcome = read_outcome(
            observation, is_error=is_error, duration_s=as_float(step.get("execution_time"))
        )
        yield from recorder.call_with_result(_call(action, self._open_file), outcome)

    def finish(self) -> Iterator[Event | Episode | SkippedRecord]:
        recorder = self._recorder
        if recorder is None and self._origin.run:
            recorder = yield from self._start("")
        if recorder is None:
            # Without a step the run cannot be told from others of its task, and there is nothing to learn.
            yield SkippedRecord("trajectory", "the log ends before the first step")
            return
        info = mapping(self.facts.get("info"))
        replay = arguments_from(self.facts.get("replay_config"))
        agent = mapping(replay.get("agent"))
        recorder.use_model(text(mapping(agent.get("model")).get("name")))
        named = text(mapping(replay.get("problem_statement")).get("id")), text(agent.get("name"))
        instance = next(filter(None, map(instance_in, (*named, self._origin.path_name))), "")
        if instance:
            recorder.extra["instance"] = instance
        recorder.project = project_of_instance(instance) or _project_of(self._folder)
        stats = mapping(info.get("model_stats"))
        recorder.spent = UsageTotals(
            input_tokens=count(stats.get("tokens_sent")),
            output_tokens=count(stats.get("tokens_received")),
            cost_usd=as_float(stats.get("instance_cost")) or as_float(stats.get("total_cost")) or 0.0,
        )
        if count(stats.get("api_calls")):
            recorder.spent.extra["api_calls"] = count(stats.get("api_calls"))
        exit_status = text(info.get("exit_status"))
        recorder.stated = status_of_exit(exit_status, has_submission=bool(info.get("submission")))
        if exit_status:
            recorder.extra["exit_status"] = exit_status
            yield from recorder.note(EventKind.FINISH, exit_status, text(info.get("submission")))
        yield from recorder.finish()

    def _start(self, beginning: str) -> Generator[Event, None, Recorder]:
        """Open the run; its id comes from the first step because the document names none."""
        run = self._origin.run or derived_id("swe-agent", beginning)
        recorder = self._recorder = Recorder(run, self._origin, agent="swe-agent")
        recorder.next_seq = _OPENING_MESSAGES
        for place in range(len(self._openings)):
            yield from self._emit_opening(recorder, place)
        return recorder

    def _emit_opening(self, recorder: Recorder, place: int) -> Iterator[Event]:
        item = self._openings[place]
        following, recorder.next_seq = recorder.next_seq, place
        is_demonstration = item.get("is_demo") is True
        role = "user" if item.get("role") == "user" and not is_demonstration else "system"
        yield from recorder.message(
            role, content_text(item.get("content")), name="demonstration" if is_demonstration else ""
        )
        recorder.next_seq = following


def _call(action: str, open_file: str) -> LoggedCall:
    if edit := _EDIT.match(action):
        if open_file:
            return LoggedCall(
                "edit", {"path": open_file, "lines": edit.group(1) or "", "new_string": edit.group(2)}
            )
    elif create := _CREATE.match(action):
        return LoggedCall("create_file", {"path": create.group(2), "content": ""})
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


def _project_of(folder: str) -> str:
    """Return the project of a folder in which the agent writes slashes as two underscores."""
    match = _REPOSITORY_FOLDER.match(folder)
    if match and "__" not in match.group(2):
        return f"{match.group(1)}/{match.group(2)}"
    return project_of_folder(folder.replace("__", "/"))
