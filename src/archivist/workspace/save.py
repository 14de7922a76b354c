"""Classify a text by rule, and decide what saving does to one item: pure policy.

`saving_service.py` reads and writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from archivist.capture.redaction import redact
from archivist.errors import InputError
from archivist.workspace import learnings
from archivist.workspace.documents import Plan, PlanStatus, clip_text, find_plan, strip_markup
from archivist.workspace.learnings import Learning, LearningEntry
from archivist.workspace.similarity import Comparison, Likeness, Statement, compare
from archivist.workspace.terms import TOOLS
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceScope

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
_CATEGORIES: dict[MemoryKind, dict[str, re.Pattern[str]]] = {
    kind: {name: _compile_any(patterns) for name, patterns in categories.items()}
    for kind, categories in {
        MemoryKind.DECISION: {
            "architecture": r"architect model\b modules?\b services?\b schema state\b layers?\b api\b queue "
            r"database\b design\b boundar",
            "dependency": r"dependenc library\b packages?\b versions?\b upgrade v\d pin(?:ned)?\b "
            r"lock\s?file\b",
            "tooling": r"tool lint ci\b build bundler\b editor\b pnpm\b npm\b yarn\b docker pipeline\b "
            r"format(?:ter|ting)\b",
            "convention": r"convention nam(?:e|ing)\b style\b branch commits?\b review always\b never\b",
        },
        MemoryKind.LESSON: {
            "performance": r"slow fast(?:er)?\b memory\b latency\b cache cpu\b throughput",
            "configuration": r"config settings?\b env(?:ironment)?\b flags?\b options?\b paths?\b permission",
            "integration": r"integrat api\b endpoint webhook client\b service\b proxy\b auth token",
            "debugging": r"error bug fail crash hang tests?\b trace break broke",
        },
    }.items()
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
        for place, (name, pattern) in enumerate(_CATEGORIES.get(kind, {}).items())
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


MAX_CHARACTERS = 20_000
_ITEM_HINT = "an item has text, and may have kind, title, category, tags, date, scope, plan and status"


class OnConflict(StrEnum):
    """What to do with a statement that contradicts an entry."""

    REFUSE = "refuse"
    SUPERSEDE = "supersede"
    KEEP_BOTH = "keep_both"


class SaveResult(StrEnum):
    """The outcome of saving one item."""

    SAVED = "saved"
    MERGED = "merged"
    KNOWN = "known"
    CONFLICT = "conflict"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """Something to save: a decision, a lesson, or a plan's new status. Missing fields are found by rule."""

    text: str = ""
    kind: MemoryKind | None = None
    title: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    date: date | None = None
    scope: str = ""
    plan: str = ""
    status: str = ""


class SaveOutcome(NamedTuple):
    """What happened to one item, where it is now, and why."""

    result: SaveResult
    title: str
    kind: MemoryKind
    scope: str = ""
    path: str = ""
    line: int = 0
    reason: str = ""
    against: str = ""

    @property
    def place(self) -> str:
        """Return file and line, as far as they are known."""
        return f"{self.path}:{self.line}" if self.line else self.path


class Neighbour(NamedTuple):
    """An existing entry, and what the new statement is to it."""

    learning: Learning
    compared: Comparison


def item_from(value: object) -> MemoryItem:
    """Return an item from plain values; raise InputError that names the wrong field."""
    if isinstance(value, str):
        return MemoryItem(text=value)
    if not isinstance(value, Mapping):
        raise InputError(f"{value!r} is not an item", hint=_ITEM_HINT)
    known = {field.name for field in fields(MemoryItem)}
    for key in value:
        if key not in known:
            raise InputError(f"an item has no field {str(key)!r}", hint=_ITEM_HINT)
    tags = value.get("tags") or ()
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",")]
    texts = {key: value[key] for key in known - {"tags", "kind", "date"} if value.get(key) is not None}
    if not isinstance(tags, list | tuple) or not all(
        isinstance(text, str) for text in (*tags, *texts.values())
    ):
        raise InputError("the fields of an item are texts, and its tags a list of texts", hint=_ITEM_HINT)
    given, kind = value.get("kind"), None
    if given not in (None, ""):
        word = str(given).strip().lower().replace("-", "_").replace(" ", "_")
        word = word if word in set(MemoryKind) else word.removesuffix("s")
        if word not in set(MemoryKind):
            words = ", ".join(each.value for each in MemoryKind)
            raise InputError(f"{given!r} is not a kind", hint=f"one of {words}")
        kind = MemoryKind(word)
    return MemoryItem(**texts, tags=tuple(tags), kind=kind, date=_parse_date(value.get("date")))


