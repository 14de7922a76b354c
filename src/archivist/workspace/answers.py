"""Write answers in the documented shapes: plain values with their keys in order, and YAML of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archivist.workspace import front_matter
from archivist.workspace.learnings import Learning, Learnings
from archivist.workspace.overviews import OverviewAnswer, Tier
from archivist.workspace.plans import Plan

View = dict[str, object]
# Fields of closed sets stand bare, as do tags; whatever is free text stands in quotes.
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
    return {"overviews": [_overview_view(answer) for answer in answers]}


def _overview_view(answer: OverviewAnswer) -> View:
    overview, tier = answer
    return {
        "scope": overview.folder,
        "tier": tier.value,
        "content" if tier is Tier.T1 else "abstract": answer.text,
        "_meta": {"document_path": overview.path, "document_id": overview.folder},
    }


def learnings_view(found: Learnings) -> View:
    """Return decisions and lessons as `retrieve_learnings` answers."""
    return {
        "decisions": [_learning_view(learning) for learning in found.decisions],
        "lessons": [_learning_view(learning) for learning in found.lessons],
    }


def _learning_view(learning: Learning) -> View:
    entry = learning.entry
    view: View = {"content": learning.content}
    if entry.date:
        view["date"] = entry.date.isoformat()
    if entry.category:
        view["category"] = entry.category
    if entry.tags:
        view["tags"] = list(entry.tags)
    if entry.superseded_by:
        view["superseded_by"] = entry.superseded_by
    return view | {"_meta": {"document_path": learning.path, "document_id": learning.id}}


def to_yaml(view: Mapping[str, object]) -> str:
    """Return an answer as YAML in the documented style."""
    lines: list[str] = []
    for key, value in view.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{key}:")
            for place, each in enumerate(value):
                lines += [""] if place else []
                lines += _item_lines(each)
        else:
            lines += _field_lines(key, value, "")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _item_lines(value: Mapping[str, object]) -> list[str]:
    lines = [line for key, each in value.items() for line in _field_lines(key, each, "    ")]
    return [f"  - {lines[0][4:]}", *lines[1:]]


def _field_lines(key: str, value: object, indent: str) -> list[str]:
    if isinstance(value, dict):
        return [
            f"{indent}{key}:",
            *(line for each in value for line in _field_lines(each, value[each], indent + "  ")),
        ]
    if isinstance(value, list):
        return [f"{indent}{key}: {front_matter.format_value(value)}"]
    text = str(value)
    if "\n" in text and _is_literal(text):
        ending = "" if text.endswith("\n") else "-"
        block = [f"{indent}  {line}" if line else "" for line in text.removesuffix("\n").split("\n")]
        return [f"{indent}{key}: |{ending}", *block]
    quote = front_matter.quote_if_needed if key in _BARE else front_matter.quote_text
    return [f"{indent}{key}: {quote(text)}"]


def _is_literal(text: str) -> bool:
    """Say whether a text can stand as a block: printable, not indented at its start, one end at most."""
    is_plain = all(line.replace("\t", " ").isprintable() for line in text.split("\n"))
    return is_plain and not text.startswith((" ", "\n", "\t")) and not text.endswith("\n\n")
