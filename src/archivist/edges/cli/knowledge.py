"""Commands about knowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, bank_command, global_option, list_changes, list_records
from archivist.edges.cli.wording import field_lines, pluralize, shorten
from archivist.edges.views import conflict_view, history_views, table_view

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Fact
    from archivist.store.ledger import LedgerChange

# A row stays on one line of a wide terminal; `show` prints the whole value.
_ROW_CHARACTERS = 100
_VALUE_CHARACTERS = 48

knowledge = click.Group(
    "knowledge", help="Store and find facts by category and key, and decide between sources that disagree."
)


@bank_command(knowledge, "list", has_global=True)
@click.option("--category", metavar="C", default="", help="Only of this category.")
@click.option("--key", metavar="K", default="", help="Only with this key.")
@click.option("--matching", "text", metavar="TEXT", default="", help="Only facts that match, best first.")
@click.option("--project", metavar="P", default="", help="Only of this project.")
@click.option("--min-confidence", type=float, default=0.0, metavar="X", help="0 to 1.")
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
def list_(bank: Bank, /, **filters: Any) -> Answer:
    """List the facts by category and key."""
    sure = ("Sure", lambda fact: f"{fact.confidence:g}")
    value = ("Value", lambda fact: shorten(fact.value, _ROW_CHARACTERS))
    columns = ("Fact", _fact_name), sure, "source", value
    return list_records("facts", bank.knowledge.query(**filters), table_view, *columns, empty="no facts")


@bank_command(knowledge, has_global=True)
@click.argument("name", metavar="FACT")
def show(bank: Bank, name: str) -> Answer:
    """Print all fields of FACT, named as category/key or by its id, and the open conflicts about it."""
    fact = bank.knowledge.find(name)
    conflicts = [conflict for conflict in bank.knowledge.conflicts() if conflict.fact == fact.id]
    names = ("project", "source", "confidence", "origin", "tags", "created", "updated", "id")
    fields = {name: getattr(fact, name) for name in names} | {"confidence": f"{fact.confidence:g}"}
    disputes = [
        ("disputed", f"{each.lost_source} says {shorten(each.lost, _VALUE_CHARACTERS)!r} ({each.id})")
        for each in conflicts
    ]
    value = (f"  {line}" for line in fact.value.splitlines())
    return Answer(
        {"fact": table_view(fact), "conflicts": [conflict_view(conflict) for conflict in conflicts]},
        "\n".join((f"{fact.category}/{fact.key}", *value, "", *field_lines((*fields.items(), *disputes)))),
    )


@bank_command(knowledge, "set", has_global=True)
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--source", metavar="WHO", default="", help="Who says it; by default the actor.")
@click.option("--confidence", type=float, default=1.0, metavar="X", help="0 to 1; 1 by default.")
@click.option("--project", metavar="P", default="", help="The project that it holds for.")
@options.tag
def set_(bank: Bank, /, category: str, key: str, value: str, **fields: Any) -> Answer:
    """Store VALUE under CATEGORY and KEY; a VALUE of - is read from stdin.

    If another source says something else, the value with the higher confidence wins, the newer one on a tie.
    The other value is kept as a conflict.
    """
    result = bank.knowledge.put(category, key, options.read_text_argument(value), **fields)
    fact, conflict = result.fact, result.conflict
    view = {
        "fact": table_view(fact),
        "changed": result.is_changed,
        "conflict": conflict_view(conflict) if conflict else None,
    }
    notes: tuple[str, ...] = ()
    if conflict is not None and conflict.status == "open":
        decide = f"archivist knowledge decide {conflict.id} --uphold or --reverse"
        notes = (f"conflict {conflict.id}: {conflict.reason}", f"hint: to decide it: {decide}")
    elif conflict is not None:
        notes = (f"unchanged: {conflict.decided_by} decided against it ({conflict.id})",)
    return Answer(view, f"{_fact_name(fact)}  {shorten(fact.value, _ROW_CHARACTERS)}", notes)


@bank_command(knowledge, has_global=True)
@click.argument("names", metavar="FACT…", nargs=-1, required=True)
def remove(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Remove facts: all of them, or none if one is unknown. Their history stays."""
    with bank.transaction():
        removed = [bank.knowledge.remove(name) for name in dict.fromkeys(names)]
    return Answer(
        {"facts": [table_view(fact) for fact in removed]},
        f"{pluralize(len(removed), 'fact')} removed: {', '.join(map(_fact_name, removed))}",
    )