def _parse_date(value: object) -> date | None:
    if isinstance(value, date):
        return value
    if value is None or value == "":
        return None
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise InputError(f"{value!r} is not a date", hint="write it as YYYY-MM-DD") from None


def items_from(values: Sequence[object]) -> list[MemoryItem | SaveOutcome]:
    """Return an item for each value; an invalid value becomes a refusal with its number."""
    found: list[MemoryItem | SaveOutcome] = []
    for number, value in enumerate(values, 1):
        try:
            found.append(item_from(value))
        except InputError as error:
            reason = f"item {number}: {error.message} ({error.hint})"
            title = value.get("title") or value.get("text") if isinstance(value, Mapping) else ""
            title = likely_title(MemoryItem(text=title if isinstance(title, str) else ""))
            title = title or f"item {number}"
            found.append(SaveOutcome(SaveResult.REFUSED, title, MemoryKind.LESSON, reason=reason))
    return found


def prepare_item(item: MemoryItem) -> MemoryItem:
    """Return an item without secrets and with its missing fields filled in, except for the tags.

    Raise InputError for an item that is empty or too long.
    """
    if len(item.text) > MAX_CHARACTERS:
        raise InputError(
            f"{len(item.text)} characters are too long for an entry",
            hint=f"use at most {MAX_CHARACTERS} characters",
        )
    text = redact(item.text).text
    title = " ".join(redact(item.title).text.split())
    kind = likely_kind(item)
    if kind is MemoryKind.PLAN_STATUS:
        return replace(item, text=text.strip(), title=title, kind=kind)
    if not text.strip() and not title:
        raise InputError("nothing to save: the text is empty", hint=_ITEM_HINT)
    body = learnings.sanitize_body(text) or title
    if not title:
        title, body = split_title(body)
    title = clip_text(" ".join(title.split()), 2 * TITLE_CHARACTERS).strip()
    # Markdown would read marks at the end of a heading as its closing sequence.
    while title.endswith("#") and (title.strip("#") == "" or title.rstrip("#").endswith(" ")):
        title = title.rstrip("#").rstrip()
    title = title or "Untitled"
    category = " ".join(redact(item.category).text.split()).strip("*:# ")
    words = (
        " ".join(part.split()).strip(" `#*") for tag in item.tags for part in redact(tag).text.split(",")
    )
    return replace(
        item,
        text=body,
        title=title,
        kind=kind,
        category=category or category_of(f"{title}\n{body}", kind),
        tags=tuple(dict.fromkeys(tag for tag in words if tag)),
    )


def choose_scope(
    asked: WorkspaceScope, item: MemoryItem, domains: Sequence[str]
) -> tuple[WorkspaceScope, MemoryItem]:
    """Return the scope of an entry, because learnings are kept by workspace and domain.

    A repository becomes a tag of its domain's entry. An entry for a workspace that is tagged with the name of
    one of its domains belongs to that domain.
    """
    if len(asked.parts) == LEVELS:
        tags = item.tags if asked.repository in item.tags else (asked.repository, *item.tags)
        return WorkspaceScope(asked.workspace, asked.domain), replace(item, tags=tags)
    if len(asked.parts) == 1:
        named = [domain for domain in domains if domain.casefold() in {tag.casefold() for tag in item.tags}]
        if len(named) == 1:
            return WorkspaceScope(asked.workspace, named[0]), item
    return asked, item


def entry_of(item: MemoryItem, today: date, known_tags: Iterable[str]) -> LearningEntry:
    """Return the entry to write for a prepared item, with tags by rule when it has none."""
    tags = item.tags or tags_of(f"{item.title}\n{item.text}", known_tags)
    return LearningEntry(item.title, item.date or today, item.category, tags, item.text, 0, 0)


