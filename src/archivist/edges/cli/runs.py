"""Commands about runs: start and finish, capture, reflect, and their single steps."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.brief.select import BriefRequest, RenderedBrief
from archivist.capture.clean import clean_name
from archivist.clock import system_clock
from archivist.edges.cli import options
from archivist.edges.cli.brief import (
    fence_option,
    format_option,
    open_banks,
    parse_form,
    print_brief,
    say_what_is_missing,
    tell_run,
)
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, Table, embed, note, problem_lines, progress
from archivist.edges.cli.session import Session
from archivist.errors import InputError
from archivist.ids import new_id
from archivist.records.run_words import Effect, EpisodeKind, EpisodeStatus
from archivist.records.words import ActorKind
from archivist.text import escape_name, pluralize

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.capture.results import FinishedRun
    from archivist.capture.service import CaptureResult
    from archivist.records import Lesson
    from archivist.reflect.model.conversation_service import ModelReport
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome

_status_option = partial(
    click.option,
    "--status",
    type=click.Choice(["success", "partial", "failed", "aborted"]),
    callback=lambda _ctx, _param, word: EpisodeStatus(word) if word else None,
)
_FILE = click.Path(path_type=Path)
strict_option = click.option("--strict", "is_strict", is_flag=True, help="Refuse all when one line is bad.")
domain_option = click.option("--domain", metavar="D", default="", help="The run's domain.")

run = CommandGroup("run", help="Start and finish a run: the two calls that an orchestrator makes.")


@run.command()
@click.option("--run", "run_id", metavar="ID", default="", help="The run's id; one is made when missing.")
@click.option("--task", metavar="TEXT", default="", help="What the run is to do.")
@click.option("--agent", metavar="A", default="", help="Who does it; by default the acting agent.")
@click.option("--domain", metavar="D", default="", help="This domain's lessons and the general ones.")
@click.option("--role", metavar="R", default="", help="Lessons for this role and for none in particular.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of the folder when missing.")
@click.option("--provider", metavar="P", default="", help="The agent's harness; its lessons are told too.")
@click.option("--kind", type=options.enum_choice(EpisodeKind), help="What sort of run it is.")
@format_option
@fence_option
@options.as_json
@click.pass_obj
def start(
    session: Session,
    /,
    run_id: str,
    agent: str,
    form: str | None,
    kind: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Open a run, print its brief and record both. Without a bank: prints nothing, never fails.

    A bank that cannot be written still tells what it knows; the run is then not recorded.
    """
    name = clean_name(run_id) or new_id(system_clock())
    request = BriefRequest(**asked, form=parse_form(form))
    with ExitStack() as opened:
        bank, global_bank = open_banks(session, opened)
        brief: RenderedBrief | None = None
        if bank is not None:
            begin = partial(bank.runs.start_run, name, request, agent=agent, global_bank=global_bank)
            begin = partial(begin, kind=EpisodeKind(kind)) if kind else begin
            brief = tell_run(bank, request.for_run(name), global_bank, begin)
        elif global_bank is not None:
            brief = global_bank.brief(request.for_run(""))
        # On stderr: stdout is the text for the prompt.
        if not run_id:
            note(f"run: {name}")
        print_brief(bank or global_bank, brief, as_json or form == "json", run=name)
        if bank is not None and brief is not None:
            say_what_is_missing(brief)