@bank_command(knowledge, has_global=True)
@click.argument("name", metavar="[FACT]", default="")
@click.option("--all", "with_decided", is_flag=True, help="Include decided conflicts.")
def conflicts(bank: Bank, name: str, with_decided: bool) -> Answer:
    """List the open conflicts between sources, all or about FACT."""
    found = bank.knowledge.conflicts(name, with_decided=with_decided)
    fact = ("Fact", lambda each: f"{each.category}/{each.key}")
    kept = ("Kept", lambda each: f"{shorten(each.kept, _VALUE_CHARACTERS)} ({each.kept_source})")
    lost = ("Lost", lambda each: f"{shorten(each.lost, _VALUE_CHARACTERS)} ({each.lost_source})")
    columns = "id", "status", fact, kept, lost, ("Why", "reason")
    nothing = "no conflicts" if with_decided else "no open conflicts"
    return list_records("conflicts", found, conflict_view, *columns, empty=nothing)


@bank_command(knowledge)
@click.argument("name", metavar="CONFLICT")
@click.option("--uphold", "choice", flag_value="uphold", help="The current value is right.")
@click.option("--reverse", "choice", flag_value="reverse", help="The losing value is right and replaces it.")
@global_option
def decide(bank: Bank, name: str, choice: str | None) -> Answer:
    """Decide CONFLICT, named by its id or by its fact. With a fact, --uphold decides all its conflicts."""
    # No default: a slip would overrule one of the sources.
    if choice is None:
        raise click.UsageError(
            "say --uphold or --reverse\nhint: archivist knowledge conflicts lists both sides"
        )
    facts = bank.knowledge
    decided = facts.uphold(name) if choice == "uphold" else [facts.decide(name, for_lost=True)]
    last = decided[-1]
    fact = facts.get(last.category, last.key, project=str(last.extra.get("project", "")))
    value = shorten(fact.value, _ROW_CHARACTERS) if fact else "-"
    view = {
        "conflict": conflict_view(last),
        "conflicts": [conflict_view(conflict) for conflict in decided],
        "fact": table_view(fact) if fact else None,
    }
    notes = (f"{pluralize(len(decided), 'conflict')} decided",) if len(decided) > 1 else ()
    return Answer(view, f"{last.category}/{last.key}  {last.status}: {value}", notes)


@bank_command(knowledge, "import", has_global=True)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path())
def import_(bank: Bank, paths: tuple[str, ...]) -> Answer:
    """Import shared-context Markdown: each section is a fact. Importing again updates the facts."""
    result = bank.knowledge.import_markdown(paths)
    counts = result._asdict()
    del counts["problems"]
    shown = (f"{count} {name}" for name, count in counts.items() if count or name != "conflicts")
    # Not a problem of the import: the values are stored, and somebody decides later.
    hint = "hint: archivist knowledge conflicts lists what other sources say"
    return Answer(
        {**counts, "problems": list(result.problems)},
        f"facts: {', '.join(shown)}",
        (hint,) if result.conflicts else (),
        problems=result.problems,
    )


@bank_command(knowledge, has_global=True)
@click.argument("name", metavar="FACT")
def history(bank: Bank, name: str) -> Answer:
    """Print the history of FACT: each change and conflict, who made it, and why a value won."""
    changes = bank.knowledge.history(name)
    views = history_views(changes)
    for view, change in zip(views, changes, strict=True):
        view["change"] = _describe_change(change)
    return list_changes(views)


def _describe_change(change: LedgerChange) -> str:
    after: dict[str, Any] | None = change.after
    if change.is_erased:
        return "(erased)"
    if after is None:
        return "removed"
    if change.entry.kind == "conflict":
        lost = f"{shorten(after['lost'], _VALUE_CHARACTERS)!r} of {after['lost_source']}"
        by = f" by {after['decided_by']}" if after["decided_by"] else ""
        return f"{lost} lost, {after['status']}{by}: {after['reason']}"
    value = shorten(after["value"], _VALUE_CHARACTERS)
    return f"{value!r} of {after['source']}, sure {after['confidence']:g}"


def _fact_name(fact: Fact) -> str:
    return f"{fact.category}/{fact.key}" + (f" ({fact.project})" if fact.project else "")
