"""Read the events that our own hooks kept of a client whose log does not say what tools answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, read_outcome
from archivist.capture.json_stream import LogLine, preview_log, read_lines
from archivist.capture.recorder import LogItem, LogOrigin, Recorder
from archivist.capture.values import as_time, text
from archivist.records import EpisodeStatus

name = "hooks"


def recognises(head: bytes) -> bool:
    """Recognise the log by lines that name a client's hook and its moment."""
    return any({"hook", "moment", "session"} <= value.keys() for value in preview_log(head).objects[:10])


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the session's events, then its subagents and itself."""
    return _Session(origin).read(read_lines(source))


@dataclass(eq=False)
class _Session(Recorder):
    _children: dict[str, Recorder] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _last_prompt: str = ""

    def take(self, line: LogLine) -> None:
        value = line.value
        moment = text(value, "moment")
        if not moment:
            self.skip(f"line {line.number}", "no hook's event")
            return
        self.agent = self.agent or text(value, "hook")
        self.session = self.session or text(value, "session")
        self.open_run(value, self.session)
        run = self._run_of(text(value, "agent"))
        run.move_to(as_time(value.get("time")))
        run.use_model(text(value, "model"))
        run.enter_folder(text(value, "cwd"))
        if moment == "note-prompt":
            prompt = text(value, "prompt")
            # Hooks of the project and of the user both tell the same.
            if prompt != self._last_prompt:
                run.stated = None
                if run is self:
                    run.typed_message(prompt)
                else:
                    run.message("user", prompt)
            self._last_prompt = prompt
        elif moment in ("note-tool", "note-failure", "tool-failure"):
            self._read_call(run, value)
        elif moment in ("stop", "session-end"):
            run.ending.is_interrupted = value.get("interrupted") is True
            run.stated = run.stated or (None if run.ending.is_interrupted else EpisodeStatus.SUCCESS)

    def finish(self) -> None:
        for child in self._children.values():
            child.finish()
        super().finish()

    def _run_of(self, agent: str) -> Recorder:
        if not agent:
            return self
        if agent not in self._children:
            child = Recorder(
                self.origin, run=f"{self.run}.{agent}", agent=self.agent, parent=self.run, items=self.items
            )
            child.session, child.project = self.session, self.project
            self._children[agent] = child
        return self._children[agent]

    def _read_call(self, run: Recorder, value: Mapping[str, Any]) -> None:
        call_id, self._last_prompt = text(value, "id"), ""
        if call_id and call_id in self._seen:
            return
        self._seen.add(call_id)
        folder = text(value, "shell_cwd")
        given = {**({"cwd": folder} if folder else {}), **arguments_from(value.get("input"))}
        output, error = text(value, "output"), text(value, "error")
        is_failed = text(value, "moment") == "note-failure" or bool(error)
        if value.get("interrupted") is True:
            outcome = CallOutcome(error or output, extra={"interrupted": True})
        else:
            exit_code = value.get("exit_code")
            outcome = read_outcome(output or error, exit_code=exit_code, is_error=is_failed or None)
        run.call_with_result(LoggedCall(text(value, "tool"), given), outcome)
