"""Commands about the bank as a whole: create, check, export, import, share, erase, prune."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from archivist import paths
from archivist.bank import Bank
from archivist.clock import system_clock
from archivist.doctor import (
    check_hook_failures,
    check_server,
    count_sessions,
    failed_check,
    logged_versions,
    name_damage,
)
from archivist.edges.cli import options
from archivist.edges.cli.group import cli
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    Answer,
    Table,
    embed,
    list_records,
    note,
    print_answer,
    require_terminal,
    say,
    wrap_text,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import apart_notes, approval_notes, pluralize, retired_notes
from archivist.edges.views import ledger_view, pick
from archivist.errors import (
    ArchivistError,
    BankDamagedError,
    BankError,
    InputError,
    NoBankError,
    NotFoundError,
    UntrustedBankError,
)
from archivist.files import locks
from archivist.files.git import keep_out_of_git
from archivist.files.open import list_files
from archivist.files.worktrees import shared_place
from archivist.records import Actor, ActorKind, Status
from archivist.text import on_one_line, shorten_line
from archivist.trust import has_bank_at, mark_of, note_server_bank

# The words of the two documents: snake_case, and camelCase.
_SHAPE = click.Choice(["cross-run", "reflective"])
# What undoing says of a lesson.
_UNDONE_FIELDS = (
    "summary", "rule", "detail", "remedies", "status", "frequency", "importance", "scope", "repo", "tags",
)  # fmt: skip
# More short ids than a line has room for.
_NAMED_LESSONS = 8
# The longest name of a check is that of a client: claude-code.
_NAME_WIDTH = 11
# What the counts of `status` mean whose names do not say it.
_STATUS_WORDS = {
    "candidate_lessons": "lessons seen in one run so far",
    "quarantined_lessons": "lessons that wait for your approval",
    "waiting_lessons": "lessons of others that wait for you or a run",
    "runs_counted": "runs that aged the lessons",
    "runs_waiting": "runs that wait to be learnt from",
    "runs_abandoned": "runs whose reflection was broken off",
    "events": "events in the runs",
    "briefs": "briefs given to runs",
    "verdicts": "judgements whether a told lesson helped",
    "open_conflicts": "facts that sources disagree about",
    "attempts": "logged attempts at tasks",
    "archived_pieces": "pieces of archived texts",
    "open_proposals": "proposals that wait for a decision",
    "denials": "calls refused to agents",
}
# Enough to see that the text matched too much.
_LISTED_TARGETS = 10


@options.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--as", "name", metavar="NAME", default="", help="Use the bank NAME of the server: share it.")
@options.is_global
def init(session: Session, folder: Path | None, name: str, is_global: bool) -> Answer:
    """Create a bank in FOLDER (the current one by default), or the global bank. An existing bank is kept.

    In a linked git worktree it is made in the main one, for all of them. With a server named by
    ARCHIVIST_STORE or store.url the bank is made there; folders that are given the same NAME share one.
    """
    named = paths.home_folder() if is_global else folder or Path(session.bank_path or ".")
    place = named if has_bank_at(paths.bank_file(named)) else shared_place(named)
    if name:
        if has_bank_at(paths.bank_file(place)):
            hint = "archivist store move server --as NAME moves its bank there"
            raise InputError(f"{str(place)!r} has a bank already", hint=hint)
        if not session.load_settings(None).config.store.url:
            raise InputError("no server is named", hint="set ARCHIVIST_STORE=postgresql://HOST/DATABASE")
        note_server_bank(paths.bank_file(place), name)
    shown, is_new, notes, warnings = create_bank(session, place, is_global=is_global)
    text = f"{'Made a bank' if is_new else 'There is a bank already'}: {shown}"
    if place != named:
        notes.append("hint: a linked worktree has the bank of its repository's main one")
    if name:
        text = f"This folder uses the bank {shown}"
    return Answer({"bank": shown, "created": is_new}, text, notes, warnings=warnings)


def refuse_global_place(file: Path) -> None:
    """Refuse the place of the global bank for a project's."""
    if file.absolute().parent == paths.home_folder():
        raise InputError(
            "a bank here would be the global one, which belongs to no project",
            hint="archivist init --global creates it; for a project, call this in its folder",
        )


