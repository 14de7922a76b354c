"""Commands about the archive."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    DateTimeParam,
    enum_choice,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import piece_view
from archivist.records.tier_words import DocumentType

if TYPE_CHECKING:
    from archivist.archive.service import RefreshResult
    from archivist.bank import Bank

_TYPE = enum_choice(DocumentType)
_SHOWN = 20


@click.group()
def archive() -> None:
    """Keep, search and follow texts: decisions, research, specs, lessons and old cycles."""


@archive.command()
@click.argument("text", metavar="QUERY")
@click.option("--type", type=_TYPE, help="Only this sort; cycle asks for old entries of the stream too.")
@click.option("--since", type=DateTimeParam(), help="Only from this day on.")
@click.option("--until", type=DateTimeParam(), help="Only up to this day.")
@click.option("--max", "limit", type=click.IntRange(1, 200), default=5, show_default=True, metavar="N")
@json_option
@click.pass_obj
def search(
    session: Session,
    text: str,
    type: str | None,  # noqa: A002
    since: datetime | None,
    until: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find what the archive says about QUERY, the best first; archivist archive show NAME prints more."""
    first = since.replace(tzinfo=UTC) if since else None
    last = until.replace(tzinfo=UTC) if until else None
    if last and last.time() == datetime.min.time():
        last += timedelta(days=1, microseconds=-1)
    with session.bank() as bank:
        hits = bank.documents.search(text, type=type, dates=(first, last), limit=limit)
    if as_json:
        print_json(
            {
                "hits": [
                    {
                        "id": hit.name,
                        "uid": hit.id,
                        "kind": hit.kind,
                        "text": hit.text,
                        "score": round(hit.score, 4),
                        "time": hit.time.isoformat() if hit.time else None,
                    }
                    for hit in hits
                ]
            }
        )
        return
    for hit in hits:
        when = f"  {hit.time:%Y-%m-%d}" if hit.time else ""
        say(f"{hit.score:.2f}  {hit.name}{when}")
        say(f"      {hit.text}")
    if not hits:
        note("nothing found")


@archive.command()
@click.argument("text", metavar="TEXT|-")
@click.option("--type", type=_TYPE, required=True, help="What it is.")
@click.option(
    "--source", metavar="NAME", default="", help="What it is called; else named by its first words."
)
@click.option("--role", "roles", metavar="R", multiple=True, help="A role that it concerns; repeatable.")
@click.option("--issue", "issues", type=int, metavar="N", multiple=True, help="An issue; repeatable.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; repeatable.")
@click.option(
    "--importance", type=int, default=5, show_default=True, metavar="1-10", help="How much it matters."
)
@click.option("--date", type=DateTimeParam(), help="Of which day it is.")
@json_option
@click.pass_obj
def add(session: Session, /, text: str, as_json: bool, **fields: Any) -> None:
    """Archive TEXT, or what is read from stdin. The same text again changes nothing."""
    content = sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text
    with session.bank() as bank:
        made = bank.documents.insert(content, **fields)
    if as_json:
        print_json({"source": made[0].source, "pieces": [piece_view(each) for each in made]})
        return
    say(f"{made[0].source}  {pluralize(len(made), 'piece')}")


@archive.command("list")
@click.option("--type", type=_TYPE, help="Only this sort.")
@click.option("--folders", is_flag=True, help="The folders that are watched instead.")
@json_option
@click.pass_obj
def list_(session: Session, type: str | None, folders: bool, as_json: bool) -> None:  # noqa: A002
    """Print the texts of the archive, or the folders that are watched."""
    with session.bank() as bank:
        watched = bank.documents.folders() if folders else []
        found = [] if folders else bank.documents.sources(type=type)
    if folders:
        view = [{"folder": each.id, "type": each.type, "pattern": each.pattern} for each in watched]
        rows = [(each.id, each.type or "by path", each.pattern) for each in watched]
        if as_json:
            print_json({"folders": view})
        else:
            print_table(("Folder", "Type", "Pattern"), rows)
        return
    if as_json:
        print_json({"sources": [{**each._asdict(), "date": each.date.isoformat()} for each in found]})
        return
    print_table(
        ("Type", "Date", "Pieces", "Tokens", "Source"),
        [(each.type, f"{each.date:%Y-%m-%d}", each.pieces, each.tokens, each.source) for each in found],
    )


