"""Read the scripts that Codex writes to call its tools, and what comes back.

A script is JavaScript such as `const r = await tools.exec_command({cmd: "make test"}); text(r.output)`.
Its calls are read as far as their arguments are literals or names of literals; nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from archivist.capture.calls import CallOutcome, LoggedCall, from_structured, object_in
from archivist.capture.values import as_integer, remember, seconds_in
from archivist.cold_start import lazy_pattern

_CALL = lazy_pattern(r"\btools\.(\w{1,80})\(")
_CONSTANT = lazy_pattern(
    r"\b(?:const|let|var)\s{1,4}([A-Za-z_$][\w$]{0,60})\s{0,4}=\s{0,4}(?=[\"'`\[{]|String\.raw)"
)
_NAME = lazy_pattern(r"[A-Za-z_$][\w$]{0,60}")
_NUMBER = lazy_pattern(r"-?\d{1,18}(?:\.\d{1,18})?")
_ESCAPE = lazy_pattern(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]{1,6}\}|\r\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
_HOLE = lazy_pattern(r"\$\{\s{0,4}([A-Za-z_$][\w$]{0,60})\s{0,4}\}")
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}
# What stands before a name that is defined, and before one that is only printed.
_DEFINING = ("const", "let", "var")
_PRINTING = ("text(", "console.log(")
_MAX_DEPTH = 6
_MAX_CALLS = 20
_MAX_CONSTANTS = 50
_MAX_COPIED = 1_000_000
_MAX_REMEMBERED = 256
_SESSION = lazy_pattern(r"^Process running with session ID (\d{1,18})$", re.MULTILINE)
_PRINTED_SESSION = lazy_pattern(r"\W{0,2}session(?:[_ ]?id)?\W{1,3}(\d{1,18})\W{0,2}", re.IGNORECASE)
_FRAME_CHARS = 400
_HEADER = lazy_pattern(
    r"\AScript (?P<state>completed|failed|terminated|running with cell ID (?P<cell>[\w-]{1,40}))\n"
    r"(?:Wall time (?P<wall>[\d.]{1,20}) seconds\n)?(?:Output:\n?)?"
)
_PRINTED_CODE = lazy_pattern(r"\A(?:exit|exit[_ ]?code)\W{1,3}(-?\d{1,5})(?=\s|\Z)", re.IGNORECASE)


class _UnreadableError(Exception):
    """An argument is no literal."""


@dataclass
class _Literals:
    """The literals of a script, read from a place on."""

    script: str
    constants: dict[str, Any] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)
    _sizes: dict[str, int] = field(default_factory=dict)
    _copied: int = 0

    def define(self, name: str, at: int) -> int:
        """Read the literal that a name stands for; return the place behind it."""
        before = self._copied
        self.constants[name], end = self.value(at)
        self._sizes[name] = end - at + self._copied - before
        self.spans.append((at, end))
        return end

    def _copy_of(self, name: str) -> Any:
        """Return the value of a name. Names that double each other must not fill the memory."""
        self._copied += self._sizes.get(name, 0)
        if name not in self.constants or self._copied > _MAX_COPIED:
            raise _UnreadableError
        return self.constants[name]

    def value(self, at: int, depth: int = _MAX_DEPTH) -> tuple[Any, int]:
        """Return the value that begins here and the place behind it."""
        found, at = self._operand(self._skip(at), depth)
        while self.script.startswith("+", at := self._skip(at)) and isinstance(found, str):
            more, at = self._operand(self._skip(at + 1), depth)
            found += str(more)
        return found, at

    def _skip(self, at: int) -> int:
        """Return the place behind spaces and comments."""
        script = self.script
        while at < len(script):
            if script[at].isspace():
                at += 1
            elif script.startswith("//", at):
                at = script.find("\n", at) + 1 or len(script)
            elif script.startswith("/*", at):
                at = script.find("*/", at) + 2
                if at == 1:
                    raise _UnreadableError
            else:
                break
        return at

    def _operand(self, at: int, depth: int) -> tuple[Any, int]:
        script, first = self.script, self.script[at : at + 1]
        if first and first in "\"'`":
            return self._string(at, is_raw=False)
        if script.startswith("String.raw`", at):
            return self._string(at + len("String.raw"), is_raw=True)
        if first == "{" and depth:
            return self._object(at + 1, depth - 1)
        if first == "[" and depth:
            return self._list(at + 1, depth - 1)
        if number := _NUMBER.match(script, at):
            return int(number.group()) if number.group().isdigit() else 0, number.end()
        word = _NAME.match(script, at)
        if word is None:
            raise _UnreadableError
        known = word.group()
        return _WORDS[known] if known in _WORDS else self._copy_of(known), word.end()

    def _string(self, at: int, *, is_raw: bool) -> tuple[str, int]:
        quote, start = self.script[at], at + 1
        end = self.script.find(quote, start)
        while end >= 0 and _is_escaped(self.script, start, end):
            end = self.script.find(quote, end + 1)
        if end < 0:
            raise _UnreadableError
        inner = self.script[start:end]
        if quote == "`":
            inner = _HOLE.sub(self._fill, inner)
        return inner if is_raw else _ESCAPE.sub(_unescape, inner), end + 1

    def _fill(self, hole: re.Match[str]) -> str:
        return str(self._copy_of(hole.group(1))) if hole.group(1) in self.constants else hole.group()

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        while not self.script.startswith("}", at := self._skip(at)):
            if self.script[at : at + 1] in ("'", '"'):
                key, at = self._string(at, is_raw=False)
            elif word := _NAME.match(self.script, at):
                key, at = word.group(), word.end()
            else:
                raise _UnreadableError
            at = self._skip(at)
            if self.script.startswith(":", at):
                made[key], at = self.value(at + 1, depth)
            else:
                made[key] = self._copy_of(key)
            at = self._pass_comma(at, "}")
        return made, at + 1

    def _list(self, at: int, depth: int) -> tuple[Any, int]:
        made: list[Any] = []
        while not self.script.startswith("]", at := self._skip(at)):
            item, at = self.value(at, depth)
            made.append(item)
            at = self._pass_comma(at, "]")
        if self.script.startswith(".join(", at + 1):
            joint, at = self.value(at + 1 + len(".join("), depth)
            return str(joint).join(map(str, made)), self._skip(at) + 1
        return made, at + 1

    def _pass_comma(self, at: int, end: str) -> int:
        at = self._skip(at)
        if self.script.startswith(",", at):
            return at + 1
        if not self.script.startswith(end, at):
            raise _UnreadableError
        return at


def _is_escaped(script: str, start: int, at: int) -> bool:
    """Say whether an odd number of backslashes stands before a character of a string."""
    first = at
    while first > start and script[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    if len(code) == 1 or code == "\r\n":
        return _ESCAPED.get(code, code)
    point = int(code.strip("ux{}"), 16)
    return chr(point) if point < 0x110000 else "\ufffd"


def calls_in_script(script: str) -> list[LoggedCall]:
    """Return the tool calls of a script, its commands as one; nothing when one of them cannot be read.

    A name stands for its literal only where nothing else in the script can change what it holds.
    """
    literals = _Literals(script)
    read_to = 0
    for constant in list(_CONSTANT.finditer(script))[:_MAX_CONSTANTS]:
        # What stands inside a literal is no code.
        if constant.start() >= read_to:
            with suppress(_UnreadableError):
                read_to = literals.define(constant.group(1), constant.end())
    calls: list[LoggedCall] = []
    commands: list[Mapping[str, Any]] = []
    for opening in list(_CALL.finditer(script))[:_MAX_CALLS]:
        if any(start <= opening.start() < end for start, end in literals.spans):
            continue
        try:
            given, end = literals.value(opening.end())
        except _UnreadableError:
            return []
        literals.spans.append((opening.end(), end))
        arguments = given if isinstance(given, dict) else {"input": given}
        if opening.group(1) == "exec_command" and isinstance(arguments.get("cmd"), str):
            commands.append(arguments)
        else:
            calls.append(LoggedCall(opening.group(1), arguments))
    if any(_is_changed(name, literals) for name in literals.constants):
        return []
    if commands:
        line = "\n".join(command["cmd"] for command in commands)
        calls.append(LoggedCall("exec_command", {**commands[0], "cmd": line}))
    return calls


def _is_changed(name: str, literals: _Literals) -> bool:
    """Say whether the code, apart from its literals, does more with a name than define and print it."""
    script = literals.script
    uses = re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", script)
    for use in uses:
        is_read = any(start <= use.start() < end for start, end in literals.spans)
        before, after = script[: use.start()].rstrip(), script[use.end() :].lstrip()[:2]
        is_defined = before.endswith(_DEFINING) and after[:1] == "=" and after != "=="
        is_printed = before.endswith(_PRINTING) and after[:1] in (")", "+", ",")
        if not (is_read or is_defined or is_printed):
            return True
    return False


def script_outcome(texts: Sequence[str]) -> CallOutcome | None:
    """Read what a script printed, each text by itself; None when this is no script's output."""
    header = _HEADER.match(texts[0]) if texts else None
    if header is None:
        return None
    codes: list[int] = []
    printed: list[str] = []
    for said in (texts[0][header.end() :], *texts[1:]):
        facts = object_in(said)
        if (code := as_integer(facts.get("exit_code"))) is not None:
            codes.append(code)
        elif found := _PRINTED_CODE.match(said):
            codes.append(int(found.group(1)))
        inner = from_structured(said) if "output" in facts else None
        is_fact_sheet = inner is None and "wall_time_seconds" in facts
        printed.append("" if is_fact_sheet else inner.output if inner else said)
    exit_code = next((code for code in codes if code), 0 if codes else None)
    is_failed = header.group("state") in ("failed", "terminated")
    output = "\n".join(filter(None, printed))
    took = seconds_in(header.group("wall") or "")
    return CallOutcome(output, exit_code, is_failed or exit_code not in (None, 0), took)


