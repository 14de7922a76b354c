"""Commands about lessons, and about whether they helped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.audit.lift import Lift, LiftConclusion
from archivist.audit.period import resolve_period
from archivist.audit.report import recommend_steps
from archivist.brief.select import global_mark_of
from archivist.edges import views
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import (
    Answer,
    confirm,
    is_terminal,
    list_changes,
    list_records,
    note,
    write_file,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import apart_notes, call_lines, field_lines, pluralize, short_repos
from archivist.errors import NotFoundError, StateError
from archivist.lessons.quarantine import quarantine_reason
from archivist.records.run_words import Effect
from archivist.records.words import (
    RETIRED,
    ActorKind,
    Category,
    LessonType,
    Provenance,
    Scope,
    Severity,
    Status,
)

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Lesson

# Fields of a lesson that `lessons show` prints, in this order, where they are not empty.
_LESSON_FIELDS = (
    "status", "quarantined_for", "provenance", "brought_by", "waits_for", "type", "domain", "role", "repo",
    "task", "provider", "tool", "stale", "importance", "met_in", "runs_since_last_seen", "helpful",
    "ineffective", "ignored", "superseded_by", "created", "updated",
)  # fmt: skip
# Remedy and situation of most lessons fit into so many lines of 60 characters.
_ROW_LINES = 4
# A lesson may have been seen in hundreds of runs.
_LISTED = 6
# What a lesson applies to: the same for adding, editing and listing.
_facet_options = options.combine(
    click.option("--type", type=options.enum_choice(LessonType), help="What kind of lesson it is."),
    options.listed_choice("--category", words=Category, text="What sort of advice it is"),
    click.option("--scope", type=options.enum_choice(Scope), help="What it is about."),
    click.option("--domain", metavar="D", help="writing, code, general, or your own."),
    click.option("--role", metavar="R", help="The role it is for."),
    click.option("--repo", metavar="R", help="The repository it is for."),
    click.option("--task", metavar="T", help="The task it is for."),
    click.option("--provider", metavar="P", help="The provider it is for."),
    click.option("--tool", metavar="T", help="The tool it is for."),
    click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated."),
)
# Its own words and weight.
_content_options = options.combine(
    click.option("--rule", metavar="TEXT", help='"IF … THEN …"'),
    click.option("--detail", metavar="TEXT", help="A short paragraph with more context."),
    click.option("--severity", type=options.enum_choice(Severity), help="How bad it is to ignore it."),
    click.option("--importance", type=float, help="0 to 1."),
    options.is_global,
)


def _drop_unset(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


lessons = CommandGroup("lessons", default="list", help="List, show, add, edit and forget lessons.")
lessons.meanings = dict.fromkeys(("delete", "remove", "rm"), "forget")


@options.bank_command(lessons, "list", has_global=True)
@_facet_options
@click.option("--phase", metavar="P", help="About a phase: test, lint, typecheck, build, …")
@click.option("--error", metavar="E", help="About a kind of failure: missing_module, timeout, usage, …")
@click.option("--all", "with_retired", is_flag=True, help="Also superseded and archived ones.")
@click.option("--status", type=options.enum_choice(Status), help="Only this status.")
@click.option("--waiting", is_flag=True, help="Only those that no run is told before you approve them.")
@click.option("--matching", metavar="TEXT", help="Only matches by words or meaning, best first.")
@options.limit()
def list_(
    bank: Bank, /, with_retired: bool, status: str | None, waiting: bool, matching: str | None, **asked: Any
) -> Answer:
    """Print the live and quarantined lessons as a table, or with --all every lesson.

    In the folder of a repository they are those of this repository and of none; --repo
    names another, and --repo '*' lists all. Told: at session start, when its failure recurs, when a prompt
    or a search asks; what waits is told to nobody. Below it stands which lessons are not from your own runs.
    """
    from archivist.brief.moments_service import SHORT_WORDS
    from archivist.recall.query import LIVE, Query
    from archivist.recall.results import listed_words

    usual = tuple(Status) if with_retired else (*LIVE, Status.QUARANTINED)
    statuses = (Status(status),) if status else usual
    query = Query(text=matching or "", statuses=statuses, is_matching=True, **_drop_unset(asked))
    found = bank.lessons.query(query)
    if waiting:
        held = [lesson for lesson in found if lesson.is_waiting or lesson.status is Status.QUARANTINED]
        found = [lesson for lesson in held if not lesson.status.is_retired]
    if not matching and not asked["limit"]:
        # Without a question no lesson is the best, so they are numbered.
        found.sort(key=lambda lesson: lesson.number)
    repos = short_repos(lesson.repo for lesson in found)
    # Another bank's lessons, and those of all repositories, are told to nobody here.
    is_here = asked["repo"] != "*" and not click.get_current_context().params["is_global"]
    moments, out_of_date = bank.moments.list_told(asked["repo"] or "") if is_here else ({}, {})
    columns: dict[str, Callable[[Lesson], object]] = {
        "ID": lambda lesson: lesson.short_id,
        "Freq": lambda lesson: lesson.shown_frequency,
        "Told": lambda lesson: SHORT_WORDS.get(moments.get(lesson.id, ""), ""),
        "Status": lambda lesson: ": ".join(filter(None, (lesson.status, quarantine_reason(lesson)))),
        "Type": lambda lesson: lesson.type,
        "Domain": lambda lesson: lesson.domain,
        "Project": lambda lesson: repos[lesson.repo],
        "Description": listed_words,
    }
    # The cross-run document's own command begins with its columns.
    is_documented = click.get_current_context().command_path.split()[-2:-1] != ["lessons"]
    if is_documented:
        columns |= {name: columns.pop(name) for name in ("Status", "Project", "Told")}
    statuses_found = {lesson.status for lesson in found}
    if not with_retired and len(statuses_found) < 2 and Status.QUARANTINED not in statuses_found:
        del columns["Status"]
    if all(columns["Told"](lesson) in ("", "waits") for lesson in found):
        del columns["Told"]
    if not any(repos):
        del columns["Project"]
    elif is_terminal() and not is_documented:
        # Of 80 columns the words need most.
        del columns["Type"], columns["Domain"]
    rows = [[cell(lesson) for cell in columns.values()] for lesson in found]
    shown = views.told_views(bank.lessons.views(found), moments, out_of_date)
    notes = _source_notes(found, out_of_date)
    notes += [*_claim_notes(found), *_replacing_notes(view for view in shown if not view["confirmed"])]
    notes += apart_notes(bank, asked["repo"] or "")
    if not rows and not (asked["limit"] or matching or waiting or status or with_retired):
        notes.append("no lessons here: archivist setup learns from this repository's sessions")
    return Answer({"lessons": shown}, notes=notes, tables=[(tuple(columns), rows)], row_lines=_ROW_LINES)


def _name_some(names: Sequence[str], separator: str = ", ", more: str = " and ") -> str:
    """Return the first names of a list, and how many more there are."""
    rest = f"{more}{len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{separator.join(names[:_LISTED])}{rest}"


def _source_notes(found: Sequence[Lesson], out_of_date: Collection[str]) -> list[str]:
    """Say which lessons are not from the user's own runs, and which are out of date."""
    sources: dict[str, list[str]] = {}
    for lesson in found:
        if not lesson.provenance.is_own:
            waits = "waiting for approval" if lesson.is_waiting else "approved"
            state = lesson.status.value if lesson.status.is_retired else waits
            sources.setdefault(f"{lesson.provenance.label}, {state}", []).append(lesson.short_id)
    if old := [lesson.short_id for lesson in found if lesson.id in out_of_date]:
        sources["out of date, so told only if their failure recurs"] = old
    return [f"{label}: {_name_some(names)}" for label, names in sources.items()]


