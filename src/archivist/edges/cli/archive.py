"""Commands about the archive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    Answer,
    DateTimeParam,
    bank_command,
    command,
    embed,
    enum_choice,
    importance_option,
    issue_option,
    list_records,
    pluralize,
    read_text_argument,
    search_limit_option,
    tag_option,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import piece_view
from archivist.errors import NotFoundError
from archivist.records.tier_words import DocumentType

if TYPE_CHECKING:
    from archivist.archive.service import RefreshResult
    from archivist.bank import Bank

_TYPE = enum_choice(DocumentType)
_type_option = click.option("--type", type=_TYPE, help="Only texts of this type.")


@click.group()
def archive() -> None:
    """Store and search long texts, and keep them in sync with folders."""


@command(archive)
@click.argument("text", metavar="QUERY")
@click.option("--type", type=_TYPE, help="Only this type; `cycle` includes archived stream entries.")
@click.option("--since", type=DateTimeParam(), help="Only from this day on.")
@click.option("--until", type=DateTimeParam(), help="Only up to this day.")
@search_limit_option
def search(
    session: Session,
    text: str,
    type: str | None,  # noqa: A002
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> Answer:
    """Search the archive for QUERY, best match first. `archivist archive show NAME` prints a whole text."""
    first = since.replace(tzinfo=UTC) if since else None
    last = until.replace(tzinfo=UTC) if until else None
    if last and last.time() == datetime.min.time():
        # A day without a time means all of that day.
        last += timedelta(days=1, microseconds=-1)
    with session.bank() as bank:
        hits = bank.documents.search(text, type=type, dates=(first, last), limit=limit)
    view = [
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
    lines = [
        f"{hit.score:.2f}  {hit.name}{f'  {hit.time:%Y-%m-%d}' if hit.time else ''}\n      {hit.text}"
        for hit in hits
    ]
    return Answer({"hits": view}, "\n".join(lines), () if hits else ("nothing found",))


@bank_command(archive)
@click.argument("text", metavar="TEXT|-")
@click.option("--type", type=_TYPE, required=True, help="The type of the text.")
@click.option("--source", metavar="NAME", default="", help="Its name; by default made from its first words.")
@click.option("--role", "roles", metavar="R", multiple=True, help="A role that it concerns; repeatable.")
@issue_option
@tag_option
@importance_option
@click.option("--date", type=DateTimeParam(), help="The day that it is about.")
def add(bank: Bank, /, text: str, **fields: Any) -> Answer:
    """Archive TEXT; - reads it from stdin. Adding the same text again changes nothing."""
    pieces = bank.documents.insert(read_text_argument(text), **fields)
    source = pieces[0].source
    view = {"source": source, "pieces": [piece_view(piece) for piece in pieces]}
    return Answer(view, f"{source}  {pluralize(len(pieces), 'piece')}")


@bank_command(archive, "list")
@_type_option
@click.option("--folders", is_flag=True, help="List the watched folders instead.")
def list_(bank: Bank, type: str | None, folders: bool) -> Answer:  # noqa: A002
    """List the texts of the archive, or the watched folders."""
    watched = bank.documents.folders() if folders else []
    sources = [] if folders else bank.documents.sources(type=type)
    if folders:
        return list_records(
            "folders",
            watched,
            lambda folder: {"folder": folder.id, "type": folder.type, "pattern": folder.pattern},
            {
                "Folder": lambda folder: folder.id,
                "Type": lambda folder: folder.type or "by path",
                "Pattern": lambda folder: folder.pattern,
            },
        )
    return list_records(
        "sources",
        sources,
        lambda source: {**source._asdict(), "date": source.date.isoformat()},
        {
            "Type": lambda source: source.type,
            "Date": lambda source: f"{source.date:%Y-%m-%d}",
            "Pieces": lambda source: source.pieces,
            "Tokens": lambda source: source.tokens,
            "Source": lambda source: source.source,
        },
    )


@bank_command(archive)
@click.argument("name", metavar="SOURCE[#N]")
def show(bank: Bank, name: str) -> Answer:
    """Print a text of the archive, or its piece N."""
    pieces = bank.documents.read(name)
    if not pieces:
        raise NotFoundError("document", name, hint="archivist archive list shows all texts")
    view = {"source": pieces[0].source, "pieces": [piece_view(piece) for piece in pieces]}
    return Answer(view, "\n\n".join(piece.text for piece in pieces))


@bank_command(archive)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--type", type=_TYPE, help="The type of its texts; by default from front matter and path.")
@click.option("--pattern", default="**/*.md", show_default=True, help="Which of its files.")
def watch(bank: Bank, folder: Path, type: str | None, pattern: str) -> Answer:  # noqa: A002
    """Watch FOLDER and archive its texts now. `archivist archive refresh` updates them later."""
    # The path is kept: a later refresh may be called from another folder.
    watched = bank.documents.watch(folder.absolute(), type=type, pattern=pattern)
    done = bank.documents.refresh()
    vectors = embed(bank)
    return _refresh_answer(done, vectors, {"folder": watched.id})


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
    done = bank.documents.refresh()
    vectors = embed(bank)
    return _refresh_answer(done, vectors, {})


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
    lists = {name: list(getattr(done, name)) for name in ("roles", "kept", "problems")}
    kept = f"kept as documents: {pluralize(len(done.kept), 'section')} ({', '.join(done.kept)})"
    return Answer(
        {**done._asdict(), **lists},
        f"{pluralize(done.pages, 'bank')} imported, {done.unchanged} known already:"
        f" {pluralize(len(done.roles), 'role')}, {pluralize(done.threads, 'thread')},"
        f" {'1 entry' if done.entries == 1 else f'{done.entries} entries'},"
        f" {pluralize(done.documents, 'document')}",
        (kept,) if done.kept else (),
        problems=done.problems,
    )


def _refresh_answer(done: RefreshResult, vectors: int, extra_fields: dict[str, object]) -> Answer:
    notes = [f"{pluralize(vectors, 'vector')} made"] if vectors else []
    if not done.folders:
        notes.append("hint: no folder is watched; archivist archive watch FOLDER adds one")
    return Answer(
        {**extra_fields, **done._asdict(), "vectors": vectors, "problems": list(done.problems)},
        f"texts: {done.added} new, {done.changed} changed, {done.removed} removed, {done.unchanged} the same",
        notes,
        problems=done.problems,
    )
