"""Commands about the stream, which agents log to, and about the archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from archivist.bank import Bank
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.model import describe_report
from archivist.edges.cli.output import Answer, embed, list_records, say
from archivist.edges.cli.wording import pluralize, waiting_notes
from archivist.edges.views import entry_view, insights_view, model_report_view, piece_view
from archivist.errors import NotFoundError
from archivist.records import Document, Entry
from archivist.records.tier_words import DocumentType, EntryType
from archivist.records.words import stated_provenance
from archivist.stream.entries import MAX_CYCLE
from archivist.stream.insights_service import Insights

# A screenful.
_LISTED = 20
_TYPE = options.enum_choice(EntryType)
_pr_option = click.option(
    "--pr", "prs", type=int, multiple=True, metavar="N", help="A related pull request; repeatable."
)
_cycles = click.option("--cycles", metavar="A[:B]", default="", help="Only these cycles, also archived.")

stream = CommandGroup("stream", help="Log what agents do, cycle by cycle; list it, search it, reflect on it.")


@options.bank_command(stream)
@click.argument("action")
@click.option("--cycle", type=click.IntRange(0, MAX_CYCLE), metavar="N",
              help="The cycle; by default the role's current.")  # fmt: skip
@click.option("--role", metavar="R", default="", help="Who acted; by default the actor's own role.")
@options.importance
@click.option("--type", type=_TYPE, default="action", show_default=True, help="Its type.")
@click.option("--content", metavar="TEXT", default="", help="What happened, in a few sentences.")
@options.tag
@options.issue
@_pr_option
@click.option("--run", metavar="ID", default="", help="The run that it belongs to.")
@click.option("--reflect", is_flag=True, help="Reflect afterwards if a reflection is due.")
def log(bank: Bank, /, action: str, reflect: bool, **fields: Any) -> Answer:
    """Log ACTION to the stream. Issues and pull requests in its text (#84, PR #12) are recognised."""
    entry = bank.stream.log(action, **fields)
    due = bank.stream.due_reason()
    view: dict[str, object] = {"entry": entry_view(entry)}
    text = f"{entry.id}  cycle {entry.cycle}  {entry.action}"
    if reflect and due:
        done = _insights_answer(bank.stream.reflect(if_due=True))
        view |= {"reflection_due": "", "reflection": done.view}
        return done._replace(view=view, text=f"{text}\n{done.text}".rstrip())
    hint = f"hint: reflection is due ({due}): archivist stream reflect"
    return Answer({**view, "reflection_due": due}, text, (hint,) if due else ())


@options.bank_command(stream)
@click.option("--role", metavar="R", default="", help="The role that begins it.")
def cycle(bank: Bank, role: str) -> Answer:
    """Begin the next cycle and print its number. What the role logs from now on belongs to it."""
    number = bank.stream.begin_cycle(role)
    return Answer({"cycle": number, "role": role}, str(number))


@options.bank_command(stream, "list")
@_cycles
@options.role
@click.option("--importance", type=int, default=1, metavar="1-10", help="The minimum importance.")
@options.limit("At most N, the latest; 20 by default.")
def list_(bank: Bank, cycles: str, role: str, importance: int, limit: int | None) -> Answer:
    """List entries in order: the latest, or those of --cycles 180:185."""
    # A range reaches into the archive; without one the hot stream is enough.
    if cycles or importance != 1:
        first, last = _parse_cycles(cycles) if cycles else (0, MAX_CYCLE)
        found = bank.stream.by_cycle(first, last, role=role, min_importance=importance)
        found = found[-limit:] if limit else found
    else:
        found = bank.stream.recent(limit or _LISTED, role=role)[::-1]
    weight = ("Imp", "importance")
    action = ("Action", lambda entry: f"{entry.action}{_quote_mark(entry)}")
    return list_records("entries", found, entry_view, "id", "cycle", "role", weight, "type", action)


def _quote_mark(entry: Entry) -> str:
    return provenance.mark if (provenance := stated_provenance(entry.extra)) else ""


@options.bank_command(stream)
@click.argument("name", metavar="ID")
def show(bank: Bank, name: str) -> Answer:
    """Print all fields of the entry ID."""
    view = entry_view(bank.stream.get(name))
    lines = []
    for label, value in view.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        lines += [f"{label}: {text}"] if text else []
    return Answer(view, "\n".join(lines))


@options.bank_command(stream)
@click.argument("text", metavar="QUERY")
@options.role
@click.option("--issue", type=int, metavar="N", help="Only what refers to this issue.")
@click.option("--importance", "min_importance", type=int, metavar="1-10", help="The minimum importance.")
@_cycles
@click.option("--hot", "is_hot", is_flag=True, help="Only the cycles that are not archived.")
@options.limit(most=200, default=5, show_default=True)
def search(bank: Bank, /, text: str, cycles: str, is_hot: bool, **filters: Any) -> Answer:
    """Search the entries for QUERY by recency, importance and relevance, best match first."""
    span, tier = _parse_cycles(cycles) if cycles else None, "stream" if is_hot else ""
    hits, lines = [], []
    for hit, entry in bank.stream.search(text, cycles=span, tier=tier, **filters):
        hits.append({**entry_view(entry), "score": round(hit.score, 4)})
        lines.append(f"{hit.score:.2f}  {entry.id}  cycle {entry.cycle}  {entry.role}".rstrip())
        lines += [f"      {hit.text}{_quote_mark(entry)}", *(f"      ({remark})" for remark in hit.notes)]
    return Answer({"hits": hits}, "\n".join(lines), () if hits else ("nothing found",))


@options.bank_command(stream)
@click.argument("name", metavar="ID")
@click.option("--action", metavar="TEXT", help="The new action.")
@click.option("--content", metavar="TEXT", help="The new content.")
@click.option("--importance", type=int, metavar="1-10", help="How important it is.")
@click.option("--type", type=_TYPE, help="Its type.")
@options.tag
@options.issue
@_pr_option
def edit(bank: Bank, /, name: str, **fields: Any) -> Answer:
    """Change the entry ID; its history keeps the earlier version."""
    changes = {field: value for field, value in fields.items() if value not in (None, ())}
    if not changes:
        raise click.UsageError("nothing to change\nhint: archivist stream edit --help lists the fields")
    entry = bank.stream.edit(name, **changes)
    return Answer(entry_view(entry), f"{entry.id}  cycle {entry.cycle}  {entry.action}")


@options.bank_command(stream)
@click.argument("name", metavar="ID")
def remove(bank: Bank, name: str) -> Answer:
    """Remove the entry ID from the stream; archivist undo ID restores it."""
    entry = bank.stream.remove(name)
    return Answer({"removed": entry.id}, f"removed {entry.id}  {entry.action}")


@options.bank_command(stream)
@click.option("--if-due", is_flag=True, help="Only if importance, cycles or a new sprint make it due.")
@options.no_llm
def reflect(bank: Bank, if_due: bool, no_llm: bool) -> Answer:
    """Write what recurred since the last reflection to stream and archive. Needs no language model."""
    done = bank.stream.reflect(if_due=if_due, with_model=bool(bank.config.model.name) and not no_llm)
    answer = _insights_answer(done)
    told = describe_report(model_report_view([done.model])) if done.model else []
    return answer._replace(notes=(*answer.notes, *told))


@options.bank_command(stream, "import")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Import nothing if a line is bad.")
@options.approve
def import_(bank: Bank, paths: tuple[Path, ...], strict: bool, is_approved: bool) -> Answer:
    """Import stream.jsonl files, also compressed ones.

    The entries are the files': they are marked, change no entry that is here, and count no further than your
    own cycles. With --approve they are taken as they are, and known entries are updated.
    """
    done = bank.stream.import_lines(paths, is_strict=strict, is_approved=is_approved)
    embed(bank)
    view = done._asdict()
    view["skipped"] = skipped = list(map(str, view.pop("problems")))
    text = f"entries: {done.added} new, {done.changed} changed, {done.unchanged} the same"
    left = f"left as they are: {pluralize(done.left, 'entry')}; --approve takes the files' words"
    return Answer(view, text, (left,) if done.left else (), skipped=skipped)


@options.bank_command(stream)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def export(bank: Bank, file: Path | None) -> Answer | None:
    """Write the stream as JSON lines to FILE, or to stdout."""
    if file is None:
        for line in bank.stream.lines():
            say(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        return None
    lines = bank.stream.export(file)
    return Answer({"file": str(file), "lines": lines}, f"{file}  {pluralize(lines, 'line')}")


def _parse_cycles(text: str) -> tuple[int, int]:
    """Read `180` or `180:185`."""
    first, mark, last = text.partition(":")
    try:
        return int(first), int(last if mark else first)
    except ValueError:
        hint = "one cycle, 180, or two, 180:185"
        raise click.UsageError(f"cycles {text!r} are not a range\nhint: {hint}") from None


def _insights_answer(done: Insights) -> Answer:
    if done.skipped:
        return Answer(insights_view(done), notes=(f"no reflection: {done.skipped}",))
    lines = [f"{entry.importance:>2}  {entry.action}\n    {entry.content}" for entry in done.entries]
    lines += [f"core  {text}" for text in done.told_core]
    first, last = done.cycles or (0, 0)
    found = pluralize(len(done.entries), "insight") if done.entries else "nothing recurs"
    looked = f"looked at {pluralize(done.gathered, 'entry')} of cycles {first} to {last}"
    notes = [f"{done.reason}: {looked}, {found}"]
    notes += [f"archivist: core memory: {problem}" for problem in done.problems]
    return Answer(insights_view(done), "\n".join(lines), notes)


_TEXT_TYPE = options.enum_choice(DocumentType)

archive = CommandGroup("archive", help="Store and search long texts, and keep them in sync with folders.")


@options.bank_command(archive, "search")
@click.argument("text", metavar="QUERY")
@click.option("--type", type=_TEXT_TYPE, help="Only this type; `cycle` includes archived stream entries.")
@options.since
@options.until
@options.limit(most=200, default=5, show_default=True)
def search_texts(
    bank: Bank, /, text: str, since: datetime | None, until: datetime | None, **asked: Any
) -> Answer:
    """Search the archive for QUERY, best match first. `archivist archive show NAME` prints a whole text."""
    if until and until.time() == datetime.min.time():
        # A day without a time means all of that day.
        until += timedelta(days=1, microseconds=-1)
    hits = bank.documents.search(text, dates=(since, until), **asked)
    views, lines = [], []
    for hit in hits:
        time, day = (hit.time.isoformat(), f"  {hit.time:%Y-%m-%d}") if hit.time else (None, "")
        names = {"id": hit.name, "uid": hit.id, "kind": hit.kind, "text": hit.text}
        provenance, mark = (hit.provenance, hit.provenance.mark) if hit.provenance else (None, "")
        views.append({**names, "score": round(hit.score, 4), "time": time, "provenance": provenance})
        lines.append(f"{hit.score:.2f}  {hit.name}{day}{mark}\n      {hit.text}")
    return Answer({"hits": views}, "\n".join(lines), () if hits else ("nothing found",))


@options.bank_command(archive)
@click.argument("text", metavar="TEXT|-")
@click.option("--type", type=_TEXT_TYPE, required=True, help="The type of the text.")
@click.option("--source", metavar="NAME", default="", help="Its name; by default made from its first words.")
@click.option("--role", "roles", metavar="R", multiple=True, help="A role that it concerns; repeatable.")
@options.issue
@options.tag
@options.importance
@click.option("--date", type=options.DateTimeParam(), help="The day that it is about.")
def add(bank: Bank, /, text: str, **fields: Any) -> Answer:
    """Archive TEXT; - reads it from stdin. Adding the same text again changes nothing."""
    pieces = bank.documents.insert(options.read_text_argument(text), **fields)
    return _pieces_answer(bank, pieces, f"{pieces[0].source}  {pluralize(len(pieces), 'piece')}")


@options.bank_command(archive, "list")
@click.option("--type", type=_TEXT_TYPE, help="Only texts of this type.")
@click.option("--folders", is_flag=True, help="List the watched folders instead.")
def list_texts(bank: Bank, type: str | None, folders: bool) -> Answer:  # noqa: A002
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


@options.bank_command(archive, "show")
@click.argument("name", metavar="SOURCE[#N]")
def show_text(bank: Bank, name: str) -> Answer:
    """Print a text of the archive, or its piece N."""
    pieces = bank.documents.read(name)
    if not pieces:
        raise NotFoundError("document", name, hint="archivist archive list shows all texts")
    return _pieces_answer(bank, pieces, "\n\n".join(piece.text for piece in pieces))


@options.bank_command(archive)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--type", type=_TEXT_TYPE, help="The type of its texts; by default from front matter and path.")
@click.option("--pattern", default="**/*.md", show_default=True, help="Which of its files.")
def watch(bank: Bank, folder: Path, type: str | None, pattern: str) -> Answer:  # noqa: A002
    """Watch FOLDER and archive its texts now. `archivist archive refresh` updates them later."""
    # The path is kept: a later refresh may be called from another folder.
    watched = bank.documents.watch(folder.absolute(), type=type, pattern=pattern)
    return _refresh_answer(bank, folder=watched.id)


@options.bank_command(archive)
@click.argument("folder")
@click.option("--keep", is_flag=True, help="Keep its texts in the archive.")
def unwatch(bank: Bank, folder: str, keep: bool) -> Answer:
    """Stop watching FOLDER and remove its texts from the archive, unless --keep is given."""
    texts = bank.documents.unwatch(folder, keep=keep)
    end = f"{pluralize(texts, 'text')} {'kept' if keep else 'removed'}"
    view = {"folder": folder, "texts": texts, "kept": keep}
    return Answer(view, f"{folder} is no longer watched; {end}")


@options.bank_command(archive)
def refresh(bank: Bank) -> Answer:
    """Update the archive from the watched folders, by the content of their files.

    Records anywhere in the bank that have no vector yet get one.
    """
    return _refresh_answer(bank)


@options.bank_command(archive, "remove")
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
def remove_texts(bank: Bank, sources: tuple[str, ...]) -> Answer:
    """Remove texts from the archive: all of them, or none if one is unknown."""
    with bank.transaction():
        pieces = sum(bank.documents.remove(source) for source in sources)
    text = f"{pluralize(len(sources), 'text')} removed ({pluralize(pieces, 'piece')})"
    return Answer({"removed": list(sources), "pieces": pieces}, text)


@options.bank_command(archive, "import-bank")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.approve
def import_bank(bank: Bank, paths: tuple[Path, ...], is_approved: bool) -> Answer:
    """Import bank.md files and their archived versions (bank-*.md), or those of a folder.

    Status, threads and role state go to core memory, lines about cycles to the stream, key lessons to the
    lessons, where they wait for approval, the rest here. The words are the file's: they are marked and
    replace nothing that others wrote, and core memory refuses risky ones. With --approve they are yours.
    """
    done = bank.bank_pages.import_banks(paths, is_approved=is_approved)
    embed(bank)
    counts = {"role": len(done.roles), "thread": done.threads, "entry": done.entries, "lesson": done.lessons}
    counts["document"] = done.documents
    imported = ", ".join(pluralize(number, noun) for noun, number in counts.items())
    text = f"{pluralize(done.pages, 'bank')} imported, {done.unchanged} known already: {imported}"
    kept = f"kept as documents: {pluralize(len(done.kept), 'section')} ({', '.join(done.kept)})"
    notes = [kept] * bool(done.kept) + waiting_notes(done.waiting)
    return Answer(done._asdict(), text, notes, problems=done.problems)


def _pieces_answer(bank: Bank, pieces: Sequence[Document], text: str) -> Answer:
    return Answer({"source": pieces[0].source, "pieces": [piece_view(bank, piece) for piece in pieces]}, text)


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