def _claim_notes(found: Sequence[Lesson]) -> list[str]:
    """Say which counts a file claims beyond what was seen here."""
    seen = {lesson.id: 0 if lesson.is_waiting else lesson.frequency for lesson in found}
    claims = [
        f"{lesson.short_id} {lesson.claimed_frequency} claimed, {seen[lesson.id]} seen here"
        for lesson in found
        if lesson.claimed_frequency > max(1, seen[lesson.id])
    ]
    return [f"counts of a file: {_name_some(claims, '; ', '; and ')}"] if claims else []


@options.command(lessons)
@click.argument("name", metavar="ID")
@options.is_global
def show(session: Session, name: str, is_global: bool) -> Answer:
    """Print everything about the lesson ID (m-001), on a terminal in the pager if it is long."""
    with session.bank_of(name, is_global=is_global) as (bank, (bare,)):
        lesson = bank.lessons.get(bare)
        view = {
            **views.lesson_views(bank, [lesson], mark=global_mark_of(name))[0],
            "stale": bank.liveness.find_stale([lesson]).get(lesson.id, ""),
        }
        calls = bank.lessons.cited_calls(lesson)
        successors = bank.lessons.get_many([lesson.superseded_by] if lesson.superseded_by else [])
    # Its words first, the calls that show it, then what is known of it.
    words = [f"  {view[key]}" for key in ("rule", "detail") if view[key]]
    words += [f"  {line}" for line in _replacing_notes([view])]
    quotes = [line for word, event in calls.items() for line in call_lines(event, word, lesson.detail)]
    # What an agent cites is its word.
    seen_in = "cited" if view["provenance"] == Provenance.SUGGESTED else "seen in"
    lists = {
        "tags": view["tags"],
        "runs": view["runs"],
        f"{seen_in} events": view["evidence"].get("events", ()),
    }
    labels = {effect.value: effect.label for effect in Effect}
    # Counts of nothing say nothing; the rest of the record is for programs.
    superseded_by = ", ".join(f"{global_mark_of(name)}{each.short_id}" for each in successors)
    shown = {**view, "met_in": lesson.met_in, "superseded_by": superseded_by}
    fields = [(labels.get(key, key), shown.get(key) or "") for key in _LESSON_FIELDS]
    if lesson.status is Status.ARCHIVED and not lesson.superseded_by:
        faded = "no run met it for long" if lesson.faded and not lesson.frequency else "somebody forgot it"
        fields.append(("archived because", lesson.extra.get(RETIRED) or faded))
    if lesson.worded_by:
        fields.append(("worded by", f"the language model {lesson.worded_by}"))
    if view["waits_for"] or view["quarantined_for"]:
        fields.append(("version", view["version"]))
    fields += [(key, _name_some(values)) for key, values in lists.items()]
    lines = (f"{view['id']}  {view['summary']}", *words, *quotes, "", *field_lines(fields, 22))
    return Answer(view, "\n".join(lines), notes=["every field: --json"], is_paged=True)


