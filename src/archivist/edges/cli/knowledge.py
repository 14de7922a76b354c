"""Commands about knowledge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import conflict_view, table_view

if TYPE_CHECKING:
    from archivist.records import Fact
    from archivist.store.ledger import LedgerChange

_SHOWN = 100
_VALUE_SHOWN = 48


@click.group()
def knowledge() -> None:
    """Say, find and settle what holds: facts by category and key."""


@knowledge.command("list")
@click.option("--category", metavar="C", default="", help="Only of this category.")
@click.option("--key", metavar="K", default="", help="Only with this key.")
@click.option("--matching", metavar="TEXT", default="", help="Only what answers these words, best first.")
@click.option("--project", metavar="P", default="", help="Only of this project.")
@click.option("--min-confidence", type=float, default=0.0, metavar="X", help="0 to 1.")
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@global_option
@json_option
@click.pass_obj
def list_(
    session: Session,
    /,
    category: str,
    key: str,
    matching: str,
    project: str,
    min_confidence: float,
    limit: int | None,
    is_global: bool,
    as_json: bool,
) -> None:
    """Print the facts, by category and key."""
    with session.bank(is_global=is_global) as bank:
        found = bank.knowledge.query(
            category=category,
            key=key,
            text=matching,
            project=project,
            min_confidence=min_confidence,
            limit=limit,
        )
    if as_json:
        print_json({"facts": [table_view(each) for each in found]})
        return
    if not found:
        note("no facts")
        return
    rows = [
        (_fact_name(each), f"{each.confidence:g}", each.source, _shorten(each.value, _SHOWN))
        for each in found
    ]
    print_table(("Fact", "Sure", "Source", "Value"), rows)


@knowledge.command()
@click.argument("name", metavar="FACT")
@global_option
@json_option
@click.pass_obj
def show(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Print everything about FACT, named as category/key or by its id."""
    with session.bank(is_global=is_global) as bank:
        fact = bank.knowledge.find(name)
        disputes = [each for each in bank.knowledge.conflicts() if each.fact == fact.id]
    if as_json:
        print_json({"fact": table_view(fact), "conflicts": [conflict_view(each) for each in disputes]})
        return
    for line in _fact_lines(fact):
        say(line)
    for each in disputes:
        say(f"  {'disputed':<12}{each.lost_source} says {_shorten(each.lost)!r} ({each.id})")


@knowledge.command("set")
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--source", metavar="WHO", default="", help="Who says it; by default who acts.")
@click.option("--confidence", type=float, default=1.0, metavar="X", help="0 to 1; 1 by default.")
@click.option("--project", metavar="P", default="", help="The project that it holds for.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated.")
@global_option
@json_option
@click.pass_obj
def set_(
    session: Session,
    /,
    category: str,
    key: str,
    value: str,
    source: str,
    confidence: float,
    project: str,
    tags: tuple[str, ...],
    is_global: bool,
    as_json: bool,
) -> None:
    """Say that VALUE holds under CATEGORY and KEY; a VALUE of - is read from stdin.

    Where another source says something else, the surer word stands, of equal ones the newer; the other is
    kept as a conflict.
    """
    words = sys.stdin.read() if value == "-" else value
    with session.bank(is_global=is_global) as bank:
        kept = bank.knowledge.put(
            category, key, words, source=source, confidence=confidence, project=project, tags=tags
        )
    if as_json:
        told = conflict_view(kept.conflict) if kept.conflict else None
        print_json({"fact": table_view(kept.fact), "changed": kept.is_changed, "conflict": told})
        return
    say(f"{_fact_name(kept.fact)}  {_shorten(kept.fact.value, _SHOWN)}")
    if kept.conflict is None:
        return
    if kept.conflict.status.value == "open":
        note(f"conflict {kept.conflict.id}: {kept.conflict.reason}")
        note(f"hint: archivist knowledge decide {kept.conflict.id} --uphold or --reverse settles it")
    else:
        note(f"unchanged: {kept.conflict.decided_by} decided against it ({kept.conflict.id})")


@knowledge.command()
@click.argument("names", metavar="FACT…", nargs=-1, required=True)
@global_option
@json_option
@click.pass_obj
def remove(session: Session, names: tuple[str, ...], is_global: bool, as_json: bool) -> None:
    """Remove facts, all of them or, if one is unknown, none; their history stays."""
    with session.bank(is_global=is_global) as bank, bank.transaction():
        gone = [bank.knowledge.remove(name) for name in dict.fromkeys(names)]
    if as_json:
        print_json({"facts": [table_view(each) for each in gone]})
        return
    say(f"{pluralize(len(gone), 'fact')} removed: {', '.join(_fact_name(each) for each in gone)}")