def create_bank(
    session: Session, place: Path, *, is_global: bool = False
) -> tuple[str, bool, list[str], list[str]]:
    """Create a bank unless it is there; return where it is, whether it is new, hints, and warnings."""
    path = paths.bank_file(place)
    if not is_global:
        refuse_global_place(path)
    # The nearest bank counts, so a new one hides that of a folder above.
    existed = has_bank_at(path)
    above = None if existed or is_global else session.find_above(place.absolute().parent)[0]
    try:
        settings = session.load_settings(place).config
        with Bank.open(path, create=True, actor=session.actor(), config=settings) as bank:
            server = bank.store.server
    except UntrustedBankError:
        if not _finish_init(path, session.actor()):
            raise
        server = ""
    if server:
        return server, not existed, [], []
    problem = keep_out_of_git(path)
    notes = [f"hint: in this folder the new bank replaces {paths.bank_file(above)}"] if above else []
    if kind := locks.find_network_type(path.absolute().parent):
        notes.append(f"hint: the bank lies on a network or shared file system ({kind}): see archivist doctor")
    return str(path), not existed, notes, [f"archivist: {problem}"] if problem else []


def _finish_init(file: Path, actor: Actor) -> bool:
    """Accept a bank that an `init` of this user left when it was killed: never noted, and without content."""
    from archivist.records.kinds import KINDS

    if hasattr(os, "getuid") and file.stat().st_uid != os.getuid():
        return False
    with Bank.preview(file) as copy, copy.reading() as reader:
        is_held = mark_of(copy.store) or reader.last_entry() or reader.queued_runs() or reader.run_count()
        if is_held or any(reader.count(kind.name) for kind in KINDS) or copy.tokens.list():
            return False
    Bank.accept(file, actor, shown=copy.shown_digest)
    return True


@options.bank_command(has_global=True)
@click.option("--all", "is_all", is_flag=True, help="Also what there is none of.")
def status(bank: Bank, is_all: bool) -> Answer:
    """Print how many records of each kind there are."""
    from archivist.edges.install.changes import SetupRecord
    from archivist.recall.query import Query

    held = bank.doctor.status()
    named = {name: _STATUS_WORDS.get(name, name.replace("_", " ")) for name in held}
    if held["active_lessons"] and apart_notes(bank, ""):
        # `lessons list` names those of this repository and of none.
        own = len(bank.lessons.page(Query(statuses=(Status.ACTIVE,))))
        named["active_lessons"] = f"active lessons of all repositories ({own} of this one)"
    rows: list[tuple[str, object]] = [(named[name], held[name]) for name in held if held[name] or is_all]
    notes = [*approval_notes(held["quarantined_lessons"]), *retired_notes(bank)]
    if last := bank.erasure.last_pruned():
        notes.append(f"pruned {str(last['time'])[:10]}: {last['runs']} runs, {last['artifacts']} artifacts")
    if bank.config.server.url:
        notes.append(f"team's server: {check_server(bank).text}")
    view: dict[str, object] = dict(held)
    nothing = [] if rows else ["the bank is empty: archivist setup learns from this repository's sessions"]
    if bank.config.model.name:
        from archivist.edges.cli.model import describe_spending
        from archivist.edges.views import model_view

        view["model"] = model = model_view(bank)
        rows.append((f"model {model['name']} today", describe_spending(model["today"])))
        if waiting := len(bank.model.waiting_runs()):
            notes.append(f"{pluralize(waiting, 'run')} to be read by the model: archivist reflect asks again")
    changed = SetupRecord.load(paths.state_folder(bank.path.absolute())).find_changed()
    warnings = [f"archivist: {line}" for line in changed]
    tables: list[Table] = [(("What", "Count"), rows)] if rows else []
    return Answer(view, notes=notes + nothing, warnings=warnings, tables=tables)


