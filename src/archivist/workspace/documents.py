"""Plans and overviews: their front matter, their abstract (T0), their text (T1, T2), and answers as YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from archivist.archive.chunking import block_tokens
from archivist.cold_start import lazy_pattern
from archivist.errors import InputError, NotFoundError, without_middle
from archivist.text import CHARACTERS_PER_TOKEN
from archivist.workspace import front_matter
from archivist.workspace.topology import LintProblem, LintSeverity, WorkspaceFile, WorkspaceScope

if TYPE_CHECKING:
    from archivist.workspace.learnings import Learning, Learnings
    from archivist.workspace.skills_service import Skill


class Tier(StrEnum):
    """How much of a document is returned: its abstract, its working context, or all of it."""

    T0 = "T0"
    T1 = "T1"
    T2 = "T2"


def field_text(value: object) -> str:
    """Return a field as one line of text: a date as YYYY-MM-DD, a list or mapping as an empty text."""
    if isinstance(value, str):
        return " ".join(value.split())
    if value is None or isinstance(value, list | dict):
        return ""
    day = front_matter.day_of(value)
    return day.isoformat() if day else " ".join(str(value).split())


def has_any_tag(own: Iterable[str], asked: Sequence[str]) -> bool:
    """Say whether one of the asked tags is present, whatever its case; true when none is asked for."""
    if not asked:
        return True
    return not {tag.casefold() for tag in own}.isdisjoint(tag.strip().casefold() for tag in asked)


class PlanStatus(StrEnum):
    """How far a plan is."""

    NEW = "new"
    IN_PROGRESS = "in_progress"
    PARTIAL = "partial"
    DONE = "done"
    ABANDONED = "abandoned"


class Plan(NamedTuple):
    """A plan's front matter as it was written, and its path; a missing field is empty.

    `path` and `id` serve follow-up calls; no filter uses them.
    """

    name: str
    description: str
    status: str
    created: str
    updated: str
    tags: tuple[str, ...]
    scope: WorkspaceScope
    path: str
    id: str
    problems: tuple[LintProblem, ...] = ()


def read_plan(text: str, place: WorkspaceFile) -> Plan:
    """Read a plan; without front matter its name comes from the file name and it has no status."""
    read = front_matter.read(text, place.name)
    values = read.values
    return Plan(
        field_text(values.get("name")) or title_from(place.stem),
        field_text(values.get("description")),
        field_text(values.get("status")),
        field_text(values.get("created")),
        field_text(values.get("updated")),
        front_matter.words_of(values.get("tags")),
        place.scope,
        place.name,
        place.stem,
        read.problems,
    )


def title_from(stem: str) -> str:
    """Return a title for a file name, without the date before it."""
    head, _, rest = stem.partition("-")
    bare = rest if head.isdigit() and rest else stem
    return bare.replace("-", " ").replace("_", " ").strip().capitalize() or stem


def unique_ids(found: Sequence[tuple[str, str]]) -> list[str]:
    """Return the ids of documents, each given with its path: one that two documents have gets its path."""
    places: dict[str, set[str]] = {}
    for name, path in found:
        places.setdefault(name, set()).add(path)
    return [
        "#".join((path.removesuffix(".md"), *name.split("#", 1)[1:])) if len(places[name]) > 1 else name
        for name, path in found
    ]


_DAY_BEFORE = re.compile(r"^\d{6,8}[-_]")


def find_plan(plans: Sequence[Plan], name: str) -> Plan:
    """Return the plan with an id, path or name; raise NotFoundError for none, InputError for several.

    An id may be given without its date, when only one plan is called so.
    """
    wanted = {name.strip().casefold(), name.strip().casefold().removesuffix(".md")}
    found = []
    for each in plans:
        whole = each.path.removesuffix(".md")
        names = (each.id, each.path, whole, whole.rpartition("/")[2], each.name)
        found += [each] if wanted & {known.casefold() for known in names} else []
    found = found or [each for each in plans if _DAY_BEFORE.sub("", each.id).casefold() in wanted]
    if len(found) == 1:
        return found[0]
    if found:
        paths = ", ".join(sorted(plan.path for plan in found)[:5])
        raise InputError(f"{name!r} names {len(found)} plans", hint=f"name one by its path: {paths}")
    from difflib import get_close_matches

    near = get_close_matches(name, [word for plan in plans for word in (plan.id, plan.name)], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "archivist workspace plans lists them"
    raise NotFoundError("plan", name, hint=hint)


class Overview(NamedTuple):
    """The overview of one scope: its abstract, its text and its path, which no filter uses."""

    name: str
    abstract: str
    tags: tuple[str, ...]
    updated: str
    content: str
    scope: WorkspaceScope
    folder: str
    path: str
    problems: tuple[LintProblem, ...] = ()
    # A text, or the words of a list.
    folder_structure: str | list[str] = ""

    @property
    def full_text(self) -> str:
        """Return the body, below the description where the body does not say it."""
        is_said = " ".join(self.abstract.split()) in " ".join(strip_markup(self.content).split())
        return self.content if is_said else f"{self.abstract}\n\n{self.content}".rstrip("\n") + "\n"


class OverviewAnswer(NamedTuple):
    """An overview with the tier at which it is returned."""

    overview: Overview
    tier: Tier

    @property
    def text(self) -> str:
        """Return the text of this tier."""
        return self.overview.full_text if self.tier is Tier.T1 else self.overview.abstract


def read_overview(text: str, place: WorkspaceFile) -> Overview:
    """Read an overview; without a description its abstract is the first prose of its text."""
    read = front_matter.read(text, place.name)
    values = read.values
    body = trim_body(read.body)
    return Overview(
        field_text(values.get("name")) or first_heading(body) or place.folder,
        field_text(values.get("description")) or abstract_of(body),
        front_matter.words_of(values.get("tags")),
        field_text(values.get("updated")),
        body,
        place.scope,
        place.folder,
        place.name,
        read.problems,
        _structure_of(values.get("folder_structure")),
    )


def _structure_of(value: object) -> str | list[str]:
    """Return a field that describes folders: a text over many lines, or a list of them."""
    if isinstance(value, str):
        return value.strip("\n")
    if isinstance(value, dict):
        return [f"{key}: {field_text(said)}".rstrip(": ") for key, said in value.items()]
    return list(front_matter.words_of(value))


def trim_body(body: str) -> str:
    """Return a body without blank lines around it, with one line end at the end."""
    text = body.replace("\r\n", "\n").strip("\n")
    return f"{text}\n" if text else ""


# The documented size of an abstract is 100 to 200 tokens.
ABSTRACT_TOKENS = 200
_ABSTRACT_CHARACTERS = ABSTRACT_TOKENS * CHARACTERS_PER_TOKEN
_ABSTRACT_SENTENCES = 2
_MIN_WORDS = 4
_LABEL_WORDS = 8
# A label such as `Status: draft`.
_LABEL = lazy_pattern(r"\W*[^\W\d_][\w -]{0,24}\**\s*:\**\s+\S.*|\W*")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])[\"')\]]*\s+(?=[^\W\d_a-z]|[\"'(`\[])|(?<=[\u3002\uff01\uff1f])")
_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_ANCHOR = lazy_pattern(r"(?<!\s)\s*+\{\s*+[#.:][^{}]*\}\s*$")
_HIDDEN = lazy_pattern(
    r"^[ \t]*(?:(```|~~~).*?(?:^[ \t]*\1.*?$|\Z)|<!--.*?(?:-->.*?$|\Z))", re.DOTALL | re.MULTILINE
)
# Badges and markup that Markdown reads as text.
_NOT_PROSE = lazy_pattern(r"\s*(?:\||<|!\[|\[!|:::)")
# An abstract stands at the beginning; a document may be as large as a book.
_READ_CHARACTERS = 20_000


def first_heading(body: str) -> str:
    """Return the text of the first heading, without markup."""
    for line in prose_lines(body):
        if line.startswith("#") and line.strip("# \t"):
            return _ANCHOR.sub("", strip_markup(_ANCHOR.sub("", line.lstrip("#").strip().rstrip("#"))))
    return ""


def abstract_of(body: str) -> str:
    """Return the first two sentences of prose, without markup; empty where there is no prose.

    Labels, badges and admonitions are skipped, and so is a paragraph that only introduces a list.
    """
    for token, inline in pairwise(block_tokens(front_matter.strip_foreign(body)[:_READ_CHARACTERS])):
        if token.type != "paragraph_open" or token.level or inline.content.startswith(("!!!", "???")):
            continue
        lines = [line for line in inline.content.splitlines() if not _NOT_PROSE.match(line)]
        text = strip_markup(" ".join(lines))
        if text.endswith(":"):
            # A sentence that introduces a list says nothing without it.
            text = " ".join(_SENTENCE_END.split(text)[:-1])
        is_label = all(_LABEL.fullmatch(line) and len(line.split()) <= _LABEL_WORDS for line in lines)
        if not is_label and (len(text.split()) >= _MIN_WORDS or text.endswith(_ENDS)):
            return clip_text(first_sentences(text), _ABSTRACT_CHARACTERS)
    return ""


def first_sentences(text: str) -> str:
    """Return the first two sentences of a text."""
    return " ".join(part.strip() for part in _SENTENCE_END.split(text)[:_ABSTRACT_SENTENCES])


def prose_lines(body: str) -> list[str]:
    """Return the lines outside code blocks and comments."""
    return _HIDDEN.sub("", front_matter.strip_foreign(body)).splitlines()


def strip_markup(text: str) -> str:
    """Return a line without links, images, emphasis and code marks."""
    text = re.sub(r"!\[(?:(?!!\[)[^\]])*\]\((?:(?!!\[)[^)])*\)", "", text)
    text = re.sub(r"\[([^\[\]]*)\](?:\((?:(?!\]\()[^)])*\)|\[[^\[\]]*\])", r"\1", text)
    text = re.sub(r"(\*\*|__)(\S(?:.{0,300}?\S)?)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])\*(\w[^*]*)\*(?![\w*])", r"\1", text)
    text = re.sub(r"`([^`]*)`", r"\1", text)
    return " ".join(text.split())


def clip_text(text: str, characters: int) -> str:
    """Return a text that fits, cut after a sentence where possible, else after a word."""
    if len(text) <= characters:
        return text
    head = text[:characters]
    end = max(head.rfind(". "), head.rfind("! "), head.rfind("? "))
    if end > characters // 3:
        return head[: end + 1]
    return head[: head.rfind(" ") if " " in head else characters].rstrip(" ,;:") + " …"


View = dict[str, object]
# Fields of closed sets and tags are written bare, free text in quotes.
_BARE = {"status", "category", "tier"}


def plans_view(plans: Sequence[Plan]) -> View:
    """Return plans as `retrieve_plans` answers."""
    return {"plans": [plan_view(plan) for plan in plans]}


def plan_view(plan: Plan) -> View:
    """Return one plan's front matter (T0)."""
    view: View = {"name": plan.name, "description": plan.description}
    view |= {key: getattr(plan, key) for key in ("status", "created", "updated") if getattr(plan, key)}
    if plan.tags:
        view["tags"] = list(plan.tags)
    return view | {"_meta": {"document_path": plan.path, "document_id": plan.id}}


