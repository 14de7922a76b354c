"""Say which calls of a session failed, of what kind each failure is.

A kind is the tool, the program and subcommand of the failing step, and the class of the message. It is read
from the events alone and shares no rule with `archivist.reading`: the product is not measured by its keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from archivist.records import Event

Kind = tuple[str, str, str]
SHELL = "shell"
_SHELL_TOOL = re.compile(r"bash|shell|exec|terminal|command", re.IGNORECASE)
_REFUSED = re.compile(
    r"user (?:doesn't|does not) want|(?:rejected|declined|denied|cancell?ed) by (?:the )?user|was rejected"
    r"|user (?:rejected|declined|denied)|request interrupted|sibling tool call|parallel tool call",
    re.IGNORECASE,
)
_INTERRUPTED = (130, 143)
# Their exit status is an answer, unless they print an error.
_QUIET = re.compile(r"[ef]?grep|rg|ag|diff|cmp|test|\[\[?|which|command|type|p(?:grep|kill)|lsof|find")
FILTER = re.compile(r"cat|head|tail|grep|rg|sed|awk|wc|sort|uniq|jq|tee|xargs|cut|tr|less|column")
NO_WORK = re.compile(
    r"cd|export|set|source|\.|echo|printf|sleep|true|false|for|while|if|then|else|do(?:ne)?|fi|exit"
)
_PREFIX = re.compile(r"sudo|env|time|nohup|timeout|do|then|[({!]|\d+|\w+=.*")
_HAS_SUBCOMMANDS = re.compile(
    r"git|npm|pnpm|yarn|bunx?|npx|cargo|gh|go|docker|kubectl|uvx?|pip|poetry|make|just|mise|rtk"
)
_TWO_DEEP = re.compile(r"run|pr|issue|exec|compose|repo|workflow|release|dlx|stash|worktree|x|tool")
# Best first: a code, an exception's class, a phrase.
_CLASSES = (
    re.compile(r"\b(TS\d{4,5}|SC\d{4}|E\d{4}|ERR_\w+|E(?:NOENT|ISDIR|NOTDIR|ACCES|EXIST|PERM|ADDRINUSE))\b"),
    re.compile(r"^\W*(?:E\s+|error:?\s+|Uncaught\s+)?((?:\w+\.)*[A-Z]\w*(?:Error|Exception))\b"),
    re.compile(
        r"(command not found|no such (?:file|command)|permission denied|timed out|panicked at"
        r"|un(?:known|recogni[sz]ed) (?:sub)?command"
        r"|(?:un(?:known|expected|recogni[sz]ed)|illegal|invalid) (?:option|argument|flag))",
        re.IGNORECASE,
    ),
)
_TELLING = re.compile(
    r"error|fail|fatal|cannot|can't|could not|not found|unable|denied|invalid|unknown", re.IGNORECASE
)
_MISSING_FILE = ("no such file", "enoent")
# The script that a runner repeats, a test that passes, a warning.
_NOT_TELLING = re.compile(
    r"^(?:[$>] |\W*(?:✓|✔|√|\(pass\)|ok\b|PASS\b|[\d ]+[│|]|warning|\[\w+\] warn))", re.IGNORECASE
)
_VARIABLE = re.compile(
    r"https?://\S+|'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S+|\b[0-9a-f]{7,}\b|\d+\w*|[^\w\s]|_", re.IGNORECASE
)


class Failure(NamedTuple):
    """A failing call: its kind, the failing step, and the line that tells it best."""

    kind: Kind
    command: str
    line: str


def steps_of(event: Event) -> list[str]:
    """Return the steps of a shell call; none of another call."""
    text = event.target if event.text.startswith("{") else event.text
    return split_steps(text) if _SHELL_TOOL.search(event.tool) else []


def split_steps(text: str) -> list[str]:
    """Return the steps of a command line, quoted texts, here-documents and redirections left out."""
    text = re.sub(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\s*\1\b", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", "…", text)
    text = re.sub(r"\d?>>?\s*&?\S+", "", text)
    return [step for part in re.split(r"&&|\|\|?|;|\n", text) if (step := " ".join(part.split()))]


def head_of(step: str) -> str:
    """Return the program of a step, with its subcommand where it has one."""
    words = step.split()
    while words and _PREFIX.fullmatch(words[0]):
        words.pop(0)
    program = words[0].strip("({").rpartition("/")[2] if words else ""
    if re.fullmatch(r"python[\d.]*", program):
        return f"python -m {words[2]}" if words[1:2] == ["-m"] and len(words) > 2 else "python"
    if not _HAS_SUBCOMMANDS.fullmatch(program):
        return program
    names = [word for word in words[1:] if re.fullmatch(r"[a-z][\w:.-]*", word)]
    return " ".join([program, *names[: 2 if names and _TWO_DEEP.fullmatch(names[0]) else 1]])


def has_failed(event: Event) -> bool:
    """Say whether a call failed by its exit status or the log's mark, and not by the user's word."""
    if not event.tool or not (event.exit_code or (event.exit_code is None and event.is_error)):
        return False
    if event.exit_code in _INTERRUPTED or (event.exit_code is None and _REFUSED.search(event.output[:400])):
        return False
    steps = steps_of(event)
    last = head_of(steps[-1]) if steps else ""
    if event.exit_code in (1, 2) and _QUIET.fullmatch(last):
        return re.search(rf"^(?:{re.escape(last)}|zsh|bash|sh):", event.output, re.MULTILINE) is not None
    return True


def read_failure(event: Event) -> Failure | None:
    """Return how a call failed; None for one that did not."""
    if not has_failed(event):
        return None
    steps = [step for step in steps_of(event) if not NO_WORK.fullmatch(head_of(step))] or steps_of(event)
    lines = [line.strip() for line in event.output.splitlines() if line.strip()]
    blamed = [
        step for step in steps if any(line.startswith(head_of(step).split(" ")[0] + ":") for line in lines)
    ]
    working = [step for step in steps if not FILTER.fullmatch(head_of(step))]
    command = (blamed or working or steps or [""])[-1]
    line, message = _classify([line for line in lines if not _NOT_TELLING.match(line)])
    if not message:
        line = lines[0] if lines else ""
        message = "" if steps else _normalise(line)
        message = message or f"exit {event.exit_code}"
    return Failure((SHELL if steps else event.tool.lower(), head_of(command), message), command, line)


def _classify(lines: Sequence[str]) -> tuple[str, str]:
    for pattern in _CLASSES:
        for line in lines:
            if found := pattern.search(line):
                name, rest = found[1].lower(), line[: found.start(1)] + line[found.end(1) :]
                if name in _MISSING_FILE:
                    # Another file that is missing is another failure.
                    rest = re.sub(r"[^\s'\"`]*/(?=[^\s/])|['\"`]", "", rest)
                return line, f"{name}: {_normalise(rest)}"
    line = next((line for line in lines if _TELLING.search(line)), "")
    return line, _normalise(line)


def _normalise(line: str) -> str:
    words = [word for word in _VARIABLE.sub(" ", line).lower().split() if len(word) > 1]
    return " ".join(word.removesuffix("s") if len(word) > 4 else word for word in words[:8])
