"""Commands about the archive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, bank_command, embed, list_records
from archivist.edges.cli.wording import pluralize
from archivist.edges.views import piece_view
from archivist.errors import NotFoundError
from archivist.records.tier_words import DocumentType

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Document

_TYPE = options.enum_choice(DocumentType)

archive = click.Group("archive", help="Store and search long texts, and keep them in sync with folders.")


@bank_command(archive)
@click.argument("text", metavar="QUERY")
@click.option("--type", type=_TYPE, help="Only this type; `cycle` includes archived stream entries.")
@click.option("--since", type=options.DateTimeParam(), help="Only from this day on.")
@click.option("--until", type=options.DateTimeParam(), help="Only up to this day.")
@options.search_limit
def search(bank: Bank, /, text: str, since: datetime | None, until: datetime | None, **asked: Any) -> Answer:
    """Search the archive for QUERY, best match first. `archivist archive show NAME` prints a whole text."""
    if until and until.time() == datetime.min.time():
        # A day without a time means all of that day.
        until += timedelta(days=1, microseconds=-1)
    hits = bank.documents.search(text, dates=(since, until), **asked)
    views, lines = [], []
    for hit in hits:
        time, day = (hit.time.isoformat(), f"  {hit.time:%Y-%m-%d}") if hit.time else (None, "")
        names = {"id": hit.name, "uid": hit.id, "kind": hit.kind, "text": hit.text}
        views.append({**names, "score": round(hit.score, 4), "time": time})
        lines.append(f"{hit.score:.2f}  {hit.name}{day}\n      {hit.text}")
    return Answer({"hits": views}, "\n".join(lines), () if hits else ("nothing found",))


@bank_command(archive)
@click.argument("text", metavar="TEXT|-")
@click.option("--type", type=_TYPE, required=True, help="The type of the text.")
@click.option("--source", metavar="NAME", default="", help="Its name; by default made from its first words.")
@click.option("--role", "roles", metavar="R", multiple=True, help="A role that it concerns; repeatable.")
@options.issue
@options.tag
@options.importance
@click.option("--date", type=options.DateTimeParam(), help="The day that it is about.")
def add(bank: Bank, /, text: str, **fields: Any) -> Answer:
    """Archive TEXT; - reads it from stdin. Adding the same text again changes nothing."""
    pieces = bank.documents.insert(options.read_text_argument(text), **fields)
    return _pieces_answer(pieces, f"{pieces[0].source}  {pluralize(len(pieces), 'piece')}")


@bank_command(archive, "list")
@click.option("--type", type=_TYPE, help="Only texts of this type.")
@click.option("--folders", is_flag=True, help="List the watched folders instead.")
def list_(bank: Bank, type: str | None, folders: bool) -> Answer:  # noqa: A002
    """List the texts of the archive, or the watched folders."""
    if folders:
        watched = bank.documents.folders()
        views = [{"folder": each.id, "type": each.type, "pattern": each.pattern} for each in watched]
        by_path = ("Type", lambda view: view["type"] or "by path")
        return list_records("folders", views, None, "folder", by_path, "pattern")
    sources = bank.documents.sources(type=type)
    views = [{**source._asdict(), "date": source.date.isoformat()} for source in sources]
    day = ("Date", lambda view: view["date"][:10])
    return list_records("sources", views, None, "type", day, "pieces", "tokens", "source")


@bank_command(archive)
@click.argument("name", metavar="SOURCE[#N]")
def show(bank: Bank, name: str) -> Answer:
    """Print a text of the archive, or its piece N."""
    pieces = bank.documents.read(name)
    if not pieces:
        raise NotFoundError("document", name, hint="archivist archive list shows all texts")
    return _pieces_answer(pieces, "\n\n".join(piece.text for piece in pieces))


@bank_command(archive)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--type", type=_TYPE, help="The type of its texts; by default from front matter and path.")
@click.option("--pattern", default="**/*.md", show_default=True, help="Which of its files.")
def watch(bank: Bank, folder: Path, type: str | None, pattern: str) -> Answer:  # noqa: A002
    """Watch FOLDER and archive its texts now. `archivist archive refresh` updates them later."""
    # The path is kept: a later refresh may be called from another folder.
    watched = bank.documents.watch(folder.absolute(), type=type, pattern=pattern)
    return _refresh_answer(bank, folder=watched.id)


@bank_command(archive)
@click.argument("folder")
@click.option("--keep", is_flag=True, help="Keep its texts in the archive.")
def unwatch(bank: Bank, folder: str, keep: bool) -> Answer:
    """Stop watching FOLDER and remove its texts from the archive, unless --keep is given."""
    texts = bank.documents.unwatch(folder, keep=keep)
    return Answer(
        {"folder": folder, "texts": texts, "kept": keep},
        f"{folder} is no longer watched; {pluralize(texts, 'text')} {'kept' if keep else 'removed'}",
    )


@bank_command(archive)
def refresh(bank: Bank) -> Answer:
    """Update the archive from the watched folders, by the content of their files.

    Records anywhere in the bank that have no vector yet get one.
    """
    return _refresh_answer(bank)


@bank_command(archive)
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
def remove(bank: Bank, sources: tuple[str, ...]) -> Answer:
    """Remove texts from the archive: all of them, or none if one is unknown."""
    with bank.transaction():
        pieces = sum(bank.documents.remove(source) for source in sources)
    return Answer(
        {"removed": list(sources), "pieces": pieces},
        f"{pluralize(len(sources), 'text')} removed ({pluralize(pieces, 'piece')})",
    )


@bank_command(archive, "import-bank")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
def import_bank(bank: Bank, paths: tuple[Path, ...]) -> Answer:
    """Import bank.md files and their archived versions (bank-*.md), or those of a folder.

    Status, threads and role state go to core memory, lines about cycles to the stream, the rest here.
    """
    done = bank.bank_pages.import_banks(paths)
    embed(bank)
    counts = (len(done.roles), "role"), (done.threads, "thread"), (done.entries, "entry")
    imported = ", ".join(pluralize(*count) for count in (*counts, (done.documents, "document")))
    kept = f"kept as documents: {pluralize(len(done.kept), 'section')} ({', '.join(done.kept)})"
    return Answer(
        done._asdict(),
        f"{pluralize(done.pages, 'bank')} imported, {done.unchanged} known already: {imported}",
        (kept,) if done.kept else (),
        problems=done.problems,
    )


def _pieces_answer(pieces: Sequence[Document], text: str) -> Answer:
    return Answer({"source": pieces[0].source, "pieces": [piece_view(piece) for piece in pieces]}, text)


def _refresh_answer(bank: Bank, **fields: object) -> Answer:
    done, vectors = bank.documents.refresh(), embed(bank)
    notes = [f"{pluralize(vectors, 'vector')} made"] if vectors else []
    if not done.folders:
        notes.append("hint: no folder is watched; archivist archive watch FOLDER adds one")
    return Answer(
        {**fields, **done._asdict(), "vectors": vectors},
        f"texts: {done.added} new, {done.changed} changed, {done.removed} removed, {done.unchanged} the same",
        notes,
        problems=done.problems,
    )