@options.command()
@click.argument("name", metavar="ID", required=False)
@click.option("--entry", metavar="SEQ", type=click.IntRange(1),
              help="This change, as lessons history numbers it.")  # fmt: skip
@options.is_global
def undo(session: Session, name: str | None, entry: int | None, is_global: bool) -> Answer:
    """Undo the last change of the record ID (m-001, or the id of any record). Repeat to go further back.

    Of a lesson it is the last change that somebody made; what runs taught is taken back by --entry only.

    A removed record is also found by its name: category/key of a fact, path of an artifact, source of a text.
    """
    if name is None:
        raise click.UsageError("name the record whose last change is undone\nhint: archivist undo m-001")
    with session.bank_of(name, is_global=is_global) as (bank, (bare,)):
        known = None
        with bank.transaction():
            with suppress(NotFoundError):
                known = bank.lessons.get(bare)
            restored = bank.ledger.undo(bare, entry=entry)
        last = bank.ledger.history(restored.id)[-1] if restored else None
    view = {"id": name, "exists": restored is not None, "verb": last.entry.verb if last else "undo"}
    if restored is None:
        return Answer(view, f"{name}: undone, it no longer exists")
    lines = [f"{name}: undone"]
    for field in _UNDONE_FIELDS if known else ():
        old, new = (getattr(lesson, field) for lesson in (known, restored))
        if old != new:
            told = (", ".join(value) if isinstance(value, tuple) else value for value in (old, new))
            lines.append(f"  {field}: {' → '.join(f'“{value}”' if value else 'none' for value in told)}")
    return Answer(view, "\n".join(lines))


@options.bank_command(has_global=True)
def verify(bank: Bank) -> Answer:
    """Check the file, the hash chain of the ledger, and each record against it; exit 1 on any damage."""
    found = bank.ledger.verify()
    view = pick(found, "entries erased is_whole problems remedy")
    intact = f"The ledger is intact: {pluralize(found.entries, 'change')}, {found.erased} erased."
    hints = [f"hint: {found.remedy}"] if found.remedy else []
    return Answer(view, "\n".join(found.problems) or intact, hints, code=0 if found.is_whole else 1)


@options.bank_command(has_global=True)
@click.option("--actor", metavar="A", default="", help="Only changes by A: human, agent, agent:NAME.")
@click.option("--kind", metavar="K", default="", help="Only changes of this kind of record: lesson, block.")
@click.option("--verb", metavar="V", default="", help="Only this verb: put, accept, deny.")
@options.since
@options.limit(most=10_000, default=50)
def ledger(bank: Bank, /, limit: int, **wanted: Any) -> Answer:
    """List who changed what and when, the newest first. Of one record: archivist lessons history ID."""
    entries = bank.ledger.changes_by(**wanted, limit=limit)
    # To an agent the words of what waits for approval are not there.
    words = {} if bank.actor.kind is ActorKind.AGENT else bank.ledger.record_words(entries)
    time = ("Time", lambda entry: f"{entry.time:%Y-%m-%dT%H:%M:%SZ}")
    what = ("What", lambda entry: shorten_line(words.get(entry.record, ""), 60))
    columns = "seq", time, "actor", "verb", "kind", "record", what
    return list_records("changes", entries, ledger_view, *columns, empty="no such change")


