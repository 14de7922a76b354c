"""What the user corrects or wishes for good, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.lessons.candidate import Candidate
from archivist.reading.signatures import message_words
from archivist.reading.wording import clip_words, format_rule, tags
from archivist.records import LessonType, Severity
from archivist.reflect.miners.material import Material

# What the user says outweighs what is inferred from failures, whatever the counts.
_STANDING_IMPORTANCE = 0.9
_CORRECTION_IMPORTANCE = 0.75
_LONGEST_MESSAGE = 1500
_LONGEST_WISH = 170
_SHORTEST_WISH = 12
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+(?=don't|do not|never|always)", re.IGNORECASE)
# "It always fails" and "never returns None" are statements; "always run ruff" is a wish.
_IMPERATIVE = (
    r"(?:always|never)\s+(?!(?:get|got|see|saw|had|have|ran|was|were|been|is|are|hit|been|happen|work|fail)\b)"
    r"(?!\w*[^\Wsu]s\b|\w{3,}ed\b)"
)
_STANDING = re.compile(
    rf"(?:^|[,;:] |\b(?:please|and|but|also|should|must|to|you|we|i|so|then) ){_IMPERATIVE}"
    r"|\b(?:from now on|in (?:the )?future|going forward|every time you|by default|as a rule|whenever)\b"
    r"|^(?:i|we) (?:prefer|want you to|like|don't want)\b|^(?:please )?prefer\b"
    r"|^(?:please )?remember (?:to|that)\b",
    re.IGNORECASE,
)
# A task has its own always and never; a wish that comes with it must say that it is for later too.
_STANDING_IN_TASK = re.compile(
    r"^(?:please |also |and |note: |important: )*(?:"
    r"(?:from now on|going forward|in (?:the )?future|as a rule|for all (?:future|later) \w+)[,:]? "
    r"(?:please |you (?:should|must) |i want you to )?"
    r"(?:always|never|use|prefer|run|write|only|stop|avoid|keep|make sure|do not|don't|put|name|commit|format"
    r"|answer)\b"
    r"|in this (?:repo|repository|project|codebase|workspace)[,:]? (?:please |you (?:should|must) |we )?"
    rf"{_IMPERATIVE}"
    r"|(?<=please )remember\b|remember[,:]? (?:to |that (?:you |we )?(?:should |must )?)?(?:always|never)\b)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:no|nope|wrong|stop|not (?:that|like that)|actually|please)?[,.!: -]*(?:please )?"
    r"(?:(?:don't|do not|stop|avoid) (?:use|using|run|running|add|adding|write|writing|create|creating"
    r"|commit|committing|push|pushing|touch|edit|mock|mocking|skip|install|put|leave|call)\b"
    r"|(?:we|you should|you must|you need to) use\b|use \S.* (?:instead|not|rather than)\b"
    r"|use \S+ (?:instead|for)\b)",
    re.IGNORECASE,
)
_AFTER_NO = re.compile(r"^(?:no|nope|wrong)[,.! ]+.*\b(?:use|run|should|must|instead)\b", re.IGNORECASE)
# Text that a harness, not a person, put into the user's turn.
_MACHINE = re.compile(
    r"^\s*[<{\[$]|^(?:caveat|this session is being continued|error|traceback|exit code)\b", re.IGNORECASE
)
_TEMPORARY = re.compile(r"\b(?:for now|this time|yet|today|right now|just now|again)\b", re.IGNORECASE)

# A longer line was pasted: nobody types that much without a break.
_LONGEST_TYPED_LINE = 1500
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})")
_QUOTED_LINE = re.compile(r"\s*>|\s{4}|\t|\s*\|.*\|")
_TAG = re.compile(r"\s*<(?P<name>[A-Za-z][\w:.-]*)[^>]*>")
# A pasted document begins here: nobody gives a wish a heading.
_HEADING = re.compile(r"\s*#{1,6}\s|\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$|\s*<!")
_DOCUMENT = (
    r"(?:readme|docs?|documentation|manual|page|website|article|blog|file|contents?|output|logs?|errors?"
    r"|traceback|stack ?trace|messages?|e-?mail|mail|ticket|issue|comments?|review|snippet|code|text|response"
    r"|answer|reply|prompt|transcript|diff|patch|config\w*|spec\w*|guide\w*|changelog|licen[cs]e|policy|thread"
    r"|post|report|results?|summary|notes?|instructions|conversation|session|plan)"
)
_ANNOUNCED = re.compile(
    r"\b(?:here(?:.s| is| are)|this is|these are|the following|below|past(?:e|ed|ing)|attached|copied"
    r"|it (?:says|prints|shows|reads)|says|said|wrote|writes|reads|according to|quot(?:e|ing)"
    rf"|i (?:got|found|received|see))\b.*?\b{_DOCUMENT}\b[^:\n]*(?P<end>:|$)"
    rf"|\b{_DOCUMENT}\b[^:\n]*?\b(?:says|said|reads|wrote|writes|shows|prints|below|follows?)\b[^:\n]*(?P<other>:|$)"
    rf"|^\s*(?:\S+\s+){{0,3}}{_DOCUMENT}\s*(?P<bare>:)",
    re.IGNORECASE,
)
# A text to work on, and what somebody else said: both come after a colon or at the end of a line.
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
_LONG_QUOTATION = re.compile(r"\"[^\"\n]{16,}\"|“[^”\n]{16,}”|«[^»\n]{16,}»")


def mine_wishes(material: Material) -> list[Candidate]:
    """Keep standing wishes, and corrections that the user made after the task itself."""
    found: dict[str, Candidate] = {}
    # The task belongs to the first part of a run; a later part begins with what was said later.
    has_task = not material.reading.episode.is_part
    for place, event in enumerate(material.reading.said):
        for sentence, is_standing in find_wishes(event.text, is_task=has_task and not place):
            opening = r"^(?:no|nope|wrong|please|actually)[,.!: -]+"
            wish = re.sub(opening, "", sentence, flags=re.IGNORECASE).rstrip(".!")
            wish = wish[:1].lower() + wish[1:] if not wish[:2].isupper() else wish
            lesson = Candidate(
                key=f"{material.project}|wish:{'-'.join(message_words(wish)[:8])}",
                summary=clip_words(f"The user's wish: {wish}"),
                rule=format_rule(f"working on {material.name}", wish),
                type=LessonType.PREFERENCE,
                repo=material.project,
                tags=tags("preference"),
                importance=_STANDING_IMPORTANCE if is_standing else _CORRECTION_IMPORTANCE,
                severity=Severity.RECOMMENDATION,
                events=(event.id,),
                remedies=(wish,),
            )
            found.setdefault(lesson.key, lesson)
    return list(found.values())


def find_wishes(message: str, *, is_task: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the sentences in a user's own words that express a wish, and whether it is for good."""
    if _MACHINE.search(message):
        return
    words = own_words(message)
    if len(words) > _LONGEST_MESSAGE:
        return
    for part in _SENTENCE.split(words):
        sentence = part.strip(" -*\t\"'")
        if not _SHORTEST_WISH <= len(sentence) <= _LONGEST_WISH or sentence.endswith("?"):
            continue
        if is_task:
            if _STANDING_IN_TASK.search(sentence):
                yield sentence, True
        elif _STANDING.search(sentence):
            yield sentence, True
        elif not _TEMPORARY.search(sentence) and (_CORRECTION.search(sentence) or _AFTER_NO.search(sentence)):
            yield sentence, False


