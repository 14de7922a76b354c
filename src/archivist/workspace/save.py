"""Classify a text by rule, and decide what saving does to one item: pure policy.

`saving_service.py` reads and writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

from archivist.capture.redaction import redact
from archivist.errors import InputError
from archivist.reading.similarity import Comparison, Likeness, Statement, compare
from archivist.text import without_controls
from archivist.workspace import learnings
from archivist.workspace.documents import Plan, PlanStatus, find_plan, strip_markup
from archivist.workspace.learnings import Learning, LearningEntry
from archivist.workspace.terms import TOOLS
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceScope

MAX_CHARACTERS = 20_000
_LONG_TITLE = 66
_REFUSED_CHARACTERS = 100
_MAX_TAGS = 4
_ITEM_HINT = "an item has text, and may have kind, title, category, tags, date, scope, plan and status"
_CODE = re.compile(r"`([^`\n]{2,40})`")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*")
_SPOKEN = re.compile(r"(?<![\w.+#-])[\w.+#-]*\w")
# A dot that stands alone is a name, as in `COPY . /app`.
_SENTENCE_END = re.compile(r"(?<=\S[.!?])\s|\n")
_BREAKS = re.compile(r"(?<!\s)\s++(?:—|--|-)\s|[:;]\s")


class MemoryKind(StrEnum):
    """What can be saved."""

    DECISION = "decision"
    LESSON = "lesson"
    PLAN_STATUS = "plan_status"


def _compile_any(patterns: str) -> re.Pattern[str]:
    """Return a pattern that matches any of these, each at the start of a word."""
    return re.compile(rf"\b(?:{'|'.join(patterns.split())})", re.IGNORECASE)


# How people say what shall be so, and what happened.
_DECISION = _compile_any(
    r"decid decision chose choose pick(?:ed)?\b adopt agreed settled prefer over\b instead\sof rather\b "
    r"convention policy rationale trade-?off standardi[sz]e let's\b "
    r"we(?:'ll|'re|\s(?:will|shall|are|stay|keep|use))\b "
    r"we\sno\slonger stop(?:ped)?\susing deprecated\b "
    r"go(?:ing)?\s(?:with|forward) from\snow\son switch mov(?:e|ing)\s(?:to|from) must\b shall\b "
    r"should\b may\b will\sbe only\b always\b never\b every\b all\b don't\b stay"
)
_ORDER = re.compile(
    r"\s*(?:use|keep|store|pin|adopt|prefer|avoid|always|never|no|all|every|new|don't|do not|only|drop|write"
    r"|put)\b",
    re.IGNORECASE,
)
_LESSON = _compile_any(
    r"root\scause turn(?:s|ed)\sout fail error bugs?\b br(?:eak|oke) fix gotcha learn(?:ed|t)\b mistake hang "
    r"crash flaky leak caused workaround unless silent unexpected slow timed?\s?out missing wrong stale "
    r"without because since\b when\b if\b after\b until\b cannot\b can't\b took\b ignor watch\sout "
    r"next\stime doesn't\b didn't\b was(?:n't)?\b were\b had\b has\sto\b need(?:s|ed)?\sto\b means\b "
    r"made\b by\sitself not\s\w+ed\b"
)
# Somebody chose: whatever follows as the reason is no lesson.
_CHOICE = _compile_any(
    r"decided\b decision\b chose\b chosen\b picked\b (?:we|team|all)\sagreed\b "
    r"settled\son\b opted\s(?:for|to)\b "
    r"went\s(?:with|for)\b going\swith\b adopted\b confirmed(?::|\swith|\sthat) "
    r"we(?:'re|\sare|\swill|'ll)?\s(?:now\s)?(?:drop|mov|switch|migrat|standardi[sz]|stay|stick)(?:e|s|es|p?ing)?\b"
)
_CHANGE = re.compile(r"\s*(?:moving|switching|migrating|dropping|standardi[sz]ing)\b", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since|so that|as|after|due to|until)\b|[;:]\s", re.IGNORECASE)
# The categories of each kind with their words; the first wins a tie.
_CATEGORIES: dict[MemoryKind, dict[str, re.Pattern[str]]] = {
    kind: {name: _compile_any(patterns) for name, patterns in categories.items()}
    for kind, categories in {
        MemoryKind.DECISION: {
            "architecture": r"architect model\b modul service component monolith schema state\b layer api\b "
            r"queue event database store design boundar split tenant replica primary through\b between\b",
            "dependency": r"dependenc librar package version upgrad v\d \d+\.\d pin lock\s?file "
            r"replace drop support vendor fork",
            "tooling": r"tool lint ci\b build bundler editor pnpm npm yarn docker pipeline "
            r"format(?:ter|ting) hooks? actions?\b runner ruff pre-commit",
            "convention": r"convention nam(?:e|ing) style branch commit review always never messages? "
            r"docstring comment singular plural prefix suffix case write",
        },
        MemoryKind.LESSON: {
            "testing": r"tests?\b testing mock fixture suite snapshot flaky e2e assert coverage pytest jest",
            "performance": r"slow fast memory\b ram\b latency cach cpu\b throughput quer(?:y|ies)\b index "
            r"seconds\b (?:\d+\s)?ms\b [gm]b\b n\+1 optimi[sz]",
            "configuration": r"config setting env(?:ironment)?\b variable flag option path permission "
            r"default [A-Z]+_[A-Z]+ \w+\.(?:ya?ml|toml|ini|conf|env)\b parameter set\b unset overrid",
            "integration": r"integrat api\b endpoint webhook client service proxy auth token upstream sdk\b",
            "debugging": r"error bug fail crash hang trace break broke null pointer off-by-one wrong",
        },
    }.items()
}
_DEFAULT_CATEGORY = {MemoryKind.DECISION: "convention", MemoryKind.LESSON: "debugging"}
# Of two that match, the one that is less complete comes first.
_STATUS_WORDS = {
    status: _compile_any(patterns)
    for status, patterns in {
        PlanStatus.ABANDONED: r"abandon cancel dropped scrap g[ai]ven?\sup won't\b will\snot\b no\slonger "
        r"obsolete shelved discard reject called\soff not\sgoing\sto stopped",
        PlanStatus.NEW: r"(?:not|\w+n't|never|nobody|nothing|no\sone|yet\sto|to)\s(?:\w+\s){0,3}"
        r"(?:start|beg[aiu]n|done\b) not\syet backlog planned reopen to-?do\b queued upcoming",
        PlanStatus.PARTIAL: r"part(?:ial|ly|s)? half except mostly most\sof almost nearly remain rest\b "
        r"still\s(?:missing|open|to\sdo) \d+\s?% "
        r"\w+\s(?:out\s)?of\s(?:the\s)?(?:\d+|two|three|four|five|six|seven|eight|nine|ten)\b",
        PlanStatus.IN_PROGRESS: r"(?:in[\s_-])?progress start beg[aiu]n work(?:ing)?\son wip\b under\s?way "
        r"being ongoing current continu",
        PlanStatus.DONE: r"done\b finish complete implemented ship deliver merged released closed wrapped "
        r"landed live\b",
    }.items()
}
# A plan that exists: "the cache plan", not "write a plan".
_PLAN = re.compile(r"\s*+(?:plan\b|.*\b(?:the|this|our) (?:\S+ ){0,3}plan\b)", re.IGNORECASE)


def kind_of(text: str, *, has_plan: bool = False, has_status: bool = False) -> MemoryKind:
    """Return whether a text is a decision, a lesson or a plan's status; a lesson when it is a tie."""
    if has_plan or has_status or (_PLAN.match(text) and status_of(text) is not None):
        return MemoryKind.PLAN_STATUS
    plain = text.lower().strip()
    choice = _CHOICE.search(plain) or _CHANGE.match(plain)
    if choice is not None:
        reason = _REASON.search(plain, choice.end())
        plain = plain[: reason.start()] if reason else plain
    chosen, learnt = (len(set(pattern.findall(plain))) for pattern in (_DECISION, _LESSON))
    chosen += bool(_ORDER.match(text)) + 2 * (choice is not None)
    return MemoryKind.DECISION if chosen > learnt else MemoryKind.LESSON


