"""Drafts: what a captured run offers to `save_memory`, and the decisions that were stated in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from archivist.reading.wording import clip_words, tags
from archivist.records import Category, Event, EventKind, Lesson, LessonType
from archivist.workspace.learnings import Learning
from archivist.workspace.topology import FileKind

MIN_WEIGHT = 0.6
TITLE_CHARACTERS = 120
REASON_CHARACTERS = 320
# A longer message is a pasted file or log, not something that somebody said.
MESSAGE_CHARACTERS = 4_000
_SENTENCE_CHARACTERS = 25
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_CATEGORIES = {
    Category.INFRA: "configuration",
    Category.TOOL_USAGE: "tooling",
    Category.PROVIDER_QUIRK: "integration",
    Category.TEST_STRATEGY: "testing",
    Category.BUGFIX_PATTERN: "debugging",
    Category.ANTI_PATTERN: "debugging",
    Category.PROMPTING: "convention",
    Category.HEURISTIC: "convention",
}


class SaveTrigger(StrEnum):
    """Why something is worth saving."""

    HARD_WON_FIX = "hard_won_fix"
    NON_OBVIOUS_SOLUTION = "non_obvious_solution"
    CONFLICT = "conflict"
    DECISION_MOMENT = "decision_moment"
    END_OF_SESSION = "end_of_session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry worth saving; `evidence` names the events or lessons that show it.

    `conflicts_with` is the file and line of the entry that it contradicts, `lesson` the lesson of the bank
    that it was made from.
    """

    kind: FileKind
    title: str
    text: str
    category: str
    tags: tuple[str, ...] = ()
    trigger: SaveTrigger
    evidence: tuple[str, ...] = ()
    scope: str = ""
    weight: float = MIN_WEIGHT
    conflicts_with: str = ""
    lesson: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftContext:
    """What is known already: entries, the words of all documents, and the lessons of the bank."""

    learnings: tuple[Learning, ...] = ()
    words: frozenset[str] = frozenset()
    lessons: tuple[Lesson, ...] = ()
    scope: str = ""


def end_sentence(sentence: str) -> str:
    """Return a sentence with its full stop."""
    return sentence if sentence.endswith((".", "!", "…")) else f"{sentence}."


def message_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message without list marks; fragments are left out."""
    for part in _SENTENCE.split(message[:MESSAGE_CHARACTERS]):
        sentence = " ".join(part.strip(' -*#>\t"').split())
        if len(sentence) >= _SENTENCE_CHARACTERS and not sentence.startswith(("```", "|", "{", "<")):
            yield sentence


def draft_lesson(lesson: Lesson, known: DraftContext, trigger: SaveTrigger) -> Draft:
    """Return a draft of a lesson of the bank."""
    is_preference = lesson.type is LessonType.PREFERENCE
    text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}\n\n{lesson.rule}"
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(lesson.summary, TITLE_CHARACTERS),
        text=end_sentence(text) + (f"\n\n{lesson.detail}" if lesson.detail else ""),
        category="convention" if is_preference else _CATEGORIES[lesson.category],
        tags=lesson.tags,
        trigger=trigger,
        evidence=(lesson.short_id, *lesson.evidence.events[:4]),
        scope=known.scope,
        weight=min(0.85, lesson.importance),
        lesson=lesson.id,
    )


# Decisions

_CHOICE = re.compile(
    r"\bwe(?:'ve| have)? (?:just )?(?:decided|agreed|settled|chose)\b|^decision\s*:"
    r"|\blet'?s (?:go with|use|switch to|stick with|stay with|adopt|keep)\b"
    r"|\bwe(?:'ll| will| should)? (?:go with|switch to|stick with|adopt|standardi[sz]e on)\b"
    r"|\bwe(?:'ll| will) use\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"\bi(?:'d| would)? (?:suggest|propose|recommend)\b|\bi(?:'ll| will) (?:go with|use|switch to)\b"
    r"|\bshould (?:i|we) (?:use|go with|switch)\b|\bmy recommendation\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|due to|to avoid|in order to|as it|as they|rather than|instead of|otherwise"
    r"|the reason)\b|\b(?:over|than) `?\w+|\u2014|\u2013| - ",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|sounds good|go ahead|do (?:it|that)|perfect|exactly|good"
    r"|please do|approved|let's do (?:it|that)|lgtm)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|yes|right|good|great|decision|well)\b[,.:! ]*)*"
    r"(?:we(?:'ve| have)? (?:just )?(?:decided|agreed|settled)(?: to| on| that we| that)?\s+|let'?s\s+"
    r"|we(?:'ll| will| should)\s+|i(?:'d| would)? (?:suggest|propose|recommend)(?: to| that we)?\s+"
    r"|i(?:'ll| will)\s+)?",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"\b(?:for now|this time|right now|just now|first,? let'?s|let'?s (?:use|keep) (?:the|this|that) "
    r"(?:file|test|line|command)|todo)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`([^`\n]{3,120})`")
_DECISION_CATEGORIES = (
    ("dependency", re.compile(r"\b(?:depend|package|librar|version|upgrade|pin\b|vendor)", re.IGNORECASE)),
    ("convention", re.compile(r"\b(?:naming|style|convention|format|commit|branch|lint)", re.IGNORECASE)),
    ("tooling", re.compile(r"\b(?:tool|cli|runner|build|ci\b|test|docker|pipeline|editor)", re.IGNORECASE)),
)


def draft_decisions(events: Sequence[Event], known: DraftContext) -> Iterator[Draft]:
    """Draft the choices that the user states with a reason, and the agent's that the user confirms."""
    messages = [
        event for event in events if event.kind is EventKind.MESSAGE and event.role in ("user", "assistant")
    ]
    for at, event in enumerate(messages):
        sentences = list(message_sentences(event.text)) if len(event.text) <= MESSAGE_CHARACTERS else []
        answer = next((each for each in messages[at + 1 :] if each.role == "user"), None)
        is_user = event.role == "user"
        is_confirmed = answer is not None and bool(_YES.search(answer.text))
        for place, sentence in enumerate(sentences):
            if not _is_choice(sentence, is_user=is_user, is_confirmed=is_confirmed):
                continue
            # The reason may be in the next sentence.
            both = " ".join(sentences[place : place + 2])
            reasoned = next((text for text in (sentence, both) if _REASON.search(text)), "")
            if not reasoned:
                continue
            title = _OPENING.sub("", sentence)
            title = _REASON.split(title)[0].rstrip(" ,;:.-\u2014\u2013") or title
            categories = (name for name, words in _DECISION_CATEGORIES if words.search(reasoned))
            yield Draft(
                kind=FileKind.DECISIONS,
                title=clip_words(title[:1].upper() + title[1:], TITLE_CHARACTERS),
                text=end_sentence(clip_words(reasoned, 2 * REASON_CHARACTERS))
                + ("" if is_user else " The user agreed."),
                category=next(categories, "architecture"),
                tags=tags(*[code for code in _CODE.findall(reasoned) if " " not in code][:3]),
                trigger=SaveTrigger.DECISION_MOMENT,
                evidence=(event.id, answer.id) if is_confirmed and answer else (event.id,),
                scope=known.scope,
                weight=0.9 if is_user else 0.75,
            )


def _is_choice(sentence: str, *, is_user: bool, is_confirmed: bool) -> bool:
    if (sentence.endswith("?") and not is_confirmed) or _TEMPORARY.search(sentence):
        return False
    if _CHOICE.search(sentence):
        return is_user or is_confirmed
    return not is_user and is_confirmed and bool(_PROPOSAL.search(sentence))
