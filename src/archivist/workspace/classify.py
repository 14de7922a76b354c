"""Tell by rule what a piece of knowledge is when nobody says: its kind, category, title and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from archivist.workspace.overviews import clip_text, strip_markup
from archivist.workspace.plans import PlanStatus
from archivist.workspace.vocabulary import TOOLS

TITLE_CHARACTERS = 100
_MAX_TAGS = 4
_TAG_CHARACTERS = 3
_CODE = re.compile(r"`([^`\n]{2,40})`")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*")
_SPOKEN = re.compile(r"[\w.+#-]*\w")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_BREAKS = re.compile(r"\s+(?:—|--|-)\s+|:\s+|;\s+")


class MemoryKind(StrEnum):
    """What can be saved."""

    DECISION = "decision"
    LESSON = "lesson"
    PLAN_STATUS = "plan_status"


def _compile_any(patterns: str) -> re.Pattern[str]:
    """Return a pattern that finds any of these, each at the start of a word."""
    return re.compile(rf"\b(?:{'|'.join(patterns.split())})", re.IGNORECASE)


_DECISION = _compile_any(
    r"decid(?:e|ed|ing)\b decision\b (?:chose|chosen|choose|picked|adopt(?:ed)?)\b "
    r"we(?:'ll|\swill|\sshall)\b go(?:ing)?\swith\b prefer(?:red)?\b over\b instead\sof\b "
    r"standardi[sz]ed?\b convention\b agreed\b from\snow\son\b switch(?:ed|ing)?\s(?:to|from)\b "
    r"rationale\b trade-?offs?\b policy\b"
)
_ORDER = re.compile(r"\s*(?:use|keep|store|pin|adopt|prefer|avoid|always|never)\b", re.IGNORECASE)
_LESSON = _compile_any(
    r"root\scause\b turn(?:s|ed)\sout\b fail(?:s|ed|ure|ing)?\b errors?\b bugs?\b br(?:eaks?|oke|oken)\b "
    r"fix(?:ed|es)?\b gotchas?\b learn(?:ed|t)\b mistakes?\b hang(?:s|ing)?\b crash(?:es|ed)?\b flaky\b "
    r"leaks?\b was\scaused\sby\b must\sbe\scalled\b workaround\b unless\b silently\b unexpected(?:ly)?\b "
    r"slow(?:er|ly)?\b timed?\s?out\b missing\b wrong(?:ly)?\b stale\b without\sit\b"
)

# The documented categories of each kind, with the words that tell of them; the first wins a tie.
_CATEGORIES: dict[MemoryKind, tuple[tuple[str, re.Pattern[str]], ...]] = {
    MemoryKind.DECISION: (
        (
            "architecture",
            _compile_any(
                r"architect model\b modules?\b services?\b schema state\b layers?\b api\b queue database\b "
                r"design\b boundar"
            ),
        ),
        (
            "dependency",
            _compile_any(
                r"dependenc library\b packages?\b versions?\b upgrade v\d pin(?:ned)?\b lock\s?file\b"
            ),
        ),
        (
            "tooling",
            _compile_any(
                r"tool lint ci\b build bundler\b editor\b pnpm\b npm\b yarn\b docker pipeline\b "
                r"format(?:ter|ting)\b"
            ),
        ),
        (
            "convention",
            _compile_any(r"convention nam(?:e|ing)\b style\b branch commits?\b review always\b never\b"),
        ),
    ),
    MemoryKind.LESSON: (
        ("performance", _compile_any(r"slow fast(?:er)?\b memory\b latency\b cache cpu\b throughput")),
        (
            "configuration",
            _compile_any(r"config settings?\b env(?:ironment)?\b flags?\b options?\b paths?\b permission"),
        ),
        (
            "integration",
            _compile_any(r"integrat api\b endpoint webhook client\b service\b proxy\b auth token"),
        ),
        ("debugging", _compile_any(r"error bug fail crash hang tests?\b trace break broke")),
    ),
}
_DEFAULT_CATEGORY = {MemoryKind.DECISION: "convention", MemoryKind.LESSON: "debugging"}

_STATUS_WORDS: tuple[tuple[PlanStatus, re.Pattern[str]], ...] = (
    (PlanStatus.ABANDONED, _compile_any(r"abandon(?:ed)?\b cancel(?:l?ed)?\b dropped\b won'?t\sdo\b")),
    (PlanStatus.NEW, _compile_any(r"not\s(?:yet\s)?started\b reopened\b")),
    (PlanStatus.PARTIAL, _compile_any(r"partial(?:ly)?\b partly\b half\sdone\b some\sparts\b")),
    (PlanStatus.IN_PROGRESS, _compile_any(r"in[\s_-]progress\b started\b work(?:ing)?\son\b wip\b")),
    (PlanStatus.DONE, _compile_any(r"done\b finished\b completed?\b implemented\b shipped\b")),
)


def kind_of(text: str, *, has_plan: bool = False, has_status: bool = False) -> MemoryKind:
    """Return whether a text is a decision, a lesson or about a plan's status; a lesson when it is a tie."""
    if has_plan or has_status:
        return MemoryKind.PLAN_STATUS
    if re.match(r"\s*(?:the )?plan\b", text, re.IGNORECASE) and status_of(text) is not None:
        return MemoryKind.PLAN_STATUS
    chosen, learnt = (len(set(pattern.findall(text.lower()))) for pattern in (_DECISION, _LESSON))
    chosen += bool(_ORDER.match(text))
    return MemoryKind.DECISION if chosen > learnt else MemoryKind.LESSON


def status_of(text: str) -> PlanStatus | None:
    """Return the status that a text tells of a plan; the unhappier one where it tells two."""
    return next((status for status, pattern in _STATUS_WORDS if pattern.search(text)), None)


def category_of(text: str, kind: MemoryKind) -> str:
    """Return the documented category whose words stand most often in a text."""
    counts = [
        (len(pattern.findall(text)), -place, name)
        for place, (name, pattern) in enumerate(_CATEGORIES.get(kind, ()))
    ]
    best = max(counts, default=(0, 0, ""))
    return best[2] if best[0] else _DEFAULT_CATEGORY.get(kind, "other")


def split_title(text: str) -> tuple[str, str]:
    """Return a title for a text, and what is left to say: all of it unless the title said its start."""
    title = title_of(text)
    first, *rest = _SENTENCE_END.split(text.strip(), maxsplit=1)
    is_said = bool(rest and rest[0].strip()) and first.strip(" .#-*>") == title
    return title, rest[0].strip() if is_said else text


def title_of(text: str) -> str:
    """Return a title: the first sentence, or its first part where that says enough."""
    first = strip_markup(_SENTENCE_END.split(text.strip(), maxsplit=1)[0]).strip(" .#-*>")
    head = _BREAKS.split(first, maxsplit=1)[0]
    if len(first) > TITLE_CHARACTERS * 2 // 3 and len(head.split()) > 2:
        first = head
    return clip_text(first, TITLE_CHARACTERS)


def tags_of(text: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return tags for a text: those already in use that it names, its code words, the tools it names."""
    lowered = text.lower()
    spoken = _SPOKEN.findall(lowered)
    joined = " ".join(["", *spoken, ""])
    named = [tag for tag in known if len(tag) >= _TAG_CHARACTERS and f" {tag.lower()} " in joined]
    code = [name for each in _CODE.findall(lowered) if (name := each.strip()) and _NAME.fullmatch(name)]
    return tuple(
        list(dict.fromkeys([*named, *code, *(word for word in spoken if word in TOOLS)]))[:_MAX_TAGS]
    )
