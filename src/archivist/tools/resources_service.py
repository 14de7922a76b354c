"""Read parts of the bank by their address, for hosts that read resources instead of calling functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from archivist.access.rights import Layer, Verb
from archivist.errors import NotFoundError
from archivist.projects import without_others
from archivist.recall.query import LIVE
from archivist.records import Lesson
from archivist.records.kinds import TEXT_KINDS
from archivist.records.plain import to_plain
from archivist.store.filters import equals, one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

SCHEME = "archivist://"
MEMORY = f"{SCHEME}memory/"
_MARKDOWN, _YAML, _JSON = "text/markdown", "application/yaml", "application/json"
_RECENT = 20


class Address(NamedTuple):
    """A resource as a host lists it."""

    uri: str
    title: str
    description: str
    mime_type: str


ADDRESSES = (
    Address(f"{SCHEME}core", "Core memory", "What is always in context, as text for a prompt.", _MARKDOWN),
    Address(
        f"{SCHEME}lessons/recent",
        "Recent lessons",
        "The lessons of this repository that changed last.",
        _MARKDOWN,
    ),
    Address(f"{SCHEME}plans", "Plans", "The front matter of every plan of the workspace.", _YAML),
)
TEMPLATE = Address(
    f"{MEMORY}{{id}}",
    "A memory",
    "Any record in full by its id, as lessons and hits name it; a workspace's document by its path.",
    _JSON,
)


def read_memory(bank: Bank, name: str) -> tuple[str, str]:
    """Return the kind and the text of a record by its id; no kind for a workspace's document by its path."""
    kind, record = read_record(bank, name)
    return kind, record if isinstance(record, str) else json.dumps(record, ensure_ascii=False, indent=1)


def as_lines(record: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """Yield a record as lines of `name: value`, without the fields that are empty."""
    for name, value in record.items():
        items = value if isinstance(value, list | tuple) else ()
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from as_lines(value, f"{indent}  ")
        elif any(isinstance(item, Mapping) for item in items):
            yield f"{indent}{name}:"
            for number, item in enumerate(items, 1):
                yield from as_lines({str(number): item}, f"{indent}  ")
        elif value not in ("", None, [], ()):
            yield f"{indent}{name}: {_inline(value)}"


def _inline(value: object) -> str:
    return ", ".join(map(_inline, value)) if isinstance(value, list | tuple) else str(value)


def read_record(bank: Bank, name: str) -> tuple[str, str | dict[str, object]]:
    """Return the kind and the fields of a record by its id; of a workspace's document its text alone."""
    text = bank.workspace.text_at(name) if name.endswith(".md") else None
    if text is not None:
        return "", text
    kind, record = bank.ledger.find(name)
    if kind == "document" and record.folder:
        # Reading the source brings its pieces up to date; one whose words changed is gone.
        bank.documents.read(record.source)
        kind, record = bank.ledger.find(name)
    plain: dict[str, object] = to_plain(record)
    if kind in ("episode", "event"):
        plain["provenance"] = bank.runs.provenance(record.run if kind == "event" else record.id).value
    elif kind in TEXT_KINDS:
        with bank.reading() as reader:
            provenance = reader.text_provenance(kind, record)
        plain |= {"provenance": provenance.value} if provenance else {}
    return kind, plain


def read_resource(bank: Bank, uri: str) -> tuple[str, str]:
    """Return the text that lies at an address, and its media type."""
    if uri.startswith(MEMORY) and len(uri) > len(MEMORY):
        kind, text = read_memory(bank, unquote(uri.removeprefix(MEMORY)))
        return text, _JSON if kind else _MARKDOWN
    match uri.removeprefix(SCHEME):
        case "core":
            return bank.core.render(), _MARKDOWN
        case "lessons/recent":
            bank.require(Layer.LESSONS, Verb.READ)
            with bank.reading() as reader:
                own = without_others(reader, "lesson", "repo", bank.folder, bank.root)
                told = (one_of("status", LIVE), equals("is_waiting", 0), *own)
                lessons = reader.select(Lesson, *told, order=("-updated", "-number"), limit=_RECENT)
            lines = [
                f"- {lesson.short_id} ({lesson.status.value}): {f'{lesson.summary} {lesson.rule}'.rstrip()}"
                f"{lesson.provenance.mark}"
                for lesson in lessons
            ]
            return "\n".join(["# Recent lessons", "", *(lines or ["None yet."]), ""]), _MARKDOWN
        case "plans":
            from archivist.workspace.documents import plans_view, to_yaml

            return to_yaml(plans_view(bank.workspace.retrieve_plans())), _YAML
    known = ", ".join(address.uri for address in (*ADDRESSES, TEMPLATE))
    raise NotFoundError("resource", uri, hint=f"one of {known}")
