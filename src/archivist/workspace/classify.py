"""Classify a text by rule: its kind, category, title and tags, and the tools and roles that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from archivist.reading import programs
from archivist.workspace.documents import PlanStatus, clip_text, strip_markup
from archivist.workspace.terms import word_set

TITLE_CHARACTERS = 100
_MAX_TAGS = 4
_TAG_CHARACTERS = 3
_CODE = re.compile(r"`([^`\n]{2,40})`")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*")
_SPOKEN = re.compile(r"[\w.+#-]*\w")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_BREAKS = re.compile(r"\s+(?:—|--|-)\s+|:\s+|;\s+")

# What people do in a project, not who they are.
ROLES = word_set(
    "architect maintainer reviewer guardian maker orchestrator archivist explorer healer product-owner "
    "developer tester designer operator analyst researcher scout engineer lead owner admin sre"
)
_OTHER_TOOLS = word_set(
    "pytest ruff mypy jest vitest eslint prettier typescript react vue svelte angular nestjs nextjs express "
    "fastapi django flask postgres postgresql mysql sqlite redis kafka rabbitmq elasticsearch mongodb docker "
    "kubernetes terraform ansible nginx graphql grpc xstate webpack rollup esbuild storybook playwright "
    "cypress selenium pandas numpy pytorch openai langgraph prisma drizzle tailwind github gitlab jenkins "
    "sentry grafana prometheus temporal celery"
)
# Names that are ordinary words count as tools only where they are marked as code.
_ORDINARY_WORDS = word_set(
    "make just task next service go swift mix edit issues dart fly rye snap express react angular temporal "
    "bundle composer flask conan turbo brew fly helm heroku nox rake gem"
)
COMMANDS = programs.SUBCOMMANDED | frozenset(programs.RUNNERS) | _OTHER_TOOLS
TOOLS = COMMANDS - _ORDINARY_WORDS


class MemoryKind(StrEnum):
    """What can be saved."""

    DECISION = "decision"
    LESSON = "lesson"
    PLAN_STATUS = "plan_status"


def _compile_any(patterns: str) -> re.Pattern[str]:
    """Return a pattern that matches any of these, each at the start of a word."""
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

# The documented categories of each kind with their words; the first wins a tie.
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
    """Return whether a text is a decision, a lesson or a plan's status; a lesson when it is a tie."""
    if has_plan or has_status:
        return MemoryKind.PLAN_STATUS
    if re.match(r"\s*(?:the )?plan\b", text, re.IGNORECASE) and status_of(text) is not None:
        return MemoryKind.PLAN_STATUS
    chosen, learnt = (len(set(pattern.findall(text.lower()))) for pattern in (_DECISION, _LESSON))
    chosen += bool(_ORDER.match(text))
    return MemoryKind.DECISION if chosen > learnt else MemoryKind.LESSON


def status_of(text: str) -> PlanStatus | None:
    """Return the plan status that a text names; of two, the one that is less complete."""
    return next((status for status, pattern in _STATUS_WORDS if pattern.search(text)), None)


def category_of(text: str, kind: MemoryKind) -> str:
    """Return the documented category whose words are most frequent in a text."""
    counts = [
        (len(pattern.findall(text)), -place, name)
        for place, (name, pattern) in enumerate(_CATEGORIES.get(kind, ()))
    ]
    best = max(counts, default=(0, 0, ""))
    return best[2] if best[0] else _DEFAULT_CATEGORY.get(kind, "other")


def split_title(text: str) -> tuple[str, str]:
    """Return a title for a text, and the text without the first sentence when that is the title."""
    title = title_of(text)
    first, *rest = _SENTENCE_END.split(text.strip(), maxsplit=1)
    has_rest = bool(rest and rest[0].strip())
    return title, rest[0].strip() if has_rest and first.strip(" .#-*>") == title else text


def title_of(text: str) -> str:
    """Return a title: the first sentence, or its first part when the sentence is long."""
    first = strip_markup(_SENTENCE_END.split(text.strip(), maxsplit=1)[0]).strip(" .#-*>")
    head = _BREAKS.split(first, maxsplit=1)[0]
    if len(first) > TITLE_CHARACTERS * 2 // 3 and len(head.split()) > 2:
        first = head
    return clip_text(first, TITLE_CHARACTERS)


def tags_of(text: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return tags for a text: known tags that it contains, its code words, and the tools that it names."""
    lowered = text.lower()
    spoken = _SPOKEN.findall(lowered)
    joined = " ".join(["", *spoken, ""])
    named = [tag for tag in known if len(tag) >= _TAG_CHARACTERS and f" {tag.lower()} " in joined]
    code = [name for each in _CODE.findall(lowered) if (name := each.strip()) and _NAME.fullmatch(name)]
    return tuple(
        list(dict.fromkeys([*named, *code, *(word for word in spoken if word in TOOLS)]))[:_MAX_TAGS]
    )