@options.command()
@click.option("--reindex", is_flag=True, help="Rebuild indexes, text index, vectors and counters.")
def doctor(session: Session, reindex: bool) -> Answer:
    """Check the bank and the clients' connection to it; exit 1 on a warning."""
    if reindex:
        with session.bank() as bank:
            bank.doctor.reindex()
            embed(bank)
    from archivist.edges.install.chain import check_chain, is_name_gone

    place, here, problem = session.find_bank_path(), Path.cwd(), None
    versions: dict[str, str] = {}
    sessions: dict[str, int] = {}
    file = None if place is None else paths.bank_file(place).absolute()
    # The folder whose settings a client reads that is opened here.
    root = (paths.project_folder(file) if file else here) if session.bank_path else paths.checkout_of(here)
    try:
        home = Path.home()
    except RuntimeError:
        home = None

    def is_past(_when: datetime, failure: str) -> bool:
        return is_name_gone(failure, root.absolute(), home)

    try:
        with session.bank(folder=here) as bank:
            checks = bank.doctor.health(is_past)
            versions, sessions = logged_versions(bank), count_sessions(bank)
    except ArchivistError as error:
        # To a search upwards, a folder that cannot be read looks like no bank.
        problem = name_damage(error) if isinstance(error, BankDamagedError) else error
        if isinstance(error, NoBankError) and (held := paths.unreadable_above(here)) is not None:
            hint = "check the permissions of the folder"
            problem = BankError(f"{str(held)!r} cannot be read", hint=hint)
        checks = [failed_check("bank", problem), check_hook_failures(file, system_clock(), is_past)]
    log_folder = paths.state_folder(file) if file else paths.home_folder()
    checks += check_chain(root.absolute(), home, log_folder, versions, sessions)
    views = [{"name": check.name, "ok": check.is_well, "text": check.text} for check in checks]
    lines = [
        wrap_text(
            f"{'ok  ' if each.is_well else 'warn'}  {each.name:<{_NAME_WIDTH}}  {on_one_line(each.text)}"
        )
        for each in checks
    ]
    is_well = all(check.is_well for check in checks)
    return Answer({"checks": views}, "\n".join(lines), code=0 if is_well else 1, error=problem)


@options.bank_command(has_global=True)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--shape", type=_SHAPE, default="cross-run", show_default=True, help="snake_case or camelCase.")
@click.option("--events", is_flag=True, help="Also write what happened in the runs: events.jsonl.")
def export(bank: Bank, folder: Path, shape: str, events: bool) -> Answer:
    """Write lessons, archive, episodes and audit as JSON lines into FOLDER."""
    from archivist.exchange.files import LessonFormat

    written = bank.exchange.export(folder, shape=LessonFormat(shape), has_events=events)
    lines = [f"{folder / name}  {pluralize(number, 'line')}" for name, number in written.items()]
    return Answer({"folder": str(folder), "lines": written}, "\n".join(lines))