lessons.add_command(show, "open")


@options.command(lessons)
@click.argument("words", metavar="[TYPE] TEXT", nargs=-1, required=True)
@_facet_options
@_content_options
def add(session: Session, /, words: tuple[str, ...], is_global: bool, **fields: Any) -> Answer:
    """Add TEXT as a lesson: a preference unless TYPE or --type is given, and active at once.

    A lesson that an agent adds is a candidate, and a pattern unless a type is given.
    """
    values = _drop_unset(fields)
    *kinds, text = words
    if not kinds and text in list(LessonType):
        raise click.UsageError(f'{text!r} is a type; what is the lesson?\nhint: archivist add {text} "TEXT"')
    if kinds:
        is_type = kinds[0] in list(LessonType) and values.setdefault("type", kinds[0]) == kinds[0]
        if kinds[1:] or not is_type:
            raise click.UsageError('one text, with quotation marks around it\nhint: archivist add "TEXT"')
    if is_global:
        # What everybody shares belongs to no project.
        values.setdefault("scope", Scope.GLOBAL.value)
    with session.bank(is_global=is_global, folder=Path.cwd()) as bank:
        return _saved_answer(bank, bank.lessons.add(text, **values))


@options.command(lessons)
@click.argument("name", metavar="ID")
@click.option("--summary", metavar="TEXT", help="New words for it.")
@_facet_options
@_content_options
def edit(session: Session, /, name: str, is_global: bool, **fields: Any) -> Answer:
    """Change the lesson ID; its history keeps the earlier version."""
    values = _drop_unset(fields)
    if not values:
        raise click.UsageError("nothing to change\nhint: archivist lessons edit --help lists the options")
    with session.bank_of(name, is_global=is_global) as (bank, (bare,)):
        return _saved_answer(bank, bank.lessons.edit(bare, **values), global_mark_of(name))