def own_words(message: str) -> str:
    """Return the part of a user's message that they wrote: no code, quotation, document or tool output.

    A text announced as somebody else's takes the rest of the message with it, since nothing says where it
    ends, unless it stands between marks.
    """
    kept: list[str] = []
    until: re.Pattern[str] | None = None
    lines = message.splitlines()
    for place, line in enumerate(lines):
        if until is not None:
            until = None if until.search(line) else until
            continue
        if _HEADING.match(line) or len(line) > _LONGEST_TYPED_LINE:
            break
        if fence := _FENCE.match(line):
            until = re.compile(rf"\s*{re.escape(fence['mark'])}")
        elif tag := _TAG.match(line):
            closing = re.compile(rf"</{re.escape(tag['name'])}\s*>")
            until = None if closing.search(line) else closing
        elif announced := _ANNOUNCED.search(line) or _WORKED_ON.search(line):
            kept.append(line[: announced.start()])
            following = next(filter(str.strip, lines[place + 1 :]), "")
            is_marked = bool(_FENCE.match(following) or _TAG.match(following))
            # The end of a pasted text is known only if it has marks of its own.
            if line[announced.end() :].strip() or not is_marked:
                break
        elif not _QUOTED_LINE.match(line):
            kept.append(line)
    return _LONG_QUOTATION.sub(" ", "\n".join(kept)).strip()
