"""Find the choices of a run that were stated with a reason, by the user or with the user's consent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archivist.reading.wording import clip_words, tags
from archivist.records import Event, EventKind
from archivist.workspace.drafts import (
    LONGEST_MESSAGE,
    LONGEST_REASON,
    LONGEST_TITLE,
    Draft,
    DraftContext,
    SaveTrigger,
    end_sentence,
    message_sentences,
)
from archivist.workspace.topology import FileKind

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
_OF_THE_MOMENT = re.compile(
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
    """Draft the choices that the user states with a reason, and those of the agent that the user confirms."""
    said = [
        event for event in events if event.kind is EventKind.MESSAGE and event.role in ("user", "assistant")
    ]
    for at, event in enumerate(said):
        found = list(message_sentences(event.text)) if len(event.text) <= LONGEST_MESSAGE else []
        answer = next((each for each in said[at + 1 :] if each.role == "user"), None)
        is_confirmed = answer is not None and bool(_YES.search(answer.text))
        for place, sentence in enumerate(found):
            choice = _is_choice(sentence, is_user=event.role == "user", is_confirmed=is_confirmed)
            if not choice:
                continue
            # The reason may stand in the sentence after.
            whole = " ".join(found[place : place + 2])
            reasoned = sentence if _REASON.search(sentence) else whole if _REASON.search(whole) else ""
            if reasoned:
                evidence = (event.id, answer.id) if is_confirmed and answer else (event.id,)
                yield _draft_choice(sentence, reasoned, evidence, known, is_user=event.role == "user")


def _is_choice(sentence: str, *, is_user: bool, is_confirmed: bool) -> bool:
    if sentence.endswith("?") and not is_confirmed:
        return False
    if _OF_THE_MOMENT.search(sentence):
        return False
    if _CHOICE.search(sentence):
        return is_user or is_confirmed
    return not is_user and is_confirmed and bool(_PROPOSAL.search(sentence))


def _draft_choice(
    sentence: str, reasoned: str, evidence: tuple[str, ...], known: DraftContext, *, is_user: bool
) -> Draft:
    category = next((name for name, words in _DECISION_CATEGORIES if words.search(reasoned)), "architecture")
    named = [each for each in _CODE.findall(reasoned) if " " not in each]
    return Draft(
        kind=FileKind.DECISIONS,
        title=clip_words(_title_of(sentence), LONGEST_TITLE),
        text=end_sentence(clip_words(reasoned, 2 * LONGEST_REASON))
        + ("" if is_user else " The user agreed."),
        category=category,
        tags=tags(*named[:3]),
        trigger=SaveTrigger.DECISION_MOMENT,
        evidence=evidence,
        scope=known.scope,
        weight=0.9 if is_user else 0.75,
    )


def _title_of(sentence: str) -> str:
    """Return what was chosen: the sentence without its opening and without its reason."""
    title = _OPENING.sub("", sentence)
    title = _REASON.split(title)[0].rstrip(" ,;:.-\u2014\u2013") or title
    return title[:1].upper() + title[1:]