def _saved_answer(bank: Bank, lesson: Lesson, mark: str = "") -> Answer:
    """Return a lesson that was written, and how to approve it if it is quarantined or waits."""
    name = f"{mark}{lesson.short_id}"
    why = quarantine_reason(lesson)
    held = f"quarantined ({why})" if why else "waits for a person" if lesson.is_waiting else ""
    notes = (f"{held}: archivist lessons approve {name}",) if held else ()
    return Answer(views.lesson_views(bank, [lesson], mark=mark)[0], f"{name}  {lesson.summary}", notes)


def _status_answer(
    bank: Bank, verb: str, known: Sequence[Lesson], after: Sequence[Lesson], mark: str
) -> Answer:
    """Return which lessons were changed, and which had that status before."""
    changed = [f"{mark}{lesson.short_id}" for lesson in after if lesson not in known]
    unchanged = [f"{mark}{lesson.short_id}" for lesson in after if lesson in known]
    text = f"{pluralize(len(changed), 'lesson')} {verb}: {', '.join(changed)}" if changed else ""
    notes = (f"{verb} already: {', '.join(unchanged)}",) if unchanged else ()
    return Answer({"lessons": views.lesson_views(bank, after, mark=mark)}, text, notes)


@options.command(lessons)
@click.argument("names", nargs=-1, required=True, metavar="ID…")
@click.option("--version", metavar="V", default="", help="The version of the words you read, as show prints.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.is_global
def approve(session: Session, names: tuple[str, ...], version: str, yes: bool, is_global: bool) -> Answer:
    """Approve the lessons ID as they are worded: those that waited are briefed from now on.

    Only a person can. archivist lessons list --waiting shows them, lessons show ID one of them in full. What
    was approved is printed, and which lessons it replaces; what you said yourself stays. Quarantined words,
    and an agent's that it has changed, need your confirmation: on a terminal, --yes or --version.
    """
    from archivist.lessons.standing import lesson_version, needs_version

    if version and len(names) > 1:
        raise click.UsageError("--version is for one lesson\nhint: approve them one by one")
    mark = global_mark_of(names[0])
    with session.bank_of(*names, is_global=is_global) as (bank, bare):
        known = bank.lessons.get_many(bare)
        asked = [lesson for lesson in known if needs_version(lesson) and not lesson.status.is_retired]
        if asked and not (yes or version) and session.actor().kind is ActorKind.HUMAN:
            for line in _approval_lines(views.lesson_views(bank, asked, mark=mark)):
                note(line)
            hint = "--yes approves it as it reads now, --version V only if it is what you read"
            if not confirm("Approve it?", "approving this", hint):
                return Answer({"lessons": []}, "nothing was approved")
        # One unknown id changes nothing at all.
        with bank.transaction():
            shown = dict(zip(bare, map(lesson_version, known), strict=False))
            approved = [bank.lessons.approve(name, version or shown.get(name, "")) for name in bare]
            answer = _status_answer(bank, "approved", known, approved, mark)
            new = [lesson for lesson in approved if lesson not in known]
            lines = _approval_lines(views.lesson_views(bank, new, mark=mark))
    notes = (*answer.notes, *_claim_notes(new))
    return answer._replace(text="\n".join(filter(None, (answer.text, *lines))), notes=notes)


def _approval_lines(lessons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what an approval is about: all the words of each lesson, and which lessons it replaces."""
    lines = []
    for view in lessons:
        words = [view[key] for key in ("rule", "detail", "quarantined_for") if view[key]]
        words += [f"advises: {remedy}" for remedy in view["remedies"]]
        lines += [f"{view['id']}  {view['summary']}", *(f"  {text}" for text in words)]
    return [*lines, *_replacing_notes(lessons)]


def _replacing_notes(lessons: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say which lessons each one replaces, now or once it is approved, and which of yours it leaves."""
    notes = []
    for view in lessons:
        name, stay = view["id"], view["kept_beside"]
        mark = global_mark_of(name)
        if view["supersedes"]:
            notes.append(f"{name} replaces {', '.join(view['supersedes'])} when you approve it")
        if view["replaced"] and view["confirmed"]:
            notes.append(f"{name} replaces {', '.join(view['replaced'])}")
        if stay:
            wanted = f"{name} asks to replace your {', '.join(stay)}, which stay; to replace them:"
            names = " ".join(f"{mark}{each}" for each in stay)
            notes.append(f"{wanted} archivist lessons forget {names} --replaced-by {name}")
    return notes


@options.bank_command(lessons, "claim")
@click.argument("repo", metavar="NAME")
@click.option("--yes", "is_taken", is_flag=True, help="Take the name also from another repository.")
def claim(bank: Bank, /, repo: str, is_taken: bool) -> Answer:
    """Say that what is filed under NAME is of the repository of the current folder.

    A name that you used before any run was made there is told in no folder: another could be called the same.
    """
    bank.lessons.claim(repo, is_taken=is_taken)
    folder = str(bank.folder or bank.root)
    return Answer({"repo": repo, "folder": folder}, f"{repo} is the repository of {folder}")


@options.command(lessons)
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@click.option("--replaced-by", metavar="ID", help="The lesson that says it better.")
@options.is_global
def forget(session: Session, names: tuple[str, ...], replaced_by: str | None, is_global: bool) -> Answer:
    """Move lessons to the archive, whatever their frequency. If one ID is unknown, none is moved.

    With --replaced-by they are superseded by that lesson instead. A command that a brief names under
    "Commands here" or "Failed here lately" is an ID, too: it is told no more.
    """
    every = [*names, replaced_by] if replaced_by else names
    with session.bank_of(*every, is_global=is_global) as (bank, bare), bank.transaction():
        by = bare.pop() if replaced_by else ""
        try:
            known = bank.lessons.get_many(bare)
        except NotFoundError:
            if by or bare[1:] or not bank.commands.tells(bare[0]):
                raise
            kept = bank.commands.silence(bare[0])
            undo = f"to undo: archivist undo {kept.short_id}"
            return Answer({"lessons": views.lesson_views(bank, [kept])}, f"told no more: {bare[0]}; {undo}")
        gone = [bank.lessons.archive(name, by) if by else bank.forget(name) for name in bare]
        return _status_answer(bank, "superseded" if by else "archived", known, gone, global_mark_of(names[0]))


@options.command(lessons)
@click.argument("names", metavar="ID ID…", nargs=-1, required=True)
@click.option("--summary", metavar="TEXT", default="", help="New words for it.")
@click.option("--rule", metavar="TEXT", default="", help='"IF … THEN …"')
@options.is_global
def merge(session: Session, names: tuple[str, ...], is_global: bool, **words: str) -> Answer:
    """Make one lesson of several that say the same, counted from all of them; the first keeps its id."""
    with session.bank_of(*names, is_global=is_global) as (bank, bare):
        return _saved_answer(bank, bank.lessons.merge(bare, **words).lesson, global_mark_of(names[0]))


@options.command(lessons)
@click.argument("name", metavar="ID")
@options.is_global
def history(session: Session, name: str, is_global: bool) -> Answer:
    """Print every change of the lesson ID, with its actor."""
    with session.bank_of(name, is_global=is_global) as (bank, (bare,)):
        return list_changes(views.history_views(bank.ledger.history(bare)))


_LEGEND = (
    "Told: runs that were given the lesson. Of these, Helped: followed it, and its failure did not come, or"
    " not again; Did not help: met its failure all the same; Ignored: did not follow it, and did not fail;"
    " Not needed: did nothing that it is about; Not known: the log does not tell. Helped share: of the runs"
    " that it helped or did not help, with its 95 % interval. Not found/found again: runs in which reviewers"
    " did not report its finding again, or did, and their ratio."
)
_LEGEND_HELD_OUT = (
    " Withheld: runs that needed the lesson and, chosen at random, were not given it; Prevents: how much less"
    " often runs failed that were given it, with the 95 % interval; More runs: so many are needed to see an"
    " effect with a chance of one half."
)
_LEGEND_CHECK = (
    "Effect: helped means that the run needed the lesson and followed it, and its failure did not come. Not"
    " found again: helpful means that no reviewer reported its finding again, needed or not."
)

audit = CommandGroup("audit", help="Judge whether briefed lessons helped.")


@options.command(audit)
@click.argument("run", metavar="RUN")
def check(session: Session, run: str) -> Answer:
    """Judge each lesson that RUN was given: whether the run needed it, followed it, and it helped."""
    with session.bank() as bank:
        global_bank = session.global_bank()
        try:
            run = bank.runs.episode(run).id
        except NotFoundError as error:
            if not bank.audits.briefs_of(run):
                raise
            hint = f"archivist extract EVENTS.jsonl, then archivist audit-check {run}"
            raise StateError(f"run {run!r} was told lessons, and has no events yet", hint=hint) from error
        judged = bank.audit(run, global_bank=global_bank)
        verdicts = views.verdicts_view(bank, judged, global_bank=global_bank)
    columns = (
        ("ID", "lesson"),
        ("Effect", lambda view: Effect(view["effect"]).label),
        ("Followed", lambda view: view["following"].replace("_", " ")),
        ("Not found again", "effectiveness"),
        ("Description", "summary"),
    )
    nothing = f"run {run!r} was given no lessons"
    answer = list_records("verdicts", verdicts, None, *columns, empty=nothing, run=run)
    return answer._replace(notes=(*answer.notes, _LEGEND_CHECK)) if verdicts else answer


@options.command(audit)
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Write a chart to FILE.")
@click.option("--lesson", "name", metavar="ID", help="Only this lesson.")
@click.option("--days", type=options.DAYS, metavar="N", help="Only runs of the last N days.")
@click.option("--since", type=options.DateTimeParam(), help="Only runs from this day on.")
@click.option("--until", type=options.DateTimeParam(), help="Only runs before this day.")
@options.is_global
def report(
    session: Session, svg: str | None, name: str | None, is_global: bool, days: int | None, **dates: Any
) -> Answer:
    """Say whether memory helped, then per lesson, worst first, per month, and in total.

    The runs of a period are compared with those of as many days before it. Where lessons are withheld from
    some runs (hold-out), failures with and without them are compared.
    """
    with session.bank_of(*filter(None, [name]), is_global=is_global) as (bank, bare):
        lesson = bank.lessons.get(bare[0]) if bare else None
        period = resolve_period(bank.now(), days=days or 0, **dates)
        found = bank.audits.audit_report(period, lesson=lesson.id if lesson else "")
    # Lessons of the global bank are named as briefs name them.
    mark = global_mark_of(name or "")
    lines = tuple(replace(line, lesson=f"{mark}{line.lesson}") for line in found.lessons)
    steps = recommend_steps(replace(found, lessons=lines))
    if svg and lines:
        from archivist.charts import draw_report_chart

        title = f"Did {lines[0].lesson} help?" if lesson else "Did the lessons help?"
        write_file(svg, draw_report_chart(lines[0] if lesson else found.total, title))
    view: dict[str, object] = {
        "lessons": [views.report_row_view(line) for line in lines],
        "proposals": [asdict(each) for each in steps],
    }
    if not lesson:
        view["months"] = [views.report_row_view(line) for line in found.months]
        view["total"] = views.report_row_view(found.total)
        view["answer"] = views.answer_view(found)
    answer = found.answer.text if found.answer and not lesson else ""
    if not lines:
        nothing = "no verdicts yet: they come when a session that was told lessons ends"
        nothing = nothing if period.is_all else "no lesson was judged in this period"
        return Answer(view, "" if period.is_all else answer, notes=(nothing,))
    shown = [*lines, *(() if lesson else (*found.months, found.total))]
    is_held_out = any(line.lift.arms.withheld for line in shown)
    effects = (effect.label.capitalize() for effect in Effect)
    compared = ("Withheld", "Fails told/withheld", "Prevents", "More runs") if is_held_out else ()
    headings = ("ID", "Told", *effects, "Helped share", "Not found/found again", *compared)
    step_of = {each.lesson: each.step for each in steps}
    rows = []
    for line in shown:
        low, high = line.posterior.interval
        share = "too few" if line.judged_count else "-"
        if line.share is not None:
            share = f"{line.share:.0%} ({low:.0%} to {high:.0%})"
        counts = (getattr(line, effect.value) for effect in Effect)
        lift = _lift_cells(line.lift) if is_held_out else ()
        ratio = f" ({line.ratio:.1f})" if line.ratio is not None else ""
        documented, step = f"{line.not_found_again}/{line.found_again}{ratio}", step_of.get(line.lesson, "")
        rows.append((line.lesson, line.told, *counts, share, documented, *lift, step, line.summary))
    table = (*headings, "Proposal", "Description"), rows
    # In the whole report only what calls for an action.
    needed = [each for each in steps if lesson or each.step != "keep"]
    advice = [f"{each.step} {each.lesson}: {each.reason}" for each in needed]
    notes = [_LEGEND + (_LEGEND_HELD_OUT if is_held_out else ""), *advice]
    return Answer(view, answer, notes=notes, tables=[table])


@options.bank_command(audit)
@click.argument("run", metavar="RUN")
def regressions(bank: Bank, run: str) -> Answer:
    """Report findings of RUN that an earlier run had fixed; exit 1 when there are any."""
    run = bank.runs.episode(run).id
    found = bank.audits.regressions(run)
    columns = ("Fixed in", "fixed_in"), ("Severity", "found.severity"), ("Found again", "found.description")
    nothing = "nothing that was fixed came back"
    answer = list_records("regressions", found, views.regression_view, *columns, empty=nothing, run=run)
    return answer._replace(code=1 if found else 0)


def _lift_cells(lift: Lift) -> tuple[str, ...]:
    """Return the cells that compare told with withheld runs; of few runs only the counts."""
    arms = lift.arms
    withheld, needed = str(arms.withheld), "-" if lift.runs_needed is None else str(lift.runs_needed)
    if arms.is_few or lift.difference is None or lift.interval is None:
        counts = f"{arms.told_failed:g} of {arms.told:g}/{arms.withheld_failed:g} of {arms.withheld:g}"
        return withheld, counts, LiftConclusion.TOO_FEW.value, needed
    low, high = lift.interval
    rates = f"{arms.rate_told:.0%}/{arms.rate_withheld:.0%}"
    prevents = f"{lift.difference:+.0%} ({low:+.0%} to {high:+.0%}) {lift.conclusion.value}"
    return withheld, rates, prevents, needed