def overviews_view(answers: Sequence[OverviewAnswer]) -> View:
    """Return overviews as `retrieve_overview` answers."""
    views = []
    for overview, tier in answers:
        view: View = {"scope": overview.folder, "tier": tier.value, "name": overview.name}
        fields: View = {"abstract": overview.abstract, "tags": list(overview.tags)}
        if tier is Tier.T1:
            named = ("updated", "folder_structure")
            fields = {"tags": fields["tags"], **{name: getattr(overview, name) for name in named}}
        view |= {name: value for name, value in fields.items() if value or name == "abstract"}
        view |= {"content": overview.full_text} if tier is Tier.T1 else {}
        meta = {"document_path": overview.path, "document_id": overview.folder}
        views.append({**view, "_meta": meta})
    return {"overviews": views}


def learnings_view(found: Learnings) -> View:
    """Return decisions and lessons as `retrieve_learnings` answers."""
    return {
        "decisions": [learning_view(learning) for learning in found.decisions],
        "lessons": [learning_view(learning) for learning in found.lessons],
    }


def unread_view(problems: Iterable[LintProblem]) -> View:
    """Return what of the files could not be read as meant, each with its place; nothing where all was."""
    errors = [without_middle(str(each)) for each in problems if each.severity is LintSeverity.ERROR]
    return {"unread": errors} if errors else {}


