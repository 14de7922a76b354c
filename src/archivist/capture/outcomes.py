"""Read what came back from a tool: the output itself, and the exit code that its frame tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from archivist.capture.json_stream import decode
from archivist.capture.values import as_float, as_integer, content_text, mapping, text

_EXIT_LINE = re.compile(r"\A(?:Error: )?Exit code:? (-?\d{1,10})(?:\n|\Z)")
_CODEX_FRAME = re.compile(
    r"\A(?:(?:Chunk ID: .*|Wall time: (?P<wall>[\d.]+) seconds|Original token count: \d+"
    r"|Total output lines: \d+"
    r"|Process exited with code (?P<exit>-?\d{1,10})|Exit code: (?P<code>-?\d{1,10})"
    r"|Process running with session ID .*)\n)+Output:(?:\n|\Z)"
)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,10})\s*</returncode>")
_OUTPUT_TAG = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)
_HEAD_AND_TAIL_TAGS = re.compile(
    r"<output_head>\n?(?P<head>.*?)\n?</output_head>(?P<between>.*?)<output_tail>\n?(?P<tail>.*?)\n?</output_tail>",
    re.DOTALL,
)
_EXCEPTION_TAG = re.compile(r"<exception>(.*?)</exception>\s*", re.DOTALL)
_ENDED_WITH = re.compile(
    r"\n?\[(?:The command (?:completed|finished)|Command (?:finished|completed))[^\]\n]*?"
    r"exit code:? (-?\d{1,10})[^\]\n]*\]"
)
_FOLDER_NOTES = re.compile(r"\n?\[(?:Current working directory|Python interpreter): [^\]\n]*\]")
_ERROR_TAGS = re.compile(r"</?tool_use_error>")
_TIMED_OUT = re.compile(
    r"\bcommand\b.{0,400}?\btimed out (?:after|and)\b|\A\s*EXECUTION TIMED OUT|command timed out after \d+"
    r"|was cancelled because it took more than \d+|\[The command (?:timed out|has no new output) after",
    re.IGNORECASE | re.DOTALL,
)
_TIMEOUT_WINDOW_CHARS = 1_000
_REFUSED_EDIT = re.compile(
    r"\A\s*(?:Your proposed edit has introduced|No replacement was performed|No match found|ERROR\b|Error:"
    r"|Invalid `|The path .{1,300}? does not exist|String to replace not found|apply_patch verification)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came back from a call."""

    output: str = ""
    exit_code: int | None = None
    is_error: bool = False
    duration_s: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


def read_outcome(
    content: str,
    *,
    exit_code: int | None = None,
    is_error: bool | None = None,
    duration_s: float | None = None,
    extra: dict[str, object] | None = None,
) -> CallOutcome:
    """Take the output out of whatever frame it came in. What the log states outside of it goes first.

    It is an error when the log says so, else when the exit code is not zero or the command timed out.
    """
    found = _strip_frame(content)
    code = exit_code if exit_code is not None else found.exit_code
    more = {**found.extra, **(extra or {})}
    if is_timeout(content) and (is_error or code != 0):
        more["timed_out"] = True
    is_failure = (
        is_error if is_error is not None else (code not in (None, 0) or "timed_out" in more or found.is_error)
    )
    return CallOutcome(
        output=found.output,
        exit_code=code,
        is_error=is_failure,
        duration_s=duration_s if duration_s is not None else found.duration_s,
        extra=more,
    )


def is_timeout(content: str) -> bool:
    """Tell whether the frame of an output says that the command ran out of time."""
    if len(content) <= 2 * _TIMEOUT_WINDOW_CHARS:
        return bool(_TIMED_OUT.search(content))
    ends = content[:_TIMEOUT_WINDOW_CHARS], content[-_TIMEOUT_WINDOW_CHARS:]
    return any(_TIMED_OUT.search(end) for end in ends)


def is_refused_edit(output: str) -> bool:
    """Tell whether an editor says that it changed nothing."""
    return bool(_REFUSED_EDIT.match(output))


def from_structured(content: object) -> CallOutcome | None:
    """Read an output given as an object, such as `{"output", "metadata": {"exit_code"}}`."""
    if isinstance(content, str) and content.startswith("{") and content.endswith("}"):
        try:
            content = decode(content.encode("utf-8", "replace"))
        except ValueError:
            return None
    given = mapping(content)
    if not ({"output", "stdout", "content", "error"} & given.keys()):
        return None
    inner = given.get("metadata", given)
    facts: Mapping[str, Any] = mapping(inner)
    passed = next((given[key] for key in ("passed", "success") if isinstance(given.get(key), bool)), None)
    output = content_text(given.get("output")) or content_text(given.get("content"))
    output = output or "\n".join(filter(None, (text(given.get("stdout")), text(given.get("stderr")))))
    return read_outcome(
        output or text(given.get("error")),
        exit_code=as_integer(facts.get("exit_code", given.get("exit_code"))),
        is_error=None if passed is None else not passed,
        duration_s=as_float(facts.get("duration_seconds")),
    )


def _strip_frame(content: str) -> CallOutcome:
    if content.startswith(("<returncode>", "<exception>", "<output>")):
        return _from_tags(content)
    if frame := _CODEX_FRAME.match(content):
        code = frame.group("exit") or frame.group("code")
        wall = frame.group("wall") or ""
        took = float(wall) if wall.replace(".", "", 1).isdigit() else None
        return CallOutcome(content[frame.end() :], int(code) if code else None, duration_s=took)
    if line := _EXIT_LINE.match(content):
        return CallOutcome(content[line.end() :], int(line.group(1)), is_error=int(line.group(1)) != 0)
    if "exit code" in content[-600:] and (
        ends := list(_ENDED_WITH.finditer(content, max(0, len(content) - 600)))
    ):
        output = _FOLDER_NOTES.sub("", content[: ends[0].start()] + content[ends[-1].end() :])
        return CallOutcome(output, int(ends[-1].group(1)))
    if "<tool_use_error>" in content[:40]:
        return CallOutcome(_ERROR_TAGS.sub("", content), is_error=True)
    return CallOutcome(content)


def _from_tags(content: str) -> CallOutcome:
    code = _RETURN_CODE.search(content[:4_000])
    outcome = CallOutcome(exit_code=int(code.group(1)) if code else None)
    if failure := _EXCEPTION_TAG.match(content):
        outcome = replace(outcome, is_error=True, extra={"exception": failure.group(1)[:500]})
    body = _OUTPUT_TAG.search(content)
    if body:
        return replace(outcome, output=body.group(1))
    ends = _HEAD_AND_TAIL_TAGS.search(content)
    if ends:
        return replace(
            outcome,
            output=ends.group("head") + "\n" + ends.group("between").strip() + "\n" + ends.group("tail"),
        )
    rest = content[code.end() :] if code else content
    return replace(outcome, output=rest.removeprefix("\n").removeprefix("<output>\n"))