@knowledge.command()
@click.argument("name", metavar="[FACT]", default="")
@click.option("--all", "with_decided", is_flag=True, help="Also those that are decided.")
@global_option
@json_option
@click.pass_obj
def conflicts(session: Session, name: str, with_decided: bool, is_global: bool, as_json: bool) -> None:
    """Print what sources disagree about, or about FACT, and nobody has decided yet."""
    with session.bank(is_global=is_global) as bank:
        found = bank.knowledge.conflicts(name, with_decided=with_decided)
    if as_json:
        print_json({"conflicts": [conflict_view(each) for each in found]})
        return
    if not found:
        note("no conflicts" if with_decided else "no open conflicts")
        return
    print_table(
        ("ID", "Status", "Fact", "Kept", "Lost", "Why"),
        [
            (
                each.id,
                each.status.value,
                f"{each.category}/{each.key}",
                f"{_shorten(each.kept)} ({each.kept_source})",
                f"{_shorten(each.lost)} ({each.lost_source})",
                each.reason,
            )
            for each in found
        ],
    )


@knowledge.command()
@click.argument("name", metavar="CONFLICT")
@click.option("--uphold", "choice", flag_value="uphold", help="What stands is right.")
@click.option("--reverse", "choice", flag_value="reverse", help="What lost is right, and stands from now on.")
@global_option
@json_option
@click.pass_obj
def decide(session: Session, name: str, choice: str | None, is_global: bool, as_json: bool) -> None:
    """Decide CONFLICT, named by its id, or by its fact; of several about it --uphold decides all."""
    if choice is None:
        raise click.UsageError(
            "say --uphold or --reverse\nhint: archivist knowledge conflicts lists both sides"
        )
    with session.bank(is_global=is_global) as bank:
        desk = bank.knowledge
        decided = desk.uphold(name) if choice == "uphold" else [desk.decide(name, for_lost=True)]
        done = decided[-1]
        fact = desk.get(done.category, done.key, project=str(done.extra.get("project", "")))
    if as_json:
        told = {"conflict": conflict_view(done), "conflicts": [conflict_view(each) for each in decided]}
        print_json({**told, "fact": table_view(fact) if fact else None})
        return
    say(f"{done.category}/{done.key}  {done.status.value}: {_shorten(fact.value, _SHOWN) if fact else '-'}")
    if len(decided) > 1:
        note(f"{pluralize(len(decided), 'conflict')} decided")


@knowledge.command("import")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path())
@global_option
@json_option
@click.pass_obj
def import_(session: Session, paths: tuple[str, ...], is_global: bool, as_json: bool) -> int:
    """Take shared-context markdown in: each section is a fact, kept up to date when taken again."""
    with session.bank(is_global=is_global) as bank:
        taken = bank.knowledge.import_markdown(paths)
    told = taken._asdict()
    if as_json:
        print_json({**told, "problems": list(taken.problems)})
    else:
        del told["problems"]
        if not taken.conflicts:
            del told["conflicts"]
        say("facts: " + ", ".join(f"{number} {name}" for name, number in told.items()))
    for problem in taken.problems:
        note(f"archivist: {problem}")
    if taken.conflicts:
        note("hint: archivist knowledge conflicts lists what another source says otherwise")
    return EXIT_PARTIAL if taken.problems else 0


@knowledge.command()
@click.argument("name", metavar="FACT")
@global_option
@json_option
@click.pass_obj
def history(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Tell the story of FACT: every change and every dispute, who made it, and why one word won."""
    with session.bank(is_global=is_global) as bank:
        rows = list(_history_rows(bank.knowledge.history(name)))
    if as_json:
        print_json({"history": rows})
        return
    print_table(
        ("Seq", "Time", "Actor", "Verb", "Change"),
        [(row["seq"], row["time"][:19] + "Z", row["actor"], row["verb"], row["change"]) for row in rows],
    )


def _history_rows(changes: list[LedgerChange]) -> Iterator[dict[str, Any]]:
    from archivist.clock import to_short_text

    for change in changes:
        entry = change.entry
        yield {
            "seq": entry.seq,
            "time": to_short_text(entry.time),
            "actor": str(entry.actor),
            "verb": entry.verb,
            "kind": entry.kind,
            "change": _describe_change(change),
            "after": change.after,
        }


def _describe_change(change: LedgerChange) -> str:
    after: dict[str, Any] | None = change.after
    if change.is_erased:
        return "(erased)"
    if after is None:
        return "removed"
    if change.entry.kind == "conflict":
        lost = f"{_shorten(after['lost'])!r} of {after['lost_source']}"
        by = f" by {after['decided_by']}" if after["decided_by"] else ""
        return f"{lost} lost, {after['status']}{by}: {after['reason']}"
    return f"{_shorten(after['value'])!r} of {after['source']}, sure {after['confidence']:g}"


def _fact_name(fact: Fact) -> str:
    return f"{fact.category}/{fact.key}" + (f" ({fact.project})" if fact.project else "")


def _fact_lines(fact: Fact) -> Iterator[str]:
    from archivist.clock import to_short_text

    yield f"{fact.category}/{fact.key}"
    yield from (f"  {line}" for line in fact.value.splitlines())
    yield ""
    known = {
        "project": fact.project,
        "source": fact.source,
        "confidence": f"{fact.confidence:g}",
        "origin": fact.origin,
        "tags": ", ".join(fact.tags),
        "created": to_short_text(fact.created),
        "updated": to_short_text(fact.updated),
        "id": fact.id,
    }
    yield from (f"  {name:<12}{value}" for name, value in known.items() if value)


def _shorten(value: str, most: int = _VALUE_SHOWN) -> str:
    text = " ".join(value.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