def learning_view(learning: Learning) -> View:
    """Return one decision or lesson."""
    entry = learning.entry
    fields = {
        "date": entry.date.isoformat() if entry.date else "",
        "category": entry.category,
        "tags": list(entry.tags),
        "superseded_by": entry.superseded_by,
        "said_by": entry.said_by,
        "beside": entry.beside,
    }
    view: View = {"content": learning.content}
    view |= {key: value for key, value in fields.items() if value}
    return view | {"_meta": {"document_path": learning.path, "document_id": learning.id}}


def skill_view(skill: Skill) -> View:
    """Return a skill without its text."""
    return {
        **skill.fields,
        **{name: str(getattr(skill, name)) for name in ("name", "scope", "client")},
        "problems": skill.problems,
        "_meta": {"document_path": skill.path, "document_id": skill.name},
    }


def to_yaml(view: Mapping[str, object]) -> str:
    """Return an answer as YAML in the documented style."""
    lines: list[str] = []
    for key, value in view.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{key}:")
            for at, item in enumerate(value):
                fields = [line for name in item for line in _field_lines(name, item[name], "    ")]
                lines += [""] if at else []
                lines += [f"  - {fields[0][4:]}", *fields[1:]]
        else:
            lines += _field_lines(key, value, "")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _field_lines(key: str, value: object, indent: str) -> list[str]:
    if isinstance(value, dict):
        below = (line for name in value for line in _field_lines(name, value[name], indent + "  "))
        return [f"{indent}{key}:", *below]
    if isinstance(value, list):
        return [f"{indent}{key}: {front_matter.format_value(value)}"]
    text = str(value)
    # A literal block needs printable text that starts without an indent and ends with one line end at most.
    is_literal = (
        "\n" in text
        and all(line.replace("\t", " ").isprintable() for line in text.split("\n"))
        and not text.startswith((" ", "\n", "\t"))
        and not text.endswith("\n\n")
    )
    if is_literal:
        ending = "" if text.endswith("\n") else "-"
        block = [f"{indent}  {line}" if line else "" for line in text.removesuffix("\n").split("\n")]
        return [f"{indent}{key}: |{ending}", *block]
    quote = front_matter.quote_if_needed if key in _BARE else front_matter.quote_text
    return [f"{indent}{key}: {quote(text)}"]