@options.command(run)
@click.argument("files", metavar="EVENTS…", nargs=-1, type=_FILE)
@click.option("--run", "run_id", metavar="ID", default="", help="The run of events that do not name theirs.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of its start when missing.")
@_status_option(help="How it ended, if the log does not say.")
@domain_option
@click.option("--fail-on-regression", "is_gate", is_flag=True, help="Exit 1 when a fixed finding came back.")
@strict_option
def finish(
    session: Session, files: tuple[Path, ...], run_id: str, repo: str, status: Any, is_gate: bool, **how: Any
) -> Answer:
    """Close a run: capture its EVENTS, learn, age the bank, audit, and report what came back.

    EVENTS are review events, or the log of an agent in any format that `archivist capture` knows.
    """
    from archivist import projects
    from archivist.capture.service import CaptureOverrides
    from archivist.edges import views

    if not files and not run_id:
        hint = 'archivist run finish --run "$RUN" "logs/$RUN.jsonl"'
        raise click.UsageError(f"name the run's event files, or the run with --run\nhint: {hint}")
    if session.find_bank_path() is None:
        return _without_bank({"runs": [], "skipped": []})
    with session.bank(folder=Path.cwd()) as bank:
        with bank.reading() as reader:
            project = projects.resolve_name(reader, repo, bank.folder, bank.root) if repo else ""
        overrides = CaptureOverrides(run=run_id, status=status, project=project)
        done = bank.runs.finish(*files, overrides=overrides, global_bank=session.global_bank(), **how)
        embed(bank)
        shown = [views.finished_run_view(bank, finished) for finished in done.runs]
    view = {"runs": shown, "skipped": list(done.skipped)}
    text = "\n".join(line for finished in done.runs for line in _finished_lines(finished))
    strays = [f"archivist: {stray}" for stray in done.strays]
    code = 1 if is_gate and any(finished.regressions for finished in done.runs) else None
    return Answer(view, text, warnings=strays, skipped=done.skipped, code=code)


@options.bank_command()
@click.argument("files", metavar="EVENTS…", nargs=-1, required=True, type=_FILE)
@click.option("--run", metavar="ID", default="", help="The run of events that do not name theirs.")
@domain_option
@strict_option
def extract(bank: Bank, /, files: tuple[Path, ...], **how: Any) -> Answer:
    """Learn from the review findings in EVENTS. The same run twice changes nothing."""
    from archivist.edges import views

    learnt = bank.runs.extract(*files, **how)
    text = "\n".join(map(_lesson_line, (*learnt.created, *learnt.updated)))
    new, known = pluralize(len(learnt.created), "new lesson"), len(learnt.updated)
    notes = (f"{new}, {known} met again, {learnt.slight} below the severity threshold",)
    strays = [f"archivist: {stray}" for stray in learnt.strays]
    return Answer(views.extract_view(bank, learnt), text, notes, warnings=strays, skipped=learnt.skipped)


def _without_bank(view: dict[str, Any]) -> Answer:
    """Return the answer where no memory was made yet: a script of an orchestrator must not break off."""
    return Answer(view, notes=("nothing done: there is no bank here: archivist setup makes one",))


@options.command()
@click.option("--run", "run_id", metavar="ID", default="",
              help="The run that passed; the last that came in by default.")  # fmt: skip
def decay(session: Session, run_id: str) -> Answer:
    """Let a finished run age the bank: lessons that ten runs did not meet lose one frequency."""
    if session.find_bank_path() is None:
        return _without_bank({"run": run_id, "was_counted": False})
    from archivist.edges import views
    from archivist.records import Episode

    with session.bank(folder=Path.cwd()) as bank:
        run_id = run_id or bank.ledger.last_record("episode", ("capture", "reflect"))
        with bank.reading() as reader:
            is_known = not run_id or reader.get(Episode, run_id) is not None
        aged = bank.lessons.decay(run_id)
        view = {"run": run_id, **views.ageing_view(bank, aged)}
    was = "" if aged.was_counted else " (this run was counted before, or is not an own one)"
    notes = [f"{len(aged.faded)} faded, {len(aged.archived)} archived{was}"]
    if not is_known:
        notes.insert(0, f"run {run_id!r} is known by this name alone: it has no events here")
    return Answer(view, "\n".join(map(_lesson_line, (*aged.faded, *aged.archived))), notes)


def _finished_lines(done: FinishedRun) -> Iterator[str]:
    told = [verdict for verdict in done.verdicts if verdict.following != "withheld"]
    withheld = len(done.verdicts) - len(told)
    effects = Counter(verdict.effect for verdict in told)
    counts = ", ".join(f"{effects[effect]} {effect.label}" for effect in Effect if effects[effect])
    briefed = f"; of {len(told)} briefed {counts}" if told else ""
    yield (
        f"{done.run}: {pluralize(done.events, 'event')}, {pluralize(len(done.created), 'new lesson')},"
        f" {len(done.updated)} met again, {len(done.aged.faded)} faded, {len(done.aged.archived)} archived"
        f"{briefed}{f'; {withheld} withheld' if withheld else ''}"
    )
    if done.outcome.summary:
        yield f"  {done.outcome.summary}"
    yield from (f"  {_lesson_line(lesson)}" for lesson in (*done.created, *done.updated))
    for regression in done.regressions:
        yield f"  regression: {regression.found.description} (fixed in {regression.fixed_in})"


