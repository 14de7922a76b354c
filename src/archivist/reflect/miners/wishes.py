"""What the user corrects or wishes for good, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.lessons.candidate import Candidate
from archivist.reading.own_words import own_words
from archivist.reading.signatures import message_words
from archivist.reading.wording import clip_words, format_rule, tags
from archivist.records import Category, Event, LessonType, Scope, Severity
from archivist.reflect.importance import PREFERENCE
from archivist.reflect.miners.material import Material

_LONGEST_MESSAGE = 1500
_LONGEST_WISH = 170
_SHORTEST_WISH = 12
_CORRECTION_WEIGHT = 0.75
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+(?=don't|do not|never|always)", re.IGNORECASE)
# "It always fails" and "never returns None" tell what is, "always run ruff" what shall be.
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
# A task has its own always and never; a wish that comes with it says that it is for later too.
_WITH_THE_TASK = re.compile(
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
# What a harness, not a person, put into the user's turn.
_MACHINE = re.compile(
    r"^\s*[<{\[$]|^(?:caveat|this session is being continued|error|traceback|exit code)\b", re.IGNORECASE
)
_OF_THE_MOMENT = re.compile(r"\b(?:for now|this time|yet|today|right now|just now|again)\b", re.IGNORECASE)


def mine_wishes(material: Material) -> list[Candidate]:
    """Keep standing wishes, and corrections that the user voiced after the task itself."""
    found: dict[str, Candidate] = {}
    # The task stays with the run, so that a part of it begins with what was said later.
    has_task = not material.reading.episode.is_part
    for place, event in enumerate(material.reading.said):
        for sentence, is_standing in find_wishes(event.text, is_task=has_task and not place):
            lesson = _lesson(material, event, sentence, is_standing=is_standing)
            found.setdefault(lesson.key, lesson)
    return list(found.values())


def find_wishes(message: str, *, is_task: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the sentences in a user's own words that wish something, and whether for good."""
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
            if _WITH_THE_TASK.search(sentence):
                yield sentence, True
        elif _STANDING.search(sentence):
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
        key=f"{material.project}|wish:{'-'.join(message_words(wish)[:8])}",
        summary=clip_words(f"The user's wish: {wish}"),
        rule=format_rule(f"working on {material.name}", wish),
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
