"""What saving does to one item: the policy, without files. The desk of the workspace does the writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from archivist.capture.redaction import redact
from archivist.errors import InputError
from archivist.workspace import classify, plans, writing
from archivist.workspace.classify import MemoryKind
from archivist.workspace.entries import LearningEntry
from archivist.workspace.learnings import Learning
from archivist.workspace.overviews import clip_text
from archivist.workspace.plans import Plan, PlanStatus
from archivist.workspace.similarity import Comparison, Likeness, Statement, compare
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceScope

MAX_CHARACTERS = 20_000
_ITEM_HINT = "an item has text, and may have kind, title, category, tags, date, scope, plan and status"


class OnConflict(StrEnum):
    """What to do with a statement that contradicts one that is there."""

    REFUSE = "refuse"
    SUPERSEDE = "supersede"
    KEEP_BOTH = "keep_both"


class SaveResult(StrEnum):
    """What became of an item."""

    SAVED = "saved"
    MERGED = "merged"
    KNOWN = "known"
    CONFLICT = "conflict"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """Something to save: a decision, a lesson, or a plan's new status. What is left out is found by rule."""

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
    """What became of one item, where it stands now, and why."""

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
        """Return file and line, as far as there are any."""
        return f"{self.path}:{self.line}" if self.line else self.path


class Neighbour(NamedTuple):
    """An entry that is there, and what the new statement is to it."""

    learning: Learning
    compared: Comparison


def item_from(value: object) -> MemoryItem:
    """Return an item from plain values; raise InputError that names the field which does not fit."""
    if isinstance(value, str):
        return MemoryItem(text=value)
    if not isinstance(value, Mapping):
        raise InputError(f"no item to save: {value!r}", hint=_ITEM_HINT)
    known = {field.name for field in fields(MemoryItem)}
    for key in value:
        if key not in known:
            raise InputError(f"an item has no field {str(key)!r}", hint=_ITEM_HINT)
    tags = value.get("tags") or ()
    if isinstance(tags, str):
        tags = [each.strip() for each in tags.split(",")]
    texts = {key: value[key] for key in known - {"tags", "kind", "date"} if value.get(key) is not None}
    if not isinstance(tags, list | tuple) or not all(
        isinstance(each, str) for each in (*tags, *texts.values())
    ):
        raise InputError("the fields of an item are texts, and its tags a list of them", hint=_ITEM_HINT)
    return MemoryItem(
        **texts, tags=tuple(tags), kind=_parse_kind(value.get("kind")), date=_parse_date(value.get("date"))
    )


def items_from(values: Sequence[object]) -> list[MemoryItem | SaveOutcome]:
    """Return an item for each value, and in the place of one that is none its refusal, with its number."""
    found: list[MemoryItem | SaveOutcome] = []
    for number, value in enumerate(values, 1):
        try:
            found.append(item_from(value))
        except InputError as error:
            told = f"item {number}: {error.message} ({error.hint})"
            title = value.get("title") or value.get("text") if isinstance(value, Mapping) else ""
            named = likely_title(MemoryItem(text=title if isinstance(title, str) else ""))
            found.append(
                SaveOutcome(SaveResult.REFUSED, named or f"item {number}", MemoryKind.LESSON, reason=told)
            )
    return found


def _parse_kind(value: object) -> MemoryKind | None:
    if value is None or value == "":
        return None
    try:
        said = str(value).strip().lower().replace("-", "_").replace(" ", "_")
        return MemoryKind(said if said in set(MemoryKind) else said.removesuffix("s"))
    except ValueError:
        words = ", ".join(kind.value for kind in MemoryKind)
        raise InputError(f"no kind {value!r}", hint=f"one of {words}") from None


def _parse_date(value: object) -> date | None:
    if isinstance(value, date):
        return value
    if value is None or value == "":
        return None
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise InputError(f"{value!r} is no date", hint="write it as YYYY-MM-DD") from None


def prepare_item(item: MemoryItem) -> MemoryItem:
    """Return an item without secrets and with what the caller left out, but for the tags.

    Raise InputError for one that says nothing, or too much.
    """
    if len(item.text) > MAX_CHARACTERS:
        raise InputError(
            f"{len(item.text)} characters are no entry", hint=f"say it in {MAX_CHARACTERS} at most"
        )
    text = redact(item.text).text
    title = " ".join(redact(item.title).text.split())
    kind = likely_kind(item)
    if kind is MemoryKind.PLAN_STATUS:
        return replace(item, text=text.strip(), title=title, kind=kind)
    if not text.strip() and not title:
        raise InputError("nothing to save: the text is empty", hint=_ITEM_HINT)
    body = writing.sanitize_body(text) or title
    if not title:
        title, body = classify.split_title(body)
    title = _clean_title(title)
    whole = f"{title}\n{body}"
    category = " ".join(redact(item.category).text.split()).strip("*:# ")
    tags = tuple(tag for each in item.tags for tag in _split_tags(redact(each).text))
    return replace(
        item,
        text=body,
        title=title,
        kind=kind,
        category=category or classify.category_of(whole, kind),
        tags=tuple(dict.fromkeys(tags)),
    )


def _clean_title(text: str) -> str:
    """Return a title that a heading can hold: one line, no closing marks."""
    title = clip_text(" ".join(text.split()), 2 * classify.TITLE_CHARACTERS).strip()
    while title.endswith("#") and (title.strip("#") == "" or title.rstrip("#").endswith(" ")):
        title = title.rstrip("#").rstrip()
    return title or "Untitled"


