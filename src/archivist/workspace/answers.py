"""Return answers in the documented shapes: plain values with their keys in order, and YAML of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archivist.workspace import front_matter
from archivist.workspace.documents import OverviewAnswer, Plan, Tier
from archivist.workspace.learnings import Learning, Learnings

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
    return {
        "overviews": [
            {
                "scope": answer.overview.folder,
                "tier": answer.tier.value,
                "content" if answer.tier is Tier.T1 else "abstract": answer.text,
                "_meta": {
                    "document_path": answer.overview.path,
                    "document_id": answer.overview.folder,
                },
            }
            for answer in answers
        ]
    }


def learnings_view(found: Learnings) -> View:
    """Return decisions and lessons as `retrieve_learnings` answers."""
    return {
        "decisions": [_learning_view(learning) for learning in found.decisions],
        "lessons": [_learning_view(learning) for learning in found.lessons],
    }


def _learning_view(learning: Learning) -> View:
    entry = learning.entry
    fields = {
        "date": entry.date.isoformat() if entry.date else "",
        "category": entry.category,
        "tags": list(entry.tags),
        "superseded_by": entry.superseded_by,
    }
    view: View = {"content": learning.content}
    view |= {key: value for key, value in fields.items() if value}
    return view | {"_meta": {"document_path": learning.path, "document_id": learning.id}}


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
