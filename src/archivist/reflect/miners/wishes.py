"""What the user corrects or wishes for good, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.records import Category, Event, LessonType, Scope, Severity
from archivist.reflect.candidates import Candidate
from archivist.reflect.importance import PREFERENCE
from archivist.reflect.miners.material import Material
from archivist.reflect.signatures import words
from archivist.reflect.wording import clipped, rule, tags

_LONGEST_MESSAGE = 1500
_LONGEST_WISH = 170
_SHORTEST_WISH = 12
_CORRECTION_WEIGHT = 0.75
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+(?=don't|do not|never|always)", re.IGNORECASE)
_STANDING = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|going forward|every time|by default|as a rule"
    r"|whenever)\b"
    r"|^(?:i|we) (?:prefer|want you to|like|don't want|never|always)\b|^(?:please )?prefer\b"
    r"|^(?:please )?remember (?:to|that)\b",
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
# What a harness, not a person, put into the user's turn.
_MACHINE = re.compile(
    r"^\s*[<{\[$]|^(?:caveat|this session is being continued|error|traceback|exit code)\b", re.IGNORECASE
)
_OF_THE_MOMENT = re.compile(r"\b(?:for now|this time|yet|today|right now|just now|again)\b", re.IGNORECASE)


def mine_wishes(material: Material) -> list[Candidate]:
    """Keep standing wishes and corrections that the user voiced after the task itself."""
    found: dict[str, Candidate] = {}
    for event in material.reading.said[1:]:
        for sentence, is_standing in wishes(event.text):
            lesson = _lesson(material, event, sentence, is_standing=is_standing)
            found.setdefault(lesson.key, lesson)
    return list(found.values())


def wishes(message: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a message that wish something, and whether for good."""
    if len(message) > _LONGEST_MESSAGE or _MACHINE.search(message):
        return
    for part in _SENTENCE.split(message):
        sentence = part.strip(" -*\t\"'")
        if not _SHORTEST_WISH <= len(sentence) <= _LONGEST_WISH or sentence.endswith("?"):
            continue
        if _STANDING.search(sentence):
            yield sentence, True
        elif (_CORRECTION.search(sentence) or _AFTER_NO.search(sentence)) and not _OF_THE_MOMENT.search(
            sentence
        ):
            yield sentence, False


def _lesson(material: Material, event: Event, sentence: str, *, is_standing: bool) -> Candidate:
    wish = re.sub(r"^(?:no|nope|wrong|please|actually)[,.!: -]+", "", sentence, flags=re.IGNORECASE).rstrip(
        ".!"
    )
    wish = wish[:1].lower() + wish[1:] if not wish[:2].isupper() else wish
    return Candidate(
        key=f"{material.project}|wish:{'-'.join(words(wish)[:8])}",
        summary=clipped(f"The user's wish: {wish}"),
        rule=rule(f"working on {material.name}", wish),
        type=LessonType.PREFERENCE,
        category=Category.HEURISTIC,
        scope=Scope.REPO,
        repo=material.project,
        tags=tags("preference"),
        importance=PREFERENCE if is_standing else _CORRECTION_WEIGHT,
        severity=Severity.RECOMMENDATION,
        events=(event.id,),
        remedies=(wish,),
    )