def _split_tags(text: str) -> list[str]:
    return [tag for tag in (" ".join(part.split()).strip(" `#*") for part in text.split(",")) if tag]


def choose_scope(
    asked: WorkspaceScope, item: MemoryItem, domains: Sequence[str]
) -> tuple[WorkspaceScope, MemoryItem]:
    """Return where an entry belongs: learnings are kept by workspace and domain.

    A repository becomes a tag of its domain's entry. What is said of a workspace and carries the name of one
    of its domains as a tag belongs to that domain.
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
    """Return a prepared item as the entry that is written, with tags by rule when it has none."""
    tags = item.tags or classify.tags_of(f"{item.title}\n{item.text}", known_tags)
    return LearningEntry(item.title, item.date or today, item.category, tags, item.text, 0, 0)


def find_nearest(
    item: MemoryItem,
    existing: Sequence[Learning],
    cosines: Callable[[Statement, Sequence[Statement]], list[float]],
) -> Neighbour | None:
    """Return the entry that decides what becomes of an item: the same one, else one it contradicts.

    What is said already comes first, since it cannot contradict itself, then a contradiction, then the
    nearest of those that say the same in other words.
    """
    new = Statement(item.title, item.text)
    old = [Statement(each.entry.title, each.entry.text) for each in existing]
    found = [
        Neighbour(learning, compare(statement, new, cosine))
        for learning, statement, cosine in zip(existing, old, cosines(new, old), strict=True)
    ]
    order = (Likeness.EXACT, Likeness.KNOWN, Likeness.CONFLICT, Likeness.MEANING)
    telling = [each for each in found if each.compared.likeness in order]
    return min(
        telling, key=lambda each: (order.index(each.compared.likeness), -each.compared.score), default=None
    )


def merge_item(text: str, near: Neighbour, item: MemoryItem, today: date) -> str:
    """Return a file's text in which an entry has what an item adds: tags, and words that it lacks."""
    entry = near.learning.entry
    own = {tag.casefold() for tag in entry.tags}
    extra = [tag for tag in item.tags if tag.casefold() not in own]
    if near.compared.likeness is Likeness.MEANING:
        is_titled = Statement(item.title, item.text).begins_with_title
        said = item.text if is_titled else writing.join_title(item.title, item.text)
        text = writing.append_note(text, entry, writing.format_addition(said, item.date or today))
    # Tags stand above, so that lines below are where they were when the note was put in.
    return writing.set_tags(text, entry, [*entry.tags, *extra]) if extra else text


def plan_of(existing: Sequence[Plan], item: MemoryItem) -> Plan:
    """Return the plan that an item is about: the one it names, or the only one that its text names."""
    asked = item.plan.strip() or item.title.strip()
    if not asked:
        text = item.text.casefold()
        found = [plan for plan in existing if plan.name.casefold() in text or plan.id.casefold() in text]
        asked = found[0].path if len(found) == 1 else item.text
    return plans.find_plan(existing, asked)


def new_status(item: MemoryItem) -> PlanStatus:
    """Return the status that an item gives a plan, by its word or by its text."""
    said = item.status.strip().lower().replace("-", "_").replace(" ", "_")
    if said in set(PlanStatus):
        return PlanStatus(said)
    found = classify.status_of(item.text) if not said else None
    if found is None:
        raise InputError(
            f"no status {item.status or item.text!r}",
            hint=f"one of {', '.join(each.value for each in PlanStatus)}",
        )
    return found


def file_kind(kind: MemoryKind) -> FileKind:
    """Return the kind of file that holds decisions, or lessons."""
    return FileKind.DECISIONS if kind is MemoryKind.DECISION else FileKind.LESSONS


def likely_title(item: MemoryItem) -> str:
    """Return what to call an item that could not be prepared."""
    said = redact(item.title or item.plan or classify.title_of(item.text[:MAX_CHARACTERS])).text
    return " ".join(said.split())[: classify.TITLE_CHARACTERS]


def likely_kind(item: MemoryItem) -> MemoryKind:
    """Return what an item is, or seems to be."""
    return item.kind or classify.kind_of(
        f"{item.title}\n{item.text[:MAX_CHARACTERS]}", has_plan=bool(item.plan), has_status=bool(item.status)
    )


def decide_outcome(
    item: MemoryItem, scope: WorkspaceScope, near: Neighbour | None, rule: OnConflict
) -> SaveOutcome:
    """Say what is to become of an item, given the entry that it meets."""
    kind = item.kind or MemoryKind.LESSON
    outcome = SaveOutcome(SaveResult.SAVED, item.title, kind, str(scope))
    if near is None:
        return outcome
    learning, compared = near
    met = outcome._replace(path=learning.path, line=learning.entry.line, reason=compared.reason)
    match compared.likeness:
        case Likeness.CONFLICT if rule is OnConflict.REFUSE:
            return met._replace(
                result=SaveResult.CONFLICT,
                against=learning.place,
                reason=f"{compared.reason}: {learning.entry.title!r} says otherwise",
            )
        case Likeness.CONFLICT if rule is OnConflict.SUPERSEDE:
            return outcome._replace(against=learning.place, reason=f"supersedes {learning.entry.title!r}")
        case Likeness.CONFLICT:
            return outcome._replace(against=learning.place, reason=f"kept beside {learning.entry.title!r}")
        case _:
            return met._replace(result=SaveResult.MERGED, against=learning.place)