@options.bank_command(name="import")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Import nothing when one line is bad.")
@click.option("--approve", is_flag=True, help="You vouch for the files: their lessons are believed.")
@options.is_global
def import_(bank: Bank, paths: tuple[Path, ...], strict: bool, approve: bool) -> Answer:
    """Import lessons, episodes and audit records from files, or from all *.jsonl of a folder.

    Both spellings are recognised by their content. A record that the bank knows is merged. Without --approve
    no run is told the lessons before you approve them or a run of your own meets them, and verdicts, briefs
    and core memory are left out.
    """
    files: list[Path] = []
    pages: list[str] = []
    for path in paths:
        page = f"bank.md and its versions: archivist archive import-bank {path}"
        if path.suffix == ".md":
            raise InputError(f"{str(path)!r} is Markdown, and import takes JSON lines", hint=page)
        inside = list_files(path, "*.jsonl") if path.is_dir() else [path]
        pages += [page] if path.is_dir() and any(path.glob("bank*.md")) else []
        if not inside:
            usual = "archivist export writes such a folder; archivist capture takes agents' logs"
            raise InputError(f"{str(path)!r} has no *.jsonl files", hint="; ".join(pages) or usual)
        files += [file for file in inside if not path.is_dir() or file.stat().st_size]
    done = bank.exchange.import_files(files, is_strict=strict, is_approved=approve)
    embed(bank)
    known = ("lessons", "episodes", "briefs", "verdicts")
    lines = []
    for kind in dict.fromkeys((*known, *done.created, *done.changed, *done.unchanged)):
        new, merged, same = (count.get(kind, 0) for count in (done.created, done.changed, done.unchanged))
        if new or merged or same:
            lines.append(f"{kind}: {new} new, {merged} merged, {same} the same")
    skipped = list(map(str, done.problems))
    notes = [f"{old} is {name} here: the number was taken" for old, name in done.renumbered.items()]
    if done.waiting:
        first, more = done.waiting[:_NAMED_LESSONS], len(done.waiting) - _NAMED_LESSONS
        names = " ".join(first) + (f" … ({more} more: archivist lessons list --waiting)" if more > 0 else "")
        count = pluralize(len(done.waiting), "lesson")
        notes.append(f"waiting for you: {count}; archivist lessons approve {names}")
    notes += pages
    if done.left:
        left = ", ".join(f"{number} {kind}" for kind, number in done.left.items())
        notes.append(f"left out: {left}; archivist import --approve takes them, if you trust the files")
    view = pick(done, "created changed unchanged renumbered waiting left") | {"skipped": skipped}
    return Answer(view, "\n".join(lines), notes, skipped=skipped)


@options.bank_command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--trust", metavar="ORIGIN", multiple=True, help="Trust this clone from now on; repeatable.")
def share(bank: Bank, folder: Path, trust: tuple[str, ...]) -> Answer:
    """Import what other clones wrote to FOLDER, and write what this bank knows. Commit FOLDER to git.

    What a clone wrote is told to no run before you accept that clone, once, with --trust.
    """
    done = bank.exchange.share(folder, trust=trust)
    skipped = list(map(str, done.problems))
    lessons, audits = pluralize(done.changed["lessons"], "lesson"), done.changed["audit"]
    notes = []
    for lesson, twin in done.united:
        said = f", it said “{twin.summary}”" if twin.summary != lesson.summary else ""
        notes.append(
            f"learnt here and elsewhere: {lesson.short_id}, now counted from both ({lesson.frequency}x);"
            f" {twin.short_id} is superseded{said}"
        )
    for kept, other in done.conflicts:
        is_retired = other.status.is_retired and not kept.status.is_retired
        said = "retired it" if is_retired else f"says “{other.summary}”"
        notes.append(
            f"conflict: {kept.short_id} stays “{kept.summary}”; the other version {said}:"
            f" archivist lessons history {kept.short_id}"
        )
    for origin, count in done.waiting.items():
        held, log = pluralize(count, "lesson"), f"git log {folder}/lessons/{origin}.jsonl says who wrote it"
        if origin == done.origin:
            what = f"somebody else changed {held} in this bank's own file, and none of it is told"
            notes.append(f"{what}: {log}, archivist lessons list --waiting what is new")
        else:
            trusts = f"archivist share {folder} --trust {origin} believes that clone from now on"
            notes.append(f"waiting from {origin}: {held}; {log}, {trusts}")
    view = pick(done, "changed written waiting") | {"skipped": skipped}
    for name, pairs in (("united", done.united), ("conflicts", done.conflicts)):
        view[name] = [{"lesson": kept.short_id, "other": other.summary} for kept, other in pairs]
    wrote = f"wrote {pluralize(done.written['lessons'], 'lesson')} to {folder}"
    text = f"imported {lessons} and {pluralize(audits, 'audit record')}; {wrote}"
    return Answer(view, text, notes, skipped=skipped)