def status_of(text: str) -> PlanStatus | None:
    """Return the plan status that a text names; of two, the one that is less complete."""
    return next((status for status, pattern in _STATUS_WORDS.items() if pattern.search(text)), None)


def category_of(text: str, kind: MemoryKind) -> str:
    """Return the documented category whose words are most frequent in a text."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _CATEGORIES.get(kind, {}).items()}
    best = max(counts, key=counts.__getitem__, default="")
    return best if counts.get(best) else _DEFAULT_CATEGORY.get(kind, "other")


def split_title(text: str) -> tuple[str, str]:
    """Return a title for a text, and the text without the first sentence when that is the title."""
    title = title_of(text)
    first, *rest = _SENTENCE_END.split(text.strip(), maxsplit=1)
    body = rest[0].strip() if rest and first.strip(" .#-*>") == title else ""
    return title, body or text


def title_of(text: str) -> str:
    """Return a title: the first sentence, or its first clause when the sentence is long; never a cut one."""
    first = strip_markup(_SENTENCE_END.split(text.strip(), maxsplit=1)[0]).strip(" .#-*>")
    head = _BREAKS.split(first, maxsplit=1)[0]
    if len(first) > _LONG_TITLE and len(head.split()) > 2:
        first = head
    return first


def tags_of(text: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return tags for a text: known tags that it contains, its code words, and the tools that it names."""
    spoken = _SPOKEN.findall(text.lower())
    joined = " ".join(["", *spoken, ""])
    named = [tag for tag in known if len(tag) > 2 and f" {tag.lower()} " in joined]
    code = [each.strip() for each in _CODE.findall(text.lower()) if _NAME.fullmatch(each.strip())]
    found = dict.fromkeys([*named, *code, *(word for word in spoken if word in TOOLS)])
    return tuple(found)[:_MAX_TAGS]


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


