"""Tell what a user said from what a user pasted: a README is no wish of whoever shows it."""

from __future__ import annotations

import re

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
_SPOKEN_OF = re.compile(r"\"[^\"\n]{16,}\"|“[^”\n]{16,}”|«[^»\n]{16,}»")


def own_words(message: str) -> str:
    """Return what of a user's message is their own: no code, quotation, document or tool's output.

    What is announced as somebody else's text takes the rest of the message with it, since nothing says where
    it ends.
    """
    kept: list[str] = []
    until: re.Pattern[str] | None = None
    for line in message.splitlines():
        if until is not None:
            until = None if until.search(line) else until
            continue
        if _HEADING.match(line):
            break
        if fence := _FENCE.match(line):
            until = re.compile(rf"\s*{re.escape(fence['mark'])}")
        elif tag := _TAG.match(line):
            closing = re.compile(rf"</{re.escape(tag['name'])}\s*>")
            until = None if closing.search(line) else closing
        elif announced := _ANNOUNCED.search(line):
            kept.append(line[: announced.start()])
            break
        elif not _QUOTED_LINE.match(line):
            kept.append(line)
    return _SPOKEN_OF.sub(" ", "\n".join(kept)).strip()
