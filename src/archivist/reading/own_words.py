"""Tell what a user said from what a user pasted: a README is no wish of whoever shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Nobody types so much without a break.
_LONGEST_LINE = 1500
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})")
_QUOTED_LINE = re.compile(r"\s*>|\s{4}|\t|\s*\|.*\|")
_TAG = re.compile(r"\s*<(?P<name>[A-Za-z][\w:.-]*)[^>]*>")
# A document begins: whoever writes a wish gives it no heading.
_HEADING = re.compile(r"\s*#{1,6}\s|\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$|\s*<!")
_MATTER = (
    r"(?:readme|docs?|documentation|manual|page|website|article|blog|file|contents?|output|logs?|errors?"
    r"|traceback|stack ?trace|messages?|e-?mail|mail|ticket|issue|comments?|review|snippet|code|text|response"
    r"|answer|reply|prompt|transcript|diff|patch|config\w*|spec\w*|guide\w*|changelog|licen[cs]e|policy|thread"
    r"|post|report|results?|summary|notes?|instructions|conversation|session|plan)"
)
_ANNOUNCED = re.compile(
    r"\b(?:here(?:.s| is| are)|this is|these are|the following|below|past(?:e|ed|ing)|attached|copied"
    r"|it (?:says|prints|shows|reads)|says|said|wrote|writes|reads|according to|quot(?:e|ing)"
    rf"|i (?:got|found|received|see))\b.*?\b{_MATTER}\b[^:\n]*(?P<end>:|$)"
    rf"|\b{_MATTER}\b[^:\n]*?\b(?:says|said|reads|wrote|writes|shows|prints|below|follows?)\b[^:\n]*(?P<other>:|$)"
    rf"|^\s*(?:\S+\s+){{0,3}}{_MATTER}\s*(?P<bare>:)",
    re.IGNORECASE,
)
# What is to be worked on as a text, and what somebody else said: both behind a colon or at a line's end.
_WORKED_ON = re.compile(
    r"(?:^|[.,;!?]\s+|\b(?:please|you|to|and|then|me)\s+)"
    r"(?:summari[sz]e|translate|explain|review|proof-?read|re-?write|re-?word|rephrase|paraphrase|shorten|improve"
    r"|edit|correct|analy[sz]e|comment on|reply to|respond to|classify|convert|reformat)\b"
    r"(?:[^:\n]{0,200}:(?!//)"
    r"|(?:\s+[^\s.:]+){0,4}?\s+(?:this|these|that|the following|below)(?:\s+[^\s.:]+)?\s*[.:]?\s*$)"
    r"|(?<!\bi )(?<!\bwe )(?<!\byou )\b(?:says?|said|states?|stated|writes|wrote|claims?|claimed|told|tells"
    r"|recommends?|recommended|suggests|suggested|advises|advised|insists?|quotes?)\b[^:.!?\n]{0,60}:(?!//)"
    r"|\baccording to\b",
    re.IGNORECASE,
)
_SPOKEN_OF = re.compile(r"\"[^\"\n]{16,}\"|“[^”\n]{16,}”|«[^»\n]{16,}»")


def own_words(message: str) -> str:
    """Return what of a user's message is their own: no code, quotation, document or tool's output.

    What is announced as somebody else's text takes the rest of the message with it, since nothing says where
    it ends, unless it stands between marks.
    """
    kept: list[str] = []
    until: re.Pattern[str] | None = None
    lines = message.splitlines()
    for place, line in enumerate(lines):
        if until is not None:
            until = None if until.search(line) else until
            continue
        if _HEADING.match(line) or len(line) > _LONGEST_LINE:
            break
        if fence := _FENCE.match(line):
            until = re.compile(rf"\s*{re.escape(fence['mark'])}")
        elif tag := _TAG.match(line):
            closing = re.compile(rf"</{re.escape(tag['name'])}\s*>")
            until = None if closing.search(line) else closing
        elif announced := _ANNOUNCED.search(line) or _WORKED_ON.search(line):
            kept.append(line[: announced.start()])
            # Of a paste that has marks of its own it is known where it ends.
            if line[announced.end() :].strip() or not _is_enclosed(lines[place + 1 :]):
                break
        elif not _QUOTED_LINE.match(line):
            kept.append(line)
    return _SPOKEN_OF.sub(" ", "\n".join(kept)).strip()


def _is_enclosed(lines: Sequence[str]) -> bool:
    """Say whether what comes next stands between marks."""
    following = next(filter(str.strip, lines), "")
    return bool(_FENCE.match(following) or _TAG.match(following))