@click.command()
@click.argument("names", metavar="[ID]…", nargs=-1)
@click.option("--matching", metavar="TEXT", help="Erase this text everywhere; - reads it from stdin.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.is_global
@options.as_json
@click.pass_obj
def erase(
    session: Session, names: tuple[str, ...], matching: str | None, yes: bool, is_global: bool, as_json: bool
) -> int:
    """Erase records by their ids (m-001, a run, run#12, a brief), or a text everywhere, with a receipt.

    Erasing a text keeps the records that hold it, with [erased] in its place. The exit code is 7 when a place
    still holds something or could not be checked.
    """
    from archivist.forget.receipt import receipt_lines, receipt_view

    if bool(names) == (matching is not None):
        raise click.UsageError("give IDs or --matching TEXT\nhint: archivist erase m-001")
    text = options.read_text_argument("-").strip() if matching == "-" else matching or ""
    with session.bank_of(*names, is_global=is_global) as (bank, bare):
        targets = bank.erasure.find_erasure_targets(bare, matching=text)
        if not yes:
            # Nobody can answer a question there, erasing cannot be undone, and what matches may be a secret.
            require_terminal("erasing", "--yes erases without asking")
            for target in targets[:_LISTED_TARGETS]:
                verb = "remove" if target.is_whole else "change"
                note(f"{verb}  {target.kind:<8}{target.name}  {target.words}")
            if len(targets) > _LISTED_TARGETS:
                note(f"… and {len(targets) - _LISTED_TARGETS} more")
            if not targets:
                note("no record holds it; files and free pages are still searched")
            if not click.confirm("Erase for good?", err=True):
                note("nothing was erased")
                return 0
        receipt = bank.erasure.erase(bare, matching=text)
        # Before the vectors are made: what was erased is said even if that fails.
        print_answer(Answer(receipt_view(receipt), "\n".join(receipt_lines(receipt))), as_json)
        if receipt.removed_count:
            embed(bank)
    return 0 if receipt.is_clean else EXIT_PARTIAL


@options.command()
@click.option("--days", type=options.DAYS, metavar="N", help="Delete runs older than N days.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted; the default without --yes.")
@click.option("--yes", is_flag=True, help="Delete them.")
@options.is_global
def prune(session: Session, days: int | None, dry_run: bool, yes: bool, is_global: bool) -> Answer:
    """Delete runs with their events that are older than retention.episodes_days.

    Runs that lessons cite or that wait for reflection stay. Lessons are never deleted by age.
    """
    from archivist.forget.retention import format_mb

    if dry_run and yes:
        raise click.UsageError("--dry-run and --yes exclude each other")
    with session.bank(is_global=is_global) as bank:
        done = bank.erasure.prune(days=days, is_dry_run=not yes)
    view = pick(done, "days runs trimmed events artifacts is_dry_run is_given_back kept")
    view["freed_bytes"] = done.freed
    verb = "would delete" if done.is_dry_run else "deleted"
    trimmed = f"; trimmed {pluralize(done.trimmed, 'run')} to the cited events" if done.trimmed else ""
    text = (
        f"older than {done.days} days: {verb} {pluralize(done.runs, 'run')} and"
        f" {pluralize(done.events, 'event')}, about {format_mb(done.freed)}{trimmed}"
    )
    if done.artifacts:
        text += f"; {verb} {pluralize(done.artifacts, 'artifact')} of files that changed or are gone"
    kept = [f"kept: {pluralize(number, 'run')}, {reason}" for reason, number in done.kept.items()]
    is_needed = done.is_dry_run and (done.runs or done.trimmed or done.artifacts)
    notes = ["hint: --yes deletes them"] if is_needed else []
    # The file can only shrink while no other process uses it.
    if not done.is_given_back:
        notes += [
            "archivist: the file keeps its size, because another process uses the bank",
            "hint: stop that process and prune again",
        ]
    return Answer(view, "\n".join((text, *kept)), notes, code=0 if done.is_given_back else EXIT_PARTIAL)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(archivist completion bash)"."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kinds = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    say(kinds[shell](cli, {}, "archivist", "_ARCHIVIST_COMPLETE").source())