@archive.command()
@click.argument("name", metavar="SOURCE[#N]")
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print a text of the archive as it was kept, or its piece N."""
    from archivist.errors import NotFoundError

    with session.bank() as bank:
        found = bank.documents.read(name)
    if not found:
        raise NotFoundError("document", name, hint="archivist archive list shows what there is")
    if as_json:
        print_json({"source": found[0].source, "pieces": [piece_view(each) for each in found]})
        return
    say("\n\n".join(each.text for each in found))


@archive.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--type", type=_TYPE, help="What its texts are; else told by front matter and path.")
@click.option("--pattern", default="**/*.md", show_default=True, help="Which files of it.")
@json_option
@click.pass_obj
def watch(session: Session, folder: Path, type: str | None, pattern: str, as_json: bool) -> int:  # noqa: A002
    """Follow the texts of FOLDER, and take them in now; archivist archive refresh does it again."""
    with session.bank() as bank:
        made = bank.documents.watch(folder.absolute(), type=type, pattern=pattern)
        done = bank.documents.refresh()
        vectors = _embed(bank)
    return _report(done, vectors, as_json, {"folder": made.id})


@archive.command()
@click.argument("folder")
@click.option("--keep", is_flag=True, help="Keep its texts in the archive as they are.")
@json_option
@click.pass_obj
def unwatch(session: Session, folder: str, keep: bool, as_json: bool) -> None:
    """Follow FOLDER no longer; its texts leave the archive unless they are kept."""
    with session.bank() as bank:
        texts = bank.documents.unwatch(folder, keep=keep)
    if as_json:
        print_json({"folder": folder, "texts": texts, "kept": keep})
        return
    say(f"{folder} is not watched any more; {pluralize(texts, 'text')} {'kept' if keep else 'removed'}")


@archive.command()
@json_option
@click.pass_obj
def refresh(session: Session, as_json: bool) -> int:
    """Bring the archive in step with the watched folders, by what the files hold.

    What can be found by words only so far, also outside of the archive, gets the vectors that it lacks.
    """
    with session.bank() as bank:
        done = bank.documents.refresh()
        vectors = _embed(bank)
    return _report(done, vectors, as_json, {})


@archive.command()
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
@json_option
@click.pass_obj
def remove(session: Session, sources: tuple[str, ...], as_json: bool) -> None:
    """Take texts out of the archive; all of them or, if one is unknown, none."""
    with session.bank() as bank, bank.transaction():
        pieces = [bank.documents.remove(source) for source in sources]
    if as_json:
        print_json({"removed": list(sources), "pieces": sum(pieces)})
        return
    say(f"{pluralize(len(sources), 'text')} removed ({pluralize(sum(pieces), 'piece')})")


@archive.command("import-bank")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def import_bank(session: Session, paths: tuple[Path, ...], as_json: bool) -> int:
    """Take bank.md files and their archived versions (bank-*.md) in, or those of a folder.

    Status, threads and role state go to core memory, lines about cycles to the stream, the rest stays here.
    """
    with session.bank() as bank:
        done = bank.documents.import_bank(paths)
        _embed(bank)
    if as_json:
        lists = {name: list(getattr(done, name)) for name in ("roles", "kept", "problems")}
        print_json({**done._asdict(), **lists})
    else:
        say(
            f"{pluralize(done.pages, 'bank')} taken in, {done.unchanged} known already:"
            f" {pluralize(len(done.roles), 'role')}, {pluralize(done.threads, 'thread')},"
            f" {'1 entry' if done.entries == 1 else f'{done.entries} entries'},"
            f" {pluralize(done.documents, 'document')}"
        )
        if done.kept:
            note(f"kept as documents: {pluralize(len(done.kept), 'section')} ({', '.join(done.kept)})")
    return _note_problems(done.problems)


def _embed(bank: Bank) -> int:
    """Make the vectors that are missing, and return how many those were."""
    from archivist.edges.cli.doctor import embed

    missing = bank.vectors.count_unembedded()
    embed(bank)
    return missing - bank.vectors.count_unembedded()


def _report(done: RefreshResult, vectors: int, as_json: bool, extra_fields: dict[str, object]) -> int:
    if as_json:
        print_json({**extra_fields, **done._asdict(), "vectors": vectors, "problems": list(done.problems)})
    else:
        say(
            f"texts: {done.added} new, {done.changed} changed, {done.removed} removed,"
            f" {done.unchanged} the same"
        )
        if vectors:
            note(f"{pluralize(vectors, 'vector')} made for what could be found by words only")
        if not done.folders:
            note("hint: no folder is watched; archivist archive watch FOLDER follows one")
    return _note_problems(done.problems)


def _note_problems(problems: Sequence[str]) -> int:
    """Name what was left out; return the exit code that says whether there was anything."""
    for problem in problems[:_SHOWN]:
        note(f"archivist: {problem}")
    if len(problems) > _SHOWN:
        note(f"archivist: … and {len(problems) - _SHOWN} more")
    return EXIT_PARTIAL if problems else 0