def find_nearest(
    item: MemoryItem,
    existing: Sequence[Learning],
    cosines: Callable[[Statement, Sequence[Statement]], list[float]],
) -> Neighbour | None:
    """Return the entry that decides the outcome of an item, or None.

    An entry that already says it comes first, then one that it contradicts, then the nearest of those that
    say the same in other words.
    """
    new = Statement(item.title, item.text)
    old = [Statement(learning.entry.title, learning.entry.text) for learning in existing]
    order = (Likeness.EXACT, Likeness.KNOWN, Likeness.CONFLICT, Likeness.MEANING)
    found = [
        Neighbour(learning, compare(statement, new, cosine))
        for learning, statement, cosine in zip(existing, old, cosines(new, old), strict=True)
    ]
    return min(
        (near for near in found if near.compared.likeness in order),
        key=lambda near: (order.index(near.compared.likeness), -near.compared.score),
        default=None,
    )


def merge_item(text: str, near: Neighbour, item: MemoryItem, today: date) -> str:
    """Return a file's text with what an item adds to an entry: tags, and a note with the new words."""
    entry = near.learning.entry
    own = {tag.casefold() for tag in entry.tags}
    extra = [tag for tag in item.tags if tag.casefold() not in own]
    if near.compared.likeness is Likeness.MEANING:
        has_title = Statement(item.title, item.text).begins_with_title
        note = item.text if has_title else learnings.join_title(item.title, item.text)
        text = learnings.append_note(text, entry, learnings.format_addition(note, item.date or today))
    # The tags are above the note: setting them last keeps the note's line number valid.
    return learnings.set_tags(text, entry, [*entry.tags, *extra]) if extra else text


def plan_of(existing: Sequence[Plan], item: MemoryItem) -> Plan:
    """Return the plan of an item: the one that it names, or the only one that its text mentions."""
    asked = item.plan.strip() or item.title.strip()
    if not asked:
        text = item.text.casefold()
        found = [plan for plan in existing if plan.name.casefold() in text or plan.id.casefold() in text]
        asked = found[0].path if len(found) == 1 else item.text
    return find_plan(existing, asked)


def new_status(item: MemoryItem) -> PlanStatus:
    """Return the status that an item gives a plan, from its field or its text."""
    word = item.status.strip().lower().replace("-", "_").replace(" ", "_")
    if word in set(PlanStatus):
        return PlanStatus(word)
    found = status_of(item.text) if not word else None
    if found is None:
        raise InputError(
            f"no status {item.status or item.text!r}",
            hint=f"one of {', '.join(status.value for status in PlanStatus)}",
        )
    return found


def file_kind(kind: MemoryKind) -> FileKind:
    """Return the kind of file that holds decisions, or lessons."""
    return FileKind.DECISIONS if kind is MemoryKind.DECISION else FileKind.LESSONS


def likely_title(item: MemoryItem) -> str:
    """Return a title for an item that could not be prepared."""
    title = redact(item.title or item.plan or title_of(item.text[:MAX_CHARACTERS])).text
    return " ".join(title.split())[:TITLE_CHARACTERS]


def likely_kind(item: MemoryItem) -> MemoryKind:
    """Return the kind of an item, from its field or its text."""
    return item.kind or kind_of(
        f"{item.title}\n{item.text[:MAX_CHARACTERS]}", has_plan=bool(item.plan), has_status=bool(item.status)
    )


def decide_outcome(
    item: MemoryItem, scope: WorkspaceScope, near: Neighbour | None, rule: OnConflict
) -> SaveOutcome:
    """Return what should happen to an item, given the nearest entry."""
    kind = item.kind or MemoryKind.LESSON
    outcome = SaveOutcome(SaveResult.SAVED, item.title, kind, str(scope))
    if near is None:
        return outcome
    learning, compared = near
    title = learning.entry.title
    existing = outcome._replace(
        path=learning.path, line=learning.entry.line, reason=compared.reason, against=learning.place
    )
    if compared.likeness is not Likeness.CONFLICT:
        return existing._replace(result=SaveResult.MERGED)
    if rule is OnConflict.REFUSE:
        reason = f"{compared.reason}: {title!r} says otherwise"
        return existing._replace(result=SaveResult.CONFLICT, reason=reason)
    verb = "supersedes" if rule is OnConflict.SUPERSEDE else "kept beside"
    return outcome._replace(against=learning.place, reason=f"{verb} {title!r}")