def _lesson_line(lesson: Lesson) -> str:
    return f"{lesson.short_id}  {lesson.frequency}x  {lesson.status}  {lesson.summary}"


_NAME_FILE = "archivist capture FILE takes a file that lies or is named unlike a log"
_BROUGHT = "it came with the repository"
_NAME_BROUGHT = "archivist capture FILE takes it if it is yours"
# Written out: a format is imported when a log of it is read.
_FORMATS = (
    "auto", "atif", "claude-code", "codex", "opencode", "gemini-cli", "copilot-cli", "vscode", "cursor",
    "swe-agent", "mini-swe-agent", "openhands", "archeflow", "stream", "hooks",
)  # fmt: skip


@options.command()
@click.argument("files", metavar="FILE…", nargs=-1, type=_FILE)
@options.listed_choice(
    "--format", "format_name", words=_FORMATS, text="What the logs are; auto goes by content", default="auto"
)
@click.option("--run", metavar="ID", default="", help="The run's id, when the log has none or another.")
@click.option("--repo", "--project", "project", metavar="NAME", default="", help="The repository.")
@_status_option(help="How the run ended, if you know better than its log.")
@click.option("--outcomes", type=_FILE, metavar="FILE", help="JSON with an outcome per run.")
def capture(
    session: Session, files: tuple[Path, ...], format_name: str, outcomes: Path | None, **about: Any
) -> Answer:
    """Import agent logs, also whole folders; each becomes a run that waits for reflection.

    Of a folder, what clients keep beside their logs is left out, such as the outputs of tools. Secrets are
    redacted before anything is stored. The same log again changes nothing, a longer one adds.
    """
    if not files:
        raise click.UsageError("name a log\nhint: archivist setup finds this repository's logs by itself")
    from archivist.capture.log_files import is_clients_own
    from archivist.capture.service import CaptureOverrides
    from archivist.edges import views
    from archivist.edges.cli.wording import name_problem, unread_notes

    paths, brought, others = _log_paths(files, is_checked=format_name == "auto")
    refused = dict.fromkeys((f"{escape_name(path)}: {_BROUGHT}" for path in brought), _NAME_BROUGHT)
    if not paths and not brought:
        raise InputError(f"no logs among {pluralize(others, 'file')}", hint=_NAME_FILE)
    with session.bank() as bank, progress(len(paths), "capture") as advance:
        known = CaptureOverrides(**about, outcomes=bank.runs.outcomes_in(outcomes) if outcomes else {})
        bank.runs.note_name(known.project)
        taken: list[CaptureResult] = []
        for path in paths:
            try:
                taken.append(bank.runs.capture_file(path, format_name=format_name, overrides=known))
            except InputError as error:
                refused[name_problem(path, error)] = error.hint
            advance(1)
        problems = list(refused)
        view = views.capture_view(bank, taken, refused=problems)
    if not taken:
        # One bad log among good ones is a partial success; nothing but bad ones is an error.
        first, *rest = problems
        for line in problem_lines(rest):
            note(line)
        raise InputError(first, hint=refused[first])
    skipped = [line for each in taken for line in unread_notes(each)]
    is_none = "is no log" if others == 1 else "are no logs"
    notes = [f"skipped {pluralize(others, 'file')} that {is_none}"] if others else []
    foreign = [file for file in files if file.is_dir() and not is_clients_own(file)]
    notes += [f"taken for sessions of yours: the logs in {file}" for file in foreign]
    notes += [f"archivist: {stray}" for each in taken for stray in each.strays]
    warnings = [*problem_lines(problems), *problem_lines(skipped)]
    tables, code = _captured_tables(taken), EXIT_PARTIAL if warnings else 0
    return Answer(view, tables=tables, notes=notes, warnings=warnings, code=code)