@dataclass
class OngoingCalls:
    """Calls that returned before their command had ended, and the later calls that wait for it."""

    _asked: dict[str, LoggedCall] = field(default_factory=dict)
    # By the name of the script's cell or the command's session.
    _running: dict[str, LoggedCall] = field(default_factory=dict)

    def ask(self, call_id: str, call: LoggedCall) -> None:
        """Remember a call until its result comes."""
        remember(self._asked, call_id, call, _MAX_REMEMBERED)

    def answer(self, call_id: str, texts: Sequence[str], outcome: CallOutcome) -> LoggedCall | None:
        """Return the command that a call only waited for, when this result is the end of it.

        A result that comes while the command still runs is marked.
        """
        call = self._asked.pop(call_id, None)
        if call is None:
            return None
        awaited = self._command_of(call)
        running = _running_in(texts) if outcome.exit_code is None else ""
        if running:
            outcome.extra["running"] = True
            remember(self._running, running, awaited or call, _MAX_REMEMBERED)
        is_over = outcome.exit_code is not None or (call.tool == "wait" and not running)
        return awaited if is_over else None

    def _command_of(self, call: LoggedCall) -> LoggedCall | None:
        given = call.arguments
        if call.tool == "wait":
            found = self._running.get(f"cell {given.get('cell_id')}")
            return self._command_of(found) or found if found is not None and found.tool != "wait" else None
        is_poll = call.tool == "write_stdin" and not given.get("chars")
        session = as_integer(given.get("session_id")) if is_poll else None
        return self._running.get(f"session {session}")


def _running_in(texts: Sequence[str]) -> str:
    """Return the name of what still runs after a call; nothing when all has ended."""
    header = _HEADER.match(texts[0]) if texts else None
    if header is not None and header.group("cell"):
        return f"cell {header.group('cell')}"
    for said in texts:
        facts = object_in(said)
        if (session := as_integer(facts.get("session_id"))) is not None and "exit_code" not in facts:
            return f"session {session}"
        if found := _SESSION.search(said[:_FRAME_CHARS]) or _PRINTED_SESSION.fullmatch(said):
            return f"session {found.group(1)}"
    return ""