def _plain(value: Any) -> Any:
    """Return a text as a file can hold it: a control character makes it binary to search and to git."""
    return without_controls(value.encode(errors="replace").decode()) if isinstance(value, str) else value


def item_from(value: object) -> MemoryItem:
    """Return an item from plain values; raise InputError that names the wrong field."""
    if isinstance(value, str):
        return MemoryItem(text=_plain(value))
    if not isinstance(value, Mapping):
        raise InputError(f"{value!r} is not an item", hint=_ITEM_HINT)
    known = {field.name for field in fields(MemoryItem)}
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise InputError(f"an item has no field {str(unknown)!r}", hint=_ITEM_HINT)
    given = {key: _plain(each) for key, each in value.items() if each not in (None, "")}
    kind, day, tags = given.pop("kind", None), given.pop("date", None), given.pop("tags", ())
    word = _normalize_word(str(kind))
    named = next((each for each in MemoryKind if word in (each, f"{each}s")), None)
    if kind is not None and named is None:
        raise InputError(f"{kind!r} is not a kind", hint=f"one of {', '.join(MemoryKind)}")
    tags = [tag.strip() for tag in tags.split(",")] if isinstance(tags, str) else tags
    is_list = isinstance(tags, list | tuple)
    if not is_list or not all(isinstance(text, str) for text in (*tags, *given.values())):
        raise InputError("the fields of an item are texts, and its tags a list of texts", hint=_ITEM_HINT)
    try:
        date_of_item = day if day is None or isinstance(day, date) else date.fromisoformat(str(day).strip())
    except ValueError:
        raise InputError(f"{day!r} is not a date", hint="write it as YYYY-MM-DD") from None
    return MemoryItem(**given, tags=tuple(tags), kind=named, date=date_of_item)