def _captured_tables(taken: list[CaptureResult]) -> list[Table]:
    """Return what logs brought, and of which projects their runs are."""
    # Several logs may tell of one run.
    runs = {episode.id: episode for each in taken for episode in each.episodes}
    more = {
        **dict(Counter(f"  {episode.status}" for episode in runs.values()).most_common()),
        "events": sum(each.events for each in taken),
        "files known already": sum(each.is_unchanged for each in taken),
        "files that hold less of a run than is known": sum(bool(each.shorter) for each in taken),
        "records skipped": sum(each.skipped for each in taken),
        "secrets redacted": sum(sum(each.secrets.values()) for each in taken),
    }
    new = {run for each in taken for run in each.created}
    rows = [
        ("files", len(taken)),
        ("runs", len(runs)),
        ("  new", len(new)),
        *(row for row in more.items() if row[1]),
    ]
    by_project = Counter(episode.project or "unknown" for episode in runs.values())
    return [(("Captured", "Count"), rows), (("Project", "Runs"), by_project.most_common())]


def _log_paths(files: Iterable[Path], *, is_checked: bool) -> tuple[list[Path], list[Path], int]:
    """Return the files that were named and the logs of folders, the logs there that came with a repository,
    and how many files there are no logs.
    """
    from archivist.capture.log_files import LOG_NAME, is_clients_own, scan_log_folder, why_no_log
    from archivist.files.git import find_brought

    paths: list[Path] = []
    brought: list[Path] = []
    others = 0
    for file in files:
        if not file.is_dir():
            paths.append(file)
            continue
        found = scan_log_folder(file)
        others += len(found.others)
        tracked = frozenset[Path]() if is_clients_own(file) else find_brought(found.candidates)
        for path in found.candidates:
            # A file that is named like a log and is none is reported by its name.
            if is_checked and not LOG_NAME.search(path.name) and why_no_log(path):
                others += 1
            else:
                (brought if path in tracked else paths).append(path)
    return paths, brought, others


@options.command()
@click.option("--run", "--session", metavar="ID", default="", help="Only this run.")
@click.option("--pending", is_flag=True, help="Every run that waits (the default).")
@click.option("--days", type=options.DAYS, metavar="N", help="Every run of the last N days, again.")
@click.option("--scenario", metavar="S", default="", help="Why: session_complete, session_failed, manual, …")
@click.option("--estimate", is_flag=True, help="Only say what the configured model may cost; send nothing.")
@options.no_llm
def reflect(
    session: Session, run: str, pending: bool, days: int | None, scenario: str, estimate: bool, no_llm: bool
) -> Answer:
    """Learn from captured runs: at most five lessons a run, with their evidence.

    It needs no language model; one that you configured and allowed reads the runs too, within its budget.
    """
    from archivist.edges import views
    from archivist.reflect.trigger import ReflectionOutcome, Scenario

    if sum((bool(run), pending, days is not None)) > 1:
        raise click.UsageError("--run, --pending and --days exclude each other")
    if scenario and scenario not in list(Scenario):
        raise click.UsageError(f"unknown scenario {scenario!r}\nhint: one of {', '.join(Scenario)}")
    why = Scenario(scenario) if scenario else None
    done: list[Reflection] = []
    failed: list[ReflectionOutcome] = []
    with session.bank() as bank:
        results: Iterable[Reflection | ReflectionOutcome]
        if run or days is not None:
            runs = [bank.runs.episode(run).id] if run else bank.reflections.recent_runs(days or 0)
            scenario = why or (Scenario.MANUAL if run else Scenario.BATCH)
            results = (bank.reflect(each, scenario=scenario) for each in runs)
        else:
            runs = [queued.run for queued in bank.reflections.waiting_runs()]
            results = bank.reflections.reflect_waiting(scenario=why)
        if estimate:
            from archivist.edges.cli.model import estimate_answer

            unread = bank.model.unread_runs() if not run and days is None else []
            return estimate_answer(bank, list(dict.fromkeys((*runs, *unread))))
        with progress(len(runs), "reflect") as advance:
            for result in results:
                if isinstance(result, ReflectionOutcome):
                    failed.append(result)
                else:
                    done.append(result)
                advance(1)
        # Agents reflect on their own runs, and spend nothing of the user's.
        has_model = bank.config.model.name and not no_llm and bank.actor.kind is not ActorKind.AGENT
        reports = _read_with_model(bank, [each.run for each in done], is_all=not run) if has_model else []
        unread = _unread_notes(bank) if has_model and not run and days is None else []
        embed(bank)
        view = views.reflection_view(bank, done, failed, reports)
        tables, notes = _describe_lessons(bank, done, reports) if done else ([], [])
        if not done and not failed and bank.reflections.waiting_runs():
            from archivist.doctor import check_reflection

            notes = [check_reflection(bank)[1]]
        elif not done and not failed and not reports:
            notes = ["no run waits for reflection: archivist capture imports logs"]
    if reports:
        from archivist.edges.cli.model import describe_report

        notes += describe_report(view["model"])
    warnings = [f"archivist: {each.run}: {each.error or each.summary}" for each in failed]
    code = EXIT_PARTIAL if any(each.error for each in failed) else 0
    return Answer(view, tables=tables, notes=notes + unread, warnings=warnings, code=code)


