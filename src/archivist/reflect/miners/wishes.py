"""What the user corrects or wishes for good, in the words that they typed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.lessons.candidate import Candidate
from archivist.reading.signatures import message_words
from archivist.reading.wording import clip_words, format_rule, tags
from archivist.records import LessonType, Severity
from archivist.records.run_words import TYPED
from archivist.reflect.miners.material import Material
from archivist.reflect.own_words import hide_quotations, own_words

# What the user says outweighs what is inferred from failures, whatever the counts.
_STANDING_IMPORTANCE = 0.9
_CORRECTION_IMPORTANCE = 0.75
_LONGEST_MESSAGE = 1500
_LONGEST_WISH = 170
_SHORTEST_WISH = 12
# Nobody types more wishes at once: a longer list was pasted.
_MOST_WISHES = 5
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)\s+|\n+|;\s+(?=don't|do not|never|always)", re.IGNORECASE
)
# "It always fails" and "never returns None" are statements; "always run ruff" is a wish.
_IMPERATIVE = (
    r"(?:always|never)\s+(?!(?:get|got|see|saw|had|have|ran|was|were|been|is|are|hit|happen|work|fail|mind)\b)"
    r"(?!\w*[^\Wsu]s\b|\w{3,}ed\b)"
)
_FROM_NOW_ON = (
    r"(?:from now on|going forward|in (?:the )?future|as a rule|next time|for (?:all )?(?:future|later) \w+)"
)
_HERE = r"in (?:this|our) (?:repo|repository|project|codebase|workspace)"
_YOU = r"(?:please |you (?:should |must )?|we |i want you to )?"
_STANDING = re.compile(
    rf"(?:^|[,;:] |\b(?:please|and|but|also|so|then|(?:you|we|i)(?: should| must| will| need to| want to)?"
    rf"|(?:you|us|remember|want|prefer|like|sure) to|{_HERE}[,:]?|{_FROM_NOW_ON}[,:]?) ){_IMPERATIVE}"
    rf"|^(?:before|after|when) [^,]{{3,60}} {_IMPERATIVE}"
    rf"|(?:^|[,;:] |\b(?:please|and|but|also|so|then) ){_FROM_NOW_ON}\b|\b{_FROM_NOW_ON}[.!]*$"
    r"|\b(?:every time|whenever) you\b"
    r"|^(?:i|we) (?:prefer|want you to|like|don't want|do not want)\b|^(?:please )?prefer\b|^my preference\b"
    r"|^(?:please )?remember (?:to|that)\b|^please remember\b"
    r"|^(?:please |and |but |so )*(?:don't|do not) ever\b|^(?:don't|do not) .*\bever$",
    re.IGNORECASE,
)
# In the clause before a wish: what a program, a text or somebody else should do or did.
_ABOUT_OTHERS = re.compile(
    r"\b(?:that|which|who|so|saying|should|must|will|would|wants?|promises?|is|are|was|were|has|have|had|\w{3,}ed)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,;:]| - ")
# Longer clauses before a wish state something, unless they begin with the occasion or with who speaks.
_LONGEST_REMARK = 4
_OWN_CLAUSE = re.compile(
    r"\A\W*+(?:before|after|when|whenever|while|once|if|for|in|on|as|from|i|we|you|please|don't|do not|let's"
    r"|always|never)\b",
    re.IGNORECASE,
)
# A task has its own always and never; a wish that comes with it must say that it is for later too.
_STANDING_IN_TASK = re.compile(
    r"^(?:please |also |and |note: |important: )*(?:"
    rf"{_FROM_NOW_ON}[,:]? {_YOU}(?:always|never|use|prefer|run|write|only|stop|avoid|keep|make sure|do not"
    r"|don't|put|name|commit|format|answer|ask)\b"
    rf"|{_HERE}[,:]? {_YOU}{_IMPERATIVE}"
    r"|(?<=please )remember\b|remember[,:]? (?:to |that (?:you |we )?(?:should |must )?)?(?:always|never)\b)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:no|nope|wrong|stop|not (?:that|like that)|actually|please)?[,.!: -]*+(?:please |let's )?"
    r"(?:(?:don't|do not|stop|avoid) (?:use|using|run|running|add|adding|write|writing|create|creating"
    r"|commit|committing|push|pushing|touch|edit|mock|mocking|skip|install|put|leave|call)\b"
    r"|(?:we|you should|you must|you need to) use\b|use \S.* (?:instead|not|rather than)\b"
    r"|use \S+ (?:instead|for)\b)"
    r"|^(?:no|nope|wrong)[,.! ]++.*\b(?:use|run|should|must|instead)\b",
    re.IGNORECASE,
)
# A correction of what is being made is no wish for good, except where it names the whole project.
_TEMPORARY = re.compile(
    r"\b(?:for now|this time|yet|today|right now|just now|again)\b"
    r"|\bth(?:is|ese) (?!repo|project|codebase|workspace|machine|computer)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"[ \t\-*\u2022]*+(?:\d{1,2}[.)][ \t]++)?")
# A line without an end, then one with a capital: the second may begin a text that the first names.
_NEW_STYLE = re.compile(r"[^.!?,;:\n]\n[ \t\-*\u2022\d.)]*+[A-Z]")
_OPENING = re.compile(r"^(?:no|nope|wrong|please|actually)[,.!: -]++", re.IGNORECASE)


def mine_wishes(material: Material) -> list[Candidate]:
    """Keep standing wishes, and corrections that the user made after the task itself."""
    found: dict[str, Candidate] = {}
    # The task belongs to the first part of a run; a later part begins with what was said later.
    has_task = not material.reading.episode.is_part
    for place, event in enumerate(material.reading.said):
        if event.extra.get(TYPED) is not True:
            continue
        for sentence, is_standing in find_wishes(event.text, is_task=has_task and not place):
            wish = _OPENING.sub("", sentence).rstrip(".!")
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


def find_wishes(message: str, *, is_task: bool = False) -> list[tuple[str, bool]]:
    """Return the sentences in a user's own words that express a wish, and whether it is for good."""
    words = own_words(message)
    if len(words) > _LONGEST_MESSAGE:
        return []
    found: list[tuple[str, bool]] = []
    # A wish is not searched in what the user quotes, but it may name it.
    spoken_words = hide_quotations(words)
    new_style = _NEW_STYLE.search(spoken_words)
    strict_from = 0 if is_task else new_style.start() if new_style else len(words)
    for spoken, start in _sentences(spoken_words):
        if not _SHORTEST_WISH <= len(spoken) <= _LONGEST_WISH or spoken.endswith("?"):
            continue
        sentence = words[start : start + len(spoken)]
        if start >= strict_from:
            if _STANDING_IN_TASK.search(spoken):
                found.append((sentence, True))
        elif _is_standing(spoken):
            found.append((sentence, True))
        elif _CORRECTION.search(spoken) and not _TEMPORARY.search(spoken):
            found.append((sentence, False))
    return found if len(found) <= _MOST_WISHES else []


def _is_standing(sentence: str) -> bool:
    """Say whether a sentence tells the agent what to do for good."""
    for wish in _STANDING.finditer(sentence):
        # A mark that the pattern begins with ends the clause before it.
        *clauses, last = _CLAUSE_END.split(sentence[: wish.start() + 1])
        if not _ABOUT_OTHERS.search(last) and all(
            len(clause.split()) <= _LONGEST_REMARK or _OWN_CLAUSE.match(clause) for clause in clauses
        ):
            return True
    return False


def _sentences(text: str) -> Iterator[tuple[str, int]]:
    """Yield each sentence without its bullet, and where it begins."""
    start = 0
    for end in [*_SENTENCE_END.finditer(text), None]:
        part = text[start : end.start() if end else len(text)]
        bullet = _BULLET.match(part)
        begin = bullet.end() if bullet else 0
        yield part[begin:].rstrip(" -*\t"), start + begin
        start = end.end() if end else start