def _normalize_word(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")


def items_from(values: Sequence[object]) -> list[MemoryItem | SaveOutcome]:
    """Return an item for each value; an invalid value becomes a refusal with its number."""
    found: list[MemoryItem | SaveOutcome] = []
    for number, value in enumerate(values, 1):
        try:
            found.append(item_from(value))
        except InputError as error:
            said = value.get("title") or value.get("text") if isinstance(value, Mapping) else ""
            title = likely_title(MemoryItem(text=said if isinstance(said, str) else "")) or f"item {number}"
            reason = f"item {number}: {error.message} ({error.hint})"
            found.append(SaveOutcome(SaveResult.REFUSED, title, MemoryKind.LESSON, reason=reason))
    return found


def prepare_item(item: MemoryItem) -> MemoryItem:
    """Return an item without secrets and with its missing fields filled in, except for the tags.

    Raise InputError for an item that is empty or too long.
    """
    if len(item.text) > MAX_CHARACTERS:
        hint = f"use at most {MAX_CHARACTERS} characters"
        raise InputError(f"{len(item.text)} characters are too long for an entry", hint=hint)
    text, title, category = (redact(each).text for each in (item.text, item.title, item.category))
    title, category = " ".join(title.split()), " ".join(category.split())
    kind = likely_kind(item)
    if kind is MemoryKind.PLAN_STATUS:
        return replace(item, text=text.strip(), title=title, kind=kind)
    if not text.strip() and not title:
        raise InputError("nothing to save: the text is empty", hint=_ITEM_HINT)
    body = learnings.sanitize_body(text) or title
    if not title:
        title, body = split_title(body)
    # Markdown would read marks at the end of a heading as its closing sequence.
    title = learnings.strip_speaker(" ".join(title.split())).strip()
    title = re.sub(r"(?:^|(?<!\s)\s++)#++$", "", title)
    tags = (part for tag in item.tags for part in redact(tag).text.split(","))
    words = (" ".join(tag.split()).strip(" `#*") for tag in tags)
    return replace(
        item,
        text=body,
        title=title or "Untitled",
        kind=kind,
        category=category.strip("*:# ") or category_of(f"{title}\n{body}", kind),
        tags=tuple(dict.fromkeys(tag for tag in words if tag)),
    )


def likely_title(item: MemoryItem) -> str:
    """Return a title for an item that could not be prepared."""
    title = redact(item.title or item.plan or title_of(item.text[:MAX_CHARACTERS])).text
    return " ".join(title.split())[:_REFUSED_CHARACTERS]


def likely_kind(item: MemoryItem) -> MemoryKind:
    """Return the kind of an item, from its fields or its text."""
    text = f"{item.title}\n{item.text[:MAX_CHARACTERS]}"
    return item.kind or kind_of(text, has_plan=bool(item.plan), has_status=bool(item.status))


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
    named = [domain for domain in domains if domain.casefold() in {tag.casefold() for tag in item.tags}]
    if len(asked.parts) == 1 and len(named) == 1:
        return WorkspaceScope(asked.workspace, named[0]), item
    return asked, item


def find_nearest(
    item: MemoryItem,
    existing: Sequence[Learning],
    cosines: Callable[[Statement, Sequence[Statement]], list[float]],
    said_by: str = "",
) -> tuple[Learning, Comparison] | None:
    """Return the entry that decides the outcome of an item, and how they compare, or None.

    An entry that already says it comes first, then one that it contradicts, people's before agents', then the
    nearest of those that say the same in other words, first those of the same author, then what is only much
    alike. That an agent said it before makes nothing known that a person says.
    """
    new = Statement(item.title, item.text)
    old = [Statement(learning.entry.title, learning.entry.text) for learning in existing]
    order = (Likeness.KNOWN, Likeness.CONFLICT, Likeness.MEANING, Likeness.DIFFERENT)
    found = []
    for learning, statement, cosine in zip(existing, old, cosines(new, old), strict=True):
        compared = compare(statement, new, cosine)
        if compared.likeness is Likeness.KNOWN and learning.entry.said_by and not said_by:
            compared = compared._replace(likeness=Likeness.MEANING)
        if compared.reason:
            by = "" if compared.likeness is Likeness.CONFLICT else said_by
            rank = order.index(compared.likeness), learning.entry.said_by != by, -compared.score
            found.append((rank, (learning, compared)))
    return min(found, key=lambda ranked: ranked[0])[1] if found else None


def follow_kind(item: MemoryItem, given: MemoryItem, near: tuple[Learning, Comparison]) -> MemoryItem:
    """Return an item of the kind of what it contradicts or repeats, unless the caller named one."""
    learning, compared = near
    if given.kind is not None or compared.likeness is Likeness.DIFFERENT:
        return item
    kind = MemoryKind.DECISION if learning.kind is FileKind.DECISIONS else MemoryKind.LESSON
    category = given.category or category_of(f"{item.title}\n{item.text}", kind)
    return replace(item, kind=kind, category=category)


def supersedes(near: tuple[Learning, Comparison] | None, rule: OnConflict, said_by: str = "") -> bool:
    """Say whether a new statement supersedes the nearest entry; an agent supersedes none of a person."""
    if near is None or near[1].likeness is not Likeness.CONFLICT or rule is not OnConflict.SUPERSEDE:
        return False
    return not said_by or bool(near[0].entry.said_by)


def decide_outcome(
    item: MemoryItem,
    scope: WorkspaceScope,
    near: tuple[Learning, Comparison] | None,
    rule: OnConflict,
    said_by: str = "",
) -> SaveOutcome:
    """Return what should happen to an item, given the nearest entry.

    Only statements of the same author are merged, so that nobody's words stand in another's name.
    """
    outcome = SaveOutcome(SaveResult.SAVED, item.title, item.kind or MemoryKind.LESSON, str(scope))
    if near is None:
        return outcome
    learning, compared = near
    title, is_conflict = learning.entry.title, compared.likeness is Likeness.CONFLICT
    is_foreign = compared.likeness is Likeness.MEANING and learning.entry.said_by != said_by
    is_alike = compared.likeness is Likeness.DIFFERENT
    if is_alike or is_foreign or (is_conflict and rule is not OnConflict.REFUSE):
        reason = f"{'supersedes' if supersedes(near, rule, said_by) else 'kept beside'} {title!r}"
        reason += f", {compared.reason}" if is_alike else ""
        if said_by and not learning.entry.said_by:
            reason += ", which a person wrote: a person decides"
        return outcome._replace(against=learning.place, reason=reason)
    return outcome._replace(
        result=SaveResult.CONFLICT if is_conflict else SaveResult.MERGED,
        path=learning.path,
        line=learning.entry.line,
        reason=f"{compared.reason}: {title!r} says otherwise" if is_conflict else compared.reason,
        against=learning.place,
    )


def merge_item(text: str, entry: LearningEntry, likeness: Likeness, item: MemoryItem, today: date) -> str:
    """Return a file's text with what an item adds to an entry: tags, and a note with the new words."""
    own = {tag.casefold() for tag in entry.tags}
    extra = [tag for tag in item.tags if tag.casefold() not in own]
    if likeness is Likeness.MEANING:
        has_title = Statement(item.title, item.text).begins_with_title
        title = "" if has_title else item.title
        note = learnings.format_addition(item.text, item.date or today, title)
        text = learnings.append_note(text, entry, note)
    # The tags are above the note: setting them last keeps the note's line number valid.
    return learnings.set_mark(text, entry, "Tags", ", ".join([*entry.tags, *extra])) if extra else text


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
    word = _normalize_word(item.status)
    found = next((status for status in PlanStatus if status == word), None)
    found = found or (None if word else status_of(item.text))
    if found is None:
        hint = f"one of {', '.join(PlanStatus)}"
        raise InputError(f"no status {item.status or item.text!r}", hint=hint)
    return found
