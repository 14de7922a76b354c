"""The command by which the user accepts a bank that was not made here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from archivist import paths
from archivist.bank import Bank
from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, confirm, note
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.edges.views import pick
from archivist.errors import AccessError, NoBankError, UntrustedBankError
from archivist.files.git import keep_out_of_git
from archivist.files.worktrees import remote_of, repository_of
from archivist.reading.command_risks import text_risk
from archivist.recall.query import Query
from archivist.records import Block, Folder, Lesson
from archivist.records.kinds import KINDS
from archivist.records.words import ActorKind, Status
from archivist.text import on_one_line, shorten_line
from archivist.trust import (
    accepted_banks,
    is_accepted,
    is_noted,
    lost_changes,
    mark_of,
    places_of,
    server_bank_of,
    withdraw_trust,
)

# Enough to see whose words they are.
_LISTED = 10
_SUMMARY_CHARACTERS = 100
_RISKY_CHARACTERS = 2_000


@options.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--show", is_flag=True, help="Only show what it holds; with --json all of it.")
@click.option("--remove", is_flag=True, help="Trust it no longer: it is silent from now on.")
@click.option("--list", "is_list", is_flag=True, help="List the banks that you have accepted.")
def trust(
    session: Session, folder: Path | None, yes: bool, show: bool, remove: bool, is_list: bool
) -> Answer:
    """Show what the bank of FOLDER (the current one by default) holds and where it comes from; accept it.

    A bank that you did not make on this machine, or that was moved or replaced, is silent until then: hooks
    say nothing in its project, and commands refuse it. For containers and build machines, trust.folders names
    folders whose banks are trusted without asking.
    """
    if is_list:
        known = [str(place) for place in accepted_banks()]
        return Answer({"banks": known}, "\n".join(map(on_one_line, known)))
    actor = session.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise AccessError(str(actor), "accept", "a bank", hint="only people decide which banks are trusted")
    # The nearest, which may be one that commands pass over.
    nearest = None if session.bank_path else session.find_above(Path.cwd())[1]
    place = folder or nearest or session.find_bank_path()
    file = paths.bank_file(place).absolute() if place is not None else None
    if file is not None and not remove and (name := server_bank_of(file)):
        text = f"It is the bank {name} on your own server, and needs no trust."
        return Answer({"bank": name, "trusted": True, "changed": False}, text)
    if file is None or not (paths.is_file(file) or (remove and is_noted(file))):
        hint = "archivist trust --list names the banks that you have accepted"
        is_lost = file is not None and is_noted(file)
        raise NoBankError(str(place or Path.cwd()), is_lost=is_lost, hint=hint)
    if remove:
        was_there = withdraw_trust(file)
        text = "It is trusted no longer." if was_there else "It was not trusted."
        return Answer({"bank": str(file), "trusted": False, "changed": was_there}, text)
    folders = session.load_settings(None).config.trust.folders
    if not show and is_accepted(file, folders) and not lost_changes(file):
        # Its own mark counts too, not only its place.
        with suppress(UntrustedBankError):
            Bank.open(file, create=False, actor=actor).close()
            view = {"bank": str(file), "trusted": True, "changed": False}
            return Answer(view, f"It is trusted: {on_one_line(str(file))}")
    with Bank.preview(file) as bank:
        view, lines = _describe_bank(bank, file)
        shown = bank.shown_digest
    if show:
        return Answer({**view, "trusted": False, "changed": False}, "\n".join(lines))
    if not yes:
        for line in lines:
            note(line)
        if not confirm("Accept it?", "accepting a bank", "--yes accepts it without asking"):
            return Answer({**view, "trusted": False, "changed": False}, "It stays silent.")
        lines = []
    revoked = Bank.accept(file, actor, shown=shown)
    view = {**view, "trusted": True, "changed": True, "tokens_revoked": revoked}
    lines.append(f"Accepted: {on_one_line(str(file))}")
    if revoked:
        lines.append(f"{pluralize(revoked, 'access token')} revoked, since nobody here gave them")
    problem = keep_out_of_git(file)
    return Answer(view, "\n".join(lines), warnings=[f"archivist: {problem}"] if problem else [])


def _describe_bank(bank: Bank, file: Path) -> tuple[dict[str, object], list[str]]:
    """Return what a bank holds and where it comes from, as a view and as lines."""
    with bank.reading() as reader:
        last = reader.last_entry()
        ends = [*reader.entries(after=0, limit=1), *reader.entries(after=max(0, last - 1), limit=1)]
        counts = {kind.plural: number for kind in KINDS if (number := reader.count(kind.name))}
        blocks = reader.select(Block)
        watched = reader.select(Folder, limit=_LISTED)
    root = paths.project_folder(file)
    before = [str(place) for place in places_of(mark_of(bank.store)) if place != file]
    lessons = bank.lessons.query(Query(limit=None, statuses=(Status.ACTIVE,)))
    risky = {each.id: text_risk(f"{each.summary}\n{each.rule}\n{each.detail}") for each in lessons}
    view: dict[str, object] = {
        "bank": str(file),
        "owner": _owner_of(file),
        "remote": remote_of(repository_of(root, root)),
        "accepted_at": before,
        "counts": counts,
        "changes": [{"time": str(each.time), "actor": str(each.actor), "verb": each.verb} for each in ends],
        "lessons": [
            {"id": each.short_id, **pick(each, "summary rule detail"), "risk": risky[each.id]}
            for each in lessons
        ],
        "blocks": [{"section": str(each.section), "content": each.content} for each in blocks],
        "folders": [each.id for each in watched],
    }
    lines = [f"Bank     {file}", f"Owner    {view['owner']}"]
    if view["remote"]:
        lines.append(f"Cloned   from {view['remote']}")
    if is_accepted(file):
        lines.append("Known    it was made here or accepted by you")
    else:
        known = f"as the bank at {before[0]}" if before else "it was not made here by you"
        lines.append(f"Known    {known}")
    if ends:
        days = [f"{each.time:%Y-%m-%d} by {each.actor}" for each in ends]
        lines.append(f"Changes  {last}, the first {days[0]}, the last {days[-1]}")
    lines.append(f"Holds    {', '.join(f'{name}: {number}' for name, number in counts.items()) or 'nothing'}")
    lines += [f"Watches  {each.id}" for each in watched]
    lines += _told_lines(blocks, lessons, risky)
    return view, list(map(on_one_line, lines))


def _told_lines(blocks: Sequence[Block], lessons: Sequence[Lesson], risky: Mapping[str, str]) -> list[str]:
    """Return what agents would be told: what could hurt comes first and whole, not among the rest."""
    contents = [(str(each.section), json.dumps(each.content, ensure_ascii=False)) for each in blocks]
    hurting = [(name, text, risk) for name, text in contents if (risk := text_risk(text))]
    words = {each.id: (each.short_id, f"{each.summary} {each.rule}") for each in lessons}
    hurting += [(*words[name], risk) for name, risk in risky.items() if risk]
    lines = ["Read these first: agents would be told to run what can hurt"] if hurting else []
    lines += [f"  {name}  ({risk}) {shorten_line(text, _RISKY_CHARACTERS)}" for name, text, risk in hurting]
    rest = [words[name] for name, risk in risky.items() if not risk]
    told = [(name, text) for name, text in contents if not text_risk(text)] + rest[:_LISTED]
    if told:
        lines.append("Agents would be told:")
        lines += [f"  {name}  {shorten_line(text, _SUMMARY_CHARACTERS)}" for name, text in told]
        more = len(rest) - _LISTED
        lines += [f"  … and {more} more: archivist trust --show --json names all"] if more > 0 else []
    return lines


def _owner_of(file: Path) -> str:
    try:
        return file.owner()
    except (KeyError, NotImplementedError, OSError):
        return ""