def _unread_notes(bank: Bank) -> list[str]:
    """Say how the model comes to read runs that were reflected on without it."""
    count, days = bank.model.older_unread_runs()
    runs, waiting = pluralize(count, "earlier run"), len(bank.model.waiting_runs())
    notes = [f"the model has not read {runs}: archivist reflect --days {days} lets it"] if count else []
    if waiting:
        notes.append(f"{pluralize(waiting, 'run')} to be read by the model: archivist reflect asks again")
    return notes


def _read_with_model(bank: Bank, runs: list[str], *, is_all: bool) -> list[ModelReport]:
    """Let the configured model read runs, and with `is_all` recent ones that it has not read yet."""
    unread = bank.model.unread_runs() if is_all else []
    wanted = list(dict.fromkeys((*runs, *unread)))
    reports = []
    if len(wanted) == 1 and sys.stderr.isatty():
        note(f"asking {bank.config.model.name} …")
    with progress(len(wanted), "model") as advance:
        for report in bank.model.read_runs(wanted):
            reports.append(report)
            advance(1)
    return reports


def _describe_lessons(
    bank: Bank, done: list[Reflection], reports: list[ModelReport]
) -> tuple[list[Table], list[str]]:
    """Return how many lessons were learnt, and the most frequent."""
    from archivist.edges.cli.wording import approval_notes

    learnt: tuple[Reflection | ModelReport, ...] = (*done, *reports)
    kept = {lesson.id: lesson for each in learnt for lesson in (*each.created, *each.updated)}
    live = [lesson for lesson in bank.lessons.get_many(kept) if lesson.status.is_live]
    waiting = sum(lesson.status == "quarantined" for lesson in kept.values())
    by_category = Counter(f"  {lesson.category}" for lesson in live)
    counts = {
        "runs": len(done),
        "failures": sum(each.failures for each in done),
        "lessons": len(live),
        **dict(by_category.most_common()),
        "met in two runs or more": sum(lesson.frequency > 1 for lesson in live),
        "with a remedy": sum(bool(lesson.remedies) for lesson in live),
        **({"quarantined": waiting} if waiting else {}),
    }
    tables: list[Table] = [(("Reflected", "Count"), list(counts.items()))]
    notes = approval_notes(waiting)
    top = sorted(live, key=lambda lesson: (-lesson.frequency, -lesson.importance, lesson.number))[:5]
    if top:
        cells = [(each.short_id, len(each.runs), each.category, each.summary) for each in top]
        tables.append((("ID", "Freq", "Category", "Lesson"), cells))
        notes.append(f"{pluralize(len(live), 'lesson')} learnt or met again; all: archivist lessons list")
    elif len(done) == 1 and (known := bank.lessons.of_run(bank.runs.episode(done[0].run))):
        names = ", ".join(lesson.short_id for lesson in known)
        notes.append(f"nothing new: what this run taught is known already ({names})")
    return tables, notes
